"""One step of Adam, in a single pass over the memory that holds weights and their two moments."""

import numpy as np

from xcrepro.core.kernels import kernel

# A moment this small is 0: what no batch touches decays to subnormal numbers, and those are slow to compute with.
_TINY = np.float32(1e-30)
_ZERO = np.float32(0)
_ONE = np.float32(1)


@kernel
def flat(weights, gradient, first, second, rate, beta1, beta2, scale1, scale2, epsilon):
    """Change weights, first and second in place. Arrays: 1-D float32 of one length. Scalars: float32.

    scale1 and scale2 are 1 / (1 - beta^t) of step t, which make up for moments that start at 0.
    """
    for i in range(weights.size):
        m = beta1 * first[i] + (_ONE - beta1) * gradient[i]
        v = beta2 * second[i] + (_ONE - beta2) * gradient[i] * gradient[i]
        m = m if abs(m) > _TINY else _ZERO
        v = v if v > _TINY else _ZERO
        first[i], second[i] = m, v
        # A plain / looks for 0 at each element, and nothing goes by vector instructions then.
        weights[i] -= np.divide(rate * (scale1 * m), np.sqrt(scale2 * v) + epsilon)


@kernel
def rows(weights, chosen, gradient, first, second, rate, beta1, beta2, scale1, scale2, epsilon):
    """The same on some rows of weights, (n, dim), and of its moments; the others wait.

    chosen: without repetition; gradient: (chosen, dim).
    """
    for i in range(chosen.size):
        row = chosen[i]
        flat(weights[row], gradient[i], first[row], second[row], rate, beta1, beta2, scale1, scale2, epsilon)
