"""What the items on the coverage paper's rules compute and draw, run anew: which k labels to take from probabilities.

Cov@k here is over the labels with a test point, as in the code the paper builds on (over all labels, eq. 13, every value
is smaller by one factor, which :func:`factor` gives). All values are percent.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import calibrate, decide, metrics, models
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import baselines, datasets
from xcrepro.inputs.datasets import weights
from xcrepro.predictions import TopK
from xcrepro.repro import coverage, figures

KS = (1, 3, 5)
METRICS = ("P", "PSP", "Cov")
PLAIN, WEIGHTED, GREEDY, RANDOM = "PLT", "PS-PLT", "COV-PLT", "BRS-PLT"


def mixed(beta: float) -> str:
    """The name of the greedy rule with this beta.

    >>> mixed(0.25), mixed(0), mixed(1.0)
    ('COVβ=0.25', 'COV-PLT', 'COVβ=1')
    """
    return f"COVβ={beta:g}" if beta else GREEDY


@dataclass(frozen=True, eq=False)
class Run:
    """One training to choose from: its number, the probabilities of its candidates, and the tree where there is one."""

    number: int
    probabilities: sparse.csr_matrix
    tree: models.PLT | None


def runs(ds: Dataset, repeats: int, given: str = "", candidates: int = baselines.PLACES) -> list[Run]:
    """Label trees trained with seeds 0, 1, ...; or each file of ``given``, whose scores must be probabilities, as a run."""
    if given:
        tops = baselines.saved(given, ds, candidates)
        return [Run(number, top.to_csr(), None) for number, top in enumerate(tops.values())]
    found = []
    for seed in range(repeats):
        training = baselines.training("PLT", ds, seed)
        found.append(Run(seed, training.predictions(ds.test.X, candidates).to_csr(), training.model()))
    return found


def factor(ds: Dataset) -> float:
    """Labels with a test point over all labels: times this, Cov@k is over all labels."""
    return float(np.unique(ds.test.Y.indices).size / ds.test.Y.shape[1])


def scores(ds: Dataset, top: TopK, k: int) -> dict[str, float]:
    """P@k, PSP@k, Cov@k of a selection, percent."""
    Y = ds.test.Y
    found = {
        "P": metrics.precision(Y, top, k),
        "PSP": metrics.psp(Y, top, k, inverse_propensity=weights(ds)),
        "Cov": metrics.coverage(Y, top, k, over="test"),
    }
    return {name: 100 * float(value[0]) for name, value in found.items()}


# ---------------------------------------------------------------- tables 2 and 3


def by_search(run: Run, X, k: int, w: np.ndarray, betas: Sequence[float]) -> dict[str, TopK]:
    """The rules by exact search in the tree: PLT, PS-PLT, and the greedy rule for each beta."""
    found = {PLAIN: run.tree.predict(X, k), WEIGHTED: run.tree.predict(X, k, weights=w)}
    return found | {mixed(beta): run.tree.predict_coverage(X, k, float(beta)) for beta in betas}


def from_candidates(eta: sparse.csr_matrix, k: int, w: np.ndarray, betas: Sequence[float]) -> dict[str, TopK]:
    """The same rules choosing among the labels that ``eta`` stores."""
    found = {PLAIN: decide.top_k(eta, k), WEIGHTED: decide.weighted(eta, k, w)}
    return found | {mixed(beta): decide.greedy_coverage(eta, k, float(beta)) for beta in betas}


def at_random(run: Run, k: int) -> TopK:
    """BRS-PLT: 5 of the 10 most probable labels drawn once, of which the first k count, as in the paper."""
    return decide.bounded_random(run.probabilities, 5, 2, seed=run.number).head(k)


def compared(ds: Dataset, found: Sequence[Run], betas: Sequence[float]) -> pd.DataFrame:
    """Every rule on every run, decided for each k: columns rule, run, metric, k, value.

    By exact search in the tree; where a run has none, among its candidates.
    """
    w, rows = weights(ds), []
    for run in found:
        for k in KS:
            rules = (
                by_search(run, ds.test.X, k, w, betas) if run.tree else from_candidates(run.probabilities, k, w, betas)
            )
            for name, top in (rules | {RANDOM: at_random(run, k)}).items():
                rows += [(name, run.number, metric, k, value) for metric, value in scores(ds, top, k).items()]
    table = pd.DataFrame(rows, columns=["rule", "run", "metric", "k", "value"])
    rules, order = list(dict.fromkeys(table["rule"])), table["metric"].map(METRICS.index)
    table = table.assign(a=table["rule"].map(rules.index), b=order).sort_values(["a", "b", "k", "run"])
    return table.drop(columns=["a", "b"]).reset_index(drop=True)


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over the runs: rule, metric, k, mean, stderr (NaN for a single run)."""
    groups = table.groupby(["rule", "metric", "k"], sort=False)["value"]
    found = groups.agg(mean="mean", stderr=lambda v: v.std(ddof=1) / math.sqrt(len(v)) if len(v) > 1 else np.nan)
    return found.reset_index()


