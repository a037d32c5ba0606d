"""The data that models are tried on."""

from __future__ import annotations

import pytest

import xcrepro as xc


@pytest.fixture(scope="session")
def twin():
    return xc.twin("eurlex-4k", scale=0.05, seed=0)


@pytest.fixture(scope="session")
def data():
    return xc.twin("eurlex-4k", scale=0.02, seed=0)
