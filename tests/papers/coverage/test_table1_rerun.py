"""Table 1 anew beside print, and training on the head against striking out the tail."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from xcrepro.papers.coverage import table1_rerun as item
from xcrepro.repro import figures


@pytest.fixture
def table(small, scores):
    return item.compute(small(), {"own": {2: item.only(scores, np.arange(4) < 2), 4: scores}})


def test_ours_stands_beside_the_printed_row(table):
    found = item.compare_with_printed(table).set_index(["metric", "k"])
    assert len(found) == 3 * 9
    assert found.loc[["PSP", "PSnDCG"], "printed kept"].isna().all()
    # Without label 2 the top 1 is label 0 in every row: right in two of three.
    assert found.loc[("P", 1)].tolist()[1:4] == pytest.approx([100, 200 / 3, 200 / 3])
    assert found.loc[("P", 1)].tolist()[4:] == ["93.0", "93.0", 100]
    assert found.loc[("coverage", 5)].tolist()[4:] == ["69.4", "7.5", pytest.approx(100 * 7.5 / 69.4)]
    assert found.loc[("nDCG", 1)].tolist()[4:6] == ["93.0", "58.1†"]
    assert "† doubted" in item.doubts(table)
    assert "N@1 and P@1" in item.doubts(table)


def test_the_mean_leaves_what_is_doubted_out_and_sorts(table):
    found = item.compute_mean_kept(item.compare_with_printed(table)).set_index("metric")
    assert found.loc["nDCG", "printed kept"] == pytest.approx(50 * (80.6 / 82.2 + 66.8 / 71.2))
    assert (np.diff(found["kept"]) <= 0).all()


def test_struck_out_compares_with_the_full_model_less_its_tail(small, scores):
    # Label 2 struck out of the full model leaves 0, 1 everywhere; the head's own model turns one row round.
    trained = sparse.csr_matrix([[0.9, 0.8, 0, 0], [0.2, 0.9, 0, 0], [0.3, 0.2, 0, 0]], dtype=np.float32)
    [row] = item.compute_struck_out(small(), {2: trained, 4: scores}, k=1).to_numpy().tolist()
    assert row == pytest.approx([2, 100 * 5 / 6, 100 * 2 / 3, 100 / 3, 200 / 3])


def test_the_figure_draws_the_first_model_and_no_doubted_value(table):
    both = pd.concat([table, table.assign(model="second", kept=1.0)], ignore_index=True)
    fig = item.plot(both)
    figures.held(fig, table)
    assert "own, and table 1 as printed" in fig.get_suptitle()
    assert table.loc[(table["metric"] == "nDCG") & (table["k"] == 1), "printed kept"].isna().all()
    with pytest.raises(figures.DrawingFault):
        figures.held(fig, table.assign(kept=table["kept"] / 2))


def test_findings_hold_p_against_the_averages_over_labels(small, scores):
    ds, model = small(40), sparse.csr_matrix(sparse.vstack([scores] * 40))
    found = {"own": {2: item.only(model, np.arange(4) < 2), 4: model}}
    said = item.findings(ds, found, item.compute(ds, found), 1)
    assert said[0].startswith("own, with 2 of 4 labels, keeps of its value (%, ± over test points): P@1 66.7 ± ")
    assert said[1].startswith("own: P@1 keeps a larger share than coverage@1 and the macro measures: clearly so in ")
    assert said[2].startswith("Printed, DiSMEC on AmazonCat-13K")
    # Without a head there is nothing to say of the model.
    assert len(item.findings(ds, {"own": {4: model}}, item.compute(ds, {"own": {4: model}}), 1)) == 1
