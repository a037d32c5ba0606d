"""A dataset's benchmark table with our baselines: the repository's metrics, its printed rows, what keeps them apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import datasets, ranked
from xcrepro.inputs.datasets import weights
from xcrepro.inputs.ranked import KS, METRICS
from xcrepro.metrics import ranking, registry
from xcrepro.metrics.significance import jackknife_blocks, jackknife_error
from xcrepro.predictions import TopK
from xcrepro.repro import figures

PRINTED_AS = {code: registry.printed(code)[0] for code in ("P", "N", "PSP", "PSN")}
"""The record's name of a metric -> ours."""
OTHER_DEFINITION = {"nDCG": "nDCG (ideal k)", "PSnDCG": "PSnDCG (ideal k)"}
MODELS = ("Popularity", "1-vs-All", "DiSMEC", "Parabel", "PLT", "FastXML", "PfastXML", "PfastreXML", "Neural")
PRINTED_METHODS = {"1-vs-All": ("1-vs-All", "DiSMEC"), "DiSMEC": ("DiSMEC",), "Parabel": ("Parabel",)}
PRINTED_METHODS |= {"FastXML": ("FastXML",), "PfastreXML": ("PfastreXML",)}
"""Baseline -> the printed method it is compared with, the first that the dataset's table has. Others have none."""
SHOWN = ("P@1", "P@5", "PSP@1", "PSP@5")

compute_table = ranked.compare


def printed_rows(ds: Dataset) -> pd.DataFrame:
    """The printed rows for the methods that our baselines stand for.

    Parameters
    ----------
    ds : Dataset
        Its rows are those of :func:`xcrepro.inputs.datasets.printed_rows`: none where nothing is printed about it.

    Returns
    -------
    DataFrame
        model, method, metric, k, printed (text).
    """
    known = datasets.printed_rows(ds).dropna(subset=["value"])
    known = known.assign(metric=known["metric"].map(PRINTED_AS)).dropna(subset=["metric"]).astype({"k": int})
    parts = []
    for model, methods in PRINTED_METHODS.items():
        method = next((name for name in methods if (known["method"] == name).any()), None)
        parts.append(known[known["method"] == method].assign(model=model))
    return pd.concat(parts, ignore_index=True)[["model", "method", "metric", "k", "printed"]]


