"""Rows as lists of pairs: text without a header, ``label:score label:score ...``, a line a row, as omikuji's and napkinXC's
programs write it; one JSON list, for each row a list of labels or of ``[label, score]`` pairs, as napkinXC returns them; one
JSON object, ``{row: {label: number}}``, as pytrec_eval and ranx take and ranx saves it.

A list of labels is a truth, or a ranking without scores; a list of pairs are predictions. Of an object a relevance above 0 is
relevant.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scipy import sparse

from xcrepro.core.data.lines import json_of, real, shown, text_lines
from xcrepro.core.data.sources import open_source
from xcrepro.core.errors import DataError
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.entries import Entries, check_finite, is_finite, predicted, relevant, with_ids, writing
from xcrepro.tools.formats.index import Index

_START = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{')


# ---------------------------------------------------------------- label:score


def sniff_pairs(name: str, head: bytes) -> bool:
    """Whether the first line that is not empty is such a row."""
    line = next((line for line in head.split(b"\n") if line.strip()), b"")
    return re.match(rb"\s*\d+:[^\s:]+(\s|$)", line) is not None


def holds_pairs(head: bytes) -> tuple[str, ...]:
    """Predictions, whatever it begins with."""
    return ("predictions",)


def read_predictions_pairs(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
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


def write_predictions_pairs(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """Best first, by label id."""
    with writing(path) as file:
        for row in range(len(top)):
            file.write(" ".join(f"{label}:{score}" for label, score in predicted(top, row)) + "\n")


# ---------------------------------------------------------------- a list of lists


def sniff_lists(name: str, head: bytes) -> bool:
    """Whether it begins with a list in a list, or is an empty one, and is no list a line."""
    start = b"".join(head.split())
    return start.startswith((b"[[", b"[]")) and not list_a_line(head)


def list_a_line(head: bytes) -> bool:
    """Whether each line is a JSON list of its own: a list of labels first, or several lists."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    found = json_of(lines[0]) if lines else None
    if not isinstance(found, list):
        return False
    plain = found != [] and all(type(one) in (str, int) for one in found)
    return plain or (len(lines) > 1 and lines[1].lstrip()[:1] in b"[n")


def holds_lists(head: bytes) -> tuple[str, ...]:
    """Pairs are predictions; labels may be either."""
    start = b"".join(head.split()).replace(b"[],", b"")
    return ("predictions",) if start.startswith(b"[[[") else ("truth", "predictions")


