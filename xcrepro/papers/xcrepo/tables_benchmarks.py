"""The benchmark tables of the Extreme Classification Repository page: sorted, compared, drawn.

Every number here is a published one; nothing is trained or scored. The page takes its rows from many machines and
publications, so a comparison across rows is the page's, with the page's cautions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from xcrepro import looks, published
from xcrepro.data import registry
from xcrepro.errors import ArgumentError
from xcrepro.repro import figures, tables

RANKING = [f"{metric}@{k}" for metric in ("P", "N", "PSP", "PSN") for k in (1, 3, 5)]
COSTS = {"model_size_gb": "size GB", "train_time_hr": "train h"}
COLUMNS = [*RANKING, *COSTS.values()]
MARKS = {"*": "CPU", "†": "P40 GPU", "‡": "V100 GPU", "♦": "from its paper", "": "not marked"}

# Methods of the tables that the page's code list lacks or calls otherwise: the year of the page's reference to them.
# 1-vs-All and kNN are no one paper's; XT and XR-Transformer have no entry on the page.
REFERENCED = {
    "Astec": ("[55]", 2021),
    "CPLST": ("[09]", 2012),
    "CS": ("[06]", 2009),
    "LPSR": ("[04]", 2013),
    "ML-CSSP": ("[08]", 2013),
    "PINA": ("[68]", 2023),
    "Slice+FastText": ("[41]", 2019),
    "WSABIE": ("[11]", 2011),
}

# ---------------------------------------------------------------- the tables


def sources() -> list[str]:
    """The ids of the page's benchmark tables, in the page's order."""
    ids = []
    for source in published.sources():
        paper, _, name = source.partition(":")
        if paper == "xcrepo" and "P" in set(published.table(source)["metric"]):
            ids.append(f"xcrepo:{name}")
    return ids


def load_tables(dataset: str = "") -> pd.DataFrame:
    """The benchmark table of ``dataset`` (a printed name or a registry key), or all of them for ``""``.

    One row a printed row, in print order: dataset, method, mark (``*``, ``†``, ``‡``: the machine; ``♦``: taken
    from the method's own publication), then :data:`COLUMNS`: percent, gigabytes, hours; NaN where the page has a dash.
    Raises :class:`~xcrepro.errors.ArgumentError` for a dataset without a benchmark table.
    """
    wanted = sources()
    if dataset:
        name = registry.get(dataset).printed_name
        if f"xcrepo:{name}" not in wanted:
            raise ArgumentError(
                "dataset",
                "must have a benchmark table on the page",
                repr(dataset),
                f"one of {', '.join(source.partition(':')[2] for source in wanted)}, or '' for all",
            )
        wanted = [f"xcrepo:{name}"]
    table = wide(wanted).rename(columns={"variant": "mark", **COSTS})
    return table[["dataset", "method", "mark", *COLUMNS]]


def wide(ids: list[str]) -> pd.DataFrame:
    """:func:`xcrepro.published.wide` of several tables, one under the other, with dataset, method, variant as columns."""
    return pd.concat([published.wide(id).reset_index() for id in ids], ignore_index=True)


def compute(rows: pd.DataFrame, sort_by: str = "P@1") -> pd.DataFrame:
    """Every table of :func:`load_tables` with its best row by ``sort_by`` first, rows without that number last.

    Costs sort upwards, all else downwards; ties and rows without the number stay in the page's order. Raises
    :class:`~xcrepro.errors.ArgumentError` for a column that is not there.
    """
    if sort_by not in COLUMNS:
        raise ArgumentError("sort_by", f"must be one of {', '.join(COLUMNS)}", repr(sort_by))
    sign = 1 if sort_by in COSTS.values() else -1
    parts = [
        part.iloc[np.argsort(sign * part[sort_by].to_numpy(), kind="stable")]  # NaN goes last either way
        for _, part in rows.groupby("dataset", sort=False)
    ]
    return pd.concat(parts, ignore_index=True)


def describe(rows: pd.DataFrame) -> str:
    """The tables as text, one after the other: short enough to show all of them in one notebook."""
    blocks = []
    for dataset, part in rows.groupby("dataset", sort=False):
        shown = part.drop(columns="dataset").reset_index(drop=True)
        blocks.append(f"{dataset}: {len(part)} rows\n{tables.show(shown, decimals=2)}")
    return "\n\n".join(blocks)


def compute_leaders(rows: pd.DataFrame, sort_by: str = "P@1") -> pd.DataFrame:
    """A row a table: how many rows print ``sort_by``, the best one, its value, the runner-up and how far behind it is."""
    found = []
    for dataset, part in compute(rows, sort_by).groupby("dataset", sort=False):
        part = part.dropna(subset=[sort_by])
        if len(part):
            first, second = part.iloc[0], part.iloc[min(1, len(part) - 1)]
            found.append(
                {
                    "dataset": dataset,
                    "rows": len(part),
                    "best": first["method"],
                    "mark": first["mark"],
                    sort_by: first[sort_by],
                    "next": second["method"] if len(part) > 1 else "",
                    "behind": abs(first[sort_by] - second[sort_by]) if len(part) > 1 else np.nan,
                }
            )
    return pd.DataFrame(found)


def compute_reported(rows: pd.DataFrame) -> pd.DataFrame:
    """How many rows of all tables print each column, and in how many tables any does: column, rows, tables."""
    counts = rows[COLUMNS].notna()
    found = {"column": COLUMNS, "rows": counts.sum().to_numpy()}
    found["tables"] = [rows.loc[counts[name], "dataset"].nunique() for name in COLUMNS]
    return pd.DataFrame(found)


# ---------------------------------------------------------------- P@1 against PSP@1


def compute_agreement(rows: pd.DataFrame) -> pd.DataFrame:
    """Do P@1 and PSP@1 agree on the best method? A row a table, over the rows that print both.

    ``leads P@1`` and ``leads PSP@1`` name the best rows (the first of a tie), ``same`` says whether they are one row,
    ``PSP@1 behind`` is how many points of PSP@1 the leader in P@1 lacks, ``Spearman`` the rank correlation of the two
    columns, ties at their mean rank.
    """
    found = []
    for dataset, part in rows.dropna(subset=["P@1", "PSP@1"]).groupby("dataset", sort=False):
        top, tail = part.loc[part["P@1"].idxmax()], part.loc[part["PSP@1"].idxmax()]
        ranks = part[["P@1", "PSP@1"]].rank()
        found.append(
            {
                "dataset": dataset,
                "rows": len(part),
                "leads P@1": top["method"],
                "leads PSP@1": tail["method"],
                "same": bool(top.name == tail.name),
                "PSP@1 behind": tail["PSP@1"] - top["PSP@1"],
                "Spearman": ranks["P@1"].corr(ranks["PSP@1"]),
            }
        )
    return pd.DataFrame(found)


def compute_psp(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that print both P@1 and PSP@1: dataset, method, P@1, PSP@1."""
    return rows.dropna(subset=["P@1", "PSP@1"])[["dataset", "method", "P@1", "PSP@1"]].reset_index(drop=True)


def plot_psp(rows: pd.DataFrame, found: pd.DataFrame, ax=None) -> Figure:
    """P@1 against PSP@1, a panel a table; the two leaders are named.

    rows: :func:`compute_psp`. found: :func:`compute_agreement` of the same.
    """
    with _panels(len(found), 4, ax) as (fig, axes):
        for ax, (_, row) in zip(axes, found.iterrows(), strict=True):
            part = rows[rows["dataset"] == row["dataset"]]
            top, tail = part.loc[part["P@1"].idxmax()], part.loc[part["PSP@1"].idxmax()]
            ax.plot(part["P@1"], part["PSP@1"], "o", color="0.6", markersize=3.2, label="a method of the table")
            ax.plot(top["P@1"], top["PSP@1"], "s", color=looks.INK, markersize=6, label="the best by P@1")
            ax.plot(tail["P@1"], tail["PSP@1"], "^", color=looks.AMBER, label="the best by PSP@1", **_EDGE)
            _name(ax, top["P@1"], top["PSP@1"], top["method"])
            if not row["same"]:
                _name(ax, tail["P@1"], tail["PSP@1"], tail["method"])
            ax.set_title(row["dataset"], loc="left", fontsize=looks.SMALL)
            figures.draws(ax, x="P@1", y="PSP@1")
            ax.margins(0.12, 0.22)
        apart = int((~found["same"]).sum())
        title = f"In {apart} of {len(found)} tables the best method by P@1 is not the best by PSP@1"
        _finish(fig, axes, "P@1, %", "PSP@1, %", title)
    return fig


# ---------------------------------------------------------------- precision against cost


def compute_costs(rows: pd.DataFrame, cost: str) -> pd.DataFrame:
    """The rows that print P@1 and ``cost`` (``"train h"`` or ``"size GB"``), with ``front``: whether none beats them.

    A row is beaten by one that is at least as precise and at most as costly, and better in one of the two. Columns
    dataset, method, mark, P@1, the cost, front.
    """
    if cost not in COSTS.values():
        raise ArgumentError("cost", f"must be one of {', '.join(COSTS.values())}", repr(cost))
    part = rows.dropna(subset=["P@1", cost])[["dataset", "method", "mark", "P@1", cost]].reset_index(drop=True)
    front = np.ones(len(part), dtype=bool)
    for _, block in part.groupby("dataset", sort=False):
        p, c = block["P@1"].to_numpy(), block[cost].to_numpy()
        for i, place in enumerate(block.index):
            front[place] = not np.any((p >= p[i]) & (c <= c[i]) & ((p > p[i]) | (c < c[i])))
    return part.assign(front=front)


def compute_price(data: pd.DataFrame, cost: str, points: float = 3.0, least: int = 5) -> pd.DataFrame:
    """How much the best P@1 costs beside the cheapest row at most ``points`` below it. A row a table with >= ``least`` rows.

    Columns dataset, rows, best, its cost, cheaper (the cheapest such row, the best one itself where none is cheaper),
    its cost, points lost, times the cost.
    """
    found = []
    for dataset, part in data.groupby("dataset", sort=False):
        if len(part) < least:
            continue
        best = part.loc[part["P@1"].idxmax()]
        near = part[part["P@1"] >= best["P@1"] - points - 1e-9]
        cheap = near.loc[near[cost].idxmin()]
        found.append(
            {
                "dataset": dataset,
                "rows": len(part),
                "best": best["method"],
                f"its {cost}": best[cost],
                "cheaper": cheap["method"],
                f"cheaper's {cost}": cheap[cost],
                "points lost": best["P@1"] - cheap["P@1"],
                "times": best[cost] / cheap[cost],
            }
        )
    return pd.DataFrame(found)


def compute_cost_of_best(data: pd.DataFrame, cost: str, least: int = 9) -> pd.DataFrame:
    """The most precise row beside the cheapest and the dearest, for tables with >= ``least`` rows that print the cost.

    Columns dataset, rows, cheapest, its mark, its cost, best, best's mark, best's cost, best over cheapest (a ratio),
    best is dearest.
    """
    found = []
    for dataset, part in data.groupby("dataset", sort=False):
        if len(part) >= least:
            low, best = part.loc[part[cost].idxmin()], part.loc[part["P@1"].idxmax()]
            found.append(
                {
                    "dataset": dataset,
                    "rows": len(part),
                    "cheapest": low["method"],
                    "its mark": low["mark"],
                    f"its {cost}": low[cost],
                    "best": best["method"],
                    "best's mark": best["mark"],
                    f"best's {cost}": best[cost],
                    "best over cheapest": best[cost] / low[cost],
                    "best is dearest": bool(best[cost] == part[cost].max()),
                }
            )
    return pd.DataFrame(found)


def _cost_title(found: pd.DataFrame, cost: str) -> str:
    """The finding of :func:`compute_cost_of_best` as a title."""
    if not len(found):
        return "No table prints enough costs"
    ratio, n = found["best over cheapest"], len(found)
    if cost == "train h":
        low = (found["its mark"] == "*").sum()
        return (
            f"The fastest method ran on CPUs in {low} of {n} tables; the most precise takes "
            f"{ratio.min():.0f} to {ratio.max():.0f} times its hours"
        )
    return f"The most precise method has the largest model in {found['best is dearest'].sum()} of {n} tables"


_SHAPES = {
    "*": ("o", "0.55", "CPU (*)"),
    "†": ("v", looks.TEAL, "GPU (†, ‡)"),
    "♦": ("D", looks.VIOLET, "its paper's (♦)"),
}
_SHAPES["‡"] = _SHAPES["†"]


def plot_costs(data: pd.DataFrame, cost: str, least: int = 9, ax=None) -> Figure:
    """P@1 against a cost on a logarithmic axis, a panel a table with >= ``least`` rows that print both.

    data: :func:`compute_costs`. The rows on the front are joined and named, as far as names do not overlap.
    """
    found = compute_cost_of_best(data, cost, least)
    with _panels(len(found), 3, ax) as (fig, axes):
        for ax, name in zip(axes, found["dataset"] if len(found) else [], strict=True):
            part = data[data["dataset"] == name]
            front = part[part["front"]].sort_values(cost)
            ax.plot(front[cost], front["P@1"], color="black", linestyle="-", linewidth=0.8, label="Pareto front")
            for mark, rows in part.groupby("mark"):
                shape, color, label = _SHAPES.get(mark, ("x", "black", "not marked"))
                ax.plot(rows[cost], rows["P@1"], shape, color=color, markersize=4, linestyle="none", label=label)
            for _, row in front.sort_values("P@1", ascending=False).iterrows():
                _name(ax, row[cost], row["P@1"], row["method"])
            _log_axis(ax, part[cost])
            ax.set_title(name, loc="left", fontsize=looks.SMALL)
            figures.draws(ax, x=cost, y="P@1")
            ax.margins(0.15, 0.2)
        label = {"train h": "training time, hours", "size GB": "model size, GB"}[cost]
        _finish(fig, axes, label, "P@1, %", _cost_title(found, cost))
    return fig


def _log_axis(ax, values: pd.Series) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    few = values.max() / values.min() < 300
    ax.set(xscale="log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 3) if few else (1,)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


# ---------------------------------------------------------------- methods across datasets and years


def publication_years(rows: pd.DataFrame) -> pd.DataFrame:
    """When the methods of :func:`load_tables`'s ``rows`` came out: method, year (Int64), where (a venue or a reference number).

    From the page's code list; for a method that is not in it, from the reference list (:data:`REFERENCED`); the year of
    a method without either is NA.
    """
    listed = published.methods()
    known = {row["method"]: (row["venue"], row["year"]) for _, row in listed.iterrows()} | REFERENCED
    found = [(name, *known.get(name, ("", None))) for name in sorted(set(rows["method"]))]
    table = pd.DataFrame(found, columns=["method", "where", "year"]).astype({"year": "Int64"})
    return table[["method", "year", "where"]]


def compute_years(rows: pd.DataFrame, when: pd.DataFrame, sort_by: str = "P@1") -> pd.DataFrame:
    """How many points every row lies below its table's best: dataset, method, year, the metric, gap. Rows that print it."""
    if sort_by not in RANKING:
        raise ArgumentError("sort_by", f"must be one of {', '.join(RANKING)}", repr(sort_by))
    part = rows.dropna(subset=[sort_by])[["dataset", "method", sort_by]].reset_index(drop=True)
    part["gap"] = part.groupby("dataset")[sort_by].transform("max") - part[sort_by]
    part.insert(2, "year", part["method"].map(dict(zip(when["method"], when["year"], strict=True))).astype("Int64"))
    return part


def compute_by_year(data: pd.DataFrame) -> pd.DataFrame:
    """Methods grouped by year: methods, rows, tables led (a tie counts for each), median gap. Without a year: left out."""
    dated = data.dropna(subset=["year"])
    grouped = dated.groupby("year")
    return pd.DataFrame(
        {
            "methods": grouped["method"].nunique(),
            "rows": grouped.size(),
            "tables led": grouped["gap"].apply(lambda gap: int((gap == 0).sum())),
            "median gap": grouped["gap"].median(),
        }
    ).reset_index()


def compute_newest(data: pd.DataFrame, since: int = 2021) -> pd.DataFrame:
    """Which tables have a method of ``since`` or later, and is it the best there? data: :func:`compute_years`.

    Columns dataset, newest (the latest year of its methods), best, year (the best one's), reported, leads.
    """
    found = []
    for dataset, part in data.groupby("dataset", sort=False):
        best = part.loc[part["gap"].idxmin()]
        found.append(
            {
                "dataset": dataset,
                "newest": int(part["year"].max()),
                "best": best["method"],
                "year": best["year"],
                "reported": bool(part["year"].max() >= since),
                "leads": bool(not pd.isna(best["year"]) and best["year"] >= since),
            }
        )
    return pd.DataFrame(found).astype({"year": "Int64"})


def plot_years(data: pd.DataFrame, since: int = 2021, ax=None) -> Figure:
    """Methods, oldest first, by datasets: points below the table's best, dark where far below; the best is framed.

    data: :func:`compute_years`. A method with two rows in one table shows the better one.
    """
    datasets = list(dict.fromkeys(data["dataset"]))
    order = data[["year", "method"]].drop_duplicates().sort_values(["year", "method"], na_position="first")
    methods = list(order["method"])
    grid = data.groupby(["method", "dataset"])["gap"].min().unstack().reindex(index=methods, columns=datasets)
    greys = LinearSegmentedColormap.from_list("gap", [looks.WHITE, looks.INK])
    metric = data.columns[3]
    with figures.new(looks.PAGE, max(2.6, 1.8 + 0.17 * len(methods)), ax=ax) as (fig, ax):
        image = ax.imshow(grid.to_numpy(), cmap=greys, vmin=0, vmax=30, aspect="auto")
        for i, row in enumerate(grid.to_numpy()):
            for j, gap in enumerate(row):
                if not np.isnan(gap):
                    tone = "white" if gap > 14 else "black"
                    ax.text(
                        j,
                        i,
                        f"{gap:.2f}" if 0 < gap < 0.05 else f"{gap:.1f}",
                        ha="center",
                        va="center",
                        fontsize=looks.TINY,
                        color=tone,
                    )
                if gap == 0:
                    ax.add_patch(_frame(j, i))
        names = [f"{method}  {'no year' if pd.isna(year) else year}" for year, method in order.to_numpy()]
        ax.set_yticks(range(len(methods)), names, fontsize=looks.TINY)
        ax.set_xticks(
            range(len(datasets)), datasets, rotation=55, ha="right", rotation_mode="anchor", fontsize=looks.TINY
        )
        ax.grid(visible=False)
        ax.tick_params(length=0)
        found = compute_newest(data, since)
        looks.title(
            fig,
            f"Where a method of {since} or later is reported, one leads in {int(found['leads'].sum())} of "
            f"{int(found['reported'].sum())} tables\nnumber: points of {metric} below the table's best; "
            "framed: the best; empty: not reported",
        )
        figures.draws(ax, y="gap")
        bar = fig.colorbar(image, ax=ax, fraction=0.02, pad=0.01, extend="max")
        bar.set_label(f"points of {metric} below the best")
    return fig


# ---------------------------------------------------------------- drawing

_EDGE = {"markeredgecolor": "black", "markeredgewidth": 0.6}


def _frame(x: float, y: float):
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=looks.RUST, linewidth=1.6, clip_on=False)


@contextlib.contextmanager
def _panels(n: int, columns: int, ax=None) -> Iterator[tuple]:
    """Small panels in a grid, the spare ones empty: ``with _panels(n, 4) as (fig, axes)``."""
    columns = max(1, min(columns, n))
    rows = max(1, -(-n // columns))
    width = looks.PAGE if columns > 2 else looks.NARROW
    with figures.new(width, 1.1 + 1.7 * rows, ncols=columns, nrows=rows, squeeze=False, ax=ax) as (fig, axes):
        for spare in axes.flat[n:]:
            spare.set_axis_off()
        yield fig, list(axes.flat[:n])


def _name(ax, x: float, y: float, text: str) -> None:
    """Name a point; :func:`_finish` puts the name where it fits, those named first before the others."""
    ax.annotate(
        text, (x, y), xytext=(0, 5), textcoords="offset points", ha="center", fontsize=looks.TINY, in_layout=False
    )


_PLACES = [
    ((0, 5), "center", "bottom"),
    ((0, -5), "center", "top"),
    ((-6, 0), "right", "center"),
    ((6, 0), "left", "center"),
    ((-4, 5), "right", "bottom"),
    ((4, -5), "left", "top"),
    ((-4, -5), "right", "top"),
    ((4, 5), "left", "bottom"),
]


def _finish(fig: Figure, axes: list, xlabel: str, ylabel: str, title: str) -> None:
    """Labels for all panels, one legend with each label once, and every name where it covers nothing, or gone."""
    fig.supxlabel(xlabel, x=0.06, ha="left")
    fig.supylabel(ylabel)
    looks.title(fig, title)
    if axes:
        looks.legend(fig, *axes)
    fig.draw_without_rendering()
    renderer = FigureCanvasAgg(fig).get_renderer()  # measures text
    for ax in axes:
        _place_names(renderer, ax)


def _place_names(renderer, ax) -> None:
    frame = ax.get_window_extent().expanded(1.02, 1.06)
    points = np.concatenate([ax.transData.transform(line.get_xydata()) for line in ax.lines])
    taken = []
    for name in ax.texts:
        best = None
        for place, ha, va in _PLACES:
            name.set(position=place, ha=ha, va=va)
            box = name.get_window_extent(renderer)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if not inside or any(box.overlaps(other) for other in taken):
                continue
            covered = int(np.sum([box.contains(x, y) for x, y in points]))
            if best is None or covered < best[0]:
                best = covered, place, ha, va, box
        if best is None:
            name.set_visible(False)
        else:
            name.set(position=best[1], ha=best[2], va=best[3])
            taken.append(best[4])
