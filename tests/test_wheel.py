"""The wheel, built and installed into an empty folder, works from anywhere: nothing of the clone is needed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import matplotlib
import pytest

from xcrepro.core import kernels
from xcrepro.repro.engine import manifest


def call(*command: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=3600, **options)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """``installed(*command, cwd=)`` runs xcrepro from the wheel, without the clone, in an empty home."""
    site, home = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("home")
    # The wheel is pure Python: unpacking it is what an installer does. The libraries are this environment's.
    zipfile.ZipFile(wheel).extractall(site)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XCREPRO_")}
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "PYTHONPATH": str(site)}
    # The kernels are the clone's, byte for byte, and so is what is compiled of them; the list of fonts is the machine's.
    environment = kept | own | {"NUMBA_CACHE_DIR": str(kernels.cache.home()), "MPLCONFIGDIR": matplotlib.get_cachedir()}

    def run(*command: str, cwd: str | Path = "/", status: int = 0, **changed: str) -> str:
        done = call(*command, cwd=cwd, env=environment | changed)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    run.home = home
    run.site = site
    return run


def command(installed, *words, **options) -> str:
    return installed("-m", "xcrepro", *map(str, words), **options)


def test_the_wheel_holds_what_the_package_reads(wheel, root):
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git clone")
    files = [name for name in tracked.stdout.splitlines() if (root / name).is_file()]
    brought = {f"xcrepro/_project/{name}" for name in files if name.startswith(("data/", "figures/", "notebooks/"))}
    brought.add("xcrepro/_project/constraints.txt")
    code = {name for name in files if name.startswith("xcrepro/")}
    # What is not committed yet, on a branch in work, may be in the wheel too; nothing of it may be missing.
    assert (brought | code) <= names
    assert {name.split("/")[0] for name in names} == {"xcrepro", "xcrepro-0.1.0.dist-info"}
    assert not [name for name in names if "__pycache__" in name or "checkpoint" in name]


def test_what_the_wheel_reads_is_its_own(installed, root):
    """From anywhere: the code, the items, printed numbers, counts, an open dataset."""
    code = """
import xcrepro as xc
from xcrepro.core.data import registry
from xcrepro.__main__ import main
print(xc.__file__)
print(len(xc.published.table('jain16:table3a')), len(xc.published.formulas()) > 5)
print(int(registry.label_counts('eurlex-4k')['count'].sum()))
ds = xc.load('tib', points=20)
print(ds.title, len(ds.words), ds.label_names[:1])
main(['list'])
"""
    where, printed, counts, data, *listed = installed("-c", code).splitlines()
    assert where == str(installed.site / "xcrepro" / "__init__.py")
    assert printed.endswith(" True")
    assert not printed.startswith("0 ")
    assert counts == "102741"
    assert data.startswith("TIB, 20 of 17,740 records 17843 ('")
    assert [line.split()[0] for line in listed] == list(manifest.load(root))


def test_an_item_runs_outside_of_a_project(installed):
    """It writes into the cache, not where the command was typed, and is held to the wheel's tables."""
    out = command(installed, "run", "xcrepo/code_list")
    home = installed.home / "cache" / "xcrepro" / "project"
    assert f"no project here: this writes into {home}" in out
    assert "1 items: 1 ok" in out
    assert (home / "figures/xcrepo/code_list.png").stat().st_size > 10_000
    executed = (home / "build/notebooks/xcrepo/code_list.ipynb").read_text()
    assert "values equal" in executed
    assert "all unchanged" in command(installed, "run", "xcrepo/code_list")
    # The notebooks that were installed are nobody's to change.
    assert "xcrepro start DIR" in command(installed, "accept", "xcrepo/code_list", status=2)


def test_the_course_in_an_empty_folder(installed, tmp_path):
    """All lessons come with the wheel, and copies are made of them."""
    folder = tmp_path / "students"
    out = command(installed, "course", "--self-study", "students", cwd=tmp_path)
    names = sorted(path.name for path in folder.glob("*.ipynb"))
    assert len(names) == 10
    assert all(name in out for name in names)
