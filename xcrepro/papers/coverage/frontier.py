"""P@k against Cov@k of every rule in tables 2 and 3: a new figure, the paper has none."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.findings import Difference, corrected, count
from xcrepro.papers.coverage._common import MIXED, printed_difference, printed_table
from xcrepro.repro import figures, tables


def compute() -> pd.DataFrame:
    """Precision and coverage of every rule, from tables 2 and 3.

    COV-PLT and the beta = 0.25 of table 2 are table 3's beta = 0 and 0.25 (``tables1_to_3`` counts that they agree).

    Returns
    -------
    DataFrame
        Columns dataset, method, beta ("" where it has none), k, P, P stderr, Cov, Cov stderr; percent, errors over
        five runs.
    """
    t = pd.concat([printed_table(3).assign(method=MIXED), printed_table(2).query("variant == ''")])
    t = t[t["metric"].isin(["P", "Cov"])].astype({"k": int, "stderr": float}).rename(columns={"variant": "beta"})
    errors = t.assign(metric=t["metric"] + " stderr", value=t["stderr"])
    rows = ["dataset", "method", "beta", "k"]
    wide = tables.spread(pd.concat([t, errors]), rows, "metric", "value")
    return wide[[*rows, "P", "P stderr", "Cov", "Cov stderr"]]


def compute_against_path(table: pd.DataFrame) -> pd.DataFrame:
    """Each rule without a beta against the four points of COVbeta-PLT.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        Columns dataset, k, method, dominated by, dominates, P minus path. ``dominated by`` names the betas that are
        clearly better in both P and Cov, ``dominates`` those that are clearly worse in both ("-": none): by Student's law on
        the printed errors, the weaker of the two counting, corrected over the betas (Holm). ``P minus path`` is the
        precision over the straight line between neighbouring betas at the rule's own coverage, percentage points; missing
        where its coverage is outside that of the betas. The line is an aid: nobody ran the betas in between, and where the
        path bulges it lies too low.
    """
    rows = []
    for (dataset, k), part in table.groupby(["dataset", "k"], sort=False):
        path = part[part["beta"] != ""].sort_values("beta")
        for rule in part[part["beta"] == ""].to_dict("records"):
            both = corrected(_in_both(beta, rule) for beta in path.to_dict("records"))
            names = [", ".join(one.left for one in both if one.verdict == way) or "-" for way in ("above", "below")]
            order = path.sort_values("Cov")
            line = np.interp(rule["Cov"], order["Cov"], order["P"], left=np.nan, right=np.nan)
            rows.append((dataset, k, rule["method"], *names, rule["P"] - float(line)))
    return pd.DataFrame(rows, columns=["dataset", "k", "method", "dominated by", "dominates", "P minus path"])


def _in_both(beta: dict, rule: dict) -> Difference:
    """The lead of a beta over a rule in the one of P and Cov where it is less sure; none where the two disagree."""
    leads = [
        printed_difference(beta["beta"], rule["method"], beta[m], beta[f"{m} stderr"], rule[m], rule[f"{m} stderr"])
        for m in ("P", "Cov")
    ]
    weaker = max(leads, key=lambda one: one.p)
    return weaker if leads[0].value * leads[1].value > 0 else replace(weaker, p=1.0)


def steps(table: pd.DataFrame, metric: str) -> list[Difference]:
    """Each beta of the path less the next smaller one, corrected together.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    metric : {"P", "Cov"}

    Returns
    -------
    list of Difference
    """
    found, error = [], f"{metric} stderr"
    for _, part in table[table["beta"] != ""].groupby(["dataset", "k"], sort=False):
        path = part.assign(at=part["beta"].astype(float)).sort_values("at").to_dict("records")
        for low, high in itertools.pairwise(path):
            values = high[metric], high[error], low[metric], low[error]
            found.append(printed_difference(high["beta"], low["beta"], *values))
    return corrected(found)


def findings(table: pd.DataFrame) -> list[str]:
    """What a larger beta does, and who is beaten by the path in both, or beats it.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    list of str
    """
    lower = [replace(one, value=-one.value) for one in steps(table, "Cov")]
    said = [
        count(lower, "as printed, a larger β lowers Cov@k"),
        count(steps(table, "P"), "as printed, a larger β raises P@k"),
    ]
    claims = compute_claims(table).groupby("method", sort=False).sum(numeric_only=True)
    for method, one in claims.iterrows():
        said.append(
            f"{method}: some β is clearly better in both P@k and Cov@k in {one['dominated']} of {one['datasets']} panels; "
            f"it is clearly better in both than some β in {one['dominates']} (Holm over the β of a panel)"
        )
    return said


def compute_claims(table: pd.DataFrame) -> pd.DataFrame:
    """How often each rule is dominated by a beta or dominates one, and on which side of their path it lies.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        method, k, then numbers of datasets: datasets, dominated, dominates, beside the path (its coverage is in their
        range), above it.
    """
    t = compute_against_path(table)
    counted = {
        "datasets": True,
        "dominated": t["dominated by"] != "-",
        "dominates": t["dominates"] != "-",
        "beside the path": t["P minus path"].notna(),
        "above it": t["P minus path"] > 0,
    }
    return t[["method", "k"]].assign(**counted).groupby(["method", "k"], sort=False).sum().reset_index()


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """P@k against Cov@k, a panel a dataset, bars of one standard error.

    Parameters
    ----------
    table : DataFrame
        The rows of one k of :func:`compute`.
    ax : array of six Axes, optional
    """
    [k] = table["k"].unique()
    with figures.new(looks.WIDE, 5.6, nrows=2, ncols=3, ax=ax) as (fig, axes):
        for panel, (name, part) in zip(axes.flat, table.groupby("dataset", sort=False), strict=True):
            path = part[part["beta"] != ""].sort_values("Cov")
            _mark(panel, path, "COVβ-PLT")
            for row, shift in zip(path.iloc[[0, -1]].itertuples(), ((-12, 8), (5, 4)), strict=True):
                looks.name(panel, f"β={row.beta}", (row.Cov, row.P), shift)
            for method, rule in part[part["beta"] == ""].groupby("method", sort=False):
                _mark(panel, rule, method)
            figures.draws(panel, x="Cov", y="P")
            panel.set_title(name, loc="left")
            panel.margins(0.16)
        looks.label_grid(axes, f"Cov@{k}, %", f"P@{k}, %")
        note = "β = 1, 0.5, 0.25, 0 from left to right; bars: one standard error, mostly hidden by the marks"
        looks.legend(fig, title=note)
        looks.title(fig, f"P@{k} against Cov@{k} of the rules in tables 2 and 3, as printed")
    return fig


def _mark(ax, part: pd.DataFrame, method: str) -> None:
    line = looks.of(method).line() | ({} if len(part) > 1 else {"linestyle": "none"})
    ax.errorbar(part["Cov"], part["P"], xerr=part["Cov stderr"], yerr=part["P stderr"], **line, ms=6, label=method)
