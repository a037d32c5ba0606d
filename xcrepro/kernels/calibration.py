"""Sums over (score, hit) pairs for the calibration metrics, in one pass and without rounding: whole numbers in int64.

A real number is parted into whole multiples of 2^-40, 2^-80, ...: one part is all there is of most float32 scores, two of their
squares. Only +, -, *, / and comparisons are used, the logarithm included (``logs``), so that the bits depend neither on the
order of the pairs nor on a machine's mathematical library.
"""

import numpy as np
from numba import njit

PARTS = 4  # of a sum; what lies below the last is cut off
BITS = 40  # of each part; of the first behind the point:
SCORE_BITS = 40
LOSS_BITS = 32  # a loss may be 745
# Fields of a table, of the misses and of the hits of each bin; a sum takes PARTS fields
COUNT = 0
SCORE = 1  # sum of the scores
SQUARE = SCORE + PARTS  # sum of their squares
FIELDS = SQUARE + PARTS
# Of the totals
LOSS = 0  # sum of -log(probability of what happened), of the pairs that are not capped
CAPPED = PARTS  # how many are
LIFTED = PARTS + 1  # how many probabilities were multiplied by 2^100 before the logarithm: each lacks LIFT
TOTALS = PARTS + 2
LIFT = 100.0 * 0.6931471805599453
MOST = 2**20  # pairs in one table, as often as they count: each part of a number is at most 2^42

# Faults of `marginal`
OUTSIDE = 1  # a probability outside [0, 1], or NaN
DUPLICATE = 2

_LN2 = 0.6931471805599453
_BATCH = 64  # logarithms that are taken together, in vector instructions


@njit(nogil=True, cache=True)
def _add_rest(rest, fields, place, times):
    """Add what two parts left over, in units of the second, to the further ones."""
    for part in range(2, PARTS):
        rest *= 2.0**BITS
        whole = np.int64(rest)
        fields[place + part] += times * whole
        rest -= whole


@njit(nogil=True, cache=True)
def logs(x, n, mantissas, out):
    """``out[:n]``: natural logarithms of normal ``x[:n]`` in (0, 1], each right to 2e-16 of it or of 1, whichever is more.

    With x = 2^e m, m in [sqrt(1/2), sqrt(2)): e log 2 + 2 atanh((m - 1) / (m + 1)). No branch, so that compilers take several
    at once; ``mantissas`` is room for n.
    """
    bits, of_mantissas = x.view(np.int64), mantissas.view(np.int64)
    for i in range(n):
        out[i] = (bits[i] >> 52) - 1022
        of_mantissas[i] = (bits[i] & 0xFFFFFFFFFFFFF) | (1022 << 52)
    for i in range(n):
        small = np.float64(mantissas[i] < 0.7071067811865476)
        m = mantissas[i] * (1.0 + small)
        z = (m - 1.0) / (m + 1.0)
        q = z * z
        series = 1.0 / 21.0 + q * (1.0 / 23.0 + q * (1.0 / 25.0))
        series = 1.0 / 15.0 + q * (1.0 / 17.0 + q * (1.0 / 19.0 + q * series))
        series = 1.0 / 9.0 + q * (1.0 / 11.0 + q * (1.0 / 13.0 + q * series))
        series = 1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * series))
        out[i] = (out[i] - small) * _LN2 + (2.0 * z + 2.0 * z * q * series)


@njit(nogil=True, cache=True)
def _add_losses(happened, often, n, mantissas, losses, total):
    """Add -log of ``happened[:n]``, each as often as it counts, to the totals."""
    logs(happened, n, mantissas, losses)
    for i in range(n):
        rest = -losses[i] * 2.0**LOSS_BITS
        whole = np.int64(rest)
        total[LOSS] += often[i] * whole
        rest = (rest - whole) * 2.0**BITS
        whole = np.int64(rest)
        total[LOSS + 1] += often[i] * whole
        rest -= whole
        if rest != 0.0:
            _add_rest(rest, total, LOSS, often[i])


@njit(nogil=True, cache=True)
def sums(scores, ids, found, times, bucket, edges, with_loss, floor, lo, hi, tables, totals):
    """Add the pairs of rows [lo, hi) to the int64 ``tables`` (buckets, bins, 2, FIELDS) and ``totals`` (buckets, TOTALS).

    A pair is a place with a label; its bucket is ``bucket[place]``. ``ids`` is empty where every place has one. A row counts
    ``times[row]`` times, once where that is empty. Bin b holds ``edges[b] <= score < edges[b + 1]``; edges has two more
    entries than there are equal bins: the bin behind is for the score 1, where that has a bin of its own. A pair that gave
    what happened a probability of at most ``floor`` is capped; without ``with_loss`` there are no logarithms. Returns -1, or
    ``row * k + place`` of a score outside [0, 1].
    """
    width = edges.size - 2
    places = scores.shape[1]
    one = 2.0**BITS
    # Of each bucket, what happened's probabilities that wait for their logarithms
    waits, weights = np.empty((totals.shape[0], _BATCH)), np.empty((totals.shape[0], _BATCH), np.int64)
    waiting = np.zeros(totals.shape[0], np.int64)
    mantissas, losses = np.empty(_BATCH), np.empty(_BATCH)
    for row in range(lo, hi):
        often = times[row] if times.size else 1
        for place in range(places):
            if ids.size and ids[row, place] < 0:
                break
            p = np.float64(scores[row, place])
            if not (p >= 0.0 and p <= 1.0):
                return row * places + place
            # p * width is within one bin of the place, because it is rounded
            b = int(p * width)
            if p < edges[b]:
                b -= 1
            elif p >= edges[b + 1]:
                b += 1
            hit = found[row, place]
            fields = tables[bucket[place], b, np.int64(hit)]
            fields[COUNT] += often

            rest = p * 2.0**SCORE_BITS
            whole = np.int64(rest)
            fields[SCORE] += often * whole
            rest -= whole
            if rest != 0.0:
                rest *= one
                whole = np.int64(rest)
                fields[SCORE + 1] += often * whole
                _add_rest(rest - whole, fields, SCORE, often)

            rest = p * p * 2.0**SCORE_BITS
            whole = np.int64(rest)
            fields[SQUARE] += often * whole
            rest = (rest - whole) * one
            whole = np.int64(rest)
            fields[SQUARE + 1] += often * whole
            rest -= whole
            if rest != 0.0:
                _add_rest(rest, fields, SQUARE, often)

            if not with_loss:
                continue
            happened = abs((1.0 - hit) - p)  # p or 1 - p, without a branch
            t = bucket[place]
            if happened <= floor:
                totals[t, CAPPED] += often
                continue
            if happened < 2.0**-1000:  # a mantissa of its own needs a normal number
                happened *= 2.0**100
                totals[t, LIFTED] += often
            n = waiting[t]
            waits[t, n] = happened
            weights[t, n] = often
            waiting[t] = n + 1
            if n + 1 == _BATCH:
                _add_losses(waits[t], weights[t], _BATCH, mantissas, losses, totals[t])
                waiting[t] = 0
    for t in range(waiting.size):
        _add_losses(waits[t], weights[t], waiting[t], mantissas, losses, totals[t])
    return -1


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
