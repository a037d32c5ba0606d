"""Golden files: what a table was when it was last accepted, at full precision.

They guard against changes nobody meant. They do not say that a number is right: the oracles in the tests do, and the
comparison with the published values (:mod:`xcrepro.repro.compare`).
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro import paths
from xcrepro.errors import ArgumentError, XCError
from xcrepro.repro import record, tables

if TYPE_CHECKING:
    import pandas as pd

RTOL = 1e-9


class GoldenMismatch(XCError):
    """A table is not what its golden file says.

    Attributes
    ----------
    cell : tuple of (int, str) or None
        Row and column of the worst; None for another shape.
    """

    def __init__(self, message: str, cell: tuple[int, str] | None = None) -> None:
        self.cell = cell
        super().__init__(message)


def path(item: str, size: str = "small") -> Path:
    """Where the golden file of ``item`` lies.

    Parameters
    ----------
    item : str
        ``paper/name``; an item's further tables, ``paper/name:part``, have files of their own.
    size : {"small", "paper"}

    Returns
    -------
    Path
        ``tests/golden/<size>/<item>.csv``, whether it is there or not.
    """
    return paths.committed(_file(item, size))


def _file(item: str, size: str) -> str:
    return f"tests/golden/{size}/{item.replace(':', '-')}.csv"


def check(item: str, table: pd.DataFrame, size: str = "small", rtol: float | None = None) -> str:
    """Compare ``table`` with ``tests/golden/<size>/<item>.csv``; print and return one sentence.

    Column names, row order and number of rows, texts, whole numbers and booleans are exact. A float ``a`` agrees with
    the golden ``b`` when ``|a - b| <= rtol * max(|a|, |b|, 0.001)``, or by a difference of its column's own
    (:func:`within`). NaN agrees with NaN, infinity with the same infinity. The index counts as columns unless it is
    plain 0..n-1.

    A missing golden file means that the table is new: at size small that is said and noted, so that the run goes on,
    shows its figure, and does not count as good; at size paper, whose runs few people make, it is only said. Golden
    files are written on request alone: ``xcrepro accept ITEM``, which runs the item with ``$XCREPRO_ACCEPT`` set to its
    id.

    Parameters
    ----------
    item : str
        As for :func:`path`.
    table : DataFrame
    size : {"small", "paper"}
    rtol : float, optional
        At least 0 and below 1; by default 1e-9, room for another processor's last digits and for nothing else.

    Returns
    -------
    str
        The sentence; it counts the number cells (all cells where none is a number).

    Raises
    ------
    GoldenMismatch
        With the worst cell.
    ArgumentError
        For ``rtol`` outside its range, and a table without an exact form (:func:`xcrepro.repro.tables.exact`).

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> import pandas as pd
    >>> root = os.environ["XCREPRO_ROOT"] = tempfile.mkdtemp()
    >>> golden = path("demo/table1"); golden.parent.mkdir(parents=True)
    >>> _ = golden.write_text("k,P\\n1,0.5\\n3,0.25\\n")
    >>> check("demo/table1", pd.DataFrame({"k": [1, 3], "P": [0.5, 0.25]}))
    demo/table1: 4 of 4 values agree
    'demo/table1: 4 of 4 values agree'
    >>> check("demo/table1", pd.DataFrame({"k": [1, 3], "P": [0.5, 0.26]}))
    Traceback (most recent call last):
    xcrepro.repro.golden.GoldenMismatch: demo/table1: 3 of 4 values agree; the worst is row 1 (k=3), column P: accepted
    0.25, now 0.26, allowed difference 2.6e-10 (relative 1e-09). If the change is meant, say why in the change and
    accept it: xcrepro accept demo/table1
    >>> del os.environ["XCREPRO_ROOT"]
    """
    accept = f"xcrepro accept {item.partition(':')[0]}" + ("" if size == "small" else f" --size {size}")
    if os.environ.get("XCREPRO_ACCEPT") == item.partition(":")[0]:
        with paths.atomic_path(paths.project_root() / _file(item, size)) as part:
            part.write_text(tables.csv_text(table), encoding="utf-8", newline="\n")
    target = path(item, size)
    if not target.is_file():
        if size != "small":
            return _say(f"{item}: no reference for size {size}")
        record.note("new", f"{item} has no golden file yet: look at it, and if it is right: {accept}")
        return _say(f"{item}: new, {len(table)} rows that nobody has accepted yet ({accept})")
    counted, total, worst = compare(table, target.read_text(encoding="utf-8"), rtol)
    if worst:
        cell = worst.cell and f"{total - counted} of {total} values agree; the worst is "
        how = f"If the change is meant, say why in the change and accept it: {accept}"
        raise GoldenMismatch(f"{item}: {cell or ''}{worst.text}. {how}", worst.cell)
    return _say(f"{item}: {total} of {total} values agree")


def within(table: pd.DataFrame, most: Mapping[str, float]) -> pd.DataFrame:
    """The table, where some columns may be so far from their golden file, whole numbers too.

    For counts that a close ranking moves by one or two, where a relative tolerance is none or too wide. It stands in
    ``table.attrs``, which pandas drops in many operations: so this is the last step before the comparison.

    Parameters
    ----------
    table : DataFrame
        It stays as it is.
    most : mapping of str to float
        Column -> the largest difference that agrees, in the column's unit.

    Returns
    -------
    DataFrame

    Raises
    ------
    ArgumentError
        For a column that is not there.
    """
    if missing := [name for name in most if name not in table.columns]:
        raise ArgumentError("most", "must name columns of the table", repr(missing[0]), list(table.columns))
    table = table.copy()
    table.attrs["within"] = dict(most)
    return table


@dataclasses.dataclass(frozen=True)
class Difference:
    """The worst difference of a table from its golden file.

    Attributes
    ----------
    text : str
        Says it.
    cell : tuple of (int, str) or None
        Row and column; None where the shape differs.
    """

    text: str
    cell: tuple[int, str] | None = None


def compare(table: pd.DataFrame, accepted: str, rtol: float | None = None) -> tuple[int, int, Difference | None]:
    """Compare ``table`` with the CSV text of the accepted one, by the rules of :func:`check`.

    Parameters
    ----------
    table : DataFrame
    accepted : str
        The content of a golden file.
    rtol : float, optional
        As for :func:`check`.

    Returns
    -------
    differ : int
        Number cells that differ; all where the shape does.
    total : int
        Number cells; all cells where none is a number.
    worst : Difference or None
        None where all agree.

    Raises
    ------
    ArgumentError
        As :func:`check`.
    """
    rtol = RTOL if rtol is None else rtol
    if not 0 <= rtol < 1:
        raise ArgumentError("rtol", "must be at least 0 and below 1", rtol)
    names, kinds, rows = tables.exact(table)
    old_names, *old_rows = list(csv.reader(io.StringIO(accepted))) or [[]]
    counted = [kind in ("int", "float") for kind in kinds]
    counted = counted if any(counted) else [True] * len(kinds)
    total, bad, worst = len(rows) * sum(counted), 0, None
    within = [table.attrs.get("within", {}).get(name, 0.0) for name in names]
    if names != old_names:
        return total, total, Difference(f"columns are {names}, accepted {old_names}")
    if len(rows) != len(old_rows):
        return total, total, Difference(f"{len(rows)} rows, accepted {len(old_rows)}")
    for r, (row, old) in enumerate(zip(rows, old_rows, strict=True)):
        for c, kind in enumerate(kinds):
            excess = _excess(row[c], old[c] if c < len(old) else "", kind, rtol, within[c])
            if excess > 1 or len(old) != len(row):
                bad += counted[c]
                if worst is None or excess > worst[0]:
                    worst = (excess, r, c)
    if worst is None:
        return 0, total, None
    _, r, c = worst
    now, old = rows[r][c], old_rows[r][c] if c < len(old_rows[r]) else ""
    labels = [f"{names[i]}={rows[r][i]}" for i, kind in enumerate(kinds) if kind != "float" and i != c]
    where = f"row {r}" + (f" ({', '.join(labels)})" if labels else "")
    allowed = f"allowed difference {within[c]:g}" if within[c] else "exact"
    if not within[c] and kinds[c] == "float" and (number := _number(old)) is not None:
        limit = rtol * max(abs(number), abs(float(now)), 0.001)
        finite = math.isfinite(number) and math.isfinite(float(now))
        allowed = f"allowed difference {limit:.6g} (relative {rtol:g})" if finite else "NaN and infinity exact"
    return bad, total, Difference(f"{where}, column {names[c]}: accepted {old}, now {now}, {allowed}", (r, names[c]))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _excess(now: str, old: str, kind: str, rtol: float, within: float) -> float:
    """The difference over what is allowed, relative or, where there is one, by ``within``: at most 1 agrees."""
    if now == old:
        return 0.0
    a, b = (_number(now), _number(old)) if kind == "float" or within else (None, None)
    if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    allowed = within or rtol * max(abs(a), abs(b), 0.001)
    return abs(a - b) / allowed if allowed else (0.0 if a == b else math.inf)


def _say(sentence: str) -> str:
    print(sentence)
    return sentence
