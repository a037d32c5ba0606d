"""PfastreXML's parts: the node's gain over all rankings, the centres against a plain gradient, the second ranking by numpy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse

import xcrepro as xc
from xcrepro.errors import ArgumentError
from xcrepro.findings import Measured
from xcrepro.papers.jain16 import alg_pfastrexml as pfastre


@pytest.fixture(scope="module")
def node():
    rng = np.random.default_rng(3)
    return (rng.random((6, 4)) < 0.5).astype(float), rng.uniform(1, 3, 4)


def slow_gain(Y, w, side):
    """Eq. 4's PSnDCG@L with the best of all rankings for each side, found by trying them."""
    norm = sum(1 / math.log2(r + 1) for r in range(1, Y.shape[1] + 1))
    total = 0.0
    for of in (-1, 1):
        total += max(
            sum(
                Y[i, label] * w[label] / math.log2(rank + 2)
                for i in np.flatnonzero(side == of)
                for rank, label in enumerate(order)
            )
            for order in itertools.permutations(range(Y.shape[1]))
        )
    return total / norm / len(Y)


def test_a_partitions_gain_is_that_of_the_best_rankings(node):
    sides = list(pfastre.partitions(6))
    assert len({tuple(side) for side in sides}) == 32
    for side in sides[::5]:
        assert pfastre.node_gain(*node, side) == pytest.approx(slow_gain(*node, side), rel=1e-12)


def test_the_alternation_never_falls_and_the_model_ends_where_it_does(node):
    best = max(pfastre.node_gain(*node, side) for side in pfastre.partitions(6))
    ends = set()
    for side in pfastre.partitions(6):
        steps = pfastre.alternate(*node, side)
        assert all(after >= before - 1e-12 for before, after in itertools.pairwise(steps))
        ends.add(round(steps[-1], 9))
    assert max(ends) == round(best, 9)
    for seed in range(5):
        found = pfastre.node_found(*node, seed)
        if (found < 0).all():
            continue  # the alternation left one side empty: a leaf
        assert round(pfastre.node_gain(*node, found), 9) in ends


@pytest.mark.parametrize("gamma", [0.5, 2.0, 30.0])
def test_the_exact_centre_is_a_maximum(gamma):
    """Held to a general optimiser of eq. 6 as it is written down, from the same start."""
    rng = np.random.default_rng(7)
    X = pfastre.unit_rows(rng.random((12, 3)))
    Y = sparse.csr_matrix(rng.random((12, 4)) < np.array([0.5, 0.3, 0.2, 0.0]), dtype=float)
    p = np.array([0.9, 0.6, 0.3, 0.5])
    mu, mean = pfastre.exact_centres(X, Y, p, gamma, steps=500, tol=1e-10), pfastre.mean_centres(X, Y)
    for label in range(3):
        y = Y[:, [label]].toarray()

        def minus(m, y=y, label=label):
            v = np.exp(gamma / 2 * ((X.toarray() - m) ** 2).sum(axis=1))
            return -np.log((1 - y[:, 0]) + p[label] * (2 * y[:, 0] - 1) / (1 + v)).sum()

        found = optimize.minimize(minus, mean[label], tol=1e-12)
        ours = pfastre.likelihood(X, y, p[[label]], mu[[label]], gamma)[0]
        assert ours == pytest.approx(-minus(mu[label]), rel=1e-9)
        assert ours >= -minus(mean[label]) - 1e-12
        assert ours == pytest.approx(-found.fun, abs=1e-5)
    assert not mu[3].any()  # a label without a row keeps its empty centre
    if gamma == 0.5:
        assert np.abs(mu[:3] - mean[:3]).max() > 1e-3  # here eq. 7 is not eq. 6


