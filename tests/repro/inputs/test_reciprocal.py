"""Reciprocal pairs: what is put in is there, and what a filter file says is read."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from tests.refused import damaged, refused
from tests.rehearsal import standins
from xcrepro.core.data import load, locate
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.errors import DataError, DataMissing
from xcrepro.repro.inputs import baselines, calibrated, parameters
from xcrepro.repro.inputs import reciprocal as item


@pytest.fixture(scope="module")
def lf():
    return xc.twin("lf-amazontitles-131k", scale=0.002, seed=0)


def test_every_pair_has_its_reciprocal_and_no_point_loses_its_last_label(lf):
    pairs = item.add_pairs(lf, 0.1, seed=3)
    ds, n_labels = pairs.ds, lf.train.Y.shape[1]
    points, labels = pairs.reciprocal
    assert points.size == round(0.1 * lf.test.Y.nnz)
    items, own = pairs.itself
    assert items.tolist() == np.unique(points).tolist()
    assert own.tolist() == list(range(n_labels, n_labels + items.size))
    words, train_X, train_Y = ds.label_features, ds.train.X[lf.n_train :], ds.train.Y[lf.n_train :]
    found = set()
    for row in range(train_X.shape[0]):
        # The label whose words the new train point has.
        (label,) = [one for one in np.unique(labels) if (words[one] != train_X[row]).nnz == 0]
        for column in train_Y[row].indices:
            point = items[column - n_labels]
            assert (words[column] != lf.test.X[point]).nnz == 0
            found.add((int(point), int(label)))
    assert found == set(zip(points.tolist(), labels.tolist(), strict=True))
    assert (pairs.kept[:, :n_labels] != lf.test.Y).nnz == 0
    assert pairs.kept.nnz - ds.test.Y.nnz == points.size
    assert not np.asarray(ds.test.Y[points, labels]).any()
    assert ((np.diff(ds.test.Y.indptr) == 0) == (np.diff(lf.test.Y.indptr) == 0)).all()
    assert (ds.train.Y[: lf.n_train, :n_labels] != lf.train.Y).nnz == 0
    assert set(ds.train.Y.data) == set(ds.test.Y.data) == {1.0}
    again = item.add_pairs(lf, 0.1, seed=3)
    assert again.reciprocal[0].tolist() == points.tolist()
    assert item.add_pairs(lf, 0.1, seed=4).reciprocal[0].tolist() != points.tolist()


def test_what_cannot_have_pairs_is_refused(lf):
    with refused("share", 0):
        item.add_pairs(lf, 0)
    with refused("dataset", match="words of"):
        item.add_pairs(dataclasses.replace(lf, label_features=None), 0.1)
    lonely = Split(lf.test.X[:2], csr_matrix(([1.0], ([0], [0])), shape=(2, lf.train.Y.shape[1])))
    with refused("dataset", match="two labels"):
        item.add_pairs(dataclasses.replace(lf, test=lonely), 0.5)


def toy():
    """Four points; label 4 is point 0 itself, and (0, 1), (2, 2) are reciprocal."""
    kept = csr_matrix(np.array([[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 0]], np.float32))
    removed = kept.tolil()
    removed[0, 1] = removed[2, 2] = 0
    split = Split(None, removed.tocsr().astype(np.float32))
    split.Y.eliminate_zeros()
    ds = Dataset("toy", split, split, 0.55, 1.5)
    return item.Pairs(ds, (np.array([0]), np.array([4])), (np.array([0, 2]), np.array([1, 2])), kept, "toy")


def test_filters_tell_the_point_itself_from_reciprocal_pairs():
    filters = toy().filters()
    assert list(filters) == ["none", "itself", "reciprocal", "all"]
    assert [part.tolist() for part in filters["all"]] == [[0, 0, 2], [4, 1, 2]]
    assert filters["none"][0].size == 0


def test_a_real_filter_file(tmp_path):
    ds = toy().ds
    with pytest.raises(DataMissing, match=r"filter_labels_test\.txt"):
        item.read_pairs(ds, str(tmp_path))
    (tmp_path / locate.FILTER).write_text("0 4\n2 2\n")
    pairs = item.read_pairs(ds, str(tmp_path))
    assert list(pairs.filters()) == ["none", "all"]
    assert pairs.kept is None
    (tmp_path / locate.FILTER).write_text("9 0\n")
    with pytest.raises(DataError):
        item.read_pairs(ds, str(tmp_path))


# ---------------------------------------------------------------- a dataset that has a filter


@pytest.fixture
def filtered(tmp_path, monkeypatch):
    """A small dataset with a filter file, in a folder; its models are trained into a cache of their own."""
    made = standins.content(standins.Shape(120, 40, 60, 12, 400), seed=5)
    for path, text in standins.files("lf-amazontitles-131k", made).items():
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / Path(path).name).write_text(text)
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    return tmp_path / "mine"


def test_pairs_of_the_filter_are_taken_out_and_both_are_there(filtered):
    """Row by row by hand, from more places than are asked for."""
    ds = xc.load("mine", filtered)
    rows, labels = ds.excluded
    pairs = [tuple(map(int, line.split())) for line in (filtered / locate.FILTER).read_text().splitlines()]
    assert [*zip(rows.tolist(), labels.tolist(), strict=True)] == pairs
    assert pairs
    names = ["Popularity", "PLT", "PLT + labels"]
    asked = [*names, *(f"{one}{baselines.UNFILTERED}" for one in names)]
    found = baselines.predictions(ds, asked, places=3)
    assert list(found) == asked
    assert list(baselines.predictions(ds, asked[2:4])) == asked[2:4]
    assert baselines.needs_label_features(asked[-1])
    plain = baselines.predictions(dataclasses.replace(ds, excluded=None), names, places=12)
    moved = 0
    for name in names:
        np.testing.assert_array_equal(found[f"{name}{baselines.UNFILTERED}"].ids, plain[name].ids[:, :3])
        for row, ids in enumerate(plain[name].ids):
            wanted = [label for label in ids if label >= 0 and (row, label) not in pairs][:3]
            assert found[name].ids[row].tolist() == wanted + [-1] * (3 - len(wanted))
            moved += wanted != ids[:3].tolist()
            own = {int(label): float(score) for label, score in zip(ids, plain[name].scores[row], strict=True)}
            kept = found[name].scores[row]
            assert [own[label] for label in wanted] == kept[: len(wanted)].tolist()
    assert moved > 5


def test_a_notebook_s_own_training_is_filtered_too(filtered, root):
    """As the baselines are; and no notebook asks a training past the filter."""
    ds = load.load("mine", filtered)
    top = baselines.predicted(ds, baselines.training("PLT", ds), 7)
    wanted = baselines.predictions(ds, ["PLT"], places=7)["PLT"]
    assert (top.ids == wanted.ids).all()
    assert (top.scores == wanted.scores).all()
    assert top.ids.shape == (ds.test.Y.shape[0], 7)
    bare = baselines.training("PLT", ds).predictions(ds.test.X, 7)
    assert (top.ids != bare.ids).any()
    without = dataclasses.replace(ds, excluded=None)
    assert (baselines.predicted(without, baselines.training("PLT", ds), 7).ids == bare.ids).all()
    notebooks = sorted((root / "notebooks").glob("*/*.ipynb"))
    assert notebooks
    for file in notebooks:
        past = re.findall(r"[\w)\]]\.predictions\(ds\.test", file.read_text(encoding="utf-8"))
        assert not past, file


def test_a_reader_s_predictions_are_filtered_too(filtered):
    ds = xc.load("mine", filtered)
    top = xc.TopK.from_ids(np.tile(np.arange(6), (40, 1)), n_labels=12)
    top.save(filtered.parent / "own.npz")
    found = baselines.predictions(ds, [f"own{baselines.UNFILTERED}"], given=str(filtered.parent / "own.npz"), places=6)
    pairs = {*zip(*(part.tolist() for part in ds.excluded), strict=True)}
    assert list(found) == ["own", f"own{baselines.UNFILTERED}"]
    for row, ids in enumerate(found["own"].ids.tolist()):
        wanted = [label for label in range(6) if (row, label) not in pairs]
        assert ids == wanted + [-1] * (6 - len(wanted))
    assert (found[f"own{baselines.UNFILTERED}"].ids == np.arange(6)).all()


def test_the_notebook_about_the_filter_gets_what_it_takes_out_itself(filtered):
    ds = xc.load("mine", filtered)
    pairs = item.read_pairs(ds, filtered)
    assert pairs.ds.excluded is None
    with refused("names"):
        baselines.predictions(pairs.ds, [f"Popularity{baselines.UNFILTERED}"])
    np.testing.assert_array_equal(np.array(pairs.reciprocal), np.array(ds.excluded))


def test_the_filter_follows_the_labels_that_are_kept(filtered):
    ds = xc.load("mine", filtered)
    kept = np.array([1, 3, 4, 8, 11])
    small = calibrated.keep_labels(ds, kept)
    before = {
        (row, int(np.flatnonzero(kept == label)[0])) for row, label in zip(*ds.excluded, strict=True) if label in kept
    }
    assert {*zip(*(part.tolist() for part in small.excluded), strict=True)} == before
    none = np.setdiff1d(np.arange(12), ds.excluded[1])
    if none.size:
        assert calibrated.keep_labels(ds, none).excluded is None


def test_a_notebook_s_parameter_may_ask_for_both():
    parameters.check({"models": ["PLT", f"PLT{baselines.UNFILTERED}"]})
    for odd in (f"PLD{baselines.UNFILTERED}", baselines.UNFILTERED, f"PLT{2 * baselines.UNFILTERED}"):
        with refused("parameter models"):
            parameters.check({"models": [odd]})


def test_margins_stay_margins_without_the_filter():
    margins = xc.TopK.from_ids([[0, 1], [1, 0]], [[0.9, 0.2], [0.8, 0.4]], n_labels=2)
    both = calibrated.probabilities({"DiSMEC": margins, f"DiSMEC{baselines.UNFILTERED}": margins}, 2)
    np.testing.assert_array_equal(*(top.scores for top in both.values()))
    assert both["DiSMEC"].scores.min() == 0
    assert f"DiSMEC{baselines.UNFILTERED} (margins)" in calibrated.describe_scores(both)


@pytest.mark.parametrize(("text", "line"), [("0 1\n0 x\n", 2), ("0 1\n40 1\n", 2), ("0 12\n", 1), ("0\n", 1)])
def test_a_damaged_filter_is_no_filter_but_an_error(filtered, text, line):
    (filtered / locate.FILTER).write_text(text)
    with damaged(filtered / locate.FILTER, line):
        xc.load("mine", filtered)


def test_an_empty_filter_is_none(filtered):
    (filtered / locate.FILTER).write_text("")
    assert xc.load("mine", filtered).excluded is None
    (filtered / locate.FILTER).unlink()
    assert xc.load("mine", filtered).excluded is None
