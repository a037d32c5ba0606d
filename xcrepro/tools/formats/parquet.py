"""Parquet, with pyarrow (``pip install 'xcrepro[formats]'``).

Either a row of the table is a row of the data: ``labels``, a list, of predictions beside it ``scores``, a list of the same
length; or a row of the table is a pair: ``row``, ``label``, of predictions ``score``; of a truth perhaps ``relevance``, and
those above 0, or true, count; ranx's ``q_id``, ``doc_id``, ``score`` are read, too. A table without these has a column for
each label, as :mod:`xcrepro.tools.formats.wide`. Of a table of lists the rows stand in order, unless row ids are given: then
its column ``row`` says which row each is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from scipy import sparse

from xcrepro.core import extras
from xcrepro.core.data.lines import shown
from xcrepro.core.data.sources import require_file
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.paths import atomic_path
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats import wide
from xcrepro.tools.formats.entries import Entries, predicted, relevant, with_ids
from xcrepro.tools.formats.index import Index

_RANX = {"q_id": "row", "doc_id": "label"}
"""ranx's columns, and what they are here."""
_INDEX = "__index_level_0__"
"""pandas' name for the index of a table."""
_KNOWN = ("row", "label", "labels", "score", "scores", "relevance", "rank")


def sniff(name: str, head: bytes) -> bool:
    """Whether it begins as Parquet files do."""
    return head.startswith(b"PAR1")


def _pyarrow():
    extras.library("pyarrow.parquet", "or write CSV or JSON lines")
    return extras.library("pyarrow")


def holds_file(path: str | os.PathLike) -> tuple[str, ...]:
    """By the columns."""
    names = set(_open(path).schema_arrow.names)
    if {*_RANX} <= names or not {"labels", "row", "label"} & names:
        return ("truth", "predictions")
    return ("predictions",) if names & {"score", "scores"} else ("truth",)


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The relevant pairs."""
    return _read(path, index, scored=False).truth()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The predicted pairs with their scores."""
    return _read(path, index, scored=True).top(k)


def _read(path: str | os.PathLike, index: Index, scored: bool) -> Entries:
    entries, n, file = Entries(path, index, typed=True), 0, _open(path)
    columns = set(file.schema_arrow.names)
    if not {"labels", "row", "label"} & columns and not {*_RANX} <= columns:
        return _wide(path, index, file, truth=not scored)
    if twice := [name for name in _KNOWN if file.schema_arrow.names.count(name) > 1]:
        raise DataError(path, f"the column {twice[0]} more than once", "each column once")
    names = {} if "label" in columns else {name: other for name, other in _RANX.items() if name in columns}
    lists = "labels" in columns
    if names and not scored:
        names |= {"score": "relevance"}
    columns = {names.get(name, name) for name in columns}
    wanted = ["labels"] if lists else ["row", "label"]
    wanted += (["scores"] if lists else ["score"]) * scored
    if missing := [name for name in wanted if name not in columns]:
        raise DataError(path, f"the columns {shown(', '.join(sorted(columns)))}", f"also {', '.join(missing)}")
    if not scored and columns & {"score", "scores"}:
        raise DataError(path, "a column of scores, which predictions have", "a truth: labels, or row and label")
    wanted += sorted({"row", *([] if lists or scored else ["relevance"])} & columns - {*wanted})
    back = {other: name for name, other in names.items()}
    records = (
        (None, {names.get(name, name): value for name, value in given.items()})
        for given in _records(path, file, [back.get(name, name) for name in wanted])
    )
    for n, (_, record) in enumerate(with_ids(path, records, index, not scored) if lists else records, 1):
        where = f"in row {n - 1} of the table"
        if not lists:
            if type(record["row"]) not in (str, int):
                raise DataError(path, f"row {shown(record['row'])} {where}", "a row number or a row id")
            row = index.row(path, None, record["row"])
            number = record["score"] if scored else _relevance(path, where, record.get("relevance", 1))
            _add(entries, where, row, [record["label"]], [number])
            continue
        row, labels = entries.place(None, n - 1, record.get("row")), record["labels"]
        scores = record["scores"] if scored else [1.0] * (len(labels) if isinstance(labels, list) else 0)
        if not isinstance(labels, list) or not isinstance(scores, list) or len(scores) != len(labels):
            raise DataError(path, f"labels {shown(labels)}, scores {shown(scores)} {where}", "lists of one length")
        _add(entries, where, row, labels, scores)
    if lists:
        entries.has_rows(n)
    return entries


