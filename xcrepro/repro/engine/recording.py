"""Run items on real data and commit what they find (:mod:`xcrepro.repro.engine.recorded`).

``recorded = { bibtex = {}, delicious = { split = "mean" } }`` in the manifest names the datasets and the parameters that
a run needs besides dataset and folder; ``split = "mean"`` runs every split. An interrupted recording goes on.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import functools
import hashlib
import os
import platform
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.arguments import did_you_mean
from xcrepro.core.errors import ArgumentError, DataMissing, XCError, system_fault
from xcrepro.core.version import __version__
from xcrepro.repro.engine import closure, manifest, processes, recorded, runner, stamps

MEAN = "mean"
"""The value of ``split`` that stands for all splits in turn."""
Count = Callable[[str, str | None], int]
"""``(dataset, its folder)`` -> how many splits the data have; the engine itself does not read data. None: they come with the
project."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclasses.dataclass(frozen=True)
class Recording:
    """An item on a real dataset: its folder, split, number of splits, parameters, and the command that makes it."""

    entry: manifest.Entry
    dataset: str
    home: Path
    split: int | str
    splits: int
    command: str
    values: dict

    @property
    def target(self) -> Path:
        """The committed file, whether it is there or not."""
        return recorded.folder(self.entry.id, self.entry.root) / f"{self.dataset}.csv"

    @property
    def runs(self) -> dict[int, dict]:
        """Split -> the parameters of its run."""
        if self.split == MEAN:
            return {split: {**self.values, "split": split} for split in range(self.splits)}
        return {self.split: self.values}


# ---------------------------------------------------------------- which


