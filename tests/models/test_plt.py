"""PLT: its solvers against scikit-learn's, its search against scoring all labels, its trees, and real data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.naive import same_bits
from tests.refused import refused
from xcrepro.models import PLT, plt, progress
from xcrepro.models.kernels import plt_search, plt_train


@pytest.fixture(scope="module")
def models(data):
    """By (trees, loss); small leaves, so that the trees are deep."""
    return {
        (trees, loss): PLT(trees=trees, max_leaf=12, loss=loss, C=C, max_iter=10).fit(data.train.X, data.train.Y)
        for trees, loss, C in ((1, "logistic", 10.0), (3, "logistic", 10.0), (2, "squared_hinge", 1.0))
    }


@pytest.fixture(scope="module")
def every(models, data):
    """All probabilities of the test points, as the search gives them, by kind."""
    return {kind: model.predict_proba(data.test.X, k=model.n_labels_) for kind, model in models.items()}


def unit(X) -> np.ndarray:
    dense = sp.csr_matrix(X).toarray().astype(float)
    length = np.linalg.norm(dense, axis=1, keepdims=True)
    return dense / np.where(length > 0, length, 1)


def slow_proba(model: PLT, X, trees=None) -> np.ndarray:
    """Every label's mean probability over trees, node by node from the stored weights; shares nothing with the search."""
    forest, x, features = model._forest, unit(X), model._state()["features"]
    trees = range(model.trees) if trees is None else trees
    path = {v: np.ones(len(x)) for v in trees}
    total = np.zeros((len(x), model.n_labels_))
    for c, owner in enumerate(forest.owner.tolist()):
        if owner not in path:  # another tree's
            continue
        w = np.zeros((x.shape[1], forest.child_start[c + 1] - forest.child_start[c]))
        lo, hi = forest.feature_start[c], forest.feature_start[c + 1]
        feature = np.repeat(features[lo:hi], np.diff(forest.weight_start[lo : hi + 1]))
        entries = slice(forest.weight_start[lo], forest.weight_start[hi])
        np.add.at(w, (feature, forest.child[entries]), forest.weight[entries])
        for place, v in enumerate(range(forest.child_start[c], forest.child_start[c + 1])):
            z = x @ w[:, place] + forest.bias[v]
            with np.errstate(over="ignore"):
                p = 1 / (1 + np.exp(-z)) if model.loss == "logistic" else np.exp(-(np.maximum(0, 1 - z) ** 2))
            path[v] = path[owner] * p
            if forest.label[v] >= 0:
                total[:, forest.label[v]] += path[v]
    return total / len(trees)


def brute_force(scores: np.ndarray, k: int) -> np.ndarray:
    """Ids of the k greatest of each row, ties to the lowest id."""
    return np.array([sorted(range(row.size), key=lambda j, row=row: (-row[j], j))[:k] for row in scores])


def all_probabilities(model: PLT, X) -> np.ndarray:
    return model.predict_proba(X, k=model.n_labels_).toarray().astype(np.float64)


KINDS = [(1, "logistic"), (3, "logistic"), (2, "squared_hinge")]


# ---------------------------------------------------------------------------------------------- search


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_the_products_along_the_paths(models, data, kind):
    X = data.test.X[:30]
    np.testing.assert_allclose(all_probabilities(models[kind], X), slow_proba(models[kind], X), rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 5, 50, 1000])
def test_the_search_finds_what_scoring_all_labels_finds(models, every, data, kind, k):
    top, proba = models[kind].predict(data.test.X, k, return_proba=True)
    assert same_bits(top, xc.TopK.from_scores(every[kind], k))
    assert (proba[top.ids >= 0] == top.scores[top.ids >= 0]).all()
    assert (proba[top.ids < 0] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_weights(models, every, data, kind):
    model, X = models[kind], data.test.X[:40]
    eta, rng = every[kind][:40].toarray().astype(np.float64), np.random.default_rng(5)
    L = model.n_labels_
    plain = model.predict(X, 7)
    assert same_bits(model.predict(X, 7, weights=np.ones(L)), plain)
    trained = np.flatnonzero(model._forest.leaf[0] >= 0)
    for weights in (
        rng.random(L),
        rng.lognormal(0, 3, L),  # some labels outweigh all others
        rng.integers(0, 3, L),  # many at 0, many equal
        np.eye(L)[trained[3]],
        np.zeros(L),  # nothing but ties
        data.propensities**-1.0,
    ):
        top, proba = model.predict(X, 7, weights, return_proba=True)
        scores = np.full(eta.shape, -np.inf)
        scores[:, trained] = (weights * eta)[:, trained]
        want = brute_force(scores, 7)
        np.testing.assert_array_equal(top.ids, want)
        np.testing.assert_array_equal(top.scores, np.take_along_axis(scores, want, 1).astype(np.float32))
        np.testing.assert_array_equal(proba, np.take_along_axis(eta, want, 1).astype(np.float32))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(2, 5), st.integers(1, 9), st.integers(1, 6))
