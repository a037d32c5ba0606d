"""TwoTowers: gradients against finite differences of a loss written pair by pair, classifiers against SciPy, edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import xcrepro as xc
from tests.models.slopes import follow_the_slope
from tests.naive import same_bits
from tests.refused import refused
from xcrepro.models import TwoTowers
from xcrepro.models.kernels import two_towers as kernels
from xcrepro.models.networks import two_towers

# ---------------------------------------------------------------------- slow and obvious


def unit(v):
    length = math.sqrt(float(v @ v))
    return v / length if length else v


def slow_loss(table, X, words, Y, candidates, positives, temperature):
    """The mean over pairs of -log softmax, other relevant labels left out."""
    total = 0.0
    for i in range(X.shape[0]):
        u = unit(X[i] @ table)
        logits = {c: float(u @ unit(words[c] @ table)) / temperature for c in range(len(candidates))}
        own = logits[positives[i]]
        kept = [z for c, z in logits.items() if c == positives[i] or not Y[i, candidates[c]]]
        total += math.log(sum(math.exp(z) for z in kept)) - own
    return total / X.shape[0]


def batch(seed, n=6, n_words=7, n_labels=9, dim=4):
    rng = np.random.default_rng(seed)
    Y = rng.random((n, n_labels)) < 0.3
    Y[np.arange(n), rng.integers(n_labels, size=n)] = True
    own = np.array([rng.choice(np.flatnonzero(row)) for row in Y])
    candidates = np.unique(np.concatenate([own, rng.integers(n_labels, size=3)]))
    X = rng.random((n, n_words)) * (rng.random((n, n_words)) < 0.5)
    words = rng.random((candidates.size, n_words)) * (rng.random((candidates.size, n_words)) < 0.5)
    return X, words, Y, candidates, np.searchsorted(candidates, own), rng.normal(size=(n_words, dim))


def forms(X, words, Y):
    return [sp.csr_matrix(part.astype(np.float32)) for part in (X, words, Y)]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), temperature=st.sampled_from([0.2, 1.0]))
def test_the_step_follows_the_slope_of_the_loss(seed, temperature):
    X, words, Y, candidates, positives, table = batch(seed)
    X[0] = 0  # a point without words: no slope
    words[0] = 0  # a label without
    near = table.astype(np.float32)
    loss, gradients = two_towers.contrastive_loss(*forms(X, words, Y), candidates, positives, near, temperature)
    table = near.astype(np.float64)
    assert loss == pytest.approx(slow_loss(table, X, words, Y, candidates, positives, temperature), rel=1e-4, abs=1e-5)
    got = np.vstack([X, words]).T @ np.vstack(gradients)

    def slow(moved):
        return slow_loss(moved["table"], X, words, Y, candidates, positives, temperature)

    follow_the_slope({"table": got}, slow, {"table": table}, 1e-5, rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_adagrad_by_hand(threads, monkeypatch):
    monkeypatch.setenv("XCREPRO_THREADS", threads)
    rng = np.random.default_rng(0)
    rows = sp.csr_matrix((rng.random((5, 4)) * (rng.random((5, 4)) < 0.6)).astype(np.float32))
    rows = sp.hstack([rows, sp.csr_matrix((5, 1), dtype=np.float32)], format="csr")  # a word that nobody has
    gradient = rng.normal(size=(5, 3)).astype(np.float32)
    table = rng.normal(size=(5, 3)).astype(np.float32)
    squares = rng.random((5, 3)).astype(np.float32)
    slope = rows.toarray().T @ gradient
    want_squares = squares + slope**2
    want = table - 0.1 * slope / np.sqrt(want_squares + 1e-12)
    last = table[4].copy()
    two_towers._update(rows, gradient, table, squares, np.float32(0.1))
    np.testing.assert_allclose(table, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(squares, want_squares, rtol=1e-5)
    assert (table[4] == last).all()


def objective(w, start, rows, relevant, strength):
    z = rows @ w
    return (np.logaddexp(0, z) - relevant * z).sum() + strength / 2 * ((w - start) ** 2).sum()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), pairs=st.integers(0, 40), strength=st.sampled_from([0.1, 1.0, 10.0]))
def test_a_classifier_is_the_least_of_its_objective(seed, pairs, strength):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(50, 3)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    points = rng.permutation(50)[:pairs].astype(np.int32)
    relevant = rng.random(pairs) < 0.3
    start = 5 * rng.normal(size=(1, 3)).astype(np.float32)
    weights, bias = np.empty((1, 3), np.float32), np.empty(1, np.float32)
    offsets = np.array([0, pairs], np.int32)
    kernels.fit_classifiers(0, 1, offsets, points, relevant, rows, start, -2.0, strength, 400, weights, bias)
    at, whole = np.append(start[0], -2.0), np.hstack([rows[points], np.ones((pairs, 1))])
    best = minimize(objective, at, (at, whole, relevant, strength), method="BFGS").x
    got = np.append(weights[0], bias[0]).astype(np.float64)
    least = objective(best, at, whole, relevant, strength)
    assert objective(got, at, whole, relevant, strength) <= least + 1e-4 * (1 + abs(least))


def test_the_scale_of_cosines_by_scipy():
    rng = np.random.default_rng(0)
    cosines = rng.uniform(-1, 1, 500)
    relevant = rng.random(500) < 1 / (1 + np.exp(-(4 * cosines - 1)))
    scale, offset = two_towers.fit_scale(cosines, relevant)
    design = np.stack([np.append(cosines, [1, -1]), np.ones(502)], axis=1)
    y = np.append(relevant, [0.5, 0.5])
    best = minimize(lambda w: (np.logaddexp(0, design @ w) - y * (design @ w)).sum(), np.zeros(2)).x
    np.testing.assert_allclose([scale, offset], best, rtol=1e-3)
    # Nothing but one kind, and one cosine: still finite.
    assert np.isfinite(two_towers.fit_scale(np.ones(9), np.ones(9, bool))).all()
    assert np.isfinite(two_towers.fit_scale(np.empty(0), np.empty(0, bool))).all()


# ---------------------------------------------------------------------- the model


@pytest.fixture(scope="module")
def lf():
    return xc.twin("lf-amazontitles-131k", scale=0.002, seed=0)


SMALL = {"dim": 48, "epochs": 3}


@pytest.fixture(scope="module")
def model(lf):
    return TwoTowers(**SMALL).fit(lf.train.X, lf.train.Y, lf.label_features)


def test_words_of_labels_find_labels_that_are_rare_and_new(lf, model):
    """Far above a tree that sees label ids alone; and labels that no train point has are found by their words."""
    plt = xc.models.PLT(trees=1).fit(lf.train.X, lf.train.Y)
    best = [float(xc.metrics.precision(lf.test.Y, m.predict(lf.test.X, 1), [1])[0]) for m in (model, plt)]
    assert best[0] > 1.5 * best[1]
    new = np.unique(lf.test.Y[:60].indices)
    kept = lf.train.Y[:, new].getnnz(axis=1) == 0
    trained = TwoTowers(**SMALL).fit(lf.train.X[kept], lf.train.Y[kept], lf.label_features)
    found = trained.predict(lf.test.X[:60], 10)
    hits = xc.metrics.recall(lf.test.Y[:60], found, [10])[0]
    assert lf.train.Y[kept][:, new].nnz == 0
    assert hits > 0.12  # chance finds 10 of 1,199


def test_the_encoder_alone_knows_no_scale(lf):
    encoder = TwoTowers(output="encoder", **SMALL).fit(lf.train.X, lf.train.Y, lf.label_features)
    scores = encoder.predict(lf.test.X, 5).scores
    assert 1 / (1 + math.e) <= scores.min() < scores.max() <= 1 / (1 + 1 / math.e) + 1e-6
    v, _ = two_towers._embed(lf.label_features, encoder.embedding_)
    np.testing.assert_allclose(encoder.labels_, v, atol=1e-5)


def slow_ranking(model, X, shortlist, k):
    """Every label of every point in Python's own numbers: the nearest by their fused log-odds, all others as they are near."""
    rows = []
    for x in X.toarray().astype(float):
        u = unit(unit(x) @ model.embedding_.astype(float))
        towers = [float(model.scale_[0]) * float(u @ v) + float(model.scale_[1]) for v in model.labels_.astype(float)]
        own = [float(u @ w) + float(b) for w, b in zip(model.weights_.astype(float), model.bias_, strict=True)]
        near = sorted(range(len(own)), key=lambda label: (-float(u @ model.labels_[label].astype(float)), label))
        short = sorted(near[:shortlist], key=lambda label: (-(own[label] + towers[label]) / 2, label))
        odds = [(own[label] + towers[label]) / 2 for label in short]
        down = min(0.0, odds[-1] - towers[near[:shortlist][-1]])
        for label in near[shortlist:]:
            odds.append(min(odds[-1], towers[label] + down))
        rows.append(
            [(label, 1 / (1 + math.exp(-z))) for label, z in zip([*short, *near[shortlist:]], odds, strict=True)][:k]
        )
    return rows


