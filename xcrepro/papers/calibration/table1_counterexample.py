"""Table 1, computed: each label calibrated, the best label not; then the same on a twin, or on real data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix

from xcrepro import calibrate, looks
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import baselines, calibrated, parameters
from xcrepro.metrics import calibration as metric
from xcrepro.papers.calibration._common import printed_table
from xcrepro.predictions import TopK
from xcrepro.repro import figures

check_parameters = parameters.check

CELLS = 20_000_000
"""Pairs of a test point and a label that are looked at, at most."""


def read_example() -> tuple[np.ndarray, np.ndarray]:
    """P[Y_j = 1] and psi(x, j) as printed: two (2, 2) float64 arrays, rows x1 and x2, columns label 1 and label 2."""
    cells = printed_table(1).pivot(index="dataset", columns="metric", values="value")
    return cells[["P[Y1=1]", "P[Y2=1]"]].to_numpy(), cells[["psi(x,1)", "psi(x,2)"]].to_numpy()


def compute_table(chance: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
    """Equation 5 at every score that a label takes, then the same for the best label.

    Parameters
    ----------
    chance, scores : ndarray
        (points, labels): the probability of each label, and its score; each point is as likely.

    Returns
    -------
    DataFrame
        who ("label 1", ..., "top 1"), score, chance (the mean probability over the points with that score), gap
        (chance less score).
    """
    best = scores.argmax(axis=1)[:, None]
    pairs = {f"label {j + 1}": (scores[:, j], chance[:, j]) for j in range(scores.shape[1])}
    pairs["top 1"] = tuple(np.take_along_axis(each, best, 1).ravel() for each in (scores, chance))
    rows = [(who, s, p[said == s].mean()) for who, (said, p) in pairs.items() for s in np.unique(said)[::-1]]
    table = pd.DataFrame(rows, columns=["who", "score", "chance"])
    return table.assign(gap=(table["chance"] - table["score"]).round(12))


def compute_measured(chance: np.ndarray, scores: np.ndarray, copies: int = 10) -> pd.DataFrame:
    """The package's metrics on rows that have exactly table 1's probabilities, before and after isotonic regression.

    The map is fitted to the top 1 on the same rows: after it the score of the best label is what it should be.

    Parameters
    ----------
    chance, scores : ndarray, shape (points, labels)
        P[Y_j = 1] and psi(x, j), as from :func:`read_example`.
    copies : int
        How often each point stands there, a share ``chance`` of these with the label; with 10 the tenths of table 1
        come out as whole rows.

    Returns
    -------
    DataFrame
        metric, before, after (fractions; NaN where the map says nothing).
    """
    relevant, scores = np.rint(copies * chance), np.repeat(scores, copies, axis=0)
    truth = np.concatenate([np.arange(copies)[:, None] < row for row in relevant])
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


# ---------------------------------------------------------------- the same on data


def chances(ds: Dataset, model: str = "PLT", seed: int = 0) -> tuple[csr_matrix, csr_matrix]:
    """What the scorers are built from: an order of each label's points, and the chance of each to have it.

    Of a twin both are its true probabilities of the observed truth, which is what a model learns from and is tested on. Of
    real data the order is that of a model's scores, and the chance is the truth itself, 0 or 1.

    Parameters
    ----------
    ds : Dataset
        Of real data the first test points, as many as make :data:`CELLS` pairs with its labels.
    model : str
        A baseline; a twin needs none.
    seed : int
        The model's.

    Returns
    -------
    order, chance : csr_matrix, (points, labels)
        A pair that is not stored in ``order`` is taken to be of the lowest score.
    """
    if isinstance(ds, Twin):
        return ds.test.observed_marginals, ds.test.observed_marginals
    first = slice(max(CELLS // ds.test.Y.shape[1], 1))
    return baselines.predictions(ds, [model], seed)[model].to_csr()[first], csr_matrix(ds.test.Y[first])


def compute_scorers(order: csr_matrix, chance: csr_matrix, groups: Sequence[int] = (2, 5, 20, 100)) -> pd.DataFrame:
    """How wrong the best k labels of a scorer are of which every label is calibrated (:func:`score_by_groups`).

    Parameters
    ----------
    order, chance : csr_matrix, (points, labels)
        From :func:`chances`.
    groups : sequence of int
        Numbers of values that a label's score can take, a scorer each.

    Returns
    -------
    DataFrame
        groups, marginal (the largest |chance - score| of any label at any of its scores), then for k = 1, 3, 5 ECE@k
        with the chances in place of hits, ten bins closed to the left, and bias@k, mean score less mean chance. All in
        percentage points.
    """
    rows = []
    dense = chance.toarray().astype(np.float64)
    for each in groups:
        scores = score_by_groups(order, chance, each)
        row = {"groups": each, "marginal": 100 * _worst_gap(dense, scores)}
        for k in (k for k in calibrated.KS if k <= scores.shape[1]):
            top = TopK.from_scores(scores, k)
            true = np.take_along_axis(dense, np.maximum(top.ids, 0), 1)[top.ids >= 0]
            said = top.scores[top.ids >= 0]
            bin_of = np.minimum((said * np.float32(metric.BINS)).astype(np.int64), metric.BINS - 1)
            gaps = np.bincount(bin_of, said, metric.BINS) - np.bincount(bin_of, true, metric.BINS)
            bias = said.mean(dtype=np.float64) - true.mean()
            row |= {f"ECE@{k}": 100 * float(np.abs(gaps).sum() / said.size), f"bias@{k}": 100 * float(bias)}
        rows.append(row)
    return pd.DataFrame(rows)


def score_by_groups(order: csr_matrix, chance: csr_matrix, groups: int) -> np.ndarray:
    """A scorer that is calibrated for each label on the test points, exactly and by construction.

    For each label the points that ``order`` stores are sorted by it and cut into equal parts; the score is the mean chance
    of the part, and of all points that are not stored together. So whatever score a label takes, the mean chance of the
    points with it is that score: equation 5 holds, coarsely for few groups and finely for many.

    Parameters
    ----------
    order, chance : csr_matrix, (points, labels)
        From :func:`chances`.
    groups : int
        Parts of a label's points, fewer where there are fewer points.

    Returns
    -------
    ndarray of float64, shape (points, labels)
        From 0 to 1.
    """
    order, chance = order.tocsc(), chance.tocsc()
    scores = np.zeros(order.shape)
    for label in range(order.shape[1]):
        stored = slice(order.indptr[label], order.indptr[label + 1])
        true = chance[:, [label]].toarray().ravel().astype(np.float64)
        rows = order.indices[stored][np.argsort(order.data[stored].astype(np.float64), kind="stable")]
        rest = np.ones(order.shape[0], bool)
        rest[rows] = False
        if rest.any():
            scores[rest, label] = true[rest].mean()
        for part in np.array_split(rows, min(groups, rows.size)) if rows.size else ():
            scores[part, label] = true[part].mean()
    return scores


def _worst_gap(chance: np.ndarray, scores: np.ndarray) -> float:
    worst = 0.0
    for truth, said in zip(chance.T, scores.T, strict=True):
        _, which, counts = np.unique(said, return_inverse=True, return_counts=True)
        worst = max(worst, float(np.abs(np.bincount(which, truth - said) / counts).max()))
    return worst


_EXAMPLE = {  # the best label's mark lies around that of the label which it is
    "label 1": {"marker": "s", "color": looks.TEAL, "markersize": 6},
    "label 2": {"marker": "^", "color": looks.RUST, "markersize": 6},
    "top 1": {"marker": "o", "color": looks.INK, "markersize": 12, "fillstyle": "none"},
}


def compute(example: pd.DataFrame, twin: pd.DataFrame) -> pd.DataFrame:
    """Table 1 and the scorers in one table, each with its own columns only.

    Parameters
    ----------
    example : DataFrame
        From :func:`compute_table`.
    twin : DataFrame
        From :func:`compute_scorers`.

    Returns
    -------
    DataFrame
        The rows of both; NaN in the other's columns.
    """
    return pd.concat([example, twin], ignore_index=True)


def findings(example: pd.DataFrame, measured: pd.DataFrame, scorers: pd.DataFrame) -> list[str]:
    """What came out.

    Parameters
    ----------
    example : DataFrame
        From :func:`compute_table`.
    measured : DataFrame
        From :func:`compute_measured`.
    scorers : DataFrame
        From :func:`compute_scorers`.

    Returns
    -------
    list of str
    """
    top = example["who"] == "top 1"
    off = example[top & (example["gap"].abs() > 1e-9)]
    ece = measured.set_index("metric")["before"]
    told = [f"at score {row.score:.1f} its chance is {row.chance:.1f}" for row in off.itertuples()] or [
        "it is calibrated"
    ]
    few, many = scorers.iloc[0], scorers.iloc[-1]
    direction = "too low" if few["bias@1"] < -0.05 else "too high" if few["bias@1"] > 0.05 else "right on average"
    return [
        f"In the example the largest gap of a single label is {example[~top]['gap'].abs().max():.1f}; "
        f"of the best label, {' and '.join(told)}, as the paper has it (0.6, not 0.7).",
        f"Its marginal ECE is {ece['marginal ECE (eq. 6)']:.2f} and its ECE@1 {ece['ECE@1 (eq. 7)']:.2f}.",
        f"Beyond it, of scorers whose labels are all calibrated (largest gap {scorers['marginal'].max():.2f} points), ECE@1 is "
        f"{few['ECE@1']:.1f} points with {few['groups']:.0f} values a label and {many['ECE@1']:.1f} with {many['groups']:.0f}.",
        f"With {few['groups']:.0f} values the scores of the best labels are {direction} (by {abs(few['bias@1']):.1f} points).",
    ]


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Left: chance against score for each label and for the best label of table 1. Right: the scorers' ECE@k.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of Axes, optional
        Two.
    """
    with figures.new(width=looks.MEDIUM, height=3.2, ncols=2, ax=ax) as (fig, (left, right)):
        guide = {"color": "0.6", "linewidth": 0.8, "linestyle": "--"}
        left.axline((0.4, 0.4), slope=1, label="_guide", **guide)
        left.plot([], [], label="calibrated", **guide)
        for who, style in _EXAMPLE.items():
            part = table[table["who"] == who]
            left.plot(part["score"], part["chance"], **style, linestyle="none", label=who)
        left.set(xlabel="score", ylabel="mean probability at this score")
        left.set_title("table 1", loc="left")
        left.legend(loc="upper left")
        figures.draws(left, x="score", y="chance")
        twin = table.dropna(subset="groups")
        ks = [k for k in calibrated.KS if f"ECE@{k}" in twin]
        for k in ks:
            right.plot(twin["groups"], twin[f"ECE@{k}"], **looks.PLACES[k].line(), label=f"ECE@{k}")
        right.plot(twin["groups"], twin["marginal"], "x", color="0.45", label="worst single label")
        right.set(xscale="log", xlabel="values a label's score can take", ylabel="error (points)", ylim=(-0.4, None))
        right.set_xticks(twin["groups"], [f"{groups:.0f}" for groups in twin["groups"]])
        right.minorticks_off()
        right.set_title("scorers of which every label is calibrated", loc="left")
        right.legend()
        figures.draws(right, x="groups", y=("marginal", *(f"ECE@{k}" for k in ks)))
    return fig
