"""Table 5: log-odds and counts by hand, methods against the metrics themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.findings import Measured
from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.metrics.significance import jackknife_blocks, jackknife_error
from xcrepro.papers.calibration import table5_isotonic_platt as item


def test_log_odds():
    found = item.log_odds(np.array([[0.5, 0.0], [1.0, -np.inf]], np.float32))
    np.testing.assert_allclose(found, [[0.0, -13.8155], [13.8155, -np.inf]], atol=1e-3)


def test_the_methods_of_a_planted_overconfidence(twin, misjudged):
    tops = {"over": misjudged(twin, 5, 0.4)}
    fits = item.calibrate_all(twin, tops, ("isotonic", "Platt"))
    found = item.compute(twin, fits, item.measure(twin, fits))
    assert found["method"].tolist() == ["none", "isotonic", "Platt"] * 2
    five = found[found["k"] == 5].set_index("method")
    assert five.loc["isotonic", "ECE"] < five.loc["none", "ECE"] / 5
    _, after = calibrated.before_after(twin, tops, (5,), "platt")["over", 5]
    assert five.loc["Platt", "Brier"] == pytest.approx(100 * metric.brier(*metric.pairs(twin.test.Y, after)))
    assert five.loc["Platt", "true"] == 100 * calibrated.true_error(twin, after)


def test_the_error_of_an_error_is_the_jackknifes(twin, misjudged):
    fits = item.calibrate_all(twin, {"over": misjudged(twin, 5, 0.4)}, ("Platt",), ks=(5,))
    measured = item.measure(twin, fits)["over", 5]
    top, kept = fits["over", 5]["Platt"], list(jackknife_blocks(twin.test.Y.shape[0], 20))
    slow = [100 * metric.brier(*metric.pairs(twin.test.Y[rows], top.rows(rows))) for rows in kept]
    assert measured["Brier"].error("Platt") == pytest.approx(float(jackknife_error(slow)))
    assert measured["NLL"].values["Platt"] == pytest.approx(metric.nll(*metric.pairs(twin.test.Y, top)))


def planted(gap: float, error: float) -> tuple[pd.DataFrame, dict]:
    """Two models of which isotonic regression's ECE is ``gap`` below Platt's, with this error; no truth is known."""
    noise = np.random.default_rng(0).normal(size=20) / 19**0.5
    values, measured = {"none": 20.0, "isotonic": 3.0, "Platt": 3.0 + gap}, {}
    for model in ("a", "b"):
        one = Measured(values, {"none": 20 + noise, "isotonic": 3 + 0 * noise, "Platt": 3 + gap + error * noise})
        measured[model, 1] = dict.fromkeys(item.COMPARED, one)
    rows = [
        {"model": m, "k": 1, "method": n, "ECE": v, "ECE ±": 0.1, "true": np.nan}
        for m in "ab"
        for n, v in values.items()
    ]
    return pd.DataFrame(rows).assign(ACE=1.0, Brier=1.0, NLL=1.0), measured


def test_a_lead_is_told_from_none():
    found, measured = planted(2.0, 0.1)
    said = item.findings(found, measured)
    assert "22 of 22 pairs" in said[0]  # of 24, the audit doubts the two that other tables print otherwise
    assert said[1] == "Here, isotonic regression has a lower ECE than Platt scaling: clearly so in all 2 comparisons."
    assert len(said) == 4  # no beta calibration, no true probabilities
    assert item.compute_comparisons(measured)["ECE"].tolist() == ["2 / 0 / 0", "2 / 0 / 0"]
    found, measured = planted(0.1, 0.2)
    assert "clearly so in 0 of 2 comparisons, not clear in 2" in item.findings(found, measured)[1]
    assert item.compute_comparisons(measured).set_index("against").loc["Platt", "ECE"] == "0 / 2 / 0"
    found, measured = planted(-2.0, 0.1)
    assert "clearly the other way round in 2" in item.findings(found, measured)[1]


def test_means_and_a_figure_of_one_model_without_truth():
    found, _ = planted(2.0, 0.1)
    assert item.compute_means(found)["ECE"].tolist() == [20.0, 3.0, 5.0]
    fig = item.plot(found[found["model"] == "a"])
    assert len(fig.axes) == 1
    assert fig.get_suptitle() == "ECE@1 by calibration method (bars: two standard errors)"
