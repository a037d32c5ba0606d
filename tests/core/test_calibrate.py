"""Calibrators against scikit-learn, against SciPy's optimisers, by hand, and at the edges."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.isotonic import IsotonicRegression

import xcrepro as xc
from tests.refused import refused
from xcrepro.core import calibrate
from xcrepro.core.calibrate import Beta, HistogramBinning, Isotonic, Platt, Temperature, VennAbers
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.kernels import isotonic as kernel
from xcrepro.core.kernels import venn_abers
from xcrepro.core.paths import seal
from xcrepro.core.truth import as_truth

ABSENT = -np.inf
CALIBRATORS = [Isotonic(), Platt(), Platt("plain", C=1.0), Beta(), Temperature(), HistogramBinning(4),
               HistogramBinning(4, "mass")]  # fmt: skip
CALIBRATORS += [Isotonic(smooth=2), VennAbers()]
EACH = pytest.mark.parametrize("method", CALIBRATORS, ids=repr)


def fit(method, scores, hits):
    """A fitted copy; the calibrator of the table stays unfitted."""
    return copy.copy(method).fit(scores, hits)


def agree(ours, theirs, where, atol=1e-9):
    np.testing.assert_allclose(ours.predict(where), theirs.predict(where), rtol=0, atol=atol)


def sklearn_isotonic(scores, hits):
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    return model.fit(np.asarray(scores, np.float64).ravel(), np.asarray(hits, np.float64).ravel())


def sample(n=400, k=3, seed=0, power=2.0):
    """Under-confident scores, falling along each row, and their hits."""
    rng = np.random.default_rng(seed)
    chance = np.sort(rng.random((n, k)), axis=1)[:, ::-1]
    return (chance**power).astype(np.float32), rng.random((n, k)) < chance


def sample_top(n=400, k=3, n_labels=40, seed=0, power=2.0):
    """Predictions and a truth that has just those hits."""
    scores, hits = sample(n, k, seed, power)
    ids = np.argsort(np.random.default_rng(seed + 1).random((n, n_labels)), axis=1)[:, :k].astype(np.int32)
    rows, places = np.nonzero(hits)
    Y = sparse.csr_matrix((np.ones(rows.size, np.float32), (rows, ids[rows, places])), shape=(n, n_labels))
    return Y, xc.TopK.from_ids(ids, scores, n_labels=n_labels)


# ---------------------------------------------------------------------------------------------- isotonic

# A few values, so that scores tie; and values that lie close together, so that knots do.
score_values = st.one_of(
    st.integers(-3, 4).map(float),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 3)),
    st.sampled_from([0.5, 0.5 + 1e-9, 0.5 + 2e-9, 1e-7, 2e-7]),
)
pairs = st.lists(st.tuples(score_values, st.booleans()), min_size=1, max_size=200)


@settings(max_examples=100, deadline=None)
@given(pairs)
def test_isotonic_is_scikit_learns(given_pairs):
    scores, hits = np.array([s for s, _ in given_pairs]), np.array([h for _, h in given_pairs])
    oracle = sklearn_isotonic(scores, hits)
    ours = Isotonic().fit(scores, hits)
    middle = (scores[:, None] * 0.3 + scores[None, :] * 0.7).ravel()[:500]
    agree(ours, oracle, np.concatenate([scores, middle, [-1e9, 1e9]]))


@settings(max_examples=200, deadline=None)
@given(pairs, st.integers(-1, 2))
def test_pooled_blocks_are_exact_and_cover_the_pairs(given_pairs, without):
    """Against pooling pair by pair in fractions, nothing shared: also the blocks' ends and counts."""
    given_pairs = sorted(given_pairs)
    scores = np.array([s for s, _ in given_pairs])
    folds = np.arange(scores.size) % 3
    codes = (2 * folds + np.array([h for _, h in given_pairs])).astype(np.int32)
    blocks: list[list] = []
    for score, hit in (
        (score, int(hit)) for (score, hit), fold in zip(given_pairs, folds, strict=True) if fold != without
    ):
        if blocks and blocks[-1][1] == score:
            # An equal score joins the observation, which may then no longer be lower than the block before.
            blocks[-1][2:] = blocks[-1][2] + hit, blocks[-1][3] + 1
        else:
            blocks.append([score, score, hit, 1])
    # Ties are whole now; pool until nothing violates.
    i = 0
    while i + 1 < len(blocks):
        left, right = blocks[i : i + 2]
        if Fraction(left[2], left[3]) >= Fraction(right[2], right[3]):
            blocks[i : i + 2] = [[left[0], right[1], left[2] + right[2], left[3] + right[3]]]
            i = 0
        else:
            i += 1
    first, last, hits, sizes = kernel.pool(
        *kernel.counts(scores, codes, without, *calibrate.Room().arrays(scores.size))
    )
    assert [list(block) for block in zip(first, last, hits, sizes, strict=True)] == blocks


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2**56), st.fractions(0, 1, max_denominator=9)), min_size=1, max_size=60))
def test_counts_beyond_what_int64_multiplies_pool_exactly(drawn):
    """Their cross products need 128 bits; means of one denominator come close to each other, and tie."""
    n = np.array([size for size, _ in drawn])
    hits = np.array([int(size * mean) for size, mean in drawn])
    blocks: list[list[int]] = []
    for hit, size in zip(hits.tolist(), n.tolist(), strict=True):
        blocks.append([hit, size])
        while len(blocks) > 1 and Fraction(*blocks[-2]) >= Fraction(*blocks[-1]):
            last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + last[0], blocks[-1][1] + last[1]]
    _, _, found, sizes = kernel.pool(np.arange(n.size, dtype=float), n, hits)
    assert [list(block) for block in zip(found.tolist(), sizes.tolist(), strict=True)] == blocks