@pytest.mark.parametrize("shortlist", [1, 7, 50, 2000])
def test_the_nearest_are_ranked_by_both_and_the_others_follow(lf, shortlist):
    model = TwoTowers(dim=16, epochs=1, shortlist=shortlist).fit(lf.train.X, lf.train.Y, lf.label_features)
    rows = lf.test.X[np.flatnonzero(lf.test.X.getnnz(axis=1))[:12]]
    n_labels = lf.train.Y.shape[1]
    top = model.predict(rows, n_labels + 3)
    for ids, scores, slow in zip(top.ids, top.scores, slow_ranking(model, rows, shortlist, n_labels), strict=True):
        assert ids[-3:].tolist() == [-1] * 3
        assert (np.diff(scores[:-3]) <= 0).all()
        want = dict(slow)
        np.testing.assert_allclose(scores[:-3], [want[label] for label in ids[:-3].tolist()], rtol=2e-4)
        # Labels whose log-odds differ by rounding only may change their places.
        assert [label for label, _ in slow[:5]] == ids[:5].tolist()
        assert {label for label, _ in slow[:shortlist]} == {*ids[: min(shortlist, n_labels)].tolist()}
        same = np.flatnonzero(np.diff(scores[:-3]) == 0)
        assert (ids[same] < ids[same + 1]).all() or model.scale_[0] <= 0
    for k in (1, 5, 60):
        assert same_bits(model.predict(rows, k), xc.TopK(top.ids[:, :k], top.scores[:, :k], n_labels))


