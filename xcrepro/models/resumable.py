"""Training that may be killed: what is done is kept in a folder, and the same call goes on after it, to the same bits."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

import numpy as np

from xcrepro.core import paths
from xcrepro.core.data.sources import npz_arrays
from xcrepro.core.errors import ArgumentError, DataError, system_fault
from xcrepro.core.version import __version__
from xcrepro.models.base import Model

_Part = TypeVar("_Part")


class Resumable(Model):
    """A model whose training keeps what it has done."""

    _checkpoint: str | os.PathLike | None = None  # while fit runs: what it was given

    def fit(self, X, Y, *, checkpoint: str | os.PathLike | None = None) -> Self:
        """Learn from points and their labels; what takes longer says on stderr how far it is and when it may end.

        Parameters
        ----------
        X, Y
            As for :meth:`xcrepro.models.Model.fit`.
        checkpoint : path_like, optional
            A folder for what is done: each finished label tree, or a network after an epoch, every 20 seconds
            at most. A training that was killed goes on from there when it is called with the same folder, to the same bits. It
            may be removed once ``fit`` has come back. Where its disk is full, that is said and training goes on.

        Raises
        ------
        ArgumentError
            As :meth:`xcrepro.models.Model.fit`; where the folder is of another training: other parameters, data or version.
        DataError
            Where a file in the folder cannot be read.
        """
        self._checkpoint = checkpoint
        try:
            return super().fit(X, Y)
        finally:
            del self._checkpoint


class Checkpoint:
    """The parts of one training that are done, in a folder, one file each, known by the model and its ``data``; or none."""

    def __init__(self, model: Resumable, data: tuple[np.ndarray, ...]) -> None:
        self.who = type(model).__name__
        self.folder = None if model._checkpoint is None else Path(model._checkpoint)
        if self.folder is not None:
            self.key = _digest([self.who, __version__, model.get_params()], data)

    def read(self, name: str, unpacked: Callable[[dict[str, np.ndarray]], _Part]) -> _Part | None:
        """What ``unpacked`` makes of a part, None where there is none."""
        if self.folder is None or not (path := self.folder / f"{name}.npz").is_file():
            return None
        try:
            found = npz_arrays(path)
            if str(found.pop("key")) == self.key:
                return unpacked(found)
        except (DataError, OSError, ValueError, KeyError, TypeError) as error:
            do, wanted = "Remove it", f"what {self.who}.fit wrote"
            raise DataError(path, f"no whole part of a training ({error})", wanted, do=do) from error
        rule = "must be a new folder, or one of a training with the same parameters, data and version"
        raise ArgumentError("checkpoint", rule, f"{path.name} of another training in {self.folder}", "choose another")

    def write(self, name: str, arrays: Callable[[], dict[str, np.ndarray]]) -> None:
        """Keep a part, whole or not at all; a full disk is said and no error."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with paths.atomic_path(self.folder / f"{name}.npz") as part, part.open("wb") as file:
                np.savez(file, key=np.array(self.key), **arrays())  # type: ignore[arg-type]
        except OSError as error:
            print(f"{self.who}: {name} is not kept: {system_fault(error)}", file=sys.stderr, flush=True)


def _digest(about: list, arrays: tuple[np.ndarray, ...]) -> str:
    text = json.dumps(about, default=lambda value: value.item())
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
