"""Files larger than memory, a block of rows at a time: the same readers, the same checks, the same errors."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import cast

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import csr_matrix

from xcrepro.core.arguments import whole_number
from xcrepro.core.data import parsing, read
from xcrepro.core.data.sources import damage, in_known_types, npz_names, open_source, require_file
from xcrepro.core.errors import DataError
from xcrepro.core.matrices import csr_from_arrays

ROWS = 100_000


def blocks(
    path: str | os.PathLike,
    rows: int = ROWS,
    *,
    n_columns: int | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    one_based: bool = False,
    threads: int | None = None,
) -> Iterator[csr_matrix | tuple[csr_matrix, csr_matrix]]:
    """The rows of a file in blocks, in order, as :func:`xcrepro.data.read_sparse` and :func:`xcrepro.read_xc` read them whole.

    Memory holds a block and what its reading takes, however long the file is; of an ``.npz`` also the offsets of all rows.

    Parameters
    ----------
    path : path_like
        Text of either format, packed or not: a matrix of scores, features or labels (header ``n columns``), or features and
        labels in one (``N D L``). Or ``.npz``: a SciPy matrix in CSR, packed or not, or what :func:`xcrepro.write_xc` made.
    rows : int
        In each block but the last, 1 or more.
    n_columns, n_features, n_labels, one_based, threads
        As for :func:`xcrepro.data.read_sparse` and :func:`xcrepro.read_xc`. A file without a header needs ``n_columns``, or
        the other two.

    Yields
    ------
    csr_matrix of float32, shape (rows, columns)
        Or ``(X, Y)`` of a file that holds both.

    Raises
    ------
    DataMissing
        Where nothing is there.
    DataError
        For the content, when the block comes that has it: blocks before it have been given out by then. A header that promises
        more or fewer rows is found out at the end.
    ArgumentError
        For an argument.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "score_mat.txt"
    >>> _ = file.write_text("3 4\\n0:11 2:0.25\\n\\n3:1\\n")
    >>> [block.shape for block in blocks(file, rows=2)]
    [(2, 4), (1, 4)]
    """
    rows = whole_number("rows", rows, 1)
    if n_columns is not None:
        n_columns = whole_number("n_columns", n_columns, 1)
    threads = read.thread_count(threads)
    require_file(path)
    if os.fspath(path).endswith(".npz"):
        return _of_npz(path, rows, n_columns)
    pair = n_features is not None or (n_columns is None and _is_pair(path))
    given = {"n_features": n_features, "n_labels": n_labels} if pair else {"n_columns": n_columns}
    return _of_text(path, rows, given, one_based, threads)


def _is_pair(path: str | os.PathLike) -> bool:
    """Whether the header has three numbers."""
    with open_source(path) as stream:
        return read.header_size(path, stream) == 3


# ---------------------------------------------------------------------------------------------- text


def _of_text(path, rows: int, given: dict[str, int | None], one_based: bool, threads: int):
    first = {"first_id": int(one_based)} | ({"first_label": int(one_based)} if len(given) == 2 else {})
    with open_source(path) as stream:
        start = read.begin(path, stream, given, **first)
        held, count, given_out = [], 0, 0
        for piece in parsing.stream_pieces(path, stream, start.layout, threads=threads, **start.behind):
            held.append(piece)
            count += len(piece.lens)
            if start.n_rows is not None and given_out + count > start.n_rows:
                raise start.wrong_rows(path, f"more than {start.n_rows} rows", "Mend the header")
            while count >= rows:
                block, held = _cut(held, rows, start.widths)
                count, given_out = count - rows, given_out + rows
                yield block
        if start.n_rows is not None and given_out + count < start.n_rows:
            raise start.wrong_rows(path, f"{given_out + count} rows", read.CUT)
        if count:
            yield _cut(held, count, start.widths)[0]


def _cut(pieces: list[parsing.Piece], rows: int, widths: list[int]):
    """The first rows of some pieces as matrices, and the pieces that are left."""
    left = sum(len(piece.lens) for piece in pieces) - rows
    keep, rest = _split(pieces[-1], len(pieces[-1].lens) - left)
    parts = [*pieces[:-1], keep]

    def matrix(lens: str, ids: str, values: str | None, width: int) -> csr_matrix:
        indptr = parsing.offsets([getattr(part, lens) for part in parts])
        columns = np.concatenate([getattr(part, ids) for part in parts])
        data = None if values is None else np.concatenate([getattr(part, values) for part in parts])
        return read.sorted_csr(data, columns, indptr, width)

    found = matrix("lens", "ids", "values", widths[0])
    if len(widths) == 2:
        found = found, matrix("label_lens", "labels", None, widths[1])
    return found, [rest] if left else []


def _split(piece: parsing.Piece, rows: int) -> tuple[parsing.Piece, parsing.Piece]:
    entries, labels = int(piece.lens[:rows].sum()), int(piece.label_lens[:rows].sum())

    def part(some: slice, of_ids: slice, of_labels: slice) -> parsing.Piece:
        lens, label_lens = piece.lens[some], piece.label_lens[some]
        ids, values = piece.ids[of_ids], piece.values[of_ids]
        return parsing.Piece(0, label_lens, piece.labels[of_labels], lens, ids, values, 0, 0, None)

    before = part(slice(rows), slice(entries), slice(labels))
    return before, part(slice(rows, None), slice(entries, None), slice(labels, None))


# ---------------------------------------------------------------------------------------------- npz


class _Member:
    """An array in an ``.npz``, read from its beginning on, a stretch at a time."""

    def __init__(self, path, member: Callable[[str], BufferedIOBase], name: str) -> None:
        self.path, self.name = path, name
        try:
            self.file = member(f"{name}.npy")
        except KeyError:
            raise DataError(path, f"no array {name}", "the arrays of a CSR matrix") from None
        except RuntimeError as error:  # a password
            raise DataError(path, f"an archive that cannot be read ({error})", "an .npz of NumPy") from None
        try:
            version = npy.read_magic(self.file)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, _, self.dtype = header(self.file)
        except ValueError as error:
            raise DataError(path, f"array {name}: {error}", "an array of numbers") from None
        if self.dtype.kind not in "biufUS" or not self.dtype.itemsize:
            raise DataError(path, f"array {name} of {self.dtype}", "an array of numbers")

    def whole(self) -> np.ndarray:
        """All entries, in their shape."""
        return self.take(math.prod(self.shape)).reshape(self.shape)

    def take(self, count: int) -> np.ndarray:
        """The next entries."""
        size = count * self.dtype.itemsize
        data = self.file.read(min(size, sys.maxsize))
        if len(data) < size:
            found = f"array {self.name} that ends early"
            raise DataError(self.path, found, f"{self.shape} entries", do="Make it again")
        try:
            return in_known_types(np.frombuffer(bytearray(data), self.dtype))  # which may be written to
        except ValueError as error:
            raise DataError(self.path, f"array {self.name}: {error}", "an array of numbers") from None


def _of_npz(path, rows: int, n_columns: int | None):
    names = npz_names(path)
    pair = "pair" in names
    with damage(path), contextlib.ExitStack() as opened:
        archive = opened.enter_context(zipfile.ZipFile(path))

        def member(name: str) -> BufferedIOBase:
            """Closed with the archive, which stays open as long as one of its members."""
            return cast("BufferedIOBase", opened.enter_context(archive.open(name)))

        if not pair:
            if "format" not in names:
                do = "Of other arrays there is np.load; block files are read by xcrepro.scale.read_block"
                raise DataError(path, f"arrays {sorted(names)}", "a SciPy matrix or what write_xc saves", do=do)
            kind = _Member(path, member, "format").whole().tolist()
            kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
            if kind != "csr":
                do = "scipy.sparse.save_npz(path, matrix.tocsr())"
                expected = "CSR, whose rows stand one after the other"
                raise DataError(path, f"a matrix in {str(kind)[:60]}", expected, do=do)
        elif (kind := str(_Member(path, member, "pair").whole())) != read.PAIR_FORMAT:
            raise DataError(path, f"a pair of the form {kind[:60]!r}", read.PAIR_FORMAT)
        streams = [_Matrix(path, member, name) for name in (("X_", "Y_") if pair else ("",))]
        if len({stream.n_rows for stream in streams}) > 1:
            found = f"{[stream.n_rows for stream in streams]} rows of X and Y"
            raise DataError(path, found, "as many of one as of the other")
        for lo in range(0, streams[0].n_rows, rows):
            hi = min(lo + rows, streams[0].n_rows)
            block = [stream.rows(lo, hi, n_columns, name == 1) for name, stream in enumerate(streams)]
            yield tuple(block) if pair else block[0]


class _Matrix:
    """A CSR matrix in an ``.npz``; the offsets are held, ids and values stream."""

    def __init__(self, path, member: Callable[[str], BufferedIOBase], prefix: str) -> None:
        self.path = path
        members = {name: _Member(path, member, prefix + name) for name in ("shape", "indptr", "indices", "data")}
        shape, indptr = members["shape"].whole(), members["indptr"].whole()
        self.indices, self.data = members["indices"], members["data"]
        whole = shape.dtype.kind in "iu" and indptr.dtype.kind in "iu"
        if shape.shape != (2,) or indptr.ndim != 1 or not whole or not len(indptr) == int(shape[0]) + 1 > 0:
            found = f"shape {shape.tolist()}, offsets {indptr.dtype} {indptr.shape}"
            raise DataError(path, found, "two whole numbers; a row an offset, and one more")
        self.n_rows, self.width = (int(size) for size in shape)
        self.indptr = indptr.astype(np.int64, copy=False)
        if self.indptr[0] != 0 or (np.diff(self.indptr) < 0).any() or self.indices.shape != self.data.shape:
            raise DataError(path, "a broken matrix: offsets that fall, or other numbers of ids and values", "a matrix")
        if self.data.shape != (int(self.indptr[-1]),):
            raise DataError(path, f"{self.data.shape} values", f"{self.indptr[-1]}, where the offsets end")
        # What is wrong with the width and the types is said at once, and also where no row is.
        self.rows(0, 0, None, False)

    def rows(self, lo: int, hi: int, n_columns: int | None, ones: bool) -> csr_matrix:
        """The next rows."""
        indptr = self.indptr[lo : hi + 1] - self.indptr[lo]
        arrays = {"indptr": indptr, "indices": self.indices.take(indptr[-1]), "data": self.data.take(indptr[-1])}
        arrays |= {"format": np.array("csr"), "shape": np.array([hi - lo, self.width])}
        try:
            matrix = csr_from_arrays(self.path, arrays)
            return read.clean_csr(self.path, matrix, "n_columns", n_columns, ones)
        except DataError as error:
            if lo == 0:
                raise
            found = f"{error.found}, rows counted from row {lo}"
            raise DataError(self.path, found, error.expected, do=error.do) from None


def paired(first: Iterator, second: Iterator, names: tuple[str, str]) -> Iterator:
    """Blocks of two files side by side; a DataError where one ends before the other."""
    row = 0
    for one, other in itertools.zip_longest(first, second):
        sizes = [0 if each is None else each.shape[0] for each in (one, other)]
        if sizes[0] != sizes[1]:
            short = names[int(sizes[1] < sizes[0])]
            raise DataError(short, f"{row + min(sizes)} rows", "as many as of the other file, which goes on")
        row += sizes[0]
        yield one, other
