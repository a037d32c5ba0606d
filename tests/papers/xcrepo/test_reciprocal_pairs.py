"""Reciprocal pairs: what is put in is there, a filter by hand, a planted model that predicts what may not be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.data.dataset import Dataset, Split
from xcrepro.errors import ArgumentError, DataError, DataMissing
from xcrepro.papers.xcrepo import reciprocal_pairs as item
from xcrepro.predictions import TopK
from xcrepro.repro import figures


@pytest.fixture(scope="module")
def lf():
    return xc.twin("lf-amazontitles-131k", scale=0.002, seed=0)


def test_every_pair_has_its_reciprocal_and_no_point_loses_its_last_label(lf):
    pairs = item.add_pairs(lf, 0.1, seed=3)
    ds, n_labels = pairs.ds, lf.train.Y.shape[1]
    points, labels = pairs.reciprocal
    assert points.size == round(0.1 * lf.test.Y.nnz)
    items, own = pairs.itself
    assert items.tolist() == np.unique(points).tolist()
    assert own.tolist() == list(range(n_labels, n_labels + items.size))
    words, train_X, train_Y = ds.label_features, ds.train.X[lf.n_train :], ds.train.Y[lf.n_train :]
    found = set()
    for row in range(train_X.shape[0]):
        # The label whose words the new train point has.
        (label,) = [one for one in np.unique(labels) if (words[one] != train_X[row]).nnz == 0]
        for column in train_Y[row].indices:
            point = items[column - n_labels]
            assert (words[column] != lf.test.X[point]).nnz == 0
            found.add((int(point), int(label)))
    assert found == set(zip(points.tolist(), labels.tolist(), strict=True))
    assert (pairs.kept[:, :n_labels] != lf.test.Y).nnz == 0
    assert pairs.kept.nnz - ds.test.Y.nnz == points.size
    assert not np.asarray(ds.test.Y[points, labels]).any()
    assert ((np.diff(ds.test.Y.indptr) == 0) == (np.diff(lf.test.Y.indptr) == 0)).all()
    assert (ds.train.Y[: lf.n_train, :n_labels] != lf.train.Y).nnz == 0
    assert set(ds.train.Y.data) == set(ds.test.Y.data) == {1.0}
    again = item.add_pairs(lf, 0.1, seed=3)
    assert again.reciprocal[0].tolist() == points.tolist()
    assert item.add_pairs(lf, 0.1, seed=4).reciprocal[0].tolist() != points.tolist()


def test_what_cannot_have_pairs_is_refused(lf):
    with pytest.raises(ArgumentError, match="share must be a finite number, above 0 and at most 1; got 0"):
        item.add_pairs(lf, 0)
    with pytest.raises(ArgumentError, match="dataset must have words of its labels"):
        item.add_pairs(dataclasses.replace(lf, label_features=None), 0.1)
    lonely = Split(lf.test.X[:2], csr_matrix(([1.0], ([0], [0])), shape=(2, lf.train.Y.shape[1])))
    with pytest.raises(ArgumentError, match="dataset must have test points with two labels"):
        item.add_pairs(dataclasses.replace(lf, test=lonely), 0.5)
    with pytest.raises(ArgumentError, match="parameter share"):
        item.check_parameters({"share": 2})


def toy():
    """Four points; label 4 is point 0 itself, and (0, 1), (2, 2) are reciprocal."""
    kept = csr_matrix(np.array([[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 0]], np.float32))
    removed = kept.tolil()
    removed[0, 1] = removed[2, 2] = 0
    split = Split(None, removed.tocsr().astype(np.float32))
    split.Y.eliminate_zeros()
    ds = Dataset("toy", split, split, 0.55, 1.5)
    return item.Pairs(ds, (np.array([0]), np.array([4])), (np.array([0, 2]), np.array([1, 2])), kept, "toy")


def ranking(ids):
    ids = np.array(ids, np.int32)
    return TopK(ids, np.tile(np.linspace(1, 0.1, ids.shape[1], dtype=np.float32), (len(ids), 1)), 5)


def test_a_filter_by_hand():
    pairs = toy()
    tops = {"a": ranking([[4, 1, 0, 2, 3], [1, 0, 2, 3, 4], [2, 3, 0, 1, 4], [0, 1, 2, 3, 4]])}
    table = item.compute(pairs, tops)
    at_1 = table[table["k"] == 1].set_index("what")["P"]
    # Kept: points 1, 2 and 3 hit. Removed: 1 and 3; without itself point 0 has label 1, which is out too; without the pairs
    # point 2 hits with label 3; without both all hit.
    assert at_1.to_dict() == {
        item.KEPT: 75.0, item.NONE: 50.0, item.PARTS["itself"]: 50.0, item.PARTS["reciprocal"]: 75.0, item.FULL: 100.0
    }  # fmt: skip
    said = item.findings(pairs, tops, table)
    assert said[1] == "P@1 without and with the filter: a 50.0 to 100.0 %."
    assert said[2] == "To leave out the point itself alone changes P@1 by points: a +0.0."
    assert said[3] == "To leave out reciprocal pairs alone changes P@1 by points: a +25.0."
    assert "P@1 would be a 75.0 %" in said[4]
    assert len(said) == 5  # one model has no order
    counts = item.compute_counts(pairs).set_index("what")["number"]
    assert counts["test points with a pair in the filter"] == 2
    fig = item.plot(table)
    figures.held(fig, table)
    with pytest.raises(figures.DrawingFault):
        figures.held(fig, table.assign(P=table["P"] / 2))


def test_models_whose_names_begin_alike_are_told_apart():
    top = ranking([[4, 1, 0, 2, 3]] * 4)
    table = item.compute(toy(), {"PLT": top, "PLT, filter": top})
    assert table.groupby("model", sort=False).size().to_dict() == {"PLT": 15, "PLT, filter": 15}


def test_a_real_filter_file(tmp_path):
    ds = toy().ds
    with pytest.raises(DataMissing, match=r"filter_labels_test\.txt: no such file"):
        item.read_pairs(ds, str(tmp_path))
    (tmp_path / item.FILE).write_text("0 4\n2 2\n")
    pairs = item.read_pairs(ds, str(tmp_path))
    assert list(pairs.filters()) == [item.NONE, item.FULL]
    table = item.compute(pairs, {"a": ranking([[4, 0, 1, 2, 3]] * 4)})
    assert isinstance(table, pd.DataFrame)
    assert set(table["what"]) == {item.NONE, item.FULL}
    assert not any(
        "stayed in the truth" in text for text in item.findings(pairs, {"a": ranking([[4, 0, 1, 2, 3]] * 4)}, table)
    )
    (tmp_path / item.FILE).write_text("9 0\n")
    with pytest.raises(DataError):
        item.read_pairs(ds, str(tmp_path))


def test_who_leads_is_told_with_and_without_the_filter():
    pairs = toy()
    right, itself = ranking([[0, 1, 2, 3, 4]] * 4), ranking([[4, 0, 1, 2, 3]] * 4)
    tops = {"a": right, "b": itself}
    said = item.findings(pairs, tops, item.compute(pairs, tops))
    assert said[-2].startswith("Without the filter: ")
    assert said[-1].startswith("With it: ")
    assert "P@1" in said[-1]
