"""Sums over the (score, hit) pairs of the top k, of which ECE, the Brier score, NLL and the reliability table are made."""

from __future__ import annotations

import math

import numpy as np

from xcrepro.core import arithmetic, threads
from xcrepro.core.accumulators.block import Block, read_only
from xcrepro.core.accumulators.scores import MAX_BINS, check_scores
from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import calibration as kernel

BINS = 10
CAP = 100.0
CLOSED = ("left", "right", "torchmetrics")

_PAIRS_A_THREAD = 2**17  # below twice as many a second thread gains nothing
COUNT, HITS, SCORE, SQUARE, SCORE_OF_HITS = range(5)  # the rows of `Pairs.table`


class PairSums:
    """Counts and exact sums by bin of the score, for each k; see :mod:`xcrepro.core.accumulators` for what every fold has.

    A score is taken as it is, float32 or float64; the sums are exact down to 2^-160, where a number's rest is cut off
    (the square of a float64, and a logarithm, are rounded to a float64 first).

    Parameters
    ----------
    ks : int array, (K,)
        Distinct and rising.
    bins : int
        Equal-width bins, 1 to 100,000.
    closed : {"left", "right", "torchmetrics"}
        See :mod:`xcrepro.core.metrics.calibration`.
    cap : float
        The most that a pair adds to NLL.
    loss : bool
        Add up what NLL needs, a logarithm a pair, a third of the time?
    """

    def __init__(self, ks, bins: int = BINS, closed: str = "left", cap: float = CAP, loss: bool = True) -> None:
        self.ks = np.asarray(ks, np.int64)
        self.bins, self.closed = whole_number("bins", bins, 1, MAX_BINS), one_of("closed", closed, CLOSED)
        self.cap = real_number("cap", cap, above=0, finite=False)
        self.loss = loss
        n_bins = self.bins + (closed == "torchmetrics")
        # A pair at place r counts for every k >= r: it goes to the first of them, and `at` adds up.
        self._bucket = np.searchsorted(self.ks, np.arange(1, self.ks[-1] + 1))
        shape = self.ks.size, n_bins, 2  # the last: misses and hits
        # A sum's whole number, and the kernel's parts behind the point.
        self._state = {
            "count": np.zeros(shape, np.int64),
            "score": np.zeros((*shape, 1 + kernel.PARTS), np.int64),
            "square": np.zeros((*shape, 1 + kernel.PARTS), np.int64),
            "loss": np.zeros((self.ks.size, 1 + kernel.PARTS), np.int64),
            "capped": np.zeros(self.ks.size, np.int64),
        }
        self._dtype: np.dtype | None = None

    def add(self, block: Block) -> None:
        """Fold in the pairs of a block."""
        places = slice(0, int(self.ks[-1]))
        parts = block.scores[:, places], block.ids[:, places], block.found[:, places]
        self._add(*parts, self._bucket, block.first_row)

    def add_pairs(self, scores: np.ndarray, hits: np.ndarray) -> None:
        """Fold in pairs (m,), float32 or float64 scores and bool hits, at the first k. The kinds of scores may not be mixed:
        edges differ."""
        self._add(scores[:, None], np.zeros((0, 1), np.int32), hits[:, None], np.zeros(1, np.int64))

    def _add(self, scores, ids, hits, bucket, first_row: int | None = None) -> None:
        if self._dtype is None:
            self._dtype = scores.dtype
        elif scores.dtype != self._dtype:
            raise ArgumentError("scores", f"must stay {self._dtype} from block to block", scores.dtype)
        scores, ids, hits = read_only(scores), read_only(ids), read_only(hits)
        n, k = scores.shape
        how = bin_edges(self.bins, self.closed, scores.dtype), self.loss, arithmetic.exp(-self.cap)
        given = scores, ids, hits, bucket, *how
        most = max(kernel.MOST // k, 1)
        for first in range(0, n, most):
            last = min(first + most, n)

            def part(lo: int, hi: int, first: int = first) -> tuple[int, np.ndarray, np.ndarray]:
                tables = np.zeros((*self._state["count"].shape, kernel.FIELDS), np.int64)
                totals = np.zeros((self.ks.size, kernel.TOTALS), np.int64)
                return kernel.sums(*given, first + lo, first + hi, tables, totals), tables, totals

            # Many bins make a table large; a stretch of rows should be larger still.
            at_least = max(_PAIRS_A_THREAD, 32 * self._state["score"].size) // k
            parts = threads.over_rows(last - first, part, min_rows=max(at_least, 1))
            for fault, _, _ in parts:
                if fault >= 0:
                    check_scores(scores, ids >= 0 if ids.size else None, first_row)  # raises
            for _, tables, totals in parts:
                self._state["count"] += tables[..., kernel.COUNT]
                self._state["capped"] += totals[:, kernel.CAPPED]
                for name, of, start in _SUMS:
                    array = tables if of == "table" else totals
                    self._state[name][..., 1:] += array[..., start : start + kernel.PARTS]
            self._carry()

    def _carry(self) -> None:
        """Bring every part below its power of 2: one form for each sum, and room for the next parts."""
        for name, _, _ in _SUMS:
            array = self._state[name]
            for part in range(kernel.PARTS, 0, -1):
                bits = _bits(name, part)
                array[..., part - 1] += array[..., part] >> bits
                array[..., part] &= (1 << bits) - 1

    def merge(self, other: PairSums) -> None:
        """Add another's sums."""
        if other._dtype is None:
            return
        if self._dtype not in (None, other._dtype):
            raise ArgumentError("other", f"must hold {self._dtype} scores", other._dtype)
        self._dtype = other._dtype
        for name, array in self._state.items():
            array += other._state[name]
        self._carry()

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything it holds."""
        dtype = "" if self._dtype is None else self._dtype.name
        return {name: array.copy() for name, array in self._state.items()} | {"dtype": np.array(dtype)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back what :meth:`arrays` gave."""
        for name, mine in self._state.items():
            given = arrays[name]
            if given.dtype != np.int64 or given.shape != mine.shape or (given < 0).any():
                raise ValueError(f"{name} is {given.dtype} {given.shape}, or holds negative numbers")
        dtype = str(arrays["dtype"])
        if dtype not in ("", "float32", "float64"):
            raise ValueError(f"dtype is {dtype!r}")
        self._state = {name: arrays[name].copy() for name in self._state}
        self._dtype = np.dtype(dtype) if dtype else None

    def at(self, k: int) -> Pairs:
        """What the pairs of the top k, one of ``ks``, add up to."""
        last = int(np.searchsorted(self.ks, k)) + 1
        return Pairs({name: array[:last].sum(axis=0) for name, array in self._state.items()}, self)


# Name of a sum, where the kernel keeps it, its first field there.
_SUMS = ("score", "table", kernel.SCORE), ("square", "table", kernel.SQUARE), ("loss", "total", kernel.LOSS)


def _bits(name: str, index: int) -> int:
    if index > 1:
        return kernel.BITS
    return kernel.LOSS_BITS if name == "loss" else kernel.SCORE_BITS


def _exactly(name: str, array: np.ndarray) -> np.ndarray:
    """object: sums in units of 2^-_UNIT."""
    total, behind = array[..., 0].astype(object) << _UNIT, 0
    for part in range(1, kernel.PARTS + 1):
        behind += _bits(name, part)
        total = total + (array[..., part].astype(object) << (_UNIT - behind))
    return total


_UNIT = kernel.PARTS * kernel.BITS


def _rounded(total) -> np.ndarray:
    return np.array([int(each) / (1 << _UNIT) for each in np.ravel(total)], np.float64)


class Pairs:
    """The sums of the pairs of one top k, each rounded once.

    Attributes
    ----------
    n : int
        How many pairs.
    table : ndarray of float64, (5, bins)
        COUNT, HITS, SCORE, SQUARE and SCORE_OF_HITS: of each bin the number of pairs, of hits, and the sums of the scores, of
        their squares and of the scores of the hits.
    score, hits, squared_error, log_loss : float
        Over all pairs: the sums of the scores, of the hits, of (score - hit)^2, and of -log of what happened's probability,
        at most ``cap`` each; the last is NaN where no logarithms were taken.
    bins, closed, cap
        As for :class:`PairSums`.
    """

    def __init__(self, state: dict[str, np.ndarray], of: PairSums) -> None:
        self.bins, self.closed, self.cap = of.bins, of.closed, of.cap
        count = state["count"]
        score, square = (_exactly(name, state[name]) for name in ("score", "square"))
        self.n, self.hits = int(count.sum()), float(count[:, 1].sum())
        sums = _rounded(score.sum(axis=1)), _rounded(square.sum(axis=1)), _rounded(score[:, 1])
        self.table = np.stack([count.sum(axis=1), count[:, 1], *sums], dtype=np.float64)
        self.score = float(_rounded(score.sum())[0])
        # (p - y)^2 = p^2 - 2 p y + y for y of 0 or 1: in whole numbers nothing cancels.
        self.squared_error = float(
            _rounded(square.sum() - 2 * score[:, 1].sum() + (int(count[:, 1].sum()) << _UNIT))[0]
        )
        capped = int(state["capped"])
        self.log_loss = float(_rounded(_exactly("loss", state["loss"]))[0])
        self.log_loss += capped * self.cap if capped else 0.0  # none times an infinite cap is 0 here
        if not of.loss:
            self.log_loss = math.nan


def bin_edges(bins: int, closed: str, dtype: np.dtype) -> np.ndarray:
    """The kernel's edges: bin b holds ``edges[b] <= score < edges[b + 1]``."""
    inner = (np.arange(1, bins) / bins).astype(dtype).astype(np.float64)
    if closed == "right":
        # Above the edge means at or above the next number.
        inner = np.nextafter(inner, 2.0)
    top = 1.0 if closed == "torchmetrics" else 2.0
    return np.concatenate([[0.0], inner, [top, 3.0]])
