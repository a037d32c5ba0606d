"""Figures 1 and 2: counted bins by hand, titles and drawings that follow their tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import fig1_fig2_reliability as item
from xcrepro.predictions import TopK
from xcrepro.repro import figures


def test_bins_outside_the_band_by_hand():
    bins = pd.DataFrame(
        {"accuracy": [0.5, 0.1, np.nan, 0.2], "low": [0.4, 0.2, np.nan, 0.2], "high": [0.6, 0.3, np.nan, 0.3]}
    )
    table = pd.concat([bins.assign(model="a", state=state, k=1) for state in calibrated.STATES])
    table.loc[(table["state"] == "after") & (table["accuracy"] == 0.1), "accuracy"] = 0.25
    found = item.describe_outside(table)
    assert found.to_dict("records") == [{"model": "a", "before, k = 1": "1 of 3", "after, k = 1": "0 of 3"}]


def test_the_figures_show_their_table_and_say_its_errors(many):
    ds, top = many
    tops = {"a": top, "b": TopK(top.ids, top.scores * np.float32(0.5), 6)}
    states = calibrated.before_after(ds, tops, (3,))
    summary, bins = item.compute(ds, states), item.compute_bins(ds, states)
    ece = summary.set_index("model")["ECE"]
    fig1, fig2 = item.plot_fig1(bins, summary), item.plot_fig2(bins, summary, ["b", "a"])
    assert f"{ece['b']:.1f}, {ece['a']:.1f} % before" in fig2.get_suptitle()
    assert f"to {ece.max():.1f} % ({ece.idxmax()})" in fig1.get_suptitle()
    for fig in (fig1, fig2):
        figures.held(fig, bins)
        with pytest.raises(figures.DrawingFault):
            figures.held(fig, bins.assign(accuracy=bins["accuracy"] / 2))
