"""A dataset's benchmark table with our baselines: the repository's metrics, its printed rows, what keeps them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, published
from xcrepro.data.dataset import Dataset
from xcrepro.findings import LEVEL, Difference, Measured, agreement, corrected, numbers
from xcrepro.inputs import datasets, parameters, ranked
from xcrepro.inputs.datasets import weights
from xcrepro.inputs.ranked import KS, METRICS
from xcrepro.metrics import ranking, registry
from xcrepro.metrics.significance import jackknife_blocks
from xcrepro.predictions import TopK
from xcrepro.repro import figures, tables

PRINTED_AS = {code: registry.printed(code)[0] for code in ("P", "N", "PSP", "PSN")}
"""The record's name of a metric -> ours."""
OTHER_DEFINITION = {"nDCG": "nDCG (ideal k)", "PSnDCG": "PSnDCG (ideal k)"}
MODELS = ("Popularity", "1-vs-All", "DiSMEC", "Parabel", "PLT", "FastXML", "PfastXML", "PfastreXML", "Neural")
PRINTED_METHODS = {"1-vs-All": ("1-vs-All", "DiSMEC"), "DiSMEC": ("DiSMEC",), "Parabel": ("Parabel",)}
PRINTED_METHODS |= {"FastXML": ("FastXML",), "PfastreXML": ("PfastreXML",)}
"""Baseline -> the printed method it is compared with, the first that the dataset's table has. Others have none."""
SHOWN = ("P@1", "P@5", "PSP@1", "PSP@5")
COLUMNS = tuple(f"{metric}@{k}" for metric in METRICS for k in KS)
ORDERS = (
    ("every model beats the most popular labels", ("P@1",), "all", "Popularity"),
    ("DiSMEC beats a label tree with its loss", ("P@1",), "DiSMEC", "Parabel"),
    ("a label tree beats FastXML's trees", ("P@1",), "Parabel", "FastXML"),
    ("FastXML beats PfastreXML at the head", ("P@1",), "FastXML", "PfastreXML"),
    ("a label tree beats FastXML on the tail", ("PSP@5",), "Parabel", "FastXML"),
    ("propensities in the nodes help the tail", ("PSP@1", "PSP@5"), "PfastXML", "FastXML"),
    ("re-ranking helps the tail", ("PSP@1", "PSP@5"), "PfastreXML", "PfastXML"),
)
"""Claim, the metrics it is held to, and what is said to be above what."""

check_parameters = parameters.check
compute_table = ranked.compare


def measure(ds: Dataset, tops: Mapping[str, TopK]) -> dict[str, Measured]:
    """The repository's twelve numbers of each model, with a jackknife over 20 blocks of test points.

    Parameters
    ----------
    ds : Dataset
    tops : mapping
        Model -> its predictions for the test points.

    Returns
    -------
    dict of str to Measured
        By column (``P@1``), percent.
    """
    inverse = weights(ds)

    def row(Y, top: TopK) -> np.ndarray:
        found = ranking.values(METRICS, Y, top, KS, inverse)
        return 100 * np.concatenate([found[metric] for metric in METRICS])

    keeps = list(jackknife_blocks(ds.test.Y.shape[0]))
    whole = {name: row(ds.test.Y, top) for name, top in tops.items()}
    left = {name: np.array([row(ds.test.Y[keep], top.rows(keep)) for keep in keeps]) for name, top in tops.items()}
    return {
        column: Measured({name: float(whole[name][i]) for name in tops}, {name: left[name][:, i] for name in tops})
        for i, column in enumerate(COLUMNS)
    }


def compute_errors(measured: Mapping[str, Measured]) -> pd.DataFrame:
    """The standard error of every number, in points.

    Parameters
    ----------
    measured : mapping
        Of :func:`measure`.

    Returns
    -------
    DataFrame
        model, then a column a metric and k.
    """
    names = list(next(iter(measured.values())).values)
    errors = {column: [one.error(name) for name in names] for column, one in measured.items()}
    return pd.DataFrame({"model": names} | errors)


def compute_page(ds: Dataset) -> pd.DataFrame:
    """All that is printed about the dataset.

    Parameters
    ----------
    ds : Dataset

    Returns
    -------
    DataFrame of str
        method, then a column a metric and k, as printed; ``†`` behind what the audit doubts. No rows where nothing is
        printed.
    """
    known = _known(ds)
    mark = known["variant"].where(known["variant"] == "", " " + known["variant"])
    known = known.assign(method=known["method"] + mark, shown=known["printed"] + known["doubt"])
    known = known.assign(column=known["metric"] + "@" + known["k"].astype(str))
    known = known.drop_duplicates(["method", "column"])
    wide = tables.spread(known, ["method"], "column", "shown")
    return wide[["method", *(column for column in COLUMNS if column in wide)]]


