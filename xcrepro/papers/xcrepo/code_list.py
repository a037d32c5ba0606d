"""The page's list of code joined to its benchmark tables: who has rows where, which families lead, who was never compared."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, published
from xcrepro.errors import ArgumentError
from xcrepro.published import benchmarks
from xcrepro.repro import figures

UNLISTED = "not listed"
"""The family of a method that the list does not have."""
METRICS = ("P@1", "PSP@1")


def check_parameters(values: Mapping[str, object]) -> None:
    """A year that parts the list."""
    years = published.methods()["year"]
    since = values["since"]
    if not isinstance(since, int) or isinstance(since, bool) or not years.min() < since <= years.max():
        rule = f"must be a year above {years.min()}, {years.max()} at most"
        raise ArgumentError("parameter since", rule, repr(since))


def listed_name(method: str) -> str:
    """What the list of code calls a method of the benchmark tables; empty where it does not have it.

    Parameters
    ----------
    method : str
        The record's name.

    Returns
    -------
    str

    Raises
    ------
    ArgumentError
        For a name that neither the list nor ``data/published/listed_as.csv`` has: somebody has to say which method it is.

    Examples
    --------
    >>> listed_name("Astec"), listed_name("Parabel"), listed_name("XT")
    ('DeepXML/Astec', 'Parabel', '')
    """
    written = published.listed_as().set_index("printed")["listed"]
    if method in written.index:
        return written[method]
    if method in set(published.methods()["method"]):
        return method
    raise ArgumentError("method", "must be in the list of code or in data/published/listed_as.csv", repr(method))


def load_rows() -> pd.DataFrame:
    """The rows of all benchmark tables with their listed names.

    Returns
    -------
    DataFrame
        :func:`xcrepro.published.benchmarks.board`, with the columns listed (empty: not in the
        list) and family.
    """
    rows = benchmarks.board()
    listed = {name: listed_name(name) for name in rows["method"].unique()}
    family = published.methods().set_index("method")["category"].to_dict()
    rows = rows.assign(listed=rows["method"].map(listed))
    return rows.assign(family=[family.get(name, UNLISTED) for name in rows["listed"]])


def _firsts(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Of P@1 and PSP@1 the first of each table, without doubted numbers: best, lead, listed, family."""
    about = rows.drop_duplicates("method").set_index("method")[["listed", "family"]]
    found = {}
    for metric in METRICS:
        found[metric] = benchmarks.leaders(metric).join(about, on="best")
    return found


def compute(rows: pd.DataFrame) -> pd.DataFrame:
    """The list of code, with where each method has been measured.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_rows`.

    Returns
    -------
    DataFrame
        In the page's order: method, family, features, language, authors, venue (as printed), year; tables
        (benchmark tables with a row of it),
        first in P@1 and first in PSP@1 (of how many tables), papers (of the other four documents, with a printed number of it).
    """
    tables = rows.groupby("listed")["dataset"].nunique()
    first = {metric: part["listed"].value_counts() for metric, part in _firsts(rows).items()}
    elsewhere = _elsewhere()
    found = published.methods().rename(columns={"category": "family", "venue_printed": "venue as printed"})
    found = found[["method", "family", "features", "language", "authors", "venue as printed", "year"]]
    found = found.assign(tables=[int(tables.get(name, 0)) for name in found["method"]])
    for metric in METRICS:
        found[f"first in {metric}"] = [int(first[metric].get(name, 0)) for name in found["method"]]
    return found.assign(papers=[", ".join(elsewhere.get(name, ())) for name in found["method"]])


def _elsewhere() -> dict[str, list[str]]:
    """Listed method -> the other documents that print a number of it."""
    written = published.listed_as().set_index("printed")["listed"].to_dict()
    document = published.about().reset_index().set_index("source")["document"]
    found: dict[str, list[str]] = {}
    for source in published.sources():
        if document[source] == "xcrepo":
            continue
        for method in published.table(source)["method"].unique():
            names = found.setdefault(written.get(method, method), [])
            names += [document[source]] if document[source] not in names else []
    return found


def compute_families(rows: pd.DataFrame, since: int) -> pd.DataFrame:
    """What each family has, and where it leads.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_rows`.
    since : int
        A year.

    Returns
    -------
    DataFrame
        family (last: :data:`UNLISTED`), listed (methods), since (of that year or later), with rows, tables, rows;
        then of P@1 and PSP@1: first
        (of how many tables a row of the family is the first), certain (of these how many leads no predictions could undo, as
        :mod:`xcrepro.published.leads` has it).
    """
    listed, first = published.methods(), _firsts(rows)
    found = []
    for family in [*dict.fromkeys(listed["category"]), UNLISTED]:
        mine, part = listed[listed["category"] == family], rows[rows["family"] == family]
        row = [family, len(mine), int((mine["year"] >= since).sum()), part["method"].nunique()]
        if family != UNLISTED:
            row[3] = part["listed"].nunique()
        row += [part["dataset"].nunique(), len(part)]
        for metric in METRICS:
            led = first[metric][first[metric]["family"] == family]
            row += [len(led), int((led["lead"] == "certain").sum())]
        found.append(row)
    columns = ["family", "listed", f"since {since}", "with rows", "tables", "rows"]
    columns += [f"{metric} {what}" for metric in METRICS for what in ("first", "certain")]
    return pd.DataFrame(found, columns=columns)


def compute_unmatched(rows: pd.DataFrame) -> pd.DataFrame:
    """The written map: names of the tables that are not the list's.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_rows`.

    Returns
    -------
    DataFrame
        printed, listed (empty: not listed), why, tables.
    """
    tables = rows.groupby("method")["dataset"].nunique()
    found = published.listed_as()
    return found.assign(tables=[int(tables.get(name, 0)) for name in found["printed"]])


