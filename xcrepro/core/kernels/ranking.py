"""Per-row values of the ranking metrics: one number a (row, column, k), which the kernels of ``exact.py`` add up."""

import functools

import numpy as np

from xcrepro.core.kernels import interpreted, kernel
from xcrepro.core.kernels.elementary import log2

# The columns. S(w, d) is the sum over hits up to k of weight times discount. From 100 on they need label weights (inverse
# propensities), from 200 on the number of relevant labels in the complete truth, too.
HITS = 0  # S(1, 1)
SERVED = 1  # 1 if there is a hit
FIRST = 2  # 1 / rank of the first hit
RECALL = 3  # S(1, 1) / |y|
NDCG_LABELS = 4  # S(1, 1/log2(r+1)) / the same sum of a perfect ranking of min(k, |y|) labels
DCG = 5  # S(1, 1/log2(r+1))
RECIPROCAL = 6  # S(1, 1/r) / |y|
ADG = 7  # S(1, 1/log2(r+1)) / |y|
F_SET = 8  # (1 + b^2) S(1, 1) / (b^2 |y| + number of labels predicted)
F_PRINTED = 9  # (1 + b^2) S(1, 1) / (b^2 (|y| + 1))
PREDICTED = 10  # number of labels predicted
RELEVANT = 11  # |y|, the same at each k
AP = 12  # sum over hits up to k of (hits up to there) / r, / min(k, |y|)
PRECISION_SET = 13  # S(1, 1) / number of labels predicted
LRAP = 14  # sum over hits of (hits up to there) / r, / |y|; a relevant label beyond k adds |y| / L, as at the last place of all
LRAP_MOST = 15  # the same with the labels beyond k at the next places
DEPTH = 16  # the place of the last relevant label, L if one is beyond k
DEPTH_LEAST = 17  # the same with the labels beyond k at the next places
R_PRECISION = 18  # S(1, 1) / min(k, |y|)
EXACT = 19  # 1 if the labels predicted are those of the row
LRAP_LABELS = 20  # LRAP times |y|
HIERARCHY = 50  # from here to WEIGHTED of labels together with the nodes above them
H_HITS = 50  # in both sets
H_PREDICTED = 51
H_RELEVANT = 52  # the same at each k
H_PRECISION = 53
H_RECALL = 54
H_F = 55
WEIGHTED = 100
PS_HITS = 100  # S(w, 1)
PS_DCG = 101  # S(w, 1/log2(r+1))
PS_NDCG_LABELS = 102  # PS_DCG / the unweighted sum of a perfect ranking of min(k, |y|) labels
LABEL_WEIGHTS = 103  # the weights of all the row's labels, the same at each k
BEST_HITS = 110  # PS_HITS, PS_DCG and PS_NDCG_LABELS of the ranking by falling weight of the row's own labels
BEST_DCG = 111
BEST_NDCG_LABELS = 112
GIVEN_TRUTH = 200
PS_RECALL = 200  # S(w, 1) / n, n the given number of relevant labels of the complete truth
PS_RECIPROCAL = 201
PS_ADG = 202
PS_F_SET = 203
PS_F_PRINTED = 204
# Of `expected`, for each place: over all orders of tied scores the mean hit, the mean weight of the hit, and the chance that a
# place up to here holds a hit.
SHARE, WORTH, CHANCE = range(3)
# Of ``reached``, for each place: the nodes that it is the first to reach; those that the truth has.
NODES, SHARED = range(2)


@functools.cache
def _discounts(k):
    return np.array([1.0 / log2.py_func(place + 2.0) for place in range(k)])