def _known(ds: Dataset) -> pd.DataFrame:
    """The printed rows of the dataset in our metrics, with ``doubt``: a dagger where the audit has one."""
    known = datasets.printed_rows(ds).dropna(subset=["value"])
    known = known.assign(doubt=np.where(published.doubted(known) == "", "", "†") if len(known) else "")
    return known.assign(metric=known["metric"].map(PRINTED_AS)).dropna(subset=["metric"]).astype({"k": int})


def printed_rows(ds: Dataset) -> pd.DataFrame:
    """The printed rows for the methods that our baselines stand for.

    Parameters
    ----------
    ds : Dataset
        Its rows are those of :func:`xcrepro.inputs.datasets.printed_rows`: none where nothing is printed about it.

    Returns
    -------
    DataFrame
        model, method, metric, k, printed (text), doubt (``†`` where the audit doubts it, else empty).
    """
    known, parts = _known(ds), []
    for model, methods in PRINTED_METHODS.items():
        method = next((name for name in methods if (known["method"] == name).any()), None)
        parts.append(known[known["method"] == method].assign(model=model))
    return pd.concat(parts, ignore_index=True)[["model", "method", "metric", "k", "printed", "doubt"]]


def compute_printed(
    ds: Dataset, tops: Mapping[str, TopK], measured: Mapping[str, Measured], given: Sequence[str] = ()
) -> pd.DataFrame:
    """Every number of a model that has a printed row, and what may explain the difference.

    Parameters
    ----------
    ds : Dataset
    tops : mapping
        Model -> its predictions.
    measured : mapping
        Of :func:`measure`, from the same.
    given : sequence of str
        The reader's own models, which stand for no printed method whatever their name.

    Returns
    -------
    DataFrame
        model, method, metric, k, ours (percent), printed (text), doubt (as :func:`printed_rows` has it), difference, and in
        points:

        - split: twice the standard error that the choice of test points leaves, by a jackknife over 20 blocks of rows.
        - ties: by how much the metric moves when equal scores go to the highest label id in place of the lowest.
        - definition: how far the other common definition is from ours: nDCG and PSnDCG with the ideal of k hits.

        explained by: the first of these that is at least as large as the difference (and, for a definition, of its
        sign); ``more`` where none is: training, parameters or features; ``doubted`` where the printed value is.
    """
    w, rows = weights(ds), []
    for model, part in printed_rows(ds).groupby("model", sort=False):
        if model not in tops or model in given:
            continue
        ours = ranking.values([*METRICS, *OTHER_DEFINITION.values()], ds.test.Y, tops[model], KS, w)
        high = ranking.values(METRICS, ds.test.Y, ties_to_highest(tops[model]), KS, w)
        for _, method, metric, k, printed, doubt in part.itertuples(index=False):
            i = KS.index(k)
            value, other = (100 * ours[name][i] for name in (metric, OTHER_DEFINITION.get(metric, metric)))
            ties = 100 * abs(high[metric][i] - ours[metric][i])
            found = value - float(printed), 2 * measured[f"{metric}@{k}"].error(model), ties, other - value
            reason = "doubted" if doubt else _reason(*found)
            rows.append((model, method, metric, k, value, printed, doubt, *found, reason))
    columns = [
        "model",
        "method",
        "metric",
        "k",
        "ours",
        "printed",
        "doubt",
        "difference",
        "split",
        "ties",
        "definition",
    ]
    return pd.DataFrame(rows, columns=[*columns, "explained by"])


def _reason(difference: float, split: float, ties: float, shift: float) -> str:
    away = abs(difference)
    if away <= 0.005:
        return "equal"
    if away <= split:
        return "split"
    if away <= ties:
        return "ties"
    # ours + shift is the other definition's value: it explains a difference in the other direction.
    if shift * difference < 0 and abs(difference + shift) <= split:
        return "definition"
    return "more"


def ties_to_highest(top: TopK) -> TopK:
    """The same predictions with equal scores in order of falling label id."""
    order = np.lexsort((np.where(top.ids < 0, 1, -top.ids), -top.scores), axis=1)
    return TopK.from_ids(np.take_along_axis(top.ids, order, 1), n_labels=top.n_labels)


def compute_explained(table: pd.DataFrame) -> pd.DataFrame:
    """How many differences each explanation covers.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute_printed`.

    Returns
    -------
    DataFrame of int
        A row a model; columns model, equal, split, ties, definition, more, doubted.
    """
    order = ["equal", "split", "ties", "definition", "more", "doubted"]
    counts = pd.crosstab(table["model"], table["explained by"]).reindex(columns=order, fill_value=0)
    return counts.loc[list(dict.fromkeys(table["model"]))].rename_axis(columns=None).reset_index()


