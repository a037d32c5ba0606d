"""The cosine transform by which smooth ECE smooths: sums and products in a fixed order, its cosines by square roots."""

import numpy as np

from xcrepro.core.kernels import kernel


@kernel
def cosines(n):
    """cos(pi j / n) for j = 0 to n, n a power of two, 2 or more: each from its neighbours, half as near at a time."""
    out = np.empty(n + 1)
    out[0], out[n // 2], out[n] = 1.0, 0.0, -1.0
    step, of_step = n // 4, np.sqrt(0.5)  # of_step: cos(pi step / n)
    while step > 0:
        # cos(a - d) + cos(a + d) = 2 cos(a) cos(d); from 0 to pi / 2, and mirrored.
        for j in range(step, n // 2, 2 * step):
            out[j] = (out[j - step] + out[j + step]) / (2.0 * of_step)
            out[n - j] = -out[j]
        step, of_step = step // 2, np.sqrt(0.5 + 0.5 * of_step)
    return out


@kernel(error_model="numpy")
def _fourier(real, imag, other_real, other_imag, cosine):
    """The Fourier transform of n complex numbers in place (Stockham's: radix 2, in order), ``other`` as room."""
    n = real.size
    apart, run = n // 2, 1
    while apart > 0:
        for j in range(apart):
            at = j * (n // apart)
            c, s = cosine[at], cosine[abs(n // 2 - at)]
            one, two, to = j * run, (j + apart) * run, 2 * j * run
            for i in range(run):
                a, b = real[one + i], real[two + i]
                x, y = imag[one + i], imag[two + i]
                other_real[to + i], other_imag[to + i] = a + b, x + y
                a, x = a - b, x - y
                other_real[to + run + i], other_imag[to + run + i] = a * c + x * s, x * c - a * s
        real, imag, other_real, other_imag = other_real, other_imag, real, imag
        apart, run = apart // 2, 2 * run
    return real, imag


@kernel
def transforms(values, cosine, out):
    """Of each row v: ``out[k] = v[0] + (-1)^k v[n] + 2 sum of v[j] cos(pi j k / n)`` over 0 < j < n, n as in ``cosines``."""
    n = cosine.size - 1
    real, imag, other_real, other_imag = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for row in range(values.shape[0]):
        # The row and its mirror image are 2 n real numbers: n complex ones, even places and odd.
        for j in range(n):
            real[j] = values[row, 2 * j if 2 * j <= n else 2 * n - 2 * j]
            imag[j] = values[row, 2 * j + 1 if 2 * j + 1 <= n else 2 * n - 2 * j - 1]
        a, b = _fourier(real, imag, other_real, other_imag, cosine)
        for k in range(n + 1):
            one, two = k % n, (n - k) % n
            c, s = cosine[k], cosine[abs(n // 2 - k)]
            even, odd = a[one] + a[two], (b[one] + b[two]) * c - (a[one] - a[two]) * s
            out[row, k] = 0.5 * (even + odd)
