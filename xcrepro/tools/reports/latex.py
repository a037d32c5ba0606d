r"""Tables of a report as LaTeX that compiles with any engine: packages booktabs and graphicx, plain ASCII, everything foreign
escaped."""

from __future__ import annotations

import unicodedata

from xcrepro.tools.reports.grid import Cell, Grid
from xcrepro.tools.reports.html import one_line

_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "–": "--",
    "—": "---",
    "’": "'",
    "×": r"$\times$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "°": r"$^\circ$",
    "†": r"\dag{}",
    "ß": r"\ss{}",
    "…": r"\dots{}",
}
_ACCENTS = {0x300: "`", 0x301: "'", 0x302: "^", 0x303: "~", 0x304: "=", 0x306: "u", 0x307: ".", 0x308: '"', 0x30A: "r",
            0x30B: "H", 0x30C: "v", 0x327: "c", 0x328: "k"}  # fmt: skip


def escape(text: str) -> str:
    r"""Foreign text on one line of ASCII LaTeX; a sign that has no command stands by its number.

    >>> escape("50% of a_b & c\\d")
    '50\\% of a\\_b \\& c\\textbackslash{}d'
    >>> escape("Błasiok é 中")
    "B{[}U+0142{]}asiok \\'{e} {[}U+4E2D{]}"
    """
    return "".join(map(_sign, one_line(text)))


def _sign(sign: str) -> str:
    if sign in _SIGNS:
        return _SIGNS[sign]
    if " " <= sign <= "~":
        # An opening bracket behind \\ or \toprule would be read as its argument.
        return "{[}" if sign == "[" else "{]}" if sign == "]" else sign
    base, *marks = unicodedata.normalize("NFD", sign)
    if len(marks) == 1 and ord(marks[0]) in _ACCENTS and base.isascii() and base.isalpha():
        return f"\\{_ACCENTS[ord(marks[0])]}{{{base}}}"
    return f"{{[}}U+{ord(sign):04X}{{]}}"


def tabular(grid: Grid, origin: str = "") -> str:
    """A table as a ``tabular``: the best in bold, what chance may keep from it with a circle, intervals small."""
    shape = "".join("r" if number else "l" for number in grid.numeric)
    lines = [" & ".join(map(_cell, row)) + r" \\" for row in grid.rows]
    foot = [f"Data: {origin}."] if origin else []
    foot += (
        ["Circle: chance may keep it from being the best."]
        if any(cell.unclear for row in grid.rows for cell in row)
        else []
    )
    span = len(grid.columns)
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            " & ".join(map(escape, grid.columns)) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            *(rf"\multicolumn{{{span}}}{{l}}{{\footnotesize {escape(text)}}} \\" for text in foot),
            r"\end{tabular}",
            "",
        ]
    )


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    text = rf"\textbf{{{text}}}" if cell.bold else text
    text += r"$^\circ$" if cell.unclear else ""
    return text + (rf" {{\scriptsize {escape(cell.small)}}}" if cell.small else "")
