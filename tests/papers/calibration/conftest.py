"""What the tests of the calibration items share: a twin, predictions with a planted fault, and data of known counts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.data.dataset import Dataset, Split
from xcrepro.predictions import TopK


@pytest.fixture(scope="session")
def twin():
    return xc.twin("bibtex", scale=0.2, seed=0)


@pytest.fixture
def many():
    """A dataset of 300 points and 6 labels, and predictions of three places each; scores too high."""
    rng = np.random.default_rng(3)
    chance = rng.random((300, 6))
    Y = csr_matrix((rng.random((300, 6)) < chance**2).astype(np.float32))
    return SimpleNamespace(test=SimpleNamespace(Y=Y)), TopK.from_scores(chance, 3)


@pytest.fixture
def better_second():
    """``better_second(n)``: a dataset and five labels a point with about equal scores per place, the second place right far
    more often than the first."""

    def make(n: int) -> tuple[Dataset, TopK]:
        rng = np.random.default_rng(0)
        Y = csr_matrix((rng.random((n, 5)) < [0.2, 0.9, 0.5, 0.1, 0.1]).astype(np.float32))
        scores = np.tile(np.array([0.9, 0.6, 0.4, 0.2, 0.1]), (n, 1)) + rng.uniform(0, 0.01, (n, 5))
        split = Split(None, Y)
        return Dataset("own", split, split, 0.55, 1.5), TopK.from_scores(scores, 5)

    return make


@pytest.fixture
def bent_top():
    """``bent_top(twin, k, power)``: the twin's own probabilities to a power as predictions: overstated below 1, understated
    above."""

    def make(ds, k: int, power: float = 1.0) -> TopK:
        chance = ds.test.marginals
        bent = csr_matrix((chance.data.astype(np.float64) ** power, chance.indices, chance.indptr), chance.shape)
        return TopK.from_scores(bent, k)

    return make
