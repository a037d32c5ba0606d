"""What the reliability notebooks share, against a slow way that shares nothing with it."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric


def test_errors_are_those_of_the_pairs(overconfident):
    ds, top = overconfident
    scores, hits = metric.pairs(ds.test.Y, top, 2)
    found = calibrated.measure(ds, top, 2, ("Brier", "P"))
    assert found["Brier"] == pytest.approx(100 * np.mean((scores - hits.astype(float)) ** 2), rel=1e-6)
    assert found["P"] == pytest.approx(100 * hits.mean(), rel=1e-9)
