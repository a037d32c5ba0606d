"""P, nDCG, PSP and PSnDCG at 1, 3 and 5: xcrepro beside its peers.

No number is reported for an implementation whose values differ from xcrepro's by more than ``TOLERANCE``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.core.metrics import ranking

ROOT = Path(__file__).resolve().parent.parent
KS = (1, 3, 5)
METRICS = ("P", "nDCG", "PSP", "PSnDCG")
TOLERANCE = 1e-6
SLOW = 5.0  # seconds; what takes longer is run once


@dataclass(frozen=True)
class Case:
    """One input: scores (n, L) with the same number of unsorted, distinct scores in each row, truth (n, L), weights (L,)."""

    job: str
    scores: csr_matrix
    truth: csr_matrix
    weights: np.ndarray
    dense: bool  # small enough for the peers that take dense scores or dictionaries


# ---------------------------------------------------------------------------------------------- input


def make_case(n: int, n_labels: int, per_row: int, *, dense: bool, n_true: int = 5, seed: int = 0) -> Case:
    """Scores of ``per_row`` random labels a row, in random order and without ties. Each of a row's ``n_true`` relevant
    labels is, with probability one half, one of those, and then scores above 0.5; the other scores are below."""
    rng = np.random.default_rng(seed)

    def draw(n: int) -> np.ndarray:
        return rng.integers(n_labels, size=(n, per_row), dtype=np.int32)

    ids = _distinct(draw, n)
    places = _distinct(lambda n: rng.integers(per_row, size=(n, n_true)), n)
    is_hit = rng.random((n, n_true)) < 0.5
    relevant = np.where(is_hit, np.take_along_axis(ids, places, 1), rng.integers(n_labels, size=(n, n_true)))
    while (again := _repeats(relevant)).size:
        # Only what was drawn at random may be drawn anew: the hits are distinct already.
        other = rng.integers(n_labels, size=(again.size, n_true))
        relevant[again] = np.where(is_hit[again], relevant[again], other)
    scores = _distinct(lambda n: rng.random((n, per_row), np.float32) / 2, n)
    rows, columns = np.nonzero(is_hit)
    scores[rows, places[rows, columns]] += np.float32(0.5)
    if _repeats(scores).size:
        raise RuntimeError(f"tied scores at seed {seed}: peers break ties differently, take another seed")
    counts = np.maximum(1, n / np.arange(2, n_labels + 2)).astype(np.int64)
    return Case(
        f"{', '.join(METRICS)} at 1, 3, 5: {n:,} x {n_labels:,}, {per_row} scores a row",
        _csr(scores, ids, n_labels),
        _csr(np.ones((n, n_true), np.float32), np.sort(relevant, axis=1).astype(np.int32), n_labels),
        xc.propensity.inverse(rng.permutation(counts), max(n, 3)),
        dense,
    )


def _csr(values: np.ndarray, ids: np.ndarray, n_labels: int) -> csr_matrix:
    indptr = np.arange(0, ids.size + 1, ids.shape[1], dtype=np.int32)
    return csr_matrix((values.ravel(), ids.ravel(), indptr), shape=(len(ids), n_labels))


def _distinct(draw: Callable[[int], np.ndarray], n: int) -> np.ndarray:
    """``draw(n)``, with the rows that repeat a value drawn again until none does."""
    found = draw(n)
    while (again := _repeats(found)).size:
        found[again] = draw(again.size)
    return found


def _repeats(values: np.ndarray) -> np.ndarray:
    ordered = np.sort(values, axis=1)
    return np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))


# ---------------------------------------------------------------------------------------------- timing


def row(job: str, who: str, seconds: float, reference: float, note: str = "") -> dict:
    """``reference``: what xcrepro takes, warm, in the same run."""
    return {"job": job, "who": who, "seconds": seconds, "ratio": seconds / reference, "note": note}


def without_number(job: str, who: str, note: str) -> dict:
    return {"job": job, "who": who, "seconds": float("nan"), "ratio": float("nan"), "note": note}


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def clock(call: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def best(call: Callable[[], object], repeats: int) -> tuple[float, object]:
    """The shortest of ``repeats`` runs, one alone where that is slow; and what the first returned."""
    seconds, result = clock(call)
    for _ in range(repeats - 1 if seconds <= SLOW else 0):
        seconds = min(seconds, clock(call)[0])
    return seconds, result


def race(calls: dict[str, Callable[[], object]], rounds: int, at_least: float) -> dict[str, float]:
    """The shortest run of each, taken in turns so that a busy moment of the machine meets all of them alike.

    Every call runs once before, so that all are warm; then ``rounds`` times, and on until ``at_least`` seconds are over.
    """
    for call in calls.values():
        call()
    seconds = dict.fromkeys(calls, float("inf"))
    start = time.perf_counter()
    while rounds > 0 or time.perf_counter() - start < at_least:
        rounds -= 1
        for who, call in calls.items():
            seconds[who] = min(seconds[who], clock(call)[0])
    return seconds


@contextlib.contextmanager
def thread_count(n: int) -> Iterator[None]:
    """xcrepro on ``n`` threads."""
    before = os.environ.get("XCREPRO_THREADS")
    os.environ["XCREPRO_THREADS"] = str(n)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XCREPRO_THREADS"]
        else:
            os.environ["XCREPRO_THREADS"] = before


def new_process(code: str, *arguments: str, **environment: str) -> str:
    """Run Python code in a process of its own, in the project's folder; return what it printed last."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"a benchmark's process failed with status {done.returncode}:\n{done.stderr}")
    return done.stdout.strip().rpartition("\n")[2]


