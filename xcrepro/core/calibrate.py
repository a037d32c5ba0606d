"""Post-hoc calibration: maps from scores to probabilities, learned from scores and hits (calibration, sections 2.3, 4).

A calibrator has ``fit(scores, hits)``, ``predict(scores)`` and ``save(path)``; :func:`load` reads it back. Common to all:

- ``scores`` is of any shape, real, of any range unless the class says otherwise; the top k of all rows pooled is what the
  paper calibrates. **Minus infinity means absent**, as in :class:`xcrepro.core.predictions.TopK`: such places are left out of
  the fit and stay minus infinity. NaN and plus infinity are refused.
- ``hits`` has the same shape: was the label there relevant? bool, or numbers that are 0 or 1.
- ``predict`` returns float64 probabilities in the shape of its argument.
- What is learned depends on nothing but how many pairs and hits there are at each score. ``fit_counts(scores, n, hits)``
  takes just that, and ``fit`` counts first; so the order of the pairs does not matter, to the last bit.

:func:`cross_fit` calibrates a test set by itself without showing a row its own outcome; :func:`cross_fit_top` does it to a
TopK. :func:`min_max` and :func:`margin` bring unbounded scores into [0, 1] first.

>>> import numpy as np
>>> scores = np.array([[0.9, 0.4], [0.8, 0.3], [0.6, 0.1]])
>>> hits = np.array([[True, False], [True, True], [False, False]])
>>> Isotonic().fit(scores, hits).predict(scores).round(3)
array([[1.   , 0.333],
       [1.   , 0.333],
       [0.333, 0.   ]])
"""

from __future__ import annotations

import copy
import json
import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from xcrepro.core import arithmetic, threads
from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.kernels import isotonic as kernel
from xcrepro.core.kernels import venn_abers
from xcrepro.core.paths import atomic_path, seal
from xcrepro.core.predictions import TopK, check_pair
from xcrepro.core.tensors import labels_as_matrix
from xcrepro.core.truth import as_truth

__all__ = [
    "METHODS",
    "Beta",
    "Calibrator",
    "HistogramBinning",
    "Isotonic",
    "Platt",
    "Temperature",
    "VennAbers",
    "cross_fit",
    "cross_fit_top",
    "fit_top",
    "fold_edges",
    "load",
    "margin",
    "method_of",
    "min_max",
    "transform",
]


def __dir__() -> list[str]:
    return __all__


_FORMAT = "xcrepro calibrator 2"
_EDGE = np.finfo(np.float64).eps  # scores are kept this far from 0 and 1 where their logarithm is taken


