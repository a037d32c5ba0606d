"""The numbers of a report, as tidy tables: fractions (entropy and NLL in nats), a row a number, NaN where none is known.

Every value is the one that :func:`xcrepro.evaluate` has, every difference the one of :func:`xcrepro.compare`. What is counted
by label, by point or by bin of scores is that of a model's first seed.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xcrepro.core import calibrate, decide
from xcrepro.core.arguments import one_of
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import (
    SharedErrorsWarning,
    best_macro_f1,
    confusion,
    evaluate,
    holm,
    macro_t_test,
    pairs,
    reliability,
)
from xcrepro.core.metrics.agreement import changed_labels, overlap, rank_biased_overlap
from xcrepro.core.metrics.gaps import label_gaps
from xcrepro.core.metrics.labelwise import frequency_bins
from xcrepro.core.metrics.registry import METRICS, Metric, family, metric_named, of_bin
from xcrepro.core.metrics.registry import wanted as metrics_at
from xcrepro.core.metrics.replicates import Options, Replicates, System, has_predictions
from xcrepro.core.predictions import TopK
from xcrepro.tools.diagnose import over_seen
from xcrepro.tools.reports.given import Given, labels_of

LEVEL = 0.05
"""A p-value below it is no longer chance, here."""

WEIGHTS = ("inverse_propensity",)
STATES = ("before", "after")
CALIBRATORS = {"isotonic": "isotonic regression", "platt": "Platt scaling", "beta": "beta calibration"}
"""The maps that a report can fit, and what people call them."""
BETAS = (np.inf, 1.0, 0.25, 0.0625, 0.0)
"""Of greedy selection for coverage, from the plain top k to coverage alone."""
FOLDS = 10
WORST = 20
"""Labels whose own calibration gaps a report lists."""
LEAST_ROWS = 8
"""Fewer points have no intervals."""
MANY = 8
"""Of more models not every pair is looked at one by one, and figures show the best."""
LARGE = 20_000
"""Of more points fewer samples are drawn."""
_DRAWN = {"n_resamples": 1000, "seed": 0, "confidence_level": 0.95}  # unless a caller says otherwise
_PAIRS_OF_ACE = 100_000  # ACE sorts its scores anew in each part of the rows
_EXACT_CEILING = 20_000  # pairs that its linear programme takes
LEAST_DATASETS = 6
"""Fewer have no critical difference: on five, two models cannot differ at 5 % whatever their ranks (2 / 2^5)."""


# ---------------------------------------------------------------- metrics and pairs


def metrics_in(*sections: str) -> list[str]:
    """The metrics of some sections of a report, all unasked ones but those of scores without any."""
    sections = sections or ("ranking", "labelwise", "coverage")
    return [metric.name for metric in METRICS.values() if metric.section in sections]


def metric_names(given: Given) -> list[str]:
    """The metrics of a report that have what they need: propensities and bins a train truth, some a hierarchy."""
    return [name for name in metrics_in() if all(getattr(given, need) is not None for need in METRICS[name].needs)]


def metric_of(name: str) -> Metric:
    """The metric of that name; of another than the kit's all that is known is that more is better."""
    known = name in METRICS or family(name) or of_bin(name)
    return metric_named(name) if known else Metric(name, "own", metric_of, "your own", unit="")


def compared(given: Given, ks: Sequence[int], metrics: Sequence[str] = (), own_metrics=()) -> list[tuple[str, int]]:
    """What models are compared in: metrics, as :func:`xcrepro.compare` takes them; else P at the first k, at the last nDCG, PSP
    and macro-F1, a caller's own, and ECE if the scores of all models can be probabilities."""
    if metrics:
        return [(metric.name, int(k)) for metric, at in metrics_at(metrics, ks, own_metrics) for k in at]
    own = ["nDCG", *(["PSP"] if given.label_counts is not None else []), "macro-F1", *own_metrics]
    own += ["ECE"] if given.with_probabilities == given.models else []
    return [("P", min(ks)), *((name, max(ks)) for name in own)]


