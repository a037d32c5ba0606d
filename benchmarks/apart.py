"""Training and predicting of xcrepro's models and of other programs on one dataset, each in a process of its own.

So each has a peak memory of its own. Kernels are compiled before anything is timed, and every time begins from what the
program holds in memory: omikuji takes its data from a text file, whose reading is not counted. Trees, beam and threads are
on each line, and P@1, 3, 5 beside the times, because a fast tree that predicts worse is no faster. What takes less than
a few seconds is run three times, of which the shortest counts.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
from scipy.sparse import csr_matrix, save_npz

import xcrepro as xc
from benchmarks.metrics import KS, ROOT, SLOW, installed

MODULES = {"omikuji": "omikuji", "napkinXC": "napkinxc"}
"""A program that is not ours -> the module it is imported by."""
BEAM = {"xcrepro": "exact", "napkinXC": "exact", "omikuji": "10"}
"""How far each looks in a tree, unless its call says something else."""

# The peak is that the system noted since the program began; getrusage counts what started it as well.
_BEGIN = """
import json, re, sys, time
import numpy as np
from scipy.sparse import load_npz
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1e3
folder, threads, slow = sys.argv[1], int(sys.argv[2]), float(sys.argv[4])
call, _, how = sys.argv[3].partition(" -> ")
X, Y, queries = (load_npz(f"{folder}/{name}.npz") for name in ("X", "Y", "queries"))
weights = np.load(f"{folder}/weights.npy")
pairs = lambda found: [[label for label, _ in row] for row in found]
"""
# Each defines fit(), and predict(model), which gives the ids of the five best labels of each point.
_PROGRAMS = {
    "xcrepro": """
import xcrepro as xc
names = vars(xc.models) | {one: getattr(xc.models, one) for one in xc.models.CLASSES}
eval(call, names).fit(X[:60], Y[:60]).predict(queries[:4], 5)
fit = lambda: eval(call, names).fit(X, Y)
predict = lambda model: eval(how or "model.predict(queries, 5)", {"model": model} | globals()).ids.tolist()
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
predict = lambda model: pairs(model.predict(row, beam_size=int(how or 10), top_k=5) for row in rows)
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
def least(work):
    found = []
    while not found or (len(found) < 3 and found[0][0] < slow):
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return *(min(each) for each in zip(*found)), result
before = peak()
wall, cpu, model = least(fit)
trained = peak()
each, each_cpu, ids = least(lambda: predict(model))
print(json.dumps([wall, cpu, trained, before, 1e3 * each / len(ids), 1e3 * each_cpu / len(ids), peak(), ids]))
"""


def measured(job: str, train, test, runs: dict[str, tuple[str, str]], threads: int) -> list[dict]:
    """Rows of one table: training, and prediction of a point; ratios are of processor time, to the first run.

    runs: who -> (program, call), such as ("xcrepro", "PLT(trees=3)"), ("omikuji", "n_trees=3") or ("napkinXC",
    "PLT: ensemble=3"); behind an arrow how it predicts, a call of ours or a beam of omikuji's.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        X, Y, queries = csr_matrix(train.X), csr_matrix(train.Y), csr_matrix(test.X)
        for name, matrix in (("X", X), ("Y", Y), ("queries", queries)):
            save_npz(f"{folder}/{name}.npz", matrix)
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        np.save(f"{folder}/weights.npy", xc.propensity.inverse(counts, Y.shape[0]))
        if any(program == "omikuji" for program, _ in runs.values()):
            xc.write_xc(f"{folder}/train.txt", X, Y)
        for who, (program, call) in runs.items():
            if program in MODULES and not installed(MODULES[program]):
                rows.append({"job": job, "who": f"{who}: not installed"})
                continue
            command = [sys.executable, "-c", _BEGIN + _PROGRAMS[program] + _END, folder, str(threads), call, str(SLOW)]
            environment = {**os.environ, "XCREPRO_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(sys.path)}
            done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
            wall, cpu, trained, before, each, each_cpu, whole, ids = json.loads(done.stdout.splitlines()[-1])
            trees = re.search(r"(?:trees|ensemble)=(\d+)", call)
            entry = {"job": job, "who": who, "trees": str(max(1, int(trees[1]))) if trees else ""}
            entry |= {"beam": call.partition(" -> ")[2] if program == "omikuji" and "->" in call else BEAM[program]}
            entry |= {"threads": str(threads), "train s": wall, "train CPU": cpu, "train ratio": math.nan}
            entry |= {"predict ms": each, "predict CPU": each_cpu, "predict ratio": math.nan}
            top = xc.TopK.from_ids([[*row, -1, -1, -1, -1, -1][:5] for row in ids], n_labels=Y.shape[1])
            values = 100 * xc.metrics.precision(test.Y, top, KS)
            entry |= {f"P@{k}": value for k, value in zip(KS, values, strict=True)}
            rows.append(entry | {"before MB": before, "trained MB": trained, "peak MB": whole})
    for entry in rows:
        if "train CPU" in entry:
            entry |= {f"{name} ratio": entry[f"{name} CPU"] / rows[0][f"{name} CPU"] for name in ("train", "predict")}
    return rows


def with_features(part):
    """The points that have features and labels: omikuji takes none without features, and leaves out those without labels."""
    kept = np.flatnonzero((np.diff(part.X.indptr) > 0) & (np.diff(part.Y.indptr) > 0))
    return part.rows(kept)
