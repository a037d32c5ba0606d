"""A dataset's benchmark table with our baselines: the repository's metrics, its printed rows, and what keeps the two apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import datasets
from xcrepro.inputs.datasets import weights
from xcrepro.metrics import ranking
from xcrepro.metrics.significance import jackknife_blocks, jackknife_error
from xcrepro.papers.xcrepo import _common
from xcrepro.papers.xcrepo._common import KS, METRICS
from xcrepro.predictions import TopK
from xcrepro.repro import figures

PRINTED_AS = {"P": "P", "nDCG": "N", "PSP": "PSP", "PSnDCG": "PSN"}
MODELS = ("Popularity", "1-vs-All", "DiSMEC", "Parabel", "PLT", "FastXML", "PfastXML", "PfastreXML", "Neural")
ROWS = {
    "1-vs-All": ("1-vs-All", "DiSMEC"),
    "DiSMEC": ("DiSMEC",),
    "Parabel": ("Parabel",),
    "FastXML": ("FastXML",),
    "PfastreXML": ("PfastreXML",),
}
"""Baseline -> the printed method it is compared with, the first that the dataset's table has. Others have none."""


def printed_rows(ds: Dataset) -> pd.DataFrame:
    """The printed rows for the methods that our baselines stand for: model, method, metric, k, printed (text).

    No rows where :func:`xcrepro.inputs.datasets.printed_rows` has none.
    """
    columns = ["model", "method", "metric", "k", "printed"]
    table, rows = datasets.printed_rows(ds), []
    for model, methods in ROWS.items():
        for method in methods:
            mine = table[(table["method"] == method) & table["value"].notna()]
            if len(mine):
                rows += [
                    (model, method, metric, int(row.k), row.printed)
                    for metric, name in PRINTED_AS.items()
                    for row in mine[mine["metric"] == name].itertuples()
                ]
                break
    return pd.DataFrame(rows, columns=columns)


