"""Stored predictions: read in place of a training, never those of another, and held to what training gives."""

from __future__ import annotations

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


@pytest.fixture
def project(data, tmp_path, monkeypatch):  # noqa: F811
    """An empty project, in which a run can note what it predicts."""
    root = tmp_path / "project"
    (root / "notebooks").mkdir(parents=True)
    (root / "notebooks" / "manifest.toml").write_text("")
    (root / stored.FOLDER).mkdir(parents=True)
    monkeypatch.setenv("XCREPRO_ROOT", str(root))
    monkeypatch.setenv("XCREPRO_RECORD", str(root / "build/notebooks/small/paper/one.notes"))
    (root / "build/notebooks/small/paper").mkdir(parents=True)
    stored._chosen.cache_clear()
    stored._say_once.cache_clear()
    return root


def predict(data, k=3, rows=slice(None), model=None, of="own"):  # noqa: F811
    X, Y = data
    return trained.training(model or Counting(), X, Y, of=of).predictions(X[rows], k)


def make(project, monkeypatch, ask, *, whole=True):
    """What ``make train`` does: note what is asked for, all trained, and store it."""
    notes = project / "build" / "notes"
    shutil.rmtree(notes, ignore_errors=True)
    with monkeypatch.context() as patch:
        patch.setenv(stored.NOTES, str(notes))
        patch.setenv("XCREPRO_DATA", str(project / "build" / "cache"))
        ask()
    return stored.gather(notes, project / stored.FOLDER, whole=whole)


def entries(project):
    return stored.read_index(project / stored.FOLDER / stored.INDEX)


def test_what_is_stored_is_not_trained(project, data, monkeypatch, tmp_path):  # noqa: F811
    expected = predict(data)
    make(project, monkeypatch, lambda: predict(data))
    [entry] = entries(project)
    assert (entry.dataset, entry.model, entry.points, entry.labels) == ("own", "Counting()", 30, 7)
    assert (entry.rows, entry.places, entry.read_by) == (30, 3, "paper/one")
    assert entry.file.startswith("own-counting-")
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "another cache"))
    before = Counting.fits
    assert same_bits(predict(data), expected)
    assert same_bits(predict(data, 2), expected.head(2))
    assert Counting.fits == before
    assert not (tmp_path / "another cache").exists()


@pytest.mark.parametrize("other", ["parameters", "data", "code", "more places", "other rows"])
def test_what_is_not_stored_is_trained(project, data, monkeypatch, tmp_path, other):  # noqa: F811
    make(project, monkeypatch, lambda: predict(data))
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "another cache"))
    X, Y = data
    asked = {
        "parameters": lambda: predict(data, model=Counting(shift=1.0)),
        "data": lambda: predict((X, Y[::-1].tocsr())),
        "code": lambda: predict(data),
        "more places": lambda: predict(data, 4),
        "other rows": lambda: predict(data, rows=slice(5)),
    }
    if other == "code":
        monkeypatch.setattr(trained, "_sources", lambda kind: {"own.py": "another"})
    before = Counting.fits
    asked[other]()
    assert Counting.fits == before + 1


@pytest.mark.parametrize("fault", ["a byte", "cut", "gone", "another shape"])
def test_a_damaged_file_is_named_and_trained_anew(project, data, monkeypatch, capsys, fault):  # noqa: F811
    expected = predict(data)
    make(project, monkeypatch, lambda: predict(data))
    [entry] = entries(project)
    path = project / stored.FOLDER / entry.file
    content = path.read_bytes()
    if fault == "gone":
        path.unlink()
    elif fault == "another shape":
        index = project / stored.FOLDER / stored.INDEX
        stored.write_index(index, [dataclasses.replace(entry, rows=29)])
    else:
        path.write_bytes(content[:-40] if fault == "cut" else content[:60] + bytes([content[60] ^ 1]) + content[61:])
    assert same_bits(predict(data), expected)
    said = capsys.readouterr().err
    assert entry.file in said
    assert fault in ("gone", "another shape") or entry.sha256 in said


def test_a_damaged_index_trains(project, data, monkeypatch, capsys):  # noqa: F811
    expected = predict(data)
    make(project, monkeypatch, lambda: predict(data))
    index = project / stored.FOLDER / stored.INDEX
    index.write_text(index.read_text().replace(",30,", ",thirty,", 1))
    assert same_bits(predict(data), expected)
    assert "line 2" in capsys.readouterr().err
    with damaged(index.name, line=2):
        stored.read_index(index)


def test_other_libraries_are_said_and_read(project, data, monkeypatch, capsys, tmp_path):  # noqa: F811
    make(project, monkeypatch, lambda: predict(data))
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "another cache"))
    monkeypatch.setattr(trained, "_libraries", lambda: "numpy 99.0")
    before = Counting.fits
    predict(data)
    predict(data)
    assert Counting.fits == before
    assert capsys.readouterr().err.count("numpy 99.0") == 1