def compute_printed(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """Every number of a model that has a printed row, and what may explain the difference.

    Parameters
    ----------
    ds : Dataset
    tops : mapping
        Model -> its predictions.

    Returns
    -------
    DataFrame
        model, method, metric, k, ours (percent), printed (text), difference, and in points:

        - split: twice the standard error that the choice of test points leaves, by a jackknife over 20 blocks of rows.
        - ties: by how much the metric moves when equal scores go to the highest label id in place of the lowest.
        - definition: how far the other common definition is from ours: nDCG and PSnDCG with the ideal of k hits.

        explained by: the first of these that is at least as large as the difference (and, for a definition, of its
        sign); ``more`` where none is: training, parameters or features.
    """
    w, rows = weights(ds), []
    for model, part in printed_rows(ds).groupby("model", sort=False):
        if model not in tops:
            continue
        ours = ranking.values([*METRICS, *OTHER_DEFINITION.values()], ds.test.Y, tops[model], KS, w)
        high = ranking.values(METRICS, ds.test.Y, ties_to_highest(tops[model]), KS, w)
        error = jackknife(ds.test.Y, tops[model], w)
        for _, method, metric, k, printed in part.itertuples(index=False):
            i = KS.index(k)
            value, other = (100 * ours[name][i] for name in (metric, OTHER_DEFINITION.get(metric, metric)))
            ties = 100 * abs(high[metric][i] - ours[metric][i])
            found = value - float(printed), 200 * error[metric][i], ties, other - value
            rows.append((model, method, metric, k, value, printed, *found, _reason(*found)))
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
    order = np.lexsort((np.where(top.ids < 0, 1, -top.ids), -top.scores), axis=1)
    return TopK.from_ids(np.take_along_axis(top.ids, order, 1), n_labels=top.n_labels)


def jackknife(Y, top: TopK, inverse_propensity: np.ndarray) -> dict[str, np.ndarray]:
    """Standard errors that the choice of test points leaves, by a jackknife.

    Left out is one of 20 blocks of consecutive rows after the other.

    Parameters
    ----------
    Y : array or sparse matrix, shape (n, L)
    top : TopK
    inverse_propensity : ndarray, shape (L,)

    Returns
    -------
    dict
        Metric (of ``METRICS``) -> ndarray, one fraction for each k.
    """
    blocks = jackknife_blocks(len(top))
    left = [ranking.values(METRICS, Y[keep], top.rows(keep), KS, inverse_propensity) for keep in blocks]
    return {name: jackknife_error([values[name] for values in left]) for name in METRICS}


def compute_explained(table: pd.DataFrame) -> pd.DataFrame:
    """How many differences each explanation covers.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute_printed`.

    Returns
    -------
    DataFrame of int
        A row a model; columns model, equal, split, ties, definition, more.
    """
    order = ["equal", "split", "ties", "definition", "more"]
    counts = pd.crosstab(table["model"], table["explained by"]).reindex(columns=order, fill_value=0)
    return counts.loc[list(dict.fromkeys(table["model"]))].rename_axis(columns=None).reset_index()


def compute_orders(found: pd.DataFrame) -> pd.DataFrame:
    """The papers' orders of methods, and whether they hold here.

    Parameters
    ----------
    found : DataFrame
        Of :func:`compute_table`; orders of models that are not in it are left out.

    Returns
    -------
    DataFrame
        claim, order, metric, left and right (the numbers compared, percent; of ``all`` the least), holds (text).
    """
    value = found.set_index("model")
    claims = [
        ("every model beats the most popular labels", ["P@1"], "all", "Popularity"),
        ("DiSMEC beats a label tree with its loss", ["P@1"], "DiSMEC", "Parabel"),
        ("a label tree beats FastXML's trees", ["P@1"], "Parabel", "FastXML"),
        ("FastXML beats PfastreXML at the head", ["P@1"], "FastXML", "PfastreXML"),
        ("a label tree beats FastXML on the tail", ["PSP@5"], "Parabel", "FastXML"),
        ("propensities in the nodes help the tail", ["PSP@1", "PSP@5"], "PfastXML", "FastXML"),
        ("re-ranking helps the tail", ["PSP@1", "PSP@5"], "PfastreXML", "PfastXML"),
    ]
    rows = []
    for claim, metrics, left, right in claims:
        for metric in metrics if {left, right} - {"all"} <= set(value.index) else []:
            better = value[metric].drop(right).min() if left == "all" else value[metric][left]
            worse = value[metric][right]
            rows.append((claim, f"{left} > {right}", metric, better, worse, "yes" if better > worse else "no"))
    return pd.DataFrame(rows, columns=["claim", "order", "metric", "left", "right", "holds"])


def check_orders(table: pd.DataFrame) -> pd.DataFrame:
    """The numbers; a verdict can turn on the last digit."""
    return table.drop(columns="holds")


def compute(metrics: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws.

    Parameters
    ----------
    metrics : DataFrame
        Of :func:`compute_table`.
    printed : DataFrame
        Of :func:`compute_printed`.

    Returns
    -------
    DataFrame
        model, metric, k, ours, printed, split; the last two NaN where nothing is printed.
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
    """Ours (filled) and the printed value (hollow) for P@1, P@5, PSP@1 and PSP@5.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`. Bars are ``split``: twice the standard error of the test points.
    twin : bool
        Whether ours are of a twin; the legend says so.
    ax : array of 4 Axes, optional
        The caller's own.
    """
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
