"""Check a SciPy matrix that comes from a file or a caller before anything follows its offsets.

SciPy's constructors look at the ends of ``indptr`` and at lengths, not at what is between. One wrong offset makes
``tocsr`` and our kernels use memory that is not the matrix's. So whatever a stranger hands over goes through
:func:`checked_csr` or :func:`csr_from_arrays` first; after that everything may trust it.
"""

from __future__ import annotations

import os
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.tensors import plain

# Column ids are int32.
MAX_COLUMNS = 2**31 - 1

# A few bytes of CSC or COO may claim two billion rows, which CSR has an offset each for.
_MOST_EMPTY = 2**26

_ARRAYS = {
    **dict.fromkeys(("csr", "csc", "bsr"), ("data", "indices", "indptr")),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}


def checked_csr(name: str, matrix) -> sparse.csr_matrix:
    """A stranger's sparse matrix as CSR with sound offsets and ids; the arrays are the caller's own if it is CSR already.

    Rows need not be sorted, and an entry stored twice stays stored twice, from COO as well (``tocsr`` would add the two
    up). ``indptr`` must end at the number of stored entries: spare places behind it, which SciPy allows, are refused.
    """
    if not sparse.issparse(matrix) or matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        got = f"{type(matrix).__name__} of {getattr(matrix, 'dtype', 'objects')}"
        raise ArgumentError(name, "must be a 2-D sparse matrix of numbers", got, "wrap it in scipy.sparse.csr_matrix")
    kind, arrays = matrix.format, ()  # type: str, tuple[np.ndarray, ...]
    if kind == "lil":
        kind, arrays = "csr", _lil_arrays(name, matrix)
    elif kind == "dok":
        places = np.array(list(matrix.keys()) or np.empty((0, 2), np.int64))
        kind, arrays = "coo", (np.array(list(matrix.values()), matrix.dtype), places[:, 0], places[:, 1])
    else:
        arrays = tuple(np.asarray(getattr(matrix, part)) for part in _ARRAYS[kind])
    return _csr(name, kind, matrix.shape, arrays)


def checked_matrix(name: str, value, columns: str = "labels", do: str = ""):
    """A stranger's matrix or tensor, rows are points: :func:`checked_csr` if sparse, else a 2-D array of real numbers."""
    value = plain(name, value)
    if sparse.issparse(value):
        return checked_csr(name, value)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        do = "say what they are: matrix.filled(0), or scores.filled(-np.inf) for what is not predicted"
        raise ArgumentError(name, "must have no masked values", f"{int(np.ma.getmaskarray(value).sum()):,}", do)
    rule = f"must be a sparse matrix or a 2-D array of numbers, rows = points, columns = {columns}"
    kind = type(value).__name__
    try:
        given = np.asarray(value)
    except ValueError:
        raise ArgumentError(name, rule, f"{kind} with rows of different lengths", do) from None
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise ArgumentError(name, rule, f"{kind} of shape {given.shape} and dtype {given.dtype}", do)
    return given


def positives(name: str, value):
    """scikit-learn's ``predict_proba`` of several outputs, an array (n, 2) for each label, as one array (n, L) of the chance
    that the label is there; all else as it is."""
    arrays = value if isinstance(value, (list, tuple)) else [value]
    if not arrays or not all(isinstance(one, np.ndarray) and one.dtype.kind == "f" for one in arrays):
        return value
    if len(arrays) == 1 and isinstance(value, np.ndarray):
        arrays = list(value) if value.ndim == 3 else []
    if not arrays or any(one.ndim != 2 or len(one) != len(arrays[0]) for one in arrays):
        return value
    for label, one in enumerate(arrays):
        if one.shape[1] != 2 or not np.allclose(one.sum(axis=1), 1.0, atol=1e-3):
            rule = "must hold for each label an array (n, 2), the chances of 0 and 1"
            got = f"shape {one.shape} for label {label}" + (
                ", rows that do not add up to 1" if one.shape[1] == 2 else ""
            )
            raise ArgumentError(
                name, rule, got, "a label with one class alone has one column: put the chance of 1 together by hand"
            )
    return np.column_stack([one[:, 1] for one in arrays])


