"""What a loaded dataset is: two splits, and what the documents publish about it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Split:
    """One half of a dataset. Rows of ``X`` and ``Y`` are the same points in the same order.

    X: (n, D) CSR float32, or None where a source gives labels only.
    Y: (n, L) CSR float32 of ones, rows sorted by label id, no duplicates, no stored zeros.
    """

    X: csr_matrix | None
    Y: csr_matrix


@dataclass(frozen=True)
class Dataset:
    """A train and a test split with one label space.

    name: the registry key, e.g. ``"eurlex-4k"``.  A, B: the propensity model's parameters for it (jain16, eq. 1).
    published: the rows the documents print about it, by source (``"xcrepo:dataset-table"``, ``"reeval:table2"``, ...).
    """

    name: str
    train: Split
    test: Split
    A: float
    B: float
    published: dict[str, dict] = field(default_factory=dict, repr=False)

    @property
    def label_counts(self) -> np.ndarray:
        """(L,) int64: how many TRAIN points carry each label, the N_l of the propensity model. Zeros are kept."""
        return np.bincount(self.train.Y.indices, minlength=self.train.Y.shape[1]).astype(np.int64)

    @property
    def n_train(self) -> int:
        """N of the propensity model: the number of train points."""
        return self.train.Y.shape[0]
