"""The list of items: ``notebooks/manifest.toml``, read and checked whole before anything uses it."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import tomllib
from pathlib import Path, PurePosixPath

from xcrepro import paths
from xcrepro.errors import ArgumentError, XCError

SIZES = ("small", "paper")
_ID = re.compile(r"[a-z0-9_]+(/[A-Za-z0-9_]+)+")


class ManifestError(XCError, ValueError):
    """``manifest.toml`` breaks a rule. The message names the file, the item and the key."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One ``[[item]]``.

    ``parameters`` maps a size to the complete parameters of the official run at that size, ``size`` itself left out;
    a size that is not there is not offered. ``outputs`` and ``inputs`` are paths from the project folder.
    ``tolerance`` is relative (see :func:`xcrepro.repro.golden.check`); None is the default one.
    """

    id: str
    title: str
    paper: str
    notebook: str
    parameters: dict[str, dict]
    stage: int = 1
    needs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    tolerance: float | None = None
    tolerance_why: str = ""
    published: tuple[str, ...] = ()

    def official(self, size: str) -> dict | None:
        """All parameters of the official run at ``size``, ``size`` first; None where the item does not offer it."""
        return {"size": size, **self.parameters[size]} if size in self.parameters else None


def load(root: str | os.PathLike | None = None) -> dict[str, Entry]:
    """Read ``<root>/notebooks/manifest.toml``; ``root`` defaults to the project folder.

    Returns id -> :class:`Entry` in the order in which the items run: by stage, then as written. Raises
    :class:`ManifestError` for an unknown or missing key, a wrong type, a notebook that is not there, an id used
    twice, a need that is unknown, of a later stage or circular, and a tolerance without its reason (or the reverse).

    >>> import pathlib, tempfile
    >>> root = pathlib.Path(tempfile.mkdtemp()); (root / "notebooks").mkdir()
    >>> _ = (root / "notebooks/a.ipynb").write_text("{}")
    >>> _ = (root / "notebooks/manifest.toml").write_text('''
    ... [[item]]
    ... id = "demo/one"
    ... notebook = "a.ipynb"
    ... title = "A table"
    ... paper = "demo"
    ... parameters.small = { seed = 0 }
    ... ''')
    >>> load(root)["demo/one"].official("small")
    {'size': 'small', 'seed': 0}
    """
    root = paths.project_root() if root is None else Path(root)
    path = root / "notebooks" / "manifest.toml"
    try:
        stat = path.stat()
    except FileNotFoundError:
        raise ManifestError(f"{path} is not there: run inside the project folder, or set XCREPRO_ROOT to it") from None
    return dict(_load(path, stat.st_mtime_ns, stat.st_size))


@functools.lru_cache(maxsize=4)
def _load(path: Path, _mtime: int, _size: int) -> dict[str, Entry]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path} is not valid TOML: {error}") from None
    if extra := set(document) - {"item"}:
        raise ManifestError(f"{path}: unknown top-level key {sorted(extra)[0]!r}; only [[item]] is known")
    entries: dict[str, Entry] = {}
    for number, table in enumerate(document.get("item", []), start=1):
        entry = _entry(path, number, table)
        if entry.id in entries:
            raise ManifestError(f"{path}: item {entry.id!r} is there twice; ids are unique")
        entries[entry.id] = entry
    _check_needs(path, entries)
    return dict(sorted(entries.items(), key=lambda pair: pair[1].stage))


_TYPES = {
    "id": (str, "a text"),
    "title": (str, "a text"),
    "paper": (str, "a text"),
    "notebook": (str, "a text"),
    "parameters": (dict, "tables parameters.small and parameters.paper"),
    "stage": (int, "a whole number"),
    "needs": (list, "a list of texts"),
    "outputs": (list, "a list of texts"),
    "inputs": (list, "a list of texts"),
    "tolerance": ((int, float), "a number"),
    "tolerance_why": (str, "a text"),
    "published": (list, "a list of texts"),
}


def _entry(path: Path, number: int, table: dict) -> Entry:
    name = table.get("id", f"number {number}")

    def refuse(text: str) -> ManifestError:
        return ManifestError(f"{path}, item {name}: {text}")

    for key, value in table.items():
        if key not in _TYPES:
            raise refuse(f"unknown key {key!r}; known are {', '.join(_TYPES)}")
        kind, words = _TYPES[key]
        bad = not isinstance(value, kind) or isinstance(value, bool)
        if bad or (kind is list and not all(isinstance(part, str) for part in value)):
            raise refuse(f"{key} must be {words}; got {value!r}")
    for key in ("id", "title", "paper", "notebook", "parameters"):
        if not table.get(key):
            raise refuse(f"{key} is missing or empty")
    if not _ID.fullmatch(table["id"]):
        raise refuse("id must look like 'paper/item_name' (letters, digits and _; a dash marks a part's file)")
    for size, values in table["parameters"].items():
        if size not in SIZES:
            raise refuse(f"parameters.{size} is not a size; sizes are {' and '.join(SIZES)}")
        if not isinstance(values, dict):
            raise refuse(f"parameters.{size} must be a table; got {values!r}")
        if "size" in values:
            raise refuse(f"parameters.{size} must not repeat `size`: the table's name says it")
    if "small" not in table["parameters"]:
        raise refuse("parameters.small is missing; write `parameters.small = {}` where there are none besides size")
    if "paper" in table["parameters"] and set(table["parameters"]["paper"]) != set(table["parameters"]["small"]):
        raise refuse("parameters.small and parameters.paper must have the same names")
    for key in ("outputs", "inputs"):
        for text in table.get(key, []):
            parts = PurePosixPath(text)
            if parts.is_absolute() or ".." in parts.parts:
                raise refuse(f"{key}: {text!r} must be a path inside the project folder")
    if not (path.parent / table["notebook"]).is_file():
        raise refuse(f"notebook {path.parent / table['notebook']} is not there")
    if ("tolerance" in table) != bool(table.get("tolerance_why", "").strip()):
        raise refuse("tolerance and tolerance_why go together: a wider tolerance is justified in writing")
    if not 0 < table.get("tolerance", 1e-9) < 1:
        raise refuse(f"tolerance must be between 0 and 1 (it is relative); got {table['tolerance']}")
    return Entry(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})


def _check_needs(path: Path, entries: dict[str, Entry]) -> None:
    for entry in entries.values():
        for need in entry.needs:
            if need not in entries:
                raise ManifestError(f"{path}, item {entry.id}: needs {need!r}, which is not an item")
            if entries[need].stage > entry.stage:
                raise ManifestError(f"{path}, item {entry.id}: needs {need}, which is of a later stage")
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            circle = " -> ".join((*trail[trail.index(name) :], name))
            raise ManifestError(f"{path}: items need each other in a circle: {circle}")
        if name not in done:
            for need in entries[name].needs:
                visit(need, (*trail, name))
            done.add(name)

    for name in entries:
        visit(name, ())


def select(entries: dict[str, Entry], items: str | list[str] | tuple[str, ...] | None) -> list[str]:
    """The ids meant by ``items``, what they need included, in running order.

    ``items`` is None or empty for all, or ids and paper names, as a list or as one text separated by commas or blanks.
    Raises :class:`~xcrepro.errors.ArgumentError` for a name that is neither, with the nearest that is.
    """
    words = re.split(r"[,\s]+", items.strip()) if isinstance(items, str) else list(items or [])
    words = [word for word in words if word]
    chosen: set[str] = set() if words else set(entries)

    def add(name: str) -> None:
        if name not in chosen:
            chosen.add(name)
            for need in entries[name].needs:
                add(need)

    for word in words:
        matches = [name for name in entries if name == word or name.startswith(word.rstrip("/") + "/")]
        if not matches:
            import difflib

            near = difflib.get_close_matches(word, entries, n=1)
            hint = f"did you mean {near[0]}?" if near else "`xcrepro list` shows them"
            raise ArgumentError("items", "must be ids or paper names of the manifest", repr(word), hint)
        for name in matches:
            add(name)
    return [name for name in entries if name in chosen]