def test_a_head_label_is_not_everybodys_best():
    """A quarter of all points have it and nearly none has its word, so its classifier has seen few points without it."""
    rng = np.random.default_rng(0)
    topic, head = rng.integers(60, size=1200), rng.random(1200) < 0.25
    X, Y, names = (np.zeros((n, 61), np.float32) for n in (1200, 1200, 61))
    X[np.arange(1200), topic] = 1
    X[:5, 60] = 1
    Y[np.arange(1200), topic] = rng.random(1200) < 0.5
    Y[:, 60] = head
    np.fill_diagonal(names, 1)
    model = TwoTowers(dim=16, shortlist=3).fit(X, Y, names)
    first = model.predict(X[5:], 1).ids[:, 0]
    assert (first == 60).mean() < 0.05
    assert (first == topic[5:]).mean() > 0.9
    # All labels by their classifiers: what this is a test against.
    by_all = two_towers._embed(sp.csr_matrix(X[5:]), model.embedding_)[0] @ model.weights_.T + model.bias_
    assert (by_all.argmax(axis=1) == 60).mean() > 0.5


def test_labels_and_points_without_words(lf):
    words = lf.label_features.tolil()
    words[[0, 3]] = 0
    Y = lf.train.Y.tolil()
    Y[:, 0] = 0  # neither words nor points
    model = TwoTowers(**SMALL).fit(lf.train.X, Y.tocsr(), words.tocsr())
    nothing = sp.csr_matrix((2, lf.train.X.shape[1]))
    top = model.predict(sp.vstack([lf.test.X[:1], nothing]), Y.shape[1])
    assert np.isfinite(top.scores).all()
    assert same_bits(top.rows([1]), top.rows([2]))
    assert (model.weights_[0] == 0).all()
    # What the training does not have counts for nothing.
    unknown = np.flatnonzero(lf.train.X.getnnz(axis=0) + words.tocsr().getnnz(axis=0) == 0)[:3]
    row = sp.csr_matrix((np.ones(3), unknown, [0, 3]), shape=(1, lf.train.X.shape[1]))
    assert same_bits(model.predict(row, 5), model.predict(nothing[:1], 5))


def test_without_words_of_labels_their_points_stand_in():
    X = sp.csr_matrix([[1.0, 0, 0, 0], [0, 2.0, 0, 0], [0, 0, 3.0, 0], [0, 0, 0, 4.0]])
    Y = sp.csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    words = sp.csr_matrix([[1.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    own, given = TwoTowers(dim=8).fit(X, Y), TwoTowers(dim=8).fit(X, Y, words)
    assert same_bits(own.predict(X, 3), given.predict(X, 3))
    some = sp.csr_matrix(words.toarray() * [[1], [0], [1]])
    assert same_bits(TwoTowers(dim=8).fit(X, Y, some).predict(X, 3), given.predict(X, 3))


def test_a_label_without_words_is_not_everybodys_best(lf):
    """Where it is near no point its classifier sees relevant points only, and ranks it first everywhere."""
    words = lf.label_features.tolil()
    frequent = int(np.argmax(lf.label_counts))
    words[frequent] = 0
    top = TwoTowers(**SMALL).fit(lf.train.X, lf.train.Y, words.tocsr()).predict(lf.test.X, 1)
    share = lf.test.Y[:, frequent].mean()
    assert (top.ids == frequent).mean() < 3 * share + 0.02


@pytest.mark.parametrize(
    ("words", "got"),
    [
        (np.eye(3), "shape (3, 3)"),
        (np.full((4, 4), np.nan), "nan at row 0, feature 0"),
        (np.ones(4), "ndarray of shape (4,) and dtype float64"),
    ],
)
def test_faulty_words_are_named(words, got):
    model = TwoTowers(dim=8).fit(np.eye(4), np.eye(4))
    want = model.predict(np.eye(4), 2)
    with refused("label_features", got):
        model.fit(np.eye(4), np.eye(4), words)
    assert same_bits(model.predict(np.eye(4), 2), want)
    assert model._label_features is None