def value(text: str) -> object:
    """A parameter as a Python literal if it is one, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last two of brackets in brackets in brackets
        return text


def _text(given: object) -> str:
    """What :func:`value` reads as ``given``, quoted for a shell."""
    if isinstance(given, str) and value(given) == given:
        return shlex.quote(given)
    text = repr(given)
    # Double quotes need no escape inside the shell's single ones.
    return shlex.quote(text if '"' in text else text.replace("'", '"'))


def command(entry: manifest.Entry, given: dict) -> str:
    """The command that records an item, in one form however it was typed."""
    defaults, data = entry.official(), ("dataset", "names")
    values = {name: given.get(name, default) for name, default in defaults.items()}
    kept = sorted(
        (name for name in values if name in data or values[name] != defaults[name]), key=lambda n: n not in data
    )
    words = [f"-p {name} {'DIR' if name == 'folder' else _text(values[name])}" for name in kept]
    return " ".join(["xcrepro run", entry.id, *words, "--record"])


def parse(text: str) -> tuple[str, dict]:
    """The item and the parameters of a :func:`command`, ``folder`` as it stands there."""
    words = shlex.split(text)
    return words[2], {words[i + 1]: value(words[i + 2]) for i, word in enumerate(words) if word == "-p"}


def planned(entry: manifest.Entry, dataset: str, data: str | os.PathLike) -> dict:
    """The parameters with which the manifest has an item recorded on a dataset."""
    defaults, own = entry.official(), entry.recorded[dataset]
    if odd := {"dataset", "names", "folder", "predictions"} & own.keys():
        raise manifest.ManifestError(f"item {entry.id}: recorded.{dataset} must not hold {sorted(odd)[0]}")
    several, brought = "names" in defaults, recorded.own_data(dataset, entry.root)
    where = {} if brought else {"folder": str(data) if several else os.path.join(data, dataset)}
    if several:
        scales = {"scales": []} if "scales" in defaults else {}
        return {"names": [dataset], **scales, **where, **own}
    return {"dataset": dataset, **where, **own}


def of(entry: manifest.Entry, given: dict, count: Count) -> Recording:
    """What ``given`` asks to be recorded; everything is checked here."""
    values = runner.with_own(entry, entry.official() | given)
    folder, several = values.get("folder"), "names" in values
    committed = None if folder else recorded.own_data(values.get("dataset"), entry.root)
    if not folder and not committed:
        rule = "must be given to record a run: what is recorded is of real data" if "folder" in values else "is missing"
        raise ArgumentError(f"folder of {entry.id}", rule, "none", "-p folder DIR")
    if values.get("predictions"):
        raise ArgumentError("predictions", "must be empty in a recorded run", values["predictions"])
    if not several and "dataset" not in values:
        raise ArgumentError("item", "must have the parameter dataset or names to be recorded", entry.id)
    if several and len(values["names"]) != 1:
        rule, do = "must be one dataset in a recorded run", "record one after the other"
        raise ArgumentError("names", rule, values["names"], do)
    dataset = values["names"][0] if several else values["dataset"]
    home = committed or Path(folder).expanduser().resolve()
    home = home / dataset if several else home
    if not isinstance(dataset, str) or not _NAME.fullmatch(dataset):
        raise ArgumentError("dataset", "must be a name of letters, digits, dots and dashes", repr(dataset))
    if not home.is_dir():
        raise DataMissing(f"{home}: no such folder; it should hold the files of {dataset}")
    if not committed:
        values["folder"] = str(home.parent if several else home)
    split = values.get("split") or 0
    splits = count(dataset, None if committed else str(home))
    if split == MEAN and splits == 1:
        raise ArgumentError("split", "must be None where the data have one split", repr(split), f"{home} has one")
    return Recording(entry, dataset, home, split, splits, command(entry, given), values)


def all_planned(
    entries: Iterable[manifest.Entry], data: str | os.PathLike, count: Count
) -> tuple[list[Recording], list[str]]:
    """What the manifest has of ``entries``, dataset by dataset."""
    found, missing = {}, {}
    for entry in entries:
        for dataset in entry.recorded:
            if not recorded.own_data(dataset, entry.root) and not (Path(data).expanduser() / dataset).is_dir():
                missing[dataset] = None
                continue
            found.setdefault(dataset, []).append(of(entry, planned(entry, dataset, data), count))
    return [one for several in found.values() for one in several], list(missing)


# ---------------------------------------------------------------- run


# Asked once a process: it reads the metadata of every installed distribution.
_versions = functools.cache(stamps.versions)


def _fingerprint(recording: Recording, values: dict) -> dict:
    """All that decides what a run comes to; where the data lie is no part of it."""
    whole = stamps.fingerprint(recording.entry, {**values, "folder": ""}, _versions(), {})
    files = sorted(path for path in recording.home.rglob("*") if path.is_file())
    data = {path.relative_to(recording.home).as_posix(): closure.file_hash(path) for path in files}
    kept = ("code", "parameters", "sources", "versions")
    return {**{key: whole[key] for key in kept}, **without_engine(whole), "data": data}


def without_engine(fingerprint: dict) -> dict:
    """The code of a fingerprint: what a table comes to does not rest on the engine, which only shows and compares it."""
    left_out = "xcrepro/repro/engine/", "xcrepro/repro/drawing/"
    kept = {name: content for name, content in fingerprint["sources"].items() if not name.startswith(left_out)}
    return {"code": fingerprint["code"], "sources": kept}


def jobs(recording: Recording, force: bool = False) -> list[processes.Job]:
    """The runs of a recording's splits, each kept until something under it changes."""
    return [_job(recording, split, values, force) for split, values in recording.runs.items()]


def _job(recording: Recording, split: int, values: dict, force: bool) -> processes.Job:
    entry = recording.entry
    executed = entry.root / "build" / "notebooks" / "recorded" / entry.id / f"{recording.dataset}-{split}.ipynb"
    noted = executed.with_suffix(".tables")
    about = {"stamp": executed.with_suffix(".json"), "name": f"{entry.id} {recording.dataset} split {split}"}
    about |= {"keeps": noted, "variables": recorded.environment(noted), "fingerprint": _fingerprint(recording, values)}
    return processes.Job(entry, values, False, True, force, executed, **about)


def collect(recording: Recording, force: bool = False) -> recorded.Record:
    """Run a recording's splits, those that have not run yet, and put them together."""
    made = jobs(recording, force)
    return gathered(recording, made, runner.run_jobs(recording.entry.root, made, 1))


def gathered(
    recording: Recording, made: Sequence[processes.Job], results: Mapping[str, runner.Result]
) -> recorded.Record:
    """What its splits' runs came to, put together; RunFailed where one failed or has no table."""
    found = []
    for job in made:
        if results[job.id].bad:
            raise runner.RunFailed(f"{job.id} failed: {results[job.id].why}")
        found.append(recorded.noted(job.keeps))
        if not found[-1]:
            raise runner.RunFailed(f"{job.id} failed: no table came to item.check, so there is nothing to record")
    asked = recording.dataset, str(recording.split), str(recording.splits), recording.command
    provenance = *asked, __version__, *_here(recording)
    return recorded.Record(dict(zip(recorded.FIELDS, provenance, strict=True)), recorded.mean(found))


