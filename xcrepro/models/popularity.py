"""The baseline that looks at no feature: the labels most frequent in training, the same for every point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from xcrepro.core.predictions import TopK, empty_places
from xcrepro.core.truth import Truth
from xcrepro.models.base import Model, check_array


@dataclass(eq=False)
class Popularity(Model):
    """Scores every label by its share of the training points, in [0, 1]; ties to the lowest label id.

    A label that training never saw scores 0 and comes last, so that a row has min(k, L) predictions. Every metric that
    rewards the head rewards this model; what a classifier adds to it is what it has learned.

    Attributes
    ----------
    label_counts_ : ndarray of int64, shape (L,)
    n_train_ : int

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.ones((4, 1)), np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1], [1, 0, 0]])
    >>> top = Popularity().fit(X, Y).predict(X[:1], k=3)
    >>> top.ids.tolist(), top.scores.tolist()
    ([[2, 0, 1]], [[0.75, 0.5, 0.0]])
    """

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self.label_counts_, self.n_train_ = truth.label_counts(), np.asarray(truth.n_rows, np.int64)

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        # Whole counts are ranked: as float32 shares, two of them could fall together.
        best = np.argsort(-self.label_counts_, kind="stable")[:k]
        ids, scores = empty_places(X.shape[0], k)
        ids[:, : best.size], scores[:, : best.size] = best, self.label_counts_[best] / self.n_train_
        return TopK(ids, scores, self.label_counts_.size)

    _arrays: ClassVar = ("label_counts", "n_train")

    def _check_read(self) -> None:
        counts = self.label_counts_
        check_array("counts of labels", counts, "iu", self.n_labels_)
        check_array("a number of train points", self.n_train_, "iu")
        if self.n_train_ < 1 or (counts < 0).any() or (counts > self.n_train_).any():
            raise ValueError(f"its counts of labels are none of {self.n_train_} points")
        self.label_counts_ = counts.astype(np.int64)  # with a sign: they are sorted by their negatives
