"""Best-first search in an ensemble of probabilistic label trees: the k labels of greatest (w_l + beta) eta_l(x).

The nodes of all trees are numbered together: the roots 0..T-1 first, then chunk after chunk (a chunk: the children of one
inner node), parents before children. A root is certain. eta_l is the mean over trees of the product of the probabilities
on l's path, summed in tree order in float64 and rounded to float32; scores are float64 products of that number.

Why the search is exact. Each tree keeps a heap of nodes not yet opened, by the bound (best w below + beta) P(node). A label
not yet scored lies under a node of every heap, so the mean of the heaps' greatest bounds bounds its score. The search
ends when that mean, widened by ``_SLACK`` for rounding, is below the k-th score; where it equals it, a lower id may come.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import exp, sigmoid

# Rounding eta to float32 moves it by 6e-8 of itself, or by less than 1e-45 where it is denormal.
_SLACK, _TINY = 1.000001, 1e-44
# What a row does to the weights of the labels it chose.
KEEP, PROBABILITY, GAIN = 0, 1, 2

# chunk, label: (nodes,) an inner node's chunk and a leaf's label, else -1. above: (nodes,) the chunk a node is in, -1 for
# roots. owner, child_start: (chunks,), (chunks + 1,) a chunk's parent node and its nodes. leaf: (T, L) a label's node, or -1.
# The weights are kept by chunk, each chunk's by feature, rising: those of the i-th feature of all chunks are at
# weight_start[i]:weight_start[i + 1] of child (its place in the chunk) and weight. bias: (nodes,).
# Feature f is met in the chunks meeting[starts[f]:starts[f + 1]], rising, and is there the i-th of place.
Forest = namedtuple(
    "Forest",
    "chunk label above owner child_start leaf feature_start weight_start child weight bias starts meeting place",
)


@kernel
def by_feature(feature_start, features, starts, meeting, place):
    """Fill Forest's starts (which comes as zeros, and is one longer), meeting and place: a row's few features say at once which
    chunks know them, where looking for each of them in each chunk takes many times as long as what is found."""
    for i in range(features.size):
        starts[features[i] + 2] += 1
    for f in range(2, starts.size):
        starts[f] += starts[f - 1]
    for c in range(feature_start.size - 1):
        for i in range(feature_start[c], feature_start[c + 1]):
            f = features[i] + 1
            meeting[starts[f]], place[starts[f]] = c, i
            starts[f] += 1


@kernel
def best_below(forest, weights, best):
    """best[v]: the greatest weight of the labels under node v."""
    for v in range(best.size):
        best[v] = weights[forest.label[v]] if forest.label[v] >= 0 else 0.0
    for c in range(forest.owner.size - 1, -1, -1):
        greatest = 0.0
        for v in range(forest.child_start[c], forest.child_start[c + 1]):
            greatest = max(greatest, best[v])
        best[forest.owner[c]] = greatest


@kernel
def _meet(forest, index, value, lo, hi, first, after, place, x):
    """first[c]: chunk c's first meeting with the point index[lo:hi], value[lo:hi], -1 if none; after: the next one's number."""
    first[:] = -1
    n = 0
    starts, meeting, at = forest.starts, forest.meeting, forest.place
    for j in range(hi - 1, lo - 1, -1):  # the last feature first, so that each list rises
        for i in range(starts[index[j]], starts[index[j] + 1]):
            c = meeting[i]
            after[n], first[c] = first[c], n
            place[n], x[n] = at[i], value[j]
            n += 1


@kernel
def _add(weight_start, weights, child, i, x, lo, hi, out):
    """The weights of one meeting, times the point's value, to out[lo:hi].

    Places without a sign: one that could count from the end keeps a loop from being made of vector instructions.
    """
    begin, end = np.uint64(weight_start[i]), np.uint64(weight_start[i + 1])
    first, size = np.uint64(lo), np.uint64(hi - lo)
    if end - begin == size:
        for u in range(size):
            at = np.uint64(u)
            out[first + at] += x * weights[begin + at]
    else:
        for at in range(begin, end):
            out[first + np.uint64(child[at])] += x * weights[at]


@kernel
def _to_probabilities(p, hinge, sums):
    """Path probabilities from sums, p their parent's."""
    for i in range(sums.size):
        if hinge:
            short = max(0.0, 1.0 - sums[i])
            sums[i] = p * exp(-short * short)
        else:
            sums[i] = p * sigmoid(sums[i])


@kernel
def _open(forest, c, first, after, place, x, hinge, probability):
    """Path probabilities of chunk c's nodes for the point that ``_meet`` has led there, features rising."""
    lo, hi = forest.child_start[c], forest.child_start[c + 1]
    sums = probability[lo:hi]
    for i in range(sums.size):
        sums[i] = forest.bias[lo + i]
    n = first[c]
    weight_start, weights, child = forest.weight_start, forest.weight, forest.child
    while n >= 0:
        _add(weight_start, weights, child, place[n], np.float64(x[n]), lo, hi, probability)
        n = after[n]
    _to_probabilities(probability[forest.owner[c]], hinge, sums)


