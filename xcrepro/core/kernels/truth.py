"""What every metric asks of a ground-truth CSR: is it canonical, what hits, what could have been hit."""

import numpy as np

from xcrepro.core.kernels import interpreted, kernel

CLEAN, UNTIDY, NEGATIVE, NAN = 0, 1, 2, 3


def _inspect(indptr, indices, data, lo, hi):
    here, starts = indices[indptr[lo] : indptr[hi]], indptr[lo + 1 : hi] - indptr[lo]
    rising = np.append(here[1:] > here[:-1], True)
    rising[starts[starts > 0] - 1] = True  # the first of a row need not be above the last of another
    if (here >= 0).all() and rising.all() and (data[indptr[lo] : indptr[hi]] > 0).all():
        return CLEAN, -1
    return interpreted.interpreted(inspect.py_func)(indptr, indices, data, lo, hi)


@kernel(plain=_inspect)
def inspect(indptr, indices, data, lo, hi):
    """``(state, place)`` of rows [lo, hi): CLEAN when labels rise strictly and every value is positive; UNTIDY when
    they need sorting, deduplicating or dropping of zeros; else the first fault and its offset."""
    state = CLEAN
    for row in range(lo, hi):
        previous = -1
        for j in range(indptr[row], indptr[row + 1]):
            label, value = indices[j], data[j]
            if not value > 0:
                if value < 0:
                    return NEGATIVE, j
                if value != value:
                    return NAN, j
                state = UNTIDY
            if label <= previous:
                state = UNTIDY
            previous = label
    return state, -1


def _best_weights(indptr, indices, weights, lo, hi, best):
    best[: hi - lo] = 0.0
    ends = indptr[lo : hi + 1] - indptr[lo]
    found = weights[indices[indptr[lo] : indptr[hi]]]
    rows = np.repeat(np.arange(hi - lo), np.diff(ends).astype(np.intp))
    order = np.lexsort((-found, rows))  # rows stay where they are
    places = np.arange(order.size) - ends[rows]
    kept = places < best.shape[1]
    best[rows[kept], places[kept]] = found[order[kept]]


@kernel(plain=_best_weights)
def best_weights(indptr, indices, weights, lo, hi, best):
    """``best[row - lo]``: the largest weights among the row's labels, falling, padded with 0: what a perfect ranking takes."""
    k = best.shape[1]
    for row in range(lo, hi):
        best[row - lo] = 0.0
        found = 0
        for j in range(indptr[row], indptr[row + 1]):
            weight = weights[indices[j]]
            if found < k:
                place = found
                found += 1
            elif weight > best[row - lo, k - 1]:
                place = k - 1
            else:
                continue
            while place > 0 and weight > best[row - lo, place - 1]:
                best[row - lo, place] = best[row - lo, place - 1]
                place -= 1
            best[row - lo, place] = weight


@kernel
def weight_sums(indptr, indices, weights, lo, hi, sums):
    """``sums[row]``: the weights of all the row's labels, added in label order."""
    for row in range(lo, hi):
        total = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            total += weights[indices[j]]
        sums[row] = total


def _hits(indptr, indices, ids, lo, hi, out):
    here, asked = indices[indptr[lo] : indptr[hi]], ids[lo:hi].astype(np.int64)
    rows = np.arange(hi - lo, dtype=np.int64)
    n_labels = 1 + max(int(here.max(initial=0)), int(asked.max(initial=0)))
    known = np.append(np.repeat(rows, np.diff(indptr[lo : hi + 1]).astype(np.intp)) * n_labels + here, -1)
    wanted = rows[:, None] * n_labels + asked
    found = known[np.searchsorted(known[:-1], wanted)] == wanted
    present = np.logical_and.accumulate(asked >= 0, axis=1)
    out[lo:hi][present] = found[present]


@kernel(plain=_hits)
def hits(indptr, indices, ids, lo, hi, out):
    """``out[row, place]``: 1 where the label at that place is relevant. Absent places (-1) miss."""
    k = ids.shape[1]
    for row in range(lo, hi):
        start, stop = indptr[row], indptr[row + 1]
        for place in range(k):
            label = ids[row, place]
            if label < 0:
                break
            if stop - start <= 16:
                # Few labels are compared faster than they are bisected: no branch to mispredict.
                hit = False
                for j in range(start, stop):
                    hit |= indices[j] == label
                out[row, place] = hit
                continue
            left, right = start, stop
            while left < right:
                middle = (left + right) // 2
                if indices[middle] < label:
                    left = middle + 1
                else:
                    right = middle
            out[row, place] = left < stop and indices[left] == label


def _duplicate_place(ids, lo, hi):
    ordered = np.sort(ids[lo:hi], axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if not twice.any():
        return -1
    row = lo + int(twice.argmax())
    labels = ids[row].tolist()
    places = (place for place, label in enumerate(labels) if label >= 0 and label in labels[:place])
    return row * ids.shape[1] + next(places)


@kernel(plain=_duplicate_place)
def duplicate_place(ids, lo, hi):
    """The first ``row * k + place`` whose label stands earlier in its row, or -1."""
    k = ids.shape[1]
    for row in range(lo, hi):
        for place in range(1, k):
            if ids[row, place] >= 0:
                for earlier in range(place):
                    if ids[row, earlier] == ids[row, place]:
                        return row * k + place
    return -1
