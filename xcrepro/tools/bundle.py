"""One file that a stranger can send: what was recorded of a dataset, of which data, and on which machine.

:func:`pack` makes it beside ``--record``. :func:`problems` is what a maintainer's ``python -m maintenance.take_up`` refuses it
for: a stand-in or synthetic data, other sizes than are printed without a word, another truth than the one on record, another
version of the kit, its notebooks or its libraries, and what is damaged. A bundle holds aggregates and digests, no rows.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import zipfile
import zlib
from pathlib import Path

import numpy as np

from xcrepro.core import paths
from xcrepro.core.data import load, registry
from xcrepro.core.data.dataset import Dataset
from xcrepro.core.errors import DataError, DataMissing, XCError
from xcrepro.core.version import __version__
from xcrepro.repro.engine import certificate, closure, compare_outputs, manifest, recorded, recording, stamps
from xcrepro.repro.inputs import download, fingerprints

ABOUT = "bundle.json"
STAND_IN = "stand-in.txt"
"""A file of this name among a dataset's says that its content is made up; the rehearsal's archives have it."""
LARGEST = 64 << 20
"""Bytes that its members may have together."""
CLOSE = 0.01
"""Share of the pairs by which label counts may differ from those that come with the kit, whose source lacks some points."""


@dataclasses.dataclass(frozen=True)
class Bundle:
    """What a bundle says of itself, and by item its records and the bytes of their files."""

    about: dict
    records: dict[str, recorded.Record]
    content: dict[str, bytes]

    @property
    def dataset(self) -> str:
        """The dataset's key."""
        return self.about["dataset"]


# ---------------------------------------------------------------- packing


