"""Reading predictions in each format that holds them, in a process of its own: megabytes a second, and memory.

The same 100 scored labels a row of 670,091 are written in each format. Megabytes are those of the file; beside it stands how
many pairs are read in a second of processor time, because a pair takes 8 bytes in one format and 30 in another. What the
formats give must be the same: a digest of ids and scores says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import xcrepro as xc
from benchmarks.metrics import ROOT
from xcrepro.core.extras import LibraryMissing
from xcrepro.tools import formats

DENSE = ("npy", "mat")
"""Formats that would hold every label of every row."""
_READ = """
import hashlib, json, re, sys, time
from xcrepro.tools import formats
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1e3
format, small, path, n = *sys.argv[1:4], int(sys.argv[4])
formats.read_predictions(small, format, n_labels=n)  # imports and compiles
before, wall, cpu = peak(), time.perf_counter(), time.process_time()
top = formats.read_predictions(path, format, n_labels=n)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps([wall, cpu, peak() - before, hashlib.sha256(top.ids.tobytes() + top.scores.tobytes()).hexdigest()]))
"""


def run(quick: bool = False) -> list[dict]:
    n_labels, rows, digests = 670_091, [], {}
    n, rng = 20 if quick else 10_000, np.random.default_rng(0)
    ids = rng.integers(0, n_labels // 100, (n, 100)) * 100 + np.arange(100)
    top = xc.TopK(rng.permuted(ids, axis=1).astype(np.int32), -np.sort(-rng.random((n, 100), np.float32)), n_labels)
    top = xc.TopK.from_scores(top.to_csr(), 100)  # equal scores by label, as text gives them back
    with tempfile.TemporaryDirectory() as folder:
        for format in formats.FORMATS:
            if "predictions" not in {*format.can("write")} & {*format.can("read")} or format.name in DENSE:
                continue
            files = [Path(folder, size + format.name + format.suffixes[0].rstrip("/")) for size in ("small", "large")]
            try:
                for file, part in zip(files, (top.rows(np.arange(4)), top), strict=True):
                    formats.write_predictions(file, part, format.name)
            except LibraryMissing as missing:
                print(f"not measured: {missing}")
                continue
            command = [sys.executable, "-c", _READ, format.name, *map(str, files), str(n_labels)]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            wall, cpu, memory, digest = json.loads(done.stdout.splitlines()[-1])
            digests.setdefault(digest, []).append(format.name)
            inside = files[1].rglob("*") if files[1].is_dir() else [files[1]]
            size = sum(file.stat().st_size for file in inside) / 1e6
            entry = {
                "job": f"reading {n:,} rows of 100 predictions",
                "format": format.name,
                "MB": size,
                "seconds": wall,
            }
            rows.append(entry | {"CPU": cpu, "MB/s": size / wall, "pairs/s of CPU": n * 100 / cpu, "memory MB": memory})
    if len(digests) > 1:
        raise RuntimeError(f"these formats give different predictions: {[*digests.values()]}")
    return rows
