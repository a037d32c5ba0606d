"""Fig. 3b of Jain et al. 2016: nDCG by the observed truth, propensity-scored and plain, when labels are missing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, propensity
from xcrepro.metrics import ranking
from xcrepro.papers.jain16._common import KS, LOOKS, MIDDLE, SIGMAS, B, K, check_draws, simulate
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

METRICS = {"scored": "PSnDCG (bare, ideal k)", "plain": "nDCG (ideal k)"}


def compute(
    Y, top: TopK, counts: np.ndarray, n_points: int, grid: Sequence[float], draws: int, seed: int = 0
) -> pd.DataFrame:
    """nDCG@k by the observed truth, over draws of what goes missing.

    Parameters
    ----------
    Y : array or sparse matrix, shape (n, L)
        The complete truth.
    top : TopK
        Predictions for its rows.
    counts : ndarray, shape (L,)
        Of ``n_points`` train points: what p_l is from.
    grid : sequence of float
        A of the curves. All share their random numbers: what is observed on one is observed on every curve above it.
    draws : int
        40 or more.

    Returns
    -------
    DataFrame
        A row an A and a k, in percent: A, k, missing % (of the pairs of Y, expected), complete (nDCG@k by Y), then of
        propensity-scored nDCG@k (table 1, not the ratio of table 3) and of nDCG@k the mean and the middle 95 % of the
        draws: scored, scored low, scored high, plain, plain low, plain high; and sigmas: how many standard errors of
        its mean (deviation / sqrt(draws)) the scored one is from complete. nDCG is the paper's, with the ideal of k
        labels.

    Raises
    ------
    ArgumentError
        For fewer draws.
    """
    check_draws(draws)
    exact = 100 * ranking.ndcg(Y, top, KS, ideal="k")
    sizes = Truth.of(Y).label_counts()
    parts = []
    for A in grid:
        weight = propensity.inverse(counts, n_points, A, B)
        missing = 100 * (1 - (sizes @ (1 / weight)) / sizes.sum())
        columns = {"A": A, "k": KS, "missing %": missing, "complete": exact}
        rngs = (np.random.default_rng([seed, draw]) for draw in range(draws))
        values = simulate(Y, top, 1 / weight, list(METRICS.values()), weight, rngs)
        for name, found in zip(METRICS, 100 * values, strict=True):
            low, high = np.quantile(found, MIDDLE, axis=0)
            columns |= {name: found.mean(axis=0), f"{name} low": low, f"{name} high": high}
        off, error = columns["scored"] - exact, 100 * values[0].std(axis=0, ddof=1) / math.sqrt(draws)
        columns["sigmas"] = np.divide(off, error, out=np.zeros(len(KS)), where=error > 0)
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def check(table: pd.DataFrame) -> pd.DataFrame:
    """Without the deviation in standard errors: a difference near 0, which one turned ranking changes by much."""
    return table.drop(columns="sigmas")


def describe_unbiased(table: pd.DataFrame, draws: int) -> str:
    """A sentence: how many means lie within 4 (:data:`SIGMAS`) of their standard errors of the complete value.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    draws : int
        As given to it.

    Returns
    -------
    str
    """
    within = int((table["sigmas"].abs() <= SIGMAS).sum())
    return f"within {SIGMAS:g} standard errors of the complete truth: {within} of {len(table)} means of {draws} draws"


def plot(table: pd.DataFrame, model: str, ax=None) -> Figure:
    """Fig. 3b: both estimates at k = 3 with the middle 95 % of the draws, against the share of labels missing.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    model : str
        Whose predictions these are, for the axis.
    ax : Axes, optional
    """
    table = table[table["k"] == K].sort_values("missing %")
    x = table["missing %"]
    with figures.new(width=looks.NARROW, height=3.4, ax=ax) as (fig, ax):
        ax.axhline(table["complete"].iloc[0], color="0.3", linewidth=0.9, linestyle="-", label="complete truth")
        for name, (label, look) in LOOKS.items():
            ax.fill_between(x, table[f"{name} low"], table[f"{name} high"], color=look.colour, alpha=0.2, linewidth=0)
            ax.plot(x, table[name], label=label, **look.line())
        ax.set(xlabel="labels missing, % of the pairs", ylabel=f"nDCG@{K} of {model}, %", ylim=(0, None))
        most = table.iloc[-1]
        off = [
            f"{most[name] - most['complete']:+.1f} {by} 1/p" for name, by in (("scored", "with"), ("plain", "without"))
        ]
        missing = f"{most['missing %']:.0f} % missing: nDCG@{K} off by"
        looks.title(fig, f"{missing} {off[0]}, {off[1]} (points; bands: 95 % of draws)")
        ax.legend(loc="lower left")
        figures.draws(ax, x="missing %", y=[f"{name}{end}" for name in LOOKS for end in ("", " low", " high")])
    return fig
