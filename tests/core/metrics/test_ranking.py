"""Ranking metrics against the slow oracles, at the edges, and on real data with known answers."""

from __future__ import annotations

import functools
import inspect
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import coverage_error, label_ranking_average_precision_score

import xcrepro as xc
from tests import naive
from xcrepro.core.accumulators.block import Block
from xcrepro.core.accumulators.rows import RowSums
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import ranking as kernel
from xcrepro.core.metrics import registry
from xcrepro.core.truth import as_truth

KS = (1, 2, 3, 5)


@st.composite
def cases(draw):
    """A small ranking with weights of the labels and complete label counts of the rows."""
    n_labels, truth, rows = draw(naive.small_rankings(12))
    weight = draw(st.lists(st.floats(1.0, 50.0), min_size=n_labels, max_size=n_labels))
    return n_labels, truth, rows, weight, [len(y) + draw(st.integers(0, 3)) for y in truth]


def compare(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(0, 1000))
def test_hits_among_few_and_many_labels(size, seed):
    """Long rows are bisected, short ones walked along."""
    rng = np.random.default_rng(seed)
    relevant = rng.permutation(70)[:size]
    ids = rng.permutation(70)[None]
    truth = as_truth(sp.csr_matrix((np.ones(size), ([0] * size, relevant)), shape=(1, 70)))
    assert truth.hits(ids.astype(np.int32)).astype(bool).tolist() == [[label in {*relevant} for label in ids[0]]]


@settings(max_examples=100, deadline=None)
@given(cases())
def test_options_that_no_metric_of_the_registry_has(case):
    """test_properties holds all others to their oracles."""
    n_labels, truth, rows, weight, n_relevant = case
    Y, top = naive.as_matrices(n_labels, truth, rows)
    m, w, n = xc.metrics, np.array(weight), np.array(n_relevant)

    def want(oracle, *args, **kwargs):
        return [oracle(truth, rows, k, *args, **kwargs) for k in KS]

    given = {"inverse_propensity": w, "normalize": False, "ideal": "k"}
    compare(m.psndcg(Y, top, KS, **given), want(naive.psndcg, weight, False, "k"))
    for beta, denominator in itertools.product((0.5, 2.0), ("set", "printed")):
        f = functools.partial(m.f_beta, Y, top, KS, beta=beta, denominator=denominator)
        compare(f(), want(naive.f_beta, beta, denominator))
        compare(f(inverse_propensity=w, n_relevant=n), want(naive.f_beta, beta, denominator, weight, n_relevant))


def test_the_callers_arrays_are_untouched():
    Y, w = sp.csr_matrix(TRUTH), np.full(4, 2.0)
    before = [part.tobytes() for part in (Y.data, Y.indices, Y.indptr, w)]
    xc.evaluate(Y, TOP, (1, 3), inverse_propensity=w)
    assert [part.tobytes() for part in (Y.data, Y.indices, Y.indptr, w)] == before


# ---------------------------------------------------------------- the rows of the table of peers: each a decision


TRUTH = np.array([[1, 0, 1, 0], [0, 1, 0, 0]], np.float32)
TOP = xc.TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_truth_of_every_kind_gives_one_answer(kind, dtype):
    assert xc.metrics.precision(kind(TRUTH.astype(dtype)), TOP, 1).tolist() == [0.5]


def test_values_other_than_1_count_once_and_stored_zeros_not_at_all():
    Y = sp.csr_matrix(TRUTH)
    Y.data[:] = 3.0
    assert xc.metrics.precision(Y, TOP, 1) == 0.5
    Y.data[0] = 0.0  # row 0, label 0: stored, not relevant
    assert xc.metrics.precision(Y, TOP, 1) == 0.0
    assert xc.metrics.recall(Y, TOP, 3).tolist() == [1.0]  # |y| of row 0 is 1, not 2


def test_duplicates_and_disorder_in_the_truth_count_once():
    Y = sp.csr_matrix((np.ones(4, np.float32), [2, 0, 0, 1], [0, 3, 4]), shape=(2, 4))
    assert xc.metrics.precision(Y, TOP, 1) == 0.5
    assert xc.metrics.recall(Y, TOP, 1).tolist() == [0.25]
    assert Y.indices.tolist() == [2, 0, 0, 1]  # the caller's order stands


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_truth_that_is_neither_relevant_nor_not_is_refused(value):
    Y = sp.csr_matrix(TRUTH)
    Y.data[2] = value
    with pytest.raises(ArgumentError, match=r"row 1, label 1"):
        xc.metrics.precision(Y, TOP)
    with pytest.raises(ArgumentError, match=r"row 1, label 1"):
        xc.metrics.precision(np.where(TRUTH > 0, Y.toarray(), 0), TOP)


