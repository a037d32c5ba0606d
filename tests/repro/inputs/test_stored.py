"""Stored predictions: read in place of a training, never those of another, and held to what training gives."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil

import numpy as np
import pytest

from tests.naive import same_bits
from tests.refused import damaged
from tests.repro.inputs.test_trained import Counting, data  # noqa: F401  (a fixture)
from xcrepro import models
from xcrepro.core.predictions import TopK
from xcrepro.repro.inputs import stored, trained


class Kept:
    """An empty project, in which a run can note what it predicts, with data to train on."""

    def __init__(self, root, given, patch) -> None:
        self.root, (self.X, self.Y), self.patch = root, given, patch
        self.folder = root / stored.FOLDER
        self.index = self.folder / stored.INDEX

    def predict(self, k=3, rows=slice(None), model=None, of="own", Y=None):
        given = self.X, self.Y if Y is None else Y
        return trained.training(model or Counting(), *given, of=of).predictions(self.X[rows], k)

    def make(self, *asked, whole=True):
        """What ``make train`` does: note what is asked for, all trained, and store it; the lines of the index, what is said."""
        notes = self.root / "build" / "notes"
        shutil.rmtree(notes, ignore_errors=True)
        with self.patch.context() as patch:
            patch.setenv(stored.NOTES, str(notes))
            patch.setenv("XCREPRO_DATA", str(self.root / "build" / "cache"))
            for ask in asked or [self.predict]:
                ask()
        said = stored.gather(notes, self.folder, whole=whole)
        return stored.read_index(self.index), said

    def elsewhere(self):
        """From here on the cache is another, empty one."""
        self.patch.setenv("XCREPRO_DATA", str(self.root / "another cache"))


@pytest.fixture
def kept(data, tmp_path, monkeypatch):  # noqa: F811
    root = tmp_path / "project"
    (root / "notebooks").mkdir(parents=True)
    (root / "notebooks" / "manifest.toml").write_text("")
    (root / stored.FOLDER).mkdir(parents=True)
    monkeypatch.setenv("XCREPRO_ROOT", str(root))
    monkeypatch.setenv("XCREPRO_RECORD", str(root / "build/notebooks/small/paper/one.notes"))
    (root / "build/notebooks/small/paper").mkdir(parents=True)
    stored._chosen.cache_clear()
    stored._say_once.cache_clear()
    return Kept(root, data, monkeypatch)


@contextlib.contextmanager
def trainings(n: int):
    """So many are run inside."""
    before = Counting.fits
    yield
    assert Counting.fits == before + n


def test_what_is_stored_is_not_trained(kept):
    expected = kept.predict()
    [entry], _ = kept.make()
    assert (entry.dataset, entry.model, entry.points, entry.labels) == ("own", "Counting()", 30, 7)
    assert (entry.rows, entry.places, entry.read_by) == (30, 3, "paper/one")
    assert entry.file.startswith("own-counting-")
    kept.elsewhere()
    with trainings(0):
        assert same_bits(kept.predict(), expected)
        assert same_bits(kept.predict(2), expected.head(2))
    assert not (kept.root / "another cache").exists()


@pytest.mark.parametrize(
    "other",
    [
        lambda kept: {"model": Counting(shift=1.0)},
        lambda kept: {"Y": kept.Y[::-1].tocsr()},
        lambda kept: kept.patch.setattr(trained, "_sources", lambda kind: {"own.py": "another code"}) or {},
        lambda kept: {"k": 4},
        lambda kept: {"rows": slice(5)},
    ],
)
def test_what_is_not_stored_is_trained(kept, other):
    kept.make()
    kept.elsewhere()
    with trainings(1):
        kept.predict(**other(kept))


@pytest.mark.parametrize("fault", ["a byte", "cut", "gone", "another shape"])
def test_a_damaged_file_is_named_and_trained_anew(kept, capsys, fault):
    expected = kept.predict()
    [entry], _ = kept.make()
    path = kept.folder / entry.file
    content = path.read_bytes()
    if fault == "gone":
        path.unlink()
    elif fault == "another shape":
        stored.write_index(kept.index, [dataclasses.replace(entry, rows=29)])
    else:
        path.write_bytes(content[:-40] if fault == "cut" else content[:60] + bytes([content[60] ^ 1]) + content[61:])
    assert same_bits(kept.predict(), expected)
    said = capsys.readouterr().err
    assert entry.file in said
    assert fault in ("gone", "another shape") or entry.sha256 in said


def test_a_damaged_index_trains(kept, capsys):
    expected = kept.predict()
    kept.make()
    kept.index.write_text(kept.index.read_text().replace(",30,", ",thirty,", 1))
    assert same_bits(kept.predict(), expected)
    assert "line 2" in capsys.readouterr().err
    with damaged(kept.index.name, line=2):
        stored.read_index(kept.index)


def test_other_libraries_are_said_and_read(kept, capsys):
    kept.make()
    kept.elsewhere()
    kept.patch.setattr(trained, "_libraries", lambda: "numpy 99.0")
    with trainings(0):
        kept.predict()
        kept.predict()
    assert capsys.readouterr().err.count("numpy 99.0") == 1


def test_confirming_trains_and_compares(kept, capsys):
    [entry], _ = kept.make()
    # The second finds the first's, apart from the cache.
    for asked, n in (("all", 1), ("some", 1), (entry.file, 0)):
        kept.patch.setenv(stored.CONFIRM, asked)
        with trainings(n):
            kept.predict()
        assert entry.file in capsys.readouterr().err
    assert list((kept.root / "build" / "confirm").glob("Counting-*/model"))
    kept.patch.setenv(stored.CONFIRM, "another.npz")
    with trainings(0):
        kept.predict()


def test_confirming_names_what_differs(kept, capsys):
    [entry], _ = kept.make()
    path = kept.folder / entry.file
    top = TopK.load(path)
    scores = top.scores.copy()
    scores[4, 0] = np.nextafter(scores[4, 0], np.float32(np.inf))
    TopK(top.ids, scores, top.n_labels).save(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    stored.write_index(kept.index, [dataclasses.replace(entry, sha256=digest)])
    kept.patch.setenv(stored.CONFIRM, "all")
    with pytest.raises(stored.Unconfirmed, match=r"1 of 30 rows.*row 4"):
        kept.predict()
    kept.patch.setattr(trained, "_libraries", lambda: "numpy 99.0")
    kept.predict()
    assert "numpy 99.0" in capsys.readouterr().err


def shifted(kept):
    return lambda: kept.predict(model=Counting(shift=2.0))


def test_making_them_again_changes_nothing(kept):
    asked = kept.predict, lambda: kept.predict(5), shifted(kept)
    lines, said = kept.make(*asked)
    assert len(said) == 2
    assert {entry.places for entry in lines} == {3, 5}
    before = {path.name: path.read_bytes() for path in kept.folder.glob("*.npz")}
    assert kept.make(*asked)[1] == []
    assert {path.name: path.read_bytes() for path in kept.folder.glob("*.npz")} == before


def test_a_files_name_says_that_its_data_are_synthetic(kept, root):
    lines, _ = kept.make(kept.predict, lambda: kept.predict(3, slice(0, 9), of="bibtex@1.0-seed0"))
    assert len({entry.dataset for entry in lines}) == 2
    for entry in [*lines, *stored.read_index(root / stored.FOLDER / stored.INDEX)]:
        assert entry.file.startswith("synthetic-") == ("@" in entry.dataset), entry.file


def test_what_nobody_reads_goes(kept):
    kept.make(kept.predict, shifted(kept))
    lines, _ = kept.make(whole=False)  # of some notebooks: the others may read what is left
    assert len(lines) == 2
    [entry], [said] = kept.make()
    assert entry.model == "Counting()"
    assert "counting-shift" in said
    assert [path.name for path in kept.folder.glob("*.npz")] == [entry.file]


def test_a_change_of_numbers_is_said_and_stored(kept):
    [old], _ = kept.make()
    shutil.rmtree(kept.root / "build" / "cache")
    turned = lambda self, X, k: TopK.from_scores(np.tile(-self.counts_, (X.shape[0], 1)), k)  # noqa: E731
    kept.patch.setattr(Counting, "_predict", turned)
    [new], [changed, removed] = kept.make()
    assert "DIFFERS" in changed
    assert new.file in changed
    assert old.file in removed
    assert same_bits(TopK.load(kept.folder / new.file), kept.predict())


def test_a_change_of_code_is_noted_as_not_confirmed(kept):
    [entry], _ = kept.make()
    [moved] = stored.refreshed([entry], {"Counting": "other code"})
    assert (moved.code, moved.confirmed) == ("other code", entry.code)
    assert dataclasses.replace(moved, code=entry.code) == entry


def entry(number, seconds, code="a", confirmed="a"):
    about = "own", "PLT()", 9, 9, 9, 5, seconds, str(number), "r", code, confirmed, "numpy", "", ""
    return stored.Entry(f"{number}.npz", *about)


def test_the_draw_takes_the_quickest_what_changed_and_a_share():
    some = [entry(number, 1.0 + number) for number in range(40)]
    total = sum(one.seconds for one in some)
    commits = [stored.drawn(some, f"{number:040x}") for number in range(300)]
    seconds = {one.file: one.seconds for one in some}
    for files in commits:
        assert {"0.npz", "1.npz", "2.npz"} <= {*files}
        assert len({*files}) == len(files)
        first, *rest = (seconds[file] for file in files[stored.SMALLEST :])
        assert first + sum(rest) <= max(stored.SHARE * total, first)
    assert {*seconds} == {file for files in commits for file in files}  # over some commits all come round
    assert stored.drawn(some, "c") == stored.drawn(some[::-1], "c")
    changed = [*some, entry(40, 20.0, code="b")]
    assert all("40.npz" in stored.drawn(changed, f"{number}") for number in range(20))


@pytest.mark.parametrize("name", [name for name in models.CLASSES if name not in {"TwoTowers", "GraphTowers"}])
def test_the_first_places_are_the_same_however_many_are_asked_for(name):
    """What is stored with five places serves who asks for one."""
    rng = np.random.default_rng(3)
    X = (rng.random((60, 40)) < 0.2).astype(np.float32)
    Y = (rng.random((60, 30)) < 0.15).astype(np.float32)
    quick = {"trees": 2, "epochs": 2, "learners": 2, "rounds": 2}
    kind = getattr(models, name)
    settings = {key: value for key, value in quick.items() if key in kind().get_params()}
    model = kind(**settings).fit(X, Y)
    most = model.predict(X, 30)
    for k in (1, 3, 10):
        assert same_bits(model.predict(X, k), most.head(k)), k


@pytest.mark.parametrize("content", [b"\xff\xfe", b"file\n" + b"x" * 200_000, b"a,b\n1,2\n"])
def test_an_index_that_cannot_be_read_costs_a_training(kept, capsys, content):
    kept.index.write_bytes(content)
    with trainings(1):
        kept.predict()
    assert "models are trained" in capsys.readouterr().err
    assert "models are trained" in stored.describe()
