"""The listing of what is reproduced: its items are there, its words are borne out, its counts are the documents'."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections import Counter

import pytest

from docs import generated, papers, reproduced
from xcrepro.core.errors import DataError
from xcrepro.repro import published
from xcrepro.repro.engine import manifest

FIG3B = "jain16/fig3b_unbiased,on other data,"
TABLE1 = "jain16/table1_gains,definition,\njain16,table,Table 2"
HEAD = "document,kind,name,shows,items,extent,why\n"


@pytest.fixture(scope="module")
def items(root):
    return manifest.load(root)


@pytest.fixture(scope="module")
def text(root):
    return (root / reproduced.LISTING).read_text(encoding="utf-8")


def faults(rows, items):
    return reproduced.faults(rows, items, generated.rests_on, generated.takes)


def test_the_items_bear_the_listing_out(root, items):
    assert faults(reproduced.read(root / reproduced.LISTING), items) == []


def test_the_documents_have_81_figures_and_tables(root, text):
    """Counted from the file as text, and held to the printed tables, each of which has its row."""
    lines = [line for line in csv.DictReader(io.StringIO(text)) if line["kind"] in ("figure", "table")]
    assert len(lines) == 81
    assert Counter(line["document"] for line in lines) == {
        "xcrepo": 1 + 21,  # the table of datasets, the benchmark tables; the code list is neither figure nor table
        "reeval": 4 + 4,
        "calibration": 19 + 8,
        "jain16": 7 + 2 + 6 + 6,
        "coverage": 3,
    }
    rows = reproduced.read(root / reproduced.LISTING)
    assert dict(reproduced.counts(rows)) == Counter(line["extent"] for line in lines)
    known = {(line["document"], line["name"]) for line in lines}
    for source in published.sources():
        document, _, place = source.partition(":")
        if place.startswith("table") and "-" not in place:
            assert (document, f"Table {place.removeprefix('table')}") in known
    boards = {name.removeprefix("Benchmark table of ") for document, name in known if document == "xcrepo"}
    pages = {one.removeprefix("xcrepo:") for one in published.sources() if one.startswith("xcrepo:")}
    assert len(boards & pages) == 21


def test_the_page_has_every_row_and_its_counts(root, items):
    rows = reproduced.read(root / reproduced.LISTING)
    titles = {name: title for name, (title, _) in papers.DOCUMENTS.items()}
    lines = reproduced.page(rows, items, titles, generated.rests_on).splitlines()
    assert sum(line.startswith("| ") and "notebooks/" in line for line in lines) == sum(bool(row.items) for row in rows)
    for extent, number in reproduced.counts(rows).items():
        assert any(line.startswith(f"| {extent} | {number} |") for line in lines)
    row = next(line for line in lines if line.startswith("| Figure 3b |"))
    assert "[`jain16/fig3b_unbiased`](notebooks/jain16/fig3b_unbiased.ipynb)" in row
    assert "real data; recorded on bibtex, delicious" in row


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (FIG3B, "jain16/fig3b_biased,on other data,", "no item jain16/fig3b_biased"),
        ("coverage/entropy_diversity", "coverage/frontier", "coverage/entropy_diversity: named by no row"),
        (FIG3B, ",on other data,", "Figure 3b: on other data, and items none"),
        (FIG3B, "jain16/fig3b_unbiased,missing,", "Figure 3b: missing, and items jain16/fig3b"),
        ('fig3d_training,on other data,"PfastXML', 'fig3d_training,on other data,"two towers', "stands in"),
        (TABLE1, TABLE1.replace("definition", "in part"), "Table 1: in part, and why"),
        (FIG3B, "jain16/fig3b_unbiased,printed,", "but its items rest on more"),
        ("xcrepo/code_list,printed", "xcrepo/code_lists,printed", "no item xcrepo/code_lists"),
        (TABLE1, f"jain16/fig3a_missing_curves {TABLE1.replace('definition,', 'saved predictions,x')}", "no saved"),
    ],
)
def test_what_is_not_so_is_found(tmp_path, items, text, old, new, fault):
    assert text.count(old) == 1
    path = tmp_path / "reproduced.csv"
    path.write_text(text.replace(old, new), encoding="utf-8")
    found = faults(reproduced.read(path), items)
    assert any(fault in one for one in found), found


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("document,kind,name\n", "line 1"),
        (HEAD + "jain16,figure,Figure 1,a,,missing,b,c\n", r"line 2.*cells than columns"),
        (HEAD + "jain16,figure,Figure 1,a,,missing\n", r"line 2.*cells than columns"),
        (HEAD + "jain16,picture,Figure 1,a,,missing,b\n", r"line 2.*kind 'picture'"),
        (HEAD + "jain16,figure,Figure 1,a,,partly,b\n", r"line 2.*extent 'partly'"),
        (HEAD + "jain16,figure,Figure 1,a,,,b\n", r"line 2.*extent ''"),
        (HEAD + 2 * "jain16,figure,Figure 1,a,,missing,b\n", r"line 3.*Figure 1 a second time"),
    ],
)
def test_a_listing_that_breaks_a_rule_is_refused_by_its_line(tmp_path, lines, fault):
    path = tmp_path / "reproduced.csv"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(DataError, match=fault):
        reproduced.read(path)


def test_which_tables_wait_for_a_download(root):
    """Each open benchmark table that prints a method of ours is there; none that is on another version, or proprietary."""
    text = "\n".join(reproduced.waiting(reproduced.read(root / reproduced.LISTING)))
    with (root / reproduced.LISTING).open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    title = "Benchmark table of "
    for row in rows:
        if row["name"].startswith(title):
            name = row["name"].removeprefix(title)
            assert (f"| {name} |" in text) == (row["extent"] == "printed"), name
    eurlex = next(line for line in text.splitlines() if line.startswith("| EURLex-4K |"))
    assert "jain16, table 4a" in eurlex
    assert "jain16, table 3a" not in eurlex  # in part: Popularity, by its labels
    assert "coverage, table 3" in eurlex
    assert "reeval" not in eurlex
    assert "calibration" not in eurlex
    assert "calibration, table 4" not in text
    assert "Ads-9M" not in text
    assert "`xcrepro reproduce eurlex-4k --record`" in eurlex
    done = [dataclasses.replace(one, extent="in part") for one in reproduced.read(root / reproduced.LISTING)]
    assert "| EURLex-4K |" not in "\n".join(reproduced.waiting(done))
