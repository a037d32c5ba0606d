"""Fig. 3b of Jain et al. 2016: nDCG by the observed truth, propensity-scored and plain, when labels are missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, propensity
from xcrepro.findings import Difference, corrected
from xcrepro.inputs import parameters
from xcrepro.metrics import ranking
from xcrepro.metrics.significance import t_p_value
from xcrepro.papers.jain16._common import KS, LOOKS, MIDDLE, B, K, check_curves, check_draws, simulate
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

METRICS = {"scored": "PSnDCG (bare, ideal k)", "plain": "nDCG (ideal k)"}


def check_parameters(values: Mapping[str, object]) -> None:
    """:func:`xcrepro.inputs.parameters.check`, and the rules of ``curves`` and ``draws``."""
    parameters.check(values)
    check_curves(values["curves"])
    check_draws(values["draws"])


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


def findings(table: pd.DataFrame, draws: int) -> list[str]:
    """What came out, as sentences: whether the means are those of the complete truth, and how far one draw may be off.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    draws : int
        As given to it.

    Returns
    -------
    list of str
    """
    off = table["scored"] - table["complete"]
    error = (off / table["sigmas"].replace(0.0, np.nan)).abs().fillna(0.0)
    tests = corrected(
        Difference("scored", "complete", value, err, draws - 1, float(t_p_value(sigma, draws - 1)))
        for value, err, sigma in zip(off, error, table["sigmas"], strict=True)
    )
    biased = sum(one.clear for one in tests)
    least = min(one.p for one in tests)
    of = f"{len(table)} means over {draws:,} draws"
    said = [
        f"Propensity-scored: {biased or 'none'} of {of} {'is' if biased < 2 else 'are'} clearly off the complete truth (t "
        f"tests, Holm; smallest p {_written(least)}; largest distance {off.abs().max():.1f} points)."
    ]
    part = table[table["k"] == K].sort_values("missing %")
    at = [part.iloc[0], part.iloc[-1]] if len(part) > 1 else [part.iloc[0]]
    plain = [f"{_signed(row['plain'] - row['complete'])} with {row['missing %']:.0f} % missing" for row in at]
    said.append(
        f"Plain nDCG@{K} by the observed truth, on average: {', '.join(plain)} (complete {at[0]['complete']:.1f} %)."
    )
    for name, label in (("scored", "propensity-scored"), ("plain", "plain")):
        row = at[-1]
        low, high = (_signed(row[f"{name} {end}"] - row["complete"]) for end in ("low", "high"))
        said.append(
            f"One draw, {row['missing %']:.0f} % missing, {label}: 95 % lie between {low} and {high} of the complete value."
        )
    return said


def findings_recorded(table: pd.DataFrame, recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same: how often the middle 95 % of the draws hold the complete truth's value.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`compute`, as recorded.

    Returns
    -------
    list of str
        One sentence; none where nothing is recorded.
    """
    if not recorded:
        return []
    real = "; ".join(f"recorded on {dataset} {_holding(part)}" for dataset, part in recorded.items())
    return [
        f"Real data first: the middle 95 % of the draws hold the complete truth's value, {real}; in this run {_holding(table)}."
    ]


def _holding(table: pd.DataFrame) -> str:
    within = [
        int(((table[f"{name} low"] <= table["complete"]) & (table["complete"] <= table[f"{name} high"])).sum())
        for name in METRICS
    ]
    return f"in {within[0]} of {len(table)} rows propensity-scored and in {within[1]} plain"


def _written(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"


def _signed(value: float) -> str:
    return f"{value:+.1f} points"


def plot(table: pd.DataFrame, model: str, ax=None) -> Figure:
    """Fig. 3b: both estimates at k = 3 with the middle 95 % of the draws, against the share of labels missing.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    model : str
        Whose predictions these are, for the title.
    ax : Axes, optional
    """
    table = table[table["k"] == K].sort_values("missing %")
    x = table["missing %"]
    with figures.new(width=looks.NARROW, height=3.4, ax=ax) as (fig, ax):
        ax.axhline(table["complete"].iloc[0], color="0.3", linewidth=0.9, linestyle="-", label="complete truth")
        for name, (label, look) in LOOKS.items():
            low, high = table[f"{name} low"], table[f"{name} high"]
            ax.fill_between(x, low, high, color=look.colour, alpha=0.2, linewidth=0)
            # A band over one point has no width.
            ax.vlines(x, low, high, color=look.colour, alpha=0.5, linewidth=1.2)
            ax.plot(x, table[name], label=label, **look.line())
        ax.set(xlabel="labels missing, % of the pairs", ylabel=f"nDCG@{K}, %", ylim=(0, None))
        looks.title(fig, f"nDCG@{K} of {model} when labels are missing (bands: 95 % of the draws)")
        looks.legend(fig)
        figures.draws(ax, x="missing %", y=[f"{name}{end}" for name in LOOKS for end in ("", " low", " high")])
    return fig
