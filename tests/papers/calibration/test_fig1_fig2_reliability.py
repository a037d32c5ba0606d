"""Figures 1 and 2: counted bins by hand, titles that follow the table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import fig1_fig2_reliability as item
from xcrepro.predictions import TopK


def test_bins_outside_the_band_by_hand():
    rows = [(0.5, 0.4, 0.6), (0.1, 0.2, 0.3), (np.nan, np.nan, np.nan), (0.2, 0.2, 0.3)]
    bins = pd.DataFrame(rows, columns=["accuracy", "low", "high"])
    table = pd.concat([bins.assign(model="a", state="before", k=1), bins[:1].assign(model="a", state="after", k=1)])
    found = item.describe_outside(table)
    assert found.to_dict("records") == [{"model": "a", "before, k = 1": "1 of 3", "after, k = 1": "0 of 1"}]


def test_the_titles_say_the_errors_of_what_is_shown(overconfident):
    ds, top = overconfident
    tops = {"a": top, "b": TopK(top.ids, top.scores * np.float32(0.5), 6)}
    states = calibrated.before_after(ds, tops, (3,))
    summary, bins = item.compute(ds, states), item.compute_bins(ds, states)
    ece = summary.set_index("model")["ECE"]
    assert f"{ece['b']:.1f}, {ece['a']:.1f} % before" in item.plot_fig2(bins, summary, ["b", "a"]).get_suptitle()
    assert f"to {ece.max():.1f} % ({ece.idxmax()})" in item.plot_fig1(bins, summary).get_suptitle()
