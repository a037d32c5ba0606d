"""Counts of pairs and hits at each score, and the sums over them.

A score in [0, 1] is its bits, an unsigned whole number that rises with it; a **key** is twice the bits, plus 1 for a hit. A
**run** is three arrays, one value for each distinct score, rising: the score (bits), pairs, hits.
"""

import numpy as np

from xcrepro.core.kernels import kernel

# Rows of the table of `equal_mass`
COUNT = 0
HITS = 1
SCORE = 2
ROWS = 3


def _count(keys, weights):
    bits = keys >> 1
    starts = np.flatnonzero(np.append(bits.size > 0, bits[1:] != bits[:-1])[: bits.size])
    n = weights.astype(np.int64) if weights.size else np.ones(keys.size, np.int64)
    hits = n * (keys & 1).astype(np.int64)
    if not starts.size:
        return bits, n, hits, 0
    return bits[starts], np.add.reduceat(n, starts), np.add.reduceat(hits, starts), starts.size


@kernel(plain=_count)
def count(keys, weights):
    """The run of rising ``keys``; ``weights`` says how often each counts, 1 or more, or is empty: once. Returns the run with
    room behind it, and its length."""
    scores = np.empty(keys.size, keys.dtype)
    n, hits = np.empty(keys.size, np.int64), np.empty(keys.size, np.int64)
    m = -1
    for i in range(keys.size):
        bits = keys[i] >> 1
        if m < 0 or bits != scores[m]:
            m += 1
            scores[m] = bits
            n[m] = 0
            hits[m] = 0
        weight = weights[i] if weights.size > 0 else 1
        n[m] += weight
        hits[m] += weight * np.int64(keys[i] & 1)
    return scores, n, hits, m + 1


@kernel
def merge(scores, n, hits, other_scores, other_n, other_hits):
    """The run of two runs, as :func:`count` returns it."""
    room = n.size + other_n.size
    out = np.empty(room, scores.dtype)
    out_n, out_hits = np.empty(room, np.int64), np.empty(room, np.int64)
    i, j, m = 0, 0, 0
    while i < n.size or j < other_n.size:
        if j == other_n.size or (i < n.size and scores[i] <= other_scores[j]):
            out[m], out_n[m], out_hits[m] = scores[i], n[i], hits[i]
            if j < other_n.size and scores[i] == other_scores[j]:
                out_n[m] += other_n[j]
                out_hits[m] += other_hits[j]
                j += 1
            i += 1
        else:
            out[m], out_n[m], out_hits[m] = other_scores[j], other_n[j], other_hits[j]
            j += 1
        m += 1
    return out, out_n, out_hits, m


@kernel
def equal_mass(scores, n, hits, cuts, table):
    """Fill ``table`` (ROWS, bins): COUNT, HITS and SCORE of the pairs [cuts[b], cuts[b + 1]) in order of score.

    Where a cut goes through an entry, its hits are shared out evenly.
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
            table[COUNT, b] += share
            table[HITS, b] += share * found / n[i]
            table[SCORE, b] += share * scores[i]
            place = here
        start = stop
