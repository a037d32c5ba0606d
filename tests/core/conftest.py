"""Probabilities that decisions are tried on."""

import numpy as np
import pytest
import scipy.sparse as sp


@pytest.fixture(scope="session")
def crowd():
    """500 rows of 30 random candidates among 300 labels, random probabilities without ties, unsorted."""
    rng = np.random.default_rng(5)
    labels = np.argsort(rng.random((500, 300)), axis=1)[:, :30]
    values = (rng.random((500, 30)) ** 4).astype(np.float32)
    return sp.csr_matrix((values.ravel(), labels.ravel().astype(np.int32), np.arange(0, 15_001, 30)), (500, 300))