def compute_pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """How many pairs of methods stand together in a table, by family.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_rows`.

    Returns
    -------
    DataFrame
        family, other (the same or another), pairs (of listed methods), together (in one benchmark table at least),
        never. All 42 listed
        methods count, so a pair with a method without rows is never together.
    """
    listed = published.methods()
    seen = {name: set(part["dataset"]) for name, part in rows.groupby("listed")}
    families = listed.set_index("method")["category"]
    found: dict[tuple[str, str], list[int]] = {}
    order = list(dict.fromkeys(families))
    for one, two in itertools.combinations(listed["method"], 2):
        key = tuple(sorted((families[one], families[two]), key=order.index))
        count = found.setdefault(key, [0, 0])
        count[0] += 1
        count[1] += bool(seen.get(one, set()) & seen.get(two, set()))
    keys = sorted(found, key=lambda key: [order.index(name) for name in key])
    lines = [(*key, all_, both, all_ - both) for key in keys for all_, both in [found[key]]]
    return pd.DataFrame(lines, columns=["family", "other", "pairs", "together", "never"])


def compute_places(rows: pd.DataFrame) -> pd.DataFrame:
    """Which method stands in which table, by number, for the figure.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_rows`.

    Returns
    -------
    DataFrame
        method, family, row (from above: families in the list's order, by year), dataset, column (tables in the
        page's order), best
        (its best P@1 there, percent), first (whether it is the table's first in P@1). A method without rows has one
        line, with column NaN.
    """
    listed = published.methods()
    order = list(dict.fromkeys(listed["category"]))
    listed = listed.assign(at=listed["category"].map(order.index)).sort_values(["at", "year", "method"], kind="stable")
    datasets = list(dict.fromkeys(rows["dataset"]))
    first = set(_firsts(rows)["P@1"][["dataset", "listed"]].itertuples(index=False, name=None))
    found = []
    for row, one in enumerate(listed.itertuples(index=False)):
        part = rows[rows["listed"] == one.method].groupby("dataset", sort=False)["P@1"].max()
        for dataset, best in part.items():
            lead = (dataset, one.method) in first
            found.append((one.method, one.category, row, dataset, datasets.index(dataset), best, lead))
        if part.empty:
            found.append((one.method, one.category, row, "", np.nan, np.nan, False))
    return pd.DataFrame(found, columns=["method", "family", "row", "dataset", "column", "best", "first"])


def findings(found: pd.DataFrame, families: pd.DataFrame, unmatched: pd.DataFrame, pairs: pd.DataFrame) -> list[str]:
    """What comes out, counted; whether a lead is more than the luck of the test points stands with it.

    Parameters
    ----------
    found, families, unmatched, pairs : DataFrame
        From :func:`compute`, :func:`compute_families`, :func:`compute_unmatched` and :func:`compute_pairs`.

    Returns
    -------
    list of str
    """
    none = found[found["tables"] == 0]
    nowhere = none[none["papers"] == ""]
    said = [
        f"Of {len(found)} listed methods {len(found) - len(none)} have a row in a benchmark table; {len(none)} have none: "
        f"{', '.join(none['method'])}. Of these {len(nowhere)} have no printed number in any of the five documents."
    ]
    for metric in METRICS:
        led = families[families[f"{metric} first"] > 0].sort_values(f"{metric} first", ascending=False, kind="stable")
        each = [
            f"{row['family']} {row[f'{metric} first']} ({row[f'{metric} certain']} certain)"
            for _, row in led.iterrows()
        ]
        said.append(f"First in {metric}, of {int(led[f'{metric} first'].sum())} tables: {', '.join(each)}.")
    all_, never = int(pairs["pairs"].sum()), int(pairs["never"].sum())
    own = pairs[pairs["family"] == pairs["other"]]
    said.append(
        f"Of {all_} pairs of listed methods {never} never stand in one table; within a family {int(own['never'].sum())} of "
        f"{int(own['pairs'].sum())}."
    )
    absent = unmatched[(unmatched["listed"] == "") & (unmatched["tables"] > 0)]
    most = absent.sort_values("tables", ascending=False, kind="stable").iloc[0]
    said.append(
        f"{len(absent)} methods of the tables are not in the list; {most['printed']} stands in the most tables, "
        f"{most['tables']}."
    )
    return said


def plot(places: pd.DataFrame, ax=None) -> Figure:
    """A mark where a method has a row, one colour a family; large: first in P@1. Names without marks were never compared.

    Parameters
    ----------
    places : DataFrame
        From :func:`compute_places`.
    ax : Axes, optional
    """
    methods = places.drop_duplicates("method").sort_values("row")
    datasets = places.dropna(subset="column").drop_duplicates("column").sort_values("column")
    colours = looks.distinct(dict.fromkeys(places["family"]))
    with figures.new(looks.WIDE, 8.6, ax=ax) as (fig, ax):
        for family, part in places.dropna(subset="column").groupby("family", sort=False):
            size = np.where(part["first"], 70, 16)
            ax.scatter(part["column"], part["row"], s=size, label=family, **colours[family].mark())
        ax.set_yticks(methods["row"], methods["method"])
        ax.set_xticks(datasets["column"], datasets["dataset"], rotation=90)
        ax.set_ylim(len(methods) - 0.5, -0.5)
        ax.set_xlim(-0.5, len(datasets) - 0.5)
        ax.grid(alpha=0.4)
        figures.draws(ax, x="column", y="row")
        empty = sum(places["column"].isna())
        looks.title(fig, f"Where each listed method has a row ({empty} of {len(methods)} nowhere); large: first in P@1")
        looks.legend(fig, ax, ncols=3)
        return fig
