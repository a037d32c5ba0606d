"""The house: four wings and who may import whom, an item is one thing in one place, a method's look stands in one file."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from xcrepro.repro.engine import manifest

MAY_IMPORT = {
    "core": {"core"},
    "models": {"core", "models"},
    "repro": {"core", "models", "repro"},
    "tools": {"core", "models", "repro", "tools"},
}
"""Wing -> whose modules it imports. What lies on top (``__init__``, ``__main__``, ``_names``) opens the wings."""
ON_TOP = {"_names"}
"""What a wing may import of that: the list of public names."""


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def files(root: Path, folder: str = "xcrepro") -> list[Path]:
    return sorted((root / folder).rglob("*.py"))


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """The modules of the package that a file imports, anywhere in it: ``models.plt``, ``repro.inputs.stored``, ..."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if node.module else set()
    return frozenset(name.partition(".")[2] for name in found if name.partition(".")[0] == "xcrepro")


def test_imports_run_one_way(root):
    for wing, may in MAY_IMPORT.items():
        for path in files(root, f"xcrepro/{wing}"):
            above = {name.split(".")[0] for name in imported(path)} - may - ON_TOP
            assert not above, f"{path} imports {above}"


def test_there_are_four_wings(root):
    home = (root / "xcrepro").iterdir()
    inside = {path.stem for path in home if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert inside - {"__init__", "__main__", *ON_TOP} == set(MAY_IMPORT)
    for wing in MAY_IMPORT:
        assert (root / "tests" / wing).is_dir()


def test_no_two_modules_import_each_other(root):
    """Neither at the top nor in a function, however long the way round; what only a type checker reads is left out."""
    modules = {
        path.relative_to(root / "xcrepro").with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
        for path in files(root)
        if path.relative_to(root / "xcrepro").as_posix() not in ("__init__.py", "__main__.py")
    }
    after = {}
    for name, path in modules.items():
        after[name] = [*{_module(one, modules) for one in at_run_time(tree(path))} - {None, name}]
    done, way = set(), []

    def visit(name: str) -> None:
        assert name not in way, " -> ".join([*way[way.index(name) :], name])
        if name not in done:
            way.append(name)
            for other in after[name]:
                # A package's own __init__ looks its parts up by name.
                if not other.startswith(f"{name}."):
                    visit(other)
            done.add(way.pop())

    for name in modules:
        visit(name)


def at_run_time(node: ast.AST) -> set[str]:
    """Full names that are imported, but for a type checker."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return set()
    found = set().union(*map(at_run_time, ast.iter_child_nodes(node)))
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("xcrepro."):
        found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _module(name: str, modules: dict[str, Path]) -> str | None:
    name = name.removeprefix("xcrepro.")
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def test_the_engine_knows_no_xc(root):
    """What runs, stamps, compares and draws imports nothing of what it runs."""
    ground = {f"core.{name}" for name in ("arguments", "errors", "extras", "paths", "plugins", "threads", "version")}
    for path in (*files(root, "xcrepro/repro/engine"), *files(root, "xcrepro/repro/drawing")):
        for name in imported(path) - {"_names.WHERE"}:
            assert ".".join(name.split(".")[:2]) in {*ground, "repro.engine", "repro.drawing"}, (path, name)


def test_judges_know_nothing_of_what_they_judge(root):
    for path in (root / "tests/fuzz/slow.py", *(root / "tests/mutants").glob("*.py")):
        assert not imported(path), path
    for path in files(root):
        above = r"^\s*(from|import) (tests|maintenance|docs|benchmarks)\b"
        assert not re.search(above, path.read_text(), re.MULTILINE), path


def test_engines_are_imported_only_when_asked_for(root):
    """At the top of no file: `import xcrepro` and `xcrepro --help` wait for none of them."""
    for path in files(root):
        top = [node for node in tree(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
        asked = {name.split(".")[0] for name in names} & {"dask", "distributed", "pyarrow"}
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
            if home == "notebooks" and (folder.name.startswith(".") or folder.name == manifest.LESSONS):
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