def laid_out(table: pd.DataFrame) -> pd.DataFrame:
    """As the paper lays it out: a row a rule, a column a metric and k, "mean ± standard error". ``table``: :func:`means`."""
    text = table["mean"].map("{:.2f}".format) + table["stderr"].map(lambda e: "" if np.isnan(e) else f" ± {e:.2f}")
    return _columns(table.assign(text=text), "text")


def wide_means(table: pd.DataFrame) -> pd.DataFrame:
    """The means alone in that layout."""
    return _columns(table, "mean")


def _columns(table: pd.DataFrame, value: str) -> pd.DataFrame:
    column = table["metric"] + "@" + table["k"].astype(str)
    found = table.assign(column=column).pivot(index="rule", columns="column", values=value)
    found = found.reindex(index=table["rule"].unique(), columns=column.unique())
    found.columns.name = None
    return found.reset_index()


def printed(ds: Dataset) -> pd.DataFrame:
    """The paper's rows for this dataset, in the same layout and under the same names; no rows where it has none."""
    shown = _printed_name(ds)
    two, three = coverage.table(2), coverage.table(3)
    three = three[~three["variant"].isin(["0", "0.25"])]  # table 2 has these two
    table = pd.concat([two, three])
    table = table[(table["dataset"] == shown) & table["metric"].isin(METRICS)]
    betas = table["variant"].where(table["variant"] != "", "0.25").astype(float)
    rule = table["method"].where(table["method"] != coverage.WEIGHTED, betas.map(mixed))
    table = pd.DataFrame({"rule": rule, "metric": table["metric"], "k": table["k"].astype(int), "mean": table["value"]})
    return _columns(table, "mean") if len(table) else pd.DataFrame(columns=["rule"])


def _printed_name(ds: Dataset) -> str:
    """What the documents call the dataset; empty for a reader's own."""
    name = datasets.registry_name(ds)
    return registry.get(name).printed_name if name in registry.names() else ""