class Calibrator:
    """A map from scores to probabilities, a ``dataclass(eq=False)`` whose fields are its parameters. See the module for what
    every calibrator takes and returns."""

    if TYPE_CHECKING:  # what each has of its own

        def _fit(self, scores: np.ndarray, n: np.ndarray, hits: np.ndarray) -> None: ...

        def _predict(self, scores: np.ndarray) -> np.ndarray: ...

    def fit(self, scores, hits) -> Self:
        """Learn the map.

        Parameters
        ----------
        scores, hits
            See the module.

        Returns
        -------
        Self
            The calibrator.

        Raises
        ------
        ArgumentError
            Where there is no pair to learn from.
        """
        values, present = _scores(scores)
        found = _hits(hits, values.shape, present)
        if not present.any():
            raise ArgumentError("scores", "must hold at least one score to learn from", "none, or only absent places")
        ordered = _ordered(values[present], found[present].astype(np.int32))
        self._fit(*kernel.counts(*ordered, -1, *Room().arrays(ordered[0].size)))
        return self

    def fit_counts(self, scores, n, hits) -> Self:
        """Learn the map from counts, as :meth:`xcrepro.core.accumulators.scores.ScorePool.runs` gives them: the same, to the
        last bit, as :meth:`fit` on the pairs one by one.

        Parameters
        ----------
        scores : array_like, shape (m,)
            Finite, rising strictly, m at least 1.
        n, hits : array_like of int, shape (m,)
            How many pairs there are at each score, 1 or more, and how many of them are hits.

        Returns
        -------
        Self
            The calibrator.

        Raises
        ------
        ArgumentError
            For anything else.

        Examples
        --------
        >>> pairs = Isotonic().fit([0.2, 0.2, 0.7, 0.7, 0.7], [0, 1, 1, 1, 0])
        >>> Isotonic().fit_counts([0.2, 0.7], [2, 3], [1, 2]).predict([0.2, 0.5]) == pairs.predict([0.2, 0.5])
        array([ True,  True])
        """
        self._fit(*_counts(scores, n, hits))
        return self

    def predict(self, scores) -> np.ndarray:
        """The probability of a hit at each score.

        Parameters
        ----------
        scores
            See the module.

        Returns
        -------
        ndarray of float64
            In the shape of ``scores``; absent stays minus infinity.

        Raises
        ------
        ArgumentError
            Before ``fit``.
        """
        self._check_fitted()
        return _mapped(scores, self._predict)

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted calibrator as JSON with a digest, whole or not at all; the numbers come back to the last bit."""
        self._check_fitted()
        about = {
            "format": _FORMAT,
            "calibrator": type(self).__name__,
            "parameters": asdict(self),  # type: ignore[call-overload]
            "learned": {name: np.asarray(getattr(self, name)).tolist() for name in self._learned},
        }
        about["sha256"] = seal(about)
        with atomic_path(path) as part:
            part.write_text(json.dumps(about, indent=1, allow_nan=False) + "\n", encoding="utf-8")

    def _check_fitted(self) -> None:
        if not hasattr(self, self._learned[0]):
            raise ArgumentError(type(self).__name__, "must be fitted", "no fit", "call fit first")

    # What a subclass writes: the names of what fit learns; _fit(scores, n, hits), float64 and int64 counts as fit_counts takes
    # them; _predict(scores), which no absent scores reach; and _fault(), what is wrong with the learned values of a file,
    # empty where nothing is.
    _learned: ClassVar[tuple[str, ...]] = ()


# ---------------------------------------------------------------------------------------------- isotonic


@dataclass(eq=False)
class Isotonic(Calibrator):
    """Isotonic regression: the rising step function with the least squared error (calibration, eq. 9), made continuous.

    The solution is scikit-learn's ``IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")`` in float64: equal scores are
    averaged first, adjacent violators pooled, scores between two blocks interpolated linearly, scores beyond the ends get
    the end's value. (scikit-learn also takes scores less than 1e-15 apart for equal; here equal means equal.) The pooling
    counts in whole numbers, so it is exact. It never falls as the score rises: an order can become a tie, but is never
    turned round.

    The end blocks are often all misses or all hits, and then it says 0 or 1: one pair that turns out otherwise costs a
    likelihood all it has (NLL its cap). ``smooth`` keeps it away from there.

    Parameters
    ----------
    smooth : int
        So many hits and as many misses are added to each block, as in Laplace's rule of succession (1), and the blocks are
        pooled anew where they no longer rise. 0: isotonic regression as it is.

    Attributes
    ----------
    knots_, values_ : ndarray of float64, shape (m,)
        Rising scores and their probabilities, m at most twice the number of blocks.

    Examples
    --------
    >>> import numpy as np
    >>> calibrator = Isotonic().fit(np.array([1.0, 2.0, 2.0, 4.0]), np.array([0, 1, 0, 1]))
    >>> calibrator.predict(np.array([0.0, 1.5, 2.0, 3.0, 9.0]))
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> Isotonic(smooth=1).fit(np.array([1.0, 2.0, 2.0, 4.0]), np.array([0, 1, 0, 1])).values_.round(3)
    array([0.333, 0.5  , 0.667])
    """

    _learned: ClassVar = ("knots_", "values_")

    smooth: int = 0

    def __post_init__(self) -> None:
        self.smooth = whole_number("smooth", self.smooth)

    def _fit(self, scores: np.ndarray, n: np.ndarray, hits: np.ndarray) -> None:
        first, last, hits, sizes = kernel.pool(scores, n, hits)
        if self.smooth:
            places = np.arange(sizes.size, dtype=np.float64)
            begin, end, hits, sizes = kernel.pool(places, sizes + 2 * self.smooth, hits + self.smooth)
            first, last = first[begin.astype(np.int64)], last[end.astype(np.int64)]
        ends = np.column_stack([first, last]).ravel()
        keep = np.ones(ends.size, bool)
        keep[1::2] = last > first  # a block of one score is one knot
        self.knots_, self.values_ = ends[keep], np.repeat(hits / sizes, 2)[keep]

    def _predict(self, scores: np.ndarray) -> np.ndarray:
        scores = np.ascontiguousarray(scores, np.float64)
        out = np.empty(scores.size)
        knots = self.knots_, self.values_
        threads.over_rows(scores.size, lambda lo, hi: kernel.interpolate(*knots, scores, lo, hi, out))
        return out

    def _fault(self) -> str:
        if self.knots_.ndim != 1 or self.knots_.shape != self.values_.shape or self.knots_.size == 0:
            return "knots_ and values_ of different lengths"
        if (np.diff(self.knots_) <= 0).any():
            return "knots_ that do not rise"
        return "values_ that fall" if (np.diff(self.values_) < 0).any() else _no_probabilities(self.values_)


@dataclass(eq=False)
class VennAbers(Calibrator):
    """Inductive Venn-Abers predictor (Vovk and Petej 2014), merged to one probability.

    To predict at a score, isotonic regression is fitted twice to all pairs and one more at that score: a miss, which gives p0
    there, and a hit, p1 >= p0. One of the two is a perfectly calibrated prediction whatever the scores' law, so long as the
    pairs are exchangeable. p = p1 / (1 - p0 + p1) is what has the least regret in log loss; it is never 0 or 1, and rises with
    the score.

    Attributes
    ----------
    knots_ : ndarray of float64, shape (m,)
        The scores learned from, rising.
    misses_, hits_ : ndarray of float64, shape (2 m + 1,)
        p0 and p1 at each of them (odd places) and between them (even places).

    Examples
    --------
    >>> import numpy as np
    >>> calibrator = VennAbers().fit(np.array([1.0, 2.0, 2.0, 4.0]), np.array([0, 1, 0, 1]))
    >>> calibrator.predict(np.array([0.0, 2.0, 3.0, 9.0])).round(3)
    array([0.333, 0.5  , 0.6  , 0.667])
    >>> [each.round(3).tolist() for each in calibrator.interval(np.array([0.0, 2.0, 9.0]))]
    [[0.0, 0.333, 0.5], [0.5, 0.667, 1.0]]
    """

    _learned: ClassVar = ("knots_", "misses_", "hits_")

    def _fit(self, scores: np.ndarray, n: np.ndarray, hits: np.ndarray) -> None:
        n, hits = np.ascontiguousarray(n, np.int64), np.ascontiguousarray(hits, np.int64)
        self.knots_ = np.asarray(scores, np.float64)
        self.misses_, self.hits_ = np.empty(2 * n.size + 1), np.empty(2 * n.size + 1)
        for outcome, out in ((0, self.misses_), (1, self.hits_)):

            def learn(lo: int, hi: int, outcome: int = outcome, out: np.ndarray = out) -> None:
                venn_abers.with_one_more(n, hits, outcome, lo, hi, out)

            threads.over_rows(out.size, learn)

    def interval(self, scores) -> tuple[np.ndarray, np.ndarray]:
        """p0 and p1 at each score.

        Parameters
        ----------
        scores : array_like
            Without absent places.

        Returns
        -------
        tuple of ndarray of float64
            In the shape of ``scores``.
        """
        self._check_fitted()
        places = self._places(np.asarray(scores))
        return self.misses_[places], self.hits_[places]

    def _predict(self, scores: np.ndarray) -> np.ndarray:
        places = self._places(scores)
        low, high = self.misses_[places], self.hits_[places]
        return high / (1.0 - low + high)

    def _places(self, scores: np.ndarray) -> np.ndarray:
        scores = scores.astype(np.float64)
        return np.searchsorted(self.knots_, scores, "left") + np.searchsorted(self.knots_, scores, "right")

    def _fault(self) -> str:
        if self.knots_.ndim != 1 or not self.misses_.shape == self.hits_.shape == (2 * self.knots_.size + 1,):
            return "knots_, misses_ and hits_ of lengths that do not fit"
        if (np.diff(self.knots_) <= 0).any():
            return "knots_ that do not rise"
        if (self.misses_ > self.hits_).any():
            return "misses_ above hits_"
        return _no_probabilities(self.misses_) or _no_probabilities(self.hits_)


# ---------------------------------------------------------------------------------------------- logistic families


@dataclass(eq=False)
class Platt(Calibrator):
    """Platt scaling: s -> 1 / (1 + exp(a s + b)) with the least cross-entropy (calibration, section 2.3). a < 0 where higher
    scores mean more hits.

    Fitted by Newton's method with backtracking, after Lin, Lin and Weng (2007). One score only, or equal outcomes only: a = 0.

    Parameters
    ----------
    targets : {"platt", "plain"}
        ``"platt"`` (Platt 1999): with P hits and M misses a hit's target is (P + 1) / (P + 2) and a miss's 1 / (M + 2), so
        that even separable pairs have a finite fit. ``"plain"``: 1 and 0, ordinary logistic regression. Separable pairs
        have no finite fit: this one stops where its probabilities are within 1e-12 of 0 and 1 on average.
    C : float, optional
        The inverse strength of a ridge a^2 / (2 C) beside the summed cross-entropy, b free: with ``"plain"``,
        scikit-learn's ``LogisticRegression(C=C)``, whose default is 1; None is its ``C=inf``.

    Attributes
    ----------
    a_, b_ : float

    Examples
    --------
    >>> import numpy as np
    >>> scores, hits = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), np.array([0, 0, 1, 0, 1])
    >>> Platt().fit(scores, hits).predict(scores).round(3)
    array([0.211, 0.302, 0.411, 0.53 , 0.646])
    >>> Platt(targets="plain").fit(scores, hits).predict(scores).round(3)
    array([0.057, 0.153, 0.349, 0.615, 0.826])
    """

    _learned: ClassVar = ("a_", "b_")

    targets: str = "platt"
    C: float | None = None

    def __post_init__(self) -> None:
        one_of("targets", self.targets, ("platt", "plain"))
        self.C = None if self.C is None else real_number("C", self.C, above=0, do="or None for no ridge")

    def _fit(self, scores: np.ndarray, n: np.ndarray, hits: np.ndarray) -> None:
        low, high = 0.0, 1.0
        if self.targets == "platt":
            n_hits = int(hits.sum())
            low, high = 1.0 / (int(n.sum()) - n_hits + 2.0), (n_hits + 1.0) / (n_hits + 2.0)
        ridge = 0.0 if self.C is None else 1.0 / self.C
        slope, intercept = _logistic(scores[None], n, hits, low, high, ridge)
        self.a_, self.b_ = -float(slope), -float(intercept)

    def _predict(self, scores: np.ndarray) -> np.ndarray:
        return arithmetic.sigmoid(-(self.a_ * scores.astype(np.float64) + self.b_))

    def _fault(self) -> str:
        return "" if np.ndim(self.a_) == np.ndim(self.b_) == 0 else "a_ or b_ that is no number"


@dataclass(eq=False)
class Beta(Calibrator):
    """Beta calibration: logit p = a ln s - b ln(1 - s) + c with a, b >= 0 (Kull, Silva Filho and Flach 2017). Identity at
    a = b = 1, c = 0; the maps can bend both ways, which Platt's cannot.

    Scores must be in [0, 1]; 0 and 1 count as 2.2e-16 away from it. The fit is the exact optimum under the constraints: where
    the free one breaks a constraint, the best of those on the boundary.

    Attributes
    ----------
    a_, b_, c_ : float

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.linspace(0.05, 0.95, 10)
    >>> hits = np.array([0, 0, 0, 1, 0, 1, 1, 0, 1, 1])
    >>> Beta().fit(scores, hits).predict(np.array([0.0, 0.2, 0.8, 1.0])).round(3)
    array([0.   , 0.132, 0.819, 1.   ])
    """

    _learned: ClassVar = ("a_", "b_", "c_")

    def _fit(self, scores: np.ndarray, n: np.ndarray, hits: np.ndarray) -> None:
        features, tried = self._features(scores), []
        # The problem is convex: a free optimum that obeys is the optimum, else it lies where a or b or both are 0.
        for kept in ([0, 1], [0], [1], []):
            theta = np.zeros(3)
            theta[[*kept, 2]] = _logistic(np.ascontiguousarray(features[kept]), n, hits, 0.0, 1.0)
            if (theta[:2] >= 0).all():
                tried.append(theta)
                if len(kept) == 2:
                    break
        self.a_, self.b_, self.c_ = min(tried, key=lambda theta: _loss(features, n, hits, theta)).tolist()

    def _predict(self, scores: np.ndarray) -> np.ndarray:
        rise, fall = self._features(scores)
        return arithmetic.sigmoid(self.a_ * rise + self.b_ * fall + self.c_)

    @staticmethod
    def _features(scores: np.ndarray) -> np.ndarray:
        inside = np.clip(_probabilities(scores, "Beta").astype(np.float64), _EDGE, 1.0 - _EDGE)
        return np.stack([arithmetic.log(inside), -arithmetic.log1p(-inside)])

    def _fault(self) -> str:
        if not np.ndim(self.a_) == np.ndim(self.b_) == np.ndim(self.c_) == 0:
            return "a_, b_ or c_ that is no number"
        return "a_ or b_ below 0" if self.a_ < 0 or self.b_ < 0 else ""


@dataclass(eq=False)
class Temperature(Calibrator):
    """Temperature scaling: logit p = logit s / T, with the T > 0 of least cross-entropy (Guo and others 2017). Above 1 it draws
    all probabilities towards 1/2, below 1 away from it; 1/2 and the order of the scores stay.

    Scores must be in [0, 1]; 0 and 1 count as 2.2e-16 away from it. One number is learned, so a few hundred pairs are enough;
    but scores that are too high, or too low, everywhere stay so. T is infinite if higher scores do not mean more hits; all
    probabilities are then 1/2. Pairs that 1/2 separates have no finite fit: this one stops where its probabilities are within
    1e-12 of 0 and 1 on average.

    Attributes
    ----------
    slope_ : float
        1 / T, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> scores, hits = np.array([0.01, 0.1, 0.2, 0.8, 0.9, 0.99]), np.array([0, 1, 0, 1, 0, 1])
    >>> found = Temperature().fit(scores, hits)
    >>> round(1 / found.slope_, 2), found.predict(scores).round(2)
    (3.27, array([0.2 , 0.34, 0.4 , 0.6 , 0.66, 0.8 ]))
    """

    _learned: ClassVar = ("slope_",)

    def _fit(self, scores: np.ndarray, n: np.ndarray, hits: np.ndarray) -> None:
        logits, enough = self._logits(scores)[None], 1e-12 * int(n.sum())
        gradient, hessian = np.empty(2), np.empty((2, 2))

        def rise(slope: float) -> float:
            """The derivative of the cross-entropy, which rises with the slope; at its root is the optimum."""
            kernel.logistic_sums(logits, n, hits, 0.0, 1.0, np.array([slope, 0.0]), gradient, hessian)
            return float(gradient[0])

        low, high = 0.0, 1.0
        if rise(low) >= 0:
            self.slope_ = 0.0
            return
        while rise(high) < -enough:
            low, high = high, 2 * high
        slope = high
        for _ in range(200):
            at = rise(slope)
            low, high = (slope, high) if at < 0 else (low, slope)
            step = slope - at / hessian[0, 0] if hessian[0, 0] > 0 else low
            step = step if low < step < high else low + (high - low) / 2  # Newton's step, or half of what is left
            if abs(at) <= enough or step in (low, high, slope):
                break
            slope = step
        self.slope_ = float(slope)

    def _predict(self, scores: np.ndarray) -> np.ndarray:
        return arithmetic.sigmoid(self.slope_ * self._logits(scores))

    @staticmethod
    def _logits(scores: np.ndarray) -> np.ndarray:
        inside = np.clip(_probabilities(scores, "Temperature").astype(np.float64), _EDGE, 1.0 - _EDGE)
        return arithmetic.log(inside) - arithmetic.log1p(-inside)

    def _fault(self) -> str:
        return "" if np.ndim(self.slope_) == 0 and self.slope_ >= 0 else "a slope_ that is no number, 0 or more"


def _logistic(
    features: np.ndarray, n: np.ndarray, hits: np.ndarray, low: float, high: float, ridge: float = 0.0
) -> np.ndarray:
    """(d + 1,) weights and intercept of the logistic regression on (d, m) features of n pairs each; ridge / 2 w^2 is added to
    the sum."""
    d, total = len(features), int(n.sum())
    # Standardised columns make the Newton steps well-conditioned; a constant column becomes 0 and its weight stays 0.
    middle = (features * n).sum(axis=1) / total
    spread = np.sqrt(((features - middle[:, None]) ** 2 * n).sum(axis=1) / total)
    width = np.where(features.max(axis=1) > features.min(axis=1), spread, 0.0)
    scale = np.where(width > 0, width, 1.0)
    columns = np.where(width[:, None] > 0, (features - middle[:, None]) / scale[:, None], 0.0)
    penalty = np.append(ridge / scale**2, 0.0)
    theta = np.zeros(d + 1)
    gradient, hessian = np.empty(d + 1), np.empty((d + 1, d + 1))

    def measure(theta: np.ndarray) -> float:
        loss = kernel.logistic_sums(columns, n, hits, low, high, theta, gradient, hessian)
        gradient[:] += penalty * theta
        hessian.flat[:: d + 2] += penalty + 1e-12 * total
        return (loss + 0.5 * (penalty * theta**2).sum()) / total

    loss, polished = measure(theta), 0
    for _ in range(100):
        if np.abs(gradient).max() <= 1e-12 * total or polished == 2:
            break
        step = _solved(hessian, gradient)
        gain = float((gradient * step).sum()) / total
        if gain <= 1e-11:
            # So close to the optimum the gain drowns in the rounding of the loss, and full steps are the right ones.
            theta = theta - step
            loss, polished = measure(theta), polished + 1
            continue
        length, start = 1.0, theta
        while length > 1e-10:
            theta = start - length * step
            lower = measure(theta)
            if lower <= loss - 1e-4 * length * gain:
                break
            length /= 2
        else:
            theta = start
            break
        loss = lower
    weights = theta[:-1] / scale
    return np.append(weights, theta[-1] - (weights * middle).sum())


def _loss(features: np.ndarray, n: np.ndarray, hits: np.ndarray, theta: np.ndarray) -> float:
    d = len(features)
    return kernel.logistic_sums(features, n, hits, 0.0, 1.0, theta, np.empty(d + 1), np.empty((d + 1, d + 1)))


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The x with ``matrix @ x = right``, positive definite and of a few rows: by elimination, which needs no pivots then."""
    matrix, x = matrix.copy(), right.copy()
    for i in range(x.size):
        for below in range(i + 1, x.size):
            share = matrix[below, i] / matrix[i, i]
            matrix[below] -= share * matrix[i]
            x[below] -= share * x[i]
    for i in reversed(range(x.size)):
        x[i] = (x[i] - (matrix[i, i + 1 :] * x[i + 1 :]).sum()) / matrix[i, i]
    return x


