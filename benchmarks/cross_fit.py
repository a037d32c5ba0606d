"""10-fold cross-fitted isotonic regression: xcrepro beside ten fits of scikit-learn on the same pairs.

No number is reported for scikit-learn if its probabilities differ from xcrepro's by more than ``TOLERANCE``.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.metrics import best, installed, race, row, thread_count, without_number
from xcrepro.core import calibrate

FOLDS = 10
K = 5
TOLERANCE = 1e-9


def make_pairs(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores (n, K) float32, falling along each row and under-confident as a linear model's are, and their hits."""
    rng = np.random.default_rng(seed)
    chance = -np.sort(-rng.random((n, K), np.float32), axis=1)
    return chance**2, rng.random((n, K), np.float32) < chance


def scikit_learn(scores: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """A fit for each contiguous fold, on the pairs of all others."""
    from sklearn.isotonic import IsotonicRegression

    # As float32 it would pool scores less than 1e-6 apart, which is another solution.
    values, found = scores.astype(np.float64), hits.astype(np.float64)
    edges = np.cumsum([0, *(len(part) for part in np.array_split(np.zeros(len(scores)), FOLDS))])
    calibrated = np.empty(scores.shape)
    for lo, hi in pairwise(edges):
        rest = np.concatenate([values[:lo], values[hi:]]).ravel()
        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        model.fit(rest, np.concatenate([found[:lo], found[hi:]]).ravel())
        calibrated[lo:hi] = model.predict(values[lo:hi].ravel()).reshape(-1, K)
    return calibrated


def agree(who: str, found: np.ndarray, expected: np.ndarray) -> str:
    """The largest difference, in words; RuntimeError where it is too large."""
    difference = float(np.abs(found - expected).max())
    if not difference <= TOLERANCE:
        raise RuntimeError(f"{who} and xcrepro disagree on cross-fitted isotonic by {difference:.3g}")
    return f"largest difference {difference:.1e}"


def compare(n: int, repeats: int) -> list[dict]:
    """The rows of one size; the first, xcrepro on two threads, is the reference."""
    job = f"isotonic, {FOLDS} folds: {n * K:,} pairs ({n:,} x {K})"
    scores, hits = make_pairs(n)

    def ours(threads: int) -> np.ndarray:
        with thread_count(threads):
            return calibrate.cross_fit(scores, hits, "isotonic", FOLDS)

    expected = ours(1)
    if ours(2).tobytes() != expected.tobytes():
        raise RuntimeError("cross-fitted isotonic: 1 and 2 threads differ")
    calls = {f"xcrepro, {t} thread{'s'[: t - 1]}": (lambda t=t: ours(t)) for t in (2, 1)}
    seconds = race(calls, rounds=2 * repeats + 1, at_least=repeats)
    reference = next(iter(seconds.values()))
    rows = [row(job, who, seconds[who], reference, "warm; one sorting for all folds; same bits") for who in calls]
    who = f"scikit-learn, {FOLDS} fits"
    if not installed("sklearn"):
        return [*rows, without_number(job, who, "not installed")]
    taken, found = best(lambda: scikit_learn(scores, hits), repeats)
    return [*rows, row(job, who, taken, reference, agree(who, found, expected))]


def run(quick: bool = False) -> list[dict]:
    """Amazon-670K's test set at k = 5, and twenty of it; ``quick`` shrinks them to see that everything runs."""
    small, large = (200, 400) if quick else (153_000, 3_060_000)
    repeats = 1 if quick else 3
    return [*compare(small, repeats), *compare(large, repeats)]
