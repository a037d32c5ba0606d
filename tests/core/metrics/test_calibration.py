"""Calibration metrics against slow oracles, by hand, at the edges, and beside scikit-learn."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests import naive
from tests.refused import refused
from xcrepro.core.accumulators.pairs import SCORE_OF_HITS, PairSums
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import calibration as cal
from xcrepro.core.metrics import registry

CLOSED = ("left", "right", "torchmetrics")
NORMS = ("l1", "l2", "max")

# ---------------------------------------------------------------- oracles that naive.py does not have


def smooth_oracle(scores, hits, s, steps=20_000):
    """smECE at bandwidth s from the definition: every reflected image of every pair, added up at many points."""
    t = (np.arange(steps) + 0.5) / steps
    residual = np.zeros(steps)
    for p, y in zip(scores, hits, strict=True):
        for image in range(-2 - int(4 * s), 3 + int(4 * s)):
            for centre in (2 * image + p, 2 * image - p):
                residual += (p - y) * np.exp(-((t - centre) ** 2) / (2 * s * s)) / math.sqrt(2 * math.pi * s * s)
    return np.abs(residual).mean() / len(scores)


def poisson_binomial(scores):
    """P(hits = 0, 1, ..., n)."""
    law = np.ones(1)
    for p in scores:
        law = np.append(law * (1 - p), 0) + np.append(0, law * p)
    return law


# Scores on edges, at the ends, next to both, tiny, and anywhere
SCORES = st.one_of(
    st.sampled_from([i / 10 for i in range(11)] + [i / 7 for i in range(8)] + [1 - 2.0**-24, 2.0**-140, 1 - 2.0**-53]),
    st.floats(0, 1),
)


@st.composite
def cases(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    scores = np.array(draw(st.lists(SCORES, min_size=1, max_size=40)), dtype)
    hits = np.array(draw(st.lists(st.booleans(), min_size=scores.size, max_size=scores.size)))
    return dtype, scores, hits


def close(got, want, tolerance=1e-12):
    assert got == pytest.approx(want, rel=tolerance, abs=tolerance)


# ---------------------------------------------------------------- every metric equals its oracle


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from([1, 2, 7, 10, 15, 100]), st.sampled_from(CLOSED))
def test_binned_errors_equal_the_oracle(case, bins, closed):
    dtype, scores, hits = case
    found = naive.bins_of(scores, hits, bins, closed, dtype)
    for norm, half in itertools.product(NORMS, (None, "over", "under")):
        # The root of an l2 error of 0 is only as near to 0 as the root of the rounding.
        got, tolerance = (
            cal.ece(scores, hits, bins=bins, norm=norm, half=half, closed=closed),
            1e-12 if norm != "l2" else 1e-7,
        )
        close(got, naive.error_of(found, norm, half), tolerance)
    debiased = cal.ece(scores, hits, bins=bins, norm="l2", debias=True, closed=closed)
    close(debiased**2, naive.error_of(found, "l2", None, debias=True) ** 2)
    halves = [cal.ece(scores, hits, bins=bins, half=half, closed=closed) for half in ("over", "under")]
    close(sum(halves), cal.ece(scores, hits, bins=bins, closed=closed))


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from([1, 2, 3, 10, 50]), st.randoms())
def test_ace_equals_the_oracle_in_every_order(case, bins, random):
    _, scores, hits = case
    found = naive.mass_groups(scores.tolist(), hits.tolist(), bins)
    close(cal.ace(scores, hits, bins=bins), naive.error_of(found, "l1", None))
    close(cal.ace(scores, hits, bins=bins, norm="max", half="under"), naive.error_of(found, "max", "under"))
    order = list(range(scores.size))
    random.shuffle(order)
    assert cal.ace(scores[order], hits[order], bins=bins) == cal.ace(scores, hits, bins=bins)


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from([0.5, 36.0, 100.0]))
def test_brier_and_nll_equal_the_oracle(case, cap):
    _, scores, hits = case
    exact = sum((Fraction(float(p)) - int(y)) ** 2 for p, y in zip(scores, hits, strict=True)) / scores.size
    close(cal.brier(scores, hits), float(exact))
    close(cal.nll(scores, hits, cap=cap), naive.loss_of(scores, hits, cap))


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from([None, 1, 3, 10]), st.sampled_from(CLOSED))
def test_the_parts_of_the_brier_score_add_up(case, bins, closed):
    dtype, scores, hits = case
    parts = cal.brier_decomposition(scores, hits, bins=bins, closed=closed)
    close(parts.brier, cal.brier(scores, hits))
    base = Fraction(int(hits.sum()), hits.size)
    found = {
        p: [(Fraction(p), int(y)) for q, y in zip(scores.tolist(), hits, strict=True) if q == p]
        for p in scores.tolist()
    }
    if bins is None:
        assert parts.within_variance == parts.within_covariance == 0
    else:
        found = naive.bins_of(scores, hits, bins, closed, dtype)
    resolution = reliability = Fraction(0)
    for group in found.values():
        p, y = sum(a for a, _ in group) / len(group), Fraction(sum(b for _, b in group), len(group))
        resolution += Fraction(len(group), hits.size) * (y - base) ** 2
        reliability += Fraction(len(group), hits.size) * (p - y) ** 2
    close(parts[:3], tuple(map(float, (base * (1 - base), resolution, reliability))))


@pytest.mark.parametrize("s", [1.0, 0.2, 0.03, 0.005])
def test_smooth_ece_at_a_bandwidth_equals_the_definition(s):
    rng = np.random.default_rng(3)
    scores = np.append(rng.random(25), [0.0, 1.0, 0.5])
    hits = rng.random(28) < scores**2
    close(cal.smooth_ece(scores, hits, bandwidth=s), smooth_oracle(scores, hits, s), 2e-5)


def test_smooth_ece_is_the_fixed_point():
    rng = np.random.default_rng(5)
    scores = rng.random(30)
    hits = rng.random(30) < 1 - scores
    found = cal.smooth_ece(scores, hits)
    assert 0.05 < found < 0.6
    close(smooth_oracle(scores, hits, found), found, 2e-5)
    # it falls with the bandwidth, so there is one such point
    falling = [cal.smooth_ece(scores, hits, bandwidth=s) for s in (0.01, 0.05, 0.2, 1.0)]
    assert falling == sorted(falling, reverse=True)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_marginal_ece_equals_the_oracle(data):
    n, n_labels = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    dense = np.array(data.draw(st.lists(SCORES, min_size=n * n_labels, max_size=n * n_labels)), dtype)
    dense = dense.reshape(n, n_labels)
    flags = st.lists(st.booleans(), min_size=dense.size, max_size=dense.size)
    stored, truth = (np.array(data.draw(flags)).reshape(dense.shape) for _ in range(2))
    rows, columns = np.nonzero(stored)
    P = sp.csr_matrix((dense[rows, columns], (rows, columns)), shape=dense.shape)
    bins, closed = data.draw(st.sampled_from([1, 4, 10])), data.draw(st.sampled_from(CLOSED))
    full = np.where(stored, dense, dtype(0))
    want = [
        naive.error_of(naive.bins_of(full[:, l], truth[:, l], bins, closed, dtype), "l1", None) for l in range(n_labels)
    ]
    close(cal.marginal_ece(P, truth, bins, closed=closed), math.fsum(want))
    close(cal.marginal_ece(full, sp.csr_array(truth), bins, "mean", closed), math.fsum(want) / n_labels)


# ---------------------------------------------------------------- by hand, as the calibration@k authors compute it


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [3, 7, 10, 15, 100])
def test_scores_on_edges(dtype, bins):
    edges = np.array([i / bins for i in range(bins + 1)], dtype)
    hits = np.zeros(bins + 1, bool)
    inner = [1] * bins
    assert cal.reliability(edges, hits, bins=bins, band=None)["count"].tolist() == [*inner[:-1], 2]
    assert cal.reliability(edges, hits, bins=bins, band=None, closed="right")["count"].tolist() == [2, *inner[1:]]
    assert cal.reliability(edges, hits, bins=bins, band=None, closed="torchmetrics")["count"].tolist() == [*inner, 1]
    below = np.nextafter(edges[1:], dtype(0))
    for closed in CLOSED:
        counts = cal.reliability(below, hits[1:], bins=bins, band=None, closed=closed)["count"]
        assert counts.tolist() == [1] * bins + [0] * (closed == "torchmetrics")


# ---------------------------------------------------------------- the same bits


def fold_of(*parts):
    fold = PairSums([1])
    for scores, hits in parts:
        fold.add_pairs(*cal.check_pairs(scores, hits))
    return fold


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 5e-324, 1e-45, 1 - 2.0**-53])), st.booleans())
    ),
    st.sampled_from([np.float32, np.float64]),
)
def test_sums_are_those_of_fractions(pairs, dtype):
    pairs = [(dtype(p), y) for p, y in pairs] or [(dtype(0.5), True)]
    sums = fold_of((np.array([p for p, _ in pairs], dtype), np.array([y for _, y in pairs]))).at(1)
    exact = [(Fraction(float(p)), y) for p, y in pairs]
    # What lies below 2^-160 is cut off; the square of a float64 is rounded before it is added.
    below = Fraction(len(pairs), 2**159) + (Fraction(len(pairs), 2**53) if dtype is np.float64 else 0)
    for found, want in (
        (sums.score, sum(p for p, _ in exact)),
        (sums.squared_error, sum((p - y) ** 2 for p, y in exact)),
        (sums.table[SCORE_OF_HITS].sum(), sum(p for p, y in exact if y)),
    ):
        assert abs(Fraction(found) - want) <= below + want * Fraction(3, 2**53)
    # each pair's loss is a float64, right to 2e-16 of it or of 1; their sum is exact
    losses = [min(-math.log(h), 100.0) if (h := float(p) if y else 1.0 - float(p)) > 0 else 100.0 for p, y in pairs]
    assert sums.log_loss == pytest.approx(math.fsum(losses), rel=1e-14, abs=3e-16 * len(pairs))


# ---------------------------------------------------------------- peers: each difference a decision


def test_a_loss_is_capped_on_purpose():
    assert cal.nll([0.0], [True]) == 100.0
    assert cal.nll([1.0], [False], cap=np.inf) == np.inf
    assert cal.nll([1.0, 0.0], [True, False], cap=np.inf) == 0.0
    close(cal.nll([1e-60], [True]), 100.0)
    close(cal.nll([1e-60], [True], cap=np.inf), 60 * math.log(10))
    tiny = np.full(3000, 5e-324)  # its product underflows at once
    close(cal.nll(tiny, np.ones(3000, bool), cap=np.inf), 1074 * math.log(2))


# ---------------------------------------------------------------- bands


def test_the_band_is_that_of_the_scores_own_law():
    rng = np.random.default_rng(8)
    ranges = ((0.0, 0.1), (0.4, 0.5), (0.9, 1.0), (0.0, 1.0))
    for n, (low, high) in itertools.product((1, 2, 5, 30, 400), ranges):
        scores = rng.uniform(low, high, n)
        law = np.cumsum(poisson_binomial(scores))
        sums = [np.array([float(v)]) for v in (n, scores.sum(), (scores**2).sum())]
        for level in (0.005, 0.025, 0.5, 0.975):
            # The law is approximated where scores differ: it may cross the level one hit away.
            assert abs(cal.hits_quantile(level, *sums)[0] - np.argmax(law >= level)) <= 1, (n, low, high, level)


@pytest.mark.parametrize("p", [0.0, 0.03, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("n", [1, 7, 60])
def test_the_band_is_exact_for_equal_scores(p, n):
    law = np.cumsum(poisson_binomial([p] * n))
    law[-1] = 1.0
    hits = np.arange(n) % 2 == 0
    row = cal.reliability(np.full(n, p), hits, bins=1, band=0.9).iloc[0]
    assert row.low * n == pytest.approx(np.argmax(law >= 0.05), abs=1e-9)
    assert row.high * n == pytest.approx(np.argmax(law >= 0.95), abs=1e-9)
    # Beside others, whose quantiles are found in more steps.
    beside = cal.reliability([*np.full(n, p), *np.full(500, 0.75)], [*hits, *np.zeros(500, bool)], bins=2, band=0.9)
    if p < 0.5:
        assert beside.iloc[0][["low", "high"]].tolist() == [row.low, row.high]


def test_reliability_without_a_band_and_in_a_large_bin():
    assert "low" not in cal.reliability([0.5], [True], band=None)
    row = cal.reliability(np.full(10**6, 0.3), np.arange(10**6) % 10 < 3).iloc[3]
    sd = math.sqrt(0.3 * 0.7 / 10**6)
    assert row.low == pytest.approx(0.3 - 1.96 * sd, abs=2e-6)
    assert row.high == pytest.approx(0.3 + 1.96 * sd, abs=2e-6)


# ---------------------------------------------------------------- ECE without the noise of its hits


@pytest.mark.parametrize("off", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("n", [500, 5000])
def test_the_corrected_error_is_near_the_true_one(n, off):
    """Over draws: less biased than the ECE, by half and more where nothing is wrong; the interval holds as often as it says."""
    rng = np.random.default_rng(2)
    scores = rng.beta(1.0, 2.0, n)
    right = scores * (1 - off)
    bins = np.minimum((scores * 10).astype(int), 9)
    truth = np.abs(np.bincount(bins, scores - right)).sum() / n
    found = [cal.corrected_ece(scores, rng.random(n) < right) for _ in range(200)]
    mean = np.mean([one.corrected for one in found])
    raw = np.mean([one.ece for one in found])
    assert abs(mean - truth) < (0.5 if off == 0 else 1.0) * abs(raw - truth) + 0.001
    assert np.mean([one.low - 1e-12 <= truth <= one.high + 1e-12 for one in found]) >= 0.88


@example([(1.0, False), (np.nextafter(1.0, 0.0), False)], 0.5)
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40), st.sampled_from([0.5, 0.95]))
def test_corrected_ece_of_anything(pairs, confidence):
    scores, hits = zip(*pairs, strict=True)
    found = cal.corrected_ece(scores, hits, confidence_level=confidence)
    assert found.ece == cal.ece(scores, hits)
    assert 0 <= found.corrected <= found.ece
    assert found.floor >= 0
    assert 0 <= found.low <= found.high <= 1
    # By hand: the deviation of each bin's summed hits, were the scores right.
    bins = np.minimum(np.floor(np.array(scores) * 10), 9)
    noise = [
        math.sqrt(sum(s * (1 - s) for s, b in zip(scores, bins, strict=True) if b == which)) for which in set(bins)
    ]
    # The root of s (1 - s), which beside 0 and 1 is a difference of nearly equal numbers, good to 1e-16.
    assert found.floor == pytest.approx(math.sqrt(2 / math.pi) * sum(noise) / len(scores), abs=1e-7)


# ---------------------------------------------------------------- the table, and rankings


@pytest.fixture(scope="module")
def ranked():
    """A twin's test set with scores near its own probabilities; some rows short, some empty."""
    twin = xc.twin("eurlex-4k", scale=0.1, seed=0).test
    rng = np.random.default_rng(0)
    scores = twin.observed_marginals.toarray()
    scores = np.clip(scores * rng.uniform(0.7, 1.3, scores.shape), 0, 1)
    scores[::5, 20:] = -np.inf
    scores[::50] = -np.inf
    return twin.Y, xc.TopK.from_scores(scores, 5)


