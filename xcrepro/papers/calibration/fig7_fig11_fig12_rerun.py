"""Figures 7, 11 and 12: scores and reliability at k = 1, 3 and 5, before and after isotonic regression.

They are of Renee, PLT and DiSMEC. Figures 13 to 16, of models with label features, are in ``table4_table8_fig13_to_16_rerun``;
of the models of figures 8 to 10 none is trained here.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from xcrepro import findings as said
from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Measured
from xcrepro.inputs import calibrated, parameters
from xcrepro.inputs.calibrated import STATES
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures

check_parameters = parameters.check
compute = _common.compute_bins
describe_direction = _common.describe_direction
measure = calibrated.measured_states

FEW = 1.0
"""Percent of the pairs below which a bin is drawn hollow, as its share of hits says little."""


def compute_table(ds: Dataset, states: calibrated.States, measured: Mapping[int, Measured]) -> pd.DataFrame:
    """:func:`_common.compute_summary` with the standard errors of ECE before and after (±).

    Parameters
    ----------
    ds : Dataset
    states : mapping
        From :func:`xcrepro.inputs.calibrated.before_after`.
    measured : mapping
        From :func:`measure`.

    Returns
    -------
    DataFrame
    """
    return _common.add_errors(_common.compute_summary(ds, states), measured)


check_table = _common.drop_errors


def findings(summary: pd.DataFrame, measured: Mapping[int, Measured]) -> list[str]:
    """What came out.

    Parameters
    ----------
    summary : DataFrame
        From :func:`compute_table`.
    measured : mapping
        From :func:`measure`.

    Returns
    -------
    list of str
    """
    words = describe_direction(summary).drop(columns="model").stack()
    counts = [
        f"{word} in {(words == word).sum()}" for word in ("under", "over", "mixed", "fine") if (words == word).any()
    ]
    fall = said.corrected(
        measured[row.k].difference(*(f"{row.model}, {state}" for state in STATES)) for row in summary.itertuples()
    )
    none = _common.describe_count(summary["after corrected low"] == 0)
    largest = f"{summary['ECE'].max():.0f} to {summary['after'].max():.1f} %"
    return [
        f"The direction of the error before calibration, over {len(words)} pairs of a model and a k: {', '.join(counts)}.",
        f"Over pairs of a model and a k, {said.count(fall, 'ECE@k is lower after isotonic regression')}.",
        f"The largest ECE@k goes from {largest}; after it {none} intervals of the corrected error hold 0.",
    ]


def findings_recorded(measured: Mapping[int, Measured], recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of what isotonic regression does to ECE, at the largest k.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check_table`, as recorded.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    k = max(measured)
    there = {dataset: table[table["k"] == k] for dataset, table in recorded.items()}
    columns = {"ECE": ", before", "after": ", after"}
    found = calibrated.before_minus_after(measured[k])
    return [said.agreement(found, _common.recorded_pairs(there, columns), f"ECE@{k}", "changes by isotonic regression")]


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
        hollow = bins["accuracy"].notna() & (bins["weight"] < FEW)
        looks.legend(
            fig, axes[0, 1], title=f"hollow: bins with under {FEW:.0f} % of the pairs" if hollow.any() else None
        )
        looks.title(fig, "Scores and reliability before and after isotonic regression")
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
