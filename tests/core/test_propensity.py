"""Fitting A and B, estimates from a hierarchy, and labels that go missing. (`inverse` is in test_ground_floor.)"""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import xcrepro as xc
from tests import naive
from tests.refused import refused
from xcrepro.core.errors import ArgumentError
from xcrepro.core.propensity import drop_labels, estimate_from_hierarchy, fit, inverse

# ---------------------------------------------------------------------- fit


@pytest.mark.parametrize(
    ("A", "B", "n"),
    [(0.5, 0.4, 1_900_000), (0.6, 2.6, 490_449), (0.55, 1.5, 15_539), (1.4, -0.3, 500), (0.2, 40.0, 10**6)],
)
@pytest.mark.parametrize("counts", [[1, 2, 5, 20, 100, 400], [3, 7.5, 31.25]])
def test_fit_finds_what_made_exact_points(A, B, n, counts):
    p = 1 / np.array(naive.inverse_propensity(counts, n, A, B))
    found = fit(counts, p, n)
    np.testing.assert_allclose([found.A, found.B], [A, B], rtol=1e-4)
    assert found.identifiable
    assert found.why == ""
    assert found.rms < 1e-9
    np.testing.assert_allclose(found.propensity(counts), p, rtol=1e-8)


def test_fit_is_the_least_there_is():
    """No point of a fine grid about (and far from) the solution is better."""
    rng = np.random.default_rng(0)
    counts = np.unique(np.exp(rng.uniform(0, 8, 30)).astype(int))
    p = np.clip(1 / inverse(counts, 10_000, 0.5, 1.0) + rng.normal(0, 0.1, counts.size), 0, 1)
    weights = rng.uniform(0, 3, counts.size)
    found = fit(counts, p, 10_000, weights=weights)

    def squares(A, B):
        return float(weights @ (1 / np.array(naive.inverse_propensity(counts, 10_000, A, B)) - p) ** 2)

    best = squares(found.A, found.B)
    assert found.rms == pytest.approx((best / weights.sum()) ** 0.5)
    grid = [squares(A, B) for A in np.linspace(0.05, 3, 60) for B in np.geomspace(0.02, 200, 60) - 0.5]
    near = [squares(found.A + a, found.B + b) for a in np.linspace(-0.01, 0.01, 9) for b in np.linspace(-0.05, 0.05, 9)]
    assert best <= min(grid)
    assert best <= min(near)


def test_standard_errors_of_few_points_are_those_of_least_squares():
    """Two of the points' degrees of freedom go into A and B: of five points three are left for the noise."""
    counts, p = np.array([2.0, 7, 30, 200, 3000]), np.array([0.16, 0.22, 0.33, 0.58, 0.74])
    for weights in (None, np.array([1.0, 2, 0.5, 4, 1])):
        found = fit(counts, p, 10_000, weights=weights)
        sigma = None if weights is None else weights**-0.5
        start = found.A + 0.05, found.B - 0.05
        best, covariance = optimize.curve_fit(
            lambda n, A, B: 1 / inverse(n, 10_000, A, B), counts, p, start, sigma, xtol=1e-13, ftol=1e-13
        )
        np.testing.assert_allclose([found.A, found.B], best, rtol=1e-5)
        np.testing.assert_allclose([found.A_stderr, found.B_stderr], np.sqrt(np.diag(covariance)), rtol=1e-4)
        assert found.correlation == pytest.approx(
            covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]), rel=1e-4
        )


def test_points_that_determine_nothing_are_told_apart():
    # At N_l = 1 the curve is 1/log N whatever A and B.
    lone = fit([1, 1, 30], [0.2, 0.2, 0.5], 1000)
    assert not lone.identifiable
    assert "besides 1" in lone.why
    assert np.isinf([lone.A_stderr, lone.B_stderr]).all()
    assert not fit([50, 50, 50], [0.4, 0.5, 0.6], 1000).identifiable
    falling = fit([2, 10, 100, 1000], [0.9, 0.5, 0.3, 0.1], 10_000)
    assert not falling.identifiable
    assert "its range" in falling.why
    exact = fit([4, 60], 1 / inverse([4, 60], 1000, 0.5, 1.0), 1000)
    assert exact.identifiable
    np.testing.assert_allclose([exact.A, exact.B], [0.5, 1.0], rtol=1e-6)
    assert np.isnan([exact.A_stderr, exact.B_stderr]).all()


