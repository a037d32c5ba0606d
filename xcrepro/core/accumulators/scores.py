"""How many pairs and hits there are at each score: calibration in full, over parts that merge.

ACE and smooth ECE depend on nothing but these counts, and counts add up to the same bits in any order. :class:`ScorePool` holds
them, :class:`ScoreCounts` is the fold over blocks of rows: one pool for each cut-off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xcrepro.core import arithmetic
from xcrepro.core.accumulators.block import Block
from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import cosine
from xcrepro.core.kernels import pool as kernel

MAX_BINS = 100_000
_STEPS = 2**16  # of smooth_ece
_WAITING = 2**16  # pairs that wait before they are counted
_MOST_PAIRS = 2**52  # of a pool that is read: thousands of such pools are merged before int64 ends
_LINK = "map scores to probabilities first: the links min_max and margin of xcrepro.calibrate"
_UNSIGNED = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}


def check_scores(scores: np.ndarray, present: np.ndarray | None = None, first_row: int | None = None) -> None:
    """Refuse scores that are no probabilities.

    >>> check_scores(np.array([[0.5, 1.5]]))
    Traceback (most recent call last):
    xcrepro.core.errors.ArgumentError: scores must lie in [0, 1]; got 1.5 at row 0, place 1: map scores to probabilities first:
        the links min_max and margin of xcrepro.calibrate
    """
    if scores.size == 0:
        return
    given = scores if present is None or present.all() else np.where(present, scores, scores.dtype.type(0))
    # A minimum of NaN and something is NaN, and NaN is not in the range.
    if given.min() >= 0 and given.max() <= 1:
        return
    place = np.unravel_index(int(np.argmin((given >= 0) & (given <= 1))), given.shape)
    where = f"row {place[0] + (first_row or 0)}, place {place[1]}" if given.ndim == 2 else f"pair {place[0]}"
    do = "absent places are left out by xcrepro.core.metrics.calibration.pairs" if given[place] == -np.inf else _LINK
    raise ArgumentError("scores", "must lie in [0, 1]", f"{given[place]} at {where}", do)


class Runs(NamedTuple):
    """What a pool comes to.

    Attributes
    ----------
    scores : ndarray of float64, shape (m,)
        Rising strictly.
    n, hits : ndarray of int64, shape (m,)
        Pairs and hits at each.
    """

    scores: np.ndarray
    n: np.ndarray
    hits: np.ndarray


class _Run(NamedTuple):
    """A run as the kernels have it: scores are bits. Never written to, so pools share them."""

    scores: np.ndarray
    n: np.ndarray
    hits: np.ndarray


class ScorePool:
    """How many pairs and how many hits there are at each distinct score, in [0, 1]: 20 bytes each (24 for float64).

    A pool takes float32 or float64 scores, not both. Equal content is equal bytes of :meth:`arrays`, however it came: pairs one
    by one or at once, in any order, through any tree of merges.

    Examples
    --------
    >>> pool = ScorePool().add([0.9, 0.2], [True, False]).merge(ScorePool().add([0.9], [False]))
    >>> pool.runs()
    Runs(scores=array([0.2, 0.9]), n=array([1, 2]), hits=array([0, 1]))
    >>> round(pool.ace(bins=2), 4)
    0.3333
    """

    def __init__(self) -> None:
        self._dtype: np.dtype | None = None
        self._stack: list[_Run] = []  # each run more than twice as long as the next
        self._keys: list[np.ndarray] = []  # pairs that wait, as keys, and how often each counts (None: once)
        self._weights: list[np.ndarray | None] = []
        self._waiting = 0

    # ------------------------------------------------------------------ in

    def add(self, scores, hits, weights=None) -> ScorePool:
        """Count pairs."""
        if isinstance(scores, np.ndarray):
            values = np.ascontiguousarray(scores)
        else:
            values = np.ascontiguousarray(scores, self._dtype or np.float64)
        found = np.asarray(hits, bool)
        if values.ndim != 1 or found.shape != values.shape:
            raise ArgumentError("hits", "must be flat, as many as the scores", f"{found.shape} for {values.shape}")
        self._check_dtype(values.dtype)
        check_scores(values)
        counts = None
        if weights is not None:
            counts = np.asarray(weights)
            if counts.shape != values.shape or counts.dtype.kind not in "iu" or (counts.size and counts.min() < 0):
                raise ArgumentError("weights", "must be whole numbers, 0 or more, one a pair", repr(weights))
        self._wait(_keys(values, found), counts)
        return self

    def add_counts(self, scores, n, hits) -> ScorePool:
        """Count pairs that are counted already, as :meth:`runs` gives them."""
        n, hits = np.asarray(n), np.asarray(hits)
        if n.shape != hits.shape or not (hits <= n).all():
            raise ArgumentError("hits", "must lie in [0, n]", repr(hits))
        scores = np.asarray(scores) if isinstance(scores, np.ndarray) else np.asarray(scores, self._dtype or np.float64)
        outcome = np.repeat([True, False], n.size)
        return self.add(np.concatenate([scores, scores]), outcome, np.concatenate([hits, n - hits]))

    def merge(self, other: ScorePool) -> ScorePool:
        """Count all pairs of another pool, which stays as it is."""
        if other._dtype is not None:
            self._check_dtype(other._dtype)
        other._count_waiting()
        for run in list(other._stack):
            self._push(run)
        return self

    def copy(self) -> ScorePool:
        """Another pool of the same pairs."""
        return ScorePool().merge(self)

    def _check_dtype(self, dtype: np.dtype) -> None:
        if dtype not in _UNSIGNED:
            raise ArgumentError("scores", "must be float32 or float64", dtype)
        if self._dtype is None:
            self._dtype = dtype
        elif dtype != self._dtype:
            raise ArgumentError("scores", f"must stay {self._dtype} in a pool", dtype)

    def _wait(self, keys: np.ndarray, weights: np.ndarray | None) -> None:
        if weights is not None:
            kept = weights > 0
            keys, weights = keys[kept], weights[kept].astype(np.int64)
        if keys.size == 0:
            return
        self._keys.append(keys)
        self._weights.append(weights)
        self._waiting += keys.size
        if self._waiting >= _WAITING:
            self._count_waiting()

    def _count_waiting(self) -> None:
        if not self._waiting:
            return
        keys = np.concatenate(self._keys)
        if all(each is None for each in self._weights):
            keys.sort()
            weights = np.empty(0, np.int64)
        else:
            weights = np.concatenate(
                [np.ones(k.size, np.int64) if w is None else w for k, w in zip(self._keys, self._weights, strict=True)]
            )
            keys, weights = _sorted(keys, weights)
        self._keys, self._weights, self._waiting = [], [], 0
        self._push(self._trimmed(*kernel.count(keys, weights)))

    def _trimmed(self, scores: np.ndarray, n: np.ndarray, hits: np.ndarray, length: int) -> _Run:
        """A run without the room behind it, which is given back if it is much."""
        few = 4 * length < 3 * n.size
        return _Run(*(part[:length].copy() if few else part[:length] for part in (scores, n, hits)))

    def _push(self, run: _Run) -> None:
        # As a binary counter carries: what is merged is about as long as what it is merged with, so many small blocks cost
        # no more than a few large ones.
        self._stack.append(run)
        while len(self._stack) > 1 and self._stack[-2].n.size <= 2 * self._stack[-1].n.size:
            self._merge_last()

    def _merge_last(self) -> None:
        last, before = self._stack.pop(), self._stack.pop()
        self._stack.append(self._trimmed(*kernel.merge(*before, *last)))

    def _settled(self) -> _Run:
        """Everything, as one run."""
        self._count_waiting()
        while len(self._stack) > 1:
            self._merge_last()
        if not self._stack:
            bits, counts = np.empty(0, _UNSIGNED[self._dtype or np.dtype(np.float32)]), np.empty(0, np.int64)
            return _Run(bits, counts, counts)
        return self._stack[0]

    # ------------------------------------------------------------------ out

    def runs(self) -> Runs:
        """Rising scores, and the pairs and hits at each."""
        run = self._settled()
        return Runs(_values(run.scores), run.n, run.hits)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything it holds, in one canonical form."""
        run = self._settled()
        return {"scores": run.scores.view(self._dtype or np.dtype(np.float32)), "n": run.n, "hits": run.hits}

    def restore(self, arrays: dict[str, np.ndarray]) -> ScorePool:
        """The inverse of :meth:`arrays`, on a fresh pool."""
        if set(arrays) != {"scores", "n", "hits"}:
            raise ValueError(f"a pool holds hits, n, scores, not {', '.join(sorted(arrays))}")
        scores, n, hits = arrays["scores"], arrays["n"], arrays["hits"]
        for name, array in arrays.items():
            allowed = [np.float32, np.float64] if name == "scores" else [np.int64]
            if array.ndim != 1 or array.shape != n.shape or array.dtype not in allowed:
                raise ValueError(f"{name} of dtype {array.dtype} and shape {array.shape}, where n has {n.shape}")
        if not ((scores >= 0) & (scores <= 1) & ~np.signbit(scores)).all():
            raise ValueError("scores outside [0, 1]")
        if not ((n >= 1) & (hits >= 0) & (hits <= n)).all():
            raise ValueError("counts that are no counts")
        if n.sum(dtype=np.float64) > _MOST_PAIRS:
            raise ValueError(f"counts of more than {_MOST_PAIRS:,} pairs")
        if (scores[1:] <= scores[:-1]).any():
            raise ValueError("scores that do not rise")
        self._dtype = scores.dtype if n.size else None
        self._stack = [_Run(scores.copy().view(_UNSIGNED[scores.dtype]), n.copy(), hits.copy())] if n.size else []
        return self

    # ------------------------------------------------------------------ metrics

    def _filled(self) -> _Run:
        run = self._settled()
        if run.n.size == 0:
            raise ArgumentError("scores", "must hold at least one pair", "none")
        return run

    def ace(self, bins: int = 10, norm: str = "l1", half: str | None = None) -> float:
        """Adaptive calibration error: see :func:`xcrepro.core.metrics.calibration.ace`."""
        table = self._equal_mass(bins)
        return gap_error(table[kernel.COUNT], table[kernel.HITS], table[kernel.SCORE], norm, half)

    def _equal_mass(self, bins: int) -> np.ndarray:
        whole_number("bins", bins, 1, MAX_BINS)
        run = self._filled()
        table = np.empty((kernel.ROWS, bins))
        cuts = np.array([b * int(run.n.sum()) // bins for b in range(bins + 1)], np.int64)
        kernel.equal_mass(_values(run.scores), run.n, run.hits, cuts, table)
        return table

    def smooth_ece(self, bandwidth: float | None = None) -> float:
        """Smooth ECE: see :func:`xcrepro.core.metrics.calibration.smooth_ece`."""
        if bandwidth is not None:
            real_number("bandwidth", bandwidth, above=0)
        run = self._filled()
        return _smooth(_residuals(_values(run.scores), run.n, run.hits) / int(run.n.sum()), bandwidth)


def _values(bits: np.ndarray) -> np.ndarray:
    return bits.view(np.float32 if bits.dtype == np.uint32 else np.float64).astype(np.float64)


def _sorted(keys: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keys rising, with their weights."""
    if keys.dtype == np.uint32 and weights.max() < 2**32:
        # Both in one number: three times as quick.
        both = keys.astype(np.uint64) << np.uint64(32) | weights.astype(np.uint64)
        both.sort()
        return (both >> np.uint64(32)).astype(np.uint32), (both & np.uint64(2**32 - 1)).astype(np.int64)
    order = np.argsort(keys)
    return keys[order], weights[order]


def _keys(scores: np.ndarray, hits: np.ndarray) -> np.ndarray:
    unsigned = _UNSIGNED[scores.dtype]
    # The sign bit, which only -0 has set, is shifted out.
    return (scores.view(unsigned) << unsigned(1)) | hits


def gap_error(
    n: np.ndarray, hits: np.ndarray, score: np.ndarray, norm: str = "l1", half: str | None = None, debias: bool = False
) -> Any:
    """A norm of score / n - hits / n over bins, each of the weight n: a float; of rows of bins, of which none is empty, an
    array."""
    one_of("norm", norm, ("l1", "l2", "max"))
    one_of("half", half, (None, "over", "under"))
    if debias and (norm != "l2" or half is not None):
        raise ArgumentError("debias", "goes with norm='l2' and both halves", f"norm={norm!r}, half={half!r}")
    if not (filled := n > 0).all():
        n, hits, score = n[filled], hits[filled], score[filled]
    y = hits / n
    gap = score / n - y
    size = {None: np.abs(gap), "over": np.maximum(gap, 0.0), "under": np.maximum(-gap, 0.0)}[half]
    if norm == "max":
        found = size.max(axis=-1)
    elif norm == "l1":
        found = (n / n.sum(axis=-1, keepdims=True) * size).sum(axis=-1)
    else:
        squares = size**2 - y * (1.0 - y) / np.maximum(n - 1.0, 1.0) if debias else size**2
        found = np.sqrt(np.maximum((n / n.sum(axis=-1, keepdims=True) * squares).sum(axis=-1), 0.0))
    return found if n.ndim > 1 else float(found)


def _residuals(scores: np.ndarray, n: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """Summed score - hit on the steps of smooth ECE, each shared between the two nodes around its score."""
    place = (scores * _STEPS).astype(np.int64)
    residual = n * scores - hits
    upper = (scores * _STEPS - place) * residual
    grid = np.bincount(place, residual - upper, _STEPS + 2) + np.bincount(place + 1, upper, _STEPS + 2)
    return grid[:-1]


def _smooth(residuals: np.ndarray, bandwidth: float | None) -> float:
    """smECE of mean residuals on the steps, at a bandwidth or at the fixed point."""
    # Reflected at both ends, the residuals are an even function of period 2: Gaussian smoothing multiplies its cosine
    # coefficients by exp(-(pi j s)^2 / 2). A type 1 transform counts the two ends half, so they go in twice.
    ends = residuals.copy()
    ends[[0, -1]] *= 2.0
    coefficients = cosine_transform(ends)
    frequency = np.pi * np.arange(coefficients.size)

    def error(s: float) -> float:
        curve = np.abs(cosine_transform(coefficients * arithmetic.exp(-0.5 * (frequency * s) ** 2))) / 2.0
        return float((curve.sum() - (curve[0] + curve[-1]) / 2.0) / _STEPS)

    return error(bandwidth) if bandwidth is not None else _crossing(error)


_cosines = functools.cache(cosine.cosines)


def cosine_transform(values: np.ndarray) -> np.ndarray:
    """The cosine transform of type 1 along the last axis, of 2^m + 1 values."""
    out = np.empty(values.shape)
    shape = -1, values.shape[-1]
    cosine.transforms(np.ascontiguousarray(values).reshape(shape), _cosines(shape[1] - 1), out.reshape(shape))
    return out


def _crossing(error: Callable[[float], float]) -> float:
    """The smallest multiple s of 2^-30 in (0, 1] with error(s) <= s, for an error that falls and is at most 1."""
    unit = 2.0**-30
    low, high = 0, 2**30
    above, below = error(0.0), 1.0 - error(1.0)  # how far the error lies over s at low, and under it at high
    if above <= 0.0:
        return unit
    steps, side = 0, 0
    while high - low > 1:
        # False position, in which an end that stays counts half the next time (Illinois); halving, should that be slow.
        share = above / (above + below) if above + below > 0.0 and steps < 25 else 0.5
        middle = min(max(low + round((high - low) * share), low + 1), high - 1)
        gap = error(middle * unit) - middle * unit
        if gap > 0.0:
            below = below / 2.0 if side > 0 else below
            low, above, side = middle, gap, 1
        else:
            above = above / 2.0 if side < 0 else above
            high, below, side = middle, -gap, -1
        steps += 1
    return high * unit


# ---------------------------------------------------------------------------------------------- the fold


class ScoreCounts:
    """The scores and hits of the first k places, for several k: a fold (see :mod:`xcrepro.core.accumulators`).

    Parameters
    ----------
    ks : array_like of int, shape (K,)
        Distinct and rising.

    Examples
    --------
    >>> from xcrepro import TopK
    >>> truth, top = np.eye(4), TopK.from_scores(np.array([[.9, .1, 0, 0], [.8, .7, 0, 0], [.2, 0, .6, 0], [0, 0, .3, .4]]), 2)
    >>> counts = ScoreCounts((1, 2))
    >>> for first in (2, 0):                                            # blocks may come in any order
    ...     counts.add(Block(truth[first : first + 2], top.rows(slice(first, first + 2)), 2))
    >>> counts.pool(1).runs().hits, counts.pool(2).runs().n.sum().item()
    (array([1, 1, 0, 1]), 8)
    """

    def __init__(self, ks) -> None:
        self.ks = np.asarray(ks, np.int64)
        self._pools = [ScorePool() for _ in self.ks]  # of each stretch of places, from one k up to the next

    def add(self, block: Block) -> None:
        """Fold in a block."""
        k = int(self.ks[-1])
        scores, present = np.ascontiguousarray(block.scores[:, :k]), block.ids[:, :k] >= 0
        check_scores(scores, present, block.first_row)
        keys, full, first = _keys(scores, block.found[:, :k]), bool(present.all()), 0
        for pool, last in zip(self._pools, self.ks.tolist(), strict=True):
            kept = slice(None) if full else present[:, first:last].ravel()
            pool._check_dtype(scores.dtype)
            # A copy: what waits must not hold on to the whole block.
            pool._wait(keys[:, first:last].flatten()[kept], None)
            first = last

    def merge(self, other: ScoreCounts) -> None:
        """Fold in another of the same options."""
        for pool, part in zip(self._pools, other._pools, strict=True):
            pool.merge(part)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything it holds: the arrays of all pools in one, and ``sizes`` (K,), how long each pool's part is."""
        parts = [pool.arrays() for pool in self._pools]
        sizes = np.array([part["n"].size for part in parts], np.int64)
        return {"sizes": sizes} | {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """The inverse of :meth:`arrays`; ValueError where they cannot be right."""
        arrays = dict(arrays)
        sizes = arrays.pop("sizes", None)
        if sizes is None or sizes.shape != self.ks.shape or sizes.dtype != np.int64 or (sizes < 0).any():
            raise ValueError(f"sizes that are not {self.ks.size} whole numbers")
        edges = np.append(0, np.cumsum(sizes))
        for name, array in arrays.items():
            if array.ndim != 1 or array.size != edges[-1]:
                raise ValueError(f"{name} of shape {array.shape}, where sizes add up to {edges[-1]}")
        for pool, lo, hi in zip(self._pools, edges[:-1], edges[1:], strict=True):
            pool.restore({name: array[lo:hi] for name, array in arrays.items()})

    def pool(self, k: int) -> ScorePool:
        """The pairs of the first k places."""
        if k not in self.ks:
            raise ArgumentError("k", f"must be one of {self.ks.tolist()}", k)
        pool = ScorePool()
        for part in self._pools[: int(np.searchsorted(self.ks, k)) + 1]:
            pool.merge(part)
        return pool
