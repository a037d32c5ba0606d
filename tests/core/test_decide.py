"""Decisions against algorithm 1 in plain Python, exhaustive search and drawn truths; at the edges; and on a twin."""

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
from tests.refused import refused
from xcrepro.core import decide
from xcrepro.core.errors import ArgumentError

# ---------------------------------------------------------------- oracles: rows are dicts {label: Fraction}


def naive_gain(rows, k, beta=0, order=None):
    """The same where a chosen label's f loses its gain; the labels, and f in the end."""
    f, chosen = {}, {}
    for i in range(len(rows)) if order is None else order:
        gain = {label: (f.get(label, Fraction(1)) + beta) * eta for label, eta in rows[i].items()}
        chosen[i] = naive.ranked(gain, k)
        f |= {label: f.get(label, Fraction(1)) * max(0, 1 - gain[label]) for label in chosen[i]}
    return [chosen[i] for i in range(len(rows))], f


def naive_greedy(rows, k, beta=0, order=None, passes=1):
    """Algorithm 1 with g = (f + beta) eta; with more passes f is worked out anew from all OTHER rows."""
    chosen = {}
    for _ in range(passes):
        for i in range(len(rows)) if order is None else order:
            chosen.pop(i, None)
            gain = {label: (miss(rows, chosen, label) + beta) * eta for label, eta in rows[i].items()}
            chosen[i] = naive.ranked(gain, k)
    return [chosen[i] for i in range(len(rows))]


def miss(rows, chosen, label):
    product = Fraction(1)
    for i, labels in chosen.items():
        if label in labels:
            product *= 1 - rows[i][label]
    return product


def naive_coverage(rows, chosen, n_labels):
    """Equation 22 as printed."""
    chosen = dict(enumerate(chosen))
    return 1 - sum(miss(rows, chosen, label) for label in range(n_labels)) / n_labels


def naive_precision(rows, chosen, k):
    return sum(rows[i][label] for i, labels in enumerate(chosen) for label in labels) / Fraction(k * len(rows))


def to_csr(rows, n_labels, dtype=np.float32, rng=None):
    """The rows as they are, or each in a random order of its labels; zeros stay stored."""
    labels, values = [], []
    for row in rows:
        items = sorted(row.items())
        if rng is not None:
            rng.shuffle(items)
        labels += [int(label) for label, _ in items]
        values += [float(eta) for _, eta in items]
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    return sp.csr_matrix((np.array(values, dtype), np.array(labels, np.int32), indptr), shape=(len(rows), n_labels))


def labels_of(top):
    return [[label for label in row if label >= 0] for row in top.ids.tolist()]


@st.composite
def cases(draw):
    """Few different probabilities, in quarters: many ties, and every product and quotient is exact in float64."""
    n_labels = draw(st.integers(1, 7))
    quarters = st.integers(0, 4).map(lambda q: Fraction(q, 4))
    rows = draw(st.lists(st.dictionaries(st.integers(0, n_labels - 1), quarters), min_size=1, max_size=6))
    return rows, n_labels, draw(st.integers(1, 4)), draw(st.permutations(range(len(rows))))


@settings(max_examples=120, deadline=None)
@given(cases(), st.sampled_from([0, Fraction(1, 4), Fraction(1), Fraction(64)]), st.integers(1, 4), st.randoms())
def test_greedy_is_algorithm_1(case, beta, passes, random):
    rows, n_labels, k, order = case
    want = naive_greedy(rows, k, beta, order, passes)
    for dtype in (np.float32, np.float64):
        top = decide.greedy_coverage(
            to_csr(rows, n_labels, dtype, random), k, float(beta), order=np.array(order), passes=passes
        )
        assert labels_of(top) == want
        assert (top.scores[:, 1:] <= top.scores[:, :-1]).all()
        assert (top.scores[top.ids < 0] == -np.inf).all()


@settings(max_examples=120, deadline=None)
@given(cases(), st.sampled_from([0, Fraction(1, 4), Fraction(1), Fraction(64)]), st.randoms())
def test_the_gain_rule_takes_the_gain_from_f(case, beta, random):
    """Squares of quarters leave float64 after some six choices of one label, hence six rows at most and few ties."""
    rows, n_labels, k, order = case
    want, f = naive_gain(rows, k, beta, order)
    assert beta or all(f[label] <= 1 / (1 + hits(rows, want, label)) for label in f)
    for dtype in (np.float32, np.float64):
        eta = to_csr(rows, n_labels, dtype, random)
        top = decide.greedy_coverage(eta, k, float(beta), update="gain", order=np.array(order))
        assert labels_of(top) == want


