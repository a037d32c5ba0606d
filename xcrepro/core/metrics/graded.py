"""nDCG of graded relevance: the values that the truth stores are grades."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, threads
from xcrepro.core.accumulators.block import Block, given_pairs
from xcrepro.core.accumulators.sums import ExactSums
from xcrepro.core.arguments import check_rows, cut_offs, one_of
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import sets
from xcrepro.core.matrices import checked_matrix
from xcrepro.core.tensors import labels_as_matrix
from xcrepro.core.truth import Truth, as_truth

_LARGEST = 1000  # 2^1000 is far from the largest float64, so that sums of many stay finite


def ndcg(Y, top, ks, gains: str) -> np.ndarray:
    """See :func:`xcrepro.core.metrics.ranking.ndcg`."""
    one_of("gains", gains, ("linear", "exponential"))
    rising, places = np.unique(cut_offs(ks), return_inverse=True)
    sums, rows = ExactSums((rising.size,)), 0
    for truth, part in given_pairs(Y, top):
        grades = _grades(truth, getattr(part, "n_labels", None))
        block = Block(grades, part, int(rising[-1]))
        worth = _powers(grades.data) if gains == "exponential" else grades.data
        given = grades.indptr, grades.indices, worth, block.ids, rising

        def add(lo: int, hi: int, given=given) -> ExactSums:
            own, out = ExactSums((rising.size,)), np.empty((hi - lo, rising.size))
            sets.graded(*given, lo, hi, out)
            own.add_rows(out)
            return own

        for own in threads.over_rows(block.n_rows, add, min_rows=2**14):
            sums.merge(own)
        rows += block.n_rows
    check_rows(rows)
    return (sums.rounded() / rows)[places]


def _grades(Y, n_labels: int | None) -> sparse.csr_matrix:
    """The truth with its values as float64: rising labels, each once, nothing but positive grades."""
    given = Y.to_csr() if isinstance(Y, Truth) else checked_matrix("Y", labels_as_matrix("Y", Y, n_labels))
    labels = as_truth(given).indices.size
    grades = sparse.csr_matrix(given, dtype=np.float64, copy=True)
    grades.eliminate_zeros()
    grades.sort_indices()
    if grades.nnz != labels:
        raise ArgumentError(
            "Y", "must store a label once in a row with gains", "a label twice", "which grade is meant?"
        )
    if not (grades.data <= np.finfo(np.float32).max).all():
        raise ArgumentError("Y", "must hold grades that float32 can hold", grades.data.max())
    return grades


def _powers(grades: np.ndarray) -> np.ndarray:
    """2^g - 1, exactly for whole grades."""
    if grades.max(initial=0) > _LARGEST:
        raise ArgumentError("Y", f"must hold grades up to {_LARGEST} with gains='exponential'", grades.max())
    whole = np.floor(grades)
    powers = np.ldexp(1.0, whole.astype(np.int64))
    rest = grades != whole
    powers[rest] = arithmetic.exp(grades[rest] * arithmetic.log(2.0))
    return powers - 1.0
