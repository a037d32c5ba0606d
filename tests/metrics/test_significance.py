"""The macro t-test beside SciPy's, and the paired bootstrap beside one that copies the rows it drew."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import xcrepro as xc
from tests import naive
from xcrepro.errors import ArgumentError
from xcrepro.metrics import labelwise, ranking

m = xc.metrics
KS = (1, 3, 5)


@pytest.fixture(scope="module")
def twin():
    """Truth, a good and a worse ranking, train counts, inverse propensities."""
    ds = xc.twin("eurlex-4k", scale=0.1, seed=0)
    rng = np.random.default_rng(3)
    noisy = ds.test.marginals.copy()
    noisy.data = noisy.data * rng.uniform(0.2, 1.0, noisy.data.size)
    tops = [xc.TopK.from_scores(scores, 5) for scores in (ds.test.marginals, noisy)]
    return ds.test.Y, *tops, ds.label_counts, xc.propensity.inverse(ds.label_counts, ds.n_train, ds.A, ds.B)


# ---------------------------------------------------------------- macro t-test


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("over", ["all", "test"])
def test_the_t_test_is_scipys_on_each_bin(twin, alternative, over):
    Y, good, bad, trained, _ = twin
    ours, baseline = m.confusion(Y, good, KS), m.confusion(Y, bad, KS)
    tests = m.macro_t_test(ours, baseline, label_counts=trained, alternative=alternative, over=over)
    assert [(t.bin, t.k) for t in tests] == [(b, k) for b in ("0", "1-9", "10-99", "100-999", "1000+") for k in KS]
    chosen = np.full(Y.shape[1], True) if over == "all" else Y.getnnz(axis=0) > 0
    bounds = {"0": (0, 1), "1-9": (1, 10), "10-99": (10, 100), "100-999": (100, 1000), "1000+": (1000, np.inf)}
    tested = 0
    for test in tests:
        low, high = bounds[test.bin]
        labels = chosen & (trained >= low) & (trained < high)
        a, b = (naive.label_f1(Y, top, test.k)[labels] for top in (good, bad))
        assert test.labels == labels.sum()
        if test.labels:
            assert test.difference == pytest.approx((a - b).mean(), abs=1e-15)
        if test.labels <= 10:
            assert np.isnan([test.t, test.degrees, test.p]).all()
            assert not test.significant(1.1)
            continue
        if not (a - b).any():  # labels that neither gets right, as those never trained: SciPy has NaN here
            assert (test.t, test.p) == (0.0, 1.0 if alternative == "two-sided" else 0.5)
            continue
        tested += 1
        want = stats.ttest_rel(a, b, alternative=alternative)
        assert (test.t, test.p, test.degrees) == pytest.approx((want.statistic, want.pvalue, want.df), rel=1e-9)
    assert tested >= 6


def test_the_t_test_over_all_labels_and_its_level(twin):
    Y, good, bad, _, _ = twin
    [test] = m.macro_t_test(m.confusion(Y, good, 5), m.confusion(Y, bad, 5))
    want = stats.ttest_rel(naive.label_f1(Y, good, 5), naive.label_f1(Y, bad, 5))
    assert (test.bin, test.k, test.labels) == ("all", 5, Y.shape[1])
    assert test.p == pytest.approx(want.pvalue, rel=1e-9)
    assert test.significant(test.p * 1.01)
    assert not test.significant(test.p)
    [other] = m.macro_t_test(m.confusion(Y, bad, 5), m.confusion(Y, good, 5))
    assert (other.t, other.p, other.difference) == (-test.t, test.p, -test.difference)


def test_ten_labels_are_not_tested_and_eleven_are():
    for n, tested in ((10, False), (11, True)):
        Y = np.eye(n)
        right, wrong = (xc.TopK.from_ids((np.arange(n)[:, None] + shift) % n, n_labels=n) for shift in (0, 1))
        half = xc.TopK.from_ids(np.arange(n)[:, None] // 2 * 2, n_labels=n)
        [test] = m.macro_t_test(m.confusion(Y, right, 1), m.confusion(Y, half, 1))
        assert test.labels == n
        assert np.isfinite(test.p) == tested
        [lower] = m.macro_t_test(m.confusion(Y, right, 1), m.confusion(Y, half, 1), more_than=9)
        assert np.isfinite(lower.p)
        # Every label differs by the same 1: no spread, no doubt.
        [sure] = m.macro_t_test(m.confusion(Y, right, 1), m.confusion(Y, wrong, 1), more_than=2)
        assert (sure.t, sure.p, sure.difference) == (np.inf, 0.0, 1.0)


def test_no_difference_is_no_evidence(twin):
    Y, good, _, _, _ = twin
    counts = m.confusion(Y, good, 5)
    for alternative, p in (("two-sided", 1.0), ("greater", 0.5), ("less", 0.5)):
        [test] = m.macro_t_test(counts, counts, alternative=alternative)
        assert (test.t, test.p, test.difference) == (0.0, p, 0.0)


def test_the_t_test_keeps_its_level():
    """Two methods that are equally good: p < 0.05 in about 5 of 100 pairs."""
    rng = np.random.default_rng(0)
    n, n_labels, runs = 60, 40, 300
    ps = []
    for _ in range(runs):
        Y = rng.random((n, n_labels)) < 0.2
        tops = [xc.TopK.from_scores(rng.random((n, n_labels)), 5) for _ in range(2)]
        ps.append(m.macro_t_test(*(m.confusion(Y, top, 5) for top in tops))[0].p)
    assert 0.02 < np.mean(np.array(ps) < 0.05) < 0.09


# ---------------------------------------------------------------- paired bootstrap


def test_each_sample_is_what_copying_the_drawn_rows_gives(twin):
    """The quantiles and p come out of 20 samples whose rows are drawn here again and evaluated as matrices."""
    Y, good, bad, _, w = twin
    rows = np.arange(90)
    Y, good, bad = Y[rows], good.rows(rows), bad.rows(rows)
    full = np.asarray(Y.getnnz(axis=1)) + 1
    names = [*ranking.FORMULAS, *labelwise.FORMULAS]
    got = m.paired_bootstrap(
        Y, good, bad, (5, 1), metrics=names, samples=20, seed=4, inverse_propensity=w, n_relevant=full, confidence=0.8
    )
    assert [(one.metric, one.k) for one in got] == [(name, k) for name in names for k in (5, 1)]

    def all_values(which):
        values = []
        for top in (good, bad):
            table = xc.evaluate(Y[which], top.rows(which), (5, 1), w, n_relevant=full[which], metrics=names)
            values.append(table.value.to_numpy())
        return np.array(values)

    here = all_values(rows)
    drawn = np.array([all_values(np.random.default_rng([4, s]).integers(90, size=90)) for s in range(20)])
    differences = drawn[:, 0] - drawn[:, 1]
    low, high = np.quantile(differences, [0.1, 0.9], axis=0)
    for i, one in enumerate(got):
        assert (one.ours, one.baseline) == pytest.approx(tuple(here[:, i]), rel=1e-9, abs=1e-12), one
        assert one.difference == one.ours - one.baseline
        assert (one.low, one.high) == pytest.approx((low[i], high[i]), rel=1e-9, abs=1e-12), one
        sides = np.sum(differences[:, i] < -1e-12), np.sum(differences[:, i] > 1e-12)
        assert one.p == pytest.approx(min(1.0, 2 * (1 + 20 - max(sides)) / 21)), one


def test_same_seed_same_bits_with_any_number_of_threads(twin, monkeypatch):
    Y, good, bad, _, _ = twin
    results = []
    for count, seed in (("1", 0), ("2", 0), ("5", 0), ("2", 1)):
        monkeypatch.setenv("XCREPRO_THREADS", count)
        results.append(m.paired_bootstrap(Y, good, bad, metrics=("P", "macro-F1"), samples=64, seed=seed))
    assert results[0] == results[1] == results[2]
    assert results[0] != results[3]


def test_the_interval_agrees_with_theory_for_a_mean(twin):
    """P@1 is a mean of rows: the samples' spread is s / sqrt(n)."""
    Y, good, bad, _, _ = twin
    hits = [np.asarray(Y[np.arange(len(top)), top.ids[:, 0]]).ravel() for top in (good, bad)]
    error = (hits[0] - hits[1]).std() / np.sqrt(len(good))
    [one] = m.paired_bootstrap(Y, good, bad, 1, samples=2000)
    assert one.difference == pytest.approx(np.mean(hits[0] - hits[1]))
    assert (one.high - one.low) == pytest.approx(2 * 1.96 * error, rel=0.1)
    [wider] = m.paired_bootstrap(Y, good, bad, 1, samples=2000, confidence=0.99)
    assert wider.low < one.low < one.difference < one.high < wider.high


