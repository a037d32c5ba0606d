"""What the items share: runs to choose from."""

from __future__ import annotations

import dataclasses

import pytest
from scipy import sparse

import xcrepro as xc
from xcrepro.repro.papers.coverage import _common as common


@pytest.fixture
def saved(tmp_path, small, scores):
    """``saved(names)``: a dataset and a folder with predictions; long enough for the check of the rows' order."""

    def save(*names: str) -> tuple:
        for name in names:
            xc.TopK.from_scores(sparse.vstack([scores] * 40), 2).save(tmp_path / f"{name}.npz")
        return small(40), str(tmp_path)

    return save


def test_own_runs_stand_before_the_trees(saved, tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    ds, folder = saved("one", "two")
    found = common.runs(ds, 2, folder)
    assert [(name, [(run.number, run.tree is None) for run in runs]) for name, runs in found.items()] == [
        (tmp_path.name, [(0, True), (1, True)]),
        ("label tree", [(0, False), (1, False)]),
    ]
    bare = dataclasses.replace(ds, train=dataclasses.replace(ds.train, X=None))
    assert list(common.runs(bare, 2, folder)) == [tmp_path.name]


GOOD = {"model": "DiSMEC", "predictions": "", "heads": [5, 2]}
