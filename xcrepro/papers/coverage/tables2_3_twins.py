"""Tables 2 and 3 of the coverage paper on small twins of its six datasets."""

from __future__ import annotations

import itertools
import time
import timeit
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import decide, looks, metrics
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Measured, corrected, count
from xcrepro.inputs import parameters
from xcrepro.inputs.datasets import printed_name, weights
from xcrepro.papers.coverage import tables2_3_rerun as rerun
from xcrepro.papers.coverage._common import (
    GREEDY,
    KS,
    MIXED,
    PLAIN,
    RANDOM,
    TIME,
    TREE,
    WEIGHTED,
    Run,
    at_random,
    check_betas,
    in_order,
    mixed,
    printed_table,
)
from xcrepro.predictions import TopK
from xcrepro.repro import figures

METRICS = ("P", "PSP", "Cov")
Chosen = Mapping[str, Mapping[int, Mapping[str, TopK]]]
"""Dataset -> k -> rule -> the k labels of every test point."""


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules, and betas."""
    parameters.check(values)
    check_betas(values)


def load_run(ds: Dataset) -> Run:
    """One label tree, with seed 0, and its candidates of each test point."""
    return rerun.runs(ds, 1)[TREE][0]


def choose(ds: Dataset, run: Run, betas: Sequence[float]) -> dict[int, dict[str, TopK]]:
    """Each rule of the two tables, decided for each k; BRS-PLT once for k = 5, as in the paper.

    Parameters
    ----------
    ds : Dataset
    run : Run
        Of :func:`load_run`.
    betas : sequence of float
        Of the greedy rule; 0 is COV-PLT.

    Returns
    -------
    dict of int to dict of str to TopK
        k -> rule -> labels.
    """
    wanted, found = [PLAIN, WEIGHTED, *map(mixed, betas)], {}
    for k in KS:
        rules = rerun.rules(ds, run, k, betas)
        found[k] = {rule: rules[rule]() for rule in wanted} | {RANDOM: at_random(run, k)}
    return found


def measure(loaded: Mapping[str, Dataset], chosen: Chosen) -> dict[tuple[str, str, int], Measured]:
    """The three metrics of every rule with a jackknife over test points; a choice is held as it is.

    Parameters
    ----------
    loaded : mapping of str to Dataset
    chosen : mapping
        Dataset -> :func:`choose`.

    Returns
    -------
    dict of (str, str, int) to Measured
        By dataset, metric (P, PSP, Cov over the labels with a test point; percent) and k.
    """
    found = {}
    for name, ds in loaded.items():
        w = weights(ds)
        of = {
            "P": lambda Y, top, k: metrics.precision(Y, top, k)[0],
            "PSP": lambda Y, top, k, w=w: metrics.psp(Y, top, k, inverse_propensity=w)[0],
            "Cov": lambda Y, top, k: metrics.coverage(Y, top, k, over="test")[0],
        }
        for metric, one in of.items():
            for k in KS:
                statistic = lambda Y, top, one=one, k=k: 100 * one(Y, top, k)  # noqa: E731
                found[name, metric, k] = Measured.of_rows(statistic, ds.test.Y, chosen[name][k])
    return found


def compute(loaded: Mapping[str, Dataset], measured: Mapping[tuple[str, str, int], Measured]) -> pd.DataFrame:
    """Tables 2 and 3, beside print.

    Parameters
    ----------
    loaded : mapping of str to Dataset
    measured : mapping
        Of :func:`measure`.

    Returns
    -------
    DataFrame
        dataset, rule, metric, k; value, error (over test points); printed; value / PLT and printed / PLT (percent of the plain
        top k's own, since a twin is easier or harder than its dataset); behind (hits, of Cov labels covered).
    """
    printed, rows = _printed(loaded), []
    for (name, metric, k), one in measured.items():
        ds = loaded[name]
        places = ds.test.Y.shape[0] * k if metric != "Cov" else np.unique(ds.test.Y.indices).size
        for rule, value in one.values.items():
            said = printed.get((name, rule, metric, k), np.nan)
            shares = 100 * value / one.values[PLAIN], 100 * said / printed.get((name, PLAIN, metric, k), np.nan)
            rows.append((name, rule, metric, k, value, one.error(rule), said, *shares, round(value * places / 100)))
    columns = ["dataset", "rule", "metric", "k", "value", "error", "printed", "value / PLT", "printed / PLT", "behind"]
    table = pd.DataFrame(rows, columns=columns)
    return in_order(table, dataset=list(loaded), rule=table["rule"].unique(), metric=METRICS, k=None)


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


def lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """The values as tables 2 and 3 have them: a row a dataset and rule, a column a metric and k."""
    column = table["metric"] + "@" + table["k"].astype(str)
    wide = table.assign(column=column).pivot(index=["dataset", "rule"], columns="column", values="value")
    rows = table[["dataset", "rule"]].drop_duplicates().itertuples(index=False, name=None)
    return (
        wide.loc[list(rows), [f"{metric}@{k}" for metric in METRICS for k in KS]]
        .rename_axis(columns=None)
        .reset_index()
    )


def compute_times(loaded: Mapping[str, Dataset], found: Mapping[str, Run], beta: float = 0.25) -> pd.DataFrame:
    """Table 2's test times, k = 5: each rule by search in the tree, BRS-PLT by a search for ten labels and a draw of five.

    Parameters
    ----------
    loaded : mapping of str to Dataset
    found : mapping of str to Run
        Of :func:`load_run`.
    beta : float
        Of COVβ-PLT.

    Returns
    -------
    DataFrame
        dataset, rule, search ms (CPU, a test point), and as multiples of the plain search's: search / PLT, printed / PLT.
        Shown, never compared.
    """
    wanted, parts, printed = [PLAIN, WEIGHTED, mixed(0.0), mixed(beta)], [], printed_table(2)
    printed = printed[printed["metric"] == TIME]
    for name, ds in loaded.items():
        run, n = found[name], ds.test.Y.shape[0]
        table = rerun.compute_times(ds, [run], [0.0, beta]).drop(columns="decision ms")
        table = table[table["rule"].isin(wanted)].reset_index(drop=True)

        def draw(run: Run = run, ds: Dataset = ds) -> TopK:
            return decide.bounded_random(run.tree.predict(ds.test.X, 10).to_csr(), 5, 2, seed=run.number)

        draw()  # compiled
        ms = 1000 * timeit.timeit(draw, timer=time.process_time, number=1) / n
        said = printed[printed["dataset"] == printed_name(ds)].set_index("method")["value"]
        share = said[RANDOM] / said[PLAIN] if RANDOM in said else np.nan
        table.loc[len(table)] = [RANDOM, ms, ms / table["search ms"].iloc[0], share]
        parts.append(table.assign(dataset=name))
    table = pd.concat(parts, ignore_index=True)
    return table[["dataset", *(column for column in table if column != "dataset")]]


def findings(measured: Mapping[tuple[str, str, int], Measured], table: pd.DataFrame) -> list[str]:
    """On how many of dataset and k each claim of the paper comes out, and in print.

    Parameters
    ----------
    measured : mapping
        Of :func:`measure`.
    table : DataFrame
        Of :func:`compute`.

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
                for column, filled in (("value / PLT", True), ("printed / PLT", False)):
                    x, y = (of.loc[(metric, rule), column] for metric in ("P", "Cov"))
                    face = look.colour if filled else "none"
                    label = rule if filled else "_print"
                    axis.plot(
                        [x], [y], look.marker, color=look.colour, markerfacecolor=face, linestyle="none", label=label
                    )
            axis.set_title(name, fontsize="small")
            figures.draws(axis, x=("value / PLT", "printed / PLT"), y=("value / PLT", "printed / PLT"))
        looks.label_grid(axes, f"P@{k}, % of PLT's", f"Cov@{k}, % of PLT's", shown=len(names))
        looks.legend(fig, axes[0][0])
        looks.title(fig, "Tables 2 and 3 by shares of the plain top k's: small twins filled, print hollow")
        return fig
