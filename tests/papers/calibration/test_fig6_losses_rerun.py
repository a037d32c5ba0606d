"""Losses: links against a search over scores, errors against a slow sum, and the printed points beside them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.errors import ArgumentError
from xcrepro.inputs import baselines
from xcrepro.models import NeuralOneVsAll
from xcrepro.papers.calibration import fig6_losses_rerun as rerun


def costs(loss: str, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cost of the score p for a relevant and for another label, as the papers write them, with the models' defaults."""
    if loss == "bce":
        return -np.log(p), -np.log(1 - p)
    if loss == "focal":
        return -((1 - p) ** 2) * np.log(p), -(p**2) * np.log(1 - p)
    if loss == "squared_hinge":
        return np.maximum(1 - p, 0) ** 2, np.maximum(1 + p, 0) ** 2
    shifted = np.maximum(p - 0.05, 0)
    return -(1 - p) * np.log(p), -(shifted**4) * np.log(1 - shifted)


@pytest.mark.parametrize("loss", ["bce", "focal", "asymmetric", "squared_hinge"])
@pytest.mark.parametrize("q", [0.02, 0.2, 0.5, 0.8, 0.97])
def test_the_inverse_of_a_loss_undoes_the_best_score(loss, q):
    p = np.linspace(*((-3, 3) if loss == "squared_hinge" else (1e-6, 1 - 1e-6)), 1_000_001)
    relevant, other = costs(loss, p)
    best = p[np.argmin(q * relevant + (1 - q) * other)]
    assert rerun.invert_loss(NeuralOneVsAll(loss), np.array([best]))[0] == pytest.approx(q, abs=2e-4)


@pytest.mark.parametrize("loss", ["bce", "focal", "asymmetric", "squared_hinge"])
def test_the_inverse_rises_stays_in_range_and_leaves_absent_places(loss):
    found = rerun.invert_loss(NeuralOneVsAll(loss), np.append(np.linspace(0, 1, 101), -np.inf))
    assert found[-1] == -np.inf
    assert (np.diff(found[:-1]) >= 0).all()
    assert found[0] >= 0
    assert found[-2] <= 1


