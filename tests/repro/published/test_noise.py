"""The ECE of a calibrated model from printed means: shapes by their moments, draws against hits drawn one by one."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.core import metrics
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.published import noise

MOMENTS = [(0.8, 0.1), (0.3, 0.15), (0.95, 0.03)]


@pytest.mark.parametrize("shape", noise.SHAPES)
@pytest.mark.parametrize(("mean", "spread"), MOMENTS)
def test_a_shape_has_its_two_means(shape, mean, spread):
    share, variance = noise.shares(mean, spread, shape)
    assert share.sum() == pytest.approx(1.0)
    assert share.min() >= -1e-12
    assert (share * variance).sum() == pytest.approx(spread, rel=1e-3)
    edges = np.arange(11) / 10  # a bin's scores bound its mean, and so the mean of all
    assert (share * edges[:-1]).sum() - 1e-9 <= mean <= (share * edges[1:]).sum() + 1e-9


@pytest.mark.parametrize(("mean", "spread"), MOMENTS)
def test_three_levels_have_the_least_noise(mean, spread):
    least = np.sqrt(2 * spread / (np.pi * 5000))
    share, variance = noise.shares(mean, spread, "three levels")
    assert np.sqrt(2 / np.pi * share * variance / 5000).sum() == pytest.approx(least)
    drawn = noise.ece_if_calibrated(mean, spread, 5000, 4000, 1, "three levels")
    assert drawn.mean() == pytest.approx(least, rel=0.05)
    assert noise.ece_if_calibrated(mean, spread, 5000, 4000, 1, "beta").mean() > drawn.mean()


def test_a_draw_is_like_hits_drawn_one_by_one():
    rng, n = np.random.default_rng(0), 2000
    fast = noise.ece_if_calibrated(0.5, 1 / 6, n, 4000, 7)
    slow = []
    for _ in range(300):
        scores = rng.random(n)  # beta(1, 1)
        slow.append(metrics.ece(scores, rng.random(n) < scores))
    assert fast.mean() == pytest.approx(np.mean(slow), abs=4 * np.std(slow) / 300**0.5)
    assert fast.std() == pytest.approx(np.std(slow), rel=0.2)


def test_more_noise_than_the_mean_allows_is_the_most_that_it_allows():
    share, variance = noise.shares(0.5, 0.3)
    assert (share * variance).sum() == pytest.approx(0.999 * 0.25, rel=1e-3)
    with pytest.raises(ArgumentError, match="shape"):
        noise.shares(0.5, 0.1, "normal")
