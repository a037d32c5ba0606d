"""Somebody's own table of results, through the identities of :mod:`xcrepro.repro.published.checks`, before it is published."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core.errors import DataError, DataMissing
from xcrepro.core.metrics import registry
from xcrepro.repro.published.checks import ERRORS, RATES, Cell, Row, column, faults

if TYPE_CHECKING:
    import pandas as pd

_CHECKED = (*RATES, *ERRORS)
NAMES = {spelling: code for spelling, code in registry.codes().items() if code in _CHECKED}
NAMES |= {"avglabels": "avg_labels", "averagelabels": "avg_labels"}
"""Metrics that are checked, by the spellings a file may use (case, ``_``, ``-`` and blanks do not matter): those of
:mod:`xcrepro.core.metrics.registry`."""

LARGEST = 1e12
"""No metric is larger, nor is anything that is counted."""
_LABELS = ("dataset", "method", "variant")


def audit_results(path: str | Path) -> pd.DataFrame:
    """Check a file of results (``xcrepro audit FILE``), and give a row of texts for each fault: cell, expected, check, why.

    The file is a table with commas, semicolons or tabs, in Markdown or in LaTeX. It is tidy (``dataset, method, variant,
    metric, k, value``) or wide (``dataset, method, variant, P@1, ...``); the first three may be missing, and a first column of
    another name is the method. An empty cell, a dash or ``n/a`` is not reported, and of ``90.1 ± 0.2`` the number counts;
    numbers are percent if any rate is above 1, else fractions. A number means all that rounds to its digits.
    ``attrs["checked"]`` and ``attrs["not checked"]`` list the metrics.
    """
    import pandas as pd

    rows, others = _read(Path(path))
    rates = [c.high for cells in rows.values() for (name, _), c in cells.items() if name in RATES]
    one = 100.0 if any(rate > 1.000001 for rate in rates) else 1.0
    found = [
        (*labels, fault.column, fault.printed, fault.expected, fault.check, fault.why)
        for labels, cells in rows.items()
        for fault in faults(Row(cells, one))
    ]
    found += [(*labels, *given) for labels, cells in rows.items() for given in _fractions(cells, one)]
    table = pd.DataFrame(found, columns=[*_LABELS, "column", "printed", "expected", "check", "why"])
    checked = dict.fromkeys(column(*known) for cells in rows.values() for known in cells)
    table.attrs |= {"checked": list(checked), "not checked": others}
    return table


def _fractions(cells: Mapping[tuple[str, int], Cell], whole: float) -> Iterator[tuple[str, ...]]:
    """A row of rates at most 1 in a file of percent."""
    rates = {known: cell for known, cell in cells.items() if known[0] in RATES}
    if whole > 1 and len(rates) > 1 and 0 < max(cell.high for cell in rates.values()) <= 1:
        known, cell = max(rates.items(), key=lambda item: item[1].high)
        why = "Every rate of this row is at most 1, where the rest of the file is in percent. Are these fractions?"
        yield column(*known), cell.printed, "percent", "one unit in a file", why


def _read(path: Path) -> tuple[dict[tuple[str, str, str], dict[tuple[str, int], Cell]], list[str]]:
    """The rows, and the names of metrics that were not understood."""
    lines = _lines(path, _text(path))
    header = [name.strip() for name in next(lines, [])]
    places = {name.casefold(): i for i, name in enumerate(header)}
    tidy = "metric" in places and "value" in places
    names = [name.casefold() for name in header]
    used = (*_LABELS, *(("metric", "k", "value") if tidy else ()))
    if twice := [name for name in used if names.count(name) > 1]:
        raise DataError(path, f"the column {twice[0]} {names.count(twice[0])} times", "each column once", line=1)
    wide = {i: known for i, name in enumerate(header) if (known := _metric(name))} if not tidy else {}
    if not tidy and not wide:
        found, expected = f"columns {', '.join(header) or '(none)'}", "metric and value, or columns such as P@1"
        raise DataError(path, found, expected, line=1, do="`xcrepro audit --help` shows both forms")
    if "method" not in places and header and not ({"metric", *_LABELS} & {*places}) and _metric(header[0]) is None:
        header[0], places = "method", {"method": 0, **places}
    rows: dict[tuple[str, str, str], dict[tuple[str, int], Cell]] = {}
    unread = (name for i, name in enumerate(header) if i not in wide and name.casefold() not in ("", *_LABELS))
    others = {} if tidy else dict.fromkeys(unread)
    for number, fields in enumerate(lines, start=2):
        if not any(field.strip() for field in fields):
            continue
        if len(fields) != len(header):
            raise DataError(path, f"{len(fields)} fields", f"{len(header)}, as in the header", line=number)
        cells = rows.setdefault(tuple(_plain(fields[places[n]]) if n in places else "" for n in _LABELS), {})
        todo = {known: fields[i] for i, known in wide.items()}
        if tidy:
            name = _tidy_name(path, number, fields, places)
            todo = {_metric(name): fields[places["value"]]}
            others |= {name: None} if None in todo else {}
        for known, text in todo.items():
            _add(path, number, cells, known, _plain(text))
    if not any(rows.values()):
        raise DataError(path, "no metric that is checked", f"some of {', '.join(dict.fromkeys(NAMES.values()))}")
    return rows, list(others)


def _text(path: Path) -> str:
    """The file's text, or what is wrong with it."""
    if not path.is_file():
        raise DataMissing(f"{path}: no such file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {error.object[error.start]:#x} at {error.start}, which is no UTF-8"
        raise DataError(path, found, "text in UTF-8", do='Save it as "CSV UTF-8" in the spreadsheet') from None
    if "\0" in text:
        raise DataError(path, "a null byte", "text", line=text[: text.index("\0")].count("\n") + 1)
    return text


def _tidy_name(path: Path, line: int, fields: list[str], places: dict[str, int]) -> str:
    """The metric of a line, with its k."""
    name, k = fields[places["metric"]].strip(), fields[places["k"]].strip() if "k" in places else ""
    if k and not re.fullmatch(r"[1-9]\d{0,8}(\.0)?", k):
        raise DataError(path, f"k {k!r}", "a whole number from 1, or nothing", line=line)
    return f"{name}@{int(float(k))}" if k else name


def _add(path: Path, line: int, cells: dict[tuple[str, int], Cell], known: tuple[str, int] | None, text: str) -> None:
    """One number to the cells of its row."""
    if known is None or text.casefold() in ("", "-", "–", "—", "nan", "n/a", "na", "n.a."):
        return
    if re.fullmatch(r"-?\d+,\d{1,2}", text):  # with three digits behind it the comma is a thousand's
        do = f"Write {text.replace(',', '.')}"
        raise DataError(path, f"{column(*known)} {text!r}", "a number with a point", line=line, do=do)
    if known in cells:
        raise DataError(path, f"{column(*known)} a second time", "each cell of a method once", line=line)
    try:
        cells[known] = Cell.of(text)
        if not -LARGEST <= cells[known].low <= cells[known].high <= LARGEST:
            raise ValueError(text)
    except ValueError:
        raise DataError(path, f"{column(*known)} {text!r}", "a number", line=line) from None


def _lines(path: Path, text: str) -> Iterator[list[str]]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.lstrip().startswith("|"):
        width = 0
        for line in filter(str.strip, text.splitlines()):
            cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
            width = width or len(cells)
            # A heading over the columns, or cells left out, as Markdown takes them.
            cells += [""] * (width - len(cells))
            if not all(re.fullmatch(r"\s*:?-+:?\s*", cell) for cell in cells):
                yield [cell.strip() for cell in cells]
        return
    if re.search(r"\\\\|\\begin\{tabular", text):
        for line in re.split(r"\\\\(?:\[[^\]]*\])?", re.sub(r"(?<!\\)%.*", "", text)):
            line = re.sub(r"\\(?:begin|end)\{[^{}]*\}(?:\{[^{}]*\})?|\\[a-z]*(?:rule|line)\b(?:\{[^{}]*\})?", "", line)
            if "&" in line:
                yield [_plain(cell) for cell in re.split(r"(?<!\\)&", line)]
        return
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    try:
        yield from lines
    except csv.Error as error:
        raise DataError(path, str(error), "a line of a CSV table", line=lines.line_num) from None


def _plain(text: str) -> str:
    """A cell without its error, its percent sign, and what makes it bold; a comma before its last digits is a point where
    none can be a thousand's."""
    while found := re.search(r"\\[a-z]+\{([^{}]*)\}", text):
        text = text.replace(found[0], found[1])
    text = re.sub(r"(?:±|\+/-|\\pm).*", "", text.replace("$", "")).strip(" *_")
    text = text.replace("\\%", "%").removesuffix("%").strip()
    return re.sub(r"(?<=\d)[ \u2009\u202f'](?=\d{3}\b)", "", text)


def _metric(text: str) -> tuple[str, int] | None:
    """The checked metric and k that a text names, or None."""
    text = re.sub(r"\s*[(\[]\s*(?:%|in percent|percent)\s*[)\]]|\s*%$", "", _plain(text))
    text = re.sub(r"^(P|Prec|Precision|R|Recall|nDCG|N|PSP|PSnDCG)\s*[_-]?(\d+)$", r"\1@\2", text, flags=re.IGNORECASE)
    printed, at, k = text.strip().rpartition("@")
    printed = {"prec": "P", "n": "nDCG"}.get(printed.strip().casefold(), printed)
    printed, k = (printed, k.strip()) if at else (k, "")
    name = NAMES.get(registry.plain(printed.strip()))
    if name is None or (name == "avg_labels") == bool(at) or not re.fullmatch(r"[1-9]\d{0,8}" if at else "", k):
        return None
    return name, int(k or 0)
