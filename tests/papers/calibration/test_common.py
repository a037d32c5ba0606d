"""What the reliability items share: by hand, or against a slow way that shares nothing with it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.findings import Difference
from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.papers.calibration import _common as shared


def test_errors_of_states_are_those_of_the_pairs_and_their_jackknife(overconfident):
    ds, top = overconfident
    states = calibrated.before_after(ds, {"a": top}, (2,))
    for name in ("ECE", "ACE", "Brier", "NLL"):
        found = calibrated.measured_states(ds, states, name)[2]
        for state, each in zip(("before", "after"), states["a", 2], strict=True):
            assert found.values[f"a, {state}"] == pytest.approx(calibrated.measure(ds, each, 2, (name,))[name])
    blocks = np.array_split(np.arange(300), 20)
    slow = []
    for block in blocks:
        keep = np.setdiff1d(np.arange(300), block)
        scores, hits = metric.pairs(ds.test.Y[keep], states["a", 2][0].rows(keep))
        slow.append(100 * np.mean((scores - hits.astype(float)) ** 2))
    found = calibrated.measured_states(ds, states, "Brier")[2]
    np.testing.assert_allclose(found.replicates["a, before"], slow, rtol=1e-6)
    assert calibrated.before_minus_after(found)[0].verdict == "above"


def test_relations_are_clear_only_where_chance_is_excluded():
    def errors(n, values, datasets=("d",)):
        rows = [
            (1, d, f"m{i}", float(i), "ECE", "none", v) for d in datasets for i, v in zip(range(n), values, strict=True)
        ]
        return pd.DataFrame(rows, columns=["k", "dataset", "method", "P", "metric", "variant", "value"])

    assert "clear relation in 1 of 1 case (a dataset at one k): d at k = 1 (tau 1.00)" in shared.describe_relations(
        errors(8, range(8))
    )
    # Two cases of five models: even one in the exact order of P is no more than chance.
    said = shared.describe_relations(errors(4, [0, 1, 2, 3], ("d", "e")))
    assert "no clear relation in any of 2 cases" in said
    assert "with 4 models none could be" in said
    assert "too few models" in shared.describe_relations(errors(1, [3]))
    assert "none could be" not in shared.describe_relations(errors(8, [3, 1, 5, 0, 6, 2, 7, 4]))


def test_signs_by_hand():
    found = [
        Difference("a, x", "b", 1.0, 0.1, 19, 0.01),
        Difference("c, x", "d", -1.0, 0.1, 19, 0.01),
        Difference("e", "f", 1.0, 1.0, 19, 0.4),
    ]
    assert shared.sort_by_sign(found) == {"above": ["a"], "below": ["c"], "not clear": ["e"]}
    assert "not clear" in shared.describe_difference(found[2], "x")
