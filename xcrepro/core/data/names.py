"""The names of labels and of rows: the files that hold them, and who is meant by a name.

A file of label names is one of these, told by its content; plain, ``.gz`` or ``.zip``:

================================  =====================================================================================
in each line                      where it is met
================================  =====================================================================================
a name                            ``Y.txt`` of raw text, PECOS' ``output-items.txt``, ``labels.txt``; line n is label n - 1
``id<TAB>name``                   a label map, ids 0 to L - 1 in any order
``code->name``                    ``Y.map`` and raw label files of the LF datasets; line n is label n - 1
``<uri><TAB>name``                Annif's subject vocabulary; line n is label n - 1
a JSON object with ``title``      ``lbl.json.gz`` of the LF datasets, OAXMLC's ontology; its ``uid``, or ``label``, is a code
one JSON list, or object          names in the order of the ids; name to id, or id to name; a ``config.json`` with ``label2id``
``id,name`` or ``name,id``        a table without a header, ids 0 to L - 1; commas, semicolons or tabs between
a table with a header             ``name`` (or ``label``, ``label_en``, ``title``), and beside it ``id``, or ``uri`` or ``code``
================================  =====================================================================================

A form counts only where every line has it; otherwise the line as a whole is the name, but what looks like another table, a
header alone, or RDF is refused. Names need not be unique (titles of products are not): only who looks one up that two labels
have is refused.
"""

from __future__ import annotations

