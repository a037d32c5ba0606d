"""Adam: the kernels against the printed algorithm, the class against the kernels."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.kernels import adam as kernel
from xcrepro.models.adam import Adam


def test_adam_is_the_printed_algorithm():
    rng = np.random.default_rng(2)
    weights = rng.normal(size=7).astype(np.float32)
    first, second = np.zeros(7, np.float32), np.zeros(7, np.float32)
    want, m, v = weights.astype(float), np.zeros(7), np.zeros(7)
    f = np.float32
    for t in range(1, 6):
        gradient = rng.normal(size=7).astype(np.float32)
        gradient[0] = 0
        scales = f(1 / (1 - 0.9**t)), f(1 / (1 - 0.999**t))
        kernel.flat(weights, gradient, first, second, f(0.1), f(0.9), f(0.999), *scales, f(1e-8))
        m = 0.9 * m + 0.1 * gradient.astype(float)
        v = 0.999 * v + 0.001 * gradient.astype(float) ** 2
        want -= 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(weights, want, rtol=1e-5)
    assert first[0] == second[0] == 0


def test_moments_of_what_no_batch_touches_end_at_zero():
    weights, gradient = np.ones(1, np.float32), np.ones(1, np.float32)
    first, second = np.zeros(1, np.float32), np.zeros(1, np.float32)
    f = np.float32
    for _ in range(1000):
        kernel.flat(weights, gradient, first, second, f(0.1), f(0.9), f(0.999), f(1), f(1), f(1e-8))
        gradient[:] = 0
    assert first[0] == 0


def test_adam_is_the_printed_algorithm_on_the_rows_it_is_given():
    rng = np.random.default_rng(2)
    f = np.float32
    weights = rng.normal(size=(4, 3)).astype(f)
    first, second = np.zeros((2, 4, 3), f)
    rows = np.array([3, 1])
    want, m, v = weights[rows].astype(float), 0.0, 0.0
    others = weights[[0, 2]].copy()
    for t in range(1, 6):
        gradient = rng.normal(size=(2, 3)).astype(f)
        gradient[0, 0] = 0
        scales = f(1 / (1 - 0.9**t)), f(1 / (1 - 0.999**t))
        kernel.rows(weights, rows, gradient, first, second, f(0.1), f(0.9), f(0.999), *scales, f(1e-8))
        m = 0.9 * m + 0.1 * gradient.astype(float)
        v = 0.999 * v + 0.001 * gradient.astype(float) ** 2
        want -= 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(weights[rows], want, rtol=1e-5)
    np.testing.assert_array_equal(weights[[0, 2]], others)
    assert not first[[0, 2]].any()
    assert not second[[0, 2]].any()


@pytest.mark.parametrize("shape", [(5, 3), (5,)])
def test_rows_by_ids_and_by_a_slice_are_moved_alike(shape):
    """To the bit, where nothing of the other rows was moved before."""
    rng = np.random.default_rng(4)
    start = {"a": rng.normal(size=shape).astype(np.float32)}
    by_ids, by_slice = {"a": start["a"].copy()}, {"a": start["a"].copy()}
    one, other = Adam(by_ids), Adam(by_slice)
    for _ in range(3):
        gradient = rng.normal(size=(2, *shape[1:])).astype(np.float32)
        for optimizer, rows in ((one, np.array([1, 2])), (other, slice(1, 3))):
            optimizer.start_step(0.1)
            optimizer.update("a", rows, gradient)
    np.testing.assert_array_equal(one.state["left"], [0.9 * 0.9 * 0.9, 0.999 * 0.999 * 0.999])
    np.testing.assert_array_equal(by_ids["a"], by_slice["a"])
    np.testing.assert_array_equal(by_ids["a"][[0, 3, 4]], start["a"][[0, 3, 4]])
    assert (by_ids["a"][1:3] != start["a"][1:3]).all()
