"""Coverage and its relatives against brute force, resampling, matching and the identities between them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import maximum_bipartite_matching

import xcrepro as xc
from tests import naive
from tests.naive import as_matrices, small_rankings
from xcrepro.core.errors import ArgumentError

m = xc.metrics
KS = (1, 2, 3, 5)
TRUTH = np.array([[1, 0, 1, 0], [1, 0, 0, 0]], np.float32)
TOP = xc.TopK.from_ids([[0, 2, 1], [3, 1, 0]], n_labels=4)


# ---------------------------------------------------------------- coverage and its denominators


@settings(max_examples=150, deadline=None)
@given(small_rankings(max_labels=5, max_rows=4))
def test_reachable_equals_every_choice_tried(case):
    n_labels, truth, rows = case
    Y, top = as_matrices(n_labels, truth, rows)
    ks = (1, 2, 3)
    reach = [naive.reach(truth, k) for k in ks]
    assert m.reachable(Y, ks).tolist() == reach
    hit = np.array([len(naive.covered(truth, rows, k)) for k in ks])
    assert m.coverage(Y, top, ks, over="reachable").tolist() == (hit / np.maximum(reach, 1)).tolist()
    assert m.coverage(Y, top, ks, over="reachable").max() <= 1


@pytest.mark.parametrize("seed", range(12))
def test_reachable_equals_scipys_matching(seed):
    """Sparse graphs near the point where greedy choices fail; SciPy matches rows that are written out k times."""
    rng = np.random.default_rng(seed)
    n, n_labels = 300, int(rng.integers(200, 1500))
    Y = sp.random(n, n_labels, density=rng.uniform(1.0, 5.0) / n_labels, random_state=rng, format="csr")
    ks = (1, 2, 3, 4)
    want = [(maximum_bipartite_matching(sp.vstack([Y] * k).tocsr(), perm_type="column") >= 0).sum() for k in ks]
    assert m.reachable(Y, ks).tolist() == want
    assert m.reachable(Y, (4, 1)).tolist() == [want[3], want[0]]


@settings(max_examples=40, deadline=None)
@given(small_rankings(), st.integers(1, 4))
def test_blocks_stream_to_the_same_bits(case, size):
    n_labels, truth, rows = case
    Y, top = as_matrices(n_labels, truth, rows)
    alike = np.random.default_rng(0).random((n_labels, n_labels))
    for call in (
        lambda *a: m.alpha_coverage(*a, ks=KS, alpha=0.5),
        lambda *a: m.sampled_coverage(*a, ks=KS, sample_size=1, replace=False),
        lambda *a: m.diversity(*a, ks=KS, similarity=alike),
    ):
        parts = ((Y[i : i + size], top.rows(slice(i, i + size))) for i in range(0, len(truth), size))
        assert call(parts).tobytes() == call(Y, top).tobytes()


# ---------------------------------------------------------------- alpha-coverage


@settings(max_examples=100, deadline=None)
@given(small_rankings(), st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 2 / 3, 1.0]), st.sampled_from(["all", "test"]))
def test_alpha_coverage_equals_its_definition(case, alpha, over):
    n_labels, truth, rows = case
    Y, top = as_matrices(n_labels, truth, rows)
    for k, got in zip(KS, m.alpha_coverage(Y, top, KS, alpha=alpha, over=over), strict=True):
        enough = chosen = 0
        for label in range(n_labels):
            true = sum(label in labels for labels in truth)
            hits = sum(label in labels and label in row[:k] for labels, row in zip(truth, rows, strict=True))
            chosen += over == "all" or true > 0
            enough += hits > 0 and hits / true >= alpha
        assert got == enough / max(chosen, 1)


# ---------------------------------------------------------------- n'-coverage


@settings(max_examples=60, deadline=None)
@given(small_rankings(max_rows=4), st.integers(1, 4), st.booleans())
def test_sampled_coverage_equals_every_sample_tried(case, size, replace):
    n_labels, truth, rows = case
    size = size if replace else min(size, len(truth))
    Y, top = as_matrices(n_labels, truth, rows)
    everything = range(len(truth))
    samples = list(itertools.product(everything, repeat=size) if replace else itertools.combinations(everything, size))
    for k, got in zip(KS, m.sampled_coverage(Y, top, KS, sample_size=size, replace=replace), strict=True):
        per_sample = [len(naive.covered([truth[i] for i in s], [rows[i] for i in s], k)) for s in samples]
        assert got == pytest.approx(sum(per_sample) / len(samples) / n_labels, abs=1e-12)


# ---------------------------------------------------------------- entropy


def test_entropy_at_its_ends():
    Y = np.eye(7)
    assert m.label_entropy(Y, xc.TopK.from_scores(Y, 1), 1)[0] == pytest.approx(math.log(7), rel=1e-15)
    one = xc.TopK.from_ids(np.zeros((7, 1), np.int64), n_labels=7)
    for top in (one, xc.TopK.from_ids(np.full((7, 1), -1), n_labels=7)):
        value = m.label_entropy(Y, top, 1)[0]
        assert value == 0
        assert not np.signbit(value)


# ---------------------------------------------------------------- diversity


@settings(max_examples=60, deadline=None)
@given(small_rankings(), st.integers(0, 99))
def test_diversity_equals_its_definition(case, seed):
    n_labels, truth, rows = case
    Y, top = as_matrices(n_labels, truth, rows)
    alike = np.random.default_rng(seed).random((n_labels, n_labels)).round(2) * (seed % 3 > 0)
    np.fill_diagonal(alike, 1.0)
    want = []
    for k in KS:
        per_row = []
        for row in rows:
            shown = row[:k]
            # Eq. 17 as printed: j from i, the pair of a label with itself included.
            total = sum(1 - alike[shown[i], shown[j]] for i in range(len(shown)) for j in range(i, len(shown)))
            per_row.append(total / (k * (k - 1) / 2) if k > 1 else 0.0)
        want.append(sum(per_row) / len(per_row))
    for form in (np.asarray, sp.csr_matrix, sp.csr_array, sp.coo_matrix):
        np.testing.assert_allclose(m.diversity(Y, top, KS, similarity=form(alike)), want, atol=1e-12)


def test_diversity_by_features_is_by_their_cosine():
    features = np.array([[1.0, 0, 0], [2, 2, 0], [-3, 0, 0], [0, 0, 0]])
    length = np.linalg.norm(features, axis=1)
    cosine = np.clip(features @ features.T / np.maximum(np.outer(length, length), 1e-300), 0, 1)
    want = m.diversity(TRUTH, TOP, (1, 2, 3), similarity=cosine)
    for form in (np.asarray, sp.csr_matrix, sp.csr_array):
        given_features = form(features)
        np.testing.assert_allclose(m.diversity(TRUTH, TOP, (1, 2, 3), label_features=given_features), want, atol=1e-12)
    assert features[1].tolist() == [2, 2, 0]
    np.testing.assert_allclose(m.diversity(TRUTH, TOP, (3, 2), label_features=features), want[[2, 1]])


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.coverage(m.confusion(TRUTH, TOP, 1), ks=1, over="reachable"), "the truth itself"),
        (lambda: m.unique_labels(m.confusion(TRUTH, TOP, 1).hit_labels, ks=1), "the truth itself"),
        (lambda: m.reachable(-TRUTH, 1), "Y must hold positive"),
        (lambda: m.sampled_coverage(TRUTH, TOP, 1, sample_size=3, replace=False), "must not exceed the 2 rows"),
        (lambda: m.diversity(TRUTH, TOP, 1), "similarity must be given, or label_features"),
        (lambda: m.diversity(TRUTH, TOP, 1, similarity=np.eye(4), label_features=np.eye(4)), "not both"),
        (lambda: m.diversity(TRUTH, TOP, 1, similarity=np.full((4, 4), np.nan)), "finite"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
