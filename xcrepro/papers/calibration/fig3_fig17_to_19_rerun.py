"""Figures 3 (first row) and 17 to 19: calibration errors against P@k, before and after isotonic regression."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures

VARIANTS = {"none": "before", "isotonic": "after"}
"""How the paper's tables name the two states."""


def compute_errors(sets: Mapping[str, tuple[Dataset, calibrated.States]]) -> pd.DataFrame:
    """Errors and precision of every model on several datasets.

    Parameters
    ----------
    sets : mapping
        Name -> dataset, and the predictions for it from :func:`xcrepro.inputs.calibrated.before_after`.

    Returns
    -------
    DataFrame
        k, dataset, method, P (percent), metric (ECE, Brier, NLL, ACE), variant ("none", "isotonic"), value (percent;
        NLL in nats), by k first. P is that of its own variant; a joint monotone map leaves it as it is, to the last
        bit.
    """
    parts = []
    names = {"model": "method"} | {state: variant for variant, state in VARIANTS.items()}
    for dataset, (ds, states) in sets.items():
        found = calibrated.errors(ds, states, ("P", "ECE", "Brier", "NLL", "ACE")).rename(columns=names)
        found = found.melt(["method", "metric", "k"], var_name="variant").assign(dataset=dataset)
        precision = found[found["metric"] == "P"].drop(columns="metric").rename(columns={"value": "P"})
        parts.append(found[found["metric"] != "P"].merge(precision))
    columns = ["k", "dataset", "method", "P", "metric", "variant", "value"]
    return pd.concat(parts)[columns].sort_values("k", kind="stable", ignore_index=True)


def compute(errors: pd.DataFrame) -> pd.DataFrame:
    """:func:`compute_errors` for people.

    Parameters
    ----------
    errors : DataFrame
        From :func:`compute_errors`.

    Returns
    -------
    DataFrame
        dataset, method, k, P (before), then each error before and after, in the units of ``errors``.
    """
    keys = ["dataset", "method", "k"]
    column = errors["metric"] + " " + errors["variant"].map(VARIANTS)
    wide = errors.assign(column=column).pivot(index=keys, columns="column", values="value")
    wide = wide[[f"{metric} {state}" for metric in errors["metric"].unique() for state in VARIANTS.values()]]
    return errors[errors["variant"] == "none"].drop_duplicates(keys)[[*keys, "P"]].merge(wide, on=keys)


def largest_change_of_precision(errors: pd.DataFrame) -> float:
    """The largest change of any P@k from before to after, percentage points."""
    wide = errors.pivot(index=["dataset", "method", "k", "metric"], columns="variant", values="P")
    return float((wide["isotonic"] - wide["none"]).abs().max())


compute_claims = _common.correlate_with_precision


def plot(errors: pd.DataFrame, k: int, ax=None) -> Figure:
    """Figures 17 (k = 1), 18 (3) and 19 (5): four errors against P@k, a column a dataset.

    Parameters
    ----------
    errors : DataFrame
        From :func:`compute_errors`.
    k : int
        One of its k.
    ax : array of Axes, optional
        As for :func:`xcrepro.papers.calibration._common.plot_against_precision`.
    """
    errors = errors[errors["k"] == k]
    largest = errors[errors["metric"] == "ECE"].groupby("variant")["value"].max()
    change = largest_change_of_precision(errors)
    kept = f"no P@{k} has moved" if change == 0 else f"P@{k} has moved by up to {change:.2g} points"
    fall = f"Up to {largest['none']:.0f} % before, no ECE@{k} is above {largest['isotonic']:.1f} % after"
    return _common.plot_against_precision(errors, k, f"{fall} isotonic regression,\nand {kept}", ax=ax)


def plot_fig3(errors: pd.DataFrame, dataset: str, k: int = 5, ax=None) -> Figure:
    """Figure 3, row 1: ECE, Brier and ACE against P@k on one dataset.

    Parameters
    ----------
    errors : DataFrame
        From :func:`compute_errors`.
    dataset : str
        One of its datasets.
    k : int
        One of its k.
    ax : array of Axes, optional
        Three.
    """
    errors = errors[(errors["k"] == k) & (errors["dataset"] == dataset)]
    with figures.new(width=looks.WIDE, height=3.4, ncols=3, ax=ax) as (fig, axes):
        for panel, metric in zip(axes, ("ECE", "Brier", "ACE"), strict=True):
            _common.draw_before_after(panel, errors[errors["metric"] == metric])
            panel.set(xlabel=f"P@{k}, %", ylabel=f"{metric}@{k}, %")
        looks.legend(fig, axes[0], ncols=4, title="filled: before, hollow: after isotonic regression")
        before = errors[(errors["metric"] == "ECE") & (errors["variant"] == "none")]
        best, right = before.loc[before["P"].idxmax()], before.loc[before["value"].idxmin()]
        high = f"{best['method']} has the highest P@{k} ({best['P']:.1f} %), with ECE@{k} {best['value']:.1f} %"
        low = f"{right['method']} the lowest ECE@{k} ({right['value']:.1f} %)"
        looks.title(fig, f"{dataset}: {high};\n{low}")
    return fig
