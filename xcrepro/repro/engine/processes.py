"""Notebooks that run: papermill processes, how many at once and where, and the one loop that waits for them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from xcrepro.core import threads
from xcrepro.core.errors import DataError, XCError
from xcrepro.repro.engine import manifest, notebooks, run_log, stamps

_POLL = 0.05  # seconds between two looks at the children
_HEARTBEAT = 60.0  # seconds between two words about items that take long
_CHILD = ("-m", "xcrepro.repro.engine.child")  # papermill, as long as its stdin is open
_PATIENCE = 60.0  # seconds a child gets to stop its kernel, as long as that takes a slow machine
_START = ("--start-timeout", "900")  # seconds in which a kernel starts on the slowest machine
_THREAD_LIMITS = *(f"{name}_NUM_THREADS" for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")), "XCREPRO_THREADS"


@dataclasses.dataclass(frozen=True)
class Job:
    """A run of an item: its parameters, where the executed notebook lies, and the stamp that says what it was made from."""

    entry: manifest.Entry
    values: dict
    official: bool
    inject: bool
    force: bool
    executed: Path
    stamp: Path | None = None
    name: str = ""
    fingerprint: dict | None = None
    keeps: Path | None = None
    variables: dict = dataclasses.field(default_factory=dict)
    gb: float = 0.0

    @property
    def memory(self) -> float:
        """How many GB it is going to take: as told, else what its last run took, else :data:`USUAL`."""
        return self.gb or peak_of(self.executed) or USUAL

    @property
    def id(self) -> str:
        """Its own name, or the item's."""
        return self.name or self.entry.id

    @property
    def kept(self) -> list[Path]:
        """The files at :attr:`keeps`."""
        return [path for path in (self.keeps, *self.keeps.rglob("*")) if path.is_file()] if self.keeps else []

    @property
    def needs(self) -> tuple[str, ...]:
        """What must have run before it; a reader's own run trains what it lacks itself, on its own data."""
        return tuple(self.entry.needs) if self.official else ()


USUAL = 1.0
"""GB of a notebook of which nothing is known; most of the committed ones take less."""


def peak_of(executed: Path) -> float:
    """How many GB a run that left this executed notebook took at most; 0 where none did or said so."""
    try:
        return max(map(int, run_log.read(executed.with_suffix(".notes")).get("peak", ["0"]))) / 1e6
    except (OSError, DataError, ValueError):
        return 0.0


def room() -> float:
    """How many GB this machine, or the container that this is in, has for notebooks."""
    import psutil

    free = psutil.virtual_memory().available / 1e9
    with contextlib.suppress(OSError, ValueError):  # "max": no limit of its own
        most, used = (int(Path("/sys/fs/cgroup", name).read_text()) for name in ("memory.max", "memory.current"))
        free = min(free, (most - used) / 1e9)
    return free


