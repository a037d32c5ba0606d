"""What the calibration tables and the bidding example compute: hand-worked numbers, a slow oracle, planted faults."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.data.dataset import Dataset, Split
from xcrepro.errors import ArgumentError
from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK
from xcrepro.repro import calibration_bids, calibration_tables

TEN = np.linspace(0.05, 0.95, 10)


@pytest.fixture(scope="module")
def twin():
    return xc.twin("bibtex", scale=0.2, seed=0)


def truth_top(ds, k, power=1.0) -> TopK:
    """The twin's own probabilities as predictions; ``power`` below 1 overstates them, above 1 understates them."""
    chance = ds.test.marginals
    bent = csr_matrix((chance.data.astype(np.float64) ** power, chance.indices, chance.indptr), chance.shape)
    return TopK.from_scores(bent, k)


# ---------------------------------------------------------------- data and links


def test_a_twin_is_cut_in_train_and_nowhere_else(twin):
    cut = calibrated.data("bibtex", "small", 0.2, 0, "", train_points=300)
    assert cut.n_train == 300
    assert cut.train.marginals.shape[0] == 300
    assert (twin.train.X[:300] != cut.train.X).nnz == 0
    assert (cut.test.X != twin.test.X).nnz == 0
    assert (twin.train.Y[:300] != cut.train.Y).nnz == 0
    for points in (0, 10**9):
        assert calibrated.data("bibtex", "small", 0.2, 0, "", points).n_train == twin.n_train
    with pytest.raises(ArgumentError, match="train_points"):
        calibrated.data("bibtex", "small", 0.2, 0, "", -1)


def test_real_data_are_never_cut(real_data):
    assert calibrated.data("bibtex", "small", 1.0, 0, str(real_data("bibtex")), train_points=10).n_train == 4880


def test_scores_that_are_no_probabilities_are_squeezed_and_others_left():
    top = TopK.from_scores(np.array([[0.9, 0.1, 0.4], [0.2, 0.8, 0.3]]), k=2)
    assert (calibrated.linked(top, 2).scores == top.scores).all()
    # by name, though they lie in [0, 1]; the pool is the first k places only
    squeezed = calibrated.linked(top, 2, "PfastreXML")
    np.testing.assert_allclose(squeezed.scores, [[1.0, 1 / 6], [5 / 6, 0.0]], atol=1e-6)
    np.testing.assert_allclose(calibrated.linked(top, 1, "DiSMEC").scores, [[1.0], [0.0]])
    margins = TopK.from_scores(np.array([[3.0, -1.0], [1.0, 2.0]]), k=2)
    np.testing.assert_allclose(calibrated.linked(margins, 2).scores, [[1.0, 0.0], [0.75, 0.5]])
    assert (calibrated.linked(margins, 2).ids == margins.ids).all()


# ---------------------------------------------------------------- before and after


def test_after_is_the_cross_fit_of_what_was_before(twin):
    top = truth_top(twin, 5, power=2.0)
    before, after = calibrated.before_after(twin, {"a": top}, "isotonic", k=3, folds=7)["a"]
    assert before.k == after.k == 3
    assert (before.ids == after.ids).all()
    hits = metric.Truth.of(twin.test.Y).hits(before.ids)
    expected = xc.calibrate.cross_fit(before.scores, hits, "isotonic", folds=7)
    np.testing.assert_allclose(after.scores, expected, atol=1e-6)


def test_errors_are_the_metrics_at_k_of_that_pair(twin):
    top = truth_top(twin, 5, power=0.5)
    table = calibrated.errors(twin, {"a": top, "b": top}, metrics=("P", "ECE", "NLL"), ks=(1, 3))
    assert table["model"].tolist() == ["a"] * 6 + ["b"] * 6
    for k in (1, 3):
        before, after = calibrated.before_after(twin, {"a": top}, k=k)["a"]
        row = table[(table["model"] == "a") & (table["k"] == k)].set_index("metric")
        for column, which in (("before", before), ("after", after)):
            scores, hits = metric.pairs(twin.test.Y, which, k)
            assert row[column]["ECE"] == 100 * metric.ece(scores, hits, closed="torchmetrics")
            assert row[column]["NLL"] == metric.nll(scores, hits)
            assert row[column]["P"] == 100 * ranking.precision(twin.test.Y, which, [k])[0]
        assert row["before"]["P"] == row["after"]["P"]


