"""Theorem 4.3 of Jain et al. 2016: how far one evaluation may be off, and how far it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from xcrepro import looks, propensity
from xcrepro.errors import ArgumentError
from xcrepro.inputs import parameters
from xcrepro.papers.jain16._common import B, K, check_curves, check_draws
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

DELTA = 0.05
"""The chance that the bound leaves."""
LINES = {
    "bound": ("theorem 4.3's bound", looks.Look(looks.RUST, "s", "--")),
    "own range": ("Hoeffding, each point's range", looks.Look(looks.AMBER, "^", ":")),
    "normal": ("exact standard deviation, normal", looks.Look(looks.INK, "", "-")),
    "observed": ("observed, 95 % of the draws", looks.Look(looks.TEAL, "o", "none")),
}
"""Column drawn -> its name in the legend and its look."""


def check_parameters(values: Mapping[str, object]) -> None:
    """:func:`xcrepro.inputs.parameters.check`, and the rules of ``curves``, ``points`` and ``draws``."""
    parameters.check(values)
    check_curves(values["curves"])
    check_draws(values["draws"])
    _check_points(values["points"])


def _check_points(points: Sequence[int], most: int | None = None) -> None:
    rule = "must be different numbers of test points, 2 or more" + (f", {most} at most" if most is not None else "")
    known = isinstance(points, list | tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in points)
    if not (known and points and min(points) >= 2 and len(set(points)) == len(points)):
        raise ArgumentError("parameter points", rule, points)
    if most is not None and max(points) > most:
        raise ArgumentError("parameter points", rule, points)


def subsets(n_rows: int, points: Sequence[int], seed: int = 0) -> list[np.ndarray]:
    """The test points of each line of the table: the first so many of one random order.

    Parameters
    ----------
    n_rows : int
        Of the test points.
    points : sequence of int
        How many, 2 to ``n_rows``, all different.
    seed : int

    Returns
    -------
    list of ndarray of int
        Row numbers, one array for each of ``points``.

    Raises
    ------
    ArgumentError
        For numbers of points outside that.
    """
    _check_points(points, n_rows)
    order = _order(n_rows, seed)
    return [order[:n] for n in points]


def _order(n_rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, 0]).permutation(n_rows)


def bound(Y, top: TopK, w, k: int = K, delta: float = DELTA) -> tuple[float, float, float]:
    """Theorem 4.3 for the propensity-scored nDCG@k.

    Parameters
    ----------
    Y : array or sparse matrix, shape (n, L)
        The complete truth.
    top : TopK
        Predictions for its rows.
    w : ndarray, shape (L,)
        Inverse propensities.
    k : int
    delta : float
        The chance that the bound leaves.

    Returns
    -------
    rho : float
        The largest gain of one predicted label, were it observed, in points of 100.
    L bar : float
        The root mean square of the rows' numbers of relevant labels.
    bound : float
        In points of 100.

    Examples
    --------
    >>> bound(np.eye(2), TopK.from_ids([[0], [1]], n_labels=2), np.array([1.0, 2.0]), k=1)[:2]
    (200.0, 1.0)
    """
    truth = Truth.of(Y)
    rho, L = _possible(top.head(k), w, k).max(), math.sqrt(np.mean(truth.sizes.astype(float) ** 2))
    return float(rho), L, float(rho * L * math.sqrt(math.log(2 / delta) / (2 * truth.n_rows)))


def _possible(top: TopK, w: np.ndarray, k: int) -> np.ndarray:
    """(n, k): what a place brings where its label is observed, in points of 100; an empty place brings nothing."""
    discount = 1 / np.log2(np.arange(2, k + 2))
    return np.where(top.ids >= 0, 100 * discount / discount.sum() * w[top.ids], 0.0)


def compute(
    Y, top: TopK, counts: np.ndarray, n_points: int, grid: Sequence[float], points: Sequence[int], draws: int,
    seed: int = 0, delta: float = DELTA, k: int = K,
) -> pd.DataFrame:  # fmt: skip
    """Theorem 4.3's bound and what the propensity-scored nDCG@k of one draw is off.

    Parameters
    ----------
    Y, top, counts, n_points, grid, draws
        As :func:`xcrepro.papers.jain16.fig3b_unbiased.compute` takes them; any number of draws.
    points : sequence of int
        Numbers of test points, 2 to n: see :func:`subsets`.
    delta : float
        The chance that the bound leaves.

    Returns
    -------
    DataFrame
        A row an A and a number of points, in points of 100: A, points, rho, L bar, bound (:func:`bound`), own range,
        normal, observed, outside. own range: Hoeffding's inequality with each point's own largest gain; normal: the
        exact standard deviation times the normal quantile; observed: what 1 - delta of the draws stay below; outside:
        the share of draws beyond the bound.

    Raises
    ------
    ArgumentError
        For numbers of points outside 2 to n.
    """
    from scipy.special import ndtri

    truth = Truth.of(Y)
    _check_points(points, truth.n_rows)
    order = _order(truth.n_rows, seed)
    top, matrix = top.head(k).rows(order), truth.to_csr()[order]
    hits = Truth.of(matrix).hits(top.ids)
    ln = math.log(2 / delta)
    rows = []
    for A in grid:
        weight = propensity.inverse(counts, n_points, A, B)
        chance = np.where(top.ids >= 0, 1 / weight[top.ids], 1.0)
        gain = _possible(top, weight, k) * hits
        rng = np.random.default_rng([seed, 1])
        off = np.array([(gain * ((rng.random(gain.shape) < chance) - chance)).sum(axis=1) for _ in range(draws)])
        variance = (gain**2 * chance * (1 - chance)).sum(axis=1)
        for n in points:
            rho, L, most = bound(matrix[:n], top.rows(slice(0, n)), weight, k, delta)
            own = math.sqrt((gain[:n].sum(axis=1) ** 2).sum() * ln / 2) / n
            normal = ndtri(1 - delta / 2) * math.sqrt(variance[:n].sum()) / n
            away = np.abs(off[:, :n].mean(axis=1))
            rows.append((A, n, rho, L, most, own, normal, np.quantile(away, 1 - delta), np.mean(away > most)))
    return pd.DataFrame(rows, columns=["A", "points", "rho", "L bar", *LINES, "outside"])


def findings(table: pd.DataFrame, draws: int, delta: float = DELTA) -> list[str]:
    """What came out, as sentences.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    draws : int
        As given to it.
    delta : float

    Returns
    -------
    list of str
    """
    worst = table["outside"].max()
    said = [
        f"Of {draws:,} draws {_percent(worst)} beyond the bound, in {_rows(table)}; the theorem allows {100 * delta:g} %."
    ]
    known = table[table["observed"] > 0]
    if len(known):
        times = known["bound"] / known["observed"]
        said.append(
            f"The bound is {_range(times)} times as wide as what {100 * (1 - delta):g} % of the draws stay below; with each "
            f"point's own range it is {_range(known['own range'] / known['observed'])} times."
        )
        normal = (known["normal"] / known["observed"] - 1).abs().max()
        said.append(f"The exact standard deviation gives that width within {math.ceil(100 * normal)} %.")
    for A, part in table.groupby("A", sort=False):
        part = part.sort_values("points")
        first, last = (part.iloc[at].to_dict() for at in (0, -1))
        one = (
            f"A = {A:g}, {last['points']:,.0f} points: one evaluation is off by up to {last['observed']:.1f} points in "
        )
        one += f"{100 * (1 - delta):g} % of the draws, the bound says {last['bound']:.0f}."
        if len(part) > 1 and last["observed"] > 0:
            root = math.sqrt(last["points"] / first["points"])
            falls = [first[name] / last[name] for name in ("bound", "observed")]
            one += f" From {first['points']:,.0f} points on the bound fell {falls[0]:.1f} times, the draws' width "
            one += f"{falls[1]:.1f} times; the root of the numbers of points is {root:.1f} times as large."
            grown = last["rho"] / first["rho"]
            one += f" ρ rose by {100 * (grown - 1):.0f} %." if grown > 1.005 else ""
        said.append(one)
    return said


def findings_recorded(table: pd.DataFrame, recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same: how much wider than the draws the bound is.

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
    widths = {f"recorded on {dataset}": _times(part) for dataset, part in recorded.items()} | {
        "in this run": _times(table)
    }
    said = [f"{where} {times}" for where, times in widths.items() if times]
    start = "Real data first: the bound is so many times as wide as what the draws stay below"
    return [f"{start}: {', '.join(said)}."] if recorded else []


def _times(table: pd.DataFrame) -> str:
    known = table[table["observed"] > 0]
    return _range(known["bound"] / known["observed"]) if len(known) else ""


def _percent(share: float) -> str:
    return f"{100 * share:.1f} % at most are" if share else "none is"


def _rows(table: pd.DataFrame) -> str:
    return f"any of the {len(table)} rows" if len(table) > 1 else "the one row"


def _range(values: pd.Series) -> str:
    low, high = f"{values.min():.1f}", f"{values.max():.1f}"
    return low if low == high else f"{low} to {high}"


def plot(
    table: pd.DataFrame,
    model: str,
    ax=None,
    lines: Mapping[str, tuple[str, looks.Look]] = LINES,
    unit: str = f"points of nDCG@{K}",
    what: str = "evaluation",
) -> Figure:
    """Theorem 4.3: bounds and the observed deviation against the number of points, a panel for each A.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    model : str
        Whose predictions these are, for the title.
    ax : array of Axes, as many as A, optional
    lines, unit, what
        What is drawn, in which unit, and of what: theorem 4.4 draws its own.
    """
    grid = list(dict.fromkeys(table["A"]))
    ncols = min(len(grid), 3)
    nrows = -(-len(grid) // ncols)
    size = (looks.WIDE if ncols == 3 else looks.MEDIUM), 1.1 + 2.2 * nrows
    with figures.new(*size, ncols=ncols, nrows=nrows, sharey=True, squeeze=False, ax=ax) as (fig, axes):
        for axis, A in zip(axes.flat, grid, strict=False):
            part = table[table["A"] == A].sort_values("points")
            for column, (label, look) in lines.items():
                axis.plot(part["points"], part[column], label=label, **look.line())
            axis.set(xscale="log", yscale="log", title=f"A = {A:g}")
            axis.set_xticks(part["points"], [f"{n}" for n in part["points"]])
            # Ticks at 1, 3, 10 ...: what is drawn may lie within a decade or two.
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.minorticks_off()
            figures.draws(axis, x="points", y=list(lines))
        looks.label_grid(axes, "test points", unit, shown=len(grid))
        looks.legend(fig, axes[0][0], ncols=2)
        looks.title(fig, f"How far one {what} of {model} may be off, and is (95 % of the draws)")
    return fig
