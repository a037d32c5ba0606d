"""Theorem 4.4 of Jain et al. 2016: the propensity-scored Hamming loss, how far off one evaluation may be, and how far it is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import propensity
from xcrepro.papers.jain16 import theorem43_bound as theorem43
from xcrepro.papers.jain16._common import B
from xcrepro.predictions import TopK
from xcrepro.truth import Truth

check_parameters = theorem43.check_parameters
findings_recorded = theorem43.findings_recorded

K = 5
"""Labels that are predicted for a point."""
LINES = {
    **theorem43.LINES,
    "bound": ("theorem 4.4's bound", theorem43.LINES["bound"][1]),
}
"""Column drawn -> its name in the legend and its look."""


def bound(Y, w, delta: float = theorem43.DELTA) -> tuple[float, float, float]:
    """Theorem 4.4.

    Parameters
    ----------
    Y : array or sparse matrix, shape (n, L)
        The complete truth.
    w : ndarray, shape (L,)
        Inverse propensities.
    delta : float
        The chance that the bound leaves.

    Returns
    -------
    rho : float
        The largest inverse propensity of any label.
    L bar : float
        The root mean square of the rows' numbers of relevant labels.
    bound : float
        In labels a point, as the loss is.

    Examples
    --------
    >>> bound(np.eye(2), np.array([1.0, 2.0]))[:2]
    (2.0, 1.0)
    """
    truth = Truth.of(Y)
    rho, L = float(np.max(w)), math.sqrt(np.mean(truth.sizes.astype(float) ** 2))
    return rho, L, rho * L * math.sqrt(math.log(2 / delta) / (2 * truth.n_rows))


def compute(
    Y, top: TopK, counts: np.ndarray, n_points: int, grid: Sequence[float], points: Sequence[int], draws: int,
    seed: int = 0, delta: float = theorem43.DELTA,
) -> pd.DataFrame:  # fmt: skip
    """Theorem 4.4's bound and what the propensity-scored Hamming loss of one draw is off.

    Parameters
    ----------
    Y, top, counts, n_points, grid, points, draws, seed, delta
        As :func:`xcrepro.papers.jain16.theorem43_bound.compute` takes them.

    Returns
    -------
    DataFrame
        As :func:`xcrepro.papers.jain16.theorem43_bound.compute`, in labels a point: A, points, rho, L bar, bound,
        own range, normal, observed,
        outside; then loss, the Hamming loss on the complete truth.

    Raises
    ------
    ArgumentError
        For numbers of points outside 2 to n.
    """
    from scipy.stats import norm

    subsets = theorem43.subsets(Truth.of(Y).n_rows, points, seed)
    order = max(subsets, key=len)
    matrix, top = Truth.of(Y).to_csr()[order], top.head(K).rows(order)
    truth = Truth.of(matrix)
    row = np.repeat(np.arange(truth.n_rows), truth.sizes)
    predicted = (top.ids[row] == truth.indices[:, None]).any(axis=1)
    sign = np.where(predicted, -1.0, 1.0)  # 1 - 2 of theorem 4.4's estimator
    hits = np.bincount(row, predicted, truth.n_rows)
    wrong = truth.sizes - hits + (top.ids >= 0).sum(axis=1) - hits  # what is missed, and what is predicted in vain
    ln, rows = math.log(2 / delta), []
    for A in grid:
        w = propensity.inverse(counts, n_points, A, B)
        weight = w[truth.indices]
        rng = np.random.default_rng([seed, 1])
        off = np.empty((draws, truth.n_rows))
        for draw in range(draws):
            seen = rng.random(weight.size) < 1 / weight
            off[draw] = np.bincount(row, sign * (weight * seen - 1), truth.n_rows)
        variance = np.bincount(row, weight - 1, truth.n_rows)  # of w times a coin of chance 1 / w
        widest = np.bincount(row, weight, truth.n_rows)
        for n in map(len, subsets):
            rho, L, most = bound(matrix[:n], w, delta)
            own = math.sqrt((widest[:n] ** 2).sum() * ln / 2) / n
            normal = norm.ppf(1 - delta / 2) * math.sqrt(variance[:n].sum()) / n
            away = np.abs(off[:, :n].mean(axis=1))
            line = A, n, rho, L, most, own, normal, np.quantile(away, 1 - delta), np.mean(away > most), wrong[:n].mean()
            rows.append(line)
    return pd.DataFrame(rows, columns=["A", "points", "rho", "L bar", *LINES, "outside", "loss"])


def findings(table: pd.DataFrame, draws: int) -> list[str]:
    """What came out: that of theorem 4.3's item, and how wide the bound is beside the loss.

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
    said = [one for one in theorem43.findings(table, draws) if not one.startswith("A = ")]
    for A, part in table.groupby("A", sort=False):
        last = part.sort_values("points").iloc[-1]
        times = last["bound"] / last["loss"]
        off = f"off by up to {last['observed']:.2f} in 95 % of the draws"
        said.append(
            f"A = {A:g}, {last['points']:,.0f} points: the loss is {last['loss']:.2f} labels a point; one evaluation is {off}, "
            f"the bound says {last['bound']:.1f}, {times:.1f} times the loss itself."
        )
    return said


def plot(table: pd.DataFrame, model: str, ax=None) -> Figure:
    """Theorem 4.4: bounds and the observed deviation against the number of points, a panel for each A.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    model : str
        Whose predictions these are, for the title.
    ax : array of Axes, as many as A, optional
    """
    return theorem43.plot(table, model, ax, LINES, "labels a point", "Hamming loss")
