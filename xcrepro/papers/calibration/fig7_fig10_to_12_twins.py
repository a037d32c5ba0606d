"""Figures 7 and 10 to 12 on small twins of their four datasets: a figure a model, a row a dataset."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Measured, corrected, count
from xcrepro.inputs import calibrated, datasets, parameters
from xcrepro.papers.calibration import _common, fig7_fig10_to_12_rerun
from xcrepro.repro import tables

check_parameters = parameters.check

STANDS_FOR = {"Neural": "Renee", "Attention": "AttentionXML", "PLT": "PLT", "DiSMEC": "DiSMEC"}
"""Baseline -> the model of the paper's figure."""
FIGURES = {"Neural": "7", "Attention": "10", "PLT": "11", "DiSMEC": "12"}
Sets = Mapping[str, tuple[Dataset, calibrated.States]]
"""Dataset -> it, and its models from :func:`xcrepro.inputs.calibrated.before_after`."""


def measure(sets: Sets) -> dict[str, dict[int, Measured]]:
    """ECE of every model before and after calibration, with a jackknife over test points.

    Parameters
    ----------
    sets : mapping

    Returns
    -------
    dict of str to dict of int to Measured
        By dataset and k: :func:`xcrepro.inputs.calibrated.measured_states`.
    """
    return {name: calibrated.measured_states(ds, states) for name, (ds, states) in sets.items()}


def compute(sets: Sets) -> pd.DataFrame:
    """The bins of all panels.

    Parameters
    ----------
    sets : mapping

    Returns
    -------
    DataFrame
        dataset, then :func:`xcrepro.papers.calibration._common.compute_bins`.
    """
    return _stacked({name: _common.compute_bins(ds, states) for name, (ds, states) in sets.items()})


def compute_table(sets: Sets, measured: Mapping[str, Mapping[int, Measured]]) -> pd.DataFrame:
    """What stands in the panels, beside what the paper prints in its own.

    Parameters
    ----------
    sets, measured : mapping
        The second from :func:`measure`.

    Returns
    -------
    DataFrame
        dataset, then :func:`xcrepro.papers.calibration._common.add_errors`, and of the model it stands for printed ECE and
        printed after (table 7; NaN where the paper has none, or none that can be read).
    """
    parts = {}
    for name, (ds, states) in sets.items():
        parts[name] = _common.add_errors(_common.compute_summary(ds, states), measured[name])
    table, printed = _stacked(parts), _printed()
    names = {name: datasets.printed_name(ds) for name, (ds, _) in sets.items()}
    for column, variant in (("printed ECE", "none"), ("printed after", "isotonic")):
        keys = zip(table["dataset"].map(names), table["model"].map(STANDS_FOR), table["k"], strict=True)
        table[column] = [printed.get((*key, variant), np.nan) for key in keys]
    return table


def _stacked(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Tables one below the other, the name of each in a first column."""
    found = pd.concat([part.assign(dataset=name) for name, part in parts.items()], ignore_index=True)
    return found[["dataset", *(column for column in found if column != "dataset")]]


def _printed() -> dict[tuple, float]:
    """(dataset, method, k, calibration) -> ECE of table 7."""
    rows = _common.printed_table(7)
    rows = rows[rows["metric"] == "ECE"]
    keys = zip(rows["dataset"], rows["method"], rows["k"].astype(int), rows["variant"], strict=True)
    return dict(zip(keys, rows["value"], strict=True))


def describe_direction(table: pd.DataFrame) -> pd.DataFrame:
    """Which way each model errs, as words.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_table`.

    Returns
    -------
    DataFrame
        model, k, then a column a dataset.
    """
    parts = {name: _common.describe_direction(part) for name, part in table.groupby("dataset", sort=False)}
    long = _stacked(parts).melt(["dataset", "model"], var_name="at", value_name="words")
    long = long.iloc[np.argsort(pd.factorize(long["model"])[0], kind="stable")]
    return tables.spread(long, ["model", "at"], "dataset", "words")


def findings(table: pd.DataFrame, measured: Mapping[str, Mapping[int, Measured]]) -> list[str]:
    """Whether isotonic regression lowers ECE, of each model over datasets and k, and which way it errs before.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_table`.
    measured : mapping
        From :func:`measure`.

    Returns
    -------
    list of str
    """
    said = []
    words = describe_direction(table).set_index(["model", "at"]).stack()
    for model, part in table.groupby("model", sort=False):
        falls = corrected(
            measured[row.dataset][row.k].difference(*(f"{model}, {state}" for state in calibrated.STATES))
            for row in part.itertuples()
        )
        of = words[model]
        errs = [
            f"`{word}` in {(of == word).sum()}" for word in ("under", "over", "mixed", "fine") if (of == word).any()
        ]
        known = part.dropna(subset=["printed ECE", "printed after"])
        lower = int((known["printed after"] < known["printed ECE"]).sum())
        beside = f"; printed of {STANDS_FOR.get(model)}, lower in {lower} of {len(known)}" if len(known) else ""
        said.append(
            f"{model}, {len(part)} pairs of a dataset and a k: the error is {', '.join(errs)}; "
            f"{count(falls, 'ECE@k is lower after isotonic regression')}{beside}."
        )
    return said


def plot(bins: pd.DataFrame, table: pd.DataFrame, model: str, ax=None) -> Figure:
    """One of the figures: a row a dataset, histogram and reliability at all k, before and after.

    Parameters
    ----------
    bins, table : DataFrame
        :func:`compute` and :func:`compute_table`.
    model : str
    ax : array of Axes, optional
        Four a dataset.
    """
    parts = [part[part["model"] == model].assign(model=part["dataset"]) for part in (bins, table)]
    fig = fig7_fig10_to_12_rerun.plot(*parts, ax=ax)
    number = FIGURES.get(model)
    looks.title(fig, f"{model}{f', as figure {number}' if number else ''}: before and after isotonic regression")
    return fig
