"""What the items on the trained baselines share: the repository's metrics of each model."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from xcrepro.data.dataset import Dataset
from xcrepro.inputs.datasets import weights
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK

KS = (1, 3, 5)
METRICS = ("P", "nDCG", "PSP", "PSnDCG")


def compute_metrics(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """The repository's metrics of each model.

    Parameters
    ----------
    ds : Dataset
    tops : mapping
        Model -> its predictions for the test points.

    Returns
    -------
    DataFrame
        Percent: model, then P@1 ... PSnDCG@5.
    """
    w, rows = weights(ds), []
    for name, top in tops.items():
        found = ranking.values(METRICS, ds.test.Y, top, KS, w)
        rows.append({"model": name} | {f"{m}@{k}": 100 * found[m][i] for m in METRICS for i, k in enumerate(KS)})
    return pd.DataFrame(rows)
