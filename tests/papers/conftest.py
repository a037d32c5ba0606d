"""Small data that the tests of several items share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from xcrepro import TopK, published


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


@pytest.fixture
def overconfident():
    """A dataset of 300 points and 6 labels, and predictions of three places each with scores too high."""
    rng = np.random.default_rng(3)
    chance = rng.random((300, 6))
    Y = csr_matrix((rng.random((300, 6)) < chance**2).astype(np.float32))
    train = csr_matrix((rng.random((50, 6)) < 0.3).astype(np.float32))
    ds = SimpleNamespace(train=SimpleNamespace(Y=train), test=SimpleNamespace(Y=Y), label_names=())
    return ds, TopK.from_scores(chance, 3)


@pytest.fixture
def better_second():
    """A dataset of 400 points and five labels each with about equal scores per place, the second place right far more often
    than the first."""
    rng = np.random.default_rng(0)
    Y = csr_matrix((rng.random((400, 5)) < [0.2, 0.9, 0.5, 0.1, 0.1]).astype(np.float32))
    scores = np.array([0.9, 0.6, 0.4, 0.2, 0.1]) + rng.uniform(0, 0.01, (400, 5))
    return SimpleNamespace(test=SimpleNamespace(Y=Y)), TopK.from_scores(scores, 5)
