"""The one engine of errors: what values, and differences of values, would be on other test rows, and after other trainings.

Every metric is worked out from sums over rows, counts of labels or sums over (score, hit) pairs. :class:`System` keeps them
of one set of predictions, so that a replicate of the rows only weighs them. :class:`Replicates` draws the replicates that suit
each metric, the same for all models, and makes standard errors, intervals and p-values from them. :func:`xcrepro.evaluate`,
:func:`xcrepro.compare` and :func:`xcrepro.metrics.paired_bootstrap` call it; the first says which
replicates are taken, and why.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, distributions, threads
from xcrepro.core.accumulators.block import Block
from xcrepro.core.accumulators.labels import LabelCounts, PreparedLabels
from xcrepro.core.accumulators.pairs import BINS, CAP, bin_edges
from xcrepro.core.accumulators.rows import RowSums
from xcrepro.core.accumulators.scores import ScorePool, cosine_transform
from xcrepro.core.arguments import label_values, one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import resample as kernel
from xcrepro.core.metrics import extra, labelwise, registry, state
from xcrepro.core.metrics.labelwise import Counts
from xcrepro.core.metrics.registry import Metric
from xcrepro.core.predictions import TopK
from xcrepro.core.tensors import labels_as_matrix
from xcrepro.core.truth import Truth, as_truth

if TYPE_CHECKING:
    import pandas as pd

_GRID = 2**10  # steps of smooth ECE where it is drawn
_HELD = 2**22  # weights of rows that a thread holds at a time
_AT_ONCE = {"ECE", "ECE over", "ECE under", "ECE l2", "ECE l2 debiased", "ECE max", "Brier", "NLL"}
"""Of the metrics of pairs, those whose formula takes the sums of many draws."""


@dataclass(frozen=True)
class Options:
    """What metrics may need besides truth and predictions."""

    inverse_propensity: Any = None
    n_relevant: Any = None
    label_counts: Any = None
    hierarchy: Any = None
    extra: Any = None


class _At(NamedTuple):
    """Which columns a table of sums has, at which ks."""

    ks: np.ndarray
    columns: np.ndarray


class _Drawn:
    """Sums over rows for many draws at once, in the form that the formulas of :mod:`registry` read: (draws, K) each."""

    def __init__(self, fold: _At, drawn: np.ndarray, n_rows) -> None:
        self.ks, self._columns = fold.ks, fold.columns
        self._drawn = drawn.reshape(len(drawn), fold.columns.size, fold.ks.size)
        self.n_rows = np.asarray(n_rows, np.float64).reshape(-1, 1)

    def __getitem__(self, column: int) -> np.ndarray:
        return self._drawn[:, int(np.searchsorted(self._columns, column))]

    def mean(self, column: int) -> np.ndarray:
        return self[column] / self.n_rows


def _ways(d: int, most: int, seed: int) -> np.ndarray:
    """Which of ``d`` rows a model keeps where it may swap them with another: all ways, or ``most`` at random; first all."""
    if 2**d <= most:
        return 1 - (np.arange(2**d)[:, None] >> np.arange(d) & 1)
    kept = np.random.default_rng([seed, d]).integers(2, size=(most, d))
    kept[0] = 1
    return kept


class Rows:
    """Metrics that are made of sums over rows."""

    def __init__(self, block: Block, ks, metrics: list[Metric], options: Options) -> None:
        self._metrics, self._n = metrics, block.n_rows
        columns = {column for metric in metrics for column in metric.columns if column >= 0}
        mine = [metric for metric in sorted(metrics, key=lambda metric: metric.columns) if metric.columns[0] < 0]
        weights = options.inverse_propensity
        if weights is not None:
            weights = label_values("inverse_propensity", weights, block.n_labels, zero=False)
        fold = RowSums(ks, columns, weights, hierarchy=options.hierarchy)
        self._fold = _At(ks, np.concatenate([[metric.columns[0] for metric in mine], fold.columns]).astype(np.int64))
        given = [(metric.name, options.extra[metric.name], block.truth, block.stored) for metric in mine]
        said = [extra.values(*each, int(k)) for each in given for k in ks]
        self._rows = np.ascontiguousarray(np.column_stack([*said, fold.values(block)]))

    def values(self, times: np.ndarray) -> dict[str, np.ndarray]:
        sums = np.empty((len(times), self._rows.shape[1]))
        kernel.weighted_sums(self._rows, times, sums)
        drawn = _Drawn(self._fold, sums, times.sum(axis=1))
        return {metric.name: metric.formula(drawn) for metric in self._metrics}

    def swapped(self, other: Rows, metric: Metric, i: int, seed: int) -> np.ndarray | None:
        """Differences of the metric at the i-th k where some rows are the other model's and those are this one's: all ways if
        there are at most :data:`SWAPS`, else as many at random; the first swaps none. None where many rows differ."""
        columns, n_ks = np.sort([*metric.columns]), self._fold.ks.size
        which = np.searchsorted(self._fold.columns, columns) * n_ks + i
        mine, theirs = self._rows[:, which], other._rows[:, which]
        differ = (mine != theirs).any(axis=1)
        d = int(np.count_nonzero(differ))
        if self._n > FEW_ROWS and d > FEW_DIFFER:
            return None
        kept = _ways(d, SWAPS, seed)
        found, same = [], mine[~differ].sum(axis=0)
        for weights in (kept, 1 - kept):
            sums = np.zeros((2, len(kept), which.size))
            for part, rows, times in zip(sums, (mine, theirs), (weights, 1 - weights), strict=True):
                kernel.weighted_sums(np.ascontiguousarray(rows[differ]), times, part)
            drawn = _Drawn(_At(self._fold.ks[[i]], columns), sums[0] + sums[1] + same, np.full(len(kept), self._n))
            found.append(metric.formula(drawn)[:, 0])
        return found[0] - found[1]

    def units(self, name: str, i: int, over: str) -> tuple[np.ndarray, np.ndarray]:
        each = _Drawn(self._fold, self._rows, np.ones(self._n))
        return registry.METRICS[name].formula(each)[:, i], np.ones(self._n, np.bool_)


class _Labels:
    """Metrics that are made of the labels' counts."""

    def __init__(self, block: Block, ks, metrics: list[Metric], options: Options) -> None:
        self._metrics, self._block, self.ks = metrics, block, ks
        self._prepared = PreparedLabels(block, ks)
        self._counts, self._truth = options.label_counts, block.truth

    def _of(self, weights: np.ndarray) -> dict[str, np.ndarray]:
        hit, found = self._prepared.count(weights), {}  # type: labelwise.HitLabels, dict[str, np.ndarray]
        for metric in self._metrics:
            if metric.fold == "bins":
                found |= metric.formula(hit, self._counts)
            elif metric.fold == "predicted":
                found[metric.name] = metric.formula(self._prepared.n_predicted(weights))
            elif metric.fold == "truths":  # a row that is drawn twice can show no more labels than once
                found[metric.name] = metric.formula(hit, [self._kept(weights > 0)])
            else:
                found[metric.name] = metric.formula(hit)
        return found

    def values(self, times: np.ndarray) -> dict[str, np.ndarray]:
        each = [self._of(row) for row in times]
        return {name: np.array([one[name] for one in each]) for name in each[0]}

    def _kept(self, rows: np.ndarray) -> Truth:
        """Some rows of the truth, which has been checked."""
        ends = np.concatenate([[0], np.cumsum(self._truth.sizes[rows])])
        return Truth(ends, self._truth.indices[np.repeat(rows, self._truth.sizes)], self._truth.n_labels)

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
    squared_error: float | np.ndarray
    log_loss: float | np.ndarray
    bins: int = BINS

    @property
    def n(self) -> float | np.ndarray:
        """Of many draws, whose bins lie in the last axis, one each."""
        return self.table[kernel.COUNT].sum(axis=-1)

    @property
    def score(self) -> float:
        return float(self.table[kernel.SCORE].sum())

    @property
    def hits(self) -> float:
        return float(self.table[kernel.HITS].sum())


