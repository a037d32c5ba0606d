"""AUC of full scores: pairs counted one by one, scikit-learn's, sparse scores, and what is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import roc_auc_score

import xcrepro as xc
from tests.refused import refused

auc = xc.metrics.auc


def pairwise(relevant, scores):
    """The share of pairs in the right order, half of those that tie; NaN without pairs."""
    pairs = [
        (p, n) for (y, p), (z, n) in itertools.product(zip(relevant, scores, strict=True), repeat=2) if y and not z
    ]
    return sum((p > n) + (p == n) / 2 for p, n in pairs) / len(pairs) if pairs else np.nan


@given(
    n=st.integers(1, 6),
    n_labels=st.integers(1, 4),
    data=st.data(),
)
def test_it_counts_pairs(n, n_labels, data):
    cells = n * n_labels
    Y = np.array(data.draw(st.lists(st.booleans(), min_size=cells, max_size=cells))).reshape(n, n_labels)
    level = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, np.inf])
    S = np.array(data.draw(st.lists(level, min_size=cells, max_size=cells))).reshape(n, n_labels)
    stored = np.array(data.draw(st.lists(st.booleans(), min_size=cells, max_size=cells))).reshape(n, n_labels)
    rows, labels = np.nonzero(stored)
    for scores, full in (
        (S, S),
        (sparse.csr_matrix((S[rows, labels], (rows, labels)), S.shape), np.where(stored, S, -9.0)),
    ):
        each = [pairwise(Y[:, l], full[:, l]) for l in range(n_labels)]
        np.testing.assert_allclose(auc(Y, scores, average=None), each, rtol=1e-14)
        mean = np.nan if np.isnan(each).all() else np.nanmean(each)
        np.testing.assert_allclose(auc(Y, scores), mean, rtol=1e-14)
        np.testing.assert_allclose(auc(Y, scores, average="micro"), pairwise(Y.ravel(), full.ravel()), rtol=1e-14)


def test_many_rows_and_labels_are_scikit_learn_s():
    rng = np.random.default_rng(0)
    Y = rng.random((3000, 400)) < 0.01
    Y[:2] = [[True], [False]]
    for scores in (
        rng.random(Y.shape, np.float32),
        np.round(rng.random(Y.shape), 1),
        rng.random(Y.shape).astype(np.float16),
    ):
        for average in ("macro", "micro"):
            ours, theirs = auc(Y, scores, average=average), roc_auc_score(Y, scores, average=average)
            assert ours == pytest.approx(theirs, rel=1e-11)
    top = xc.TopK.from_scores(scores[:9], 400)
    assert auc(Y[:9], top, average="micro") == auc(Y[:9], scores[:9], average="micro")


def test_what_has_no_auc():
    Y, scores = np.eye(3), np.arange(9.0).reshape(3, 3)
    with refused("scores", "2 places"):
        auc(Y, xc.TopK.from_scores(scores, 2))
    with refused("scores"):
        auc(Y[:2], scores)
    for bad in (np.full((3, 3), np.nan), sparse.csr_matrix(np.full((3, 3), np.nan))):
        with refused("scores", "NaN"):
            auc(Y, bad)
    with refused("average", repr("weighted")):
        auc(Y, scores, average="weighted")
    with refused("scores"):
        auc([(Y, scores)], [scores])
    assert np.isnan(auc(np.ones((3, 3)), scores))