def test_the_table_equals_the_functions(ranked):
    Y, top = ranked
    table = cal.calibration_table(Y, top).set_index(["metric", "k"]).value
    assert list(dict.fromkeys(name for name, _ in table.index)) == registry.names("pairs", "scores")
    for k in (1, 3, 5):
        scores, hits = cal.pairs(Y, top, k)
        parts = cal.brier_decomposition(scores, hits, bins=10)._asdict()
        sure = cal.corrected_ece(scores, hits)
        want = {"ECE": cal.ece(scores, hits), "ECE l2 debiased": cal.ece(scores, hits, norm="l2", debias=True)}
        want |= {f"ECE {half}": cal.ece(scores, hits, half=half) for half in ("over", "under")}
        want |= {f"ECE {norm}": cal.ece(scores, hits, norm=norm) for norm in ("l2", "max")}
        want |= {"ECE floor": sure.floor, "ECE corrected": sure.corrected}
        want |= {f"ECE corrected {end}": getattr(sure, end) for end in ("low", "high")}
        want |= {"ACE": cal.ace(scores, hits), "smECE": cal.smooth_ece(scores, hits), "Brier": cal.brier(scores, hits)}
        want |= {name.replace("_", " "): value for name, value in parts.items()} | {"NLL": cal.nll(scores, hits)}
        want |= {"confidence": scores.astype(np.float64).mean(), "accuracy": hits.mean(), "pairs": scores.size}
        assert set(want) == set(registry.names("pairs", "scores"))
        for name, value in want.items():
            close(table[name, k], value, 1e-12 if name != "smECE" else 1e-9)


