"""Saved predictions in the baselines' place: every form is read, and what cannot be the dataset's is refused."""

from __future__ import annotations

import dataclasses
import gzip

import numpy as np
import pytest
from scipy import sparse

from tests import naive
from tests.refused import refused
from xcrepro import twin
from xcrepro.core.data.write import write_sparse
from xcrepro.core.errors import DataError, DataMissing
from xcrepro.core.predictions import TopK
from xcrepro.repro.inputs import baselines


@pytest.fixture(scope="module")
def ds():
    return twin("bibtex", scale=0.1, seed=0)


@pytest.fixture(scope="module")
def top(ds):
    return TopK.from_scores(ds.test.observed_marginals, 5)


def test_every_form_under_its_file_name(ds, top, tmp_path):
    top.save(tmp_path / "ours.npz")
    sparse.save_npz(tmp_path / "pyxclib.npz", ds.test.observed_marginals)
    write_sparse(tmp_path / "text.txt", ds.test.observed_marginals)
    with gzip.open(tmp_path / "packed.txt.gz", "wb") as file:
        file.write((tmp_path / "text.txt").read_bytes())
    naive.save_calibration_npz(tmp_path / "interchange.npz", top, ds.test.Y)
    (tmp_path / ".hidden").write_text("no")
    found = baselines.predictions(ds, ["Popularity"], given=str(tmp_path), places=5)
    assert list(found)[-1] == "Popularity"  # the baselines stand beside
    assert found.pop("Popularity").k == 5
    assert list(found) == ["interchange", "ours", "packed", "pyxclib", "text"]
    for name, read in found.items():
        np.testing.assert_array_equal(read.ids, top.ids, err_msg=name)
    assert list(baselines.predictions(ds, ["Popularity"], given=str(tmp_path / "ours.npz"))) == ["ours", "Popularity"]


def test_places_are_cut(ds, top, tmp_path):
    top.save(tmp_path / "a.npz")
    assert baselines.saved(str(tmp_path), ds, places=2)["a"].k == 2


def test_nothing_there(ds, tmp_path):
    for place in (tmp_path, tmp_path / "gone.npz"):
        with pytest.raises(DataMissing, match="no predictions"):
            baselines.saved(str(place), ds)


def from_one(top):
    """Ids from 1, wrapped into range: hits are then chance."""
    return TopK.from_ids(np.where(top.ids >= 0, (top.ids + 1) % top.n_labels, -1), n_labels=top.n_labels)


def shuffled(top):
    return top.rows(np.random.default_rng(0).permutation(len(top)))


FAULTS = {
    "points and": lambda ds, top, file: top.rows(slice(1, None)).save(file),
    "expected the dataset's": lambda ds, top, file: TopK.from_ids(top.ids, n_labels=top.n_labels + 1).save(file),
    "test row 0": lambda ds, top, file: naive.save_calibration_npz(file, top, ds.test.Y[::-1]),
    "model.npz": lambda ds, top, file: file.write_bytes(b"half of it"),
}


@pytest.mark.parametrize("match", FAULTS)
def test_what_cannot_be_the_datasets(ds, top, tmp_path, match):
    FAULTS[match](ds, top, tmp_path / "model.npz")
    with pytest.raises(DataError, match=match):
        baselines.saved(str(tmp_path), ds)


@pytest.mark.parametrize(("fault", "kind"), [(shuffled, "no information"), (from_one, "labels renumbered")])
def test_what_does_not_fit_is_said_and_not_refused(ds, top, tmp_path, fault, kind):
    fault(top).save(tmp_path / "model.npz")
    with pytest.warns(UserWarning, match=f"model.npz: {kind}"):
        found = baselines.saved(str(tmp_path), ds)
    np.testing.assert_array_equal(found["model"].ids, fault(top).ids)


def test_two_files_of_a_name(ds, top, tmp_path):
    top.save(tmp_path / "model.npz")
    write_sparse(tmp_path / "model.txt", ds.test.observed_marginals)
    with pytest.raises(DataError, match="'model'"):
        baselines.saved(str(tmp_path), ds)


def test_the_same_labels_for_all_rows_have_no_order(ds, tmp_path):
    ids = np.tile(np.array([[0, 1, 2]], np.int32), (ds.test.Y.shape[0], 1))
    TopK.from_ids(ids, n_labels=ds.test.Y.shape[1]).save(tmp_path / "popular.npz")
    with pytest.warns(UserWarning, match=r"popular.npz: below popularity"):  # none of the three is frequent
        assert baselines.saved(str(tmp_path), ds)["popular"].k == 3


def test_a_readers_predictions_in_place_of_the_models(ds, top, tmp_path):
    top.save(tmp_path / "ours.npz")
    for names in ([], ["ours"]):
        assert list(baselines.predictions(ds, names, given=str(tmp_path))) == ["ours"]
    for names, given, least in (([], "", 1), ([], str(tmp_path), 2), (["Popularity"], "", 2)):
        with refused("models", match=f"{least} model"):
            baselines.predictions(ds, names, given=given, least=least)


def test_unknown_baseline(ds):
    for name in ("Parabell", "Neural, hinge"):
        with refused("names", repr(name)):
            baselines.predictions(ds, [name])


def test_words_of_labels_are_part_of_what_is_trained():
    lf = twin("lf-amazontitles-131k", scale=0.001)
    other = dataclasses.replace(lf, label_features=lf.label_features[::-1].tocsr())
    names = ["Two towers", "Two towers + graph", "Neural + soft labels", "PLT + labels", "Neural + labels"]
    assert [baselines.needs_label_features(name) for name in [*names, "PLT"]] == [True] * 5 + [False]
    for name in names:
        mine, theirs = (baselines.training(name, ds) for ds in (lf, other))
        assert mine.folder != theirs.folder
        assert mine.folder == baselines.training(name, dataclasses.replace(lf)).folder
    as_points = baselines.training("PLT + labels", lf)
    n_labels = lf.train.Y.shape[1]
    assert as_points.X.shape[0] == as_points.truth.n_rows == lf.n_train + n_labels
    assert (as_points.truth.to_csr()[lf.n_train :] != sparse.identity(n_labels)).nnz == 0
    assert (as_points.X[lf.n_train :] != lf.label_features).nnz == 0
    towers = baselines.training("Two towers", lf)
    assert (towers.further["label_features"] != lf.label_features).nnz == 0
    with refused("names", "'Two towers'"):
        baselines.training("Two towers", dataclasses.replace(lf, label_features=None))
