"""Fig 6 from print: the differences in its title, and the point that no text states."""

from __future__ import annotations

import pytest

from xcrepro.papers.calibration import fig6_losses


def test_the_claims_bear_the_title_out_and_the_missing_point_stays_missing():
    table = fig6_losses.compute()
    claims = fig6_losses.compute_claims(table).set_index("loss")
    assert claims["worse in both"].to_dict() == {"focal": "no", "ASY": "yes", "squared hinge": "not stated"}
    assert claims.loc["focal", "P@5 minus BCE"] == pytest.approx(-11.66)
    stated = table[table["kind"] == "loss of Renee"].dropna()
    assert len(stated) == 3
    assert stated.loc[stated["ECE@5"].idxmin(), "name"] == "focal"
    texts = [text.get_text() for text in fig6_losses.plot(table).axes[0].texts]
    assert any("Squared hinge is missing" in text for text in texts)
    assert "squared hinge" not in texts