def compute_table(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """The repository's metrics of each model, percent: model, then P@1 ... PSnDCG@5."""
    return _common.compute_metrics(ds, tops)


def compute_printed(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """Every number of a model that has a printed row: model, method, metric, k, ours, printed, difference, and what may
    explain the difference (points):

    - ``split``: twice the standard error that the choice of test points leaves, by a jackknife over 20 blocks of rows.
    - ``ties``: by how much the metric moves when equal scores go to the highest label id in place of the lowest.
    - ``definition``: how far the other common definition is from ours: nDCG and PSnDCG with the ideal of k hits.

    ``explained by``: the first of these that is at least as large as the difference (and, for a definition, of its sign);
    ``more`` where none is: training, parameters or features.
    """
    w, rows = weights(ds), []
    rows_of = printed_rows(ds)
    other = {"nDCG": "nDCG (ideal k)", "PSnDCG": "PSnDCG (ideal k)"}
    for model, group in rows_of.groupby("model", sort=False):
        if model not in tops:
            continue
        top = tops[model]
        names = [*METRICS, *other.values()]
        ours = ranking.values(names, ds.test.Y, top, KS, w)
        high = ranking.values(METRICS, ds.test.Y, ties_to_highest(top), KS, w)
        error = jackknife(ds.test.Y, top, w)
        for row in group.itertuples():
            i = KS.index(row.k)
            value = 100 * ours[row.metric][i]
            split = 200 * error[row.metric][i]
            ties = 100 * abs(high[row.metric][i] - ours[row.metric][i])
            shift = 100 * ours[other[row.metric]][i] - value if row.metric in other else 0.0
            difference = value - float(row.printed)
            reason = _reason(difference, split, ties, shift)
            rows.append(
                (model, row.method, row.metric, row.k, value, row.printed, difference, split, ties, shift, reason)
            )
    columns = ["model", "method", "metric", "k", "ours", "printed", "difference", "split", "ties", "definition"]
    return pd.DataFrame(rows, columns=[*columns, "explained by"])


def check_printed(table: pd.DataFrame) -> pd.DataFrame:
    """The values; what may explain a difference moves with a hit more or less."""
    return table[["model", "method", "metric", "k", "ours", "printed"]]


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
    absent = top.ids < 0
    order = np.lexsort((np.where(absent, 1, -top.ids), -top.scores), axis=1)
    return TopK.from_ids(np.take_along_axis(top.ids, order, 1), n_labels=top.n_labels)


def jackknife(Y, top: TopK, inverse_propensity: np.ndarray) -> dict[str, np.ndarray]:
    """Standard error of each of METRICS at each k: leave out one of 20 blocks of consecutive rows after the other."""
    left = [
        ranking.values(METRICS, Y[keep], top.rows(keep), KS, inverse_propensity) for keep in jackknife_blocks(len(top))
    ]
    return {name: jackknife_error(np.array([values[name] for values in left])) for name in METRICS}


def compute_explained(table: pd.DataFrame) -> pd.DataFrame:
    """How many differences each explanation covers, by model: integers."""
    order = ["equal", "split", "ties", "definition", "more"]
    counts = pd.crosstab(table["model"], table["explained by"]).reindex(columns=order, fill_value=0)
    return counts.loc[list(dict.fromkeys(table["model"]))].rename_axis(columns=None).reset_index()


def compute_orders(found: pd.DataFrame) -> pd.DataFrame:
    """The papers' orders, and whether they hold here: claim, left, right (the numbers compared, percent), holds (texts)."""
    value = found.set_index("model")
    claims = [
        ("every model beats the most popular labels", "P@1", "all", "Popularity"),
        ("DiSMEC beats a label tree with its loss", "P@1", "DiSMEC", "Parabel"),
        ("a label tree beats FastXML's trees", "P@1", "Parabel", "FastXML"),
        ("FastXML beats PfastreXML at the head", "P@1", "FastXML", "PfastreXML"),
        ("a label tree beats FastXML on the tail", "PSP@5", "Parabel", "FastXML"),
        ("propensities in the nodes help the tail", "PSP@1", "PfastXML", "FastXML"),
        ("propensities in the nodes help the tail", "PSP@5", "PfastXML", "FastXML"),
        ("re-ranking helps the tail", "PSP@1", "PfastreXML", "PfastXML"),
        ("re-ranking helps the tail", "PSP@5", "PfastreXML", "PfastXML"),
    ]
    rows = []
    for claim, metric, left, right in claims:
        if right not in value.index or (left != "all" and left not in value.index):
            continue
        better = value[metric].drop(right).min() if left == "all" else value[metric][left]
        worse = value[metric][right]
        rows.append((claim, f"{left} > {right}", metric, better, worse, "yes" if better > worse else "no"))
    return pd.DataFrame(rows, columns=["claim", "order", "metric", "left", "right", "holds"])


def check_orders(table: pd.DataFrame) -> pd.DataFrame:
    """The numbers; a verdict can turn on the last digit."""
    return table.drop(columns="holds")


SHOWN = ("P@1", "P@5", "PSP@1", "PSP@5")


def compute(metrics: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: model, metric, k, ours, printed, split; the last two NaN where no printed row stands beside.

    Parameters
    ----------
    metrics : DataFrame
        :func:`compute_table`.
    printed : DataFrame
        :func:`compute_printed`.
    """
    long = metrics.melt("model", SHOWN, "metric", "ours")
    long[["metric", "k"]] = long["metric"].str.split("@", expand=True)
    known = printed[["model", "metric", "k", "printed", "split"]].astype({"printed": float})
    table = long.astype({"k": int}).merge(known, on=["model", "metric", "k"], how="left")
    return table[["model", "metric", "k", "ours", "printed", "split"]]


def check(table: pd.DataFrame) -> pd.DataFrame:
    """The values; the jackknife's error moves with a hit more or less."""
    return table.drop(columns="split")


def plot(table: pd.DataFrame, twin: bool, ax=None) -> Figure:
    """Ours (filled, with twice the standard error of the test points where it is known) and the printed value (hollow)
    for P@1, P@5, PSP@1 and PSP@5; table: :func:`compute`."""
    names = list(dict.fromkeys(table["model"]))
    with figures.new(looks.MEDIUM, 3.2, ncols=len(SHOWN), sharey=True, ax=ax) as (fig, axes):
        best = {}
        for axis, column in zip(axes, SHOWN, strict=True):
            metric, _, k = column.partition("@")
            part = table[(table["metric"] == metric) & (table["k"] == int(k))]
            at = [names.index(model) for model in part["model"]]
            axis.errorbar(part["ours"], at, xerr=part["split"], fmt="o", color=looks.INK, elinewidth=0.8, label="ours")
            label = "printed (real data; ours is a twin)" if twin else "printed"
            mark = {"fillstyle": "none", "markersize": 6, "linestyle": "none"}
            axis.plot(part["printed"], at, "s", color=looks.RUST, label=label, **mark)
            axis.set(xlabel=f"{column} (%)", title="head counts most" if metric == "P" else "tail counts more")
            figures.draws(axis, x=("ours", "printed"))
            best[column] = part["model"][part["ours"].idxmax()]
        looks.title(fig, f"{best['P@1']} leads at the head (P@1), {best['PSP@5']} at the tail (PSP@5)")
        axes[0].set_yticks(range(len(names)), names)
        axes[0].invert_yaxis()
        looks.legend(fig, axes[0])
    return fig
