"""Table 1 of Jain et al. 2016: every gain, and that it is unbiased, by Monte Carlo.

A *gain* is a metric of one point's prediction, more is better. Its propensity-scored form divides each relevant
label's part by the label's propensity p_l, the chance that a relevant label was marked at all. The claim is that the
mean of the scored gain over many draws of what went missing is the plain gain on the complete truth.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.arguments import whole_number
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import parameters
from xcrepro.inputs.datasets import weights
from xcrepro.metrics import ranking
from xcrepro.metrics.significance import holm, t_p_value
from xcrepro.papers.jain16._common import KS, LOOKS, simulate
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

# Gain -> group of the table, our function, and the names of the plain and the scored form in metrics.table().
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
RECORDED_DRAWS = 1000
"""The notebook's own number of draws, with which real data were recorded."""
STRICT = 0.001
"""A p-value below it is no chance, here: what is tested is a theorem, and one run in twenty should not seem to refute it."""
COROLLARY = ("Recall@k", "MRR", "ADG")
"""Gains whose normaliser is the number of relevant labels alone, as corollary 4.2.1 asks."""


def check_parameters(values: Mapping[str, object]) -> None:
    """:func:`xcrepro.inputs.parameters.check`, and ``points`` is 1 or more."""
    parameters.check(values)
    whole_number("parameter points", values["points"], 1)


def compute_functions() -> pd.DataFrame:
    """Where each gain of table 1 is.

    Returns
    -------
    DataFrame
        group (``a`` or ``b``), gain, function; ``...`` stands for Y, top, ks and ``inverse_propensity``, in group b
        also ``n_relevant``.
    """
    rows = [(group, name, call) for name, (group, call, *_) in GAINS.items()]
    return pd.DataFrame(rows, columns=["group", "gain", "function"])


def propensities(ds: Dataset) -> np.ndarray:
    """(L,) a twin's own, else those of the model with the dataset's A and B."""
    return ds.propensities if isinstance(ds, Twin) else 1.0 / weights(ds)


def compute(Y, top: TopK, propensity: np.ndarray, draws: int = 400, seed: int = 0) -> pd.DataFrame:
    """Theorems 4.1, 4.2 and 4.4: labels of ``Y`` are dropped ``draws`` times with 1 - ``propensity``.

    Parameters
    ----------
    Y : array or sparse matrix, shape (n, L)
        Taken for the complete truth, :func:`~xcrepro.papers.jain16._common.taken_for_complete`. Group b is given its
        |y*|.
    top : TopK
        The fixed predictions, 5 places or more.
    propensity : ndarray, shape (L,)

    Returns
    -------
    DataFrame
        gain, k, complete (the plain gain on ``Y``), scored and plain (means over the draws of the scored and of the
        plain gain on what was left) and their standard errors, ``scored error`` and ``plain error``; then scored %
        and plain %, the means in percent of the absolute complete value.
    """
    return _simulate(tuple(GAINS), Y, top, propensity, 1.0 / propensity, Truth.of(Y).sizes, draws, seed)


def compute_corollary(Y, top: TopK, g: np.ndarray, draws: int = 400, seed: int = 0) -> pd.DataFrame:
    """Corollary 4.2.1: a label is kept with g_l / |y*|; with weights 1/g_l no |y*| is needed.

    Parameters
    ----------
    Y, top
        As for :func:`compute`.
    g : ndarray, shape (L,)
        Positive, at most the least |y*|, so at most 1 where a point may have one label.
    draws, seed : int
        As for :func:`compute`.

    Returns
    -------
    DataFrame
        As :func:`compute`, of the gains of :data:`COROLLARY`.
    """
    sizes = Truth.of(Y).sizes
    return _simulate(COROLLARY, Y, top, g / np.maximum(sizes, 1)[:, None], 1.0 / g, np.ones(sizes.size), draws, seed)


def _simulate(gains, Y, top: TopK, kept: np.ndarray, w: np.ndarray, n_relevant, draws: int, seed: int) -> pd.DataFrame:
    plain, scored = ([GAINS[name][place] for name in gains] for place in (2, 3))
    complete = np.array(list(ranking.values(plain, Y, top, KS).values()))
    rngs = [np.random.default_rng(seed)] * draws  # one generator, moved on by every draw
    values = simulate(Y, top, kept, scored + plain, w, rngs, n_relevant=n_relevant)
    return _table(gains, complete, {"scored": values[: len(gains)], "plain": values[len(gains) :]})


def _table(gains, complete: np.ndarray, forms: dict[str, np.ndarray]) -> pd.DataFrame:
    """complete: (gains, ks); forms: form -> (gains, draws, ks)."""
    index = pd.MultiIndex.from_product([gains, KS], names=["gain", "k"])
    table = pd.DataFrame({"complete": complete.ravel()}, index).reset_index()
    for form, values in forms.items():
        table[form] = values.mean(axis=1).ravel()
        table[f"{form} error"] = values.std(axis=1, ddof=1).ravel() / np.sqrt(values.shape[1])
    return table.assign(**{f"{form} %": 100 * table[form] / table["complete"].abs() for form in forms})


