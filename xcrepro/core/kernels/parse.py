"""Text of the XC formats to CSR pieces: one kernel over one block of whole lines.

The caller gives a block that ends with a newline, and scratch arrays large enough for any text of that length
(an entry takes at least four bytes, ``1:1`` and a separator; a label two; a line one). The kernel stops at the first
fault and says where; what is wrong there is worked out in Python, which happens once a file.
"""

from __future__ import annotations

import numpy as np

from xcrepro.core.kernels import interpreted, kernel

# Slots of the array `out`.
ROWS, LINES, LABELS, ENTRIES, ODD, UNSORTED_ROWS, UNSORTED_ROW, FAULT, FAULT_AT = range(9)
OUT_SLOTS = 9

# Values of out[FAULT]: what the kernel was reading when it stopped.
NO_FAULT, IN_LABEL, IN_ID, IN_VALUE, IN_LINE_END = range(5)

_TAB, _NEWLINE, _RETURN, _SPACE, _HASH = 9, 10, 13, 32, 35
_PLUS, _COMMA, _MINUS, _DOT, _ZERO, _NINE, _COLON = 43, 44, 45, 46, 48, 57, 58
_UPPER_E, _LOWER_E = 69, 101

# A mantissa below this takes one more digit without leaving int64; below the other, eight more.
_ROOM = (2**63 - 10) // 10
_ROOM_FOR_EIGHT = 10**10
_WHOLE_POWERS = np.array([10**i for i in range(9)])
# float64 powers of ten from 10^-64 to 10^64, most of them rounded, which the margin around ties below allows for.
_LARGEST_POWER = 64
_POWERS = np.array([float(f"1e{i}") for i in range(-_LARGEST_POWER, _LARGEST_POWER + 1)])

# The kernel may look this many bytes past the end of the text, whatever they are.
PADDING = 8


@kernel
def _byte(text, p):
    # An unsigned index spares the check for a negative one, here and below.
    return np.int64(text[np.uint64(p)])


