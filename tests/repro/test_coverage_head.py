"""Training without the tail: the models, the metrics beside each other, and what is kept of them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xcrepro as xc
from xcrepro.data.dataset import Dataset, Split
from xcrepro.errors import ArgumentError, DataError
from xcrepro.repro import coverage_head


def dataset(train: list[list[int]], test: list[list[int]], n_labels: int) -> Dataset:
    def split(rows: list[list[int]]) -> Split:
        Y = np.zeros((len(rows), n_labels), np.float32)
        for row, labels in zip(Y, rows, strict=True):
            row[labels] = 1
        return Split(sparse.csr_matrix(np.eye(len(rows), 6, dtype=np.float32)), sparse.csr_matrix(Y))

    return Dataset("own", split(train), split(test), A=0.55, B=1.5)


# Train counts 3, 2, 1, 0.
SMALL = dataset([[0, 1], [0, 1], [0, 2]], [[0, 1], [0, 2], [2]], 4)
SCORES = sparse.csr_matrix([[0.9, 0.8, 0.1, 0.0], [0.9, 0.2, 0.8, 0.0], [0.3, 0.2, 0.7, 0.0]], dtype=np.float32)


@pytest.fixture(scope="module")
def twin():
    return xc.twin("eurlex-4k", scale=0.02, seed=0)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))


# ---------------------------------------------------------------- the models


def test_the_head_takes_the_most_frequent_labels_and_ties_to_the_lowest_id():
    assert coverage_head.head(np.array([1, 5, 2, 2, 2]), 3).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("n", [0, 6])
def test_a_head_of_no_label_or_too_many_is_refused(n):
    with pytest.raises(ArgumentError, match="heads"):
        coverage_head.head(np.ones(5, int), n)


def test_only_keeps_stored_zeros_of_the_head_and_nothing_of_the_tail():
    matrix = sparse.csr_matrix((np.array([0.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    found = coverage_head.only(matrix, np.array([True, False, True]))
    assert found.indptr.tolist() == [0, 2, 2]
    assert found.indices.tolist() == [2, 0]
    assert found.data.tolist() == [0.0, 2.0]
    assert matrix.nnz == 3


def test_a_model_of_the_head_predicts_no_other_label_and_the_full_one_does(cache, twin):
    found = coverage_head.models(twin, "DiSMEC", [20, 5], seed=0)
    assert list(found) == [5, 20, twin.train.Y.shape[1]]
    for n in (5, 20):
        keep = coverage_head.head(twin.label_counts, n)
        assert keep[np.unique(found[n].indices)].all()
        assert np.unique(found[n].indices).size == n
    assert not keep[np.unique(found[twin.train.Y.shape[1]].indices)].all()


@pytest.fixture
def saved(tmp_path):
    """Forty times the small dataset's rows, so that the check of their order has something to go by."""
    many = dataset([[0, 1], [0, 1], [0, 2]], [[0, 1], [0, 2], [2]] * 40, 4)

    def save(*names: str) -> tuple[Dataset, str]:
        for name in names:
            xc.TopK.from_scores(sparse.vstack([SCORES] * 40), 2).save(tmp_path / f"{name}.npz")
        return many, str(tmp_path)

    return save


def test_a_readers_files_take_the_place_of_the_training(saved):
    ds, folder = saved("full", "head-2", "head-1")
    found = coverage_head.models(ds, "DiSMEC", [1], given=folder)
    assert list(found) == [1, 2, 4]
    assert np.allclose(found[4].toarray()[0], [0.9, 0.8, 0, 0])


@pytest.mark.parametrize("name", ["tail-2", "head-4", "head-0", "head-x", "2"])
def test_files_whose_names_do_not_say_what_they_were_trained_on_are_refused(saved, name):
    ds, folder = saved("full", name)
    with pytest.raises(DataError, match=f"predictions called '{name}'"):
        coverage_head.models(ds, "DiSMEC", [1], given=folder)


def test_files_without_the_full_model_are_refused(saved):
    ds, folder = saved("head-2")
    with pytest.raises(DataError, match="no predictions called 'full'"):
        coverage_head.models(ds, "DiSMEC", [1], given=folder)


def test_the_perfect_model_knows_its_labels_probabilities_and_no_other(twin):
    found = coverage_head.perfect(twin, [10])
    keep = coverage_head.head(twin.label_counts, 10)
    assert np.array_equal(found[10].toarray()[:, keep], twin.test.marginals.toarray()[:, keep])
    assert found[10].toarray()[:, ~keep].sum() == 0
    assert found[twin.train.Y.shape[1]] is twin.test.marginals


def test_struck_out_compares_with_the_full_model_less_its_tail():
    # Label 2 struck out of the full model leaves 0, 1 everywhere; the head's own model turns one row round.
    trained = sparse.csr_matrix([[0.9, 0.8, 0, 0], [0.2, 0.9, 0, 0], [0.3, 0.2, 0, 0]], dtype=np.float32)
    [row] = coverage_head.struck_out(SMALL, {2: trained, 4: SCORES}, k=1).to_dict("records")
    assert row["labels"] == 2
    assert row["positives"] == pytest.approx(100 * 5 / 6)
    assert row["same in top 1"] == pytest.approx(100 * 2 / 3)
    assert row["P@1 trained"] == pytest.approx(100 / 3)
    assert row["P@1 struck out"] == pytest.approx(200 / 3)


