"""Tables: one form that is committed and compared (CSV, six digits), one for people (notebook, markdown, from that LaTeX)."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

from xcrepro.core.errors import ArgumentError
from xcrepro.repro.drawing import latex as _latex

if TYPE_CHECKING:
    import pandas as pd

Decimals = int | Mapping[str, int]
FOLDED = 20
"""A table with more rows than these is shown folded."""
ORIGIN = "data"
"""The column of a written table that says what it was made from."""


def flat(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` with its index as columns, unless that is the plain 0..n-1; column names are checked."""
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        raise ArgumentError("table", "must be a pandas DataFrame", type(table).__name__)
    if not (isinstance(table.index, pd.RangeIndex) and table.index.equals(pd.RangeIndex(len(table)))):
        table = table.reset_index()
    names = list(table.columns)
    if len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
        raise ArgumentError("table", "must have distinct texts as column names", names, "rename the columns")
    return table


def spread(table: pd.DataFrame, rows: list[str], column: str, value: str) -> pd.DataFrame:
    """``table.pivot`` with rows and columns in the order in which they first appear, NaN where there is no such pair.

    ``rows`` name the rows of the result, the values of ``column`` become column names, and ``value`` fills them.
    """
    wide = table.pivot(index=rows, columns=column, values=value)[list(table[column].unique())]
    wide = wide.rename_axis(columns=None).rename(columns=str).reset_index()
    return table[rows].drop_duplicates().merge(wide, on=rows)


def kind(column: pd.Series) -> str:
    """How a column is written and compared."""
    from pandas.api import types

    if types.is_bool_dtype(column.dtype):
        return "bool"
    if types.is_integer_dtype(column.dtype):
        return "int"
    if types.is_float_dtype(column.dtype):
        return "float"
    if any(isinstance(value, float) and value == value for value in column):
        rule = "must be all numbers or all text"
        raise ArgumentError(f"column {column.name!r}", rule, "both", "convert it with astype")
    return "text"


DIGITS = 6
"""Significant digits of a float in what is committed."""
_ZERO = 1e-14


def number(value: float) -> str:
    """A float as it is committed: six significant digits, and 0 for what is 0 but for rounding (below 1e-14)."""
    value = float(value)
    return "0.0" if abs(value) < _ZERO else repr(float(f"{value:.{DIGITS}g}"))


def cell(value: object, kind: str, committed: bool = False) -> str:
    """The exact text of one value: floats as the shortest text that reads back the same, a missing value empty."""
    import pandas as pd

    if kind == "float":
        return "nan" if pd.isna(value) else number(value) if committed else repr(float(value))
    if pd.isna(value):
        return ""
    return str(int(value)) if kind == "int" else str(value)


def exact(table: pd.DataFrame, committed: bool = False) -> tuple[list[str], list[str], list[list[str]]]:
    """Column names, their kinds, and the rows as exact texts."""
    table = flat(table)
    kinds = [kind(table[name]) for name in table.columns]
    pairs = zip(table.columns, kinds, strict=True)
    columns = [[cell(value, k, committed) for value in table[name]] for name, k in pairs]
    return list(table.columns), kinds, [list(row) for row in zip(*columns, strict=True)]


def csv_text(table: pd.DataFrame, committed: bool = False) -> str:
    """The CSV of a table: at full precision for a reader, with six digits where it is committed and compared."""
    names, _, rows = exact(table, committed)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([names, *rows])
    return out.getvalue()


def _decimals(decimals: Decimals, name: str) -> int:
    places = decimals if isinstance(decimals, int) else decimals.get(name, 3)
    if not 0 <= places <= 17:
        raise ArgumentError("decimals", "must be from 0 to 17", places)
    return places


def _rounded(table: pd.DataFrame, decimals: Decimals) -> tuple[list[str], list[str], list[list[str]]]:
    """Names, kinds and rows as texts for people: floats rounded, NaN and missing as a dash, no minus before zero."""
    names, kinds, rows = exact(table)

    def words(name: str, k: str, written: str) -> str:
        if k != "float" or written == "nan":
            return "-" if k == "float" else written or "-"
        written = f"{float(written):.{_decimals(decimals, name)}f}"
        return written[1:] if written.startswith("-") and not written.strip("-0.") else written

    return names, kinds, [[words(*part) for part in zip(names, kinds, row, strict=True)] for row in rows]


