"""Losses and sizes: links against a search over scores, series by hand and on small twins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.inputs import baselines
from xcrepro.metrics import calibration as metric
from xcrepro.models import NeuralOneVsAll
from xcrepro.repro import calibration_losses as losses


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))


def costs(loss: str, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cost of the score p for a relevant and for another label, as the papers write them, with the models' defaults."""
    if loss == "bce":
        return -np.log(p), -np.log(1 - p)
    if loss == "focal":
        return -((1 - p) ** 2) * np.log(p), -(p**2) * np.log(1 - p)
    shifted = np.maximum(p - 0.05, 0)
    return -(1 - p) * np.log(p), -(shifted**4) * np.log(1 - shifted)


@pytest.mark.parametrize("loss", ["bce", "focal", "asymmetric"])
@pytest.mark.parametrize("q", [0.02, 0.2, 0.5, 0.8, 0.97])
def test_the_own_link_undoes_the_best_score(loss, q):
    p = np.linspace(1e-6, 1 - 1e-6, 2_000_001)
    relevant, other = costs(loss, p)
    best = p[np.argmin(q * relevant + (1 - q) * other)]
    assert losses.own_link(NeuralOneVsAll(loss), np.array([best]))[0] == pytest.approx(q, abs=2e-4)


def test_the_own_link_of_the_squared_hinge():
    z = np.linspace(-3, 3, 600_001)
    for q in (0.1, 0.5, 0.85):
        best = z[np.argmin(q * np.maximum(1 - z, 0) ** 2 + (1 - q) * np.maximum(1 + z, 0) ** 2)]
        assert losses.own_link(NeuralOneVsAll("squared_hinge"), np.array([best]))[0] == pytest.approx(q, abs=1e-4)


@pytest.mark.parametrize("loss", ["bce", "focal", "asymmetric", "squared_hinge"])
def test_the_own_link_rises_stays_in_range_and_leaves_absent_places(loss):
    scores = np.append(np.linspace(0, 1, 101), -np.inf)
    found = losses.own_link(NeuralOneVsAll(loss), scores)
    assert found[-1] == -np.inf
    assert (np.diff(found[:-1]) >= 0).all()
    assert found[0] >= 0
    assert found[-2] <= 1


def test_losses_on_a_small_twin(cache):
    ds = xc.twin("eurlex-4k", scale=0.02, seed=0)
    found = losses.losses(ds, k=3).set_index("loss")
    assert list(found.index) == list(baselines.LOSSES)
    top = baselines.predictions(ds, ["Neural, focal"])["Neural, focal"].head(3)
    hits = np.array([[ds.test.Y[i, label] for label in row] for i, row in enumerate(top.ids)])
    assert found.loc["focal", "P@3"] == pytest.approx(100 * hits.mean())
    bins = np.minimum((top.scores * np.float32(10)).astype(int), 9)
    error = sum(abs((top.scores.astype(float) - hits)[bins == b].sum()) for b in range(10)) / hits.size
    assert found.loc["focal", "ECE@3"] == pytest.approx(100 * error, rel=1e-5)
    assert found.loc["BCE", "own link"] == pytest.approx(found.loc["BCE", "ECE@3"], rel=1e-5)
    np.testing.assert_allclose(found["over"] + found["under"], found["ECE@3"])


def test_printed_points_stand_beside_the_right_loss():
    found = pd.DataFrame({"loss": list(baselines.LOSSES), "P@5": [4.0, 3.0, 2.0, 1.0], "ECE@5": [5.0, 6.0, 3.0, 9.0]})
    beside = losses.beside_published(found).set_index("loss")
    assert beside["printed ECE@5"].drop("squared hinge").tolist() == [15.47, 11.31, 27.30]
    assert beside["printed P@5"].drop("squared hinge").tolist() == [40.48, 28.82, 37.71]
    assert np.isnan(beside.loc["squared hinge", "printed ECE@5"])
    assert beside["ours, from BCE"].tolist() == [0, 1, -2, 4]
    assert beside.loc["focal", "printed, from BCE"] == pytest.approx(-4.16)


# ---------------------------------------------------------------- fig 5


def test_labels_grow_and_points_per_label_stay(cache):
    found = losses.by_labels("eurlex-4k", [0.02, 0.04], ["Popularity"])
    assert found["labels"].unique().tolist() == [80, 160]
    ratio = found["points per label"].max() / found["points per label"].min()
    assert ratio < 1.1
    ds = xc.twin("eurlex-4k", scale=0.04, seed=0)
    top = baselines.predictions(ds, ["Popularity"])["Popularity"]
    expected = [100 * metric.ece(*metric.pairs(ds.test.Y, top, k), closed="torchmetrics") for k in (1, 3, 5)]
    np.testing.assert_allclose(found[found["labels"] == 160]["ECE"], expected)


def test_fewer_points_leave_labels_and_test_points_alone(cache):
    found = losses.by_points("eurlex-4k", 0.04, [1.0, 0.25], ["Popularity"])
    whole = losses.by_labels("eurlex-4k", [0.04], ["Popularity"])
    pd.testing.assert_frame_equal(found[found["train points"] == 622].reset_index(drop=True), whole)
    part = found[found["train points"] != 622]
    assert set(found["labels"]) == {160}
    assert set(part["train points"]) == {156}
    assert part["points per label"].iloc[0] == pytest.approx(whole["points per label"].iloc[0] / 4, rel=0.1)


def test_thinned_training_really_sees_fewer_points(cache):
    """Popularity's scores are label counts over points: of the rows that were drawn, and of no others."""
    ds = xc.twin("eurlex-4k", scale=0.04, seed=0)
    rows = np.random.default_rng(0).permutation(ds.n_train)[:156]
    share = np.asarray(ds.train.Y[np.sort(rows)].sum(axis=0)).ravel().max() / 156
    relevant = np.asarray(ds.test.Y.todense())[:, np.asarray(ds.train.Y[np.sort(rows)].sum(axis=0)).ravel().argmax()]
    found = losses.by_points("eurlex-4k", 0.04, [0.25], ["Popularity"]).set_index("k")
    assert found.loc[1, "ECE"] == pytest.approx(100 * abs(share - relevant.mean()), rel=1e-5)


def test_repeats_are_averaged(cache):
    both = losses.by_labels("eurlex-4k", [0.02], ["Popularity"], seed=0, repeats=2)
    each = [losses.by_labels("eurlex-4k", [0.02], ["Popularity"], seed=seed) for seed in (0, 1)]
    np.testing.assert_allclose(both["ECE"], (each[0]["ECE"] + each[1]["ECE"]) / 2)
    assert len(both) == 3


def test_ends_of_both_series_by_hand():
    labels = pd.DataFrame({"labels": [10, 20, 30], "model": "a", "k": 1, "ECE": [1.0, 5.0, 2.0]})
    points = pd.DataFrame({"train points": [100, 50, 25], "model": "a", "k": 1, "ECE": [3.0, 9.0, 4.0]})
    found = losses.slopes(labels, points).iloc[0]
    assert found.tolist() == ["a", 1, 1.0, 2.0, 4.0, 3.0]