def metrics_and_pairs(
    given: Given, ks: Sequence[int], metrics: Sequence[str] = (), extra=None, own_metrics=(), **drawn
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Metrics of each model (:func:`xcrepro.evaluate`) with its ``seeds``, and all pairs (:func:`xcrepro.compare`) in what they
    are :func:`compared` in, from the same replicates of the test points; ``drawn``: n_resamples, seed and confidence_level.

    A model with a seed that predicts nothing is in no pair: it would lose beyond doubt, whatever it is worth."""
    about = {"inverse_propensity": given.inverse_propensity, "label_counts": given.label_counts}
    about |= {"hierarchy": given.hierarchy, "extra": extra}
    wanted = compared(given, ks, metrics, own_metrics)
    tops = {model: list(runs.values()) for model, runs in given.runs.items()}
    names, ks = dict.fromkeys([*metric_names(given), *(name for name, _ in wanted)]), {*ks, *(k for _, k in wanted)}
    if given.truth.n_rows < LEAST_ROWS:
        table = _measured(given, tops, sorted(ks), [*names], drawn, **about)
        found = pd.DataFrame(columns=["metric", "k", "left", "right", "value", "stderr", "low", "high", "p", "p raw"])
    else:
        how, ks = (Options(**about),), sorted(ks)
        table = _possible(Replicates(given.truth, tops, ks, [*names], *how, pairs=[], **(_DRAWN | drawn)).table())
        alive = {model: tops[model] for model in alive_of(given)}
        asked = [f"{name}@{k}" for name, k in wanted]
        found = Replicates(given.truth, alive or tops, ks, asked, *how, **(_DRAWN | drawn)).differences()
        found = found.iloc[:0] if len(alive) < 2 else found.set_index(["metric", "k"]).loc[wanted].reset_index()
        found.insert(found.columns.get_loc("p raw"), "p", holm(found["p raw"]))
    return table.assign(seeds=table["model"].map(lambda model: len(tops[model]))), found


def alive_of(given: Given) -> list[str]:
    """The models that can be compared: every seed predicts something."""
    return [model for model, runs in given.runs.items() if all(map(has_predictions, runs.values()))]


def _measured(given: Given, tops, ks, metrics, drawn: Mapping[str, float], **about) -> pd.DataFrame:
    """As :func:`xcrepro.evaluate` with an interval; of too few points without."""
    if given.truth.n_rows < LEAST_ROWS:
        table = evaluate(given.truth, tops, ks, metrics=metrics, **about)
        return table.assign(stderr=np.nan, low=np.nan, high=np.nan)
    return _possible(evaluate(given.truth, tops, ks, metrics=metrics, **_DRAWN | drawn, **about))


def _possible(table: pd.DataFrame) -> pd.DataFrame:
    """Intervals' ends within what the metric can be: one from a standard error may reach beyond."""
    units = table["metric"].map(lambda name: metric_of(name).unit)
    ends = np.where(units == "", -np.inf, 0.0), np.where(units == "fraction", 1.0, np.inf)
    return table.assign(low=table["low"].clip(*ends), high=table["high"].clip(*ends))


def couples_of(given: Given, best: str) -> list[tuple[str, str]]:
    """The pairs of models that are looked at one by one: all that can be compared, of many models those with the best one."""
    models = alive_of(given)
    if len(models) > MANY and best in models:
        return [(best, other) for other in models if other != best]
    return list(itertools.combinations(models, 2))


def t_tests(given: Given, couples: Sequence[tuple[str, str]], ks: Sequence[int], seed: int) -> pd.DataFrame:
    """The macro t-test of macro-F1 (reeval, section 5.2) for all pairs of models, p corrected together (Holm); of more than
    20,000 points at the last k. ``shared`` above 3: labels of the same points differ alike, and p is too small."""
    rows, large = [], given.truth.n_rows > LARGE
    ks, n_resamples = (ks[-1:], 20) if large else (ks, 100)
    for one, other in couples:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SharedErrorsWarning)
            found = macro_t_test(
                given.truth, given.first(one), given.first(other), ks, n_resamples=n_resamples, seed=seed
            )
        rows += [(one, other, t.metric, t.k, t.difference, t.t, t.degrees, t.p, t.p, t.shared) for t in found]
    names = ["left", "right", "metric", "k", "value", "t", "degrees", "p", "p raw", "shared"]
    table = pd.DataFrame(rows, columns=names)
    return table.assign(p=holm(table["p raw"]))


