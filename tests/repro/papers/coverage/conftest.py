"""Three points whose metrics can be worked out by hand, and a small twin."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import xcrepro as xc
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.repro.papers.coverage._common import Run


def _split(rows: list[list[int]], n_labels: int) -> Split:
    Y = np.zeros((len(rows), n_labels), np.float32)
    for row, labels in zip(Y, rows, strict=True):
        row[labels] = 1
    return Split(sparse.csr_matrix(np.eye(len(rows), 6, dtype=np.float32)), sparse.csr_matrix(Y))


@pytest.fixture
def small():
    """``small(times)``: train counts 3, 2, 1, 0; test labels 0 1, 0 2, 2, repeated."""

    def dataset(times: int = 1) -> Dataset:
        test = [[0, 1], [0, 2], [2]] * times
        return Dataset("own", _split([[0, 1], [0, 1], [0, 2]], 4), _split(test, 4), A=0.55, B=1.5)

    return dataset


@pytest.fixture
def scores():
    """Of the three points. Top 1 is label 0, 0, 2: all right. Top 2: 0 1; 0 2; 2 0, of which the last is wrong."""
    return sparse.csr_matrix([[0.9, 0.8, 0.1, 0.0], [0.9, 0.2, 0.8, 0.0], [0.3, 0.2, 0.7, 0.0]], dtype=np.float32)


@pytest.fixture(scope="session")
def twin():
    return xc.twin("eurlex-4k", scale=0.03, seed=0)


@pytest.fixture(scope="session")
def run(twin) -> Run:
    tree = xc.models.PLT(trees=2, max_leaf=20, seed=0).fit(twin.train.X, twin.train.Y)
    return Run(0, tree.predict_proba(twin.test.X, twin.train.Y.shape[1]), tree)
