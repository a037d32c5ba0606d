"""The propensity model of Jain et al. 2016: how likely a relevant label is to have been observed.

:func:`inverse` is the model, :func:`fit` finds its A and B from estimated propensities, :func:`estimate_from_hierarchy` makes
such estimates, and :func:`drop_labels` lets labels go missing.

A label seen N_l times in N train points is assumed to be marked, where it is relevant, with probability

    p_l = 1 / (1 + C exp(-A log(N_l + B))),    C = (log N - 1) (B + 1)^A        (jain16, eq. 1)

with natural logarithms. Its inverse (eq. 2) is the weight of a hit in the propensity-scored metrics. A and B per
dataset stand in the registry (``xc.data.registry.get(name).A``): 0.5 / 0.4 for WikiLSHTC-325K and the Wikipedia-500K and
WikiTitles sets, 0.6 / 2.6 for the Amazon product sets, 0.55 / 1.5 for all others, AmazonCat and Wiki10 included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic
from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.hierarchy import ancestors
from xcrepro.core.truth import as_truth

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Fit",
    "HierarchyEstimate",
    "ancestors",
    "drop_labels",
    "estimate_from_hierarchy",
    "fit",
    "inverse",
]


def __dir__() -> list[str]:
    return __all__


_A_RANGE = (1e-3, 20.0)
_B_RANGE = (1e-6, 1e6)  # of B + 1, or of B where a label was never seen
_STARTS = [(A, B) for A in (0.2, 0.55, 1.0, 2.0) for B in (0.1, 1.5, 20.0)]
# Below this much of J_B at right angles to J_A (squared), A and B are one parameter.
_ANGLE = 1e-10
_ROWS = 100_000


def inverse(label_counts, n_points: int, A: float = 0.55, B: float = 1.5) -> np.ndarray:
    r"""Inverse propensities 1/p_l (jain16, eq. 2): ``1 + (log N - 1) (B + 1)^A (N_l + B)^-A``.

    .. math::

        \frac{1}{p_l} = 1 + (\ln N - 1) (B + 1)^A (N_l + B)^{-A}

    Parameters
    ----------
    label_counts : array_like of float, shape (L,)
        The number of TRAIN points that carry each label, N_l, 0 to N; labels never seen are allowed.
    n_points : int
        N, the number of TRAIN points, at least 3 (for fewer, C is negative and 1/p below 1).
    A, B : float
        The dataset's parameters; A > 0, B > -1, and B > 0 where a label was never seen.

    Returns
    -------
    ndarray of float64, shape (L,)
        1 or more. A label seen once weighs exactly log N.

    Raises
    ------
    ArgumentError
        For counts that are negative, not finite or larger than N, and parameters out of range.

    References
    ----------
    * Jain, Prabhu and Varma, KDD 2016, https://doi.org/10.1145/2939672.2939756

    Examples
    --------
    >>> inverse([1, 10, 1000], n_points=15539).round(4)
    array([9.6511, 4.7373, 1.3203])
    """
    counts = np.asarray(label_counts, np.float64)
    if counts.ndim != 1:
        raise ArgumentError("label_counts", "must be one count a label", f"an array of shape {counts.shape}")
    real_number("n_points", n_points, at_least=3, do="it is the number of train points")
    real_number("A", A, above=0)
    real_number("B", B, above=-1)
    bad = ~((counts >= 0) & (counts <= n_points) & (counts + B > 0))
    if bad.any():
        label, do = int(np.argmax(bad)), "count labels on the train split, whose size is n_points"
        rule = f"must be train counts between 0 and n_points = {n_points}, with N_l + B > 0"
        raise ArgumentError("label_counts", rule, f"{counts[label]:g} for label {label}", do)
    return 1.0 + (arithmetic.log(n_points) - 1.0) * arithmetic.power((B + 1.0) / (counts + B), A)


# ---------------------------------------------------------------------- A and B from points


@dataclass(frozen=True)
class Fit:
    """What :func:`fit` found.

    Attributes
    ----------
    A, B : float
        The parameters of least squared error.
    A_stderr, B_stderr : float
        Their standard errors, infinite where the points do not determine them, NaN for two points (a perfect fit leaves
        nothing to judge by).
    correlation : float
        Of the two errors; near 1 or -1 many pairs fit nearly as well.
    rms : float
        Root of the (weighted) mean squared error of p.
    n_fitted : int
        How many points.
    n_points : int
        The N of the model.
    identifiable : bool
        False where other A, B fit as well, and A, B are one choice of many.
    why : str
        What is missing then.
    """

    A: float
    B: float
    A_stderr: float
    B_stderr: float
    correlation: float
    rms: float
    n_fitted: int
    n_points: int
    identifiable: bool
    why: str = ""

    def propensity(self, label_counts) -> np.ndarray:
        """(L,) float64: the fitted curve, ``1 / inverse(label_counts, n_points, A, B)``."""
        return 1.0 / inverse(label_counts, self.n_points, self.A, self.B)


def fit(label_counts, propensity, n_points: int, *, weights=None) -> Fit:
    """A and B by least squares between ``propensity`` and the model's curve (jain16, section 5 and fig. 2).

    The curve passes through p = 1/log N at N_l = 1 whatever A and B, so such points determine nothing; at least
    two other counts are needed. The best of three starts is taken; A is looked for in [0.001, 20], B + 1 up to 10^6.

    Parameters
    ----------
    label_counts, propensity : array_like of float, shape (m,)
        N_l >= 0 and the estimated p_l in [0, 1], of labels or of bins of labels; m >= 2.
    n_points : int
        N, the train points the counts come from, 3 or more.
    weights : array_like of float, shape (m,), optional
        Of each squared error, 0 or more, by default equal: 1 over the variance of each p_l where it is known, up to a
        common factor. The standard errors take the scatter about the curve for the noise of p: they know nothing of an
        error that all points share, such as that of :func:`estimate_from_hierarchy`.

    Raises
    ------
    ArgumentError
        For shapes that differ and values out of range.

    Examples
    --------
    >>> counts = np.array([2, 5, 20, 100, 1000])
    >>> found = fit(counts, 1 / inverse(counts, n_points=15539, A=0.5, B=0.4), n_points=15539)
    >>> round(found.A, 6), round(found.B, 6), found.identifiable
    (0.5, 0.4, True)
    """
    counts = np.asarray(label_counts, np.float64)
    p = np.asarray(propensity, np.float64)
    if counts.ndim != 1 or counts.size < 2:
        raise ArgumentError("label_counts", "must be two or more counts", f"an array of shape {counts.shape}")
    if p.shape != counts.shape:
        raise ArgumentError("propensity", f"must be one value for each of the {counts.size} counts", f"shape {p.shape}")
    w = np.ones(counts.size) if weights is None else np.asarray(weights, np.float64)
    if w.shape != counts.shape or not (np.isfinite(w) & (w >= 0)).all() or not w.any():
        rule = f"must be {counts.size} finite numbers, 0 or more, one above 0"
        raise ArgumentError("weights", rule, f"shape {w.shape}: {w}")
    if not ((p >= 0) & (p <= 1)).all():
        place = int(np.argmin((p >= 0) & (p <= 1)))
        raise ArgumentError("propensity", "must be in [0, 1]", f"{p[place]:g} at place {place}")
    inverse(counts, n_points)  # its checks of counts and n_points
    used = w > 0
    counts, p, w = counts[used], p[used], w[used] / w[used].mean()
    low = min(1.0, counts.min())  # B has to stay above minus this
    log_c = arithmetic.log(arithmetic.log(n_points) - 1.0)

    def curve(A: float, B: float) -> tuple[np.ndarray, np.ndarray]:
        """The curve, and (m, 2) its derivatives by A and B."""
        ratio = arithmetic.log((B + 1.0) / (counts + B))
        value = arithmetic.sigmoid(-(log_c + A * ratio))
        slope = -value * (1.0 - value)
        return value, np.column_stack([slope * ratio, slope * A * (1.0 / (B + 1.0) - 1.0 / (counts + B))])

    # Searched in log A and log(B + low): both stay in their range by themselves, and scale does not matter.
    def parameters(x: np.ndarray) -> tuple[float, float]:
        return arithmetic.exp(x[0]), arithmetic.exp(x[1]) - low

    def errors(x: np.ndarray) -> np.ndarray:
        return np.sqrt(w) * (curve(*parameters(x))[0] - p)

    def jacobian(x: np.ndarray) -> np.ndarray:
        return np.sqrt(w)[:, None] * curve(*parameters(x))[1] * arithmetic.exp(x)

    bounds = arithmetic.log([_A_RANGE, _B_RANGE]).T
    starts = [arithmetic.log([A, B + low]) for A, B in _STARTS]
    starts.sort(key=lambda x: float((errors(x) * errors(x)).sum()))
    tries = [_least_squares(errors, jacobian, x, bounds) for x in starts[:3]]
    x, cost = min(tries, key=lambda found: found[1])
    A, B = parameters(x)
    squares = _products(np.sqrt(w)[:, None] * curve(A, B)[1])
    determinant = squares[0, 0] * squares[1, 1] - squares[0, 1] * squares[0, 1]
    rms = math.sqrt(cost / counts.size)
    why = ""
    if np.unique(counts[counts != 1]).size < 2:
        why = "two different counts besides 1 are needed: at N_l = 1 the curve is 1/log N for every A and B"
    elif (np.abs(x - bounds) < 1e-6).any():
        why = "the best A or B lies at the end of its range: the points do not follow a rising curve of this family"
    elif not determinant > _ANGLE * squares[0, 0] * squares[1, 1]:
        why = "over these counts a change of A is undone by a change of B"
    if why:
        return Fit(A, B, math.inf, math.inf, math.nan, rms, counts.size, n_points, False, why)
    noise = cost / (counts.size - 2) if counts.size > 2 else math.nan
    A_stderr, B_stderr = (math.sqrt(noise * squares[i, i] / determinant) for i in (1, 0))
    correlation = float(-squares[0, 1] / math.sqrt(squares[0, 0] * squares[1, 1]))
    return Fit(A, B, A_stderr, B_stderr, correlation, rms, counts.size, n_points, identifiable=True)


def _products(columns: np.ndarray) -> np.ndarray:
    """(2, 2): the inner products of two columns."""
    return (columns[:, :, None] * columns[:, None, :]).sum(axis=0)


def _least_squares(errors: Callable, jacobian: Callable, x: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
    """The x within bounds (2, 2) to which Levenberg and Marquardt's steps lead from a start, and its sum of squares."""
    found = errors(x)
    cost, damping = float((found * found).sum()), 1e-3
    for _ in range(500):
        J = jacobian(x)
        downhill, squares = -(J * found[:, None]).sum(axis=0), _products(J)
        # What lies at a bound and would leave stays there.
        free = ~(((x <= bounds[0]) & (downhill < 0)) | ((x >= bounds[1]) & (downhill > 0)))
        downhill, width, b = np.where(free, downhill, 0.0), np.diag(squares), squares[0, 1] if free.all() else 0.0
        lower = False
        while not lower and damping < 1e20:
            a, c = np.where(free & (width > 0), width * (1.0 + damping), 1.0)
            step = np.array([c * downhill[0] - b * downhill[1], a * downhill[1] - b * downhill[0]]) / (a * c - b * b)
            there = np.clip(x + step, *bounds)
            those = errors(there)
            lower = float((those * those).sum()) < cost
            damping = max(damping / 10.0, 1e-12) if lower else damping * 4.0
        if not lower:
            break
        x, found, cost = there, those, float((those * those).sum())
    return x, cost


