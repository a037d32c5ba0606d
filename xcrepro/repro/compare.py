"""One number from several places: as a text prints it, rounded, and as several ways compute it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from xcrepro.errors import ArgumentError, XCError


def within(ours: float, printed: str) -> bool:
    """Whether ``ours`` rounds to what was printed: ``|ours - printed| <= half a unit of the last printed place``.

    The ends count, because papers round halves either way.

    Parameters
    ----------
    ours : float
        NaN and infinity are never within.
    printed : str
        In the same unit; it carries its own decimals (``"25.70"`` has two).

    Returns
    -------
    bool

    Raises
    ------
    ArgumentError
        For a printed value that is no finite number.

    Examples
    --------
    >>> within(25.7349, "25.73"), within(25.735, "25.73"), within(25.7351, "25.73")
    (True, True, False)
    """
    try:
        number, value = Decimal(printed.strip()), Decimal(repr(float(ours)))
        if not number.is_finite():
            raise InvalidOperation
    except InvalidOperation:
        raise ArgumentError("printed", "must be a number as the paper prints it", repr(printed)) from None
    # A text's exponent is minus its decimals; "1e3" has none.
    decimals = max(0, -number.as_tuple().exponent)
    return value.is_finite() and abs(value - number) <= Decimal(5).scaleb(-decimals - 1)


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
