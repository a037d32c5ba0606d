"""Linear one-vs-rest, held to scikit-learn, its own duality gap and napkinXC."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.naive import multilabel_problem, same_bits
from tests.refused import refused
from xcrepro import models as m
from xcrepro.models import linear

KINDS = {"logistic": m.OneVsRest, "squared_hinge": partial(m.OneVsRest, "squared_hinge"), "dismec": m.DiSMEC}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def some(twin):
    """More points than a sample of the Hessian, and some of their labels."""
    return twin.train.X, sp.csr_matrix(twin.train.Y)[:, :150]


def dense_margins(model):
    """What the model learned, as one (D + 1, L) array, the bias last."""
    return np.vstack([model.weights_.toarray(), model.bias_])


def with_bias(X):
    """Unit rows in float64, and a column of ones."""
    X = sp.csr_matrix(X).toarray().astype(float)
    length = np.sqrt((X**2).sum(axis=1, keepdims=True))
    return np.hstack([np.divide(X, length, out=np.zeros_like(X), where=length > 0), np.ones((len(X), 1))])


def objective_and_gap(X, y, w, loss, C):
    """Of one label, from the definitions: the dual variable of a point is C times minus the derivative of its loss."""
    primal, dual = float(w @ w) / 2, 0.0
    a = np.zeros(len(y))
    for i, margin in enumerate(y * (X @ w)):
        if loss == "logistic":
            p = 1 / (1 + math.exp(margin)) if margin < 700 else 0.0
            primal += C * (math.log1p(math.exp(-margin)) if margin > 0 else math.log1p(math.exp(margin)) - margin)
            a[i] = C * p
            dual -= C * sum(q * math.log(q) for q in (p, 1 - p) if q > 0)
        else:
            short = max(0.0, 1 - margin)
            primal += C * short**2
            a[i] = 2 * C * short
            dual += a[i] - a[i] ** 2 / (4 * C)
    v = X.T @ (a * y)
    return primal, primal - (dual - float(v @ v) / 2)


def scikit_learn(X, y, loss, C, times=1.0):
    """``times``: how often a positive counts."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    about = {"C": C, "fit_intercept": False, "tol": 1e-10, "class_weight": {max(y): times}}
    if loss == "logistic":
        oracle = LogisticRegression(solver="newton-cg", max_iter=1000, **about)
    else:
        oracle = LinearSVC(dual=False, max_iter=10000, **about)
    with warnings.catch_warnings(action="ignore"):  # that it gets no further is as near as it comes
        return oracle.fit(X, y).coef_.ravel()


# ------------------------------------------------------------------------------ what is learned


each_loss = pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])


class Weighted(m.OneVsRest):
    """With losses of positives that count as often as its ``times`` say."""

    def _positives_count(self, truth):
        return np.asarray(self.times, float)


@pytest.mark.parametrize(("loss", "C"), [("logistic", 10.0), ("logistic", 0.5), ("squared_hinge", 1.0)])
@pytest.mark.parametrize("most", [1.0, 9.0, 400.0])
def test_weighted_positives_are_those_of_scikit_learn(loss, C, most):
    X, Y = multilabel_problem()
    model = Weighted(loss, C=C, eps=1e-9, threshold=0.0)
    model.times = np.random.default_rng(3).uniform(1.0, most, Y.shape[1])
    model.fit(X, Y)
    for label in range(Y.shape[1]):
        y = Y[:, [label]].toarray().ravel()
        if y.any():
            want = scikit_learn(with_bias(X), y, loss, C, model.times[label])
            np.testing.assert_allclose(dense_margins(model)[:, label], want, rtol=2e-3, atol=2e-3)


def test_large_weighted_problems_reach_their_optimum_too(some):
    """More points than the sample of the Hessian takes."""
    X, Y = some
    label = np.argmax(np.asarray(Y.sum(axis=0)).ravel())
    y = Y[:, [label]].toarray().ravel()
    for loss in ("logistic", "squared_hinge"):
        model = Weighted(loss, C=1.0, eps=1e-8, threshold=0.0)
        model.times = np.array([7.5])
        got = dense_margins(model.fit(X, Y[:, [label]]))[:, 0]
        np.testing.assert_allclose(got, scikit_learn(with_bias(X), y, loss, 1.0, 7.5), atol=2e-3)


