"""Figs 17 to 19 from print: what is found in them, ranks against SciPy, and marks at corrected cells."""

from __future__ import annotations

import pytest
from scipy.stats import spearmanr

from xcrepro.papers.calibration import fig17_to_19


@pytest.fixture(scope="module")
def table():
    return fig17_to_19.compute()


def test_findings_are_counts_and_no_relation_of_five_models(table):
    assert len(table) == 2 * 3 * 3 * 5 * 2
    said = fig17_to_19.findings(table)
    assert "ECE in 28 of 28" in said[0]
    assert said[1].startswith("The largest ECE after it: 1.19 % on EURLex-4K")
    assert "no clear relation in any of 6 cases" in said[3]
    assert "none could be" in said[3]
    assert f"{(table['reading'] != 'as printed').sum()} cells" in said[-1]


def test_an_error_that_rises_is_counted(table):
    first = table.index[(table["metric"] == "ECE") & (table["variant"] == "isotonic")][0]
    table = table.copy()
    table.loc[first, "value"] = 99.0
    said = fig17_to_19.findings(table)
    assert "ECE in 27 of 28" in said[0]
    assert "99.00 %" in said[1]


def test_rank_correlation_is_spearmans(table):
    claims = fig17_to_19.compute_claims(table).set_index(["dataset", "metric", "k"])
    # two of the five are tied
    after = table.query("dataset == 'Amazon-670K' and metric == 'ACE' and k == 1 and variant == 'isotonic'")
    wanted = spearmanr(after["P"], after["value"]).statistic
    assert claims.loc[("Amazon-670K", "ACE", 1), "rank corr. after"] == pytest.approx(wanted)


def test_corrected_cells_are_marked_where_they_are_drawn(table):
    corrected = table[(table["k"] == 3) & (table["reading"] != "as printed")]
    texts = [text for ax in fig17_to_19.plot(table, 3).axes for text in ax.texts if text.get_text() == "†"]
    assert sorted(text.xy for text in texts) == sorted(zip(corrected["P"], corrected["value"], strict=True))
    assert texts
