"""What the calibration paper's items share: its printed tables, errors against precision, and the
reliability of models before and after calibration."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from xcrepro import calibrate, distributions, looks, published
from xcrepro.findings import Difference, chance
from xcrepro.inputs import calibrated
from xcrepro.metrics import significance
from xcrepro.repro import figures, tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from xcrepro.data.dataset import Dataset
    from xcrepro.predictions import TopK

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
        ``variant`` is the calibration: ``"none"``, ``"isotonic"``, ``"platt"``, or the last two with ``-separate``,
        fitted for each rank of the top k alone. Further columns: ``mark``, ``"-I"`` and ``"-P"`` for isotonic and
        Platt as in print, ``""`` for none; ``text``, :func:`format_cell`; ``on page``, the printed text as a number;
        ``doubted``, whether the audit doubts the cell.
    """
    source = f"calibration:table{name}" if isinstance(name, int) else f"calibration:{name}"
    found = published.table(source)
    return found.assign(
        doubted=_doubts(source),
        mark=found["variant"].map(_MARKS).fillna(""),
        text=[format_cell(*row) for row in zip(found["printed"], found["value"], found["reading"], strict=True)],
        **{"on page": pd.to_numeric(found["printed"].str.replace(",", ""), errors="coerce")},
    )


@functools.cache
def _doubts(source: str) -> tuple[bool, ...]:
    """Of each row of a printed table whether the audit doubts it; kept, as the audit takes seconds."""
    if source.startswith("calibration:table"):
        return _doubts_of_tables()[source]
    return tuple(published.doubted(published.table(source)) != "")


@functools.cache
def _doubts_of_tables() -> dict[str, tuple[bool, ...]]:
    """The same of tables 1 to 8, from one audit of all their datasets."""
    rows = pd.concat([published.table(f"calibration:table{number}") for number in range(1, 9)], ignore_index=True)
    doubted = published.doubted(rows) != ""
    return {source: tuple(part) for source, part in doubted.groupby(rows["source"])}


