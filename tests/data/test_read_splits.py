"""Split files and filter files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from xcrepro.data.splits import apply_split, count_columns, read_filter, read_split_columns
from xcrepro.errors import ArgumentError, DataError, DataMissing


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
    ("text", "message"),
    [
        ("1 2\n3\n", "line 2: found 1 columns, expected 2, as in the first line"),
        ("1 2\n0 1\n", "line 2: found row number 0, expected row numbers from 1"),
        ("1 2\n-1 1\n", "line 2: found '-1', expected whole numbers"),
        ("1 2\n3 1.0\n", "line 2: found '1.0', expected whole numbers"),
        ("1 2\n\n2 9\n1 7\n", "line 4: found row 1 a second time in column 0"),
        ("1 9999999999999999999\n", "line 1: found '9999999999999999999'"),
        ("\n", "found no row numbers"),
        ("", "found an empty file"),
    ],
)
def test_split_faults(file, text, message):
    with pytest.raises(DataError, match=message):
        read_split_columns(file(text), 0)


@pytest.mark.parametrize("column", [-1, 2, 1.0, True])
def test_a_column_that_is_not_there(file, column):
    with pytest.raises(ArgumentError, match="column must be a whole number from 0 to 1"):
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
    for wrong, message in (
        (([0, 4], [1]), r"train must hold rows 0 to 3; got 4"),
        (([0], [-1]), r"test must hold rows 0 to 3; got -1"),
        (([0, 1], [1]), r"must not share or repeat rows; got row 1"),
        (([0, 0], [1]), r"must not share or repeat rows; got row 0"),
        (([0.5], [1]), r"train must be a list of whole numbers"),
        (([[0]], [1]), r"train must be a list of whole numbers"),
    ):
        with pytest.raises(ArgumentError, match=message):
            apply_split(X, Y, *wrong)
    with pytest.raises(ArgumentError, match="Y must have as many rows as X"):
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
    with pytest.raises(DataError, match=r"line 1: found the pair 0 5, expected rows below 4 and labels below 5"):
        read_filter(file("0 5\n"), shape=(4, 5))
    with pytest.raises(DataError, match=r"line 2: found 3 numbers, expected a pair"):
        read_filter(file("0 5\n1 2 3\n"))
    with pytest.raises(DataError, match=r"line 1: found 'a', expected whole numbers"):
        read_filter(file("a b\n"))
    with pytest.raises(DataMissing):
        read_filter(tmp_path / "none.txt")
    with pytest.raises(DataError, match="found a folder"):
        read_filter(tmp_path)


def test_columns_of_a_split_file_are_counted(file):
    assert count_columns(file("1 3\n3 2\n")) == 2
