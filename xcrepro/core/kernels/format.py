"""CSR rows to text of the XC formats: one kernel over a range of rows.

Values get the fewest digits that read back to the same float32, laid out like C's ``%.9g``.
"""

from __future__ import annotations

import math

import numpy as np

from xcrepro.core.kernels import kernel

_SPACE, _NEWLINE, _COMMA, _MINUS, _PLUS, _DOT, _ZERO, _COLON, _E = 32, 10, 44, 45, 43, 46, 48, 58, 101
_POWERS = np.array([float(f"1e{i}") for i in range(65)])
_LEAST = -45  # the exponent of the smallest float32
_TENS = np.array([float(f"1e{i}") for i in range(_LEAST, 40)])

# The most bytes one entry can take: a ten-digit id, a colon, "-1.23456789e-38", a blank.
ENTRY_BYTES = 28
LABEL_BYTES = 11


@kernel(inline="always")
def _digits(number, digits):
    """How many digits a whole number has; they are in ``digits``, the last one first."""
    n = 0
    while n == 0 or number > 0:
        digits[n] = _ZERO + number % 10
        number //= 10
        n += 1
    return n


@kernel(inline="always")
def _write(out, p, digits, n):
    """Write the first n of ``digits`` from place p on, the last of them first; the place behind them."""
    for j in range(n):
        out[p + j] = digits[n - 1 - j]
    return p + n


@kernel
def format_rows(lo, hi, labelled, label_indptr, labels, indptr, ids, values, bits, out):
    """Write rows [lo, hi) into ``out`` (uint8) and return how many bytes they took.

    label_indptr, indptr: int64; labels, ids: int32; values: float32; bits: the same values' bits, uint32.
    Values are finite. ``out`` holds ENTRY_BYTES an entry, LABEL_BYTES a label and two bytes a row.
    """
    digits = np.empty(20, np.uint8)
    p = 0
    for row in range(lo, hi):
        begin, end = indptr[row], indptr[row + 1]
        if labelled:
            label_begin, label_end = label_indptr[row], label_indptr[row + 1]
            for i in range(label_begin, label_end):
                if i > label_begin:
                    out[p] = _COMMA
                    p += 1
                p = _write(out, p, digits, _digits(np.int64(labels[i]), digits))
        for i in range(begin, end):
            if labelled or i > begin:
                out[p] = _SPACE
                p += 1
            p = _write(out, p, digits, _digits(np.int64(ids[i]), digits))
            out[p] = _COLON
            p += 1

            pattern = np.int64(bits[i])
            if pattern >> 31:
                out[p] = _MINUS
                p += 1
            pattern &= 0x7FFFFFFF
            if pattern == 0:
                out[p] = _ZERO
                p += 1
                continue
            value = abs(np.float64(values[i]))
            # Half the distance to the neighbours: what lies strictly inside reads back as this number. Below a power
            # of two the neighbour is twice as near. The margin covers float64 rounding of the comparison.
            above = math.ldexp(1.0 - 1e-6, int(max(pattern >> 23, 1) - 151))
            below = above / 2 if pattern & 0x7FFFFF == 0 and pattern >> 23 > 1 else above
            # Six digits of a normal number lie nearer than any shorter number that reads back, so that the six-digit form
            # without trailing zeros is the shortest one; nine digits always suffice. (A number in the very middle could be
            # shorter by a digit; it is passed over. Only whole numbers beyond 2^24 have such.)
            size = ((math.frexp(value)[1] - 1) * 30103) // 100000  # floor(log10(value)), or one less
            size += value >= _TENS[size + 1 - _LEAST]
            whole = 0
            scale = 0
            for n_digits in range(6 if pattern >> 23 else 1, 10):
                scale = n_digits - 1 - size
                if scale >= 0:
                    whole = np.int64(value * _POWERS[scale] + 0.5)
                    back = whole / _POWERS[scale]
                else:
                    whole = np.int64(value / _POWERS[-scale] + 0.5)
                    back = whole * _POWERS[-scale]
                if back - value < above and value - back < below:
                    break
            while whole % 10 == 0:
                whole //= 10
                scale -= 1
            n = _digits(whole, digits)
            # The number is d.ddd times ten to the `power`, its digits last first in `digits`.
            power = n - 1 - scale
            if power < -4 or power > 8:
                out[p] = digits[n - 1]
                p += 1
                if n > 1:
                    out[p] = _DOT
                    p = _write(out, p + 1, digits, n - 1)
                out[p] = _E
                out[p + 1] = _MINUS if power < 0 else _PLUS
                power = abs(power)
                out[p + 2] = _ZERO + power // 10
                out[p + 3] = _ZERO + power % 10
                p += 4
            elif power < 0:
                out[p] = _ZERO
                out[p + 1] = _DOT
                p += 2
                for _ in range(-power - 1):
                    out[p] = _ZERO
                    p += 1
                p = _write(out, p, digits, n)
            else:
                for j in range(max(n, power + 1)):
                    if j == power + 1:
                        out[p] = _DOT
                        p += 1
                    out[p] = digits[n - 1 - j] if j < n else _ZERO
                    p += 1
        out[p] = _NEWLINE
        p += 1
    return p