def format_cell(printed: str, value: float, reading: str) -> str:
    """A cell as the page has it, with our reading in brackets where it differs or is in doubt.

    Parameters
    ----------
    printed : str
        The cell's text; empty where there is none.
    value : float
        As we read it; NaN where that is not known.
    reading : str
        ``"as printed"``, ``"corrected"`` or ``"uncertain"``.

    Returns
    -------
    str
        The text, ``"-"`` for none.

    Examples
    --------
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
    """A printed table as the page lays it out.

    Parameters
    ----------
    number : int
        1 to 8.

    Returns
    -------
    DataFrame
        The texts of :func:`format_cell`, "†" behind what the audit doubts; "I" and "P" mark isotonic and Platt.
    """
    t = printed_table(number)
    t["text"] += t["doubted"].map({True: "†", False: ""})
    if number in (1, 3):
        rows, columns = {"dataset" if number == 3 else "x": t["dataset"]}, t["metric"]
    elif number in (5, 6):
        rows = {"dataset": t["dataset"], "method": t["method"]}
        columns = t["metric"] + "@" + t["k"].astype(str) + t["mark"].str.replace("-", " ")
    else:
        rows = {"k": t["k"].astype(str), "method": t["method"] + t["mark"]}
        columns = t["dataset"] + " " + t["metric"]
    return tables.spread(pd.DataFrame({**rows, "column": columns, "text": t["text"]}), list(rows), "column", "text")


def describe_count(true: pd.Series) -> str:
    """How many of a series of booleans are true.

    >>> describe_count(pd.Series([True, False, True]))
    '2 of 3'
    """
    return f"{int(true.sum())} of {len(true)}"


def calibrate_all(
    ds: Dataset, tops: calibrated.Tops, methods: Mapping[str, Mapping], ks: Sequence[int]
) -> dict[tuple[str, int], dict[str, TopK]]:
    """Every method on every model, cross-fitted over ten contiguous folds of the test points.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    methods : mapping of str to mapping
        Method -> keywords of :func:`xcrepro.calibrate.cross_fit_top`.
    ks : sequence of int
        How many places are calibrated together.

    Returns
    -------
    dict
        (model, k) -> method -> the first k places calibrated by it; ``"none"`` first, as they were.
    """
    found = {}
    for name, top in tops.items():
        for k in ks:
            before = calibrated.linked(top, k, name)
            fits = {method: calibrate.cross_fit_top(ds.test.Y, before, **how) for method, how in methods.items()}
            found[name, int(k)] = {"none": before, **fits}
    return found


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


def describe_relations(errors: pd.DataFrame, metric: str = "ECE", variant: str = "none") -> str:
    """Whether P@k and an error go together over the models, in any of the datasets and at any k.

    Parameters
    ----------
    errors : DataFrame
        As :func:`correlate_with_precision` takes it.
    metric, variant : str
        One of its metrics and variants.

    Returns
    -------
    str
        From Kendall's tau with its exact p, corrected for the number of datasets and k (Holm). So few models that no order
        of them could be clear are said to be too few.
    """
    part = errors[(errors["metric"] == metric) & (errors["variant"] == variant)].dropna(subset=["P", "value"])
    what = f"P@k and {metric}@k {'before' if variant == 'none' else 'after'} calibration"
    groups = list(part.groupby(["dataset", "k"], sort=False))
    sizes = [len(rows) for _, rows in groups]
    if not sizes or max(sizes) < 3:
        return f"{what}: too few models for a relation ({max(sizes, default=0)})."
    from scipy import stats  # only here: it takes a second to import

    found = [stats.kendalltau(rows["P"], rows["value"]) for _, rows in groups]
    known = [pair for pair in zip(groups, found, strict=True) if not np.isnan(pair[1].pvalue)]
    tested = significance.holm(distributions.rounded([one.pvalue for _, one in known])) if known else []
    clear = [
        f"{dataset} at k = {k} (tau {one.statistic:.2f})"
        for (((dataset, k), _), one), p in zip(known, tested, strict=True)
        if p < 0.05
    ]
    taus = [one.statistic for _, one in known]
    spread = f"Kendall's tau from {min(taus):z.1f} to {max(taus):z.1f}" if taus else "Kendall's tau is not known"
    cases = f"{len(groups)} {'case' if len(groups) == 1 else 'cases'} (a dataset at one k)"
    if clear:
        return f"{what} have a clear relation in {len(clear)} of {cases}: {'; '.join(clear)}."
    least = 2 / math.factorial(max(sizes)) * len(groups)  # of all orders, the two that agree or disagree in every pair
    why = f"; with {max(sizes)} models none could be, whatever their order" if least >= 0.05 else ""
    return f"{what} have no clear relation in any of {cases}, {spread}{why}."


def draw_before_after(ax: Axes, errors: pd.DataFrame, methods: Sequence[str]) -> None:
    """Each model's error against its P@k: filled before, hollow after isotonic regression, a thin line between.

    Parameters
    ----------
    ax : Axes
    errors : DataFrame
        As :func:`correlate_with_precision` takes it, of one dataset, metric and k. Where it has a column ``reading``,
        "†" stands at the cells that are not drawn as printed.
    methods : sequence of str
        All of the figure, so that each has one look in all panels.
    """
    styles = looks.distinct(methods)
    for name, part in errors.groupby("method", sort=False):
        look = styles[name]
        ax.plot(part["P"], part["value"], "-", color="0.75", linewidth=0.8, zorder=1)
        for row in part.to_dict("records"):
            before = row["variant"] == "none"
            style = {"label": name} if before else {"markerfacecolor": "white"}
            if "±" in row and not np.isnan(row["±"]):
                ends = [max(row["value"] - 2 * row["±"], 0), row["value"] + 2 * row["±"]]
                ax.plot([row["P"]] * 2, ends, "-", color=look.colour, linewidth=1.6, label="_guide error", zorder=1.5)
            ax.plot(row["P"], row["value"], look.marker, color=look.colour, markersize=6.5, **style)
            if row.get("reading", "as printed") != "as printed":
                looks.name(ax, "†", (row["P"], row["value"]), (6, -2))
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
                part = errors[(errors["dataset"] == dataset) & (errors["metric"] == metric)]
                draw_before_after(panel, part, errors["method"].unique())
                if metric in ("ECE", "ACE"):
                    _log_errors(panel, errors.loc[errors["metric"] == metric, "value"])
            line[0].set_ylabel(f"{metric}@{k}, {'nats' if metric == 'NLL' else '%'}")
        for column, dataset in zip(axes.T, datasets, strict=True):
            name = dataset.partition("@")[0]  # of a twin; its scale and seed stand in the foot
            alone = sum(other.partition("@")[0] == name for other in datasets) == 1
            column[0].set_title(name if alone else dataset, loc="left")
            column[-1].set_xlabel(f"P@{k}, %")
        looks.title(fig, title)
        spread = "; lines: two standard errors" if "±" in errors and errors["±"].notna().any() else ""
        words = f"filled: before, hollow: after isotonic regression{spread}{note}"
        looks.legend(fig, axes[0, 0], ncols=min(errors["method"].nunique(), 5), title=words)
    return fig


def _log_errors(panel: Axes, values: pd.Series) -> None:
    """Errors in percent on a logarithmic axis, no longer than they need; one of 0 lies on its lower edge."""
    values = values[values > 0]
    low, high = (values.min(), values.max()) if len(values) else (1.0, 10.0)
    panel.set_yscale("log", nonpositive="clip")
    ticks = [
        tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low / 1.6 <= tick <= high * 1.6
    ]
    if len(ticks) > 5:
        ticks = [tick for tick in ticks if tick in (0.01, 0.1, 1, 10, 100)]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_ylim(max(low, 0.01) / 1.6, high * 1.6)


# ---------------------------------------------------------------- reliability: items on trained models


def recorded_pairs(
    recorded: Mapping[str, pd.DataFrame], columns: Mapping[str, str], key: str = "model"
) -> dict[str, dict[str, float]]:
    """Two columns of recorded tables under the names of :func:`measured_states`, for :func:`xcrepro.findings.agreement`.

    Parameters
    ----------
    recorded : mapping of str to DataFrame
        Dataset -> rows, one a model.
    columns : mapping of str to str
        Column -> what follows the model's name, such as ``", before"``.
    key : str
        The column of the names.

    Returns
    -------
    dict of str to dict
        Dataset -> name -> number.
    """
    return {
        dataset: {
            f"{name}{end}": value
            for column, end in columns.items()
            if column in table
            for name, value in zip(table[key], table[column], strict=True)
        }
        for dataset, table in recorded.items()
    }


def sort_by_sign(differences: Iterable[Difference]) -> dict[str, list[str]]:
    """Left names of differences by verdict: ``"above"``, ``"below"``, ``"not clear"``; without their state.

    Parameters
    ----------
    differences : iterable of Difference

    Returns
    -------
    dict of str to list of str
        All three, some perhaps empty.
    """
    found: dict[str, list[str]] = {"above": [], "below": [], "not clear": []}
    for one in differences:
        found[one.verdict].append(one.left.rpartition(", ")[0] or one.left)
    return found


def describe_difference(one: Difference, what: str, unit: str = "points", decimals: int = 1) -> str:
    """A difference as words: ``"2.7 ± 0.4 points above PLT's, clearly"``.

    Parameters
    ----------
    one : Difference
    what : str
        What is compared, for the beginning of the sentence.
    unit : str
    decimals : int

    Returns
    -------
    str

    Examples
    --------
    >>> describe_difference(Difference("PLT", "FastXML", 1.25, 0.5, 19, 0.02), "P@1 of PLT")
    "P@1 of PLT is 1.2 ± 0.5 points above FastXML's (p = 0.02)"
    """
    if np.isnan(one.value):
        return f"{what} is not known"
    error = "" if np.isnan(one.error) else f" ± {one.error:.{decimals}f}"
    place = "above" if one.value > 0 else "below"
    sure = f"{chance(one.p)}{'' if one.clear else ', not clear'}"
    return f"{what} is {abs(one.value):.{decimals}f}{error} {unit} {place} {one.right}'s ({sure})"
