"""Small worlds that several items are tested on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.core.data.dataset import Dataset, Split


@pytest.fixture(scope="session")
def make_dataset():
    """``make_dataset(train, test, name)``: a dataset of these truths, without features."""

    def make(train, test, name="demo") -> Dataset:
        split = [Split(None, csr_matrix(np.asarray(Y, np.float32))) for Y in (train, test)]
        return Dataset(name, *split, A=0.55, B=1.5)

    return make


@pytest.fixture
def small(make_dataset):
    """Six train points, four labels seen 5, 3, 1 and 0 times; three test points."""
    train = np.zeros((6, 4))
    train[:5, 0] = train[:3, 1] = train[5, 2] = 1
    return make_dataset(train, [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0]])


@pytest.fixture
def tops():
    """Hits: head 1 0 / 0 1 / 1 0; tail 1 1 / 1 0 / 0 0."""
    head = xc.TopK.from_ids([[0, 2, 3, 1, -1], [0, 1, 3, 2, -1], [0, 1, 2, 3, -1]], n_labels=4)
    tail = xc.TopK.from_ids([[1, 0, 2, 3, -1], [2, 3, 0, 1, -1], [3, 2, 1, 0, -1]], n_labels=4)
    return {"head": head, "tail": tail}


@pytest.fixture(scope="session")
def world():
    """A complete truth, predictions near it, counts of a train set it could come from, and of how many points."""
    rng = np.random.default_rng(0)
    eta = rng.beta(0.4, 2.0, (80, 30))
    truth = (rng.random(eta.shape) < eta).astype(np.float32)
    top = xc.TopK.from_scores(eta + rng.normal(0, 0.2, eta.shape), 5)
    return truth, top, rng.integers(1, 400, 30), 2000


@pytest.fixture(scope="session")
def twin():
    return xc.twin("eurlex-4k", scale=0.03, seed=1)


@pytest.fixture(scope="session")
def top(twin):
    """Predictions for the twin's test points."""
    noise = np.random.default_rng(0).gumbel(0, 0.05, twin.test.marginals.shape)
    return xc.TopK.from_scores(twin.test.marginals.toarray() + noise, 8)
