"""The listing of figures and tables: ``notebooks/reproduced.csv``, how far each is reproduced and by which items.

It has a row for each: document, kind (``figure`` or ``table``; ``text`` for theorems, equations and sections, ``beyond`` for
questions of the project's own, neither of which is counted), name, shows, items (separated by spaces, the one that computes
most first), extent (a key of :data:`EXTENTS`; empty for ``beyond``) and what is missing or different.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path

from xcrepro.core.errors import DataError

LISTING = "notebooks/reproduced.csv"
EXTENTS = {
    "in full": "every curve, row and panel, on the document's own data; all of a text.",
    "definition": "a definition, a formula or a toy example, in full: there are no data in it.",
    "in part": "some rows, panels or columns on the document's own data; what is missing is beside it.",
    "on other data": "the same experiment by the same kind of method, on other real data: does the finding carry over?",
    "stand-in": "another method in place of one of the document's (a small network for a deep model), on other data.",
    "not run": "the notebook can compute it, but needs a download, and its committed run has none.",
    "saved predictions": "drawn from a reader's saved predictions of its model, which is not trained here.",
    "printed": "the document's own numbers, compared and drawn; none is computed.",
    "missing": "no item yet.",
}
"""How far a figure or table is reproduced -> what that means, the furthest first: the first that holds of all its parts."""
OPEN = ("printed", "on other data", "stand-in", "not run")
"""Extents that a number on the document's own data lifts to "in part"."""
KINDS = ("figure", "table", "text", "beyond")
COUNTED = KINDS[:2]


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the listing; ``line`` is its number in the file."""

    line: int
    document: str
    kind: str
    name: str
    shows: str
    items: tuple[str, ...]
    extent: str
    why: str


def read(path: Path) -> list[Row]:
    """The listing.

    Parameters
    ----------
    path : Path
        ``notebooks/reproduced.csv``.

    Returns
    -------
    list of Row

    Raises
    ------
    DataError
        For other columns, a kind or extent that is not known, and a row named twice.
    """
    names = [field.name for field in dataclasses.fields(Row)][1:]
    found: dict[tuple[str, str], Row] = {}
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if reader.fieldnames != names:
            raise DataError(path, f"columns {reader.fieldnames}", ", ".join(names), line=1)
        for one in reader:
            if fault := _fault(one, found):
                raise DataError(path, *fault, line=reader.line_num)
            found[one["document"], one["name"]] = Row(reader.line_num, **one | {"items": tuple(one["items"].split())})
    return [*found.values()]


def _fault(line: dict, known: Container) -> tuple[str, str] | None:
    """What a line of the listing has, and what it should; None where it is sound."""
    if None in line or None in line.values():
        return "more or fewer cells than columns", f"{len(dataclasses.fields(Row)) - 1} cells"
    if line["kind"] not in KINDS:
        return f"kind {line['kind']!r}", f"one of {', '.join(KINDS)}"
    if line["extent"] not in EXTENTS and (line["extent"] or line["kind"] != "beyond"):
        return f"extent {line['extent']!r}", f"one of {', '.join(EXTENTS)}"
    again = f"{line['document']}, {line['name']} a second time", "each once"
    return again if (line["document"], line["name"]) in known else None


def text(rows: Sequence[Row]) -> str:
    """The content of the listing."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([field.name for field in dataclasses.fields(Row)][1:])
    writer.writerows([*dataclasses.astuple(row)[1:5], " ".join(row.items), row.extent, row.why] for row in rows)
    return out.getvalue()


def counts(rows: Sequence[Row]) -> Counter:
    """Extent -> how many figures, tables and sub-tables."""
    return Counter(row.extent for row in rows if row.kind in COUNTED)


def sentence(rows: Sequence[Row]) -> str:
    """How much is reproduced, as the README says it."""
    of = counts(rows)
    return (
        f"Of the documents' {of.total()} figures and tables, {of['in full']} are reproduced in full on their own data and "
        f"{of['in part']} in part. {of['on other data']} are repeated with the same kind of method on other real data, "
        f"{of['stand-in']} with a stand-in for a model that we do not have. {of['definition']} are definitions or toy "
        f"examples, and for {of['printed']} we compare only the printed numbers"
    )