def _wide(path: str | os.PathLike, index: Index, file, truth: bool) -> Entries:
    """A table with a column for each label, read as its CSV is."""
    names = [name for name in file.schema_arrow.names if name != _INDEX]
    first = [_INDEX] * (_INDEX in file.schema_arrow.names) + names
    body = [
        (None, ["" if value is None else str(value) for value in (record[name] for name in first)])
        for record in _records(path, file, first)
    ]
    return wide.read_cells(path, index, truth, None, ["id" if name == _INDEX else name for name in first], body)


def _relevance(path: str | os.PathLike, where: str, value: object) -> float:
    """A number, or true or false."""
    if isinstance(value, bool):
        return float(value)
    if type(value) not in (int, float) or not value >= 0:
        raise DataError(path, f"relevance {shown(value)} {where}", "a number, 0 or more, or true or false")
    return float(value)


def _add(entries: Entries, where: str, row: int, labels: list, scores: list) -> None:
    for label, score in zip(labels, scores, strict=True):
        if type(label) not in (str, int):
            raise DataError(entries.path, f"label {shown(label)} {where}", "a whole number or a name")
        if type(score) not in (int, float) or math.isnan(score):
            raise DataError(entries.path, f"score {shown(score)} {where}", "a number")
        entries.add(None, row, label, float(score))


def _open(path: str | os.PathLike):
    pyarrow = _pyarrow()
    require_file(path)
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:  # the last for names that are no UTF-8
        raise DataError(path, f"no readable Parquet file ({error})", "one", do="Make or fetch it again") from None


def _records(path: str | os.PathLike, file, columns: list[str]) -> Iterator[dict]:
    pyarrow = _pyarrow()
    try:
        for batch in file.iter_batches(columns=columns):
            yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:  # the last for dates beyond Python's
        do = "Make or fetch it again"
        raise DataError(path, f"a damaged Parquet file ({error})", "a whole one", do=do) from None


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """A row of the table for each row, ``labels``."""
    _write(path, {"labels": [[index.label_value(label) for label in labels] for labels in relevant(Y)]}, index)


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """A row of the table for each row, ``labels`` and ``scores`` (float32), best first."""
    ids = [[label for label, _ in predicted(top, row)] for row in range(len(top))]
    scores = [top.scores[row, : len(labels)].tolist() for row, labels in enumerate(ids)]
    _write(
        path, {"labels": [[index.label_value(label) for label in labels] for labels in ids], "scores": scores}, index
    )


def _write(path: str | os.PathLike, columns: dict[str, list], index: Index) -> None:
    if not os.fspath(path).endswith(".parquet"):
        raise ArgumentError("path", "must end in .parquet, which is packed inside", repr(os.fspath(path)))
    pa = _pyarrow()
    types = {
        "labels": pa.list_(pa.int32() if index.label_names is None else pa.string()),
        "scores": pa.list_(pa.float32()),
    }
    arrays = {name: pa.array(values, types[name]) for name, values in columns.items()}
    if index.has_row_ids:
        rows = [index.row_text(row) for row in range(len(columns["labels"]))]
        arrays = {"row": pa.array(rows, pa.string()), **arrays}
    with atomic_path(path) as part:
        pa.parquet.write_table(pa.table(arrays), part)
