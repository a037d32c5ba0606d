"""Numba's cache of the kernels: none is stale where a file that it uses was changed; all other code keeps its own folder."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from itertools import product

import pytest

DAMAGES = {
    "emptied": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "foreign": lambda content: b"\x80\x04K\x01." * 40,
    "another": lambda content: content[: (at := len(content) // 2)] + bytes([content[at] ^ 1]) + content[at + 1 :],
}
HARMED = [f"{damage}_{ending}" for damage, ending in product(DAMAGES, ("nbi", "nbc"))]

# The package's own door to its kernels, and kernels behind it that compile in a moment.
HEAD = "from xcrepro.core.kernels import kernel\n"
FILES = {
    "elementary": f"{HEAD}\n@kernel\ndef half(x):\n    return x * 0.5\n",
    "random": f"{HEAD}from xcrepro.core.kernels.elementary import half\n\n@kernel\ndef drawn(x):\n    return half(x) + 1.0\n",
    "tiles": "",
    "resample": f"{HEAD}from xcrepro.core.kernels.random import drawn\n"
    + "".join(f"\n@kernel\ndef {name}(x):\n    return drawn(x) * {i}.0\n" for i, name in enumerate(HARMED, 2)),
    "ranking": "",
}

CHILD = """
import json, numba, sys
from xcrepro.core.kernels import random, resample
kernels = [random.drawn, *map(vars(resample).get, sys.argv[1:])]
values = [of(3.0) for of in kernels]
hits = [of.__name__ for of in kernels if sum(of.stats.cache_hits.values())]
print(json.dumps([values, hits, numba.config.CACHE_DIR]))
"""
USED = HARMED[:1]
BOTH = ["drawn", *USED]


def environment(home, cache, **variables):
    """That of a process that finds this package, and the cache there."""
    ours = {"PYTHONPATH": home, "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": cache} | variables
    return {**os.environ, **{name: str(value) for name, value in ours.items()}}


def run(home, cache, *names, limits=None, **variables):
    """What a process of its own computes, which of the kernels it has from the cache, where other code caches, what it says."""
    done = subprocess.run([sys.executable, "-c", CHILD, *(names or USED)], env=environment(home, cache, **variables), cwd=home,
                          capture_output=True, text=True, check=True, preexec_fn=limits)  # fmt: skip
    return *json.loads(done.stdout), done.stderr


@pytest.fixture
def package(root, tmp_path):
    """``package(name)``: a folder of this name with the package."""

    def make(name="home"):
        folder = tmp_path / name / "xcrepro/core/kernels"
        folder.mkdir(parents=True)
        (tmp_path / name / "xcrepro/__init__.py").touch()
        for file in ("__init__.py", "cache.py", "compiled.py", "insides.py", "interpreted.py", "narrow.py"):
            shutil.copy(root / "xcrepro/core/kernels" / file, folder)
        for file, text in FILES.items():
            (folder / f"{file}.py").write_text(text)
        return tmp_path / name

    return make


def test_a_change_in_one_file_reaches_the_others(package, tmp_path):
    """And a person is told once that it compiles, at a terminal or in a pipe, where something is compiled."""
    home, cache = package(), tmp_path / "cache"
    values, *found, said = run(home, cache)
    assert found == [[], str(cache)]
    assert said.count("compiling") == 1

    elementary, other = (home / f"xcrepro/core/kernels/{name}.py" for name in ("elementary", "ranking"))
    elementary.write_text(FILES["elementary"].replace("0.5", "0.6"))
    changed, *found, _ = run(home, cache)
    assert changed != values
    assert found == [[], str(cache)]

    elementary.write_text(FILES["elementary"])
    other.write_text("MORE = 1\n")  # no file that those use
    assert run(home, cache) == (values, BOTH, str(cache), "")
    assert {folder.name.partition("-")[0] for folder in cache.iterdir()} == {"elementary", "random", "resample"}


def test_copies_share_what_is_compiled(package, tmp_path):
    """The same files elsewhere, of another time, compile nothing; beside them it lies where nothing else can be written."""
    one, two = package("one"), package("two")
    for file in (two / "xcrepro/core/kernels").glob("*.py"):
        os.utime(file, (1e9, 1e9))
    values, hits, *_ = run(one, "", XDG_CACHE_HOME=tmp_path / "users")
    assert hits == []
    assert run(two, "", XDG_CACHE_HOME=tmp_path / "users")[:2] == (values, BOTH)
    beside = one / "xcrepro/core/kernels/__pycache__"
    assert not [*beside.glob("random-*")]
    (tmp_path / "a file").touch()
    assert run(one, "", XDG_CACHE_HOME=tmp_path / "a file")[:2] == (values, [])
    assert len([*beside.glob("random-*")]) == 1

    shutil.rmtree(beside)
    beside.touch()  # nothing at all can be written: nothing is kept, and all the rest works
    assert run(one, tmp_path / "a file", XDG_CACHE_HOME=tmp_path / "a file")[:2] == (values, [])


AT_ONCE = """
import sys, time
from numba.core import event
from xcrepro.core.kernels import random

class Compiled(event.Listener):
    def on_start(self, happened):
        names.append(f"{happened.data['dispatcher'].py_func.__name__}{happened.data['args']}".replace(" ", ""))
        time.sleep(0.3)  # the other comes meanwhile
    def on_end(self, happened):
        pass

names = []
event.register("numba:compile", Compiled())
print("ready", flush=True)
sys.stdin.readline()
random.drawn(3.0)
print(*names)
"""


def test_of_processes_that_start_at_once_each_kernel_is_compiled_by_one(package, tmp_path):
    home = package()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    env = environment(home, tmp_path / "cache")
    processes = [subprocess.Popen([sys.executable, "-c", AT_ONCE], env=env, cwd=home, **pipes) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    compiled = [name for process in processes for name in process.communicate()[0].split()]
    assert {process.returncode for process in processes} == {0}
    assert sorted(compiled) == ["drawn(float64,)", "half(float64,)"]


def test_what_cannot_be_read_is_compiled_anew_once(package, tmp_path):
    """numba#10434: an index that a crash left empty ends every later call. A reader is told in one line."""
    home, cache = package(), tmp_path / "cache"
    values, hits, *_ = run(home, cache, *HARMED)
    assert hits == []
    for name in HARMED:
        damage, ending = name.split("_")
        (file,) = cache.glob(f"resample-*/resample.{name}-*.{ending}")
        file.write_bytes(DAMAGES[damage](file.read_bytes()))
    again, hits, _, said = run(home, cache, *HARMED)
    assert (again, hits) == (values, ["drawn"])
    assert [line for line in said.splitlines() if "compiled anew" in line and str(cache) in line] == [
        said.splitlines()[0]
    ]
    assert run(home, cache, *HARMED) == (values, ["drawn", *HARMED], str(cache), "")  # mended


def small_files() -> None:
    """No file may be larger than 64 bytes: as on a full disk, what is written fails half-way."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def test_what_cannot_be_kept_is_used_all_the_same(package, tmp_path):
    home = package()
    values, _, _, said = run(home, tmp_path, limits=small_files)
    assert values == [2.5, 5.0]
    assert said.count("cannot be kept") == 1
