"""How the tables of two runs differ: cell by cell, beyond what is allowed."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.arguments import real_number
from xcrepro.errors import DataError, DataMissing
from xcrepro.repro import tables
from xcrepro.repro.golden import RTOL

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("table", "row", "column", "first", "second", "difference", "relative")


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What two sets of tables have in common, and where they part.

    Attributes
    ----------
    cells : DataFrame
        A row a cell that differs: table, row (what tells it from the others), column, first, second (texts, empty where one
        has no such row), difference (second - first; NaN of texts), relative (its size over the larger of the two, or over
        0.001).
    compared : int
        How many cells were held to each other.
    only : tuple of (str, str)
        Tables that the first alone has, and that the second alone has.
    """

    cells: pd.DataFrame
    compared: int
    only: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def same(self) -> bool:
        """Whether both have the same tables, and no cell differs."""
        return self.cells.empty and not any(self.only)


def read(place: Path) -> dict[str, pd.DataFrame]:
    """The tables of a run's folder, or of one CSV file, as texts.

    Parameters
    ----------
    place : Path
        A CSV file, or a folder: all CSV files below it, hidden ones left out.

    Returns
    -------
    dict of str to DataFrame
        Path from the folder -> table; of a file alone its one table, under the name ``""``.

    Raises
    ------
    DataMissing
        Where there is none.
    DataError
        For a file that is no CSV table.
    """
    import pandas as pd

    if not place.exists():
        raise DataMissing(f"{place}: there is no such file or folder")
    files = [place]
    if place.is_dir():
        files = [path for path in sorted(place.rglob("*.csv")) if not _hidden(path.relative_to(place))]
        if not files:
            raise DataMissing(f"{place}: no CSV file below it; a run's tables are under figures/ or build/figures/")
    found = {}
    for path in files:
        try:
            table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
        except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise DataError(path, f"no table ({error})", "CSV in UTF-8, a header first") from None
        if not isinstance(table.index, pd.RangeIndex):  # pandas takes cells beyond the header for the names of rows
            raise DataError(path, "more cells than columns", "as many cells in a line as in the header")
        found[path.relative_to(place).as_posix() if place.is_dir() else ""] = table
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def compare(first: Mapping[str, pd.DataFrame], second: Mapping[str, pd.DataFrame], rtol: float = RTOL) -> Comparison:
    """Hold tables of the same name to each other.

    Rows are matched by the first columns of texts and whole numbers that tell them apart (such as metric and k), so that
    their order does not matter; where there are none, or no row of the one is in the other, by their place. Two numbers
    ``a`` and ``b`` agree where ``|a - b| <= rtol * max(|a|, |b|, 0.001)``, as for golden files; whole numbers and texts are
    exact. NaN agrees with NaN. What the data are (the column ``data`` of a written table) is compared once a table.

    Parameters
    ----------
    first, second : mapping of str to DataFrame of str
        From :func:`read`.
    rtol : float
        In [0, 1).

    Returns
    -------
    Comparison

    Raises
    ------
    ArgumentError
        For ``rtol`` outside its range.

    Examples
    --------
    >>> import pandas as pd
    >>> a = pd.DataFrame({"metric": ["P", "P"], "k": ["1", "3"], "value": ["0.5", "0.25"]})
    >>> b = pd.DataFrame({"metric": ["P", "P"], "k": ["3", "1"], "value": ["0.25", "0.75"]})
    >>> compare({"": a}, {"": b}).cells[["row", "column", "first", "second", "difference"]]
                row column first second  difference
    0  metric=P, k=1  value   0.5   0.75        0.25
    """
    import pandas as pd

    rtol = real_number("rtol", rtol, at_least=0, below=1)
    found, compared = [], 0
    for name in [name for name in first if name in second]:
        cells, count = _cells(first[name], second[name], rtol)
        found += [(name, *cell) for cell in cells]
        compared += count
    only = (
        tuple(name for name in first if name not in second),
        tuple(name for name in second if name not in first),
    )
    return Comparison(pd.DataFrame(found, columns=COLUMNS), compared, only)


def _cells(first: pd.DataFrame, second: pd.DataFrame, rtol: float) -> tuple[list[tuple], int]:
    """Row, column, both texts and the difference of each cell that differs; how many cells were compared."""
    found, compared = [], 0
    for column in dict.fromkeys([*first.columns, *second.columns]):
        if (column in first.columns) != (column in second.columns):
            has = ["a column" if column in table.columns else "" for table in (first, second)]
            found.append(("", column, *has, math.nan, math.nan))
    shared = [name for name in first.columns if name in second.columns]
    if tables.ORIGIN in shared:
        shared.remove(tables.ORIGIN)
        origins = ["; ".join(dict.fromkeys(table[tables.ORIGIN])) for table in (first, second)]
        if origins[0] != origins[1]:
            found.append(("", tables.ORIGIN, *origins, math.nan, math.nan))
    names, pairs = _matched(first, second, shared)
    for label, a, b in pairs:
        if a is None or b is None:
            found.append((label, "", "" if a is None else "a row", "" if b is None else "a row", math.nan, math.nan))
            continue
        for column in shared:
            if column in names:
                continue
            compared += 1
            if not _agree(a[column], b[column], rtol):
                found.append((label, column, a[column], b[column], *_difference(a[column], b[column])))
    return found, compared


def _matched(first: pd.DataFrame, second: pd.DataFrame, shared: list[str]) -> tuple[list[str], list[tuple]]:
    """The columns that name a row, and the pairs of rows: (label, row or None, row or None)."""
    rows = [table[shared].to_dict("records") for table in (first, second)]
    could = [name for name in shared if not all(map(_is_float, [*first[name], *second[name]]))]
    for count in range(1, len(could) + 1):
        names = could[:count]
        sides = [{tuple(row[name] for name in names): row for row in side} for side in rows]
        if any(len(by_key) != len(side) for by_key, side in zip(sides, rows, strict=True)):
            continue  # they do not tell all rows apart
        if set(sides[0]) & set(sides[1]) or len(rows[0]) != len(rows[1]):
            every = dict.fromkeys([*sides[0], *sides[1]])
            return names, [(_label(names, key), sides[0].get(key), sides[1].get(key)) for key in every]
        break
    return [], [(f"row {i}", a, b) for i, (a, b) in enumerate(itertools.zip_longest(*rows), 1)]


def _label(names: list[str], values) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_float(text: str) -> bool:
    return text == "" or (_number(text) is not None and not text.lstrip("-").isdigit())


def _agree(a: str, b: str, rtol: float) -> bool:
    if a == b:
        return True
    x, y = _number(a), _number(b)
    if x is None or y is None or (a.lstrip("-").isdigit() and b.lstrip("-").isdigit()):
        return False
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y or abs(x - y) <= rtol * max(abs(x), abs(y), 0.001)


def _difference(a: str, b: str) -> tuple[float, float]:
    x, y = _number(a), _number(b)
    if x is None or y is None:
        return math.nan, math.nan
    return y - x, abs(y - x) / max(abs(x), abs(y), 0.001)
