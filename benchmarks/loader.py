"""How fast XC text is read: xcrepro beside napkinXC and scikit-learn, on one 290 MB file.

Each reader runs in a process of its own, so that its memory is its
own; the file is made once (seeded, 240,000 rows, 75 features and 5 labels a row, 6 significant digits) and kept in the
cache folder. The rows "reading the bytes once" is the machine's own limit: the same file through a buffer, unparsed.
"""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.metrics import new_process
from xcrepro.core.data.write import write_xc
from xcrepro.core.paths import cache_dir

ROWS, QUICK_ROWS = 240_000, 2_400
N_FEATURES, N_LABELS, ROW_FEATURES, ROW_LABELS = 135_909, 670_091, 75, 5


def make_file(path: Path, n_rows: int) -> None:
    """Write the file, seeded."""
    rng = np.random.default_rng(0)

    def matrix(values, width: int) -> csr_matrix:
        # Sorted numbers plus 0, 1, 2, ...: sorted and different.
        size = values.size // n_rows
        ids = np.sort(rng.integers(0, width - size + 1, (n_rows, size), dtype=np.int32), axis=1)
        ids += np.arange(size, dtype=np.int32)
        return csr_matrix((values, ids.ravel(), np.arange(n_rows + 1) * size), (n_rows, width))

    values = rng.lognormal(-2.5, 1.0, n_rows * ROW_FEATURES)
    scale = 10.0 ** (5 - np.floor(np.log10(values)))
    X = matrix((np.round(values * scale) / scale).astype(np.float32), N_FEATURES)
    write_xc(path, X, matrix(np.ones(n_rows * ROW_LABELS, np.float32), N_LABELS))


# Each defines read(path), and does its imports and its warming up before.
_XCREPRO = """
import pathlib, tempfile
from xcrepro.core.data.read import read_xc
with tempfile.TemporaryDirectory() as folder:
    tiny = pathlib.Path(folder, "tiny.txt")
    tiny.write_text("1 1 1\\n0 0:1\\n")
    read_xc(tiny)
"""
_READERS = {
    "xcrepro warm": f"{_XCREPRO}read = read_xc",
    "xcrepro warm, one thread": f"{_XCREPRO}read = lambda path: read_xc(path, threads=1)",
    "xcrepro cold": """
def read(path):
    from xcrepro.core.data.read import read_xc
    return read_xc(path)
""",
    "napkinXC": """
from napkinxc.datasets import load_libsvm_file
read = lambda path: load_libsvm_file(path, labels_format="csr_matrix")
""",
    # It has no notion of the header: skipped for it.
    "scikit-learn": f"""
import numpy as np
from sklearn.datasets import load_svmlight_file
def read(path):
    with open(path, "rb") as file:
        file.readline()
        how = dict(dtype=np.float32, multilabel=True, zero_based=True)
        return load_svmlight_file(file, n_features={N_FEATURES}, **how)
""",
    "reading the bytes once": """
def read(path):
    buffer = bytearray(1 << 20)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return ()
""",
}
# The high-water mark of resident memory starts anew; of scikit-learn's label tuples the slots alone are counted.
_MEASURE = """
import json, pathlib, re, sys, time
def memory(which):
    try:
        return 1024 * int(re.search(rf"{which}:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
    except OSError:
        return 0
def size(part):
    if hasattr(part, "indptr"):
        return part.data.nbytes + part.indices.nbytes + part.indptr.nbytes
    return sum(map(sys.getsizeof, part))
try:
    pathlib.Path("/proc/self/clear_refs").write_text("5")
except OSError:
    pass
before = memory("VmRSS")
start = time.perf_counter()
result = read(sys.argv[1])
seconds = time.perf_counter() - start
peak, returned = memory("VmHWM"), sum(map(size, result))
print(json.dumps({"seconds": seconds, "extra": max(0, peak - before - returned), "returned": returned}))
"""
_NEEDS = {"napkinXC": "napkinxc", "scikit-learn": "sklearn"}


def run(repeats: int = 3, quick: bool = False) -> list[dict]:
    """Rows: job, who, seconds (the least of ``repeats``), MB/s, ratio (to xcrepro warm), extra_memory_ratio.

    "warm": kernels loaded, the file in the page cache, first read of the process. "cold": an empty kernel cache, imports
    and compilation included. extra_memory_ratio: peak resident memory beyond what is returned, over what is returned;
    None where nothing is returned. A peer that is not installed is left out. quick: a hundredth of the rows.
    """
    n_rows = QUICK_ROWS if quick else ROWS
    path = cache_dir() / "benchmarks" / f"loader-{n_rows}.txt"
    if not path.exists():
        make_file(path, n_rows)
    megabytes = path.stat().st_size / 1e6
    measured = {}
    for who in ("reading the bytes once", *_READERS):
        if who in _NEEDS and find_spec(_NEEDS[who]) is None:
            continue
        with tempfile.TemporaryDirectory() as empty:
            cold = {"NUMBA_CACHE_DIR": empty} if who == "xcrepro cold" else {}
            runs = [new_process(_READERS[who] + _MEASURE, path, **cold) for _ in range(1 if cold else repeats)]
        measured[who] = min(runs, key=lambda one: one["seconds"])
    ours = measured["xcrepro warm"]["seconds"]
    return [
        {
            "job": f"read {megabytes:.0f} MB XC text",
            "who": who,
            "seconds": one["seconds"],
            "MB/s": megabytes / one["seconds"],
            "ratio": one["seconds"] / ours,
            "extra_memory_ratio": one["extra"] / one["returned"] if one["returned"] else None,
        }
        for who, one in ((who, measured[who]) for who in _READERS if who in measured)
    ]
