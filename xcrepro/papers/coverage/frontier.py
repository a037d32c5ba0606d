"""P@k against Cov@k of every rule in tables 2 and 3: a new figure, the paper has none."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.papers.coverage._common import MIXED, RANDOM, WEIGHTED, printed_table
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
        better in both P and Cov by more than two standard errors of the difference, ``dominates`` those that are
        worse in both by as much ("-": none). ``P minus path`` is the precision over the straight line between
        neighbouring betas at the rule's own coverage, percentage points; missing where its coverage is outside that
        of the betas. The line is an aid: nobody ran the betas in between, and where the path bulges it lies too low.
    """
    rows = []
    for (dataset, k), part in table.groupby(["dataset", "k"], sort=False):
        path = part[part["beta"] != ""].sort_values("beta")
        for rule in part[part["beta"] == ""].to_dict("records"):
            errors = {name: np.hypot(path[f"{name} stderr"], rule[f"{name} stderr"]) for name in ("P", "Cov")}
            lead = [(path[name] - rule[name]) / error for name, error in errors.items()]  # of each beta over the rule
            better, worse = np.minimum(*lead) > 2, np.maximum(*lead) < -2
            order = path.sort_values("Cov")
            line = np.interp(rule["Cov"], order["Cov"], order["P"], left=np.nan, right=np.nan)
            names = [", ".join(path["beta"][which]) or "-" for which in (better, worse)]
            rows.append((dataset, k, rule["method"], *names, rule["P"] - float(line)))
    return pd.DataFrame(rows, columns=["dataset", "k", "method", "dominated by", "dominates", "P minus path"])


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
    """P@k against Cov@k, a panel a dataset, bars of one standard error; the title counts what it says.

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
        looks.title(fig, describe_rivals(table))
    return fig


def _mark(ax, part: pd.DataFrame, method: str) -> None:
    line = looks.of(method).line() | ({} if len(part) > 1 else {"linestyle": "none"})
    ax.errorbar(part["Cov"], part["P"], xerr=part["Cov stderr"], yerr=part["P stderr"], **line, ms=6, label=method)


def describe_rivals(table: pd.DataFrame) -> str:
    """Who is beaten by the path, and who beats it, at one k.

    Parameters
    ----------
    table : DataFrame
        The rows of one k of :func:`compute`.

    Returns
    -------
    str
    """
    counted = compute_claims(table).set_index("method")
    random, weighted, k = counted.loc[RANDOM], counted.loc[WEIGHTED], counted["k"].iloc[0]
    return (
        f"A larger β trades Cov@{k} for P@{k}. Some β beats BRS-PLT on both in {random['dominated']} of "
        f"{random['datasets']} sets;\nPS-PLT is so beaten in {weighted['dominated'] or 'none'}, and itself beats some β "
        f"on both in {weighted['dominates'] or 'none'}."
    )
