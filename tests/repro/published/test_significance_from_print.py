"""Leads from two printed numbers: the bounds hold for any predictions, and are attained."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import xcrepro as xc
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.published import significance_from_print


def flips(difference: np.ndarray) -> float:
    """sum D / sqrt(sum D^2), the statistic of the sign-flip test."""
    return difference.sum() / math.sqrt((difference**2).sum()) if difference.any() else 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 5]))
def test_no_predictions_leave_the_bounds_of_P(seed, k):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(50, 2000))
    a, b = (rng.binomial(k, rng.uniform(0.05, 0.95, n) ** rng.uniform(0.3, 3)) / k for _ in range(2))
    if a.mean() < b.mean():
        a, b = b, a
    found = significance_from_print.lead(f"{a.mean():.12f}", f"{b.mean():.12f}", n, k=k, one=1.0)
    z = flips(a - b)
    assert found.p_least <= 1.0
    assert ((a - b) ** 2).mean() <= found.bound + 1e-9
    if k > 1:
        assert math.erfc(z / math.sqrt(2)) <= found.p_most * (1 + 1e-6) + 1e-12
    else:
        p = mcnemar(int((a > b).sum()), int((b > a).sum()))
        assert found.p_least * (1 - 1e-9) <= p <= found.p_most * (1 + 1e-9)


def mcnemar(more: int, less: int) -> float:
    """Over all signs of the points where just one is right."""
    return stats.binomtest(more, more + less).pvalue if more + less else 1.0


@pytest.mark.parametrize("n", [12, 60])
def test_certain_at_first_place_is_certain_of_all_predictions_with_these_numbers(n):
    """All that two models can have been right about, for every two numbers of right points: the exact p of each."""
    for a in range(0, n + 1, 1 + n // 30):
        for b in range(0, a, 1 + n // 30):
            every = [(a - both, b - both) for both in range(max(0, a + b - n), b + 1)]
            p = np.array([mcnemar(*apart) for apart in every])
            found = significance_from_print.lead(f"{a / n:.12f}", f"{b / n:.12f}", n, one=1.0)
            assert found.p_most == pytest.approx(p.max(), rel=1e-9)
            assert found.p_least == pytest.approx(p.min(), rel=1e-9)
            assert found.verdict == ("certain" if p.max() <= 0.05 else "no lead" if p.min() > 0.05 else "open")
            shares = np.array([sum(apart) / n for apart in every])
            assert ((shares <= found.agree_for + 1e-9) == (p <= 0.05)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 5]))
def test_no_predictions_leave_the_bounds_of_PSP(seed, k):
    rng = np.random.default_rng(seed)
    n, m, n_train = 200, 12, 5000
    Y = rng.random((n, m)) < 0.25
    Y[np.arange(n), rng.integers(0, m, n)] = True
    weights = xc.propensity.inverse(rng.integers(0, 300, m), n_train, 0.55, 1.5)
    tops = [xc.TopK.from_scores(Y * rng.uniform(0, 1) + rng.random((n, m)), 5) for _ in range(2)]
    Yf = Y.astype(np.float32)
    P, PSP = ([f(Yf, top, [k], **more)[0] for top in tops]
              for f, more in ((xc.metrics.precision, {}), (xc.metrics.psp, {"inverse_propensity": weights})))  # fmt: skip
    sums = [(np.take_along_axis(Y * weights, top.ids[:, :k], axis=1)).sum(axis=1) for top in tops]
    best = -np.sort(-(Y * weights), axis=1)[:, :k].sum(axis=1)
    about = significance_from_print.Weights.of(n_train, 0.55, 1.5, k, zip(P, PSP, strict=True))
    assert about.low <= weights.min()
    assert weights.max() <= about.high
    assert about.mean_best <= best.mean() + 1e-9
    high = int(PSP[0] < PSP[1])
    found = significance_from_print.lead(f"{PSP[0]:.12f}", f"{PSP[1]:.12f}", n, "PSP", k, weights=about, one=1.0)
    assert math.erfc(flips(sums[high] - sums[1 - high]) / math.sqrt(2)) <= found.p_most * (1 + 1e-6) + 1e-12
    assert found.verdict != "no lead"


def test_rounding_may_have_made_the_lead():
    assert significance_from_print.lead("50.01", "50.00", n=10**9).verdict == "open"
    assert significance_from_print.lead("50.02", "50.00", n=10**9).verdict == "certain"
    assert significance_from_print.lead("50.00", "50.00", n=10**9).p_most == 1.0


@pytest.mark.parametrize(
    ("first", "second", "bound"),
    [("30.00", "20.00", 0.5001), ("80.00", "60.00", 0.6001), ("50.00", "50.00", 1.0), ("50.01", "49.98", 1.0)],
)
def test_the_bound_on_the_disagreement_holds_for_all_that_rounds_so(first, second, bound):
    """Two shares of 0.30 and 0.20 disagree on 0.50 of the points at most; as printed, 0.30005 and 0.20005 on 0.5001."""
    assert significance_from_print.lead(first, second, n=1000).bound == pytest.approx(bound, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "1.0", 10), "first must be a printed number"),
        (("101", "1.0", 10), "first must lie in 0 to 100"),
        (("1.0", "2.0", 0), "n must be"),
        (("1.0", "2.0", 10, "nDCG"), "metric must be"),
        (("1.0", "2.0", 10, "PSP"), "weights must be given for PSP"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        significance_from_print.lead(*arguments)


def test_the_command(capsys):
    assert main(["certainty", "54.23", "52.15", "--dataset", "Amazon-670K"]) == 0
    assert "certain: p" in capsys.readouterr().out
    assert main(["certainty", "52.15", "54.23", "51.90", "--dataset", "amazon-670k"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in out[:2]] == ["54.23 against 52.15", "52.15 against 51.90"]
    assert out[2].startswith("Certain after Holm's correction for 2 comparisons: 1; each alone")
    assert main(["certainty", "54.23", "-n", "10"]) == 2
    assert "two numbers" in capsys.readouterr().err
    assert main(["certainty", "0.6478", "0.6460", "-n", "2515", "--fractions"]) == 0
    assert "no lead" in capsys.readouterr().out
    assert main(["certainty", "34.16", "30.77", "--dataset", "amazon-670k", "--metric", "PSP"]) == 0
    assert "certain" in capsys.readouterr().out
    assert main(["certainty", "34.16", "30.77", "-n", "100", "--metric", "PSP"]) == 2
    assert "--dataset" in capsys.readouterr().err
    assert main(["certainty", "34.16", "30.77"]) == 2


def test_a_lead_is_held_to_both_sides():
    """The mean squared difference up to which z reaches the two-sided quantile of alpha."""
    found = significance_from_print.lead("54.23", "52.15", 1000, k=3)
    least = (54.225 - 52.155) / 100
    assert found.agree_for == pytest.approx(1000 * (least / stats.norm.ppf(0.975)) ** 2)


def test_several_numbers_in_order_are_corrected_together():
    found = significance_from_print.in_order(["52.15", "54.23", "51.90"], 153025)
    assert [(lead.first.printed, lead.second.printed, lead.verdict, f"{p:.2g}") for lead, p in found] == [
        ("54.23", "52.15", "certain", "1.2e-16"),
        ("52.15", "51.90", "open", "0.34"),
    ]