def test_ties_everywhere(seed, trees, arity, max_leaf, k):
    """Trees whose probabilities are powers of 2: whole subtrees tie, across trees as well."""
    rng = np.random.default_rng(seed)
    L = int(rng.integers(1, 40))
    Y = np.vstack([np.eye(L), rng.random((6, L)) < 0.2])
    X = rng.random((len(Y), 6))
    model = PLT(trees=trees, arity=arity, max_leaf=max_leaf, max_iter=1, seed=seed).fit(X, Y)
    state = model._state()
    state["weight"] = rng.choice([0.0, 800.0, -800.0], state["weight"].size, p=[0.6, 0.1, 0.3]).astype(np.float32)
    state["bias"] = rng.choice([0.0, np.inf], state["bias"].size, p=[0.7, 0.3]).astype(np.float32)
    model._restore(state)
    queries = np.vstack([np.eye(6)[:3], np.zeros(6)])
    eta = slow_proba(model, queries).astype(np.float32).astype(float)
    weights = rng.choice([0.0, 0.5, 1.0], L)
    k = min(k, L)
    np.testing.assert_array_equal(model.predict(queries, k, weights).ids, brute_force(weights * eta, k))
    for update in xc.decide.UPDATES:
        np.testing.assert_array_equal(
            model.predict_coverage(queries, k, 0.5, update=update).ids,
            xc.decide.greedy_coverage(eta, k, 0.5, update=update).ids,
        )


