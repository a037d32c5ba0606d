"""Sums without rounding: numbers are split into whole multiples of two powers of 2, and the multiples are added as integers.

With ``2^e`` at or above every number of a column, a number is ``h 2^(e-40) + l 2^(e-80) + rest`` with whole h and l: adding and
taking away a constant whose last bit weighs 2^(e-40) rounds to a multiple of that, exactly, in two operations that compilers
turn into vector instructions. Sums of up to 2^13 such parts are exact in float64 in any order. Where rest is not 0 (a number
below 2^(e-27) with a long mantissa) the caller goes another, slower way.
"""

import numpy as np

from xcrepro.core.kernels import kernel

BITS = 40  # of each of the two parts
ROWS = 2048  # at most, in one call
DONE, TOO_LARGE, INEXACT = 0, 1, 2


@np.errstate(all="ignore")
def _split(values, n, exponents, high, low):
    values, one = values[:n], np.ones(exponents.size)
    coarse, fine = (1.5 * np.ldexp(one, exponents - bits + 52) for bits in (BITS, 2 * BITS))
    first = (values + coarse) - coarse
    left = values - first
    second = (left + fine) - fine
    high[:n] = first * np.ldexp(one, BITS - exponents)
    low[:n] = second * np.ldexp(one, 2 * BITS - exponents)
    if not (np.abs(values) <= np.ldexp(one, exponents)).all():
        return TOO_LARGE
    return INEXACT if (left != second).any() else DONE


@kernel(plain=_split)
def split(values, n, exponents, high, low):
    """Part the first n rows: ``values[i, c] = (high[i, c] 2^-40 + low[i, c] 2^-80) 2^exponents[c]``.

    Returns DONE; TOO_LARGE where a number exceeds its column's power of 2; INEXACT where something would be left over.
    """
    m = values.shape[1]
    coarse, fine, bound = np.empty(m), np.empty(m), np.empty(m)
    up, up_low = np.empty(m), np.empty(m)
    for c in range(m):
        bound[c] = 2.0 ** exponents[c]
        # 1.5 2^52 units: the sum has the unit as its last bit, whatever the sign of the number.
        coarse[c] = 1.5 * 2.0 ** (exponents[c] - BITS + 52)
        fine[c] = 1.5 * 2.0 ** (exponents[c] - 2 * BITS + 52)
        up[c] = 2.0 ** (BITS - exponents[c])
        up_low[c] = 2.0 ** (2 * BITS - exponents[c])
    worst, rest = False, False
    for i in range(n):
        for c in range(m):
            value = values[i, c]
            worst |= not abs(value) <= bound[c]
            first = (value + coarse[c]) - coarse[c]
            left = value - first
            second = (left + fine[c]) - fine[c]
            rest |= left != second
            high[i, c] = first * up[c]
            low[i, c] = second * up_low[c]
    if worst:
        return TOO_LARGE
    return INEXACT if rest else DONE


def _add(values, n, exponents, high, low):
    parts = np.empty((2, n, values.shape[1]))
    state = _split(values, n, exponents, *parts)
    if state == DONE:
        for total, part in zip((high, low), parts, strict=True):
            total += part.sum(axis=0).astype(np.int64)
    return state


@kernel(plain=_add)
def add(values, n, exponents, high, low):
    """The same parts, added over the first n rows (at most ROWS) to the int64 ``high`` and ``low`` (m,), if it returns DONE."""
    m = values.shape[1]
    coarse, fine, bound = np.empty(m), np.empty(m), np.empty(m)
    for c in range(m):
        bound[c] = 2.0 ** exponents[c]
        coarse[c] = 1.5 * 2.0 ** (exponents[c] - BITS + 52)
        fine[c] = 1.5 * 2.0 ** (exponents[c] - 2 * BITS + 52)
    firsts, seconds = np.zeros(m), np.zeros(m)
    worst, rest = False, False
    for i in range(n):
        for c in range(m):
            value = values[i, c]
            first = (value + coarse[c]) - coarse[c]
            left = value - first
            second = (left + fine[c]) - fine[c]
            worst |= not abs(value) <= bound[c]
            rest |= left != second
            firsts[c] += first
            seconds[c] += second
    if worst:
        return TOO_LARGE
    if rest:
        return INEXACT
    for c in range(m):
        high[c] += np.int64(firsts[c] * 2.0 ** (BITS - exponents[c]))
        low[c] += np.int64(seconds[c] * 2.0 ** (2 * BITS - exponents[c]))
    return DONE
