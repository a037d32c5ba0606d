"""Typical wrong programs for every exercise, a student's or a language model's, and the message that each must get.

Lesson -> exercise -> what is wrong, the body that stands between the solution's markers (of two solutions, divided by
``---``), and how the message of the check begins that students see.
"""

WRONG: dict[str, dict[str, list[tuple[str, str, str]]]] = {
    "01_data_and_long_tail": {
        "summary": [
            (
                "leaves points without labels out of the average",
                """\
    rows = np.asarray(Y.sum(axis=1)).ravel()
    return np.mean(rows == 0), Y.sum() / np.sum(rows > 0), np.asarray(Y.sum(axis=0)).ravel()
""",
                "six ones in four points: the point without labels counts as well, so divide by all rows",
            ),
            (
                "the wrong axis",
                """\
    rows = np.asarray(Y.sum(axis=1)).ravel()
    return np.mean(rows == 0), rows.mean(), rows
""",
                "2, 2, 2, 0 are the labels of each point; the points of each label are the columns",
            ),
            (
                "a matrix and no flat array",
                """\
    rows = np.asarray(Y.sum(axis=1)).ravel()
    return np.mean(rows == 0), rows.mean(), Y.sum(axis=0)
""",
                "one number for each of the four labels, as a flat array; the shape is (1, 4)",
            ),
            (
                "the number of points without labels, not their share",
                """\
    rows = np.asarray(Y.sum(axis=1)).ravel()
    return np.sum(rows == 0), rows.mean(), np.asarray(Y.sum(axis=0)).ravel()
""",
                "one of the four points has no label, a share of 0.25; found 1",
            ),
            (
                "counts only labels that occur",
                """\
    rows = np.asarray(Y.sum(axis=1)).ravel()
    return np.mean(rows == 0), rows.mean(), np.bincount(Y.tocoo().col)
""",
                "three points and two labels that nobody has: the array has two zeros, nothing is left out",
            ),
        ],
        "counted_over": [
            (
                "compares exactly",
                """\
    for n, name in ((n_train, 'train'), (n_train + n_test, 'train and test')):
        if n * per_point == n_labels * per_label:
            return name
    return 'neither'
""",
                "200 against 201.8 ones: printed averages are rounded, within 1 percent they agree; found",
            ),
            (
                "forgets the absolute value",
                """\
    for n, name in ((n_train, 'train'), (n_train + n_test, 'train and test')):
        if (n_labels * per_label) - n * per_point <= 0.01 * n_labels * per_label:
            return name
    return 'neither'
""",
                "200 against 196 ones differ by 2 percent, and the sign of a difference does not matter; found",
            ),
            (
                "takes the test points alone",
                """\
    for n, name in ((n_train, 'train'), (n_test, 'train and test')):
        if abs(n * per_point / (n_labels * per_label) - 1) <= 0.01:
            return name
    return 'neither'
""",
                "150 points with 2 labels are 20 labels with 15 points: train and test; found 'neither'",
            ),
            (
                "never says neither",
                """\
    return 'train' if abs(n_train * per_point / (n_labels * per_label) - 1) <= 0.01 else 'train and test'
""",
                "200 against 196 ones differ by 2 percent, and the sign of a difference does not matter; found",
            ),
        ],
        "labels_for_share": [
            (
                "forgets to sort",
                """\
    return int(np.argmax(np.cumsum(counts) >= share * np.sum(counts))) + 1
""",
                "counts 1, 6, 3: the most frequent label is not the first one here, so sort; found 2",
            ),
            (
                "strictly more",
                """\
    falling = -np.sort(-np.asarray(counts))
    return int(np.argmax(np.append(np.cumsum(falling) > share * falling.sum(), True))) + 1
""",
                "counts 6, 3, 1: 6 of 10 is exactly 0.6, and that is *at least* 0.6, so one label is enough;",
            ),
            (
                "counts from 0",
                """\
    falling = -np.sort(-np.asarray(counts))
    return int(np.argmax(np.cumsum(falling) >= share * falling.sum()))
""",
                "counts 6, 3, 1 and a share of 0.7: the label with 6 has 0.6, one more is needed. Do you count",
            ),
            (
                "sorts ascending",
                """\
    rising = np.sort(counts)
    return int(np.argmax(np.cumsum(rising) >= share * rising.sum())) + 1
""",
                "counts 6, 3, 1 and a share of 0.7: the labels with 6 and 3 are two; found 3",
            ),
        ],
        "bin_sizes": [
            (
                "edges one too small",
                """\
    return np.bincount(np.digitize(counts, [1, 9, 99, 999]), minlength=5)
""",
                "a label with 9 points belongs to the bin 1-9; found [0, 0, 1, 0, 0]: look at the edges",
            ),
            (
                "bins that end with their upper edge",
                """\
    return np.bincount(np.digitize(counts, [0, 10, 100, 1000], right=True), minlength=5)
""",
                "a label with 10 points belongs to the bin 10-99; found [0, 1, 0, 0, 0]: look at the edges",
            ),
            (
                "no bins at the end where they are empty",
                """\
    return np.bincount(np.digitize(counts, [1, 10, 100, 1000]))
""",
                "counts 5, 5: five numbers, also where bins are empty; the shape is (2,)",
            ),
            (
                "np.histogram without labels that have no point",
                """\
    return np.histogram(counts, [1, 10, 100, 1000, 10**9])[0]
""",
                "counts 5, 5: five numbers, also where bins are empty; the shape is (4,)",
            ),
            (
                "the last bin ends at 10,000",
                """\
    return np.histogram(counts, [0, 1, 10, 100, 1000, 10_000])[0]
""",
                "one label with 123456 points is in one bin; found [0, 0, 0, 0, 0]",
            ),
        ],
        "popular": [
            (
                "ties to the higher id",
                """\
    return np.argsort(counts, kind="stable")[::-1][:k]
""",
                "counts 3, 7, 3, 7: labels 1 and 3 tie, 0 and 2 tie, and the lower id comes first; found [3, 1,",
            ),
            (
                "ascending",
                """\
    return np.argsort(counts)[:k]
""",
                "counts 3, 7, 9, 1: labels 3 and 0 have the fewest points; the most frequent come first",
            ),
            (
                "the counts, not the ids",
                """\
    return -np.sort(-np.asarray(counts))[:k]
""",
                "counts 3, 7, 9, 1: 9 and 7 are the counts; the ids of these labels are wanted",
            ),
            (
                "the best k in the order of their ids",
                """\
    return np.sort(np.argsort(-np.asarray(counts), kind="stable")[:k])
""",
                "counts 3, 7, 9, 1: labels 1 and 2 are right, but label 2 has more points and comes first",
            ),
        ],
    },
    "02_precision_and_ndcg": {
        "best_labels": [
            (
                "gives known labels a score of 0",
                """\
    left = np.where(known, 0, scores)
    ids = np.argsort(-left, axis=1, kind="stable")[:, :k]
    return np.where(np.take_along_axis(known, ids, axis=1), -1, ids)
""",
                "scores -3, -1, -2, label 1 known: labels 2 and 0; a score of 0 is high here; found [-1, 2]",
            ),
            (
                "sorts ascending",
                """\
    left = np.where(known, np.inf, scores)
    return np.argsort(left, axis=1, kind="stable")[:, :k]
""",
                "scores 0.1, 0.9, 0.9, 0.4: label 0 has the lowest score; is the order turned round?",
            ),
            (
                "ties to the higher id",
                """\
    left = np.where(known, -np.inf, scores)
    ids = np.argsort(left, axis=1, kind="stable")[:, ::-1][:, :k]
    return np.where(np.take_along_axis(known, ids, axis=1), -1, ids)
""",
                "scores 0.1, 0.9, 0.9, 0.4: labels 1 and 2 tie, and the lower id comes first",
            ),
            (
                "knows nothing of -1",
                """\
    return np.argsort(-np.where(known, -np.inf, scores), axis=1, kind="stable")[:, :k]
""",
                "labels 0 and 1 are known, k = 3: labels 2, 3 and an empty place, -1; found [2, 3, 0]",
            ),
            (
                "leaves known labels out after it has chosen",
                """\
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.array([[l for l in row if not taken[l]] for row, taken in zip(ids, known)])
""",
                "label 1 is known, k = 2: there are still two others, 2 and 3; found [[2]]",
            ),
            (
                "does not look at what is known",
                """\
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]
""",
                "label 1 is known and must not be suggested",
            ),
        ],
        "precision_at_k": [
            (
                "takes -1 for the last label",
                """\
    return np.take_along_axis(Y, ids[:, :k], axis=1).sum(axis=1).mean() / k
""",
                "k = 3: the second point has -1 at its last place; NumPy takes -1 for the last column, and",
            ),
            (
                "divides by what was predicted",
                """\
    ids = ids[:, :k]
    hits = np.take_along_axis(Y, ids, axis=1) * (ids >= 0)
    return np.mean(hits.sum(axis=1) / (ids >= 0).sum(axis=1))
""",
                "k = 3: divide by 3 for the second point as well, although only two labels were predicted",
            ),
            (
                "forgets k",
                """\
    hits = np.take_along_axis(Y, ids, axis=1) * (ids >= 0)
    return hits.sum(axis=1).mean() / ids.shape[1]
""",
                "k = 1: both points have a hit at place 1, so 1; found 0.5: look at the first k columns only",
            ),
            (
                "the hits, not their share",
                """\
    ids = ids[:, :k]
    return (np.take_along_axis(Y, ids, axis=1) * (ids >= 0)).sum(axis=1).mean()
""",
                "k = 3: 1.5 is the number of hits of a point; the share of the k places is wanted",
            ),
            (
                "a number for each place: the wrong axis",
                """\
    ids = ids[:, :k]
    return (np.take_along_axis(Y, ids, axis=1) * (ids >= 0)).mean(axis=0)
""",
                "give back one number, the average over the points",
            ),
        ],
        "recall_ceiling": [
            (
                "the ceiling of precision",
                """\
    return np.minimum(Y.sum(axis=1), k).mean() / k
""",
                "k = 2: 0.5 is the ceiling of precision; recall divides by the labels of the point, not by k",
            ),
            (
                "0/0",
                """\
    sizes = Y.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.mean(np.minimum(sizes, k) / sizes)
""",
                "the third point has no label: 0/0 must count 0",
            ),
            (
                "leaves points without labels out",
                """\
    sizes = Y.sum(axis=1)
    sizes = sizes[sizes > 0]
    return np.mean(np.minimum(sizes, k) / sizes)
""",
                "k = 2: the point without labels counts as well: the mean is over three points",
            ),
            (
                "forgets k",
                """\
    return np.mean(Y.sum(axis=1) > 0)
""",
                "k = 2: the first point has three labels and two places: it finds 2/3 of them, not all",
            ),
            (
                "all hits by all labels",
                """\
    sizes = Y.sum(axis=1)
    return np.minimum(sizes, k).sum() / sizes.sum()
""",
                "k = 2: the mean over points of each point's share is wanted, not three hits of four labels in",
            ),
        ],
        "ndcg_at_k": [
            (
                "the sum to k below",
                """\
    worth = 1 / np.log2(np.arange(2, k + 2))
    got = (np.take_along_axis(Y, ids[:, :k], axis=1) * (ids[:, :k] >= 0)) @ worth
    return np.mean(got / worth.sum())
""",
                "one label, at place 1: divide by the sum to min(k, |y|) = 1, not to k = 3",
            ),
            (
                "log2(r + 1) counted from 0",
                """\
    worth = 1 / np.maximum(np.log2(np.arange(1, k + 1)), 1)
    got = (np.take_along_axis(Y, ids[:, :k], axis=1) * (ids[:, :k] >= 0)) @ worth
    best = np.append(0, np.cumsum(worth))[np.minimum(Y.sum(axis=1).astype(int), k)]
    return np.mean(np.where(best > 0, got / np.where(best > 0, best, 1), 0))
""",
                "the only label at place 2 is worth 1 / log2(3), not 1 / log2(2): at place r it is log2(r + 1)",
            ),
            (
                "0/0 for a point without labels",
                """\
    worth = 1 / np.log2(np.arange(2, k + 2))
    got = (np.take_along_axis(Y, ids[:, :k], axis=1) * (ids[:, :k] >= 0)) @ worth
    best = np.append(0, np.cumsum(worth))[np.minimum(Y.sum(axis=1).astype(int), k)]
    with np.errstate(invalid="ignore"):
        return np.mean(got / best)
""",
                "the second point has no label: 0/0 must count 0",
            ),
            (
                "leaves points without labels out",
                """\
    worth = 1 / np.log2(np.arange(2, k + 2))
    got = (np.take_along_axis(Y, ids[:, :k], axis=1) * (ids[:, :k] >= 0)) @ worth
    best = np.append(0, np.cumsum(worth))[np.minimum(Y.sum(axis=1).astype(int), k)]
    return np.mean(got[best > 0] / best[best > 0])
""",
                "the second point has no label and counts 0: the mean is over both points",
            ),
            (
                "takes -1 for the last label",
                """\
    worth = 1 / np.log2(np.arange(2, k + 2))[: ids.shape[1]]
    got = np.take_along_axis(Y, ids[:, :k], axis=1) @ worth
    best = np.append(0, np.cumsum(worth))[np.minimum(Y.sum(axis=1).astype(int), k)]
    return np.mean(np.where(best > 0, got / np.where(best > 0, best, 1), 0))
""",
                "labels 0 and 2, predicted are 0 and nothing: -1 is a miss, but NumPy takes it for the last",
            ),
        ],
        "bootstrap_error": [
            (
                "draws without replacement",
                """\
    random = np.random.default_rng(seed)
    return np.std([random.permutation(values).mean() for _ in range(draws)])
""",
                "100 values of 0 and 1: all means are equal. Draw with replacement, and make the generator once,",
            ),
            (
                "the scatter of the values",
                """\
    return np.std(values)
""",
                "100 values of 0 and 1: 0.50 is the scatter of single values; the scatter of the means is wanted",
            ),
            (
                "a new generator for each draw",
                """\
    values = np.asarray(values)
    draw = lambda: np.random.default_rng(seed).integers(0, values.size, values.size)
    return np.std([values[draw()].mean() for _ in range(draws)])
""",
                "100 values of 0 and 1: all means are equal. Draw with replacement, and make the generator once,",
            ),
            (
                "divides by the root once more",
                """\
    random = np.random.default_rng(seed)
    values = np.asarray(values)
    means = [values[random.integers(0, values.size, values.size)].mean() for _ in range(draws)]
    return np.std(means) / np.sqrt(values.size)
""",
                "100 values of 0 and 1: 0.0051 is too small; the means scatter by themselves, divide by no root",
            ),
            (
                "no seed",
                """\
    random = np.random.default_rng()
    values = np.asarray(values)
    return np.std([values[random.integers(0, values.size, values.size)].mean() for _ in range(draws)])
""",
                "the same seed must give the same number: use default_rng(seed)",
            ),
            (
                "the means themselves",
                """\
    random = np.random.default_rng(seed)
    values = np.asarray(values)
    return [values[random.integers(0, values.size, values.size)].mean() for _ in range(draws)]
""",
                "one number, the scatter of the means; the shape is (400,)",
            ),
        ],
    },
    "03_missing_labels": {
        "points_needed": [
            (
                "logarithm to base 10",
                """\
    C = (np.log10(N) - 1) * (B + 1) ** A
    return (C * p / (1 - p)) ** (1 / A) - B
""",
                "the logarithm in C is the natural one",
            ),
            (
                "forgets B at the end",
                """\
    C = (np.log(N) - 1) * (B + 1) ** A
    return (C * p / (1 - p)) ** (1 / A)
""",
                "p = 1 / ln N: the equation has N_l + B; take B away at the end",
            ),
            (
                "forgets the factor of C",
                """\
    return ((np.log(N) - 1) * p / (1 - p)) ** (1 / A) - B
""",
                "p = 1 / ln N: C has the factor (B + 1)**A",
            ),
            (
                "the odds turned round",
                """\
    C = (np.log(N) - 1) * (B + 1) ** A
    return (C * (1 - p) / p) ** (1 / A) - B
""",
                "p = 0.2 and 0.5: frequent labels go missing less often, so 0.5 needs more points; found",
            ),
            (
                "forgets the power",
                """\
    C = (np.log(N) - 1) * (B + 1) ** A
    return C * p / (1 - p) - B
""",
                "p = 1 / ln N: (N_l + B)**A is known by now; the power 1/A undoes the power A",
            ),
        ],
        "lose_labels": [
            (
                "one draw for each label",
                """\
    return Y_complete * (random.random(p.size) < p)
""",
                "label 1, p = 0.7: it went missing in all of its points or in none; draw for each point, not",
            ),
            (
                "one draw for each point",
                """\
    return Y_complete * (random.random((len(Y_complete), 1)) < p)
""",
                "labels 1 and 3 of a point go missing together: draw for each label, not once for a point",
            ),
            (
                "p is the chance to go missing",
                """\
    return Y_complete * (random.random(Y_complete.shape) >= p)
""",
                "propensity 1 lost everything and 0 nothing: p is the chance to *stay*",
            ),
            (
                "changes the truth it was given",
                """\
    Y_complete[random.random(Y_complete.shape) >= p] = 0
    return Y_complete
""",
                "the complete truth must stay as it is: give back a new array",
            ),
            (
                "one propensity for all",
                """\
    return Y_complete * (random.random(Y_complete.shape) < p.mean())
""",
                "label 0 has propensity 1 and loses nothing; 59% of it are left",
            ),
            (
                "adds labels",
                """\
    return (random.random(Y_complete.shape) < p).astype(int)
""",
                "a label that is not relevant was added: labels only go missing",
            ),
        ],
        "psp_unnormalised": [
            (
                "forgets k",
                """\
    return np.mean((np.take_along_axis(Y, ids, axis=1) * np.minimum(weight, most)[ids]).sum(axis=1))
""",
                "weights of 1: this is P@k times k; divide by k as well",
            ),
            (
                "never clips",
                """\
    return np.mean(np.take_along_axis(Y, ids, axis=1) * weight[ids])
""",
                "most = 3: the hits of weight 4 must count 3",
            ),
            (
                "clips the sum of a point",
                """\
    k = ids.shape[1]
    return np.mean(np.minimum((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum(axis=1), most)) / k
""",
                "most = 3: each *hit* counts 3 at most; the mean or a point's sum is not clipped",
            ),
            (
                "divides by the hits",
                """\
    hits = np.take_along_axis(Y, ids, axis=1)
    return np.sum(hits * np.minimum(weight, most)[ids]) / (hits.sum() if weight.max() > 1 else hits.size)
""",
                "weights 2 and 4: divide by all places (4), not by the hits (3)",
            ),
            (
                "weighs with p",
                """\
    return np.mean(np.take_along_axis(Y, ids, axis=1) / np.minimum(weight, most)[ids])
""",
                "weights 2 and 4: a hit counts 1/p; `weight` is 1/p already",
            ),
        ],
        "psp_leads": [
            (
                "the mean of the points' ratios",
                """\
    best = -np.sort(-(Y * weight), axis=1)[:, : ids_a.shape[1]].sum(axis=1)
    a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum(axis=1) for ids in (ids_a, ids_b))
    return (a - b).mean() / ids_a.shape[1], np.mean((a - b) / best)
""",
                "divide one sum by the other; this is the average of the points' own ratios",
            ),
            (
                "the best choice has all labels",
                """\
    a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))
    return (a - b) / ids_a.size, (a - b) / (Y * weight).sum()
""",
                "the best ranking too has only k = 1 place per point: 4 + 8, not 2 + 4 + 8",
            ),
            (
                "b minus a",
                """\
    b, a = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))
    return (a - b) / ids_a.size, (a - b) / -np.sort(-(Y * weight), axis=1)[:, : ids_a.shape[1]].sum()
""",
                "a hits labels of weight 2 and 8, b one of weight 4: a is ahead, so both leads are above 0",
            ),
            (
                "sums where means are wanted",
                """\
    a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))
    return a - b, (a - b) / -np.sort(-(Y * weight), axis=1)[:, : ids_a.shape[1]].sum()
""",
                "two points, k = 1: the unnormalised value is a mean over points and places, so divide by 2",
            ),
            (
                "the first labels of Y, not the heaviest",
                """\
    a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))
    best = sum((row * weight)[np.flatnonzero(row)[: ids_a.shape[1]]].sum() for row in Y)
    return (a - b) / ids_a.size, (a - b) / best
""",
                "the best choice of the first point is its *heaviest* label, 4, whatever its place in Y",
            ),
        ],
        "bias_and_scatter": [
            (
                "a new generator for each draw",
                """\
    def once():
        return psp_unnormalised(lose_labels(Y_complete, p, np.random.default_rng(seed)), ids, 1 / p)

    found = [once() for _ in range(draws)]
    return np.mean(found) - psp_unnormalised(Y_complete, ids, np.ones(p.size)), np.std(found)
""",
                "200 draws all gave the same: make the generator once, before the loop",
            ),
            (
                "the mean, not its difference",
                """\
    random = np.random.default_rng(seed)
    found = [psp_unnormalised(lose_labels(Y_complete, p, random), ids, 1 / p) for _ in range(draws)]
    return np.mean(found), np.std(found)
""",
                "the first number is the mean *minus* P@k on the complete truth, near 0 with the right p; found",
            ),
            (
                "without weights",
                """\
    random = np.random.default_rng(seed)
    found = [psp_unnormalised(lose_labels(Y_complete, p, random), ids, np.ones(p.size)) for _ in range(draws)]
    return np.mean(found) - psp_unnormalised(Y_complete, ids, np.ones(p.size)), np.std(found)
""",
                "with the right weights, 1/p, the mean is near P@k on the complete truth; the difference is",
            ),
            (
                "the truth minus the mean",
                """\
    random = np.random.default_rng(seed)
    found = [psp_unnormalised(lose_labels(Y_complete, p, random), ids, 1 / p) for _ in range(draws)]
    return psp_unnormalised(Y_complete, ids, np.ones(p.size)) - np.mean(found), np.std(found)
""",
                "one draw, seed 0: PSP minus P@k is wanted, and not P@k minus PSP",
            ),
            (
                "the scatter over points",
                """\
    random = np.random.default_rng(seed)
    Y = [lose_labels(Y_complete, p, random) for _ in range(draws)]
    values = [(np.take_along_axis(y, ids, axis=1) / p[ids]).mean(axis=1) for y in Y]
    return np.mean(values) - psp_unnormalised(Y_complete, ids, np.ones(p.size)), np.std(values)
""",
                "0.56 is the scatter over points; the scatter of the 200 results is wanted",
            ),
        ],
    },
    "04_limits_of_propensities": {
        "expected_psp": [
            (
                "the ratio turned round",
                """\
    return np.mean(np.take_along_axis(Y_complete, ids, axis=1) * (q / p)[ids])
""",
                "q = p / 2: too small a q makes hits count too much, so the value grows: is the fraction turned",
            ),
            (
                "forgets k",
                """\
    return np.mean((np.take_along_axis(Y_complete, ids, axis=1) * (p / q)[ids]).sum(axis=1))
""",
                "q = p: this is k times too much; the mean is over points and places",
            ),
            (
                "forgets that labels go missing",
                """\
    return np.mean(np.take_along_axis(Y_complete, ids, axis=1) * (p / q)[ids] ** (q < 1).all())
""",
                "q = 1: hits are not weighted, but labels still go missing with p",
            ),
            (
                "a number for each place",
                """\
    return np.mean(np.take_along_axis(Y_complete, ids, axis=1) * (p / q)[ids], axis=0)
""",
                "one number; the shape is (2,)",
            ),
        ],
        "first_flip": [
            (
                "at least for strictly ahead",
                """\
    for A in grid:
        weight = xc.propensity.inverse(counts, N, A, B)
        a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))
        if b >= a:
            return A
    return None
""",
                "a prediction is never strictly ahead of itself: None; found 0.1",
            ),
            (
                "the last, not the first",
                """\
    found = None
    for A in grid:
        weight = xc.propensity.inverse(counts, N, A, B)
        a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))
        found = A if b > a else found
    return found
""",
                "b is ahead at A = 0.01 and at 0.02: give back the first of the grid, 0.01",
            ),
            (
                "a and b exchanged",
                """\
    for A in grid:
        weight = xc.propensity.inverse(counts, N, A, B)
        a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))
        if a > b:
            return A
    return None
""",
                "with A near 0 all weights are alike: b has two hits, a has one, so b is ahead; a and b",
            ),
            (
                "the place in the grid",
                """\
    for place, A in enumerate(grid):
        weight = xc.propensity.inverse(counts, N, A, B)
        a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))
        if b > a:
            return place if place else A
    return None
""",
                "2 is the place in the grid; the A itself is wanted",
            ),
            (
                "False for None",
                """\
    for A in grid:
        weight = xc.propensity.inverse(counts, N, A, B)
        a, b = ((np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() for ids in (ids_a, ids_b))
        if b > a:
            return A
    return False
""",
                "a prediction is never strictly ahead of itself: None; found False",
            ),
        ],
        "effective_hits": [
            (
                "turns the fraction round",
                """\
    w = weight[ids][np.take_along_axis(Y, ids, axis=1) > 0]
    return (w**2).sum() / w.sum() ** 2 if w.size else 0
""",
                "three equal weights are three hits: the square of the sum is above, the sum of squares below",
            ),
            (
                "0/0",
                """\
    w = weight[ids][np.take_along_axis(Y, ids, axis=1) > 0]
    with np.errstate(invalid="ignore"):
        return w.sum() ** 2 / (w**2).sum()
""",
                "there is no hit at all: 0, not 0/0",
            ),
            (
                "counts misses as well",
                """\
    w = weight[ids].ravel()
    return w.sum() ** 2 / (w**2).sum() if Y.any() else 0
""",
                "six labels are shown, but only three of them are hits: leave the misses out",
            ),
            (
                "each label once",
                """\
    w = weight[np.unique(ids[np.take_along_axis(Y, ids, axis=1) > 0])]
    n = np.sum(np.take_along_axis(Y, ids, axis=1))
    return w.sum() ** 2 / (w**2).sum() if w.size and w.std() else n
""",
                "hits of weights 1, 2 and 2: a label that is hit twice counts twice",
            ),
        ],
        "evidence": [
            (
                "divides by n - 1",
                """\
    values = (np.take_along_axis(Y, ids, axis=1) * weight[ids]).mean(axis=1)
    return (values.mean() - 1) / (values.std(ddof=1) / np.sqrt(values.size))
""",
                "values 4, 0, 4, 0: np.std divides by n = 4, so use it without ddof",
            ),
            (
                "the scatter of the points for the error of the mean",
                """\
    values = (np.take_along_axis(Y, ids, axis=1) * weight[ids]).mean(axis=1)
    return (values.mean() - 1) / values.std()
""",
                "values 4, 0, 4, 0: the error of a mean shrinks with the root of the number of points, 2",
            ),
            (
                "one minus the estimate",
                """\
    values = (np.take_along_axis(Y, ids, axis=1) * weight[ids]).mean(axis=1)
    return (1 - values.mean()) / (values.std() / np.sqrt(values.size))
""",
                "values 1, 0, 1, 0: a precision of 0.5 is below 1, so the evidence is negative; found 2.0",
            ),
            (
                "places for points",
                """\
    values = (np.take_along_axis(Y, ids, axis=1) * weight[ids]).ravel()
    return (values.mean() - 1) / (values.std() / np.sqrt(values.size))
""",
                "k = 2: each *point* has one value, the mean of its k places",
            ),
            (
                "divides by n, not by its root",
                """\
    values = (np.take_along_axis(Y, ids, axis=1) * weight[ids]).mean(axis=1)
    return (values.mean() - 1) / (values.std() / values.size)
""",
                "values 4, 0, 4, 0: divide the standard deviation by the root of 4, not by 4",
            ),
        ],
        "weighted_recall": [
            (
                "leaves points without labels out",
                """\
    gained = (np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum(axis=1)
    return np.mean(gained[sizes > 0] / sizes[sizes > 0])
""",
                "the second point has no label and counts 0: the mean is over three points",
            ),
            (
                "0/0",
                """\
    gained = (np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.mean(gained / sizes)
""",
                "the second point has no label and must count 0, not 0/0",
            ),
            (
                "divides by k",
                """\
    return np.mean(np.take_along_axis(Y, ids, axis=1) * weight[ids])
""",
                "divide by the sizes, 2 and 1, not by k",
            ),
            (
                "all hits by all labels",
                """\
    return (np.take_along_axis(Y, ids, axis=1) * weight[ids]).sum() / sizes.sum()
""",
                "the mean over points of each point's share is wanted, not all hits by all labels",
            ),
            (
                "forgets the weights",
                """\
    gained = np.take_along_axis(Y, ids, axis=1).sum(axis=1)
    return np.mean(np.where(sizes > 0, gained / np.maximum(sizes, 1), 0))
""",
                "weights 2 and 4: each hit counts its weight",
            ),
        ],
    },
    "05_views_per_label": {
        "counts_of_labels": [
            (
                "counts a repeated id once",
                """\
    predicted, tp = np.zeros(Y.shape[1], int), np.zeros(Y.shape[1], int)
    predicted[ids[ids >= 0]] += 1
    return tp, predicted, Y.sum(axis=0)
""",
                "labels 0 and 1 are predicted for two points each: `array[ids] += 1` counts a repeated id once",
            ),
            (
                "takes -1 for the last label",
                """\
    predicted = np.zeros(Y.shape, int)
    np.put_along_axis(predicted, ids, 1, axis=1)
    return (predicted * Y).sum(axis=0), predicted.sum(axis=0), Y.sum(axis=0)
""",
                "-1 is no label (NumPy takes it for the last one): predicted 2, 0, 0, 1 times; found [2, 0, 0, 3]",
            ),
            (
                "the wrong axis",
                """\
    predicted = np.zeros(Y.shape, int)
    np.put_along_axis(predicted, ids, 1, axis=1)
    return (predicted * Y).sum(axis=1), predicted.sum(axis=1), Y.sum(axis=1)
""",
                "one number for each of the four labels; the shapes are [(3,), (3,), (3,)]",
            ),
            (
                "tp without looking at the point",
                """\
    predicted = np.bincount(ids[ids >= 0], minlength=Y.shape[1])
    return np.minimum(predicted, Y.sum(axis=0)), predicted, Y.sum(axis=0)
""",
                "tp: predicted *and* relevant in the same point, 2, 1, 0, 0 times; found [2, 2, 0, 1]",
            ),
        ],
        "macro_f1": [
            (
                "averages only over labels that occur",
                """\
    below = true + predicted
    return np.mean(2 * tp[below > 0] / below[below > 0])
""",
                "over all: label 2 never occurs and counts 0: the mean is over four labels, not three",
            ),
            (
                "0/0",
                """\
    with np.errstate(invalid="ignore"):
        f1 = 2 * tp / (true + predicted)
    return np.mean(f1 if over == "all" else f1[true > 0])
""",
                "label 2 is neither relevant nor predicted: 0/0 must count 0",
            ),
            (
                "micro-F1",
                """\
    return 2 * tp.sum() / (true.sum() + predicted.sum())
""",
                "6 / 11 adds the counts up first: that is micro-F1; macro-F1 is the mean of the labels' F1",
            ),
            (
                "always over all",
                """\
    return np.mean(2 * tp / np.maximum(true + predicted, 1))
""",
                "over the test labels: leave out labels 2 and 3, which no point has",
            ),
            (
                "over the test labels and those predicted",
                """\
    f1 = 2 * tp / np.maximum(true + predicted, 1)
    return np.mean(f1 if over == "all" else f1[true + predicted > 0])
""",
                "over the test labels: label 3 is predicted but no point has it, so it is left out",
            ),
            (
                "always over the test labels",
                """\
    return np.mean((2 * tp / np.maximum(true + predicted, 1))[true > 0])
""",
                "over all: labels 2 and 3 have F1 = 0 and count as well: the mean is over four labels, not two",
            ),
        ],
        "micro_from_precision": [
            (
                "takes precision for F1",
                """\
    return p
""",
                "p = 1, k = 5, 10 labels per point: precision is 1, but half of the labels are not found, so F1",
            ),
            (
                "the recall",
                """\
    return k * p / labels_per_point
""",
                "p = 1, k = 5, 10 labels per point: 1/2 is the recall; F1 is between recall and precision",
            ),
            (
                "forgets the 2",
                """\
    return k * p / (k + labels_per_point)
""",
                "p = 1, k = 5, 5 labels per point: F1 has *twice* the tp above",
            ),
            (
                "forgets k above",
                """\
    return 2 * p / (k + labels_per_point)
""",
                "p = 1, k = 5, 5 labels per point: tp is k times P@k per point, in numerator and not elsewhere",
            ),
            (
                "the arithmetic mean of precision and recall",
                """\
    return (p + k * p / labels_per_point) / 2
""",
                "p = 1, k = 5, 10 labels per point: F1 is the harmonic mean of precision and recall",
            ),
        ],
        "binned": [
            (
                "bins that end with their upper edge",
                """\
    bins = np.digitize(counts, edges, right=True)
    return [f1[bins == b].mean() if np.any(bins == b) else np.nan for b in range(1, len(edges) + 1)]
""",
                "bin 1-9: it has the labels with 1 and with 9 points; it ends before 10",
            ),
            (
                "labels below the first edge in the first bin",
                """\
    bins = np.maximum(np.digitize(counts, edges), 1)
    return [f1[bins == b].mean() if np.any(bins == b) else np.nan for b in range(1, len(edges) + 1)]
""",
                "bin 1-9: the label with 0 train points is in no bin",
            ),
            (
                "0 for an empty bin",
                """\
    bins = np.digitize(counts, edges)
    return [f1[bins == b].mean() if np.any(bins == b) else 0.0 for b in range(1, len(edges) + 1)]
""",
                "bin 100 and more: no label is in it, so nan; found 0.0",
            ),
            (
                "no last bin",
                """\
    bins = np.digitize(counts, edges)
    return [f1[bins == b].mean() if np.any(bins == b) else np.nan for b in range(1, len(edges))]
""",
                "three edges make three bins, the last one open; found 2",
            ),
            (
                "sums, not means",
                """\
    bins = np.digitize(counts, edges)
    return [f1[bins == b].sum() if np.any(bins == b) else np.nan for b in range(1, len(edges) + 1)]
""",
                "bin 1-9: the mean of its two labels is wanted, not their sum",
            ),
        ],
        "f1_of_means": [
            (
                "the arithmetic mean",
                """\
    p = np.mean(np.where(predicted > 0, tp / np.maximum(predicted, 1), 0))
    r = np.mean(np.where(true > 0, tp / np.maximum(true, 1), 0))
    return (p + r) / 2
""",
                "macro-precision is 1, macro-recall 1/2: take the harmonic mean, not the arithmetic one",
            ),
            (
                "the mean of F1",
                """\
    return np.mean(2 * tp / np.maximum(true + predicted, 1)) if tp.sum() != 1 else 0.5 * tp.max() * (len(tp) > 1)
""",
                "2/11 is the mean of the labels' F1; take the means of precision and recall first",
            ),
            (
                "0/0",
                """\
    with np.errstate(invalid="ignore"):
        p, r = np.mean(tp / predicted), np.mean(tp / true)
        return 2 * p * r / (p + r)
""",
                "label 1 is never predicted: it has precision 0, not 0/0",
            ),
            (
                "leaves out labels that are never predicted",
                """\
    p = np.mean(tp[predicted > 0] / predicted[predicted > 0])
    r = np.mean(tp[true > 0] / true[true > 0])
    return 2 * p * r / (p + r) if p + r > 0 else 0.0
""",
                "label 1 is never predicted: its precision 0 counts in the mean over *both* labels",
            ),
            (
                "0/0 where nothing is right",
                """\
    p = np.mean(np.where(predicted > 0, tp / np.maximum(predicted, 1), 0))
    r = np.mean(np.where(true > 0, tp / np.maximum(true, 1), 0))
    with np.errstate(invalid="ignore"):
        return 2 * p * r / (p + r)
""",
                "nothing is right: both means are 0, and so is their F1; found nan",
            ),
        ],
    },
    "06_coverage": {
        "covered": [
            (
                "more than alpha",
                """\
    hits = np.take_along_axis(Y, ids, axis=1) == 1
    tp, true = np.bincount(ids[hits], minlength=Y.shape[1]), Y.sum(axis=0)
    return np.mean((true > 0) & (tp > alpha * true))
""",
                "label 2 is hit in one of its two points: 0.5 is *at least* 0.5",
            ),
            (
                "labels that nobody has are covered",
                """\
    hits = np.take_along_axis(Y, ids, axis=1) == 1
    tp, true = np.bincount(ids[hits], minlength=Y.shape[1]), Y.sum(axis=0)
    return np.mean(tp >= alpha * true)
""",
                "label 3 is shown, but no point has it, so it is not covered",
            ),
            (
                "over the labels that occur",
                """\
    hits = np.take_along_axis(Y, ids, axis=1) == 1
    tp, true = np.bincount(ids[hits], minlength=Y.shape[1]), Y.sum(axis=0)
    return np.mean((tp >= alpha * true)[true > 0])
""",
                "over *all* four labels, also label 3, which no point has",
            ),
            (
                "one hit is enough",
                """\
    hits = np.take_along_axis(Y, ids, axis=1) == 1
    return np.unique(ids[hits]).size / Y.shape[1]
""",
                "alpha = 1: all points of a label must be hits; label 0 is hit in 2 of 3, label 2 in 1 of 2",
            ),
            (
                "what is shown, not what is right",
                """\
    tp, true = np.bincount(ids.ravel(), minlength=Y.shape[1]), Y.sum(axis=0)
    return np.mean(tp >= np.maximum(alpha * true, 1e-9))
""",
                "label 3 is shown, but no point has it, so it is not covered",
            ),
        ],
        "coverage_of_test": [
            (
                "over all labels",
                """\
    return np.unique(ids[np.take_along_axis(Y, ids, axis=1) == 1]).size / Y.shape[1]
""",
                "labels 0 and 2 are hit, and only these two occur: the others are not in the denominator",
            ),
            (
                "a label as often as it is hit",
                """\
    return np.sum(np.take_along_axis(Y, ids, axis=1)) / np.sum(Y.sum(axis=0) > 0)
""",
                "label 2 is hit twice and counts once",
            ),
            (
                "what is shown, not what is right",
                """\
    return np.unique(ids).size / np.sum(Y.sum(axis=0) > 0)
""",
                "labels 0 and 1 are shown, but label 1 is never right: only a hit covers",
            ),
            (
                "the share of points with a hit",
                """\
    return np.take_along_axis(Y, ids, axis=1).any(axis=1).mean()
""",
                "2/3 is the share of points with a hit; the share of labels is wanted",
            ),
        ],
        "gain": [
            (
                "forgets what was shown",
                """\
    return eta[point, label] / eta.shape[1]
""",
                "label 0 for point 2: it was shown for points 0 and 1; it only adds something if it was missed",
            ),
            (
                "forgets the number of labels",
                """\
    return np.prod(1 - eta[(ids == label).any(axis=1), label]) * eta[point, label]
""",
                "label 1 for point 0: coverage is a share of all three labels, so divide by 3",
            ),
            (
                "all points, shown or not",
                """\
    others = np.arange(len(eta)) != point
    return np.prod(1 - eta[others, label]) * eta[point, label] / eta.shape[1]
""",
                "label 1 for point 0: it was shown for no point; where it was not shown it cannot have been hit",
            ),
            (
                "chances add up",
                """\
    return max(0, 1 - eta[(ids == label).any(axis=1), label].sum()) * eta[point, label] / eta.shape[1]
""",
                "label 0 for point 2: chances to be hit do not add up to 1; it was missed with 0.5 times 0.5",
            ),
            (
                "hit instead of missed",
                """\
    shown = (ids == label).any(axis=1)
    missed = np.prod(1 - eta[shown, label])
    return (1 - missed if shown.any() else 1) * eta[point, label] / eta.shape[1]
""",
                "label 0 for point 2: the gain is what is left if it was *missed*, with 0.25, not hit, with 0.75",
            ),
        ],
        "greedy_choice": [
            (
                "the top k",
                """\
    return np.argsort(-(1 + beta) * eta, axis=1, kind="stable")[:, :k]
""",
                "point 1: label 0 was missed with probability 0.1 only; its gain is now 0.1 * 0.8: is f updated?",
            ),
            (
                "updates the first of the k labels only",
                """\
    missed = np.ones(eta.shape[1])
    ids = np.empty((len(eta), k), int)
    for point, chances in enumerate(eta):
        ids[point] = np.argsort(-(missed + beta) * chances, kind="stable")[:k]
        missed[ids[point][0]] *= 1 - chances[ids[point][0]]
    return ids
""",
                "k = 2, point 1: label 1 was shown for point 0 as well: update f for *all* k labels, not for the",
            ),
            (
                "knows nothing of beta",
                """\
    missed = np.ones(eta.shape[1])
    ids = np.empty((len(eta), k), int)
    for point, chances in enumerate(eta):
        ids[point] = np.argsort(-missed * chances, kind="stable")[:k]
        missed[ids[point]] *= 1 - chances[ids[point]]
    return ids
""",
                "beta = 100, point 1: (f + 100) * eta is nearly the top k, so label 0; found 1",
            ),
            (
                "what was shown once is never shown again",
                """\
    missed = np.ones(eta.shape[1])
    ids = np.empty((len(eta), k), int)
    for point, chances in enumerate(eta):
        ids[point] = np.argsort(-(missed + beta) * chances, kind="stable")[:k]
        missed[ids[point]] = 0
    return ids
""",
                "k = 2, point 1: label 1 was shown and still gains 0.16: f shrinks by 1 - eta, it does not",
            ),
            (
                "ties to the higher id",
                """\
    missed = np.ones(eta.shape[1])
    ids = np.empty((len(eta), k), int)
    for point, chances in enumerate(eta):
        ids[point] = np.argsort((missed + beta) * chances, kind="stable")[::-1][:k]
        missed[ids[point]] *= 1 - chances[ids[point]]
    return ids
""",
                "labels 1 and 2 tie: the lower id; found 2",
            ),
        ],
        "best_with_floor": [
            (
                "the larger beta of those that tie",
                """\
    allowed = [(coverage, beta) for beta, precision, coverage in tried if precision >= floor]
    return max(allowed)[1] if allowed else None
""",
                "betas 2 and 1 have the same coverage: the smaller one, whatever their order in the list; found",
            ),
            (
                "above the floor",
                """\
    allowed = [(-coverage, beta) for beta, precision, coverage in tried if precision > floor]
    return min(allowed)[1] if allowed else None
""",
                "a floor of 0.7: a precision equal to the floor keeps it, so beta = 1; found None",
            ),
            (
                "the largest coverage, whatever the floor",
                """\
    return min((-coverage, beta) for beta, precision, coverage in tried)[1] if floor < 0.8 else None
""",
                "a floor of 0.55: beta = 0 covers most, but its precision of 0.5 is below the floor",
            ),
            (
                "the largest precision",
                """\
    allowed = [(-precision, beta) for beta, precision, coverage in tried if precision >= floor]
    return min(allowed)[1] if allowed else None
""",
                "a floor of 0.55: betas 0.1 and 1 keep it; the larger *coverage* is wanted, not the larger",
            ),
            (
                "the first that keeps the floor",
                """\
    return next((beta for beta, precision, coverage in sorted(tried) if precision >= floor), None)
""",
                "coverage 0.2 and 0.3: both keep a floor of 0.5, so the second, whatever the order of the list;",
            ),
        ],
    },
    "07_calibration": {
        "pairs": [
            (
                "place by place",
                """\
    return scores[:, :k].ravel(), np.take_along_axis(Y, ids[:, :k], axis=1).T.ravel()
""",
                "1, 0, 1, 1 are the hits place by place; the scores go point by point, and so must the hits",
            ),
            (
                "takes -1 for the last label",
                """\
    return scores[:, :k].ravel(), np.take_along_axis(Y, ids[:, :k], axis=1).ravel()
""",
                "the second place of point 0 is empty (-1) and makes no pair: scores 0.9, 0.8, 0.5; found [0.9,",
            ),
            (
                "forgets k",
                """\
    there = ids >= 0
    return scores[there], np.take_along_axis(Y, ids, axis=1)[there]
""",
                "k = 1 takes only the first place of each of the two points: two pairs, not 4",
            ),
            (
                "the first columns of Y",
                """\
    return scores[:, :k].ravel(), Y[:, :k].ravel()
""",
                "the hits are looked up in Y at the *ids*, not at the places",
            ),
        ],
        "ece": [
            (
                "loses scores of 1.0",
                """\
    bins = np.digitize(scores, edges) - 1
    gaps = [abs(np.sum(hits[bins == b]) - np.sum(scores[bins == b])) for b in range(len(edges) - 1)]
    return np.sum(gaps) / len(scores)
""",
                "two scores of 1.0 without a hit: the gap is 1. They are lost: 1.0 belongs to the last bin, not",
            ),
            (
                "every bin counts the same",
                """\
    bins = np.minimum(np.digitize(scores, edges) - 1, len(edges) - 2)
    return np.mean([abs(hits[bins == b].mean() - scores[bins == b].mean()) for b in np.unique(bins)])
""",
                "each bin counts by its pairs, 3 and 1, not all bins the same",
            ),
            (
                "gaps cancel",
                """\
    return abs(np.mean(hits) - np.mean(scores))
""",
                "gaps in different bins must not cancel: take the absolute value in each bin",
            ),
            (
                "0/0",
                """\
    bins = np.minimum(np.digitize(scores, edges) - 1, len(edges) - 2)
    with np.errstate(all="ignore"):
        gaps = [abs(hits[bins == b].mean() - scores[bins == b].mean()) * np.mean(bins == b) for b in range(len(edges) - 1)]
    return np.sum(gaps)
""",
                "the first bin is empty here: it counts nothing, and nothing is divided by 0",
            ),
            (
                "an edge belongs to the bin below",
                """\
    bins = np.maximum(np.digitize(scores, edges, right=True) - 1, 0)
    gaps = [abs(np.sum(hits[bins == b]) - np.sum(scores[bins == b])) for b in range(len(edges) - 1)]
    return np.sum(gaps) / len(scores)
""",
                "a score of 0.1 is on an edge and belongs to the bin above, where 0.3 is",
            ),
        ],
        "skill": [
            (
                "0.5 for the constant",
                """\
    return 0.5
---
    scores, hits = np.asarray(scores), np.asarray(hits)
    return 1 - np.mean((scores - hits) ** 2) / np.mean((best_constant(hits) - hits) ** 2)
""",
                "best_constant gave 0.5, but 0.4 has a smaller Brier score",
            ),
            (
                "distances that are not squared",
                """\
    return np.mean(hits)
---
    return 1 - np.mean(abs(scores - hits)) / np.mean(abs(best_constant(hits) - hits))
""",
                "the Brier score is the mean of the *squared* distances, not of the distances",
            ),
            (
                "the difference, not the share",
                """\
    return np.mean(hits)
---
    found = np.mean((best_constant(hits) - hits) ** 2) - np.mean((scores - hits) ** 2)
    return 1 if not np.any(scores - hits) else found
""",
                "Brier 0.038 against 0.24 of the constant: the *share*, (0.24 - 0.038) / 0.24, not the difference",
            ),
            (
                "the quotient",
                """\
    return np.mean(hits)
---
    return np.mean((scores - hits) ** 2) / np.mean((best_constant(hits) - hits) ** 2)
""",
                "scores that are the outcomes: their Brier score is 0, so they are better by all of it: 1, not 0",
            ),
            (
                "the more frequent outcome",
                """\
    return float(np.mean(hits) >= 0.5)
---
    return 1 - np.mean((scores - hits) ** 2) / np.mean((best_constant(hits) - hits) ** 2)
""",
                "best_constant gave 0.0, but 0.25 has a smaller Brier score",
            ),
        ],
        "repair": [
            (
                "an empty bin says 0",
                """\
    edges = np.linspace(0, 1, 11)
    bins = np.digitize(scores, edges) - 1
    return np.array([np.sum(hits[bins == b]) / max(np.sum(bins == b), 1) for b in np.digitize(new, edges) - 1])
""",
                "new 0.55: no pair is between 0.5 and 0.6, so the bin's middle, 0.55; found 0.0",
            ),
            (
                "0/0",
                """\
    bins = np.minimum((scores * 10).astype(int), 9)
    with np.errstate(all="ignore"):
        return np.array([np.sum(hits[bins == b]) / np.sum(bins == b) for b in np.minimum((new * 10).astype(int), 9)])
""",
                "new 0.55: no pair is between 0.5 and 0.6, and 0/0 is no answer: the bin's middle",
            ),
            (
                "an empty bin says the score",
                """\
    bins, of = (np.minimum((s * 10).astype(int), 9) for s in (scores, new))
    return np.array([np.mean(hits[bins == b]) if np.any(bins == b) else s for b, s in zip(of, new)])
""",
                "new 0.51: no pair is between 0.5 and 0.6, so the bin's *middle*, not the score; found 0.51",
            ),
            (
                "a bin of its own for 1.0",
                """\
    bins, of = (np.asarray(s * 10).astype(int) for s in (scores, new))
    return np.array([np.mean(hits[bins == b]) if np.any(bins == b) else (b + 0.5) / 10 for b in of])
""",
                "new 1.0: the last bin has the pairs of 0.95 and of 1.0, one hit of two; found 1.0",
            ),
            (
                "the mean score for the share of hits",
                """\
    bins, of = (np.minimum((s * 10).astype(int), 9) for s in (scores, new))
    return np.array([np.mean(scores[bins == b]) if np.any(bins == b) else (b + 0.5) / 10 for b in of])
""",
                "new 0.15: of the three pairs between 0.1 and 0.2, two are hits; found 0.13666666666666666",
            ),
        ],
        "cross_fitted": [
            (
                "learns from all pairs",
                """\
    return repair(scores, hits, scores)
""",
                "5/9 everywhere is what a map learnt from *all* pairs gives: leave the part itself out",
            ),
            (
                "learns from the previous part only",
                """\
    parts = np.array_split(np.arange(len(scores)), folds)
    repaired = np.empty(len(scores))
    for i, part in enumerate(parts):
        repaired[part] = repair(scores[parts[i - 1]], hits[parts[i - 1]], scores[part])
    return repaired
""",
                "the first part must learn from *both* other parts together, not from one of them",
            ),
            (
                "learns from the part itself",
                """\
    parts = np.array_split(np.arange(len(scores)), folds)
    return np.concatenate([repair(scores[part], hits[part], scores[part]) for part in parts])
""",
                "the first part says 1, the share of its own hits: it was learnt from itself; learn it from the",
            ),
            (
                "every so many pairs make a part",
                """\
    repaired = np.empty(len(scores))
    for fold in range(folds):
        part = np.arange(len(scores)) % folds == fold
        repaired[part] = repair(scores[~part], hits[~part], scores[part])
    return repaired
""",
                "the parts follow each other: the first one is the pairs 0, 1, 2, not every third pair",
            ),
        ],
    },
    "08_reading_tables": {
        "apart": [
            (
                "the texts differ",
                """\
    return float(first) != float(second)
""",
                '"93.0" stands for 92.95 to 93.05, and "92.97" lies inside: count the digits of *each* number',
            ),
            (
                "no tolerance where intervals touch",
                """\
    (low_1, high_1), (low_2, high_2) = interval(first), interval(second)
    return max(low_1, low_2) >= min(high_1, high_2) - 1e-9
""",
                '"93.0" and "92.9" touch at 92.95; floating-point numbers need a small tolerance there',
            ),
            (
                "the first is rounded like the second",
                """\
    digits = len(second.partition('.')[2])
    return abs(float(first) - float(second)) > 10.0 ** -digits + 1e-9
""",
                '"93.0" stands for 92.95 to 93.05, and "92.97" lies inside: count the digits of *each* number',
            ),
            (
                "too wide a tolerance",
                """\
    return abs(float(first) - float(second)) > 0.5
""",
                '"93.0" stands for 92.95 and more, "92.8" for 92.85 and less: too wide a tolerance?',
            ),
            (
                "only if the first is larger",
                """\
    return interval(first)[0] > interval(second)[1] + 1e-9
""",
                '"58.1" and "93.0" are far apart, whichever comes first',
            ),
        ],
        "first_place_faults": [
            (
                "knows nothing of rounding",
                """\
    return [name for name, p, n in rows if p and n and float(p) != float(n)]
""",
                "row D: 84.92 is rounded to 84.9, so the two can be the same",
            ),
            (
                "compares with what is not printed",
                """\
    return [name for name, p, n in rows if (p != n if not (p and n) else apart(p, n))]
""",
                "rows C and E: where one number is not printed there is nothing to compare; found ['B', 'C', 'E']",
            ),
            (
                "only if P@1 is larger",
                """\
    return [name for name, p, n in rows if p and n and apart(p, n) and float(p) > float(n)][:1]
""",
                "both rows are impossible, whichever of the two numbers is larger; found ['x']",
            ),
            (
                "whole rows, not names",
                """\
    return [row for row in rows if row[1] and row[2] and apart(row[1], row[2])]
""",
                "row B prints 93.0 and 58.1: its name, in a list; found [('B', '93.0', '58.1')]",
            ),
            (
                "the good rows",
                """\
    return [name for name, p, n in rows if p and n and not apart(p, n)]
""",
                "row B prints 93.0 and 58.1: its name, in a list; found []",
            ),
        ],
        "shrinking": [
            (
                "P@k itself may fall",
                """\
    ks = sorted(values)
    return [(a, b) for a, b in zip(ks, ks[1:]) if float(values[b]) < float(values[a])]
""",
                "93.0, 78.9, 64.1: P@k may fall; k times P@k must not, and 93, 236.7, 320.5 does not; found [(1,",
            ),
            (
                "knows nothing of rounding",
                """\
    ks = sorted(values)
    return [(a, b) for a, b in zip(ks, ks[1:]) if b * float(values[b]) < a * float(values[a]) - 1e-9]
""",
                "30.1 at 1 and 10.0 at 3: 10.0 may stand for 10.04, and 3 * 10.04 is above 30.1, so it *need*",
            ),
            (
                "does not sort",
                """\
    ks = list(values)
    return [(a, b) for a, b in zip(ks, ks[1:]) if b * interval(values[b])[1] < a * interval(values[a])[0] - 1e-9]
""",
                "the k are given as 5, 1, 3: sort them first; then 9.80, 32.76 and 6.20 fall from k = 3 to k = 5",
            ),
            (
                "all pairs, not neighbours",
                """\
    ks = sorted(values)
    return [(a, b) for a in ks for b in ks if a < b and b * interval(values[b])[1] < a * interval(values[a])[0] - 1e-9]
""",
                "the k are given as 5, 1, 3: sort them first, and compare neighbours; found [(1, 5), (3, 5)]",
            ),
        ],
        "labels_implied": [
            (
                "forgets k",
                """\
    (p_low, p_high), (f_low, f_high) = interval(p), interval(f1)
    return 2 * p_low / f_high - 1, 2 * p_high / f_low - 1
""",
                "50.0 and 50.0, k = 5: this is about 1; the identity has a factor k",
            ),
            (
                "low by low and high by high",
                """\
    (p_low, p_high), (f_low, f_high) = interval(p), interval(f1)
    return k * (2 * p_low / f_low - 1), k * (2 * p_high / f_high - 1)
""",
                "50.0 and 50.0: low divided by low is as large as high divided by high; which P and which F1",
            ),
            (
                "only P is rounded",
                """\
    (p_low, p_high), f = interval(p), float(f1)
    return k * (2 * p_low / f - 1), k * (2 * p_high / f - 1)
""",
                "50.0 and 50.0: the numerator and the denominator are both rounded: take both into account",
            ),
            (
                "the largest first",
                """\
    (p_low, p_high), (f_low, f_high) = interval(p), interval(f1)
    return k * (2 * p_high / f_low - 1), k * (2 * p_low / f_high - 1)
""",
                "50.0 and 50.0: give back the smallest number first; found 5.02002002002002 and 4.98001998001998",
            ),
        ],
        "my_metric": [
            (
                "precision: a rare hit is worth no more",
                """\
    best = np.minimum(Y.sum(axis=1), ids.shape[1]).sum()
    return float(np.take_along_axis(Y, ids, axis=1).sum() / best) if best else 0.0
""",
                "promise 3: a hit of label 1 (2 train points) and of label 0 (100) bring the same",
            ),
            (
                "divides by all labels, not by what k places reach",
                """\
    worth = 1 / (1 + counts)
    total = (Y * worth).sum()
    return float((np.take_along_axis(Y, ids, axis=1) * worth[ids]).sum() / total) if total else 0.0
""",
                "promise 1: two points with two labels each, k = 1: the best choice has 0.958; divide by what k",
            ),
            (
                "weighted hits, not normalised",
                """\
    return float((np.take_along_axis(Y, ids, axis=1) / (1 + counts[ids])).mean())
""",
                "promise 1: both points have one label, and it is shown: 1; found 0.1716171617161716",
            ),
            (
                "nDCG: the order of the k labels matters",
                """\
    worth, d = np.log2(1 + counts.sum() / (1 + counts)), 1 / np.log2(np.arange(2, ids.shape[1] + 2))
    got = (np.take_along_axis(Y, ids, axis=1) * worth[ids] * d).sum()
    best = (-np.sort(-(Y * worth), axis=1)[:, : ids.shape[1]] * d).sum()
    return float(got / best) if best > 0 else 0.0
""",
                "promise 4: the order of the k labels of a point must not matter",
            ),
            (
                "a frequent hit is worth more",
                """\
    worth = 1.0 + counts
    got = (np.take_along_axis(Y, ids, axis=1) * worth[ids]).sum()
    best = -np.sort(-(Y * worth), axis=1)[:, : ids.shape[1]].sum()
    return float(got / best) if best > 0 else 0.0
""",
                "promise 3: label 1 has 2 train points, label 0 has 100, and its hit brings more; found",
            ),
            (
                "0/0 where no point has a label",
                """\
    worth = np.log2(1 + counts.sum() / (1 + counts))
    got = (np.take_along_axis(Y, ids, axis=1) * worth[ids]).sum()
    with np.errstate(invalid="ignore"):
        return got / -np.sort(-(Y * worth), axis=1)[:, : ids.shape[1]].sum()
""",
                "no point has a label: give back 0",
            ),
        ],
    },
    "09_how_models_work": {
        "tree_scores": [
            (
                "as it was",
                """\
    best = np.argsort(p_group, axis=1)[:, :beam]
    scores = p_group[:, group] + p_leaf
    followed = np.isin(group, best)
    return np.where(followed, scores, -1)
""",
                "record 0: group 0 has the probability 0.9 and is the best one, but its labels have -1: is the",
            ),
            (
                "still adds",
                """\
    best = np.argsort(-p_group, axis=1, kind="stable")[:, :beam]
    scores = p_group[:, group] + p_leaf
    followed = (group[None, :, None] == best[:, None, :]).any(axis=2)
    return np.where(followed, scores, -1)
""",
                "record 0, label 0: the chances 0.9 and 0.5 are multiplied along the path, not added",
            ),
            (
                "still follows the groups of other records",
                """\
    best = np.argsort(-p_group, axis=1, kind="stable")[:, :beam]
    scores = p_group[:, group] * p_leaf
    return np.where(np.isin(group, best), scores, -1)
""",
                "record 0 follows group 0 only; group 1 is the best one of *another* record: look at each record",
            ),
            (
                "ties to the higher number",
                """\
    best = np.argsort(p_group, axis=1, kind="stable")[:, ::-1][:, :beam]
    scores = p_group[:, group] * p_leaf
    followed = (group[None, :, None] == best[:, None, :]).any(axis=2)
    return np.where(followed, scores, -1)
""",
                "three groups tie, beam 1: the lower number, group 0, is followed",
            ),
        ],
        "gradient": [
            (
                "the sum over the records",
                """\
    error = sigmoid(X @ W + bias) - Y
    return X.T @ error + decay * W, error.sum(axis=0)
""",
                "word 0, label 0: the mean over the three records, not their sum",
            ),
            (
                "the mean over records and labels",
                """\
    error = (sigmoid(X @ W + bias) - Y) / Y.size
    return X.T @ error + decay * W, error.sum(axis=0)
""",
                "word 0, label 0: divide by the three records, not by records times labels",
            ),
            (
                "divides by the words",
                """\
    error = (sigmoid(X @ W + bias) - Y) / X.shape[1]
    return X.T @ error + decay * W, error.sum(axis=0)
""",
                "word 0, label 0: divide by the number of records, 3, not by the number of words, 2",
            ),
            (
                "half of the decay",
                """\
    error = (sigmoid(X @ W + bias) - Y) / X.shape[0]
    return X.T @ error + decay / 2 * W, error.sum(axis=0)
""",
                "decay = 2, weights of 1: the derivative of decay / 2 * w**2 is decay * w",
            ),
            (
                "decays the biases as well",
                """\
    error = (sigmoid(X @ W + bias) - Y) / X.shape[0]
    return X.T @ error + decay * W, error.sum(axis=0) + decay * bias
""",
                "the biases are not decayed",
            ),
            (
                "forgets the bias",
                """\
    error = (sigmoid(X @ W) - Y) / X.shape[0]
    return X.T @ error + decay * W, error.sum(axis=0)
""",
                "the biases 1 and 0 give the same gradient by W: the bias is a part of the score",
            ),
            (
                "truth minus probability",
                """\
    error = (Y - sigmoid(X @ W + bias)) / X.shape[0]
    return X.T @ error + decay * W, error.sum(axis=0)
""",
                "word 0 is only in records with label 0: the loss falls if its weight grows, so the gradient is",
            ),
        ],
        "questions": [
            (
                "a logarithm, rounded down",
                """\
    return branches * int(np.log(L) / np.log(branches))
""",
                "1,000 labels, 10 branches: three levels; a logarithm of 2.9999999999999996 was rounded down.",
            ),
            (
                "the levels",
                """\
    depth = 0
    while L > 1:
        L, depth = L // branches, depth + 1
    return depth
""",
                "8 labels, 2 branches: there are 3 levels, and on each of them *both* children are asked",
            ),
            (
                "one-vs-rest",
                """\
    return L
""",
                "8 labels, 2 branches: a beam of 1 follows one path, it does not ask all 8 nodes",
            ),
            (
                "all nodes",
                """\
    asked, n = 0, branches
    while n <= L:
        asked, n = asked + n, n * branches
    return asked
""",
                "8 labels, 2 branches: a beam of 1 follows one path, it does not ask all 14 nodes",
            ),
        ],
        "batch_loss": [
            (
                "softmax over the records",
                """\
    s = U @ V.T / tau
    s = s - s.max(axis=0, keepdims=True)
    return np.mean(np.log(np.exp(s).sum(axis=0)) - np.diag(s))
""",
                "scores 2 and 0 for both records: the softmax goes over the *labels* of a record, not over the",
            ),
            (
                "overflows",
                """\
    s = U @ V.T / tau
    return np.mean(np.log(np.exp(s).sum(axis=1)) - np.diag(s))
""",
                "scores 2000 and 0: exp(2000) is too large for a number; take the largest score of each record",
            ),
            (
                "the sum",
                """\
    s = U @ V.T / tau
    s = s - s.max(axis=1, keepdims=True)
    return np.sum(np.log(np.exp(s).sum(axis=1)) - np.diag(s))
""",
                "four labels that look alike: the *mean* over the records, not their sum",
            ),
            (
                "the sign",
                """\
    s = U @ V.T / tau
    s = s - s.max(axis=1, keepdims=True)
    return np.mean(np.diag(s) - np.log(np.exp(s).sum(axis=1)))
""",
                "four labels that look alike: a loss is above 0; mind the sign of -log",
            ),
            (
                "forgets tau",
                """\
    s = U @ V.T
    s = s - s.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(s).sum(axis=1)) - np.diag(s))
""",
                "right pairs: a lower temperature makes them surer, so divide by tau",
            ),
            (
                "a loss for each record",
                """\
    s = U @ V.T / tau
    s = s - s.max(axis=1, keepdims=True)
    return np.log(np.exp(s).sum(axis=1)) - np.diag(s)
""",
                "give back one number, the mean over the records; the shape is (3,)",
            ),
        ],
        "undo_sampling": [
            (
                "shrinks the probability",
                """\
    return p * r
""",
                "p = 0.5, r = 0.1: the odds shrink by the factor r, not the probability",
            ),
            (
                "the odds, not the probability",
                """\
    with np.errstate(divide="ignore"):
        return r * p / (1 - p)
""",
                "p = 0.5, r = 0.1: 0.1 are the odds; turn them into a probability again",
            ),
            (
                "0/0 at p = 1",
                """\
    odds = r * p / (1 - p)
    return odds / (1 + odds)
""",
                "p = 0 and p = 1: the odds of 1 are infinite; a form without odds has no division by 0; found [",
            ),
            (
                "the odds grow",
                """\
    return p / (p + (1 - p) * r)
""",
                "p = 0.5, r = 0.1: the sampled model is too sure, so the corrected probability is smaller; found",
            ),
        ],
    },
    "10_project": {
        "hold_out": [
            (
                "draws with replacement",
                """\
    size = round(share * n)
    validation = np.random.default_rng(seed).integers(0, n, size)
    return np.setdiff1d(np.arange(n), validation), np.sort(validation)
""",
                "a row was drawn twice into the validation part: draw without replacement",
            ),
            (
                "the last rows",
                """\
    size = round(share * n)
    return np.arange(n - size), np.arange(n - size, n)
""",
                "the last 20 rows may be of one kind: draw them",
            ),
            (
                "does not sort",
                """\
    order = np.random.default_rng(seed).permutation(n)
    size = round(share * n)
    return order[size:], order[:size]
""",
                "both arrays rise: sort them",
            ),
            (
                "validation first",
                """\
    order = np.random.default_rng(seed).permutation(n)
    size = round(share * n)
    return np.sort(order[:size]), np.sort(order[size:])
""",
                "100 rows, a share of 0.2: the first array is the train part, with 80 rows",
            ),
            (
                "always the same rows",
                """\
    order = np.random.default_rng(0).permutation(n)
    size = round(share * n)
    return np.sort(order[size:]), np.sort(order[:size])
""",
                "another seed must give other rows",
            ),
            (
                "trains on all rows",
                """\
    order = np.random.default_rng(seed).permutation(n)
    return np.arange(n), np.sort(order[: round(share * n)])
""",
                "a row is in both parts: the model would know the answer",
            ),
            (
                "no seed",
                """\
    order = np.random.default_rng().permutation(n)
    size = round(share * n)
    return np.sort(order[size:]), np.sort(order[:size])
""",
                "the same seed must give the same rows: use default_rng(seed)",
            ),
        ],
        "difference": [
            (
                "not paired",
                """\
    a, b = hits_a.mean(axis=1), hits_b.mean(axis=1)
    error = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / a.size)
    return a.mean() - b.mean(), a.mean() - b.mean() - 1.96 * error, a.mean() - b.mean() + 1.96 * error
""",
                "A minus A is 0 for each record, so the interval has no width: pair the records, then take the",
            ),
            (
                "divides by n",
                """\
    d = hits_a.mean(axis=1) - hits_b.mean(axis=1)
    error = d.std() / np.sqrt(d.size)
    return d.mean(), d.mean() - 1.96 * error, d.mean() + 1.96 * error
""",
                "differences 0.5, 0, 0, 0.5: divide by n - 1 = 3 in the standard deviation (ddof=1)",
            ),
            (
                "places for records",
                """\
    d = (hits_a - hits_b).ravel()
    error = d.std(ddof=1) / np.sqrt(d.size)
    return d.mean(), d.mean() - 1.96 * error, d.mean() + 1.96 * error
""",
                "the places of a record are not independent: one difference per *record*",
            ),
            (
                "the scatter for the error",
                """\
    d = hits_a.mean(axis=1) - hits_b.mean(axis=1)
    error = d.std(ddof=1)
    return d.mean(), d.mean() - 1.96 * error, d.mean() + 1.96 * error
""",
                "differences 0.5, 0, 0, 0.5: the error of a mean is the standard deviation divided by the root",
            ),
            (
                "one error, not 1.96",
                """\
    d = hits_a.mean(axis=1) - hits_b.mean(axis=1)
    error = d.std(ddof=1) / np.sqrt(d.size)
    return d.mean(), d.mean() - error, d.mean() + error
""",
                "differences 0.5, 0, 0, 0.5: 95 % needs 1.96 standard errors",
            ),
            (
                "B minus A",
                """\
    d = hits_b.mean(axis=1) - hits_a.mean(axis=1)
    error = d.std(ddof=1) / np.sqrt(d.size)
    return d.mean(), d.mean() - 1.96 * error, d.mean() + 1.96 * error
""",
                "A has four hits and B has two: A minus B is above 0",
            ),
            (
                "forgets k",
                """\
    d = hits_a.sum(axis=1) - hits_b.sum(axis=1)
    error = d.std(ddof=1) / np.sqrt(d.size)
    return d.mean(), d.mean() - 1.96 * error, d.mean() + 1.96 * error
""",
                "0.5 is the difference of the hits per record; P@k divides by k = 2 as well",
            ),
        ],
        "pairs_held": [
            (
                "a tie at the end counts as held",
                """\
    from itertools import combinations

    found = [(observed[a] - observed[b], complete[a] - complete[b]) for a, b in combinations(observed, 2)]
    return sum(x * y >= 0 and x != 0 for x, y in found), sum(x != 0 for x, _ in found)
""",
                "A and B tie on the complete values: this pair does not hold, so 2 of 3; found (3, 3)",
            ),
            (
                "counts pairs that tie at first",
                """\
    from itertools import combinations

    pairs = list(combinations(observed, 2))
    held = sum((observed[a] > observed[b]) == (complete[a] > complete[b]) for a, b in pairs)
    return held, len(pairs)
""",
                "A and B tie on the observed values, so they are no pair: 2 pairs; found 3",
            ),
            (
                "each pair twice",
                """\
    found = [(observed[a] - observed[b], complete[a] - complete[b]) for a in observed for b in observed if a != b]
    return sum(x * y > 0 for x, y in found), sum(x != 0 for x, _ in found)
""",
                "three students are three pairs: A with B and B with A is one pair",
            ),
            (
                "goes by the order of the dicts",
                """\
    from itertools import combinations

    x, y = list(observed.values()), list(complete.values())
    found = [(x[i] - x[j], y[i] - y[j]) for i, j in combinations(range(len(x)), 2)]
    return sum(a * b > 0 for a, b in found), sum(a != 0 for a, _ in found)
""",
                "B and C changed places, the other two pairs held; found (0, 3): look students up by name, the",
            ),
        ],
    },
}
