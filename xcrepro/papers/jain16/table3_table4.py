"""Tables 3 and 4 of Jain et al. 2016 as printed: who leads, by how much, and the paper's sentences counted out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.papers.jain16._common import KS, read_printed
from xcrepro.repro import figures

OURS = ["PfastXML", "PfastreXML"]  # the paper's own methods; the second re-ranks the first
STATE_OF_THE_ART = ["SLEEC", "FastXML"]  # whom the paper compares with by name


def _by_dataset(rows: pd.DataFrame):
    """(dataset, its rows by method) in the order of print."""
    for dataset, part in rows.groupby("dataset", sort=False):
        yield dataset, part.set_index("method").drop(columns="dataset")


def compute_leads(rows: pd.DataFrame) -> pd.DataFrame:
    """Who leads: for each dataset how many columns PfastreXML leads, the least and largest lead over the next method.

    Parameters
    ----------
    rows : DataFrame
        Table 3 or 4, of :func:`xcrepro.papers.jain16._common.read_printed`.

    Returns
    -------
    DataFrame
        dataset, methods, columns, led, least lead, least at, largest lead, largest at (points; ``at`` names the
        column).
    """
    found = []
    for dataset, part in _by_dataset(rows):
        lead = part.loc["PfastreXML"] - part.drop(index="PfastreXML").max()
        least, largest = (lead.min(), lead.idxmin()), (lead.max(), lead.idxmax())
        found.append((dataset, len(part), lead.size, int((lead > 0).sum()), *least, *largest))
    names = ["dataset", "methods", "columns", "led", "least lead", "least at", "largest lead", "largest at"]
    return pd.DataFrame(found, columns=names)


def compute(table3: pd.DataFrame) -> pd.DataFrame:
    """PfastreXML against the best of SLEEC and FastXML, and against the best of all methods but the paper's two.

    Parameters
    ----------
    table3 : DataFrame
        From :func:`xcrepro.papers.jain16._common.read_printed`.

    Returns
    -------
    DataFrame
        One row a dataset and column of table 3: dataset, column, PfastreXML, best named, named (its number), gain
        (points), gain % (relative), best other, gain on other (points).
    """
    parts = []
    for dataset, part in _by_dataset(table3):
        ours, other = part.loc["PfastreXML"], part.drop(index=OURS)
        named = part[part.index.isin(STATE_OF_THE_ART)]
        leader = {"PfastreXML": ours, "best named": named.idxmax(), "named": named.max()}
        gains = {"gain": ours - named.max(), "gain %": 100 * (ours / named.max() - 1)}
        others = {"best other": other.idxmax(), "gain on other": ours - other.max()}
        parts.append(pd.DataFrame({"dataset": dataset, "column": part.columns} | leader | gains | others))
    return pd.concat(parts, ignore_index=True)


def compute_ranges(table: pd.DataFrame) -> pd.DataFrame:
    """The ends of each dataset's gains over its columns.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        dataset, least gain, least at, largest gain, largest at (points, and the columns where), least %, largest %
        (relative).
    """
    found = table.set_index("column").groupby("dataset", sort=False)
    ends = found["gain"].agg(
        **{"least gain": "min", "least at": "idxmin", "largest gain": "max", "largest at": "idxmax"}
    )
    return ends.join(found["gain %"].agg(**{"least %": "min", "largest %": "max"})).reset_index()


def _count_above(number: int, method: str, rivals: Sequence[str] = ()) -> tuple[int, int, str]:
    """Comparisons of ``method`` with ``rivals`` (all but the paper's own): above in, of how many, the rest in words."""
    above, total, rest = 0, 0, []
    for dataset, part in _by_dataset(read_printed(number)):
        others = part[part.index.isin(rivals) if rivals else ~part.index.isin(OURS)]
        held = (part.loc[method] > others).to_numpy()
        above, total = above + int(held.sum()), total + held.size
        for i, j in np.argwhere(~held):
            rival, column = others.index[i], others.columns[j]
            rest.append(f"{dataset} {column}: {part.loc[method, column]:.2f}, {rival} {others.loc[rival, column]:.2f}")
    return above, total, "; ".join(rest)


def compute_claims() -> pd.DataFrame:
    """The paper's sentences on tables 3 and 4, each counted out.

    Returns
    -------
    DataFrame
        claim, holds, of (comparisons), where not (text).
    """
    claims = {
        "table 3: PfastXML is above every baseline": (3, "PfastXML"),
        "table 3: PfastreXML is above every baseline": (3, "PfastreXML"),
        "table 3: PfastreXML is above PfastXML": (3, "PfastreXML", ["PfastXML"]),
        "table 4: PfastreXML covers more than SLEEC and FastXML": (4, "PfastreXML", STATE_OF_THE_ART),
        "table 4: and more than 1-vs-All, where it is listed": (4, "PfastreXML", ["1-vs-All"]),
    }
    rows = [(claim, *_count_above(*comparison)) for claim, comparison in claims.items()]
    return pd.DataFrame(rows, columns=["claim", "holds", "of", "where not"])


def compute_decreasing_coverage(table4: pd.DataFrame) -> pd.DataFrame:
    """Cells of table 4 below the cell to their left.

    Parameters
    ----------
    table4 : DataFrame
        From :func:`xcrepro.papers.jain16._common.read_printed`.

    Returns
    -------
    DataFrame
        dataset, method, column, value, before (the smaller k's), percent.
    """
    cells = table4.set_index(["dataset", "method"]).rename_axis(columns="column").stack().rename("value").reset_index()
    cells["before"] = cells.groupby(["dataset", "method"])["value"].shift()
    return cells[cells["value"] < cells["before"]].reset_index(drop=True)


def findings(table3: pd.DataFrame, table4: pd.DataFrame, gains: pd.DataFrame, claims: pd.DataFrame) -> list[str]:
    """What the printed numbers say.

    Parameters
    ----------
    table3, table4 : DataFrame
        From :func:`xcrepro.papers.jain16._common.read_printed`.
    gains, claims : DataFrame
        From :func:`compute` and :func:`compute_claims`.

    Returns
    -------
    list of str
        Counts of printed cells: they have no errors.
    """
    leads = {number: compute_leads(table) for number, table in ((3, table3), (4, table4))}
    said = [
        f"PfastreXML has the largest number in {found['led'].sum()} of the {found['columns'].sum()} columns of table {number}."
        for number, found in leads.items()
    ]
    held = int((claims["holds"] == claims["of"]).sum())
    said.append(f"Of the paper's {len(claims)} sentences on order, {held} hold in every pair of cells.")
    ranges = compute_ranges(gains)
    ends = [_end(gains, column, place) for column in ("gain", "gain %") for place in ("idxmin", "idxmax")]
    said.append(
        f"The gain on the better of SLEEC and FastXML is {ends[0]} to {ends[1]} points; in percent of that rival, {ends[2]} "
        f"to {ends[3]}."
    )
    last = [_largest(gains, dataset) for dataset in ("Ads-9M", "AmazonCat-13K")]
    said.append(
        f'"From 3 % on Ads-9M to more than 20 % on AmazonCat-13K": the largest gains there are {" and ".join(last)}.'
    )
    beaten = gains[(gains["best other"] != gains["best named"])]
    if len(beaten):
        least = beaten.loc[beaten["gain on other"].idxmin()]
        said.append(
            f"In {len(beaten)} of {len(gains)} cells the best method but the paper's own two is neither SLEEC nor FastXML; the "
            f"least lead there is {least['gain on other']:.1f} points, {_cell(least)} over {least['best other']}."
        )
    falls = sum(_falls(part) for _, part in gains.groupby("dataset"))
    said.append(f"The gain in P shrinks from k = 1 to k = 5 on {falls} of {len(ranges)} datasets.")
    odd = compute_decreasing_coverage(table4)
    said.append(f"{len(odd)} of {table4.shape[0] * len(KS)} cells of table 4 lie below the cell of the smaller k.")
    return said


def _cell(row: pd.Series) -> str:
    return f"{row['column']} on {row['dataset']}"


def _end(gains: pd.DataFrame, column: str, place: str) -> str:
    """The number of a column at ``place``, and where it stands."""
    row = gains.loc[getattr(gains[column], place)()]
    return f"{row[column]:.1f} ({_cell(row)})"


def _largest(gains: pd.DataFrame, dataset: str) -> str:
    part = gains[gains["dataset"] == dataset]
    row = part.loc[part["gain"].idxmax()]
    return f"{row['gain']:.1f} points, {row['gain %']:.0f} % of the rival ({_cell(row)})"


def _falls(part: pd.DataFrame) -> bool:
    gain = part.set_index("column")["gain"]
    return bool(gain["P1"] > gain["P5"])


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Table 3: PfastreXML's gain in P1, P3, P5 on the better of SLEEC and FastXML, a line a dataset.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : Axes, optional
    """
    shown = table[table["column"].isin([f"P{k}" for k in KS])].pivot(index="dataset", columns="column", values="gain")
    shown = shown.loc[list(dict.fromkeys(table["dataset"]))[::-1]]
    at = np.arange(len(shown))
    low, high = shown.min(axis=1), shown.max(axis=1)
    with figures.new(looks.NARROW, 3.0, ax=ax) as (fig, ax):
        ax.hlines(at, low, high, color="0.6", linewidth=1)
        for k in KS:
            style = {"linestyle": "none", "markersize": 6, "markeredgecolor": "black", "markeredgewidth": 0.5}
            ax.plot(shown[f"P{k}"], at, label=f"P{k}", **looks.PLACES[k].mark(), **style)
        ax.axvline(0, color="black", linewidth=0.8, linestyle="-")
        ax.set_yticks(at, shown.index)
        ax.margins(y=0.12)
        ax.set_xlabel("difference, points of propensity-scored precision (no errors are printed)")
        gained = f"{low.min():.1f} to {high.max():.1f} points"
        looks.title(fig, f"PfastreXML against the better of SLEEC and FastXML: {gained}")
        ax.legend(title="column", loc="lower right")
        figures.draws(ax, x="gain")
    return fig
