"""Score pools: against counting in plain Python, over every cutting, order and tree; the grid's bounds against exact pools."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from xcrepro.core import calibrate
from xcrepro.core.calibrate import HistogramBinning
from xcrepro.core.errors import ArgumentError
from xcrepro.core.folds.block import Block
from xcrepro.core.folds.scores import ScoreCounts, ScorePool, check_scores, gap_error
from xcrepro.core.kernels import isotonic as isotonic_kernel
from xcrepro.core.kernels import pool as kernel
from xcrepro.core.metrics import calibration as cal
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth

METHODS = ["isotonic", "platt", "beta", "histogram", HistogramBinning(4, "mass")]

# ---------------------------------------------------------------------------------------------- scores

# 0, 1, their neighbours, subnormal and tiny numbers, the edges of cells and of the fine part near 1, and anywhere
EDGES = [0.0, 1.0, 0.5, 2.0**-149, 2.0**-126, 2.0**-24, 2.0**-25, 1 - 2.0**-24, 1 - 2.0**-11, 2.0**-11, 0.25, 0.75]
NEAR = [float(np.nextafter(np.float32(e), np.float32(to))) for e in EDGES for to in (0, 1)]
SCORES = st.one_of(st.sampled_from(EDGES + NEAR), st.floats(0, 1, width=32), st.integers(0, 9).map(lambda i: i / 10))


def in_one_cell(m, seed):
    """Scores that differ and share the grid's cell of 0.3."""
    step = 2.0**-25
    return (np.float32(0.3) + step * np.random.default_rng(seed).integers(0, 90, m)).astype(np.float32)


@st.composite
def cases(draw, smallest=1, largest=60):
    """(scores, hits): anything; crowded cells, as the bounds need them; one score; one cell."""
    kind = draw(st.sampled_from(["any", "crowded", "one score", "one cell"]))
    m, seed = draw(st.integers(smallest, largest)), draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    if kind == "any":
        scores = np.array(draw(st.lists(SCORES, min_size=m, max_size=m)), np.float32)
    elif kind == "crowded":
        centres = np.array(draw(st.lists(SCORES, min_size=1, max_size=3)), np.float32)
        scores = centres[rng.integers(0, centres.size, m)]
        scores = np.clip(scores * (1 + rng.integers(-40, 40, m) * 2.0**-20), 0, 1).astype(np.float32)
    elif kind == "one score":
        scores = np.full(m, draw(SCORES), np.float32)
    else:
        scores = in_one_cell(m, seed)
    # Also hits that fall within a cell, against which isotonic regression loses most
    hits = (
        rng.random(m) < draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
        if draw(st.booleans())
        else scores > np.median(scores)
    )
    return scores, hits


def counted(scores, hits, weights=None):
    """{score: (pairs, hits)}, one pair after the other."""
    found: dict[float, tuple[int, int]] = {}
    for p, y, w in zip(
        scores.tolist(), hits.tolist(), np.ones(len(scores), int) if weights is None else weights, strict=True
    ):
        if w:
            n, h = found.get(p, (0, 0))
            found[p] = n + int(w), h + int(w) * y
    return dict(sorted(found.items()))


def cell_of(p):
    """The cell of a score by the definition, in fractions: side, binade and the place in it."""
    p = Fraction(p)
    side, m = ("low", p) if p < Fraction(1, 2) else ("high", 1 - p)
    if m < Fraction(1, 2**24):
        return side, None, 0
    exponent = next(e for e in range(0, 25) if m * 2**e >= 1)
    return side, exponent, int((m * 2**exponent - 1) * 2**13)


def contents(fold):
    return {name: (array.dtype, array.tobytes()) for name, array in fold.arrays().items()}


def filled(scores, hits, exact):
    return ScorePool(exact).add(scores, hits)


# ---------------------------------------------------------------------------------------------- counts


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from([np.float32, np.float64]), st.data())
def test_an_exact_pool_counts(case, dtype, data):
    scores, hits = case[0].astype(dtype), case[1]
    weights = data.draw(st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=scores.size, max_size=scores.size)))
    runs = ScorePool(exact=True).add(scores, hits, weights).runs()
    want = counted(scores, hits, weights)
    assert dict(zip(runs.scores.tolist(), zip(runs.n.tolist(), runs.hits.tolist(), strict=True), strict=True)) == want
    assert (np.diff(runs.scores) > 0).all()


