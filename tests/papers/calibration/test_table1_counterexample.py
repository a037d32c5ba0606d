"""Table 1 by hand, and scorers that are calibrated for every label against a slow check."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.papers.calibration import table1_counterexample as table1


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
    scores = table1.score_by_groups(twin, 3)
    chance = twin.test.observed_marginals.toarray().astype(float)
    for label in range(0, chance.shape[1], 7):
        values = np.unique(scores[:, label])
        assert len(values) <= 4  # three groups, and 0 where the label is impossible
        for value in values:
            assert chance[scores[:, label] == value, label].mean() == pytest.approx(value, abs=1e-12)
    table = table1.compute_twin(twin, (3, 10**6))
    assert (table["marginal"] < 1e-9).all()
    assert table["ECE@1"][0] > 0.5
    assert table["ECE@1"][1] < 1e-4
    scores[:, 5] *= 0.5
    assert 100 * table1._worst_gap(chance, scores) > 1