# ---------------------------------------------------------------- the metrics


def value(table: pd.DataFrame, metric: str, k: int = 1, labels: int = 4, column: str = "value") -> float:
    [found] = table[(table["metric"] == metric) & (table["k"] == k) & (table["labels"] == labels)][column]
    return float(found)


def test_measured_by_hand():
    # Top 1 is label 0, 0, 2: all right. Top 2: 0 1; 0 2; 2 0, of which the last is wrong.
    found = coverage_head.measured(SMALL, {4: SCORES}, ks=(1, 2))
    assert value(found, "P") == 100
    assert value(found, "P", 2) == pytest.approx(500 / 6)
    assert value(found, "Abandonment") == 100
    assert value(found, "coverage") == 50
    assert value(found, "coverage", 2) == 75
    assert value(found, "macro-R") == pytest.approx(100 * (1 + 0 + 1 / 2) / 4)
    assert value(found, "macro-F1", 2) == pytest.approx(100 * (2 * 2 / 5 + 1 + 1) / 4)
    assert value(found, "label entropy") == pytest.approx(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)))
    # A tenth of three points is one: P@1 k/L.
    assert value(found, "n'-coverage") == pytest.approx(100 / 4)
    assert value(found, "macro-F1 (0)", 2) == 0
    assert value(found, "macro-F1 (1-9)", 2) == pytest.approx(100 * (2 * 2 / 5 + 1 + 1) / 3)


def test_abandonment_is_the_share_of_points_with_a_hit_and_needs_one_only():
    scores = sparse.csr_matrix([[0, 0.9, 0, 0.8], [0, 0, 0, 0.8], [0.9, 0, 0.8, 0]], dtype=np.float32)
    found = coverage_head.measured(SMALL, {4: scores}, ks=(1, 2))
    assert value(found, "Abandonment") == pytest.approx(100 / 3)
    assert value(found, "Abandonment", 2) == pytest.approx(200 / 3)


def test_the_greedy_rule_decides_for_each_k_anew():
    found = coverage_head.measured(SMALL, {4: SCORES}, "greedy", ks=(1, 2))
    for k in (1, 2):
        top = xc.decide.greedy_coverage(SCORES, k)
        assert value(found, "coverage", k) == 100 * xc.metrics.coverage(SMALL.test.Y, top, k)[0]


def test_ece_is_of_the_k_scores():
    found = coverage_head.measured(SMALL, {4: SCORES}, ks=(1, 2), calibrated=True)
    assert value(found, "ECE") == pytest.approx(100 * (2 * 0.1 + 0.3) / 3)


def test_measured_has_every_metric_once_for_each_k_and_model_in_order():
    found = coverage_head.measured(SMALL, {2: SCORES, 4: SCORES}, ks=(1, 2))
    names = list(dict.fromkeys(found["metric"]))
    assert names == [*coverage_head.POINTS, *coverage_head.LABELS, "macro-F1 (0)", "macro-F1 (1-9)"]
    assert found[["metric", "k", "labels"]].duplicated().sum() == 0
    assert len(found) == len(names) * 4
    assert found.loc[found["metric"] == "P", ["k", "labels"]].to_numpy().tolist() == [[1, 2], [1, 4], [2, 2], [2, 4]]


def planted(kept: dict[int, float], metric: str = "P", k: int = 5) -> pd.DataFrame:
    rows = [(metric, k, n, v) for n, v in kept.items()]
    return coverage_head.kept(pd.DataFrame(rows, columns=["metric", "k", "labels", "value"]))


def test_kept_is_the_share_of_the_value_with_all_labels():
    found = planted({1: 20.0, 9: 80.0})
    assert found["kept"].tolist() == [25, 100]
    assert found["full"].tolist() == [80, 80]


def test_nothing_is_kept_of_nothing():
    assert planted({1: 0.0, 9: 0.0})["kept"].isna().all()


def test_wide_has_a_column_a_number_of_labels():
    found = coverage_head.wide(planted({2: 20.0, 10: 80.0}), "kept")
    assert found.columns.tolist() == ["metric", "k", "2", "10"]
    assert found.iloc[0].tolist() == ["P", 5, 25, 100]
    assert len(coverage_head.wide(planted({2: 20.0, 10: 80.0}), k=1)) == 0


@pytest.mark.parametrize(
    ("kept", "labels"),
    [
        ({1: 50.0, 5: 80.0, 10: 100.0}, 7.5),
        ({1: 91.0, 5: 95.0, 10: 100.0}, 1.0),  # never below
        ({1: 50.0, 5: 90.0, 10: 100.0}, 5.0),  # at the level is not below
        ({1: 95.0, 5: 80.0, 10: 100.0}, 7.5),  # back up again further down
    ],
)
def test_falls_finds_where_a_metric_first_goes_below_the_level(kept, labels):
    [row] = coverage_head.falls(planted(kept)).to_dict("records")
    assert row["labels"] == pytest.approx(labels)
    assert row["share"] == pytest.approx(10 * labels)