def compute_orders(measured: Mapping[str, Measured], printed: pd.DataFrame) -> pd.DataFrame:
    """Orders of methods that are said to hold, and whether they hold here beyond chance.

    Parameters
    ----------
    measured : mapping
        Of :func:`measure`; orders of models that are not in it are left out.
    printed : DataFrame
        Of :func:`printed_rows`.

    Returns
    -------
    DataFrame
        claim, order, metric, left and right (the numbers compared, percent; of ``all`` the least), difference, error (of
        the paired difference), p (text; Holm over all), holds (``yes``, ``no`` or ``not clear``), printed (left minus right
        where both are printed and not doubted, else NaN).
    """
    plain = printed[printed["doubt"] == ""].set_index(["model", "metric", "k"])["printed"].astype(float)
    rows, found = [], []
    for claim, columns, left, right in ORDERS:
        for column in columns:
            one = _order(measured[column], left, right)
            if one is None:
                continue
            metric, _, k = column.partition("@")
            values = measured[column].values
            page = [plain.get((name, metric, int(k)), np.nan) for name in (left, right)]
            rows.append((claim, f"{left} > {right}", column, values[one.left], values[right], page[0] - page[1]))
            found.append(one)
    found = corrected(found)
    table = pd.DataFrame(rows, columns=["claim", "order", "metric", "left", "right", "printed"])
    words = {"above": "yes", "below": "no", "not clear": "not clear"}
    more = {
        "difference": [one.value for one in found],
        "error": [one.error for one in found],
        "p": ["" if np.isnan(one.p) else "< 0.001" if one.p < 0.001 else f"{one.p:.2f}" for one in found],
        "holds": [words[one.verdict] for one in found],
    }
    return table.assign(**more)[[*table.columns[:5], *more, "printed"]]


def _order(measured: Measured, left: str, right: str) -> Difference | None:
    """Left against right; of ``all`` the one that is hardest to tell from being below; None where one is not there."""
    lefts = [name for name in measured.values if name != right] if left == "all" else [left]
    if right not in measured.values or not lefts or not set(lefts) <= measured.values.keys():
        return None
    # All are above where each is: the least of them decides.
    return measured.difference(min(lefts, key=lambda name: measured.values[name]), right)


def findings(
    measured: Mapping[str, Measured], orders: pd.DataFrame, printed: pd.DataFrame, given: Sequence[str] = ()
) -> list[str]:
    """What came out, as sentences.

    Parameters
    ----------
    measured, orders, printed
        Of :func:`measure`, :func:`compute_orders` and :func:`compute_printed`.
    given : sequence of str
        The reader's own models: each is held to the best baseline.

    Returns
    -------
    list of str
    """
    said = [measured[column].leader(column).sentence for column in ("P@1", "PSP@5")]
    said += findings_own(measured, given)
    if len(orders):
        said.append(findings_orders(orders))
    known = printed[printed["doubt"] == ""]
    if len(known):
        near = int((known["explained by"] != "more").sum())
        aside = len(printed) - len(known)
        said.append(
            f"Of {len(known)} numbers with a printed value beside them, {near} differ by no more than the choice of test "
            f"points, ties or the other definition of nDCG can do; {len(known) - near} differ by more"
            + (f"; {aside} more stand beside a value that the audit doubts, and are not counted." if aside else ".")
        )
    elif not len(printed):
        said.append("No printed row of the dataset stands for a model of this run.")
    return said


