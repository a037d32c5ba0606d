"""What text formats are gathered into: one entry a relevant or predicted pair, with the line that it stood in."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import math
import os
import sys
import warnings
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

import numpy as np
from scipy import sparse

from xcrepro.core.data.lines import shown
from xcrepro.core.errors import ArgumentError, DataError, DataWarning
from xcrepro.core.matrices import MAX_COLUMNS
from xcrepro.core.paths import atomic_path
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth
from xcrepro.tools.formats.index import Index

MATRICES = ("Y", "X", "matrix", "scores", "ids")
"""The arguments that a file's content goes to, as errors call them."""

LOOKED_AT = 1000  # records that tell what labels are


class Entries:
    """Pairs of row and label, in any order, with a number; the ``index`` says who is meant."""

    def __init__(self, path: str | os.PathLike, index: Index, typed: bool = False, once: bool = False) -> None:
        self.path, self.index, self.typed, self._once = path, index, typed, once
        self.first: dict[str | int, tuple[str | os.PathLike, int | None]] = {}  # what a label is called -> where first
        self._codes: dict[str | int, int] = {}
        self._rows: Any = array("q")  # or all at once, a NumPy array
        self._labels: Any = array("q")
        self._scores: Any = array("d")
        self._lines, self._ranks = array("q"), array("d")
        self.n_columns = 0  # labels, where it has a column for each of them by number
        self._n_rows: int | None = None
        self._by_id: bool | None = None  # does each record say which row it is?
        self._seen: set[int] = set()

    def add(
        self,
        line: int | None,
        row: int | None,
        label: str | int,
        score: float = 1.0,
        rank: float | None = None,
        file: str | os.PathLike | None = None,
    ) -> None:
        """One pair; ``row`` is a place, None of what is left out; ``label`` what the file says. ``rank`` is a second word on
        the order, which is held to the scores, or taken in their place; ``file`` is one of several."""
        if row is None:
            return
        if self.index.by_rank:
            if rank is None or math.isnan(rank):
                raise DataError(self.path, "no rank", "a number in a column of ranks", line=line)
            score = -rank
        code = self.name(label, line, file)
        if rank is not None:
            self._ranks.append(rank)
        self._rows.append(row)
        self._labels.append(code)
        self._scores.append(score)
        self._lines.append(-1 if line is None else line)

    def fill(self, rows: np.ndarray, labels: list, codes: np.ndarray, scores: np.ndarray) -> None:
        """All pairs at once, without lines: the place of each one's row, -1 of what is left out, and which of the ``labels`` it
        has; these come in the order in which the file has them first."""
        if (rows < 0).any():
            import pandas as pd

            kept = rows >= 0
            codes, used = pd.factorize(codes[kept])
            rows, scores, labels = rows[kept], scores[kept], [labels[at] for at in used]
        if len(rows) and self.index.by_rank:
            self.add(None, 0, labels[0])  # which is refused: there is no rank
        self.first = dict.fromkeys(labels, (self.path, None))
        self._rows, self._labels, self._scores = rows, codes, scores

    def name(self, label: str | int, line: int | None, file: str | os.PathLike | None = None) -> int:
        """A number for a label while the file is read, whether it has a pair or not."""
        code = self._codes.get(label)
        if code is None:
            code = self._codes[label] = len(self._codes)
            self.first[label] = (file or self.path, line)
        return code

    def has_rows(self, n: int) -> None:
        """The file has these rows, in order, whether there are entries for them or not."""
        if self._by_id:
            return
        if self.index.n_rows is not None and self.index.n_rows != n:
            raise DataError(
                self.path, f"{n:,} rows", f"{self.index.n_rows:,}", do="Take both files from the same split"
            )
        self._n_rows = n

    def place(self, line: int | None, place: int, row: object) -> int | None:
        """The row of the ``place``-th record of a file, which calls it ``row`` (None: it does not)."""
        if self._by_id is None:
            # A record without an id, beside a truth that has them: in order, as in formats that have no ids.
            known = self.index.has_row_ids and not (self.index.learnt and row is None)
            self._by_id = known or (self.index.learns and row is not None)
        if not self._by_id:
            return place
        if type(row) not in (str, int):
            do = "Leave the row ids out (--rows, row_ids=) where the file has the rows in order"
            raise DataError(self.path, f"a record with the row id {shown(row)}", "a text or a number", line=line, do=do)
        number = self.index.row(self.path, line, str(row))
        if number in self._seen:
            raise DataError(self.path, f"row {shown(row)} again", "one record for each row", line=line)
        if number is not None:
            self._seen.add(number)
        return number

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        if self._n_rows is None:
            self._n_rows = self.index.height(self.path, self.index.named)
        return self._n_rows

    def truth(self) -> Any:
        """The relevant pairs, those with a number above 0, as ones; itself while labels wait."""
        if self.index.waits:
            return self
        found = self._csr(truth=True)
        self._rows = self._labels = self._scores = None  # are in the matrix, and nobody needs them twice
        return as_truth(found).to_csr()

    def top(self, k: int | None) -> Any:
        """The predictions, ranked; k None: all of them. Itself while labels wait."""
        if self.index.waits:
            return self
        scores = self._csr()
        self._hold_ranks()
        self._rows = self._labels = self._scores = None
        with of_file(self.path):
            return ranked(scores, k)

    def _hold_ranks(self) -> None:
        """Warn if a column of ranks says another order than the scores, in any place of any row."""
        if not self._ranks or len(self._ranks) != len(self._rows) or self.index.by_rank:
            return
        rows, scores, ranks = (np.asarray(part) for part in (self._rows, self._scores, self._ranks))
        order = np.lexsort((ranks, -scores, rows))
        rows, scores, ranks = rows[order], scores[order], ranks[order]
        said = (np.diff(rows) == 0) & (np.diff(scores) != 0) & (np.diff(ranks) != 0)
        against = said & (np.diff(ranks) < 0)
        if not against.any():
            return
        odd, every = np.unique(rows[:-1][against]), np.unique(rows[:-1][said])
        whole = every.size - np.unique(rows[:-1][said & ~against]).size
        text = f"{self.path}: in {odd.size:,} of {every.size:,} rows the column of ranks says another order than the scores"
        if whole:
            text += f", in {whole:,} the reverse, as where scores are distances or ranks and lower is better"
        text += ". The scores were taken, as trec_eval does; --by-rank (by_rank=) takes the ranks"
        warnings.warn(text, DataWarning, stacklevel=5)

    def _csr(self, truth: bool = False) -> sparse.csr_matrix:
        rows, codes, scores = (np.asarray(part) for part in (self._rows, self._labels, self._scores))
        n, labels = self.n_rows, self._looked_up(codes)
        if (labels < 0).any():  # left out
            rows, labels, scores, codes = (part[labels >= 0] for part in (rows, labels, scores, codes))
        found = self._matrix(rows, labels, scores, n)
        if found.has_canonical_format:
            return found
        order = np.lexsort((-scores, labels, rows))  # of a label that a row has twice, the better place first
        again = np.flatnonzero((np.diff(rows[order]) == 0) & (np.diff(labels[order]) == 0)) + 1
        if not self._once:
            self._refuse_again(order, again, rows, labels, codes)
        for at, times in zip(order[again], _run_lengths(again), strict=True):
            label = None if truth else self.index.again(int(labels[at]), times)
            labels[at] = -1 if label is None else label
        kept = labels >= 0
        return self._matrix(rows[kept], labels[kept], scores[kept], n)

    def _matrix(self, rows: np.ndarray, labels: np.ndarray, scores: np.ndarray, n: int) -> sparse.csr_matrix:
        """The scores at their places, a row's labels in order; a label that a row has twice is there twice."""
        width = self.index.width(int(labels.max(initial=-1)))
        if not (rows[1:] >= rows[:-1]).all():
            order = np.argsort(rows, kind="stable")
            rows, labels, scores = rows[order], labels[order], scores[order]
        indptr = np.searchsorted(rows, np.arange(n + 1, dtype=rows.dtype))
        found = sparse.csr_matrix((scores.copy(), labels.copy(), indptr), shape=(n, width))
        found.sort_indices()
        return found

    def _looked_up(self, codes: np.ndarray) -> np.ndarray:
        """The labels that are meant, -1 for what is left out."""
        index, most = self.index, self.index.n_labels or MAX_COLUMNS
        plain = index.label_names is None and not index.more
        if plain and all(type(label) is int and 0 <= label < most for label in self.first):
            return np.array([*self.first], np.int32)[codes]
        times = np.bincount(codes, minlength=len(self.first)).tolist()
        found = (
            index.label(file, line, text, self.typed, n)
            for (text, (file, line)), n in zip(self.first.items(), times, strict=True)
        )
        return np.array([-1 if label is None else label for label in found], np.int32)[codes]

    def _refuse_again(self, order, again, rows, labels, codes) -> None:
        """A label twice in a row, where it is not asked to be left out or to be a miss."""
        if self.index.unknown != "refuse" and (self.index.n_labels is not None or self.index.more):
            return
        at, before = sorted((int(order[again[0]]), int(order[again[0] - 1])), reverse=True)
        line = self._lines[at] if self._lines else -1
        row, label = self.index.row_text(int(rows[at])), self.index.label_text(int(labels[at]))
        found, expected = f"label {shown(label)} twice in row {row}", "each label once in a row"
        do = "--unknown drop|count (unknown=) leaves the second out, or counts it as a miss"
        texts = [*self.first]
        if codes[at] != codes[before]:  # two codes that became one label: neither is to go
            one, other = shown(texts[codes[before]]), shown(texts[codes[at]])
            found = f"{one} and {other} in row {row}, both read as label {shown(label)}"
            do = "Are they two labels? Then do without --match, or name both (--labels, label_names=)"
        raise DataError(self.path, found, expected, line=None if line < 0 else line, do=do)


