"""Table 1 by hand, and scorers that are calibrated for every label against a slow check."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from xcrepro.data.dataset import Dataset, Split
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import table1_counterexample as table1
from xcrepro.predictions import TopK


def test_the_example_is_calibrated_label_by_label_and_not_at_the_top():
    chance, scores = table1.read_example()
    assert chance.tolist() == [[0.8, 0.9], [0.6, 0.4]]
    assert scores.tolist() == [[0.7, 0.9], [0.7, 0.4]]
    table = table1.compute_table(chance, scores)
    assert table["who"].tolist() == ["label 1", "label 2", "label 2", "top 1", "top 1"]
    assert table["score"].tolist() == [0.7, 0.9, 0.4, 0.9, 0.7]
    assert table["gap"].tolist() == [0, 0, 0, 0, -0.1]
    off = table1.compute_table(np.add(chance, [[0.1, 0], [0, 0]]), scores)
    assert off["gap"][0] == pytest.approx(0.05)


def test_the_metrics_on_copies_of_the_points_are_those_of_the_example():
    chance, scores = table1.read_example()
    found = table1.compute_measured(chance, scores).set_index("metric")
    np.testing.assert_allclose(found["before"], [0, 0.05, 0.8, 0.75], atol=1e-7)
    np.testing.assert_allclose(found["after"], [np.nan, 0, 0.75, 0.75], atol=1e-7)


def test_scores_by_groups_are_calibrated_for_every_label(twin):
    order, true = table1.chances(twin)
    scores = table1.score_by_groups(order, true, 3)
    chance = twin.test.observed_marginals.toarray().astype(float)
    for label in range(0, chance.shape[1], 7):
        values = np.unique(scores[:, label])
        assert len(values) <= 4  # three groups, and 0 where the label is impossible
        for value in values:
            assert chance[scores[:, label] == value, label].mean() == pytest.approx(value, abs=1e-12)
    table = table1.compute_scorers(order, true, (3, 10**6))
    assert (table["marginal"] < 1e-9).all()
    assert table["ECE@1"][0] > 0.5
    assert table["ECE@1"][1] < 1e-4
    top = TopK.from_scores(scores, 3)
    assert table["ECE@3"][0] == pytest.approx(100 * calibrated.true_error(twin, top), rel=1e-9)
    scores[:, 5] *= 0.5
    assert 100 * table1._worst_gap(chance, scores) > 1


def test_real_data_are_ordered_by_a_model_and_counted_by_their_truth():
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.random((60, 4)))
    Y = csr_matrix((rng.random((60, 3)) < [0.5, 0.3, 0.2]).astype(np.float32))
    ds = Dataset("own", Split(X, Y), Split(X, Y), 0.55, 1.5)
    order, chance = table1.chances(ds, "Popularity")
    table = table1.compute_scorers(order, chance, (2,))
    assert list(table) == ["groups", "marginal", "ECE@1", "bias@1", "ECE@3", "bias@3"]  # three labels have no five best
    assert table["marginal"][0] < 1e-9
    scores = table1.score_by_groups(order, chance, 2)
    hits = np.take_along_axis(Y.toarray() > 0, scores.argmax(axis=1)[:, None], 1)
    assert table["bias@1"][0] == pytest.approx(100 * (scores.max(axis=1).mean() - hits.mean()), abs=1e-4)


def test_findings_say_which_way_the_best_labels_err():
    chance, scores = table1.read_example()
    example, measured = table1.compute_table(chance, scores), table1.compute_measured(chance, scores)
    scorers = pd.DataFrame({"groups": [2, 9], "marginal": 0.0, "ECE@1": [7.8, 0.1], "bias@1": [-6.8, 0.0]})
    said = table1.findings(example, measured, scorers)
    assert "at score 0.7 its chance is 0.6" in said[0]
    assert said[1] == "Its marginal ECE is 0.00 and its ECE@1 0.05."
    assert "7.8 points with 2 values a label and 0.1 with 9" in said[2]
    assert "too low (by 6.8 points)" in said[3]
    assert "too high" in table1.findings(example, measured, scorers.assign(**{"bias@1": 2.0}))[3]
