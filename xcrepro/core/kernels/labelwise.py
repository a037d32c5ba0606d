"""Counts of labels as sorted lists and as tables, what is averaged over labels, and what the truth lets a ranking reach.

Counts are whole numbers, so the order of adding cannot matter; averages add the labels in order of their ids, in float64.

An event is one count of a label: event 0 of a truth is "relevant to a row"; event ``2 * bucket + hit`` of a ranking is "in
the top k of a row, for the ``bucket``-th k and all larger ones, rightly where ``hit`` is 1". A key names both,
``label << shift | event`` with just enough bits for the event, so that sorted keys are sorted by label. A list of keys goes
with as many counts, or with none: each key counts once, then, and may come again. Few labels are quicker in a table of
cells, ``label * n_events + event``.
"""

import numpy as np

from xcrepro.core.kernels import kernel

# The columns of label_sums: sums over labels of ...
PRECISION, RECALL, F_BETA, COVERED = 0, 1, 2, 3
N_COLUMNS = 4


def _place_keys(hits, ids, bucket, shift, keys):
    row, place = np.nonzero(np.logical_and.accumulate(ids[:, : bucket.size] >= 0, axis=1))
    keys[: row.size] = (ids[row, place].astype(np.int64) << shift) | (2 * bucket[place] + hits[row, place])
    return row.size


@kernel(plain=_place_keys)
def place_keys(hits, ids, bucket, shift, keys):
    """The event of each place that ``bucket`` has and that is not empty; returns how many there are."""
    n = 0
    for row in range(ids.shape[0]):
        for place in range(bucket.size):
            label = ids[row, place]
            if label < 0:
                break
            keys[n] = (label << shift) | (2 * bucket[place] + hits[row, place])
            n += 1
    return n


@kernel
def add_up(keys, given, counts):
    """Make sorted keys distinct, in place, and write their counts; returns how many are left. ``given`` may be empty."""
    n = -1
    for i in range(keys.size):
        count = given[i] if given.size else 1
        if n >= 0 and keys[n] == keys[i]:
            counts[n] += count
        else:
            n += 1
            keys[n] = keys[i]
            counts[n] = count
    return n + 1


@kernel
def merge(keys_a, counts_a, keys_b, counts_b, keys, counts):
    """Two lists of rising keys as one; returns how many keys it has."""
    a = b = n = 0
    while a < keys_a.size and b < keys_b.size:
        key_a, key_b = keys_a[a], keys_b[b]
        keys[n] = min(key_a, key_b)
        count = 0
        if key_a <= key_b:
            count += counts_a[a]
            a += 1
        if key_b <= key_a:
            count += counts_b[b]
            b += 1
        counts[n] = count
        n += 1
    while a < keys_a.size:
        keys[n], counts[n] = keys_a[a], counts_a[a]
        a += 1
        n += 1
    while b < keys_b.size:
        keys[n], counts[n] = keys_b[b], counts_b[b]
        b += 1
        n += 1
    return n


def _add_to_cells(keys, counts, shift, n_events, cells):
    cell = (keys >> shift).astype(np.intp) * n_events + (keys & ((1 << shift) - 1))
    np.add.at(cells, cell, counts.astype(cells.dtype) if counts.size else cells.dtype.type(1))


@kernel(plain=_add_to_cells)
def add_to_cells(keys, counts, shift, n_events, cells):
    """Add a list to a table. ``counts`` may be empty."""
    mask = (1 << shift) - 1
    for i in range(keys.size):
        cells[(keys[i] >> shift) * n_events + (keys[i] & mask)] += counts[i] if counts.size else 1


