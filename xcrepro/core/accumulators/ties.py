"""Sums over rows under every order of tied scores: expected, lowest and highest, and how many rows the order decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from xcrepro.core import threads
from xcrepro.core.accumulators.block import Block
from xcrepro.core.accumulators.rows import RowSums
from xcrepro.core.accumulators.sums import ExactSums
from xcrepro.core.kernels import ranking as kernel
from xcrepro.core.kernels import sets
from xcrepro.core.predictions import TopK

ORDERS = "expected", "lowest", "highest"
IN_ORDER = frozenset(
    {kernel.FIRST, kernel.AP, kernel.LRAP, kernel.LRAP_MOST, kernel.LRAP_LABELS, kernel.DEPTH, kernel.DEPTH_LEAST}
    | {kernel.EXACT, *range(kernel.HIERARCHY, kernel.WEIGHTED)}
)
"""Columns that do not add up over places, so that their mean over all orders has no short form."""

_ROWS = 2**14  # in one go
# Of a value: what adding the same weights in another order moves is far less, what a hit moves far more.
_ROUNDING = 1e-9


class TiedSums:
    """:class:`xcrepro.core.accumulators.rows.RowSums`, and what they would be in other orders of tied scores; see
    :mod:`xcrepro.core.accumulators`.

    A row counts as decided in a column at k if its value there depends on the order. The sums of the other orders are kept
    as what they differ by on these rows, exactly.

    Parameters
    ----------
    ks, columns, inverse_propensity, beta
        As for ``RowSums``; no column of :data:`IN_ORDER`.

    Attributes
    ----------
    given : RowSums
        In the order of the predictions.
    decided : ndarray of int64, (columns, K)
        Rows whose value ties decide.
    cut : ndarray of int64, (K,)
        Rows whose last stored score ties with that at place k: labels that are not stored may tie with it, too.
    """

    def __init__(self, ks, columns: Iterable[int], inverse_propensity=None, beta: float = 1.0) -> None:
        about = ks, [*columns], inverse_propensity, beta
        self.given = RowSums(*about)
        self._each, self._expected = RowSums(*about), RowSums(*about, expected=True)  # of whose rows values are taken
        self._weights = np.zeros(0) if inverse_propensity is None else inverse_propensity
        self.ks = self.given.ks
        shape = self.given.columns.size, self.ks.size
        self._moved = {order: ExactSums(shape) for order in ORDERS}
        self.decided, self.cut = np.zeros(shape, np.int64), np.zeros(self.ks.size, np.int64)

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return int(self.given.n_rows)

    def add(self, block: Block) -> None:
        """Fold in a block."""
        self.given.add(block)
        top, k = block.stored, block.ids.shape[1]
        mixed, truth = np.empty(block.n_rows, np.bool_), block.truth
        given = truth.indptr, truth.indices, top.ids, top.scores, self._weights, k
        threads.over_rows(block.n_rows, lambda lo, hi: sets.mixed(*given, lo, hi, mixed), min_rows=2**14)
        tied = np.flatnonzero(mixed)
        if 1 < top.k < top.n_labels:
            last = top.scores[:, -1]
            ends = (top.ids[:, -1] >= 0) & (top.scores[:, -2] == last)
            self.cut += [int((ends & (top.scores[:, k - 1] == last)).sum()) for k in self.ks.tolist()]
        matrix: Any = truth.to_csr() if tied.size else None

        def part(lo: int, hi: int):
            moved = {order: ExactSums(self.decided.shape) for order in ORDERS}
            decided = np.zeros(self.decided.size, np.int64)
            for first in range(lo, hi, _ROWS):
                some = tied[first : min(first + _ROWS, hi)]
                given = None if block.n_relevant is None else np.asarray(block.n_relevant)[some]
                here, *orders = self._values(Block(matrix[some], top.rows(some), k, None, given))
                differs = np.abs(orders[2] - orders[1]) > _ROUNDING * np.abs(orders[2])
                kept = differs.any(axis=1)
                decided += differs.sum(axis=0)
                back = np.where(differs[kept], -here[kept], 0.0)
                for order, values in zip(ORDERS, orders, strict=True):
                    moved[order].add_rows(np.where(differs[kept], values[kept], 0.0))
                    moved[order].add_rows(back)
            return moved, decided

        for moved, decided in threads.over_rows(tied.size, part, min_rows=2**12):
            self._take(moved, decided.reshape(self.decided.shape))

    def _values(self, block: Block) -> list[np.ndarray]:
        """The rows' values as they come, expected, lowest and highest."""
        found, top, truth = [self._each.values(block), self._expected.values(block)], block.stored, block.truth
        for best in (False, True):
            ids: np.ndarray = np.empty(block.ids.shape, np.int32)
            sets.arrange(truth.indptr, truth.indices, top.ids, top.scores, self._weights, best, 0, len(ids), ids)
            arranged = TopK(ids, top.scores[:, : ids.shape[1]], top.n_labels)
            found.append(self._each.values(Block(truth, arranged, ids.shape[1], None, block.n_relevant)))
        return found

    def _take(self, moved: dict[str, ExactSums], decided: np.ndarray) -> None:
        for order, sums in moved.items():
            self._moved[order].merge(sums)
        self.decided = self.decided + decided

    def merge(self, other: TiedSums) -> None:
        """Add another's sums."""
        self.given.merge(other.given)
        self._take(other._moved, other.decided)
        self.cut = self.cut + other.cut

    def under(self, order: str) -> RowSums:
        """The sums in one of :data:`ORDERS`."""
        return self.given.shifted(self._moved[order])

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything it holds."""
        moved = {order: sums.to_bytes() for order, sums in self._moved.items()}
        return {**self.given.arrays(), **moved, "decided": self.decided.copy(), "cut": self.cut.copy()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back what :meth:`arrays` gave."""
        self.given.restore(arrays)
        for order, sums in self._moved.items():
            sums.from_bytes(arrays[order])
        for name in ("decided", "cut"):
            mine, given = getattr(self, name), arrays[name]
            if given.dtype != np.int64 or given.shape != mine.shape or (given < 0).any() or (given > self.n_rows).any():
                raise ValueError(f"{name} is {given.dtype} {given.shape}, or not from 0 to the {self.n_rows} rows")
            setattr(self, name, given.copy())