@settings(max_examples=100, deadline=None)
@given(cases(), st.data())
def test_a_grid_counts_by_cell(case, data):
    scores, hits = case
    weights = data.draw(st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=scores.size, max_size=scores.size)))
    pool = ScorePool().add(scores, hits, weights)
    want: dict = {}
    for p, (n, h) in counted(scores, hits, weights).items():
        low, high, m, y = want.get(cell_of(p), (p, p, 0, 0))
        want[cell_of(p)] = min(low, p), max(high, p), m + n, y + h
    arrays = pool.arrays()
    got = zip(*(arrays[name].tolist() for name in ("low", "high", "n", "hits")), strict=True)
    assert list(got) == list(want.values())
    runs = pool.runs()
    assert runs.scores.tolist() == [(low + high) / 2 for low, high, _, _ in want.values()]
    assert pool.n_pairs == runs.n.sum()


def test_cells_rise_and_are_narrow():
    rng = np.random.default_rng(0)
    ends = 2.0 ** -rng.uniform(0, 30, 50_000)
    scores = np.unique(np.concatenate([EDGES, NEAR, ends, 1 - ends, rng.random(100_000)]).astype(np.float32))
    cells = np.empty(scores.size, np.int64)
    kernel.cells(scores.view(np.uint32), cells)
    assert (np.diff(cells) >= 0).all()
    assert cells[0] == 0
    assert cells[-1] == kernel.CELLS - 1 == 376_834
    first = np.flatnonzero(np.append(True, np.diff(cells) > 0))
    low, high = scores[first].astype(float), scores[np.append(first[1:], scores.size) - 1].astype(float)
    near = np.minimum(low, 1 - high)
    assert (high - low <= np.maximum(2.0**-13 * near, 2.0**-24)).all()
    assert ((high - low) / 2 <= 2.0**-16).all()
    assert (high == low)[low >= 1 - 2.0**-11].all()


@settings(max_examples=60, deadline=None)
@given(cases(), st.booleans(), st.data())
def test_any_cutting_order_and_tree_gives_the_same_bytes(case, exact, data):
    scores, hits = case
    whole = contents(filled(scores, hits, exact))
    order = np.array(data.draw(st.permutations(range(scores.size))))
    cuts = sorted(data.draw(st.lists(st.integers(0, scores.size), max_size=6)))
    pools = [filled(scores[part], hits[part], exact) for part in np.split(order, cuts)]
    while len(pools) > 1:
        a = pools.pop(data.draw(st.integers(0, len(pools) - 1)))
        b = data.draw(st.integers(0, len(pools) - 1))
        before = contents(a)
        pools[b].merge(a)
        assert contents(a) == before
    assert contents(pools[0]) == whole
    one_by_one = ScorePool(exact)
    for i in order:
        one_by_one.add(scores[i : i + 1], hits[i : i + 1])
        if i % 7 == 0:
            one_by_one.arrays()
    assert contents(one_by_one) == whole


@pytest.mark.parametrize("exact", [False, True])
def test_many_pairs_in_many_blocks(exact, monkeypatch):
    """Enough for the waiting pairs to be counted and for runs to be carried."""
    rng = np.random.default_rng(1)
    scores = (rng.random(300_000) ** 3).astype(np.float32)
    hits = rng.random(scores.size) < scores
    whole = contents(filled(scores, hits, exact))
    monkeypatch.setattr("xcrepro.core.folds.scores._WAITING", 1_000)
    parts = ScorePool(exact)
    for lo in range(0, scores.size, 333):
        parts.add(scores[lo : lo + 333], hits[lo : lo + 333])
        assert len(parts._stack) < 20
    assert contents(parts) == whole
    # A pool merged into itself counts everything twice.
    twice = parts.copy().merge(parts)
    assert twice.n_pairs == 600_000
    assert contents(twice) == contents(ScorePool(exact).add(scores, hits, np.full(scores.size, 2)))
    assert contents(parts) == whole
    runs = ScorePool(True).add(scores, hits).runs()
    by_counts = ScorePool(exact).add_counts(runs.scores.astype(np.float32)[::-1], runs.n[::-1], runs.hits[::-1])
    assert contents(by_counts) == whole


