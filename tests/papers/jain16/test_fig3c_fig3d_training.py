"""Figs. 3c and 3d: what the models of a draw are trained on, and their pairing by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro import metrics, models, propensity
from xcrepro.errors import ArgumentError
from xcrepro.papers.jain16 import fig3c_fig3d_training as training
from xcrepro.truth import Truth


def test_trainings_see_the_same_labels_and_the_right_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    ds = xc.twin("eurlex-4k", scale=0.02, seed=0)
    found = training.compute_trainings(ds, [0.1], draws=2, trees=2, seed=3)
    kinds = found.groupby(["A", "model"]).size()
    # The reference is put in: there PfastXML is given either A, and FastXML has the constant normaliser too.
    assert kinds[0.1].to_dict() == {"FastXML": 2, "PfastXML": 2}
    assert kinds[0.55].to_dict() == {"FastXML": 2, "FastXML, constant ideal": 2, "PfastXML": 4}
    counts = Truth.of(ds.train.Y_complete).label_counts()
    weight, other = (propensity.inverse(counts, ds.n_train, A, 1.5) for A in (0.55, 0.1))
    observed = propensity.drop_labels(ds.train.Y_complete, 1 / weight, np.random.default_rng([3, 1]))
    part = found[(found["A"] == 0.55) & (found["draw"] == 1)].fillna({"assumed": -1}).set_index(["model", "assumed"])
    for name, assumed, model in (
        ("FastXML", -1, models.FastXML(trees=2, seed=4)),
        ("FastXML, constant ideal", -1, models.FastXML(trees=2, seed=4, ideal="L")),
        ("PfastXML", 0.1, models.PfastXML(trees=2, seed=4, inverse_propensity=other)),
        ("PfastXML", 0.55, models.PfastXML(trees=2, seed=4, inverse_propensity=weight)),
    ):
        top = model.fit(ds.train.X, observed).predict(ds.test.X, 3)
        value = 100 * metrics.ndcg(ds.test.Y_complete, top, (3,), ideal="k")[0]
        assert part.loc[(name, assumed), "nDCG"] == pytest.approx(value)
    assert part["missing %"].tolist() == pytest.approx([100 * (1 - observed.nnz / ds.train.Y_complete.nnz)] * 4)


def test_pairs_by_hand():
    rows = [
        (0.55, math.nan, "FastXML", 0, 40.0, 60.0),
        (0.55, math.nan, "FastXML", 1, 42.0, 70.0),
        (0.55, 0.55, "PfastXML", 0, 40.0, 61.0),
        (0.55, 0.55, "PfastXML", 1, 42.0, 73.0),
        (0.55, 1.2, "PfastXML", 0, 40.0, 59.0),
        (0.55, 1.2, "PfastXML", 1, 42.0, 70.0),
        (0.1, math.nan, "FastXML", 0, 80.0, 50.0),
        (0.1, 0.1, "PfastXML", 0, 80.0, 48.0),
    ]
    table = training.compute(pd.DataFrame(rows, columns=["A", "assumed", "model", "draw", "missing %", "nDCG"]))
    found = table.set_index(["A", "assumed"])
    assert found.loc[(0.55, 0.55), ["FastXML", "nDCG", "difference", "error"]].tolist() == [65.0, 67.0, 2.0, 1.0]
    assert found.loc[(0.55, 0.55), ["better", "draws", "missing %"]].tolist() == [2, 2, 41.0]
    assert found.loc[(0.55, 1.2), ["difference", "better"]].tolist() == [-0.5, 0]
    assert found.loc[(0.1, 0.1), "difference"] == -2.0
    assert training.compute_right(table)["A"].tolist() == [0.1, 0.55]
    assert training.compute_wrong(table)["assumed"].tolist() == [0.55, 1.2]


def _trainings(right, wrong, plain=(60.0, 60.3, 59.8)):
    """Two curves of three draws: PfastXML so far from FastXML at A = 0.1, and by the wrong A at the reference."""
    rows = []
    for draw, level in enumerate(plain):
        for A in (0.1, 0.55):
            rows += [(A, math.nan, "FastXML", draw, 50.0, level), (A, A, "PfastXML", draw, 50.0, level + right[draw])]
        rows.append((0.55, 0.1, "PfastXML", draw, 50.0, level + wrong[draw]))
        rows.append((0.55, math.nan, "FastXML, constant ideal", draw, 50.0, level))
    return pd.DataFrame(rows, columns=["A", "assumed", "model", "draw", "missing %", "nDCG"])


def test_findings_tell_a_clear_lead_from_none():
    said = training.findings(_trainings((2.0, 2.1, 1.9), (-3.0, -3.1, -2.9)))
    assert said[0] == (
        "3c, PfastXML with the true propensities is above FastXML: clearly so in all 2 comparisons (+2.0 points)."
    )
    assert "wrong propensities is above FastXML: clearly the other way round in the one comparison (-3.0" in said[1]
    assert said[2].startswith("A = 0.55 leads nDCG@3 among what PfastXML was given, by 5.0")
    assert "normaliser, and no propensities, is above FastXML: not clear in the one comparison (+0.0 points)" in said[3]
    said = training.findings(_trainings((2.0, -2.0, 1.0), (0.5, -1.0, 2.0)))
    assert "not clear in 2" in said[0]
    assert said[2].startswith("No clear leader")


def test_findings_of_one_draw_and_of_the_reference_alone():
    table = _trainings((2.0, 2.1, 1.9), (-3.0, -3.1, -2.9))
    one = training.findings(table[table["draw"] == 0])
    assert "not clear in 2" in one[0]
    alone = table[(table["A"] == 0.55) & (table["assumed"] != 0.1)]
    assert len(training.findings(alone)) == 2
    assert training.plot(training.compute(alone)).axes
    assert training.plot(training.compute(table[table["draw"] == 0])).axes


@pytest.mark.parametrize(("name", "value"), [("curves", []), ("curves", [0.4, 0.4]), ("trees", 0), ("draws", 1)])
def test_parameters_are_refused_by_their_name(name, value):
    good = {"dataset": "bibtex", "curves": [0.55], "draws": 2, "trees": 1}
    training.check_parameters(good)
    with pytest.raises(ArgumentError, match=f"parameter {name} must"):
        training.check_parameters(good | {name: value})