# ---------------------------------------------------------------- against the truth


def test_true_probabilities_are_the_marginals_place_by_place(twin):
    top = truth_top(twin, 4)
    dense = twin.test.marginals.toarray()
    found = calibrated.true_probabilities(twin, top)
    for i in range(0, len(top), 17):
        for j in range(4):
            expected = dense[i, top.ids[i, j]] if top.ids[i, j] >= 0 else 0.0
            assert found[i, j] == pytest.approx(expected, abs=1e-7)
    gone = TopK(np.array([[0, -1]], np.int32), np.array([[0.5, -np.inf]], np.float32), twin.test.Y.shape[1])
    assert calibrated.true_probabilities(twin, TopK(np.repeat(gone.ids, len(top), 0), np.repeat(gone.scores, len(top), 0),
                                                    gone.n_labels))[:, 1].max() == 0  # fmt: skip


def test_true_error_sees_a_bent_scale_and_no_noise(twin):
    right, high = truth_top(twin, 5), truth_top(twin, 5, power=0.5)
    assert calibrated.true_error(twin, right) < 1e-6
    gap = float((high.scores[high.ids >= 0] - calibrated.true_probabilities(twin, high)[high.ids >= 0]).mean())
    # overstated everywhere, so the error is the mean gap, whatever the bins
    assert calibrated.true_error(twin, high) == pytest.approx(gap, rel=1e-5)
    assert gap > 0.05


