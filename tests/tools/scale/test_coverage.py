"""Greedy coverage in blocks: one block a round is the sequential greedy; what rounds lose is bounded here on small data."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import sparse

import xcrepro as xc
from tests.refused import refused
from xcrepro.core.errors import ArgumentError


@pytest.fixture(scope="module")
def chances():
    """Rows that share their likely labels: the greedy has something to gain."""
    rng = np.random.default_rng(0)
    popular = rng.random(400) ** 4
    dense = np.minimum(rng.random((600, 400)) * popular * 2, 1)
    dense[rng.random(dense.shape) < 0.9] = 0
    dense[5, 3] = dense[300, 3] = 1.0  # certain hits
    return sparse.csr_matrix(dense)


def cut(matrix, n):
    edges = np.linspace(0, matrix.shape[0], n + 1).astype(int)
    return {f"b{lo:04d}": functools.partial(lambda part: part, matrix[lo:hi]) for lo, hi in zip(edges[:-1], edges[1:], strict=True)}  # noqa: E501, RUF007  # fmt: skip


def joined(selection, n_labels):
    parts = selection.load()
    return xc.TopK(np.vstack([p.ids for p in parts]), np.vstack([p.scores for p in parts]), n_labels)


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_one_block_a_round_is_the_sequential_greedy(chances, tmp_path, beta):
    found = xc.scale.greedy_coverage(cut(chances, 6), 3, tmp_path, beta=beta, at_once=1, passes=1)
    top, wanted = joined(found, 400), xc.decide.greedy_coverage(chances, 3, beta)
    assert top.ids.tobytes() == wanted.ids.tobytes()
    assert top.scores.tobytes() == wanted.scores.tobytes()
    assert found.expected_coverage[0] == pytest.approx(xc.decide.expected_coverage(chances, wanted, 3)[0])


def test_rounds_lose_and_a_second_pass_wins_back(chances, tmp_path):
    sequential = xc.decide.expected_coverage(chances, xc.decide.greedy_coverage(chances, 3), 3)[0]
    plain = xc.decide.expected_coverage(chances, xc.decide.top_k(chances, 3), 3)[0]
    found = xc.scale.greedy_coverage(cut(chances, 6), 3, tmp_path, at_once=6, passes=3)
    first, *_, last = found.expected_coverage
    assert plain < first < sequential
    assert found.expected_coverage == sorted(found.expected_coverage)
    assert last > first + 0.5 * (sequential - first)
    top = joined(found, 400)
    assert last == pytest.approx(xc.decide.expected_coverage(chances, top, 3)[0])  # the shared state is what was chosen


def test_engines_agree(chances, tmp_path, client):
    matrices = {name: block() for name, block in cut(chances, 4).items()}
    paths = []
    for name, matrix in matrices.items():
        sparse.save_npz(tmp_path / f"{name}.npz", matrix.astype(np.float32))
        paths.append(tmp_path / f"{name}.npz")
    here = xc.scale.greedy_coverage(paths, 3, tmp_path / "a", at_once=2)
    for engine, more in (("joblib", {"workers": 2}), ("dask", {"client": client})):
        there = xc.scale.greedy_coverage(paths, 3, tmp_path / engine, at_once=2, engine=engine, **more)
        assert there.expected_coverage == here.expected_coverage
        assert joined(there, 400).ids.tobytes() == joined(here, 400).ids.tobytes()


def test_what_is_refused(chances, tmp_path):
    bad = chances.copy()
    bad.data[0] = 1.5
    with pytest.raises(ArgumentError, match=r"block mine: probabilities .*1\.5 at row 0"):
        xc.scale.greedy_coverage({"mine": lambda: bad}, 3, tmp_path)
    with pytest.raises(ArgumentError, match="400 labels"):
        xc.scale.greedy_coverage([lambda: chances, lambda: chances[:, :9]], 3, tmp_path, at_once=1)
    with refused("blocks"):
        xc.scale.greedy_coverage([], 3, tmp_path)
    with pytest.raises(ArgumentError, match="at_once"):
        xc.scale.greedy_coverage([lambda: chances], 3, tmp_path, at_once=0)
