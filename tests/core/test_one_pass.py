"""The one pass of OMMA against a slow loop, and beside block coordinate ascent."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.refused import refused

METRICS = ["P", "macro-P", "macro-R", "macro-F1", "coverage", "0.5 P + 0.5 macro-F1"]


def value(metric, rows, chosen, n_labels, k):
    """The plug-in value of rows so far, from its definition."""
    total = 0.0
    for term in metric.split(" + "):
        weight, _, name = term.rpartition(" ")
        of = []
        for label in range(n_labels):
            t = sum(row[label] for row, labels in zip(rows, chosen, strict=True) if label in labels)
            n = sum(label in labels for labels in chosen)
            m = sum(row[label] for row in rows)
            failed = np.prod([1 - row[label] for row, labels in zip(rows, chosen, strict=True) if label in labels])
            of.append(
                {
                    "P": n_labels * t / (len(rows) * k),
                    "macro-P": t / n if n else 0.0,
                    "macro-R": t / m if m else 0.0,
                    "macro-F1": 2 * t / (n + m) if n + m else 0.0,
                    "coverage": 1 - failed,
                }[name]
            )
        total += float(weight or 1) * np.mean(of)
    return total


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(METRICS), st.integers(1, 2))
def test_each_row_takes_the_labels_that_add_most(seed, metric, k):
    rng = np.random.default_rng(seed)
    eta = np.round(rng.random((5, 4)), 3)
    one = xc.decide.OnePass(4, k, metric)
    found = np.concatenate([one.choose(eta[:2]).ids, one.choose(eta[2:]).ids]).tolist()
    chosen = []
    for row in range(5):
        rows = [*eta[: row + 1]]
        without = value(metric, rows, [*chosen, []], 4, k)
        gains = [value(metric, rows, [*chosen, [label]], 4, k) - without for label in range(4)]
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
