"""exp, log, log1p, tanh and what is made of them, the same bits on every machine.

Those of C libraries and of NumPy differ in the last digit from processor to processor, because each has its own polynomials
and some fuse a product with a sum. These are additions, products, divisions and square roots of IEEE numbers in a fixed order,
which every machine computes alike. What they are at the edges (NaN, infinity, overflow, numbers below the normal ones) is what
NumPy has.

Largest errors in units in the last place, as the tests measure them against exact arithmetic: see ``ERRORS``.
"""

from __future__ import annotations

import numpy as np

from xcrepro.core.kernels import kernel

ERRORS = {
    "exp": 2.5, "log": 3.0, "log_ratio": 4.0, "log1p": 3.0, "log2": 3.5, "tanh": 2.5, "expm1": 5.0, "sigmoid": 3.5,
    "softplus": 4.5, "exp32": 1.0, "tanh32": 5.5, "sigmoid32": 2.5,
}  # fmt: skip

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INVERSE_LN2 = 1.4426950408889634
_MANTISSA, _HALF = np.int64(0x000FFFFFFFFFFFFF), np.int64(0x3FE0000000000000)
_TINY = 2.2250738585072014e-308  # the least normal float64


# NumPy's rules of division: a check of every divisor would keep the callers' loops from running several numbers at once.
@kernel(error_model="numpy", inline="always")
def _power_of_two(n):
    """2.0 ** n for -1022 <= n <= 1023."""
    return np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)).view(np.float64)


@kernel(error_model="numpy")
def exp(x):
    """e to the power x."""
    y = x if x < 710.0 else 710.0  # NaN too: it is put back below
    y = y if y > -746.0 else -746.0
    n = np.floor(y / (_LN2_HIGH + _LN2_LOW) + 0.5)
    r = (y - n * _LN2_HIGH) - n * _LN2_LOW
    # Taylor's series to the 12th power, |r| < 0.35: the next term is below 2e-16.
    total = 1.0 / 479001600.0
    total = total * r + 1.0 / 39916800.0
    total = total * r + 1.0 / 3628800.0
    total = total * r + 1.0 / 362880.0
    total = total * r + 1.0 / 40320.0
    total = total * r + 1.0 / 5040.0
    total = total * r + 1.0 / 720.0
    total = total * r + 1.0 / 120.0
    total = total * r + 1.0 / 24.0
    total = total * r + 1.0 / 6.0
    total = total * r + 0.5
    total = total * r + 1.0
    total = total * r + 1.0
    # By two powers: one alone would overflow, or lose what a number below the normal ones has left.
    whole = np.int32(n)
    part = whole >> np.int32(1)
    total = (total * _power_of_two(part)) * _power_of_two(whole - part)
    return total if x == x else x


@kernel(error_model="numpy", inline="always")
def _parts(x):
    """(m, e) with x = m * 2.0 ** e and sqrt(1/2) <= m < sqrt(2), of a normal x > 0."""
    bits = np.float64(x).view(np.int64)
    e = np.int32((bits >> np.int64(52)) - np.int64(1022))
    m = np.int64((bits & _MANTISSA) | _HALF).view(np.float64)
    low = m < 0.7071067811865476
    return (m + m if low else m), (e - np.int32(1) if low else e)


@kernel(error_model="numpy", inline="always")
def _twice_artanh(s):
    """2 artanh(s) = log((1 + s) / (1 - s)) for |s| < 0.1716: the series to the 23rd power."""
    square = s * s
    total = 1.0 / 23.0
    total = total * square + 1.0 / 21.0
    total = total * square + 1.0 / 19.0
    total = total * square + 1.0 / 17.0
    total = total * square + 1.0 / 15.0
    total = total * square + 1.0 / 13.0
    total = total * square + 1.0 / 11.0
    total = total * square + 1.0 / 9.0
    total = total * square + 1.0 / 7.0
    total = total * square + 1.0 / 5.0
    total = total * square + 1.0 / 3.0
    total = total * square + 1.0
    return 2.0 * s * total


@kernel(error_model="numpy", inline="always")
def _edges_of_log(x, value):
    """``value``, but minus infinity at 0, NaN below and for NaN, infinity at infinity."""
    value = value if x > 0.0 else (-np.inf if x == 0.0 else np.nan)
    return value if x < np.inf else (x if x > 0.0 else np.nan)


@kernel(error_model="numpy")
def log(x):
    """The natural logarithm."""
    small = x < _TINY
    y = x * 18014398509481984.0 if small else x  # 2 ** 54
    m, e = _parts(y if y > 0.0 else 1.0)
    power = np.float64(e - np.int32(54) if small else e)
    value = power * _LN2_HIGH + (_twice_artanh((m - 1.0) / (m + 1.0)) + power * _LN2_LOW)
    return _edges_of_log(x, value)


