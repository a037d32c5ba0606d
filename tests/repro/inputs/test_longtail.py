"""Power laws: one that is planted is found and passes, counts that follow none do not, and the fit is the likelihood's best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from tests.refused import refused
from xcrepro.repro.inputs import longtail
from xcrepro.repro.inputs.longtail import power_law


def drawn(exponent, n_labels, n_points, least=1, seed=3):
    sizes = np.arange(least, n_points + 1)
    return np.random.default_rng(seed).choice(sizes, n_labels, p=sizes**-exponent / (sizes**-exponent).sum())


@pytest.mark.parametrize(("exponent", "least"), [(2.0, 1), (1.4, 1), (2.5, 20)])
def test_a_planted_law_is_found_and_passes(exponent, least):
    found = power_law(drawn(exponent, 3000, 5000, least), 5000, draws=100)
    assert found.exponent == pytest.approx(exponent, abs=0.1)
    assert found.p > 0.05


def test_what_is_no_law_is_told():
    rng = np.random.default_rng(0)
    for counts in (rng.poisson(20, 500) + 1, 10 + rng.integers(0, 300, 500)):
        found = power_law(counts, 5000, draws=100)
        assert found.p == 1 / 101
        assert found.distance > 0.1


def test_the_exponent_is_the_most_likely():
    counts = drawn(1.8, 400, 1000, 2)
    sizes = np.arange(counts.min(), 1001.0)
    best = optimize.minimize_scalar(
        lambda a: a * np.log(counts).sum() + counts.size * np.log((sizes**-a).sum()), bounds=(0.5, 8), method="bounded"
    )
    found = power_law(np.r_[counts, 0, 0], 1000, draws=5)
    assert found.exponent == pytest.approx(best.x, abs=1e-3)
    share = sizes**-best.x / (sizes**-best.x).sum()
    far = max(abs((counts <= n).mean() - share[sizes <= n].sum()) for n in np.unique(counts))
    assert found.distance == pytest.approx(far, abs=1e-3)


def test_counts_without_a_law_are_refused():
    for counts, n_points in (([3, 3, 0], 10), ([0, 0], 10), ([1, 20], 10)):
        with refused("counts"):
            power_law(counts, n_points)


def test_counts_are_drawn_without_points():
    tail = longtail.drawn("amazon-670k")
    assert (tail.name, tail.counts.min()) == ("Amazon-670K (synthetic)", 1)