def claims(table: pd.DataFrame, betas: Sequence[float]) -> pd.DataFrame:
    """What the paper finds, on every cell: claim, cells, holds, reversed, open. ``table``: from :func:`compared`.

    A cell holds, or is reversed, when the difference, paired over runs, is beyond two standard errors; else it is open.
    With a single run nothing is open but a tie.
    """
    value = table.pivot(index=["metric", "k", "rule"], columns="run", values="value")
    rules = list(dict.fromkeys(table["rule"]))
    greedy, quarter = GREEDY, mixed(0.25)
    path = [*(mixed(beta) for beta in sorted(betas)), PLAIN]
    steps = list(itertools.pairwise(path))

    def pairs(metric: str, above: Sequence[str], below: Sequence[str]) -> list[tuple[str, int, str, str]]:
        return [(metric, k, a, b) for a in above for b in below for k in KS if a != b]

    found = {
        "COV-PLT has the highest Cov@k": pairs("Cov", [greedy], rules),
        "a larger beta lowers Cov@k": [(("Cov"), k, a, b) for a, b in steps for k in KS],
        "a larger beta raises P@k": [("P", k, b, a) for a, b in steps for k in KS],
        "PS-PLT has the highest PSP@k": pairs("PSP", [WEIGHTED], rules),
        "PLT has the highest P@k": pairs("P", [PLAIN], rules),
        "every rule has higher P@k than BRS-PLT": pairs("P", [r for r in rules if r != RANDOM], [RANDOM]),
        "every rule has higher Cov@k than BRS-PLT": pairs("Cov", [r for r in rules if r != RANDOM], [RANDOM]),
    }
    if quarter in rules:
        others = [rule for rule in rules if rule not in (greedy, quarter)]
        found["beta = 0.25 has the second highest Cov@k"] = pairs("Cov", [quarter], others)
        found["beta = 0.25 lies between COV-PLT and PLT in P@k"] = [
            *(("P", k, quarter, greedy) for k in KS), *(("P", k, PLAIN, quarter) for k in KS)
        ]  # fmt: skip
    rows = []
    for claim, cells in found.items():
        verdicts = [_verdict(value.loc[(m, k, a)] - value.loc[(m, k, b)]) for m, k, a, b in cells]
        where = [f"{m}@{k}: {a}, {b}" for (m, k, a, b), v in zip(cells, verdicts, strict=True) if v < 0]
        row = (claim, len(cells), verdicts.count(1), verdicts.count(-1), verdicts.count(0))
        rows.append((*row, "; ".join(where) or "-"))
    return pd.DataFrame(rows, columns=["claim", "cells", "holds", "reversed", "open", "reversed in"])


def _verdict(difference: pd.Series) -> int:
    mean = float(difference.mean())
    error = float(difference.std(ddof=1) / math.sqrt(difference.size)) if difference.size > 1 else 0.0
    return 0 if abs(mean) <= 2 * error else int(np.sign(mean))


def cuts(ds: Dataset, found: Sequence[Run], sizes: Sequence[int], beta: float = 0.0) -> pd.DataFrame:
    """What the greedy rule loses when it sees only the most probable labels of each point, means over runs.

    Columns candidates (a text: a number, or "all" by exact search in the tree), k, P, Cov, and same (percent of places
    filled as by the search; NaN without a tree).
    """
    rows = []
    for run in found:
        for k in KS:
            exact = run.tree.predict_coverage(ds.test.X, k, beta) if run.tree else None
            for size in sizes:
                top = decide.greedy_coverage(TopK.from_scores(run.probabilities, size).to_csr(), k, beta)
                same = 100 * float((top.ids == exact.ids).mean()) if exact else np.nan
                rows.append((str(size), k, scores(ds, top, k), same))
            if exact:
                rows.append(("all", k, scores(ds, exact, k), 100.0))
    flat = [(size, k, found["P"], found["Cov"], same) for size, k, found, same in rows]
    table = pd.DataFrame(flat, columns=["candidates", "k", "P", "Cov", "same"])
    table = table.groupby(["candidates", "k"], sort=False).mean().reset_index()
    order = [*map(str, sizes), "all"]
    place = table["candidates"].map(order.index)
    return table.assign(place=place).sort_values(["k", "place"]).drop(columns="place").reset_index(drop=True)


def decided_once(ds: Dataset, found: Sequence[Run], betas: Sequence[float] = (0.0, 0.25)) -> pd.DataFrame:
    """The first k places of one decision for k = 5 beside a decision for each k: rule, k, P and Cov of both, means."""
    rows = []
    for run in found:
        for beta in betas:
            five = decide.greedy_coverage(run.probabilities, 5, beta)
            for k in KS[:-1]:
                each = scores(ds, decide.greedy_coverage(run.probabilities, k, beta), k)
                once = scores(ds, five.head(k), k)
                rows.append((mixed(beta), k, each["P"], once["P"], each["Cov"], once["Cov"]))
    columns = ["rule", "k", "P, each k", "P, once for 5", "Cov, each k", "Cov, once for 5"]
    return pd.DataFrame(rows, columns=columns).groupby(["rule", "k"], sort=False).mean().reset_index()


