"""Figs 17 to 19 from print: what their titles say, ranks against SciPy, and marks at corrected cells."""

from __future__ import annotations

import pytest
from scipy.stats import spearmanr

from xcrepro.papers.calibration import fig17_to_19


@pytest.fixture(scope="module")
def table():
    return fig17_to_19.compute()


def test_the_claims_bear_the_titles_out(table):
    assert len(table) == 2 * 3 * 3 * 5 * 2
    claims = fig17_to_19.compute_claims(table)
    ece = claims[claims["metric"] == "ECE"].set_index(["dataset", "k"])["rank corr. before"]
    assert (ece["EURLex-4K"] > 0).all()
    assert (ece["Amazon-670K"] < 0).all()
    assert "no ECE@1 is above 1.19 %" in fig17_to_19.plot(table, 1).get_suptitle()


def test_rank_correlation_is_spearmans(table):
    claims = fig17_to_19.compute_claims(table).set_index(["dataset", "metric", "k"])
    # two of the five are tied
    after = table.query("dataset == 'Amazon-670K' and metric == 'ACE' and k == 1 and variant == 'isotonic'")
    wanted = spearmanr(after["P"], after["value"]).statistic
    assert claims.loc[("Amazon-670K", "ACE", 1), "rank corr. after"] == pytest.approx(wanted)


def test_corrected_cells_are_marked_where_they_are_drawn(table):
    corrected = table[(table["k"] == 3) & (table["reading"] != "as printed")]
    texts = [text for ax in fig17_to_19.plot(table, 3).axes for text in ax.texts if text.get_text() == "c"]
    assert sorted(text.xy for text in texts) == sorted(zip(corrected["P"], corrected["value"], strict=True))
    assert texts
