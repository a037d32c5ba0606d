"""Rows drawn anew: the weights of a Poisson bootstrap, and sums of rows that are weighed many times over.

A weight depends on nothing but the seed, the row's number among all rows and the sample's number, so that blocks of rows can
be weighed apart, on different machines, in any order. Sums are taken row after row for each sample by itself.
"""

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.random import STEP, mix

# Rows of the table of a bin, and the totals of a sample: as in the calibration kernel.
COUNT, HITS, SCORE, SQUARE, SCORE_OF_HITS = 0, 1, 2, 3, 4
ROWS = 5
SQUARED_ERROR, LOG_LOSS, CAPPED = 0, 1, 2
TOTALS = 3


@kernel
def poisson(seed, rows, bounds, lo, hi, out):
    """``out[i, s]`` for i in [lo, hi): the weight of row number ``rows[i]`` in sample s.

    ``bounds[j]`` is 2^64 times the chance of at most j: the weight is above j where the hash is at or above it.
    """
    key = mix(np.uint64(seed) + STEP)
    for i in range(lo, hi):
        of_row = mix(key ^ mix(np.uint64(rows[i]) + STEP))
        for s in range(out.shape[1]):
            bits = mix(of_row + STEP * np.uint64(s + 1))
            weight = 0
            while weight < bounds.size and bits >= bounds[weight]:
                weight += 1
            out[i, s] = weight


def _weighted_sums(values, weights, out):
    out[:] = 0.0
    for lo in range(0, len(values), 512):
        weight, part = weights.T[lo : lo + 512, :, None], values[lo : lo + 512, None, :]
        parts = np.zeros((len(part) + 1, *out.shape))
        parts[0] = out
        np.multiply(weight, part, out=parts[1:], where=weight != 0)
        out[:] = np.add.accumulate(parts)[-1]


@kernel(plain=_weighted_sums)
def weighted_sums(values, weights, out):
    """``out[s, c] = sum over rows of weights[s, row] * values[row, c]``, row after row."""
    out[:] = 0.0
    for s in range(weights.shape[0]):
        for row in range(values.shape[0]):
            weight = weights[s, row]
            if weight != 0:
                for c in range(values.shape[1]):
                    out[s, c] += weight * values[row, c]


@kernel
def _add(sums, weights, value, times):
    """A pair's part in the sums of all samples, one after the other, so that the processor can take several at once."""
    for s in range(weights.size):
        sums[s] += weights[s] * value * times


def _in_order(weights, rows, *factors):
    """The sums over rows, one after the other, of their weights times the factors."""
    total = np.zeros(weights.shape[1])
    for lo in range(0, rows.size, 256):
        part = weights[rows[lo : lo + 256]]
        for factor in factors:
            part = part * factor[lo : lo + 256, None]
        total = np.add.accumulate(np.vstack([total, part]))[-1]
    return total


def _pair_sums(bins, scores, hits, losses, capped, bucket, weights, tables, totals):
    tables[:] = 0.0
    totals[:] = 0.0
    row, place = np.nonzero(bins >= 0)
    b, p, hit, loss, cap = (each[row, place] for each in (bins, scores, hits.astype(np.bool_), losses, capped))
    gap = np.where(hit, 1.0 - p, p)
    for at in np.unique(bucket):
        mine = bucket[place] == at
        for one in np.unique(b[mine]):
            these, table = np.flatnonzero(mine & (b == one)), tables[at, :, one]
            found = these[hit[these]]
            for column, pairs, power in (
                (COUNT, these, 0), (SCORE, these, 1), (SQUARE, these, 2), (HITS, found, 0), (SCORE_OF_HITS, found, 1),
            ):  # fmt: skip
                table[column] = _in_order(weights, row[pairs], *[p[pairs]] * power)
        total, whole = totals[at], np.flatnonzero(mine & ~cap)
        total[SQUARED_ERROR] = _in_order(weights, row[mine], gap[mine], gap[mine])
        total[CAPPED] = _in_order(weights, row[mine & cap])
        total[LOG_LOSS] = _in_order(weights, row[whole], loss[whole])


@kernel(plain=_pair_sums)
def pair_sums(bins, scores, hits, losses, capped, bucket, weights, tables, totals):
    """Fill ``tables[bucket, ROWS, bin, s]`` and ``totals[bucket, TOTALS, s]``: each place's pair, its row weighed.

    ``bins`` (n, k) is -1 where there is no prediction; ``bucket[place]`` says which of the ks is the first to hold it.
    ``weights`` (n, samples) are float64.
    """
    tables[:] = 0.0
    totals[:] = 0.0
    for row in range(bins.shape[0]):
        weight = weights[row]
        for place in range(bins.shape[1]):
            b = bins[row, place]
            if b < 0:
                continue
            table = tables[bucket[place]]
            total = totals[bucket[place]]
            p = scores[row, place]
            gap = p
            _add(table[COUNT, b], weight, 1.0, 1.0)
            _add(table[SCORE, b], weight, p, 1.0)
            _add(table[SQUARE, b], weight, p, p)
            if hits[row, place]:
                _add(table[HITS, b], weight, 1.0, 1.0)
                _add(table[SCORE_OF_HITS, b], weight, p, 1.0)
                gap = 1.0 - p
            _add(total[SQUARED_ERROR], weight, gap, gap)
            if capped[row, place]:
                _add(total[CAPPED], weight, 1.0, 1.0)
            else:
                _add(total[LOG_LOSS], weight, losses[row, place], 1.0)
