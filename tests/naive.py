"""The slow oracles: each metric from its definition, in plain Python over lists and sets, nothing shared with the package.

Truth is a list of sets of label ids; predictions a list of lists of label ids, best first.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from xcrepro.core.predictions import TopK


def ranked(scores: dict[int, float], k: int) -> list[int]:
    """The k best labels of {label: score}: best first, ties to the lowest id."""
    return sorted(scores, key=lambda label: (-scores[label], label))[:k]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def precision(truth, ranking, k):
    return mean([len(y & set(r[:k])) / k for y, r in zip(truth, ranking, strict=True)])


def recall(truth, ranking, k):
    return mean([len(y & set(r[:k])) / len(y) if y else 0.0 for y, r in zip(truth, ranking, strict=True)])


def average_precision(truth, ranking, k):
    rows = []
    for y, r in zip(truth, ranking, strict=True):
        hits = [place for place, label in enumerate(r[:k], 1) if label in y]
        rows.append(sum(len(y & set(r[:place])) / place for place in hits) / min(k, len(y)) if y else 0.0)
    return mean(rows)


def gain(y, r, k, weight=None):
    return sum(
        (1.0 if weight is None else weight[label]) / math.log2(place + 2)
        for place, label in enumerate(r[:k])
        if label in y
    )


def perfect(m):
    return sum(1.0 / math.log2(place + 2) for place in range(m))


def ndcg(truth, ranking, k, ideal="labels"):
    rows = []
    for y, r in zip(truth, ranking, strict=True):
        below = perfect(min(k, len(y)) if ideal == "labels" else k)
        rows.append(gain(y, r, k) / below if y else 0.0)
    return mean(rows)


def best_ranking(y, weight):
    return sorted(y, key=lambda label: -weight[label])


def psp(truth, ranking, k, weight, normalize=True):
    got = [sum(weight[label] for label in r[:k] if label in y) / k for y, r in zip(truth, ranking, strict=True)]
    if not normalize:
        return mean(got)
    best = [sum(weight[label] for label in best_ranking(y, weight)[:k]) / k for y in truth]
    return sum(got) / sum(best) if sum(best) else 0.0


def psndcg(truth, ranking, k, weight, normalize=True, ideal="labels"):
    got, best = [], []
    for y, r in zip(truth, ranking, strict=True):
        below = perfect(min(k, len(y)) if ideal == "labels" else k)
        got.append(gain(y, r, k, weight) / below if y else 0.0)
        best.append(gain(y, best_ranking(y, weight), k, weight) / below if y else 0.0)
    if not normalize:
        return mean(got)
    return sum(got) / sum(best) if sum(best) else 0.0


def orders(scores: dict[int, float]):
    """Every order of the labels of {label: score} in which better scores come first."""
    groups = [
        [label for label in scores if scores[label] == score] for score in sorted({*scores.values()}, reverse=True)
    ]
    for parts in itertools.product(*map(itertools.permutations, groups)):
        yield [label for part in parts for label in part]


def over_orders(truth, scores, value):
    """(lowest, expected, highest) sums over rows of ``value(y, ranking)``, and how many rows the order decides."""
    found = [[value(y, ranking) for ranking in orders(row)] for y, row in zip(truth, scores, strict=True)]
    sums = [sum(map(of, found)) for of in (min, mean, max)]
    return *sums, sum(max(row) - min(row) > 1e-9 for row in found)


def mrr(truth, ranking, k):
    rows = []
    for y, r in zip(truth, ranking, strict=True):
        places = [place + 1 for place, label in enumerate(r[:k]) if label in y]
        rows.append(1.0 / places[0] if places else 0.0)
    return mean(rows)


def table1b(truth, ranking, k, value, weight=None, n_relevant=None):
    """jain16 table 1 (b): (1/n) times the sum over hits of weight times value(rank)."""
    rows = []
    for i, (y, r) in enumerate(zip(truth, ranking, strict=True)):
        n = len(y) if n_relevant is None else n_relevant[i]
        total = sum(
            (1.0 if weight is None else weight[label]) * value(place + 1)
            for place, label in enumerate(r[:k])
            if label in y
        )
        rows.append(total / n if n else 0.0)
    return mean(rows)


def f_beta(truth, ranking, k, beta=1.0, denominator="set", weight=None, n_relevant=None):
    rows = []
    for i, (y, r) in enumerate(zip(truth, ranking, strict=True)):
        n = len(y) if n_relevant is None else n_relevant[i]
        total = sum(1.0 if weight is None else weight[label] for label in r[:k] if label in y)
        below = beta**2 * n + len(r[:k]) if denominator == "set" else beta**2 * (n + 1)
        rows.append((1 + beta**2) * total / below if total else 0.0)
    return mean(rows)


def hamming_loss(truth, ranking, k, n_labels, weight=None):
    rows = []
    for y, r in zip(truth, ranking, strict=True):
        total = 0.0
        for label in range(n_labels):
            true, said = float(label in y), float(label in r[:k])
            w = 1.0 if weight is None else weight[label]
            total += w * (1 - 2 * said) * true + said**2
        rows.append(total)
    return mean(rows)


def abandonment(truth, ranking, k):
    return mean([0.0 if y & set(r[:k]) else 1.0 for y, r in zip(truth, ranking, strict=True)])


def micro_f1(truth, ranking, k):
    tp = sum(len(y & set(r[:k])) for y, r in zip(truth, ranking, strict=True))
    fp = sum(len(set(r[:k]) - y) for y, r in zip(truth, ranking, strict=True))
    fn = sum(len(y - set(r[:k])) for y, r in zip(truth, ranking, strict=True))
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0


def micro_precision(truth, ranking, k):
    hits = sum(len(y & set(r[:k])) for y, r in zip(truth, ranking, strict=True))
    predicted = sum(len(r[:k]) for r in ranking)
    return hits / predicted if predicted else 0.0


def micro_recall(truth, ranking, k):
    hits = sum(len(y & set(r[:k])) for y, r in zip(truth, ranking, strict=True))
    return hits / sum(map(len, truth)) if any(truth) else 0.0


def set_precision(truth, ranking, k):
    return mean([len(y & set(r[:k])) / len(r[:k]) if r[:k] else 0.0 for y, r in zip(truth, ranking, strict=True)])


def full_ranks(y, r, k, n_labels, beyond):
    """The rank of each relevant label: its place, or the last of all, or the next ones."""
    ranks = {label: place for place, label in enumerate(r[:k], 1)}
    after = iter(range(len(r[:k]) + 1, n_labels + 1))
    return sorted(ranks[label] if label in ranks else n_labels if beyond == "last" else next(after) for label in y)


def lrap(truth, ranking, k, n_labels, beyond="last"):
    rows = []
    for y, r in zip(truth, ranking, strict=True):
        ranks = full_ranks(y, r, k, n_labels, beyond)
        rows.append(sum(sum(other <= rank for other in ranks) / rank for rank in ranks) / len(y) if y else 0.0)
    return mean(rows)


def label_weighted_lrap(truth, ranking, k, n_labels):
    sizes = [len(y) for y in truth]
    own = [lrap([y], [r], k, n_labels) for y, r in zip(truth, ranking, strict=True)]
    return sum(s * v for s, v in zip(sizes, own, strict=True)) / max(1, sum(sizes))


def extended(labels, pairs, levels=None):
    """Labels, their parents, the parents of these, and so on, level by level."""
    found, step = set(labels), set(labels)
    while step and levels != 0:
        step = {parent for child, parent in pairs if child in step}
        found, levels = found | step, None if levels is None else levels - 1
    return found


def hierarchical(truth, ranking, k, pairs, value, micro):
    rows = [(extended(y, pairs), extended(r[:k], pairs)) for y, r in zip(truth, ranking, strict=True)]
    sizes = [(len(t & p), len(p), len(t)) for t, p in rows]
    return value(*map(sum, zip(*sizes, strict=True))) if micro else mean([value(*each) for each in sizes])


def coverage_error(truth, ranking, k, n_labels, beyond="last"):
    ranks = [full_ranks(y, r, k, n_labels, beyond) for y, r in zip(truth, ranking, strict=True)]
    return mean([each[-1] if each else 0 for each in ranks])


def per_label(truth, ranking, k, n_labels):
    """(hits, predicted, true) of each label."""
    found = []
    for label in range(n_labels):
        said = {i for i, row in enumerate(ranking) if label in row[:k]}
        is_so = {i for i, labels in enumerate(truth) if label in labels}
        found.append((len(said & is_so), len(said), len(is_so)))
    return found


def label_precision(tp, predicted, true):
    return tp / predicted if predicted else 0.0


def label_recall(tp, predicted, true):
    return tp / true if true else 0.0


def label_f(beta):
    def value(tp, predicted, true):
        p, r = label_precision(tp, predicted, true), label_recall(tp, predicted, true)
        return (1 + beta**2) * p * r / (beta**2 * p + r) if p + r else 0.0

    return value


def macro(truth, ranking, k, n_labels, value, over="all", labels=None):
    """The mean of a value of each label's counts; None without a label."""
    counts = enumerate(per_label(truth, ranking, k, n_labels))
    chosen = [c for label, c in counts if (over == "all" or c[2]) and (labels is None or label in labels)]
    return mean([value(*c) for c in chosen]) if chosen else None


