"""Sets with a promise: the threshold by its definition, MAPIE's, and the promise itself on rows that had no part in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xcrepro as xc
from tests.refused import refused

L = 5
m = xc.metrics
SCORE = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 2.0])
ROW = st.tuples(st.sets(st.integers(0, L - 1), max_size=3), st.dictionaries(st.integers(0, L - 1), SCORE, max_size=L))


def as_given(rows):
    Y = np.array([[float(label in truth) for label in range(L)] for truth, _ in rows])
    return Y, xc.TopK.from_pairs([[*scores.items()] for _, scores in rows], n_labels=L, k=L)


def missed(rows, threshold):
    """The share of the relevant labels that are below the threshold, or not there, of each row that has some."""
    return [
        sum(scores.get(label, -np.inf) < threshold for label in truth) / len(truth) for truth, scores in rows if truth
    ]


def wrong(rows, threshold):
    kept = [[label for label, score in scores.items() if score >= threshold] for _, scores in rows]
    return [
        sum(label not in truth for label in of) / len(of) if of else 0.0
        for of, (truth, _) in zip(kept, rows, strict=True)
    ]


def within(losses, level):
    return (sum(losses) + 1) / (len(losses) + 1) <= level + 1e-12


def promised(rows, level):
    """The threshold by its definition; None where the level cannot be kept, by other rows than it is chosen on."""
    rows = [row for row in rows if row[0]]
    never, least = missed(rows, -1e300), 0.0
    if any(never):
        told, rows = never[::2], rows[1::2]
        error = np.std(told, ddof=1) / len(told) ** 0.5 if len(told) > 1 else 1.0
        least = min((sum(told) + 1) / (len(told) + 1) + 3 * error, 1.0)
    if level + 1e-12 < max(least, 1 / (len(rows) + 1)):
        return None
    hits = {scores[label] for truth, scores in rows for label in truth if label in scores}
    return max((t for t in hits if within(missed(rows, t), level)), default=-np.inf)


@given(st.lists(ROW, min_size=1, max_size=40), st.sampled_from([0.1, 0.2, 0.5, 0.75, 0.87]))
def test_missed_is_the_highest_that_keeps_the_promise(rows, level):
    expected, (Y, top) = promised(rows, level), as_given(rows)
    if expected is not None:
        assert m.conformal_threshold(Y, top, level) == expected
    else:
        with refused("level", level):
            m.conformal_threshold(Y, top, level)


@given(st.lists(ROW, min_size=1, max_size=12), st.sampled_from([0.11, 0.31, 0.52, 0.87]))
def test_wrong_is_the_lowest_that_keeps_the_promise(rows, level):
    every = sorted({score for _, scores in rows for score in scores.values()}, reverse=True)
    Y, top = as_given(rows)
    if 1 / (len(rows) + 1) > level:
        with refused("level", level):
            m.conformal_threshold(Y, top, level, of="wrong")
        return
    largest, kept = np.zeros(len(rows)), np.inf
    for threshold in every:  # the largest loss at this threshold or any above
        largest = np.maximum(largest, wrong(rows, threshold))
        if not within(largest, level):
            break
        kept = threshold
    found = m.conformal_threshold(Y, top, level, of="wrong")
    assert top.above(found).ids.tolist() == top.above(kept).ids.tolist()


@given(st.lists(ROW, min_size=3, max_size=30))
def test_by_bin_it_is_the_threshold_of_these_labels_alone(rows):
    counts, level = np.array([0, 3, 9, 10, 2000]), 0.6
    Y, top = as_given(rows)
    expected = np.full(L, -np.inf)
    for labels in ({0}, {1, 2}, {3}, {4}):
        own = [(truth & labels, scores) for truth, scores in rows if truth & labels]
        if own:
            expected[list(labels)] = threshold = promised(own, level)
            if threshold is None:
                with refused("level", level):
                    m.conformal_threshold(Y, top, level, label_counts=counts)
                return
    assert m.conformal_threshold(Y, top, level, label_counts=counts).tolist() == expected.tolist()


def drawn(rng, n, labels=30):
    """Rows whose labels have the probabilities that the scores are a bent and blurred form of, the rare ones more so."""
    chance = rng.random((n, labels)) ** 4 * np.linspace(1, 0.3, labels)
    Y = (rng.random((n, labels)) < chance).astype(float)
    return Y, xc.TopK.from_scores((chance**0.5 + 0.2 * rng.random((n, labels))).astype(np.float32), labels)


@pytest.mark.parametrize("of", ["missed", "wrong"])
def test_the_promise_is_kept_on_other_rows(of):
    """By theorem 1 the mean over draws is at most the level; of "missed" it is also at least the level less 2 / (n + 1)."""
    rng, level, n, found = np.random.default_rng(7), 0.3, 60, []
    for _ in range(150):
        threshold = m.conformal_threshold(*drawn(rng, n), level, of=of)
        Y, top = drawn(rng, 200)
        sets = top.above(threshold)
        hits = np.array([[Y[row, label] * (label >= 0) for label in ids] for row, ids in enumerate(sets.ids)]).sum(
            axis=1
        )
        size = (sets.ids >= 0).sum(axis=1) if of == "wrong" else Y.sum(axis=1)
        share = 1 - hits[size > 0] / size[size > 0]
        found.append(share.sum() / (200 if of == "wrong" else share.size))
    error = np.std(found, ddof=1) / len(found) ** 0.5
    assert np.mean(found) <= level + 2 * error
    assert np.mean(found) >= level - 2 / (n + 1) - 3 * error or of == "wrong"


REFUSED = {
    "level of 1": (lambda of, Y, top: of(Y, top, 1), refused("level", 1)),
    "of": (lambda of, Y, top: of(Y, top, 0.5, of="recall"), refused("of", "'recall'")),
    "counts of wrong": (lambda of, *given: of(*given, 0.5, of="wrong", label_counts=[1] * 30), refused("label_counts")),
    "too few places": (lambda of, Y, top: of(Y, top.head(1), 0.1), refused("level", 0.1)),
    "too few rows": (lambda of, Y, top: of(Y[:3], top.rows([0, 1, 2]), 0.1, of="wrong"), refused("level")),
}


@pytest.mark.parametrize(("call", "raises"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_promised_is_refused(call, raises):
    with raises:
        call(m.conformal_threshold, *drawn(np.random.default_rng(0), 40))


def test_the_thresholds_are_mapies():
    """Those of MAPIE 1.6.0 (``MultiLabelClassificationController``, crc of recall), on a grid, keep what is above them."""
    rng = np.random.default_rng(5)
    chance = rng.random((80, 6)) ** 2
    Y = (rng.random((80, 6)) < chance).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    top = xc.TopK.from_scores(np.round(0.5 * chance + 0.5 * rng.random((80, 6)), 3).astype(np.float32), 6)
    for recall, theirs in ((0.7, 0.417), (0.8, 0.346), (0.9, 0.251)):
        assert theirs < m.conformal_threshold(Y, top, 1 - recall) <= theirs + 0.001 + 1e-6
