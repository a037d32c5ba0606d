"""The first look at a split, against loops over sets of features, words and labels; and what the commands say of a truth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.refused import refused
from xcrepro.__main__ import main
from xcrepro.repro.inputs import fingerprints

d = xc.diagnose
ROW = st.lists(st.integers(-2, 2), min_size=4, max_size=4)
TEXT = st.lists(st.sampled_from(["Cats", "cats,", "DOGS!", "dogs", "fox", "red fox", "-"]), max_size=4).map(" ".join)


def kinds(found):
    return {finding.kind: finding.evidence for finding in found}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ROW, TEXT), min_size=1, max_size=5), st.lists(st.tuples(ROW, TEXT), min_size=1, max_size=5))
def test_points_of_both_splits_equal_sets(test, train):
    X, X_train = (sp.csr_matrix(np.array([row for row, _ in part])) for part in (test, train))
    texts, train_texts = ([text for _, text in part] for part in (test, train))

    def words(text):
        return {word for word in "".join(c if c.isalnum() else " " for c in text.lower()).split()}

    def features(row):
        return {at for at, value in enumerate(row) if value}

    of = {
        "features": [bool(features(r)) and any(features(r) == features(o) for o, _ in train) for r, _ in test],
        "words": [bool(words(t)) and any(words(t) == words(o) for _, o in train) for _, t in test],
    }
    found = kinds(d.first_look(np.ones((len(test), 1)), X=X, X_train=X_train, texts=texts, train_texts=train_texts))
    rows = [row for row in range(len(test)) if of["features"][row] or of["words"][row]]
    evidence = found.get("points of both splits", {"rows": np.zeros(0), "features": 0, "words": 0})
    assert evidence["rows"].tolist() == rows
    assert {name: evidence[name] for name in of} == {name: sum(flags) for name, flags in of.items()}


def test_a_stored_zero_is_no_feature_and_many_features_do_not_collide():
    X = sp.csr_matrix((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 3))
    assert kinds(d.first_look(np.ones((1, 1)), X=X[:1], X_train=X[1:]))["points of both splits"]["features"] == 1
    rng = np.random.default_rng(0)
    some = sp.csr_matrix(rng.random((2000, 40)) < 0.3)
    sets = [tuple(row.indices) for row in some]
    same = sum(one in {*sets[1000:]} for one in sets[:1000])
    found = kinds(d.first_look(np.ones((1000, 1)), X=some[:1000], X_train=some[1000:]))
    assert found.get("points of both splits", {"features": 0})["features"] == same


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_metrics_over_seen_labels_equal_a_loop(seed):
    rng = np.random.default_rng(seed)
    Y, counts = rng.random((6, 8)) < 0.4, rng.integers(0, 3, 8)
    counts[0] = 1
    ids = np.array([rng.permutation(8)[:5] for _ in range(6)])
    ids[0, 3:] = -1
    top = xc.TopK.from_ids(ids, n_labels=8)
    truth, own = d.over_seen(Y, top, counts)
    for k in (1, 2, 5):
        hits = []
        for row in range(6):
            seen = [label for label in ids[row] if label >= 0 and counts[label] > 0][:k]
            hits.append(sum(bool(Y[row, label]) for label in seen) / k)
        assert xc.metrics.precision(truth, own, k)[0] == pytest.approx(np.mean(hits))
    assert truth.shape[1] == own.n_labels == (counts > 0).sum()
    found = kinds(d.first_look(Y, Y_train=(counts > 0)[None, :]))
    pairs = int(Y[:, counts == 0].sum())
    labels = int(Y[:, counts == 0].any(axis=0).sum())
    expected = {"labels unseen in training": {"pairs": pairs, "labels": labels, "of": int(Y.sum())}} if pairs else {}
    assert found == expected


def test_names_that_stand_in_the_text():
    Y = [[1, 1, 0], [0, 1, 1]]
    texts = ["On the RED fox, and cats.", "Redfox and  red\tFOXES"]
    found = kinds(d.first_look(Y, texts=texts, label_names=["cats", "red fox", "dogs"]))
    assert found == {"names in texts": {"named": 2, "pairs": 4}}
    assert d.first_look(Y, texts=["", ""], label_names=["cats", "red fox", "dogs"]) == []


def test_what_does_not_fit_is_refused():
    Y = [[1, 0], [0, 1]]
    with refused("Y_train", 3):
        d.first_look(Y, Y_train=[[1, 0, 0]])
    with refused("X", 1):
        d.first_look(Y, X=sp.csr_matrix([[1]]), X_train=sp.csr_matrix([[1]]))
    with refused("texts", 1):
        d.first_look(Y, texts=["a"], label_names=["a", "b"])
    with refused("label_names", 1):
        d.first_look(Y, texts=["a", "b"], label_names=["a"])
    top = xc.TopK.from_ids([[0], [1]], n_labels=2)
    with refused("label_counts"):
        d.over_seen(Y, top, [1, 2, 3])
    with refused("label_counts", "none"):
        d.over_seen(Y, top, [0, 0])


def test_evaluate_says_what_it_sees(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, rows in (("t.json", "[[0, 2], [1]]"), ("train.json", "[[0], [1], [1]]"), ("p.json", "[[2, 0], [1, 0]]")):
        (tmp_path / name).write_text(rows)
    given = ["t.json", "p.json", "--n-labels", "3", "-k", "1", "--train-truth", "train.json", "--csv"]
    assert main(["evaluate", *given, "--from", "lists", "--metrics", "P"]) == 0
    said = capsys.readouterr().err
    assert "1 of 3 relevant pairs (33.3 %) are of 1 labels" in said
    assert "over seen labels: P@1 = 1.000000" in said
    assert (
        main(["evaluate", *given, "--from", "lists", "--metrics", "binned macro-F1"]) == 0
    )  # not asked for by its name


@pytest.mark.parametrize(
    ("metric", "words"),
    [("P@1", "counts 0"), ("nDCG@1", "counts 0"), ("ECE@1", "no prediction"), ("macro-P@1", "no prediction")],
)
def test_a_row_without_labels_counts_0_only_in_means_over_rows(metric, words):
    """By hand: the first row of two has a hit, the second no label; ECE is larger for it, and not smaller."""
    Y, top = np.array([[1, 0], [0, 0]]), xc.TopK.from_scores(np.array([[0.9, 0.1], [0.8, 0.2]]), 1)
    (line,) = xc.diagnose.counted(Y, top, 1, metric)
    assert words in line
    with_it, without = (xc.evaluate(Y[rows], top.rows(rows), metrics=[metric])["value"][0] for rows in ([0, 1], [0]))
    assert f"{metric} = {without:.6f}" in line
    assert (with_it == without / 2) or words == "no prediction"


# ---------------------------------------------------------------- evaluate and fingerprint


@pytest.fixture
def files(twin, tmp_path):
    sp.save_npz(tmp_path / "truth.npz", twin.test.Y)
    sp.save_npz(tmp_path / "train.npz", twin.train.Y)
    xc.TopK.from_scores(twin.test.observed_marginals, 5).save(tmp_path / "good.npz")
    return tmp_path


def evaluate(folder, predictions: str, capsys, *more: str, status: int = 0) -> tuple[str, str]:
    assert main(["evaluate", str(folder / "truth.npz"), str(folder / predictions), *more]) == status
    said = capsys.readouterr()
    return said.out, said.err


def test_what_fits_is_named_and_no_more(files, twin, capsys):
    out, err = evaluate(files, "good.npz", capsys, "--train-truth", str(files / "train.npz"))
    text = f"the test split of {twin.name}, a synthetic twin of Bibtex: no printed result is about it"
    assert err.splitlines()[1] == f"truth: {text}"
    # Two rows of these predictions have fewer than five; nothing else is said.
    assert [line.split(";")[0] for line in err.splitlines()[2:]] == [
        "note: 2 of 503 rows have fewer than 5 predictions"
    ]
    assert out.split()[:3] == ["metric", "k", "value"]


def test_what_does_not_fit_is_a_warning_and_the_numbers_are_the_same(files, twin, capsys):
    top = xc.TopK.load(files / "good.npz")
    top.rows(np.random.default_rng(0).permutation(len(top))).save(files / "shuffled.npz")
    out, err = evaluate(files, "shuffled.npz", capsys, "--csv", "--metrics", "P@1")
    assert "warning: no information: P@5 is" in err or "warning: no information: P@1 is" in err
    assert out.startswith("metric,k,value\nP,1,0.")


def test_fingerprint_names_and_records(files, twin, capsys, monkeypatch):
    monkeypatch.setattr(fingerprints, "TABLE", files / "fingerprints.csv")
    assert main(["fingerprint", str(files / "truth.npz")]) == 0
    said = capsys.readouterr().out
    assert said.startswith(d.fingerprint(twin.test.Y))
    assert "synthetic twin of Bibtex" in said
    record = ["fingerprint", str(files / "truth.npz"), "--dataset", "wiki10-31k", "--record"]
    assert main(record) == 2
    assert "--part goes" in capsys.readouterr().err
    assert main([*record, "--part", "test"]) == 0
    assert [line.dataset for line in fingerprints.table()] == ["wiki10-31k"]
    assert main(["fingerprint", str(files / "truth.npz"), "--record"]) == 2
    assert "--record goes" in capsys.readouterr().err


def test_all_splits_of_a_dataset(real_data, tmp_path, capsys, monkeypatch):
    committed = fingerprints.table()
    monkeypatch.setattr(fingerprints, "TABLE", tmp_path / "fingerprints.csv")
    assert main(["fingerprint", "--dataset", "bibtex", "--folder", str(real_data("bibtex")), "--record"]) == 0
    assert fingerprints.table() == tuple(line for line in committed if line.dataset == "bibtex")
    assert capsys.readouterr().out.count("bibtex, t") == 2
