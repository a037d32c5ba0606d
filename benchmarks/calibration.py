"""ECE, Brier score and NLL of many (score, hit) pairs: xcrepro in one pass beside scikit-learn's three functions.

scikit-learn has no ECE: its ``calibration_curve`` gives the bins' means, to which the counts are missing. The two sizes
are the top 5 of 153,025 points (Amazon-670K's test set) and the top 100 of them. Scores are float32, as a TopK holds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.metrics import installed, race, row, thread_count, without_number
from xcrepro.core.accumulators.pairs import BINS, PairSums
from xcrepro.core.metrics import calibration

SIZES, QUICK_SIZES = (765_125, 15_302_500), (3_000, 9_000)
TOLERANCE = 1e-6
# scikit-learn clips a float32 probability to [eps, 1 - eps] with float32's eps
CAP = -math.log(np.finfo(np.float32).eps)


def make_pairs(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores as a long-tailed problem has them, many small ones, kept off 0 and 1; the hits overconfident at the top."""
    rng = np.random.default_rng(seed)
    scores = np.clip(rng.random(n, np.float32) ** 2, np.float32(1e-5), np.float32(1 - 1e-5))
    return scores, rng.random(n) < scores - 0.2 * scores * scores


def xcrepro_values(scores: np.ndarray, hits: np.ndarray) -> dict[str, float | np.ndarray]:
    fold = PairSums([1], closed="right", cap=CAP)
    fold.add_pairs(*calibration.check_pairs(scores, hits))
    sums = fold.at(1)
    ece = calibration.binned_error(sums.table)
    return {"ECE": ece, "Brier": calibration.brier_of(sums), "NLL": calibration.nll_of(sums)}


def scikit_learn_values(scores: np.ndarray, hits: np.ndarray) -> dict[str, float | np.ndarray]:
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss, log_loss

    accuracy, confidence = calibration_curve(hits, scores, n_bins=BINS)
    return {
        "accuracy": accuracy,
        "confidence": confidence,
        "Brier": brier_score_loss(hits, scores),
        "NLL": log_loss(hits, scores),
    }


def check(ours: dict, theirs: dict, scores: np.ndarray, hits: np.ndarray) -> None:
    """Refuse to time what computes something else."""
    table = calibration.reliability(scores, hits, band=None, closed="right")
    table = table[table["count"] > 0]
    expected = {**ours, "accuracy": table.accuracy, "confidence": table.confidence}
    # Put together with the counts, their curve must be our ECE as well.
    theirs = {
        **theirs,
        "ECE": float((table["count"] * np.abs(theirs["accuracy"] - theirs["confidence"])).sum() / hits.size),
    }
    for name, value in theirs.items():
        if not np.allclose(value, expected[name], rtol=0, atol=TOLERANCE):
            raise RuntimeError(f"scikit-learn and xcrepro disagree on {name}: {value} and {expected[name]}")


def compare(n: int, rounds: int) -> list[dict]:
    scores, hits = make_pairs(n)
    job = f"ECE, Brier, NLL: {n:,} pairs"

    def with_threads(threads: int) -> Callable[[], dict]:
        def call() -> dict:
            with thread_count(threads):
                return xcrepro_values(scores, hits)

        return call

    if with_threads(1)() != with_threads(2)():
        raise RuntimeError("xcrepro's results with 1 and 2 threads differ")
    calls = {"xcrepro, 2 threads": with_threads(2), "xcrepro, 1 thread": with_threads(1)}
    peer = "scikit-learn"
    if installed("sklearn"):
        check(calls["xcrepro, 1 thread"](), scikit_learn_values(scores, hits), scores, hits)
        calls[peer] = lambda: scikit_learn_values(scores, hits)
    seconds = race(calls, rounds, at_least=0.0)
    reference = seconds["xcrepro, 2 threads"]
    notes = {
        "xcrepro, 2 threads": "the same bits with 1 and 2 threads",
        peer: "brier_score_loss, log_loss and calibration_curve; same values",
    }
    rows = [row(job, who, each, reference, notes.get(who, "")) for who, each in seconds.items()]
    return rows if peer in calls else [*rows, without_number(job, peer, "not installed")]


def run(quick: bool = False) -> list[dict]:
    """Both sizes; ``quick`` shrinks them to see that everything runs."""
    rows = []
    for n in QUICK_SIZES if quick else SIZES:
        rows += compare(n, rounds=1 if quick else 5 if n < 10**6 else 3)
    return rows


if __name__ == "__main__":
    from benchmarks.__main__ import tables

    print("\n\n".join(tables(run())))