def test_a_label_id_outside_the_truth_is_refused():
    Y = sp.csr_matrix(TRUTH)
    Y.indices[0] = 7
    with pytest.raises(ArgumentError, match="column 7 in row 0"):
        xc.metrics.precision(Y, TOP)


THREE = xc.TopK.from_ids([[0]] * 2, n_labels=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xc.metrics.precision(TRUTH, TOP.rows([0]), 1), "2 rows of Y"),
        (lambda: xc.metrics.precision(TRUTH[:, :3], TOP, 1), "3 labels of Y"),
        (lambda: xc.metrics.precision(TRUTH, TOP, (1, 5)), "3 places"),
        (lambda: xc.metrics.precision(TRUTH, TRUTH, 1), "must be a TopK"),
        (lambda: xc.metrics.precision(TRUTH[:0], TOP.rows(slice(0, 0)), 1), "at least one row"),
        (lambda: xc.metrics.precision([(TRUTH, TOP), (TRUTH[:, :3], THREE)], None, 1), "4 labels in every block"),
        (lambda: xc.metrics.mrr(TRUTH, TOP, 1, inverse_propensity=np.ones(4), n_relevant=[1, 1]), "over"),
        (lambda: xc.metrics.recall(TRUTH, TOP, 1, n_relevant=[1, 1]), "n_relevant"),
        *((lambda ks=ks: xc.metrics.precision(TRUTH, TOP, ks), "ks") for ks in (0, (), (1, 1), (1.5,), "3", [[1]])),
        *(
            (lambda w=w: xc.metrics.psp(TRUTH, TOP, 1, inverse_propensity=w), "inverse_propensity")
            for w in (np.ones(3), np.array([1, 1, np.nan, 1]), np.array([1, 0, 1, 1]), np.ones((2, 2)), -np.ones(4))
        ),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_each_function_is_its_metric_of_the_registry():
    """Those that can be propensity-scored are also that, under the name with PS."""
    w, n, m, also = np.array([2.0, 4.0, 1.5, 1.0]), [3, 2], xc.metrics, functools.partial
    weighed = {"inverse_propensity": w}
    complete, bare = weighed | {"n_relevant": n}, weighed | {"normalize": False}
    scored = {"R": m.recall, "MRR (relevant)": also(m.mrr, over="relevant"), "ADG": m.adg, "F": m.f_beta}
    scored |= {"F (printed)": also(m.f_beta, denominator="printed")}
    calls = scored | {f"PS-{name}": also(call, **complete) for name, call in scored.items()}
    calls |= {"Hamming": m.hamming_loss, "PS-Hamming": also(m.hamming_loss, **weighed)}
    calls |= {"PSP": also(m.psp, **weighed), "PSP (bare)": also(m.psp, **bare)}
    calls |= {"PSnDCG": also(m.psndcg, **weighed), "PSnDCG (ideal k)": also(m.psndcg, **weighed, ideal="k")}
    calls |= {"PSnDCG (bare)": also(m.psndcg, **bare), "PSnDCG (bare, ideal k)": also(m.psndcg, **bare, ideal="k")}
    calls |= {"P": m.precision, "P (predicted)": also(m.precision, denominator="predicted"), "MRR": m.mrr}
    calls |= {"nDCG": m.ndcg, "nDCG (ideal k)": also(m.ndcg, ideal="k"), "AP": m.average_precision}
    calls |= {"LRAP": m.lrap, "LRAP (at most)": also(m.lrap, beyond="next"), "coverage error": m.coverage_error}
    calls |= {"coverage error (at least)": also(m.coverage_error, beyond="next")}
    calls |= {"micro-F1": m.micro_f1, "micro-P": m.micro_precision, "micro-R": m.micro_recall}
    calls |= {"abandonment": m.abandonment, "served": also(m.abandonment, counts="served")}
    calls |= {"macro-P": m.macro_precision, "macro-R": m.macro_recall, "macro-F1": m.macro_f1}
    calls |= {"label entropy": m.label_entropy, "unique labels": m.unique_labels, "coverage": m.coverage}
    calls |= {f"coverage ({over})": also(m.coverage, over=over) for over in ("test", "reachable")}
    assert {*calls} <= {*registry.METRICS}  # a metric may have no function of its own
    table = xc.evaluate(TRUTH, TOP, (1, 3), w, n_relevant=n, metrics=[*calls])
    assert table.columns.tolist() == ["metric", "k", "value"]
    assert len(table) == 2 * table.metric.nunique()
    for name, group in table.groupby("metric"):
        assert group.value.tolist() == calls[name](TRUTH, TOP, (1, 3)).tolist(), name
    trained = [120, 3, 9, 0][: TRUTH.shape[1]]
    found = xc.evaluate(TRUTH, TOP, (3, 1), label_counts=trained, metrics="binned macro-F1")
    in_bins = {name.removeprefix("macro-F1 (")[:-1]: group.value.tolist() for name, group in found.groupby("metric")}
    table = m.binned_macro_f1(TRUTH, TOP, (3, 1), label_counts=trained).dropna()
    assert in_bins == {name: group.value.tolist() for name, group in table.groupby("bin")}


