"""Training and predicting of every model beside an older commit of xcrepro, on one thread, in one run.

The older commit is the last whose models went through BLAS, the C library's and NumPy's exp, log and tanh; another is named by
``XCREPRO_BENCH_BEFORE``. Both train on the same matrices, in processes of their own that take turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from scipy import sparse

import xcrepro as xc
from benchmarks.metrics import ROOT, row, without_number
from xcrepro.models import CLASSES

BEFORE = os.environ.get("XCREPRO_BENCH_BEFORE", "96adedd")
LEFT_OUT = {"Popularity": "counts labels"}
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
# Trains twice, because the first compiles; prints the seconds of the second.
_TIMED = """
import json, sys, time
from scipy import sparse
import xcrepro as xc
name, folder = sys.argv[1:]
X, Y, T = (sparse.load_npz(f"{folder}/{part}.npz") for part in ("X", "Y", "T"))
words = {"label_features": sparse.load_npz(f"{folder}/L.npz")} if name == "TwoTowers" else {}
for _ in range(2):
    model, start = getattr(xc.models, name)(), time.perf_counter()
    model.fit(X, Y, **words)
    fitted = time.perf_counter()
    model.predict(T, 5)
    done = time.perf_counter()
print(json.dumps([fitted - start, done - fitted]))
"""


def run(quick: bool = False) -> list[dict]:
    """Each model's least seconds of three turns; ``quick`` takes one turn on a tiny twin."""
    scale, turns = (0.02, 1) if quick else (0.1, 3)
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        added = subprocess.run(
            ["git", "worktree", "add", "--detach", str(before), BEFORE], cwd=ROOT, capture_output=True, text=True
        )
        if added.returncode:
            return [without_number("Models", f"commit {BEFORE}", "not in this clone's history")]
        try:
            _write(xc.twin("eurlex-4k", scale=scale), Path(folder))
            return [
                entry for name in CLASSES if name not in LEFT_OUT for entry in _compare(name, folder, before, turns)
            ]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(before)], cwd=ROOT, check=True)


def _write(ds, folder: Path) -> None:
    """The matrices that both train on; words of labels are made of the words of their points."""
    words = (ds.train.Y.T @ ds.train.X).tocsr()
    for name, matrix in {"X": ds.train.X, "Y": ds.train.Y, "T": ds.test.X, "L": words}.items():
        sparse.save_npz(folder / f"{name}.npz", matrix)


def _compare(name: str, folder: str, before: Path, turns: int) -> list[dict]:
    places = {"xcrepro": ROOT, f"commit {BEFORE}": before}
    found: dict[str, list[list[float]]] = {who: [] for who in places}
    for _ in range(turns):
        for who, place in places.items():
            done = subprocess.run(
                [sys.executable, "-c", _TIMED, name, folder],
                cwd=place,
                env=os.environ | _ONE_THREAD | {"PYTHONPATH": str(place)},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                return [without_number(f"{name}, training", who, done.stderr.strip().rpartition("\n")[2])]
            found[who].append(json.loads(done.stdout.splitlines()[-1]))
    least = {who: [min(seconds) for seconds in zip(*turns, strict=True)] for who, turns in found.items()}
    return [
        row(f"{name}, {what}", who, seconds[i], least["xcrepro"][i])
        for i, what in enumerate(("training", "predicting"))
        for who, seconds in least.items()
    ]