def times(ds: Dataset, found: Sequence[Run], betas: Sequence[float], k: int = 5) -> pd.DataFrame:
    """CPU time a test point of each rule by search in the tree, and of the decision among candidates that are there: rule,
    search ms, search / PLT and printed / PLT (the paper's, NaN where it has none), decision ms. Means over runs; shown, never
    compared. Runs without a tree are left out."""
    w, n, rows = weights(ds), ds.test.Y.shape[0], []
    X = ds.test.X
    for run in (run for run in found if run.tree):
        search = {
            PLAIN: lambda run=run: run.tree.predict(X, k),
            WEIGHTED: lambda run=run: run.tree.predict(X, k, weights=w),
        }
        chosen = {
            PLAIN: lambda run=run: decide.top_k(run.probabilities, k),
            WEIGHTED: lambda run=run: decide.weighted(run.probabilities, k, w),
        }
        for beta in map(float, betas):
            search[mixed(beta)] = lambda run=run, beta=beta: run.tree.predict_coverage(X, k, beta)
            chosen[mixed(beta)] = lambda run=run, beta=beta: decide.greedy_coverage(run.probabilities, k, beta)
        rows += [(rule, 1000 * _cpu(search[rule]) / n, 1000 * _cpu(chosen[rule]) / n) for rule in search]
    table = pd.DataFrame(rows, columns=["rule", "search ms", "decision ms"])
    table = table.groupby("rule", sort=False).mean().reset_index()
    if len(table):
        table.insert(2, "search / PLT", table["search ms"] / table["search ms"].iloc[0])
        table.insert(3, "printed / PLT", table["rule"].map(_printed_times(ds)).astype(float))
    return table


def _printed_times(ds: Dataset) -> dict[str, float]:
    t = coverage.table(2)
    part = t[(t["dataset"] == _printed_name(ds)) & (t["metric"] == coverage.TIME)].set_index("method")["value"]
    names = {coverage.WEIGHTED: mixed(0.25)}
    return {names.get(method, method): ms / part[PLAIN] for method, ms in part.items()}


def _cpu(work) -> float:
    work()  # compiled and warm
    start = time.process_time()
    work()
    return time.process_time() - start


# ---------------------------------------------------------------- P@k against Cov@k


def sources(ds: Dataset, run: Run, given: str = "") -> dict[str, sparse.csr_matrix]:
    """Name -> probabilities to choose from: the model's; the same after isotonic regression, each tenth of the test points by
    a map fitted on the others; and, for a twin, the true ones."""
    name = "given" if given else "label tree"
    top = TopK.from_scores(run.probabilities, int(np.diff(run.probabilities.indptr).max()))
    found = {name: run.probabilities, f"{name}, isotonic": calibrate.cross_fit_top(ds.test.Y, top).to_csr()}
    if isinstance(ds, Twin):
        found["true probabilities"] = ds.test.marginals
    return found


def path(ds: Dataset, found: Mapping[str, sparse.csr_matrix], betas: Sequence[float]) -> pd.DataFrame:
    """P@k and Cov@k over beta: source, k, beta (inf is the plain top k), P, Cov, and what the probabilities themselves lead to
    expect: expected P, expected Cov (over labels with a test point, like Cov)."""
    rows, share = [], factor(ds)
    for name, eta in found.items():
        for k in KS:
            for beta in [*sorted(map(float, betas)), math.inf]:
                top = decide.greedy_coverage(eta, k, beta)
                value = scores(ds, top, k)
                expected = (
                    100 * decide.expected_precision(eta, top, k)[0],
                    100 * decide.expected_coverage(eta, top, k)[0],
                )
                rows.append((name, k, beta, value["P"], value["Cov"], expected[0], expected[1] / share))
    return pd.DataFrame(rows, columns=["source", "k", "beta", "P", "Cov", "expected P", "expected Cov"])


