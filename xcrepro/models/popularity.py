"""The baseline that looks at no feature: the labels most frequent in training, the same for every point."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from xcrepro.models.base import Model
from xcrepro.predictions import TopK
from xcrepro.truth import Truth


class Popularity(Model):
    """Scores every label by its share of the training points, in [0, 1]; ties to the lowest label id.

    A label that training never saw scores 0 and comes last, so that a row has min(k, L) predictions. Every metric that
    rewards the head rewards this model; what a classifier adds to it is what it has learned.

    >>> import numpy as np
    >>> X, Y = np.ones((4, 1)), np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1], [1, 0, 0]])
    >>> top = Popularity().fit(X, Y).predict(X[:1], k=3)
    >>> top.ids.tolist(), top.scores.tolist()
    ([[2, 0, 1]], [[0.75, 0.5, 0.0]])
    """

    label_counts_: np.ndarray
    n_train_: int

    def __init__(self) -> None:
        pass

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self.label_counts_, self.n_train_ = truth.label_counts(), truth.n_rows

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        # Whole counts are ranked: as float32 shares, two of them could fall together.
        best = np.argsort(-self.label_counts_, kind="stable")[:k]
        ids = np.full((X.shape[0], k), -1, np.int32)
        scores = np.full(ids.shape, -np.inf, np.float32)
        ids[:, : best.size], scores[:, : best.size] = best, self.label_counts_[best] / self.n_train_
        return TopK(ids, scores, self.label_counts_.size)

    def predict_proba(self, X, k: int = 100) -> sparse.csr_matrix:
        """(n, L) CSR float32: for each row of X the k most frequent labels with their shares, zeros stored."""
        return self.predict(X, k).to_csr()

    def _state(self) -> dict[str, np.ndarray]:
        return {"label_counts": self.label_counts_, "n_train": np.int64(self.n_train_)}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.label_counts_, self.n_train_ = arrays["label_counts"], int(arrays["n_train"])
