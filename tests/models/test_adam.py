"""Adam: the kernels against the printed algorithm, the class against the kernels."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.models.kernels import adam as kernel
from xcrepro.models.networks.adam import Adam


def printed(weights, gradients):
    """The weights after these steps, by the algorithm as Kingma and Ba print it."""
    m, v = np.zeros(weights.shape), np.zeros(weights.shape)
    for t, gradient in enumerate(gradients.astype(float), 1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        weights = weights - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return weights


def scalars(t):
    """What the kernels take of step t."""
    return (np.float32(value) for value in (0.1, 0.9, 0.999, 1 / (1 - 0.9**t), 1 / (1 - 0.999**t), 1e-8))


def test_adam_is_the_printed_algorithm_and_on_the_rows_it_is_given():
    rng = np.random.default_rng(2)
    start, gradients = rng.normal(size=(4, 3)).astype(np.float32), rng.normal(size=(5, 2, 3)).astype(np.float32)
    gradients[:, 0, 0] = 0
    for rows in (np.array([3, 1]), slice(0, 2)):
        weights, (first, second) = start.copy(), np.zeros((2, 4, 3), np.float32)
        for t, gradient in enumerate(gradients, 1):
            if isinstance(rows, slice):
                flat = (part.reshape(-1) for part in (weights[rows], gradient, first[rows], second[rows]))
                kernel.flat(*flat, *scalars(t))
            else:
                kernel.rows(weights, rows, gradient, first, second, *scalars(t))
        np.testing.assert_allclose(weights[rows], printed(start[rows].astype(float), gradients), rtol=1e-5)
        others = np.delete(np.arange(4), rows)
        np.testing.assert_array_equal(weights[others], start[others])
        assert not first[others].any()
        assert not second[others].any()
        assert first[rows][0, 0] == second[rows][0, 0] == 0


def test_moments_of_what_no_batch_touches_end_at_zero():
    weights, gradient, first, second = np.array([[1], [1], [0], [0]], np.float32)
    for _ in range(1000):
        kernel.flat(weights, gradient, first, second, *scalars(9))
        gradient[:] = 0
    assert first[0] == 0


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
