"""A small neural network with one output a label: the stand-in for the deep family, without its libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, threads
from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth
from xcrepro.models.base import check_weights, drawn_weights, rank_by_products, unit_rows
from xcrepro.models.kernels import neural as kernel
from xcrepro.models.networks import adam
from xcrepro.models.networks import base as networks

LOSSES = ("bce", "squared_hinge", "focal", "asymmetric")

# The output layer is worked on in blocks of this many labels, whatever the number of threads: the blocks decide in
# which order sums are added up. A block of scores of one batch stays in the cache.
_BLOCK = 512
# The first layer's weights. Small enough that tanh starts out nearly linear, large enough to tell points apart at once.
_EMBEDDING_SCALE = 0.25

# Turns z (labels, rows) into derivatives in place; the relevant pairs are (labels, rows).
_Gradient = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


@dataclass(eq=False)
class NeuralOneVsAll(networks.Network):
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

    The same seed gives the same bits on every machine, whatever the number of threads.

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
    learning_rate: float = 0.003
    gamma: float = 2.0
    gamma_positive: float = 1.0
    gamma_negative: float = 4.0
    shift: float = 0.05

    _SHARES = ("dropout", "shift")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("loss", self.loss, LOSSES)
        for name in ("gamma", "gamma_positive", "gamma_negative"):
            real_number(name, getattr(self, name), at_least=0, at_most=100)

    def _loss_gradient(self) -> _Gradient:
        if self.loss == "squared_hinge":
            return kernel.squared_hinge
        positive, negative, shift = {
            "bce": (0.0, 0.0, 0.0),
            "focal": (self.gamma, self.gamma, 0.0),
            "asymmetric": (self.gamma_positive, self.gamma_negative, self.shift),
        }[self.loss]
        return lambda z, labels, rows: kernel.cross_entropy(z, labels, rows, positive, negative, shift)

    # ------------------------------------------------------------------ training

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        X, Y = unit_rows(X).astype(np.float32), truth.to_csr()
        start = self._start(X.shape[1], truth)
        # An embedding that no training point has stays what it was drawn, and would take as long as any other.
        used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
        X, weights = X[:, used], start | {"embedding": start["embedding"][used]}
        gradient, optimizer = self._loss_gradient(), adam.Adam(weights)
        state, work = {"net": weights, "adam": optimizer.state}, Y.shape[1] * self.dim / 6
        steps = networks.Steps(self, truth.n_rows, (X, Y), state, work)
        for _ in steps.epochs():
            for rows, rate in steps.batches():
                optimizer.start_step(rate)
                mask = self._dropped(rows.size, steps.rng)
                backpropagate(weights, X[rows], Y[rows], gradient, mask, optimizer.update)
        start["embedding"][used] = weights["embedding"]
        self.weights_ = weights | {"embedding": start["embedding"]}

    def _start(self, n_features: int, truth: Truth) -> dict[str, np.ndarray]:
        share = (truth.label_counts() + 0.5) / (truth.n_rows + 1.0)
        # The output that is best where nothing is known of a row: for squared hinge the best constant is 2 p - 1.
        bias = 2.0 * share - 1.0 if self.loss == "squared_hinge" else arithmetic.log(share / (1.0 - share))
        return {
            "embedding": drawn_weights(self.seed, 0, _EMBEDDING_SCALE, n_features, self.dim),
            "hidden_bias": np.zeros(self.dim, np.float32),
            "output": drawn_weights(self.seed, 1, 0.5 / math.sqrt(self.dim), truth.n_labels, self.dim),
            "output_bias": bias.astype(np.float32),
        }

    # ------------------------------------------------------------------ prediction

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        margins = self._margins(X, k)
        return margins if self.loss == "squared_hinge" else _map_scores(margins, arithmetic.sigmoid)

    def predict_proba(self, X, k: int = 100) -> sparse.csr_matrix:
        """As :meth:`Model.predict_proba`, for all four losses.

        For squared hinge min(1, max(0, (1 + z) / 2)): the loss is least, for a probability p, at z = 2p - 1. This
        is not the calibration document's treatment of such scores, (s - min) / (max - min) over all of a test set's;
        that can be had from ``predict``.
        """
        link = _half if self.loss == "squared_hinge" else arithmetic.sigmoid
        return _map_scores(self._margins(self._features(X), whole_number("k", k, 1)), link).to_csr()

    def _margins(self, X: sparse.csr_matrix, k: int) -> TopK:
        """The k best by z: a sigmoid in float32 calls everything above 17 equal."""
        X = unit_rows(X).astype(np.float32)
        net = self.weights_
        return rank_by_products(lambda at: _hidden(net, X[at]), X.shape[0], net["output"], net["output_bias"], k)

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
    by_label = Y.tocsc()
    labels = np.repeat(np.arange(n_labels), np.diff(by_label.indptr))
    parts = np.empty((-(-n_labels // _BLOCK), *hidden.shape), np.float32)

    def work(number: int, block: slice) -> None:
        output, pairs = weights["output"][block], slice(*by_label.indptr[[block.start, block.stop]])
        errors = arithmetic.product(output, hidden.T)
        errors += weights["output_bias"][block, None]
        loss_gradient(errors, labels[pairs] - block.start, by_label.indices[pairs])
        errors /= np.float32(n)
        arithmetic.product(errors.T, output, parts[number])
        update("output", block, arithmetic.product(errors, hidden))
        update("output_bias", block, errors.sum(axis=1))

    threads.over_stretches(n_labels, _BLOCK, work)
    errors = parts.sum(axis=0)
    errors *= mask
    errors *= 1 - tanh * tanh
    update("embedding", slice(None), X.T @ errors)
    update("hidden_bias", slice(None), errors.sum(axis=0))


# ---------------------------------------------------------------------- helpers


def _half(z: np.ndarray) -> np.ndarray:
    return np.clip((1 + z) / 2, 0, 1)


def _hidden(weights: dict[str, np.ndarray], X: sparse.csr_matrix) -> np.ndarray:
    hidden = X @ weights["embedding"]
    hidden += weights["hidden_bias"]
    return arithmetic.tanh32(hidden)


def _map_scores(top: TopK, link: Callable[[np.ndarray], np.ndarray]) -> TopK:
    return TopK(top.ids, np.where(top.ids < 0, -np.inf, link(top.scores)).astype(np.float32), top.n_labels)
