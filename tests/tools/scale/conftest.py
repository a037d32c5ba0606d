"""A Dask cluster of two processes for all tests of this folder, and blocks to work on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

import xcrepro as xc

N_LABELS = 300


def make(n: int, seed: int, n_labels: int = N_LABELS, k: int = 5):
    """Truth and probabilities of a long tail: some rows without labels, some with fewer than k predictions."""
    rng = np.random.default_rng(seed)
    Y = sparse.random(n, n_labels, 0.01, "csr", np.float32, rng)
    Y.data[:] = 1
    scores = sparse.random(n, n_labels, 0.03, "csr", np.float32, rng) + 0.4 * Y.multiply(
        rng.random((n, n_labels)) < 0.5
    )
    scores = sparse.csr_matrix(scores)
    scores.data = np.minimum(scores.data.round(2), 1)  # ties
    return Y, xc.TopK.from_scores(scores, k)


@pytest.fixture(scope="session")
def data():
    return make(700, 0)


@pytest.fixture
def paths(data, tmp_path):
    """The data in blocks of other sizes, an empty one among them."""
    Y, top = data
    edges = [0, 90, 91, 91, 300, 520, 700]
    return [
        xc.scale.write_block(tmp_path / f"part-{lo}-{i}.npz", Y[lo:hi], top.rows(slice(lo, hi)), lo)
        for i, (lo, hi) in enumerate(itertools.pairwise(edges))
    ]


@pytest.fixture(scope="session")
def client():
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'xcrepro[scale]'")
    from xcrepro.tools.scale import evaluation

    with evaluation._connected(None, 2) as found:
        yield found