def hits(rows, chosen, label):
    """To expect of a label: the sum of its probabilities where it was chosen."""
    return sum(rows[i][label] for i, labels in enumerate(chosen) if label in labels)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_expectations_and_marginals_equal_their_oracles(case):
    rows, n_labels, k, order = case
    eta = to_csr(rows, n_labels)
    top = decide.greedy_coverage(eta, k, 0.25, order=order)
    chosen = labels_of(top)
    ks = range(1, k + 1)
    heads = [[labels[:j] for labels in chosen] for j in ks]
    coverage = [float(naive_coverage(rows, head, n_labels)) for head in heads]
    np.testing.assert_allclose(decide.expected_coverage(eta, top, ks), coverage, rtol=1e-14, atol=1e-15)
    precision = [float(naive_precision(rows, head, j)) for head, j in zip(heads, ks, strict=True)]
    np.testing.assert_allclose(decide.expected_precision(eta, top, ks), precision, rtol=1e-14)
    values = decide.marginals(eta, top)
    for i, labels in enumerate(chosen):
        assert values[i].tolist() == [float(rows[i][label]) for label in labels] + [0.0] * (k - len(labels))


@settings(max_examples=60, deadline=None)
@given(cases(), st.randoms())
def test_top_k_and_weighted_equal_their_oracles(case, random):
    rows, n_labels, k, _ = case
    weights = [random.choice([0, 1, 1, 2, 5]) for _ in range(n_labels)]
    eta = to_csr(rows, n_labels, rng=random)
    assert labels_of(decide.top_k(eta, k)) == [naive.ranked(row, k) for row in rows]
    top = decide.weighted(eta, k, weights)
    want = [naive.ranked({label: weights[label] * eta for label, eta in row.items()}, k) for row in rows]
    assert labels_of(top) == want
    for row, labels, scores in zip(rows, want, top.scores.tolist(), strict=True):
        assert scores[: len(labels)] == [float(weights[label] * row[label]) for label in labels]


def as_rows(eta):
    return [
        dict(zip(eta.indices[a:b].tolist(), eta.data[a:b].astype(float).tolist(), strict=True))
        for a, b in itertools.pairwise(eta.indptr)
    ]


@pytest.mark.parametrize("beta", [0.0, 0.25, 3.0])
def test_greedy_on_long_rows(crowd, beta):
    """Rows longer than k, where most candidates are passed over unseen."""
    f = [1.0] * crowd.shape[1]
    for row, labels in zip(as_rows(crowd), labels_of(decide.greedy_coverage(crowd, 5, beta)), strict=True):
        assert labels == naive.ranked({label: (f[label] + beta) * eta for label, eta in row.items()}, 5)
        for label in labels:
            f[label] *= 1 - row[label]


# ---------------------------------------------------------------- is it any good?


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_greedy_between_half_the_optimum_and_the_optimum(seed):
    """All selections of 2 of 4 labels for 3 rows; and every further pass helps or changes nothing."""
    rng = np.random.default_rng(seed)
    dense = rng.random((3, 4)) ** rng.integers(1, 4)
    pairs = list(itertools.combinations(range(4), 2))
    rows = [dict(enumerate(row)) for row in dense.tolist()]
    optimum = max(naive_coverage(rows, selection, 4) for selection in itertools.product(pairs, repeat=3))
    found = [decide.expected_coverage(dense, decide.greedy_coverage(dense, 2, passes=p), 2)[0] for p in range(1, 5)]
    assert optimum / 2 <= found[0]
    assert found[-1] <= optimum + 1e-12
    assert (np.diff(found) >= -1e-12).all()


def test_more_passes_never_lower_the_objective(crowd):
    for beta in (0.0, 0.25):
        values = []
        for passes in (1, 2, 3, 5, 50, 51):
            top = decide.greedy_coverage(crowd, 3, beta, passes=passes)
            covered = decide.expected_coverage(crowd, top, 3)[0] * 300
            values.append(covered + beta * decide.expected_precision(crowd, top, 3)[0] * 500 * 3)
        assert (np.diff(values) >= -1e-9).all()
        assert values[1] > values[0] + 0.1
        assert values[2] > values[1]
        assert values[-1] == values[-2]  # nothing changes any more: it stopped


