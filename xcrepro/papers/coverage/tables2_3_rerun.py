"""Tables 2 and 3 anew: which k labels to take from a label tree's probabilities.

Cov@k is over the labels with a test point, as in the code the paper builds on (over all labels, eq. 13, every value is
smaller by one factor, which :func:`tested_share` gives). All values are percent.
"""

from __future__ import annotations

import itertools
import math
import time
import timeit
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from xcrepro import decide
from xcrepro.data.dataset import Dataset
from xcrepro.inputs.datasets import printed_name, weights
from xcrepro.papers.coverage import _common
from xcrepro.papers.coverage._common import GREEDY, KS, MIXED, PLAIN, RANDOM, TIME, WEIGHTED, Run, mixed, printed_table
from xcrepro.predictions import TopK
from xcrepro.repro import tables

runs, tested_share = _common.runs, _common.tested_share
METRICS = ("P", "PSP", "Cov")


def rules(ds: Dataset, run: Run, k: int, betas: Sequence[float], search: bool = True) -> dict[str, Callable[[], TopK]]:
    """The rules of tables 2 and 3: PLT, PS-PLT, and the greedy rule for each beta.

    By exact search in the tree; where the run has none, or without ``search``, among the run's candidates.

    Parameters
    ----------
    ds : Dataset
    run : Run
    k : int
    betas : sequence of float
    search : bool

    Returns
    -------
    dict of str to callable
        Rule -> a call that chooses k labels a point.
    """
    w, eta, X = weights(ds), run.probabilities, ds.test.X
    if search and run.tree:
        plain, greedy = partial(run.tree.predict, X, k), partial(run.tree.predict_coverage, X, k)
        weighted = partial(plain, weights=w)
    else:
        plain, greedy = partial(decide.top_k, eta, k), partial(decide.greedy_coverage, eta, k)
        weighted = partial(decide.weighted, eta, k, w)
    return {PLAIN: plain, WEIGHTED: weighted} | {mixed(beta): partial(greedy, float(beta)) for beta in betas}


def compute(ds: Dataset, found: Sequence[Run], betas: Sequence[float]) -> pd.DataFrame:
    """Every rule on every run, decided for each k, by exact search in the tree where there is one.

    Parameters
    ----------
    ds : Dataset
    found : sequence of Run
        From :func:`runs`.
    betas : sequence of float
        Of the greedy rule; 0 is COV-PLT.

    Returns
    -------
    DataFrame
        Columns rule, run, metric (P, PSP, Cov), k, value (percent).
    """
    rows = []
    for run, k in itertools.product(found, KS):
        for rule, choose in (rules(ds, run, k, betas) | {RANDOM: partial(_common.at_random, run, k)}).items():
            rows += [(rule, run.number, metric, k, v) for metric, v in _common.scores(ds, choose(), k).items()]
    table = pd.DataFrame(rows, columns=["rule", "run", "metric", "k", "value"])
    return _common.in_order(table, rule=table["rule"].unique(), metric=METRICS, k=None, run=None)


