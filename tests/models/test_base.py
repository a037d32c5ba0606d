"""What every model has: parameters, checked input, probabilities, and files that are whole or not there."""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import json
import math
import os
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

import xcrepro as xc
from tests.naive import multilabel_problem, same_bits
from tests.refused import damaged, refused
from xcrepro import models as m
from xcrepro.core.errors import ArgumentError
from xcrepro.models import base
from xcrepro.models.networks import neural

X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
Y = np.array([[1, 0, 1, 0], [0, 0, 1, 0]])
Y2 = np.array([[0, 1, 0, 0], [0, 1, 0, 0]])


PROBABILISTIC = [m.Popularity(), m.OneVsRest(), m.PLT(trees=2, max_leaf=3), m.FastXML(trees=2), m.LPSR(partitions=2)]
PROBABILISTIC += [m.NeuralOneVsAll(dim=8, epochs=3), m.LabelAttention(dim=8, epochs=3, steps=30)]
PROBABILISTIC += [two(dim=8, epochs=2, shortlist=4) for two in (m.TwoTowers, m.GraphTowers)]
PROBABILISTIC += [m.ClusterNetwork(dim=8, epochs=3, max_leaf=3)]
SCORING = [m.OneVsRest("squared_hinge"), m.DiSMEC(), m.PWDiSMEC(), m.PfastXML(trees=2, A=0.6, B=2.6)]
SCORING += [m.PfastreXML(trees=2, inverse_propensity=np.linspace(1, 3, 9)), m.KNN(neighbours=5), m.CPLST(components=4)]
SCORING += [m.SLEEC(dim=4, neighbours=5, learners=2, rounds=3), m.MLCSSP(columns=4), m.LEML(rank=4, rounds=2)]
SCORING += [m.CS(measurements=6, sparsity=4), m.WSABIE(dim=4), m.PDSparse(epochs=3), m.ProXML(steps=40)]
MODELS = [*PROBABILISTIC, *SCORING, m.NeuralOneVsAll("squared_hinge", dim=8, epochs=3)]
FORESTS = [model for model in MODELS if isinstance(model, m.FastXML)]
ON_UNIT_ROWS = [model for model in MODELS if model not in FORESTS]
ON_SEEN_LABELS = [model for model in MODELS if not isinstance(model, (m.Popularity, m.NeuralOneVsAll, m.TwoTowers))]


def each(models):
    """A test for each model, which it gets unfitted and for itself."""
    return pytest.mark.parametrize("model", [pytest.param(model, id=repr(model)[:40]) for model in models])


@functools.cache
def _fitted(model):
    return copy.copy(model).fit(*multilabel_problem())


def fitted(model):
    """The model as the common problem taught it, trained once for all tests."""
    return copy.copy(_fitted(model))


def ids(model):
    return model.predict(X, 2).ids[0].tolist()


# ------------------------------------------------------------------------------ the package


def test_every_class_is_found_under_its_name():
    assert {type(model).__name__ for model in MODELS} == set(m.CLASSES)
    for name in m.CLASSES:
        kind = getattr(m, name)
        assert kind.__name__ == name
        assert issubclass(kind, m.Model)
        assert name in dir(m)
    with pytest.raises(AttributeError, match="no attribute 'Popular'"):
        m.Popular  # noqa: B018


# ------------------------------------------------------------------------------ parameters


def test_parameters_are_those_of_init_and_fit_leaves_them_alone():
    model = m.OneVsRest(C=3.0)
    want = {"loss": "logistic", "C": 3.0, "eps": 0.0001, "threshold": 0.01, "seed": 0}
    assert model.get_params() == model.get_params(deep=False) == want
    assert model.fit(X, Y) is model
    assert model.get_params() == want
    assert repr(m.DiSMEC(seed=2)) == "DiSMEC(C=1.0, eps=0.0001, threshold=0.01, seed=2)"  # loss is no parameter of it
    assert m.Popularity().get_params() == {}


