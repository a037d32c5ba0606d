"""Theorem 4.3: the bound in closed form, and the draws against the metric itself."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
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


def test_findings_say_what_the_table_says():
    rows = [(0.1, 25, 100.0, 1.0, 40.0, 20.0, 10.2, 10.0, 0.0), (0.1, 100, 120.0, 1.0, 24.0, 10.0, 5.0, 5.0, 0.02)]
    table = pd.DataFrame(rows, columns=["A", "points", "rho", "L bar", *theorem43.LINES, "outside"])
    said = theorem43.findings(table, 1000)
    assert said[0] == (
        "Of 1,000 draws 2.0 % at most are beyond the bound, in any of the 2 rows; the theorem allows 5 %."
    )
    assert said[1].startswith("The bound is 4.0 to 4.8 times as wide as what 95 %")
    assert "fell 1.7 times, the draws' width 2.0 times; the root of the numbers of points is 2.0" in said[3]
    assert said[3].endswith("ρ rose by 20 %.")
    one = theorem43.findings(table.iloc[:1], 40)
    assert "none is beyond the bound, in the one row" in one[0]
    assert "fell" not in one[-1]
    # No hit at all: nothing is off, and nothing is divided by it.
    assert len(theorem43.findings(table.assign(observed=0.0, normal=0.0), 40)) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("curves", []), ("curves", [0.5, 0.5]), ("curves", [0.0]), ("points", []), ("points", [1, 5]), ("points", [5, 5])],
)
def test_parameters_are_refused_by_their_name(name, value):
    good = {"dataset": "bibtex", "curves": [0.55], "points": [24], "draws": 40}
    theorem43.check_parameters(good)
    with pytest.raises(ArgumentError, match=f"parameter {name} must"):
        theorem43.check_parameters(good | {name: value})


def test_subsets_hold_each_other():
    small, large = theorem43.subsets(30, [5, 20], seed=3)
    assert (small.size, large.size) == (5, 20)
    assert (large[:5] == small).all()
    with pytest.raises(ArgumentError, match="points must be different numbers of test points, 2 or more, 30 at most"):
        theorem43.subsets(30, [31])


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_panel_for_each_a(world, count):
    table = theorem43.compute(*world, [0.1, 0.3, 0.5, 0.7][:count], [20, 80], 60)
    fig = theorem43.plot(table, "mine")
    assert [ax.get_title() for ax in fig.axes if ax.get_visible()] == ["A = 0.1", "A = 0.3", "A = 0.5", "A = 0.7"][
        :count
    ]
