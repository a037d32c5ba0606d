"""Score pools: against counting in plain Python, over every cutting, order and tree."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from xcrepro.core.accumulators.block import Block
from xcrepro.core.accumulators.scores import ScoreCounts, ScorePool, check_scores
from xcrepro.core.errors import ArgumentError
from xcrepro.core.predictions import TopK

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


def contents(fold):
    return {name: (array.dtype, array.tobytes()) for name, array in fold.arrays().items()}


def filled(scores, hits):
    return ScorePool().add(scores, hits)


# ---------------------------------------------------------------------------------------------- counts


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from([np.float32, np.float64]), st.data())
def test_a_pool_counts(case, dtype, data):
    scores, hits = case[0].astype(dtype), case[1]
    weights = data.draw(st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=scores.size, max_size=scores.size)))
    runs = ScorePool().add(scores, hits, weights).runs()
    want = counted(scores, hits, weights)
    assert dict(zip(runs.scores.tolist(), zip(runs.n.tolist(), runs.hits.tolist(), strict=True), strict=True)) == want
    assert (np.diff(runs.scores) > 0).all()


@settings(max_examples=60, deadline=None)
@given(cases(), st.data())
def test_any_cutting_order_and_tree_gives_the_same_bytes(case, data):
    scores, hits = case
    whole = contents(filled(scores, hits))
    order = np.array(data.draw(st.permutations(range(scores.size))))
    cuts = sorted(data.draw(st.lists(st.integers(0, scores.size), max_size=6)))
    pools = [filled(scores[part], hits[part]) for part in np.split(order, cuts)]
    while len(pools) > 1:
        a = pools.pop(data.draw(st.integers(0, len(pools) - 1)))
        b = data.draw(st.integers(0, len(pools) - 1))
        before = contents(a)
        pools[b].merge(a)
        assert contents(a) == before
    assert contents(pools[0]) == whole
    one_by_one = ScorePool()
    for i in order:
        one_by_one.add(scores[i : i + 1], hits[i : i + 1])
        if i % 7 == 0:
            one_by_one.arrays()
    assert contents(one_by_one) == whole


def test_many_pairs_in_many_blocks(monkeypatch):
    """Enough for the waiting pairs to be counted and for runs to be carried."""
    rng = np.random.default_rng(1)
    scores = (rng.random(300_000) ** 3).astype(np.float32)
    hits = rng.random(scores.size) < scores
    whole = contents(filled(scores, hits))
    monkeypatch.setattr("xcrepro.core.accumulators.scores._WAITING", 1_000)
    parts = ScorePool()
    for lo in range(0, scores.size, 333):
        parts.add(scores[lo : lo + 333], hits[lo : lo + 333])
        assert len(parts._stack) < 20
    assert contents(parts) == whole
    # A pool merged into itself counts everything twice.
    twice = parts.copy().merge(parts)
    assert twice.runs().n.sum() == 600_000
    assert contents(twice) == contents(ScorePool().add(scores, hits, np.full(scores.size, 2)))
    assert contents(parts) == whole
    runs = ScorePool().add(scores, hits).runs()
    by_counts = ScorePool().add_counts(runs.scores.astype(np.float32)[::-1], runs.n[::-1], runs.hits[::-1])
    assert contents(by_counts) == whole


def test_negative_zero_is_zero():
    for dtype in (np.float32, np.float64):
        plus, minus = (filled(np.array([zero, 1], dtype), np.array([True, False])) for zero in (0.0, -0.0))
        assert contents(plus) == contents(minus)


# ---------------------------------------------------------------------------------------------- calibrators from counts


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


# ---------------------------------------------------------------------------------------------- wrong input


Y0, TOP0 = sample(6, 2, 7)


def counts_of():
    counts = ScoreCounts([1, 2])
    counts.add(Block(Y0, TOP0, 2, 0))
    return counts


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ScorePool().add([1.5], [True]), r"must lie in \[0, 1\]; got 1.5 at pair 0: map scores"),
        (lambda: ScorePool().add([0.5, -np.inf], [True, True]), "absent places are left out"),
        (lambda: ScorePool().add(np.array([1]), [True]), "float32 or float64"),
        (lambda: ScorePool().add([0.5], [True]).add(np.float32([0.5]), [True]), "must stay float64"),
        (lambda: ScorePool().add([0.5], [True, False]), "as many as the scores"),
        (lambda: ScorePool().add([0.5], [True], [-1]), "weights must be whole"),
        (lambda: ScorePool().add_counts([0.5], [1], [2]), r"in \[0, n\]"),
        (lambda: ScorePool().ace(), "at least one pair"),
        (lambda: check_scores(np.array([[0.1, -0.5]]), first_row=7), "-0.5 at row 7, place 1"),
        (lambda: counts_of().pool(3), r"k must be one of \[1, 2\]; got 3"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_refused_block_leaves_nothing():
    counts = ScoreCounts([2])
    wrong = TopK(TOP0.ids, TOP0.scores + np.float32(1), TOP0.n_labels)
    with pytest.raises(ArgumentError):
        counts.add(Block(Y0, wrong, 2, 0))
    assert counts.pool(2).runs().n.sum() == 0


def test_an_absent_place_may_hold_any_score():
    scores = TOP0.scores.copy()
    scores[:, 1] = np.nan
    ids = TOP0.ids.copy()
    ids[:, 1] = -1
    counts = ScoreCounts([1, 2])
    counts.add(Block(Y0, TopK(ids, scores, TOP0.n_labels), 2))
    assert contents(counts.pool(1)) == contents(counts.pool(2))


def test_arrays_that_cannot_be_are_refused():
    pool = ScorePool().add(np.array([0.1, 0.3, 0.3, 0.9], np.float32), np.array([1, 0, 1, 1], bool))
    good = pool.arrays()
    assert contents(ScorePool().restore(good)) == contents(pool)
    empty = ScorePool().arrays()
    assert contents(ScorePool().restore(empty)) == contents(ScorePool())
    name, n = "scores", good["n"]
    wrong = [
        {"n": n.astype(np.int32)},
        {"hits": n + 1},
        {name: good[name][::-1].copy()},
        {name: good[name] * np.float32(2)},
        {name: np.float32([np.nan, 0.3, 0.9])},
        {name: np.float32([0.3, 0.3, 0.9])},
    ]
    for change in wrong:
        with pytest.raises(ValueError, match=r"scores|counts|dtype|cell"):
            ScorePool().restore(good | change)
    for other in ({}, {name: good[name]}, good | {"more": n}):
        with pytest.raises(ValueError, match="pool holds"):
            ScorePool().restore(other)
    fold = counts_of()
    for change in ({"sizes": None}, {"sizes": np.array([1])}, {"sizes": np.array([-1, 4])}, {"n": n}):
        arrays = fold.arrays() | change
        with pytest.raises(ValueError, match="sizes"):
            ScoreCounts([1, 2]).restore({name: array for name, array in arrays.items() if array is not None})