def start_here(arguments: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen:
    """papermill with these arguments on this machine, with these variables alone; its output goes to ``log``."""
    with open(log, "wb") as out:
        return papermill(arguments, env=environment, stdout=out, stderr=subprocess.STDOUT)


def places(jobs: int | None, most: int) -> tuple[int, int]:
    """How many notebooks run at once, and with how many threads each."""
    cores = threads.count()
    at_once = max(1, min(jobs or cores, cores, most))
    return at_once, max(1, cores // at_once)


def environment_of(root: Path, threads_each: int) -> dict[str, str]:
    """The variables of a papermill process."""
    kept = {name: value for name, value in os.environ.items() if name != "XCREPRO_ACCEPT"}
    return {
        **kept,
        **dict.fromkeys(_THREAD_LIMITS, str(threads_each)),
        "XCREPRO_ROOT": str(root),
        # This environment's kernel, also where the user has registered another one as `python3`.
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


class Child:
    """One papermill process and what it must have written in the end."""

    def __init__(self, root: Path, job: Job, fingerprint: dict, why: str, environment: dict) -> None:
        self.root, self.job, self.fingerprint, self.why = root, job, fingerprint, why
        executed = self.executed = job.executed
        self.log, self.notes_file = executed.with_suffix(".log"), executed.with_suffix(".notes")
        self.environment = {**environment, **job.variables, "XCREPRO_RECORD": str(self.notes_file)}
        # Where the run writes them; in an installed wheel they are read elsewhere.
        committed = job.entry.figures() if job.official else []
        self.committed = [self.root / "figures" / path.parent.name / path.name for path in committed]
        self.began, self.attempts = time.monotonic(), 0
        self.broken: Exception | None = None
        executed.parent.mkdir(parents=True, exist_ok=True)
        for old in (job.stamp, *job.kept) if job.stamp else ():
            old.unlink(missing_ok=True)  # until it has run to the end it is not done, whatever an earlier run left
        self.start()

    def start(self) -> None:
        import yaml

        self.attempts += 1
        self.executed.unlink(missing_ok=True)
        self.notes_file.unlink(missing_ok=True)
        arguments = [str(self.job.entry.notebook), str(self.executed), "--no-progress-bar", "--log-output", *_START]
        if self.job.inject:
            # As YAML: papermill's -p would turn the text "1" into a number.
            arguments += ["-y", yaml.safe_dump(self.job.values)]
        self.process = start_here(arguments, self.environment, self.log)

    def _notebook(self) -> dict:
        try:
            return notebooks.read(self.executed)
        except (OSError, XCError):
            return {"cells": []}

    def notes(self) -> dict[str, list[str]]:
        """What the run noted of itself (:mod:`xcrepro.repro.engine.run_log`); of one that failed what can be read."""
        try:
            return run_log.read(self.notes_file)
        except DataError:
            if not self.process.returncode:
                raise
            return {}

    def ended(self) -> bool:
        """Whether it has come to its end. A kernel that failed before its first cell is started once more."""
        if self.process.poll() is None:
            return False
        let_go(self.process)
        try:
            if self.attempts == 1 and self.fault() and not notebooks.started(self._notebook()):
                self.start()
                return False
        except (OSError, XCError) as error:
            self.broken = error
        return True

    def fault(self) -> str:
        """What went wrong, with cell, message and path; empty when nothing did. What hindered the runner itself is raised."""
        if self.broken:
            raise self.broken
        see = f"\n  see {stamps.short(self.root, self.executed)}"
        if self.process.returncode:
            if failure := notebooks.failure(self._notebook()):
                return f"{failure[0]}: {failure[1]}{see}"
            lines = self.log.read_text(errors="replace").strip().splitlines() or ["no output"]
            return f"papermill ended with {self.process.returncode}: {lines[-1]}\n  see {stamps.short(self.root, self.log)}"
        written = set(self.notes().get("output", []))
        missing = [path for path in self.committed if str(path) not in written]
        if missing and not os.environ.get("XCREPRO_FIGURES"):
            name = stamps.short(self.root, missing[0])
            return f"{name} is committed and this run did not make it: mend the notebook, or remove the file{see}"
        return ""


def finished(start_next: Callable[[], Child | None], at_once: int) -> Iterator[Child]:
    """Start notebooks as places come free, and give each when it has ended: the one loop of runs and recordings."""
    running: list[Child] = []
    spoken = time.monotonic()
    try:
        while True:
            while len(running) < at_once and (child := start_next()):
                running.append(child)
            if not running:
                return
            for child in [child for child in running if child.ended()]:
                running.remove(child)
                yield child
            time.sleep(_POLL)
            if running and time.monotonic() - spoken > _HEARTBEAT:
                spoken = time.monotonic()
                still = ", ".join(f"{one.job.id} {spoken - one.began:.0f} s" for one in running)
                print(f"still running: {still}", flush=True)
    finally:
        stop([child.process for child in running])


def papermill(arguments: list[str], **options) -> subprocess.Popen:
    """Start papermill on a notebook, its stdin open; process and kernel end with this process or when stdin is closed."""
    return subprocess.Popen([sys.executable, *_CHILD, *arguments], stdin=subprocess.PIPE, **options)


def let_go(process: subprocess.Popen) -> None:
    """Close the pipe that keeps it alive, where it hangs on one."""
    if process.stdin is not None:
        process.stdin.close()


def stop(processes: list[subprocess.Popen]) -> None:
    """End papermill processes of :func:`papermill`: each stops its own kernel when asked."""
    for process in processes:
        process.terminate()
    until = time.monotonic() + _PATIENCE
    for process in processes:
        for insist in (functools.partial(let_go, process), process.kill):
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                insist()
                until = time.monotonic() + 2.0
        process.wait()
        let_go(process)
