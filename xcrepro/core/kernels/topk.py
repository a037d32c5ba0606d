"""The k best labels of each row, from sparse or dense scores. Best first, ties to the lowest label id.

Every kernel returns ``(fault, place)``: ``OK`` and -1, or what is wrong and where (an offset into the stored values
of a sparse matrix, ``row * L + label`` of a dense one). The rows before the fault may already be written.
"""

import numpy as np

from xcrepro.core.kernels import interpreted, kernel

OK, NAN, DUPLICATE = 0, 1, 2


# Up to so many labels a byte for each is the quickest way to see that one stood in a row already. One id of 2147483647 would
# make that 2 GB: above, the ids of a row are hashed, which also is the quicker there.
_BYTES = 1 << 21


def _rows(indptr, lo, hi):
    return np.repeat(np.arange(lo, hi), np.diff(indptr[lo : hi + 1]).astype(np.intp))


def _check_ids(indptr, indices, n_labels, lo, hi):
    here, rows = indices[indptr[lo] : indptr[hi]].astype(np.int64), _rows(indptr, lo, hi)
    ordered = np.sort(rows * np.int64(n_labels) + here)
    if (ordered[1:] > ordered[:-1]).all():
        return OK, -1
    return interpreted.interpreted(check_ids.py_func)(indptr, indices, n_labels, lo, hi)


@kernel(plain=_check_ids)
def check_ids(indptr, indices, n_labels, lo, hi):
    """Is no id twice in a row, in rows [lo, hi)?

    Apart from ``csr``: in one loop with the selection the same work takes three times as long.
    """
    # `seen[l] == stamp` says that label l stood in this row already. One byte a label stays in the cache; the stamp
    # goes round, so the array is cleared once in 255 rows. Rows with rising ids never need it.
    seen = np.zeros(n_labels if n_labels <= _BYTES else 0, np.uint8)
    hashed = np.zeros(64, np.int64)
    stamp = 0
    for row in range(lo, hi):
        start, stop = indptr[row], indptr[row + 1]
        own, falls = indices[start:stop], False
        for j in range(1, own.size):  # to the end, so that it is done by vector instructions
            falls |= own[j] <= own[j - 1]
        if not falls:
            continue
        if n_labels > _BYTES:
            while hashed.size < 2 * (stop - start):
                hashed = np.zeros(2 * hashed.size, np.int64)
            j = _repeated(indices, start, stop, hashed, np.int64(row) + 1)
            if j >= 0:
                return DUPLICATE, j
            continue
        stamp += 1
        if stamp == 256:
            seen[:] = 0
            stamp = 1
        for j in range(start, stop):
            label = indices[j]
            if seen[label] == stamp:
                return DUPLICATE, j
            seen[label] = stamp
    return OK, -1


@kernel
def _repeated(indices, start, stop, hashed, stamp):
    """The first place whose id stood before it, or -1. An entry is (stamp, id): what another row left counts as empty."""
    for j in range(start, stop):
        label = np.int64(indices[j])
        place = (label * 2654435769 >> 15) & (hashed.size - 1)
        while hashed[place] >> 32 == stamp:
            if hashed[place] & 0xFFFFFFFF == label:
                return j
            place = (place + 1) & (hashed.size - 1)
        hashed[place] = stamp << 32 | label
    return -1


@kernel
def _insert(best, labels, place, score, label):
    """Put an entry in at ``place`` of a row that is ranked before it, and move it up to where it belongs."""
    while place > 0 and (score > best[place - 1] or (score == best[place - 1] and label < labels[place - 1])):
        best[place] = best[place - 1]
        labels[place] = labels[place - 1]
        place -= 1
    best[place] = score
    labels[place] = label


def _csr(indptr, indices, data, lo, hi, ids, scores):
    here, values, k = indices[indptr[lo] : indptr[hi]], data[indptr[lo] : indptr[hi]], ids.shape[1]
    if np.isnan(values).any():
        return interpreted.interpreted(csr.py_func)(indptr, indices, data, lo, hi, ids, scores)
    rows, first = _rows(indptr, lo, hi), indptr[lo : hi + 1] - indptr[lo]
    places, most = np.arange(rows.size) - first[rows - lo], int(np.diff(first).max(initial=0))
    if most * (hi - lo) > 4 * rows.size or (np.diff(here)[places[1:] > 0] < 0).any():
        order = np.lexsort((here, -values, rows))  # rows stay where they are
    else:  # labels rise, and rows are about as long: a table
        table = np.full((hi - lo, most), np.inf, values.dtype)
        table[rows - lo, places] = -values
        order = (np.argsort(table, axis=1, kind="stable")[rows - lo, places] + first[rows - lo]).astype(np.intp)
    kept = (places < k) & (values[order] > -np.inf)
    ids[rows[kept], places[kept]] = here[order[kept]]
    scores[rows[kept], places[kept]] = values[order[kept]]
    return OK, -1


@kernel(plain=_csr)
def csr(indptr, indices, data, lo, hi, ids, scores):
    k = ids.shape[1]
    best = np.empty(k, data.dtype)
    labels = np.empty(k, indices.dtype)
    for row in range(lo, hi):
        # Fill the k places, then let in only what beats the last: most scores fail that one comparison.
        found = 0
        stop = indptr[row + 1]
        j = indptr[row]
        while j < stop and found < k:
            if data[j] != data[j]:
                return NAN, j
            if data[j] != -np.inf:
                _insert(best, labels, found, data[j], indices[j])
                found += 1
            j += 1
        while j < stop:
            if not data[j] < best[k - 1]:
                if data[j] != data[j]:
                    return NAN, j
                if data[j] > best[k - 1] or indices[j] < labels[k - 1]:
                    _insert(best, labels, k - 1, data[j], indices[j])
            j += 1
        for place in range(found):
            ids[row, place] = labels[place]
            scores[row, place] = best[place]
    return OK, -1


def _dense(values, lo, hi, ids, scores):
    if np.isnan(values[lo:hi]).any():
        return interpreted.interpreted(dense.py_func)(values, lo, hi, ids, scores)
    for row in range(lo, hi):
        falling = -values[row]
        last = np.partition(falling, ids.shape[1] - 1)[ids.shape[1] - 1] if ids.shape[1] < falling.size else np.inf
        labels = np.flatnonzero((falling <= last) & (falling < np.inf))
        labels = labels[np.argsort(falling[labels], kind="stable")][: ids.shape[1]]
        ids[row, : labels.size], scores[row, : labels.size] = labels, values[row, labels]
    return OK, -1


@kernel(plain=_dense)
def dense(values, lo, hi, ids, scores):
    k = ids.shape[1]
    n_labels = values.shape[1]
    best = np.empty(k, values.dtype)
    labels = np.empty(k, np.int64)
    for row in range(lo, hi):
        found = 0
        for label in range(n_labels):
            score = values[row, label]
            if score != score:
                return NAN, row * n_labels + label
            # Labels come in rising order, so an equal score never displaces one that stands.
            if found < k:
                if score != -np.inf:
                    _insert(best, labels, found, score, label)
                    found += 1
            elif score > best[k - 1]:
                _insert(best, labels, k - 1, score, label)
        for place in range(found):
            ids[row, place] = labels[place]
            scores[row, place] = best[place]
    return OK, -1
