"""What the documents say of time, as ratios on one machine: re-ranking, the growth of prediction with L, decision rules.

The documents print seconds and milliseconds of their authors' machines and programs, which nobody else can measure. What
carries over are ratios: what PfastreXML takes beside PfastXML (jain16, sections 6.2 and 7), how prediction grows with the
number of labels in a label tree and with one classifier for each label (calibration, section 3), and what a rule that
chooses labels takes beside taking the most probable (coverage, table 2).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

import xcrepro as xc
from benchmarks import metrics
from benchmarks.metrics import race, row, thread_count
from benchmarks.trees import measure
from xcrepro.core import decide
from xcrepro.core.data import load
from xcrepro.repro.inputs.calibrated import keep_labels

K = 5


def make_case(n: int, n_labels: int, per_row: int, seed: int = 0) -> csr_matrix:
    """Probabilities (n, L) that add up to about four relevant labels a row."""
    scores = metrics.make_case(n, n_labels, per_row, dense=False, seed=seed).scores
    eta = csr_matrix((scores.data**3, scores.indices, scores.indptr), shape=scores.shape)
    eta.sort_indices()
    return eta


def reranking(ds, repeats: int, trees: int) -> list[dict]:
    """Training and prediction of PfastXML, and of PfastreXML, which re-ranks what it finds."""
    weights = {"A": ds.A, "B": ds.B}
    makers = {
        "PfastXML": lambda: xc.models.PfastXML(trees=trees, **weights),
        "PfastreXML": lambda: xc.models.PfastreXML(trees=trees, **weights),
    }
    for make in makers.values():  # so that all kernels are compiled
        make().fit(ds.train.X[:200], ds.train.Y[:200]).predict(ds.test.X[:10], K)
    size = f"TIB, {ds.n_train:,} training points, {ds.test.X.shape[0]:,} test points, {trees} trees"
    trained = measure(
        {name: (lambda make=make: make().fit(ds.train.X, ds.train.Y)) for name, make in makers.items()}, 1
    )
    models = {name: found[2] for name, found in trained.items()}
    predicted = measure(
        {name: (lambda model=model: model.predict(ds.test.X, K)) for name, model in models.items()}, repeats
    )
    return [
        row(f"{what}: {size}", name, found[0], times["PfastXML"][0], "")
        for what, times in (("training", trained), ("prediction", predicted))
        for name, found in times.items()
    ]


def growth(ds, repeats: int) -> list[dict]:
    """Prediction of a label tree and of one-vs-rest, with every eighth, fourth, second and with all labels."""
    by_frequency, rows = np.argsort(-ds.label_counts, kind="stable"), []
    makers = {"PLT, 1 tree": lambda: xc.models.PLT(trees=1), "1-vs-All": lambda: xc.models.OneVsRest()}
    for who, make in makers.items():
        calls = {}
        for step in (8, 4, 2, 1):
            cut = keep_labels(ds, np.sort(by_frequency[step - 1 :: step]))
            model = make().fit(cut.train.X, cut.train.Y)
            model.predict(ds.test.X[:10], K)
            calls[f"{who}, {cut.train.Y.shape[1]:,} labels"] = lambda model=model: model.predict(ds.test.X, K)
        times = measure(calls, repeats)
        first = next(iter(times.values()))[0]
        rows += [
            row(f"prediction by the number of labels: TIB, {who}", name, t[0], first, "") for name, t in times.items()
        ]
    return rows


def rules(n: int, n_labels: int, repeats: int) -> list[dict]:
    """Each rule of the coverage paper beside the k most probable labels, from the same candidates."""
    eta = make_case(n, n_labels, 100)
    weight = 1 + np.arange(n_labels) % 7.0
    calls = {
        "the k most probable": lambda: decide.top_k(eta, K),
        "weighted (PS-PLT)": lambda: decide.weighted(eta, K, weight),
        "greedy (COV-PLT)": lambda: decide.greedy_coverage(eta, K),
        "greedy, beta 0.25": lambda: decide.greedy_coverage(eta, K, 0.25),
        "bounded random": lambda: decide.bounded_random(eta, K),
    }
    with thread_count(2):
        seconds = race(calls, rounds=repeats, at_least=0)
    job = f"{K} labels for each of {n:,} points, {n_labels:,} labels, 100 candidates a point"
    return [row(job, who, seconds[who], seconds["the k most probable"], "") for who in calls]


def run(quick: bool = False) -> list[dict]:
    ds = load.load("tib", points=600 if quick else None, progress=False)
    case = (500, 2_000) if quick else (153_025, 670_091)
    return [
        *reranking(ds, 1 if quick else 3, 3 if quick else 50),
        *growth(ds, 1 if quick else 5),
        *rules(*case, 1 if quick else 3),
    ]
