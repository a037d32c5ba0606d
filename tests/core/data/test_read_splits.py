"""Split files and filter files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from tests.refused import damaged, refused
from xcrepro.core.data.splits import apply_split, count_columns, read_filter, read_split_columns
from xcrepro.core.errors import DataMissing


def test_a_split_is_a_column_from_one(file):
    rng = np.random.default_rng(0)
    columns = np.array([rng.permutation(50)[:30] + 1 for _ in range(10)]).T
    text = "\r\n".join(" ".join(map(str, row)) for row in columns) + " \n\n"
    for path in (file(text), file(text.replace(" ", "\t")), file(gzip.compress(text.encode()), "a.gz")):
        for column in range(10):
            rows = read_split_columns(path, column)
            assert rows.dtype == np.int64
            assert rows.tolist() == (columns[:, column] - 1).tolist()


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("1 2\n3\n", 2, "1 columns, expected 2"),
        ("1 2\n0 1\n", 2, "number 0, .*from 1"),
        ("1 2\n3 1.0\n", 2, "'1.0', .*whole numbers"),
        ("1 2\n\n2 9\n1 7\n", 4, "row 1 .*column 0"),
        ("", None, "empty"),
    ],
)
def test_split_faults(file, text, line, found):
    with damaged("a.txt", line, match=found):
        read_split_columns(file(text), 0)


@pytest.mark.parametrize("column", [-1, 2, 1.0, True])
def test_a_column_that_is_not_there(file, column):
    with refused("column", repr(column), match="0 to 1"):
        read_split_columns(file("1 2\n"), column)


def test_apply_split():
    X = sp.csr_matrix(np.arange(1, 13).reshape(4, 3))
    Y = sp.csr_array(np.eye(4))
    train, test = apply_split(X, Y, np.array([3, 0]), [1])
    assert train.X.toarray().tolist() == [[10, 11, 12], [1, 2, 3]]
    assert train.Y.toarray().tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]
    assert test.X.toarray().tolist() == [[4, 5, 6]]
    _, empty = apply_split(X, Y, [0], [])
    assert empty.X.shape == (0, 3)
    for wrong, argument, got in (
        (([0, 4], [1]), "train", 4),
        (([0], [-1]), "test", -1),
        (([0, 1], [1]), "train and test", "row 1"),
        (([0, 0], [1]), "train and test", "row 0"),
        (([0.5], [1]), "train", "float64 of shape (1,)"),
        (([[0]], [1]), "train", "int64 of shape (1, 1)"),
    ):
        with refused(argument, got):
            apply_split(X, Y, *wrong)
    with refused("Y", 2):
        apply_split(X, Y[:2], [0], [1])


def test_filters(file, tmp_path):
    path = file("0 5\n0 2\n\n3 1\n")
    rows, labels = read_filter(path)
    assert (rows.tolist(), labels.tolist()) == ([0, 0, 3], [5, 2, 1])
    assert rows.dtype == labels.dtype == np.int64
    assert read_filter(path, shape=(4, 6))[0].tolist() == [0, 0, 3]
    for empty in (file(""), file("\n"), file(gzip.compress(b""), "a.gz")):
        rows, labels = read_filter(empty)
        assert len(rows) == len(labels) == 0
        assert rows.dtype == np.int64
    with damaged("a.txt", line=1, match="0 5, .*below 5"):
        read_filter(file("0 5\n"), shape=(4, 5))
    for text, line, found in (("0 5\n1 2 3\n", 2, "3 numbers"), ("a b\n", 1, "'a'")):
        with damaged("a.txt", line, match=found):
            read_filter(file(text))
    with pytest.raises(DataMissing):
        read_filter(tmp_path / "none.txt")
    with damaged(tmp_path, match="folder"):
        read_filter(tmp_path)


def test_columns_of_a_split_file_are_counted(file):
    assert count_columns(file("1 3\n3 2\n")) == 2
