"""Fig 5 from printed numbers: Renee's calibration error against the labels, and against the points a label has."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data import registry
from xcrepro.papers.calibration._common import printed_table
from xcrepro.repro import figures

DATASETS = ("EURLex-4K", "AmazonCat-13K", "Wikipedia-500K", "Amazon-670K", "Amazon-3M")


def compute() -> pd.DataFrame:
    """Renee's ECE@k before calibration on four of five datasets, and Amazon-3M without one (tables 3 and 7).

    Returns
    -------
    DataFrame
        dataset, labels, points per label (both of table 3), k, printed, value (percent); 15 rows, those of Amazon-3M
        empty.
    """
    t = printed_table(7).query("method == 'Renee' and variant == 'none' and metric == 'ECE'").astype({"k": int})
    rows = pd.MultiIndex.from_product([DATASETS, looks.PLACES], names=["dataset", "k"])
    found = t.set_index(["dataset", "k"])[["printed", "value"]].reindex(rows).fillna({"printed": ""}).reset_index()
    sizes = [registry.published(name, "calibration:table3") for name in found["dataset"]]
    found["labels"] = [size["n_labels"] for size in sizes]
    found["points per label"] = [size["avg_points_per_label"] for size in sizes]
    return found[["dataset", "labels", "points per label", "k", "printed", "value"]]


def compute_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Does the error rise with the labels, or as the points per label become fewer?

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        k, datasets, steps (from one dataset to the next), error rises with more labels (in how many steps, the
        datasets in the order of their labels), error rises with fewer points per label (in that order).
    """
    rows = []
    for k, part in table.dropna(subset="value").groupby("k"):
        by_labels = part.sort_values("labels")["value"].diff().dropna() > 0
        by_points = part.sort_values("points per label", ascending=False)["value"].diff().dropna() > 0
        rows.append((k, len(part), len(by_labels), by_labels.sum(), by_points.sum()))
    return pd.DataFrame(rows, columns=["k", "datasets", "steps", *_RISES])


_RISES = ["error rises with more labels", "error rises with fewer points per label"]


def findings(table: pd.DataFrame) -> list[str]:
    """Which order the errors follow, what so few datasets can show, and what the missing one would.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    list of str
    """
    known, said = table.dropna(subset="value"), []
    n = known["dataset"].nunique()
    for (steps, labels, points), ks in compute_claims(table).groupby(["steps", *_RISES], sort=False)["k"]:
        said.append(
            f"At k = {', '.join(map(str, ks))} ECE@k rises in {labels} of {steps} steps to more labels, and in {points} of"
            f" {steps} steps to fewer points per label."
        )
    least = min(1.0, 2 / math.factorial(n))
    sure = "neither order is more than chance could give" if least >= 0.05 else "an order can be clear"
    said.append(f"With {n} datasets {sure}: the least p of a rank test is {least:.2g} (Kendall's tau, exact).")
    for name, part in table[table["value"].isna()].groupby("dataset"):
        labels, points = part[["labels", "points per label"]].iloc[0]
        more, fewer = (known["labels"] > labels), (known["points per label"] > points)
        above = known[more]["dataset"].nunique(), known[fewer]["dataset"].nunique()
        said.append(
            f"{name}, plotted and in no table, could tell the two apart: {n - above[0]} of the other {n} have fewer labels"
            f" than its {labels:,.0f}, and {above[1]} of {n} have more points per label than its {points:.2f}."
        )
    return said


# Names that do not stand centred above their points, where a line runs: (above or below, side).
_NAMES = {
    ("labels", "AmazonCat-13K"): ("below", "center"),
    ("labels", "Wikipedia-500K"): ("above", "right"),
    ("points per label", "AmazonCat-13K"): ("below", "left"),
    ("points per label", "EURLex-4K"): ("below", "left"),
    ("points per label", "Wikipedia-500K"): ("below", "left"),
}


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Fig 5, and the same numbers against the points per label; a line where Amazon-3M would stand.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of Axes, optional
        Two.
    """
    panels = (("labels", "number of labels"), ("points per label", "training points per label (fewer to the right)"))
    with figures.new(width=looks.WIDE, height=3.6, ncols=2, sharey=True, ax=ax) as (fig, axes):
        known, missing = table.dropna(subset="value"), table[table["value"].isna()]
        for panel, (x, words) in zip(axes, panels, strict=True):
            for k, part in known.sort_values(x).groupby("k"):
                panel.plot(part[x], part["value"], **looks.PLACES[k].line(), markersize=6, label=f"ECE@{k}")
            for name, part in known.groupby("dataset"):
                place, side = _NAMES.get((x, name), ("above", "center"))
                end, up, va = ("max", 7, "baseline") if place == "above" else ("min", -8, "top")
                at = (part[x].iloc[0], part["value"].agg(end))
                looks.name(panel, name, at, ({"left": 4, "right": -4}.get(side, 0), up), ha=side, va=va)
            for name, at in missing.groupby("dataset")[x].first().items():
                panel.axvline(at, color="0.45", linewidth=0.8, linestyle=":", label="_guide")
                looks.name(panel, f"{name}: in no table", (at, 19), (-3, 0), rotation=90, ha="right", va="top")
            panel.set(xscale="log", xlabel=words, ylim=(0, 19.5))
            panel.margins(x=0.16)
            figures.draws(panel, x=x, y="value")
        axes[1].invert_xaxis()
        axes[0].set_ylabel("ECE@k before calibration, %")
        axes[0].legend(loc="upper left")
        looks.title(fig, "Renee's ECE@k against the number of labels, and against the points per label (printed)")
    return fig
