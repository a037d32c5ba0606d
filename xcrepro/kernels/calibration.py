"""Sums over (score, hit) pairs for the calibration metrics, in one pass.

The pairs are cut into blocks of a fixed size that nobody's number of threads moves; each block writes its own slot, and
the caller adds the slots in block order. Only +, -, *, / and comparisons are used, the logarithm included (``_log``), so
that the bits do not depend on a machine's mathematical library either.
"""

import math

import numpy as np
from numba import njit

# Rows of a block's table, one value a bin
COUNT = 0
HITS = 1
SCORE = 2  # sum of the scores
SQUARE = 3  # sum of their squares
SCORE_OF_HITS = 4
ROWS = 5
# A block's totals
SQUARED_ERROR = 0
LOG_LOSS = 1  # of the pairs that are not capped
CAPPED = 2  # how many are
TOTALS = 3

# Faults of `marginal`
OUTSIDE = 1  # a probability outside [0, 1], or NaN
DUPLICATE = 2

_SMALL, _LIFT, _LIFT_BITS = 2.0**-400, 2.0**600, 600
_LN2 = 0.6931471805599453


@njit(nogil=True, cache=True)
def _log(x):
    """Natural logarithm of a positive x: the series of atanh on a mantissa in [sqrt(1/2), sqrt(2))."""
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa *= 2.0
        exponent -= 1
    z = (mantissa - 1.0) / (mantissa + 1.0)
    square = z * z
    series = 0.0
    for j in range(12, -1, -1):
        series = series * square + 1.0 / (2 * j + 1)
    return exponent * _LN2 + 2.0 * z * series


@njit(nogil=True, cache=True)
def sums(scores, found, edges, floor, size, first, last, tables, totals):
    """Fill ``tables[b]`` (ROWS, bins) and ``totals[b]`` for blocks [first, last) of ``size`` pairs; the last may be short.

    Bin b holds ``edges[b] <= score < edges[b + 1]``. edges has two more entries than there are equal bins: the bin
    behind is for the score 1, where that has a bin of its own. Scores lie in [0, 1]. A pair that gave what happened a
    probability of at most ``floor`` is capped.
    """
    width = edges.size - 2
    for block in range(first, last):
        table = tables[block]
        table[:] = 0.0
        squared = 0.0
        capped = 0.0
        # The product of what happened's probabilities; now and then lifted by a power of 2, which is exact. One logarithm
        # of it at the end stands for one a pair.
        product = 1.0
        lifted = 0
        for i in range(block * size, min((block + 1) * size, scores.size)):
            p = np.float64(scores[i])
            # p * width is within one bin of the place, because it is rounded
            b = int(p * width)
            if p < edges[b]:
                b -= 1
            elif p >= edges[b + 1]:
                b += 1
            table[COUNT, b] += 1.0
            table[SCORE, b] += p
            table[SQUARE, b] += p * p
            happened = 1.0 - p
            if found[i]:
                table[HITS, b] += 1.0
                table[SCORE_OF_HITS, b] += p
                squared += happened * happened
                happened = p
            else:
                squared += p * p
            if happened <= floor:
                capped += 1.0
                continue
            if happened < _SMALL:
                happened *= _LIFT
                lifted += 1
            product *= happened
            if product < _SMALL:
                product *= _LIFT
                lifted += 1
        totals[block, SQUARED_ERROR] = squared
        totals[block, LOG_LOSS] = lifted * _LIFT_BITS * _LN2 - _log(product)
        totals[block, CAPPED] = capped


@njit(nogil=True, cache=True)
def equal_mass(scores, found, cuts, table):
    """Fill ``table`` (ROWS, bins): COUNT, HITS and SCORE of the pairs [cuts[b], cuts[b + 1]) of rising scores.

    Where a cut goes through a run of equal scores, each pair of the run counts the run's mean hit, so that the order in
    which equal scores came does not matter.
    """
    table[:] = 0.0
    b = 0
    start = 0
    while start < scores.size:
        stop = start
        hits = 0.0
        while stop < scores.size and scores[stop] == scores[start]:
            if found[stop]:
                hits += 1.0
            stop += 1
        p = np.float64(scores[start])
        place = start
        while place < stop:
            while cuts[b + 1] <= place:
                b += 1
            here = min(stop, cuts[b + 1])
            share = np.float64(here - place)
            table[COUNT, b] += share
            table[HITS, b] += share * hits / (stop - start)
            table[SCORE, b] += share * p
            place = here
        start = stop


@njit(nogil=True, cache=True)
def marginal(indptr, rows, data, true_indptr, true_rows, n_rows, edges, bins, lo, hi, out):
    """``out[label]``: the binned calibration error of each label in [lo, hi), columns of two CSC matrices with rising rows.

    What is not stored has probability 0. Returns (fault, place in ``data``).
    """
    width = edges.size - 2
    gap = np.empty(bins)
    for label in range(lo, hi):
        gap[:] = 0.0
        t, t_end = true_indptr[label], true_indptr[label + 1]
        last_row = -1
        for j in range(indptr[label], indptr[label + 1]):
            p = np.float64(data[j])
            if not (p >= 0.0 and p <= 1.0):
                return OUTSIDE, j
            if rows[j] == last_row:
                return DUPLICATE, j
            last_row = rows[j]
            b = int(p * width)
            if p < edges[b]:
                b -= 1
            elif p >= edges[b + 1]:
                b += 1
            gap[b] -= p
            while t < t_end and true_rows[t] < rows[j]:
                gap[0] += 1.0
                t += 1
            if t < t_end and true_rows[t] == rows[j]:
                gap[b] += 1.0
                t += 1
        gap[0] += t_end - t
        total = 0.0
        for b in range(bins):
            total += abs(gap[b])
        out[label] = total / n_rows
    return 0, -1
