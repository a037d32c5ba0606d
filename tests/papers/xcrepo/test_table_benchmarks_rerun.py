"""What the rerun of the benchmark table says of a difference, against slow or hand-worked answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from xcrepro import load, metrics, twin
from xcrepro.findings import Measured
from xcrepro.inputs import baselines
from xcrepro.papers.xcrepo import table_benchmarks_rerun as rerun
from xcrepro.predictions import TopK


@pytest.fixture(scope="module")
def ds():
    return twin("eurlex-4k", scale=0.02, seed=0)


@pytest.fixture(scope="module")
def tops(ds):
    """The best labels there are, and the same with noise."""
    chances = ds.test.observed_marginals
    noisy = chances.copy()
    noisy.data = noisy.data * np.random.default_rng(0).random(noisy.data.size).astype(np.float32)
    return {"FastXML": TopK.from_scores(chances, 5), "mine": TopK.from_scores(noisy, 5)}


def measured(**values):
    """P@1 and the rest of one system each: a mean, and what 20 blocks leave around it."""
    wave = np.resize([-0.01, 0.01], 20)
    left = {name: value + wave * (1 + i) for i, (name, value) in enumerate(values.items())}
    return dict.fromkeys(rerun.COLUMNS, Measured(values, left))


def test_printed_rows_are_the_first_method_the_table_has(ds):
    rows = rerun.printed_rows(ds)
    assert set(rows[rows["model"] == "1-vs-All"]["method"]) == {"DiSMEC"}
    value = rows[(rows["model"] == "Parabel") & (rows["metric"] == "nDCG") & (rows["k"] == 3)]["printed"]
    assert value.tolist() == ["72.17"]
    bibtex = rerun.printed_rows(twin("bibtex", scale=0.05))
    assert set(bibtex[bibtex["model"] == "1-vs-All"]["method"]) == {"1-vs-All"}
    assert "DiSMEC" not in set(bibtex["model"])  # a row of dashes there
    assert rerun.printed_rows(twin("orcas-800k", scale=0.0005)).empty


def test_what_the_audit_doubts_is_marked(ds):
    rows = rerun.printed_rows(ds).set_index(["model", "metric", "k"])["doubt"]
    assert rows["FastXML", "PSP", 1] == "†"
    assert rows["FastXML", "P", 1] == rows["Parabel", "PSP", 1] == ""
    page = rerun.compute_page(ds).set_index("method")
    assert page.loc["PfastreXML *", ["P@1", "PSP@1"]].tolist() == ["71.36", "26.62†"]
    assert rerun.compute_page(twin("orcas-800k", scale=0.0005)).empty


def test_ties_to_the_highest_id():
    top = TopK.from_ids([[1, 2, 5], [0, 3, -1]], scores=[[0.5, 0.5, 0.1], [0.9, 0.2, 0.0]], n_labels=6)
    assert rerun.ties_to_highest(top).ids.tolist() == [[2, 1, 5], [0, 3, -1]]


def test_errors_are_those_of_the_metrics_without_a_block(ds, tops):
    found = rerun.measure(ds, tops)
    for column, metric in (("P@3", metrics.precision), ("nDCG@3", metrics.ndcg)):
        slow = Measured.of_rows(lambda Y, top, metric=metric: 100 * metric(Y, top, (3,))[0], ds.test.Y, tops)
        for name in tops:
            assert found[column].values[name] == pytest.approx(slow.values[name])
            assert found[column].error(name) == pytest.approx(slow.error(name))
    table = rerun.compute_errors(found).set_index("model")
    assert table.loc["mine", "P@3"] == found["P@3"].error("mine")


def test_jackknife_of_a_mean_is_its_standard_error(ds):
    # One row a block: the jackknife of a mean is the usual standard error, s / sqrt(n).
    rng = np.random.default_rng(0)
    Y = csr_matrix((rng.random((20, 6)) < 0.4).astype(np.float32))
    top = TopK.from_scores(rng.random((20, 6)), 5)
    hits = 100 * np.asarray(Y.todense())[np.arange(20), top.ids[:, 0]]
    found = Measured.of_rows(lambda truth, some: 100 * metrics.precision(truth, some, (1,))[0], Y, {"a": top})
    np.testing.assert_allclose(found.error("a"), hits.std(ddof=1) / np.sqrt(20))


@pytest.mark.parametrize(
    ("difference", "split", "ties", "shift", "reason"),
    [
        (0.004, 0, 0, 0, "equal"),
        (-1.0, 1.5, 0, 0, "split"),
        (1.0, 0.5, 1.0, 0, "ties"),
        (4.0, 3.0, 0.0, -6.0, "definition"),
        (4.0, 3.0, 0.0, 6.0, "more"),  # the other definition lies further away
        (4.0, 1.0, 0.0, -9.0, "more"),
        (4.0, 1.0, 1.0, 0.0, "more"),
    ],
)
def test_reasons(difference, split, ties, shift, reason):
    assert rerun._reason(difference, split, ties, shift) == reason


NOTHING = pd.DataFrame(columns=["model", "method", "metric", "k", "printed", "doubt"])


def test_orders_see_what_does_not_hold():
    found = measured(Popularity=10.0, FastXML=50.0, PfastXML=40.0, PfastreXML=40.001)
    table = rerun.compute_orders(found, NOTHING).set_index(["order", "metric"])
    assert table.loc[("all > Popularity", "P@1"), ["left", "right", "holds"]].tolist() == [40.0, 10.0, "yes"]
    assert table.loc[("PfastXML > FastXML", "PSP@1"), "holds"] == "no"
    assert table.loc[("PfastreXML > PfastXML", "PSP@5"), "holds"] == "not clear"
    assert ("DiSMEC > Parabel", "P@1") not in table.index
    text = rerun.findings_orders(table.reset_index())
    assert "6 of them: clearly so 2, clearly the other way round 2 (PfastXML > FastXML in PSP@1" in text


def test_orders_beside_the_page_leave_out_what_is_doubted(ds):
    found = measured(Parabel=80.0, FastXML=75.0, PfastreXML=60.0)
    table = rerun.compute_orders(found, rerun.printed_rows(ds)).set_index(["order", "metric"])["printed"]
    assert table["Parabel > FastXML", "P@1"] == pytest.approx(82.25 - 76.37)
    assert np.isnan(table["Parabel > FastXML", "PSP@5"])


def test_findings_of_one_model_and_no_printed_row():
    found = measured(PLT=50.0)
    said = rerun.findings(found, rerun.compute_orders(found, NOTHING), NOTHING)
    assert said[0] == "P@1 of PLT alone: 50.00 ± 0.04 points."
    assert said[-1] == "No printed row of the dataset stands for a model of this run."
    assert len(said) == 3
    drawn = rerun.plot(rerun.compute(found, NOTHING), twin=False)
    assert drawn.get_suptitle() == "P and PSP at 1 and 5 of PLT"
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["ours ± 2 standard errors"]
    assert drawn.axes[0].get_lines()[0].get_ydata().tolist() == [0.0]  # on its line: nothing stands below it


def test_findings_name_a_leader_only_where_there_is_one():
    clear, close = measured(PLT=50.0, FastXML=40.0), measured(PLT=50.0, FastXML=49.999)
    assert rerun.findings(clear, rerun.compute_orders(clear, NOTHING), NOTHING)[0].startswith("PLT leads P@1")
    assert rerun.findings(close, rerun.compute_orders(close, NOTHING), NOTHING)[0].startswith("No clear leader")


def test_own_predictions_are_held_to_the_best_baseline_and_to_no_printed_row(ds, tops):
    found = rerun.measure(ds, tops)
    said = rerun.findings_own(found, ["mine"])
    assert len(said) == 1
    assert said[0].startswith("mine against the best baseline: P@1 -")
    assert said[0].count("points from FastXML (") == 4
    assert rerun.findings_own(found, list(tops)) == []
    assert set(rerun.compute_printed(ds, tops, found)["model"]) == {"FastXML"}
    assert rerun.compute_printed(ds, tops, found, given=["FastXML"]).empty


def test_a_doubted_value_explains_nothing(ds, tops):
    found = rerun.measure(ds, tops)
    compared = rerun.compute_printed(ds, tops, found)
    assert set(compared[compared["doubt"] == "†"]["explained by"]) == {"doubted"}
    said = rerun.findings(found, rerun.compute_orders(found, rerun.printed_rows(ds)), compared)
    assert said[-1].startswith("Of 6 numbers with a printed value")
    assert "6 more stand beside a value that the audit doubts" in said[-1]
    labels = [text.get_text() for text in rerun.plot(rerun.compute(found, compared), twin=True).legends[0].get_texts()]
    assert set(labels) == {"ours ± 2 standard errors", "printed (real data)", "printed (real data), † doubted"}


def test_bibtex_meets_the_printed_rows(real_data):
    """1-vs-All and Parabel on real data within 1.5 points in all 24 cells; FastXML's family in tests/models."""
    ds = load("bibtex", real_data("bibtex"))
    models = {name: baselines.recipe(name, ds).fit(ds.train.X, ds.train.Y) for name in ("1-vs-All", "Parabel")}
    tops = {name: model.predict(ds.test.X, 5) for name, model in models.items()}
    compared = rerun.compute_printed(ds, tops, rerun.measure(ds, tops))
    assert len(compared) == 24
    assert compared["difference"].abs().max() < 1.5


def test_one_order_is_said_in_the_singular():
    row = {"order": "all > Popularity", "metric": "P@1", "holds": "yes", "printed": np.nan, "difference": 40.0}
    assert rerun.findings_orders(pd.DataFrame([row])) == (
        "The one order here that is said to hold, all > Popularity in P@1: clearly so (p < 0.05)."
    )
