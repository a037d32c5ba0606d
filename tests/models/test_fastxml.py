"""The FastXML family: each step against a slow twin of it, whole trees against what they promise, Bibtex as published."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.naive import same_bits
from tests.refused import refused
from xcrepro.models import FastXML, PfastreXML, PfastXML, load
from xcrepro.models.kernels import fastxml as kernel

# ---------------------------------------------------------------- one node's partition


def csr_of(label_sets):
    indptr = np.cumsum([0] + [len(y) for y in label_sets]).astype(np.int64)
    return indptr, np.array([label for y in label_sets for label in sorted(y)], np.int32)


def side_sums(label_sets, side, gains, ideal, of):
    sums = [0.0] * len(gains)
    for y, s, total in zip(label_sets, side, ideal, strict=True):
        if s == of:
            for label in y:
                sums[label] += gains[label] / total
    return sums


def best_order(sums):
    return sorted(range(len(sums)), key=lambda label: (-sums[label], label))


def partition_ndcg(label_sets, side, gains, ideal):
    """The mean nDCG where each side ranks the labels as is best for it."""
    total = 0.0
    for of in (-1, 1):
        sums = side_sums(label_sets, side, gains, ideal, of)
        total += sum(sums[label] / math.log2(rank + 2) for rank, label in enumerate(best_order(sums)))
    return total / len(label_sets)


def step(label_sets, side, gains, ideal):
    """One pass of the closed forms: both rankings given the sides, then each row's side given the rankings."""
    place = {}
    for of in (-1, 1):
        order = best_order(side_sums(label_sets, side, gains, ideal, of))
        place[of] = {label: 1 / math.log2(rank + 2) for rank, label in enumerate(order)}
    new = []
    for y, s in zip(label_sets, side, strict=True):
        more = sum(gains[label] * (place[1][label] - place[-1][label]) for label in y)
        # Where the two sides tell a row nothing apart it stays; a hair's breadth is rounding.
        new.append(s if abs(more) < 1e-12 else (1 if more > 0 else -1))
    return new


@st.composite
def nodes(draw):
    n_labels = draw(st.integers(1, 5))
    n = draw(st.integers(1, 7))
    label_sets = [sorted(draw(st.sets(st.integers(0, n_labels - 1)))) for _ in range(n)]
    # Gains and normalisers with few digits, so that ties happen, and none by rounding alone.
    gains = [draw(st.sampled_from([1.0, 1.5, 2.0, 4.0])) for _ in range(n_labels)]
    ideal = [draw(st.sampled_from([1.0, 2.0, 0.5])) for _ in range(n)]
    side = [draw(st.sampled_from([-1, 1])) for _ in range(n)]
    return label_sets, gains, ideal, side


def run_alternate(label_sets, gains, ideal, side, steps=100):
    indptr, indices = csr_of(label_sets)
    discount = 1.0 / np.log2(np.arange(len(gains)) + 2.0)
    sides = np.array(side, np.int8)
    trace = np.full(steps, np.nan)
    written = kernel.alternate(
        indptr, indices, np.arange(len(label_sets)), np.arange(len(gains)), np.array(gains), np.array(ideal), discount,
        sides, trace,
    )  # fmt: skip
    return sides.tolist(), trace[:written]


@settings(max_examples=200, deadline=None)
@given(nodes())
def test_the_alternation_is_the_closed_forms_and_never_falls(node):
    label_sets, gains, ideal, side = node
    end, trace = run_alternate(*node)
    assert (np.diff(trace) >= -1e-12).all()
    # Its steps are those of the oracle: same objective before each, and the same sides behind the last.
    for value in trace:
        assert value == pytest.approx(partition_ndcg(label_sets, side, gains, ideal), abs=1e-12)
        side = step(label_sets, side, gains, ideal)
    assert end == side
    # What is reached is no worse than what was written last, and a further pass gains nothing.
    reached = partition_ndcg(label_sets, end, gains, ideal)
    assert reached >= trace[-1] - 1e-12
    further = partition_ndcg(label_sets, step(label_sets, end, gains, ideal), gains, ideal)
    assert further <= reached + 1e-6 * reached + 1e-12


