"""Write the text formats of extreme classification, and ``.npz``, so that reading gives the same matrices back.

Values get the fewest digits that read back to the same float32 (0.1, not 0.100000001), laid out like C's ``%.9g``, so a
file that was written with ``%.6g`` or shorter comes out as it was. The name decides the packing: ``.gz`` is packed,
``.npz`` is the binary form, all else is plain text. Files appear whole or not at all, and the same matrices give the
same bytes.
"""

from __future__ import annotations

import gzip
import itertools
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BufferedIOBase

import numpy as np
from scipy.sparse import csr_matrix, save_npz

from xcrepro.core import threads
from xcrepro.core.data.read import PAIR_FORMAT
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels.format import ENTRY_BYTES, LABEL_BYTES, format_rows
from xcrepro.core.matrices import checked_csr
from xcrepro.core.paths import atomic_path

# Entries a block of text is made of: a few megabytes.
BLOCK_ENTRIES = 1 << 17


def write_xc(path: str | os.PathLike, X, Y) -> None:
    """Write features and labels as one file of the old format: ``N D L``, then ``label,label feature:value ...``.

    A row without labels starts with a blank; one without either is an empty line. Rows are written sorted. As ``.npz``,
    both matrices and their shapes. Source: xcrepo, "Data format".

    Parameters
    ----------
    path : path_like
    X : sparse matrix, shape (N, D)
        Any SciPy layout and number type; stored as float32 (rounded once), zeros that are stored are written.
    Y : sparse matrix, shape (N, L)
        Values 0 or 1 (zeros are left out), because the format holds no label values.

    Raises
    ------
    ArgumentError
        For anything that could not be read back: NaN, infinity, a place stored twice, label values other than 0 and 1,
        unequal row counts. Nothing is written then, and X and Y are never changed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from scipy.sparse import csr_array
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> write_xc(file, csr_array([[0.1, 0.0, 3.0], [0.0, 0.0, 1e-7]]), csr_array([[0, 1], [0, 0]]))
    >>> print(file.read_text(), end="")
    2 3 2
    1 0:0.1 2:3
     2:1e-07
    """
    x = _checked("X", X)
    y = _checked("Y", Y)
    if x.shape[0] != y.shape[0]:
        raise ArgumentError("Y", f"must have as many rows as X, {x.shape[0]}", y.shape[0], "pass the same points")
    if y.nnz and (y.data == 0).any():
        y.eliminate_zeros()
    if (y.data != 1).any():
        do = "write values with write_sparse, or pass (Y > 0)"
        raise ArgumentError("Y", "must hold ones", y.data[y.data != 1][0], do)
    if _suffix(path) == ".npz":
        arrays = {f"{name}_{array}": getattr(m, array) for name, m in (("X", x), ("Y", y)) for array in _ARRAYS}
        with atomic_path(path) as part:
            np.savez(part, pair=np.array(PAIR_FORMAT), X_shape=np.array(x.shape), Y_shape=np.array(y.shape), **arrays)
        return
    _write_text(path, f"{x.shape[0]} {x.shape[1]} {y.shape[1]}\n", x, y)


def write_sparse(path: str | os.PathLike, matrix) -> None:
    """Write a matrix in the new format: ``rows columns``, then ``id:value id:value ...``; features, labels or scores.

    Parameters
    ----------
    path : path_like
    matrix : sparse matrix, shape (rows, columns)
        As for :func:`write_xc`; all its values are kept, as float32. As ``.npz``, what ``scipy.sparse.load_npz`` reads.

    Raises
    ------
    ArgumentError
        As :func:`write_xc` does.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from scipy.sparse import csr_matrix
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "trn_X_Y.txt"
    >>> write_sparse(file, csr_matrix([[0, 1, 1], [0, 0, 0]]))
    >>> file.read_text()
    '2 3\\n1:1 2:1\\n\\n'
    """
    m = _checked("matrix", matrix)
    if _suffix(path) == ".npz":
        with atomic_path(path) as part:
            save_npz(part, m, compressed=False)
        return
    _write_text(path, f"{m.shape[0]} {m.shape[1]}\n", m, None)


_ARRAYS = ("data", "indices", "indptr")


def _suffix(path: str | os.PathLike) -> str:
    suffix = os.path.splitext(os.fspath(path))[1]
    if suffix == ".zip":
        raise ArgumentError("path", "cannot be a zip archive", repr(os.fspath(path)), "write .gz or plain text")
    return suffix


def _checked(name: str, matrix) -> csr_matrix:
    """A copy as csr_matrix float32 with sorted int32 ids, or an ArgumentError."""
    m = checked_csr(name, matrix).copy()
    stored = m.nnz
    m.sum_duplicates()
    if m.nnz != stored:
        raise ArgumentError(name, "must store each place once", f"{stored - m.nnz} places stored again")
    with np.errstate(over="ignore"):
        values = m.data.astype(np.float32)
    if not np.isfinite(values).all():
        wrong = m.data[~np.isfinite(values)][0]
        raise ArgumentError(name, "must hold finite values that float32 can hold", wrong, "mend or remove them")
    return csr_matrix((values, m.indices, m.indptr), shape=m.shape)


def _write_text(path: str | os.PathLike, header: str, m: csr_matrix, labels: csr_matrix | None) -> None:
    with atomic_path(path) as part, open(part, "wb") as file:
        out: BufferedIOBase = file
        if _suffix(path) == ".gz":
            # No name and no date inside: the same bytes every time.
            out = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0)
        out.write(header.encode())
        for text in _texts(m, labels):
            out.write(text)
        if out is not file:
            out.close()


def _texts(m: csr_matrix, labels: csr_matrix | None) -> Iterator[memoryview]:
    """The lines in order, a block of rows at a time, made by several threads."""
    indptr = m.indptr.astype(np.int64)
    ids = m.indices.astype(np.int32, copy=False)
    label_indptr = indptr if labels is None else labels.indptr.astype(np.int64)
    label_ids = ids if labels is None else labels.indices.astype(np.int32, copy=False)
    bits = m.data.view(np.uint32)

    def text(lo: int, hi: int) -> memoryview:
        size = ENTRY_BYTES * (indptr[hi] - indptr[lo]) + 2 * (hi - lo)
        if labels is not None:
            size += LABEL_BYTES * (label_indptr[hi] - label_indptr[lo])
        out = np.empty(size, np.uint8)
        used = format_rows(lo, hi, labels is not None, label_indptr, label_ids, indptr, ids, m.data, bits, out)
        return out[:used].data

    edges = _edges(indptr if labels is None else indptr + label_indptr)
    n_threads = min(threads.count(), len(edges) - 1)
    if n_threads < 2:
        yield from map(text, edges[:-1], edges[1:])
        return
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: deque = deque()
        for lo, hi in itertools.pairwise(edges):
            waiting.append(pool.submit(text, lo, hi))
            # A thread may run ahead of the disk by two blocks, not by the whole file.
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _edges(load: np.ndarray) -> list[int]:
    """Rows to cut at, so that each block has about BLOCK_ENTRIES of ``load`` (offsets of the rows) and some rows."""
    n_rows = len(load) - 1
    # A row without entries takes a byte, too.
    work = load + np.arange(n_rows + 1)
    targets = np.arange(BLOCK_ENTRIES, work[-1], BLOCK_ENTRIES)
    return np.unique(np.concatenate(([0], np.searchsorted(work, targets), [n_rows]))).tolist()
