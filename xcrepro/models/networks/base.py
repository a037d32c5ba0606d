"""What the models that learn by small steps have in common: parameters, the run of the steps, the labels' words."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.truth import Truth
from xcrepro.models.base import check_features
from xcrepro.models.progress import Progress, warn
from xcrepro.models.resumable import Checkpoint, Resumable

KEEP = 20.0
"""Seconds at least from one kept state of a training to the next."""
_PART = "network"


@dataclass(eq=False, kw_only=True)
class Network(Resumable):
    """A model that learns by steps over shuffled examples, at a learning rate that falls linearly to 0."""

    dim: int = 64
    epochs: int = 10
    batch: int = 64
    learning_rate: float = 0.006
    seed: int = 0

    _LEAST: ClassVar = {"dim": 1, "epochs": 1, "batch": 1, "seed": 0}  # of the parameters that are whole numbers
    _SHARES: ClassVar[tuple[str, ...]] = ("dropout",)  # those in [0, 1)

    def _check_parameters(self) -> None:
        for name, least in self._LEAST.items():
            whole_number(name, getattr(self, name), least)
        for name in self._SHARES:
            real_number(name, getattr(self, name), at_least=0, below=1)
        # A step moves a weight by a few learning rates at most, so below 1 nothing can overflow.
        real_number("learning_rate", self.learning_rate, above=0, at_most=1)

    def _dropped(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        """What each value of the rows' hidden layer is multiplied with: 0, or so much more that the mean stays."""
        return (rng.random((rows, self.dim), np.float32) >= self.dropout) * np.float32(1 / (1 - self.dropout))


class ReadsWords(Network):
    """A network that also learns from words of the labels."""

    _label_features = None  # while fit runs: what it was given

    def fit(self, X, Y, label_features=None, *, checkpoint: str | os.PathLike | None = None) -> Self:
        """Learn from points, their labels, and the labels' words if there are any.

        Parameters
        ----------
        X, Y, checkpoint
            As for :meth:`xcrepro.models.PLT.fit`.
        label_features : sparse matrix or array_like, shape (L, D), optional
            Words of the labels, over the features of X, finite. The class says what it does with them, and with labels that
            have none.

        Raises
        ------
        ArgumentError, DataError
            As there, and where label_features are not those of the labels of Y over the features of X.
        """
        if label_features is not None:
            try:
                label_features = check_features(label_features)
            except ArgumentError as error:
                raise ArgumentError("label_features", error.rule, error.got, error.do) from None
        self._label_features = label_features
        try:
            return super().fit(X, Y, checkpoint=checkpoint)
        finally:
            self._label_features = None

    def _given_words(self, truth: Truth, n_features: int) -> sparse.csr_matrix | None:
        """The labels' words, where there are any, of the right shape."""
        words = self._label_features
        if words is not None and words.shape != (truth.n_labels, n_features):
            rule = f"must have a row for each of the {truth.n_labels} labels and the {n_features} columns of X"
            raise ArgumentError("label_features", rule, f"shape {words.shape}")
        return words


class Steps:
    """The steps of a network's training: which examples, at what rate, how far it is, and where a killed training goes on.

    Parameters
    ----------
    model : Network
        In its ``fit``.
    examples : int
        Rows or pairs that an epoch goes through.
    data : sequence of ndarray or csr_matrix
        All that decides what the training comes to, besides the model's parameters.
    state : dict of dict of ndarray
        All that steps change, by name. Where an earlier training left its state, the dicts are filled with that.
    work : float
        Multiplications an example takes, about, if the training may take minutes.
    batch : int, optional
        Examples a step, the model's by default.
    """

    def __init__(self, model: Network, examples: int, data, state: dict, work: float = 0.0, batch: int | None = None):
        self.rng = np.random.default_rng(model.seed)
        self._model, self._examples, self._state = model, examples, state
        self._batch, self._epoch = batch or model.batch, 0
        parts = [part for one in data for part in _arrays(one)]
        self._checkpoint = Checkpoint(model, (*parts, np.array(self._batch)))
        self._checkpoint.read(_PART, self._restore)
        left = examples * (model.epochs - self._epoch)
        what = f"{type(model).__name__}, training"
        warn(what, work * left)
        self._progress, self._kept = Progress(left, what), time.monotonic()

    def epochs(self) -> Iterator[int]:
        """The numbers of the epochs that are left; after each the state may be kept."""
        for epoch in range(self._epoch, self._model.epochs):
            self._epoch = epoch
            yield epoch
            if time.monotonic() - self._kept >= KEEP and epoch + 1 < self._model.epochs:
                self._epoch = epoch + 1
                self._checkpoint.write(_PART, self._arrays)
                self._kept = time.monotonic()

    def batches(self) -> Iterator[tuple[np.ndarray, float]]:
        """The batches of one epoch, of all examples in random order: their numbers, and the learning rate."""
        per_epoch = -(-self._examples // self._batch)
        step, steps = self._epoch * per_epoch, self._model.epochs * per_epoch
        order = self.rng.permutation(self._examples)
        for lo in range(0, self._examples, self._batch):
            rows = order[lo : lo + self._batch]
            yield rows, self._model.learning_rate * (1 - step / steps)
            self._progress.add(rows.size)
            step += 1

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {f"{part} {name}": array for part, of in self._state.items() for name, array in of.items()}
        rng = json.dumps(self.rng.bit_generator.state)
        return {"epoch": np.array(self._epoch), "rng": np.array(rng), **arrays}

    def _restore(self, arrays: dict[str, np.ndarray]) -> bool:
        self.rng.bit_generator.state = json.loads(str(arrays.pop("rng")))
        self._epoch = int(arrays.pop("epoch"))
        for part in self._state.values():
            part.clear()
        for name, array in arrays.items():
            part, _, own = name.partition(" ")
            self._state[part][own] = array
        return True


def _arrays(value) -> tuple[np.ndarray, ...]:
    return (value.indptr, value.indices, value.data, np.array(value.shape)) if sparse.issparse(value) else (value,)
