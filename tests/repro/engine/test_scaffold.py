"""The recipe of CONTRIBUTING for a new item, followed in a copy of the project: in a paper that is there, and in a sixth."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys

import pytest

from tests.refused import refused
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.engine import manifest, scaffold


@pytest.fixture(scope="module")
def copy(root, tmp_path_factory):
    """A project with the package's sources and no items."""
    place = tmp_path_factory.mktemp("project")
    shutil.copytree(root / "xcrepro", place / "xcrepro", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(root / "maintenance", place / "maintenance", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(root / "data/tib", place / "data/tib")
    (place / "tests").mkdir()
    shutil.copy(root / "tests/notebook.py", place / "tests")
    shutil.copy(root / "constraints.txt", place)  # where it is missing no bits are promised
    (place / "notebooks").mkdir()
    (place / "notebooks/manifest.toml").write_text("")
    return place


def command(place, *arguments: str, status: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(place), "XCREPRO_ROOT": str(place)}
    done = subprocess.run([sys.executable, *arguments], cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_the_recipe(copy, root, monkeypatch, capsys, in_process):
    """All of it, for an item of a sixth paper, and the code of a new item of a paper that is there."""
    monkeypatch.setenv("XCREPRO_ROOT", str(copy))

    def xcrepro(*arguments: str, status: int = 0) -> str:
        assert main([*arguments]) == status
        return capsys.readouterr().out

    id = "sixth_paper/fig1_Precision"
    assert f"xcrepro accept {id}" in xcrepro("new", id, "--title", 'A "quoted" title')
    said = xcrepro("run", id, status=1)
    assert f"figures/{id}.csv is new" in said
    assert (copy / f"figures/{id}.png").stat().st_size > 5_000
    assert "1 ok" in xcrepro("accept", id)
    figure = list(csv.reader((copy / f"figures/{id}.csv").read_text().splitlines()))
    assert {row[-1] for row in figure} == {"data", "TIB, 2,000 of 17,740 records (real data), 400 test points"}
    notebook = (copy / f"notebooks/{id}.ipynb").read_text()
    for shown in (
        "Data: TIB, 2,000 of",
        "P@k of Popularity: by hand = call = ",
        "2 numbers and statements of the text hold",
    ):
        assert shown in notebook
    assert f"](../../figures/{id}.png)" in notebook
    said = command(copy, "-m", "maintenance.check")
    assert "all unchanged" in said
    assert "nothing to mend" in said
    assert manifest.load(copy)[id].title == 'A "quoted" title'

    xcrepro("new", "jain16/an_item")
    new = ["sixth_paper/test_fig1_Precision.py", "jain16/test_an_item.py"]
    tests = [f"tests/repro/papers/{name}" for name in new]
    command(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    settings = ("--config", str(root / "pyproject.toml"))
    files = [*tests, f"notebooks/{id}.ipynb", "notebooks/jain16/an_item.ipynb"]
    command(copy, "-m", "ruff", "check", *settings, *files)
    command(copy, "-m", "ruff", "format", "--check", *settings, *files)


def test_nothing_is_overwritten(project):
    (project.root / "xcrepro/repro/papers").mkdir(parents=True)
    project.add("one")
    for id, words in (
        ("demo/one", "be new"),
        ("demo/a-b", "look like"),
        ("demo", "look like"),
        ("demo/../x", "look like"),
        ("1demo/x", "look like"),
    ):
        with refused("item", repr(id), match=words):
            scaffold.new(id)
    test = project.root / "tests/repro/papers/demo/test_two.py"
    test.parent.mkdir(parents=True)
    test.write_text("mine")
    with pytest.raises(ArgumentError, match=r"test_two\.py"):
        scaffold.new("demo/two")
    assert test.read_text() == "mine"
    test.unlink()
    assert [path.name for path in scaffold.new("demo/two")] == [
        "two.ipynb", "test_two.py", "manifest.toml",
    ]  # fmt: skip


def test_a_project_without_the_sources(project):
    with refused("project", project.root):
        scaffold.new("demo/two")
