"""Tables 2 and 3 of the coverage paper on small twins of its six datasets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.arguments import whole_number
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Measured, corrected, count
from xcrepro.inputs import parameters
from xcrepro.inputs.datasets import printed_name
from xcrepro.papers.coverage import tables2_3_rerun as rerun
from xcrepro.papers.coverage._common import (
    GREEDY,
    KS,
    MIXED,
    PLAIN,
    RANDOM,
    TREE,
    WEIGHTED,
    Run,
    at_random,
    check_betas,
    in_order,
    mixed,
    printed_table,
    scores,
)
from xcrepro.repro import figures

METRICS = ("P", "PSP", "Cov")
STABLE = 300
"""Hits, or labels covered, behind a mean over the runs from which on one more or less stays within the item's tolerance."""


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules, betas, and 2 runs or more, for an error."""
    parameters.check(values)
    check_betas(values)
    whole_number("parameter repeats", values["repeats"], 2)


def load_runs(loaded: Mapping[str, Dataset], repeats: int) -> dict[str, list[Run]]:
    """Label trees with seeds 0, 1, ... on each dataset.

    Parameters
    ----------
    loaded : mapping of str to Dataset
    repeats : int

    Returns
    -------
    dict of str to list of Run
    """
    return {name: rerun.runs(ds, repeats)[TREE] for name, ds in loaded.items()}


def compute_runs(
    loaded: Mapping[str, Dataset], found: Mapping[str, Sequence[Run]], betas: Sequence[float]
) -> pd.DataFrame:
    """Each rule of the two tables on each run, decided for each k; BRS-PLT once for k = 5, as in the paper.

    Parameters
    ----------
    loaded : mapping of str to Dataset
    found : mapping of str to sequence of Run
        Of :func:`load_runs`.
    betas : sequence of float
        Of the greedy rule; 0 is COV-PLT.

    Returns
    -------
    DataFrame
        dataset, rule, run, metric (P, PSP, Cov), k, value (percent; Cov over the labels with a test point).
    """
    wanted, rows = [PLAIN, WEIGHTED, *map(mixed, betas)], []
    for name, ds in loaded.items():
        for run in found[name]:
            for k in KS:
                rules = rerun.rules(ds, run, k, betas)
                tops = {rule: rules[rule]() for rule in wanted} | {RANDOM: at_random(run, k)}
                for rule, top in tops.items():
                    value = scores(ds, top, k)
                    rows += [(name, rule, run.number, metric, k, value[metric]) for metric in METRICS]
    table = pd.DataFrame(rows, columns=["dataset", "rule", "run", "metric", "k", "value"])
    return in_order(table, dataset=list(loaded), rule=[*wanted, RANDOM], metric=METRICS, k=None, run=None)


def compute(loaded: Mapping[str, Dataset], runs: pd.DataFrame) -> pd.DataFrame:
    """The means, with their errors, beside print.

    Parameters
    ----------
    loaded : mapping of str to Dataset
    runs : DataFrame
        Of :func:`compute_runs`.

    Returns
    -------
    DataFrame
        dataset, rule, metric, k; mean, stderr (over runs); printed; mean / PLT and printed / PLT (percent of the plain top k's
        own value, since a twin is easier or harder than its dataset); behind (hits of all runs, of Cov labels covered).
    """
    groups = runs.groupby(["dataset", "rule", "metric", "k"], sort=False)["value"]
    table = groups.agg(mean="mean", stderr="sem", n="size").reset_index()
    printed = _printed(loaded)
    keys = list(table[["dataset", "rule", "metric", "k"]].itertuples(index=False, name=None))
    table["printed"] = [printed.get(key, np.nan) for key in keys]
    own = {key: value for key, value in zip(keys, table["mean"], strict=True) if key[1] == PLAIN}
    for column, plain in (("mean", own), ("printed", printed)):
        base = [plain.get((name, PLAIN, metric, k), np.nan) for name, _, metric, k in keys]
        table[f"{column} / PLT"] = 100 * table[column] / base
    behind = []
    for one in table.itertuples():
        ds = loaded[one.dataset]
        places = ds.test.Y.shape[0] * one.k if one.metric != "Cov" else np.unique(ds.test.Y.indices).size
        behind.append(round(one.mean * one.n * places / 100))
    return table.assign(behind=behind).drop(columns="n")


def _printed(loaded: Mapping[str, Dataset]) -> dict[tuple, float]:
    """(dataset, rule, metric, k) -> what tables 2 and 3 print."""
    rows = pd.concat([printed_table(2), printed_table(3)])
    rows = rows[rows["metric"].isin(METRICS)]
    names, found = {printed_name(ds): name for name, ds in loaded.items()}, {}
    for one in rows.itertuples():
        beta = "0" if one.method == GREEDY else one.variant
        rule = mixed(float(beta)) if one.method in (GREEDY, MIXED) else one.method
        if one.dataset in names:
            found[names[one.dataset], rule, one.metric, int(one.k)] = one.value
    return found


def check(table: pd.DataFrame) -> pd.DataFrame:
    """Means with :data:`STABLE` hits behind them; NaN in the place of the others. PSP by the hits of P."""
    hits = table[table["metric"] == "P"].set_index(["dataset", "rule", "k"])["behind"]
    behind = [row.behind if row.metric != "PSP" else hits[row.dataset, row.rule, row.k] for row in table.itertuples()]
    kept = table[["dataset", "rule", "metric", "k", "mean"]].copy()
    kept["mean"] = kept["mean"].where(np.array(behind) >= STABLE)
    return kept


def lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """The means as tables 2 and 3 have them: a row a dataset and rule, a column a metric and k."""
    column = table["metric"] + "@" + table["k"].astype(str)
    wide = table.assign(column=column).pivot(index=["dataset", "rule"], columns="column", values="mean")
    rows = table[["dataset", "rule"]].drop_duplicates().itertuples(index=False, name=None)
    return (
        wide.loc[list(rows), [f"{metric}@{k}" for metric in METRICS for k in KS]]
        .rename_axis(columns=None)
        .reset_index()
    )


def findings(runs: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """On how many of dataset and k each claim of the paper comes out, and in print.

    Parameters
    ----------
    runs, table : DataFrame
        Of :func:`compute_runs` and :func:`compute`.

    Returns
    -------
    list of str
    """
    value = table.set_index(["dataset", "rule", "metric", "k"])["printed"]
    rules = list(dict.fromkeys(table["rule"]))
    betas = [rule for rule in rules if rule not in (PLAIN, WEIGHTED, RANDOM)]
    claims = [(f"{GREEDY} covers more than {other}", "Cov", GREEDY, other) for other in (PLAIN, WEIGHTED, RANDOM)]
    claims += [
        (f"{larger} has the higher P@k, over {smaller}", "P", larger, smaller)
        for smaller, larger in itertools.pairwise(betas)
    ]
    claims += [(f"{WEIGHTED} has the higher PSP@k, over {PLAIN}", "PSP", WEIGHTED, PLAIN)]
    measured = {
        key: Measured.of_runs({rule: one["value"].to_numpy() for rule, one in part.groupby("rule")})
        for key, part in runs.groupby(["dataset", "metric", "k"], sort=False)
    }
    said = []
    for claim, metric, left, right in claims:
        if not {left, right} <= set(rules):
            continue
        keys = [key for key in measured if key[1] == metric]
        found = corrected(measured[key].difference(left, right) for key in keys)
        both = [(value[name, left, metric, k], value[name, right, metric, k]) for name, _, k in keys]
        both = [pair for pair in both if not np.isnan(pair).any()]
        above = sum(a > b for a, b in both)
        text = f"Over datasets and k, {count(found, claim)}" + (f"; in print {above} of {len(both)}" if both else "")
        said.append(f"{text}.")
    return said


def plot(table: pd.DataFrame, k: int = 5, ax=None) -> Figure:
    """Cov@k against P@k as shares of PLT's own, a panel a dataset: ours filled, print hollow.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`.
    k : int
    ax : array of Axes, optional
    """
    names = list(dict.fromkeys(table["dataset"]))
    ncols = min(3, len(names))
    nrows = -(-len(names) // ncols)
    part = table[table["k"] == k]
    found = looks.distinct(dict.fromkeys(part["rule"]))
    with figures.new(looks.WIDE, 1.2 + 2.4 * nrows, nrows=nrows, ncols=ncols, squeeze=False, ax=ax) as (fig, axes):
        for axis, name in zip(axes.flat, names, strict=False):
            of = part[part["dataset"] == name].set_index(["metric", "rule"])
            for rule, look in found.items():
                for column, filled in (("mean / PLT", True), ("printed / PLT", False)):
                    x, y = (of.loc[(metric, rule), column] for metric in ("P", "Cov"))
                    face = look.colour if filled else "none"
                    label = rule if filled else "_print"
                    axis.plot(
                        [x], [y], look.marker, color=look.colour, markerfacecolor=face, linestyle="none", label=label
                    )
            axis.set_title(name, fontsize="small")
            figures.draws(axis, x=("mean / PLT", "printed / PLT"), y=("mean / PLT", "printed / PLT"))
        looks.label_grid(axes, f"P@{k}, % of PLT's", f"Cov@{k}, % of PLT's", shown=len(names))
        looks.legend(fig, axes[0][0])
        looks.title(fig, "Tables 2 and 3 by shares of the plain top k's: small twins filled, print hollow")
        return fig