def test_set_params_takes_all_or_nothing():
    model = m.OneVsRest()
    assert model.set_params(C=2, eps=0.5) is model
    assert (model.C, model.eps) == (2, 0.5)
    with refused("OneVsRest", "cost", "threshold, seed;"):
        model.set_params(C=5, cost=3)
    assert model.C == 2


WRONG = {"int": (-1, 1.5, True, None), "float": (-1.0, math.nan, "1"), "str": ("oak", None)}
WRONG["float | None"] = WRONG["float"]
MAY_BE_0 = {"seed", "threshold", "kmeans_eps", "hard", "bias", "B", "alpha", "shift", "dropout", "sparsity", "mix"}
MAY_BE_0 |= {"soft", "gamma", "gamma_positive", "gamma_negative"}
BEYOND = [
    ((m.OneVsRest,), "seed", (2**31,)),
    ((m.PLT,), "arity", (1,)),
    ((m.FastXML, m.PfastreXML, m.PLT), "C", (math.inf,)),
    ((m.PfastXML,), "inverse_propensity", ([1.0, 0.0, 1.0, 1.0], [1.0])),
    ((m.PfastreXML,), "alpha", (1.5,)),
    ((m.PfastreXML,), "gamma", (math.inf,)),
    ((m.NeuralOneVsAll, m.LabelAttention, m.ClusterNetwork), "dropout", (1.0,)),
    ((m.NeuralOneVsAll, m.TwoTowers, m.LabelAttention, m.WSABIE), "learning_rate", (1.5,)),
    ((m.NeuralOneVsAll,), "gamma_positive", (math.inf,)),
    ((m.NeuralOneVsAll,), "shift", (1.0,)),
    ((m.TwoTowers,), "strength", (math.inf,)),
    ((m.ClusterNetwork,), "levels", (3,)),
    ((m.ClusterNetwork,), "soft", (1.5,)),
    ((m.CS,), "sparsity", (0,)),
]


def wrong_parameters():
    """(class, parameter, value): what is of another type, too small, or too large."""
    for kind in (getattr(m, name) for name in m.CLASSES):
        for field in dataclasses.fields(kind):
            zero = (0,) if field.type != "str" and field.name not in MAY_BE_0 else ()
            for value in (*WRONG.get(field.type, ()), *zero) if field.init else ():
                if (field.name, value) != ("bias", -1.0):
                    yield kind, field.name, value
    for kinds, name, values in BEYOND:
        yield from ((kind, name, value) for kind in kinds for value in values)


def test_a_parameter_that_breaks_its_rule_is_named_by_fit():
    wrong = list(wrong_parameters())
    assert len(wrong) > 500
    for kind, name, value in wrong:
        model = kind(**{name: value})
        with refused(name):
            model.fit(np.eye(4), np.eye(4))
        with pytest.raises(m.NotFitted):  # nothing half-done
            model.predict(np.eye(4))


def test_scikit_learn_can_clone_it():
    from sklearn.base import clone

    model = m.OneVsRest(C=3.0).fit(X, Y)
    copy = clone(model)
    assert copy is not model
    assert repr(copy) == repr(model)
    with pytest.raises(m.NotFitted):
        copy.predict(X)


# ------------------------------------------------------------------------------ fit and predict


def test_fit_learns_the_shape_and_a_second_fit_starts_anew():
    model = m.Popularity().fit(X, Y)
    assert ids(model) == [2, 0]
    assert ids(model.fit(X, Y2)) == [1, 0]
    model.fit(np.ones((1, 5)), np.ones((1, 6)))
    assert (model.n_features_, model.n_labels_) == (5, 6)
    assert model.predict(np.ones((2, 5))).ids.shape == (2, 5)  # five predictions by default
    with refused("X", 3, "the 5 features"):
        model.predict(X)


