"""Labels for macro averages and mixes: against counting by hand, all choices of tiny instances, and at the edges."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests import naive
from tests.core.test_decide import cases, labels_of, miss, to_csr
from xcrepro.core import decide
from xcrepro.core.errors import ArgumentError

MIXES = ["P", "macro-P", "macro-R", "macro-F1", "coverage", "0.5 P + 0.5 macro-F1", "0.25 coverage + 0.75 macro-P"]


# ---------------------------------------------------------------- oracle: rows are dicts {label: probability}


def terms_of(mix):
    """{name: weight}."""
    found = {}
    for term in mix.split("+"):
        *weight, name = term.split()
        found[name] = found.get(name, 0) + Fraction(weight[0] if weight else 1)
    return found


def naive_utility(rows, chosen, n_labels, k, mix):
    """Label by label from the definitions; ``chosen``: a list of labels a row."""
    total = {name: 0 for name in decide.MIXED}
    for label in range(n_labels):
        hits = sum(row[label] for row, labels in zip(rows, chosen, strict=True) if label in labels)
        n, m = sum(label in labels for labels in chosen), sum(row.get(label, 0) for row in rows)
        total["P"] += hits * n_labels / Fraction(k * len(rows))
        total["macro-P"] += hits / n if n else 0
        total["macro-R"] += hits / m if m else 0
        total["macro-F1"] += 2 * hits / (n + m) if n + m else 0
        total["coverage"] += 1 - miss(rows, dict(enumerate(chosen)), label)
    return sum(weight * total[name] for name, weight in terms_of(mix).items()) / n_labels


def every_choice(row, k):
    return itertools.combinations(sorted(row), min(k, len(row)))


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from(MIXES), st.randoms())
def test_the_utility_is_that_of_the_definitions(case, mix, random):
    rows, n_labels, k, order = case
    eta = to_csr(rows, n_labels, rng=random)
    top = decide.greedy_coverage(eta, k, 0.25, order=order)
    want = [
        float(naive_utility(rows, [labels[:j] for labels in labels_of(top)], n_labels, j, mix)) for j in range(1, k + 1)
    ]
    np.testing.assert_allclose(decide.expected_utility(eta, top, mix, range(1, k + 1)), want, rtol=1e-13, atol=1e-15)
    assert decide.expected_utility(eta, top, mix).tolist() == decide.expected_utility(eta, top, mix, k).tolist()


def enumerated(rows, chosen, n_labels, k, mix):
    """The expectation over every truth there can be, label by label; rows are independent."""
    total = {name: 0 for name in decide.MIXED}
    for label in range(n_labels):
        chances = [Fraction(row.get(label, 0)) for row in rows]
        predicted = [label in labels for labels in chosen]
        for truth in itertools.product((0, 1), repeat=len(rows)):
            p = math.prod(chance if y else 1 - chance for chance, y in zip(chances, truth, strict=True))
            hits, n, m = sum(y for y, own in zip(truth, predicted, strict=True) if own), sum(predicted), sum(truth)
            total["P"] += p * Fraction(hits * n_labels, k * len(rows))
            total["macro-P"] += p * Fraction(hits, n or 1)
            total["macro-R"] += p * Fraction(hits, m or 1)
            total["macro-F1"] += p * Fraction(2 * hits, (n + m) or 1)
            total["coverage"] += p * (hits > 0)
    return sum(weight * total[name] for name, weight in terms_of(mix).items()) / n_labels


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from(MIXES), st.randoms())
def test_the_exact_utility_is_that_of_every_truth(case, mix, random):
    rows, n_labels, k, order = case
    rows, order = rows[:6], [i for i in order if i < 6]
    eta = to_csr(rows, n_labels, np.float64, rng=random)
    top = decide.greedy_coverage(eta, k, 0.25, order=order)
    for j in range(1, k + 1):
        want = float(enumerated(rows, [labels[:j] for labels in labels_of(top)], n_labels, j, mix))
        assert decide.expected_utility(eta, top, mix, j, exact=True)[0] == pytest.approx(want, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("n", [40, 1500])
def test_the_exact_utility_of_many_rows(n):
    """Against the distributions of counts, one row after the other; half of the rows are predicted."""
    eta = np.random.default_rng(n).random((n, 1)) ** 3 * (np.arange(n) % 7 > 0)[:, None]
    eta[:3] = 1.0
    top = xc.TopK.from_ids(np.where(np.arange(n) % 2, 0, -1)[:, None], n_labels=1)
    counts = []
    for part in (eta[1::2, 0], eta[::2, 0]):
        counts.append(np.ones(1))
        for p in part:
            counts[-1] = np.convolve(counts[-1], [1 - p, p])
    chance, hits, others = np.outer(*counts), np.arange(counts[0].size)[:, None], np.arange(counts[1].size)
    want = {
        "macro-R": (chance * hits / np.maximum(hits + others, 1)).sum(),
        "macro-F1": (chance * 2 * hits / (n // 2 + hits + others)).sum(),
    }
    for mix, value in want.items():
        assert decide.expected_utility(eta, top, mix, exact=True)[0] == pytest.approx(value, rel=1e-10)


def test_a_row_keeps_its_label_where_another_adds_no_more():
    """Each is in this row or in none, so that any has a recall of 1 by the plug-in; one is right far more often."""
    for eta in ([[0.1, 0.9]], [[0.1, 0.3, 0.9]], [[0.7, 0.1, 0.9], [0.0, 0.0, 0.0]]):
        top = decide.maximise(np.array(eta), 1, "macro-R")
        assert top.ids[0, 0] == len(eta[0]) - 1
    two = decide.maximise(np.array([[0.2, 0.1, 0.9, 0.8]]), 2, "macro-R")
    assert sorted(two.ids[0].tolist()) == [2, 3]


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from(MIXES), st.integers(0, 3))
def test_no_row_can_do_better_alone_and_the_top_k_is_never_better(case, mix, seed):
    """Every other choice of one row, its others left as they are, has no larger utility."""
    rows, n_labels, k, _ = case
    eta = to_csr(rows, n_labels, np.float64)
    top = decide.maximise(eta, k, mix, passes=100, tolerance=0, seed=seed)
    chosen = labels_of(top)
    reached = float(naive_utility(rows, chosen, n_labels, k, mix))
    for i, row in enumerate(rows):
        assert len(set(chosen[i])) == min(k, len(row))
        assert set(chosen[i]) <= set(row)
        for other in every_choice(row, k):
            changed = [*chosen[:i], list(other), *chosen[i + 1 :]]
            assert float(naive_utility(rows, changed, n_labels, k, mix)) <= reached + 1e-12
    assert reached >= decide.expected_utility(eta, decide.top_k(eta, k), mix)[0] - 1e-12


@pytest.mark.parametrize("mix", MIXES)
def test_more_passes_never_lower_the_utility(crowd, mix):
    tops = {passes: decide.maximise(crowd, 3, mix, passes=passes, tolerance=0) for passes in (1, 2, 5, 99, 100)}
    values = [decide.expected_utility(crowd, top, mix)[0] for top in [decide.top_k(crowd, 3), *tops.values()]]
    assert (np.diff(values) >= -1e-12).all()
    assert naive.same_bits(tops[99], tops[100])  # nothing changes any more
    if mix == "P":
        assert tops[1].ids.tolist() == decide.top_k(crowd, 3).ids.tolist()
    else:
        assert values[1] > values[0]


def test_a_large_tolerance_ends_after_one_pass(crowd):
    one = decide.maximise(crowd, 3, "macro-F1", passes=1)
    assert naive.same_bits(decide.maximise(crowd, 3, "macro-F1", tolerance=1.0), one)
    assert not naive.same_bits(decide.maximise(crowd, 3, "macro-F1"), one)


def test_scores_are_what_a_label_adds(crowd):
    """The last row to be decided: its gains are the differences in utility, the place left empty and filled."""
    last = int(np.random.default_rng(0).permutation(500)[-1])
    for mix in MIXES:
        top = decide.maximise(crowd, 2, mix, tolerance=0, passes=3)
        whole = decide.expected_utility(crowd, top, mix)[0]
        for place in range(2):
            ids = top.ids.copy()
            ids[last, place], left = -1, ids[last, 1 - place]
            ids[last] = left, -1
            less = xc.TopK.from_ids(ids, n_labels=300)
            assert whole - decide.expected_utility(crowd, less, mix)[0] == pytest.approx(
                top.scores[last, place], rel=1e-4
            )


# ---------------------------------------------------------------- rules for single rows


def mixture_utility(eta, rule, mix, Y=None):
    """The utility of the mixed counts, from each pure rule's choices."""
    dense, truth = eta.toarray().astype(float), None if Y is None else Y.toarray()
    value = dense if truth is None else truth
    n, t, m = np.zeros(dense.shape[1]), np.zeros(dense.shape[1]), value.sum(axis=0)
    for terms, share in zip(rule.terms, rule.weights, strict=True):
        for i in range(dense.shape[0]):
            labels = eta.indices[eta.indptr[i] : eta.indptr[i + 1]].tolist()
            gain = {label: terms[label, 0] * dense[i, label] + terms[label, 1] for label in labels}
            for label in naive.ranked(gain, rule.k):
                n[label] += share
                t[label] += share * value[i, label]
    safe = np.where(n > 0, n, 1), np.where(m > 0, m, 1), np.where(n + m > 0, n + m, 1)
    total = {
        "P": t.sum() / (rule.k * dense.shape[0]),
        "macro-P": (t / safe[0]).mean(),
        "macro-R": (t / safe[1]).mean(),
        "macro-F1": (2 * t / safe[2]).mean(),
    }
    return sum(float(weight) * total[name] for name, weight in terms_of(mix).items())


