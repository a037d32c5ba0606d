"""What the cache holds, and taking it out."""

from __future__ import annotations

import json
import os
import time

import pytest
from filelock import FileLock

from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError, XCError
from xcrepro.repro.engine import cache

DAY = 86400


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache of two models, a damaged one, a dataset, runs, and a dataset of the reader's own."""
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    for name, size, days, about in (
        ("trained/PLT-0a", 1000, 40, {"model": "PLT(trees=3)", "points": 1500, "labels": 159, "train seconds": 1.0}),
        ("trained/PLT-0b", 2000, 1, {"model": "odd"}),
        ("trained/PLT-0a.damaged", 10, 40, None),
        ("datasets/eurlex-4k", 5_000_000, 10, None),
        ("project", 300, 0, None),
        ("mine", 70, 90, None),
    ):
        folder = tmp_path / name
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "file").write_bytes(bytes(size))
        if about:
            (folder / "training.json").write_text(json.dumps(about))
        when = time.time() - days * DAY
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (when, when))
    (tmp_path / "trained" / "PLT-0a.lock").touch()
    (tmp_path / "mine" / "dataset.toml").touch()
    return tmp_path


def names(found) -> list[str]:
    return [entry.name for entry in found]


ALL = ["trained/PLT-0a", "trained/PLT-0a.damaged", "trained/PLT-0b", "datasets/eurlex-4k", "project"]


def test_what_is_there(home):
    found = {entry.name: entry for entry in cache.entries()}
    assert list(found) == ALL
    model = found["trained/PLT-0a"]
    assert model.about == "PLT(trees=3) on 1,500 points, 159 labels"
    assert model.size == 1000 + (home / "trained/PLT-0a/training.json").stat().st_size
    assert abs(time.time() - model.used - 40 * DAY) < 60
    assert found["trained/PLT-0b"].about == ""
    assert "damaged" in found["trained/PLT-0a.damaged"].about
    assert found["datasets/eurlex-4k"].size == 5_000_000


def test_no_cache_yet(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "none"))
    assert cache.entries() == []
    assert main(["cache", "ls"]) == 0
    assert "0 things, 0 B" in capsys.readouterr().out
    assert main(["cache", "rm", "--all", "--yes"]) == 0


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({"names": ["eurlex-4k"]}, ["datasets/eurlex-4k"]),
        ({"names": ["trained/PLT-0b", "PLT-0b"]}, ["trained/PLT-0b"]),
        ({"names": ["PLT-*"]}, ALL[:3]),
        ({"names": ["trained/*"], "older": 30}, ALL[:2]),
        ({"older": 5}, [*ALL[:2], "datasets/eurlex-4k"]),
        ({"older": 1000}, []),
        ({"above": 0}, ALL),
        ({"above": 1}, []),
        ({"above": 0.004}, [*ALL[:2], "datasets/eurlex-4k"]),
        ({"names": ["trained/*"], "above": 0.0000025}, ALL[:1]),
        ({"everything": True}, ALL),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_is_meant(asked, meant):
    assert names(cache.chosen(**asked)) == meant


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "must say what"),
        ({"names": ["PLT-0a"], "everything": True}, "must say what"),
        ({"older": 3, "everything": True}, "must say what"),
        ({"names": ["eurlx-4k"]}, "did you mean 'datasets/eurlex-4k'"),
        ({"names": ["mine"]}, "must be in the cache"),
        ({"names": [".."]}, "must be in the cache"),
        ({"older": -1}, "older"),
        ({"above": -1}, "above"),
    ],
)
@pytest.mark.usefixtures("home")
def test_what_means_nothing(asked, said):
    with pytest.raises(ArgumentError, match=said):
        cache.chosen(**asked)


def test_nothing_goes_without_a_yes(home, capsys):
    assert main(["cache", "rm", "PLT-*"]) == 0
    out = capsys.readouterr().out
    assert "nothing removed; --yes removes these 3" in out
    assert names(cache.entries()) == ALL
    assert main(["cache", "rm", "PLT-*", "--older", "30", "--yes"]) == 0
    assert "2 removed" in capsys.readouterr().out
    assert names(cache.entries()) == ALL[2:]
    assert main(["cache", "rm", "--all", "--yes"]) == 0
    assert cache.entries() == []
    # What is the reader's own stays; nothing half removed is left.
    assert (home / "mine" / "deep" / "file").is_file()
    assert sorted(path.name for path in home.rglob("*") if path.is_dir()) == ["datasets", "deep", "mine", "trained"]


def test_what_is_in_use_stays(home):
    entry = cache.chosen(["PLT-0a"])[0]
    with FileLock(home / "trained" / "PLT-0a.lock"), pytest.raises(XCError, match="in use"):
        cache.remove(entry)
    assert (home / "trained" / "PLT-0a" / "deep" / "file").is_file()
    cache.remove(entry)
    assert not (home / "trained" / "PLT-0a").exists()


@pytest.mark.usefixtures("home")
def test_what_is_shown_is_sorted(capsys):
    assert main(["cache", "ls", "--sort", "size"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "5 things, 5.0 MB" in lines[0]
    assert lines[1].startswith("datasets/eurlex-4k ")
    assert "5.0 MB" in lines[1]
    assert main(["cache", "ls", "--sort", "used"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("project ")
