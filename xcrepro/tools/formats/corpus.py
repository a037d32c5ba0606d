"""Annif's short-text corpus: ``text<TAB><uri> <uri>`` a line, or a table with the columns ``text`` and ``subject_uris``. A
truth; a line is a row."""

from __future__ import annotations

import os
import re

from scipy import sparse

from xcrepro.core.data.lines import shown, text_lines
from xcrepro.core.errors import DataError
from xcrepro.tools.formats.entries import Entries, table_rows
from xcrepro.tools.formats.index import Index

_LINE = re.compile(r"[^\t]*\t\s*((?:<[^<>\s]+>\s*)*)")


def sniff(name: str, head: bytes) -> bool:
    """Whether the first line is a text and its subjects, or names the columns."""
    first = head.split(b"\n")[0].decode("utf-8", "replace").strip("\r")
    match = _LINE.fullmatch(first)
    # A vocabulary has the URI first.
    return _is_table(first) or (match is not None and bool(match[1]) and not first.startswith("<"))


def _is_table(first: str) -> bool:
    return {"text", "subject_uris"} <= {cell.strip().strip('"') for cell in first.split(",")}


def holds(head: bytes) -> tuple[str, ...]:
    """Always a truth."""
    return ("truth",)


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The subjects of each text, by their URIs, a repeated one once."""
    entries, row = Entries(path, index, once=True), -1
    lines = text_lines(path)
    for line, first in lines:
        rows = (_of_table if _is_table(first) else _of_lines)(path, line, first, lines)
        for row, (number, uris) in enumerate(rows):
            for uri in uris:
                entries.add(number, row, uri)
    entries.has_rows(row + 1)
    return entries.truth()


def _of_lines(path, line: int, first: str, lines):
    for number, text in ((line, first), *lines):
        if not text.strip():
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise DataError(path, shown(text), "a text, a tab, and <uri> <uri> ...", line=number)
        yield number, re.findall(r"<([^<>]+)>", match[1])


def _of_table(path, line: int, first: str, lines):
    table = table_rows(path, ((line, first), *lines))
    columns = [cell.strip() for cell in next(table)[1]]
    if columns.count("subject_uris") != 1:
        raise DataError(path, f"the columns {shown(', '.join(columns))}", "subject_uris once", line=line)
    at = columns.index("subject_uris")
    for number, cells in table:
        if len(cells) != len(columns):
            raise DataError(path, f"{len(cells)} cells", f"{len(columns)}, as in line {line}", line=number)
        yield number, [uri.removeprefix("<").removesuffix(">") for uri in cells[at].split()]
