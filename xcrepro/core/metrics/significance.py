"""How sure is a value, and is the difference between two sets of predictions for the same test rows more than chance?

:func:`xcrepro.evaluate` gives each value its interval. :func:`paired_bootstrap` asks of a difference: would it stand for other
test rows? :func:`macro_t_test` asks: would it stand for other labels (of averages over labels; of the other metrics for other
rows)? All take every metric that is made of rows, labels or pairs. :func:`holm` corrects
many p-values.

What an interval holds is the value that is to be expected on a fresh test set of as many rows. Drawing rows with replacement
serves sums over rows. It fails metrics of labels and calibration errors: a drawn sample has fewer different rows, so it covers
fewer labels and bins rougher than any fresh set would. For those the rows are cut into disjoint parts, which are fresh sets
themselves, only smaller: see :func:`xcrepro.evaluate`.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from xcrepro.core import distributions
from xcrepro.core.accumulators.block import KS
from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import labelwise, registry
from xcrepro.core.metrics.replicates import Options, Replicates, System
from xcrepro.core.predictions import TopK
from xcrepro.core.tensors import labels_as_matrix
from xcrepro.core.truth import Truth, as_truth

# ---------------------------------------------------------------------------------------------- other test rows


@dataclass(frozen=True)
class Bootstrap:
    """One outcome of :func:`paired_bootstrap`.

    Attributes
    ----------
    metric : str
    k : int
    ours, baseline, difference : float
        Both values on the rows as they are, and ours - baseline.
    low, high : float
        The interval of that difference.
    p : float
        Of this comparison alone; :func:`xcrepro.metrics.holm` corrects those of several.
    ours_low, ours_high, baseline_low, baseline_high : float
        The intervals of both values.
    method : {"bootstrap", "halves"}
    """

    metric: str
    k: int
    ours: float
    baseline: float
    difference: float
    low: float
    high: float
    p: float
    ours_low: float
    ours_high: float
    baseline_low: float
    baseline_high: float
    method: str


def paired_bootstrap(
    Y,
    ours: TopK,
    baseline: TopK,
    ks=KS,
    *,
    metrics: str | Sequence[str] = ("P",),
    n_resamples: int = 1000,
    seed: int = 0,
    confidence_level: float = 0.95,
    inverse_propensity=None,
    n_relevant=None,
    label_counts=None,
    hierarchy=None,
    method: str | None = None,
) -> list[Bootstrap]:
    """Would the difference of two methods stand for other test rows? Draws or parts of the rows, the same for both.

    Parameters
    ----------
    Y, ours, baseline
        Truth (n, L) and both predictions of its rows; not in blocks.
    ks : int or sequence of int
    metrics : str or sequence of str
        Names of :func:`xcrepro.metrics.table`, at all ks or at one, as ``"nDCG@5"``. Calibration metrics need scores in
        [0, 1]. ``binned macro-F1`` gives one outcome a bin that has labels.
    n_resamples : int
        At least 20.
    seed : int
        The same seed gives the same result on every machine, with any number of threads.
    confidence_level : float
        Of the intervals, between 0 and 1.
    inverse_propensity, n_relevant, label_counts, hierarchy
        As for :func:`xcrepro.evaluate`.
    method : {None, "bootstrap", "halves"}
        None takes for each metric the one that holds, as the notes of :func:`xcrepro.evaluate` say; the others take one for
        all. With ``"bootstrap"`` everything is recomputed of the drawn rows: a ratio of sums such as PSP with its
        denominator, coverage and macro-averages from the labels' counts, coverage (test) over the labels drawn.

    Returns
    -------
    list of Bootstrap
        One for each metric and k. p of the bootstrap is the share of samples on the other side of 0,
        (1 + count) / (1 + samples), a difference of 0 counting on both sides; two-sided twice the smaller one, at most 1. So
        p is at least 2 / (1 + samples), and after Holm that times the comparisons: take more samples for many. p of halves is
        the normal law's. No difference in any part is p = 1.

    Raises
    ------
    ArgumentError
        For no rows, fewer than 8 where rows are cut into parts, an unknown metric or one that lacks what it needs, and
        numbers out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.eye(40)
    >>> right = TopK.from_ids(np.arange(40)[:, None], n_labels=40)
    >>> half = TopK.from_ids(np.arange(40)[:, None] // 2 * 2, n_labels=40)
    >>> [one] = paired_bootstrap(Y, right, half, ks=1, n_resamples=200)
    >>> one.ours, one.baseline, one.low < 0.5 < one.high, one.p < 0.05
    (1.0, 0.5, True, True)
    """
    about = Options(inverse_propensity, n_relevant, label_counts, hierarchy)
    how = {"n_resamples": n_resamples, "seed": seed, "confidence_level": confidence_level, "method": method}
    replicates = Replicates(Y, {"ours": [ours], "baseline": [baseline]}, ks, metrics, about, **how)
    value, _, low, high, p = replicates.of_points()
    found = []
    for name, k, at, used in replicates.each():
        (a, b, d), low_ends, high_ends = (array[:, *at].tolist() for array in (value, low, high))
        by_chance = float(p[0, *at])
        sides = low_ends[0], high_ends[0], low_ends[1], high_ends[1]
        found.append(Bootstrap(name, k, a, b, d, low_ends[2], high_ends[2], by_chance, *sides, used))
    return found


def holm(p) -> np.ndarray:
    """Holm's (1979) correction: p-values of which none below a level is a false alarm, with at most that probability.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none may be below the one before, or above 1. It holds
    however the comparisons depend on each other, and never finds less than Bonferroni's.

    Parameters
    ----------
    p : array_like of float
        In [0, 1]; NaN was not tested, stays NaN and is not counted.

    Returns
    -------
    ndarray of float64
        Of the shape of ``p``.

    Raises
    ------
    ArgumentError
        For a number outside [0, 1].

    Examples
    --------
    >>> holm([0.04, 0.01, 0.03]).round(4)                  # 3 * 0.01, 2 * 0.03, and 0.04 is not below that
    array([0.06, 0.03, 0.06])
    """
    given = np.asarray(p, np.float64)
    flat = given.reshape(-1)
    tested = np.flatnonzero(~np.isnan(flat))
    if ((flat[tested] < 0) | (flat[tested] > 1)).any():
        raise ArgumentError("p", "must lie in [0, 1]", given)
    order = tested[np.argsort(flat[tested], kind="stable")]
    out = np.full(flat.shape, np.nan)
    out[order] = np.minimum(np.maximum.accumulate(flat[order] * np.arange(order.size, 0, -1)), 1.0)
    return out.reshape(given.shape)


# ---------------------------------------------------------------------------------------------- other labels


class SharedErrorsWarning(UserWarning):
    """The labels of a t-test do not differ independently of each other, so its p is too small."""


@dataclass(frozen=True)
class TTest:
    """One outcome of :func:`macro_t_test`.

    Attributes
    ----------
    metric : str
    k : int
    unit : {"labels", "rows", "blocks of rows"}
        What the test pairs and takes for independent.
    units : int
        How many.
    difference : float
        Ours minus the baseline, on all of them.
    low, high : float
        Its interval by the same t law.
    t, degrees, p : float
        NaN where nothing was tested. :func:`xcrepro.metrics.holm` corrects the p of several tests.
    shared : float
        Of labels, how many standard deviations those that stand together in rows differ more alike than independent ones
        would; above 3 is a warning. NaN for other units and where nothing was tested.
    """

    metric: str
    k: int
    unit: str
    units: int
    difference: float
    low: float
    high: float
    t: float
    degrees: float
    p: float
    shared: float

    def significant(self, level: float = 0.01) -> bool:
        """Is p below ``level``? reeval's stars stand for 0.01. False where untested."""
        return bool(self.p < level)


_SHARED = 3.0  # standard deviations from which on errors are called shared
_BLOCKS = 20


def macro_t_test(
    Y,
    ours: TopK,
    baseline: TopK,
    ks=KS,
    *,
    metrics: Sequence[str] = ("macro-F1",),
    n_resamples: int = 1000,
    seed: int = 0,
    confidence_level: float = 0.95,
    inverse_propensity=None,
    n_relevant=None,
    label_counts=None,
    hierarchy=None,
    over: str = "all",
    more_than: int = 10,
) -> list[TTest]:
    """The macro t-test of Yang and Liu (1999), as reeval uses it (section 5.2, figure 3), for every metric.

    A t-test on differences that are paired over what a metric averages: t = mean(d) / (s / sqrt(m)), with m units, s the
    standard deviation of the differences with m - 1, and m - 1 degrees of freedom. The units are

    - labels, of the macro-averages, their bins and coverage: d_l = F1_l here - F1_l of the baseline;
    - rows, of means over rows such as P or nDCG;
    - 20 blocks of consecutive rows of everything else (ratios of sums, entropy, calibration): t is the difference over its
      jackknife error.

    At a small p a tiny difference may be all there is: look at both.

    **Shared errors.** Over labels, the test takes each label for an independent draw. Labels of one row are not where a row
    that is misread loses all of them: then there are fewer independent differences than labels, p is too small, and a
    test at 1 % gives false alarms in tens of percent. So the differences of labels that stand together in rows of the truth
    are compared: ``shared`` is the sum over pairs of labels of c_lm / sqrt(c_l c_m) d_l d_m (d without its mean among labels of
    the same test frequency, in powers of 2; c_lm the rows with both), in standard deviations of that sum with random
    signs. Above 3 there is a :class:`SharedErrorsWarning`: take :func:`paired_bootstrap`, for which the rows are the draw.

    Parameters
    ----------
    Y, ours, baseline, ks, metrics, confidence_level, inverse_propensity, n_relevant, label_counts, hierarchy
        As for :func:`paired_bootstrap`.
    n_resamples, seed : int
        Of the random signs behind ``shared``; nothing else is drawn.
    over : {"all", "test"}
        The labels paired, all of them (reeval's averages) or those with a test positive; ``coverage (test)`` always pairs the
        latter. A label that neither method gets right is a pair of zeros.
    more_than : int
        So many labels (or rows) or fewer are left untested, 10 in reeval's bins.

    Returns
    -------
    list of TTest
        One for each metric (each bin that has labels) and k. Where no unit differs, t is 0, and p 1 (one-sided 0.5).

    Raises
    ------
    ArgumentError
        As for :func:`paired_bootstrap`, and for what is no option.

    Warns
    -----
    SharedErrorsWarning
        Once a call, naming the tests.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.eye(12)
    >>> right = TopK.from_ids(np.arange(12)[:, None], n_labels=12)
    >>> half = TopK.from_ids(np.arange(12)[:, None] // 2 * 2, n_labels=12)
    >>> [test] = macro_t_test(Y, right, half, ks=1)
    >>> round(test.difference, 3), round(test.t, 2), test.degrees, test.unit, test.significant()
    (0.667, 6.63, 11.0, 'labels', True)
    """
    asked = registry.wanted(metrics, ks)
    whole_number("n_resamples", n_resamples, 20)
    whole_number("seed", seed)
    real_number("confidence_level", confidence_level, above=0, below=1)
    whole_number("more_than", more_than, 1, do="a spread needs 2 units")
    labelwise.check_over(over)
    truth = as_truth(labels_as_matrix("Y", Y, getattr(ours, "n_labels", None)))
    about = Options(inverse_propensity, n_relevant, label_counts, hierarchy)
    rising = np.unique(np.concatenate([at for _, at in asked]))
    systems = [System(truth, top, rising, [metric for metric, _ in asked], about) for top in (ours, baseline)]
    here = systems[0].here() - systems[1].here()
    by_block, errors = [name for name in systems[0].names if systems[0].unit(name) == "blocks of rows"], {}
    if by_block:
        errors = dict(zip(by_block, _jackknife(systems, by_block, truth.n_rows), strict=True))
    together = None
    found = []
    for m, name in enumerate(systems[0].names):
        unit = systems[0].unit(name)
        for k in dict(asked)[systems[0].metric(name)]:
            i = int(np.searchsorted(rising, k))
            test = name, int(k), unit
            if unit == "blocks of rows":
                blocks = min(_BLOCKS, truth.n_rows)
                found.append(_t_test(*test, blocks, here[m, i], errors[name][i], 1, confidence_level))
                continue
            d, paired = systems[0].units(name, i, over)
            d = (d - systems[1].units(name, i, over)[0])[paired]
            error = d.std(ddof=1) / math.sqrt(d.size) if d.size > 1 else np.nan
            mean = float(d.mean()) if d.size else np.nan
            one = _t_test(*test, d.size, mean, error, more_than, confidence_level)
            if unit == "labels" and d.any() and not np.isnan(one.p):
                together = together or _Together(truth)
                one = replace(one, shared=together.alike(d, paired, n_resamples, seed))
            found.append(one)
    _warn_of_shared([one for one in found if one.shared > _SHARED])
    return found


def t_p_value(t, dof):
    """Two-sided p-value of Student's t (a difference in standard errors): how often chance alone goes as far from 0."""
    return 2.0 * distributions.student(dof, -np.abs(t))


def t_reach(confidence_level: float, dof):
    """Standard errors to either side of a mean that make its two-sided interval by Student's t."""
    return distributions.student_quantile(dof, 0.5 + confidence_level / 2.0)


def _jackknife(systems: list[System], names: list[str], n_rows: int) -> np.ndarray:
    """(names, K) standard errors of the differences, from their values with one block of rows after the other left out."""
    blocks = min(_BLOCKS, n_rows)
    times = np.ones((blocks, n_rows), np.int64)
    for block, (low, high) in zip(
        times, itertools.pairwise(np.linspace(0, n_rows, blocks + 1).astype(int)), strict=True
    ):
        block[low:high] = 0
    left_out = systems[0].values(times, names) - systems[1].values(times, names)
    return np.sqrt((blocks - 1) / blocks * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))