class _Pairs:
    """Metrics of (score, hit) pairs."""

    def __init__(self, block: Block, ks, metrics: list[Metric], options: Options) -> None:
        self._metrics, self.ks = metrics, ks
        present = block.ids >= 0
        scores = np.where(present, block.scores, 0).astype(np.float64)
        edges = bin_edges(BINS, "left", np.dtype(np.float32))
        bins = np.where(present, np.searchsorted(edges, scores, side="right") - 1, -1).astype(np.int64)
        happened = np.where(block.found, scores, 1.0 - scores)
        capped = happened <= arithmetic.exp(-CAP)
        losses = np.where(capped, 0.0, -arithmetic.log(happened))
        bucket = np.searchsorted(ks, np.arange(1, int(ks[-1]) + 1))
        self._places = bins, scores, block.found, losses, capped, bucket
        self._sorted = []
        if any(metric.name == "ACE" for metric in metrics):
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

    def values(self, times: np.ndarray) -> dict[str, np.ndarray]:
        bins, scores, found, losses, capped, bucket = self._places
        tables = np.empty((self.ks.size, kernel.ROWS, BINS, len(times)))
        totals = np.empty((self.ks.size, kernel.TOTALS, len(times)))
        weights = np.ascontiguousarray(times.T, np.float64)
        kernel.pair_sums(bins, scores, found, losses, capped, bucket, weights, tables, totals)
        tables, totals = (np.ascontiguousarray(np.moveaxis(each.cumsum(axis=0), -1, 0)) for each in (tables, totals))
        out = {metric.name: np.full((len(times), self.ks.size), np.nan) for metric in self._metrics}
        losses = totals[:, :, kernel.LOG_LOSS] + CAP * totals[:, :, kernel.CAPPED]
        filled = tables[:, :, kernel.COUNT] > 0
        kinds = [(i, own) for i in range(self.ks.size) for own in np.unique(filled[:, i], axis=0) if own.any()]
        for i, own in kinds:
            # Draws that fill the same bins at once: sums over these bins alone, in the order of one draw's.
            which = np.flatnonzero((filled[:, i] == own).all(axis=1))
            table = np.ascontiguousarray(np.moveaxis(tables[which, i][:, :, own], 0, 1))
            sums = _Sums(table, totals[which, i, kernel.SQUARED_ERROR], losses[which, i])
            for metric in self._metrics:
                if metric.name in _AT_ONCE:
                    out[metric.name][which, i] = metric.formula(sums)
        others = [metric for metric in self._metrics if metric.fold == "pairs" and metric.name not in _AT_ONCE]
        for s, i in np.argwhere(filled.any(axis=2)) if others or "ACE" in out else ():
            sums = _Sums(tables[s, i], float(totals[s, i, kernel.SQUARED_ERROR]), float(losses[s, i]))
            for metric in others:
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
        return ScorePool().add_counts(values[kept], n[kept], hits[kept]).ace(BINS)

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