def test_p_of_equal_and_of_clearly_different_methods(twin):
    Y, good, _, _, _ = twin
    for one in m.paired_bootstrap(Y, good, good, metrics=("P", "coverage"), samples=50):
        assert (one.difference, one.low, one.high, one.p) == (0.0, 0.0, 0.0, 1.0)
    nothing = xc.TopK.from_ids(np.full((len(good), 5), -1), n_labels=Y.shape[1])
    [one] = m.paired_bootstrap(Y, good, nothing, 1, samples=99)
    assert one.p == 2 / 100
    [swapped] = m.paired_bootstrap(Y, nothing, good, 1, samples=99)
    assert (swapped.difference, swapped.low, swapped.p) == (-one.difference, -one.high, one.p)


# ---------------------------------------------------------------- jackknife


def test_the_jackknife_of_a_mean_is_its_standard_error():
    """One row a block: the jackknife of a mean is the usual standard error, s / sqrt(n)."""
    values = np.random.default_rng(0).random((20, 3))
    left = np.array([values[keep].mean(axis=0) for keep in m.jackknife_blocks(20)])
    np.testing.assert_allclose(m.jackknife_error(left), values.std(axis=0, ddof=1) / np.sqrt(20))


@pytest.mark.parametrize(("n", "blocks", "number"), [(43, 20, 20), (7, 20, 7), (7, 3, 3), (0, 20, 0)])
def test_each_row_is_left_out_once(n, blocks, number):
    left_out = [np.setdiff1d(np.arange(n), keep) for keep in m.jackknife_blocks(n, blocks)]
    assert len(left_out) == number
    assert [row for block in left_out for row in block] == list(range(n))
    assert not left_out or max(map(len, left_out)) - min(map(len, left_out)) <= 1


