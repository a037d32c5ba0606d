"""One number from several places: as a text prints it, rounded, and as several ways compute it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from xcrepro.core.errors import ArgumentError, XCError


def within(ours: float, printed: str) -> bool:
    """Whether ``ours`` rounds to what was printed: ``|ours - printed| <= half a unit of the last printed place``.

    ``printed`` is a text, because it carries its decimals: ``"25.70"`` has two. The ends count, because papers round halves
    either way. NaN and infinity are never within.
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
    """Print and return the one number that several ways (``by_hand=``, ``call=``, ...) give, or raise ``Disagreement``.

    ``rtol`` is relative to the larger number, or to 0.001 if that is more. Sequences are compared one by one.
    """
    import numpy as np

    if len(ways) < 2:
        raise ArgumentError("ways", "must be two at least", list(ways), "name each: by_hand=..., call=...")
    names = [name.replace("_", " ") for name in ways]
    found = [np.atleast_1d(np.asarray(value, np.float64)) for value in ways.values()]
    for name, value in zip(names[1:], found[1:], strict=True):
        near = {"rtol": rtol, "atol": rtol * 1e-3, "equal_nan": True}
        if value.shape != found[0].shape or not np.allclose(value, found[0], **near):
            raise Disagreement(f"{what}: {names[0]} {_written(found[0], 9)}, {name} {_written(value, 9)}")
    sentence = f"{what}: {' = '.join(names)} = {_written(found[0], 4)}"
    print(sentence)
    return sentence


def _written(values, digits: int) -> str:
    return ", ".join(f"{value:.{digits}g}" for value in values)
