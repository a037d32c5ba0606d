"""Label trees: xcrepro's PLT beside napkinXC's and omikuji's, the same settings, two threads each, one tree and three.

TIB, Bibtex where the folder of local data is there (``$XCREPRO_TEST_DATA``, else ``shared/data`` beside the project), and
with squared hinge and omikuji's own settings two twins: as many points as 40,000 library records, and a tenth of
Amazon-670K's. Programs grow different trees from different random numbers, so their precision differs in the first decimal
or two. omikuji is no dependency: ``pip install omikuji``.

``CPU`` is processor time, all threads together: on a machine that does something else as well, compare that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import xcrepro as xc
from benchmarks import apart
from benchmarks.metrics import ROOT, SLOW

THREADS = 2
HINGE = "loss='squared_hinge', C=1.0, max_iter=20"
"""Of our PLT: what omikuji minimises."""
# Name of a twin, its scale, and its scale where only to see that it runs.
LARGE = (("lf-amazontitles-131k", 0.136, 0.002), ("amazon-670k", 0.1, 0.001))
JUDGED = 2000  # test points


def measure(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, tuple[float, float, object]]:
    """Each call's shortest time, least processor time, and last result; in turns, so that a busy moment meets them all.

    What takes long is run once.
    """
    found: dict[str, tuple[float, float, object]] = {}
    for _ in range(repeats):
        for who, call in calls.items():
            if who in found and found[who][0] > SLOW:
                continue
            start, cpu = time.perf_counter(), time.process_time()
            result = call()
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            before = found.get(who, (np.inf, np.inf, None))
            found[who] = min(seconds, before[0]), min(cpu, before[1]), result
    return found


def small(quick: bool) -> Iterator[tuple[str, object, object]]:
    """(name, train, test)."""
    base = Path(os.environ.get("XCREPRO_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not quick and (base / "bibtex").exists():
        found = xc.load("bibtex", path=base / "bibtex")
        yield "Bibtex", found.train, found.test
    found = xc.load("tib", points=500 if quick else 17_740)
    yield "TIB", found.train, found.test


def beside(trees: int) -> dict[str, tuple[str, str]]:
    """The logistic trees of both, and what weights and coverage cost in prediction."""
    ours = f"PLT(trees={trees})"
    ways = {"inverse propensities as weights": "model.predict(queries, 5, weights=weights)"}
    ways |= {"greedy coverage": "model.predict_coverage(queries)"}
    runs = {"xcrepro": ("xcrepro", ours), "napkinXC": ("napkinXC", f"PLT: ensemble={trees if trees > 1 else 0}")}
    return runs | {f"xcrepro, {name}": ("xcrepro", f"{ours} -> {way}") for name, way in ways.items()}


def hinge(trees: int) -> dict[str, tuple[str, str]]:
    """Trees of squared hinge, omikuji's with its own beam and with a wider one."""
    peers = {f"omikuji, beam {beam}": ("omikuji", f"n_trees={trees} -> {beam}") for beam in (10, 30)}
    return {"xcrepro": ("xcrepro", f"PLT(trees={trees}, {HINGE})"), **peers}


def run(quick: bool = False) -> list[dict]:
    """One tree and three on each case, and one beside omikuji; ``quick`` takes tiny twins, to see that everything runs."""
    rows, cases = [], [(*case, beside(trees), "logistic") for case in small(quick) for trees in (1, 3)]
    for name, scale, tiny in LARGE:
        ds = xc.twin(name, scale=tiny if quick else scale, seed=0)
        cases.append((f"twin of {name}", ds.train, ds.test.rows(slice(JUDGED)), hinge(1), "squared hinge"))
    for name, train, test, runs, loss in cases:
        train = apart.with_features(train)
        shape = f"{train.X.shape[0]:,} points x {train.Y.shape[1]:,} labels"
        rows += apart.measured(f"PLT, {name}, {shape}, {loss}", train, test, runs, THREADS)
    return rows


if __name__ == "__main__":
    from benchmarks.__main__ import tables

    print("\n\n".join(tables(run())))
