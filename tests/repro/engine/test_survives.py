"""A run survives the machine: files in the way, a full disk, a read-only folder, kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.repro.engine.test_runner import EMPTY, _alive, fake_python, outcomes
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
    "place", [*(f"notebooks/demo/one.{kind}" for kind in ("ipynb", "log", "notes")), "stamps/demo/one.json"]
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


def in_a_namespace(command: str) -> subprocess.CompletedProcess:
    """Run a shell command that may mount, seen by nobody else; a skip where that is not allowed."""
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    try:
        subprocess.run([*unshare, "sh", "-c", "mount -t tmpfs none /mnt"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    return subprocess.run([*unshare, "sh", "-ec", command], capture_output=True, text=True, timeout=3600)


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
