"""Fig. 1: ranks by hand, and the caption's numbers as the paper prints them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from xcrepro.data import registry, twin
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


def test_expected_labels_are_poisson_sums():
    """By scipy's distribution, and against a twin that is drawn with its points, which scatters more."""
    printed = fig1.compute_printed()
    table = fig1.compute_expected(["eurlex-4k", "mine", "amazon-670k"], [0.2, 1.0, 1.0], printed).set_index("dataset")
    assert list(table.index) == ["EURLex-4K", "Amazon-670K"]  # "mine" is in no catalogue
    for name, scale in (("EURLex-4K", 0.2), ("Amazon-670K", 1.0)):
        expected = twin.expected_observed_counts(name, scale)
        few = stats.poisson.cdf(4, expected) - stats.poisson.pmf(0, expected)
        assert table.loc[name, "under 5 points"] == pytest.approx(few.sum())
        assert table.loc[name, "±"] == pytest.approx(np.sqrt((few * (1 - few)).sum()))
        assert table.loc[name, "labels"] == pytest.approx(stats.poisson.sf(0, expected).sum())
    drawn = twin.twin("eurlex-4k", 0.2).label_counts
    assert table.loc["EURLex-4K", "labels"] == pytest.approx(drawn.size, rel=0.08)
    assert table.loc["EURLex-4K", "under 5 points"] == pytest.approx((drawn < 5).sum(), rel=0.08)
    assert table.loc["EURLex-4K", ["caption", "above caption", "at its rank"]].isna().all()
    row = table.loc["Amazon-670K"]
    assert row["caption"] == 452_262
    assert row["above caption"] == pytest.approx(100 * (row["under 5 points"] - 452_262) / 452_262)
    assert row["at its rank"] == twin.expected_observed_counts("amazon-670k")[670_091 - 452_262 - 1]
    assert fig1.compute_expected(["amazon-670k"], [0.5], printed)["caption"].isna().all()
    said = fig1.findings_expected(table.reset_index())
    assert len(said) == 1
    assert "% more than the caption's 452,262. By the caption the label at rank 217,829 is the last with 5" in said[0]


def test_no_head_brings_amazon_to_its_caption():
    """What the notebook says of it: a smaller share of the most frequent label leaves the tail too long."""
    entry = registry.get("amazon-670k")
    for head in (1e-3, 1e-4):
        expected = twin._expected(entry, dataclasses.replace(entry.twin, head=head))
        assert stats.poisson.cdf(4, expected).sum() - stats.poisson.pmf(0, expected).sum() > 1.1 * 452_262
    enough = stats.poisson.sf(4, twin._expected(entry, entry.twin)).sum()
    assert enough == pytest.approx((670_091 - 452_262) / 2, rel=0.15)  # labels with five or more: half


def test_what_a_run_is_made_from():
    tails, made = fig1.load(["amazon-670k", "bibtex"], "small", [0.01, 1.0], 3, "")
    assert [(tail.name, tail.real, tail.whole) for tail in tails] == [
        ("Amazon-670K, twin", False, False),
        ("Bibtex, twin", False, True),
        ("EURLex-4K", True, True),
        ("Bibtex", True, True),
    ]
    assert made == [
        "label counts drawn as of synthetic twins of Amazon-670K × 0.01 and Bibtex × 1.0 (seed 3)",
        "label counts of EURLex-4K and Bibtex (real data)",
    ]
    other = fig1.load(["amazon-670k"], "small", [0.01], 4, "")[0][0]
    assert other.counts.tolist() != tails[0].counts.tolist()
