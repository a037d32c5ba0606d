"""Which figures, tables and sub-tables of the five documents are reproduced, by which items, and from what.

The listing is read by :mod:`xcrepro.repro.published.reproduced`. What an item rests on stands in its committed notebook and
nowhere else, so the page takes it from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from docs import markdown
from xcrepro.core.data import registry
from xcrepro.repro.engine.manifest import Entry
from xcrepro.repro.published import compare_with_print
from xcrepro.repro.published.reproduced import COUNTED, EXTENTS, KINDS, LISTING, OPEN, Row, counts, read
from xcrepro.tools.reports import reproduce

__all__ = ["COUNTED", "EXTENTS", "KINDS", "LISTING", "Row", "counts", "faults", "page", "read"]

_OWN = "kit"  # the folder of items that belong to no document
_ANOTHER = re.compile(r"small network|two towers|instead of [A-Z]|stand-?in")
"""Words of a row in which another model takes the place of the document's."""


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
        not in full and does not say why; one with another model that is no stand-in.
    """
    found = []
    for row in rows:
        where = f"line {row.line}, {row.document}, {row.name}"
        found += [f"{where}: no item {id}" for id in row.items if id not in items]
        there = [items[id] for id in row.items if id in items]
        if bool(row.items) == (row.extent == "missing"):
            found.append(f"{where}: {row.extent or row.kind}, and items {' '.join(row.items) or 'none'}")
        if row.extent not in ("", "in full", "definition") and not row.why:
            found.append(f"{where}: {row.extent}, and why: nothing")
        if row.kind not in COUNTED or not there:
            continue
        if row.extent == "printed" and not all("printed numbers" in rests_on(entry) for entry in there):
            found.append(f"{where}: printed, but its items rest on more and show no print")
        if row.extent != "printed" and all(rests_on(entry) == ["printed numbers"] for entry in there):
            found.append(f"{where}: {row.extent}, but its items rest on printed numbers alone")
        if row.extent in ("in full", "on other data") and _ANOTHER.search(row.why):
            found.append(f"{where}: {row.extent}, though a model stands in for another: {row.why}")
        if row.extent == "saved predictions" and not all("your predictions" in takes(entry) for entry in there):
            found.append(f"{where}: an item that takes no saved predictions")
    named = {id for row in rows for id in row.items}
    found += [f"{id}: named by no row" for id in items if id not in named and id.partition("/")[0] != _OWN]
    return found


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
    n = sum(total.values())
    parts = [
        "# What is reproduced, and from what",
        f"The five documents have {n} figures, tables and sub-tables. How far each is computed here, by "
        "which items, and what their committed numbers rest on. [What each word means](documents.md).",
        markdown.table(
            "lrl",
            ("", f"of {n}", "meaning"),
            ((extent, total[extent], meaning) for extent, meaning in EXTENTS.items()),
        ),
    ]
    order = [name for name in titles if any(row.document == name for row in rows)]
    order += sorted({row.document for row in rows} - set(order))
    head = "", "shows", "reproduced", "by", "rests on", "what is missing or different"
    for document in order:
        part = [row for row in rows if row.document == document]
        one = counts(part)
        said = ", ".join(f"{one[extent]} {extent}" for extent in EXTENTS if one[extent])
        cells = (_cells(row, items, rests_on) for row in part)
        parts += [f"## {titles.get(document, document)}", f"{sum(one.values())}: {said}."]
        parts.append(markdown.table("llllll", head, cells))
    return markdown.page(*parts, *waiting(rows))


def waiting(rows: Sequence[Row]) -> list[str]:
    """Which tables wait for somebody who can download a dataset, by dataset, and the command that computes them."""
    known = {(row.document, row.name): row for row in rows}
    by: dict[str, list[str]] = {}
    for id, row in reproduce.tables().items():
        now = known.get((row.document, row.name), row)
        for name in reproduce.datasets_of(id) if now.extent in OPEN else ():
            entry = registry.get(name)
            other = compare_with_print.other_version(entry, row.document)
            if not (other or entry.proprietary or "committed" in entry.archive) and reproduce.can(id, name):
                by.setdefault(entry.printed_name, []).append(f"{row.document}, {row.name[0].lower()}{row.name[1:]}")
    lines = (
        (title, "; ".join(some), f"`xcrepro reproduce {registry.get(title).name} --record`")
        for title, some in by.items()
    )
    return [
        "## Which tables still wait for somebody with a download",
        "We cannot download these datasets here, and you perhaps can. One command computes what the kit can of their printed "
        "rows, and `--record` keeps the results, without any of the data ([real results](CONTRIBUTING.md#real-results)). "
        "Then the rows move from *printed* to *in part*.",
        markdown.table("lll", ("dataset", "tables", "command"), lines),
    ]


def _cells(row: Row, items: Mapping[str, Entry], rests_on: Callable[[Entry], list[str]]) -> tuple[str, ...]:
    links = "<br>".join(f"[`{id}`](notebooks/{id}.ipynb)" for id in row.items)
    kinds = dict.fromkeys(kind for id in row.items for kind in rests_on(items[id]))
    basis = "your saved predictions" if row.extent == "saved predictions" else "; ".join(kinds)
    extent = f"**{row.extent}**" if row.extent in ("in full", "missing") else row.extent
    return row.name, row.shows, extent, links, basis, row.why
