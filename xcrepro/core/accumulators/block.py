"""A block of rows: truth and predictions, checked once, their hits found once, for all the folds that want them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from xcrepro.core.arguments import check_places
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import truth as truth_kernel
from xcrepro.core.predictions import TopK, check_pair
from xcrepro.core.tensors import labels_as_matrix
from xcrepro.core.truth import as_truth

KS = (1, 3, 5)
"""The cut-offs that tables of the field have."""


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, row by row in memory, as nobody may write to it. A kernel is compiled once for arrays that may be written to
    and once for those that may not: what a block hands over is of the second kind, whoever made it."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


class Block:
    """Rows of ground truth and their predictions.

    Parameters
    ----------
    Y : sparse matrix, array_like or tensor, shape (n, L), or label lists, or Truth
    top : TopK
        Its predictions.
    k_max : int
        Places that are looked at, at most ``top.k``.
    first_row : int, optional
        The number of the first row among all rows, for what depends on it (cross-fitting's folds, bootstrap weights).
    n_relevant : array_like of float, shape (n,), optional
        The complete truth's label counts of these rows, where a metric needs them.

    Attributes
    ----------
    truth : Truth
    ids : ndarray of int32, shape (n, k_max)
        The labels at the places, -1 where there is none.
    scores : ndarray of float32, shape (n, k_max)
        Minus infinity where there is none.
    stored : TopK
        All places that the predictions keep, for scores that tie across the last one looked at.

    Raises
    ------
    ArgumentError
        For truth and predictions that cannot belong together, a k above ``top.k``, a label of ``top`` that is not below L.
    """

    def __init__(self, Y, top: TopK, k_max: int, first_row: int | None = None, n_relevant=None) -> None:
        self.truth = as_truth(labels_as_matrix("Y", Y, getattr(top, "n_labels", None)))
        check_pair(self.truth, top)
        check_places("ks", k_max, top.k)
        self.ids = read_only(top.ids[:, :k_max])
        self.scores = top.scores[:, :k_max]
        self.stored = top
        self.first_row = first_row
        self.n_relevant = n_relevant
        if self.ids.size and self.ids.max() >= self.truth.n_labels:
            row, place = np.argwhere(self.ids >= self.truth.n_labels)[0]
            rule, do = (
                f"must name labels below its n_labels, {self.n_labels}",
                "make it with TopK.from_ids, which checks",
            )
            raise ArgumentError("top", rule, f"{self.ids[row, place]} in row {row}", do)
        self._found = np.zeros(self.ids.shape, np.bool_)
        self._missing = self.n_rows > 0  # are the hits still to be found?

    @property
    def n_rows(self) -> int:
        """n."""
        return self.truth.n_rows

    @property
    def n_labels(self) -> int:
        """L."""
        return self.truth.n_labels

    @property
    def found(self) -> np.ndarray:
        """(n, k_max) bool: which places hold relevant labels."""
        if self._missing:
            self._found = self.truth.hits(self.ids)
            self._missing = False
        return self._found

    def find(self, lo: int, hi: int) -> np.ndarray:
        """The array of :attr:`found` with the rows [lo, hi) filled in, for a pass over all rows in stretches, so that what
        finding leaves in the cache is used at once. Whoever passes over all of them calls :meth:`all_found`."""
        if self._missing:
            truth = self.truth
            truth_kernel.hits(truth.indptr, truth.indices, self.ids, lo, hi, self._found)
        return self._found

    def all_found(self) -> None:
        """Every row went through :meth:`find`."""
        self._missing = False


def given_pairs(Y, top: TopK | None) -> Iterable[tuple]:
    """What a metric was given: one truth and its predictions, or several."""
    if top is not None:
        return [(Y, top)]
    if hasattr(Y, "shape"):
        raise ArgumentError("top", "must be given with a single Y", None, "or pass an iterable of (Y, top) pairs as Y")
    return Y


def blocks(Y, top: TopK | None, k_max: int | None, n_relevant=None) -> Iterator[Block]:
    """What a metric was given, block by block; with all places that are stored if ``k_max`` is None."""
    first = 0
    for truth, part in given_pairs(Y, top):
        block = Block(truth, part, getattr(part, "k", 0) if k_max is None else k_max, first)
        last = first + block.n_rows
        block.n_relevant = n_relevant
        if n_relevant is not None and top is None:
            block.n_relevant = np.asarray(n_relevant)[first:last]
        first = last
        yield block