# ---------------------------------------------------------------------- points from a hierarchy


@dataclass(frozen=True)
class HierarchyEstimate:
    """What :func:`estimate_from_hierarchy` found, as two pandas tables, both by rising count.

    Attributes
    ----------
    labels : DataFrame
        A row a label: label, n_descendants, count (N_l), complete_count (N_l*), propensity (their ratio; NaN where neither
        the label nor a descendant occurs).
    bins : DataFrame
        A row a bin of labels that occur: n_labels, count_min, count_mean, count_max, propensity (the mean over its labels),
        stderr (of that mean, from the scatter in the bin; NaN for one label).
    n_points : int
        The rows of Y.
    """

    labels: pd.DataFrame
    bins: pd.DataFrame
    n_points: int


def estimate_from_hierarchy(Y, parents, *, min_descendants: int = 5, labels_per_bin: int = 20) -> HierarchyEstimate:
    """Propensities by the procedure of jain16, section 5, for Wikipedia.

    If a label is relevant to a point, so are all its ancestors. So N_l*, the size label l would have had in the complete
    truth, is taken to be the number of points that carry l or any of its descendants, and p_l = N_l / N_l*. Labels with
    more than 4 descendants (``min_descendants`` 5) are used; sorted by N_l, ties by id, they are averaged in bins of
    ``labels_per_bin``, the last bin taking what is left. Labels that no point carries are in no bin.

    The result is too high where descendants go missing as well: a point that lost l and all its descendants is not counted
    in N_l*. Rare descendants go missing more, so this can be no small matter, and nothing in the data shows it. A synthetic
    twin with a hierarchy (``xcrepro.twin(name, hierarchy=True)``) has the p_l to hold it to.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        The OBSERVED truth.
    parents : array_like of int, shape (L,) or (m, 2)
        The label above, -1 for none (as a twin with a hierarchy has it); or pairs (child, parent), for labels with
        several parents. Not every ancestor has to be given: they are followed upwards.
    min_descendants, labels_per_bin : int
        See above; 1 or more.

    Raises
    ------
    ArgumentError
        For parents that are no labels or form a circle, and where no label has enough descendants.

    Examples
    --------
    >>> Y = np.zeros((5, 7))
    >>> Y[:2, 0] = 1                       # two points carry label 0
    >>> Y[[1, 2, 3], [1, 2, 6]] = 1        # three carry something below it, one of them both
    >>> found = estimate_from_hierarchy(Y, [-1, 0, 0, 0, 0, 0, 5])
    >>> found.labels.to_dict("records")
    [{'label': 0, 'n_descendants': 6, 'count': 2, 'complete_count': 4, 'propensity': 0.5}]
    """
    import pandas as pd

    whole_number("min_descendants", min_descendants, 1)
    whole_number("labels_per_bin", labels_per_bin, 1)
    truth = as_truth(Y)
    above = ancestors(parents, truth.n_labels)
    n_descendants = np.bincount(above.indices, minlength=truth.n_labels)
    chosen = np.flatnonzero(n_descendants >= min_descendants)
    if chosen.size == 0:
        rule, most = f"must give some label {min_descendants} descendants or more", n_descendants.max(initial=0)
        raise ArgumentError("parents", rule, f"{most} at most", "lower min_descendants")
    below = (above + sparse.identity(truth.n_labels, bool, "csr"))[:, chosen]
    complete = np.zeros(chosen.size, np.int64)
    for lo in range(0, truth.n_rows, _ROWS):
        ends = truth.indptr[lo : lo + _ROWS + 1]
        indices, shape = truth.indices[ends[0] : ends[-1]], (ends.size - 1, truth.n_labels)
        rows = sparse.csr_matrix((np.ones(indices.size, bool), indices, ends - ends[0]), shape=shape)
        complete += np.bincount((rows @ below).indices, minlength=chosen.size)
    counts = truth.label_counts()[chosen]
    found = {"label": chosen, "n_descendants": n_descendants[chosen], "count": counts, "complete_count": complete}
    labels = pd.DataFrame(found).sort_values(["count", "label"], ignore_index=True)
    labels["propensity"] = labels["count"] / labels["complete_count"]
    seen = labels[labels["count"] > 0].reset_index(drop=True)
    grouped = seen.groupby(seen.index // labels_per_bin)
    counted = {f"count_{of}": ("count", of) for of in ("min", "mean", "max")}
    fitted = {"propensity": ("propensity", _mean), "stderr": ("propensity", _stderr)}
    bins = grouped.agg(n_labels=("label", "size"), **counted, **fitted)
    return HierarchyEstimate(labels, bins.rename_axis("bin"), truth.n_rows)


def _mean(values) -> float:
    """Rounded once: pandas' own differs in the last bit from build to build."""
    return math.fsum(values) / len(values)


def _stderr(values) -> float:
    if len(values) < 2:
        return math.nan
    mean = _mean(values)
    return math.sqrt(math.fsum((values - mean) ** 2) / (len(values) - 1) / len(values))


# ---------------------------------------------------------------------- missing labels


def drop_labels(Y, propensity, rng) -> sparse.csr_matrix:
    """Let relevant labels go missing: each is kept with its propensity, independently of all others.

    One uniform number is drawn for each relevant pair, row by row, labels rising, and the pair stays where it is below
    p. So with one seed a higher propensity keeps what a lower one kept, and more.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        The complete truth; it is not changed.
    propensity : array_like of float, shape (L,) or (n, L)
        p_l in [0, 1], or p_il where it depends on the point as well.
    rng : numpy.random.Generator or int
        A generator, which is moved on, or a seed.

    Returns
    -------
    csr_matrix of float32, shape (n, L)
        Ones, int32 indices sorted.

    Raises
    ------
    ArgumentError
        For p out of range.

    Examples
    --------
    >>> Y = np.ones((1000, 2))
    >>> drop_labels(Y, [1.0, 0.25], rng=0).sum(axis=0).astype(int).tolist()
    [[1000, 258]]
    """
    truth = as_truth(Y)
    p = np.asarray(propensity, np.float64)
    if p.shape not in ((truth.n_labels,), (truth.n_rows, truth.n_labels)):
        rule = f"must be {truth.n_labels} values, one a label, or {truth.n_rows} x {truth.n_labels}"
        raise ArgumentError("propensity", rule, f"shape {p.shape}")
    bad = ~((p >= 0) & (p <= 1))
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ArgumentError("propensity", "must be in [0, 1]", f"{p[place]:g} for label {place[-1]}")
    rows = np.repeat(np.arange(truth.n_rows), truth.sizes)
    of_pair = p[truth.indices] if p.ndim == 1 else p[rows, truth.indices]
    kept = np.random.default_rng(rng).random(rows.size) < of_pair
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=truth.n_rows))])
    indices = truth.indices[kept].astype(np.int32)
    return sparse.csr_matrix((np.ones(indices.size, np.float32), indices, indptr), shape=(truth.n_rows, truth.n_labels))