@kernel
def _digits(text, p):
    """How many of the eight bytes from ``p`` on are digits before the first other byte, and the number they spell.

    Worked out on all eight at once: runs of digits differ in length from token to token, and a loop over them would
    mispredict its end each time.
    """
    q = np.uint64(p)
    word = np.uint64(text[q])
    for i in (1, 2, 3, 4, 5, 6, 7):
        word |= np.uint64(text[q + np.uint64(i)]) << np.uint64(8 * i)
    # Digits become bytes 0 to 9, and only they keep the top bit clear when 0x76 is added. A carry can spoil only bytes
    # after the first that is no digit.
    word ^= np.uint64(0x3030303030303030)
    other = ((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080)
    below = (other - np.uint64(1)) & ~other
    ones = np.uint64(0x0101010101010101)
    count = ((below >> np.uint64(7)) & ones) * ones >> np.uint64(56)
    if count == np.uint64(0):
        return 0, 0
    # Move the digits to the end, zeros before them; join them to pairs, pairs to fours, fours to one number.
    word <<= np.uint64(64) - np.uint64(8) * count
    word = word * np.uint64(10) + (word >> np.uint64(8))
    pairs = np.uint64(0x000000FF000000FF)
    word = (
        (word & pairs) * np.uint64(100 + (1000000 << 32))
        + ((word >> np.uint64(16)) & pairs) * np.uint64(1 + (10000 << 32))
    ) >> np.uint64(32)
    return np.int64(count), np.int64(word)


@kernel
def _ends_token(c):
    return c in (_SPACE, _NEWLINE, _TAB, _RETURN, _HASH)


@kernel
def _scaled(mantissa, exponent):
    """mantissa * 10^exponent in float64, and whether that rounds to float32 as the exact number does.

    Mantissa, power and product are each off by a few units of float64's last place at most. Rounding twice goes wrong only
    where the middle between two float32 numbers is that near, which the 29 bits that float32 lacks show. Outside
    float32's normal range the middle lies elsewhere, so all numbers there count as unsure.
    """
    value = np.float64(mantissa)
    if mantissa == 0:
        return value, True
    if not -_LARGEST_POWER <= exponent <= _LARGEST_POWER:
        return value, False
    value *= _POWERS[exponent + _LARGEST_POWER]
    low = np.float64(value).view(np.int64) & 0x1FFFFFFF
    return value, (low < 0x0FFFFFF0 or low > 0x10000010) and 1.2e-38 <= value <= 3.4e38


_DIGIT, _POINT, _END, _OTHER = range(4)
_KINDS = np.full(256, _OTHER, np.uint8)
_KINDS[_ZERO : _NINE + 1], _KINDS[_DOT], _KINDS[[_COMMA, _COLON, _SPACE, _NEWLINE]] = _DIGIT, _POINT, _END


def _parse_block(*given):
    if not _at_once(*given):
        interpreted.interpreted(parse_block.py_func)(*given)


def _at_once(
    text, end, labelled, n_labels, first_label, n_ids, first_id, labels, label_lens, ids, values, lens, odd, out
):
    """Parse what is all digits, points and single ends of them, and no fault; False, and nothing done, for other text."""
    text, kinds = text[:end], _KINDS[text[:end]]
    ends = np.flatnonzero(kinds == _END)
    if not ends.size or kinds.max() == _OTHER:
        return False
    starts = np.append(0, ends[:-1] + 1)
    before, after, size = np.append(_NEWLINE, text[ends[:-1]]), text[ends], ends - starts
    first, closed = before == _NEWLINE, (after == _SPACE) | (after == _NEWLINE)
    label = (size > 0) & (first | (before == _COMMA)) & (after != _COLON) & bool(labelled)
    entry = (size > 0) & (after == _COLON) & ((before == _SPACE) | (first & (not labelled)))
    value = (size > 0) & (before == _COLON) & closed
    nothing = (size == 0) & (first | (before == _SPACE)) & closed
    points = np.flatnonzero(kinds == _POINT)
    dotted = np.searchsorted(ends, points)
    if not (label | entry | value | nothing).all() or size.max() > 17:
        return False
    if not value[dotted].all() or (np.diff(dotted) == 0).any() or (size[dotted] == 1).any():
        return False
    numbers = np.zeros(ends.size, np.int64)
    for place in range(int(size.max())):
        rest = np.flatnonzero(size > place)
        byte = text[starts[rest] + place].astype(np.int64)
        rest, byte = rest[byte != _DOT], byte[byte != _DOT]
        numbers[rest] = numbers[rest] * 10 + byte - _ZERO
    numbers[label] -= first_label
    numbers[entry] -= first_id
    found, kept = numbers[label], numbers[entry]
    if ((found < 0) | (found >= n_labels)).any() or ((kept < 0) | (kept >= n_ids)).any():
        return False
    behind = np.zeros(ends.size, np.int64)
    behind[dotted] = ends[dotted] - points - 1
    mantissa = numbers[value]
    scaled = mantissa.astype(np.float64) * _POWERS[_LARGEST_POWER - behind[value]]
    low = scaled.view(np.int64) & 0x1FFFFFFF  # as _scaled has it
    right = ((low < 0x0FFFFFF0) | (low > 0x10000010)) & (scaled >= 1.2e-38) & (scaled <= 3.4e38) | (mantissa == 0)
    unsure = starts[value][~right]
    row, n_rows = np.cumsum(first) - 1, int((after == _NEWLINE).sum())
    unsorted = np.empty(0, np.int64)
    for kind, into, counts in ((label, labels, label_lens), (entry, ids, lens)):
        rows, here = row[kind], numbers[kind]
        into[: here.size] = here
        counts[:n_rows] = np.bincount(rows, minlength=n_rows)
        unsorted = np.union1d(unsorted, rows[1:][(rows[1:] == rows[:-1]) & (here[1:] <= here[:-1])])
    values[: mantissa.size] = np.where(right, scaled, np.nan)
    odd[: unsure.size] = unsure
    at = starts[label | entry][-1] if (label | entry).any() else 0
    first_unsorted = unsorted.min(initial=n_rows) if unsorted.size else -1
    read = found.size, kept.size, unsure.size
    out[:OUT_SLOTS] = n_rows, n_rows, *read, unsorted.size, first_unsorted, NO_FAULT, at
    return True


@kernel(plain=_parse_block)
def parse_block(
    text, end, labelled, n_labels, first_label, n_ids, first_id, labels, label_lens, ids, values, lens, odd, out
):
    """Parse ``text[:end]`` (uint8, last byte a newline).

    labelled: each line starts with a label list (old format).  n_labels, n_ids: how many ids there are, from
    first_label and first_id (0 or 1; what is stored starts from 0).  labels, ids: int32; values: float32; label_lens,
    lens: int32, one a row.  odd: int64, byte positions of the values that were left NaN because float64 arithmetic
    cannot tell how they round to float32.  out: int64, see the slots above.

    A line is a comment, or a label list (if ``labelled``) and then entries ``id:value`` up to its end. A number is read
    digit by digit into int64, eight at a time where there are as many; a value's digits are one whole number, the
    mantissa, and the place of its point and what follows ``e`` are one power of ten: 12.5e3 is 125 * 10^2.

    It is one function on purpose: what walks over the text cannot be taken out of it, because numba then counts the
    references to ``text`` at each call, which costs more than reading a value.
    """
    p = 0
    row = line = n_label = n_entry = n_odd = 0
    unsorted_rows = 0
    unsorted_row = -1
    fault = NO_FAULT
    at = 0
    while p < end:
        c = _byte(text, p)
        if c == _HASH:
            while _byte(text, p) != _NEWLINE:
                p += 1
            p += 1
            line += 1
            continue
        label_start = n_label
        entry_start = n_entry
        in_order = True
        previous = -1

        if labelled and not _ends_token(c):
            first = True
            while True:
                at = p
                count, number = _digits(text, p)
                p += count
                c = _byte(text, p)
                while _ZERO <= c <= _NINE:
                    number = number * 10 + c - _ZERO
                    p += 1
                    c = _byte(text, p)
                if first and c == _COLON:
                    # The line starts with a feature: a row without labels whose leading blank was lost.
                    p = at
                    break
                first = False
                number -= first_label
                if p == at or p - at > 18 or number < 0 or number >= n_labels:
                    fault = IN_LABEL
                    break
                labels[n_label] = number
                n_label += 1
                in_order &= number > previous
                previous = number
                if c == _COMMA:
                    p += 1
                    while _byte(text, p) in (_SPACE, _TAB):  # LSHTC's files have "545, 32 8:1"
                        p += 1
                    continue
                if not _ends_token(c):
                    fault = IN_LABEL
                break
            if fault != NO_FAULT:
                break

        previous = -1
        while True:
            c = _byte(text, p)
            while c in (_SPACE, _TAB):
                p += 1
                c = _byte(text, p)
            if c == _NEWLINE:
                break
            if c == _RETURN:
                if _byte(text, p + 1) != _NEWLINE:
                    fault = IN_LINE_END
                    at = p
                    break
                p += 1
                break
            if c == _HASH:
                while _byte(text, p) != _NEWLINE:
                    p += 1
                break

            at = p
            count, number = _digits(text, p)
            p += count
            c = _byte(text, p)
            while _ZERO <= c <= _NINE:
                number = number * 10 + c - _ZERO
                p += 1
                c = _byte(text, p)
            number -= first_id
            if p == at or p - at > 18 or number < 0 or number >= n_ids or c != _COLON:
                fault = IN_ID
                break
            p += 1

            value_at = p
            c = _byte(text, p)
            negative = c == _MINUS
            if negative or c == _PLUS:
                p += 1
                c = _byte(text, p)
            # Mantissa: all digits as one whole number, `exponent` says where its point is.
            mantissa = 0
            exponent = 0
            is_odd = False
            start = p
            while _ZERO <= c <= _NINE:
                if mantissa < _ROOM:
                    mantissa = mantissa * 10 + c - _ZERO
                else:
                    is_odd = True
                p += 1
                c = _byte(text, p)
            n_digits = p - start
            if c == _DOT:
                p += 1
                start = p
                if mantissa < _ROOM_FOR_EIGHT:
                    count, number_after = _digits(text, p)
                    mantissa = mantissa * _WHOLE_POWERS[count] + number_after
                    p += count
                c = _byte(text, p)
                while _ZERO <= c <= _NINE:
                    if mantissa < _ROOM:
                        mantissa = mantissa * 10 + c - _ZERO
                    else:
                        is_odd = True
                    p += 1
                    c = _byte(text, p)
                exponent = start - p
                n_digits += p - start
            if n_digits == 0:
                fault = IN_VALUE
                break
            if c in (_LOWER_E, _UPPER_E):
                p += 1
                c = _byte(text, p)
                down = c == _MINUS
                if down or c == _PLUS:
                    p += 1
                    c = _byte(text, p)
                start = p
                power = 0
                while _ZERO <= c <= _NINE:
                    if power < 100000:
                        power = power * 10 + c - _ZERO
                    p += 1
                    c = _byte(text, p)
                if p == start:
                    fault = IN_VALUE
                    break
                exponent += -power if down else power
            if not _ends_token(c):
                fault = IN_VALUE
                break

            value, rounds_right = _scaled(mantissa, exponent)
            if is_odd or not rounds_right:
                odd[n_odd] = value_at
                n_odd += 1
                value = np.nan
            values[n_entry] = np.float32(-value if negative else value)
            ids[n_entry] = number
            n_entry += 1
            in_order &= number > previous
            previous = number

        if fault != NO_FAULT:
            break
        if not in_order:
            if unsorted_row < 0:
                unsorted_row = row
            unsorted_rows += 1
        label_lens[row] = n_label - label_start
        lens[row] = n_entry - entry_start
        row += 1
        line += 1
        p += 1
    if fault != NO_FAULT:
        # What was read of the broken line does not count.
        n_label = label_start
        n_entry = entry_start
    out[ROWS] = row
    out[LINES] = line
    out[LABELS] = n_label
    out[ENTRIES] = n_entry
    out[ODD] = n_odd
    out[UNSORTED_ROWS] = unsorted_rows
    out[UNSORTED_ROW] = unsorted_row
    out[FAULT] = fault
    out[FAULT_AT] = at
