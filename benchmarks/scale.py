"""Beyond one machine, on one: what Dask costs, what a worker holds, how time grows, what streaming takes.

The blocks of most parts are made on the fly, from the rows' numbers alone, so that any cutting gives the same rows: five
relevant labels and five predictions a row, log-uniform ranks over the labels, about half of the predictions relevant.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numba import njit
from scipy import sparse

import xcrepro as xc
from benchmarks.metrics import thread_count

ROWS, PLACES, LABELS = 100_000, 5, 3_000_000


# ---------------------------------------------------------------------------------------------- rows on the fly


@njit(nogil=True, cache=True)
def _mix(x):
    """A number from a number: SplitMix64."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)) & np.uint64(0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(nogil=True, cache=True)
def _rows(first, n, places, n_labels, truth, ids, scores):
    """Fill truth (rising) and ids (n, places), distinct in a row, and falling scores."""
    log = np.log(float(n_labels))
    for i in range(n):
        draw = np.uint64(0)
        for which in range(2):
            found = 0
            while found < places:
                draw += np.uint64(1)
                u = _mix(np.uint64(first + i) * np.uint64(1000) + draw) / 18446744073709551616.0
                if which == 1 and u < 0.5 and found < places:
                    label = truth[i, int(u * 2 * places)]
                else:
                    u = _mix(np.uint64(first + i) * np.uint64(1000) + draw + np.uint64(500)) / 18446744073709551616.0
                    label = (int(np.exp(u * log)) - 1) * 1_000_003 % n_labels  # the frequent labels stand anywhere
                row = truth[i] if which == 0 else ids[i]
                new = True
                for j in range(found):
                    if row[j] == label:
                        new = False
                if new:
                    row[found] = label
                    found += 1
            if which == 0:
                truth[i].sort()
        for j in range(places):
            scores[i, j] = 1.0 / (j + 1.0 + (first + i) % 7)


def made(first: int, n: int, n_labels: int):
    """A block: truth, predictions, the number of its first row."""
    truth, ids = np.empty((n, PLACES), np.int32), np.empty((n, PLACES), np.int32)
    scores = np.empty((n, PLACES), np.float32)
    _rows(first, n, PLACES, n_labels, truth, ids, scores)
    ones = np.ones(truth.size, np.float32)
    Y = sparse.csr_matrix((ones, truth.ravel(), PLACES * np.arange(n + 1)), (n, n_labels))
    return Y, xc.TopK(xc.TopK.from_ids(ids, n_labels=n_labels).ids, scores, n_labels), first


def blocks(count: int, n: int, n_labels: int) -> list:
    return [functools.partial(made, number * n, n, n_labels) for number in range(count)]


# ---------------------------------------------------------------------------------------------- what it costs


def _cpu() -> float:
    return time.process_time()


def measured(call, client=None) -> tuple[float, float, object]:
    """Wall and CPU seconds, of this process and a cluster's workers, and what came out."""

    def cpu() -> float:
        return _cpu() + (sum(client.run(_cpu).values()) if client is not None else 0.0)

    before, began = cpu(), time.perf_counter()
    found = call()
    wall = time.perf_counter() - began
    return wall, cpu() - before, found


def engines(count: int, n: int, n_labels: int, rounds: int) -> list[dict]:
    """Block files through one process, on one thread, and through two Dask workers, warm; medians of ratios, round by round."""
    from xcrepro.repro.engine import cluster

    job = f"{count} blocks of {n:,} rows x {n_labels:,} labels, files, all metrics by default"
    seconds: dict[str, list] = {}
    with tempfile.TemporaryDirectory() as folder, cluster.connected(workers=2) as client:
        paths = []
        for number in range(count):
            Y, top, first = made(number * n, n, n_labels)
            paths.append(xc.scale.write_block(Path(folder) / f"{number:04d}.npz", Y, top, first))
        calls = {
            "one process, one thread": ({}, None),
            "two Dask workers": ({"engine": "dask", "client": client}, client),
            "two Dask workers, a state kept a block": ({"engine": "dask", "client": client, "resume": "new"}, client),
            "one process, one thread, a state kept a block": ({"resume": "new"}, None),
        }
        wanted = None
        for number in range(rounds + 1):  # the first warms everything up
            for name, (about, on) in calls.items():
                if "resume" in about:
                    about = {**about, "resume": Path(folder) / f"states-{number}-{len(name)}"}
                with thread_count(1):
                    wall, cpu, found = measured(functools.partial(xc.scale.evaluate, paths, **about), on)
                wanted = found if wanted is None else wanted
                if not found.equals(wanted):
                    raise RuntimeError(f"{name} gives other bits")
                if number:
                    seconds.setdefault(name, []).append((wall, cpu))
        cold_wall = time.perf_counter()
        xc.scale.evaluate(paths[:2], engine="dask", workers=2)
        cold_wall = time.perf_counter() - cold_wall
    base = np.array(seconds["one process, one thread"])
    rows = []
    for name, each in seconds.items():
        each = np.array(each)
        ratio = np.median(each / base, axis=0)
        wall, cpu = np.median(each, axis=0)
        about = {"wall s": wall, "CPU s": cpu, "wall ratio": ratio[0], "CPU ratio": ratio[1]}
        rows.append({"job": job, "who": name, **about, "note": "the same bits"})
    note = "two blocks, with starting the scheduler and two workers"
    return [*rows, {"job": job, "who": "a cluster of its own", "wall s": cold_wall, "note": note}]


