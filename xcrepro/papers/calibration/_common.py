"""What the calibration paper's items share: its printed tables, errors against precision, and the
reliability of models before and after calibration."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from xcrepro import looks, metrics, published
from xcrepro.findings import BLOCKS, Measured
from xcrepro.inputs import calibrated
from xcrepro.inputs.calibrated import STATES
from xcrepro.metrics.significance import jackknife_blocks
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


def measured(ds: Dataset, tops: Mapping[str, TopK], k: int, metric: str = "ECE") -> Measured:
    """:func:`measured_all` of one metric; it may be ``"P"`` as well."""
    if metric != "P":
        return measured_all(ds, tops, k, [metric])[metric]
    return Measured.of_rows(lambda Y, top: 100 * float(metrics.precision(Y, top, [k])[0]), ds.test.Y, tops)


def measured_all(ds: Dataset, tops: Mapping[str, TopK], k: int, wanted: Sequence[str]) -> dict[str, Measured]:
    """Numbers of several predictions on the test points, with the error that a jackknife over their rows gives.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        With scores in [0, 1]. A calibration is held as it is: what another fit would change is not in the error.
    k : int
    wanted : sequence of str
        Calibration metrics, as :func:`xcrepro.inputs.calibrated.measure` has them.

    Returns
    -------
    dict of str to Measured
        By metric; percent, NLL in nats.
    """
    Y, units = ds.test.Y, np.array([1 if metric == "NLL" else 100 for metric in wanted])

    def values(Y, top: TopK) -> np.ndarray:
        found = metrics.calibration.calibration_table(Y, top, [k], closed=calibrated.CLOSED, metrics=list(wanted))
        return units * found.set_index("metric")["value"].loc[list(wanted)].to_numpy()

    whole = {name: values(Y, top) for name, top in tops.items()}
    keeps = list(jackknife_blocks(Y.shape[0], BLOCKS)) if Y.shape[0] > 1 else []
    parts: dict[str, list] = {name: [] for name in tops}
    for keep in keeps:
        truth = Y[keep]
        for name, top in tops.items():
            parts[name].append(values(truth, top.rows(keep)))
    stacked = {name: np.reshape(part, (len(keeps), len(wanted))) for name, part in parts.items()}
    return {
        metric: Measured(
            {name: float(value[at]) for name, value in whole.items()},
            {name: part[:, at] for name, part in stacked.items()},
        )
        for at, metric in enumerate(wanted)
    }


def measure_states(ds: Dataset, states: calibrated.States, metric: str = "ECE") -> dict[int, Measured]:
    """A calibration error with its own error, of every model before and after calibration.

    Parameters
    ----------
    ds : Dataset
    states : mapping
        From :func:`xcrepro.inputs.calibrated.before_after`.
    metric : str

    Returns
    -------
    dict of int to Measured
        By k; the systems are ``"PLT before"``, ``"PLT after"`` and so on.
    """
    tops: dict[int, dict] = {}
    for (name, k), pair in states.items():
        tops.setdefault(k, {}).update({f"{name} {state}": top for state, top in zip(STATES, pair, strict=True)})
    return {k: measured(ds, those, k, metric) for k, those in tops.items()}


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

    Parameters
    ----------
    ax : Axes
    errors : DataFrame
        As :func:`correlate_with_precision` takes it, of one dataset, metric and k. Where it has a column ``reading``,
        a "c" stands at the cells that are not drawn as printed.
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


# ---------------------------------------------------------------- reliability: items on trained models

PANELS = tuple(f"{what}, {state}" for state in STATES for what in ("% of pairs", "share of hits"))
"""What the histograms and curves of one model show, before and after."""


def compute_summary(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    """How large each model's error is, which way it errs, and what is left after calibration.

    Parameters
    ----------
    ds : Dataset
    states : mapping
        From :func:`xcrepro.inputs.calibrated.before_after`.

    Returns
    -------
    DataFrame
        One row a model and k, percent. mean score, hit rate, ECE: before. over, under: the parts of ECE from bins
        where the mean score lies above, below the share of hits. after: ECE of the calibrated scores. floor:
        :func:`xcrepro.inputs.calibrated.floor` of those, what chance alone leaves.
    """
    names = {"confidence": "mean score", "accuracy": "hit rate", "ECE": "ECE", "ECE over": "over", "ECE under": "under"}
    found = calibrated.measure_all(ds, states, tuple(names)).rename(columns=names)
    left = calibrated.measure_all(ds, states, ("ECE",), "after")["ECE"]
    return found.assign(after=left, floor=[100 * calibrated.floor(after) for _, after in states.values()])


def compute_bins(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    """Ten bins of each model at each k, before and after calibration.

    Parameters
    ----------
    ds : Dataset
    states : mapping
        From :func:`xcrepro.inputs.calibrated.before_after`.

    Returns
    -------
    DataFrame
        model, k, state, bin, then share: percent of the pairs, in bins closed on the left as the paper's histograms
        have them. The rest in bins closed on the right as its reliability plots have them
        (:func:`xcrepro.metrics.calibration.reliability`): lower, upper, the bin's ends; weight, percent of the pairs;
        confidence and accuracy, mean score and share of hits, NaN in an empty bin; low, high, where accuracy would
        lie 19 times in 20 if every score were right.
    """
    parts = []
    for (model, k), pair in states.items():
        for state, top in zip(STATES, pair, strict=True):
            scores, hits = metrics.calibration.pairs(ds.test.Y, top, k)
            count = metrics.reliability(scores, hits, band=None)["count"]
            found = metrics.reliability(scores, hits, closed="right").rename(columns={"count": "weight"})
            found["weight"] *= 100 / scores.size
            found.insert(1, "share", 100 * count / scores.size)
            parts.append(pd.DataFrame({"model": model, "k": k, "state": state, **found}))
    return pd.concat(parts, ignore_index=True)


def describe_direction(summary: pd.DataFrame) -> pd.DataFrame:
    """Which way each model errs.

    Parameters
    ----------
    summary : DataFrame
        From :func:`compute_summary`.

    Returns
    -------
    DataFrame
        One row a model, one text a k: ``over`` or ``under`` where that part is more than twice the other, ``mixed``
        between; ``fine`` where ECE is below twice the floor, so that little but chance can be seen.
    """
    over, under = summary["over"], summary["under"]
    rules = {"fine": summary["ECE"] < 2 * summary["floor"], "over": over > 2 * under, "under": under > 2 * over}
    return spread_words(summary, rules, "mixed")


def spread_words(table: pd.DataFrame, rules: Mapping[str, pd.Series], other: str) -> pd.DataFrame:
    """Of each row of a table the first word whose rule is true.

    Parameters
    ----------
    table : DataFrame
        With columns model and k.
    rules : mapping of str to Series of bool
        Word -> where it is true.
    other : str
        The word where no rule is.

    Returns
    -------
    DataFrame
        A row a model and a column a k.
    """
    words = np.select(list(rules.values()), list(rules), other)
    return tables.spread(table.assign(k="k = " + table["k"].astype(str), words=words), ["model"], "k", "words")


def draw_diagonal(ax: Axes) -> None:
    """The line on which calibrated scores lie, and the square it stands in."""
    ax.plot([0, 1], [0, 1], "-", color="0.45", linewidth=0.7, zorder=1, label="_guide")
    ax.set(xlim=(0, 1), ylim=(-0.03, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])


def draw_curve(ax: Axes, bins: pd.DataFrame) -> None:
    """One model's reliability with its band and the diagonal.

    Parameters
    ----------
    ax : Axes
    bins : DataFrame
        Its rows of :func:`compute_bins`.
    """
    bins = bins.dropna(subset="accuracy")
    band = {"color": looks.SKY, "linewidth": 5, "label": "where 95 % would lie if the scores were right"}
    ax.vlines(bins["confidence"], bins["low"], bins["high"], **band)
    draw_diagonal(ax)
    ax.plot([], [], color="0.45", linewidth=0.7, label="calibrated")
    ax.plot(bins["confidence"], bins["accuracy"], "o-", color=looks.INK, label="a bin: mean score, share of hits")
    figures.draws(ax, x="confidence", y=("accuracy", "low", "high"))


def write_errors(ax: Axes, rows: pd.DataFrame, column: str) -> None:
    """Inside a panel, the ECE at each k.

    Parameters
    ----------
    ax : Axes
    rows : DataFrame
        One model's, of :func:`compute_summary`.
    column : str
        The ECE's column, percent.
    """
    words = "\n".join(f"@{row['k']}: {row[column]:.1f}" for _, row in rows.iterrows())
    ax.text(0.97, 0.04, f"ECE, %\n{words}", transform=ax.transAxes, ha="right", va="bottom", fontsize=looks.TINY)


def scale_errors(ax: Axes) -> None:
    """Errors in percent along x: logarithmic, and linear from 0 to 0.1, so that an error of 0 has a place."""
    ax.set_xscale("symlog", linthresh=0.1, linscale=0.5)
    ax.set_xticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
    ax.set_xlim(-0.02, 150)


def hide_small_errors(table: pd.DataFrame, least: float = 3.0) -> pd.DataFrame:
    """Leave out small errors: what the golden files hold.

    Small errors are the noise of some ten hits, and which hits those are may hang on another processor's last digits.

    Parameters
    ----------
    table : DataFrame
    least : float
        Points.

    Returns
    -------
    DataFrame
        The table with ECE, ACE and true errors below ``least`` as NaN, without the columns of standard errors (±).
    """
    table = table[[name for name in table if "±" not in name]]
    errors = [name for name in table if name.startswith(("ECE", "ACE", "true"))]
    return table.assign(**{name: table[name].where(table[name] >= least) for name in errors})
