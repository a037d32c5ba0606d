"""Figures 3 and 17 to 19: precision against the metric itself, the laid out table and the title by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from xcrepro.errors import ArgumentError
from xcrepro.inputs import calibrated
from xcrepro.metrics import ranking
from xcrepro.papers.calibration import fig3_fig17_to_19_rerun as item


@pytest.fixture
def sets(overconfident):
    ds, top = overconfident
    return {"toy": (ds, calibrated.before_after(ds, {"a": top, "b": top}, (1, 3)))}


@pytest.fixture
def errors(sets):
    return item.compute_errors(sets)


def test_precision_is_that_of_the_ranking_and_does_not_move(overconfident, errors):
    ds, top = overconfident
    for k, value in zip((1, 3), 100 * ranking.precision(ds.test.Y, top, (1, 3)), strict=True):
        assert set(errors[errors["k"] == k]["P"]) == {value}
    assert item.largest_change_of_precision(errors) == 0.0
    assert len(errors) == 2 * 5 * 2 * 2
    errors.loc[errors.index[-1], "P"] += 0.25
    assert item.largest_change_of_precision(errors) == pytest.approx(0.25)


def test_the_table_by_hand():
    rows = [
        (k, "toy", "a", 50.0 + k, metric, variant, k + place + (10 if variant == "none" else 0))
        for k in (1, 3) for place, metric in enumerate(("ECE", "Brier")) for variant in ("none", "isotonic")
    ]  # fmt: skip
    columns = ["k", "dataset", "method", "P", "metric", "variant", "value"]
    found = item.compute(pd.DataFrame(rows, columns=columns))
    assert list(found) == ["dataset", "method", "k", "P", "ECE before", "ECE after", "Brier before", "Brier after"]
    assert found.iloc[1].tolist() == ["toy", "a", 3, 53.0, 13, 3, 14, 4]


def test_findings_are_of_the_errors(sets, errors):
    ece = errors[(errors["k"] == 1) & (errors["metric"] == "ECE")].groupby("variant")["value"].max()
    said = item.findings(errors, sets)
    # 300 points are too few at k = 1.
    assert said[0].startswith("toy, k = 1, ECE falls through isotonic regression: clearly so in 0 of 2 comparisons")
    assert said[0].endswith(f"ECE@1 is {ece['none']:.1f} % before, {ece['isotonic']:.1f} % after.")
    assert said[2].startswith("NLL falls too, over all datasets and k: ")
    assert "leaves P@k as it is, for every model and k" in said[3]
    assert "too few models for a relation (2)" in said[4]
    errors.loc[errors.index[-1], "P"] += 0.25
    assert "changed by up to 0.25 points" in item.findings(errors, sets)[3]


def test_a_fall_is_found_where_it_is_and_nowhere_else(twin, misjudged):
    for power, words in ((1.0, "not clear in the one"), (0.3, "clearly so in the one")):
        sets = {"toy": (twin, calibrated.before_after(twin, {"a": misjudged(twin, 5, power)}, (5,)))}
        said = item.findings(item.compute_errors(sets), sets)[0]
        assert said.startswith(f"toy, k = 5, ECE falls through isotonic regression: {words} comparison")


def test_standard_errors_stand_beside_ece(errors):
    assert (errors.loc[errors["metric"] == "ECE", "±"] > 0).all()
    assert list(item.compute(errors))[4:8] == ["ECE before", "± before", "ECE after", "± after"]
    assert len(item.plot_fig3(errors, "toy", 1).axes) == 3
    assert len(item.plot(errors, 1).axes) == 4


def test_a_wrong_second_dataset_is_told_under_its_name():
    values = {"dataset": "bibtex", "scale": 1.0, "second": "eurlex-4k", "second_scale": 2.0}
    with pytest.raises(ArgumentError, match="second_scale"):
        item.check_parameters(values)
    item.check_parameters(values | {"second": ""})
