"""The fold of label counts against dictionaries: however rows are cut, weighted, ordered, merged, saved, the same bytes."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import as_matrices, small_rankings
from xcrepro.core.accumulators import labels as fold
from xcrepro.core.accumulators.block import Block
from xcrepro.core.accumulators.labels import HitLabels, LabelCounts, PreparedLabels
from xcrepro.core.errors import ArgumentError
from xcrepro.core.predictions import TopK

KS = st.sampled_from([(1,), (5,), (1, 3, 5), (2, 3), (1, 2, 3, 4, 5)])


@pytest.fixture(params=["usual", "sorts early", "few ranges"])
def limits(request, monkeypatch):
    """The same outcome wherever the limits lie at which events are sorted, and however many ranges they are counted in."""
    if request.param == "sorts early":
        monkeypatch.setattr(fold, "_PENDING", 6)
    if request.param == "few ranges":
        monkeypatch.setattr(fold, "_RANGE_BITS", 1)


def oracle(truth, rows, weights, ks):
    """{label: (true, [predicted at each k], [tp at each k])}, row by row from the definition."""
    true, predicted, tp = Counter(), Counter(), Counter()
    for labels, row, weight in zip(truth, rows, weights, strict=True):
        for label in labels:
            true[label] += weight
        for k in ks:
            for label in row[:k]:
                predicted[label, k] += weight
                tp[label, k] += weight * (label in labels)
    met = {label for label in true if true[label]} | {label for label, k in predicted if predicted[label, k]}
    return {label: (true[label], [predicted[label, k] for k in ks], [tp[label, k] for k in ks]) for label in met}


def as_dict(hit: HitLabels) -> dict:
    columns = zip(hit.labels.tolist(), hit.true.tolist(), hit.predicted.tolist(), hit.tp.tolist(), strict=True)
    return {label: (true, predicted, tp) for label, true, predicted, tp in columns}


def check(counts: LabelCounts, want: dict, weights) -> None:
    """Does a fold hold what the oracle says, in each form it gives it?"""
    hit = counts.hit_labels()
    assert as_dict(hit) == {label: found for label, found in want.items() if any(found[2])}
    assert (np.diff(hit.labels) > 0).all()
    assert {array.dtype for array in (hit.labels, hit.true, hit.predicted, hit.tp)} == {np.dtype(np.int64)}
    there = sorted(label for label, (true, _, _) in want.items() if true)
    assert (hit.n_labels, hit.n_true_labels, hit.n_rows) == (counts.n_labels, len(there), sum(weights))
    assert counts.true_labels().tolist() == there
    tp, predicted, true = counts.tables()
    for label in range(counts.n_labels):
        nothing = 0, [0] * counts.ks.size, [0] * counts.ks.size
        assert (true[label], predicted[:, label].tolist(), tp[:, label].tolist()) == want.get(label, nothing)
    never = [counts.ks.size]
    firsts = [[[*np.flatnonzero(each), *never][0] for each in table.T] for table in (predicted, tp)]
    assert [each.tolist() for each in counts.first_ks()] == firsts
    assert counts.n_predicted().tolist() == (predicted > 0).sum(axis=1).tolist()
    some = np.array([counts.n_labels - 1, 0, *want, 0], np.int64)  # in any order, some twice
    np.testing.assert_array_equal(counts.predicted(some), predicted[:, some])


def times(counts: LabelCounts, n: int) -> LabelCounts:
    """Of the same rows, n times over."""
    arrays = {name: array if "keys" in name else array * np.int64(n) for name, array in counts.arrays().items()}
    kind = np.int32 if arrays["n_rows"][0] < 2**31 else np.int64
    arrays |= {name: array.astype(kind) for name, array in arrays.items() if "counts" in name}
    return LabelCounts(counts.n_labels, counts.ks).restore(arrays)


def same_bytes(a: LabelCounts, b: LabelCounts) -> bool:
    a, b = a.arrays(), b.arrays()
    return list(a) == list(b) and all((a[n].tobytes(), a[n].dtype) == (b[n].tobytes(), b[n].dtype) for n in a)


@st.composite
def cases(draw):
    """A small ranking, in few labels or scattered over many, so that lists are smaller than tables; weights; ks."""
    n_labels, truth, rows = draw(small_rankings())
    step = draw(st.sampled_from([1, 7, 300]))
    truth, rows = [{label * step for label in y} for y in truth], [[label * step for label in row] for row in rows]
    weight = st.sampled_from([0, 1, 1, 2, 5, 2**29, 2**31, 2**40])
    return n_labels * step, truth, rows, draw(st.lists(weight, min_size=len(rows), max_size=len(rows))), draw(KS)


@pytest.mark.usefixtures("limits")
@settings(max_examples=60, deadline=None)
@given(cases(), st.data())
def test_any_cutting_order_and_tree_of_merges_gives_the_same_bytes(case, data):
    n_labels, truth, rows, _, ks = case
    weights = [1] * len(rows)
    Y, top = as_matrices(n_labels, truth, rows)

    def counted(lo, hi, into=None):
        into = LabelCounts(n_labels, ks) if into is None else into
        return into.add(Block(Y[lo:hi], top.rows(slice(lo, hi)), 5))

    whole = counted(0, len(rows))
    want = oracle(truth, rows, weights, ks)
    check(whole, want, weights)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=4)) | {0, len(rows)})
    parts = data.draw(st.permutations(list(itertools.pairwise(cuts))))
    streamed = LabelCounts(n_labels, ks)
    for lo, hi in parts:
        counted(lo, hi, streamed)
        if data.draw(st.booleans()):
            streamed.arrays()  # to ask does not change what comes
    folds = [counted(lo, hi) for lo, hi in parts]
    before = [one.arrays() for one in folds]
    kept = list(folds)
    while len(folds) > 1:
        i, j = data.draw(st.permutations(range(len(folds))))[:2]
        a, b = folds[i], folds[j]
        empty = LabelCounts(n_labels, ks)
        a = empty.restore(a.arrays()) if data.draw(st.booleans()) else empty.merge(a)
        folds = [one for m, one in enumerate(folds) if m not in (i, j)] + [a.merge(b)]
    for other in (streamed, *folds):
        assert same_bytes(whole, other)
        check(other, want, weights)
    for one, arrays in zip(kept, before, strict=True):  # what was merged from stays as it was
        assert all(one.arrays()[name].tobytes() == arrays[name].tobytes() for name in arrays)
    again = LabelCounts(n_labels, ks).restore(whole.arrays())
    assert same_bytes(whole, again)
    check(again, want, weights)
    for n in (2, 2**31):
        check(times(again, n), oracle(truth, rows, [n] * len(rows), ks), [n] * len(rows))
    check(again.merge(again), oracle(truth, rows, [2] * len(rows), ks), [2] * len(rows))


@pytest.mark.usefixtures("limits")
@settings(max_examples=40, deadline=None)
@given(cases(), st.integers(0, 9))
def test_a_prepared_block_counts_as_adding_its_rows_so_often_does(case, seed):
    n_labels, truth, rows, weights, ks = case
    Y, top = as_matrices(n_labels, truth, rows)
    prepared = PreparedLabels(Block(Y, top, 5), ks)
    drawn = np.bincount(np.random.default_rng(seed).integers(len(rows), size=len(rows)), minlength=len(rows))
    for often in (np.array(weights, np.int64), drawn.astype(np.int64), np.zeros(len(rows), np.int64)):
        want, quick = oracle(truth, rows, often.tolist(), ks), prepared.count(often)
        assert as_dict(quick) == {label: of for label, of in want.items() if any(of[2])}
        assert (quick.n_rows, quick.n_true_labels) == (often.sum(), sum(true > 0 for true, _, _ in want.values()))
        named = [sum(predicted[i] > 0 for _, predicted, _ in want.values()) for i in range(len(ks))]
        assert prepared.n_predicted(often).tolist() == named
        if often.max() > 9:
            continue
        again = np.repeat(np.arange(len(rows)), often)
        plain = LabelCounts(n_labels, ks).add(Block(Y[again], top.rows(again), 5)).hit_labels()
        for name in ("labels", "true", "predicted", "tp", "ks"):
            a, b = getattr(plain, name), getattr(quick, name)
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
        for name in ("n_labels", "n_true_labels", "n_rows"):
            assert getattr(plain, name) == getattr(quick, name)


def test_more_labels_than_int32_keys_can_name():
    """With 5 ks a label has 10 events: keys beyond 2^31 from 134 million labels on. No table of all labels is made."""
    n_labels = 2**31 - 1
    Y = sp.csr_matrix((np.ones(3), [5, n_labels - 1, 7], [0, 2, 3]), shape=(2, n_labels))
    top = TopK(np.array([[n_labels - 1, 6], [6, -1]], np.int32), np.zeros((2, 2), np.float32), n_labels)
    counts = (
        LabelCounts(n_labels, (1, 2)).add(Block(Y, top, 2)).merge(LabelCounts(n_labels, (1, 2)).add(Block(Y, top, 2)))
    )
    arrays = counts.arrays()
    assert arrays["places_keys"].dtype == np.int64
    shift = 2
    assert arrays["places_keys"].tolist() == [6 << shift, 6 << shift | 2, (n_labels - 1) << shift | 1]
    assert arrays["places_counts"].tolist() == [2, 2, 2]
    assert arrays["truth_keys"].tolist() == [5, 7, n_labels - 1]
    assert LabelCounts(n_labels, (1, 2))._places.key_type == np.int64
    assert LabelCounts(2**29, (1, 2))._places.key_type == np.int32


# ---------------------------------------------------------------- form and size

Y = sp.csr_matrix(np.array([[1, 0, 1, 0], [0, 1, 0, 0]], np.float32))
TOP = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)


def scattered(n_labels=1000):
    """The same rows with labels far apart."""
    wide = sp.csr_matrix((Y.data, Y.indices * 100, Y.indptr), shape=(2, n_labels))
    return wide, TopK.from_ids(TOP.ids * 100, n_labels=n_labels)


def test_a_block_of_a_large_dataset_takes_little_memory():
    """100,000 rows with 5 places and 5 labels at 3 million labels: at most 20 MB, where tables take 84."""
    n, n_labels = 100_000, 3_000_000
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(n_labels // 5, size=(n, 5)) + np.arange(5) * (n_labels // 5), axis=1)
    truth = sp.csr_matrix(
        (np.ones(5 * n, np.float32), labels.ravel().astype(np.int32), np.arange(0, 5 * n + 1, 5)), (n, n_labels)
    )
    ids = np.where(
        rng.random((n, 5)) < 0.5, labels, rng.integers(n_labels // 5, size=(n, 5)) + np.arange(5) * (n_labels // 5)
    )
    counts = LabelCounts(n_labels, (1, 2, 3, 4, 5)).add(Block(truth, TopK.from_ids(ids, n_labels=n_labels), 5))
    arrays = counts.arrays()
    assert sum(array.nbytes for array in arrays.values()) < 10e6
    held = [array for events in (counts._truth, counts._places) for pair in events.lists() for array in pair]
    assert sum(array.nbytes for array in held) < 10e6
    assert counts.hit_labels().tp[:, -1].sum() == (ids == labels).sum()


@pytest.mark.usefixtures("limits")
def test_counts_widen_at_2_to_the_31_rows():
    def most(Y, top):
        """The first row so often that with the second there is no room for more in an int32."""
        first, second = (LabelCounts(top.n_labels, (1, 3)).add(Block(Y[[i]], top.rows([i]), 3)) for i in (0, 1))
        return times(first, 2**31 - 2).merge(second)

    block, narrow = Block(*scattered(), 3), most(*scattered())
    assert narrow.n_rows == 2**31 - 1
    assert narrow.arrays()["truth_counts"].dtype == np.int32
    for wide in (
        most(*scattered()).add(block),
        LabelCounts(1000, (1, 3)).restore(narrow.arrays()).merge(LabelCounts(1000, (1, 3)).add(block)),
        LabelCounts(1000, (1, 3)).add(block).merge(narrow),
    ):
        assert wide.arrays()["truth_counts"].dtype == wide.arrays()["places_counts"].dtype == np.int64
        assert as_dict(wide.hit_labels())[0] == (2**31 - 1, [2**31 - 1, 2**31 + 1], [2**31 - 1, 2**31 - 1])
        assert same_bytes(wide, LabelCounts(1000, (1, 3)).restore(wide.arrays()))
    # And in a table.
    small = most(Y, TOP)
    small.arrays()
    small.merge(most(Y, TOP))
    assert as_dict(small.hit_labels())[0] == (2**32 - 4, [2**32 - 4, 2**32 - 2], [2**32 - 4, 2**32 - 4])
    assert small.arrays()["places_counts"].dtype == np.int64


@pytest.mark.usefixtures("limits")
def test_no_rows_and_no_hits():
    for counts in (LabelCounts(4, (1, 3)), LabelCounts(4, (1, 3)).add(Block(Y[:0], TOP.rows(slice(0, 0)), 3))):
        hit = counts.hit_labels()
        assert (hit.labels.size, hit.n_true_labels, hit.n_rows) == (0, 0, 0)
        assert hit.tp.shape == hit.predicted.shape == (0, 2)
        assert same_bytes(counts, LabelCounts(4, (1, 3)))
        assert same_bytes(counts, LabelCounts(4, (1, 3)).restore(counts.arrays()))
    miss = LabelCounts(4, 1).add(Block(Y[:1], TopK.from_ids([[1, 3]], n_labels=4), 2)).hit_labels()
    assert (miss.labels.size, miss.n_true_labels, miss.n_rows) == (0, 2, 1)


# ---------------------------------------------------------------- wrong input


def MANY():
    return times(LabelCounts(4, 1).add(Block(Y, TOP, 3)), 2**61)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LabelCounts(4, (3, 1)), "ks must rise"),
        (lambda: LabelCounts(4, (1, 1)), "must not repeat"),
        (lambda: LabelCounts(4, (1, 4)).add(Block(Y, TOP, 3)), "3 places"),
        (lambda: LabelCounts(5, 1).add(Block(Y, TOP, 3)), "must have 5 labels in every block; got 4"),
        (lambda: MANY().merge(MANY()), "below 2"),
        (lambda: LabelCounts(4, 1).merge(LabelCounts(4, 2)), "same ks"),
        (lambda: LabelCounts(4, 1).merge(LabelCounts(5, 1)), "same n_labels"),
        (lambda: PreparedLabels(Block(Y, TOP, 3), (1, 4)), "3 places"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("truth_keys"), "must hold the arrays"),
        (lambda a: a.update(n_rows=np.array([-1])), "n_rows must be one int64"),
        (lambda a: a.update(n_rows=np.array([2, 2**31])), "labels outside"),
        (lambda a: a.update(truth_counts=a["truth_counts"].astype(np.int64)), "truth_counts must be one row of int32"),
        (lambda a: a.update(truth_counts=a["truth_counts"][:, None]), "truth_counts must be one row of int32"),
        (lambda a: a.update(places_keys=a["places_keys"].astype(np.uint32)), "places_keys must be one row of int32"),
        (lambda a: a.update(truth_counts=a["truth_counts"][:-1]), "truth_counts must be as many"),
        (lambda a: a.update(truth_counts=-a["truth_counts"]), "must lie between"),
        (lambda a: a["places_counts"].__setitem__(0, 3), "must lie between"),
    ],
)
def test_damaged_arrays_are_refused(change, message, wide):
    block = Block(*scattered(), 3) if wide else Block(Y, TOP, 3)
    counts = LabelCounts(block.n_labels, (1, 3)).add(block)
    arrays = counts.arrays()
    change(arrays)
    fresh = LabelCounts(block.n_labels, (1, 3)).add(block)
    with pytest.raises(ValueError, match=message):
        fresh.restore(arrays)
    assert same_bytes(fresh, counts)  # a fold that refuses keeps what it had


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.update(truth_keys=a["truth_keys"][::-1].copy()), "must rise"),
        (lambda a: a.update(truth_keys=a["truth_keys"] - 1), "must rise and name labels below 1000"),
        (lambda a: a.update(truth_keys=a["truth_keys"] + 800), "must rise and name labels below 1000"),
        (lambda a: a["truth_keys"].__setitem__(1, 0), "must rise"),
        (lambda a: a["truth_counts"].__setitem__(0, 0), "must lie between 1 and n_rows, 2"),
        (lambda a: a["truth_keys"].__setitem__(1, 101), "more hits of a label than rows"),
    ],
)
def test_damaged_lists_are_refused(change, message):
    arrays = LabelCounts(1000, (1, 3)).add(Block(*scattered(), 3)).arrays()
    change(arrays)
    with pytest.raises(ValueError, match=message):
        LabelCounts(1000, (1, 3)).restore(arrays)


def test_events_that_do_not_exist_are_refused():
    """3 ks make 6 events, in 3 bits."""
    arrays = LabelCounts(1000, (1, 2, 3)).add(Block(*scattered(), 3)).arrays()
    arrays["places_keys"][-1] |= 6
    with pytest.raises(ValueError, match="events below 6"):
        LabelCounts(1000, (1, 2, 3)).restore(arrays)
