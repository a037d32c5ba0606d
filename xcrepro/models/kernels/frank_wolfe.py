"""PD-Sparse: one pass of fully corrective block-coordinate Frank-Wolfe over the points."""

import numpy as np

from xcrepro.core.kernels import kernel

_HALVINGS = 60  # of an interval: to the last bits of a float64


@kernel
def epoch(indptr, indices, data, squares, starts, labels, order, sparsity, C, sums, relevant, others, held):
    """Let each point of ``order`` find its dual variables; changes ``sums``, ``relevant``, ``others`` and ``held``.

    sums: (D, L), Σ α x. relevant: a variable, 0 or more, for each pair of a point and its label. others, held: (n, room), the
    irrelevant labels that a point has variables for, -1 where there is none, and the variables' sizes.
    """
    n_labels, room = sums.shape[1], others.shape[1]
    z = np.empty(n_labels)
    for row in order:
        lo, hi = starts[row], starts[row + 1]
        n_own, square = hi - lo, squares[row]
        if n_own == 0 or n_own == n_labels or square == 0:
            continue
        z[:] = 0.0
        for place in range(indptr[row], indptr[row + 1]):
            x, of_feature = data[place], sums[indices[place]]
            for label in range(n_labels):
                v = of_feature[label]
                if v > sparsity:
                    z[label] += x * (v - sparsity)
                elif v < -sparsity:
                    z[label] += x * (v + sparsity)
        _admit(z, labels[lo:hi], others[row], held[row])
        count = 0
        while count < room and others[row, count] >= 0:
            count += 1
        if count == 0:
            continue
        # Where the bound on the dual has its optimum if variables were free.
        ups, downs = np.empty(n_own), np.empty(count)
        for j in range(n_own):
            ups[j] = relevant[lo + j] + (1.0 - z[labels[lo + j]]) / square
        for j in range(count):
            downs[j] = held[row, j] + z[others[row, j]] / square
        _balance(ups, downs, C)
        for j in range(n_own):
            change = ups[j] - relevant[lo + j]
            relevant[lo + j] = ups[j]
            if change != 0.0:
                for place in range(indptr[row], indptr[row + 1]):
                    sums[indices[place], labels[lo + j]] += change * data[place]
        for j in range(count):
            change = downs[j] - held[row, j]
            held[row, j] = downs[j]
            if change != 0.0:
                for place in range(indptr[row], indptr[row + 1]):
                    sums[indices[place], others[row, j]] -= change * data[place]


@kernel
def _admit(z, own, others, held):
    """Give the best irrelevant label a place among those that have variables; one whose variable is 0 leaves for it."""
    best, at = -1, 0
    for label in range(z.size):
        if at < own.size and own[at] == label:
            at += 1
        elif best < 0 or z[label] > z[best]:
            best = label
    # Those of 0 go, the others move up.
    count = 0
    for j in range(others.size):
        if others[j] < 0:
            break
        if held[j] > 0.0 or others[j] == best:
            others[count], held[count] = others[j], held[j]
            count += 1
    known = False
    for j in range(count):
        known = known or others[j] == best
    if not known and count < others.size:
        others[count], held[count] = best, 0.0
        count += 1
    others[count:], held[count:] = -1, 0.0


@kernel
def _balance(ups, downs, C):
    """The nearest point to (ups, downs) with no negative value and two equal sums of at most C, in place."""
    # ups move down and downs up by the same amount, until their sums are equal.
    low, high = -downs.max(), ups.max()
    if low >= high:
        ups[:], downs[:] = 0.0, 0.0
        return
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if _above(ups, middle) > _above(downs, -middle):
            low = middle
        else:
            high = middle
    total = min(_above(ups, high), _above(downs, -high))
    if total > C:
        total = C
        _shrink(ups, total)
        _shrink(downs, total)
    else:
        for j in range(ups.size):
            ups[j] = max(ups[j] - high, 0.0)
        for j in range(downs.size):
            downs[j] = max(downs[j] + high, 0.0)


@kernel
def _above(values, threshold):
    total = 0.0
    for value in values:
        if value > threshold:
            total += value - threshold
    return total


@kernel
def _shrink(values, total):
    """Move all by one amount and cut at 0, so that the sum is ``total``."""
    low, high = values.min() - total, values.max()
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if _above(values, middle) > total:
            low = middle
        else:
            high = middle
    for j in range(values.size):
        values[j] = max(values[j] - high, 0.0)