@kernel(error_model="numpy", inline="always")
def log_ratio(a, b):
    """log(a / b): one division and a short chain of sums, where log(a / b) waits for two and a long one.

    So it is for what waits for the value, one number at a time; its bits are not those of log(a / b).
    """
    if not (_TINY <= a < np.inf and _TINY <= b < np.inf):
        return log(a / b)
    bits, its = np.float64(a).view(np.int64), np.float64(b).view(np.int64)
    e = np.int32((bits >> np.int64(52)) - (its >> np.int64(52)))
    top = np.int64((bits & _MANTISSA) | _HALF).view(np.float64)
    low = np.int64((its & _MANTISSA) | _HALF).view(np.float64)
    more, less = top > 1.4142135623730951 * low, low > 1.4142135623730951 * top
    power = np.float64(e + np.int32(more) - np.int32(less))
    low = low + low if more else low
    top = top + top if less else top
    s = (top - low) / (top + low)
    # The series of _twice_artanh, neighbouring terms first: they need not wait for each other.
    square = s * s
    fourth = square * square
    eighth = fourth * fourth
    first = (1.0 + square * (1.0 / 3.0)) + (1.0 / 5.0 + square * (1.0 / 7.0)) * fourth
    second = (1.0 / 9.0 + square * (1.0 / 11.0)) + (1.0 / 13.0 + square * (1.0 / 15.0)) * fourth
    third = (1.0 / 17.0 + square * (1.0 / 19.0)) + (1.0 / 21.0 + square * (1.0 / 23.0)) * fourth
    artanh = s * ((first + second * eighth) + third * (eighth * eighth))
    return power * _LN2_HIGH + (2.0 * artanh + power * _LN2_LOW)


@kernel(error_model="numpy")
def log2(x):
    """The logarithm to base 2; exact for powers of two."""
    small = x < _TINY
    y = x * 18014398509481984.0 if small else x
    m, e = _parts(y if y > 0.0 else 1.0)
    power = np.float64(e - np.int32(54) if small else e)
    value = power + _twice_artanh((m - 1.0) / (m + 1.0)) * _INVERSE_LN2
    return _edges_of_log(x, value)


@kernel(error_model="numpy")
def log1p(x):
    """log(1 + x), also where 1 + x has lost digits of x."""
    u = 1.0 + x
    m, e = _parts(u if u > 0.0 else 1.0)
    power = np.float64(e)
    # To first order what log(u) lacks; NaN where u is 0 or infinite, which the last lines put right.
    lost = (x - (u - 1.0)) / u
    value = power * _LN2_HIGH + (_twice_artanh((m - 1.0) / (m + 1.0)) + (power * _LN2_LOW + lost))
    value = _edges_of_log(u, value)
    # -0, NaN and numbers too small to halve are what they were.
    return value if abs(x) > 1e-300 else x


@kernel(error_model="numpy")
def tanh(x):
    """The hyperbolic tangent."""
    z = x * x
    # Near 0 a rational approximation (Cody and Waite): 1 - 2 / (exp(2 x) + 1) would lose the digits.
    top = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3
    bottom = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3
    near = x * (1.0 + z * (top / bottom))
    a = abs(x)
    far = 1.0 - 2.0 / (exp(a + a) + 1.0)
    far = far if x > 0.0 else -far
    return near if a < 0.625 else (far if x == x else x)


@kernel(error_model="numpy")
def expm1(x):
    """exp(x) - 1, also where exp(x) has lost digits of x."""
    value = tanh(0.5 * x) * (exp(x) + 1.0)
    return value if abs(x) > 1e-300 else x


