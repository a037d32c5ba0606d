"""Popularity's row of jain16's table 3a on the labels of EURLex-4K themselves: the committed numbers are those of the data."""

import numpy as np
import pandas as pd
import scipy.sparse as sp

import xcrepro as xc
from xcrepro.core import paths
from xcrepro.core.data.read import read_sparse

TRAIN, ALL, SPLITS = 15_539, 19_348, 20
METRICS = ["P", "PSP", "PSnDCG", "PSnDCG (ideal k)"]


def by_hand(train, test, k):
    """P@k and PSP@k of the ranking by train frequency, point by point."""
    counts = np.asarray(train.sum(axis=0)).ravel()
    first = sorted(range(len(counts)), key=lambda label: (-counts[label], label))[:k]
    c = (np.log(train.shape[0]) - 1) * (1.5 + 1) ** 0.55  # jain16, equation 1
    weights = 1 + c * (counts + 1.5) ** -0.55
    hits, gain, best = 0, 0.0, 0.0
    for row in range(test.shape[0]):
        labels = test.indices[test.indptr[row] : test.indptr[row + 1]]
        right = [label for label in first if label in labels]
        hits, gain = hits + len(right), gain + sum(weights[right])
        best += sum(sorted(weights[labels], reverse=True)[:k])
    return hits / (k * test.shape[0]), gain / best


def test_the_committed_row_is_that_of_the_labels(real_data):
    Y = read_sparse(real_data("eurlex-4k-labels") / "Y_all_xcids_3993.txt")
    Y = sp.vstack([Y, sp.csr_matrix((ALL - Y.shape[0], Y.shape[1]), dtype=Y.dtype)]).tocsr()
    rows = []
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(ALL)
        train, test = Y[np.sort(order[:TRAIN])], Y[np.sort(order[TRAIN:])]
        weights = xc.propensity.inverse(np.bincount(train.indices, minlength=Y.shape[1]), TRAIN, 0.55, 1.5)
        none = sp.csr_matrix((ALL, 1), dtype=np.float32)  # no words are needed to count labels
        top = xc.models.Popularity().fit(none[:TRAIN], train).predict(none[TRAIN:], 5)
        rows.append(xc.evaluate(test, top, (1, 3, 5), inverse_propensity=weights, metrics=METRICS))
        if seed == 0:
            ours = rows[0].set_index(["metric", "k"])["value"]
            for k in (1, 5):
                assert np.allclose(by_hand(train, test, k), (ours["P", k], ours["PSP", k]), rtol=1e-12)
    found = 100 * pd.concat(rows).groupby(["metric", "k"])["value"].agg(["mean", "std"])
    committed = pd.read_csv(paths.committed("data/label_counts/popularity/eurlex-4k.csv")).set_index(["metric", "k"])
    assert sorted(found.index) == sorted(committed.index)
    assert np.allclose(committed, found.loc[committed.index], atol=5.1e-5, rtol=0)


def test_printed_and_computed_agree():
    ours = pd.read_csv(paths.committed("data/label_counts/popularity/eurlex-4k.csv")).set_index(["metric", "k"])
    printed = xc.published.wide("jain16:table3a").droplevel(["dataset", "variant"]).loc["Popularity"]
    for k in (1, 3, 5):
        for metric, column in (("PSP", "PSP"), ("PSnDCG", "PSN")):
            away = abs(float(printed[f"{column}@{k}"]) - ours["mean"][metric, k]) / ours["sd"][metric, k]
            assert away < 2, (metric, k, away)