def test_nothing_of_the_caller_is_changed(twin):
    Y, good, bad, _, w = twin
    before = [part.tobytes() for part in (Y.data, Y.indices, Y.indptr, good.ids, bad.ids, w)]
    m.paired_bootstrap(Y, good, bad, metrics=("PSP", "macro-F1"), samples=20, inverse_propensity=w)
    m.macro_t_test(m.confusion(Y, good), m.confusion(Y, bad))
    assert [part.tobytes() for part in (Y.data, Y.indices, Y.indptr, good.ids, bad.ids, w)] == before


Y2 = sp.csr_matrix(np.array([[1, 0, 1], [0, 1, 0]], np.float32))
T2 = xc.TopK.from_ids([[0, 1], [2, 0]], n_labels=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.macro_t_test(T2, T2), "ours must be a Counts"),
        (lambda: m.macro_t_test(m.confusion(Y2, T2, 1), T2), "baseline must be a Counts"),
        (lambda: m.macro_t_test(m.confusion(Y2, T2, 1), m.confusion(Y2, T2, 2)), "baseline must have the ks"),
        (lambda: m.macro_t_test(m.confusion(Y2, T2, 1), m.confusion(Y2[::-1][:1], T2.rows([0]), 1)), "the same truth"),
        (lambda: m.macro_t_test(*[m.confusion(Y2, T2, 1)] * 2, alternative="better"), "alternative"),
        (lambda: m.macro_t_test(*[m.confusion(Y2, T2, 1)] * 2, more_than=0), "more_than"),
        (lambda: m.macro_t_test(*[m.confusion(Y2, T2, 1)] * 2, over="seen"), "over"),
        (lambda: m.macro_t_test(*[m.confusion(Y2, T2, 1)] * 2, label_counts=[1]), "label_counts"),
        (
            lambda: m.paired_bootstrap(Y2, T2, T2, 1, metrics=("P", "p")),
            r"metrics must be names of metrics; got \['p'\]",
        ),
        (lambda: m.paired_bootstrap(Y2, T2, T2, 1, metrics=()), "metrics"),
        (lambda: m.paired_bootstrap(Y2, T2, T2, 1, metrics="PSP"), "inverse_propensity must be given"),
        (lambda: m.paired_bootstrap(Y2, T2, T2, 1, samples=19), "samples"),
        (lambda: m.paired_bootstrap(Y2, T2, T2, 1, seed=-1), "seed"),
        (lambda: m.paired_bootstrap(Y2, T2, T2, 1, seed=0.5), "seed"),
        (lambda: m.paired_bootstrap(Y2, T2, T2, 1, confidence=95), "confidence"),
        (lambda: m.paired_bootstrap(Y2, T2, T2, 3), "2 places"),
        (lambda: m.paired_bootstrap(Y2, T2, T2.rows([0]), 1), "2 rows of Y"),
        (lambda: m.paired_bootstrap(Y2[:0], T2.rows([]), T2.rows([]), 1), "at least one row"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