def test_a_point_of_weight_zero_does_not_count():
    counts, p = [2, 9, 70, 600], 1 / inverse([2, 9, 70, 600], 5000, 0.6, 2.6)
    p[1] = 0.99
    found = fit(counts, p, 5000, weights=[1, 0, 1, 1])
    np.testing.assert_allclose([found.A, found.B], [0.6, 2.6], rtol=1e-6)
    assert found.n_fitted == 3


@pytest.mark.parametrize(
    ("argument", "args", "kwargs"),
    [
        ("label_counts", ([5], [0.5], 100), {}),
        ("label_counts", ([5, 101], [0.5, 0.6], 100), {}),
        ("n_points", ([1, 2], [0.5, 0.6], 2), {}),
        ("propensity", ([5, 6], [0.5], 100), {}),
        ("propensity", ([5, 6], [0.5, 1.1], 100), {}),
        ("propensity", ([5, 6], [np.nan, 0.5], 100), {}),
        ("weights", ([5, 6], [0.5, 0.6], 100), {"weights": [1, -1]}),
    ],
)
def test_fit_refuses(argument, args, kwargs):
    with pytest.raises(ArgumentError) as error:
        fit(*args, **kwargs)
    assert error.value.argument == argument


# ---------------------------------------------------------------------- hierarchy


def matrix(rows, n_labels):
    Y = np.zeros((len(rows), n_labels))
    for i, labels in enumerate(rows):
        Y[i, list(labels)] = 1
    return Y


@st.composite
def hierarchies(draw):
    n_labels = draw(st.integers(2, 14))
    # A parent always has the lower number, so there is no circle; numbers are shuffled after that.
    pairs = {
        (child, draw(st.integers(0, child - 1))) for child in range(1, n_labels) for _ in range(draw(st.integers(0, 3)))
    }
    names = draw(st.permutations(range(n_labels)))
    n = draw(st.integers(0, 9))
    rows = draw(st.lists(st.sets(st.integers(0, n_labels - 1)), min_size=n, max_size=n))
    return n_labels, [(names[a], names[b]) for a, b in pairs], rows


@settings(max_examples=60, deadline=None)
@given(hierarchies(), st.integers(1, 3), st.integers(1, 4))
def test_hierarchy_equals_its_oracle(case, min_descendants, labels_per_bin):
    n_labels, pairs, rows = case
    descendants = {label: set() for label in range(n_labels)}
    for _ in range(n_labels):
        for child, parent in pairs:
            descendants[parent] |= {child} | descendants[child]
    want = []
    for label in range(n_labels):
        if len(descendants[label]) >= min_descendants:
            count = sum(label in row for row in rows)
            complete = sum(bool(row & ({label} | descendants[label])) for row in rows)
            want.append((count, label, len(descendants[label]), complete))
    want.sort()
    Y = matrix(rows, n_labels)
    find = functools.partial(estimate_from_hierarchy, min_descendants=min_descendants, labels_per_bin=labels_per_bin)
    if not want:
        with pytest.raises(ArgumentError, match="parents"):
            find(Y, np.array(pairs).reshape(-1, 2))
        return
    found = find(sp.csr_array(Y), np.array(pairs))
    got = found.labels
    assert got[["count", "label", "n_descendants", "complete_count"]].to_numpy().tolist() == [list(row) for row in want]
    ratios = [count / complete if complete else np.nan for count, _, _, complete in want]
    np.testing.assert_array_equal(got["propensity"], ratios)
    seen = [(count, ratio) for (count, *_), ratio in zip(want, ratios, strict=True) if count]
    groups = [seen[i : i + labels_per_bin] for i in range(0, len(seen), labels_per_bin)]
    assert found.bins["n_labels"].tolist() == [len(group) for group in groups]
    np.testing.assert_allclose(found.bins["propensity"], [np.mean([p for _, p in group]) for group in groups])
    np.testing.assert_allclose(found.bins["count_mean"], [np.mean([c for c, _ in group]) for group in groups])
    for stderr, group in zip(found.bins["stderr"], groups, strict=True):
        assert len(group) == 1 or stderr == pytest.approx(stats.sem([p for _, p in group]), abs=1e-12)


def test_blocks_of_rows_do_not_matter(monkeypatch):
    data = xc.twin("eurlex-4k", scale=0.2, seed=0, hierarchy=True)
    whole = estimate_from_hierarchy(data.train.Y, data.parents)
    monkeypatch.setattr(xc.propensity, "_ROWS", 100)
    cut = estimate_from_hierarchy(data.train.Y, data.parents)
    assert cut.labels.equals(whole.labels)
    assert cut.bins.equals(whole.bins)
    monkeypatch.setattr(xc.propensity, "_ROWS", 1)
    for n_rows in (1, 2, 3):
        found = estimate_from_hierarchy(np.eye(3)[:, ::-1][:n_rows], [-1, 0, 0], min_descendants=1)
        assert found.labels[["label", "complete_count"]].values.tolist() == [[0, n_rows]]