@np.errstate(all="ignore")
def _rows(*given):
    found, ids, n_labels_true, n_labels, weights, best, label_weights, n_relevant, expected, *rest = given
    reached, n_reached, beta2, ks, columns, lo, hi, out = rest
    n, room, discount = hi - lo, min(found.shape[1], int(ks[-1])), _discounts(int(ks[-1]))
    ids, hit = ids[lo:hi, :room], found[lo:hi, :room] != 0
    place, at, perfect = np.arange(1.0, room + 1), np.minimum(ks, room), np.append(0.0, np.add.accumulate(discount))
    share, worth, discount = hit.astype(np.float64), np.zeros(hit.shape), discount[:room]
    if weights.size:
        worth[hit] = weights[ids[hit]]
    if expected.shape[0]:
        share, worth = expected[:n, :room, SHARE], expected[:n, :room, WORTH]

    def upto(each, add=np.add):  # one place after the other
        steps = np.zeros((n, room + 1))
        steps[:, 1:] = each[:n, :room]
        return (add.accumulate(steps, axis=1) if add else steps)[:, at]

    def rising():
        return upto(np.where(hit, np.add.accumulate(share, axis=1) / place, 0.0))

    def f_beta(hits, true, predicted):
        return np.where(hits > 0, (1.0 + beta2) * hits / (beta2 * true + predicted), 0.0)

    def lrap_most():
        value = rising()
        for beyond in range(1, int((n_true - hits).max(initial=0)) + 1):
            value = np.where(beyond <= n_true - hits, value + (hits + beyond) / (predicted + beyond), value)
        return value / true_or_1

    n_true = n_labels_true[lo:hi, None].astype(np.float64)
    ideal = np.where(n_true > 0, perfect[np.minimum(ks, n_labels_true[lo:hi, None])], 1.0)
    n_full = n_relevant[lo:hi, None] if n_relevant.size else np.zeros((n, 1))
    true_or_1, full_or_1 = np.maximum(n_true, 1.0), np.where(n_full > 0, n_full, 1.0)
    hits, predicted = upto(share), upto(ids >= 0)
    dcg, reciprocal = lambda: upto(share * discount), lambda: upto(share / place)
    ps_hits, ps_dcg, ps_reciprocal = lambda: upto(worth), lambda: upto(worth * discount), lambda: upto(worth / place)
    last_hit, best_dcg = lambda: upto(hit * place, np.maximum), lambda: upto(best[:, :room] * discount)
    all_hit = hits == n_true
    h_hits, h_predicted = lambda: upto(reached[:, :, SHARED]), lambda: upto(reached[:, :, NODES])
    h_relevant = n_reached[:n, None].astype(np.float64) if reached.shape[0] else np.zeros((n, 1))
    value = {
        HITS: lambda: hits,
        SERVED: lambda: upto(expected[:, :, CHANCE], None) if expected.shape[0] else hits > 0,
        FIRST: lambda: upto(hit / place, np.maximum),
        RECALL: lambda: hits / true_or_1,
        NDCG_LABELS: lambda: dcg() / ideal,
        DCG: dcg,
        RECIPROCAL: lambda: reciprocal() / true_or_1,
        ADG: lambda: dcg() / true_or_1,
        F_SET: lambda: f_beta(hits, n_true, predicted),
        F_PRINTED: lambda: (1.0 + beta2) * hits / (beta2 * (n_true + 1.0)),
        PREDICTED: lambda: predicted,
        RELEVANT: lambda: n_true,
        AP: lambda: rising() / np.minimum(ks, true_or_1),
        PRECISION_SET: lambda: hits / np.maximum(predicted, 1.0),
        LRAP: lambda: (rising() + (n_true - hits) * n_true / n_labels) / true_or_1,
        LRAP_MOST: lrap_most,
        DEPTH: lambda: np.where(all_hit, last_hit(), n_labels),
        DEPTH_LEAST: lambda: np.where(all_hit, last_hit(), predicted + n_true - hits),
        R_PRECISION: lambda: hits / np.minimum(ks, true_or_1),
        EXACT: lambda: all_hit & (predicted == n_true),
        LRAP_LABELS: lambda: rising() + (n_true - hits) * n_true / n_labels,
        H_HITS: h_hits,
        H_PREDICTED: h_predicted,
        H_RELEVANT: lambda: h_relevant,
        H_PRECISION: lambda: h_hits() / np.maximum(h_predicted(), 1.0),
        H_RECALL: lambda: h_hits() / np.maximum(h_relevant, 1.0),
        H_F: lambda: f_beta(h_hits(), h_relevant, h_predicted()),
        PS_HITS: ps_hits,
        PS_DCG: ps_dcg,
        PS_NDCG_LABELS: lambda: ps_dcg() / ideal,
        LABEL_WEIGHTS: lambda: label_weights[lo:hi, None],
        BEST_HITS: lambda: upto(best),
        BEST_DCG: best_dcg,
        BEST_NDCG_LABELS: lambda: best_dcg() / ideal,
        PS_RECALL: lambda: ps_hits() / full_or_1,
        PS_RECIPROCAL: lambda: ps_reciprocal() / full_or_1,
        PS_ADG: lambda: ps_dcg() / full_or_1,
        PS_F_SET: lambda: f_beta(ps_hits(), n_full, predicted),
        PS_F_PRINTED: lambda: (1.0 + beta2) * ps_hits() / (beta2 * (n_full + 1.0)),
    }
    if not {*columns.tolist()} <= {*value}:  # a column that has no form here yet
        return interpreted.interpreted(rows.py_func)(*given)
    for c, column in enumerate(columns.tolist()):
        out[:n, c] = value[column]()


