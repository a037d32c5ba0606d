"""The names of labels and of rows: the files that hold them, and who is meant by a name.

A file of label names is one of these, told by its content; plain, ``.gz`` or ``.zip``:

================================  =====================================================================================
in each line                      where it is met
================================  =====================================================================================
a name                            ``Y.txt`` of raw text, PECOS' ``output-items.txt``, ``labels.txt``; line n is label n - 1
``id<TAB>name``                   a label map, ids 0 to L - 1 in any order
``code->name``                    ``Y.map`` and raw label files of the LF datasets; line n is label n - 1
``<uri><TAB>name``                Annif's subject vocabulary; line n is label n - 1
a JSON object with ``title``      ``lbl.json.gz`` of the LF datasets; its ``uid`` is a code
one JSON list, or object          names in the order of the ids; name to id, or id to name
================================  =====================================================================================

A form counts only where every line has it; otherwise the line as a whole is the name. Names need not be unique (titles of
products are not): only who looks one up that two labels have is refused.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property

from xcrepro.data.lines import check_text, json_of, shown, text_lines
from xcrepro.errors import ArgumentError, DataError
from xcrepro.paths import atomic_path


@dataclass(frozen=True)
class LabelNames:
    """The names of L labels by id, and what they are called elsewhere (URIs, item numbers), empty where there is nothing."""

    names: tuple[str, ...]
    codes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _ids(self) -> dict[str, int]:
        """Name or code -> id, a code before a name; -1 for what two labels are called."""
        ids: dict[str, int] = {}
        for texts in (self.names, self.codes):
            of_these: dict[str, int] = {}
            for label, text in enumerate(texts):
                of_these[text] = -1 if text in of_these else label
            ids |= of_these
        return ids

    @cached_property
    def has_numbers(self) -> bool:
        """Whether a label has a whole number for a name or code, so that numbers in files cannot be ids."""
        return any(text.isdecimal() for text in (*self.names, *self.codes))

    def id(self, text: str) -> int | None:
        """The label with this name or code; None where there is none, or more than one."""
        label = self._ids.get(text)
        return None if label is None or label < 0 else label

    def is_ambiguous(self, text: str) -> bool:
        """Whether two labels have this name."""
        return self._ids.get(text) == -1


def read_label_names(path: str | os.PathLike, n_labels: int | None = None) -> LabelNames:
    """Read a file of label names (see the module for the forms), of ``n_labels`` labels if that is given."""
    lines = [text for _, text in text_lines(path)]
    found = _json(path, lines) or _columns(lines) or LabelNames(tuple(lines))
    for text in (*found.names, *found.codes):
        check_text(path, None, text)
    if n_labels is not None and len(found) != n_labels:
        raise DataError(path, f"{len(found):,} names", f"{n_labels:,}, a line for each label")
    return found


def read_row_ids(path: str | os.PathLike) -> tuple[str, ...]:
    """Read a file of row ids: what other files call the points, a line for each row."""
    found: dict[str, int] = {}
    for line, text in text_lines(path):
        if text in found:
            raise DataError(path, f"the row id {shown(text)} again", f"each once (line {found[text]})", line=line)
        found[text] = line
    return tuple(found)


def write_label_names(path: str | os.PathLike, names: LabelNames) -> None:
    """Write names, one a line, or ``<code><TAB>name`` where there are codes, for :func:`read_label_names`."""
    texts = [re.sub(r"\s+", " ", text) for text in names.names]
    if names.codes:
        lines = [f"<{code}>\t{text}" for code, text in zip(names.codes, texts, strict=True)]
        if odd := [code for code in names.codes if re.search(r"\s|>", code)]:
            raise ArgumentError("label_names", "must have codes without blanks and '>'", shown(odd[0]))
    else:
        lines = texts
    with atomic_path(path) as part:
        part.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _json(path: str | os.PathLike, lines: list[str]) -> LabelNames | None:
    """Names of a JSON list or object, or of JSON lines; None where the file is none of them."""
    first = lines[0].lstrip() if lines else ""
    if not first.startswith(("[", "{")):
        return None
    whole = json_of("\n".join(lines))
    if isinstance(whole, list) and all(isinstance(name, str) for name in whole):
        return LabelNames(tuple(whole))
    if isinstance(whole, dict) and not ({"title", "uid"} & set(whole) and len(lines) == 1):
        return _mapping(path, whole)
    names, codes = [], []
    for number, text in enumerate(lines, 1):
        entry = json_of(text)
        if not isinstance(entry, dict) or not isinstance(entry.get("title", entry.get("name")), str):
            if number == 1:
                return None  # a name may begin with a bracket
            raise DataError(path, shown(text), "a JSON object with a 'title'", line=number)
        names.append(entry.get("title", entry.get("name")))
        codes.append(entry.get("uid"))
    return LabelNames(tuple(names), codes_of(codes))


def codes_of(codes: list[object]) -> tuple[str, ...]:
    """Codes as texts; none where one is missing or neither a text nor a number."""
    return tuple(map(str, codes)) if all(isinstance(code, (str, int)) for code in codes) else ()


def _mapping(path: str | os.PathLike, table: dict) -> LabelNames:
    if all(isinstance(label, int) and not isinstance(label, bool) for label in table.values()):
        pairs = [(label, name) for name, label in table.items()]
    elif all(key.isdecimal() and len(key) <= 18 and isinstance(name, str) for key, name in table.items()):
        pairs = [(int(key), name) for key, name in table.items()]
    else:
        raise DataError(path, "a JSON object of another kind", "names to ids, or ids to names")
    if (names := _by_id(pairs)) is None:
        raise DataError(path, "ids with a gap or an id twice", f"each id from 0 to {len(pairs) - 1} once")
    return LabelNames(names)


def _by_id(pairs: list[tuple[int, str]]) -> tuple[str, ...] | None:
    """The names in the order of their ids; None where ids have a gap or come twice."""
    by_id = dict(pairs)
    if sorted(by_id) != list(range(len(pairs))):
        return None
    return tuple(by_id[label] for label in range(len(pairs)))


def _columns(lines: list[str]) -> LabelNames | None:
    """Names of a file of two columns; None where a line has another form."""
    for separator, code in (("\t", r"<([^<>\s]+)>"), ("->", r"(\S+?)"), ("\t", r"(\d{1,18})")):
        found = [re.fullmatch(f"{code}{separator}(.*)", text, re.DOTALL) for text in lines]
        if not lines or not all(found):
            continue
        pairs = [(match[1], match[2]) for match in found]
        if code != r"(\d{1,18})":
            codes = tuple(code for code, _ in pairs)
            # Annif writes a notation as a third column.
            return LabelNames(tuple(name.partition("\t")[0] for _, name in pairs), codes)
        if names := _by_id([(int(label), name) for label, name in pairs]):
            return LabelNames(names)
    return None