def test_propensities_of_1_are_dismec_and_lower_ones_its_positives_weighed(some):
    X, Y = some
    plain, given = m.DiSMEC().fit(X, Y), np.linspace(1, 30, Y.shape[1])
    assert same_bits(plain.predict(X, 5), m.PWDiSMEC(inverse_propensity=np.ones(Y.shape[1])).fit(X, Y).predict(X, 5))
    other = Weighted("squared_hinge", C=1.0)
    other.times = 2 * given - 1
    weighed = m.PWDiSMEC(inverse_propensity=given).fit(X, Y)
    assert same_bits(other.fit(X, Y).predict(X, 5), weighed.predict(X, 5))
    usual = m.PWDiSMEC(A=0.5, B=0.4).fit(X, Y).inverse_propensity_
    np.testing.assert_array_equal(usual, xc.propensity.inverse(np.asarray(Y.sum(axis=0)).ravel(), X.shape[0], 0.5, 0.4))


@st.composite
def problems(draw):
    """X with rows and features that may be empty, all the same or huge, and one label with both kinds of points."""
    n, n_features = draw(st.integers(2, 30)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < draw(st.sampled_from([0.2, 0.7, 1.0])))
    size = draw(st.sampled_from([1.0, 1e30, 1e-30, 0.0]))
    X = X * size if size else np.sign(X)
    X[0, 0] = 1.0
    if draw(st.booleans()):
        X[:, -1] = 3.0
    y = rng.random(n) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    y[:2] = True, False
    return X, y.astype(float)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from(["logistic", "squared_hinge"]), st.sampled_from([0.01, 1.0, 10.0, 1000.0]))
def test_the_duality_gap_is_as_small_as_eps_says(problem, loss, C):
    X, y = problem
    for eps in (1e-1, 1e-5):
        model = m.OneVsRest(loss, C=C, eps=eps, threshold=0.0).fit(X, y[:, None])
        w = dense_margins(model)[:, 0].astype(float)
        objective, gap = objective_and_gap(with_bias(X), 2 * y - 1, w, loss, C)
        assert gap <= 1.1 * eps * objective + 1e-12  # the weights are float32, the gap is theirs
    best = scikit_learn(with_bias(X), y, loss, C)
    assert objective <= objective_and_gap(with_bias(X), 2 * y - 1, best, loss, C)[0] * (1 + 2e-5)


@each_loss
def test_large_problems_sample_their_hessian_and_reach_the_optimum_all_the_same(loss, some):
    """More points than the sample takes; whichever these are, the objective is the same."""
    X, Y = some
    models = [m.OneVsRest(loss, eps=1e-6, threshold=0.0, seed=seed).fit(X, Y) for seed in (0, 1)]
    assert not same_bits(*(model.predict(X, 3) for model in models))
    rows, counts = with_bias(X), np.asarray(Y.sum(axis=0)).ravel()
    for label in np.argsort(-counts)[:3]:
        y = 2 * Y[:, [label]].toarray().ravel() - 1
        C = linear._LOSSES[loss]
        found = [objective_and_gap(rows, y, dense_margins(model)[:, label].astype(float), loss, C) for model in models]
        assert found[0][0] == pytest.approx(found[1][0], rel=2e-6)
        assert max(gap / objective for objective, gap in found) < 2e-6


@each_loss
@pytest.mark.parametrize("C", [1e-8, 1e5])
def test_extreme_costs_end(loss, C):
    """Where the weights are only as near as float32 brings them."""
    X, Y = multilabel_problem()
    model = m.OneVsRest(loss, C=C, threshold=0.0).fit(X, Y)
    learned, rows = dense_margins(model).astype(float), with_bias(X)
    assert np.isfinite(model.weights_.data).all()
    for label in (0, 1, 2):
        y = 2 * Y[:, [label]].toarray().ravel() - 1
        objective, gap = objective_and_gap(rows, y, learned[:, label], loss, C)
        assert gap <= 0.01 * objective
        assert objective < objective_and_gap(rows, y, np.zeros(13), loss, C)[0]


