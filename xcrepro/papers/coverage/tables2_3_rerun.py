"""Tables 2 and 3 anew: which k labels to take from a label tree's probabilities.

The greedy rows come in three ways: algorithm 1 as printed; with a chosen label's f lowered by its gain
(:func:`xcrepro.decide.greedy_coverage`); and so in each tree alone, decided once for k = 5, which is how the printed rows
seem to have been made (the audit's ``greedy_update`` says why).

Cov@k is over the labels with a test point, as in the code the paper builds on (over all labels, eq. 13, every value is
smaller by one factor, which :func:`tested_share` gives). All values are percent.
"""

from __future__ import annotations

import itertools
import math
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from xcrepro import decide, metrics
from xcrepro.arguments import whole_number
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.findings import Difference, Measured, agreement, corrected, count, numbers
from xcrepro.inputs import baselines, datasets
from xcrepro.inputs.datasets import printed_name, weights
from xcrepro.papers.coverage import _common
from xcrepro.papers.coverage._common import (
    ALGORITHM,
    GAIN,
    GREEDY,
    KS,
    MIXED,
    PER_TREE,
    PLAIN,
    RANDOM,
    SCORES,
    TIME,
    TREE,
    WEIGHTED,
    Run,
    mixed,
    printed_table,
)
from xcrepro.predictions import TopK
from xcrepro.repro import tables

tested_share = _common.tested_share
CANDIDATES = 5000
"""Labels a point to choose from: all of EURLex-4K's, so that the choice is that of the search in the tree."""
UPDATES = {ALGORITHM: "probability", GAIN: "gain"}
WAYS = (ALGORITHM, GAIN, PER_TREE)
TOLD = (
    "COV-PLT has the highest Cov@k",
    "a larger beta lowers Cov@k",
    "a larger beta raises P@k",
    "PLT has the highest P@k",
)
"""The claims that are told in words; the table has all."""
COMPARED = ["metric", "k", "printed", *WAYS, "printed / PLT", *(f"{way} / PLT" for way in WAYS), "nearest"]
"""Ways to lower f -> their name in :mod:`xcrepro.decide`."""


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules, and those of ``betas``, ``candidates``, ``others`` and their ``scales``.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError, DataMissing
        As :func:`xcrepro.papers.coverage._common.check_betas`; for candidates out of 1 to 100, another dataset's name that
        is not in the catalogue or stands twice, and scales that are not one for each.
    """
    _common.check_betas(values)
    for n in values["candidates"]:
        whole_number("parameter candidates", n, 1, baselines.PLACES)
    keys = [registry.get(name).name for name in values["others"]]
    if len(set(keys)) < len(keys):
        raise ArgumentError("parameter others", "must hold nothing twice", values["others"])
    if len(values["scales"]) != len(keys):
        raise ArgumentError("parameter scales", f"must be one for each of others, {len(keys)}", values["scales"])


def runs(ds: Dataset, repeats: int, given: str = "") -> dict[str, list[Run]]:
    """Label trees, and saved predictions before them, as :func:`xcrepro.papers.coverage._common.runs` has them.

    Parameters
    ----------
    ds, repeats, given
        As there.

    Returns
    -------
    dict of str to list of Run
        By model, with :data:`CANDIDATES` a point.
    """
    return _common.runs(ds, repeats, given, CANDIDATES)


def rules(ds: Dataset, run: Run, k: int, betas: Sequence[float], search: bool = False) -> dict[str, Callable[[], TopK]]:
    """The rules of tables 2 and 3: PLT, PS-PLT, and the greedy rule for each beta, by algorithm 1 and by the gain.

    Among the run's candidates; with ``search`` by exact search in the tree, where the run has one. With all labels as
    candidates both choose the same, and the search takes a thousand times as long where the probabilities are there.

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
    ways = itertools.product(UPDATES.items(), betas)
    greedy_rules = {mixed(beta, way): partial(greedy, float(beta), update=update) for (way, update), beta in ways}
    return {PLAIN: plain, WEIGHTED: weighted} | greedy_rules


