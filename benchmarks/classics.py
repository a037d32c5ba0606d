"""The classic methods of ``xcrepro/models/classic``: time and memory of fit and predict beside one-vs-rest.

Each in a process of its own on TIB, so that its peak memory is known; kernels are compiled before anything is timed. P@1, 3, 5
stand beside the times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from benchmarks.metrics import ROOT
from benchmarks.trees import _PEAK, KS, THREADS

MODELS = ("OneVsRest", "KNN", "CS", "MLCSSP", "CPLST", "LEML", "WSABIE", "LPSR", "SLEEC", "PDSparse", "ProXML")

_RUN = """
import xcrepro as xc
name, points = sys.argv[1], int(sys.argv[2])
ds = xc.load("tib", points=points)
make = lambda: eval(name, vars(xc.models) | {one: getattr(xc.models, one) for one in xc.models.CLASSES})
make().fit(ds.train.X[:60], ds.train.Y[:60]).predict(ds.test.X[:4], 5)  # compiled before anything is timed
before, start, cpu = peak(), time.perf_counter(), time.process_time()
model = make().fit(ds.train.X, ds.train.Y)
seconds, cpu, after = time.perf_counter() - start, time.process_time() - cpu, peak()
start = time.perf_counter()
top = model.predict(ds.test.X, 5)
predicted = 1e3 * (time.perf_counter() - start) / len(top)
precision = (100 * xc.metrics.precision(ds.test.Y, top, (1, 3, 5))).tolist()
print(json.dumps([seconds, cpu, after, before, predicted, precision]))
"""


def run(quick: bool = False) -> list[dict]:
    """Every classic method once; ``quick`` takes few records, to see that everything runs."""
    points = 200 if quick else 4000
    models = {name: f"{name}()" for name in MODELS}
    return measured(f"Classic methods, TIB, {points:,} records: training", models, points, THREADS)


def measured(job: str, models: dict[str, str], points: int, threads: int) -> list[dict]:
    """Time and peak memory of each model, each in a process of its own; ratios to the first."""
    rows = []
    for name, call in models.items():
        command = [sys.executable, "-c", _PEAK + _RUN, call, str(points)]
        environment = {**os.environ, "XCREPRO_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        seconds, cpu, peak, before, predicted, precision = json.loads(done.stdout.splitlines()[-1])
        entry = {"job": job, "who": name, "seconds": seconds, "CPU": cpu, "peak MB": peak, "before MB": before}
        entry |= {f"P@{k}": value for k, value in zip(KS, precision, strict=True)}
        rows.append(entry | {"note": f"prediction {predicted:.2f} ms per point"})
    for entry in rows:
        entry |= {"ratio": entry["seconds"] / rows[0]["seconds"], "CPU ratio": entry["CPU"] / rows[0]["CPU"]}
    return rows
