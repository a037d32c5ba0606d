"""Which leads of the page's benchmark tables are certain without anybody's predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.arguments import one_of
from xcrepro.errors import ArgumentError
from xcrepro.findings import LEVEL
from xcrepro.metrics import significance
from xcrepro.published import leads
from xcrepro.repro import figures

_LOOKS = {
    "certain": looks.Look(looks.TEAL, "o"),
    "open": looks.Look(looks.AMBER, "s"),
    "no lead": looks.Look(looks.RUST, "X"),
}


def check_parameters(values: Mapping[str, object]) -> None:
    """A metric with bounds, and a k that the page prints."""
    one_of("parameter metric", values["metric"], ("P", "PSP"))
    if values["k"] not in (1, 3, 5):
        raise ArgumentError("parameter k", "must be a k of the page: 1, 3 or 5", values["k"])


def compute(metric: str = "P", k: int = 1) -> pd.DataFrame:
    """Every row of the page's tables against the next one.

    Parameters
    ----------
    metric : {"P", "PSP"}
    k : {1, 3, 5}

    Returns
    -------
    DataFrame
        :func:`xcrepro.published.leads.leads`.
    """
    return leads.leads(metric, k)


def compute_leaders(found: pd.DataFrame) -> pd.DataFrame:
    """The first of each table against the second.

    Parameters
    ----------
    found : DataFrame
        Of :func:`compute`.

    Returns
    -------
    DataFrame
        Its rows with place 1, without the place.
    """
    return found[found["place"] == 1].drop(columns="place").reset_index(drop=True)


def compute_counts() -> pd.DataFrame:
    """The verdicts for P and PSP at 1, 3 and 5.

    Returns
    -------
    DataFrame
        metric (``"P@1"``), pairs (neighbouring rows), one column a verdict; certain after Holm: of the pairs, corrected for all
        of them; tables, and of their first two rows how many are certain: each alone, and corrected for all tables.
    """
    rows = []
    for metric in ("P", "PSP"):
        for k in (1, 3, 5):
            found = compute(metric, k)
            first = compute_leaders(found)
            verdicts = found["verdict"].value_counts().reindex(leads.VERDICTS, fill_value=0)
            held = int((found["p Holm"] <= LEVEL).sum())
            of_first = int((significance.holm(first["p most"]) <= LEVEL).sum())
            top = int((first["verdict"] == "certain").sum())
            rows.append((f"{metric}@{k}", len(found), *verdicts, held, len(first), top, of_first))
    columns = ["metric", "pairs", *leads.VERDICTS, "certain after Holm", "tables", "first certain", "first after Holm"]
    return pd.DataFrame(rows, columns=columns)


def plot(found: pd.DataFrame, name: str = "P@1", ax=None) -> Figure:
    """The gap of every row to the next one, a line a table; the two best rows are large.

    Parameters
    ----------
    found : DataFrame
        Of :func:`compute`.
    name : str
        The metric's name.
    ax : Axes, optional
        The caller's own.
    """
    datasets = list(dict.fromkeys(found["dataset"]))
    with figures.new(looks.WIDE, 5.6, ax=ax) as (fig, ax):
        for verdict, look in _LOOKS.items():
            part = found[found["verdict"] == verdict]
            at = [datasets.index(one) for one in part["dataset"]]
            size = np.where(part["place"] == 1, 60, 18)
            ax.scatter(part["gap"], at, s=size, alpha=0.8, label=verdict, **look.mark())
        ax.set_xscale("symlog", linthresh=0.01)
        ax.set_xlim(left=-0.002)
        ax.set_xticks([0, 0.01, 0.1, 1, 10], ["0", "0.01", "0.1", "1", "10"])
        ax.set_yticks(range(len(datasets)), datasets)
        ax.set_ylim(len(datasets) - 0.5, -0.5)
        ax.set_xlabel(f"{name} ahead of the next row, points (large: the best row)")
        figures.draws(ax, x="gap")
        looks.title(fig, f"Leads in {name} that no predictions could undo, and that none could make")
        looks.legend(fig, ax)
        return fig


def findings(found: pd.DataFrame, counts: pd.DataFrame, name: str = "P@1") -> list[str]:
    """What comes out, counted.

    Parameters
    ----------
    found : DataFrame
        Of :func:`compute`.
    counts : DataFrame
        Of :func:`compute_counts`.
    name : str
        The metric's name.

    Returns
    -------
    list of str
    """
    first, n = compute_leaders(found), found["verdict"].value_counts()
    row = counts.set_index("metric").loc[name]
    open_ones = first[first["verdict"] == "open"]
    said = [
        f"In {name} the best row's lead is certain in {(first['verdict'] == 'certain').sum()} of {len(first)} tables, whatever "
        f"the two predicted ({row['first after Holm']} after Holm's correction for all tables).",
        f"Of {len(found)} pairs of neighbouring rows {n.get('certain', 0)} are certain ({row['certain after Holm']} after "
        f"Holm's correction for all pairs; were no method better than the next, {LEVEL * len(found):.0f} at most would be "
        f"expected); {n.get('no lead', 0)} could be no lead whatever was predicted; for the other {n.get('open', 0)} it hangs "
        f"on the predictions.",
    ]
    if len(open_ones):
        worst = open_ones.loc[(open_ones["open at"] / open_ones["bound"]).idxmin()]
        said.append(
            f"The closest of the open first places: {worst['method']} before {worst['next']} on {worst['dataset']} is a lead "
            f"only if the mean squared difference of a point is at most {100 * worst['open at']:.2g} %, of at most "
            f"{100 * worst['bound']:.0f} % possible."
        )
    return said
