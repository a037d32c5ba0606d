"""Leaderboards of published numbers: the page's benchmark tables, reeval's tables 3 and 4."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.errors import ArgumentError
from xcrepro.repro import leaderboards, reeval_tables


@pytest.fixture(scope="module")
def board():
    return leaderboards.board()


def made(rows, dataset="A"):
    """A board of (method, mark, P@1, PSP@1, train h)."""
    table = pd.DataFrame(rows, columns=["method", "mark", "P@1", "PSP@1", "train h"])
    table.insert(0, "dataset", dataset)
    return table.reindex(columns=["dataset", "method", "mark", *leaderboards.COLUMNS])


# ---------------------------------------------------------------- the page


def test_every_table_of_the_page_is_there(board):
    assert len(leaderboards.sources()) == 21
    assert list(board.columns) == ["dataset", "method", "mark", *leaderboards.COLUMNS]
    assert len(board) == 330
    assert board["dataset"].nunique() == 21


def test_values_written_off_the_page(board):
    first = board.iloc[0]
    assert (first["dataset"], first["method"], first["mark"]) == ("LF-AmazonTitles-131K", "AnnexML", "*")
    printed = [30.05, 21.25, 16.02, 30.05, 31.58, 34.05, 19.23, 26.09, 32.26, 19.23, 23.64, 26.60, 1.95, 0.08]
    assert first[leaderboards.COLUMNS].tolist() == printed


def test_a_row_printed_twice_stays_twice(board):
    rows = board[(board["dataset"] == "Delicious-200K") & (board["method"] == "Parabel")]
    assert rows["P@1"].tolist() == [46.86, 46.97]


def test_one_table_by_name_or_key():
    one = leaderboards.board("eurlex-4k")
    assert set(one["dataset"]) == {"EURLex-4K"}
    assert one.equals(leaderboards.board("EURLex-4K"))


@pytest.mark.parametrize("name", ["no such set", "RCV1-2K"])  # the second has no benchmark table
def test_a_dataset_without_a_table_is_said(name):
    with pytest.raises(ArgumentError):
        leaderboards.board(name)


@pytest.mark.parametrize("column", leaderboards.COLUMNS)
def test_sorting_keeps_every_row_and_puts_the_best_first(board, column):
    rows = leaderboards.ranked(board, column)
    assert list(rows["dataset"].unique()) == list(board["dataset"].unique())
    assert len(rows) == len(board)
    for _, part in rows.groupby("dataset"):
        values = part[column].dropna().tolist()
        assert values == sorted(values, reverse=column not in leaderboards.COSTS.values())
        assert part[column].iloc[len(values) :].isna().all()


def test_sorting_by_what_is_not_there_is_said(board):
    with pytest.raises(ArgumentError, match="P@1"):
        leaderboards.ranked(board, "P@2")


def test_words_name_every_table(board):
    text = leaderboards.in_words(board)
    assert all(f"{dataset}: " in text for dataset in board["dataset"].unique())
    assert len(text.splitlines()) == 330 + 3 * 21 - 1


def test_leaders():
    table = made([("a", "*", 50, 20, 9), ("b", "", 60, 10, 3), ("c", "†", np.nan, 30, np.nan)])
    by_precision, by_hours = leaderboards.leaders(table), leaderboards.leaders(table, "train h")
    assert by_precision.iloc[0].tolist() == ["A", 2, "b", "", 60, "a", 10]
    assert by_hours.iloc[0].tolist() == ["A", 2, "b", "", 3, "a", 6]
    assert leaderboards.leaders(table, "PSP@1").iloc[0].tolist() == ["A", 3, "c", "†", 30, "a", 10]


def test_head_and_tail_takes_rows_with_both():
    apart = made([("a", "", 50, 20, 1), ("b", "", 60, 10, 1), ("c", "", 70, np.nan, 1)])
    same = made([("a", "", 50, 20, 1), ("b", "", 60, 30, 1)], "B")
    found = leaderboards.head_and_tail(pd.concat([apart, same], ignore_index=True))
    assert found["same"].tolist() == [False, True]
    assert found["rows"].tolist() == [2, 2]
    assert found["PSP@1 behind"].tolist() == [10, 0]
    assert found["Spearman"].tolist() == pytest.approx([-1, 1])


def test_the_front_against_a_slow_search(board):
    data = leaderboards.costs(board, "train h")
    assert len(data) == int(board[["P@1", "train h"]].notna().all(axis=1).sum())
    for _, part in data.groupby("dataset"):
        rows = list(zip(part["P@1"], part["train h"], strict=True))
        for (p, c), front in zip(rows, part["front"], strict=True):
            beaten = any(q >= p and d <= c and (q, d) != (p, c) for q, d in rows)
            assert front == (not beaten)


def test_equal_rows_are_both_on_the_front():
    data = leaderboards.costs(made([("a", "", 50, 1, 2), ("b", "", 50, 1, 2), ("c", "", 50, 1, 3)]), "train h")
    assert data["front"].tolist() == [True, True, False]


def test_a_cost_that_is_none_is_said(board):
    with pytest.raises(ArgumentError, match="train h"):
        leaderboards.costs(board, "P@1")
    with pytest.raises(ArgumentError):
        leaderboards.gaps(board, leaderboards.years(board), "train h")


def test_price_of_the_last_points():
    table = made([("best", "", 60, 1, 100), ("near", "", 57, 1, 10), ("far", "", 56.9, 1, 1)])
    found = leaderboards.price_of_the_last_points(leaderboards.costs(table, "train h"), "train h", least=3).iloc[0]
    assert (found["cheaper"], found["points lost"], found["times"]) == ("near", 3, 10)
    assert leaderboards.price_of_the_last_points(leaderboards.costs(table, "train h"), "train h", least=4).empty


def test_cost_of_the_best():
    table = made([("best", "‡", 60, 1, 8), ("slow", "*", 50, 1, 9), ("fast", "*", 40, 1, 2)])
    found = leaderboards.cost_of_the_best(leaderboards.costs(table, "train h"), "train h", least=3).iloc[0]
    assert (found["cheapest"], found["best"], found["best over cheapest"]) == ("fast", "best", 4)
    assert not found["best is dearest"]


def test_years_are_the_pages(board):
    years = leaderboards.years(board).set_index("method")
    assert years.loc["PfastreXML"].tolist() == [2016, "KDD"]
    assert set(years.index[years["year"].isna()]) == {"1-vs-All", "XR-Transformer", "XT", "kNN"}


def test_the_referenced_years_are_those_of_the_reference_list(board):
    from xcrepro import published

    listed = published.references().set_index("ref")["year"]
    assert {method: int(listed[ref]) for method, (ref, _) in leaderboards.REFERENCED.items()} == {
        method: year for method, (_, year) in leaderboards.REFERENCED.items()
    }
    assert set(leaderboards.REFERENCED) <= set(board["method"])
    assert not set(leaderboards.REFERENCED) & set(published.methods()["method"])


def test_gaps_are_to_the_best_of_the_table(board):
    gaps = leaderboards.gaps(board, leaderboards.years(board))
    assert (gaps["gap"] >= 0).all()
    assert (gaps.groupby("dataset")["gap"].min() == 0).all()
    lead = leaderboards.newest_lead(gaps)
    assert int(lead["reported"].sum()) == int(lead["leads"].sum()) == 16  # the figure's title


def test_the_sentences_of_the_notebook(board):
    found = leaderboards.head_and_tail(board)
    assert (~found["same"]).sum() == 11
    assert (leaderboards.leaders(board)["behind"] < 0.5).sum() == 8
    assert board[leaderboards.COLUMNS].isna().all(axis=1).sum() == 7
    assert board.loc[board["method"] == "Renee", list(leaderboards.COSTS.values())].isna().all(axis=None)
    cost = leaderboards.cost_of_the_best(leaderboards.costs(board, "train h"), "train h")
    assert len(cost) == (cost["its mark"] == "*").sum() == 12
    assert cost["best over cheapest"].round().agg(["min", "max"]).tolist() == [16, 434]


@pytest.mark.parametrize("dataset", ["bibtex", "lf-amazon-131k"])  # the first prints no cost at all
def test_figures_of_one_table(dataset):
    rows = leaderboards.board(dataset)
    figures = [leaderboards.plot_head_and_tail(rows, leaderboards.head_and_tail(rows))]
    figures += [leaderboards.plot_costs(leaderboards.costs(rows, cost), cost) for cost in leaderboards.COSTS.values()]
    figures.append(leaderboards.plot_years(leaderboards.gaps(rows, leaderboards.years(rows))))
    assert all(figure.axes for figure in figures)


def test_names_in_a_panel_do_not_overlap():
    rows = leaderboards.board("lf-amazontitles-1.3m")
    figure = leaderboards.plot_costs(leaderboards.costs(rows, "train h"), "train h")
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_visible()]
    assert len(boxes) > 3
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


# ---------------------------------------------------------------- reeval


def test_reeval_tables_as_printed():
    table3, table4 = reeval_tables.table(3), reeval_tables.table(4)
    assert table3.shape == (15, 11)
    assert table4.shape == (15, 8)
    assert table3.iloc[0, 2:].tolist() == [83.44, 70.62, 59.08, 26.50, 51.06, 57.37, 5.64, 13.28, 17.89]
    assert table4.iloc[-1, 2:].tolist() == [95.53, 85.87, 79.54, 54.94, 69.48, 76.45]


def test_reeval_ties_name_everybody():
    leaders = reeval_tables.leaders(reeval_tables.table(3)).set_index(["dataset", "column"])
    tied = leaders.loc[("Wiki10-31K", "P@1")]
    assert (tied["best"], round(tied["ahead"], 2)) == ("APLC-XLNet = LightXML", 1.47)


def test_reeval_claims():
    claims = reeval_tables.claims()
    assert claims["holds"].tolist() == [36, 4, 10, 4, 8, 3, 12, 12, 11]
    assert claims["of"].tolist() == [36, 4, 12, 4, 12, 3, 12, 12, 12]
    assert ((claims["holds"] == claims["of"]) == (claims["where not"] == "")).all()


def test_twenty_of_thirty_bars():
    bars = reeval_tables.bars()
    assert len(bars) == 30
    assert set(bars.loc[bars["value"].isna(), "dataset"]) == {"Wiki10-31K"}
    assert bars["value"].notna().sum() == 20
    best = reeval_tables.best_bars(bars).set_index("dataset")
    assert best.loc["AmazonCat-13K", ["best micro_F1", "best macro_F1"]].tolist() == ["X-Transformer", "AttentionXML"]
    assert best.loc["Wiki10-31K", "best micro_F1"] == "-"


def test_the_title_of_fig_2_is_a_finding_only_where_it_holds():
    bars = reeval_tables.bars()
    assert "AttentionXML by macro-F1; the SVM is last only" in reeval_tables.plot_bars(bars).get_suptitle()
    bars.loc[(bars["method"] == "AttentionXML") & (bars["dataset"] == "EURLex-4K"), "value"] = 99.0
    assert "AttentionXML" not in reeval_tables.plot_bars(bars).get_suptitle()
