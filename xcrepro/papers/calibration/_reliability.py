"""Reliability of models before and after calibration: the bins, the errors, and how both are drawn.

A pair is one of the k places of one test point: a score, and whether the label there is relevant.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import calibrated
from xcrepro.inputs.calibrated import STATES
from xcrepro.metrics import calibration as metric
from xcrepro.repro import figures

PANELS = tuple(f"{what}, {state}" for state in STATES for what in ("% of pairs", "share of hits"))
"""What the histograms and curves of one model show, before and after."""


def compute_summary(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    """How large each model's error is, which way it errs, and what is left after calibration.

    Parameters
    ----------
    ds : Dataset
    states : mapping
        From :func:`xcrepro.inputs.calibrated.before_after`.

    Returns
    -------
    DataFrame
        One row a model and k, percent. mean score, hit rate, ECE: before. over, under: the parts of ECE from bins where the
        mean score lies above, below the share of hits. after: ECE of the calibrated scores. floor:
        :func:`xcrepro.inputs.calibrated.floor` of those, what chance alone leaves.
    """
    names = {"confidence": "mean score", "accuracy": "hit rate", "ECE": "ECE", "ECE over": "over", "ECE under": "under"}
    rows = []
    for (model, k), (before, after) in states.items():
        values = calibrated.measure(ds, before, k, tuple(names))
        left = calibrated.measure(ds, after, k, ("ECE",))["ECE"]
        found = {name: values[key] for key, name in names.items()}
        rows.append({"model": model, "k": k, **found, "after": left, "floor": 100 * calibrated.floor(after)})
    return pd.DataFrame(rows)


def compute_bins(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    """Ten bins of each model at each k, before and after calibration.

    Parameters
    ----------
    ds : Dataset
    states : mapping
        From :func:`xcrepro.inputs.calibrated.before_after`.

    Returns
    -------
    DataFrame
        model, k, state, bin, then share: percent of the pairs, in bins closed on the left as the paper's histograms have
        them. The rest in bins closed on the right as its reliability plots have them
        (:func:`xcrepro.metrics.calibration.reliability`): lower, upper, the bin's ends; weight, percent of the pairs;
        confidence and accuracy, mean score and share of hits, NaN in an empty bin; low, high, where accuracy would lie 19
        times in 20 if every score were right.
    """
    parts = []
    for (model, k), pair in states.items():
        for state, top in zip(STATES, pair, strict=True):
            scores, hits = metric.pairs(ds.test.Y, top, k)
            count = metric.reliability(scores, hits, band=None)["count"]
            found = metric.reliability(scores, hits, closed="right").rename(columns={"count": "weight"})
            found["weight"] *= 100 / scores.size
            found.insert(1, "share", 100 * count / scores.size)
            parts.append(pd.DataFrame({"model": model, "k": k, "state": state, **found}))
    return pd.concat(parts, ignore_index=True)


def describe_direction(summary: pd.DataFrame) -> pd.DataFrame:
    """Which way each model of :func:`compute_summary` errs: one row a model, one text a k.

    ``over`` or ``under`` where that part is more than twice the other, ``mixed`` between; ``fine`` where ECE is below twice
    the floor, so that little but chance can be seen.
    """
    over, under = summary["over"], summary["under"]
    rules = {"fine": summary["ECE"] < 2 * summary["floor"], "over": over > 2 * under, "under": under > 2 * over}
    return pivot_words(summary, np.select(list(rules.values()), list(rules), "mixed"))


def pivot_words(table: pd.DataFrame, words) -> pd.DataFrame:
    """One text a row of ``table`` as a row a model and a column a k, both in their order there."""
    table = table[["model"]].assign(k="k = " + table["k"].astype(str), words=words)
    wide = table.pivot(index="model", columns="k", values="words")
    return wide.loc[table["model"].unique(), table["k"].unique()].rename_axis(columns=None).reset_index()


def label_panels(axes: np.ndarray, shown: int, x: str, y: str) -> None:
    """Of a grid of Axes show the first ``shown``: x named below the lowest of each column, y at the left of each row."""
    for panel in axes.flat[shown:]:
        panel.set_visible(False)
    for panel in axes.flat[max(shown - axes.shape[1], 0) : shown]:
        panel.set_xlabel(x)
    for panel in axes[:, 0]:
        panel.set_ylabel(y)


def draw_diagonal(ax: Axes) -> None:
    """The line on which calibrated scores lie, and the square it stands in."""
    ax.plot([0, 1], [0, 1], "-", color="0.45", linewidth=0.7, zorder=1, label="_guide")
    ax.set(xlim=(0, 1), ylim=(-0.03, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])


def draw_curve(ax: Axes, bins: pd.DataFrame) -> None:
    """One model's reliability with its band and the diagonal; ``bins`` are its rows of :func:`compute_bins`."""
    bins = bins.dropna(subset="accuracy")
    band = {"color": looks.SKY, "linewidth": 5, "label": "where 95 % would lie if the scores were right"}
    ax.vlines(bins["confidence"], bins["low"], bins["high"], **band)
    draw_diagonal(ax)
    ax.plot([], [], color="0.45", linewidth=0.7, label="calibrated")
    ax.plot(bins["confidence"], bins["accuracy"], "o-", color=looks.INK, label="a bin: mean score, share of hits")
    figures.draws(ax, x="confidence", y=("accuracy", "low", "high"))


def write_errors(ax: Axes, rows: pd.DataFrame, column: str) -> None:
    """Inside a panel, the ECE at each k: ``column`` of one model's rows of :func:`compute_summary`."""
    words = "\n".join(f"@{row['k']}: {row[column]:.1f}" for _, row in rows.iterrows())
    ax.text(0.97, 0.04, f"ECE, %\n{words}", transform=ax.transAxes, ha="right", va="bottom", fontsize=looks.TINY)


def scale_errors(ax: Axes) -> None:
    """Errors in percent along x: logarithmic, and linear from 0 to 0.1, so that an error of 0 has a place."""
    ax.set_xscale("symlog", linthresh=0.1, linscale=0.5)
    ax.set_xticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
    ax.set_xlim(-0.02, 150)


def hide_small_errors(table: pd.DataFrame, least: float = 3.0) -> pd.DataFrame:
    """ECE, ACE and true errors below ``least`` points as NaN: what the golden files hold.

    Small errors are the noise of some ten hits, and which hits those are may hang on another processor's last digits.
    """
    errors = [name for name in table if name.startswith(("ECE", "ACE", "true"))]
    return table.assign(**{name: table[name].where(table[name] >= least) for name in errors})
