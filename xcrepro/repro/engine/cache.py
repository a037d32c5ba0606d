"""What the cache folder holds (:func:`xcrepro.core.paths.cache_dir`), and taking it out again."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from xcrepro.core import extras, paths
from xcrepro.core.arguments import did_you_mean, real_number
from xcrepro.core.errors import ArgumentError, XCError

ROOMS = {"trained": "trained model", "datasets": "dataset", "numba": "compiled code"}
"""Folders of the cache whose contents can be had again, each folder in them by itself."""
_NOTED = "training.json"
_PROJECT = "project"  # figures of runs outside of a project


@dataclasses.dataclass(frozen=True)
class Entry:
    """One thing in the cache that can be had again: ``size`` is in bytes, ``used`` in seconds since 1970."""

    name: str
    kind: str
    about: str
    size: int
    used: float


def entries() -> list[Entry]:
    """What is in the cache, by name; a reader's own datasets (``<name>/dataset.toml``) are no part of it."""
    home = paths.cache_dir()
    found = [
        _entry(home, path, kind)
        for room, kind in ROOMS.items()
        for path in sorted((home / room).glob("*"))
        if path.is_dir() and not path.name.startswith(".")
    ]
    if (home / _PROJECT).is_dir():
        found.append(_entry(home, home / _PROJECT, "runs"))
    return found


def _entry(home: Path, folder: Path, kind: str) -> Entry:
    size, used = 0, folder.stat().st_mtime
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                stat = os.lstat(os.path.join(place, name))
            except FileNotFoundError:
                continue  # somebody removes or replaces it at this moment
            size += stat.st_size
            # Looking at the cache reads what is noted of a training: that is no use.
            used = max(used, stat.st_mtime, *([stat.st_atime] if name != _NOTED else []))
    return Entry(folder.relative_to(home).as_posix(), kind, _about(folder), size, used)


def _about(folder: Path) -> str:
    if folder.name.endswith(".damaged"):
        return "damaged, set aside"
    try:
        noted = json.loads((folder / _NOTED).read_text(encoding="utf-8"))
        return f"{noted['model']} on {noted['points']:,} points, {noted['labels']:,} labels"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def chosen(
    names: Sequence[str] = (), older: float | None = None, everything: bool = False, above: float | None = None
) -> list[Entry]:
    """The entries meant by names or patterns; those not used for ``older`` days; the oldest until ``above`` GB are left."""
    if everything == bool(names or older is not None or above is not None):
        rule = "must say what: names, --older DAYS, --above GB, or --all alone"
        raise ArgumentError("NAME, --older, --above, --all", rule, "none or both")
    there = entries()
    found = there if not names else []
    for name in names:
        meant = [
            entry
            for entry in there
            if fnmatch.fnmatchcase(entry.name, name) or fnmatch.fnmatchcase(entry.name.rpartition("/")[2], name)
        ]
        if not meant:
            known = {text: entry.name for entry in there for text in (entry.name, entry.name.rpartition("/")[2])}
            hint = did_you_mean(name, known, 1) or "`xcrepro cache ls` shows what there is"
            raise ArgumentError("NAME", f"must be in the cache {paths.cache_dir()}", repr(name), hint)
        found += [entry for entry in meant if entry not in found]
    if older is not None:
        limit = time.time() - 86400 * real_number("older", older, at_least=0)
        found = [entry for entry in found if entry.used < limit]
    if above is not None:
        left = 1e9 * real_number("above", above, at_least=0)
        kept = []
        for entry in sorted(found, key=lambda entry: -entry.used):
            left -= entry.size
            kept += [entry] if left >= 0 else []
        found = [entry for entry in found if entry not in kept]
    return found


def remove(entry: Entry) -> None:
    """Take one entry out of the cache, at once for those who look, then from the disk; XCError if a process is at it."""
    FileLock, Timeout = (getattr(extras.library("filelock"), name) for name in ("FileLock", "Timeout"))
    folder = paths.cache_dir() / entry.name
    # The locks of those who write there: a training's and a run's; a dataset is moved there whole.
    locks = {"trained model": folder.with_name(f"{folder.name}.lock"), "runs": folder / "build" / "run.lock"}
    at = locks.get(entry.kind)
    lock = FileLock(at) if at and at.parent.is_dir() else None
    try:
        if lock:
            lock.acquire(timeout=0)
    except Timeout:
        raise XCError(f"{entry.name} is in use: wait for the run that has it, or stop it") from None
    try:
        aside = Path(tempfile.mkdtemp(prefix=".removed.", dir=folder.parent))
        os.replace(folder, aside / folder.name)
    finally:
        if lock:
            lock.release()
    shutil.rmtree(aside)
