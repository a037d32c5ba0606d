"""Whether a run made what is committed: equality, and how far apart two texts or tables are where they are not equal.

Everything that is committed as a run's result is compared here and nowhere else, without a tolerance: numbers have six
significant digits, and what computes them gives the same bits on every x86-64 Linux with the versions of
``constraints.txt``. :func:`elsewhere` a difference is reported with both versions and fails nothing.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import importlib.metadata
import io
import itertools
import math
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core import paths
from xcrepro.core.errors import DataError, DataMissing, XCError
from xcrepro.repro import tables

if TYPE_CHECKING:
    import pandas as pd

PINNED = ("numpy", "scipy", "pandas", "matplotlib", "numba", "llvmlite")
"""What has to be installed in the version of ``constraints.txt`` for equality to be promised."""
COLUMNS = ("table", "row", "column", "first", "second", "difference", "relative")
# A number by itself: not the digits of a name such as fig3 or Wiki10-31K.
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*[A-Za-z_])")


class NotTheSame(XCError):
    """A run made something else than what is committed."""


@functools.cache
def elsewhere() -> tuple[str, ...]:
    """Why this environment cannot promise the committed bits: ``numpy 2.3.1, committed with 2.4.6``; empty where it can."""
    try:
        lines = paths.committed("constraints.txt").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ("no constraints.txt says with which versions what is committed was made",)
    wanted = dict(line.split("==") for line in lines if "==" in line)
    found = []
    for name in PINNED:
        installed = importlib.metadata.version(name)
        if installed != wanted.get(name):
            found.append(f"{name} {installed}, committed with {wanted.get(name, 'another')}")
    here = f"{platform.machine()} {platform.system()}"
    if here != "x86_64 Linux":
        found.append(f"{here}, committed on x86_64 Linux")
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class Difference:
    """The first difference of two texts in words, and the largest relative one; infinite if more than numbers differ."""

    text: str
    relative: float

    def __str__(self) -> str:
        """With, where this environment promises nothing, its size and the versions."""
        if not elsewhere():
            return self.text
        size = (
            f"numbers differ by {self.relative:.1g} of themselves at most"
            if self.relative < math.inf
            else "words differ"
        )
        return f"{self.text}; {size} ({'; '.join(elsewhere())})"


def difference(committed: str, now: str) -> Difference | None:
    """How the text ``now`` differs from what is committed; None where they are equal."""
    if committed == now:
        return None
    text, relative = "", 0.0
    lines = itertools.zip_longest(committed.split("\n"), now.split("\n"))
    for number, (old, new) in enumerate(lines, 1):
        if old == new:
            continue
        text = text or f"line {number}: {_shown(new)} instead of {_shown(old)}"
        relative = max(relative, _apart(old, new))
    return Difference(text, relative)


def _shown(line: str | None) -> str:
    return "nothing" if line is None else repr(line if len(line) <= 200 else f"{line[:200]}...")


def _apart(old: str | None, new: str | None) -> float:
    """The largest relative difference of two lines' numbers; infinite where anything else differs."""
    if old is None or new is None or _NUMBER.sub("0", old).split() != _NUMBER.sub("0", new).split():
        return math.inf
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    return max((_relative(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs), default=0.0)


def _relative(a: float, b: float) -> float:
    return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))


# ---------------------------------------------------------------- tables of two runs, cell by cell


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The cells in which two sets of tables differ, how many were compared, and the tables that only one of them has."""

    cells: pd.DataFrame
    compared: int
    only: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def same(self) -> bool:
        """Whether both have the same tables, and no cell differs."""
        return self.cells.empty and not any(self.only)


def read(place: Path) -> dict[str, pd.DataFrame]:
    """The tables of a run's folder, or of one CSV file, as texts."""
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
        except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
            raise DataError(path, f"no table ({error})", "CSV in UTF-8, a header first") from None
        if not isinstance(table.index, pd.RangeIndex):  # pandas takes cells beyond the header for the names of rows
            raise DataError(path, "more cells than columns", "as many cells in a line as in the header")
        found[path.relative_to(place).as_posix() if place.is_dir() else ""] = table
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def compare(first: Mapping[str, pd.DataFrame], second: Mapping[str, pd.DataFrame]) -> Comparison:
    """Compare tables (of texts, by :func:`read`) of the same name, rows matched by the first columns that tell them apart."""
    import pandas as pd

    found, compared = [], 0
    for name in [name for name in first if name in second]:
        cells, count = _cells(first[name], second[name])
        found += [(name, *cell) for cell in cells]
        compared += count
    only = (
        tuple(name for name in first if name not in second),
        tuple(name for name in second if name not in first),
    )
    return Comparison(pd.DataFrame(found, columns=COLUMNS), compared, only)


def _cells(first: pd.DataFrame, second: pd.DataFrame) -> tuple[list[tuple], int]:
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
            if a[column] != b[column]:
                apart = _difference(a[column], b[column])
                if apart[1] != 0.0:
                    found.append((label, column, a[column], b[column], *apart))
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


def _difference(a: str, b: str) -> tuple[float, float]:
    """Second less first, and relative; NaN of texts, 0 of two NaN."""
    x, y = _number(a), _number(b)
    if x is None or y is None:
        return math.nan, math.nan
    if math.isnan(x) or math.isnan(y):
        return (0.0, 0.0) if math.isnan(x) and math.isnan(y) else (math.nan, math.nan)
    return y - x, _relative(x, y)


def counted(text: str) -> int:
    """How many values a CSV has: cells that are numbers, or all cells if there is none."""
    _, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    cells = [cell for row in rows for cell in row]
    return sum(_number(cell) is not None for cell in cells) or len(cells)
