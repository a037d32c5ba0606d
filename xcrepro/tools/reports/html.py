"""A report as one HTML file that asks for nothing else: styles, script and figures are inside."""

from __future__ import annotations

import html
from pathlib import Path

from xcrepro.repro.drawing import latex

_HERE = Path(__file__).parent


def escape(text: str) -> str:
    """Foreign text for an element or a quoted attribute.

    >>> escape('<script>"&')
    '&lt;script&gt;&quot;&amp;'
    """
    return html.escape(latex.one_line(text))


def style() -> str:
    return (_HERE / "page.css").read_text(encoding="utf-8")


def script() -> str:
    return (_HERE / "page.js").read_text(encoding="utf-8")


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
