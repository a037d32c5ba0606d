"""The numbers of a report, as tidy tables: fractions (entropy and NLL in nats), a row a number, NaN where none is known.

Every value is the one that :func:`xcrepro.evaluate` has. Of a model with several seeds it is the mean over them; what is
counted by label, by point or by bin of scores is that of its first seed.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import special

from xcrepro import calibrate, decide, distributions
from xcrepro.metrics import (
    SharedErrorsWarning,
    best_macro_f1,
    compare_all,
    confusion,
    evaluate,
    holm,
    macro_t_test,
    pairs,
    reliability,
)
from xcrepro.metrics.labelwise import frequency_bins
from xcrepro.metrics.registry import BINNED, METRICS, metric_named, of_bin
from xcrepro.metrics.significance import t_p_value, t_reach
from xcrepro.predictions import TopK
from xcrepro.reports.given import Given, labels_of

LEVEL = 0.05
"""A p-value below it is no longer chance, here."""

RANKED = ("P", "R", "nDCG", "micro-F1", "abandonment")
SCORED = ("PSP", "PSnDCG")
"""With propensities."""
LABELWISE = ("macro-F1", "macro-P", "macro-R", "coverage", "coverage (test)", "label entropy")
CALIBRATION = ("ECE", "ECE corrected", "ACE", "Brier", "NLL")
"""ECE corrected: without the noise of its hits (:func:`xcrepro.metrics.corrected_ece`)."""
STATES = ("before", "after")
CALIBRATORS = {"isotonic": "isotonic regression", "platt": "Platt scaling", "beta": "beta calibration"}
"""The maps that a report can fit, and what people call them."""
BETAS = (np.inf, 1.0, 0.25, 0.0625, 0.0)
"""Of greedy selection for coverage, from the plain top k to coverage alone."""
FOLDS = 10
LEAST_ROWS = 8
"""Fewer points have no intervals."""
_LARGE = 20_000  # rows from which on fewer samples are drawn
_PAIRS_OF_ACE = 100_000  # ACE sorts its scores anew in each part of the rows
_EXACT_CEILING = 20_000  # pairs that its linear programme takes
LEAST_DATASETS = 6
"""Fewer have no critical difference: on five, two models cannot differ at 5 % whatever their ranks (2 / 2^5)."""
_EXACT_MODELS = 7  # of more there are 40,320 orders and up
_EXACT_RANKINGS = 300_000  # rank sums that Friedman's exact law goes through in a step


def samples_for(n_rows: int, n_models: int) -> tuple[int, int]:
    """How many samples a report draws, for sums over rows, and ten times how many partitions for all else.

    Parameters
    ----------
    n_rows, n_models : int

    Returns
    -------
    rows, halves : int
        1,000 and 300; for more than five models 100 a pair and 200, so that Holm's correction over the pairs leaves p-values
        below 5 %; 200 each (50 a pair) for more than 20,000 points.

    Examples
    --------
    >>> samples_for(3000, 3), samples_for(3000, 10), samples_for(100_000, 3)
    ((1000, 300), (4500, 200), (200, 200))
    """
    if n_rows > _LARGE:
        return max(200, 50 * (n_models * (n_models - 1) // 2)), 200
    return max(1000, 100 * (n_models * (n_models - 1) // 2)), 300 if n_models <= 5 else 200


# ---------------------------------------------------------------- metrics and pairs


def metric_names(given: Given) -> list[str]:
    """The metrics of a report: propensity-scored ones and bins with a train truth alone."""
    trained = given.label_counts is not None
    return [*RANKED, *(SCORED if trained else ()), *LABELWISE, *([BINNED] if trained else [])]


def _possible(one) -> tuple[float, float]:
    """An interval's ends within what the metric can be: one from a standard error may reach beyond."""
    most = 1.0 if metric_named(one.metric).unit == "fraction" else np.inf
    return float(np.clip(one.low, 0.0, most)), float(np.clip(one.high, 0.0, most))