# ---------------------------------------------------------------------------------------------- binning


@dataclass(eq=False)
class HistogramBinning(Calibrator):
    """Histogram binning: a score becomes the share of hits among the pairs in its bin (Zadrozny and Elkan 2001).

    A score on an edge belongs to the bin above. Unlike the others the map may fall, and all scores of a bin tie.

    Parameters
    ----------
    bins : int
        How many, 1 or more.
    equal : {"width", "mass"}
        ``"width"``: equal intervals of [0, 1], where scores must lie; a bin without pairs predicts its middle. ``"mass"``:
        about equal numbers of pairs, scores of any range; equal scores are never parted, so there may be fewer bins.

    Attributes
    ----------
    edges_ : ndarray of float64, shape (m - 1,)
        The inner edges.
    values_ : ndarray of float64, shape (m,)
        The probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> scores, hits = np.array([0.1, 0.2, 0.3, 0.4, 0.9]), np.array([0, 1, 0, 0, 1])
    >>> HistogramBinning(bins=2).fit(scores, hits).predict(np.array([0.0, 0.5]))
    array([0.25, 1.  ])
    >>> HistogramBinning(bins=2, equal="mass").fit(scores, hits).values_.round(3)
    array([0.5  , 0.333])
    """

    _learned: ClassVar = ("edges_", "values_")

    bins: int = 10
    equal: str = "width"

    def __post_init__(self) -> None:
        self.bins = whole_number("bins", self.bins, 1)
        one_of("equal", self.equal, ("width", "mass"))

    def _fit(self, scores: np.ndarray, n: np.ndarray, hits: np.ndarray) -> None:
        scores = self._ready(scores)
        before = np.append(0, np.cumsum(n))  # pairs below each score
        if self.equal == "width":
            bounds = np.linspace(0.0, 1.0, self.bins + 1)
            self.edges_ = bounds[1:-1]
            empty = (bounds[:-1] + bounds[1:]) / 2
        else:
            # The score of the pair at each cut
            cuts = np.searchsorted(before, np.arange(1, self.bins) * before[-1] // self.bins, side="right") - 1
            self.edges_ = scores[np.unique(cuts[cuts > 0])]
            empty = np.zeros(self.edges_.size + 1)  # no bin is: each edge is a score
        first = np.concatenate([[0], np.searchsorted(scores, self.edges_), [scores.size]])
        sizes = np.diff(before[first])
        n_hits = np.diff(np.append(0, np.cumsum(hits))[first])
        self.values_ = np.where(sizes > 0, n_hits / np.maximum(sizes, 1), empty)

    def _predict(self, scores: np.ndarray) -> np.ndarray:
        return self.values_[np.searchsorted(self.edges_, self._ready(scores), side="right")]

    def _ready(self, scores: np.ndarray) -> np.ndarray:
        if self.equal == "width":
            scores = _probabilities(scores, 'HistogramBinning(equal="width")')
        return scores.astype(np.float64)

    def _fault(self) -> str:
        if self.edges_.ndim != 1 or self.values_.shape != (self.edges_.size + 1,):
            return "edges_ and values_ of lengths that do not fit"
        if (np.diff(self.edges_) <= 0).any():
            return "edges_ that do not rise"
        return _no_probabilities(self.values_)


# ---------------------------------------------------------------------------------------------- by name, and files

METHODS = {
    "isotonic": Isotonic,
    "platt": Platt,
    "beta": Beta,
    "temperature": Temperature,
    "histogram": HistogramBinning,
    "venn-abers": VennAbers,
}


def load(path: str | os.PathLike) -> Calibrator:
    """Read a calibrator that ``save`` wrote.

    Parameters
    ----------
    path : path_like

    Returns
    -------
    Calibrator
        Of whatever class was saved.

    Raises
    ------
    DataError
        For anything else, and for a file whose content is not what was saved.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "platt.json"
    >>> calibrator = Platt().fit([0.2, 0.4, 0.7], [0, 1, 1])
    >>> calibrator.save(path)
    >>> load(path).predict([0.5]) == calibrator.predict([0.5])
    array([ True])
    """
    path = Path(path)
    classes = {kind.__name__: kind for kind in METHODS.values()}
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        if about["format"] != _FORMAT or about["calibrator"] not in classes:
            raise ValueError(f"format {about['format']!r}, calibrator {about['calibrator']!r}")
        if about["sha256"] != seal(about):
            raise ValueError("another content than was saved")
        calibrator = classes[about["calibrator"]](**about["parameters"])
        for name in calibrator._learned:
            value = np.array(about["learned"][name], np.float64)
            if not np.isfinite(value).all():
                raise ValueError(f"{name} that is not finite")
            setattr(calibrator, name, value if value.ndim else float(value))
        if fault := calibrator._fault():
            raise ValueError(fault)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        found = f"no whole calibrator ({error!r})"
        raise DataError(path, found, "what Calibrator.save wrote", do="Fit it again") from error
    return calibrator


# ---------------------------------------------------------------------------------------------- cross-fitting


def fold_edges(n_rows: int, folds: int) -> np.ndarray:
    """Where the contiguous folds of cross-fitting begin and end: fold f holds the rows [edges[f], edges[f + 1]).

    Parameters
    ----------
    n_rows : int
        n.
    folds : int
        2 to n. The sizes are those of ``numpy.array_split``: the first n % folds are one row longer.

    Returns
    -------
    ndarray of int64, shape (folds + 1,)

    Raises
    ------
    ArgumentError
        For another number of folds.

    Examples
    --------
    >>> fold_edges(11, 3)
    array([ 0,  4,  8, 11])
    """
    folds = whole_number("folds", folds, 2)
    if folds > n_rows:
        raise ArgumentError("folds", f"must not exceed the {n_rows} rows", folds, "ask for fewer")
    size, longer = divmod(n_rows, folds)
    first = np.arange(folds + 1, dtype=np.int64)
    return first * size + np.minimum(first, longer)


def cross_fit(scores, hits, method="isotonic", folds: int = 10, *, separate: bool = False) -> np.ndarray:
    """Calibrate each row by a map fitted on the other folds' rows (calibration, section 4, "Calibration methods").

    The pairs are sorted once for all folds; folds run in parallel, to the same bits.

    Parameters
    ----------
    scores, hits : array_like, shape (n, k) or (n,)
        See the module; (n,) is one score a row. A row never sees its own outcome.
    method : str or calibrator
        A name of :data:`METHODS` (that class with its defaults), or an unfitted calibrator such as ``Platt("plain")``;
        anything with ``fit(scores, hits)`` and ``predict(scores)`` on 1-D arrays will do. It is copied, never changed.
    folds : int
        Contiguous blocks of rows, 2 to n (:func:`fold_edges`); the authors take 10.
    separate : bool
        False fits one map to all k places pooled; True fits one to each place (appendix B).

    Returns
    -------
    ndarray of float64
        Probabilities in the shape of ``scores``, minus infinity where absent, place by place: what was re-ranked by it is
        for :func:`cross_fit_top`.

    Raises
    ------
    ArgumentError
        Where a fold has scores and the rest has none to learn from.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[0.9], [0.2], [0.8], [0.1]])
    >>> hits = np.array([[1], [0], [0], [1]])
    >>> cross_fit(scores, hits, "isotonic", folds=2).ravel()      # rows 0 and 1 by 2 and 3, and the other way round
    array([0.5       , 0.5       , 0.85714286, 0.        ])
    """
    calibrator = method_of(method)
    values, present = _scores(scores)
    found = _hits(hits, values.shape, present)
    if values.ndim not in (1, 2):
        raise ArgumentError("scores", "must be 1-D or 2-D, one row a point", f"shape {values.shape}")
    row_edges = fold_edges(len(values), folds)
    if separate and values.ndim == 2:
        out = np.full(values.shape, -np.inf)
        for place in range(values.shape[1]):
            what = f"place {place} of the rows outside fold "
            out[:, place] = _cross_fit(
                values[:, place], found[:, place], present[:, place], calibrator, row_edges, what
            )
        return out
    return _cross_fit(values, found, present, calibrator, row_edges, "the rows outside fold ")


def _cross_fit(scores, hits, present, calibrator, row_edges: np.ndarray, what: str) -> np.ndarray:
    # Absent places leave; rows stay in order, so a fold remains one stretch of the pairs.
    per_row = present.reshape(len(scores), -1).sum(axis=1)
    edges = np.concatenate([[0], np.cumsum(per_row)])[row_edges]
    values, found = scores[present], hits[present]
    sizes = np.diff(edges)
    check_folds(sizes, what)
    calibrated = np.empty(values.size)
    if isinstance(calibrator, Calibrator):
        # One sorting serves all folds: each passes over it and leaves its own pairs out.
        which = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
        ordered, room = _ordered(values, 2 * which + found), Room()

    def fold(f: int) -> None:
        lo, hi = edges[f], edges[f + 1]
        if lo == hi:
            return
        if isinstance(calibrator, Calibrator):
            fitted = fitted_copy(calibrator, *kernel.counts(*ordered, f, *room.arrays(values.size)))
        else:
            fitted = copy.deepcopy(calibrator)
            fitted.fit(np.concatenate([values[:lo], values[hi:]]), np.concatenate([found[:lo], found[hi:]]))
        calibrated[lo:hi] = fitted.predict(values[lo:hi])

    over_folds(sizes, fold)
    out = np.full(scores.shape, -np.inf)
    out[present] = calibrated
    return out


def check_folds(sizes: np.ndarray, what: str = "the rows outside fold ") -> None:
    """Refuse a fold that holds all the pairs there are: its rows have nothing to be calibrated by. sizes: (folds,) pairs."""
    lonely = (sizes > 0) & (sizes == sizes.sum())
    if lonely.any():
        rule = f"must hold scores in {what}{int(np.argmax(lonely))}"
        raise ArgumentError("scores", rule, "none to learn from", "take other folds")


def over_folds(sizes: np.ndarray, work: Callable[[int], None]) -> None:
    """``work(f)`` for every fold, on several threads where there are pairs enough to be worth it. sizes: (folds,) pairs."""

    def stretch(lo: int, hi: int) -> None:
        for f in range(lo, hi):
            work(f)

    threads.over_rows(sizes.size, stretch, min_rows=1 if sizes.sum() >= 8192 else sizes.size)


class Room:
    """Arrays that each thread uses again for fold after fold: to ask the system for new ones takes longer than to fill them."""

    def __init__(self) -> None:
        self._mine = threading.local()

    def arrays(self, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For scores, pairs and hits. The next call in this thread gives the same ones, if the size is the same."""
        found = getattr(self._mine, "arrays", None)
        if found is None or found[0].size != size:
            found = self._mine.arrays = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64)
        return found


def fitted_copy(calibrator, scores: np.ndarray, n: np.ndarray, hits: np.ndarray):
    """A copy of a calibrator, fitted on counts that need no check. A stranger's gets counts that it may keep."""
    fitted = copy.deepcopy(calibrator)
    if isinstance(fitted, Calibrator):
        fitted._fit(scores, n, hits)
    else:
        fitted.fit_counts(scores.copy(), n.copy(), hits.copy())
    return fitted


def _ordered(scores: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rising scores as float64 and their codes. Pairs of equal scores may come in any order: they will be counted."""
    order = np.argsort(scores)
    return scores[order].astype(np.float64) + 0.0, codes[order]  # -0 becomes 0, so that one score has one set of bits


def cross_fit_top(
    Y, top: TopK, method="isotonic", folds: int = 10, *, separate: bool = False, link: str | Callable | None = None
) -> TopK:
    """:func:`cross_fit` on predictions: the same labels with calibrated probabilities as scores.

    **Order**: each row is ranked by its calibrated scores as stored (float32), and **equal ones keep the order they had**.
    So under a rising map, joint isotonic above all, no row changes its order and P@k is what it was to the last bit;
    maps of separate places, a falling Platt or a histogram may change it. The rule "ties to the lowest id" was applied to the
    raw scores, when ``top`` was made. P@k for a k below ``top.k`` may change under ``separate``: a label can move up.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth.
    top : TopK
        Its predictions.
    method, folds, separate
        As for :func:`cross_fit`.
    link : str or callable, optional
        Applied to the scores first: ``"min_max"`` (:func:`min_max`), ``"margin"`` (:func:`margin`), or a function.

    Raises
    ------
    ArgumentError
        As :func:`cross_fit`, and for a truth of another shape.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 1]])
    >>> top = TopK.from_scores(np.array([[.9, .4, .1], [.3, .8, .2], [.6, .2, .7], [.1, .5, .3]]), k=2)
    >>> cross_fit_top(Y, top, "isotonic", folds=2).ids.tolist() == top.ids.tolist()
    True
    """
    truth = as_truth(labels_as_matrix("Y", Y, getattr(top, "n_labels", None)))
    check_pair(truth, top)
    scores = _linked(top.scores, link)
    return _ranked(top, cross_fit(scores, truth.hits(top.ids), method, folds, separate=separate))


def fit_top(Y, top: TopK, method="isotonic", *, link: str | Callable | None = None):
    """Learn a calibrator from predictions of points that are neither trained nor tested on, for :func:`transform`.

    With validation points of one's own (``Dataset.validation``) the test points stay untouched and are all judged by one map;
    :func:`cross_fit_top` is for who has none. On a few hundred points isotonic regression says 0 or 1 where it met misses or
    hits alone, which NLL punishes; ``"platt"``, ``"beta"``, ``"venn-abers"`` and ``Isotonic(smooth=1)`` do not.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth of the validation points.
    top : TopK
        Their predictions, all places pooled.
    method
        As for :func:`cross_fit`.
    link : str or callable, optional
        As for :func:`cross_fit_top`; :func:`transform` needs the same one.

    Returns
    -------
    Calibrator
        Fitted; a copy where ``method`` is one.

    Raises
    ------
    ArgumentError
        For a truth of another shape, and as the method's ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 1]])
    >>> scores = np.array([[.9, .4, .1], [.3, .8, .2], [.6, .2, .7], [.1, .5, .3]])
    >>> calibrator = fit_top(Y, TopK.from_scores(scores, k=2))
    >>> transform(calibrator, TopK.from_scores(np.array([[0.2, 0.85, 0.0]]), k=2)).scores.round(2)
    array([[1.  , 0.33]], dtype=float32)
    """
    truth = as_truth(labels_as_matrix("Y", Y, getattr(top, "n_labels", None)))
    check_pair(truth, top)
    return copy.deepcopy(method_of(method)).fit(_linked(top.scores, link), truth.hits(top.ids))


def transform(calibrator, top: TopK, *, link: str | Callable | None = None) -> TopK:
    """New predictions through a fitted calibrator: the same labels, ranked as in :func:`cross_fit_top`.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted. Behind a link it needs the same link here; for :func:`min_max` that means the same bounds.
    top : TopK
    link
        As for :func:`cross_fit_top`.

    Examples
    --------
    >>> import numpy as np
    >>> calibrator = Platt().fit(np.array([0.1, 0.4, 0.8]), np.array([0, 1, 1]))
    >>> transform(calibrator, TopK.from_scores(np.array([[0.2, 0.7, 0.0]]), k=2)).ids
    array([[1, 0]], dtype=int32)
    """
    return _ranked(top, np.asarray(calibrator.predict(_linked(top.scores, link))))


def _ranked(top: TopK, scores: np.ndarray) -> TopK:
    stored = scores.astype(np.float32)
    order = np.argsort(-stored, axis=1, kind="stable")
    ids, stored = (np.take_along_axis(each, order, 1) for each in (top.ids, stored))
    return TopK(ids, stored, top.n_labels, top.names, top.outside)


# ---------------------------------------------------------------------------------------------- links


def min_max(scores, low: float | None = None, high: float | None = None) -> np.ndarray:
    """(s - low) / (high - low), clipped to [0, 1]: what the authors do to DiSMEC's margins (calibration, section 3).

    Parameters
    ----------
    scores
        See the module; absent places stay minus infinity.
    low, high : float, optional
        By default the smallest and largest of all the scores given, absent places aside. Give those of the calibration set
        when new predictions are to pass the same map.

    Returns
    -------
    ndarray of float64
        In [0, 1]. Where low = high everything becomes 0.

    Raises
    ------
    ArgumentError
        Where low is above high, or one is not finite.

    Examples
    --------
    >>> min_max([[3.0, 1.0], [2.0, -float("inf")]])
    array([[ 1. ,  0. ],
           [ 0.5, -inf]])
    """

    def squeezed(kept: np.ndarray) -> np.ndarray:
        if kept.size == 0:
            return kept
        kept = kept.astype(np.float64)
        lowest = float(kept.min()) if low is None else float(low)
        highest = float(kept.max()) if high is None else float(high)
        if not (np.isfinite([lowest, highest]).all() and lowest <= highest):
            raise ArgumentError("low", "must be finite and not above high", f"low {lowest}, high {highest}")
        return np.clip((kept - lowest) / (highest - lowest), 0.0, 1.0) if highest > lowest else np.zeros(kept.size)

    return _mapped(scores, squeezed)


def margin(scores, loss: str = "logistic") -> np.ndarray:
    """The probability that a margin stands for under the loss it was trained with: the inverse of the loss's best margin.

    Parameters
    ----------
    scores
        See the module; absent places stay minus infinity.
    loss : {"logistic", "exponential", "squared_hinge"}
        1 / (1 + exp(-s)); 1 / (1 + exp(-2 s)); or (1 + s) / 2, clipped to [0, 1] (DiSMEC).

    Returns
    -------
    ndarray of float64
        In [0, 1].

    Examples
    --------
    >>> margin([-1.0, 0.0, 0.5], "squared_hinge")
    array([0.  , 0.5 , 0.75])
    """
    one_of("loss", loss, ("logistic", "exponential", "squared_hinge"))
    if loss == "squared_hinge":
        return _mapped(scores, lambda kept: np.clip((1.0 + kept.astype(np.float64)) / 2.0, 0.0, 1.0))
    return _mapped(
        scores, lambda kept: arithmetic.sigmoid(kept.astype(np.float64) * (2.0 if loss == "exponential" else 1.0))
    )


def _mapped(scores, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """``function`` of the scores that are present, flat; float64, minus infinity where absent."""
    values, present = _scores(scores)
    result = np.full(values.shape, -np.inf)
    result[present] = function(values[present])
    return result


def _linked(scores: np.ndarray, link) -> np.ndarray:
    if link is None:
        return scores
    if isinstance(link, str) and link in ("min_max", "margin"):
        return min_max(scores) if link == "min_max" else margin(scores)
    if not callable(link):
        raise ArgumentError("link", 'must be None, "min_max", "margin" or a function of the scores', repr(link))
    linked = np.asarray(link(scores.copy()))
    if linked.shape != scores.shape or not np.array_equal(linked == -np.inf, scores == -np.inf):
        rule = "must keep the shape of the scores, and minus infinity where it stands"
        raise ArgumentError("link", rule, f"shape {linked.shape}")
    return linked


# ---------------------------------------------------------------------------------------------- checks


def _scores(scores) -> tuple[np.ndarray, np.ndarray]:
    """The scores as float32 or float64, and which of them are present."""
    values = np.asarray(scores)
    if values.dtype.kind not in "biuf" or values.ndim == 0:
        raise ArgumentError("scores", "must be an array of real numbers", f"shape {values.shape}, dtype {values.dtype}")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    present = values != -np.inf
    # A quarter of the largest number, so that no difference of two scores overflows.
    bad = present & ~(np.abs(values) <= np.finfo(values.dtype).max / 4)
    if bad.any():
        place, rule = _first(bad), "must be finite, or minus infinity where absent"
        raise ArgumentError("scores", rule, f"{values[place]} at {place}", "mend that score")
    return values, present


def _hits(hits, shape: tuple[int, ...], present: np.ndarray) -> np.ndarray:
    values = np.asarray(hits)
    if values.shape != shape:
        raise ArgumentError("hits", f"must have the shape of scores, {shape}", f"shape {values.shape}")
    if values.dtype != bool:
        if values.dtype.kind not in "iuf" or not ((values == 0) | (values == 1)).all():
            raise ArgumentError("hits", "must be bool, or 0 and 1", f"other values, dtype {values.dtype}")
        values = values != 0
    if (values & ~present).any():
        rule = "must not mark a place where nothing was predicted"
        raise ArgumentError("hits", rule, f"a hit at {_first(values & ~present)}")
    return values


def _counts(scores, n, hits) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What fit_counts was given, as float64 and int64 arrays."""
    values, present = _scores(scores)
    if values.ndim != 1 or values.size == 0 or not present.all() or (values[1:] <= values[:-1]).any():
        rule = "must be finite and rise strictly, one or more"
        raise ArgumentError("scores", rule, f"shape {values.shape}, or others", "ScorePool.runs gives such")
    counts = []
    for name, given, low, high in (("n", n, 1, np.inf), ("hits", hits, 0, n)):
        count = np.asarray(given)
        if count.shape != values.shape or count.dtype.kind not in "iu":
            rule = f"must be whole numbers in the shape of scores, {values.shape}"
            raise ArgumentError(name, rule, f"shape {count.shape}, dtype {count.dtype}")
        bad = (count < low) | (count > high)
        if bad.any():
            rule = "must be 1 or more" if name == "n" else "must lie in [0, n]"
            raise ArgumentError(name, rule, f"{count[bad][0]} at {_first(bad)}")
        counts.append(np.ascontiguousarray(count, np.int64))
    return np.ascontiguousarray(values, np.float64) + 0.0, counts[0], counts[1]


def _first(where: np.ndarray) -> tuple[int, ...]:
    return tuple(np.argwhere(where)[0].tolist())


def _probabilities(scores: np.ndarray, who: str) -> np.ndarray:
    outside = (scores < 0) | (scores > 1)
    if outside.any():
        rule, do = f"must be in [0, 1] for {who}", "bring them there with min_max or margin"
        raise ArgumentError("scores", rule, float(scores[np.argmax(outside)]), do)
    return scores


def _no_probabilities(values: np.ndarray) -> str:
    return "" if ((values >= 0) & (values <= 1)).all() else "values_ outside [0, 1]"


def method_of(method):
    if isinstance(method, str):
        return METHODS[one_of("method", method, METHODS, do="or a calibrator")]()
    if isinstance(method, type) or not (hasattr(method, "fit") and hasattr(method, "predict")):
        rule = f"must be one of {', '.join(METHODS)}, or an object with fit and predict"
        raise ArgumentError("method", rule, repr(method))
    return method
