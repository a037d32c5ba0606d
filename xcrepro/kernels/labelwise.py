"""Per-label counts from the places of a ranking, what is averaged over labels, and what the truth lets a ranking reach.

Counts are whole numbers, so the order of adding cannot matter; averages add the labels in order of their ids, in float64.
"""

import numpy as np
from numba import njit

# The columns of label_sums: sums over labels of ...
PRECISION, RECALL, F_BETA, COVERED = 0, 1, 2, 3
N_COLUMNS = 4


@njit(nogil=True, cache=True)
def add_places(found, ids, weights, bucket, tp, predicted):
    """Count each place under its label: ``predicted[bucket[place], label]``, and ``tp`` where the place is a hit.

    A row counts ``weights[row]`` times. Returns -1, or ``row * k + place`` of a label that does not exist.
    """
    n_labels = tp.shape[1]
    for row in range(ids.shape[0]):
        weight = weights[row]
        if weight == 0:
            continue
        for place in range(ids.shape[1]):
            label = ids[row, place]
            if label < 0:
                break
            if label >= n_labels:
                return row * ids.shape[1] + place
            predicted[bucket[place], label] += weight
            if found[row, place]:
                tp[bucket[place], label] += weight
    return -1


@njit(nogil=True, cache=True)
def add_truth(indptr, indices, weights, true):
    """``true[label]``: rows to which the label is relevant, a row counting ``weights[row]`` times."""
    for row in range(weights.size):
        weight = weights[row]
        if weight != 0:
            for j in range(indptr[row], indptr[row + 1]):
                true[indices[j]] += weight


@njit(nogil=True, cache=True)
def label_sums(tp, predicted, true, bins, beta2, lo, hi, out):
    """``out[bin, column, i]`` for i in lo..hi: sums over the labels of each bin. No ``bins``: every label is in bin 0.

    A label without a hit adds 0 to each column; one with a hit was predicted and is true, so nothing divides by 0.
    """
    for i in range(lo, hi):
        # Added up here: two threads that wrote into neighbouring cells of `out` would wait for each other.
        sums = np.zeros((out.shape[0], N_COLUMNS))
        for label in range(tp.shape[1]):
            hits = tp[i, label]
            if hits > 0:
                b = bins[label] if bins.size else 0
                sums[b, PRECISION] += hits / predicted[i, label]
                sums[b, RECALL] += hits / true[label]
                sums[b, F_BETA] += (1.0 + beta2) * hits / (beta2 * true[label] + predicted[i, label])
                sums[b, COVERED] += 1.0
        for b in range(out.shape[0]):
            for column in range(N_COLUMNS):
                out[b, column, i] = sums[b, column]


@njit(nogil=True, cache=True)
def weighted_sums(values, weights, out):
    """``out[c] = sum of weights[row] * values[row, c]``, row after row."""
    out[:] = 0.0
    for row in range(values.shape[0]):
        if weights[row] != 0:
            for c in range(values.shape[1]):
                out[c] += weights[row] * values[row, c]


@njit(nogil=True, cache=True)
def reachable(indptr, indices, label_indptr, label_rows, ks):
    """How many different labels the rows can show when each has ``k`` places for labels of its own, for each rising k.

    A maximum matching of labels to places (Hopcroft and Karp, rows with k places each): labels without a place look for one
    along shortest chains in which each label takes a place from the next, until no chain ends at an empty place.
    """
    n_rows, n_labels = indptr.size - 1, label_indptr.size - 1
    place_of = np.full(n_labels, -1, np.int64)  # the row that shows the label
    used = np.zeros(n_rows, np.int64)
    label_depth = np.empty(n_labels, np.int64)
    row_depth = np.empty(n_rows, np.int64)
    label_next = np.empty(n_labels, np.int64)  # where the search through a label's rows, a row's labels goes on
    row_next = np.empty(n_rows, np.int64)
    queue = np.empty(n_labels, np.int64)
    chain = np.empty(n_labels, np.int64)
    out = np.zeros(ks.size, np.int64)
    shown = 0
    for i in range(ks.size):
        k = ks[i]
        # A first assignment, labels with few rows first: the least used of the label's rows. It leaves little to do.
        for most in range(1, 5):
            for label in range(n_labels):
                first, stop = label_indptr[label], label_indptr[label + 1]
                if place_of[label] < 0 and first < stop and (stop - first <= most or most == 4):
                    best = label_rows[first]
                    for j in range(first + 1, stop):
                        if used[label_rows[j]] < used[best]:
                            best = label_rows[j]
                    if used[best] < k:
                        place_of[label] = best
                        used[best] += 1
                        shown += 1
        while True:
            # Breadth first from all labels without a place: how many links away is every label and every row?
            head = tail = 0
            for label in range(n_labels):
                label_depth[label] = -1
                label_next[label] = label_indptr[label]
                if place_of[label] < 0 and label_indptr[label] < label_indptr[label + 1]:
                    label_depth[label] = 0
                    queue[tail] = label
                    tail += 1
            for row in range(n_rows):
                row_depth[row] = -1
                row_next[row] = indptr[row]
            nearest = -1  # the depth of the first row with an empty place; chains that end there are the shortest
            while head < tail:
                label = queue[head]
                head += 1
                depth = label_depth[label]
                if nearest >= 0 and depth > nearest:
                    break
                for j in range(label_indptr[label], label_indptr[label + 1]):
                    row = label_rows[j]
                    if row_depth[row] < 0:
                        row_depth[row] = depth
                        if used[row] < k:
                            nearest = depth
                        elif nearest < 0:
                            for m in range(indptr[row], indptr[row + 1]):
                                other = indices[m]
                                if place_of[other] == row and label_depth[other] < 0:
                                    label_depth[other] = depth + 1
                                    queue[tail] = other
                                    tail += 1
            if nearest < 0:
                break
            # Depth first along rising depths; each dead end is met once in a phase.
            for start in range(n_labels):
                if label_depth[start] != 0:
                    continue
                length = 1
                chain[0] = start
                while length > 0:
                    label = chain[length - 1]
                    if label_next[label] == label_indptr[label + 1]:
                        length -= 1  # a dead end: the row before it goes on with its next label
                        continue
                    row = label_rows[label_next[label]]
                    if row_depth[row] != label_depth[label]:
                        label_next[label] += 1
                        continue
                    if used[row] < k:
                        used[row] += 1
                        shown += 1
                        while length > 0:
                            length -= 1
                            label = chain[length]
                            place_of[label] = label_rows[label_next[label]]
                        break
                    following = -1
                    while row_next[row] < indptr[row + 1]:
                        other = indices[row_next[row]]
                        row_next[row] += 1
                        if place_of[other] == row and label_depth[other] == label_depth[label] + 1:
                            following = other
                            break
                    if following < 0:
                        label_next[label] += 1
                    else:
                        chain[length] = following
                        length += 1
        out[i] = shown
    return out
