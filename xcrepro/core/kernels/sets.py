"""Sets cut at a threshold, orders of tied scores, graded gains, and pairs of labels that are confused."""

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import log2


@kernel
def above(ids, scores, thresholds, lo, hi, out_ids, out_scores):
    """The predictions of rows [lo, hi) at or above ``thresholds``, one for each label or a single one, into empty outputs."""
    each = thresholds.size > 1
    for row in range(lo, hi):
        m = 0
        for place in range(ids.shape[1]):
            label = ids[row, place]
            if label < 0:
                break
            if scores[row, place] >= thresholds[label if each else 0]:
                out_ids[row, m] = label
                out_scores[row, m] = scores[row, place]
                m += 1
            elif not each:
                break


@kernel
def _falling(bits):
    """The bits of a float32 as a whole number that falls as the score rises; of 0 and -0 it is one."""
    if bits == np.uint32(0x80000000):
        bits = np.uint32(0)
    return bits if bits >> np.uint32(31) else bits ^ np.uint32(0x7FFFFFFF)


BIN_BITS = 14
"""Low bits of a score that its bin leaves out: of two numbers and the next power of 2 between them, 512 bins."""


@kernel
def bins(scores):
    """The bin of each score: a range of float32 numbers, the highest first."""
    found = np.empty(scores.size, np.int64)
    bits = scores.view(np.uint32)
    for i in range(bits.size):
        found[i] = _falling(bits[i]) >> np.uint32(BIN_BITS)
    return found


@kernel
def _bin(bits, first, size):
    """Which of the bins of :func:`count_bins` a score is in."""
    return min(max(np.int64(_falling(bits) >> np.uint32(BIN_BITS)) - first + 1, 0), size - 1)


@kernel
def count_bins(scores, first, size):
    """How many scores each of ``size`` bins has: the bins from ``first`` on, before them one for all that is above, behind them
    one for all that is below."""
    found = np.zeros(size, np.int64)
    bits = scores.view(np.uint32)
    for i in range(bits.size):
        found[_bin(bits[i], first, size)] += 1
    return found


@kernel
def take_bins(scores, first, wanted):
    """The scores in bins of :func:`count_bins` that are wanted, rising."""
    bits = scores.view(np.uint32)
    found, m = np.empty(scores.size, scores.dtype), 0
    for i in range(bits.size):
        if wanted[_bin(bits[i], first, wanted.size)]:
            found[m] = scores[i]
            m += 1
    return np.sort(found[:m])


@kernel
def steps(scores, hits, thresholds, n, n_hits):
    """For each distinct one of the rising ``scores``, the highest first: it, and how many scores and how many of the rising
    ``hits``, which are among the scores, are at or above it."""
    m, h = 0, hits.size
    for i in range(scores.size - 1, -1, -1):
        if i == 0 or scores[i - 1] != scores[i]:
            while h > 0 and hits[h - 1] >= scores[i]:
                h -= 1
            thresholds[m] = scores[i] + 0.0  # -0 becomes 0
            n[m] = scores.size - i
            n_hits[m] = hits.size - h
            m += 1


@kernel
def mean_risk(n, hits, places):
    """The mean, over i, of the error among the first i, which is ``i - hits / places``. Those from ``n[g - 1]`` to ``n[g]`` tie
    and have the same share of the hits between: the mean over their orders."""
    total = 0.0
    before, hits_before = 0, 0
    for g in range(n.size):
        each = 1.0 - (hits[g] - hits_before) / (places * (n[g] - before))
        errors = before - hits_before / places
        for i in range(1, n[g] - before + 1):
            total += (errors + i * each) / (before + i)
        before, hits_before = n[g], hits[g]
    return total / before


@kernel
def lowest(ids, scores, hits, out):
    """Lower ``out[label]`` to the lowest score of a hit."""
    for row in range(ids.shape[0]):
        for place in range(ids.shape[1]):
            if hits[row, place]:
                out[ids[row, place]] = min(out[ids[row, place]], scores[row, place])


