"""Certificates: one machine's word that its run of all notebooks makes what is committed, byte for byte.

The run sees nothing that an earlier one left: it happens in a temporary clone of the last commit, with empty caches.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.errors import DataError, XCError
from xcrepro.repro.engine import compare_outputs, manifest, notebooks, stamps

FOLDER = "data/certificates"
SIMULATING = (
    "OPENBLAS_CORETYPE",
    "NPY_DISABLE_CPU_FEATURES",
    "NUMBA_CPU_NAME",
    "NUMBA_CPU_FEATURES",
    "GLIBC_TUNABLES",
)
"""Environment variables that make a processor pass for another one."""
PACKAGES = (*compare_outputs.PINNED, "scikit-learn")
_LEVELS = {"avx512f": "avx512", "avx2": "avx2", "avx": "avx", "sse4_2": "sse4.2"}


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What one machine made of one commit: how many committed files it made again, and which came out with other bytes."""

    processor: str
    level: str
    system: str
    c_library: str
    python: str
    date: str
    commit: str
    items: list[str]
    compared: int
    equal: int
    differing: list[str]
    seconds: int
    simulated: bool
    versions: dict[str, str]
    environment: dict[str, str]

    @property
    def name(self) -> str:
        """Of its file: the same for the same machine."""
        said = [self.processor, self.level]
        if self.simulated:
            said += ["as", self.environment.get("OPENBLAS_CORETYPE", "another")]
        return re.sub(r"[^a-z0-9]+", "-", " ".join(said).lower()).strip("-")

    @property
    def whole(self) -> bool:
        """Whether it speaks of a real machine and of all notebooks."""
        return not self.items and not self.simulated

    def text(self) -> str:
        """As TOML."""
        tables = {key: value for key, value in vars(self).items() if isinstance(value, dict)}
        plain = {key: value for key, value in vars(self).items() if key not in tables}
        lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items()]
        for key, table in tables.items():
            lines += ["", f"[{key}]", *(f"{part} = {json.dumps(table[part])}" for part in table)]
        return "\n".join(lines) + "\n"


def read(path: Path) -> Certificate:
    """A certificate from its file."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(path, f"no TOML ({error})", "a certificate") from None
    wanted = {field.name: field.type for field in dataclasses.fields(Certificate)}
    for key in [*wanted, *found]:
        if key not in wanted or key not in found:
            raise DataError(path, f"{'no' if key in wanted else 'the'} field {key}", f"the fields {', '.join(wanted)}")
        if type(found[key]).__name__ != wanted[key].partition("[")[0]:
            raise DataError(path, f"{key} = {found[key]!r}", f"{key} of type {wanted[key]}")
    certificate = Certificate(**found)
    if certificate.compared - certificate.equal != len(certificate.differing):
        raise DataError(path, f"{len(certificate.differing)} names in differing", "compared - equal of them")
    return certificate


def all_committed(root: Path) -> dict[str, Certificate]:
    """File name -> certificate, of all in the project's own ``data/certificates``: another project's are not its."""
    return {path.stem: read(path) for path in sorted((root / FOLDER).glob("*.toml"))}


def agreement(certificates: Iterable[Certificate]) -> str:
    """How many machines agree, as the README says it; simulated ones and runs of some notebooks do not count."""
    whole = [each for each in certificates if each.whole]
    agree = sum(each.compared == each.equal for each in whole)
    count = f"{agree} of {len(whole)}" if agree < len(whole) else f"{agree}"
    return f"{count} machine{'s' if len(whole) != 1 else ''} agree{'s' if len(whole) == 1 else ''}"


def make(
    items: Sequence[str] = (), jobs: int | None = None, long: bool = False, variables: Mapping[str, str] | None = None
) -> Certificate:
    """Run the notebooks of the last commit from empty caches and compare what they make with what is committed."""
    root = paths.project_root()
    entries = manifest.load(root)
    manifest.require_project(entries, "a certificate")
    named = manifest.find(entries, list(items))
    commit = head(root)
    began = time.monotonic()
    with _clone(root) as (clone, room):
        environment = _environment(clone, room, variables or {})
        command = [sys.executable, "-m", "xcrepro", "accept", *(named if items else ["--all"])]
        command += ["--jobs", str(jobs)] if jobs else []
        subprocess.run([*command, *(["--long"] if long and not items else [])], cwd=clone, env=environment, check=False)
        seconds = round(time.monotonic() - began)
        there = manifest.load(clone)
        chosen = [there[name] for name in named if items or long or not there[name].long]
        compared, failed = _files(clone, chosen, lessons=not items)
        changed = _changed(clone)
    differing = sorted(changed | failed)
    compared |= {*differing}
    return Certificate(
        **machine(),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        commit=commit,
        items=named if items else [],
        compared=len(compared),
        equal=len(compared) - len(differing),
        differing=differing,
        seconds=seconds,
        simulated=any(key in environment for key in SIMULATING),
        versions=_versions(),
        environment={key: environment[key] for key in SIMULATING if key in environment},
    )


def write(certificate: Certificate, folder: Path) -> Path:
    """Write a certificate, in place of an older one of the same machine."""
    path = folder / f"{certificate.name}.toml"
    with paths.atomic_path(path) as part:
        part.write_text(certificate.text(), encoding="utf-8", newline="\n")
    return path


def head(root: Path) -> str:
    """The commit that is checked out in a project."""
    if Path(_git(root, "rev-parse", "--show-toplevel").strip()).resolve() != root:
        raise XCError(f"a certificate is of a commit, and {root} is no git repository of its own")
    return _git(root, "rev-parse", "HEAD").strip()


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise XCError("a certificate is of a commit, and git is not installed") from None
    if done.returncode:
        raise XCError(f"a certificate is of a commit, and git says: {done.stderr.strip()}")
    return done.stdout


@contextlib.contextmanager
def _clone(root: Path) -> Iterator[tuple[Path, Path]]:
    """A clone of what is checked out, and a folder beside it; both go when the block ends."""
    with tempfile.TemporaryDirectory(prefix="xcrepro-certificate-") as folder:
        room = Path(folder).resolve()
        _git(room, "clone", "--quiet", "--shared", str(root), "project")
        yield room / "project", room


def _environment(clone: Path, room: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The package and the project of the clone, and caches that are empty."""
    simulating = SIMULATING if variables else ()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "XCREPRO_THREADS" or not (name.startswith("XCREPRO_") or name in simulating)
    }
    own = {
        "XCREPRO_ROOT": clone,
        "PYTHONPATH": clone,
        "XCREPRO_DATA": room / "cache",
        "NUMBA_CACHE_DIR": room / "numba",
    }
    return {**kept, **{name: str(path) for name, path in own.items()}, **variables}


