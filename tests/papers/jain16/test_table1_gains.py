"""Table 1: every gain against plain loops, and a Monte Carlo that sees wrong propensities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xcrepro import metrics, published
from xcrepro.papers.jain16 import table1_gains as table1
from xcrepro.papers.jain16.table1_gains import GAINS
from xcrepro.propensity import drop_labels
from xcrepro.truth import Truth

KS = (1, 3, 5)


def written_out(name, y, order, k, w=None, n_relevant=None) -> float:
    """Table 1 for one point in plain loops, w 1 and n_relevant |y| for the plain gain."""
    w = np.ones(y.size) if w is None else w
    size = y.sum() if n_relevant is None else n_relevant
    rank = {label: place + 1 for place, label in enumerate(order[:k])}
    hits = [(w[label], r) for label, r in rank.items() if y[label]]
    total = sum(weight for weight, _ in hits)
    discounted = sum(weight / math.log2(r + 1) for weight, r in hits)
    if name == "Precision@k":
        return total / k
    if name == "nDCG@k":
        return discounted / sum(1 / math.log2(r + 1) for r in range(1, k + 1))
    if name == "Hamming loss":
        return sum(w[label] * (1 - 2 * (label in rank)) for label in np.flatnonzero(y)) + len(rank)
    above = {
        "Recall@k": total,
        "MRR": sum(weight / r for weight, r in hits),
        "ADG": discounted,
        "F1 as printed": 2 * total * size / (size + 1),
        "F1 with k below": 2 * total * size / (size + k),
    }[name]
    return above / size if size else 0.0


@pytest.mark.parametrize("name", GAINS)
def test_every_gain_is_table_1s(name, twin, top):
    """Both forms on one draw, against plain loops over points and labels; the function named gives the scored one."""
    w = 1 / twin.propensities
    left = drop_labels(twin.test.Y, twin.propensities, 5)
    sizes = Truth.of(twin.test.Y).sizes
    group, function, plain, scored = GAINS[name]
    ours = [table1._values([plain], left, top)[0], table1._values([scored], left, top, w, sizes)[0]]
    Y = left.toarray()
    for at, k in enumerate(KS):
        rows = list(zip(Y, top.ids, sizes, strict=True))
        assert ours[0][at] == pytest.approx(np.mean([written_out(name, y, order, k) for y, order, _ in rows]))
        assert ours[1][at] == pytest.approx(np.mean([written_out(name, y, order, k, w, n) for y, order, n in rows]))
    given = "Y, top, ks, inverse_propensity=w" + (", n_relevant=sizes" if group == "b" else "")
    names = {"metrics": metrics, "Y": left, "top": top, "ks": KS, "w": w, "sizes": sizes}
    assert eval(function.replace("...", given), names) == pytest.approx(ours[1], rel=1e-15)


def test_table_1_is_complete():
    formulas = published.formulas()
    printed = formulas[formulas["source"] == "jain16:table1"]
    ours = {name.replace("F1 as printed", "F-beta").replace("Hamming", "-Hamming") for name in GAINS}
    assert set(printed["name"]) == ours - {"F1 with k below"}
    groups = {name: group for name, (group, *_) in GAINS.items()}
    assert all(groups.get(row["name"].lstrip("-"), "b") == row["group"] for _, row in printed.iterrows())


def test_scored_gains_are_unbiased_and_plain_ones_are_not(twin, top):
    table = table1.compute(twin.test.Y, top, twin.propensities, draws=300, seed=0)
    away = table1.compute_sigmas(table)
    assert len(table) == 24
    assert (away["unbiased"] == "yes").all()
    assert (away["plain"] > 4).sum() >= 20
    assert (table["scored error"] > 0).all()
    assert table1.describe_unbiased(table).startswith("propensity-scored: 24 of 24 within 4 standard errors")
    table = table1.compute_corollary(twin.test.Y, top, twin.propensities, draws=300, seed=0)
    assert len(table) == 9
    away = table1.compute_sigmas(table)
    assert (away["scored"] <= 4).all()
    assert (away["plain"] > 4).all()


def test_wrong_propensities_are_found(twin, top, monkeypatch):
    """Planted: labels go missing with other propensities than the weights are made of."""
    true = drop_labels
    monkeypatch.setattr(table1, "drop_labels", lambda Y, p, rng: true(Y, np.sqrt(p), rng))
    table = table1.compute(twin.test.Y, top, twin.propensities, draws=100, seed=0)
    assert (table1.compute_sigmas(table)["unbiased"] == "no").sum() >= 20


def test_the_mean_and_its_error():
    draws = np.array([[[1.0] * 3], [[3.0] * 3]])
    row = table1._table(["g"], np.array([[-2.0] * 3]), {"scored": draws, "plain": draws + 1}).iloc[2]
    # deviation sqrt(2), over sqrt(2)
    assert row.tolist() == ["g", 5, -2.0, 2.0, pytest.approx(1.0), 3.0, pytest.approx(1.0), 100.0, 150.0]
