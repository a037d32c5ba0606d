"""Tables 3 and 4 as printed: ties, sentences, orders."""

from __future__ import annotations

from xcrepro.papers.reeval import _common, table3_table4


def test_values_as_printed():
    printed = table3_table4.compute()
    assert printed.shape == (15, 17)
    first, last = _common.only_table(printed, 3).iloc[0], _common.only_table(printed, 4).iloc[-1]
    assert first[2:].tolist() == [83.44, 70.62, 59.08, 26.50, 51.06, 57.37, 5.64, 13.28, 17.89]
    assert last[2:].tolist() == [95.53, 85.87, 79.54, 54.94, 69.48, 76.45]
    assert tuple(printed["method"][:5]) == table3_table4.METHODS


def test_ties_name_everybody():
    leaders = table3_table4.compute_leaders(table3_table4.compute()).set_index(["dataset", "column"])
    tied = leaders.loc[("Wiki10-31K", "P@1")]
    assert (tied["best"], round(tied["ahead"], 2)) == ("APLC-XLNet = LightXML", 1.47)


def test_claims():
    claims = table3_table4.compute_claims()
    assert claims["holds"].tolist() == [36, 4, 10, 4, 8, 3, 12, 12, 11]
    assert claims["of"].tolist() == [36, 4, 12, 4, 12, 3, 12, 12, 12]
    assert ((claims["holds"] == claims["of"]) == (claims["where not"] == "")).all()


def test_orders_of_P_and_nDCG():
    found = table3_table4.compute()[:3]
    found[["P@1", "N@1", "P@3", "N@3", "P@5", "N@5"]] = [[3, 1, 1, 1, 0, 0], [2, 2, 1, 1, 0, 0], [1, 3, 0, 1, 0, 0]]
    rows = _common.compute_order(found).set_index("k")
    assert rows.loc[1].tolist() == ["EURLex-4K", "SVM", "APLC-XLNet", 3, 0]
    assert rows["opposite"].tolist() == [3, 0, 0]
    assert rows["tied in one"].tolist() == [0, 2, 0]


def test_findings_count_sentences_leads_and_orders():
    printed = table3_table4.compute()
    claims, order = table3_table4.compute_claims(), _common.compute_order(printed)
    said = table3_table4.findings(table3_table4.compute_leaders(printed), claims, order)
    assert said[0].startswith("6 of the 9 sentences hold")
    assert sum(text.startswith("Not in all") for text in said) == 3
    assert any("Columns of macro-F1 led, of 9: AttentionXML 8, SVM 1" in text for text in said)
    whole = claims.assign(holds=claims["of"])
    assert not any(
        "Not in all" in t for t in table3_table4.findings(table3_table4.compute_leaders(printed), whole, order)
    )