def _files(clone: Path, entries: Sequence[manifest.Entry], lessons: bool) -> tuple[set[str], set[str]]:
    """The committed files that the run was to make, and those of notebooks that did not run to their end."""
    compared, failed = set(), set()
    for entry in entries:
        files = {stamps.short(clone, path) for path in (entry.notebook, *entry.figures())}
        compared |= files
        if stamps.read(entry) is None:
            print(f"{entry.id} did not run to its end")
            failed |= files
    for lesson in sorted((clone / "notebooks" / manifest.LESSONS).glob("*.ipynb")) if lessons else ():
        compared.add(name := stamps.short(clone, lesson))
        executed = clone / "build" / "notebooks" / "course" / lesson.name
        if not executed.is_file() or notebooks.failure(notebooks.read(executed)):
            print(f"{name} did not run to its end")
            failed.add(name)
    return compared, failed


def _changed(clone: Path) -> set[str]:
    """What git calls changed, or new; each file is named with its first difference."""
    listed = _git(clone, "status", "--porcelain", "-z", "--untracked-files=all")
    found = {line[3:]: line[:2] for line in listed.split("\0") if line}
    for name, state in sorted(found.items()):
        if state == "??":
            said = "it is not committed"
        elif not (clone / name).is_file():
            said = "it is gone"
        elif Path(name).suffix in (".png", ".svg", ".npz"):
            said = "of other code or data"
        else:
            said = compare_outputs.difference(
                _git(clone, "show", f"HEAD:{name}"), (clone / name).read_text(encoding="utf-8")
            )
        print(f"{name}: {said}")
    return {*found}


def cpu() -> dict[str, str]:
    """What Linux says of the first core: ``model name``, ``flags`` and others."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def machine() -> dict[str, str]:
    """What a certificate says of a machine: nothing that tells whose it is."""
    about = cpu()
    flags = about.get("flags", "").split()
    numbers = [f"{key} {about[long]}" for key, long in (("family", "cpu family"), ("model", "model")) if long in about]
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.system()
    return {
        "processor": ", ".join([about.get("model name") or platform.machine(), *numbers]),
        "level": next((level for flag, level in _LEVELS.items() if flag in flags), "unknown"),
        "system": f"{system}, {platform.machine()}",
        "c_library": " ".join(platform.libc_ver()).strip() or "unknown",
        "python": platform.python_version(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
