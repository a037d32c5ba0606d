"""Table 1 anew: what each metric keeps of its value where only the most frequent labels are trained, beside print."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, metrics
from xcrepro.data.dataset import Dataset
from xcrepro.papers.coverage import _common
from xcrepro.papers.coverage._common import KS, Models, head, only
from xcrepro.predictions import TopK
from xcrepro.repro import figures, tables

models, wide = _common.models, _common.wide
ORDER = ("P", "nDCG", "Abandonment", "PSnDCG", "nDCG complete", "PSP", "P complete", "coverage")
ORDER += ("macro-P", "macro-R", "macro-F1")


def compute(ds: Dataset, found: Models) -> pd.DataFrame:
    """Every metric of each model, what is kept of it, and the printed table 1.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        Number of labels -> model, from :func:`models`.

    Returns
    -------
    DataFrame
        The columns of :func:`xcrepro.papers.coverage._common.measure`, then printed full, printed head (percent, of
        13,330 labels of AmazonCat-13K and of the 1,000 most frequent) and printed kept (percent of full); NaN for
        metrics that the paper's table does not have.
    """
    return _common.measure(ds, found).merge(_printed(), on=["metric", "k"], how="left", validate="many_to_one")


def check_kept(table: pd.DataFrame) -> pd.DataFrame:
    """Our values alone, a column a number of labels, without the metrics that another training moves further."""
    return wide(_common.stable_metrics(table))


def _printed() -> pd.DataFrame:
    """Table 1 under the names used here."""
    t = _common.printed_table(1)
    names = t["metric"].replace({"N": "nDCG", "Cov": "coverage"}).str.replace("_", "-")
    t = t.assign(metric=names).astype({"k": int})
    t = tables.spread(t, ["metric", "k"], "variant", "value")
    t = t.rename(columns={"full": "printed full", "head-1000": "printed head"})
    return t.assign(**{"printed kept": 100 * t["printed head"] / t["printed full"]})


def compare_with_printed(table: pd.DataFrame) -> pd.DataFrame:
    """Table 1 anew with the smallest head of labels, and as printed.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        metric, k, full, head (percent), kept (percent of full), then printed full, printed head, printed kept.
    """
    part = table[(table["labels"] == table["labels"].min()) & table["metric"].isin(ORDER)].reset_index(drop=True)
    columns = ["metric", "k", "full", "head", "kept", "printed full", "printed head", "printed kept"]
    return part.rename(columns={"value": "head"})[columns]


def compute_mean_kept(table: pd.DataFrame) -> pd.DataFrame:
    """What is kept with the smallest head, on average over k.

    The printed nDCG@1 is left out: 58.1 where P@1 is 93.0 cannot be.

    Parameters
    ----------
    table : DataFrame
        From :func:`compare_with_printed`.

    Returns
    -------
    DataFrame
        metric, kept (ours), printed kept, percent; smallest loss first.
    """
    misprint = (table["metric"] == "nDCG") & (table["k"] == 1)
    table = table.assign(**{"printed kept": table["printed kept"].mask(misprint)})
    means = table.groupby("metric", sort=False)[["kept", "printed kept"]].mean()
    return means.sort_values("kept", ascending=False, kind="stable").reset_index()


def compute_struck_out(ds: Dataset, found: Models, k: int = 5) -> pd.DataFrame:
    """Is training on the head the same as striking the tail out of what the full model predicts?

    Parameters
    ----------
    ds : Dataset
    found : dict of int to csr_matrix
        From :func:`models`.
    k : int

    Returns
    -------
    DataFrame
        labels, positives (percent of the train positives that these labels have), same in top k (percent of the k
        places filled alike), P@k trained and P@k struck out (percent).
    """
    *heads, n_labels = found
    rows = []
    for n in heads:
        keep = head(ds.label_counts, n)
        tops = [TopK.from_scores(model, k) for model in (found[n], only(found[n_labels], keep))]
        P = [100 * float(metrics.precision(ds.test.Y, top, k)[0]) for top in tops]
        same = 100 * float(np.mean(tops[0].ids == tops[1].ids))
        rows.append((n, 100 * ds.label_counts[keep].sum() / ds.label_counts.sum(), same, *P))
    columns = ["labels", "positives", f"same in top {k}", f"P@{k} trained", f"P@{k} struck out"]
    return pd.DataFrame(rows, columns=columns)


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """What is kept of each metric with a head of labels, a panel a k: filled marks are ours, hollow ones table 1's.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of three Axes, optional
    """
    table = table[table["metric"].isin(ORDER)]
    place = {name: i for i, name in enumerate(name for name in ORDER if name in set(table["metric"]))}
    *heads, most = sorted(table["labels"].unique())
    hollow = {"color": looks.RUST, "fillstyle": "none", "markersize": 7, "linestyle": "none"}
    colours = looks.INK, looks.TEAL, looks.AMBER, looks.VIOLET, looks.SKY
    style = dict(zip(heads, itertools.cycle(zip("osD^v", colours, strict=True)), strict=False))
    with figures.new(looks.WIDE, 3.7, ncols=len(KS), sharey=True, sharex=True, ax=ax) as (fig, axes):
        for panel, k in zip(axes, KS, strict=True):
            panel.axvline(100, color="0.5", linewidth=0.8)
            for n, (mark, colour) in style.items():
                part = table[(table["labels"] == n) & (table["k"] == k)]
                y = part["metric"].map(place)
                panel.plot(part["kept"], y, mark, color=colour, linestyle="none", label=f"{n:,} of {most:,} labels")
            panel.plot(part["printed kept"], y, "s", **hollow, label="printed: AmazonCat-13K, 1,000 of 13,330")
            panel.set(xlabel=f"kept of the metric @{k}, %", title=f"k = {k}")
            figures.draws(panel, x=("kept", "printed kept"))
        axes[0].set_yticks(list(place.values()), list(place))
        axes[0].invert_yaxis()
        looks.legend(fig, axes[0])
        looks.title(fig, describe_loss(table))
    return fig


def describe_loss(table: pd.DataFrame) -> str:
    """What P@5, coverage@5 and macro-F1@5 keep with the smallest head.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    str
    """
    n, most = table["labels"].min(), table["labels"].max()
    kept = table[(table["labels"] == n) & (table["k"] == 5)].set_index("metric")["kept"].map("{:.0f} %".format)
    words = f"P@5 keeps {kept['P']} of its value, coverage@5 {kept['coverage']}, macro-F1@5 {kept['macro-F1']}"
    return f"Trained on {n:,} of {most:,} labels, {words}"
