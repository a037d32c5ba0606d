"""What the stage of training shows: the metrics of the predictions, and costs as they were noted."""

from __future__ import annotations

import types

import numpy as np
import pytest

import xcrepro as xc
from xcrepro.errors import ArgumentError
from xcrepro.inputs import baselines
from xcrepro.papers.xcrepo import train_baselines
from xcrepro.predictions import TopK


def test_the_table_is_evaluates():
    ds = xc.twin("eurlex-4k", scale=0.02)
    top = TopK.from_scores(ds.test.observed_marginals, 5)
    row = train_baselines.compute(ds, {"best": top}).iloc[0]
    weights = xc.propensity.inverse(ds.label_counts, ds.n_train, ds.A, ds.B)
    found = xc.evaluate(ds.test.Y, top, (1, 5), inverse_propensity=weights).set_index(["metric", "k"])["value"]
    for metric in ("P", "PSP"):
        for k in (1, 5):
            assert row[f"{metric}@{k}"] == pytest.approx(100 * found[metric, k])


def test_costs_are_those_noted(monkeypatch):
    notes = {"A": {"model": "A()", "train seconds": 2.5, "predicted points": 500, "predict seconds": 2.0}, "B": {}}
    monkeypatch.setattr(baselines, "training", lambda name, ds, seed: types.SimpleNamespace(about=lambda: notes[name]))
    table = train_baselines.compute_costs(None, ["A", "B"]).set_index("model")
    assert table.loc["A"].tolist() == ["A()", 2.5, 4.0]
    assert np.isnan(table.loc["B", ["train s", "predict ms/point"]].astype(float)).all()


def test_errors_and_leader():
    ds = xc.twin("eurlex-4k", scale=0.02)
    best, worst = TopK.from_scores(ds.test.Y, 1), TopK.from_scores(1 - ds.test.Y.toarray(), 1)
    measured = train_baselines.measure(ds, {"best": best, "worst": worst})
    table = train_baselines.compute_errors(measured).set_index("model")
    assert table.loc["best"].tolist() == [100, 0]
    said = train_baselines.findings(measured, table)
    assert said == ["2 models stand ready. best leads P@1, by 100.0 ± 0.0 points over worst."]


def test_parameters_are_checked_in_the_notebooks_names():
    with pytest.raises(ArgumentError, match="parameter repeats"):
        train_baselines.check_parameters({"size": "small", "dataset": "bibtex", "repeats": 0})
