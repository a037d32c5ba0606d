"""The dataset table against values read off the page, its averages against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest

from xcrepro.errors import DataMissing
from xcrepro.papers.xcrepo import table_datasets


def test_rows_read_off_the_page():
    table = table_datasets.compute().set_index("dataset")
    assert len(table) == 27
    row = table.loc["EURLex-4K"]
    assert [row[name] for name in ("D", "L", "N train", "N test")] == [5000, 3993, 15539, 3809]
    assert (row["points per label"], row["labels per point"]) == ("25.73", "5.31")
    assert table.loc["Amazon-670K", ["A", "B"]].tolist() == [0.6, 2.6]
    assert table.loc["Bibtex", ["A", "B"]].tolist() == [0.55, 1.5]


def test_which_points_an_average_counts():
    """EURLex-4K: 5.31 (5.305 to 5.315) labels a point times 15,539 points over 3,993 labels is 20.6; times all 19,348, 25.7."""
    row = table_datasets.compute_implied().set_index("dataset").loc["EURLex-4K"]
    for basis, points in (("train", 15539), ("all", 15539 + 3809)):
        low, high = (Fraction(text) * points / 3993 for text in ("5.305", "5.315"))
        assert row[f"{basis} low"] == pytest.approx(float(low))
        assert row[f"{basis} high"] == pytest.approx(float(high))
    assert row["points counted"] == "all"


def test_counted_averages_are_the_printed_ones():
    table = table_datasets.compute_counted()
    assert set(table["dataset"]) == {"EURLex-4K", "Bibtex"}
    for row in table.itertuples():
        decimals = len(row.printed.partition(".")[2])
        assert round(row.ours, decimals) == float(row.printed)


def test_loaded_statistics_are_of_the_folders_data(real_data):
    folder = real_data("bibtex").parent
    table = table_datasets.compute_loaded(str(folder), "small")
    found = table[table["dataset"] == "Bibtex"].set_index("quantity")["ours"]
    assert found[["L", "N train", "N test"]].tolist() == [159, 4880, 2515]
    assert table_datasets.compute_loaded("", "small").empty


def test_findings_name_what_fits_neither():
    implied = pd.DataFrame({"dataset": ["a", "b", "c"], "points counted": ["train", "neither", "train"]})
    counted = pd.DataFrame({"dataset": ["a", "a"], "quantity": "L", "printed": ["2.40", "3"], "ours": [2.404, 4.0]})
    said = table_datasets.findings(implied, counted, counted.head(0))
    assert "train points alone for 2 datasets, train and test for 0" in said[0]
    assert said[0].endswith("fit neither for 1 (b), beyond rounding.")
    assert said[1:] == ["From the project's label counts 1 of 2 printed numbers come out, within their rounding."]


def test_a_folder_that_is_not_there_is_told_before_anything_runs(tmp_path):
    with pytest.raises(DataMissing, match="parameter folder"):
        table_datasets.check_parameters({"size": "small", "folder": str(tmp_path / "none")})
