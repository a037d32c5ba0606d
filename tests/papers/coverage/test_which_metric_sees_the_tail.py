"""Which metric notices: planted curves of what is kept, the perfect model, and the figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.data.dataset import Dataset
from xcrepro.papers.coverage import _common
from xcrepro.papers.coverage import which_metric_sees_the_tail as item
from xcrepro.repro import figures

TRAINED, PERFECT = "own, top k", "perfect, top k"


def planted(kept: dict[int, float], metric: str = "P", view: str = TRAINED) -> pd.DataFrame:
    rows = [(view, metric, 5, n, v) for n, v in kept.items()]
    return _common.kept(pd.DataFrame(rows, columns=["view", "metric", "k", "labels", "value"]))


def test_the_perfect_model_knows_its_labels_probabilities_and_no_other(twin):
    found = item.perfect(twin, [10])
    keep = item.head(twin.label_counts, 10)
    assert np.array_equal(found[10].toarray()[:, keep], twin.test.observed_marginals.toarray()[:, keep])
    assert found[10].toarray()[:, ~keep].sum() == 0
    assert found[twin.train.Y.shape[1]] is twin.test.observed_marginals


def test_views_the_figure_and_real_data_without_the_perfect_model(twin):
    n_labels = twin.train.Y.shape[1]
    table = item.compute(twin, {"own": item.perfect(twin, [10, 40])})
    assert table["view"].unique().tolist() == [TRAINED, "own, greedy", PERFECT, "perfect, greedy"]
    greedy = [item.of_view(table, f"{source}, greedy")["value"].tolist() for source in ("own", "perfect")]
    assert greedy[0] == greedy[1]  # here the trained model is the perfect one
    for error in ("ECE", "ECE corrected"):
        assert (table["metric"] == error).sum() == 2 * 3 * 3
    first = item.of_view(table).iloc[0]
    assert first["labels %"] == 100 * 10 / n_labels
    head = np.sort(twin.label_counts)[-10:].sum()
    assert first["positives %"] == pytest.approx(100 * head / twin.label_counts.sum())
    fig = item.plot(table)
    figures.held(fig, table)
    assert all(ax.get_visible() for ax in fig.axes)
    with pytest.raises(figures.DrawingFault):
        figures.held(fig, table.rename(columns={"labels %": "kept", "kept": "labels %"}))
    real = item.compute(
        Dataset("own", twin.train, twin.test, A=0.55, B=1.5), {"own": {n_labels: twin.test.observed_marginals}}
    )
    assert real["view"].unique().tolist() == [TRAINED, "own, greedy"]
    without = item.plot(real).axes
    assert [ax.get_visible() for ax in without] == [True, True, True, False]
    # The lowest panel of each column has its numbers and their name.
    assert ["labels trained" in ax.get_xlabel() for ax in without[:3]] == [False, True, True]
    assert [ax.xaxis.get_tick_params()["labelbottom"] for ax in without[:3]] == [False, True, True]


# Below the level; never below; at the level is not below; back up again further down.
@pytest.mark.parametrize(("one", "five", "labels"), [(50, 80, 7.5), (91, 95, 1), (50, 90, 5), (95, 80, 7.5)])
def test_labels_needed_is_where_a_metric_first_goes_below_the_level(one, five, labels):
    errors = (planted({1: 1.0, 10: 2.0}, error) for error in ("ECE", "ECE corrected"))
    without = *errors, planted({1: 0.0, 10: 0.0}, "R")  # errors, and no value
    [row] = item.compute_labels_needed(pd.concat([*without, planted({1: one, 5: five, 10: 100.0})])).to_numpy().tolist()
    assert row == ["P", pytest.approx(labels), pytest.approx(10 * labels)]


def test_half_puts_the_views_beside_each_other():
    table = pd.concat([planted({2: 10.0, 6: 50.0, 10: 100.0}), planted({2: 20.0, 6: 70.0, 10: 100.0}, view="two")])
    [half] = item.compute_half(table).to_dict("records")
    assert half == {"metric": "P", "labels": 6, TRAINED: 50.0, "two": 70.0}


def test_any_k_is_measured_drawn_and_said(twin):
    found = {"own": item.perfect(twin, [10, 40])}
    table = item.compute(twin, found, k=2)
    assert sorted(table["k"].unique()) == [1, 2, 3, 5]
    figures.held(item.plot(table, 2), table)
    said = item.findings(twin, found, table, 2)
    assert said[0].startswith("own, with 40 of ")
    assert "P@2 keeps a larger share than coverage@2 and the macro measures: " in said[0]
    assert any(one.startswith("perfect, fewest and most labels to keep 90 % @2: ") for one in said)


def test_a_second_model_is_in_the_table_and_the_first_is_drawn(twin):
    own, other = item.perfect(twin, [10]), item.perfect(twin, [10])
    other = {n: model * 0.5 for n, model in other.items()}
    table = item.compute(twin, {"own": own, "other": other})
    assert table["view"].unique().tolist() == [f"{m}, {r}" for m in ("own", "other", "perfect") for r in item.RULES]
    assert item.plot(table).get_suptitle().endswith(": own")
