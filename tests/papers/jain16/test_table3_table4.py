"""Tables 3 and 4 as printed: cells read off the paper, and counts that see one turned cell."""

from __future__ import annotations

import pytest

from xcrepro.papers.jain16 import table3_table4 as leads


def test_the_tables_as_printed():
    table3, table4 = leads.read_printed(3), leads.read_printed(4)
    assert list(table3.columns) == ["dataset", "method", "N1", "N3", "N5", "P1", "P3", "P5"]
    assert list(table4.columns) == ["dataset", "method", "C1", "C3", "C5"]
    assert (len(table3), len(table4)) == (36, 18)
    assert table3.iloc[-1, 2:].tolist() == [13.52, 16.43, 17.79, 13.52, 17.95, 20.50]
    assert table4.iloc[-1, 2:].tolist() == [6.04, 7.45, 8.09]


def test_leads_and_claims(monkeypatch):
    table3 = leads.read_printed(3)
    found = leads.compute_leads(table3)
    assert (found["led"] == found["columns"]).all()
    claims = leads.compute_claims()
    assert claims["of"].tolist() == [144, 144, 36, 33, 3]
    assert (claims["holds"] == claims["of"]).all()
    table3.loc[(table3["method"] == "SLEEC") & (table3["dataset"] == "EURLex-4K"), "P1"] = 99.0
    monkeypatch.setattr(leads, "read_printed", {3: table3, 4: leads.read_printed(4)}.get)
    claims = leads.compute_claims()
    assert claims["holds"].tolist() == [143, 143, 36, 33, 3]
    assert claims["where not"][1] == "EURLex-4K P1: 45.38, SLEEC 99.00"
    assert leads.compute_leads(table3)["led"].tolist()[0] == 5


def test_gains():
    table = leads.compute(leads.read_printed(3))
    gains = table.set_index(["dataset", "column"])["gain"]
    assert gains[("Ads-9M", "P5")] == pytest.approx(20.50 - 17.26)
    assert gains[("AmazonCat-13K", "P1")] == pytest.approx(69.05 - 46.75)
    assert table["best other"][3] == "1-vs-All"  # EURLex-4K, P1
    assert leads.compute_ranges(table).set_index("dataset").loc["Ads-9M", "largest at"] == "P5"


def test_coverage_that_decreases():
    cells = leads.compute_decreasing_coverage(leads.read_printed(4))
    assert set(cells["dataset"]) == {"Wiki10-31K"}
    assert len(cells) == 3
    assert (cells["value"] < cells["before"]).all()


def test_findings_follow_the_cells():
    table3, table4 = leads.read_printed(3), leads.read_printed(4)
    gains = leads.compute(table3)
    said = "\n".join(leads.findings(table3, table4, gains, leads.compute_claims()))
    assert "36 of the 36 columns of table 3" in said
    assert "0.6 (N1 on Ads-9M) to 22.3 (N1 on AmazonCat-13K)" in said
    assert "shrinks from k = 1 to k = 5 on 5 of 6" in said
    assert "3 of 54 cells" in said
    # Planted: one column is lost, and Ads-9M's gain falls as well.
    table3.loc[(table3["method"] == "SLEEC") & (table3["dataset"] == "EURLex-4K"), "P1"] = 99.0
    table3.loc[(table3["method"] == "PfastreXML") & (table3["dataset"] == "Ads-9M"), "P1"] = 60.0
    said = "\n".join(leads.findings(table3, table4, leads.compute(table3), leads.compute_claims()))
    assert "35 of the 36 columns of table 3" in said
    assert "on 5 of 6" in said  # EURLex-4K's gain rises now, Ads-9M's falls
    assert "-53.6 (P1 on EURLex-4K)" in said
