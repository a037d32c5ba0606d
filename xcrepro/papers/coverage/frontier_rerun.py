"""P@k against Cov@k over beta, with the tree's probabilities, calibrated ones and, for a twin, the true ones.

The true ones are those of the observed truth: on it models are trained, and selections tested.

Cov@k is over the labels with a test point, as in the code the paper builds on. All values are percent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import calibrate, decide, looks
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs.datasets import weights
from xcrepro.papers.coverage._common import KS, RANDOM, WEIGHTED, Run, at_random, scores, tested_share
from xcrepro.papers.coverage._common import runs as runs  # what the notebook calls
from xcrepro.predictions import TopK
from xcrepro.repro import figures

PASSES = "COV-PLT, 3 passes"
FLOOR = "eq. 14"

SOURCES = (looks.of("PLT"), looks.Look(looks.AMBER, "s", "--"), looks.Look(looks.LEAF, "o", "-"))
"""The model's probabilities, the same calibrated, the true ones."""


def sources(ds: Dataset, run: Run, given: str = "") -> dict[str, sparse.csr_matrix]:
    """The probabilities to choose from.

    Parameters
    ----------
    ds : Dataset
    run : Run
    given : str
        Not empty where the run is saved predictions; the model is then called so.

    Returns
    -------
    dict of str to csr_matrix
        Name -> the model's; the same after isotonic regression, each tenth of the test points by a map fitted on the
        others; and, for a twin, the true ones of the observed truth.
    """
    name = "given" if given else "label tree"
    top = TopK.from_scores(run.probabilities, int(np.diff(run.probabilities.indptr).max()))
    found = {name: run.probabilities, f"{name}, isotonic": calibrate.cross_fit_top(ds.test.Y, top).to_csr()}
    if isinstance(ds, Twin):
        found["true probabilities"] = ds.test.observed_marginals
    return found


def compute(ds: Dataset, found: Mapping[str, sparse.csr_matrix], betas: Sequence[float]) -> pd.DataFrame:
    """P@k and Cov@k over beta.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        From :func:`sources`.
    betas : sequence of float
        The plain top k is added as beta = inf.

    Returns
    -------
    DataFrame
        Columns source, k, beta, P, Cov, and what the probabilities themselves lead to expect: expected P, expected
        Cov (over labels with a test point, like Cov).
    """
    rows, share = [], tested_share(ds)
    for (name, eta), k, beta in itertools.product(found.items(), KS, [*sorted(map(float, betas)), math.inf]):
        top = decide.greedy_coverage(eta, k, beta)
        value = scores(ds, top, k)
        P, Cov = decide.expected_precision(eta, top, k)[0], decide.expected_coverage(eta, top, k)[0]
        rows.append((name, k, beta, value["P"], value["Cov"], 100 * P, 100 * Cov / share))
    return pd.DataFrame(rows, columns=["source", "k", "beta", "P", "Cov", "expected P", "expected Cov"])


def compute_others(ds: Dataset, run: Run) -> pd.DataFrame:
    """The rules without a beta on the model's probabilities, three passes of the greedy rule among them.

    Parameters
    ----------
    ds : Dataset
    run : Run

    Returns
    -------
    DataFrame
        rule, k, P, Cov (percent).
    """
    rows, eta = [], run.probabilities
    for k in KS:
        rules = {WEIGHTED: decide.weighted(eta, k, weights(ds)), RANDOM: at_random(run, k)}
        rules[PASSES] = decide.greedy_coverage(eta, k, passes=3)
        rows += [{"rule": rule, "k": k, **scores(ds, top, k)} for rule, top in rules.items()]
    return pd.DataFrame(rows)[["rule", "k", "P", "Cov"]]


def compute_constrained(ds: Dataset, found: Mapping[str, sparse.csr_matrix], share: float) -> pd.DataFrame:
    """The largest coverage whose expected P@k keeps a share of the plain top k's (eq. 14), without a look at the truth.

    Parameters
    ----------
    ds : Dataset
    found : mapping of str to csr_matrix
        From :func:`sources`.
    share : float
        Of the plain top k's expected P@k, from 0 to 1.

    Returns
    -------
    DataFrame
        source, k, beta, P kept (percent of the plain top k's P@k on the truth; the floor is 100 ``share`` of what the
        probabilities expect), P, Cov (percent), Cov gain (over the plain top k's Cov, points).
    """
    rows = []
    for (name, eta), k in itertools.product(found.items(), KS):
        plain = decide.top_k(eta, k)
        best = decide.for_precision(eta, k, share * float(decide.expected_precision(eta, plain, k)[0]))
        before, after = scores(ds, plain, k), scores(ds, best.top, k)
        gain = after["Cov"] - before["Cov"]
        rows.append((name, k, best.beta, 100 * after["P"] / before["P"], after["P"], after["Cov"], gain))
    return pd.DataFrame(rows, columns=["source", "k", "beta", "P kept", "P", "Cov", "Cov gain"])


