"""Sizes: what grows and what stays, errors against the metric itself, the two ends of each series by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.inputs import baselines
from xcrepro.metrics import calibration as metric
from xcrepro.papers.calibration import fig5_labels_rerun as rerun

MODELS = ["Popularity"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))


def test_labels_grow_and_points_per_label_stay():
    found = rerun.compute_more("eurlex-4k", [0.02, 0.04], MODELS)
    assert found["labels"].unique().tolist() == [80, 160]
    assert found["points per label"].max() / found["points per label"].min() < 1.1
    ds = xc.twin("eurlex-4k", scale=0.04, seed=0)
    top = baselines.predictions(ds, MODELS)["Popularity"]
    expected = [100 * metric.ece(*metric.pairs(ds.test.Y, top, k), closed="torchmetrics") for k in (1, 3, 5)]
    np.testing.assert_allclose(found[found["labels"] == 160]["ECE"], expected)


def test_fewer_points_leave_labels_and_test_points_alone():
    found = rerun.compute_fewer("eurlex-4k", 0.04, [1.0, 0.25], MODELS)
    whole = rerun.compute_more("eurlex-4k", [0.04], MODELS)
    pd.testing.assert_frame_equal(found[found["train points"] == 622].reset_index(drop=True), whole)
    part = found[found["train points"] != 622]
    assert set(found["labels"]) == {160}
    assert set(part["train points"]) == {156}
    assert part["points per label"].iloc[0] == pytest.approx(whole["points per label"].iloc[0] / 4, rel=0.1)


def test_thinned_training_really_sees_fewer_points():
    """Popularity's scores are label counts over points: of the rows that were drawn, and of no others."""
    ds = xc.twin("eurlex-4k", scale=0.04, seed=0)
    rows = np.random.default_rng(0).permutation(ds.n_train)[:156]
    counts = np.asarray(ds.train.Y[rows].sum(axis=0)).ravel()
    relevant = np.asarray(ds.test.Y.todense())[:, counts.argmax()]
    found = rerun.compute_fewer("eurlex-4k", 0.04, [0.25], MODELS).set_index("k")
    assert found.loc[1, "ECE"] == pytest.approx(100 * abs(counts.max() / 156 - relevant.mean()), rel=1e-5)


def test_repeats_are_averaged():
    both = rerun.compute_more("eurlex-4k", [0.02], MODELS, seed=0, repeats=2)
    each = [rerun.compute_more("eurlex-4k", [0.02], MODELS, seed=seed) for seed in (0, 1)]
    np.testing.assert_allclose(both["ECE"], (each[0]["ECE"] + each[1]["ECE"]) / 2)
    assert len(both) == 3


def test_ends_of_both_series_by_hand():
    more = pd.DataFrame({"labels": [10, 20, 30], "train points": 9, "model": "a", "k": 1, "ECE": [1.0, 5.0, 2.0]})
    fewer = pd.DataFrame({"labels": 9, "train points": [100, 50, 25], "model": "a", "k": 1, "ECE": [3.0, 9.0, 4.0]})
    found = rerun.compute_ends(rerun.compute(more, fewer)).iloc[0]
    assert found.tolist() == ["a", 1, 1.0, 2.0, 4.0, 3.0]
