"""The derivatives of the neural baseline's losses by its outputs z, in place: (labels, rows) float32, a label's rows together.

The relevant pairs of a block are (labels[i], rows[i]).
"""

import numpy as np

from xcrepro.kernels import kernel
from xcrepro.kernels.elementary import exp, log, log1p, sigmoid32, softplus

_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)
_ALMOST_ONE = 1.0 - 2.0**-24


@kernel
def squared_hinge(z, labels, rows):
    """Of max(0, 1 - z)^2 for a relevant pair, and max(0, 1 + z)^2 for another."""
    own = _picked(z, labels, rows)
    for label in range(z.shape[0]):
        values = z[label]
        for i in range(values.size):
            short = _ONE + values[i]
            values[i] = _TWO * (_ZERO if short < _ZERO else short)
    for p in range(own.size):
        short = _ONE - own[p]
        z[labels[p], rows[p]] = -_TWO * (_ZERO if short < _ZERO else short)


@kernel
def cross_entropy(z, labels, rows, positive, negative, shift):
    """Of -(1 - p)^positive log p for a relevant pair, and -q^negative log(1 - q), q = max(p - shift, 0), for another."""
    own = _picked(z, labels, rows)
    for label in range(z.shape[0]):
        values = z[label]
        if negative == 0.0 and shift == 0.0:
            for i in range(values.size):
                values[i] = sigmoid32(values[i])
        else:
            for i in range(values.size):
                values[i] = _irrelevant(np.float64(values[i]), negative, shift)
    for p in range(own.size):
        z[labels[p], rows[p]] = _relevant(np.float64(own[p]), positive)


@kernel
def _picked(z, labels, rows):
    own = np.empty(labels.size, np.float32)
    for p in range(own.size):
        own[p] = z[labels[p], rows[p]]
    return own


@kernel(error_model="numpy")
def _relevant(z, gamma):
    if gamma == 0.0:
        return -np.float64(sigmoid32(np.float32(-z)))
    small = exp(-abs(z))
    p, q = (1.0 if z >= 0.0 else small) / (1.0 + small), (small if z >= 0.0 else 1.0) / (1.0 + small)
    return exp(gamma * log(q)) * (-gamma * p * softplus(-z) - q)


@kernel(error_model="numpy")
def _irrelevant(z, gamma, shift):
    small = exp(-abs(z))
    p, q = (1.0 if z >= 0.0 else small) / (1.0 + small), (small if z >= 0.0 else 1.0) / (1.0 + small)
    # Where p is not above the shift the loss is 0; the floor keeps what is computed there, and thrown away, finite.
    shifted = p - shift
    shifted = 1e-12 if shifted < 1e-12 else (_ALMOST_ONE if shifted > _ALMOST_ONE else shifted)
    ratio = q / (q + shift) if shift > 0.0 else 1.0  # of 1 - p to 1 - shifted, also where both are too small to divide
    value = p * exp(gamma * log(shifted)) * (ratio - gamma * q * log1p(-shifted) / shifted)
    return 0.0 if p <= shift else value
