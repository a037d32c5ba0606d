"""The classic methods against what their papers' formulas give, by NumPy's and scikit-learn's own solvers on small data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

import xcrepro as xc
from tests.naive import multilabel_problem, same_bits
from xcrepro.core.truth import as_truth
from xcrepro.models import CPLST, CS, KNN, LEML, LPSR, MLCSSP, SLEEC, OneVsRest, ProXML
from xcrepro.models.classic import algebra, embedding, neighbours, sparse_linear
from xcrepro.models.kernels import warp

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def problem():
    return multilabel_problem()


@pytest.fixture(scope="module")
def rows(problem):
    """Unit rows with a constant, dense."""
    return algebra.with_constant(problem[0]).toarray()


@pytest.fixture(scope="module")
def some(twin):
    """Points of a twin, and some of their labels."""
    return twin.train.X, sp.csr_matrix(twin.train.Y)[:, :200]


def scores_of(model, X):
    """What an embedding model says of every label."""
    return algebra.with_constant(sp.csr_matrix(X)).toarray() @ model.points_ @ model.labels_.T + model.bias_


def ridge(X, target, penalty):
    return np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ target)


# ------------------------------------------------------------------------------ algebra


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 40))
def test_eigenvalues_are_numpys(seed, n):
    S = np.random.default_rng(seed).normal(size=(n, n))
    S = S + S.T
    values, vectors = algebra.eigen(S)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(S)[::-1], atol=1e-10)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=1e-10)
    np.testing.assert_allclose(S @ vectors, vectors * values, atol=1e-9)


def test_eigenvalues_of_what_is_nearly_diagonal():
    S = np.diag([3.0, 2.0, 2.0, 0.0])
    S[0, 3] = S[3, 0] = 1e-200
    values, vectors = algebra.eigen(S)
    assert values.tolist() == [3.0, 2.0, 2.0, 0.0]
    assert np.isfinite(vectors).all()


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_systems_and_ridge_regression_are_numpys(seed):
    rng = np.random.default_rng(seed)
    X, target, penalties = rng.normal(size=(30, 8)), rng.normal(size=(30, 5)), rng.uniform(0.1, 5, 5)
    inner = X.T @ X + np.eye(8)
    np.testing.assert_allclose(algebra.solve(inner, X.T @ target), np.linalg.solve(inner, X.T @ target), rtol=1e-9)
    found = algebra.ridge(sp.csr_matrix(X), target, penalties, eps=1e-12)
    for j, penalty in enumerate(penalties):
        np.testing.assert_allclose(found[:, j], ridge(X, target[:, j], penalty), atol=1e-9)
    assert not algebra.ridge(sp.csr_matrix(X), np.zeros((30, 2)), 1.0).any()


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.booleans())
def test_leading_vectors_span_numpys(seed, wide):
    rng, n = np.random.default_rng(seed), 40 if wide else 9
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = 3.0 ** -np.arange(n)
    S = (basis * values) @ basis.T
    found, vectors = algebra.leading(lambda V: S @ V, n, 3, 0, steps=12)
    np.testing.assert_allclose(found, values[:3], rtol=1e-8)
    np.testing.assert_allclose(np.abs((vectors * basis[:, :3]).sum(axis=0)), 1, atol=1e-6)


def test_orthonormal_leaves_nothing_of_what_depends():
    V = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0], [0.0, 0.0, 0.0]])
    Q = algebra.orthonormal(V)
    assert not Q[:, 1].any()
    np.testing.assert_allclose(Q.T @ Q, np.diag([1, 0, 1]), atol=1e-12)


def test_clusters_settle_where_each_centre_is_its_members_mean_direction(problem):
    X = algebra.unit_rows(problem[0])
    weights = np.linspace(1, 2, X.shape[0])
    centres = algebra.clusters(X, 4, seed=0, steps=100, weights=weights)
    nearest = np.argmax(X.toarray() @ centres.T, axis=1)
    for cluster in np.unique(nearest):
        mean = (weights[:, None] * X.toarray())[nearest == cluster].sum(axis=0)
        np.testing.assert_allclose(centres[cluster], mean / np.linalg.norm(mean), atol=1e-10)


# ------------------------------------------------------------------------------ embeddings


def test_cplst_is_the_papers_eigenproblem(problem, rows):
    X, Y = problem[0], problem[1].toarray().astype(float)
    model = CPLST(components=4, penalty=0.5).fit(X, Y)
    centred = Y - Y.mean(axis=0)
    fitted = rows @ ridge(rows, centred, 0.5)
    values, vectors = np.linalg.eigh(centred.T @ fitted)
    kept = vectors[:, np.argsort(-values)[:4]]
    want = fitted @ kept @ kept.T + Y.mean(axis=0)
    seen = Y.any(axis=0)
    np.testing.assert_allclose(scores_of(model, X)[:, seen], want[:, seen], atol=2e-4)
    assert np.isneginf(model.bias_[~seen]).all()


def test_with_all_directions_cplst_and_ml_cssp_are_ridge_regression(problem, rows):
    X, Y = problem[0], problem[1].toarray().astype(float)
    seen = Y.any(axis=0)
    centred = rows @ ridge(rows, Y - Y.mean(axis=0), 0.5) + Y.mean(axis=0)
    np.testing.assert_allclose(scores_of(CPLST(penalty=0.5).fit(X, Y), X)[:, seen], centred[:, seen], atol=1e-3)
    plain = rows @ ridge(rows, Y, 0.5)
    np.testing.assert_allclose(scores_of(MLCSSP(penalty=0.5).fit(X, Y), X)[:, seen], plain[:, seen], atol=1e-3)


def test_ml_cssp_draws_by_leverage_and_fills_in_by_least_squares(problem, rows):
    X, Y = problem[0], problem[1].toarray().astype(float)
    model = MLCSSP(columns=3, penalty=0.5, seed=1).fit(X, Y)
    # A chosen label's own combination is itself.
    chosen = np.flatnonzero(
        (np.abs(model.labels_ - 1) < 1e-4).any(axis=1) & (np.abs(model.labels_).sum(axis=1) < 1.001)
    )
    assert len(chosen) >= 3
    own = Y[:, chosen[:3]]
    want = rows @ ridge(rows, own, 0.5) @ np.linalg.lstsq(own, Y, rcond=None)[0]
    seen = Y.any(axis=0)
    np.testing.assert_allclose(scores_of(model, X)[:, seen], want[:, seen], atol=1e-3)
    leverage = np.array([0.1, 0.0, 0.6, 0.3])
    first = [MLCSSP(seed=seed)._drawn(leverage, 1)[0] for seed in range(400)]
    np.testing.assert_allclose(np.bincount(first, minlength=4) / 400, leverage, atol=0.08)
    assert MLCSSP()._drawn(leverage, 4).tolist() == [0, 2, 3]


def test_leml_ends_where_no_step_helps(problem, rows):
    X, Y = problem[0], problem[1].toarray().astype(float)

    def objective(model):
        W, H = model.points_.astype(float), model.labels_.astype(float)
        return ((Y - rows @ W @ H.T) ** 2).sum() + 0.5 * ((W**2).sum() + (H**2).sum())

    found = [objective(LEML(rank=3, penalty=0.5, rounds=rounds).fit(X, Y)) for rounds in (1, 3, 10, 100)]
    assert found == sorted(found, reverse=True)
    model = LEML(rank=3, penalty=0.5, rounds=200).fit(X, Y)
    W, H = model.points_.astype(float), model.labels_.astype(float)
    error = rows @ W @ H.T - Y
    assert np.abs(rows.T @ error @ H + 0.5 * W).max() < 1e-2
    assert np.abs(error.T @ rows @ W + 0.5 * H).max() < 1e-2


def naive_warp(X, Y, order, seen, points, labels, rate, length, seed, number):
    """The same steps, spelled out: a generator of the same draws, no kernel."""
    from xcrepro.core.kernels.random import key, uniform

    points, labels = points.copy(), labels.copy()

    def cut(vector):
        if (vector @ vector) > length**2:
            vector *= length / np.sqrt(vector @ vector)

    for at, (row, positive) in enumerate(order):
        others = [label for label in seen if not Y[row, label]]
        if not others:
            continue
        embedded = X[row] @ points
        start, count, tries, found = np.uint64(key(seed, number + 2, at)), 0, 0, None
        while tries < len(others) and found is None:
            drawn = seen[int(uniform(start, count) * len(seen))]
            count += 1
            if Y[row, drawn]:
                continue
            tries += 1
            if embedded @ labels[drawn] > embedded @ labels[positive] - 1:
                found = drawn
        if found is None:
            continue
        step = rate * sum(1 / r for r in range(1, len(others) // tries + 1))
        apart = labels[positive] - labels[found]
        labels[positive] += step * embedded
        labels[found] -= step * embedded
        cut(labels[positive])
        cut(labels[found])
        for feature in np.flatnonzero(X[row]):
            points[feature] += step * X[row, feature] * apart
            cut(points[feature])
    return points, labels


def test_warp_takes_the_papers_steps(problem, rows):
    Y = problem[1].toarray() > 0
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(rows.shape[1], 4)), rng.normal(size=(Y.shape[1], 4))
    order = rng.permutation(np.argwhere(Y))
    seen = np.flatnonzero(Y.any(axis=0))
    want = naive_warp(rows, Y, order, seen, points, labels, 0.1, 1.5, 3, 0)
    X, truth = sp.csr_matrix(rows).astype(np.float32), as_truth(Y)
    got = points.astype(np.float32), labels.astype(np.float32)
    warp.epoch(
        X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data, truth.indptr.astype(np.int64),
        truth.indices.astype(np.int64), order[:, 0].copy(), order[:, 1].copy(), seen, *got,
        np.float32(0.1), np.float32(1.5), 3, 0,
    )  # fmt: skip
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-3)


def test_pursuit_takes_sparse_sums_apart():
    rng = np.random.default_rng(0)
    atoms = np.where(rng.random((50, 60)) < 0.5, 1.0, -1.0) / np.sqrt(60)
    truth = np.zeros((20, 50))
    for row in truth:
        row[rng.choice(50, 3, replace=False)] = rng.uniform(0.5, 2, 3)
    taken, found = embedding.pursued(truth @ atoms, atoms, 3)
    got = np.zeros_like(truth)
    np.put_along_axis(got, taken, found, 1)
    np.testing.assert_allclose(got, truth, atol=1e-9)


def test_pursuits_coefficients_are_least_squares():
    rng = np.random.default_rng(1)
    atoms, sums = np.where(rng.random((12, 8)) < 0.5, 1.0, -1.0), rng.normal(size=(5, 8))
    taken, found = embedding.pursued(sums, atoms, 4)
    for row, chosen, have in zip(sums, taken, found, strict=True):
        assert len(set(chosen)) == 4
        np.testing.assert_allclose(have, np.linalg.lstsq(atoms[chosen].T, row, rcond=None)[0], atol=1e-8)
    # An atom twice: the second time there is nothing left to explain.
    _, found = embedding.pursued(np.ones((1, 2)), np.ones((3, 2)), 2)
    np.testing.assert_allclose(found, [[1.0, 0.0]])


def test_compressed_sensing_finds_the_labels_of_points_that_tell_them_apart():
    rng = np.random.default_rng(0)
    Y = np.zeros((40, 40))
    for row in Y:
        row[rng.choice(40, 2, replace=False)] = 1
    X = np.eye(40)
    top = CS(measurements=60, sparsity=2, penalty=1e-6).fit(X, Y).predict(X, 2)
    assert xc.metrics.precision(Y, top, (2,))[0] == 1.0
    assert top.ids.shape == (40, 2)
    assert (CS(measurements=60, sparsity=2).fit(X, Y).predict(X, 5).ids[:, 2:] == -1).all()


# ------------------------------------------------------------------------------ neighbours


def test_nearest_neighbours_by_hand(problem):
    X, Y = problem[0].toarray().astype(float), problem[1].toarray().astype(float)
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    top = KNN(neighbours=4).fit(X, Y).predict(X[:20], 9)
    for i in range(20):
        cosines = unit @ unit[i]
        near = sorted(np.flatnonzero(cosines > 0), key=lambda j: (-np.float32(cosines[j]), j))[:4]
        want = (cosines[near, None] * Y[near]).sum(axis=0) if near else Y.mean(axis=0)
        got = np.zeros(9)
        got[top.ids[i][top.ids[i] >= 0]] = top.scores[i][top.ids[i] >= 0]
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_embeddings_have_the_products_of_the_labels():
    """With all pairs and a rank that suffices, singular value projection comes to the products themselves."""
    Y = sp.csr_matrix(np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1]], float))
    unit = algebra.unit_rows(Y).toarray()
    Z = neighbours.embedding(Y, 3, 5, 600, 0)
    np.testing.assert_allclose(Z @ Z.T, unit @ unit.T, atol=1e-3)
    assert neighbours.embedding(Y, 7, 5, 2, 0).shape == (5, 7)


def test_the_map_is_ridge_regression_and_then_sparse(problem):
    X = algebra.unit_rows(problem[0])
    Z = np.random.default_rng(0).normal(size=(X.shape[0], 3)) / 5
    np.testing.assert_allclose(neighbours.sparse_map(X, Z, 0.5, 0.0), ridge(X.toarray(), Z, 0.5), atol=1e-5)

    def objective(V, sparsity):
        fitted = X @ V
        return ((Z - fitted) ** 2).sum() + 0.5 * (V**2).sum() + sparsity * np.abs(fitted).sum()

    V = neighbours.sparse_map(X, Z, 0.5, 0.3, rounds=200)
    best = objective(V, 0.3)
    assert best < objective(ridge(X.toarray(), Z, 0.5), 0.3)
    rng = np.random.default_rng(1)
    assert all(best < objective(V + 0.05 * rng.normal(size=V.shape), 0.3) for _ in range(20))


def test_sleec_of_several_clusters_asks_only_its_own(twin):
    model = SLEEC(dim=10, learners=2, neighbours=5, cluster_size=100, rounds=5).fit(twin.train.X, twin.train.Y)
    assert len(np.unique(model.clusters_[0])) > 1
    X = algebra.unit_rows(twin.test.X)
    votes = model._votes(0, X)
    Y = sp.csr_matrix(twin.train.Y).toarray()
    for row in range(5):
        cluster = np.argmax(X[row].toarray() @ model.centres_[0].astype(float).T)
        members = np.flatnonzero(model.clusters_[0] == cluster)
        point = X[row].toarray()[0] @ model.maps_[0, cluster].astype(float)
        apart = ((model.embedded_[0][members].astype(float) - point) ** 2).sum(axis=1)
        near = members[np.argsort(apart, kind="stable")[:5]]
        np.testing.assert_allclose(votes[row].toarray()[0], Y[near].sum(axis=0) / 5, atol=1e-12)


def test_sleec_s_learners_of_all_seeds_differ(twin):
    """If numbers were added to seeds, learner 1 of seed 0 would be learner 0 of seed 1, and errors over seeds too small."""
    X, Y = twin.train.X[:150], sp.csr_matrix(twin.train.Y)[:150]
    fits = [SLEEC(dim=4, near=10, learners=3, rounds=2, cluster_size=50, seed=seed).fit(X, Y) for seed in range(3)]
    learners = [each for fit in fits for each in zip(fit.centres_, fit.maps_, strict=True)]
    for part in zip(*learners, strict=True):  # the clusters, and the maps, whose embeddings had other starts
        assert len({each.tobytes() for each in part}) == 9
    alone = [SLEEC(dim=4, near=10, learners=3, rounds=2, cluster_size=150, seed=seed).fit(X, Y) for seed in range(3)]
    assert len({each.tobytes() for fit in alone for each in fit.maps_}) == 9  # one cluster: only the starts differ


def test_lpsr_of_one_partition_is_its_ranker(some, twin):
    model = LPSR(partitions=1, labels=10**6).fit(*some)
    assert same_bits(model.predict(twin.test.X, 5), OneVsRest().fit(*some).predict(twin.test.X, 5))


def test_lpsr_keeps_what_is_right_most_often(some, twin):
    model = LPSR(partitions=6, labels=7, searched=1, depth=5).fit(*some)
    assert (model.kept_.sum(axis=1) <= 7).all()
    X, Y = some[0], some[1].toarray()
    unit = algebra.unit_rows(X)
    where = np.argmax(unit @ model.centres_.T, axis=1)
    ranked = model.ranker_.predict(X, 5).ids
    for partition in range(6):
        votes = np.zeros(Y.shape[1])
        for row in np.flatnonzero(where == partition):
            for label in ranked[row]:
                votes[label] += label >= 0 and Y[row, label] > 0
        kept = model.kept_[partition]
        assert votes[kept].min(initial=np.inf) >= votes[~kept].max(initial=0)
    top = model.predict(twin.test.X, 20)
    near = np.argmax(algebra.unit_rows(twin.test.X) @ model.centres_.T, axis=1)
    for ids, partition in zip(top.ids, near, strict=True):
        assert model.kept_[partition][ids[ids >= 0]].all()


# ------------------------------------------------------------------------------ sparse weights


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.02, 0.2]), st.sampled_from([0.1, 1.0, 5.0]))
def test_pd_sparse_closes_the_gap_between_its_objective_and_the_dual(seed, sparsity, C):
    """A dual value as large as the objective proves both to be the optimum."""
    rng = np.random.default_rng(seed)
    X, Y = sp.csr_matrix(rng.normal(size=(25, 6))), rng.random((25, 5)) < 0.4
    sums, total = sparse_linear.solved(X, as_truth(Y), sparsity, C, 300, 0)
    W = np.sign(sums) * np.maximum(np.abs(sums) - sparsity, 0)
    z, usable = X @ W, Y.any(axis=1) & ~Y.all(axis=1)
    loss = np.maximum(0, 1 + np.where(Y, -np.inf, z).max(axis=1) - np.where(Y, z, np.inf).min(axis=1))
    objective = (W**2).sum() / 2 + sparsity * np.abs(W).sum() + C * loss[usable].sum()
    dual = total - (W**2).sum() / 2
    assert dual <= objective + 1e-9
    assert objective - dual <= 0.02 * max(objective, 1)


def test_proxml_ends_when_no_weight_moves_by_more_than_eps(problem):
    X = algebra.with_constant(problem[0])
    signs = np.where(np.random.default_rng(0).random((X.shape[0], 4)) < 0.3, 1.0, -1.0)
    given = X, X.T.tocsr(), signs, 1.0, 2 * sparse_linear.largest_square(X, 30)
    each = [sparse_linear.proximal(*given, steps, 1e-12) for steps in range(1, 60)]
    moves = np.array([np.abs(after - before).max() for before, after in itertools.pairwise(each)])
    eps = float(np.sort(moves)[moves.size // 2])
    done = int(np.argmax(moves <= eps)) + 1
    assert 1 < done < moves.size
    assert sparse_linear.proximal(*given, 60, eps).tobytes() == each[done].tobytes()


def test_proxml_is_liblinears_l1_svm(problem, rows):
    """Both minimise the sizes of the weights and C times the squared hinge; LIBLINEAR by coordinate descent."""
    X, Y = problem[0], problem[1].toarray() > 0
    model = ProXML(C=5.0, steps=5000, eps=1e-7).fit(X, Y)
    weights = sp.csr_matrix((model.data_, model.indices_, model.indptr_), (rows.shape[1], Y.shape[1])).toarray()

    def objective(w, label):
        signs = np.where(Y[:, label], 1, -1)
        return np.abs(w).sum() + 5 * (np.maximum(0, 1 - signs * (rows @ w)) ** 2).sum()

    for label in np.flatnonzero(Y.any(axis=0)):
        other = LinearSVC(
            penalty="l1", loss="squared_hinge", dual=False, C=5.0, fit_intercept=False, tol=1e-8, max_iter=10**5
        )
        theirs = other.fit(rows, Y[:, label]).coef_[0]
        assert objective(weights[:, label], label) <= objective(theirs, label) * (1 + 1e-4)
        np.testing.assert_allclose(weights[:, label], theirs, atol=0.05)


@pytest.mark.parametrize(("C", "epochs", "best"), [(1.0, 1, 41), (1.0, 20, 23), (0.1, 1, 44)])
def test_stopping_pd_sparse_early_on_delicious_is_better_than_its_optimum(real_data, C, epochs, best):
    """What its notes say."""
    ds = xc.load("delicious", real_data("delicious"))
    top = xc.models.PDSparse(C=C, epochs=epochs).fit(ds.train.X, ds.train.Y).predict(ds.test.X, 1)
    assert round(100 * xc.metrics.precision(ds.test.Y, top, 1)[0]) == best
