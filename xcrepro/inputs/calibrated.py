"""Predictions before and after calibration, and their errors at k: what the calibration items share.

Calibration *at k* (calibration, sections 2.2 and 4): the first k places of all test points are pooled, one map is fitted to
them by cross-fitting over contiguous folds of the test points, and the metric is taken over the same places. So k = 1, 3
and 5 each have a map of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xcrepro import calibrate
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.errors import ArgumentError
from xcrepro.inputs import baselines, datasets
from xcrepro.metrics import ranking
from xcrepro.metrics.calibration import BINS, calibration_table
from xcrepro.predictions import TopK

KS = (1, 3, 5)
FOLDS = 10
METRICS = ("ECE", "ACE", "Brier", "NLL")
CLOSED = "torchmetrics"
"""Whose bins ECE has: those of the authors' code, where a score of exactly 1 has a bin of its own."""


MODELS = ("Popularity", "1-vs-All", "DiSMEC", "PLT", "FastXML", "PfastreXML", "Neural")
"""The baselines of the tables."""
NO_PROBABILITIES = ("DiSMEC", "PfastXML", "PfastreXML", "Neural, squared hinge")
"""Baselines whose scores are margins or orders. Of PfastreXML they happen to lie in [0, 1]."""


def data(
    dataset: str, size: str = "small", scale: float = 1.0, seed: int = 0, folder: str = "", train_points: int = 0
) -> Dataset:
    """:func:`xcrepro.inputs.datasets.pick`, of a twin only the first ``train_points`` train points (0: all).

    An error of calibration is known no better than the test points allow; a large twin with few train points has many of
    them at little cost. Of real data all train points stay.
    """
    ds = datasets.pick(dataset, size, scale, seed, folder)
    if train_points < 0:
        raise ArgumentError("train_points", "must be 0 (all) or more", train_points)
    if not isinstance(ds, Twin) or not 0 < train_points < ds.n_train:
        return ds
    train = ds.train
    names = [field.name for field in dataclasses.fields(train)]
    short = dataclasses.replace(train, **{name: getattr(train, name)[:train_points] for name in names})
    return dataclasses.replace(ds, train=short)


def predictions(
    ds: Dataset, models: Sequence[str] = (), seed: int = 0, given: str = "", places: int = baselines.PLACES
) -> dict[str, TopK]:
    """:func:`xcrepro.inputs.baselines.predictions` of ``models``, by default :data:`MODELS`."""
    return baselines.predictions(ds, list(models) or list(MODELS), seed, given, places)


def is_probability(top: TopK) -> bool:
    """Whether every score lies in [0, 1], so that it can be read as a probability as it is."""
    scores = top.scores[top.ids >= 0]
    return bool(scores.size == 0 or (scores.min() >= 0 and scores.max() <= 1))


def linked(top: TopK, k: int, name: str = "") -> TopK:
    """The first k places with scores in [0, 1]: as they are, or through (s - min) / (max - min) over all of them, as the
    authors treat DiSMEC's margins (calibration, section 3). The order stays.

    That is done where a score lies outside [0, 1], and for a ``name`` of :data:`NO_PROBABILITIES`, whose scores may happen to
    lie inside. A file of saved predictions under such a name is squeezed too: probabilities want another name.

    >>> top = TopK(np.array([[0, 1], [1, 0]], np.int32), np.array([[3.0, 1.0], [2.0, -1.0]], np.float32), 2)
    >>> linked(top, 2).scores
    array([[1.  , 0.5 ],
           [0.75, 0.  ]], dtype=float32)
    """
    top = top.head(k)
    if name not in NO_PROBABILITIES and is_probability(top):
        return top
    return TopK(top.ids, calibrate.min_max(top.scores).astype(np.float32), top.n_labels)


def before_after(
    ds: Dataset,
    tops: Mapping[str, TopK],
    method: str | object = "isotonic",
    k: int = 5,
    folds: int = FOLDS,
    separate: bool = False,
) -> dict[str, tuple[TopK, TopK]]:
    """Model -> its first k places with scores in [0, 1] (:func:`linked`), and the same calibrated on the test points of ``ds``.

    method, folds, separate: as :func:`xcrepro.calibrate.cross_fit_top` takes them. Joint isotonic keeps every row's order;
    the others may re-rank a row's k places.
    """
    found = {}
    for name, top in tops.items():
        before = linked(top, k, name)
        found[name] = before, calibrate.cross_fit_top(ds.test.Y, before, method, folds, separate=separate)
    return found


