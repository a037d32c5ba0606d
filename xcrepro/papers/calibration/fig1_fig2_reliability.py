"""Figures 1 and 2: the reliability of every model, and what isotonic regression does to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.arguments import one_of
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.findings import Measured, agreement, count
from xcrepro.inputs import baselines, calibrated, parameters
from xcrepro.papers.calibration import _common
from xcrepro.predictions import TopK
from xcrepro.repro import figures, tables

HIGH = 0.5
"""Scores above it are high, here."""
PAPER = {
    "over-confident at high scores": ("deep models", ("Neural",)),
    "under-confident": ("linear and tree models", ("1-vs-All", "DiSMEC", "PLT", "FastXML", "PfastXML", "PfastreXML")),
}
"""Which way the paper's families err, and which baselines stand for them (calibration, section 5)."""


def check_parameters(values: Mapping[str, object]) -> None:
    """The rules that items share, and of the columns of figure 2.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError
    """
    parameters.check(values)
    shown = values["shown"]
    for name in shown:
        one_of("parameter shown", name, [*baselines.RECIPES, *baselines.VARIANTS])
    if len(set(shown)) != len(shown):
        raise ArgumentError("parameter shown", "must hold nothing twice", shown)


shown_names = _common.shown_names
compute_bins = _common.compute_bins


