"""Tables 3 and 4 on several twins: each part is the one dataset's own table, and the sentences count datasets."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro import metrics
from xcrepro.findings import Measured
from xcrepro.papers.jain16 import table3_table4_twins as twins
from xcrepro.propensity import inverse


@pytest.fixture(scope="module")
def found():
    loaded = {"EURLex-4K": xc.twin("eurlex-4k", scale=0.02), "Bibtex": xc.twin("bibtex", scale=0.05)}
    models = {"Popularity": xc.models.Popularity(), "FastXML": xc.models.FastXML(trees=2, max_leaf=20)}
    tops = {
        name: {model: one.fit(ds.train.X, ds.train.Y).predict(ds.test.X, 10) for model, one in models.items()}
        for name, ds in loaded.items()
    }
    return loaded, tops, twins.measure(loaded, tops)


def test_each_part_is_the_datasets_own_table(found):
    loaded, tops, _ = found
    table = twins.compute(*found)
    for name, ds in loaded.items():
        part, own = table[table["dataset"] == name].reset_index(drop=True), twins.compute_one(ds, tops[name])
        for column in ("model", *twins.SCORED, *twins.COVERED):
            pd.testing.assert_series_equal(part[column], own[column])
        assert (part["points"] == ds.n_train).all()
        assert part["P5 error"].tolist() == pytest.approx(
            [twins.measure_one(ds, tops[name])["P5"].error(model) for model in tops[name]]
        )
    printed = table.set_index(["dataset", "model"])["P5 printed"]
    assert printed["EURLex-4K", "FastXML"] == 39.95
    assert pd.isna(printed["Bibtex", "FastXML"])  # the paper has no Bibtex
    ds, top = loaded["EURLex-4K"], tops["EURLex-4K"]["FastXML"]
    Y = ds.test.Y.toarray()
    hits = sum(Y[i, label] > 0 for i, labels in enumerate(top.ids[:, :3]) for label in labels if label >= 0)
    assert table.set_index(["dataset", "model"]).loc[("EURLex-4K", "FastXML"), "hits 3"] == hits
    assert len(twins.plot(table).axes) == 4


def test_sentences_count_datasets():
    base = {"claim": "c", "better": "a", "than": "b", "printed": 5}
    rows = [
        base | {"dataset": "one", "above": 5, "below": 0, "not clear": 0, "printed above": 5},
        base | {"dataset": "two", "above": 0, "below": 5, "not clear": 0, "printed above": 5},
        base | {"dataset": "three", "above": 4, "below": 0, "not clear": 1, "printed above": 4},
    ]
    table = pd.DataFrame({"dataset": ["one", "one"], "model": ["a", "b"], "P5": [3.0, 2.0]})
    assert twins.findings(pd.DataFrame(rows), table) == [
        "a is clearly above b in all five columns on 1 of 3 datasets, clearly below in all on 1 (not: two, three); in print it "
        "is above in all of them on 2 of 3.",
        "one: a has the highest P5, 3.0 %.",
    ]


def test_scores_are_the_papers_ratios(small, tops):
    w = inverse([5, 3, 1, 0], 6, 0.55, 1.5)
    found = twins.compute_one(small, tops).set_index("model")
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
    assert found["P5 printed"].isna().all()  # the paper has no such dataset


def test_claims_count_columns_and_know_noise(make_dataset):
    """A model that hits in every point against one that never does, and against its own copy."""
    labels = np.random.default_rng(0).integers(0, 6, 60)
    ds = make_dataset(np.eye(6)[labels], np.eye(6)[labels])
    ids = np.array([[label, *(j for j in range(6) if j != label)] for label in labels])
    right = xc.TopK.from_ids(ids, n_labels=6)
    wrong = xc.TopK.from_ids(np.roll(ids, -1, axis=1), n_labels=6)  # the label comes last, beyond five places

    def claims(**tops):
        measured, none = twins.measure_one(ds, tops), twins.compute_printed(ds)
        return twins.compute_claims_of_one(measured, twins.compute_one(ds, tops), none).set_index("claim")

    table = claims(FastXML=wrong, PfastXML=right, PfastreXML=right)
    assert len(table) == 2  # no 1-vs-All, DiSMEC or PLT among the models
    nodes, ranked = (table.loc[name] for name in ("propensities in the nodes help", "re-ranking helps on top"))
    assert nodes[["above", "below", "not clear"]].tolist() == [5, 0, 0]
    assert nodes[["least", "largest", "C1", "C5"]].tolist() == pytest.approx([100] * 4)
    assert ranked[["above", "below", "not clear", "printed above", "printed"]].tolist() == [0, 0, 5, 0, 0]
    assert claims(FastXML=right, PfastXML=wrong)["below"].tolist() == [5]


def test_errors_are_the_jackknifes(twin, top):
    measured, w = twins.measure_one(twin, {"one": top}), inverse(twin.label_counts, twin.n_train, twin.A, twin.B)
    slow = Measured.of_rows(lambda Y, t: 100 * metrics.psp(Y, t, 3, inverse_propensity=w)[0], twin.test.Y, {"one": top})
    assert measured["P3"].values == pytest.approx(slow.values)
    assert twins.compute_errors(measured).loc[0, "P3"] == pytest.approx(slow.error("one"))


def test_printed_cells_are_the_papers(small, make_dataset):
    ds = make_dataset(small.train.Y.toarray(), small.test.Y.toarray(), name="eurlex-4k@0.1-seed0")
    cells = twins.compute_printed(ds).set_index(["model", "column"])["printed"]
    assert len(cells) == 5 * 6 + 3 * 3  # table 3 has five of the models, table 4 three
    assert [cells["PfastreXML", "N1"], cells["1-vs-All", "C5"], cells["Popularity", "P5"]] == [45.38, 53.82, 2.62]
    assert twins.compute_printed(small).empty
