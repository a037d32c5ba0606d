"""What the items of "Re-evaluating XMTC methods in tail label prediction" compute and draw."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro.data import registry
from xcrepro.inputs.longtail import Tail
from xcrepro.repro import figures

# ---------------------------------------------------------------- figs 1 and 4: labels and instances by frequency bin

EDGES = (1, 10, 100, 1000)
BINS = registry.BINS


def label_bins(tails: list[Tail]) -> pd.DataFrame:
    """Share of labels and of training instances in each frequency bin: the bars of figs 1 and 4.

    A label's instances are the points that carry it, so a point counts once for each of its labels. Percent of the labels
    that occur at all, as in the paper, whose bins start at 1; labels without a point are stated apart, in ``unseen``.
    Columns dataset, real, bin, labels, instances (integers), % labels, % instances, unseen.
    """
    rows = []
    for tail in tails:
        seen = tail.counts[tail.counts > 0]
        which = np.digitize(seen, EDGES) - 1
        labels = np.bincount(which, minlength=len(EDGES))
        instances = np.bincount(which, weights=seen, minlength=len(EDGES)).astype(np.int64)
        for b, name in enumerate(BINS):
            rows.append(
                {
                    "dataset": tail.name,
                    "real": tail.real,
                    "bin": name,
                    "labels": int(labels[b]),
                    "instances": int(instances[b]),
                    "% labels": 100 * labels[b] / labels.sum(),
                    "% instances": 100 * instances[b] / instances.sum(),
                    "unseen": int((tail.counts == 0).sum()),
                }
            )
    return pd.DataFrame(rows)


def printed_bins(dataset: str) -> pd.DataFrame:
    """Table 2's label bins of ``dataset`` and their shares: bin, labels, % labels."""
    bins = registry.get(dataset).bins
    total = sum(bins.values())
    return pd.DataFrame({"bin": list(bins), "labels": list(bins.values())}).assign(
        **{"% labels": lambda t: 100 * t["labels"] / total}
    )


def tail_claims(data: pd.DataFrame) -> pd.DataFrame:
    """The introduction's sentences on Wiki10-31K, for every dataset: labels with 100 points or more, and with under 10.

    Columns dataset, % labels >= 100, % instances >= 100, % labels < 10, % instances < 10.
    """
    rows = []
    for name, part in data.groupby("dataset", sort=False):
        head, tail = part["bin"].isin(BINS[2:]), part["bin"] == BINS[0]
        rows.append(
            {
                "dataset": name,
                "% labels >= 100": part.loc[head, "% labels"].sum(),
                "% instances >= 100": part.loc[head, "% instances"].sum(),
                "% labels < 10": part.loc[tail, "% labels"].sum(),
                "% instances < 10": part.loc[tail, "% instances"].sum(),
            }
        )
    return pd.DataFrame(rows)


def plot_label_bins(data: pd.DataFrame, printed: dict[str, pd.DataFrame]) -> Figure:
    """Figs 1 and 4: a panel a dataset; bars for labels and instances, a mark where table 2 puts the labels.

    printed: panel name -> :func:`printed_bins` of the dataset behind it.
    """
    names = list(data["dataset"].unique())
    with figures.new(width=8.4, height=2.9, ncols=len(names), sharey=True) as (fig, axes):
        place = np.arange(len(BINS))
        for ax, name in zip(np.atleast_1d(axes), names, strict=True):
            part = data[data["dataset"] == name]
            ax.bar(place - 0.2, part["% labels"], 0.4, color="#1b2a49", label="labels")
            ax.bar(
                place + 0.2, part["% instances"], 0.4, color="#e39a2d", hatch="//", edgecolor="white", label="instances"
            )
            if name in printed:
                marks = printed[name]["% labels"]
                ax.plot(place - 0.2, marks, "D", color="white", markeredgecolor="black", label="labels, table 2")
            ax.set_title(name, loc="left")
            ax.set_xticks(place, BINS, rotation=25)
            ax.grid(axis="x", visible=False)
        np.atleast_1d(axes)[0].set_ylabel("%")
        fig.supxlabel("training points that carry the label", fontsize=9)
        fig.suptitle(
            "Most labels are rare, yet most instances belong to the few frequent ones", x=0.01, ha="left", fontsize=10
        )
        handles, texts = np.atleast_1d(axes)[-1].get_legend_handles_labels()
        fig.legend(handles, texts, loc="outside right center")
    return fig
