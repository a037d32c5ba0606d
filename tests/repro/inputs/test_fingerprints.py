"""A truth's fingerprint against a slow digest, what it does not depend on, and what is recognised by it."""

from __future__ import annotations

import csv
import hashlib
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import xcrepro as xc
from xcrepro.core.data import open_sets, registry
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.data.read import read_labels
from xcrepro.core.errors import ArgumentError
from xcrepro.core.truth import as_truth
from xcrepro.repro.inputs import datasets, fingerprints
from xcrepro.tools import diagnose


def slow(rows: list[list[int]], n_labels: int) -> str:
    """The digest written out: shape, then where each row ends, then the labels, little-endian 64-bit numbers."""
    numbers, ends, labels = [len(rows), n_labels], [0], []
    for row in rows:
        labels += sorted(row)
        ends.append(len(labels))
    text = b"".join(struct.pack("<q", number) for number in numbers + ends + labels)
    return hashlib.sha256(text).hexdigest()[:32]


@st.composite
def truths(draw):
    n_labels = draw(st.integers(1, 9))
    rows = draw(st.lists(st.sets(st.integers(0, n_labels - 1)), min_size=1, max_size=8))
    return [sorted(row) for row in rows], n_labels


def matrix(rows, n_labels: int) -> sparse.csr_matrix:
    dense = np.zeros((len(rows), n_labels))
    for i, row in enumerate(rows):
        dense[i, row] = 1
    return sparse.csr_matrix(dense)


@settings(max_examples=60, deadline=None)
@given(truths(), st.randoms(use_true_random=False))
def test_the_fingerprint_is_the_contents(case, random):
    rows, n_labels = case
    Y = matrix(rows, n_labels)
    want = slow(rows, n_labels)
    assert diagnose.fingerprint(Y) == want
    for other in (Y.toarray(), Y.toarray() > 0, Y.tocsc(), Y.tocoo(), (7 * Y).astype(np.int64), as_truth(Y)):
        assert diagnose.fingerprint(other) == want
    unsorted = Y.copy()
    for lo, hi in zip(unsorted.indptr[:-1], unsorted.indptr[1:], strict=True):
        unsorted.indices[lo:hi] = unsorted.indices[lo:hi][::-1]
    assert diagnose.fingerprint(unsorted) == want
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled = [rows[i] for i in order]
    assert (diagnose.fingerprint(matrix(shuffled, n_labels)) == want) == (shuffled == rows)
    assert fingerprints._of_rows(as_truth(matrix(shuffled, n_labels))) == fingerprints._of_rows(as_truth(Y))
    labels = list(range(n_labels))
    random.shuffle(labels)
    renamed = [[labels[label] for label in row] for row in shuffled]
    assert fingerprints._of_counts(as_truth(matrix(renamed, n_labels))) == fingerprints._of_counts(as_truth(Y))


@settings(max_examples=60, deadline=None)
@given(truths(), truths())
def test_another_content_has_another_digest(first, second):
    one, other = matrix(*first), matrix(*second)
    assert (diagnose.fingerprint(one) == diagnose.fingerprint(other)) == (first == second)
    same_rows = sorted(first[0]) == sorted(second[0]) and first[1] == second[1]
    assert (fingerprints._of_rows(as_truth(one)) == fingerprints._of_rows(as_truth(other))) == same_rows


@pytest.fixture
def on_record(tmp_path, monkeypatch):
    """A table of its own, empty."""
    monkeypatch.setattr(fingerprints, "TABLE", tmp_path / "fingerprints.csv")


@pytest.fixture
def toy():
    rng = np.random.default_rng(0)
    halves = [sparse.random(n, 159, 0.02, "csr", np.float32, rng) for n in (4880, 2515)]
    for half in halves:
        half.data[:] = 1
    return Dataset("bibtex", *(Split(None, half) for half in halves), 0.55, 1.5, entry=registry.get("bibtex"))


def test_what_is_on_record_is_recognised(on_record, toy):
    Y = toy.test.Y
    before = diagnose.recognise(Y)
    assert (before.match, before.name, before.part, before.comparable) == ("same shape", "bibtex", "test", False)
    assert "on record" in before.text
    fingerprints.write(fingerprints.of_dataset(toy, "3"))
    found = diagnose.recognise(Y)
    assert (found.match, found.name, found.part, found.comparable) == ("exact", "bibtex", "test", True)
    assert found.text == "Bibtex (real data), test split 3"
    assert diagnose.recognise(toy.train.Y).comparable is False
    rng = np.random.default_rng(1)
    other_order = diagnose.recognise(Y[rng.permutation(2515)])
    assert (other_order.match, other_order.comparable) == ("other order", False)
    assert "another order" in other_order.text
    assert diagnose.recognise(Y[rng.permutation(2515)][:, rng.permutation(159)]).match == "other labels"
    changed = Y.copy().tolil()
    changed[0, :] = 1
    found = diagnose.recognise(changed.tocsr())
    assert found.match == "same shape"
    assert "its one known content" in found.text
    assert diagnose.recognise(Y[:100]).match == "none"
    # Written again it stands there once.
    fingerprints.write(fingerprints.of_dataset(toy, "3"))
    assert len(fingerprints.table()) == 2


