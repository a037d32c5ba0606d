"""Predictions that are data: what notebooks read of trained models lies in ``data/predictions`` and need not be trained.

``index.csv`` says for each file which training it is of (its parameters and data, and the code that it runs through), so that
predictions of another training are never read. ``make train`` (``maintenance/train.py``) trains all anew and
compares.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from xcrepro.core import paths
from xcrepro.core.errors import DataError, XCError
from xcrepro.core.predictions import TopK

FOLDER = "data/predictions"
INDEX = "index.csv"
NOTES, CONFIRM = "XCREPRO_TRAIN", "XCREPRO_CONFIRM"
"""A folder that takes what is predicted, in place of what is stored; which of the stored are trained all the same."""
SHARE = 0.04
"""Of the seconds of all trainings, what ``XCREPRO_CONFIRM=some`` may take: a tenth of what ``make figures`` does."""
SMALLEST = 3
"""As many trainings, the quickest, ``XCREPRO_CONFIRM=some`` takes each time."""


class Unconfirmed(XCError):
    """A training gave other predictions than those that are stored."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A line of the index.

    ``training`` and ``rows_of`` are digests of parameters and training data, and of the features that were predicted for.
    ``code`` is the code with which these are the model's predictions, ``confirmed`` that with which they were last made.
    """

    file: str
    dataset: str
    model: str
    points: int
    labels: int
    rows: int
    places: int
    seconds: float
    training: str
    rows_of: str
    code: str
    confirmed: str
    libraries: str
    sha256: str
    read_by: str

    @property
    def key(self) -> tuple[str, str]:
        """What a reader asks for."""
        return self.training, self.rows_of


_TYPES = {field.name: {"int": int, "float": float}.get(field.type, str) for field in dataclasses.fields(Entry)}


def read_index(path: Path) -> list[Entry]:
    """The lines of an index; none where there is no file."""
    if not path.is_file():
        return []
    found = []
    try:
        rows = [*csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(path, str(error), "text of UTF-8, in CSV", do="make train writes it anew") from None
    for number, row in enumerate(rows, 2):
        try:
            found.append(Entry(**{name: kind(row[name]) for name, kind in _TYPES.items()}))
        except (KeyError, TypeError, ValueError) as error:
            expected = f"values of {', '.join(_TYPES)}"
            raise DataError(path, f"{row} ({error})", expected, line=number, do="make train writes it anew") from None
    return found


def write_index(path: Path, entries: Iterable[Entry]) -> None:
    """Write an index, in the files' order."""
    with paths.atomic_path(path) as part, open(part, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_TYPES)
        writer.writerows(dataclasses.astuple(entry) for entry in sorted(entries, key=lambda entry: entry.file))


def folder() -> Path:
    """Where the stored predictions are read: the project's, or what the installation brings."""
    return paths.committed(FOLDER)


@cache
def _index(path: Path, _changed: int) -> dict[tuple[str, str], Entry]:
    return {entry.key: entry for entry in read_index(path)}


def find(training: str, code: str, rows_of: str, k: int) -> Entry | None:
    """The stored predictions of a training for these rows, if they hold ``k`` places and are of the code that is here."""
    if NOTES in os.environ:
        return None
    path = folder() / INDEX
    try:
        entry = _index(path, path.stat().st_mtime_ns).get((training, rows_of))
    except FileNotFoundError:
        return None
    except (OSError, DataError) as error:
        print(f"{error}: models are trained", file=sys.stderr, flush=True)
        return None
    return entry if entry and entry.code == code and entry.places >= k else None


def read(entry: Entry, libraries: str) -> TopK | None:
    """What is stored; None, with a word, where the file is damaged or not there: it is trained then."""
    path = folder() / entry.file
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != entry.sha256:
            raise DataError(path, f"a content of SHA-256 {found}", f"{entry.sha256}, as {INDEX} says")
        top = TopK.load(path)
        if (len(top), top.k, top.n_labels) != (entry.rows, entry.places, entry.labels):
            raise DataError(path, repr(top), f"{entry.rows} rows of {entry.places} places, as {INDEX} says")
    except (OSError, XCError) as error:
        print(f"{error}: it is trained anew", file=sys.stderr, flush=True)
        return None
    if libraries != entry.libraries:
        _say_once(f"predictions of {FOLDER} were made with {entry.libraries}; here are {libraries}")
    return top


