"""Fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project folder."""
    return ROOT


@pytest.fixture(scope="session")
def real_data():
    """``real_data("bibtex")``: that folder of the optional local data, or a skip that says where it was looked for."""

    def folder(name: str) -> Path:
        base = Path(os.environ.get("XCREPRO_TEST_DATA", ROOT.parent / "shared" / "data"))
        path = base / name
        if not path.exists():
            pytest.skip(f"real data {name!r} is not in {base} (set XCREPRO_TEST_DATA)")
        return path

    return folder
