"""Figures 1 and 2: counted bins by hand, findings that follow the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.errors import ArgumentError
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import fig1_fig2_reliability as item
from xcrepro.predictions import TopK
from xcrepro.repro import tables
from xcrepro.truth import Truth


def test_bins_outside_the_band_by_hand():
    rows = [(0.5, 0.4, 0.6), (0.1, 0.2, 0.3), (np.nan, np.nan, np.nan), (0.2, 0.2, 0.3)]
    bins = pd.DataFrame(rows, columns=["accuracy", "low", "high"])
    table = pd.concat([bins.assign(model="a", state="before", k=1), bins[:1].assign(model="a", state="after", k=1)])
    found = item.describe_outside(table)
    assert found.to_dict("records") == [{"model": "a", "before, k = 1": "1 of 3", "after, k = 1": "0 of 1"}]


@pytest.fixture
def two(overconfident):
    """One with scores too high, one with scores far too low."""
    ds, top = overconfident
    return ds, calibrated.before_after(ds, {"Neural": top, "PLT": TopK(top.ids, top.scores**6, 6)}, (3,))


def test_findings_say_which_way_and_what_the_paper_sees(two):
    ds, states = two
    summary = item.compute(ds, states)
    said = item.findings(ds, states, summary)
    assert said[1] == "Mean score against share of hits: over-confident: Neural; under-confident: PLT."
    assert said[3] == "The paper sees deep models over-confident at high scores. So here: Neural."
    assert said[4] == "The paper sees linear and tree models under-confident. So here: PLT."
    assert f"{summary['after'].max():.1f} %" in said[-1]
    swapped = {("PLT" if name == "Neural" else "Neural", k): pair for (name, k), pair in states.items()}
    said = item.findings(ds, swapped, item.compute(ds, swapped))
    assert said[4] == "The paper sees linear and tree models under-confident. Here the other way round: PLT."


def test_a_model_without_high_scores_is_not_said_to_be_unclear(overconfident):
    ds, top = overconfident
    low = TopK(top.ids, top.scores * 0.4, 6)
    states = calibrated.before_after(ds, {"Neural": top, "PLT": low}, (3,))
    said = item.findings(ds, states, item.compute(ds, states))
    assert said[2] == ("The same of the pairs with a score above 0.5 alone: over-confident: Neural; no such pair: PLT.")
    states = calibrated.before_after(ds, {"PLT": low}, (3,))
    said = item.findings(ds, states, item.compute(ds, states))
    assert said[2] == "The same of the pairs with a score above 0.5 alone: no such pair: PLT."


def test_high_scores_alone(overconfident):
    ds, top = overconfident
    hits = Truth.of(ds.test.Y).hits(top.ids)
    kept = item.keep_high({("a", 3): (top, top)})["a", 3][0]
    assert ((kept.ids >= 0) == (top.scores > 0.5)).all()
    found = item.measure_direction(ds, {("a", 3): (kept, kept)})
    high = top.scores > 0.5
    assert found.values["a, mean score"] == pytest.approx(100 * top.scores[high].mean(dtype=float))
    assert found.values["a, hit rate"] == pytest.approx(100 * hits[high].mean())


def test_one_model_of_ones_own(overconfident):
    ds, top = overconfident
    states = calibrated.before_after(ds, {"mine": top}, (1,))
    summary, bins = item.compute(ds, states), item.compute_bins(ds, states)
    said = item.findings(ds, states, summary)
    assert said[0].startswith("Before calibration: ECE@1 (lower is better) of mine alone")
    assert said[3:5] == ["", ""]
    assert len(item.plot_fig1(bins, summary, 1).axes) == 1
    assert len(item.plot_fig2(bins, summary, item.shown_names(["mine"], ["PLT"]), 1).axes) == 4


def test_intervals_are_shown_behind_their_values(two):
    ds, states = two
    summary = item.compute(ds, states)
    shown = tables.join_intervals(summary)
    first = summary.iloc[0]
    ends = f"({first['ECE corrected low']:.2f} to {first['ECE corrected high']:.2f})"
    assert shown["ECE corrected"].iloc[0] == f"{first['ECE corrected']:.2f} {ends}"


def test_a_misspelt_column_is_refused():
    values = {"dataset": "bibtex", "models": [], "shown": ["PLT"]}
    item.check_parameters(values)
    for shown in (["PLTT"], ["PLT", "PLT"]):
        with pytest.raises(ArgumentError, match="shown"):
            item.check_parameters(values | {"shown": shown})
