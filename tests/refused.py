"""Errors by kind, argument, value, file and line, so that a better sentence breaks no test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from xcrepro.core.errors import ArgumentError, DataError

ANY = object()


@contextmanager
def refused(argument: str, got: object = ANY, match: str | None = None) -> Iterator[pytest.ExceptionInfo]:
    """An ArgumentError about this argument, for this value (as text) where one is given."""
    with pytest.raises(ArgumentError, match=match) as caught:
        yield caught
    assert caught.value.argument == argument
    assert got is ANY or str(caught.value.got) == str(got)


@contextmanager
def damaged(path: str | Path, line: int | None = None, match: str | None = None) -> Iterator[pytest.ExceptionInfo]:
    """A DataError that names this file (its name is enough) and this line."""
    with pytest.raises(DataError, match=match) as caught:
        yield caught
    assert Path(caught.value.path).name == Path(path).name
    assert caught.value.line == line
