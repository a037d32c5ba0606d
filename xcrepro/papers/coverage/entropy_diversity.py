"""Equations 15 to 17 of the coverage paper: entropy of the hits and diversity of a point's labels, by rule of choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import decide, looks, metrics
from xcrepro.arguments import real_number, whole_number
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.findings import Measured, count, relation
from xcrepro.inputs import parameters
from xcrepro.inputs.datasets import weights
from xcrepro.papers.coverage._common import GREEDY, PLAIN, RANDOM, WEIGHTED, Run
from xcrepro.papers.coverage._common import runs as runs  # what the notebook calls
from xcrepro.predictions import TopK
from xcrepro.repro import figures

MEASURES = ("P", "Cov", "entropy", "diversity")


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules; k of 2 or more, for a single label is not diverse; betas above 0, each once."""
    parameters.check(values)
    whole_number("parameter k", values["k"], 2)
    betas = values["betas"]
    if not isinstance(betas, list | tuple) or len(set(betas)) != len(betas):
        raise ArgumentError("parameter betas", "must hold numbers, each once", repr(betas))
    for beta in betas:
        real_number("parameter betas", beta, above=0)


def choose(ds: Dataset, run: Run, k: int, betas: Sequence[float], seed: int = 0) -> dict[str, TopK]:
    """The k labels of each test point by each rule of the paper.

    Parameters
    ----------
    ds : Dataset
    run : Run
        Of :func:`runs`.
    k : int
    betas : sequence of float
        Of the greedy rule, besides 0.
    seed : int
        Of the random choice.

    Returns
    -------
    dict of str to TopK
        PLT, PS-PLT, COV-PLT, COVβ=... and BRS-PLT.
    """
    eta = run.probabilities
    found = {PLAIN: decide.top_k(eta, k), WEIGHTED: decide.weighted(eta, k, weights(ds))}
    found[GREEDY] = decide.greedy_coverage(eta, k)
    found |= {f"COVβ={beta:g}": decide.greedy_coverage(eta, k, beta) for beta in sorted(betas)}
    found[RANDOM] = decide.bounded_random(eta, k, seed=seed)
    return found


def similarity(ds: Dataset) -> sparse.csr_matrix:
    """How alike two labels are: the cosine of the train points that carry them; 0 for a label without any, also to itself.

    Parameters
    ----------
    ds : Dataset

    Returns
    -------
    csr_matrix, (L, L)
        In [0, 1].
    """
    Y = sparse.csr_matrix(ds.train.Y, dtype=np.float64)
    counts = np.asarray(Y.sum(axis=0)).ravel()
    scale = sparse.diags_array(1 / np.sqrt(np.maximum(counts, 1)))
    alike = sparse.csr_matrix(scale @ (Y.T @ Y) @ scale)
    alike.data = np.minimum(alike.data, 1.0)  # rounding
    return alike


def measure(ds: Dataset, chosen: Mapping[str, TopK], k: int) -> dict[str, Measured]:
    """The four measures of each rule with a jackknife over test points; choices are held as they are.

    Parameters
    ----------
    ds : Dataset
    chosen : mapping of str to TopK
        Of :func:`choose`.
    k : int

    Returns
    -------
    dict of str to Measured
        Of :data:`MEASURES`: P@k and Cov@k (over labels with a test point), percent; the entropy of eq. 16, nats;
        the diversity of eq. 17, percent.
    """
    alike = similarity(ds)
    of = {
        "P": lambda Y, top: 100 * metrics.precision(Y, top, k)[0],
        "Cov": lambda Y, top: 100 * metrics.coverage(Y, top, k, over="test")[0],
        "entropy": lambda Y, top: metrics.label_entropy(Y, top, k)[0],
        "diversity": lambda Y, top: 100 * metrics.diversity(Y, top, k, similarity=alike)[0],
    }
    return {name: Measured.of_rows(one, ds.test.Y, chosen) for name, one in of.items()}


