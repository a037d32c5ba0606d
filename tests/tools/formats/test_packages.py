"""Round trips with the real packages, each skipped where its package is not installed.

The optional ones: ``pip install pyarrow pytrec-eval-terrier scikit-multilearn liac-arff annif``.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy import sparse

from xcrepro import TopK, evaluate, write_xc
from xcrepro.core.data.names import LabelNames, read_label_names, write_label_names
from xcrepro.tools import formats


def package(name: str, installed_as: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{installed_as} is not installed ({error})")


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


def same(one: TopK, other: TopK) -> None:
    k = min(one.k, other.k)
    assert np.array_equal(one.ids[:, :k], other.ids[:, :k])
    assert np.array_equal(one.scores[:, :k], other.scores[:, :k])


def equal(one, other) -> None:
    assert one.shape == other.shape
    assert abs(one - other).sum() == 0


# ---------------------------------------------------------------- napkinXC: its data, its lists


def test_napkinxc_reads_our_data_and_we_take_its_lists(tmp_path, data):
    napkinxc = package("napkinxc.datasets", "napkinxc")
    models = package("napkinxc.models", "napkinxc")
    X, Y, _ = data
    write_xc(tmp_path / "train.txt", X, Y)
    found, lists = napkinxc.load_libsvm_file(str(tmp_path / "train.txt"))
    equal(sparse.csr_matrix(found), X)
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
    equal(formats.read_truth(tmp_path / "truth.json", n_labels=9), Y)


# ---------------------------------------------------------------- TREC


def test_trec_eval_reads_our_files(tmp_path, data):
    pytrec_eval = package("pytrec_eval", "pytrec-eval-terrier")
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


# ---------------------------------------------------------------- Parquet


def test_parquet_of_pandas_and_pyarrow(tmp_path, data):
    pyarrow = package("pyarrow", "pyarrow")
    package("pyarrow.parquet", "pyarrow")
    import pandas as pd

    _, Y, top = data
    rows, places = np.nonzero(top.ids >= 0)
    table = pd.DataFrame({"row": rows, "label": top.ids[rows, places], "score": top.scores[rows, places]})
    table.sample(frac=1, random_state=0).to_parquet(tmp_path / "long.parquet")
    same(formats.read_predictions(tmp_path / "long.parquet", n_labels=9, n_rows=30), top)
    names = [f"name {label}" for label in range(9)]
    table["label"] = [names[label] for label in table["label"]]
    table["label"] = table["label"].astype("category")
    table.to_parquet(tmp_path / "named.parquet")
    same(formats.read_predictions(tmp_path / "named.parquet", label_names=names, n_rows=30), top)
    # What is written is a table of lists, as pandas reads them.
    formats.write_predictions(tmp_path / "ours.parquet", top)
    found = pd.read_parquet(tmp_path / "ours.parquet")
    assert [row.tolist() for row in found["labels"]] == [[i for i in row if i >= 0] for row in top.ids.tolist()]
    assert found["scores"][0].dtype == np.float32
    lists = pyarrow.table(
        {"labels": pyarrow.array([row.indices.tolist() for row in Y], pyarrow.large_list(pyarrow.uint16()))}
    )
    pyarrow.parquet.write_table(lists, tmp_path / "truth.parquet")
    equal(formats.read_truth(tmp_path / "truth.parquet", n_labels=9), Y)


# ---------------------------------------------------------------- ARFF


def test_arff_of_scikit_multilearn_both_ways(tmp_path, data):
    dataset = package("skmultilearn.dataset", "scikit-multilearn")
    X, Y, _ = data
    for location in ("end", "start"):
        dataset.save_to_arff(X, Y.astype(int), location, True, str(tmp_path / f"{location}.arff"))
        found = formats.read_dataset(tmp_path / f"{location}.arff")
        equal(found[0], X)
        equal(found[1], Y)
    formats.write_dataset(tmp_path / "ours.arff", X, Y, label_names=[f"it's no. {label}" for label in range(9)])
    theirs = dataset.load_from_arff(str(tmp_path / "ours.arff"), 9, load_sparse=True, return_attribute_definitions=True)
    equal(theirs[0].tocsr().astype(np.float32), X)
    equal(theirs[1].tocsr().astype(np.float32), Y)
    assert len(theirs[3]) == 9


# ---------------------------------------------------------------- Annif


def test_annif_reads_our_folder(tmp_path, data):
    corpus = package("annif.corpus", "annif")
    vocabulary = package("annif.vocab.subject_file", "annif")
    _, Y, top = data
    names = LabelNames(
        tuple(f"subject {label}" for label in range(9)), tuple(f"http://x.org/{label}" for label in range(9))
    )
    rows = [f"doc{row:02}" for row in range(30)]
    formats.write_truth(tmp_path / "docs", Y, "annif", label_names=names, row_ids=rows)
    write_label_names(tmp_path / "vocabulary.tsv", names)
    subjects = list(vocabulary.VocabFileTSV(str(tmp_path / "vocabulary.tsv"), "en").subjects)
    assert [(subject.uri, subject.labels["en"]) for subject in subjects] == list(
        zip(names.codes, names.names, strict=True)
    )

    class Subjects:
        by_uri = staticmethod(lambda uri: names.id(uri))
        by_label = staticmethod(lambda label, language: names.id(label))

    for row in rows:
        (tmp_path / "docs" / f"{row}.txt").write_text("a text")
    documents = corpus.DocumentDirectory(str(tmp_path / "docs"), Subjects, "en", require_subjects=True)
    theirs = [sorted(document.subject_set) for document in documents.documents]
    assert theirs == [row.indices.tolist() for row in Y]
    again = read_label_names(tmp_path / "vocabulary.tsv")
    equal(formats.read_truth(tmp_path / "docs", label_names=again, row_ids=rows), Y)
    # Its `index` writes four digits.
    for row, pairs in zip(rows, top.to_pairs(), strict=True):
        lines = [f"<{names.codes[label]}>\t{names.names[label]}\t{score:.04f}\n" for label, score in pairs]
        (tmp_path / "docs" / f"{row}.annif").write_text("".join(lines))
    found = formats.read_predictions(tmp_path / "docs", label_names=again)
    assert np.allclose(found.scores[top.ids >= 0], top.scores[top.ids >= 0], atol=1e-4)


# ---------------------------------------------------------------- scikit-learn


def test_svmlight_of_scikit_learn(tmp_path, data):
    from sklearn.datasets import dump_svmlight_file

    X, Y, _ = data
    dump_svmlight_file(X, Y, str(tmp_path / "some.txt"), zero_based=True, multilabel=True)
    found = formats.read_dataset(tmp_path / "some.txt", "xc", n_features=12, n_labels=9)
    assert np.allclose(found[0].toarray(), X.toarray(), rtol=1e-6)
    equal(found[1], Y)
