"""Table 1 of the calibration paper, computed: each label calibrated, the best label not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import calibrate
from xcrepro.data.twin import Twin
from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.predictions import TopK
from xcrepro.repro import calibration, figures


def table1() -> tuple[np.ndarray, np.ndarray]:
    """P[Y_j = 1] and psi(x, j) as printed: two (2, 2) float64 arrays, rows x1 and x2, columns label 1 and label 2."""
    cells = calibration.table(1).set_index(["dataset", "metric"])["value"]
    points, labels = ("counterexample x1", "counterexample x2"), (1, 2)
    chance = [[cells[point, f"P[Y{j}=1]"] for j in labels] for point in points]
    scores = [[cells[point, f"psi(x,{j})"] for j in labels] for point in points]
    return np.array(chance), np.array(scores)


def population(chance: np.ndarray, scores: np.ndarray, copies: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Rows that have the probabilities exactly: each point ``copies`` times, of which a share ``chance`` carries the label.

    Returns the truth (n, L) bool and the scores (n, L), n = ``copies`` times the points. With 10 copies the tenths of table 1
    come out as whole rows.
    """
    upto = np.rint(copies * chance).astype(np.int64)
    truth = np.concatenate([np.arange(copies)[:, None] < row for row in upto])
    return truth, np.repeat(scores, copies, axis=0)


def conditions(chance: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
    """Equation 5 at every score that a label takes, then the same for the best label: who ("label 1", ..., "top 1"), score,
    chance (the mean of P[Y = 1] over the points with that score, each point as likely), gap (chance - score)."""
    rows = []
    for j in range(scores.shape[1]):
        rows += [(f"label {j + 1}", *found) for found in _mean_at(scores[:, j], chance[:, j])]
    best = scores.argmax(axis=1)[:, None]
    top = (np.take_along_axis(scores, best, 1).ravel(), np.take_along_axis(chance, best, 1).ravel())
    rows += [("top 1", *found) for found in _mean_at(*top)]
    table = pd.DataFrame(rows, columns=["who", "score", "chance"])
    return table.assign(gap=(table["chance"] - table["score"]).round(12))


def _mean_at(scores: np.ndarray, chance: np.ndarray) -> list[tuple[float, float]]:
    return [(float(s), float(chance[scores == s].mean())) for s in sorted(set(scores), reverse=True)]


def measured(truth: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
    """The package's metrics on the rows, before and after isotonic regression of the top 1 (fitted on the same rows):
    metric, before, after. After it the score of the best label is what it should be."""
    top = TopK.from_scores(scores, 1)
    hits = np.take_along_axis(truth, top.ids, 1)
    after = calibrate.Isotonic().fit(top.scores, hits).predict(top.scores)
    whole = TopK.from_scores(scores, scores.shape[1]).to_csr()
    rows = [
        ("marginal ECE (eq. 6)", metric.marginal_ece(whole, truth), np.nan),
        ("ECE@1 (eq. 7)", metric.ece(top.scores, hits), metric.ece(after, hits)),
        ("mean score of the best label", float(top.scores.mean(dtype=np.float64)), float(after.mean())),
        ("P@1", float(hits.mean()), float(hits.mean())),
    ]
    return pd.DataFrame(rows, columns=["metric", "before", "after"])


# ---------------------------------------------------------------- the same on a twin


def grouped(ds: Twin, groups: int) -> np.ndarray:
    """(n, L) float64: a scorer that is calibrated for each label on the twin's test points, exactly and by construction.

    For each label the points where it is possible are sorted by its true probability and cut into ``groups`` equal parts
    (fewer where there are fewer points); the score is the mean true probability of the part. So whatever score a label takes,
    the mean chance of the points with it is that score: equation 5 holds, coarsely for few groups and finely for many.
    """
    marginals = ds.test.marginals.tocsc()
    scores = np.zeros(marginals.shape)
    for label in range(marginals.shape[1]):
        stored = slice(marginals.indptr[label], marginals.indptr[label + 1])
        chance, rows = marginals.data[stored].astype(np.float64), marginals.indices[stored]
        order = np.argsort(chance, kind="stable")
        for part in np.array_split(order, min(groups, order.size)) if order.size else ():
            scores[rows[part], label] = chance[part].mean()
    return scores


def on_twin(ds: Twin, groups: Sequence[int] = (2, 5, 20, 100)) -> pd.DataFrame:
    """groups, marginal (the largest |chance - score| of any label at any of its scores), then for k = 1, 3, 5 the true ECE@k
    (:func:`xcrepro.inputs.calibrated.true_error`) and the bias, mean score less mean chance. All in points."""
    rows = []
    chance = ds.test.marginals.toarray().astype(np.float64)
    for each in groups:
        scores = grouped(ds, each)
        row = {"groups": each, "marginal": 100 * _marginal_gap(chance, scores)}
        for k in calibrated.KS:
            top = TopK.from_scores(scores, k)
            gap = top.scores.mean(dtype=np.float64) - calibrated.true_probabilities(ds, top).mean()
            row |= {f"ECE@{k}": 100 * calibrated.true_error(ds, top), f"bias@{k}": 100 * float(gap)}
        rows.append(row)
    return pd.DataFrame(rows)


def _marginal_gap(chance: np.ndarray, scores: np.ndarray) -> float:
    worst = 0.0
    for truth, said in zip(chance.T, scores.T, strict=True):
        _, which, counts = np.unique(said, return_inverse=True, return_counts=True)
        gap = np.bincount(which, truth - said) / counts
        worst = max(worst, float(np.abs(gap).max()))
    return worst


def plot(conditions: pd.DataFrame, twin: pd.DataFrame) -> Figure:
    """Left: chance against score for each label and for the best label of table 1. Right: the true ECE@k of the twin's
    scorers, every label of which is calibrated."""
    with figures.new(width=7.6, height=3.2, ncols=2) as (fig, (left, right)):
        left.plot([0.3, 1.0], [0.3, 1.0], color="0.6", linewidth=0.8, linestyle="--", label="calibrated")
        for who, marker in (("label 1", "s"), ("label 2", "^"), ("top 1", "o")):
            part = conditions[conditions["who"] == who]
            size, fill = (11, "none") if who == "top 1" else (6, "full")
            left.plot(
                part["score"], part["chance"], marker, markersize=size, fillstyle=fill, label=who, linestyle="none"
            )
        left.set(xlabel="score", ylabel="mean probability at this score", title="table 1: 0.7 comes true 6 times in 10")
        left.legend(loc="upper left")
        for k, marker in zip(calibrated.KS, "os^", strict=True):
            right.plot(twin["groups"], twin[f"ECE@{k}"], marker=marker, label=f"ECE@{k}")
        right.plot(twin["groups"], twin["marginal"], "x", color="0.35", label="worst single label", linestyle="none")
        right.set(xscale="log", xlabel="values a label's score can take", ylabel="error (points)")
        right.set_xticks(list(twin["groups"]), [str(each) for each in twin["groups"]])
        right.minorticks_off()
        right.set(title="twin: every label exact, the best one not", ylim=(-0.4, None))
        right.legend()
    return fig
