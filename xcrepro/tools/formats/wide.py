"""A dense table as text: a column for each label, a line for each row. With a header (pandas, Kaggle, spreadsheets) its names
are the labels' and a column of row ids may stand first; without one it is what ``numpy.savetxt`` writes.

Commas, semicolons, tabs or blanks separate. In a truth a cell is relevant above 0, or where it says true; an empty cell is no
prediction. Columns of texts (``text``, ``title``, ...) are passed over.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from xcrepro.core.data.lines import logical, real, shown, text_lines
from xcrepro.core.data.names import LabelNames
from xcrepro.core.errors import DataError
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.entries import Entries, table_rows
from xcrepro.tools.formats.index import Index

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)
_IDS = re.compile(r"|id|row|index|uid|\w+_id|doc(ument)?|file(name)?|image|unnamed: 0", re.IGNORECASE)
_TEXTS = re.compile(r"(\w+_)?text|title|content|sentence|description|abstract", re.IGNORECASE)


def sniff(name: str, head: bytes) -> bool:
    """Whether the first lines are rows of numbers, as many in each, perhaps under a header."""
    return _look(head) is not None


def holds(head: bytes) -> tuple[str, ...]:
    """Zeros and ones, or words for them, may be a truth; other numbers are scores."""
    found = _look(head)
    if found is None:
        return ("truth", "predictions")
    cells = {cell for row in found for cell in row}
    if all(logical(cell) is not None or re.fullmatch(r"[01](\.0*(e\+00)?)?", cell) for cell in cells):
        return ("truth",) if any(logical(cell) is not None for cell in cells) else ("truth", "predictions")
    return ("predictions",)


def _look(head: bytes) -> list[list[str]] | None:
    """The cells of labels in the first rows; None if it is no such table."""
    text = head.decode("utf-8", "replace")
    lines = [line for line in text.split("\n")[:20] if line.strip() and not line.startswith("# ")]
    if len(lines) < 1 or "\0" in text[:1000]:
        return None
    separator = _separator(lines[0])
    try:
        rows = list(csv.reader(lines, delimiter=separator)) if separator != " " else [line.split() for line in lines]
    except csv.Error:
        return None
    if len(rows) > 2 and len(rows[-1]) < len(rows[0]):
        rows = rows[:-1]  # a quoted text may go on beyond what was looked at
    header = not all(_NUMBER.fullmatch(cell.strip()) for cell in rows[0])
    wide = len(rows[0])
    if wide < 2 or any(len(row) != wide for row in rows) or (header and len(rows) < 2):
        return None
    names = [cell.strip() for cell in rows[0]] if header else []
    if {"row", "label"} <= set(names):
        return None
    body = [[cell.strip() for cell in row] for row in rows[header:]]
    first = 1 if header and (_IDS.fullmatch(names[0]) or not all(map(_is_value, (row[0] for row in body)))) else 0
    kept = [at for at in range(first, wide) if not (names and _TEXTS.fullmatch(names[at]))]
    if not kept or not all(_is_value(row[at]) for row in body for at in kept):
        return None
    return [[row[at] for at in kept] for row in body]


def _is_value(cell: str) -> bool:
    return not cell or _NUMBER.fullmatch(cell) is not None or logical(cell) is not None


def _separator(first: str) -> str:
    found = max(",;\t", key=first.count)
    return found if found in first else " "


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Relevant where a cell is above 0, or true."""
    return _read(path, index, truth=True).truth()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Scores; an empty cell is not predicted."""
    return _read(path, index, truth=False).top(k)


def _read(path: str | os.PathLike, index: Index, truth: bool) -> Entries:
    """The values, a column for each label."""
    lines = _rows(path)
    line, first = next(lines, (1, []))
    header = not first or not all(_NUMBER.fullmatch(cell.strip()) for cell in first)
    names = [cell.strip() for cell in first] if header else []
    return read_cells(
        path, index, truth, line, names if header else [], list(lines) if header else [(line, first), *lines]
    )


def read_cells(
    path: str | os.PathLike,
    index: Index,
    truth: bool,
    line: int | None,
    names: list[str],
    body: list[tuple[int | None, list[str]]],
) -> Entries:
    """The values of a table, whose columns are called ``names``, or not; ``body`` has the lines' numbers and cells."""
    header, first = bool(names), names or (body[0][1] if body else [])
    if not body or (header and len(names) < 2):
        raise DataError(path, "no row of numbers", "a table with a column for each label", line=line)
    ids = bool(names) and bool(
        _IDS.fullmatch(names[0]) or not all(_is_value(cells[0].strip()) for _, cells in body if cells)
    )
    kept = [at for at in range(ids, len(first)) if not (names and _TEXTS.fullmatch(names[at]))]
    labels = _labels(path, index, [names[at] for at in kept]) if names else _by_place(path, index, len(kept))
    entries = Entries(path, index)
    entries.n_columns = 0 if isinstance(labels[0], str) else len(labels)
    for label in labels:
        entries.name(label, line)
    for place, (number, cells) in enumerate(body):
        if len(cells) != len(first):
            raise DataError(path, f"{len(cells)} cells", f"{len(first)}, as in line {line}", line=number)
        row = entries.place(number, place, cells[0].strip() if ids else None)
        for label, at in zip(labels, kept, strict=True):
            value = _value(path, number, cells[at].strip(), truth)
            if value > (0.0 if truth else -np.inf):
                entries.add(number, row, label, value)
    entries.has_rows(len(body))
    return entries


def _rows(path: str | os.PathLike) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not empty, and not a comment of savetxt's."""
    lines = text_lines(path)
    line, first = next(((line, text) for line, text in lines if text.strip() and not text.startswith("# ")), (1, ""))
    separator = _separator(first)
    if separator == " ":
        yield line, first.split()
        yield from ((number, text.split()) for number, text in lines if text.strip())
        return
    rows = table_rows(path, itertools.chain([(line, first)], lines), separator)
    yield from ((number, cells) for number, cells in rows if any(cell.strip() for cell in cells))


def _labels(path: str | os.PathLike, index: Index, names: list[str]) -> list[str] | list[int]:
    """What each column's label is called: the first file's header is the list of names, unless it numbers the columns."""
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise DataError(path, f"the column {shown(twice)} twice", "each label once", line=1)
    numbered = sorted(names) == sorted(map(str, range(len(names))))
    if numbered and index.label_names is None:
        return [int(name) for name in names]
    if index.label_names is None and index.begins and index.n_labels in (None, len(names)):
        index.label_names, index.n_labels = LabelNames(tuple(names)), len(names)
    return names


def _by_place(path: str | os.PathLike, index: Index, n: int) -> list[int]:
    if index.n_labels is not None and n != index.n_labels:
        raise DataError(path, f"{n} columns", f"{index.n_labels}, one for each label", line=1)
    return list(range(n))


def _value(path: str | os.PathLike, line: int, cell: str, truth: bool) -> float:
    if (said := logical(cell)) is not None:
        return said
    if not cell and not truth:
        return -np.inf
    value = real(path, line, cell, "the value")
    if truth and value < 0:
        raise DataError(path, f"the value {shown(cell)}", "0 or 1: relevant, or not", line=line)
    return value