def test_default_cost_is_ten_for_logistic_and_one_for_the_hinge():
    X, Y = multilabel_problem()
    for kind, C in (("logistic", 10.0), ("squared_hinge", 1.0), ("dismec", 1.0)):
        by_default, other = KINDS[kind](), KINDS[kind](C=3.0)
        assert same_bits(by_default.fit(X, Y).predict(X), KINDS[kind](C=C).fit(X, Y).predict(X))
        assert not same_bits(by_default.predict(X), other.fit(X, Y).predict(X))


@each_loss
def test_probabilities_and_margins_are_napkinxc_s(loss, some, twin):
    from napkinxc.models import BR

    (X, Y), Xt = some, twin.test.X
    ctypes.CDLL(None).srand(1)  # by which LIBLINEAR draws
    model = m.OneVsRest(loss, eps=1e-8, threshold=0).fit(X, Y)
    top = model.predict(Xt, Y.shape[1])
    name, C = {"logistic": "log", "squared_hinge": "l2"}[loss], linear._LOSSES[loss]
    with tempfile.TemporaryDirectory() as folder:
        napkin = BR(folder, loss=name, liblinear_c=C, liblinear_eps=1e-4, weights_threshold=0, threads=1)
        napkin.fit(X, Y)
        theirs = napkin.predict_proba(Xt, top_k=int(Y.shape[1]))
    want = xc.TopK.from_pairs([dict(sorted(row)).items() for row in theirs], n_labels=Y.shape[1]).to_csr().toarray()
    if loss == "squared_hinge":
        top = xc.TopK(top.ids, np.exp(-(np.maximum(0, 1 - top.scores) ** 2)), top.n_labels)
    got = top.to_csr().toarray()
    seen = np.asarray(Y.sum(axis=0)).ravel() > 0
    np.testing.assert_allclose(got[:, seen], want[:, seen], atol=1e-3)
    assert not got[:, ~seen].any()


def test_scores_are_the_margins_of_the_unit_rows():
    X, Y = multilabel_problem()
    model = m.DiSMEC().fit(X, Y)
    top = model.predict(X, 3)
    learned = dense_margins(model)
    for i, row in enumerate(X.toarray().astype(float)):
        length = np.sqrt((row**2).sum())
        margins = np.append(row / length if length else row, 1.0) @ np.where(np.isfinite(learned), learned, -1e9)
        order = sorted(range(margins.size), key=lambda label: (-margins[label], label))[:3]
        assert top.ids[i].tolist() == order
        np.testing.assert_allclose(top.scores[i], margins[order], rtol=1e-6)


def test_threshold_prunes_weights_and_not_biases():
    X, Y = multilabel_problem()
    whole = dense_margins(m.DiSMEC(threshold=0.0).fit(X, Y))
    pruned = dense_margins(m.DiSMEC(threshold=0.3).fit(X, Y))
    np.testing.assert_array_equal(pruned[:-1], np.where(np.abs(whole[:-1]) >= 0.3, whole[:-1], 0))
    np.testing.assert_array_equal(pruned[-1], whole[-1])
    assert ((np.abs(whole[:-1]) < 0.3) & (whole[:-1] != 0)).any()
    assert (np.abs(whole[-1]) < 0.3).any()
    assert m.DiSMEC().threshold == 0.01


# ------------------------------------------------------------------------------ repeatable


def test_fits_at_the_same_time_do_not_disturb_each_other(some, twin):
    def work(_):
        return m.DiSMEC(eps=0.5).fit(*some).predict(twin.test.X)

    with ThreadPoolExecutor(2) as pool:
        assert same_bits(*pool.map(work, range(2)))