def test_unfitted_is_an_error_of_its_own(tmp_path):
    for do in (lambda one: one.predict(X), lambda one: one.predict_proba(X), lambda one: one.save(tmp_path / "m")):
        with pytest.raises(m.NotFitted, match=r"Popularity\(\) is"):
            do(m.Popularity())
    for do in (lambda one: one.predict_coverage(X), lambda one: one.structure()):
        with pytest.raises(m.NotFitted):
            do(m.PLT())
    assert issubclass(m.NotFitted, ValueError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "truth", "argument", "got"),
    [
        (X, Y[:1], "Y", "1 rows"),
        (X, 0 * Y, "Y", "none in 2 rows"),
        (X, -Y, "Y", "-1 at row 0, label 0"),
        (X[0], Y, "X", "ndarray of shape (3,) and dtype float64"),
        ([["a"]], Y, "X", "list of shape (1, 1) and dtype <U1"),
        (np.array([[0, 1], [0, np.inf]]), Y, "X", "inf at row 1, feature 1"),
        (sp.csr_matrix([[0, 1], [np.nan, 0]]), Y, "X", "nan at row 1, feature 0"),
    ],
)
def test_faulty_training_data_is_refused_and_nothing_is_learned(given, truth, argument, got):
    model = m.Popularity().fit(X, Y2)
    with refused(argument, got):
        model.fit(given, truth)
    assert ids(model) == [1, 0]


@pytest.mark.parametrize("k", [0, -1, 1.0, True, "5", None])
def test_faulty_k_is_refused(k):
    with refused("k", repr(k)):
        m.Popularity().fit(X, Y).predict(X, k)


def test_check_features_makes_one_form_and_changes_nothing():
    tidy = sp.csr_matrix(X.astype(np.float32))
    assert np.shares_memory(base.check_features(tidy).data, tidy.data)
    untidy = sp.csr_matrix((np.array([2.0, 0.5, 0.5], np.float32), [2, 0, 0], [0, 3]), shape=(1, 3))
    before = untidy.copy()
    got = base.check_features(untidy)
    assert got.toarray().tolist() == [[1.0, 0.0, 2.0]]
    assert got.has_canonical_format
    assert (untidy.data.tolist(), untidy.indices.tolist()) == (before.data.tolist(), before.indices.tolist())
    for given in (X.astype(int), X.tolist()):
        got = base.check_features(given)
        assert (type(got), got.dtype) == (sp.csr_matrix, np.float32)
        np.testing.assert_array_equal(got.toarray(), X)


@each(MODELS)
def test_input_may_come_in_any_form_and_is_left_alone(model):
    X, Y = multilabel_problem()
    want = fitted(model).predict(X, 3)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    forms = [X, sp.csr_array(X.astype(np.float64)), wide, sp.coo_matrix(X), X.toarray()]
    if model in ON_UNIT_ROWS:  # the forests' separators visit what is stored
        zero = sp.csr_matrix((np.append(X[4].data, 0.0), np.append(X[4].indices, 2), [0, 1]), shape=(1, 12))
        forms.append(sp.vstack([X[:4], zero, X[5:]]).tocsr())
    for given in forms:
        before = given.copy()
        assert same_bits(copy.copy(model).fit(given, sp.csr_array(Y)).predict(given, 3), want)
        assert (given != before).sum() == 0


@pytest.fixture(scope="module")
def wide(twin):
    """X, Y and new rows: labels and rows enough for two threads, whatever a model shares out, or samples."""
    return twin.train.X, twin.train.Y[:, :300], sp.vstack([twin.test.X] * 2)


@each(MODELS)
def test_the_seed_decides_and_not_the_number_of_threads(model, wide, monkeypatch):
    monkeypatch.setattr(neural, "_BLOCK", 50)  # several blocks of labels
    X, Y, queries = wide
    if isinstance(model, m.PfastXML) and model.inverse_propensity:
        model = copy.copy(model).set_params(inverse_propensity=None)

    def predicted(threads, **changed):
        monkeypatch.setenv("XCREPRO_THREADS", threads)
        return copy.copy(model).set_params(**changed).fit(X, Y).predict(queries, 10)

    want = predicted("1")
    assert same_bits(want, predicted("2"))
    if "seed" in model.get_params():
        assert not same_bits(want, predicted("2", seed=1))


