"""Small data that the tests of several items share."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro import published


@pytest.fixture
def put(monkeypatch):
    """``put(source, value, **where)``: from now on the cells of the printed table ``source`` at ``where`` have this value."""

    def plant(source, value, **where):
        before = published.table

        def table(name):
            found = before(name)
            if name == source:
                keep = np.logical_and.reduce([found[column] == wanted for column, wanted in where.items()])
                assert keep.any()
                found.loc[keep, ["printed", "value", "reading"]] = [str(value), value, "as printed"]
            return found

        monkeypatch.setattr(published, "table", table)

    return plant