# ---------------------------------------------------------------- bounded random selection


def test_bounded_random_draws_each_of_the_best_equally_often():
    n, k, b = 20_000, 3, 2
    row = np.array([0.1, 0.9, 0.3, 0.5, 0.2, 0.7, 0.6, 0.4])
    eta = np.tile(row, (n, 1))
    top = decide.bounded_random(eta, k, b, seed=3)
    assert top.ids.shape == (n, k)
    assert (np.diff(row[top.ids], axis=1) < 0).all()  # by falling probability, none twice
    counts = np.bincount(top.ids.ravel(), minlength=8)
    assert counts[[0, 4]].tolist() == [0, 0]  # not among the six best
    assert (np.abs(counts[[1, 5, 6, 3, 7, 2]] - n / b) < 4 * math.sqrt(n / b * (1 - 1 / b))).all()
    pairs = np.array([np.isin([1, 5], ids).all() for ids in top.ids[:2000]])
    assert abs(pairs.mean() - 0.2) < 4 * math.sqrt(0.16 / 2000)  # C(4,1) / C(6,3), without replacement


def test_bounded_random_at_its_ends(crowd):
    assert decide.bounded_random(crowd, 5, 1, seed=9).ids.tolist() == decide.top_k(crowd, 5).ids.tolist()
    one, again, other = (decide.bounded_random(crowd, 5, seed=seed) for seed in (1, 1, 2))
    assert naive.same_bits(one, again)
    assert not naive.same_bits(one, other)
    few = to_csr([{2: 0.5, 0: 0.25}, {}, {1: 0.0, 2: 0.25, 3: 0.5, 0: 0.75}], 4)
    seen = set()
    for seed in range(40):
        ids = decide.bounded_random(few, 3, seed=seed).ids.tolist()
        assert ids[:2] == [[2, 0, -1], [-1, -1, -1]]
        seen.add(tuple(ids[2]))
    assert seen == {(0, 3, 2), (0, 3, 1), (0, 2, 1), (3, 2, 1)}


# ---------------------------------------------------------------- a floor under precision


@pytest.mark.parametrize("floor", [0.6, 0.65, 0.68])
def test_for_precision_finds_the_smallest_beta(crowd, floor):
    found = decide.for_precision(crowd, 5, floor, tolerance=1e-3)
    betas = np.geomspace(1 / 256, 300, 60)
    tops = [decide.greedy_coverage(crowd, 5, beta) for beta in betas]
    precision = np.array([decide.expected_precision(crowd, top, 5)[0] for top in tops])
    coverage = np.array([decide.expected_coverage(crowd, top, 5)[0] for top in tops])
    assert floor <= found.precision < floor + 0.002
    assert found.coverage >= coverage[precision >= floor].max() - 1e-3
    assert betas[precision < floor].max() <= found.beta <= betas[precision >= floor].min() * 1.001
    assert found.top.ids.tolist() == decide.greedy_coverage(crowd, 5, found.beta).ids.tolist()
    assert found.precision == decide.expected_precision(crowd, found.top, 5)
    assert found.coverage == decide.expected_coverage(crowd, found.top, 5)
    assert (np.diff(found.path[:, 0]) > 0).all()
    kept = found.path[found.path[:, 1] >= floor]
    assert found.coverage == kept[:, 2].max()


def test_for_precision_at_its_ends(crowd):
    least = decide.expected_precision(crowd, decide.greedy_coverage(crowd, 5), 5)[0]
    most = decide.expected_precision(crowd, decide.top_k(crowd, 5), 5)[0]
    free = decide.for_precision(crowd, 5, least)
    assert (free.beta, len(free.path)) == (0.0, 1)
    with pytest.raises(ArgumentError, match=rf"above {most:.6f}"):
        decide.for_precision(crowd, 5, most + 1e-9)
    at_most = decide.for_precision(crowd, 5, most)
    assert at_most.precision == most
    assert at_most.beta > 1


