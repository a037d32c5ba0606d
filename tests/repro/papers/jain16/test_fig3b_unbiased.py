"""Figure 3b: the folder of EURLex-4K's labels that the page makes, and numbers of its tables drawn again by loops."""

import os
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.repro.engine import recorded
from xcrepro.repro.inputs import baselines


@pytest.fixture
def halves(root, real_data, tmp_path, monkeypatch):
    """The dataset as the page makes it, in a folder with the label matrix."""
    shutil.copy(real_data("eurlex-4k-labels") / "Y_all_xcids_3993.txt", tmp_path)
    monkeypatch.chdir(tmp_path)
    page = (root / "data/recorded/README.md").read_text()
    exec(
        re.search(r"^## Half of the labels of EURLex-4K\n.*?```python\n(.*?)```", page, re.DOTALL | re.MULTILINE)[1], {}
    )
    return xc.load("EURLex-4K-labels", path=tmp_path / "EURLex-4K-labels")


def test_what_is_read_and_what_is_predicted_are_the_document(halves, real_data):
    whole = xc.data.read.read_sparse(real_data("eurlex-4k-labels") / "Y_all_xcids_3993.txt")
    found = {}
    for part in (halves.train, halves.test):
        for read, told in zip(part.X, part.Y, strict=True):
            assert not {*read.indices} & {*told.indices}
            assert 0 <= told.nnz - read.nnz <= 1
            labels = (*sorted({*read.indices, *told.indices}),)
            found[labels] = found.get(labels, 0) + 1
    expected = {}
    for row in whole:
        if row.nnz > 1:
            labels = (*sorted(row.indices),)
            expected[labels] = expected.get(labels, 0) + 1
    assert found == expected


def missing(ds) -> tuple[np.ndarray, float]:
    """Of 0.3 times the odds of jain16's equation 1: 1 / p of each label, and the percentage of the test labels gone."""
    counts = np.asarray(ds.train.Y.sum(axis=0)).ravel()
    c = (np.log(ds.n_train) - 1) * (1.5 + 1) ** 0.55
    weights = 1 + 0.3 * c * (counts + 1.5) ** -0.55
    return weights, 100 * (1 - (1 / weights[ds.test.Y.indices]).mean())


def of_record(root):
    record = recorded.read(root / "data/recorded/jain16/fig3b_unbiased/EURLex-4K-labels.csv")
    return recorded.frame(record, "draws")


def test_the_record_is_of_these_labels(root, halves):
    table = of_record(root).set_index(["strength", "k"]).loc[("odds x 0.3", 3)]
    assert halves.n_train == 15_539
    assert np.isclose(table["missing %"], missing(halves)[1], rtol=1e-5)


@pytest.mark.parametrize("data", ["TIB", "EURLex"] if os.environ.get("XCREPRO_LONG") else ["TIB"])
def test_a_table_is_drawn_again(root, data, request):
    """nDCG@3 of FastXML and one strength's mean of the unbiased estimate, point by point: the committed run's, the record's."""
    if data == "TIB":
        ds, table = xc.load("tib", points=8000), pd.read_csv(root / "figures/jain16/fig3b_unbiased-draws.csv")
        top = baselines.predictions(ds, ["FastXML"], 0)["FastXML"]
    else:
        ds, table = request.getfixturevalue("halves"), of_record(root)
        top = xc.models.FastXML(seed=0).fit(ds.train.X, ds.train.Y).predict(ds.test.X, k=5)
    table = table.set_index(["strength", "k"]).loc[("odds x 0.3", 3)]
    weights, gone = missing(ds)
    assert np.isclose(table["missing %"], gone, rtol=1e-5)
    gains = []  # of the hits at ranks 1 to 3: (point, gain, label)
    for row in range(len(top)):
        labels = {*ds.test.Y[row].indices}
        gains += [(row, 1 / np.log2(rank + 2), label) for rank, label in enumerate(top.ids[row, :3]) if label in labels]
    most = sum(1 / np.log2(rank + 2) for rank in range(3))
    complete = 100 * sum(gain for _, gain, _ in gains) / most / len(top)
    assert np.isclose(table["complete"], complete, rtol=1e-5)
    rng, labels = np.random.default_rng(3), np.array([label for *_, label in gains])
    worth = np.array([gain for _, gain, _ in gains]) * weights[labels]
    draws = [100 * worth[rng.random(worth.size) < 1 / weights[labels]].sum() / most / len(top) for _ in range(400)]
    assert abs(np.mean(draws) - table["PSnDCG"]) < 5 * np.std(draws) / np.sqrt(400)
    assert np.allclose(
        np.quantile(draws, (0.025, 0.975)), table[["PSnDCG low", "PSnDCG high"]].astype(float), atol=0.15
    )
