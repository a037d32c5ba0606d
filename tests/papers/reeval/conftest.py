"""A twin with three rankings of its test points, and a dataset of one's own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import xcrepro as xc


@pytest.fixture(scope="session")
def twin():
    return xc.twin("eurlex-4k", scale=0.2, seed=0)


@pytest.fixture(scope="session")
def loaded(twin):
    return {"EURLex-4K": twin}


@pytest.fixture(scope="session")
def tops(twin):
    """A good ranking, one with much noise, and one that leaves out every label with fewer than 100 train points."""
    noisy = twin.test.observed_marginals.copy()
    noisy.data = noisy.data * np.random.default_rng(3).uniform(0.2, 1.0, noisy.data.size)
    head = twin.test.observed_marginals.multiply(twin.label_counts >= 100).tocsr()
    head.eliminate_zeros()
    scores = {"SVM": twin.test.observed_marginals, "noisy": noisy, "head": head}
    return {"EURLex-4K": {name: xc.TopK.from_scores(matrix, 20) for name, matrix in scores.items()}}


@pytest.fixture
def dataset():
    def make(Y, counts):
        test = SimpleNamespace(Y=sparse.csr_matrix(np.asarray(Y, np.float32)))
        return SimpleNamespace(name="own", test=test, label_counts=np.asarray(counts), n_train=100, A=0.55, B=1.5)

    return make