def pack(root: Path, dataset: str, home: Path) -> Path:
    """Put all that this project's runs recorded of a dataset, from its folder, into ``build/bundles/<dataset>.zip``."""
    entries, tables, by = manifest.load(root), {}, {}
    for path in sorted((root / "data" / "recorded").glob(f"*/*/{dataset}.csv")):
        item = f"{path.parent.parent.name}/{path.parent.name}"
        stamp = _stamp(root, item, dataset)
        if item in entries and stamp:
            tables[item], by[item] = path.read_bytes(), code_of(stamp.fingerprint)
    if not tables:
        raise DataMissing(f"no results on {dataset} were recorded here: xcrepro run ITEM -p dataset {dataset} --record")
    about = {
        "form": 1,
        "dataset": dataset,
        "kit": __version__,
        "commit": _commit(root),
        "versions": stamps.versions(),
        "machine": certificate.machine(),
        "certificate": next((one.text() for one in _certificates(root)), ""),
        "data": described(dataset, home),
        "items": {item: {"sha256": _digest(one), "code": by[item]} for item, one in tables.items()},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr(ABOUT, json.dumps(about, indent=1, ensure_ascii=False))
        for item, content in tables.items():
            bundle.writestr(_member(item, dataset), content)
    path = root / "build" / "bundles" / f"{dataset}.zip"
    with paths.atomic_path(path) as part:
        part.write_bytes(out.getvalue())
    return path


def _stamp(root: Path, item: str, dataset: str) -> stamps.Stamp | None:
    """The stamp of an item's recorded run, of the first split that has one."""
    runs = sorted((root / "build" / "notebooks" / "recorded" / item).glob(f"{dataset}-*.json"))
    own = (path for path in runs if path.stem.removeprefix(f"{dataset}-").isdecimal())  # not of "delicious-200k"
    return next((stamp for path in own if (stamp := stamps.read_at(path))), None)


def code_of(fingerprint: dict) -> str:
    """A digest of the code that a record was made by: the notebook's cells, and the package's files under them."""
    kept = json.dumps([fingerprint["code"], fingerprint["sources"]], sort_keys=True)
    return _digest(kept.encode())


def _commit(root: Path) -> str:
    """The commit that is checked out; empty in a project without git."""
    try:
        return certificate.head(root)
    except XCError:
        return ""


def _certificates(root: Path) -> list[certificate.Certificate]:
    here = certificate.machine()["processor"]
    return [one for one in certificate.all_committed(root).values() if one.whole and one.processor == here]


def described(dataset: str, home: Path) -> dict:
    """The data as they were downloaded: digests of files and truths, sizes beside print, points per label."""
    entry, files = registry.get(dataset), sorted(path for path in home.rglob("*") if path.is_file())
    truths, ds = [], None
    for split in range(count := load.count_splits(dataset, home)):
        ds = load.load(dataset, home, split=split)
        truths += [dataclasses.asdict(line) for line in fingerprints.of_dataset(ds, str(split) if count > 1 else "")]
    return {
        "archive": download.remembered_sum(dataset),
        "files": {path.relative_to(home).as_posix(): closure.file_hash(path) for path in files},
        "truths": truths,
        "sizes": [list(one[:3]) for one in load.compare(ds.train, ds.test, entry)] if entry.source else [],
        "notes": list(ds.notes),
        "label counts": counts_of(ds),
    }


def counts_of(ds: Dataset) -> list[int]:
    """Points per label, train and test together, the most frequent first; of labels that have any."""
    counts = ds.train.Y.getnnz(axis=0) + ds.test.Y.getnnz(axis=0)
    return np.sort(counts[counts > 0])[::-1].tolist()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _member(item: str, dataset: str) -> str:
    return f"recorded/{item}/{dataset}.csv"


# ---------------------------------------------------------------- reading


def read(path: Path) -> Bundle:
    """A bundle, every member's digest held to what it says; DataError for what is none, or damaged."""
    try:
        with zipfile.ZipFile(path) as file:
            if (size := sum(one.file_size for one in file.infolist())) > LARGEST:
                raise DataError(path, f"{size:,} bytes in it", f"a bundle of tables, at most {LARGEST:,}")
            members = {name: file.read(name) for name in file.namelist()}
            about = json.loads(members.pop(ABOUT))
            items = {item: (one["sha256"], one["code"]) for item, one in about["items"].items()}
            wanted = {_member(item, about["dataset"]): item for item in items}
            _check(about)
    except (OSError, zipfile.BadZipFile, zlib.error, LookupError, TypeError, ValueError, AttributeError) as error:
        said = f"no bundle ({type(error).__name__}: {error})"
        raise DataError(path, said, "a file of `xcrepro ... --record`") from None
    if odd := wanted.keys() ^ members.keys():
        raise DataError(path, f"{min(odd)!r} in one of list and content alone", f"{ABOUT} and what it lists")
    records = {}
    for name, item in wanted.items():
        if _digest(members[name]) != items[item][0]:
            raise DataError(path, f"another content of {name}", "the content whose digest is listed")
        records[item] = _record(path, name, members[name], about["dataset"])
    return Bundle(about, records, {item: members[name] for name, item in wanted.items()})


def _check(about: dict) -> None:
    """Any error, where a bundle does not say of itself what :func:`problems` asks."""
    if about["form"] != 1:
        raise ValueError(f"form {about['form']!r} and not 1")
    if not about["items"]:
        raise ValueError("no record")
    data, of = about["data"], (*registry.COUNTS, *registry.AVERAGES)
    texts = (
        about["kit"],
        about["certificate"],
        about["machine"]["processor"],
        about["machine"]["system"],
        data["archive"],
    )
    "".join([*texts, *data["files"], *data["notes"], *about["versions"].values()])
    if not [fingerprints.Known(**line) for line in data["truths"]]:
        raise ValueError("no truth")
    sizes = [(name, math.isfinite(one) and math.isfinite(other)) for name, one, other in data["sizes"]]
    if odd := [name for name, finite in sizes if name not in of or not finite]:
        raise ValueError(f"the size {odd[0]!r}")
    if np.array(data["label counts"], np.int64).ndim != 1:
        raise ValueError("label counts that are no list of numbers")


def _record(path: Path, name: str, content: bytes, dataset: str) -> recorded.Record:
    made = recorded.parsed(content, f"{path}, {name}")
    if made.provenance["dataset"] != dataset:
        raise DataError(path, f"{name} of the dataset {made.provenance['dataset']!r}", f"of {dataset!r}")
    return made


def problems(bundle: Bundle, root: Path, *, other_sizes: bool = False) -> list[str]:
    """Why a bundle cannot be taken up here, in words; none if it can."""
    about, data = bundle.about, bundle.about["data"]
    entry = registry.package().get(bundle.dataset)
    if entry is None or entry.proprietary or "committed" in entry.archive:
        return [f"{bundle.dataset!r} is no dataset of the catalogue that can be downloaded"]
    return [
        *_of_code(bundle, root),
        *_of_truths(entry, data),
        *_of_sizes(entry, data, other_sizes),
        *_of_records(bundle, about),
    ]


def _of_code(bundle: Bundle, root: Path) -> list[str]:
    """Other versions: of the kit, of the libraries that promise the same bits, of a notebook and what it rests on."""
    about, here, entries = bundle.about, stamps.versions(), manifest.load(root)
    found = (
        [] if about["kit"] == __version__ else [f"made with version {about['kit']} of the kit; here is {__version__}"]
    )
    for name in compare_outputs.PINNED:
        if (its := about["versions"].get(name)) != here.get(name):
            found.append(f"made with {name} {its}; here is {here.get(name)}")
    for item in bundle.records:
        if item not in entries:
            found.append(f"{item} is no item here")
            continue
        now = stamps.fingerprint(entries[item], {}, {}, {})
        if about["items"][item]["code"] != code_of(recording.without_engine(now)):
            found.append(f"{item} was made by other code than is here: its sender has to run it again")
    return found


def _of_truths(entry: registry.Entry, data: dict) -> list[str]:
    """A stand-in, synthetic data, another truth than the one on record, another archive than the pinned one."""
    found = []
    if any(Path(name).name == STAND_IN for name in data["files"]):
        found.append(f"of a stand-in: its files say so ({STAND_IN})")
    marks = {line["fingerprint"] for line in data["truths"]}
    if marks & fingerprints.known_twins().keys():
        found.append("of synthetic data: the truth is that of a twin")
    its = {(line["part"], line["split"]): line["fingerprint"] for line in data["truths"]}
    for known in (one for one in fingerprints.table() if one.dataset == entry.name):
        # Of a line without a split nobody knows which of several it is.
        here = {mark for (part, split), mark in its.items() if part == known.part and known.split in ("", split)}
        if here and known.fingerprint not in here:
            found.append(f"of another {known.part} split {known.split}".rstrip() + " than the one on record")
    if (pinned := entry.archive.get("sha256")) and data["archive"] not in ("", pinned):
        found.append("of another archive than the catalogue has")
    try:
        counts = registry.label_counts(entry.name)
    except DataMissing:
        return found
    wanted = np.sort(counts.sum(axis=1).to_numpy())[::-1]
    both = np.zeros((2, max(len(wanted), len(data["label counts"]))), np.int64)
    both[0, : len(wanted)], both[1, : len(data["label counts"])] = wanted, data["label counts"]
    if np.abs(both[0] - both[1]).sum() > CLOSE * wanted.sum():
        found.append(
            "of other data, perhaps a stand-in: its label counts are not the dataset's, which come with the kit"
        )
    return found


def _of_sizes(entry: registry.Entry, data: dict, other_sizes: bool) -> list[str]:
    """Sizes and averages that print does not allow."""
    found = []
    for name, published, value in data["sizes"]:
        low, high = entry.interval(name) if name in registry.AVERAGES else (published, published)
        if published != getattr(entry, name) or not low - 1e-9 <= value <= high + 1e-9:
            found.append(f"{name} is {value:g} where {entry.printed(name)} is printed")
    if not found or (other_sizes and data["notes"]):
        return []
    if data["notes"]:
        return [f"{'; '.join(found)}. It says so ({data['notes'][0]}): --other-sizes takes it up all the same"]
    return [f"{'; '.join(found)}, and the bundle does not say so"]


def _of_records(bundle: Bundle, about: dict) -> list[str]:
    """Records that are of another run than their command says."""
    found = []
    for item, made in bundle.records.items():
        if made_by(made) != (item, about["dataset"]):
            found.append(f"{item} was recorded by {made.provenance['command']!r}")
    return found


def made_by(record: recorded.Record) -> tuple[str, object]:
    """Item and dataset of the command that made a record."""
    return named_by(record.provenance["command"])


def named_by(command: str) -> tuple[str, object]:
    """Item and dataset that a recording's command names; nothing where it is no such command."""
    try:
        item, given = recording.parse(command)
        return item, given["names"][0] if "names" in given else given.get("dataset")
    except (ValueError, LookupError, TypeError):
        return "", None


def made(root: Path, dataset: str, home: Path) -> str:
    """Pack a dataset's bundle, and the line that a recording ends with: where it is, or why there is none."""
    if recorded.own_data(dataset, root):
        return f"{dataset} comes with the kit, so its results need not be sent"
    try:
        path = pack(root, dataset, home)
    except XCError as error:
        return f"no bundle of {dataset}: {error}"
    return f"{stamps.short(root, path)}: all that is recorded of {dataset}, to be sent (CONTRIBUTING, Real results)"
