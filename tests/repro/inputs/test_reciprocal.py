"""Reciprocal pairs: what is put in is there, and what a filter file says is read."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from tests.refused import refused
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.errors import DataError, DataMissing
from xcrepro.repro.inputs import reciprocal as item


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
    with refused("share", 0):
        item.add_pairs(lf, 0)
    with refused("dataset", match="words of"):
        item.add_pairs(dataclasses.replace(lf, label_features=None), 0.1)
    lonely = Split(lf.test.X[:2], csr_matrix(([1.0], ([0], [0])), shape=(2, lf.train.Y.shape[1])))
    with refused("dataset", match="two labels"):
        item.add_pairs(dataclasses.replace(lf, test=lonely), 0.5)


def toy():
    """Four points; label 4 is point 0 itself, and (0, 1), (2, 2) are reciprocal."""
    kept = csr_matrix(np.array([[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 0]], np.float32))
    removed = kept.tolil()
    removed[0, 1] = removed[2, 2] = 0
    split = Split(None, removed.tocsr().astype(np.float32))
    split.Y.eliminate_zeros()
    ds = Dataset("toy", split, split, 0.55, 1.5)
    return item.Pairs(ds, (np.array([0]), np.array([4])), (np.array([0, 2]), np.array([1, 2])), kept, "toy")


def test_filters_tell_the_point_itself_from_reciprocal_pairs():
    filters = toy().filters()
    assert list(filters) == ["none", "itself", "reciprocal", "all"]
    assert [part.tolist() for part in filters["all"]] == [[0, 0, 2], [4, 1, 2]]
    assert filters["none"][0].size == 0


def test_a_real_filter_file(tmp_path):
    ds = toy().ds
    with pytest.raises(DataMissing, match=r"filter_labels_test\.txt"):
        item.read_pairs(ds, str(tmp_path))
    (tmp_path / item.FILE).write_text("0 4\n2 2\n")
    pairs = item.read_pairs(ds, str(tmp_path))
    assert list(pairs.filters()) == ["none", "all"]
    assert pairs.kept is None
    (tmp_path / item.FILE).write_text("9 0\n")
    with pytest.raises(DataError):
        item.read_pairs(ds, str(tmp_path))