def test_errors_on_a_small_twin(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    ds = xc.twin("eurlex-4k", scale=0.02, seed=0)
    tops = rerun.predict(ds, k=3)
    states = rerun.before_after(ds, tops)
    found = rerun.compute(ds, tops, states).set_index("loss")
    assert list(found.index) == list(baselines.LOSSES)
    top = baselines.predictions(ds, ["Neural, focal"])["Neural, focal"].head(3)
    hits = np.array([[ds.test.Y[i, label] for label in row] for i, row in enumerate(top.ids)])
    assert found.loc["focal", "P@3"] == pytest.approx(100 * hits.mean())
    bins = np.minimum((top.scores * np.float32(10)).astype(int), 9)
    error = sum(abs((top.scores.astype(float) - hits)[bins == b].sum()) for b in range(10)) / hits.size
    assert found.loc["focal", "ECE@3"] == pytest.approx(100 * error, rel=1e-5)
    assert found.loc["BCE", "own link"] == pytest.approx(found.loc["BCE", "ECE@3"], rel=1e-5)
    np.testing.assert_allclose(found["over"] + found["under"], found["ECE@3"])
    assert (found[["± P@3", "± ECE@3"]] > 0).all(axis=None)
    said = rerun.findings(ds, tops, states)
    assert sum("ECE@3 with" in one for one in said) == sum("P@3 with" in one for one in said) == 3


def test_what_differs_from_the_paper_is_said_to(twin, misjudged):
    """Planted: focal far worse than BCE, where the paper has it better; asymmetric worse, as there; a hinge like BCE."""
    powers = {"BCE": 1.0, "squared hinge": 1.0, "focal": 0.3, "asymmetric": 0.2}
    tops = {loss: misjudged(twin, 5, power) for loss, power in powers.items()}
    states = {(loss, 5): (top, top) for loss, top in tops.items()}
    said = rerun.findings(twin, tops, states)
    assert said[0].startswith("Before calibration: no clear leader in ECE@5 (lower is better)")
    focal, asymmetric, hinge = (
        next(one for one in said if one.startswith(f"ECE@5 with {loss}")) for loss in ("focal", "asymmetric", "squared")
    )
    assert focal.endswith("printed: 4.2 points below, the other way round.")
    assert asymmetric.endswith("printed: 11.8 points above, as here.")
    assert "states no number" in hinge
    assert "not clear in 4" in said[-1]


def test_printed_points_stand_beside_the_right_loss():
    found = pd.DataFrame({"loss": list(baselines.LOSSES), "P@5": [4.0, 3.0, 2.0, 1.0], "ECE@5": [5.0, 6.0, 3.0, 9.0]})
    compared = rerun.compare_with_printed(found).set_index("loss")
    printed = compared[["printed P@5", "printed ECE@5"]].dropna()
    assert printed.T.to_dict("list") == {"BCE": [40.48, 15.47], "focal": [28.82, 11.31], "asymmetric": [37.71, 27.30]}
    assert compared["ours, from BCE"].tolist() == [0, 1, -2, 4]
    assert compared.loc["focal", "printed, from BCE"] == pytest.approx(-4.16)


def test_trainings_are_replicates_of_their_own(twin, misjudged):
    """Three planted trainings: asymmetric loss always far above BCE, focal now above and now below it."""
    powers = {"BCE": (1.0, 0.98, 1.02), "focal": (0.95, 1.05, 1.0), "asymmetric": (0.4, 0.41, 0.42)}
    runs = [{loss: misjudged(twin, 5, of[i]) for loss, of in powers.items()} for i in range(3)]
    measured = rerun.measure_trainings(twin, runs)
    table = rerun.compute_trainings(measured, 5).set_index("loss")
    for loss in powers:
        each = [100 * xc.metrics.ece(twin.test.Y, run[loss], 5, closed="torchmetrics") for run in runs]
        assert table.loc[loss, "ECE@5"] == pytest.approx(np.mean(each))
        assert table.loc[loss, "sd ECE@5"] == pytest.approx(np.std(each, ddof=1))
    assert (table["trainings"] == 3).all()
    np.testing.assert_allclose(table["sd P@5"], 0, atol=1e-9)  # a power keeps the order
    precision, error = rerun.findings_trainings(measured, 5)
    assert precision.startswith("Over 3 trainings of each loss, on the same test points: P@5 with focal loss is 0.0 ±")
    focal, asymmetric = error.split("; ")
    assert "not clear" in focal
    assert "points above BCE's (p " in asymmetric
    assert "not clear" not in asymmetric

    alone = rerun.measure_trainings(twin, runs[:1])
    assert rerun.findings_trainings(alone, 5) == []
    one = rerun.compute_trainings(alone, 5)
    assert one["trainings"].tolist() == [1, 1, 1]
    assert one["sd ECE@5"].isna().all()
    errors = pd.DataFrame({"loss": ["focal", "BCE"], "± P@5": [0.3, 0.4], "± ECE@5": [0.3, 0.4]})
    pd.testing.assert_frame_equal(rerun.add_deviations(errors, one), errors)
    sd = pd.DataFrame({"loss": ["BCE", "focal"], "sd P@5": [0.3, 0.0], "sd ECE@5": [0.0, 0.4]})
    both = rerun.add_deviations(errors, sd)
    np.testing.assert_allclose(both[["± P@5", "± ECE@5"]], [[0.3, 0.5], [0.5, 0.4]])


def test_trainings_must_be_one_at_least():
    values = {"dataset": "bibtex", "trainings": 1}
    rerun.check_parameters(values)
    with pytest.raises(ArgumentError, match="trainings"):
        rerun.check_parameters(values | {"trainings": 0})