def test_every_kernel_column_has_its_number_and_serves_a_metric():
    columns = {name: v for name, v in inspect.getmembers(kernel) if name.isupper() and isinstance(v, int)}
    for name in ("HIERARCHY", "WEIGHTED", "GIVEN_TRUTH", "SHARE", "WORTH", "CHANCE", "NODES", "SHARED"):
        del columns[name]  # where a kind begins; what an array holds
    assert len({*columns.values()}) == len(columns)
    used = {column for metric in registry.METRICS.values() for column in metric.columns}
    assert used == {*columns.values()}


def test_a_column_that_the_kernel_does_not_know_gives_no_number():
    sums = RowSums([1], [49])
    with pytest.raises(ArgumentError, match="finite"):
        sums.add(Block(TRUTH, TOP, 1))


def test_lrap_and_coverage_error_are_scikit_learns_on_full_lists_and_on_cut_ones():
    rng = np.random.default_rng(5)
    Y, scores = (rng.random((60, 9)) < 0.3).astype(int), rng.permutation(540).reshape(60, 9) / 540
    Y[:, 0] |= Y.sum(axis=1) == 0  # it gives 1 to rows without labels
    for k in (1, 3, 9):
        top = xc.TopK.from_scores(scores, k)
        cut = np.where(top.to_csr().toarray() > 0, scores, -1)  # what is not listed ties for the last place
        for theirs, ours in ((label_ranking_average_precision_score, "lrap"), (coverage_error, "coverage_error")):
            low, high = sorted(getattr(xc.metrics, ours)(Y, top, k, beyond=end)[0] for end in ("last", "next"))
            assert (low if ours == "lrap" else high) == pytest.approx(theirs(Y, cut), abs=1e-12)
            assert low - 1e-12 <= theirs(Y, scores) <= high + 1e-12
        assert k < 9 or low == high


# ---------------------------------------------------------------- peers and published values


@pytest.fixture(scope="module")
def sample(real_data):
    folder = real_data("bibtex") / "sample_score"
    scores = xc.data.read_sparse(folder / "score_mat.txt")
    Y = xc.data.read_sparse(folder / "tst_X_Y.txt")
    weights = np.loadtxt(folder / "inv_prop.txt")
    return scores, Y, weights, np.loadtxt(folder / "train_label_freq.txt")


def test_sample_scores_of_the_repository_to_the_last_digit(sample):
    """What the repository's own scripts print; ties to the lowest id decide 2,298 of the 2,515 rows."""
    scores, Y, _, counts = sample
    top, ks = xc.TopK.from_scores(scores, 5), (1, 2, 3, 4, 5)
    weights = xc.propensity.inverse(counts, 4880)
    assert xc.metrics.precision(Y, top, ks).round(6).tolist() == [0.655666, 0.494831, 0.397084, 0.333996, 0.290020]
    assert xc.metrics.ndcg(Y, top, ks).round(6).tolist() == [0.655666, 0.614014, 0.608323, 0.617895, 0.630409]
    assert xc.metrics.psp(Y, top, inverse_propensity=weights).round(6).tolist() == [0.516563, 0.542888, 0.601446]


def test_the_repositorys_inverse_propensities(sample):
    _, _, printed, counts = sample
    np.testing.assert_allclose(xc.propensity.inverse(counts, 4880, 0.55, 1.5), printed, atol=5e-10, rtol=0)


def test_napkinxc_agrees_on_clean_data(sample):
    """Same rankings in, same P, nDCG, PSP and PSnDCG out; our normalisation is theirs by default."""
    import napkinxc.metrics as theirs

    scores, Y, weights, _ = sample
    top = xc.TopK.from_scores(scores, 5)
    pairs, ks = naive.pairs_of(top), (1, 2, 3, 4, 5)
    ours = xc.metrics
    for name in ("precision", "recall", "ndcg"):
        compare(getattr(ours, name)(Y, top, ks), getattr(theirs, f"{name}_at_k")(Y, pairs))
    compare(ours.abandonment(Y, top, ks, counts="served"), theirs.abandonment_at_k(Y, pairs))
    compare(ours.psp(Y, top, ks, inverse_propensity=weights), theirs.psprecision_at_k(Y, pairs, weights))
    compare(ours.psndcg(Y, top, ks, inverse_propensity=weights), theirs.psndcg_at_k(Y, pairs, weights))