class Shown:
    """A table as a notebook shows it, made by :func:`show`: aligned text, and the same rounded numbers as HTML."""

    def __init__(self, names: list[str], kinds: list[str], rows: list[list[str]]) -> None:
        # A column of numbers without a single one says nothing.
        kept = [c for c, k in enumerate(kinds) if k == "text" or not rows or any(row[c] != "-" for row in rows)]
        self.names, self.kinds = [names[c] for c in kept], [kinds[c] for c in kept]
        self.rows = [[row[c] for c in kept] for row in rows]

    def __repr__(self) -> str:
        lines = [self.names, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        pads = [str.ljust if kind == "text" else str.rjust for kind in self.kinds]
        padded = ([pad(*cell) for pad, *cell in zip(pads, line, widths, strict=True)] for line in lines)
        return "\n".join("  ".join(line).rstrip() for line in padded)

    def _repr_html_(self) -> str:
        """A table; folded where it has more than :data:`FOLDED` rows, so that a notebook stays short."""

        def row(tag: str, texts: list[str]) -> str:
            sides = ["left" if kind == "text" else "right" for kind in self.kinds]
            styled = zip(sides, map(html.escape, texts), strict=True)
            cells = (f'<{tag} style="text-align:{side}">{text}</{tag}>' for side, text in styled)
            return f"<tr>{''.join(cells)}</tr>"

        body = "\n".join(row("td", texts) for texts in self.rows)
        whole = f"<table>\n<thead>{row('th', self.names)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
        if len(self.rows) <= FOLDED:
            return whole
        columns = html.escape(", ".join(self.names))
        return f"<details>\n<summary>{len(self.rows):,} rows: {columns}</summary>\n{whole}\n</details>"


def display(shown: Shown) -> None:
    """Show a table where a cell does not end with it; printed where there is no notebook."""
    from IPython.display import display

    display(shown)


def show(table: pd.DataFrame, decimals: Decimals = 3) -> Shown:
    """The one way a notebook shows a table: its text does not depend on pandas' version or options.

    ``decimals`` of the float columns is a number, or column -> number (3 for those not named). Missing values are ``-``, and
    a float column of nothing else is left out.
    """
    return Shown(*_rounded(table, decimals))


def join_intervals(table: pd.DataFrame, decimals: int = 2) -> pd.DataFrame:
    """A table to be shown, in which ``x``, ``x low`` and ``x high`` are one text, ``"2.11 (0.00 to 4.05)"``, or ``"-"``."""
    table = table.copy()
    for name in [name for name in table if {f"{name} low", f"{name} high"} <= set(table)]:
        ends = table.pop(f"{name} low"), table.pop(f"{name} high")
        shown = "{:.{n}f} ({:.{n}f} to {:.{n}f})"
        rows = zip(table[name], *ends, strict=True)
        table[name] = [shown.format(*row, n=decimals) if row[0] == row[0] else "-" for row in rows]
    return table


def plus_minus(table: pd.DataFrame, decimals: int = 1, sign: bool = False) -> list[str]:
    """Each row's ``value`` with half of its interval, ``"17.1 ± 1.5"``, of the columns value, low and high."""
    form = f"{'+' if sign else ''}.{decimals}f"
    rows = zip(table["value"], table["low"], table["high"], strict=True)
    return [f"{value:{form}} ± {(high - low) / 2:.{decimals}f}" for value, low, high in rows]


def markdown(table: pd.DataFrame, decimals: Decimals = 3, origin: str = "") -> str:
    """The table as GitHub markdown, numbers to the right."""
    names, kinds, rows = _rounded(table, decimals)
    sides = [":--" if kind == "text" else "--:" for kind in kinds]
    lines = [[part.replace("|", r"\|").replace("\n", " ") for part in line] for line in (names, *rows)]
    foot = f"\nData: {origin}.\n" if origin else ""
    return "".join(f"| {' | '.join(line)} |\n" for line in (lines[0], sides, *lines[1:])) + foot


def latex(table: pd.DataFrame, decimals: Decimals = 3, origin: str = "") -> str:
    """The table as a LaTeX ``tabular`` (package booktabs), numbers to the right."""
    names, kinds, rows = _rounded(table, decimals)
    shape = "".join("l" if kind == "text" else "r" for kind in kinds)
    cells = ([_latex.escape(part) for part in row] for row in rows)
    return _latex.tabular(shape, names, cells, [f"Data: {origin}."] if origin else [])


def with_origin(table: pd.DataFrame, origin: str) -> pd.DataFrame:
    """The table with a last column :data:`ORIGIN` that says in each row what it was made from, so that rows stay tidy data."""
    table = flat(table)
    if not origin:
        return table
    if ORIGIN in table:
        rule = f"must have no column {ORIGIN!r}, which says where it is from"
        raise ArgumentError("table", rule, list(table.columns))
    return table.assign(**{ORIGIN: origin})


def render(table: pd.DataFrame, decimals: Decimals = 3, origin: str = "") -> dict[str, bytes]:
    """Suffix -> content of the table's files: ``.csv`` (six digits) and ``.md`` (rounded)."""
    text = csv_text(with_origin(table, origin), committed=True)
    return {".csv": text.encode(), ".md": markdown(table, decimals, origin).encode()}


def from_csv(text: str) -> tuple[pd.DataFrame, str]:
    """The table of a written CSV, and what it was made from (empty where it does not say)."""
    import pandas as pd

    table = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=["nan"])
    words = table.select_dtypes(exclude=["number", "bool"]).columns
    table[words] = table[words].fillna("nan").astype(str)
    origin = str(table.pop(ORIGIN).iloc[0]) if ORIGIN in table and len(table) else ""
    return table, origin


def without_origin(text: str) -> str:
    """The CSV text of a written table without its last column, if that says where it is from; what is no CSV as it is."""
    try:
        rows = list(csv.reader(io.StringIO(text)))
    except csv.Error:  # a file that was damaged differs from any table, and the comparison says where
        return text
    if not rows or rows[0][-1:] != [ORIGIN]:
        return text
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(row[:-1] for row in rows)
    return out.getvalue()
