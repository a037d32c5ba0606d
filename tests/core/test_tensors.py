"""Tensors and label lists: wherever a truth or scores are taken, as the same matrix would be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.refused import refused
from xcrepro import State, TopK, evaluate
from xcrepro.core import calibrate, metrics
from xcrepro.core.tensors import labels_as_matrix, plain
from xcrepro.core.truth import as_truth


class Tensor:
    """What a tensor of PyTorch answers to; on a device, NumPy gets nothing of it."""

    layout = "torch.strided"

    def __init__(self, array, device="cuda", dtype=None):
        self._held, self._device, self._dtype = np.asarray(array), device, dtype
        self.shape = self._held.shape

    def __array__(self, *_, **__):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def detach(self):
        return self

    def cpu(self):
        return type(self)(self._held, "cpu", self._dtype)

    def float(self):
        return Tensor(self._held.astype(np.float32), self._device)

    def numpy(self):
        if self._device != "cpu":
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if self._dtype == "bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._held


class Sparse:
    """A sparse one, by the parts that it has."""

    def __init__(self, layout, shape, **parts):
        self.layout, self.shape = layout, shape
        self._parts = {name: Tensor(part, "cpu") for name, part in parts.items()}

    def detach(self):
        return self

    cpu = detach

    def __getattr__(self, name):
        if name in self.__dict__.get("_parts", {}):
            return lambda: self._parts[name]
        raise AttributeError(name)


Y = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]], np.float32)
SCORES = np.array([[0.5, 0.25, 0.75, 0], [0.5, 0.5, 0.25, 0], [0.125, 0.25, 0.5, 1]], np.float32)
TOP = TopK.from_scores(SCORES, 2)
COO = sparse.coo_matrix(Y)
CSR = sparse.csr_matrix(Y)
FORMS = {
    "dense": Tensor(Y),
    "bfloat16": Tensor(Y, dtype="bfloat16"),
    "coo": Sparse("torch.sparse_coo", Y.shape, _indices=[COO.row, COO.col], _values=COO.data),
    "csr": Sparse("torch.sparse_csr", Y.shape, values=CSR.data, col_indices=CSR.indices, crow_indices=CSR.indptr),
    "lists": [[3, 1], [0], []],
    "a tuple of sets and arrays": ({1, 3}, np.array([0]), ()),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_truth_may_be_a_tensor_or_lists(form):
    truth, asked = FORMS[form], ["P@1", "nDCG@2", "coverage@2", "ECE@2"]
    expected = evaluate(Y, TOP, metrics=asked)
    assert evaluate(truth, TOP, metrics=asked).equals(expected)
    assert evaluate([(truth, TOP)], metrics=asked).equals(expected)
    assert State(metrics=asked).update(truth, TOP).compute().equals(expected)
    assert metrics.recall(truth, TOP, 2) == metrics.recall(Y, TOP, 2)
    one, other = (calibrate.cross_fit_top(of, TOP, folds=3) for of in (truth, Y))
    assert np.array_equal(one.scores, other.scores)
    calibrators = [calibrate.fit_top(of, TOP) for of in (truth, Y)]
    assert np.array_equal(*(calibrator.predict(SCORES) for calibrator in calibrators))
    tables = [
        metrics.paired_bootstrap(of, TOP, TOP.rows([1, 2, 0]), metrics=["P@1"], n_resamples=20) for of in (truth, Y)
    ]
    assert repr(tables[0]) == repr(tables[1])


def test_scores_may_be_tensors():
    for form in (Tensor(SCORES), Tensor(SCORES.astype(np.float16)), Tensor(SCORES, dtype="bfloat16")):
        assert np.array_equal(TopK.from_scores(form, 2).ids, TOP.ids)
    twice = Sparse("torch.sparse_coo", (1, 4), _indices=[[0, 0], [2, 2]], _values=[0.5, 0.25])
    with refused("scores", "label 2 twice in row 0"):
        TopK.from_scores(twice, 1)
    for layout, parts in (
        ("torch.sparse_coo", {"_indices": [[0], [9]], "_values": [0.5]}),
        ("torch.sparse_csr", {"values": [0.5], "col_indices": [2], "crow_indices": [0, 7]}),
    ):
        with refused("scores", match="sound"):
            TopK.from_scores(Sparse(layout, (1, 4), **parts), 1)
    with refused("scores", "torch.sparse_csc"):
        TopK.from_scores(Sparse("torch.sparse_csc", (1, 4)), 1)
    with refused("scores", "a sparse tensor of shape (1, 4, 2)"):
        plain("scores", Sparse("torch.sparse_coo", (1, 4, 2), _indices=[[0]] * 3, _values=[0.5]))


def test_lists_with_a_fault_are_named():
    for rows, got in (
        ([[1], [4]], "4 in row 1"),
        ([[1], [0.5]], "0.5 in row 1"),
        ([[1, 1], []], "[1, 1] in row 0"),
        ([["a"], []], "'a' in row 0"),
    ):
        with refused("Y", got):
            evaluate(rows, TopK.from_scores(np.eye(2, 4), 1), 1)
    with refused("Y", match=r"different lengths.*csr_matrix"):
        as_truth([[1, 5], [2]])
    with refused("scores", match=r"different lengths.*TopK\.from_pairs"):
        TopK.from_scores([[1, 5], [2]], 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 6).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.sets(st.integers(0, n - 1)), max_size=5))))
def test_lists_are_never_taken_for_a_dense_matrix(drawn):
    n_labels, rows = drawn
    lists = [sorted(row) for row in rows]
    found = labels_as_matrix("Y", lists, n_labels)
    if not lists:
        assert found == []  # no rows: nothing tells what it is
        return
    assert found.shape == (len(rows), n_labels)
    assert [set(row.indices.tolist()) for row in found] == rows


@given(st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=1, max_size=4))
def test_a_dense_matrix_is_never_taken_for_lists(rows):
    assert labels_as_matrix("Y", rows, 4) is rows
