"""Whether an item must run again, and why: one stamp per item, written last.

What an item rests on in the package is the import closure of its module and notebook. ``data``, ``metrics``, ``models``
and ``published`` count whole, because they look their parts up by name.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import xcrepro
from xcrepro import paths
from xcrepro.repro import manifest, notebooks, recorded

PACKAGE = Path(xcrepro.__file__).resolve().parent
WHOLE = ("data", "metrics", "models", "published")
ENGINE = ("compare.py", "figures.py", "items.py", "recorded.py", "same.py", "tables.py")
_SOURCES = {".py", ".toml", ".csv", ".mplstyle"}
_LARGE = 64 << 20  # bytes from which a file counts by size and time, not by content


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


def short(root: Path, file: Path) -> str:
    """``file`` as it is shown and kept in stamps."""
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)


def _hashes(root: Path, files: Iterable[Path]) -> dict[str, str]:
    return {short(root, path): file_hash(path) for path in sorted(files) if path.is_file()}


# ---------------------------------------------------------------- what an item rests on in the package


def sources(entry: manifest.Entry) -> dict[str, str]:
    """File -> SHA-256 of the package's files that the item's numbers rest on."""
    module = PACKAGE / "papers" / f"{entry.id}.py"
    code = "\n".join(notebooks.text(cell["source"]) for cell in notebooks.code_cells(notebooks.read(entry.notebook)))
    try:
        imported = [*_imported(ast.parse(code), code)]
    except SyntaxError:
        imported = []  # the run will say so
    found = closure([*imported, *([module] if module.is_file() else [])], WHOLE)
    engine = PACKAGE / "repro"
    parts = _hashes(PACKAGE.parent, [*(engine / name for name in ENGINE), *engine.glob("*.mplstyle")])
    return parts | {short(PACKAGE.parent, path): found[path] for path in sorted(found)}


def closure(modules: Iterable[Path], whole: tuple[str, ...] = ()) -> dict[Path, str]:
    """SHA-256 of these files and of all that they import of the package, directly or not, but the engine.

    Of the folders in ``whole`` one file brings all others.
    """
    found, waiting, opened = {}, list(modules), set()
    while waiting:
        path = waiting.pop()
        folder = path.relative_to(PACKAGE).parts[0] if path.is_relative_to(PACKAGE) else ""  # a reader's own model
        if folder == "repro":
            continue
        imports, found[path] = _code(path, path.stat().st_mtime_ns) if path.suffix == ".py" else ((), file_hash(path))
        if folder in whole and folder not in opened:
            opened.add(folder)
            imports += tuple(part for part in (PACKAGE / folder).rglob("*") if part.suffix in _SOURCES)
        waiting += {*imports} - {*found, *waiting}
    return found


@functools.lru_cache(maxsize=1024)
def _code(path: Path, _mtime: int) -> tuple[tuple[Path, ...], str]:
    """The package's files that a module imports, and SHA-256 of its lines without docstrings, which decide no number."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines: list[str | None] = [*text.splitlines()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            first = node.body[0]
            lines[first.lineno - 1 : first.end_lineno] = [None] * (first.end_lineno - first.lineno + 1)
    code = "\n".join(line for line in lines if line is not None)
    return tuple(_imported(tree, text)), hashlib.sha256(code.encode()).hexdigest()


