"""Figure 3b on the labels of EURLex-4K: the folder that the page makes, and numbers of its record drawn again by loops."""

import re
import shutil

import numpy as np
import pytest

import xcrepro as xc
from xcrepro.repro import recorded


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


def test_the_record_is_drawn_again(root, halves):
    """nDCG@3 of FastXML on the other half, and one strength's mean of the unbiased estimate, point by point."""
    record = recorded.read(root / "data/recorded/jain16/fig3b_unbiased/EURLex-4K-labels.csv")
    table = recorded.frame(record, "draws").set_index(["strength", "k"]).loc[("odds x 0.3", 3)]
    top = xc.models.FastXML(seed=0).fit(halves.train.X, halves.train.Y).predict(halves.test.X, k=5)
    counts = np.asarray(halves.train.Y.sum(axis=0)).ravel()
    c = (np.log(15_539) - 1) * (1.5 + 1) ** 0.55  # jain16, equation 1
    weights = 1 + 0.3 * c * (counts + 1.5) ** -0.55
    gains = []  # of the hits at ranks 1 to 3: (point, gain, label)
    for row in range(len(top)):
        labels = {*halves.test.Y[row].indices}
        gains += [(row, 1 / np.log2(rank + 2), label) for rank, label in enumerate(top.ids[row, :3]) if label in labels]
    most = sum(1 / np.log2(rank + 2) for rank in range(3))
    complete = 100 * sum(gain for _, gain, _ in gains) / most / len(top)
    assert np.isclose(table["complete"], complete, rtol=1e-5)
    missing = 100 * (1 - (1 / weights[halves.test.Y.indices]).mean())
    assert np.isclose(table["missing %"], missing, rtol=1e-5)
    rng, labels = np.random.default_rng(3), np.array([label for *_, label in gains])
    worth = np.array([gain for _, gain, _ in gains]) * weights[labels]
    draws = [100 * worth[rng.random(worth.size) < 1 / weights[labels]].sum() / most / len(top) for _ in range(400)]
    assert abs(np.mean(draws) - table["PSnDCG"]) < 5 * np.std(draws) / np.sqrt(400)
    assert np.allclose(
        np.quantile(draws, (0.025, 0.975)), table[["PSnDCG low", "PSnDCG high"]].astype(float), atol=0.15
    )
