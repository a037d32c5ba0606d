"""Numba's cache of the kernels: none is stale where a file that it uses was changed; all other code keeps its own folder."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys

CHILD = """
import numba, numpy as np
from xcrepro.core.kernels import random, resample
out = np.empty(3)
random.normals(np.uint64(1), out)
weights = np.empty((2, 2), np.uint8)
resample.poisson(0, np.arange(2), np.array([2**63], np.uint64), 0, 2, weights)
hits = sum(sum(of.stats.cache_hits.values()) for of in (random.normals, resample.poisson))
print(out.tolist(), hits, numba.config.CACHE_DIR, sep="|")
"""


def run(home, cache, **variables):
    """What a process of its own computes, how many of the two kernels came from the cache, and where other code caches."""
    env = {**os.environ, "PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(cache)} | {
        name: str(value) for name, value in variables.items()
    }
    done = subprocess.run([sys.executable, "-c", CHILD], env=env, cwd=home, capture_output=True, text=True, check=True)
    values, hits, folder = done.stdout.strip().split("|")
    return values, int(hits), folder


def test_a_change_in_one_file_reaches_the_others(root, tmp_path):
    package, cache = tmp_path / "xcrepro", tmp_path / "cache"
    shutil.copytree(
        root / "xcrepro/core/kernels", package / "core/kernels", ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "__init__.py").touch()
    first = run(tmp_path, cache)
    assert first[1:] == (0, str(cache))
    assert run(tmp_path, cache) == (first[0], 2, str(cache))

    elementary = package / "core/kernels/elementary.py"
    source = elementary.read_text()
    assert "6.93147180369123816490e-01" in source
    elementary.write_text(source.replace("6.93147180369123816490e-01", "6.9e-01"))
    changed = run(tmp_path, cache)
    assert changed[0] != first[0]
    assert changed[1:] == (0, str(cache))

    elementary.write_text(source)
    assert run(tmp_path, cache) == (first[0], 2, str(cache))
    assert {folder.name.partition("-")[0] for folder in cache.iterdir()} == {"elementary", "random", "resample"}

    other = package / "core/kernels/ranking.py"  # no file that those two use
    other.write_text(other.read_text() + "\n\nMORE = 1\n")
    assert run(tmp_path, cache) == (first[0], 2, str(cache))


def test_copies_share_what_is_compiled(root, tmp_path):
    """The same files elsewhere, of another time, compile nothing; beside them it lies where nothing else can be written."""
    cache = tmp_path / "cache"
    for home in (tmp_path / "one", tmp_path / "two"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / "xcrepro/core/kernels", home / "xcrepro/core/kernels", ignore=ignored)
        (home / "xcrepro/__init__.py").touch()
    for file in (tmp_path / "two/xcrepro/core/kernels").glob("*.py"):
        os.utime(file, (1e9, 1e9))
    first = run(tmp_path / "one", cache)
    assert run(tmp_path / "two", cache) == (first[0], 2, str(cache))

    usual = run(tmp_path / "one", "", XDG_CACHE_HOME=tmp_path / "users")
    assert usual[:2] == (first[0], 0)
    assert run(tmp_path / "two", "", XDG_CACHE_HOME=tmp_path / "users")[1] == 2
    beside = tmp_path / "one/xcrepro/core/kernels/__pycache__"
    assert not [*beside.glob("random-*")]
    (tmp_path / "a file").touch()
    closed = run(tmp_path / "one", "", XDG_CACHE_HOME=tmp_path / "a file")
    assert closed[:2] == (first[0], 0)
    assert len([*beside.glob("random-*")]) == 1

    shutil.rmtree(beside)
    beside.touch()  # nothing at all can be written: nothing is kept, and all the rest works
    for _ in range(2):
        assert run(tmp_path / "one", tmp_path / "a file", XDG_CACHE_HOME=tmp_path / "a file")[:2] == (first[0], 0)


def test_a_person_is_told_once_that_it_compiles(tmp_path):
    """On a terminal only, so that no output of a notebook or a script changes; and only where something is compiled."""
    command = [sys.executable, "-c", CHILD]
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    told = []
    for _ in range(2):
        ours, theirs = pty.openpty()
        subprocess.run(command, env=env, stderr=theirs, stdout=subprocess.DEVNULL, check=True)
        os.close(theirs)
        try:
            told.append(os.read(ours, 10_000).decode().count("compiling"))
        except OSError:  # nothing was written
            told.append(0)
        os.close(ours)
    assert told == [1, 0]
