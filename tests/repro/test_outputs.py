"""When two outputs say the same: each kind of difference planted."""

from __future__ import annotations

import pytest

from xcrepro.repro import outputs


@pytest.mark.parametrize(
    ("old", "new", "rtol", "same"),
    [
        ("P@1 0.5000", "P@1 0.5000", 1e-9, True),
        ("P@1   0.50", "P@1 0.50\n", 1e-9, True),
        ("a 1\n\nb 2", "a 1\nb 2", 1e-9, True),
        ("0.50", "0.51", 1e-9, False),
        ("50.0", "50.9", 0.02, True),
        ("50.0", "51.3", 0.02, False),
        ("-50.0", "50.0", 0.02, False),
        ("0.0", "-0.0", 1e-9, True),
        ("1,234.5", "1,235.0", 0.02, True),
        ("23 of 40", "24 of 40", 0.02, False),
        ("fig3 0.5", "fig4 0.5", 0.02, False),
        ("Wiki10-31K", "Wiki10-30K", 0.02, False),
        ("1.5e-03", "1.51e-03", 0.02, True),
        ("1.5e-03", "1.7e-03", 0.02, False),
        ("PLT leads", "PLT trails", 0.02, False),
        ("PLT 0.5", "PLT 0.5 more", 0.02, False),
        ("a", "a\nb", 0.02, False),
        ("nan", "0.5", 0.02, False),
        ('<td style="text-align:right">0.51</td>', '<td style="text-align:right">0.52</td>', 0.02, True),
        ('<td style="text-align:right">0.51</td>', '<td style="text-align:left">0.51</td>', 0.02, False),
    ],
)
def test_texts(old, new, rtol, same):
    assert (outputs.difference(old, new, rtol) == "") is same
    assert (outputs.difference(new, old, rtol) == "") is same


def test_cells():
    said = {"output_type": "stream", "name": "stdout", "text": "0.5\n"}
    shown = {"output_type": "execute_result", "data": {"text/plain": ["0.5"], "text/html": ["<b>0.5</b>"]}}
    other = {"output_type": "execute_result", "data": {"text/plain": ["0.5"], "text/html": ["<b>0.7</b>"]}}
    assert outputs.cell_difference([said, shown], [dict(said), dict(shown)], 0) == ""
    assert "instead of" in outputs.cell_difference([said], [shown], 0)
    assert "instead of" in outputs.cell_difference([said], [], 0)
    assert "0.7" in outputs.cell_difference([shown], [other], 0.02)
    plain = {"output_type": "execute_result", "data": {"text/plain": ["0.5"]}}
    assert "output as text/plain instead of" in outputs.cell_difference([shown], [plain], 0)
