"""Fig 6 from print: the differences of the losses, and the point that no text states."""

from __future__ import annotations

import pytest

from xcrepro.papers.calibration import fig6_losses


def test_the_claims_and_the_missing_point_stays_missing():
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


def test_findings_follow_the_table():
    table = fig6_losses.compute()
    said = fig6_losses.findings(table)
    assert said[0].startswith(
        "Of 3 losses with printed numbers, focal has the lowest ECE@5 (11.31 %), BCE the highest P@5"
    )
    assert "focal beside BCE: P@5 -11.66, ECE@5 -4.16 points; not worse than BCE in both." in said
    assert "ASY beside BCE: P@5 -2.77, ECE@5 +11.83 points; worse than BCE in both." in said
    assert "Squared hinge: plotted in the paper, its numbers stated nowhere." in said
    assert any("LightXML's, 12.86 %" in one for one in said)
    assert said[-1].endswith("of differences below 0.53 points these numbers say nothing.")
    table.loc[table["name"] == "focal", "ECE@5"] = 50.0
    assert "BCE has the lowest ECE@5" in fig6_losses.findings(table)[0]
