"""``xcrepro evaluate`` says on stderr what does not fit and what the truth is; ``xcrepro fingerprint``."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from xcrepro import TopK
from xcrepro.__main__ import main
from xcrepro.repro.inputs import fingerprints
from xcrepro.tools import diagnose


@pytest.fixture
def files(twin, tmp_path):
    sparse.save_npz(tmp_path / "truth.npz", twin.test.Y)
    sparse.save_npz(tmp_path / "train.npz", twin.train.Y)
    TopK.from_scores(twin.test.observed_marginals, 5).save(tmp_path / "good.npz")
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
    top = TopK.load(files / "good.npz")
    top.rows(np.random.default_rng(0).permutation(len(top))).save(files / "shuffled.npz")
    out, err = evaluate(files, "shuffled.npz", capsys, "--csv", "--metrics", "P@1")
    assert "warning: no information: P@5 is" in err or "warning: no information: P@1 is" in err
    assert out.startswith("metric,k,value\nP,1,0.")
    TopK.from_scores(top.to_csr().T, 5).save(files / "turned.npz")
    _, err = evaluate(files, "turned.npz", capsys, status=2)
    assert "warning: transposed" in err
    TopK.from_ids(top.ids, n_labels=top.n_labels).save(files / "ranks.npz")
    _, err = evaluate(files, "ranks.npz", capsys, "--metrics", "ECE@5", status=2)
    assert "warning: no probabilities" in err
    assert "ranks" in err


def test_fingerprint_names_and_records(files, twin, capsys, monkeypatch):
    monkeypatch.setattr(fingerprints, "TABLE", files / "fingerprints.csv")
    assert main(["fingerprint", str(files / "truth.npz")]) == 0
    said = capsys.readouterr().out
    assert said.startswith(diagnose.fingerprint(twin.test.Y))
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
