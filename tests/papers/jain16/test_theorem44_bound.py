"""Theorem 4.4: the bound in closed form, and the draws against the estimator itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

import xcrepro as xc
from xcrepro import metrics, propensity
from xcrepro.errors import ArgumentError
from xcrepro.papers.jain16 import theorem44_bound as theorem44


def test_the_bound_in_closed_form():
    """One label, always relevant, never predicted: every quantity has a formula."""
    n, draws = 200, 2000
    truth = np.ones((n, 1), np.float32)
    top = xc.TopK.from_ids(np.full((n, 1), -1, np.int32), n_labels=1)
    table = theorem44.compute(truth, top, np.array([50]), 1000, [0.55], [50, 200], draws)
    w = propensity.inverse([50], 1000, 0.55, 1.5)[0]
    for row in table.to_dict("records"):
        m = row["points"]
        assert (row["rho"], row["L bar"], row["loss"]) == (pytest.approx(w), 1.0, 1.0)
        assert row["bound"] == pytest.approx(w * math.sqrt(math.log(2 / 0.05) / (2 * m)))
        assert row["own range"] == pytest.approx(row["bound"])
        assert row["normal"] == pytest.approx(1.959964 * math.sqrt((w - 1) / m))
        assert row["observed"] == pytest.approx(row["normal"], rel=0.12)
        assert row["outside"] <= 0.05


def test_the_draws_agree_with_the_estimator(world):
    truth, top, counts, n = world
    row = theorem44.compute(truth, top, counts, n, [0.55], [80], 1500).iloc[0]
    w = propensity.inverse(counts, n, 0.55, 1.5)
    assert row["rho"] == w.max()
    assert row["loss"] == pytest.approx(metrics.hamming_loss(truth, top, 5)[0])
    assert row["normal"] < row["own range"] < row["bound"]
    rng = np.random.default_rng(9)
    kept = (propensity.drop_labels(truth, 1 / w, rng) for _ in range(1500))
    draws = np.array([metrics.hamming_loss(one, top, 5, inverse_propensity=w)[0] for one in kept])
    assert draws.mean() == pytest.approx(row["loss"], abs=4 * draws.std() / math.sqrt(1500))  # theorem 4.4: unbiased
    assert row["observed"] == pytest.approx(np.quantile(np.abs(draws - row["loss"]), 0.95), rel=0.12)
    with pytest.raises(ArgumentError, match="points"):
        theorem44.compute(truth, top, counts, n, [0.55], [81], 60)


def test_sentences_and_panels(world):
    table = theorem44.compute(*world, [0.1, 0.55], [20, 80], 60)
    said = theorem44.findings(table, 60)
    assert len(said) == 5
    last = table[(table["A"] == 0.55) & (table["points"] == 80)].iloc[0]
    assert f"the loss is {last['loss']:.2f} labels a point" in said[-1]
    assert said[-1].endswith(f"{last['bound'] / last['loss']:.1f} times the loss itself.")
    assert [ax.get_title() for ax in theorem44.plot(table, "mine").axes] == ["A = 0.1", "A = 0.55"]
