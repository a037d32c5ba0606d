"""The frontier with our models: its sources, its ends, the floor of equation 14, and the figure."""

from __future__ import annotations

import math

import numpy as np
import pytest

import xcrepro as xc
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.papers.coverage import frontier_rerun as item
from xcrepro.papers.coverage._common import scores
from xcrepro.repro import figures


@pytest.fixture(scope="module")
def sources(twin, run):
    return item.sources(twin, {"label tree": [run]})


def test_sources_are_the_models_the_calibrated_and_for_a_twin_the_true_probabilities(twin, run, sources):
    assert list(sources) == ["label tree", "label tree, isotonic", "true probabilities"]
    assert sources["true probabilities"] is twin.test.observed_marginals
    before, after = sources["label tree"], sources["label tree, isotonic"]
    assert before.nnz == after.nnz
    assert abs(before - after).max() > 0
    # A rising map never turns a row round.
    before, after = before.toarray()[0], after.toarray()[0]
    order = np.argsort(-before, kind="stable")
    assert (np.diff(after[order[before[order] > 0]]) <= 1e-7).all()
    real = Dataset("own", twin.train, twin.test, A=0.55, B=1.5)
    both = item.sources(real, {"mine": [run], "label tree": [run]})
    assert list(both) == ["mine", "mine, isotonic", "label tree", "label tree, isotonic"]


def test_the_path_ends_in_the_plain_top_k_and_expects_what_certain_probabilities_give(twin):
    found = item.compute(twin, {"truth": twin.test.Y}, [0.0])
    assert found["beta"].tolist() == [0.0, math.inf] * 3
    assert np.allclose(found[["P", "Cov"]], found[["expected P", "expected Cov"]])
    plain = scores(twin, xc.decide.top_k(twin.test.Y, 3), 3)
    assert found["Cov"].iloc[3] == pytest.approx(plain["Cov"])


def test_the_rules_without_a_beta(twin, run):
    found = item.compute_others(twin, run).set_index(["rule", "k"])
    top = xc.decide.weighted(run.probabilities, 3, item.weights(twin))
    assert found.loc[("PS-PLT", 3), "P"] == pytest.approx(scores(twin, top, 3)["P"])
    assert len(found) == 9


def test_the_constrained_selection_keeps_its_floor_in_expectation(twin):
    # With the truth itself for probabilities, expectation and outcome are one.
    found = item.compute_constrained(twin, {"truth": twin.test.Y}, 0.9)
    assert (found["P kept"] >= 90 - 1e-9).all()
    assert (found["Cov gain"] >= 0).all()
    strict, loose = (
        item.compute_constrained(twin, {"true": twin.test.observed_marginals}, share) for share in (0.99, 0.8)
    )
    assert (strict["beta"] > loose["beta"]).all()
    assert (strict["P kept"] > loose["P kept"]).all()


def test_the_figure_draws_the_table_and_no_other(twin, run, sources):
    tables = item.compute(twin, sources, [0.0, 1.0]), item.compute_others(twin, run)
    table = item.compute_drawn(*tables, item.compute_constrained(twin, sources, 0.95))
    fig = item.plot(table, 0.95)
    figures.held(fig, table)
    with pytest.raises(figures.DrawingFault):
        figures.held(fig, table[table["rule"] != item.FLOOR])


def test_two_models_and_no_beta_can_be_drawn(twin, run):
    both = item.sources(twin, {"mine": [run], "label tree": [run]})
    path = item.compute(twin, both, [])
    assert path["beta"].unique().tolist() == [math.inf]
    table = item.compute_drawn(path, item.compute_others(twin, run), item.compute_constrained(twin, both, 1.0))
    figures.held(item.plot(table, 1.0), table)


def test_findings_say_what_equation_14_buys_only_where_it_is_clear(twin):
    truth = {"truth": twin.test.Y}
    said = item.findings(twin, truth, [0.0], 0.9)
    assert said[0].startswith("truth: P@5 of the plain top 5 is ")
    assert said[1].startswith("truth, equation 14 with 90 % of that kept: Cov@5 ")
    assert said[2].endswith("is clearly above that of the plain top 5 (Holm) for: none.")
    # All of the precision kept, by the truth itself: nothing changes.
    nothing = item.findings(twin, truth, [], 1.0)
    assert "P@5 does not change clearly (+0.0" in nothing[1]
    assert len(nothing) == 2


@pytest.mark.parametrize("share", [0.0, -0.5, 1.01, float("nan")])
def test_a_share_out_of_range_is_refused_before_anything_runs(share):
    good = {"betas": [0.0], "share": 0.95}
    item.check_parameters(good)
    item.check_parameters({"betas": [], "share": 1.0})
    with pytest.raises(ArgumentError, match="parameter share must be"):
        item.check_parameters(good | {"share": share})
