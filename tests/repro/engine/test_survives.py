"""A run survives the machine: files in the way, a full disk, a read-only folder, kill -9."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.repro.test_runner import EMPTY, _alive, fake_python, outcomes

from tests.test_full_disk import in_a_namespace
from xcrepro.__main__ import main
from xcrepro.repro.engine import processes, runner, stamps

resource = pytest.importorskip("resource", reason="this system has no limits to the size of a file")


@pytest.fixture
def pair(project, monkeypatch, tmp_path):
    """Two items that run without a kernel; what is planted is in the way of demo/one alone."""
    project.add("one", "pass")
    project.add("two", "pass")
    (project.root / "bin").mkdir()
    monkeypatch.setattr(processes.sys, "executable", fake_python(project.root / "bin", EMPTY))
    return project


@pytest.mark.parametrize(
    "place",
    [
        "notebooks/demo/one.ipynb",
        "notebooks/demo/one.log",
        "notebooks/demo/one.notes",
        "stamps/demo/one.json",
    ],
)
def test_a_folder_in_the_way_of_one_item_fails_that_item(pair, place, capsys):
    (pair.root / "build" / place / "inside").mkdir(parents=True)
    report = runner.run(jobs=1)
    assert outcomes(report) == {"one": "failed", "two": "ok"}
    assert f"build/{place}" in report.failures()
    assert "demo/one failed" in capsys.readouterr().out
    # Out of the way again, the run goes on where it was.
    (pair.root / "build" / place / "inside").rmdir()
    (pair.root / "build" / place).rmdir()
    assert outcomes(runner.run(jobs=1)) == {"one": "ok", "two": "unchanged"}


def test_what_comes_into_the_way_while_an_item_runs_fails_that_item(pair, monkeypatch, tmp_path):
    """The stamp cannot be written; the notes are cut, as by a full disk."""
    stamp = pair.root / "build/stamps/demo/one.json"
    plant = f'case "$4" in */one.ipynb) mkdir -p {stamp}/inside;; esac\n'
    monkeypatch.setattr(processes.sys, "executable", fake_python(pair.root / "bin", EMPTY + plant))
    report = runner.run(jobs=1)
    assert outcomes(report) == {"one": "failed", "two": "ok"}
    assert "build/stamps/demo/one.json" in report.failures()
    (stamp / "inside").rmdir()
    stamp.rmdir()

    for notes in ('["output", "x', '"text"', "[1, 2, 3]", "\\377"):
        cut = f'case "$4" in */one.ipynb) printf \'{notes}\\n\' > "$XCREPRO_RECORD";; esac\n'
        monkeypatch.setattr(processes.sys, "executable", fake_python(pair.root / "bin", EMPTY + cut))
        report = runner.run(jobs=1, force=True)
        assert outcomes(report) == {"one": "failed", "two": "ok"}, notes
        assert "build/notebooks/demo/one.notes" in report.failures()
        assert stamps.read(runner.manifest.load()["demo/one"]) is None


def test_a_process_that_cannot_be_started_fails_its_item(pair, monkeypatch):
    real = subprocess.Popen

    def no_process(command, *given, **named):
        if str(command[4]).endswith("one.ipynb"):
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return real(command, *given, **named)

    monkeypatch.setattr(processes.subprocess, "Popen", no_process)
    report = runner.run(jobs=1)
    assert outcomes(report) == {"one": "failed", "two": "ok"}
    assert "temporarily unavailable" in report.failures()


def test_a_notebook_that_goes_while_others_run_fails_its_item(pair, monkeypatch):
    gone = pair.root / "notebooks/demo/two.ipynb"
    monkeypatch.setattr(processes.sys, "executable", fake_python(pair.root / "bin", EMPTY + f"rm -f {gone}\n"))
    report = runner.run(jobs=1)
    assert outcomes(report) == {"one": "ok", "two": "failed"}
    assert "notebooks/demo/two.ipynb" in report.failures()


def test_outputs_that_cannot_be_put_back_fail_their_item(pair, monkeypatch):
    def full(entry, executed, moved):
        if entry.id == "demo/one":
            raise OSError(28, "No space left on device", str(entry.notebook))
        return []

    monkeypatch.setattr(runner, "_write_back", full)
    report = runner.run(jobs=1, accept=True)
    assert outcomes(report) == {"one": "failed", "two": "ok"}
    assert "notebooks/demo/one.ipynb: No space" in report.failures()


def test_a_recording_that_cannot_be_written_fails_alone(pair, monkeypatch, capsys):
    from xcrepro.repro.engine import recording

    def full(one, force):
        raise OSError(28, "No space left on device", "/data/a.json")

    monkeypatch.setattr(recording, "collect", full)
    assert not recording.run([None, None])
    assert "0 stand, 2 failed" in (said := capsys.readouterr().out)
    assert "[1/2] /data/a.json: No space" in said


def test_a_folder_that_cannot_be_written_is_said_once(pair, capsys):
    (pair.root / "build").write_text("in the way")
    assert main(["run"]) == 2
    assert f"{pair.root}/build" in capsys.readouterr().err


def test_a_project_on_a_read_only_disk_is_said_once(pair):
    done = in_a_namespace(
        f"mount --bind {pair.root} {pair.root}; mount -o remount,bind,ro {pair.root}; "
        f"XCREPRO_ROOT={pair.root} {Path(sys.prefix, 'bin', 'python')} -m xcrepro run"
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"xcrepro: a run writes into {pair.root}/build, which cannot be: ")
    assert "Read-only file system" in done.stderr
    assert done.stderr.count("\n") == 1


SLOW = """
import os, time
from xcrepro.core import paths
root = paths.project_root()
with open(root / "beat", "a", buffering=1) as file:
    for _ in range(int(os.environ.get("BEATS", "6000"))):
        print(os.getpid(), os.getppid(), file=file)
        time.sleep(0.02)
