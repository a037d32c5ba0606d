"""A dense array of NumPy: ``.npy``, or ``.npz`` with one array of two dimensions; PECOS saves dense matrices so."""

from __future__ import annotations

import os

import numpy as np
from scipy import sparse

from xcrepro.core.data.sources import in_known_types, npz_arrays, require_file
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.matrices import MAX_COLUMNS, checked_matrix, positives
from xcrepro.core.paths import atomic_path
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth
from xcrepro.tools.formats.entries import of_file, ranked
from xcrepro.tools.formats.index import Index

_MOST_EMPTY = 2**20  # rows of no columns
_MOST = 2**30  # cells that are written; XC matrices are sparse for a reason


def sniff(name: str, head: bytes) -> bool:
    """Whether it begins as .npy files do."""
    return head.startswith(b"\x93NUMPY")


def sniff_npz(arrays: set[str]) -> bool:
    """Whether an .npz has one array."""
    return len(arrays) == 1 and not arrays & {"pair", "format"}


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Relevant where the value is above 0."""
    with of_file(path):
        return as_truth(_array(path)).to_csr()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Scores; minus infinity is not predicted."""
    array = _array(path)
    if array.dtype.kind in "iu" and index.n_labels not in (None, array.shape[1]) and _are_ids(array, index.n_labels):
        do = "If these are labels, best first: xc.TopK.from_ids(ids, n_labels=L).save('NAME.npz'), scores as a second argument"
        raise DataError(path, f"whole numbers, {array.shape[1]} in a row", f"scores for {index.n_labels} labels", do=do)
    with of_file(path):
        return ranked(array, k)


def _are_ids(array: np.ndarray, n_labels: int) -> bool:
    """Whether every row holds labels, each once, and perhaps -1 for places that are empty."""
    rows = np.sort(array, axis=1)
    alike = (rows[:, 1:] == rows[:, :-1]) & (rows[:, 1:] >= 0)
    return bool(rows.size and rows.min() >= -1 and rows.max() < n_labels and not alike.any())


def read_features(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Features; a 0 is not stored."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        array = _array(path).astype(np.float32)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise DataError(path, f"{array[row, column]} in row {row}, column {column}", "numbers that float32 can hold")
    return sparse.csr_matrix(array)


def _array(path: str | os.PathLike) -> np.ndarray:
    if os.fspath(path).endswith(".npz"):
        arrays = npz_arrays(path)
        if len(arrays) != 1:
            found = f"the arrays {', '.join(sorted(arrays))}" if arrays else "no array"
            raise DataError(path, found, "one dense array")
        array = next(iter(arrays.values()))
    else:
        require_file(path)
        try:
            array = in_known_types(np.load(path, allow_pickle=False))
        except Exception as error:  # NumPy, zipfile and pickle have many ways to say that a file is damaged
            do = "Make or fetch it again"
            raise DataError(path, f"no readable .npy file ({error})", "an array without objects", do=do) from None
    with of_file(path):
        array = checked_matrix("matrix", positives("matrix", array))
    if max(array.shape) > MAX_COLUMNS or (not array.size and len(array) > _MOST_EMPTY):  # it may claim any shape then
        expected = f"at most {MAX_COLUMNS:,} rows and columns, {_MOST_EMPTY:,} rows without any"
        raise DataError(path, f"an array of shape {array.shape}", expected)
    return array


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """Bytes, 0 and 1."""
    _save(path, as_truth(Y).to_csr().astype(np.uint8), 0)


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """float32 scores, minus infinity where nothing is predicted."""
    _save(path, top.to_csr(), -np.inf)


def write_features(path: str | os.PathLike, X, index: Index) -> None:
    """float32."""
    _save(path, sparse.csr_matrix(X).astype(np.float32), 0)


def _save(path: str | os.PathLike, matrix: sparse.csr_matrix, absent: float) -> None:
    if not os.fspath(path).endswith(".npy"):
        raise ArgumentError("path", "must end in .npy", repr(os.fspath(path)))
    n, width = matrix.shape
    if n * width > _MOST:
        raise ArgumentError("matrix", f"must have at most {_MOST:,} cells to be written dense", f"{n:,} x {width:,}")
    dense = np.full((n, width), absent, matrix.dtype)
    dense[np.repeat(np.arange(n), np.diff(matrix.indptr)), matrix.indices] = matrix.data
    with atomic_path(path) as part, open(part, "wb") as file:
        # np.save writes past Python's file and, on a full disk, does not say what was lost.
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(dense))
        file.write(dense.data)
