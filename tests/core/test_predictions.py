"""TopK and its adapters: order, ties, absent places, every refusal, files."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests import naive
from tests.refused import damaged, refused
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import topk
from xcrepro.core.predictions import read_calibration_npz

INF = np.inf


def rows_of(top):
    return [[label for label in row if label >= 0] for row in top.ids.tolist()]


@st.composite
def scored_rows(draw):
    """Rows as {label: score} in a random storage order; few distinct scores, so ties abound."""
    n_labels = draw(st.integers(1, 40))
    score = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.25, 1.0, INF])
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        labels = draw(st.lists(st.integers(0, n_labels - 1), unique=True, max_size=n_labels))
        rows.append({label: draw(score) for label in labels})
    return n_labels, rows


@settings(max_examples=200, deadline=None)
@given(scored_rows(), st.integers(1, 8), st.sampled_from([np.float32, np.float64]), st.booleans())
def test_sparse_scores_are_ranked_as_the_oracle_says(case, k, dtype, as_array):
    n_labels, rows = case
    labels = np.array([label for row in rows for label in row], np.int32)
    data = np.array([s for row in rows for s in row.values()], dtype)
    parts = data, labels, np.cumsum([0, *map(len, rows)])
    top = xc.TopK.from_scores((sp.csr_array if as_array else sp.csr_matrix)(parts, shape=(len(rows), n_labels)), k)
    want = [naive.ranked(row, k) for row in rows]
    assert rows_of(top) == want
    for row, ids, scores in zip(rows, want, top.scores.tolist(), strict=True):
        assert scores == [row[label] for label in ids] + [-INF] * (k - len(ids))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 30), st.integers(1, 5), st.integers(1, 8), st.randoms(use_true_random=False))
def test_dense_scores_are_ranked_as_the_oracle_says(n_labels, n, k, random):
    values = np.array([[random.choice([-INF, -1.0, 0.0, 0.5, INF]) for _ in range(n_labels)] for _ in range(n)])
    top = xc.TopK.from_scores(values, k)
    assert rows_of(top) == [naive.ranked({l: s for l, s in enumerate(row) if s > -INF}, k) for row in values]


def test_ties_over_many_rows_and_threads(monkeypatch):
    """20,000 rows of one score only: the lowest ids, whatever the storage order and the number of threads."""
    rng = np.random.default_rng(0)
    n, m, n_labels = 20_000, 30, 300
    ids = np.argsort(rng.random((n, n_labels)), axis=1)[:, :m].astype(np.int32)
    scores = sp.csr_matrix((np.full(n * m, 0.5, np.float32), ids.ravel(), np.arange(0, n * m + 1, m)), (n, n_labels))
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("XCREPRO_THREADS", threads)
        top = xc.TopK.from_scores(scores, 5)
        assert (top.ids == np.sort(ids, axis=1)[:, :5]).all()
    assert (scores.indices == ids.ravel()).all()  # the caller's matrix is as it was


def test_float64_scores_are_compared_as_float64():
    scores = np.array([[0.5, 0.5 + 1e-12]])
    assert xc.TopK.from_scores(scores, 2).ids.tolist() == [[1, 0]]
    assert xc.TopK.from_scores(sp.csr_matrix(scores), 2).ids.tolist() == [[1, 0]]


@pytest.mark.parametrize("k", [0, -1, 1.0, True, None])
def test_k_must_be_a_whole_number(k):
    with refused("k", repr(k)):
        xc.TopK.from_scores(np.zeros((1, 2)), k)


@pytest.mark.parametrize("at", [0, 5, 19])
def test_nan_is_refused_wherever_it_stands(at):
    values = np.linspace(1, 0, 20)[None].repeat(3, axis=0)
    values[1, at] = np.nan
    for scores in (values, sp.csr_matrix(values), values.astype(np.float32)):
        with refused("scores", f"NaN at row 1, label {at}"):
            xc.TopK.from_scores(scores, 3)


@pytest.mark.parametrize(
    ("indices", "got"),
    [
        ([0, 5, 1, 5], "label 5 twice in row 1"),
        ([0, 1, 2, 9], "column 9 in row 1"),
        ([-1, 1, 2, 3], "column -1 in row 0"),
    ],
)
def test_faults_in_sparse_scores_are_named(indices, got):
    scores = sp.csr_matrix((np.ones(4, np.float32), np.array([0, 1, 2, 3]), [0, 1, 4]), shape=(2, 9))
    scores.indices[:] = indices
    with refused("scores", got):
        xc.TopK.from_scores(scores, 2)


def test_what_float32_cannot_hold_is_infinite():
    """And minus infinity is not predicted, whether it was given or came of rounding."""
    given = np.array([[0.5, -1e300, 1e300, -np.inf, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for top in (
            xc.TopK.from_scores(given, 5),
            xc.TopK.from_scores(sp.csr_matrix(given), 5),
            xc.TopK.from_ids([[0, 1, 2, 3, 4]], given, n_labels=5),
            xc.TopK.from_pairs([list(enumerate(given[0]))], n_labels=5),
        ):
            assert top.ids.tolist() == [[2, 4, 0, -1, -1]]
            assert top.scores.tolist() == [[np.inf, 1, 0.5, -np.inf, -np.inf]]


def test_duplicates_are_found_after_the_stamp_has_gone_round():
    """The kernel's one-byte stamps repeat after 255 rows; old marks must not be taken for new ones, nor new ones missed."""
    n = 600
    indices = np.tile(np.array([3, 1, 2]), n)
    scores = sp.csr_matrix((np.ones(3 * n), indices.copy(), np.arange(0, 3 * n + 1, 3)), shape=(n, 4))
    assert len(xc.TopK.from_scores(scores, 2)) == n
    for row in (0, 254, 255, 256, 509, 510, 511, 599):
        repeated = scores.copy()
        repeated.indices[3 * row + 2] = 3
        with refused("scores", f"label 3 twice in row {row}"):
            xc.TopK.from_scores(repeated, 2)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([40, 1 << 21, (1 << 21) + 1, 2**31 - 1]))