@kernel
def _push(keys, nodes, size, key, node):
    """Into a heap with its greatest key first."""
    i = size
    while i > 0 and keys[(i - 1) // 2] < key:
        keys[i], nodes[i] = keys[(i - 1) // 2], nodes[(i - 1) // 2]
        i = (i - 1) // 2
    keys[i], nodes[i] = key, node


@kernel
def _pop(keys, nodes, size):
    """Take out the first of a heap that then has ``size`` entries: the last takes its place."""
    key, node = keys[size], nodes[size]
    i = 0
    while 2 * i + 1 < size:
        j = 2 * i + 1
        if j + 1 < size and keys[j + 1] > keys[j]:
            j += 1
        if keys[j] <= key:
            break
        keys[i], nodes[i] = keys[j], nodes[j]
        i = j
    keys[i], nodes[i] = key, node


@kernel
def _sink(scores, labels, etas, size, score, label, eta):
    """Put an entry in place of the first, the worst, of a heap of ``size`` entries: lowest score, of equals highest id."""
    i = 0
    while 2 * i + 1 < size:
        j = 2 * i + 1
        if j + 1 < size and (scores[j + 1] < scores[j] or (scores[j + 1] == scores[j] and labels[j + 1] > labels[j])):
            j += 1
        if score < scores[j] or (score == scores[j] and label > labels[j]):
            break
        scores[i], labels[i], etas[i] = scores[j], labels[j], etas[j]
        i = j
    scores[i], labels[i], etas[i] = score, label, eta


@kernel
def _offer(scores, labels, etas, n, score, label, eta):
    """Keep a label if it is among the best so far; returns how many are kept."""
    k = scores.size
    if n == k:
        if score > scores[0] or (score == scores[0] and label < labels[0]):
            _sink(scores, labels, etas, k, score, label, eta)
        return k
    i = n
    while i > 0:
        j = (i - 1) // 2
        if scores[j] < score or (scores[j] == score and labels[j] > label):
            break
        scores[i], labels[i], etas[i] = scores[j], labels[j], etas[j]
        i = j
    scores[i], labels[i], etas[i] = score, label, eta
    return n + 1


@kernel
def open_all(forest, indptr, index, value, hinge, lo, hi, probability):
    """probability[row - lo]: of all nodes for rows [lo, hi), roots 1."""
    starts, meeting, place, child_start = forest.starts, forest.meeting, forest.place, forest.child_start
    weight_start, weights, child = forest.weight_start, forest.weight, forest.child
    for row in range(lo, hi):
        found = probability[row - lo]
        for v in range(found.size):
            found[v] = forest.bias[v]
        for j in range(indptr[row], indptr[row + 1]):
            x = np.float64(value[j])
            for i in range(starts[index[j]], starts[index[j] + 1]):
                c = meeting[i]
                _add(weight_start, weights, child, place[i], x, child_start[c], child_start[c + 1], found)
        for v in range(forest.child_start[0]):
            found[v] = 1.0
        for c in range(forest.owner.size):
            _to_probabilities(found[forest.owner[c]], hinge, found[forest.child_start[c] : forest.child_start[c + 1]])


@kernel
def search(forest, roots, indptr, index, value, weights, best, beta, update, hinge, lo, hi, known, ids, scores, etas):
    """Rows [lo, hi): the k = ids.shape[1] best labels, their scores and their probabilities, best first.

    known: (hi - lo, nodes) from ``open_all``, or (0, 0): chunks are opened as they are met, to the same bits.
    roots: of the trees to search; forest.leaf has their rows alone. weights: (L,) w, 0 or more; best: what ``best_below``
    made of it. Neither changes with ``KEEP``. Else, after each row, w_l is multiplied by 1 - eta_l, or by 1 - score, at least
    0, for each label chosen, and ``best`` follows: rows depend on those before them.
    """
    n_trees, n_labels = forest.leaf.shape
    k = ids.shape[1]
    one_tree = n_trees == 1
    probability = np.ones(forest.chunk.size)  # of the nodes of chunks with opened[c] == row, and of the roots
    opened = np.full(forest.owner.size, -1, np.int64)
    settled = np.full(n_labels, -1, np.int64)  # the row in which a label was scored or ruled out
    capacity = forest.chunk.size
    keys = np.empty((n_trees, capacity))
    nodes = np.empty((n_trees, capacity), np.int32)
    size = np.empty(n_trees, np.int64)
    path = np.empty(forest.owner.size, np.int64)
    top_score, top_label, top_eta = np.empty(k), np.empty(k, np.int32), np.empty(k, np.float32)
    room = 0
    if known.shape[0] == 0:
        for row in range(lo, hi):
            n = 0
            for j in range(indptr[row], indptr[row + 1]):
                n += forest.starts[index[j] + 1] - forest.starts[index[j]]
            room = max(room, n)
    first, after = np.empty(forest.owner.size, np.int32), np.empty(room, np.int32)
    place, x = np.empty(room, forest.place.dtype), np.empty(room, value.dtype)
    for row in range(lo, hi):
        found = 0
        tiny = 0.0
        if known.shape[0] > 0:
            probability = known[row - lo]
            opened[:] = row
        else:
            _meet(forest, index, value, indptr[row], indptr[row + 1], first, after, place, x)
        for t in range(n_trees):
            keys[t, 0], nodes[t, 0], size[t] = best[roots[t]] + beta, roots[t], 1
            tiny = max(tiny, _TINY * keys[t, 0])
        while True:
            bound = 0.0
            t = 0
            for s in range(n_trees):
                if size[s] == 0:
                    t = -1
                    break
                bound += keys[s, 0]
                if keys[s, 0] > keys[t, 0]:
                    t = s
            # A heap that is empty has every label scored or ruled out.
            if t < 0 or (found == k and _SLACK * bound / n_trees + tiny < top_score[0]):
                break
            others = 0.0
            for s in range(n_trees):
                if s != t:
                    others += keys[s, 0]
            v = nodes[t, 0]
            size[t] -= 1
            _pop(keys[t], nodes[t], size[t])
            c = np.int64(forest.chunk[v])
            if c >= 0:
                if opened[c] != row:
                    _open(forest, c, first, after, place, x, hinge, probability)
                    opened[c] = row
                for u in range(forest.child_start[c], forest.child_start[c + 1]):
                    label = forest.label[u]
                    if label >= 0 and settled[label] == row:
                        continue
                    key = (best[u] + beta) * probability[u]
                    if found == k and _SLACK * (key + others) / n_trees + tiny < top_score[0]:
                        continue
                    if one_tree and label >= 0:
                        eta = np.float32(probability[u])
                        score = (weights[label] + beta) * np.float64(eta)
                        found = _offer(top_score, top_label, top_eta, np.int64(found), score, label, eta)
                    else:
                        _push(keys[t], nodes[t], size[t], key, u)
                        size[t] += 1
                continue
            # A label, met in tree t first: its probability in the other trees, along its path, as long as it can matter.
            label = forest.label[v]
            if settled[label] == row:
                continue
            settled[label] = row
            weight = weights[label] + beta
            sure = weight * probability[v]
            hopeless = False
            for s in range(n_trees):
                if s == t:
                    continue
                others = 0.0
                for r in range(s + 1, n_trees):
                    if r != t:
                        others += keys[r, 0]
                u = forest.leaf[s, label]
                depth = 0
                c = forest.above[u]
                while c >= 0 and opened[c] != row:
                    path[depth] = c
                    depth += 1
                    c = forest.above[forest.owner[c]]
                while depth > 0:
                    depth -= 1
                    c = path[depth]
                    reach = sure + others + weight * probability[forest.owner[c]]
                    if found == k and _SLACK * reach / n_trees + tiny < top_score[0]:
                        hopeless = True
                        break
                    _open(forest, c, first, after, place, x, hinge, probability)
                    opened[c] = row
                if hopeless:
                    break
                sure += weight * probability[u]
            if hopeless:
                continue
            total = 0.0
            for s in range(n_trees):
                total += probability[forest.leaf[s, label]]
            eta = np.float32(total / n_trees)
            found = _offer(top_score, top_label, top_eta, np.int64(found), weight * np.float64(eta), label, eta)
        for at in range(found - 1, -1, -1):
            ids[row, at], scores[row, at], etas[row, at] = top_label[0], top_score[0], top_eta[0]
            _sink(top_score, top_label, top_eta, at, top_score[at], top_label[at], top_eta[at])
        if update != KEEP:
            for at in range(found):
                label = ids[row, at]
                eta = np.float64(etas[row, at])
                if update == GAIN:
                    weights[label] *= max(0.0, 1.0 - (weights[label] + beta) * eta)
                else:
                    weights[label] *= 1.0 - eta
                for t in range(n_trees):
                    v = forest.leaf[t, label]
                    best[v] = weights[label]
                    c = forest.above[v]
                    while c >= 0:
                        greatest = 0.0
                        for u in range(forest.child_start[c], forest.child_start[c + 1]):
                            greatest = max(greatest, best[u])
                        if greatest == best[forest.owner[c]]:
                            break
                        best[forest.owner[c]] = greatest
                        c = forest.above[forest.owner[c]]
