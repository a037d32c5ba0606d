"""A small network that chooses among clusters of labels first: the stand-in for LightXML, CascadeXML and ELIAS."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic
from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.matrices import checked_csr
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth, as_truth
from xcrepro.models import plt
from xcrepro.models.base import by_stretches, check_ids, check_weights, drawn_weights, unit_rows
from xcrepro.models.networks import adam, neural
from xcrepro.models.networks import base as networks

CLUSTERS = ("k-means", "random", "learned", "none")

# The first layer's weights start as those of NeuralOneVsAll.
_EMBEDDING_SCALE = 0.25
# Rows that prediction works on at a time.
_ROWS = 1024
# A cluster that learns its labels begins with this many times max_leaf, and those it had; its shares sum to no more.
_ROOM = 2
# Share that a cluster begins with at least in a label of its own or among its best.
_LEAST_SHARE = 1e-4
# Least probability of a node on the way: one of 0 would be no entry of a sparse matrix.
_LEAST = np.float32(1e-30)
# Least of 1 - probability that errors are divided by.
_EDGE = 1e-6


@dataclass(eq=False)
class ClusterNetwork(networks.ReadsWords):
    """One hidden layer, outputs for clusters of labels, and outputs for the labels of the clusters that are opened.

    For a row x, scaled to length 1: h = tanh(x E + b), and each node v, a cluster or a label, has the probability
    p_v = 1 / (1 + exp(-(h . w_v + c_v))) given that its parent is relevant. A row opens its ``beam`` most probable clusters;
    in training also those that hold a relevant label. A label's probability is the product of p over it and its clusters, and a
    label in a cluster that is not opened has none. All weights are learned together by Adam on the binary
    cross-entropy of what was opened, the learning rate falling linearly to 0, with dropout on h.

    ``"learned"`` is so for the first half of the epochs, with clusters by k-means. Then a cluster v gets shares a_vl in [0, 1]
    of several labels, and a label the probability min(1, sum_v p_v a_vl) p_l, the sum over the clusters that are opened. The
    shares are min(1, r softmax(u_v)), where r = 2 ``max_leaf`` is how many labels a cluster takes: those whose points bring it
    the most probability, and its own. exp(u) starts as these sums, by the largest sum of the label, and 1 for the own cluster.
    Everything is then learned together on the cross-entropy of the label's probability.

    **What it stands in for.** LightXML (Jiang et al. 2021) has this head over a transformer, with clusters made from the
    labels' features; CascadeXML (Kharbanda et al. 2022) has clusters of several sizes (here ``levels=2``); ELIAS (Gupta et al.
    2022) learns how far a label belongs to each cluster (``"learned"``). Left out are the transformers, in whose place
    embeddings are averaged, CascadeXML's reading of each level from another layer, and of ELIAS: its softmax over clusters,
    because clusters here have a sigmoid each; new classifiers for the second half and a second loss, of the clusters' part
    only, because neither gained precision in trials on the TIB records; and a sparse ranker on top.
    With ``"none"`` there is only the hidden layer and every label, as in :class:`NeuralOneVsAll`.

    With ``label_features`` each label's words are one more training point. With ``soft`` = 0 it has that label, as in Renee
    (Jain et al. 2023); above 0 also the labels that occur with it, which are Gandalf's soft labels (:func:`soft_labels`).

    **Scores** are probabilities.

    Parameters
    ----------
    clusters : {"k-means", "random", "learned", "none"}
        By the features of the labels' points, by chance, by shares that are learned from k-means on, or none.
    levels : {1, 2}
        Sizes of clusters; "learned" and "none" have one.
    max_leaf : int
        Labels in a cluster at most; "learned" ends with twice as many, and some more.
    beam : int
        Clusters that a row opens, at each level.
    soft : float
        What the soft labels of other labels are multiplied with, in [0, 1].
    dim, dropout, epochs, batch, learning_rate, seed
        As for :class:`NeuralOneVsAll`.

    Notes
    -----
    A label without training positives is never predicted, and no more than about ``beam * max_leaf`` labels are predicted per
    point. The defaults are small, so that TIB trains in seconds; they are none of the papers'.

    The same seed gives the same bits on every machine, whatever the number of threads.

    Examples
    --------
    >>> import xcrepro as xc
    >>> data = xc.twin("eurlex-4k", scale=0.02, seed=0)
    >>> model = xc.models.ClusterNetwork(dim=16, epochs=2).fit(data.train.X, data.train.Y)
    >>> model.predict(data.test.X, k=3)
    TopK(n=76, k=3, n_labels=816)
    """

    clusters: str = "k-means"
    _: KW_ONLY
    levels: int = 1
    max_leaf: int = 10
    beam: int = 20
    soft: float = 0.0
    dropout: float = 0.2

    _LEAST = networks.Network._LEAST | {"max_leaf": 1, "beam": 1}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of("clusters", self.clusters, CLUSTERS)
        if whole_number("levels", self.levels, 1) > (2 if self.clusters in ("k-means", "random") else 1):
            rule = 'must be 1 or 2, and 1 for "learned" and "none"'
            raise ArgumentError("levels", rule, f"{self.levels} with clusters={self.clusters!r}")
        real_number("soft", self.soft, at_least=0, at_most=1)

    # ------------------------------------------------------------------ training

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        X, T = self._with_labels_as_points(X, truth)
        features = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
        labels = np.flatnonzero(np.bincount(T.indices, minlength=T.shape[1]))
        X, T = X[:, features], T[:, labels]
        parents = self._parents(X, T)
        net = self._start(features.size, targets := _targets(T, parents), parents)
        optimizer, room = adam.Adam(net), _ROOM * self.max_leaf
        below = 10 * self.beam * self.max_leaf * len(parents)
        work = self.dim * (targets[0].shape[1] / 3 + below)
        steps = networks.Steps(self, X.shape[0], (X, T), {"net": net, "adam": optimizer.state}, work)
        for epoch in steps.epochs():
            if self.clusters == "learned" and parents and epoch == self.epochs // 2:
                net |= _first_shares(net, X, T, self.beam, room)
                optimizer.add("share")
            for rows, rate in steps.batches():
                optimizer.start_step(rate)
                mask = self._dropped(rows.size, steps.rng)
                if "share" in net:
                    backpropagate_shares(net, X[rows], T[rows], mask, self.beam, room, optimizer.update)
                else:
                    backpropagate(net, X[rows], [one[rows] for one in targets], mask, self.beam, optimizer.update)
        if "share" in net:
            net["share"] = _shares(net, room)[0].astype(np.float32)
        self.net_ = {"features": features, "labels": labels, **net}

    def _with_labels_as_points(self, X: sparse.csr_matrix, truth: Truth) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """Rows of length 1 and their targets in [0, 1], float32; those of labels with words come last."""
        words = self._given_words(truth, X.shape[1])
        X, T = unit_rows(X).astype(np.float32), truth.to_csr().astype(np.float32)
        if words is None:
            return X, T
        there = np.flatnonzero(np.diff(words.indptr))
        own = sparse.identity(truth.n_labels, np.float32, "csr")
        alike = own.maximum(np.float32(self.soft) * soft_labels(truth)) if self.soft else own
        stacked = (sparse.vstack(two, format="csr") for two in ((X, unit_rows(words[there])), (T, alike[there])))
        return tuple(one.astype(np.float32) for one in stacked)

    def _parents(self, X: sparse.csr_matrix, T: sparse.csr_matrix) -> list[np.ndarray]:
        """For each level below the first, the parent of each node; labels are the last level."""
        n_labels = T.shape[1]
        if self.clusters == "none" or n_labels <= self.max_leaf:
            return []
        wide = -(-n_labels // self.max_leaf)
        arity = max(2, wide if self.levels == 1 else math.isqrt(wide - 1) + 1)
        shape = "random" if self.clusters == "random" else "k-means"
        tree = plt.PLT(trees=1, tree=shape, arity=arity, max_leaf=self.max_leaf, seed=self.seed)
        plan = tree._grow(plt._rows(X), (T > 0).tocsc(), [0], map)[0]
        found, nodes = [], plan.parts[0]
        for _ in range(self.levels - 1):
            below = [plan.parts.get(node, [node]) for node in nodes]
            found.append(np.repeat(np.arange(len(nodes)), [len(one) for one in below]))
            nodes = [node for one in below for node in one]
        cluster = np.empty(n_labels, np.int64)
        for number, node in enumerate(nodes):
            cluster[plan.order[slice(*plan.ranges[node])]] = number
        return [*found, cluster]

    def _start(self, n_features: int, targets: list[sparse.csr_matrix], parents: list[np.ndarray]) -> dict:
        net = {
            "embedding": drawn_weights(self.seed, 0, _EMBEDDING_SCALE, n_features, self.dim),
            "hidden_bias": np.zeros(self.dim, np.float32),
        }
        above = np.zeros(0)
        for level, target in enumerate(targets):
            counts = np.asarray(target.sum(axis=0, dtype=np.float64)).ravel()
            # A label's bias is that of its share of the rows that have its cluster.
            rows = above[parents[level - 1]] if level else target.shape[0]
            share = (counts + 0.5) / (np.maximum(rows, counts) + 1.0)
            deviation = 0.5 / math.sqrt(self.dim)
            net[f"output{level}"] = drawn_weights(self.seed, level + 1, deviation, counts.size, self.dim)
            net[f"bias{level}"] = arithmetic.log(share / (1.0 - share)).astype(np.float32)
            above = counts
        return net | {f"parent{level + 1}": parent for level, parent in enumerate(parents)}

    # ------------------------------------------------------------------ prediction

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        X, net, labels = unit_rows(X).astype(np.float32)[:, self.net_["features"]], self.net_, self.net_["labels"]

        def search(stretch: slice) -> TopK:
            hidden = neural._hidden(net, X[stretch])
            reach = _probabilities(net, 0, hidden, None)
            for level in range(1, _depth(net)):
                opened = _open(net, level, TopK.from_scores(reach, min(self.beam, reach.shape[1])).to_csr())
                reach = _probabilities(net, level, hidden, opened)
                reach.data *= opened.data
            top = TopK.from_scores(reach, k)
            return TopK(np.where(top.ids < 0, -1, labels[top.ids]).astype(np.int32), top.scores, self.n_labels_)

        return by_stretches(search, X.shape[0], k, self.n_labels_, _ROWS)

    # ------------------------------------------------------------------ files

    def _state(self) -> dict[str, np.ndarray]:
        return self.net_

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        net = dict(arrays)
        n_features, depth = net["features"].size, _depth(net)
        check_weights("embedding", net["embedding"], n_features, self.dim)
        check_weights("hidden_bias", net["hidden_bias"], self.dim)
        sizes = [net[f"bias{level}"].size for level in range(depth)]
        check_ids("features", net["features"], n_features, self.n_features_)
        check_ids("labels", net["labels"], sizes[-1], self.n_labels_)
        for level, size in enumerate(sizes):
            check_weights(f"output{level}", net[f"output{level}"], size, self.dim)
            check_weights(f"bias{level}", net[f"bias{level}"], size)
            if level:
                check_ids(f"parent{level}", net[f"parent{level}"], size, sizes[level - 1], rising=False)
        if "share" in net:
            check_weights("share", net["share"], -1)
            checked_csr("share", _below(net, 1))
        self.net_ = net


def soft_labels(Y, least: float = 0.1) -> sparse.csr_matrix:
    """Which labels occur together: for each label the soft labels of a point that is only known to have it.

    A walk goes from a label to one of its points, by chance, and from there to one of the point's labels. A label's row has the
    probability of each end, divided by that of coming back, so that its own entry is 1. Gandalf (Kharbanda et al. 2024) counts
    where long sampled walks with restarts come by; the walk here has two steps and is not sampled.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth, any form :class:`xcrepro.core.truth.Truth` takes.
    least : float
        Smaller entries are left out; the default is Gandalf's.

    Returns
    -------
    csr_matrix of float32, shape (L, L)
        In [0, 1]; empty rows for labels without points.

    Examples
    --------
    >>> soft_labels([[1, 1, 0], [1, 0, 0]]).toarray().round(2)
    array([[1.  , 0.33, 0.  ],
           [1.  , 1.  , 0.  ],
           [0.  , 0.  , 0.  ]], dtype=float32)
    """
    Y = as_truth(Y).to_csr().astype(np.float64)
    by_point = sparse.diags(1 / np.maximum(np.asarray(Y.sum(axis=1)).ravel(), 1))
    walks = (Y.T @ (by_point @ Y)).tocsr()
    back = walks.diagonal()
    walks = (sparse.diags(1 / np.where(back > 0, back, 1)) @ walks).tocsr()
    walks.data = np.where(walks.data < real_number("least", least, at_least=0, at_most=1), 0, np.minimum(walks.data, 1))
    walks.eliminate_zeros()
    walks.sort_indices()
    return walks.astype(np.float32)


def backpropagate(
    net: dict[str, np.ndarray],
    X: sparse.csr_matrix,
    targets: list[sparse.csr_matrix],
    mask: np.ndarray,
    beam: int,
    update: Callable[[str, slice | np.ndarray, np.ndarray], None],
) -> None:
    """The gradient of the batch's mean loss over what is opened, handed to ``update(name, rows of that array, gradient)``."""
    tanh = neural._hidden(net, X)
    hidden, n = tanh * mask, np.float32(X.shape[0])
    reach = _probabilities(net, 0, hidden, None)
    error = (reach - targets[0].toarray()) / n
    slope = arithmetic.product(error, net["output0"])
    found: list[tuple[str, Any, Any]] = [
        ("output0", slice(None), arithmetic.product(error.T, hidden)),
        ("bias0", slice(None), error.sum(axis=0)),
    ]
    for level in range(1, len(targets)):
        opened = _open(net, level, TopK.from_scores(reach, min(beam, reach.shape[1])).to_csr(), targets[level - 1])
        reach = _probabilities(net, level, hidden, opened)
        target = targets[level]
        error = ((reach - target) / n).tocsr()
        nodes = np.flatnonzero(np.bincount(error.indices, minlength=error.shape[1]))
        error = error[:, nodes]
        slope += error @ net[f"output{level}"][nodes]
        found.append((f"output{level}", nodes, error.T.tocsr() @ hidden))
        found.append((f"bias{level}", nodes, np.asarray(error.sum(axis=0)).ravel()))
        reach.data *= opened.data
    _hand_over(found, X, slope, mask, tanh, update)