def memory(counts: list[int], n: int, n_labels: int) -> list[dict]:
    """The largest memory that a worker of a new cluster has held."""
    from xcrepro.repro.engine import cluster

    rows = []
    for count in counts:
        with cluster.connected(workers=2) as client:
            xc.scale.evaluate(blocks(count, n, n_labels), engine="dask", client=client)
            peak = max(client.run(_peak).values())
        job = f"memory of a Dask worker, blocks of {n:,} rows x {n_labels:,} labels, made on the fly"
        before = rows[0]["peak MB"] if rows else peak
        rows.append({"job": job, "who": f"{count} blocks", "peak MB": peak, "to the first": peak / before})
    return rows


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def partial(n: int, n_labels: int) -> list[dict]:
    """What one block comes to, in memory, on the way to another worker, and on disk."""
    import pickle

    Y, top, first = made(0, n, n_labels)
    state = xc.State().update(Y, top, first)
    held = sum(array.nbytes for fold in state._folds.values() for array in fold.arrays().values())
    weights = 1 + np.random.default_rng(0).random(n_labels)
    weighted = xc.State(inverse_propensity=weights).update(Y, top, first)
    job = f"the state of a block of {n:,} rows x {n_labels:,} labels"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        for who, each in (("metrics by default", state), ("with label weights, which are kept apart", weighted)):
            each.save(path, weights=False, compress=False)
            sent = len(pickle.dumps(each)) if each is state else None
            rows.append(
                {
                    "job": job,
                    "who": who,
                    "MB on disk": path.stat().st_size / 1e6,
                    "MB sent": (sent or np.nan * 1e6) / 1e6,
                }
            )
    rows[0]["MB held"] = held / 1e6
    return rows


