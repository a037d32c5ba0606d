"""Anybody's saved predictions: how they are written and read, their errors, and the calibration paper's fig 4."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, published
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import baselines, calibrated
from xcrepro.predictions import TopK
from xcrepro.repro import figures, tables

METRICS = ("P", "ECE", "ACE", "Brier", "NLL")


def write_by_hand(path: str | os.PathLike, scores: np.ndarray, ids: np.ndarray, pairs: np.ndarray) -> None:
    """The calibration@k interchange file in plain NumPy, as a program that knows nothing of this package can write it.

    Parameters
    ----------
    path : str or path
    scores : ndarray, shape (n, k)
        Best first.
    ids : ndarray of int, shape (n, k)
        The labels.
    pairs : ndarray of int, shape (m, 2)
        Row and label of every relevant label of the test split.
    """
    relevant = {(int(row), int(label)) for row, label in pairs}
    hits = np.array([[(row, int(label)) in relevant for label in line] for row, line in enumerate(ids)])
    np.savez(path, scores=scores, prediction_ids=ids, true_positives=hits, labels=pairs)


def write_example(folder: str | os.PathLike, ds: Dataset, tops: Mapping[str, TopK], k: int = 5) -> list[str]:
    """Save the first places of each model under its name, in the three ways there are, in turn.

    By hand in plain NumPy, ``TopK.to_calibration_npz``, ``TopK.save``.

    Parameters
    ----------
    folder : str or path
        One that exists.
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    k : int
        How many places.

    Returns
    -------
    list of str
        The file names.
    """
    Y = ds.test.Y.tocoo()
    for place, (name, top) in enumerate(tops.items()):
        path, top = Path(folder) / f"{name}.npz", top.head(k)
        if place % 3 == 0:
            write_by_hand(path, top.scores, top.ids, np.column_stack([Y.row, Y.col]))
        elif place % 3 == 1:
            top.to_calibration_npz(path, ds.test.Y)
        else:
            top.save(path)
    return sorted(path.name for path in Path(folder).iterdir())


def read(ds: Dataset, tops: Mapping[str, TopK], given: str = "", k: int = 5) -> dict[str, TopK]:
    """Saved predictions, or those of our own models after a way through files.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Without ``given``: saved by :func:`write_example` and read back.
    given : str
        Where predictions are saved, in a form that :func:`xcrepro.inputs.baselines.saved` reads.
    k : int
        How many places.

    Returns
    -------
    dict of str to TopK
        Name -> predictions.
    """
    if given:
        return baselines.saved(given, ds, k)
    with tempfile.TemporaryDirectory() as folder:
        print("written and read back:", ", ".join(write_example(folder, ds, tops, k)))
        found = baselines.saved(folder, ds, k)
    return {name: found[name] for name in tops}


def compute_table(ds: Dataset, tops: Mapping[str, TopK], k: int = 5) -> pd.DataFrame:
    """All calibration numbers at 1 to ``k``.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    k : int

    Returns
    -------
    DataFrame
        model, metric (P, ECE, ACE, Brier, NLL), k, before, after isotonic regression; percent, NLL in nats.
    """
    return calibrated.errors(ds, calibrated.before_after(ds, tops, range(1, k + 1)), METRICS)


def compute(table: pd.DataFrame) -> pd.DataFrame:
    """What figure 4 of the calibration paper shows.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_table`.

    Returns
    -------
    DataFrame
        model, k, before, after (ECE, percent).
    """
    return table[table["metric"] == "ECE"].drop(columns="metric")


def largest_difference(table: pd.DataFrame, ds: Dataset, memory: Mapping[str, TopK], k: int = 5) -> float:
    """The largest difference between the errors of predictions read from files, and those of the same ones in memory.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_table`, of the files.
    ds : Dataset
    memory : mapping of str to TopK
        The same predictions.
    k : int
        As given to :func:`compute_table`.

    Returns
    -------
    float
        NaN where there are none in memory.
    """
    if not memory:
        return float("nan")
    here, there = (one.set_index(["model", "metric", "k"]) for one in (table, compute_table(ds, memory, k)))
    return float((here - there).abs().fillna(np.inf).max(axis=None))


def compute_printed() -> pd.DataFrame:
    """What figure 4 compares, as far as table 7 has it: LightXML and CascadeXML before calibration.

    The figure's other two (LightXML with random clusters, ELIAS) have no printed number.

    Returns
    -------
    DataFrame
        dataset, method, then ECE@k (percent), a column a k.
    """
    t = published.table("calibration:table7")
    t = t[t["method"].isin(["LightXML", "CascadeXML"]) & (t["metric"] == "ECE") & (t["variant"] == "none")]
    return tables.spread(t.assign(at="ECE@" + t["k"].astype(str)), ["dataset", "method"], "at", "value")


def plot(errors: pd.DataFrame, ax=None) -> Figure:
    """Figure 4: ECE@k against k, before (filled) and after isotonic regression (hollow).

    Parameters
    ----------
    errors : DataFrame
        From :func:`compute`.
    ax : Axes, optional
    """
    with figures.new(width=looks.NARROW, height=3.9, ax=ax) as (fig, panel):
        for name, part in errors.groupby("model", sort=False):
            style = looks.of(name).line()
            panel.plot(part["k"], part["before"], label=name, **style)
            panel.plot(part["k"], part["after"], markerfacecolor=looks.WHITE, linewidth=0.8, **style)
        panel.set(xlabel="k", ylabel="ECE@k, %", xticks=errors["k"].unique(), ylim=(0, None))
        figures.draws(panel, x="k", y=calibrated.STATES)
        low, high = errors["k"].min(), errors["k"].max()
        first, last = (errors[errors["k"] == k].set_index("model")["before"] for k in (low, high))
        rises = f"{(last > first).sum()} of {len(first)}"
        looks.title(fig, f"From k = {low} to {high} the error rises in {rises} models")
        looks.legend(fig, panel, title="filled: before, hollow: after isotonic regression")
    return fig
