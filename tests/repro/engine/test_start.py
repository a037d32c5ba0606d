"""What an installed wheel brings stands behind the project's own files; ``xcrepro start`` copies the notebooks."""

from __future__ import annotations

import pytest

from maintenance import check
from tests.refused import refused
from tests.repro.conftest import Project
from xcrepro.__main__ import main
from xcrepro.core import paths
from xcrepro.core.errors import XCError
from xcrepro.repro.engine import manifest, recorded, runner, tidy
from xcrepro.repro.engine.start import start


@pytest.fixture
def brought(tmp_path_factory, tmp_path, monkeypatch):
    """A wheel that brings one item, its tables and a record, and a working folder that is no project."""
    for name in ("XCREPRO_FIGURES", "XCREPRO_ACCEPT", "XCREPRO_RECORD", "XCREPRO_ROOT"):
        monkeypatch.delenv(name, raising=False)
    project = Project(tmp_path_factory.mktemp("brought"))
    project.add("one", "1 + 1")
    project.figure("demo/one.csv", "k\n1\n")
    project.figure("demo/one-part.csv", "k\n1\n")
    (project.root / "notebooks" / ".ipynb_checkpoints").mkdir()
    (project.root / "notebooks" / ".ipynb_checkpoints" / "one.ipynb").write_text("{}")
    (project.root / "notebooks" / "glossary.md").write_text("words")
    for name in ("a", "b"):
        path = project.root / "data" / "recorded" / "demo" / "one" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("brought")
    monkeypatch.setattr(paths, "_BROUGHT", project.root)
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return project


def test_outside_of_a_project_runs_write_into_the_cache(brought, tmp_path):
    assert paths.project_root() == tmp_path / "cache" / "project"
    entry = manifest.load()["demo/one"]
    assert (entry.root, entry.home) == (tmp_path / "cache" / "project", brought.root)
    assert entry.notebook == brought.root / "notebooks" / "demo" / "one.ipynb"
    assert [path.name for path in entry.tables()] == ["one-part.csv", "one.csv"]
    assert all(path.is_relative_to(brought.root) for path in entry.tables())
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("brought")
@pytest.mark.parametrize("change", [lambda: runner.run("demo/one", accept=True), check.project, tidy.tidy])
def test_what_was_installed_is_not_changed(change):
    with pytest.raises(XCError, match="xcrepro start"):
        change()


def test_a_started_folder_has_the_notebooks_alone(brought, tmp_path, monkeypatch, capsys):
    assert main(["start", "own"]) == 0
    assert "1 notebooks" in capsys.readouterr().out
    own = tmp_path / "elsewhere" / "own"
    files = sorted(path.relative_to(own).as_posix() for path in own.rglob("*") if path.is_file())
    assert files == ["notebooks/demo/one.ipynb", "notebooks/glossary.md", "notebooks/manifest.toml"]
    monkeypatch.chdir(own / "notebooks")
    entry = manifest.load()["demo/one"]
    assert entry.root == entry.home == own
    # Each file that it gets stands before the one of that name that was brought, the others stay.
    own_table = own / "figures" / "demo" / "one.csv"
    own_table.parent.mkdir(parents=True)
    own_table.write_text("k\n2\n")
    assert entry.tables()[1] == own_table
    assert entry.tables()[0].is_relative_to(brought.root)
    (own / "data" / "recorded" / "demo" / "one").mkdir(parents=True)
    (own / "data" / "recorded" / "demo" / "one" / "b.csv").write_text("own")
    assert [path.read_text() for path in recorded.files("demo/one")] == ["brought", "own"]
    assert paths.committed("data/nothing") == own / "data" / "nothing"


@pytest.mark.usefixtures("brought")
def test_start_overwrites_nothing(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with refused("folder", match=r"empty .*thesis\.tex"):
        start(tmp_path / "full")
    with refused("folder", tmp_path / "full" / "thesis.tex"):
        start(tmp_path / "full" / "thesis.tex")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]
    (tmp_path / "empty").mkdir()
    assert start(tmp_path / "empty")


def test_a_clone_is_what_it_brings(root, monkeypatch, tmp_path):
    monkeypatch.delenv("XCREPRO_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert root == paths._BROUGHT
    assert paths.project_root() == root
    # A folder that `xcrepro start` made from it: what that does not have is the clone's.
    assert paths.committed("figures", tmp_path) == root / "figures"