def test_for_precision_where_only_the_plain_top_k_keeps_the_floor():
    """0.5 beats 0.5 - 2**-20 only if beta is far beyond the grid, for row 1 finds its label covered by half."""
    eta = np.array([[0.5, 0.0], [0.5, 0.5 - 2.0**-20]])
    found = decide.for_precision(eta, 1, 0.5)
    assert (found.beta, found.top.ids.tolist(), found.precision) == (math.inf, [[0], [0]], 0.5)


def test_for_precision_on_a_truth(crowd):
    rng = np.random.default_rng(2)
    Y = sp.csr_matrix((rng.random(crowd.nnz) < crowd.data, crowd.indices, crowd.indptr), crowd.shape, dtype=np.float32)
    found = decide.for_precision(crowd, 5, 0.55, Y)
    hits = Y.toarray()[np.arange(500)[:, None], found.top.ids] > 0
    assert found.precision == hits.mean() >= 0.55
    assert found.coverage == len(set(found.top.ids[hits].tolist())) / 300
    assert found.precision == pytest.approx(xc.metrics.precision(Y, found.top, 5)[0])
    assert 0 < found.beta < 10


def test_for_precision_says_where_its_assumption_fails():
    """The truth wants the label that the probabilities put second: more beta, fewer hits."""
    eta = np.array([[0.9, 0.1], [0.9, 0.8]])
    Y = np.array([[1, 0], [0, 1]])
    found = decide.for_precision(eta, 1, 1.0, Y)
    assert (found.beta, found.coverage) == (0.0, 1.0)  # label 0, then 1: right twice
    Y = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    eta = np.array([[0.9, 0.1, 0.0], [0.9, 0.8, 0.0], [0.9, 0.5, 0.45]])
    with refused("floor", 1.1):
        decide.for_precision(eta, 1, 1.1, Y)


def test_for_precision_reaches_a_middle_that_both_ends_miss():
    """Beta = 0 and the plain top k are both wrong once, and some beta between is right three times."""
    eta = np.array([[0.8, 0.1, 0.0], [0.8, 0.7, 0.0], [0.8, 0.75, 0.5]])
    tops = {beta: decide.greedy_coverage(eta, 1, beta).ids.ravel().tolist() for beta in (0.0, 3.0, math.inf)}
    middle = [0, 1, 0]
    assert list(tops.values()) == [[0, 1, 2], middle, [0, 0, 0]]
    Y = np.zeros((3, 3))
    Y[np.arange(3), middle] = 1
    found = decide.for_precision(eta, 1, 1.0, Y)
    assert found.top.ids.ravel().tolist() == middle
    assert 0 < found.beta < math.inf


# ---------------------------------------------------------------- edges


def test_products_that_underflow_come_back_in_later_passes():
    """Row 0 finds label 0 covered by 5,000 rows, gives it up in the second pass, and all but one follow: no row may be
    left to think that it is still covered."""
    n = 5000
    eta = np.full((n, 2), 0.25)
    eta[:, 0] = 0.75
    two = decide.greedy_coverage(eta, 1, passes=2)
    assert decide.expected_coverage(eta, two, 1) == pytest.approx(1, abs=1e-12)


def test_infinite_beta_is_the_plain_top_k(crowd):
    want = decide.top_k(crowd, 5)
    for update in decide.UPDATES:
        assert naive.same_bits(decide.greedy_coverage(crowd, 5, math.inf, update=update), want)
    assert decide.greedy_coverage(crowd, 5, 1e12).ids.tolist() == want.ids.tolist()


def test_no_rows_no_labels_no_candidates():
    for eta in (sp.csr_matrix((0, 5), dtype=np.float32), np.zeros((0, 5))):
        for top in (decide.top_k(eta, 2), decide.greedy_coverage(eta, 2), decide.bounded_random(eta, 2)):
            assert top.ids.shape == (0, 2)
        with pytest.raises(ArgumentError, match="one row"):
            decide.expected_coverage(eta, top, 1)
        with pytest.raises(ArgumentError, match="one row"):
            decide.for_precision(eta, 1, 0.5)
    empty = sp.csr_matrix((3, 5), dtype=np.float32)
    top = decide.greedy_coverage(empty, 2, passes=3)
    assert top.ids.tolist() == [[-1, -1]] * 3
    assert decide.expected_coverage(empty, top, 2).tolist() == [0]
    assert decide.expected_precision(empty, top, 2).tolist() == [0]