def findings_recorded(measured: Mapping[str, Measured], recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same, by P@1 and by PSP@5.

    Parameters
    ----------
    measured : mapping
        Of :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> what is recorded of it (the first table).

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    return [
        agreement(measured[column].pairs(), numbers(recorded, "model", column), column) for column in ("P@1", "PSP@5")
    ]


def findings_own(measured: Mapping[str, Measured], given: Sequence[str]) -> list[str]:
    """The reader's own models against the best baseline of each column of :data:`SHOWN`.

    Parameters
    ----------
    measured : mapping
    given : sequence of str

    Returns
    -------
    list of str
        A sentence a model; empty where there is no own model, or no baseline.
    """
    names = [name for name in measured["P@1"].values if name not in given]
    if not names or not given:
        return []
    found = []
    for column in SHOWN:
        best = max(names, key=lambda name: measured[column].values[name])
        found += [(column, measured[column].difference(name, best)) for name in given]
    tested = corrected(one for _, one in found)
    said = []
    for name in given:
        parts = [
            f"{column} {one.value:+.1f} ± {one.error:.1f} points from {one.right} ({one.verdict})"
            for (column, _), one in zip(found, tested, strict=True)
            if one.left == name
        ]
        said.append(f"{name} against the best baseline: {', '.join(parts)}; Holm over {len(found)} comparisons.")
    return said


def findings_orders(orders: pd.DataFrame) -> str:
    """Which of the orders hold.

    Parameters
    ----------
    orders : DataFrame
        Of :func:`compute_orders`, not empty.

    Returns
    -------
    str
    """

    def named(verdict: str) -> str:
        part = orders[orders["holds"] == verdict]
        names = ", ".join(f"{order} in {metric}" for order, metric in part[["order", "metric"]].to_numpy())
        return f"{len(part)}{f' ({names})' if len(part) and verdict != 'yes' else ''}"

    one = orders.iloc[0]
    words = {"yes": "clearly so", "no": "clearly the other way round", "not clear": "not clear"}
    text = (
        f"The one order here that is said to hold, {one['order']} in {one['metric']}: {words[one['holds']]} (p < {LEVEL})."
        if len(orders) == 1
        else f"Orders that are said to hold, {len(orders)} of them: clearly so {named('yes')}, clearly the other way round "
        f"{named('no')}, not clear {named('not clear')} (p < {LEVEL}, Holm)."
    )
    both = orders.dropna(subset=["printed"])
    both = both[both["holds"] != "not clear"]
    if not len(both):
        return text
    same = int((np.sign(both["printed"]) == np.sign(both["difference"])).sum())
    return f"{text} Of the clear ones, {len(both)} can be read off the dataset's printed rows too: {same} as here."


def compute(measured: Mapping[str, Measured], printed: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws.

    Parameters
    ----------
    measured : mapping
        Of :func:`measure`.
    printed : DataFrame
        Of :func:`compute_printed`.

    Returns
    -------
    DataFrame
        model, metric, k, ours, error (twice the standard error), printed (NaN where nothing is printed), doubted.
    """
    rows = []
    for column in SHOWN:
        metric, _, k = column.partition("@")
        one = measured[column]
        rows += [(name, metric, int(k), value, 2 * one.error(name)) for name, value in one.values.items()]
    table = pd.DataFrame(rows, columns=["model", "metric", "k", "ours", "error"])
    known = printed[["model", "metric", "k", "printed", "doubt"]].astype({"printed": float})
    table = table.merge(known, on=["model", "metric", "k"], how="left")
    return table.assign(doubted=table["doubt"].eq("†")).drop(columns="doubt")


def plot(table: pd.DataFrame, twin: bool, ax=None) -> Figure:
    """Ours and the printed value below it for P@1, P@5, PSP@1 and PSP@5; what the audit doubts is hollow.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`. Bars are ``error``: twice the standard error of the test points.
    twin : bool
        Whether ours are of a twin; the legend says so.
    ax : array of 4 Axes, optional
        The caller's own.
    """
    names = list(dict.fromkeys(table["model"]))
    height = 1.9 + 0.24 * len(names)
    beside = table["printed"].notna().any()
    above = 0.14 if beside else 0
    with figures.new(looks.PAGE, height, ncols=len(SHOWN), sharey=True, ax=ax) as (fig, axes):
        for axis, column in zip(axes, SHOWN, strict=True):
            metric, _, k = column.partition("@")
            part = table[(table["metric"] == metric) & (table["k"] == int(k))]
            at = np.array([names.index(model) for model in part["model"]], float)
            bar = {"fmt": "o", "color": looks.INK, "elinewidth": 1.0, "markersize": 4.5}
            axis.errorbar(part["ours"], at - above, xerr=part["error"], label="ours ± 2 standard errors", **bar)
            for doubted, more, fill in ((False, "", looks.RUST), (True, ", † doubted", "none")):
                value = part["printed"].where(part["doubted"] == doubted)
                if value.notna().any():
                    mark = {"markerfacecolor": fill, "markeredgecolor": looks.RUST, "markersize": 4.5}
                    label = f"printed{' (real data)' if twin else ''}{more}"
                    axis.plot(value, at + 0.18, "s", linestyle="none", label=label, **mark)
            about = "each hit counts 1" if metric == "P" else "a rare label's hit counts more"
            axis.set(xlabel=f"{column}, %", ylim=(len(names) - 0.5, -0.5))
            axis.set_title(about, fontsize=looks.SMALL)
            figures.draws(axis, x=("ours", "printed"))
        one = f"of {names[0]}" if len(names) == 1 else f"of {len(names)} models"
        looks.title(fig, f"P and PSP at 1 and 5 {one}{', printed values beside them' if beside else ''}")
        axes[0].set_yticks(range(len(names)), names)
        looks.legend(fig)
    return fig
