"""napkinXC's models behind our interface: against scikit-learn's optimum, napkinXC itself, the edges, and Bibtex."""

from __future__ import annotations

import gc
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import xcrepro as xc
from tests.naive import multilabel_problem, same_bits
from xcrepro.errors import ArgumentError, DataError
from xcrepro.models import linear

KINDS = {
    "logistic": lambda **more: xc.models.OneVsRest(**more),
    "squared_hinge": lambda **more: xc.models.OneVsRest("squared_hinge", **more),
    "dismec": lambda **more: xc.models.DiSMEC(**more),
    "tree": lambda **more: xc.models.NapkinPLT(max_leaves=4, **more),
    "trees": lambda **more: xc.models.NapkinPLT(max_leaves=4, ensemble=3, **more),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def dense_margins(model):
    """What the model learned, as one (D + 1, L) array, the bias last."""
    return np.vstack([model.weights_.toarray(), model.bias_])


# ------------------------------------------------------------------------------ what is learned


@pytest.mark.parametrize(("loss", "C"), [("logistic", 10.0), ("logistic", 0.5), ("squared_hinge", 1.0)])
def test_weights_are_those_of_scikit_learn_at_the_optimum(loss, C):
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    X, Y = multilabel_problem()
    model = xc.models.OneVsRest(loss, C=C, eps=1e-6, threshold=0.0).fit(X, Y)
    X = X.toarray().astype(float)
    length = np.sqrt((X**2).sum(axis=1, keepdims=True))
    with_bias = np.hstack([np.divide(X, length, out=np.zeros_like(X), where=length > 0), np.ones((len(X), 1))])
    for label in range(Y.shape[1]):
        y = Y[:, [label]].toarray().ravel()
        if y.any():
            if loss == "logistic":
                oracle = LogisticRegression(C=C, fit_intercept=False, solver="newton-cg", tol=1e-10, max_iter=1000)
            else:
                oracle = LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-10, max_iter=10000)
            want = oracle.fit(with_bias, y).coef_.ravel()
            np.testing.assert_allclose(dense_margins(model)[:, label], want, rtol=2e-3, atol=2e-3)


def test_default_cost_is_ten_for_logistic_and_one_for_the_hinge():
    X, Y = multilabel_problem()
    for kind, C in (("logistic", 10.0), ("squared_hinge", 1.0), ("dismec", 1.0)):
        by_default, other = KINDS[kind](), KINDS[kind](C=3.0)
        assert same_bits(by_default.fit(X, Y).predict(X), KINDS[kind](C=C).fit(X, Y).predict(X))
        assert not same_bits(by_default.predict(X), other.fit(X, Y).predict(X))


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_probabilities_and_margins_are_napkinxc_s(loss, twin):
    from napkinxc.models import BR

    X, Y, Xt = twin.train.X, twin.train.Y, twin.test.X
    model = xc.models.OneVsRest(loss).fit(X, Y)
    top = model.predict(Xt, Y.shape[1])
    name, C = linear._LOSSES[loss]
    with tempfile.TemporaryDirectory() as folder, linear._seeded(0):
        napkin = BR(folder, loss=name, liblinear_c=C, liblinear_eps=0.01, weights_threshold=0.01, threads=1)
        napkin.fit(X, Y)
        theirs = napkin.predict_proba(Xt, top_k=int(Y.shape[1]))
    want = xc.TopK.from_pairs([dict(sorted(row)).items() for row in theirs], n_labels=Y.shape[1]).to_csr().toarray()
    if loss == "squared_hinge":
        top = xc.TopK(top.ids, np.exp(-(np.maximum(0, 1 - top.scores) ** 2)), top.n_labels)
    got = top.to_csr().toarray()
    seen = np.asarray(Y.sum(axis=0)).ravel() > 0
    np.testing.assert_allclose(got[:, seen], want[:, seen], atol=2e-5)
    assert not got[:, ~seen].any()


def test_scores_are_the_margins_of_the_unit_rows():
    X, Y = multilabel_problem()
    model = xc.models.DiSMEC().fit(X, Y)
    top = model.predict(X, 3)
    learned = dense_margins(model)
    for i, row in enumerate(X.toarray().astype(float)):
        length = np.sqrt((row**2).sum())
        margins = np.append(row / length if length else row, 1.0) @ np.where(np.isfinite(learned), learned, -1e9)
        order = sorted(range(margins.size), key=lambda label: (-margins[label], label))[:3]
        assert top.ids[i].tolist() == order
        np.testing.assert_allclose(top.scores[i], margins[order], rtol=1e-6)


