"""Probabilistic label trees of four shapes: linear nodes, exact search with label weights, training that can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, overload

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, threads
from xcrepro.core.arguments import label_values, one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.predictions import TopK, empty_places
from xcrepro.core.truth import Truth
from xcrepro.models.base import check_array, unit_rows
from xcrepro.models.kernels import plt_search, plt_train
from xcrepro.models.progress import Progress
from xcrepro.models.resumable import Checkpoint, Resumable

_KMEANS_ROUNDS = 100
# All nodes are opened, a block of rows at a time, where the trees have no more than _FEW_NODES and k times _MANY is L or more,
# or the choice is greedy: that opens most of them.
_MANY, _FEW_NODES, _BLOCK = 500, 30_000, 64
_BYTE = 256  # children of a chunk whose places fit into one byte
_ROWS = 4096  # until how far it is may be said, where nodes are opened row by row
# Nodes with a larger share of the work than one in so many are trained first; labels whose features are made in one go.
_SHARES, _LABELS = 256, 4096
_LEAST_ROOM = 2**16  # numbers that an array that grows has room for
_SHAPES = ("k-means", "random", "frequency", "flat")
_UPDATES = {"probability": plt_search.PROBABILITY, "gain": plt_search.GAIN}


@dataclass(eq=False)
class PLT(Resumable):
    """An ensemble of probabilistic label trees (coverage, appendix A).

    A tree splits the labels, by balanced k-means on their features (the mean of their positives' unit rows) or as ``tree``
    says, until no part has more than ``max_leaf`` labels; these are the children of the last inner node. A node's linear
    classifier, trained on the points that have a label below the node's parent, gives P(a label below the node | one below
    its parent). The
    product along a label's path is eta_l(x) (eq. 29), and an ensemble takes the mean over its trees. The root is certain:
    a point without labels is a negative of all its children. Rows of X are scaled to unit length, here and in ``predict``.

    Parameters
    ----------
    trees : int
        How many, each grown from its own random centroids.
    max_leaf, arity : int
        Labels under the last inner node at most; parts of a split. With ``arity`` = L / ``max_leaf``, k-means gives one
        level of clusters.
    tree : {"k-means", "random", "frequency", "flat"}
        How labels are split. ``"random"``: at random, into parts that are as large as those of k-means. ``"frequency"``: from
        the most frequent label to the rarest (equal ones by id), cut where the parts have equally many training positives,
        as Shannon and Fano cut a code: frequent labels stand near the root. ``"flat"``: not at all; every label is a child of
        the root and sees all points (one-vs-rest), ``max_leaf`` and ``arity`` count for nothing, and one thread trains it.
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
    tree: str = "k-means"

    # ------------------------------------------------------------------ predict

    @overload
    def predict(self, X, k: int = 5, weights=None) -> TopK: ...

    @overload
    def predict(self, X, k: int = 5, weights=None, *, return_proba: Literal[False]) -> TopK: ...

    @overload
    def predict(self, X, k: int = 5, weights=None, *, return_proba: Literal[True]) -> tuple[TopK, np.ndarray]: ...

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
        [(top, proba)] = self._search(X, whole_number("k", k, 1), weights)
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
        kind, k = _UPDATES[one_of("update", update, tuple(_UPDATES))], whole_number("k", k, 1)
        if per_tree and return_proba:
            do = "leave one of the two out"
            raise ArgumentError("return_proba", "must be False with per_tree, where a label has one a tree", True, do)
        X = self._features(X)
        if beta == np.inf:
            kind, beta = plt_search.KEEP, 0.0
        if per_tree:
            return _mean_score([top for top, _ in self._search(X, k, None, beta, kind, per_tree=True)], k)
        [(top, proba)] = self._search(X, k, None, beta, kind)
        return (top, proba) if return_proba else top

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        return self._search(X, k, None)[0][0]

    def _search(
        self,
        X: sparse.csr_matrix,
        k: int,
        weights,
        beta: float = 0.0,
        update: int = plt_search.KEEP,
        *,
        per_tree: bool = False,
    ) -> list[tuple[TopK, np.ndarray]]:
        """What one search in all trees finds, and its probabilities; or one search in each tree."""
        if weights is None:
            weights = np.ones(self.n_labels_)
        weights = label_values("weights", weights, self.n_labels_)
        unit, n, forest = _rows(unit_rows(X)), X.shape[0], self._forest
        n_trees = forest.leaf.shape[0]
        parts = [slice(tree, tree + 1) for tree in range(n_trees)] if per_tree else [slice(None)]
        jobs = []
        for part in parts:
            best = np.empty(forest.chunk.size)
            plt_search.best_below(forest, weights, best)
            found = (*empty_places(n, k), np.zeros((n, k), np.float32))
            trees = forest._replace(leaf=forest.leaf[part]), np.arange(n_trees)[part]
            jobs.append((trees, (weights.copy(), best), found))

        # Where k is a good part of the labels, or the likely labels have lost their weight, most nodes are opened anyhow: then
        # all are, chunk by chunk, many rows each.
        progress = Progress(n, "PLT, predicting")
        many = update != plt_search.KEEP or k * _MANY >= self.n_labels_
        all_nodes = many and forest.chunk.size <= _FEW_NODES

        def open_all(lo: int, hi: int, known: np.ndarray) -> None:
            plt_search.open_all(forest, *unit[:3], self._squared_hinge, lo, hi, known)

        def look(lo: int, hi: int, known: np.ndarray) -> None:
            for trees, state, found in jobs:
                plt_search.search(
                    *trees, *unit[:3], *state, beta, update, self._squared_hinge, lo, hi, known, *found,
                )  # fmt: skip

        def rows(lo: int, hi: int) -> None:
            step = _BLOCK if all_nodes else _ROWS
            for first in range(lo, hi, step):
                last = min(first + step, hi)
                known = np.empty((last - first, forest.chunk.size) if all_nodes else (0, 0))
                if all_nodes:
                    open_all(first, last, known)
                look(first, last, known)
                progress.add(last - first)

        def rows_in_order() -> None:
            """The nodes of a block are opened on all cores, its rows looked through one after the other."""
            step = 4 * _BLOCK
            for first in range(0, n, step):
                known = np.empty((min(step, n - first), forest.chunk.size))

                def some(lo: int, hi: int, first: int = first, known: np.ndarray = known) -> None:
                    open_all(first + lo, first + hi, known[lo:hi])

                threads.over_rows(len(known), some, min_rows=max(1, _BLOCK // 2))
                look(first, first + len(known), known)
                progress.add(len(known))

        if update == plt_search.KEEP:
            threads.over_rows(n, rows, min_rows=64)
        elif all_nodes:
            rows_in_order()
        else:
            rows(0, n)
        return [(TopK(ids, scores, self.n_labels_), proba) for _, _, (ids, scores, proba) in jobs]

    # ------------------------------------------------------------------ fit

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        rows = _rows(unit_rows(X))
        shapes = np.array([*X.shape, truth.n_labels])
        kept = Checkpoint(self, (*rows[:3], shapes, truth.indptr, truth.indices))
        done = {tree: found for tree in range(self.trees) if (found := kept.read(f"tree-{tree}", _unpacked))}
        missing = [tree for tree in range(self.trees) if tree not in done]
        positives = truth.to_csr().tocsc()
        labels = np.flatnonzero(np.diff(positives.indptr)).astype(np.int32)
        positives = positives[:, labels]
        workers = threads.count()
        with threads.pool(workers) as pool:

            def run(work: Callable, jobs: list) -> Iterator:
                return map(work, jobs) if workers == 1 else pool.map(work, jobs)

            plans = self._grow(rows, positives, missing, run)
            weights = _Weights([*plans.values(), *(plan for plan, _ in done.values())])
            columns = {tree: positives[:, plan.order] for tree, plan in plans.items()}
            progress = Progress(sum(_work(columns[tree], plan).sum() for tree, plan in plans.items()))
            for tree in range(self.trees):
                progress.what = f"PLT, training tree {tree + 1} of {self.trees}"
                if tree in done:
                    plans[tree], chunks = done.pop(tree)
                    weights.add(*chunks)
                    continue
                first = weights.ends()
                for chunk in self._train(rows, columns.pop(tree), tree, plans[tree], run, progress):
                    weights.add(*chunk)

                def grown(tree: int = tree, first: Any = first) -> dict[str, np.ndarray]:
                    return _packed(plans[tree], weights.since(first))

                kept.write(f"tree-{tree}", grown)
        forest = _assemble([plans[tree] for tree in range(self.trees)], weights, labels, truth.n_labels)
        self._restore(forest | {"squared_hinge": np.array(self.loss == "squared_hinge")}, rows.n_features)

    def _check_parameters(self) -> None:
        for name, least in (("trees", 1), ("max_leaf", 1), ("arity", 2), ("max_iter", 1), ("seed", 0)):
            whole_number(name, getattr(self, name), least)
        for name in ("C", "eps"):
            real_number(name, getattr(self, name), above=0)
        for name in ("threshold", "kmeans_eps"):
            real_number(name, getattr(self, name), at_least=0)
        one_of("loss", self.loss, ("logistic", "squared_hinge"))
        one_of("tree", self.tree, _SHAPES)

    def _grow(self, rows: _Rows, positives: sparse.csc_matrix, trees: list[int], run: Callable):
        """Trees by number, level after level; the splits of a level, of all trees, are independent of each other."""
        n_labels, counts = positives.shape[1], np.diff(positives.indptr)
        plans = {tree: _Plan(n_labels, n_labels if self.tree == "flat" else self.max_leaf) for tree in trees}
        if self.tree == "k-means" and any(plan.large() for plan in plans.values()):
            features = _label_features(rows, positives, run)
        levels = np.ceil(arithmetic.log(max(n_labels / self.max_leaf, 1)) / arithmetic.log(self.arity))
        progress = Progress(len(trees) * n_labels * levels, f"PLT, growing {len(trees)} trees")

        def split(job: tuple[int, int]) -> np.ndarray:
            tree, node = job
            labels = plans[tree].order[slice(*plans[tree].ranges[node])]
            arity = min(self.arity, labels.size)
            rng = np.random.default_rng([self.seed, tree, node])
            if self.tree == "random":
                parts = rng.permutation(np.arange(labels.size) * arity // labels.size)
            elif self.tree == "frequency":
                parts = _cut_by_frequency(counts[labels], arity)
            else:
                first = rng.choice(labels.size, arity, replace=False)
                gathered = plt_train.gather(*features[:3], labels.astype(np.int64), features.n_features)
                parts = plt_train.cluster(*gathered, first, float(self.kmeans_eps), _KMEANS_ROUNDS)
            progress.add(labels.size)
            return parts

        while jobs := [(tree, node) for tree, plan in plans.items() for node in plan.large()]:
            for (tree, node), clusters in zip(jobs, run(split, jobs), strict=True):
                plans[tree].divide(node, clusters)
        return plans

    def _train(self, X: _Rows, columns: sparse.csc_matrix, tree: int, plan: _Plan, run: Callable, progress) -> Iterator:
        """What each inner node's training gives, in their order. ``columns``: the labels' positives in the tree's order."""
        nodes, work = plan.inner(), _work(columns, plan)
        starts, found = columns.indptr.astype(np.int64), columns.indices.astype(np.int32, copy=False)
        n = X.indptr.size - 1

        def train(chunk: int) -> tuple[np.ndarray, ...]:
            node = nodes[chunk]
            edges = np.array([lo for lo, _ in plan.children(node)] + [plan.ranges[node][1]])
            points, *positive = plt_train.members(found, starts[edges], n, node == 0)
            key = np.random.SeedSequence([self.seed, tree, node]).generate_state(1, np.uint64)[0]
            gathered = plt_train.gather(*X[:3], points, X.n_features)
            trained = plt_train.train(
                *gathered, *positive, self.loss == "squared_hinge",
                float(self.C), float(self.eps), int(self.max_iter), float(self.threshold), key,
            )  # fmt: skip
            progress.add(work[chunk])
            return np.array([points.size]), np.array([trained[0].size]), trained[0], np.diff(trained[1]), *trained[2:]

        # Large nodes first, so that none is left to one thread at the end; the others in order, so that few wait in memory.
        large = work > work.sum() / _SHARES
        first, others = (run(train, np.flatnonzero(which).tolist()) for which in (large, ~large))
        return (next(first if at_once else others) for at_once in large)

    # ------------------------------------------------------------------ what was learned

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
        forest = self._forest._asdict()
        starts, _, place = (forest.pop(name) for name in ("starts", "meeting", "place"))
        features = np.empty(place.size, np.int32)
        features[place] = np.repeat(np.arange(self.n_features_, dtype=np.int32), np.diff(starts))
        forest |= {"features": features, "weight_start": forest["weight_start"].astype(np.int64)}
        return {**forest, "n_points": self._n_points, "squared_hinge": np.array(self._squared_hinge)}

    def _restore(self, arrays: dict[str, np.ndarray], n_features: int | None = None) -> None:
        """``arrays`` have each chunk's features, and are emptied, so that little is in memory twice."""
        n_features = self.n_features_ if n_features is None else n_features
        for name in ("features", "feature_start", "weight_start", "child"):  # before a cast makes them right
            check_array(name, arrays[name], "iu", -1)
        features, feature_start = arrays.pop("features"), arrays["feature_start"]
        sound = _runs(feature_start, arrays["owner"].size, 0, features.size) and _inside(features, 0, n_features)
        _refuse({"features": sound})
        small = np.int32 if max(features.size, arrays["weight"].size) < 2**31 else np.int64
        arrays["weight_start"] = arrays["weight_start"].astype(small, copy=False)
        child = arrays["child"]
        if child.dtype != np.uint8 and child.size and child.min() >= 0 and child.max() < _BYTE:
            arrays["child"] = child.astype(np.uint8)
        found = np.zeros(n_features + 2, np.int64), np.empty(features.size, np.int32), np.empty(features.size, small)
        plt_search.by_feature(feature_start, features, *found)
        arrays |= {"starts": found[0][:-1], "meeting": found[1], "place": found[2]}
        self._forest = plt_search.Forest(
            *(np.ascontiguousarray(arrays.pop(name)) for name in plt_search.Forest._fields)
        )
        self._n_points, self._squared_hinge = arrays["n_points"], bool(arrays["squared_hinge"])

    def _check_read(self) -> None:
        """Refuse trees that the search would walk out of, whoever wrote them; ``plt_search`` says what the arrays are."""
        f = self._forest
        for name, array in [*f._asdict().items(), ("n_points", self._n_points)]:
            kinds, shape = "f" if name in ("weight", "bias") else "iu", (-1, -1) if name == "leaf" else (-1,)
            check_array(name, array, kinds, *shape, also=(-np.inf, np.inf) if name == "bias" else ())
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
            "weights": _runs(f.weight_start, f.place.size, 0, f.weight.size) and f.child.size == f.weight.size,
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


def _work(columns: sparse.csc_matrix, plan: _Plan) -> np.ndarray:
    """About how much there is to train at each inner node: its positives times its children."""
    ends = np.array([plan.ranges[node] for node in plan.inner()])
    return (columns.indptr[ends[:, 1]] - columns.indptr[ends[:, 0]]) * [
        len(plan.children(node)) for node in plan.inner()
    ]


def _cut_by_frequency(counts: np.ndarray, arity: int) -> np.ndarray:
    """The part of each label, frequent ones first: two parts at least, of about equally many positives."""
    order = np.argsort(-counts, kind="stable")
    ordered = counts[order].astype(np.int64)
    # A label is where its middle lies, so neither the first nor the last takes all.
    middles = 2 * np.cumsum(ordered) - ordered
    parts = np.empty(counts.size, np.int64)
    parts[order] = np.unique(arity * middles // (2 * ordered.sum()), return_inverse=True)[1]
    return parts


class _Growing:
    """An array that is appended to. The system moves its pages and copies none, so that it never lies in memory twice."""

    def __init__(self, dtype: type) -> None:
        self.room: np.ndarray = np.empty(0, dtype)
        self.size = 0

    def add(self, values: np.ndarray) -> None:
        end = self.size + values.size
        if end > self.room.size:
            self.room.resize(end + _LEAST_ROOM + end // 16, refcheck=False)
        self.room[self.size : end] = values
        self.size = end

    def whole(self) -> np.ndarray:
        self.room.resize(self.size, refcheck=False)
        return self.room


class _Weights:
    """What the chunks of all trees have learned, chunk after chunk.

    n_points and n_features have a number for each chunk, n_weights one for each feature of each, bias one for each child.
    """

    TYPES: ClassVar = {
        "n_points": np.int64,
        "n_features": np.int64,
        "features": np.int32,
        "n_weights": np.int32,
        "child": np.int32,
        "weight": np.float32,
        "bias": np.float32,
    }

    def __init__(self, plans: list[_Plan]) -> None:
        self.arrays = {name: _Growing(dtype) for name, dtype in self.TYPES.items()}
        if all(len(plan.children(node)) <= _BYTE for plan in plans for node in plan.inner()):
            self.arrays["child"] = _Growing(np.uint8)

    def add(self, *chunks: np.ndarray) -> None:
        """Chunks of the same tree, or all of it: arrays in the order of TYPES."""
        for array, values in zip(self.arrays.values(), chunks, strict=True):
            array.add(values)

    def ends(self) -> list[int]:
        return [array.size for array in self.arrays.values()]

    def since(self, first: list[int]) -> dict[str, np.ndarray]:
        """What was added after ``first``, as :meth:`add` takes it."""
        return {name: array.room[lo : array.size] for (name, array), lo in zip(self.arrays.items(), first, strict=True)}


def _packed(plan: _Plan, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    parts = [(node, part[0], part[-1] + 1) for node, part in plan.parts.items()]
    arrays = {"order": plan.order, "ranges": np.array(plan.ranges)}
    return arrays | {"parts": np.array(parts, np.int64).reshape(-1, 3)} | weights


def _unpacked(arrays: dict[str, np.ndarray]) -> tuple[_Plan, list[np.ndarray]]:
    plan = _Plan(arrays["order"].size, 1)
    plan.order, plan.ranges = arrays["order"], [tuple(one) for one in arrays["ranges"].tolist()]
    plan.parts = {node: list(range(first, last)) for node, first, last in arrays["parts"].tolist()}
    return plan, [arrays[name] for name in _Weights.TYPES]


def _assemble(plans: list[_Plan], weights: _Weights, labels: np.ndarray, n_labels: int) -> dict[str, np.ndarray]:
    """The arrays of :class:`xcrepro.models.kernels.plt_search.Forest`, and the chunks' numbers of points."""
    chunks = [(number, node) for number, plan in enumerate(plans) for node in plan.inner()]
    n_trees = len(plans)
    child_start = n_trees + np.cumsum([0, *(len(plans[tree].children(node)) for tree, node in chunks)])
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
    learned = {name: weights.arrays.pop(name).whole() for name in [*weights.arrays]}
    return {
        "chunk": chunk,
        "label": label,
        "above": above,
        "owner": owner,
        "child_start": child_start.astype(np.int64),
        "leaf": leaf,
        "feature_start": _starts(learned.pop("n_features")).astype(np.int64),
        "weight_start": _starts(learned.pop("n_weights")),
        **learned,
        "bias": np.concatenate([np.ones(n_trees, np.float32), learned["bias"]]),
    }


def _starts(sizes: np.ndarray) -> np.ndarray:
    """Where runs of these sizes begin, and the last ends; in half the memory where that is a 32-bit number."""
    found = np.zeros(sizes.size + 1, np.int32 if sizes.sum(dtype=np.int64) < 2**31 else np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


class _Rows(NamedTuple):
    """Rows as the kernels take them, in one set of dtypes: int64, int32, float32."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    n_features: int


def _rows(X: sparse.csr_matrix) -> _Rows:
    return _Rows(
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.data.astype(np.float32, copy=False),
        X.shape[1],
    )


def _label_features(rows: _Rows, positives: sparse.csc_matrix, run: Callable) -> _Rows:
    """For each label the mean of its points' rows, of length 1; stretches of labels side by side."""
    starts, points = positives.indptr.astype(np.int64), positives.indices.astype(np.int32, copy=False)

    def some(first: int) -> _Rows:
        sums = plt_train.sums(*rows[:3], starts[first : first + _LABELS + 1], points, rows.n_features)
        shape = sums[0].size - 1, rows.n_features
        return _rows(unit_rows(sparse.csr_matrix(sums[::-1], shape=shape)))

    found = [_Growing(np.int64), _Growing(np.int32), _Growing(np.float32)]
    found[0].add(np.zeros(1, np.int64))
    for part in run(some, list(range(0, starts.size - 1, _LABELS))):
        found[0].add(part.indptr[1:] + found[1].size)
        found[1].add(part.indices)
        found[2].add(part.data)
    indptr, indices, data = (array.whole() for array in found)
    return _Rows(indptr, indices, data, rows.n_features)
