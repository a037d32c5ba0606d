"""Predictions before and after calibration, their errors and the twin's truth: hand-worked numbers and slow oracles."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import binom

import xcrepro as xc
from xcrepro.core.metrics import calibration as metric
from xcrepro.core.predictions import TopK
from xcrepro.repro.inputs import calibrated

# ---------------------------------------------------------------- data and links


def test_a_twin_cut_in_train_loses_the_labels_that_no_point_has(twin):
    cut = calibrated.keep_train_points(twin, slice(60))
    kept = np.flatnonzero(np.asarray(twin.train.Y[:60].sum(axis=0)).ravel())
    assert 0 < kept.size < twin.train.Y.shape[1]
    assert cut.n_train == 60
    assert cut.label_counts.min() > 0
    assert (twin.train.X[:60] != cut.train.X).nnz == 0
    assert (cut.test.X != twin.test.X).nnz == 0
    for name in ("Y", "Y_complete", "marginals", "observed_marginals"):
        assert (getattr(twin.train, name)[:60][:, kept] != getattr(cut.train, name)).nnz == 0
        assert (getattr(twin.test, name)[:, kept] != getattr(cut.test, name)).nnz == 0
    assert (cut.propensities == twin.propensities[kept]).all()
    np.testing.assert_allclose(cut.expected_counts, np.asarray(cut.train.marginals.sum(axis=0)).ravel(), rtol=1e-5)


def test_labels_are_kept_in_the_order_asked_for():
    ds = xc.twin("lf-amazontitles-131k", scale=0.001)
    wanted = np.array([7, 2, 5])
    cut = calibrated.keep_labels(ds, wanted)
    assert (cut.train.Y.toarray() == ds.train.Y.toarray()[:, wanted]).all()
    assert (cut.test.observed_marginals.toarray() == ds.test.observed_marginals.toarray()[:, wanted]).all()
    assert cut.label_names == tuple(ds.label_names[label] for label in wanted)
    assert (cut.label_features != ds.label_features[wanted]).nnz == 0
    assert cut.train.Y.has_sorted_indices


def test_scores_that_are_no_probabilities_are_squeezed_and_others_left():
    top = TopK.from_scores(np.array([[0.9, 0.1, 0.4], [0.2, 0.8, 0.3]]), k=2)
    assert (calibrated.linked(top, 2).scores == top.scores).all()
    # by name, though they lie in [0, 1]; the pool is the first k places only
    squeezed = calibrated.linked(top, 2, "PfastreXML")
    np.testing.assert_allclose(squeezed.scores, [[1.0, 1 / 6], [5 / 6, 0.0]], atol=1e-6)
    np.testing.assert_allclose(calibrated.linked(top, 1, "DiSMEC").scores, [[1.0], [0.0]])
    margins = TopK.from_scores(np.array([[3.0, -1.0], [1.0, 2.0]]), k=2)
    np.testing.assert_allclose(calibrated.linked(margins, 2).scores, [[1.0, 0.0], [0.75, 0.5]])
    assert (calibrated.linked(margins, 2).ids == margins.ids).all()
    # a probability that float32 rounded above 1 is one; a place that is absent stays so
    rounded = TopK(np.array([[0, 1], [2, -1]]), np.array([[1.0000001, 0.5], [0.25, -np.inf]], np.float32), 3)
    assert calibrated.linked(rounded, 2).scores.tolist() == [[1.0, 0.5], [0.25, -np.inf]]


# ---------------------------------------------------------------- against the truth


def chances(twin, top):
    """Scores and probabilities of the places with a label, the latter from the dense marginals."""
    there = top.ids >= 0
    found = np.take_along_axis(twin.test.observed_marginals.toarray(), np.maximum(top.ids, 0).astype(int), 1)
    return top.scores[there], found[there]


def test_the_expected_error_sees_a_bent_scale_and_no_noise(twin, misjudged):
    right, high = misjudged(twin, 5), misjudged(twin, 5, power=0.5)
    assert calibrated.expected_error(*chances(twin, right)) < 1e-6
    scores, true = chances(twin, high)
    gap = float((scores - true).mean())
    # overstated everywhere, so the error is the mean gap, whatever the bins
    assert calibrated.expected_error(scores, true) == pytest.approx(gap, rel=1e-5)
    assert gap > 0.05


def test_the_floor_is_the_expected_error_of_right_scores():
    n, p = 40, 0.3
    hits = np.arange(n + 1)
    exact = (binom.pmf(hits, n, p) * abs(hits / n - p)).sum()

    def same(points: int) -> TopK:
        return TopK(np.zeros((points, 1), np.int32), np.full((points, 1), p, np.float32), 1)

    def floor(points: int) -> float:
        none = sparse.csr_matrix((points, 1))
        found = metric.calibration_table(none, same(points), [1], closed="torchmetrics", metrics=["ECE floor"])
        return 100 * found["value"].iloc[0]

    assert floor(n) == pytest.approx(100 * exact, rel=0.05)
    assert floor(100 * n) == pytest.approx(10 * exact, rel=0.05)  # it falls with the root of n


def test_a_score_on_an_edge_lies_in_the_bin_above(twin, misjudged):
    # The bins of the expected error: 0.7 in float32 as its own bin; in that of 0.69 the two would cancel.
    top = misjudged(twin, 1)
    n = len(top)
    _, chance = chances(twin, top)
    scores = np.where(np.arange(n) < n // 2, 0.69, 0.7).astype(np.float32)
    low, high = (abs((scores.astype(float) - chance)[part].sum()) for part in (scores < 0.7, scores >= np.float32(0.7)))
    found = calibrated.expected_error(scores, chance)
    assert found == pytest.approx((low + high) / n, rel=1e-9)


# ---------------------------------------------------------------- maps that never saw the test


def _two_splits():
    """40 test points and 30 others, three labels; scores that order them by chance."""
    rng = np.random.default_rng(3)
    Y = [sparse.csr_matrix((rng.random((n, 3)) < 0.4).astype(np.float32)) for n in (40, 30)]
    tops = [TopK.from_scores(rng.random((n, 3)).round(2), k=3) for n in (40, 30)]
    ds = SimpleNamespace(test=SimpleNamespace(Y=Y[0]), validation=SimpleNamespace(Y=Y[1]))
    return ds, *tops


def _isotonic(scores, hits):
    """The max-min formula: the largest mean from any start below to the smallest end above."""
    order = np.unique(scores)
    value = {}
    for s in order:
        value[s] = max(
            min(np.mean([h for t, h in zip(scores, hits, strict=True) if lo <= t <= hi]) for hi in order if hi >= s)
            for lo in order
            if lo <= s
        )
    return order, np.array([value[s] for s in order])


def test_a_held_out_map_is_fitted_on_the_other_points_only():
    ds, top, other = _two_splits()
    hits = ds.validation.Y.toarray()[np.arange(30)[:, None], other.ids]
    knots, values = _isotonic(other.scores.ravel().astype(float), hits.ravel())
    found = calibrated.recalibrated(ds, top, other)
    np.testing.assert_allclose(found.scores, np.interp(top.scores, knots, values), atol=1e-6)
    assert (found.ids == top.ids).all()
    turned = SimpleNamespace(test=SimpleNamespace(Y=1 - ds.test.Y.toarray()), validation=ds.validation)
    assert (calibrated.recalibrated(turned, top, other).scores == found.scores).all()
    without = calibrated.recalibrated(ds, top)
    assert (without.scores == xc.calibrate.cross_fit_top(ds.test.Y, top).scores).all()


def test_separate_held_out_maps_are_one_a_place():
    ds, top, other = _two_splits()
    hits = ds.validation.Y.toarray()[np.arange(30)[:, None], other.ids]
    expected = np.column_stack(
        [np.interp(top.scores[:, j], *_isotonic(other.scores[:, j].astype(float), hits[:, j])) for j in range(3)]
    )
    found = calibrated.recalibrated(ds, top, other, separate=True)
    np.testing.assert_allclose(found.scores, -np.sort(-expected, axis=1), atol=1e-6)
    assert all(sorted(a) == sorted(b) for a, b in zip(found.ids.tolist(), top.ids.tolist(), strict=True))


def test_a_file_by_a_baselines_name_is_taken_by_its_content(tmp_path):
    top = TopK.from_scores(np.array([[0.9, 0.1, 0.4], [0.2, 0.8, 0.3]]), k=2)
    top.save(tmp_path / "DiSMEC.npz")
    given = str(tmp_path / "DiSMEC.npz")
    assert (calibrated.probabilities({"DiSMEC": top}, 2, given)["DiSMEC"].scores == top.scores).all()
    assert calibrated.probabilities({"DiSMEC": top}, 2)["DiSMEC"].scores.max() == 1
    assert calibrated.describe_scores({"DiSMEC": top}, given) == "Scores are probabilities as they are."
    margins = TopK.from_scores(np.array([[3.0, -1.0], [1.0, 2.0]]), k=2)
    margins.save(tmp_path / "DiSMEC.npz")
    assert calibrated.probabilities({"DiSMEC": margins}, 2, given)["DiSMEC"].scores.tolist() == [
        [1.0, 0.0],
        [0.75, 0.5],
    ]
    assert "DiSMEC (some" in calibrated.describe_scores({"DiSMEC": margins}, given)
    assert "mine (some" in calibrated.describe_scores({"mine": margins})


def test_pairs_are_compared_left_minus_right():
    ds, top, _ = _two_splits()
    flat = TopK(top.ids, np.full_like(top.scores, 0.4), 3)
    found = calibrated.compared(ds.test.Y, {"a": (top, flat)}, ["Brier"], 3)
    gap = metric.brier(ds.test.Y, top, 3) - metric.brier(ds.test.Y, flat, 3)
    assert found.loc[0, "value"] == pytest.approx(gap)
    assert found.loc[0, "low"] < gap < found.loc[0, "high"]
    mean = calibrated.mean_of(ds.test.Y, [(top, flat, 3), (flat, top, 3), (top, flat, 1)], "Brier").iloc[0]
    first = metric.brier(ds.test.Y, top, 1) - metric.brier(ds.test.Y, flat, 1)
    assert mean[["model", "k"]].tolist() == ["mean of 3", "1;3"]
    assert mean["value"] == pytest.approx(first / 3)


def test_differences_on_the_claimed_side():
    rows = pd.DataFrame({"value": [-0.25, -0.0125], "p raw": [0.0001, 0.4]})
    said = "ECE below in 1 of 2, too small to tell in 1 (-25.0 to -1.2 points)"
    assert calibrated.outcome(rows, "below", "ECE") == (None, said)
    assert calibrated.outcome(rows[:1], "below")[0] is True
    assert calibrated.outcome(rows.assign(**{"p raw": [0.03, 0.04]}), "below")[0] is True  # each, without a correction
    assert calibrated.outcome(rows[:1], "above")[0] is False
