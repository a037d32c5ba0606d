"""The cache of trained models: the same training is one, another one is another, and what is broken is made anew."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from tests.naive import same_bits
from tests.refused import refused
from tests.test_full_disk import full_disk
from xcrepro import models
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth
from xcrepro.models import PLT, FastXML, NeuralOneVsAll, Popularity, base
from xcrepro.repro.engine import closure
from xcrepro.repro.inputs import trained


@dataclass(eq=False)
class Counting(base.Model):
    """Scores by training frequency, and counts how often it was fitted."""

    shift: float = 0.0
    weights: np.ndarray | None = None
    fits: ClassVar = 0
    _arrays: ClassVar = ("counts",)

    def _fit(self, X, truth: Truth) -> None:
        Counting.fits += 1
        self.counts_ = truth.label_counts() + self.shift

    def _predict(self, X, k: int) -> TopK:
        return TopK.from_scores(np.tile(self.counts_, (X.shape[0], 1)), k)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    monkeypatch.setitem(models.CLASSES, "Counting", "base")
    monkeypatch.setattr(models, "Counting", Counting, raising=False)
    monkeypatch.setattr(Counting, "fits", 0)
    rng = np.random.default_rng(0)
    X = csr_matrix(random_array((30, 12), density=0.3, rng=rng, dtype=np.float32))
    Y = csr_matrix((rng.random((30, 7)) < 0.3).astype(np.float32))
    return X, Y


def test_trains_once_and_reads_the_rest(data, capsys):
    X, Y = data
    first = trained.training(Counting(), X, Y).predictions(X, 3)
    assert "training Counting" in capsys.readouterr().err
    assert same_bits(first, trained.training(Counting(), X, Y).predictions(X, 3))
    trained.training(Counting(), X, Y).predictions(X[:4], 2)
    assert isinstance(trained.training(Counting(), X, Y).model(), Counting)
    assert Counting.fits == 1
    about = trained.training(Counting(), X, Y).about()
    assert (about["points"], about["predicted points"]) == (30, 4)


def test_the_time_of_predicting_is_without_training(data, monkeypatch):
    X, Y = data
    fit, predict, clock = Counting._fit, Counting._predict, [0.0]
    monkeypatch.setattr(trained.time, "perf_counter", lambda: clock[0])

    def slowly(seconds, work):
        def slow(*given):
            clock[0] += seconds
            return work(*given)

        return slow

    monkeypatch.setattr(Counting, "_fit", slowly(5.0, fit))
    monkeypatch.setattr(Counting, "_predict", slowly(0.25, predict))
    training = trained.training(Counting(), X, Y)
    training.predictions(X, 3)
    assert training.about()["train seconds"] == 5.0
    assert training.about()["predict seconds"] == 0.25


def test_labels_only_are_nothing_to_train_on(data):
    with refused("dataset", match="features"):
        trained.training(PLT(), None, data[1], of="mine")


def test_does_not_touch_the_prototype(data):
    X, Y = data
    prototype = Counting(shift=2.0)
    trained.training(prototype, X, Y).model()
    assert not hasattr(prototype, "counts_")


def test_anything_that_decides_the_outcome_is_another_training(data):
    X, Y = data
    here = trained.training(Counting(), X, Y).folder
    other_x = X.copy()
    other_x.data[0] += 1
    flipped = Y.toarray()
    flipped[0, 0] = 1.0 - flipped[0, 0]
    other_y = csr_matrix(flipped)
    wider = csr_matrix((Y.data, Y.indices, Y.indptr), shape=(30, 8))
    shifted, weighted, other = Counting(shift=1.0), Counting(weights=np.ones(7)), Counting(weights=np.full(7, 2.0))
    others = [trained.training(model, X, Y) for model in (shifted, weighted, other, Popularity())]
    others += [trained.training(Counting(), *given) for given in ((other_x, Y), (X, other_y), (X, wider))]
    folders = {training.folder for training in others}
    assert len(folders) == len(others)
    assert here not in folders


def test_index_types_do_not_matter(data):
    X, Y = data
    wide = X.copy()
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    assert trained.training(Counting(), wide, Y).folder == trained.training(Counting(), X, Y).folder


def test_what_a_training_runs_through():
    """Its own kernels and modules, and no other model's; a docstring is no part of it, the rest of a file is."""
    trees, network = (trained._sources(kind) for kind in (FastXML, NeuralOneVsAll))
    assert {
        "kernels/fastxml.py",
        "kernels/elementary.py",
        "models/base.py",
        "core/truth.py",
        "core/arithmetic.py",
    } <= set(trees)
    assert {"networks/adam.py", "models/resumable.py", "kernels/random.py"} <= set(network)
    assert not {"kernels/fastxml.py", "kernels/plt_train.py", "models/plt.py"} & set(network)
    assert not {name for name in trees if name.startswith("metrics/")}