@cache
def _say_once(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def describe() -> str:
    """From which predictions figures are made, and how to make these: for the end of a run of all notebooks."""
    try:
        entries = _entries()
    except (OSError, DataError) as error:
        return f"{error}: models are trained"
    open_ = sum(entry.code != entry.confirmed for entry in entries)
    doubt = f", {open_} of them not made again since their code was edited" if open_ else ""
    return f"made from {len(entries)} stored predictions of trained models in {FOLDER}{doubt}; `make train` trains them anew"


# ---------------------------------------------------------------- confirming them


def to_confirm(entry: Entry) -> bool:
    """Whether a training is run although its predictions are stored: ``XCREPRO_CONFIRM`` is all, some, or files' names."""
    asked = os.environ.get(CONFIRM, "")
    return asked == "all" or (asked != "" and entry.file in _chosen(asked))


def apart(training: str) -> Path | None:
    """Where a training that is to be confirmed lies, apart from the cache, whose models an earlier run made; else None."""
    asked = os.environ.get(CONFIRM, "")
    if asked in ("", "all") or training not in {entry.training for entry in _entries() if entry.file in _chosen(asked)}:
        return None
    return paths.project_root() / "build" / "confirm"


def _entries() -> list[Entry]:
    return read_index(folder() / INDEX)


@cache
def _chosen(asked: str) -> frozenset[str]:
    return frozenset(drawn(_entries(), commit(paths.project_root())) if asked == "some" else asked.split())


def drawn(entries: Iterable[Entry], by: str, share: float = SHARE) -> list[str]:
    """The files that a commit confirms: the quickest, then those whose code has changed, then by lot, within a share of all.

    The lot is drawn by the commit, so that over some commits all come round: the first of it whatever it takes.
    """
    entries = list(entries)
    quickest = sorted(entries, key=lambda entry: (entry.seconds, entry.file))[:SMALLEST]
    lots = {entry.file: hashlib.sha256(f"{by}{entry.file}".encode()).hexdigest() for entry in entries}
    rest = sorted(entries, key=lambda entry: (entry.confirmed == entry.code, lots[entry.file]))
    left, chosen = share * sum(entry.seconds for entry in entries), [entry.file for entry in quickest]
    for entry in (entry for entry in rest if entry not in quickest):
        if entry.seconds <= left or len(chosen) == len(quickest):
            left -= entry.seconds
            chosen.append(entry.file)
    return chosen


@cache
def commit(root: Path) -> str:
    """The commit that is checked out; empty where git does not say."""
    with contextlib.suppress(OSError):
        return subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True).stdout.strip()
    return ""


def confirm(entry: Entry, top: TopK, libraries: str) -> None:
    """Compare what was just trained with what is stored; Unconfirmed where a bit differs and the libraries are the same."""
    if not (kept := read(entry, libraries)):
        return
    kept = kept.head(top.k)
    if _same(kept, top):
        print(f"as stored: {entry.file}", file=sys.stderr, flush=True)
        return
    rows = np.flatnonzero((kept.ids != top.ids).any(1) | (kept.scores != top.scores).any(1))
    said = f"{entry.file}: training gave other predictions than are stored, in {rows.size} of {len(top)} rows"
    if libraries != entry.libraries:
        _say_once(f"{said}: they were made with {entry.libraries}, here are {libraries}")
        return
    first = int(rows[0])
    where = f"row {first}: {top.ids[first].tolist()} for {kept.ids[first].tolist()}"
    raise Unconfirmed(f"{said}, first in {where}. If the change is right, `make train` stores them")


def _same(first: TopK, second: TopK) -> bool:
    return first.ids.tobytes() == second.ids.tobytes() and first.scores.tobytes() == second.scores.tobytes()


# ---------------------------------------------------------------- making them