def test_negative_zero_is_zero():
    for exact, dtype in ((False, np.float32), (True, np.float32), (True, np.float64)):
        plus, minus = (filled(np.array([zero, 1], dtype), np.array([True, False]), exact) for zero in (0.0, -0.0))
        assert contents(plus) == contents(minus)


# ---------------------------------------------------------------------------------------------- metrics


def close(got, want, tolerance=1e-13):
    assert got == pytest.approx(want, rel=tolerance, abs=tolerance)


@settings(max_examples=40, deadline=None)
@given(cases(), st.sampled_from([1, 2, 3, 10, 50]))
def test_an_exact_pool_has_no_bounds(case, bins):
    pool = filled(*case, True)
    assert pool.ace_bound(bins) == pool.smooth_ece_bound() == pool.isotonic_bound() == 0


def test_metrics_of_many_pairs():
    rng = np.random.default_rng(2)
    scores = (rng.random(100_000) ** 2).astype(np.float32)
    hits = rng.random(scores.size) < np.sqrt(scores)
    exact, grid = (filled(scores, hits, which) for which in (True, False))
    # The grid's error, and that the bounds are worth something
    for error, bound, most in (
        (abs(grid.ace(15) - exact.ace(15)), grid.ace_bound(15), 1e-4),
        (abs(grid.smooth_ece() - exact.smooth_ece()), grid.smooth_ece_bound(), 2e-4),
        (brier_of(grid) - brier_of(exact), grid.isotonic_bound(), 1e-4),
    ):
        assert 0 <= error <= bound + 1e-9
        assert 0 < bound < most


# ---------------------------------------------------------------------------------------------- bounds


def brier_of(pool):
    """Training Brier score of isotonic regression on a pool, of the pairs themselves: every pair gets its entry's value."""
    runs = pool.runs()
    _, last, hits, sizes = isotonic_kernel.pool(*runs)
    value = (hits / sizes)[np.searchsorted(last, runs.scores)]
    return math.fsum(runs.hits * (1 - value) ** 2 + (runs.n - runs.hits) * value**2) / pool.n_pairs


@settings(max_examples=150, deadline=None)
@given(cases(), st.sampled_from([1, 2, 3, 7, 20]))
def test_ace_stays_within_its_bound(case, bins):
    exact, grid = (filled(*case, which) for which in (True, False))
    one_each = (grid.arrays()["low"] == grid.arrays()["high"]).all()
    for norm in ("l1", "l2", "max"):
        bound = grid.ace_bound(bins, norm)
        assert (bound == 0) == one_each
        for half in (None, "over", "under"):
            # The root of an l2 error of 0 is only as near to 0 as the root of the rounding.
            slack = 1e-14 if norm != "l2" else 1e-8
            assert abs(grid.ace(bins, norm, half) - exact.ace(bins, norm, half)) <= bound + slack


@settings(max_examples=20, deadline=None)
@given(cases(), st.sampled_from([0.0005, 0.01, 0.3]))
def test_smooth_ece_stays_within_its_bound(case, bandwidth):
    exact, grid = (filled(*case, which) for which in (True, False))
    assert abs(grid.smooth_ece(bandwidth) - exact.smooth_ece(bandwidth)) <= grid.smooth_ece_bound(bandwidth) + 1e-9
    assert abs(grid.smooth_ece() - exact.smooth_ece()) <= grid.smooth_ece_bound() + 1e-6


@settings(max_examples=150, deadline=None)
@given(cases())
def test_isotonic_stays_within_its_bound(case):
    exact, grid = (filled(*case, which) for which in (True, False))
    cost, bound = brier_of(grid) - brier_of(exact), grid.isotonic_bound()
    assert -1e-14 <= cost <= bound + 1e-14
    several = grid.arrays()["high"] > grid.arrays()["low"]
    assert bound <= grid.runs().n[several].max(initial=0) / 2 / grid.n_pairs + 1e-15


