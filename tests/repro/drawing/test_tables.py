"""Tables: the exact form, the form that is committed, the rounded form; numbers beside print."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refused import refused
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.drawing import tables
from xcrepro.repro.engine import rounding

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
    with pytest.raises(ArgumentError, match=r"^(table|column 'a') "):
        tables.csv_text(table)


def test_shown_forms():
    shown = tables.show(TABLE.assign(P=[-0.0001, 0.12345]), decimals=2)
    assert repr(shown).splitlines() == ["method  k     P   best", "PLT     1  0.00   True", "BR      5  0.12  False"]
    html = shown._repr_html_()
    assert html.count("<tr>") == 3
    assert '<td style="text-align:right">0.12</td>' in html
    assert "&lt;b&gt;" in tables.show(pd.DataFrame({"a": ["<b>"]}))._repr_html_()
    assert repr(tables.show(pd.DataFrame({"a": [0.5], "b": [0.5]}), decimals={"a": 1})) == "  a      b\n0.5  0.500"
    with refused("decimals", -1):
        tables.show(TABLE, decimals=-1)


def test_showing_does_not_depend_on_pandas_options():
    plain = repr(tables.show(TABLE))
    with pd.option_context("display.precision", 1, "display.max_rows", 1):
        assert repr(tables.show(TABLE)) == plain


def test_latex_and_markdown_escape():
    table = pd.DataFrame({"set_100%": ["a&b|c\\d"]})
    assert r"set\_100\%" in tables.latex(table)
    assert r"a\&b\textbar{}c\textbackslash{}d" in tables.latex(table)
    assert r"a&b\|c\d" in tables.markdown(table)


def test_render_gives_all_files_or_none():
    assert list(tables.render(TABLE)) == [".csv", ".md"]
    assert tables.render(TABLE)[".csv"] == tables.csv_text(TABLE, committed=True).encode()
    with refused("decimals", 99):
        tables.render(TABLE, decimals=99)


def test_a_written_table_is_read_back():
    table, origin = tables.from_csv(tables.csv_text(tables.with_origin(TABLE, "as printed"), committed=True))
    assert origin == "as printed"
    assert tables.csv_text(table) == tables.csv_text(TABLE, committed=True)
    assert tables.markdown(table, 2) == tables.markdown(TABLE, 2)
    words = pd.DataFrame({"word": ["nan", "NA", ""], "P": [float("nan"), 0.5, 1.0]})
    assert tables.csv_text(tables.from_csv(tables.csv_text(words))[0]) == tables.csv_text(words)


def test_a_committed_table_is_made_for_people_on_demand(capsys):
    assert main(["table", "jain16/table3_table4", "--decimals", "1"]) == 0
    assert capsys.readouterr().out.startswith("| dataset | metric |")
    assert main(["table", "jain16/table3_table4", "--decimals", "1", "--latex"]) == 0
    assert r"dataset & metric & k & left" in capsys.readouterr().out
    assert main(["table", "jain16/none"]) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 / 3, "0.333333"),
        (123456789.0, "123457000.0"),
        (2515.0, "2515.0"),
        (1.23456789e-9, "1.23457e-09"),
        (-5.6e-17, "0.0"),
        (-0.0, "0.0"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_what_is_committed_has_six_digits(value, text):
    assert tables.number(value) == text
    table = pd.DataFrame({"x": [value], "k": [1234567]})
    assert tables.csv_text(table, committed=True) == f"x,k\n{text},1234567\n"
    assert tables.render(table)[".csv"].decode() == f"x,k\n{text},1234567\n"


def test_the_origin_is_taken_off_again():
    table = pd.DataFrame({"a": ["x, y", 'say "z"'], "P": [0.5, 0.25]})
    text = tables.csv_text(tables.with_origin(table, "TIB, 5 points"))
    assert tables.without_origin(text) == tables.csv_text(table)
    assert tables.without_origin(tables.csv_text(table)) == tables.csv_text(table)
    assert tables.without_origin("") == ""


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
    assert rounding.within(ours, printed) is inside


def test_several_ways_to_one_number(capsys):
    assert rounding.equal("P@3", by_hand=2 / 3, call=0.6666666667) == "P@3: by hand = call = 0.6667"
    with pytest.raises(rounding.Disagreement, match=r"P@3: .*0\.5, .*0\.6"):
        rounding.equal("P@3", by_hand=0.5, call=0.6)


def test_a_table_is_spread_and_its_intervals_joined():
    long = pd.DataFrame({"model": ["b", "b", "a"], "k": [5, 1, 5], "P": [0.1, 0.2, 0.3]})
    wide = tables.spread(long, ["model"], "k", "P")
    assert wide.columns.tolist() == ["model", "5", "1"]
    assert wide.fillna(0).values.tolist() == [["b", 0.1, 0.2], ["a", 0.3, 0]]
    table = pd.DataFrame({"k": [5, 1], "ECE": [2.107, np.nan], "ECE low": [0.0, 0.0], "ECE high": [4.051, 1.0]})
    assert tables.join_intervals(table).values.tolist() == [[5, "2.11 (0.00 to 4.05)"], [1, "-"]]


def test_a_printed_number_is_one():
    with refused("printed", "'25,7'"):
        rounding.within(25.7, "25,7")


def test_a_column_without_any_value_is_not_shown():
    table = pd.DataFrame({"model": ["a", "b"], "true": [np.nan, np.nan], "P": [np.nan, 1.0]})
    assert repr(tables.show(table, 1)) == "model    P\na        -\nb      1.0"
    assert "true" in repr(tables.show(table[:0]))