@each_loss
def test_same_bits_for_any_threads_neighbours_and_calls(loss, some, monkeypatch):
    X, Y = some[0], some[1].tocsc()
    monkeypatch.setenv("XCREPRO_THREADS", "1")
    whole = dense_margins(m.OneVsRest(loss).fit(X, Y))
    monkeypatch.setenv("XCREPRO_THREADS", "2")
    np.testing.assert_array_equal(dense_margins(m.OneVsRest(loss).fit(X, Y)), whole)
    backwards = dense_margins(m.OneVsRest(loss).fit(X, Y[:, ::-1]))
    np.testing.assert_array_equal(backwards[:, ::-1], whole)
    seen = np.flatnonzero(np.diff(Y.indptr))[:20]
    for lanes, at_once in ((1, 3), (5, 256)):
        monkeypatch.setattr(linear, "_LANES", lanes)
        monkeypatch.setattr(linear, "_AT_ONCE", at_once)
        few = dense_margins(m.OneVsRest(loss).fit(X, Y[:, seen]))
        np.testing.assert_array_equal(few, whole[:, seen])


def test_training_gives_its_memory_back():
    """What the primal solvers of napkinXC do not: with them this grew by about 150 MB."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("no /proc to read the memory in use from")
    rng = np.random.default_rng(0)
    X = sp.random(500, 20000, 0.002, "csr", rng=rng)
    Y = sp.random(500, 400, 0.02, "csr", rng=rng)

    def megabytes():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

    model = m.DiSMEC()
    model.fit(X[:, :100], Y[:, :5])
    before = megabytes()
    model.fit(X, Y)
    gc.collect()
    assert megabytes() - before < 60


# ------------------------------------------------------------------------------ edges


@each_kind
def test_a_label_relevant_everywhere_comes_first(kind):
    X, Y = multilabel_problem()
    Y = Y.tolil()
    Y[:, 6] = 1
    top = KINDS[kind]().fit(X, Y).predict(X, 2)
    assert (top.ids[:, 0] == 6).all()
    if kind in ("squared_hinge", "dismec"):
        assert (top.scores[:, 0] == 10).all()


@each_kind
@pytest.mark.parametrize("Y", [[[0, 1, 0]], [[1], [0], [1], [0]], [[0, 1]] * 4, [[0, 0], [0, 1], [0, 0], [0, 0]]])
def test_smallest_problems(kind, Y):
    """One row; one label, of two points and of all; one positive."""
    X, Y = np.eye(len(Y), 4) + (len(Y) == 1), np.array(Y)
    top = KINDS[kind]().fit(X, Y).predict(X, 2)
    assert (top.ids[:, 0] == Y.shape[1] // 2).all()
    assert (top.ids[:, 1] == -1).all()


@each_kind
def test_features_that_are_all_zero_are_refused(kind):
    X, Y = multilabel_problem()
    with refused("X", match="a feature"):
        KINDS[kind]().fit(sp.csr_matrix(X.shape), Y)


def test_a_saturated_probability_does_not_make_a_tie():
    """Margins 18 and 20 are both 1.0 as float32 probabilities; the order stays that of the margins."""
    model = m.OneVsRest().fit(np.eye(3), np.eye(3))
    model.weights_ = sp.csr_matrix((3, 3), dtype=np.float32)
    model.bias_ = np.array([18, 20, -200], np.float32)
    top = model.predict(np.eye(3), 3)
    assert top.ids[0].tolist() == [1, 0, 2]
    assert top.scores[0].tolist() == [1.0, 1.0, 0.0]


def test_large_weights_are_multiplied_sparse_with_the_same_bits(monkeypatch):
    X, Y = multilabel_problem()
    model = m.OneVsRest().fit(X, Y)
    dense = model.predict(X, 4)
    monkeypatch.setattr(linear, "_DENSE", 0)
    monkeypatch.setattr(linear, "_BLOCK", 30)  # and in blocks of three rows
    assert same_bits(model.predict(X, 4), dense)


# ------------------------------------------------------------------------------ files and noise


def test_features_that_no_point_has_change_nothing():
    X, Y = multilabel_problem()
    wide = sp.csr_matrix((X.data, 3 * X.indices + 1, X.indptr), (X.shape[0], 3 * X.shape[1] + 2))
    narrow, same = m.OneVsRest().fit(X, Y), m.OneVsRest().fit(wide, Y)
    assert same.weights_.shape[0] == wide.shape[1]
    assert (same.weights_[1 : 3 * X.shape[1] + 1 : 3] != narrow.weights_).nnz == 0
    assert same.weights_.nnz == narrow.weights_.nnz
    assert same_bits(same.predict(wide, 3), narrow.predict(X, 3))
