"""Is the difference between two sets of predictions for the same test rows more than chance?

Two questions, two tests. Would it stand for other labels? :func:`macro_t_test` pairs the two F1 of each label. Would it
stand for other test rows? :func:`paired_bootstrap` draws the rows anew, for any metric; a jackknife
(:func:`jackknife_blocks`, :func:`jackknife_error`) gives the standard error of any statistic of the rows at the price of
one evaluation a block.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from xcrepro import threads
from xcrepro.arguments import check_rows, cut_offs, label_values, one_of, real_number, some_of, whole_number
from xcrepro.errors import ArgumentError
from xcrepro.kernels import labelwise as label_kernel
from xcrepro.kernels import ranking as row_kernel
from xcrepro.kernels import truth as truth_kernel
from xcrepro.metrics import labelwise, ranking
from xcrepro.metrics.labelwise import Counts
from xcrepro.predictions import TopK
from xcrepro.truth import Truth


@dataclass(frozen=True)
class TTest:
    """One outcome of :func:`macro_t_test`.

    Attributes
    ----------
    bin : str
        The labels: a bin of train frequency, or "all".
    k, labels : int
        The cut-off; how many labels.
    difference : float
        The mean over labels of F1 here minus F1 of the baseline.
    t, degrees, p : float
        NaN where nothing was tested.
    """

    bin: str
    k: int
    labels: int
    difference: float
    t: float
    degrees: float
    p: float

    def significant(self, level: float = 0.01) -> bool:
        """Is p below ``level``? reeval's stars stand for 0.01. False where nothing was tested."""
        return bool(self.p < level)


def macro_t_test(
    ours: Counts,
    baseline: Counts,
    *,
    label_counts=None,
    edges=labelwise.EDGES,
    over: str = "all",
    more_than: int = 10,
    alternative: str = "two-sided",
) -> list[TTest]:
    """The macro t-test of Yang and Liu (1999), as reeval uses it (section 5.2, figure 3): do the F1 of labels differ?

    A t-test on the differences d_l = F1_l here - F1_l of the baseline, paired over labels: t = mean(d) / (s / sqrt(m)),
    with m labels, s the standard deviation with m - 1, and m - 1 degrees of freedom. It takes labels for independent draws,
    which those of one test set are not quite; and at a small p a tiny difference may be all there is: look at both.

    Parameters
    ----------
    ours, baseline : Counts
        What :func:`xcrepro.metrics.labelwise.confusion` counted of both, over the same truth and ks.
    label_counts, edges
        As for :func:`xcrepro.metrics.labelwise.binned_macro_f1`: a test for each bin; else one, ``all``.
    over : {"all", "test"}
        The labels paired, all of them (reeval's averages) or those with a test positive. A label that neither method gets
        right is a pair of zeros.
    more_than : int
        Bins with this many labels or fewer are left untested, 10 in reeval.
    alternative : {"two-sided", "greater", "less"}
        One-sided: that ours is better, or worse.

    Returns
    -------
    list of TTest
        One for each bin and k. Where no label differs, t is 0, and p 1 (one-sided 0.5).

    Raises
    ------
    ArgumentError
        For counts of different truths or ks, and what is no option.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> from xcrepro.metrics import confusion
    >>> Y = np.eye(12)
    >>> right = confusion(Y, TopK.from_ids(np.arange(12)[:, None], n_labels=12), ks=1)
    >>> half = confusion(Y, TopK.from_ids(np.arange(12)[:, None] // 2 * 2, n_labels=12), ks=1)
    >>> [test] = macro_t_test(right, half)
    >>> round(test.difference, 3), round(test.t, 2), test.degrees, test.significant()
    (0.667, 6.63, 11.0, True)
    """
    for name, counts in (("ours", ours), ("baseline", baseline)):
        if not isinstance(counts, Counts):
            raise ArgumentError(name, "must be a Counts", type(counts).__name__, "confusion(Y, top, ks)")
    if ours.n_rows != baseline.n_rows or not np.array_equal(ours.true, baseline.true):
        raise ArgumentError("baseline", "must be counted over the same truth", f"{ours} and {baseline}")
    if not np.array_equal(ours.ks, baseline.ks):
        raise ArgumentError("baseline", f"must have the ks {ours.ks.tolist()}", baseline.ks.tolist())
    one_of("alternative", alternative, ("two-sided", "greater", "less"))
    whole_number("more_than", more_than, 1, do="a spread needs 2 labels")
    labelwise.check_over(over)
    bins, names = np.zeros(ours.n_labels, np.int64), ["all"]
    if label_counts is not None:
        bins, names = labelwise.frequency_bins(label_counts, ours.n_labels, edges)
    paired = np.full(ours.n_labels, True) if over == "all" else ours.true > 0
    differences = ours.f_beta() - baseline.f_beta()
    return [
        _t_test(name, int(k), differences[i, paired & (bins == b)], more_than, alternative)
        for b, name in enumerate(names)
        for i, k in enumerate(ours.ks)
    ]


