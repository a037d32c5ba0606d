"""Sets of any size, graded relevance and confused labels, against slow oracles and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

import xcrepro as xc
from tests import naive
from xcrepro.core.errors import ArgumentError

N_LABELS = 5
NEAR = tuple(0.5 + i / 2**14 for i in (0, 1, 2, 3, 40, 41, 300))
"""Scores of which several lie in one bin of those that are counted as a whole."""
m = xc.metrics


@st.composite
def scored_rows(draw, min_rows=1, scores=(-2.0, -0.5, 0.0, 0.25, 0.5, 3.0)):
    """Truth and scores of a few rows."""
    row = st.tuples(
        st.sets(st.integers(0, N_LABELS - 1), max_size=3),
        st.dictionaries(st.integers(0, N_LABELS - 1), st.sampled_from(scores), max_size=N_LABELS),
    )
    rows = draw(st.lists(row, min_size=min_rows, max_size=6))
    return [y for y, _ in rows], [each for _, each in rows]


def as_given(truth, rows):
    Y = sp.csr_matrix(np.array([[label in y for label in range(N_LABELS)] for y in truth], np.float32))
    return Y, xc.TopK.from_pairs([[*row.items()] for row in rows], n_labels=N_LABELS, k=N_LABELS)


def frequent(truth, at_least):
    """The labels of so many rows."""
    return {label for label in range(N_LABELS) if sum(label in y for y in truth) >= at_least}


def any_hit(truth, rows):
    return any(y & {*row} for y, row in zip(truth, rows, strict=True))


@settings(max_examples=80, deadline=None)
@given(scored_rows(), st.sampled_from([0.5, 1.0, 2.0]))
def test_the_curve_has_every_threshold(case, beta):
    truth, rows = case
    Y, top = as_given(truth, rows)
    table = m.threshold_curve(Y, top, beta=beta)
    scores = sorted({score for row in rows for score in row.values()}, reverse=True)
    assert table.threshold.tolist() == scores
    for line in table.itertuples():
        cut_rows = naive.at_least(rows, line.threshold)
        hits, predicted = sum(len(y & s) for y, s in zip(truth, cut_rows, strict=True)), sum(map(len, cut_rows))
        assert (line.hits, line.predicted) == (hits, predicted)
        assert line.precision == hits / predicted
        assert line.recall == hits / max(sum(map(len, truth)), 1)
        assert pytest.approx(naive.set_f(truth, cut_rows, beta)) == line.F
        cut = xc.evaluate(Y, top.above(line.threshold), N_LABELS, metrics=["micro-P", "micro-R", "micro-F1"])
        assert cut.value.tolist()[:2] == [line.precision, line.recall]
        assert beta != 1 or cut.value[2] == pytest.approx(line.F)


@settings(max_examples=80, deadline=None)
@given(
    scored_rows() | scored_rows(scores=NEAR) | scored_rows(scores=(-0.0, 0.0, 1.0)),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(0, 4),
)
def test_the_best_threshold_is_that_of_a_search(case, beta, at_least):
    truth, rows = case
    Y, top = as_given(truth, rows)
    if not any_hit(truth, rows):
        for per in ("all", "label"):
            with pytest.raises(ArgumentError, match="a hit"):
                m.best_threshold(Y, top, per=per, beta=beta)
        return
    assert m.best_threshold(Y, top, beta=beta) == naive.best_threshold(truth, rows, beta)
    each = m.best_threshold(Y, top, per="label", beta=beta, at_least=at_least)
    assert dict(enumerate(each)) == naive.own_thresholds(truth, rows, N_LABELS, beta, frequent(truth, at_least))


@settings(max_examples=80, deadline=None)
@given(
    scored_rows(min_rows=3) | scored_rows(min_rows=3, scores=NEAR),
    st.integers(2, 3),
    st.sampled_from(["all", "label"]),
    st.integers(0, 4),
)
def test_cross_fitting_judges_no_row_by_its_own_threshold(case, folds, per, at_least):
    truth, rows = case
    Y, top = as_given(truth, rows)
    want = []
    for part in np.array_split(np.arange(len(rows)), folds):
        others = [i for i in range(len(rows)) if i not in part]
        outside = [truth[i] for i in others], [rows[i] for i in others]
        if not any_hit(*outside):
            with pytest.raises(ArgumentError, match="outside fold"):
                m.cross_fit_sets(Y, top, folds=folds, per=per, at_least=at_least)
            return
        cut = naive.best_threshold(*outside)
        if per == "label":
            cut = naive.own_thresholds(*outside, N_LABELS, labels=frequent(truth, at_least))
        want += naive.at_least([rows[i] for i in part], cut)
    found = m.cross_fit_sets(Y, top, folds=folds, per=per, at_least=at_least)
    assert [{label for label in row if label >= 0} for row in found.ids.tolist()] == want
    assert found.k == top.k


@settings(max_examples=60, deadline=None)
@given(scored_rows(), st.integers(1, 3))
def test_risk_coverage_and_its_area(case, k):
    truth, rows = case
    Y, top = as_given(truth, rows)
    ranking = [naive.ranked(row, k) for row in rows]
    best = [max(row.values(), default=-np.inf) for row in rows]
    errors = [1 - len(y & {*r}) / k for y, r in zip(truth, ranking, strict=True)]
    kept = {"rows": [*zip(best, errors, strict=True)]}
    kept["pairs"] = [(row[l], l not in y) for y, r, row in zip(truth, ranking, rows, strict=True) for l in r][:7]
    table = m.risk_coverage(Y, top, k)
    np.testing.assert_allclose(table[["kept", "error"]], naive.risk(kept["rows"]), atol=1e-12)
    assert table.error.iloc[-1] == pytest.approx(1 - m.precision(Y, top, k)[0])
    if len({*best}) == len(best) or len(best) < 6:
        assert m.aurc(Y, top, k) == pytest.approx(naive.aurc(kept["rows"]), abs=1e-12)
    if all(len(r) <= 1 for r in ranking) and any(ranking):
        pairs = m.risk_coverage(Y, top, k, of="pairs")
        np.testing.assert_allclose(pairs[["kept", "error"]], naive.risk(kept["pairs"]), atol=1e-12)
        assert m.aurc(Y, top, k, of="pairs") == pytest.approx(naive.aurc(kept["pairs"]), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(scored_rows(), scored_rows(scores=(0.0, 0.25, 1.0)), st.booleans())
def test_curves_merge_to_the_same_bits(first, second, turned):
    parts = [as_given(*case) for case in ((second, first) if turned else (first, second))]
    whole = m.ThresholdCurve()
    for part in parts:
        whole.update(*part)
    one, other = (m.ThresholdCurve().update(*part) for part in parts)
    before = other.table()
    merged = one.merge(other)
    assert merged.table().equals(whole.table())
    assert merged.table().equals(m.threshold_curve(parts[::-1]))
    assert other.table().equals(before)


@pytest.mark.parametrize("gains", ["linear", "exponential"])
def test_graded_ndcg_is_scikit_learns_on_full_lists(gains):
    rng = np.random.default_rng(1)
    grades, scores = rng.integers(0, 4, (30, 8)) * (rng.random((30, 8)) < 0.5), rng.permutation(240).reshape(30, 8)
    top = xc.TopK.from_scores(scores.astype(float), 8)
    theirs = grades if gains == "linear" else 2**grades - 1
    ours = m.ndcg(grades, top, (8, 1, 3), gains=gains)
    assert ours == pytest.approx([ndcg_score(theirs, scores, k=k) for k in (8, 1, 3)], abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.dictionaries(st.integers(0, 4), st.floats(0.25, 5, width=16)), st.permutations(range(5))),
        min_size=1,
    ),
    st.booleans(),
    st.integers(0, 5),
)
def test_graded_ndcg_and_its_blocks(case, exponential, length):
    grades, ranking = [own for own, _ in case], [order[:length] for _, order in case]
    Y = sp.lil_matrix((len(case), 5))
    for row, own in enumerate(grades):
        for label, grade in own.items():
            Y[row, label] = grade
    Y, top = Y.tocsr(), xc.TopK.from_pairs(ranking, n_labels=5, k=5)
    gains = "exponential" if exponential else "linear"
    found = m.ndcg(Y, top, (1, 3, 5), gains=gains)
    want = [naive.graded_ndcg(grades, ranking, k, lambda g: 2.0**g - 1 if exponential else g) for k in (1, 3, 5)]
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)
    blocks = ((Y[i : i + 2], top.rows(slice(i, i + 2))) for i in range(0, len(case), 2))
    assert m.ndcg(blocks, None, (1, 3, 5), gains=gains).tobytes() == found.tobytes()


@settings(max_examples=60, deadline=None)
@given(scored_rows(), st.integers(1, 3), st.integers(1, 3))
def test_confused_labels_and_their_merge(case, k, size):
    truth, rows = case
    Y, top = as_given(truth, rows)
    found = m.confused_labels(Y, top, k)
    want = naive.confused(truth, [naive.ranked(row, k) for row in rows], k)
    assert [*found.itertuples(index=False, name=None)] == [
        (*pair, n) for pair, n in sorted(want.items(), key=lambda each: (-each[1], each[0]))
    ]
    merged = m.Confused(k)
    for i in reversed(range(0, len(rows), size)):
        merged.merge(m.Confused(k).update(Y[i : i + size], top.rows(slice(i, i + size))))
    assert merged.table().equals(found)
    assert merged.n_rows == len(rows)


Y, TOP = np.eye(3), xc.TopK.from_ids([[0, 1], [2, 0], [1, 2]], [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], n_labels=3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: m.best_threshold([(Y, TOP)], per="label"), "top must be given"),
        (lambda: m.cross_fit_sets(Y, TOP, folds=4), "folds must not exceed the 3 rows"),
        (lambda: m.aurc(Y, xc.TopK.from_ids([[-1]] * 3, n_labels=3), of="pairs"), "must predict something"),
        (lambda: m.ndcg(Y, TOP, 1, gains="linear", ideal="k"), "ideal must be 'labels' with gains"),
        (lambda: m.ndcg(-Y, TOP, 1, gains="linear"), "positive values"),
        (lambda: m.ndcg(Y * 2000, TOP, 1, gains="exponential"), "grades up to 1000"),
        (lambda: m.ndcg(sp.csr_matrix(([1, 1, 2], [0, 0, 1], [0, 2, 3, 3]), (3, 3)), TOP, 1, gains="linear"), "twice"),
        (lambda: m.confused_labels(Y, TOP, 1, label_names=["a"]), "label_names must name each of the 3 labels; got 1"),
        (lambda: m.Confused(1).merge(m.Confused(2)), "must have k = 1"),
        (
            lambda: m.Confused().update(Y, TOP).update(np.eye(3, 4), xc.TopK(TOP.ids, TOP.scores, 4)),
            "3 labels in every",
        ),
    ],
)
def test_wrong_input_is_named(call, said):
    with pytest.raises(ArgumentError, match=said):
        call()
