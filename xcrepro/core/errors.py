"""The errors a user sees. Each names where the fault is, the rule, what came, and what to do.

All derive from :class:`XCError`, and the two below from ``ValueError`` as well, so that code which
does not know this package still catches them.
"""

from __future__ import annotations

import os
import re

__all__ = [
    "ArgumentError",
    "DataError",
    "DataMissing",
    "DataWarning",
    "XCError",
]


def __dir__() -> list[str]:
    return __all__


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


_LIKE_OPTIONS = ("train_truth", "n_labels", "points", "split", "seed", "n_resamples", "confidence_level", "metrics",
                 "unknown")  # fmt: skip
_OF_TRAIN = "--train-truth", "training labels, from which they are counted"
_IN_SHELL = {name: (f"--{name.replace('_', '-')}", "") for name in _LIKE_OPTIONS}
_IN_SHELL |= {"inverse_propensity": _OF_TRAIN, "label_counts": _OF_TRAIN}
_IN_SHELL |= {"Y_train": ("--train-truth", ""), "label_names": ("--labels", ""), "row_ids": ("--rows", "")}
_IN_SHELL |= {"ks": ("-k", ""), "one": ("--fractions", "the numbers are fractions, not percent")}
"""Arguments that a command has as an option, and what to do that Python says otherwise."""
_OPTION = re.compile(r"(--?[a-z][a-z-]*(?: [A-Z]+| [a-z]+(?:\|[a-z]+)*)?)(?: \([a-z_]+=[^()]*\)|, [a-z_]+=(?=[,)]))")
_CALLS = (
    (re.compile(r"help\(xcrepro(?:\.core)?\.data\.registry\)"), "docs/own_dataset.md"),
    (re.compile(r"xcrepro(?:\.core)?\.data\.registry\.names\(\) lists them"), "`xcrepro fetch --list` lists them"),
    (re.compile(r"[Tt]hen say one_based=True"), "Then say --one-based"),
    (re.compile(r"fractions with one=1"), "fractions with --fractions"),
)
"""Hints for Python, and what to type in a shell."""


def in_shell(said: object) -> str:
    """A message as somebody at a command line needs it: with options in place of Python's arguments.

    >>> in_shell("q.txt: found row d1, expected a row number, from 0. Name the file (--rows, row_ids=)")
    'q.txt: found row d1, expected a row number, from 0. Name the file (--rows)'
    >>> in_shell(ArgumentError("inverse_propensity", "must be given for PSP", None, "propensity.inverse(label_counts)"))
    '--train-truth must be given for PSP; got None: training labels, from which they are counted'
    """
    if isinstance(said, ArgumentError) and said.argument in _IN_SHELL:
        option, do = _IN_SHELL[said.argument]
        said = ArgumentError(option, said.rule, said.got, do or said.do)
    text = str(said)
    for hint, typed in _CALLS:
        text = hint.sub(typed, text)
    return _OPTION.sub(r"\1", text)


class DataWarning(UserWarning):
    """Something about a file or a result that does not stop anybody and should not go unseen."""


def system_fault(error: OSError) -> str:
    """What the system refused, in its own words, with the file where it is known: a full disk, a file in the way.

    >>> system_fault(OSError(28, "No space left on device", "/data/a.npz"))
    '/data/a.npz: No space left on device'
    """
    if isinstance(error, XCError):
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
