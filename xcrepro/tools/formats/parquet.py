"""Parquet, with pyarrow (``pip install 'xcrepro[formats]'``).

Either a row of the table is a row of the data: ``labels``, a list, of predictions beside it ``scores``, a list of the same
length; or a row of the table is a pair: ``row``, ``label``, of predictions ``score``; of a truth perhaps ``relevance``, and
those above 0, or true, count; ranx's ``q_id``, ``doc_id``, ``score`` are read, too. A table without these has a column for
each label, as :mod:`xcrepro.tools.formats.wide`. Of a table of lists the rows stand in order, unless row ids are given: then
its column ``row`` says which row each is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from xcrepro.core import extras
from xcrepro.core.data.lines import shown
from xcrepro.core.data.sources import require_file
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.paths import atomic_path
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats import wide
from xcrepro.tools.formats.entries import LOOKED_AT, Entries, hot, predicted, relevant, with_ids
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
    extras.library("pyarrow.compute")
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
    entries, file = Entries(path, index, typed=True), _open(path)
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

    def column(name: str):
        return _column(path, file, back.get(name, name)) if name in wanted else None

    number, ends = "score" if scored else "relevance", None
    if lists:
        rows, labels, scores, ends = _flat(path, column, entries)
    else:
        texts, codes = _coded(path, column("row"), "row", "a row number or a row id")
        places = [index.row(path, None, text) for text in texts]
        rows = _placed(places)[codes]
        labels, scores = column("label"), None
    texts, codes = _coded(path, labels, "label", "a whole number or a name", ends)
    del labels  # these columns are the most of what is in memory
    scores = column(number) if scores is None else scores
    entries.fill(rows, texts, codes, _numbers(path, scores, number, ends, len(rows)))
    return entries


def _flat(path: str | os.PathLike, column: Callable, entries: Entries) -> tuple[np.ndarray, Any, Any, np.ndarray]:
    """Of lists the place of each pair's row, the labels and scores one after another, and where each row's end."""
    pa, labels, scores = _pyarrow(), column("labels"), column("scores")
    if scores is None and hot(_values(path, labels[:LOOKED_AT]), entries.index.n_labels) is not False:
        records = ((None, {"labels": values}) for values in _values(path, labels))
        labels = pa.chunked_array([[record["labels"] for _, record in with_ids(path, records, entries.index, True)]])
    named = column("row")
    ids = [None] * len(labels) if named is None else _values(path, named)
    places = [entries.place(None, at, row) for at, row in enumerate(ids)]
    entries.has_rows(len(places))
    sizes, others = (_lengths(pa.types, labels if part is None else part) for part in (labels, scores))
    if len(odd := np.flatnonzero(~(sizes == others))):
        found = ", ".join(shown(_values(path, part[odd[0] :][:1])[0]) for part in (labels, scores) if part is not None)
        raise DataError(path, f"labels and scores {found} in row {odd[0]} of the table", "lists of one length")
    rows = _placed(places).repeat(sizes.astype(np.int64))
    labels, scores = (None if part is None else pa.compute.list_flatten(part) for part in (labels, scores))
    return rows, labels, scores, sizes.cumsum()


def _placed(places: list[int | None]) -> np.ndarray:
    """The rows that are meant, -1 of what is left out; half the memory of 64 bits, once there is one for each pair."""
    return np.array([-1 if row is None else row for row in places], np.int32)


def _lengths(types, column) -> np.ndarray:
    """How long each list is, NaN of what is none."""
    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _pyarrow().compute.list_value_length(column).to_numpy().astype(np.float64)
    return np.full(len(column), np.nan)


def _coded(path: str | os.PathLike, column, what: str, expected: str, ends=None) -> tuple[list, np.ndarray]:
    """A column's texts or whole numbers, in the order in which it has them first, and which of them each place has."""
    types = _pyarrow().types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    known = types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)
    _refuse(path, column, column.is_null().to_numpy() if known else np.ones(len(column), bool), what, expected, ends)
    chunks = column.cast(kind).dictionary_encode().chunks if known else []
    codes = np.concatenate([np.zeros(0, np.int32), *(chunk.indices.to_numpy() for chunk in chunks)])
    return _values(path, chunks[-1].dictionary) if chunks else [], codes


def _numbers(path: str | os.PathLike, column, what: str, ends, n: int) -> np.ndarray:
    """The scores; or relevances, which may be true or false; ones without a column of them."""
    if column is None:
        return np.ones(n, np.float32)
    types, truth = _pyarrow().types, what == "relevance"
    if types.is_integer(column.type) or types.is_floating(column.type) or (truth and types.is_boolean(column.type)):
        values = column.to_numpy()
        values = values.astype(np.float32 if types.is_float32(column.type) else np.float64, copy=False)
    else:
        values = np.full(len(column), np.nan)
    expected = "a number, 0 or more, or true or false" if truth else "a number"
    _refuse(path, column, ~(values >= 0) if truth else np.isnan(values), what, expected, ends)
    return values


def _refuse(path: str | os.PathLike, column, odd: np.ndarray, what: str, expected: str, ends) -> None:
    """Refuse the first value of a column that is odd, if there is one."""
    if not odd.any():
        return
    at = int(odd.argmax())
    row = at if ends is None else int(np.searchsorted(ends, at, "right"))
    raise DataError(path, f"{what} {shown(_values(path, column[at:][:1])[0])} in row {row} of the table", expected)


def _wide(path: str | os.PathLike, index: Index, file, truth: bool) -> Entries:
    """A table with a column for each label, read as its CSV is."""
    names = [name for name in file.schema_arrow.names if name != _INDEX]
    first = [_INDEX] * (_INDEX in file.schema_arrow.names) + names
    columns = (_values(path, _column(path, file, name)) for name in first)
    body = [(None, ["" if value is None else str(value) for value in cells]) for cells in zip(*columns, strict=True)]
    return wide.read_cells(path, index, truth, None, ["id" if name == _INDEX else name for name in first], body)


def _open(path: str | os.PathLike):
    pyarrow = _pyarrow()
    require_file(path)
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:  # the last for names that are no UTF-8
        raise DataError(path, f"no readable Parquet file ({error})", "one", do="Make or fetch it again") from None


@contextlib.contextmanager
def _reading(path: str | os.PathLike) -> Iterator[None]:
    try:
        yield
    except (
        _pyarrow().ArrowException,
        OSError,
        ValueError,
        OverflowError,
    ) as error:  # the last for dates beyond Python's
        do = "Make or fetch it again"
        raise DataError(path, f"a damaged Parquet file ({error})", "a whole one", do=do) from None


def _column(path: str | os.PathLike, file, name: str):
    with _reading(path):
        found = file.read([name], use_threads=False).column(0)
    _pyarrow().default_memory_pool().release_unused()  # it would keep what decoding took
    return found


def _values(path: str | os.PathLike, column) -> list:
    with _reading(path):
        return column.to_pylist()


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
