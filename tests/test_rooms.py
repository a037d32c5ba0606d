"""The house: an item is one thing in one place, the engine knows no XC, a method's look stands in one file."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from xcrepro.repro import guard, manifest

GROUND = {"errors", "extras", "paths", "threads", "arguments", "cluster", "arithmetic", "distributions", "closure"}


LIBRARY = {"calibrate", "data", "decide", "diagnose", "folds", "formats", "kernels", "matrices", "metrics", "models"}
LIBRARY |= {"predictions", "propensity", "published", "tensors", "truth", "results", "cache"}
CHECKED = {*GROUND, "data", "matrices", "truth", "predictions"}
ONLY = {
    "formats": {*CHECKED, "tensors"},
    "scale": {*CHECKED, "folds", "metrics", "decide"},
    "course": {*GROUND, "repro"},
    "kernels": set(),
}
"""What a room may import; of the others only what they may not is said."""


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def files(root: Path, folder: str = "xcrepro") -> list[Path]:
    return sorted((root / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The parts of the package that a file imports, anywhere in it: ``models``, ``repro.figures``, ..."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if node.module else set()
    return {name.partition(".")[2] for name in found if name.startswith("xcrepro.")}


def test_the_engine_knows_no_xc(root):
    for path in (root / "xcrepro/repro").glob("*.py"):
        others = {name for name in imported(path) if name.split(".")[0] not in {*GROUND, "repro"}}
        assert others <= {"_WHERE"}, f"{path.name} imports {others}"


def never(room: str) -> set[str]:
    """The rooms that a room may not import, because they lie above it."""
    below = LIBRARY | GROUND
    found = {"papers"} if room not in {"papers", "__init__"} else set()
    found |= {"reports"} if room not in {"reports", "papers", "commands", "__init__"} else set()
    found |= {"inputs", "repro", "looks"} if room in below | {"looks"} else set()
    found |= {"repro"} if room == "inputs" else set()
    found |= {"formats"} if room in below - {"formats"} else set()
    found |= {"scale"} if room in below | {"inputs", "repro"} else set()
    return found - {room}


def test_imports_run_one_way(root):
    """Ground floor <- kernels <- containers <- library <- inputs, engine <- papers; nobody imports the papers."""
    for path in files(root):
        room = path.relative_to(root / "xcrepro").parts[0].removesuffix(".py")
        above = {name.split(".")[0] for name in imported(path)} - {room}
        assert not above & never(room), f"{path} imports {above}"
        assert above <= ONLY.get(room, above), f"{path} imports {above}"
    for path in files(root, "xcrepro/repro/papers"):
        paper = path.parent.name
        assert not {n for n in imported(path) if n.startswith("papers.") and n.split(".")[1] != paper}, path


def test_judges_know_nothing_of_what_they_judge(root):
    for path in (root / "tests/fuzz/slow.py", *(root / "tests/mutants").glob("*.py")):
        assert not imported(path), path
    for path in files(root):
        assert not re.search(r"^\s*(from|import) tests\b", path.read_text(), re.MULTILINE), path


def test_engines_are_imported_only_when_asked_for(root):
    """At the top of no file: `import xcrepro` and `xcrepro --help` wait for none of them."""
    for path in files(root):
        top = [node for node in tree(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
        asked = {name.split(".")[0] for name in names} & {"dask", "distributed", "joblib", "zarr", "pyarrow"}
        assert not asked, f"{path} imports {asked}"


def test_every_item_is_one_name(root):
    """Notebook and table; a module and its test where the notebook does not hold all its code; no other file stands there."""
    items = manifest.load(root)
    for id, entry in items.items():
        paper, _, name = id.partition("/")
        module = root / f"xcrepro/repro/papers/{id}.py"
        assert entry.tables(), f"{id} has no table under figures/"
        pictures = any(path.suffix == ".png" for path in entry.figures())
        if not module.is_file():
            continue  # what the notebook computes is held to what is committed, and to its statements
        assert (root / f"tests/repro/papers/{paper}/test_{name}.py").is_file(), id
        names = set()
        for node in tree(module).body:
            names |= {node.name} if isinstance(node, ast.FunctionDef) else set()
            names |= {target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)}
        assert any(re.fullmatch(r"compute(_\w+)?", name) for name in names), f"{id} computes nothing"
        assert pictures == any(re.fullmatch(r"plot(_\w+)?", name) for name in names), id
    for home, suffix, extra in (
        ("xcrepro/repro/papers", ".py", {"__init__", "_common"}),
        ("notebooks", ".ipynb", set()),
        ("tests/repro/papers", ".py", {"conftest", "common"}),
    ):
        for folder in (path for path in (root / home).iterdir() if path.is_dir() and "__" not in path.name):
            if home == "notebooks" and (folder.name.startswith(".") or folder.name == guard.LESSONS):
                continue  # lessons are no items: tests/tools/course looks at them
            known = {id.partition("/")[2] for id in items if id.partition("/")[0] == folder.name}
            files = [path for path in folder.iterdir() if path.name not in ("__pycache__", ".ipynb_checkpoints")]
            odd = [p.name for p in files if p.suffix != suffix or p.stem.removeprefix("test_") not in known | extra]
            assert odd == [], f"{folder} holds {odd}"


@pytest.mark.parametrize(
    ("pattern", "what"),
    [(r"#[0-9a-fA-F]{6}\b", "a colour"), (r"\b(font|label|title_?font)size\s*=\s*[\d.]", "a size of text")],
)
def test_looks_stand_in_one_place(root, pattern, what):
    for path in files(root):
        if path.name != "looks.py":
            found = re.search(pattern, path.read_text())
            assert not found, f"{path} has {what}: {found.group()}; it belongs into looks.py"


def test_item_modules_use_words_that_can_be_searched(root):
    for path in files(root):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef):
                assert node.name not in {"beside", "steady", "told", "fall", "falls", "solid", "lost", "moved"}, path
