"""Cut what is large into block files: a score matrix on disk or in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from xcrepro.core.arguments import whole_number
from xcrepro.core.data.stream import ROWS, blocks, paired
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth
from xcrepro.tools.scale.blocks import write_block

_DIGITS = 12  # of the first row, in a block's name


def write_blocks(
    truth,
    predictions,
    folder: str | os.PathLike,
    rows: int = ROWS,
    k: int = 100,
    *,
    first_row: int = 0,
) -> list[Path]:
    """Cut truth and predictions into block files, of which no more than one is held.

    Parameters
    ----------
    truth : path_like, sparse matrix or array_like, shape (n, L)
        A file as :func:`xcrepro.data.blocks` streams it (of one with features, its labels), or a truth in memory.
    predictions : path_like, TopK or sparse matrix, shape (n, L)
        A score matrix likewise, or predictions in memory.
    folder : path_like
        Gets ``block-<first row>.npz``; files that are there already are written anew.
    rows : int
        Of a block, 1 or more. 100,000 rows of five places are some 10 MB.
    k : int
        Places of a score matrix to keep, at least the largest k that will be asked for.
    first_row : int
        The number of the first row, where these are part of more.

    Returns
    -------
    list of Path
        In order of the rows.

    Raises
    ------
    DataMissing, DataError
        For the files; with the row where truth and predictions do not have as many. What was written by then stays.
    ArgumentError
        For an argument, and scores that no ranking can have.
    """
    rows, k = whole_number("rows", rows, 1), whole_number("k", k, 1)
    if isinstance(predictions, TopK):
        cuts = range(0, len(predictions), rows)
        tops: Iterable[TopK] = (predictions.rows(slice(low, low + rows)).head(k) for low in cuts)
    else:
        scores = enumerate(_matrices(predictions, rows, "predictions"))
        tops = (_ranked(predictions, part, k, number * rows) for number, part in scores)
    parts = paired(_truths(truth, rows), map(_Top, tops), (_name(truth, "truth"), _name(predictions, "predictions")))
    row, written = whole_number("first_row", first_row), []
    for Y, found in parts:
        written.append(write_block(Path(folder) / f"block-{row:0{_DIGITS}d}.npz", Y, found.top, row))
        row += len(found.top)
    return written


def _name(given, what: str) -> str:
    return os.fspath(given) if isinstance(given, (str, os.PathLike)) else what


def _matrices(given, rows: int, name: str) -> Iterator:
    """What is on disk or in memory, cut."""
    if isinstance(given, (str, os.PathLike)):
        return blocks(given, rows)
    if not hasattr(given, "shape"):
        raise ArgumentError(name, "must be a path, a matrix, or predictions", type(given).__name__)
    return (given[lo : lo + rows] for lo in range(0, given.shape[0], rows))


def _truths(given, rows: int) -> Iterator:
    """Labels, cut: a value above 0 is one, a stored 0 is none."""
    for part in _matrices(given if isinstance(given, (str, os.PathLike)) else as_truth(given).to_csr(), rows, "truth"):
        Y = part[1] if isinstance(part, tuple) else part
        if Y.nnz and Y.data.min() < 0:
            raise DataError(given, f"the label value {Y.data.min():g}", "1, or another value above 0")
        yield Y


class _Top:
    """Predictions, and how many rows they have."""

    def __init__(self, top: TopK) -> None:
        self.top, self.shape = top, (len(top), top.n_labels)


def _ranked(given, scores, k: int, first: int) -> TopK:
    if isinstance(scores, tuple):
        raise DataError(given, "features and labels", "a score matrix, with a header of two numbers")
    try:
        return TopK.from_scores(scores, k)
    except ArgumentError as error:
        if not isinstance(given, (str, os.PathLike)):
            raise
        raise DataError(given, f"{error.got}, rows counted from row {first}", f"scores, which {error.rule}") from None