def read_truth_lists(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The labels of each row; their order means nothing."""
    entries, rows = Entries(path, index, typed=True), _rows(path, index, truth=True)
    for row, labels in enumerate(rows):
        for label in labels:
            entries.add(None, row, _label(path, row, label))
    entries.has_rows(len(rows))
    return entries.truth()


def read_predictions_lists(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Pairs are ranked by their scores; labels alone stand best first, and -1, -2, ... stand in for scores."""
    entries, rows = Entries(path, index, typed=True), _rows(path, index, truth=False)
    kinds = {isinstance(label, list) for labels in rows for label in labels}
    if len(kinds) > 1:
        raise DataError(path, "labels and [label, score] pairs together", "one kind throughout")
    for row, labels in enumerate(rows):
        for place, label in enumerate(labels):
            score = -1.0 - place
            if isinstance(label, list):
                if len(label) != 2 or not is_finite(label[1]):
                    raise DataError(path, f"{shown(label)} in row {row}", "[label, score], the score a finite number")
                label, score = label
            entries.add(None, row, _label(path, row, label), float(score))
    entries.has_rows(len(rows))
    return entries.top(k)


def _label(path: str | os.PathLike, row: int, label: object) -> str | int:
    if type(label) not in (str, int):
        raise DataError(path, f"{shown(label)} in row {row}", "a label, a whole number or a name")
    return label


def _rows(path: str | os.PathLike, index: Index, truth: bool) -> list[list]:
    rows = _whole(path, "one list of lists")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise DataError(path, "JSON of another kind", "a list with a list for each row")
    return [record["labels"] for _, record in with_ids(path, ((None, {"labels": row}) for row in rows), index, truth)]


def write_truth_lists(path: str | os.PathLike, Y, index: Index) -> None:
    """Label ids, a row a line."""
    _write(path, "[]", map(json.dumps, relevant(Y)))


def write_predictions_lists(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """[label, score] pairs, best first, a row a line."""
    check_finite(top, "JSON")
    texts = (", ".join(f"[{label}, {score}]" for label, score in predicted(top, row)) for row in range(len(top)))
    _write(path, "[]", (f"[{text}]" for text in texts))


# ---------------------------------------------------------------- an object of objects


def sniff_dictionary(name: str, head: bytes) -> bool:
    """Whether it begins with an object in an object."""
    return _START.match(head) is not None


def holds_dictionary(head: bytes) -> tuple[str, ...]:
    """Numbers with a point are scores; whole numbers may be either."""
    return ("predictions",) if re.search(rb":\s*-?\d*\.\d|:\s*-\d", head) else ("truth", "predictions")


def read_truth_dictionary(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The labels with a number above 0."""
    entries = Entries(path, index)
    for row, label, number in _pairs(path, index):
        if number < 0:
            raise DataError(path, f"{shown(number)} for {shown(label)}", "a relevance, 0 or more")
        entries.add(None, row, label, number)
    return entries.truth()


def read_predictions_dictionary(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The labels with their scores."""
    entries = Entries(path, index)
    for row, label, number in _pairs(path, index):
        entries.add(None, row, label, number)
    return entries.top(k)


def _pairs(path: str | os.PathLike, index: Index) -> Iterator[tuple[int | None, str, float]]:
    table = _whole(path, "one object of objects", object_pairs_hook=_each_once)
    if not isinstance(table, dict):
        raise DataError(path, "JSON of another kind", "one object, {row: {label: number}}")
    for name, labels in table.items():
        row = index.row(path, None, name)
        if not isinstance(labels, dict):
            raise DataError(path, f"{shown(labels)} for row {shown(name)}", "an object, {label: number}")
        for label, number in labels.items():
            if not is_finite(number):
                found = f"{shown(number)} for label {shown(label)} of row {shown(name)}"
                raise DataError(path, found, "a finite number")
            yield row, label, float(number)


def _each_once(pairs: list[tuple[str, object]]) -> dict:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"the key {twice!r} twice")
    return found


def write_truth_dictionary(path: str | os.PathLike, Y, index: Index) -> None:
    """A row without labels is an empty object."""
    rows = ({index.label_text(label): 1 for label in labels} for labels in relevant(Y))
    _write(path, "{}", _keyed(rows, index))


def write_predictions_dictionary(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """Best first."""
    check_finite(top, "JSON")
    pairs = (predicted(top, row) for row in range(len(top)))
    rows = ({index.label_text(label): float(score) for label, score in row} for row in pairs)
    _write(path, "{}", _keyed(rows, index))


def _keyed(rows: Iterable[dict], index: Index) -> Iterator[str]:
    return (f"{json.dumps(index.row_text(row))}: {json.dumps(labels)}" for row, labels in enumerate(rows))


# ---------------------------------------------------------------- JSON, read and written whole


def _whole(path: str | os.PathLike, expected: str, object_pairs_hook: Callable | None = None) -> Any:
    with open_source(path) as stream:
        try:
            return json.loads(stream.read(), object_pairs_hook=object_pairs_hook)
        except (ValueError, RecursionError) as error:
            raise DataError(path, f"no JSON ({error})", expected, do="Was the file cut?") from None


def _write(path: str | os.PathLike, ends: str, rows: Iterable[str]) -> None:
    with writing(path) as file:
        file.write(ends[0] + ",\n ".join(rows) + ends[1] + "\n")
