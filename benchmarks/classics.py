"""The classic methods of ``xcrepro/models/classic``: time and memory of fit and predict beside one-vs-rest.

Each in a process of its own on TIB (``apart.py``).
"""

from __future__ import annotations

import xcrepro as xc
from benchmarks import apart
from benchmarks.trees import THREADS

MODELS = ("OneVsRest", "KNN", "CS", "MLCSSP", "CPLST", "LEML", "WSABIE", "LPSR", "SLEEC", "PDSparse", "ProXML")


def run(quick: bool = False) -> list[dict]:
    """Every classic method once; ``quick`` takes few records, to see that everything runs."""
    points = 200 if quick else 4000
    models = {name: f"{name}()" for name in MODELS}
    return measured(f"Classic methods, TIB, {points:,} records: training", models, points, THREADS)


def measured(job: str, models: dict[str, str], points: int, threads: int) -> list[dict]:
    """Time and peak memory of each model, each in a process of its own; ratios to the first."""
    ds = xc.load("tib", points=points)
    runs = {name: ("xcrepro", call) for name, call in models.items()}
    return apart.measured(job, ds.train, ds.test, runs, threads)