def test_the_bounds_can_be_reached_nearly():
    """One cell, its misses below its hits: the fit on the scores is perfect, the fit on the cell a coin. The cost is 1/4, the
    bound 1/2. And a cut through it: all hits lie above the cut, the grid has half of them below."""
    scores = in_one_cell(1_000, 3)
    hits = scores > np.median(scores)
    exact, grid = (filled(scores, hits, which) for which in (True, False))
    assert grid.runs().n.tolist() == [1_000]
    assert brier_of(exact) == 0
    assert brier_of(grid) == pytest.approx(0.25, abs=1e-3)
    assert grid.isotonic_bound() == pytest.approx(0.5, abs=1e-3)
    moved = abs(exact.ace(2) - grid.ace(2))
    assert grid.ace_bound(2) == pytest.approx(0.5, abs=0.02)
    assert moved > 0.2


@pytest.mark.parametrize("bandwidth", [2e-5, 5e-5, 2e-4])
def test_the_bound_of_smooth_ece_is_worth_something(bandwidth):
    """All hits at the cell's lowest score, all misses at its highest: in the middle of the cell they cancel."""
    scores = np.repeat(np.float32([0.40000001, 0.40002]), 50)
    hits = np.arange(100) < 50
    exact, grid = (filled(scores, hits, which) for which in (True, False))
    assert grid.runs().n.tolist() == [100]
    moved = exact.smooth_ece(bandwidth) - grid.smooth_ece(bandwidth)
    assert moved <= grid.smooth_ece_bound(bandwidth)
    assert bandwidth > 2e-5 or moved > grid.smooth_ece_bound(bandwidth) / 5


# ---------------------------------------------------------------------------------------------- calibrators from counts


@settings(max_examples=60, deadline=None)
@given(cases(smallest=2), st.booleans(), st.randoms(use_true_random=False))
def test_isotonic_merges_over_adjacent_score_ranges(case, exact, random):
    """Pool-adjacent-violators over the pools of two adjacent ranges is that over all, to the last bit: pooled twice, because a
    pooled block is but one observation."""
    pool = filled(*case, exact)
    scores, n, hits = pool.runs()
    cut = random.randint(0, scores.size)
    parts = [isotonic_kernel.pool(scores[s], n[s], hits[s]) for s in (slice(cut), slice(cut, None)) if n[s].size]
    first, last, block_hits, sizes = (np.concatenate(each) for each in zip(*parts, strict=True))
    again = isotonic_kernel.pool(np.arange(sizes.size, dtype=float), sizes, block_hits)
    merged = first[again[0].astype(int)], last[again[1].astype(int)], *again[2:]
    for got, want in zip(merged, isotonic_kernel.pool(scores, n, hits), strict=True):
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_calibrators_learn_from_a_pool_what_they_learn_from_pairs(method):
    rng = np.random.default_rng(4)
    scores = (rng.random(5_000) ** 2).astype(np.float32).round(3)
    hits = rng.random(scores.size) < np.sqrt(scores)
    order = rng.permutation(scores.size)
    by_pairs, by_counts = (copy.deepcopy(calibrate.method_of(method)) for _ in range(2))
    by_pairs.fit(scores[order], hits[order])
    by_counts.fit_counts(*filled(scores, hits, True).runs())
    for name in by_pairs._learned:
        assert np.asarray(getattr(by_pairs, name)).tobytes() == np.asarray(getattr(by_counts, name)).tobytes()


# ---------------------------------------------------------------------------------------------- the fold


def sample(n=120, k=5, seed=0, decimals=2, absent=0.0, n_labels=30):
    """Truth and predictions whose scores tie, a few places absent."""
    rng = np.random.default_rng(seed)
    chance = np.sort(rng.random((n, k)), axis=1)[:, ::-1]
    scores = np.round(chance**2, decimals).astype(np.float32)
    ids = np.argsort(rng.random((n, n_labels)), axis=1)[:, :k].astype(np.int32)
    rows, places = np.nonzero(rng.random((n, k)) < chance)
    Y = sp.csr_matrix((np.ones(rows.size), (rows, ids[rows, places])), shape=(n, n_labels))
    gone = np.cumsum(rng.random((n, k)) < absent, axis=1) > 0
    scores[gone], ids[gone] = -np.inf, -1
    return Y, TopK(ids, scores, n_labels)


