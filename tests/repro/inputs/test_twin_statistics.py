"""The statistics that a twin is held to, against plain loops over dense matrices and worked by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.errors import DataMissing
from xcrepro.repro.inputs import twin_statistics as item
from xcrepro.repro.inputs.twin_statistics import statistics


def dataset(train, test=None, X=None):
    def split(Y, X=None):
        return Split(
            None if X is None else sparse.csr_matrix(X, dtype=np.float32), sparse.csr_matrix(Y, dtype=np.float32)
        )

    return Dataset("mine", split(train, X), split(train if test is None else test), A=0.55, B=1.5)


def test_by_hand():
    Y = np.zeros((10, 4))
    Y[:6, 0], Y[:5, 1], Y[9, 2] = 1, 1, 1
    found = statistics(dataset(Y, [[1, 0, 0, 0], [0, 1, 0, 1]]))
    assert found["head share"] == 0.6
    assert found["labels a point"] == pytest.approx(1.2)
    assert found["points with at most 2 labels"] == 1
    assert found["labels with at most 5 points"] == pytest.approx(2 / 3)
    assert found["test labels without a train point"] == pytest.approx(1 / 3)
    assert found["always beside another"] == 0.5  # label 1 beside 0; 2 has too few points
    assert found["nearest label"] == pytest.approx(5 / 30**0.5)
    assert found["pairs that co-occur"] == pytest.approx(1 / 3)
    assert found["distinct label sets"] == pytest.approx(4 / 10)
    assert (found["Popularity P@1"], found["Popularity P@3"]) == pytest.approx((50, 100 * 2 / 6))
    assert np.isnan(found["best phi"])


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_against_dense_loops(seed):
    rng = np.random.default_rng(seed)
    Y = (rng.random((60, 5)) < rng.uniform(0.2, 0.9, 5)).astype(float)
    Y[0] = 1
    X = (rng.random((60, 7)) < 0.4) * rng.random((60, 7))
    X[:, 0] = Y[:, 0]
    found = statistics(dataset(Y, X=X))
    counts = Y.sum(0)
    assert found["sd of labels a point"] == pytest.approx(Y.sum(1).std())
    assert found["distinct label sets"] == pytest.approx(len(set(map(tuple, Y))) / 60)
    alike = (Y @ Y.T >= 3) & ~np.eye(60, dtype=bool)
    assert found["others that share 3 labels"] == pytest.approx(alike.sum(1).mean())
    gini = np.abs(counts[:, None] - counts[None]).mean() / (2 * counts.mean())
    assert found["Gini of label counts"] == pytest.approx(gini)
    often = counts >= 5
    beside = [any(all(Y[Y[:, a] > 0, b]) for b in range(5) if b != a) for a in np.flatnonzero(often)]
    assert found["always beside another"] == pytest.approx(np.mean(beside))
    used = np.flatnonzero(counts >= 20)
    with np.errstate(invalid="ignore", divide="ignore"):
        phi = np.nan_to_num([[np.corrcoef(Y[:, a], X[:, f] > 0)[0, 1] for f in range(7)] for a in used])
    if used.size:
        least, most = ((phi > 0.1 + off).sum(1).mean() for off in (1e-9, -1e-9))
        assert least <= found["features with phi > 0.1 a label"] <= most
        assert found["best phi"] == pytest.approx(np.maximum(phi.max(1), 0).mean())


def test_the_record_is_what_the_command_makes(real_data, root, tmp_path, monkeypatch):
    folders = [real_data(name) for name in ("bibtex", "delicious", "eurlex-4k-labels")]
    monkeypatch.setenv("XCREPRO_ROOT", str(tmp_path))
    made, committed = (pd.read_csv(path) for path in (item.write(item.count(folders[0].parent)), root / item.RECORD))
    # Another processor may round the last of the decimals to the other side.
    pd.testing.assert_frame_equal(made, committed, rtol=0, atol=1.5 * 10**-item.DECIMALS)


def test_datasets_that_are_not_there_stay_on_record(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_ROOT", str(tmp_path))
    with pytest.raises(DataMissing, match="none"):
        item.count(tmp_path / "none")
    path = tmp_path / item.RECORD
    path.parent.mkdir(parents=True)
    path.write_text("dataset,share,statistic,value\nbibtex,1.0,head share,0.9\nsomewhere,1.0,head share,0.014\n")
    monkeypatch.setattr(item, "real", lambda data: [("bibtex", 1.0, dataset(np.eye(4)[[0] * 5 + [1] * 5]))])
    assert item.write(item.count(tmp_path)) == path
    found = pd.read_csv(path)
    assert found.iloc[0].tolist() == ["bibtex", 1.0, "head share", 0.5]
    assert found.iloc[-1].tolist() == ["somewhere", 1.0, "head share", 0.014]
    assert not found["statistic"].isin(["best phi"]).any()  # no features
    assert found.groupby("dataset").size()["somewhere"] == 1
