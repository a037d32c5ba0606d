"""calibration/noise_floor: shapes by their moments, draws against hits drawn one by one, verdicts where they are planted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro import metrics
from xcrepro.papers.calibration import noise_floor


@pytest.mark.parametrize("shape", noise_floor.SHAPES)
@pytest.mark.parametrize(("mean", "noise"), [(0.8, 0.1), (0.3, 0.15), (0.95, 0.03)])
def test_a_shape_has_its_two_moments(shape, mean, noise):
    share, variance = noise_floor.bins_of(shape, mean, noise)
    assert share.sum() == pytest.approx(1.0)
    assert share.min() >= -1e-12
    assert (share * variance).sum() == pytest.approx(noise, rel=1e-3)
    # A bin's scores bound its mean, and so the mean of all.
    edges = np.arange(11) / 10
    assert (share * edges[:-1]).sum() - 1e-9 <= mean <= (share * edges[1:]).sum() + 1e-9


def test_a_draw_is_like_hits_drawn_one_by_one():
    rng = np.random.default_rng(0)
    mean, noise, n = 0.5, 1 / 6, 2000
    fast = noise_floor.draw("beta", mean, noise, n, 4000, rng)
    slow = []
    for _ in range(300):
        scores = rng.random(n)  # beta(1, 1)
        slow.append(metrics.ece(scores, rng.random(n) < scores))
    assert fast.mean() == pytest.approx(np.mean(slow), abs=4 * np.std(slow) / 300**0.5)
    assert fast.std() == pytest.approx(np.std(slow), rel=0.2)


def test_verdicts_are_found_where_they_are_planted():
    cell = {"dataset": "EURLex-4K", "method": "M", "k": 1, "n": 4000, "doubted": False, "P": 80.0, "Brier": 11.0}
    cells = pd.DataFrame([{**cell, "printed": text} for text in ("9.00", "1.00", "0.01")])
    found = noise_floor.compute(cells, draws=500)
    assert found["verdict"].tolist() == ["above", "within", "below all"]
    assert (found["least"] <= found["low"]).all()
    assert (found["low"] < found["floor"]).all()


def test_cells_are_those_of_print():
    cells = noise_floor.load_cells()
    assert len(cells) == 69
    assert not cells.isna().any().any()
    assert cells.set_index(["dataset", "method", "k"]).loc[("EURLex-4K", "PLT", 1), "printed"] == "1.19"
    assert (cells["Brier"] < cells["P"] * (1 - cells["P"] / 100)).all()


def test_cross_fitting_and_validation_are_small_where_they_should_be():
    folds = noise_floor.compute_cross_fitting((3000,), repeats=4)
    assert folds.set_index("map").loc["none", "true"] == 0
    assert (folds.loc[folds["map"] != "none", "true"] > 0).all()
    valid = noise_floor.compute_validation(2000, repeats=20)
    assert valid["true"].is_monotonic_increasing
    assert valid.loc[0, "corrected"] < valid.loc[0, "ECE"]


def test_sentences_say_which_intervals_hold_what():
    cells = pd.DataFrame({"verdict": ["within", "below all"], "n": 1})
    shapes = pd.DataFrame({"shape": ["beta"], "above": [0], "below all": [1]})
    folds = pd.DataFrame(
        [(10, name, value, 1.0) for name, value in (("none", 2.0), ("cross-fitted", 1.0), ("other points", 3.0))],
        columns=["points", "map", "ECE", "true"],
    )
    valid = pd.DataFrame(
        {"too high by": [0.0, 1.0], "true": [0, 1.0], "ECE": [1, 2.0], "corrected": [0, 1.1], "within": 95}
    )
    rows = [
        ("before", 9.0, 1.0, 8.0, 10.0, 9.5),
        ("after", 0.5, 1.0, 0.0, 0.4, 0.7),
        ("after", 2.0, 1.0, 0.0, 3.0, 1.0),
    ]
    models = pd.DataFrame(rows, columns=["state", "ECE", "floor", "low", "high", "true"])
    said = noise_floor.findings(cells, shapes, folds, valid, models)
    assert said[-2].startswith(
        "Before isotonic regression 0 of 1 intervals of a model and a k hold 0; ECEs below their floor: 0"
    )
    assert said[-2].endswith("probabilities: 1 of 1.")
    assert said[-1].startswith(
        "After isotonic regression 2 of 2 intervals of a model and a k hold 0; ECEs below their floor: 1"
    )
    assert said[-1].endswith("probabilities: 1 of 2.")
    real = noise_floor.findings(cells, shapes, folds, valid, models.assign(true=np.nan))
    assert real[-1].endswith("below their floor: 1.")
