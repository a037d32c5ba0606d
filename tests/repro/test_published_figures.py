"""What the calibration and coverage items compute from printed numbers: counts, readings, and the sentences of titles.

The tables are planted where a count has to be able to come out otherwise, and the committed ones where a title or a
notebook states what they show.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro import published
from xcrepro.repro import calibration, coverage


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


# ---------------------------------------------------------------- coverage


@pytest.mark.parametrize("number", [1, 2, 3])
def test_coverage_tables_are_laid_out_whole_with_their_errors(number):
    table, wide = coverage.table(number), coverage.laid_out(number)
    cells = wide.drop(columns=[name for name in ("metric", "method", "dataset") if name in wide]).to_numpy().ravel()
    wanted = [p if s == "" else f"{p} ± {s}" for p, s in zip(table["printed"], table["stderr"], strict=True)]
    assert sorted(text for text in cells if isinstance(text, str)) == sorted(wanted)


def test_the_cell_that_cannot_be_is_the_one_that_breaks_the_sentence(altered):
    claim = "training on head labels costs P, nDCG, Abandonment under 10 %"
    assert holds(coverage.claims(), claim, column="holds in") == "8 of 9"
    altered("coverage:table1", put(93.0, metric="N", variant="head-1000", k=1))
    assert holds(coverage.claims(), claim, column="holds in") == "9 of 9"


def test_highest_and_second_highest_coverage_are_counted(altered):
    claims = coverage.claims()
    assert holds(claims, "COV-PLT has the highest Cov@k", column="holds in") == "18 of 18"
    assert holds(claims, "COVbeta-PLT has the second highest Cov@k", column="holds in") == "13 of 18"
    altered("coverage:table2", put(99.0, metric="Cov", method="PS-PLT", dataset="EURLex-4K", k=1))
    claims = coverage.claims()
    assert holds(claims, "COV-PLT has the highest Cov@k", column="holds in") == "17 of 18"
    assert holds(claims, "COVbeta-PLT has the second highest Cov@k", column="holds in") == "12 of 18"


def test_a_cell_that_differs_between_tables_2_and_3_is_seen(altered):
    altered("coverage:table3", put(1.0, metric="P", variant="beta=0", dataset="EURLex-4K", k=1))
    claim = "a cell that tables 2 and 3 share is the same in both"
    assert holds(coverage.claims(), claim, column="holds in") == "107 of 108"


def plane(*rows) -> pd.DataFrame:
    columns = ["method", "beta", "P", "P stderr", "Cov", "Cov stderr"]
    data = pd.DataFrame(rows, columns=columns)
    data.insert(0, "dataset", "D")
    data.insert(3, "k", 1)
    return data


def test_domination_needs_two_standard_errors_in_both():
    path = [("COVbeta-PLT", "0", 50.0, 0.1, 40.0, 0.1), ("COVbeta-PLT", "1", 80.0, 0.1, 20.0, 0.1)]
    beaten = ("BRS-PLT", "", 40.0, 0.1, 10.0, 0.1)
    near = ("PLT", "", 79.9, 0.1, 10.0, 0.1)  # worse in both, but in P by less than an error
    better = ("PS-PLT", "", 81.0, 0.1, 30.0, 0.1)
    found = coverage.against_path(plane(*path, beaten, near, better)).set_index("method")
    assert found["dominated by"].to_dict() == {"BRS-PLT": "0, 1", "PLT": "-", "PS-PLT": "-"}
    assert found["dominates"].to_dict() == {"BRS-PLT": "-", "PLT": "-", "PS-PLT": "1"}
    assert found.loc["PS-PLT", "P minus path"] == pytest.approx(16.0)
    assert np.isnan(found.loc["PLT", "P minus path"])


def test_titles_of_the_frontier():
    data = coverage.frontier()
    assert len(data) == 6 * 3 * (4 + 3)
    assert not data.isna().any().any()
    claims = coverage.frontier_claims(data).set_index(["method", "k"])
    assert (claims.loc["BRS-PLT", "dominated"] == 6).all()
    for k in (1, 3, 5):
        title = coverage.plot_frontier(data, k).get_suptitle()
        assert "beats BRS-PLT on both in 6 of 6 sets" in title
        weighted = claims.loc[("PS-PLT", k)]
        assert f"so beaten in {weighted['dominated'] or 'none'}," in title
        assert f"on both in {weighted['dominates'] or 'none'}." in title
    path = data[data["beta"] != ""].pivot(index=["dataset", "k"], columns="beta", values="Cov")
    assert (path[list(coverage.BETAS)].diff(axis=1).iloc[:, 1:] < 0).all().all()
