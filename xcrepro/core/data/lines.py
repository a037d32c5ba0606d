"""Lines of text of a stranger's file, one by one: unpacked, decoded, numbered, and none of endless length."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator

from xcrepro.core.data.parsing import long_line, max_line_bytes
from xcrepro.core.data.sources import open_source
from xcrepro.core.errors import DataError


def text_lines(path: str | os.PathLike) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 text file, numbered from 1: plain, gzip, or a zip archive with one member."""
    for number, line in raw_lines(path):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            found = f"bytes that are no UTF-8 ({line[error.start : error.start + 4].hex(' ')} ...)"
            raise DataError(path, found, "text in UTF-8", line=number, do="Save the file as UTF-8") from None
        yield number, text.rstrip("\r\n")


def raw_lines(path: str | os.PathLike) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, unpacked, with their numbers from 1 and their ends, the first without a byte order mark; a DataError
    for one beyond the limit."""
    limit, number = max_line_bytes(), 0
    with open_source(path) as stream:
        while line := stream.readline(limit + 1):
            number += 1
            if len(line) > limit:
                raise long_line(path, number)
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def json_lines(path: str | os.PathLike) -> Iterator[tuple[int, dict]]:
    """The objects of JSON lines with the numbers of their lines; blank lines are passed over."""
    for line, text in text_lines(path):
        if not text.strip():
            continue
        record = json_of(text)
        if not isinstance(record, dict):
            raise DataError(path, shown(text), "one whole JSON object a line", line=line)
        yield line, record


def json_of(text: str | bytes) -> object:
    """What a JSON text holds; None for what is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def check_text(path: str | os.PathLike, line: int | None, text: str) -> str:
    """``text``, unless it is half a character, which JSON can spell and no file can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(path, shown(text), "text; this is half of a character", line=line) from None
    return text


def shown(value: object) -> str:
    """A value as an error shows it: at most 60 characters."""
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    text = text if len(text) <= 60 else text[:57] + "..."
    return repr(text) if isinstance(value, str) else text


_TRUE = frozenset(("true", "t", "yes", "y", "present", "relevant", "positive", "on"))
_FALSE = frozenset(("false", "f", "no", "n", "absent", "irrelevant", "negative", "off"))


def logical(text: str) -> float | None:
    """1 or 0 of a word that says yes or no, in any case; None of any other text.

    >>> logical("TRUE"), logical("absent"), logical("maybe")
    (1.0, 0.0, None)
    """
    word = text.strip().casefold()
    return 1.0 if word in _TRUE else 0.0 if word in _FALSE else None


# Each digit can be taken in one way only, so that the time grows with the length and not with its square.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)


def real(path: str | os.PathLike, line: int | None, text: str, what: str) -> float:
    """A number as C and Fortran write it; infinity is one, NaN is none. The error calls it ``what``."""
    if not _NUMBER.fullmatch(text):
        raise DataError(path, f"{what} {shown(text)}", "a number", line=line)
    value = float(text)
    if math.isinf(value) and "i" not in text.lower():
        raise DataError(path, f"{what} {shown(text)}", "a number that float64 can hold", line=line)
    return value