def test_confirming_trains_and_compares(project, data, monkeypatch, capsys):  # noqa: F811
    make(project, monkeypatch, lambda: predict(data))
    [entry] = entries(project)
    for asked in ("all", "some", entry.file):
        monkeypatch.setenv(stored.CONFIRM, asked)
        before = Counting.fits
        predict(data)
        assert Counting.fits == before + (asked != entry.file)  # the second finds the first's, apart from the cache
        assert entry.file in capsys.readouterr().err
    assert list((project / "build" / "confirm").glob("Counting-*/model"))
    monkeypatch.setenv(stored.CONFIRM, "another.npz")
    before = Counting.fits
    predict(data)
    assert Counting.fits == before


def test_confirming_names_what_differs(project, data, monkeypatch, capsys):  # noqa: F811
    make(project, monkeypatch, lambda: predict(data))
    [entry] = entries(project)
    path = project / stored.FOLDER / entry.file
    top = TopK.load(path)
    scores = top.scores.copy()
    scores[4, 0] = np.nextafter(scores[4, 0], np.float32(np.inf))
    TopK(top.ids, scores, top.n_labels).save(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    stored.write_index(path.with_name(stored.INDEX), [dataclasses.replace(entry, sha256=digest)])
    monkeypatch.setenv(stored.CONFIRM, "all")
    with pytest.raises(stored.Unconfirmed, match=r"1 of 30 rows.*row 4"):
        predict(data)
    monkeypatch.setattr(trained, "_libraries", lambda: "numpy 99.0")
    predict(data)
    assert "numpy 99.0" in capsys.readouterr().err


def test_making_them_again_changes_nothing(project, data, monkeypatch):  # noqa: F811
    ask = [lambda: predict(data), lambda: predict(data, 5), lambda: predict(data, model=Counting(shift=2.0))]
    made = make(project, monkeypatch, lambda: [one() for one in ask])
    assert len(made) == 2
    assert {entry.places for entry in entries(project)} == {3, 5}
    before = {path.name: path.read_bytes() for path in (project / stored.FOLDER).iterdir()}
    assert make(project, monkeypatch, lambda: [one() for one in ask]) == []
    after = {path.name: path.read_bytes() for path in (project / stored.FOLDER).iterdir()}
    assert {name: after[name] for name in after if name != stored.INDEX} == {
        name: before[name] for name in before if name != stored.INDEX
    }


def test_a_files_name_says_that_its_data_are_synthetic(project, data, monkeypatch, root):  # noqa: F811
    make(project, monkeypatch, lambda: [predict(data), predict(data, 3, slice(0, 9), of="bibtex@1.0-seed0")])
    committed = stored.read_index(root / stored.FOLDER / stored.INDEX)
    assert len({entry.dataset for entry in entries(project)}) == 2
    for entry in [*entries(project), *committed]:
        assert entry.file.startswith("synthetic-") == ("@" in entry.dataset), entry.file


def test_what_nobody_reads_goes(project, data, monkeypatch):  # noqa: F811
    both = [lambda: predict(data), lambda: predict(data, model=Counting(shift=2.0))]
    make(project, monkeypatch, lambda: [one() for one in both])
    make(project, monkeypatch, both[0], whole=False)  # of some notebooks: the others may read what is left
    assert len(entries(project)) == 2
    [said] = make(project, monkeypatch, both[0])
    [entry] = entries(project)
    assert entry.model == "Counting()"
    assert "counting-shift" in said
    assert [path.name for path in (project / stored.FOLDER).glob("*.npz")] == [entry.file]


def test_a_change_of_numbers_is_said_and_stored(project, data, monkeypatch):  # noqa: F811
    make(project, monkeypatch, lambda: predict(data))
    [old] = entries(project)
    shutil.rmtree(project / "build" / "cache")
    monkeypatch.setattr(
        Counting, "_predict", lambda self, X, k: TopK.from_scores(np.tile(-self.counts_, (X.shape[0], 1)), k)
    )
    [changed, removed] = make(project, monkeypatch, lambda: predict(data))
    [new] = entries(project)
    assert "DIFFERS" in changed
    assert new.file in changed
    assert old.file in removed
    assert same_bits(TopK.load(project / stored.FOLDER / new.file), predict(data))


def test_a_change_of_code_is_noted_as_not_confirmed(project, data, monkeypatch):  # noqa: F811
    make(project, monkeypatch, lambda: predict(data))
    [entry] = entries(project)
    [moved] = stored.refreshed([entry], {"Counting": "other code"})
    assert (moved.code, moved.confirmed) == ("other code", entry.code)
    assert dataclasses.replace(moved, code=entry.code) == entry


def entry(number, seconds, code="a", confirmed="a"):
    return stored.Entry(
        f"{number}.npz", "own", "PLT()", 9, 9, 9, 5, seconds, str(number), "r", code, confirmed, "numpy", "", ""
    )


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
def test_an_index_that_cannot_be_read_costs_a_training(project, data, capsys, content):  # noqa: F811
    (project / stored.FOLDER / stored.INDEX).write_bytes(content)
    predict(data)
    assert Counting.fits == 1
    assert "models are trained" in capsys.readouterr().err
    assert "models are trained" in stored.describe()
