r"""Tables as LaTeX that compiles with any engine: package booktabs, plain ASCII, everything foreign escaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

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


def tabular(shape: str, columns: Sequence[str], rows: Iterable[Sequence[str]], foot: Sequence[str] = ()) -> str:
    """A ``tabular``: columns by their sides (``lrr``), their names and the foot in plain words, cells as LaTeX."""
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            " & ".join(map(escape, columns)) + r" \\",
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in rows),
            r"\bottomrule",
            *(rf"\multicolumn{{{len(shape)}}}{{l}}{{\footnotesize {escape(text)}}} \\" for text in foot),
            r"\end{tabular}",
            "",
        ]
    )


def one_line(text: str) -> str:
    """A foreign text on one line, without control characters.

    >>> one_line("a\\n  b\\x00\\u202ec")
    'a bc'
    """
    kept = "".join(sign for sign in " ".join(str(text).split()) if unicodedata.category(sign) not in ("Cc", "Cf", "Cs"))
    return kept.strip()
