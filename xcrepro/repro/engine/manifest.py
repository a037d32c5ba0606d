"""The list of items: ``notebooks/manifest.toml``, which says of each only what cannot be derived.

An item ``paper/name`` has the notebook ``notebooks/paper/name.ipynb``, perhaps the module ``papers/paper/name.py``, and
``figures/paper/name*``. Its parameters are those of the notebook's parameters cell, its committed values those accepted.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import tomllib
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.arguments import did_you_mean
from xcrepro.core.errors import ArgumentError, XCError
from xcrepro.repro.engine import notebooks

_LISTING = "notebooks/manifest.toml"
_ID = re.compile(r"[a-z0-9_]+/[A-Za-z0-9_]+")


def is_id(text: str) -> bool:
    """Whether ``text`` looks like ``paper/item_name``: letters, digits and _; a dash marks a part's file."""
    return _ID.fullmatch(text) is not None


LESSONS = "course"
"""The folder of notebooks that are lessons: no items, so they have no parameters and take the words they need."""


class ManifestError(XCError, ValueError):
    """``manifest.toml`` breaks a rule. The message names the file, the item and the key."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One item, as ``notebooks/manifest.toml`` and the notebook describe it."""

    id: str
    title: str
    root: Path
    home: Path
    needs: tuple[str, ...] = ()
    long: bool = False
    seconds: int = 0
    recorded: dict[str, dict] = dataclasses.field(default_factory=dict)
    papers: dict[str, object] = dataclasses.field(default_factory=dict)

    @property
    def notebook(self) -> Path:
        """``notebooks/<id>.ipynb``."""
        return self.home / "notebooks" / f"{self.id}.ipynb"

    def official(self) -> dict:
        """All parameters of the committed run, whatever a reader has written into the parameters cell since it was accepted."""
        notebook = notebooks.read(self.notebook)
        here = notebooks.parameters(self.notebook, notebook)
        found = notebooks.accepted(notebook).get("parameters", here)
        return {name: found[name] for name in sorted(found, key=[*here, *found].index)}

    def tables(self) -> list[Path]:
        """The committed tables of the item, ``figures/<id>*.csv``, that without a part first."""
        return [path for path in self.figures() if path.suffix == ".csv"]

    def figures(self) -> list[Path]:
        """The files of the item under ``figures/``."""
        paper, _, name = self.id.partition("/")
        found = paths.committed_files(f"figures/{paper}", f"{name}*", self.root)
        return [path for path in found if path.stem == name or path.stem.startswith(f"{name}-")]


def load(root: str | os.PathLike | None = None) -> dict[str, Entry]:
    """The items of ``<root>/notebooks/manifest.toml`` (or of an installed wheel) by id; what an item needs comes before it."""
    root = paths.project_root() if root is None else Path(root)
    path = paths.committed(_LISTING, root)
    try:
        stat = path.stat()
    except FileNotFoundError:
        raise ManifestError(f"{path} is not there: run inside the project folder, or set XCREPRO_ROOT to it") from None
    return dict(_load(root, path, stat.st_mtime_ns, stat.st_size))


@functools.lru_cache(maxsize=4)
def _load(root: Path, path: Path, _mtime: int, _size: int) -> dict[str, Entry]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ManifestError(f"{path} is not valid TOML: {error}") from None
    entries = {name: _entry(root, path, name, table) for name, table in document.items()}
    return _in_order(path, entries)


_TYPES = {
    "title": (str, "a text"),
    "needs": (list, "a list of texts"),
    "long": (bool, "true or false"),
    "seconds": (int, "a whole number above 0"),
    "recorded": (dict, "a table of datasets, each a table of parameters"),
    "papers": (dict, "a table of parameters"),
}


def _entry(root: Path, path: Path, id: str, table: object) -> Entry:
    def refuse(text: str) -> ManifestError:
        return ManifestError(f"{path}, item {id}: {text}")

    if not is_id(id) or not isinstance(table, dict):
        raise refuse('must be a table ["paper/item_name"] (letters, digits and _; a dash marks a part\'s file)')
    for key, value in table.items():
        if key not in _TYPES:
            raise refuse(f"unknown key {key!r}; known are {', '.join(_TYPES)}")
        kind, words = _TYPES[key]
        odd = kind is list and isinstance(value, list) and not all(isinstance(part, str) for part in value)
        if type(value) is not kind or odd or (kind is int and value < 1):
            raise refuse(f"{key} must be {words}; got {value!r}")
    if not table.get("title", "").strip():
        raise refuse("title is missing or empty")
    for name, values in table.get("recorded", {}).items():
        if not isinstance(values, dict):
            raise refuse(f"recorded.{name} must be a table of parameters; got {values!r}")
    entry = Entry(id, root=root, home=path.parent.parent, **table | {"needs": tuple(table.get("needs", ()))})
    if not entry.notebook.is_file():
        raise refuse(f"its notebook {entry.notebook} is not there")
    return entry


def _in_order(path: Path, entries: dict[str, Entry]) -> dict[str, Entry]:
    ordered: dict[str, Entry] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name not in entries:
            raise ManifestError(f"{path}, item {trail[-1]}: needs {name!r}, which is not an item")
        if name in trail:
            circle = " -> ".join((*trail[trail.index(name) :], name))
            raise ManifestError(f"{path}: items need each other in a circle: {circle}")
        if name not in ordered:
            for need in entries[name].needs:
                visit(need, (*trail, name))
            ordered[name] = entries[name]

    for name in entries:
        visit(name, ())
    return ordered


def has_project(entries: dict[str, Entry]) -> bool:
    """Whether the notebooks are the project's own; if not, they are those of an installed wheel."""
    return all(entry.home == entry.root for entry in entries.values())


def require_project(entries: dict[str, Entry], what: str) -> None:
    """Refuse what would change the notebooks of an installed wheel."""
    if not has_project(entries):
        do = "`xcrepro start DIR`, then run in DIR"
        raise XCError(f"{what} needs notebooks of your own, and here is no project: {do}")


def find(entries: dict[str, Entry], words: str | list[str] | tuple[str, ...] | None) -> list[str]:
    """The ids meant by ``words``, in the manifest's order."""
    words = re.split(r"[,\s]+", words.strip()) if isinstance(words, str) else list(words or [])
    words = [word for word in words if word]
    found = [] if words else list(entries)
    for word in words:
        matches = [name for name in entries if name == word or name.startswith(word.rstrip("/") + "/")]
        if not matches:
            longer = [name for name in entries if name.startswith(word)]
            hint = did_you_mean(word, longer or list(entries), 1) or "`xcrepro list` shows them"
            raise ArgumentError("items", "must be ids or paper names of the manifest", repr(word), hint)
        found += matches
    return [name for name in entries if name in found]


def seconds_ahead(entries: dict[str, Entry]) -> dict[str, int]:
    """How long it takes, by :attr:`Entry.seconds`, until an item and all that waits for it could be done."""
    ahead = {name: entry.seconds for name, entry in entries.items()}
    # What an item needs stands before it, so from the end on an item's own number is complete when it is passed on.
    for name, entry in reversed(entries.items()):
        for need in ahead.keys() & set(entry.needs):  # a run with parameters of one's own goes without its needs
            ahead[need] = max(ahead[need], entries[need].seconds + ahead[name])
    return ahead


def with_needs(entries: dict[str, Entry], names: list[str]) -> list[str]:
    """``names`` and all they need, in running order."""
    chosen = set(names)
    for name in reversed(entries):  # what one needs stands before it
        chosen |= set(entries[name].needs) if name in chosen else set()
    return [name for name in entries if name in chosen]
