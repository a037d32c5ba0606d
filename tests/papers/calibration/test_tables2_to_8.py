"""The printed tables as they are shown and counted: planted cells turn a count by one."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.papers.calibration import tables2_to_8
from xcrepro.papers.calibration._common import printed_table


def claimed(claim: str, where: str = "", column: str = "as read") -> str:
    claims = tables2_to_8.compute_claims()
    return claims[(claims["claim"] == claim) & claims["where"].str.startswith(where)][column].item()


@pytest.mark.parametrize("number", tables2_to_8.TABLES)
def test_every_printed_value_is_laid_out_once(number):
    wide = tables2_to_8.compute(number)
    cells = wide.drop(columns=["k", "method", "dataset", "x"], errors="ignore").to_numpy().ravel()
    printed = printed_table(number)["printed"]
    assert sorted(text.removesuffix("†").split(" [")[0] for text in cells) == sorted(printed.replace("", "-"))


def test_the_printed_value_stands_at_its_place_with_our_reading():
    wide = tables2_to_8.compute(7).set_index(["k", "method"])
    assert wide.loc[("3", "PLT-I"), "EURLex-4K Brier"] == "1.79 [17.9]†"
    assert wide.loc[("5", "CascadeXML"), "AmazonCat-13K ACE"] == "9.79 [?]"
    assert wide.loc[("1", "DiSMEC"), "Wikipedia-500K ECE"] == "-"
    assert wide.loc[("1", "PLT"), "EURLex-4K ECE"] == "7.06"


def test_readings_list_what_is_not_as_printed_and_nothing_else():
    readings = tables2_to_8.compute_readings()
    count = sum((printed_table(number)["reading"] != "as printed").sum() for number in tables2_to_8.TABLES)
    assert len(readings) == count > 10
    assert (readings["why"] != "").all()


def test_cells_printed_twice_are_found_to_differ_only_where_they_do(put):
    before = tables2_to_8.compute_repeats()
    assert before["agree printed"].eq(before["cells"]).sum() == 4
    assert "12.30" not in before["differ"].str.cat()  # a trailing zero is no difference
    put("calibration:table2", 20.96, dataset="Amazon-670K", method="PLT", variant="none", metric="Brier")
    after = tables2_to_8.compute_repeats().set_index("places").loc["table 2 and table 7"]
    assert after["agree printed"] == after["agree read"] == after["cells"] - 1
    assert after["differ"] == "Amazon-670K PLT Brier@5: 20.96 / 20.69"


def test_the_median_effect_is_that_of_the_paired_cells():
    found = tables2_to_8.compute_effect().set_index(["table", "metric", "k"]).loc[(8, "ECE", 1)]
    t = printed_table(8).query("metric == 'ECE' and k == 1")
    assert found["cells"] == len(t) / 2
    assert found["median before"] == np.median(t[t["variant"] == "none"]["value"])
    assert found["median after"] == np.median(t[t["variant"] == "isotonic"]["value"])


SEPARATE = "separate isotonic calibration lowers P@k"


@pytest.mark.parametrize(
    ("claim", "before", "after", "number", "value", "cell"),
    [
        ("isotonic lowers ECE", "93 of 93", "92 of 93", 7, 99.0, {"variant": "isotonic", "metric": "ECE"}),
        (
            "isotonic has the lower ECE than Platt",
            "24 of 24",
            "23 of 24",
            5,
            0.01,
            {"variant": "platt", "metric": "ECE"},
        ),
        # an equal pair counts for neither side
        (SEPARATE, "28 of 30", "27 of 30", 6, 39.29, {"variant": "isotonic-separate", "k": 3}),
    ],
)
def test_a_claim_counts_one_cell_less_when_one_is_turned(put, claim, before, after, number, value, cell):
    assert claimed(claim) == before
    put(f"calibration:table{number}", value, **{"dataset": "Amazon-670K", "method": "PLT", "k": 1} | cell)
    assert claimed(claim) == after


def test_one_cell_printed_in_two_ways_decides_whether_gandalf_beats_renee():
    claim = "Gandalf has the lower ECE than Renee, k = 5"
    assert claimed(claim, "table 4", "as printed") == "2 of 2"
    assert claimed(claim, "table 4") == claimed(claim, "table 8", "as printed") == "1 of 2"


def test_doubted_cells_are_left_out_of_findings_and_a_misprint_is_named(put):
    claims, effect, repeats = (
        tables2_to_8.compute_claims(),
        tables2_to_8.compute_effect(),
        tables2_to_8.compute_repeats(),
    )
    counts = claims.set_index(["claim", "where"])["not doubted"]
    assert counts["isotonic lowers ECE", "tables 7, 8"] == "90 of 90"
    assert counts["Gandalf has the lower ECE than Renee, k = 5", "table 4"] == "1 of 1"
    said = tables2_to_8.findings(claims, effect, repeats)
    assert said[0].startswith("True in every cell that is not in doubt: isotonic lowers ECE (tables 7, 8: 90 of 90)")
    assert "separate isotonic calibration lowers P@k (table 6: 27 of 29)" in said[1]
    assert sum(sentence.startswith("A misprint decides") for sentence in said) == 2
    assert said[-1] == "Of 225 cells that stand in two places, 3 are printed in two ways."
    put("calibration:table7", 99.0, dataset="EURLex-4K", method="PLT", k=1, variant="isotonic", metric="ECE")
    said = tables2_to_8.findings(tables2_to_8.compute_claims(), effect, repeats)
    assert "isotonic lowers ECE (tables 7, 8: 89 of 90)" in said[1]
