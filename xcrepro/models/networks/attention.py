"""Label-wise attention over a document's words: the stand-in for AttentionXML's family."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, threads
from xcrepro.core.errors import ArgumentError
from xcrepro.core.matrices import row_of
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth
from xcrepro.models.base import by_stretches, check_ids, check_weights, drawn_weights, unit_rows
from xcrepro.models.kernels import attention as kernel
from xcrepro.models.networks import adam
from xcrepro.models.networks import base as networks

# Labels are worked on in blocks of this many, whatever the number of threads: the blocks decide in which order
# gradients of the words are added up.
_BLOCK = 256
# Scores of a stretch of rows that prediction holds at a time.
_SCORES = 2**24
# How much a label looks at a word is at most this, and at least its negative: exp of it must stay finite in float32.
_LIMIT = 20.0
# A word's weight beside its row's length below which it is none: a row that dropout leaves with such words alone, at
# exp(-_LIMIT) each, would have an attention of 0 / 0.
_VANISHING = 1e-25
# The words' start. Small enough that attention starts out nearly even, large enough to tell words apart at once.
_EMBEDDING_SCALE = 0.25
_WEIGHTS = ("embedding", "query", "output", "bias")


@dataclass(eq=False)
class LabelAttention(networks.Network):
    """Each label attends to the words of a document by weights of its own, and is scored by what it saw.

    Of a document with words w of weights v_w > 0, each with a vector e_w, label l sees

        c_l = sum_w a_lw e_w,   a_lw = v_w exp(e_w . q_l) / sum_u v_u exp(e_u . q_l),

    where q_l is what it looks for; its score is z_l = c_l . o_l + b_l, and p_l = 1 / (1 + exp(-z_l)). All of e (D, dim), q,
    o (L, dim) and b are learned together: binary cross-entropy, summed over labels and averaged over the batch's rows, Adam
    with a learning rate that falls linearly to 0, words left out at random (dropout).

    **What it stands in for.** AttentionXML (You et al. 2019) has the same attention, a softmax over words for each label.
    It reads word vectors learned elsewhere through a bidirectional LSTM and maps what a label saw to a score by layers
    that all labels share, down a shallow label tree. Here a document is a bag of words, so the order of words is lost;
    vectors start at random; a label has an output of its own; and instead of a tree there are sampled negatives. What
    is left is the idea that reeval credits with its gain on rare labels: no one fixed vector a document.

    Only some labels are worked on in a batch: those relevant to one of its rows, and ``negatives`` of the others, drawn
    anew for each batch, whose loss counts (number of others) / (number drawn). So the gradient is that of the whole loss in
    the mean. Prediction scores all labels, which bounds what it can be used for: some ten thousands of labels.

    **Scores** are the probabilities p.

    Parameters
    ----------
    dim : int
        Length of a vector.
    dropout : float
        Share of each row's words that is left out in training, in [0, 1).
    epochs, batch, steps : int
        Passes over the rows; rows a step at most; steps at least, over all passes: where rows are few, batches are smaller.
    negatives : int
        Labels a batch beside its relevant ones; all where there are fewer.
    learning_rate : float
        At most 1.
    seed : int
        Start values, order of rows, dropout and negatives.

    Notes
    -----
    Rows are scaled to length 1, which changes no attention. Weights must not be negative: they are shares. e_w . q_l is held
    within [-20, 20].

    A word without a training row is ignored. A row without words is scored by the biases alone: near the labels'
    frequencies. A row without labels is an example against every label. A label without a training positive is never
    predicted; where fewer than k are left, the last places are absent (-1).

    The defaults were chosen on the synthetic twins of EURLex-4K and Wiki10-31K: with fewer steps the network learns too little,
    with many more passes it learns the training points by heart.

    The same seed gives the same bits on every machine, whatever the number of threads. Adam's moments of a word or label wait
    while no batch has it.

    Examples
    --------
    >>> import xcrepro as xc
    >>> data = xc.twin("eurlex-4k", scale=0.02, seed=0)
    >>> model = xc.models.LabelAttention(dim=16, epochs=3).fit(data.train.X, data.train.Y)
    >>> model.predict(data.test.X, k=3)
    TopK(n=76, k=3, n_labels=816)
    """

    _: KW_ONLY
    dropout: float = 0.2
    steps: int = 500
    negatives: int = 512
    learning_rate: float = 0.01

    _LEAST = networks.Network._LEAST | {"steps": 1, "negatives": 1}

    # features: the words with a training row; labels: those with a training positive. Both are ids, rising; of them are
    # the rows of embedding, and of query, output and bias.
    _arrays: ClassVar[tuple[str, ...]] = ("features", "labels", *_WEIGHTS)

    # ------------------------------------------------------------------ training

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        X, Y, n = _words(X), truth.to_csr(), truth.n_rows
        features = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
        labels = np.flatnonzero(truth.label_counts())
        X, Y = X[:, features], Y[:, labels]
        weights = self._start(features.size, truth.label_counts()[labels], n)
        optimizer = adam.Adam(weights)
        state, work = {"net": weights, "adam": optimizer.state}, 6 * self.negatives * self.dim
        steps = networks.Steps(self, n, (X, Y), state, work, self._rows_a_step(n))
        for _ in steps.epochs():
            for rows, rate in steps.batches():
                words, part = _present(_drop_words(X[rows], self.dropout, steps.rng))
                chosen, importance = _choose_labels(Y[rows], self.negatives, steps.rng)
                local = {name: array[words if name == "embedding" else chosen] for name, array in weights.items()}
                relevant = Y[rows][:, chosen].toarray() > 0
                gradients = backpropagate(local, part, relevant, importance)
                optimizer.start_step(rate)
                for name, gradient in gradients.items():
                    optimizer.update(name, words if name == "embedding" else chosen, gradient)
        self.features_, self.labels_ = features, labels
        for name, array in weights.items():
            setattr(self, f"{name}_", array)

    def _rows_a_step(self, n: int) -> int:
        return min(self.batch, max(1, n * self.epochs // self.steps))

    def _start(self, n_words: int, counts: np.ndarray, n: int) -> dict[str, np.ndarray]:
        share = (counts + 0.5) / (n + 1.0)
        return {
            "embedding": drawn_weights(self.seed, 0, _EMBEDDING_SCALE, n_words, self.dim),
            "query": np.zeros((counts.size, self.dim), np.float32),  # attention starts as the words' own weights
            "output": drawn_weights(self.seed, 1, 0.5 / math.sqrt(self.dim), counts.size, self.dim),
            "bias": arithmetic.log(share / (1.0 - share)).astype(np.float32),
        }

    # ------------------------------------------------------------------ prediction

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        X = _words(X)[:, self.features_]
        n, n_labels = X.shape[0], self.labels_.size

        def rank(stretch: slice) -> TopK:
            # Ranked by z: in float32 a sigmoid calls everything above 17 equal.
            top = TopK.from_scores(self._margins(X[stretch]), k)
            absent = top.ids < 0
            ids = np.where(absent, -1, self.labels_[top.ids]).astype(np.int32)
            scores = np.where(absent, -np.inf, arithmetic.sigmoid(top.scores)).astype(np.float32)
            return TopK(ids, scores, self.n_labels_)

        return by_stretches(rank, n, k, self.n_labels_, max(1, _SCORES // n_labels))

    def _margins(self, X: sparse.csr_matrix) -> np.ndarray:
        """z of all labels that are predicted: (n, labels) float32."""
        words, X = _present(X)
        embedding, n, n_labels = self.embedding_[words], X.shape[0], self.labels_.size
        z = np.empty((n, n_labels), np.float32)

        def work(_number: int, stretch: slice) -> None:
            _, exp, seen = _look(embedding, self.query_[stretch], self.output_[stretch])
            z[:, stretch] = _attend(X, exp, seen)[1] + self.bias_[stretch]

        threads.over_stretches(n_labels, _BLOCK, work)
        return z

    # ------------------------------------------------------------------ files

    def _check_read(self) -> None:
        n_words, n_labels = self.features_.size, self.labels_.size
        shapes = {"embedding": (n_words, self.dim), "query": (n_labels, self.dim), "output": (n_labels, self.dim)}
        for name, shape in (shapes | {"bias": (n_labels,)}).items():
            check_weights(name, getattr(self, f"{name}_"), *shape)
        for name, limit in (("features", self.n_features_), ("labels", self.n_labels_)):
            check_ids(name, getattr(self, f"{name}_"), -1, limit)


def backpropagate(
    weights: dict[str, np.ndarray], X: sparse.csr_matrix, relevant: np.ndarray, importance: np.ndarray
) -> dict[str, np.ndarray]:
    """The gradient of a batch's loss by each of the weights.

    weights: embedding (words, dim), query and output (labels, dim), bias (labels,). X: (n, words), positive. relevant: (n,
    labels) bool. importance: (labels,), how often each label's loss counts. The loss is summed over labels and averaged
    over rows.
    """
    embedding, by_word = weights["embedding"], X.tocsc()
    n, n_labels = relevant.shape
    found = {name: np.empty_like(weights[name]) for name in ("query", "output", "bias")}
    parts = np.empty((-(-n_labels // _BLOCK), *embedding.shape), np.float32)

    def work(number: int, stretch: slice) -> None:
        query, output = weights["query"][stretch], weights["output"][stretch]
        look, exp, seen = _look(embedding, query, output)
        mass, score = _attend(X, exp, seen)
        error = arithmetic.sigmoid32(score + weights["bias"][stretch])
        error -= relevant[:, stretch]
        error *= importance[stretch] / np.float32(n)
        d_look, d_seen = np.empty_like(exp), np.empty_like(exp)
        words = by_word.indptr, by_word.indices, by_word.data
        kernel.attend_back(*words, exp, seen, mass, score, error, d_look, d_seen)
        d_look *= np.abs(look) < _LIMIT
        arithmetic.product(d_look.T, embedding, found["query"][stretch])
        arithmetic.product(d_seen.T, embedding, found["output"][stretch])
        found["bias"][stretch] = error.sum(axis=0)
        arithmetic.product(d_seen, output, parts[number])
        parts[number] += arithmetic.product(d_look, query)

    threads.over_stretches(n_labels, _BLOCK, work)
    return {"embedding": parts.sum(axis=0), **found}


def _look(embedding: np.ndarray, query: np.ndarray, output: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(words, labels): how much a label looks at a word, exp of that within its limits, and what it sees there."""
    look = arithmetic.product(embedding, query.T)
    exp = arithmetic.exp32(np.clip(look, -_LIMIT, _LIMIT))
    return look, exp, arithmetic.product(embedding, output.T)


