"""Tables 3 and 4 with our models: ratios worked by hand, planted orders, and the paper's cells."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro import metrics
from xcrepro.findings import Measured
from xcrepro.papers.jain16 import table3_table4_rerun as rerun
from xcrepro.propensity import inverse


def test_scores_are_the_papers_ratios(small, tops):
    w = inverse([5, 3, 1, 0], 6, 0.55, 1.5)
    found = rerun.compute(small, tops).set_index("model")
    # Place 1. The best rankings show label 1, label 2 and label 0.
    assert found.loc["head", "P1"] == pytest.approx(100 * 2 * w[0] / (w[1] + w[2] + w[0]))
    assert found.loc["tail", "P1"] == pytest.approx(100 * (w[1] + w[2]) / (w[1] + w[2] + w[0]))
    assert (found["N1"] == found["P1"]).all()
    # Three places: nDCG's ideal has the rarer label first, whatever the number of labels of the point. The third miss.
    second = 1 / math.log2(3)
    best = (w[1] + w[0] * second) + (w[2] + w[1] * second) + w[0]
    assert found.loc["head", "N3"] == pytest.approx(100 * (w[0] + w[1] * second + w[0]) / best)
    assert found.loc["tail", "N3"] == pytest.approx(100 * (w[1] + w[0] * second + w[2]) / best)
    # Coverage: three labels can be covered at once in one place a point; label 0, and labels 1 and 2, are.
    assert found["C1"].tolist() == pytest.approx([100 / 3, 200 / 3])
    assert found["P1 printed"].isna().all()  # the paper has no such dataset


def test_a_twins_columns_have_their_estimand_beside_them(twin, top, small, tops):
    table = rerun.compute(twin, {"one": top})
    exact = metrics.precision(twin.test.Y_complete, top, (1, 3, 5))
    ndcg = metrics.ndcg(twin.test.Y_complete, top, (1, 3, 5), ideal="k")
    for letter, values in (("P", exact), ("N", ndcg)):
        for k, value in zip((1, 3, 5), values, strict=True):
            assert table[f"{letter}{k} complete"].item() == pytest.approx(100 * value)
            assert table.columns.get_loc(f"{letter}{k} complete") == table.columns.get_loc(f"{letter}{k}") + 1
    scored, rest = rerun.split(table)
    assert [len(scored.columns), list(rest)] == [13, ["model", "C1", "C3", "C5"]]  # nothing is printed
    assert not [name for name in rerun.compute(small, tops) if "complete" in name]  # of real data nobody knows it


def test_claims_count_columns_and_know_noise(make_dataset):
    """A model that hits in every point against one that never does, and against its own copy."""
    labels = np.random.default_rng(0).integers(0, 6, 60)
    ds = make_dataset(np.eye(6)[labels], np.eye(6)[labels])
    ids = np.array([[label, *(j for j in range(6) if j != label)] for label in labels])
    right = xc.TopK.from_ids(ids, n_labels=6)
    wrong = xc.TopK.from_ids(np.roll(ids, -1, axis=1), n_labels=6)  # the label comes last, beyond five places

    def claims(**tops):
        measured, none = rerun.measure(ds, tops), rerun.compute_printed(ds)
        return rerun.compute_claims(measured, rerun.compute(ds, tops), none).set_index("claim")

    table = claims(FastXML=wrong, PfastXML=right, PfastreXML=right)
    assert len(table) == 2  # no 1-vs-All, DiSMEC or PLT among the models
    nodes, ranked = (table.loc[name] for name in ("propensities in the nodes help", "re-ranking helps on top"))
    assert nodes[["above", "below", "not clear"]].tolist() == [5, 0, 0]
    assert nodes[["least", "largest", "C1", "C5"]].tolist() == pytest.approx([100] * 4)
    assert ranked[["above", "below", "not clear", "printed above", "printed"]].tolist() == [0, 0, 5, 0, 0]
    assert claims(FastXML=right, PfastXML=wrong)["below"].tolist() == [5]


def _run(ds, tops, models):
    found, measured, paper = rerun.compute(ds, tops), rerun.measure(ds, tops), rerun.compute_printed(ds)
    claims, own = rerun.compute_claims(measured, found, paper), rerun.compute_own(measured, models)
    said = rerun.findings(found, measured, claims, rerun.compare_with_printed(found, paper), own)
    return found, measured, own, said


def test_findings_follow_the_run(make_dataset):
    """A clear lead, none, one model, own predictions; a dataset that the paper has, and one that it has not."""
    labels = np.random.default_rng(0).integers(0, 6, 60)
    truth = np.eye(6)[labels]
    ids = np.array([[label, *(j for j in range(6) if j != label)] for label in labels])
    right = xc.TopK.from_ids(ids, n_labels=6)
    wrong = xc.TopK.from_ids(np.roll(ids, -1, axis=1), n_labels=6)
    ds, known = make_dataset(truth, truth), make_dataset(truth, truth, name="eurlex-4k@0.1-seed0")
    *_, said = _run(known, {"PfastXML": right, "FastXML": wrong}, ["PfastXML", "FastXML"])
    assert said[0].startswith("PfastXML leads P1 (PSP@1), by 100.0 ± 0.0 points over FastXML")
    assert "clearly so in all 5 comparisons (N3 to P5); in print it is above in 5 of 5." in " ".join(said)
    assert "Ours minus print" in " ".join(said)
    *_, said = _run(ds, {"PLT": right, "FastXML": right}, ["PLT", "FastXML"])
    assert said[0].startswith("No clear leader in P1 (PSP@1)")
    assert "print" not in " ".join(said)
    found, measured, own, said = _run(ds, {"PLT": right}, ["PLT"])
    assert said[0] == "P1 (PSP@1) of PLT alone: 100.0 ± 0.0 points."
    assert own.empty
    assert rerun.read_rows(ds).empty
    fig = rerun.plot(found, measured, twin=False)
    assert fig.get_suptitle() == "P1 of PLT; P5 of PLT"
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["ours"]  # nothing printed is drawn
    _, _, own, said = _run(ds, {"mine": right, "FastXML": wrong, "PLT": wrong}, ["FastXML", "PLT"])
    assert own["verdict"].tolist() == ["above"] * 5
    assert "mine against the best baseline of each column: clearly above in 5 of 5" in " ".join(said)


def test_errors_are_the_jackknifes(twin, top):
    measured, w = rerun.measure(twin, {"one": top}), inverse(twin.label_counts, twin.n_train, twin.A, twin.B)
    slow = Measured.of_rows(lambda Y, t: 100 * metrics.psp(Y, t, 3, inverse_propensity=w)[0], twin.test.Y, {"one": top})
    assert measured["P3"].values == pytest.approx(slow.values)
    assert rerun.compute_errors(measured).loc[0, "P3"] == pytest.approx(slow.error("one"))


def test_one_test_point_has_no_error(make_dataset):
    ds = make_dataset(np.eye(3), np.eye(3)[:1])
    top = xc.TopK.from_ids([[0, 1, 2, -1, -1]], n_labels=3)
    found, measured, _, said = _run(ds, {"PLT": top, "FastXML": top}, ["PLT", "FastXML"])
    assert rerun.compute_errors(measured).drop(columns="model").isna().all(axis=None)
    assert said[0].endswith("with an error that is not known.")
    rerun.plot(found, measured, twin=False)


def test_printed_cells_are_the_papers(small, make_dataset):
    ds = make_dataset(small.train.Y.toarray(), small.test.Y.toarray(), name="eurlex-4k@0.1-seed0")
    cells = rerun.compute_printed(ds).set_index(["model", "column"])["printed"]
    assert len(cells) == 5 * 6 + 3 * 3  # table 3 has five of the models, table 4 three
    assert [cells["PfastreXML", "N1"], cells["1-vs-All", "C5"], cells["Popularity", "P5"]] == [45.38, 53.82, 2.62]
    assert rerun.compute_printed(small).empty


def test_the_printed_value_is_subtracted():
    found = pd.DataFrame([{"model": "FastXML"} | dict.fromkeys(rerun.SCORED, 30.0)])
    paper = pd.DataFrame({"model": ["FastXML", "PLT"], "column": ["P1", "P1"], "printed": [27.61, 1.0]})
    assert rerun.compare_with_printed(found, paper)["difference"].tolist() == [pytest.approx(2.39)]
    assert rerun.compare_with_printed(found, paper[:0]).empty
