"""The wheel, built and installed into an empty folder, works from anywhere: nothing of the clone is needed."""

from __future__ import annotations

import json
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
    environment = {
        **kept,
        **own,
        "NUMBA_CACHE_DIR": str(kernels.cache.home()),
        "MPLCONFIGDIR": matplotlib.get_cachedir(),
    }

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


def test_a_started_folder_is_a_project(installed, tmp_path):
    folder = tmp_path / "own"
    assert "notebooks are" in command(installed, "start", folder)
    assert "must be empty" in command(installed, "start", folder, status=2)
    assert (folder / "notebooks/reeval/table3_table4.ipynb").is_file()
    assert (folder / "notebooks/manifest.toml").is_file()
    # A table of the folder's own stands before the wheel's.
    name = "figures/reeval/equations-counts.csv"
    own = folder / name
    own.parent.mkdir(parents=True)
    text = (installed.site / "xcrepro" / "_project" / name).read_text()
    own.write_text(text.replace(text.splitlines()[1], text.splitlines()[2], 1))
    out = command(installed, "run", "reeval/equations", cwd=folder / "notebooks" / "reeval", status=1)
    assert "no project here" not in out
    assert "reeval/equations is not" in out
    assert own.read_text() == text
    assert (folder / "build/notebooks/reeval/equations.ipynb").is_file()


def test_audit_and_evaluate(installed, tmp_path):
    (tmp_path / "results.csv").write_text("method,P@1,P@3,R@1,R@3\nours,0.5,0.4,0.6,0.3\n")
    assert "R@" in command(installed, "audit", tmp_path / "results.csv", status=1)
    (tmp_path / "truth.txt").write_text("2 3\n0:1\n2:1\n")
    (tmp_path / "scores.txt").write_text("2 3\n0:0.5 1:0.9\n2:1\n")
    out = command(installed, "evaluate", tmp_path / "truth.txt", tmp_path / "scores.txt", "-k", "1", "--csv")
    assert "\nP,1,0.5\n" in out


def test_the_course_in_an_empty_folder(installed, tmp_path):
    """All lessons come with the wheel, and copies are made of them; a lesson runs there and prints what is committed."""
    folder = tmp_path / "students"
    out = command(installed, "course", "--self-study", "students", cwd=tmp_path)
    names = sorted(path.name for path in folder.glob("*.ipynb"))
    assert len(names) == 10
    assert all(name in out for name in names)
    lesson = json.loads((installed.site / "xcrepro/_project/notebooks/course" / names[0]).read_text(encoding="utf-8"))
    asked = {"cell_type": "code", "outputs": [], "execution_count": None, "metadata": {}, "id": "where"}
    asked |= {"source": "import xcrepro; print(xcrepro.__file__)"}
    path = folder / names[0]
    path.write_text(json.dumps(lesson | {"cells": [*lesson["cells"], asked]}), encoding="utf-8")
    run = "import sys, nbclient, nbformat; book = nbformat.read(sys.argv[1], 4); "
    run += "nbclient.NotebookClient(book, timeout=3600, kernel_name='python3').execute(); nbformat.write(book, sys.argv[1])"
    installed("-c", run, path.name, cwd=path.parent)
    *cells, where = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert str(installed.site) in "".join(where["outputs"][0]["text"])
    committed = {cell["id"]: printed(cell) for cell in lesson["cells"] if cell["cell_type"] == "code"}
    found = {cell["id"]: printed(cell) for cell in cells if cell["cell_type"] == "code" and cell["id"] in committed}
    assert len(found) > 10
    assert found == {cell: committed[cell] for cell in found}


def printed(cell: dict) -> str:
    """What a cell of a notebook printed, and its last value as text."""
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell["outputs"]]
    return "".join("".join(text) for text in texts if "<Figure" not in "".join(text))
