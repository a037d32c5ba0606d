"""Figures 7, 11 and 12: hollow bins and the title by hand; a drawing that its table does not bear out is refused."""

from __future__ import annotations

import pandas as pd
import pytest

from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import fig7_fig11_fig12_rerun as item
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
    assert list(item.check_table(summary)) == [
        name for name in summary if "±" not in name and not name.endswith((" low", " high"))
    ]
    assert (summary["ECE ±"] > 0).all()
