"""Counts of pairs and hits at each score, or in each cell of a fixed grid, and the sums over them.

A score in [0, 1] is its bits, an unsigned whole number that rises with it; a **key** is twice the bits, plus 1 for a hit. A
**run** is four arrays, one value an entry: the lowest and highest score (bits), pairs, hits; entries rise. Without the grid
an entry is one score; with it, all scores of a cell (float32 only).
"""

import numpy as np

from xcrepro.core.kernels import kernel

SHIFT = 10  # bits that a cell leaves out of the 23 of a float32's mantissa
_FIRST = 0x33800000 >> SHIFT  # the cell of 2^-24
_HALF = (0x3F000000 >> SHIFT) - _FIRST + 1  # that of 1/2
CELLS = 2 * _HALF + 1
# Rows of the table of `equal_mass`
COUNT = 0
HITS = 1
SCORE = 2
MOVE = 3
ROWS = 4


@kernel
def _cell(bits):
    """The cell of a float32: leading bits of min(s, 1 - s), mirrored at 1/2; one cell for all below 2^-24."""
    if bits < np.uint32(0x3F000000):
        return max(np.int64(bits >> np.uint32(SHIFT)) - _FIRST + 1, 0)
    # From 1/2 on, s is a multiple of 2^-24, and so is 1 - s, exactly.
    steps = (np.int64(bits) & 0x7FFFFF) | 0x800000 if bits < np.uint32(0x3F800000) else 2**24
    rest = np.float32((2**24 - steps) * 2.0**-24).view(np.uint32)
    return 2 * _HALF - max(np.int64(rest >> np.uint32(SHIFT)) - _FIRST + 1, 0)


@kernel
def _place(bits, grid):
    """What entries rise by: the cell, or the score itself."""
    return np.uint64(_cell(np.uint32(bits))) if grid else np.uint64(bits)


@kernel
def cells(bits, out):
    """``out[i]``: the cell of each float32."""
    for i in range(bits.size):
        out[i] = _cell(bits[i])


@kernel
def count(keys, weights, grid):
    """The run of rising ``keys``; ``weights`` says how often each counts, 1 or more, or is empty: once. Without a grid its
    lowest scores are its highest, one array. Returns the run with room behind it, and its length."""
    low = np.empty(keys.size, keys.dtype)
    high = np.empty(keys.size, keys.dtype) if grid else low
    n, hits = np.empty(keys.size, np.int64), np.empty(keys.size, np.int64)
    m = -1
    place = np.uint64(0)
    for i in range(keys.size):
        bits = keys[i] >> 1
        if m < 0 or bits != high[m]:
            here = _place(bits, grid)
            if m < 0 or here != place:
                m += 1
                low[m] = bits
                n[m] = 0
                hits[m] = 0
                place = here
            high[m] = bits
        weight = weights[i] if weights.size > 0 else 1
        n[m] += weight
        hits[m] += weight * np.int64(keys[i] & 1)
    return low, high, n, hits, m + 1


@kernel
def merge(low, high, n, hits, other_low, other_high, other_n, other_hits, grid):
    """The run of two runs, as :func:`count` returns it."""
    room = n.size + other_n.size
    out_low = np.empty(room, low.dtype)
    out_high = np.empty(room, low.dtype) if grid else out_low
    out_n, out_hits = np.empty(room, np.int64), np.empty(room, np.int64)
    i, j, m = 0, 0, 0
    end = np.uint64(0xFFFFFFFFFFFFFFFF)
    here = _place(low[0], grid) if n.size > 0 else end
    there = _place(other_low[0], grid) if other_n.size > 0 else end
    while i < n.size or j < other_n.size:
        if here <= there:
            out_low[m], out_high[m], out_n[m], out_hits[m] = low[i], high[i], n[i], hits[i]
            both = here == there
            i += 1
            here = _place(low[i], grid) if i < n.size else end
            if both:
                out_low[m] = min(out_low[m], other_low[j])
                out_high[m] = max(out_high[m], other_high[j])
                out_n[m] += other_n[j]
                out_hits[m] += other_hits[j]
                j += 1
                there = _place(other_low[j], grid) if j < other_n.size else end
        else:
            out_low[m], out_high[m] = other_low[j], other_high[j]
            out_n[m], out_hits[m] = other_n[j], other_hits[j]
            j += 1
            there = _place(other_low[j], grid) if j < other_n.size else end
        m += 1
    return out_low, out_high, out_n, out_hits, m


@kernel
def without(scores, low, n, hits, part_low, part_n, part_hits, places, left, left_n, left_hits):
    """A run less a part of it: fills and returns scores, pairs and hits of the entries where pairs are left. ``scores`` holds
    each entry's own; ``places`` is filled with the entry to which each entry of the part belongs."""
    j, m = 0, 0
    for i in range(n.size):
        left[m], left_n[m], left_hits[m] = scores[i], n[i], hits[i]
        if j < part_n.size and (i + 1 == n.size or part_low[j] < low[i + 1]):
            left_n[m] -= part_n[j]
            left_hits[m] -= part_hits[j]
            places[j] = i
            j += 1
        m += left_n[m] > 0
    return left[:m], left_n[:m], left_hits[:m]


@kernel
def equal_mass(scores, n, hits, spread, cuts, table):
    """Fill ``table`` (ROWS, bins): COUNT, HITS and SCORE of the pairs [cuts[b], cuts[b + 1]) in order of score.

    Where a cut goes through an entry, its hits are shared out evenly. MOVE is how far the sum of score - hit in the bin can
    be from that of the pairs themselves: the scores of an entry lie within ``spread`` of its score, and where they are
    several, those on one side of a cut can hold any number of the hits.
    """
    table[:] = 0.0
    b = 0
    start = 0
    for i in range(n.size):
        stop = start + n[i]
        found = np.float64(hits[i])
        place = start
        while place < stop:
            while cuts[b + 1] <= place:
                b += 1
            here = min(stop, cuts[b + 1])
            share = np.float64(here - place)
            even = share * found / n[i]
            table[COUNT, b] += share
            table[HITS, b] += even
            table[SCORE, b] += share * scores[i]
            table[MOVE, b] += share * spread[i]
            if spread[i] > 0.0 and share < n[i]:
                table[MOVE, b] += max(min(share, found) - even, even - max(0.0, found - (n[i] - share)))
            place = here
        start = stop
