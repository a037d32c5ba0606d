"""Typed conclusions and the numbers under them: what a notebook says is compared with what its run found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from xcrepro.core.errors import XCError
from xcrepro.repro import compare, notebooks

TAGS = {"answer", "conclusion"}
"""Of the cells whose text is held."""
_NUMBER = re.compile(
    r"(?<!table )(?<!figure )(?<!section )(?<!equation )(?<!, split )(?<![\w@.,/-])[+−-]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])"
)
_NOT_TEXT = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|`[^`]*`|\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)


class StatementFault(XCError):
    """What the text says is not what the run came to."""


def text_of(notebook: dict) -> str:
    """The text of the tagged cells, with single blanks; of a link its words, and no code and formulas."""
    cells = [
        notebooks.text(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "markdown" and TAGS & set(cell.get("metadata", {}).get("tags", []))
    ]
    return " ".join(_NOT_TEXT.sub(lambda found: found.group(1) or " ", "\n\n".join(cells)).replace("**", "").split())


def faults(text: str, statements: Iterable[Sequence]) -> list[str]:
    """What is wrong with the statements of a text, one sentence each.

    A statement has words of the text, the value of each of their numbers in order, and perhaps a condition. It is at fault if
    a value does not round to its number or the condition fails. So is a number of the text with a decimal point or a
    thousands' comma that no statement holds. The k of ``PSP@1`` and the 4 of ``EURLex-4K`` are no numbers.
    """
    found, held = [], set()
    for words, values, *condition in statements:
        words = " ".join(words.split())
        at = text.find(words)
        if at < 0:
            found.append(f"{words!r} is not in a cell tagged {' or '.join(sorted(TAGS))}")
            continue
        while at >= 0:
            held |= {at + number.start() for number in _NUMBER.finditer(words)}
            at = text.find(words, at + 1)
        written = _NUMBER.findall(words)
        values = list(values) if isinstance(values, Iterable) else [values]
        if len(written) != len(values):
            found.append(f"{words!r} has the numbers {', '.join(written) or 'none'}, and {len(values)} values")
            continue
        for number, value in zip(written, values, strict=True):
            if not compare.within(float(value), number.replace(",", "").replace("−", "-")):
                found.append(f"{words!r}: {number} is {float(value):.6g}")
        if condition and not bool(condition[0]):
            found.append(f"{words!r} is not so")
    for number in _NUMBER.finditer(text):
        if re.search("[.,]", number.group()) and number.start() not in held:
            found.append(f"no statement has the number {number.group()}")
    return found
