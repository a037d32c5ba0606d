"""What the rerun of the benchmark table says of a difference, against slow or hand-worked answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from xcrepro import load, twin
from xcrepro.inputs import baselines
from xcrepro.papers.xcrepo import table_benchmarks_rerun as rerun
from xcrepro.predictions import TopK


@pytest.fixture(scope="module")
def ds():
    return twin("eurlex-4k", scale=0.02, seed=0)


def test_printed_rows_are_the_first_method_the_table_has(ds):
    rows = rerun.printed_rows(ds)
    assert set(rows[rows["model"] == "1-vs-All"]["method"]) == {"DiSMEC"}
    value = rows[(rows["model"] == "Parabel") & (rows["metric"] == "nDCG") & (rows["k"] == 3)]["printed"]
    assert value.tolist() == ["72.17"]
    bibtex = rerun.printed_rows(twin("bibtex", scale=0.05))
    assert set(bibtex[bibtex["model"] == "1-vs-All"]["method"]) == {"1-vs-All"}
    assert "DiSMEC" not in set(bibtex["model"])  # a row of dashes there
    assert rerun.printed_rows(twin("orcas-800k", scale=0.0005)).empty


def test_ties_to_the_highest_id():
    top = TopK.from_ids([[1, 2, 5], [0, 3, -1]], scores=[[0.5, 0.5, 0.1], [0.9, 0.2, 0.0]], n_labels=6)
    assert rerun.ties_to_highest(top).ids.tolist() == [[2, 1, 5], [0, 3, -1]]


def test_jackknife_of_a_mean_is_its_standard_error():
    # One row a block: the jackknife of a mean is the usual standard error, s / sqrt(n).
    rng = np.random.default_rng(0)
    Y = csr_matrix((rng.random((20, 6)) < 0.4).astype(np.float32))
    top = TopK.from_scores(rng.random((20, 6)), 5)
    hits = np.asarray(Y.todense())[np.arange(20), top.ids[:, 0]]
    found = rerun.jackknife(Y, top, np.ones(6))["P"][0]
    np.testing.assert_allclose(found, hits.std(ddof=1) / np.sqrt(20))


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


def test_orders_see_what_does_not_hold():
    rows = {"P@1": [10.0, 50, 40, 45, 44], "PSP@1": [1.0, 5, 6, 7, 3], "PSP@5": [1.0, 5, 6, 5, 3]}
    found = pd.DataFrame({"model": ["Popularity", "FastXML", "PfastXML", "PfastreXML", "Parabel"], **rows})
    holds = rerun.compute_orders(found).set_index(["order", "metric"])["holds"]
    assert holds["all > Popularity", "P@1"] == "yes"
    assert holds["PfastreXML > PfastXML", "PSP@1"] == "yes"
    assert holds["PfastreXML > PfastXML", "PSP@5"] == "no"
    assert holds["Parabel > FastXML", "P@1"] == "no"
    assert ("DiSMEC > Parabel", "P@1") not in holds


def test_bibtex_meets_the_printed_rows(real_data):
    """1-vs-All and Parabel on real data within 1.5 points in all 24 cells; FastXML's family in tests/models."""
    ds = load("bibtex", real_data("bibtex"))
    models = {name: baselines.recipe(name, ds).fit(ds.train.X, ds.train.Y) for name in ("1-vs-All", "Parabel")}
    compared = rerun.compute_printed(ds, {name: model.predict(ds.test.X, 5) for name, model in models.items()})
    assert len(compared) == 24
    assert compared["difference"].abs().max() < 1.5