def test_absent_places_are_left_out(ranked):
    Y, top = ranked
    scores, hits = cal.pairs(Y, top)
    assert scores.size == (top.ids >= 0).sum() < top.ids.size
    assert scores.dtype == np.float32
    rows, places = np.nonzero(top.ids >= 0)
    assert scores.tolist() == top.scores[rows, places].tolist()
    assert hits.tolist() == [bool(Y[i, top.ids[i, place]]) for i, place in zip(rows, places, strict=True)]
    # where nothing is absent, accuracy is P@k
    full = xc.TopK.from_scores(np.linspace(0.1, 0.9, 3 * 4).reshape(3, 4), 3)
    truth = np.eye(4)[[3, 0, 2]]
    accuracy = cal.calibration_table(truth, full, (1, 2, 3), metrics=["accuracy"]).value
    np.testing.assert_allclose(accuracy, xc.metrics.precision(truth, full, (1, 2, 3)), rtol=1e-15)


# ---------------------------------------------------------------- marginal ECE


@pytest.mark.parametrize("value", [1.5, -0.1, np.nan])
def test_marginal_ece_refuses_what_is_no_probability(value):
    P = sp.csr_matrix(np.array([[0.5, 0.0], [0.2, 0.9]]))
    P.data[2] = value
    with refused("probabilities", match="row 1, label 1"):
        cal.marginal_ece(P, np.eye(2))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("value", [-1e-9, 1.0000001, np.nan, np.inf, -3.0])
