"""What the reliability notebooks share."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.repro.papers.calibration._common import format_cell


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
