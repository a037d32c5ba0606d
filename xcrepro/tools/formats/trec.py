"""TREC's files: qrels, ``row 0 label relevance``, and runs, ``row Q0 label rank score tag``; trec_eval, ir_measures, ranx.

A run is ranked by its scores, not by the column of ranks, as trec_eval does, and a warning says where the two disagree; ties go
to the lowest label id, where trec_eval takes the last document name. The second column may say anything. Lines that begin with
``#`` are comments. A relevance above 0 is relevant. A row without relevant labels has no line in qrels: say how many
rows there are, or what they are called, where the file is read alone.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator

from scipy import sparse

from xcrepro.core.data.lines import real, shown, text_lines
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.entries import Entries, predicted, relevant, writing
from xcrepro.tools.formats.index import Index

_RUN = re.compile(rb"\S+\s+(Q0\s+\S+\s+\S+\s+\S+|\S+\s+\S+\s+-?\d+\s+[-+\d.]\S*(?=\s+\S*[A-Za-z]))\s+\S+\s*")
_HEADING = re.compile(r"doc\w*|doc[-_]?(id|no)|label|item|corpus[-_]id|score|rel(evance)?|sim", re.IGNORECASE)
_QRELS = re.compile(rb"\S+\s+\S+\s+\S+\s+-?\d+\s*")


def sniff(name: str, head: bytes) -> bool:
    """Whether the first line that is neither empty nor a comment has the columns."""
    return _kind(head) is not None


def holds(head: bytes) -> tuple[str, ...]:
    """A run holds predictions, qrels a truth."""
    return (_kind(head) or "truth",)


def _kind(head: bytes) -> str | None:
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    first = lines[0].decode("utf-8", "replace").split()
    if len(first) in (4, 6) and all(_HEADING.fullmatch(first[at]) for at in (2, 4 if len(first) > 4 else 3)):
        lines = lines[1:]
    line = next((line for line in lines if line.strip() and not line.lstrip().startswith(b"#")), b"")
    if _RUN.fullmatch(line):
        return "predictions"
    if not _QRELS.fullmatch(line):
        return None
    cells = [tuple(line.split()) for line in lines[:50] if _QRELS.fullmatch(line)]
    pairs = {(row, label) for row, _, label, _ in cells}
    # Four columns of zeros and ones, a pair of row and label twice: a table of four labels.
    return "truth" if len(pairs) == len(cells) or {cell for line in cells for cell in line} - {b"0", b"1"} else None


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Qrels."""
    entries = Entries(path, index)
    for line, (row, _, label, relevance) in _records(path, 4, "row 0 label relevance"):
        value = real(path, line, relevance, "the relevance")
        # A judged row is a row, though nothing in it is relevant.
        entries.add(line, index.row(path, line, row), label, 1.0 if value > 0 else 0.0)
    return entries.truth()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """A run."""
    entries, first = Entries(path, index), None
    for line, (row, _, label, rank, score, tag) in _records(path, 6, "row Q0 label rank score tag"):
        first = tag if first is None else first
        if tag != first:
            do = "Write a file for each: the last column says which run a line is of"
            raise DataError(path, f"two runs, {shown(first)} and {shown(tag)}", "one run", line=line, do=do)
        number = real(path, line, score, "the score")
        entries.add(line, index.row(path, line, row), label, number, _rank(rank))
    return entries.top(k)


def _rank(text: str) -> float:
    """The column of ranks, which nobody has to fill; NaN says nothing."""
    return float(text) if re.fullmatch(r"\d{1,9}(\.0*)?", text) else math.nan


def _records(path: str | os.PathLike, n: int, columns: str) -> Iterator[tuple[int, list[str]]]:
    first = True
    for line, text in text_lines(path):
        cells = text.split()
        if not cells or cells[0].startswith("#"):
            continue
        heading = first and len(cells) == n and all(_HEADING.fullmatch(cells[at]) for at in (2, n - 2 if n > 4 else 3))
        first = False
        if heading:
            continue
        if len(cells) != n:
            raise DataError(path, f"{len(cells)} columns, {shown(text)}", f"{n}: {columns}", line=line)
        yield line, cells


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """Qrels; a row without labels has no line."""
    with writing(path) as file:
        for row, labels in enumerate(relevant(Y)):
            for label in labels:
                file.write(f"{_word(index.row_text(row))} 0 {_word(index.label_text(label))} 1\n")


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """A run; the tag is xcrepro."""
    with writing(path) as file:
        for row in range(len(top)):
            name = _word(index.row_text(row))
            for rank, (label, score) in enumerate(predicted(top, row), 1):
                file.write(f"{name} Q0 {_word(index.label_text(label))} {rank} {score} xcrepro\n")


def _word(text: str) -> str:
    if not text or re.search(r"\s", text):
        do = "leave the names out: numbers are written then; or give codes"
        raise ArgumentError("label_names", "must have no blanks in a TREC file, row ids neither", shown(text), do)
    return text
