"""Linear one-vs-rest: xcrepro's solver on one thread and on two, beside scikit-learn's liblinear, label after label.

Both minimise the same: the squared hinge with C = 1 (DiSMEC's) and the logistic loss with C = 10, unit rows, a bias that is
regularised like the weights. Bibtex where the folder of local data is there (``$XCREPRO_TEST_DATA``, else ``shared/data``
beside the project), and a synthetic twin of EURLex-4K. No weight is pruned.

``gap``: how far a label's objective is above the least that any solver found, xcrepro's with ``eps=1e-8`` among them, in
parts of it; the mean and the maximum over labels. ``seconds`` is the shortest of several runs, ``CPU`` the least processor
time of one, all threads together: on a machine that does something else as well, compare that.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, hstack

import xcrepro as xc
from benchmarks.metrics import ROOT, installed, row, thread_count, without_number
from benchmarks.trees import KS, measure
from xcrepro.models import OneVsRest
from xcrepro.models.base import unit_rows

COSTS = {"squared_hinge": 1.0, "logistic": 10.0}
PEER = "scikit-learn, liblinear"


def cases(quick: bool) -> Iterator[tuple[str, object, object]]:
    """(name, train, test)."""
    bibtex = Path(os.environ.get("XCREPRO_TEST_DATA", ROOT.parent / "shared" / "data")) / "bibtex"
    if bibtex.exists() and not quick:
        found = xc.load("bibtex", path=bibtex)
        yield "bibtex", found.train, found.test
    scale = 0.03 if quick else 0.2
    found = xc.twin("eurlex-4k", scale=scale, seed=0)
    yield f"twin of eurlex-4k, scale {scale}", found.train, found.test


def objectives(loss: str, rows: csr_matrix, Y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of each label. rows: with the feature that is always 1."""
    margins = np.where(Y, 1, -1) * (rows @ weights)
    losses = np.logaddexp(0, -margins) if loss == "logistic" else np.maximum(0, 1 - margins) ** 2
    return (weights**2).sum(axis=0) / 2 + COSTS[loss] * losses.sum(axis=0)


def scikit_learn(loss: str, X: csr_matrix, Y: np.ndarray) -> np.ndarray:
    """Weights with the bias last, (D + 1, L)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    columns = []
    with warnings.catch_warnings(action="ignore"):  # where its 1,000 rounds are not enough
        for y in Y.T:
            if loss == "logistic":
                model = LogisticRegression(C=COSTS[loss], solver="liblinear", tol=0.01, max_iter=1000)
            else:
                model = LinearSVC(C=COSTS[loss], dual=True, tol=0.01, max_iter=1000, random_state=0)
            model.fit(X, y)
            columns.append(np.append(model.coef_, model.intercept_))
    return np.stack(columns, axis=1)


def compare(name: str, train, test, loss: str, repeats: int) -> list[dict]:
    job = f"One-vs-rest, {loss.replace('_', ' ')}, {name}"
    truth = csr_matrix(train.Y).toarray() > 0
    labels = np.flatnonzero(truth.any(axis=0) & ~truth.all(axis=0))
    Y, X = truth[:, labels], unit_rows(csr_matrix(train.X))

    def ours(threads: int, **more) -> np.ndarray:
        with thread_count(threads):
            model = OneVsRest(loss, C=COSTS[loss], threshold=0.0, **more).fit(train.X, train.Y)
        return np.vstack([model.weights_[:, labels].toarray(), model.bias_[labels]]).astype(float)

    OneVsRest(loss).fit(train.X[:50], train.Y[:50])  # compiled before anything is timed
    calls: dict[str, Callable[[], object]] = {
        f"xcrepro, {n} thread{'s' * (n > 1)}": lambda n=n: ours(n) for n in (1, 2)
    }
    if installed("sklearn"):
        calls[PEER] = lambda: scikit_learn(loss, X, Y)
    found = measure(calls, repeats)
    first, second = (found[who][2] for who in list(calls)[:2])
    if first.tobytes() != second.tobytes():
        raise RuntimeError(f"{job}: one thread and two give different weights")
    with_bias = hstack([X, np.ones((X.shape[0], 1))], "csr")
    reached = {who: objectives(loss, with_bias, Y, weights) for who, (_, _, weights) in found.items()}
    least = np.minimum.reduce([*reached.values(), objectives(loss, with_bias, Y, ours(2, eps=1e-8))])
    test_rows = hstack([unit_rows(csr_matrix(test.X)), np.ones((test.Y.shape[0], 1))], "csr")
    relevant = csr_matrix(test.Y)[:, labels]
    reference = found["xcrepro, 2 threads"]
    rows = []
    for who, (seconds, cpu, weights) in found.items():
        entry = row(job, who, seconds, reference[0])
        note = entry.pop("note") or f"{1e3 * cpu / labels.size:.2f} ms of CPU a label"
        gap = reached[who] / least - 1
        entry |= {"CPU": cpu, "CPU ratio": cpu / reference[1], "gap, mean": gap.mean(), "gap, max": gap.max()}
        values = 100 * xc.metrics.precision(relevant, xc.TopK.from_scores(test_rows @ weights, max(KS)), KS)
        rows.append(entry | {f"P@{k}": value for k, value in zip(KS, values, strict=True)} | {"note": note})
    if PEER not in calls:
        rows.append(without_number(job, PEER, "not installed"))
    return rows


def run(quick: bool = False) -> list[dict]:
    """Both losses on each case; ``quick`` takes a tiny twin, to see that everything runs."""
    return [
        entry
        for name, train, test in cases(quick)
        for loss in COSTS
        for entry in compare(name, train, test, loss, repeats=1 if quick else 3)
    ]


if __name__ == "__main__":
    from benchmarks.__main__ import tables

    print("\n\n".join(tables(run())))
