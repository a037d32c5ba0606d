"""Kingma and Ba's Adam, as the models that learn by gradients use it."""

from __future__ import annotations

import numpy as np

from xcrepro.kernels import adam as kernel

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam over named float32 arrays, which it changes in place.

    Parameters
    ----------
    weights : dict of str to ndarray
        Of one or two axes.

    Attributes
    ----------
    steps : int
        Steps begun.
    """

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self._weights = weights
        self._first = {name: np.zeros_like(array) for name, array in weights.items()}
        self._second = {name: np.zeros_like(array) for name, array in weights.items()}
        self.steps = 0
        self._left = 1.0, 1.0  # of the moments' start: the betas to the power of the steps

    def start_step(self, rate: float) -> None:
        """The updates that follow are of one step, of this learning rate."""
        self.steps += 1
        self._left = self._left[0] * _BETA1, self._left[1] * _BETA2
        scales = (1 / (1 - left) for left in self._left)
        self._scalars = tuple(np.float32(value) for value in (rate, _BETA1, _BETA2, *scales, _EPSILON))

    def update(self, name: str, rows: slice | np.ndarray, gradient: np.ndarray) -> None:
        """Move these rows of an array, a slice or ids without repetition; weights and moments of the others wait."""
        weights, first, second = (each[name] for each in (self._weights, self._first, self._second))
        if isinstance(rows, slice):
            arrays = weights[rows], gradient, first[rows], second[rows]
            kernel.flat(*(array.reshape(-1) for array in arrays), *self._scalars)
            return
        if weights.ndim == 1:
            weights, gradient, first, second = (each[:, None] for each in (weights, gradient, first, second))
        kernel.rows(weights, rows, gradient, first, second, *self._scalars)
