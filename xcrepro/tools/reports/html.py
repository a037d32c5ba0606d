"""A report as one HTML file that asks for nothing else: styles, script and figures are inside."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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


def picture(svg: bytes, alt: str) -> str:
    code = base64.b64encode(svg).decode()
    return f'<figure><img alt="{escape(alt)}" src="data:image/svg+xml;base64,{code}"></figure>' if svg else ""


def said(sentences: Iterable[str]) -> str:
    return "\n".join(f'<p class="said">{escape(text)}</p>' for text in sentences)


def folded(summary: str, *parts: str) -> str:
    inside = "\n".join(filter(None, parts))
    return f"<details><summary>{escape(summary)}</summary>\n{inside}\n</details>" if inside else ""


def section(name: str, heading: str, *parts: str) -> str:
    inside = "\n".join(filter(None, parts))
    return f'<section id="{escape(name)}">\n<h2>{escape(heading)}</h2>\n{inside}\n</section>'


def navigation(links: Mapping[str, str]) -> str:
    items = "".join(f'<li><a href="#{escape(name)}">{escape(title)}</a></li>' for name, title in links.items())
    return f'<nav aria-label="Sections"><ul>{items}</ul></nav>'


def card(example: Mapping[str, Any]) -> str:
    """A test point with what models say of it side by side."""
    models = example["models"]
    depth = max((len(labels) for labels in models.values()), default=0)
    head = "".join(f'<th scope="col">{escape(model)}</th>' for model in models)
    rows = "".join(
        "<tr>"
        + "".join(_label(*labels[at]) if at < len(labels) else "<td>-</td>" for labels in models.values())
        + "</tr>"
        for at in range(depth)
    )
    text, number = example["text"], f"Test point {example['point']:,}"
    known = f"{number}: {text[:_LONG]}{'…' * (len(text) > _LONG)}" if text else number
    relevant = escape("; ".join(example["relevant"])) or "none"
    return (
        f"<article><h3>{escape(example['rule'])}</h3>\n<p>{escape(known)}</p>\n<p><strong>Relevant:</strong> {relevant}</p>\n"
        "<table>\n<caption>What is predicted; ✓ is a hit</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></article>"
    )


_LONG = 300  # letters of a text


def _label(name: str, score: float | None, hit: bool) -> str:
    shown = f" <small>{score:.2f}</small>" if score is not None else ""
    return f'<td class="hit">✓ {escape(name)}{shown}</td>' if hit else f"<td>{escape(name)}{shown}</td>"
