"""The t-test beside SciPy's, draws and parts of the rows beside copies of them, and small simulations of what they promise."""

from __future__ import annotations

import dataclasses
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import xcrepro as xc
from benchmarks import intervals
from tests import naive
from tests.core.kernels.test_random import splitmix
from xcrepro.core import arithmetic
from xcrepro.core.accumulators.rows import poisson_weights
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import resample as kernel
from xcrepro.core.metrics import registry, replicates, significance
from xcrepro.core.truth import as_truth

m = xc.metrics
KS = (1, 3, 5)
CALIBRATION = [*registry.names("pairs", "scores")]
CALIBRATION.remove("smECE")  # on a grid of its own: tested apart


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


def in_twos(n_labels: int) -> xc.Hierarchy:
    """Each two labels below a node that is none."""
    return xc.Hierarchy.from_pairs([(label, n_labels + label // 2) for label in range(n_labels)], n_labels)


@pytest.fixture
def quiet():
    """Where a test is about something else than shared errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", m.SharedErrorsWarning)
        yield


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("over", ["all", "test"])
def test_the_t_test_is_scipys_on_each_bin(twin, over):
    Y, good, bad, trained, _ = twin
    how = {"label_counts": trained, "over": over, "confidence_level": 0.9}
    tests = m.macro_t_test(Y, good, bad, KS, metrics="binned macro-F1", n_resamples=20, **how)
    chosen = np.full(Y.shape[1], True) if over == "all" else Y.getnnz(axis=0) > 0
    bounds = {"0": (0, 1), "1-9": (1, 10), "10-99": (10, 100), "100-999": (100, 1000), "1000+": (1000, np.inf)}
    there = [b for b, (low, high) in bounds.items() if ((trained >= low) & (trained < high)).any()]
    assert [(t.metric, t.k) for t in tests] == [(f"macro-F1 ({b})", k) for b in there for k in KS]
    tested = 0
    for test in tests:
        low, high = bounds[test.metric[10:-1]]
        labels = chosen & (trained >= low) & (trained < high)
        a, b = (naive.label_f1(Y, top, test.k)[labels] for top in (good, bad))
        assert (test.unit, test.units) == ("labels", labels.sum())
        if test.units:
            assert test.difference == pytest.approx((a - b).mean(), abs=1e-15)
        if test.units <= 10:
            assert np.isnan([test.t, test.degrees, test.p, test.low]).all()
            assert not test.significant(1.1)
            continue
        if not (a - b).any():  # labels that neither gets right, as those never trained: SciPy has NaN here
            assert (test.t, test.p) == (0.0, 1.0)
            continue
        tested += 1
        want = stats.ttest_rel(a, b)
        assert (test.t, test.p, test.degrees) == pytest.approx((want.statistic, want.pvalue, want.df), rel=1e-9)
        ends = stats.ttest_rel(a, b).confidence_interval(0.9)
        assert (test.low, test.high) == pytest.approx((ends.low, ends.high), rel=1e-9)
    assert tested >= 6


def per_label(Y, top, k, name):
    tp, predicted = np.zeros(Y.shape[1]), np.zeros(Y.shape[1])
    for labels, row in zip(Y.toarray() > 0, top.ids[:, :k], strict=True):
        predicted[row] += 1
        tp[row] += labels[row]
    true = (Y.toarray() > 0).sum(axis=0)
    below = {"macro-P": predicted, "macro-R": true, "coverage": tp, "coverage (test)": tp}[name]
    return tp / np.maximum(below, 1), true > 0


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", ["macro-P", "macro-R", "coverage", "coverage (test)"])
def test_the_other_averages_over_labels_pair_labels(twin, name):
    Y, good, bad, _, _ = twin
    for test in m.macro_t_test(Y, good, bad, (1, 5), metrics=name, n_resamples=20):
        (a, there), (b, _) = (per_label(Y, top, test.k, name) for top in (good, bad))
        if name == "coverage (test)":
            a, b = a[there], b[there]
        want = stats.ttest_rel(a, b)
        assert (test.unit, test.units) == ("labels", a.size)
        assert (test.t, test.p) == pytest.approx((want.statistic, want.pvalue), rel=1e-9)


def test_means_over_rows_pair_rows(twin):
    """What is called a mean over rows is the mean of its own values on the rows alone."""
    Y, good, bad, _, w = twin
    full = np.asarray(Y.getnnz(axis=1)) + 1
    how = {"inverse_propensity": w, "n_relevant": full, "hierarchy": in_twos(Y.shape[1])}
    names, n = registry.names("rows"), 40
    tops, how["n_relevant"] = [top.rows(range(n)) for top in (good, bad)], full[:n]
    tests = m.macro_t_test(Y[:n], *tops, 3, metrics=names, **how)
    ratios = {test.metric for test in tests if test.unit == "blocks of rows"}
    weighed = {"PSP", "PSnDCG", "PSnDCG (ideal k)", "LRAP (label-weighted)"}
    assert ratios == {"micro-F1", "micro-P", "micro-R", "micro-hP", "micro-hR", "micro-hF1", *weighed}

    def alone(top, i):
        own = how | {"n_relevant": full[i : i + 1], "metrics": names}
        return xc.evaluate(Y[i], top.rows([i]), 3, **own).value.to_numpy()

    rows = np.array([[alone(top, i) for i in range(n)] for top in tops])
    for i, test in enumerate(tests):
        if test.metric not in ratios:
            differ = (rows[0, :, i] != rows[1, :, i]).any()  # SciPy has NaN where nothing does
            want = tuple(stats.ttest_rel(*rows[:, :, i])) if differ else (0.0, 1.0)
            assert test.difference == pytest.approx((rows[0, :, i] - rows[1, :, i]).mean(), abs=1e-12)
            assert (test.t, test.p, test.units) == pytest.approx((*want, n), rel=1e-6)


def test_everything_else_is_jackknifed_over_blocks_of_rows(twin):
    Y, good, bad, _, w = twin
    names = ["PSP", "micro-F1", "label entropy", "ECE", "ACE", "NLL"]
    tests = m.macro_t_test(Y, good, bad, (1, 5), metrics=names, inverse_propensity=w)

    def values(keep):
        parts = []
        for top in (good, bad):
            parts.append(xc.evaluate(Y[keep], top.rows(keep), (1, 5), w, metrics=names[:3]).value.tolist())
            table = m.calibration_table(Y[keep], top.rows(keep), (1, 5), metrics=names[3:])
            parts[-1] += table.value.tolist()
        return np.subtract(*parts)

    n = Y.shape[0]
    edges = np.linspace(0, n, 21).astype(int)
    left = [values(np.r_[0:low, high:n]) for low, high in itertools.pairwise(edges)]
    for test, difference, error in zip(tests, values(np.arange(n)), naive.jackknife_error(left), strict=True):
        assert (test.unit, test.units, test.degrees) == ("blocks of rows", 20, 19)
        assert test.difference == pytest.approx(difference, abs=1e-12)
        assert test.t == pytest.approx(difference / error, rel=1e-6)
        assert test.p == pytest.approx(2 * stats.t(19).sf(abs(test.t)))


@pytest.mark.usefixtures("quiet")
def test_the_t_test_over_all_labels_and_its_level(twin):
    Y, good, bad, _, _ = twin
    [test] = m.macro_t_test(Y, good, bad, 5)
    want = stats.ttest_rel(naive.label_f1(Y, good, 5), naive.label_f1(Y, bad, 5))
    assert (test.metric, test.k, test.units) == ("macro-F1", 5, Y.shape[1])
    assert test.p == pytest.approx(want.pvalue, rel=1e-9)
    assert test.significant(test.p * 1.01)
    assert not test.significant(test.p)
    assert dataclasses.replace(test, p=0.0099).significant()  # reeval's stars
    assert not dataclasses.replace(test, p=0.01).significant()
    [other] = m.macro_t_test(Y, bad, good, 5)
    assert (other.t, other.p, other.difference) == (-test.t, test.p, -test.difference)
    assert (other.low, other.high) == (-test.high, -test.low)


def test_ten_labels_are_not_tested_and_eleven_are():
    for n, tested in ((10, False), (11, True)):
        Y = np.eye(n)
        right, wrong = (xc.TopK.from_ids((np.arange(n)[:, None] + shift) % n, n_labels=n) for shift in (0, 1))
        half = xc.TopK.from_ids(np.arange(n)[:, None] // 2 * 2, n_labels=n)
        [test] = m.macro_t_test(Y, right, half, 1)
        assert test.units == n
        assert np.isfinite(test.p) == tested
        [lower] = m.macro_t_test(Y, right, half, 1, more_than=9)
        assert np.isfinite(lower.p)
        # Every label differs by the same 1: no spread, no doubt.
        [sure] = m.macro_t_test(Y, right, wrong, 1, more_than=2)
        assert (sure.t, sure.p, sure.difference, sure.low, sure.high) == (np.inf, 0.0, 1.0, 1.0, 1.0)


def test_no_difference_is_no_evidence(twin):
    Y, good, _, _, _ = twin
    for test in m.macro_t_test(Y, good, good, 5, metrics=["macro-F1", "P", "ECE"]):
        assert (test.t, test.p, test.difference) == (0.0, 1.0, 0.0)
        assert np.isnan(test.shared)


def test_shared_errors_are_found_and_told():
    """Rows that are misread lose all their labels: a warning that names the test. The same number of misses, label by
    label: none."""
    found = {}
    for shared in ("rows", "independent"):
        Y, (one, other) = intervals.equal_methods(1000, shared, np.random.default_rng(3))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found[shared] = m.macro_t_test(Y, one, other, (3, 5), n_resamples=200)
        assert [w.category for w in caught] == [m.SharedErrorsWarning] * (shared == "rows")
        if caught:
            text = str(caught[0].message)
            assert "macro-F1@3, macro-F1@5" in text
            assert "paired_bootstrap" in text
            assert caught[0].filename == __file__
    assert all(test.shared > 3 for test in found["rows"])
    assert all(abs(test.shared) < 3 for test in found["independent"])


def test_labels_that_differ_alike_are_counted_pair_by_pair():
    """``shared`` beside its definition over all pairs of labels."""
    rng = np.random.default_rng(5)
    Y = rng.random((40, 15)) < rng.uniform(0.05, 0.6, 15)
    d, c = rng.normal(size=15), Y.sum(axis=0)
    paired = rng.random(15) < 0.8
    got = significance._Together(as_truth(Y)).alike(d[paired], paired, 400, 7)
    met, z = paired & (c > 0), np.zeros(15)
    for exponent in range(10):
        stratum = met & (c >= 2**exponent) & (c < 2 ** (exponent + 1))
        z[stratum] = d[stratum] - d[stratum].mean() if stratum.any() else 0

    def agreement(z):
        pairs = [(a, b) for a in range(15) for b in range(15) if a != b and met[a] and met[b]]
        return sum((Y[:, a] & Y[:, b]).sum() / np.sqrt(c[a] * c[b]) * z[a] * z[b] for a, b in pairs)

    rng = np.random.default_rng(7)
    signs = [rng.choice((-1.0, 1.0), 15) for _ in range(400)]
    assert got == pytest.approx(agreement(z) / np.std([agreement(z * s) for s in signs]), rel=1e-9)
    # No two labels in a row: nothing to compare.
    assert np.isnan(significance._Together(as_truth(np.eye(15))).alike(d, np.full(15, True), 20, 0))


# ---------------------------------------------------------------- many comparisons


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # 3 x 0.01, the one before, 2 x 0.03, 4 x 0.005
        ([np.nan, 0.02, 0.04], [np.nan, 0.04, 0.04]),
        ([], []),
    ],
)
def test_holm_by_hand(p, adjusted):
    np.testing.assert_allclose(m.holm(p), adjusted, rtol=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.5))
def test_holm_rejects_what_stepping_down_rejects(p, level):
    """From the smallest p on: reject while p <= level / (how many are left)."""
    rejected = set()
    for step, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[i] * (len(p) - step) > level:
            break
        rejected.add(i)
    assert {i for i, q in enumerate(m.holm(p)) if q <= level} == rejected


# ---------------------------------------------------------------- paired bootstrap


def test_each_sample_is_what_copying_the_drawn_rows_gives(twin):
    """The quantiles and p come out of 20 samples whose rows are drawn here again and evaluated as matrices."""
    Y, good, bad, _, w = twin
    rows = np.arange(90)
    Y, good, bad = Y[rows], good.rows(rows), bad.rows(rows)
    full = np.asarray(Y.getnnz(axis=1)) + 1
    names = [*registry.names("rows", "labels"), *CALIBRATION]
    about = {"inverse_propensity": w, "hierarchy": in_twos(Y.shape[1])}
    how = {"n_relevant": full, "confidence_level": 0.8, "method": "bootstrap"}
    got = m.paired_bootstrap(Y, good, bad, (5, 1), metrics=names, n_resamples=20, seed=4, **about, **how)
    assert [(one.metric, one.k) for one in got] == [(name, k) for name in names for k in (5, 1)]

    def all_values(which):
        values = []
        for top in (good, bad):
            mine = [name for name in names if name not in CALIBRATION]
            table = xc.evaluate(Y[which], top.rows(which), (5, 1), **about, n_relevant=full[which], metrics=mine)
            more = m.calibration_table(Y[which], top.rows(which), (5, 1), metrics=CALIBRATION)
            values.append([*table.value, *more.value])
        return np.array(values)

    here = all_values(rows)
    drawn = np.array([all_values(np.random.default_rng([4, s]).integers(90, size=90)) for s in range(20)])
    differences = drawn[:, 0] - drawn[:, 1]
    low, high = np.quantile(differences, [0.1, 0.9], axis=0)
    theirs = np.quantile(drawn[:, 1], [0.1, 0.9], axis=0).T
    for i, one in enumerate(got):
        assert (one.baseline_low, one.baseline_high) == pytest.approx(tuple(theirs[i]), rel=1e-9, abs=1e-12), one
        assert one.method == "bootstrap"
        assert (one.ours, one.baseline) == pytest.approx(tuple(here[:, i]), rel=1e-9, abs=1e-12), one
        assert one.difference == one.ours - one.baseline
        assert (one.low, one.high) == pytest.approx((low[i], high[i]), rel=1e-9, abs=1e-12), one
        sides = np.sum(differences[:, i] < -1e-12), np.sum(differences[:, i] > 1e-12)
        assert one.p == pytest.approx(min(1.0, 2 * (1 + 20 - max(sides)) / 21)), one


@settings(max_examples=30)  # each is fourteen loops over the pairs
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0.3, 5.0]))
def test_pairs_of_many_draws_have_the_bits_of_one_draw(seed, n, wide):
    """Beside a loop over the pairs of each draw, and the formula of its sums alone; few rows leave bins empty."""
    rng, k, n_labels = np.random.default_rng(seed), 3, 6
    ids = np.argsort(rng.random((n, n_labels)), axis=1)[:, :k].astype(np.int32)
    ids[1:][np.arange(k) >= rng.integers(0, k + 1, n - 1)[:, None]] = -1
    scores = -np.sort(-rng.beta(wide, wide, (n, k))).astype(np.float32)
    scores = np.where(ids >= 0, np.where(scores < 0.05, np.float32(0), scores), np.float32(-np.inf))
    truth = (rng.random((n, n_labels)) < 0.5).astype(np.float32)
    names = [name for name in CALIBRATION if name != "ACE"]
    system = replicates.System(
        as_truth(truth), xc.TopK(ids, scores, n_labels), np.array([1, k]), [registry.METRICS[name] for name in names],
        replicates.Options(),
    )  # fmt: skip
    times = rng.integers(0, 3, (7, n))
    got = system.values(times, names)
    for draw, weights in enumerate(times):
        for i, places in enumerate((1, k)):
            # Buckets of places are added up apart, and then joined.
            sums = [(np.zeros((kernel.ROWS, 10)), np.zeros(kernel.TOTALS)) for _ in range(2)]
            for row, place in itertools.product(range(n), range(places)):
                weight, p = float(weights[row]), float(scores[row, place])
                if ids[row, place] < 0 or weight == 0:
                    continue
                table, total = sums[place > 0]
                hit = bool(truth[row, ids[row, place]])
                b = min(int(np.float32(p) * np.float32(10)), 9)
                b -= np.float32(p) < np.float32(b / 10)
                table[:3, b] += weight, 0.0, weight * p
                table[kernel.SQUARE, b] += weight * p * p
                if hit:
                    table[kernel.HITS, b] += weight
                    table[kernel.SCORE_OF_HITS, b] += weight * p
                gap = 1.0 - p if hit else p
                happened = p if hit else 1.0 - p
                total[kernel.SQUARED_ERROR] += weight * gap * gap
                capped = happened <= float(arithmetic.exp(-100))
                total[kernel.CAPPED if capped else kernel.LOG_LOSS] += weight * (
                    1.0 if capped else -float(arithmetic.log(happened))
                )
            table, total = (sums[0][j] + sums[1][j] for j in range(2))
            if not table[kernel.COUNT].any():
                assert np.isnan(got[draw, :, i]).all()
                continue
            loss = float(total[kernel.LOG_LOSS] + 100 * total[kernel.CAPPED])
            one = replicates._Sums(table, float(total[kernel.SQUARED_ERROR]), loss)
            want = [registry.METRICS[name].formula(one) for name in names]
            np.testing.assert_array_equal(got[draw, :, i], want, err_msg=str(names))


def test_smooth_ece_of_draws_is_that_of_the_metric(twin):
    """On its coarser grid: one row drawn twice is two rows, and what is drawn may be all, or one pair of 0 or of 1."""
    Y, good, _, _, _ = twin
    rows = np.array([3, 3, 5, 8, 13, 21, 34, 55])
    ends = xc.TopK(np.array([[0], [1]], np.int32), np.array([[1.0], [0.0]], np.float32), 2)
    times = np.bincount(rows, minlength=len(good))[None, :]
    for truth, top, ks, drawn, kept in (
        (Y, good, (1, 5), times, rows),
        (Y, good, (1, 5), np.ones_like(times), np.arange(len(good))),
        (np.eye(2), ends, (1,), np.array([[1, 1]]), np.arange(2)),
    ):
        system = replicates.System(
            as_truth(truth), top, np.array(ks), [registry.METRICS["smECE"]], replicates.Options()
        )
        want = [m.smooth_ece(*m.pairs(truth[kept], top.rows(kept), k)) for k in ks]
        np.testing.assert_allclose(system.values(drawn, ["smECE"])[0, 0], want, rtol=1e-4, atol=1e-6)


# ---------------------------------------------------------------- intervals of parts


def test_the_error_of_parts_is_what_cutting_the_rows_gives(twin):
    """The quarters and halves are cut here again and evaluated as matrices; 91 rows leave 3 over in each cut."""
    Y, good, bad, trained, _ = twin
    n = 91
    Y, tops = Y[:n], [top.rows(range(n)) for top in (good, bad)]
    names = ["P", "macro-F1", "coverage (test)", "coverage (reachable)", "unique labels", "binned macro-F1"]
    names += ["ECE", "ACE"]
    how = {"n_resamples": 200, "seed": 4, "label_counts": trained, "method": "halves", "confidence_level": 0.9}
    got = m.paired_bootstrap(Y, *tops, (5,), metrics=names, **how)

    def values(rows):
        each = []
        for top in tops:
            each.append([*xc.evaluate(Y[rows], top.rows(rows), (5,), label_counts=trained, metrics=names).value])
        return np.array([*each, np.subtract(*each)])

    quarters, halves = [], []
    for cut in range(20):
        parts = np.random.default_rng([4, cut]).permutation(n)[:88].reshape(4, 22)
        quarters.append(np.var([values(part) for part in parts], axis=0, ddof=1))
        for a, b, c, d in ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2)):
            one, other = (values(np.concatenate([parts[i], parts[j]])) for i, j in ((a, b), (c, d)))
            halves.append((one - other) ** 2 / 2)
    quarters, halves = np.mean(quarters, axis=0), np.mean(halves, axis=0)
    slope = np.clip(np.log2(np.where(halves > 0, halves, 1) / np.where(quarters > 0, quarters, 1)), -2, 1)
    reach = stats.norm.ppf(0.95) * np.sqrt(halves * (n / 44) ** slope)
    here = values(np.arange(n))
    for i, one in enumerate(got):
        assert one.method == "halves"
        for q, ends in enumerate(("ours_low ours_high", "baseline_low baseline_high", "low high")):
            low, high = (getattr(one, end) for end in ends.split())
            assert (low, high) == pytest.approx(
                (here[q, i] - reach[q, i], here[q, i] + reach[q, i]), rel=1e-9, abs=1e-12
            ), one
        if reach[2, i]:
            assert one.p == pytest.approx(
                2 * stats.norm.sf(abs(here[2, i]) / reach[2, i] * stats.norm.ppf(0.95)), rel=1e-3
            )
        else:
            assert one.p == 1.0


# ---------------------------------------------------------------- Poisson weights


@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**40), max_size=30), st.integers(1, 9), st.integers(0, 30))
def test_poisson_weights_do_not_depend_on_the_cutting(seed, rows, samples, cut):
    whole = poisson_weights(seed, np.array(rows, np.int64), samples)
    parts = [poisson_weights(seed, np.array(part, np.int64), samples) for part in (rows[:cut], rows[cut:])]
    assert whole.shape == (len(rows), samples)
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    assert poisson_weights(seed, np.array(rows, np.int64), samples + 3)[:, :samples].tobytes() == whole.tobytes()


def test_poisson_weights_are_the_same_on_every_machine():
    step = 0x9E3779B97F4A7C15
    rows, seed = [0, 5, 2**33], 12
    got = poisson_weights(seed, np.array(rows), 40)
    for i, row in enumerate(rows):
        base = splitmix(splitmix((seed + step) % 2**64) ^ splitmix((row + step) % 2**64))
        for s in range(40):
            uniform = splitmix((base + step * (s + 1)) % 2**64) / 2**64
            assert got[i, s] == stats.poisson(1).ppf(uniform)


Y2 = sp.csr_matrix(np.array([[1, 0, 1], [0, 1, 0]], np.float32))
T2 = xc.TopK.from_ids([[0, 1], [2, 0]], n_labels=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.macro_t_test(Y2, T2, T2.rows([0]), 1), "2 rows of Y"),
        (lambda: m.macro_t_test(Y2, T2, T2, 1, metrics="binned macro-F1", label_counts=[1]), "label_counts"),
        (
            lambda: m.paired_bootstrap(Y2, T2, T2, 1, metrics="coverage"),
            "Y must have at least 8 rows to cut into parts",
        ),
        (lambda: m.paired_bootstrap(Y2, T2, T2.rows([0]), 1), "2 rows of Y"),
        (lambda: m.paired_bootstrap(Y2[:0], T2.rows([]), T2.rows([]), 1), "at least one row"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