def _here(recording: Recording) -> tuple[str, ...]:
    """What another needs to know to make a record again: commit, day, processor, libraries, and a digest of the data."""
    git = functools.partial(subprocess.run, cwd=recording.entry.root, capture_output=True, text=True, check=False)
    head = git(["git", "rev-parse", "HEAD"])
    edited = git(["git", "diff", "--quiet", "HEAD", "--", "xcrepro", "notebooks"])
    commit = head.stdout.strip() + ", edited" * (edited.returncode == 1) if head.returncode == 0 else "no clone"
    cpu = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.+)", cpu.read_text(encoding="utf-8") if cpu.is_file() else "")
    processor = named[1] if named else platform.machine()
    libraries = ", ".join(f"{name} {_versions().get(name, 'none')}" for name in ("python", "numpy", "scipy", "numba"))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return commit, today, processor, libraries, data_digest(recording.home)


@functools.cache
def data_digest(home: Path) -> str:
    """SHA-256 of what ``sha256sum`` prints of a folder's files, sorted by name, or of its SHA256SUMS."""
    if (listed := home / "SHA256SUMS").is_file():
        return hashlib.sha256(listed.read_bytes()).hexdigest()
    listing = hashlib.sha256()
    for path in sorted(path for path in home.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        listing.update(f"{digest}  {path.relative_to(home).as_posix()}\n".encode())
    return listing.hexdigest()


def run(recordings: Sequence[Recording], force: bool = False, commit: bool = True) -> bool:
    """Run and write recordings one after the other, with a line for each; one that fails is named, and the others go on."""
    failed = 0
    for number, recording in enumerate(recordings, 1):
        at = f"[{number:>{len(str(len(recordings)))}}/{len(recordings)}] "
        try:
            said = settle(recording, collect(recording, force), commit)
        except (OSError, XCError) as error:
            failed += 1
            said = system_fault(error) if isinstance(error, OSError) else str(error)
        print(f"{at}{said}", flush=True)
    print(f"{len(recordings)} records: {len(recordings) - failed} stand, {failed} failed", flush=True)
    return not failed


def settle(recording: Recording, record: recorded.Record, commit: bool = True) -> str:
    """Write a record unless the one that stands is equal; what became of it, in words."""
    root, target = recording.entry.root, recording.target
    if not commit:
        target = root / "build" / "recorded" / recording.entry.id / f"{recording.dataset}.csv"
    shown = stamps.short(root, target)
    why = "new"
    if target.is_file():
        try:
            agreed = recorded.compare(record, standing := recorded.read(target))
            if recorded.NOT_NOTED not in standing.provenance.values():
                return f"{shown}: {agreed}"
            why = f"{agreed}, and where it was made is noted now"
        except XCError as error:
            why = str(error)
    recorded.write(target, record)
    return f"{shown} written: {why}"


# ---------------------------------------------------------------- what stands


def problems(entries: dict[str, manifest.Entry], root: Path) -> dict[str, list[str]]:
    """Where ``data/recorded`` and the manifest say different things."""
    found: dict[str, list[str]] = {}
    home = root / "data" / "recorded"
    wanted = {
        recorded.folder(entry.id, root) / f"{dataset}.csv": command(entry, planned(entry, dataset, "DIR"))
        for entry in entries.values()
        for dataset in entry.recorded
    }
    standing = {path for path in home.glob("*/*/*") if path.is_file()}
    for path in sorted(standing | set(wanted)):
        name = path.relative_to(root).as_posix()
        if fault := _problem(path, name, wanted, root):
            found[name] = [fault]
    return found


def _problem(path: Path, name: str, wanted: Mapping[Path, str], root: Path) -> str:
    """What is wrong with a record, or with its absence; empty where nothing is."""
    if path not in wanted:
        close = did_you_mean(name, [stamps.short(root, one) for one in wanted], 1)
        return f"no item of manifest.toml has it under `recorded`{': ' + close if close else ''}"
    if not (file := paths.committed(name, root)).is_file():
        return f"is not there: {wanted[path]}"
    try:
        made = recorded.read(file).provenance
    except XCError as error:
        return str(error)
    if made["command"] != wanted[path]:
        return f"was made by `{made['command']}`, the manifest has `{wanted[path]}`"
    return "" if made["dataset"] == path.stem else f"holds the dataset {made['dataset']}"