def blocks(Y, top, cuts, k, order=None):
    edges = [0, *cuts, len(top)]
    made = [Block(Y[lo:hi], top.rows(slice(lo, hi)), k, lo) for lo, hi in itertools.pairwise(edges)]
    return made if order is None else [made[i] for i in order]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1_000), st.booleans(), st.booleans(), st.data())
def test_the_fold_is_the_same_for_any_cutting_order_and_tree(seed, exact, folded, data):
    n = 23
    Y, top = sample(n, 4, seed, absent=0.1)
    options = {"exact": exact, "n_rows": n if folded else None, "folds": 4}
    ks = np.array([1, 2, 4])
    whole = ScoreCounts(ks, **options)
    whole.add(Block(Y, top, 4, 0))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5)))
    parts = []
    for block in data.draw(st.permutations(blocks(Y, top, cuts, 4))):
        part = ScoreCounts(ks, **options)
        part.add(block)
        parts.append(part)
    while len(parts) > 1:
        a = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        parts[data.draw(st.integers(0, len(parts) - 1))].merge(a)
    assert contents(parts[0]) == contents(whole)
    again = ScoreCounts(ks, **options)
    again.restore(whole.arrays())
    assert contents(again) == contents(whole)
    # Against the pairs, counted one by one
    found = as_truth(Y).hits(top.ids)
    for k in ks:
        present = top.ids[:, :k] >= 0
        pool = ScorePool(exact).add(top.scores[:, :k][present], found[:, :k][present])
        assert contents(again.pool(k)) == contents(pool)


METRICS = [cal.ece, cal.ace, cal.brier, cal.nll]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("folds", [2, 7, 10])
def test_cross_fitting_from_counts_is_cross_fitting(method, folds):
    """Exact: the same calibrated values, and so the same metrics, as cross_fit over all rows at once."""
    Y, top = sample(203, 5, folds, absent=0.05)
    counts = ScoreCounts([1, 3, 5], exact=True, n_rows=203, folds=folds)
    for block in blocks(Y, top, [1, 50, 51, 140], 5, [3, 0, 4, 2, 1]):
        counts.add(block)
    found = as_truth(Y).hits(top.ids)
    for k in (1, 3, 5):
        scores, hits = top.scores[:, :k], found[:, :k]
        want, present = calibrate.cross_fit(scores, hits, method, folds), scores > -np.inf
        got = counts.cross_fit(k, method)
        assert contents(got.pool) == contents(ScorePool(exact=True).add(want[present], hits[present]))
        runs = got.pool.runs()
        pairs = np.repeat(runs.scores, runs.n)
        outcomes = np.concatenate([np.arange(n) < h for n, h in zip(runs.n, runs.hits, strict=True)])
        for metric in METRICS:
            close(metric(pairs, outcomes), metric(want[present], hits[present]), 1e-12)
        close(got.pool.ace(), cal.ace(want[present], hits[present]), 1e-12)
        # A second pass, from any row on
        for lo, hi in ((0, 203), (13, 99), (202, 203), (50, 50)):
            assert got.predict(scores[lo:hi], lo).tobytes() == want[lo:hi].tobytes()


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_cross_fitting_from_a_grid_is_near(method, monkeypatch):
    Y, top = sample(4_000, 5, 3, decimals=7)
    found = as_truth(Y).hits(top.ids)
    want = calibrate.cross_fit(top.scores, found, method)
    results = set()
    for threads, cuts in (("1", [999]), ("2", [4, 2_000])):
        monkeypatch.setenv("XCREPRO_THREADS", threads)
        counts = ScoreCounts([5], n_rows=4_000)
        for block in blocks(Y, top, cuts, 5):
            counts.add(block)
        got = counts.cross_fit(5, method)
        results.add(str(contents(got.pool)))
        runs = got.pool.runs()
        assert float((runs.scores * runs.n).sum()) / 20_000 == pytest.approx(want.mean(), abs=1e-5)
        assert got.pool.ace() == pytest.approx(cal.ace(want, found), abs=1e-3)
    assert len(results) == 1


