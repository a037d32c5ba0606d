"""Figures 7 to 16: hollow bins and the title by hand; a drawing that its table does not bear out is refused."""

from __future__ import annotations

import pandas as pd
import pytest

from xcrepro.papers.calibration import fig7_fig11_fig12_rerun as item
from xcrepro.repro import figures


def test_hollow_bins_the_title_and_the_numbers_drawn():
    columns = ["lower", "upper", "share", "weight", "confidence", "accuracy"]
    two = pd.DataFrame([(0.0, 0.5, 98.0, 99.5, 0.2, 0.3), (0.5, 1.0, 2.0, 0.5, 0.9, 0.4)], columns=columns)
    bins = pd.concat([two.assign(model="a", k=k, state=state) for k in (1, 5) for state in ("before", "after")])
    fig = item.plot(bins, pd.DataFrame({"model": "a", "k": [1, 5], "ECE": [12.34, 5.0], "after": [0.5, 0.7]}))
    assert fig.get_suptitle() == "Before, ECE@k goes up to 12.3 % (a, k = 1); after, no ECE@k is above 0.7 %"
    hollow = [line for line in fig.axes[1].lines if line.get_markerfacecolor() == "#ffffff"]
    assert [line.get_xydata().tolist() for line in hollow] == [[[0.9, 0.4]]] * 2
    figures.held(fig, bins)
    for column in ("share", "confidence"):
        with pytest.raises(figures.DrawingFault):
            figures.held(fig, bins.assign(**{column: bins[column] / 2}))
