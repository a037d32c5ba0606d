"""Sizes: what grows and what stays, errors against the metric itself, the two ends of each series by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.data.dataset import Dataset, Split
from xcrepro.errors import ArgumentError
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
    seen = np.array([label for label in np.unique(ds.train.Y[rows].indices) if ds.label_counts[label] >= 16])
    assert 10 < seen.size < ds.label_counts.size
    # A smaller part of the points has them as often.
    assert found["labels a point"].iloc[-1] == pytest.approx(found["labels a point"].iloc[0], rel=0.2)
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


def planted(more, fewer, error):
    """Both series of one model at one k, with these ECE from the near to the far end."""
    n = len(more)
    sizes = {
        "share": 1.0,
        "labels a point": 2.0,
        "model": "a",
        "k": 5,
        "P": 50.0,
        "after": 1.0,
        "floor": 0.5,
        "±": error,
    }
    first = pd.DataFrame(
        {"labels": 10 * 2 ** np.arange(n), "train points": 9, "points per label": 5.0, "ECE": more, **sizes}
    )
    other = {"labels": 9, "train points": 100 // 2 ** np.arange(n), "points per label": 50 / 2 ** np.arange(n)}
    return rerun.compute(first, pd.DataFrame({**other, "ECE": fewer, **sizes}))


def test_findings_of_planted_series():
    said = rerun.findings(planted([5.0, 9.0, 20.0], [20.0, 9.0, 5.0], 0.5))
    assert said[0].endswith("clearly so in the one comparison.")
    assert said[1].endswith("clearly the other way round in the one comparison.")
    assert said[2] == "ECE@5, from 10 to 40 labels: a +15.0 ± 0.7 points."
    assert said[3] == "ECE@5, from 50.0 to 12.5 points a label: a -15.0 ± 0.7 points."
    # The same numbers known worse, or from two runs alone, whose errors are known badly.
    table = planted([5.0, 9.0, 20.0], [20.0, 9.0, 5.0], 8.0)
    assert all(one.endswith("not clear in the one comparison.") for one in rerun.findings(table)[:2])
    table = planted([5.0, 6.0, 8.0], [5.0, 5.0, 5.0], 0.5)
    assert rerun.compare_ends(table)[rerun.MORE][0].clear
    assert not rerun.compare_ends(table, repeats=2)[rerun.MORE][0].clear


def test_real_data_are_cut_as_a_twin_is(ds):
    real = Dataset("own", Split(ds.train.X, ds.train.Y), Split(ds.test.X, ds.test.Y), ds.A, ds.B)
    for cut in (
        lambda each: calibrated.keep_labels(each, np.array([5, 2, 9])),
        lambda each: calibrated.keep_train_points(each, slice(40)),
    ):
        ours, theirs = cut(real), cut(ds)
        assert not isinstance(ours, type(ds))
        assert (ours.train.Y != theirs.train.Y).nnz == (ours.test.Y != theirs.test.Y).nnz == 0


def test_shares_that_leave_no_labels_are_refused():
    with pytest.raises(ArgumentError, match="point_shares"):
        rerun.compute_fewer("eurlex-4k", 0.02, [1.0, 0.01], MODELS)


@pytest.mark.parametrize("shares", [[0.5], [0.5, 0.5], [0.0, 1.0], [0.5, 1.5]])
def test_shares_are_checked_before_anything_runs(shares):
    values = {"dataset": "bibtex", "label_shares": [0.5, 1.0], "point_shares": [1.0, 0.5]}
    rerun.check_parameters(values)
    with pytest.raises(ArgumentError, match="label_shares"):
        rerun.check_parameters(values | {"label_shares": shares})
