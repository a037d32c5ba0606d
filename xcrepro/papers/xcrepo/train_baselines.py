"""The baselines that several items share, each trained once, and what that cost. Plots nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from xcrepro.data.dataset import Dataset
from xcrepro.inputs import baselines, ranked
from xcrepro.predictions import TopK


def compute(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """P and PSP at 1 and 5 of each model.

    Parameters
    ----------
    ds : Dataset
    tops : mapping
        Model -> its predictions for the test points.

    Returns
    -------
    DataFrame
        Percent: model, P@1, P@5, PSP@1, PSP@5; of a twin P@1 and P@5 on its complete truth as well.
    """
    return ranked.compare(ds, tops, ["P", "PSP"], [1, 5])


def compute_costs(ds: Dataset, names: list[str], seed: int = 0) -> pd.DataFrame:
    """What training cost.

    Parameters
    ----------
    ds : Dataset
    names : list of str
        Names of :mod:`xcrepro.inputs.baselines`.
    seed : int
        Of the training.

    Returns
    -------
    DataFrame
        model, parameters (text), train s, predict ms/point; NaN where it was not recorded. Seconds are those of the
        run that trained; they are shown, never compared.
    """
    rows = []
    for name in names:
        about = baselines.training(name, ds, seed).about()
        points = about.get("predicted points", 0)
        per_point = 1000 * about.get("predict seconds", np.nan) / points if points else np.nan
        rows.append((name, about.get("model", ""), about.get("train seconds", np.nan), per_point))
    return pd.DataFrame(rows, columns=["model", "parameters", "train s", "predict ms/point"])
