"""xcrepo/code_list: the join against a plain count of the printed lines, names that nobody wrote down, its sentences."""

from __future__ import annotations

import csv
import itertools

import pytest

from xcrepro import published
from xcrepro.errors import ArgumentError
from xcrepro.papers.xcrepo import code_list


@pytest.fixture(scope="module")
def rows():
    return code_list.load_rows()


@pytest.fixture(scope="module")
def lines(root):
    """The printed numbers as the file has them: (dataset, listed or other name) -> P@1, read without the package."""
    with (root / "data/published/listed_as.csv").open(encoding="utf-8", newline="") as file:
        written = {line["printed"]: line["listed"] for line in csv.DictReader(file)}
    with (root / "data/published/xcrepo.csv").open(encoding="utf-8", newline="") as file:
        return [(line, written.get(line["method"], line["method"])) for line in csv.DictReader(file)]


def test_every_printed_method_is_listed_or_written_down(rows, lines):
    listed = set(published.methods()["method"])
    assert {name for _, name in lines} - {""} <= listed
    written = published.listed_as()
    assert set(written["listed"]) - {""} <= listed
    assert not set(written["printed"]) & listed, "a name of the list needs no map"
    assert written["printed"].is_unique
    assert (written["why"] != "").all()
    for name in rows["method"].unique():
        assert code_list.listed_name(name) in listed | {""}
    with pytest.raises(ArgumentError, match=r"in the list of code or in data/published/listed_as\.csv"):
        code_list.listed_name("NewXML")


def test_tables_of_each_method_are_those_with_a_line_of_it(rows, lines):
    found = code_list.compute(rows)
    assert found["method"].tolist() == published.methods()["method"].tolist()
    for one in found.itertuples():
        assert one.tables == len({line["dataset"] for line, name in lines if name == one.method}), one.method
    assert found["first in P@1"].sum() == found["first in PSP@1"].sum() == 21  # every first row is a listed method's
    assert found.set_index("method")["papers"]["Probabilistic Label Trees"] == "calibration, coverage"
    families = code_list.compute_families(rows, 2021)
    assert families["listed"].sum() == 42
    assert families["rows"].sum() == len(rows)
    assert families["P@1 first"].sum() == 21
    assert (families["P@1 certain"] <= families["P@1 first"]).all()


def test_pairs_are_counted_one_by_one(rows, lines):
    names = published.methods()["method"].tolist()
    seen = {name: {line["dataset"] for line, listed in lines if listed == name} for name in names}
    pairs = code_list.compute_pairs(rows)
    together = sum(bool(seen[a] & seen[b]) for a, b in itertools.combinations(names, 2))
    assert (pairs["pairs"].sum(), pairs["together"].sum()) == (42 * 41 // 2, together)
    assert (pairs["pairs"] == pairs["together"] + pairs["never"]).all()


def test_places_and_sentences(rows):
    places = code_list.compute_places(rows)
    assert places["first"].sum() == 21
    assert sorted(set(places["row"])) == list(range(42))
    assert len(code_list.plot(places).axes) == 1
    found, families = code_list.compute(rows), code_list.compute_families(rows, 2021)
    said = code_list.findings(found, families, code_list.compute_unmatched(rows), code_list.compute_pairs(rows))
    empty = found[found["tables"] == 0]
    assert f"{len(empty)} have none: " in said[0]
    assert all(name in said[0] for name in empty["method"])
    assert said[-1] == "10 methods of the tables are not in the list; XT stands in the most tables, 17."


@pytest.mark.parametrize("since", [2014, 2025, 2021.0, True])
def test_parameters_are_refused_in_the_notebooks_names(since):
    code_list.check_parameters({"size": "small", "since": 2021})
    with pytest.raises(ArgumentError, match="parameter since must be a year above 2014, 2024 at most"):
        code_list.check_parameters({"size": "small", "since": since})
