"""How sure is a value, and is the difference between two sets of predictions for the same test rows more than chance?

:func:`confidence_intervals` gives each value of one set of predictions its interval. :func:`paired_bootstrap` asks of a
difference: would it stand for other test rows? :func:`macro_t_test` asks: would it stand for other labels (of averages over
labels; of the other metrics for other rows)? All take every metric that is made of rows, labels or pairs. A jackknife
(:func:`jackknife_blocks`, :func:`jackknife_error`) gives the standard error of any statistic of the rows at the price of one
evaluation a block; :func:`poisson_weights` are those of a bootstrap that merges; :func:`holm` corrects many p-values.

What an interval holds is the value that is to be expected on a fresh test set of as many rows. Drawing rows with replacement
serves sums over rows. It fails metrics of labels and calibration errors: a drawn sample has fewer different rows, so it covers
fewer labels and bins rougher than any fresh set would. For those the rows are cut into disjoint parts, which are fresh sets
themselves, only smaller: see :func:`confidence_intervals`.
"""

from __future__ import annotations

import decimal
import functools
import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from xcrepro import arithmetic, distributions, threads
from xcrepro.arguments import check_rows, label_values, one_of, real_number, whole_number
from xcrepro.errors import ArgumentError
from xcrepro.folds.block import KS, Block
from xcrepro.folds.labels import LabelCounts, PreparedLabels
from xcrepro.folds.pairs import BINS, CAP, PairSums, bin_edges
from xcrepro.folds.rows import RowSums
from xcrepro.folds.scores import ScoreCounts, ScorePool, check_scores, cosine_transform
from xcrepro.kernels import resample as kernel
from xcrepro.metrics import calibration, labelwise, registry
from xcrepro.metrics.labelwise import Counts
from xcrepro.metrics.registry import Metric
from xcrepro.predictions import TopK
from xcrepro.tensors import labels_as_matrix
from xcrepro.truth import Truth

_GRID = 2**10  # steps of smooth ECE where it is drawn
_HELD = 2**22  # weights of rows that a thread holds at a time


@dataclass(frozen=True)
class _Options:
    """What metrics may need besides truth and predictions."""

    inverse_propensity: object = None
    n_relevant: object = None
    label_counts: object = None


class _Drawn:
    """Sums over rows for many draws at once, in the form that the formulas of :mod:`registry` read: (draws, K) each."""

    def __init__(self, fold: RowSums, drawn: np.ndarray, n_rows) -> None:
        self.ks, self._columns = fold.ks, fold.columns
        self._drawn = drawn.reshape(len(drawn), fold.columns.size, fold.ks.size)
        self.n_rows = np.asarray(n_rows, np.float64).reshape(-1, 1)

    def __getitem__(self, column: int) -> np.ndarray:
        return self._drawn[:, int(np.searchsorted(self._columns, column))]

    def mean(self, column: int) -> np.ndarray:
        return self[column] / self.n_rows


class _Rows:
    """Metrics that are made of sums over rows."""

    def __init__(self, block: Block, ks, metrics: list[Metric], options: _Options) -> None:
        self.names = [metric.name for metric in metrics]
        self._metrics, self._n = metrics, block.n_rows
        columns = {column for metric in metrics for column in metric.columns}
        weights = options.inverse_propensity
        if weights is not None:
            weights = label_values("inverse_propensity", weights, block.n_labels, zero=False)
        self._fold = RowSums(ks, columns, weights)
        self._fold.add(block)
        self._rows = self._fold.values(block)

    def here(self) -> dict[str, np.ndarray]:
        return {metric.name: metric.formula(self._fold) for metric in self._metrics}

    def values(self, times: np.ndarray) -> dict[str, np.ndarray]:
        sums = np.empty((len(times), self._rows.shape[1]))
        kernel.weighted_sums(self._rows, times, sums)
        drawn = _Drawn(self._fold, sums, times.sum(axis=1))
        return {metric.name: metric.formula(drawn) for metric in self._metrics}

    def units(self, name: str, i: int, over: str) -> tuple[np.ndarray, np.ndarray]:
        each = _Drawn(self._fold, self._rows, np.ones(self._n))
        return registry.METRICS[name].formula(each)[:, i], np.ones(self._n, np.bool_)


