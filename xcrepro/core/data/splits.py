"""The small files of row and column numbers that come with some datasets: splits and prediction filters."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from xcrepro.core.arguments import whole_number
from xcrepro.core.data.dataset import Split
from xcrepro.core.data.lines import raw_lines
from xcrepro.core.data.sources import require_file
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.matrices import checked_csr


def read_split_columns(path: str | os.PathLike, column: int) -> np.ndarray:
    """Read one split from a file such as ``bibtex_trSplit.txt``: a column a split, row numbers from 1.

    Columns are separated by blanks or tabs; every line has equally many; blank lines and lines that start with ``#`` are
    skipped. Source: xcrepo, the small-scale datasets.

    Parameters
    ----------
    path : path_like
    column : int
        Which split, from 0 (the files of the repository have ten: 0 to 9).

    Returns
    -------
    ndarray of int64, shape (n,)
        Row numbers from **0**, in the file's order.

    Raises
    ------
    DataError
        For anything but whole numbers from 1, a number twice in the column, and an empty file.
    ArgumentError
        For a column that the file does not have.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "bibtex_trSplit.txt"
    >>> _ = file.write_text("1 3\\n3 2\\n")
    >>> read_split_columns(file, 1)
    array([2, 1])
    """
    rows: list[int] = []
    seen: set[int] = set()
    n_columns = None
    for line, tokens in _number_lines(path):
        if n_columns is None:
            n_columns = len(tokens)
            whole_number("column", column, 0, n_columns - 1, do=f"{os.fspath(path)} has {n_columns} columns")
        if len(tokens) != n_columns:
            raise DataError(path, f"{len(tokens)} columns", f"{n_columns}, as in the first line", line=line)
        row = tokens[column]
        if row == 0:
            raise DataError(path, "row number 0", "row numbers from 1", line=line)
        if row in seen:
            raise DataError(path, f"row {row} a second time in column {column}", "each row once", line=line)
        seen.add(row)
        rows.append(row)
    if n_columns is None:
        raise DataError(path, "no row numbers", "a line a row")
    return np.array(rows, np.int64) - 1


def count_columns(path: str | os.PathLike) -> int:
    """How many splits a file such as ``bibtex_trSplit.txt`` has; only its first line is looked at."""
    for _, tokens in _number_lines(path):
        return len(tokens)
    raise DataError(path, "no row numbers", "a line a row")


def apply_split(X, Y, train: np.ndarray, test: np.ndarray) -> tuple[Split, Split]:
    """Cut one data file into its train and its test half.

    Parameters
    ----------
    X, Y : sparse matrix
        What ``read_xc`` gave.
    train, test : array_like of int
        Row numbers from 0, as :func:`read_split_columns` returns them; the halves keep that order. Rows in neither are left
        out.

    Returns
    -------
    train, test : Split

    Raises
    ------
    ArgumentError
        For a row beyond the data, and for a row that is in both halves or twice in one.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> X, Y = csr_matrix([[1.0], [2.0], [3.0]]), csr_matrix([[1.0], [0.0], [1.0]])
    >>> train, test = apply_split(X, Y, train=[2, 0], test=[1])
    >>> train.X.toarray().tolist(), test.Y.shape
    ([[3.0], [1.0]], (1, 1))
    """
    if X.shape[0] != Y.shape[0]:
        raise ArgumentError("Y", f"must have as many rows as X, {X.shape[0]}", Y.shape[0])
    halves = {"train": np.asarray(train), "test": np.asarray(test)}
    for name, rows in halves.items():
        if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
            raise ArgumentError(name, "must be a list of whole numbers", f"{rows.dtype} of shape {rows.shape}")
        wrong = rows[(rows < 0) | (rows >= X.shape[0])]
        if wrong.size:
            do = "row numbers are from 0 here, from 1 in split files: use read_split_columns"
            raise ArgumentError(name, f"must hold rows 0 to {X.shape[0] - 1}", wrong[0], do)
    both = np.concatenate([rows.astype(np.int64) for rows in halves.values()])
    values, counts = np.unique(both, return_counts=True)
    if (counts > 1).any():
        do = "do both files belong to the same split (column)?"
        raise ArgumentError("train and test", "must not share or repeat rows", f"row {values[counts > 1][0]}", do)
    X, Y = checked_csr("X", X), checked_csr("Y", Y)
    first, second = (Split(X[rows.astype(np.int64)], Y[rows.astype(np.int64)]) for rows in halves.values())
    return first, second


def read_filter(path: str | os.PathLike, *, shape: tuple[int, int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Read ``filter_labels_test.txt`` of the LF datasets: the (row, label) pairs whose prediction does not count.

    The file has no header and one ``row label`` pair a line, from 0; it may be empty. Blank lines and lines that start
    with ``#`` are skipped; a pair may come twice.

    Parameters
    ----------
    path : path_like
    shape : (int, int), optional
        (rows, labels) of the data, to check the pairs against.

    Returns
    -------
    rows, labels : ndarray of int64, shape (n,)
        In the file's order.

    Raises
    ------
    DataError
        For a line that is no pair and for a pair outside ``shape``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "filter_labels_test.txt"
    >>> _ = file.write_text("0 7\\n2 1\\n")
    >>> rows, labels = read_filter(file)
    >>> rows.tolist(), labels.tolist()
    ([0, 2], [7, 1])
    """
    pairs: list[list[int]] = []
    require_file(path)
    for line, tokens in _number_lines(path) if os.path.getsize(path) else ():
        if len(tokens) != 2:
            raise DataError(path, f"{len(tokens)} numbers", "a pair, 'row label'", line=line)
        row, label = tokens
        if shape is not None and (row >= shape[0] or label >= shape[1]):
            found, expected = f"the pair {row} {label}", f"rows below {shape[0]} and labels below {shape[1]}"
            raise DataError(path, found, expected, line=line, do="Does the filter belong to this dataset and split?")
        pairs.append(tokens)
    rows, labels = np.array(pairs, np.int64).reshape(-1, 2).T
    return rows, labels


def _number_lines(path: str | os.PathLike) -> Iterator[tuple[int, list[int]]]:
    """The lines that hold whole numbers, as (line number, numbers)."""
    for line, text in raw_lines(path):
        tokens = text.split()
        if not tokens or text.startswith(b"#"):
            continue
        for token in tokens:
            # 18 digits always fit int64.
            if not token.isdigit() or len(token) > 18:
                shown = token[:40].decode("utf-8", "backslashreplace")
                raise DataError(path, repr(shown), "whole numbers, 0 or more", line=line)
        yield line, [int(token) for token in tokens]