@EACH
def test_the_order_of_pairs_changes_no_bit(method):
    scores, hits = (part.ravel() for part in sample(300, 3, seed=7))
    scores = np.where(scores < 0.01, np.float32(0), scores.round(2))
    order = np.random.default_rng(0).permutation(scores.size)
    signed = (
        np.where(np.arange(scores.size) % 2 == 0, scores, -scores) if isinstance(method, Isotonic | Platt) else scores
    )
    signed[scores == 0] = -0.0
    n, m = (
        {float(s): int((mask & (signed == s)).sum()) for s in signed} for mask in (np.ones(scores.size, bool), hits)
    )
    distinct = sorted(n)
    fits = [
        fit(method, signed, hits),
        fit(method, np.abs(signed[order]) * np.sign(signed[order]), hits[order]),  # no -0
        copy.copy(method).fit_counts(distinct, [n[s] for s in distinct], [m[s] for s in distinct]),
    ]
    learned = {b"".join(np.asarray(getattr(f, name)).tobytes() for name in f._learned) for f in fits}
    assert len(learned) == 1


def test_isotonic_in_the_large():
    """Enough pairs for many strides; one long tie across a stride's end."""
    scores, hits = sample(30_000, 3, seed=3)
    scores[5_000:7_000] = 0.25
    ours, oracle = Isotonic().fit(scores, hits), sklearn_isotonic(scores, hits)
    assert np.diff(ours.values_).min() >= 0
    assert 50 < ours.knots_.size < 2_000
    agree(ours, oracle, scores.ravel())


def test_rounding_lifts_no_score_above_the_next_knot():
    # 0 lies below the knot 1e-20, but its distance to -1 is the same float; and v + (w - v) is above w for some v < w.
    knots, found = np.array([-1.0, 1e-20]), 0
    for low in np.arange(1, 40) / 41:
        for high in np.arange(1, 40) / 43:
            if low < high < low + (high - low):
                found += 1
                out = np.empty(1)
                kernel.interpolate(knots, np.array([low, high]), np.zeros(1), 0, 1, out)
                assert out[0] == high
    assert found > 10


def test_scores_close_to_the_end_of_floats():
    for scores in ([5e-324, 1e-323, 2e-323], [-1e307, 0.0, 1e307]):
        fitted = Isotonic().fit(scores, [0, 1, 1])
        assert fitted.predict(scores).tolist() == [0, 1, 1]
        assert 0 <= fitted.predict([scores[0] + (scores[1] - scores[0]) / 2])[0] <= 1


# ---------------------------------------------------------------------------------------------- Platt


