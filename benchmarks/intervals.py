"""How often do intervals hold what they promise to hold, and how often do tests cry wolf? By simulation.

Test sets are drawn from a large synthetic population whose labels have frequencies of a power law and come together by
topics; two methods of different quality rank them, with scores that are roughly calibrated. The truth of each metric is its
mean over many fresh test sets. An interval of 95 % should hold it in 95 of 100 test sets, and a test at 1 % reject equal
methods in 1 of 100. This measures no speed.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from scipy import sparse

import xcrepro as xc
from xcrepro.core.metrics import registry

KS = (1, 5)
POPULATION = 200_000
CASES = ((300, 500, 200), (4000, 4000, 100))  # rows, labels, repetitions
METRICS = (
    *("P", "R", "nDCG", "MRR", "micro-F1", "Hamming", "abandonment", "PSP", "PSnDCG", "PSP (bare)", "PSnDCG (bare)"),
    *("macro-P", "macro-R", "macro-F1", "coverage", "coverage (test)", "unique labels", "label entropy"),
    registry.BINNED,
    *(
        one
        for one in registry.names("pairs", "scores")
        if one not in ("pairs", "confidence", "accuracy", "uncertainty")
    ),
)
BOTH = ("macro-F1", "coverage", "coverage (test)", "unique labels", "ECE", "ACE", "smECE")
"""That the bootstrap fails, to show it."""
LEVEL = 0.01
_SHARED_BY = {"independent": "nothing", "rows": "a row's labels", "topics": "a topic's labels"}


def population(n_rows: int, n_labels: int, seed: int = 0, topics: int = 40, candidates: int = 24):
    """Truth (CSR) and two TopK with five places.

    A row has a topic, the first being the most frequent, and 24 candidate labels, most of its topic, drawn by their
    frequency; each is relevant with a probability of its own. A method sees the probability's logit with noise of the
    row and noise of the label; its score is a sigmoid, a little too steep.
    """
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_labels + 1)
    topic_of = rng.integers(topics, size=n_labels)
    own = np.minimum(rng.geometric(0.08, size=n_rows) - 1, topics - 1)
    shape = n_rows, candidates
    ids = np.searchsorted(np.cumsum(frequency) / frequency.sum(), rng.random(shape) * (1 - 1e-9))
    for topic in range(topics):
        labels, rows = np.flatnonzero(topic_of == topic), np.flatnonzero(own == topic)
        if labels.size:
            within = np.cumsum(frequency[labels]) / frequency[labels].sum()
            drawn = labels[np.searchsorted(within, rng.random((rows.size, candidates)) * (1 - 1e-9))]
            ids[rows] = np.where(rng.random(drawn.shape) < 0.75, drawn, ids[rows])
    ids.sort(axis=1)
    once = np.column_stack([np.full(n_rows, True), ids[:, 1:] != ids[:, :-1]])
    logit = rng.normal(-1.6, 1.5, shape) + rng.normal(0.0, 0.6, (n_rows, 1))
    row, place = np.nonzero(once & (rng.random(shape) < 1.0 / (1.0 + np.exp(-logit))))
    Y = sparse.csr_matrix((np.ones(row.size, np.float32), (row, ids[row, place])), shape=(n_rows, n_labels))
    tops = []
    for noise, by_label, steep in ((0.7, 0.2, 0.8), (0.9, 0.5, 1.2)):
        seen = logit + rng.normal(0.0, noise, shape) + by_label * rng.normal(size=n_labels)[ids]
        score = np.where(once, 1.0 / (1.0 + np.exp(-steep * seen)), -np.inf)
        best = np.argsort(-score, axis=1, kind="stable")[:, :5]
        score = np.take_along_axis(score, best, 1).astype(np.float32)
        there = np.where(np.isfinite(score), np.take_along_axis(ids, best, 1), -1)
        tops.append(xc.TopK(there.astype(np.int32), score, n_labels))
    return Y, tops


# ---------------------------------------------------------------------------------------------- intervals


def coverage_of_intervals(
    n: int, n_labels: int, repetitions: int, fresh: int, n_resamples: int, size: int
) -> list[dict]:
    """How often the intervals hold the truth, and how wide they are beside the right width, 2 x 1.96 true deviations."""
    Y, tops = population(size, n_labels)
    trained = Y.getnnz(axis=0) * 10_000 // size
    weights = {"inverse_propensity": xc.propensity.inverse(trained, 10_000, 0.55, 1.5), "label_counts": trained}
    rng = np.random.default_rng(11)

    def draw() -> tuple:
        rows = rng.integers(size, size=n)
        return Y[rows], *(top.rows(rows) for top in tops)

    def values(truth, top) -> pd.Series:
        return xc.evaluate(truth, top, KS, **weights, metrics=METRICS).set_index(["metric", "k"])["value"]

    drawn = []
    for _ in range(fresh):
        truth, *both = draw()
        one, other = (values(truth, top) for top in both)
        drawn.append(pd.DataFrame({"one": one, "other": other, "difference": one - other}))
    drawn = pd.concat(drawn).groupby(level=["metric", "k"])
    mean, deviation = drawn.mean(), drawn.std()
    tables = []
    for repetition in range(repetitions):
        data, how = draw(), {"n_resamples": n_resamples, "seed": repetition, **weights}
        found = xc.metrics.paired_bootstrap(*data, KS, metrics=METRICS, **how)
        found += xc.metrics.paired_bootstrap(*data, KS, metrics=BOTH, method="bootstrap", **how)
        tables.append(pd.DataFrame(found).set_index(["method", "metric", "k"]))
    rows = []
    for (method, name, k), every in pd.concat(tables).groupby(level=[0, 1, 2], sort=False):
        row = {"job": f"95 % intervals: n = {n:,}, L = {n_labels:,}, {repetitions} test sets", "metric": name}
        row |= {"k": f"{k}", "method": method, "value": mean.loc[(name, k), "one"]}
        row["width"] = (every["ours_high"] - every["ours_low"]).mean()
        for who, low, high in (
            ("one", "ours_low", "ours_high"),
            ("other", "baseline_low", "baseline_high"),
            ("difference", "low", "high"),
        ):
            truth, right = mean.loc[(name, k), who], 2 * 1.96 * deviation.loc[(name, k), who]
            row[f"{who}: held, %"] = 100 * ((every[low] <= truth) & (truth <= every[high])).mean()
            row[f"{who}: width / right"] = (every[high] - every[low]).mean() / right if right else np.nan
        rows.append(row)
    return rows


# ---------------------------------------------------------------------------------------------- tests


def equal_methods(n: int, shared: str, rng, topics: int = 40, a_topic: int = 10):
    """Truth and two methods of the same quality, whose errors are shared by nothing, by a row's labels, or by a topic's.

    A row carries half of its topic's ten labels and each method shows five of the ten, the relevant ones first. A label is
    misread, and another topic's shown in its place: ``"independent"``, each by itself with chance 1/2; ``"rows"``, all of a
    row, with chance 1/2; ``"topics"``, each by itself with a chance that each method has drawn for the topic, around 1/2.
    """
    topic = rng.integers(topics, size=n)
    labels = topic[:, None] * a_topic + np.arange(a_topic)
    relevant = rng.random((n, a_topic)) < 0.5
    row, place = np.nonzero(relevant)
    n_labels = topics * a_topic
    Y = sparse.csr_matrix((np.ones(row.size, np.float32), (row, labels[row, place])), shape=(n, n_labels))
    tops = []
    for _ in range(2):
        shown = np.take_along_axis(labels, np.argsort(rng.random((n, a_topic)) - relevant, axis=1)[:, :5], 1)
        chance = {"independent": 0.5, "rows": 0.5, "topics": rng.uniform(0.3, 0.7, topics)[topic][:, None]}[shared]
        wrong = rng.random((n, 1 if shared == "rows" else 5)) < chance
        tops.append(xc.TopK.from_ids(np.where(wrong, (shown + a_topic) % n_labels, shown), n_labels=n_labels))
    return Y, tops


def false_alarms(n: int, repetitions: int, n_resamples: int) -> list[dict]:
    """How often each test rejects equal methods at 1 %, and how often the t-test warns."""
    rows = []
    for shared in _SHARED_BY:
        rng, t_test, alarms, warned = np.random.default_rng(3), 0, {"halves": 0, "bootstrap": 0}, 0
        for repetition in range(repetitions):
            Y, (one, other) = equal_methods(n, shared, rng)
            how = {"metrics": "macro-F1", "n_resamples": n_resamples, "seed": repetition}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", xc.metrics.SharedErrorsWarning)
                t_test += xc.metrics.macro_t_test(Y, one, other, 5, **how)[0].p < LEVEL
            warned += bool(caught)
            for method in alarms:
                alarms[method] += xc.metrics.paired_bootstrap(Y, one, other, 5, method=method, **how)[0].p < LEVEL
        row = {"job": f"False alarms at 1 % of equal methods, macro-F1@5, n = {n:,}, 400 labels, {repetitions} pairs"}
        row |= {"errors shared by": _SHARED_BY[shared], "t-test over labels, %": 100 * t_test / repetitions}
        row |= {"t-test warns, %": 100 * warned / repetitions}
        row |= {f"paired_bootstrap, {method}, %": 100 * count / repetitions for method, count in alarms.items()}
        note = "the methods do differ, on these topics: a training's luck, which no test of two rankings can see"
        rows.append(row | {"note": note if shared == "topics" else ""})
    return rows


FEW, AT = ("P@1", "nDCG@5", "micro-F1@5", "macro-F1@5", "coverage@5"), (0.05, 0.005, 0.0005)


def few_rows(sizes: tuple[int, ...], repetitions: int) -> list[dict]:
    """How often ``compare`` finds a difference of two equal methods on few rows, at three levels."""
    rows = []
    for n in sizes:
        rng, ps = np.random.default_rng(n), []
        for seed in range(repetitions):
            Y, tops = equal_methods(n, "independent", rng)
            ps.append(xc.compare(Y, dict(zip("ab", tops, strict=True)), FEW, n_resamples=200, seed=seed)["p raw"])
        for metric, p in zip(FEW, np.transpose(ps), strict=True):
            row = {"job": f"compare on few rows: false alarms of equal methods, {repetitions:,} pairs", "n": str(n)}
            rows.append(row | {"metric": metric} | {f"at {at:g}, %": 100 * float(np.mean(p <= at)) for at in AT})
    return rows


def run(quick: bool = False) -> list[dict]:
    """Both sizes and the tests; ``quick`` shrinks them to see that everything runs."""
    rows = []
    for n, n_labels, repetitions in ((60, 40, 2),) if quick else CASES:
        rows += coverage_of_intervals(n, n_labels, repetitions, *((3, 20, 500) if quick else (600, 300, POPULATION)))
    rows += few_rows(*((8,), 3) if quick else ((8, 20, 50, 100, 200, 400), 1000))
    return rows + false_alarms(*(100, 2, 20) if quick else (1000, 200, 400))


if __name__ == "__main__":
    from benchmarks.__main__ import tables

    print("\n\n".join(tables(run())))
