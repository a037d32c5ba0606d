"""What the calibration items compute from printed numbers: counts, readings, and the sentences of titles.

The tables are planted where a count has to be able to come out otherwise, and the committed ones where a title or a
notebook states what they show.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro import published
from xcrepro.repro import calibration


@pytest.fixture
def altered(monkeypatch):
    """``altered(source, change)``: the tables are the committed ones, that of ``source`` after ``change(table)``."""
    true, changes = published.table, {}

    def table(source):
        found = true(source)
        return changes[source](found.copy()) if source in changes else found

    monkeypatch.setattr(published, "table", table)
    return changes.__setitem__


def put(value: float, **where):
    """A change that sets the cells where all the columns have the given values; there must be some."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        keep = np.logical_and.reduce([table[name] == wanted for name, wanted in where.items()])
        assert keep.any()
        table.loc[keep, ["printed", "value", "reading"]] = [str(value), value, "as printed"]
        return table

    return change


def holds(claims: pd.DataFrame, claim: str, where: str = "", column: str = "as read") -> str:
    found = claims[(claims["claim"] == claim) & claims["where"].str.startswith(where)]
    assert len(found) == 1
    return found[column].iloc[0]


# ---------------------------------------------------------------- calibration: tables


@pytest.mark.parametrize("number", calibration.TABLES)
def test_every_printed_value_of_a_table_is_laid_out_once(number):
    table, wide = calibration.table(number), calibration.laid_out(number)
    cells = wide.drop(columns=[name for name in ("k", "method", "dataset", "x") if name in wide]).to_numpy().ravel()
    shown = [text.split(" [")[0] for text in cells]
    assert sorted(shown) == sorted(table["printed"].replace("", "-"))


def test_the_layout_has_the_printed_value_and_our_reading_beside_it():
    wide = calibration.laid_out(7).set_index(["k", "method"])
    assert wide.loc[("3", "PLT-I"), "EURLex-4K Brier"] == "1.79 [17.9]"
    assert wide.loc[("5", "CascadeXML"), "AmazonCat-13K ACE"] == "9.79 [?]"
    assert wide.loc[("1", "DiSMEC"), "Wikipedia-500K ECE"] == "-"
    assert wide.loc[("1", "PLT"), "EURLex-4K ECE"] == "7.06"


def test_readings_list_what_is_not_as_printed_and_nothing_else():
    readings = calibration.readings()
    count = sum((calibration.table(number)["reading"] != "as printed").sum() for number in calibration.TABLES)
    assert len(readings) == count > 10
    assert (readings["why"] != "").all()


def test_cells_printed_twice_are_found_to_differ_only_where_they_do(altered):
    before = calibration.repeats().set_index("places")
    assert before["agree printed"].eq(before["cells"]).sum() == 4
    where = {"dataset": "Amazon-670K", "method": "PLT", "variant": "none", "metric": "Brier"}
    altered("calibration:table2", put(20.96, **where))
    after = calibration.repeats().set_index("places").loc["table 2 and table 7"]
    assert after["agree printed"] == after["agree read"] == after["cells"] - 1
    assert after["differ"] == "Amazon-670K PLT Brier@5: 20.96 / 20.69"


def test_trailing_zeros_are_no_difference():
    assert "12.30" not in calibration.repeats()["differ"].str.cat()


@pytest.mark.parametrize(
    ("source", "cell", "claim", "before", "after"),
    [
        ("7", {"variant": "isotonic", "metric": "ECE"}, "isotonic lowers ECE", "93 of 93", "92 of 93"),
        ("5", {"variant": "platt", "metric": "ECE"}, "isotonic has the lower ECE than Platt", "24 of 24", "23 of 24"),
    ],
)
def test_a_claim_counts_one_cell_less_when_one_is_turned(altered, source, cell, claim, before, after):
    assert holds(calibration.claims(), claim) == before
    place = {"dataset": "Amazon-670K", "method": "PLT", "k": 1, **cell}
    altered(f"calibration:table{source}", put(99.0 if source == "7" else 0.01, **place))
    assert holds(calibration.claims(), claim) == after


