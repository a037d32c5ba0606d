"""Fig. 3a of Jain et al. 2016: propensity curves by A, and what each takes away of a complete truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, propensity
from xcrepro.data import registry
from xcrepro.errors import ArgumentError
from xcrepro.inputs import datasets, longtail
from xcrepro.papers.jain16._common import DOCUMENTS, REFERENCE, B, log_spaced
from xcrepro.repro import figures


def load_counts(dataset: str = "eurlex-4k", folder: str = "") -> tuple[str, np.ndarray, int]:
    """What is taken for the complete truth.

    Parameters
    ----------
    dataset, folder : str
        A real dataset and its folder: its train labels are counted. Without a folder: EURLex-4K's counts that come with
        the project, which are of all its documents, train and test.

    Returns
    -------
    name : str
    counts : ndarray, shape (L,)
        Points that carry each label.
    n_points : int

    Raises
    ------
    ArgumentError
        For another dataset than EURLex-4K without a folder.
    """
    if folder:
        ds = datasets.pick(dataset, folder=folder)
        return ds.name, ds.label_counts, ds.n_train
    if registry.get(dataset).name != "eurlex-4k":
        raise ArgumentError("dataset", "must be eurlex-4k where folder is empty", dataset, "give the dataset's folder")
    tail = longtail.counted(dataset)
    return tail.name, tail.counts, DOCUMENTS


def compute(counts: np.ndarray, n_points: int, grid: Sequence[float], per_decade: int = 12) -> pd.DataFrame:
    """Fig. 3a: the propensity curves (eq. 1) of a grid of A.

    Parameters
    ----------
    counts : ndarray, shape (L,)
        Points a label; the curves end at the most frequent one's.
    n_points : int
        That the counts are of.
    grid : sequence of float
        A of the curves; B is :data:`B`.
    per_decade : int
        Points of a curve to a factor of ten.

    Returns
    -------
    DataFrame
        A row a point of a curve: A, count (1 to the most frequent label's), propensity (fraction).
    """
    at = log_spaced(int(np.max(counts)), per_decade)
    curves = [{"A": A, "count": at, "propensity": 1 / propensity.inverse(at, n_points, A, B)} for A in grid]
    return pd.concat(map(pd.DataFrame, curves), ignore_index=True)


def compute_shares(counts: np.ndarray, n_points: int, grid: Sequence[float]) -> pd.DataFrame:
    """What a curve takes away, on average, when the counts are those of the complete truth (fig. 3a).

    Parameters
    ----------
    counts : ndarray, shape (L,)
        Points a label; labels without one are left out.
    n_points : int
        That the counts are of.
    grid : sequence of float
        A of the curves.

    Returns
    -------
    DataFrame
        A and, in percent: missing % (of all pairs), rare missing % (of the pairs of labels with fewer than 10 points;
        NaN where there are none), never seen % (of the labels that occur, those of which nothing is left: the mean
        over labels of (1 - p)^N_l).
    """
    counts = np.asarray(counts, np.float64)[np.asarray(counts) > 0]
    rare = counts < 10
    rows = []
    for A in grid:
        p = 1 / propensity.inverse(counts, n_points, A, B)
        missing = _missing(counts, p), _missing(counts[rare], p[rare])
        rows.append((A, *missing, 100 * float(np.mean((1 - p) ** counts))))
    return pd.DataFrame(rows, columns=["A", "missing %", "rare missing %", "never seen %"])


def _missing(counts: np.ndarray, p: np.ndarray) -> float:
    return 100 * (1 - (counts @ p) / counts.sum()) if counts.size else np.nan


def plot(table: pd.DataFrame, shares: pd.DataFrame, name: str, ax=None) -> Figure:
    """Fig. 3a: a curve for each A, the reference bold, each with the share of labels that it takes away.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    shares : DataFrame
        From :func:`compute_shares`, of the same A.
    name : str
        The dataset's, for the title.
    ax : Axes, optional
    """
    missing = shares.set_index("A")["missing %"]
    with figures.new(width=looks.NARROW, height=3.6, ax=ax) as (fig, ax):
        for A, curve in table.groupby("A"):
            bold = A == REFERENCE
            style = {"color": looks.INK, "linewidth": 2.6} if bold else {"color": "0.45", "linewidth": 1.1}
            ax.plot(curve["count"], curve["propensity"], linestyle="-", **style)
            end = tuple(curve[["count", "propensity"]].iloc[-1])
            looks.name(ax, f"{missing[A]:.0f} %  (A = {A:g})", end, (4, -3), weight="bold" if bold else "normal")
        ax.set(xscale="log", ylim=(0, 1.02), xlabel="points with the label, $N_l$", ylabel="propensity $p_l$")
        ax.set_xlim(1, 9 * table["count"].max())
        looks.title(fig, f"{name}: the smaller A, the more labels go missing (% of all pairs, at each curve)")
        figures.draws(ax, x="count", y="propensity")
    return fig