@pytest.mark.parametrize(
    ("edit", "same"),
    [
        (('    """One.\n\n    Two."""\n', '    """Other."""\n'), True),
        (('"""Of the module."""', '"""Of it."""'), True),
        (("return 1", "return 2"), False),
        (('    """Of the class."""\n', ""), True),
        (('"""No docstring."""', '"""None."""'), False),
        (("c = 1", "c = 2"), False),  # on the line of a docstring
        (("d = 1", "d = 2"), False),
    ],
)
def test_docstrings_decide_no_number(tmp_path, edit, same):
    file = tmp_path / "own.py"
    text = (
        '"""Of the module."""\nimport xcrepro.core.truth\n\n\nclass A:\n'
        '    """Of the class."""\n    b = 1\n    """No docstring."""\n\n\ndef f():\n    """One.\n\n    Two."""\n    return 1\n'
        '\n\nclass B:\n    """Three."""; c = 1\n\n\ndef g(): "Four."; d = 1\n'
    )
    assert edit[0] in text
    file.write_text(text)
    before = closure.digests([file])
    assert closure.PACKAGE / "core/truth.py" in before
    file.write_text(text.replace(*edit))
    os.utime(file, ns=(1, 1))  # another time than before, whatever the clock's grain
    assert (closure.digests([file])[file] == before[file]) is same


@pytest.mark.parametrize("harm", ["model.json", "arrays.npz", "predictions"])
def test_what_is_broken_is_made_anew(data, harm, capsys):
    X, Y = data
    training = trained.training(Counting(), X, Y)
    good = training.predictions(X, 3)
    if harm == "predictions":
        next(training.folder.glob("top3-*.npz")).write_bytes(b"PK half")
    else:
        (training.folder / "model" / harm).write_bytes(b"half")
        next(training.folder.glob("top3-*.npz")).unlink()
    np.testing.assert_array_equal(training.predictions(X, 3).ids, good.ids)
    assert Counting.fits == (1 if harm == "predictions" else 2)
    said = capsys.readouterr().err
    assert ("predicted anew" if harm == "predictions" else "trained anew") in said
    assert ".damaged" in said


def a_folder_in_its_place(path):
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)


FOREIGN = {
    "times that are none": lambda folder: (folder / "training.json").write_text('{"train seconds": "x"}'),
    "a list of times": lambda folder: (folder / "training.json").write_text("[1]"),
    "a folder for the times": lambda folder: a_folder_in_its_place(folder / "training.json"),
    "a folder for the predictions": lambda folder: a_folder_in_its_place(next(folder.glob("top3-*.npz"))),
    "a file for the model": lambda folder: (shutil.rmtree(folder / "model"), (folder / "model").write_text("")),
    "a file for the folder": lambda folder: (shutil.rmtree(folder), folder.write_text("")),
    "a file for all": lambda folder: (shutil.rmtree(folder.parent), folder.parent.write_text("")),
    "a folder for the lock": lambda folder: a_folder_in_its_place(folder.with_name(f"{folder.name}.lock")),
}


@pytest.mark.parametrize("harm", FOREIGN)
def test_a_foreign_cache_never_stops_a_run(data, harm, capsys):
    training = trained.training(Counting(), *data)
    good = training.predictions(data[0], 3)
    FOREIGN[harm](training.folder)
    for k in (3, 2):
        found = training.predictions(data[0], k)
        np.testing.assert_array_equal(found.ids, good.head(k).ids)
        assert "Traceback" not in capsys.readouterr().err
    assert training._described()["seconds"] >= 0


def test_half_a_training_of_another_is_set_aside(data, monkeypatch, capsys):
    X, Y = data
    for trees in (1, 2):
        job = trained.training(PLT(trees=trees), X, Y)
        job.folder.mkdir(parents=True)
        PLT(trees=3 - trees).fit(X, Y, checkpoint=job.folder / "unfinished")
        good = PLT(trees=trees).fit(X, Y).predict(X, 3)
        assert same_bits(job.predictions(X, 3), good)
        assert "trained anew" in capsys.readouterr().err
    with pytest.raises(ValueError, match="relevant label"):  # the training's own fault is said as it was
        trained.training(PLT(trees=1), X, csr_matrix(Y.shape)).predictions(X)


def test_a_failed_training_leaves_nothing(data):
    X, Y = data
    with pytest.raises(ValueError, match="relevant label"):
        trained.training(Counting(), X, csr_matrix(Y.shape)).predictions(X)
    assert not [path for path in (trained.paths.cache_dir() / "trained").iterdir() if path.suffix != ".lock"]