def platt_oracle(scores, hits, low, high, ridge=0.0):
    """The optimum by a general optimiser, refined; logit = -(a s + b)."""

    def loss(theta):
        logit = theta[0] * scores + theta[1]
        target = np.where(hits, high, low)
        return np.sum(np.logaddexp(0, logit) - target * logit) + ridge / 2 * theta[0] ** 2

    def slope(theta):
        residual = 1 / (1 + np.exp(-(theta[0] * scores + theta[1]))) - np.where(hits, high, low)
        return np.array([residual @ scores + ridge * theta[0], residual.sum()])

    start = optimize.minimize(loss, [0.0, 0.0], jac=slope, method="BFGS", options={"gtol": 1e-9}).x
    return optimize.root(slope, start, tol=1e-14).x


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_platt_reaches_the_optimum(seed, scale):
    scores, hits = (part.ravel() for part in sample(200, 2, seed))
    scores = scale * scores.astype(np.float64) - 3
    n_hits = hits.sum()
    cases = {
        Platt(): (1 / (2 + (~hits).sum()), (n_hits + 1) / (n_hits + 2), 0.0),
        Platt("plain"): (0.0, 1.0, 0.0),
        Platt("plain", C=0.1): (0.0, 1.0, 10.0),
    }
    for calibrator, (low, high, ridge) in cases.items():
        calibrator.fit(scores, hits)
        want = platt_oracle(scores, hits, low, high, ridge)
        np.testing.assert_allclose([-calibrator.a_, -calibrator.b_], want, rtol=1e-8, atol=1e-8)
        by_formula = [1 / (1 + math.exp(calibrator.a_ * s + calibrator.b_)) for s in scores[:20]]
        np.testing.assert_allclose(calibrator.predict(scores[:20]), by_formula, rtol=1e-14)
        assert calibrator.a_ < 0


def test_platt_where_nothing_can_be_learned():
    alike = Platt().fit([0.3] * 8, [1, 1, 0, 0, 0, 0, 0, 0])
    assert alike.a_ == 0
    # The mean of the targets: 2 x 3/4 and 6 x 1/8, over 8.
    assert alike.predict([0.9]) == pytest.approx((2 * 3 / 4 + 6 / 8) / 8, abs=1e-10)
    all_hits = Platt().fit([0.1, 0.5, 0.9], [1, 1, 1])
    assert abs(all_hits.a_) < 1e-9
    assert all_hits.predict([0.0, 1.0]) == pytest.approx(4 / 5, abs=1e-9)
    no_hits = Platt("plain").fit([0.1, 0.5, 0.9], [0, 0, 0])
    assert (no_hits.predict([0.0, 1.0]) < 1e-9).all()


def test_separable_pairs_have_a_finite_fit():
    scores, hits = [0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]
    plain = Platt("plain").fit(scores, hits)
    np.testing.assert_allclose(plain.predict(scores), hits, atol=1e-9)
    assert np.isfinite([plain.a_, plain.b_]).all()
    assert Platt().fit(scores, hits).predict([0.9])[0] == pytest.approx(0.75, abs=0.05)


# ---------------------------------------------------------------------------------------------- beta, histogram


def beta_loss(theta, scores, hits):
    s = np.clip(scores.astype(np.float64), 2.2e-16, 1 - 2.2e-16)
    logit = theta[0] * np.log(s) - theta[1] * np.log(1 - s) + theta[2]
    return np.sum(np.logaddexp(0, logit) - hits * logit)


