"""The errors a user sees. Each names where the fault is, the rule, what came, and what to do.

All derive from :class:`XCError`, and the two below from ``ValueError`` as well, so that code which
does not know this package still catches them.
"""

from __future__ import annotations

import os

_LONGEST = 1000
"""Characters of a file that a message shows at most."""


class XCError(Exception):
    """Base of every error this package raises on purpose."""


class ArgumentError(XCError, ValueError):
    """An argument breaks a rule.

    >>> raise ArgumentError("k", "must be at least 1", 0, "ask for one place or more")
    Traceback (most recent call last):
    xcrepro.errors.ArgumentError: k must be at least 1; got 0: ask for one place or more
    """

    def __init__(self, argument: str, rule: str, got: object, do: str = "") -> None:
        self.argument, self.rule, self.got, self.do = argument, rule, got, do
        super().__init__(f"{argument} {rule}; got {got}" + (f": {do}" if do else ""))


class DataError(XCError, ValueError):
    """A file does not hold what its format says. ``line`` counts from 1, header included.

    >>> raise DataError("train.txt", "label id 159", "ids 0 to 158 (the header says 159 labels)", line=17)
    Traceback (most recent call last):
    xcrepro.errors.DataError: train.txt, line 17: found label id 159, expected ids 0 to 158 (the header says 159 labels)
    """

    def __init__(
        self, path: str | os.PathLike, found: str, expected: str, *, line: int | None = None, do: str = ""
    ) -> None:
        self.path, self.found, self.expected, self.line, self.do = os.fspath(path), found, expected, line, do
        found, expected = (
            text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..." for text in (found, expected)
        )
        where = self.path if line is None else f"{self.path}, line {line}"
        super().__init__(f"{where}: found {found}, expected {expected}" + (f". {do}" if do else ""))


class DataMissing(XCError, FileNotFoundError):
    """Data is not on this machine and cannot be fetched; the message says which file to put where."""
