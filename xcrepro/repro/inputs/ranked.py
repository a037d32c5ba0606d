"""Metrics of models at k as a table: on the observed truth, and of a twin on the complete truth beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from xcrepro.core.data.dataset import Dataset
from xcrepro.core.metrics import evaluate
from xcrepro.core.predictions import TopK
from xcrepro.repro.inputs.datasets import complete, weights

KS = (1, 3, 5)
METRICS = ("P", "nDCG", "PSP", "PSnDCG")
"""The repository's."""
ESTIMATED = ("P", "nDCG")
"""The metrics that propensity-scored ones estimate on the complete truth."""


def compare(
    ds: Dataset, tops: Mapping[str, TopK], metrics: Sequence[str] = METRICS, ks: Sequence[int] = KS
) -> pd.DataFrame:
    """Metrics of each model on the test points, percent: model, then a column per metric and k, ``P@1``.

    Of a twin, behind each of :data:`ESTIMATED` the same on its complete truth, ``P@1 complete``. The bare PSP@k and
    PSnDCG@k (``PSP (bare)``) are unbiased estimates of it, with the right propensities.
    """
    truth, inverse, rows = complete(ds), weights(ds), []
    estimated = [name for name in metrics if name in ESTIMATED] if truth is not None else []
    for model, top in tops.items():
        found = _values(ds.test.Y, top, ks, inverse, metrics)
        there = _values(truth, top, ks, None, estimated) if estimated else {}
        row = {"model": model}
        for metric in metrics:
            for k in ks:
                row[f"{metric}@{k}"] = found[metric, k]
                if metric in estimated:
                    row[f"{metric}@{k} complete"] = there[metric, k]
        rows.append(row)
    return pd.DataFrame(rows)


def _values(Y, top: TopK, ks: Sequence[int], inverse, metrics: Sequence[str]) -> dict[tuple[str, int], float]:
    found = evaluate(Y, top, ks, inverse, metrics=list(metrics))
    return {(m, k): 100 * v for m, k, v in zip(found["metric"], found["k"], found["value"], strict=True)}
