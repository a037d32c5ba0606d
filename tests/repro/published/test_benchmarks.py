"""The page's benchmark tables: as printed, their leaders, costs and years, against slow or hand-read answers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.refused import refused
from xcrepro.repro import published
from xcrepro.repro.published import benchmarks


@pytest.fixture(scope="module")
def board():
    return benchmarks.board()


def test_the_tables_are_the_pages(board):
    assert len(benchmarks.sources()) == board["dataset"].nunique() == 21
    assert list(board.columns) == ["dataset", "method", "mark", *benchmarks.COLUMNS, "doubted"]
    assert len(board) == 330
    first = board.iloc[0]  # read off the page
    assert (first["dataset"], first["method"], first["mark"]) == ("LF-AmazonTitles-131K", "AnnexML", "*")
    printed = [30.05, 21.25, 16.02, 30.05, 31.58, 34.05, 19.23, 26.09, 32.26, 19.23, 23.64, 26.60, 1.95, 0.08]
    assert first[benchmarks.COLUMNS].tolist() == printed
    twice = board[(board["dataset"] == "Delicious-200K") & (board["method"] == "Parabel")]
    assert twice["P@1"].tolist() == [46.86, 46.97]


def test_one_table_by_name_or_key():
    one = benchmarks.board("eurlex-4k")
    assert set(one["dataset"]) == {"EURLex-4K"}
    assert one.equals(benchmarks.board("EURLex-4K"))
    with refused("name", "'no such set'"):
        benchmarks.board("no such set")
    with refused("dataset", "'RCV1-2K'"):
        benchmarks.board("RCV1-2K")


def test_a_board_is_the_callers_own(board):
    mine = benchmarks.board()
    mine.loc[0, "P@1"] = 0
    assert benchmarks.board().equals(board)


def test_what_the_audit_doubts_is_named_and_left_out(board):
    doubted = board.set_index(["dataset", "method"])["doubted"]
    assert doubted["LF-Amazon-131K", "ECLARE"] == "size GB"
    assert doubted["EURLex-4K", "PfastreXML"] == "PSP@1, PSP@3, PSP@5, PSN@1, PSN@3, PSN@5"
    assert doubted["EURLex-4K", "Parabel"] == ""
    assert "PfastreXML" not in set(benchmarks.sure("P@1", "PSP@1", dataset="eurlex-4k")["method"])
    assert "PfastreXML" in set(benchmarks.sure("P@1", dataset="eurlex-4k")["method"])
    left = benchmarks.sure("P@1", "PSP@1")
    assert left[["P@1", "PSP@1"]].notna().all(axis=None)
    assert not benchmarks.in_doubt(left, "P@1", "PSP@1").any()


@pytest.mark.parametrize("metric", ["P@1", "PSP@3"])
def test_leaders_against_a_slow_search(metric):
    for one in benchmarks.leaders(metric).to_dict("records"):
        values = benchmarks.sure(metric, dataset=one["dataset"]).set_index("method")[metric]
        top, second = sorted(values, reverse=True)[:2]
        assert (one["methods"], one[metric], values[one["best"]].max()) == (len(values), top, top)
        assert one["ahead"] == top - second
        assert one["lead"] in ("certain", "open", "no lead")


def test_the_unbeaten_against_a_slow_search():
    for _, part in benchmarks.sure("P@1", "train h").groupby("dataset"):
        rows = list(zip(part["P@1"], part["train h"], strict=True))
        for (p, c), front in zip(rows, benchmarks.unbeaten(part["P@1"], part["train h"]), strict=True):
            assert front == (not any(q >= p and d <= c and (q, d) != (p, c) for q, d in rows))
    assert np.array_equal(benchmarks.unbeaten([50, 50, 50], [1, 1, 2]), [True, True, False])


def test_years_are_the_pages(board):
    years = benchmarks.years()
    assert (years["PfastreXML"], years["Astec"], years["LPSR"]) == (2016, 2021, 2013)
    assert set(board["method"]) - set(years) == {"1-vs-All", "XR-Transformer", "XT", "kNN"}
    assert set(benchmarks._REFERENCED) <= set(board["method"]) - set(published.methods()["method"])
