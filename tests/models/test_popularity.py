"""Popularity against counting by hand, and at the edges."""

from __future__ import annotations

from collections import Counter

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from xcrepro.models import Popularity


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 9), st.data())
def test_ranks_by_share_then_by_id(n_labels, data):
    rows = data.draw(st.lists(st.sets(st.integers(0, n_labels - 1)), min_size=1, max_size=12).filter(any))
    k = data.draw(st.integers(1, 12))
    Y = sp.lil_matrix((len(rows), n_labels))
    for i, labels in enumerate(rows):
        for label in labels:
            Y[i, label] = 7  # any positive value counts once
    top = Popularity().fit(sp.csr_matrix((len(rows), 2)), Y).predict(np.zeros((3, 2)), k)
    counts = Counter(label for labels in rows for label in labels)
    best = sorted(range(n_labels), key=lambda label: (-counts[label], label))[:k]
    missing = k - len(best)
    for i in range(3):
        assert top.ids[i].tolist() == best + [-1] * missing
        want = [counts[label] / len(rows) for label in best] + [-np.inf] * missing
        np.testing.assert_array_equal(top.scores[i], np.array(want, np.float32))


def test_counts_that_share_a_float32_share_are_still_told_apart():
    model = Popularity().fit(np.eye(2), np.eye(2))
    model.label_counts_, model.n_train_ = np.array([2**40 - 1, 2**40]), 2**40
    top = model.predict(np.zeros((1, 2)), 2)
    assert top.ids.tolist() == [[1, 0]]
    assert top.scores.tolist() == [[1.0, 1.0]]
