"""Methods that map points and labels into one small space: CPLST, ML-CSSP, LEML, WSABIE; and compressed sensing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, threads
from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth
from xcrepro.models.base import Model, check_array, check_ids, check_weights, drawn_weights, rank_by_products
from xcrepro.models.classic.algebra import eigen, leading, ridge, solve, with_constant
from xcrepro.models.kernels import warp
from xcrepro.models.progress import Progress


class _Embedding(Model):
    """Scores are products of an embedded point with a label's vector, and the label's bias: minus infinity if never seen."""

    _arrays: ClassVar = ("points", "labels", "bias")

    def _keep(self, points: np.ndarray, labels: np.ndarray, bias: np.ndarray, truth: Truth) -> None:
        self.points_, self.labels_ = points.astype(np.float32), labels.astype(np.float32)
        self.bias_ = np.where(truth.label_counts() > 0, bias, -np.inf).astype(np.float32)

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        X = with_constant(X).astype(np.float32)
        return rank_by_products(lambda at: X[at] @ self.points_, X.shape[0], self.labels_, self.bias_, k)

    def _check_read(self) -> None:
        check_weights("points", self.points_, self.n_features_ + 1, -1)
        check_weights("labels", self.labels_, self.n_labels_, self.points_.shape[1])
        check_array("bias", self.bias_, "f", self.n_labels_, also=(-np.inf,))

    _probable = False

    def _size(self, name: str, truth: Truth) -> int:
        """A parameter that counts dimensions, at most the labels that training has seen."""
        return min(whole_number(name, getattr(self, name), 1), int((truth.label_counts() > 0).sum()))

    def _check_parameters(self) -> None:
        real_number("penalty", self.penalty, above=0)
        whole_number("seed", self.seed, 0)


@dataclass(eq=False)
class CPLST(_Embedding):
    """Conditional principal label space transformation (Chen and Lin, 2012): the label combinations that features can tell.

    With Z the labels less their means and H the projection onto what ridge regression on the features can fit, the
    ``components`` leading eigenvectors of Zᵀ H Z are the directions kept. Each is regressed on the features, and turned back
    into labels by its transpose.

    Parameters
    ----------
    components : int
        Directions kept; all labels' where there are fewer. The paper tries up to all; with more than 100, Bibtex gains nothing
        (held).
    penalty : float
        Of the ridge regression on rows of length 1 with an intercept; of 0.3, 1 and 3 the best (held).
    seed : int
        Of the start of the eigenvectors' iteration.

    Notes
    -----
    Left out: the paper's rounding of scores to label sets, because labels are ranked.

    Examples
    --------
    >>> X, Y = np.eye(3), np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> CPLST(penalty=0.01).fit(X, Y).predict(X, k=2).ids.tolist()
    [[0, 2], [1, 0], [0, 2]]
    """

    components: int = 100
    penalty: float = 1.0
    seed: int = 0

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        rank, X, Y = self._size("components", truth), with_constant(X), truth.to_csr().astype(np.float64)
        means = np.asarray(Y.sum(axis=0)).ravel() / Y.shape[0]
        steps, turned = 6, Y.T.tocsr()
        progress = Progress((steps + 2) * (rank + 10), "CPLST")

        def centred(V: np.ndarray) -> np.ndarray:
            return Y @ V - arithmetic.product(means[None, :], V)

        def apply(V: np.ndarray) -> np.ndarray:
            fitted = X @ ridge(X, centred(V), self.penalty, progress=progress)
            return turned @ fitted - means[:, None] * fitted.sum(axis=0)

        _, directions = leading(apply, Y.shape[1], rank, self.seed, steps)
        self._keep(ridge(X, centred(directions), self.penalty, progress=progress), directions, means, truth)


@dataclass(eq=False)
class MLCSSP(_Embedding):
    """Multi-label classification by column subset selection (Bi and Kwok, 2013): a sample of labels speaks for all.

    Labels are drawn by their leverage in the leading right singular vectors of the label matrix until ``columns`` different
    ones are chosen. These are regressed on the features; the others are the least-squares combinations of them.

    Parameters
    ----------
    columns : int
        Labels chosen; all where there are fewer. The tables do not say how many their rows have, and it decides: on Bibtex P@1
        is 41 % with 30, 51 % with 60 (held).
    penalty : float
        Of the ridge regression on rows of length 1 with an intercept.
    seed : int
        Of the draw.

    Examples
    --------
    >>> X, Y = np.eye(3), np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> MLCSSP(penalty=0.01).fit(X, Y).predict(X, k=2).ids.tolist()
    [[0, 2], [1, 0], [0, 2]]
    """

    columns: int = 100
    penalty: float = 1.0
    seed: int = 0

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        size, X, Y = self._size("columns", truth), with_constant(X), truth.to_csr().astype(np.float64)
        turned = Y.T.tocsr()
        _, vectors = leading(lambda V: turned @ (Y @ V), Y.shape[1], size, self.seed)
        leverage = (vectors * vectors).sum(axis=1) * (truth.label_counts() > 0)
        chosen = self._drawn(leverage, size)
        own = np.ascontiguousarray(Y[:, chosen].toarray())
        # A trace of ridge keeps labels that are equal in every point from dividing by 0.
        inner = arithmetic.product(own.T, own) + 1e-6 * np.eye(size)
        combined = solve(inner, np.ascontiguousarray((turned @ own).T))
        weights = ridge(X, own, self.penalty, progress=Progress(size, "ML-CSSP"))
        self._keep(weights, combined.T, np.zeros(Y.shape[1]), truth)

    def _drawn(self, leverage: np.ndarray, size: int) -> np.ndarray:
        rng, chosen, left = np.random.default_rng(self.seed), [], leverage + 1e-12 * (leverage > 0)
        # Drawing again where a label comes twice is drawing from the others.
        for _ in range(min(size, int((left > 0).sum()))):
            sums = np.cumsum(left)
            chosen.append(int(np.searchsorted(sums, rng.random() * sums[-1], "right")))
            left[chosen[-1]] = 0
        return np.sort(chosen)


@dataclass(eq=False)
class LEML(_Embedding):
    """Low-rank empirical risk minimisation (Yu et al., 2014) with the squared loss: ‖Y - X W Hᵀ‖² + λ(‖W‖² + ‖H‖²).

    W and H are found in turns, each exactly with the other held: H by a system of ``rank`` unknowns, W by conjugate
    gradients.

    Parameters
    ----------
    rank : int
        Columns of W and H; all labels' where there are fewer.
    penalty : float
        λ, on rows of length 1 with an intercept; of 0.3, 1 and 3 the best (held).
    rounds : int
        How often W and H are found.
    seed : int
        Of the H that training begins with.

    Notes
    -----
    Left out: the paper's other losses, the logistic and the squared hinge.

    Examples
    --------
    >>> X, Y = np.eye(3), np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> LEML(penalty=0.01).fit(X, Y).predict(X, k=2).ids.tolist()
    [[0, 2], [1, 0], [0, 2]]
    """

    rank: int = 100
    penalty: float = 1.0
    rounds: int = 10
    seed: int = 0

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        rank, rounds = self._size("rank", truth), whole_number("rounds", self.rounds, 1)
        X, Y = with_constant(X), truth.to_csr().astype(np.float64)
        turned, progress = Y.T.tocsr(), Progress(rounds * rank, "LEML")
        H = arithmetic.normals(self.seed, 0, Y.shape[1], rank) / np.sqrt(Y.shape[1])
        for _ in range(rounds):
            # In the directions of HᵀH the columns of W do not touch each other.
            sizes, turn = eigen(arithmetic.product(H.T, H))
            sizes = np.maximum(sizes, 1e-12)
            target = (Y @ arithmetic.product(H, turn)) / sizes
            W = arithmetic.product(ridge(X, target, self.penalty / sizes, progress=progress), turn.T)
            points = X @ W
            inner = arithmetic.product(points.T, points) + self.penalty * np.eye(rank)
            H = solve(inner, (turned @ points).T).T
        self._keep(W, np.ascontiguousarray(H), np.zeros(Y.shape[1]), truth)


@dataclass(eq=False)
class WSABIE(_Embedding):
    """Web-scale annotation by image embedding (Weston, Bengio and Usunier, 2011): a low-rank ranker trained by WARP.

    A step draws a point and one of its labels, then labels it does not have until one scores within 1 of it. How many it
    took tells the label's rank r, and the step's size is 1 + 1/2 + ... + 1/r. Vectors longer than ``length`` are cut to it.

    Parameters
    ----------
    dim : int
        Of the common space.
    epochs : int
        Passes over all pairs of a point and its label; of 20, 40 and 80 the best (held).
    learning_rate : float
        Of stochastic gradient descent, the same throughout; of 0.001, 0.003, 0.01 and 0.02 the best (held).
    length : float
        Largest norm of a label's vector and of a feature's.
    seed : int
        Of the start and of all draws.

    Examples
    --------
    >>> X, Y = np.eye(3), np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> WSABIE(dim=8, epochs=100, learning_rate=0.1).fit(X, Y).predict(X, k=1).ids.ravel().tolist()
    [0, 1, 2]
    """

    dim: int = 100
    epochs: int = 40
    learning_rate: float = 0.001
    length: float = 5.0
    seed: int = 0

    def _check_parameters(self) -> None:
        for name, least in (("dim", 1), ("epochs", 1), ("seed", 0)):
            whole_number(name, getattr(self, name), least)
        real_number("learning_rate", self.learning_rate, above=0, at_most=1)
        real_number("length", self.length, above=0)

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        dim, epochs, seed = int(self.dim), int(self.epochs), int(self.seed)
        rate, length = float(self.learning_rate), float(self.length)
        X = with_constant(X).astype(np.float32)
        points = drawn_weights(seed, 0, 1 / np.sqrt(dim), X.shape[1], dim)
        labels = drawn_weights(seed, 1, 1 / np.sqrt(dim), truth.n_labels, dim)
        seen = np.flatnonzero(truth.label_counts() > 0)
        rows = np.repeat(np.arange(truth.n_rows), np.diff(truth.indptr))
        progress = Progress(epochs, "WSABIE")
        for epoch in range(epochs):
            order = np.random.default_rng([seed, epoch]).permutation(rows.size)
            warp.epoch(
                X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data, truth.indptr.astype(np.int64),
                truth.indices.astype(np.int64), rows[order], truth.indices[order].astype(np.int64), seen, points, labels,
                np.float32(rate), np.float32(length), seed, epoch,
            )  # fmt: skip
            progress.add(1)
        self._keep(points, labels, np.zeros(truth.n_labels), truth)


@dataclass(eq=False)
class CS(Model):
    """Multi-label prediction by compressed sensing (Hsu et al., 2009): random sums of labels are learned, and taken apart.

    ``measurements`` random signed sums of the label vector are regressed on the features. For a new point, orthogonal
    matching pursuit finds the few labels that explain its sums.

    Parameters
    ----------
    measurements : int
        Random sums, of signs over the root of their number. The tables do not say how many their rows have, and it decides: on
        Bibtex P@1 is 52 % with 30, 58 % with 50 (held).
    sparsity : int
        Labels that are taken apart at each point, and so the most that are predicted.
    penalty : float
        Of the ridge regression on rows of length 1 with an intercept.
    seed : int
        Of the signs.

    Notes
    -----
    A score is the label's coefficient when the pursuit ends. Left out: the paper's other decoders.

    Examples
    --------
    >>> X, Y = np.eye(3), np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    >>> CS(penalty=0.01, sparsity=2).fit(X, Y).predict(X, k=2).ids.tolist()[1][0]
    1
    """

    measurements: int = 100
    sparsity: int = 10
    penalty: float = 1.0
    seed: int = 0

    _arrays: ClassVar = ("points", "signs", "seen")

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        size, seed = whole_number("measurements", self.measurements, 1), whole_number("seed", self.seed, 0)
        whole_number("sparsity", self.sparsity, 1)
        penalty = real_number("penalty", self.penalty, above=0)
        X, Y = with_constant(X), truth.to_csr().astype(np.float64)
        self.seen_ = np.flatnonzero(truth.label_counts() > 0)
        draws = np.random.default_rng(seed).random((self.seen_.size, size)) < 0.5
        self.signs_ = np.where(draws, 1.0, -1.0) / np.sqrt(size)
        measured = Y[:, self.seen_] @ self.signs_
        self.points_ = ridge(X, measured, penalty, progress=Progress(size, "CS"))

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        X, n_labels = with_constant(X), self.n_labels_
        size = min(self.sparsity, self.seen_.size, self.signs_.shape[1])
        ids, scores = np.empty((X.shape[0], size), np.int64), np.empty((X.shape[0], size))

        def decode(_: int, stretch: slice) -> None:
            ids[stretch], scores[stretch] = pursued(X[stretch] @ self.points_, self.signs_, size)

        threads.over_stretches(X.shape[0], 256, decode)
        rows = np.arange(0, size * X.shape[0] + 1, size)
        found = sparse.csr_matrix((scores.ravel(), self.seen_[ids].ravel(), rows), (X.shape[0], n_labels))
        return TopK.from_scores(found, k)

    def _check_read(self) -> None:
        check_array("points", self.points_, "f", self.n_features_ + 1, -1)
        check_array("signs", self.signs_, "f", -1, self.points_.shape[1])
        check_ids("labels seen", self.seen_, self.signs_.shape[0], self.n_labels_)

    _probable = False


def pursued(sums: np.ndarray, atoms: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal matching pursuit of all rows at once: the ``size`` atoms that explain each, and their coefficients.

    sums: (n, m). atoms: (L, m), all of one length. At each step the atom of the largest product with what is left, in size,
    is taken (ties to the first), and what is left is brought to a right angle with it.
    """
    n, left = len(sums), sums.copy()
    taken, basis = np.empty((n, size), np.int64), np.zeros((n, size, sums.shape[1]))
    upper, along = np.zeros((n, size, size)), np.zeros((n, size))
    rows, open_ = np.arange(n), np.ones((n, len(atoms)), bool)
    for step in range(size):
        fit = np.where(open_, np.abs(arithmetic.product(left, atoms.T)), -1.0)
        taken[:, step] = fit.argmax(axis=1)
        open_[rows, taken[:, step]] = False
        new = atoms[taken[:, step]].copy()
        for earlier in range(step):
            upper[:, earlier, step] = (basis[:, earlier] * new).sum(axis=1)
            new -= upper[:, earlier, step, None] * basis[:, earlier]
        length = np.sqrt((new * new).sum(axis=1))
        upper[:, step, step] = length
        usable = length > 1e-8
        basis[:, step] = np.where(usable[:, None], new / np.where(usable, length, 1.0)[:, None], 0.0)
        along[:, step] = (basis[:, step] * left).sum(axis=1)
        left -= along[:, step, None] * basis[:, step]
    found = np.zeros((n, size))
    for step in range(size - 1, -1, -1):
        rest = along[:, step] - (upper[:, step, step + 1 :] * found[:, step + 1 :]).sum(axis=1)
        usable = upper[:, step, step] > 1e-8
        found[:, step] = np.where(usable, rest / np.where(usable, upper[:, step, step], 1.0), 0.0)
    return taken, found
