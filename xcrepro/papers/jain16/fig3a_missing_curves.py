"""Fig. 3a of Jain et al. 2016: propensity curves by A, and what each takes away of a complete truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, propensity
from xcrepro.data import registry
from xcrepro.errors import ArgumentError
from xcrepro.inputs import datasets, longtail, parameters
from xcrepro.papers.jain16._common import DOCUMENTS, REFERENCE, B, check_curves, log_spaced
from xcrepro.repro import figures

RARE = 10
"""A label with fewer points is rare, here."""


def check_parameters(values: Mapping[str, object]) -> None:
    """:func:`xcrepro.inputs.parameters.check`, the rule of ``curves``, and which datasets need a folder."""
    parameters.check(values)
    check_curves(values["curves"])
    _check_dataset(values["dataset"], values["folder"])


def _check_dataset(dataset: str, folder: str) -> None:
    if not folder and registry.get(dataset).name != "eurlex-4k":
        do = "give the folder of the real dataset: a twin's counts would say what the twin was made to be"
        raise ArgumentError("parameter dataset", "must be eurlex-4k where folder is empty", dataset, do)


def load_counts(dataset: str = "eurlex-4k", folder: str = "") -> tuple[str, np.ndarray, int, str]:
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
    origin : str
        What the counts are of, for feet of figures.

    Raises
    ------
    ArgumentError
        For another dataset than EURLex-4K without a folder.
    """
    _check_dataset(dataset, folder)
    if folder:
        ds = datasets.pick(dataset, folder=folder)
        name, counts, n_points, of = ds.title, ds.label_counts, ds.n_train, "train points"
    else:
        tail = longtail.counted(dataset)
        name, counts, n_points, of = tail.name, tail.counts, DOCUMENTS, "documents"
    return name, counts, n_points, f"label counts of {name} (real data), {n_points:,} {of}"


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
    rare = counts < RARE
    rows = []
    for A in grid:
        p = 1 / propensity.inverse(counts, n_points, A, B)
        missing = _missing(counts, p), _missing(counts[rare], p[rare])
        rows.append((A, *missing, 100 * float(np.mean((1 - p) ** counts))))
    return pd.DataFrame(rows, columns=["A", "missing %", "rare missing %", "never seen %"])


def _missing(counts: np.ndarray, p: np.ndarray) -> float:
    return 100 * (1 - (counts @ p) / counts.sum()) if counts.size else np.nan


def findings(shares: pd.DataFrame, name: str) -> list[str]:
    """What came out, as sentences. The shares are expectations, exact: there is no error to give.

    Parameters
    ----------
    shares : DataFrame
        From :func:`compute_shares`.
    name : str
        The dataset's.

    Returns
    -------
    list of str
    """
    part = shares.sort_values("missing %")
    low, high = part.iloc[0], part.iloc[-1]
    said = [f"{name}: on average {low['missing %']:.0f} % of the pairs go missing with A = {low['A']:g}."]
    if len(part) > 1:
        said = [f"{said[0][:-1]}, {high['missing %']:.0f} % with A = {high['A']:g}."]
    reference = part[part["A"] == REFERENCE]
    row = reference.iloc[0] if len(reference) else low
    where = f"With {'the reference ' if len(reference) else ''}A = {row['A']:g}"
    if np.isnan(row["rare missing %"]):
        said.append(f"{where}: {row['missing %']:.0f} %. No label has fewer than {RARE} points.")
    else:
        rare = f"of the pairs of labels with fewer than {RARE} points {row['rare missing %']:.0f} %"
        said.append(f"{where}: {row['missing %']:.0f} %, {rare}.")
        least = part.loc[part["rare missing %"].idxmin()]
        said.append(f"On any of the curves drawn these rare labels lose {least['rare missing %']:.0f} % at least.")
    if row["never seen %"] >= 0.05:
        said.append(f"{where}: {row['never seen %']:.1f} % of the labels would not be seen at all, on average.")
    return said


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
        place = -np.inf
        for A, curve in sorted(table.groupby("A"), key=lambda one: one[1]["propensity"].iloc[-1]):
            bold = A == REFERENCE
            style = {"color": looks.INK, "linewidth": 2.6} if bold else {"color": "0.45", "linewidth": 1.1}
            ax.plot(curve["count"], curve["propensity"], linestyle="-", **style)
            x, y = curve[["count", "propensity"]].iloc[-1]
            # Names of curves that end close together are moved apart.
            place = max(y, place + 0.05)
            text = f"{missing[A]:.0f} %  (A = {A:g})"
            looks.name(ax, text, (x, place), (4, -3), weight="bold" if bold else "normal", annotation_clip=False)
        ax.set(xscale="log", ylim=(0, 1.02), xlabel="points with the label, $N_l$", ylabel="propensity $p_l$")
        ax.set_xlim(1, table["count"].max())
        looks.title(fig, f"{name}: propensity by label frequency, and the share of pairs that goes missing")
        figures.draws(ax, x="count", y="propensity")
    return fig
