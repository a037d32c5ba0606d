"""What the README's two commands cost from nothing, in CPU seconds that can be compared between machines.

Every commit of ``XCREPRO_BENCH_COMMITS`` (default: HEAD) is cloned into an empty home with empty caches, where ``make figures``
and ``make test`` run; then ``make test`` alone in a second clone. Each process notes its own CPU seconds when it ends, and
numba what it compiled, so that the parts can be told: environment, compiling, training, each notebook, pytest, nbval.

Seconds belong to one machine on one day. So each phase is also divided by the CPU seconds of a fixed piece of work (a loop of
the interpreter, passes over an array, a small kernel), which is measured before and after the phase: *units* carry over.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numba import njit

from benchmarks.metrics import ROOT

COMMITS = os.environ.get("XCREPRO_BENCH_COMMITS", "HEAD").split()
# What is made in one clone, in this order; XCREPRO_BENCH_PLANS="after" leaves out the other.
PLANS = {"after": ("env", "figures", "test"), "alone": ("env", "test")}
LONGEST = 12  # notebooks that get a row of their own
# In each Python process of a clone: its CPU seconds and what it was, noted at its end; numba's own log of what it compiled.
_NOTE = """
import atexit, os, sys
_folder, _pid = os.environ["XCREPRO_BENCH_NOTES"], os.getpid()
os.environ["NUMBA_CHROME_TRACE"] = f"{_folder}/{_pid}.trace"
def _note():
    import json, resource
    if os.getpid() == _pid:
        used = resource.getrusage(resource.RUSAGE_SELF)
        about = [used.ru_utime + used.ru_stime, os.getppid(), sys.orig_argv]
        with open(f"{_folder}/{_pid}.process", "w") as file:
            json.dump(about, file)
atexit.register(_note)
"""


@njit
def _kernel(values, rounds):
    total = 0.0
    for turn in range(rounds):
        for i in range(values.size):
            total += values[i] * ((i ^ turn) & 3)
    return total


def workload() -> float:
    """CPU seconds of the fixed piece of work: about a second on a quiet core of 2024."""
    values = np.arange(1 << 20, dtype=np.float64)
    _kernel(values[:8], 1)
    start = time.process_time()
    count = 0
    for i in range(5_000_000):
        count += i & 1
    for _ in range(60):
        np.sqrt(values * 1.5 + count).sum()
    _kernel(values, 250)
    return time.process_time() - start


def run(quick: bool = False) -> list[dict]:
    """A row for each phase, notebook and commit; ``quick`` clones this commit and asks make for its list of targets."""
    plans = (
        {"quick": ("help",)}
        if quick
        else {p: PLANS[p] for p in os.environ.get("XCREPRO_BENCH_PLANS", "after alone").split()}
    )
    rows = []
    for plan, targets in plans.items():
        for commit in ["HEAD"] if quick else COMMITS:
            with tempfile.TemporaryDirectory(prefix="minutes-") as folder:
                rows += _measured(commit, plan, targets, Path(folder))
    return rows


def _measured(commit: str, plan: str, targets: tuple[str, ...], folder: Path) -> list[dict]:
    """Clone a commit into a folder of its own with an empty home, and make its targets one by one."""
    clone, home, site = (folder / name for name in ("clone", "home", "site"))
    for command in (["clone", "--quiet", str(ROOT), str(clone)], ["-C", str(clone), "checkout", "--quiet", commit]):
        subprocess.run(["git", *command], check=True)
    name = subprocess.run(
        ["git", "-C", str(clone), "log", "-1", "--format=%h"], check=True, capture_output=True, text=True
    )
    home.mkdir()
    site.mkdir()
    (site / "sitecustomize.py").write_text(_NOTE)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XCREPRO", "XDG", "VIRTUAL_ENV"))}
    environment = kept | {"HOME": str(home), "PYTHONPATH": str(site)}
    rows = []
    for target in targets:
        notes = folder / f"notes-{target}"
        notes.mkdir()
        before = workload()
        start, used = time.perf_counter(), _children()
        # The environment is built by the Python that runs this, whose own variables it must not see.
        asked = environment | {"XCREPRO_BENCH_NOTES": str(notes)}
        done = subprocess.run(
            ["make", target, f"PYTHON={sys.executable}"], cwd=clone, env=asked, capture_output=True, text=True
        )
        wall, cpu = time.perf_counter() - start, _children() - used
        unit = (before + workload()) / 2
        if done.returncode:
            raise SystemExit(
                f"make {target} of {commit} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            )
        parts = {f"make {target}": (cpu, wall)} | {
            f"make {target}: {part}": (seconds, None) for part, seconds in _parts(notes)
        }
        rows += [_row(f"{plan}: {name.stdout.strip()}", who, *spent, unit) for who, spent in parts.items()]
    trained = sum(json.loads(path.read_text()).get("train seconds", 0) for path in home.rglob("training.json"))
    rows.append(
        _row(f"{plan}: {name.stdout.strip()}", "training, wall seconds of each model added", None, trained, unit)
    )
    return rows


def _row(job: str, who: str, cpu: float | None, wall: float | None, unit: float) -> dict:
    ratio = None if cpu is None else cpu / unit
    return {"job": job, "who": who, "seconds": cpu, "ratio": ratio, "wall": wall, "note": f"a unit is {unit:.2f} s"}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _parts(notes: Path) -> list[tuple[str, float]]:
    """What a target's CPU seconds went into by the processes' notes: the longest notebooks, pytest, nbval; and compiling."""
    processes = {int(path.stem): json.loads(path.read_text()) for path in notes.glob("*.process")}
    spent: dict[str, float] = defaultdict(float)
    for pid in processes:
        spent[_belongs(pid, processes)] += processes[pid][0]
    notebooks = {name: seconds for name, seconds in spent.items() if name.endswith(".ipynb")}
    longest = sorted(notebooks, key=notebooks.get, reverse=True)[:LONGEST]
    rest = sum(notebooks.values()) - sum(notebooks[name] for name in longest)
    others = sorted((name, seconds) for name, seconds in spent.items() if name not in notebooks)
    compiled = sum(_compiled(path) for path in notes.glob("*.trace"))
    return [
        *others,
        *((name, notebooks[name]) for name in longest),
        (f"{len(notebooks) - len(longest)} other notebooks", rest),
        ("compiling, of all these, wall", compiled),
    ]


def _belongs(pid: int, processes: Mapping[int, list]) -> str:
    """The notebook that a process or one of its parents runs, else nbval or pytest, else the module or command."""
    said = "other processes"
    while pid in processes:
        _, parent, command = processes[pid]
        text = " ".join(command)
        if found := re.search(r"notebooks/(\w+/\w+\.ipynb)", text):
            return found[1]
        if "pytest" in text:
            said = "nbval" if "--nbval" in text else "pytest"
        pid = parent
    return said


def _compiled(trace: Path) -> float:
    """Seconds of the outermost passes of numba's compiler in its log of a process."""
    found, depth, began = 0.0, defaultdict(int), {}
    text = trace.read_text()
    if not text.endswith("]"):  # the process was ended while it wrote: the events before that
        text = text[: text.rfind("}, {") + 1] + "]"
    for event in json.loads(text) if text != "]" else ():
        if event["cat"] == "numba:run_pass":
            thread = event["tid"]
            if event["ph"] == "B":
                depth[thread] += 1
                began.setdefault(thread, event["ts"])
            else:
                depth[thread] -= 1
                if not depth[thread]:
                    found += event["ts"] - began.pop(thread)
    return found / 1e6
