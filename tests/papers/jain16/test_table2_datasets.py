"""Table 2: values read off the paper, which points its averages count, and what is counted in files and twins."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.papers.jain16 import table2_datasets as table2


def test_table_2_as_printed():
    table = table2.compute().set_index("dataset")
    assert list(table.index)[::5] == ["EURLex-4K", "Ads-9M"]
    assert table.loc["Ads-9M", ["L", "labels per point"]].tolist() == [8_838_461, "1.79"]
    assert table.loc["Wiki10-31K", "N train"] == 14_149
    assert table.loc["EURLex-4K", "points per label"] == "25.73"


def test_the_page_prints_other_numbers_for_four_datasets():
    table = table2.compute_page()
    assert set(table["dataset"]) == {"AmazonCat-13K", "Wiki10-31K", "WikiLSHTC-325K", "Amazon-670K"}
    where = (table["dataset"] == "Wiki10-31K") & (table["quantity"] == "L")
    assert table.loc[where, ["table 2", "page"]].to_numpy().tolist() == [["30935", "30938"]]


def test_averages_are_over_all_points_but_for_the_proprietary_dataset(monkeypatch):
    counted = table2.compute_counted().set_index("dataset")["counted"]
    assert counted.to_dict() == dict.fromkeys(table2.compute()["dataset"], "all") | {"Ads-9M": "neither"}
    # Planted: another number in print.
    true, wrong = table2.registry.interval, ("eurlex-4k", "avg_points_per_label")
    monkeypatch.setattr(table2.registry, "interval", lambda *cell: (20.66, 20.67) if cell[:2] == wrong else true(*cell))
    assert table2.compute_counted().set_index("dataset")["counted"]["EURLex-4K"] == "train"


def test_the_real_counts_give_the_averages():
    table = table2.compare_with_printed()
    assert len(table) == 3
    assert all(round(row.ours, 2) == float(row.printed) for row in table.itertuples())


def test_twins_are_counted_over_all_points():
    table = table2.compute_twins([0.02, 0.001, 0.02, 0.0005, 0.001]).set_index("dataset")
    ds = xc.twin("eurlex-4k", scale=0.02)
    pairs = ds.train.Y.nnz + ds.test.Y.nnz
    row = table.loc["EURLex-4K, twin"]
    assert row["points per label"] == pairs / ds.train.Y.shape[1]
    assert row["labels per point"] == pairs / (ds.n_train + ds.test.Y.shape[0])
    assert len(table) == 5


def test_one_scale_is_asked_for_each_public_dataset():
    table2.check_parameters({"scales": [0.1] * 5, "seed": 0, "folder": ""})
    with pytest.raises(xc.errors.ArgumentError, match="parameter scales must be 5 numbers, one each for EURLex-4K"):
        table2.check_parameters({"scales": [0.1], "seed": 0, "folder": ""})
    with pytest.raises(xc.errors.ArgumentError, match="parameter scales"):
        table2.check_parameters({"scales": [0.1] * 4 + [2.0], "seed": 0, "folder": ""})


def test_findings_follow_the_tables():
    page, counted = table2.compute_page(), table2.compute_counted()
    twins = pd.DataFrame({"dataset": ["A, twin", "B, twin"], "labels per point": [5.0, 3.3], "printed lpp": [5.0, 3.0]})
    said = "\n".join(table2.findings(page, counted, twins))
    assert "fit neither train points nor all points: Ads-9M" in said
    assert "Wiki10-31K is another version of the data: N train 14149 here, 14146 there" in said
    assert "within 10 % of print; the farthest is B, twin" in said
    counted["counted"] = "train"
    said = "\n".join(table2.findings(page[:0], counted, twins))
    assert "fit train points: EURLex-4K" in said
    assert "other averages for no dataset" in said
    assert "another version" not in said


def test_nothing_is_loaded_unasked_and_what_is_there_is_counted(tmp_path, monkeypatch):
    assert table2.compare_files_with_printed("", "small").empty
    parts = {
        part: xc.Split(csr_matrix(np.eye(n, 5)), csr_matrix(np.eye(n, 4))) for part, n in (("train", 3), ("test", 2))
    }
    for part, split in parts.items():
        xc.write_xc(tmp_path / "eurlex-4k" / f"eurlex_{part}.txt", split.X, split.Y)
    with pytest.raises(xc.errors.DataError, match="other data than EURLex-4K"):
        table2.compare_files_with_printed(str(tmp_path), "small")
    ds = SimpleNamespace(**parts, name="eurlex-4k")
    monkeypatch.setattr(
        table2.dataset_tables, "load_available", lambda names, size, folder: [ds] if "eurlex-4k" in names else []
    )
    found = table2.compare_files_with_printed("here", "small").set_index("quantity")
    assert found["ours"].tolist() == [3, 5, 4, 2, 1, 1.25]
    assert found.loc["N train", "printed"] == "15539"
