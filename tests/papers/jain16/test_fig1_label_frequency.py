"""Fig. 1: ranks by hand, and the caption's numbers as the paper prints them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.inputs.longtail import Tail
from xcrepro.papers.jain16 import fig1_label_frequency as fig1


def test_a_staircase_by_hand():
    table = fig1.compute([Tail("a", np.array([1, 7, 0, 3, 1, 3]), True), Tail("b", np.array([2]), False)])
    assert table["dataset"].tolist() == ["a", "a", "a", "b"]
    assert table["count"].tolist() == [7, 3, 1, 2]
    assert table["rank"].tolist() == [1, 3, 5, 1]
    assert table["rank %"].tolist() == [20, 60, 100, 100]


def test_rare_labels_by_hand():
    counts = np.r_[np.full(2, 100), np.full(198, 4), 0, 5]
    row = fig1.compute_rare([Tail("a", counts, True)]).iloc[0]
    assert (row["labels"], row["under 5 points"]) == (202, 199)
    assert row["% of labels under 5"] == pytest.approx(100 * 199 / 202)
    assert row["% of pairs in the top 1 % of labels"] == pytest.approx(100 * 200 / 997)


def test_the_legend_says_what_the_table_says():
    tails = [Tail(name, np.array(counts), True) for name, counts in (("a", [9, 5, 4, 1, 0]), ("b", [7]), ("c", [2, 4]))]
    fig = fig1.plot(fig1.compute(tails), fig1.compute_rare(tails))
    assert [text.get_text() for text in fig.legends[0].texts] == ["a: 60 %", "b: 0 %", "c: 100 %"]


def test_the_counted_datasets_come_once():
    bibtex = Tail("Bibtex", np.array([3, 1]), True)
    found = fig1.with_counted([bibtex])
    assert [tail.name for tail in found] == ["Bibtex", "EURLex-4K"]
    assert found[0] is bibtex
    assert len(fig1.with_counted([Tail("Bibtex, twin", np.array([3]), False)])) == 3


def test_a_power_law_has_one_slope_and_a_broken_one_has_more():
    rank = np.arange(1, 100_001)
    law = 10_000_000 // rank
    found = fig1.compute_slopes(fig1.compute([Tail("law", law, True)])).iloc[0]
    assert found[fig1.SLOPES].tolist() == pytest.approx([1, 1, 1], abs=0.01)
    broken = np.where(rank > 10_000, law // np.maximum(rank // 10_000, 1) ** 2 + 1, law)
    slopes = fig1.compute_slopes(fig1.compute([Tail("broken", broken, True)]))
    assert slopes[fig1.SLOPES[-1]].item() > 2
    tails = [Tail("law", law, True)], [Tail("broken", broken, True)]
    said = [
        fig1.findings(fig1.compute_rare(t), fig1.compute_slopes(fig1.compute(t)), fig1.compute_printed())[0]
        for t in tails
    ]
    assert [text.endswith("about one power law.") for text in said] == [True, False]
    assert said[1].endswith("not one power law.")
    alone = [Tail("one", np.array([7]), True)]
    assert fig1.findings(
        fig1.compute_rare(alone), fig1.compute_slopes(fig1.compute(alone)), fig1.compute_printed()
    ) == ["one: 0.0 % of the 1 labels have fewer than 5 points; the most frequent 1 % carry 100 % of the pairs."]


def test_the_caption_is_held_to_real_data_of_its_size():
    printed = fig1.compute_printed()
    rare = pd.DataFrame([("Amazon-670K", 670_091, 452_262, 67.5, 20.0)], columns=[*fig1.COLUMNS, fig1.TOP])
    slopes = pd.DataFrame([("Amazon-670K", 1.0, 1.0, 1.0)], columns=["dataset", *fig1.SLOPES])
    assert fig1.findings(rare, slopes, printed)[1].endswith("452,262 labels with fewer than 5: the same.")
    assert fig1.findings(rare.assign(**{"under 5 points": 9}), slopes, printed)[1].endswith("not the same, 9 here.")


def test_the_caption_as_printed():
    table = fig1.compute_printed().set_index("dataset")
    assert table.loc["WikiLSHTC-325K"].tolist() == [325_056, 246_201, pytest.approx(75.7, abs=0.05)]
    assert table.loc["Amazon-670K"].tolist() == [670_091, 452_262, pytest.approx(67.5, abs=0.05)]
