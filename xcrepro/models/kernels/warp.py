"""WARP: one pass of stochastic gradient descent over pairs of a point and one of its labels."""

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.random import key, uniform

_ONE = np.float32(1)
_AT_ONCE = 8
"""Candidates whose scores are summed side by side: each sum has its order, and waits for no other's last addition."""


@kernel
def epoch(
    indptr, indices, data, label_starts, label_ids, rows, positives, seen, points, labels, rate, length, seed, number
):
    """Take the pairs in their order; ``points`` (features) and ``labels`` are changed.

    seen: the labels that negatives are drawn from. A row that has all of them is left out.
    """
    dim = points.shape[1]
    embedded = np.empty(dim, np.float32)
    apart = np.empty(dim, np.float32)
    taken = np.zeros(labels.shape[0], np.bool_)
    candidates, scores = np.empty(_AT_ONCE, np.int64), np.empty(_AT_ONCE, np.float32)
    for at in range(rows.size):
        row, positive = rows[at], positives[at]
        own = label_ids[label_starts[row] : label_starts[row + 1]]
        others = seen.size - own.size
        if others < 1:
            continue
        embedded[:] = np.float32(0)
        for place in range(indptr[row], indptr[row + 1]):
            for d in range(dim):
                embedded[d] += data[place] * points[indices[place], d]
        score = _product(embedded, labels[positive])
        start = key(seed, number + 2, at)
        taken[own] = True
        count, tries, negative = 0, 0, -1
        while negative < 0 and tries < others:
            ready = 0
            while ready < _AT_ONCE and tries + ready < others:
                drawn = seen[int(uniform(start, count) * seen.size)]
                count += 1
                if not taken[drawn]:
                    candidates[ready] = drawn
                    ready += 1
            for place in range(ready, _AT_ONCE):
                candidates[place] = candidates[0]
            _products(embedded, labels, candidates, scores)
            for place in range(ready):
                tries += 1
                if scores[place] > score - _ONE:
                    negative = candidates[place]
                    break
        taken[own] = False
        if negative < 0:
            continue
        weight = 0.0
        for r in range(1, others // tries + 1):
            weight += 1.0 / r
        step = rate * np.float32(weight)
        for d in range(dim):
            apart[d] = labels[positive, d] - labels[negative, d]
        for d in range(dim):
            labels[positive, d] += step * embedded[d]
            labels[negative, d] -= step * embedded[d]
        _cut(labels[positive], length)
        _cut(labels[negative], length)
        for place in range(indptr[row], indptr[row + 1]):
            feature = indices[place]
            for d in range(dim):
                points[feature, d] += step * data[place] * apart[d]
            _cut(points[feature], length)


@kernel
def _products(vector, rows, which, out):
    """The products of a vector with :data:`_AT_ONCE` rows, each added up as by :func:`_product`."""
    a, b, c, d, e, f, g, h = (which[0], which[1], which[2], which[3], which[4], which[5], which[6], which[7])
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = np.float32(0)
    for i in range(vector.size):
        one = vector[i]
        s0 += one * rows[a, i]
        s1 += one * rows[b, i]
        s2 += one * rows[c, i]
        s3 += one * rows[d, i]
        s4 += one * rows[e, i]
        s5 += one * rows[f, i]
        s6 += one * rows[g, i]
        s7 += one * rows[h, i]
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = s0, s1, s2, s3, s4, s5, s6, s7


@kernel
def _product(a, b):
    total = np.float32(0)
    for d in range(a.size):
        total += a[d] * b[d]
    return total


@kernel
def _cut(vector, length):
    square = _product(vector, vector)
    if square > length * length:
        scale = length / np.sqrt(square)
        for d in range(vector.size):
            vector[d] *= scale
