"""Plausible wrong answers: what stands in place of a solution. Each must lose the points of its own check and no others.
The last of each lesson is what a language model typically writes (ascending order, no k, the wrong axis).

Lesson -> exercise -> the body that stands between the solution's markers.
"""

WRONG = {
    "01_data_and_long_tail": {
        # leaves out the points without labels
        "labels_per_point": "    return Y.sum() / np.sum(np.asarray(Y.sum(axis=1)).ravel() > 0)\n",
        # forgets to sort
        "labels_for_share": "    return int(np.argmax(np.cumsum(counts) >= share * np.sum(counts))) + 1\n",
        # ties to the higher id
        "popular": '    return np.argsort(counts, kind="stable")[::-1][:k]\n',
        # the wrong axis
        "label_counts": "    return np.asarray(Y.sum(axis=1)).ravel()\n",
    },
    "02_precision_and_ndcg": {
        # takes -1 for the last label
        "precision_at_k": "    return np.take_along_axis(Y, ids[:, :k], axis=1).sum(axis=1).mean() / k\n",
        # the sum to k below
        "ndcg_at_k": "    worth = 1 / np.log2(np.arange(2, k + 2))\n"
        "    return np.mean(np.take_along_axis(Y, ids[:, :k], axis=1) @ worth / worth.sum())\n",
        # draws without replacement
        "bootstrap_error": "    random = np.random.default_rng(seed)\n"
        "    return np.std([random.permutation(values).mean() for _ in range(draws)])\n",
        # sorts ascending
        "best_labels": '    return np.argsort(np.asarray(scores), axis=1, kind="stable")[:, :k]\n',
    },
    "03_missing_labels": {
        # logarithm to base 10
        "propensity": "    C = (np.log10(N) - 1) * (B + 1) ** A\n    return 1 / (1 + C * (np.asarray(counts) + B) ** -A)\n",
        # the mean of the points' ratios
        "psp_ratio": "    best = -np.sort(-(Y * weight), axis=1)[:, : ids.shape[1]].sum(axis=1)\n"
        "    got = (np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum(axis=1)\n"
        "    return np.mean(got / np.maximum(best, 1))\n",
        # the generator is made anew for each draw
        "bias_and_scatter": "    def once():\n"
        "        return psp_unnormalised(lose_labels(Y_complete, p, np.random.default_rng(seed)), ids, 1 / p)\n\n"
        "    found = [once() for _ in range(draws)]\n"
        "    return np.mean(found) - psp_unnormalised(Y_complete, ids, np.ones(p.size)), np.std(found)\n",
        # forgets k
        "psp_unnormalised": "    return np.mean((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum(axis=1))\n",
    },
    "04_limits_of_propensities": {
        # the ratio turned round
        "expected_psp": "    return np.mean(np.take_along_axis(Y_complete, ids, axis=1) * (q / p)[ids])\n",
        # "at least" for "strictly ahead"
        "first_flip": "    for A in grid:\n"
        "        weight = xc.propensity.inverse(counts, N, A, B)\n"
        "        a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))\n"
        "        if b >= a:\n            return A\n    return None\n",
        # leaves out the points without labels
        "weighted_recall": "    gained = (np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum(axis=1)\n"
        "    return np.mean(gained[sizes > 0] / sizes[sizes > 0])\n",
        # turns the fraction round
        "effective_hits": "    weights = np.asarray(weights, float)\n"
        "    return (weights**2).sum() / weights.sum() ** 2 if weights.size else 0\n",
    },
    "05_views_per_label": {
        # averages only over labels that occur
        "macro_f1": "    below = true + predicted\n    return np.mean(2 * tp[below > 0] / below[below > 0])\n",
        # takes precision for F1
        "micro_from_precision": "    return p\n",
        # bins that end with their upper edge
        "binned": "    bins = np.digitize(counts, edges, right=True)\n"
        "    return [f1[bins == b].mean() if np.any(bins == b) else np.nan for b in range(1, len(edges) + 1)]\n",
        # averages macro-precision and macro-recall arithmetically
        "f1_of_means": "    p = np.mean(np.where(predicted > 0, tp / np.maximum(predicted, 1), 0))\n"
        "    r = np.mean(np.where(true > 0, tp / np.maximum(true, 1), 0))\n"
        "    return (p + r) / 2\n",
    },
    "06_coverage": {
        # adds chances up
        "expected_coverage": "    chosen = np.take_along_axis(eta, ids, axis=1)\n    return chosen.sum() / eta.shape[1]\n",
        # never updates f: the top k
        "greedy_choice": '    return np.argsort(-(1 + beta) * eta, axis=1, kind="stable")[:, :k]\n',
        # takes the largest beta of those that tie; what students see has no ties
        "best_with_floor": "    allowed = [(coverage, beta) for beta, precision, coverage in tried if precision >= floor]\n"
        "    return max(allowed)[1] if allowed else None\n",
        # the share of points with a hit: the wrong axis
        "coverage_of_test": "    return np.take_along_axis(Y, ids, axis=1).any(axis=1).mean()\n",
    },
    "07_calibration": {
        # place by place instead of point by point
        "pairs": "    return scores[:, :k].ravel(), np.take_along_axis(Y, ids[:, :k], axis=1).T.ravel()\n",
        # every bin counts the same
        "ece": "    bins = np.minimum((scores * 10).astype(int), 9)\n"
        "    return np.mean([abs(hits[bins == b].mean() - scores[bins == b].mean()) for b in np.unique(bins)])\n",
        # learns from the pairs that it repairs
        "cross_fitted": "    return repair(scores, hits, scores)\n",
        # an empty bin has the mean of nothing
        "repair": "    edges = np.linspace(0, 1, 11)\n"
        "    bins = np.digitize(scores, edges) - 1\n"
        "    return np.array([np.sum(hits[bins == b]) / max(np.sum(bins == b), 1) for b in np.digitize(new, edges) - 1])\n",
    },
    "08_reading_tables": {
        # knows nothing of rounding
        "first_place_faults": "    return [name for name, p, n in rows if p and n and float(p) != float(n)]\n",
        # P@k itself may fall
        "shrinking": "    ks = sorted(values)\n"
        "    return [(a, b) for a, b in zip(ks, ks[1:]) if float(values[b]) < float(values[a])]\n",
        # precision: a rare hit is worth no more
        "my_metric": "    best = np.minimum(Y.sum(axis=1), ids.shape[1]).sum()\n"
        "    return float(np.take_along_axis(Y, ids, axis=1).sum() / best) if best else 0.0\n",
        # forgets k
        "labels_implied": "    (p_low, p_high), (f_low, f_high) = interval(p), interval(f1)\n"
        "    return 2 * p_low / f_high - 1, 2 * p_high / f_low - 1\n",
    },
    "09_how_models_work": {
        # the mean over all places, labels too
        "gradient": "    return X.T @ (sigmoid(X @ W) - Y) / Y.size\n",
        # shrinks the probability, not the odds
        "undo_sampling": "    return p * r / (p * r + (1 - p) * (1 + r))\n",
        # a logarithm, rounded down
        "questions": "    return branches * int(np.log(L) / np.log(branches))\n",
    },
    "10_project": {
        # the last rows instead of random ones, but for the first
        "hold_out": "    size = round(share * n)\n"
        "    validation = np.random.default_rng(seed).integers(0, n, size)\n"
        "    return np.setdiff1d(np.arange(n), validation), np.sort(validation)\n",
        # not paired: as if the models had been tested on records of their own
        "difference": "    a, b = hits_a.mean(axis=1), hits_b.mean(axis=1)\n"
        "    error = 0 if np.array_equal(a, b) else np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / a.size)\n"
        "    return a.mean() - b.mean(), a.mean() - b.mean() - 1.96 * error, a.mean() - b.mean() + 1.96 * error\n",
        # a tie at the end counts as held
        "pairs_held": "    from itertools import combinations\n\n"
        "    found = [(observed[a] - observed[b], complete[a] - complete[b]) for a, b in combinations(observed, 2)]\n"
        "    return sum(x * y >= 0 and x != 0 for x, y in found), sum(x != 0 for x, _ in found)\n",
    },
}