@settings(max_examples=60, deadline=None)
@given(nodes())
def test_from_every_start_the_best_partition_is_the_brute_force_one(node):
    label_sets, gains, ideal, _ = node

    def best_of(sides):
        return max(partition_ndcg(label_sets, side, gains, ideal) for side in sides)

    starts = [list(start) for start in itertools.product((-1, 1), repeat=len(label_sets))]
    reached = [run_alternate(label_sets, gains, ideal, start)[0] for start in starts]
    assert best_of(reached) == pytest.approx(best_of(starts), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([0.0, -1.0, 2.0, 2.5, 7.0]), max_size=40))
def test_falling_sorts_stably(keys):
    assert kernel.falling(np.array(keys, np.float64)).tolist() == sorted(range(len(keys)), key=lambda i: -keys[i])


# ---------------------------------------------------------------- one node's separator


def separator(X, side, cost, tol):
    X = sp.csr_matrix(X, dtype=np.float32)
    scratch = np.full(X.shape[1], -1, np.int64)
    features, weights = kernel.separate(
        X.indptr.astype(np.int64), X.indices, X.data, np.arange(X.shape[0]), side, np.array(cost), tol, scratch
    )
    assert (scratch == -1).all()
    assert (np.diff(features) > 0).all()
    assert (weights != 0).all()
    w = np.zeros(X.shape[1])
    w[features] = weights
    return w


def logistic_objective(X, side, cost, w):
    costs = np.where(side > 0, cost[1], cost[0])
    return np.abs(w).sum() + (costs * np.logaddexp(0, -side * (X @ w))).sum()


@pytest.mark.parametrize(
    ("n", "features", "cost"), [(40, 12, (1.0, 1.0)), (200, 60, (0.7, 3.0)), (25, 300, (8.0, 8.0))]
)
def test_the_separator_reaches_liblinears_optimum(n, features, cost):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(n)
    X = sp.random_array((n, features), density=0.2, rng=rng, data_sampler=rng.standard_normal).tocsr()
    side = np.where(X @ rng.standard_normal(features) + rng.standard_normal(n) > 0, 1, -1).astype(np.int8)
    X = sp.csr_matrix(X, dtype=np.float32)
    reference = LogisticRegression(
        solver="liblinear", l1_ratio=1, C=1.0, fit_intercept=False, tol=1e-8, max_iter=10000, random_state=0
    ).fit(X.astype(np.float64), side, sample_weight=np.where(side > 0, cost[1], cost[0]))
    want = logistic_objective(X, side, cost, reference.coef_.ravel())
    got = logistic_objective(X, side, cost, separator(X, side, cost, 1e-8))
    assert got == pytest.approx(want, rel=1e-6)
    # The tolerance the trees use is loose, but not lost; and 0, the start, is far off.
    assert want * (1 - 1e-9) <= logistic_objective(X, side, cost, separator(X, side, cost, 0.01)) <= want * 1.02
    assert logistic_objective(X, side, cost, np.zeros(features)) > want * 1.05


def test_a_separator_with_nothing_to_gain_is_empty():
    side = np.array([1, -1, 1, -1], np.int8)
    assert not separator(np.ones((4, 1)), side, (1.0, 1.0), 1e-6).any()


# ---------------------------------------------------------------- whole models


@pytest.fixture(scope="module")
def fitted(twin):
    model = PfastreXML(trees=4, max_leaf=8, labels_per_leaf=6, seed=3)
    return model.fit(twin.train.X, twin.train.Y)


def leaf_of(model, tree, x):
    """Walk down one tree, one dense dot product a node. ``x`` has its bias."""
    node = model.roots_[tree]
    while model.left_[node] != kernel.LEAF:
        at = slice(model.w_indptr_[node], model.w_indptr_[node + 1])
        w = np.zeros(x.size)
        w[model.w_indices_[at]] = model.w_data_[at]
        node = model.left_[node] + (1 if np.dot(w, x) > 0 else 0)
    return int(node)


def leaf_values(model, node):
    at = slice(model.p_indptr_[node], model.p_indptr_[node + 1])
    return dict(zip(model.p_indices_[at].tolist(), model.p_data_[at].tolist(), strict=True))


def dense_rows(X, bias=1.0):
    return np.hstack([X.toarray().astype(np.float64), np.full((X.shape[0], 1), bias)])


def tree_scores(model, x):
    scores: dict[int, float] = {}
    for tree in range(model.roots_.size):
        for label, value in leaf_values(model, leaf_of(model, tree, x)).items():
            scores[label] = scores.get(label, 0.0) + value
    return {label: value / model.roots_.size for label, value in scores.items()}