def covered(truth, ranking, k):
    """The labels that are rightly in some row's top k."""
    return set().union(*(labels & set(row[:k]) for labels, row in zip(truth, ranking, strict=True)))


def reach(truth, k):
    """How many labels k own labels a row can cover: every choice of them is tried."""
    choices = [list(itertools.combinations(sorted(labels), min(k, len(labels)))) for labels in truth]
    return max(len(set().union(*picked)) for picked in itertools.product(*choices))


def entropy(truth, ranking, k):
    hits = [label for y, row in zip(truth, ranking, strict=True) for label in row[:k] if label in y]
    shares = [hits.count(label) / len(hits) for label in set(hits)]
    return -sum(share * math.log(share) for share in shares)


# ---------------------------------------------------------------- calibration: scores and hits, in exact fractions


def bin_of(p, bins, closed="left", dtype=np.float32):
    """The bin of a score, by trying the edges one after the other."""
    edges = [dtype(i / bins) for i in range(bins + 1)]
    if closed == "right":
        return next(b for b in range(bins) if p <= edges[b + 1])
    if p == 1:
        return bins if closed == "torchmetrics" else bins - 1
    return next(b for b in range(bins) if p < edges[b + 1])


def bins_of(scores, hits, bins, closed="left", dtype=np.float32):
    """{bin: [(score, hit), ...]}."""
    found = {}
    for p, y in zip(scores, hits, strict=True):
        found.setdefault(bin_of(p, bins, closed, dtype), []).append((Fraction(float(p)), int(y)))
    return found