@each(ON_UNIT_ROWS)
def test_the_length_of_a_row_does_not_matter(model):
    X, Y = multilabel_problem()
    top = copy.copy(model).fit(X * np.float32(2.0**70), Y).predict(X * np.float32(2.0**-40))
    assert same_bits(top, fitted(model).predict(X))


@each(MODELS)
def test_rows_without_features_are_predicted_alike_and_no_rows_too(model):
    X, _ = multilabel_problem()
    top = fitted(model).predict(sp.vstack([X[4], X[0], sp.csr_matrix((2, 12))]), 3)
    assert top.ids[0, 0] >= 0
    assert same_bits(top.rows([0, 0]), top.rows([2, 3]))
    none = fitted(model).predict(np.zeros((0, 12)), 3)
    assert none.ids.shape == none.scores.shape == (0, 3)


@each(ON_SEEN_LABELS)
def test_labels_never_seen_are_not_predicted(model):
    X, _ = multilabel_problem()
    top = fitted(model).predict(X, 12)
    assert (top.ids.shape, top.n_labels) == ((80, 12), 9)
    for ids, scores in zip(top.ids, top.scores, strict=True):
        found = (ids >= 0).sum()
        assert set(ids[:found]) <= {0, 1, 2, 4, 5, 6, 7}
        if not isinstance(model, m.FastXML | m.KNN | m.SLEEC | m.CS):  # these predict no more than they find
            assert found == 7
        assert np.isfinite(scores[:found]).all()
        assert (scores[found:] == -np.inf).all()


@each([m.OneVsRest("squared_hinge"), m.PLT(trees=2, max_leaf=3)])
def test_parameters_set_after_fit_wait_for_the_next_fit(model, tmp_path):
    X, _ = multilabel_problem()
    model = fitted(model)
    want = model.predict(X)
    model.set_params(loss="logistic" if model.loss == "squared_hinge" else "squared_hinge", seed=5)
    assert same_bits(model.predict(X), want)
    model.save(tmp_path / "m")
    assert same_bits(m.load(tmp_path / "m").predict(X), want)


# ------------------------------------------------------------------------------ probabilities


@each(PROBABILISTIC)
def test_predict_proba_holds_the_k_best(model):
    model, (X, _) = fitted(model), multilabel_problem()
    matrix = model.predict_proba(X, k=4)
    assert type(matrix) is sp.csr_matrix
    assert (matrix.dtype, matrix.indices.dtype) == (np.float32, np.int32)
    assert matrix.has_canonical_format
    assert same_bits(xc.TopK.from_scores(matrix, 4), model.predict(X, 4))
    assert 0 <= matrix.data.min() < matrix.data.max() <= 1
    everything = model.predict(X, 9)
    assert model.predict_proba(X).nnz == (everything.ids >= 0).sum()


@each(SCORING)
def test_scores_are_not_called_probabilities(model):
    with pytest.raises(m.NotFitted):
        copy.copy(model).predict_proba(X)
    with pytest.raises(ArgumentError, match="calibrate"):
        fitted(model).predict_proba(multilabel_problem()[0])


# ------------------------------------------------------------------------------ files


def test_save_and_load(tmp_path):
    model = m.Popularity().fit(X, Y)
    model.save(tmp_path / "deep" / "m")
    about = json.loads((tmp_path / "deep" / "m" / "model.json").read_text())
    arrays = hashlib.sha256((tmp_path / "deep" / "m" / "arrays.npz").read_bytes()).hexdigest()
    assert len(about.pop("sha256")) == 64
    want = {"class": "Popularity", "parameters": {}, "n_features": 3, "n_labels": 4, "xcrepro": xc.__version__}
    assert about == want | {"files": {"arrays.npz": arrays}}
    loaded = m.Popularity.load(os.fspath(tmp_path / "deep" / "m"))
    assert same_bits(loaded.predict(X, 4), model.predict(X, 4))
    assert os.listdir(tmp_path / "deep") == ["m"]
    assert oct((tmp_path / "deep" / "m").stat().st_mode & 0o777) == "0o755"