def test_weights_of_own_rows():
    X = pfastre.unit_rows(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    Y = sparse.csr_matrix(np.array([[1, 0], [1, 0], [0, 1]], float))
    mu = pfastre.mean_centres(X, Y)
    # Both rows of label 0 are at squared distance 1/2 from their mean; label 1 has one row and does not count.
    assert pfastre.least_weight(X, Y, mu, 4.0) == pytest.approx(1 / (1 + math.exp(-1.0)))
    assert math.isnan(pfastre.least_weight(X, Y[:, 1:], mu[1:], 4.0))


@pytest.fixture(scope="module")
def small():
    ds = xc.twin("eurlex-4k", scale=0.02, seed=0)
    return ds, xc.models.PfastreXML(trees=3, A=ds.A, B=ds.B).fit(ds.train.X, ds.train.Y)


def test_other_centres_rank_as_equation_8_says(small):
    ds, model = small
    X, x = pfastre.unit_rows(ds.train.X), pfastre.unit_rows(ds.test.X)
    same = pfastre.with_centres(model, pfastre.mean_centres(X, ds.train.Y)).predict(ds.test.X, 5)
    np.testing.assert_array_equal(same.ids, model.predict(ds.test.X, 5).ids)
    rng = np.random.default_rng(1)
    mu = rng.random((ds.train.Y.shape[1], X.shape[1])) * 0.02
    top = pfastre.with_centres(model, mu).predict(ds.test.X, 3)
    trees = model.pfastxml().predict(ds.test.X, ds.train.Y.shape[1]).to_csr().toarray().astype(float)
    near = 1 / (1 + np.exp(15 * ((x.toarray()[:, None] - mu.astype(np.float32)) ** 2).sum(axis=2)))
    with np.errstate(divide="ignore"):
        scores = np.where(trees > 0, np.exp(0.8 * np.log(trees) + 0.2 * np.log(near)), 0)
    for i in range(len(x.toarray())):
        np.testing.assert_allclose(top.scores[i], np.sort(scores[i])[::-1][:3], rtol=1e-4)
    assert model.alpha == 0.8
    assert model.m_data_.size != mu.size, "the given model keeps its centres"


def test_tables_and_sentences(small):
    ds, model = small
    tops = pfastre.rankings(ds, model)
    assert list(tops) == [pfastre.TREES, pfastre.MEAN, pfastre.EXACT, pfastre.CENTRES]
    measured = pfastre.measure(ds, tops)
    table = pfastre.compute(ds, tops, measured).set_index("ranking")
    w = xc.propensity.inverse(ds.label_counts, ds.n_train, ds.A, ds.B)
    for name, top in tops.items():
        want = 100 * xc.metrics.psp(ds.test.Y, top, [1, 3, 5], inverse_propensity=w)
        np.testing.assert_allclose(table.loc[name, ["P1", "P3", "P5"]].astype(float), want)
    grid = pfastre.compute_grid(ds, model, [0.8, 1.0], [30.0])
    assert grid["P5"].tolist() == pytest.approx(table.loc[[pfastre.MEAN, pfastre.TREES], "P5"].tolist())
    assert len(pfastre.plot(grid).axes) == 3
    times = pfastre.compute_times(ds, model, repeats=1)
    assert (times["share"] >= 0).all()
    real = pfastre.findings_recorded({"bibtex": table.reset_index()})
    assert real[0].startswith("Real data first, points of PSP@1, 3, 5: bibtex: re-ranking ")
    assert pfastre.findings_recorded({}) == []


def test_sentences_say_what_is_measured():
    draws = {pfastre.TREES: [10.0, 10.2, 9.8], pfastre.MEAN: [20.0, 20.3, 19.7], pfastre.EXACT: [20.0, 20.3, 19.7]}
    one = Measured.of_runs(draws)
    grid = pd.DataFrame({"gamma": [30.0, 30.0], "alpha": [0.8, 1.0], "P1": 1.0, "P5": [20.0, 10.0], "C5": 5.0})
    said = pfastre.findings({1: one, 3: one, 5: one}, grid, 0.97)
    assert "+10.00 ± 0.06 (above), +10.00 ± 0.06 (above)" in said[0]
    assert "+0.00 ± 0.00 (not clear)" in said[1]
    assert said[1].endswith("In percent of itself: +0.00, +0.00, +0.00; the paper says that eq. 7 costs 0.2 %.")
    assert said[2].endswith("of 99 % of them it is 0.9700 or more.")
    assert said[3].startswith(
        "Of the grid α = 0.8, γ = 30 has the highest PSP@5, 20.00 %; the paper's α = 0.8, γ = 30 20.00 %"
    )
    assert len(pfastre.findings({1: one, 3: one, 5: one}, grid, math.nan)) == 3


@pytest.mark.parametrize(
    ("name", "value"), [("alphas", []), ("alphas", [0.5, 0.5]), ("alphas", [1.5]), ("gammas", [-1.0]), ("gammas", 3.0)]
)
def test_parameters_are_refused_by_their_name(name, value):
    good = {"dataset": "bibtex", "alphas": [0.8], "gammas": [30.0]}
    pfastre.check_parameters(good)
    with pytest.raises(ArgumentError, match=f"parameter {name} must"):
        pfastre.check_parameters(good | {name: value})
