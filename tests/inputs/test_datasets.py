"""Which data a notebook's parameters mean."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro import propensity, twin, write_xc
from xcrepro.data.twin import Twin
from xcrepro.errors import DataMissing
from xcrepro.inputs import datasets


def test_small_is_the_twin():
    ds = datasets.pick("eurlex-4k", "small", 0.02, seed=3)
    assert isinstance(ds, Twin)
    assert (ds.train.X != twin("eurlex-4k", scale=0.02, seed=3).train.X).nnz == 0
    assert datasets.registry_name(ds) == "eurlex-4k"
    assert "SYNTHETIC TWIN" in datasets.origin(ds)


def test_a_folder_is_the_readers_own_data_at_any_size(tmp_path):
    made = twin("bibtex", scale=0.05)
    for name in ("train", "test"):
        part = getattr(made, name)
        write_xc(tmp_path / f"{name}.txt", part.X, part.Y)
    for size in ("small", "paper"):
        ds = datasets.pick("mine", size, folder=str(tmp_path))
        assert not isinstance(ds, Twin)
        assert (ds.train.Y != made.train.Y).nnz == 0
        np.testing.assert_allclose(ds.test.X.toarray(), made.test.X.toarray(), rtol=1e-5)
        assert "real data" in datasets.origin(ds)
        assert datasets.registry_name(ds) == "mine"


def test_paper_without_a_folder_is_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    asked = []
    monkeypatch.setattr(datasets, "load", lambda *given: asked.append(given))
    datasets.pick("bibtex", "paper", scale=0.1, seed=1)
    assert asked == [("bibtex",)]


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(DataMissing, match=str(tmp_path)):
        datasets.pick("bibtex", folder=str(tmp_path / "gone"))


def test_weights_are_those_of_the_train_counts():
    ds = twin("bibtex", scale=0.05)
    expected = propensity.inverse(ds.train.Y.getnnz(axis=0), ds.train.Y.shape[0], 0.55, 1.5)
    np.testing.assert_array_equal(datasets.weights(ds), expected)
