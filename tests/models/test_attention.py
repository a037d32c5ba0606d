"""LabelAttention: its equations written out pair by pair, gradients against finite differences, and what training gives."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.models.slopes import follow_the_slope
from tests.refused import refused
from xcrepro.models.kernels import attention as kernel
from xcrepro.models.networks import attention
from xcrepro.models.networks.attention import LabelAttention

# ---------------------------------------------------------------------- the equations, one pair at a time


def margin(words, weights, label):
    """z of one label for a document, words: {word: weight}."""
    looks = {w: float(np.clip(weights["embedding"][w] @ weights["query"][label], -20, 20)) for w in words}
    total = sum(v * math.exp(looks[w]) for w, v in words.items())
    seen = [v * math.exp(looks[w]) / total * weights["embedding"][w] for w, v in words.items()]
    context = np.sum(seen, axis=0) if words else np.zeros(weights["embedding"].shape[1])
    return float(context @ weights["output"][label] + weights["bias"][label])


def documents(X):
    return [dict(zip(row.indices.tolist(), row.data.astype(float).tolist(), strict=True)) for row in sp.csr_matrix(X)]


def batch_loss(weights, X, relevant, importance):
    total = 0.0
    for i, words in enumerate(documents(X)):
        for label in range(relevant.shape[1]):
            p = 1 / (1 + math.exp(-margin(words, weights, label)))
            total -= float(importance[label]) * math.log(p if relevant[i, label] else 1 - p)
    return total / X.shape[0]


def draw_weights(rng, n_words, n_labels, dim, scale=1.0):
    return {
        "embedding": rng.normal(0, scale, (n_words, dim)).astype(np.float32),
        "query": rng.normal(0, scale, (n_labels, dim)).astype(np.float32),
        "output": rng.normal(0, scale, (n_labels, dim)).astype(np.float32),
        "bias": rng.normal(size=n_labels).astype(np.float32),
    }


def draw_documents(rng, n, n_words):
    """Some words in all rows but one, which has none."""
    X = rng.random((n, n_words)) * (rng.random((n, n_words)) < 0.6)
    X[min(2, n - 1)] = 0
    return sp.csr_matrix(X)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_backpropagation_against_finite_differences(threads, monkeypatch):
    monkeypatch.setattr(attention, "_BLOCK", 3)  # several blocks of labels, the last one short
    monkeypatch.setenv("XCREPRO_THREADS", threads)
    rng = np.random.default_rng(1)
    n, n_words, dim, n_labels = 5, 6, 3, 7
    weights, X = draw_weights(rng, n_words, n_labels, dim), draw_documents(rng, n, n_words)
    weights["query"][0] *= 40  # beyond the limit for some words: nothing moves there
    looks = weights["embedding"] @ weights["query"].T
    assert (np.abs(looks) > 20).any()
    assert (np.abs(np.abs(looks) - 20) > 0.01).all()
    relevant = rng.random((n, n_labels)) < 0.3
    importance = (rng.random(n_labels) + 0.5).astype(np.float32)
    got = attention.backpropagate(weights, X.astype(np.float32), relevant, importance)
    assert got.keys() == weights.keys()
    slow = partial(batch_loss, X=X, relevant=relevant, importance=importance)
    follow_the_slope(got, slow, weights, 1e-5, rel=2e-4, abs=2e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 8), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_attend_is_the_weighted_mean_of_what_is_seen(n, n_words, n_labels, seed):
    rng = np.random.default_rng(seed)
    X = draw_documents(rng, n, n_words)
    look, seen = rng.normal(0, 8, (2, n_words, n_labels)).clip(-20, 20)
    mass, score = np.full((2, n, n_labels), np.nan)
    kernel.attend(X.indptr, X.indices, X.data, np.exp(look), seen, mass, score)
    for i, words in enumerate(documents(X)):
        for label in range(n_labels):
            total = math.fsum(v * math.exp(look[w, label]) for w, v in words.items())
            want = math.fsum(v * math.exp(look[w, label]) * seen[w, label] for w, v in words.items()) / (total or 1)
            assert mass[i, label] == pytest.approx(total, rel=1e-12)
            assert score[i, label] == pytest.approx(want, rel=1e-9, abs=1e-9)


# ---------------------------------------------------------------------- sampled negatives


def test_the_gradient_of_sampled_labels_is_that_of_all_in_the_mean():
    rng = np.random.default_rng(6)
    weights, X = draw_weights(rng, 6, 8, 3), draw_documents(rng, 4, 6).astype(np.float32)
    relevant = np.zeros((4, 8), bool)
    relevant[[0, 1, 3], [2, 5, 2]] = True
    whole = attention.backpropagate(weights, X, relevant, np.ones(8, np.float32))
    mean = {name: np.zeros_like(array) for name, array in weights.items()}
    rounds = 1500
    for _ in range(rounds):
        labels, importance = attention._choose_labels(sp.csr_matrix(relevant), 3, rng)
        local = weights | {name: weights[name][labels] for name in ("query", "output", "bias")}
        found = attention.backpropagate(local, X, relevant[:, labels], importance)
        mean["embedding"] += found["embedding"] / rounds
        for name in ("query", "output", "bias"):
            mean[name][labels] += found[name] / rounds
    for name in weights:
        np.testing.assert_allclose(mean[name], whole[name], atol=0.08 * np.abs(whole[name]).max(), err_msg=name)
    # The test can fail: without importance it would.
    assert np.abs(mean["bias"]).max() > 0.1


def test_words_left_out():
    rng = np.random.default_rng(7)
    X = sp.random(50, 80, 0.5, "csr", np.float32, rng)
    assert (attention._drop_words(X, 0.0, rng) != X).nnz == 0
    part = attention._drop_words(X, 0.25, rng)
    assert part.nnz / X.nnz == pytest.approx(0.75, abs=0.03)
    at = part.nonzero()
    np.testing.assert_array_equal(part[at], X[at])


@pytest.mark.parametrize(
    ("n", "epochs", "batch", "steps", "rows"),
    [(1000, 10, 64, 100, 64), (1000, 10, 64, 500, 20), (424, 10, 64, 500, 8), (30, 1, 64, 500, 1), (30, 2, 7, 1, 7)],
)
def test_few_rows_have_smaller_batches_and_no_fewer_steps(n, epochs, batch, steps, rows):
    model = LabelAttention(epochs=epochs, batch=batch, steps=steps)
    assert model._rows_a_step(n) == rows
    assert epochs * math.ceil(n / rows) >= min(steps, epochs * n)


# ---------------------------------------------------------------------- training


@pytest.fixture(scope="module")
def data():
    return xc.twin("bibtex", scale=0.4, seed=0)


@pytest.fixture(scope="module")
def model(data):
    return LabelAttention(dim=32, epochs=10).fit(data.train.X, data.train.Y)


def test_as_good_as_linear_one_vs_rest(data, model):
    linear = xc.models.OneVsRest().fit(data.train.X, data.train.Y).predict(data.test.X, 5)
    P = [xc.metrics.precision(data.test.Y, top, (1, 5)) for top in (model.predict(data.test.X, 5), linear)]
    assert (P[0] > P[1] - 0.05).all()


def test_predictions_are_the_equations_written_out(data, model):
    weights = {name: getattr(model, f"{name}_").astype(float) for name in ("embedding", "query", "output", "bias")}
    X = data.test.X[:5]
    z = np.array(
        [[margin(words, weights, j) for j in range(model.labels_.size)] for words in documents(X[:, model.features_])]
    )
    top = model.predict(X, 4)
    order = np.argsort(-z, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(top.ids, model.labels_[order])
    np.testing.assert_allclose(top.scores, 1 / (1 + np.exp(-np.take_along_axis(z, order, 1))), rtol=1e-4)
    np.testing.assert_array_equal(model.predict_proba(X, 4).toarray().max(axis=1), top.scores[:, 0])


def test_a_row_at_a_time_gives_the_same(data, model, monkeypatch):
    top = model.predict(data.test.X[:40], 5)
    monkeypatch.setattr(attention, "_SCORES", 1)
    again = model.predict(data.test.X[:40], 5)
    np.testing.assert_array_equal(again.ids, top.ids)
    np.testing.assert_allclose(again.scores, top.scores, rtol=1e-5)


# ---------------------------------------------------------------------- edges


def test_rows_without_words_get_the_frequencies_and_a_label_never_seen_nothing(data):
    Y = data.train.Y.tolil()
    Y[:, 3] = 0
    Y = Y.tocsr()
    model = LabelAttention(dim=8, epochs=3, steps=100).fit(data.train.X, Y)
    empty = sp.csr_matrix((2, data.train.X.shape[1]), dtype=np.float32)
    L = Y.shape[1]
    top = model.predict(empty, L)
    assert top.ids[0, -1] == -1
    assert 3 not in top.ids
    probability = model.predict_proba(empty, L).toarray()
    np.testing.assert_array_equal(probability[0], probability[1])
    assert np.corrcoef(probability[0], np.asarray(Y.mean(axis=0)).ravel())[0, 1] > 0.9


def test_a_word_without_a_training_row_is_ignored():
    rng = np.random.default_rng(3)
    X = draw_documents(rng, 40, 8)
    wide = sp.csr_matrix(sp.hstack([X, sp.csr_matrix((40, 2))]))
    Y = (rng.random((40, 5)) < 0.3).astype(float)
    model = LabelAttention(dim=8, epochs=3).fit(wide, Y)
    new = wide.tolil()
    new[:, 9] = 5.0
    np.testing.assert_allclose(model.predict(new, 5).scores, model.predict(wide, 5).scores, rtol=1e-5)
    assert model.features_.tolist() == list(range(8))


def test_tiny_weights_and_one_of_everything():
    X = np.array([[1e-38, 1.0], [1.0, 0.0], [1e30, 1e-30], [0, 0]])
    Y = np.array([[1.0], [0.0], [0.0], [1.0]])
    for dropout in (0.0, 0.9):
        model = LabelAttention(dim=1, epochs=20, batch=1, negatives=1, learning_rate=1.0, dropout=dropout).fit(X, Y)
        top = model.predict(X, 3)
        assert np.isfinite(top.scores[:, 0]).all()
        np.testing.assert_array_equal(top.ids[:, 1:], -1)


def test_bad_input_is_refused():
    X, Y = np.eye(3), np.eye(3)
    with refused("X", "-2.0 at row 1, feature 1"):
        LabelAttention(dim=2, epochs=1).fit(np.diag([1.0, -2.0, 1.0]), Y)
    model = LabelAttention(dim=2, epochs=1).fit(X, Y)
    with refused("X", "-1.0 at row 0, feature 0"):
        model.predict(-X, 1)