def backpropagate_shares(
    net: dict[str, np.ndarray],
    X: sparse.csr_matrix,
    T: sparse.csr_matrix,
    mask: np.ndarray,
    beam: int,
    room: int,
    update: Callable[[str, slice | np.ndarray, np.ndarray], None],
) -> None:
    """As :func:`backpropagate`, where clusters have shares of labels: of the loss of the labels' whole probabilities q s.

    q = min(1, sum over the opened clusters of p times the share), and s is the label's own.
    """
    tanh = neural._hidden(net, X)
    hidden, (n, n_labels) = tanh * mask, T.shape
    p = _probabilities(net, 0, hidden, None)
    share, softmax, owner = _shares(net, room)
    chosen = TopK.from_scores(p, min(beam, p.shape[1])).to_csr()
    opened = _with_relevant(chosen, _targets(T, [net["parent1"]])[0])
    opened.sort_indices()
    cluster, row = opened.indices, np.repeat(np.arange(n), np.diff(opened.indptr))
    p = np.maximum(p[row, cluster], _LEAST).astype(np.float64)
    # Every way from a row through an opened cluster to one of its labels: its place in opened, and that of the share.
    sizes = np.diff(net["share_start"])[cluster]
    way = np.repeat(np.arange(cluster.size), sizes)
    entry = np.arange(way.size) + np.repeat(net["share_start"][cluster] - np.cumsum(sizes) + sizes, sizes)
    reached, end = np.unique(row[way] * n_labels + net["share_label"][entry], return_inverse=True)
    at, label = np.divmod(reached, n_labels)
    indptr = np.searchsorted(at, np.arange(n + 1))
    asked = sparse.csr_matrix((np.ones(at.size, np.float32), label, indptr), T.shape)
    own = _probabilities(net, 1, hidden, asked).data.astype(np.float64)
    q = np.bincount(end, p[way] * share[entry], at.size)
    free, q = q < 1, np.minimum(q, 1)
    both, wanted = q * own, np.asarray(T[at, label]).ravel().astype(np.float64)
    error = (both - wanted) / np.maximum(1 - both, _EDGE) / n  # by both, times both
    by_q = np.where(free, error / q, 0)[end]
    by_p = np.bincount(way, by_q * share[entry], cluster.size) * p * (1 - p)
    by_share = np.bincount(entry, by_q * p[way], share.size) * (share < 1)
    by_u = room * softmax * (by_share - np.bincount(owner, by_share * softmax)[owner])
    slope = np.zeros_like(hidden)
    found: list[tuple[str, Any, Any]] = [("share", slice(None), by_u.astype(np.float32))]
    for level, values, ids, starts in ((0, by_p, cluster, opened.indptr), (1, error * (1 - own), label, indptr)):
        nodes, ids = np.unique(ids, return_inverse=True)
        errors = sparse.csr_matrix((values.astype(np.float32), ids, starts), (n, nodes.size))
        slope += errors @ net[f"output{level}"][nodes]
        found.append((f"output{level}", nodes, errors.T.tocsr() @ hidden))
        found.append((f"bias{level}", nodes, np.asarray(errors.sum(axis=0)).ravel()))
    _hand_over(found, X, slope, mask, tanh, update)