def hot(rows: list, n_labels: int | None) -> bool | None:
    """Whether lists hold a 0 or a 1 for each label, as Hugging Face keeps a truth, and not ids: all are of one length, all
    values are 0 or 1, and one comes twice in a list or is no whole number. None where that cannot be told: lists of both ids.

    >>> hot([[0, 0, 1], [1, 0, 0]], None), hot([[0.0, 1.0]], None), hot([[0, 1], [1, 0]], None), hot([[0, 1], [2]], None)
    (True, True, None, False)
    """
    width = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    if width < 2 or any(not isinstance(row, list) or len(row) != width for row in rows):
        return False
    if any(type(value) not in (int, float, bool) or value not in (0, 1) for row in rows for value in row):
        return False
    if any(len({*row}) < width or not all(type(value) is int for value in row) for row in rows):
        return True
    return None if n_labels in (None, 2) and len(rows) > 1 else False


def with_ids(
    path: str | os.PathLike, records: Iterable[tuple[Any, dict]], index: Index, truth: bool
) -> Iterator[tuple[Any, dict]]:
    """Records with their lines; a truth's ``labels`` that are :func:`hot`, by the first records, as the places of ones."""
    records = iter(records)
    first = list(itertools.islice(records, LOOKED_AT))
    held = [record.get("labels") for _, record in first]
    found = hot(held, index.n_labels) if not any("scores" in record for _, record in first) else False
    if found is None:
        expected = "ids of labels, or a 0 or a 1 for each label"
        do = "Is [0, 1] both labels, or the second? Save a 0/1 truth with numpy.save, or give --n-labels (n_labels=)"
        raise DataError(path, "lists of two numbers, 0 and 1", expected, line=first[0][0], do=do)
    width = len(held[0] or ()) if found else 0
    if found and not truth:
        do = "Save them as a matrix (numpy.save), better the scores that they were cut from"
        raise DataError(path, f"lists of {width} zeros and ones", "labels, best first", line=first[0][0], do=do)
    if found:
        index.n_labels = index.n_labels or width
    for line, record in itertools.chain(first, records):
        if found:
            labels: Any = record.get("labels")
            if hot([held[0], labels], None) is False:
                expected = f"{width} numbers, 0 or 1, as in the first lists"
                raise DataError(path, f"labels: {shown(labels)}", expected, line=line)
            record = record | {"labels": [place for place, value in enumerate(labels) if value]}
        yield line, record


