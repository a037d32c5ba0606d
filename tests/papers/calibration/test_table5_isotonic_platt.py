"""Table 5: log-odds and counts by hand, methods against the metrics themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.papers.calibration import table5_isotonic_platt as item


def test_log_odds():
    found = item.log_odds(np.array([[0.5, 0.0], [1.0, -np.inf]], np.float32))
    np.testing.assert_allclose(found, [[0.0, -13.8155], [13.8155, -np.inf]], atol=1e-3)


def test_the_methods_of_a_planted_overconfidence(twin, misjudged):
    tops = {"over": misjudged(twin, 5, 0.4)}
    found = item.compute(twin, tops, ("isotonic", "Platt"))
    assert found["method"].tolist() == ["none", "isotonic", "Platt"] * 2
    five = found[found["k"] == 5].set_index("method")
    assert five.loc["isotonic", "ECE"] < five.loc["none", "ECE"] / 5
    _, after = calibrated.before_after(twin, tops, (5,), "platt")["over", 5]
    assert five.loc["Platt", "Brier"] == pytest.approx(100 * metric.brier(*metric.pairs(twin.test.Y, after)))
    assert five.loc["Platt", "true"] == 100 * calibrated.true_error(twin, after)


def test_wins_means_and_title_by_hand():
    columns = ["model", "k", "method", "ECE", "ACE", "Brier", "NLL", "true"]
    rows = [("a", 1, "isotonic", 1.0, 1.0, 1.0, 1.0, np.nan), ("b", 1, "isotonic", 3.0, 1.0, 1.0, 1.0, np.nan),
            ("a", 1, "Platt", 2.0, 1.0, 2.0, 0.5, np.nan), ("b", 1, "Platt", 2.0, 1.0, 2.0, 0.5, np.nan)]  # fmt: skip
    planted = pd.DataFrame(rows, columns=columns)
    assert item.compute_wins(planted).values.tolist() == [["Platt", "1 of 2", "0 of 2", "2 of 2", "0 of 2", "-"]]
    assert item.compute_means(planted)["ECE"].tolist() == [2.0, 2.0]
    fig = item.plot(planted)
    assert fig.get_suptitle() == "Isotonic regression has the lower ECE\nin 1 of 2 cases against Platt"
