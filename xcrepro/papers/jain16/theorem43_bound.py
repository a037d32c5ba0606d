"""Theorem 4.3 of Jain et al. 2016: how far one evaluation may be off, and how far it is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, propensity
from xcrepro.errors import ArgumentError
from xcrepro.papers.jain16._common import B, K
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

LINES = {
    "bound": ("theorem 4.3's bound", looks.Look(looks.RUST, "s", "--")),
    "own range": ("Hoeffding, each point's range", looks.Look(looks.AMBER, "^", ":")),
    "normal": ("exact deviation, normal", looks.Look(looks.INK, "", "-")),
    "observed": ("observed", looks.Look(looks.TEAL, "o", "none")),
}
"""Column drawn -> its name in the legend and its look."""


def compute(
    Y, top: TopK, counts: np.ndarray, n_points: int, grid: Sequence[float], points: Sequence[int], draws: int,
    seed: int = 0, delta: float = 0.05, k: int = K,
) -> pd.DataFrame:  # fmt: skip
    """Theorem 4.3's bound and what the propensity-scored nDCG@k of one draw is off.

    Parameters
    ----------
    Y, top, counts, n_points, grid, draws
        As :func:`xcrepro.papers.jain16.fig3b_unbiased.compute` takes them; any number of draws.
    points : sequence of int
        Numbers of test points, 2 to n: the first so many of a random order of Y's rows.
    delta : float
        The chance that the bound leaves.

    Returns
    -------
    DataFrame
        A row an A and a number of points, in points of 100: A, points, rho, L bar, bound, own range, normal,
        observed, outside. rho is the largest gain of one predicted label of these points, were it observed. bound is
        the theorem's; own range: Hoeffding's inequality with each point's own largest gain; normal: the exact
        standard deviation times the normal quantile; observed: what 1 - delta of the draws stay below; outside: the
        share of draws beyond the bound.

    Raises
    ------
    ArgumentError
        For numbers of points outside 2 to n.
    """
    from scipy.stats import norm

    points = np.asarray(points)
    truth = Truth.of(Y)
    if not ((points >= 2) & (points <= truth.n_rows)).all():
        raise ArgumentError("points", f"must be numbers of test points, 2 to {truth.n_rows}", points.tolist())
    order = np.random.default_rng([seed, 0]).permutation(truth.n_rows)
    top, sizes = top.head(k).rows(order), truth.sizes[order].astype(float)
    hits = Truth.of(truth.to_csr()[order]).hits(top.ids)
    discount = 1 / np.log2(np.arange(2, k + 2))
    ln = math.log(2 / delta)
    rows = []
    for A in grid:
        weight = propensity.inverse(counts, n_points, A, B)
        # (n, k): what a place brings where its label is observed, and the chance of that; an empty place brings nothing.
        chance = np.where(top.ids >= 0, 1 / weight[top.ids], 1.0)
        possible = 100 * discount / discount.sum() / chance * (top.ids >= 0)
        gain = possible * hits
        rng = np.random.default_rng([seed, 1])
        off = np.array([(gain * ((rng.random(gain.shape) < chance) - chance)).sum(axis=1) for _ in range(draws)])
        variance = (gain**2 * chance * (1 - chance)).sum(axis=1)
        for n in points:
            rho, L = possible[:n].max(), math.sqrt(np.mean(sizes[:n] ** 2))
            bound = rho * L * math.sqrt(ln / (2 * n))
            own = math.sqrt((gain[:n].sum(axis=1) ** 2).sum() * ln / 2) / n
            normal = norm.ppf(1 - delta / 2) * math.sqrt(variance[:n].sum()) / n
            away = np.abs(off[:, :n].mean(axis=1))
            rows.append((A, int(n), rho, L, bound, own, normal, np.quantile(away, 1 - delta), np.mean(away > bound)))
    return pd.DataFrame(rows, columns=["A", "points", "rho", "L bar", *LINES, "outside"])


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Theorem 4.3: bounds and the observed deviation against the number of points, a panel for each A.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of Axes, shape (1, A), optional
    """
    grid = list(dict.fromkeys(table["A"]))
    with figures.new(looks.MEDIUM, 3.3, ncols=len(grid), sharey=True, squeeze=False, ax=ax) as (fig, axes):
        for axis, A in zip(axes[0], grid, strict=True):
            part = table[table["A"] == A]
            for column, (label, look) in LINES.items():
                axis.plot(part["points"], part[column], label=label, **look.line())
            axis.set(xscale="log", yscale="log", xlabel="test points", title=f"A = {A:g}")
            axis.set_xticks(part["points"], [f"{n}" for n in part["points"]])
            axis.minorticks_off()
            figures.draws(axis, x="points", y=list(LINES))
        axes[0][0].set_ylabel(f"off at most, points of nDCG@{K}")
        looks.legend(fig, axes[0][0], ncols=2)
        times = math.floor((table["bound"] / table["observed"]).min())
        looks.title(fig, f"Draws stay {times} times and more within the bound; both shrink with the root of the points")
    return fig