def per_tree(ds: Dataset, run: Run, betas: Sequence[float]) -> dict[str, TopK]:
    """The gain rule in each tree alone, decided once for k = 5.

    Parameters
    ----------
    ds : Dataset
    run : Run
    betas : sequence of float

    Returns
    -------
    dict of str to TopK
        Rule -> 5 labels a point, of which the first k count; none for a run without a tree.
    """
    if not run.tree:
        return {}
    choose = partial(run.tree.predict_coverage, ds.test.X, 5, update="gain", per_tree=True)
    return {mixed(beta, PER_TREE): choose(float(beta)) for beta in betas}


def compute(ds: Dataset, found: Mapping[str, Sequence[Run]], betas: Sequence[float]) -> pd.DataFrame:
    """Every rule on every run; in each tree alone on the first run only, for the time that the search takes.

    Parameters
    ----------
    ds : Dataset
    found : mapping of str to sequence of Run
        From :func:`runs`.
    betas : sequence of float
        Of the greedy rule; 0 is COV-PLT.

    Returns
    -------
    DataFrame
        Columns model, rule, run, metric (P, PSP, of a twin P complete, Cov), k, value (percent). Decided for each k, but for
        the rules in each tree alone and BRS-PLT, whose first k of one decision for 5 count.
    """
    rows = []
    for model, of_model in found.items():
        for run in of_model:
            for k, tops in _choose(ds, run, betas, alone=run is of_model[0]).items():
                for rule, top in tops.items():
                    rows += [(model, rule, run.number, name, k, v) for name, v in _common.scores(ds, top, k).items()]
    table = pd.DataFrame(rows, columns=["model", "rule", "run", "metric", "k", "value"])
    return _common.in_order(table, model=list(found), rule=table["rule"].unique(), metric=SCORES, k=None, run=None)


def _choose(ds: Dataset, run: Run, betas: Sequence[float], alone: bool) -> dict[int, dict[str, TopK]]:
    """k -> rule -> what it chooses; ``alone``: also in each tree alone."""
    five, found = per_tree(ds, run, betas) if alone else {}, {}
    for k in KS:
        found[k] = {rule: choose() for rule, choose in rules(ds, run, k, betas).items()}
        found[k] |= {rule: top.head(k) for rule, top in five.items()} | {RANDOM: _common.at_random(run, k)}
    return found


Measures = dict[tuple[str, int], Measured]
"""Metric and k -> the number of each rule, with its error."""


def measure(ds: Dataset, found: Mapping[str, Sequence[Run]], betas: Sequence[float], table: pd.DataFrame) -> dict:
    """The same numbers with their errors, paired over rules.

    Parameters
    ----------
    ds : Dataset
    found : mapping of str to sequence of Run
    betas : sequence of float
    table : DataFrame
        From :func:`compute` of these.

    Returns
    -------
    dict of str to dict of (str, int) to Measured
        Model -> metric and k -> the rules. Of two runs or more the error is over the runs, and the rules in each tree alone,
        which have one, are not there; of one run it is a jackknife over the test points, the choices staying as they are.
    """
    return {name: _measure(ds, of, betas, table[table["model"] == name]) for name, of in found.items()}


def _measure(ds: Dataset, found: Sequence[Run], betas: Sequence[float], table: pd.DataFrame) -> Measures:
    if len(found) > 1:
        groups = table.groupby(["metric", "k"], sort=False)
        whole = {key: dict(iter(part.groupby("rule", sort=False)["value"])) for key, part in groups}
        return {
            key: Measured.of_runs({rule: v.to_numpy() for rule, v in rules.items() if len(v) == len(found)})
            for key, rules in whole.items()
        }
    w, share = weights(ds), tested_share(ds)
    # The labels with a test point are those of all test points, also where a block is left out.
    statistics = {
        "P": lambda Y, top, k: 100 * metrics.precision(Y, top, k)[0],
        "PSP": lambda Y, top, k: 100 * metrics.psp(Y, top, k, inverse_propensity=w)[0],
        "Cov": lambda Y, top, k: 100 / share * metrics.coverage(Y, top, k)[0],
    }
    chosen = _choose(ds, found[0], betas, alone=True)
    return {
        (name, k): Measured.of_rows(partial(statistic, k=k), ds.test.Y, chosen[k])
        for name, statistic in statistics.items()
        for k in KS
    }


