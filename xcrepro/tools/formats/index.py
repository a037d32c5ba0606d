"""Which row and which label a file means: by its number, or by a name that is looked up."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from xcrepro.core.arguments import one_of, whole_number
from xcrepro.core.data.lines import shown
from xcrepro.core.data.names import MATCHES, LabelNames
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.matrices import MAX_COLUMNS

UNKNOWN = ("refuse", "drop", "count")
"""What may become of a label that is none of those there are."""
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


class Index:
    """The rows and labels that files speak of.

    Parameters
    ----------
    n_labels : int, optional
        L; None: as many as ``label_names`` has, else the largest label id of the file and 1.
    label_names : LabelNames or sequence of str, optional
        With them, labels in files are names (or their codes); numbers from 0 still, where no label has a number for a name.
    row_ids : sequence of str, optional
        What files call the rows, in order.
    n_rows : int, optional
        Without ``row_ids``: rows in files are numbers below it.
    learn_rows : bool
        Without either: take row ids as they come, in order. For a truth whose predictions are read by the same index. Else row
        numbers must be 0 to n - 1 without a gap, for a row that is left out would move all behind it.
    n_features : int, optional
        Where a file does not say it.
    unknown : {"refuse", "drop", "count"}
        What becomes of a label that is none of those there are: an error; left out; or a label of its own, which nobody can
        predict rightly, or which nothing makes right. The same of a label that a row has a second time: an error; left out;
        in predictions a miss at its place.
    match : {"case", "plural", "nearest"}, optional
        How a text that is no name is taken for one (:data:`~xcrepro.core.data.names.MATCHES`); None: not at all.
    learn_labels : bool
        Without ``label_names``: take names of labels as they come, if the first label is none of the whole numbers.
    judged_only : bool
        Leave out rows that are none of those there are, in place of an error.
    by_rank : bool
        Take a column of ranks for the order, and not the scores.
    one_based : bool
        The repository's text counts ids from 1.

    Attributes
    ----------
    label_names : LabelNames or None
        A file that brings names of its own sets them where there are none.
    learns : bool
        Whether row ids are still taken as they come.
    named : set of int
        Rows that a file has called by a name or a number.
    left_out : dict of str to int
        What an unknown label is called -> how often it was left out, or counted as a label of its own.
    matched : dict of tuple (str, str) to int
        What a label is called, and the name that it was taken for -> how often.
    repeated : dict of str to int
        What a label is called -> how often a row of predictions had it a second time.
    unjudged : set of str
        What rows are called that were left out.
    """

    def __init__(
        self,
        n_labels: int | None = None,
        label_names: LabelNames | Sequence[str] | None = None,
        row_ids: Sequence[str] | None = None,
        n_rows: int | None = None,
        learn_rows: bool = False,
        n_features: int | None = None,
        unknown: str = "refuse",
        match: str | None = None,
        learn_labels: bool = False,
        judged_only: bool = False,
        by_rank: bool = False,
        one_based: bool = False,
    ) -> None:
        self.unknown = one_of("unknown", unknown, UNKNOWN)
        self.match = None if match is None else one_of("match", match, MATCHES)
        self.matched: dict[tuple[str, str], int] = {}
        self.repeated: dict[str, int] = {}
        self._matches: dict[str, str] = {}  # what a text was taken for; empty: nothing
        self.judged_only, self.by_rank, self.one_based = judged_only, by_rank, one_based
        self.learns_labels = learn_labels and label_names is None
        self.more: dict[str, int] = {}  # names that no list has -> their labels
        self.of_truth: LabelNames | None = None  # of the names that were learnt, those of the truth
        self._numbered = False  # whether labels are numbers, where names could be learnt
        self.left_out: dict[str, int] = {}
        self.named: set[int] = set()
        self.unjudged: set[str] = set()
        if label_names is not None and not isinstance(label_names, LabelNames):
            label_names = LabelNames(tuple(label_names))
        self.label_names = label_names
        self.n_labels = None if n_labels is None else whole_number("n_labels", n_labels, 1, MAX_COLUMNS)
        self.n_features = None if n_features is None else whole_number("n_features", n_features, 0, MAX_COLUMNS)
        if label_names is not None:
            if n_labels is not None and n_labels != len(label_names):
                raise ArgumentError("label_names", f"must name all {n_labels} labels", f"{len(label_names)} names")
            self.n_labels = len(label_names)
        self.n_rows = None if n_rows is None else whole_number("n_rows", n_rows, 0)
        self._rows: dict[str, int] | None = None
        self.learns = self._learnt = False
        if row_ids is not None:
            self._rows = {text: row for row, text in enumerate(row_ids)}
            if len(self._rows) != len(row_ids) or self.n_rows not in (None, len(row_ids)):
                rule = "must hold each id once" + ("" if n_rows is None else f", {n_rows} in all")
                raise ArgumentError("row_ids", rule, f"{len(row_ids)} ids, {len(self._rows)} of them different")
            self.n_rows = len(row_ids)
        elif self.n_rows is None and learn_rows:
            self._rows, self.learns, self._learnt = {}, True, True

    @property
    def has_row_ids(self) -> bool:
        """Whether rows are called by ids, given or learnt."""
        return bool(self._rows) or (self._rows is not None and not self.learns)

    @property
    def learnt(self) -> bool:
        """Whether row ids came from a file and not from the caller."""
        return self._learnt

    def stop_learning(self, n_rows: int) -> None:
        """All rows are known now: there are ``n_rows``; others are refused from here on."""
        if self.learns and self._rows:
            self.learns = False
        elif self.learns:  # the truth called its rows by their places
            self._rows, self.learns = None, False
        self.n_rows = n_rows

    def label(self, path: str | os.PathLike, line: int | None, text: str | int) -> int | None:
        """The id of the label that a file calls ``text``; None if it is left out; or a DataError that says why."""
        if self.more and (label := self.more.get(str(text))) is not None:
            if self.unknown == "count" and not self.learns_labels:
                self.left_out[str(text)] = self.left_out.get(str(text), 0) + 1
            return label
        if self.learns_labels:
            if isinstance(text, str) and (self.more or (self._number(text) is None and not self._numbered)):
                if (name := self._taken_for(text, self.of_truth)) is not None:
                    return self.more[name]
                if self.n_labels is not None and len(self.more) >= self.n_labels:
                    found = f"label {shown(text)}, one more than {self.n_labels}"
                    raise DataError(path, found, f"{self.n_labels} labels (--n-labels, n_labels=)", line=line)
                return self.more.setdefault(text, len(self.more))
            self._numbered = True
        try:
            return self._known(path, line, text)
        except DataError:
            names = self.label_names
            ambiguous = names is not None and isinstance(text, str) and names.is_ambiguous(text)
            if names is not None and not ambiguous and (name := self._taken_for(text, names)) is not None:
                return names.id(name)
            if self.unknown == "refuse" or ambiguous or self.n_labels is None:
                raise
        name = str(text)
        self.left_out[name] = self.left_out.get(name, 0) + 1
        if self.unknown == "drop":
            return None
        return self.more.setdefault(name, self.n_labels + len(self.more))

    def _taken_for(self, text: str | int, names: LabelNames | None) -> str | None:
        """The name that a text is taken for, by the rule that is asked for."""
        if self.match is None or names is None or not isinstance(text, str):
            return None
        name = self._matches.get(text)
        if name is None:
            name = self._matches[text] = names.matching(text, self.match)
        if not name or names.is_ambiguous(name):
            return None
        self.matched[text, name] = self.matched.get((text, name), 0) + 1
        return name

    def again(self, label: int, times: int) -> int | None:
        """The label of a place where a row of predictions has one once more, a miss; None if it is left out."""
        text = self.label_text(label)
        self.repeated[text] = self.repeated.get(text, 0) + 1
        if self.unknown == "drop":
            return None
        label = len(self.more) if self.learns_labels and self.more else self.width(0)
        return self.more.setdefault(f"{text} (again{f' {times}' * (times > 1)})", label)

    def taken(self) -> tuple[dict[str, int], int]:
        """``left_out`` so far, and how many were ``repeated``; both begin anew, for the next file."""
        found = self.left_out, sum(self.repeated.values())
        self.left_out, self.repeated = {}, {}
        return found

    def _known(self, path: str | os.PathLike, line: int | None, text: str | int) -> int:
        if self.label_names is not None and isinstance(text, str):
            if (label := self.label_names.id(text)) is not None:
                return label
            if self.label_names.is_ambiguous(text):
                found, expected = f"the name {shown(text)}, which two labels have", "a name of one label, or its code"
                raise DataError(path, found, expected, line=line)
            expected = f"one of the {len(self.label_names):,} label names"
            if self._number(text) is None or self.label_names.has_numbers:
                do = "Is it the label file of this dataset? --unknown drop|count (unknown=) reads on"
                if near := self.label_names.near(text):
                    do = f"Did you mean {shown(near)}? --match case (match=) reads it so"
                    do += "; --unknown drop|count (unknown=) reads on"
                raise DataError(path, f"label {shown(text)}", expected, line=line, do=do)
        label = self._number(text)
        most = (self.n_labels or MAX_COLUMNS) - 1
        if label is None and isinstance(text, str):
            do = "Name the file that has the labels' names, in the order of their ids (--labels, label_names=)"
            raise DataError(path, f"label {shown(text)}", "a label id, a whole number from 0", line=line, do=do)
        if label is None or label > most:
            do = "Is it the right file? --n-labels (n_labels=) says how many labels there are" if self.n_labels else ""
            raise DataError(path, f"label {shown(text)}", f"a whole number from 0 to {most}", line=line, do=do)
        return label

    def row(self, path: str | os.PathLike, line: int | None, text: str | int) -> int | None:
        """The row that a file calls ``text``; None if it is left out; or a DataError."""
        found = self._row(path, line, text)
        if found is not None:
            self.named.add(found)
        return found

    def _row(self, path: str | os.PathLike, line: int | None, text: str | int) -> int | None:
        if self._rows is not None:
            text = str(text)
            if text in self._rows:
                return self._rows[text]
            if self.learns:
                return self._rows.setdefault(text, len(self._rows))
            if self.judged_only:
                self.unjudged.add(text)
                return None
            expected = f"one of the {len(self._rows):,} row ids"
            do = "Do both files have the same rows?"
            if self._learnt:
                do += (
                    " The truth's were taken: --judged-only (judged_only=) leaves out the others; --rows (row_ids=) names "
                    "all, also those without labels"
                )
            raise DataError(path, f"row {shown(text)}", expected, line=line, do=do)
        row = self._number(text)
        if row is None:
            do = "Name the file that has the row ids, one a line, in the order of the rows (--rows, row_ids=)"
            raise DataError(path, f"row {shown(text)}", "a row number, from 0", line=line, do=do)
        if self.n_rows is not None and row >= self.n_rows and self.judged_only:
            self.unjudged.add(str(text))
            return None
        if self.n_rows is not None and row >= self.n_rows:
            raise DataError(path, f"row {row}", f"rows 0 to {self.n_rows - 1}", line=line)
        return row

    @staticmethod
    def _number(text: str | int) -> int | None:
        if isinstance(text, str):
            return int(text) if _WHOLE.fullmatch(text) else None
        return text if type(text) is int and 0 <= text < 10**18 else None

    def height(self, path: str | os.PathLike, seen: set[int]) -> int:
        """How many rows there are, where a file names the rows that it has something for."""
        if self.n_rows is not None:
            return self.n_rows
        if self._rows is not None:
            return len(self._rows)
        n = max(seen, default=-1) + 1
        if len(seen) < n:
            gap = next(row for row in range(n) if row not in seen)
            do = "Say how many rows there are (--n-rows, n_rows=), or what they are called (--rows, row_ids=)"
            raise DataError(path, f"nothing for row {gap}, but for row {n - 1}", "rows 0, 1, 2, ... each", do=do)
        return n

    def width(self, largest: int) -> int:
        """How many labels there are."""
        if self.learns_labels and self.more:
            return max(self.n_labels or 0, len(self.more))
        return self.n_labels + len(self.more) if self.n_labels is not None else max(largest + 1, 1)

    def all_names(self) -> LabelNames | None:
        """The labels' names, with those that came along; None where labels are numbers."""
        if self.learns_labels and self.more:
            more = [f"label {label}" for label in range(len(self.more), self.n_labels or 0)]
            return LabelNames((*self.more, *more))
        if self.label_names is None or not self.more:
            return self.label_names
        names, codes = self.label_names.names, self.label_names.codes
        return LabelNames((*names, *self.more), (*codes, *self.more) if codes else ())

    def label_text(self, label: int) -> str:
        """What a file is to call a label: its code, its name, its number."""
        held = 0 if self.learns_labels and self.more else self.n_labels or 0
        if self.more and label >= held:
            return [*self.more][label - held]
        if self.label_names is None:
            return str(label)
        return (self.label_names.codes or self.label_names.names)[label]

    def row_text(self, row: int) -> str:
        """What a file is to call a row."""
        if not self.has_row_ids:
            return str(row)
        return self._row_texts[row]

    @property
    def _row_texts(self) -> list[str]:
        if len(self.__dict__.setdefault("_texts", [])) != len(self._rows or ()):
            self._texts = list(self._rows or ())
        return self._texts

    def check_shape(self, n_rows: int, n_labels: int) -> None:
        """Refuse to write what has other rows or labels than there are names for."""
        for name, given, wanted in (("row_ids", self.n_rows, n_rows), ("label_names", self.n_labels, n_labels)):
            if given is not None and given != wanted:
                raise ArgumentError(name, f"must fit what is written, {wanted:,}", f"{given:,}")
