"""Training on the catalogue of Project Gutenberg: one-vs-rest, label trees and FastXML beside napkinXC and omikuji.

Titles of 45,922 books and 36,650 headings, of which a sixth are on no training book; two threads, each model in a process of
its own (``apart.py``). Ratios are to the kit's PLT. omikuji's three trees are its own settings, which are Parabel's;
napkinXC's label tree has the kit's settings, and its binary relevance minimises what the kit's one-vs-rest minimises, to a
tolerance of its own. omikuji is no dependency: ``pip install omikuji``.
"""

from __future__ import annotations

import xcrepro as xc
from benchmarks import apart
from benchmarks.trees import THREADS

RUNS = {
    "xcrepro, PLT, 3 trees": ("xcrepro", "PLT(trees=3)"),
    "napkinXC, PLT, 3 trees": ("napkinXC", "PLT: ensemble=3"),
    "xcrepro, PLT, 3 trees, squared hinge": ("xcrepro", "PLT(trees=3, loss='squared_hinge', C=1.0, max_iter=20)"),
    "omikuji, 3 trees, squared hinge": ("omikuji", "n_trees=3"),
    "xcrepro, one-vs-rest": ("xcrepro", "OneVsRest()"),
    "napkinXC, binary relevance": ("napkinXC", "BR:"),
    "xcrepro, DiSMEC": ("xcrepro", "DiSMEC()"),
    "napkinXC, binary relevance, squared hinge": ("napkinXC", "BR: loss='l2', liblinear_c=1.0, weights_threshold=0.01"),
    "xcrepro, FastXML, 50 trees": ("xcrepro", "FastXML(trees=50)"),
}


def run(quick: bool = False) -> list[dict]:
    """Every model once; ``quick`` takes few books, to see that everything runs."""
    ds = xc.load("gutenberg", points=400 if quick else None)
    train = apart.with_features(ds.train)
    job = f"{ds.title}, {train.X.shape[0]:,} training points with a feature x {train.Y.shape[1]:,} labels: training"
    return apart.measured(job, train, ds.test, RUNS, THREADS)
