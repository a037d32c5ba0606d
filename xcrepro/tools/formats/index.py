"""Which row and which label a file means: by its number, or by a name that is looked up.

A name is never an id. A JSON number is an id, and so is a place in a matrix. A JSON string is a name, and so is a text that
is no whole number as one writes it ("0389", "+1", "12.0"). A text that is one, in a table or a run, may be either, and what
else is known decides: a list of names, the labels that a matrix has, ``n_labels``; :meth:`Index.settle` has the rule.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Sequence
from typing import Any

from xcrepro.core.arguments import one_of, whole_number
from xcrepro.core.data.lines import shown
from xcrepro.core.data.names import MATCHES, LabelNames, bare, composed, difference
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.matrices import MAX_COLUMNS

UNKNOWN = ("refuse", "drop", "count")
"""What may become of a label that is none of those there are."""
LABELS_ARE = ("ids", "names")
"""What whole numbers that text files call labels by may be."""
_WHOLE = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)


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
        What files call labels waits until all files are read (:meth:`settle`); readers then give back their
        :class:`~xcrepro.tools.formats.entries.Entries`. Without ``label_names`` names are taken from the files.
    labels_are : {"ids", "names"}, optional
        What whole numbers are that text files call labels by; None: as :meth:`settle` finds.
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
    outside : int
        Labels of ``label_names`` that only predictions have, of those that were learnt: averages over labels leave them out.
    done : dict of str to int
        What was done to answers of a language model (:data:`~xcrepro.tools.formats.answers.RULES`) -> to how many.
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
        labels_are: str | None = None,
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
        self.waits = learn_labels
        self.begins = True  # no file that names labels has been read, which the next may give a list
        self.labels_are = None if labels_are is None else one_of("labels_are", labels_are, LABELS_ARE)
        self.more: dict[str, int] = {}  # names that no list has -> their labels
        self.of_truth: LabelNames | None = None  # of the names that were learnt, those of the truth
        self.n_learnt = self.outside = 0  # names that were learnt, and of these those of predictions alone
        self.numbers_were = ""  # what whole numbers in text files were taken for
        self.left_out: dict[str, int] = {}
        self.done: dict[str, int] = {}  # what was done to answers that are no plain lists -> to how many
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

    def for_other_rows(self) -> Index:
        """The same labels for a file of other rows, whose ids are learnt from it; counts of what it leaves out are its own."""
        other = copy.copy(self)
        other._rows, other.learns, other._learnt, other.n_rows, other.judged_only = {}, True, True, None, False
        other.left_out, other.repeated, other.named, other.unjudged = {}, {}, set(), set()
        return other

    def settle(
        self,
        held: Sequence[tuple[str | os.PathLike, Any]],
        by_id: str | os.PathLike | None = None,
        n_known: int | None = None,
    ) -> None:
        """Decide what is meant by the labels of some files, read but not looked up yet.

        They are names if one is a name, and get ids by their order (whole numbers by size, if all are); ids if one is an id or
        a matrix has columns, below the number of labels that ``n_labels`` or the matrix says. If all are whole numbers in
        text files, they are ids if all are below ``n_labels``, and else names. Names beside ids are refused, for nothing says
        which is which.

        Parameters
        ----------
        held : sequence of (path, Entries or matrix or TopK)
        by_id : str or path_like, optional
            What else calls labels by ids.
        n_known : int, optional
            So many of them, the first, say which labels there are: the truth and the training truth. None: more files come,
            which are waited for unless these settle it.
        """
        if self.label_names is not None:
            self.waits = False
        if not self.waits:
            return
        names, ids, numbers, most = None, (by_id, None, "ids of labels") if by_id else None, False, -1
        for path, found in held:
            first = getattr(found, "first", None)
            if first is None or found.n_columns:
                width = found.n_columns if first is not None else getattr(found, "n_labels", None) or found.shape[1]
                ids = ids or (path, None, f"a column for each of {width:,} labels")
                self.n_labels = self.n_labels or width
                continue
            for text, (file, line) in first.items():
                if not isinstance(text, str) and self.labels_are != "names":
                    ids = ids or (file, line, f"label {text}, an id")
                elif isinstance(text, str) and (found.typed or not _WHOLE.fullmatch(text)):
                    names = names or (file, line, text)
                else:
                    numbers, most = True, max(most, int(text))
                    if self.labels_are == "names":
                        names = names or (file, line, text)
        for path, found in held:  # pandas makes 12.0 of 12 where a cell of the column is empty
            held_here = [text for text in getattr(found, "first", ()) if isinstance(text, str)]
            odd = [text for text in held_here if re.fullmatch(r"\d+\.0", text)]
            if odd and self.labels_are is None and all(re.fullmatch(r"\d+(\.0)?", text) for text in held_here):
                do = "Save the column as whole numbers (astype('Int64')); --labels-are names (labels_are=) takes names"
                raise DataError(path, f"label {shown(odd[0])}", "an id or a name", line=found.first[odd[0]][1], do=do)
        if names and ids and self.labels_are != "ids":
            do = (
                "Give the names in the order of their ids (--labels, label_names=); a code in JSON is a text, in quotes"
            )
            expected = f"a label's name, as {os.fspath(names[0])} has ({shown(names[2])})"
            raise DataError(ids[0], ids[2], expected, line=ids[1], do=do)
        if n_known is None and not ids:
            self.begins = False
            return
        self.waits = False
        as_ids = self.labels_are == "ids" or ids or (not names and most < (self.n_labels or 0))
        self.numbers_were = "ids" * numbers if as_ids else "" if names else "names"
        if (names or numbers) and not as_ids:
            texts = [[*map(str, found.first)] for _, found in held]
            self._learn(texts, n_known, by_size=all(_WHOLE.fullmatch(text) for part in texts for text in part))

    def _learn(self, texts: list[list[str]], n_known: int | None, by_size: bool) -> None:
        """Take the names of files for the list of names; ``n_known`` as in :meth:`settle`."""
        texts = [[*map(composed, part)] for part in texts]
        known = {text for part in texts[:n_known] for text in part}
        self.of_truth = LabelNames(tuple(sorted(texts[0])))
        more = {text for part in texts[1:] for text in part} - known
        more = {text for text in more if self.of_truth.id(bare(text)) is None}
        more = {text for text in more if not (self.match and self.of_truth.matching(text, self.match))}
        names = sorted(known | more, key=int if by_size else None)
        if self.n_labels is not None and len(names) > self.n_labels:
            do = "--n-labels (n_labels=) says how many there are"
            raise ArgumentError("n_labels", f"must be {len(names):,} or more, as many as files name", self.n_labels, do)
        self.n_learnt, self.outside = len(names), 0 if self.n_labels else len(more)
        names += [f"label {label}" for label in range(len(names), self.n_labels or 0)]
        self.label_names, self.n_labels = LabelNames(tuple(names)), len(names)

    def label(
        self, path: str | os.PathLike, line: int | None, text: str | int, typed: bool = False, times: int = 1
    ) -> int | None:
        """The id of the label that a file calls ``text``, so many ``times``; ``typed``: a text is a name, as in JSON. None if
        it is left out; or a DataError that says why."""
        if self.more and (label := self.more.get(str(text))) is not None:
            if self.unknown == "count":
                self.left_out[str(text)] = self.left_out.get(str(text), 0) + times
            return label
        if self.n_learnt:
            text = str(text)
        try:
            return self._known(path, line, text, typed)
        except DataError:
            names = self.label_names
            ambiguous = names is not None and isinstance(text, str) and names.is_ambiguous(text)
            if names is not None and not ambiguous and isinstance(text, str):
                if (label := names.id(bare(text))) is not None:
                    self.done["bare"] = self.done.get("bare", 0) + times
                    return label
                name = self._taken_for(text, self.of_truth or names, times)
                if name is not None:
                    return names.id(name)
            if self.unknown == "refuse" or ambiguous or self.n_labels is None:
                raise
        name = str(text)
        self.left_out[name] = self.left_out.get(name, 0) + times
        if self.unknown == "drop":
            return None
        return self.more.setdefault(name, self.n_labels + len(self.more))

    def _taken_for(self, text: str | int, names: LabelNames, times: int) -> str | None:
        """The name that a text is taken for, by the rule that is asked for."""
        if self.match is None or not isinstance(text, str):
            return None
        name = self._matches.get(text)
        if name is None:
            name = self._matches[text] = names.matching(text, self.match)
        if not name or names.is_ambiguous(name):
            return None
        self.matched[text, name] = self.matched.get((text, name), 0) + times
        return name

    def again(self, label: int, times: int) -> int | None:
        """The label of a place where a row of predictions has one once more, a miss; None if it is left out."""
        text = self.label_text(label)
        self.repeated[text] = self.repeated.get(text, 0) + 1
        if self.unknown == "drop":
            return None
        return self.more.setdefault(f"{text} (again{f' {times}' * (times > 1)})", self.width(0))

    def taken(self) -> tuple[dict[str, int], int]:
        """``left_out`` so far, and how many were ``repeated``; both begin anew, for the next file."""
        found = self.left_out, sum(self.repeated.values())
        self.left_out, self.repeated = {}, {}
        return found

    def _known(self, path: str | os.PathLike, line: int | None, text: str | int, typed: bool = False) -> int:
        if self.label_names is not None and isinstance(text, str):
            if (label := self.label_names.id(text)) is not None:
                return label
            if self.label_names.is_ambiguous(text):
                same = self.label_names.called(text)[:2]
                found = f"the name {shown(text)}, which labels {same[0]} and {same[-1]} have "
                found += f"(lines {same[0] + 1} and {same[-1] + 1} of a list with a name a line)"
                expected = "a name of one label, or its code"
                raise DataError(path, found, expected, line=line)
            expected = f"one of the {len(self.label_names):,} label names"
            if typed or self._number(text) is None or self.label_names.has_numbers:
                do = "Is it the label file of this dataset? --unknown drop|count (unknown=) reads on"
                if near := self.label_names.near(text):
                    differs = difference(text, near)
                    do = f"Did you mean {shown(near)}? {differs}{'. ' * bool(differs)}--match case (match=) reads it so"
                    do += "; --unknown drop|count (unknown=) reads on"
                raise DataError(path, f"label {shown(text)}", expected, line=line, do=do)
        label = None if typed and isinstance(text, str) else self._number(text)
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
            if text in self._rows or self.learns:
                return self._rows.setdefault(text, len(self._rows))
            expected, do = f"one of the {len(self._rows):,} row ids", "Do both files have the same rows?"
            if self._learnt:
                do += " The truth's were taken: --judged-only (judged_only=) leaves out the others; --rows (row_ids=) names "
                do += "all, also those without labels"
        else:
            row = self._number(text)
            if row is None:
                do = "Name the file that has the row ids, one a line, in the order of the rows (--rows, row_ids=)"
                raise DataError(path, f"row {shown(text)}", "a row number, from 0", line=line, do=do)
            if self.n_rows is None or row < self.n_rows:
                return row
            expected, do = f"rows 0 to {self.n_rows - 1}", ""
        if not self.judged_only:
            raise DataError(path, f"row {shown(text)}", expected, line=line, do=do)
        self.unjudged.add(str(text))
        return None

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
        return self.n_labels + len(self.more) if self.n_labels is not None else max(largest + 1, 1)

    def all_names(self) -> LabelNames | None:
        """The labels' names, with those that came along; None where labels are numbers."""
        if self.label_names is None or not self.more:
            return self.label_names
        names, codes = self.label_names.names, self.label_names.codes
        return LabelNames((*names, *self.more), (*codes, *self.more) if codes else ())

    def label_text(self, label: int) -> str:
        """What a file is to call a label: its code, its name, its number."""
        held = self.n_labels or 0
        if self.more and label >= held:
            return [*self.more][label - held]
        if self.label_names is None:
            return str(label)
        return (self.label_names.codes or self.label_names.names)[label]

    def label_value(self, label: int) -> str | int:
        """What a file with types is to call a label: as :meth:`label_text`, or by its number, which is none there."""
        return label if self.label_names is None else self.label_text(label)

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