@kernel
def pack(ids, scores, hits, low, number, fold, fold_bits, lo, hi, out):
    """The pairs of the labels numbered [lo, hi) that score ``low[label]`` or more, as whole numbers that rise by label and, in
    a label, as scores fall; how many.

    From the highest bit: ``number[label]``, the bits of the float32 score in falling order, ``fold[row]``, and whether the
    pair is a hit.
    """
    m = 0
    bits = scores.view(np.uint32)
    for row in range(ids.shape[0]):
        for place in range(ids.shape[1]):
            label = ids[row, place]
            if label < 0:
                break
            if scores[row, place] < low[label] or not lo <= number[label] < hi:
                continue
            key = np.uint64(number[label]) << np.uint64(32) | np.uint64(_falling(bits[row, place]))
            key = key << np.uint64(fold_bits) | np.uint64(fold[row])
            out[m] = key << np.uint64(1) | np.uint64(hits[row, place])
            m += 1
    return m


@kernel
def best_cuts(keys, fold_bits, true, beta2, cuts):
    """``cuts[f, l]``: the falling bits of the score from which on F of label l is largest over what is outside fold f.

    ``keys`` are those of :func:`pack`, rising; ``true[f, l]`` is how many rows outside fold f have the label. Of equal F the
    highest score is taken. Where no pair outside the fold is a hit the cut stays as it came. F can only be largest where a
    hit was added, so it is worked out there alone.
    """
    folds = cuts.shape[0]
    own_n, own_hits, best = np.zeros(folds), np.zeros(folds), np.zeros(folds)
    n = hits = 0.0
    added = False
    for i in range(keys.size):
        key = keys[i]
        n += 1.0
        fold = np.int64((key >> np.uint64(1)) & np.uint64((1 << fold_bits) - 1))
        if fold < folds:
            own_n[fold] += 1.0
        if key & np.uint64(1):
            hits += 1.0
            added = True
            if fold < folds:
                own_hits[fold] += 1.0
        score = key >> np.uint64(fold_bits + 1)
        label = np.int64(score >> np.uint64(32))
        after = keys[i + 1] >> np.uint64(fold_bits + 1) if i + 1 < keys.size else np.uint64(0xFFFFFFFFFFFFFFFF)
        if added and after != score:
            added = False
            for f in range(folds):
                tp = hits - own_hits[f]
                found = (1.0 + beta2) * tp / (beta2 * true[f, label] + n - own_n[f]) if tp > 0.0 else 0.0
                if found > best[f]:
                    best[f] = found
                    cuts[f, label] = np.int64(score & np.uint64(0xFFFFFFFF))
        if after >> np.uint64(32) != np.uint64(label):
            n = hits = 0.0
            own_n[:] = 0.0
            own_hits[:] = 0.0
            best[:] = 0.0


@kernel
def _place(indices, start, stop, label):
    """Where the label is, or would be, among the rising ``indices[start:stop]``."""
    left, right = start, stop
    while left < right:
        middle = (left + right) // 2
        if indices[middle] < label:
            left = middle + 1
        else:
            right = middle
    return left


@kernel
def _relevant(indices, start, stop, label):
    """Is the label among them?"""
    left = _place(indices, start, stop, label)
    return left < stop and indices[left] == label


@kernel
def _end(ids, scores, row, place):
    """One behind the last place that ties with this one."""
    end = place + 1
    while end < ids.shape[1] and ids[row, end] >= 0 and scores[row, end] == scores[row, place]:
        end += 1
    return end


def _groups(indptr, indices, ids, scores, lo, hi):
    """Of each place of the rows: is there a label, is it relevant, where do its ties begin, and one behind their last."""
    ids, here = ids[lo:hi].astype(np.int64), indices[indptr[lo] : indptr[hi]]
    there, place = np.logical_and.accumulate(ids >= 0, axis=1), np.arange(ids.shape[1])
    rows, n_labels = np.arange(hi - lo), 1 + max(int(here.max(initial=0)), int(ids.max(initial=0)))
    known = np.append(np.repeat(rows, np.diff(indptr[lo : hi + 1]).astype(np.intp)) * np.int64(n_labels) + here, -1)
    wanted = rows[:, None] * np.int64(n_labels) + ids
    relevant = (known[np.searchsorted(known[:-1], wanted)] == wanted) & there
    first = np.ones(ids.shape, bool)
    first[:, 1:] = (scores[lo:hi, 1:] != scores[lo:hi, :-1]) | ~there[:, 1:]
    after = np.full((hi - lo, place.size + 1), place.size)
    after[:, :-1] = np.where(first, place, place.size)
    end = np.minimum.accumulate(after[:, ::-1], axis=1)[:, ::-1][:, 1:]
    return there, relevant, np.maximum.accumulate(np.where(first, place, 0), axis=1), end


