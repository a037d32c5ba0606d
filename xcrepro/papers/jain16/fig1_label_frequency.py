"""Fig. 1 of Jain et al. 2016: how often each label occurs, against its rank."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, published
from xcrepro.data import registry
from xcrepro.inputs.longtail import Tail
from xcrepro.papers.jain16._common import PAPER
from xcrepro.repro import figures

COLUMNS = ["dataset", "labels", "under 5 points", "% of labels under 5"]
FEW = 5
"""The caption's bound."""


def compute(tails: list[Tail]) -> pd.DataFrame:
    """Label frequency against rank, as a staircase: fig. 1 of jain16.

    Parameters
    ----------
    tails : list of Tail
        The label counts of each dataset.

    Returns
    -------
    DataFrame
        dataset, real, rank, count, rank % (of the labels that occur). One row for the last rank of every distinct
        count; labels without a point are left out (a logarithm has no place for them). So the curve is exact, and
        short however many labels there are.
    """
    parts = []
    for tail in tails:
        counts, times = np.unique(tail.counts[tail.counts > 0], return_counts=True)
        rank = np.cumsum(times[::-1])
        part = {"dataset": tail.name, "real": tail.real, "rank": rank, "count": counts[::-1]}
        parts.append(pd.DataFrame(part | {"rank %": 100 * rank / rank[-1]}))
    return pd.concat(parts, ignore_index=True)


def check(table: pd.DataFrame) -> pd.DataFrame:
    """Without the percentages, which follow from the ranks."""
    return table.drop(columns="rank %")


def compute_rare(tails: list[Tail]) -> pd.DataFrame:
    """How many labels occur fewer than 5 times, never-seen ones included: the claim in the caption of fig. 1.

    Parameters
    ----------
    tails : list of Tail
        The label counts of each dataset.

    Returns
    -------
    DataFrame
        dataset, labels, under 5 points, % of labels under 5, % of pairs in the top 1 % of labels.
    """
    rows = []
    for tail in tails:
        rare = int((tail.counts < FEW).sum())
        top = np.sort(tail.counts)[::-1][: max(1, round(0.01 * tail.counts.size))].sum()
        share = 100 * float(top) / float(tail.counts.sum())
        rows.append((tail.name, tail.counts.size, rare, 100 * rare / tail.counts.size, share))
    return pd.DataFrame(rows, columns=[*COLUMNS, "% of pairs in the top 1 % of labels"])


def compute_printed() -> pd.DataFrame:
    """The numbers in the caption of fig. 1, and the share of the labels of table 2 that they are.

    Returns
    -------
    DataFrame
        The first four columns of :func:`compute_rare`: dataset, labels, under 5 points, % of labels under 5.
    """
    printed = published.table("jain16:fig1-caption")
    rows = []
    for name, rare in zip(printed["dataset"], printed["value"].astype(int), strict=True):
        entry = registry.get(PAPER[name])
        rows.append((entry.printed_name, entry.n_labels, rare, 100 * rare / entry.n_labels))
    return pd.DataFrame(rows, columns=COLUMNS)


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Fig. 1: both axes logarithmic, rank as a share of the labels seen, so that sets of any size share an axis.

    Real data are bold.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : Axes, optional
    """
    with figures.new(looks.NARROW, 3.6, ax=ax) as (fig, ax):
        for name, curve in table.groupby("dataset", sort=False):
            width = 2.2 if curve["real"].iloc[0] else 1.4
            ax.step(curve["rank %"], curve["count"], where="pre", label=name, linewidth=width)
        ax.axhline(FEW, color="0.35", linewidth=0.8, linestyle=":")
        looks.name(ax, f"{FEW} points", (0.012, FEW), (0, 2), xycoords=("axes fraction", "data"), color="0.35")
        ax.set(xscale="log", yscale="log", ylim=(0.8, None))
        ax.set(xlabel="label rank, % of the labels that occur", ylabel="points that carry the label")
        looks.title(fig, f"Of the labels that occur, with fewer than {FEW} points: {_few(table)}")
        ax.legend(loc="upper right")
        figures.draws(ax, x="rank %", y="count")
    return fig


def _few(table: pd.DataFrame) -> str:
    """The share of each dataset's labels that have fewer than :data:`FEW` points, in words."""
    curves = table.groupby("dataset", sort=False)
    shares = {name: 100 - curve.loc[curve["count"] >= FEW, "rank %"].max() for name, curve in curves}
    return ", ".join(f"{name} {share:.0f} %" for name, share in shares.items())
