"""Tables 3 and 4 on several twins: each part is the one dataset's own table, and the sentences count datasets."""

from __future__ import annotations

import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.papers.jain16 import table3_table4_rerun as rerun
from xcrepro.papers.jain16 import table3_table4_twins as twins


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
        part, own = table[table["dataset"] == name].reset_index(drop=True), rerun.compute(ds, tops[name])
        for column in ("model", *rerun.SCORED, *rerun.COVERED):
            pd.testing.assert_series_equal(part[column], own[column])
        assert (part["points"] == ds.n_train).all()
        assert part["P5 error"].tolist() == pytest.approx(
            [rerun.measure(ds, tops[name])["P5"].error(model) for model in tops[name]]
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
