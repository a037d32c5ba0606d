"""Methods that look at a point's nearest training points: kNN, SLEEC, and LPSR's partitions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic
from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth
from xcrepro.models.base import Model, by_stretches, check_array, unit_rows
from xcrepro.models.classic.algebra import clusters, leading, ridge
from xcrepro.models.linear import OneVsRest
from xcrepro.models.progress import Progress

_ROWS = 256  # points that are compared with all training points at a time


class _OfNeighbours(Model):
    """Keeps the training points' labels, and scores a label by its share of a point's neighbours."""

    _probable = False

    def _counted(self, near: TopK, k: int) -> TopK:
        """The labels of the neighbours of each row, by the sum of their scores."""
        return TopK.from_scores(near.to_csr().astype(np.float64) @ self.labels_, k)


@dataclass(eq=False)
class KNN(_OfNeighbours):
    """The labels of the nearest training points, by cosine: a label's score is the sum of its neighbours' cosines.

    A point that has no feature in common with any gets the most frequent labels.

    Parameters
    ----------
    neighbours : int
        Training points that are asked; all where there are fewer. The repository's page does not say how many its row has; of
        10, 20 and 30 the best in P@1 (held).

    Examples
    --------
    >>> X, Y = np.eye(3), np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0]])
    >>> KNN(neighbours=1).fit(X, Y).predict(X, k=2).ids.tolist()
    [[0, 2], [1, -1], [0, -1]]
    """

    neighbours: int = 20

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        whole_number("neighbours", self.neighbours, 1)
        self.points_, self.labels_ = unit_rows(X), truth.to_csr().astype(np.float64)

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        X, by_feature = unit_rows(X), self.points_.T.tocsr()
        size = min(self.neighbours, self.points_.shape[0])

        def some(stretch: slice) -> TopK:
            return self._counted(TopK.from_scores(X[stretch] @ by_feature, size), k)

        top = by_stretches(some, X.shape[0], k, self.n_labels_, _ROWS)
        if (alone := top.ids[:, 0] < 0).any():
            # All points are as far, so all are asked.
            share = sparse.csr_matrix(self.labels_.sum(axis=0) / self.labels_.shape[0])
            every = TopK.from_scores(share, k)
            ids, scores = (
                np.where(alone[:, None], b, a) for a, b in ((top.ids, every.ids), (top.scores, every.scores))
            )
            top = TopK(ids, scores, self.n_labels_)
        return top

    _arrays: ClassVar = ("points", "labels")

    def _check_read(self) -> None:
        rows = self.points_.shape[0]
        if self.points_.shape[1] != self.n_features_ or self.labels_.shape != (rows, self.n_labels_):
            raise ValueError(f"training points of shape {self.points_.shape} and {self.labels_.shape}")


@dataclass(eq=False)
class SLEEC(_OfNeighbours):
    """Sparse local embeddings (Bhatia et al., 2015): points with the same labels are brought together, and asked as neighbours.

    Training points are put into clusters by k-means. In each, vectors z of ``dim`` places are found whose products are those of
    the label vectors (rows of length 1) for the ``near`` points that share most labels with a point, by projected gradient
    descent onto matrices of that rank (singular value projection). A linear map from features to z is fitted with a penalty on
    its squares and on the sizes of the z it gives (ADMM). A new point goes to its nearest cluster, and the labels of its
    ``neighbours`` nearest there are counted. Several such learners, which differ in their clusters, vote.

    Parameters
    ----------
    dim : int
        Of the embedding.
    near : int
        Points whose products are kept, for each point.
    neighbours : int
        Training points that are asked; 25, as in that file (``NNtest``), and better than 15 (held).
    learners : int
        That vote; a parameter file of the authors' program has 5.
    cluster_size : int
        Points of a cluster, about.
    penalty, sparsity : float
        Of the map's squares, and of the sizes of what it gives; on Bibtex larger ones of the second cost 2.5 points of P@1
        (held).
    rounds : int
        Of singular value projection.
    seed : int
        Of the clusters and the starts.

    Examples
    --------
    >>> X, Y = np.eye(3), np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> SLEEC(dim=2, neighbours=1, learners=1, penalty=0.01).fit(X, Y).predict(X, k=2).ids.tolist()
    [[0, 2], [1, -1], [0, 2]]
    """

    dim: int = 100
    near: int = 100
    neighbours: int = 25
    learners: int = 3
    cluster_size: int = 6000
    penalty: float = 1.0
    sparsity: float = 0.01
    rounds: int = 20
    seed: int = 0

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        for name in ("dim", "near", "neighbours", "learners", "cluster_size", "rounds"):
            whole_number(name, getattr(self, name), 1)
        whole_number("seed", self.seed, 0)
        real_number("penalty", self.penalty, above=0)
        real_number("sparsity", self.sparsity, at_least=0)
        X, Y = unit_rows(X), truth.to_csr().astype(np.float64)
        count = max(1, X.shape[0] // self.cluster_size)
        progress = Progress(self.learners * count * (self.rounds + 5), "SLEEC")
        self.labels_, centres, maps, embedded = Y, [], [], []
        self.clusters_ = np.empty((self.learners, X.shape[0]), np.int32)
        for learner in range(self.learners):
            # Both numbers are hashed: by their sum, learner 1 of seed 0 would be learner 0 of seed 1. (In this order, because a
            # 0 at the end changes no hash of NumPy's, so that seed 0 draws what it drew when they were added.)
            centres.append(clusters(X, count, [learner, self.seed]))
            self.clusters_[learner] = np.argmax(X @ centres[-1].T, axis=1)
            own, placed = np.zeros((count, X.shape[1], self.dim)), np.zeros((X.shape[0], self.dim))
            for cluster in range(count):
                rows = np.flatnonzero(self.clusters_[learner] == cluster)
                if rows.size:
                    settings = self.dim, self.near, self.rounds
                    wanted = embedding(Y[rows], *settings, learner, progress, stream=self.seed)
                    own[cluster] = sparse_map(X[rows], wanted, self.penalty, self.sparsity, progress)
                    placed[rows] = X[rows] @ own[cluster]
            maps.append(own)
            embedded.append(placed)
        self.centres_, self.maps_ = np.stack(centres).astype(np.float32), np.stack(maps).astype(np.float32)
        self.embedded_ = np.stack(embedded).astype(np.float32)

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        X = unit_rows(X)
        total = sparse.csr_matrix((X.shape[0], self.n_labels_))
        for learner in range(len(self.centres_)):
            total = total + self._votes(learner, X)
        return TopK.from_scores(total, k)

    def _votes(self, learner: int, X: sparse.csr_matrix) -> sparse.csr_matrix:
        """What one learner says: each neighbour adds 1 to its labels, divided by how many are asked."""
        cluster = np.argmax(X @ self.centres_[learner].astype(np.float64).T, axis=1)
        ids = np.full((X.shape[0], self.neighbours), -1, np.int32)
        for own in np.unique(cluster):
            rows, members = np.flatnonzero(cluster == own), np.flatnonzero(self.clusters_[learner] == own)
            if not members.size:
                continue
            placed = self.embedded_[learner][members].astype(np.float64)
            points = X[rows] @ self.maps_[learner, own].astype(np.float64)
            squares, size = (placed * placed).sum(axis=1) / 2, min(self.neighbours, members.size)

            for lo in range(0, rows.size, _ROWS):
                at = slice(lo, lo + _ROWS)
                # The nearest have the largest product less half of the square.
                top = TopK.from_scores(arithmetic.product(points[at], placed.T) - squares, size)
                ids[rows[at], :size] = members[top.ids]
        asked = ids >= 0
        starts = np.concatenate([[0], np.cumsum(asked.sum(axis=1))])
        near = sparse.csr_matrix((np.ones(asked.sum()), ids[asked], starts), (X.shape[0], self.labels_.shape[0]))
        return (near @ self.labels_) / self.neighbours

    _arrays: ClassVar = ("labels", "clusters", "centres", "maps", "embedded")

    def _check_read(self) -> None:
        rows, count = self.labels_.shape[0], self.centres_.shape[1] if self.centres_.ndim == 3 else -1
        check_array("centres", self.centres_, "f", -1, -1, self.n_features_)
        learners = len(self.centres_)
        check_array("maps", self.maps_, "f", learners, count, self.n_features_, self.dim)
        check_array("embedded", self.embedded_, "f", learners, rows, self.dim)
        check_array("clusters", self.clusters_, "iu", learners, rows)
        if self.labels_.shape[1] != self.n_labels_ or not ((self.clusters_ >= 0) & (self.clusters_ < count)).all():
            raise ValueError("labels or clusters of another training")


def embedding(
    Y: sparse.csr_matrix,
    dim: int,
    near: int,
    rounds: int,
    seed: int,
    progress: Progress | None = None,
    stream: int = 0,
) -> np.ndarray:
    """Z, (n, dim): its rows' products are near those of Y's rows of length 1, wherever two rows share most labels.

    Singular value projection: a step against the error on those pairs, then the nearest matrix of that rank without negative
    eigenvalues; the step's size is that of the paper, one over the share of pairs that are kept, halved while the error grows.
    """
    unit, n = unit_rows(Y), Y.shape[0]
    close = TopK.from_scores(unit @ unit.T.tocsr(), min(near, n))
    kept = close.ids >= 0
    rows = np.repeat(np.arange(n), kept.sum(axis=1))
    pairs = sparse.csr_matrix((np.ones(rows.size), (rows, close.ids[kept])), (n, n))
    pairs = pairs.maximum(pairs.T).tocsr()
    pairs.sort_indices()
    i, j = np.repeat(np.arange(n), np.diff(pairs.indptr)), pairs.indices
    wanted = np.asarray(unit[i].multiply(unit[j]).sum(axis=1)).ravel()
    Z, error, step = np.zeros((n, min(dim, n))), np.inf, min(1.0, rows.size / i.size) * n / max(near, 1) / 10
    start = None
    for _ in range(rounds):
        missing = wanted - (Z[i] * Z[j]).sum(axis=1)
        now = (missing * missing).sum()
        if now > error:
            step /= 2
        error = now
        gradient = sparse.csr_matrix((step * missing, j, pairs.indptr), (n, n))

        def stepped(V: np.ndarray, Z=Z, gradient=gradient) -> np.ndarray:
            return arithmetic.product(Z, arithmetic.product(Z.T, V)) + gradient @ V

        values, vectors = leading(stepped, n, Z.shape[1], seed, 1, start, stream)
        start = vectors
        Z = vectors * np.sqrt(np.maximum(values, 0))
        if progress is not None:
            progress.add(1)
    return np.hstack([Z, np.zeros((n, dim - Z.shape[1]))])


def sparse_map(
    X: sparse.csr_matrix,
    Z: np.ndarray,
    penalty: float,
    sparsity: float,
    progress: Progress | None = None,
    rounds: int = 5,
) -> np.ndarray:
    """The V of least ‖Z - X V‖² + penalty ‖V‖² + sparsity · (sum of |X V|), by ADMM with step 1."""
    V = ridge(X, Z, penalty)
    kept, price = X @ V, np.zeros_like(Z)
    for _ in range(rounds if sparsity else 0):
        # ‖Z - XV‖² + ‖XV - kept + price‖² = 2 ‖XV - their mean‖² + what does not depend on V.
        V = ridge(X, (Z + kept - price) / 2, penalty / 2)
        fitted = X @ V
        sized = fitted + price
        kept = np.sign(sized) * np.maximum(np.abs(sized) - sparsity / 2, 0)
        price += fitted - kept
        if progress is not None:
            progress.add(1)
    return V


@dataclass(eq=False)
class LPSR(Model):
    """Label partitioning for sublinear ranking (Weston, Makadia and Yee, 2013) over one-vs-rest classifiers.

    k-means cuts the points into partitions, in which a training point counts by how well the classifiers rank its labels. Each
    partition keeps the ``labels`` that are right most often among the first ``depth`` of its points. A new point's labels are
    those of its nearest partitions, in the order of the classifiers.

    Parameters
    ----------
    partitions : int
        Of k-means; at most one for each training point.
    searched : int
        Partitions whose labels a new point may get.
    labels : int
        That a partition keeps.
    depth : int
        Places of the ranking that count.
    seed : int
        Of k-means and of the classifiers.

    Notes
    -----
    The paper puts it on top of any ranker, and the tables do not all say which; their rows are near one-vs-rest's. Left out:
    the relaxed optimisation of which labels a partition keeps; the paper's counting is used. Scores are probabilities.

    Examples
    --------
    >>> X, Y = np.eye(3), np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> LPSR(partitions=1).fit(X, Y).predict(X, k=1).ids.ravel().tolist()
    [0, 1, 2]
    """

    partitions: int = 30
    searched: int = 3
    labels: int = 100
    depth: int = 10
    seed: int = 0

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        for name in ("partitions", "searched", "labels", "depth"):
            whole_number(name, getattr(self, name), 1)
        self.ranker_ = OneVsRest(seed=self.seed).fit(X, truth)
        unit, Y = unit_rows(X), truth.to_csr().astype(np.float64)
        ranked = self.ranker_.predict(X, min(self.depth, truth.n_labels))
        right = _hits(ranked, truth)
        weights = 1.0 + (right / np.arange(1, right.shape[1] + 1)).sum(axis=1)
        count = min(self.partitions, X.shape[0])
        self.centres_ = clusters(unit, count, self.seed, weights=weights)
        where = np.argmax(unit @ self.centres_.T, axis=1)
        self.kept_ = np.zeros((count, truth.n_labels), bool)
        for partition in range(count):
            inside = where == partition
            votes = np.bincount(ranked.ids[inside][right[inside]], minlength=truth.n_labels)
            # What was never ranked right comes after, by how often the partition's points have it.
            own = np.asarray(Y[inside].sum(axis=0)).ravel()
            order = np.lexsort((np.arange(truth.n_labels), -own, -votes))[: self.labels]
            self.kept_[partition, order[own[order] > 0]] = True

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        near = TopK.from_scores(unit_rows(X) @ self.centres_.T, min(self.searched, len(self.centres_))).ids

        def some(stretch: slice) -> TopK:
            whole = self.ranker_.predict(X[stretch], self.n_labels_)
            kept = self.kept_[near[stretch]].any(axis=1)
            return _chosen(whole, np.take_along_axis(kept, np.maximum(whole.ids, 0), 1) & (whole.ids >= 0), k)

        return by_stretches(some, X.shape[0], k, self.n_labels_, _ROWS)

    def _write(self, folder: Path) -> None:
        super()._write(folder)
        self.ranker_.save(folder / "ranker")

    def _read(self, folder: Path) -> None:
        super()._read(folder)
        self.ranker_ = OneVsRest.load(folder / "ranker")

    _arrays: ClassVar = ("centres", "kept")

    def _check_read(self) -> None:
        check_array("centres", self.centres_, "f", -1, self.n_features_)
        if self.kept_.shape != (len(self.centres_), self.n_labels_) or self.kept_.dtype != bool:
            raise ValueError("kept labels of another training")
        if (self.ranker_.n_features_, self.ranker_.n_labels_) != (self.n_features_, self.n_labels_):
            raise ValueError("classifiers of another training")


def _chosen(whole: TopK, open_: np.ndarray, k: int) -> TopK:
    """The first k of each row that are open, in their order."""
    order = np.argsort(~open_, axis=1, kind="stable")[:, :k]
    rest = ~np.take_along_axis(open_, order, 1)
    ids, scores = (np.take_along_axis(part, order, 1) for part in (whole.ids, whole.scores))
    ids[rest], scores[rest] = -1, -np.inf
    if (short := k - ids.shape[1]) > 0:
        ids, scores = (
            np.pad(ids, ((0, 0), (0, short)), constant_values=-1),
            np.pad(scores, ((0, 0), (0, short)), constant_values=-np.inf),
        )
    return TopK(ids, scores, whole.n_labels)


def _hits(top: TopK, truth: Truth) -> np.ndarray:
    """Which predictions are right, (n, k)."""
    rows = np.repeat(np.arange(truth.n_rows), np.diff(truth.indptr))
    pairs = np.sort(rows * np.int64(truth.n_labels) + truth.indices)
    asked = np.arange(len(top))[:, None] * np.int64(truth.n_labels) + top.ids
    at = np.searchsorted(pairs, asked)
    return (top.ids >= 0) & (at < pairs.size) & (pairs[np.minimum(at, pairs.size - 1)] == asked)