def test_a_row_does_not_see_its_own_outcome():
    Y, top = sample(60, 3, 5)
    results = []
    for first in (0, 1):
        Y = Y.tolil()
        Y[:6] = first
        counts = ScoreCounts([3], n_rows=60)
        counts.add(Block(Y.tocsr(), top, 3, 0))
        results.append(counts.cross_fit(3).predict(top.scores, 0))
    np.testing.assert_array_equal(results[0][:6], results[1][:6])
    assert not np.array_equal(results[0][6:], results[1][6:])


def test_folds_that_have_no_rows_yet():
    Y, top = sample(20, 2, 6)
    counts = ScoreCounts([2], n_rows=40, folds=4)
    counts.add(Block(Y[:10], top.rows(slice(0, 10)), 2, 0))
    with pytest.raises(ArgumentError, match="outside fold 0"):
        counts.cross_fit(2)
    counts.add(Block(Y[10:], top.rows(slice(10, 20)), 2, 10))
    got = counts.cross_fit(2)
    assert got.pool.n_pairs == 40
    assert all(each is not None for each in got.calibrators)
    with pytest.raises(ArgumentError, match="one pair"):
        ScoreCounts([2], n_rows=40).cross_fit(2)


# ---------------------------------------------------------------------------------------------- wrong input

ONE = ScorePool().add([0.5], [True])
Y0, TOP0 = sample(6, 2, 7)


def counts_of(**options):
    counts = ScoreCounts([1, 2], **options)
    counts.add(Block(Y0, TOP0, 2, 0))
    return counts


