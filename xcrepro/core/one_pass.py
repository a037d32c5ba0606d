"""Labels for rows that come one after the other, so that a metric of all of them becomes large: the one pass of OMMA."""

from __future__ import annotations

import numpy as np

from xcrepro.core.arguments import whole_number
from xcrepro.core.decide import _Candidates, _mix
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import decide as kernel
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth


class OnePass:
    """Choose k labels for each row as it comes, once, for a metric of all rows (OMMA: Kotłowski and others, ICML 2024).

    :func:`xcrepro.decide.maximise` lets each row decide anew until no row gains, and needs all rows at once. Here a row takes
    the k labels that add most to the plug-in value of the metric, given what the rows before it took, and is never asked again.
    What is kept are three numbers for each label, so rows may stream. By the paper the regret falls as ln n / n.

    Parameters
    ----------
    n_labels : int
    k : int
    metric : str
        As for :func:`xcrepro.decide.maximise`.

    Attributes
    ----------
    hits, chosen, positives : ndarray of float64, shape (L,)
        Of each label: the sum of its probabilities over the rows that took it, the number of these rows, and the sum over all
        rows. Where rows are updated with their truth, what was observed stands in place of probabilities.
    n_rows : int

    Examples
    --------
    >>> eta = np.array([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2], [0.7, 0.1, 0.6]])
    >>> one = OnePass(3, 1, "macro-F1")
    >>> one.choose(eta[:2]).ids.ravel().tolist(), one.choose(eta[2:]).ids.ravel().tolist()
    ([0, 2], [2])
    """

    def __init__(self, n_labels: int, k: int, metric: str) -> None:
        self.n_labels = whole_number("n_labels", n_labels, 1)
        self.k, self._weights = whole_number("k", k, 1), _mix(metric)
        self.hits, self.chosen, self.positives, self.missed = np.zeros((4, self.n_labels))
        self.missed += 1.0
        self.n_rows = 0

    def choose(self, probabilities, Y=None) -> TopK:
        """The labels of some more rows.

        Parameters
        ----------
        probabilities : sparse matrix or array_like, shape (n, L)
            Of the labels that may be chosen.
        Y : sparse matrix or array_like, shape (n, L), optional
            The rows' truth, if it is told after each choice (the paper's first setting); else their probabilities stand for it.

        Returns
        -------
        TopK
            Scores are what each label added to the metric. Rows with fewer than k candidates have fewer.

        Raises
        ------
        ArgumentError
            For another number of labels, of rows of ``Y``, and what :func:`xcrepro.decide.maximise` refuses.
        """
        given = _Candidates.of(probabilities)
        if given.n_labels != self.n_labels:
            raise ArgumentError("probabilities", f"must have {self.n_labels} labels", given.n_labels)
        truth = None if Y is None else as_truth(Y)
        if truth is not None and (truth.n_rows, truth.n_labels) != (given.n_rows, given.n_labels):
            raise ArgumentError("Y", "must have the rows and labels of probabilities", (truth.n_rows, truth.n_labels))
        rows = []
        for row in range(given.n_rows):
            at = slice(given.indptr[row], given.indptr[row + 1])
            labels, p = given.indices[at], given.data[at].astype(np.float64)
            own = None if truth is None else truth.indices[truth.indptr[row] : truth.indptr[row + 1]]
            rows.append(self._row(labels, p, own))
        ids, scores = np.full((len(rows), self.k), -1, np.int32), np.full((len(rows), self.k), -np.inf, np.float32)
        for row, (labels, gains) in enumerate(rows):
            ids[row, : labels.size], scores[row, : labels.size] = labels, gains
        return TopK(ids, scores, self.n_labels)

    def _row(self, labels: np.ndarray, p: np.ndarray, own: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The k labels of largest gain, ties to the lowest id; what is kept counts them."""
        self.n_rows += 1
        expected = p if own is None else np.isin(labels, own).astype(np.float64)
        before = self.positives[labels]
        t, n, m = self.hits[labels], self.chosen[labels], before + p
        # What one row more adds to each part of the mix, as its slope in p and what it adds whatever p is.
        parts = {
            kernel.PRECISION: p * self.n_labels / (self.n_rows * self.k),
            kernel.MACRO_PRECISION: (t + p) / (n + 1) - t / np.maximum(n, 1),
            kernel.MACRO_RECALL: p / np.maximum(m, 1e-12),
            kernel.MACRO_F1: 2 * (t + p) / (n + 1 + m) - 2 * t / np.maximum(n + m, 1e-12),
            kernel.COVERAGE: p * self.missed[labels],
        }
        gain = sum(self._weights[part] * value for part, value in parts.items()) / self.n_labels
        best = np.lexsort((labels, -gain))[: self.k]
        if own is None:
            self.positives[labels] = m
        else:
            self.positives[own] += 1.0
        self.hits[labels[best]] += expected[best]
        self.chosen[labels[best]] += 1.0
        self.missed[labels[best]] *= 1.0 - expected[best]
        return labels[best], gain[best]
