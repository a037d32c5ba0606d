"""Two towers: the words of points and of labels in one space, and one classifier a label that starts from there."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, threads
from xcrepro.core.arguments import one_of, real_number
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth
from xcrepro.models.base import check_weights, drawn_weights, rank_by_products, unit_rows
from xcrepro.models.kernels import two_towers as kernels
from xcrepro.models.networks import base as networks

OUTPUTS = ("classifiers", "encoder")

# Products of a stretch of pairs of a point and a label that are held at a time.
_PRODUCTS = 2**20
# Newton's steps of the two numbers that make log-odds of cosines: the fit ends long before.
_NEWTON = 50
# Steps of each classifier.
_STEPS = 100


@dataclass(eq=False)
class TwoTowers(networks.ReadsWords):
    """Words of points and of labels embedded into one space, contrastively, then one classifier a label.

    A small member of the family of SiameseXML (Dahiya et al. 2021) and NGAME (Dahiya et al. 2023), for data whose labels have
    words of their own. Both towers are one table E of word embeddings:

        u_i = unit(sum_w x_iw E_w) for a point,  v_l = unit(sum_w z_lw E_w) for a label,

    with rows of x and z scaled to length 1. **First stage**: E is learned by AdaGrad on batches of relevant pairs. The
    loss of a pair (i, l) is the cross-entropy of the softmax of u_i . v_c / temperature at c = l, where c runs over the
    labels of the batch's pairs and over ``hard`` negatives of each of its points: labels drawn from the ``shortlist``
    nearest to the point, found anew every ``refresh`` epochs. Other relevant labels of the point are left out. **Second
    stage**: E is kept, and each label gets a logistic regression on the u_i of its relevant points and of those points
    that have it in their shortlist: log-odds u_i . w_l + b_l, with strength / 2 |(w_l, b_l) - (s v_l, c)|^2 added to
    the loss. s and c, one pair for all labels, are the logistic regression of all these pairs on their cosines. So a
    label without training points is scored as its words say.

    **Ranking** is in two steps, because a classifier is right about points that are near to its label and knows no others:
    the ``shortlist`` labels nearest to a point are ranked by the mean of two log-odds, those of their classifiers and the
    s u . v_l + c of the towers, a fusion as NGAME's. All other labels follow, as the towers rank them.

    **Scores** are probabilities: the logistic function of these means, and of s u . v_l + c for what follows, which are moved
    down together where the last of the shortlist has a lower mean than its own s u . v_l + c. For ``output="encoder"`` it is
    that of the cosine u . v_l alone, between 0.27 and 0.73: a contrastive loss knows no scale.

    Where it differs from its models: words are averaged where they use a transformer (or DeepXML's averaged words, as
    SiameseXML), negatives come from exact neighbours and not from clusters of points, and the classifiers are a convex
    problem each. NGAME learns how to fuse the two scores; here both are log-odds and count alike.

    Parameters
    ----------
    output : {"classifiers", "encoder"}
        What scores; the encoder alone needs no second stage.
    dim : int
        Length of an embedding.
    epochs, batch : int
        Passes over the relevant pairs; pairs a step.
    learning_rate : float
        Of AdaGrad, at most 1; falls linearly to 0.
    temperature : float
        Of the softmax, above 0.
    shortlist : int
        Labels near to a point: negatives are drawn from them, their classifiers are trained on it and rank them.
    hard, refresh : int
        Hard negatives of a pair, 0 for those of the batch alone; epochs from one shortlist to the next.
    strength : float
        How strongly a classifier is held to its label's words, above 0.
    seed : int
        Start values, order of pairs and drawn negatives.

    Notes
    -----
    A label without words is where its points are. One without points either is at 0 in the common space and is scored by c
    alone. A point without known words is at 0 too: all labels are as near, so the lowest ids are its shortlist. A word that
    neither points nor labels of the training have counts for nothing.

    The same seed gives the same bits on every machine, whatever the number of threads.

    Examples
    --------
    >>> import xcrepro as xc
    >>> data = xc.twin("lf-amazontitles-131k", scale=0.001, seed=0)
    >>> model = xc.models.TwoTowers(dim=32, epochs=2).fit(data.train.X, data.train.Y, data.label_features)
    >>> model.predict(data.test.X, k=3)
    TopK(n=135, k=3, n_labels=607)
    """

    output: str = "classifiers"
    _: KW_ONLY
    dim: int = 256
    epochs: int = 5
    batch: int = 256
    learning_rate: float = 0.03
    temperature: float = 0.05
    shortlist: int = 50
    hard: int = 2
    refresh: int = 3
    strength: float = 1.0

    _LEAST = networks.Network._LEAST | {"shortlist": 1, "refresh": 1, "hard": 0}
    _SHARES = ()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("output", self.output, OUTPUTS)
        # Cosines divided by less than this leave the range in which softmax in float32 tells them apart.
        real_number("temperature", self.temperature, at_least=1e-3)
        real_number("strength", self.strength, above=0)

    # ------------------------------------------------------------------ training

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        words = self._words_of_labels(X, truth)
        X = unit_rows(X).astype(np.float32)
        known = np.bincount(X.indices, minlength=X.shape[1]) + np.bincount(words.indices, minlength=X.shape[1]) > 0
        table = drawn_weights(self.seed, 0, 1 / math.sqrt(self.dim), X.shape[1], self.dim)
        table[~known] = 0
        table = self._learn_embeddings(X, words, truth, table)
        self.embedding_, (self.labels_, _) = table, _embed(words, table)
        if self.output == "encoder":
            self.weights_, self.bias_ = self.labels_[:0], np.zeros(0, np.float32)
            self.scale_ = np.array([1, 0], np.float32)
        else:
            self.weights_, self.bias_, self.scale_ = self._learn_classifiers(X, truth)

    def _words_of_labels(self, X: sparse.csr_matrix, truth: Truth) -> sparse.csr_matrix:
        """Rows of length 1, float32: what was given, and of labels without words the mean of their points."""
        given = self._given_words(truth, X.shape[1])
        if given is None:
            given = sparse.csr_matrix((truth.n_labels, X.shape[1]))
        words = unit_rows(given).astype(np.float32)
        # A label without words would be near no point, so its classifier would see no point that does not have it.
        bare = sparse.diags((words.getnnz(axis=1) == 0).astype(np.float64))
        points = unit_rows((truth.to_csr().T @ unit_rows(X)).tocsr())
        return (words + (bare @ points).astype(np.float32)).tocsr()

    def _learn_embeddings(
        self, X: sparse.csr_matrix, words: sparse.csr_matrix, truth: Truth, table: np.ndarray
    ) -> np.ndarray:
        points, labels = np.repeat(np.arange(truth.n_rows), np.diff(truth.indptr)), truth.indices
        Y, state = truth.to_csr(), {"table": table, "squares": np.zeros_like(table)}
        work = self.dim * self.batch * (1 + self.hard) / 5
        steps = networks.Steps(self, labels.size, (X, words, Y), {"net": state}, work)
        table, squares = state["table"], state["squares"]
        for epoch in steps.epochs():
            if self.hard and epoch % self.refresh == 0:
                state["near"] = self._near(_embed(X, table)[0], _embed(words, table)[0]).ids
            for pairs, rate in steps.batches():
                rows, positives = points[pairs], labels[pairs]
                drawn = [positives]
                if self.hard:
                    near = state["near"]
                    places = steps.rng.integers(near.shape[1], size=(pairs.size, self.hard))
                    drawn.append(near[rows[:, None], places].ravel())
                candidates = np.unique(np.concatenate(drawn))
                columns = np.searchsorted(candidates, positives)
                batch = X[rows], words[candidates], Y[rows], candidates, columns
                _, gradients = contrastive_loss(*batch, table, self.temperature)
                _update(sparse.vstack(batch[:2], format="csr"), np.vstack(gradients), table, squares, np.float32(rate))
        return table

    def _near(self, embedded: np.ndarray, labels: np.ndarray, k: int = 1) -> TopK:
        """The labels nearest to each point: the shortlist, and as many more as k asks for."""
        n, n_labels = len(embedded), len(labels)
        bias = np.zeros(n_labels, np.float32)
        return rank_by_products(lambda at: embedded[at], n, labels, bias, max(k, min(self.shortlist, n_labels)))

    def _learn_classifiers(self, X: sparse.csr_matrix, truth: Truth) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        embedded, _ = _embed(X, self.embedding_)
        near = self._near(embedded, self.labels_).ids
        # The pairs: what is relevant, and what is near.
        shape = truth.n_rows, truth.n_labels
        rows = np.repeat(np.arange(truth.n_rows), near.shape[1])
        asked = sparse.csr_matrix((np.ones(rows.size, np.float32), (rows, near.ravel())), shape=shape)
        asked = (asked + 2 * truth.to_csr()).tocsc()
        asked.sort_indices()
        points, relevant = asked.indices, asked.data >= 2
        of_label = np.repeat(np.arange(truth.n_labels), np.diff(asked.indptr))
        scale, offset = fit_scale(_products(embedded, self.labels_, points, of_label), relevant)
        start = self.labels_ * np.float32(scale)
        weights, bias = np.empty_like(start), np.empty(truth.n_labels, np.float32)
        pairs = asked.indptr, points, relevant, embedded, start, offset, self.strength, _STEPS, weights, bias
        threads.over_rows(truth.n_labels, lambda lo, hi: kernels.fit_classifiers(lo, hi, *pairs), min_rows=64)
        return weights, bias, np.array([scale, offset], np.float32)

    # ------------------------------------------------------------------ prediction

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        embedded, _ = _embed(unit_rows(X).astype(np.float32), self.embedding_)
        near = self._near(embedded, self.labels_, k)
        ids, width = near.ids.copy(), min(self.shortlist, near.n_labels)
        odds = self.scale_[0] * np.where(ids < 0, 0, near.scores).astype(np.float64) + self.scale_[1]
        if self.output == "classifiers":
            short, points = ids[:, :width].copy(), np.repeat(np.arange(len(ids)), width)
            own = _products(embedded, self.weights_, points, short.ravel()).reshape(short.shape) + self.bias_[short]
            fused = (odds[:, :width] + own) / 2
            order = np.lexsort((short, -fused), axis=1)
            last = odds[:, width - 1 : width].copy()
            ids[:, :width], odds[:, :width] = (np.take_along_axis(of, order, 1) for of in (short, fused))
            # What follows the shortlist stays behind it, at the distance that the towers see from its last.
            odds[:, width:] += np.minimum(0, odds[:, width - 1 : width] - last)
        # Near labels are fitted no worse than far ones but by a failed training.
        odds = np.minimum.accumulate(odds, axis=1)
        scores = np.where(ids < 0, -np.inf, arithmetic.sigmoid(odds)).astype(np.float32)
        return TopK(ids[:, :k], scores[:, :k], near.n_labels)

    # ------------------------------------------------------------------ files

    _arrays = ("embedding", "labels", "weights", "bias", "scale")

    def _check_read(self) -> None:
        classifiers = self.n_labels_ if self.output == "classifiers" else 0
        check_weights("embedding", self.embedding_, self.n_features_, self.dim)
        check_weights("labels", self.labels_, self.n_labels_, self.dim)
        check_weights("weights", self.weights_, classifiers, self.dim)
        check_weights("bias", self.bias_, classifiers)
        check_weights("scale", self.scale_, 2)


def contrastive_loss(
    X: sparse.csr_matrix,
    words: sparse.csr_matrix,
    Y: sparse.csr_matrix,
    candidates: np.ndarray,
    positives: np.ndarray,
    table: np.ndarray,
    temperature: float,
) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
    """The mean loss of a batch's pairs, and its gradients by the two towers' sums of word embeddings.

    X: a pair's point a row; words: a candidate a row; Y: the points' relevant labels. candidates: labels, ascending;
    positives: the place among them of each pair's label.
    """
    points, point_lengths = _embed(X, table)
    labels, label_lengths = _embed(words, table)
    scores = arithmetic.product(points, labels.T)
    scores /= np.float32(temperature)
    # In the calling thread: sums of batches are too small to be cut.
    loss = kernels.contrast(0, len(scores), scores, positives, Y.indptr, Y.indices, candidates) / len(scores)
    scores /= np.float32(temperature * len(scores))
    by_points, by_labels = arithmetic.product(scores, labels), arithmetic.product(scores.T, points)
    kernels.backward(0, len(by_points), points, point_lengths, by_points)
    kernels.backward(0, len(by_labels), labels, label_lengths, by_labels)
    return loss, (by_points, by_labels)


def _update(
    rows: sparse.csr_matrix, gradient: np.ndarray, table: np.ndarray, squares: np.ndarray, rate: np.float32
) -> None:
    """A step of the embeddings of the words in ``rows``, whose sums have this gradient."""
    order = np.argsort(rows.indices, kind="stable")
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[order]
    words, starts = np.unique(rows.indices[order], return_index=True)
    given = words, np.append(starts, order.size), row_of, rows.data[order], gradient, table, squares, rate
    threads.over_rows(words.size, lambda lo, hi: kernels.adagrad(lo, hi, *given), min_rows=512)


def fit_scale(cosines: np.ndarray, relevant: np.ndarray) -> tuple[float, float]:
    """s and c of log-odds s cos + c, by Newton's method on the log loss with a trace of a prior, so that it has a minimum.

    cosines: float64, in [-1, 1]; relevant: bool. The prior is that of half a pair more of either kind at cosines 1 and -1.
    """
    x = np.concatenate([cosines, [1.0, -1.0]])
    y = np.concatenate([relevant.astype(np.float64), [0.5, 0.5]])
    scale = offset = 0.0

    def loss(scale: float, offset: float) -> float:
        margin = scale * x + offset
        return float((arithmetic.softplus(margin) - y * margin).sum())

    for _ in range(_NEWTON):
        p = arithmetic.sigmoid(scale * x + offset)
        error, bend = p - y, p * (1 - p)
        slope, level = float((error * x).sum()), float(error.sum())
        # The matrix of second derivatives: of the scale, of both, of the offset.
        a, b, c = float((bend * x * x).sum()) + 1e-9, float((bend * x).sum()), float(bend.sum()) + 1e-9
        volume = a * c - b * b
        step = (c * slope - b * level) / volume, (a * level - b * slope) / volume
        size = 1.0
        while loss(scale - size * step[0], offset - size * step[1]) > loss(scale, offset) and size > 1e-6:
            size /= 2
        scale, offset = scale - size * step[0], offset - size * step[1]
        if size * max(map(abs, step)) < 1e-10:
            break
    return scale, offset


# ---------------------------------------------------------------------- helpers


def _embed(rows: sparse.csr_matrix, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of length 1 and the lengths they had; rows without known words are 0."""
    n = rows.shape[0]
    out, lengths = np.empty((n, table.shape[1]), np.float32), np.empty(n)
    given = rows.indptr, rows.indices, rows.data, table, out, lengths
    threads.over_rows(n, lambda lo, hi: kernels.embed(lo, hi, *given), min_rows=2048)
    return out, lengths


def _products(embedded: np.ndarray, labels: np.ndarray, points: np.ndarray, of_label: np.ndarray) -> np.ndarray:
    """The inner product of each pair of a point and a label, a stretch of pairs at a time."""
    found = np.empty(points.size)
    stretch = max(1, _PRODUCTS // embedded.shape[1])
    for lo in range(0, points.size, stretch):
        at = slice(lo, lo + stretch)
        found[at] = (embedded[points[at]] * labels[of_label[at]]).sum(axis=1)
    return found
