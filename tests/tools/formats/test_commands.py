"""`xcrepro convert` and `xcrepro evaluate` over the formats."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from xcrepro import TopK, evaluate, write_xc
from xcrepro.__main__ import main
from xcrepro.tools import formats


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    dense = (rng.random((12, 6)) < 0.4).astype(np.float32)
    dense[3] = 0
    truth = sparse.csr_matrix(dense)
    top = TopK.from_scores(rng.random((12, 6)).astype(np.float32), 4)
    formats.write_truth("truth.txt", truth)
    formats.write_predictions("top.npz", top)
    (tmp_path / "names.txt").write_text("".join(f"name {label}\n" for label in range(6)))
    (tmp_path / "rows.txt").write_text("".join(f"point{row:02}\n" for row in range(12)))
    return truth, top


def values(text: str) -> dict:
    return {(row[0], int(row[1])): float(row[2]) for row in list(csv.reader(text.strip().splitlines()))[1:]}


@pytest.mark.parametrize(
    "target", ["p.txt", "p.txt.gz", "p.npy", "p.pred", "p.json", "p.jsonl", "p.csv", "p.run", "p/"]
)
def test_converted_predictions_are_evaluated_the_same(files, capsys, target):
    truth, top = files
    named = ["--labels", "names.txt", "--rows", "rows.txt"] if target in ("p.jsonl", "p.csv", "p/") else []
    assert main(["convert", "top.npz", target, *named]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("12 rows, up to 4 of 6 labels each")
    assert main(["evaluate", "truth.txt", target, "-k", "1", "3", "--csv", *named]) == 0
    expected = evaluate(truth, top, (1, 3))
    assert values(capsys.readouterr().out) == {(m, k): v for m, k, v in expected.itertuples(index=False)}


def test_label_names_are_kept(files, capsys, tmp_path):
    truth, _ = files
    write_xc("train.txt", sparse.random(12, 3, 0.5, "csr", np.float32, np.random.default_rng(0)), truth)
    assert main(["convert", "train.txt", "d.arff", "--labels", "names.txt"]) == 0
    assert main(["convert", "d.arff", "again.txt"]) == 0
    assert "label names: again.txt.labels.txt" in capsys.readouterr().out
    assert Path("again.txt").read_text() == Path("train.txt").read_text()
    assert Path("again.txt.labels.txt").read_text() == Path("names.txt").read_text()
    assert main(["convert", "d.arff", "t.jsonl", "--as", "truth"]) == 0
    first = {f"name {label}" for label in truth[0].indices}
    assert all(f'"{name}"' in Path("t.jsonl").read_text().splitlines()[0] for name in first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["truth.txt", "a.csv"],
            "kind must be given where a file may be more than one thing; got truth or predictions: say",
        ),
        (["truth.txt", "a.pdf"], "target must be of a format that holds truth or predictions or features"),
        (["top.npz", "a.run", "--rows", "names.txt"], "--rows must fit what is written, 12; got 6"),
        (["top.npz", "top.npz"], "target must be another file than the source"),
        (["truth.txt", "a.csv", "--as", "truth", "-k", "3"], "k goes with predictions, not with truth"),
        (["none.txt", "a.csv"], "no such file"),
    ],
)
def test_what_cannot_be_converted_is_said(files, capsys, arguments, message):
    assert main(["convert", *arguments]) == 2
    assert message in capsys.readouterr().err