def _worth(relevant, ids, weights, otherwise):
    """The weight of each relevant place."""
    worth = np.zeros(relevant.shape)
    worth[relevant] = weights[ids[relevant]] if weights.size else otherwise
    return worth


def _mixed(indptr, indices, ids, scores, weights, k, lo, hi, out):
    there, relevant, start, _ = _groups(indptr, indices, ids, scores, lo, hi)
    worth = _worth(relevant, ids[lo:hi], weights, 1.0)
    tied = there & (start < np.minimum(np.arange(start.shape[1]), k))
    out[lo:hi] = (tied[:, 1:] & (worth[:, 1:] != worth[:, :-1])).any(axis=1)


@kernel(plain=_mixed)
def mixed(indptr, indices, ids, scores, weights, k, lo, hi, out):
    """``out[row]``: do labels that tie for a place up to k differ, one relevant and one not, or in their weights?"""
    weighted = weights.size > 0
    for row in range(lo, hi):
        out[row] = False
        place = 0
        while place < k and ids[row, place] >= 0 and not out[row]:
            end = _end(ids, scores, row, place)
            first = -1.0
            for j in range(place, end if end > place + 1 else place):
                worth = 0.0
                if _relevant(indices, indptr[row], indptr[row + 1], ids[row, j]):
                    worth = weights[ids[row, j]] if weighted else 1.0
                out[row] |= j > place and worth != first
                first = worth
            place = end


def _expected(indptr, indices, ids, scores, weights, lo, hi, out):
    there, relevant, start, end = _groups(indptr, indices, ids, scores, lo, hi)
    n, k = there.shape
    group, each = np.arange(n)[:, None] * k + start, _worth(relevant, ids[lo:hi], weights, 0.0)
    hits, worth = (np.bincount(group.ravel(), part.ravel(), n * k)[group] for part in (relevant, each))
    none = np.multiply.accumulate(1.0 - hits / (end - np.arange(k)), axis=1)
    for column, part in enumerate((hits / (end - start), worth / (end - start), 1.0 - none)):
        out[:n, :, column] = part[:, : out.shape[1]]


@kernel(plain=_expected)
def expected(indptr, indices, ids, scores, weights, lo, hi, out):
    """``out[row - lo, place]``: SHARE, WORTH and CHANCE of ``kernels.ranking`` over all orders of tied scores.

    A place of a group of g tied labels, h of them relevant, holds a hit with chance h / g. If none of the j places before it in
    the group holds one, it does with chance h / (g - j), so the chances of no hit multiply.
    """
    weighted = weights.size > 0
    for row in range(lo, hi):
        none = 1.0
        place = 0
        while place < out.shape[1] and ids[row, place] >= 0:
            end = _end(ids, scores, row, place)
            hits, worth = 0, 0.0
            for j in range(place, end):
                if _relevant(indices, indptr[row], indptr[row + 1], ids[row, j]):
                    hits += 1
                    worth += weights[ids[row, j]] if weighted else 0.0
            for j in range(place, min(end, out.shape[1])):
                none *= 1.0 - hits / (end - j)
                out[row - lo, j, 0] = hits / (end - place)
                out[row - lo, j, 1] = worth / (end - place)
                out[row - lo, j, 2] = 1.0 - none
            place = end
        for j in range(place, out.shape[1]):
            out[row - lo, j, 0] = 0.0
            out[row - lo, j, 1] = 0.0
            out[row - lo, j, 2] = 1.0 - none


