"""The numbers of the build for a browser's tab, without numba and with indices of 32 bits, are those of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import xcrepro as xc
from tests import same_bits

NOT_TRIED = {
    **dict.fromkeys(
        ("metrics.smooth_ece", "metrics.calibration_table", "metrics.evaluate"), "takes half a minute there"
    ),
    **dict.fromkeys(("data.twin.expected_observed_counts", "the open dataset"), "takes a minute there"),
    "data.vectorize.vectorize": "scikit-learn is not in the page's library",
    "metrics.best_macro_f1": "nor is scipy.optimize",
}
TEXT = "3 2 4\n1,3 0:0.5 1:1\n\n0 1:0.25\n"

PROGRAM = """
import sys, types
sys.modules["pytest"] = types.ModuleType("pytest")
from tests import same_bits, test_wasm
found = {{name: case for name, case in same_bits.cases().items() if name in {names!r}}}
for name, compute in [("a file", lambda: test_wasm.read("/tmp/a.txt")), *found.items()]:
    print(f"{{name}}|{{same_bits.digest(compute())}}", flush=True)
"""


def read(path: str) -> list:
    Path(path).write_text(TEXT)
    return [*xc.read_xc(path)]


def node() -> str | None:
    """Node 26 or later, which can compile the build: $NODE, or what is on the path."""
    found = os.environ.get("NODE") or shutil.which("node")
    said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout if found else ""
    return found if said.startswith("v") and int(said[1:].split(".")[0]) >= 26 else None


def test_the_build_for_a_tab_has_the_same_bits(root, tmp_path):
    parts = root / "build/site/html/run"
    if not (parts / "parts.json").exists() or node() is None:
        pytest.skip("the build for WebAssembly was not tried: it takes `make web` and Node 26 (NODE=)")
    cases = same_bits.cases()
    names = {name for name in cases if name not in NOT_TRIED and not name.startswith("models.")}
    command = [node(), "--no-warnings", str(root / "tests/wasm.mjs"), str(parts), str(root)]
    done = subprocess.run([*command, PROGRAM.format(names=names)], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
    there = dict(line.split("|", 1) for line in done.stdout.splitlines())
    here = {name: same_bits.digest(cases[name]()) for name in names}
    here["a file"] = same_bits.digest(read(str(tmp_path / "a.txt")))
    assert len(there) > 190
    assert same_bits.differing(here, there) == []