def compute(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    """How large each model's error is, which way it errs, and what is left after calibration, at one k.

    Parameters
    ----------
    ds : Dataset
    states : mapping
        From :func:`xcrepro.inputs.calibrated.before_after` with one k.

    Returns
    -------
    DataFrame
        As :func:`xcrepro.papers.calibration._common.compute_summary`, and ECE ±, after ±: standard errors over the test
        points.
    """
    return _common.add_errors(_common.compute_summary(ds, states), calibrated.measured_states(ds, states))


def measure_direction(ds: Dataset, states: calibrated.States) -> Measured:
    """Mean score and share of hits of every model before calibration.

    Parameters
    ----------
    ds : Dataset
    states : mapping
        Of one k.

    Returns
    -------
    Measured
        Of ``"PLT, mean score"`` and ``"PLT, hit rate"``, ...; percent.
    """
    ((k),) = {k for _, k in states}
    values, replicates = {}, {}
    for metric, what in (("confidence", "mean score"), ("accuracy", "hit rate")):
        found = calibrated.in_state(calibrated.measured_states(ds, states, metric)[k])
        values |= {f"{name}, {what}": value for name, value in found.values.items()}
        replicates |= {f"{name}, {what}": left for name, left in found.replicates.items()}
    return Measured(values, replicates)


def findings(ds: Dataset, states: calibrated.States, summary: pd.DataFrame) -> list[str]:
    """Which model errs least, which way each errs, and what calibration leaves.

    Parameters
    ----------
    ds, states
        As for :func:`compute`.
    summary : DataFrame
        From :func:`compute`.

    Returns
    -------
    list of str
    """
    ((k, both),) = calibrated.measured_states(ds, states).items()
    leader = calibrated.in_state(both).leader(f"ECE@{k} (lower is better)", better="lower").text
    high = keep_high(states)
    with_high = [name for (name, _), (top, _) in high.items() if (top.ids >= 0).any()]
    without = [name for name in summary["model"] if name not in with_high]
    signs = _sort(measure_direction(ds, states), summary["model"])
    signs_high = _sort(measure_direction(ds, high), with_high)
    high_alone = _list(signs_high), f"no such pair: {', '.join(without)}" if without else ""
    said = [
        f"Before calibration: {leader}.",
        f"Mean score against share of hits: {_list(signs)}.",
        f"The same of the pairs with a score above {HIGH} alone: {'; '.join(part for part in high_alone if part)}.",
        *(_beside_paper(signs_high if "high" in way else signs, way, *family) for way, family in PAPER.items()),
        f"{count(calibrated.before_minus_after(both), f'ECE@{k} falls through isotonic regression')}.",
    ]
    worst = summary.loc[summary["after"].idxmax()]
    floor = f"{worst['floor']:.1f} % would be left by chance if its scores were right"
    return [*said, f"The largest ECE@{k} after it is {worst['after']:.1f} % ({worst['model']}), where {floor}."]


def findings_recorded(ds: Dataset, states: calibrated.States, recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of which way the scores err.

    Parameters
    ----------
    ds, states
        As for :func:`compute`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check`, as recorded.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    ((k),) = {k for _, k in states}
    columns = {"mean score": ", mean score", "hit rate": ", hit rate"}
    found = measure_direction(ds, states).differences(
        tuple(f"{name}{end}" for end in columns.values()) for name, _ in states
    )
    there = {dataset: table[table["k"] == k] for dataset, table in recorded.items()}
    what = f"mean score against share of hits at k = {k}"
    return [agreement(found, _common.recorded_pairs(there, columns), what, "models' directions")]


def keep_high(states: calibrated.States) -> dict[tuple[str, int], tuple[TopK, TopK]]:
    """Only the places with scores above :data:`HIGH` before calibration; the others are absent.

    Parameters
    ----------
    states : mapping

    Returns
    -------
    dict
        As ``states``, the state before standing for both.
    """
    found = {}
    for key, (top, _) in states.items():
        kept = top.scores > HIGH
        left = TopK(np.where(kept, top.ids, -1), np.where(kept, top.scores, -np.inf), top.n_labels)
        found[key] = left, left
    return found


def _sort(direction: Measured, models: Sequence[str]) -> dict[str, list[str]]:
    return _common.sort_by_sign(direction.differences((f"{name}, mean score", f"{name}, hit rate") for name in models))


def _list(signs: Mapping[str, list[str]]) -> str:
    ways = {"above": "over-confident", "below": "under-confident", "not clear": "not clearly either"}
    return "; ".join(f"{words}: {', '.join(signs[way])}" for way, words in ways.items() if signs[way])


def _beside_paper(signs: Mapping[str, list[str]], way: str, family: str, members: Sequence[str]) -> str:
    """Whether a family errs the way that the paper sees; empty where none of it is here."""
    expected, other = ("above", "below") if way.startswith("over") else ("below", "above")
    here = [[name for name in signs[sign] if name in members] for sign in (expected, other, "not clear")]
    if not any(here):
        return ""
    words = ("so here", "here the other way round", "not clear here")
    found = "; ".join(f"{text}: {', '.join(names)}" for text, names in zip(words, here, strict=True) if names)
    return f"The paper sees {family} {way}. {found[0].upper()}{found[1:]}."


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
    width = min(looks.WIDE, 3.2 + 2.2 * (columns - 1))
    with figures.new(
        width, (0.8 if columns > 1 else 1.8) + 2.1 * rows, columns, rows, ax, sharey=True, squeeze=False
    ) as (fig, axes):
        for panel, (name, value) in zip(axes.flat, error.items(), strict=False):
            for _, part in bins.groupby("model"):
                panel.plot(part["confidence"], part["accuracy"], "-", color="0.82", linewidth=0.8)
            _common.draw_curve(panel, bins[bins["model"] == name])
            panel.set_title(f"{name}: ECE@{k} {value:.1f} %", loc="left")
        looks.label_grid(axes, "score", "share of hits", len(error))
        looks.title(
            fig, f"Reliability before calibration, k = {k}{'; grey: the other models' if len(error) > 1 else ''}"
        )
        looks.legend(fig, axes[0, 0], ncols=0 if columns > 2 else 1)
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
    width = min(looks.WIDE, 4.2 + 2.1 * (len(models) - 1))
    with figures.new(width, 7.6, len(models), 4, ax, sharex=True, sharey="row", squeeze=False) as (fig, axes):
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
        looks.title(fig, f"Scores and reliability before (above) and after (below)\nisotonic regression, k = {k}")
        looks.legend(fig, axes[1, 0], ncols=0 if len(models) > 2 else 1)
    return fig
