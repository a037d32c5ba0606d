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
