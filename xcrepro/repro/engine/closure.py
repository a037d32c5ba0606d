"""What code of the package a piece of work runs through, and digests of it: by these trainings and runs are known."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from xcrepro._names import WHERE
from xcrepro.core import plugins

PACKAGE = Path(__file__).resolve().parents[2]
SOURCES = {".py", ".toml", ".csv", ".mplstyle"}
_LARGE = 64 << 20  # bytes from which a file counts by size and time, not by content


def digests(modules: Iterable[Path]) -> dict[Path, str]:
    """SHA-256 of these files and of all that they import of the package, directly or not, but the engine."""
    found: dict[Path, str] = {}
    waiting = [*modules]
    while waiting:
        path = waiting.pop()
        own = not path.is_relative_to(PACKAGE)  # a reader's own model
        folder = "" if own else path.parent.relative_to(PACKAGE).as_posix()
        if path in found or folder in ("repro", "repro/engine", "repro/drawing"):
            continue
        named, found[path] = _code(path, path.stat().st_mtime_ns)
        waiting += named
    return found


def code_hash(path: Path) -> str:
    """SHA-256 of a file; of a module without its docstrings, which decide no number."""
    return _code(path, path.stat().st_mtime_ns)[1] if path.suffix == ".py" else file_hash(path)


@functools.lru_cache(maxsize=1024)
def _code(path: Path, _mtime: int) -> tuple[tuple[Path, ...], str]:
    """What a module imports of the package (:func:`imported`), and SHA-256 of its lines without docstrings."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines: list[str | None] = [*text.splitlines()]
    for node in _statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            first, rest = node.body[0], node.body[1:]
            alone = not lines[first.lineno - 1][: first.col_offset].strip()
            if alone and all(other.lineno > first.end_lineno for other in rest):  # as in all of the package's files
                lines[first.lineno - 1 : first.end_lineno] = [None] * (first.end_lineno - first.lineno + 1)
    code = "\n".join(line for line in lines if line is not None)
    return tuple(imported(tree, text)), hashlib.sha256(code.encode()).hexdigest()


def imported(tree: ast.AST, code: str) -> Iterator[Path]:
    """The package's files that ``code`` imports, wherever in it, with the ``__init__.py`` of their folders."""
    names: set[str] = set()
    # Expressions are most of a tree; they matter only where a file says the one word that is looked for in them.
    deep = ast.iter_child_nodes if "plugins.find" in code else _inside
    for node in _at_run_time(tree, deep):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == PACKAGE.name:
                    # `import xcrepro as xc`: what is taken from it, by the attributes' names.
                    called = alias.asname or alias.name
                    names |= {f"{PACKAGE.name}.{name}" for name in re.findall(rf"\b{called}\.(\w+(?:\.\w+)?)", code)}
                names.add(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "plugins.find":
            names |= {".".join(word.value for word in node.args if isinstance(word, ast.Constant))}
    for name in names:
        first, _, rest = name.partition(".")
        if first == PACKAGE.name and rest:
            public, dot, inside = rest.partition(".")
            name = f"{WHERE.get(public, f'{first}.{public}')}{dot}{inside}"
            room, _, last = name.rpartition(".")
            yield from _files(plugins.place(room, last) or name)


def _at_run_time(node: ast.AST, inside: Callable) -> Iterator[ast.AST]:
    """The nodes of a tree, but for what only a type checker reads, which decides no number."""
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        return
    yield node
    for child in inside(node):
        yield from _at_run_time(child, inside)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """A tree without its expressions."""
    yield node
    for child in _inside(node):
        yield from _statements(child)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """The statements, handlers and cases right inside a node."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        inside = getattr(node, part, None)
        if isinstance(inside, list):  # of a lambda it is an expression
            yield from inside


def _files(module: str) -> Iterator[Path]:
    place = PACKAGE
    for part in module.split(".")[1:]:
        place /= part
        if (package := place / "__init__.py").is_file():
            yield package
        elif (file := place.with_suffix(".py")).is_file():
            yield file


def file_hash(path: Path) -> str:
    """SHA-256 of the content; of a file above 64 MiB its size and the time of its last change."""
    stat = path.stat()
    if stat.st_size > _LARGE:
        return f"{stat.st_size} bytes of {stat.st_mtime_ns}"
    return _content_hash(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache(maxsize=4096)
def _content_hash(path: Path, _mtime: int, _size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
