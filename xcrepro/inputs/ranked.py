"""Metrics of models at k as a table: on the observed truth, and of a twin on the complete truth beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from xcrepro.data.dataset import Dataset
from xcrepro.inputs.datasets import complete, weights
from xcrepro.metrics import evaluate
from xcrepro.predictions import TopK

KS = (1, 3, 5)
METRICS = ("P", "nDCG", "PSP", "PSnDCG")
"""The repository's."""
ESTIMATED = ("P", "nDCG")
"""The metrics that propensity-scored ones estimate on the complete truth."""


def compare(
    ds: Dataset, tops: Mapping[str, TopK], metrics: Sequence[str] = METRICS, ks: Sequence[int] = KS
) -> pd.DataFrame:
    """Metrics of each model on the test points: what is observed, and what it would be were no label missing.

    Unbiased estimates of P@k and nDCG@k on the complete truth are the bare PSP@k and PSnDCG@k (``PSP (bare)``), with
    the right propensities. The published ratios divide these by the best that the observed labels allow.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    metrics : sequence of str
        Names as :func:`xcrepro.evaluate` takes them; weights come from the train counts and the dataset's A and B.
    ks : sequence of int

    Returns
    -------
    DataFrame
        Percent: model, then a column a metric and k, ``P@1``. Of a twin, behind each of :data:`ESTIMATED` the same on
        its complete truth, ``P@1 complete``; of real data nobody knows it, and there is no such column.

    Examples
    --------
    >>> from xcrepro.inputs.datasets import pick
    >>> ds = pick("bibtex", scale=0.1)
    >>> compare(ds, {"true": TopK.from_scores(ds.test.Y_complete, k=1)}, ["P", "PSP"], [1]).columns.tolist()
    ['model', 'P@1', 'P@1 complete', 'PSP@1']
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