def bins(metrics: pd.DataFrame, given: Given) -> pd.DataFrame:
    """Macro-F1 by bin of train frequency, and the bin's ceiling: "exact", the largest that k labels per point can have
    (:func:`xcrepro.metrics.best_macro_f1`), or where its linear programme would be too large a "bound", the share of the labels
    with a test point. No rows without a train truth."""
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
    """By band of train frequency: labels, positives (pairs of a test point and its label), predicted (places), hits, covered
    (labels hit), and the band's part of P@k and PSP@k, which add up to them. Without a train truth by test frequency, and
    without PSP."""
    weights, true, parts = given.inverse_propensity, given.truth.label_counts(), []
    which, known = frequency_bins(given.frequency, given.truth.n_labels)
    for model in given.models:
        counts = confusion(given.truth, given.first(model), [k])
        hits = counts.tp[0]
        whole = {"labels": np.ones(which.size), "with a test point": true > 0, "positives": true}
        whole |= {"predicted": counts.predicted[0], "hits": hits, "covered": hits > 0}
        table = {name: np.bincount(which, values, len(known)).astype(int) for name, values in whole.items()}
        parts_of = {"P": hits} if weights is None else {"P": hits, "PSP": hits * weights}
        found = evaluate(given.truth, given.first(model), [k], weights, metrics=[*parts_of])["value"]
        for (name, values), value in zip(parts_of.items(), found, strict=True):
            table[name] = np.bincount(which, values, len(known)) / (values.sum() or 1.0) * value
        table = pd.DataFrame({"model": model, "band": known} | table)
        parts.append(table[table["labels"] > 0])
    return pd.concat(parts, ignore_index=True)


def seen(given: Given, ks: Sequence[int]) -> pd.DataFrame:
    """What models are compared in, over all labels and over those with a train point (:func:`xcrepro.diagnose.over_seen`), of
    each model's first seed. No rows without a train truth, or if training has seen every relevant label."""
    counts, rows = given.label_counts, []
    if counts is None or not counts.any() or not (counts == 0)[given.truth.indices].any():
        return pd.DataFrame(columns=["model", "metric", "k", "value", "seen"])
    names = [name for name in metrics_in() if METRICS[name].unit == "fraction" and METRICS[name].needs in ((), WEIGHTS)]
    for model in given.models:
        top = given.first(model)
        Y, own = over_seen(given.truth, top, counts)
        every = evaluate(given.truth, top, ks, given.inverse_propensity, metrics=names)
        over = evaluate(Y, own, ks, given.inverse_propensity[counts > 0], metrics=names)
        rows.append(every.assign(model=model, seen=over["value"]))
    return pd.concat(rows, ignore_index=True)[["model", "metric", "k", "value", "seen"]]


def overlaps(given: Given, couples: Sequence[tuple[str, str]], ks: Sequence[int]) -> pd.DataFrame:
    """How much of what two models predict is the same (:func:`xcrepro.metrics.overlap`), and in what order
    (:func:`xcrepro.metrics.rank_biased_overlap`, of all places that both keep), of their first seeds; a row a pair."""
    rows = []
    for left, right in couples:
        a, b = given.first(left), given.first(right)
        most = min(a.k, b.k)
        shared = dict(zip([f"overlap@{k}" for k in ks], overlap(a, b, ks).tolist(), strict=True))
        rows.append({"left": left, "right": right, **shared, "RBO": rank_biased_overlap(a.head(most), b.head(most))})
    return pd.DataFrame(rows)


