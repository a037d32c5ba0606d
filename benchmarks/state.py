"""``State``: what evaluating costs, whole, in blocks and merged, beside the ranking and the four metrics of most papers; how
large a state is.

The input is that of ``benchmarks.metrics``. Ratios are to ranking the scores and the four metrics, which everybody has to pay.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

import xcrepro as xc
from benchmarks.metrics import KS, METRICS, make_case, race, row, thread_count
from xcrepro.core.metrics import ranking

BLOCKS = 16
CALIBRATION = ("ECE@5", "ACE@5", "Brier@5", "NLL@5")


def compare(n: int, n_labels: int, rounds: int) -> list[dict]:
    case = make_case(n, n_labels, 100, dense=False)
    top = xc.TopK.from_scores(case.scores, max(KS))
    counts = np.random.default_rng(0).integers(0, 2000, n_labels)
    cuts = [slice(n * b // BLOCKS, n * (b + 1) // BLOCKS) for b in range(BLOCKS)]
    parts = [(case.truth[some], top.rows(some)) for some in cuts]
    everything = {"inverse_propensity": case.weights, "label_counts": counts}

    def both(**given) -> Callable[[], object]:
        def call() -> object:
            ranked = xc.TopK.from_scores(case.scores, max(KS))
            return xc.evaluate(case.truth, ranked, KS, **given)

        return call

    def states() -> list[xc.State]:
        return [xc.State(KS, **everything).update(*part) for part in parts]

    def merged() -> xc.State:
        whole, *others = states()
        for other in others:
            whole.merge(other)
        return whole

    def streamed() -> xc.State:
        state = xc.State(KS, **everything)
        for part in parts:
            state.update(*part)
        return state

    expected = xc.evaluate(case.truth, top, KS, **everything)
    if not all(found.compute().equals(expected) for found in (merged(), streamed())):
        raise RuntimeError("blocks give another result than the whole")

    def one_thread(call: Callable[[], object]) -> Callable[[], object]:
        def alone() -> object:
            with thread_count(1):
                return call()

        return alone

    calls: dict[str, Callable[[], object]] = {
        f"ranking the scores, {', '.join(METRICS)}": both(metrics=METRICS, inverse_propensity=case.weights),
        "ranking the scores, all metrics by default": both(),
        "the same with weights and train counts": both(**everything),
        "ranking alone": lambda: xc.TopK.from_scores(case.scores, max(KS)),
        f"{', '.join(METRICS)} alone": lambda: ranking.values(METRICS, case.truth, top, KS, case.weights),
        "all metrics by default, alone": lambda: xc.evaluate(case.truth, top, KS),
        "the same with weights and train counts, alone": lambda: xc.evaluate(case.truth, top, KS, **everything),
        f"these in {BLOCKS} blocks, one State": lambda: streamed().compute(),
        f"these in {BLOCKS} blocks, a State each, merged": lambda: merged().compute(),
        "ECE, ACE, Brier, NLL at 5, alone": lambda: xc.evaluate(case.truth, top, metrics=CALIBRATION),
        "label-wise metrics alone": lambda: xc.evaluate(case.truth, top, KS, metrics=["macro-F1", "coverage"]),
    }
    calls |= {
        f"{name}, one thread": one_thread(calls[name]) for name in [*calls] if "alone" in name and "ranking" not in name
    }
    seconds = race(calls, rounds, at_least=0.0)
    job = f"State: {n:,} x {n_labels:,}"
    reference = next(iter(seconds.values()))
    return [row(job, who, each, reference, "") for who, each in seconds.items()]


def size(n: int, n_labels: int) -> list[dict]:
    """A block's state in memory and on disk: five labels a row and five predictions of a long tail (log-uniform ranks)."""
    rng = np.random.default_rng(0)
    ranks = (n_labels ** rng.random((2, n, 5))).astype(np.int64) - 1
    truth, predicted = ranks * 1_000_003 % n_labels  # the frequent labels anywhere
    predicted = np.where(
        [[row.index(label) < i for i, label in enumerate(row)] for row in predicted.tolist()], -1, predicted
    )
    top = xc.TopK.from_ids(np.sort(predicted, axis=1)[:, ::-1], n_labels=n_labels)
    Y = csr_matrix((np.ones(truth.size, np.float32), truth.ravel(), 5 * np.arange(n + 1)), (n, n_labels))
    state = xc.State(KS).update(Y, top)
    held = sum(array.nbytes for fold in state._folds.values() for array in fold.arrays().values())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        state.save(path)
        on_disk = path.stat().st_size
    job = f"the state of a block: {n:,} x {n_labels:,}"
    return [{"job": job, "who": "State", "MB": held / 1e6, "MB on disk": on_disk / 1e6}]


def run(quick: bool = False) -> list[dict]:
    """The size of the issue, Amazon-670K's, and a small one; ``quick`` shrinks them to see that everything runs."""
    sizes = [(600, 900)] if quick else [(30_000, 670_091), (153_025, 670_091), (3_809, 3_993)]
    rows = [each for n, n_labels in sizes for each in compare(n, n_labels, 1 if quick else 7)]
    return rows + size(*((500, 2_000) if quick else (100_000, 3_000_000)))
