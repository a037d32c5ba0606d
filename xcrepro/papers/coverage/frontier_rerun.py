"""P@k against Cov@k over beta, with the tree's probabilities, calibrated ones and, for a twin, the true ones.

The true ones are those of the observed truth: on it models are trained, and selections tested.

Cov@k is over the labels with a test point, as in the code the paper builds on. All values are percent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import calibrate, decide, looks, metrics
from xcrepro.arguments import real_number
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.findings import Difference, Measured, agreement, corrected, numbers
from xcrepro.inputs.datasets import weights
from xcrepro.papers.coverage._common import (
    KS,
    RANDOM,
    TREE,
    WEIGHTED,
    Run,
    at_random,
    check_betas,
    scores,
    tested_share,
)
from xcrepro.papers.coverage._common import runs as runs  # what the notebook calls
from xcrepro.predictions import TopK
from xcrepro.repro import figures

PASSES = "COV-PLT, 3 passes"
FLOOR = "eq. 14"

TRUE = "true probabilities"
PLAIN = "top k"
SOURCES = (
    looks.of("PLT"),
    looks.Look(looks.AMBER, "s", "--"),
    looks.Look(looks.VIOLET, "P", "-"),
    looks.Look(looks.SKY, "X", ":"),
)
"""Of a first model's probabilities, the same calibrated; of a second model's, as well."""
LOOK_TRUE = looks.Look(looks.LEAF, "o", "-")


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules, those of ``betas``, and that ``share`` is above 0 and at most 1.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError, DataMissing
        As :func:`xcrepro.papers.coverage._common.check_betas`.
    """
    check_betas(values)
    real_number("parameter share", values["share"], above=0, at_most=1)


def sources(ds: Dataset, found: Mapping[str, Sequence[Run]]) -> dict[str, sparse.csr_matrix]:
    """The probabilities to choose from.

    Parameters
    ----------
    ds : Dataset
    found : mapping of str to sequence of Run
        From :func:`runs`; the first run of each model is taken.

    Returns
    -------
    dict of str to csr_matrix
        Name -> each model's; the same after isotonic regression, each tenth of the test points by a map fitted on the
        others; and, for a twin, the true ones of the observed truth.
    """
    probabilities = {}
    for name, (run, *_) in found.items():
        top = TopK.from_scores(run.probabilities, int(np.diff(run.probabilities.indptr).max()))
        probabilities[name] = run.probabilities
        probabilities[f"{name}, isotonic"] = calibrate.cross_fit_top(ds.test.Y, top).to_csr()
    if isinstance(ds, Twin):
        probabilities[TRUE] = ds.test.observed_marginals
    return probabilities


def compute(ds: Dataset, found: Mapping[str, sparse.csr_matrix], betas: Sequence[float]) -> pd.DataFrame:
    """P@k and Cov@k over beta.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        From :func:`sources`.
    betas : sequence of float
        The plain top k is added as beta = inf.

    Returns
    -------
    DataFrame
        Columns source, k, beta, P, Cov, and what the probabilities themselves lead to expect: expected P, expected
        Cov (over labels with a test point, like Cov).
    """
    rows, share = [], tested_share(ds)
    for (name, eta), k, beta in itertools.product(found.items(), KS, [*sorted(map(float, betas)), math.inf]):
        top = decide.greedy_coverage(eta, k, beta)
        value = scores(ds, top, k)
        P, Cov = decide.expected_precision(eta, top, k)[0], decide.expected_coverage(eta, top, k)[0]
        rows.append((name, k, beta, value["P"], value["Cov"], 100 * P, 100 * Cov / share))
    return pd.DataFrame(rows, columns=["source", "k", "beta", "P", "Cov", "expected P", "expected Cov"])


def compute_others(ds: Dataset, run: Run) -> pd.DataFrame:
    """The rules without a beta on the model's probabilities, three passes of the greedy rule among them.

    Parameters
    ----------
    ds : Dataset
    run : Run

    Returns
    -------
    DataFrame
        rule, k, P, Cov (percent).
    """
    rows, eta = [], run.probabilities
    for k in KS:
        rules = {WEIGHTED: decide.weighted(eta, k, weights(ds)), RANDOM: at_random(run, k)}
        rules[PASSES] = decide.greedy_coverage(eta, k, passes=3)
        rows += [{"rule": rule, "k": k, **scores(ds, top, k)} for rule, top in rules.items()]
    return pd.DataFrame(rows)[["rule", "k", "P", "Cov"]]


