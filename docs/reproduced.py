"""Which figures, tables and sub-tables of the five documents are reproduced, by which items, and from what.

``notebooks/reproduced.csv`` has a row for each: document, kind (``figure`` or ``table``; ``text`` for theorems, equations and
sections, ``beyond`` for questions of the project's own, neither of which is counted), name, shows, items (separated by
spaces, the one that computes most first), extent (a key of :data:`EXTENTS`; empty for ``beyond``) and what is missing
or different. What an item rests on stands in its committed notebook and nowhere else, so the page takes it from there.
"""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from xcrepro.core.errors import DataError
from xcrepro.repro.manifest import Entry

LISTING = "notebooks/reproduced.csv"
EXTENTS = {
    "in full": "every curve, row and panel, on the document's own data, or by arithmetic on its own numbers; all of a text.",
    "in part": "some rows, panels or columns on the document's own data; what is missing is beside it.",
    "on other data": "the same experiment by the same kind of method, on other real data: does the finding carry over?",
    "stand-in": "another method in place of the document's, on other data: does the same happen there?",
    "not run": "the notebook can compute it, but needs a download, and its committed run has none.",
    "saved predictions": "drawn from a reader's saved predictions of its model, which is not trained here.",
    "printed": "the document's own numbers, compared and drawn; none is computed.",
    "missing": "no item yet.",
}
"""How far a figure or table is reproduced -> what that means, the furthest first."""
KINDS = ("figure", "table", "text", "beyond")
COUNTED = KINDS[:2]
_OWN = "kit"  # the folder of items that belong to no document


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
    found, seen = [], set()
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if reader.fieldnames != names:
            raise DataError(path, f"columns {reader.fieldnames}", ", ".join(names), line=1)
        for one in reader:
            if None in one or None in one.values():
                raise DataError(path, "more or fewer cells than columns", f"{len(names)} cells", line=reader.line_num)
            row = Row(reader.line_num, **one | {"items": tuple(one["items"].split())})
            if row.kind not in KINDS:
                raise DataError(path, f"kind {row.kind!r}", f"one of {', '.join(KINDS)}", line=row.line)
            if row.extent not in EXTENTS and (row.extent or row.kind != "beyond"):
                raise DataError(path, f"extent {row.extent!r}", f"one of {', '.join(EXTENTS)}", line=row.line)
            if (row.document, row.name) in seen:
                raise DataError(path, f"{row.document}, {row.name} a second time", "each once", line=row.line)
            seen.add((row.document, row.name))
            found.append(row)
    return found


def faults(
    rows: Sequence[Row],
    items: Mapping[str, Entry],
    rests_on: Callable[[Entry], list[str]],
    takes: Callable[[Entry], list[str]],
) -> list[str]:
    """What the listing says that the items do not bear out.

    Parameters
    ----------
    rows : sequence of Row
    items : mapping of str to Entry
        Of the manifest.
    rests_on, takes : callable
        Of an item: what its numbers rest on, and what it takes in its data's place.

    Returns
    -------
    list of str
        One text a fault, none where all is well: an item that is not there, or is named by no row; a row without items that
        is not missing, or with items that is; one said to be printed of which an item shows no printed numbers, or one that
        is more than printed and whose items have nothing else; one from saved predictions whose items take none; one that is
        not in full and does not say why.
    """
    found = []
    for row in rows:
        where = f"line {row.line}, {row.document}, {row.name}"
        found += [f"{where}: no item {id}" for id in row.items if id not in items]
        there = [items[id] for id in row.items if id in items]
        if bool(row.items) == (row.extent == "missing"):
            found.append(f"{where}: {row.extent or row.kind}, and items {' '.join(row.items) or 'none'}")
        if row.extent and row.extent != "in full" and not row.why:
            found.append(f"{where}: {row.extent}, and why: nothing")
        if row.kind not in COUNTED or not there:
            continue
        if row.extent == "printed" and not all("printed numbers" in rests_on(entry) for entry in there):
            found.append(f"{where}: printed, but its items rest on more and show no print")
        if row.extent != "printed" and all(rests_on(entry) == ["printed numbers"] for entry in there):
            found.append(f"{where}: {row.extent}, but its items rest on printed numbers alone")
        if row.extent == "saved predictions" and not all("your predictions" in takes(entry) for entry in there):
            found.append(f"{where}: an item that takes no saved predictions")
    named = {id for row in rows for id in row.items}
    found += [f"{id}: named by no row" for id in items if id not in named and id.partition("/")[0] != _OWN]
    return found


def counts(rows: Sequence[Row]) -> Counter:
    """Extent -> how many figures, tables and sub-tables."""
    return Counter(row.extent for row in rows if row.kind in COUNTED)


def page(
    rows: Sequence[Row],
    items: Mapping[str, Entry],
    titles: Mapping[str, str],
    rests_on: Callable[[Entry], list[str]],
) -> str:
    """The page of all figures and tables, as Markdown.

    Parameters
    ----------
    rows : sequence of Row
    items : mapping of str to Entry
    titles : mapping of str to str
        Document -> its title, in the order of the page.
    rests_on : callable
        As for :func:`faults`.

    Returns
    -------
    str
    """
    total = counts(rows)
    lines = [
        "# What is reproduced, and from what",
        "",
        f"The five documents have {sum(total.values())} figures, tables and sub-tables. How far each is computed here, by "
        "which items, and what their committed numbers rest on. [What each word means](documents.md).",
        "",
        "| | of " + str(sum(total.values())) + " | meaning |",
        "| :-- | --: | :-- |",
        *(f"| {extent} | {total[extent]} | {meaning} |" for extent, meaning in EXTENTS.items()),
        "",
    ]
    order = [name for name in titles if any(row.document == name for row in rows)]
    order += sorted({row.document for row in rows} - set(order))
    for document in order:
        part = [row for row in rows if row.document == document]
        one = counts(part)
        said = ", ".join(f"{one[extent]} {extent}" for extent in EXTENTS if one[extent])
        lines += [f"## {titles.get(document, document)}", "", f"{sum(one.values())}: {said}.", ""]
        lines += ["| | shows | reproduced | by | rests on | what is missing or different |", "|" + " :-- |" * 6]
        lines += [_line(row, items, rests_on) for row in part]
        lines.append("")
    return "\n".join(lines)


def _line(row: Row, items: Mapping[str, Entry], rests_on: Callable[[Entry], list[str]]) -> str:
    links = "<br>".join(f"[`{id}`](notebooks/{id}.ipynb)" for id in row.items)
    kinds = dict.fromkeys(kind for id in row.items for kind in rests_on(items[id]))
    basis = "your saved predictions" if row.extent == "saved predictions" else "; ".join(kinds)
    extent = f"**{row.extent}**" if row.extent in ("in full", "missing") else row.extent
    cells = (row.name, row.shows, extent, links, basis, row.why)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
