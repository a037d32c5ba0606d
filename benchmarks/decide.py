"""Choosing 5 labels a row for coverage: xcrepro beside xCOLUMNs, with the coverage that each reaches.

The input is that of ``benchmarks.metrics``, its scores cubed: they then add up to about four relevant labels a row, and the
truth is drawn from them. How many labels a selection covers is worked out from the probabilities ("expected") and counted on
the drawn truth ("covered"), for all implementations by the same code.
"""

from __future__ import annotations

import contextlib
import io
import warnings

import numpy as np
from scipy.sparse import csr_matrix

import xcrepro as xc
from benchmarks import metrics
from benchmarks.metrics import best, installed, race, row, thread_count, without_number
from xcrepro.core import decide
from xcrepro.core.truth import as_truth

K = 5
PASSES = 5


def make_case(n: int, n_labels: int, per_row: int, seed: int = 0) -> tuple[csr_matrix, csr_matrix]:
    """(probabilities, truth), both (n, L); a row's labels rise, because xCOLUMNs asks for it."""
    scores = metrics.make_case(n, n_labels, per_row, dense=False, seed=seed).scores
    eta = csr_matrix((scores.data**3, scores.indices, scores.indptr), shape=scores.shape)
    eta.sort_indices()
    drawn = np.random.default_rng(seed).random(eta.nnz, np.float32) < eta.data
    truth = csr_matrix((drawn.astype(np.float32), eta.indices, eta.indptr), shape=eta.shape, copy=True)
    truth.eliminate_zeros()
    return eta, truth


def coverage(eta: csr_matrix, truth: csr_matrix, top: xc.TopK) -> dict[str, float]:
    """The number of labels a selection covers, as two columns of the table."""
    hits = as_truth(truth).hits(top.ids)
    return {
        "expected": float(decide.expected_coverage(eta, top, K)[0]) * eta.shape[1],
        "covered": float(np.unique(top.ids[hits]).size),
    }


def check_greedy(eta: csr_matrix, top: xc.TopK, rows: int = 2000) -> None:
    """Refuse to time what is not algorithm 1: its first rows in NumPy, which sorts all gains of a row."""
    f = np.ones(eta.shape[1])
    for i in range(min(rows, eta.shape[0])):
        labels, p = (part[eta.indptr[i] : eta.indptr[i + 1]] for part in (eta.indices, eta.data))
        chosen = np.lexsort((labels, -f[labels] * p))[:K]
        if labels[chosen].tolist() != top.ids[i].tolist():
            raise RuntimeError(f"greedy_coverage chose {top.ids[i]} in row {i}, algorithm 1 {labels[chosen]}")
        f[labels[chosen]] *= 1.0 - p[chosen]


def xcrepro(job: str, eta: csr_matrix, truth: csr_matrix, repeats: int) -> list[dict]:
    """Decisions on two threads and one; the first row, greedy as in the paper, is the reference of all."""
    calls = {
        "xcrepro, greedy": lambda: decide.greedy_coverage(eta, K),
        f"xcrepro, greedy, {PASSES} passes": lambda: decide.greedy_coverage(eta, K, passes=PASSES),
        "xcrepro, greedy, beta 0.25": lambda: decide.greedy_coverage(eta, K, 0.25),
        "xcrepro, top k": lambda: decide.top_k(eta, K),
        "xcrepro, bounded random": lambda: decide.bounded_random(eta, K),
        "xcrepro, maximise coverage": lambda: decide.maximise(eta, K, "coverage"),
        "xcrepro, maximise macro-F1": lambda: decide.maximise(eta, K, "macro-F1"),
        "xcrepro, maximise macro-F1, one pass": lambda: decide.maximise(eta, K, "macro-F1", passes=1),
    }
    reached = {}
    for who, call in calls.items():
        found = []
        for threads in (1, 2):
            with thread_count(threads):
                found.append(call())
        if found[0].ids.tobytes() != found[1].ids.tobytes():
            raise RuntimeError(f"{who}: 1 and 2 threads choose differently")
        reached[who] = coverage(eta, truth, found[0])
    check_greedy(eta, decide.greedy_coverage(eta, K))
    rows = []
    reference = float("nan")
    for threads in (2, 1):
        with thread_count(threads):
            seconds = race(calls, rounds=repeats, at_least=0)
        reference = seconds["xcrepro, greedy"] if threads == 2 else reference
        for who in calls:
            suffix = f", {threads} thread{'s' * (threads > 1)}"
            rows.append(_with(row(job, who + suffix, seconds[who], reference, "warm"), reached[who]))
    return rows


def xcolumns(job: str, eta: csr_matrix, truth: csr_matrix, reference: float, repeats: int) -> list[dict]:
    names = "xCOLUMNs, greedy", "xCOLUMNs, block coordinate"
    if not installed("xcolumns"):
        return [without_number(job, name, "not installed (pip install -e '.[bench]')") for name in names]
    from xcolumns.block_coordinate import predict_optimizing_coverage_using_bc as predict

    rows = []
    for who, options in zip(names, ({"init_y_pred": "greedy", "max_iter": 1, "shuffle_order": False}, {}), strict=True):

        def call(eta: csr_matrix = eta, options: dict = options):
            with warnings.catch_warnings(action="ignore"), contextlib.redirect_stderr(io.StringIO()):
                return predict(eta, K, seed=0, return_meta=True, **options)

        try:
            call(eta[:100])  # compiles, or reads its cache
        except Exception as error:  # whatever stops it is what the table has to say
            rows.append(without_number(job, who, f"stops with {type(error).__name__}: {error}"))
            continue
        seconds, (found, meta) = best(call, repeats)
        top = xc.TopK.from_ids(found.indices.reshape(-1, K), n_labels=eta.shape[1])
        note = f"its defaults, {meta['iters']} passes" if not options else "one pass"
        rows.append(_with(row(job, who, seconds, reference, note), coverage(eta, truth, top)))
    return rows


def _with(one: dict, reached: dict) -> dict:
    """The row with two more columns before its note."""
    note = one.pop("note")
    return {**one, **reached, "note": note}


def compare(n: int, n_labels: int, per_row: int, repeats: int = 5) -> list[dict]:
    job = f"{K} labels a row for coverage: {n:,} x {n_labels:,}, {per_row} candidates a row"
    eta, truth = make_case(n, n_labels, per_row)
    rows = xcrepro(job, eta, truth, repeats)
    return rows + xcolumns(job, eta, truth, rows[0]["seconds"], min(repeats, 2))


def run(quick: bool = False) -> list[dict]:
    """Amazon-670K's test set, and a seventh of it; ``quick`` shrinks them to see that everything runs."""
    sizes = ((300, 900, 20),) if quick else ((153_025, 670_091, 100), (21_861, 95_727, 100))
    return [found for size in sizes for found in compare(*size, repeats=1 if quick else 5)]
