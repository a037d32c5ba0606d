"""A label's own calibration gap: loops over pairs, and simulations of what the shrinking is for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.refused import refused

m = xc.metrics


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_gaps_equal_loops(seed, k):
    rng = np.random.default_rng(seed)
    Y = rng.random((15, 6)) < 0.4
    top = xc.TopK.from_scores(np.where(rng.random((15, 6)) < 0.7, rng.random((15, 6)), -np.inf), 4)
    pairs = {}
    for row in range(15):
        for label, score in zip(top.ids[row, :k].tolist(), top.scores[row, :k].tolist(), strict=True):
            if label >= 0:
                pairs.setdefault(label, []).append((score, Y[row, label]))
    gap = {label: np.mean([s - y for s, y in own]) for label, own in pairs.items()}
    chance = {}
    for label, own in pairs.items():
        p = (sum(s for s, _ in own) + 0.5) / (len(own) + 1)
        chance[label] = p * (1 - p) / len(own)
    w = {label: 1 / chance[label] for label in pairs}
    mean = sum(w[x] * gap[x] for x in w) / sum(w.values())
    Q = sum(w[x] * (gap[x] - mean) ** 2 for x in w)
    t = 0.0
    if len(w) > 1:
        t = max(0.0, (Q - len(w) + 1) / (sum(w.values()) - sum(x * x for x in w.values()) / sum(w.values())))
    w = {label: 1 / (t + chance[label]) for label in pairs}
    mean = sum(w[x] * gap[x] for x in w) / sum(w.values())
    found = m.label_gaps(Y, top, k)
    assert sorted(found["label"]) == sorted(pairs)
    for line in found.itertuples():
        shrunk = mean + (gap[line.label] - mean) * t / (t + chance[line.label])
        assert (line.predicted, line.gap, line.shrunk) == (
            len(pairs[line.label]),
            pytest.approx(gap[line.label]),
            pytest.approx(shrunk, abs=1e-9),
        )
    assert found["shrunk"].abs().is_monotonic_decreasing
    assert m.label_gaps(Y, top, k, most=2)["label"].tolist() == found["label"][:2].tolist()


def test_edges():
    one = xc.TopK.from_ids([[1]], [[1.0]], n_labels=3)
    assert m.label_gaps([[0, 0, 0]], one, 1)[["label", "gap", "shrunk", "stderr"]].to_numpy().tolist() == [[1, 1, 1, 0]]
    empty = xc.TopK.from_ids([[-1]], n_labels=3)
    assert len(m.label_gaps([[0, 1, 0]], empty, 1)) == 0
    assert m.label_gaps([[0, 1, 0]], one, 1, label_names=["a", "b", "c"])["label"].tolist() == ["b"]
    with refused("top"):
        m.label_gaps([[0, 1, 0]], xc.TopK.from_ids([[1]], n_labels=3), 1)
    with refused("label_names", 1):
        m.label_gaps([[0, 1, 0]], one, 1, label_names=["a"])
    with refused("ks"):
        m.label_gaps([[0, 1, 0]], one, 2)