@pytest.mark.parametrize("harm", ["none", "cut"])
def test_stopped_predictions_go_on_with_the_next_stretch(data, monkeypatch, harm):
    """Of 30 rows by 8 the third stretch is stopped; the second run predicts what is missing, to the same bits as at once."""
    X, Y = data
    want = PLT(max_leaf=2).fit(X, Y).predict(X, 4)
    monkeypatch.setattr(trained, "STRETCH", 8 * Y.shape[1])
    predict, asked = PLT.predict, []

    def stopped(self, X, k):
        asked.append(X.shape[0])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return predict(self, X, k)

    monkeypatch.setattr(PLT, "predict", stopped)
    job = trained.training(PLT(max_leaf=2), X, Y)
    with pytest.raises(KeyboardInterrupt):
        job.predictions(X, 4)
    first = next(job.folder.glob("*.parts/0-8.npz"))
    if harm == "cut":
        first.write_bytes(first.read_bytes()[:50])
    top = trained.training(PLT(max_leaf=2), X, Y).predictions(X, 4)
    assert asked == [8, 8, 8, *([8] if harm == "cut" else []), 8, 6]
    assert same_bits(top, want)
    assert not [*job.folder.glob("*.parts")]


def test_a_killed_training_of_trees_goes_on_and_leaves_no_trees(data, monkeypatch, capsys):
    X, Y = data
    prototype = PLT(trees=3, max_leaf=2, max_iter=2)
    want = PLT(trees=3, max_leaf=2, max_iter=2).fit(X, Y).predict(X, 5)
    train, trees = PLT._train, []

    def killed_in_the_third(self, X, columns, tree, *rest):
        if tree == 2 and trees == [0, 1]:
            raise KeyboardInterrupt
        trees.append(tree)
        return train(self, X, columns, tree, *rest)

    monkeypatch.setattr(PLT, "_train", killed_in_the_third)
    job = trained.training(prototype, X, Y)
    with pytest.raises(KeyboardInterrupt):
        job.model()
    kept = job.folder / "unfinished" / "tree-1.npz"
    assert kept.is_file()
    kept.write_bytes(kept.read_bytes()[:200])  # of a disk that lost its end
    trees.append(None)
    assert same_bits(job.predictions(X, 5), want)
    assert trees == [0, 1, None, 0, 1, 2]
    assert "tree-1.npz" in capsys.readouterr().err
    assert not (job.folder / "unfinished").exists()


def test_a_read_only_cache_is_used(data, monkeypatch, capsys):
    X, Y = data
    good = trained.training(Counting(), X, Y).predictions(X, 3)
    capsys.readouterr()

    def refuse(*given, **named):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    np.testing.assert_array_equal(trained.training(Counting(), X, Y).predictions(X, 3).ids, good.ids)
    assert Counting.fits == 1
    folder = trained.training(Counting(shift=1.0), X, Y)
    folder.predictions(X, 3)
    assert Counting.fits == 2
    assert "not kept" in capsys.readouterr().err
    assert not folder.folder.exists()


@pytest.mark.parametrize("room", [0, 300])
def test_a_full_disk_costs_the_cache_and_not_the_training(data, capsys, room):
    X, Y = data
    training = trained.training(Counting(), X, Y)
    with full_disk(room):
        top = training.predictions(X, 3)
    assert "not kept: " in capsys.readouterr().err
    assert Counting.fits == 1
    # What a killed process left goes with the next training.
    half = training.folder / ".model.killed"
    half.mkdir(parents=True)
    (half / "arrays.npz").write_bytes(b"half")
    assert same_bits(training.predictions(X, 3), top)
    assert Counting.fits == 2
    assert not half.exists()
    assert same_bits(training.predictions(X, 3), top)
    assert Counting.fits == 2


TRAIN = """
import numpy as np, scipy.sparse as sp
from xcrepro.repro.inputs import trained
from xcrepro.models import PLT
rng = np.random.default_rng(0)
X, Y = sp.csr_matrix(rng.random((60, 9)).astype("f")), sp.csr_matrix((rng.random((60, 20)) < 0.2).astype("f"))
trained.training(PLT(trees=1), X, Y).predictions(X, 3)
"""


def test_two_processes_train_once(tmp_path):
    options = {"env": os.environ | {"XCREPRO_DATA": str(tmp_path)}, "stderr": subprocess.PIPE, "text": True}
    pair = [subprocess.Popen([sys.executable, "-c", TRAIN], **options) for _ in range(2)]
    said = [process.communicate(timeout=3600)[1] for process in pair]
    assert [process.returncode for process in pair] == [0, 0], said
    assert "".join(said).count("training PLT") == 1
