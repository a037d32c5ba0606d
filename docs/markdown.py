"""The Markdown that generated pages are made of: paragraphs, tables, and the hidden contents that the side bar shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def page(*parts: str) -> str:
    """Headings, paragraphs and blocks with a blank line between them; what is empty is left out."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def table(sides: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table: the sides of its columns (``"lr"``), their names, and the cells, in which a bar is a bar.

    >>> print(table("lr", ["k", "P"], [["1|3", 0.5]]))
    | k | P |
    | :-- | --: |
    | 1\\|3 | 0.5 |
    """
    lines = [head, [":--" if side == "l" else "--:" for side in sides], *rows]
    cells = ([str(cell).replace("|", r"\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def toctree(names: Iterable[str], caption: str = "") -> str:
    """Contents that are not shown in the page."""
    head = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), ""]
    return "\n".join([*head, *names, "```"])
