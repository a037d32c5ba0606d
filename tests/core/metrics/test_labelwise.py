"""Label-wise metrics against slow oracles, at the edges, beside the peers, and as a fold over blocks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests import naive
from tests.naive import as_matrices, small_rankings
from tests.refused import refused
from xcrepro.core.data.registry import BINS
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import labelwise

KS = (1, 2, 3, 5)
m = xc.metrics


@settings(max_examples=150, deadline=None)
@given(small_rankings(), st.sampled_from(["all", "test"]), st.sampled_from([0.5, 1.0, 2.0]))
def test_macro_averages_equal_their_oracle(case, over, beta):
    n_labels, truth, rows = case
    Y, top = as_matrices(n_labels, truth, rows)
    for metric, value in (
        (m.macro_precision, naive.label_precision),
        (m.macro_recall, naive.label_recall),
        (m.macro_f1, naive.label_f(1.0)),
        (lambda *a, **k: m.macro_f_beta(*a, beta=beta, **k), naive.label_f(beta)),
    ):
        want = [naive.macro(truth, rows, k, n_labels, value, over) or 0.0 for k in KS]
        np.testing.assert_allclose(metric(Y, top, KS, over=over), want, rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(small_rankings(), st.data())
def test_counts_equal_their_oracle_and_are_ints(case, data):
    n_labels, truth, rows = case
    ks = data.draw(st.permutations(KS))[: data.draw(st.integers(1, 4))]
    counts = m.confusion(*as_matrices(n_labels, truth, rows), ks)
    for i, k in enumerate(ks):
        got = np.stack([counts.tp[i], counts.predicted[i], counts.true], axis=1)
        assert got.tolist() == [list(c) for c in naive.per_label(truth, rows, k, n_labels)]
    assert {a.dtype for a in (counts.tp, counts.predicted, counts.true)} == {np.dtype(np.int64)}
    assert (counts.n_rows, counts.n_labels, counts.ks.tolist()) == (len(truth), n_labels, list(ks))


@settings(max_examples=100, deadline=None)
@given(small_rankings(), st.sampled_from(["all", "test"]), st.data())
def test_binned_macro_f1_equals_its_oracle(case, over, data):
    n_labels, truth, rows = case
    trained = data.draw(st.lists(st.integers(0, 30), min_size=n_labels, max_size=n_labels))
    edges = data.draw(st.sampled_from([(1, 10), (3,), (1, 2, 20), (1, 10, 100, 1000)]))
    table = m.binned_macro_f1(*as_matrices(n_labels, truth, rows), KS, label_counts=trained, edges=edges, over=over)
    assert table.columns.tolist() == ["bin", "labels", "k", "value"]
    bounds = [0, *edges, 10**9]
    assert table.k.tolist() == list(KS) * (len(edges) + 1)
    for place, row in enumerate(table.itertuples()):
        low, high = bounds[place // len(KS)], bounds[place // len(KS) + 1]
        labels = {label for label, count in enumerate(trained) if low <= count < high}
        want = naive.macro(truth, rows, row.k, n_labels, naive.label_f(1.0), over, labels)
        assert row.value == pytest.approx(np.nan if want is None else want, rel=1e-12, nan_ok=True)
        assert want is not None or row.labels == 0


@settings(max_examples=40, deadline=None)
@given(small_rankings(), st.integers(1, 7))
def test_blocks_stream_and_counts_add_up_to_the_same_bits(case, size):
    n_labels, truth, rows = case
    Y, top = as_matrices(n_labels, truth, rows)
    parts = [(Y[i : i + size], top.rows(slice(i, i + size))) for i in range(0, len(truth), size)]
    whole = m.confusion(Y, top, KS)
    streamed = m.confusion(iter(parts), ks=KS)
    added = m.confusion(*parts[0], KS)
    for part in parts[1:]:
        added = added + m.confusion(*part, KS)
    for other in (streamed, added):
        for name in ("tp", "predicted", "true", "ks"):
            assert getattr(other, name).tobytes() == getattr(whole, name).tobytes()
        assert other.n_rows == whole.n_rows


# ---------------------------------------------------------------- edges

TRUTH = np.array([[1, 0, 1, 0], [0, 1, 0, 0]], np.float32)
TOP = xc.TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)


def test_counts_pick_ks_and_refuse_others():
    counts = m.confusion(TRUTH, TOP, (1, 2, 3))
    assert m.macro_f1(counts, ks=(3, 1)).tolist() == m.macro_f1(TRUTH, TOP, (3, 1)).tolist()
    with refused("ks", [5]):
        m.macro_f1(counts)
    with refused("top"):
        m.macro_f1(counts, TOP, 1)
    with pytest.raises(ArgumentError, match=" ks are"):
        counts + m.confusion(TRUTH, TOP, (1, 2))
    with pytest.raises(ArgumentError, match="labels are"):
        counts + m.confusion(TRUTH[:, :3], xc.TopK.from_ids([[0, 1, 2]] * 2, n_labels=3), (1, 2, 3))
    with pytest.raises(ValueError, match="read-only"):
        counts.tp[0, 0] = 9
    with pytest.raises(TypeError):
        counts + 1


def test_the_labels_hit_are_all_that_metrics_need():
    """Every metric from HitLabels, from Counts and from the rows themselves: the same bits."""
    rng = np.random.default_rng(5)
    Y = sp.random(60, 40, 0.1, random_state=rng, format="csr")
    top = xc.TopK.from_ids(np.argsort(rng.random((60, 30)), axis=1)[:, :5], n_labels=40)
    hit, counts, trained = labelwise.hit_labels(Y, top, (1, 3, 5)), m.confusion(Y, top, (1, 3, 5)), np.arange(40)
    assert hit.n_true_labels == np.count_nonzero(Y.getnnz(axis=0))
    for call in (
        m.macro_precision,
        lambda *a: m.macro_recall(*a, over="test"),
        lambda *a: m.macro_f_beta(*a, beta=0.5),
        m.coverage,
        lambda *a: m.alpha_coverage(*a, alpha=0.3),
        lambda *a: m.sampled_coverage(*a, sample_size=7),
        m.label_entropy,
        lambda *a: m.binned_macro_f1(*a, label_counts=trained)["value"].to_numpy(),
    ):
        for ks in ((1, 3, 5), (5, 1), 3):
            want = call(Y, top, ks).tobytes()
            assert call(hit, None, ks).tobytes() == want
            assert call(counts, None, ks).tobytes() == want
    assert labelwise.hit_labels(counts, ks=(1, 3, 5)) is counts.hit_labels
    assert labelwise.hit_labels(hit, ks=(1, 3, 5)) is hit
    tested = (m.binned_macro_f1(*of, 3, label_counts=trained, over="test") for of in ((Y, top), (counts, None)))
    assert next(tested).equals(next(tested))
    with refused("top", match="HitLabels"):
        m.macro_f1(hit, top, 1)
    with pytest.raises(ArgumentError, match="over='test'"):
        m.binned_macro_f1(hit, ks=3, label_counts=trained, over="test")


def test_labels_with_very_many_hits_need_no_table_up_to_there():
    from xcrepro.core.accumulators.block import Block
    from xcrepro.core.accumulators.labels import PreparedLabels

    prepared = PreparedLabels(Block(TRUTH, TOP, 3), (1, 3))
    few, many = (prepared.count(np.array([3 * n, n])) for n in (1, 2**40))
    assert m.label_entropy(many, ks=(1, 3)).tobytes() == m.label_entropy(few, ks=(1, 3)).tobytes()
    for hit in (few, many):
        size = hit.n_rows // 4
        found = [(h.tolist(), n.tolist()) for h, n in labelwise.histograms(hit)]
        assert found == [([3 * size], [1]), ([size, 3 * size], [1, 2])]


def test_a_label_that_does_not_exist_is_refused_not_written_to():
    bad = xc.TopK(np.array([[0, 9]], np.int32), np.zeros((1, 2), np.float32), 4)  # past the checks of from_ids
    with pytest.raises(ArgumentError, match="9 in row 0"):
        m.macro_f1(TRUTH[:1], bad, (1, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.macro_f1(TRUTH), "top must be given"),
        (lambda: m.macro_f1([(TRUTH, TOP), (TRUTH[:, :3], xc.TopK.from_ids([[0]] * 2, n_labels=3))], ks=1), "4 labels"),
        (lambda: m.binned_macro_f1(TRUTH, TOP, 1, label_counts=[1, 2, 0.5, 0]), "label_counts"),
        (lambda: m.binned_macro_f1(TRUTH, TOP, 1, label_counts=[1] * 4, edges=(10, 1)), "edges"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


# ---------------------------------------------------------------- bins and improvement


def test_bins_are_reevals_with_the_untrained_apart():
    _, names = labelwise.frequency_bins([0] * 3, 3)
    assert names == ["0", *BINS]
    bins, names = labelwise.frequency_bins([0, 1, 9, 10, 99, 100, 999, 1000, 10**6], 9)
    assert bins.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert labelwise.frequency_bins([0, 1, 2, 3], 4, (1, 2, 3))[1] == ["0", "1", "2", "3+"]
    assert labelwise.frequency_bins([0], 1, 5)[1] == ["0-4", "5+"]


# ---------------------------------------------------------------- threads and peers


@pytest.fixture(scope="module")
def large():
    """Enough rows for several threads; labels drawn with a long tail, some never."""
    rng = np.random.default_rng(7)
    n, n_labels = 60_000, 3_000
    ids = np.argsort(rng.random((n, 12)), axis=1) * 250 + np.minimum(rng.zipf(1.3, (n, 12)) - 1, 249)
    labels = np.sort(ids[:, [0, 2, 5, 8]], axis=1).ravel()
    Y = sp.csr_matrix((np.ones(n * 4, np.float32), labels, np.arange(0, 4 * n + 1, 4)), (n, n_labels))
    return Y, xc.TopK.from_ids(ids[:, :5], n_labels=n_labels)


def binary(top, k, shape):
    ids = np.sort(top.ids[:, :k], axis=1)
    return sp.csr_matrix((np.ones(ids.size, np.float32), ids.ravel(), np.arange(0, ids.size + 1, k)), shape)


def test_scikit_learn_agrees(large):
    from sklearn.metrics import precision_recall_fscore_support

    Y, top = large
    for k in (1, 3, 5):
        want = precision_recall_fscore_support(Y, binary(top, k, Y.shape), beta=2, average="macro", zero_division=0)
        got = [m.macro_precision, m.macro_recall, lambda *a: m.macro_f_beta(*a, beta=2.0)]
        np.testing.assert_allclose([metric(Y, top, k)[0] for metric in got], want[:3], rtol=1e-12)


def test_napkinxc_agrees_on_coverage_and_macro_f1(real_data):
    """Its macro-F1 ignores k and divides by the largest id met plus 1, which here is L."""
    import napkinxc.metrics as theirs

    folder = real_data("bibtex") / "sample_score"
    Y = xc.data.read_sparse(folder / "tst_X_Y.txt")
    top = xc.TopK.from_scores(xc.data.read_sparse(folder / "score_mat.txt"), 5)
    ks = (1, 2, 3, 4, 5)
    pairs = naive.pairs_of(top)
    np.testing.assert_allclose(m.coverage(Y, top, ks, over="test"), theirs.coverage_at_k(Y, pairs, 5))
    assert Y.getnnz(axis=0)[-1] > 0  # so the largest id met is L - 1
    np.testing.assert_allclose(m.macro_f1(Y, top, ks), theirs.macro_f1_measure_at_k(Y, pairs, zero_division=0))