def _hand_over(
    slopes: list, X: sparse.csr_matrix, slope: np.ndarray, mask: np.ndarray, tanh: np.ndarray, update
) -> None:
    """What was found for the outputs, and for the first layer the slopes by the hidden layer, carried on."""
    slope *= mask
    slope *= 1 - tanh * tanh
    for one in (*slopes, ("embedding", slice(None), X.T @ slope), ("hidden_bias", slice(None), slope.sum(axis=0))):
        update(*one)


# ---------------------------------------------------------------------- helpers


def _depth(net: dict[str, np.ndarray]) -> int:
    return sum(name.startswith("output") for name in net)


def _members(parent: np.ndarray, n_parents: int) -> sparse.csr_matrix:
    """(nodes, parents), 1 where it is the parent."""
    ones = np.ones(parent.size, np.float32)
    return sparse.csr_matrix((ones, parent, np.arange(parent.size + 1)), (parent.size, n_parents))


def _targets(T: sparse.csr_matrix, parents: list[np.ndarray]) -> list[sparse.csr_matrix]:
    """Of each level: a cluster has the sum of its labels' targets, 1 at most."""
    found = [T]
    for parent in reversed(parents):
        above = (found[0] @ _members(parent, int(parent.max()) + 1)).tocsr()
        above.data = np.minimum(above.data, 1)
        above.sort_indices()
        found.insert(0, above)
    return found


