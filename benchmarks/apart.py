"""Training and predicting of xcrepro's models and of other programs on one dataset, each in a process of its own.

So each has a peak memory of its own. Kernels are compiled before anything is timed; omikuji takes its data from a text file,
whose reading is not counted. P@1, 3, 5 stand beside the times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from scipy.sparse import csr_matrix, save_npz

import xcrepro as xc
from benchmarks.metrics import KS, ROOT, installed, without_number

MODULES = {"omikuji": "omikuji", "napkinXC": "napkinxc"}
"""A program that is not ours -> the module it is imported by."""

# The peak is that the system noted since the program began; getrusage counts what started it as well.
_BEGIN = """
import json, re, sys, time
import numpy as np
from scipy.sparse import load_npz
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1e3
folder, threads, call = sys.argv[1], int(sys.argv[2]), sys.argv[3]
X, Y, queries = (load_npz(f"{folder}/{name}.npz") for name in ("X", "Y", "queries"))
pairs = lambda found: [[label for label, _ in row] for row in found]
"""
# Each defines fit(), and predict(model), which gives the ids of the five best labels of each point.
_PROGRAMS = {
    "xcrepro": """
import xcrepro as xc
names = vars(xc.models) | {one: getattr(xc.models, one) for one in xc.models.CLASSES}
eval(call, names).fit(X[:60], Y[:60]).predict(queries[:4], 5)
fit = lambda: eval(call, names).fit(X, Y)
predict = lambda model: model.predict(queries, 5).ids.tolist()
""",
    "omikuji": """
import importlib
from omikuji import Model
inner = importlib.import_module(Model.__module__)  # its own steps: train_on_data reads and trains in one
pool = inner._ThreadPoolHandle(threads)
settings = Model.default_hyper_param()
for name, value in eval(f"dict({call})").items():
    setattr(settings, name, value)
rows = [queries[i] for i in range(queries.shape[0])]
rows = [list(zip(row.indices.tolist(), row.data.tolist())) for row in rows]
del X, Y
data = inner.lib.load_omikuji_data_set(inner.ffi.new("char[]", f"{folder}/train.txt".encode()), pool.ptr)
fit = lambda: Model(inner.lib.train_omikuji_model(data, settings, pool.ptr), pool)
predict = lambda model: pairs(model.predict(row, top_k=5) for row in rows)
""",
    "napkinXC": """
from napkinxc import models
labels = [row.tolist() for row in np.split(Y.indices, Y.indptr[1:-1])]
name, _, settings = call.partition(":")
settings = {"threads": threads, "seed": 0, "verbose": False} | eval(f"dict({settings})")
def fit():
    model = getattr(models, name)(f"{folder}/model", **settings)
    model.fit(X, labels)
    return model
predict = lambda model: pairs(model.predict_proba(queries, top_k=5))
""",
}
_END = """
before, wall, cpu = peak(), time.perf_counter(), time.process_time()
model = fit()
wall, cpu, trained = time.perf_counter() - wall, time.process_time() - cpu, peak()
start, used = time.perf_counter(), time.process_time()
ids = predict(model)
each = 1e3 * (time.perf_counter() - start) / len(ids), 1e3 * (time.process_time() - used) / len(ids)
print(json.dumps([wall, cpu, trained, before, *each, peak(), ids]))
"""


def measured(job: str, train, test, runs: dict[str, tuple[str, str]], threads: int) -> list[dict]:
    """Rows of one table; ratios to the first run.

    runs: who -> (program, call), such as ("xcrepro", "PLT(trees=3)"), ("omikuji", "n_trees=3") or ("napkinXC",
    "PLT: ensemble=3").
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        X, Y, queries = csr_matrix(train.X), csr_matrix(train.Y), csr_matrix(test.X)
        for name, matrix in (("X", X), ("Y", Y), ("queries", queries)):
            save_npz(f"{folder}/{name}.npz", matrix)
        if any(program == "omikuji" for program, _ in runs.values()):
            xc.write_xc(f"{folder}/train.txt", X, Y)
        for who, (program, call) in runs.items():
            if program in MODULES and not installed(MODULES[program]):
                rows.append(without_number(job, who, "not installed"))
                continue
            command = [sys.executable, "-c", _BEGIN + _PROGRAMS[program] + _END, folder, str(threads), call]
            environment = {**os.environ, "XCREPRO_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(sys.path)}
            done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
            wall, cpu, trained, before, each, each_cpu, whole, ids = json.loads(done.stdout.splitlines()[-1])
            entry = {"job": job, "who": who, "seconds": wall, "CPU": cpu, "peak MB": trained, "before MB": before}
            top = xc.TopK.from_ids([[*row, -1, -1, -1, -1, -1][:5] for row in ids], n_labels=Y.shape[1])
            values = 100 * xc.metrics.precision(test.Y, top, KS)
            entry |= {f"P@{k}": value for k, value in zip(KS, values, strict=True)}
            note = f"prediction {each:.2f} ms per point ({each_cpu:.2f} of CPU), peak {whole:,.0f} MB"
            rows.append(entry | {"note": note})
    for entry in rows:
        if "CPU" in entry:
            entry |= {"ratio": entry["seconds"] / rows[0]["seconds"], "CPU ratio": entry["CPU"] / rows[0]["CPU"]}
    return rows


def with_features(part):
    """The points that have features and labels: omikuji takes none without features, and leaves out those without labels."""
    kept = np.flatnonzero((np.diff(part.X.indptr) > 0) & (np.diff(part.Y.indptr) > 0))
    return part.rows(kept)