def mass_groups(scores, hits, bins):
    """Equal-mass bins; each pair of a run of equal scores has the run's mean hit."""
    mean_hit = {}
    for p in set(scores):
        run = [int(y) for q, y in zip(scores, hits, strict=True) if q == p]
        mean_hit[p] = Fraction(sum(run), len(run))
    ordered = [(Fraction(float(p)), mean_hit[p]) for p in sorted(scores)]
    n = len(ordered)
    cut = {b: ordered[b * n // bins : (b + 1) * n // bins] for b in range(bins)}
    return {b: group for b, group in cut.items() if group}


def error_of(found, norm, half, debias=False):
    """The binned error of {bin: [(score, hit), ...]}; a hit may be a fraction."""
    total = sum(len(group) for group in found.values())
    sums, largest = Fraction(0), Fraction(0)
    for group in found.values():
        n = len(group)
        p, y = sum(a for a, _ in group) / n, Fraction(sum(b for _, b in group)) / n
        gap = {None: abs(p - y), "over": max(p - y, 0), "under": max(y - p, 0)}[half]
        largest = max(largest, gap)
        square = gap**2 - (y * (1 - y) / (n - 1) if debias and n > 1 else 0)
        sums += Fraction(n, total) * (gap if norm == "l1" else square)
    return {"l1": float(sums), "l2": math.sqrt(max(sums, 0)), "max": float(largest)}[norm]


def brier_parts(scores, found):
    """The parts that the Brier score of {bin: [(score, hit), ...]} is the sum of, with their signs."""
    pairs = [pair for group in found.values() for pair in group]
    base, parts = (
        Fraction(sum(y for _, y in pairs), len(pairs)),
        dict.fromkeys(("resolution", "reliability"), Fraction(0)),
    )
    variance = covariance = Fraction(0)
    for group in found.values():
        share = Fraction(len(group), len(pairs))
        p, y = sum(a for a, _ in group) / len(group), Fraction(sum(b for _, b in group), len(group))
        parts["resolution"] += share * (y - base) ** 2
        parts["reliability"] += share * (p - y) ** 2
        variance += sum((a - p) ** 2 for a, _ in group) / len(pairs)
        covariance += 2 * sum((a - p) * (b - y) for a, b in group) / len(pairs)
    return parts | {"uncertainty": base * (1 - base), "within variance": variance, "within covariance": covariance}


def loss_of(scores, hits, cap):
    each = []
    for p, y in zip(scores, hits, strict=True):
        q = float(p) if y else 1.0 - float(p)
        each.append(min(cap, -math.log(q)) if q > 0 else cap)
    return math.fsum(each) / len(each)


def at_least(rows, threshold):
    """The labels of {label: score} whose score reaches the threshold, or their own of {label: threshold}."""
    cut = threshold if isinstance(threshold, dict) else dict.fromkeys(range(99), threshold)
    return [{label for label, score in row.items() if score >= cut[label]} for row in rows]


def set_f(truth, sets, beta=1.0):
    """Micro-F of sets."""
    hits = sum(len(y & s) for y, s in zip(truth, sets, strict=True))
    below = beta**2 * sum(map(len, truth)) + sum(map(len, sets))
    return (1 + beta**2) * hits / below if below else 0.0


def best_threshold(truth, rows, beta=1.0):
    """The score with the largest micro-F, of equal ones the highest; None without a hit."""
    scores = sorted({score for row in rows for score in row.values()}, reverse=True)
    best = max(scores, key=lambda score: set_f(truth, at_least(rows, score), beta), default=None)
    return best if best is not None and set_f(truth, at_least(rows, best), beta) > 0 else None


def own_thresholds(truth, rows, n_labels, beta=1.0, labels=None):
    """The best threshold of each label by its own F; that of all where it has no hit, or is not among the ``labels``."""
    found = {}
    for label in range(n_labels):
        own = best_threshold(
            [y & {label} for y in truth], [{k: v for k, v in row.items() if k == label} for row in rows], beta
        )
        rare = labels is not None and label not in labels
        found[label] = best_threshold(truth, rows, beta) if own is None or rare else own
    return found


def risk(kept):
    """(share kept, error) after each distinct confidence of [(confidence, error)], the surest first."""
    found = []
    for threshold in sorted({confidence for confidence, _ in kept}, reverse=True):
        errors = [error for confidence, error in kept if confidence >= threshold]
        found.append((len(errors) / len(kept), mean(errors)))
    return found


def aurc(kept):
    """The mean, over all orders of equal confidences, of the mean error among the i surest over i."""
    values = []
    for order in orders(dict(enumerate(confidence for confidence, _ in kept))):
        errors = [kept[i][1] for i in order]
        values.append(mean([mean(errors[: i + 1]) for i in range(len(errors))]))
    return mean(values)


def graded_ndcg(grades, ranking, k, gain):
    """nDCG of [{label: grade}]."""
    rows = []
    for own, r in zip(grades, ranking, strict=True):
        best = sorted(own.values(), reverse=True)[:k]
        below = sum(gain(grade) / math.log2(place + 2) for place, grade in enumerate(best))
        got = sum(gain(own[label]) / math.log2(place + 2) for place, label in enumerate(r[:k]) if label in own)
        rows.append(got / below if below else 0.0)
    return mean(rows)


def confused(truth, ranking, k):
    """{(predicted, missed): rows}."""
    found = {}
    for y, r in zip(truth, ranking, strict=True):
        for pair in itertools.product(set(r[:k]) - y, y - set(r[:k])):
            found[pair] = found.get(pair, 0) + 1
    return found


def label_f1(Y, top, k):
    """Each label's F1 by definition, from a sparse truth and a TopK, where thousands of labels make sets too slow."""
    said = np.zeros(Y.shape, bool)
    for i, ids in enumerate(top.ids[:, :k]):
        said[i, ids[ids >= 0]] = True
    so = Y.toarray() > 0
    both, sizes = (said & so).sum(axis=0), said.sum(axis=0) + so.sum(axis=0)
    return np.array([2 * b / s if s else 0.0 for b, s in zip(both, sizes, strict=True)])


def inverse_propensity(counts, n, A, B):
    """jain16 eq. 1 as printed, then inverted."""
    C = (math.log(n) - 1) * (B + 1) ** A
    return [1 / (1 / (1 + C * math.exp(-A * math.log(count + B)))) for count in counts]


# ---------------------------------------------------------------- small data, and comparing predictions


@st.composite
def small_rankings(draw, max_labels=9, max_rows=8):
    """Number of labels, truth (a set a row), rankings (a list a row, some short, some empty)."""
    n_labels, n = draw(st.integers(1, max_labels)), draw(st.integers(1, max_rows))
    truth = draw(st.lists(st.sets(st.integers(0, n_labels - 1)), min_size=n, max_size=n))
    rows = [draw(st.permutations(range(n_labels)))[: draw(st.integers(0, n_labels))] for _ in range(n)]
    return n_labels, truth, [list(row) for row in rows]


def as_matrices(n_labels, truth, rows, k=5):
    """Truth and rankings as the package takes them: CSR and TopK."""
    Y = np.zeros((len(truth), n_labels), np.float32)
    for i, labels in enumerate(truth):
        Y[i, list(labels)] = 1
    return sp.csr_matrix(Y), TopK.from_pairs(rows, n_labels=n_labels, k=k)


def multilabel_problem(n=80, n_features=12, n_labels=9, seed=0):
    """X with an empty row, Y with an empty row, label 3 and the last one never relevant."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features)) * (rng.random((n, n_features)) < 0.5)
    X[4] = 0
    Y = (X @ rng.normal(size=(n_features, n_labels)) + rng.normal(size=(n, n_labels)) > 0.8).astype(float)
    Y[:, 3] = Y[:, -1] = 0
    Y[7] = 0
    return sp.csr_matrix(X.astype(np.float32)), sp.csr_matrix(Y)


def same_bits(a, b) -> bool:
    """Are two TopK equal, labels and scores?"""
    return np.array_equal(a.ids, b.ids) and np.array_equal(a.scores, b.scores)


def jackknife_error(left_out):
    """The standard error of a statistic from its values with one part of the rows after the other left out."""
    columns = list(zip(*left_out, strict=True))
    parts = len(left_out)
    means = [sum(column) / parts for column in columns]
    sums = [sum((one - mean) ** 2 for one in column) for column, mean in zip(columns, means, strict=True)]
    return [math.sqrt((parts - 1) / parts * total) for total in sums]


def save_calibration_npz(path, top: TopK, Y) -> None:
    """As the calibration@k authors keep predictions and truth together."""
    Y = sp.csr_matrix(Y).toarray() > 0
    hits = np.take_along_axis(Y, np.maximum(top.ids, 0), axis=1) & (top.ids >= 0)
    np.savez(path, scores=top.scores, prediction_ids=top.ids, true_positives=hits, labels=np.argwhere(Y))


def pairs_of(top: TopK) -> list[list[tuple[int, float]]]:
    """Predictions as napkinXC has them."""
    rows = zip(top.ids.tolist(), top.scores.tolist(), strict=True)
    return [[(label, score) for label, score in zip(*row, strict=True) if label >= 0] for row in rows]