def _arrange(indptr, indices, ids, scores, weights, best, lo, hi, out):
    there, relevant, start, _ = _groups(indptr, indices, ids, scores, lo, hi)
    (row, place), hit, turn = np.nonzero(there), relevant[there].astype(np.int64), 1 if best else -1
    worth = _worth(relevant, ids[lo:hi], weights, 0.0)[there]
    order = np.lexsort((turn * np.where(hit, place, -place), -turn * worth, -turn * hit, start[there], row))
    arranged = np.full(there.shape, -1, ids.dtype)
    arranged[there] = ids[lo:hi][there][order]
    out[lo:hi] = arranged[:, : out.shape[1]]


@kernel(plain=_arrange)
def arrange(indptr, indices, ids, scores, weights, best, lo, hi, out):
    """``out[row]``: the first places with tied labels in the best order, the relevant ones by falling weight before the others,
    or (``best`` is False) in the worst, which is that order backwards."""
    weighted = weights.size > 0
    group = np.empty(ids.shape[1], ids.dtype)
    for row in range(lo, hi):
        place = 0
        while place < out.shape[1]:
            if ids[row, place] < 0:
                out[row, place:] = -1
                break
            end = _end(ids, scores, row, place)
            hits, misses = 0, end - place
            for j in range(place, end):
                label = ids[row, j]
                if _relevant(indices, indptr[row], indptr[row + 1], label):
                    at = hits
                    while weighted and at > 0 and weights[group[at - 1]] < weights[label]:
                        group[at] = group[at - 1]
                        at -= 1
                    group[at] = label
                    hits += 1
                else:
                    misses -= 1
                    group[misses] = label
            for j in range(place, min(end, out.shape[1])):
                out[row, j] = group[j - place if best else end - 1 - j]
            place = end


@kernel
def graded(indptr, indices, gains, ids, ks, lo, hi, out):
    """``out[row - lo, i]``: the discounted gain of the first ``ks[i]`` places over that of the row's labels by falling gain."""
    discount, ideal = np.empty(ks[-1]), np.empty(ks[-1])
    for place in range(discount.size):
        discount[place] = 1.0 / log2(place + 2.0)
    for row in range(lo, hi):
        start, stop = indptr[row], indptr[row + 1]
        n = 0
        for j in range(start, stop):
            at = n
            if n < ideal.size:
                n += 1
            elif gains[j] > ideal[n - 1]:
                at = n - 1
            else:
                continue
            while at > 0 and ideal[at - 1] < gains[j]:
                ideal[at] = ideal[at - 1]
                at -= 1
            ideal[at] = gains[j]
        got = perfect = 0.0
        place = 0
        for i in range(ks.size):
            while place < ks[i]:
                if place < ids.shape[1] and ids[row, place] >= 0:
                    at = _place(indices, start, stop, ids[row, place])
                    if at < stop and indices[at] == ids[row, place]:
                        got += gains[at] * discount[place]
                if place < n:
                    perfect += ideal[place] * discount[place]
                place += 1
            out[row - lo, i] = got / perfect if perfect > 0.0 else 0.0


@kernel
def confusions(indptr, ids, found, lo, hi, out):
    """``out[row + 1]``: how many pairs of a wrong prediction and a missed label the row has."""
    for row in range(lo, hi):
        hits = wrong = 0
        for place in range(ids.shape[1]):
            hits += found[row, place]
            wrong += ids[row, place] >= 0 and not found[row, place]
        out[row + 1] = wrong * (indptr[row + 1] - indptr[row] - hits)


@kernel
def confused(indptr, indices, ids, hits, lo, hi, out):
    """Fill ``out`` with ``predicted 2^32 + missed`` for each wrong prediction and each missed label of rows [lo, hi)."""
    m = 0
    for row in range(lo, hi):
        for j in range(indptr[row], indptr[row + 1]):
            missed = True
            for place in range(ids.shape[1]):
                missed &= ids[row, place] != indices[j]
            if missed:
                for place in range(ids.shape[1]):
                    if ids[row, place] >= 0 and not hits[row, place]:
                        out[m] = np.int64(ids[row, place]) << 32 | np.int64(indices[j])
                        m += 1
