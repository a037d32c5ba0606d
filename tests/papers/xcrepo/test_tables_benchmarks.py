"""The page's benchmark tables: as printed, sorted, their leaders, costs and years, against slow or hand-read answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro import published
from xcrepro.errors import ArgumentError
from xcrepro.papers.xcrepo import tables_benchmarks as benchmarks


@pytest.fixture(scope="module")
def board():
    return benchmarks.load_tables()


def made(rows, dataset="A"):
    """A board of (method, mark, P@1, PSP@1, train h)."""
    table = pd.DataFrame(rows, columns=["method", "mark", "P@1", "PSP@1", "train h"])
    table.insert(0, "dataset", dataset)
    return table.reindex(columns=["dataset", "method", "mark", *benchmarks.COLUMNS])


# ---------------------------------------------------------------- the page


def test_the_tables_are_the_pages(board):
    assert len(benchmarks.sources()) == board["dataset"].nunique() == 21
    assert list(board.columns) == ["dataset", "method", "mark", *benchmarks.COLUMNS]
    assert len(board) == 330
    first = board.iloc[0]  # read off the page
    assert (first["dataset"], first["method"], first["mark"]) == ("LF-AmazonTitles-131K", "AnnexML", "*")
    printed = [30.05, 21.25, 16.02, 30.05, 31.58, 34.05, 19.23, 26.09, 32.26, 19.23, 23.64, 26.60, 1.95, 0.08]
    assert first[benchmarks.COLUMNS].tolist() == printed
    twice = board[(board["dataset"] == "Delicious-200K") & (board["method"] == "Parabel")]
    assert twice["P@1"].tolist() == [46.86, 46.97]


def test_one_table_by_name_or_key():
    one = benchmarks.load_tables("eurlex-4k")
    assert set(one["dataset"]) == {"EURLex-4K"}
    assert one.equals(benchmarks.load_tables("EURLex-4K"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda board: benchmarks.load_tables("no such set"), "no such set"),
        (lambda board: benchmarks.load_tables("RCV1-2K"), "benchmark table"),
        (lambda board: benchmarks.compute(board, "P@2"), "P@1"),
        (lambda board: benchmarks.compute_costs(board, "P@1"), "train h"),
        (lambda board: benchmarks.compute_years(board, benchmarks.publication_years(board), "train h"), "P@1"),
    ],
)
def test_what_is_not_there_is_refused(board, call, words):
    with pytest.raises(ArgumentError, match=words):
        call(board)


@pytest.mark.parametrize("column", benchmarks.COLUMNS)
def test_sorting_keeps_every_row_and_puts_the_best_first(board, column):
    rows = benchmarks.compute(board, column)
    assert list(rows["dataset"].unique()) == list(board["dataset"].unique())
    assert len(rows) == len(board)
    for _, part in rows.groupby("dataset"):
        values = part[column].dropna().tolist()
        assert values == sorted(values, reverse=column not in benchmarks.COSTS.values())
        assert part[column].iloc[len(values) :].isna().all()


def test_words_name_every_table(board):
    text = benchmarks.describe(board)
    assert all(f"{dataset}: " in text for dataset in board["dataset"].unique())
    assert len(text.splitlines()) == 330 + 3 * 21 - 1


def test_leaders():
    table = made([("a", "*", 50, 20, 9), ("b", "", 60, 10, 3), ("c", "†", np.nan, 30, np.nan)])
    for column, row in (
        ("P@1", ["A", 2, "b", "", 60, "a", 10]),
        ("train h", ["A", 2, "b", "", 3, "a", 6]),
        ("PSP@1", ["A", 3, "c", "†", 30, "a", 10]),
    ):
        assert benchmarks.compute_leaders(table, column).iloc[0].tolist() == row


def test_head_and_tail_takes_rows_with_both():
    apart = made([("a", "", 50, 20, 1), ("b", "", 60, 10, 1), ("c", "", 70, np.nan, 1)])
    same = made([("a", "", 50, 20, 1), ("b", "", 60, 30, 1)], "B")
    found = benchmarks.compute_agreement(pd.concat([apart, same], ignore_index=True))
    assert found["same"].tolist() == [False, True]
    assert found["rows"].tolist() == [2, 2]
    assert found["PSP@1 behind"].tolist() == [10, 0]
    assert found["Spearman"].tolist() == pytest.approx([-1, 1])


def test_the_front_against_a_slow_search(board):
    data = benchmarks.compute_costs(board, "train h")
    assert len(data) == int(board[["P@1", "train h"]].notna().all(axis=1).sum())
    for _, part in data.groupby("dataset"):
        rows = list(zip(part["P@1"], part["train h"], strict=True))
        for (p, c), front in zip(rows, part["front"], strict=True):
            beaten = any(q >= p and d <= c and (q, d) != (p, c) for q, d in rows)
            assert front == (not beaten)


def test_equal_rows_are_both_on_the_front():
    data = benchmarks.compute_costs(made([("a", "", 50, 1, 2), ("b", "", 50, 1, 2), ("c", "", 50, 1, 3)]), "train h")
    assert data["front"].tolist() == [True, True, False]


def test_price_of_the_last_points():
    table = made([("best", "", 60, 1, 100), ("near", "", 57, 1, 10), ("far", "", 56.9, 1, 1)])
    costs = benchmarks.compute_costs(table, "train h")
    found = benchmarks.compute_price(costs, "train h", least=3).iloc[0]
    assert (found["cheaper"], found["points lost"], found["times"]) == ("near", 3, 10)
    assert benchmarks.compute_price(costs, "train h", least=4).empty


def test_cost_of_the_best():
    table = made([("best", "‡", 60, 1, 8), ("slow", "*", 50, 1, 9), ("fast", "*", 40, 1, 2)])
    found = benchmarks.compute_cost_of_best(benchmarks.compute_costs(table, "train h"), "train h", least=3).iloc[0]
    assert (found["cheapest"], found["best"], found["best over cheapest"]) == ("fast", "best", 4)
    assert not found["best is dearest"]


def test_years_are_the_pages(board):
    years = benchmarks.publication_years(board).set_index("method")
    assert years.loc["PfastreXML"].tolist() == [2016, "KDD"]
    assert years.loc[["Astec", "LPSR"]].to_numpy().tolist() == [[2021, "[55]"], [2013, "[04]"]]
    assert set(benchmarks.REFERENCED) <= set(board["method"]) - set(published.methods()["method"])
    assert set(years.index[years["year"].isna()]) == {"1-vs-All", "XR-Transformer", "XT", "kNN"}


def test_gaps_are_to_the_best_of_the_table(board):
    gaps = benchmarks.compute_years(board, benchmarks.publication_years(board))
    assert (gaps["gap"] >= 0).all()
    assert (gaps.groupby("dataset")["gap"].min() == 0).all()
    lead = benchmarks.compute_newest(gaps)
    assert int(lead["reported"].sum()) == int(lead["leads"].sum()) == 16  # the figure's title


def test_the_sentences_of_the_notebook(board):
    found = benchmarks.compute_agreement(board)
    assert (~found["same"]).sum() == 11
    assert (benchmarks.compute_leaders(board)["behind"] < 0.5).sum() == 8
    assert board[benchmarks.COLUMNS].isna().all(axis=1).sum() == 7
    assert board.loc[board["method"] == "Renee", list(benchmarks.COSTS.values())].isna().all(axis=None)
    cost = benchmarks.compute_cost_of_best(benchmarks.compute_costs(board, "train h"), "train h")
    assert len(cost) == (cost["its mark"] == "*").sum() == 12
    assert cost["best over cheapest"].round().agg(["min", "max"]).tolist() == [16, 434]


@pytest.mark.parametrize("dataset", ["bibtex", "lf-amazon-131k"])  # the first prints no cost at all
def test_figures_of_one_table(dataset):
    rows = benchmarks.load_tables(dataset)
    drawn = [benchmarks.plot_psp(benchmarks.compute_psp(rows), benchmarks.compute_agreement(rows))]
    drawn += [benchmarks.plot_costs(benchmarks.compute_costs(rows, cost), cost) for cost in benchmarks.COSTS.values()]
    drawn.append(benchmarks.plot_years(benchmarks.compute_years(rows, benchmarks.publication_years(rows))))
    assert all(figure.axes for figure in drawn)


def test_names_in_a_panel_do_not_overlap():
    rows = benchmarks.load_tables("lf-amazontitles-1.3m")
    figure = benchmarks.plot_costs(benchmarks.compute_costs(rows, "train h"), "train h")
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_visible()]
    assert len(boxes) > 3
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