@kernel(plain=_rows)
def rows(
    found, ids, n_labels_true, n_labels, weights, best, label_weights, n_relevant, expected, reached, n_reached, beta2,
    ks, columns, lo, hi, out,
):  # fmt: skip
    """Fill ``out[row - lo, column, i]`` for rows [lo, hi) and ``ks[i]`` (rising).

    ``weights`` is per label, empty when no column needs it; so is ``best`` (hi - lo, k),
    ``label_weights`` (n,) and ``n_relevant`` (n,). ``expected`` (hi - lo, k, 3), unless it is empty, takes the place of
    ``found``: then FIRST, AP, LRAP, DEPTH and EXACT are not to be asked for. ``reached`` (hi - lo, k, 2) and ``n_reached``
    (hi - lo,) are what :func:`reached` fills; empty when no column needs them.
    """
    places = found.shape[1]
    k_max = ks[-1]
    discount = np.empty(k_max)
    for place in range(k_max):
        discount[place] = 1.0 / log2(place + 2.0)
    # perfect[m]: discounted gain of m relevant labels at the first m places
    perfect = np.zeros(k_max + 1)
    for place in range(k_max):
        perfect[place + 1] = perfect[place] + discount[place]
    weighted = weights.size > 0
    has_best = best.shape[0] > 0
    has_expected = expected.shape[0] > 0
    has_relevant = n_relevant.size > 0
    has_reached = reached.shape[0] > 0
    for row in range(lo, hi):
        n_true = n_labels_true[row]
        n_full = n_relevant[row] if has_relevant else 0.0
        hits = dcg = reciprocal = predicted = first_hit = rising = last_hit = served = 0.0
        ps_hits = ps_dcg = ps_reciprocal = best_hits = best_dcg = h_hits = h_predicted = 0.0
        h_relevant = n_reached[row - lo] if has_reached else 0.0
        place = 0
        for i in range(ks.size):
            k = ks[i]
            while place < k:
                if place < places:
                    if ids[row, place] >= 0:
                        predicted += 1.0
                    if has_expected:
                        share, worth = expected[row - lo, place, SHARE], expected[row - lo, place, WORTH]
                        hits += share
                        dcg += share * discount[place]
                        reciprocal += share / (place + 1.0)
                        ps_hits += worth
                        ps_dcg += worth * discount[place]
                        ps_reciprocal += worth / (place + 1.0)
                        served = expected[row - lo, place, CHANCE]
                    elif found[row, place]:
                        hits += 1.0
                        served = 1.0
                        last_hit = place + 1.0
                        rising += hits / (place + 1.0)
                        dcg += discount[place]
                        reciprocal += 1.0 / (place + 1.0)
                        if first_hit == 0.0:
                            first_hit = 1.0 / (place + 1.0)
                        if weighted:
                            weight = weights[ids[row, place]]
                            ps_hits += weight
                            ps_dcg += weight * discount[place]
                            ps_reciprocal += weight / (place + 1.0)
                if has_best:
                    best_hits += best[row - lo, place]
                    best_dcg += best[row - lo, place] * discount[place]
                if has_reached and place < places:
                    h_predicted += reached[row - lo, place, NODES]
                    h_hits += reached[row - lo, place, SHARED]
                place += 1
            # 0/0 is 0 here: a row without labels counts, and counts 0.
            true_or_1 = n_true if n_true > 0 else 1.0
            ideal = perfect[min(k, n_true)] if n_true > 0 else 1.0
            full_or_1 = n_full if n_full > 0 else 1.0
            for c in range(columns.size):
                column = columns[c]
                value = np.nan  # what no branch knows cannot be summed
                if column == HITS:
                    value = hits
                elif column == SERVED:
                    value = served
                elif column == FIRST:
                    value = first_hit
                elif column == RECALL:
                    value = hits / true_or_1
                elif column == NDCG_LABELS:
                    value = dcg / ideal
                elif column == DCG:
                    value = dcg
                elif column == RECIPROCAL:
                    value = reciprocal / true_or_1
                elif column == ADG:
                    value = dcg / true_or_1
                elif column == F_SET:
                    value = (1.0 + beta2) * hits / (beta2 * n_true + predicted) if hits > 0 else 0.0
                elif column == F_PRINTED:
                    value = (1.0 + beta2) * hits / (beta2 * (n_true + 1.0))
                elif column == AP:
                    value = rising / min(k, true_or_1)
                elif column == PREDICTED:
                    value = predicted
                elif column == PRECISION_SET:
                    value = hits / max(predicted, 1.0)
                elif column == R_PRECISION:
                    value = hits / min(k, true_or_1)
                elif column == EXACT:
                    value = 1.0 if hits == n_true and predicted == n_true else 0.0
                elif column in (LRAP, LRAP_LABELS):
                    value = rising + (n_true - hits) * n_true / n_labels
                    value /= true_or_1 if column == LRAP else 1.0
                elif column == LRAP_MOST:
                    value = rising
                    for beyond in range(1, n_true - int(hits) + 1):
                        value += (hits + beyond) / (predicted + beyond)
                    value /= true_or_1
                elif column == DEPTH:
                    value = last_hit if hits == n_true else n_labels
                elif column == DEPTH_LEAST:
                    value = last_hit if hits == n_true else predicted + n_true - hits
                elif column == H_HITS:
                    value = h_hits
                elif column == H_PREDICTED:
                    value = h_predicted
                elif column == H_RELEVANT:
                    value = h_relevant
                elif column == H_PRECISION:
                    value = h_hits / max(h_predicted, 1.0)
                elif column == H_RECALL:
                    value = h_hits / max(h_relevant, 1.0)
                elif column == H_F:
                    value = (1.0 + beta2) * h_hits / (beta2 * h_relevant + h_predicted) if h_hits > 0 else 0.0
                elif column == PS_HITS:
                    value = ps_hits
                elif column == PS_DCG:
                    value = ps_dcg
                elif column == PS_NDCG_LABELS:
                    value = ps_dcg / ideal
                elif column == BEST_HITS:
                    value = best_hits
                elif column == BEST_DCG:
                    value = best_dcg
                elif column == BEST_NDCG_LABELS:
                    value = best_dcg / ideal
                elif column == PS_RECALL:
                    value = ps_hits / full_or_1
                elif column == PS_RECIPROCAL:
                    value = ps_reciprocal / full_or_1
                elif column == PS_ADG:
                    value = ps_dcg / full_or_1
                elif column == PS_F_SET:
                    value = (1.0 + beta2) * ps_hits / (beta2 * n_full + predicted) if ps_hits > 0 else 0.0
                elif column == PS_F_PRINTED:
                    value = (1.0 + beta2) * ps_hits / (beta2 * (n_full + 1.0))
                elif column == RELEVANT:
                    value = n_true
                elif column == LABEL_WEIGHTS:
                    value = label_weights[row]
                out[row - lo, c, i] = value


@kernel
def reached(indptr, indices, ids, ends, above, seen, lo, hi, out, n_true):
    """Of rows [lo, hi): the nodes of the truth, ``n_true[row - lo]``, and what each place reaches, ``out[row - lo, place]``.

    The nodes of label l are ``above[ends[l]:ends[l + 1]]``, itself included. ``seen`` (nodes,) int64 is written to; it must
    be 0 at first, and the rows of later calls with the same one must be others.
    """
    for row in range(lo, hi):
        mark = 2 * row + 1  # seen in the truth; with the next number in the predictions
        found = 0
        for i in range(indptr[row], indptr[row + 1]):
            for j in range(ends[indices[i]], ends[indices[i] + 1]):
                if seen[above[j]] != mark:
                    seen[above[j]] = mark
                    found += 1
        n_true[row - lo] = found
        for place in range(ids.shape[1]):
            nodes, shared = 0, 0
            if ids[row, place] >= 0:
                for j in range(ends[ids[row, place]], ends[ids[row, place] + 1]):
                    before = seen[above[j]]
                    if before != mark + 1:
                        nodes += 1
                        shared += before == mark
                        seen[above[j]] = mark + 1
            out[row - lo, place, NODES] = nodes
            out[row - lo, place, SHARED] = shared
