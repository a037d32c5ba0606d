"""calibration/isotonic_and_nll: its numbers, computed a second and slower way, and its sentences where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro.errors import ArgumentError
from xcrepro.inputs import baselines, datasets
from xcrepro.papers.calibration import isotonic_and_nll
from xcrepro.predictions import TopK


def test_the_table_is_what_the_definition_says():
    ds = datasets.pick("bibtex", scale=0.1)
    tops = baselines.predictions(ds, ["Popularity"])
    table = isotonic_and_nll.compute(ds, tops, ks=[1, 3])
    relevant = ds.test.Y.toarray() > 0
    ids = tops["Popularity"].ids
    for row in table.itertuples():
        hits = [relevant[point, ids[point, : row.k]].sum() / row.k for point in range(len(relevant))]
        np.testing.assert_allclose(row.P, 100 * np.mean(hits), rtol=1e-12)


def test_a_leader_is_named_only_where_there_is_one():
    ds = datasets.pick("bibtex", scale=0.1)
    right, wrong = (TopK.from_scores(truth, 1) for truth in (ds.test.Y, 1 - ds.test.Y.toarray()))
    assert isotonic_and_nll.findings(ds, {"right": right, "wrong": wrong}, [1])[0].startswith("right leads P@1")
    assert isotonic_and_nll.findings(ds, {"right": right, "same": right}, [1])[0].startswith("no clear leader")


def test_parameters_are_refused_in_the_notebooks_names():
    with pytest.raises(ArgumentError, match="parameter scale"):
        isotonic_and_nll.check_parameters({"size": "small", "dataset": "bibtex", "scale": 0.0})
