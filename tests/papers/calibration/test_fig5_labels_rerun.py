"""Sizes: what grows and what stays, errors against the metric itself, the two ends of each series by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.inputs import baselines, calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.papers.calibration import fig5_labels_rerun as rerun

MODELS = ["Popularity"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))


@pytest.fixture(scope="module")
def ds():
    return xc.twin("eurlex-4k", scale=0.04, seed=0)


def test_chosen_labels_are_spread_over_the_ranks_and_nested(ds):
    counts, sizes, before = ds.label_counts, [], np.empty(0)
    for share in (0.125, 0.25, 0.5, 1.0):
        labels = rerun.choose_labels(counts, share)
        assert abs(labels.size - share * counts.size) <= 2
        assert set(before) <= set(labels)
        assert counts[labels].mean() == pytest.approx(counts.mean(), rel=0.15)
        sizes.append(labels.size)
        before = labels
    assert sizes[-1] == counts.size


def test_more_labels_and_all_else_of_them_as_it_was(ds):
    found = rerun.compute_more("eurlex-4k", 0.04, [0.25, 1.0], MODELS)
    labels = rerun.choose_labels(ds.label_counts, 0.25)
    assert found["labels"].unique().tolist() == [labels.size, ds.label_counts.size]
    assert found["train points"].unique().tolist() == [ds.n_train]
    assert found["points per label"].iloc[0] == pytest.approx(ds.label_counts[labels].mean())
    assert found["labels a point"].iloc[-1] == pytest.approx(ds.train.Y.nnz / ds.n_train)
    part, top = ds.test.Y[:, labels], None
    for share, Y, cut in ((1.0, ds.test.Y, ds), (0.25, part, calibrated.keep_labels(ds, labels))):
        top = baselines.predictions(cut, MODELS)["Popularity"]
        expected = [100 * metric.ece(*metric.pairs(Y, top, k), closed="torchmetrics") for k in (1, 3, 5)]
        np.testing.assert_allclose(found[found["share"] == share]["ECE"], expected)


def test_fewer_points_leave_labels_and_test_points_alone(ds):
    found = rerun.compute_fewer("eurlex-4k", 0.04, [1.0, 0.25], MODELS)
    rows = np.random.default_rng(0).permutation(ds.n_train)[:156]
    seen = np.unique(ds.train.Y[rows].indices)
    assert seen.size < ds.label_counts.size
    assert set(found["labels"]) == {seen.size}
    assert found["train points"].unique().tolist() == [622, 156]
    assert found["points per label"].tolist()[::3] == pytest.approx(
        [ds.label_counts[seen].mean(), ds.train.Y[rows][:, seen].sum(axis=0).mean()]
    )


def test_thinned_training_really_sees_fewer_points(ds):
    """Popularity's scores are label counts over points: of the rows that were drawn, and of no others."""
    rows = np.random.default_rng(0).permutation(ds.n_train)[:156]
    counts = np.asarray(ds.train.Y[rows].sum(axis=0)).ravel()
    relevant = np.asarray(ds.test.Y.todense())[:, counts.argmax()]
    found = rerun.compute_fewer("eurlex-4k", 0.04, [0.25], MODELS).set_index("k")
    assert found.loc[1, "ECE"] == pytest.approx(100 * abs(counts.max() / 156 - relevant.mean()), rel=1e-5)


def test_repeats_are_averaged():
    both = rerun.compute_more("eurlex-4k", 0.02, [0.5], MODELS, seed=0, repeats=2)
    each = [rerun.compute_more("eurlex-4k", 0.02, [0.5], MODELS, seed=seed) for seed in (0, 1)]
    for column in ("ECE", "labels"):
        np.testing.assert_allclose(both[column], (each[0][column] + each[1][column]) / 2)
    assert len(both) == 3


def test_ends_of_both_series_by_hand():
    more = pd.DataFrame({"labels": [10, 20, 30], "train points": 9, "model": "a", "k": 1, "ECE": [1.0, 5.0, 2.0]})
    fewer = pd.DataFrame({"labels": 9, "train points": [100, 50, 25], "model": "a", "k": 1, "ECE": [3.0, 9.0, 4.0]})
    found = rerun.compute_ends(rerun.compute(more, fewer)).iloc[0]
    assert found.tolist() == ["a", 1, 1.0, 2.0, 4.0, 3.0]
