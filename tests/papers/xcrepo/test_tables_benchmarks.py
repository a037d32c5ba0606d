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
    return table.reindex(columns=["dataset", "method", "mark", *benchmarks.COLUMNS]).assign(doubted="")


# ---------------------------------------------------------------- the page


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
    shown = benchmarks.describe(board)
    assert all(f"{dataset}: " in shown.text for dataset in board["dataset"].unique())
    assert len(shown.text.splitlines()) == 330 + 3 * 21 - 1
    assert (
        shown.summary == f"21 tables, 330 rows; † behind {shown.text.count('†') - board['mark'].eq('†').sum()} numbers"
    )
    assert shown._repr_html_().startswith("<details>")


def test_what_the_audit_doubts_is_named_and_counts_nowhere(board):
    doubted = board.set_index(["dataset", "method"])["doubted"]
    assert doubted["LF-Amazon-131K", "ECLARE"] == "size GB"
    assert doubted["EURLex-4K", "PfastreXML"] == "PSP@1, PSP@3, PSP@5, PSN@1, PSN@3, PSN@5"
    assert doubted["EURLex-4K", "Parabel"] == ""
    table = made([("a", "", 50, 20, 1), ("b", "", 60, 10, 1), ("c", "", 55, 90, 0.1)])
    table.loc[2, "doubted"] = "PSP@1, train h"
    found = benchmarks.compute_agreement(table).iloc[0]
    assert (found["leads PSP@1"], found["rows"]) == ("a", 2)
    costs = benchmarks.compute_costs(table, "train h")
    assert costs["doubted"].tolist() == [False, False, True]
    assert costs["front"].tolist() == [False, True, False]
    assert benchmarks.compute_cost_of_best(costs, "train h", 2)["cheapest"].tolist() == ["a"]
    last = benchmarks.describe(table).text.splitlines()[-1]
    assert "90†" in last
    assert last.endswith("0.10†")


def test_leaders():
    table = made([("a", "*", 50, 20, 9), ("b", "", 60, 10, 3), ("c", "†", np.nan, 30, np.nan)])
    for column, row in (
        ("P@1", ["A", 2, "b", "", 60, "a", 10]),
        ("train h", ["A", 2, "b", "", 3, "a", 6]),
        ("PSP@1", ["A", 3, "c", "†", 30, "a", 10]),
    ):
        assert benchmarks.compute_leaders(table, column).iloc[0].tolist() == [
            *row,
            "",
        ]  # no table of the page has these


def test_a_lead_is_as_certain_as_print_has_it(board):
    found = benchmarks.compute_leaders(board, "P@1").set_index("dataset")
    assert found.loc["Amazon-670K", "lead"] == "certain"
    assert found.loc["Wikipedia-500K", "lead"] == "open"
    assert set(found["lead"]) <= {"certain", "open", "no lead", ""}
    assert set(benchmarks.compute_leaders(board, "train h")["lead"]) == {""}


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
            assert front == (not beaten)  # the page's training times are not doubted


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
    assert int(lead["reported"].sum()) == int(lead["leads"].sum()) == 16


def test_findings_of_the_page(board):
    assert benchmarks.findings(board) == [
        "The best method by P@1 is not the best by PSP@1 in 11 of 21 tables; PfastreXML then leads PSP@1 most often, 6 times.",
        "The next method is less than half a point of P@1 behind in 8 of 21; the page prints no errors.",
        "In 12 tables with 9 printed training times or more the most precise row has 16 to 434 times the training time of the "
        "cheapest; it is the slowest in 0. The fastest ran on CPUs (*) in 12.",
        "In 12 tables with 9 printed model sizes or more the most precise row has 3 to 82 times the model size of the "
        "cheapest; it is the largest in 1.",
        "A method of 2021 or later stands in 16 tables and leads 16; the newest of the others is of 2019.",
    ]


def test_findings_of_one_table():
    said = benchmarks.findings(benchmarks.load_tables("bibtex"))
    assert said == [
        "SLEEC has the highest P@1, 0.48 points above ProXML; the page prints no errors.",
        "The best by PSP@1 is PfastreXML, over 14 rows that print both without doubt.",
        "No table here prints 2 rows with a training time.",
        "No table here prints 2 rows with a model size.",
        "A method of 2021 or later stands in 0 tables and leads 0; the newest of the others is of 2019.",
    ]


def test_parameters_are_checked_in_the_notebooks_names():
    benchmarks.check_parameters({"size": "small", "dataset": "", "sort_by": "train h"})
    with pytest.raises(ArgumentError, match="parameter dataset must have a benchmark table"):
        benchmarks.check_parameters({"size": "small", "dataset": "rcv1-2k", "sort_by": "P@1"})
    with pytest.raises(ArgumentError, match="parameter sort_by"):
        benchmarks.check_parameters({"size": "small", "dataset": "", "sort_by": "P@2"})


@pytest.mark.parametrize("dataset", ["bibtex", "eurlex-4k", "lf-amazon-131k"])  # the first prints no cost at all
def test_figures_of_one_table(dataset):
    """Title and legend inside the paper, and no figure without a panel."""
    rows = benchmarks.load_tables(dataset)
    least = benchmarks.least(rows)
    drawn = [benchmarks.plot_psp(benchmarks.compute_psp(rows), benchmarks.compute_agreement(rows))]
    for cost in benchmarks.COSTS.values():
        data = benchmarks.compute_costs(rows, cost)
        enough = len(benchmarks.compute_cost_of_best(data, cost, least)) > 0
        assert enough == (dataset != "bibtex")
        drawn += [benchmarks.plot_costs(data, cost, least)] if enough else []
    drawn.append(benchmarks.plot_years(benchmarks.compute_years(rows, benchmarks.publication_years(rows))))
    for figure in drawn:
        figure.draw_without_rendering()
        for part in (figure._suptitle, *figure.legends):
            box = part.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("dataset", ["lf-amazontitles-1.3m", "lf-wikiseealso-320k"])
def test_names_in_a_panel_do_not_overlap_and_no_line_strikes_them_through(dataset):
    rows = benchmarks.load_tables(dataset)
    figure = benchmarks.plot_costs(benchmarks.compute_costs(rows, "train h"), "train h")
    figure.draw_without_rendering()
    ax = figure.axes[0]
    boxes = [text.get_window_extent() for text in ax.texts if text.get_visible()]
    assert len(boxes) > 3
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    (front,) = (line for line in ax.lines if line.get_linestyle() == "-")
    x, y = ax.transData.transform(front.get_xydata()).T
    along = np.linspace(x.min(), x.max(), 20_000)
    across = np.interp(along, x, y)
    for box in boxes:
        inside = (along > box.x0) & (along < box.x1) & (across > box.y0) & (across < box.y1)
        assert not inside.any()
