"""Rows drawn at random, and the mean over all rows from those: the arithmetic of survey sampling (Cochran, Sampling
Techniques, 1977, chapter 7).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core import arithmetic
from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.judged.sheets import verdicts
from xcrepro.core.metrics.significance import t_reach

if TYPE_CHECKING:
    import pandas as pd

UNSEEN = 2
"""Rows whose change judges may not have met, each as far off as those that changed; by simulation (docs/judged.md)."""
ENOUGH = 12
"""Degrees of freedom that two predictors need; with fewer there is the last one, the cheap verdicts, alone; by simulation."""


def sample(n_rows: int, n: int, seed: int = 0) -> np.ndarray:
    """Rows to judge, drawn at random without replacement, in the order in which to judge them.

    With one seed the first rows of a larger sample are the smaller one, so that you can go on later.

    Parameters
    ----------
    n_rows : int
        Rows of the test set.
    n : int
        How many to draw.
    seed : int

    Returns
    -------
    ndarray of int64, shape (n,)

    Examples
    --------
    >>> sample(1000, 3, seed=1), sample(1000, 5, seed=1)
    (array([705, 649, 543]), array([705, 649, 543, 927, 577]))
    """
    n_rows = whole_number("n_rows", n_rows, 1)
    n = whole_number("n", n, 1, n_rows, "there are no more rows")
    return np.random.default_rng(whole_number("seed", seed)).permutation(n_rows)[:n]


def next_rows(found: pd.DataFrame, given, within: float, n_rows: int, seed: int = 0) -> np.ndarray:
    """Which rows to judge next, until every interval reaches no further than ``within`` to either side.

    They are drawn at random among the rows not drawn yet, so that all judged rows together stay a random choice. A row
    that is picked because it looks informative would break the interval.

    Parameters
    ----------
    found : DataFrame
        Of :func:`xcrepro.judged.estimate` or :func:`xcrepro.judged.compare`, about "these rows". Coverage is left out: no
        number of rows closes its bounds.
    given
        The verdicts so far.
    within : float
        Half the wanted width, such as 0.02 for two points.
    n_rows : int
        Rows of the test set.
    seed : int

    Returns
    -------
    ndarray of int64
        In the order in which to judge them; none if the intervals are narrow enough.
    """
    real_number("within", within, above=0)
    drawn = verdicts(given).drawn
    most = drawn.size
    for line in found[found["metric"] != "coverage"].itertuples():
        n, spread = line.judged, line.stderr * float(np.sqrt(line.judged / max(1.0 - line.judged / n_rows, 1e-12)))
        if not spread > 0:
            continue
        while (
            n < n_rows
            and t_reach(found.attrs["confidence_level"], n - 2) * spread * np.sqrt(1.0 / n - 1.0 / n_rows) > within
        ):
            n = min(n_rows, n + max(1, n // 50))
        most = max(most, n)
    order = sample(n_rows, n_rows, seed)
    return order[~np.isin(order, drawn)][: most - drawn.size]


def estimated(
    observed: float,
    f: np.ndarray,
    y: np.ndarray,
    n_rows: int,
    method: str = "ppi++",
    target: str = "these rows",
    confidence_level: float = 0.95,
    largest: float = 1.0,
    skewed: bool = True,
) -> tuple[float, float, float, float, float]:
    """Value, stderr, low, high and weight of the mean of y over all rows, known for the judged ones, with f known for all.

    The interval is Student's, of n - 1 degrees of freedom, n - 2 where the weight is found from the same rows. Where few
    labels are missing, few judged rows change, and their spread tells little: so the squares of y - weight f have those
    of :data:`UNSEEN` more rows, each as far from the mean as rows are in y, times the weight. With ``skewed`` the ends are
    moved outwards by the skewness of the judged rows (Hall, On the removal of skewness by transformation, 1992): missing
    labels change few rows, and often those in one direction, so that few judged rows tend to show too little of it. If
    y - weight f is the same in all judged rows, the interval has room for as many other rows as n draws can miss: a share
    of 1 - (half of 1 - confidence_level)^(1 / n), each other by ``largest``.
    """
    n = y.size
    f_mean, y_mean = math.fsum(f.tolist()) / n, math.fsum(y.tolist()) / n
    spread = math.fsum(((f - f_mean) ** 2).tolist())
    weight = {"ppi": 1.0, "judged only": 0.0}.get(method)
    tuned = weight is None
    if tuned:
        shared = math.fsum(((f - f_mean) * (y - y_mean)).tolist())
        weight = min(max(shared / spread, 0.0), 1.0) if spread > 0 else 1.0
    value = y_mean + weight * (observed - f_mean)
    rest = y - y_mean - weight * (f - f_mean)
    squares, dof = math.fsum((rest * rest).tolist()), n - 1 - tuned
    left = 1.0 - n / n_rows
    flat, apart = squares <= 1e-24 * n, math.fsum(((y - y_mean) ** 2).tolist()) / (n - 1)
    squares += 0.0 if flat else UNSEEN * weight * apart
    error = squares / dof / n * left
    if target == "fresh rows":
        error += apart / n_rows
    stderr = math.sqrt(error)
    reach = float(t_reach(confidence_level, dof))
    if flat and left > 0:
        missed = 1.0 - float(arithmetic.power(0.5 - confidence_level / 2.0, 1.0 / n))
        low = high = missed * largest * left + reach * stderr
    else:
        bend = math.fsum((rest * rest * rest).tolist()) / (squares * math.sqrt(squares)) if skewed and left > 0 else 0.0
        low, high = (stderr * max(reach, abs(unbent(side, bend))) for side in (reach, -reach))
    return value, stderr, value - low, value + high, float(weight)


def regressed(
    known: np.ndarray,
    F: np.ndarray,
    y: np.ndarray,
    n_rows: int,
    confidence_level: float = 0.95,
    largest: float = 1.0,
    skewed: bool = True,
    fresh: bool = False,
) -> tuple[float, float, float, float, np.ndarray]:
    """Value, stderr, low, high and weights of the mean of y over all rows, from judged rows with predictors F (n, p), p <= 2.

    ``known`` are the predictors' means over all rows. The weights are those of least squares, on n - 1 - p degrees of freedom.

    Where the last predictor, the cheap verdicts, is seldom wrong, few judged rows tell how far: so the squares have those of
    :data:`UNSEEN` rows more, each as far off as the rows in which it was. The ends are moved outwards by the skewness. Where
    all is flat there is room for what n draws can miss, as in :func:`xcrepro.judged.estimated`; or the interval without the
    last predictor, if that is narrower.
    """
    n, p = F.shape
    left, spare = 1.0 - n / n_rows, n / (n - 1)
    share = 1.0 / n  # of a judged row in the mean
    base, pull = share * share * spare, share * share * left * spare

    def centred(values: np.ndarray) -> np.ndarray:
        return values - np.add.accumulate(values)[-1] / n  # one after the other, so that bits are the same everywhere

    def total(values: np.ndarray) -> float:
        return math.fsum(values.tolist())

    inner = [centred(column) for column in F.T]
    own = centred(y)
    use = pull or base  # with all rows judged the weights change nothing
    dof = float(n - 1)
    first = p - 1 if p > 1 and dof < ENOUGH else 0
    inner = inner[first:]
    weights = _weights([[total(use * a * b) for b in inner] for a in inner], [total(use * a * own) for a in inner])
    rest = own - sum((w * a for w, a in zip(weights, inner, strict=True)), np.zeros(n))
    gaps = [known[i] - total(share * F[:, i]) for i in range(first, p)]
    value = total(share * y) + math.fsum(w * gap for w, gap in zip(weights, gaps, strict=True))
    dof = max(dof - len(weights), 1.0)
    apart = total(base * own * own)
    flat = total(base * rest * rest) <= 1e-24
    off = np.abs(y - F[:, -1]) > 1e-12 if p else np.zeros(n, bool)
    # Each row counts once, and as its share of those that were wrong as one of the unseen.
    unseen = (0.0 if not p else UNSEEN) * (off / off.sum() if off.any() else np.full(n, 1.0 / n))
    error = total((pull + pull * unseen) * rest * rest) * (dof + len(weights)) / dof
    if fresh:
        error += apart * n / n_rows
    stderr, reach = math.sqrt(error), float(t_reach(confidence_level, dof))
    if flat and pull:
        missed = 1.0 - float(arithmetic.power(0.5 - confidence_level / 2.0, 1.0 / n))
        low = high = missed * largest * (1.0 - n / n_rows) + reach * stderr
        if p:
            found = regressed(known[:-1], F[:, :-1], y, n_rows, confidence_level, largest, skewed, fresh)
            if found[3] - found[2] < low + high:
                return *found[:4], np.append(found[4], 0.0)
    else:
        third = total((share * rest) * (share * rest) * (share * rest))
        around = total((share * share + share * share * unseen) * rest * rest)
        bend = third / (around * math.sqrt(around)) if skewed and around > 0 and pull else 0.0
        low, high = (stderr * max(reach, abs(unbent(side, bend))) for side in (reach, -reach))
    return value, stderr, value - low, value + high, np.array([0.0] * first + weights)


def _weights(A: list[list[float]], b: list[float]) -> list[float]:
    """Least squares on two predictors at most; of two that say the same the one that says more."""
    alone = [b[i] / A[i][i] if A[i][i] > 0 else 0.0 for i in range(len(b))]
    if len(b) < 2:
        return alone
    det = A[0][0] * A[1][1] - A[0][1] * A[1][0]
    if det > 1e-9 * A[0][0] * A[1][1]:
        return [(b[0] * A[1][1] - b[1] * A[0][1]) / det, (b[1] * A[0][0] - b[0] * A[1][0]) / det]
    best = max((0, 1), key=lambda i: alone[i] * b[i])
    return [alone[i] if i == best else 0.0 for i in (0, 1)]


def unbent(t: float, bend: float) -> float:
    """Hall's transformation backwards: the studentized mean at which the transformed one is t; bend is skewness / sqrt(n)."""
    if abs(bend) < 1e-6:
        return t
    x = 1.0 + bend * (t - bend / 6.0)
    return 3.0 / bend * (math.copysign(float(arithmetic.power(abs(x), 1.0 / 3.0)) if x else 0.0, x) - 1.0)
