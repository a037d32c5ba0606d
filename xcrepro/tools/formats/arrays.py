"""Matrices in binary files, a point in each row.

NumPy's dense ``.npy``, and ``.npz`` with one dense array, as PECOS saves them; ``.npz`` of one SciPy sparse matrix, as
``scipy.sparse.save_npz`` writes it (PECOS, pyxclib, Renee, LightXML); MATLAB's ``.mat`` up to version 7 (the repository's older
scripts, SLEEC, LEML); what :meth:`xcrepro.TopK.save` writes; and the interchange file of the calibration@k authors, with the
predictions and the truth of the same rows.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from xcrepro.core.data import read, write
from xcrepro.core.data.sources import in_known_types, most_unpacked, npz_arrays, require_file
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.matrices import MAX_COLUMNS, checked_csr, checked_matrix, csr_from_arrays, positives
from xcrepro.core.paths import atomic_path
from xcrepro.core.predictions import TopK, read_calibration_npz
from xcrepro.core.truth import as_truth
from xcrepro.tools.formats.entries import of_file, ranked
from xcrepro.tools.formats.index import Index

_MOST_EMPTY = 2**20  # rows that may hold nothing
_MOST_CELLS = 2**30  # that are written; XC matrices are sparse for a reason
_MARK, _NEWER = b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file"
# MAT-file level 5: the types of elements, and the classes of arrays, by their numbers in the format.
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _PACKED = 14, 15
_SPARSE, _UINT64 = 5, 15


# ---------------------------------------------------------------- TopK.save, and the calibration@k authors


def sniff_npz_topk(arrays: set[str]) -> bool:
    """Whether an .npz has the arrays of a TopK."""
    return {"ids", "scores", "n_labels"} <= arrays


def read_predictions_topk(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The predictions as they were saved."""
    return TopK.load(path, k)


