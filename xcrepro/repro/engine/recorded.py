"""What items found on real data, committed as ``data/recorded/<paper>/<item>/<dataset>.csv``.

A file is one long table of texts: table, row, column, value, sd. The rows of the table ``provenance`` say what ran, the
others are cells of the tables that the item checks. ``sd`` is empty unless the value is a mean over splits.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib
import io
import itertools
import json
import math
import os
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core import paths
from xcrepro.core.errors import DataError, XCError
from xcrepro.repro.drawing import tables
from xcrepro.repro.engine import compare_outputs, run_log

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("table", "row", "column", "value", "sd")
PROVENANCE = "provenance"
"""Name of the table that says what ran."""
_SAME = ("dataset", "split", "splits", "command")
"""Of :data:`FIELDS` those that a run which is compared has to have, too; the others say how this file came about."""
FIELDS = (*_SAME, "version", "commit", "date", "processor", "libraries", "data SHA-256")
NOT_NOTED = "not noted"
"""Of a file that is older than the last five of :data:`FIELDS`."""
_ASKED = "XCREPRO_TABLES"


class RecordMismatch(XCError):
    """A run on real data came to something else than what is recorded."""


Table = list[dict[str, tuple[str, str]]]
"""One table as texts: of each row column -> (value, standard deviation over splits or empty)."""


@dataclasses.dataclass(frozen=True)
class Record:
    """The content of one file: :data:`FIELDS` -> text, and part -> table in the order in which the item checks them."""

    provenance: dict[str, str]
    tables: dict[str, Table]


# ---------------------------------------------------------------- what a run notes


def note(part: str, table: pd.DataFrame) -> None:
    """Add a table to the file that ``$XCREPRO_TABLES`` names: what a run that is recorded came to; and note its memory."""
    run_log.note_peak()
    with open(os.environ[_ASKED], "a", encoding="utf-8") as file:
        file.write(json.dumps([part, *tables.exact(table)]) + "\n")


def asked() -> bool:
    """Whether this run's tables are wanted."""
    return _ASKED in os.environ


def environment(target: Path) -> dict[str, str]:
    """The variables with which a run writes its tables to ``target``."""
    return {_ASKED: str(target)}


def noted(path: Path) -> dict[str, list]:
    """What a run wrote: part -> [names, kinds, rows], as :func:`xcrepro.repro.drawing.tables.exact` has them."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {part: table for part, *table in map(json.loads, lines)}


def mean(runs: Sequence[Mapping[str, list]]) -> dict[str, Table]:
    """The tables of one run, or the means and standard deviations of several (one per split), in six significant digits."""
    first, found = runs[0], {}
    if any(list(run) != list(first) for run in runs):
        raise RecordMismatch(f"the splits' runs check other tables: {[list(run) for run in runs]}")
    for part, (names, kinds, rows) in first.items():
        others = [run[part] for run in runs]
        shapes = {(tuple(other[0]), len(other[2])) for other in others}
        if len(shapes) > 1:
            rows = sorted(shape[1] for shape in shapes)
            raise RecordMismatch(f"table {part!r} has another form on another split: rows {rows}; record one split")
        if not rows:
            continue
        kinds = ["float" if any(other[1][c] == "float" for other in others) else k for c, k in enumerate(kinds)]
        found[part] = []
        for r in range(len(rows)):
            cells = zip(names, kinds, zip(*(other[2][r] for other in others), strict=True), strict=True)
            found[part].append({name: _mean(part, f"row {r + 1}, {name}", k, texts) for name, k, texts in cells})
    return found


def _mean(part: str, where: str, kind: str, texts: Sequence[str]) -> tuple[str, str]:
    if len(set(texts)) == 1:
        return (tables.number(float(texts[0])) if kind == "float" else texts[0]), ""
    if kind not in ("int", "float"):
        if where.endswith(", outcome"):  # of a claim: splits that disagree cannot tell
            return "cannot tell", ""
        if (said := _mean_sentence(texts)) is not None:
            return said, ""
        said = f"{sorted(set(texts))} on different splits have no mean; record one split"
        raise RecordMismatch(f"table {part!r}, {where}: {said}")
    numbers = [float(text) for text in texts]
    if not all(map(math.isfinite, numbers)):
        return "nan", "nan"
    return tables.number(statistics.fmean(numbers)), tables.number(statistics.stdev(numbers))


_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def _mean_sentence(texts: Sequence[str]) -> str | None:
    """Of sentences that differ only in their numbers, one with the mean of each, to as many places; else None."""
    if len({_NUMBER.sub("#", text) for text in texts}) > 1:
        return None
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    means = iter([_mean_number(column) for column in columns])
    return _NUMBER.sub(lambda _: next(means), texts[0])


def _mean_number(texts: Sequence[str]) -> str:
    places = max(len(text.partition(".")[2]) for text in texts)
    sign = "+" if any(text.startswith("+") for text in texts) else ""
    return f"{statistics.fmean(map(float, texts)):{sign}.{places}f}"


# ---------------------------------------------------------------- the files


def folder(id: str, root: Path | None = None) -> Path:
    """``data/recorded/<id>`` of the project, whether it is there or not."""
    return (root or paths.project_root()) / "data" / "recorded" / id


def files(id: str, root: Path | None = None) -> list[Path]:
    """The records of an item that are there, by dataset."""
    return paths.committed_files(f"data/recorded/{id}", "*.csv", root)


def own_data(dataset: object, root: Path | None = None) -> Path | None:
    """Where a dataset lies that comes with the project, ``data/<dataset>`` with its digests; None of any other."""
    if not isinstance(dataset, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", dataset):
        return None
    digests = paths.committed(f"data/{dataset}/SHA256SUMS", root)
    return digests.parent if digests.is_file() else None


def write(path: Path, record: Record) -> None:
    """Write the file of a record, whole or not at all; one that no run can come to is refused."""
    if fault := impossible(record):
        raise DataError(path, fault, "what a run can come to", do="Nothing was written")
    with paths.atomic_path(path) as temporary:
        temporary.write_text(_text(record), encoding="utf-8", newline="\n")


def _text(record: Record, fields: Sequence[str] = FIELDS) -> str:
    """The content of its file, with these ``fields`` of its provenance."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((PROVENANCE, 1, name, record.provenance[name], "") for name in fields)
    for part, table in record.tables.items():
        for number, row in enumerate(table, 1):
            writer.writerows((part, number, column, *cell) for column, cell in row.items())
    return out.getvalue()


