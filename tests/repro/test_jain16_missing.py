"""The items on figure 3 and theorem 4.3: what goes missing by hand, means against exact expectations, bounds in closed form,
and the pairing of trainings."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro import metrics, models, propensity
from xcrepro.errors import ArgumentError
from xcrepro.repro import jain16_missing as jm

GRID = [0.25, 0.55, 1.2]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))


# ---------------------------------------------------------------- fig 3a


def test_shares_by_hand():
    n = 1000
    C = (math.log(n) - 1) * 2.5**0.55
    p1, p40 = 1 / (1 + C * 2.5**-0.55), 1 / (1 + C * 41.5**-0.55)
    assert p1 == pytest.approx(1 / math.log(n))
    row = jm.missing_shares(np.array([1, 1, 40, 0]), n, [0.55]).iloc[0]
    assert row["missing %"] == pytest.approx(100 * (1 - (2 * p1 + 40 * p40) / 42))
    assert row["rare missing %"] == pytest.approx(100 * (1 - p1))
    assert row["never seen %"] == pytest.approx(100 * (2 * (1 - p1) + (1 - p40) ** 40) / 3)


def test_shares_are_what_dropping_takes():
    ds = xc.twin("eurlex-4k", scale=0.1, seed=0)
    counts, n = ds.label_counts, ds.n_train
    expected = jm.missing_shares(counts, n, [0.55])["missing %"].item()
    p = 1 / propensity.inverse(counts, n, 0.55, 1.5)
    left = [propensity.drop_labels(ds.train.Y, p, seed).nnz for seed in range(30)]
    deviation = 100 * math.sqrt((counts @ (p * (1 - p))) / 30) / counts.sum()
    assert abs(100 * (1 - np.mean(left) / counts.sum()) - expected) <= 4 * deviation


def test_curves_begin_at_log_n_and_rise():
    curves = jm.missing_curves(np.array([3, 700]), 5000, GRID)
    for _, curve in curves.groupby("A"):
        assert curve["propensity"].iloc[0] == pytest.approx(1 / math.log(5000))
        assert (np.diff(curve["propensity"]) > 0).all()
        assert curve["count"].iloc[-1] == 700


def test_the_complete_truth_of_fig_3a():
    name, counts, n = jm.complete()
    assert (name, counts.sum(), counts.size, n) == ("EURLex-4K", 102_741, 3993, 19_314)
    with pytest.raises(ArgumentError, match="folder"):
        jm.complete("bibtex")


# ---------------------------------------------------------------- fig 3b


@pytest.fixture(scope="module")
def world():
    """A complete truth, predictions near it, counts of a train set it could come from."""
    rng = np.random.default_rng(0)
    eta = rng.beta(0.4, 2.0, (80, 30))
    truth = (rng.random(eta.shape) < eta).astype(np.float32)
    top = xc.TopK.from_scores(eta + rng.normal(0, 0.2, eta.shape), 5)
    return truth, top, rng.integers(1, 400, 30), 2000


def gains(truth, top, k=3):
    """(n, k) discounted gains, percent, of the complete truth."""
    discount = 1 / np.log2(np.arange(2, k + 2))
    return 100 * np.take_along_axis(truth, top.ids[:, :k], axis=1) * discount / discount.sum()


def test_means_are_the_exact_expectations(world):
    truth, top, counts, n = world
    draws = 400
    table = jm.evaluations(truth, top, counts, n, GRID, draws=draws, seed=5, ks=(1, 3))
    for row in table.itertuples():
        p = 1 / propensity.inverse(counts, n, row.A, 1.5)
        at, gain = p[top.ids[:, : row.k]], gains(truth, top, row.k)
        assert row.complete == pytest.approx(gain.sum(axis=1).mean())
        spread = math.sqrt((gain**2 * at * (1 - at)).sum()) / len(truth)
        assert abs(row.plain - (gain * at).sum(axis=1).mean()) <= 4 * spread / math.sqrt(draws)
        spread = math.sqrt((gain**2 * (1 - at) / at).sum()) / len(truth)
        assert abs(row.scored - row.complete) <= 4 * spread / math.sqrt(draws)
        # The middle 95 % of a nearly normal mean.
        band = table["scored high"][row.Index] - table["scored low"][row.Index]
        assert band == pytest.approx(2 * 1.96 * spread, rel=0.2)
        assert row.sigmas == pytest.approx((row.scored - row.complete) / (spread / math.sqrt(draws)), rel=0.2, abs=0.05)
    for _, part in table.groupby("k"):
        assert (np.diff(part["plain"]) > 0).all()
        assert (np.diff(part["missing %"]) < 0).all()


def test_the_sentence_sees_a_bias():
    table = pd.DataFrame({"sigmas": [-3.9, 4.1, 0.0, -40.0]})
    assert jm.unbiased(table, 7).endswith("complete truth: 2 of 4 means of 7 draws")


def test_too_few_draws(world):
    with pytest.raises(ArgumentError, match="draws"):
        jm.evaluations(*world, GRID, draws=39)


# ---------------------------------------------------------------- theorem 4.3


def test_the_bound_in_closed_form():
    """One label, always relevant and predicted: every quantity has a formula."""
    n, draws = 200, 2000
    truth = np.ones((n, 1), np.float32)
    top = xc.TopK.from_ids(np.zeros((n, 1), np.int32), n_labels=1)
    table = jm.deviations(truth, top, np.array([50]), 1000, [0.55], [50, 200], draws, k=1)
    w = propensity.inverse([50], 1000, 0.55, 1.5)[0]
    for row in table.to_dict("records"):
        m = row["points"]
        assert (row["rho"], row["L bar"]) == (pytest.approx(100 * w), 1.0)
        assert row["bound"] == pytest.approx(100 * w * math.sqrt(math.log(2 / 0.05) / (2 * m)))
        assert row["own range"] == pytest.approx(row["bound"])
        assert row["normal"] == pytest.approx(1.959964 * 100 * math.sqrt((w - 1) / m))
        assert row["observed"] == pytest.approx(row["normal"], rel=0.12)
        assert row["outside"] <= 0.05  # the theorem; here the bound is near three standard deviations


def test_the_bound_takes_the_largest_gain_at_its_rank(world):
    truth, top, counts, n = world
    row = jm.deviations(truth, top, counts, n, [0.55], [80], 50).iloc[0]
    w, I = propensity.inverse(counts, n, 0.55, 1.5), sum(1 / math.log2(r + 1) for r in (1, 2, 3))
    rho = max(100 * w[top.ids[i, r]] / math.log2(r + 2) / I for i in range(80) for r in range(3))
    assert row["rho"] == pytest.approx(rho)
    assert row["L bar"] == pytest.approx(math.sqrt(np.mean(truth.sum(axis=1) ** 2)))
    assert row["normal"] < row["own range"] < row["bound"]


def test_deviations_agree_with_the_metric(world):
    """The quantile of the hand-made draws is that of psndcg over drop_labels, up to sampling."""
    truth, top, counts, n = world
    w = propensity.inverse(counts, n, 0.55, 1.5)
    exact = metrics.ndcg(truth, top, (3,), ideal="k")[0]
    rng = np.random.default_rng(9)
    away = [
        100 * abs(
            metrics.psndcg(
                propensity.drop_labels(truth, 1 / w, rng), top, (3,), inverse_propensity=w, normalize=False, ideal="k"
            )[0] - exact
        )
        for _ in range(1500)
    ]  # fmt: skip
    row = jm.deviations(truth, top, counts, n, [0.55], [80], 1500).iloc[0]
    assert row["observed"] == pytest.approx(np.quantile(away, 0.95), rel=0.12)


def test_empty_places_bring_nothing():
    truth = np.eye(4, dtype=np.float32)
    top = xc.TopK.from_ids(np.array([[0, -1], [1, -1], [2, -1], [3, -1]]), n_labels=4)
    # Were an empty place taken for the last label, its gain would be the largest.
    table = jm.deviations(truth, top, np.array([400, 400, 400, 1]), 1000, [0.55], [4], 60, k=2)
    w = propensity.inverse([1], 1000, 0.55, 1.5)[0]
    assert table["rho"].item() == pytest.approx(100 * w / (1 + 1 / math.log2(3)))
    with pytest.raises(ArgumentError, match="points"):
        jm.deviations(truth, top, np.array([400] * 4), 1000, [0.55], [5], 60)


# ---------------------------------------------------------------- fig 3c and 3d


def test_trainings_see_the_same_labels_and_the_right_weights():
    ds = xc.twin("eurlex-4k", scale=0.02, seed=0)
    found = jm.scores(ds, [0.1], draws=2, trees=2, seed=3)
    kinds = found.groupby(["A", "model"]).size()
    # The reference is put in: there PfastXML is told either A, and FastXML has the constant normaliser too.
    assert kinds[0.1].to_dict() == {"FastXML": 2, "PfastXML": 2}
    assert kinds[0.55].to_dict() == {"FastXML": 2, "FastXML, constant ideal": 2, "PfastXML": 4}
    weight = propensity.inverse(ds.label_counts, ds.n_train, 0.55, 1.5)
    told = propensity.inverse(ds.label_counts, ds.n_train, 0.1, 1.5)
    observed = propensity.drop_labels(ds.train.Y, 1 / weight, np.random.default_rng([3, 1]))
    part = found[(found["A"] == 0.55) & (found["draw"] == 1)]
    for name, assumed, model in (
        ("FastXML", math.nan, models.FastXML(trees=2, seed=4)),
        ("FastXML, constant ideal", math.nan, models.FastXML(trees=2, seed=4, ideal="L")),
        ("PfastXML", 0.1, models.PfastXML(trees=2, seed=4, inverse_propensity=told)),
        ("PfastXML", 0.55, models.PfastXML(trees=2, seed=4, inverse_propensity=weight)),
    ):
        top = model.fit(ds.train.X, observed).predict(ds.test.X, 3)
        same = part["assumed"].isna() if math.isnan(assumed) else part["assumed"] == assumed
        value = part[(part["model"] == name) & same]["nDCG"].item()
        assert value == pytest.approx(100 * metrics.ndcg(ds.test.Y, top, (3,), ideal="k")[0])
    assert part["missing %"].nunique() == 1
    assert part["missing %"].iloc[0] == pytest.approx(100 * (1 - observed.nnz / ds.train.Y.nnz))


def test_pairs_by_hand():
    rows = [
        (0.55, math.nan, "FastXML", 0, 40.0, 60.0),
        (0.55, math.nan, "FastXML", 1, 42.0, 70.0),
        (0.55, 0.55, "PfastXML", 0, 40.0, 61.0),
        (0.55, 0.55, "PfastXML", 1, 42.0, 73.0),
        (0.55, 1.2, "PfastXML", 0, 40.0, 59.0),
        (0.55, 1.2, "PfastXML", 1, 42.0, 70.0),
        (0.1, math.nan, "FastXML", 0, 80.0, 50.0),
        (0.1, 0.1, "PfastXML", 0, 80.0, 48.0),
    ]
    table = jm.paired(pd.DataFrame(rows, columns=["A", "assumed", "model", "draw", "missing %", "nDCG"]))
    found = table.set_index(["A", "assumed"])
    assert found.loc[(0.55, 0.55), ["FastXML", "nDCG", "difference", "error"]].tolist() == [65.0, 67.0, 2.0, 1.0]
    assert found.loc[(0.55, 0.55), ["better", "draws", "missing %"]].tolist() == [2, 2, 41.0]
    assert found.loc[(0.55, 1.2), ["difference", "better"]].tolist() == [-0.5, 0]
    assert found.loc[(0.1, 0.1), "difference"] == -2.0
    assert jm.right(table)["A"].tolist() == [0.1, 0.55]
    assert jm.wrong(table)["assumed"].tolist() == [0.55, 1.2]
