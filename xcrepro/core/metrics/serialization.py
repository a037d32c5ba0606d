"""A State's file: arrays behind a header that holds the SHA-256 of all the rest, so that no changed bit goes unseen."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from xcrepro.core.data.sources import in_known_types, npz_arrays
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.paths import atomic_path
from xcrepro.core.version import __version__

FORMAT = "xcrepro state 6"


def write(path: str | os.PathLike, header: dict[str, object], arrays: dict[str, np.ndarray]) -> None:
    """Write header and arrays, whole or not at all; equal content is equal bytes."""
    if not os.fspath(path).endswith(".npz"):
        raise ArgumentError("path", "must end in .npz", repr(os.fspath(path)))
    with atomic_path(path) as part:
        np.savez_compressed(part, **sealed(header, arrays))  # type: ignore[arg-type]


def read(path: str | os.PathLike) -> tuple[dict, dict[str, np.ndarray]]:
    """Header and arrays as they were written, by this version; DataError where they are not."""
    arrays = npz_arrays(path)
    try:
        header = json.loads(arrays["header"].tobytes())
        kept = header["format"], header["version"]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(path, f"no header of a state ({error!r})", "what State.save writes") from error
    if kept != (FORMAT, __version__):
        expected = f"{FORMAT} of version {__version__}"
        raise DataError(path, f"{kept[0]} of version {kept[1]}", expected, do="Make it again with this version")
    # Before anything is made of its numbers: they say how much memory that takes.
    if header.get("sha256") != json.loads(sealed(header, arrays)["header"].tobytes())["sha256"]:
        raise DataError(path, "another content than was saved", "what State.save wrote", do="Make it again")
    return header, arrays


def sealed(header: dict[str, object], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a file behind its header, which holds the SHA-256 of all the rest of it."""
    found = hashlib.sha256()
    header = {name: value for name, value in header.items() if name != "sha256"}
    found.update(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays.keys() - {"header"}):
        array = in_known_types(np.asarray(arrays[name]))
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.nbytes else b"")
    text = json.dumps(header | {"sha256": found.hexdigest()})
    return {**arrays, "header": np.frombuffer(text.encode(), np.uint8)}


def digest(array: np.ndarray | None) -> str | None:
    return None if array is None else hashlib.sha256(array.tobytes()).hexdigest()[:16]


def of_folds(folds: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a State's folds, by fold and name."""
    return {f"{name}.{part}": array for name, fold in folds.items() for part, array in fold.arrays().items()}


def check_samples(header: dict, arrays: dict[str, np.ndarray]) -> None:
    """ValueError unless the sums of so many samples are there: they are made before they are read."""
    if (
        header["n_resamples"]
        and header["n_labels"] is not None
        and len(arrays["drawn.n_rows"]) != header["n_resamples"]
    ):
        raise ValueError(f"sums of {len(arrays['drawn.n_rows'])} samples, {header['n_resamples']} in its header")


def restored(folds_of: Callable[[int], dict[str, Any]], header: dict, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The folds whose arrays these are, from empty ones of so many labels; ValueError where they cannot be."""
    folds = folds_of(header["n_labels"])
    for name, fold in folds.items():
        fold.restore({key.partition(".")[2]: array for key, array in arrays.items() if key.partition(".")[0] == name})
        if name in ("rows", "labels") and fold.n_rows != header["n_rows"]:
            raise ValueError(f"{name} of {fold.n_rows} rows, {header['n_rows']} in its header")
    return folds


@contextlib.contextmanager
def no_state(path: str | os.PathLike) -> Iterator[None]:
    """DataError for whatever goes wrong when a State is made of a file's content."""
    try:
        yield
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        found = f"a state that cannot be ({error})"
        raise DataError(path, found, "what State.save writes", do="Make it again") from error