# ---------------------------------------------------------------------------------------------- what is compared


def xcrepro_metrics(case: Case) -> dict[str, np.ndarray]:
    top = xc.TopK.from_scores(case.scores, max(KS))
    return ranking.values(METRICS, case.truth, top, KS, case.weights)


def check(who: str, found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Refuse to time what computes something else."""
    for name, values in found.items():
        if not np.allclose(values, expected[name], rtol=0, atol=TOLERANCE):
            raise RuntimeError(f"{who} and xcrepro disagree on {name} at {KS}: {values} and {expected[name]}")


def check_threads(case: Case) -> str:
    """The same bits with 1 and 2 threads, or an error."""
    results = []
    for threads in (1, 2):
        with thread_count(threads):
            top = xc.TopK.from_scores(case.scores, max(KS))
            found = xcrepro_metrics(case)
        results.append([top.ids.tobytes(), top.scores.tobytes(), *(values.tobytes() for values in found.values())])
    if results[0] != results[1]:
        raise RuntimeError("xcrepro's results with 1 and 2 threads differ")
    return "the same bits with 1 and 2 threads"


# In a process of its own. The extra memory is the peak during the call over what was held before it: the input, and the
# imports. It counts the kernels that the first call loads, too.
_FIRST_CALL = """
import json, sys, time
start = time.perf_counter()
import numpy as np
from scipy.sparse import csr_matrix
import xcrepro as xc
from xcrepro.core.metrics import ranking
imports = time.perf_counter() - start

folder, n, n_labels, metrics, ks = sys.argv[1], *json.loads(sys.argv[2])
def matrix(name):
    parts = (np.load(f"{folder}/{name}_{part}.npy") for part in ("data", "indices", "indptr"))
    return csr_matrix(tuple(parts), shape=(n, n_labels))
def memory(which):
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(which))
    except OSError:
        return float("nan")
scores, truth, weights = matrix("scores"), matrix("truth"), np.load(f"{folder}/weights.npy")

