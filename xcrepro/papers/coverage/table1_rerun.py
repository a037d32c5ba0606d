"""Table 1 anew: what each metric keeps of its value where only the most frequent labels are trained, beside print."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, metrics
from xcrepro.data.dataset import Dataset
from xcrepro.papers.coverage import _common
from xcrepro.papers.coverage._common import KS, Models, head, only
from xcrepro.predictions import TopK
from xcrepro.repro import figures, tables

models, wide, check_parameters = _common.models, _common.wide, _common.check_heads
ORDER = ("P", "nDCG", "Abandonment", "PSnDCG", "nDCG complete", "PSP", "P complete", "coverage")
ORDER += ("macro-P", "macro-R", "macro-F1")


def compute(ds: Dataset, found: Mapping[str, Models]) -> pd.DataFrame:
    """Every metric of each model, what is kept of it, and the printed table 1.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        Name -> number of labels -> model, from :func:`models`.

    Returns
    -------
    DataFrame
        model, the columns of :func:`xcrepro.papers.coverage._common.measure`, then printed full, printed head (percent, of
        13,330 labels of AmazonCat-13K and of the 1,000 most frequent), printed kept (percent of full; NaN for metrics that
        the paper's table does not have, and where the audit doubts a value) and doubt (why it does).
    """
    table = pd.concat([_common.measure(ds, one).assign(model=name) for name, one in found.items()], ignore_index=True)
    table = table[["model", *table.columns.drop("model")]]
    return table.merge(_printed(), on=["metric", "k"], how="left", validate="many_to_one").fillna({"doubt": ""})


def _printed() -> pd.DataFrame:
    """Table 1 under the names used here."""
    t = _common.printed_and_doubted(1)
    names = t["metric"].replace({"N": "nDCG", "Cov": "coverage"}).str.replace("_", "-")
    t = t.assign(metric=names).astype({"k": int})
    doubt = t.groupby(["metric", "k"])["doubt"].agg(lambda why: "; ".join(filter(None, why)))
    t = tables.spread(t, ["metric", "k"], "variant", "value")
    t = t.rename(columns={"full": "printed full", "head-1000": "printed head"}).join(doubt, on=["metric", "k"])
    sound = t["doubt"] == ""
    return t.assign(**{"printed kept": (100 * t["printed head"] / t["printed full"]).where(sound)})


def compare_with_printed(table: pd.DataFrame) -> pd.DataFrame:
    """Table 1 anew with the smallest head of labels, and as printed.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        model, metric, k, full, head (percent), kept (percent of full), then printed full, printed head (a text, with † where
        the audit doubts it), printed kept.
    """
    part = table[(table["labels"] == table["labels"].min()) & table["metric"].isin(ORDER)].reset_index(drop=True)
    part = part.rename(columns={"value": "head"})
    for name in ("printed full", "printed head"):
        mark = np.where((part["doubt"] != "") & (name == "printed head"), "†", "")
        part[name] = part[name].map(lambda value: "" if np.isnan(value) else f"{value:.1f}") + mark
    columns = ["model", "metric", "k", "full", "head", "kept", "printed full", "printed head", "printed kept"]
    return part[columns]


def doubts(table: pd.DataFrame) -> str:
    """A footnote: which printed values the audit doubts, and why. ``table``: from :func:`compute`."""
    found = table.drop_duplicates(["metric", "k"])
    found = found[found["doubt"] != ""]
    said = [f"{row.metric}@{row.k}: {row.doubt}" for row in found.itertuples()]
    return f"† doubted by the audit, and not used: {' '.join(said)}" if said else ""


def compute_mean_kept(table: pd.DataFrame) -> pd.DataFrame:
    """What is kept with the smallest head, on average over k.

    Parameters
    ----------
    table : DataFrame
        From :func:`compare_with_printed`.

    Returns
    -------
    DataFrame
        model, metric, kept (ours), printed kept (of the k that are not doubted), percent; smallest loss first.
    """
    means = table.groupby(["model", "metric"], sort=False)[["kept", "printed kept"]].mean().reset_index()
    place = {name: i for i, name in enumerate(table["model"].unique())}
    means = means.sort_values("kept", ascending=False, kind="stable")
    return means.sort_values("model", key=lambda names: names.map(place), kind="stable", ignore_index=True)


def findings(ds: Dataset, found: Mapping[str, Models], table: pd.DataFrame, k: int = 5) -> list[str]:
    """What each model keeps with the smallest head, whether P keeps more than the averages over labels, and print.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        From :func:`models`.
    table : DataFrame
        From :func:`compute`.
    k : int

    Returns
    -------
    list of str
    """
    said = []
    for name, one in found.items():
        n, *_, full = [*one, max(one)]
        if n == full:
            continue
        kept = _common.measure_kept(ds, one, n, k)
        said += [f"{_common.say_kept(kept, name, n, full, k)}.", f"{name}: {_common.against_precision(kept, k)}."]
    printed = table[table["k"] == k].drop_duplicates("metric").set_index("metric")["printed kept"].dropna()
    parts = ", ".join(f"{name}@{k} {printed[name]:.0f}" for name in _common.KEPT if name in printed)
    said.append(f"Printed, DiSMEC on AmazonCat-13K with 1,000 of 13,330 labels (%): {parts}; no errors are printed.")
    return said


def findings_recorded(
    ds: Dataset, found: Mapping[str, Models], recorded: Mapping[str, pd.DataFrame], k: int = 5
) -> list[str]:
    """Whether real data say the same of the first model, with its smallest head.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        From :func:`models`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check_kept`, as recorded.
    k : int

    Returns
    -------
    list of str
        Of :func:`xcrepro.papers.coverage._common.kept_recorded`.
    """
    one = next(iter(found.values()))
    if len(one) < 2:
        return []
    return [_common.kept_recorded(_common.measure_kept(ds, one, min(one), k), recorded, k, share=0)]


def compute_struck_out(ds: Dataset, found: Models, k: int = 5) -> pd.DataFrame:
    """Is training on the head the same as striking the tail out of what the full model predicts?

    Parameters
    ----------
    ds : Dataset
    found : dict of int to csr_matrix
        Of one model, from :func:`models`.
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

    Of the first model; printed values that the audit doubts are left out.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of three Axes, optional
    """
    name = table["model"].iloc[0]
    table = table[table["metric"].isin(ORDER) & (table["model"] == name)]
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
        looks.title(fig, f"What each metric keeps of its value with a head of labels: {name}, and table 1 as printed")
    return fig