def check_constrained(table: pd.DataFrame) -> pd.DataFrame:
    """Without the gain: a difference of two coverages, which one label more or less moves beyond the tolerance."""
    return table.drop(columns="Cov gain")


def compute_drawn(path: pd.DataFrame, others: pd.DataFrame, constrained: pd.DataFrame) -> pd.DataFrame:
    """What :func:`plot` draws: the path over beta, then the rules without a beta, then the constrained selections.

    Parameters
    ----------
    path : DataFrame
        From :func:`compute`.
    others : DataFrame
        From :func:`compute_others`.
    constrained : DataFrame
        From :func:`compute_constrained`.

    Returns
    -------
    DataFrame
        source ("" for the rules), rule ("" on the path, "eq. 14" for the constrained), then the columns of the three
        tables, NaN where one has none.
    """
    parts = [path.assign(rule=""), others.assign(source=""), constrained.assign(rule=FLOOR)]
    table = pd.concat(parts, ignore_index=True)
    return table[["source", "rule", *table.columns.drop(["source", "rule"])]]


def plot(table: pd.DataFrame, share: float, ax=None) -> Figure:
    """P@k against Cov@k, a panel a k, a line a source of probabilities; a ring marks the constrained selection.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_drawn`.
    share : float
        Of the expected P@k that the constrained selection keeps.
    ax : array of three Axes, optional
    """
    names = [name for name in table["source"].unique() if name]
    single = {WEIGHTED: looks.of(WEIGHTED), RANDOM: looks.of(RANDOM), PASSES: looks.Look(looks.INK, "D")}
    with figures.new(looks.WIDE, 3.8, ncols=len(KS), ax=ax) as (fig, axes):
        for panel, k in zip(axes, KS, strict=True):
            of_k = table[table["k"] == k]
            for name, look in zip(names, SOURCES, strict=False):
                part = of_k[of_k["source"] == name]
                path, best = part[part["rule"] == ""], part[part["rule"] == FLOOR]
                panel.plot(path["Cov"], path["P"], **look.line(), label=name)
                ring = {"edgecolors": look.colour, "facecolors": "none", "zorder": 3}
                words = f"expected P@k kept to {100 * share:g} %" if name == names[-1] else "_"
                panel.scatter(best["Cov"], best["P"], 110, **ring, label=words)
            for row, text in ((path.iloc[-1], "top k"), (path.iloc[0], f"β={path['beta'].iloc[0]:g}")):
                looks.name(panel, text, (row["Cov"], row["P"]), (3, 5))
            for rule, look in single.items():
                part = of_k[of_k["rule"] == rule]
                panel.scatter(part["Cov"], part["P"], 45, **look.mark(), label=rule, zorder=3)
            panel.set(xlabel=f"Cov@{k}, % of labels with a test point", title=f"k = {k}")
            panel.margins(0.1)
            figures.draws(panel, x="Cov", y="P")
        axes[0].set_ylabel("P@k, %")
        looks.legend(fig, axes[0], ncols=4)
        looks.title(fig, describe_constrained(table[table["rule"] == FLOOR], share))
    return fig


def describe_constrained(table: pd.DataFrame, share: float, k: int = 5) -> str:
    """What the constrained selection of the first source gains, and of the last.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_constrained`.
    share : float
        As given to it.
    k : int
        One of its k.

    Returns
    -------
    str
    """
    one = table[table["k"] == k]
    first, last = one.iloc[0], one.iloc[-1]
    return (
        f"For {100 - 100 * share:g} % of the P@{k} it expects, the {first['source']} goes from "
        f"{first['Cov'] - first['Cov gain']:.0f} to {first['Cov']:.0f} % coverage@{k};\n"
        f"the same with {last['source']}: from {last['Cov'] - last['Cov gain']:.0f} to {last['Cov']:.0f} %."
    )
