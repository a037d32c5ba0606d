"""Fig. 3b: means over draws against exact expectations."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from xcrepro import propensity
from xcrepro.errors import ArgumentError
from xcrepro.papers.jain16 import fig3b_unbiased as fig3b

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


def test_the_sentence_sees_a_bias():
    table = pd.DataFrame({"sigmas": [-3.9, 4.1, 0.0, -40.0]})
    assert fig3b.describe_unbiased(table, 7).endswith("complete truth: 2 of 4 means of 7 draws")


def test_too_few_draws(world):
    with pytest.raises(ArgumentError, match="draws"):
        fig3b.compute(*world, GRID, draws=39)