def test_threshold_prunes_weights_and_not_biases():
    X, Y = multilabel_problem()
    whole = dense_margins(xc.models.DiSMEC(threshold=0.0).fit(X, Y))
    pruned = dense_margins(xc.models.DiSMEC(threshold=0.3).fit(X, Y))
    np.testing.assert_array_equal(pruned[:-1], np.where(np.abs(whole[:-1]) >= 0.3, whole[:-1], 0))
    np.testing.assert_array_equal(pruned[-1], whole[-1])
    assert ((np.abs(whole[:-1]) < 0.3) & (whole[:-1] != 0)).any()
    assert (np.abs(whole[-1]) < 0.3).any()
    assert xc.models.DiSMEC().threshold == 0.01


def test_dismec_is_one_vs_rest_with_the_squared_hinge():
    X, Y = multilabel_problem()
    one = xc.models.OneVsRest("squared_hinge", C=1, threshold=0.01).fit(X, Y)
    assert same_bits(one.predict(X), xc.models.DiSMEC().fit(X, Y).predict(X))


# ------------------------------------------------------------------------------ repeatable


def test_fits_at_the_same_time_do_not_disturb_each_other(twin):
    def work(_):
        return xc.models.DiSMEC(eps=0.5).fit(twin.train.X, twin.train.Y).predict(twin.test.X)

    with ThreadPoolExecutor(2) as pool:
        assert same_bits(*pool.map(work, range(2)))


def test_training_gives_its_memory_back():
    """What the primal solvers of napkinXC do not: with them this grew by about 150 MB."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("no /proc to read the memory in use from")
    rng = np.random.default_rng(0)
    X = sp.random(500, 20000, 0.002, "csr", rng=rng)
    Y = sp.random(500, 400, 0.02, "csr", rng=rng)

    def megabytes():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

    xc.models.DiSMEC().fit(X[:, :100], Y[:, :5])
    before = megabytes()
    xc.models.DiSMEC().fit(X, Y)
    gc.collect()
    assert megabytes() - before < 60


def test_another_process_learns_the_same_bits(twin):
    script = """
import xcrepro as xc, zlib
twin = xc.twin("eurlex-4k", scale=0.05, seed=0)
for model in (xc.models.OneVsRest(), xc.models.NapkinPLT(max_leaves=4, ensemble=3)):
    top = model.fit(twin.train.X, twin.train.Y).predict(twin.test.X, 10)
    print(zlib.crc32(top.ids.tobytes() + top.scores.tobytes()))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    here = (KINDS[kind]().fit(twin.train.X, twin.train.Y).predict(twin.test.X, 10) for kind in ("logistic", "trees"))
    assert [int(line) for line in run.stdout.split()] == [
        zlib.crc32(top.ids.tobytes() + top.scores.tobytes()) for top in here
    ]


def test_label_batches_do_not_change_the_weights(monkeypatch, capfd):
    """With little memory napkinXC trains the labels in batches."""
    X, Y = sp.vstack([sp.eye(90)] * 20), sp.vstack([sp.eye(90)] * 20)
    whole = xc.models.OneVsRest().fit(X, Y)
    options = linear.OneVsRest._options
    monkeypatch.setattr(linear, "_MEMORY", 0.0)
    monkeypatch.setattr(linear.OneVsRest, "_options", lambda model: options(model) | {"verbose": 2})
    cramped = xc.models.OneVsRest().fit(X, Y)
    assert capfd.readouterr().err.count("Assigning labels for base estimators") > 1
    np.testing.assert_array_equal(dense_margins(cramped), dense_margins(whole))


# ------------------------------------------------------------------------------ edges


@each_kind
def test_a_label_relevant_everywhere_comes_first(kind):
    X, Y = multilabel_problem()
    Y = Y.tolil()
    Y[:, 6] = 1
    top = KINDS[kind]().fit(X, Y).predict(X, 2)
    assert (top.ids[:, 0] == 6).all()
    if kind in ("squared_hinge", "dismec"):
        assert (top.scores[:, 0] == 10).all()