def read(path: Path) -> Record:
    """The record that a file holds."""
    return parsed(path.read_bytes(), path)


def parsed(content: bytes, path: str | Path) -> Record:
    """The record in the bytes of a file, which errors call ``path``."""
    try:
        head, *lines = list(csv.reader(io.StringIO(content.decode("utf-8"), newline=""))) or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(path, f"no table ({error})", "CSV in UTF-8") from None
    if tuple(head) != COLUMNS:
        raise DataError(path, f"the columns {', '.join(head)}", ", ".join(COLUMNS), line=1)
    found: dict[str, Table] = {}
    for number, line in enumerate(lines, 2):
        if len(line) != len(COLUMNS):
            raise DataError(path, f"{len(line)} fields", f"{len(COLUMNS)}", line=number)
        part, row, column, value, sd = line
        rows = found.setdefault(part, [])
        if row == str(len(rows) + 1):
            rows.append({})
        if not rows or row != str(len(rows)) or column in rows[-1]:
            raise DataError(path, f"row {row!r}, column {column!r}", "rows from 1 on, each cell once", line=number)
        rows[-1][column] = value, sd
    provenance = {name: value for row in found.pop(PROVENANCE, []) for name, (value, _) in row.items()}
    if tuple(provenance) != FIELDS:
        raise DataError(path, f"the provenance {', '.join(provenance) or 'none'}", ", ".join(FIELDS))
    for part, rows in found.items():
        if odd := [number for number, row in enumerate(rows, 1) if list(row) != list(rows[0])]:
            raise DataError(path, f"other columns in row {odd[0]} of table {part!r}", ", ".join(rows[0]))
    record = Record(provenance, found)
    if fault := impossible(record):
        raise DataError(path, fault, "what a run can come to")
    return record


_MARKUP = re.compile(r"<[A-Za-z/!?]")


def impossible(record: Record) -> str:
    """What of a record no run can come to, in words; empty where it is sound: a number out of its metric's range, markup."""
    rows = itertools.chain(*record.tables.values())
    cells = (text for row in rows for name, cell in row.items() for text in (name, *cell))
    texts = itertools.chain(record.provenance.values(), record.tables, cells)
    if markup := next(filter(_MARKUP.search, texts), ""):
        return f"markup, {markup[:60]!r}"
    return importlib.import_module("xcrepro.repro.published.compare_with_print").impossible(record.tables)


def compare(now: Record, committed: Record) -> str:
    """Hold a record against the committed one: it has to be equal, but for what says when and where it was made."""
    differs = compare_outputs.difference(_text(committed, _SAME), _text(now, _SAME))
    if differs and not compare_outputs.elsewhere():
        raise RecordMismatch(f"recorded otherwise: {differs}")
    total = sum(len(row) for table in now.tables.values() for row in table)
    return str(differs) if differs else f"{total} of {total} values are equal"


def sample(record: Record) -> str:
    """The name of what a record is of, one name for one sample: the dataset's key for the mean of its splits, and
    ``"delicious, split 0"`` for one of several."""
    said = record.provenance
    one = said["split"].isdecimal() and int(said["splits"]) > 1
    return f"{said['dataset']}, split {said['split']}" if one else said["dataset"]


def frame(record: Record, part: str | None = None, sds: bool = False) -> pd.DataFrame | None:
    """A recorded table, by default the first, with its numbers as numbers; its dataset has the name of the :func:`sample`."""
    import pandas as pd

    held = record.tables.get(next(iter(record.tables), None) if part is None else part)
    if held is None:
        return None
    table = pd.DataFrame([{name: (sds and sd) or one for name, (one, sd) in row.items()} for row in held])
    whole = record.provenance["dataset"]
    if (of := sample(record).removeprefix(whole)) and "dataset" in table:
        table["dataset"] = [name + of if name.casefold() == whole.casefold() else name for name in table["dataset"]]
    for name in table:
        numbers = pd.to_numeric(table[name].replace("", "nan"), errors="coerce")
        if not (numbers.isna() & ~table[name].isin(["", "nan"])).any():
            table[name] = numbers
    return table