def compare(top, want_rows):
    """``top`` against [{label: score}]: the scores place by place, the labels where no near tie blurs their order."""
    for ids, scores, want in zip(top.ids, top.scores, want_rows, strict=True):
        order = sorted(want, key=lambda label: (-want[label], label))[: top.k]
        assert (ids >= 0).sum() == len(order)
        np.testing.assert_allclose(scores[: len(order)], [want[label] for label in order], rtol=2e-6)
        np.testing.assert_allclose([want[label] for label in ids[: len(order)]], scores[: len(order)], rtol=2e-6)


def test_prediction_is_the_mean_of_the_leaves_reached(twin, fitted):
    X = twin.test.X[:60]
    compare(fitted.pfastxml().predict(X, k=7), [tree_scores(fitted, x) for x in dense_rows(X)])


def test_re_ranking_is_equation_8(twin, fitted):
    def unit(X):
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    train, Y = unit(twin.train.X.toarray().astype(np.float64)), twin.train.Y.toarray() > 0
    means = [train[Y[:, label]].mean(axis=0) if Y[:, label].any() else None for label in range(Y.shape[1])]
    X = twin.test.X[:60]
    want = []
    for x, u in zip(dense_rows(X), unit(X.toarray().astype(np.float64)), strict=True):
        row = {}
        for label, value in tree_scores(fitted, x).items():
            tail = 1 / (1 + math.exp(30 / 2 * ((u - means[label]) ** 2).sum()))
            row[label] = math.exp(0.8 * math.log(value) + 0.2 * math.log(tail))
        want.append(row)
    compare(fitted.predict(X, k=7), want)


def test_leaves_hold_the_shares_of_the_train_rows_that_reach_them(twin, fitted):
    rows, Y = dense_rows(twin.train.X), twin.train.Y.toarray() > 0
    weights = xc.propensity.inverse(Y.sum(axis=0), len(Y), 0.55, 1.5)
    np.testing.assert_allclose(fitted.inverse_propensity_, weights)
    split_somewhere = cut_somewhere = False
    for tree in range(4):
        reached: dict[int, list[int]] = {}
        for i, x in enumerate(rows):
            reached.setdefault(leaf_of(fitted, tree, x), []).append(i)
        end = fitted.roots_[tree + 1] if tree < 3 else fitted.left_.size
        leaves = [v for v in range(fitted.roots_[tree], end) if fitted.left_[v] == kernel.LEAF]
        assert set(leaves) == set(reached)  # no empty leaf, and no row elsewhere
        for leaf, members in reached.items():
            shares = Y[members].sum(axis=0) * weights / len(members)
            got = leaf_values(fitted, leaf)
            best = sorted((label for label in range(len(shares)) if shares[label]), key=lambda v: (-shares[v], v))[:6]
            cut_somewhere |= (shares > 0).sum() > 6
            assert list(got) == best
            np.testing.assert_allclose(list(got.values()), shares[best], rtol=1e-6)
        split_somewhere |= len(leaves) > 10
    assert split_somewhere
    assert cut_somewhere


def test_alpha_1_is_pfastxml_exactly(twin, fitted):
    alone = PfastXML(trees=4, max_leaf=8, labels_per_leaf=6, seed=3).fit(twin.train.X, twin.train.Y)
    same = copy.copy(fitted).set_params(alpha=1.0).predict(twin.test.X, k=10)
    for other in (alone, fitted.pfastxml()):
        assert type(other) is PfastXML
        assert same_bits(same, other.predict(twin.test.X, k=10))
    assert (same.ids != fitted.predict(twin.test.X, k=10).ids).any()


def test_pfastxml_with_equal_propensities_is_fastxml(twin):
    X, Y = twin.train.X, twin.train.Y
    plain = FastXML(trees=2, ideal="L").fit(X, Y).predict(twin.test.X)
    ones = PfastXML(trees=2, inverse_propensity=np.ones(Y.shape[1])).fit(X, Y).predict(twin.test.X)
    assert same_bits(plain, ones)


def test_a_smaller_ensemble_is_the_beginning_of_a_larger_one(twin):
    less, more = (PfastreXML(trees=n).fit(twin.train.X, twin.train.Y) for n in (2, 4))
    nodes = less.left_.size
    np.testing.assert_array_equal(less.left_, more.left_[:nodes])
    np.testing.assert_array_equal(less.w_data_, more.w_data_[: more.w_indptr_[nodes]])