@pytest.mark.parametrize(
    ("chance", "zero"),
    [
        (lambda s: np.sqrt(s), [False, False]),
        (lambda s: s**3, [False, False]),
        (lambda s: 1 - s, [True, True]),
        # Flat, then steep at one end: free, the other end's exponent would be below 0.
        (lambda s: 0.1 + 0.9 * s**8, [True, False]),
        (lambda s: 0.9 - 0.9 * (1 - s) ** 8, [False, True]),
    ],
)
def test_beta_reaches_the_constrained_optimum(chance, zero):
    rng = np.random.default_rng(11)
    scores = rng.random(800)
    hits = rng.random(800) < chance(scores)
    fitted = Beta().fit(scores, hits)
    got = np.array([fitted.a_, fitted.b_, fitted.c_])
    assert (got[:2] == 0).tolist() == zero
    assert (got[:2] >= 0).all()
    bounds = [(0, None), (0, None), (None, None)]
    tries = [optimize.minimize(beta_loss, start, args=(scores, hits), bounds=bounds, tol=1e-13)
             for start in ([1, 1, 0], [0, 0, 0], [0.1, 3, 0])]  # fmt: skip
    oracle = min(found.fun for found in tries)
    assert beta_loss(got, scores, hits) <= oracle * (1 + 1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_logistic_fits_end_at_the_optimum(seed):
    """The mean gradient is 0 to the rounding, also where scores of 0 and 1 stand far out."""
    scores, hits = (part.ravel() for part in sample(3_000, 5, seed))
    scores = scores.round(2).astype(np.float64)
    for method in (Platt("plain"), Beta(), Temperature()):
        fitted = fit(method, scores, hits)
        residual = fitted.predict(scores) - hits
        inside = np.clip(scores, 2.0**-52, 1 - 2.0**-52)
        parts = np.log(inside), -np.log1p(-inside)
        of = {Platt: [scores, np.ones(scores.size)], Beta: [*parts, np.ones(scores.size)], Temperature: [sum(parts)]}
        for column in of[type(method)]:
            assert abs(math.fsum(residual * column)) <= 1e-11 * np.abs(column).sum()


def test_temperature_at_its_ends():
    reversed_ = Temperature().fit(np.array([0.1, 0.2, 0.8, 0.9]), np.array([1, 1, 0, 0]))
    assert reversed_.slope_ == 0
    assert reversed_.predict(np.array([0.0, 0.3, 1.0])).tolist() == [0.5] * 3
    parted = Temperature().fit(np.array([0.1, 0.4, 0.6, 1.0]), np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(parted.predict(np.array([0.1, 0.4, 0.6, 1.0])), [0, 0, 1, 1], atol=1e-10)
    halves = Temperature().fit(np.full(4, 0.5), np.array([0, 1, 1, 1]))  # 1/2 stays 1/2, whatever the temperature
    assert halves.predict(np.full(2, 0.5)).tolist() == [0.5, 0.5]


def test_histogram_of_equal_width_by_hand():
    #                      [0, .25)   [.25, .5)  [.5, .75)  [.75, 1]
    scores = np.array([0.0, 0.1, 0.25, 0.49, 0.75, 0.9, 1.0])
    hits = np.array([0, 1, 1, 1, 0, 0, 1])
    fitted = HistogramBinning(4).fit(scores, hits)
    assert fitted.values_.tolist() == [0.5, 1.0, 0.625, 1 / 3]
    assert fitted.predict([0.2499, 0.25, 0.6, 1.0]).tolist() == [0.5, 1.0, 0.625, 1 / 3]


def test_histogram_of_equal_mass_never_parts_equal_scores():
    fitted = HistogramBinning(3, "mass").fit([1, 1, 1, 1, 2, 3], [0, 0, 0, 1, 1, 0])
    assert fitted.edges_.tolist() == [2]  # the first cut falls inside the ones
    assert fitted.predict([-5, 1, 2, 99]).tolist() == [0.25, 0.25, 0.5, 0.5]
    even = HistogramBinning(4, "mass").fit(np.arange(12), np.arange(12) % 2)
    assert even.edges_.tolist() == [3, 6, 9]
    assert HistogramBinning(5, "mass").fit([2.0, 2.0], [0, 1]).values_.tolist() == [0.5]


# ---------------------------------------------------------------------------------------------- cross-fitting


def cross_fit_by_the_definition(scores, hits, folds, make):
    """Fold by fold over rows, with nothing of the package but the fit."""
    result = np.full(scores.shape, ABSENT)
    for block in np.array_split(np.arange(len(scores)), folds):
        rest, there = np.delete(scores, block, axis=0), scores[block] != ABSENT
        fitted = make(rest[rest != ABSENT], np.delete(hits, block, axis=0)[rest != ABSENT])
        result[block[np.nonzero(there)[0]], np.nonzero(there)[1]] = fitted.predict(scores[block][there])
    return result


@pytest.mark.parametrize("folds", [2, 3, 10, 97])
@pytest.mark.parametrize("seed", [0, 1])
def test_cross_fitted_isotonic_is_a_fit_for_each_fold(folds, seed):
    scores, hits = sample(97 if folds == 97 else 203, 4, seed)
    scores = np.round(scores, 2 + seed)  # ties, within and across folds
    want = cross_fit_by_the_definition(scores.astype(np.float64), hits, folds, sklearn_isotonic)
    np.testing.assert_allclose(calibrate.cross_fit(scores, hits, folds=folds), want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", CALIBRATORS[1:], ids=repr)
def test_other_methods_are_fitted_for_each_fold(method):
    scores, hits = sample(120, 3, seed=2)
    want = cross_fit_by_the_definition(scores, hits, 7, lambda s, h: fit(method, s, h))
    np.testing.assert_array_equal(calibrate.cross_fit(scores, hits, method, folds=7), want)
    assert not hasattr(method, method._learned[0])  # the caller's object stays unfitted


def test_anything_that_fits_and_predicts_will_do():
    scores, hits = sample(150, 3, seed=7)
    theirs = calibrate.cross_fit(scores.astype(np.float64), hits, IsotonicRegression(out_of_bounds="clip"))
    np.testing.assert_allclose(theirs, calibrate.cross_fit(scores, hits, Isotonic()), rtol=0, atol=1e-9)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), min_size=1, max_size=14))
def test_venn_abers_is_isotonic_regression_with_one_more_pair(pairs):
    scores, hits = (np.array(each) for each in zip(*pairs, strict=True))
    fitted = VennAbers().fit(scores.astype(float), hits)
    for at in np.arange(-0.5, 8, 0.5):
        for outcome, found in zip((0, 1), fitted.interval(np.array([at])), strict=True):
            s, y = np.append(scores, at), np.append(hits, outcome)
            # The greatest over all starts below of the least mean over all ends above.
            means = [min(y[(s >= a) & (s <= b)].mean() for b in set(s[s >= at])) for a in set(s[s <= at])]
            assert found[0] == pytest.approx(max(means), abs=1e-12)