@pytest.mark.parametrize("update", ["probability", "gain"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k", "beta"), [(1, 0.0), (5, 0.0), (5, 0.25), (3, 1.0)])
def test_coverage_is_algorithm_1_over_all_probabilities(models, every, data, kind, k, beta, update):
    model, X, eta = models[kind], data.test.X, every[kind]
    want = xc.decide.greedy_coverage(eta, k, beta, update=update)
    top, proba = model.predict_coverage(X, k, beta, update=update, return_proba=True)
    assert same_bits(top, want)
    np.testing.assert_array_equal(proba, np.take_along_axis(eta.toarray(), want.ids, 1))


@pytest.mark.parametrize(
    ("kind", "update", "beta"),
    [
        (KINDS[0], "gain", 0.25),
        (KINDS[1], "gain", 0.0),
        (KINDS[1], "probability", 0.25),
        (KINDS[2], "gain", 0.25),
        (KINDS[2], "gain", np.inf),
    ],
)
def test_per_tree_is_the_mean_gain_of_trees_that_choose_alone(models, data, kind, update, beta):
    model, X, k = models[kind], data.test.X[:40], 4
    total = np.full((X.shape[0], model.n_labels_), -np.inf)
    for tree in range(model.trees):
        top = xc.decide.greedy_coverage(slow_proba(model, X, [tree]), k, beta, update=update)
        for row, (labels, gains) in enumerate(zip(top.ids, top.scores.astype(float), strict=True)):
            total[row, labels] = np.maximum(total[row, labels], 0) + gains / model.trees
    top = model.predict_coverage(X, k, beta, update=update, per_tree=True)
    want = brute_force(total, k)
    np.testing.assert_array_equal(top.ids, want)
    np.testing.assert_allclose(top.scores, np.take_along_axis(total, want, 1), rtol=2e-5)
    assert model.trees == 1 or (top.ids != model.predict_coverage(X, k, beta, update=update).ids).any()


# ---------------------------------------------------------------------------------------------- training


def weights_of(model, place):
    """Weights and bias of a root's child in a tree of one chunk."""
    forest = model._forest
    assert forest.owner.size == 1
    found = np.zeros(model.n_features_ + 1)
    for i, feature in enumerate(model._state()["features"]):
        entries = slice(forest.weight_start[i], forest.weight_start[i + 1])
        found[feature] = forest.weight[entries][forest.child[entries] == place].sum()
    found[-1] = forest.bias[1 + place]
    return found


def near(got, peer):
    np.testing.assert_allclose(got, [*peer.coef_[0], peer.intercept_[0]], atol=2e-3 * abs(got).max())


@pytest.mark.parametrize(("loss", "C"), [("logistic", 10.0), ("logistic", 0.3), ("squared_hinge", 1.0)])
def test_the_solvers_reach_scikit_learns_optimum(data, loss, C):
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    X, Y = data.train.X[:300], sp.csr_matrix(data.train.Y)[:300]
    labels = np.argsort(-np.asarray(Y.sum(0)).ravel())[:4]
    model = PLT(trees=1, loss=loss, C=C, eps=1e-8, max_iter=5000, threshold=0.0).fit(X, Y[:, labels])
    for place, label in enumerate(labels):
        got = weights_of(model, place)
        peer = LogisticRegression if loss == "logistic" else LinearSVC
        peer = peer(C=C, tol=1e-9, max_iter=20000, **({"solver": "liblinear"} if loss == "logistic" else {}))
        peer.fit(unit(X), Y[:, label].toarray().ravel())
        near(got, peer)


@pytest.mark.parametrize("n_labels", [2, 5, 8, 19])
@pytest.mark.parametrize("n_features", [10, 300])
def test_children_side_by_side_reach_scikit_learns_optimum_too(n_labels, n_features):
    """In places that are all in use or not, where points share few words or many; what all points have trains nothing."""
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(n_labels)
    few = sp.random(90, n_features - 1, 6 / n_features, random_state=1) + sp.eye(90, n_features - 1)
    X = sp.hstack([np.ones((90, 1)), few]).tocsr()
    Y = rng.random((90, n_labels)) < rng.uniform(0.02, 0.6, n_labels)
    Y[:3] = True
    Y[:, 1] = True
    model = PLT(trees=1, loss="squared_hinge", C=3.0, eps=1e-8, max_iter=5000, threshold=0.0).fit(X, Y)
    for place in range(n_labels):
        got = weights_of(model, place)
        if place == 1:
            assert not got[:-1].any()
            assert got[-1] == np.inf
            continue
        peer = LinearSVC(C=3.0, tol=1e-9, max_iter=20000).fit(unit(X), Y[:, place])
        near(got, peer)


def test_the_node_problems_are_those_of_the_tree(models, data):
    """Every inner node is trained on the points with a label under its parent, and every label is a leaf, once a tree."""
    model = models[3, "logistic"]
    table, Y = model.structure(), sp.csr_matrix(data.train.Y)
    trained = np.flatnonzero(np.asarray(Y.sum(0)).ravel())
    below = [set() for _ in range(len(table))]
    for v in reversed(range(len(table))):
        if table.label[v] >= 0:
            below[v].add(table.label[v])
        if table.parent[v] >= 0:
            assert table.parent[v] < v
            assert table.tree[v] == table.tree[table.parent[v]]
            assert table.depth[v] == table.depth[table.parent[v]] + 1
            below[table.parent[v]] |= below[v]
    assert [len(labels) for labels in below] == table.n_labels.tolist()
    for tree in range(3):
        assert sorted(table.label[(table.tree == tree) & (table.label >= 0)]) == trained.tolist()
    for v in range(3, len(table)):
        parent = table.parent[v]
        points = Y.shape[0] if parent < 3 else len(np.unique(Y[:, sorted(below[parent])].nonzero()[0]))
        assert table.n_train[v] == points, v
    inner = table[(table.label < 0) & (table.parent >= 0)]
    for _, siblings in inner.groupby("parent"):
        assert siblings.n_labels.max() - siblings.n_labels.min() <= 1
    last = set(table.parent[table.label >= 0])
    assert all(table.n_labels[v] <= 12 for v in last)
    assert (table.n_weights[3:] > 0).any()
    assert table.n_weights.sum() == np.count_nonzero(model._forest.weight)


@pytest.mark.parametrize(("arity", "max_leaf", "L"), [(2, 1, 7), (3, 4, 50), (5, 2, 31), (4, 100, 9), (7, 2, 4)])
def test_trees_of_any_arity(arity, max_leaf, L):
    rng = np.random.default_rng(L)
    Y = np.vstack([np.eye(L), rng.random((30, L)) < 0.1])
    X = rng.random((len(Y), 20))
    model = PLT(trees=2, arity=arity, max_leaf=max_leaf, C=1.0).fit(X, Y)
    table = model.structure()
    children = table[table.parent >= 0].groupby("parent")
    assert all((group.label >= 0).all() or len(group) <= arity for _, group in children)
    assert all(len(group) <= max(arity, max_leaf) for _, group in children)
    np.testing.assert_allclose(all_probabilities(model, X), slow_proba(model, X), rtol=2e-5, atol=1e-9)


def test_clusters_are_found():
    """Two groups of labels with words of their own, mixed up: the split finds them from any start."""
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat([0, 1], 30))
    features = np.zeros((60, 40))
    features[group == 0, :20] = rng.random((30, 20))
    features[group == 1, 20:] = rng.random((30, 20))
    features = sp.csr_matrix(unit(features)).astype(np.float32)
    for seed in range(5):
        first = np.random.default_rng(seed).choice(60, 2, replace=False)
        gathered = plt_train.gather(*plt._rows(features)[:3], np.arange(60), 40)
        chosen = plt_train.cluster(*gathered, first, 1e-4, 100)
        assert (chosen == group).all() or (chosen == 1 - group).all(), seed


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=40) | st.lists(st.floats(-2, 0), max_size=300))
def test_rank_is_a_stable_argsort(values):
    values = np.array(values, float) + 0.0
    rank = np.empty(len(values), np.int32)
    plt_train._rank(values, rank)
    assert rank.tolist() == np.argsort(values, kind="stable").tolist()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 9000), min_size=1, max_size=30), min_size=1, max_size=8), st.booleans())