def changed(given: Given, couples: Sequence[tuple[str, str]], k: int) -> pd.DataFrame:
    """Which predictions come and go between two models, by train frequency of their labels
    (:func:`xcrepro.metrics.changed_labels`); without a train truth over all labels."""
    parts, none = [], np.zeros(given.truth.n_labels, int)
    for left, right in couples:
        counts = none if given.label_counts is None else given.label_counts
        part = changed_labels(given.first(left), given.first(right), k, label_counts=counts)
        part = part.rename(columns={"a": "of left", "b": "of right", "gone": "only left", "new": "only right"})
        parts.append(part.assign(left=left, right=right))
    table = pd.concat(parts, ignore_index=True)
    table = table[["left", "right", *table.columns.drop(["left", "right"])]]
    return table.drop(columns="train count") if given.label_counts is None else table


# ---------------------------------------------------------------- calibration


def calibrated(given: Given, k: int, calibrator: str = "isotonic") -> dict[str, dict[str, TopK]]:
    """State -> model -> the first k places of its first seed, of the models with probabilities.

    A calibrator is cross-fitted over contiguous folds of the test points, one map for all k places (calibration, section 4);
    with one point there is no "after".
    """
    found = {state: {} for state in STATES}
    for model in given.with_probabilities:
        top = found["before"][model] = given.first(model).head(k)
        folds = min(FOLDS, len(top))
        # A fold needs a score outside it to learn from.
        if folds > 1 and (top.ids[:, 0] >= 0).sum() > -(-len(top) // folds):
            found["after"][model] = calibrate.cross_fit_top(given.truth, top, calibrator, folds)
    return {state: tops for state, tops in found.items() if tops}


def calibration(
    given: Given, ks: Sequence[int], calibrator: str = "isotonic", **drawn
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Calibration errors before and after a cross-fitted calibrator (:data:`CALIBRATORS`), and the diagrams of
    :func:`xcrepro.metrics.reliability` at the last k.

    Intervals at the last k, of the corrected ECE at all; of ACE not beyond 100,000 pairs. That of "after" is for the map as
    fitted. The corrected ECE, without the noise of its hits, is there before calibration only: beside a cross-fitted map it
    says almost nothing is left where much is.
    """
    parts, diagrams, last = [], [], max(ks)
    sure = [name for name in metrics_in("calibration") if name != "ACE" or given.truth.n_rows * last <= _PAIRS_OF_ACE]
    for k in ks:
        for state, tops in calibrated(given, k, calibrator).items():
            own = sure if k == last else []
            rest = [name for name in metrics_in("calibration") if name not in own] + [*_CORRECTED] * (state == "before")
            found = [evaluate(given.truth, tops, [k], metrics=rest)] if rest else []
            if own:
                found.insert(0, _measured(given, tops, [k], own, drawn))
                of_pairs = {model: pairs(given.truth, top, k) for model, top in tops.items()}
                diagrams += [reliability(*both).assign(model=model, state=state) for model, both in of_pairs.items()]
            parts += [table.assign(state=state) for table in found]
    table = pd.concat(parts)
    corrected = table["metric"].isin([*_CORRECTED])
    ends = table[corrected].pivot(index=["model", "k", "state"], columns="metric", values="value")
    ends = ends.rename(columns=_CORRECTED).reset_index().assign(metric="ECE corrected")
    by = {"key": lambda column: column.map(given.models.index) if column.name == "model" else column}
    by |= {"kind": "stable", "ignore_index": True}
    table = pd.concat([table[~corrected], ends])
    table = table.sort_values(["model", "k", "state"], ascending=[True, True, False], **by)
    curves, first = pd.concat(diagrams).sort_values("model", **by), ["model", "state"]
    curves = curves[[*first, *curves.columns.drop(first)]]
    return table[["model", "metric", "state", "k", "value", "low", "high"]], curves


_CORRECTED = {"ECE corrected": "value", "ECE corrected low": "low", "ECE corrected high": "high"}


def gaps(given: Given, k: int) -> pd.DataFrame:
    """The labels whose scores are furthest from their share of hits, of each model with probabilities the worst
    :data:`WORST` (:func:`xcrepro.metrics.label_gaps`), of its first seed."""
    parts = [
        label_gaps(given.truth, given.first(model), k, label_names=given.label_names, most=WORST).assign(model=model)
        for model in given.with_probabilities
    ]
    table = pd.concat(parts, ignore_index=True)
    return table[["model", *table.columns.drop("model")]]


# ---------------------------------------------------------------- the price of coverage


def price(given: Given, k: int, **drawn) -> pd.DataFrame:
    """P@k and coverage@k where labels are chosen greedily for coverage (algorithm 1), by scores as probabilities: of models
    that have such and saved more than k places, beta from infinity, the plain top k, to 0, coverage alone."""
    rows = []
    for model in given.with_probabilities:
        top = given.first(model)
        if top.k <= k:
            continue
        candidates = top.to_csr()
        chosen = {str(beta): decide.greedy_coverage(candidates, k, beta) for beta in BETAS}
        found = _measured(given, chosen, [k], ["P", "coverage"], drawn)
        found = found.set_index(["model", "metric"])[["value", "low", "high"]]
        rows += [(model, beta, k, *found.loc[(str(beta), "P")], *found.loc[(str(beta), "coverage")]) for beta in BETAS]
    return pd.DataFrame(rows, columns=["model", "beta", "k", "P", "P low", "P high", "Cov", "Cov low", "Cov high"])


# ---------------------------------------------------------------- where models differ


def by_label(given: Given, k: int) -> pd.DataFrame:
    """Every label that has a test point or is predicted: its name, train points, if they are known, test points, and of each
    model "... predicted" and "... hits", the points among whose first k it is, and is rightly."""
    true = given.truth.label_counts()
    found = {model: confusion(given.truth, given.first(model), [k]) for model in given.models}
    seen = true > 0
    for counts in found.values():
        seen |= counts.predicted[0] > 0
    labels, trained = np.flatnonzero(seen), given.label_counts
    table = {"label": labels, "name": [given.name(label) for label in labels]}
    table |= {"train points": "not known" if trained is None else trained[labels], "test points": true[labels]}
    for model, counts in found.items():
        table |= {f"{model} predicted": counts.predicted[0][labels], f"{model} hits": counts.tp[0][labels]}
    return pd.DataFrame(table)


def by_point(given: Given, k: int, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """Every test point: its row, its text if points have one, how many labels it has, and of each model "... hits" among its
    first k and its value of each metric, which has to be a mean over points."""
    table = {"point": np.arange(given.truth.n_rows), **({"text": given.texts} if given.texts else {})}
    table["labels"] = given.truth.sizes
    asked = [metric_named(one_of("per_point", name, over_points())) for name in metrics]
    options = Options(given.inverse_propensity, None, given.label_counts)
    for model in given.models:
        top = given.first(model)
        table[f"{model} hits"] = given.truth.hits(np.ascontiguousarray(top.head(k).ids)).sum(axis=1)
        if asked:
            system = System(given.truth, top, np.array([k]), asked, options)
            table |= {f"{model} {one.name}@{k}": system.units(one.name, 0, "")[0] for one in asked}
    return pd.DataFrame(table)


def over_points() -> list[str]:
    """The metrics that are means over points."""
    return [name for name, metric in METRICS.items() if metric.averages == "rows"]


def won_and_lost(
    couples: Sequence[tuple[str, str]], labels: pd.DataFrame, points: pd.DataFrame, k: int
) -> pd.DataFrame:
    """Of pairs of models: how many labels and points have more hits with the one, with the other, as many."""
    rows = []
    for one, other in couples:
        for counted, table in (("labels", labels[labels["test points"] > 0]), ("points", points)):
            d = (table[f"{one} hits"] - table[f"{other} hits"]).to_numpy()
            rows.append((one, other, k, counted, int((d > 0).sum()), int((d < 0).sum()), int((d == 0).sum())))
    return pd.DataFrame(rows, columns=["left", "right", "k", "counted", "more", "fewer", "as many"])


_ABOUT = ("label", "name", "train points", "test points", "point", "text", "labels")


def most_different(table: pd.DataFrame, one: str, other: str, most: int | None = 10) -> pd.DataFrame:
    """The rows of a table by label or by point whose hits differ most between two models, ties to the first."""
    hits = [f"{one} hits", f"{other} hits"]
    distance = (table[hits[0]] - table[hits[1]]).abs()
    keep = distance[distance > 0].sort_values(ascending=False, kind="stable").index[:most]
    return table.loc[keep, [*(name for name in _ABOUT if name in table), *hits]].reset_index(drop=True)


def with_labels(given: Given, points: pd.DataFrame, one: str, other: str, k: int) -> pd.DataFrame:
    """Points, and which of their relevant labels only the one model has, only the other, neither: the first five of each."""
    first, second = (given.first(model).ids[:, :k] for model in (one, other))
    sets = {f"only {one}": [], f"only {other}": [], "neither": []}
    for row in points["point"]:
        relevant, a, b = (set(map(int, ids)) for ids in (labels_of(given.truth, row), first[row], second[row]))
        for name, part in zip(sets, (relevant & a - b, relevant & b - a, relevant - a - b), strict=True):
            shown = [given.name(label) for label in sorted(part)]
            sets[name].append("; ".join(shown[:5]) + ("; ..." if len(shown) > 5 else ""))
    return points.assign(**sets)


# ---------------------------------------------------------------- over datasets


def ranks(tables: dict[str, pd.DataFrame], metric: str, k: int) -> pd.DataFrame:
    """The models' ranks on several datasets and their mean, 1 the best, ties sharing their mean: of models that all datasets
    have, on datasets that have the metric at k. ``tables`` are those of :func:`metrics_and_pairs`."""
    values = {name: table[(table["metric"] == metric) & (table["k"] == k)] for name, table in tables.items()}
    values = {name: part.set_index("model")["value"] for name, part in values.items() if len(part)}
    wide = pd.DataFrame(values).dropna()
    placed = wide.rank(ascending=metric_of(metric).better == "lower", method="average")
    placed["mean rank"] = placed.mean(axis=1)
    return placed.sort_values("mean rank", kind="stable").rename_axis("model").reset_index()


def ranks_over(
    own: Mapping[str, pd.DataFrame], others: Sequence[tuple[str, pd.DataFrame]], wanted: Sequence[tuple[str, int]]
) -> dict[str, pd.DataFrame]:
    """Metric at k -> the models' ranks over this dataset and others: title -> metrics, and title and metrics of each other."""
    collected = dict(own)
    for title, table in others:
        if title in collected:
            raise ArgumentError("others", "must be reports of other datasets, each with its own title", repr(title))
        collected[title] = table
    placed = {f"{metric}@{k}": ranks(collected, metric, k) for metric, k in wanted}
    found = {what: table for what, table in placed.items() if len(table) > 1 and table.shape[1] > 3}
    if not found:
        raise ArgumentError("others", "must share two models or more with this report, and a metric", sorted(collected))
    return found


def critical_difference(n_models: int, n_datasets: int) -> float:
    """Nemenyi's: mean ranks further apart than this differ at 5 % (Demšar 2006, section 3.2.2); NaN for fewer datasets than
    :data:`LEAST_DATASETS`, because its law is one of many.

    >>> round(critical_difference(4, 14), 2), round(critical_difference(5, 30), 3)        # his examples: 1.25 with q = 2.569
    (1.25, 1.114)
    """
    if n_datasets < LEAST_DATASETS:
        return np.nan
    from scipy import stats  # only here: it takes a second to import

    q = float(stats.studentized_range.isf(LEVEL, n_models, np.inf)) / 2**0.5
    return q * (n_models * (n_models + 1) / (6 * n_datasets)) ** 0.5
