"""What strangers bring, kind by kind: each input with its right value, worked out by hand or by a loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, save_npz

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.core import formats
from xcrepro.core.data.lines import logical

# ---------------------------------------------------------------- values by their meaning

PAIRS = [
    ("TRUE", "FALSE"),
    ("true", "false"),
    ("Yes", "No"),
    ("t", "f"),
    ("present", "absent"),
    ("1", "0"),
    ("'1'", "'0'"),
]


def arff(path: Path, yes: str, no: str, values: str, sparse: bool = False) -> Path:
    rows = [f"{{0 0.5,1 {yes},2 {no}}}", f"{{0 1,1 {no},2 {no}}}"] if sparse else [f"0.5,{yes},{no}", f"1,{no},{no}"]
    head = f"@relation 'x: -C -2'\n@attribute w numeric\n@attribute a {values}\n@attribute b {values}\n@data\n"
    path.write_text(head + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("yes", "no"), PAIRS)
def test_nominal_labels_are_read_by_their_meaning(tmp_path, yes, no, turned, sparse):
    values = "{%s,%s}" % ((no, yes) if turned else (yes, no))
    Y = formats.read_truth(arff(tmp_path / "x.arff", yes, no, values, sparse))
    assert Y.toarray().tolist() == [[1, 0], [0, 0]]


def test_what_a_sparse_row_leaves_out_is_the_first_value(tmp_path):
    path = tmp_path / "x.arff"
    head = "@relation 'x: -C 2'\n@attribute a {yes,no}\n@attribute b {no,yes}\n@attribute w numeric\n@data\n"
    path.write_text(head + "{2 0.5}\n{0 no,1 yes}\n")
    assert formats.read_truth(path).toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("values", ["{red,blue}", "{yes,true}", "{maybe,yes}", "{a,b,c}"])
def test_labels_that_say_neither_yes_nor_no_are_refused_and_features_are_not(tmp_path, values):
    first, second = values[1:-1].split(",")[:2]
    with damaged("x.arff"):
        formats.read_truth(arff(tmp_path / "x.arff", first, second, values))
    path = tmp_path / "y.arff"
    path.write_text(f"@relation 'x: -C -1'\n@attribute a {values}\n@attribute b {{0,1}}\n@data\n{second},1\n")
    assert formats.read_features(path).shape == (1, 1)


def test_words_that_say_yes_or_no():
    assert [logical(text) for text in ("TRUE", " yes ", "F", "absent", "1", "", "none")] == [
        1,
        1,
        0,
        0,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(("yes", "no"), [("TRUE", "FALSE"), ("yes", "no"), ("2", "0"), ("1.0", "0.0")])
def test_a_column_of_relevance_may_be_logical(tmp_path, yes, no):
    (tmp_path / "q.csv").write_text(f"row,label,relevance\n0,0,{yes}\n0,1,{no}\n1,1,{yes}\n")
    assert formats.read_truth(tmp_path / "q.csv").toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("values", [[True, False, True], [1, 0, 1], [2.0, 0.0, 0.5]])
def test_a_parquet_column_of_relevance_counts(tmp_path, values):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"row": [0, 0, 1], "label": [0, 1, 1], "relevance": values}), tmp_path / "q.parquet")
    assert formats.read_truth(tmp_path / "q.parquet").toarray().tolist() == [[1, 0], [0, 1]]


def test_logical_matrices(tmp_path):
    Y = np.array([[True, False], [False, True]])
    np.save(tmp_path / "Y.npy", Y)
    save_npz(tmp_path / "Y.npz", csr_matrix(Y))
    for name in ("Y.npy", "Y.npz"):
        assert formats.read_truth(tmp_path / name).toarray().tolist() == [[1, 0], [0, 1]]
    io = pytest.importorskip("scipy.io")
    io.savemat(tmp_path / "Y.mat", {"Y": Y})
    assert formats.read_truth(tmp_path / "Y.mat").toarray().tolist() == [[1, 0], [0, 1]]


# ---------------------------------------------------------------- a table's column twice


@pytest.mark.parametrize("header", ["row,label,label", "row,label,relevance,relevance", "row,row,label"])
def test_a_column_twice_is_refused(tmp_path, header):
    (tmp_path / "q.csv").write_text(
        header + "\n" + ",".join("0" * header.count(",") + "1")[: 2 * header.count(",") + 1] + "\n"
    )
    with damaged("q.csv", 1):
        formats.read_truth(tmp_path / "q.csv")


# ---------------------------------------------------------------- quotes in names


def test_a_guarded_quote_in_a_bare_name(tmp_path):
    """As Mulan's delicious-test.arff and its XML file spell it."""
    (tmp_path / "d.arff").write_text(
        "@relation d\n@attribute w numeric\n@attribute m\\'usica {0,1}\n@attribute dise\\~no {0,1}\n@data\n{0 1,1 1}\n{2 1}\n"
    )
    (tmp_path / "d.xml").write_text('<labels><label name="dise\\~no"/><label name="m\\\'usica"/></labels>')
    assert formats.read_truth(tmp_path / "d.arff").toarray().tolist() == [[0, 1], [1, 0]]
    (tmp_path / "d.xml").write_text('<labels><label name="dise\\~no"/><label name="m\'usica"/></labels>')
    assert formats.read_truth(tmp_path / "d.arff").toarray().tolist() == [[0, 1], [1, 0]]