@pytest.mark.parametrize(
    ("argument", "parents", "kwargs"),
    [
        ("parents", [-1, 0], {}),
        ("parents", [3, -1, -1], {}),
        ("parents", [-2, -1, -1], {}),
        ("parents", [0, -1, -1], {}),
        ("parents", [1, 2, 0], {}),
        ("parents", [(0, 1), (1, 0)], {}),
        ("parents", [(-1, 0)], {}),
        ("parents", [(0, 1, 2)], {}),
        ("parents", [-1, 0, 0], {"min_descendants": 3}),
    ],
)
def test_hierarchy_refuses(argument, parents, kwargs):
    with pytest.raises(ArgumentError) as error:
        estimate_from_hierarchy(np.ones((2, 3)), parents, **{"min_descendants": 1, **kwargs})
    assert error.value.argument == argument


# ---------------------------------------------------------------------- labels that go missing


def test_labels_are_kept_with_their_propensity_and_no_other_appears():
    """One draw of 4,000 rows: the share kept of each label within 4 sigma of p; pairs of labels uncorrelated."""
    rng = np.random.default_rng(3)
    p = np.array([0.0, 0.1, 0.5, 0.9, 1.0, 0.35])
    Y = (rng.random((4000, 6)) < 0.7).astype(np.float32)
    kept = drop_labels(Y, p, rng)
    dense = kept.toarray()
    assert (dense <= Y).all()
    share, n = dense.sum(axis=0) / Y.sum(axis=0), Y.sum(axis=0)
    assert (np.abs(share - p) <= 4 * np.sqrt(p * (1 - p) / n)).all()
    assert share[0] == 0
    assert share[4] == 1
    both = (Y[:, 2] * Y[:, 3]) > 0
    assert abs(np.corrcoef(dense[both, 2], dense[both, 3])[0, 1]) < 4 / np.sqrt(both.sum())


def test_propensities_may_depend_on_the_point():
    """2,000 draws of one small truth, each pair within 4 sigma of its own p."""
    rng = np.random.default_rng(4)
    Y = np.array([[1, 1, 0], [0, 1, 1]])
    p = np.array([[0.2, 0.7, 0.5], [0.5, 0.4, 0.95]])
    share = sum(drop_labels(Y, p, rng) for _ in range(2000)).toarray() / 2000
    assert (np.abs(share - Y * p) <= 4 * np.sqrt(p * (1 - p) / 2000)).all()
    assert (share[Y == 0] == 0).all()


def test_what_is_returned_and_what_stays():
    Y = sp.csr_matrix(np.array([[0, 2.0, 1], [0, 0, 0], [1, 0, 1]]))
    before = Y.copy()
    kept = drop_labels(Y, np.ones(3), 0)
    assert type(kept) is sp.csr_matrix
    assert (kept.dtype, kept.indices.dtype) == (np.float32, np.int32)
    assert kept.has_canonical_format
    np.testing.assert_array_equal(kept.toarray(), [[0, 1, 1], [0, 0, 0], [1, 0, 1]])
    kept.data[:] = 7
    kept.indices[:] = 0
    np.testing.assert_array_equal(Y.toarray(), before.toarray())
    assert drop_labels(Y, np.zeros(3), 0).nnz == 0
    assert drop_labels(sp.csr_array((0, 3)), np.ones(3), 0).shape == (0, 3)


def test_the_seed_decides_and_higher_propensities_keep_more():
    Y = np.ones((50, 8))
    low, again = drop_labels(Y, np.full(8, 0.3), 7), drop_labels(Y, np.full(8, 0.3), np.random.default_rng(7))
    np.testing.assert_array_equal(low.toarray(), again.toarray())
    assert (low.toarray() != drop_labels(Y, np.full(8, 0.3), 8).toarray()).any()
    assert (low.toarray() <= drop_labels(Y, np.full(8, 0.6), 7).toarray()).all()
    rng = np.random.default_rng(7)
    drop_labels(Y, np.full(8, 0.3), rng)
    assert (drop_labels(Y, np.full(8, 0.3), rng).toarray() != low.toarray()).any()


@pytest.mark.parametrize("p", [[0.5, 1.1], [0.5, np.nan], [-0.1, 0.5], [0.5], [[0.5, 0.5]], 0.5])
def test_drop_labels_refuses(p):
    with refused("propensity"):
        drop_labels(np.ones((3, 2)), p, 0)