class _Whole:
    """Metrics of a caller's own that are numbers of all rows together."""

    def __init__(self, block: Block, ks, metrics: list[Metric], options: Options) -> None:
        self._metrics, self._ks, self._given = metrics, ks.tolist(), (block.truth.to_csr(), block.stored)

    def values(self, times: np.ndarray) -> dict[str, np.ndarray]:
        Y, top = self._given
        found = np.empty((len(self._metrics), len(times), len(self._ks)))
        for draw, weights in enumerate(times):
            rows = np.repeat(np.arange(weights.size), weights)
            truth, here = as_truth(Y[rows]), top.rows(rows)
            for metric, out in zip(self._metrics, found, strict=True):
                out[draw] = [extra.values(metric.name, metric.formula, truth, here, k) for k in self._ks]
        return {metric.name: out for metric, out in zip(self._metrics, found, strict=True)}


_PARTS = (
    (Rows, ("rows",)),
    (_Labels, ("labels", "bins", "truths", "predicted")),
    (_Pairs, ("pairs", "scores")),
    (_Whole, ("own",)),
)


class System:
    """One method's rows, worked out once: each draw only weighs them."""

    def __init__(self, truth: Truth, top: TopK, ks: np.ndarray, metrics: list[Metric], options: Options) -> None:
        about = options.inverse_propensity, options.label_counts
        further: dict[str, Any] = {"n_relevant": options.n_relevant, "hierarchy": options.hierarchy}
        self._own = {metric.name: metric for metric in metrics if metric.name in (options.extra or ())}
        names = [metric.name for metric in metrics if metric.name not in self._own]
        self._here = state.of(truth, top, ks, names, *about, **further).values() if names else {}
        for name in self._own:
            said = [extra.value(extra.values(name, options.extra[name], truth, top, int(k))) for k in ks]
            self._here[name] = np.array(said)
        self.names = [*self._here]  # in the caller's order, each bin of the binned macro-F1 a metric of its own
        block = Block(truth, top, int(ks[-1]), n_relevant=options.n_relevant)
        self._parts: dict[str, Any] = {}
        for part, folds in _PARTS:
            if own := [metric for metric in metrics if metric.fold in folds]:
                self._parts |= dict.fromkeys(folds, part(block, ks, own, options))

    def here(self) -> np.ndarray:
        """(names, K): the metrics of the rows as they are, the very values that :func:`xcrepro.evaluate` has."""
        return np.array([*self._here.values()])

    def metric(self, name: str) -> Metric:
        """The metric of that name, or of that bin."""
        return self._own.get(name) or registry.METRICS[registry.BINNED if registry.of_bin(name) else name]

    def unit(self, name: str) -> str:
        """What the metric averages, as :class:`TTest` calls it."""
        return self.metric(name).averages or "blocks of rows"

    def units(self, name: str, i: int, over: str) -> tuple[np.ndarray, np.ndarray]:
        """Its value for each unit at the i-th k, and which of the units are averaged."""
        return self._parts[self.metric(name).fold].units(name, i, over)

    def values(self, times: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """(draws, names, K): the metrics with row i counted ``times[draw, i]`` times."""
        found: dict[str, np.ndarray] = {}
        for part in dict.fromkeys(self._parts[self.metric(name).fold] for name in names):
            found |= part.values(times)
        return np.stack([found[name] for name in names], axis=1)


def _over_draws(n_draws: int, n_rows: int, rows_a_draw: int, work) -> list:
    """``work(first, last)`` over stretches of draws so short that their weights fit; the results in order."""
    step = max(1, min(8, _HELD // max(n_rows * rows_a_draw, 1)))
    firsts = range(0, n_draws, step)

    def stretches(lo: int, hi: int) -> list:
        return [work(first, min(first + step, n_draws)) for first in firsts[lo:hi]]

    return [one for part in threads.over_rows(len(firsts), stretches, min_rows=1) for one in part]


def _drawn_with_replacement(systems, names, n_rows: int, n_resamples: int, seed: int) -> np.ndarray:
    """(samples, systems, names, K), the same rows for all systems."""

    def draw(first: int, last: int) -> np.ndarray:
        times = np.empty((last - first, n_rows), np.int64)
        for sample in range(first, last):
            rows = np.random.default_rng([seed, sample]).integers(n_rows, size=n_rows)
            times[sample - first] = np.bincount(rows, minlength=n_rows)
        return np.stack([system.values(times, names) for system in systems], axis=1)

    return np.concatenate(_over_draws(n_resamples, n_rows, 1, draw))


_SLOPES = (-2.0, 1.0)  # of the variance with the number of rows, both logarithmic; -1 is that of a mean
HALVES = np.array([[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]])
"""Of quarters; one and the next make the whole."""


def _standard_errors(systems, names, n_rows: int, partitions: int, seed: int, join) -> np.ndarray:
    """(models and their pairs, names, K) standard errors on ``n_rows`` rows from disjoint quarters and halves of them."""
    size = n_rows // 4

    def cut(first: int, last: int) -> np.ndarray:
        parts = np.zeros((last - first, 10, n_rows), np.int64)
        for p in range(first, last):
            order = np.random.default_rng([seed, p]).permutation(n_rows)[: 4 * size].reshape(4, size)
            for quarter in range(4):
                parts[p - first, quarter, order[quarter]] = 1
        parts[:, 4:] = parts[:, HALVES].sum(axis=2)
        values = np.stack([system.values(parts.reshape(-1, n_rows), names) for system in systems])
        values = join(values)
        values = values.reshape(len(values), last - first, 10, *values.shape[2:])
        quarters = values[:, :, :4].var(axis=2, ddof=1)
        halves = ((values[:, :, 4::2] - values[:, :, 5::2]) ** 2).mean(axis=2) / 2.0
        return np.stack([quarters, halves], axis=2)

    quarters, halves = np.moveaxis(np.concatenate(_over_draws(partitions, n_rows, 10, cut), axis=1).mean(axis=1), 1, 0)
    return error_of_parts(quarters, halves, n_rows / (2.0 * size))


def error_of_parts(quarters: np.ndarray, halves: np.ndarray, rows: float) -> np.ndarray:
    """The standard error on all rows, which are ``rows`` times a half's, from the variances on quarters and on halves."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.clip(arithmetic.log2(halves / quarters), *_SLOPES)
        return np.sqrt(np.where(halves > 0, halves * arithmetic.power(rows, slope), halves))


def mean_difference(Y, cells: Sequence[tuple[TopK, TopK, int]], metric: str, n_resamples: int = 1000, seed: int = 0):
    """The mean over cells (left, right, k) of left minus right, and its standard error for the draw of the rows, which are the
    same for all cells."""
    truth, one = as_truth(Y), registry.METRICS[metric]
    systems = [System(truth, top, np.array([k]), [one], Options()) for *both, k in cells for top in both]

    def join(values: np.ndarray) -> np.ndarray:
        return (values[::2] - values[1::2]).mean(axis=0, keepdims=True)

    if one.interval == "bootstrap":
        drawn = _drawn_with_replacement(systems, [metric], truth.n_rows, n_resamples, seed)
        error = join(np.moveaxis(drawn, 1, 0)).std(axis=1, ddof=1)
    else:
        error = _standard_errors(systems, [metric], truth.n_rows, max(20, n_resamples // 10), seed, join)
    return float(join(np.stack([system.here() for system in systems])).item()), float(error.item())


# ---------------------------------------------------------------------------------------------- models and their pairs

_METHODS = (None, "bootstrap", "halves")
LEAST_ROWS = 8
"""Fewer rows cannot be cut into parts that have a spread."""
FEW_ROWS, FEW_DIFFER = 400, 20
"""With so many rows, or so many in which two models differ, no law for many rows is close in the tail: rows are swapped."""
SWAPS = 2**13
"""Ways to swap the rows of two models."""
FEWEST_ROWS, FEW_PAIRS, SWAPS_OF_LABELS = 64, 66, 2**10
"""With so many rows, and pairs of twelve models, those of metrics over labels are swapped, too, in fewer ways, since each has
to be counted anew."""
ROUNDING = 1e-12
"""Of a value, what adding it up in another order may move."""


def models_of(name: str, given: Mapping[str, TopK | Sequence[TopK]]) -> dict[str, list[TopK]]:
    """Model -> its runs: one TopK, or one for each training."""
    rule, do = "must hold a TopK, or a list of runs, for each model", "{'mine': top, 'theirs': [seed0, seed1]}"
    if not isinstance(given, Mapping) or not given:
        raise ArgumentError(name, rule, "no model" if isinstance(given, Mapping) else type(given).__name__, do)
    found = {}
    for model, runs in given.items():
        own = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
        if not own or not all(isinstance(run, TopK) for run in own):
            kinds = ", ".join(type(run).__name__ for run in own) or "an empty list"
            raise ArgumentError(name, rule, f"{kinds} for model {model!r}", do)
        found[model] = own
    return found


def has_predictions(top: TopK) -> bool:
    """Whether any row has one: a model that never ran is no model to compare with."""
    return bool((top.ids >= 0).any())


def by_model(models: Mapping[str, list[TopK]], table: Callable[[TopK], pd.DataFrame]) -> pd.DataFrame:
    """The table of each run with the column ``model`` before it; in place of the values the means over a model's runs."""
    import pandas as pd

    found = []
    for model, runs in models.items():
        tables = [_named(model, table, run) for run in runs]
        for column in tables[0].columns.difference(["metric", "k"]) if len(tables) > 1 else ():
            tables[0][column] = np.array([each[column] for each in tables]).mean(axis=0)
        tables[0].insert(0, "model", model)
        found.append(tables[0])
    return pd.concat(found, ignore_index=True)


def _mean_of_runs(values: np.ndarray) -> np.ndarray:
    return values.mean(axis=0) if len(values) > 1 else values[0]


def _named(model: str, work: Callable, *given):
    """``work(*given)``, of whose errors those about predictions name the model."""
    try:
        return work(*given)
    except ArgumentError as error:
        if error.argument not in ("top", "ks", "scores") or model == "":
            raise
        raise ArgumentError(error.argument, error.rule, f"{error.got}, model {model!r}", error.do) from error


class Estimates(NamedTuple):
    """Values and their errors, each (models and behind them their pairs, names, K); p of the pairs' differences only."""

    value: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray


class Replicates:
    """Values of models and differences of their pairs on the rows as they are, and how far they would be off on others.

    A model's value is the mean over its runs, in each replicate as well. ``pairs`` are places of models, left and
    right.
    """

    def __init__(
        self, Y, models, ks, metrics, options: Options, *, n_resamples, seed, confidence_level, method=None, pairs=None
    ) -> None:
        self._n_resamples, self._seed = whole_number("n_resamples", n_resamples, 20), whole_number("seed", seed)
        self._confidence_level = real_number("confidence_level", confidence_level, above=0, below=1)
        one_of("method", method, _METHODS)
        self._models, self._runs = list(models), [len(runs) for runs in models.values()]
        self._pairs = list(itertools.combinations(range(len(models)), 2)) if pairs is None else pairs
        flat = [(model, top) for model, runs in models.items() for top in runs]
        truth = as_truth(labels_as_matrix("Y", Y, getattr(flat[0][1], "n_labels", None)))
        self.own = extra.metrics_of(options.extra, truth, flat[0][1])
        wanted = registry.wanted(metrics, ks, self.own)
        self._n_rows, self._rising = truth.n_rows, np.unique(np.concatenate([at for _, at in wanted]))
        about = [metric for metric, _ in wanted], options
        self._tops, self._truth, self._options = [top for _, top in flat], truth, options
        self._systems = [_named(model, System, truth, top, self._rising, *about) for model, top in flat]
        self._names = self._systems[0].names
        found = [self._systems[0].metric(name) for name in self._names]
        self._at = [dict(wanted)[metric] for metric in found]
        self._methods = [method or metric.interval for metric in found]
        if "halves" in self._methods:
            self._check_rows("to cut into parts")
        self._here = np.array([system.here() for system in self._systems])
        self._values = self._joined(self._here)

    def _check_rows(self, why: str) -> None:
        if self._n_rows < LEAST_ROWS:
            raise ArgumentError("Y", f"must have at least {LEAST_ROWS} rows {why}", self._n_rows)

    def _each_model(self, values: np.ndarray, of: Callable) -> list[np.ndarray]:
        """``of`` each model's runs, which stand one after the other along the first axis."""
        ends = np.cumsum(self._runs)
        return [of(values[end - n : end]) for n, end in zip(self._runs, ends, strict=True)]

    def _joined(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """Models in place of runs along ``axis``, each the mean of its runs, and behind them the differences of the pairs."""
        runs = np.moveaxis(values, axis, 0)
        models = self._each_model(runs, _mean_of_runs)
        models += [models[left] - models[right] for left, right in self._pairs]
        return np.moveaxis(np.stack(models), 0, axis)

    def each(self) -> Iterator[tuple[str, int, tuple[int, int], str]]:
        """metric, k, where it stands in the arrays, method: in the order asked for."""
        for m, name in enumerate(self._names):
            for k in self._at[m]:
                yield name, int(k), (m, int(np.searchsorted(self._rising, k))), self._methods[m]

    # ------------------------------------------------------------------ other test rows

    def of_points(self) -> Estimates:
        """How far other test rows would move them."""
        values, models = self._values, len(self._models)
        error, low, high = (np.empty(values.shape) for _ in range(3))
        p = np.empty(values[models:].shape)
        for method in dict.fromkeys(self._methods):
            which = [m for m, used in enumerate(self._methods) if used == method]
            names = [self._names[m] for m in which]
            work = self._bootstrap if method == "bootstrap" else self._halves
            error[:, which], low[:, which], high[:, which], p[:, which] = work(names, values[:, which])
        return Estimates(values, error, low, high, p)

    def _bootstrap(self, names, values) -> tuple[np.ndarray, ...]:
        drawn = _drawn_with_replacement(self._systems, names, self._n_rows, self._n_resamples, self._seed)
        drawn, models = self._joined(drawn, axis=1), len(self._models)
        tail = (1.0 - self._confidence_level) / 2.0
        low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0)
        below, above = (drawn[:, models:] <= 0).sum(axis=0), (drawn[:, models:] >= 0).sum(axis=0)
        p = np.minimum(2.0 * (1 + np.minimum(below, above)) / (1 + self._n_resamples), 1.0)
        return drawn.std(axis=0, ddof=1), low, high, np.where(np.isnan(low[models:]), np.nan, p)

    def _halves(self, names, values) -> tuple[np.ndarray, ...]:
        partitions = max(20, self._n_resamples // 10)
        error = _standard_errors(self._systems, names, self._n_rows, partitions, self._seed, self._joined)
        reach = distributions.normal_quantile((1.0 + self._confidence_level) / 2.0) * error
        difference, its_error = values[len(self._models) :], error[len(self._models) :]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(difference == 0, 0.0, difference / its_error)
        p = np.where(np.isnan(its_error), np.nan, 2.0 * distributions.normal(-np.abs(z)))
        return error, values - reach, values + reach, p

    # ------------------------------------------------------------------ other trainings

    @functools.cached_property
    def _with_runs(self) -> tuple[Estimates, np.ndarray, np.ndarray]:
        """How far other test rows and other trainings would move them, and the standard error of each of the two."""
        found, runs, models = self.of_points(), np.array(self._runs), len(self._models)
        each_runs = self._each_model(self._here, lambda own: own.var(axis=0, ddof=min(1, len(own) - 1)) / len(own))
        squares = [each * each / max(n - 1, 1) for each, n in zip(each_runs, runs, strict=True)]
        of_runs, fourth = (
            np.stack([*each, *(each[i] + each[j] for i, j in self._pairs)]) for each in (each_runs, squares)
        )
        error = np.where(of_runs > 0, np.sqrt(found.error * found.error + of_runs), found.error)
        level = (1.0 + self._confidence_level) / 2.0
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = np.where(fourth > 0, np.square(error * error) / fourth, np.inf)
            reach = distributions.student_quantile(degrees, level) * error
            stretch = reach / (distributions.normal_quantile(level) * found.error)
            p = 2.0 * distributions.student(degrees, -np.abs(found.value / error))[models:]
            low, high = (
                np.where(of_runs > 0, found.value + np.where(found.error > 0, (end - found.value) * stretch, far), end)
                for end, far in ((found.low, -reach), (found.high, reach))
            )
        several = np.array([*(runs > 1), *(max(runs[i], runs[j]) > 1 for i, j in self._pairs)])[:, None, None]
        return Estimates(found.value, error, low, high, p), found.error, np.where(several, np.sqrt(of_runs), np.nan)

    def _columns(self, estimates: Estimates, parts: Sequence[np.ndarray], place: tuple[int, int, int]) -> list[float]:
        return [float(array[place]) for array in (*estimates[:4], *(parts if max(self._runs) > 1 else ()))]

    @property
    def _headings(self) -> list[str]:
        more = ["stderr points", "stderr runs"] if max(self._runs) > 1 else []
        return ["value", "stderr", "low", "high", *more]

    def table(self) -> pd.DataFrame:
        """The models' values: model, metric, k, value, stderr, low, high; with runs stderr points and stderr runs."""
        import pandas as pd

        self._check_rows("for intervals")
        found, *parts = self._with_runs
        rows = []
        for i, model in enumerate(self._models):
            for name, k, at, _ in self.each():
                value, error, low, high, *more = self._columns(found, parts, (i, *at))
                metric = self._systems[0].metric(name)
                fraction = metric.unit == "fraction"
                if fraction and error == 0 and value in (0.0, 1.0) and self._n_rows <= FEW_ROWS:
                    low, high = self._of_rows_alike(value)
                    error = (high - low) / (2.0 * distributions.normal_quantile((1.0 + self._confidence_level) / 2.0))
                if fraction and metric.fold != "rows":  # unbiased estimates, which may leave [0, 1], are sums over rows
                    low, high = max(low, 0.0), min(high, 1.0)
                rows.append((model, name, k, value, error, low, high, *more))
        return pd.DataFrame(rows, columns=["model", "metric", "k", *self._headings])

    def _of_rows_alike(self, value: float) -> tuple[float, float]:
        """The exact interval of a share that is 0 or 1 in all rows (Clopper and Pearson)."""
        end = float(arithmetic.power(np.array([(1.0 - self._confidence_level) / 2.0]), 1.0 / self._n_rows)[0])
        return (end, 1.0) if value else (0.0, 1.0 - end)

    def _of_few(self, name: str, i: int, pair: tuple[int, int], found: Sequence[float], p: float) -> list[float]:
        """value, error, low, high and p of a difference, so that p is not below what the rows allow, where they are few: of
        sums over rows, and of counts of labels of very few rows, by swapping rows between the two models; of all else at
        least one of all ways to swap them, and another the other way round. The interval holds 0 where p is above what it
        leaves out, and only there."""
        value, error, low, high = found
        one, other = (int(np.cumsum([0, *self._runs])[model]) for model in pair)
        metric, level, swapped = self._systems[one].metric(name), 1.0 - self._confidence_level, None
        reach = distributions.normal_quantile(1.0 - level / 2.0)
        if metric.fold == "rows":
            rows = self._systems[one]._parts["rows"]
            swapped = rows.swapped(self._systems[other]._parts["rows"], metric, i, self._seed)
            if swapped is None:
                return [*found, p]
        else:
            k, a, b = int(self._rising[i]), self._tops[one], self._tops[other]
            differ = ((a.ids[:, :k] != b.ids[:, :k]) | (a.scores[:, :k] != b.scores[:, :k])).any(axis=1)
            d = int(np.count_nonzero(differ))
            few = self._n_rows <= FEWEST_ROWS and len(self._pairs) <= FEW_PAIRS
            if few and metric.fold in ("labels", "bins", "predicted"):
                swapped = self._labels_swapped(name, i, a, b, differ)
            elif d > FEW_DIFFER or p >= 2.0 ** (1 - d):
                return [*found, p]
            else:
                p = min(2.0 ** (1 - d), 1.0)
        if swapped is not None:
            p = float(np.mean(np.abs(swapped) >= np.abs(swapped[0]) - ROUNDING))
            error = max(error, float(np.sqrt(np.mean(swapped * swapped))))
            low, high = min(low, value - reach * error), max(high, value + reach * error)
        if (p > level) != (low <= 0.0 <= high) and 0.0 < p < 1.0:
            error = abs(value) / distributions.normal_quantile(1.0 - p / 2.0)
            low, high = value - reach * error, value + reach * error
        most = 1.0 if metric.unit == "fraction" else np.inf
        return [value, error, max(low, -most), min(high, most), p]

    def _labels_swapped(self, name: str, i: int, a: TopK, b: TopK, differ: np.ndarray) -> np.ndarray:
        """:meth:`Rows.swapped` of a metric over labels: the rows of both models stand below each other, and each way weighs
        a row of one or of the other."""
        k, Y = int(self._rising[-1]), self._truth.to_csr()
        wide = [(0, max(0, k - a.k)), (0, max(0, k - b.k))]
        ids, scores = (
            np.concatenate([
                np.pad(getattr(top, part)[:, :k], [(0, 0), pad], constant_values=absent)
                for top, pad in zip((a, b), wide, strict=True)
            ])
            for part, absent in (("ids", -1), ("scores", -np.inf))
        )  # fmt: skip
        block = Block(as_truth(sparse.vstack([Y, Y], "csr")), TopK(ids, scores, Y.shape[1]), k)
        part = _Labels(block, self._rising, [self._systems[0].metric(name)], self._options)
        kept = _ways(int(np.count_nonzero(differ)), SWAPS_OF_LABELS, self._seed)
        way = np.ones((len(kept), differ.size), np.int64)
        way[:, differ] = kept
        other = way.copy()
        other[:, differ] = 1 - kept
        mine, theirs = (part.values(np.hstack([each, 1 - each]))[name][:, i] for each in (way, other))
        return mine - theirs

    def differences(self) -> pd.DataFrame:
        """The pairs' differences: metric, k, left, right, then as :meth:`table`, and p, as it comes, as ``p raw``."""
        import pandas as pd

        self._check_rows("for intervals")
        found, *parts = self._with_runs
        rows = []
        for name, k, at, _ in self.each():
            for place, (left, right) in enumerate(self._pairs):
                value, error, low, high, *more = self._columns(found, parts, (len(self._models) + place, *at))
                p = float(found.p[place, *at])
                least = ROUNDING * max(abs(float(self._values[side, *at])) for side in (left, right))
                if error <= least:  # every replicate has the same difference, up to the order of its sums
                    value = 0.0 if abs(value) <= least else value
                    error, low, high, p = 0.0, value, value, 0.0 if value else 1.0
                if value and not np.isnan(p) and max(self._runs[left], self._runs[right]) == 1:
                    value, error, low, high, p = self._of_few(name, at[1], (left, right), (value, error, low, high), p)
                sides = self._models[left], self._models[right]
                rows.append((name, k, *sides, value, error, low, high, *more, p))
        return pd.DataFrame(rows, columns=["metric", "k", "left", "right", *self._headings, "p raw"])