def test_the_callers_arrays_are_untouched(crowd):
    parts = crowd.data, crowd.indices, crowd.indptr
    weights, order = np.ones(300), np.arange(500)[::-1]
    before = [part.copy() for part in (*parts, weights, order)]
    top = decide.greedy_coverage(crowd, 5, order=order, passes=2)
    decide.weighted(crowd, 5, weights)
    decide.bounded_random(crowd, 5)
    decide.expected_coverage(crowd, top)
    for part, copy in zip((*parts, weights, order), before, strict=True):
        assert part.tobytes() == copy.tobytes()


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    rng = np.random.default_rng(0)
    n = 40_000  # enough rows for two threads
    labels = rng.permuted(np.tile(np.arange(40, dtype=np.int32), (n, 1)), axis=1)[:, :8]
    eta = sp.csr_matrix((rng.random(n * 8, np.float32), labels.ravel(), np.arange(0, n * 8 + 1, 8)), (n, 40))
    found = []
    for count in "1", "2":
        monkeypatch.setenv("XCREPRO_THREADS", count)
        top = decide.greedy_coverage(eta, 3, passes=2)
        tops = top, decide.weighted(eta, 3, np.arange(40)), decide.greedy_coverage(eta, 3, update="gain")
        arrays = [part for each in tops for part in (each.ids, each.scores)] + [decide.marginals(eta, top)]
        arrays += [decide.expected_coverage(eta, top, (1, 3)), decide.expected_precision(eta, top, (1, 3))]
        found.append([array.tobytes() for array in arrays])
    assert found[0] == found[1]
    eta.data[39_990 * 8] = 1.5
    with pytest.raises(ArgumentError, match=r"1.5 at row 39990"):
        decide.top_k(eta, 1)


@pytest.mark.parametrize("value", [np.nan, -1e-6, 1.001, np.inf])
def test_what_is_no_probability_is_refused(value):
    eta, top = to_csr([{0: 0.5}, {3: 0.5, 1: value}], 5, np.float64), xc.TopK.from_ids([[0], [1]], n_labels=5)
    calls = [(decide.top_k, 1), (decide.bounded_random, 1), (decide.greedy_coverage, 1), (decide.marginals, top)]
    calls += [(decide.weighted, 1, np.ones(5)), (decide.for_precision, 1, 0.5)]
    calls += [(decide.expected_coverage, top, 1), (decide.expected_precision, top, 1)]
    for call, *others in calls:
        for form in (eta, eta.toarray()):
            with refused("probabilities", match="row 1, label 1"):
                call(form, *others)


def csr_with_indices(*indices):
    return sp.csr_matrix((np.full(3, 0.5, np.float32), indices, [0, 0, 3]), shape=(2, 5))


ETA = np.array([[0.5, 0.25], [0.5, 0.25]])


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: decide.greedy_coverage(csr_with_indices(1, 4, 1), 1), "label 1 twice in row 1"),
        (lambda: decide.greedy_coverage(csr_with_indices(1, 4, 5), 1), "column 5 in row 1"),
        (lambda: decide.top_k(sp.coo_matrix(([0.2, 0.2], ([0, 0], [1, 1])), (2, 5)), 1), "label 1 twice in row 0"),
        (lambda: decide.greedy_coverage(np.zeros((3, 3), complex), 1), "array of numbers"),
        (lambda: decide.greedy_coverage(ETA, 1, update="gain", passes=2), 'passes must be 1 with update="gain"'),
        (lambda: decide.greedy_coverage(ETA, 1, order=[0, 0]), "order must be a permutation of the 2 rows"),
        (lambda: decide.weighted(ETA, 1, [1, 2, 3]), "weights must hold one value for each of the 2 labels"),
        (lambda: decide.weighted(ETA, 1, [1, -2]), r"weights must be .*; got -2.0 for label 1"),
        (lambda: decide.for_precision(ETA, 1, 0.6), "no beta has P@1 above 0.500000"),
        (lambda: decide.marginals(ETA, ETA), "top must be a TopK"),
        (lambda: decide.expected_coverage(ETA, decide.top_k(ETA, 1), 2), "1 places"),
    ],
)
def test_arguments_are_checked(call, names):
    with pytest.raises(ArgumentError, match=names):
        call()


# ---------------------------------------------------------------- the paper's findings, on a twin
