"""The record: its layout, its accessors, and that a fault in its files is found."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import xcrepro as xc
from tests.refused import refused
from xcrepro.core import paths
from xcrepro.core.data import registry
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.repro.published import printed_tables

SOURCES = xc.published.sources()


@pytest.fixture
def forget():
    """Forget what was read, before and after: the caches live as long as the process."""

    def clear() -> None:
        for name in ("_text", "_about", "_record", "_places", "_known"):
            getattr(printed_tables, name).cache_clear()

    clear()
    yield
    clear()


def test_layout_of_every_table():
    for source in SOURCES:
        table = xc.published.table(source)
        assert list(table.columns) == list(printed_tables.COLUMNS)
        assert len(table)
        assert set(table["source"]) == {source}
        assert table["row"].dtype == "int64"
        assert table["k"].dtype == "Int64"
        assert table["value"].dtype == "float64"
        assert list(table.index) == list(range(len(table)))
        # The lines of print are counted from 1 and none is left out.
        assert list(table["row"].drop_duplicates()) == list(range(1, table["row"].max() + 1))
        for column in ("dataset", "method", "variant", "metric", "printed", "reading", "stderr", "note"):
            assert all(isinstance(text, str) for text in table[column]), (source, column)


def test_how_many_numbers():
    everything = xc.published.find()
    count = everything["source"].str.split(":").str[0].value_counts().to_dict()
    xcrepo, calibration = 4620 + 27 * 6, 938 + 8 * 5
    others = {"reeval": 235 + 3 * 9, "jain16": 283 + 9 + 36, "coverage": 560 + 24}
    assert count == {"xcrepo": xcrepo, "calibration": calibration} | others
    assert list(dict.fromkeys(everything["source"])) == SOURCES
    assert sum(len(xc.published.table(source)) for source in SOURCES) == len(everything)


def test_printed_and_value_part_only_where_it_says_so():
    everything = xc.published.find()
    plain = everything["printed"].str.replace(",", "").map(lambda text: float(text) if text else math.nan)
    same = (plain == everything["value"]) | (plain.isna() & everything["value"].isna())
    assert (everything["reading"] == "as printed")[~same].sum() == 0
    assert (everything["reading"] == "corrected")[same].sum() == 0
    read = everything[everything["reading"] != "as printed"]
    assert (read["note"] != "").all()
    assert read.groupby(read["source"].str.split(":").str[0]).size().to_dict() == {"calibration": 19 + 8, "xcrepo": 2}


def test_tables_of_datasets_are_the_registry():
    for source in ("xcrepo:dataset-table", "reeval:table2", "calibration:table3", "jain16:table2"):
        table = xc.published.table(source)
        rows = {name for name in registry.names(proprietary=True) if source in registry.get(name).published}
        assert {registry.get(name).name for name in table["dataset"]} == rows
        for cell in table.itertuples():
            numbers = registry.published(cell.dataset, source)
            if cell.metric.startswith("labels_"):
                assert cell.value == numbers["bins"][cell.metric.removeprefix("labels_")]
            else:
                assert cell.value == numbers.get(cell.metric) or (math.isnan(cell.value) and cell.printed == "")


def test_wide_holds_every_value():
    for source in SOURCES:
        table, wide = xc.published.table(source), xc.published.wide(source)
        assert wide.notna().sum().sum() == table["value"].notna().sum()
        assert wide.index.names == ["dataset", "method", "variant"]
        rows = table[["dataset", "method", "variant"]].itertuples(index=False, name=None)
        assert list(dict.fromkeys(rows)) == list(dict.fromkeys(wide.index))


def test_wide_puts_columns_in_order_of_metric_and_k():
    names = [f"{metric}@{k}" for metric in ("ECE", "Brier", "ACE") for k in (1, 3, 5)]
    assert list(xc.published.wide("calibration:table7").columns) == names
    assert list(xc.published.wide("xcrepo:Bibtex").columns[-3:]) == ["PSN@5", "model_size_gb", "train_time_hr"]


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        ("EURLex-4K", "EURLex-4K"),
        ("eurlex-4k", "EURLex-4K"),
        ("eurlex", "EURLex-4K"),
        ("EUR-Lex", "EURLex-4K"),
        ("wikipedialarge-500k", "Wikipedia-500K"),
        ("Wiki-500K", "Wikipedia-500K"),
        ("deliciouslarge-200k", "Delicious-200K"),
        ("LF AmazonTitles 131K", "LF-AmazonTitles-131K"),
    ],
)
def test_names_of_datasets(name, dataset):
    found = xc.published.find(dataset=name)
    assert set(found["dataset"]) == {dataset}
    pd.testing.assert_frame_equal(found, xc.published.find(dataset=dataset))


def test_every_dataset_of_the_page_is_found():
    for name in registry.names(registry.PAGE_TABLE):
        assert set(xc.published.find(dataset=name)["dataset"]) == {registry.get(name).printed_name}


def test_find_filters_together():
    assert len(xc.published.find(method="XLNet-APLC")) == len(xc.published.find(method="APLC-XLNet")) > 0
    several = xc.published.find(dataset=["bibtex", "Mediamill"], metric=("P", "N"), k=[1, 5])
    assert set(several["dataset"]) == {"Bibtex", "Mediamill"}
    assert set(several["metric"]) == {"P", "N"}
    assert set(several["k"]) == {1, 5}
    assert len(several) == (15 + 16) * 4
    assert set(xc.published.find(source="jain16:table3a")["source"]) == {"jain16:table3a"}
    assert xc.published.find(dataset="bibtex", method="Renee").empty
    assert len(xc.published.find(dataset=[])) == 0


def test_the_caller_may_change_what_it_gets():
    before = xc.published.wide("reeval:table4")
    for frame in (
        xc.published.table("reeval:table4"), xc.published.find(source="reeval:table4"), xc.published.about(),
        xc.published.names(), xc.published.methods(), xc.published.references(),
    ):  # fmt: skip
        frame.iloc[:, 0] = frame.iloc[0, 0] * 2
        frame.index = frame.index[::-1]
    table = xc.published.table("reeval:table4")
    table["value"] = 0.0
    pd.testing.assert_frame_equal(xc.published.wide("reeval:table4"), before)
    assert len(xc.published.methods()) == 42
    assert len(xc.published.references()) == 74
    assert len(xc.published.names()) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dataset": "EURLex-4M"}, "dataset must be a dataset of the record; got 'EURLex-4M': did you mean 'EURLex-4K'"),
        ({"method": "Atention-XML"}, "did you mean 'AttentionXML'"),
        ({"metric": "precision"}, "metric must be a metric of the record; got 'precision'"),
        ({"k": 2}, "k must be a k of the record; got 2: it has 1, 3, 5"),
        ({"k": "1"}, "k must be a k of the record; got '1'"),
        ({"k": True}, "k must be a k of the record; got True"),
        ({"source": "jain16:table3"}, "did you mean 'jain16:table3"),
        ({"dataset": 4}, "dataset must be a dataset of the record; got 4: it has"),
    ],
)  # fmt: skip
def test_unknown_names(arguments, message):
    with pytest.raises(ArgumentError) as caught:
        xc.published.find(**arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("id", ["jain16:table3", "reeval", None, 3, ""])
def test_unknown_table(id):
    for accessor in (xc.published.table, xc.published.wide):
        with refused("id"):
            accessor(id)


# -- a fault in a file -------------------------------------------------------------------------------------------------


def planted(line: int, column: str, text: str) -> pd.DataFrame:
    """The file of reeval with one cell changed; ``line`` counts as in the file."""
    frame = printed_tables._text("reeval").copy()
    frame.loc[line - 2, column] = text
    return frame


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        ("source", "reeval:table9", "an id that sources.csv lists"),
        ("source", "jain16:table3a", "an id of reeval"),
        ("row", "0", "a whole number from 1"),
        ("row", "", "a whole number from 1"),
        ("k", "1.0", "a whole number from 1, or nothing"),
        ("metric", "", "a name"),
        ("printed", "83,44", "a number of digits, separators and a point"),
        ("printed", "83.4 4", "a number of digits, separators and a point"),
        ("value", "1e2", "a number of digits and a point"),
        ("value", "-83.44", "a number of digits and a point"),
        ("value", "83.4", "the printed number where it is read as printed"),
        ("value", "", "the printed number where it is read as printed"),
        ("stderr", "± 0.1", "a number of digits and a point"),
        ("reading", "maybe", "'as printed' or 'corrected' or 'uncertain'"),
        ("reading", "corrected", "another number than the printed one"),
        ("reading", "uncertain", "a reason where a value is not read as printed"),
    ],
)
def test_a_planted_fault_is_named(root, column, text, expected):
    path = root / "data" / "published" / "reeval.csv"
    known = set(SOURCES)
    frame = planted(17, column, text)
    with pytest.raises(DataError) as caught:
        printed_tables._checked(frame, path, known)
    assert "reeval.csv, line 17" in str(caught.value)
    assert expected in str(caught.value)


def test_a_cell_that_stands_twice_is_named(root):
    frame = printed_tables._text("reeval").copy()
    frame.loc[20] = frame.loc[19]
    with pytest.raises(DataError, match=r"line 22: .*each cell"):
        printed_tables._checked(frame, root / "data" / "published" / "reeval.csv", set(SOURCES))


def test_a_missing_column_is_named(root):
    frame = printed_tables._text("reeval").drop(columns="note")
    with pytest.raises(DataError, match="line 1: "):
        printed_tables._checked(frame, root / "data" / "published" / "reeval.csv", set(SOURCES))


@pytest.mark.usefixtures("forget")
def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XCREPRO_ROOT", str(tmp_path))
    monkeypatch.setattr(paths, "_BROUGHT", tmp_path)
    with pytest.raises(DataMissing, match=r"sources\.csv"):
        xc.published.sources()


@pytest.mark.usefixtures("forget")
def test_a_source_without_numbers_is_named(monkeypatch):
    about = printed_tables._about()
    extra = pd.concat([about, about.iloc[[-1]].rename(index={"coverage:table3": "coverage:table4"})])
    monkeypatch.setattr(printed_tables, "_about", lambda: extra)
    with pytest.raises(DataError, match=r"sources\.csv.*coverage:table4"):
        printed_tables._record()