def test_members_are_the_points_of_the_children(children, everyone):
    """Against NumPy's sorted sets; the numbers lie in several words of bits, and of words of these."""
    found, edges = np.concatenate(children).astype(np.int32), np.cumsum([2, *map(len, children)])
    points, start, positive = plt_train.members(np.append([9000, 1], found).astype(np.int32), edges, 9001, everyone)
    want = np.arange(9001) if everyone else np.unique(found)
    assert points.tolist() == want.tolist()
    for c, its in enumerate(children):
        assert points[positive[start[c] : start[c + 1]]].tolist() == sorted(set(its))


def test_label_features_are_the_unit_sums_of_their_points(monkeypatch):
    """Words that cancel are none; any stretch of labels gives the same bits."""
    rng = np.random.default_rng(0)
    X = sp.random(80, 9000, 0.01, "csr", np.float32, rng)
    X.data = rng.choice([-1, 0.3, 1], X.data.size).astype(np.float32)
    Y = sp.csc_matrix(rng.random((80, 25)) < 0.1)
    want = sp.csr_matrix(Y.T.astype(np.float32) @ X).toarray().astype(float)
    for labels in (25, 7, 1):
        monkeypatch.setattr(plt, "_LABELS", labels)
        found = plt._label_features(plt._rows(X), Y, map)
        dense = sp.csr_matrix((found.data, found.indices, found.indptr), shape=want.shape)
        assert dense.has_canonical_format
        assert (found.data != 0).all()
        np.testing.assert_allclose(dense.toarray(), unit(want), rtol=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_any_number_of_threads_trains_the_same_bits(data, monkeypatch, loss):
    """Nodes that are trained at once, and the order in which they end, do not matter."""
    bits = []
    for count, shares in (("1", 256), ("2", 256), ("3", 1), ("3", 10**9)):
        monkeypatch.setenv("XCREPRO_THREADS", count)
        monkeypatch.setattr(plt, "_SHARES", shares)
        model = PLT(trees=2, max_leaf=9, max_iter=3, loss=loss).fit(data.train.X[:200], data.train.Y[:200])
        bits.append(all_bits(model))
    assert bits[0] == bits[1] == bits[2] == bits[3]


def test_a_loaded_tree_has_the_same_structure(models, tmp_path):
    models[3, "logistic"].save(tmp_path / "plt")
    assert xc.models.load(tmp_path / "plt").structure().equals(models[3, "logistic"].structure())


@pytest.mark.parametrize("L", [256, 257])
def test_places_of_one_byte_change_no_bit(L, tmp_path, monkeypatch):
    rng = np.random.default_rng(L)
    X, Y = rng.random((300, 6), np.float32), np.eye(L, dtype=np.float32)[np.arange(300) % L]
    model = PLT(trees=1, tree="flat", max_iter=2)
    top, size = model.fit(X, Y).predict(X, 4), 1 if L == 256 else 4
    assert model._forest.child.itemsize == size
    monkeypatch.setattr(plt, "_BYTE", 0)
    assert same_bits(model.fit(X, Y).predict(X, 4), top)
    assert model._forest.child.itemsize == 4
    model.save(tmp_path / "plt")
    monkeypatch.undo()
    read = xc.models.load(tmp_path / "plt")
    assert read._forest.child.itemsize == size
    assert same_bits(read.predict(X, 4), top)


# ---------------------------------------------------------------------------------------------- edges


def test_labels_never_seen_and_points_without_labels():
    rng = np.random.default_rng(1)
    Y = np.zeros((40, 6))
    Y[:10, 1], Y[10:20, 4] = 1, 1  # 20 points have no label, 4 labels no point
    X = sp.csr_array(np.hstack([Y[:, [1, 4]], rng.random((40, 2))]))
    model = PLT(trees=2).fit(X, sp.csr_array(Y))
    top = model.predict(X, k=4)
    assert (np.sort(top.ids[:, :2], axis=1) == [1, 4]).all()
    assert (top.ids[:, 2:] == -1).all()
    assert (top.scores[:, 2:] == -np.inf).all()
    assert (top.scores[20:, 0] < 0.5).all()  # the points without labels taught the nodes
    assert (top.ids[:20, 0] == np.repeat([1, 4], 10)).all()
    assert model.predict_proba(X, k=6).nnz == 80
    assert (model.predict_coverage(X, k=3).ids[:, 2] == -1).all()


def test_one_label_that_all_points_have():
    model = PLT().fit(np.eye(3), np.ones((3, 1)))
    top = model.predict(np.eye(3), k=2)
    assert top.ids.tolist() == [[0, -1]] * 3
    assert top.scores[:, 0].tolist() == [1, 1, 1]
    # It is sure to be right the first time, and then nothing is left to gain.
    assert model.predict_coverage(np.eye(3), k=1).scores.ravel().tolist() == [1, 0, 0]


def test_labels_whose_points_have_no_features():
    X, Y = np.vstack([np.zeros((6, 4)), np.eye(4)]), np.vstack([np.eye(6), np.eye(6)[:4]])
    model = PLT(max_leaf=2).fit(X, Y)
    np.testing.assert_allclose(all_probabilities(model, X), slow_proba(model, X), rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "argument", "got"),
    [
        (lambda model, X: model.predict(X, weights=np.ones(3)), "weights", "an array of shape (3,)"),
        *(
            (lambda model, X, bad=bad: model.predict(X, weights=[1, bad] * (model.n_labels_ // 2)), "weights", got)
            for bad, got in ((-1.0, "-1.0 for label 1"), (np.nan, "nan for label 1"), (np.inf, "inf for label 1"))
        ),
        *(
            (lambda model, X, beta=beta: model.predict_coverage(X, beta=beta), "beta", repr(beta))
            for beta in (-0.1, np.nan, -np.inf, [1.0], "1")
        ),
        (lambda model, X: model.predict_coverage(X, update="gains"), "update", "'gains'"),
        (lambda model, X: model.predict_coverage(X, per_tree=True, return_proba=True), "return_proba", True),
        (lambda model, X: model.predict_coverage(X, 0), "k", 0),
        (lambda model, X: model.predict_proba(X, k=0), "k", 0),
        (lambda model, X: model.predict_proba(X, k=2.0), "k", 2.0),
        (lambda model, X: model.predict(X[:, :5]), "X", 5),
    ],
)
def test_arguments_that_cannot_be(models, data, call, argument, got):
    with refused(argument, got):
        call(models[1, "logistic"], data.test.X)


def test_the_bound_follows_what_was_chosen(models):
    """After greedy rows ``best`` is what computing it anew from the weights gives."""
    model = models[3, "logistic"]
    forest = model._forest
    rng = np.random.default_rng(2)
    X = sp.random(40, model.n_features_, 0.05, "csr", np.float32, rng)
    weights, best = np.ones(model.n_labels_), np.empty(forest.chunk.size)
    plt_search.best_below(forest, weights, best)
    out = np.empty((40, 3), np.int32), np.empty((40, 3), np.float32), np.empty((40, 3), np.float32)
    rows = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    plt_search.search(
        forest, np.arange(3), *rows, weights, best, 0.0, plt_search.GAIN, False, 0, 40, np.empty((0, 0)), *out
    )
    again = np.empty_like(best)
    plt_search.best_below(forest, weights, again)
    assert (weights < 1).sum() > 3
    np.testing.assert_array_equal(best, again)


# ---------------------------------------------------------------------------------------------- shapes


def parts_of(model: PLT) -> dict[int, list[list[int]]]:
    """Of each inner node the labels below each of its children, sorted."""
    table = model.structure()
    below = {v: [label] if label >= 0 else [] for v, label in table["label"].items()}
    for v in reversed(table.index):
        if table.loc[v, "parent"] >= 0:
            below[table.loc[v, "parent"]] += below[v]
    inner = table[table["parent"] >= 0].groupby("parent", sort=False).groups
    return {v: [sorted(below[child]) for child in children] for v, children in inner.items()}


@pytest.mark.parametrize("arity", [2, 3])
def test_random_trees_have_even_parts_and_other_labels_each(data, arity):
    X, Y = data.train.X[:200], data.train.Y[:200]
    model = PLT(trees=2, arity=arity, max_leaf=8, max_iter=2, tree="random", seed=3).fit(X, Y)
    means = PLT(trees=2, arity=arity, max_leaf=8, max_iter=2, seed=3).fit(X, Y)
    parts = parts_of(model)
    for part in parts.values():
        sizes = [len(labels) for labels in part]
        assert max(sizes) - min(sizes) <= 1
        assert len(part) == arity or sum(sizes) <= 8
    assert sorted(map(sorted, parts[0])) != sorted(map(sorted, parts[1]))  # the roots of the two trees
    depth = [one.structure().query("label >= 0").groupby("tree")["depth"].max().tolist() for one in (model, means)]
    assert depth[0] == depth[1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=2, max_size=30), st.integers(2, 5))
def test_parts_by_frequency(counts, arity):
    """Frequent labels come first, and no part but one of a single label is far above its share."""
    counts = np.array(counts)
    parts = plt._cut_by_frequency(counts, arity)
    used = sorted(set(parts.tolist()))
    assert used == list(range(len(used)))
    assert 2 <= len(used) <= arity
    order = sorted(range(counts.size), key=lambda label: (-counts[label], label))
    assert np.diff(parts[order]).min() >= 0
    for part in used:
        inside = counts[parts == part]
        assert inside.size == 1 or inside.sum() <= counts.sum() / arity + inside.max()


def test_by_frequency_frequent_labels_stand_near_the_root():
    counts = np.array([64, 32, 16, 8, 4, 2, 1, 1])
    rows = np.repeat(np.arange(8), counts)
    Y, X = np.eye(8)[rows], np.eye(8)[rows]
    model = PLT(trees=1, max_leaf=1, max_iter=2, tree="frequency").fit(X, Y)
    table = model.structure().query("label >= 0").set_index("label")["depth"].sort_index()
    assert table.tolist() == [1, 2, 3, 4, 5, 6, 7, 7]  # the code of Huffman, and of Shannon and Fano


def test_a_flat_tree_is_one_vs_rest(data):
    """Its nodes see all points and have the solver's optimum: that of a tree whose root has all labels as its leaves."""
    X, Y = data.train.X[:150], data.train.Y[:150]
    flat = PLT(trees=1, max_leaf=2, arity=3, tree="flat").fit(X, Y)
    wide = PLT(trees=1, max_leaf=Y.shape[1]).fit(X, Y)
    leaves = flat.structure().iloc[1:]
    assert (leaves["parent"] == 0).all()
    assert (leaves["n_train"] == 150).all()
    assert same_bits(flat.predict(data.test.X, 9), wide.predict(data.test.X, 9))


@pytest.mark.parametrize("tree", ["random", "frequency", "flat"])
def test_shapes_search_exactly_whatever_the_threads(data, tree, monkeypatch):
    X, Y, queries = data.train.X[:200], data.train.Y[:200], data.test.X[:15]
    tops = []
    for count in ("1", "2"):
        monkeypatch.setenv("XCREPRO_THREADS", count)
        model = PLT(trees=2, max_leaf=6, max_iter=3, tree=tree).fit(X, Y)
        tops.append(model.predict(queries, 5))
    assert same_bits(*tops)
    np.testing.assert_allclose(all_probabilities(model, queries), slow_proba(model, queries), rtol=2e-5, atol=1e-9)


# ---------------------------------------------------------------------------------------------- checkpoints


def all_bits(model: PLT) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model._state().items()}


@pytest.mark.parametrize("tree", ["k-means", "frequency"])
def test_a_killed_training_goes_on_to_the_same_bits(data, tmp_path, monkeypatch, tree):
    """Whatever else may befall a checkpoint, the tests of networks say."""
    X, Y = data.train.X[:200], data.train.Y[:200]
    model = PLT(trees=3, max_leaf=9, max_iter=3, tree=tree)
    want = all_bits(model.fit(X, Y))
    train, trained, folder = PLT._train, [], tmp_path / "new" / "trees"

    def dies_in_the_third(self, X, columns, tree, *rest):
        if tree == 2 and len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(tree)
        return train(self, X, columns, tree, *rest)

    monkeypatch.setattr(PLT, "_train", dies_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, checkpoint=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["tree-0.npz", "tree-1.npz"]
    trained.append(None)
    (folder / "tree-0.npz").unlink()
    assert all_bits(model.fit(X, Y, checkpoint=folder)) == want
    assert trained == [0, 1, None, 0, 2]  # the second was there
    assert all_bits(model.fit(X, Y, checkpoint=str(folder))) == want
    assert len(trained) == 5


def test_trees_of_another_training_are_refused(data, tmp_path):
    X, Y = data.train.X[:60], data.train.Y[:60]
    model = PLT(trees=1, max_leaf=9, max_iter=2)
    model.fit(X, Y, checkpoint=tmp_path)
    more = sp.csr_matrix(Y, copy=True).tolil()
    more[0, :] = 1
    for other, features, labels in (
        (PLT(trees=1, max_leaf=9, max_iter=2, seed=1), X, Y),
        (PLT(trees=2, max_leaf=9, max_iter=2), X, Y),
        (model, X * 2 + X.multiply(X), Y),
        (model, X, more.tocsr()),
    ):
        with refused("checkpoint", match="tree-0.npz"):
            other.fit(features, labels, checkpoint=tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 300])
def test_opening_all_nodes_first_changes_no_bit(models, data, kind, k, monkeypatch):
    """Where k is a good part of the labels a block of rows goes through all nodes; elsewhere the search opens what it needs."""
    weights, X = np.random.default_rng(0).random(models[kind].n_labels_), data.test.X[:70]
    tops = []
    for many, block in ((0, 64), (10**6, 7)):
        monkeypatch.setattr(plt, "_MANY", many)
        monkeypatch.setattr(plt, "_BLOCK", block)
        tops += [models[kind].predict(X, k), models[kind].predict(X, k, weights)]
    assert same_bits(tops[0], tops[2])
    assert same_bits(tops[1], tops[3])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("update", ["probability", "gain"])
@pytest.mark.parametrize("per_tree", [False, True])
def test_greedy_search_opens_all_nodes_first_to_the_same_bits(models, data, kind, update, per_tree, monkeypatch):
    """Blocks on several threads, small and large, against the search that opens what it meets."""
    X, tops = data.test.X[:70], []
    for few, block, count in ((0, 64, "2"), (10**6, 64, "1"), (10**6, 3, "2")):
        monkeypatch.setattr(plt, "_FEW_NODES", few)
        monkeypatch.setattr(plt, "_BLOCK", block)
        monkeypatch.setenv("XCREPRO_THREADS", count)
        tops.append(models[kind].predict_coverage(X, 4, 0.25, update=update, per_tree=per_tree))
    assert same_bits(tops[0], tops[1])
    assert same_bits(tops[0], tops[2])


@pytest.mark.parametrize("greedy", [False, True])
def test_prediction_says_how_far_it_is_and_that_changes_no_bit(models, data, greedy, monkeypatch, capsys):
    model = models[3, "logistic"]
    monkeypatch.setattr(plt, "_MANY", 0)
    monkeypatch.setattr(plt, "_FEW_NODES", 0)

    def predict():
        return model.predict_coverage(data.test.X, 4, 0.25) if greedy else model.predict(data.test.X, 4)

    whole = predict()
    assert not capsys.readouterr().err
    monkeypatch.setattr(plt, "_ROWS", 7)
    monkeypatch.setattr(progress, "FIRST", 0.0)
    monkeypatch.setattr(progress, "THEN", 0.0)
    assert same_bits(whole, predict())
    said = capsys.readouterr().err.splitlines()
    assert len(said) > 2
    assert all(line.startswith("PLT, predicting: ") for line in said)
