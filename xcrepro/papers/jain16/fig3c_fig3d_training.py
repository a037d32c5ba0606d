"""Figs. 3c and 3d of Jain et al. 2016: training on what is left of the labels, propensities right and wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, models, propensity
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Difference, Measured, agreement, corrected, count
from xcrepro.inputs import parameters, trained
from xcrepro.metrics import ranking
from xcrepro.metrics.significance import t_reach
from xcrepro.papers.jain16._common import REFERENCE, B, K, check_curves, taken_for_complete
from xcrepro.repro import figures
from xcrepro.truth import Truth

PLAIN, CONSTANT, SCORED = "FastXML", "FastXML, constant ideal", "PfastXML"


def check_parameters(values: Mapping[str, object]) -> None:
    """:func:`xcrepro.inputs.parameters.check`, and the rule of ``curves``."""
    parameters.check(values)
    check_curves(values["curves"])


def compute_trainings(
    ds: Dataset, grid: Sequence[float], draws: int, trees: int, seed: int = 0, k: int = K
) -> pd.DataFrame:
    """nDCG@k on the complete test truth after training on what is left of the complete train truth.

    Parameters
    ----------
    ds : Dataset
        Of a twin both truths are known; of real data the observed labels are taken for them. The propensities are eq. 1's
        from the counts of that train truth.
    grid : sequence of float
        A of the curves along which labels go missing; the reference's is added.
    draws : int
        A draw is what goes missing and the seed of the trees: within a draw all models see the same labels.
    trees : int
        Of each forest.

    Returns
    -------
    DataFrame
        A row a training: A (of the curve along which labels went missing), assumed (A of the propensities the model
        was given, NaN for none), model, draw, missing % (of that draw), nDCG (percent, the paper's). PfastXML is
        trained for every A of ``grid`` with its true propensities (fig. 3c), and on the reference curve with those of
        every other A (fig. 3d); there also FastXML with PfastXML's constant normaliser, which is all that eq. 4
        changes besides the propensities.
    """
    grid = sorted({*grid, REFERENCE})
    truth, complete = Truth.of(taken_for_complete(ds.train)), taken_for_complete(ds.test)
    weights = {A: propensity.inverse(truth.label_counts(), ds.n_train, A, B) for A in grid}
    rows = []
    for A in grid:
        for draw in range(draws):
            observed = propensity.drop_labels(truth, 1 / weights[A], np.random.default_rng([seed, draw]))
            missing = 100 * (1 - observed.nnz / truth.indices.size)
            options = {"trees": trees, "seed": seed + draw}
            trainings = {(PLAIN, np.nan): models.FastXML(**options)}
            for assumed in grid if A == REFERENCE else [A]:
                trainings[SCORED, assumed] = models.PfastXML(**options, inverse_propensity=weights[assumed])
            if A == REFERENCE:
                trainings[CONSTANT, np.nan] = models.FastXML(**options, ideal="L")
            for (name, assumed), model in trainings.items():
                top = trained.training(model, ds.train.X, observed).predictions(ds.test.X, k)
                value = 100 * ranking.ndcg(complete, top, (k,), ideal="k")[0]
                rows.append((A, assumed, name, draw, missing, value))
    return pd.DataFrame(rows, columns=["A", "assumed", "model", "draw", "missing %", "nDCG"])


def compute(trainings: pd.DataFrame) -> pd.DataFrame:
    """Every model against FastXML on the same draws.

    Parameters
    ----------
    trainings : DataFrame
        Of :func:`compute_trainings`.

    Returns
    -------
    DataFrame
        A, model, assumed, missing %, FastXML, nDCG (means over the draws), difference, error (standard error of the
        mean difference; NaN for one draw), better (in how many draws), draws.
    """
    plain = trainings[trainings["model"] == PLAIN].rename(columns={"nDCG": "FastXML"})[["A", "draw", "FastXML"]]
    pairs = trainings[trainings["model"] != PLAIN].merge(plain, on=["A", "draw"])
    pairs["difference"] = pairs["nDCG"] - pairs["FastXML"]
    pairs["better"] = pairs["difference"] > 0
    groups = pairs.groupby(["A", "model", "assumed"], dropna=False)
    table = groups[["missing %", "FastXML", "nDCG", "difference"]].mean()
    table = table.assign(error=groups["difference"].sem(), better=groups["better"].sum(), draws=groups.size())
    return table.reset_index()


def compute_right(table: pd.DataFrame) -> pd.DataFrame:
    """Fig. 3c: PfastXML with the propensities that labels went missing by.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        Those of its rows.
    """
    return table[(table["model"] == SCORED) & (table["assumed"] == table["A"])].reset_index(drop=True)


def compute_wrong(table: pd.DataFrame) -> pd.DataFrame:
    """Fig. 3d: everything trained on the reference curve, PfastXML with right and wrong propensities.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        Those of its rows.
    """
    return table[table["A"] == REFERENCE].reset_index(drop=True)


def findings(trainings: pd.DataFrame) -> list[str]:
    """What came out, as sentences: each model against FastXML on the same draws, each figure corrected by itself.

    Parameters
    ----------
    trainings : DataFrame
        Of :func:`compute_trainings`.

    Returns
    -------
    list of str
    """
    runs = _runs(trainings)
    right = [(A, assumed) for name, A, assumed in runs if name == SCORED and assumed == A]
    found = [_against(runs, A, (SCORED, A, assumed)) for A, assumed in right]
    said = [f"3c, {count(corrected(found), 'PfastXML with the true propensities is above FastXML')} ({_span(found)})."]
    wrong = [key for key in runs if key[0] == SCORED and key[1] == REFERENCE != key[2]]
    if wrong:
        found = [_against(runs, REFERENCE, key) for key in wrong]
        said.append(
            f"3d, {count(corrected(found), 'PfastXML with wrong propensities is above FastXML')} ({_span(found)})."
        )
        given = {f"A = {key[2]:g}": runs[key] for key in runs if key[0] == SCORED and key[1] == REFERENCE}
        leader = Measured.of_runs(given).leader(f"nDCG@{K} among what PfastXML was given")
        said.append(f"{leader.text[0].upper()}{leader.text[1:]}; the truth is A = {REFERENCE:g}.")
    normaliser = _against(runs, REFERENCE, (CONSTANT, REFERENCE, None))
    claim = "FastXML with PfastXML's constant normaliser, and no propensities, is above FastXML"
    said.append(f"3d, {count([normaliser], claim)} ({_span([normaliser])}).")
    return said


def findings_recorded(trainings: pd.DataFrame, recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of training with the true propensities.

    Parameters
    ----------
    trainings : DataFrame
        Of :func:`compute_trainings`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`compute_right`, as recorded.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    runs = _runs(trainings)
    right = [A for name, A, assumed in runs if name == SCORED and assumed == A]
    tested = corrected(_against(runs, A, (SCORED, A, A)) for A in right)
    found = [
        replace(one, left=f"{SCORED} with A = {A:g}", right=f"{PLAIN} with A = {A:g}")
        for A, one in zip(right, tested, strict=True)
    ]
    values = {
        dataset: {
            f"{model} with A = {A:g}": value
            for model, column in ((SCORED, "nDCG"), (PLAIN, "FastXML"))
            for A, value in zip(table["A"], table[column], strict=True)
        }
        for dataset, table in recorded.items()
    }
    return [agreement(found, values, f"nDCG@{K}", "pairs of trainings")]


def _runs(trainings: pd.DataFrame) -> dict[tuple, np.ndarray]:
    """(model, A, assumed or None) -> nDCG, a number a draw."""
    groups = trainings.sort_values("draw").groupby(["model", "A", "assumed"], dropna=False, sort=True)["nDCG"]
    return {(name, A, None if np.isnan(assumed) else assumed): part.to_numpy() for (name, A, assumed), part in groups}


def _against(runs: dict[tuple, np.ndarray], A: float, key: tuple) -> Difference:
    return Measured.of_runs({key[0]: runs[key], PLAIN: runs[PLAIN, A, None]}).difference(key[0], PLAIN)


def _span(differences: Sequence[Difference]) -> str:
    low, high = (f"{end(one.value for one in differences):+.1f}" for end in (min, max))
    return f"{low} points" if low == high else f"{low} to {high} points"


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Figs. 3c and 3d: against the share of labels missing, and against the A that PfastXML was given.

    Bars are the 95 % interval (Student's t over the draws) of the difference from FastXML; one draw has none.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of Axes, optional
        Two.
    """
    t = t_reach(0.95, np.maximum(table["draws"] - 1, 1))
    table = table.assign(bar=(t * table["error"]).fillna(0.0))
    with figures.new(looks.MEDIUM, 3.6, ncols=2, ax=ax) as (fig, (left, right)):
        part = compute_right(table).sort_values("missing %")
        scored = looks.of(SCORED).line() | {"capsize": 2}
        plain = looks.of(PLAIN)
        left.plot(part["missing %"], part["FastXML"], label="FastXML", **plain.line())
        left.errorbar(part["missing %"], part["nDCG"], part["bar"], label="PfastXML", **scored)
        left.set(xlabel="train labels missing, % of the pairs", ylabel=f"nDCG@{K}, complete truth, %")
        left.set_title("c: given the true propensities", loc="left")
        figures.draws(left, x="missing %", y=["FastXML", "nDCG"])

        part = compute_wrong(table)
        given = part[part["model"] == SCORED].sort_values("assumed")
        exact = given[given["assumed"] == REFERENCE]
        constant = part.loc[part["model"] == CONSTANT, "nDCG"].iloc[0]
        right.axhline(part["FastXML"].iloc[0], linestyle=plain.dash, color=plain.colour, label="FastXML")
        right.axhline(constant, color=looks.TEAL, linestyle=":", label="FastXML, PfastXML's normaliser")
        right.errorbar(given["assumed"], given["nDCG"], given["bar"], label="PfastXML", **scored)
        ring = {"color": looks.RUST, "markersize": 9, "fillstyle": "none", "linestyle": "none"}
        right.plot(exact["assumed"], exact["nDCG"], "o", label=f"PfastXML, the true A = {REFERENCE}", **ring)
        right.set(xlabel="A of the propensities PfastXML was given")
        right.set_title(f"d: labels missing by A = {REFERENCE}", loc="left")
        figures.draws(right, x="assumed", y="nDCG")
        looks.legend(fig, left, right, ncols=2)
    return fig