def test_venn_abers_of_many_scores_in_any_chunks(monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.random(3000)
    hits = rng.random(3000) < scores**2
    fitted = VennAbers().fit(scores, hits)
    n = np.ones(3000, np.int64)
    sorted_hits = hits[np.argsort(scores)].astype(np.int64)
    for outcome, whole in ((0, fitted.misses_), (1, fitted.hits_)):
        parts = np.empty(whole.size)
        for lo in range(0, whole.size, 700):
            venn_abers.with_one_more(n, sorted_hits, outcome, lo, min(lo + 700, whole.size), parts)
        assert parts.tobytes() == whole.tobytes()
    assert (fitted.misses_ <= fitted.hits_).all()
    assert (np.diff(fitted.predict(np.linspace(-0.1, 1.1, 500))) >= 0).all()


def test_smoothed_isotonic_regression_by_hand():
    """Blocks of isotonic regression, a hit and a miss more in each, pooled anew where they fall."""
    rng = np.random.default_rng(0)
    for size in (3, 10, 60):
        scores, hits = rng.permutation(size).astype(float), rng.random(size) < 0.4
        plain = Isotonic().fit(scores, hits).predict(np.arange(size))
        blocks = [
            [hits[np.isin(scores, np.flatnonzero(plain == v))].sum() + 1, (plain == v).sum() + 2]
            for v in np.unique(plain)
        ]
        values = [h / n for h, n in blocks]
        want = [max(min(sum(h for h, _ in blocks[a : b + 1]) / sum(n for _, n in blocks[a : b + 1])
                        for b in range(i, len(values))) for a in range(i + 1)) for i in range(len(values))]  # fmt: skip
        found = Isotonic(smooth=1).fit(scores, hits).predict(np.arange(size))
        np.testing.assert_allclose(found, np.array(want)[np.searchsorted(np.unique(plain), plain)], rtol=1e-12)
        assert found.min() > 0
        assert found.max() < 1


def test_names_stand_for_the_classes():
    scores, hits = sample(60, 2)
    for name, kind in calibrate.METHODS.items():
        np.testing.assert_array_equal(
            calibrate.cross_fit(scores, hits, name, 5), calibrate.cross_fit(scores, hits, kind(), 5)
        )


@pytest.mark.parametrize("method", [Isotonic(), Platt()], ids=repr)
def test_absent_places_are_left_out_and_stay(method):
    scores, hits = sample(80, 4, seed=9)
    scores[::3, 2:] = ABSENT
    scores[5] = ABSENT
    hits &= scores != ABSENT
    out = calibrate.cross_fit(scores, hits, method, folds=4)
    np.testing.assert_array_equal(out == ABSENT, scores == ABSENT)
    want = cross_fit_by_the_definition(scores, hits, 4, lambda s, h: fit(method, s, h))
    np.testing.assert_allclose(out, want, rtol=0, atol=1e-12)


@EACH
def test_absent_places_in_fit_and_predict(method):
    scores, hits = sample(50, 3, seed=10)
    fitted = fit(method, scores, hits)
    padded = np.column_stack([scores, np.full(50, ABSENT, np.float32)])
    again = fit(method, padded, np.column_stack([hits, np.zeros(50, bool)]))
    out = again.predict(padded)
    np.testing.assert_array_equal(out[:, :3], fitted.predict(scores))
    assert (out[:, 3] == ABSENT).all()
    assert ((out[:, :3] >= 0) & (out[:, :3] <= 1)).all()
    assert out.dtype == np.float64


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_separate_calibrates_each_place_by_itself(method):
    scores, hits = sample(90, 3, seed=13)
    together = calibrate.cross_fit(scores, hits, method, separate=True)
    for place in range(3):
        alone = calibrate.cross_fit(scores[:, place], hits[:, place], method)
        np.testing.assert_array_equal(together[:, place], alone)


def test_an_empty_fold_is_no_fault_but_nothing_to_learn_from_is():
    scores, hits = sample(20, 2, seed=14)
    scores[:5] = ABSENT  # the whole first of four folds
    hits[:5] = False
    assert np.isfinite(calibrate.cross_fit(scores, hits, folds=4)[5:]).all()
    scores[5:15] = ABSENT
    scores[:, 1] = ABSENT
    hits[:] = False
    with pytest.raises(ArgumentError, match="outside fold 3"):
        calibrate.cross_fit(scores, hits, folds=4)
    with pytest.raises(ArgumentError, match=r"place 0 .*fold 3"):
        calibrate.cross_fit(scores, hits, folds=4, separate=True)
    assert (calibrate.cross_fit(np.full((6, 2), ABSENT), np.zeros((6, 2), bool), folds=3) == ABSENT).all()


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_same_bits_with_any_number_of_threads(method, monkeypatch):
    scores, hits = sample(6_000, 5, seed=15)
    results = set()
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("XCREPRO_THREADS", threads)
        results.add(calibrate.cross_fit(scores, hits, method).tobytes())
    assert len(results) == 1


# ---------------------------------------------------------------------------------------------- on TopK


def test_joint_isotonic_leaves_the_ranking_as_it_was():
    Y, top = sample_top(500, 5, seed=20)
    out = calibrate.cross_fit_top(Y, top, "isotonic")
    np.testing.assert_array_equal(out.ids, top.ids)
    assert (out.scores[:, 1:] == out.scores[:, :-1]).any()  # there are new ties, and they kept their order
    for metric in (xc.metrics.precision, xc.metrics.ndcg):
        assert metric(Y, out).tolist() == metric(Y, top).tolist()
    np.testing.assert_array_equal(
        out.scores, calibrate.cross_fit(top.scores, as_truth(Y).hits(top.ids)).astype(np.float32)
    )


def test_separate_calibration_ranks_again():
    """At place 1 the scores are lies, at place 2 they are true: calibrated apart, the second overtakes."""
    rng = np.random.default_rng(22)
    scores = np.column_stack([0.9 + 0.05 * rng.random(200), 0.5 + 0.3 * rng.random(200)]).astype(np.float32)
    hits = np.column_stack([rng.random(200) < 0.1, rng.random(200) < 0.8])
    ids = np.tile(np.array([[3, 1]], np.int32), (200, 1))
    rows, places = np.nonzero(hits)
    Y = sparse.csr_matrix((np.ones(rows.size), (rows, ids[rows, places])), shape=(200, 4))
    top = xc.TopK.from_ids(ids, scores, n_labels=4)
    out = calibrate.cross_fit_top(Y, top, "platt", separate=True)
    assert (out.ids == [1, 3]).all()
    assert (np.diff(out.scores, axis=1) < 0).all()
    assert xc.metrics.precision(Y, out, (1,))[0] == pytest.approx(hits[:, 1].mean())
    assert xc.metrics.precision(Y, out, (2,)) == xc.metrics.precision(Y, top, (2,))
    # Equal calibrated scores keep the order they had.
    flat = calibrate.cross_fit_top(Y, top, HistogramBinning(1, "mass"), separate=False)
    assert (flat.ids == [3, 1]).all()


def test_links():
    scores = np.array([[2.0, 0.0], [1.0, ABSENT]])
    np.testing.assert_array_equal(calibrate.min_max(scores), [[1.0, 0.0], [0.5, ABSENT]])
    np.testing.assert_array_equal(calibrate.min_max(scores, 1, 5), [[0.25, 0.0], [0.0, ABSENT]])
    assert calibrate.min_max([4.0, 4.0]).tolist() == [0.0, 0.0]
    for loss, slope in (("logistic", 1), ("exponential", 2)):
        want = [[1 / (1 + math.exp(-slope * 2)), 0.5], [1 / (1 + math.exp(-slope)), ABSENT]]
        np.testing.assert_allclose(calibrate.margin(scores, loss), want, rtol=1e-14)
    np.testing.assert_array_equal(calibrate.margin(-scores[:, :1], "squared_hinge"), [[0.0], [0.0]])
    assert scores[0, 0] == 2.0


def test_the_margin_link_inverts_the_best_margin_of_its_loss():
    losses = {
        "logistic": lambda m: np.log1p(np.exp(-m)),
        "exponential": lambda m: np.exp(-m),
        "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
    }
    for name, loss in losses.items():
        for p in (0.1, 0.5, 0.8):
            best = optimize.minimize_scalar(
                lambda s, p=p, loss=loss: p * loss(s) + (1 - p) * loss(-s), bounds=(-8, 8), method="bounded"
            ).x
            assert calibrate.margin([best], name)[0] == pytest.approx(p, abs=1e-4)


def test_links_go_before_the_calibration():
    Y, probabilities = sample_top(200, 3, seed=24)
    top = xc.TopK.from_ids(probabilities.ids, 8 * probabilities.scores - 3, n_labels=40)
    squeezed = calibrate.cross_fit_top(Y, top, "beta", link="min_max")
    by_hand = calibrate.cross_fit(calibrate.min_max(top.scores), as_truth(Y).hits(top.ids), "beta")
    np.testing.assert_array_equal(squeezed.scores, by_hand.astype(np.float32))
    # A rising link changes nothing for isotonic but where between two knots a score lies; joint order stays.
    through = calibrate.cross_fit_top(Y, top, "isotonic", link=lambda s: calibrate.margin(s, "squared_hinge"))
    np.testing.assert_array_equal(through.ids, top.ids)
    for bad in ("sigmoid", 3):
        with refused("link", repr(bad)):
            calibrate.cross_fit_top(Y, top, link=bad)
    with pytest.raises(ArgumentError, match="shape"):
        calibrate.cross_fit_top(Y, top, link=lambda s: s[:, :1])


# ---------------------------------------------------------------------------------------------- files


@EACH
def test_files_bring_everything_back(method, tmp_path):
    scores, hits = sample(70, 3, seed=30)
    fitted = fit(method, scores, hits)
    path = tmp_path / "deep" / "calibrator.json"
    fitted.save(path)
    again = calibrate.load(path)
    assert type(again) is type(fitted)
    assert repr(again) == repr(fitted) == repr(method)
    assert again.predict(scores).tobytes() == fitted.predict(scores).tobytes()
    assert [p.name for p in path.parent.iterdir()] == ["calibrator.json"]


def test_bad_files_are_refused(tmp_path):
    path = tmp_path / "isotonic.json"
    Isotonic().fit(*sample(50)).save(path)
    good = json.loads(path.read_text())
    learned = good["learned"]
    knots, values = learned["knots_"], learned["values_"]
    platt = {"calibrator": "Platt", "parameters": {}, "learned": {"a_": 1.0, "b_": 0.0}}
    beta = {"calibrator": "Beta", "parameters": {}, "learned": {"a_": -1.0, "b_": 0.0, "c_": 0.0}}
    histogram = {"calibrator": "HistogramBinning", "parameters": {}}
    changes = [
        {"learned": learned | {"values_": values[:-1]}},
        {"learned": learned | {"values_": [v + 1 for v in values]}},
        {"learned": learned | {"knots_": knots[::-1]}},
        {"learned": {"knots_": [float("nan")], "values_": [0.5]}},
        platt | {"learned": {"a_": [1.0], "b_": 0.0}},
        platt | {"parameters": {"C": -1}},
        beta,
        histogram | {"learned": {"edges_": [0.5], "values_": [1.0, 2.0]}},
    ]
    del good["learned"]
    digit = path.read_text().replace(f"{values[-1]!r}", f"{values[-1] / 2!r}")
    assert digit != path.read_text()
    bad = ["not json", "[]", path.read_text()[:-30], json.dumps(good), digit]
    for change in changes:  # each with the digest that belongs to it, so that the rule itself is tried
        content = good | {"learned": learned} | change
        bad.append(json.dumps(content | {"sha256": seal(content)}))
    for text in bad:
        path.write_text(text)
        with pytest.raises(DataError, match=r"isotonic\.json"):
            calibrate.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError):
        calibrate.load(path)
    with pytest.raises(FileNotFoundError):
        calibrate.load(tmp_path / "none.json")


