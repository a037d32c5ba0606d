"""Figure 2, rerun: macro-F1 label by label, leads, findings on planted models, and where the paper's values are drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests import naive
from xcrepro.errors import ArgumentError, DataMissing
from xcrepro.findings import Measured
from xcrepro.papers.reeval import _common
from xcrepro.papers.reeval import fig2_rerun as fig2
from xcrepro.repro import figures


@pytest.fixture(scope="module")
def measured(loaded, tops):
    return fig2.measure(loaded, tops, [5])


def test_bars_and_leads(measured, tops, twin):
    table = fig2.compute(measured)
    bars = table.set_index(["metric", "method"])["value"]
    for name, top in tops["EURLex-4K"].items():
        assert bars["macro_F1", name] == pytest.approx(100 * naive.label_f1(twin.test.Y, top, 5).mean())
    assert (table["error"] > 0).all()
    leads = fig2.compute_leads(measured).set_index(["metric", "method"])
    assert set(leads.index) == {(m, n) for m in ("micro_F1", "macro_F1") for n in ("noisy", "head")}
    for key, row in leads.iterrows():
        assert row["difference"] == pytest.approx(bars[key] - bars[key[0], "SVM"])
    # Without rare labels macro-F1 must fall by more than the choice of points.
    assert leads.loc[("macro_F1", "head"), "verdict"] == "below"


def test_printed_values_stand_at_the_papers_k_only(loaded, tops, measured):
    bars = fig2.compute(measured)
    assert bars.set_index("method").loc["SVM", "printed"].tolist() == [57.37, 17.89]
    assert bars["printed"].notna().sum() == 2
    assert fig2.compute(fig2.measure(loaded, tops, [3]))["printed"].isna().all()
    figure = fig2.plot(bars)
    figures.held(figure, bars)
    with pytest.raises(figures.DrawingFault):
        figures.held(figure, bars.assign(printed=0.0))


def test_ks_and_baseline_are_checked(loaded, tops, measured):
    with pytest.raises(ArgumentError, match="ks"):
        fig2.measure(loaded, tops, [5, 19])
    with pytest.raises(ArgumentError, match="baseline"):
        fig2.compute_leads(measured, baseline="BERT")


def planted(*models):
    """Both averages of models with values around a mean: name, mean by micro, mean by macro."""
    noise = np.linspace(-0.1, 0.1, 20)
    return {
        metric: Measured({m[0]: m[at] for m in models}, {m[0]: m[at] + noise * i for i, m in enumerate(models)})
        for at, metric in ((1, "micro_F1"), (2, "macro_F1"))
    }


def test_findings_say_who_leads_and_when_nobody_does():
    two = {("Own", 3): planted(("SVM", 50.0, 20.0), ("A", 60.0, 10.0))}
    first, micro, macro = fig2.findings(two)
    assert first.startswith("Own: A leads micro-F1@3, by 10.0")
    assert "SVM leads macro-F1@3" in first
    assert first.endswith("The two averages name two models.")
    assert "in micro-F1: clearly so" in micro
    assert "in macro-F1: clearly the other way round" in macro
    level = {("Own", 3): planted(("SVM", 50.0, 20.0), ("A", 50.01, 20.01))}
    said = fig2.findings(level)
    assert "no clear leader in micro-F1@3" in said[0]
    assert "The two averages" not in said[0]
    # What the paper prints stands at its k alone, beside its dataset.
    assert "The paper prints APLC-XLNet as best by micro-F1" in fig2.findings({("EURLex-4K", 5): two["Own", 3]})[0]
    assert "paper" not in fig2.findings({("EURLex-4K", 4): two["Own", 3]})[0]


def test_one_model_alone(loaded, tops):
    alone = fig2.measure(loaded, {"EURLex-4K": {"SVM": tops["EURLex-4K"]["SVM"]}}, [4])
    [said] = fig2.findings(alone)
    assert "of SVM alone" in said
    assert fig2.compute_leads(alone).empty
    table = fig2.compute(alone)
    figures.held(fig2.plot(table), table)


# ---------------------------------------------------------------- parameters


def values(**changed):
    base = {"size": "small", "names": ["bibtex"], "scales": [], "ks": [], "models": ["SVM", "PLT"], "baseline": "SVM"}
    return base | {"max_leaf": 10, "seed": 0, "folder": "", "predictions": ""} | changed


def test_parameters_are_checked_before_anything_runs(tmp_path):
    fig2.check_parameters(values())
    for changed, words in (
        ({"ks": [5, 19]}, "parameter ks must be one for each of names, 1"),
        ({"models": ["SVM", "BERT"]}, "parameter models"),
        ({"models": ["SVM", "SVM"]}, "parameter models must hold nothing twice"),
        ({"models": []}, "parameter models must name one at least"),
        ({"baseline": "Logistic"}, "parameter baseline must be one of the models"),
        ({"max_leaf": 1}, "parameter max_leaf"),
        ({"costs": [0.0]}, "parameter costs"),
    ):
        with pytest.raises(ArgumentError, match=words):
            fig2.check_parameters(values(**changed))
    with pytest.raises(DataMissing, match="bibtex is no folder"):
        fig2.check_parameters(values(predictions=str(tmp_path)))


def test_the_baseline_may_be_a_saved_model(tmp_path):
    (tmp_path / "bibtex").mkdir()
    (tmp_path / "bibtex" / "mine.v2.npz").touch()
    fig2.check_parameters(values(predictions=str(tmp_path), baseline="mine.v2", models=[]))
    with pytest.raises(ArgumentError, match="parameter baseline must be one"):
        fig2.check_parameters(values(predictions=str(tmp_path), baseline="mine"))


def test_no_ks_are_the_mean_number_of_labels(loaded, twin):
    assert _common.places(loaded, []) == [round(twin.train.Y.nnz / twin.n_train)] == [5]
    assert _common.places(loaded, [3]) == [3]


def test_one_bar_stands_in_the_middle_and_is_not_called_the_highest():
    row = {"dataset": "Bibtex", "k": 2, "method": "PLT", "value": 40.0, "error": 1.0}
    table = pd.DataFrame([{"metric": metric, **row} for metric in ("micro_F1", "macro_F1")])
    fig = fig2.plot(table, twin=False)
    assert fig.get_suptitle() == "Micro-F1 above, macro-F1 below (whiskers: two standard errors)"
    assert sum(fig.axes[0].get_xlim()) == pytest.approx(0)
    table = pd.concat([table, table.assign(method=["SVM", "SVM"], value=30.0, error=np.nan)]).assign(error=np.nan)
    assert fig2.plot(table).get_suptitle() == "Micro-F1 above, macro-F1 below (bold: the highest)"
