"""Macro- and micro-AUC of full scores, as papers on clinical codes print them: xcrepro beside scikit-learn.

Of the size of MIMIC-III's test notes and codes; the truth is drawn at random, each label with a row that has it and one that
has not. Processor time is compared, which a busy machine stretches less. The values must agree to 1e-12.
"""

from __future__ import annotations

import numpy as np

import xcrepro as xc
from benchmarks.metrics import thread_count
from benchmarks.trees import measure

WHAT = ("macro", "micro")


def run(quick: bool = False) -> list[dict]:
    from sklearn.metrics import roc_auc_score

    n, n_labels, per_row = (60, 40, 4) if quick else (3_372, 8_922, 16)
    rng = np.random.default_rng(0)
    truth = rng.random((n, n_labels)) < per_row / n_labels
    truth[0], truth[rng.integers(1, n, n_labels), np.arange(n_labels)] = False, True
    scores = rng.random((n, n_labels), np.float32) + truth * np.float32(0.3)
    rows = []
    for average in WHAT:
        calls = {
            "xcrepro": lambda average=average: xc.metrics.auc(truth, scores, average=average),
            "scikit-learn": lambda average=average: roc_auc_score(truth, scores, average=average),
        }
        with thread_count(1):
            found = measure(calls, repeats=1 if quick else 3)
        _, cpu, value = found["xcrepro"]
        job = f"{average}-AUC: {n:,} x {n_labels:,}, {per_row} labels a row, dense, 1 thread"
        for who, (_, used, other) in found.items():
            if abs(other - value) > 1e-12:
                raise RuntimeError(f"{who} and xcrepro disagree on {average}-AUC: {other} and {value}")
            rows.append({"job": job, "who": who, "CPU": used, "CPU ratio": used / cpu})
    return rows
