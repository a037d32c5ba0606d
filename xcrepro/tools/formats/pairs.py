"""Predictions as text without a header: ``label:score label:score ...``, a line a row, an empty line for a row without any.

So write omikuji's and napkinXC's programs, and so are the lists printed that their Python packages return.
"""

from __future__ import annotations

import os
import re

from xcrepro.core.data.lines import real, shown, text_lines
from xcrepro.core.errors import DataError
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.entries import Entries, predicted, writing
from xcrepro.tools.formats.index import Index


def sniff(name: str, head: bytes) -> bool:
    """Whether the first line that is not empty is such a row."""
    line = next((line for line in head.split(b"\n") if line.strip()), b"")
    return re.match(rb"\s*\d+:[^\s:]+(\s|$)", line) is not None


def holds(head: bytes) -> tuple[str, ...]:
    """Predictions, whatever it begins with."""
    return ("predictions",)


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Labels may stand in any order; the scores rank them."""
    entries, row = Entries(path, index), -1
    for row, (line, text) in enumerate(text_lines(path)):
        for token in text.split():
            label, colon, score = token.rpartition(":")
            if not colon:
                expected = "label:score"
                raise DataError(path, shown(token), expected, line=line, do="A header or a comment has no place here")
            number = int(label) if re.fullmatch(r"0|[1-9][0-9]{0,17}", label) else label
            entries.add(line, row, number, real(path, line, score, "the score"))
    entries.has_rows(row + 1)
    return entries.top(k)


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """Best first, by label id."""
    with writing(path) as file:
        for row in range(len(top)):
            file.write(" ".join(f"{label}:{score}" for label, score in predicted(top, row)) + "\n")
