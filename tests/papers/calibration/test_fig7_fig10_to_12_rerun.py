"""Figures 7 and 10 to 12: hollow bins and the title by hand, drawings held to their table; equations 1 and 2 on the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.data.dataset import Dataset
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import fig7_fig10_to_12_rerun as item
from xcrepro.predictions import TopK
from xcrepro.repro import figures


def test_hollow_bins_the_title_and_the_numbers_drawn():
    columns = ["lower", "upper", "share", "weight", "confidence", "accuracy"]
    two = pd.DataFrame([(0.0, 0.5, 98.0, 99.5, 0.2, 0.3), (0.5, 1.0, 2.0, 0.5, 0.9, 0.4)], columns=columns)
    bins = pd.concat([two.assign(model="a", k=k, state=state) for k in (1, 5) for state in ("before", "after")])
    fig = item.plot(bins, pd.DataFrame({"model": "a", "k": [1, 5], "ECE": [12.34, 5.0], "after": [0.5, 0.7]}))
    assert fig.get_suptitle() == "Scores and reliability before and after isotonic regression"
    hollow = [line for line in fig.axes[1].lines if line.get_markerfacecolor() == "#ffffff"]
    assert [line.get_xydata().tolist() for line in hollow] == [[[0.9, 0.4]]] * 2
    figures.held(fig, bins)
    for column in ("share", "confidence"):
        with pytest.raises(figures.DrawingFault):
            figures.held(fig, bins.assign(**{column: bins[column] / 2}))


def test_findings_of_a_planted_overconfidence(twin, misjudged):
    states = calibrated.before_after(twin, {"over": misjudged(twin, 5, 0.4), "right": misjudged(twin, 5)}, (5,))
    measured = item.measure(twin, states)
    summary = item.compute_table(twin, states, measured)
    said = item.findings(summary, measured)
    assert (
        said[0]
        == "The direction of the error before calibration, over 2 pairs of a model and a k: over in 1, fine in 1."
    )
    assert "ECE@k is lower after isotonic regression: clearly so in 1 of 2 comparisons" in said[1]
    assert f"{(summary['after corrected low'] == 0).sum()} of 2 intervals" in said[2]
    assert (summary["ECE ±"] > 0).all()


def test_equation_2_divides_each_row_by_its_own_sum():
    top = TopK.from_scores(np.array([[0.5, -np.inf, 0.25], [0.0, 0.0, 0.0], [0.9, 0.8, 0.3]]), 3)
    found = item.divide_by_sum(top)
    np.testing.assert_array_equal(found.ids, top.ids)
    np.testing.assert_allclose(found.scores[0], [2 / 3, 1 / 3, -np.inf])
    np.testing.assert_array_equal(found.scores[1], 0)
    np.testing.assert_allclose(found.scores[2], np.array([0.9, 0.8, 0.3]) / 2.0, rtol=1e-6)


def test_the_truth_is_calibrated_until_it_is_divided(twin, misjudged):
    reduced = item.reduce_both_ways(twin, {"over": misjudged(twin, twin.test.Y.shape[1], 0.4)})
    assert list(reduced) == ["truth, eq. 1", "truth, eq. 2", "over, eq. 1", "over, eq. 2"]
    chances = twin.test.observed_marginals.toarray().astype(float)
    shares = chances / chances.sum(axis=1, keepdims=True)
    top = reduced["truth, eq. 2"]
    present = top.ids >= 0
    want = np.take_along_axis(shares, np.where(present, top.ids, 0).astype(int), 1)
    np.testing.assert_allclose(top.scores[present], want[present], rtol=1e-5)
    table = item.compute_reductions(twin, reduced).set_index(["model", "k"])
    right, divided = table.loc["truth, eq. 1"], table.loc["truth, eq. 2"]
    assert (right["hit rate"] == divided["hit rate"]).all()
    assert (right["ECE"] < 2 * right["floor"]).all()
    assert (divided["ECE"] > 5 * right["ECE"]).all()
    assert (divided["loss"] > right["loss"]).all()  # equation 1 is least at the truth
    # Equation 1's loss, pair by pair; a label without a chance is never relevant and costs nothing.
    Y = twin.test.Y.toarray() > 0
    with np.errstate(divide="ignore"):
        cost = np.where(Y, -np.log(chances), -np.log1p(-chances))
    assert right["loss"].iloc[0] == pytest.approx(np.minimum(cost, 100).sum() / len(Y), rel=1e-4)
    said = item.findings_reductions(twin, reduced)
    assert len(said) == 4
    assert said[0].startswith("Before calibration ECE@5 of truth, eq. 2 is ")
    assert "above truth, eq. 1's" in said[0]
    real = Dataset(**{name: getattr(twin, name) for name in Dataset.__dataclass_fields__})
    assert list(item.reduce_both_ways(real, {})) == []
