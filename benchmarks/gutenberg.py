"""Training on the catalogue of Project Gutenberg: one-vs-rest, label trees and FastXML beside napkinXC and omikuji.

Titles of 46,099 books and 36,650 headings, of which a sixth are on no training book; two threads, each model in a process of
its own (``apart.py``). omikuji's three trees are its own settings, which are Parabel's;
napkinXC's label tree has the kit's settings. Its binary relevance minimises what the kit's one-vs-rest minimises, to a
tolerance of its own, and takes long: the two are compared on every tenth heading, in tables of their own, whose P@k counts
these headings alone. omikuji is no dependency: ``pip install omikuji``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import xcrepro as xc
from benchmarks import apart
from benchmarks.trees import THREADS

ALL = {
    "xcrepro, PLT, 3 trees": ("xcrepro", "PLT(trees=3)"),
    "napkinXC, PLT, 3 trees": ("napkinXC", "PLT: ensemble=3"),
    "xcrepro, PLT, 3 trees, squared hinge": ("xcrepro", "PLT(trees=3, loss='squared_hinge', C=1.0, max_iter=20)"),
    "omikuji, 3 trees, squared hinge": ("omikuji", "n_trees=3"),
    "xcrepro, FastXML, 50 trees": ("xcrepro", "FastXML(trees=50)"),
    "xcrepro, one-vs-rest": ("xcrepro", "OneVsRest()"),
    "xcrepro, DiSMEC": ("xcrepro", "DiSMEC()"),
}
TENTH = {
    "logistic": {
        "xcrepro, one-vs-rest": ("xcrepro", "OneVsRest()"),
        "napkinXC, binary relevance": ("napkinXC", "BR:"),
    },
    "squared hinge": {
        "xcrepro, DiSMEC": ("xcrepro", "DiSMEC()"),
        "napkinXC, binary relevance": ("napkinXC", "BR: loss='l2', liblinear_c=1.0, weights_threshold=0.01"),
    },
}


def run(quick: bool = False) -> list[dict]:
    """Every model once; ``quick`` takes few books, to see that everything runs."""
    ds = xc.load("gutenberg", points=400 if quick else None)
    train = apart.with_features(ds.train)
    size = f"{ds.title}, {train.X.shape[0]:,} books with a word"
    rows = apart.measured(f"{size} x {train.Y.shape[1]:,} headings: training", train, ds.test, ALL, THREADS)
    some = np.arange(0, train.Y.shape[1], 10)
    parts = [replace(part, Y=part.Y[:, some]) for part in (train, ds.test)]
    for loss, runs in TENTH.items():
        rows += apart.measured(f"{size} x {some.size:,} headings, {loss}: training", *parts, runs, THREADS)
    return rows
