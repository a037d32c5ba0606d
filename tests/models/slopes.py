"""Gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest


def gathered(step: Callable, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ``step(update)`` hands to ``update(name, rows, gradient)``, added up."""
    got = {name: np.zeros_like(array) for name, array in weights.items() if array.dtype == np.float32}

    def update(name, rows, gradient):
        got[name][rows] += gradient

    step(update)
    return got


def follow_the_slope(
    gradients: Mapping[str, np.ndarray], loss: Callable, weights: Mapping[str, np.ndarray], step: float, **tolerance
) -> None:
    """Every number of the gradients is the difference of ``loss`` between nets that differ in that one weight."""
    for name, gradient in gradients.items():
        for place in np.ndindex(gradient.shape):
            ends = []
            for move in (step, -step):
                moved = {one: weights[one].astype(float) for one in gradients}
                moved[name][place] += move
                ends.append(loss(moved))
            assert gradient[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), **tolerance), (name, place)
