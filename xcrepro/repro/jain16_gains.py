"""What the item on table 1 of Jain et al. 2016 computes: every gain, and that it is unbiased, by Monte Carlo.

A *gain* is a metric of one point's prediction, more is better. Its propensity-scored form divides each relevant label's part
by the label's propensity p_l, the chance that a relevant label was marked at all. The claim is that the mean of the scored
gain over many draws of what went missing is the plain gain on the complete truth.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs.datasets import weights
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK
from xcrepro.propensity import drop_labels
from xcrepro.repro import figures
from xcrepro.truth import Truth

KS = (1, 3, 5)
SIGMAS = 4.0

# Gain -> group of the table, our function, and the names of the plain and the scored form in ranking.FORMULAS.
GAINS = {
    "Precision@k": ("a", "metrics.psp(..., normalize=False)", "P", "PSP (bare)"),
    "nDCG@k": ("a", 'metrics.psndcg(..., normalize=False, ideal="k")', "nDCG (ideal k)", "PSnDCG (bare, ideal k)"),
    "Hamming loss": ("a", "metrics.hamming_loss(...)", "Hamming", "PS-Hamming"),
    "Recall@k": ("b", "metrics.recall(...)", "R", "PS-R"),
    "MRR": ("b", 'metrics.mrr(..., over="relevant")', "MRR (relevant)", "PS-MRR (relevant)"),
    "ADG": ("b", "metrics.adg(...)", "ADG", "PS-ADG"),
    "F1 as printed": ("b", 'metrics.f_beta(..., denominator="printed")', "F (printed)", "PS-F (printed)"),
    "F1 with k below": ("b", "metrics.f_beta(...)", "F", "PS-F"),
}
COROLLARY = ("Recall@k", "MRR", "ADG")
"""Gains whose normaliser is the number of relevant labels alone, as corollary 4.2.1 asks."""


def functions() -> pd.DataFrame:
    """Where each gain is: group, gain, function; ``...`` stands for Y, top, ks and ``inverse_propensity``, in group b also
    ``n_relevant``."""
    return pd.DataFrame(
        [(group, name, call) for name, (group, call, *_) in GAINS.items()], columns=["group", "gain", "function"]
    )


def propensities(ds: Dataset) -> np.ndarray:
    """(L,) a twin's own, else those of the model with the dataset's A and B."""
    return ds.propensities if isinstance(ds, Twin) else 1.0 / weights(ds)


def monte_carlo(Y, top: TopK, propensity: np.ndarray, draws: int = 400, seed: int = 0) -> pd.DataFrame:
    """Theorems 4.1, 4.2 and 4.4: labels of ``Y``, taken for complete, are dropped ``draws`` times with 1 - ``propensity``.

    Y: (n, L). top: the fixed predictions, 5 places or more. Group b is given the complete truth's |y*|.

    Returns gain, k, complete (the plain gain on ``Y``), scored and plain (means over the draws of the scored and of the plain
    gain on what was left) and their standard errors, ``scored error`` and ``plain error``.
    """
    truth, rng = Truth.of(Y), np.random.default_rng(seed)
    scored, plain = [], []
    for _ in range(draws):
        left = drop_labels(truth, propensity, rng)
        scored.append(_values([names[3] for names in GAINS.values()], left, top, 1.0 / propensity, truth.sizes))
        plain.append(_values([names[2] for names in GAINS.values()], left, top))
    complete = _values([names[2] for names in GAINS.values()], truth, top)
    return _table(list(GAINS), complete, np.array(scored), np.array(plain))


def corollary(Y, top: TopK, g: np.ndarray, draws: int = 400, seed: int = 0) -> pd.DataFrame:
    """Corollary 4.2.1: a label is kept with g_l / |y*|; with weights 1/g_l no |y*| is needed. As :func:`monte_carlo`.

    g: (L,) positive, at most the least |y*|, so at most 1 where a point may have one label.
    """
    truth, rng = Truth.of(Y), np.random.default_rng(seed)
    kept = g / np.maximum(truth.sizes, 1)[:, None]
    scored, plain = [], []
    for _ in range(draws):
        left = drop_labels(truth, kept, rng)
        scored.append(_values([GAINS[name][3] for name in COROLLARY], left, top, 1.0 / g, np.ones(truth.n_rows)))
        plain.append(_values([GAINS[name][2] for name in COROLLARY], left, top))
    complete = _values([GAINS[name][2] for name in COROLLARY], truth, top)
    return _table(list(COROLLARY), complete, np.array(scored), np.array(plain))


def _values(names: list[str], Y, top: TopK, w=None, n_relevant=None) -> np.ndarray:
    """(gains, ks)"""
    found = ranking.values(names, Y, top, KS, w, n_relevant)
    return np.array([found[name] for name in names])


def _table(gains: list[str], complete: np.ndarray, scored: np.ndarray, plain: np.ndarray) -> pd.DataFrame:
    root = np.sqrt(len(scored))
    columns = {
        "complete": complete,
        "scored": scored.mean(axis=0),
        "scored error": scored.std(axis=0, ddof=1) / root,
        "plain": plain.mean(axis=0),
        "plain error": plain.std(axis=0, ddof=1) / root,
    }
    table = pd.DataFrame({"gain": np.repeat(gains, len(KS)), "k": np.tile(KS, len(gains))})
    return table.assign(**{name: values.ravel() for name, values in columns.items()})


def sigmas(table: pd.DataFrame) -> pd.DataFrame:
    """How far the means lie from the complete truth in standard errors: gain, k, scored, plain, unbiased (within 4)."""
    away = {
        form: (table[form] - table["complete"]).abs() / table[f"{form} error"].replace(0.0, np.nan)
        for form in ("scored", "plain")
    }
    held = np.where(away["scored"] <= SIGMAS, "yes", "no")
    return pd.DataFrame({"gain": table["gain"], "k": table["k"], **away, "unbiased": held})


def verdict(table: pd.DataFrame) -> str:
    """One sentence: how many of the scored means lie within 4 standard errors, and how many of the plain ones.

    >>> row = {"gain": "P", "k": 1, "complete": 0.5, "scored": 0.51, "scored error": 0.01, "plain": 0.3, "plain error": 0.01}
    >>> verdict(pd.DataFrame([row]))
    'propensity-scored: 1 of 1 within 4 standard errors of the complete truth; without propensities: 0 of 1'
    """
    away = sigmas(table)
    inside = {form: int((away[form] <= SIGMAS).sum()) for form in ("scored", "plain")}
    return (
        f"propensity-scored: {inside['scored']} of {len(away)} within {SIGMAS:.0f} standard errors of the complete truth; "
        f"without propensities: {inside['plain']} of {len(away)}"
    )


def plot(table: pd.DataFrame, draws: int, k: int = 5) -> Figure:
    """At one k: the means over the draws as percent of the value on the complete truth; bars of 4 standard errors."""
    part = table[table["k"] == k].reset_index(drop=True)
    at = np.arange(len(part))
    base = part["complete"].abs()
    looks = {"scored": ("o", "C0", "propensity-scored, observed truth"), "plain": ("s", "C1", "plain, observed truth")}
    with figures.new(width=6.6, height=3.4) as (fig, ax):
        for form, (mark, color, label) in looks.items():
            value, error = 100 * part[form] / base, 100 * SIGMAS * part[f"{form} error"] / base
            fill = color if form == "scored" else "white"
            style = {"markerfacecolor": fill, "markersize": 6, "capsize": 2, "linestyle": "none"}
            ax.errorbar(value, at, xerr=error, marker=mark, color=color, label=label, **style)
        ax.axvline(100, color="black", linewidth=0.8)
        ax.set_yticks(at, part["gain"])
        ax.invert_yaxis()
        ax.set_xlim(0, None)
        ax.set_xlabel(f"mean over {draws:,} draws, % of the complete truth's value at k = {k}")
        inside = int((sigmas(part)["scored"] <= SIGMAS).sum())
        ax.set_title(
            f"With propensities {inside} of {len(part)} gains come out at the complete truth's value", loc="left"
        )
        fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig
