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
    n_labels = sums.shape[1]
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
        own = labels[lo:hi]
        count = _admit(z, own, others[row], held[row])
        if count == 0:
            continue
        # Where the bound on the dual has its optimum if variables were free.
        rest = others[row, :count]
        ups, downs = relevant[lo:hi] + (1.0 - z[own]) / square, held[row, :count] + z[rest] / square
        _balance(ups, downs, C)
        features, values = indices[indptr[row] : indptr[row + 1]], data[indptr[row] : indptr[row + 1]]
        _move(relevant[lo:hi], ups, own, 1.0, features, values, sums)
        _move(held[row, :count], downs, rest, -1.0, features, values, sums)


@kernel
def _move(now, new, labels, sign, features, values, sums):
    """Set the variables of some labels, and add what that changes to the sums of the point's features."""
    for j in range(new.size):
        change = sign * (new[j] - now[j])
        now[j] = new[j]
        if change != 0.0:
            for place in range(features.size):
                sums[features[place], labels[j]] += change * values[place]


@kernel
def _admit(z, own, others, held):
    """Give the best irrelevant label a place among those that have variables, of which it returns the number; one whose
    variable is 0 leaves for it."""
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
    return count


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
        ups[:], downs[:] = np.maximum(ups - high, 0.0), np.maximum(downs + high, 0.0)


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
    values[:] = np.maximum(values - high, 0.0)