def test_one_cell_printed_in_two_ways_decides_whether_gandalf_beats_renee():
    claims, claim = calibration.claims(), "Gandalf has the lower ECE than Renee, k = 5"
    assert holds(claims, claim, "table 4", "as printed") == "2 of 2"
    assert holds(claims, claim, "table 4") == holds(claims, claim, "table 8", "as printed") == "1 of 2"


def test_an_equal_pair_counts_for_neither_side(altered):
    where = {"dataset": "EURLex-4K", "method": "PLT", "variant": "isotonic-separate", "k": 1}
    altered("calibration:table6", put(81.62, **where))
    assert holds(calibration.claims(), "separate isotonic calibration lowers P@k") == "27 of 30"


# ---------------------------------------------------------------- calibration: figures


def test_figure_5_has_four_of_five_datasets_and_says_so():
    data = calibration.label_scaling()
    known = data.dropna(subset="value")
    assert known["dataset"].nunique() == 4
    assert set(data["dataset"]) - set(known["dataset"]) == {"Amazon-3M"}
    assert (known["printed"].astype(float) == known["value"]).all()
    assert (data.set_index("dataset").loc["Amazon-3M", "labels"] == 2_812_281).all()
    texts = [text.get_text() for ax in calibration.plot_label_scaling(data).axes for text in ax.texts]
    assert texts.count("Amazon-3M: in no table") == 2


def test_title_of_figure_5():
    claims = calibration.label_scaling_claims(calibration.label_scaling())
    assert (claims["error rises with fewer points per label"] == claims["steps"]).all()
    assert (claims["error rises with more labels"] < claims["steps"]).all()


def test_the_steps_of_figure_5_are_counted_in_the_order_of_the_other_column():
    data = pd.DataFrame({"labels": [10, 30, 20], "points per label": [1.0, 3.0, 2.0], "k": 1, "value": [1.0, 3.0, 2.0]})
    row = calibration.label_scaling_claims(data).iloc[0]
    assert (row["error rises with more labels"], row["error rises with fewer points per label"]) == (2, 0)


def test_title_of_figure_6_and_its_missing_point():
    data = calibration.losses()
    claims = calibration.loss_claims(data).set_index("loss")
    assert claims["worse in both"].to_dict() == {"focal": "no", "ASY": "yes", "squared hinge": "not stated"}
    assert claims.loc["focal", "P@5 minus BCE"] == pytest.approx(-11.66)
    stated = data[data["kind"] == "loss of Renee"].dropna()
    assert len(stated) == 3
    assert stated.loc[stated["ECE@5"].idxmin(), "name"] == "focal"
    texts = [text.get_text() for text in calibration.plot_losses(data).axes[0].texts]
    assert any("Squared hinge is missing" in text for text in texts)
    assert "squared hinge" not in texts


def test_title_of_figures_17_to_19():
    data = calibration.against_precision()
    assert len(data) == 2 * 3 * 3 * 5 * 2
    claims = calibration.precision_claims(data)
    ece = claims[claims["metric"] == "ECE"].set_index(["dataset", "k"])["rank corr. before"]
    assert (ece["EURLex-4K"] > 0).all()
    assert (ece["Amazon-670K"] < 0).all()
    for k in (1, 3, 5):
        after = data[(data["k"] == k) & (data["metric"] == "ECE") & (data["variant"] == "isotonic")]["value"].max()
        assert f"no ECE@{k} is above {after:.2f} %" in calibration.plot_against_precision(data, k).get_suptitle()


def test_rank_correlation_is_spearmans():
    from scipy.stats import spearmanr

    data = calibration.against_precision()
    claims = calibration.precision_claims(data).set_index(["dataset", "metric", "k"])
    part = data[(data["dataset"] == "Amazon-670K") & (data["metric"] == "ACE") & (data["k"] == 1)]
    after = part[part["variant"] == "isotonic"]  # two of the five are tied
    wanted = spearmanr(after["P"], after["value"]).statistic
    assert claims.loc[("Amazon-670K", "ACE", 1), "rank corr. after"] == pytest.approx(wanted)


def test_corrected_cells_are_marked_where_they_are_drawn():
    data = calibration.against_precision()
    fig = calibration.plot_against_precision(data, 3)
    marks = sum(text.get_text() == "c" for ax in fig.axes for text in ax.texts)
    assert marks == ((data["k"] == 3) & (data["reading"] != "as printed")).sum() > 0
