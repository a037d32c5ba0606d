"""What the item on the baselines computes and draws: the repository's metrics, its printed rows beside ours, and what
keeps the two apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import published
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import baselines, datasets
from xcrepro.inputs.datasets import weights
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK
from xcrepro.repro import figures

KS = (1, 3, 5)
METRICS = ("P", "nDCG", "PSP", "PSnDCG")
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
BLOCKS = 20


def metrics(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """The repository's metrics of each model, percent: model, then P@1 ... PSnDCG@5."""
    w, rows = weights(ds), []
    for name, top in tops.items():
        found = ranking.values(METRICS, ds.test.Y, top, KS, w)
        rows.append({"model": name} | {f"{m}@{k}": 100 * found[m][i] for m in METRICS for i, k in enumerate(KS)})
    return pd.DataFrame(rows)


def printed(ds: Dataset) -> pd.DataFrame:
    """The repository's rows for the methods that our baselines stand for: model, method, metric, k, printed (text).

    No rows where the dataset has no benchmark table or is none of the registry's.
    """
    columns = ["model", "method", "metric", "k", "printed"]
    name = datasets.registry_name(ds)
    source = f"xcrepo:{registry.get(name).printed_name}" if name in registry.names() else ""
    if source not in published.sources():
        return pd.DataFrame(columns=columns)
    table, rows = published.table(source), []
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


def beside(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """Every number of a model that has a printed row: model, method, metric, k, ours, printed, difference, and what may
    explain the difference (points):

    - ``split``: twice the standard error that the choice of test points leaves, by a jackknife over 20 blocks of rows.
    - ``ties``: by how much the metric moves when equal scores go to the highest label id in place of the lowest.
    - ``definition``: how far the other common definition is from ours: nDCG and PSnDCG with the ideal of k hits.

    ``explained by``: the first of these that is at least as large as the difference (and, for a definition, of its sign);
    ``more`` where none is: training, parameters or features.
    """
    w, rows = weights(ds), []
    rows_of = printed(ds)
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
        ranking.values(METRICS, Y[keep], top.rows(keep), KS, inverse_propensity) for keep in blocks_left_out(len(top))
    ]
    return {name: jackknife_error(np.array([values[name] for values in left])) for name in METRICS}


def blocks_left_out(n: int) -> Iterator[np.ndarray]:
    """The rows that stay when one of 20 blocks of consecutive rows after the other is left out (n below 20: one row)."""
    for low, high in itertools.pairwise(np.linspace(0, n, min(BLOCKS, n) + 1).astype(int)):
        yield np.r_[0:low, high:n]


def jackknife_error(left_out: np.ndarray) -> np.ndarray:
    """Standard error of a statistic from its values with one block left out: (blocks, ...) -> (...).

    >>> jackknife_error(np.array([[1.0], [2.0], [3.0]])).round(4)      # sqrt(2/3 * (1 + 0 + 1))
    array([1.1547])
    """
    blocks = len(left_out)
    return np.sqrt((blocks - 1) / blocks * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """How many differences each explanation covers, by model: integers."""
    order = ["equal", "split", "ties", "definition", "more"]
    counts = pd.crosstab(table["model"], table["explained by"]).reindex(columns=order, fill_value=0)
    return counts.loc[list(dict.fromkeys(table["model"]))].rename_axis(columns=None).reset_index()


def orders(found: pd.DataFrame) -> pd.DataFrame:
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


def plot(found: pd.DataFrame, beside: pd.DataFrame, twin: bool) -> Figure:
    """Ours (filled, with twice the standard error of the test points where it is known) beside the printed value (hollow)
    for P@1, P@5, PSP@1 and PSP@5."""
    names = list(found["model"])
    with figures.new(width=7.0, height=3.2, ncols=4, sharey=True) as (fig, axes):
        for axis, column in zip(axes, ("P@1", "P@5", "PSP@1", "PSP@5"), strict=True):
            metric, _, k = column.partition("@")
            axis.plot(found[column], range(len(names)), "o", color="C0", label="ours", linestyle="none")
            part = beside[(beside["metric"] == metric) & (beside["k"] == int(k))]
            at = [names.index(model) for model in part["model"]]
            axis.errorbar(part["ours"], at, xerr=part["split"], fmt="none", ecolor="C0", linewidth=0.8)
            shown = part["printed"].astype(float)
            axis.plot(shown, at, "s", color="C1", fillstyle="none", markersize=6, linestyle="none", label="printed")
            axis.set(xlabel=f"{column} (%)", title="head counts most" if metric == "P" else "tail counts more")
        best = {column: found["model"][found[column].idxmax()] for column in ("P@1", "PSP@5")}
        fig.suptitle(f"{best['P@1']} leads at the head (P@1), {best['PSP@5']} at the tail (PSP@5)", fontsize=9)
        axes[0].set_yticks(range(len(names)), names)
        axes[0].invert_yaxis()
        handles, labels = axes[0].get_legend_handles_labels()
        labels = [label + (" (real data; ours is a twin)" if twin and label == "printed" else "") for label in labels]
        fig.legend(handles, labels, loc="outside lower center", ncols=2)
    return fig


def trainings(ds: Dataset, names: list[str], seed: int = 0) -> pd.DataFrame:
    """What training cost: model, parameters (text), train seconds, prediction in ms a point; NaN where it was not noted.

    Seconds are those of the run that trained; they are shown, never compared.
    """
    rows = []
    for name in names:
        about = baselines.training(name, ds, seed).about()
        points = about.get("predicted points", 0)
        per_point = 1000 * about.get("predict seconds", np.nan) / points if points else np.nan
        rows.append((name, about.get("model", ""), about.get("train seconds", np.nan), per_point))
    return pd.DataFrame(rows, columns=["model", "parameters", "train s", "predict ms/point"])
