"""A few runs of the rehearsal at each commit, others each time, and the doors that its data come through."""

from __future__ import annotations

import math
import subprocess
import time

import pytest

from tests.rehearsal import __main__ as rehearsal
from tests.rehearsal import catalogue, doors, standins
from xcrepro.core.data import against_print, load

SOME = 1
"""Runs at each commit."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder of a rehearsal: this process takes its stand-ins until the test ends."""
    monkeypatch.setattr(against_print, "check_published", catalogue.PRINTED)
    catalogue.take(catalogue.write(tmp_path / "sizes.json", catalogue.shapes()))
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr("xcrepro.repro.inputs.download.RETRIES", 1)
    return tmp_path


@pytest.mark.parametrize("way", doors.WAYS)
@pytest.mark.parametrize("name", ["mediamill", "lf-amazontitles-131k", "amazontitles-670k"])
def test_the_doors(home, name, way):
    """Old and new format and ten columns, through each door."""
    shape = catalogue.shapes()[name]
    rehearsal.through(name, standins.archive(name, shape), way)
    ds = load.load(name)
    assert (ds.n_train, ds.test.Y.shape[0]) == (shape.n_train, shape.n_test)
    assert (ds.train.X.shape[1], ds.train.Y.shape[1]) == (shape.n_features, shape.n_labels)
    assert (ds.train.Y.nnz + ds.test.Y.nnz, ds.comparable) == (shape.pairs, True)
    assert (ds.label_features is not None) == (name == "lf-amazontitles-131k")


def test_the_strangers_are_strange(tmp_path):
    found = {folder.name: load.load(folder.name, folder) for folder in catalogue.strangers(tmp_path)}
    words, single, empty, labels = (found[name] for name in catalogue.STRANGERS)
    assert words.label_features.shape == (words.train.Y.shape[1], words.train.X.shape[1])
    assert set(single.train.Y.getnnz(axis=1)) == {1}
    assert 0 in empty.train.Y.getnnz(axis=1)
    assert ((empty.label_counts == 0) & (empty.test.Y.getnnz(axis=0) > 0)).any()
    assert labels.train.X is None


def test_some_notebooks(home, root):
    """Others at each commit, so that all come round; those of a reader's own data, which need no other stand-in."""
    rehearsal.prepare(home, {})
    runs = [
        run for run in rehearsal.runs(home) if run.dataset in catalogue.STRANGERS
    ]  # seconds; the others take longer
    count = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=root, capture_output=True, text=True).stdout
    step = next(step for step in range(len(runs) // 3, len(runs)) if math.gcd(step, len(runs)) == 1)
    chosen = [runs[(SOME * int(count or 0) + i) * step % len(runs)] for i in range(SOME)]
    found = rehearsal.rehearse(chosen, home, time.monotonic() + 3600)
    assert {name: said for name, said in found.items() if said[0] not in ("ok", "refused")} == {}