def test_an_id_twice_is_found_where_it_stands_whatever_the_ids(seed, n_labels):
    """Up to 2^21 labels have a byte each, more are hashed: ids that fall in one place of the table among them."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(rng.integers(1, 9)):
        ids = rng.permutation(min(n_labels, 2**31 >> 12))[: rng.integers(1, 200)].astype(np.int64)
        if rng.random() < 0.5:
            ids = ids * 4096 % n_labels  # may repeat where there are few labels
        if rng.random() < 0.3:
            ids = np.append(ids, rng.choice(ids))
        rows.append(ids)
    indptr, indices = np.cumsum([0, *map(len, rows)]), np.concatenate(rows).astype(np.int32)
    lo = int(rng.integers(0, len(rows)))
    want = (topk.OK, -1)
    for row in range(lo, len(rows)):
        seen = set()
        for place, label in enumerate(rows[row].tolist()):
            if label in seen and want[0] == topk.OK:
                want = (topk.DUPLICATE, int(indptr[row]) + place)
            seen.add(label)
    found = topk.check_ids(indptr, indices, n_labels, lo, len(rows))
    # The first fault, except that a row whose ids rise is not looked at, and one that has a fault does not rise.
    assert tuple(found[:2]) == want


@pytest.mark.parametrize(
    "scores", [np.zeros(3), np.zeros((2, 2), complex), [["a"]], sp.csr_matrix(np.zeros((1, 2), complex))]
)
def test_other_things_are_refused(scores):
    with refused("scores"):
        xc.TopK.from_scores(scores, 1)


def test_excluded_pairs_are_not_predicted():
    values = np.array([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7]])
    for scores in (values, sp.csr_matrix(values)):
        top = xc.TopK.from_scores(scores, 2, exclude=(np.array([0, 0]), np.array([0, 2])))
        assert top.ids.tolist() == [[1, -1], [0, 1]]
        empty = np.array([], np.int64)
        assert xc.TopK.from_scores(scores, 1, exclude=(empty, empty)).ids.tolist() == [[0], [0]]
        for wrong in (([2], [0]), ([0, 1], [0])):
            with refused("exclude"):
                xc.TopK.from_scores(scores, 1, exclude=wrong)
    assert values[0].tolist() == [0.9, 0.8, 0.7]


def test_ids_alone_keep_their_order_and_those_with_scores_are_ranked():
    top = xc.TopK.from_ids(np.array([[5, 2], [1, -1]]), n_labels=6)
    assert top.ids.tolist() == [[5, 2], [1, -1]]
    assert top.scores.tolist() == [[-1.0, -2.0], [-1.0, -INF]]
    top = xc.TopK.from_ids([[5, 2, 3], [1, 0, -1]], [[0.1, 0.1, 0.4], [-INF, 0.2, 9.0]], n_labels=6)
    assert top.ids.tolist() == [[3, 2, 5], [0, -1, -1]]


@pytest.mark.parametrize(
    ("ids", "scores", "argument", "got"),
    [
        ([[0, 6]], None, "ids", "6 at row 0, place 1"),
        ([[1, 2], [3, 3]], None, "ids", "[3, 3] in row 1"),
        ([[0.0, 1.0]], None, "ids", "shape (1, 2), dtype float64"),
        ([[0, 1]], [[0.5, np.nan]], "scores", "NaN at row 0, label 1"),
    ],
)
def test_faults_in_ids(ids, scores, argument, got):
    with refused(argument, got):
        xc.TopK.from_ids(ids, scores, n_labels=6)


def test_pairs_as_napkinxc_gives_them():
    rows = [[(4, 0.9), (1, 0.9)], [(0, 0.5)], []]
    top = xc.TopK.from_pairs(rows, n_labels=5)
    assert rows_of(top) == [[1, 4], [0], []]
    assert xc.TopK.from_pairs([[4, 1], [0]], n_labels=5).ids.tolist() == [[4, 1], [0, -1]]
    assert xc.TopK.from_pairs(rows, n_labels=5, k=1).ids.tolist() == [[1], [0], [-1]]
    assert xc.TopK.from_pairs(rows, n_labels=5, k=3).k == 3
    assert xc.TopK.from_pairs([[], []], n_labels=5).ids.tolist() == [[-1], [-1]]


@pytest.mark.parametrize("rows", [[[(0, 1.0), 2]], [["a"]], [[(0.5, 1.0)]], [[(-1, 1.0)]], [[7]], [[2, 2]]])
def test_faults_in_pairs(rows):
    with pytest.raises(ArgumentError):
        xc.TopK.from_pairs(rows, n_labels=5)


def test_arrays_are_read_only_and_the_callers_stay_writable():
    ids = np.array([[1, 0]], np.int32)
    top = xc.TopK.from_ids(ids, n_labels=2)
    with pytest.raises(ValueError, match="read-only"):
        top.ids[0, 0] = 1
    ids[0, 0] = 0
    assert top.ids.tolist() == [[1, 0]]


def test_head_rows_and_csr():
    top = xc.TopK.from_scores(np.array([[0.1, 0.0, 0.3], [0.5, 0.5, 0.1]]), 3)
    assert top.head(1).ids.tolist() == [[2], [0]]
    assert top.rows([1]).ids.tolist() == [[0, 1, 2]]
    csr = top.to_csr()
    assert csr.has_sorted_indices
    assert csr.nnz == 6  # the zero score is a prediction too
    assert (xc.TopK.from_scores(csr, 3).ids == top.ids).all()
    assert repr(top) == "TopK(n=2, k=3, n_labels=3)"


# ---------------------------------------------------------------- files


@pytest.fixture
def top():
    return xc.TopK.from_scores(np.array([[0.1, 0.9, 0.3], [0.5, 0.5, -INF]]), 3)


def test_save_and_load_keep_every_bit(top, tmp_path):
    top.save(tmp_path / "p.npz")
    assert naive.same_bits(xc.TopK.load(tmp_path / "p.npz"), top)
    assert naive.same_bits(xc.TopK.load(tmp_path / "p.npz", k=1), top.head(1))
    assert xc.TopK.load(tmp_path / "p.npz").n_labels == 3
    with refused("path", "p.txt"):
        top.save(tmp_path / "p.txt")


@settings(max_examples=60)
@given(st.lists(st.lists(st.floats(width=32, allow_nan=False), min_size=4, max_size=4), min_size=0, max_size=6))
def test_a_small_file_keeps_every_bit(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("small") / "p.npz"
    scores = np.array(rows, np.float32).reshape(-1, 4)
    top = xc.TopK.from_scores(scores, 4)  # -0, infinities and what is not predicted among them
    top.save(path, small=True)
    assert naive.same_bits(xc.TopK.load(path), top)
    first = path.read_bytes()
    top.save(path, small=True)
    assert path.read_bytes() == first


def test_a_small_file_is_smaller_and_held_to_its_form(tmp_path):
    scores = np.random.default_rng(0).random((500, 300), np.float32) ** 4
    top = xc.TopK.from_scores(scores, 100)
    top.save(tmp_path / "p.npz")
    top.save(tmp_path / "small.npz", small=True)
    assert (tmp_path / "small.npz").stat().st_size < 0.8 * (tmp_path / "p.npz").stat().st_size
    stored = dict(np.load(tmp_path / "small.npz"))
    steps = stored["steps"]
    rising = steps ^ np.uint8(0x80)  # scores that do not fall
    for other in (steps[:3], steps[:, :, :50], steps.astype(np.int16), steps[0], rising):
        np.savez(tmp_path / "other.npz", **stored | {"steps": other})
        with damaged("other.npz"):
            xc.TopK.load(tmp_path / "other.npz")


def test_load_keeps_an_order_finer_than_float32(tmp_path):
    top = xc.TopK.from_scores(np.array([[0.5, 0.5 + 1e-12]]), 2)
    top.save(tmp_path / "p.npz")
    assert xc.TopK.load(tmp_path / "p.npz").ids.tolist() == [[1, 0]]


def test_load_takes_scipy_npz_and_text(tmp_path):
    scores = sp.csr_matrix(np.array([[0.0, 0.5, 0.25], [1.0, 0.0, 0.0]], np.float32))
    sp.save_npz(tmp_path / "Yt_pred.npz", scores)
    (tmp_path / "score_mat.txt").write_text("2 3\n1:0.5 2:0.25\n0:1\n")
    with gzip.open(tmp_path / "score_mat.txt.gz", "wt") as file:
        file.write("2 3\n1:0.5 2:0.25\n0:1\n")
    for name in ("Yt_pred.npz", "score_mat.txt", "score_mat.txt.gz"):
        assert xc.TopK.load(tmp_path / name, k=2).ids.tolist() == [[1, 2], [0, -1]]
        with refused("k"):
            xc.TopK.load(tmp_path / name)


def test_load_filters_score_matrices_but_not_rankings(top, tmp_path):
    (tmp_path / "score_mat.txt").write_text("2 3\n1:0.5 2:0.25\n0:1\n")
    pairs = (np.array([0]), np.array([1]))
    assert xc.TopK.load(tmp_path / "score_mat.txt", 1, exclude=pairs).ids.tolist() == [[2], [0]]
    top.save(tmp_path / "p.npz")
    with pytest.raises(ArgumentError, match="rankings"):
        xc.TopK.load(tmp_path / "p.npz", exclude=pairs)


def test_load_refuses_other_files(top, tmp_path):
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 not a zip")
    for name, found in (("other", r"arrays \['a'\]"), ("cut", "no readable")):
        with damaged(f"{name}.npz", match=found):
            xc.TopK.load(tmp_path / f"{name}.npz")
    with pytest.raises(FileNotFoundError):
        xc.TopK.load(tmp_path / "none.npz")


SAVED = {
    "ids": np.array([[1, 0], [2, -1]]),
    "scores": np.array([[0.9, 0.5], [0.2, -np.inf]], np.float32),
    "n_labels": np.int64(3),
}
INTERCHANGE = {"scores": [[0.9, 0.1]], "prediction_ids": [[1, 0]], "true_positives": [[1, 0]], "labels": [[0, 1]]}


@pytest.mark.parametrize(
    ("base", "change", "found"),
    [
        (SAVED, {"n_labels": np.int64(2**62)}, "n_labels 4611686018427387904"),
        (SAVED, {"n_labels": np.array([3, 3])}, "n_labels [3, 3]"),
        (SAVED, {"n_labels": np.float64(3)}, "n_labels 3.0"),
        (SAVED, {"ids": np.array([[1.0, 0.0], [2.0, -1.0]])}, "ids: shape (2, 2), dtype float64"),
        (SAVED, {"ids": np.array([[1, 0], [-1, 2]])}, "ids: [-1, 2] in row 1"),
        (SAVED, {"scores": np.array([[0.9, np.nan], [0.2, -np.inf]])}, "NaN as score at row 0, place 1"),
        (SAVED, {"ids": [[1, 0]], "scores": [[0.1, 0.9]]}, "score 0.9 at row 0, place 1, above the one before it"),
        (SAVED, {"scores": np.array([[0.9, 0.5], [0.2, 0.1]])}, "score 0.1 for label -1 at row 1, place 1"),
        (INTERCHANGE, {"prediction_ids": np.array([[2**40, 0]])}, "label 1099511627776"),
        (INTERCHANGE, {"scores": np.array([[np.nan, 0.1]])}, "scores: NaN at row 0, label 1"),
    ],
)
def test_files_of_a_stranger(tmp_path, base, change, found):
    np.savez(tmp_path / "p.npz", **base | change)
    with damaged("p.npz") as error:
        xc.TopK.load(tmp_path / "p.npz")
    assert error.value.found == found


def test_calibration_interchange(top, tmp_path):
    Y = sp.csr_matrix(np.array([[0, 1, 1], [0, 0, 1]], np.float32))
    naive.save_calibration_npz(tmp_path / "c.npz", top, Y)
    with np.load(tmp_path / "c.npz") as stored:
        assert stored["true_positives"].tolist() == [[True, True, False], [False, False, False]]
        assert stored["labels"].tolist() == [[0, 1], [0, 2], [1, 2]]
        parts = dict(stored)
    back, truth = read_calibration_npz(tmp_path / "c.npz")
    assert naive.same_bits(back, top)
    assert (truth != Y).nnz == 0
    assert naive.same_bits(xc.TopK.load(tmp_path / "c.npz"), top)
    assert xc.TopK.from_calibration_npz(tmp_path / "c.npz", n_labels=9).n_labels == 9

    for changed, n_labels, found in (
        ({"true_positives": ~parts["true_positives"]}, None, r"true_positives\[0, 0\] = False"),
        ({"labels": np.array([[5, 0]])}, None, "outside the matrix"),
        ({}, 2, "outside the matrix"),
        ({"scores": parts["scores"][:1]}, None, "equal shapes"),
        ({"labels": np.array([1, 2])}, None, "pair"),
    ):
        np.savez(tmp_path / "bad.npz", **parts | changed)
        with damaged("bad.npz", match=found):
            read_calibration_npz(tmp_path / "bad.npz", n_labels)


# ---------------------------------------------------------------- sets cut at a threshold


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_above_keeps_what_reaches_the_threshold(seed, each):
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random((7, 6)) < 0.8, rng.integers(0, 5, (7, 6)) / 4, -np.inf)
    top = xc.TopK.from_scores(scores, 4)
    cut = rng.integers(0, 5, 6 if each else ()) / 4
    cuts = np.broadcast_to(cut, 6)
    kept = [[(label, score) for label, score in row if score >= cuts[label]] for row in naive.pairs_of(top)]
    want = xc.TopK.from_pairs(kept, n_labels=6, k=4)
    found = top.above(cut)
    assert found.ids.tolist() == np.pad(want.ids, ((0, 0), (0, 4 - want.k)), constant_values=-1).tolist()
    assert (np.isneginf(found.scores) == (found.ids < 0)).all()
    assert not found.ids.flags.writeable


def test_thresholds_at_the_edges():
    margins = xc.TopK.from_ids([[0, 1], [2, -1]], [[3.0, -2.0], [0.7, 0]], n_labels=3)
    assert margins.above(-np.inf).ids.tolist() == margins.ids.tolist()
    assert (margins.above(np.inf).ids < 0).all()
    assert margins.above(0.7).ids.tolist() == [[0, -1], [2, -1]]  # 0.7 as float32 is below 0.7 as float64
    assert margins.above([9.0, -9.0, 0.0]).ids.tolist() == [[1, -1], [2, -1]]  # margins: one label's may lie outside
    nothing = xc.TopK.from_ids([[-1]], n_labels=3)
    assert nothing.above(7).ids.tolist() == [[-1]]
    assert xc.TopK.from_scores([[-3.0, -2.0]], 2).above(0.0).ids.tolist() == [[-1, -1]]


@pytest.mark.parametrize(
    ("scores", "threshold", "got"),
    [
        ([[0.9, 0.2]], [0.1, np.nan, 0.2], "NaN for label 1"),
        ([[0.9, 0.2]], [0.1, 0.2], "an array of shape (2,)"),
        ([[0.9, 0.2]], "0.5", "'0.5'"),
        ([[0.9, 0.2]], None, "None"),
        ([[1.0, 0.0]], 1.5, "1.5"),
    ],
)
def test_thresholds_that_mean_nothing_are_refused(scores, threshold, got):
    top = xc.TopK.from_ids([[0, 1]], scores, n_labels=3)
    with refused("threshold", got):
        top.above(threshold)


def test_what_is_no_label_that_anybody_asked_for_stays_known(tmp_path):
    """In files of predictions and of a State, and after calibration: averages over labels leave it out everywhere."""
    ids, scores = np.array([[0, 3], [1, 4], [2, 0]], np.int32), np.array([[0.9, 0.2]] * 3, np.float32)
    TopK = xc.TopK
    top, Y = TopK(ids, scores, 5, outside=2), np.eye(5)[:3]
    wanted = xc.metrics.macro_f1(Y, top, 2)
    assert wanted == pytest.approx(xc.metrics.macro_f1(Y, TopK(ids, scores, 5), 2) * 5 / 3)
    calibrator = xc.calibrate.Platt().fit(np.array([0.1, 0.4, 0.8]), np.array([0, 1, 1]))
    found = [xc.calibrate.transform(calibrator, top)]
    for small in (False, True):
        top.save(tmp_path / "top.npz", small=small)
        found.append(TopK.load(tmp_path / "top.npz"))
    assert [each.outside for each in found] == [2, 2, 2]
    assert [xc.metrics.macro_f1(Y, each, 2).tolist() for each in found] == [wanted.tolist()] * 3
    xc.scale.write_block(tmp_path / "block.npz", Y, top)
    assert xc.scale.evaluate([tmp_path / "block.npz"], 2, metrics=["macro-F1"])["value"].tolist() == wanted.tolist()
    state = xc.State(2, ["macro-F1"]).update(Y, top)
    state.save(tmp_path / "state.npz")
    assert xc.State.load(tmp_path / "state.npz").compute()["value"].tolist() == wanted.tolist()
    np.savez(tmp_path / "bad.npz", ids=ids, scores=scores, n_labels=5, outside=5)
    with damaged("bad.npz"):
        TopK.load(tmp_path / "bad.npz")
