"""What the calibration paper's items share: its printed tables as texts and numbers, and errors against precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from xcrepro import looks, published
from xcrepro.repro import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = {"isotonic": "-I", "platt": "-P", "isotonic-separate": "-I", "platt-separate": "-P"}


def printed_table(name: int | str) -> pd.DataFrame:
    """One printed table as :func:`xcrepro.published.table` gives it, with what all items make of its cells.

    Parameters
    ----------
    name : int or str
        The table's number, or the rest of the source's name: ``"appendixA/fig6"``.

    Returns
    -------
    DataFrame
        ``variant`` is the calibration: ``"none"``, ``"isotonic"``, ``"platt"``, or the last two with ``-separate``, fitted
        for each rank of the top k alone. Further columns: ``mark``, ``"-I"`` and ``"-P"`` for isotonic and Platt as in
        print, ``""`` for none; ``text``, :func:`format_cell`; ``on page``, the printed text as a number.
    """
    found = published.table(f"calibration:table{name}" if isinstance(name, int) else f"calibration:{name}")
    return found.assign(
        variant=found["variant"].replace("", "none"),
        mark=found["variant"].map(_MARKS).fillna(""),
        text=[format_cell(*row) for row in zip(found["printed"], found["value"], found["reading"], strict=True)],
        **{"on page": pd.to_numeric(found["printed"].str.replace(",", ""), errors="coerce")},
    )


def format_cell(printed: str, value: float, reading: str) -> str:
    """A cell as the page has it, with our reading in brackets where it differs or is in doubt.

    >>> format_cell("1.79", 17.9, "corrected"), format_cell("1.60", 11.6, "uncertain")
    ('1.79 [17.9]', '1.60 [11.6?]')
    >>> format_cell("9.79", 9.79, "uncertain"), format_cell("18.45", float("nan"), "uncertain")
    ('9.79 [?]', '18.45 [unknown]')
    >>> format_cell("12.3", 12.3, "as printed"), format_cell("", float("nan"), "as printed")
    ('12.3', '-')
    """
    if not printed or reading == "as printed":
        return printed or "-"
    if pd.isna(value):
        return f"{printed} [unknown]"
    read = "" if float(printed.replace(",", "")) == value else f"{value:,.10g}"
    return f"{printed} [{read}{'?' if reading == 'uncertain' else ''}]"


def lay_out_table(number: int) -> pd.DataFrame:
    """A printed table as the page lays it out, in the texts of :func:`format_cell`; "I" and "P" mark isotonic and Platt."""
    t = printed_table(number)
    if number in (1, 3):
        rows, columns = {"dataset" if number == 3 else "x": t["dataset"]}, t["metric"]
    elif number in (5, 6):
        rows = {"dataset": t["dataset"], "method": t["method"]}
        columns = t["metric"] + "@" + t["k"].astype(str) + t["mark"].str.replace("-", " ")
    else:
        rows = {"k": t["k"].astype(str), "method": t["method"] + t["mark"]}
        columns = t["dataset"] + " " + t["metric"]
    flat = pd.DataFrame({**rows, "column": columns, "text": t["text"]})
    wide = flat.pivot(index=list(rows), columns="column", values="text")
    wide = wide.loc[flat.set_index(list(rows)).index.unique(), flat["column"].unique()]
    return wide.rename_axis(columns=None).reset_index()


def describe_count(true: pd.Series) -> str:
    """How many of a series of booleans are true.

    >>> describe_count(pd.Series([True, False, True]))
    '2 of 3'
    """
    return f"{int(true.sum())} of {len(true)}"


def correlate_with_precision(errors: pd.DataFrame) -> pd.DataFrame:
    """How P@k and an error go together over the models.

    Parameters
    ----------
    errors : DataFrame
        Columns k, dataset, method, P, metric, variant (``"none"``, ``"isotonic"``), value; percent.

    Returns
    -------
    DataFrame
        dataset, metric, k, models, rank corr. before, rank corr. after (Spearman's, ties at their mean rank; with five
        models only 1 and -1 lie outside what chance gives one time in twenty), largest before, largest after (values).
    """
    rows = []
    for (dataset, metric, k), part in errors.groupby(["dataset", "metric", "k"], sort=False):
        wide = part.pivot(index=["method", "P"], columns="variant", values="value").reset_index("P")
        states = ["none", "isotonic"]
        rows.append((dataset, metric, k, len(wide), *wide.corr("spearman").loc["P", states], *wide[states].max()))
    columns = ["rank corr. before", "rank corr. after", "largest before", "largest after"]
    return pd.DataFrame(rows, columns=["dataset", "metric", "k", "models", *columns])


def draw_before_after(ax: Axes, errors: pd.DataFrame) -> None:
    """Each model's error against its P@k: filled before, hollow after isotonic regression, a thin line between.

    ``errors`` as :func:`correlate_with_precision` takes it, of one dataset, metric and k. Where it has a column
    ``reading``, a "c" stands at the cells that are not drawn as printed.
    """
    for name, part in errors.groupby("method", sort=False):
        look = looks.of(name)
        ax.plot(part["P"], part["value"], "-", color="0.75", linewidth=0.8, zorder=1)
        for row in part.to_dict("records"):
            before = row["variant"] == "none"
            style = {"label": name} if before else {"markerfacecolor": "white"}
            ax.plot(row["P"], row["value"], look.marker, color=look.colour, markersize=6.5, **style)
            if row.get("reading", "as printed") != "as printed":
                looks.name(ax, "c", (row["P"], row["value"]), (6, -2))
    ax.margins(0.12)
    figures.draws(ax, x="P", y="value")


def plot_against_precision(errors: pd.DataFrame, k: int, title: str, note: str = "", ax=None) -> Figure:
    """Figs 17 to 19: a row an error, a column a dataset, each a panel of :func:`draw_before_after`.

    Parameters
    ----------
    errors : DataFrame
        As :func:`correlate_with_precision` takes it, in the order of the panels; NLL in nats.
    k : int
        Which rows are drawn.
    title, note : str
        Of the figure, and what its legend says besides.
    ax : array of Axes, optional
        Where to draw instead of a new figure.
    """
    errors = errors[errors["k"] == k]
    datasets, metrics = errors["dataset"].unique(), errors["metric"].unique()
    shape = {"nrows": len(metrics), "ncols": len(datasets), "sharex": "col", "sharey": "row", "squeeze": False}
    width = looks.MEDIUM if len(datasets) > 1 else looks.NARROW
    with figures.new(width=width, height=0.6 + 2 * len(metrics), ax=ax, **shape) as (fig, axes):
        for line, metric in zip(axes, metrics, strict=True):
            for panel, dataset in zip(line, datasets, strict=True):
                draw_before_after(panel, errors[(errors["dataset"] == dataset) & (errors["metric"] == metric)])
                if metric in ("ECE", "ACE"):
                    panel.set_yscale("log")
                    panel.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
            line[0].set_ylabel(f"{metric}@{k}, {'nats' if metric == 'NLL' else '%'}")
        for column, dataset in zip(axes.T, datasets, strict=True):
            column[0].set_title(dataset, loc="left")
            column[-1].set_xlabel(f"P@{k}, %")
        looks.title(fig, title)
        words = "filled: before, hollow: after isotonic regression" + note
        looks.legend(fig, axes[0, 0], ncols=min(errors["method"].nunique(), 5), title=words)
    return fig