@pytest.mark.parametrize("mix", ["P", "macro-P", "macro-R", "macro-F1", "0.5 P + 0.5 macro-F1"])
@pytest.mark.parametrize("counted", [False, True])
def test_frank_wolfe_climbs_and_says_what_it_reached(crowd, mix, counted):
    rng = np.random.default_rng(2)
    Y = sp.csr_matrix((rng.random(crowd.nnz) < crowd.data, crowd.indices, crowd.indptr), crowd.shape, dtype=np.float32)
    Y = Y if counted else None
    values = []
    for iterations in (0, 1, 5, 30):
        rule = decide.randomised(crowd, 3, mix, Y, iterations=iterations)
        assert rule.weights.sum() == pytest.approx(1)
        assert (rule.weights > 0).all()
        assert len(rule.terms) == len(rule.weights) <= iterations + 1
        assert rule.value == pytest.approx(mixture_utility(crowd, rule, mix, Y))
        values.append(rule.value)
    assert (np.diff(values) >= 0).all()
    if mix == "P" and not counted:
        assert len(rule.weights) == 1
        assert rule.predict(crowd).ids.tolist() == decide.top_k(crowd, 3).ids.tolist()
    elif mix != "P":
        assert values[1] > values[0]


def test_frank_wolfe_ends_where_a_step_adds_less_than_asked(crowd):
    """A metric of fractions never rises by 1, so that the first rule stays; by less each time, it takes more steps."""
    counts = [len(decide.randomised(crowd, 3, "macro-F1", tolerance=least).weights) for least in (1.0, 1e-3, 1e-6)]
    assert counts[0] == 1
    assert counts[0] < counts[1] < counts[2]


