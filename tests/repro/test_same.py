"""Two runs held to each other: a slow comparison by hand, edges, planted faults."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refused import damaged
from xcrepro.__main__ import main
from xcrepro.core.errors import DataMissing
from xcrepro.repro import same, tidy

VALUES = st.sampled_from([0.0, 1e-12, 0.25, 0.250000000001, 0.3, 1.0, -2.0, math.nan, math.inf])


def as_texts(rows: dict) -> pd.DataFrame:
    return pd.DataFrame(
        [(m, str(k), repr(v)) for (m, k), v in rows.items()], columns=["metric", "k", "value"], dtype=str
    )


def agree(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@settings(deadline=None)
@given(
    st.dictionaries(st.tuples(st.sampled_from("PR"), st.sampled_from([1, 3, 5])), VALUES, min_size=1),
    st.dictionaries(st.tuples(st.sampled_from("PR"), st.sampled_from([1, 3, 5])), VALUES, min_size=1),
    st.randoms(),
)
def test_every_cell_is_compared_by_its_name(first, second, random):
    if not set(first) & set(second):
        return  # by place then: the test below
    items = list(second.items())
    random.shuffle(items)
    found = same.compare({"": as_texts(first)}, {"": as_texts(dict(items))})
    names = {f"metric={m}, k={k}": (m, k) for m, k in {**first, **second}}
    if len({m for m, _ in first}) == len(first) and len({m for m, _ in second}) == len(second):
        return  # the metric alone tells the rows apart, and k is a value
    alone = set(first) ^ set(second)
    apart = {key for key in set(first) & set(second) if not agree(first[key], second[key])}
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


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        # A count that moved is a value, and no name of a row.
        ("model,hits,P\nPLT,7,0.5", "model,hits,P\nPLT,8,0.5", [("model=PLT", "hits", "7", "8")]),
        # Numbers are equal however they are written.
        ("m,n\na,1000000", "m,n\na,1000001", [("m=a", "n", "1000000", "1000001")]),
        ("m,n\na,1000000", "m,n\na,1e6", []),
        ("m,P\na,0.5", "m,P\na,0.50", []),
        ("m,P\na,nan", "m,P\na,NaN", []),
        ("m,best\na,x", "m,best\na,y", [("m=a", "best", "x", "y")]),
        # Without names rows are matched by place.
        ("P\n0.5\n0.25", "P\n0.5\n0.75", [("row 2", "P", "0.25", "0.75")]),
        ("P\n0.5", "P\n0.5\n0.75", [("row 2", "", "", "a row")]),
        # Columns and data that only one of them has.
        ("m,P\na,0.5", "m,R\na,0.5", [("", "P", "a column", ""), ("", "R", "", "a column")]),
        ("m,P,data\na,0.5,twin\nb,0.5,twin", "m,P,data\na,0.5,real\nb,0.5,real", [("", "data", "twin", "real")]),
    ],
)
def test_what_differs_is_named(a, b, found):
    cells = same.compare({"": frame(a)}, {"": frame(b)}).cells
    assert [tuple(row) for row in cells[["row", "column", "first", "second"]].values] == found


def test_what_is_read(tmp_path):
    (tmp_path / "run" / "jain16").mkdir(parents=True)
    (tmp_path / "run" / ".hidden").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "run" / "jain16" / "a.csv").write_text("m,P\na,0.5\n")
    (tmp_path / "run" / ".hidden" / "b.csv").write_text("m,P\na,0.5\n")
    assert list(same.read(tmp_path / "run")) == ["jain16/a.csv"]
    assert list(same.read(tmp_path / "run" / "jain16" / "a.csv")) == [""]
    with pytest.raises(DataMissing, match="gone"):
        same.read(tmp_path / "gone")
    with pytest.raises(DataMissing, match="no CSV"):
        same.read(tmp_path / "empty")
    for content in (b"", b"a,b\n1,2,3\n4,5,6,7\n", "m\n".encode("utf-16")):
        (tmp_path / "odd.csv").write_bytes(content)
        with damaged("odd.csv", match="no table"):
            same.read(tmp_path / "odd.csv")


def test_the_command(tmp_path, capsys):
    for name, value in (("one", 0.5), ("two", 0.5), ("three", 0.6)):
        (tmp_path / name / "figures").mkdir(parents=True)
        (tmp_path / name / "figures" / "t.csv").write_text(f"metric,k,value\nP,1,{value!r}\nP,3,0.1\n")
    (tmp_path / "three" / "figures" / "more.csv").write_text("a\n1\n")
    places = [str(tmp_path / name) for name in ("one", "two", "three")]
    assert main(["compare", *places[:2]]) == 0
    assert "0 differ, 2 cells" in capsys.readouterr().out
    assert main(["compare", *places]) == 1
    out = capsys.readouterr().out
    assert f"only in {places[2]}: figures/more.csv" in out
    assert "figures/t.csv  metric=P, k=1  value   0.5    0.6     0.100000000" in out
    assert main(["compare", places[0], places[2], "--csv", "--rtol", "0.5"]) == 1  # a table that the first has not
    assert capsys.readouterr().out == "table,row,column,first,second,difference,relative,held\n"
    assert main(["compare", places[0], places[1], "--rtol", "1"]) == 2
    assert "--rtol" in capsys.readouterr().err
    assert main(["compare", places[0]]) == 2
    assert "two places" in capsys.readouterr().err
    assert main(["compare", places[0], str(tmp_path / "gone.json")]) == 2


# ---------------------------------------------------------------- texts that are committed


@pytest.mark.parametrize(
    ("old", "new", "said", "relative"),
    [
        ("k,P\n1,0.5\n", "k,P\n1,0.6\n", "line 2: '1,0.6' instead of '1,0.5'", 1 / 6),
        ("P@1 0.50\nP@5 0.25", "P@1 0.51\nP@5 0.35", "line 1: 'P@1 0.51' instead of 'P@1 0.50'", 0.1 / 0.35),
        ("P@1 0.25\nP@5 0.50", "P@1 0.35\nP@5 0.51", "line 1: 'P@1 0.35' instead of 'P@1 0.25'", 0.1 / 0.35),
        ("P 1,234.5", "P 1,235.0", "line 1: 'P 1,235.0' instead of 'P 1,234.5'", 0.5 / 1235),
        ("PLT leads", "FastXML leads", "line 1: 'FastXML leads' instead of 'PLT leads'", math.inf),
        ("fig3 0.5", "fig4 0.5", "line 1", math.inf),
        ("a", "a\nb", "line 2: 'b' instead of nothing", math.inf),
        ("a\nb", "a", "line 2: nothing instead of 'b'", math.inf),
        ("x nan", "x 0.5", "line 1", math.inf),
        ("0.0", "-0.0", "line 1", 0.0),
    ],
)
def test_the_first_difference_and_the_largest_number(old, new, said, relative):
    found = same.difference(old, new)
    assert found.text.startswith(said)
    assert found.relative == pytest.approx(relative)
    assert same.difference(old, old) is None


def test_outputs_are_compared_as_they_are_committed():
    said = {"output_type": "stream", "name": "stdout", "text": "0.5\n"}
    shown = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"text/plain": ["0.5"], "text/html": ["<b>0.5</b>"]},
    }
    other = {**shown, "data": {"text/plain": ["0.5"], "text/html": ["<b>0.7</b>"]}}
    warned = {"output_type": "stream", "name": "stderr", "text": "slow\n"}
    assert tidy.output_text([said, warned, shown]) == tidy.output_text([said, shown])
    assert tidy.output_text([shown]) != tidy.output_text([other])
    assert tidy.output_text([said]) != tidy.output_text([])


def test_other_versions_are_named(tmp_path, monkeypatch):
    try:
        assert same.elsewhere() == (), "the environment is not that of constraints.txt"
        lines = (same.paths.committed("constraints.txt")).read_text().splitlines()
        (tmp_path / "constraints.txt").write_text(
            "\n".join(l for l in lines if not l.startswith("scipy")).replace("numpy==", "numpy==0.")
        )
        monkeypatch.setattr(same.paths, "committed", lambda name: tmp_path / name)
        monkeypatch.setattr(same.platform, "machine", lambda: "arm64")
        same.elsewhere.cache_clear()
        numpy, scipy, platform = same.elsewhere()
        assert numpy.startswith("numpy ")
        assert ", committed with 0." in numpy
        assert scipy.startswith("scipy ")
        assert platform == "arm64 Linux, committed on x86_64 Linux"
        assert re.search(r" 0\.5 .*\(numpy", str(same.difference("P 1", "P 2")))
        assert "words differ (numpy" in str(same.difference("P", "R"))
    finally:
        same.elsewhere.cache_clear()