def compute(ds: Dataset, chosen: Mapping[str, TopK], measured: Mapping[str, Measured], k: int) -> pd.DataFrame:
    """The rules by four measures, with their errors.

    Parameters
    ----------
    ds : Dataset
    chosen : mapping of str to TopK
        Of :func:`choose`.
    measured : mapping of str to Measured
        Of :func:`measure`.
    k : int

    Returns
    -------
    DataFrame
        rule; P, Cov, entropy, diversity, each with its error; alike, exp of the entropy: so many labels hit equally
        often would have
        it; hit, how many labels are hit at all.
    """
    rows = []
    for rule, top in chosen.items():
        row = {"rule": rule}
        for name in MEASURES:
            row |= {name: measured[name].values[rule], f"{name} error": measured[name].error(rule)}
        hit = metrics.coverage(ds.test.Y, top, k)[0] * top.n_labels
        rows.append(row | {"alike": float(np.exp(row["entropy"])), "hit": round(float(hit))})
    return pd.DataFrame(rows)


def findings(table: pd.DataFrame, measured: Mapping[str, Measured]) -> list[str]:
    """Who leads each measure, whether entropy and diversity say what coverage says, and what they cost.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`.
    measured : mapping of str to Measured
        Of :func:`measure`.

    Returns
    -------
    list of str
    """
    units = {"entropy": ("nats", 2), "diversity": ("points", 2)}
    said = []
    for name in ("Cov", "entropy", "diversity"):
        unit, decimals = units.get(name, ("points", 1))
        text = measured[name].leader(name, unit=unit, decimals=decimals).text
        said.append(f"{text[0].upper()}{text[1:]}.")
    for name in ("entropy", "diversity"):
        said.append(f"Over the rules, {relation(table['Cov'], table[name], f'Cov and {name}')}.")
    others = [rule for rule in table["rule"] if rule != PLAIN]
    for name in ("entropy", "diversity"):
        pairs = measured[name].differences((rule, PLAIN) for rule in others)
        text = count(pairs, f"{name} is higher than the plain top k's")
        said.append(f"{text[0].upper()}{text[1:]}.")
    top = table.loc[table["entropy"].idxmax()]
    said.append(
        f"{top['rule']} hits {top['hit']:,} labels, as evenly as {top['alike']:,.0f} labels hit equally often; the plain top k "
        f"{table['hit'].iloc[0]:,}, as {table['alike'].iloc[0]:,.0f}."
    )
    return said


def findings_recorded(recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether entropy and diversity go with coverage on real data, as recorded.

    Parameters
    ----------
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`compute`.

    Returns
    -------
    list of str
        One sentence; none where nothing is recorded.
    """
    said = [
        f"{dataset}: "
        + "; ".join(relation(part["Cov"], part[name], f"Cov and {name}") for name in ("entropy", "diversity"))
        for dataset, part in recorded.items()
    ]
    return [f"Real data first, over the rules. {'. '.join(said)}."] if said else []


def plot(table: pd.DataFrame, k: int, ax=None) -> Figure:
    """Coverage, entropy and diversity against P@k, a mark a rule.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`.
    k : int
    ax : array of Axes, optional
        Three.
    """
    names = {"Cov": f"Cov@{k} (%)", "entropy": f"entropy@{k} (nats, eq. 16)", "diversity": f"diversity@{k} (%, eq. 17)"}
    found = looks.distinct(table["rule"])
    with figures.new(looks.WIDE, 3.4, ncols=3, ax=ax) as (fig, axes):
        for axis, (column, label) in zip(axes, names.items(), strict=True):
            for row in table.to_dict("records"):
                errors = {"xerr": 2 * row["P error"], "yerr": 2 * row[f"{column} error"]}
                look = found[row["rule"]]
                bars = {"fmt": "none", "ecolor": look.colour, "elinewidth": 1}
                axis.errorbar([row["P"]], [row[column]], **{name: [one] for name, one in errors.items()}, **bars)
                axis.scatter([row["P"]], [row[column]], s=36, label=row["rule"], **look.mark())
            axis.set(xlabel=f"P@{k} (%)", ylabel=label)
            figures.draws(axis, x="P", y=column)
        looks.legend(fig, axes[0])
        looks.title(fig, "What each rule of choice gives up in precision, and what it gets (bars: two standard errors)")
        return fig
