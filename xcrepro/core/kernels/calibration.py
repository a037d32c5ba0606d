"""Sums over (score, hit) pairs for the calibration metrics, in one pass and without rounding: whole numbers in int64.

A real number is parted into whole multiples of 2^-40, 2^-80, ...: one part is all there is of most float32 scores, two of their
squares. So the bits do not depend on the order of the pairs.
"""

import numpy as np

from xcrepro.core.kernels import interpreted, kernel
from xcrepro.core.kernels.elementary import log, logs

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
TOTALS = PARTS + 1
MOST = 2**20  # pairs in one table: each part of a number is at most 2^42

# Faults of `marginal`
OUTSIDE = 1  # a probability outside [0, 1], or NaN
DUPLICATE = 2

_BATCH = 64  # logarithms that are taken together, in vector instructions


@kernel
def _add(number, fields, place):
    """Add a number in units of its first part to a sum, part after part until nothing is left."""
    for part in range(PARTS):
        whole = np.int64(number)
        fields[place + part] += whole
        number = (number - whole) * 2.0**BITS
        if number == 0.0:
            break


# NumPy's rules of division: with a check of every divisor the loop of logarithms could not run several numbers at once.
@kernel(error_model="numpy")
def _add_losses(happened, n, total):
    """Add -log of ``happened[:n]`` to the totals; ``happened`` is filled with the logarithms."""
    for i in range(n):
        happened[i] = log(happened[i])
    for i in range(n):
        _add(-happened[i] * 2.0**LOSS_BITS, total, LOSS)


def _sums(scores, ids, hits, bucket, edges, with_loss, floor, lo, hi, tables, totals):
    p, width = scores[lo:hi].astype(np.float64), edges.size - 2
    there = np.logical_and.accumulate(ids[lo:hi] >= 0, axis=1) if ids.size else np.ones(p.shape, bool)
    if not ((p >= 0.0) & (p <= 1.0))[there].all():
        given = scores, ids, hits, bucket, edges, with_loss, floor, lo, hi, tables, totals
        return interpreted.interpreted(sums.py_func)(*given)
    (_, place), p, hit = np.nonzero(there), p[there], hits[lo:hi][there].astype(np.intp)
    b = (p * width).astype(np.intp)
    b += (p >= edges[b + 1]).astype(np.intp) - (p < edges[b])
    fields, t = tables.reshape(-1, FIELDS), bucket[place].astype(np.intp)
    cell = (t * tables.shape[1] + b) * 2 + hit

    def add(table, at, field, rest):
        for part in range(PARTS):
            whole = rest.astype(np.int64)
            np.add.at(table[:, field + part], at, whole)
            rest = (rest - whole) * 2.0**BITS

    np.add.at(fields[:, COUNT], cell, 1)
    add(fields, cell, SCORE, p * 2.0**SCORE_BITS)
    add(fields, cell, SQUARE, p * p * 2.0**SCORE_BITS)
    if with_loss:
        happened = np.abs((1.0 - hit) - p)
        kept = happened > floor
        np.add.at(totals[:, CAPPED], t[~kept], 1)
        logged = np.empty(int(kept.sum()))
        logs.plain(happened[kept], logged)
        add(totals, t[kept], LOSS, -logged * 2.0**LOSS_BITS)
    return -1


@kernel(plain=_sums)
def sums(scores, ids, hits, bucket, edges, with_loss, floor, lo, hi, tables, totals):
    """Add the pairs of rows [lo, hi) to the int64 ``tables`` (buckets, bins, 2, FIELDS) and ``totals`` (buckets, TOTALS).

    A pair is a place with a label; its bucket is ``bucket[place]``. ``ids`` is empty where every place has one. Bin b holds
    ``edges[b] <= score < edges[b + 1]``; edges has two more entries than there are equal bins: the bin behind is for the score
    1, where that has a bin of its own. A pair that gave what happened a probability of at most ``floor`` is capped; without
    ``with_loss`` there are no logarithms. Returns -1, or ``row * k + place`` of a score outside [0, 1].
    """
    width = edges.size - 2
    places = scores.shape[1]
    # Of each bucket, what happened's probabilities that wait for their logarithms
    waits, waiting = np.empty((totals.shape[0], _BATCH)), np.zeros(totals.shape[0], np.int64)
    for row in range(lo, hi):
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
            hit = hits[row, place]
            fields = tables[bucket[place], b, np.int64(hit)]
            fields[COUNT] += 1
            _add(p * 2.0**SCORE_BITS, fields, SCORE)
            _add(p * p * 2.0**SCORE_BITS, fields, SQUARE)
            if not with_loss:
                continue
            happened = abs((1.0 - hit) - p)  # p or 1 - p, without a branch
            t = bucket[place]
            if happened <= floor:
                totals[t, CAPPED] += 1
                continue
            waits[t, waiting[t]] = happened
            waiting[t] += 1
            if waiting[t] == _BATCH:
                _add_losses(waits[t], _BATCH, totals[t])
                waiting[t] = 0
    for t in range(waiting.size):
        _add_losses(waits[t], waiting[t], totals[t])
    return -1


@kernel
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
