"""One JSON object, ``{row: {label: number}}``, as pytrec_eval and ranx take and ranx saves it: a qrels with whole numbers, or a
run with scores. A relevance above 0 is relevant."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

from scipy import sparse

from xcrepro.core.data.lines import shown
from xcrepro.core.data.sources import open_source
from xcrepro.core.errors import DataError
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.entries import Entries, check_finite, is_finite, predicted, relevant, writing
from xcrepro.tools.formats.index import Index

_START = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{')


def sniff(name: str, head: bytes) -> bool:
    """Whether it begins with an object in an object."""
    return _START.match(head) is not None


def holds(head: bytes) -> tuple[str, ...]:
    """Numbers with a point are scores; whole numbers may be either."""
    return ("predictions",) if re.search(rb":\s*-?\d*\.\d|:\s*-\d", head) else ("truth", "predictions")


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The labels with a number above 0."""
    entries = Entries(path, index)
    for row, label, number in _pairs(path, index):
        if number < 0:
            raise DataError(path, f"{shown(number)} for {shown(label)}", "a relevance, 0 or more")
        entries.add(None, row, label, number)
    return entries.truth()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The labels with their scores."""
    entries = Entries(path, index)
    for row, label, number in _pairs(path, index):
        entries.add(None, row, label, number)
    return entries.top(k)


def _pairs(path: str | os.PathLike, index: Index) -> Iterator[tuple[int | None, str, float]]:
    with open_source(path) as stream:
        try:
            table = json.loads(stream.read(), object_pairs_hook=_each_once)
        except (ValueError, RecursionError) as error:
            raise DataError(path, f"no JSON ({error})", "one object of objects", do="Was the file cut?") from None
    if not isinstance(table, dict):
        raise DataError(path, "JSON of another kind", "one object, {row: {label: number}}")
    for name, labels in table.items():
        row = index.row(path, None, name)
        if not isinstance(labels, dict):
            raise DataError(path, f"{shown(labels)} for row {shown(name)}", "an object, {label: number}")
        for label, number in labels.items():
            if isinstance(number, bool) or not is_finite(number):
                raise DataError(
                    path, f"{shown(number)} for label {shown(label)} of row {shown(name)}", "a finite number"
                )
            yield row, label, float(number)


def _each_once(pairs: list[tuple[str, object]]) -> dict:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"the key {twice!r} twice")
    return found


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """A row without labels is an empty object."""
    _write(path, ({index.label_text(label): 1 for label in labels} for labels in relevant(Y)), index)


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """Best first."""
    check_finite(top, "JSON")
    rows = (predicted(top, row) for row in range(len(top)))
    _write(path, ({index.label_text(label): float(score) for label, score in row} for row in rows), index)


def _write(path: str | os.PathLike, rows: Iterator[dict], index: Index) -> None:
    with writing(path) as file:
        lines = (f"{json.dumps(index.row_text(row))}: {json.dumps(labels)}" for row, labels in enumerate(rows))
        file.write("{" + ",\n ".join(lines) + "}\n")
