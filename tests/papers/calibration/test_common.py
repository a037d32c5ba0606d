"""What the reliability notebooks share, against a slow way that shares nothing with it."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.papers.calibration._common import format_cell


def test_errors_are_those_of_the_pairs(overconfident):
    ds, top = overconfident
    scores, hits = metric.pairs(ds.test.Y, top, 2)
    found = calibrated.measure(ds, top, 2, ("Brier", "P"))
    assert found["Brier"] == pytest.approx(100 * np.mean((scores - hits.astype(float)) ** 2), rel=1e-6)
    assert found["P"] == pytest.approx(100 * hits.mean(), rel=1e-9)


@pytest.mark.parametrize(
    ("printed", "value", "reading", "text"),
    [
        ("1.79", 17.9, "corrected", "1.79 [17.9]"),
        ("1.60", 11.6, "uncertain", "1.60 [11.6?]"),
        ("9.79", 9.79, "uncertain", "9.79 [?]"),
        ("18.45", np.nan, "uncertain", "18.45 [unknown]"),
        ("12.3", 12.3, "as printed", "12.3"),
        ("", np.nan, "as printed", "-"),
    ],
)
def test_a_cell_has_our_reading_where_it_differs(printed, value, reading, text):
    assert format_cell(printed, value, reading) == text
