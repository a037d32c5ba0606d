"""Random numbers by counting: against another SplitMix64, and against the laws that they are to have."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from xcrepro.core import arithmetic
from xcrepro.core.kernels import random

MASK = 2**64 - 1


def splitmix(state: int) -> int:
    """In Python's whole numbers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def key_of(seed: int, stream: int, item: int) -> int:
    step = 0x9E3779B97F4A7C15
    found = splitmix((seed + step) & MASK)
    found = splitmix((found + stream * step) & MASK)
    return splitmix((found + item * step) & MASK)


@pytest.mark.parametrize("place", [(0, 0, 0), (1, 2, 3), (2**62, 7, 10**9)])
def test_keys_and_uniform_numbers_by_hand(place):
    key = np.uint64(random.key(*place))  # what comes out of a kernel is Python's
    assert int(key) == key_of(*place)
    for count in (0, 1, 1000):
        bits = splitmix((key_of(*place) + (count + 1) * 0x9E3779B97F4A7C15) & MASK)
        assert random.uniform(key, count) == (bits >> 11) / 2**53


def test_the_first_numbers_of_splitmix():
    """Those of the seed 1234567 that Vigna's program prints."""
    numbers = np.array([1234567 + i * 0x9E3779B97F4A7C15 & MASK for i in range(3)], np.uint64)
    out = np.empty_like(numbers)
    random.mixes(numbers, out)
    assert out.tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_normal_numbers_have_their_law():
    found = arithmetic.normals(0, 0, 200_000)
    assert abs(found.mean()) < 4 / math.sqrt(found.size)
    assert abs(found.var() - 1) < 4 * math.sqrt(2 / found.size)
    assert abs((found**3).mean()) < 4 * math.sqrt(15 / found.size)
    assert abs((found**4).mean() - 3) < 4 * math.sqrt(96 / found.size)
    assert stats.kstest(found, "norm").pvalue > 0.001
    # Two of a pair come of one point in the circle, and are independent all the same.
    assert abs((found[::2] * found[1::2]).mean()) < 4 / math.sqrt(found.size / 2)


def test_the_first_normal_numbers_do_not_depend_on_how_many_follow():
    whole = arithmetic.normals(3, 5, 101)
    for n in (1, 2, 7, 100):
        np.testing.assert_array_equal(arithmetic.normals(3, 5, n), whole[:n])
    np.testing.assert_array_equal(arithmetic.normals(3, 5, 10, 10).ravel(), whole[:100])
    assert arithmetic.normals(3, 5, 0).shape == (0,)


@pytest.mark.parametrize("mean", [0.05, 1.0, 30.0, 499.9, 500.1, 2000.0])
def test_poisson_numbers_have_their_law(mean):
    found = arithmetic.poissons(0, np.full(20_000, mean))
    assert abs(found.mean() - mean) < 4 * math.sqrt(mean / found.size)
    values, counts = np.unique(found, return_counts=True)
    # Chi-squared over cells of five numbers expected or more.
    edges = stats.poisson.ppf(np.linspace(0, 1, 12)[1:-1], mean)
    edges = np.unique(edges)
    cells = np.bincount(np.searchsorted(edges, values), counts, edges.size + 1)
    chances = np.diff(np.concatenate([[0], stats.poisson.cdf(edges, mean), [1]]))
    kept = chances * found.size > 5
    assert stats.chisquare(cells[kept], chances[kept] / chances[kept].sum() * cells[kept].sum()).pvalue > 0.001


@pytest.mark.parametrize(("a", "b"), [(0.3, 1.2), (0.6, 0.4), (1.2, 0.8), (1.0, 1.0)])
def test_beta_numbers_have_their_law(a, b):
    found = arithmetic.betas(a, b, (100, 200), np.random.default_rng(0))
    assert found.shape == (100, 200)
    assert stats.kstest(found.ravel(), stats.beta(a, b).cdf).pvalue > 0.001
