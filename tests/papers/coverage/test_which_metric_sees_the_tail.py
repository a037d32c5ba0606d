"""Which metric notices: planted curves of what is kept, the perfect model, and the figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.data.dataset import Dataset
from xcrepro.papers.coverage import _common
from xcrepro.papers.coverage import which_metric_sees_the_tail as item
from xcrepro.repro import figures


def planted(kept: dict[int, float], metric: str = "P", view: str = item.TRAINED) -> pd.DataFrame:
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
    table = item.compute(twin, item.perfect(twin, [10, 40]))
    assert table["view"].unique().tolist() == [item.TRAINED, "trained, greedy", item.PERFECT, "perfect, greedy"]
    greedy = [item.of_view(table, f"{source}, greedy")["value"].tolist() for source in ("trained", "perfect")]
    assert greedy[0] == greedy[1]  # here the trained model is the perfect one
    assert (table["metric"] == "ECE").sum() == 2 * 3 * 3
    first = item.of_view(table).iloc[0]
    assert first["labels %"] == 100 * 10 / n_labels
    head = np.sort(twin.label_counts)[-10:].sum()
    assert first["positives %"] == pytest.approx(100 * head / twin.label_counts.sum())
    fig = item.plot(table)
    figures.held(fig, table)
    assert all(ax.get_visible() for ax in fig.axes)
    with pytest.raises(figures.DrawingFault):
        figures.held(fig, table.rename(columns={"labels %": "kept", "kept": "labels %"}))
    real = item.compute(Dataset("own", twin.train, twin.test, A=0.55, B=1.5), {n_labels: twin.test.observed_marginals})
    assert real["view"].unique().tolist() == [item.TRAINED, "trained, greedy"]
    assert [ax.get_visible() for ax in item.plot(real).axes] == [True, True, True, False]


# Below the level; never below; at the level is not below; back up again further down.
@pytest.mark.parametrize(("one", "five", "labels"), [(50, 80, 7.5), (91, 95, 1), (50, 90, 5), (95, 80, 7.5)])
def test_labels_needed_is_where_a_metric_first_goes_below_the_level(one, five, labels):
    without = planted({1: 1.0, 10: 2.0}, "ECE"), planted({1: 0.0, 10: 0.0}, "R")  # an error, and no value
    [row] = item.compute_labels_needed(pd.concat([*without, planted({1: one, 5: five, 10: 100.0})])).to_numpy().tolist()
    assert row == ["P", pytest.approx(labels), pytest.approx(10 * labels)]


def test_half_puts_the_views_beside_each_other():
    table = pd.concat([planted({2: 10.0, 6: 50.0, 10: 100.0}), planted({2: 20.0, 6: 70.0, 10: 100.0}, view="two")])
    [half] = item.compute_half(table).to_dict("records")
    assert half == {"metric": "P", "labels": 6, item.TRAINED: 50.0, "two": 70.0}


def test_the_title_says_what_the_table_holds():
    def table(view: str, half: float) -> pd.DataFrame:
        tenths = {"P": 80.0, "coverage": 30.0, "macro-F1": 20.0}
        return pd.concat([planted({1: low, 5: half, 10: 100.0}, name, view) for name, low in tenths.items()])

    trained = table(item.TRAINED, 97.0)
    title = item.describe_loss(pd.concat([trained, table(item.PERFECT, 70.0)]), 5)
    assert "With 10 % of the labels trained, P@5, coverage@5, macro-F1@5 keep 80, 30, 20 % of their values" in title
    assert title.endswith("with 50 %, 97, 97, 97 %, and with perfect probabilities 70, 70, 70 %.")
    assert item.describe_loss(trained, 5).endswith("97, 97, 97 %.")