# ---------------------------------------------------------------- containers that know more than their numbers

TRUTH = pd.DataFrame([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 1]], columns=list("abcd"))
SCORES = pd.DataFrame([[0.9, 0.3, 0.6, 0.1], [0.2, 0.8, 0.3, 0.1], [0.1, 0.4, 0.7, 0.6]], columns=list("abcd"))


def p1(Y, scores) -> float:
    return float(xc.metrics.precision(Y, xc.TopK.from_scores(scores, 2), 1)[0])


def test_tables_whose_names_are_in_one_order_are_taken():
    assert p1(TRUTH, SCORES) == p1(TRUTH.to_numpy(), SCORES) == p1(TRUTH, SCORES.to_numpy()) == 1.0
    assert p1(TRUTH, SCORES.rename(columns=lambda name: f"p_{name}")) == 1.0  # names that say nothing of each other
    moved = SCORES.set_axis([7, 2, 9])
    assert p1(TRUTH, moved) == 1.0  # a truth whose rows were never named
    assert p1(TRUTH.set_axis([7, 2, 9]), moved) == 1.0


@pytest.mark.parametrize(
    "scores",
    [
        SCORES[["b", "a", "d", "c"]],
        SCORES[["a", "b", "d", "c"]],
        SCORES.rename(columns={"a": "b", "b": "c", "c": "d", "d": "e"}),
        SCORES.loc[[2, 0, 1]],
        SCORES.set_axis([0, 2, 1]),
    ],
)
def test_tables_whose_names_are_in_another_order_are_refused(scores):
    with refused("top"):
        p1(TRUTH, scores)
    with refused("top"):
        xc.evaluate(TRUTH, {"one": xc.TopK.from_scores(scores, 2).head(1)}, 1, metrics="P", interval=None)


def test_rows_that_both_name_must_be_in_one_order():
    named = TRUTH.set_axis(["x", "y", "z"])
    assert p1(named, SCORES.set_axis(["x", "y", "z"])) == 1.0
    with refused("top"):
        p1(named, SCORES.set_axis(["y", "x", "z"]))


def test_a_column_twice_in_a_table_is_refused():
    with refused("scores"):
        xc.TopK.from_scores(SCORES.set_axis(list("abcc"), axis=1), 2)
    with refused("Y"):
        p1(TRUTH.set_axis(list("abcc"), axis=1), SCORES)


def test_masked_values_are_refused_and_masks_without_any_taken():
    scores = np.ma.masked_less(SCORES.to_numpy(), 0.15)
    with refused("scores"):
        xc.TopK.from_scores(scores, 2)
    assert p1(TRUTH, scores.filled(-np.inf)) == 1.0
    assert p1(TRUTH, np.ma.masked_less(SCORES.to_numpy(), 0.0)) == 1.0
    with refused("Y"):
        p1(np.ma.masked_equal(TRUTH.to_numpy(), 0), SCORES)


# ---------------------------------------------------------------- scikit-learn's list of arrays


def test_probabilities_of_several_outputs_are_taken(tmp_path):
    scores = np.array([[0.9, 0.3, 0.6], [0.2, 0.8, 0.3]])
    proba = [np.column_stack([1 - scores[:, label], scores[:, label]]) for label in range(3)]
    expected = [[0, 2], [1, 2]]
    assert xc.TopK.from_scores(proba, 2).ids.tolist() == expected
    assert xc.TopK.from_scores(np.array(proba), 2).ids.tolist() == expected
    np.save(tmp_path / "p.npy", np.array(proba))
    assert formats.read_predictions(tmp_path / "p.npy", k=2).ids.tolist() == expected
    with refused("scores"):
        xc.TopK.from_scores([*proba[:2], proba[2][:, :1]], 2)  # a label of one class
    with refused("scores"):
        xc.TopK.from_scores([one * 2 for one in proba], 2)
    with refused("scores"):  # pairs of label and score, which from_pairs takes
        xc.TopK.from_scores([[(0, 0.5), (1, 0.2)], [(1, 0.4), (2, 0.1)]], 2)