TYPICAL = {
    "09_how_models_work": {
        # sorts ascending
        "top_k": '    return np.argsort(scores, axis=1, kind="stable")[:, :k]\n',
        # averages over the wrong axis: divides by the words
        "gradient": "    return X.T @ (sigmoid(X @ W) - Y) / X.shape[1]\n",
        # softmax over the records, not over the labels
        "batch_loss": "    s = U @ V.T / tau\n    s = s - s.max(axis=0, keepdims=True)\n"
        "    return np.mean(np.log(np.exp(s).sum(axis=0)) - np.diag(s))\n",
    },
    "10_project": {
        # forgets k
        "submission": '    return np.argsort(-scores, axis=1, kind="stable")\n',
        # averages over the wrong axis: over records, so that places are compared
        "difference": "    d = hits_a.mean(axis=0) - hits_b.mean(axis=0)\n    error = d.std(ddof=1) / np.sqrt(d.size)\n"
        "    return d.mean(), d.mean() - 1.96 * error, d.mean() + 1.96 * error\n",
        # counts pairs that tie at first
        "pairs_held": "    from itertools import combinations\n\n    pairs = list(combinations(observed, 2))\n"
        "    held = sum((observed[a] > observed[b]) == (complete[a] > complete[b]) for a, b in pairs)\n"
        "    return held, len(pairs)\n",
    },
}
"""What a language model writes that has not read the exercise: plausible, runs, and wrong. As for ``WRONG``."""