class Names(NamedTuple):
    """What a table with names (a pandas DataFrame) calls its columns and rows."""

    columns: Any
    index: Any

    def refuse_other_order(self, name: str, of: str, others: Names) -> None:
        """Refuse two tables whose names say that the same column, or row, does not stand at the same place in both."""
        for axis, do in (("columns", "scores = scores[Y.columns]"), ("index", "scores = scores.loc[Y.index]")):
            ours, theirs = getattr(self, axis), getattr(others, axis)
            if len(ours) != len(theirs) or ours.equals(theirs):
                continue
            same = set(ours) == set(theirs)
            # Rows that were never named are numbered from 0, which says nothing of those that were.
            if not same and "RangeIndex" in {type(ours).__name__, type(theirs).__name__}:
                continue
            place = {text: at for at, text in enumerate(theirs)}
            if moved := [text for at, text in enumerate(ours) if place.get(text, at) != at]:
                given, wanted = place[moved[0]], list(ours).index(moved[0])
                what = f"{axis.removesuffix('s')} {moved[0]!r} at place {given} and not at {wanted}"
                raise ArgumentError(
                    name, f"must have its {axis} in the order of {of}", what, f"sort one by the other: {do}"
                )


def names_of(name: str, value) -> Names | None:
    """The names of a DataFrame; None of what has none. A column or row twice is refused."""
    if not (hasattr(value, "columns") and hasattr(value, "index") and hasattr(value, "iloc")):
        return None
    if not value.columns.is_unique:
        twice = value.columns[value.columns.duplicated()][0]
        raise ArgumentError(name, "must have each column once", f"{twice!r} twice", "drop or rename one")
    return Names(value.columns, value.index)


def row_of(indptr: np.ndarray, place: int) -> int:
    """The row, of CSR offsets, in which a stored entry stands."""
    return int(np.searchsorted(indptr, place, side="right")) - 1


