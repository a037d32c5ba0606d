"""Beside the published numbers, with the paper's own rounding as tolerance."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from xcrepro.errors import ArgumentError, XCError
from xcrepro.repro import tables

if TYPE_CHECKING:
    import pandas as pd

_ABSENT = {"", "-", "–", "—", "nan", "None", "<NA>"}


def within(ours: float, printed: str | float, decimals: int | None = None) -> bool:
    """Whether ``ours`` rounds to what was printed: ``|ours - printed| <= half a unit of the last printed place``.

    The ends count, because papers round halves either way.

    Parameters
    ----------
    ours : float
        NaN and infinity are never within.
    printed : str or float
        In the same unit. As a text it carries its own decimals (``"25.70"`` has two); as a number it needs
        ``decimals``.
    decimals : int, optional
        Printed places after the point.

    Returns
    -------
    bool

    Raises
    ------
    ArgumentError
        For a printed value that is no finite number, and a number without ``decimals``.

    Examples
    --------
    >>> within(25.7349, "25.73"), within(25.735, "25.73"), within(25.7351, "25.73")
    (True, True, False)
    """
    return _off(ours, *_printed(printed, decimals)) == 0


def _printed(printed: object, decimals: int | None) -> tuple[Decimal, int]:
    """The printed number and its decimals."""
    try:
        number = Decimal(str(printed).strip())
        if not number.is_finite():
            raise InvalidOperation
    except InvalidOperation:
        raise ArgumentError("printed", "must be a number as the paper prints it", repr(printed)) from None
    if decimals is None and not isinstance(printed, str):
        raise ArgumentError("decimals", "must be given for printed numbers that are not text", None, "pass decimals=2")
    # A text's exponent is minus its decimals; "1e3" has none.
    return number, max(0, -number.as_tuple().exponent) if decimals is None else decimals


def _off(ours: float, number: Decimal, decimals: int) -> Decimal:
    """How far ``ours`` lies outside the rounding interval; 0 inside."""
    value = Decimal(repr(float(ours)))
    if not value.is_finite():
        return Decimal("Infinity")
    return max(Decimal(0), abs(value - number) - Decimal(5).scaleb(-decimals - 1))


def published(
    item: str, table: pd.DataFrame, ours: str = "ours", printed: str = "printed", decimals: int | None = None
) -> str:
    """Print and return ``item: 22 of 24 published values within rounding``; print a line for each of the rest.

    Nothing is raised for a difference: this is a finding, not a test.

    Parameters
    ----------
    item : str
        What the sentence begins with.
    table : DataFrame
        The columns besides ``ours`` and ``printed`` that are not floats name the row.
    ours, printed : str
        Columns of ``table`` in the same unit. Rows whose printed value is missing (NaN, empty, a dash) are not counted;
        NaN of ours counts as outside.
    decimals : int, optional
        As for :func:`within`.

    Returns
    -------
    str
        The sentence, without the lines.

    Raises
    ------
    ArgumentError
        For a column that is not there, and a printed value that is no number.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"method": ["PLT", "BR"], "ours": [81.254, 80.02], "printed": ["81.25", "80.0"]})
    >>> _ = published("demo/table1", table)
    demo/table1: 2 of 2 published values within rounding
    >>> table.loc[1, "printed"] = "80.2"
    >>> _ = published("demo/table1", table)
    demo/table1: 1 of 2 published values within rounding
      method=BR: printed 80.2, ours 80.020, off by 0.13 beyond rounding
    """
    table = tables.flat(table)
    for name in (ours, printed):
        if name not in table.columns:
            raise ArgumentError("table", f"must have the column {name!r}", list(table.columns))
    labels = [name for name in table.columns if name not in (ours, printed) and tables.kind(table[name]) != "float"]
    total, rest = 0, []
    for _, row in table.iterrows():
        written = row[printed]
        if str(written).strip() in _ABSENT:
            continue
        total += 1
        number, places = _printed(written, decimals)
        off = _off(row[ours], number, places)
        if off:
            where = ", ".join(f"{name}={row[name]}" for name in labels) or f"row {row.name}"
            shown = str(written).strip() if isinstance(written, str) else f"{float(written):.{places}f}"
            away = f"off by {float(off):.2g} beyond rounding" if off.is_finite() else "no number"
            rest.append(f"  {where}: printed {shown}, ours {float(row[ours]):.{places + 2}f}, {away}")
    sentence = f"{item}: {total - len(rest)} of {total} published values within rounding"
    print("\n".join([sentence, *rest]))
    return sentence


class Disagreement(XCError):
    """Two ways to the same number came to two numbers."""


def equal(what: str, /, *, rtol: float = 1e-6, **ways: float) -> str:
    """Print and return one number that several ways came to: by hand, by the library's call, in the table of all models.

    Parameters
    ----------
    what : str
        What the number is: ``"PSP@3 of PLT"``.
    rtol : float
        How far apart two ways may be, of the larger one (or of 0.001, if that is more).
    **ways : float or sequence of float
        Way -> what it came to, two at least; a sequence is compared one by one.

    Returns
    -------
    str

    Raises
    ------
    Disagreement
        With the two numbers.

    Examples
    --------
    >>> _ = equal("P@3", by_hand=2 / 3, call=0.6666666667)
    P@3: by hand = call = 0.6667
    >>> equal("P@3", by_hand=0.5, call=0.6)
    Traceback (most recent call last):
    xcrepro.repro.compare.Disagreement: P@3: by hand 0.5, call 0.6
    """
    import numpy as np

    if len(ways) < 2:
        raise ArgumentError("ways", "must be two at least", list(ways), "name each: by_hand=..., call=...")
    names = [name.replace("_", " ") for name in ways]
    found = [np.atleast_1d(np.asarray(value, np.float64)) for value in ways.values()]
    for name, value in zip(names[1:], found[1:], strict=True):
        if value.shape != found[0].shape or not np.allclose(
            value, found[0], rtol=rtol, atol=rtol * 1e-3, equal_nan=True
        ):
            raise Disagreement(f"{what}: {names[0]} {_written(found[0], 9)}, {name} {_written(value, 9)}")
    sentence = f"{what}: {' = '.join(names)} = {_written(found[0], 4)}"
    print(sentence)
    return sentence


def _written(values, digits: int) -> str:
    return ", ".join(f"{value:.{digits}g}" for value in values)
