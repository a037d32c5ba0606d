"""Figures 1 and 2: the reliability of every model, and what isotonic regression does to it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures, tables

compute = _common.compute_summary
compute_bins = _common.compute_bins
describe_direction = _common.describe_direction


def describe_outside(bins: pd.DataFrame) -> pd.DataFrame:
    """Share of the bins with pairs whose accuracy lies outside the band.

    If all scores were right, about 1 bin in 20 would.

    Parameters
    ----------
    bins : DataFrame
        From :func:`compute_bins`.

    Returns
    -------
    DataFrame
        model, then one text for each state and k, such as ``"3 of 10"``.
    """
    bins = bins.dropna(subset="accuracy")
    outside = (bins["accuracy"] < bins["low"]) | (bins["accuracy"] > bins["high"])
    bins = bins.assign(column=bins["state"] + ", k = " + bins["k"].astype(str), text=outside)
    counts = bins.groupby(["model", "column"], sort=False)["text"].agg(_common.describe_count).reset_index()
    return tables.spread(counts, ["model"], "column", "text")


def plot_fig1(bins: pd.DataFrame, summary: pd.DataFrame, k: int = 3, ax=None) -> Figure:
    """Figure 1: every model before calibration at ``k``, a panel a model with the others in grey.

    Parameters
    ----------
    bins, summary : DataFrame
        :func:`compute_bins` and :func:`compute`, both with that k.
    k : int
    ax : array of Axes, optional
        As many as whole rows of up to four panels need; those left over are hidden.
    """
    bins = bins[(bins["k"] == k) & (bins["state"] == "before")].dropna(subset="accuracy")
    error = summary[summary["k"] == k].set_index("model")["ECE"]
    columns = min(4, len(error))
    rows = -(-len(error) // columns)
    with figures.new(looks.WIDE, 0.8 + 2.1 * rows, columns, rows, ax, sharey=True, squeeze=False) as (fig, axes):
        for panel, (name, value) in zip(axes.flat, error.items(), strict=False):
            for _, part in bins.groupby("model"):
                panel.plot(part["confidence"], part["accuracy"], "-", color="0.82", linewidth=0.8)
            _common.draw_curve(panel, bins[bins["model"] == name])
            panel.set_title(f"{name}: ECE@{k} {value:.1f} %", loc="left")
        looks.label_grid(axes, "score", "share of hits", len(error))
        ends = f"from {error.min():.1f} % ({error.idxmin()}) to {error.max():.1f} % ({error.idxmax()})"
        looks.title(fig, f"Before calibration each model has a curve of its own: ECE@{k} {ends}")
        looks.legend(fig, axes[0, 0])
    return fig


def plot_fig2(bins: pd.DataFrame, summary: pd.DataFrame, models: Sequence[str], k: int = 3, ax=None) -> Figure:
    """Figure 2: histogram and reliability of some models, a column a model, before (above) and after (below).

    Parameters
    ----------
    bins, summary : DataFrame
        :func:`compute_bins` and :func:`compute`, both with that k.
    models : sequence of str
        The columns.
    k : int
    ax : array of Axes, optional
        Four rows of one Axes a model.
    """
    bins = bins[bins["k"] == k]
    summary = summary[summary["k"] == k].set_index("model", drop=False).loc[list(models)]
    with figures.new(looks.WIDE, 7.6, len(models), 4, ax, sharex=True, sharey="row", squeeze=False) as (fig, axes):
        for column, name in zip(axes.T, models, strict=True):
            for bars, curve, state in ((column[0], column[1], "before"), (column[2], column[3], "after")):
                part = bins[(bins["model"] == name) & (bins["state"] == state)]
                bars.bar(part["lower"], part["share"], 0.1, align="edge", color="0.7", edgecolor="0.45")
                figures.draws(bars, y="share")
                _common.draw_curve(curve, part)
                _common.write_errors(curve, summary.loc[[name]], "ECE" if state == "before" else "after")
            column[0].set_title(name, loc="left")
            column[3].set_xlabel("score")
        for line, words in zip(axes, _common.PANELS, strict=True):
            line[0].set_ylabel(words)
        before, after = (", ".join(f"{value:.1f}" for value in summary[state]) for state in ("ECE", "after"))
        words = f"ECE@{k} {before} % before, {after} % after"
        looks.title(fig, f"Reliability before and after isotonic regression:\n{words}")
        looks.legend(fig, axes[1, 0])
    return fig
