"""Files made for one test."""

from __future__ import annotations

import pytest


@pytest.fixture
def file(tmp_path):
    """``file(text, name)``: the path of a file of that text or those bytes."""

    def write(text, name="a.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write
