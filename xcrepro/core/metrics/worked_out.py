"""What the folds of a State come to: the formulas of the registry over exact sums, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcrepro.core.accumulators.rows import RowSums
from xcrepro.core.accumulators.ties import ORDERS, TiedSums
from xcrepro.core.metrics import formulas
from xcrepro.core.metrics.requests import Asked

Folds = dict[str, Any]


def values(asked: Asked, folds: Folds) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Name, ks and values of each metric, in the order asked for; binned macro-F1 has a name for each bin."""
    found, hit, pairs, pools = [], None, {}, {}
    for metric, at in asked.wanted:
        if metric.fold == "rows":
            sums = row_sums(asked, folds)
            found.append((metric.name, at, metric.formula(sums)[np.searchsorted(sums.ks, at)]))
            continue
        if metric.fold in ("pairs", "scores"):
            values = []
            for k in at.tolist():
                if k not in pairs:
                    pairs[k] = formulas.check_any(folds["pairs"].at(k))
                if metric.fold == "scores" and k not in pools:
                    pools[k] = folds["scores"].pool(k)
                values.append(metric.formula(*([pools[k]] if metric.fold == "scores" else []), pairs[k]))
            found.append((metric.name, at, np.array(values)))
            continue
        if metric.fold == "predicted":
            counts = metric.formula(folds["labels"].n_predicted())
            found.append((metric.name, at, counts[np.searchsorted(folds["labels"].ks, at)]))
            continue
        hit = hit or folds["labels"].hit_labels()
        if metric.fold == "bins":
            found += [(name, at, v) for name, v in metric.formula(hit.at(at), asked.counts).items()]
        elif metric.fold == "truths":
            found.append((metric.name, at, metric.formula(hit.at(at), folds["truths"].truths())))
        else:
            found.append((metric.name, at, metric.formula(hit)[np.searchsorted(hit.ks, at)]))
    return found


def row_sums(asked: Asked, folds: Folds) -> RowSums:
    """The sums of the order of tied scores that values are of."""
    sums = folds["rows"]
    if asked.options.ties == "lowest-id":
        return sums
    return sums.under("expected") if asked.options.ties == "expected" else sums.given


def bounds(asked: Asked, folds: Folds) -> dict[str, np.ndarray]:
    """What ties may do to each value, in the order of :meth:`compute`'s lines."""
    sums: TiedSums = folds["rows"]
    found: dict[str, np.ndarray] = {}
    expected, *ends = (sums.under(order) for order in ORDERS)
    places = [np.searchsorted(sums.ks, at) for _, at in asked.wanted]

    def each(of) -> np.ndarray:
        return np.concatenate([of(metric)[at] for (metric, _), at in zip(asked.wanted, places, strict=True)])

    low, high = (each(lambda metric, end=end: metric.formula(end)) for end in ends)
    found |= {"lowest": np.minimum(low, high), "expected": each(lambda metric: metric.formula(expected))}
    found["highest"] = np.maximum(low, high)
    which = {metric.name: np.searchsorted(sums.given.columns, metric.columns) for metric, _ in asked.wanted}
    found["decided"] = each(lambda metric: sums.decided[which[metric.name]].max(axis=0))
    return found | {"cut": each(lambda _: sums.cut)}


def drawn(asked: Asked, folds: Folds) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Ks, values and samples of each metric that is made of sums over rows; a sample without a row is NaN."""
    whole, drawn, found = folds["rows"], folds["drawn"], {}
    for metric, at in asked.wanted:
        if metric.interval != "bootstrap":
            continue
        places = np.searchsorted(whole.ks, at)
        with np.errstate(invalid="ignore"):
            samples = metric.formula(drawn)[:, places]
        samples[drawn.n_rows[:, 0] == 0] = np.nan
        found[metric.name] = at, metric.formula(whole)[places], samples
    return found


def check_sums(asked: Asked, folds: Folds) -> None:
    """Raise ValueError where a mean or share over rows is none: below 0 or above 1."""
    for metric, at in asked.wanted:
        if metric.is_share:
            sums = row_sums(asked, folds)
            for k, value in zip(at, metric.formula(sums)[np.searchsorted(sums.ks, at)], strict=True):
                if not -1e-9 <= value <= 1 + 1e-9:
                    raise ValueError(f"{metric.name}@{k} = {value:.4g}, which is a share")