def compute_means(table: pd.DataFrame, measured: Mapping[str, Measures] | None = None) -> pd.DataFrame:
    """Mean and standard error over the runs.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    measured : mapping, optional
        From :func:`measure`: where a model has one run, the error over test points stands in its place.

    Returns
    -------
    DataFrame
        model, rule, metric, k, mean, stderr (percent; NaN where it is not known).
    """
    groups = table.groupby(["model", "rule", "metric", "k"], sort=False)["value"]
    means = groups.agg(mean="mean", stderr="sem").reset_index()
    several = table.groupby("model")["run"].nunique() > 1
    for i, row in means.iterrows():
        one = (measured or {}).get(row["model"], {}).get((row["metric"], row["k"]))
        if one and not several[row["model"]]:
            means.loc[i, "stderr"] = one.error(row["rule"])
    return means


def lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """The means as texts, as tables 2 and 3 print them.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_means`.

    Returns
    -------
    DataFrame
        A row a model and rule, a column a metric and k, ``P@1`` or ``P@1 complete``: "mean ± standard error".
    """
    text = table["mean"].map("{:.2f}".format) + table["stderr"].map(lambda e: "" if np.isnan(e) else f" ± {e:.2f}")
    return _lay_out(table.assign(text=text), "text")


def _lay_out(table: pd.DataFrame, value: str) -> pd.DataFrame:
    parts = [metric.partition(" ") for metric in table["metric"]]
    column = [f"{name}@{k}{space}{rest}" for (name, space, rest), k in zip(parts, table["k"], strict=True)]
    rows = [name for name in ("model", "rule") if name in table]
    return tables.spread(table.assign(column=column), rows, "column", value)


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
    table = table[(table["dataset"] == printed_name(ds)) & table["metric"].isin(SCORES)].astype({"k": int})
    betas = table["variant"].replace("", "0").astype(float)
    rule = table["method"].where(table["variant"] == "", betas.map(mixed))
    table = table.assign(rule=rule).drop_duplicates(["rule", "metric", "k"])  # table 2 has two of table 3's rows
    return _lay_out(table, "value") if len(table) else pd.DataFrame(columns=["rule"])


def compute_claims(measured: Measures, betas: Sequence[float]) -> pd.DataFrame:
    """What the paper finds, on every cell, with the greedy rule by algorithm 1, and by the gain.

    Parameters
    ----------
    measured : mapping of (str, int) to Measured
        Of one model, from :func:`measure`.
    betas : sequence of float

    Returns
    -------
    DataFrame
        Columns update, claim, cells, holds, reversed, open, reversed in. A cell holds, or is reversed, where the paired
        difference is clear by Student's law, corrected over the claim's cells (Holm); else it is open, as are all where no
        error is known.
    """
    rows = []
    for update in UPDATES:
        for claim, metric, pairs in _claims(betas, update):
            cells, found = _differences(measured, metric, pairs)
            verdicts = [one.verdict for one in found]
            where = [cell for cell, verdict in zip(cells, verdicts, strict=True) if verdict == "below"]
            counts = [verdicts.count(which) for which in ("above", "below", "not clear")]
            rows.append((update, claim, len(cells), *counts, "; ".join(where) or "-"))
    return pd.DataFrame(rows, columns=["update", "claim", "cells", "holds", "reversed", "open", "reversed in"])


def _differences(measured: Measures, metric: str, pairs: list[tuple[str, str]]) -> tuple[list[str], list[Difference]]:
    cells = [(k, a, b) for a, b in pairs for k in KS if a != b and (metric, k) in measured]
    found = corrected(measured[metric, k].difference(a, b) for k, a, b in cells)
    return [f"{metric}@{k}: {a}, {b}" for k, a, b in cells], found


def findings(measured: Mapping[str, Measures], betas: Sequence[float]) -> list[str]:
    """What comes out: the paper's claims on the rules, by algorithm 1 and by the gain, of each model.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    betas : sequence of float

    Returns
    -------
    list of str
    """
    said = []
    for model, found in measured.items():
        for update in UPDATES:
            for claim, metric, pairs in _claims(betas, update):
                if claim in TOLD:
                    said.append(f"{model}, {update}: {count(_differences(found, metric, pairs)[1], claim)}")
    return said


