"""Kingma and Ba's Adam, as the models that learn by gradients use it."""

from __future__ import annotations

import numpy as np

from xcrepro.models.kernels import adam as kernel

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam over named float32 arrays, changed in place; ``state`` is what earlier steps left: moments and powers of beta."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self._weights, self.state = weights, {"left": np.ones(2)}
        for name, array in weights.items():
            if array.dtype == np.float32:
                self.add(name)

    def add(self, name: str) -> None:
        """An array that begins to move now, from moments of 0."""
        for moment in ("first", "second"):
            self.state[f"{moment} {name}"] = np.zeros_like(self._weights[name])

    def start_step(self, rate: float) -> None:
        """The updates that follow are of one step, of this learning rate."""
        left = self.state["left"]
        left *= (_BETA1, _BETA2)
        scales = 1 / (1 - left)
        self._scalars = tuple(np.float32(value) for value in (rate, _BETA1, _BETA2, *scales, _EPSILON))

    def update(self, name: str, rows: slice | np.ndarray, gradient: np.ndarray) -> None:
        """Move these rows of an array, a slice or ids without repetition; weights and moments of the others wait."""
        weights = self._weights[name]
        first, second = (self.state[f"{moment} {name}"] for moment in ("first", "second"))
        if isinstance(rows, slice):
            arrays = weights[rows], gradient, first[rows], second[rows]
            kernel.flat(*(array.reshape(-1) for array in arrays), *self._scalars)
            return
        if weights.ndim == 1:
            weights, gradient, first, second = (each[:, None] for each in (weights, gradient, first, second))
        kernel.rows(weights, rows, gradient, first, second, *self._scalars)