@each_kind
@pytest.mark.parametrize(
    ("X", "Y"),
    [
        (np.ones((1, 2)), np.array([[0, 1, 0]])),
        (np.eye(4), np.array([[1], [0], [1], [0]])),
        (np.eye(4), np.array([[0, 1]] * 4)),
        (np.eye(4), np.array([[0, 0], [0, 1], [0, 0], [0, 0]])),
    ],
    ids=["one row", "one label", "one label, always", "one positive"],
)
def test_smallest_problems(kind, X, Y):
    top = KINDS[kind]().fit(X, Y).predict(X, 2)
    assert (top.ids[:, 0] == Y.shape[1] // 2).all()
    assert (top.ids[:, 1] == -1).all()


@each_kind
def test_features_that_are_all_zero_are_refused(kind):
    X, Y = multilabel_problem()
    with pytest.raises(ArgumentError, match="X must have a feature that is not 0 in at least one row"):
        KINDS[kind]().fit(sp.csr_matrix(X.shape), Y)


def test_a_saturated_probability_does_not_make_a_tie():
    """Margins 18 and 20 are both 1.0 as float32 probabilities; the order stays that of the margins."""
    model = xc.models.OneVsRest().fit(np.eye(3), np.eye(3))
    model.weights_ = sp.csr_matrix((3, 3), dtype=np.float32)
    model.bias_ = np.array([18, 20, -200], np.float32)
    top = model.predict(np.eye(3), 3)
    assert top.ids[0].tolist() == [1, 0, 2]
    assert top.scores[0].tolist() == [1.0, 1.0, 0.0]


def test_large_weights_are_multiplied_sparse_with_the_same_bits(monkeypatch):
    X, Y = multilabel_problem()
    model = xc.models.OneVsRest().fit(X, Y)
    dense = model.predict(X, 4)
    monkeypatch.setattr(linear, "_DENSE", 0)
    monkeypatch.setattr(linear, "_BLOCK", 30)  # and in blocks of three rows
    assert same_bits(model.predict(X, 4), dense)


# ------------------------------------------------------------------------------ files and noise


def test_a_napkinxc_model_with_a_missing_or_cut_file_is_refused(tmp_path):
    X, Y = multilabel_problem()
    model = xc.models.NapkinPLT().fit(X, Y)
    for fault in ("cut", "gone"):
        model.save(tmp_path / "m")
        weights = tmp_path / "m" / "napkinxc" / "weights.bin"
        if fault == "cut":
            weights.write_bytes(weights.read_bytes()[:-1])
        else:
            weights.unlink()
        with pytest.raises(DataError, match=r"incomplete model \(napkinxc/weights.bin is missing, or not the"):
            xc.models.load(tmp_path / "m")


def test_no_folder_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path))
    X, Y = multilabel_problem()
    xc.models.OneVsRest().fit(X, Y)
    assert list(tmp_path.iterdir()) == []
    model = xc.models.NapkinPLT().fit(X, Y)
    assert len(list(tmp_path.iterdir())) == 1
    model.fit(X, Y)
    gc.collect()
    assert len(list(tmp_path.iterdir())) == 1
    assert model.predict(X).ids.shape == (80, 5)
    del model
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@each_kind
def test_nothing_is_printed(kind, capfd):
    X, Y = multilabel_problem()
    KINDS[kind]().fit(X, Y).predict(X, 20)
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------ what napkinXC makes


@pytest.mark.parametrize("tree_type", linear._TREES)
def test_every_tree_type_reaches_every_seen_label(tree_type):
    X, Y = multilabel_problem()
    top = xc.models.NapkinPLT(tree_type=tree_type, max_leaves=2).fit(X, Y).predict(X, 7)
    assert (np.sort(top.ids, axis=1) == [0, 1, 2, 4, 5, 6, 7]).all()


def entry(classes=2, first=1, size=4, pairs=False, body=b"", gradients=0):
    head = struct.pack("<iii", classes, first, 0)
    return head + struct.pack("<QQQQ?", size, 2, size, 2, pairs) + body + bytes([gradients]) if classes > 1 else head


DENSE = np.array([0, 0.5, 2.0, 0.0], "<f4").tobytes()


def test_the_weights_file_is_read_in_both_forms(tmp_path):
    pairs = struct.pack("<ifif", 1, 0.25, 3, -4.0)
    content = (
        struct.pack("<i", 3)
        + entry(body=DENSE)
        + entry(first=0, pairs=True, body=pairs)
        + entry(classes=1)
        + entry(classes=1, first=0)  # filler
    )
    (tmp_path / "w").write_bytes(content)
    weights, bias = linear._read_weights(tmp_path / "w", 2, 3)
    assert weights.toarray().tolist() == [[2, 0, 0], [0, 4, 0]]
    assert bias.tolist() == [0.5, -0.25, 10]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "unpack_from requires"),
        (struct.pack("<i", 2) + entry(body=DENSE), "2 labels instead of 1"),
        (struct.pack("<i", 1) + entry(body=DENSE)[:-4], "buffer is smaller"),
        (struct.pack("<i", 1) + entry(classes=3, body=DENSE), "3 classes, the first 1, for label 0"),
        (struct.pack("<i", 1) + entry(classes=1, first=0), "1 classes, the first 0, for label 0"),
        (struct.pack("<i", 1) + entry(body=DENSE, gradients=1), "gradients for label 0"),
        (struct.pack("<i", 1) + entry(body=DENSE) + entry(classes=1), "12 bytes too many"),
        (struct.pack("<i", 1) + entry(size=5, body=DENSE + DENSE[8:12]), "index 2 exceeds"),
    ],
)
def test_a_weights_file_of_another_form_is_refused(tmp_path, content, found):
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(DataError, match="weights as napkinXC") as caught:
        linear._read_weights(tmp_path / "w", 2, 1)
    assert found in str(caught.value)


def test_importing_the_models_does_not_import_napkinxc():
    code = "import sys, xcrepro; xcrepro.models.OneVsRest(); print('napkinxc' in sys.modules, 'sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert run.stdout.split() == ["False", "False"]
