"""What the items share: models without their tail, every metric of them by hand, and runs to choose from."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xcrepro as xc
from xcrepro.errors import ArgumentError, DataError
from xcrepro.papers.coverage import _common as common


def test_in_order_sets_the_order():
    table = pd.DataFrame({"r": list("bbaa"), "c": [10, 9, 10, 9], "v": [1, 2, 3, 4]})
    assert common.in_order(table, c=None, r="ab")["v"].tolist() == [4, 2, 3, 1]


def test_the_head_takes_the_most_frequent_labels_and_ties_to_the_lowest_id():
    assert common.head(np.array([1, 5, 2, 2, 2]), 3).tolist() == [False, True, True, True, False]
    for n in (0, 6):
        with pytest.raises(ArgumentError, match="heads"):
            common.head(np.ones(5, int), n)


def test_only_keeps_stored_zeros_of_the_head_and_nothing_of_the_tail():
    matrix = sparse.csr_matrix((np.array([0.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    found = common.only(matrix, np.array([True, False, True]))
    assert found.indptr.tolist() == [0, 2, 2]
    assert found.indices.tolist() == [2, 0]
    assert found.data.tolist() == [0.0, 2.0]
    assert matrix.nnz == 3


def test_a_model_of_the_head_predicts_no_other_label_and_the_full_one_does(tmp_path, monkeypatch, twin):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    found = common.models(twin, "DiSMEC", [20, 5], seed=0)["DiSMEC"]
    assert list(found) == [5, 20, twin.train.Y.shape[1]]
    for n in (5, 20):
        labels = np.unique(found[n].indices)
        assert labels.tolist() == np.flatnonzero(common.head(twin.label_counts, n)).tolist()
    assert len(np.unique(found[twin.train.Y.shape[1]].indices)) > 20


@pytest.fixture
def saved(tmp_path, small, scores):
    """``saved(names)``: a dataset and a folder with predictions; long enough for the check of the rows' order."""

    def save(*names: str) -> tuple:
        for name in names:
            xc.TopK.from_scores(sparse.vstack([scores] * 40), 2).save(tmp_path / f"{name}.npz")
        return small(40), str(tmp_path)

    return save


def test_a_readers_files_stand_before_the_training_which_has_their_heads(saved, tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    ds, folder = saved("full", "head-2", "head-1")
    found = common.models(ds, "Popularity", [3], given=folder)
    assert [(name, list(one)) for name, one in found.items()] == [(tmp_path.name, [1, 2, 4]), ("Popularity", [1, 2, 4])]
    assert np.allclose(found[tmp_path.name][4].toarray()[0], [0.9, 0.8, 0, 0])
    assert list(common.models(ds, "", [1], given=folder)) == [tmp_path.name]


def test_of_one_file_the_tail_is_struck_out(saved):
    ds, folder = saved("full")
    for given, name in ((folder, Path(folder).name), (f"{folder}/full.npz", "full")):
        found = common.models(ds, "", [2], given=given)
        assert list(found) == [name]
        assert list(found[name]) == [2, 4]
        assert found[name][2].toarray()[1].tolist() == pytest.approx([0.9, 0, 0, 0])
        assert found[name][4].toarray()[1].tolist() == pytest.approx([0.9, 0, 0.8, 0])


def test_without_numbers_of_labels_there_are_shares_of_them(twin, monkeypatch):
    assert common._shares(1000) == [20, 50, 100, 200, 300, 500, 700, 850]
    assert common._shares(4) == [1, 2, 3]
    with pytest.raises(ArgumentError, match="parameter heads must be from 1 to the"):
        common.models(twin, "DiSMEC", [10**6])


def test_own_runs_stand_before_the_trees(saved, tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    ds, folder = saved("one", "two")
    found = common.runs(ds, 2, folder)
    assert [(name, [(run.number, run.tree is None) for run in runs]) for name, runs in found.items()] == [
        (tmp_path.name, [(0, True), (1, True)]),
        ("label tree", [(0, False), (1, False)]),
    ]
    bare = dataclasses.replace(ds, train=dataclasses.replace(ds.train, X=None))
    assert list(common.runs(bare, 2, folder)) == [tmp_path.name]


GOOD = {"model": "DiSMEC", "predictions": "", "heads": [5, 2]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"heads": [0]}, "parameter heads must be a whole number, 1 or more; got 0"),
        ({"heads": [5, 5]}, "parameter heads must hold nothing twice"),
        ({"model": ""}, "parameter model must be a baseline where there are no predictions"),
        ({"model": "Disme"}, "parameter model"),
        ({"k": 0}, "parameter k"),
    ],
)
def test_what_heads_may_not_be(given, said):
    common.check_heads(GOOD)
    common.check_heads(GOOD | {"heads": [], "k": 2})
    with pytest.raises(ArgumentError, match=said):
        common.check_heads(GOOD | given)