def _t_test(name, k, unit, m, mean, error, more_than, confidence_level) -> TTest:
    if m <= more_than or np.isnan(error) or np.isnan(mean):
        return TTest(name, k, unit, m, float(mean), *[np.nan] * 6)
    # Units that all differ by the same leave no spread: t is infinite, as it should be; where none differs it is 0.
    with np.errstate(divide="ignore"):
        t = float(np.divide(mean, error)) if mean else 0.0
    p = float(t_p_value(t, m - 1))
    reach = float(t_reach(confidence_level, m - 1) * error)
    return TTest(name, k, unit, m, float(mean), mean - reach, mean + reach, t, m - 1.0, p, np.nan)


def _warn_of_shared(tests: list[TTest]) -> None:
    if not tests:
        return
    worst = max(tests, key=lambda one: one.shared)
    what = ", ".join(f"{one.metric}@{one.k}" for one in tests[:3]) + (", ..." if len(tests) > 3 else "")
    text = f"macro_t_test takes labels for independent, but labels that stand together in rows differ alike ({what}; "
    text += f"{worst.shared:.1f} standard deviations at {worst.metric}@{worst.k}): its p is too small. "
    warnings.warn(text + "Use paired_bootstrap, which draws rows", SharedErrorsWarning, stacklevel=3)


