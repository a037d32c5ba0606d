"""Sums over rows of the ranking kernel's columns: what P@k, nDCG@k, PSP@k and their like are made of."""

from __future__ import annotations

import copy
import decimal
import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core import threads
from xcrepro.core.accumulators.block import Block
from xcrepro.core.accumulators.sums import Adder, ExactSums
from xcrepro.core.arguments import real_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import exact, resample, sets
from xcrepro.core.kernels import ranking as kernel
from xcrepro.core.kernels import truth as truth_kernel

if TYPE_CHECKING:
    from xcrepro.core.hierarchy import Hierarchy

_ROWS_A_THREAD = 2**15  # below twice as many a second thread gains nothing
_BEST = {kernel.BEST_HITS, kernel.BEST_DCG, kernel.BEST_NDCG_LABELS}


class RowSums:
    """Sums over rows of columns at each k; see :mod:`xcrepro.core.accumulators` for what every fold has.

    Parameters
    ----------
    ks : int array, (K,)
        Distinct and rising.
    columns : iterable of int
        Of :mod:`xcrepro.core.kernels.ranking`.
    inverse_propensity : float64 array, (L,), optional
        Checked (positive and finite, one a label) by whoever makes this; needed by the kernel's columns from WEIGHTED on.
    beta : float
        Of the F columns, above 0.
    n_resamples : int
        0, or as many weighted sums beside each other: ``add`` then takes weights (n, n_resamples).
    expected : bool
        Of each row the mean over all orders of its tied scores; not for columns of ``ties.IN_ORDER``.
    hierarchy : Hierarchy, optional
        Of the L labels; needed by the kernel's columns from HIERARCHY to WEIGHTED.

    Attributes
    ----------
    ks : ndarray of int64, (K,)
    n_rows : int
        Rows so far; with ``n_resamples`` an array (n_resamples, 1), each row as often as its weights say.
    """

    def __init__(
        self,
        ks,
        columns: Iterable[int],
        inverse_propensity=None,
        beta: float = 1.0,
        n_resamples: int = 0,
        expected: bool = False,
        hierarchy: Hierarchy | None = None,
    ) -> None:
        self.ks = np.asarray(ks, np.int64)
        self.columns = np.array(sorted(set(columns)), np.int64)
        beta = real_number("beta", beta, above=0)
        self._beta2 = beta * beta
        if inverse_propensity is None and self.columns.max(initial=0) >= kernel.WEIGHTED:
            do = "xcrepro.propensity.inverse(label_counts, n_points, A, B)"
            raise ArgumentError("inverse_propensity", "must be given for a propensity-scored metric", None, do)
        self._reach = any(kernel.HIERARCHY <= column < kernel.WEIGHTED for column in self.columns.tolist())
        if hierarchy is None and self._reach:
            do = "xcrepro.Hierarchy.from_pairs(pairs, label_names)"
            raise ArgumentError("hierarchy", "must be given for a hierarchical metric", None, do)
        self._weights, self._hierarchy = inverse_propensity, hierarchy
        self._best = not _BEST.isdisjoint(self.columns.tolist())
        self._own = kernel.LABEL_WEIGHTS in self.columns
        self._given_truth = self.columns.max(initial=0) >= kernel.GIVEN_TRUTH
        self.n_resamples, self._expected = n_resamples, expected
        self.n_rows = np.zeros((n_resamples, 1), np.int64) if n_resamples else 0
        self._sums = ExactSums(((n_resamples,) if n_resamples else ()) + (self.columns.size, self.ks.size))

    def add(self, block: Block, weights: np.ndarray | None = None) -> None:
        """Fold in a block; with ``n_resamples``, row i counts ``weights[i, s]`` times in sample s."""
        inputs = self._inputs(block)

        def part(lo: int, hi: int) -> np.ndarray:
            adder = Adder(self.columns.size * self.ks.size, self.n_resamples)
            for first, n, values in self._stretches(block, inputs, lo, hi):
                adder.add(values, n, None if weights is None else weights[first : first + n])
            return adder.totals()

        for totals in threads.over_rows(block.n_rows, part, min_rows=_ROWS_A_THREAD):
            self._sums.add_totals(totals)
        block.all_found()
        drawn = block.n_rows if weights is None else weights.sum(axis=0, dtype=np.int64)[:, None]
        self.n_rows = self.n_rows + drawn

    def values(self, block: Block) -> np.ndarray:
        """What is added up: float64 (n, columns K), by column, then by k rising."""
        out = np.empty((block.n_rows, self.columns.size * self.ks.size))
        for first, n, part in self._stretches(block, self._inputs(block), 0, block.n_rows):
            out[first : first + n] = part[:n]
        block.all_found()
        return out

    def _inputs(self, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The label weights, their sum in each row, the complete truth's label counts: empty where no column needs them."""
        none = np.zeros(0)
        if self._weights is None:
            return none, none, none
        own = block.truth.weight_sums(self._weights) if self._own else none
        return self._weights, own, check_n_relevant(block.n_relevant, block.n_rows) if self._given_truth else none

    def _stretches(self, block: Block, inputs, lo: int, hi: int):
        """Yield (first row, rows, values) of short stretches of the rows [lo, hi), one array used again and again."""
        truth, sizes, (weights, own, given) = block.truth, block.truth.sizes, inputs
        longest = min(exact.ROWS, hi - lo)
        best = np.empty((longest if self._best else 0, block.ids.shape[1]))
        expected = np.empty((longest if self._expected else 0, block.ids.shape[1], 3))
        reached = np.empty((longest if self._reach else 0, block.ids.shape[1], 2), np.int64)
        n_reached, nodes = np.empty(len(reached), np.int64), ()  # type: np.ndarray, tuple
        if self._hierarchy is not None and self._reach:
            above = self._hierarchy.above
            nodes = above.indptr, above.indices, np.zeros(above.shape[1], np.int64)  # the last for the kernel to mark
        out = np.empty((longest, self.columns.size, self.ks.size))
        flat = out.reshape(longest, self.columns.size * self.ks.size)
        for first in range(lo, hi, exact.ROWS):
            last = min(first + exact.ROWS, hi)
            # All on one stretch, so that what one writes is still in the cache for the next.
            found = block.find(first, last)
            if self._best:
                truth_kernel.best_weights(truth.indptr, truth.indices, weights, first, last, best)
            if self._expected:
                stored = block.stored
                parts = truth.indptr, truth.indices, stored.ids, stored.scores, weights
                sets.expected(*parts, first, last, expected)
            if self._reach:
                parts = truth.indptr, truth.indices, block.ids, *nodes
                kernel.reached(*parts, first, last, reached, n_reached)
            rows = found, block.ids, sizes, truth.n_labels, weights, best, own, given, expected, reached, n_reached
            kernel.rows(*rows, self._beta2, self.ks, self.columns, first, last, out)
            yield first, last - first, flat

    def merge(self, other: RowSums) -> None:
        """Add another's sums."""
        self._sums.merge(other._sums)
        self.n_rows = self.n_rows + other.n_rows

    def shifted(self, by: ExactSums) -> RowSums:
        """Sums of the same rows that differ from these by ``by``."""
        found = copy.copy(self)
        found._sums = ExactSums(self._sums.shape)
        found._sums.merge(self._sums)
        found._sums.merge(by)
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything it holds."""
        return {"n_rows": np.asarray(self.n_rows, np.int64), "sums": self._sums.to_bytes()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back what :meth:`arrays` gave."""
        n_rows = arrays["n_rows"]
        if n_rows.dtype != np.int64 or n_rows.shape != np.shape(self.n_rows) or (n_rows < 0).any():
            raise ValueError(f"n_rows is {n_rows.dtype} {n_rows.shape}")
        self._sums.from_bytes(arrays["sums"])
        self.n_rows = n_rows if self.n_resamples else int(n_rows)

    def __getitem__(self, column: int) -> np.ndarray:
        """The sum of a column, float64 ([n_resamples,] K)."""
        return self._sums.rounded(np.s_[..., int(np.searchsorted(self.columns, column)), :])

    def mean(self, column: int) -> np.ndarray:
        """The mean over rows of a column, float64 ([n_resamples,] K)."""
        return self[column] / self.n_rows


def check_n_relevant(n_relevant, n_rows: int) -> np.ndarray:
    """The complete truth's label counts, checked."""
    if n_relevant is None:
        do = "the number of relevant labels of each row in the COMPLETE truth (jain16, theorem 4.2); "
        do += "dividing by the observed count is biased"
        raise ArgumentError("n_relevant", "must be given with inverse_propensity", None, do)
    values = np.ascontiguousarray(n_relevant, np.float64)
    if values.shape != (n_rows,) or not (np.isfinite(values) & (values >= 0)).all():
        raise ArgumentError("n_relevant", f"must hold {n_rows} numbers, 0 or more", f"an array of shape {values.shape}")
    return values


@functools.cache
def _poisson_bounds() -> np.ndarray:
    """2^64 times the chance that a Poisson variable of mean 1 is at most j, for j = 0, 1, ... until nothing is above."""
    with decimal.localcontext(prec=50):
        bounds: list[int] = []
        chance, below = decimal.Decimal(-1).exp(), decimal.Decimal(0)
        while True:
            below += chance
            bound = int((below * 2**64).to_integral_value())
            if bound >= 2**64 - 1:
                return np.array(bounds, np.uint64)
            bounds.append(bound)
            chance /= len(bounds)


def poisson_weights(seed: int, rows: np.ndarray, n_resamples: int) -> np.ndarray:
    """How often each row counts in each sample of a Poisson bootstrap: independent Poisson numbers of mean 1.

    A weight is a hash of the seed, the row's number among all rows and the sample's number. So rows may be cut into blocks in
    any way, and each block weighed by itself, on any machine, in any order: what is summed of the blocks merges into the
    bootstrap of all rows. The number of rows drawn varies, n plus or minus sqrt(n): means and ratios of sums do not notice to
    order 1/n.

    >>> poisson_weights(0, np.arange(4), n_resamples=6)
    array([[2, 1, 0, 3, 0, 0],
           [0, 2, 2, 0, 1, 0],
           [1, 2, 1, 1, 1, 2],
           [1, 1, 0, 1, 1, 1]], dtype=uint8)
    """
    weights = np.empty((rows.size, n_resamples), np.uint8)
    given = seed, rows, _poisson_bounds()
    threads.over_rows(rows.size, lambda lo, hi: resample.poisson(*given, lo, hi, weights), min_rows=4096)
    return weights
