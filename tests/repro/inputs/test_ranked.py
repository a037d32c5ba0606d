"""Metrics on the observed and on the complete truth: row by row, and no complete truth where nobody knows it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from xcrepro import TopK, twin
from xcrepro.core import metrics
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.repro.inputs import datasets, ranked


@pytest.fixture(scope="module")
def ds():
    return twin("bibtex", scale=0.1)


@pytest.fixture(scope="module")
def top(ds):
    return TopK.from_scores(ds.test.observed_marginals, 5)


def precision(Y, top, k) -> float:
    hits = [len(set(row.indices) & set(ids[:k].tolist())) for row, ids in zip(Y, top.ids, strict=True)]
    return 100 * np.mean(hits) / k


def test_each_truth_has_its_column(ds, top):
    [row] = ranked.compare(ds, {"a": top}).to_dict("records")
    assert list(row)[:7] == ["model", "P@1", "P@1 complete", "P@3", "P@3 complete", "P@5", "P@5 complete"]
    assert [name for name in row if "PS" in name and "complete" in name] == []
    for k in (1, 3, 5):
        assert row[f"P@{k}"] == pytest.approx(precision(ds.test.Y, top, k))
        assert row[f"P@{k} complete"] == pytest.approx(precision(ds.test.Y_complete, top, k))
        # No hit is lost by more being relevant.
        assert row[f"P@{k} complete"] > row[f"P@{k}"]
    assert row["nDCG@5 complete"] == pytest.approx(100 * metrics.ndcg(ds.test.Y_complete, top, 5)[0])


def test_propensity_scores_estimate_the_complete_value(ds):
    """The mean over draws of what is observed meets the complete value, within three standard errors."""
    whole, p = ds.test.Y_complete.tocoo(), ds.propensities
    top, rng, found = TopK.from_scores(ds.test.marginals, 3), np.random.default_rng(0), []
    for _ in range(400):
        there = rng.random(whole.nnz) < p[whole.col]
        Y = type(whole)((whole.data[there], (whole.row[there], whole.col[there])), whole.shape).tocsr()
        found.append(100 * metrics.psp(Y, top, 3, inverse_propensity=1 / p, normalize=False)[0])
    complete = ranked.compare(ds, {"a": top}, ["P"], [3])["P@3 complete"][0]
    assert abs(np.mean(found) - complete) < 3 * np.std(found) / 20


def test_nobody_knows_the_complete_truth_of_real_data(ds, top):
    train, test = (Split(part.X, part.Y) for part in (ds.train, ds.test))
    real = Dataset(name="own", train=train, test=test, A=0.55, B=1.5)
    assert datasets.complete(real) is None
    assert datasets.complete(ds) is ds.test.Y_complete
    here, there = ranked.compare(ds, {"a": top}), ranked.compare(real, {"a": top})
    assert [name for name in here if not name.endswith("complete")] == list(there)
    assert there.equals(here[list(there)])


def test_weights_are_those_of_the_dataset(ds, top):
    found = [ranked.compare(dataclasses.replace(ds, A=a), {"a": top}, ["PSP"], [5])["PSP@5"][0] for a in (0.55, 0.2)]
    assert found[0] != found[1]
    assert found[0] == pytest.approx(100 * metrics.psp(ds.test.Y, top, 5, inverse_propensity=datasets.weights(ds))[0])
