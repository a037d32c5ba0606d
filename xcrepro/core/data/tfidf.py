"""Term weights, tf-idf as scikit-learn's ``TfidfTransformer`` has it, with the same bits on every machine."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic


def rarity(counts: sparse.csr_matrix) -> np.ndarray:
    """Smoothed inverse document frequency (D,) of each term: 1 + log((1 + n) / (1 + how many points have the term))."""
    return 1.0 + arithmetic.log((1 + counts.shape[0]) / (1 + np.bincount(counts.indices, minlength=counts.shape[1])))


def weighed(counts: sparse.csr_matrix, rarity: np.ndarray, sublinear: bool = True) -> sparse.csr_matrix:
    """tf-idf: the counts, or 1 + their logs, times the rarity of their terms, in rows of unit length; an empty row
    stays empty."""
    counts.sort_indices()
    value = (1.0 + arithmetic.log(counts.data) if sublinear else counts.data) * rarity[counts.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    length = np.sqrt(np.bincount(row, value * value, counts.shape[0]))
    return sparse.csr_matrix(((value / length[row]).astype(np.float32), counts.indices, counts.indptr), counts.shape)