def errors(
    ds: Dataset,
    tops: Mapping[str, TopK],
    method: str | object = "isotonic",
    ks: Sequence[int] = KS,
    folds: int = FOLDS,
    metrics: Sequence[str] = METRICS,
    separate: bool = False,
) -> pd.DataFrame:
    """Errors at k before and after calibration at the same k: model, metric, k, before, after.

    metrics: names of :data:`xcrepro.metrics.calibration.METRICS`, or ``"P"`` for P@k. In percent, but NLL in nats. ECE has the
    bins of the authors' code (:data:`CLOSED`).
    """
    rows = []
    for k in ks:
        for name, pair in before_after(ds, tops, method, k, folds, separate).items():
            values = [_values(ds.test.Y, top, k, metrics) for top in pair]
            rows += [(name, metric, int(k), values[0][metric], values[1][metric]) for metric in metrics]
    table = pd.DataFrame(rows, columns=["model", "metric", "k", "before", "after"])
    # By model first, as the papers' tables go.
    order = {name: i for i, name in enumerate(tops)}
    return table.sort_values("model", key=lambda column: column.map(order), kind="stable").reset_index(drop=True)


def _values(Y, top: TopK, k: int, metrics: Sequence[str]) -> dict[str, float]:
    wanted = [name for name in metrics if name != "P"]
    found = calibration_table(Y, top, [k], closed=CLOSED, metrics=wanted) if wanted else None
    values = dict(zip(found["metric"], found["value"], strict=True)) if wanted else {}
    if "P" in metrics:
        values["P"] = float(ranking.precision(Y, top, [k])[0])
    return {name: value if name == "NLL" else 100 * value for name, value in values.items()}


def true_probabilities(ds: Twin, top: TopK) -> np.ndarray:
    """(n, k) float64: the twin's P(y_l = 1 | x) of every label in ``top`` for the test points; 0 at absent places."""
    ids = np.maximum(top.ids, 0)
    found = np.asarray(ds.test.marginals[np.arange(len(top))[:, None], ids].todense(), np.float64)
    return np.where(top.ids >= 0, found, 0.0)


def true_error(ds: Twin, top: TopK, bins: int = BINS) -> float:
    """ECE of all places of ``top`` with the twin's probabilities in place of the hits: what ECE would be without the noise of
    drawing them. A fraction.

    >>> import xcrepro as xc
    >>> ds = xc.twin("bibtex", scale=0.1)
    >>> true_error(ds, TopK.from_scores(ds.test.marginals, k=5)) < 1e-7
    True
    """
    present = top.ids >= 0
    scores = top.scores[present].astype(np.float64)
    return float(_binned(scores, true_probabilities(ds, top)[present][None], bins)[0])


def floor(top: TopK, bins: int = BINS, draws: int = 200, seed: int = 0) -> float:
    """The ECE that a perfectly calibrated model with these scores has on average, because hits are few: the noise floor.

    Hits are drawn from the scores, independently, ``draws`` times. A fraction; it falls with the root of the number of points.

    >>> sure = TopK(np.zeros((50, 1), np.int32), np.ones((50, 1), np.float32), 1)
    >>> unsure = TopK(np.zeros((50, 1), np.int32), np.full((50, 1), 0.5, np.float32), 1)
    >>> floor(sure), 0.04 < floor(unsure) < 0.07                                    # the latter about 0.4 / sqrt(50)
    (0.0, True)
    """
    scores = top.scores[top.ids >= 0].astype(np.float64)
    rng = np.random.default_rng(seed)
    hits = (rng.random(scores.size) < scores for _ in range(draws))
    return float(np.mean(_binned(scores, hits, bins)))


def _binned(scores: np.ndarray, outcomes, bins: int) -> np.ndarray:
    """ECE of one set of scores with each of several outcomes, in equal-width bins closed to the left."""
    bin_of = np.minimum((scores.astype(np.float32) * np.float32(bins)).astype(np.int64), bins - 1)
    total = np.bincount(bin_of, scores, bins)
    return np.array([np.abs(total - np.bincount(bin_of, each, bins)).sum() / scores.size for each in outcomes])
