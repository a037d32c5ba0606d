"""Tables and golden files: the exact form, the rounded form, and every way a table may differ."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcrepro.errors import ArgumentError
from xcrepro.repro import compare, golden, record, tables

TABLE = pd.DataFrame({"method": ["PLT", "BR"], "k": [1, 5], "P": [0.1, float("nan")], "best": [True, False]})


def rows(table):
    return tables.exact(table)[2]


def test_exact_text_of_every_kind():
    table = TABLE.assign(n=pd.array([1, None], dtype="Int64"), note=["a,b", None], s=np.float32([0.1, np.inf]))
    assert tables.csv_text(table).splitlines() == [
        "method,k,P,best,n,note,s",
        'PLT,1,0.1,True,1,"a,b",0.10000000149011612',
        "BR,5,nan,False,,,inf",
    ]


@given(st.lists(st.floats(), min_size=1))
def test_floats_come_back_as_they_were(values):
    written = [row[0] for row in rows(pd.DataFrame({"x": values}))]
    back = np.array([float(text) for text in written])
    assert np.array_equal(back, np.array(values), equal_nan=True)


def test_the_index_counts_unless_it_is_plain():
    assert list(tables.flat(TABLE).columns) == list(TABLE.columns)
    assert list(tables.flat(TABLE.set_index("method")).columns) == ["method", "k", "P", "best"]
    assert tables.flat(TABLE.iloc[::-1]).columns[0] == "index"


@pytest.mark.parametrize(
    "table",
    [
        [1, 2],
        pd.DataFrame([[1, 2]]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({"a": ["x", 0.5]}),
        pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
    ],
)
def test_tables_that_have_no_exact_form(table):
    with pytest.raises(ArgumentError):
        tables.csv_text(table)


def test_shown_forms():
    shown = tables.show(TABLE.assign(P=[-0.0001, 0.12345]), decimals=2)
    assert repr(shown).splitlines() == ["method  k     P   best", "PLT     1  0.00   True", "BR      5  0.12  False"]
    html = shown._repr_html_()
    assert html.count("<tr>") == 3
    assert '<td style="text-align:right">0.12</td>' in html
    assert "&lt;b&gt;" in tables.show(pd.DataFrame({"a": ["<b>"]}))._repr_html_()
    assert repr(tables.show(pd.DataFrame({"a": [0.5], "b": [0.5]}), decimals={"a": 1})) == "  a      b\n0.5  0.500"
    with pytest.raises(ArgumentError, match="decimals"):
        tables.show(TABLE, decimals=-1)


def test_showing_does_not_depend_on_pandas_options():
    plain = repr(tables.show(TABLE))
    with pd.option_context("display.precision", 1, "display.max_rows", 1):
        assert repr(tables.show(TABLE)) == plain


def test_latex_and_markdown_escape():
    table = pd.DataFrame({"set_100%": ["a&b|c\\d"]})
    assert r"set\_100\%" in tables.latex(table)
    assert r"a\&b|c\textbackslash{}d" in tables.latex(table)
    assert r"a&b\|c\d" in tables.markdown(table)


def test_render_gives_all_files_or_none():
    assert list(tables.render(TABLE)) == [".csv", ".md", ".tex"]
    assert tables.render(TABLE)[".csv"] == tables.csv_text(TABLE).encode()
    with pytest.raises(ArgumentError):
        tables.render(TABLE, decimals=99)


def test_a_written_table_is_read_as_it_was():
    names, kinds, _ = tables.exact(TABLE)
    again = tables.read(tables.csv_text(TABLE), dict(zip(names, kinds, strict=True)))
    pd.testing.assert_frame_equal(again, TABLE, check_dtype=False)
    assert tables.csv_text(again) == tables.csv_text(TABLE)
    with pytest.raises(ValueError, match="invalid literal"):
        tables.read("k\nx\n", {"k": "int"})
    with pytest.raises(KeyError):
        tables.read("other\nx\n", {"k": "int"})


@pytest.fixture
def accepted(project):
    project.golden("demo/t", tables.csv_text(TABLE))
    return project


def test_golden_agrees(accepted, capsys):
    assert golden.check("demo/t", TABLE) == "demo/t: 4 of 4 values agree"
    assert capsys.readouterr().out == "demo/t: 4 of 4 values agree\n"
    golden.check("demo/t", TABLE.assign(P=[0.1 * (1 + 9e-10), float("nan")]))
    golden.check("demo/t", TABLE.assign(k=np.array([1, 5], np.int32), P=TABLE["P"].astype(object).astype(float)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"P": [0.1 * (1 + 2e-9), math.nan]}, r"3 of 4 values agree.*row 0 \(method=PLT, k=1, best=True\), column P"),
        ({"P": [0.1, 0.0]}, "accepted nan, now 0.0"),
        ({"P": [math.nan, math.nan]}, "accepted 0.1, now nan, NaN and infinity exact"),
        ({"P": [math.inf, math.nan]}, "now inf"),
        ({"k": [1, 6]}, r"column k: accepted 5, now 6, exact"),
        ({"k": [1.5, 5.0]}, "column k"),
        ({"method": ["plt", "BR"]}, r"4 of 4 values agree; the worst is row 0 .*accepted PLT, now plt"),
        ({"best": [False, False]}, "column best"),
        ({"extra": [1, 2]}, "columns are"),
    ],
)
def test_golden_differs(accepted, change, message):
    before = golden.path("demo/t").read_bytes()
    with pytest.raises(golden.GoldenMismatch, match=message):
        golden.check("demo/t", TABLE.assign(**change))
    assert golden.path("demo/t").read_bytes() == before


def test_golden_counts_may_differ_by_so_much(accepted):
    near = TABLE.assign(k=TABLE["k"] + [2, -2])
    with pytest.raises(golden.GoldenMismatch, match="exact"):
        golden.check("demo/t", near)
    assert golden.check("demo/t", golden.within(near, {"k": 2})) == "demo/t: 4 of 4 values agree"
    with pytest.raises(golden.GoldenMismatch, match=r"column k.*allowed difference 1\b"):
        golden.check("demo/t", golden.within(near, {"k": 1}))
    with pytest.raises(golden.GoldenMismatch, match="column P"):
        golden.check("demo/t", golden.within(TABLE.assign(P=[0.11, float("nan")]), {"k": 2}))
    golden.check("demo/t", golden.within(TABLE.assign(P=[0.11, float("nan")]), {"P": 0.02}))
    with pytest.raises(ArgumentError, match="must name columns"):
        golden.within(TABLE, {"hits": 1})
    assert near.attrs == {}


def test_golden_wants_the_same_rows_in_the_same_order(accepted):
    with pytest.raises(golden.GoldenMismatch, match="1 rows, accepted 2"):
        golden.check("demo/t", TABLE.head(1))
    with pytest.raises(golden.GoldenMismatch, match="accepted PLT, now BR"):
        golden.check("demo/t", TABLE.iloc[::-1].reset_index(drop=True))
    with pytest.raises(golden.GoldenMismatch, match="columns are"):
        golden.check("demo/t", TABLE[["k", "method", "P", "best"]])


def test_golden_shows_the_worst_cell(project):
    table = pd.DataFrame({"x": [1.0, 1.0, 0.0]})
    project.golden("demo/t", tables.csv_text(table))
    with pytest.raises(golden.GoldenMismatch) as caught:
        golden.check("demo/t", pd.DataFrame({"x": [1.01, 1.5, 1e-4]}), rtol=0.02)
    assert caught.value.cell == (1, "x")
    # Near zero the tolerance is that of 0.001, so that a zero may carry rounding and no more.
    golden.check("demo/t", pd.DataFrame({"x": [1.01, 1.0, 1e-5]}), rtol=0.02)


def test_a_broken_golden_file_is_a_difference(project):
    project.golden("demo/t", "")
    with pytest.raises(golden.GoldenMismatch, match=r"accepted \[\]"):
        golden.check("demo/t", TABLE)
    project.golden("demo/t", "method,k,P,best\nPLT,1\nBR,5,nan,False\n")
    with pytest.raises(golden.GoldenMismatch, match="row 0"):
        golden.check("demo/t", TABLE)


def test_golden_is_never_made_silently(project, monkeypatch, tmp_path):
    notes = tmp_path / "notes"
    monkeypatch.setenv("XCREPRO_RECORD", str(notes))
    assert "new, 2 rows that nobody has accepted yet" in golden.check("demo/t:part", TABLE)
    assert record.read(notes) == {
        "new": ["demo/t:part has no golden file yet: look at it, and if it is right: xcrepro accept demo/t"]
    }
    assert golden.check("demo/t", TABLE, size="paper") == "demo/t: no reference for size paper"
    monkeypatch.setenv("XCREPRO_ACCEPT", "demo/other")
    golden.check("demo/t", TABLE)
    assert not (project.root / "tests/golden").exists()
    monkeypatch.setenv("XCREPRO_ACCEPT", "demo/t")
    golden.check("demo/t:part", TABLE)
    assert (project.root / "tests/golden/small/demo/t-part.csv").read_text() == tables.csv_text(TABLE)


def test_a_table_of_texts_counts_all_its_cells(project):
    project.golden("demo/t", "a,b\nx,y\n")
    assert golden.check("demo/t", pd.DataFrame({"a": ["x"], "b": ["y"]})) == "demo/t: 2 of 2 values agree"


@pytest.mark.parametrize(
    ("ours", "printed", "inside"),
    [
        (0.655666, "0.655666", True),
        (25.735, "25.73", True),
        (25.725, "25.73", True),
        (25.7351, "25.73", False),
        (25.7, "25.70", True),
        (25.71, "25.70", False),
        (25.71, "25.7", True),
        (26.4, "26", True),
        (float("nan"), "26", False),
        (-0.04, "0.0", True),
        (1204.0, "1.2e3", False),
    ],
)
def test_the_printed_number_carries_its_rounding(ours, printed, inside):
    assert compare.within(ours, printed) is inside


def test_printed_numbers_need_decimals():
    assert compare.within(25.7, 25.7, decimals=2)
    with pytest.raises(ArgumentError, match="decimals must be given"):
        compare.within(25.7, 25.7)
    with pytest.raises(ArgumentError, match="must be a number as the paper prints it"):
        compare.within(25.7, "25,7")


def test_published_counts_and_shows_the_rest(capsys):
    table = pd.DataFrame(
        {
            "method": ["PLT", "PLT", "BR", "BR"],
            "k": [1, 5, 1, 5],
            "ours": [81.251, 45.0, 80.0, float("nan")],
            "printed": ["81.25", "44.8", "-", "40.1"],
        }
    )
    assert compare.published("demo/t", table) == "demo/t: 1 of 3 published values within rounding"
    assert capsys.readouterr().out.splitlines() == [
        "demo/t: 1 of 3 published values within rounding",
        "  method=PLT, k=5: printed 44.8, ours 45.000, off by 0.15 beyond rounding",
        "  method=BR, k=5: printed 40.1, ours nan, no number",
    ]
    numbers = table.assign(printed=[81.25, 44.8, np.nan, 40.1])
    assert compare.published("demo/t", numbers, decimals=1) == "demo/t: 1 of 3 published values within rounding"
    with pytest.raises(ArgumentError, match="must have the column 'paper'"):
        compare.published("demo/t", table, printed="paper")


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_more_or_fewer_than_accepted(rows):
    table = pd.DataFrame({"k": range(rows), "P": 0.5})
    assert golden.compare(table, "k,P\n0,0.5\n1,0.5\n")[2].text == f"{rows} rows, accepted 2"


def test_a_column_without_any_value_is_not_shown():
    table = pd.DataFrame({"model": ["a", "b"], "true": [np.nan, np.nan], "P": [np.nan, 1.0]})
    assert repr(tables.show(table, 1)) == "model    P\na        -\nb      1.0"
    assert "true" in repr(tables.show(table[:0]))