@EACH
def test_unfitted_calibrators_say_so(method, tmp_path):
    for call in (lambda: method.predict([0.5]), lambda: method.save(tmp_path / "x.json")):
        with pytest.raises(ArgumentError, match="fitted"):
            call()
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------- edges


@EACH
@pytest.mark.parametrize(
    ("scores", "hits"),
    [
        ([0.1, 0.4, 0.4, 0.8], [0, 0, 0, 0]),
        ([0.1, 0.4, 0.4, 0.8], [1, 1, 1, 1]),
        ([0.3], [0]),
        ([0.3], [1]),
        ([0.0, 0.0, 1.0, 1.0], [0, 1, 1, 1]),
        ([0.0, 0.0, 0.0, 0.0], [0, 1, 1, 1]),
    ],
)
def test_few_alike_or_extreme_pairs_give_probabilities(method, scores, hits):
    out = fit(method, scores, hits).predict([0.0, 0.3, 0.5, 1.0])
    assert ((out >= 0) & (out <= 1)).all()
    if len({*hits}) == 1:
        assert abs(out[1] - hits[0]) < 0.7


def test_the_callers_arrays_are_untouched():
    scores, hits = sample(60, 3, seed=40)
    scores[3, 2] = ABSENT
    hits[3, 2] = False
    copies = scores.copy(), hits.copy()
    for method in CALIBRATORS:
        calibrate.cross_fit(scores, hits, method, 3)
        fit(method, scores, hits).predict(scores)
    calibrate.min_max(scores)
    np.testing.assert_array_equal(scores, copies[0])
    np.testing.assert_array_equal(hits, copies[1])