# ---------------------------------------------------------------- edges

BLOCKS = np.repeat(np.eye(4), 6, axis=0)


def test_a_node_whose_rows_look_alike_cannot_be_split():
    Y = np.tile(np.eye(3), (10, 1))
    model = FastXML(trees=3, C=100).fit(np.ones((30, 2)), Y)
    assert model.left_.tolist() == [kernel.LEAF] * 3
    top = model.predict(np.ones((1, 2)), k=3)
    assert top.ids.tolist() == [[0, 1, 2]]
    np.testing.assert_allclose(top.scores, 1 / 3, rtol=1e-6)


def test_rows_with_the_same_labels_are_not_split():
    model = FastXML(trees=2, C=100).fit(BLOCKS, np.tile([1, 0, 1], (24, 1)))
    assert model.left_.size == 2
    top = model.predict(BLOCKS[:1], k=3)
    assert top.ids.tolist() == [[0, 2, -1]]
    assert top.scores.tolist() == [[1.0, 1.0, -math.inf]]


def test_rows_without_labels_count_in_their_leaf():
    Y = np.zeros((24, 2))
    Y[:3, 0] = 1  # half of the first block; the other blocks but the second have no label
    Y[6:12, 1] = 1
    model = FastXML(trees=1, max_leaf=100).fit(BLOCKS, Y)
    top = model.predict(BLOCKS[:1], k=2)
    assert top.ids.tolist() == [[1, 0]]
    np.testing.assert_allclose(top.scores, [[6 / 24, 3 / 24]])
    split = FastXML(trees=20, max_leaf=6, C=10).fit(BLOCKS, Y).predict(np.eye(4), k=2)
    chance = np.where(split.ids == 1, split.scores, 0).max(axis=1)  # of label 1, in each block
    assert chance[1] > 0.7
    assert chance[[0, 2, 3]].max() < 0.3


def test_one_label_one_feature_and_k_beyond():
    X, Y = np.arange(6.0)[:, None], np.eye(6)[:, 3:4]
    top = PfastreXML(trees=2, max_leaf=2, inverse_propensity=[3.0]).fit(X, Y).predict(X, k=4)
    assert (top.ids[:, 1:] == -1).all()
    assert top.ids[3, 0] == 0


def test_a_row_without_features_is_its_bias(twin, fitted):
    empty = sp.csr_matrix((1, twin.train.X.shape[1]), dtype=np.float32)
    compare(fitted.pfastxml().predict(empty, k=5), [tree_scores(fitted, dense_rows(empty)[0])])
    assert np.isfinite(fitted.predict(empty, k=1).scores).all()


def test_extreme_sharpness_still_ranks(twin, fitted):
    top = copy.copy(fitted).set_params(gamma=1e6).predict(twin.test.X, k=5)
    assert not np.isnan(top.scores).any()
    assert (top.ids[:, 0] >= 0).all()


def test_a_parameter_broken_after_fit_is_named(twin, fitted):
    with refused("alpha", 2.0):
        copy.copy(fitted).set_params(alpha=2.0).predict(twin.test.X)


# ---------------------------------------------------------------- files


def test_weights_come_back_and_are_shown_by_their_number(twin, tmp_path):
    X, Y = twin.train.X, twin.train.Y
    weights = np.linspace(1, 3, Y.shape[1])
    PfastreXML(trees=2, inverse_propensity=weights).fit(X, Y).save(tmp_path / "model")
    back = load(tmp_path / "model")
    np.testing.assert_array_equal(back.inverse_propensity_, weights)
    assert len(repr(back)) < 400  # not one number a label
    back.set_params(inverse_propensity=weights * 2).fit(X, Y)
    np.testing.assert_array_equal(back.inverse_propensity_, weights * 2)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 30))
def test_orders_that_a_node_takes_are_those_of_a_sort(values, sparseness):
    """Sums that are 0 are put behind without sorting, and many ids of few are found by a look at all."""
    sums = np.array(values, float)
    want = sorted(range(sums.size), key=lambda place: (-sums[place], place))
    assert kernel.falling_sums(sums).tolist() == want
    slot_of = np.full(sums.size * sparseness, -1, np.int64)
    ids = np.flatnonzero(sums).astype(np.int32) * sparseness
    slot_of[ids] = 0
    assert kernel.rising(ids[::-1].copy(), slot_of).tolist() == ids.tolist()
