"""The derivatives of the neural baseline's losses by its outputs z, in place: (labels, rows) float32, a label's rows together.

The relevant pairs of a block are (labels[i], rows[i]).
"""

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import exp, log, log1p, sigmoid32, softplus

_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)
_ALMOST_ONE = 1.0 - 2.0**-24
_STRETCH = 512  # values whose steps are taken one after the other


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
    flat = z.reshape(z.size)
    if negative == 0.0 and shift == 0.0:
        for i in range(flat.size):
            flat[i] = sigmoid32(flat[i])
    else:
        scratch = np.empty((5, _STRETCH))
        for first in range(0, flat.size, _STRETCH):
            _irrelevant(flat[first : first + _STRETCH], negative, shift, scratch)
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
def _irrelevant(z, gamma, shift, scratch):
    """In steps, each of which runs over several values at once."""
    small, p, shifted, power, rest = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    for i in range(z.size):
        small[i] = exp(-abs(np.float64(z[i])))
    for i in range(z.size):
        p[i] = (1.0 if z[i] >= _ZERO else small[i]) / (1.0 + small[i])
        # Where p is not above the shift the loss is 0; the floor keeps what is computed there, and thrown away, finite.
        s = p[i] - shift
        s = 1e-12 if s < 1e-12 else s
        shifted[i] = _ALMOST_ONE if s > _ALMOST_ONE else s
    for i in range(z.size):
        power[i] = gamma * log(shifted[i])
    for i in range(z.size):
        power[i] = exp(power[i])
    for i in range(z.size):
        rest[i] = log1p(-shifted[i])
    for i in range(z.size):
        q = (small[i] if z[i] >= _ZERO else 1.0) / (1.0 + small[i])
        ratio = (
            q / (q + shift) if shift > 0.0 else 1.0
        )  # of 1 - p to 1 - shifted, also where both are too small to divide
        value = p[i] * power[i] * (ratio - gamma * q * rest[i] / shifted[i])
        z[i] = 0.0 if p[i] <= shift else value