@each(MODELS)
def test_saved_and_loaded_it_is_the_same(model, tmp_path):
    X, _ = multilabel_problem()
    model = fitted(model)
    want, parameters = model.predict(X, 9), model.get_params()
    model.save(tmp_path / "m")
    for _ in range(2):
        loaded = m.load(tmp_path / "m")
        assert type(loaded) is type(model)
        assert loaded.get_params() == parameters
        assert same_bits(loaded.predict(X, 9), want)
        loaded.save(tmp_path / "m")  # over the folder it came from


def test_a_saved_model_is_replaced_and_anything_else_is_not(tmp_path):
    path = tmp_path / "m"
    m.Popularity().fit(X, Y).save(path)
    (path / "left_over").write_text("of the old model")
    m.Popularity().fit(X, Y2).save(path)
    assert ids(m.Popularity.load(path)) == [1, 0]
    assert sorted(os.listdir(path)) == ["arrays.npz", "model.json"]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep")
    (tmp_path / "file").write_text("keep")
    for other in ("notes", "file"):
        with refused("path", tmp_path / other):
            m.Popularity().fit(X, Y).save(tmp_path / other)
    assert (tmp_path / "notes" / "mine.txt").read_text() == (tmp_path / "file").read_text() == "keep"
    assert sorted(os.listdir(tmp_path)) == ["file", "m", "notes"]


def test_load_names_what_is_wrong(tmp_path):
    path = tmp_path / "m"

    def fault(found, change, file="m"):
        shutil.rmtree(path, ignore_errors=True)
        m.Popularity().fit(X, Y).save(path)
        change()
        with damaged(file, match=found):
            m.load(path)

    def about(**changes):
        text = json.loads((path / "model.json").read_text())
        (path / "model.json").write_text(base._sealed(json.dumps({**text, **changes, "files": base._digests(path)})))

    def other_arrays(**arrays):
        np.savez(path / "arrays.npz", **arrays)
        about()

    def rewritten(old, new):
        (path / "model.json").write_text((path / "model.json").read_text().replace(old, new))

    fault("no model.json", lambda: (path / "model.json").unlink())
    fault("JSONDecodeError", lambda: (path / "model.json").write_text("{"), "model.json")
    fault("KeyError: 'class'", lambda: (path / "model.json").write_text("{}"), "model.json")
    fault("KeyError: 'n_labels'", lambda: rewritten("n_labels", "n_lables"), "model.json")
    fault("class 'os'", lambda: about(**{"class": "os"}), "model.json")
    fault("arrays.npz is missing", lambda: (path / "arrays.npz").unlink())
    fault("arrays.npz is not", lambda: (path / "arrays.npz").write_bytes(b"PK"))
    fault("arrays.npz is not", lambda: np.savez(path / "arrays.npz", label_counts=[1]))
    fault("model.json is not", lambda: rewritten('"n_features": ', '"n_features": 1'))
    fault("'n_train'", lambda: other_arrays(label_counts=[1]))
    fault("counts of labels", lambda: other_arrays(label_counts=[1], n_train=np.int64(3)))
    fault("argument 'no'", lambda: about(parameters={"no": 1}))


def test_load_of_a_class_takes_no_other(tmp_path):
    m.Popularity().fit(X, Y).save(tmp_path / "m")
    with damaged("m", match="a Popularity"):
        m.OneVsRest.load(tmp_path / "m")
    m.DiSMEC().fit(X, Y).save(tmp_path / "m")
    assert type(m.OneVsRest.load(tmp_path / "m")) is m.DiSMEC
