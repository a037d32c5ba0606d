"""Every format: what is written is read back, what strangers write is read, and what is broken is named."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.refused import damaged, refused
from xcrepro import TopK, evaluate, write_xc
from xcrepro.core.data.names import LabelNames
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.tools import formats
from xcrepro.tools.formats import FORMATS, csv
from xcrepro.tools.formats.index import Index

NAMES = LabelNames(
    tuple(f"label no. {label}" for label in range(7)), tuple(f"http://x.org/{label}" for label in range(7))
)
ROWS = [f"doc-{row}" for row in range(5)]


def writers(kind: str) -> list:
    found = [format for format in FORMATS if kind in format.can("write")]
    return [pytest.param(format, id=format.name) for format in found]


def needs(format) -> None:
    if format.name == "parquet":
        pytest.importorskip("pyarrow", reason="the extra 'formats' is not installed")


def name_of(folder, format, kind: str):
    suffix = {"trec": {"truth": ".qrels"}}.get(format.name, {}).get(kind, format.suffixes[0])
    return folder / ("some" if suffix == "/" else f"some{suffix}")


@pytest.fixture
def truth():
    rng = np.random.default_rng(3)
    dense = (rng.random((5, 7)) < 0.4).astype(np.float32)
    dense[2] = 0  # a row without labels
    return sparse.csr_matrix(dense)


@pytest.fixture
def top():
    rng = np.random.default_rng(4)
    scores = rng.random((5, 7)).astype(np.float32)
    scores[rng.random((5, 7)) < 0.5] = -np.inf
    scores[1] = -np.inf  # a row without predictions
    scores[3, :3] = 0.25  # ties, and a score of 0
    scores[4, 6] = 0
    return TopK.from_scores(scores, 4)


def same(one: TopK, other: TopK) -> None:
    k = min(one.k, other.k)
    assert (one.n_labels, len(one)) == (other.n_labels, len(other))
    assert np.array_equal(one.ids[:, :k], other.ids[:, :k])
    assert np.array_equal(one.scores[:, :k], other.scores[:, :k])
    assert (one.ids[:, k:] == -1).all()
    assert (other.ids[:, k:] == -1).all()


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("format", writers("truth"))
def test_truth_comes_back(tmp_path, truth, format, named, packed):
    needs(format)
    path = name_of(tmp_path, format, "truth")
    if packed and (format.suffixes[0] in ("/", ".parquet") or format.suffixes[0].startswith(".np")):
        path = path.with_name(path.name + packed)
        if format.suffixes[0] != "/":
            with pytest.raises(ArgumentError, match="must end in"):
                formats.write_truth(path, truth, format.name)
        return
    path = path.with_name(path.name + packed)
    options = {"label_names": NAMES, "row_ids": ROWS} if named else {"n_labels": 7, "n_rows": 5}
    formats.write_truth(path, truth, format.name, **options)
    found = formats.read_truth(path, **options)
    assert formats.detect(path) == format
    assert found.shape == (5, 7)
    assert (found != truth).nnz == 0
    assert found.dtype == np.float32
    assert "truth" in formats.contents(path, format)
    if not packed:
        chosen = format if path.suffix else formats.get("annif")
        assert formats.by_ending(f"{path}/" if chosen.name == "annif" else path, "truth") == chosen


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("format", writers("predictions"))
def test_predictions_come_back(tmp_path, top, format, named):
    needs(format)
    path = name_of(tmp_path, format, "predictions")
    options = {"label_names": NAMES, "row_ids": ROWS} if named else {"n_labels": 7, "n_rows": 5}
    formats.write_predictions(path, top, format.name, **options)
    assert formats.detect(path) == format
    same(formats.read_predictions(path, **options), top)
    same(formats.read_predictions(path, k=2, **options), top.head(2))
    assert "predictions" in formats.contents(path, format)


@pytest.mark.parametrize("format", writers("features"))
def test_features_come_back(tmp_path, format):
    X = sparse.random(6, 9, 0.4, "csr", np.float32, np.random.default_rng(0))
    path = name_of(tmp_path, format, "features")
    formats.write_features(path, X, format.name)
    found = formats.read_features(path)
    assert found.shape == X.shape
    assert (found != X).nnz == 0


@pytest.mark.parametrize("format", writers("dataset"))
def test_datasets_come_back(tmp_path, truth, format):
    X = sparse.random(5, 9, 0.4, "csr", np.float32, np.random.default_rng(0)) - 0.5 * sparse.eye(5, 9, format="csr")
    X = X.astype(np.float32)
    path = name_of(tmp_path, format, "dataset")
    formats.write_dataset(path, X, truth, format.name)
    for found, wanted in zip(formats.read_dataset(path), (X, truth), strict=True):
        assert found.shape == wanted.shape
        assert (found != wanted).nnz == 0
    assert (formats.read_truth(path) != truth).nnz == 0
    assert (formats.read_features(path) != X).nnz == 0
    assert formats.contents(path, format)[0] == "dataset"


scores32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.integers(0, 9), scores32, max_size=5), min_size=1, max_size=4))
def test_any_scores_come_back_to_the_bit(tmp_path, rows):
    k = max(1, *map(len, rows))
    top = TopK.from_pairs([list(row.items()) for row in rows], n_labels=10, k=k)
    if not any(rows):
        top = TopK.from_scores(sparse.csr_matrix((len(rows), 10)), k)
        formats.write_predictions(tmp_path / "empty.run", top)
        with pytest.raises(DataError, match="empty file"):
            formats.read_predictions(tmp_path / "empty.run", "trec")
        return
    for name in ("pairs", "lists", "jsonl", "csv", "trec"):
        path = tmp_path / f"some.{name}"
        formats.write_predictions(path, top, name)
        same(formats.read_predictions(path, name, n_labels=10, n_rows=len(rows)), top)


# ---------------------------------------------------------------- by hand, as strangers write


def test_rows_are_not_moved_by_a_gap(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("0 Q0 1 1 0.5 t\n2 Q0 1 1 0.5 t\n")
    with pytest.raises(DataError, match=r"row 1, .*row 2.*--n-rows"):
        formats.read_predictions(path)
    assert formats.read_predictions(path, n_rows=4).ids.tolist() == [[1], [-1], [1], [-1]]
    path.write_text("a Q0 1 1 0.5 t\n")
    with pytest.raises(DataError, match=r"line 1: found row 'a'.*--rows"):
        formats.read_predictions(path)


def test_a_truth_teaches_the_rows_of_its_predictions(tmp_path):
    (tmp_path / "a.qrels").write_text("q9 0 1 1\nq9 0 2 0\nq3 0 0 0\nq1 0 2 2\nq1 0 0 -1\n")
    (tmp_path / "a.run").write_text("q1 Q0 2 1 0.5 t\nq9 Q0 0 1 0.5 t\n")
    index = Index(n_labels=3, learn_rows=True)
    truth = formats.read_truth(tmp_path / "a.qrels", index=index)
    assert truth.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]  # q3 was judged: a row without labels
    index.stop_learning(truth.shape[0])
    assert formats.read_predictions(tmp_path / "a.run", index=index).ids.tolist() == [[0], [-1], [2]]
    (tmp_path / "a.run").write_text("q7 Q0 2 1 0.5 t\n")
    with pytest.raises(DataError, match="'q7'"):
        formats.read_predictions(tmp_path / "a.run", index=index)
    # A truth that calls its rows by their places does not.
    (tmp_path / "a.json").write_text("[[1], [0, 2], []]")
    index = Index(n_labels=3, learn_rows=True)
    index.stop_learning(formats.read_truth(tmp_path / "a.json", index=index).shape[0])
    (tmp_path / "a.run").write_text("2 Q0 1 1 0.5 t\n")
    assert formats.read_predictions(tmp_path / "a.run", index=index).ids.tolist() == [[-1], [-1], [1]]


def test_raw_text_of_the_repository_and_annifs_documents_are_truth(tmp_path):
    path = tmp_path / "trn.json"
    path.write_text('{"uid": "a", "title": "t", "target_ind": [2, 0], "target_rel": [0.5, 0.0]}\n{"target_ind": []}\n')
    assert formats.read_truth(path, n_labels=3).toarray().tolist() == [[0, 0, 1], [0, 0, 0]]
    subjects = '[{"uri": "http://x.org/3", "label": "renamed"}, {"label": "label no. 0"}]'
    path.write_text(f'{{"text": "t", "subjects": {subjects}}}\n')
    assert formats.read_truth(path, label_names=NAMES).nonzero()[1].tolist() == [0, 3]
    path.write_text('{"labels": [1], "scores": [0.5]}\n')
    with pytest.raises(DataError, match=r"line 1: .*'scores'"):
        formats.read_truth(path)


ARFF = """% a comment
@RELATION 'some: -C 2'
@attribute 'the \\'first\\'' {0, 1}
@attribute second {1,0}
@attribute x real
@attribute colour {red, 'dark blue'}
@attribute flag {1,0}
@data
{2 0.5,1 0}
{0 1, 3 'dark blue', 4 0}
1,0,-2.5,red,1
"""


def test_arff_sparse_dense_nominal(tmp_path):
    path = tmp_path / "a.arff"
    path.write_text(ARFF)
    index = Index()
    X, Y = formats.read_dataset(path, index=index)
    # What a sparse row leaves out is the first value of a nominal attribute: 1 for {1,0}.
    assert Y.toarray().tolist() == [[0, 0], [1, 1], [1, 0]]
    assert X.toarray().tolist() == [[0.5, 0, 1], [0, 1, 0], [-2.5, 0, 1]]
    assert index.label_names.names == ("the 'first'", "second")
    path.write_text(ARFF.replace("-C 2", "").replace("second {1,0}", "second numeric"))
    with pytest.raises(DataError, match="5 attributes"):
        formats.read_dataset(path)
    assert formats.read_truth(path, n_labels=1).toarray().tolist() == [[1], [0], [1]]
    names = (
        '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="flag"><label name="second"/></label></labels>'
    )
    (tmp_path / "names.xml").write_text(names)
    index = Index()
    assert formats.read_truth(path, index=index).toarray().tolist() == [[1, 0], [0, 0], [1, 0]]
    assert index.label_names.names == ("flag", "second")
    (tmp_path / "a.xml").write_text("<!DOCTYPE a [<!ENTITY b 'c'>]><labels/>")
    with pytest.raises(DataError, match="document type"):
        formats.read_truth(path)


FAULTS = [
    ("a.run", "0 Q0 1 1 x t\n", "line 1: found the score 'x'"),
    ("a.run", "0 Q0 1 1 nan t\n", "line 1: found the score 'nan'"),
    ("a.run", "0 Q0 1 1 1 t\n0 Q0 1 1\n", "line 2: found 4 columns"),
    ("a.run", "0 Q0 1 1 1 t\n0 Q0 1 2 0.5 t\n", "line 2: found label '1' twice in row 0"),
    ("a.run", "0 Q0 9 1 1 t\n", "line 1: found label '9', expected a whole number from 0 to 3"),
    ("a.pred", "1:0.5 2\n", "line 1: found '2', expected label:score"),
    ("a.pred", "1:0.5\n1:0.5 1:0.25\n", "line 2: found label '1' twice"),
    ("a.csv", "row,label,score\n0,1\n", "line 2: found 2 cells, expected 3"),
    ("a.csv", "row,label,score\n0,1,1e999\n", "line 2: found the score '1e999'"),
    ("a.json", "[[1, 2", "no JSON"),
    ("a.json", "[[1, 1.5]]", "found 1.5 in row 0"),
    ("a.json", "[[[1, null]]]", r"found \[1, None\] in row 0"),
    ("a.jsonl", '{"labels": [1], "scores": [1, 2]}\n', r"line 1: found scores: \[1, 2\], expected a list of 1"),
    ("a.jsonl", '{"labels": [true], "scores": [1]}\n', "line 1: found the label True"),
    ("a.jsonl", '{"labels": [1], "scores": [NaN]}\n', "line 1: found the score nan"),
    ("a.jsonl", "{", "line 1: found '{', expected one whole JSON object"),
    ("a.npy", b"\x93NUMPY\x01\x00", "no readable .npy file"),
    ("a.mat", b"MATLAB 5.0 MAT-file, cut", "no readable .mat file"),
    ("a.mat", b"MATLAB 7.3 MAT-file, Platform: GLNXA64", r"found MATLAB 7.3 \(HDF5\), expected version 7 or older"),
    ("a.txt", "what is this\n", "found 'what is this', expected one of the known formats"),
    ("a.txt", b"\xff\xfe0 Q0 1", "expected one of the known formats"),
    ("a.csv", b"row,label,score\n0,\xff,1\n", "line 2: found bytes that are no UTF-8"),
]


@pytest.mark.parametrize(("name", "content", "message"), FAULTS)
def test_faults_are_named_with_their_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=message) as caught:
        formats.read_predictions(path, n_labels=4)
    assert name in str(caught.value)


@pytest.mark.parametrize("kind", ["sparse", "dense", "turned"])
def test_matlab(tmp_path, truth, kind):
    """As SciPy writes them, which MATLAB reads; a matrix with points in its columns is turned where the sizes say so."""
    n, n_labels = truth.shape
    scores = sparse.random(n, n_labels, 0.6, "csr", rng=np.random.default_rng(0))
    given = {"sparse": lambda a: a.tocsc(), "dense": lambda a: a.toarray(), "turned": lambda a: a.T.tocsc()}[kind]
    scipy.io.savemat(tmp_path / "Y.mat", {"Y": given(truth), "alpha": 0.5})
    scipy.io.savemat(tmp_path / "scores.mat", {"score_mat": given(scores)}, do_compression=True)
    asked = {"n_labels": n_labels} if kind == "turned" else {}
    assert (formats.read_truth(tmp_path / "Y.mat", **asked) != truth).nnz == 0
    top = formats.read_predictions(tmp_path / "scores.mat", **asked)
    # In a dense one the zeros are scores, too.
    expected = TopK.from_scores(scores.toarray() if kind == "dense" else scores, n_labels)
    assert top.ids.tolist() == expected.ids[:, : top.ids.shape[1]].tolist()
    features = formats.read_features(tmp_path / "scores.mat", n_features=n_labels)
    np.testing.assert_array_equal(features.toarray(), scores.toarray().astype(np.float32))


def test_matlab_with_several_matrices_is_refused(tmp_path):
    path, matrices = tmp_path / "a.mat", {"X": np.eye(3), "Y": np.eye(3)}
    for content, came in ((matrices, "the matrices X, Y, expected one"), ({"name": "text"}, "no matrix of numbers")):
        scipy.io.savemat(path, content)
        with damaged(path, match=came):
            formats.read_truth(path)


def test_matlab_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"Y": np.zeros((300, 300))}, do_compression=True)
    assert formats.read_truth(path).shape == (300, 300)
    monkeypatch.setenv("XCREPRO_MAX_UNPACKED", "10000")
    with damaged(path):
        formats.read_truth(path)


def test_a_truth_to_write_may_be_lists(tmp_path, truth):
    formats.write_truth(tmp_path / "a.txt", [row.indices.tolist() for row in truth], n_labels=7)
    assert (formats.read_truth(tmp_path / "a.txt") != truth).nnz == 0


def test_arguments_are_named(tmp_path, truth, top):
    with pytest.raises(DataMissing):
        formats.read_truth(tmp_path / "none.txt")
    with pytest.raises(ArgumentError, match="'trec'"):
        formats.read_truth(tmp_path / "none.txt", "trecs")
    with refused("path", match=r"\.qrels"):
        formats.write_truth(tmp_path / "a.doc", truth)
    with refused("format", match="xc"):
        formats.write_truth(tmp_path / "a.txt", truth, "omikuji")
    with refused("label_names", 2, match="7"):
        formats.write_truth(tmp_path / "a.csv", truth, label_names=["a", "b"])
    with pytest.raises(ArgumentError, match="TREC file"):
        formats.write_predictions(tmp_path / "a.run", top, label_names=NAMES.names)
    with refused("label_names", 2, match="7"):
        formats.write_dataset(tmp_path / "a.arff", truth, truth, label_names=["a", "b"])
    with pytest.raises(ArgumentError, match="n_labels"):
        formats.read_truth(tmp_path / "a.csv", "csv", n_label=3)
    assert list(tmp_path.iterdir()) == []


def test_the_list_of_formats_is_whole():
    lines = formats.table()
    assert [line["format"] for line in lines] == [format.name for format in FORMATS]
    assert all(line["reads"] for line in lines)
    called = [name for format in FORMATS for name in (format.name, *format.aliases)]
    assert len(called) == len(set(called))
    for format in FORMATS:
        for verb in ("read", "write"):
            for kind in format.can(verb):
                assert format.function(f"{verb}_{kind}").__doc__, (format.name, verb, kind)
    assert json.dumps(lines)


def test_what_a_spreadsheet_would_run_is_text():
    texts = ["=1+1", "+1", "-2+3", "@SUM(1)", "\t=1", "plain", "a=b", ""]
    table = pd.DataFrame({"label": range(8), "name": texts, "=share": np.linspace(-1, 1, 8), "right": [True] * 8})
    safe = csv.without_formulas(table)
    assert safe["name"].tolist() == ["'=1+1", "'+1", "'-2+3", "'@SUM(1)", "'\t=1", "plain", "a=b", ""]
    assert [*safe] == ["label", "name", "'=share", "right"]
    assert safe["'=share"].equals(table["=share"])
    assert safe["right"].dtype == bool
    assert table["name"].tolist() == texts


# ---------------------------------------------------------------- round trips with the real packages, where they are installed


@pytest.fixture(scope="module")
def data():
    """Features, a truth with an empty row, predictions for it."""
    rng = np.random.default_rng(5)
    X = sparse.random(30, 12, 0.5, "csr", np.float32, rng)
    dense = (rng.random((30, 9)) < 0.3).astype(np.float32)
    dense[4] = 0
    Y = sparse.csr_matrix(dense)
    scores = rng.random((30, 9)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.3] = -np.inf
    return X, Y, TopK.from_scores(scores, 5)


def test_napkinxc_reads_our_data_and_we_take_its_lists(tmp_path, data):
    napkinxc = pytest.importorskip("napkinxc.datasets")
    models = pytest.importorskip("napkinxc.models")
    X, Y, _ = data
    write_xc(tmp_path / "train.txt", X, Y)
    found, lists = napkinxc.load_libsvm_file(str(tmp_path / "train.txt"))
    assert (sparse.csr_matrix(found) != X).nnz == 0
    model = models.PLT(str(tmp_path / "model"))
    model.fit(found, lists)
    pairs = model.predict_proba(found, top_k=3)
    top = TopK.from_pairs(pairs, n_labels=9)
    # Its truth as it hands it over, lists of label ids, one of them empty.
    assert evaluate(lists, top, (1, 3)).equals(evaluate(Y, top, (1, 3)))
    for name in ("some.json", "some.pred"):
        formats.write_predictions(tmp_path / name, top)
        same(formats.read_predictions(tmp_path / name, n_labels=9), top)
    text = repr(pairs).replace("(", "[").replace(")", "]")
    (tmp_path / "printed.json").write_text(text)
    same(formats.read_predictions(tmp_path / "printed.json", n_labels=9), top)
    (tmp_path / "truth.json").write_text(repr(lists))
    assert (formats.read_truth(tmp_path / "truth.json", n_labels=9) != Y).nnz == 0


def test_trec_eval_reads_our_files(tmp_path, data):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pip install pytrec-eval-terrier")
    _, Y, top = data
    formats.write_truth(tmp_path / "some.qrels", Y)
    formats.write_predictions(tmp_path / "some.run", top)
    with open(tmp_path / "some.qrels") as qrels, open(tmp_path / "some.run") as run:
        qrel, ranking = pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(run)
    found = pytrec_eval.RelevanceEvaluator(qrel, {"P_5", "ndcg_cut_5", "P_1"}).evaluate(ranking)
    rows = [int(name) for name in found]
    ours = evaluate(Y[rows], top.rows(rows), metrics=["P@1", "P@5", "nDCG@5"])["value"]
    theirs = [np.mean([values[name] for values in found.values()]) for name in ("P_1", "P_5", "ndcg_cut_5")]
    assert np.allclose(ours, theirs)


def test_svmlight_of_scikit_learn(tmp_path, data):
    from sklearn.datasets import dump_svmlight_file

    X, Y, _ = data
    dump_svmlight_file(X, Y, str(tmp_path / "some.txt"), zero_based=True, multilabel=True)
    found = formats.read_dataset(tmp_path / "some.txt", "xc", n_features=12, n_labels=9)
    assert np.allclose(found[0].toarray(), X.toarray(), rtol=1e-6)
    assert (found[1] != Y).nnz == 0
