"""Numba's cache of the kernels: none is stale where a file that it uses was changed; all other code keeps its own folder."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys

import pytest

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


AT_ONCE = """
import sys, numpy as np
from numba.core import event
from xcrepro.core.kernels import random

class Compiled(event.Listener):
    def on_start(self, happened):
        function = happened.data["dispatcher"].py_func
        if function.__module__.startswith("xcrepro"):  # numba's own implementations are not cached
            names.append(f"{function.__name__}{happened.data['args']}".replace(" ", ""))
    def on_end(self, happened):
        pass

names = []
event.register("numba:compile", Compiled())
print("ready", flush=True)
sys.stdin.readline()
random.normals(np.uint64(1), np.empty(3))
print(*names)
"""


def test_of_processes_that_start_at_once_each_kernel_is_compiled_by_one(root, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", AT_ONCE], env=env, cwd=tmp_path, **pipes) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    compiled = [name for process in processes for name in process.communicate()[0].split()]
    assert {process.returncode for process in processes} == {0}
    assert any(name.startswith("normals(") for name in compiled)
    assert len(compiled) == len({*compiled})


def test_a_person_is_told_once_that_it_compiles(tmp_path):
    """At a terminal, in a pipe, in a notebook: and only where something is compiled."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    told = []
    for _ in range(2):
        said = subprocess.run([sys.executable, "-c", CHILD], env=env, capture_output=True, text=True, check=True).stderr
        told.append(said.count("compiling"))
    assert told == [1, 0]


def emptied(content: bytes) -> bytes:
    return b""


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def foreign(content: bytes) -> bytes:
    return b"\x80\x04K\x01." * 40


def another_byte(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.fixture(scope="module")
def compiled(root, tmp_path_factory):
    """A cache that holds both kernels, and what they compute."""
    cache = tmp_path_factory.mktemp("compiled")
    values, hits, _ = run(root, cache)
    assert hits == 0
    return cache, values


@pytest.mark.parametrize("damage", [emptied, cut, foreign, another_byte])
@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_what_cannot_be_read_is_compiled_anew_once(root, tmp_path, compiled, ending, damage):
    """numba#10434: an index that a crash left empty ends every later call."""
    cache, values = tmp_path / "cache", compiled[1]
    shutil.copytree(compiled[0], cache)
    for file in cache.glob(f"*/*{ending}"):
        file.write_bytes(damage(file.read_bytes()))
    first = run(root, cache)
    assert first[:2] == (values, 0)
    assert run(root, cache)[:2] == (values, 2)  # mended


def test_a_reader_is_told_in_one_line(root, tmp_path, compiled):
    cache = tmp_path / "cache"
    shutil.copytree(compiled[0], cache)
    for file in cache.glob("*/*.nbi"):
        file.write_bytes(b"")
    env = {**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(cache)}
    said = subprocess.run([sys.executable, "-c", CHILD], env=env, capture_output=True, text=True, check=True).stderr
    assert [line for line in said.splitlines() if "compiled anew" in line and str(cache) in line] == [
        said.splitlines()[0]
    ]


def small_files() -> None:
    """No file may be larger than 64 bytes: as on a full disk, what is written fails half-way."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def test_what_cannot_be_kept_is_used_all_the_same(root, tmp_path, compiled):
    env = {**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD], env=env, capture_output=True, text=True, preexec_fn=small_files, check=True
    )
    assert done.stdout.partition("|")[0] == compiled[1]
    assert done.stderr.count("cannot be kept") == 1