def write_predictions_topk(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """The only file that keeps everything, the order of what is equal in float32 included."""
    top.save(path)


def sniff_npz_calibration(arrays: set[str]) -> bool:
    """Whether an .npz has the arrays of the calibration@k authors."""
    return "prediction_ids" in arrays


def read_truth_calibration(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Its ``labels``."""
    return read_calibration_npz(path, index.n_labels)[1]


def read_predictions_calibration(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Its ``prediction_ids`` and ``scores``."""
    top = read_calibration_npz(path, index.n_labels)[0]
    return top if k is None else top.head(k)


# ---------------------------------------------------------------- SciPy's sparse matrices


def sniff_npz_npz(arrays: set[str]) -> bool:
    """Whether an .npz has the arrays of a SciPy matrix."""
    return {"format", "shape", "data"} <= arrays


def read_truth_npz(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """A label matrix."""
    return read.read_labels(path, n_labels=index.n_labels)


def read_predictions_npz(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The best of a score matrix, compared as it stands: float64 stays float64."""
    scores = csr_from_arrays(path, npz_arrays(path))
    with of_file(path):
        return ranked(scores, k)


def read_features_npz(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """A feature matrix."""
    return read.read_sparse(path, n_columns=index.n_features)


def write_features_npz(path: str | os.PathLike, X, index: Index) -> None:
    """A matrix."""
    if not os.fspath(path).endswith(".npz"):
        raise ArgumentError("path", "must end in .npz", repr(os.fspath(path)))
    write.write_sparse(os.fspath(path), X)


def write_truth_npz(path: str | os.PathLike, Y, index: Index) -> None:
    """A label matrix."""
    write_features_npz(path, as_truth(Y).to_csr(), index)


def write_predictions_npz(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """A score matrix."""
    write_features_npz(path, top.to_csr(), index)


# ---------------------------------------------------------------- NumPy's dense arrays


def sniff_npy(name: str, head: bytes) -> bool:
    """Whether it begins as .npy files do."""
    return head.startswith(b"\x93NUMPY")


def sniff_npz_npy(arrays: set[str]) -> bool:
    """Whether an .npz has one array."""
    return len(arrays) == 1 and not arrays & {"pair", "format"}


def read_truth_npy(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Relevant where the value is above 0."""
    with of_file(path):
        return as_truth(_array(path)).to_csr()


def read_predictions_npy(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
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


def read_features_npy(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
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


def write_truth_npy(path: str | os.PathLike, Y, index: Index) -> None:
    """Bytes, 0 and 1."""
    _save(path, as_truth(Y).to_csr().astype(np.uint8), 0)


def write_predictions_npy(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """float32 scores, minus infinity where nothing is predicted."""
    _save(path, top.to_csr(), -np.inf)


def write_features_npy(path: str | os.PathLike, X, index: Index) -> None:
    """float32."""
    _save(path, sparse.csr_matrix(X).astype(np.float32), 0)


def _save(path: str | os.PathLike, matrix: sparse.csr_matrix, absent: float) -> None:
    if not os.fspath(path).endswith(".npy"):
        raise ArgumentError("path", "must end in .npy", repr(os.fspath(path)))
    n, width = matrix.shape
    if n * width > _MOST_CELLS:
        raise ArgumentError(
            "matrix", f"must have at most {_MOST_CELLS:,} cells to be written dense", f"{n:,} x {width:,}"
        )
    dense = np.full((n, width), absent, matrix.dtype)
    dense[np.repeat(np.arange(n), np.diff(matrix.indptr)), matrix.indices] = matrix.data
    with atomic_path(path) as part, open(part, "wb") as file:
        # np.save writes past Python's file and, on a full disk, does not say what was lost.
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(dense))
        file.write(dense.data)


# ---------------------------------------------------------------- MATLAB


def sniff_mat(name: str, head: bytes) -> bool:
    """Whether it begins as MATLAB's files do."""
    return head.startswith((_MARK, _NEWER))


def read_truth_mat(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Relevant where the value is above 0."""
    with of_file(path):
        return as_truth(_points(path, index.n_labels, index.n_rows)).to_csr()


def read_predictions_mat(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Scores: of a sparse matrix what is stored, of a dense one all."""
    with of_file(path):
        return ranked(_points(path, index.n_labels, index.n_rows), k)


def read_features_mat(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Features; a 0 is not stored."""
    with of_file(path), np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        found = checked_csr("X", sparse.csr_matrix(_points(path, index.n_features, index.n_rows))).astype(np.float32)
    if not np.isfinite(found.data).all():
        raise DataError(path, "a value that is not finite in float32", "numbers that float32 can hold")
    return found


def _points(path: str | os.PathLike, width: int | None, rows: int | None):
    """The file's one matrix with a point in each row: MATLAB programs often have it in each column."""
    found = _only(path)
    n, columns = found.shape
    fits, turned = (all(want in (None, have) for want, have in pairs) for pairs in (
        ((rows, n), (width, columns)), ((rows, columns), (width, n))
    ))  # fmt: skip
    return found.T if turned and not fits else found


def _only(path: str | os.PathLike):
    """The matrix of a file that has one. Read here and not by SciPy, whose reader crashes on damaged files."""
    require_file(path)
    with open(path, "rb") as file:
        content = file.read()
    if content.startswith(_NEWER):
        raise DataError(path, "MATLAB 7.3 (HDF5)", "version 7 or older", do="Save it in MATLAB with save(..., '-v7')")
    try:
        order = {b"IM": "<", b"MI": ">"}[content[126:128]]
        found = dict(
            filter(
                None, (_variable(*element, order) for element in _elements(content[128:], order, most_unpacked(path)))
            )
        )
    except (KeyError, ValueError, IndexError, OverflowError, struct.error, zlib.error) as error:
        do = "Make or fetch it again"
        raise DataError(path, f"no readable .mat file ({error!r})", "a file of MATLAB's save", do=do) from None
    if len(found) > 1:  # a single number is a parameter
        found = {name: value for name, value in found.items() if value.shape != (1, 1)}
    if len(found) != 1:
        came = f"the matrices {', '.join(sorted(found))}" if found else "no matrix of numbers"
        raise DataError(path, came, "one matrix", do="Save the one that is meant in a file of its own")
    [value] = found.values()
    return checked_csr("matrix", value.tocsr()) if sparse.issparse(value) else checked_matrix("matrix", value)


def _elements(data: bytes, order: str, most: int = 0) -> Iterator[tuple[int, bytes]]:
    """Type and content of the elements that stand behind each other, packed ones unpacked to ``most`` bytes or less."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        start = at + 8
        if kind >> 16:  # a small one: its size and type in four bytes, its content in the next four
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        content = data[start : start + size]
        if len(content) != size:
            raise ValueError("it is cut off")
        at = start + size if kind == _PACKED else -8 * (-(start + size) // 8)
        if kind == _PACKED:
            if not most:
                raise ValueError("an element that is packed twice")
            yield from _elements(zlib.decompressobj().decompress(content, most), order)
        else:
            yield kind, content


def _variable(kind: int, content: bytes, order: str) -> tuple[str, Any] | None:
    """Name and value of a matrix of real numbers in two dimensions; None of anything else."""
    if kind != _MATRIX:
        return None
    parts = [_numbers(*element, order) for element in _elements(content, order)]
    if len(parts) < 4 or any(part is None for part in parts):
        return None
    (flags, *_), shape, name = parts[0].tolist(), parts[1], parts[2]
    if not isinstance(flags, int):
        raise ValueError("flags that are no whole number")
    kind, complex_numbers = flags & 0xFF, flags & 0x800
    if complex_numbers or not _SPARSE <= kind <= _UINT64 or len(shape) != 2:
        return None
    n, width = map(int, shape)
    if min(n, width) < 0 or max(n, width) > MAX_COLUMNS or n > _MOST_EMPTY + len(content):
        raise ValueError(f"a matrix of {n:,} x {width:,}")
    name = bytes(name.astype(np.uint8)).decode("ascii", "replace")
    if kind != _SPARSE:
        return name, parts[3].reshape((n, width), order="F")
    rows, starts, values = parts[3:6]
    if (
        len(starts) != width + 1
        or (np.diff(starts) < 0).any()
        or starts[0]
        or len(rows) < starts[-1]
        or len(values) < starts[-1]
    ):
        raise ValueError("columns that do not fit their numbers")
    pairs = int(starts[-1])  # MATLAB may keep room for more
    if pairs and not 0 <= rows[:pairs].min() <= rows[:pairs].max() < n:
        raise ValueError(f"a row outside its {n:,}")
    columns = np.repeat(np.arange(width), np.diff(starts))
    return name, sparse.coo_matrix((values[:pairs].astype(np.float64), (rows[:pairs], columns)), (n, width))


def _numbers(kind: int, content: bytes, order: str) -> Any:
    return np.frombuffer(content, order + _TYPES[kind]) if kind in _TYPES else None