def _attend(X: sparse.csr_matrix, exp: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, labels): the attention's denominator, and the mean of what is seen."""
    mass = np.empty((X.shape[0], exp.shape[1]), exp.dtype)
    score = np.empty_like(mass)
    kernel.attend(X.indptr, X.indices, X.data, exp, seen, mass, score)
    return mass, score


# ---------------------------------------------------------------------- helpers


def _words(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Rows of length 1, float32, without what would vanish in them."""
    if X.data.size and X.data.min() < 0:
        place = int(np.argmax(X.data < 0))
        rule = "must not be negative: a word's weight is its share of the attention"
        raise ArgumentError("X", rule, f"{X.data[place]} at row {row_of(X.indptr, place)}, feature {X.indices[place]}")
    X = unit_rows(X).astype(np.float32)
    X.data[X.data < _VANISHING] = 0
    X.eliminate_zeros()
    return X


def _drop_words(X: sparse.csr_matrix, share: float, rng: np.random.Generator) -> sparse.csr_matrix:
    """A copy without about ``share`` of the stored entries."""
    X = X.copy()
    X.data *= rng.random(X.nnz, np.float32) >= share
    X.eliminate_zeros()
    return X


def _present(X: sparse.csr_matrix) -> tuple[np.ndarray, sparse.csr_matrix]:
    """The columns that have an entry, and X with these alone."""
    words = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    place = np.zeros(X.shape[1], np.int32)
    place[words] = np.arange(words.size, dtype=np.int32)
    return words, sparse.csr_matrix((X.data, place[X.indices], X.indptr), shape=(X.shape[0], words.size))


def _choose_labels(Y: sparse.csr_matrix, negatives: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ids of a batch's labels, relevant ones first, and how often the loss of each counts."""
    there = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
    relevant, others = np.flatnonzero(there), np.flatnonzero(~there)
    drawn = rng.choice(others, min(negatives, others.size), replace=False, shuffle=False)
    importance = np.ones(relevant.size + drawn.size, np.float32)
    importance[relevant.size :] = others.size / max(drawn.size, 1)
    return np.concatenate([relevant, drawn]), importance
