"""Whether an item must run again, and why: one stamp per item, written last.

What an item rests on in the package are the rooms that a notebook reaches by names and recipes (:data:`ROOMS`), and what it
imports of the tools.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable
from pathlib import Path

from xcrepro.core import paths
from xcrepro.repro.engine import closure, manifest, notebooks, prose_numbers, recorded

ROOMS = ("core", "models", "repro/drawing", "repro/inputs", "repro/papers", "repro/published")
ENGINE = ("compare_outputs.py", "items.py", "prose_numbers.py", "recorded.py", "rounding.py")
"""Of the engine, what decides what is written; the rest only says when and where it runs."""


def short(root: Path, file: Path) -> str:
    """``file`` as it is shown and kept in stamps."""
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)


def _hashes(root: Path, files: Iterable[Path]) -> dict[str, str]:
    return {short(root, path): closure.file_hash(path) for path in sorted(files) if path.is_file()}


# ---------------------------------------------------------------- what an item rests on in the package


def sources(entry: manifest.Entry) -> dict[str, str]:
    """File -> SHA-256 of the package's files that the item can rest on: whole rooms, and what it opens of the tools."""
    code = "\n".join(notebooks.text(cell["source"]) for cell in notebooks.code_cells(notebooks.read(entry.notebook)))
    try:
        named = [*closure.imported(ast.parse(code), code)]
    except SyntaxError:
        named = []  # the run will say so
    found = closure.digests(path for path in named if path.is_relative_to(closure.PACKAGE / "tools"))
    files = [closure.PACKAGE / "repro/engine" / name for name in ENGINE]
    files += [path for room in ROOMS for path in (closure.PACKAGE / room).rglob("*")]
    found |= {path: closure.code_hash(path) for path in files if path.suffix in closure.SOURCES}
    return {short(closure.PACKAGE.parent, path): found[path] for path in sorted(found)}


def versions() -> dict[str, str]:
    """Version of Python and of every installed distribution that the package and its notebooks need, directly or not."""
    found: dict[str, str] = {"python": platform.python_version()}
    waiting = ["xcrepro"]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system, say
        found[name] = distribution.version
        own = ("notebooks", "download", "report") if name == "xcrepro" else ()
        required = [
            text
            for text in distribution.requires or []
            if "extra ==" not in text or any(f"extra == {quote}{one}{quote}" in text for one in own for quote in "'\"")
        ]
        waiting += [re.match(r"[A-Za-z0-9._-]+", text).group() for text in required]
    return dict(sorted(found.items()))


# ---------------------------------------------------------------- the stamp

# In a fingerprint, besides the code.
_ALWAYS, _ALSO = ("parameters", "sources", "versions"), ("recorded", "data", "needs")


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
    notebook = notebooks.read(entry.notebook)
    return {
        "code": notebooks.code_hash(notebook),
        "text": prose_numbers.digest(notebook),
        "parameters": values,
        "sources": sources(entry),
        # One that was not there when the item ran shall be shown too.
        "recorded": _hashes(entry.root, recorded.files(entry.id, entry.root)),
        "versions": installed,
        "needs": needs,
    }


def path(entry: manifest.Entry) -> Path:
    """Where the stamp of an item lies, ``build/stamps/<id>.json``, whether it is there or not."""
    return entry.root / "build" / "stamps" / f"{entry.id}.json"


def made(
    entry: manifest.Entry, fingerprint: dict, inputs: Iterable[str | Path], outputs: Iterable[str | Path]
) -> Stamp:
    """The stamp of a run that read and wrote these files; those that are gone are left out."""
    return Stamp(fingerprint, *(_hashes(entry.root, map(Path, files)) for files in (inputs, outputs)))


def write_at(file: Path, stamp: Stamp) -> None:
    """Write a stamp, whole or not at all: last, when all that the run makes is there."""
    with paths.atomic_path(file) as part:
        part.write_text(json.dumps(dataclasses.asdict(stamp), indent=1), encoding="utf-8")


def read(entry: manifest.Entry) -> Stamp | None:
    """The stamp of the item's last finished run."""
    return read_at(path(entry))


def read_at(file: Path) -> Stamp | None:
    """The stamp in a file; None where there is none that can be read, or what is there is of something else."""
    try:
        found = Stamp(**json.loads(file.read_text(encoding="utf-8")))
        parts = [found.inputs, found.outputs, *(found.fingerprint[name] for name in _ALWAYS)]
        parts += [found.fingerprint[name] for name in _ALSO if name in found.fingerprint]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return found if all(isinstance(part, dict) for part in parts) else None


_WORDS = {"parameters": "parameter", "sources": "source", "recorded": "input", "data": "input", "versions": "installed"}
"""What a changed part of a fingerprint is called; data are a recording's, whose folder may lie anywhere."""


def reason(entry: manifest.Entry, old: Stamp | None, new: dict) -> str | None:
    """Why the item must run again, in words."""
    if old is None:
        return "no finished run here yet"
    # As JSON has it, so that a tuple in the new one is no difference.
    new, was = json.loads(json.dumps(new)), old.fingerprint
    for key, words in (("code", "the notebook's code changed"), ("text", "a number of its text changed")):
        if was.get(key) != new.get(key):
            return words
    for key, words in _WORDS.items():
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
            if closure.file_hash(file) != hashed:
                return f"{words} {name} " + ("changed" if words == "input" else "is not as it was written")
    return None


def _difference(old: dict, new: dict, show: bool) -> str:
    first, *others = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if first not in new:
        text = f"{first} is gone"
    elif first not in old:
        text = f"{first} is new"
    else:
        text = f"{first} {old[first]} -> {new[first]}" if show else f"{first} changed"
    return text + (f" (and {len(others)} more)" if others else "")
