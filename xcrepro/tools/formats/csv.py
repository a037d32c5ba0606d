"""A table with a pair a line: the columns ``row`` and ``label``, and of predictions ``score``; further columns are ignored.

Also a table with a row a line: ``id`` and ``labels``, one cell for all labels of a row, or ``id``, ``pred_1``, ``pred_2``, ...

Commas, tabs or semicolons separate, as the first line says. In a truth a column ``relevance`` may say which pairs count:
those above 0, or true. Beside ``score`` a column ``rank`` is held to the scores. BEIR's ``query-id`` and ``corpus-id`` are a
row and a label, and its ``score`` is the relevance where a truth is asked for.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from scipy import sparse

from xcrepro.core.data.lines import logical, real, shown, text_lines
from xcrepro.core.errors import DataError
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats import answers
from xcrepro.tools.formats.entries import Entries, predicted, relevant, table_rows, writing
from xcrepro.tools.formats.index import Index

if TYPE_CHECKING:
    import pandas as pd

_ROWS = ("row", "id", "uid", "document_id", "doc_id")
_BEIR = "query-id", "corpus-id"
_PLACE = re.compile(r"pred(?:iction)?_\d+")


def sniff(name: str, head: bytes) -> bool:
    """Whether the first line names the columns."""
    return {"row", "label"} <= set(_columns(head)) or bool(_of_row(_columns(head)))


def _of_row(columns: list[str]) -> list[str]:
    """The columns that hold all labels of a row: one, or a place each; none where a line is a pair."""
    if {"row", "label"} <= {*columns}:
        return []
    places = sorted((name for name in columns if _PLACE.fullmatch(name)), key=lambda name: int(name.rpartition("_")[2]))
    return places or [name for name in columns if name in (*answers.KEYS, "label")][:1] * any(
        name in _ROWS for name in columns
    )


def holds(head: bytes) -> tuple[str, ...]:
    """By the columns."""
    if of_row := _of_row(_columns(head)):
        return ("predictions",) if _PLACE.fullmatch(of_row[0]) else ("truth", "predictions")
    if _BEIR[0] in head.split(b"\n")[0].decode("utf-8", "replace"):
        return ("truth", "predictions")
    return ("predictions",) if "score" in _columns(head) else ("truth",)


def _columns(head: bytes) -> list[str]:
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[0].decode("utf-8", "replace").strip()
    found = [name.strip().strip('"') for name in first.split(_separator(first))]
    return [{_BEIR[0]: "row", _BEIR[1]: "label"}.get(name, name) for name in found] if {*_BEIR} <= {*found} else found


def _separator(first: str) -> str:
    return max(",\t;", key=first.count)


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The relevant pairs, in any order."""
    if of_row := _of_row(_first(path)):
        return _rows(path, index, of_row, truth=True).truth()
    entries = Entries(path, index)
    graded = _BEIR[0] in next(text_lines(path), (1, ""))[1]
    for line, record in _records(path, "row", "label"):
        if graded:
            record["relevance"] = record.get("score", "1")
        elif "score" in record:
            raise DataError(path, "a column 'score'", "a truth: row, label and perhaps relevance", line=1)
        text = record.get("relevance", "1")
        relevance = logical(text)
        relevance = real(path, line, text, "the relevance") if relevance is None else relevance
        entries.add(line, index.row(path, line, record["row"]), record["label"], relevance)
    return entries.truth()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The predicted pairs, in any order; of a row a line, best first."""
    if of_row := _of_row(_first(path)):
        return _rows(path, index, of_row).top(k)
    entries = Entries(path, index)
    for line, record in _records(path, "row", "label", "rank" if index.by_rank else "score"):
        score = real(path, line, record.get("score", "0"), "the score")
        rank = real(path, line, record["rank"], "the rank") if "rank" in record else None
        entries.add(line, index.row(path, line, record["row"]), record["label"], score, rank)
    return entries.top(k)


def _first(path: str | os.PathLike) -> list[str]:
    return _columns(next(text_lines(path), (1, ""))[1].encode())


def _rows(path: str | os.PathLike, index: Index, of_row: list[str], truth: bool = False) -> Entries:
    """A row a line; in predictions without scores the first label is the best."""
    entries, n = Entries(path, index), 0
    for n, (line, record) in enumerate(_records(path, *of_row), 1):
        row = entries.place(line, n - 1, next((record[name] for name in _ROWS if name in record), None))
        labels, scores = [record[name] for name in of_row if record[name].strip()], None
        if len(of_row) == 1:
            labels, scores = answers.labels_of(path, line, record[of_row[0]], index)
        for place, label in enumerate(labels):
            value = 1.0 if truth else -1.0 - place
            entries.add(line, row, label, value if scores is None else scores[place])
    entries.has_rows(n)
    return entries


def _records(path: str | os.PathLike, *wanted: str) -> Iterator[tuple[int, dict[str, str]]]:
    lines = text_lines(path)
    _, first = next(lines, (1, ""))  # what is packed may be empty
    columns = _columns(first.encode())
    numbers = [name for name in ("score", "relevance", "rank") if name in columns]
    if missing := [name for name in (*wanted, *numbers) if columns.count(name) != 1]:
        raise DataError(path, f"the columns {shown(', '.join(columns))}", f"{', '.join(missing)} once", line=1)
    for line, cells in table_rows(path, lines, _separator(first)):
        if len(cells) != len(columns):
            raise DataError(path, f"{len(cells)} cells", f"{len(columns)}, as in line 1", line=line)
        record = dict(zip(columns, cells, strict=True))
        for name in numbers:
            record[name] = record[name].strip()
        yield line, record


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """``row,label``; a row without labels has no line."""
    rows = ((row, label) for row, labels in enumerate(relevant(Y)) for label in labels)
    _write(path, ("row", "label"), rows, index)


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """``row,label,score``, best first; a row without predictions has no line."""
    rows = ((row, label, score) for row in range(len(top)) for label, score in predicted(top, row))
    _write(path, ("row", "label", "score"), rows, index)


def _write(path: str | os.PathLike, columns: tuple[str, ...], rows: Iterator[tuple], index: Index) -> None:
    with writing(path) as file:
        table = csv.writer(
            file, lineterminator="\n", delimiter="\t" if os.fspath(path).removesuffix(".gz").endswith(".tsv") else ","
        )
        table.writerow(columns)
        for row, label, *score in rows:
            table.writerow((index.row_text(row), index.label_text(label), *score))


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """A table for a file that people open in a spreadsheet: a text or a column's name that it would run as a formula, ``=1+1``
    for example, has an apostrophe before it."""

    def plain(text):
        risky = isinstance(text, str) and text.startswith(("=", "+", "-", "@", "\t", "\r"))
        return f"'{text}" if risky else text

    texts = {name: table[name].map(plain) for name in table.select_dtypes(exclude=["number", "bool"])}
    return table.assign(**texts).rename(columns=plain)