def test_a_truth_on_record_as_train_is_an_alarm(on_record, toy):
    blurred = toy.train.Y.toarray() * 0.5 + np.random.default_rng(2).random(toy.train.Y.shape)
    top = xc.TopK.from_scores(blurred, 3)
    assert diagnose.check(toy.train.Y, top) == []
    fingerprints.write(fingerprints.of_dataset(toy))
    (finding,) = diagnose.check(toy.train.Y, top)
    assert finding.kind == "training truth"
    assert "Bibtex (real data), train split" in finding.message


def test_a_twin_is_named_as_one(twin):
    named = diagnose.recognise(twin.test.Y, twin)
    assert (named.name, named.part, named.match, named.synthetic) == (twin.name, "test", "exact", True)
    assert not named.comparable
    assert "synthetic twin of Bibtex" in named.text
    assert diagnose.recognise(twin.test.Y_complete, twin).part == "test, complete"
    assert diagnose.recognise(twin.train.Y, twin).part == "train"
    assert diagnose.recognise(twin.test.Y).text == named.text  # on record
    assert diagnose.recognise(twin.train.Y_complete).part == "train, complete"
    assert diagnose.recognise(twin.test.Y, twins=False).match == "none"
    assert diagnose.recognise(twin.test.Y[::-1], twin).match == "none"
    with pytest.raises(ArgumentError, match="Dataset"):
        diagnose.recognise(twin.test.Y, "bibtex")


def test_twins_on_record_are_those_that_are_drawn():
    """The smallest, or with LONG=1 all: ``python -m xcrepro.repro.inputs.fingerprints`` writes them anew."""
    most = fingerprints.MOST_POINTS if os.environ.get("LONG") else 500
    with fingerprints.TWINS.open(newline="", encoding="utf-8") as file:
        kept = [fingerprints.KnownTwin(**line) for line in csv.DictReader(file)]
    drawn = [*fingerprints.twins(most)]
    names = {line.twin for line in drawn}
    assert [line for line in kept if line.twin in names] == drawn
    assert len(names) > 5


def test_committed_lines_are_in_order_and_known():
    lines = fingerprints.table()
    assert lines
    for line in lines:
        entry = registry.get(line.dataset)
        assert entry.name == line.dataset
        assert line.part in fingerprints.PARTS
        assert all(len(digest) == 32 for digest in (line.fingerprint, line.rows, line.counts))
        if line.part != "all" and ("committed" not in entry.archive or line.split == "0"):  # else of other sizes
            assert line.points == getattr(entry, f"n_{line.part}")
        assert line.labels == entry.n_labels
    assert len({line.fingerprint for line in lines}) == len(lines)


@pytest.mark.parametrize("name", registry.committed_names())
def test_every_split_of_open_data_is_recognised_and_equals_its_entry(name):
    entry = registry.get(name)
    for split in (*range(entry.splits), *open_sets.HOMES[name].splits):
        ds = xc.load(name, split=split)
        assert ds.comparable
        number = {"tutorial": 0}.get(split, split)
        for part, Y in (("train", ds.train.Y), ("test", ds.test.Y)):
            found = diagnose.recognise(Y)
            assert found.match == "exact"
            assert found.text == f"{entry.printed_name} (real data), {part} split {number}"
        if number == 0:
            sizes = ds.n_train, ds.test.Y.shape[0], ds.train.X.shape[1], ds.train.Y.shape[1]
            assert sizes == (entry.n_train, entry.n_test, entry.n_features, entry.n_labels)


def test_real_truths_are_those_on_record(real_data):
    folder = real_data("bibtex")
    found = diagnose.recognise(read_labels(folder / "sample_score/tst_X_Y.txt"))
    assert (found.name, found.part, found.match) == ("bibtex", "test", "exact")
    assert diagnose.recognise(xc.load("bibtex", folder).train.Y).part == "train"
    split = xc.load("delicious", real_data("delicious"), split=4)
    assert diagnose.recognise(split.test.Y).text == "Delicious (real data), test split 4"
    assert diagnose.recognise(split.test.Y, split).comparable


def test_a_split_that_is_none_of_those_on_record_has_no_printed_rows(real_data, tmp_path):
    """Rows dealt anew to train and test: every count and average is right, and it is another split."""
    folder = real_data("delicious")
    assert datasets.pick("delicious", folder=folder, split=2).comparable
    for name in ("delicious_data.txt", "delicious_trSplit.txt", "delicious_tstSplit.txt"):
        (tmp_path / name).symlink_to((folder / name).resolve())
    columns = {name: np.loadtxt(folder / f"delicious_{name}Split.txt", dtype=int) for name in ("tr", "tst")}
    columns["tr"][0, 0], columns["tst"][0, 0] = columns["tst"][0, 0], columns["tr"][0, 0]
    for name, rows in columns.items():
        (tmp_path / f"delicious_{name}Split.txt").unlink()
        np.savetxt(tmp_path / f"delicious_{name}Split.txt", rows, fmt="%d")
    other = datasets.pick("delicious", folder=tmp_path)
    assert not other.comparable
    assert datasets.printed_name(other) == ""
    assert "its 10 known contents" in other.notes[-1]
