"""schultheis24/equations: what its notebook defines, held to numbers known by hand."""

from __future__ import annotations

import numpy as np
import pytest

import xcrepro as xc
from tests import notebook
from xcrepro.core import paths


@pytest.fixture(scope="module")
def defined():
    return notebook.defined(paths.project_root() / "notebooks/schultheis24/equations.ipynb")


def test_a_step_by_hand(defined):
    half, first = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    a, b, gain = defined["step"](first, first * half, half, half)
    assert a.tolist() == pytest.approx([4 / 3, 4])
    assert b.tolist() == pytest.approx([-4 / 9, 0])
    assert gain.tolist() == pytest.approx([2 / 9, 2])
    assert defined["macro_f1"](first, first * half, half) == pytest.approx(1 / 3)
    assert defined["macro_f1"](half, half * half, half) == pytest.approx(1 / 2)


def test_the_slopes_are_those_of_differences(defined):
    n, t, m, h = np.array([0.3, 0.8]), np.array([0.2, 0.3]), np.array([0.4, 0.5]), 1e-6
    a, b, _ = defined["step"](n, t, m, m)
    for label in range(2):
        e = h * (np.arange(2) == label)
        assert defined["macro_f1"](n, t + e, m) - defined["macro_f1"](n, t - e, m) == pytest.approx(h * a[label])
        assert defined["macro_f1"](n + e, t, m) - defined["macro_f1"](n - e, t, m) == pytest.approx(h * b[label])


def test_what_a_mixture_reaches_in_a_population(defined):
    """Two kinds of points, each with one sure label: the fixed rule finds both; lots between the two find half of each."""
    share, eta = np.array([0.25, 0.75]), np.eye(2)
    assert defined["reached"](share, eta, np.eye(2)) == pytest.approx(1)
    assert defined["reached"](share, eta, np.full((2, 2), 0.5)) == pytest.approx((0.25 / 0.75 + 0.75 / 1.25) / 2)
    rule = xc.decide.Randomised(np.array([[[1.0, 0.0]] * 2, [[-1.0, 0.0]] * 2]), np.array([0.75, 0.25]), 1, 0.0)
    assert defined["chances"](rule, eta).tolist() == [[0.75, 0.25], [0.25, 0.75]]


def test_instances_hold_one_by_one(defined):
    for seed in range(100, 105):
        assert defined["linear_instance"](seed)["form"]
        assert defined["linear_instance"](seed)["coupled"]
        assert defined["recall_instance"](seed)
