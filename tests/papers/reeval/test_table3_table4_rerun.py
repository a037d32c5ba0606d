"""Tables 3 and 4, rerun: hand-worked numbers, planted orders, and what is loaded."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
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


def board(columns=()):
    """Tables 3 and 4 of three models; what is not given is 0."""
    zeros = {f"{metric}@{k}": 0.0 for metric in _common.METRICS for k in _common.KS}
    return pd.DataFrame({"dataset": "EURLex-4K", "method": ["SVM", "A", "B"], **zeros, **dict(columns)})


def test_pairs_in_opposite_order():
    values = {"macro_F1@5": [3, 2, 1], "P@5": [3, 2, 1], "micro_F1@5": [1, 2, 3], "N@5": [1, 2, 2], "PSP@5": [3, 1, 2]}
    rows = rerun.compute_opposite_pairs(board(values)).set_index("k")
    assert rows.loc[5].to_dict() == {"dataset": "EURLex-4K", "P": 0, "micro_F1": 3, "N": 2, "PSP": 1, "pairs": 3}
    # The last digit of what is equal is no order.
    found = board({"macro_F1@1": [3, 2, 1], "P@1": [0.1 + 0.2, 0.3 + 1e-15, 0.3]})
    assert rerun.compute_opposite_pairs(found)["P"].tolist() == [0, 0, 0]


def test_pairs_in_the_opposite_order_of_the_complete_truth():
    complete = {f"P@{k} complete": [3, 2, 1] for k in (1, 3, 5)}
    twin = board({**complete, "P@3": [1, 2, 3], "PSP@3": [3, 1, 2]})
    rows = rerun.compute_opposite_to_complete(pd.concat([twin, board().assign(dataset="real")])).set_index("k")
    assert set(rows["dataset"]) == {"EURLex-4K"}
    assert rows.loc[3, ["P", "PSP", "pairs"]].tolist() == [3, 1, 3]
    assert rerun.compute_opposite_to_complete(board()).empty


def test_the_complete_truth_stands_behind_the_observed(loaded, tops, twin):
    found = rerun.compute(loaded, tops).set_index("method")
    top = tops["EURLex-4K"]["SVM"]
    for column, values in (
        ("P", xc.metrics.precision(twin.test.Y_complete, top)),
        ("N", xc.metrics.ndcg(twin.test.Y_complete, top)),
    ):
        ours = found.loc["SVM", [f"{column}@{k} complete" for k in (1, 3, 5)]]
        assert ours.tolist() == pytest.approx((100 * values).tolist())


def test_compared_with_the_printed_svm():
    rows = rerun.compare_with_printed(board({"P@1": [80, 82, 82]})).set_index("column").loc["P@1"]
    assert (rows["SVM here"], rows["best here"], rows["ahead here"]) == (80, "A = B", 2)
    assert (rows["SVM printed"], rows["best printed"]) == (83.44, "LightXML")
    assert rows["ahead printed"] == pytest.approx(86.98 - 83.44)
    assert rerun.compare_with_printed(board().assign(dataset="own")).empty
    assert rerun.compare_with_printed(board()[1:]).empty


# ---------------------------------------------------------------- what is loaded


def test_saved_predictions_lie_in_a_folder_a_dataset(tops, tmp_path):
    (tmp_path / "eurlex-4k").mkdir()
    mine = tops["EURLex-4K"]["noisy"]
    mine.save(tmp_path / "eurlex-4k" / "mine.npz")
    found = _common.predictions(datasets.pick_many(["eurlex-4k"], "small", [0.2]), given=str(tmp_path))
    assert list(found["EURLex-4K"]) == ["mine"]
    np.testing.assert_array_equal(found["EURLex-4K"]["mine"].ids, mine.ids)


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
