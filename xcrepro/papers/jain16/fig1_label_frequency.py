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
from xcrepro.data.twin import expected_observed_counts
from xcrepro.inputs import datasets, parameters
from xcrepro.inputs.longtail import Tail, counted, drawn, from_dataset
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


def load(
    names: Sequence[str], size: str, scales: Sequence[float], seed: int, folder: str
) -> tuple[list[Tail], list[object]]:
    """Label counts of a run: real ones where there is a folder or the size is paper, else drawn as a twin has them.

    Parameters
    ----------
    names, size, scales, seed, folder
        As for :func:`xcrepro.inputs.datasets.pick_many`.

    Returns
    -------
    list of Tail
        Of ``names``, then those that come with the project (:func:`with_counted`).
    list
        What they are made from, for ``made_from`` of the item.
    """
    if folder or size == "paper":
        loaded = datasets.pick_many(names, size, scales, seed, folder)
        tails, made = [from_dataset(ds) for ds in loaded.values()], [loaded]
    else:
        scales = list(scales) or [1.0] * len(names)
        tails = [drawn(name, scale, seed) for name, scale in zip(names, scales, strict=True)]
        twins = [f"{registry.get(name).printed_name} × {scale!r}" for name, scale in zip(names, scales, strict=True)]
        made = [f"label counts drawn as of synthetic twins of {' and '.join(twins)} (seed {seed})"]
    every = with_counted(tails)
    counted_names = [tail.name for tail in every[len(tails) :]]
    return every, [*made, *([f"label counts of {' and '.join(counted_names)} (real data)"] if counted_names else [])]


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


def compute_expected(names: Sequence[str], scales: Sequence[float], printed: pd.DataFrame) -> pd.DataFrame:
    """How many labels of a twin are expected to occur fewer than 5 times, beside the caption's number.

    Parameters
    ----------
    names, scales
        As for :func:`load`; names that are not in the catalogue are left out.
    printed : DataFrame
        From :func:`compute_printed`.

    Returns
    -------
    DataFrame
        dataset, scale, labels (with a point), under 5 points, ± (what Poisson draws scatter), caption, above caption (percent),
        at its rank (points that the twin expects of the label at the caption's rank, the last with 5 or more); the last three
        NaN for a scale below 1 and for datasets without a caption.
    """
    rows, captions = [], printed.set_index("dataset")[COLUMNS[2]]
    for name, scale in zip(names, list(scales) or [1.0] * len(names), strict=True):
        entry = registry.find(name)
        if entry is None:
            continue
        expected = expected_observed_counts(name, scale)
        none = np.exp(-expected)
        few = none * sum(expected**n / math.factorial(n) for n in range(1, FEW))
        caption = captions.get(entry.printed_name, np.nan) if scale == 1 else np.nan
        above = 100 * (few.sum() / caption - 1)
        at_rank = np.nan if np.isnan(caption) else expected[entry.n_labels - int(caption) - 1]
        scatter = math.sqrt((few * (1 - few)).sum())
        rows.append((entry.printed_name, scale, (1 - none).sum(), few.sum(), scatter, caption, above, at_rank))
    return pd.DataFrame(
        rows, columns=["dataset", "scale", *COLUMNS[1:3], "±", "caption", "above caption", "at its rank"]
    )


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


def findings_expected(expected: pd.DataFrame) -> list[str]:
    """How near the twins of full size come to the caption.

    Parameters
    ----------
    expected : DataFrame
        From :func:`compute_expected`.

    Returns
    -------
    list of str
        A sentence for each with a caption.
    """
    return [
        f"{row['dataset']}, the twin's expectation: {row[COLUMNS[2]]:,.0f} ± {row['±']:.0f} labels with fewer than {FEW} "
        f"points, {abs(row['above caption']):.1f} % {'more' if row['above caption'] > 0 else 'fewer'} than the caption's "
        f"{row['caption']:,.0f}. By the caption the label at rank {row['rank']:,} is the last with {FEW}; the twin expects "
        f"{row['at its rank']:.1f} of it."
        for row in expected.dropna(subset="caption").assign(rank=_last_rank).to_dict("records")
    ]


def _last_rank(expected: pd.DataFrame) -> pd.Series:
    """The rank of the last label with 5 points, by the caption."""
    labels = expected["dataset"].map(lambda name: registry.get(name).n_labels)
    return (labels - expected["caption"]).astype(int)


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