def metrics_and_pairs(
    given: Given, ks: Sequence[int], samples: tuple[int, int], seed: int, confidence: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ranking and label-wise metrics of each model with their intervals, and all pairs of models."""
    about = {"inverse_propensity": given.inverse_propensity, "label_counts": given.label_counts}
    names = metric_names(given)
    tops = {model: list(runs.values()) for model, runs in given.runs.items()}
    spread = _over_seeds(given, ks, names, confidence, about)
    if given.truth.n_rows < LEAST_ROWS:
        rows = [
            (model, metric, k, float(np.mean(values)), np.nan, np.nan, "")
            for (model, metric, k), (values, _) in spread.items()
        ]
        compared = []
    else:
        rows, compared = [], []
        for part, drawn in zip(("bootstrap", "halves"), samples, strict=True):
            own = [name for name in names if METRICS[name].interval == part]
            how = {"metrics": own, "samples": drawn, "seed": seed, "confidence": confidence}
            found = compare_all(given.truth, tops, ks, **how, **about)
            rows += [
                (model, one.metric, one.k, one.value, *_possible(one), one.method)
                for model, values in found.intervals.items()
                for one in values
            ]
            compared += [
                (a, b, one.metric, one.k, one.difference, one.low, one.high, one.p, one.p_adjusted, one.method)
                for (a, b), values in found.pairs.items()
                for one in values
            ]
    table = pd.DataFrame(rows, columns=["model", "metric", "k", "value", "low", "high", "interval"])
    seeds = [spread[key] for key in table[["model", "metric", "k"]].itertuples(index=False, name=None)]
    table["seeds"] = [len(values) for values, _ in seeds]
    table["seed low"], table["seed high"] = ([ends[i] for _, ends in seeds] for i in (0, 1))
    order = {model: i for i, model in enumerate(given.models)}
    table = table.sort_values("model", key=lambda column: column.map(order), kind="stable", ignore_index=True)
    names = ["model", "other", "metric", "k", "difference", "low", "high", "p", "p adjusted", "interval"]
    return table, _with_seeds(pd.DataFrame(compared, columns=names), spread, confidence)


def _with_seeds(pairs: pd.DataFrame, spread: dict, confidence: float) -> pd.DataFrame:
    """The error that another training of the models would make, beside that of other test points."""
    pairs["error"] = "test points"
    for at, row in pairs.iterrows():
        runs = [spread[model, row["metric"], row["k"]][0] for model in (row["model"], row["other"])]
        parts = [(values.var(ddof=1) / values.size, values.size - 1) for values in runs if values.size > 1]
        if not parts:
            continue
        pairs.loc[at, "error"] = "test points and seeds"
        of_seeds = sum(part for part, _ in parts)
        if of_seeds == 0 or np.isnan(row["p"]):
            continue
        square = of_seeds**2 / sum(part**2 / dof for part, dof in parts)
        reach = t_reach(confidence, square) * of_seeds**0.5
        for name, side in (("low", -1), ("high", 1)):
            pairs.loc[at, name] = row["difference"] + side * ((row[name] - row["difference"]) ** 2 + reach**2) ** 0.5
        z = -distributions.normal_quantile(row["p"] / 2)
        if z > 0:
            of_points = (row["difference"] / z) ** 2
            dof = (of_points + of_seeds) ** 2 / sum(part**2 / dof for part, dof in parts)
            pairs.loc[at, "p"] = float(t_p_value(row["difference"] / (of_points + of_seeds) ** 0.5, dof))
    for _, rows in pairs.groupby(["metric", "k"], sort=False):
        if (rows["error"] != "test points").any():
            pairs.loc[rows.index, "p adjusted"] = holm(pairs.loc[rows.index, "p"])
    return pairs


def _over_seeds(given: Given, ks, names, confidence, about) -> dict[tuple[str, str, int], tuple[np.ndarray, tuple]]:
    """(model, metric, k) -> the seeds' values and Student's interval of their mean, NaN for one seed."""
    found = {}
    for model, runs in given.runs.items():
        tables = [evaluate(given.truth, top, ks, **about, metrics=names) for top in runs.values()]
        values = np.array([table["value"] for table in tables])
        ends = np.full((2, values.shape[1]), np.nan)
        if len(tables) > 1:
            reach = t_reach(confidence, len(tables) - 1) * values.std(axis=0, ddof=1) / len(tables) ** 0.5
            ends = values.mean(axis=0) + np.outer([-1, 1], reach)
        for at, (metric, k) in enumerate(zip(tables[0]["metric"], tables[0]["k"], strict=True)):
            found[model, metric, int(k)] = values[:, at], (float(ends[0, at]), float(ends[1, at]))
    return found


def t_tests(given: Given, ks: Sequence[int], seed: int) -> pd.DataFrame:
    """The macro t-test of macro-F1 (reeval, section 5.2) for all pairs of models, by their first seeds; of more than 20,000
    points at the last k.

    Returns
    -------
    DataFrame
        model, other, metric, k, difference, t, degrees, p, p adjusted (Holm, over the pairs of a k), shared: above 3, labels
        that stand together differ alike, and p is too small (:func:`xcrepro.metrics.macro_t_test`).
    """
    rows, large = [], given.truth.n_rows > _LARGE
    ks, samples = (ks[-1:], 20) if large else (ks, 100)
    for one, other in itertools.combinations(given.models, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SharedErrorsWarning)
            found = macro_t_test(given.truth, given.first(one), given.first(other), ks, samples=samples, seed=seed)
        rows += [(one, other, t.metric, t.k, t.difference, t.t, t.degrees, t.p, t.p, t.shared) for t in found]
    names = ["model", "other", "metric", "k", "difference", "t", "degrees", "p", "p adjusted", "shared"]
    table = pd.DataFrame(rows, columns=names)
    for _, part in table.groupby("k"):
        table.loc[part.index, "p adjusted"] = holm(part["p"])
    return table


def bins(metrics: pd.DataFrame, given: Given) -> pd.DataFrame:
    """Macro-F1 by bin of train frequency, with the bin's ceiling.

    Parameters
    ----------
    metrics : DataFrame
        From :func:`metrics_and_pairs`.
    given : Given

    Returns
    -------
    DataFrame
        model, bin, k, labels (in the bin), value, low, high, ceiling, ceiling is: "exact", the largest macro-F1 that k labels a
        point can have (:func:`xcrepro.metrics.best_macro_f1`), or, where its linear programme would be too large, "bound": the
        share of the labels with a test point, which no predictions exceed. No rows without a train truth.
    """
    names = ["model", "bin", "k", "labels", "value", "low", "high", "ceiling", "ceiling is"]
    table = metrics.assign(bin=metrics["metric"].map(of_bin))
    table = table[table["bin"] != ""].reset_index(drop=True)
    if not len(table):
        return pd.DataFrame(columns=names)
    which, known = frequency_bins(given.label_counts, given.truth.n_labels)
    Y, best = given.truth.to_csr(), {}
    for name in table["bin"].unique():
        labels = np.flatnonzero(which == known.index(name))
        own = Y[:, labels]
        sizes = np.diff(own.indptr)
        for k in table["k"].unique():
            if int(sizes[sizes > k].sum()) <= _EXACT_CEILING:
                best[name, k] = labels.size, best_macro_f1(own, int(k)), "exact"
            else:
                best[name, k] = labels.size, float((own.getnnz(axis=0) > 0).mean()), "bound"
    found = [best[key] for key in zip(table["bin"], table["k"], strict=True)]
    table["labels"], table["ceiling"], table["ceiling is"] = zip(*found, strict=True)
    return table[names]


def bands(given: Given, k: int) -> pd.DataFrame:
    """What the labels of each band of train frequency contribute to P@k and PSP@k.

    Returns
    -------
    DataFrame
        model, band, labels, with a test point (labels), positives (pairs of a test point and its label), predicted (places),
        hits, covered (labels hit), P, PSP: the band's part of both, which add up to them. No rows without a train truth.
    """
    names = ["model", "band", "labels", "with a test point", "positives", "predicted", "hits", "covered", "P", "PSP"]
    if given.label_counts is None:
        return pd.DataFrame(columns=names)
    which, known = frequency_bins(given.label_counts, given.truth.n_labels)
    weights, rows = given.inverse_propensity, []

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(which, values, len(known))

    labels, true = total(np.ones(which.size)), given.truth.label_counts()
    for model in given.models:
        counts = confusion(given.truth, given.first(model), [k])
        found = evaluate(given.truth, given.first(model), [k], weights, metrics=["P", "PSP"])["value"]
        hits = counts.tp[0]
        gains = hits * weights
        parts = [labels, total(true > 0), total(true), total(counts.predicted[0]), total(hits), total(hits > 0)]
        for weighed, value in ((hits, found[0]), (gains, found[1])):
            whole = weighed.sum()
            parts.append(total(weighed) / whole * value if whole else np.zeros(len(known)))
        for band, numbers in enumerate(zip(*parts, strict=True)):
            if labels[band]:
                rows.append((model, known[band], *map(int, numbers[:6]), *map(float, numbers[6:])))
    return pd.DataFrame(rows, columns=names)


# ---------------------------------------------------------------- calibration


def calibrated(given: Given, k: int, calibrator: str = "isotonic") -> dict[tuple[str, str], TopK]:
    """The first k places of the first seed of each model with probabilities, before and after a calibrator.

    It is cross-fitted over contiguous folds of the test points, one map for all k places (calibration, section 4); with one
    point there is no "after".

    Returns
    -------
    dict of (str, str) to TopK
        (model, state) -> predictions.
    """
    found = {}
    for model in given.with_probabilities:
        top = given.first(model).head(k)
        found[model, STATES[0]] = top
        folds = min(FOLDS, len(top))
        # A fold needs a score outside it to learn from.
        if folds > 1 and (top.ids[:, 0] >= 0).sum() > -(-len(top) // folds):
            found[model, STATES[1]] = calibrate.cross_fit_top(given.truth, top, calibrator, folds)
    return found


def calibration(
    given: Given, ks: Sequence[int], samples: int, seed: int, confidence: float, calibrator: str = "isotonic"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Calibration errors before and after a cross-fitted calibrator (:data:`CALIBRATORS`), and the reliability diagrams at the
    last k.

    Returns
    -------
    errors : DataFrame
        model, metric, state, k, value, low, high. Intervals at the last k, of the corrected ECE at all; of ACE not beyond
        100,000 pairs. That of "after" is for the map as fitted. The corrected ECE is there before calibration only: beside a
        cross-fitted map it says almost nothing is left where much is.
    diagrams : DataFrame
        model, state, then the columns of :func:`xcrepro.metrics.reliability`, at the last k.
    """
    rows, ends, diagrams = [], {}, []
    last = max(ks)
    for k in ks:
        states = calibrated(given, k, calibrator)
        for (model, state), top in states.items():
            both = ("ECE corrected low", "ECE corrected high")
            values = evaluate(given.truth, top, [k], metrics=[*CALIBRATION, *both]).set_index("metric")["value"]
            # A map that was fitted to these hits, by folds or not, takes their noise with it: what is left would be called 0.
            names = [name for name in CALIBRATION if state == STATES[0] or name != "ECE corrected"]
            rows += [(model, metric, state, k, float(values[metric])) for metric in names]
            if "ECE corrected" in names:
                ends[model, "ECE corrected", state, k] = tuple(values[list(both)])
        if k != last:
            continue
        for (model, state), top in states.items():
            diagrams.append(reliability(*pairs(given.truth, top, k)).assign(model=model, state=state))
        if given.truth.n_rows >= LEAST_ROWS and states:
            small = given.truth.n_rows * k <= _PAIRS_OF_ACE
            for names, drawn in ((["ECE", "Brier", "NLL"], samples), (["ACE"] if small else [], 200)):
                if names:
                    how = {"metrics": names, "samples": drawn, "seed": seed, "confidence": confidence}
                    found = compare_all(given.truth, states, [k], **how)
                    for (model, state), values in found.intervals.items():
                        ends |= {(model, one.metric, state, k): _possible(one) for one in values}
    table = pd.DataFrame(rows, columns=["model", "metric", "state", "k", "value"])
    keys = list(table[["model", "metric", "state", "k"]].itertuples(index=False, name=None))
    for i, name in enumerate(("low", "high")):
        table[name] = [ends.get(key, (np.nan, np.nan))[i] for key in keys]
    if not diagrams:
        return table, pd.DataFrame(
            columns=["model", "state", "bin", "lower", "upper", "count", "confidence", "accuracy"]
        )
    drawn = pd.concat(diagrams, ignore_index=True)
    return table, drawn[["model", "state", *drawn.columns.drop(["model", "state"])]]


# ---------------------------------------------------------------- the price of coverage


def price(given: Given, k: int, samples: tuple[int, int], seed: int, confidence: float) -> pd.DataFrame:
    """Precision against coverage where the k labels are chosen for coverage, among the places that were saved.

    Greedy selection (coverage, algorithm 1) with the scores as probabilities, for models that have such and saved more than k
    places: beta from infinity, the plain top k, to 0, coverage alone.

    Returns
    -------
    DataFrame
        model, beta, k, P, P low, P high, Cov, Cov low, Cov high.
    """
    names = ["model", "beta", "k", "P", "P low", "P high", "Cov", "Cov low", "Cov high"]
    rows = []
    for model in given.with_probabilities:
        top = given.first(model)
        if top.k <= k:
            continue
        candidates = top.to_csr()
        chosen = {beta: decide.greedy_coverage(candidates, k, beta) for beta in BETAS}
        if given.truth.n_rows >= LEAST_ROWS:
            ends = {beta: [] for beta in BETAS}
            for metric, drawn in zip(("P", "coverage"), samples, strict=True):
                how = {"metrics": metric, "samples": drawn, "seed": seed, "confidence": confidence}
                for beta, [one] in compare_all(given.truth, chosen, [k], **how).intervals.items():
                    ends[beta].append((one.value, *_possible(one)))
        else:
            values = {
                beta: evaluate(given.truth, one, [k], metrics=["P", "coverage"])["value"]
                for beta, one in chosen.items()
            }
            ends = {beta: [(float(v), np.nan, np.nan) for v in found] for beta, found in values.items()}
        rows += [(model, beta, k, *p, *cov) for beta, (p, cov) in ends.items()]
    return pd.DataFrame(rows, columns=names)


# ---------------------------------------------------------------- where models differ


def by_label(given: Given, k: int) -> pd.DataFrame:
    """Every label that has a test point or is predicted by a model.

    Returns
    -------
    DataFrame
        label, name, train points (-1 where not known), test points; then of each model "... predicted" and "... hits": points
        among whose first k it is, and is rightly.
    """
    true = given.truth.label_counts()
    found = {model: confusion(given.truth, given.first(model), [k]) for model in given.models}
    seen = true > 0
    for counts in found.values():
        seen |= counts.predicted[0] > 0
    labels = np.flatnonzero(seen)
    table = {"label": labels, "name": [given.name(label) for label in labels]}
    table["train points"] = (
        -np.ones(labels.size, np.int64) if given.label_counts is None else given.label_counts[labels]
    )
    table["test points"] = true[labels]
    for model, counts in found.items():
        table |= {f"{model} predicted": counts.predicted[0][labels], f"{model} hits": counts.tp[0][labels]}
    return pd.DataFrame(table)


def by_point(given: Given, k: int) -> pd.DataFrame:
    """Every test point.

    Returns
    -------
    DataFrame
        point (its row, from 0), labels (how many it has), then of each model "... hits": among its first k.
    """
    table = {"point": np.arange(given.truth.n_rows), "labels": given.truth.sizes}
    for model in given.models:
        ids = np.ascontiguousarray(given.first(model).head(k).ids)
        table[f"{model} hits"] = given.truth.hits(ids).sum(axis=1)
    return pd.DataFrame(table)


def won_and_lost(given: Given, labels: pd.DataFrame, points: pd.DataFrame, k: int) -> pd.DataFrame:
    """Of each two models: how many labels and points have more hits with the one, with the other, as many."""
    rows = []
    for one, other in itertools.combinations(given.models, 2):
        for counted, table in (("labels", labels[labels["test points"] > 0]), ("points", points)):
            d = (table[f"{one} hits"] - table[f"{other} hits"]).to_numpy()
            rows.append((one, other, k, counted, int((d > 0).sum()), int((d < 0).sum()), int((d == 0).sum())))
    return pd.DataFrame(rows, columns=["model", "other", "k", "counted", "more", "fewer", "as many"])


def most_different_labels(given: Given, labels: pd.DataFrame, one: str, other: str, most: int = 10) -> pd.DataFrame:
    """The labels whose hits differ most between two models, ties to the lowest label id."""
    return _most_different(labels, ["label", "name", "train points", "test points"], one, other, most)


def _most_different(table: pd.DataFrame, columns: Sequence[str], one: str, other: str, most: int) -> pd.DataFrame:
    """The rows whose hits differ most between two models, ties to the first: some columns and both models' hits."""
    hits = [f"{one} hits", f"{other} hits"]
    distance = (table[hits[0]] - table[hits[1]]).abs()
    keep = distance[distance > 0].sort_values(ascending=False, kind="stable").index[:most]
    return table.loc[keep, [*columns, *hits]].reset_index(drop=True)


def most_different_points(
    given: Given, points: pd.DataFrame, one: str, other: str, k: int, most: int = 10
) -> pd.DataFrame:
    """The points whose hits differ most between two models, ties to the first row."""
    table = _most_different(points, ["point", "labels"], one, other, most)
    first, second = (given.first(model).ids[:, :k] for model in (one, other))
    sets = {f"only {one}": [], f"only {other}": [], "neither": []}
    for row in table["point"]:
        relevant, a, b = (set(map(int, ids)) for ids in (labels_of(given.truth, row), first[row], second[row]))
        parts = relevant & a - b, relevant & b - a, relevant - a - b
        for name, part in zip(sets, parts, strict=True):
            shown = [given.name(label) for label in sorted(part)]
            sets[name].append("; ".join(shown[:5]) + ("; ..." if len(shown) > 5 else ""))
    return table.assign(**sets)


# ---------------------------------------------------------------- over datasets


def ranks(tables: dict[str, pd.DataFrame], metric: str, k: int) -> pd.DataFrame:
    """The models' ranks on several datasets, 1 the best, ties sharing their mean.

    Parameters
    ----------
    tables : dict of str to DataFrame
        Dataset -> its metrics, from :func:`metrics_and_pairs`.
    metric : str
    k : int

    Returns
    -------
    DataFrame
        model, a column a dataset, mean rank; best first. Models that all datasets have, and datasets that have the metric at k.
    """
    values = {}
    for dataset, table in tables.items():
        part = table[(table["metric"] == metric) & (table["k"] == k)]
        if len(part):
            values[dataset] = part.set_index("model")["value"]
    wide = pd.DataFrame(values).dropna()
    placed = wide.rank(ascending=METRICS[metric].better == "lower", method="average")
    placed["mean rank"] = placed.mean(axis=1)
    return placed.sort_values("mean rank", kind="stable").rename_axis("model").reset_index()


def critical_difference(n_models: int, n_datasets: int) -> float:
    """Nemenyi's: mean ranks further apart than this differ at 5 % (Demšar 2006, section 3.2.2).

    Parameters
    ----------
    n_models, n_datasets : int
        2 or more models, 1 or more datasets.

    Returns
    -------
    float
        NaN for fewer datasets than :data:`LEAST_DATASETS`: its law is one of many.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2), round(critical_difference(5, 30), 3)        # his examples: 1.25 with q = 2.569
    (1.25, 1.114)
    """
    if n_datasets < LEAST_DATASETS:
        return np.nan
    from scipy import stats  # only here: it takes a second to import

    q = float(stats.studentized_range.isf(LEVEL, n_models, np.inf)) / 2**0.5
    return q * (n_models * (n_models + 1) / (6 * n_datasets)) ** 0.5


def friedman(placed: pd.DataFrame) -> float:
    """The p-value of Friedman's test that all models rank alike.

    Under the hypothesis every order of a dataset's ranks is as likely as any other, so for few models and datasets the p-value
    is counted: the share of all such orders whose rank sums are as far apart as those seen, or further. Where there are too
    many (:data:`_EXACT_RANKINGS`) it is Iman and Davenport's F law, with tied ranks taken into account.

    Parameters
    ----------
    placed : DataFrame
        From :func:`ranks`.

    Returns
    -------
    float
        NaN for fewer than two models or datasets.

    Examples
    --------
    >>> alike = pd.DataFrame({"model": ["a", "b"], "x": [1.0, 2.0], "y": [1.0, 2.0], "mean rank": [1.0, 2.0]})
    >>> friedman(alike)  # the second dataset repeats the first by a chance of one half
    0.5
    """
    m, n = len(placed), placed.shape[1] - 2
    if m < 2 or n < 2:
        return np.nan
    # Mean ranks are halves at most: doubled, less their mean, they are whole numbers, and their sums exact.
    ranked = np.rint(2 * placed.drop(columns=["model", "mean rank"]).to_numpy(float).T).astype(np.int64) - (m + 1)
    seen, possible = int((ranked.sum(axis=0) ** 2).sum()), int((ranked**2).sum())
    counted = _as_far_apart(ranked, seen)
    if counted is not None:
        return counted
    if seen == n * possible:
        # All datasets rank alike, for which the F law has 0: each but the first repeats one of the orders there are.
        orders = math.factorial(m) / math.prod(
            map(math.factorial, np.unique(ranked[0], return_counts=True)[1].tolist())
        )
        return orders ** (1 - n)
    chi = (m - 1) * seen / possible
    return float(special.fdtrc(m - 1, (m - 1) * (n - 1), (n - 1) * chi / (n * (m - 1) - chi)))


def _as_far_apart(ranked: np.ndarray, seen: int) -> float | None:
    """The share of all orders within rows whose column sums have a sum of squares of ``seen`` or more; None for too many."""
    m = ranked.shape[1]
    if m > _EXACT_MODELS:
        return None
    sums, shares = np.sort(ranked[:1], axis=1), np.ones(1)
    for row in ranked[1:]:
        orders = np.array(sorted(set(itertools.permutations(row.tolist()))))
        if len(sums) * len(orders) > _EXACT_RANKINGS:
            return None
        reached = np.sort((sums[:, None] + orders).reshape(-1, m), axis=1)
        sums, which = np.unique(reached, axis=0, return_inverse=True)
        shares = np.bincount(which.ravel(), np.repeat(shares / len(orders), len(orders)))
    return float(min(1.0, shares[(sums**2).sum(axis=1) >= seen].sum()))
