"""The errors a user sees. Each names where the fault is, the rule, what came, and what to do.

All derive from :class:`XCError`, and the two below from ``ValueError`` as well, so that code which
does not know this package still catches them.
"""

from __future__ import annotations

import os

_LONGEST = 1000
"""Characters of a file, or of an argument, that a message shows at most."""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class XCError(Exception):
    """Base of every error this package raises on purpose."""


class ArgumentError(XCError, ValueError):
    """An argument breaks a rule.

    >>> raise ArgumentError("k", "must be at least 1", 0, "ask for one place or more")
    Traceback (most recent call last):
    xcrepro.core.errors.ArgumentError: k must be at least 1; got 0: ask for one place or more
    """

    def __init__(self, argument: str, rule: str, got: object, do: str = "") -> None:
        self.argument, self.rule, self.got, self.do = argument, rule, got, do
        super().__init__(f"{argument} {rule}; got {_cut(str(got))}" + (f": {do}" if do else ""))

    def __reduce__(self):
        """Errors come back from other processes."""
        return ArgumentError, (self.argument, self.rule, str(self.got), self.do)


class DataError(XCError, ValueError):
    """A file does not hold what its format says. ``line`` counts from 1, header included.

    >>> raise DataError("train.txt", "label id 159", "ids 0 to 158 (the header says 159 labels)", line=17)
    Traceback (most recent call last):
    xcrepro.core.errors.DataError: train.txt, line 17: found label id 159, expected ids 0 to 158 (the header says 159 labels)
    """

    def __init__(
        self, path: str | os.PathLike, found: str, expected: str, *, line: int | None = None, do: str = ""
    ) -> None:
        self.path, self.found, self.expected, self.line, self.do = os.fspath(path), found, expected, line, do
        where = self.path if line is None else f"{self.path}, line {line}"
        super().__init__(f"{where}: found {_cut(found)}, expected {_cut(expected)}" + (f". {do}" if do else ""))

    def __reduce__(self):
        return _data_error, (self.path, self.found, self.expected, self.line, self.do)


def _data_error(path: str, found: str, expected: str, line: int | None, do: str) -> DataError:
    return DataError(path, found, expected, line=line, do=do)


class DataMissing(XCError, FileNotFoundError):
    """Data is not on this machine and cannot be fetched; the message says which file to put where."""


def system_fault(error: OSError) -> str:
    """What the system refused, in its own words, with the file where it is known: a full disk, a file in the way.

    >>> system_fault(OSError(28, "No space left on device", "/data/a.npz"))
    '/data/a.npz: No space left on device'
    """
    if isinstance(error, XCError):
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
