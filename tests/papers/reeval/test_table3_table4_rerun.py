"""Tables 3 and 4, rerun: hand-worked numbers, planted orders, and what is loaded."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.findings import Measured
from xcrepro.inputs import baselines, datasets
from xcrepro.papers.reeval import _common, table3_table4
from xcrepro.papers.reeval import table3_table4_rerun as rerun
from xcrepro.predictions import TopK


def test_both_tables_by_hand(dataset):
    ds = dataset([[1, 0, 1, 0], [0, 1, 0, 0]], [50, 20, 10, 1])
    top = TopK.from_ids([[0, 1, 2, -1, -1], [3, 1, 0, -1, -1]], n_labels=4)
    [row] = rerun.compute({"D": ds}, {"D": {"M": top}}).to_dict("records")
    assert (row["P@1"], row["P@3"], row["P@5"]) == (50, 50, 30)
    # TP 1, 2 said, 3 so; TP 3, 6 said, 3 so.
    assert row["micro_F1@1"] == pytest.approx(100 * 2 / 5)
    assert row["micro_F1@3"] == row["micro_F1@5"] == pytest.approx(100 * 6 / 9)
    assert row["macro_F1@1"] == pytest.approx(100 / 4)
    assert row["macro_F1@3"] == pytest.approx(100 * (2 / 3 + 2 / 3 + 1) / 4)
    discount = 1 / np.log2(np.arange(2, 5))
    first, second = discount[[0, 2]].sum() / discount[:2].sum(), discount[1]
    assert row["N@3"] == pytest.approx(100 * (first + second) / 2)
    w = 1 + (np.log(100) - 1) * 2.5**0.55 * (np.array([50, 20, 10, 1]) + 1.5) ** -0.55
    assert row["PSP@1"] == pytest.approx(100 * w[0] / (w[2] + w[1]))
    assert row["PSP@3"] == pytest.approx(100)


def test_columns_are_the_printed_ones_and_micro_f1_orders_as_precision_does(loaded, tops, twin):
    found = rerun.compute(loaded, tops)
    observed = [name for name in found if not name.endswith(" complete")]
    assert observed == list(table3_table4.compute().columns)
    assert list(_common.only_table(found, 4))[2:6] == ["N@1", "N@1 complete", "N@3", "N@3 complete"]
    named = np.array([(top.head(5).ids >= 0).sum() for top in tops["EURLex-4K"].values()])
    ratio = (found["micro_F1@5"] / found["P@5"]).to_numpy()
    assert ratio == pytest.approx(10 * twin.test.Y.shape[0] / (named + twin.test.Y.nnz))


def planted(columns=(), complete=False, apart=0.001):
    """Measured columns of three models; what is not given is 3, 2, 1 of them. ``apart``: the scatter of the replicates."""
    names = [f"{metric}@{k}" for metric in _common.METRICS for k in _common.KS]
    names += [f"P@{k} complete" for k in _common.KS] if complete else []
    noise = apart * np.linspace(-1, 1, 20)
    found = {}
    for name in names:
        values = dict(zip(("SVM", "A", "B"), dict(columns).get(name, [3.0, 2.0, 1.0]), strict=True))
        found[name] = Measured(values, {m: v + i * noise for i, (m, v) in enumerate(values.items())})
    return {"D": found}


def test_pairs_in_opposite_order():
    values = {"macro_F1@5": [3, 2, 1], "P@5": [3, 2, 1], "micro_F1@5": [1, 2, 3], "N@5": [1, 2, 2], "PSP@5": [3, 1, 2]}
    row = rerun.compute_opposite_pairs(planted(values)).set_index("k").loc[5]
    assert row[["dataset", "pairs", "P", "micro_F1", "N", "PSP"]].tolist() == ["D", 3, 0, 3, 2, 1]
    assert row[["micro_F1 clearly", "N clearly", "PSP clearly"]].tolist() == [3, 2, 1]
    # With a large scatter nothing is clear.
    row = rerun.compute_opposite_pairs(planted(values, apart=50.0)).set_index("k").loc[5]
    assert row[["micro_F1", "micro_F1 clearly"]].tolist() == [3, 0]
    # The last digit of what is equal is no order.
    found = planted({"macro_F1@1": [3, 2, 1], "P@1": [0.1 + 0.2, 0.3 + 1e-15, 0.3]})
    assert rerun.compute_opposite_pairs(found)["P"].tolist() == [0, 0, 0]


def test_pairs_in_the_opposite_order_of_the_complete_truth():
    twin = planted({"P@3": [1, 2, 3], "PSP@3": [3, 1, 2]}, complete=True)
    rows = rerun.compute_opposite_pairs(twin | {"real": planted()["D"]}, "P complete").set_index("k")
    assert set(rows["dataset"]) == {"D"}
    assert rows.loc[3, ["P", "PSP", "pairs"]].tolist() == [3, 1, 3]
    assert rerun.compute_opposite_pairs(planted(), "P complete").empty


def test_findings_on_planted_models():
    said = rerun.findings(planted({"macro_F1@5": [1, 2, 3]}))
    assert said[0].startswith("D: SVM leads P@5, by 1.000 ± 0.003 points over A;")
    assert "B leads macro-F1@5" in said[0]
    assert said[1].startswith(
        "Of 9 pairs of models (datasets and k together) P puts 3 in the opposite order of macro-F1, 3 of"
    )
    assert not any("complete" in text for text in said)
    assert "no clear leader in P@5" in rerun.findings(planted(apart=50.0))[0]
    alone = {"D": {name: Measured({"SVM": 1.0}, {"SVM": np.ones(20)}) for name in planted()["D"]}}
    [said] = rerun.findings(alone)
    assert "P@5 of SVM alone" in said


def test_measured_columns_are_those_of_the_table(loaded, tops):
    measured, found = rerun.measure(loaded, tops)["EURLex-4K"], rerun.compute(loaded, tops).set_index("method")
    for column in found.columns.drop("dataset"):
        if column in measured:
            for method in found.index:
                assert measured[column].values[method] == pytest.approx(found.loc[method, column])
    assert "P@1 complete" in measured
    errors = rerun.compute_errors({"EURLex-4K": measured}).set_index("method")
    assert errors.loc["SVM", "P@1"] == measured["P@1"].error("SVM") > 0
    assert not any(name.endswith("complete") for name in errors)


def test_the_complete_truth_stands_behind_the_observed(loaded, tops, twin):
    found = rerun.compute(loaded, tops).set_index("method")
    top = tops["EURLex-4K"]["SVM"]
    for column, values in (
        ("P", xc.metrics.precision(twin.test.Y_complete, top)),
        ("N", xc.metrics.ndcg(twin.test.Y_complete, top)),
    ):
        ours = found.loc["SVM", [f"{column}@{k} complete" for k in (1, 3, 5)]]
        assert ours.tolist() == pytest.approx((100 * values).tolist())


def board(columns=()):
    """Tables 3 and 4 of three models; what is not given is 0."""
    zeros = {f"{metric}@{k}": 0.0 for metric in _common.METRICS for k in _common.KS}
    return pd.DataFrame({"dataset": "EURLex-4K", "method": ["SVM", "A", "B"], **zeros, **dict(columns)})


def test_printed_rows_stand_behind_ours():
    both = rerun.with_printed(pd.concat([board(), board().assign(dataset="own")]), 3)
    assert both["from"].tolist() == ["here"] * 3 + ["printed"] * 5 + ["here"] * 3
    assert both["method"].tolist()[3:8] == list(table3_table4.METHODS)
    assert both.loc[3, "P@1"] == 83.44
    [said] = rerun.compare_with_printed(board({"P@5": [80, 82, 82]}))
    assert said.startswith("EURLex-4K, SVM: P@5 80.0 here, 59.1 printed; ")
    assert rerun.compare_with_printed(board().assign(dataset="own")) == []
    assert rerun.compare_with_printed(board()[1:]) == []


# ---------------------------------------------------------------- what is loaded


def test_saved_predictions_lie_in_a_folder_a_dataset(tops, tmp_path):
    (tmp_path / "eurlex-4k").mkdir()
    mine = tops["EURLex-4K"]["noisy"]
    mine.save(tmp_path / "eurlex-4k" / "mine.npz")
    given = {"given": str(tmp_path), "models": []}
    found = _common.predictions(datasets.pick_many(["eurlex-4k"], "small", [0.2]), **given)
    assert list(found["EURLex-4K"]) == ["mine"]
    np.testing.assert_array_equal(found["EURLex-4K"]["mine"].ids, mine.ids)


def test_own_predictions_stand_before_the_models(twin, tops, tmp_path, monkeypatch):
    monkeypatch.setattr(_common, "predict", lambda model, ds: type(model).__name__)
    (tmp_path / "eurlex-4k").mkdir()
    for name in ("mine", "PLT"):
        tops["EURLex-4K"]["noisy"].save(tmp_path / "eurlex-4k" / f"{name}.npz")
    found = _common.predictions({"T": twin}, given=str(tmp_path), models=["SVM", "PLT"])["T"]
    assert list(found) == ["PLT", "mine", "SVM"]
    assert found["SVM"] == "DiSMEC"
    bare = dataclasses.replace(twin, train=dataclasses.replace(twin.train, X=None))
    assert list(_common.predictions({"T": bare}, given=str(tmp_path))["T"]) == ["PLT", "mine"]


def test_the_tree_is_the_shared_one_unless_its_leaves_are_changed(twin, monkeypatch):
    def training(model, X, Y):
        return SimpleNamespace(predictions=lambda X, k: model)

    monkeypatch.setattr(_common.trained, "training", training)
    asked = _common.predictions({"T": twin}, seed=4)["T"]
    for name, baseline in _common.MODELS.items():
        shared = baselines.recipe(baseline, twin, 4)
        assert type(asked[name]) is type(shared)
        assert asked[name].get_params() == shared.get_params()
    assert _common.predictions({"T": twin}, max_leaf=10)["T"]["PLT"].max_leaf == 10


def test_features_without_a_train_point_are_left_out_where_they_are_the_most(monkeypatch):
    def training(model, X, Y):
        return SimpleNamespace(predictions=lambda test, k: (X, test))

    monkeypatch.setattr(_common.trained, "training", training)
    ds = xc.twin("wiki10-31k", scale=0.001)
    X, test = _common.predict(None, ds)
    used = np.unique(ds.train.X.indices)
    assert X.shape[1] == test.shape[1] == used.size < ds.train.X.shape[1] / 2
    assert (ds.train.X[:, used] != X).nnz == 0
    assert (ds.test.X[:, used] != test).nnz == 0
