"""Table 1: every gain against plain loops, and a Monte Carlo that sees wrong propensities."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tests import naive
from xcrepro import metrics, published
from xcrepro.errors import ArgumentError
from xcrepro.metrics import ranking
from xcrepro.papers.jain16 import _common
from xcrepro.papers.jain16 import table1_gains as table1
from xcrepro.papers.jain16.table1_gains import GAINS
from xcrepro.propensity import drop_labels
from xcrepro.truth import Truth

KS = (1, 3, 5)


ORACLES = {
    "Precision@k": lambda *case: naive.psp(*case[:4], normalize=False),
    "nDCG@k": lambda *case: naive.psndcg(*case[:4], normalize=False, ideal="k"),
    "Hamming loss": lambda Y, ranking, k, w, n: naive.hamming_loss(Y, ranking, k, len(w), w),
    "Recall@k": lambda Y, ranking, k, w, n: naive.table1b(Y, ranking, k, lambda r: 1, w, n),
    "MRR": lambda Y, ranking, k, w, n: naive.table1b(Y, ranking, k, lambda r: 1 / r, w, n),
    "ADG": lambda Y, ranking, k, w, n: naive.table1b(Y, ranking, k, lambda r: 1 / math.log2(r + 1), w, n),
    "F1 as printed": lambda Y, ranking, k, w, n: naive.f_beta(Y, ranking, k, 1, "printed", w, n),
    "F1 with k below": lambda Y, ranking, k, w, n: naive.f_beta(Y, ranking, k, 1, "set", w, n),
}


@pytest.mark.parametrize("name", GAINS)
def test_every_gain_is_table_1s(name, twin, top):
    """Both forms on one draw, against plain loops over points and labels; the function named gives the scored one."""
    w, sizes = 1 / twin.propensities, Truth.of(twin.test.Y_complete).sizes
    left = drop_labels(twin.test.Y_complete, twin.propensities, 5)
    group, function, plain, scored = GAINS[name]
    ours = ranking.values([plain, scored], left, top, KS, w, sizes)
    truth = [set(row.indices.tolist()) for row in left]
    for at, k in enumerate(KS):
        case = truth, top.ids.tolist(), k
        assert ours[plain][at] == pytest.approx(ORACLES[name](*case, np.ones(w.size), None))
        assert ours[scored][at] == pytest.approx(ORACLES[name](*case, w, sizes))
    given = "Y, top, ks, inverse_propensity=w" + (", n_relevant=sizes" if group == "b" else "")
    names = {"metrics": metrics, "Y": left, "top": top, "ks": KS, "w": w, "sizes": sizes}
    assert eval(function.replace("...", given), names) == pytest.approx(ours[scored], rel=1e-15)


def test_table_1_is_complete():
    formulas = published.formulas()
    printed = formulas[formulas["source"] == "jain16:table1"]
    ours = {name.replace("F1 as printed", "F-beta").replace("Hamming", "-Hamming") for name in GAINS}
    assert set(printed["name"]) == ours - {"F1 with k below"}
    groups = {name: group for name, (group, *_) in GAINS.items()}
    assert all(groups.get(row["name"].lstrip("-"), "b") == row["group"] for _, row in printed.iterrows())


def test_scored_gains_are_unbiased_and_plain_ones_are_not(twin, top):
    table = table1.compute(twin.test.Y_complete, top, twin.propensities, draws=300, seed=0)
    away = table1.compute_sigmas(table, 300)
    assert len(table) == 24
    assert (away["scored apart"] == "no").all()
    # In group b the denominator shrinks with the labels that are missing, which can hide most of it.
    assert (away.loc[away["gain"].map(lambda name: GAINS[name][0] == "a"), "plain"] > 4).all()
    assert (table["scored error"] > 0).all()
    without = table1.compute_corollary(twin.test.Y_complete, top, twin.propensities, draws=300, seed=0)
    assert len(without) == 9
    away = table1.compute_sigmas(without, 300)
    assert (away["scored apart"] == "no").all()
    assert (away["plain apart"] == "clearly").all()
    said = table1.findings(table, without, 300)
    assert said[0].startswith("With propensities 0 of 24 means are clearly off")
    assert said[-1].endswith("with plain counts 9 of 9 means are clearly off.")
    low = next(sentence for sentence in said if "too low" in sentence)
    assert "Precision@k, nDCG@k" in low


def test_wrong_propensities_are_found(twin, top, monkeypatch):
    """Planted: labels go missing with other propensities than the weights are made of."""
    true = drop_labels
    monkeypatch.setattr(_common, "drop_labels", lambda Y, p, rng: true(Y, np.sqrt(p), rng))
    table = table1.compute(twin.test.Y_complete, top, twin.propensities, draws=100, seed=0)
    assert (table1.compute_sigmas(table, 100)["scored apart"] == "clearly").sum() >= 20


def test_the_mean_and_its_error():
    draws = np.array([[[1.0] * 3, [3.0] * 3]])
    row = table1._table(["g"], np.array([[-2.0] * 3]), {"scored": draws, "plain": draws + 1}).iloc[2]
    # deviation sqrt(2), over sqrt(2)
    assert row.tolist() == ["g", 5, -2.0, 2.0, pytest.approx(1.0), 3.0, pytest.approx(1.0), 100.0, 150.0]


def test_what_is_off_is_told_from_chance():
    """Five standard errors of five draws, of 300, and means that never differ."""
    row = {"gain": "P", "k": 5, "complete": 0.5, "scored": 0.55, "scored error": 0.01, "plain": 0.5, "plain error": 0.0}
    table = pd.DataFrame([row, row | {"k": 3, "scored": 0.5, "plain": 0.4}])
    away = table1.compute_sigmas(table, 300)
    assert away["scored apart"].tolist() == ["clearly", "no"]
    assert away["plain apart"].tolist() == ["no", "clearly"]
    assert np.isnan(away["plain"]).all()
    assert table1.compute_sigmas(table, 3)["scored apart"].tolist() == ["no", "no"]
    said = table1.findings(table, table, 300)
    assert "too low" not in " ".join(said)  # at k = 5 the plain value is right


def test_points_are_checked():
    values = {"dataset": "bibtex", "points": 500, "draws": 100, "model": "PLT"}
    table1.check_parameters(values)
    with pytest.raises(ArgumentError, match="parameter points"):
        table1.check_parameters(values | {"points": 0})
    with pytest.raises(ArgumentError, match="parameter draws"):
        table1.check_parameters(values | {"draws": 1})