def compute_sigmas(table: pd.DataFrame, draws: int) -> pd.DataFrame:
    """How far the means lie from the complete truth, in standard errors, and whether chance explains it.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute` or :func:`compute_corollary`.
    draws : int
        As given to it.

    Returns
    -------
    DataFrame
        gain, k, scored, plain (standard errors; NaN where no draw differs), then ``scored apart`` and ``plain apart``:
        "clearly" where Student's t with draws - 1 degrees of freedom, with Holm's correction over the rows, gives p below
        :data:`STRICT`, or where no draw differs and the value does; else "no".
    """
    found = table[["gain", "k"]].copy()
    for form in LOOKS:
        away, error = (table[form] - table["complete"]).abs(), table[f"{form} error"]
        found[form] = away / error.replace(0.0, np.nan)
        exact = np.where(away > 1e-9, 0.0, 1.0)
        p = np.where(error > 0, t_p_value(found[form].fillna(0.0), draws - 1), exact)
        found[f"{form} apart"] = np.where(np.asarray(holm(p)) < STRICT, "clearly", "no")
    return found


def findings(table: pd.DataFrame, corollary: pd.DataFrame, draws: int) -> list[str]:
    """What the draws say.

    Parameters
    ----------
    table, corollary : DataFrame
        From :func:`compute` and :func:`compute_corollary`.
    draws : int
        As given to them.

    Returns
    -------
    list of str
    """
    away = compute_sigmas(table, draws)
    said = [
        f"With propensities {_apart(away, 'scored')} the complete truth's value; without, {_apart(away, 'plain')} (t test over "
        f"{draws:,} draws, Holm's correction, p below {STRICT})."
    ]
    last = table["k"] == table["k"].max()
    clear = table[last & (away["plain apart"] == "clearly")]
    for word, part in (
        ("too low", clear["plain"] < clear["complete"]),
        ("too high", clear["plain"] > clear["complete"]),
    ):
        if part.any():
            said.append(
                f"At k = {table['k'].max()} the plain value is clearly {word} for {', '.join(clear['gain'][part])}."
            )
    without = compute_sigmas(corollary, draws)
    said.append(
        f"Without |y*| (corollary 4.2.1), {_apart(without, 'scored')}; with plain counts {_apart(without, 'plain')}."
    )
    return said


def findings_recorded(recorded: Mapping[str, pd.DataFrame], draws: int = RECORDED_DRAWS) -> list[str]:
    """What real data say, by the same test.

    Parameters
    ----------
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`compute`, as recorded.
    draws : int
        With which it was recorded.

    Returns
    -------
    list of str
        A sentence a dataset.
    """
    found = {dataset: compute_sigmas(table, draws) for dataset, table in recorded.items()}
    return [
        f"Real data first, recorded on {dataset}: with propensities {_apart(away, 'scored')} the complete value; without, "
        f"{_apart(away, 'plain')}."
        for dataset, away in found.items()
    ]


def _apart(away: pd.DataFrame, form: str) -> str:
    return f"{int((away[f'{form} apart'] == 'clearly').sum())} of {len(away)} means are clearly off"


def plot(table: pd.DataFrame, draws: int, k: int = 5, ax=None) -> Figure:
    """Table 1 at one k: the means over the draws as percent of the value on the complete truth.

    Bars of two standard errors.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    draws : int
        As given to it.
    k : int
        One of its k.
    ax : Axes, optional
    """
    part = table[table["k"] == k].reset_index(drop=True)
    with figures.new(looks.NARROW, 3.4, ax=ax) as (fig, ax):
        for form, (label, look) in LOOKS.items():
            error = 100 * 2 * part[f"{form} error"] / part["complete"].abs()
            style = {"markersize": 6, "capsize": 2, "linestyle": "none", "color": look.colour, "marker": look.marker}
            ax.errorbar(part[f"{form} %"], part.index, xerr=error, label=label, **style)
        ax.axvline(100, color="black", linewidth=0.8)
        ax.set_yticks(part.index, part["gain"])
        ax.invert_yaxis()
        ax.set_xlabel(
            f"mean over {draws:,} draws, % of the complete truth's value at k = {k}\n(bars: two standard errors)"
        )
        inside = int((compute_sigmas(part, draws)["scored apart"] == "no").sum())
        looks.title(fig, f"With propensities {inside} of {len(part)} gains are not clearly off the complete truth")
        looks.legend(fig)
        figures.draws(ax, x=("scored %", "plain %"))
    return fig
