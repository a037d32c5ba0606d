"""The k best labels of each row, from sparse or dense scores. Best first, ties to the lowest label id.

Every kernel returns ``(fault, place)``: ``OK`` and -1, or what is wrong and where (an offset into the stored values
of a sparse matrix, ``row * L + label`` of a dense one). The rows before the fault may already be written.
"""

import numpy as np
from numba import njit

OK, NAN, OUT_OF_RANGE, DUPLICATE = 0, 1, 2, 3


@njit(nogil=True, cache=True)
def check_ids(indptr, indices, n_labels, lo, hi):
    """Are the ids of rows [lo, hi) in range, and none twice in a row?

    Apart from ``csr``: in one loop with the selection the same work takes three times as long.
    """
    # `seen[l] == stamp` says that label l stood in this row already. One byte a label stays in the cache; the stamp
    # goes round, so the array is cleared once in 255 rows. Rows with rising ids never need it.
    seen = np.zeros(n_labels, np.uint8)
    stamp = 0
    for row in range(lo, hi):
        start, stop = indptr[row], indptr[row + 1]
        rising = True
        previous = -1
        for j in range(start, stop):
            if indices[j] <= previous:
                rising = False
                break
            previous = indices[j]
        if rising:
            if previous >= n_labels:
                return OUT_OF_RANGE, stop - 1
            continue
        stamp += 1
        if stamp == 256:
            seen[:] = 0
            stamp = 1
        for j in range(start, stop):
            label = indices[j]
            if label < 0 or label >= n_labels:
                return OUT_OF_RANGE, j
            if seen[label] == stamp:
                return DUPLICATE, j
            seen[label] = stamp
    return OK, -1


@njit(nogil=True, cache=True)
def csr(indptr, indices, data, lo, hi, ids, scores):
    k = ids.shape[1]
    best = np.empty(k, data.dtype)
    labels = np.empty(k, indices.dtype)
    for row in range(lo, hi):
        start, stop = indptr[row], indptr[row + 1]
        # Fill the k places, then let in only what beats the last: most scores fail that one comparison.
        found = 0
        j = start
        while j < stop and found < k:
            score = data[j]
            if score != score:
                return NAN, j
            if score != -np.inf:
                label = indices[j]
                place = found
                found += 1
                while place > 0 and (
                    score > best[place - 1] or (score == best[place - 1] and label < labels[place - 1])
                ):
                    best[place] = best[place - 1]
                    labels[place] = labels[place - 1]
                    place -= 1
                best[place] = score
                labels[place] = label
            j += 1
        while j < stop:
            score = data[j]
            if not score < best[k - 1]:
                if score != score:
                    return NAN, j
                label = indices[j]
                if score > best[k - 1] or label < labels[k - 1]:
                    place = k - 1
                    while place > 0 and (
                        score > best[place - 1] or (score == best[place - 1] and label < labels[place - 1])
                    ):
                        best[place] = best[place - 1]
                        labels[place] = labels[place - 1]
                        place -= 1
                    best[place] = score
                    labels[place] = label
            j += 1
        for place in range(found):
            ids[row, place] = labels[place]
            scores[row, place] = best[place]
    return OK, -1


@njit(nogil=True, cache=True)
def dense(values, lo, hi, ids, scores):
    k = ids.shape[1]
    n_labels = values.shape[1]
    best = np.empty(k, values.dtype)
    for row in range(lo, hi):
        found = 0
        for label in range(n_labels):
            score = values[row, label]
            # Labels come in rising order, so an equal score never displaces one that stands.
            if found == k:
                if not score > best[k - 1]:
                    if score != score:
                        return NAN, row * n_labels + label
                    continue
                place = k - 1
            else:
                if score != score:
                    return NAN, row * n_labels + label
                if score == -np.inf:
                    continue
                place = found
                found += 1
            while place > 0 and score > best[place - 1]:
                best[place] = best[place - 1]
                ids[row, place] = ids[row, place - 1]
                place -= 1
            best[place] = score
            ids[row, place] = label
        for place in range(found):
            scores[row, place] = best[place]
    return OK, -1