def _imported(tree: ast.AST, code: str) -> Iterator[Path]:
    """The package's files that ``code`` imports, wherever in it, with the ``__init__.py`` of their folders."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == xcrepro.__name__:
                    # `import xcrepro as xc`: what is taken from it, by the attributes' names.
                    called = alias.asname or alias.name
                    names |= {f"{xcrepro.__name__}.{name}" for name in re.findall(rf"\b{called}\.(\w+)", code)}
                names.add(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    for name in names:
        first, _, rest = name.partition(".")
        if first == xcrepro.__name__:
            yield from _files(xcrepro._WHERE.get(rest) or name)


def _files(module: str) -> Iterator[Path]:
    place = PACKAGE
    for part in module.split(".")[1:]:
        place /= part
        if (package := place / "__init__.py").is_file():
            yield package
        elif (file := place.with_suffix(".py")).is_file():
            yield file


def versions() -> dict[str, str]:
    """Version of Python and of every installed distribution that the package and its notebooks need, directly or not."""
    found: dict[str, str] = {"python": platform.python_version()}
    waiting = [xcrepro.__name__]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system, say
        found[name] = distribution.version
        own = ("notebooks", "download", "report") if name == xcrepro.__name__ else ()
        required = [
            text
            for text in distribution.requires or []
            if "extra ==" not in text or any(f"extra == {quote}{one}{quote}" in text for one in own for quote in "'\"")
        ]
        waiting += [re.match(r"[A-Za-z0-9._-]+", text).group() for text in required]
    return dict(sorted(found.items()))


# ---------------------------------------------------------------- the stamp


@dataclasses.dataclass(frozen=True)
class Stamp:
    """All that decides what a run gives, known before it, and the files that it read and wrote with their hashes."""

    fingerprint: dict
    inputs: dict[str, str]
    outputs: dict[str, str]

    def digest(self) -> str:
        """What the items that need this one keep of it: its parameters, what it read and what it wrote, but not its code."""
        text = json.dumps([self.fingerprint["parameters"], self.inputs, self.outputs], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(entry: manifest.Entry, values: dict, installed: dict[str, str], needs: dict[str, str]) -> dict:
    """All that decides what a run of ``entry`` gives and can be known before it."""
    return {
        "code": notebooks.code_hash(notebooks.read(entry.notebook)),
        "parameters": values,
        "sources": sources(entry),
        # One that was not there when the item ran shall be shown too.
        "recorded": _hashes(entry.root, recorded.files(entry.id, entry.root)),
        "versions": installed,
        "needs": needs,
    }


def path(entry: manifest.Entry, size: str) -> Path:
    """Where the stamp of an item lies, ``build/stamps/<size>/<id>.json``, whether it is there or not."""
    return entry.root / "build" / "stamps" / size / f"{entry.id}.json"


def made(
    entry: manifest.Entry, fingerprint: dict, inputs: Iterable[str | Path], outputs: Iterable[str | Path]
) -> Stamp:
    """The stamp of a run that read and wrote these files; those that are gone are left out."""
    return Stamp(fingerprint, *(_hashes(entry.root, map(Path, files)) for files in (inputs, outputs)))


def write_at(file: Path, stamp: Stamp) -> None:
    """Write a stamp, whole or not at all: last, when all that the run makes is there."""
    with paths.atomic_path(file) as part:
        part.write_text(json.dumps(dataclasses.asdict(stamp), indent=1), encoding="utf-8")


def read(entry: manifest.Entry, size: str) -> Stamp | None:
    """The stamp of the item's last finished run."""
    return read_at(path(entry, size))


def read_at(file: Path) -> Stamp | None:
    """The stamp in a file; None where there is none that can be read."""
    try:
        return Stamp(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def reason(entry: manifest.Entry, old: Stamp | None, new: dict) -> str | None:
    """Why the item must run again, in words."""
    if old is None:
        return "no finished run here yet"
    # As JSON has it, so that a tuple in the new one is no difference.
    new, was = json.loads(json.dumps(new)), old.fingerprint
    if was.get("code") != new["code"]:
        return "the notebook's code changed"
    for key, words in (
        ("parameters", "parameter"),
        ("sources", "source"),
        ("recorded", "input"),
        ("data", "input"),  # of a recording, whose folder may lie anywhere
        ("versions", "installed"),
    ):
        before, now = was.get(key, {}), new.get(key, {})
        if before != now:
            return f"{words} {_difference(before, now, show=key in ('parameters', 'versions'))}"
    if was.get("needs", {}) != new.get("needs", {}):
        changed = [name for name in new.get("needs", {}) if was.get("needs", {}).get(name) != new["needs"][name]]
        return f"{changed[0] if changed else 'what it needs'} changed, which it needs"
    for words, files in (("input", old.inputs), ("output", old.outputs)):
        for name, hashed in files.items():
            file = entry.root / name
            if not file.is_file():
                return f"{words} {name} is not there"
            if file_hash(file) != hashed:
                return f"{words} {name} " + ("changed" if words == "input" else "is not as it was written")
    return None


def _difference(old: dict, new: dict, show: bool) -> str:
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    first = changed[0]
    if first not in new:
        text = f"{first} is gone"
    elif first not in old:
        text = f"{first} is new"
    else:
        text = f"{first} {old[first]} -> {new[first]}" if show else f"{first} changed"
    return text + (f" (and {len(changed) - 1} more)" if len(changed) > 1 else "")