class _Together:
    """Which labels stand together in rows of the truth, each pair with the weight rows with both / sqrt(rows of each)."""

    def __init__(self, truth: Truth) -> None:
        self._true = truth.label_counts()
        scale = 1.0 / np.sqrt(np.maximum(self._true, 1))
        shape = truth.n_rows, truth.n_labels
        self._matrix = sparse.csr_matrix((scale[truth.indices], truth.indices, truth.indptr), shape=shape)

    def alike(self, differences: np.ndarray, paired: np.ndarray, n_resamples: int, seed: int) -> float:
        """How many standard deviations of random signs the differences of such labels agree; NaN where none meet."""
        d = np.zeros(self._true.size)
        d[paired] = differences
        met = paired & (self._true > 0)
        stratum = np.zeros(self._true.size, np.int64)
        stratum[met] = np.frexp(self._true[met])[1] - 1  # of the logarithm to base 2, the whole part
        sizes = np.maximum(np.bincount(stratum[met]), 1)
        d[met] -= (np.bincount(stratum[met], d[met]) / sizes)[stratum[met]]
        d[~met] = 0.0
        squares = float((d * d).sum())  # each label with itself: the rows with it over the rows with it

        def agreement(signed: np.ndarray) -> float:
            rows = self._matrix @ signed
            return float((rows * rows).sum()) - squares

        rng = np.random.default_rng(seed)
        spread = np.std([agreement(d * rng.choice((-1.0, 1.0), d.size)) for _ in range(n_resamples)])
        return float(agreement(d) / spread) if spread > 1e-12 * max(squares, 1e-300) else np.nan