def test_the_floor_is_the_mean_error_of_right_scores(twin):
    top = truth_top(twin, 3)
    scores = top.scores[top.ids >= 0].astype(float)
    rng = np.random.default_rng(5)
    slow = np.mean([metric.ece(scores.astype(np.float32), rng.random(scores.size) < scores) for _ in range(300)])
    assert calibrated.floor(top, draws=300, seed=1) == pytest.approx(slow, rel=0.08)
    half = TopK(top.ids[: len(top) // 4], top.scores[: len(top) // 4], top.n_labels)
    assert calibrated.floor(half) == pytest.approx(2 * calibrated.floor(top), rel=0.2)  # it falls with the root of n


def test_a_score_on_an_edge_lies_in_the_bin_above():
    # 0.7 in float32; with the bin below, the two would be one bin and the error 0.
    scores, outcomes = np.array([0.69, 0.7], np.float32).astype(np.float64), np.array([[0.79, 0.6]])
    assert calibrated._binned(scores, outcomes, 10)[0] == pytest.approx(0.1, abs=1e-6)


# ---------------------------------------------------------------- tables 2, 4, 7, 8


def test_the_finding_is_counted_from_the_ratios():
    fall = pd.DataFrame(
        {
            "k": [1, 1, 1, 1],
            "model": list("abcd"),
            "ECE": [50.0, 8.0, 5.0, 6.0],
            "ECE-I": [1.0, 2.0, 4.0, 1.2],
            "ratio": [50.0, 4.0, 1.25, 5.0],
        }
    )
    row = calibration_tables.verdicts(fall).iloc[0]
    # c does not start above 5; b falls by 4 only; d by exactly 5 counts
    assert (row["start above 5 points"], row["fall 5 times or more"], row["fall less"]) == (3, 2, "b")
    assert row["least ratio"] == 4.0
    clear = calibration_tables.clear_cases(fall)
    assert clear["model"].tolist() == ["a", "b"]
    assert clear["falls 5 times or more"].tolist() == [True, False]


def test_fall_and_direction_of_a_planted_overconfidence(twin):
    tops = {"right": truth_top(twin, 5), "over": truth_top(twin, 5, power=0.4), "under": truth_top(twin, 5, power=3.0)}
    fall = calibration_tables.fall(twin, tops).set_index(["model", "k"])
    assert fall.loc[("right", 5), "true"] < 1e-4
    for name in ("over", "under"):
        row = fall.loc[(name, 5)]
        assert row["ECE"] > 10
        assert row["true"] > 10
        assert row["ratio"] == pytest.approx(row["ECE"] / row["ECE-I"])
        assert row["true-I"] < row["true"] / 3
    words = calibration_tables.in_words(calibration_tables.direction(twin, tops)).set_index("model")
    assert words.loc["over", "k = 5"] == "over"
    assert words.loc["under", "k = 5"] == "under"


def test_joint_isotonic_keeps_precision_and_a_turning_map_is_seen(twin):
    tops = {"a": truth_top(twin, 5, power=0.4)}
    kept = calibration_tables.precision_kept(twin, tops)
    assert kept.iloc[0].tolist() == ["a", "same bits", "same bits", "same bits", 0]

    class Upside:
        def fit(self, scores, hits):
            return self

        def predict(self, scores):
            return 1.0 - scores

    turned = calibration_tables.precision_kept(twin, tops, Upside()).iloc[0]
    assert turned["rows re-ranked"] > 0
    assert turned["P@1"].startswith("-")
    assert turned["P@5"] == "same bits"


def test_errors_hold_the_metrics_before_and_after(twin):
    tops = {"b": truth_top(twin, 5, 0.5), "a": truth_top(twin, 5)}
    table = calibration_tables.errors(twin, tops)
    assert table["model"].tolist() == ["b", "a"] * 3
    assert table["k"].tolist() == [1, 1, 3, 3, 5, 5]
    long = calibrated.errors(twin, tops)
    for row in long.itertuples():
        mine = table[(table["model"] == row.model) & (table["k"] == row.k)].iloc[0]
        assert mine[row.metric] == row.before
        assert mine[f"{row.metric}-I"] == row.after


def test_the_golden_part_leaves_small_and_calibrated_errors_out():
    table = pd.DataFrame(
        {
            "k": [1, 1],
            "model": ["a", "b"],
            "P": [90.0, 80.0],
            "ECE": [2.9, 3.1],
            "ECE-I": [0.1, 0.2],
            "Brier": [1.0, 2.0],
        }
    )
    kept = calibration_tables.solid(table)
    assert list(kept.columns) == ["k", "model", "P", "ECE", "Brier"]
    assert np.isnan(kept["ECE"][0])
    assert kept["ECE"][1] == 3.1
    assert kept["Brier"].tolist() == [1.0, 2.0]


def test_printed_rows_of_a_twins_original_with_readings():
    cut = calibrated.data("amazoncat-13k", "small", 0.002, 0, "")
    rows = calibration_tables.printed(cut, ["DiSMEC", "PLT", "Neural"])
    first = rows[(rows["k"] == 5) & (rows["method"] == "DiSMEC")].iloc[0]
    assert (first["ECE"], first["ECE-I"], first["for our"], first["Brier-I"]) == (
        "58.38",
        "0.05",
        "DiSMEC",
        "1.24 [12.4]",
    )
    assert len(rows) == 18
    assert set(rows["for our"]) == {"DiSMEC", "PLT", "Neural", ""}
    assert len(calibration_tables.printed(xc.twin("bibtex", scale=0.1), ["PLT"])) == 0


def test_marginal_error_is_small_where_that_at_k_is_large():
    ds = xc.twin("eurlex-4k", scale=0.1, seed=0)
    table = calibration_tables.marginal(ds, {"under": truth_top(ds, 100, 3.0), "DiSMEC": truth_top(ds, 100)})
    assert table["model"].tolist() == ["under"]
    assert table["ECE@1"][0] > 15
    assert table["marginal ECE"][0] < 3
    whole = csr_matrix(truth_top(ds, 100, 3.0).to_csr())
    slow = [metric.ece(whole[:, j].toarray(), ds.test.Y[:, j].toarray() > 0) for j in range(whole.shape[1])]
    assert table["marginal ECE"][0] == pytest.approx(100 * np.mean(slow), rel=1e-4)


# ---------------------------------------------------------------- table 5


def test_log_odds():
    found = calibration_tables.log_odds(np.array([[0.5, 0.0], [1.0, -np.inf]], np.float32))
    np.testing.assert_allclose(found, [[0.0, -13.8155], [13.8155, -np.inf]], atol=1e-3)


def test_methods_and_wins(twin):
    found = calibration_tables.by_method(twin, {"over": truth_top(twin, 5, 0.4)}, ("isotonic", "Platt"))
    assert found["method"].tolist() == ["none", "isotonic", "Platt"] * 2
    five = found[found["k"] == 5].set_index("method")
    assert five.loc["isotonic", "ECE"] < five.loc["none", "ECE"] / 5
    _before, after = calibrated.before_after(twin, {"over": truth_top(twin, 5, 0.4)}, "platt", 5)["over"]
    assert five.loc["Platt", "Brier"] == pytest.approx(100 * metric.brier(*metric.pairs(twin.test.Y, after)))
    assert five.loc["Platt", "true"] == 100 * calibrated.true_error(twin, after)

    planted = pd.DataFrame(
        [("a", 1, "isotonic", 1.0, 1.0, 1.0, 1.0, np.nan), ("b", 1, "isotonic", 3.0, 1.0, 1.0, 1.0, np.nan),
         ("a", 1, "Platt", 2.0, 1.0, 2.0, 0.5, np.nan), ("b", 1, "Platt", 2.0, 1.0, 2.0, 0.5, np.nan)],
        columns=["model", "k", "method", "ECE", "ACE", "Brier", "NLL", "true"],
    )  # fmt: skip
    assert calibration_tables.wins(planted).values.tolist() == [["Platt", "1 of 2", "0 of 2", "2 of 2", "0 of 2", "-"]]
    assert calibration_tables.means(planted)["ECE"].tolist() == [2.0, 2.0]


# ---------------------------------------------------------------- table 6


def places(n: int = 400) -> tuple[Dataset, TopK]:
    """Five labels a point with about equal scores per place, the second place right far more often than the first."""
    rng = np.random.default_rng(0)
    Y = csr_matrix((rng.random((n, 5)) < [0.2, 0.9, 0.5, 0.1, 0.1]).astype(np.float32))
    scores = np.tile(np.array([0.9, 0.6, 0.4, 0.2, 0.1]), (n, 1)) + rng.uniform(0, 0.01, (n, 5))
    split = Split(None, Y)
    return Dataset("own", split, split, 0.55, 1.5), TopK.from_scores(scores, 5)


def test_separate_maps_bring_a_better_second_place_to_the_front():
    ds, top = places()
    found = calibration_tables.joint_separate(ds, {"m": top}, places=5).set_index("fit")
    share = 100 * np.asarray(ds.test.Y.mean(axis=0)).ravel()
    assert found.loc["none", "P@1"] == pytest.approx(share[0]) == found.loc["joint, isotonic", "P@1"]
    for fit in ("separate, isotonic", "separate, Platt"):
        assert found.loc[fit, "P@1"] == pytest.approx(share[1], abs=1.0)
        assert found.loc[fit, "P@5"] == pytest.approx(found.loc["none", "P@5"])
    moved = calibration_tables.changes(found.reset_index())
    assert moved["fit"].tolist() == ["joint, isotonic", "separate, isotonic", "separate, Platt"]
    assert moved["P@1"][0] == 0
    assert moved["P@1"][1] == pytest.approx(share[1] - share[0], abs=1.0)


def test_losses_count_what_fell():
    planted = pd.DataFrame({"fit": ["s", "s", "p"], "P@1": [-0.5, 0.1, 0.0], "P@3": [0.0, 0.0, -1.0], "P@5": [0.0] * 3})
    table = calibration_tables.losses(planted).set_index("fit")
    assert table.loc["s", "lower P@1"] == "1 of 2"
    assert table.loc["s", "mean P@1"] == pytest.approx(-0.2)
    assert table.loc["p", "lower P@3"] == "1 of 1"
    assert table.loc["s", "lower P@5"] == "0 of 2"


def test_the_printed_changes_are_the_pages():
    table = calibration_tables.printed_changes().set_index(["dataset", "method", "fit"])
    # 48.63 to 48.32, and 85.90 to 85.92: the two that appendix B quotes
    assert table.loc[("Amazon-670K", "CascadeXML", "separate, isotonic"), "P@1"] == pytest.approx(-0.31)
    assert table.loc[("EURLex-4K", "LightXML", "separate, isotonic"), "P@1"] == pytest.approx(0.02)
    assert len(table) == 20


# ---------------------------------------------------------------- bids


def test_profit_by_hand():
    p, worth = np.array([[0.9, 0.5], [0.51, -np.inf]]), np.array([[1.0, 1.0], [0.0, 0.0]])
    # 0.9 and 0.51 are above 0.5, 0.5 is not: 0.5 - 0.5
    assert calibration_bids.profit(p, worth, 0.5) == pytest.approx(0.0)
    assert calibration_bids.profit(p, worth, 0.4) == pytest.approx(0.6 + 0.6 - 0.4)
    assert calibration_bids.profit(p, worth, 0.95) == 0.0


def test_nobody_beats_the_true_probabilities_and_calibration_helps(twin):
    tops = {"right": truth_top(twin, 5), "over": truth_top(twin, 5, 0.3), "under": truth_top(twin, 5, 4.0)}
    curves = calibration_bids.curves(twin, tops, k=5)
    assert (curves["best"] >= curves[["all", "before", "after"]].max(axis=1) - 1e-9).all()
    right = curves[curves["model"] == "right"]
    np.testing.assert_allclose(right["before"], right["best"], atol=0.05)
    some = calibration_bids.at(curves, (0.5,)).set_index("model")
    for name in ("over", "under"):
        assert some.loc[name, "after"] > some.loc[name, "before"] + 5
        assert some.loc[name, "after %"] == pytest.approx(100 * some.loc[name, "after"] / some.loc[name, "best"])
    # per 1,000 points, by the definition
    before = tops["over"]
    worth = calibrated.true_probabilities(twin, before)
    slow = sum(worth[i, j] - 0.5 for i in range(len(before)) for j in range(5) if before.scores[i, j] > 0.5)
    assert some.loc["over", "before"] == pytest.approx(1000 * slow / len(before), rel=1e-6)
    assert (calibration_bids.ceiling(twin)["profit"].to_numpy() >= right["best"].to_numpy() - 1e-6).all()


def test_the_loss_over_all_costs_is_half_the_squared_error(twin):
    tops = {"over": truth_top(twin, 5, 0.3)}
    fine = (np.arange(2000) + 0.5) / 2000
    curves = calibration_bids.curves(twin, tops, costs=fine)
    row = calibration_bids.lost(twin, tops).iloc[0]
    for column, words in (("before", "lost before"), ("after", "lost after")):
        assert (curves["best"] - curves[column]).mean() == pytest.approx(row[words], rel=2e-3)
    assert curves["best"].mean() == pytest.approx(row["best"], rel=2e-3)
    assert row["got back %"] == pytest.approx(100 * (1 - row["lost after"] / row["lost before"]))


def test_on_real_data_profits_are_those_of_the_hits():
    ds, top = places(200)
    curves = calibration_bids.curves(ds, {"m": top}, k=5, costs=(0.5,))
    hits = ds.test.Y.toarray()
    assert curves["best"].isna().all()
    assert calibration_bids.lost(ds, {"m": top}, 5)["best"].isna().all()
    bids = (hits[:, 0] - 0.5).sum() + (hits[:, 1] - 0.5).sum()  # 0.9 and 0.6 are above the cost, the others are not
    assert curves["before"][0] == pytest.approx(1000 * bids / 200)
    assert curves["all"][0] == pytest.approx(1000 * (hits - 0.5).sum() / 200)


def test_the_golden_part_of_the_bids_leaves_small_profits_out():
    table = pd.DataFrame(
        {
            "model": ["a"],
            "cost": [0.5],
            "all": [-400.0],
            "before": [20.0],
            "after": [900.0],
            "best": [1000.0],
            "before %": [2.0],
        }
    )
    kept = calibration_bids.solid(table)
    assert list(kept.columns) == ["model", "cost", "all", "before", "after", "best"]
    assert kept[["after", "best"]].values.tolist() == [[900.0, 1000.0]]
    assert kept[["all", "before"]].isna().all(axis=None)


def test_a_vanished_error_has_an_infinite_ratio():
    # one score for everybody, right on average: after calibration nothing is left to divide by
    n = 1000
    split = Split(None, csr_matrix((np.arange(n) % 10 < 3).astype(np.float32)[:, None]))
    ds = Dataset("own", split, split, 0.55, 1.5)
    top = TopK(np.zeros((n, 5), np.int32), np.full((n, 5), 0.9, np.float32), 1)
    top = TopK(np.where(np.arange(5) == 0, top.ids, -1), np.where(np.arange(5) == 0, top.scores, -np.inf), 1)
    fall = calibration_tables.fall(ds, {"constant": top})
    assert fall["ECE"].tolist() == pytest.approx([60.0] * 3)
    assert (fall["ratio"] == np.inf).all()
    assert calibration_tables.clear_cases(fall)["falls 5 times or more"].all()