@kernel
def list_cells(cells, shift, n_events, keys, counts):
    """A table as a list of rising keys."""
    n = 0
    for label in range(cells.size // n_events):
        for event in range(n_events):
            count = cells[label * n_events + event]
            if count > 0:
                keys[n] = (label << shift) | event
                counts[n] = count
                n += 1


def _hits_of_list(keys, counts, shift, bits, n_ranges, cells, labels, predicted, tp):
    of, event, n_events = keys >> shift, keys & ((1 << shift) - 1), 2 * tp.shape[1]
    hit = np.unique(of[event & 1 == 1])
    if not hit.size:
        return 0
    at = np.minimum(np.searchsorted(hit, of), hit.size - 1)
    inside = hit[at] == of
    cell = (at[inside] * n_events + event[inside]).astype(np.intp)
    found = np.bincount(cell, counts[inside] if counts.size else None, hit.size * n_events).astype(np.int64)
    table = found.reshape(-1, tp.shape[1], 2)
    labels[: hit.size], predicted[: hit.size] = hit, table.sum(axis=2).cumsum(axis=1)
    tp[: hit.size] = table[:, :, 1].cumsum(axis=1)
    return hit.size


@kernel(plain=_hits_of_list)
def hits_of_list(keys, counts, shift, bits, n_ranges, cells, labels, predicted, tp):
    """The labels with a hit, rising, and their counts at each k; returns how many there are. ``counts`` may be empty.

    The keys are first moved to ``n_ranges`` ranges of ``2**bits`` labels, so that counting them in ``cells``, which has
    ``2**(bits + shift)`` zeros, stays in the processor's cache.
    """
    n_ks = tp.shape[1]
    width = shift + bits
    end = np.zeros(n_ranges + 1, np.int64)
    for i in range(keys.size):
        end[(keys[i] >> width) + 1] += 1
    for r in range(n_ranges):
        end[r + 1] += end[r]
    moved, moved_counts = np.empty_like(keys), np.empty_like(counts)
    for i in range(keys.size):
        r = keys[i] >> width
        moved[end[r]] = keys[i]
        if counts.size:
            moved_counts[end[r]] = counts[i]
        end[r] += 1  # where the next of its range goes; in the end, where the range ends
    hit, which = np.zeros(1 << bits, np.uint8), np.empty((1 << bits) + 1, np.int64)
    mask = (1 << width) - 1
    n = stop = 0
    for r in range(n_ranges):
        start, stop = stop, end[r]
        if start == stop:
            continue
        for i in range(start, stop):
            cell = moved[i] & mask
            cells[cell] += moved_counts[i] if counts.size else 1
            hit[cell >> shift] |= cell & 1
        n_hit = 0
        for label in range(hit.size):  # no branch: which label is hit cannot be foretold
            which[n_hit] = label
            n_hit += hit[label]
        for label in which[:n_hit]:
            labels[n] = (r << bits) + label
            n_predicted = n_hits = 0
            for i in range(n_ks):
                cell = (label << shift) + 2 * i
                n_hits += cells[cell + 1]
                n_predicted += cells[cell] + cells[cell + 1]
                predicted[n, i], tp[n, i] = n_predicted, n_hits
            n += 1
        cells[:] = 0
        hit[:] = 0
    return n


def _hits_of_cells(cells, labels, predicted, tp):
    table = cells.reshape(-1, tp.shape[1], 2)
    hit = np.flatnonzero((table[:, :, 1] > 0).any(axis=1))
    labels[: hit.size] = hit
    predicted[: hit.size] = table[hit].sum(axis=2, dtype=np.int64).cumsum(axis=1)
    tp[: hit.size] = table[hit, :, 1].cumsum(axis=1, dtype=np.int64)
    return hit.size


@kernel(plain=_hits_of_cells)
def hits_of_cells(cells, labels, predicted, tp):
    """:func:`hits_of_list` for a table."""
    n_ks = tp.shape[1]
    n = 0
    for label in range(cells.size // (2 * n_ks)):
        any_hit = False
        for i in range(n_ks):
            any_hit |= cells[2 * (label * n_ks + i) + 1] > 0
        if any_hit:
            labels[n] = label
            n_predicted = n_hits = 0
            for i in range(n_ks):
                cell = 2 * (label * n_ks + i)
                n_hits += cells[cell + 1]
                n_predicted += cells[cell] + cells[cell + 1]
                predicted[n, i], tp[n, i] = n_predicted, n_hits
            n += 1
    return n


@kernel
def spread(keys, counts, shift, predicted, tp):
    """Add a list to (K, L) tables; a place in the rows of its bucket and of all after it."""
    mask = (1 << shift) - 1
    for i in range(keys.size):
        label, event = keys[i] >> shift, keys[i] & mask
        count = counts[i] if counts.size else 1
        for bucket in range(event >> 1, tp.shape[0]):
            predicted[bucket, label] += count
            if event & 1:
                tp[bucket, label] += count


def _first_buckets(keys, counts, shift, first):
    keys = keys[counts != 0] if counts.size else keys
    label, event = keys >> shift, keys & ((1 << shift) - 1)
    for column, some in ((0, slice(None)), (1, event & 1 == 1)):
        np.minimum.at(first[:, column], label[some], (event[some] >> 1).astype(first.dtype))


@kernel(plain=_first_buckets)
def first_buckets(keys, counts, shift, first):
    """Lower ``first[label]``, the first bucket in which it stands and in which it stands rightly, to those of a list."""
    mask = (1 << shift) - 1
    for i in range(keys.size):
        label, event = keys[i] >> shift, keys[i] & mask
        if counts.size and counts[i] == 0:
            continue
        bucket = event >> 1
        if bucket < first[label, 0]:
            first[label, 0] = bucket
        if event & 1 and bucket < first[label, 1]:
            first[label, 1] = bucket


def _label_sums(tp, predicted, true, beta2, out):
    at = tp > 0
    hits, true = tp.astype(np.float64), true[:, None]
    parts = (hits, predicted), (hits, true), ((1.0 + beta2) * hits, beta2 * true + predicted)
    for column, part in zip((PRECISION, RECALL, F_BETA), parts, strict=True):
        each = np.divide(*part, out=np.zeros(tp.shape), where=at)
        out[column] = np.add.accumulate(each)[-1] if len(tp) else 0.0
    out[COVERED] = at.sum(axis=0)


@kernel(plain=_label_sums)
def label_sums(tp, predicted, true, beta2, out):
    """``out[column, i]``: sums over labels, given as (labels, K) tables of those with a hit at the largest k.

    A label without a hit adds 0 to each column; one with a hit was predicted and is true, so nothing divides by 0.
    """
    for i in range(tp.shape[1]):
        precision = recall = f_beta = 0.0
        covered = 0
        for s in range(tp.shape[0]):
            hits = tp[s, i]
            if hits > 0:
                precision += hits / predicted[s, i]
                recall += hits / true[s]
                f_beta += (1.0 + beta2) * hits / (beta2 * true[s] + predicted[s, i])
                covered += 1
        out[PRECISION, i], out[RECALL, i], out[F_BETA, i], out[COVERED, i] = precision, recall, f_beta, covered


@kernel
def binned_f1(tp, predicted, true, labels, label_counts, starts, out):
    """``out[bin, i]``: sums of F1 over the labels of each bin; the bin is how many ``starts`` the label's count reaches."""
    for s in range(tp.shape[0]):
        count = label_counts[labels[s]]
        b = 0
        for start in starts:
            b += count >= start
        for i in range(tp.shape[1]):
            if tp[s, i] > 0:
                out[b, i] += 2.0 * tp[s, i] / (1.0 * true[s] + predicted[s, i])


@kernel
def frequency_bins(counts, starts, bins, sizes):
    """``bins[label]``: how many of the rising ``starts`` its count reaches; ``sizes[bin]``: labels there.

    ``bins`` may be empty: then only sizes are found.
    """
    reach = np.zeros(starts.size + 1, np.int64)
    reach[0] = counts.size
    for first in range(0, counts.size, 1024):  # a stretch that stays in the cache, in loops the compiler can vectorise
        stop = min(first + 1024, counts.size)
        if bins.size:
            bins[first:stop] = 0
        for b in range(starts.size):
            start = starts[b]
            n = 0
            for label in range(first, stop):
                n += counts[label] >= start
            reach[b + 1] += n
            if bins.size:
                for label in range(first, stop):
                    bins[label] += counts[label] >= start
    for b in range(starts.size):
        sizes[b] = reach[b] - reach[b + 1]
    sizes[starts.size] = reach[starts.size]


def _add_rows(cell, row, weights, cells):
    np.add.at(cells, cell, weights[row])


@kernel(plain=_add_rows)
def add_rows(cell, row, weights, cells):
    """``cells[cell[i]] += weights[row[i]]``; quickest where ``cell`` rises."""
    for i in range(cell.size):
        cells[cell[i]] += weights[row[i]]


def _reachable(indptr, indices, label_indptr, label_rows, ks):
    from scipy.sparse import csgraph, csr_array

    # From a source over rows and labels to a sink.
    n_rows, n_labels = indptr.size - 1, label_indptr.size - 1
    ends = np.concatenate([[0], n_rows + indptr, n_rows + indptr[-1] + np.arange(1, n_labels + 1)])
    ends = np.append(ends, ends[-1])
    to = np.concatenate([np.arange(1, n_rows + 1), n_rows + 1 + indices, np.full(n_labels, n_rows + n_labels + 1)])
    room, found = np.ones(to.size, np.int32), []
    for k in ks:
        room[:n_rows] = k
        graph = csr_array((room, to.astype(np.int32), ends.astype(np.int32)), (ends.size - 1, ends.size - 1))
        found.append(csgraph.maximum_flow(graph, 0, ends.size - 2).flow_value)
    return np.array(found, np.int64)


@kernel(plain=_reachable)
def reachable(indptr, indices, label_indptr, label_rows, ks):
    """How many different labels the rows can show when each has ``k`` places for labels of its own, for each rising k.

    A maximum matching of labels to places (Hopcroft and Karp, rows with k places each): labels without a place look for one
    along shortest chains in which each label takes a place from the next, until no chain ends at an empty place. Intervals
    call this for every draw of rows, and there ``scipy.sparse.csgraph.maximum_flow`` takes three to ten times as long.
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