def _below(net: dict, level: int) -> sparse.csr_matrix:
    """(parents, nodes of a level), how far each node belongs to each parent."""
    n_parents, n_nodes = net[f"bias{level - 1}"].size, net[f"bias{level}"].size
    if "share" in net:
        matrix = sparse.csr_matrix((n_parents, n_nodes), dtype=np.float32)
        matrix.data, matrix.indices, matrix.indptr = net["share"], net["share_label"], net["share_start"]
        return matrix
    return _members(net[f"parent{level}"], n_parents).T.tocsr()


def _with_relevant(chosen: sparse.csr_matrix, relevant: sparse.csr_matrix | None) -> sparse.csr_matrix:
    """Chosen parents and, where they are known, the relevant ones."""
    chosen.data = np.maximum(chosen.data, _LEAST)
    if relevant is None:
        return chosen
    more = relevant.copy()
    more.data = np.full_like(more.data, _LEAST)
    return chosen.maximum(more)


def _open(net: dict, level: int, chosen: sparse.csr_matrix, relevant: sparse.csr_matrix | None = None):
    """The nodes below those that are chosen, or relevant: the probability of coming to the parent for each."""
    chosen = _with_relevant(chosen, relevant)
    opened = (chosen @ _below(net, level)).tocsr()
    opened.data = np.minimum(opened.data, 1)
    opened.sort_indices()
    return opened


