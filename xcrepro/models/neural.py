"""A small neural network with one output a label: the stand-in for the deep family, without its libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np
import threadpoolctl
from scipy import sparse

from xcrepro import threads
from xcrepro.arguments import one_of, real_number, whole_number
from xcrepro.models import adam
from xcrepro.models.base import Model, check_weights, unit_rows
from xcrepro.predictions import TopK
from xcrepro.truth import Truth

LOSSES = ("bce", "squared_hinge", "focal", "asymmetric")

# The output layer is worked on in blocks of this many labels, whatever the number of threads: the blocks decide in
# which order sums are added up. A block of scores of one batch stays in the cache.
_BLOCK = 512
# Scores of a stretch of rows that prediction holds at a time, a thread.
_SCORES = 2**22
# The first layer's weights. Small enough that tanh starts out nearly linear, large enough to tell points apart at once.
_EMBEDDING_SCALE = 0.25
_ALMOST_ONE = 1.0 - 2.0**-24

_Gradient = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(eq=False)
class NeuralOneVsAll(Model):
    """Averaged feature embeddings, tanh, and one output a label, trained under a choice of losses.

    For a row x, scaled to length 1:  h = tanh(x E + b),  z_l = h . w_l + c_l,  and for the losses with a sigmoid
    p_l = 1 / (1 + exp(-z_l)). All of E (D, dim), b, w (L, dim), c are learned together by Adam on batches of rows, the
    learning rate falling linearly to 0, with dropout on h. There is no shortlist of labels (the calibration document's Renee
    has none either), so time grows with n x L. The loss is summed over labels and averaged over rows.

    **Scores** are p, and z (the margin) for squared hinge. :meth:`predict_proba` gives probabilities for all four losses.

    Parameters
    ----------
    loss : {"bce", "squared_hinge", "focal", "asymmetric"}
        - ``"bce"``, binary cross-entropy: -log p of a relevant label, -log(1 - p) of another;
        - ``"squared_hinge"``: max(0, 1 - s z)^2, where s is 1 for a relevant label and -1 for another;
        - ``"focal"`` (Lin et al. 2017, without their alpha): -(1 - p)^gamma log p and -p^gamma log(1 - p);
        - ``"asymmetric"`` (Ridnik et al. 2021): -(1 - p)^gamma_positive log p and -q^gamma_negative log(1 - q) with
          q = max(p - shift, 0). The defaults are those of its authors' code.

        These four are what the calibration document compares in its appendix A and figure 6. Only bce and squared hinge
        are proper: of the other two p is no probability even where the fit is perfect.
    dim : int
        Length of an embedding.
    dropout : float
        Share of h that is left out in training, in [0, 1).
    epochs, batch : int
        Passes over the rows; rows a step.
    learning_rate : float
        At most 1.
    gamma, gamma_positive, gamma_negative, shift : float
        Of the losses that have them.
    seed : int
        Start values, order of rows and dropout.

    Notes
    -----
    A row without features is scored by the biases alone: near the labels' frequencies. A row without labels is an
    example against every label. A label never seen gets a score near its smoothed frequency, 0.5 / (n + 1).

    The same seed gives the same bits on one machine whatever the number of threads (matrix products run on one BLAS
    thread each). Another processor or BLAS may round products in float32 differently; training carries that on, so there
    scores agree to some digits only.

    Examples
    --------
    >>> import xcrepro as xc
    >>> data = xc.twin("eurlex-4k", scale=0.02, seed=0)
    >>> model = xc.models.NeuralOneVsAll(dim=32, epochs=5).fit(data.train.X, data.train.Y)
    >>> model.predict(data.test.X, k=3)
    TopK(n=76, k=3, n_labels=816)
    """

    loss: str = "bce"
    _: KW_ONLY
    dim: int = 256
    dropout: float = 0.2
    epochs: int = 20
    batch: int = 64
    learning_rate: float = 0.003
    gamma: float = 2.0
    gamma_positive: float = 1.0
    gamma_negative: float = 4.0
    shift: float = 0.05
    seed: int = 0

    def _check(self) -> None:
        one_of("loss", self.loss, LOSSES)
        for name, least in (("dim", 1), ("epochs", 1), ("batch", 1), ("seed", 0)):
            whole_number(name, getattr(self, name), least)
        for name in ("dropout", "shift"):
            real_number(name, getattr(self, name), at_least=0, below=1)
        for name in ("gamma", "gamma_positive", "gamma_negative"):
            real_number(name, getattr(self, name), at_least=0, at_most=100)
        # A step of Adam moves a weight by a few learning rates at most, so below 1 nothing can overflow.
        real_number("learning_rate", self.learning_rate, above=0, at_most=1)

    def _loss_gradient(self) -> _Gradient:
        if self.loss == "squared_hinge":
            return _squared_hinge
        positive, negative, shift = {
            "bce": (0.0, 0.0, 0.0),
            "focal": (self.gamma, self.gamma, 0.0),
            "asymmetric": (self.gamma_positive, self.gamma_negative, self.shift),
        }[self.loss]
        return lambda z, rows, labels: _cross_entropy(z, rows, labels, positive, negative, shift)

    # ------------------------------------------------------------------ training

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check()
        rng = np.random.default_rng(self.seed)
        X, Y, n = unit_rows(X).astype(np.float32), truth.to_csr(), truth.n_rows
        start = self._start(X.shape[1], truth, rng)
        # An embedding that no training point has stays what it was drawn, and would take as long as any other.
        used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
        X, weights = X[:, used], start | {"embedding": start["embedding"][used]}
        gradient, optimizer = self._loss_gradient(), adam.Adam(weights)
        steps = self.epochs * -(-n // self.batch)
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            for _ in range(self.epochs):
                order = rng.permutation(n)
                X_order, Y_order = X[order], Y[order]
                for lo in range(0, n, self.batch):
                    hi = min(lo + self.batch, n)
                    kept = rng.random((hi - lo, self.dim), np.float32) >= self.dropout
                    mask = kept * np.float32(1 / (1 - self.dropout))
                    optimizer.start_step(self.learning_rate * (1 - optimizer.steps / steps))
                    backpropagate(weights, X_order[lo:hi], Y_order[lo:hi], gradient, mask, optimizer.update)
        start["embedding"][used] = weights["embedding"]
        self.weights_ = weights | {"embedding": start["embedding"]}

    def _start(self, n_features: int, truth: Truth, rng: np.random.Generator) -> dict[str, np.ndarray]:
        share = (truth.label_counts() + 0.5) / (truth.n_rows + 1.0)
        # The output that is best where nothing is known of a row: for squared hinge the best constant is 2 p - 1.
        bias = 2.0 * share - 1.0 if self.loss == "squared_hinge" else np.log(share / (1.0 - share))
        embedding = rng.standard_normal((n_features, self.dim), np.float32)
        output = rng.standard_normal((truth.n_labels, self.dim), np.float32)
        return {
            "embedding": embedding * np.float32(_EMBEDDING_SCALE),
            "hidden_bias": np.zeros(self.dim, np.float32),
            "output": output * np.float32(0.5 / math.sqrt(self.dim)),
            "output_bias": bias.astype(np.float32),
        }

    # ------------------------------------------------------------------ prediction

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        margins = self._margins(X, k)
        return margins if self.loss == "squared_hinge" else _map_scores(margins, _sigmoid)

    def predict_proba(self, X, k: int = 100) -> sparse.csr_matrix:
        """As :meth:`Model.predict_proba`, for all four losses.

        For squared hinge min(1, max(0, (1 + z) / 2)): the loss is least, for a probability p, at z = 2p - 1. This
        is not the calibration document's treatment of such scores, (s - min) / (max - min) over all of a test set's;
        that can be had from ``predict``.
        """
        link = _half if self.loss == "squared_hinge" else _sigmoid
        return _map_scores(self._margins(self._features(X), whole_number("k", k, 1)), link).to_csr()

    def _margins(self, X: sparse.csr_matrix, k: int) -> TopK:
        """The k best by z: a sigmoid in float32 calls everything above 17 equal."""
        X = unit_rows(X).astype(np.float32)
        net, n_labels = self.weights_, self.n_labels_
        rows = max(1, min(256, _SCORES // n_labels))
        n = X.shape[0]
        ids, scores = np.empty((n, k), np.int32), np.empty((n, k), np.float32)

        def rank(first: int, last: int) -> None:
            for block in range(first, last):
                at = slice(block * rows, min((block + 1) * rows, n))
                z = _hidden(net, X[at]) @ net["output"].T
                z += net["output_bias"]
                top = TopK.from_scores(z, k)
                ids[at], scores[at] = top.ids, top.scores

        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            threads.over_rows(-(-n // rows), rank, min_rows=1)
        return TopK(ids, scores, n_labels)

    # ------------------------------------------------------------------ files

    def _state(self) -> dict[str, np.ndarray]:
        return self.weights_

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        shapes = {"embedding": (self.n_features_, self.dim), "hidden_bias": (self.dim,)}
        shapes |= {"output": (self.n_labels_, self.dim), "output_bias": (self.n_labels_,)}
        for name, shape in shapes.items():
            check_weights(name, arrays[name], *shape)
        self.weights_ = {name: arrays[name] for name in shapes}


def backpropagate(
    weights: dict[str, np.ndarray],
    X: sparse.csr_matrix,
    Y: sparse.csr_matrix,
    loss_gradient: _Gradient,
    mask: np.ndarray,
    update: Callable[[str, slice, np.ndarray], None],
) -> None:
    """The gradient of the batch's mean loss, handed to ``update(name, rows of that array, gradient)`` piece by piece.

    Each piece is handed over once all that needs the old weights has been computed. mask: (n, dim), what each value of
    the hidden layer is multiplied with (dropout). Pieces of the output layer come from several threads.
    """
    n, n_labels = X.shape[0], Y.shape[1]
    tanh = _hidden(weights, X)
    hidden = tanh * mask
    rows = np.repeat(np.arange(n), np.diff(Y.indptr))
    by_label = np.argsort(Y.indices, kind="stable")
    rows, labels = rows[by_label], Y.indices[by_label]
    edges = np.append(np.arange(0, n_labels, _BLOCK), n_labels)
    pairs = np.searchsorted(labels, edges)
    parts = np.empty((edges.size - 1, *hidden.shape), hidden.dtype)

    def work(first: int, last: int) -> None:
        for block in range(first, last):
            lo, hi = edges[block], edges[block + 1]
            relevant = slice(pairs[block], pairs[block + 1])
            output = weights["output"][lo:hi]
            z = hidden @ output.T
            z += weights["output_bias"][lo:hi]
            errors = loss_gradient(z, rows[relevant], labels[relevant] - lo)
            errors /= n
            np.matmul(errors, output, out=parts[block])
            update("output", slice(lo, hi), errors.T @ hidden)
            update("output_bias", slice(lo, hi), errors.sum(axis=0))

    threads.over_rows(edges.size - 1, work, min_rows=1)
    errors = parts.sum(axis=0)
    errors *= mask
    errors *= 1 - tanh * tanh
    update("embedding", slice(None), X.T @ errors)
    update("hidden_bias", slice(None), errors.sum(axis=0))


# ---------------------------------------------------------------------- losses


def _squared_hinge(z: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n, L) derivatives of the loss by z; the relevant pairs are (rows, labels)."""
    gradient = 2 * np.maximum(1 + z, 0)
    gradient[rows, labels] = -2 * np.maximum(1 - z[rows, labels], 0)
    return gradient