def test_contiguous_folds_are_those_of_array_split():
    for n in range(2, 30):
        for folds in range(2, n + 1):
            parts = np.array_split(np.arange(n), folds)
            assert calibrate.fold_edges(n, folds).tolist() == [0, *(int(part[-1]) + 1 for part in parts)]


def test_hits_may_be_0_and_1_of_any_kind():
    scores, hits = sample(30, 2, seed=41)
    want = calibrate.cross_fit(scores, hits)
    for dtype in (np.int8, np.float32, np.uint64):
        np.testing.assert_array_equal(calibrate.cross_fit(scores, hits.astype(dtype)), want)


PAIRS = [
    ([0.1, np.nan], [0, 1], r"scores must be finite.*nan at \(1,\)"),
    ([1e308, 0.0], [0, 1], "scores must be finite"),
    ([0.1, 0.2], [0, 2], "hits must be bool, or 0 and 1"),
    ([0.1, 0.2], [0.5, 1], "0 and 1"),
    ([0.1, 0.2], [[0, 1]], "hits must have the shape"),
    ([0.1, ABSENT], [0, 1], r"a hit at \(1,\)"),
]
COUNTS = [
    ([], [], [], "rise strictly, one or more"),
    ([0.1, 0.1], [1, 1], [0, 0], "rise strictly"),
    ([ABSENT, 0.1], [1, 1], [0, 0], "rise strictly"),
    ([0.1, np.nan], [1, 1], [0, 0], "must be finite"),
    ([0.1, 0.2], [1], [0, 0], "n must be whole numbers in the shape"),
    ([0.1, 0.2], [1, 0], [0, 0], r"n must be 1 or more; got 0 at \(1,\)"),
    ([0.1, 0.2], [1, 1], [0.5, 0], "hits must be whole"),
    ([0.1, 0.2], [1, 1], [0, 2], r"hits must lie in \[0, n\]; got 2 at \(1,\)"),
]
S, H = sample(10, 3, seed=42)
S[0, 0] = 1.0
CALLS = [
    (lambda: calibrate.cross_fit(S, H, folds=11), "folds must not exceed the 10 rows"),
    (lambda: calibrate.cross_fit(S[:, :, None], H[:, :, None]), "1-D or 2-D"),
    (lambda: calibrate.cross_fit(S, H, "sigmoid"), "'isotonic', 'platt', 'beta', 'temperature', 'histogram'"),
    (lambda: calibrate.cross_fit(S, H, Isotonic), "object with fit and predict"),
    (lambda: calibrate.cross_fit(S - 1, H, "beta"), r"in \[0, 1\] for Beta"),
    (lambda: HistogramBinning().fit(S, H).predict(S * 2), r"in \[0, 1\] for HistogramBinning"),
    (lambda: Isotonic().fit([], []), "at least one score"),
    (lambda: calibrate.min_max(S, 2, 1), "low must be"),
    (lambda: calibrate.margin(S, "hinge"), "loss must be one of"),
    *((partial(Isotonic().fit, *pair), message) for *pair, message in PAIRS),
    *((partial(calibrate.cross_fit, *pair, folds=2), message) for *pair, message in PAIRS),
    *((partial(Isotonic().fit_counts, *counts), message) for *counts, message in COUNTS),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_what_cannot_be_calibrated_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


@EACH
def test_fit_top_is_the_fit_on_the_hits_of_a_topk(method):
    rng = np.random.default_rng(11)
    scores = rng.random((60, 8)).astype(np.float32)
    Y = (rng.random((60, 8)) < 0.3).astype(np.float32)
    top = xc.TopK.from_scores(np.where(rng.random((60, 8)) < 0.7, scores, -np.inf), 6)  # some places are absent
    fitted = calibrate.fit_top(Y, top, method)
    expected = fit(method, top.scores, as_truth(Y).hits(top.ids))
    assert np.array_equal(fitted.predict(scores), expected.predict(scores))
    assert fitted is not method
    with pytest.raises(ArgumentError):
        method.predict(scores)  # the caller's is as it was
    linked = calibrate.fit_top(Y, top, method, link=lambda values: values / 2)
    halved = fit(method, top.scores / 2, as_truth(Y).hits(top.ids))
    assert np.array_equal(linked.predict(scores / 2), halved.predict(scores / 2))
    with pytest.raises(ArgumentError, match="59 rows"):
        calibrate.fit_top(Y[:-1], top, method)
