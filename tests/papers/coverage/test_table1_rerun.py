"""Table 1 anew beside print, and training on the head against striking out the tail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from xcrepro.papers.coverage import table1_rerun as item
from xcrepro.repro import figures


@pytest.fixture
def table(small, scores):
    return item.compute(small(), {2: item.only(scores, np.arange(4) < 2), 4: scores})


def test_ours_stands_beside_the_printed_row(table):
    found = item.compare_with_printed(table).set_index(["metric", "k"])
    assert len(found) == 3 * 9
    assert found.loc[["PSP", "PSnDCG"], "printed kept"].isna().all()
    # Without label 2 the top 1 is label 0 in every row: right in two of three.
    assert found.loc[("P", 1)].tolist() == pytest.approx([100, 200 / 3, 200 / 3, 93.0, 93.0, 100])
    assert found.loc[("coverage", 5)].tolist()[3:] == pytest.approx([69.4, 7.5, 100 * 7.5 / 69.4])


def test_the_mean_leaves_the_misprint_out_and_sorts(table):
    found = item.compute_mean_kept(item.compare_with_printed(table)).set_index("metric")
    assert found.loc["nDCG", "printed kept"] == pytest.approx(50 * (80.6 / 82.2 + 66.8 / 71.2))
    assert (np.diff(found["kept"]) <= 0).all()


def test_what_is_checked_has_a_column_a_number_of_labels_and_not_what_a_single_label_moves(table):
    found = item.check_kept(table).set_index(["metric", "k"])
    assert list(found) == ["2", "4"]
    assert found.loc[("P", 1)].tolist() == pytest.approx([200 / 3, 100])
    assert "alpha-coverage" in set(table["metric"]) - set(found.index.get_level_values("metric"))


def test_struck_out_compares_with_the_full_model_less_its_tail(small, scores):
    # Label 2 struck out of the full model leaves 0, 1 everywhere; the head's own model turns one row round.
    trained = sparse.csr_matrix([[0.9, 0.8, 0, 0], [0.2, 0.9, 0, 0], [0.3, 0.2, 0, 0]], dtype=np.float32)
    [row] = item.compute_struck_out(small(), {2: trained, 4: scores}, k=1).to_numpy().tolist()
    assert row == pytest.approx([2, 100 * 5 / 6, 100 * 2 / 3, 100 / 3, 200 / 3])


def test_the_figure_draws_the_table_and_says_what_is_kept(table):
    fig = item.plot(table)
    figures.held(fig, table)
    kept = item.compare_with_printed(table).set_index(["metric", "k"])["kept"]
    assert f"Trained on 2 of 4 labels, P@5 keeps {kept['P', 5]:.0f} %" in fig.get_suptitle()
    with pytest.raises(figures.DrawingFault):
        figures.held(fig, table.assign(kept=table["kept"] / 2))
