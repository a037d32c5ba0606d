"""Whether an item must run again, and why: one stamp an item, written last."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Iterable
from pathlib import Path

import xcrepro
from xcrepro import paths
from xcrepro.repro import items, manifest, notebooks

PACKAGE = Path(xcrepro.__file__).resolve().parent
_SOURCES = {".py", ".toml", ".mplstyle"}


def file_hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hashes(root: Path, files: Iterable[Path]) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): file_hash(path) for path in sorted(files)}


def package_hashes() -> dict[str, str]:
    """File -> SHA-256 of the package's own sources."""
    return _hashes(PACKAGE.parent, (path for path in PACKAGE.rglob("*") if path.suffix in _SOURCES))


def versions() -> dict[str, str]:
    """Version of Python and of every installed distribution the package depends on, directly or not."""
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
        required = [text for text in distribution.requires or [] if "extra ==" not in text]
        waiting += [re.match(r"[A-Za-z0-9._-]+", text).group() for text in required]
    return dict(sorted(found.items()))


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """What all items of one run share; looked at once, when the run starts."""

    package: dict[str, str]
    versions: dict[str, str]

    @classmethod
    def now(cls) -> Surroundings:
        return cls(package_hashes(), versions())


def inputs(root: Path, entry: manifest.Entry, size: str) -> dict[str, str]:
    """File -> SHA-256 of the item's declared inputs (folders with all that is in them) and its golden files.

    Raises ``FileNotFoundError`` with the declared input that is not there.
    """
    files: list[Path] = []
    for text in entry.inputs:
        path = root / text
        if not path.exists():
            raise FileNotFoundError(text)
        files += [part for part in path.rglob("*") if part.is_file()] if path.is_dir() else [path]
    golden = root / "tests" / "golden" / size / f"{entry.id}.csv"
    files += [path for path in (golden, *golden.parent.glob(f"{golden.stem}-*.csv")) if path.is_file()]
    return _hashes(root, files)


def fingerprint(root: Path, entry: manifest.Entry, values: dict, around: Surroundings, needs: dict[str, str]) -> dict:
    """All that decides what a run of ``entry`` gives; ``needs`` maps the items it builds on to their :func:`digest`."""
    return {
        "code": notebooks.code_hash(notebooks.read(root / "notebooks" / entry.notebook)),
        "parameters": values,
        "entry": {"outputs": list(entry.outputs), "tolerance": entry.tolerance},
        "package": around.package,
        "inputs": inputs(root, entry, values["size"]),
        "versions": around.versions,
        "needs": needs,
    }


def digest(fingerprint: dict) -> str:
    return hashlib.sha256(json.dumps(fingerprint, sort_keys=True).encode()).hexdigest()


def output_paths(root: Path, entry: manifest.Entry, size: str, official: bool = True) -> list[Path]:
    """The declared outputs of a run: those under ``figures/`` are where :func:`xcrepro.repro.items.folder` says."""
    figures = items.folder(size, official)
    # A reader's own run answers for its figures only.
    declared = [text for text in entry.outputs if official or text.startswith("figures/")]
    return [
        figures / text.removeprefix("figures/") if text.startswith("figures/") else root / text for text in declared
    ]


def path(root: Path, entry: manifest.Entry, size: str) -> Path:
    return root / "build" / "stamps" / size / f"{entry.id}.json"


def write(root: Path, entry: manifest.Entry, fingerprint: dict) -> None:
    """Say that the item is done. Called last, when all outputs are there."""
    size = fingerprint["parameters"]["size"]
    outputs = {short(root, file): file_hash(file) for file in output_paths(root, entry, size)}
    with paths.atomic_path(path(root, entry, size)) as part:
        part.write_text(json.dumps({"fingerprint": fingerprint, "outputs": outputs}, indent=1), encoding="utf-8")


def reason(root: Path, entry: manifest.Entry, new: dict) -> str | None:
    """Why the item must run again, in words; None when it need not."""
    size = new["parameters"]["size"]
    try:
        stamp = json.loads(path(root, entry, size).read_text(encoding="utf-8"))
        old, outputs = stamp["fingerprint"], stamp["outputs"]
    except (OSError, ValueError, KeyError):
        return "no finished run here yet"
    # As JSON has it, so that a tuple in the new one is no difference.
    new = json.loads(json.dumps(new))
    if old.get("code") != new["code"]:
        return "the notebook's code changed"
    for key, words in (
        ("parameters", "parameter"),
        ("entry", "manifest:"),
        ("package", "source"),
        ("inputs", "input"),
        ("versions", "installed"),
    ):
        if old.get(key) != new[key]:
            return f"{words} {_difference(old.get(key, {}), new[key], show=key in ('parameters', 'entry', 'versions'))}"
    if old.get("needs") != new["needs"]:
        changed = [name for name in new["needs"] if old.get("needs", {}).get(name) != new["needs"][name]]
        return f"{changed[0] if changed else 'what it needs'} changed, which it needs"
    for file in output_paths(root, entry, size):
        if not file.is_file():
            return f"output {short(root, file)} is not there"
        if outputs.get(short(root, file)) != file_hash(file):
            return f"output {short(root, file)} is not as it was written"
    return None


def short(root: Path, file: Path) -> str:
    """``file`` from the project folder where it lies in it."""
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)


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
