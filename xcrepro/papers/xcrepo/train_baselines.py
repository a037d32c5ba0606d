"""The baselines that several items share, each trained once, and what that cost. Plots nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from xcrepro import metrics
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Measured
from xcrepro.inputs import baselines, parameters, ranked
from xcrepro.predictions import TopK

check_parameters = parameters.check


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


def measure(ds: Dataset, tops: Mapping[str, TopK], k: int = 1) -> Measured:
    """P@k of each model, in percent, with a jackknife over blocks of test points."""
    return Measured.of_rows(lambda Y, top: 100 * metrics.precision(Y, top, (k,))[0], ds.test.Y, tops)


def compute_errors(measured: Measured) -> pd.DataFrame:
    """P@1 with its standard error, of each model.

    Parameters
    ----------
    measured : Measured
        Of :func:`measure`.

    Returns
    -------
    DataFrame
        model, P@1 (percent), error (points).
    """
    rows = [(name, value, measured.error(name)) for name, value in measured.values.items()]
    return pd.DataFrame(rows, columns=["model", "P@1", "error"])


def findings(measured: Measured, costs: pd.DataFrame) -> list[str]:
    """Who leads P@1; no seconds, which are a machine's.

    Parameters
    ----------
    measured : Measured
        Of :func:`measure`.
    costs : DataFrame
        Of :func:`compute_costs`.

    Returns
    -------
    list of str
    """
    return [f"{len(costs)} models stand ready. {measured.leader('P@1').sentence}"]
