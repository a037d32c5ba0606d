"""Round trips with the real packages, each skipped where its package is not installed.

The optional ones: ``pip install pytrec-eval-terrier napkinxc``.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy import sparse

from xcrepro import TopK, evaluate, write_xc
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


# ---------------------------------------------------------------- scikit-learn


def test_svmlight_of_scikit_learn(tmp_path, data):
    from sklearn.datasets import dump_svmlight_file

    X, Y, _ = data
    dump_svmlight_file(X, Y, str(tmp_path / "some.txt"), zero_based=True, multilabel=True)
    found = formats.read_dataset(tmp_path / "some.txt", "xc", n_features=12, n_labels=9)
    assert np.allclose(found[0].toarray(), X.toarray(), rtol=1e-6)
    equal(found[1], Y)
