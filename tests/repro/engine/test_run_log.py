"""What a run notes of itself: the files that it reads, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from xcrepro.repro.engine import run_log

PROGRAM = """
import os, pathlib, numpy as np
from xcrepro.repro import record
record.watch()
root, cache = pathlib.Path(os.environ["XCREPRO_ROOT"]), pathlib.Path(os.environ["XCREPRO_DATA"])
(root / "data/a.csv").read_text()
(root / "data/a.csv").read_text()
np.load(cache / "datasets/b.npy", mmap_mode="r")
with open(cache / "datasets/new.txt", "w") as file:
    file.write("written, not read")
(cache / "trained/c.txt").read_text()
(cache / "numba/kernel.nbi").read_text()
(root / "other.txt").read_text()
record.note("moved", "a file\\nin two lines")
"""


def test_inputs_are_the_files_of_the_project_and_of_the_cache(tmp_path):
    """Cached datasets count as well: at size paper a new download reruns what read the old one."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    for path in (
        root / "data/a.csv",
        root / "other.txt",
        cache / "datasets/b.npy",
        cache / "trained/c.txt",
        cache / "numba/kernel.nbi",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    np.save(cache / "datasets/b.npy", [1])
    notes = tmp_path / "notes"
    environment = {"XCREPRO_ROOT": str(root), "XCREPRO_DATA": str(cache), "XCREPRO_RECORD": str(notes)}
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env={**os.environ, **environment})
    assert run_log.read(notes) == {
        "input": [str(root / "data/a.csv"), str(cache / "datasets/b.npy")],
        "moved": ["a file\nin two lines"],
    }


def test_without_a_record_nothing_is_noted(tmp_path, monkeypatch):
    monkeypatch.delenv("XCREPRO_RECORD", raising=False)
    run_log.note("input", "x")
    assert run_log.read(tmp_path / "none") == {}
