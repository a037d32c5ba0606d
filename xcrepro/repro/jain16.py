"""What the items of Jain et al. 2016 compute and draw."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro.inputs.longtail import Tail
from xcrepro.repro import figures

# ---------------------------------------------------------------- fig 1: how often each label occurs


def label_frequency(tails: list[Tail]) -> pd.DataFrame:
    """Label frequency against rank as a staircase: columns dataset, real, rank, count.

    One row for the last rank of every distinct count; labels without a point are left out (a logarithm has no place for
    them). So the curve is exact, and short however many labels there are.
    """
    parts = []
    for tail in tails:
        counts, times = np.unique(tail.counts[tail.counts > 0], return_counts=True)
        rank = np.cumsum(times[::-1])
        parts.append(pd.DataFrame({"dataset": tail.name, "real": tail.real, "rank": rank, "count": counts[::-1]}))
    return pd.concat(parts, ignore_index=True)


def rare_labels(tails: list[Tail], below: int = 5) -> pd.DataFrame:
    """How many labels occur fewer than ``below`` times, never-seen ones included: the claim under the figure."""
    rows = []
    for tail in tails:
        rare = int((tail.counts < below).sum())
        top = np.sort(tail.counts)[::-1][: max(1, round(0.01 * tail.counts.size))].sum()
        rows.append(
            {
                "dataset": tail.name,
                "labels": int(tail.counts.size),
                f"under {below} points": rare,
                f"% of labels under {below}": 100 * rare / tail.counts.size,
                "% of pairs in the top 1 % of labels": 100 * float(top) / float(tail.counts.sum()),
            }
        )
    return pd.DataFrame(rows)


# what the caption of fig. 1 prints, with L of table 2: labels that occur less than 5 times
RARE_PRINTED = {"WikiLSHTC-325K": (246_201, 325_056), "Amazon-670K": (452_262, 670_091)}


def rare_printed() -> pd.DataFrame:
    """The caption's numbers, and the share of all labels that they are."""
    rows = [
        {"dataset": name, "labels": total, "under 5 points": rare, "% of labels under 5": 100 * rare / total}
        for name, (rare, total) in RARE_PRINTED.items()
    ]
    return pd.DataFrame(rows)


def plot_label_frequency(data: pd.DataFrame) -> Figure:
    """Fig 1: both axes logarithmic, rank as a share of the labels seen, so that sets of any size lie side by side."""
    with figures.new(width=6.4, height=3.6) as (fig, ax):
        for name, curve in data.groupby("dataset", sort=False):
            share = 100 * curve["rank"] / curve["rank"].max()
            width = 2.2 if curve["real"].iloc[0] else 1.4
            ax.step(share, curve["count"], where="pre", label=name, linewidth=width)
        ax.axhline(5, color="0.35", linewidth=0.8, linestyle=":")
        ax.annotate("5 points", (0.012, 5.4), xycoords=("axes fraction", "data"), color="0.35", fontsize=8)
        ax.set(xscale="log", yscale="log", ylim=(0.8, None))
        ax.set_xlabel("label rank, % of the labels that occur")
        ax.set_ylabel("points that carry the label")
        ax.set_title("Few labels have many points and most a handful; only Bibtex has no tail", loc="left")
        ax.legend(loc="upper right")
    return fig