def test_falls_leaves_out_errors_and_metrics_without_a_value():
    table = pd.concat([planted({1: 1.0, 10: 2.0}, "ECE"), planted({1: 0.0, 10: 0.0}, "R"), planted({1: 1.0, 10: 1.0})])
    assert coverage_head.falls(table)["metric"].tolist() == ["P"]


def test_without_half_puts_the_same_metrics_beside_each_other():
    one, two = planted({2: 10.0, 6: 50.0, 10: 100.0}), planted({2: 20.0, 6: 70.0, 10: 100.0})
    found = coverage_head.without_half({"one": one, "two": two}, 5)
    assert found.to_dict("records") == [{"metric": "P", "labels": 6, "one": 50.0, "two": 70.0}]


def test_steady_leaves_out_what_a_single_label_moves():
    table = pd.concat([planted({10: 1.0}, name) for name in ("ECE", "P", "alpha-coverage", "coverage")])
    found = coverage_head.steady(table)
    assert found["metric"].tolist() == ["P", "coverage"]
    assert found.index.tolist() == [0, 1]


def test_views_add_the_perfect_model_where_there_is_one(twin):
    n_labels = twin.train.Y.shape[1]
    found = coverage_head.views(twin, coverage_head.perfect(twin, [10, 40]))
    assert list(found) == ["trained, top k", "trained, greedy", "perfect, top k", "perfect, greedy"]
    pd.testing.assert_frame_equal(found["trained, greedy"], found["perfect, greedy"])
    table = found["trained, top k"]
    assert sorted(table["labels"].unique()) == [10, 40, n_labels]
    assert "ECE" in set(table["metric"])
    assert "ECE" not in set(found["trained, greedy"]["metric"])
    real = Dataset("own", twin.train, twin.test, A=0.55, B=1.5)
    assert list(coverage_head.views(real, {n_labels: twin.test.marginals})) == ["trained, top k", "trained, greedy"]


# ---------------------------------------------------------------- the printed table


def test_the_printed_table_has_seven_metrics_three_times():
    found = coverage_head.printed()
    assert len(found) == 21
    assert found["metric"].notna().all()
    row = found[(found["metric"] == "coverage") & (found["k"] == 5)].iloc[0]
    assert (row["printed full"], row["printed head"]) == (69.4, 7.5)
    assert row["printed kept"] == pytest.approx(100 * 7.5 / 69.4)


@pytest.fixture
def shares():
    return coverage_head.kept(
        coverage_head.measured(SMALL, {2: coverage_head.only(SCORES, np.arange(4) < 2), 4: SCORES}, ks=(1, 3, 5))
    )


def test_table1_sets_the_printed_row_beside_ours(shares):
    found = coverage_head.table1(shares, 2)
    assert len(found) == 3 * 9
    assert found[found["metric"].isin(["PSP", "PSnDCG"])]["printed kept"].isna().all()
    row = found[(found["metric"] == "P") & (found["k"] == 1)].iloc[0]
    # Without label 2 the top 1 is label 0 in every row: right in two of three.
    assert (row["full"], row["head"]) == (100, pytest.approx(200 / 3))
    assert (row["printed full"], row["printed head"]) == (93.0, 93.0)


def test_untouched_leaves_the_misprint_out_and_sorts(shares):
    found = coverage_head.untouched(shares, 2).set_index("metric")
    assert found.loc["nDCG", "printed kept"] == pytest.approx(50 * (80.6 / 82.2 + 66.8 / 71.2))
    assert (np.diff(found["kept"]) <= 0).all()


# ---------------------------------------------------------------- figures


def test_the_titles_say_what_the_tables_hold():
    def table(half: float) -> pd.DataFrame:
        return pd.concat(
            [
                planted({1: tenth, 5: half, 10: 100.0}, name)
                for name, tenth in (("P", 80.0), ("coverage", 30.0), ("macro-F1", 20.0))
            ]
        )

    title = coverage_head._tail_title(table(97.0), table(70.0), 5)
    assert "With 10 % of the labels trained, P@5, coverage@5, macro-F1@5 keep 80, 30, 20 % of their values" in title
    assert "with 50 %, 97, 97, 97 %, and with perfect probabilities 70, 70, 70 %." in title
    assert "perfect" not in coverage_head._tail_title(table(97.0), None, 5)
    assert "Trained on 1 of 10 labels, P@5 keeps 80 %" in coverage_head._title(table(97.0), 1)


def test_the_figures_draw_every_model(shares):
    assert len(coverage_head.plot_table1(shares).axes) == 3
    without = coverage_head.plot_tail(SMALL, shares)
    assert [ax.get_visible() for ax in without.axes] == [True, True, True, False]
    assert all(ax.get_visible() for ax in coverage_head.plot_tail(SMALL, shares, shares).axes)
