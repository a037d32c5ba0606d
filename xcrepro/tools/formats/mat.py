"""MATLAB's ``.mat`` up to version 7, with one matrix: the repository's older scripts, SLEEC, LEML."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from xcrepro.core.data.sources import require_file
from xcrepro.core.errors import DataError
from xcrepro.core.matrices import MAX_COLUMNS, checked_csr, checked_matrix
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth
from xcrepro.tools.formats.entries import of_file, ranked
from xcrepro.tools.formats.index import Index

# MAT-file level 5: the types of elements, and the classes of arrays, by their numbers in the format.
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _PACKED = 14, 15
_SPARSE, _UINT64 = 5, 15
_MOST = 2**31  # bytes that a packed element may unpack to
_MOST_EMPTY = 2**20  # rows that may hold nothing
_MARK, _NEWER = b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file"


def sniff(name: str, head: bytes) -> bool:
    """Whether it begins as MATLAB's files do."""
    return head.startswith((_MARK, _NEWER))


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Relevant where the value is above 0."""
    with of_file(path):
        return as_truth(_matrix(path, index.n_labels, index.n_rows)).to_csr()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Scores: of a sparse matrix what is stored, of a dense one all."""
    with of_file(path):
        return ranked(_matrix(path, index.n_labels, index.n_rows), k)


def read_features(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Features; a 0 is not stored."""
    with of_file(path), np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        found = checked_csr("X", sparse.csr_matrix(_matrix(path, index.n_features, index.n_rows))).astype(np.float32)
    if not np.isfinite(found.data).all():
        raise DataError(path, "a value that is not finite in float32", "numbers that float32 can hold")
    return found


def _matrix(path: str | os.PathLike, width: int | None, rows: int | None):
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
        found = dict(filter(None, (_variable(*element, order) for element in _elements(content[128:], order))))
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


def _elements(data: bytes, order: str, packed: bool = True) -> Iterator[tuple[int, bytes]]:
    """Type and content of the elements that stand behind each other, packed ones unpacked."""
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
            if not packed:
                raise ValueError("an element that is packed twice")
            unpacked = zlib.decompressobj().decompress(content, _MOST)
            yield from _elements(unpacked, order, packed=False)
        else:
            yield kind, content


def _variable(kind: int, content: bytes, order: str) -> tuple[str, object] | None:
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


def _numbers(kind: int, content: bytes, order: str) -> np.ndarray | None:
    return np.frombuffer(content, np.dtype(_TYPES[kind]).newbyteorder(order)) if kind in _TYPES else None
