"""Figures 3 (first row) and 17 to 19: calibration errors against P@k, before and after isotonic regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from xcrepro import looks
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from xcrepro.data.dataset import Dataset

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
        k, dataset, method, P (percent), metric (ECE, Brier, NLL, ACE), variant ("none", "isotonic"), value (percent; NLL in
        nats), by k first. P is that of its own variant; a joint monotone map leaves it as it is, to the last bit.
    """
    parts = []
    for dataset, (ds, states) in sets.items():
        found = calibrated.errors(ds, states, ("P", "ECE", "Brier", "NLL", "ACE"))
        precision = found[found["metric"] == "P"].set_index(["model", "k"])
        rest = found[found["metric"] != "P"]
        for variant, state in VARIANTS.items():
            P = precision.loc[list(zip(rest["model"], rest["k"], strict=True)), state].to_numpy()
            parts.append(rest.assign(P=P, dataset=dataset, variant=variant, method=rest["model"], value=rest[state]))
    columns = ["k", "dataset", "method", "P", "metric", "variant", "value"]
    return pd.concat(parts)[columns].sort_values("k", kind="stable", ignore_index=True)


def compute(errors: pd.DataFrame) -> pd.DataFrame:
    """:func:`compute_errors` for people: dataset, method, k, P (before), then each error before and after."""
    keys = ["dataset", "method", "k"]
    table = errors[errors["variant"] == "none"].drop_duplicates(keys)[[*keys, "P"]].set_index(keys)
    for metric in errors["metric"].unique():
        for variant, state in VARIANTS.items():
            part = errors[(errors["metric"] == metric) & (errors["variant"] == variant)]
            table[f"{metric} {state}"] = part.set_index(keys)["value"]
    return table.reset_index()


def largest_change_of_precision(errors: pd.DataFrame) -> float:
    """The largest change of any P@k from before to after, percentage points."""
    wide = errors.pivot(index=["dataset", "method", "k", "metric"], columns="variant", values="P")
    return float((wide["isotonic"] - wide["none"]).abs().max())


compute_claims = _common.correlate_with_precision


def plot(errors: pd.DataFrame, k: int, ax=None) -> Figure:
    """Figures 17 (k = 1), 18 (3) and 19 (5): four errors against P@k, a column a dataset."""
    errors = errors[errors["k"] == k]
    largest = errors[errors["metric"] == "ECE"].groupby("variant")["value"].max()
    change = largest_change_of_precision(errors)
    kept = f"no P@{k} has moved" if change == 0 else f"P@{k} has moved by up to {change:.2g} points"
    title = (
        f"Up to {largest['none']:.0f} % before, no ECE@{k} is above {largest['isotonic']:.1f} % after isotonic"
        f" regression,\nand {kept}"
    )
    return _common.plot_against_precision(errors, k, title, ax=ax)


def plot_fig3(errors: pd.DataFrame, dataset: str, k: int = 5, ax=None) -> Figure:
    """Figure 3, row 1: ECE, Brier and ACE against P@k on one dataset; ``ax``: three Axes to draw in."""
    errors = errors[(errors["k"] == k) & (errors["dataset"] == dataset)]
    with figures.new(width=looks.WIDE, height=3.4, ncols=3, ax=ax) as (fig, axes):
        for panel, metric in zip(axes, ("ECE", "Brier", "ACE"), strict=True):
            _common.draw_before_after(panel, errors[errors["metric"] == metric])
            panel.set(xlabel=f"P@{k}, %", ylabel=f"{metric}@{k}, %")
        looks.legend(fig, axes[0], ncols=4, title="filled: before, hollow: after isotonic regression")
        before = errors[(errors["metric"] == "ECE") & (errors["variant"] == "none")]
        best, right = before.loc[before["P"].idxmax()], before.loc[before["value"].idxmin()]
        looks.title(
            fig,
            f"{dataset}: {best['method']} has the highest P@{k} ({best['P']:.1f} %), with ECE@{k} {best['value']:.1f} %;\n"
            f"{right['method']} the lowest ECE@{k} ({right['value']:.1f} %)",
        )
    return fig
