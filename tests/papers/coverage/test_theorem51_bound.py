"""Theorem 5.1 by enumeration: eq. 22 against all outcomes, dependence within a row, the bound, the rules' shares."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import xcrepro as xc
from xcrepro.errors import ArgumentError
from xcrepro.papers.coverage import theorem51_bound as theorem51

PROBABILITIES = hnp.arrays(float, (2, 3), elements=st.floats(0, 1, width=32))


@settings(max_examples=25, deadline=None)
@given(PROBABILITIES, st.integers(1, 2))
def test_equation_22_is_the_sum_over_all_outcomes(eta, k):
    chosen = theorem51.choices(2, 3, k)
    assert (
        len(chosen)
        == len({tuple(map(tuple, one)) for one in chosen})
        == len(list(itertools.combinations("abc", k))) ** 2
    )
    value = theorem51.of_choices(eta, chosen)
    for one, ours in zip(chosen, value, strict=True):
        assert ours == pytest.approx(theorem51.by_outcomes(eta, one), abs=1e-12)
    most, top = theorem51.best(eta, k)
    assert most == value.max() == pytest.approx(xc.decide.expected_coverage(eta, top, k)[0], abs=1e-12)


def test_labels_of_one_row_may_depend_on_each_other_rows_may_not():
    """Two rows, two labels, marginals 1/2 everywhere: the sum over outcomes of two joint laws."""
    chosen = np.array([[0], [0]])

    def coverage(outcomes):
        covered = [
            len({int(j) for i, row in enumerate(chosen) for j in row if np.array(y)[i, j]}) / 2 for y in outcomes
        ]
        return float(np.mean(covered))

    said = theorem51.of_choices(np.full((2, 2), 0.5), chosen[None])[0]
    within = [[[a, 1 - a], [b, 1 - b]] for a in (0, 1) for b in (0, 1)]  # a row has one label or the other
    across = [[[a, a], [a, a]] for a in (0, 1)]  # both rows have all or nothing
    assert coverage(within) == said == 0.375
    assert coverage(across) == 0.25


@settings(max_examples=25, deadline=None)
@given(PROBABILITIES, st.integers(1, 2))
def test_the_greedy_rule_keeps_half(eta, k):
    most, _ = theorem51.best(eta, k)
    kept = xc.decide.expected_coverage(eta, xc.decide.greedy_coverage(eta, k), k)[0]
    more = xc.decide.expected_coverage(eta, xc.decide.greedy_coverage(eta, k, passes=5), k)[0]
    assert theorem51.BOUND * most - 1e-12 <= kept <= more + 1e-12
    assert more <= most + 1e-12


@pytest.mark.parametrize("k", [1, 2])
def test_half_is_reached(k):
    eta = theorem51.tight(k)
    most, top = theorem51.best(eta, k)
    assert most == 1.0
    assert xc.decide.expected_coverage(eta, top, k)[0] == 1.0
    assert xc.decide.expected_coverage(eta, xc.decide.greedy_coverage(eta, k), k)[0] == 0.5


def test_tables_and_sentences():
    ratios = theorem51.compute_ratios(3, 3, [1], 5, seed=2)
    assert (ratios["kept"] <= 100 + 1e-9).all()
    table = theorem51.compute(ratios, [1]).set_index(["family", "rule"])
    part = ratios[(ratios["family"] == "even") & (ratios["rule"] == "top k")]["kept"]
    assert table.loc[("even", "top k"), "mean"] == pytest.approx(part.mean())
    assert table.loc[("even", "top k"), "least"] == part.min()
    eta = theorem51.FAMILIES["even"](np.random.default_rng([2, 1]), (3, 3))
    first = 100 * xc.decide.expected_coverage(eta, xc.decide.top_k(eta, 1), 1)[0] / theorem51.best(eta, 1)[0]
    assert part.iloc[0] == pytest.approx(first)
    curve = theorem51.compute_curve(ratios, steps=4)
    worst = curve[(curve["share"] == 0) & (curve["rule"] == "top k")]["kept"].item()
    assert worst == ratios[ratios["rule"] == "top k"]["kept"].min()
    assert len(theorem51.plot(curve).axes) == 1
    flat = table.reset_index()[["family", "k", "rule", "mean", "least", "best", "instances"]]
    said = theorem51.findings(flat, 2e-16)
    assert said[0].startswith("Eq. 22 and the sum over all outcomes agree within 1e-15")
    # f is no word to begin a sentence with.
    assert [one.partition(":")[0] for one in said[1:-1]] == [f'Rule "{rule}"' for rule in theorem51.RULES]
    assert said[-1].endswith("the bound of 50 % is kept everywhere and reached.")
    assert "broken here" in theorem51.findings(flat.assign(least=40.0), 0.0)[-1]


@pytest.mark.parametrize(
    ("name", "value"), [("ks", []), ("ks", [1, 1]), ("ks", [5]), ("points", 12), ("instances", 0), ("labels", 0)]
)
def test_parameters_are_refused_by_their_name(name, value):
    good = {"points": 4, "labels": 4, "ks": [1, 2], "instances": 10}
    theorem51.check_parameters(good)
    with pytest.raises(ArgumentError, match=r"parameter (ks|points|instances|labels) must"):
        theorem51.check_parameters(good | {name: value})