def compute_constrained(ds: Dataset, found: Mapping[str, sparse.csr_matrix], share: float) -> pd.DataFrame:
    """The largest coverage whose expected P@k keeps a share of the plain top k's (eq. 14), without a look at the truth.

    Parameters
    ----------
    ds : Dataset
    found : mapping of str to csr_matrix
        From :func:`sources`.
    share : float
        Of the plain top k's expected P@k, above 0 and at most 1.

    Returns
    -------
    DataFrame
        source, k, beta, P kept (percent of the plain top k's P@k on the truth; the floor is 100 ``share`` of what the
        probabilities expect), P, Cov (percent), Cov gain (over the plain top k's Cov, points).
    """
    rows = []
    for (name, eta), k in itertools.product(found.items(), KS):
        plain = decide.top_k(eta, k)
        best = decide.for_precision(eta, k, share * float(decide.expected_precision(eta, plain, k)[0]))
        before, after = scores(ds, plain, k), scores(ds, best.top, k)
        gain = after["Cov"] - before["Cov"]
        rows.append((name, k, best.beta, 100 * after["P"] / before["P"], after["P"], after["Cov"], gain))
    return pd.DataFrame(rows, columns=["source", "k", "beta", "P kept", "P", "Cov", "Cov gain"])


def compute_drawn(path: pd.DataFrame, others: pd.DataFrame, constrained: pd.DataFrame) -> pd.DataFrame:
    """What :func:`plot` draws: the path over beta, then the rules without a beta, then the constrained selections.

    Parameters
    ----------
    path : DataFrame
        From :func:`compute`.
    others : DataFrame
        From :func:`compute_others`.
    constrained : DataFrame
        From :func:`compute_constrained`.

    Returns
    -------
    DataFrame
        source ("" for the rules), rule ("" on the path, "eq. 14" for the constrained), then the columns of the three
        tables, NaN where one has none.
    """
    parts = [path.assign(rule=""), others.assign(source=""), constrained.assign(rule=FLOOR)]
    table = pd.concat(parts, ignore_index=True)
    return table[["source", "rule", *table.columns.drop(["source", "rule"])]]


def plot(table: pd.DataFrame, share: float, ax=None) -> Figure:
    """P@k against Cov@k, a panel a k, a line a source of probabilities; a ring marks the constrained selection.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_drawn`.
    share : float
        Of the expected P@k that the constrained selection keeps.
    ax : array of three Axes, optional
    """
    names = [name for name in table["source"].unique() if name]
    look_of = dict(zip([name for name in names if name != TRUE], itertools.cycle(SOURCES), strict=False))
    single = {WEIGHTED: looks.of(WEIGHTED), RANDOM: looks.of(RANDOM), PASSES: looks.Look(looks.INK, "D")}
    ring = {"edgecolors": looks.INK, "facecolors": "none", "zorder": 3}
    with figures.new(looks.WIDE, 3.8, ncols=len(KS), ax=ax) as (fig, axes):
        for panel, k in zip(axes, KS, strict=True):
            of_k = table[table["k"] == k]
            for name in names:
                part = of_k[of_k["source"] == name]
                path, best = part[part["rule"] == ""], part[part["rule"] == FLOOR]
                panel.plot(path["Cov"], path["P"], **look_of.get(name, LOOK_TRUE).line(), label=name)
                panel.scatter(best["Cov"], best["P"], 110, **ring, label=f"eq. 14: {100 * share:g} % of expected P@k")
            # Below it: from there the path runs to the right, down or first up.
            looks.name(panel, "top k", (path["Cov"].iloc[-1], path["P"].iloc[-1]), (0, -14), ha="center")
            if len(path) > 1:
                looks.name(panel, f"β={path['beta'].iloc[0]:g}", (path["Cov"].iloc[0], path["P"].iloc[0]), (-30, -4))
            for rule, look in single.items():
                part = of_k[of_k["rule"] == rule]
                panel.scatter(part["Cov"], part["P"], 45, **look.mark(), label=rule, zorder=3)
            panel.set(xlabel=f"Cov@{k}, % of labels with a test point", title=f"k = {k}")
            panel.margins(0.1)
            figures.draws(panel, x="Cov", y="P")
        axes[0].set_ylabel("P@k, %")
        looks.legend(fig, axes[0], ncols=4)
        looks.title(fig, "P@k against Cov@k over β, by the probabilities that the greedy rule chooses from")
    return fig


