"""The benchmark tables of the Extreme Classification Repository page: sorted, compared, drawn.

Every number here is a published one; nothing is trained or scored. The page takes its rows from many machines and
publications, so a comparison across rows is the page's, with the page's cautions.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import textwrap
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter

from xcrepro import looks, published
from xcrepro.data import registry
from xcrepro.errors import ArgumentError
from xcrepro.papers.xcrepo._common import Folded
from xcrepro.published import leads
from xcrepro.repro import figures, tables

RANKING = [f"{metric}@{k}" for metric in ("P", "N", "PSP", "PSN") for k in (1, 3, 5)]
COSTS = {"model_size_gb": "size GB", "train_time_hr": "train h"}
COLUMNS = [*RANKING, *COSTS.values()]

# Methods of the tables that the page's code list lacks or calls otherwise: the page's reference to them.
# 1-vs-All and kNN are no one paper's; XT and XR-Transformer have no entry on the page.
REFERENCED = {"Astec": "[55]", "CPLST": "[09]", "CS": "[06]", "LPSR": "[04]", "ML-CSSP": "[08]", "PINA": "[68]"}
REFERENCED |= {"Slice+FastText": "[41]", "WSABIE": "[11]"}

LEAST = 9
"""Of several tables, those with fewer printed costs are not drawn."""

# ---------------------------------------------------------------- the tables


def check_parameters(values: Mapping[str, object]) -> None:
    """That the dataset has a table on the page, or is empty; that ``sort_by`` is a column."""
    source_of(str(values["dataset"]), "parameter dataset")
    _check_column("parameter sort_by", values["sort_by"])


def least(rows: pd.DataFrame) -> int:
    """How many printed costs a table must have to be drawn: :data:`LEAST`, or 2 where there is one table alone."""
    return LEAST if rows["dataset"].nunique() > 1 else 2


def sources() -> list[str]:
    """The ids of the page's benchmark tables, in the page's order."""
    ids = (source for source in published.sources() if source.startswith("xcrepo:"))
    return [source for source in ids if "P" in set(published.table(source)["metric"])]


def load_tables(dataset: str = "") -> pd.DataFrame:
    """The benchmark table of a dataset, or all of them.

    Parameters
    ----------
    dataset : str
        A printed name or a key of the catalogue; ``""`` for all tables.

    Returns
    -------
    DataFrame
        One row a printed row, in print order: dataset, method, mark (``*``, ``†``, ``‡``: the machine; ``♦``: taken
        from the method's own publication), then :data:`COLUMNS`: percent, gigabytes, hours; NaN where the page has a
        dash. Then doubted: those of its columns whose number cannot be right (:func:`xcrepro.published.doubted`), a text.

    Raises
    ------
    ArgumentError
        For a dataset without a benchmark table.
    """
    return _load(source_of(dataset)).copy()


def source_of(dataset: str, name: str = "dataset") -> str:
    """The id of a dataset's table, empty for an empty name; refused where it has none."""
    if not dataset:
        return ""
    source, wanted = f"xcrepo:{registry.get(dataset).printed_name}", sources()
    if source not in wanted:
        known = ", ".join(one.removeprefix("xcrepo:") for one in wanted)
        rule = "must have a benchmark table on the page"
        raise ArgumentError(name, rule, repr(dataset), f"one of {known}, or '' for all")
    return source


@functools.cache
def _load(source: str) -> pd.DataFrame:
    wanted = [source] if source else sources()
    rows = pd.concat([published.wide(one).reset_index() for one in wanted], ignore_index=True)
    rows = rows.rename(columns={"variant": "mark", **COSTS})[["dataset", "method", "mark", *COLUMNS]]
    printed = pd.concat([published.table(one) for one in wanted], ignore_index=True)
    doubts: dict[tuple, list[str]] = {}
    for one in printed[published.doubted(printed) != ""].itertuples():
        column = COSTS.get(one.metric) or f"{one.metric}@{one.k}"
        doubts.setdefault((one.dataset, one.method, one.variant), []).append(column)
    names = rows[["dataset", "method", "mark"]].itertuples(index=False, name=None)
    return rows.assign(doubted=[", ".join(doubts.get(name, [])) for name in names])


def _in_doubt(rows: pd.DataFrame, *columns: str) -> pd.Series:
    """Which rows have a doubted number in one of the columns."""
    return pd.Series([bool(set(columns) & set(text.split(", "))) for text in rows["doubted"]], rows.index, dtype=bool)


def _check_column(name: str, value) -> None:
    if value not in COLUMNS:
        raise ArgumentError(name, f"must be one of {', '.join(COLUMNS)}", repr(value))


def compute(rows: pd.DataFrame, sort_by: str = "P@1") -> pd.DataFrame:
    """Every table with its best row first.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_tables`.
    sort_by : str
        One of :data:`COLUMNS`. Costs sort upwards, all else downwards; ties and rows without the number stay in the
        page's order, the latter last.

    Returns
    -------
    DataFrame
        The rows, sorted within each dataset.

    Raises
    ------
    ArgumentError
        For a column that is not there.
    """
    _check_column("sort_by", sort_by)
    up = sort_by in COSTS.values()
    parts = [part.sort_values(sort_by, ascending=up, kind="stable") for _, part in rows.groupby("dataset", sort=False)]
    return pd.concat(parts, ignore_index=True)


def describe(rows: pd.DataFrame) -> Folded:
    """The tables as text, one after the other, folded: short enough to have all of them in one notebook.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_tables`.

    Returns
    -------
    Folded
        Behind a number that the audit doubts stands ``†``.
    """
    blocks = []
    for dataset, part in rows.groupby("dataset", sort=False):
        shown = tables.show(part.drop(columns=["dataset", "doubted"]).reset_index(drop=True), decimals=2)
        for line, doubts in zip(shown.rows, part["doubted"], strict=True):
            for column in filter(None, doubts.split(", ")):
                line[shown.names.index(column)] += "†"
        blocks.append(f"{dataset}: {_count(len(part), 'row')}\n{shown!r}")
    doubted = sum(len(text.split(", ")) for text in rows["doubted"] if text)
    summary = f"{_count(rows['dataset'].nunique(), 'table')}, {_count(len(rows), 'row')}; † behind {_count(doubted, 'number')}"
    return Folded(summary, "\n\n".join(blocks))


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def compute_leaders(rows: pd.DataFrame, sort_by: str = "P@1") -> pd.DataFrame:
    """The best row of each table by one column.

    Parameters
    ----------
    rows, sort_by
        As for :func:`compute`.

    Returns
    -------
    DataFrame
        A row a table: dataset, rows (that print ``sort_by``), best, its mark, its value, next (the runner-up; empty
        where there is none), behind (by how much) and lead: whether it is certain from the two numbers alone
        (:mod:`xcrepro.published.leads`: ``"certain"``, ``"open"``, ``"no lead"``), for P and PSP; empty where one of the
        two numbers is doubted, and for other columns.
    """
    found = []
    metric, _, k = sort_by.partition("@")
    verdicts = {}
    if metric in ("P", "PSP"):
        verdicts = {
            (one.dataset, one.method, one.next): one.verdict for one in leads.leads(metric, int(k)).itertuples()
        }
    for dataset, part in compute(rows, sort_by).dropna(subset=[sort_by]).groupby("dataset", sort=False):
        best, *others = part[["method", "mark", sort_by]].itertuples(index=False, name=None)
        runner_up = (others[0][0], abs(best[2] - others[0][2])) if others else ("", np.nan)
        said = verdicts.get((dataset, best[0], runner_up[0]), "")
        found.append((dataset, len(part), *best, *runner_up, said))
    return pd.DataFrame(found, columns=["dataset", "rows", "best", "mark", sort_by, "next", "behind", "lead"])


def compute_reported(rows: pd.DataFrame) -> pd.DataFrame:
    """How often each column is printed.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_tables`.

    Returns
    -------
    DataFrame
        column, rows (that print it, of all tables), tables (with such a row).
    """
    known = rows[COLUMNS].notna()
    found = pd.DataFrame({"rows": known.sum(), "tables": known.groupby(rows["dataset"]).any().sum()})
    return found.rename_axis("column").reset_index()


# ---------------------------------------------------------------- P@1 against PSP@1


def compute_agreement(rows: pd.DataFrame) -> pd.DataFrame:
    """Do P@1 and PSP@1 agree on the best method? Over the rows that print both, doubted ones left out.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_tables`.

    Returns
    -------
    DataFrame
        A row a table: dataset, rows, leads P@1 and leads PSP@1 (the best rows, the first of a tie), same (whether
        they are one row), PSP@1 behind (points of PSP@1 that the leader in P@1 lacks), Spearman (the rank correlation
        of the two columns, ties at their mean rank).
    """
    found = []
    both = compute_psp(rows)
    for dataset, part in both[~both["doubted"]].groupby("dataset", sort=False):
        top, tail = part.loc[part["P@1"].idxmax()], part.loc[part["PSP@1"].idxmax()]
        ranks, behind = part[["P@1", "PSP@1"]].rank(), tail["PSP@1"] - top["PSP@1"]
        same, rho = top.name == tail.name, ranks["P@1"].corr(ranks["PSP@1"])
        found.append((dataset, len(part), top["method"], tail["method"], same, behind, rho))
    names = ["dataset", "rows", "leads P@1", "leads PSP@1", "same", "PSP@1 behind", "Spearman"]
    return pd.DataFrame(found, columns=names)


def compute_psp(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that print both P@1 and PSP@1.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_tables`.

    Returns
    -------
    DataFrame
        dataset, method, P@1, PSP@1 (percent), doubted (whether the audit doubts one of the two).
    """
    part = rows.dropna(subset=["P@1", "PSP@1"])
    part = part.assign(doubted=_in_doubt(part, "P@1", "PSP@1"))
    return part[["dataset", "method", "P@1", "PSP@1", "doubted"]].reset_index(drop=True)


def plot_psp(rows: pd.DataFrame, found: pd.DataFrame, ax=None) -> Figure:
    """P@1 against PSP@1, a panel a table; the two leaders are named.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`compute_psp`.
    found : DataFrame
        Of :func:`compute_agreement`, from the same.
    ax : array of Axes, optional
        The caller's own, a panel each.
    """
    edge = {"markeredgecolor": "black", "markeredgewidth": 0.6}
    with _panels(len(found), 4, ax) as (fig, axes):
        for ax, (dataset, part) in zip(axes, rows.groupby("dataset", sort=False), strict=True):
            sure, doubted = part[~part["doubted"]], part[part["doubted"]]
            top, tail = sure.loc[sure["P@1"].idxmax()], sure.loc[sure["PSP@1"].idxmax()]
            ax.plot(sure["P@1"], sure["PSP@1"], "o", color="0.6", markersize=3.2, label="a method of the table")
            if len(doubted):
                hollow = {
                    "fillstyle": "none",
                    "color": "0.4",
                    "markersize": 3.6,
                    "label": "PSP@1 doubted by the audit (†)",
                }
                ax.plot(doubted["P@1"], doubted["PSP@1"], "o", **hollow)
            ax.plot(top["P@1"], top["PSP@1"], "s", color=looks.INK, markersize=6, label="the best by P@1")
            ax.plot(tail["P@1"], tail["PSP@1"], "^", color=looks.AMBER, label="the best by PSP@1", **edge)
            for row in (top,) if top.name == tail.name else (top, tail):
                looks.name(ax, row["method"], (row["P@1"], row["PSP@1"]), in_layout=False)
            ax.set_title(dataset, loc="left", fontsize=looks.SMALL)
            figures.draws(ax, x="P@1", y="PSP@1")
            ax.margins(0.12, 0.22)
        _finish(fig, axes, "P@1, %", "PSP@1, %", "P@1 against PSP@1 of the page's methods")
    return fig


# ---------------------------------------------------------------- precision against cost


def compute_costs(rows: pd.DataFrame, cost: str) -> pd.DataFrame:
    """The rows that print P@1 and a cost, and which of them no other beats.

    A row is beaten by one that is at least as precise and at most as costly, and better in one of the two.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_tables`.
    cost : {"train h", "size GB"}

    Returns
    -------
    DataFrame
        dataset, method, mark, P@1, the cost, doubted (whether the audit doubts one of the two), front (whether none beats
        it; a doubted row beats none and is not on it).

    Raises
    ------
    ArgumentError
        For another cost.
    """
    if cost not in COSTS.values():
        raise ArgumentError("cost", f"must be one of {', '.join(COSTS.values())}", repr(cost))
    part = rows.dropna(subset=["P@1", cost])
    part = part.assign(doubted=_in_doubt(part, "P@1", cost))
    part = part[["dataset", "method", "mark", "P@1", cost, "doubted"]].reset_index(drop=True)
    front = pd.Series(False, index=part.index)
    for _, block in part[~part["doubted"]].groupby("dataset", sort=False):
        p, c = (block[name].to_numpy()[:, None] for name in ("P@1", cost))
        beats = (p >= p.T) & (c <= c.T) & ((p > p.T) | (c < c.T))
        front[block.index] = ~beats.any(axis=0)
    return part.assign(front=front)


def compute_price(data: pd.DataFrame, cost: str, points: float = 3.0, least: int = 5) -> pd.DataFrame:
    """How much the best P@1 costs against the cheapest row at most ``points`` below it.

    Parameters
    ----------
    data : DataFrame
        Of :func:`compute_costs` for the same ``cost``.
    cost : {"train h", "size GB"}
    points : float
        Percentage points of P@1.
    least : int
        Tables with fewer rows are left out.

    Returns
    -------
    DataFrame
        A row a table: dataset, rows, best, its cost, cheaper (the cheapest such row, the best one itself where none is
        cheaper), its cost, points lost, times the cost.
    """
    found = []
    for dataset, part in _large_tables(data[~data["doubted"]], least):
        best = part.loc[part["P@1"].idxmax()]
        near = part[part["P@1"] >= best["P@1"] - points - 1e-9]
        cheap = near.loc[near[cost].idxmin()]
        costs = best["method"], best[cost], cheap["method"], cheap[cost]
        found.append((dataset, len(part), *costs, best["P@1"] - cheap["P@1"], best[cost] / cheap[cost]))
    names = ["dataset", "rows", "best", f"its {cost}", "cheaper", f"cheaper's {cost}", "points lost", "times"]
    return pd.DataFrame(found, columns=names)


def compute_cost_of_best(data: pd.DataFrame, cost: str, least: int = LEAST) -> pd.DataFrame:
    """The most precise row of each table, and the cheapest one.

    Parameters
    ----------
    data, cost, least
        As for :func:`compute_price`.

    Returns
    -------
    DataFrame
        A row a table: dataset, rows, cheapest, its mark, its cost, best, best's mark, best's cost, best over cheapest
        (a ratio), best is dearest.
    """
    found = []
    for dataset, part in _large_tables(data[~data["doubted"]], least):
        low, best = part.loc[part[cost].idxmin()], part.loc[part["P@1"].idxmax()]
        both = (row[name] for row in (low, best) for name in ("method", "mark", cost))
        found.append((dataset, len(part), *both, best[cost] / low[cost], best[cost] == part[cost].max()))
    names = ["dataset", "rows", "cheapest", "its mark", f"its {cost}", "best", "best's mark", f"best's {cost}"]
    return pd.DataFrame(found, columns=[*names, "best over cheapest", "best is dearest"])


def _large_tables(data: pd.DataFrame, least: int) -> list[tuple[str, pd.DataFrame]]:
    """The tables with ``least`` rows or more, by name."""
    return [(name, part) for name, part in data.groupby("dataset", sort=False) if len(part) >= least]


_GPU = ("v", looks.TEAL, "GPU (†, ‡)")
_SHAPES = {"*": ("o", "0.55", "CPU (*)"), "†": _GPU, "‡": _GPU, "♦": ("D", looks.VIOLET, "its paper's (♦)")}


def plot_costs(data: pd.DataFrame, cost: str, least: int = LEAST, ax=None) -> Figure:
    """P@1 against a cost on a logarithmic axis; the rows on the front are joined, and named where names do not overlap.

    Parameters
    ----------
    data, cost, least
        As for :func:`compute_cost_of_best`; a panel a table.
    ax : array of Axes, optional
        The caller's own, a panel each.
    """
    shown = _large_tables(data, least)
    with _panels(len(shown), 3, ax) as (fig, axes):
        for ax, (name, part) in zip(axes, shown, strict=True):
            front = part[part["front"]].sort_values(cost)
            ax.plot(front[cost], front["P@1"], color="black", linestyle="-", linewidth=0.8, label="Pareto front")
            for (mark, doubted), rows in part.groupby(["mark", "doubted"]):
                shape, color, label = _SHAPES.get(mark, ("x", "black", "not marked"))
                more = {"fillstyle": "none"} if doubted else {}
                label = "cost doubted by the audit" if doubted else label
                ax.plot(
                    rows[cost], rows["P@1"], shape, color=color, markersize=4, linestyle="none", label=label, **more
                )
            for _, row in front.sort_values("P@1", ascending=False).iterrows():
                looks.name(ax, row["method"], (row[cost], row["P@1"]), in_layout=False)
            ax.set(xscale="log")
            ax.margins(0.15, 0.2)
            far = _far(part, cost)
            near = part[~far]
            if far.any():
                ax.set_xlim(near[cost].min() / 1.6, near[cost].max() * 1.6)
            few = near[cost].max() / near[cost].min() < 300
            ax.xaxis.set(major_locator=LogLocator(subs=(1, 3) if few else (1,)), minor_formatter=NullFormatter())
            ax.xaxis.set_major_formatter("{x:g}")
            beyond = "".join(f"; beyond: {row['method']}, {row[cost]:,.4g}" for _, row in part[far].iterrows())
            ax.set_title(name + beyond, loc="left", fontsize=looks.SMALL)
            figures.draws(ax, x=cost, y="P@1")
        label = {"train h": "training time, hours", "size GB": "model size, GB"}[cost]
        title = f"P@1 against {label.partition(',')[0]}; joined are rows that no other beats in both"
        _finish(fig, axes, label, "P@1, %", title)
    return fig


def _far(part: pd.DataFrame, cost: str) -> pd.Series:
    """Which doubted costs lie so far beyond all others that they would press these into a corner."""
    sure = part.loc[~part["doubted"], cost]
    return part["doubted"] & ((part[cost] > 10 * sure.max()) | (part[cost] < sure.min() / 10))


# ---------------------------------------------------------------- methods across datasets and years


def publication_years(rows: pd.DataFrame) -> pd.DataFrame:
    """When the methods of the tables came out.

    From the page's code list; for a method that is not in it, from the reference list (:data:`REFERENCED`).

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_tables`.

    Returns
    -------
    DataFrame
        By name: method, year (Int64; NA where neither list has it), where (a venue or a reference number).
    """
    years = published.references().set_index("ref")["year"]
    known = {method: (ref, years[ref]) for method, ref in REFERENCED.items()}
    known |= {name: (venue, year) for name, venue, year in published.methods()[["method", "venue", "year"]].to_numpy()}
    found = [(name, *known.get(name, ("", None))) for name in sorted(set(rows["method"]))]
    table = pd.DataFrame(found, columns=["method", "where", "year"]).astype({"year": "Int64"})
    return table[["method", "year", "where"]]


def compute_years(rows: pd.DataFrame, when: pd.DataFrame, sort_by: str = "P@1") -> pd.DataFrame:
    """How many points every row lies below its table's best.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`load_tables`; those without ``sort_by`` are left out.
    when : DataFrame
        Of :func:`publication_years`.
    sort_by : str
        One of :data:`RANKING`.

    Returns
    -------
    DataFrame
        dataset, method, year (Int64), the metric, gap (points).

    Raises
    ------
    ArgumentError
        For another column.
    """
    if sort_by not in RANKING:
        raise ArgumentError("sort_by", f"must be one of {', '.join(RANKING)}", repr(sort_by))
    part = rows.dropna(subset=[sort_by])[["dataset", "method", sort_by]].reset_index(drop=True)
    part["gap"] = part.groupby("dataset")[sort_by].transform("max") - part[sort_by]
    part.insert(2, "year", part["method"].map(when.set_index("method")["year"]).astype("Int64"))
    return part


def compute_by_year(data: pd.DataFrame) -> pd.DataFrame:
    """Methods grouped by year of publication; those without a year are left out.

    Parameters
    ----------
    data : DataFrame
        Of :func:`compute_years`.

    Returns
    -------
    DataFrame
        year, methods, rows, tables led (a tie counts for each), median gap.
    """
    led = data.dropna(subset=["year"]).assign(led=lambda dated: dated["gap"] == 0).groupby("year")
    counts = {"methods": led["method"].nunique(), "rows": led.size(), "tables led": led["led"].sum()}
    return pd.DataFrame(counts | {"median gap": led["gap"].median()}).reset_index()


def compute_newest(data: pd.DataFrame, since: int = 2021) -> pd.DataFrame:
    """Which tables have a method of ``since`` or later, and is it the best there?

    Parameters
    ----------
    data : DataFrame
        Of :func:`compute_years`.
    since : int
        A year.

    Returns
    -------
    DataFrame
        A row a table: dataset, newest (the latest year of its methods), best, year (the best one's), reported (such a
        method is there), leads (it is the best).
    """
    tables = data.groupby("dataset", sort=False)
    found = data.loc[tables["gap"].idxmin(), ["dataset", "method", "year"]].rename(columns={"method": "best"})
    found.insert(1, "newest", tables["year"].max().to_numpy(int))
    leads = found["year"].ge(since).fillna(False).astype(bool)
    return found.assign(reported=found["newest"] >= since, leads=leads).reset_index(drop=True)


def plot_years(data: pd.DataFrame, ax=None) -> Figure:
    """Methods, oldest first, by datasets: points below the table's best, dark where far below; the best is framed.

    Parameters
    ----------
    data : DataFrame
        Of :func:`compute_years`. A method with two rows in one table shows the better one.
    ax : Axes, optional
        The caller's own.
    """
    datasets = list(dict.fromkeys(data["dataset"]))
    order = data[["year", "method"]].drop_duplicates().sort_values(["year", "method"], na_position="first")
    methods = list(order["method"])
    grid = data.groupby(["method", "dataset"])["gap"].min().unstack().reindex(index=methods, columns=datasets)
    greys = LinearSegmentedColormap.from_list("gap", [looks.WHITE, looks.INK])
    metric, small = data.columns[3], {"fontsize": looks.TINY}
    frame = {"fill": False, "edgecolor": looks.RUST, "linewidth": 1.6, "clip_on": False}
    width = looks.PAGE if len(datasets) > 6 else looks.NARROW
    with figures.new(width, max(2.6, 1.8 + 0.17 * len(methods)), ax=ax) as (fig, ax):
        image = ax.imshow(grid.to_numpy(), cmap=greys, vmin=0, vmax=30, aspect="auto")
        for (i, j), gap in np.ndenumerate(grid.to_numpy()):
            if not np.isnan(gap):
                text, color = f"{gap:.{2 if 0 < gap < 0.05 else 1}f}", "white" if gap > 14 else "black"
                ax.text(j, i, text, ha="center", va="center", color=color, **small)
            if gap == 0:
                ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **frame))
        names = [f"{method}  {'no year' if pd.isna(year) else year}" for year, method in order.to_numpy()]
        ax.set_yticks(range(len(methods)), names, **small)
        ax.set_xticks(range(len(datasets)), datasets, rotation=55, ha="right", rotation_mode="anchor", **small)
        ax.grid(visible=False)
        ax.tick_params(length=0)
        about = f"Methods by year: points of {metric} below the table's best; framed: the best; empty: not reported"
        looks.title(fig, textwrap.fill(about, int(11.5 * width)))
        figures.draws(ax, y="gap")
        bar = fig.colorbar(image, ax=ax, fraction=0.02, pad=0.01, extend="max")
        bar.set_label(f"points of {metric} below the best")
    return fig


# ---------------------------------------------------------------- what comes out


def findings(board: pd.DataFrame, since: int = 2021) -> list[str]:
    """What the tables say, counted; the page prints no standard errors, so nothing of it is tested.

    Parameters
    ----------
    board : DataFrame
        Of :func:`load_tables`.
    since : int
        The year that methods count as new from.

    Returns
    -------
    list of str
        Numbers that the audit doubts are left out.
    """
    agreement, leaders = compute_agreement(board), compute_leaders(board)
    n, close = len(leaders), int((leaders["behind"] < 0.5).sum())
    said = []
    if n > 1:
        apart = agreement[~agreement["same"]]
        most = apart["leads PSP@1"].value_counts()
        often = (
            f"; {most.index[0]} then leads PSP@1 most often, {most.iloc[0]} times"
            if len(most) and most.iloc[0] > 1
            else ""
        )
        said.append(f"The best method by P@1 is not the best by PSP@1 in {len(apart)} of {_count(n, 'table')}{often}.")
        said.append(
            f"The next method is less than half a point of P@1 behind in {close} of {n}; the page prints no errors."
        )
    else:
        said += [
            f"{row.best} has the highest P@1, {row.behind:.2f} points above {row.next}; the page prints no errors."
            for row in leaders.itertuples()
            if row.next
        ]
        said += [
            f"The best by PSP@1 is {'the same' if same else tail}, over {_count(rows, 'row')} that print both without doubt."
            for rows, tail, same in agreement[["rows", "leads PSP@1", "same"]].itertuples(index=False)
        ]
    said += findings_costs(board)
    newest = compute_newest(compute_years(board, publication_years(board)), since)
    reported, older = newest[newest["reported"]], newest[~newest["reported"]]
    rest = f"; the newest of the others is of {older['newest'].max()}" if len(older) else ""
    leads = int(reported["leads"].sum())
    return [*said, f"A method of {since} or later stands in {_count(len(reported), 'table')} and leads {leads}{rest}."]


def findings_costs(board: pd.DataFrame) -> list[str]:
    """What precision costs, over the rows that print a cost.

    Parameters
    ----------
    board : DataFrame
        Of :func:`load_tables`.

    Returns
    -------
    list of str
    """
    enough, said = least(board), []
    for cost, unit in (("train h", "training time"), ("size GB", "model size")):
        found = compute_cost_of_best(compute_costs(board, cost), cost, enough)
        if not len(found):
            said.append(f"No table here prints {enough} rows with a {unit}.")
            continue
        ratio = found["best over cheapest"]
        times = f"{ratio.min():.0f} to {ratio.max():.0f}" if len(found) > 1 else f"{ratio.iloc[0]:.1f}"
        where = f"In {_count(len(found), 'table')} with {enough} printed {unit}s or more the most precise row has"
        largest = f"it is the {'slowest' if cost == 'train h' else 'largest'} in {int(found['best is dearest'].sum())}"
        text = f"{where} {times} times the {unit} of the cheapest; {largest}"
        if cost == "train h":
            text += f". The fastest ran on CPUs (*) in {int((found['its mark'] == '*').sum())}"
        said.append(f"{text}.")
    return said


# ---------------------------------------------------------------- drawing


@contextlib.contextmanager
def _panels(n: int, columns: int, ax=None) -> Iterator[tuple]:
    """Small panels in a grid, the spare ones empty: ``with _panels(n, 4) as (fig, axes)``."""
    columns = max(1, min(columns, n))
    rows = max(1, -(-n // columns))
    width, height = (looks.PAGE, 1.7 * rows) if columns > 2 else (looks.NARROW, 2.6 * rows)
    with figures.new(width, 1.1 + height, ncols=columns, nrows=rows, squeeze=False, ax=ax) as (fig, axes):
        for spare in axes.flat[n:]:
            spare.set_axis_off()
        yield fig, list(axes.flat[:n])


def _finish(fig: Figure, axes: list, xlabel: str, ylabel: str, title: str) -> None:
    """Labels for the outer panels, one legend with each label once, and every name where it covers nothing, or gone."""
    grid = axes[0].get_gridspec() if axes else None
    columns = grid.ncols if grid else 1
    for i, ax in enumerate(axes):
        if i >= len(axes) - columns:
            ax.set_xlabel(xlabel)
        if i % columns == 0:
            ax.set_ylabel(ylabel)
    width = fig.get_size_inches()[0]
    looks.title(fig, textwrap.fill(title, int(11.5 * width)))
    labels = {label for ax in axes for label in ax.get_legend_handles_labels()[1]}
    if labels:
        looks.legend(fig, *axes, ncols=len(labels) if width > looks.NARROW or len(labels) < 4 else 3)
    for name in (name for ax in axes for name in ax.texts):
        name.set_fontsize(looks.TINY)
    fig.draw_without_rendering()
    renderer = FigureCanvasAgg(fig).get_renderer()  # measures text
    for ax in axes:
        _place_names(renderer, ax)


# Where a name may stand, in points from its mark, the better places first.
_SHIFTS = ((0, 5), (-4, 5), (0, -5), (4, -5), (-6, 0), (6, 0), (4, 5), (-4, -5), (-9, 9), (9, -9), (0, 11), (0, -11))


def _place_names(renderer, ax) -> None:
    """Names drawn first are placed first; one that finds no place inside the panel, off the lines and the others goes."""
    frame = ax.get_window_extent().expanded(1.0, 1.06)
    marks = np.concatenate([ax.transData.transform(line.get_xydata()) for line in ax.lines])
    joined = _along([ax.transData.transform(line.get_xydata()) for line in ax.lines if line.get_linestyle() == "-"])
    taken = []
    for name in ax.texts:
        free = []
        for x, y in _SHIFTS:
            place = {"ha": ("center", "left", "right")[np.sign(x)], "va": ("center", "bottom", "top")[np.sign(y)]}
            name.set(position=(x, y), **place)
            box = name.get_window_extent(renderer)
            inside = frame.contains(*box.min) and frame.contains(*box.max)
            struck = ((joined > box.min) & (joined < box.max)).all(axis=1).any()
            if inside and not struck and not any(box.overlaps(other) for other in taken):
                free.append((sum(box.contains(*point) for point in marks), {"position": (x, y), **place}, box))
        name.set_visible(bool(free))
        if free:
            _, place, box = min(free, key=lambda option: option[0])
            name.set(**place)
            taken.append(box)


def _along(lines: list[np.ndarray]) -> np.ndarray:
    """Points of lines, a pixel or two apart."""
    steps = np.linspace(0, 1, 400)[:, None]
    parts = [a + (b - a) * steps for line in lines for a, b in itertools.pairwise(line)]
    return np.concatenate([np.empty((0, 2)), *parts])
