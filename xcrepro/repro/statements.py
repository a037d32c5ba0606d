"""Typed conclusions and the numbers under them: what a notebook says is held to what its run came to.

A statement is a piece of a notebook's text, word for word, with the values of its numbers and the condition under which it is
true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from xcrepro.errors import XCError
from xcrepro.repro import compare, notebooks

TAGS = {"answer", "conclusion"}
"""Of the cells whose text is held."""
_NUMBER = re.compile(
    r"(?<!table )(?<!figure )(?<!section )(?<!equation )(?<![\w@.,/-])[+−-]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])"
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

    Parameters
    ----------
    text : str
        From :func:`text_of`.
    statements : iterable of (words, values) or (words, values, condition)
        The words as the text has them, each of their numbers' value in order (one number may stand for a list of one), and
        whether what they say is so. The k of ``PSP@1`` is no number, neither is the 4 of
        ``EURLex-4K`` nor that of table 4.

    Returns
    -------
    list of str
        Empty where each value rounds to its number, each condition holds, and each number of the text with a decimal point
        or a thousands' comma stands in a statement.

    Examples
    --------
    >>> faults("PLT leads by 2.1 points of P@1.", [("leads by 2.1 points", 2.0999, True)])
    []
    >>> faults("PLT leads by 2.1 points of P@1, or 3.0 %.", [("leads by 2.1 points", 2.3)])
    ["'leads by 2.1 points': 2.1 is 2.3", 'no statement has the number 3.0']
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
