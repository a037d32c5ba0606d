"""Figures 3 and 17 to 19: precision against the metric itself, the laid out table and the title by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from xcrepro.inputs import calibrated
from xcrepro.metrics import ranking
from xcrepro.papers.calibration import fig3_fig17_to_19_rerun as item


@pytest.fixture
def errors(overconfident):
    ds, top = overconfident
    return item.compute_errors({"toy": (ds, calibrated.before_after(ds, {"a": top, "b": top}, (1, 3)))})


def test_precision_is_that_of_the_ranking_and_does_not_move(overconfident, errors):
    ds, top = overconfident
    for k, value in zip((1, 3), 100 * ranking.precision(ds.test.Y, top, (1, 3)), strict=True):
        assert set(errors[errors["k"] == k]["P"]) == {value}
    assert item.largest_change_of_precision(errors) == 0.0
    assert len(errors) == 2 * 4 * 2 * 2
    errors.loc[errors.index[-1], "P"] += 0.25
    assert item.largest_change_of_precision(errors) == pytest.approx(0.25)
    assert "moved by up to 0.25 points" in item.plot(errors, 3).get_suptitle()


def test_the_table_by_hand():
    rows = [
        (k, "toy", "a", 50.0 + k, metric, variant, k + place + (10 if variant == "none" else 0))
        for k in (1, 3) for place, metric in enumerate(("ECE", "Brier")) for variant in ("none", "isotonic")
    ]  # fmt: skip
    columns = ["k", "dataset", "method", "P", "metric", "variant", "value"]
    found = item.compute(pd.DataFrame(rows, columns=columns))
    assert list(found) == ["dataset", "method", "k", "P", "ECE before", "ECE after", "Brier before", "Brier after"]
    assert found.iloc[1].tolist() == ["toy", "a", 3, 53.0, 13, 3, 14, 4]


def test_the_figures_say_the_largest_errors(errors):
    ece = errors[(errors["k"] == 1) & (errors["metric"] == "ECE")].groupby("variant")["value"].max()
    fig = item.plot(errors, 1)
    assert f"{ece['none']:.0f} %" in fig.get_suptitle()
    assert f"{ece['isotonic']:.1f} %" in fig.get_suptitle()
    assert "a has the highest P@1" in item.plot_fig3(errors, "toy", 1).get_suptitle()