def _probabilities(net: dict, level: int, hidden: np.ndarray, opened: sparse.csr_matrix | None):
    """Of nodes given their parents: of all, (n, nodes), or of those that are opened, as a sparse matrix."""
    output, bias = net[f"output{level}"], net[f"bias{level}"]
    if opened is None:
        return arithmetic.sigmoid32(arithmetic.product(hidden, output.T) + bias)
    rows = np.repeat(np.arange(opened.shape[0]), np.diff(opened.indptr))
    z = (hidden[rows] * output[opened.indices]).sum(axis=1) + bias[opened.indices]
    p = np.maximum(arithmetic.sigmoid32(z), _LEAST)
    return sparse.csr_matrix((p, opened.indices, opened.indptr), opened.shape)


def _first_shares(net: dict, X: sparse.csr_matrix, T: sparse.csr_matrix, beam: int, room: int) -> dict[str, np.ndarray]:
    """Which labels each cluster may have, and the logarithms of its shares before they are learned."""
    opened = []
    for lo in range(0, X.shape[0], _ROWS):
        p = _probabilities(net, 0, neural._hidden(net, X[lo : lo + _ROWS]), None)
        opened.append(TopK.from_scores(p, min(beam, p.shape[1])).to_csr())
    brought = (T.T.tocsr() @ sparse.vstack(opened, format="csr")).tocsr()
    most = np.maximum(brought.max(axis=1).toarray().ravel(), _LEAST)
    best = TopK.from_scores(brought.T.tocsr(), min(room, T.shape[1])).to_csr()
    best.data /= most[best.indices]
    shares = best.maximum(_members(net["parent1"], best.shape[0]).T.tocsr()).tocsr()
    shares.sort_indices()
    logs = arithmetic.log(np.maximum(shares.data.astype(np.float64), _LEAST_SHARE)).astype(np.float32)
    return {"share": logs, "share_label": shares.indices, "share_start": shares.indptr}


def _shares(net: dict, room: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each entry the share, the softmax of its cluster's entries, and the cluster."""
    starts, u = net["share_start"], net["share"].astype(np.float64)
    owner = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    exp = arithmetic.exp(u - np.maximum.reduceat(u, starts[:-1])[owner])
    softmax = exp / np.bincount(owner, exp)[owner]
    return np.minimum(room * softmax, 1), softmax, owner