import csv
import html
import os
import re
import unicodedata
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from xcrepro.core.data.lines import check_text, json_of, shown, text_lines
from xcrepro.core.errors import ArgumentError, DataError, DataWarning
from xcrepro.core.paths import atomic_path


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
            for label, text in enumerate(map(composed, texts)):
                of_these[text] = -1 if text in of_these else label
            ids |= of_these
        return ids

    @cached_property
    def has_numbers(self) -> bool:
        """Whether a label has a whole number for a name or code, so that numbers in files cannot be ids."""
        return any(text.isdecimal() for text in (*self.names, *self.codes))

    def id(self, text: str) -> int | None:
        """The label with this name or code; None where there is none, or more than one."""
        label = self._ids.get(composed(text))
        return None if label is None or label < 0 else label

    def near(self, text: str) -> str:
        """The one name or code that differs from this by capitals and blanks alone; empty where there is none."""
        return self.matching(text, "case")

    def matching(self, text: str, rule: str) -> str:
        """The one name or code that a text means by a rule of :data:`MATCHES`, or by one before it; empty: none, or several."""
        for one in MATCHES[: MATCHES.index(rule) + 1]:
            found = self._by_key(one).get(_KEYS[one](text), "") if one in _KEYS else self._nearest(_loose(text))
            if found is None or found:
                return found or ""
        return ""

    def _by_key(self, rule: str) -> dict[str, str | None]:
        """What a rule makes of a name -> the name; None where it makes the same of two."""
        known = self.__dict__.setdefault("_keyed", {})
        if rule not in known:
            found: dict[str, str | None] = {}
            known[rule] = found
            for text in (*self.names, *self.codes):
                key = _KEYS[rule](text)
                found[key] = None if found.get(key, text) != text else text
        return known[rule]

    def same_by(self, rule: str) -> list[list[str]]:
        """The names that a rule makes one of, by group."""
        keyed = [one for one in MATCHES[: MATCHES.index(rule) + 1] if one in _KEYS][-1]
        groups: dict[str, list[str]] = {}
        for text in dict.fromkeys(self.names) if None in self._by_key(keyed).values() else ():
            groups.setdefault(_KEYS[keyed](text), []).append(text)
        return [group for group in groups.values() if len(group) > 1]

    def _nearest(self, text: str) -> str | None:
        """The name whose pieces of three letters are most alike (Jaccard), at least :data:`ALIKE`; None where two are."""
        own = _pieces(text)
        shared = Counter(name for piece in own for name in self._with_piece.get(piece, ()))
        if not shared:
            return ""
        alike = {name: n / (len(own) + self._n_pieces[name] - n) for name, n in shared.items()}
        most = max(alike.values())
        best = {name for name, value in alike.items() if value == most}
        if most < ALIKE:
            return ""
        return best.pop() if len(best) == 1 else None

    @cached_property
    def _n_pieces(self) -> dict[str, int]:
        return {name: len(_pieces(_loose(name))) for name in {*self.names, *self.codes}}

    @cached_property
    def _with_piece(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in dict.fromkeys((*self.names, *self.codes)):
            for piece in _pieces(_loose(name)):
                found.setdefault(piece, []).append(name)
        return found

    def is_ambiguous(self, text: str) -> bool:
        """Whether two labels have this name."""
        return self._ids.get(composed(text)) == -1

    def called(self, text: str) -> list[int]:
        """The labels with this name or code."""
        text = composed(text)
        return [
            label
            for label, both in enumerate(zip(self.names, self.codes or self.names, strict=True))
            if text in map(composed, both)
        ]


def bare(text: str) -> str:
    """A name without what a language model puts around it: a number or bullet, bold, quotes, a final full stop.

    >>> [bare(text) for text in ("- **Law**.", "2. 'Tax'", "U.S. history", '"Glass"')]
    ['Law', 'Tax', 'U.S. history', 'Glass']
    """
    given, text = text, re.sub(r"^\s*(?:[-*•–]\s+|\(?\d{1,3}[.)]\s+)", "", text).strip()
    while found := re.fullmatch(r"(\*\*|__|\*|`|['\"“‘])(.+?)(?:\*\*|__|\*|`|['\"”’])(\.?)|(.+)\.", text):
        text = (found[2] or found[4]).strip()
    return given if text == given.strip() else text  # blanks alone are the business of a rule of MATCHES


def composed(text: str) -> str:
    """A text with its accents in the letters (Unicode's NFC): what looks the same to a reader is then the same."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


_TYPED = str.maketrans("’‘ʼ`“”„‐‑‒–—―−", "''''\"\"\"-------")


def _typed(text: str) -> str:
    """A name as a keyboard types it: without typographic quotes and hyphens, invisible characters, and what HTML spells out."""
    if not text.isascii() or "&" in text:
        text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_TYPED)
        text = "".join(one for one in text if unicodedata.category(one) != "Cf")
    return text.casefold().removeprefix("__label__")


def _loose(text: str) -> str:
    """A name without what people and programs write differently: capitals, blanks, hyphens, quotes, fastText's prefix."""
    return re.sub(r"[\s_-]+", "", _typed(text))


def difference(text: str, name: str) -> str:
    """Where two texts that look alike differ, by their code points; empty where a reader sees it.

    >>> difference("Women\u2019s rights", "Women's rights")
    'it has U+2019 and not U+0027 at character 6'
    """
    at = next((at for at, (a, b) in enumerate(zip(text, name, strict=False)) if a != b), min(len(text), len(name)))
    one, other = (f"U+{ord(here[at]):04X}" if at < len(here) else "nothing" for here in (text, name))
    seen = text[at : at + 1].isascii() and name[at : at + 1].isascii()
    return "" if seen else f"it has {one} and not {other} at character {at + 1}"


def _singular(text: str) -> str:
    """The same, and each word without the ending of an English plural."""
    words = re.split(r"[\s_-]+", _typed(text))
    words = [re.sub(r"(?<=\w\w)ies$", "y", word) for word in words]
    words = [re.sub(r"(?<=s|x|z)es$|(?<=ch|sh)es$|(?<=\w\w)(?<![sui])s$", "", word) for word in words]
    return "".join(words)


def _pieces(text: str) -> set[str]:
    return {text[at : at + 3] for at in range(max(len(text) - 2, 1))}


MATCHES = ("case", "plural", "nearest")
"""How a text may be taken for a name that it is not: without capitals, blanks, hyphens, underscores and typography; then
without the endings of English plurals; then the name most like it, by the share of its pieces of three letters."""
ALIKE = 0.5
"""The share of pieces of three letters, of those that either has, from which on a name may be the nearest."""
_KEYS = {"case": _loose, "plural": _singular}


def read_label_names(path: str | os.PathLike, n_labels: int | None = None) -> LabelNames:
    """Read a file of label names (see the module for the forms), of ``n_labels`` labels if that is given."""
    lines = [text for _, text in text_lines(path)]
    found = _json(path, lines) or _columns(lines) or _table(path, lines) or _plain(path, lines)
    if found.names and all(name.startswith("__label__") for name in found.names):  # fastText's, no part of a name
        found = LabelNames(tuple(name.removeprefix("__label__") for name in found.names), found.codes)
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


def _cells(lines: list[str], separator: str) -> list[list[str]] | None:
    """The cells of a table in which each line has as many, two at least; None of anything else."""
    try:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error:
        return None
    return rows if len(rows) == len(lines) and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1 else None


def _table(path: str | os.PathLike, lines: list[str]) -> LabelNames | None:
    """Names of a table with commas, tabs or semicolons: under a header, or two columns of which one holds the ids."""
    for separator in ("\t", ",", ";") if lines else ():
        if (rows := _cells(lines, separator)) is None:
            continue
        header = [cell.strip().casefold() for cell in rows[0]]
        names = [at for at, cell in enumerate(header) if re.fullmatch(_NAMED, cell)]
        if names and all(
            re.fullmatch(rf"{_NAMED}|{_IDS}|{_CODES}|notation|count|description", cell) for cell in header
        ):
            return _under(path, header, rows[1:], names)
        if len(header) == 2 and len(rows) > 1:
            for ids, texts in ((0, 1), (1, 0)):
                if all(re.fullmatch(r"\d{1,18}", row[ids]) for row in rows):
                    found = _by_id([(int(row[ids]), row[texts]) for row in rows])
                    if found is not None:
                        return LabelNames(found)
        if separator == "\t" and len(rows) > 1:
            do = "Name the columns in the first line, name and perhaps id or uri, or leave one name a line"
            raise DataError(path, f"columns with tabs, {shown(lines[0])}", "columns that are known", line=1, do=do)
    return None


_NAMED, _IDS, _CODES = r"(label_)?name|title|label|(pref)?label_[a-z]{2,3}", r"(label_?|class_?)?id|index", r"uri|code"


def _under(path: str | os.PathLike, header: list[str], rows: list[list[str]], names: list[int]) -> LabelNames:
    if len(set(header)) < len(header):
        raise DataError(path, f"the columns {', '.join(header)}", "each once", line=1)
    ids = [at for at, cell in enumerate(header) if re.fullmatch(_IDS, cell)]
    codes = [at for at, cell in enumerate(header) if re.fullmatch(_CODES, cell)]
    texts = [row[names[0]] for row in rows]
    held = [row[codes[0]].strip().removeprefix("<").removesuffix(">") for row in rows] if codes else [""] * len(rows)
    if ids:
        cells = [row[ids[0]].strip() for row in rows]
        both = list(zip(texts, held, strict=True))
        numbers = [int(cell) if re.fullmatch(r"\d{1,18}", cell) else -1 for cell in cells]
        if (found := _by_id(list(zip(numbers, both, strict=True)))) is None:
            given = f"the ids {shown(', '.join(cells[:5]))}"
            raise DataError(path, given, f"each id from 0 to {len(rows) - 1} once", do="Are they counted from 1?")
        texts, held = [text for text, _ in found], [code for _, code in found]
    return LabelNames(tuple(texts), tuple(held) if codes and all(held) else ())


def _plain(path: str | os.PathLike, lines: list[str]) -> LabelNames:
    """A name a line, unless the first line says that these are no names."""
    first = lines[0].strip() if lines else ""
    if re.match(r"@prefix\b|@base\b|PREFIX\b|<\?xml|<rdf:|<!DOCTYPE", first):
        do = "A vocabulary in RDF: save it as <uri><TAB>name, one a line (annif index-vocab reads the same)"
        raise DataError(path, shown(first), "label names", line=1, do=do)
    if len(lines) > 1 and re.fullmatch(rf"({_NAMED}|{_IDS}|labels|names|class|classes)([,;]\w+)*", first.casefold()):
        do = "Remove it; if it is a name, give the names as one JSON list"
        raise DataError(path, shown(first), "a name; it looks like the header of a column", line=1, do=do)
    if empty := [at for at, text in enumerate(lines, 1) if not text.strip()]:
        said = f"{path}, line {empty[0]}: an empty name ({len(empty):,} in all), which counts as a label"
        warnings.warn(said, DataWarning, stacklevel=4)
    return LabelNames(tuple(text.strip() for text in lines))


def _json(path: str | os.PathLike, lines: list[str]) -> LabelNames | None:
    """Names of a JSON list or object, or of JSON lines; None where the file is none of them."""
    first = lines[0].lstrip() if lines else ""
    if not first.startswith(("[", "{")):
        return None
    whole = json_of("\n".join(lines))
    if isinstance(whole, list) and all(isinstance(name, str) for name in whole):
        return LabelNames(tuple(whole))
    if isinstance(whole, dict) and isinstance(whole.get("label2id", whole.get("id2label")), dict):
        whole = whole.get("label2id", whole.get("id2label"))  # a model's config.json
    if isinstance(whole, dict) and not ({"title", "uid"} & set(whole) and len(lines) == 1):
        return _mapping(path, whole)
    names: list[str] = []
    codes = []
    for number, text in enumerate(lines, 1):
        entry = json_of(text)
        if not isinstance(entry, dict) or not isinstance(entry.get("title", entry.get("name")), str):
            if number == 1:
                return None  # a name may begin with a bracket
            raise DataError(path, shown(text), "a JSON object with a 'title'", line=number)
        names.append(entry["title"] if "title" in entry else entry["name"])
        codes.append(entry.get("uid", entry.get("label")))
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


def _by_id(pairs: list[tuple[int, object]]) -> tuple | None:
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
        pairs = [(match[1], match[2]) for match in found if match]
        if code != r"(\d{1,18})":
            codes = tuple(code for code, _ in pairs)
            # Annif writes a notation as a third column.
            return LabelNames(tuple(name.partition("\t")[0] for _, name in pairs), codes)
        if names := _by_id([(int(label), name) for label, name in pairs]):
            return LabelNames(names)
    return None
