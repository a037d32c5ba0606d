"""Figures 7 to 16: hollow bins and title by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from xcrepro.papers.calibration import fig7_to_16_rerun as item
from xcrepro.repro import figures


@pytest.fixture
def tables():
    """Two bins of one model: the first holds 99.5 % of the pairs, the second the rest."""
    bins = pd.DataFrame(
        {"lower": [0.0, 0.5], "upper": [0.5, 1.0], "share": [98.0, 2.0], "weight": [99.5, 0.5],
         "confidence": [0.2, 0.9], "accuracy": [0.3, 0.4]}
    )  # fmt: skip
    parts = [bins.assign(model="a", k=k, state=state) for k in (1, 5) for state in ("before", "after")]
    summary = pd.DataFrame({"model": "a", "k": [1, 5], "ECE": [12.34, 5.0], "after": [0.5, 0.7]})
    return pd.concat(parts), summary


def test_bins_with_few_pairs_are_hollow(tables):
    curve = item.plot(*tables).axes[1]
    hollow = [line for line in curve.lines if line.get_markerfacecolor() == "#ffffff"]
    assert [line.get_xydata().tolist() for line in hollow] == [[[0.9, 0.4]]] * 2


def test_the_figure_says_the_largest_errors_and_shows_its_table(tables):
    bins, _ = tables
    fig = item.plot(*tables)
    assert fig.get_suptitle() == "Before, ECE@k goes up to 12.3 % (a, k = 1); after, no ECE@k is above 0.7 %"
    figures.held(fig, bins)
    for column in ("share", "confidence"):
        with pytest.raises(figures.DrawingFault):
            figures.held(fig, bins.assign(**{column: bins[column] / 2}))
