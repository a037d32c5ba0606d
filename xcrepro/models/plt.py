"""Probabilistic label trees: balanced 2-means on label features, linear nodes, exact search with label weights."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from xcrepro import threads
from xcrepro.arguments import label_values, one_of, real_number, whole_number
from xcrepro.errors import ArgumentError
from xcrepro.kernels import plt_search, plt_train
from xcrepro.models.base import Model, unit_rows
from xcrepro.predictions import TopK, empty_places
from xcrepro.truth import Truth

_KMEANS_ROUNDS = 100
_UPDATES = {"probability": plt_search.PROBABILITY, "gain": plt_search.GAIN}


@dataclass(eq=False)
class PLT(Model):
    """An ensemble of probabilistic label trees (coverage, appendix A).

    A tree splits the labels by balanced k-means on their features, the mean of their positives' unit rows, until no part
    has more than ``max_leaf`` labels; these are the children of the last inner node. A node's linear classifier, trained
    on the points that have a label below the node's parent, gives P(a label below the node | one below its parent). The
    product along a label's path is eta_l(x) (eq. 29), and an ensemble takes the mean over its trees. The root is certain:
    a point without labels is a negative of all its children. Rows of X are scaled to unit length, here and in ``predict``.

    Parameters
    ----------
    trees : int
        How many, each grown from its own random centroids.
    max_leaf, arity : int
        Labels under the last inner node at most; parts of a split.
    loss : {"logistic", "squared_hinge"}
        Probabilities 1 / (1 + exp(-z)), or exp(-max(0, 1 - z)^2).
    C, eps, max_iter
        liblinear's cost, stopping tolerance and rounds at most, for its dual solvers.
    threshold : float
        Weights that are smaller are dropped, the bias never.
    kmeans_eps : float
        The clustering stops when the mean similarity gains no more than this.
    seed : int
        The result depends on it and not on the number of threads.

    Notes
    -----
    The defaults are napkinXC's but for its one tree; Parabel's are ``loss="squared_hinge", C=1``.

    A label without a training positive is in no tree: it is never predicted, and where fewer than k labels are left, the
    last places are absent (-1).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> model = PLT(trees=2, max_leaf=2, C=100).fit(X, X)      # feature l says label l
    >>> model.predict(X[::4], k=1).ids.ravel()
    array([0, 1, 2], dtype=int32)
    >>> model.predict(X[::4], k=1, weights=[0, 1, 0]).ids.ravel()
    array([1, 1, 1], dtype=int32)
    """

    trees: int = 3
    max_leaf: int = 100
    arity: int = 2
    loss: str = "logistic"
    C: float = 10.0
    eps: float = 0.1
    max_iter: int = 100
    threshold: float = 0.1
    kmeans_eps: float = 1e-4
    seed: int = 0

    # ------------------------------------------------------------------ predict

    def predict(self, X, k: int = 5, weights=None, *, return_proba: bool = False):
        """The k labels of greatest w_l eta_l(x), exactly: what scoring all labels would give, ties to the lowest id.

        Parameters
        ----------
        X : sparse matrix or array_like, shape (n, D)
        k : int
            1 or more.
        weights : array_like of float, shape (L,), optional
            w, finite, 0 or more; None is 1 everywhere, to the last bit. The inverse propensities maximise PSP@k (coverage,
            eq. 7).
        return_proba : bool
            Give the probabilities of the labels chosen as well.

        Returns
        -------
        TopK
            Scores are the products: without weights the probabilities themselves.
        ndarray of float32, shape (n, k)
            With ``return_proba``: the probabilities eta, 0 where a place is absent.

        Raises
        ------
        ArgumentError
            For a k, X or weights that break these rules.
        """
        X = self._features(X)
        top, proba = self._search(X, whole_number("k", k, 1), weights)
        return (top, proba) if return_proba else top

    def predict_coverage(
        self,
        X,
        k: int = 5,
        beta: float = 0.0,
        *,
        update: str = "probability",
        per_tree: bool = False,
        return_proba: bool = False,
    ):
        """Greedy choice for coverage@k in the trees (coverage, algorithm 2; with beta, section 5's COV_beta).

        Row after row, the k labels of greatest gain (f_l + beta) eta_l(x), where f_l is the estimated probability that l
        was right on none of the rows it was chosen for: 1 at first, times 1 - eta_l(x) whenever l is chosen. The order of the
        rows matters, so they cannot be shared among threads. It is what algorithm 1
        (:func:`xcrepro.decide.greedy_coverage`) chooses from ``predict_proba(X, k=L)`` in float64, label for label, with
        either update.

        Parameters
        ----------
        X, k, return_proba
            As for :meth:`predict`.
        beta : float
            0 looks at coverage alone; the larger it is, the nearer to plain ``predict``, which infinity is.
        update : {"probability", "gain"}
            What a chosen label's f loses: see :func:`xcrepro.decide.greedy_coverage`.
        per_tree : bool
            Each tree chooses k labels by its own probabilities and its own f, and what is returned are the k of greatest mean
            gain over the trees, ties to the lowest id; in a tree that did not choose a label its gain counts 0.

        Returns
        -------
        TopK
            Places are in the order of gain, and scores are the gains, their means with ``per_tree``; ``return_proba``
            adds the probabilities.

        Raises
        ------
        ArgumentError
            For a beta below 0, another update, ``return_proba`` with ``per_tree``, and as :meth:`predict`.
        """
        beta = real_number("beta", beta, at_least=0, finite=False)
        update, k = _UPDATES[one_of("update", update, tuple(_UPDATES))], whole_number("k", k, 1)
        if per_tree and return_proba:
            do = "leave one of the two out"
            raise ArgumentError("return_proba", "must be False with per_tree, where a label has one a tree", True, do)
        X = self._features(X)
        if beta == np.inf:
            update, beta = plt_search.KEEP, 0.0
        if per_tree:
            tops = [self._search(X, k, None, beta, update, tree)[0] for tree in range(self._forest.leaf.shape[0])]
            return _mean_score(tops, k)
        top, proba = self._search(X, k, None, beta, update)
        return (top, proba) if return_proba else top

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        return self._search(X, k, None)[0]

    def _search(
        self,
        X: sparse.csr_matrix,
        k: int,
        weights,
        beta: float = 0.0,
        update: int = plt_search.KEEP,
        tree: int | None = None,
    ):
        """The search in one tree, or in all."""
        if weights is None:
            weights = np.ones(self.n_labels_)
        weights = label_values("weights", weights, self.n_labels_)
        unit = _rows(unit_rows(X))
        n = X.shape[0]
        ids, scores = empty_places(n, k)
        proba = np.zeros((n, k), np.float32)
        forest, roots = self._forest, np.arange(self._forest.leaf.shape[0])
        if tree is not None:
            forest, roots = forest._replace(leaf=forest.leaf[tree : tree + 1]), roots[tree : tree + 1]
        best = np.empty(forest.chunk.size)
        plt_search.best_below(forest, weights, best)

        def rows(lo: int, hi: int) -> None:
            plt_search.search(
                forest, roots, *unit[:3], weights, best, beta, update, self._squared_hinge, lo, hi, ids, scores, proba
            )  # fmt: skip

        if update == plt_search.KEEP:
            threads.over_rows(n, rows, min_rows=64)
        else:
            rows(0, n)
        return TopK(ids, scores, self.n_labels_), proba

    # ------------------------------------------------------------------ fit

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        unit = unit_rows(X).astype(np.float32)
        rows = _rows(unit)
        positives = truth.to_csr().tocsc()
        labels = np.flatnonzero(np.diff(positives.indptr)).astype(np.int32)
        positives = positives[:, labels]
        features = sparse.csr_matrix(positives.T @ unit)
        features.sort_indices()
        workers = threads.count()
        with ThreadPoolExecutor(workers) as pool:

            def run(work: Callable, jobs: list) -> list:
                return [work(job) for job in jobs] if workers == 1 else list(pool.map(work, jobs))

            plans = self._grow(_rows(unit_rows(features)), labels.size, run)
            chunks, trained, n_points = self._train(rows, positives, plans, run)
        forest = _assemble(plans, chunks, trained, labels, truth.n_labels)
        self._restore({**forest, "n_points": n_points, "squared_hinge": np.array(self.loss == "squared_hinge")})

    def _check_parameters(self) -> None:
        for name, least in (("trees", 1), ("max_leaf", 1), ("arity", 2), ("max_iter", 1), ("seed", 0)):
            whole_number(name, getattr(self, name), least)
        for name in ("C", "eps"):
            real_number(name, getattr(self, name), above=0)
        for name in ("threshold", "kmeans_eps"):
            real_number(name, getattr(self, name), at_least=0)
        one_of("loss", self.loss, ("logistic", "squared_hinge"))

    def _grow(self, features: _Rows, n_labels: int, run: Callable) -> list[_Plan]:
        """The trees, level after level; the splits of a level, of all trees, are independent of each other."""
        plans = [_Plan(n_labels, self.max_leaf) for _ in range(self.trees)]

        def split(job: tuple[int, int]) -> np.ndarray:
            tree, node = job
            labels = plans[tree].order[slice(*plans[tree].ranges[node])]
            arity = min(self.arity, labels.size)
            first = np.random.default_rng([self.seed, tree, node]).choice(labels.size, arity, replace=False)
            gathered = plt_train.gather(*features[:3], labels.astype(np.int64), features.n_features)
            return plt_train.cluster(*gathered, first, float(self.kmeans_eps), _KMEANS_ROUNDS)

        while jobs := [(tree, node) for tree, plan in enumerate(plans) for node in plan.large()]:
            for (tree, node), clusters in zip(jobs, run(split, jobs), strict=True):
                plans[tree].divide(node, clusters)
        return plans

    def _train(self, X: _Rows, positives: sparse.csc_matrix, plans: list[_Plan], run: Callable):
        """Train all chunks of all trees, the largest first. Returns the chunks (tree, node), their results, their points."""
        chunks = [(tree, node) for tree, plan in enumerate(plans) for node in plan.inner()]
        columns = [positives[:, plan.order] for plan in plans]
        trained = [None] * len(chunks)
        n_points = np.empty(len(chunks), np.int64)

        def train(at: int) -> None:
            tree, node = chunks[at]
            starts, found = columns[tree].indptr, columns[tree].indices
            lo, hi = plans[tree].ranges[node]
            rows = np.arange(X.indptr.size - 1) if node == 0 else np.unique(found[starts[lo] : starts[hi]])
            # A label's own points rise already.
            parts = [
                found[starts[a] : starts[b]] if b - a == 1 else np.unique(found[starts[a] : starts[b]])
                for a, b in plans[tree].children(node)
            ]
            positive_start = np.cumsum([0, *map(len, parts)])
            places = np.searchsorted(rows, np.concatenate(parts))
            key = np.random.SeedSequence([self.seed, tree, node]).generate_state(1, np.uint64)[0]
            gathered = plt_train.gather(*X[:3], rows.astype(np.int64), X.n_features)
            trained[at] = plt_train.train(
                *gathered, positive_start, places, self.loss == "squared_hinge",
                float(self.C), float(self.eps), int(self.max_iter), float(self.threshold), key,
            )  # fmt: skip
            n_points[at] = rows.size

        def size(at: int) -> int:
            tree, node = chunks[at]
            lo, hi = plans[tree].ranges[node]
            return int(columns[tree].indptr[hi] - columns[tree].indptr[lo]) * len(plans[tree].children(node))

        run(train, sorted(range(len(chunks)), key=size, reverse=True))
        return chunks, trained, n_points

    # ------------------------------------------------------------------ what was learned

    @property
    def n_nodes_(self) -> int:
        """Nodes of all trees, roots and labels included."""
        self._check_fitted()
        return self._forest.chunk.size

    def structure(self):
        """The trees as a DataFrame, a row for each node, parents before children, the roots first.

        tree; parent (a row of the table, -1 for roots); depth (0 for roots); label (-1 for inner nodes); n_labels below it;
        n_train: points its own classifier was trained on (0 for roots); n_weights: how many are not 0, the bias left out.
        """
        import pandas as pd

        self._check_fitted()
        forest = self._forest
        n_trees = forest.leaf.shape[0]
        chunk_sizes = np.diff(forest.child_start)
        parent = np.append(np.full(n_trees, -1, np.int32), np.repeat(forest.owner, chunk_sizes))
        tree, depth = np.arange(parent.size), np.zeros(parent.size, np.int64)
        n_labels = (forest.label >= 0).astype(np.int64)
        for c, v in enumerate(forest.owner):
            children = slice(forest.child_start[c], forest.child_start[c + 1])
            tree[children], depth[children] = tree[v], depth[v] + 1
        for c, v in reversed(list(enumerate(forest.owner))):
            n_labels[v] = n_labels[forest.child_start[c] : forest.child_start[c + 1]].sum()
        per_chunk = np.diff(forest.weight_start[forest.feature_start])  # weights
        node = np.repeat(forest.child_start[:-1], per_chunk) + forest.child
        return pd.DataFrame(
            {
                "tree": tree,
                "parent": parent,
                "depth": depth,
                "label": forest.label,
                "n_labels": n_labels,
                "n_train": np.append(np.zeros(n_trees, np.int64), np.repeat(self._n_points, chunk_sizes)),
                "n_weights": np.bincount(node[forest.weight != 0], minlength=parent.size),
            }
        )

    def _state(self) -> dict[str, np.ndarray]:
        others = {"n_points": self._n_points, "squared_hinge": np.array(self._squared_hinge)}
        return {**self._forest._asdict(), **others}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._forest = plt_search.Forest(*(np.ascontiguousarray(arrays[name]) for name in plt_search.Forest._fields))
        self._n_points, self._squared_hinge = arrays["n_points"], bool(arrays["squared_hinge"])

    def _check_read(self) -> None:
        """Refuse trees that the search would walk out of, whoever wrote them; ``plt_search`` says what the arrays are."""
        f = self._forest
        nodes, chunks, n_trees = f.chunk.size, f.owner.size, len(f.leaf)
        sizes = np.diff(f.child_start)
        places = np.repeat(np.arange(chunks), np.maximum(sizes, 0))
        weights = np.diff(f.weight_start)
        rules = {
            "trees": n_trees >= 1 and f.leaf.shape == (n_trees, self.n_labels_) and nodes >= n_trees,
            "nodes": f.label.size == f.above.size == f.bias.size == nodes,
            "points": self._n_points.size == chunks,
            "chunks": _runs(f.child_start, chunks, n_trees, nodes),
            "parents": bool((f.owner >= 0).all() and (f.owner < f.child_start[:-1]).all()),
            "features": _runs(f.feature_start, chunks, 0, f.features.size) and _inside(f.features, 0, self.n_features_),
            "weights": _runs(f.weight_start, f.features.size, 0, f.weight.size) and f.child.size == f.weight.size,
            "labels": _inside(f.label, -1, self.n_labels_) and _inside(f.leaf, -1, nodes),
        }
        # Each looks at what those before it have found sound.
        _refuse(rules)
        chunk = np.full(nodes, -1)
        chunk[f.owner] = np.arange(chunks)
        above = np.concatenate([np.full(n_trees, -1), places])
        children = np.repeat(np.repeat(sizes, np.diff(f.feature_start)), weights)
        has_node = f.leaf >= 0
        _refuse(
            {
                "children": np.array_equal(f.chunk, chunk) and np.array_equal(f.above, above),
                "leaves": bool(((f.label < 0) | (f.chunk < 0)).all()) and bool((has_node == has_node[0]).all()),
                "nodes of labels": bool((f.label[f.leaf] == np.arange(self.n_labels_))[has_node].all()),
                "labels without a node": bool(has_node[0][f.label[f.label >= 0]].all()),
                "places of weights": bool((f.child >= 0).all() and (f.child < children).all()),
            }
        )


def _runs(starts: np.ndarray, count: int, first: int, last: int) -> bool:
    """Whether ``starts`` cuts first..last into ``count`` runs."""
    return (
        starts.shape == (count + 1,)
        and (int(starts[0]), int(starts[-1])) == (first, last)
        and bool((np.diff(starts.astype(np.int64)) >= 0).all())
    )


def _inside(ids: np.ndarray, low: int, end: int) -> bool:
    return ids.dtype.kind in "iu" and (ids.size == 0 or (int(ids.min()) >= low and int(ids.max()) < end))


def _refuse(rules: dict[str, bool]) -> None:
    if broken := [name for name, holds in rules.items() if not holds]:
        raise ValueError(f"its {broken[0]} do not fit each other")


def _mean_score(tops: list[TopK], k: int) -> TopK:
    """The k labels of greatest mean score; where a label is absent it counts 0."""
    n = len(tops[0])
    ids, scores = np.hstack([top.ids for top in tops]), np.hstack([top.scores for top in tops]).astype(np.float64)
    rows, places = np.nonzero(ids >= 0)
    entries = scores[rows, places] / len(tops), (rows, ids[rows, places])
    return TopK.from_scores(sparse.coo_matrix(entries, shape=(n, tops[0].n_labels)).tocsr(), k)


class _Plan:
    """A tree that grows: each node is a stretch of ``order``, the labels in the order of the tree's leaves."""

    def __init__(self, n_labels: int, max_leaf: int) -> None:
        self.max_leaf = max_leaf
        self.order = np.arange(n_labels, dtype=np.int32)
        self.ranges = [(0, n_labels)]
        self.parts: dict[int, list[int]] = {}  # of the nodes that were divided

    def large(self) -> list[int]:
        """The nodes that are still to be divided."""
        return [node for node, (lo, hi) in enumerate(self.ranges) if hi - lo > self.max_leaf and node not in self.parts]

    def divide(self, node: int, clusters: np.ndarray) -> None:
        lo, hi = self.ranges[node]
        self.order[lo:hi] = self.order[lo:hi][np.argsort(clusters, kind="stable")]
        edges = lo + np.cumsum([0, *np.bincount(clusters)])
        self.parts[node] = list(range(len(self.ranges), len(self.ranges) + edges.size - 1))
        self.ranges += [(int(a), int(b)) for a, b in pairwise(edges)]

    def inner(self) -> list[int]:
        return [node for node, (lo, hi) in enumerate(self.ranges) if node == 0 or hi - lo > 1]

    def children(self, node: int) -> list[tuple[int, int]]:
        if node in self.parts:
            return [self.ranges[part] for part in self.parts[node]]
        return [(i, i + 1) for i in range(*self.ranges[node])]


def _assemble(plans, chunks, trained, labels: np.ndarray, n_labels: int) -> dict[str, np.ndarray]:
    """The arrays of :class:`xcrepro.kernels.plt_search.Forest` out of the chunks' results."""
    features, starts, child, weight, bias = zip(*trained, strict=True)
    n_trees = len(plans)
    child_start = n_trees + np.cumsum([0, *map(len, bias)])
    n_nodes = int(child_start[-1])
    node_of = {(tree, 0): tree for tree in range(n_trees)}
    chunk, label, above = (np.full(n_nodes, -1, np.int32) for _ in range(3))
    owner = np.empty(len(chunks), np.int32)
    leaf = np.full((n_trees, n_labels), -1, np.int32)
    for c, (tree, node) in enumerate(chunks):
        plan, first, last = plans[tree], child_start[c], child_start[c + 1]
        owner[c] = node_of.pop((tree, node))
        chunk[owner[c]] = c
        above[first:last] = c
        for v, part in enumerate(plan.parts.get(node, ()), first):
            node_of[tree, part] = v
        is_leaf = np.array([b - a == 1 for a, b in plan.children(node)])
        places = np.array([a for a, _ in plan.children(node)])[is_leaf]
        found = labels[plan.order[places]]
        label[first:last][is_leaf] = found
        leaf[tree, found] = first + np.flatnonzero(is_leaf)
    kept = [0, *(part[-1] for part in starts)]
    return {
        "chunk": chunk,
        "label": label,
        "above": above,
        "owner": owner,
        "child_start": child_start.astype(np.int64),
        "leaf": leaf,
        "feature_start": np.cumsum([0, *map(len, features)]).astype(np.int64),
        "features": np.concatenate(features),
        "weight_start": np.concatenate(
            [[0], *(part[1:] + base for part, base in zip(starts, np.cumsum(kept)[:-1], strict=True))]
        ).astype(np.int64),
        "child": np.concatenate(child),
        "weight": np.concatenate(weight),
        "bias": np.concatenate([np.ones(n_trees, np.float32), *bias]),
    }


class _Rows(NamedTuple):
    """Rows as the kernels take them, in one set of dtypes: int64, int32, float32."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    n_features: int


def _rows(X: sparse.csr_matrix) -> _Rows:
    return _Rows(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float32), X.shape[1])
