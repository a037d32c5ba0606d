"""How fast XC text is read: xcrepro beside napkinXC and scikit-learn, on one 290 MB file.

Each reader runs in a process of its own, so that its memory is its
own; the file is made once (seeded, 240,000 rows, 75 features and 5 labels a row, 6 significant digits) and kept in the
cache folder. The rows "reading the bytes once" is the machine's own limit: the same file through a buffer, unparsed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS, QUICK_ROWS = 240_000, 2_400
N_FEATURES, N_LABELS, ROW_FEATURES, ROW_LABELS = 135_909, 670_091, 75, 5


def make_file(path: Path, n_rows: int) -> None:
    """Write the file, seeded."""
    import numpy as np
    from scipy.sparse import csr_matrix

    from xcrepro.core.data.write import write_xc

    rng = np.random.default_rng(0)

    def ids(width: int, size: int):
        # Sorted numbers plus 0, 1, 2, ...: sorted and different.
        out = rng.integers(0, width - size + 1, (n_rows, size), dtype=np.int32)
        out.sort(axis=1)
        return (out + np.arange(size, dtype=np.int32)).ravel()

    values = rng.lognormal(-2.5, 1.0, n_rows * ROW_FEATURES)
    scale = 10.0 ** (5 - np.floor(np.log10(values)))
    values = (np.round(values * scale) / scale).astype(np.float32)
    X = csr_matrix((values, ids(N_FEATURES, ROW_FEATURES), np.arange(n_rows + 1) * ROW_FEATURES), (n_rows, N_FEATURES))
    Y = csr_matrix(
        (np.ones(n_rows * ROW_LABELS, np.float32), ids(N_LABELS, ROW_LABELS), np.arange(n_rows + 1) * ROW_LABELS),
        (n_rows, N_LABELS),
    )
    write_xc(path, X, Y)


# -- the readers: each returns a function of the path, and does its imports and its warming up before ----------------


def _xcrepro(threads: int | None):
    from xcrepro.core.data.read import read_xc

    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder, "tiny.txt")
        tiny.write_text("1 1 1\n0 0:1\n")
        read_xc(tiny)
    return lambda path: read_xc(path, threads=threads)


def _napkinxc():
    from napkinxc.datasets import load_libsvm_file

    return lambda path: load_libsvm_file(path, labels_format="csr_matrix")


def _sklearn():
    import numpy as np
    from sklearn.datasets import load_svmlight_file

    def read(path):
        # It has no notion of the header: skipped for it.
        with open(path, "rb") as file:
            file.readline()
            return load_svmlight_file(file, n_features=N_FEATURES, dtype=np.float32, multilabel=True, zero_based=True)

    return read


def _bytes_once():
    def read(path):
        buffer = bytearray(1 << 20)
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
        return ()

    return read


def _cold(path):
    from xcrepro.core.data.read import read_xc

    return read_xc(path)


READERS = {
    "xcrepro warm": lambda: _xcrepro(None),
    "xcrepro warm, one thread": lambda: _xcrepro(1),
    "xcrepro cold": lambda: _cold,
    "napkinXC": _napkinxc,
    "scikit-learn": _sklearn,
    "reading the bytes once": _bytes_once,
}


def _status(key: str) -> int:
    """A memory line of /proc/self/status in bytes; 0 where there is none (not Linux)."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), 0)


def _returned_bytes(result) -> int:
    """What the arrays of the result take; scikit-learn's label tuples are counted by their slots alone."""
    total = 0
    for part in result:
        if hasattr(part, "indptr"):
            total += part.data.nbytes + part.indices.nbytes + part.indptr.nbytes
        else:
            total += sum(sys.getsizeof(row) for row in part)
    return total


def _measure(who: str, path: str) -> dict:
    """Run in its own process: seconds of one first read, and its extra memory."""
    read = READERS[who]()
    # Start the high-water mark of resident memory anew.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    start = time.perf_counter()
    result = read(path)
    seconds = time.perf_counter() - start
    peak = _status("VmHWM")
    returned = _returned_bytes(result)
    return {"seconds": seconds, "extra": max(0, peak - before - returned), "returned": returned}


def _run(who: str, path: Path, repeats: int, env: dict[str, str]) -> dict:
    command = [sys.executable, "-m", "benchmarks.loader", who, os.fspath(path)]
    how = {"check": True, "capture_output": True, "text": True, "env": {**os.environ, **env}}
    found = [json.loads(subprocess.run(command, **how).stdout.splitlines()[-1]) for _ in range(repeats)]
    return min(found, key=lambda one: one["seconds"])


def run(repeats: int = 3, quick: bool = False) -> list[dict]:
    """Rows: job, who, seconds (the least of ``repeats``), MB/s, ratio (to xcrepro warm), extra_memory_ratio.

    "warm": kernels loaded, the file in the page cache, first read of the process. "cold": an empty kernel cache, imports
    and compilation included. extra_memory_ratio: peak resident memory beyond what is returned, over what is returned;
    None where nothing is returned. A peer that is not installed is left out. quick: a hundredth of the rows.
    """
    from importlib.util import find_spec

    from xcrepro.core.paths import cache_dir

    n_rows = QUICK_ROWS if quick else ROWS
    path = cache_dir() / "benchmarks" / f"loader-{n_rows}.txt"
    if not path.exists():
        make_file(path, n_rows)
    megabytes = path.stat().st_size / 1e6
    needs = {"napkinXC": "napkinxc", "scikit-learn": "sklearn"}
    measured = {}
    for who in ("reading the bytes once", *READERS):
        if who in needs and find_spec(needs[who]) is None:
            continue
        if who == "xcrepro cold":
            with tempfile.TemporaryDirectory() as cache:
                measured[who] = _run(who, path, 1, {"NUMBA_CACHE_DIR": cache})
        else:
            measured[who] = _run(who, path, repeats, {})
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
        for who, one in ((who, measured[who]) for who in READERS if who in measured)
    ]


if __name__ == "__main__":
    print(json.dumps(_measure(*sys.argv[1:])))
