"""A small dataset with every kind of label, predictions of its points, and its report, made once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from xcrepro import TopK


class Small:
    """120 points and 30 labels of falling frequency; a good and a worse model with probabilities."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        chance = rng.random((120, 30)) * np.linspace(0.5, 0.02, 30)
        self.Y = csr_matrix((rng.random((120, 30)) < chance).astype(np.float32))
        self.train = csr_matrix((rng.random((400, 30)) < np.linspace(0.4, 0.001, 30)).astype(np.float32))
        self.good = TopK.from_scores(chance, 10)
        self.bad = TopK.from_scores(chance * rng.random((120, 30)), 10)
        self.tops = {"good": self.good, "bad": self.bad}

    def drawn(self, seed: int) -> TopK:
        rng = np.random.default_rng(seed)
        return TopK.from_scores(rng.random((120, 30)) * np.linspace(0.9, 0.1, 30), 10)


@pytest.fixture(scope="package")
def small() -> Small:
    return Small()


@pytest.fixture(scope="package")
def made(small):
    import xcrepro as xc

    return xc.report(small.Y, small.tops, train_truth=small.train, title="Small", n_resamples=60, per_point=["nDCG"])


@pytest.fixture
def no_figures(monkeypatch) -> None:
    """Where a test is about something else: to draw takes longest. What is drawn is held to its table all the same."""
    from xcrepro.repro.drawing import figures

    def held(fig, table, **_) -> dict[str, bytes]:
        figures.held(fig, table)
        return {".svg": b"<svg></svg>", ".png": b"PNG", ".pdf": b"%PDF"}

    monkeypatch.setattr(figures, "render", held)