def _cross_entropy(
    z: np.ndarray, rows: np.ndarray, labels: np.ndarray, positive: float, negative: float, shift: float
) -> np.ndarray:
    """As above, for cross-entropy with its focusing exponents and shift (all 0: plain cross-entropy)."""
    gradient = _irrelevant(z, negative, shift)
    gradient[rows, labels] = _relevant(z[rows, labels], positive)
    return gradient


def _relevant(z: np.ndarray, gamma: float) -> np.ndarray:
    q = _sigmoid(-z)
    if gamma == 0:
        return -q
    log_p = np.minimum(z, 0) - np.log1p(np.exp(-np.abs(z)))
    return q**gamma * (gamma * (1 - q) * log_p - q)


def _irrelevant(z: np.ndarray, gamma: float, shift: float) -> np.ndarray:
    p = _sigmoid(z)
    if gamma == 0 and shift == 0:
        return p
    q = _sigmoid(-z)
    # Where p is not above the shift the loss is 0; the floor keeps what is computed there, and thrown away, finite.
    shifted = np.clip(p - shift, 1e-12, _ALMOST_ONE)
    ratio = q / (q + shift) if shift else 1  # of 1 - p to 1 - shifted, also where both are too small to divide
    gradient = p * shifted**gamma * (ratio - gamma * q * np.log1p(-shifted) / shifted)
    gradient[p <= shift] = 0
    return gradient


def _sigmoid(z: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1, small) / (1 + small)


def _half(z: np.ndarray) -> np.ndarray:
    return np.clip((1 + z) / 2, 0, 1)


# ---------------------------------------------------------------------- helpers


def _hidden(weights: dict[str, np.ndarray], X: sparse.csr_matrix) -> np.ndarray:
    hidden = X @ weights["embedding"]
    hidden += weights["hidden_bias"]
    return np.tanh(hidden, out=hidden)


def _map_scores(top: TopK, link: Callable[[np.ndarray], np.ndarray]) -> TopK:
    return TopK(top.ids, np.where(top.ids < 0, -np.inf, link(top.scores)).astype(np.float32), top.n_labels)
