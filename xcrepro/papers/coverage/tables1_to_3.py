"""Tables 1 to 3 as printed, what they say of the rules, and the paper's claims counted in them."""

from __future__ import annotations

import pandas as pd

from xcrepro.papers.coverage._common import GREEDY, MIXED, PLAIN, RANDOM, TIME, printed_table
from xcrepro.repro import tables


def compute(number: int) -> pd.DataFrame:
    """A table as the page lays it out: texts as printed, ``±`` and the standard error where there is one.

    Parameters
    ----------
    number : int
        1, 2 or 3.

    Returns
    -------
    DataFrame
        Table 1: metric, then a column a variant and k. Tables 2 and 3: dataset, method, then a column a metric and k.
    """
    t = printed_table(number)
    text = t["printed"] + t["stderr"].where(t["stderr"] == "", " ± " + t["stderr"])
    if number == 1:
        column = t["variant"] + " @" + t["k"].astype(str)
        return tables.spread(t.assign(text=text, column=column), ["metric"], "column", "text")
    column = t["metric"].replace(TIME, "ms") + ("@" + t["k"].astype("string")).fillna("").astype(object)
    method = t["method"] + t["variant"].where(t["variant"] == "", " β=" + t["variant"])
    return tables.spread(t.assign(text=text, column=column, method=method), ["dataset", "method"], "column", "text")


def compute_head() -> pd.DataFrame:
    """Table 1: what training on the 1000 most frequent labels alone changes.

    Returns
    -------
    DataFrame
        metric, k, full, head-1000 (percent), change % (of ``full``).
    """
    wide = tables.spread(printed_table(1), ["metric", "k"], "variant", "value")
    return wide.assign(**{"change %": 100 * (wide["head-1000"] / wide["full"] - 1)}).astype({"k": int})


def _scores(number: int) -> pd.DataFrame:
    """P, PSP and Cov: one row a dataset, metric and k; one column a method, or a beta in table 3."""
    t = printed_table(number).dropna(subset="k")
    return t.pivot(index=["dataset", "metric", "k"], columns="variant" if number == 3 else "method", values="value")


def compute_above_random() -> pd.DataFrame:
    """Table 2: on how many of a dataset's nine scores each other method is above BRS-PLT.

    Returns
    -------
    DataFrame
        dataset, method, above, below, of, above on all ("yes" or "no").
    """
    rows = []
    for dataset, part in _scores(2).groupby("dataset", sort=False):
        for other in part.columns.drop(RANDOM):
            above, below = int((part[other] > part[RANDOM]).sum()), int((part[other] < part[RANDOM]).sum())
            rows.append((dataset, other, above, below, len(part), "yes" if above == len(part) else "no"))
    return pd.DataFrame(rows, columns=["dataset", "method", "above", "below", "of", "above on all"])


def compute_times() -> pd.DataFrame:
    """Table 2: test time a point over that of PLT.

    Returns
    -------
    DataFrame
        dataset, ``PLT, ms``, then one ratio a method, such as ``COV-PLT / PLT``.
    """
    t = printed_table(2)
    wide = tables.spread(t[t["metric"] == TIME], ["dataset"], "method", "value").set_index("dataset")
    ratio = wide.drop(columns=PLAIN).div(wide[PLAIN], axis=0)
    return pd.concat([wide[PLAIN].rename("PLT, ms"), ratio.add_suffix(" / PLT")], axis=1).reset_index()


def compute_recovered() -> pd.DataFrame:
    """Table 2: how much of the precision that COV-PLT loses against PLT comes back with beta = 0.25.

    Returns
    -------
    DataFrame
        dataset, k, PLT, COV-PLT, COVbeta-PLT (P@k, percent), % recovered (of the loss; over 100: above PLT).
    """
    t = printed_table(2)
    wide = tables.spread(t[t["metric"] == "P"].astype({"k": int}), ["dataset", "k"], "method", "value")
    wide = wide[["dataset", "k", PLAIN, GREEDY, MIXED]]
    return wide.assign(**{"% recovered": 100 * (wide[MIXED] - wide[GREEDY]) / (wide[PLAIN] - wide[GREEDY])})


def compute_claims() -> pd.DataFrame:
    """What the paper says of its tables 1 to 3, counted in them.

    Returns
    -------
    DataFrame
        claim, where (the table), holds in (a text such as "12 of 14").
    """
    head = compute_head()
    ranking, loss = head["metric"].isin(["P", "N", "Abandonment"]), -head["change %"]
    scores, path = _scores(2), _scores(3)
    place = scores.xs("Cov", level="metric").rank(axis=1, ascending=False)
    precision = scores.xs("P", level="metric").drop(columns=RANDOM)
    above = compute_above_random()
    others = above[above["method"] != PLAIN].groupby("dataset")["above on all"]
    time, recovered = compute_times(), compute_recovered()["% recovered"]

    def steps(metric: str) -> pd.DataFrame:
        return path.xs(metric, level="metric").diff(axis=1).iloc[:, 1:]

    found = [
        ("training on head labels costs P, nDCG, Abandonment under 10 %", "table 1", loss[ranking] < 10),
        ("it costs coverage and the macro measures over 70 %", "table 1", loss[~ranking] > 70),
        ("COV-PLT has the highest Cov@k", "table 2", place[GREEDY] == 1),
        ("COVbeta-PLT has the second highest Cov@k", "table 2", place[MIXED] == 2),
        ("some method but PLT is above BRS-PLT on all nine scores", "table 2", others.max() == "yes"),
        ("every method but PLT is above BRS-PLT on all nine scores", "table 2", others.min() == "yes"),
        ("COV-PLT has the lowest P@k but for BRS-PLT", "table 2", precision.idxmin(axis=1) == GREEDY),
        ("beta = 0.25 recovers over half of the lost P@k", "table 2", recovered > 50),
        ("COV-PLT takes at most twice the time of PLT", "table 2", time[f"{GREEDY} / PLT"] <= 2),
        ("COVbeta-PLT takes at most twice the time of PLT", "table 2", time[f"{MIXED} / PLT"] <= 2),
        ("a larger beta lowers Cov@k", "table 3", steps("Cov") < 0),
        ("a larger beta raises P@k", "table 3", steps("P") > 0),
        ("a cell that tables 2 and 3 share is the same in both", "tables 2, 3", _repeated()),
    ]
    rows = [(claim, where, f"{int(held.to_numpy().sum())} of {held.size}") for claim, where, held in found]
    return pd.DataFrame(rows, columns=["claim", "where", "holds in"])


def _repeated() -> pd.Series:
    """Whether score and error agree, for each cell of table 3 that table 2 has too."""
    on = ["dataset", "variant", "metric", "k"]
    both = printed_table(2).dropna(subset="k").merge(printed_table(3), on=on, suffixes=("", " b"))
    return (both["printed"] == both["printed b"]) & (both["stderr"] == both["stderr b"])
