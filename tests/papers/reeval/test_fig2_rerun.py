"""Figure 2, rerun: macro-F1 label by label, leads, and where the paper's values are drawn."""

from __future__ import annotations

import pytest

from tests import naive
from xcrepro.errors import ArgumentError
from xcrepro.papers.reeval import fig2_rerun as fig2
from xcrepro.repro import figures


def test_bars_and_leads(loaded, tops, twin):
    bars = fig2.compute(loaded, tops, [5]).set_index(["metric", "method"])["value"]
    for name, top in tops["EURLex-4K"].items():
        assert bars["macro_F1", name] == pytest.approx(100 * naive.label_f1(twin.test.Y, top, 5).mean())
    leads = fig2.compute_leads(loaded, tops, [5], samples=40).set_index(["metric", "method"])
    assert set(leads.index) == {(m, n) for m in ("micro_F1", "macro_F1") for n in ("noisy", "head")}
    for key, row in leads.iterrows():
        assert row["difference"] == pytest.approx(bars[key] - bars[key[0], "SVM"])
    # Without rare labels macro-F1 must fall by more than the choice of points.
    assert leads.loc[("macro_F1", "head"), "high"] < 0


def test_printed_values_stand_at_the_papers_k_only(loaded, tops):
    bars = fig2.compute(loaded, tops, [5])
    assert bars.set_index("method").loc["SVM", "printed"].tolist() == [57.37, 17.89]
    assert bars["printed"].notna().sum() == 2
    assert fig2.compute(loaded, tops, [3])["printed"].isna().all()
    assert list(fig2.check(bars)) == [*fig2.KEYS, "value"]
    figure = fig2.plot(bars)
    figures.held(figure, bars)
    with pytest.raises(figures.DrawingFault):
        figures.held(figure, bars.assign(printed=0.0))


def test_ks_and_baseline_are_checked(loaded, tops):
    with pytest.raises(ArgumentError, match="ks"):
        fig2.compute(loaded, tops, [5, 19])
    with pytest.raises(ArgumentError, match="baseline"):
        fig2.compute_leads(loaded, tops, [5], baseline="BERT")
