"""The one pass of OMMA against a slow loop, and beside block coordinate ascent."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.core.test_maximise import MIXES, naive_utility
from tests.refused import refused


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(MIXES), st.integers(1, 2))
def test_each_row_takes_the_labels_that_add_most(seed, metric, k):
    rng = np.random.default_rng(seed)
    eta = np.round(rng.random((5, 4)), 3)
    one = xc.decide.OnePass(4, k, metric)
    found = np.concatenate([one.choose(eta[:2]).ids, one.choose(eta[2:]).ids]).tolist()
    chosen = []
    for row in range(5):
        rows = [dict(enumerate(map(Fraction, each))) for each in eta[: row + 1].tolist()]
        values = [float(naive_utility(rows, [*chosen, own], 4, k, metric)) for own in ([], [0], [1], [2], [3])]
        gains = [one - values[0] for one in values[1:]]
        best = sorted(range(4), key=lambda label: (-round(gains[label], 12), label))[:k]
        assert sorted(round(gains[label], 9) for label in found[row]) == sorted(
            round(gains[label], 9) for label in best
        )
        chosen.append(found[row])


def test_the_truth_may_be_told_and_what_does_not_fit_is_refused():
    one = xc.decide.OnePass(3, 1, "macro-F1")
    one.choose([[0.9, 0.2, 0.0]], Y=[[0, 1, 1]])
    assert (one.hits.tolist(), one.chosen.tolist(), one.positives.tolist()) == ([0, 0, 0], [1, 0, 0], [0, 1, 1])
    with refused("probabilities", 2):
        one.choose([[0.5, 0.5]])
    with refused("Y"):
        one.choose([[0.5, 0.5, 0.1]], Y=[[1, 0]])
    with refused("metric"):
        xc.decide.OnePass(3, 1, "macroF1")