def _t_test(name: str, k: int, differences: np.ndarray, more_than: int, alternative: str) -> TTest:
    from scipy import stats

    m = differences.size
    mean = float(differences.mean()) if m else np.nan
    if m <= more_than:
        return TTest(name, k, m, mean, np.nan, np.nan, np.nan)
    if not differences.any():
        return TTest(name, k, m, mean, 0.0, m - 1.0, 1.0 if alternative == "two-sided" else 0.5)
    # Labels that all differ by the same leave no spread: t is infinite, as it should be.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = stats.ttest_1samp(differences, 0.0, alternative=alternative)
    return TTest(name, k, m, mean, float(found.statistic), m - 1.0, float(found.pvalue))


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
    """

    metric: str
    k: int
    ours: float
    baseline: float
    difference: float
    low: float
    high: float
    p: float


def paired_bootstrap(
    Y,
    ours: TopK,
    baseline: TopK,
    ks=ranking.KS,
    *,
    metrics: Sequence[str] = ("P",),
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    inverse_propensity=None,
    n_relevant=None,
) -> list[Bootstrap]:
    """Draw the test rows anew, with replacement, ``samples`` times, the same for both methods, and compare them each time.

    Parameters
    ----------
    Y, ours, baseline
        Truth (n, L) and both predictions of its rows; not in blocks.
    ks : int or sequence of int
    metrics : str or sequence of str
        Names from :data:`xcrepro.metrics.ranking.FORMULAS` or :data:`xcrepro.metrics.labelwise.FORMULAS`. Everything is
        recomputed of the drawn rows: a ratio of sums such as PSP with its denominator, coverage and macro-averages from
        the labels' counts in the drawn rows, and coverage (test) over the labels drawn. A drawn row twice in a sample
        covers no label twice, so label-wise metrics of samples lie below their value on all rows (n'-coverage with
        n' = n); both methods' do, so the interval of their difference need not be centred on the difference on all rows.
    samples : int
        At least 20.
    seed : int
        The same seed gives the same result on every machine, with any number of threads.
    confidence : float
        Of the interval, between 0 and 1.
    inverse_propensity, n_relevant
        As in :func:`xcrepro.metrics.evaluate`.

    Returns
    -------
    list of Bootstrap
        One for each metric and k. The interval has the (1 - confidence)/2 quantiles of the samples' differences as its
        ends (linear between samples). p is two-sided: twice the smaller share of samples on one side of 0,
        (1 + count) / (1 + samples), a difference of 0 counting on both; at most 1.

    Raises
    ------
    ArgumentError
        For no rows, an unknown metric or one that lacks what it needs, and numbers out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.eye(40)
    >>> right = TopK.from_ids(np.arange(40)[:, None], n_labels=40)
    >>> half = TopK.from_ids(np.arange(40)[:, None] // 2 * 2, n_labels=40)
    >>> [one] = paired_bootstrap(Y, right, half, ks=1, samples=200)
    >>> one.ours, one.baseline, one.low < 0.5 < one.high, one.p < 0.05
    (1.0, 0.5, True, True)
    """
    names = some_of("metrics", metrics, (*ranking.FORMULAS, *labelwise.FORMULAS))
    whole_number("samples", samples, 20)
    whole_number("seed", seed)
    real_number("confidence", confidence, above=0, below=1)
    wanted = cut_offs(ks)
    truth = Truth.of(Y)
    by_row = [name for name in names if name in ranking.FORMULAS]
    by_label = [name for name in names if name in labelwise.FORMULAS]
    rising = np.unique(wanted)
    about = rising, by_row, by_label, inverse_propensity, n_relevant
    systems = [_System(truth, top, *about) for top in (ours, baseline)]
    here = [system.values(None) for system in systems]
    drawn = np.empty((samples, len(names), rising.size))

    def draw(lo: int, hi: int) -> None:
        for sample in range(lo, hi):
            rng = np.random.default_rng([seed, sample])
            times = np.bincount(rng.integers(truth.n_rows, size=truth.n_rows), minlength=truth.n_rows).astype(np.int64)
            one, other = (system.values(times) for system in systems)
            for m, name in enumerate(names):
                drawn[sample, m] = one[name] - other[name]

    threads.over_rows(samples, draw, min_rows=8)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
    least = np.minimum((drawn <= 0).sum(axis=0), (drawn >= 0).sum(axis=0))
    p = np.minimum(2.0 * (1 + least) / (1 + samples), 1.0)
    results = []
    for m, name in enumerate(names):
        for i in np.searchsorted(rising, wanted):
            ours_here, theirs = float(here[0][name][i]), float(here[1][name][i])
            ends = float(low[m, i]), float(high[m, i]), float(p[m, i])
            results.append(Bootstrap(name, int(rising[i]), ours_here, theirs, ours_here - theirs, *ends))
    return results


class _System:
    """One method's rows, worked out once: each sample only weighs them."""

    def __init__(self, truth: Truth, top: TopK, ks, by_row, by_label, inverse_propensity, n_relevant) -> None:
        check_rows(truth.n_rows)
        self._by_row, self._by_label, self.ks = by_row, by_label, ks
        self._places = labelwise.Places(truth, top, int(ks[-1]))
        self._truth = truth
        if by_row:
            columns = {column for name in by_row for column in ranking.FORMULAS[name][0]}
            # Adding the rows as they are checks what the metrics need, too.
            self._sums = ranking.Sums(ks, columns, inverse_propensity).add(truth, top, n_relevant)
            self._rows = self._row_values(inverse_propensity, n_relevant)

    def _row_values(self, inverse_propensity, n_relevant) -> np.ndarray:
        """(n, columns K + 2): what the metrics add up over rows, last the number of labels and the sum of their weights."""
        truth, ids = self._truth, self._places.ids
        given = np.zeros(0) if n_relevant is None else ranking.check_n_relevant(n_relevant, truth.n_rows)
        weights, best, own = np.zeros(0), np.zeros((0, ids.shape[1])), np.zeros(truth.n_rows)
        if inverse_propensity is not None:
            weights = label_values("inverse_propensity", inverse_propensity, truth.n_labels, zero=False)
            best = np.zeros(ids.shape)
            truth_kernel.best_weights(truth.indptr, truth.indices, weights, 0, truth.n_rows, best)
            own = truth.weight_sums(weights)
        columns = self._sums.columns
        out = np.empty((truth.n_rows, columns.size, self.ks.size))
        rows = self._places.found, ids, truth.sizes, weights, best, given
        row_kernel.rows(*rows, 1.0, self.ks, columns, 0, truth.n_rows, 0, out)
        return np.column_stack([out.reshape(truth.n_rows, -1), truth.sizes, own])

    def values(self, times: np.ndarray | None) -> dict[str, np.ndarray]:
        """name -> one value for each rising k, row i counted ``times[i]`` times; once without."""
        times = np.ones(self._truth.n_rows, np.int64) if times is None else times
        found = {}
        if self._by_row:
            sums = np.empty(self._rows.shape[1])
            label_kernel.weighted_sums(self._rows, times, sums)
            drawn = self._sums.with_sums(sums[:-2], sums[-2], sums[-1])
            found |= {name: ranking.FORMULAS[name][1](drawn) for name in self._by_row}
        if self._by_label:
            counts = labelwise.Counter(self.ks).add_places(self._places, times).counts()
            found |= {name: labelwise.FORMULAS[name](counts) for name in self._by_label}
        return found


def jackknife_blocks(n: int, blocks: int = 20) -> Iterator[np.ndarray]:
    """The rows that stay when one of ``blocks`` blocks of consecutive rows after the other is left out.

    Parameters
    ----------
    n : int
        Number of rows.
    blocks : int
        Number of blocks, equally long up to one row; with fewer rows than that, a block is one row.

    Yields
    ------
    ndarray of int, shape (n - rows of the block,)
        Row numbers, rising.

    Examples
    --------
    >>> [keep.tolist() for keep in jackknife_blocks(5, 2)]
    [[2, 3, 4], [0, 1]]
    """
    for low, high in itertools.pairwise(np.linspace(0, n, min(blocks, n) + 1).astype(int)):
        yield np.r_[0:low, high:n]


def jackknife_error(left_out) -> np.ndarray:
    """Standard error of a statistic from its values with one block left out: sqrt((b - 1) / b * sum of squared deviations).

    Parameters
    ----------
    left_out : array_like of float, shape (b, ...)
        The statistic without each of the b blocks of :func:`jackknife_blocks`. For the error of a difference of two
        methods, give the differences: they are paired.

    Returns
    -------
    ndarray of float64, shape (...)
        In the statistic's unit.

    Examples
    --------
    >>> float(jackknife_error([1.0, 2.0, 3.0]).round(4))  # sqrt(2/3 * (1 + 0 + 1))
    1.1547
    """
    left_out = np.asarray(left_out, np.float64)
    blocks = len(left_out)
    return np.sqrt((blocks - 1) / blocks * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
