"""What the reliability notebooks share, against a slow way that shares nothing with it."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric


def test_errors_are_those_of_the_pairs_and_their_jackknife(overconfident):
    ds, top = overconfident
    names = ("ECE", "ACE", "Brier", "NLL")
    found = calibrated.measured(ds, {"a": top}, 2, names)
    for name in names:
        assert found[name].values["a"] == pytest.approx(calibrated.measure(ds, top, 2, (name,))[name])
    slow = []
    for block in np.array_split(np.arange(300), 20):
        keep = np.setdiff1d(np.arange(300), block)
        scores, hits = metric.pairs(ds.test.Y[keep], top.rows(keep), 2)
        slow.append(100 * np.mean((scores - hits.astype(float)) ** 2))
    np.testing.assert_allclose(found["Brier"].replicates["a"], slow, rtol=1e-6)
