"""Fig. 3b: means over draws against exact expectations."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from xcrepro import propensity
from xcrepro.errors import ArgumentError
from xcrepro.papers.jain16 import fig3b_unbiased as fig3b
from xcrepro.predictions import TopK

GRID = [0.25, 0.55, 1.2]


def test_means_are_the_exact_expectations(world):
    truth, top, counts, n = world
    draws = 400
    table = fig3b.compute(truth, top, counts, n, GRID, draws=draws, seed=5)
    for row in table.itertuples():
        p = 1 / propensity.inverse(counts, n, row.A, 1.5)
        discount = 1 / np.log2(np.arange(2, row.k + 2))
        ids = top.ids[:, : row.k]
        at, gain = p[ids], 100 * np.take_along_axis(truth, ids, axis=1) * discount / discount.sum()
        assert row.complete == pytest.approx(gain.sum(axis=1).mean())
        spread = math.sqrt((gain**2 * at * (1 - at)).sum()) / len(truth)
        assert abs(row.plain - (gain * at).sum(axis=1).mean()) <= 4 * spread / math.sqrt(draws)
        spread = math.sqrt((gain**2 * (1 - at) / at).sum()) / len(truth)
        assert abs(row.scored - row.complete) <= 4 * spread / math.sqrt(draws)
        # The middle 95 % of a nearly normal mean.
        band = table["scored high"][row.Index] - table["scored low"][row.Index]
        assert band == pytest.approx(2 * 1.96 * spread, rel=0.2)
        assert row.sigmas == pytest.approx((row.scored - row.complete) / (spread / math.sqrt(draws)), rel=0.2, abs=0.05)
    for _, part in table.groupby("k"):
        assert (np.diff(part["plain"]) > 0).all()
        assert (np.diff(part["missing %"]) < 0).all()


def test_findings_see_a_bias_and_none(world):
    table = fig3b.compute(*world, GRID, draws=60, seed=1)
    said = fig3b.findings(table.assign(sigmas=0.5), 60)
    assert said[0].startswith("Propensity-scored: none of 9 means over 60 draws is clearly off the complete truth")
    worse = table.assign(sigmas=[9.0, -9.0, *[0.5] * 7], scored=[90.0, *table["scored"][1:]])
    said = fig3b.findings(worse, 60)
    assert said[0].startswith("Propensity-scored: 2 of 9 means over 60 draws are clearly off")
    assert "smallest p < 0.001" in said[0]
    # 2.5 standard errors would be p = 0.015 alone; with nine means it is no longer.
    assert fig3b.findings(table.assign(sigmas=[2.5, *[0.0] * 8]), 60)[0].startswith("Propensity-scored: none of 9")


def test_findings_say_how_far_plain_is_off():
    row = {
        "A": 0.5,
        "k": 3,
        "missing %": 70.0,
        "complete": 50.0,
        "scored": 50.1,
        "scored low": 45.0,
        "scored high": 56.0,
    }
    row |= {"plain": 20.0, "plain low": 19.0, "plain high": 21.5, "sigmas": 0.1}
    said = fig3b.findings(pd.DataFrame([row]), 100)
    assert "-30.0 points with 70 % missing (complete 50.0 %)" in said[1]
    assert "propensity-scored: 95 % lie between -5.0 points and +6.0 points" in said[2]
    assert "plain: 95 % lie between -31.0 points and -28.5 points" in said[3]


@pytest.mark.parametrize(("name", "value"), [("curves", []), ("curves", [1.2, 1.2]), ("draws", 39), ("scale", 2.0)])
def test_parameters_are_refused_by_their_name(name, value):
    good = {"dataset": "bibtex", "curves": [0.55], "draws": 40}
    fig3b.check_parameters(good)
    with pytest.raises(ArgumentError, match=name):
        fig3b.check_parameters(good | {name: value})


def test_predictions_without_a_hit_are_no_bias(world):
    truth, _, counts, n = world
    nothing = TopK.from_ids(np.full((80, 5), -1), n_labels=30)
    table = fig3b.compute(truth, nothing, counts, n, [0.55, 1.2], draws=40)
    assert "none of 6" in fig3b.findings(table, 40)[0]


def test_one_curve_is_drawn_with_its_spread(world):
    table = fig3b.compute(*world, [0.55], draws=40)
    spread = [part for part in fig3b.plot(table, "mine").axes[0].collections if part.get_linewidth()[0] > 1]
    assert len(spread) == 2


def test_too_few_draws(world):
    with pytest.raises(ArgumentError, match="draws"):
        fig3b.compute(*world, GRID, draws=39)