def growth(sizes: list[int], n: int, n_labels: int, picture: Path | None) -> list[dict]:
    """End to end, made on the fly, two Dask workers: time by stored scores, and a straight line through it."""
    from xcrepro.repro.engine import cluster

    job = f"end to end on two Dask workers, {n_labels:,} labels, blocks of {n:,} rows made on the fly, all metrics by default"
    rows = []
    with cluster.connected(workers=2) as client:
        xc.scale.evaluate(blocks(4, n, n_labels), engine="dask", client=client)
        for size in sizes:
            call = functools.partial(xc.scale.evaluate, blocks(size // n, n, n_labels), engine="dask", client=client)
            wall, cpu, _ = measured(call, client)
            scores = size * PLACES
            rows.append({"job": job, "who": f"{size:,} rows", "stored scores": scores, "wall s": wall, "CPU s": cpu})
            rows[-1] |= {"CPU us a score": 1e6 * cpu / scores}
    x, y = (np.array([row[name] for row in rows]) for name in ("stored scores", "CPU s"))
    slope, start = np.polyfit(x, y, 1)
    off = np.abs(start + slope * x - y).max() / y.max()
    note = (
        f"not run: the straight line through the CPU seconds above, from which they are {100 * off:.1f} % off at most"
    )
    rows.append({"job": job, "who": f"{10 * sizes[-1]:,} rows", "stored scores": 10 * x[-1]})
    rows[-1] |= {"wall s": 10 * rows[-2]["wall s"], "CPU s": start + slope * 10 * x[-1], "note": note}
    if picture is not None:
        _draw(rows[:-1], slope, start, picture)
    return rows


def _draw(rows: list[dict], slope: float, start: float, picture: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "xcrepro"
    import matplotlib.pyplot as plt

    x, cpu, wall = (np.array([row[name] for row in rows]) for name in ("stored scores", "CPU s", "wall s"))
    figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
    ax.plot(x, cpu, "o", label="CPU, both workers and client")
    ax.plot(x, wall, "s", label="wall")
    ax.plot([0, x[-1]], [start, start + slope * x[-1]], "-", lw=1, label="line through CPU")
    ax.set(xlabel="stored scores", ylabel="seconds", xlim=(0, None), ylim=(0, None))
    ax.legend(frameon=False)
    figure.savefig(picture, metadata={"Date": None})
    plt.close(figure)


# ---------------------------------------------------------------------------------------------- out of core

_STREAM = """
import json, resource, sys, time
import xcrepro as xc
from xcrepro.core.data.stream import paired
truth, scores, rows, cap, small_truth, small_scores = sys.argv[1:]
def go(truth, scores):
    state, row = xc.State(metrics=["P", "nDCG", "macro-F1", "coverage"]), 0
    for Y, part in paired(xc.data.blocks(truth, int(rows)), xc.data.blocks(scores, int(rows)), (truth, scores)):
        state.update(Y, xc.TopK.from_scores(part, 5), row)
        row += Y.shape[0]
    return state
go(small_truth, small_scores)
resource.setrlimit(resource.RLIMIT_AS, (int(cap), int(cap)))
began, cpu = time.perf_counter(), time.process_time()
state = go(truth, scores)
wall, cpu = time.perf_counter() - began, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(json.dumps({"rows": state.n_rows, "wall": wall, "cpu": cpu, "peak": peak, "P@5": state.compute()["value"][2]}))
"""


def streaming(size: float, cap: float, n: int, n_labels: int) -> list[dict]:
    """A text of scores larger than the memory that the process may have; it repeats the same rows, to be written soon."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rng = np.random.default_rng(0)
        Y, _, _ = made(0, n, n_labels)
        places = np.sort(rng.integers(0, n_labels // 100, (n, 100)), axis=1) * 100 + np.arange(100)
        values = rng.random(places.size, np.float32).round(4)
        scores = sparse.csr_matrix((values, places.ravel().astype(np.int32), 100 * np.arange(n + 1)), (n, n_labels))
        names = {}
        for name, matrix in (("truth", Y), ("scores", scores)):
            xc.data.write.write_sparse(folder / f"{name}-once.txt", matrix)
            names[name] = folder / f"{name}.txt"
        _, _, body = (folder / "scores-once.txt").read_bytes().partition(b"\n")
        _, _, truth_body = (folder / "truth-once.txt").read_bytes().partition(b"\n")
        times = max(2, round(size / len(body)))
        for path, text in ((names["scores"], body), (names["truth"], truth_body)):
            with open(path, "wb") as file:
                file.write(b"%d %d\n" % (n * times, n_labels))
                for _ in range(times):
                    file.write(text)
        began = time.process_time()
        xc.data.read_sparse(folder / "scores-once.txt", threads=1)
        whole = time.process_time() - began
        began = time.process_time()
        for _ in xc.data.blocks(folder / "scores-once.txt", 10_000, threads=1):
            pass
        streamed = time.process_time() - began
        given = [str(names["truth"]), str(names["scores"]), "10000", str(int(cap))]
        given += [str(folder / "truth-once.txt"), str(folder / "scores-once.txt")]
        run = subprocess.run([sys.executable, "-c", _STREAM, *given], capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(run.stderr[-2000:])
        found = json.loads(run.stdout)
        bytes_ = names["scores"].stat().st_size
    job = f"{bytes_ / 1e9:.2g} GB of scores as text, evaluated in a process that may have {cap / 1e9:.2g} GB of address space"
    about = {"wall s": found["wall"], "CPU s": found["cpu"], "MB/s of CPU": bytes_ / 1e6 / found["cpu"]}
    row = {"job": job, "who": "xc.data.blocks, ranked, P, nDCG, macro-F1, coverage", **about, "peak MB": found["peak"]}
    ratio = {
        "job": job,
        "who": "CPU of xc.data.blocks to that of read_sparse, one thread",
        "CPU ratio": streamed / whole,
    }
    return [row | {"note": f"{found['rows']:,} rows of 100 scores"}, ratio]


def run(quick: bool = False) -> list[dict]:
    """The sizes of the issue; ``quick`` shrinks them. ``$XCREPRO_SCALE_PARTS``, such as ``engines,memory``, runs some alone."""
    parts = {
        "engines": lambda: engines(*((3, 500, 2_000, 1) if quick else (16, ROWS, LABELS, 3))),
        "memory": lambda: memory(*(([2, 4], 500, 2_000) if quick else ([8, 16, 32, 64], ROWS, LABELS))),
        "partial": lambda: partial(*((500, 2_000) if quick else (ROWS, LABELS))),
        "growth": lambda: growth(
            *(([1_000, 2_000], 500, 2_000, None) if quick else ([10**6, 2 * 10**6, 5 * 10**6, 10**7], ROWS, LABELS)),
            *([] if quick else [Path(__file__).with_name("scale.svg")]),
        ),
        "streaming": lambda: streaming(*((2e6, 4e9, 500, 2_000) if quick else (10e9, 2e9, 100_000, 3_000_000))),
    }
    wanted = os.environ.get("XCREPRO_SCALE_PARTS", ",".join(parts)).split(",")
    return [row for name, part in parts.items() if name in wanted for row in part()]