def table_rows(
    path: str | os.PathLike, lines: Iterable[tuple[int, str]], separator: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """The cells of a table's rows, each with the line in which it ends; a quoted text may go over several lines."""
    lines = iter(lines)
    line, first = next(lines, (1, ""))
    texts = (f"{text}\n" for text in itertools.chain([first], (text for _, text in lines)))
    table = csv.reader(texts, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for cells in table:
            if cells:
                yield line - 1 + table.line_num, cells
    except csv.Error as error:
        raise DataError(path, str(error), "a line of a table", line=line - 1 + table.line_num) from None


def _run_lengths(again: np.ndarray) -> list[int]:
    """How often a label stood in its row before, for each of these places in order of rows and labels."""
    found: list[int] = []
    for i, at in enumerate(again.tolist()):
        found.append(found[-1] + 1 if i and again[i - 1] == at - 1 else 1)
    return found


def ranked(scores, k: int | None) -> TopK:
    """``TopK.from_scores``; k None: as many places as the longest row has predictions."""
    if k is None:
        # Of a dense one the predictions are counted, too: a file of no rows may claim any number of columns.
        stored = np.diff(scores.indptr) if sparse.issparse(scores) else np.count_nonzero(scores != -np.inf, axis=1)
        k = int(stored.max(initial=1))
    return TopK.from_scores(scores, max(k, 1))


@contextlib.contextmanager
def writing(path: str | os.PathLike) -> Iterator[TextIO]:
    """A text file to write into, UTF-8, packed where its name ends in ``.gz``; it appears whole or not at all."""
    with atomic_path(path) as part, open(part, "wb") as raw:
        packed = gzip.GzipFile("", "wb", 6, raw, 0) if os.fspath(path).endswith(".gz") else raw
        with io.TextIOWrapper(packed, encoding="utf-8", newline="") as text:
            yield text


@contextlib.contextmanager
def of_file(path: str | os.PathLike) -> Iterator[None]:
    """Turn what is wrong with a matrix that came from a file into an error that names the file."""
    try:
        yield
    except ArgumentError as error:
        if error.argument not in MATRICES:
            raise
        raise DataError(path, str(error.got), f"values: {error.argument} {error.rule}", do=error.do) from error


def predicted(top: TopK, row: int) -> list[tuple[int, str]]:
    """(label, score as text) of a row's predictions, best first; the text reads back to the same float32."""
    places = zip(top.ids[row].tolist(), top.scores[row], strict=True)
    return [(label, str(score)) for label, score in places if label >= 0]


def relevant(Y) -> list[list[int]]:
    """The labels of each row."""
    truth = as_truth(Y)
    return [truth.indices[lo:hi].tolist() for lo, hi in zip(truth.indptr, truth.indptr[1:], strict=False)]


def check_finite(top: TopK, format: str) -> None:
    """JSON and Parquet files have no infinite scores."""
    if np.isposinf(top.scores).any():
        row, place = (int(i) for i in np.argwhere(np.isposinf(top.scores))[0])
        raise ArgumentError("top", f"must have finite scores for {format}", f"infinity at row {row}, place {place}")


def is_finite(value: object) -> bool:
    """A real number, as JSON has it, that float64 can hold; JSON's whole numbers may have any number of digits."""
    return isinstance(value, int | float) and type(value) is not bool and abs(value) <= sys.float_info.max