def others(ds: Dataset, run: Run) -> pd.DataFrame:
    """The rules without a beta on the model's probabilities: rule, k, P, Cov; three passes of the greedy rule among them."""
    rows = []
    for k in KS:
        eta = run.probabilities
        rules = {
            WEIGHTED: decide.weighted(eta, k, weights(ds)),
            RANDOM: at_random(run, k),
            "COV-PLT, 3 passes": decide.greedy_coverage(eta, k, passes=3),
        }
        for rule, top in rules.items():
            value = scores(ds, top, k)
            rows.append((rule, k, value["P"], value["Cov"]))
    return pd.DataFrame(rows, columns=["rule", "k", "P", "Cov"])


def constrained(ds: Dataset, found: Mapping[str, sparse.csr_matrix], share: float) -> pd.DataFrame:
    """The largest coverage whose expected P@k keeps ``share`` of the plain top k's (eq. 14), without a look at the truth.

    Columns source, k, beta, P kept (percent of the plain top k's P@k on the truth; the floor is 100 ``share`` of what the
    probabilities expect), P, Cov, Cov gain (over the plain top k's Cov).
    """
    rows = []
    for name, eta in found.items():
        for k in KS:
            plain = decide.top_k(eta, k)
            floor = share * float(decide.expected_precision(eta, plain, k)[0])
            best = decide.for_precision(eta, k, floor)
            before, after = scores(ds, plain, k), scores(ds, best.top, k)
            gain = after["Cov"] - before["Cov"]
            rows.append((name, k, best.beta, 100 * after["P"] / before["P"], after["P"], after["Cov"], gain))
    return pd.DataFrame(rows, columns=["source", "k", "beta", "P kept", "P", "Cov", "Cov gain"])


def plot(table: pd.DataFrame, rules: pd.DataFrame, chosen: pd.DataFrame, share: float) -> Figure:
    """P@k against Cov@k, a panel a k, a line a source of probabilities; a ring marks the constrained selection."""
    names = list(dict.fromkeys(table["source"]))
    style = {name: (mark, f"C{i}") for i, (name, mark) in enumerate(zip(names, "os^", strict=False))}
    with figures.new(width=8.6, height=3.8, ncols=len(KS)) as (fig, axes):
        for ax, k in zip(axes, KS, strict=True):
            for name, part in table[table["k"] == k].groupby("source", sort=False):
                mark, colour = style[name]
                ax.plot(part["Cov"], part["P"], marker=mark, color=colour, label=name)
                best = chosen[(chosen["source"] == name) & (chosen["k"] == k)]
                ax.plot(
                    best["Cov"], best["P"], "o", color=colour, fillstyle="none", markersize=11, linestyle="none",
                    label=f"expected P@k kept to {100 * share:g} %" if name == names[-1] else "_",
                )  # fmt: skip
                if name == names[-1]:
                    for row, text in ((part.iloc[-1], "top k"), (part.iloc[0], f"β={part['beta'].iloc[0]:g}")):
                        ax.annotate(text, (row["Cov"], row["P"]), (3, 5), textcoords="offset points", fontsize=7)
            for (rule, part), mark in zip(rules[rules["k"] == k].groupby("rule", sort=False), "PXd", strict=False):
                ax.plot(part["Cov"], part["P"], mark, color="0.45", markersize=7, linestyle="none", label=rule)
            ax.set(xlabel=f"Cov@{k}, % of labels with a test point", title=f"k = {k}")
            ax.margins(0.1)
        fig.suptitle(_title(chosen, share), x=0.01, ha="left", fontsize=10)
        axes[0].set_ylabel("P@k, %")
        handles, texts = axes[0].get_legend_handles_labels()
        fig.legend(handles, texts, loc="outside lower center", ncols=4)
    return fig


def _title(chosen: pd.DataFrame, share: float, k: int = 5) -> str:
    """What the constrained selection of the first source gains, and of the last."""
    one = chosen[chosen["k"] == k]
    first, last = one.iloc[0], one.iloc[-1]
    return (
        f"For {100 - 100 * share:g} % of the P@{k} it expects, the {first['source']} goes from "
        f"{first['Cov'] - first['Cov gain']:.0f} to {first['Cov']:.0f} % coverage@{k};\n"
        f"the same with {last['source']}: from {last['Cov'] - last['Cov gain']:.0f} to {last['Cov']:.0f} %."
    )