class PairsOnly:
    def fit(self, scores, hits):
        return self

    def predict(self, scores):
        return scores


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ScorePool().add([1.5], [True]), r"must lie in \[0, 1\]; got 1.5 at pair 0: map scores"),
        (lambda: ScorePool().add([0.5, np.nan], [True, True]), "got nan at pair 1"),
        (lambda: ScorePool(True).add([0.5, -np.inf], [True, True]), "absent places are left out"),
        (lambda: ScorePool().add(np.array([0.5]), [True]), "must be float32 in a grid"),
        (lambda: ScorePool().add(np.array([1]), [True]), "float32 or float64"),
        (lambda: ScorePool(True).add([0.5], [True]).add(np.float32([0.5]), [True]), "must stay float64"),
        (lambda: ScorePool(True).add([0.5], [True]).merge(ScorePool(True).add(np.float32([1]), [1])), "stay float64"),
        (lambda: ScorePool().add([0.5], [True, False]), "as many as the scores"),
        (lambda: ScorePool().add([0.5], [True], [-1]), "weights must be whole"),
        (lambda: ScorePool().add([0.5], [True], [0.5]), "weights must be whole"),
        (lambda: ScorePool().add_counts([0.5], [1], [2]), r"in \[0, n\]"),
        (lambda: ScorePool().merge(ScorePool(True)), "exact=False"),
        (lambda: ScorePool().ace(), "at least one pair"),
        (lambda: ScorePool().smooth_ece(), "at least one pair"),
        (lambda: ScorePool().isotonic_bound(), "at least one pair"),
        (lambda: ONE.ace(0), "bins"),
        (lambda: ONE.ace(10, "l3"), "norm"),
        (lambda: ONE.ace(10, "l1", "both"), "half"),
        (lambda: ONE.smooth_ece(0), "bandwidth"),
        (lambda: check_scores(np.array([[0.1, -0.5]]), first_row=7), "-0.5 at row 7, place 1"),
        (lambda: counts_of().pool(3), r"k must be one of \[1, 2\]; got 3"),
        (lambda: counts_of().cross_fit(1), "n_rows must be given up front"),
        (lambda: counts_of(n_rows=6, folds=2).cross_fit(1, "temperature"), "'isotonic'"),
        (lambda: counts_of(n_rows=6, folds=2).cross_fit(1, PairsOnly()), "must have fit_counts"),
        (lambda: counts_of(n_rows=6, folds=2).cross_fit(1).predict(TOP0.scores, 1), "6 rows among the 6"),
        (lambda: counts_of(n_rows=5, folds=2), "6 rows among the 5"),
        (lambda: counts_of(n_rows=6, folds=7), "folds must not exceed"),
        (lambda: ScoreCounts([1], n_rows=6, folds=2).add(Block(Y0, TOP0, 1)), "first_row must be given"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_refused_block_leaves_nothing():
    counts = ScoreCounts([2], n_rows=12, folds=2)
    wrong = TopK(TOP0.ids, TOP0.scores + np.float32(1), TOP0.n_labels)
    for block in (Block(Y0, wrong, 2, 0), Block(Y0, TOP0, 2, 7)):
        with pytest.raises(ArgumentError):
            counts.add(block)
    assert counts.pool(2).n_pairs == 0


def test_an_absent_place_may_hold_any_score():
    scores = TOP0.scores.copy()
    scores[:, 1] = np.nan
    ids = TOP0.ids.copy()
    ids[:, 1] = -1
    counts = ScoreCounts([1, 2])
    counts.add(Block(Y0, TopK(ids, scores, TOP0.n_labels), 2))
    assert contents(counts.pool(1)) == contents(counts.pool(2))


@pytest.mark.parametrize("exact", [False, True])
def test_arrays_that_cannot_be_are_refused(exact):
    pool = ScorePool(exact).add(np.array([0.1, 0.3, 0.3, 0.9], np.float32), np.array([1, 0, 1, 1], bool))
    good = pool.arrays()
    assert contents(ScorePool(exact).restore(good)) == contents(pool)
    empty = ScorePool(exact).arrays()
    assert contents(ScorePool(exact).restore(empty)) == contents(ScorePool(exact))
    name = "scores" if exact else "low"
    n, hits = good["n"], good["hits"]
    wrong = [
        {"n": n.astype(np.int32)},
        {"n": n[:-1]},
        {"n": n * 0},
        {"hits": n + 1},
        {"hits": hits - 5},
        {name: good[name][::-1].copy()},
        {name: good[name] * np.float32(2)},
        {name: -good[name]},
        {name: np.float32([np.nan, 0.3, 0.9])},
        {name: good[name].astype(np.float16)},
        {name: np.float32([0.3, 0.3, 0.9])},
    ]
    if not exact:
        wrong += [{"high": good["high"][::-1].copy()}, {"high": np.float32([0.10001, 0.30000004, 0.9])}]
        wrong += [{"low": np.float32([0.1, 0.2, 0.9])}, {"low": good["low"].astype(float)}]
    for change in wrong:
        with pytest.raises(ValueError, match=r"scores|counts|dtype|cell"):
            ScorePool(exact).restore(good | change)
    for other in ({}, {name: good[name]}, good | {"more": n}):
        with pytest.raises(ValueError, match="pool holds"):
            ScorePool(exact).restore(other)
    fold = counts_of(exact=exact)
    for change in ({"sizes": None}, {"sizes": np.array([[1, 1]])}, {"sizes": np.array([[-1, 1]])}, {"n": n}):
        arrays = fold.arrays() | change
        with pytest.raises(ValueError, match="sizes"):
            ScoreCounts([1, 2], exact).restore({name: array for name, array in arrays.items() if array is not None})


def test_gap_error_by_hand():
    n, hits, score = np.array([4.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0]), np.array([2.0, 0.0, 0.5])
    # Gaps 0.25 and -0.5, weights 0.8 and 0.2
    assert gap_error(n, hits, score) == pytest.approx(0.3)
    assert gap_error(n, hits, score, "l2") == pytest.approx(math.sqrt(0.8 * 0.0625 + 0.2 * 0.25))
    assert gap_error(n, hits, score, "max") == 0.5
    assert gap_error(n, hits, score, "max", "over") == 0.25