def csr_from_arrays(path: str | os.PathLike, arrays: dict[str, np.ndarray]) -> sparse.csr_matrix:
    """:func:`checked_csr` of the arrays of an ``.npz`` that ``scipy.sparse.save_npz`` wrote; errors name the file."""
    kind = arrays["format"].tolist() if "format" in arrays else None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if not isinstance(kind, str) or kind not in _ARRAYS:
        expected = f"one of the formats {', '.join(_ARRAYS)} (scipy.sparse.save_npz)"
        raise DataError(path, f"no sparse matrix but format {kind!r}, arrays {', '.join(sorted(arrays))}", expected)
    if "coords" in arrays and arrays["coords"].ndim == 2 and len(arrays["coords"]) == 2:
        arrays = {**arrays, "row": arrays["coords"][0], "col": arrays["coords"][1]}  # as newer SciPy writes COO
    missing = {"shape", *_ARRAYS[kind]} - set(arrays)
    if missing:
        raise DataError(path, f"no array {', '.join(sorted(missing))}", f"the arrays of a {kind} matrix")
    shape = arrays["shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise DataError(path, f"the shape {shape.tolist()}", "two whole numbers")
    stored = max((len(arrays[part]) for part in _ARRAYS[kind] if arrays[part].ndim), default=0)
    if kind != "csr" and shape[0] > _MOST_EMPTY + stored:
        found, do = f"{shape[0]:,} rows, of which {stored:,} at most hold something", "Save it as CSR if they are meant"
        raise DataError(path, found, f"at most {_MOST_EMPTY:,} empty ones", do=do)
    try:
        return _csr("matrix", kind, tuple(shape.tolist()), tuple(arrays[part] for part in _ARRAYS[kind]))
    except ArgumentError as error:
        do = "Make or fetch the file again"
        raise DataError(path, f"a broken matrix: {error.got}", f"a matrix, which {error.rule}", do=do) from error


def _csr(name: str, kind: str, shape: tuple[int, int], arrays: tuple[np.ndarray, ...]) -> sparse.csr_matrix:
    for size, axis in zip(shape, ("rows", "columns"), strict=True):
        if not 0 <= size <= MAX_COLUMNS:
            raise ArgumentError(name, f"must have at most {MAX_COLUMNS} {axis}", f"{size} {axis}")
    data, *places = arrays
    if data.dtype.kind not in "biuf":
        raise ArgumentError(name, "must hold real numbers", f"dtype {data.dtype}")
    for array in places:
        if array.dtype.kind not in "iu" or array.ndim != 1:
            got = f"dtype {array.dtype} of shape {array.shape}"
            raise _damaged(name, "must have whole numbers in one dimension for offsets and ids", got)
    if data.dtype.kind == "f" and data.dtype.itemsize not in (4, 8):
        data = data.astype(np.float64)  # SciPy converts no other float
    data = data.astype(data.dtype.newbyteorder("="), copy=False)
    dimensions = {"bsr": 3, "dia": 2}.get(kind, 1)
    if data.ndim != dimensions:
        raise _damaged(name, f"must have values in {dimensions} dimension(s)", f"shape {data.shape}")
    if kind == "coo":
        return _csr_from_coordinates(name, shape, data, *places)
    if kind == "dia":
        _check_diagonals(name, shape, data, *places)
    else:
        _check_compressed(name, kind, shape, data, *places)
    return getattr(sparse, f"{kind}_matrix")((data, *places), shape=shape).tocsr()


def _damaged(name: str, rule: str, got: object) -> ArgumentError:
    do = "the matrix is damaged, so build it anew, for example with scipy.sparse.coo_matrix((values, (rows, columns)))"
    return ArgumentError(name, rule, got, do)


def _check_compressed(name, kind, shape, data, indices, indptr) -> None:
    """The offsets and ids of CSR, CSC and BSR: each pair of offsets spans entries that are there."""
    (lines, width), line, across = shape, "row", "column"
    if kind == "csc":
        lines, width, line, across = width, lines, across, line
    if kind == "bsr":
        height, breadth = data.shape[1:]
        if not height or not breadth or lines % height or width % breadth:
            raise _damaged(name, f"must be cut into whole blocks, {height} x {breadth}", f"shape {shape}")
        lines, width, line, across = lines // height, width // breadth, "row of blocks", "column of blocks"
    if len(indptr) != lines + 1:
        raise _damaged(name, f"must have {lines + 1} offsets (indptr), one more than {line}s", len(indptr))
    if len(indices) != len(data):
        raise _damaged(name, "must have as many ids (indices) as values (data)", f"{len(indices)} and {len(data)}")
    if indptr[0] != 0 or indptr[-1] != len(data):
        rule = f"must have offsets (indptr) from 0 to the {len(data)} stored entries"
        raise _damaged(name, rule, f"{indptr[0]} to {indptr[-1]}")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        place = int(np.argmax(falls)) + 1
        got = f"{indptr[place - 1]}, then {indptr[place]} at place {place}"
        raise _damaged(name, "must have offsets (indptr) that never fall", got)
    outside = _outside(indices, width)
    if outside is not None:
        got = f"{across} {indices[outside]} in {line} {row_of(indptr, outside)}"
        raise _damaged(name, f"must have {across}s 0 to {width - 1}", got)


def _outside(ids: np.ndarray, size: int) -> int | None:
    """The first place of an id that is not in 0 to size - 1."""
    if not ids.size or (ids.min() >= 0 and ids.max() < size):
        return None
    return int(np.argmax((ids < 0) | (ids >= size)))


def _csr_from_coordinates(name, shape, data, row, col) -> sparse.csr_matrix:
    if not len(data) == len(row) == len(col):
        got = f"{len(data)}, {len(row)} and {len(col)}"
        raise _damaged(name, "must have as many values as rows and columns of entries", got)
    for ids, size, axis in ((row, shape[0], "row"), (col, shape[1], "column")):
        place = _outside(ids, size)
        if place is not None:
            raise _damaged(name, f"must have {axis}s 0 to {size - 1}", f"{ids[place]} in entry {place}")
    # SciPy adds up what a COO matrix holds twice. It is to stay, so its counting sort gets a column an entry.
    entries = np.arange(len(data))
    order = sparse.csr_matrix((np.ones(len(data), np.int8), (row, entries)), shape=(shape[0], len(data)))
    return sparse.csr_matrix((data[order.indices], col[order.indices], order.indptr), shape=shape)


def _check_diagonals(name, shape, data, offsets) -> None:
    if len(offsets) != len(data):
        raise _damaged(name, "must have an offset for each diagonal", f"{len(offsets)} and {len(data)}")
    if offsets.size and (offsets.min() < -shape[0] or offsets.max() > shape[1]):
        rule = f"must have diagonals from {-shape[0]} to {shape[1]}"
        raise _damaged(name, rule, f"{offsets.min()} to {offsets.max()}")
    if len(np.unique(offsets)) < len(offsets):
        raise _damaged(name, "must have each diagonal once", f"offsets {offsets.tolist()}")


def _lil_arrays(name: str, matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        lens, values = ([len(row) for row in rows] for rows in (matrix.rows, matrix.data))
    except TypeError as error:
        raise _damaged(name, "must hold a list for each row", error) from error
    if lens != values:
        row = next((row for row, (ids, held) in enumerate(zip(lens, values, strict=False)) if ids != held), "the last")
        raise _damaged(name, "must have as many ids as values in each row", f"other numbers in row {row}")
    ids = list(chain.from_iterable(matrix.rows))
    indices = np.array(ids) if ids else np.empty(0, np.int64)
    return np.array(list(chain.from_iterable(matrix.data)), matrix.dtype), indices, np.cumsum([0, *lens])
