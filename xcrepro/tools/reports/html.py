"""A report as one HTML file that asks for nothing else: styles, script and figures are inside."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.tools.reports.grid import Cell, Grid, of_table, one_line

if TYPE_CHECKING:
    import pandas as pd

_HERE = Path(__file__).parent


def escape(text: str) -> str:
    """Foreign text for an element or a quoted attribute.

    >>> escape('<script>"&')
    '&lt;script&gt;&quot;&amp;'
    """
    return html.escape(one_line(text))


def style() -> str:
    return (_HERE / "page.css").read_text(encoding="utf-8")


def script() -> str:
    return (_HERE / "page.js").read_text(encoding="utf-8")


def table(grid: Grid) -> str:
    """A whole table in a box of its own that scrolls both ways, its head and its first column staying in sight."""
    kinds = [' class="n"' if number else "" for number in grid.numeric]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(grid.columns, kinds, strict=True))
    rows = ["<tr>" + "".join(map(_cell, row, kinds)) + "</tr>" for row in grid.rows]
    body, caption = "\n".join(rows), escape(grid.caption)
    link = f' (<a href="{escape(grid.file)}">CSV</a>)' if grid.file else ""
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{caption}"><table>\n<caption>{caption}{link}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(cell: Cell, kind: str) -> str:
    text = escape(cell.text)
    text = f"<strong>{text}</strong>" if cell.bold else text
    text += '<span title="chance may keep it from being best">°</span>' if cell.unclear else ""
    text += f" <small>{escape(cell.small)}</small>" if cell.small else ""
    value = "" if cell.number is None else f' data-v="{cell.number!r}"'
    return f"<td{kind}{value}>{text}</td>"


def page(title: str, body: str) -> str:
    """The whole file around a body."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>\nhtml {{ background: Canvas; }}\nbody {{ margin: 0; }}\n{style()}</style>\n</head>\n"
        f"<body>\n{body}\n<script>\n{script()}</script>\n</body>\n</html>\n"
    )


def titled(title: str, *parts: str) -> str:
    """A page of a heading and some parts."""
    inside = "\n".join((f"<h1>{escape(title)}</h1>", *parts))
    return page(title, f'<main class="xcrepro-report" lang="en">\n{inside}\n</main>')


def results(shown: pd.DataFrame, notes: Sequence[str], title: str = "Results") -> str:
    """Results that are kept, as a page of their own; both as :func:`xcrepro.results.table` gives them."""
    about = "Results in bold were evaluated by the kit; the others are as printed. Percent."
    grid = of_table("results", about, shown)
    rows = [
        [dataclasses.replace(cell, bold=bool(mark)) for cell in row]
        for row, mark in zip(grid.rows, shown["truth"], strict=True)
    ]
    said = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return titled(title, f"<ul>{said}</ul>" if said else "", table(dataclasses.replace(grid, rows=rows)))
