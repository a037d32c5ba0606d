"""Fig. 1: ranks by hand, and the caption's numbers as the paper prints them."""

from __future__ import annotations

import numpy as np
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


def test_the_title_counts_labels_under_five_points():
    tails = [Tail("a", np.array([9, 5, 4, 1, 0]), True), Tail("b", np.array([7]), False)]
    assert fig1._few(fig1.compute(tails)) == "a 50 %, b 0 %"


def test_the_caption_as_printed():
    table = fig1.compute_printed().set_index("dataset")
    assert table.loc["WikiLSHTC-325K"].tolist() == [325_056, 246_201, pytest.approx(75.7, abs=0.05)]
    assert table.loc["Amazon-670K"].tolist() == [670_091, 452_262, pytest.approx(67.5, abs=0.05)]