def findings(
    ds: Dataset, found: Mapping[str, sparse.csr_matrix], betas: Sequence[float], share: float, k: int = 5
) -> list[str]:
    """What each source expects and gets, what equation 14 buys with it, and whether a finite beta beats its top k in P.

    Parameters
    ----------
    ds : Dataset
    found : mapping of str to csr_matrix
        From :func:`sources`.
    betas : sequence of float
    share : float
        As for :func:`compute_constrained`.
    k : int

    Returns
    -------
    list of str
        Errors are over test points, of these choices.
    """
    covered, said = tested_share(ds), []
    for name, eta in found.items():
        plain = decide.top_k(eta, k)
        expected = float(decide.expected_precision(eta, plain, k)[0])
        best = decide.for_precision(eta, k, share * expected)
        tops = {"top k": plain, "eq. 14": best.top} | {f"{b:g}": decide.greedy_coverage(eta, k, b) for b in betas}
        P = Measured.of_rows(lambda Y, top: 100 * metrics.precision(Y, top, k)[0], ds.test.Y, tops)
        Cov = Measured.of_rows(lambda Y, top: 100 / covered * metrics.coverage(Y, top, k)[0], ds.test.Y, tops)
        said.append(
            f"{name}: P@{k} of the plain top {k} is {_with_error(P, 'top k')} %; it expects {100 * expected:.1f} %."
        )
        cost, gain = corrected([P.difference("eq. 14", "top k"), Cov.difference("eq. 14", "top k")])
        said.append(
            f"{name}, equation 14 with {100 * share:g} % of that kept: Cov@{k} {_change(gain)}, P@{k} {_change(cost)}."
        )
        above = P.differences((f"{b:g}", "top k") for b in sorted(betas))
        better = [one.left for one in above if one.verdict == "above"]
        if above:
            which = f"β = {', '.join(better)}" if better else "none"
            said.append(
                f"{name}: of {len(above)} β, P@{k} is clearly above that of the plain top {k} (Holm) for: {which}."
            )
    return said


def findings_recorded(
    ds: Dataset,
    found: Mapping[str, sparse.csr_matrix],
    betas: Sequence[float],
    recorded: Mapping[str, pd.DataFrame],
    k: int = 5,
) -> list[str]:
    """Whether real data say the same of each beta against the plain top k, with the label tree's probabilities.

    Parameters
    ----------
    ds : Dataset
    found, betas
        As for :func:`findings`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`compute`, as recorded.
    k : int

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    if TREE not in found:
        return []
    eta, covered = found[TREE], tested_share(ds)
    tops = {_named(beta): decide.greedy_coverage(eta, k, beta) for beta in betas} | {PLAIN: decide.top_k(eta, k)}
    measures = {
        "P": lambda Y, top: 100 * metrics.precision(Y, top, k)[0],
        "Cov": lambda Y, top: 100 / covered * metrics.coverage(Y, top, k)[0],
    }
    of_tree = {
        dataset: table[(table["source"] == TREE) & (table["k"] == k)].assign(rule=lambda rows: rows["beta"].map(_named))
        for dataset, table in recorded.items()
    }
    return [
        agreement(
            Measured.of_rows(measure, ds.test.Y, tops).differences((name, PLAIN) for name in tops if name != PLAIN),
            numbers(of_tree, "rule", column),
            f"{column}@{k}",
            "pairs of a β and the plain top k",
        )
        for column, measure in measures.items()
    ]


def _named(beta: float) -> str:
    return f"β = {beta:g}" if np.isfinite(beta) else PLAIN


def _with_error(measured: Measured, name: str) -> str:
    error = measured.error(name)
    return f"{measured.values[name]:.1f}" + ("" if np.isnan(error) else f" ± {error:.1f}")


def _change(found: Difference) -> str:
    if not found.clear:
        around = "" if np.isnan(found.error) else f" ± {found.error:.1f}"
        return f"does not change clearly ({found.value:+.1f}{around} points)"
    return f"{'rises' if found.value > 0 else 'falls'} by {abs(found.value):.1f} ± {found.error:.1f} points"
