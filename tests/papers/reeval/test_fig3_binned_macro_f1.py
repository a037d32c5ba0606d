"""Figure 3, rerun: oracles that go label by label and row by row, SciPy's t-test, planted verdicts."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import xcrepro as xc
from tests import naive
from xcrepro.papers.reeval import fig3_binned_macro_f1 as fig3
from xcrepro.papers.reeval import table3_table4_rerun as rerun
from xcrepro.predictions import TopK


def test_bins_are_means_over_their_labels_and_the_test_is_scipys(loaded, tops, twin):
    found = fig3.compute(loaded, tops, [5])
    bounds = {"1-9": (1, 10), "10-99": (10, 100), "100-999": (100, 1000)}
    assert found[["method", "bin"]].to_numpy().tolist() == [[m, b] for m in ("noisy", "head") for b in bounds]
    base = naive.label_f1(twin.test.Y, tops["EURLex-4K"]["SVM"], 5)
    for row in found.itertuples():
        low, high = bounds[row.bin]
        labels = (twin.label_counts >= low) & (twin.label_counts < high)
        ours = naive.label_f1(twin.test.Y, tops["EURLex-4K"][row.method], 5)
        mean, theirs = 100 * ours[labels].mean(), 100 * base[labels].mean()
        assert row.labels == labels.sum()
        assert (row.value, row.baseline, row.difference) == pytest.approx((mean, theirs, mean - theirs))
        assert row.improvement == pytest.approx(100 * (mean / theirs - 1))
        want = stats.ttest_rel(ours[labels], base[labels])
        assert (row.t, row.p) == pytest.approx((want.statistic, want.pvalue), rel=1e-9)
    head = found[found["method"] == "head"].set_index("bin")["improvement"]
    assert head["1-9"] == head["10-99"] == -100
    columns = ["dataset", "k", "method", "bin", "labels", "value", "baseline", "ceiling"]
    assert fig3.check(found).columns.tolist() == columns
    assert set(fig3.check(found)["bin"]) == {"10-99", "100-999"}


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=4), st.integers(1, 3))
def test_the_ceiling_is_the_best_of_all_choices(rows, k):
    """Every choice of at most k relevant labels for each point."""
    Y = np.array(rows, dtype=float)
    choices = []
    for row in Y:
        labels = np.flatnonzero(row)
        sets = itertools.combinations(labels, min(k, labels.size))
        choices.append([np.isin(np.arange(4), chosen) for chosen in sets])
    best = 0.0
    for said in itertools.product(*choices):
        hits, named, there = np.logical_and(said, Y).sum(0), np.sum(said, axis=0), Y.sum(0)
        best = max(best, (2 * hits / np.maximum(named + there, 1)).mean())
    assert fig3.best_macro_f1(sparse.csr_matrix(Y), k) == pytest.approx(best)


def test_the_ceiling_of_a_bin_is_reached_by_its_labels_alone(loaded, tops, twin):
    found = fig3.compute(loaded, tops, [5]).drop_duplicates("bin").set_index("bin")
    points = np.asarray(twin.test.Y.sum(axis=0)).ravel()
    for name, labels in fig3.labels_by_bin(twin).items():
        of_bin = twin.test.Y[:, labels]
        share = 100 * (points[labels] > 0).mean()
        assert found.loc[name, "ceiling"] <= share + 1e-9
        # Named in any order, they reach it where no point has more than k of them.
        reached = 100 * naive.label_f1(of_bin, TopK.from_scores(of_bin, 5), 5).mean()
        assert reached <= found.loc[name, "ceiling"] + 1e-9
        if np.diff(of_bin.indptr).max() <= 5:
            assert reached == pytest.approx(found.loc[name, "ceiling"]) == pytest.approx(share)
    assert found.loc["1-9", "ceiling"] < 60


def test_hits_by_bin_are_counted_pair_by_pair(loaded, tops, twin):
    found = fig3.compute_hits(loaded, tops, [5]).set_index("bin")
    counts, Y = twin.label_counts, twin.test.Y
    for name, (low, high) in {"1-9": (1, 10), "10-99": (10, 100), "100-999": (100, 1000)}.items():
        labels = [label for label in range(Y.shape[1]) if low <= counts[label] < high]
        true = [set(row.indices) & set(labels) for row in Y]
        assert found.loc[name, "pairs"] == sum(map(len, true))
        assert found.loc[name, "with a test point"] == len(set().union(*true))
        for method, top in tops["EURLex-4K"].items():
            hits = sum(len(set(ids[:5].tolist()) & there) for ids, there in zip(top.ids, true, strict=True))
            assert found.loc[name, method] == hits
    held = fig3.check_hits(found.reset_index())
    assert held.attrs["within"] == dict.fromkeys(tops["EURLex-4K"], fig3.HITS)


def test_small_bins_stay_untested_and_a_baseline_of_0_has_no_ratio(dataset):
    ds = dataset(np.eye(12), [5] * 11 + [0])
    right, wrong = np.arange(12)[:, None], (np.arange(12)[:, None] + 1) % 12
    tops = {"D": {"SVM": TopK.from_ids(wrong, n_labels=12), "A": TopK.from_ids(right, n_labels=12)}}
    found = fig3.compute({"D": ds}, tops, [1])
    [row] = found.to_dict("records")
    assert (row["bin"], row["labels"], row["value"], row["baseline"]) == ("1-9", 11, 100, 0)
    assert np.isnan(row["improvement"])
    assert row["p"] == 0
    assert [text.get_text() for text in fig3.plot(found).axes[0].texts] == ["SVM: 0"]
    [row] = fig3.compute({"D": ds}, tops, [1], more_than=11).to_dict("records")
    assert np.isnan(row["p"])


def test_the_bootstrap_of_a_bin_is_that_of_copied_rows(loaded, tops, twin):
    found = fig3.compute_bootstrap(loaded, tops, [5], samples=30, seed=7)
    assert found[["method", "bin"]].equals(fig3.compute(loaded, tops, [5])[["method", "bin"]])
    labels = (twin.label_counts >= 10) & (twin.label_counts < 100)
    ours, base = tops["EURLex-4K"]["noisy"], tops["EURLex-4K"]["SVM"]
    drawn, n = [], twin.test.Y.shape[0]
    for sample in range(30):
        rows = np.random.default_rng([7, sample]).integers(n, size=n)
        one, other = (naive.label_f1(twin.test.Y[rows], top.rows(rows), 5)[labels].mean() for top in (ours, base))
        drawn.append(one - other)
    row = found[(found["method"] == "noisy") & (found["bin"] == "10-99")].iloc[0]
    assert [row["low"], row["high"]] == pytest.approx(list(100 * np.quantile(drawn, [0.025, 0.975])), rel=1e-9)


def test_verdicts_and_their_summary():
    # Both tests say worse; only the t-test; only the bootstrap, the other way round; untested.
    keys = pd.DataFrame({"dataset": "D", "method": "A", "bin": ["1-9", "10-99", "100-999", "1000+"]})
    bars = keys.assign(labels=[50, 50, 50, 3], difference=[-1.0, 2, 1, 1], p=[0.001, 0.009, 0.01, np.nan])
    bootstrap = keys.assign(low=[-2, -1, -2, 1], high=[-0.5, 3, -1, 2], p=[0.002, 0.2, 0.004, 0.002])
    found = fig3.compute_verdicts(bars, bootstrap)
    assert found["t-test"].tolist() == ["worse", "better", "-", "untested"]
    assert found["bootstrap"].tolist() == ["worse", "-", "worse", "better"]
    assert found["agree"].tolist() == ["yes", "no", "no", ""]
    assert found["p (points)"].tolist() == [0.002, 0.2, 0.004, 0.002]
    counts = fig3.compute_summary(found.iloc[::-1]).set_index("bin")
    assert list(counts.index) == ["1-9", "10-99", "100-999", "1000+"]
    expected = {"* below": [1, 0, 0, 0], "* above": [0, 1, 0, 0], "rows below": [1, 0, 1, 0], "agree": [1, 0, 0, 0]}
    assert counts[[*expected]].to_dict("list") == expected
    assert counts["tested by both"].tolist() == [1, 1, 1, 0]


def test_stars_stand_where_p_is_below_the_level(loaded, tops):
    data = fig3.compute(loaded, tops, [5])
    for p, stars in (([0.5] * len(data), 0), ([0.009, 0.01, np.nan, 0.0, 1.0, 0.5], 2)):
        figure = fig3.plot(data.assign(p=p))
        assert sum(text.get_text() == "*" for text in figure.axes[0].texts) == stars
    figure = fig3.plot(data.assign(p=np.nan))
    assert [text.get_text() for text in figure.axes[0].texts] == ["not tested"] * 3
    title = fig3.describe_bars(data.assign(difference=[-1, 1, -1, 1, 1, 1]))
    assert title == "On the rarest labels 1 of 2 bars lie below the SVM; on the others 3 of 4 lie above it"


def test_psp_and_the_rarest_labels(loaded, tops, twin):
    rows = fig3.compute_psp(loaded, tops, [5], fig3.compute(loaded, tops, [5])).set_index("method")
    found = rerun.compute(loaded, tops).set_index("method")
    for method in ("noisy", "head"):
        for ours, column in (
            ("P", "P@5"),
            ("PSP", "PSP@5"),
            ("macro-F1", "macro_F1@5"),
            ("P complete", "P@5 complete"),
        ):
            assert rows.loc[method, ours] == pytest.approx(found.loc[method, column] - found.loc["SVM", column])
    rare = (twin.label_counts >= 1) & (twin.label_counts < 10)
    base = naive.label_f1(twin.test.Y, tops["EURLex-4K"]["SVM"], 5)[rare].mean()
    assert rows.loc["head", "rarest bin"] == pytest.approx(-100 * base)


def test_costs_are_trainings_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    small = xc.twin("eurlex-4k", scale=0.02, seed=0)
    found = fig3.compute_costs(small, 5, [0.01, 10.0])
    assert found["loss"].tolist() == ["squared_hinge"] * 2 + ["logistic"] * 2
    assert found["C"].tolist() == [0.01, 10.0] * 2
    model = xc.models.OneVsRest(loss="logistic", C=10.0).fit(small.train.X, small.train.Y)
    f1 = naive.label_f1(small.test.Y, model.predict(small.test.X, 5), 5)
    rare = (small.label_counts >= 1) & (small.label_counts < 10)
    assert found["macro_F1"].iloc[-1] == pytest.approx(100 * f1.mean())
    assert found["1-9"].iloc[-1] == pytest.approx(100 * f1[rare].mean())
    assert found["macro_F1"].nunique() > 2
    assert fig3.compute_costs(small, 5, []).empty