def findings_recorded(measured: Mapping[str, Measures], recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of the rules, on label trees.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check`, as recorded.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    k = KS[-1]
    return [
        agreement(
            measured[TREE][metric, k].pairs(),
            numbers(recorded, "rule", f"{metric}@{k}"),
            f"{metric}@{k}",
            "pairs of rules",
        )
        for metric in ("P", "Cov")
        if TREE in measured
    ]


def findings_models(ds: Dataset, found: Mapping[str, Sequence[Run]], k: int = 5) -> list[str]:
    """Which model leads, under the plain top k and under the greedy rule; nothing of one model alone.

    Parameters
    ----------
    ds : Dataset
    found : mapping of str to sequence of Run
        The first run of each is taken.
    k : int

    Returns
    -------
    list of str
    """
    if len(found) < 2:
        return []
    share, said = tested_share(ds), []
    for rule, choose in (("the plain top k", decide.top_k), (GREEDY, decide.greedy_coverage)):
        tops = {name: choose(of[0].probabilities, k) for name, of in found.items()}
        P = Measured.of_rows(lambda Y, top: 100 * metrics.precision(Y, top, k)[0], ds.test.Y, tops)
        Cov = Measured.of_rows(lambda Y, top: 100 / share * metrics.coverage(Y, top, k)[0], ds.test.Y, tops)
        said += [P.leader(f"P@{k} under {rule}").text, Cov.leader(f"Cov@{k} under {rule}").text]
    return said


def _claims(betas: Sequence[float], update: str) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Claim, metric, pairs of rules of which the first is said to be above."""
    path = [*(mixed(beta, update) for beta in sorted(betas)), PLAIN]
    names = [PLAIN, WEIGHTED, *(mixed(beta, update) for beta in betas), RANDOM]
    greedy, quarter, steps = mixed(0, update), mixed(0.25, update), list(itertools.pairwise(path))
    above_random = [(name, RANDOM) for name in names]
    found = [
        ("a larger beta lowers Cov@k", "Cov", steps),
        ("a larger beta raises P@k", "P", [(b, a) for a, b in steps]),
        ("PS-PLT has the highest PSP@k", "PSP", [(WEIGHTED, name) for name in names]),
        ("PLT has the highest P@k", "P", [(PLAIN, name) for name in names]),
        ("every rule has higher P@k than BRS-PLT", "P", above_random),
        ("every rule has higher Cov@k than BRS-PLT", "Cov", above_random),
    ]
    if greedy in names:
        found.insert(0, ("COV-PLT has the highest Cov@k", "Cov", [(greedy, name) for name in names]))
    if {greedy, quarter} <= set(names):
        others = [(quarter, name) for name in names if name != greedy]
        found.append(("beta = 0.25 has the second highest Cov@k", "Cov", others))
        between = [(quarter, greedy), (PLAIN, quarter)]
        found.append(("beta = 0.25 lies between COV-PLT and PLT in P@k", "P", between))
    return found


# ---------------------------------------------------------------- algorithm 1, or the gain


def compare_with_printed(ds: Dataset, means: pd.DataFrame) -> pd.DataFrame:
    """The greedy rows of tables 2 and 3 in the three ways, beside print.

    Parameters
    ----------
    ds : Dataset
    means : DataFrame
        From :func:`compute_means`; of its first model.

    Returns
    -------
    DataFrame
        rule, metric (P or Cov), k, printed, then a column a way (percent; NaN where there is no tree); the same as shares of
        PLT's own value, in print and here ("printed / PLT", ...), since a twin is easier or harder than its dataset; and
        nearest, the way whose share comes nearest to the printed one. No rows where the paper has none.
    """
    printed = pd.concat([printed_table(2), printed_table(3)])
    printed = printed[(printed["dataset"] == printed_name(ds)) & printed["metric"].isin(["P", "Cov"])]
    plain = printed[printed["method"] == PLAIN].drop_duplicates(["metric", "k"]).set_index(["metric", "k"])["value"]
    betas = printed["variant"].where(printed["method"] != GREEDY, "0")
    printed = printed.assign(beta=betas)[betas != ""].astype({"beta": float, "k": int})
    means = means[means["model"] == means["model"].iloc[0]]
    mean, rows = means.set_index(["rule", "metric", "k"])["mean"], []
    for beta, metric, k, value in printed[["beta", "metric", "k", "value"]].drop_duplicates().itertuples(index=False):
        ours = {way: mean.get((mixed(beta, way), metric, k), math.nan) for way in (ALGORITHM, GAIN, PER_TREE)}
        share = value / plain.get((metric, k), math.nan)
        shares = {way: v / mean.get((PLAIN, metric, k), math.nan) for way, v in ours.items()}
        away = {way: abs(v - share) for way, v in shares.items() if not math.isnan(v - share)}
        if away:
            row = {"rule": mixed(beta), "metric": metric, "k": k, "printed": value} | ours | {"printed / PLT": share}
            rows.append(row | {f"{way} / PLT": v for way, v in shares.items()} | {"nearest": min(away, key=away.get)})
    table = pd.DataFrame(rows, columns=["rule", *COMPARED])
    order = {"rule": [mixed(beta) for beta in sorted(map(float, set(betas) - {""}))], "metric": SCORES, "k": None}
    return table if table.empty else _common.in_order(table, **order)


def describe_nearest(table: pd.DataFrame) -> str:
    """Which way comes nearest to print how often, and how far each is away.

    Parameters
    ----------
    table : DataFrame
        From :func:`compare_with_printed`.

    Returns
    -------
    str
        Empty where nothing is printed.
    """
    if table.empty:
        return ""
    counts, words = table["nearest"].value_counts(), []
    for way in WAYS:
        away = (table[f"{way} / PLT"] - table["printed / PLT"]).abs().groupby(table["metric"], sort=False).mean()
        if away.notna().any():
            far = ", ".join(f"{metric} {value:.2f}" for metric, value in away.items())
            words.append(f"{way} in {counts.get(way, 0)} (on average {far} away)")
    return f"Nearest to print as shares of PLT's own values, of {len(table)}: {'; '.join(words)}."


def compute_updates(ds: Dataset, found: Sequence[Run]) -> pd.DataFrame:
    """What algorithm 1 and the gain rule each maximise, and what comes of it, for beta = 0.

    Parameters
    ----------
    ds : Dataset
    found : sequence of Run
        Their candidates are chosen from.

    Returns
    -------
    DataFrame
        update, run, k, then expected P, expected Cov (percent, by the run's own probabilities; over labels with a test
        point, like Cov; what algorithm 1 climbs), log utility (the mean over all labels of log(1 + s), s a label's
        expected hits; what the gain rule climbs), P, Cov (percent, on the test labels).
    """
    rows, share = [], _common.tested_share(ds)
    for (way, update), run, k in itertools.product(UPDATES.items(), found, KS):
        eta = run.probabilities
        top = decide.greedy_coverage(eta, k, update=update)
        chosen = top.ids >= 0
        hits = np.bincount(top.ids[chosen], decide.marginals(eta, top)[chosen], minlength=top.n_labels)
        expected = (
            100 * decide.expected_precision(eta, top, k)[0],
            100 * decide.expected_coverage(eta, top, k)[0] / share,
        )
        value = _common.scores(ds, top, k)
        rows.append((way, run.number, k, *expected, float(np.log1p(hits).mean()), value["P"], value["Cov"]))
    columns = ["update", "run", "k", "expected P", "expected Cov", "log utility", "P", "Cov"]
    return pd.DataFrame(rows, columns=columns)


def findings_updates(table: pd.DataFrame) -> list[str]:
    """Where each of the two rules wins, paired over runs and tested together (Holm over all k and columns).

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_updates`.

    Returns
    -------
    list of str
        A sentence a column, with the difference at the largest k; nothing is clear where there is one run.
    """
    names = ("expected Cov", "log utility", "P", "Cov")
    cells = [(name, k) for name in names for k in KS]
    value = table.pivot(index=["update", "k"], columns="run")
    measured = {
        (name, k): Measured.of_runs({way: value.loc[(way, k), name].to_numpy() for way in UPDATES}) for name, k in cells
    }
    found = dict(zip(cells, corrected(measured[cell].difference(GAIN, ALGORITHM) for cell in cells), strict=True))
    said = []
    for name in names:
        last = found[name, KS[-1]]
        around = "" if math.isnan(last.error) else f" ± {last.error:.1g}"
        text = count([found[name, k] for k in KS], f"{name} is higher with the gain than with algorithm 1")
        said.append(f"{text} (at k = {KS[-1]} by {last.value:+.2g}{around})")
    return said


def compute_others(names: Sequence[str], scales: Sequence[float], seed: int = 0) -> pd.DataFrame:
    """The greedy rows in the three ways on twins of the paper's datasets, one run each, beside print.

    Parameters
    ----------
    names : sequence of str
        Of the catalogue.
    scales : sequence of float
        Of the twins, one each.
    seed : int
        Of the twins; the trees have seed 0.

    Returns
    -------
    DataFrame
        dataset, points (train points of the twin), then the columns of :func:`compare_with_printed`, for COV-PLT alone.
    """
    parts = []
    for name, ds in datasets.pick_many(names, "small", scales, seed).items():
        found = compare_with_printed(ds, compute_means(compute(ds, runs(ds, 1), [0.0])))
        part = found[found["rule"] == GREEDY].drop(columns="rule")
        parts.append(part.assign(dataset=name, points=ds.n_train)[["dataset", "points", *part.columns]])
    columns = ["dataset", "points", *COMPARED]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


# ---------------------------------------------------------------- candidates, once or each, times


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
    table = (
        pd.DataFrame(rows, columns=["candidates", "k", "P", "Cov", "same"])
        .groupby(["candidates", "k"], sort=False)
        .mean()
        .reset_index()
    )
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
    for run, (way, update), beta in itertools.product(found, UPDATES.items(), betas):
        five = decide.greedy_coverage(run.probabilities, 5, beta, update=update)
        for k in KS[:-1]:
            each = _common.scores(ds, decide.greedy_coverage(run.probabilities, k, beta, update=update), k)
            once = _common.scores(ds, five.head(k), k)
            rows.append((mixed(beta, way), k, each["P"], once["P"], each["Cov"], once["Cov"]))
    columns = ["rule", "k", "P, each k", "P, once for 5", "Cov, each k", "Cov, once for 5"]
    return pd.DataFrame(rows, columns=columns).groupby(["rule", "k"], sort=False).mean().reset_index()


def compute_times(ds: Dataset, found: Sequence[Run], betas: Sequence[float], k: int = 5) -> pd.DataFrame:
    """CPU time of each rule by search in the tree, and of the decision among candidates that are there.

    Parameters
    ----------
    ds : Dataset
    found : sequence of Run
        The first is timed, if it has a tree.
    betas : sequence of float
        Of the greedy rule.
    k : int

    Returns
    -------
    DataFrame
        rule, search ms (a test point), search / PLT and printed / PLT (the ratio of table 2, NaN where it has none),
        decision ms. Shown, never compared.
    """
    n, rows = ds.test.Y.shape[0], []
    for run in (run for run in found[:1] if run.tree):
        run.tree.predict_coverage(ds.test.X[:1], k)  # compiled
        chosen = rules(ds, run, k, betas)
        for rule, searched in rules(ds, run, k, betas, search=True).items():
            chosen[rule]()
            rows.append((rule, 1000 * _cpu(searched) / n, 1000 * _cpu(chosen[rule]) / n))
    table = pd.DataFrame(rows, columns=["rule", "search ms", "decision ms"])
    if len(table):
        t = printed_table(2)
        t = t[(t["dataset"] == printed_name(ds)) & (t["metric"] == TIME)].set_index("method")["value"]
        printed = {name: ms / t[PLAIN] for name, ms in t.rename({MIXED: mixed(0.25)}).items()}
        table.insert(2, "search / PLT", table["search ms"] / table["search ms"].iloc[0])
        table.insert(3, "printed / PLT", table["rule"].map(printed).astype(float))
    return table


def _cpu(work: Callable) -> float:
    return timeit.timeit(work, timer=time.process_time, number=1)