def note(about: Mapping[str, object], top: TopK) -> None:
    """Keep what was predicted in the folder that ``XCREPRO_TRAIN`` names, if it does, with what it is of and who asks."""
    if not (target := os.environ.get(NOTES)):
        return
    record = os.environ.get("XCREPRO_RECORD", "")  # .../notebooks/small/jain16/table3_table4.notes
    reader = "/".join(Path(record).with_suffix("").parts[-2:])
    name = f"{about['training']}-{about['rows_of']}-{top.k}"
    place = Path(target)
    place.mkdir(parents=True, exist_ok=True)
    if not (place / f"{name}.npz").is_file():
        top.save(place / f"{name}.npz")
    text = json.dumps({**about, "places": top.k, "rows": len(top), "read_by": reader})
    with paths.atomic_path(place / f"{name}--{reader.replace('/', '.')}.json") as part:
        part.write_text(text, encoding="utf-8")


def gather(notes: Path, target: Path, *, whole: bool) -> list[str]:
    """Bring the stored predictions up to date by what a run noted, and say what has changed.

    What is the same to the bit stays as it is, also in a file with more places than are read now. ``whole`` says that the run
    was of all notebooks, so that what none of them reads goes.
    """
    groups: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for path in sorted(notes.glob("*.json")):
        about = json.loads(path.read_text(encoding="utf-8"))
        groups[about["training"], about["rows_of"]].append(about)
    old = {entry.key: entry for entry in read_index(target / INDEX)}
    kept, said = ({} if whole else dict(old)), []
    for key, asked in groups.items():
        places = max(about["places"] for about in asked)
        source = notes / f"{key[0]}-{key[1]}-{places}.npz"
        entry, changed = _stored(asked, source, target, old.get(key), whole)
        said += changed
        kept[key] = entry
    names = {entry.file for entry in kept.values()}
    for path in (path for path in sorted(target.glob("*.npz")) if path.name not in names):
        path.unlink()
        said.append(f"removed, because nothing reads it: {path.name}")
    write_index(target / INDEX, kept.values())
    return said


def _stored(asked: list[dict], source: Path, target: Path, old: Entry | None, whole: bool) -> tuple[Entry, list[str]]:
    """The entry of one training's predictions, and their file, written where it is new or other than before."""
    about, top = asked[0], TopK.load(source)
    readers = {about["read_by"] for about in asked} | (set() if whole or not old else {*old.read_by.split()})
    facts = {name: about[name] for name in _TYPES if name in about}
    facts |= {"places": top.k, "confirmed": about["code"], "read_by": " ".join(sorted(readers))}
    before = TopK.load(target / old.file) if old and (target / old.file).is_file() else None
    common = min(top.k, before.k) if before else 0
    equal = before is not None and _same(before.head(common), top.head(common))
    if equal and (before.k == top.k or (before.k > top.k and not whole)):
        return dataclasses.replace(old, **facts | {"places": before.k}), []
    top.save(source.with_suffix(".small.npz"), small=True)
    content = source.with_suffix(".small.npz").read_bytes()
    digest = hashlib.sha256(top.ids.tobytes() + top.scores.tobytes()).hexdigest()[:8]
    made = "synthetic " * ("@" in about["dataset"])  # bibtex@1.0-seed0 is drawn, and bibtex is not
    name = "-".join([*re.findall(r"[a-z0-9.]+", f"{made}{about['dataset']} {about['model']}".lower()), digest]) + ".npz"
    target.mkdir(parents=True, exist_ok=True)
    with paths.atomic_path(target / name) as part:
        part.write_bytes(content)
    said = "stored" if before is None or equal else "DIFFERS from what was stored"
    return Entry(**facts, file=name, sha256=hashlib.sha256(content).hexdigest()), [f"{said}: {name}"]


def refreshed(entries: Iterable[Entry], code: Mapping[str, str]) -> list[Entry]:
    """The entries with the code that is here, unconfirmed where that has changed: for a change that moves no bit."""
    return [dataclasses.replace(entry, code=code[entry.model.partition("(")[0]]) for entry in entries]
