"""The twin held to real data: statistics that were counted in them, and baselines beside the printed rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, metrics, paths, propensity, published
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs.datasets import printed_name, printed_rows
from xcrepro.inputs.twin_statistics import KS, statistics
from xcrepro.predictions import TopK
from xcrepro.repro import figures

TOLERANCE = {"Popularity PSP": 1.5, "P": 4.0, "PSP": 4.0, "Cov": 8.0}
"""How far the twin may be from print, in points."""
# Where a model is printed under another name.
_PRINTED_AS = {"OneVsRest": ("1-vs-All", "DiSMEC"), "PLT": ("PLT", "Parabel")}


def real(dataset: str) -> pd.DataFrame:
    """The statistics that were counted in the real data of ``dataset``.

    Parameters
    ----------
    dataset : str
        A key of the catalogue.

    Returns
    -------
    DataFrame
        share (of the dataset's points), statistic, value; no rows where nothing was counted.
    """
    table = pd.read_csv(paths.project_root() / "data" / "recorded" / "twin_statistics.csv")
    return table.loc[table["dataset"] == dataset, ["share", "statistic", "value"]].reset_index(drop=True)


def compute_statistics(twins: Mapping[float, Twin]) -> pd.DataFrame:
    """Each statistic in the real data and in twins of one dataset.

    Parameters
    ----------
    twins : mapping of float to Twin
        Scale -> twin.

    Returns
    -------
    DataFrame
        A row a scale and statistic: dataset, scale, statistic, real (NaN where it was not counted at that share of the points),
        twin.
    """
    rows = []
    for scale, ds in twins.items():
        counted = real(ds.entry.name)
        there = counted[counted["share"] == scale].set_index("statistic")["value"]
        rows += [(ds.entry.name, scale, name, there.get(name, np.nan), value) for name, value in statistics(ds).items()]
    return pd.DataFrame(rows, columns=["dataset", "scale", "statistic", "real", "twin"])


def printed(ds: Dataset) -> pd.DataFrame:
    """The rows that are printed for the dataset: its benchmark table, jain16's Popularity, the coverage paper's PLT.

    Parameters
    ----------
    ds : Dataset

    Returns
    -------
    DataFrame
        method, metric (P, PSP or Cov), k, value (percent); of several prints of one number the first: documents in the
        order named.
    """
    name = printed_name(ds)
    others = [
        published.table(source) for source in ("coverage:table2", *(f"jain16:table3{letter}" for letter in "abcde"))
    ]
    here = [rows[rows["dataset"] == name] for rows in others]
    here[0] = here[0][here[0]["method"] == "PLT"]
    rows = pd.concat([here[0], printed_rows(ds), *(part[part["method"] == "Popularity"] for part in here[1:])])
    rows = rows[rows["metric"].isin(["P", "PSP", "Cov"]) & rows["k"].isin(KS)]
    return rows.drop_duplicates(["method", "metric", "k"])[["method", "metric", "k", "value"]].reset_index(drop=True)


def compute_baselines(ds: Twin, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """What baselines reach on the twin, beside what is printed.

    Parameters
    ----------
    ds : Twin
    tops : mapping of str to TopK
        Model -> its predictions for the test points, 5 or more a point.

    Returns
    -------
    DataFrame
        model, metric (P, PSP, Cov over the labels with a test point; confidence - accuracy at 5), k, printed (NaN: not),
        printed as (the method's name there), twin, difference, all in percent, and within: whether the difference is
        within :data:`TOLERANCE`; for confidence - accuracy, whether the models say less than they are right.
    """
    weight = propensity.inverse(ds.label_counts, ds.n_train, ds.A, ds.B)
    there = printed(ds).set_index(["method", "metric", "k"])["value"]
    rows = []
    for model, top in tops.items():
        values = {
            "P": metrics.precision(ds.test.Y, top, KS),
            "PSP": metrics.psp(ds.test.Y, top, KS, inverse_propensity=weight),
            "Cov": metrics.coverage(ds.test.Y, top, KS, over="test"),
        }
        for metric, found in values.items():
            allowed = TOLERANCE.get(f"{model} {metric}", TOLERANCE[metric])
            for k, value in zip(KS, 100 * found, strict=True):
                names = [name for name in _PRINTED_AS.get(model, (model,)) if (name, metric, k) in there.index]
                expected = there[(names[0], metric, k)] if names else np.nan
                off = value - expected
                rows.append(
                    (model, metric, k, expected, names[0] if names else "", value, off, bool(abs(off) <= allowed))
                )
        gap = 100 * (np.where(top.ids[:, :5] >= 0, top.scores[:, :5], 0).mean() - values["P"][-1])
        rows.append((model, "confidence - accuracy", 5, np.nan, "", gap, np.nan, bool(gap < 0)))
    return pd.DataFrame(rows, columns=["model", "metric", "k", "printed", "printed as", "twin", "difference", "within"])


def summary(table: pd.DataFrame) -> str:
    """One sentence: how many printed numbers the twin meets, and the largest miss.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_baselines`.
    """
    compared = table[table["printed"].notna()]
    if compared.empty:
        return "Nothing is printed for these models on this dataset."
    worst = compared.loc[compared["difference"].abs().idxmax()]
    return (
        f"{compared['within'].sum()} of {len(compared)} printed numbers are met within "
        f"{TOLERANCE['P']:g} points ({TOLERANCE['Cov']:g} of coverage, {TOLERANCE['Popularity PSP']:g} of Popularity's PSP); "
        f"the farthest is {worst['model']}'s {worst['metric']}@{worst['k']}: "
        f"{worst['twin']:.1f} for {worst['printed']:.1f} printed."
    )


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Every compared number: on the twin (up) against printed (right).

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_baselines`.
    ax : Axes, optional
    """
    compared = table[table["printed"].notna()]
    with figures.new(width=looks.NARROW, height=3.9, ax=ax) as (fig, panel):
        for metric, part in compared.groupby("metric", sort=False):
            panel.plot(part["printed"], part["twin"], "o", markersize=4, label=metric)
        panel.plot([0, 100], [0, 100], color=looks.GREY, linewidth=0.8)
        panel.set(xlabel="printed, %", ylabel="on the twin, %", xlim=(0, 100), ylim=(0, 100))
        figures.draws(panel, x="printed", y="twin")
        looks.title(fig, f"{compared['within'].sum()} of {len(compared)} printed numbers are met")
        looks.legend(fig, panel)
    return fig
