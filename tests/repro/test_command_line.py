"""The command line: what is printed, and the exit status."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import xcrepro
from xcrepro import TopK, evaluate
from xcrepro.__main__ import main
from xcrepro.core import propensity
from xcrepro.core.metrics import METRICS, corrected_ece
from xcrepro.core.metrics.registry import FAMILIES
from xcrepro.tools import formats


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    truth = sparse.random(30, 12, 0.2, "csr", np.float32, rng)
    truth.data[:] = 1
    scores = sparse.random(30, 12, 0.7, "csr", np.float32, rng)
    train = sparse.random(40, 12, 0.3, "csr", np.float32, rng)
    train.data[:] = 1
    sparse.save_npz(tmp_path / "train.npz", train)
    sparse.save_npz(tmp_path / "truth.npz", truth)
    sparse.save_npz(tmp_path / "scores.npz", scores)
    top = TopK.from_scores(scores, 5)
    top.save(tmp_path / "top.npz")
    lines = [f"{truth.shape[0]} {truth.shape[1]}"]
    lines += [" ".join(f"{label}:1" for label in truth[row].indices) for row in range(truth.shape[0])]
    (tmp_path / "truth.txt").write_text("\n".join(lines) + "\n")
    return tmp_path, truth, train, top


def values(text: str) -> dict:
    rows = list(csv.reader(text.strip().splitlines()))[1:]
    return {(metric, int(k)): float(value) for metric, k, value in rows}


def test_evaluate_is_the_functions_result(files, capsys):
    folder, truth, train, top = files
    expected = None
    for truth_name, predictions in (("truth.npz", "scores.npz"), ("truth.txt", "top.npz")):
        command = ["evaluate", str(folder / truth_name), str(folder / predictions), "-k", "1", "5", "--csv"]
        assert main([*command, "--train-truth", str(folder / "train.npz"), "--A", "0.6", "--B", "2.6"]) == 0
        found = values(capsys.readouterr().out)
        # Of the train labels: those of the test labels are others.
        counts = np.bincount(train.indices, minlength=12)
        weights = propensity.inverse(counts, 40, 0.6, 2.6)
        table = evaluate(truth, top, (1, 5), inverse_propensity=weights, label_counts=counts)
        expected = {(m, k): v for m, k, v in table.itertuples(index=False)}
        assert found == expected
    assert ("PSP", 5) in expected
    assert main(["evaluate", str(folder / "truth.npz"), str(folder / "top.npz"), "-k", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["metric", "k", "value"]


def test_evaluate_takes_metrics_by_name(files, capsys):
    folder, truth, _, top = files
    command = ["evaluate", str(folder / "truth.npz"), str(folder / "top.npz"), "--csv", "-k", "1"]
    names = ["P", "nDCG@5", "AP@4", *FAMILIES]
    assert main([*command, "--metrics", *names]) == 0
    expected = evaluate(truth, top, 1, metrics=names)
    assert values(capsys.readouterr().out) == {(m, k): v for m, k, v in expected.itertuples(index=False)}
    assert main([*command, "--metrics", "NDCG@5"]) == 2
    assert "'nDCG@5'?" in capsys.readouterr().err
    assert main([*command, "--metrics", "binned macro-F1@5"]) == 2
    assert "--train-truth" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main(["evaluate", "--list"])
    shown = capsys.readouterr().out.splitlines()
    assert left.value.code == 0
    assert len(shown) == 1 + len(METRICS) + len(FAMILIES)
    assert shown[1].startswith("P ")


def test_beside_an_ece_stands_what_noise_leaves_of_it(tmp_path, capsys):
    (tmp_path / "truth.txt").write_text("4 3\n0:1\n2:1\n0:1\n1:1\n")
    (tmp_path / "scores.txt").write_text("4 3\n0:0.5 1:0.2\n2:1\n0:0.6\n0:0.9\n")
    places = [str(tmp_path / name) for name in ("truth.txt", "scores.txt")]
    command = ["evaluate", *places, "-k", "1", "2", "--metrics", "ECE"]
    assert main(command) == 0
    shown = capsys.readouterr().out.splitlines()[3:]
    truth, top = formats.read_truth(tmp_path / "truth.txt"), formats.read_predictions(tmp_path / "scores.txt", k=2)
    for line, k in zip(shown, (1, 2), strict=True):
        found = corrected_ece(truth, top, k)
        assert line.startswith(f"ECE@{k} ")
        assert f": {found.corrected:.6f} (95 %: {found.low:.6f} to " in line
        assert line.endswith(f" {found.floor:.6f}")
    assert main([*command, "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "none.npz", "none.npz"], "none.npz"),
        (["evaluate", "none.npz", "none.npz", "--A", "1"], "--train-truth"),
        (["run", "-p", "seed", "1", "-p", "seed", "2"], "each parameter once"),
        (["run", "nothing"], "'nothing'"),
        (["fetch", "no-such-dataset"], "no-such-dataset"),
    ],
)
def test_wrong_input_is_one_message_and_status_2(project, capsys, arguments, message):
    assert main(arguments) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("xcrepro: ")
    assert message in printed
    assert "Traceback" not in printed


def test_help_is_quick_and_loads_no_numba():
    # Prints what the command line loads before it knows the command.
    loaded = "print(sorted({'numba', 'numpy', 'pandas'} & set(sys.modules)))"
    program = f"import sys, xcrepro.__main__ as m; m._parser(); {loaded}"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"xcrepro {xcrepro.__version__}\n"


def test_evaluate_loads_no_scipy_stats(tmp_path):
    """It takes half a second to import, and evaluation needs none of it; here every check of the predictions runs."""
    rows = "".join(f"{row % 3}:1 {3 + row % 5}:1\n" for row in range(60))
    (tmp_path / "truth.txt").write_text(f"60 9\n{rows}")
    (tmp_path / "scores.txt").write_text("60 9\n" + "".join(f"{(7 * row) % 9}:0.5\n" for row in range(60)))
    program = "import sys, xcrepro.__main__ as m; m.main(sys.argv[1:]); print('scipy.stats' in sys.modules)"
    command = [sys.executable, "-c", program, "evaluate", str(tmp_path / "truth.txt"), str(tmp_path / "scores.txt")]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout.splitlines()[-1] == "False"


@pytest.fixture
def saved(tmp_path):
    """A truth and scores that belong together."""
    (tmp_path / "truth.txt").write_text("2 3\n0:1\n2:1\n")
    (tmp_path / "scores.txt").write_text("2 3\n0:0.5 1:0.9\n2:1\n")
    return [str(tmp_path / "truth.txt"), str(tmp_path / "scores.txt")]


def test_evaluate_filters_pairs_before_ranking(saved, tmp_path, capsys):
    (tmp_path / "filter.txt").write_text("0 1\n")
    command = ["evaluate", *saved, "-k", "1", "--csv"]
    assert main(command) == 0
    assert "\nP,1,0.5\n" in capsys.readouterr().out
    assert main([*command, "--filter", str(tmp_path / "filter.txt")]) == 0
    assert "\nP,1,1.0\n" in capsys.readouterr().out


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"", "an empty file"),
        (b"\x93NUMPY\x01\x00v\x00", "no readable .npy file"),
        (b"\x80\x04\x95\x0a\x00", "found a Python pickle"),
        (b"\xfd7zXZ\x00\x00", "packed with xz"),
        ("2 3\n".encode("utf-16"), "found text in UTF-16"),
    ],
)
def test_evaluate_names_what_is_no_prediction_and_no_truth(saved, tmp_path, capsys, place, content, said):
    saved[place] = str(tmp_path / "other.txt")
    if content is not None:
        (tmp_path / "other.txt").write_bytes(content)
    assert main(["evaluate", *saved]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"xcrepro: {saved[place]}")
    assert said in error
    assert not re.search("n_(columns|features)=", error)


def test_evaluate_says_which_formats_hold_predictions(saved, tmp_path, capsys):
    (tmp_path / "other.arff").write_text("@RELATION x\n")
    assert main(["evaluate", saved[0], str(tmp_path / "other.arff")]) == 2
    assert "got arff" in (error := capsys.readouterr().err)
    assert "xc, topk" in error
    assert main(["evaluate", str(tmp_path / "other.arff"), saved[1]]) == 2
    assert "ARFF" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "unbuffered"), [(["list"], ""), (["list"], "1"), (["evaluate", "--list"], "")])
def test_a_reader_that_goes_away_leaves_no_traceback(root, command, unbuffered):
    """As in ``xcrepro list | head -1``; the reader is gone before the first line, whatever the pipe holds."""
    environment = {**os.environ, "PYTHONPATH": str(root), "XCREPRO_ROOT": str(root), "PYTHONUNBUFFERED": unbuffered}
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "xcrepro", *command]
    done = subprocess.run(words, env=environment, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_full_disk_is_one_sentence(root):
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "xcrepro", "list"]
        done = subprocess.run(words, cwd=root, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "xcrepro: No space left on device\n")


def test_a_file_that_may_not_be_written_is_named(tmp_path, capsys, monkeypatch):
    from xcrepro.repro.engine import manifest

    def refuse():
        raise PermissionError(13, "Permission denied", "/there/build")

    monkeypatch.setattr(manifest, "load", refuse)
    assert main(["list"]) == 2
    assert capsys.readouterr().err == "xcrepro: /there/build: Permission denied\n"
