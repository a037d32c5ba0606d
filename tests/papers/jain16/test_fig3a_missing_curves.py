"""Fig. 3a: what goes missing, by hand and against dropping it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import xcrepro as xc
from xcrepro import propensity
from xcrepro.errors import ArgumentError
from xcrepro.papers.jain16 import fig3a_missing_curves as fig3a


def test_shares_by_hand():
    n = 1000
    C = (math.log(n) - 1) * 2.5**0.55
    p1, p40 = 1 / (1 + C * 2.5**-0.55), 1 / (1 + C * 41.5**-0.55)
    assert p1 == pytest.approx(1 / math.log(n))
    row = fig3a.compute_shares(np.array([1, 1, 40, 0]), n, [0.55]).iloc[0]
    assert row["missing %"] == pytest.approx(100 * (1 - (2 * p1 + 40 * p40) / 42))
    assert row["rare missing %"] == pytest.approx(100 * (1 - p1))
    assert row["never seen %"] == pytest.approx(100 * (2 * (1 - p1) + (1 - p40) ** 40) / 3)
    assert math.isnan(fig3a.compute_shares(np.array([40]), n, [0.55])["rare missing %"].item())


def test_shares_are_what_dropping_takes():
    ds = xc.twin("eurlex-4k", scale=0.1, seed=0)
    counts, n = ds.label_counts, ds.n_train
    expected = fig3a.compute_shares(counts, n, [0.55])["missing %"].item()
    p = 1 / propensity.inverse(counts, n, 0.55, 1.5)
    left = [propensity.drop_labels(ds.train.Y, p, seed).nnz for seed in range(30)]
    deviation = 100 * math.sqrt((counts @ (p * (1 - p))) / 30) / counts.sum()
    assert abs(100 * (1 - np.mean(left) / counts.sum()) - expected) <= 4 * deviation


def test_the_complete_truth():
    name, counts, n = fig3a.load_counts()
    assert (name, counts.sum(), counts.size, n) == ("EURLex-4K", 102_741, 3993, 19_314)
    with pytest.raises(ArgumentError, match="folder"):
        fig3a.load_counts("bibtex")
