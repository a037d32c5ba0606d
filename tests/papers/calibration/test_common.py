"""What the reliability items share: by hand, or against a slow way that shares nothing with it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binom

from xcrepro.findings import Difference
from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.papers.calibration import _common as shared
from xcrepro.predictions import TopK
from xcrepro.repro import figures


def data(scores, hits) -> tuple[SimpleNamespace, TopK]:
    """A dataset and predictions of one label a point, label 0 where it is relevant, with these scores and hits."""
    hits = np.asarray(hits, float)
    Y = csr_matrix(np.column_stack([hits, 1 - hits]))
    ids = np.zeros((len(hits), 1), np.int32)
    return SimpleNamespace(test=SimpleNamespace(Y=Y)), TopK(ids, np.asarray(scores, np.float32)[:, None], 2)


@pytest.fixture
def two_bins():
    """Ten points with score 0.95, five of them hits, and ten with 0.15, one of them a hit; alternating."""
    hits = np.zeros(20)
    hits[[0, 2, 4, 6, 8, 1]] = 1
    return data(np.tile([0.95, 0.15], 10), hits)


def test_the_bins_of_a_case_by_hand(two_bins):
    ds, top = two_bins
    found = shared.compute_bins(ds, {("a", 1): (top, top)}).query("state == 'before'").set_index("bin")
    assert found["share"].tolist() == found["weight"].tolist() == [0, 50, 0, 0, 0, 0, 0, 0, 0, 50]
    np.testing.assert_allclose(found.loc[[1, 9], "confidence"], [0.15, 0.95], rtol=1e-6)
    np.testing.assert_allclose(found.loc[[1, 9], "accuracy"], [0.1, 0.5])
    assert found.loc[[0, 2, 8], "accuracy"].isna().all()
    # ten fair draws of 0.95 and of 0.15: the two-sided 95 % intervals of the binomial law
    for place, p in ((9, 0.95), (1, 0.15)):
        expected = binom.ppf([0.025, 0.975], 10, p) / 10
        np.testing.assert_allclose(found.loc[place, ["low", "high"]].astype(float), expected)


def test_a_score_on_an_edge_counts_left_in_the_histogram_and_right_in_the_curve():
    ds, top = data([0.5, 0.5, 0.25, 0.75], [1, 0, 0, 1])
    found = shared.compute_bins(ds, {("a", 1): (top, top)}).query("state == 'after'").set_index("bin")
    assert found.loc[[4, 5], "share"].tolist() == [0, 50]
    assert found.loc[[4, 5], "weight"].tolist() == [50, 0]


def test_the_summary_of_a_case_by_hand(two_bins):
    ds, top = two_bins
    row = shared.compute_summary(ds, calibrated.before_after(ds, {"a": top}, (1,))).iloc[0]
    # half of 45 and half of 5, both promising too much
    expected = {"mean score": 55, "hit rate": 30, "ECE": 25, "over": 25, "under": 0}
    assert row[list(expected)].to_dict() == pytest.approx(expected)


def test_after_is_the_error_of_the_calibrated_pairs(overconfident):
    ds, top = overconfident
    states = calibrated.before_after(ds, {"a": top}, (2,))
    scores, hits = metric.pairs(ds.test.Y, states["a", 2][1])
    error = metric.ece(scores, hits, closed="torchmetrics")
    assert shared.compute_summary(ds, states)["after"].tolist() == [pytest.approx(100 * error)]
    state = shared.compute_bins(ds, states).query("state == 'after'")
    assert (state["confidence"].fillna(0) * state["weight"]).sum() / 100 == pytest.approx(scores.mean(), rel=1e-5)


def test_the_errors_stand_where_no_curve_comes_down():
    rows = pd.DataFrame({"model": "PLT", "k": [1, 5], "ECE": [1.25, 0.5]})
    for last, left in ((0.9, False), (0.3, True), (np.nan, False)):
        with figures.new(3, 3) as (_, ax):
            ax.plot([0.2, 0.6, 0.9], [0.1, 0.7, last])
            shared.draw_diagonal(ax)
            shared.write_errors(ax, rows, "ECE")
        [words] = ax.texts
        assert words.get_text() == "ECE, %\n@1: 1.2\n@5: 0.5"
        assert (words.get_position()[0] < 0.5) == (words.get_position()[1] > 0.5) == left


def test_directions_by_hand():
    rows = [("a", 8, 7, 1), ("b", 8, 1, 7), ("c", 8, 5, 3), ("d", 1.9, 1.9, 0), ("e", 2, 2, 0)]
    found = pd.DataFrame(rows, columns=["model", "ECE", "over", "under"]).assign(k=3, floor=1.0)
    assert shared.describe_direction(found)["k = 3"].tolist() == ["over", "under", "mixed", "fine", "over"]


def test_errors_of_states_are_those_of_the_pairs_and_their_jackknife(overconfident):
    ds, top = overconfident
    states = calibrated.before_after(ds, {"a": top}, (2,))
    for name in ("ECE", "ACE", "Brier", "NLL"):
        found = calibrated.measured_states(ds, states, name)[2]
        for state, each in zip(("before", "after"), states["a", 2], strict=True):
            assert found.values[f"a, {state}"] == pytest.approx(calibrated.measure(ds, each, 2, (name,))[name])
    blocks = np.array_split(np.arange(300), 20)
    slow = []
    for block in blocks:
        keep = np.setdiff1d(np.arange(300), block)
        scores, hits = metric.pairs(ds.test.Y[keep], states["a", 2][0].rows(keep))
        slow.append(100 * np.mean((scores - hits.astype(float)) ** 2))
    found = calibrated.measured_states(ds, states, "Brier")[2]
    np.testing.assert_allclose(found.replicates["a, before"], slow, rtol=1e-6)
    assert calibrated.before_minus_after(found)[0].verdict == "above"


def test_relations_are_clear_only_where_chance_is_excluded():
    def errors(n, values, datasets=("d",)):
        rows = [
            (1, d, f"m{i}", float(i), "ECE", "none", v) for d in datasets for i, v in zip(range(n), values, strict=True)
        ]
        return pd.DataFrame(rows, columns=["k", "dataset", "method", "P", "metric", "variant", "value"])

    assert "clear relation in 1 of 1 case (a dataset at one k): d at k = 1 (tau 1.00)" in shared.describe_relations(
        errors(8, range(8))
    )
    # Two cases of five models: even one in the exact order of P is no more than chance.
    said = shared.describe_relations(errors(4, [0, 1, 2, 3], ("d", "e")))
    assert "no clear relation in any of 2 cases" in said
    assert "with 4 models none could be" in said
    assert "too few models" in shared.describe_relations(errors(1, [3]))
    assert "none could be" not in shared.describe_relations(errors(8, [3, 1, 5, 0, 6, 2, 7, 4]))


def test_signs_by_hand():
    found = [
        Difference("a, x", "b", 1.0, 0.1, 19, 0.01),
        Difference("c, x", "d", -1.0, 0.1, 19, 0.01),
        Difference("e", "f", 1.0, 1.0, 19, 0.4),
    ]
    assert shared.sort_by_sign(found) == {"above": ["a"], "below": ["c"], "not clear": ["e"]}
    assert "not clear" in shared.describe_difference(found[2], "x")
