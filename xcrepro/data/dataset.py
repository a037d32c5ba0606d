"""What a loaded dataset is: two splits, and what the documents publish about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix

if TYPE_CHECKING:
    from xcrepro.data.registry import Entry


@dataclass(frozen=True)
class Split:
    """One half of a dataset. Rows of ``X`` and ``Y`` are the same points in the same order.

    Attributes
    ----------
    X : csr_matrix of float32, (n, D), or None
        None where a source gives labels only.
    Y : csr_matrix of float32, (n, L)
        Ones, rows sorted by label id, no duplicates, no stored zeros.
    """

    X: csr_matrix | None
    Y: csr_matrix


@dataclass(frozen=True)
class Dataset:
    """A train and a test split with one label space.

    Attributes
    ----------
    name : str
        The key in the catalogue, e.g. ``"eurlex-4k"``; a name of its own where it is none of the catalogue's.
    train, test : Split
    A, B : float
        The propensity model's parameters for it (jain16, eq. 1).
    published : dict
        The rows the documents print about it, by source (``"xcrepo:dataset-table"``, ``"reeval:table2"``, ...).
    entry : Entry, optional
        Its entry in the catalogue (of a twin: its original's); None where there is none.
    comparable : bool
        False where these are not the data that the documents print about, so that no printed result stands beside theirs;
        ``notes`` say why. True for a twin, which says that it is one.
    notes : tuple of str
        In what the data differ from what is printed: a split, an average.
    label_names : tuple of str
        The names of the L labels, where the dataset has them.
    label_features : csr_matrix of float32, (L, D), optional
        The words of the labels over the features of the points, where the dataset has them (``lbl_X_Xf.txt``).
    validation : Split, optional
        Points that are neither trained nor tested on, where its ``dataset.toml`` names them: to calibrate on
        (:func:`xcrepro.calibrate.fit_top`), to choose parameters by. No count has them.
    """

    name: str
    train: Split
    test: Split
    A: float
    B: float
    published: dict[str, dict] = field(default_factory=dict, repr=False)
    entry: Entry | None = field(default=None, repr=False)
    comparable: bool = True
    notes: tuple[str, ...] = ()
    label_names: tuple[str, ...] = field(default=(), repr=False)
    validation: Split | None = field(default=None, repr=False)
    label_features: csr_matrix | None = field(default=None, repr=False)

    @property
    def label_counts(self) -> np.ndarray:
        """(L,) int64: how many TRAIN points carry each label, the N_l of the propensity model. Zeros are kept."""
        return np.bincount(self.train.Y.indices, minlength=self.train.Y.shape[1]).astype(np.int64)

    @property
    def n_train(self) -> int:
        """N of the propensity model: the number of train points."""
        return self.train.Y.shape[0]

    @property
    def title(self) -> str:
        """What the documents call it; its name where none does."""
        return self.entry.printed_name if self.entry else self.name

    @property
    def origin(self) -> str:
        """What it is, for the foot of a figure or table: ``"Bibtex (real data), 2,515 test points"``."""
        printed = any(row.keys() > {"printed_name"} for row in self.published.values())
        kind = "real data, not those that are printed" if printed and not self.comparable else "real data"
        return f"{self.title} ({kind}), {self.test.Y.shape[0]:,} test points"
