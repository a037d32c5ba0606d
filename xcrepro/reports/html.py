"""A report as one HTML file that asks for nothing else: styles, script and figures are inside."""

from __future__ import annotations

import html
import re
from pathlib import Path

from xcrepro.reports.grid import Cell, Grid, one_line

_HERE = Path(__file__).parent
_FIRST_ROWS = 25  # of a longer table; the rest folds


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
    """A table in a box of its own that scrolls; what is longer than 25 rows folds behind them."""
    numeric = [grid.numeric(i) for i in range(len(grid.columns))]
    kinds = [' class="n"' if number else "" for number in numeric]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(grid.columns, kinds, strict=True))
    rows = ["<tr>" + "".join(map(_cell, row, kinds)) + "</tr>" for row in grid.rows]

    def whole(some: list[str], caption: str) -> str:
        body = "\n".join(some)
        return (
            f'<div class="box"><table>\n<caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody></table></div>"
        )

    if len(rows) <= _FIRST_ROWS:
        return whole(rows, grid.caption)
    rest = whole(rows[_FIRST_ROWS:], f"{grid.caption} (continued)")
    more = f"<details><summary>{len(rows) - _FIRST_ROWS:,} more rows</summary>\n{rest}</details>"
    return whole(rows[:_FIRST_ROWS], grid.caption) + more


def _cell(cell: Cell, kind: str) -> str:
    text = escape(cell.text)
    text = f"<strong>{text}</strong>" if cell.bold else text
    text += '<span title="chance may keep it from being best">°</span>' if cell.unclear else ""
    text += f" <small>{escape(cell.small)}</small>" if cell.small else ""
    value = "" if cell.number is None else f' data-v="{cell.number!r}"'
    return f"<td{kind}{value}>{text}</td>"


def picture(svg: bytes, name: str, title: str, description: str) -> str:
    """An SVG inside the page: its ids are its own, it has a text for who cannot see it, and nothing leads out of it.

    Parameters
    ----------
    svg : bytes
        As matplotlib writes it.
    name : str
        Of the figure, before each of its ids.
    title, description : str

    Returns
    -------
    str
    """
    text = svg.decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s(xmlns(:\w+)?|version)="[^"]*"', "", text)
    text = text.replace("xlink:href=", "href=")
    text = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]*)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", text)
    said = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
    opening = f'<svg role="img" aria-labelledby="{name}-title {name}-desc"'
    return re.sub(r"<svg\b([^>]*)>", lambda match: f"{opening}{match[1]}>{said}", text, count=1)


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