@pytest.mark.parametrize("metric", [cal.ece, cal.ace, cal.brier, cal.nll, cal.smooth_ece, cal.reliability])
def test_a_score_outside_0_to_1_is_refused(metric, value):
    scores = np.full((3, 2), 0.5)
    scores[1, 1] = value
    with refused("scores", match="row 1, place 1"):
        metric(scores, np.ones((3, 2), bool))


OK, YES = [0.5, 0.5], [True, True]
Y1, TOP1 = np.eye(2)[:1], xc.TopK.from_scores(np.array([[0.2, 0.9]]), 2)
TWICE = sp.csr_matrix(([0.1, 0.2], [1, 1], [0, 2, 2]), shape=(2, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cal.ece([[0.5, -np.inf]], [[True, False]]), r"-inf at row 0, place 1.*left out"),
        (lambda: cal.ece([], np.zeros(0, bool)), "at least one pair"),
        (lambda: cal.ece(OK, [True]), "shape of scores"),
        (lambda: cal.ece(OK, [1, 2]), "hits must be bool, or 0 and 1; got 2 at pair 1"),
        *((lambda bins=bins: cal.ece(OK, YES, bins=bins), "bins") for bins in (0, -1, 2.5, True, 100_001)),
        (lambda: cal.ece(OK, YES, debias=True), "debias"),
        (lambda: cal.ece(OK, YES, norm="l2", half="over", debias=True), "debias"),
        (lambda: fold_of((np.array(OK, np.float32), YES), (OK, YES)), "must stay float32"),
        (lambda: cal.ece(OK, YES, 5), "k goes with a truth and its TopK; got 5"),
        (lambda: cal.brier(Y1, xc.TopK.from_pairs([[]], n_labels=2, k=1)), "at least one prediction"),
        # no scores, so ranks stand for them
        (lambda: cal.calibration_table(Y1, xc.TopK.from_ids([[1, 0]], n_labels=2), (1,)), r"must lie in \[0, 1\]"),
        (lambda: cal.marginal_ece(TWICE, np.eye(2)), r"twice in a row.*row 0, label 1"),
        (lambda: cal.marginal_ece(np.ones((2, 1)), np.eye(2)), "Y's shape"),
        (lambda: cal.marginal_ece(sp.csr_matrix((0, 2)), sp.csr_matrix((0, 2))), "at least one row"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_numbers_for_hits_and_other_dtypes():
    scores = np.array([0.25, 0.5, 1.0])
    for hits in ([1, 0, 1], [1.0, 0.0, 1.0], np.array([1, 0, 1], np.uint8)):
        assert cal.ece(scores, hits) == cal.ece(scores, [True, False, True])
    assert cal.brier(scores.astype(np.float16), [True, False, True]) == cal.brier(scores, [True, False, True])
    assert cal.brier([1, 0], [True, False]) == 0.0
    for zero in (np.float32(-0.0), np.float64(-0.0)):
        assert cal.ace(np.array([0.5, zero], zero.dtype), [False, True], bins=2) == 0.75
        assert cal.ece(np.array([0.5, zero], zero.dtype), [False, True]) == 0.75
