"""Ground truth in the one form that metrics read: sorted label ids, each once, every one relevant.

What a caller may hand in, and what it means here:

- a SciPy sparse matrix or array of any format, or a dense 2-D array; rows are points, columns are labels;
- **a label is relevant where its value is positive**; a stored zero is not relevant, whatever its value a relevant
  label counts once (pyxclib scores a truth of 3.0 as P@1 = 3.0, napkinXC takes a stored zero for relevant);
- an entry stored twice counts once; unsorted rows are fine;
- a negative or NaN value is refused: it is neither relevant nor irrelevant.

The caller's matrix is never changed; a clean one is used as it is, without a copy.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from xcrepro.core import threads
from xcrepro.core.errors import ArgumentError, DataWarning
from xcrepro.core.kernels import truth as kernel
from xcrepro.core.matrices import Names, checked_matrix, names_of, row_of

_LOOKED_AT = 256  # values that tell whether a truth is one
_ROWS_A_THREAD = 2**17  # a few nanoseconds a row: below twice as many a second thread costs more than it gains


@dataclass(frozen=True, eq=False)
class Truth:
    """Canonical ground truth: ``indices[indptr[i]:indptr[i + 1]]`` are row i's relevant labels, rising.

    Attributes
    ----------
    indptr : ndarray of int, shape (n + 1,)
    indices : ndarray of int, shape (number of relevant pairs,)
    n_labels : int
        L.
    names : optional
        What a DataFrame called its columns and rows.
    """

    indptr: np.ndarray
    indices: np.ndarray
    n_labels: int
    names: Names | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        return self.indptr.size - 1

    @cached_property
    def sizes(self) -> np.ndarray:
        """(n,) int64: how many labels each row has, |y| in the formulas."""
        return np.diff(self.indptr).astype(np.int64)

    def label_counts(self) -> np.ndarray:
        """(L,) int64: how many rows each label is relevant to."""
        return np.bincount(self.indices, minlength=self.n_labels).astype(np.int64)

    def hits(self, ids: np.ndarray) -> np.ndarray:
        """Which predictions are relevant labels?

        Parameters
        ----------
        ids : ndarray of int32, shape (n, k)
            Absent places (-1) are misses.

        Returns
        -------
        ndarray of bool, shape (n, k)
        """
        found = np.zeros(ids.shape, np.bool_)
        given, rows = (self.indptr, self.indices, ids), _ROWS_A_THREAD // max(1, ids.shape[1])
        threads.over_rows(len(ids), lambda lo, hi: kernel.hits(*given, lo, hi, found), min_rows=max(1, rows))
        return found

    def weight_sums(self, weights: np.ndarray) -> np.ndarray:
        """The sum of each row's label weights.

        Parameters
        ----------
        weights : ndarray of float64, shape (L,)

        Returns
        -------
        ndarray of float64, shape (n,)
            0 for a row without labels.
        """
        sums = np.zeros(self.n_rows)
        threads.over_rows(
            self.n_rows, lambda lo, hi: kernel.weight_sums(self.indptr, self.indices, weights, lo, hi, sums)
        )
        return sums

    def to_csr(self) -> sparse.csr_matrix:
        """The truth as a float32 CSR matrix of ones."""
        ones = np.ones(self.indices.size, np.float32)
        return sparse.csr_matrix((ones, self.indices, self.indptr), shape=(self.n_rows, self.n_labels), copy=True)


def warn_of_fractions(whose: object, values: np.ndarray) -> None:
    """A DataWarning for values of a truth that are none: most are fractions, by a look at the first."""
    some = values[:_LOOKED_AT]
    if some.size and np.mean(some != np.round(some)) > 0.5:
        said = (
            f"{whose} holds fractions, such as {some[0]:.6g}, as scores do, and each above 0 counts as a relevant label"
        )
        warnings.warn(f"{said}: are truth and predictions exchanged?", DataWarning, stacklevel=4)


def as_truth(Y, name: str = "Y") -> Truth:
    """Check and, where needed, tidy a copy of ``Y`` (see the module).

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L), or Truth
        A Truth is returned as it is.
    name : str
        What errors call it.

    Returns
    -------
    Truth

    Raises
    ------
    ArgumentError
        For a negative or NaN value, another shape or dtype, a damaged matrix.

    Warns
    -----
    DataWarning
        Where most values are fractions, as scores are.
    """
    if isinstance(Y, Truth):
        return Y
    names = names_of(name, Y)
    Y = checked_matrix(name, Y, do="build a scipy.sparse.csr_matrix from your label lists")
    if not sparse.issparse(Y):
        if Y.dtype.kind == "f" and np.isnan(Y).any():
            row, label = np.argwhere(np.isnan(Y))[0]
            raise ArgumentError(name, "must not hold NaN", f"NaN at row {row}, label {label}")
        Y = sparse.csr_matrix(Y)
    # One compiled kernel each for float32 and float64 serves every dtype; bool and small ints are exact in float32.
    data = Y.data if Y.data.dtype in (np.float32, np.float64) else Y.data.astype(np.float32)
    n_rows, n_labels = Y.shape
    found = threads.over_rows(
        n_rows, lambda lo, hi: kernel.inspect(Y.indptr, Y.indices, data, lo, hi), min_rows=_ROWS_A_THREAD
    )
    for state, place in found:
        if state > kernel.UNTIDY:
            rule = "must hold positive values for relevant labels, and nothing or 0 for the others"
            got = f"{Y.data[place]} at row {row_of(Y.indptr, place)}, label {Y.indices[place]}"
            raise ArgumentError(name, rule, got, "mend that entry; no row was used")
    warn_of_fractions(name, data)
    if all(state == kernel.CLEAN for state, _ in found):
        return Truth(Y.indptr, Y.indices, n_labels, names)
    clean = sparse.csr_matrix((data > 0, Y.indices, Y.indptr), shape=Y.shape, copy=True)
    clean.eliminate_zeros()
    clean.sum_duplicates()
    return Truth(clean.indptr, clean.indices, n_labels, names)
