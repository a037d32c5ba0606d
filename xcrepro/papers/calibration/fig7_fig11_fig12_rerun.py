"""Figures 7 to 16: scores and reliability of every model at k = 1, 3 and 5, before and after isotonic regression."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures

compute = _common.compute_bins
compute_table = _common.compute_summary
describe_direction = _common.describe_direction

FEW = 1.0
"""Percent of the pairs below which a bin is drawn hollow, as its share of hits says little."""


def plot(bins: pd.DataFrame, summary: pd.DataFrame, ax=None) -> Figure:
    """A row a model: histogram and reliability at all k, before and after.

    Parameters
    ----------
    bins, summary : DataFrame
        :func:`compute` and :func:`compute_table`, of the same models and k out of :data:`xcrepro.looks.PLACES`. Bins
        with less than :data:`FEW` percent of the pairs are hollow.
    ax : array of Axes, optional
        Four a model.
    """
    models = summary["model"].unique()
    rows = len(models)
    with figures.new(looks.WIDE, 1.0 + 1.75 * rows, 4, rows, ax, sharex=True, squeeze=False) as (fig, axes):
        for line, name in zip(axes, models, strict=True):
            for bars, curve, state in ((line[0], line[1], "before"), (line[2], line[3], "after")):
                for k, part in bins[(bins["model"] == name) & (bins["state"] == state)].groupby("k"):
                    _draw(bars, curve, part, k)
                bars.set_ylim(0, None)
                _common.draw_diagonal(curve)
                error = "ECE" if state == "before" else "after"
                _common.write_errors(curve, summary[summary["model"] == name], error)
            line[0].set_ylabel(name, fontweight="bold")
        for panel, words in zip(axes[0], _common.PANELS, strict=True):
            panel.set_title(words, loc="left")
        for panel in axes[-1]:
            panel.set_xlabel("score")
        looks.legend(fig, axes[0, 1], title=f"hollow: bins with under {FEW:.0f} % of the pairs")
        high, low = (summary.loc[summary[column].idxmax()] for column in ("ECE", "after"))
        before = f"Before, ECE@k goes up to {high['ECE']:.1f} % ({high['model']}, k = {high['k']})"
        looks.title(fig, f"{before}; after, no ECE@k is above {low['after']:.1f} %")
    return fig


def _draw(bars, curve, part: pd.DataFrame, k: int) -> None:
    """One k in a histogram's panel and in a curve's."""
    look = looks.PLACES[k]
    edges, share = [*part["lower"], part["upper"].iloc[-1]], part["share"]
    bars.step(edges, [*share, share.iloc[-1]], where="post", color=look.colour, linestyle=look.dash, linewidth=1.2)
    figures.draws(bars, x=("lower", "upper"), y="share")
    part = part.dropna(subset="accuracy")
    curve.plot(part["confidence"], part["accuracy"], label=f"k = {k}", **look.line())
    few = part[part["weight"] < FEW]
    curve.plot(few["confidence"], few["accuracy"], look.marker, color=look.colour, markerfacecolor=looks.WHITE)
    figures.draws(curve, x="confidence", y="accuracy")