"""


def started(beat: Path) -> tuple[int, int]:
    """The kernel and its papermill process, once the kernel writes."""
    until = time.monotonic() + 1200
    while not (beat.exists() and "\n" in beat.read_text()):
        assert time.monotonic() < until, "the kernel did not start"
        time.sleep(0.05)
    return tuple(map(int, beat.read_text().splitlines()[0].split()))


def test_kill_9_takes_the_children_along_and_the_next_run_begins_after_them(project):
    project.add("slow", SLOW)
    command = [sys.executable, "-m", "xcrepro", "run"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        kernel, papermill = started(project.root / "beat")
        first.send_signal(signal.SIGKILL)
    second = subprocess.run(command, env=os.environ | {"BEATS": "3"}, capture_output=True, text=True, timeout=3600)
    assert not _alive(kernel)
    assert not _alive(papermill)
    assert second.returncode == 0, second.stdout
    assert "demo/slow  ok" in second.stdout
    writers = [int(line.split()[0]) for line in (project.root / "beat").read_text().splitlines()]
    own = writers[-1]
    assert own != kernel
    # Not one line of the first kernel after the second's first.
    assert writers == [kernel] * (len(writers) - 3) + [own] * 3


STUB = '''
import os, pathlib, subprocess, sys

KERNEL = """
import json, os, pathlib, sys, time
root, name = pathlib.Path(os.environ["XCREPRO_ROOT"]), sys.argv[1]
with open(root / "beats" / name, "a", buffering=1) as beat:
    for _ in range(10):
        print(os.getpid(), file=beat)
        time.sleep(0.01)
part = root / "made" / (name + "." + str(os.getpid()))
part.write_text(name * 300)
os.replace(part, root / "made" / name)
with open(os.environ["XCREPRO_RECORD"], "a") as notes:
    notes.write(json.dumps(["output", str(root / "made" / name)]) + chr(10))
"""

def papermill(prog_name):
    executed = pathlib.Path(sys.argv[2])
    kernel = subprocess.run([sys.executable, "-S", "-c", KERNEL, executed.stem], start_new_session=True)
    executed.write_text('{"nbformat": 4, "cells": []}')
    sys.exit(kernel.returncode)
'''
"""A papermill whose kernel only writes: the processes, the pipe and the locks are the real ones, the notebooks are not run."""


def break_off(how: str, rng, root: Path) -> None:
    """A run in a process of its own that is broken in some way."""
    room = int(rng.integers(0, 2500))
    master = os.fork()
    if master == 0:
        try:
            if how == "full disk":
                # The kernel's output is beyond some of these, a stamp or a log beyond others, for the run as for its children.
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
                runner.run(jobs=2)
        finally:
            os._exit(0)
    if how in ("kill -9", "interrupt"):
        time.sleep(float(rng.uniform(0, 1.5)))
        os.kill(master, signal.SIGKILL if how == "kill -9" else signal.SIGINT)
    os.waitpid(master, 0)


def test_runs_that_are_broken_anywhere_are_resumed(project, monkeypatch, capsys):
    """kill -9, interrupts, full disks at any moment; ``XCREPRO_BREAKS=100`` for more of them. Nothing is lost, nothing is
    written by two at once, and the next run does what is left."""
    breaks = int(os.environ.get("XCREPRO_BREAKS", "3"))
    names = [f"item{number}" for number in range(4)]
    for name in names:
        project.add(name, "pass")
    for folder in ("beats", "made", "stub/papermill"):
        (project.root / folder).mkdir(parents=True)
    (project.root / "stub/papermill/__init__.py").write_text("")
    (project.root / "stub/papermill/cli.py").write_text(STUB)
    package = Path(runner.__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(project.root / "stub"), str(package)]))
    rng, resumed, done_before = np.random.default_rng(0), 0, 0
    for turn in range(breaks):
        how = ("kill -9", "full disk", "interrupt")[turn % 3]
        # So that there is something to do: some of what was made is gone.
        for name in rng.choice(names, 2, replace=False):
            (project.root / "made" / name).unlink(missing_ok=True)
        break_off(how, rng, project.root)
        report = runner.run(jobs=2)
        assert report.ok, f"{turn}, {how}: {report.failures()}"
        resumed += 1
        done_before += sum(result.outcome == "unchanged" for result in report.results)
        assert {name: (project.root / "made" / name).read_text() for name in names} == {
            name: name * 300 for name in names
        }
        assert {result.outcome for result in runner.run(dry=True).results} == {"unchanged"}
    for name in names:
        writers = (project.root / "beats" / name).read_text().split()
        runs = [pid for pid, _ in itertools.groupby(writers)]
        assert len(runs) == len(set(runs)), f"two wrote {name} at once"
    with capsys.disabled():
        if "XCREPRO_BREAKS" in os.environ:
            print(f"\n{breaks} runs broken, {resumed} resumed; {done_before} of {4 * breaks} items were done already")