held = memory("VmRSS")
start = time.perf_counter()
found = ranking.values(metrics, truth, xc.TopK.from_scores(scores, max(ks)), ks, weights)
call = time.perf_counter() - start
extra = memory("VmHWM") - held
start = time.perf_counter()
ranking.values(metrics, truth, xc.TopK.from_scores(scores, max(ks)), ks, weights)
second = time.perf_counter() - start
found = {name: values.tolist() for name, values in found.items()}
print(json.dumps({"imports": imports, "call": call, "second": second, "extra": extra, "found": found}))
"""


def first_call(case: Case, expected: dict[str, np.ndarray], repeats: int) -> tuple[float, str]:
    """Seconds of the imports and the first call in a new process that finds its kernels in the cache; and a note."""
    with tempfile.TemporaryDirectory() as folder:
        for name, matrix in (("scores", case.scores), ("truth", case.truth)):
            for part in ("data", "indices", "indptr"):
                np.save(f"{folder}/{name}_{part}.npy", getattr(matrix, part))
        np.save(f"{folder}/weights.npy", case.weights)
        shape = json.dumps([*case.scores.shape, METRICS, KS])
        runs = [json.loads(new_process(_FIRST_CALL, folder, shape, XCREPRO_THREADS="2")) for _ in range(repeats)]
    for one in runs:
        check("xcrepro in a new process", one["found"], expected)
    quickest = min(runs, key=lambda one: one["imports"] + one["call"])
    extra = max(one["extra"] for one in runs) / 1e6
    note = f"imports {quickest['imports']:.2f} s, call {quickest['call']:.3f} s, then {quickest['second']:.3f} s"
    if extra == extra:
        note += f"; extra memory at peak {extra:.0f} MB"
    return quickest["imports"] + quickest["call"], note


# ---------------------------------------------------------------------------------------------- peers


def napkinxc(case: Case, expected: dict, reference: float, repeats: int) -> list[dict]:
    if not installed("napkinxc"):
        return [without_number(case.job, "napkinXC", "not installed")]
    from napkinxc import metrics as peer

    places = np.array(KS) - 1

    def measures(truth, predictions) -> dict[str, np.ndarray]:
        k = max(KS)
        return {
            "P": peer.precision_at_k(truth, predictions, k)[places],
            "nDCG": peer.ndcg_at_k(truth, predictions, k)[places],
            "PSP": peer.psprecision_at_k(truth, predictions, case.weights, k)[places],
            "PSnDCG": peer.psndcg_at_k(truth, predictions, case.weights, k)[places],
        }

    rows = []
    n, per_row = case.scores.shape[0], case.scores.indptr[1]
    truth = case.truth.indices.reshape(n, -1).tolist()

    def lists(length: int) -> list[list[tuple[int, float]]]:
        scores, ids = case.scores.data.reshape(n, -1), case.scores.indices.reshape(n, -1)
        order = np.argsort(-scores, axis=1)[:, :length]
        ids, scores = np.take_along_axis(ids, order, 1).tolist(), np.take_along_axis(scores, order, 1).tolist()
        return [list(zip(*pair, strict=True)) for pair in zip(ids, scores, strict=True)]

    for length in (max(KS), per_row):
        who = f"napkinXC, lists of the {length} best pairs"
        converting, predictions = best(lambda length=length: lists(length), 1)
        seconds, found = best(lambda predictions=predictions: measures(truth, predictions), repeats)
        check(who, found, expected)
        rows.append(row(case.job, who, seconds, reference, "ranked already"))
        rows.append(row(case.job, f"{who}: making them", converting, reference, "NumPy's argsort, tolist and zip"))
        del predictions
    seconds, found = best(lambda: measures(case.truth.copy(), case.scores.copy()), repeats)
    check("napkinXC on CSR", found, expected)
    rows.append(row(case.job, "napkinXC, csr_matrix", seconds, reference, "takes it; one slice of it a row and metric"))
    return rows


def xcolumns(case: Case, expected: dict, reference: float, repeats: int) -> list[dict]:
    if not installed("xcolumns"):
        return [without_number(case.job, "xCOLUMNs", "not installed (pip install -e '.[bench]')")]
    from xcolumns.metrics import precision_at_k
    from xcolumns.weighted_prediction import predict_top_k

    scores, truth = case.scores.copy(), case.truth.copy()

    def precision(ks) -> np.ndarray:
        return np.array([precision_at_k(truth, predict_top_k(scores, k), k=k) for k in ks])

    check("xCOLUMNs", {"P": precision(KS)}, expected)
    last = KS[-1]
    rows = []
    for ks, who in (((last,), f"xCOLUMNs, P@{last} alone"), (KS, "xCOLUMNs, P alone, at 1, 3, 5")):
        seconds, _ = best(lambda ks=ks: precision(ks), repeats)
        rows.append(row(case.job, who, seconds, reference, "warm; predict_top_k, then precision_at_k, once for each k"))
    return rows


def scikit_learn(case: Case, expected: dict, reference: float, repeats: int) -> list[dict]:
    who = "scikit-learn, nDCG alone"
    if not installed("sklearn"):
        return [without_number(case.job, who, "not installed")]
    if not case.dense:
        size = np.prod(case.scores.shape, dtype=np.int64) * 4 / 1e9
        return [
            without_number(case.job, who, f"ndcg_score takes dense scores only, here {size:,.3g} GB: small size only")
        ]
    from sklearn.metrics import ndcg_score

    converting, (truth, scores) = best(lambda: (case.truth.toarray(), case.scores.toarray()), repeats)

    def measure() -> np.ndarray:
        return np.array([ndcg_score(truth, scores, k=k, ignore_ties=True) for k in KS])

    seconds, found = best(measure, repeats)
    check(who, {"nDCG": found}, expected)
    return [
        row(case.job, who, seconds, reference, "dense; ignore_ties=True, which is its quicker way"),
        row(case.job, f"{who}: making the dense arrays", converting, reference),
    ]


def ranx(case: Case, expected: dict, reference: float, repeats: int) -> list[dict]:
    who = "ranx, P and nDCG alone"
    if not installed("ranx"):
        return [without_number(case.job, who, "not installed (pip install -e '.[bench]')")]
    if not case.dense:
        return [without_number(case.job, who, "takes dictionaries of strings: small size only")]
    from ranx import Qrels, Run, evaluate

    def dictionaries(matrix: csr_matrix, kind: Callable) -> dict[str, dict[str, float]]:
        n = matrix.shape[0]
        ids, values = matrix.indices.reshape(n, -1).tolist(), matrix.data.reshape(n, -1).tolist()
        return {
            str(i): {str(label): kind(value) for label, value in zip(*pair, strict=True)}
            for i, pair in enumerate(zip(ids, values, strict=True))
        }

    def convert():
        return Qrels(dictionaries(case.truth, int)), Run(dictionaries(case.scores, float))

    names = [f"{name}@{k}" for name in ("precision", "ndcg") for k in KS]
    first_conversion, (qrels, run) = clock(convert)
    with warnings.catch_warnings(action="ignore"):  # numba's, about a cast in ranx
        first, found = clock(lambda: evaluate(qrels, run, names))
    values = np.array([found[name] for name in names]).reshape(2, -1)
    check(who, {"P": values[0], "nDCG": values[1]}, expected)
    seconds, _ = best(lambda: evaluate(qrels, run, names), repeats)
    converting, _ = best(convert, repeats)
    return [
        row(case.job, who, seconds, reference, "warm; on its own Qrels and Run"),
        row(case.job, f"{who}: first call", first, reference, "compiles, or reads its cache"),
        row(
            case.job, f"{who}: making Qrels and Run", converting, reference, f"the first time {first_conversion:.2f} s"
        ),
    ]


PEERS = (napkinxc, xcolumns, scikit_learn, ranx)


# ---------------------------------------------------------------------------------------------- the jobs


def compare(case: Case, repeats: int = 3) -> list[dict]:
    """All rows of one case; the first, xcrepro warm, is the reference."""
    expected = xcrepro_metrics(case)
    same = check_threads(case)
    # Where rows are few xcrepro starts no thread, whatever it is allowed.
    variants = {1: ""} if case.dense else {2: ", 2 threads", 1: ", 1 thread"}

    def ours(threads: int) -> None:
        with thread_count(threads):
            xcrepro_metrics(case)

    calls = {f"xcrepro, warm{suffix}": lambda threads=threads: ours(threads) for threads, suffix in variants.items()}
    seconds = race(calls, rounds=2 * repeats + 1, at_least=0 if repeats == 1 else repeats)
    reference = next(iter(seconds.values()))
    rows = [row(case.job, who, seconds[who], reference, same) for who in calls]
    first, note = first_call(case, expected, repeats)
    rows.append(row(case.job, "xcrepro, imports and first call of a new process", first, reference, note))
    for peer in PEERS:
        rows += peer(case, expected, reference, repeats)
    return rows


def run(quick: bool = False) -> list[dict]:
    """Both sizes, Amazon-670K's test set and EURLex-4K's; ``quick`` shrinks them to see that everything runs."""
    large, small = ((400, 900, 20), (200, 300, 20)) if quick else ((153_025, 670_091, 100), (3_809, 3_993, 100))
    rows = []
    # One after the other, so that the large one is freed before the peers meet the small one.
    for size, dense in ((large, False), (small, True)):
        rows += compare(make_case(*size, dense=dense), repeats=1 if quick else 3)
    return rows
