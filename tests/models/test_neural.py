"""NeuralOneVsAll: gradients against finite differences of losses written from their papers, and what training gives."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import xcrepro as xc
from tests.models.slopes import follow_the_slope, gathered
from tests.naive import multilabel_problem
from xcrepro.core.truth import as_truth
from xcrepro.models.base import unit_rows
from xcrepro.models.networks import neural
from xcrepro.models.networks.adam import Adam
from xcrepro.models.networks.neural import NeuralOneVsAll

# ---------------------------------------------------------------------- losses, as their papers print them


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def bce(z, relevant):
    return -math.log(sigmoid(z) if relevant else 1 - sigmoid(z))


def squared_hinge(z, relevant):
    return max(0.0, 1 - (1 if relevant else -1) * z) ** 2


def focal(z, relevant, gamma):
    p_t = sigmoid(z) if relevant else 1 - sigmoid(z)
    return -((1 - p_t) ** gamma) * math.log(p_t)


def asymmetric(z, relevant, positive, negative, shift):
    p = sigmoid(z)
    if relevant:
        return -((1 - p) ** positive) * math.log(p)
    shifted = max(p - shift, 0.0)
    return -(shifted**negative) * math.log(1 - shifted)


def asymmetric_of(positive, negative, shift):
    parameters = {"loss": "asymmetric", "gamma_positive": positive, "gamma_negative": negative, "shift": shift}
    return parameters, lambda z, y: asymmetric(z, y, positive, negative, shift)


CASES = {
    "bce": ({"loss": "bce"}, bce),
    "squared hinge": ({"loss": "squared_hinge"}, squared_hinge),
    "focal": ({"loss": "focal"}, lambda z, y: focal(z, y, 2.0)),
    "focal 0.5": ({"loss": "focal", "gamma": 0.5}, lambda z, y: focal(z, y, 0.5)),
    "asymmetric": ({"loss": "asymmetric"}, lambda z, y: asymmetric(z, y, 1.0, 4.0, 0.05)),
    "asymmetric, no shift": asymmetric_of(0.0, 3.0, 0.0),
    "asymmetric, shift alone": asymmetric_of(0.0, 0.0, 0.2),
}


@pytest.mark.parametrize("case", CASES)
def test_loss_gradient_is_the_slope_of_the_printed_loss(case):
    parameters, loss = CASES[case]
    # No kink (z = -1, 1; p = shift) within the step of a difference. More values than the kernel takes at a time.
    z = np.linspace(-7.03, 7.01, 700).astype(np.float32)
    got = derivatives(parameters, z)
    step = 1e-5
    for label in (0, 1):
        want = [(loss(v + step, label == 1) - loss(v - step, label == 1)) / (2 * step) for v in z.astype(float)]
        np.testing.assert_allclose(got[label], want, rtol=3e-6, atol=1e-8)


def derivatives(parameters, z):
    """Those at the margins z (float32) where no row has the label, and where all have."""
    both = np.stack([z, z])
    NeuralOneVsAll(**parameters)._loss_gradient()(both, np.ones(z.size, np.int64), np.arange(z.size))
    return both


@pytest.mark.parametrize("case", CASES)
def test_loss_gradient_in_float32_holds_far_out(case):
    parameters, _ = CASES[case]
    z = np.array([-1e38, -800, -200, -90, -30, 0.5, 30, 90, 200, 800, 1e38], np.float32)
    got = derivatives(parameters, z)
    assert np.isfinite(got).all()
    assert (got[0] >= 0).all()
    assert (got[1] <= 0).all()
    # However far on the wrong side a label is, its pull stays. (Ridnik's shift lets go of such labels on purpose.)
    if parameters["loss"] in ("bce", "focal"):
        np.testing.assert_allclose(got[0, -5:], 1, rtol=1e-6)
    if parameters["loss"] != "squared_hinge":
        exact = [[slope(parameters, v, relevant) for v in z.tolist()] for relevant in (False, True)]
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-6)
    assert np.isnan(derivatives(parameters, np.full(3, np.nan, np.float32))).all()


def slope(parameters, z, relevant):
    """The derivative of a loss with a sigmoid by its formula, in float64, each exponential of a number that is not above 0."""
    model = NeuralOneVsAll(**parameters)
    positive, negative, shift = {
        "bce": (0.0, 0.0, 0.0),
        "focal": (model.gamma, model.gamma, 0.0),
        "asymmetric": (model.gamma_positive, model.gamma_negative, model.shift),
    }[model.loss]
    p = 1 / (1 + math.exp(-z)) if z > 0 else math.exp(z) / (1 + math.exp(z))
    q = 1 / (1 + math.exp(z)) if z < 0 else math.exp(-z) / (1 + math.exp(-z))
    if relevant:
        log_p = -math.log1p(math.exp(-z)) if z > 0 else z - math.log1p(math.exp(z))
        return q**positive * (positive * p * log_p - q)
    if p <= shift:
        return 0.0
    # Of -s^gamma log(1 - s), s = p - shift: by s, times p q.
    s, rest = p - shift, q + shift
    inner = negative * s ** (negative - 1) * math.log(rest) if negative and rest else 0.0
    return s**negative * p * (q / rest if rest else 1.0) - inner * p * q


# ---------------------------------------------------------------------- the whole network


def batch_loss(weights, X, Y, mask, loss):
    """The mean loss of a batch, one pair at a time."""
    total = 0.0
    for i in range(X.shape[0]):
        hidden = np.tanh(X[i] @ weights["embedding"] + weights["hidden_bias"]) * mask[i]
        for label in range(Y.shape[1]):
            z = float(hidden @ weights["output"][label] + weights["output_bias"][label])
            total += loss(z, Y[i, label] > 0)
    return total / X.shape[0]


@pytest.mark.parametrize("case", CASES)
def test_backpropagation_against_finite_differences(case, monkeypatch):
    monkeypatch.setattr(neural, "_BLOCK", 3)  # several blocks of labels, the last one short
    monkeypatch.setenv("XCREPRO_THREADS", "2")
    parameters, loss = CASES[case]
    rng = np.random.default_rng(1)
    n, n_features, dim, n_labels = 5, 4, 3, 7
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.6)
    X[3] = 0
    Y = (rng.random((n, n_labels)) < 0.3).astype(float)
    Y[1] = 0
    shapes = {"embedding": (n_features, dim), "hidden_bias": dim, "output": (n_labels, dim), "output_bias": n_labels}
    near = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    mask = ((rng.random((n, dim)) < 0.7) / 0.7).astype(np.float32)
    given = sp.csr_matrix(X, dtype=np.float32), sp.csr_matrix(Y), NeuralOneVsAll(**parameters)._loss_gradient(), mask
    got = gathered(partial(neural.backpropagate, near, *given), near)
    follow_the_slope(got, lambda moved: batch_loss(moved, X, Y, mask, loss), near, 1e-5, rel=1e-4, abs=1e-6)


# ---------------------------------------------------------------------- training


@pytest.fixture(scope="module")
def data():
    """Points enough for the network to settle: 15 train points a label."""
    return xc.twin("bibtex", scale=0.5, seed=0)


@pytest.fixture(scope="module")
def model(data):
    return NeuralOneVsAll().fit(data.train.X, data.train.Y)


def test_as_good_as_linear_one_vs_rest(data, model):
    linear = xc.models.OneVsRest().fit(data.train.X, data.train.Y)
    ours, theirs = (xc.metrics.precision(data.test.Y, one.predict(data.test.X, 5), (1, 5)) for one in (model, linear))
    assert (ours > theirs - 0.02).all()


@pytest.mark.parametrize("loss", neural.LOSSES)
def test_scores_are_probabilities_and_squared_hinge_gives_margins(loss):
    X, Y = multilabel_problem()
    Y = Y.toarray()
    Y[:, 5] = 1
    model = NeuralOneVsAll(loss, dim=8).fit(X, Y)
    top, probability = model.predict(X, 9), model.predict_proba(X, 9)
    at = np.asarray(probability[np.arange(len(top))[:, None], top.ids].todense())
    if loss == "squared_hinge":
        assert top.scores.min() < -0.5
        np.testing.assert_allclose(at, np.clip((1 + top.scores) / 2, 0, 1), rtol=1e-6)
    else:
        np.testing.assert_array_equal(at, top.scores)
    assert probability[:, 5].min() > 0.9
    assert probability[:, 8].max() < 0.1  # never seen


def test_predictions_are_the_network_written_out(data, model):
    w = {name: array.astype(float) for name, array in model.weights_.items()}
    X = data.test.X[:9].toarray().astype(float) * 7.5  # rows are scaled to length 1, whatever they come with
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    z = np.tanh(X @ w["embedding"] + w["hidden_bias"]) @ w["output"].T + w["output_bias"]
    top = model.predict(data.test.X[:9] * 7.5, 4)
    np.testing.assert_array_equal(top.ids, np.argsort(-z, axis=1, kind="stable")[:, :4])
    np.testing.assert_allclose(top.scores, 1 / (1 + np.exp(np.sort(-z, axis=1)[:, :4])), rtol=1e-4)


def test_batch_of_all_rows_and_of_one():
    rng = np.random.default_rng(3)
    X = sp.random(12, 6, 0.6, "csr", np.float32, rng)
    Y = np.eye(4)[rng.integers(0, 4, 12)]
    for batch in (1, 5, 12, 1000):
        model = NeuralOneVsAll(dim=8, epochs=150, batch=batch, learning_rate=0.05, dropout=0.0).fit(X, Y)
        present = np.diff(X.indptr) > 0
        np.testing.assert_array_equal(model.predict(X, 1).ids[present, 0], Y.argmax(axis=1)[present])


# ---------------------------------------------------------------------- edges


def test_rows_without_features_get_the_frequencies_and_without_labels_count(data):
    X, Y = data.train.X.copy(), data.train.Y.copy()
    model = NeuralOneVsAll(epochs=3).fit(sp.vstack([X, X[:0]]), Y)
    empty = sp.csr_matrix((2, X.shape[1]), dtype=np.float32)
    probability = model.predict_proba(empty, Y.shape[1]).toarray()
    np.testing.assert_array_equal(probability[0], probability[1])
    share = np.asarray(Y.mean(axis=0)).ravel()
    assert np.corrcoef(probability[0], share)[0, 1] > 0.95
    # As many rows again, without labels: every probability falls.
    half = NeuralOneVsAll(epochs=3).fit(sp.vstack([X, X]), sp.vstack([Y, sp.csr_matrix(Y.shape)]))
    assert half.predict_proba(X[:50], 5).sum() < 0.8 * model.predict_proba(X[:50], 5).sum()


def test_one_label_and_more_places_than_labels():
    X = sp.csr_matrix(np.eye(6, dtype=np.float32))
    Y = np.array([[1], [0]] * 3)
    model = NeuralOneVsAll("squared_hinge", dim=8, epochs=100, learning_rate=0.05, batch=2).fit(X, Y)
    top = model.predict(X, 3)
    np.testing.assert_array_equal(top.ids[:, 1:], -1)
    assert (top.scores[:, 0] > 0).tolist() == [True, False] * 3
    assert model.predict_proba(X, 3).nnz == 6


def test_embeddings_that_no_point_has_stay_as_drawn_and_change_nothing():
    """Trained with every embedding, by hand, the network is the same to the bit."""
    rng = np.random.default_rng(3)
    X = sp.random(40, 30, 0.2, "csr", np.float32, rng=rng)
    X = sp.csr_matrix(X.multiply(np.arange(30) % 3 > 0))
    Y = sp.csr_matrix((rng.random((40, 5)) < 0.3).astype(float))
    model = NeuralOneVsAll(dim=8, epochs=3, batch=7, dropout=0.3).fit(X, Y)
    draw = np.random.default_rng(model.seed)
    unit, truth = unit_rows(X).astype(np.float32), as_truth(Y)
    weights = model._start(30, truth)
    drawn, optimizer = weights["embedding"].copy(), Adam(weights)
    for epoch in range(3):
        order = draw.permutation(40)
        for lo in range(0, 40, 7):
            rows = order[lo : lo + 7]
            mask = (draw.random((rows.size, 8), np.float32) >= 0.3) * np.float32(1 / (1 - 0.3))
            optimizer.start_step(0.003 * (1 - (6 * epoch + lo // 7) / 18))
            neural.backpropagate(
                weights, unit[rows], truth.to_csr()[rows], model._loss_gradient(), mask, optimizer.update
            )
    for name, array in weights.items():
        np.testing.assert_array_equal(model.weights_[name], array)
    np.testing.assert_array_equal(model.weights_["embedding"][::3], drawn[::3])
    assert (model.weights_["embedding"][1::3] != drawn[1::3]).all(axis=1).any()
