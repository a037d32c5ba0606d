"""The dataset table against values read off the page, its averages against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest

import xcrepro as xc
from xcrepro.errors import DataMissing
from xcrepro.papers.xcrepo import table_datasets
from xcrepro.repro import notebooks


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


def test_a_folder_that_is_not_there_is_told_before_anything_runs(tmp_path):
    with pytest.raises(DataMissing, match="parameter folder"):
        table_datasets.check_parameters({"size": "small", "folder": str(tmp_path / "none")})


def test_the_interval_and_the_records_of_the_notebook(root):
    """5.31 labels a point are 20.64 to 20.68 points a label of the 15,539 train points; a star is a recorded heading."""
    defined = notebooks.functions(root / "notebooks/xcrepo/table_datasets.ipynb")
    assert defined["implied"](5.31, 15539, 3993) == pytest.approx((5.305 * 15539 / 3993, 5.315 * 15539 / 3993))
    ds = xc.load("tib", points=200)
    has = ds.test.Y[3].indices
    other = next(label for label in range(ds.test.Y.shape[1]) if label not in has)
    top = xc.TopK.from_ids([[has[0], other]] * ds.test.Y.shape[0], n_labels=ds.test.Y.shape[1])
    row = defined["read"](ds, top, 3)
    assert row["best"] == f"{ds.label_names[has[0]]} *; {ds.label_names[other]}"
    assert row["words"] == ", ".join(ds.telling_words(3, 6))
