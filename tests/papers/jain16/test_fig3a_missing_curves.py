"""Fig. 3a: what goes missing, by hand and against dropping it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro import propensity
from xcrepro.errors import ArgumentError
from xcrepro.papers.jain16 import fig3a_missing_curves as fig3a


def test_shares_by_hand():
    n = 1000
    C = (math.log(n) - 1) * 2.5**0.55
    p1, p40 = 1 / (1 + C * 2.5**-0.55), 1 / (1 + C * 41.5**-0.55)
    assert p1 == pytest.approx(1 / math.log(n))
    row = fig3a.compute_shares(np.array([1, 1, 40, 0]), n, [0.55]).iloc[0]
    assert row["missing %"] == pytest.approx(100 * (1 - (2 * p1 + 40 * p40) / 42))
    assert row["rare missing %"] == pytest.approx(100 * (1 - p1))
    assert row["never seen %"] == pytest.approx(100 * (2 * (1 - p1) + (1 - p40) ** 40) / 3)
    assert math.isnan(fig3a.compute_shares(np.array([40]), n, [0.55])["rare missing %"].item())


def test_shares_are_what_dropping_takes():
    ds = xc.twin("eurlex-4k", scale=0.1, seed=0)
    counts, n = ds.label_counts, ds.n_train
    expected = fig3a.compute_shares(counts, n, [0.55])["missing %"].item()
    p = 1 / propensity.inverse(counts, n, 0.55, 1.5)
    left = [propensity.drop_labels(ds.train.Y, p, seed).nnz for seed in range(30)]
    deviation = 100 * math.sqrt((counts @ (p * (1 - p))) / 30) / counts.sum()
    assert abs(100 * (1 - np.mean(left) / counts.sum()) - expected) <= 4 * deviation


def test_the_complete_truth():
    name, counts, n, origin = fig3a.load_counts()
    assert (name, counts.sum(), counts.size, n) == ("EURLex-4K", 102_741, 3993, 19_314)
    assert origin == "label counts of EURLex-4K (real data), 19,314 documents"
    with pytest.raises(ArgumentError, match="folder"):
        fig3a.load_counts("bibtex")


def test_findings_follow_the_table():
    rows = [(0.2, 80.0, 90.0, 40.04), (0.55, 50.0, 85.0, 30.0), (1.0, 20.0, 75.0, 20.0)]
    shares = pd.DataFrame(rows, columns=["A", "missing %", "rare missing %", "never seen %"])
    said = fig3a.findings(shares, "X")
    assert said[0] == "X: on average 20 % of the pairs go missing with A = 1, 80 % with A = 0.2."
    assert said[1] == "With the reference A = 0.55: 50 %, of the pairs of labels with fewer than 10 points 85 %."
    assert said[2] == "On any of the curves drawn these rare labels lose 75 % at least."
    one = fig3a.findings(shares.iloc[:1].assign(**{"rare missing %": math.nan, "never seen %": 0.0}), "X")
    assert one == [
        "X: on average 80 % of the pairs go missing with A = 0.2.",
        "With A = 0.2: 80 %. No label has fewer than 10 points.",
    ]


def test_names_of_curves_that_end_together_stand_apart():
    counts, grid = np.array([1, 30, 400]), [0.54, 0.55, 0.56]
    fig = fig3a.plot(fig3a.compute(counts, 5000, grid), fig3a.compute_shares(counts, 5000, grid), "X")
    places = sorted(text.xy[1] for text in fig.axes[0].texts)
    assert min(np.diff(places)) >= 0.05 - 1e-12


@pytest.mark.parametrize(("name", "value"), [("curves", []), ("curves", [-1.0]), ("dataset", "bibtex")])
def test_parameters_are_refused_by_their_name(name, value):
    good = {"dataset": "eurlex-4k", "folder": "", "curves": [0.55]}
    fig3a.check_parameters(good)
    with pytest.raises(ArgumentError, match=f"parameter {name} must"):
        fig3a.check_parameters(good | {name: value})
