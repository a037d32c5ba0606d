"""Theorem 4.3: the bound in closed form, and the draws against the metric itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

import xcrepro as xc
from xcrepro import metrics, propensity
from xcrepro.errors import ArgumentError
from xcrepro.papers.jain16 import theorem43_bound as theorem43


def test_the_bound_in_closed_form():
    """One label, always relevant and predicted: every quantity has a formula."""
    n, draws = 200, 2000
    truth = np.ones((n, 1), np.float32)
    top = xc.TopK.from_ids(np.zeros((n, 1), np.int32), n_labels=1)
    table = theorem43.compute(truth, top, np.array([50]), 1000, [0.55], [50, 200], draws, k=1)
    w = propensity.inverse([50], 1000, 0.55, 1.5)[0]
    for row in table.to_dict("records"):
        m = row["points"]
        assert (row["rho"], row["L bar"]) == (pytest.approx(100 * w), 1.0)
        assert row["bound"] == pytest.approx(100 * w * math.sqrt(math.log(2 / 0.05) / (2 * m)))
        assert row["own range"] == pytest.approx(row["bound"])
        assert row["normal"] == pytest.approx(1.959964 * 100 * math.sqrt((w - 1) / m))
        assert row["observed"] == pytest.approx(row["normal"], rel=0.12)
        assert row["outside"] <= 0.05  # the theorem; here the bound is near three standard deviations


def test_the_bound_takes_the_largest_gain_at_its_rank_and_the_draws_agree_with_the_metric(world):
    truth, top, counts, n = world
    row = theorem43.compute(truth, top, counts, n, [0.55], [80], 1500).iloc[0]
    w, I = propensity.inverse(counts, n, 0.55, 1.5), sum(1 / math.log2(r + 1) for r in (1, 2, 3))
    rho = max(100 * w[top.ids[i, r]] / math.log2(r + 2) / I for i in range(80) for r in range(3))
    assert row["rho"] == pytest.approx(rho)
    assert row["L bar"] == pytest.approx(math.sqrt(np.mean(truth.sum(axis=1) ** 2)))
    assert row["normal"] < row["own range"] < row["bound"]
    # The quantile of the hand-made draws is that of psndcg over drop_labels, up to sampling.
    rng, form = np.random.default_rng(9), {"inverse_propensity": w, "normalize": False, "ideal": "k"}
    draws = [metrics.psndcg(propensity.drop_labels(truth, 1 / w, rng), top, (3,), **form)[0] for _ in range(1500)]
    away = 100 * np.abs(np.array(draws) - metrics.ndcg(truth, top, (3,), ideal="k")[0])
    assert row["observed"] == pytest.approx(np.quantile(away, 0.95), rel=0.12)


def test_empty_places_bring_nothing():
    truth = np.eye(4, dtype=np.float32)
    top = xc.TopK.from_ids(np.array([[0, -1], [1, -1], [2, -1], [3, -1]]), n_labels=4)
    # Were an empty place taken for the last label, its gain would be the largest.
    table = theorem43.compute(truth, top, np.array([400, 400, 400, 1]), 1000, [0.55], [4], 60, k=2)
    w = propensity.inverse([1], 1000, 0.55, 1.5)[0]
    assert table["rho"].item() == pytest.approx(100 * w / (1 + 1 / math.log2(3)))
    with pytest.raises(ArgumentError, match="points"):
        theorem43.compute(truth, top, np.array([400] * 4), 1000, [0.55], [5], 60)
