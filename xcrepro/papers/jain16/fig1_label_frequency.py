"""Fig. 1 of Jain et al. 2016: how often each label occurs, against its rank."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, published
from xcrepro.data import registry
from xcrepro.inputs import parameters
from xcrepro.inputs.longtail import Tail, counted
from xcrepro.papers.jain16._common import PAPER
from xcrepro.repro import figures

check_parameters = parameters.check

COLUMNS = ["dataset", "labels", "under 5 points", "% of labels under 5"]
FEW = 5
"""The caption's bound."""
TOP = "% of pairs in the top 1 % of labels"
STRETCHES = (0.1, 1, 10, 100)
FEW_RANKS = 5
"""A stretch of fewer ranks has no slope."""
ONE_POWER = 0.25
"""Slopes that differ by less are called one: counts are whole numbers, and small ones make steps."""
SLOPES = [f"{low:g} to {high:g} %" for low, high in itertools.pairwise(STRETCHES)]


def with_counted(tails: list[Tail], names: Sequence[str] = ("eurlex-4k", "bibtex")) -> list[Tail]:
    """The real counts that come with the project behind those of a run, each dataset once.

    Parameters
    ----------
    tails : list of Tail
    names : sequence of str
        Of :func:`xcrepro.inputs.longtail.counted`.

    Returns
    -------
    list of Tail
        Those of ``names`` that are not there already.
    """
    known = {tail.name for tail in tails}
    return [*tails, *(tail for tail in map(counted, names) if tail.name not in known)]


def describe_counted(tails: list[Tail]) -> list[str]:
    """Where the counts that come with the project are from: one text, or none without them."""
    return [f"label counts of {' and '.join(tail.name for tail in tails)} (real data)"] if tails else []


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
    return pd.DataFrame(rows, columns=[*COLUMNS, TOP])


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


def compute_slopes(table: pd.DataFrame) -> pd.DataFrame:
    """How fast frequency falls with rank, in three stretches of the ranks: a power law falls at one rate.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        dataset, and by what power of the rank the count falls (0: not at all) from the 0.1 % rank to 1 %, from 1 % to 10 %
        and from 10 % to 100 % of the labels that occur, to the nearest rank; NaN for a stretch of fewer than 5 ranks.
    """
    rows = []
    for name, curve in table.groupby("dataset", sort=False):
        last = curve["rank"].iloc[-1]
        ranks = [max(1, round(share * last / 100)) for share in STRETCHES]
        counts = [curve["count"].iloc[np.searchsorted(curve["rank"], rank)] for rank in ranks]
        slopes = [
            math.log(counts[i] / counts[i + 1]) / math.log(ranks[i + 1] / ranks[i])
            if ranks[i + 1] - ranks[i] >= FEW_RANKS
            else math.nan
            for i in range(len(ranks) - 1)
        ]
        rows.append((name, *slopes))
    return pd.DataFrame(rows, columns=["dataset", *SLOPES])


def findings(rare: pd.DataFrame, slopes: pd.DataFrame, printed: pd.DataFrame) -> list[str]:
    """What came out, as sentences. Counts of labels are exact: there is no error to give.

    Parameters
    ----------
    rare, slopes, printed : DataFrame
        From :func:`compute_rare`, :func:`compute_slopes` and :func:`compute_printed`.

    Returns
    -------
    list of str
    """
    said = []
    for row, fall in zip(rare.to_dict("records"), slopes.to_dict("records"), strict=True):
        text = f"{row['dataset']}: {row[COLUMNS[3]]:.1f} % of the {row['labels']:,} labels have fewer than {FEW} points; the "
        text += f"most frequent 1 % carry {row[TOP]:.0f} % of the pairs."
        known = {name: fall[name] for name in SLOPES if not math.isnan(fall[name])}
        if len(known) > 1:
            powers = ", ".join(f"-{value:.1f} ({name} of the ranks)" for name, value in known.items())
            one = max(known.values()) - min(known.values()) < ONE_POWER
            text += f" Counts fall as the rank to the power {powers}: {'about' if one else 'not'} one power law."
        said.append(text)
        theirs = printed[(printed["dataset"] == row["dataset"]) & (printed["labels"] == row["labels"])]
        if len(theirs):
            count = int(theirs[COLUMNS[2]].iloc[0])
            same = "the same" if count == row[COLUMNS[2]] else f"not the same, {row[COLUMNS[2]]:,} here"
            said.append(f"{row['dataset']}, the caption's {count:,} labels with fewer than {FEW}: {same}.")
    return said


def plot(table: pd.DataFrame, rare: pd.DataFrame, ax=None) -> Figure:
    """Fig. 1: both axes logarithmic, rank as a share of the labels seen, so that sets of any size share an axis.

    Real data are bold.

    Parameters
    ----------
    table, rare : DataFrame
        From :func:`compute` and :func:`compute_rare`, of the same datasets.
    ax : Axes, optional
    """
    shares = rare.set_index("dataset")[COLUMNS[3]]
    with figures.new(looks.MEDIUM, 3.8, ax=ax) as (fig, ax):
        for name, curve in table.groupby("dataset", sort=False):
            width = 2.2 if curve["real"].iloc[0] else 1.4
            label = f"{name}: {shares[name]:.0f} %"
            ax.step(curve["rank %"], curve["count"], where="pre", label=label, linewidth=width)
        ax.axhline(FEW, color="0.35", linewidth=0.8, linestyle=":")
        looks.name(ax, f"{FEW} points", (0.012, FEW), (0, 2), xycoords=("axes fraction", "data"), color="0.35")
        ax.set(xscale="log", yscale="log", ylim=(0.8, None))
        ax.set(xlabel="label rank, % of the labels that occur", ylabel="points that carry the label")
        looks.title(fig, f"Label frequency by rank (legend: % of labels with fewer than {FEW} points)")
        looks.legend(fig, ax, ncols=2 if len(shares) < 7 else 3)
        figures.draws(ax, x="rank %", y="count")
    return fig
