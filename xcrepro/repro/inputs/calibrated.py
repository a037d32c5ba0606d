"""Predictions before and after calibration: what the calibration items share.

Calibration *at k* (calibration, sections 2.2 and 4): the first k places of all test points are pooled and one map is
fitted to them by cross-fitting over contiguous folds of the test points. So k = 1, 3 and 5 each have their own map.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xcrepro.core import calibrate, plugins
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.metrics import calibration, compare
from xcrepro.core.metrics.calibration import is_probability
from xcrepro.core.metrics.replicates import mean_difference
from xcrepro.core.metrics.significance import holm
from xcrepro.core.predictions import TopK
from xcrepro.models.twin import Twin, columns
from xcrepro.repro.inputs import baselines

MODELS = ("Popularity", "1-vs-All", "DiSMEC", "PLT", "FastXML", "PfastreXML", "Neural")
"""The baselines of the tables."""
SCORES = {
    "DiSMEC": "margins",
    "PfastXML": "propensity-weighted shares",
    "PfastreXML": "an order",
    "Neural, squared hinge": "margins",
}
"""What the scores of baselines are that are no probabilities. Of PfastreXML they happen to lie in [0, 1]."""
NO_PROBABILITIES = tuple(SCORES)
ROUNDING = 1e-6
"""As far outside [0, 1] a score is a probability that was rounded."""


def keep_train_points(ds: Dataset, rows: slice | np.ndarray) -> Dataset:
    """The data with these train points alone; labels that none of them has observed fall out of both splits."""
    train = ds.train.rows(rows)
    seen = np.flatnonzero(np.bincount(train.Y.indices, minlength=train.Y.shape[1]))
    return keep_labels(dataclasses.replace(ds, train=train), seen)


def keep_labels(ds: Dataset, labels: np.ndarray) -> Dataset:
    """The data with these labels alone, in the order of their ids here, with all points and what is known of the labels."""

    def split(points: Split) -> Split:
        of_points = {"X", "texts", "numbers"}
        of_labels = [field.name for field in dataclasses.fields(points) if field.name not in of_points]
        return dataclasses.replace(points, **{name: columns(getattr(points, name), labels) for name in of_labels})

    names, codes = (tuple(of[label] for label in labels) if of else () for of in (ds.label_names, ds.label_codes))
    validation = None if ds.validation is None else split(ds.validation)
    words = None if ds.label_features is None else ds.label_features[labels]
    named = {"label_names": names, "label_codes": codes, "label_features": words}
    if ds.excluded:
        place = np.full(ds.test.Y.shape[1], -1)
        place[labels] = np.arange(len(labels))
        rows, now = ds.excluded[0], place[ds.excluded[1]]
        named["excluded"] = (rows[now >= 0], now[now >= 0]) if (now >= 0).any() else None
    ds = dataclasses.replace(ds, train=split(ds.train), test=split(ds.test), validation=validation, **named)
    if not isinstance(ds, Twin):
        return ds
    chance = ds.train.marginals
    counts = np.bincount(chance.indices, chance.data.astype(np.float64), len(labels))
    return dataclasses.replace(ds, propensities=ds.propensities[labels], expected_counts=counts)


def linked(top: TopK, k: int, name: str = "") -> TopK:
    """The first k places with scores in [0, 1]: as they are, or (s - min) / (max - min) over all of them; the order stays.

    The latter is how the authors treat DiSMEC's margins (calibration, section 3). Models of :data:`SCORES` declare that
    their scores are no probabilities; without a name scores are squeezed only if one lies outside [0, 1].
    """
    top = top.head(k)
    if baselines.plain(name) not in NO_PROBABILITIES:
        inside = np.clip(top.scores, 0, 1)
        near = TopK(top.ids, np.where(np.abs(top.scores - inside) <= ROUNDING, inside, top.scores), top.n_labels)
        if is_probability(near):
            return near
    return TopK(top.ids, calibrate.min_max(top.scores).astype(np.float32), top.n_labels)


Tops = Mapping[str, TopK]
"""Model -> its predictions for the test points."""


def probabilities(tops: Tops, k: int, given: str = "") -> dict[str, TopK]:
    """The first k places of each model with scores in [0, 1] (:func:`linked`); those of files are squeezed only at need."""
    files = _files(given)
    return {name: linked(top, k, "" if baselines.plain(name) in files else name) for name, top in tops.items()}


def describe_scores(tops: Tops, given: str = "") -> str:
    """One sentence on which scores are taken as probabilities and which are squeezed into [0, 1], and why."""
    files = _files(given)
    of = {name: baselines.plain(name) for name in tops}
    why = {name: SCORES[one] for name, one in of.items() if one in SCORES and one not in files}
    outside = {name for name, top in tops.items() if name not in why and not _near_probability(top)}
    why |= dict.fromkeys(outside, "some lie outside")
    told = ", ".join(f"{name} ({why[name]})" for name in tops if name in why)
    squeezed = f", but squeezed into [0, 1] for {told}" if told else ""
    return f"Scores are probabilities as they are{squeezed}."


def _files(given: str) -> set[str]:
    return set(plugins.find("xcrepro.repro.inputs", "formats").model_files(given)) if given else set()


def _near_probability(top: TopK) -> bool:
    scores = top.scores[top.ids >= 0]
    return bool(((scores >= -ROUNDING) & (scores <= 1 + ROUNDING)).all())


def held_out(
    ds: Dataset, names: Sequence[str], seed: int = 0, given: str = "", places: int = baselines.SHOWN
) -> dict[str, TopK]:
    """Model -> predictions for ``ds.validation``, to fit a map of scores on; empty if the dataset has no such points."""
    if ds.validation is None or ds.validation.X is None:
        return {}
    files = _files(given)
    known = baselines.RECIPES | baselines.VARIANTS
    ours = [name for name in names if baselines.plain(name) not in files and baselines.plain(name) in known]
    X = ds.validation.X
    return {name: baselines.training(name, ds, seed).predictions(X, places) for name in ours}


def recalibrated(
    ds: Dataset, top: TopK, held_out: TopK | None = None, method="isotonic", *, separate: bool = False
) -> TopK:
    """Predictions for the test points with calibrated scores, one map for all places, or ``separate`` ones, which rank anew.

    ``held_out`` are the same model's predictions for ``ds.validation``, to fit the map on. Without them it is
    cross-fitted on the test points, in ten contiguous folds, as the paper does.
    """
    if held_out is None:
        return calibrate.cross_fit_top(ds.test.Y, top, method, separate=separate)
    held_out, Y = held_out.head(top.k), ds.validation.Y
    if not separate:
        return calibrate.transform(calibrate.fit_top(Y, held_out, method), top)
    scores = np.empty(top.scores.shape, np.float32)
    for place in range(top.k):
        fitted, new = (TopK(one.ids[:, [place]], one.scores[:, [place]], one.n_labels) for one in (held_out, top))
        scores[:, [place]] = calibrate.transform(calibrate.fit_top(Y, fitted, method), new).scores
    order = np.argsort(-scores, axis=1, kind="stable")
    return TopK(np.take_along_axis(top.ids, order, 1), np.take_along_axis(scores, order, 1), top.n_labels)


def compared(Y, pairs: Mapping[str, tuple[TopK, TopK]], metrics: Sequence[str], k: int) -> pd.DataFrame:
    """Left minus right of each pair of predictions: model, metric, k, value, stderr, low, high, p raw (not corrected)."""
    keep = ["metric", "k", "value", "stderr", "low", "high", "p raw"]
    parts = []
    for name, (left, right) in pairs.items():
        found = compare(Y, {"left": left, "right": right}, list(metrics), [k])[keep]
        parts.append(found.assign(model=name)[["model", *keep]])
    return pd.concat(parts, ignore_index=True)


def mean_of(Y, cells: Sequence[tuple[TopK, TopK, int]], metric: str) -> pd.DataFrame:
    """The mean over cells (left, right, k) of left minus right, as one row of :func:`compared`, for a claim in general."""
    value, error = mean_difference(Y, cells, metric)
    k = ";".join(str(k) for k in sorted({k for *_, k in cells}))
    row = {"model": f"mean of {len(cells)}", "metric": metric, "k": k, "value": value, "stderr": error}
    return pd.DataFrame([row])


def outcome(differences: pd.DataFrame, side: str, what: str = "") -> tuple[bool | None, str]:
    """Whether each of the differences of :func:`compared` is on ``side``, as the rule for claims has it; and a sentence with
    counts of those that are clear (Holm's p below 0.05). The range of the differences is in points."""
    clear = holm(differences["p raw"]) < 0.05
    sign = -1 if side == "below" else 1
    each = (differences["p raw"] < 0.05) & (sign * differences["value"] > 0)
    right, wrong = clear & (sign * differences["value"] > 0), clear & (sign * differences["value"] < 0)
    other = "above" if side == "below" else "below"
    parts = [f"{what} {side} in {right.sum()} of {len(differences)}".strip()]
    parts += [f"{other} in {wrong.sum()}"] if wrong.any() else []
    parts += [f"too small to tell in {(~right & ~wrong).sum()}"] if (~right & ~wrong).any() else []
    ends = f"{100 * differences['value'].min():+.1f} to {100 * differences['value'].max():+.1f} points"
    return (False if wrong.any() else True if each.all() else None), f"{', '.join(parts)} ({ends})"


def expected_error(scores: np.ndarray, probabilities: np.ndarray, bins: int = calibration.BINS) -> float:
    """ECE, a fraction, with probabilities (n,) of a hit in place of the hits; bins of equal width, closed to the left."""
    at = np.minimum((scores * np.float32(bins)).astype(np.int64), bins - 1)
    gaps = np.bincount(at, scores, bins) - np.bincount(at, probabilities, bins)
    return float(np.abs(gaps).sum() / scores.size)
