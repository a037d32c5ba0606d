"""Two runs held to each other: a slow comparison by hand, edges, planted faults."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcrepro.__main__ import main
from xcrepro.errors import ArgumentError, DataError, DataMissing
from xcrepro.repro import differences, tables

VALUES = st.sampled_from([0.0, 1e-12, 0.25, 0.250000000001, 0.3, 1.0, -2.0, math.nan, math.inf])


def as_texts(rows: dict) -> pd.DataFrame:
    return pd.DataFrame(
        [(m, str(k), repr(v)) for (m, k), v in rows.items()], columns=["metric", "k", "value"], dtype=str
    )


def agree(a: float, b: float, rtol: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= rtol * max(abs(a), abs(b), 0.001)


@settings(deadline=None)
@given(
    st.dictionaries(st.tuples(st.sampled_from("PR"), st.sampled_from([1, 3, 5])), VALUES, min_size=1),
    st.dictionaries(st.tuples(st.sampled_from("PR"), st.sampled_from([1, 3, 5])), VALUES, min_size=1),
    st.sampled_from([0.0, 1e-9, 0.5]),
    st.randoms(),
)
def test_every_cell_is_compared_by_its_name(first, second, rtol, random):
    if not set(first) & set(second):
        return  # by place then: the test below
    items = list(second.items())
    random.shuffle(items)
    found = differences.compare({"": as_texts(first)}, {"": as_texts(dict(items))}, rtol)
    names = {f"metric={m}, k={k}": (m, k) for m, k in {**first, **second}}
    if len({m for m, _ in first}) == len(first) and len({m for m, _ in second}) == len(second):
        return  # the metric alone tells the rows apart, and k is a value
    alone = set(first) ^ set(second)
    apart = {key for key in set(first) & set(second) if not agree(first[key], second[key], rtol)}
    assert {names[row] for row in found.cells["row"]} == alone | apart
    assert len(found.cells) == len(alone | apart)
    assert found.compared == len(set(first) & set(second))
    assert found.same == (not alone | apart)
    for cell in found.cells.itertuples():
        key = names[cell.row]
        if key in apart and all(map(math.isfinite, (first[key], second[key]))):
            assert cell.difference == second[key] - first[key]


def frame(text: str) -> pd.DataFrame:
    lines = [line.split(",") for line in text.split()]
    return pd.DataFrame(lines[1:], columns=lines[0], dtype=str)


def cells(a: str, b: str, **options) -> list[tuple]:
    found = differences.compare({"": frame(a)}, {"": frame(b)}, **options).cells
    return [tuple(row) for row in found[["row", "column", "first", "second"]].itertuples(index=False)]


def test_a_count_that_moved_is_a_value():
    assert cells("model,hits,P\nPLT,7,0.5", "model,hits,P\nPLT,8,0.5") == [("model=PLT", "hits", "7", "8")]


def test_whole_numbers_are_exact_and_texts_too():
    assert cells("m,n\na,1000000", "m,n\na,1000001", rtol=0.5) == [("m=a", "n", "1000000", "1000001")]
    assert cells("m,n\na,1000000", "m,n\na,1000001.0", rtol=0.5) == []
    assert cells("m,best\na,x", "m,best\na,y") == [("m=a", "best", "x", "y")]


def test_without_names_rows_are_matched_by_place():
    assert cells("P\n0.5\n0.25", "P\n0.5\n0.75") == [("row 2", "P", "0.25", "0.75")]
    assert cells("P\n0.5", "P\n0.5\n0.75") == [("row 2", "", "", "a row")]


def test_columns_and_data_of_one_alone_are_said():
    assert cells("m,P\na,0.5", "m,R\na,0.5") == [("", "P", "a column", ""), ("", "R", "", "a column")]
    first, second = "m,P,data\na,0.5,twin\nb,0.5,twin", "m,P,data\na,0.5,real\nb,0.5,real"
    assert cells(first, second) == [("", tables.ORIGIN, "twin", "real")]


def test_what_is_read(tmp_path):
    (tmp_path / "run" / "jain16").mkdir(parents=True)
    (tmp_path / "run" / ".hidden").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "run" / "jain16" / "a.csv").write_text("m,P\na,0.5\n")
    (tmp_path / "run" / ".hidden" / "b.csv").write_text("m,P\na,0.5\n")
    assert list(differences.read(tmp_path / "run")) == ["jain16/a.csv"]
    assert list(differences.read(tmp_path / "run" / "jain16" / "a.csv")) == [""]
    with pytest.raises(DataMissing, match="no such file or folder"):
        differences.read(tmp_path / "gone")
    with pytest.raises(DataMissing, match="no CSV file below"):
        differences.read(tmp_path / "empty")
    for content in (b"", b"a,b\n1,2,3\n4,5,6,7\n", "m\n".encode("utf-16")):
        (tmp_path / "odd.csv").write_bytes(content)
        with pytest.raises(DataError, match=r"odd\.csv: found no table"):
            differences.read(tmp_path / "odd.csv")
    with pytest.raises(ArgumentError, match="rtol"):
        differences.compare({}, {}, 1.0)


def test_the_command(tmp_path, capsys):
    for name, value in (("one", 0.5), ("two", 0.5 + 1e-12), ("three", 0.6)):
        (tmp_path / name / "figures").mkdir(parents=True)
        (tmp_path / name / "figures" / "t.csv").write_text(f"metric,k,value\nP,1,{value!r}\nP,3,0.1\n")
    (tmp_path / "three" / "figures" / "more.csv").write_text("a\n1\n")
    places = [str(tmp_path / name) for name in ("one", "two", "three")]
    assert main(["compare", *places[:2]]) == 0
    assert "0 differ, 2 cells compared" in capsys.readouterr().out
    assert main(["compare", *places]) == 1
    out = capsys.readouterr().out
    assert f"only in {places[2]}: figures/more.csv" in out
    assert "figures/t.csv  metric=P, k=1  value   0.5    0.6     0.100000000" in out
    assert main(["compare", places[0], places[2], "--csv", "--rtol", "0.5"]) == 1  # a table that the first has not
    assert capsys.readouterr().out == "table,row,column,first,second,difference,relative,held\n"
    assert main(["compare", places[0]]) == 2
    assert "two places or more" in capsys.readouterr().err
    assert main(["compare", places[0], str(tmp_path / "gone.json")]) == 2