def compute_means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over the runs.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        rule, metric, k, mean, stderr (percent; NaN for a single run).
    """
    groups = table.groupby(["rule", "metric", "k"], sort=False)["value"]
    return groups.agg(mean="mean", stderr="sem").reset_index()


def check(table: pd.DataFrame) -> pd.DataFrame:
    """The means alone, a row a rule, a column a metric and k. ``table``: from :func:`compute_means`."""
    return _lay_out(table, "mean")


def lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """The means as texts, as tables 2 and 3 print them.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_means`.

    Returns
    -------
    DataFrame
        A row a rule, a column a metric and k: "mean ± standard error".
    """
    text = table["mean"].map("{:.2f}".format) + table["stderr"].map(lambda e: "" if np.isnan(e) else f" ± {e:.2f}")
    return _lay_out(table.assign(text=text), "text")


def _lay_out(table: pd.DataFrame, value: str) -> pd.DataFrame:
    column = table["metric"] + "@" + table["k"].astype(str)
    return tables.spread(table.assign(column=column), ["rule"], "column", value)


def compute_printed(ds: Dataset) -> pd.DataFrame:
    """The rows of tables 2 and 3 for this dataset.

    Parameters
    ----------
    ds : Dataset
        One that the paper has, or its twin.

    Returns
    -------
    DataFrame
        In the layout of :func:`check` and under the same names, percent; no rows where the paper has none.
    """
    table = pd.concat([printed_table(2), printed_table(3)])
    table = table[(table["dataset"] == printed_name(ds)) & table["metric"].isin(METRICS)].astype({"k": int})
    betas = table["variant"].replace("", "0").astype(float)
    rule = table["method"].where(table["variant"] == "", betas.map(mixed))
    table = table.assign(rule=rule).drop_duplicates(["rule", "metric", "k"])  # table 2 has two of table 3's rows
    return _lay_out(table, "value") if len(table) else pd.DataFrame(columns=["rule"])


def compute_claims(table: pd.DataFrame, betas: Sequence[float]) -> pd.DataFrame:
    """What the paper finds, on every cell.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    betas : sequence of float

    Returns
    -------
    DataFrame
        Columns claim, cells, holds, reversed, open, reversed in. A cell holds, or is reversed, when the difference,
        paired over runs, is beyond two standard errors; else it is open. With a single run nothing is open but a tie.
    """
    value = table.pivot(index=["metric", "k", "rule"], columns="run", values="value")
    names = list(table["rule"].unique())
    path = [*(mixed(beta) for beta in sorted(betas)), PLAIN]
    quarter, steps = mixed(0.25), list(itertools.pairwise(path))
    above_random = [(name, RANDOM) for name in names]
    found = [  # claim, metric, pairs of rules of which the first is said to be above
        ("COV-PLT has the highest Cov@k", "Cov", [(GREEDY, name) for name in names]),
        ("a larger beta lowers Cov@k", "Cov", steps),
        ("a larger beta raises P@k", "P", [(b, a) for a, b in steps]),
        ("PS-PLT has the highest PSP@k", "PSP", [(WEIGHTED, name) for name in names]),
        ("PLT has the highest P@k", "P", [(PLAIN, name) for name in names]),
        ("every rule has higher P@k than BRS-PLT", "P", above_random),
        ("every rule has higher Cov@k than BRS-PLT", "Cov", above_random),
    ]
    if quarter in names:
        others = [(quarter, name) for name in names if name != GREEDY]
        found.append(("beta = 0.25 has the second highest Cov@k", "Cov", others))
        between = [(quarter, GREEDY), (PLAIN, quarter)]
        found.append(("beta = 0.25 lies between COV-PLT and PLT in P@k", "P", between))
    rows = []
    for claim, metric, pairs in found:
        cells = [(k, a, b) for a, b in pairs for k in KS if a != b]
        verdicts = [_verdict(value.loc[metric, k, a] - value.loc[metric, k, b]) for k, a, b in cells]
        where = [f"{metric}@{k}: {a}, {b}" for (k, a, b), v in zip(cells, verdicts, strict=True) if v < 0]
        counts = [verdicts.count(which) for which in (1, -1, 0)]
        rows.append((claim, len(cells), *counts, "; ".join(where) or "-"))
    return pd.DataFrame(rows, columns=["claim", "cells", "holds", "reversed", "open", "reversed in"])


def _verdict(difference: pd.Series) -> int:
    mean = float(difference.mean())
    error = float(difference.sem()) if difference.size > 1 else 0.0
    return 0 if abs(mean) <= 2 * error else int(np.sign(mean))


def compute_candidates(ds: Dataset, found: Sequence[Run], sizes: Sequence[int], beta: float = 0.0) -> pd.DataFrame:
    """What the greedy rule loses when it sees only the most probable labels of each point.

    Parameters
    ----------
    ds : Dataset
    found : sequence of Run
    sizes : sequence of int
        Numbers of candidates a point.
    beta : float
        Of the rule.

    Returns
    -------
    DataFrame
        candidates (a text: a number, or "all" by exact search in the tree), k, P, Cov, same (percent of places filled
        as by the search; NaN without a tree). Means over runs, percent.
    """
    rows = []
    for run, k in itertools.product(found, KS):
        exact = run.tree.predict_coverage(ds.test.X, k, beta) if run.tree else None
        tops = {str(n): decide.greedy_coverage(TopK.from_scores(run.probabilities, n).to_csr(), k, beta) for n in sizes}
        for name, top in (tops | ({"all": exact} if exact else {})).items():
            same = 100 * float(np.mean(top.ids == exact.ids)) if exact else math.nan
            rows.append({"candidates": name, "k": k, **_common.scores(ds, top, k), "same": same})
    table = pd.DataFrame(rows).drop(columns="PSP").groupby(["candidates", "k"], sort=False).mean().reset_index()
    return _common.in_order(table, k=None, candidates=[*map(str, sizes), "all"])[list(table)]


def compute_decided_once(ds: Dataset, found: Sequence[Run], betas: Sequence[float] = (0.0, 0.25)) -> pd.DataFrame:
    """The first k places of one decision for k = 5, and a decision for each k.

    Parameters
    ----------
    ds : Dataset
    found : sequence of Run
    betas : sequence of float
        Of the greedy rule.

    Returns
    -------
    DataFrame
        rule, k, and P and Cov of both: ``P, each k``, ``P, once for 5``, ``Cov, each k``, ``Cov, once for 5``. Means
        over runs, percent.
    """
    rows = []
    for run, beta in itertools.product(found, betas):
        five = decide.greedy_coverage(run.probabilities, 5, beta)
        for k in KS[:-1]:
            each = _common.scores(ds, decide.greedy_coverage(run.probabilities, k, beta), k)
            once = _common.scores(ds, five.head(k), k)
            rows.append((mixed(beta), k, each["P"], once["P"], each["Cov"], once["Cov"]))
    columns = ["rule", "k", "P, each k", "P, once for 5", "Cov, each k", "Cov, once for 5"]
    return pd.DataFrame(rows, columns=columns).groupby(["rule", "k"], sort=False).mean().reset_index()


def compute_times(ds: Dataset, found: Sequence[Run], betas: Sequence[float], k: int = 5) -> pd.DataFrame:
    """CPU time of each rule by search in the tree, and of the decision among candidates that are there.

    Parameters
    ----------
    ds : Dataset
    found : sequence of Run
        Those without a tree are left out.
    betas : sequence of float
        Of the greedy rule.
    k : int

    Returns
    -------
    DataFrame
        rule, search ms (a test point), search / PLT and printed / PLT (the ratio of table 2, NaN where it has none),
        decision ms. Means over runs; shown, never compared.
    """
    n, rows = ds.test.Y.shape[0], []
    for run in (run for run in found if run.tree):
        chosen = rules(ds, run, k, betas, search=False)
        for rule, searched in rules(ds, run, k, betas).items():
            rows.append((rule, 1000 * _cpu(searched) / n, 1000 * _cpu(chosen[rule]) / n))
    table = pd.DataFrame(rows, columns=["rule", "search ms", "decision ms"])
    table = table.groupby("rule", sort=False).mean().reset_index()
    if len(table):
        t = printed_table(2)
        t = t[(t["dataset"] == printed_name(ds)) & (t["metric"] == TIME)].set_index("method")["value"]
        printed = {name: ms / t[PLAIN] for name, ms in t.rename({MIXED: mixed(0.25)}).items()}
        table.insert(2, "search / PLT", table["search ms"] / table["search ms"].iloc[0])
        table.insert(3, "printed / PLT", table["rule"].map(printed).astype(float))
    return table


def _cpu(work: Callable) -> float:
    work()  # compiled and warm
    return timeit.timeit(work, timer=time.process_time, number=1)
