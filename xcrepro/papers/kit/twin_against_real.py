"""The twin held to real data: statistics that were counted in them, and baselines beside the printed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, metrics, paths, published
from xcrepro.arguments import one_of
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import parameters
from xcrepro.inputs.datasets import printed_name, printed_rows, weights
from xcrepro.inputs.twin_statistics import KS, RECORD, statistics
from xcrepro.predictions import TopK
from xcrepro.repro import figures, tables

TOLERANCE = {"Popularity PSP": 1.5, "P": 4.0, "PSP": 4.0, "Cov": 8.0}
"""How far the twin may be from print, in points."""
NEAR, LEAST = 0.2, 0.02
"""How far a statistic may be from the real one: a share of that, and at least so much."""
GAP = "confidence - accuracy"
METRICS = ("P", "PSP", "Cov", GAP)
# Where a model is printed under another name.
_PRINTED_AS = {"1-vs-All": ("1-vs-All", "DiSMEC")}
# The models whose scores are probabilities: "consistent under-confidence" (calibration, section 5).
_PROBABILITIES = ("1-vs-All", "PLT")
_ROW = ["target", "twin", "difference", "allowed", "within", "beyond"]

# ---------------------------------------------------------------- statistics


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
    table = pd.read_csv(paths.committed(RECORD))
    return table.loc[table["dataset"] == dataset, ["share", "statistic", "value"]].reset_index(drop=True)


def compute_statistics(twins: Mapping[str, Twin], scales: Sequence[float]) -> pd.DataFrame:
    """Each statistic that was counted in real data, there and in the twin of the same scale.

    Parameters
    ----------
    twins : mapping of str to Twin
        Key of the catalogue -> twin.
    scales : sequence of float
        Those of the twins. Datasets of which that share of the points was not counted are left out.

    Returns
    -------
    DataFrame
        dataset (as it is printed), statistic, target (in real data), twin, difference, allowed (:data:`NEAR` of the target, at
        least :data:`LEAST`; Popularity's P and PSP as :data:`TOLERANCE` has them), within, beyond (by how much not; 0 within).
    """
    rows = []
    for (name, ds), scale in zip(twins.items(), scales, strict=True):
        counted = real(name)
        there = counted[counted["share"] == scale].set_index("statistic")["value"]
        found = statistics(ds) if len(there) else {}
        for statistic, target in there.items():
            kind = statistic.partition("@")[0]
            near = TOLERANCE.get(kind.removeprefix("Popularity "), max(LEAST, NEAR * target))
            allowed = TOLERANCE.get(kind, near)
            rows.append((printed_name(ds), statistic, *_judged(target, found[statistic], allowed)))
    return pd.DataFrame(rows, columns=["dataset", "statistic", *_ROW])


def _judged(target: float, value: float, allowed: float) -> tuple:
    off = value - target
    beyond = max(abs(off) - allowed, 0.0)
    return target, value, off, allowed, beyond == 0, beyond


# ---------------------------------------------------------------- baselines


def printed(ds: Dataset) -> pd.DataFrame:
    """The rows that are printed for the dataset: the coverage paper's PLT, jain16's table 3, the benchmark table.

    Parameters
    ----------
    ds : Dataset

    Returns
    -------
    DataFrame
        method, metric (P, PSP or Cov), k, value (percent); of several prints of one number the first, documents in the
        order named: the page's PSP of EURLex-4K stand in the wrong rows (see ``beyond/audit``).
    """
    name = printed_name(ds)
    jain16 = [published.table(f"jain16:table3{letter}") for letter in "abcde"]
    coverage = published.table("coverage:table2")
    parts = [coverage[coverage["method"] == "PLT"], *jain16, printed_rows(ds)]
    rows = pd.concat([part[part["dataset"] == name] for part in parts])
    rows = rows[rows["metric"].isin(METRICS) & rows["k"].isin(KS)]
    return rows.drop_duplicates(["method", "metric", "k"])[["method", "metric", "k", "value"]].reset_index(drop=True)


def compute(twins: Mapping[str, Twin], tops: Mapping[str, Mapping[str, TopK]]) -> pd.DataFrame:
    """What baselines reach on twins, beside what is printed.

    Parameters
    ----------
    twins : mapping of str to Twin
        Key of the catalogue -> twin.
    tops : mapping of str to mapping of str to TopK
        Key -> model -> its predictions for the test points, 5 or more a point.

    Returns
    -------
    DataFrame
        dataset (as it is printed), model, metric, k, printed as (the method's name there), then as in
        :func:`compute_statistics`, in percent. metric is P, PSP or Cov (over the labels with a test point) where they are
        printed; for the models whose scores are probabilities also confidence - accuracy in the first 5 places, which has
        no target but to be below 0.
    """
    rows = []
    for name, models in tops.items():
        ds, weight = twins[name], weights(twins[name])
        there = printed(ds).set_index(["method", "metric", "k"])["value"]
        for model, top in models.items():
            precision = metrics.precision(ds.test.Y, top, KS)
            values = {
                "P": precision,
                "PSP": metrics.psp(ds.test.Y, top, KS, inverse_propensity=weight),
                "Cov": metrics.coverage(ds.test.Y, top, KS, over="test"),
            }
            for metric, found in values.items():
                allowed = TOLERANCE.get(f"{model} {metric}", TOLERANCE[metric])
                for k, value in zip(KS, 100 * found, strict=True):
                    names = [name for name in _PRINTED_AS.get(model, (model,)) if (name, metric, k) in there.index]
                    if names:
                        judged = _judged(there[(names[0], metric, k)], value, allowed)
                        rows.append((printed_name(ds), model, metric, k, names[0], *judged))
            if model in _PROBABILITIES:
                confidence = np.where(top.ids[:, : KS[-1]] >= 0, top.scores[:, : KS[-1]], 0).mean()
                gap = 100 * (confidence - precision[-1])
                judged = np.nan, gap, np.nan, np.nan, bool(gap < 0), max(gap, 0.0)
                rows.append((printed_name(ds), model, GAP, KS[-1], "", *judged))
    return pd.DataFrame(rows, columns=["dataset", "model", "metric", "k", "printed as", *_ROW])


# ---------------------------------------------------------------- for the reader


def side_by_side(table: pd.DataFrame, decimals: int = 1) -> pd.DataFrame:
    """Twin and target in one cell each: ``"87.1 | 82.4"``, with a star where it is not within.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute` or :func:`compute_statistics`.
    decimals : int

    Returns
    -------
    DataFrame
        Texts, empty where nothing is compared. Of :func:`compute` a row a dataset and model, a column a metric and k; of
        :func:`compute_statistics` a row a statistic, a column a dataset.
    """
    target = [f" | {value:.{decimals}f}" if np.isfinite(value) else "" for value in table["target"]]
    star = np.where(table["within"], "", " *")
    cells = [f"{value:.{decimals}f}{t}{s}" for value, t, s in zip(table["twin"], target, star, strict=True)]
    table = table.assign(cell=cells)
    if "statistic" in table:
        return tables.spread(table, ["statistic"], "dataset", "cell").fillna("")
    table["column"] = table["metric"] + "@" + table["k"].astype(str)
    wide = tables.spread(table, ["dataset", "model"], "column", "cell").fillna("")
    columns = [name for metric in METRICS for name in wide if name.startswith(f"{metric}@")]
    return wide[["dataset", "model", *columns]]


def findings(table: pd.DataFrame) -> list[str]:
    """What is met and what is missed, a sentence a dataset.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute` or :func:`compute_statistics`.

    Returns
    -------
    list of str
        With all that is missed, the farthest beyond what is allowed first, and by how much beyond; several k of one model and
        metric as one, by the largest. Counts of what is shown, against bounds that were set, without a test.
    """
    if table.empty:
        return ["Nothing is compared."]
    if "statistic" in table:
        table = table.assign(what=table["statistic"], k="")
    else:
        table = table.assign(what=table["model"] + "'s " + table["metric"] + "@", k=table["k"].astype(str))
    said = []
    for dataset, part in table.groupby("dataset", sort=False):
        missed = part[~part["within"]].groupby("what", sort=False)
        missed = missed.agg(k=("k", "/".join), beyond=("beyond", "max"), n=("k", "size"))
        missed = missed.sort_values("beyond", ascending=False, kind="stable")
        by = [f"{beyond:.0f}" if beyond >= 10 else f"{beyond:.2g}" for beyond in missed["beyond"]]
        names = [
            f"{row.Index}{row.k} by {'up to ' if row.n > 1 else ''}{most}"
            for row, most in zip(missed.itertuples(), by, strict=True)
        ]
        rest = f"; beyond what is allowed: {', '.join(names)}" if names else ""
        said.append(f"{dataset}: {part['within'].sum()} of {len(part)} within{rest}.")
    return said


def check_parameters(values: Mapping[str, object]) -> None:
    """Refuse parameters that a run could not use, in the notebook's own names.

    Parameters
    ----------
    values : mapping of str to object

    Raises
    ------
    ArgumentError
        As :func:`xcrepro.inputs.parameters.check`; for ``trained`` that are not among ``names``, ``one_vs_all`` that are not
        among ``trained``.
    """
    parameters.check(dict(values))
    for name, others in (("trained", "names"), ("one_vs_all", "trained")):
        for one in values[name]:
            one_of(f"parameter {name}", one, values[others])


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Every compared number, a panel a dataset: printed to the right, on the twin upwards.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of Axes, optional
        As many as whole rows of up to two panels need; those left over are hidden.
    """
    compared = table[table["target"].notna()]
    datasets = list(compared["dataset"].unique())
    columns = min(2, max(len(datasets), 1))
    rows = max(-(-len(datasets) // columns), 1)
    size = looks.MEDIUM if columns > 1 else looks.NARROW
    with figures.new(size, 0.9 + 3.0 * rows, columns, rows, ax, squeeze=False) as (fig, axes):
        for panel, dataset in zip(axes.flat, datasets, strict=False):
            part = compared[compared["dataset"] == dataset]
            top = 1.05 * max(part["target"].max(), part["twin"].max())
            ends, allowed = np.array([0.0, top]), TOLERANCE["P"]
            panel.plot(ends, ends, color=looks.GREY, linewidth=0.8, label="_guide: as printed")
            panel.fill_between(ends, ends - allowed, ends + allowed, color="0.92", linewidth=0, label="_guide: near")
            for model, of_model in part.groupby("model", sort=False):
                look = looks.of(model)
                for metric, marks in of_model.groupby("metric", sort=False):
                    fill = {"P": look.colour, "PSP": looks.WHITE, "Cov": looks.SKY}[metric]
                    style = look.mark() | {"facecolor": fill, "edgecolor": look.colour, "s": 26, "zorder": 3}
                    if look.marker == "x":
                        style = look.mark() | {"s": 26, "zorder": 3}
                    panel.scatter(marks["target"], marks["twin"], label=model, **style)
            panel.set(xlim=(0, top), ylim=(0, top), aspect="equal")
            panel.set_title(f"{dataset}: {part['within'].sum()} of {len(part)} near", loc="left")
            figures.draws(panel, x="target", y="twin")
        looks.label_grid(axes, "printed, %", "on the twin, %", len(datasets))
        looks.title(fig, "Printed results and the twins' (full: P, hollow: PSP, light: coverage; band: 4 points)")
        looks.legend(fig, *axes.flat[: len(datasets)], ncols=3 if columns == 1 else 5)
    return fig