@kernel(error_model="numpy")
def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    small = exp(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


@kernel(error_model="numpy")
def softplus(x):
    """log(1 + exp(x)), without overflow: the logistic loss at the margin -x."""
    return (x if x > 0.0 else 0.0) + log1p(exp(-abs(x)))


# ---------------------------------------------------------------------- float32: every number and every step is one

_f32 = np.float32
_SHIFT = _f32(12582912.0)  # 1.5 * 2 ** 23: adding it and taking it away rounds to a whole number
_INVERSE_LN2_32, _LN2_HIGH_32, _LN2_LOW_32 = _f32(1.4426950408889634), _f32(0.693359375), _f32(-2.12194440e-4)
_ZERO, _ONE, _TWO = _f32(0), _f32(1), _f32(2)


# The interpreter's float32 numbers have no bits of their own to be seen as.
@kernel(plain=lambda n: np.float32(2.0 ** int(n)), error_model="numpy", inline="always")
def _power_of_two32(n):
    """2 ** n as a float32, for -126 <= n <= 127."""
    return np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@kernel(error_model="numpy")
def exp32(x):
    """e to the power x (Cephes' coefficients)."""
    y = x if x < _f32(89) else _f32(89)
    y = y if y > _f32(-104) else _f32(-104)
    n = (y * _INVERSE_LN2_32 + _SHIFT) - _SHIFT
    r = (y - n * _LN2_HIGH_32) - n * _LN2_LOW_32
    total = _f32(1.9875691500e-4)
    total = total * r + _f32(1.3981999507e-3)
    total = total * r + _f32(8.3334519073e-3)
    total = total * r + _f32(4.1665795894e-2)
    total = total * r + _f32(1.6666665459e-1)
    total = total * r + _f32(5.0000001201e-1)
    total = (total * (r * r) + r) + _ONE
    whole = np.int32(n)
    part = whole >> np.int32(1)
    total = (total * _power_of_two32(part)) * _power_of_two32(whole - part)
    return total if x == x else x


@kernel(error_model="numpy")
def sigmoid32(x):
    """1 / (1 + exp(-x)), without overflow."""
    small = exp32(-abs(x))
    return (_ONE if x >= _ZERO else small) / (_ONE + small)


@kernel(error_model="numpy")
def tanh32(x):
    """The hyperbolic tangent, a rational approximation on [-7.9, 7.9] (Eigen's coefficients); beyond it is 1 in float32."""
    most = _f32(7.90531110763549805)
    y = x if x < most else most
    y = y if y > -most else -most
    z = y * y
    top = _f32(-2.76076847742355e-16)
    top = top * z + _f32(2.00018790482477e-13)
    top = top * z + _f32(-8.60467152213735e-11)
    top = top * z + _f32(5.12229709037114e-08)
    top = top * z + _f32(1.48572235717979e-05)
    top = top * z + _f32(6.37261928875436e-04)
    top = top * z + _f32(4.89352455891786e-03)
    bottom = _f32(1.19825839466702e-06)
    bottom = bottom * z + _f32(1.18534705686654e-04)
    bottom = bottom * z + _f32(2.26843463243900e-03)
    bottom = bottom * z + _f32(4.89352518554385e-03)
    return y * top / bottom if x == x else x


# ---------------------------------------------------------------------- of arrays: one axis, out of the same size


@kernel
def exps(values, out):
    """exp of every value."""
    for i in range(values.size):
        out[i] = exp(values[i])


@np.errstate(all="ignore")
def _logs(values, out):
    """As log and what it calls have it, of all at once."""
    small = values < _TINY
    y = np.where(small, values * 18014398509481984.0, values)
    bits = np.where(y > 0.0, y, 1.0).view(np.int64)
    m, e = ((bits & _MANTISSA) | _HALF).view(np.float64), (bits >> 52) - 1022
    low = m < 0.7071067811865476
    m, power = np.where(low, m + m, m), (e - low - 54 * small).astype(np.float64)
    value = power * _LN2_HIGH + (_twice_artanh.py_func((m - 1.0) / (m + 1.0)) + power * _LN2_LOW)
    value = np.where(values > 0.0, value, np.where(values == 0.0, -np.inf, np.nan))
    out[:] = np.where(values == np.inf, np.inf, value)


@kernel(plain=_logs)
def logs(values, out):
    """log of every value."""
    for i in range(values.size):
        out[i] = log(values[i])


@kernel
def log1ps(values, out):
    """log1p of every value."""
    for i in range(values.size):
        out[i] = log1p(values[i])


@kernel
def log2s(values, out):
    """log2 of every value."""
    for i in range(values.size):
        out[i] = log2(values[i])


@kernel
def expm1s(values, out):
    """expm1 of every value."""
    for i in range(values.size):
        out[i] = expm1(values[i])


@kernel
def sigmoids(values, out):
    """sigmoid of every value."""
    for i in range(values.size):
        out[i] = sigmoid(values[i])


@kernel
def softplusses(values, out):
    """softplus of every value; in two passes, each of which runs on several values at once."""
    for i in range(values.size):
        out[i] = exp(-abs(values[i]))
    for i in range(values.size):
        out[i] = (values[i] if values[i] > 0.0 else 0.0) + log1p(out[i])


@kernel
def exps32(values, out):
    """exp32 of every value."""
    for i in range(values.size):
        out[i] = exp32(values[i])


@kernel
def sigmoids32(values, out):
    """sigmoid32 of every value."""
    for i in range(values.size):
        out[i] = sigmoid32(values[i])


@kernel
def tanhs32(values, out):
    """tanh32 of every value."""
    for i in range(values.size):
        out[i] = tanh32(values[i])