def test_rows_draw_their_rule_by_its_weight():
    terms = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
    rule = decide.Randomised(terms, np.array([0.25, 0.75]), 1, 0.0)
    eta = np.tile([0.9, 0.1], (20_000, 1))
    ids = rule.predict(eta, seed=3).ids.ravel()
    assert abs((ids == 0).mean() - 0.25) < 4 * (0.1875 / 20_000) ** 0.5
    assert (
        rule.predict(eta, seed=3).ids.ravel().tolist() == ids.tolist() != rule.predict(eta, seed=4).ids.ravel().tolist()
    )
    assert rule.predict(eta[:5], seed=3).ids.ravel().tolist() == ids[:5].tolist()


# ---------------------------------------------------------------- edges


def test_ties_go_to_the_lowest_id():
    eta = np.full((1, 4), 0.5)
    for mix in MIXES:
        assert decide.maximise(eta[:, ::-1], 2, mix).ids.tolist() == [[0, 1]]
        shuffled = sp.csr_matrix((np.full(4, 0.5), [3, 1, 2, 0], [0, 4]), (1, 4))
        assert decide.maximise(shuffled, 2, mix).ids.tolist() == [[0, 1]]


def test_no_rows_no_candidates():
    for mix in MIXES:
        assert decide.maximise(np.zeros((0, 5)), 2, mix).ids.shape == (0, 2)
        empty = sp.csr_matrix((3, 5), dtype=np.float32)
        assert decide.maximise(empty, 2, mix).ids.tolist() == [[-1, -1]] * 3
    assert decide.randomised(empty, 2, "macro-F1").predict(empty).ids.tolist() == [[-1, -1]] * 3
    with pytest.raises(ArgumentError, match="one row"):
        decide.randomised(np.zeros((0, 5)), 2, "macro-F1")


