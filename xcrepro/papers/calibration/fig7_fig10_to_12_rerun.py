"""Figures 7 and 10 to 12: scores and reliability at k = 1, 3 and 5, before and after isotonic regression.

They are of Renee, AttentionXML, PLT and DiSMEC; of the models of figures 8 and 9 none is trained here. Figures 13 to 16, of
models with label features, are in ``table4_table8_fig13_to_16_rerun``. Beside them equations 1 and 2: what dividing a
point's probabilities by their sum, as a softmax loss does, makes of calibration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import findings as said
from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.findings import Measured
from xcrepro.inputs import baselines, calibrated, parameters
from xcrepro.inputs.calibrated import STATES
from xcrepro.metrics import calibration
from xcrepro.papers.calibration import _common
from xcrepro.predictions import TopK
from xcrepro.repro import figures

check_parameters = parameters.check
compute = _common.compute_bins
describe_direction = _common.describe_direction
measure = calibrated.measured_states

MODELS = (*baselines.RECIPES, "Attention")
"""The baselines of the figure."""
EQUATION_1, EQUATION_2 = "eq. 1", "eq. 2"
"""How a point's probabilities are made: one sigmoid a label, and these divided by their sum, as a softmax ends."""
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


def divide_by_sum(top: TopK) -> TopK:
    """Equation 2: each row's scores divided by their sum.

    Parameters
    ----------
    top : TopK
        Probabilities, at least 0; of all labels that have any, or the sum is too small.

    Returns
    -------
    TopK
        The same labels in the same order; a row whose sum is 0 stays as it is.

    Examples
    --------
    >>> divide_by_sum(TopK.from_scores([[0.5, 0.3, 0.0], [1.0, 0.9, 0.6]], 3)).scores.round(3)
    array([[0.625, 0.375, 0.   ],
           [0.4  , 0.36 , 0.24 ]], dtype=float32)
    """
    present = top.ids >= 0
    scores = np.where(present, top.scores, 0).astype(np.float64)
    sums = scores.sum(axis=1, keepdims=True)
    shares = np.divide(scores, sums, where=sums > 0, out=scores.copy())
    return TopK(top.ids, np.where(present, shares, -np.inf).astype(np.float32), top.n_labels)


def reduce_both_ways(ds: Dataset, tops: Mapping[str, TopK]) -> dict[str, TopK]:
    """The same probabilities as equation 1 leads to them and as equation 2 does.

    Parameters
    ----------
    ds : Dataset
        Of a twin the true probabilities of its labels as they are observed come first: what a loss leads to with data
        without end.
    tops : mapping of str to TopK
        Models' probabilities.

    Returns
    -------
    dict of str to TopK
        ``"truth, eq. 1"``, ``"truth, eq. 2"``, and so on for each model.
    """
    probabilities = dict(tops)
    if isinstance(ds, Twin):
        chances = ds.test.observed_marginals
        probabilities = {"truth": TopK.from_scores(chances, int(np.diff(chances.indptr).max())), **probabilities}
    both = {EQUATION_1: lambda top: top, EQUATION_2: divide_by_sum}
    return {f"{name}, {way}": how(top) for name, top in probabilities.items() for way, how in both.items()}


def compute_reductions(ds: Dataset, reduced: Mapping[str, TopK], ks: Sequence[int] = calibrated.KS) -> pd.DataFrame:
    """What equation 2 makes of calibration, and whether a map that is the same for all points mends it.

    Parameters
    ----------
    ds : Dataset
    reduced : mapping of str to TopK
        From :func:`reduce_both_ways`.
    ks : sequence of int

    Returns
    -------
    DataFrame
        model, k, mean score, hit rate, ECE, after (isotonic regression), floor: as :func:`compute_table`, percent; loss:
        equation 1's, of the places that are kept, with binary cross-entropy: nats a test point.
    """
    states = calibrated.before_after(ds, reduced, ks)
    found = _common.compute_summary(ds, states)[["model", "k", "mean score", "hit rate", "ECE", "after", "floor"]]
    loss = {}
    for name, top in reduced.items():
        scores, hits = calibration.pairs(ds.test.Y, top)
        loss[name] = calibration.nll(scores, hits) * scores.size / len(top)
    return found.assign(loss=found["model"].map(loss))


def findings_reductions(ds: Dataset, reduced: Mapping[str, TopK], k: int = 5) -> list[str]:
    """Whether equation 2's probabilities have the larger error, before and after calibration.

    Parameters
    ----------
    ds, reduced
        As for :func:`compute_reductions`.
    k : int

    Returns
    -------
    list of str
    """
    measured = calibrated.measured_states(ds, calibrated.before_after(ds, reduced, (k,)))[k]
    names = [name.removesuffix(f", {EQUATION_1}") for name in reduced if name.endswith(EQUATION_1)]
    pairs = [(f"{name}, {EQUATION_2}", f"{name}, {EQUATION_1}") for name in names]
    return [
        f"{_common.describe_difference(one, f'{words} ECE@{k} of {one.left}')}."
        for state, words in zip(STATES, ("Before calibration", "After isotonic regression"), strict=True)
        for one in calibrated.in_state(measured, state).differences(pairs)
    ]


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
