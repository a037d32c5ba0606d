"""Bidding: profits by hand and by the definition, the loss over all costs against a fine grid."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.findings import Measured
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import bid_or_not as item


def test_profit_by_hand():
    p, worth = np.array([[0.9, 0.5], [0.51, -np.inf]]), np.array([[1.0, 1.0], [0.0, 0.0]])
    # 0.9 and 0.51 are above 0.5, 0.5 is not: 0.5 - 0.5
    assert item.profit(p, worth, 0.5) == pytest.approx(0.0)
    assert item.profit(p, worth, 0.4) == pytest.approx(0.6 + 0.6 - 0.4)
    assert item.profit(p, worth, 0.95) == 0.0


def test_nobody_beats_the_true_probabilities_and_calibration_helps(twin, misjudged):
    tops = {"right": misjudged(twin, 5), "over": misjudged(twin, 5, 0.3), "under": misjudged(twin, 5, 4.0)}
    found = item.compute(twin, calibrated.before_after(twin, tops, (5,)))
    assert (found["best"] >= found[["all", "before", "after"]].max(axis=1) - 1e-9).all()
    right = found[found["model"] == "right"]
    np.testing.assert_allclose(right["before"], right["best"], atol=0.05)
    some = item.compute_table(found, (0.5,)).set_index("model")
    for name in ("over", "under"):
        assert some.loc[name, "after"] > some.loc[name, "before"] + 5
        assert some.loc[name, "after %"] == pytest.approx(100 * some.loc[name, "after"] / some.loc[name, "best"])
    # per 1,000 points, by the definition
    before = tops["over"]
    worth = calibrated.true_probabilities(twin, before)
    slow = sum(worth[i, j] - 0.5 for i in range(len(before)) for j in range(5) if before.scores[i, j] > 0.5)
    assert some.loc["over", "before"] == pytest.approx(1000 * slow / len(before), rel=1e-6)
    said = item.findings(twin, calibrated.before_after(twin, tops, (5,)), (0.5,))
    # Two of the three misjudge much, one is right already.
    assert "clearly so in 2 of 3" in said[0]
    assert "At a cost of 0.5" in said[-1]


def test_one_model_is_one_panel_and_one_gain(twin, misjudged):
    states = calibrated.before_after(twin, {"mine": misjudged(twin, 5, 0.3)}, (5,))
    assert len(item.plot(item.compute(twin, states)).axes) == 1
    said = item.findings(twin, states)
    assert "clearly so in the one comparison" in said[0]
    assert "with mine." in said[1]
    assert "of mine alone" in said[2]


def test_a_gain_of_next_to_nothing_has_no_sign():
    few, many = (Measured.of_runs({"a, before": [1.0, 1.0], "a, after": [end, end]}) for end in (0.99, 5.0))
    assert item._extremes(item._gains(few)).startswith("The gain is 0.0 ± 0.0 per 1,000 points with a.")
    assert item._extremes(item._gains(many)).startswith("The gain is +4.0 ± 0.0 per 1,000 points with a.")


def test_a_gain_is_an_average_over_all_costs_on_real_data_too(better_second):
    ds, top = better_second
    states = calibrated.before_after(ds, {"m": top}, (5,))
    curves = item.compute(ds, states, costs=(np.arange(2000) + 0.5) / 2000)
    row = item.compute_loss(ds, states).iloc[0]
    assert row["gain"] == pytest.approx((curves["after"] - curves["before"]).mean(), rel=2e-3)
    assert row["±"] > 0
    average = item.measure_average(ds, states)
    at = item.measure_at(ds, states, 0.5)
    assert average.values["m, before"] == pytest.approx(curves["before"].mean(), rel=2e-3)
    assert at.values["m, after"] == pytest.approx(item.compute(ds, states, costs=(0.5,))["after"][0])


def test_the_loss_over_all_costs_is_half_the_squared_error(twin, misjudged):
    states = calibrated.before_after(twin, {"over": misjudged(twin, 5, 0.3)}, (5,))
    curves = item.compute(twin, states, costs=(np.arange(2000) + 0.5) / 2000)
    row = item.compute_loss(twin, states).iloc[0]
    for column in ("before", "after"):
        assert (curves["best"] - curves[column]).mean() == pytest.approx(row[f"lost {column}"], rel=2e-3)
    assert curves["best"].mean() == pytest.approx(row["best"], rel=2e-3)
    assert row["got back %"] == pytest.approx(100 * (1 - row["lost after"] / row["lost before"]))


def test_on_real_data_profits_are_those_of_the_hits(better_second):
    ds, top = better_second
    states = calibrated.before_after(ds, {"m": top}, (5,))
    found = item.compute(ds, states, costs=(0.5,))
    hits = ds.test.Y.toarray()
    assert found["best"].isna().all()
    assert item.compute_loss(ds, states).drop(columns=["model", "gain", "±"]).isna().all(axis=None)
    bids = (hits[:, 0] - 0.5).sum() + (hits[:, 1] - 0.5).sum()  # 0.9 and 0.6 are above the cost, the others are not
    assert found["before"][0] == pytest.approx(1000 * bids / 400)
    assert found["all"][0] == pytest.approx(1000 * (hits - 0.5).sum() / 400)