def test_the_number_of_threads_and_the_callers_arrays(crowd, monkeypatch):
    parts = crowd.data, crowd.indices, crowd.indptr
    copies = [part.copy() for part in parts]
    eta = sp.vstack([crowd] * 80).tocsr()
    found = []
    for count in "1", "2":
        monkeypatch.setenv("XCREPRO_THREADS", count)
        rule = decide.randomised(eta, 3, "macro-F1", iterations=3)
        tops = decide.maximise(eta, 3, "macro-F1", passes=2), rule.predict(eta, seed=1)
        found.append(
            [one.tobytes() for top in tops for one in (top.ids, top.scores)] + [rule.terms.tobytes(), rule.value]
        )
    assert found[0] == found[1]
    decide.maximise(crowd, 3, "coverage")
    assert all(part.tobytes() == copy.tobytes() for part, copy in zip(parts, copies, strict=True))


ETA = np.array([[0.5, 0.25], [0.5, 0.25]])


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: decide.maximise(ETA + 0.6, 1, "P"), r"probabilities must lie in \[0, 1\]; got 1.1"),
        (lambda: decide.maximise(ETA, 1, "macro-f1"), "did you mean 'macro-F1'"),
        (lambda: decide.maximise(ETA, 1, None), "metric must be a metric's name or a mix"),
        (lambda: decide.maximise(ETA, 1, "0.5 P + 0.4 macro-F1"), "weights that add up to 1; got .* adds up to 0.9"),
        (lambda: decide.maximise(ETA, 1, "1.5 P"), "weights from 0 to 1"),
        (lambda: decide.maximise(ETA, 1, "half P + 0.5 macro-F1"), "weights from 0 to 1 .*; got 'half P'"),
        (lambda: decide.maximise(ETA, 1, "P", tolerance=-1), "tolerance must be"),
        (lambda: decide.expected_utility(ETA, decide.top_k(ETA, 1), "P", 2), "1 places"),
        (lambda: decide.randomised(ETA, 1, "0.5 P + 0.5 coverage"), "metric must be without coverage"),
        (lambda: decide.randomised(ETA, 1, "P").predict(ETA[:, :1]), "must have the 2 labels of the rule; got 1"),
    ],
)
def test_arguments_are_checked(call, names):
    with pytest.raises(ArgumentError, match=names):
        call()