class _Labels:
    """Metrics that are made of the labels' counts."""

    def __init__(self, block: Block, ks, metrics: list[Metric], options: _Options) -> None:
        self._metrics, self._block, self.ks = metrics, block, ks
        self._prepared = PreparedLabels(block, ks)
        self._counts = None
        if any(metric.fold == "bins" for metric in metrics):
            if options.label_counts is None:
                do = "the train rows of each label"
                raise ArgumentError("label_counts", f"must be given for {registry.BINNED}", None, do)
            self._counts = labelwise.checked_counts(options.label_counts, block.n_labels)
        self._truth = block.truth.to_csr()
        self._here = self._of(np.ones(block.n_rows, np.int64))
        self.names = [*self._here]

    def here(self) -> dict[str, np.ndarray]:
        return self._here

    def _of(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        hit, found = self._prepared.count(weights), {}
        for metric in self._metrics:
            if metric.fold == "bins":
                found |= metric.formula(hit, self._counts)
            elif metric.fold == "truths":  # a row that is drawn twice can show no more labels than once
                found[metric.name] = metric.formula(hit, [Truth.of(self._truth[weights > 0])])
            else:
                found[metric.name] = metric.formula(hit)
        return found

    def values(self, times: np.ndarray) -> dict[str, np.ndarray]:
        each = [self._of(row) for row in times]
        return {name: np.array([one[name] for one in each]) for name in self.names}

    @functools.cached_property
    def _all(self) -> Counts:
        fold = LabelCounts(self._block.n_labels, self.ks)
        fold.add(self._block)
        return Counts.of(fold)

    def units(self, name: str, i: int, over: str) -> tuple[np.ndarray, np.ndarray]:
        counts = self._all
        paired = counts.true > 0 if over == "test" or name == "coverage (test)" else np.ones(counts.n_labels, np.bool_)
        if registry.of_bin(name):
            bins, names = labelwise.frequency_bins(self._counts, counts.n_labels)
            paired = paired & (bins == names.index(registry.of_bin(name)))
        each = {
            "macro-P": counts.precision,
            "macro-R": counts.recall,
            "coverage": lambda: counts.tp > 0,
            "coverage (test)": lambda: counts.tp > 0,
        }.get(name, counts.f_beta)
        return each()[i].astype(np.float64), paired


@dataclass
class _Sums:
    """Sums of a draw's pairs, in the form that the formulas of :mod:`registry` read."""

    table: np.ndarray
    squared_error: float
    log_loss: float
    bins: int = BINS

    @property
    def n(self) -> float:
        return float(self.table[kernel.COUNT].sum())

    @property
    def score(self) -> float:
        return float(self.table[kernel.SCORE].sum())

    @property
    def hits(self) -> float:
        return float(self.table[kernel.HITS].sum())


class _Pairs:
    """Metrics of (score, hit) pairs."""

    def __init__(self, block: Block, ks, metrics: list[Metric], options: _Options) -> None:
        self.names, self._metrics, self.ks = [metric.name for metric in metrics], metrics, ks
        present = block.ids >= 0
        check_scores(block.scores, present)
        self._here = self._of_block(block)
        scores = np.where(present, block.scores, 0).astype(np.float64)
        edges = bin_edges(BINS, "left", np.dtype(np.float32))
        bins = np.where(present, np.searchsorted(edges, scores, side="right") - 1, -1).astype(np.int64)
        happened = np.where(block.found, scores, 1.0 - scores)
        capped = happened <= arithmetic.exp(-CAP)
        losses = np.where(capped, 0.0, -arithmetic.log(happened))
        bucket = np.searchsorted(ks, np.arange(1, int(ks[-1]) + 1))
        self._places = bins, scores, block.found, losses, capped, bucket
        self._sorted = []
        if "ACE" in self.names:
            row = np.repeat(np.arange(block.n_rows), block.ids.shape[1]).reshape(block.ids.shape)
            for k in ks:
                here = present[:, :k]
                given = block.scores[:, :k][here]
                order = np.argsort(given, kind="stable")
                values = given[order]
                first = (
                    np.flatnonzero(np.append(True, values[1:] != values[:-1])) if values.size else np.zeros(0, np.int64)
                )
                self._sorted.append((values[first], first, row[:, :k][here][order], block.found[:, :k][here][order]))

    def _of_block(self, block: Block) -> dict[str, np.ndarray]:
        sums, scores = PairSums(self.ks), ScoreCounts(self.ks, exact=True)
        sums.add(block)
        scores.add(block)
        found = {}
        for metric in self._metrics:
            values = []
            for k in self.ks.tolist():
                pairs = calibration.check_any(sums.at(k))
                values.append(metric.formula(*([pairs] if metric.fold == "pairs" else [scores.pool(k), pairs])))
            found[metric.name] = np.array(values)
        return found

    def here(self) -> dict[str, np.ndarray]:
        return self._here

    def values(self, times: np.ndarray) -> dict[str, np.ndarray]:
        bins, scores, found, losses, capped, bucket = self._places
        tables = np.empty((len(times), self.ks.size, kernel.ROWS, BINS))
        totals = np.empty((len(times), self.ks.size, kernel.TOTALS))
        kernel.pair_sums(bins, scores, found, losses, capped, bucket, times, tables, totals)
        tables, totals = tables.cumsum(axis=1), totals.cumsum(axis=1)
        out = {name: np.full((len(times), self.ks.size), np.nan) for name in self.names}
        for s, i in np.ndindex(len(times), self.ks.size):
            total = totals[s, i]
            loss = total[kernel.LOG_LOSS] + CAP * total[kernel.CAPPED]
            sums = _Sums(tables[s, i], float(total[kernel.SQUARED_ERROR]), float(loss))
            if sums.n == 0:
                continue
            for metric in self._metrics:
                if metric.fold == "pairs":
                    out[metric.name][s, i] = metric.formula(sums)
            if "ACE" in out:
                out["ACE"][s, i] = self._ace(times[s], i)
        if "smECE" in out:
            for i, k in enumerate(self.ks):
                out["smECE"][:, i] = self._smooth(times, int(k))
        return out

    def _ace(self, times: np.ndarray, i: int) -> float:
        values, first, row, found = self._sorted[i]
        weights = times[row]
        n, hits = (np.add.reduceat(each, first) for each in (weights, weights * found))
        kept = n > 0
        return ScorePool(exact=True).add_counts(values[kept], n[kept], hits[kept]).ace(BINS)

    def _smooth(self, times: np.ndarray, k: int) -> np.ndarray:
        """smECE of each draw, as :func:`xcrepro.metrics.smooth_ece` on a coarser grid: the spread of draws needs no more."""
        bins, scores, found = (array[:, :k] for array in self._places[:3])
        row, place = np.nonzero(bins >= 0)
        p = scores[row, place]
        node = np.minimum((p * _GRID).astype(np.int64), _GRID - 1)
        residual = p - found[row, place]
        upper = (p * _GRID - node) * residual
        spread = sparse.csr_matrix(
            (np.concatenate([residual - upper, upper]), (np.tile(row, 2), np.concatenate([node, node + 1]))),
            shape=(times.shape[1], _GRID + 1),
        )
        pairs = times @ np.bincount(row, minlength=times.shape[1])
        ends = (spread.T @ times.T).T / np.maximum(pairs, 1)[:, None]
        ends[:, [0, -1]] *= 2.0
        coefficients, frequency = cosine_transform(ends), np.pi * np.arange(_GRID + 1)
        # error(s) falls and s rises: their crossing by secants, kept between the ends that are known to enclose it.
        low, high, s = np.zeros(len(times)), np.ones(len(times)), np.full(len(times), 0.05)
        slope, last_s, last_gap = np.full(len(times), -1.0), None, None
        for _ in range(8):
            smooth = arithmetic.exp(-0.5 * (frequency * s[:, None]) ** 2)
            curve = np.abs(cosine_transform(coefficients * smooth)) / 2.0
            gap = (curve.sum(axis=1) - (curve[:, 0] + curve[:, -1]) / 2.0) / _GRID - s
            low, high = np.where(gap > 0, s, low), np.where(gap > 0, high, s)
            if last_s is not None:
                slope = np.divide(gap - last_gap, s - last_s, out=slope, where=s != last_s)
            step = s - gap / np.minimum(slope, -1.0)
            last_s, last_gap = s, gap
            s = np.where((step >= low) & (step <= high), step, (low + high) / 2.0)
        return np.where(pairs > 0, s, np.nan)


class _System:
    """One method's rows, worked out once: each draw only weighs them."""

    def __init__(self, truth: Truth, top: TopK, ks: np.ndarray, metrics: list[Metric], options: _Options) -> None:
        check_rows(truth.n_rows)
        block = Block(truth, top, int(ks[-1]), n_relevant=options.n_relevant)
        self._parts, self._folds, self._of = [], {}, {}
        for part, folds in ((_Rows, ("rows",)), (_Labels, ("labels", "bins", "truths")), (_Pairs, ("pairs", "scores"))):
            if here := [metric for metric in metrics if metric.fold in folds]:
                self._parts.append(part(block, ks, here, options))
        for part in self._parts:
            self._folds |= dict.fromkeys(part.names, part)
        # In the caller's order, each bin of the binned macro-F1 a metric of its own.
        for metric in metrics:
            own = [name for name in self._folds if registry.of_bin(name)] if metric.fold == "bins" else [metric.name]
            self._of |= dict.fromkeys(own, metric)
        self.names = [*self._of]

    def here(self) -> np.ndarray:
        """(names, K): the metrics of the rows as they are, the very values that :func:`xcrepro.evaluate` has."""
        found = {name: values for part in self._parts for name, values in part.here().items()}
        return np.array([found[name] for name in self.names])

    def metric(self, name: str) -> Metric:
        """The metric of that name, or of that bin."""
        return self._of[name]

    def unit(self, name: str) -> str:
        """What the metric averages, as :class:`TTest` calls it."""
        return self._of[name].averages or "blocks of rows"

    def units(self, name: str, i: int, over: str) -> tuple[np.ndarray, np.ndarray]:
        """Its value for each unit at the i-th k, and which of the units are averaged."""
        return self._folds[name].units(name, i, over)

    def values(self, times: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """(draws, names, K): the metrics with row i counted ``times[draw, i]`` times."""
        found = {}
        for part in self._parts:
            if any(self._folds[name] is part for name in names):
                found |= part.values(times)
        return np.stack([found[name] for name in names], axis=1)


def _over_draws(n_draws: int, n_rows: int, rows_a_draw: int, work) -> list:
    """``work(first, last)`` over stretches of draws so short that their weights fit; the results in order.

    The stretches depend on nothing but the sizes: a Fourier transform of many draws at once may round by how many they are.
    """
    step = max(1, min(8, _HELD // max(n_rows * rows_a_draw, 1)))
    firsts = range(0, n_draws, step)

    def stretches(lo: int, hi: int) -> list:
        return [work(first, min(first + step, n_draws)) for first in firsts[lo:hi]]

    return [one for part in threads.over_rows(len(firsts), stretches, min_rows=1) for one in part]


def _drawn_with_replacement(systems, names, n_rows: int, samples: int, seed: int) -> np.ndarray:
    """(samples, systems, names, K), the same rows for all systems."""

    def draw(first: int, last: int) -> np.ndarray:
        times = np.empty((last - first, n_rows), np.int64)
        for sample in range(first, last):
            rows = np.random.default_rng([seed, sample]).integers(n_rows, size=n_rows)
            times[sample - first] = np.bincount(rows, minlength=n_rows)
        return np.stack([system.values(times, names) for system in systems], axis=1)

    return np.concatenate(_over_draws(samples, n_rows, 1, draw))


_SLOPES = (-2.0, 1.0)  # of the variance with the number of rows, both logarithmic; -1 is that of a mean
_HALVES = np.array([[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]])  # of quarters; one and the next make the whole


def _standard_errors(systems, names, n_rows: int, partitions: int, seed: int, runs: Sequence[int]) -> np.ndarray:
    """(models and their pairs, names, K) standard errors on ``n_rows`` rows from disjoint quarters and halves of them."""
    size = n_rows // 4

    def cut(first: int, last: int) -> np.ndarray:
        parts = np.zeros((last - first, 10, n_rows), np.int64)
        for p in range(first, last):
            order = np.random.default_rng([seed, p]).permutation(n_rows)[: 4 * size].reshape(4, size)
            for quarter in range(4):
                parts[p - first, quarter, order[quarter]] = 1
        parts[:, 4:] = parts[:, _HALVES].sum(axis=2)
        values = np.stack([system.values(parts.reshape(-1, n_rows), names) for system in systems])
        values = _with_differences(values, runs)
        values = values.reshape(len(values), last - first, 10, *values.shape[2:])
        quarters = values[:, :, :4].var(axis=2, ddof=1)
        halves = ((values[:, :, 4::2] - values[:, :, 5::2]) ** 2).mean(axis=2) / 2.0
        return np.stack([quarters, halves], axis=2)

    quarters, halves = np.moveaxis(np.concatenate(_over_draws(partitions, n_rows, 10, cut), axis=1).mean(axis=1), 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.clip(arithmetic.log2(halves / quarters), *_SLOPES)
        return np.sqrt(np.where(halves > 0, halves * arithmetic.power(n_rows / (2.0 * size), slope), halves))


# ---------------------------------------------------------------------------------------------- other test rows


@dataclass(frozen=True)
class Interval:
    """One outcome of :func:`confidence_intervals`.

    Attributes
    ----------
    metric : str
    k : int
    value, low, high : float
        On the rows as they are, and the ends of its interval.
    method : {"bootstrap", "halves"}
    """

    metric: str
    k: int
    value: float
    low: float
    high: float
    method: str


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
    p, p_adjusted : float
        The second corrected for the number of comparisons of the call, where that was asked for; else the same.
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
    p_adjusted: float
    ours_low: float
    ours_high: float
    baseline_low: float
    baseline_high: float
    method: str


def confidence_intervals(
    Y,
    top: TopK,
    ks=KS,
    *,
    metrics: Sequence[str] = ("P",),
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    inverse_propensity=None,
    n_relevant=None,
    label_counts=None,
    method: str | None = None,
) -> list[Interval]:
    """An interval for each value of one set of predictions: where would it lie on other test rows?

    The rows are taken for independent draws, and an interval is to hold, with probability ``confidence``, the value that is to
    be expected on a fresh test set of as many rows. Two methods:

    - ``"bootstrap"``, for sums over rows and ratios of sums: rows are drawn anew with replacement, ``samples`` times; the ends
      are the (1 - confidence)/2 quantiles of the samples' values, linear between samples.
    - ``"halves"``, for metrics of labels and of (score, hit) pairs. The rows are cut at random into four parts, ``samples //
      10`` times and at least 20. Disjoint parts are independent test sets: half the mean squared difference of two halves is
      an unbiased estimate of the variance on n/2 rows, V2, the variance of the four quarters one of that on n/4 rows, V4. A
      power law through both gives the variance on n rows, V2 (V2 / V4), that is V2 / 2 for a mean; more where variance falls
      more slowly, as that of coverage does. The ends are the value minus and plus the normal quantile times its root. It
      may reach beyond a metric's range.

    Drawing with replacement is wrong for the second kind: a sample has but 63 % of the rows, each label is hit by fewer, each
    bin is rougher; the values of all samples lie on one side and the interval may leave out the value itself.
    ``python -m benchmarks intervals`` says how often each method holds the truth.

    Parameters
    ----------
    Y, top
        Truth (n, L) and the predictions of its rows; not in blocks.
    ks : int or sequence of int
    metrics : str or sequence of str
        Names of :func:`xcrepro.metrics.table`, at all ks or at one, as ``"nDCG@5"``. Calibration metrics need scores in
        [0, 1]. ``binned macro-F1`` gives one outcome a bin that has labels.
    samples : int
        At least 20.
    seed : int
        The same seed gives the same result on every machine, with any number of threads.
    confidence : float
        Between 0 and 1.
    inverse_propensity, n_relevant, label_counts
        As in :func:`xcrepro.evaluate`.
    method : {None, "bootstrap", "halves"}
        None takes for each metric the one that holds. ``"bootstrap"`` for all is what the kit did before; ``"halves"``
        for all does well too.

    Returns
    -------
    list of Interval
        One for each metric and k. Ends are NaN where a part has no pair of which a metric could be made.

    Raises
    ------
    ArgumentError
        For no rows, fewer than 8 where rows are cut into parts, an unknown metric or one that lacks what it needs, and
        numbers out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> half = TopK.from_ids(np.arange(40)[:, None] // 2 * 2, n_labels=40)
    >>> for one in confidence_intervals(np.eye(40), half, ks=1, metrics=["P", "coverage"]):
    ...     print(one.metric, one.value, round(one.low, 2), round(one.high, 2), one.method)
    P 0.5 0.35 0.65 bootstrap
    coverage 0.5 0.34 0.66 halves
    """
    about = _Options(inverse_propensity, n_relevant, label_counts)
    asked = _Asked(Y, [top], ks, metrics, about, samples, seed, confidence, method)
    return asked.alone(asked.intervals("two-sided"), 0)


def paired_bootstrap(
    Y,
    ours: TopK,
    baseline: TopK,
    ks=KS,
    *,
    metrics: Sequence[str] = ("P",),
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    inverse_propensity=None,
    n_relevant=None,
    label_counts=None,
    alternative: str = "two-sided",
    correction: str | None = None,
    method: str | None = None,
) -> list[Bootstrap]:
    """Would the difference of two methods stand for other test rows? Draws or parts of the rows, the same for both.

    Parameters
    ----------
    Y, ours, baseline
        Truth (n, L) and both predictions of its rows; not in blocks.
    ks, metrics, samples, seed, confidence, inverse_propensity, n_relevant, label_counts, method
        As for :func:`confidence_intervals`, which says what the intervals are. With ``method="bootstrap"`` everything is
        recomputed of the drawn rows: a ratio of sums such as PSP with its denominator, coverage and macro-averages from the
        labels' counts, coverage (test) over the labels drawn.
    alternative : {"two-sided", "greater", "less"}
        Of p. One-sided: that ours has the larger value, or the smaller.
    correction : {None, "holm"}
        Over all metrics and ks of the call.

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
        As for :func:`confidence_intervals`.

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
    one_of("alternative", alternative, _ALTERNATIVES)
    one_of("correction", correction, _CORRECTIONS)
    about = _Options(inverse_propensity, n_relevant, label_counts)
    asked = _Asked(Y, [ours, baseline], ks, metrics, about, samples, seed, confidence, method)
    return _corrected(asked.pair(asked.intervals(alternative), 0, 1, 0), correction)


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare_all` found.

    Attributes
    ----------
    intervals : dict of str to list of Interval
        Model -> its values with their intervals.
    pairs : dict of (str, str) to list of Bootstrap
        Each two models, the one that came first before the other. ``p_adjusted`` is corrected over the pairs of a metric and k.
    """

    intervals: dict[str, list[Interval]]
    pairs: dict[tuple[str, str], list[Bootstrap]]


def compare_all(
    Y,
    tops: Mapping[str, TopK | Sequence[TopK]],
    ks=KS,
    *,
    metrics: Sequence[str] = ("P",),
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    inverse_propensity=None,
    n_relevant=None,
    label_counts=None,
    alternative: str = "two-sided",
    method: str | None = None,
) -> Comparison:
    """:func:`confidence_intervals` of several models and :func:`paired_bootstrap` of all their pairs.

    The numbers are the same, at the price of the intervals alone.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
    tops : mapping of str to TopK or sequence of TopK
        Model -> its predictions for the rows; of a model that was trained with several seeds those of each: its value is their
        mean, in each draw and part as well. So an interval is about the rows, not about another seed.
    ks, metrics, samples, seed, confidence, inverse_propensity, n_relevant, label_counts, alternative, method
        As for :func:`paired_bootstrap`.

    Returns
    -------
    Comparison
        Holm's correction is over the pairs of each metric and k: a claim is that two models differ in it. The p of a
        bootstrap is at least 2 / (1 + samples), so m pairs want more than 40 m samples to be told apart at 5 %.

    Raises
    ------
    ArgumentError
        As for :func:`paired_bootstrap`, and for no predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> right = TopK.from_ids(np.arange(40)[:, None], n_labels=40)
    >>> half = TopK.from_ids(np.arange(40)[:, None] // 2 * 2, n_labels=40)
    >>> found = compare_all(np.eye(40), {"right": right, "half": half, "two seeds": [right, half]}, 1, samples=200)
    >>> [found.intervals[name][0].value for name in found.intervals]
    [1.0, 0.5, 0.75]
    >>> [(pair, one.difference) for pair, [one] in found.pairs.items()]
    [(('right', 'half'), 0.5), (('right', 'two seeds'), 0.25), (('half', 'two seeds'), -0.25)]
    """
    one_of("alternative", alternative, _ALTERNATIVES)
    about = _Options(inverse_propensity, n_relevant, label_counts)
    runs = {name: [given] if isinstance(given, TopK) else list(given) for name, given in tops.items()}
    if not runs or not all(runs.values()):
        raise ArgumentError(
            "tops", "must hold the predictions of one model or more", {n: len(r) for n, r in runs.items()}
        )
    flat = [top for own in runs.values() for top in own]
    asked = _Asked(Y, flat, ks, metrics, about, samples, seed, confidence, method, [len(own) for own in runs.values()])
    found = asked.intervals(alternative)
    pairs = {
        (a, b): asked.pair(found, i, j, place)
        for place, ((i, a), (j, b)) in enumerate(itertools.combinations(enumerate(runs), 2))
    }
    for at in range(len(next(iter(pairs.values()), ()))):
        adjusted = holm([outcomes[at].p for outcomes in pairs.values()])
        for outcomes, p in zip(pairs.values(), adjusted, strict=True):
            outcomes[at] = replace(outcomes[at], p_adjusted=float(p))
    return Comparison({name: asked.alone(found, i) for i, name in enumerate(runs)}, pairs)


_ALTERNATIVES = ("two-sided", "greater", "less")
_CORRECTIONS = (None, "holm")
_METHODS = (None, "bootstrap", "halves")


class _Asked:
    """The arguments that intervals and comparisons share, checked, and the systems: one a set of predictions.

    runs: how many systems, one after the other, are the seeds of each model; by default each system is a model.
    """

    def __init__(self, Y, tops, ks, metrics, options, samples, seed, confidence, method, runs=None) -> None:
        wanted = registry.wanted(metrics, ks)
        self._samples, self._seed = whole_number("samples", samples, 20), whole_number("seed", seed)
        self._confidence = real_number("confidence", confidence, above=0, below=1)
        one_of("method", method, _METHODS)
        truth = Truth.of(labels_as_matrix("Y", Y, getattr(tops[0], "n_labels", None)))
        self._n_rows, self._rising = truth.n_rows, np.unique(np.concatenate([at for _, at in wanted]))
        self._systems = [_System(truth, top, self._rising, [metric for metric, _ in wanted], options) for top in tops]
        self._runs = [1] * len(tops) if runs is None else runs
        self._names = self._systems[0].names
        found = [self._systems[0].metric(name) for name in self._names]
        self._at = [dict(wanted)[metric] for metric in found]
        self._methods = [method or metric.interval for metric in found]
        if "halves" in self._methods and truth.n_rows < 8:
            raise ArgumentError("Y", "must have at least 8 rows to cut into parts", truth.n_rows)
        self._values = _with_differences(np.array([system.here() for system in self._systems]), self._runs)

    def each(self) -> Iterator[tuple[str, int, tuple[int, int], str]]:
        """metric, k, where it stands in the arrays, method: in the order asked for."""
        for m, name in enumerate(self._names):
            for k in self._at[m]:
                yield name, int(k), (m, int(np.searchsorted(self._rising, k))), self._methods[m]

    def intervals(self, alternative: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """low and high (models and, behind them, their pairs; names; K), and p of the pairs' differences (pairs, names, K)."""
        values, models = self._values, len(self._runs)
        low, high, p = np.empty(values.shape), np.empty(values.shape), np.empty(values[models:].shape)
        for method in dict.fromkeys(self._methods):
            which = [m for m, used in enumerate(self._methods) if used == method]
            names = [self._names[m] for m in which]
            work = self._bootstrap if method == "bootstrap" else self._halves
            low[:, which], high[:, which], p[:, which] = work(names, values[:, which], alternative)
        return low, high, p

    def alone(self, found: tuple[np.ndarray, np.ndarray, np.ndarray], model: int) -> list[Interval]:
        """One model's values with the ends that :meth:`intervals` found."""
        arrays = self._values, *found[:2]
        return [
            Interval(name, k, *(float(array[model, *at]) for array in arrays), used)
            for name, k, at, used in self.each()
        ]

    def pair(
        self, found: tuple[np.ndarray, np.ndarray, np.ndarray], ours: int, theirs: int, place: int
    ) -> list[Bootstrap]:
        """The pair of two models that stands at ``place`` among the pairs."""
        low, high, p = found
        models, outcomes = (ours, theirs, len(self._runs) + place), []
        for name, k, at, used in self.each():
            values = [float(self._values[m, *at]) for m in models]
            ends = [(float(low[m, *at]), float(high[m, *at])) for m in models]
            chance = float(p[place, *at])
            outcomes.append(Bootstrap(name, k, *values, *ends[2], chance, chance, *ends[0], *ends[1], used))
        return outcomes

    def _bootstrap(self, names, values, alternative) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        drawn = _drawn_with_replacement(self._systems, names, self._n_rows, self._samples, self._seed)
        drawn, models = _with_differences(drawn, self._runs, axis=1), len(self._runs)
        tail = (1.0 - self._confidence) / 2.0
        low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
        below, above = (drawn[:, models:] <= 0).sum(axis=0), (drawn[:, models:] >= 0).sum(axis=0)
        count = {"two-sided": np.minimum(below, above), "greater": below, "less": above}[alternative]
        p = np.minimum((2.0 if alternative == "two-sided" else 1.0) * (1 + count) / (1 + self._samples), 1.0)
        return low, high, np.where(np.isnan(low[models:]), np.nan, p)

    def _halves(self, names, values, alternative) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        partitions = max(20, self._samples // 10)
        error = _standard_errors(self._systems, names, self._n_rows, partitions, self._seed, self._runs)
        reach = distributions.normal_quantile((1.0 + self._confidence) / 2.0) * error
        difference, its_error = values[len(self._runs) :], error[len(self._runs) :]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(difference == 0, 0.0, difference / its_error)
        tail = {
            "two-sided": 2.0 * distributions.normal(-np.abs(z)),
            "greater": distributions.normal(-z),
            "less": distributions.normal(z),
        }[alternative]
        return values - reach, values + reach, np.where(np.isnan(its_error), np.nan, tail)


def _with_differences(values: np.ndarray, runs: Sequence[int], axis: int = 0) -> np.ndarray:
    """Models in place of systems along ``axis``, each the mean of its runs, and behind them the differences of all pairs."""
    systems = np.moveaxis(values, axis, 0)
    ends = np.cumsum(runs)
    models = [
        systems[end - n : end].mean(axis=0) if n > 1 else systems[end - 1] for n, end in zip(runs, ends, strict=True)
    ]
    models += [one - other for one, other in itertools.combinations(models, 2)]
    return np.moveaxis(np.stack(models), 0, axis)


def _corrected(found: list, correction: str | None) -> list:
    if correction is None:
        return found
    adjusted = holm([one.p for one in found])
    return [replace(one, p_adjusted=float(p)) for one, p in zip(found, adjusted, strict=True)]


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
    t, degrees, p, p_adjusted : float
        NaN where nothing was tested. ``p_adjusted`` is p corrected for the comparisons of the call, where that was asked
        for; else the same.
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
    p_adjusted: float
    shared: float

    def significant(self, level: float = 0.01) -> bool:
        """Is p, corrected where that was asked for, below ``level``? reeval's stars stand for 0.01. False where untested."""
        return bool(self.p_adjusted < level)


_SHARED = 3.0  # standard deviations from which on errors are called shared
_BLOCKS = 20


def macro_t_test(
    Y,
    ours: TopK,
    baseline: TopK,
    ks=KS,
    *,
    metrics: Sequence[str] = ("macro-F1",),
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    inverse_propensity=None,
    n_relevant=None,
    label_counts=None,
    alternative: str = "two-sided",
    correction: str | None = None,
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
    Y, ours, baseline, ks, metrics, confidence, inverse_propensity, n_relevant, label_counts, alternative, correction
        As for :func:`paired_bootstrap`.
    samples, seed : int
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
    whole_number("samples", samples, 20)
    whole_number("seed", seed)
    real_number("confidence", confidence, above=0, below=1)
    one_of("alternative", alternative, _ALTERNATIVES)
    one_of("correction", correction, _CORRECTIONS)
    whole_number("more_than", more_than, 1, do="a spread needs 2 units")
    labelwise.check_over(over)
    truth = Truth.of(labels_as_matrix("Y", Y, getattr(ours, "n_labels", None)))
    about = _Options(inverse_propensity, n_relevant, label_counts)
    rising = np.unique(np.concatenate([at for _, at in asked]))
    systems = [_System(truth, top, rising, [metric for metric, _ in asked], about) for top in (ours, baseline)]
    here = systems[0].here() - systems[1].here()
    by_block, errors = [name for name in systems[0].names if systems[0].unit(name) == "blocks of rows"], {}
    if by_block:
        times = np.ones((min(_BLOCKS, truth.n_rows), truth.n_rows), np.int64)
        for block, keep in zip(times, jackknife_blocks(truth.n_rows, _BLOCKS), strict=True):
            block[np.setdiff1d(np.arange(truth.n_rows), keep)] = 0
        left = systems[0].values(times, by_block) - systems[1].values(times, by_block)
        errors = dict(zip(by_block, jackknife_error(left), strict=True))
    together = None
    found = []
    for m, name in enumerate(systems[0].names):
        unit = systems[0].unit(name)
        for k in dict(asked)[systems[0].metric(name)]:
            i = int(np.searchsorted(rising, k))
            test = name, int(k), unit
            if unit == "blocks of rows":
                found.append(_t_test(*test, len(times), here[m, i], errors[name][i], 1, alternative, confidence))
                continue
            d, paired = systems[0].units(name, i, over)
            d = (d - systems[1].units(name, i, over)[0])[paired]
            error = d.std(ddof=1) / math.sqrt(d.size) if d.size > 1 else np.nan
            mean = float(d.mean()) if d.size else np.nan
            one = _t_test(*test, d.size, mean, error, more_than, alternative, confidence)
            if unit == "labels" and d.any() and not np.isnan(one.p):
                together = together or _Together(truth)
                one = replace(one, shared=together.alike(d, paired, samples, seed))
            found.append(one)
    _warn_of_shared([one for one in found if one.shared > _SHARED])
    return _corrected(found, correction)


def t_p_value(t, dof):
    """Two-sided p-value of Student's t: how often chance alone goes as far from 0.

    Parameters
    ----------
    t : float or array
        A difference in its standard errors.
    dof : int or array
        Degrees of freedom: of n independent runs n - 1.

    Returns
    -------
    float or ndarray
        In [0, 1]; NaN where t is.

    Examples
    --------
    >>> round(float(t_p_value(2.0, 4)), 3)        # two standard errors of five runs
    0.116
    """
    return 2.0 * distributions.student(dof, -np.abs(t))


def t_reach(confidence: float, dof):
    """Standard errors to either side of a mean that make its two-sided interval by Student's t.

    Parameters
    ----------
    confidence : float
        In (0, 1).
    dof : int or array
        Degrees of freedom: of n independent runs n - 1.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> round(float(t_reach(0.95, 4)), 3)
    2.776
    """
    return distributions.student_quantile(dof, 0.5 + confidence / 2.0)


def _t_test(name, k, unit, m, mean, error, more_than, alternative, confidence) -> TTest:
    if m <= more_than or np.isnan(error) or np.isnan(mean):
        return TTest(name, k, unit, m, float(mean), *[np.nan] * 7)
    # Units that all differ by the same leave no spread: t is infinite, as it should be; where none differs it is 0.
    with np.errstate(divide="ignore"):
        t = float(np.divide(mean, error)) if mean else 0.0
    ps = {
        "two-sided": t_p_value(t, m - 1),
        "greater": distributions.student(m - 1, -t),
        "less": distributions.student(m - 1, t),
    }
    p = float(ps[alternative])
    reach = float(t_reach(confidence, m - 1) * error)
    return TTest(name, k, unit, m, float(mean), mean - reach, mean + reach, t, m - 1.0, p, p, np.nan)


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

    def alike(self, differences: np.ndarray, paired: np.ndarray, samples: int, seed: int) -> float:
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
        spread = np.std([agreement(d * rng.choice((-1.0, 1.0), d.size)) for _ in range(samples)])
        return agreement(d) / spread if spread > 1e-12 * max(squares, 1e-300) else np.nan


# ---------------------------------------------------------------------------------------------- weights and jackknife


@functools.cache
def _poisson_bounds() -> np.ndarray:
    """2^64 times the chance that a Poisson variable of mean 1 is at most j, for j = 0, 1, ... until nothing is above."""
    with decimal.localcontext(prec=50):
        chance, below, bounds = decimal.Decimal(-1).exp(), decimal.Decimal(0), []
        while True:
            below += chance
            bound = int((below * 2**64).to_integral_value())
            if bound >= 2**64 - 1:
                return np.array(bounds, np.uint64)
            bounds.append(bound)
            chance /= len(bounds)


def poisson_weights(seed: int, rows, samples: int) -> np.ndarray:
    """How often each row counts in each sample of a Poisson bootstrap: independent Poisson numbers of mean 1.

    A weight is a hash of the seed, the row's number among all rows and the sample's number. So rows may be cut into blocks in
    any way, and each block weighed by itself, on any machine, in any order: what is summed of the blocks merges into the
    bootstrap of all rows. The usual bootstrap draws n of n rows, and its weights depend on all rows together. Here the number
    of rows drawn varies as well, n plus or minus sqrt(n): means and ratios of sums do not notice to order 1/n, sums do, and
    it repeats rows just the same, so it is no more a method for coverage and calibration errors than that is.

    Parameters
    ----------
    seed : int
        0 or more, below 2^63.
    rows : array_like of int, shape (n,)
        The rows' numbers among all rows, 0 or more.
    samples : int

    Returns
    -------
    ndarray of uint8, shape (n, samples)
        At most 20. Column s is the same whatever ``samples`` is.

    Raises
    ------
    ArgumentError
        For numbers out of range.

    Examples
    --------
    >>> poisson_weights(0, [0, 1, 2, 3], samples=6)
    array([[2, 1, 0, 3, 0, 0],
           [0, 2, 2, 0, 1, 0],
           [1, 2, 1, 1, 1, 2],
           [1, 1, 0, 1, 1, 1]], dtype=uint8)
    >>> poisson_weights(0, [3, 1], samples=3)
    array([[1, 1, 0],
           [0, 2, 2]], dtype=uint8)
    """
    whole_number("seed", seed, 0, 2**63 - 1)
    whole_number("samples", samples, 1)
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0)):
        raise ArgumentError("rows", "must be whole numbers, 0 or more", f"an array of {numbers.dtype} {numbers.shape}")
    numbers = numbers.astype(np.int64)
    weights = np.empty((numbers.size, samples), np.uint8)
    given = seed, numbers, _poisson_bounds()
    threads.over_rows(numbers.size, lambda lo, hi: kernel.poisson(*given, lo, hi, weights), min_rows=4096)
    return weights


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
