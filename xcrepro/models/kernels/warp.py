"""WARP: one pass of stochastic gradient descent over pairs of a point and one of its labels."""

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.random import key, uniform

_ONE = np.float32(1)


@kernel
def epoch(
    indptr, indices, data, label_starts, label_ids, rows, positives, seen, points, labels, rate, length, seed, number
):
    """Take the pairs in their order; ``points`` (features) and ``labels`` are changed.

    label_ids are sorted in each row. seen: the labels that negatives are drawn from. A row that has all of them is left out.
    """
    dim = points.shape[1]
    embedded = np.empty(dim, np.float32)
    apart = np.empty(dim, np.float32)
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
        count, tries, negative = 0, 0, -1
        while tries < others:
            drawn = seen[int(uniform(start, count) * seen.size)]
            count += 1
            place = np.searchsorted(own, drawn)
            if place < own.size and own[place] == drawn:
                continue
            tries += 1
            if _product(embedded, labels[drawn]) > score - _ONE:
                negative = drawn
                break
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