def test_what_is_kept_has_the_error_of_the_test_points(small, scores):
    ds = small(40)
    model = sparse.csr_matrix(sparse.vstack([scores] * 40))
    kept = common.measure_kept(ds, {2: common.only(model, np.arange(4) < 2), 4: model}, 2, 1)
    assert kept.values["P"] == pytest.approx(200 / 3)
    assert kept.values["coverage"] == pytest.approx(50)
    assert kept.error("coverage") == 0  # every block has all labels
    assert 0 < kept.error("P") < 10
    assert "P@1 66.7 ± " in common.say_kept(kept, "own", 2, 4, 1)
    planted = common.Measured({"P": 90.0, "coverage": 50.0}, {"P": np.full(5, 90.0), "coverage": np.arange(5) + 48.0})
    assert common.against_precision(planted, 5).endswith(": clearly so in the one comparison")
    equal = common.Measured({"P": 50.0, "coverage": 50.0}, {"P": np.full(5, 50.0), "coverage": np.arange(5) + 48.0})
    assert common.against_precision(equal, 5).endswith(": not clear in the one comparison")


@pytest.mark.parametrize("names", ["full tail-2", "full head-4", "full head-0", "full head-x", "full 2", "head-2"])
def test_files_that_do_not_say_what_they_were_trained_on_are_refused(saved, names):
    ds, folder = saved(*names.split())
    wanted = names.replace("full ", "predictions called '") if "full" in names else "no predictions called 'full'"
    with pytest.raises(DataError, match=wanted):
        common.models(ds, "DiSMEC", [1], given=folder)


def test_measured_by_hand(small, scores):
    found = common.measure(small(), {4: scores}, calibrated=True)
    wanted = {  # at 1 and 3; a tenth of three points is one: n'-coverage is P k/L
        "P": [100, 500 / 9],
        "Abandonment": [100, 100],
        "coverage": [50, 75],
        "n'-coverage": [100 / 4, 500 / 12],
        "macro-R": [100 * (1 + 0 + 1 / 2) / 4, 75],
        "macro-F1": [100 * (1 + 2 / 3) / 4, 100 * (4 / 5 + 2 / 4 + 4 / 5) / 4],
        "macro-F1 (0)": [0, 0],
        "macro-F1 (1-9)": [100 * (1 + 2 / 3) / 3, 70],
    }
    value = found.set_index(["metric", "k"])["value"]
    for metric, values in wanted.items():
        assert value[metric][[1, 3]].tolist() == pytest.approx(values), metric
    assert value["label entropy", 1] == pytest.approx(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)))
    assert value["ECE", 1] == pytest.approx(100 * (2 * 0.1 + 0.3) / 3)
    names = [name for name in common.METRICS if not name.endswith("complete")]
    assert found["metric"].unique().tolist()[: len(names)] == names


def test_a_twins_complete_truth_stands_behind_what_estimates_it(twin):
    """Perfect predictions of the complete truth; what is observed of it is less."""
    found = common.measure(twin, {twin.train.Y.shape[1]: twin.test.Y_complete}).set_index(["metric", "k"])["value"]
    assert found.index.get_level_values("metric").unique().tolist()[: len(common.METRICS)] == list(common.METRICS)
    assert twin.test.Y_complete.nnz > twin.test.Y.nnz
    for k in common.KS:
        top = xc.TopK.from_scores(twin.test.Y_complete, k)
        most = np.minimum(np.diff(twin.test.Y_complete.indptr), k).mean() / k
        assert common.scores(twin, top, k)["P complete"] == pytest.approx(100 * most) == found["P complete", k]
        assert list(common.scores(twin, top, k)) == list(common.SCORES)
        assert found["P", k] < found["P complete", k]
    assert found["nDCG complete", 1] == pytest.approx(found["P complete", 1])


def test_abandonment_is_the_share_of_points_with_a_hit_and_needs_one_only(small):
    scores = sparse.csr_matrix([[0, 0.9, 0, 0.8], [0, 0, 0, 0.8], [0.9, 0, 0.8, 0]], dtype=np.float32)
    value = common.measure(small(), {4: scores}).set_index(["metric", "k"])["value"]
    assert value["Abandonment"].tolist() == pytest.approx([100 / 3, 200 / 3, 200 / 3])


def test_the_greedy_rule_decides_for_each_k_anew(small, scores):
    value = common.measure(small(), {4: scores}, "greedy").set_index(["metric", "k"])["value"]
    for k in common.KS:
        top = xc.decide.greedy_coverage(scores, k)
        assert value["coverage", k] == 100 * xc.metrics.coverage(small().test.Y, top, k)[0]


def test_kept_is_the_share_of_the_value_with_all_labels():
    table = pd.DataFrame({"metric": list("PPRR"), "k": 5, "labels": [1, 9, 1, 9], "value": [20.0, 80.0, 0.0, 0.0]})
    found = common.kept(table)
    assert found["full"].tolist() == [80, 80, 0, 0]
    assert found["kept"].tolist()[:2] == [25, 100]
    assert found["kept"][2:].isna().all()  # nothing is kept of nothing


def test_scores_are_percent_and_coverage_is_over_labels_with_a_test_point(small, scores):
    ds = small()
    found = common.scores(ds, xc.decide.top_k(scores, 1), 1)
    w = common.weights(ds)
    assert list(found) == ["P", "PSP", "Cov"]  # nobody knows the complete truth
    assert (found["P"], found["Cov"]) == pytest.approx((100, 200 / 3))
    best = [max(w[0], w[1]), max(w[0], w[2]), w[2]]
    assert found["PSP"] == pytest.approx(100 * (2 * w[0] + w[2]) / sum(best))
