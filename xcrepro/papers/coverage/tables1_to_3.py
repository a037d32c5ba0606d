"""Tables 1 to 3 as printed, what they say of the rules, and the paper's claims counted in them."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from xcrepro.findings import Difference, corrected
from xcrepro.papers.coverage._common import (
    GREEDY,
    MIXED,
    PLAIN,
    RANDOM,
    TIME,
    printed_and_doubted,
    printed_difference,
    printed_table,
)
from xcrepro.repro import tables


def mark(doubt: str) -> str:
    """† for a value that the audit doubts."""
    return "†" if doubt else ""


def doubts() -> list[str]:
    """A footnote for each value that the audit doubts."""
    found = pd.concat([printed_and_doubted(number) for number in (1, 2, 3)])
    found = found[found["doubt"] != ""]
    return [f"† {row.source}, {row.metric}@{row.k} {row.variant}: {row.doubt}" for row in found.itertuples()]


def compute(number: int) -> pd.DataFrame:
    """A table as the page lays it out: texts as printed, ``±`` and the standard error where there is one, † where in doubt.

    Parameters
    ----------
    number : int
        1, 2 or 3.

    Returns
    -------
    DataFrame
        Table 1: metric, then a column a variant and k. Tables 2 and 3: dataset, method, then a column a metric and k.
    """
    t = printed_and_doubted(number)
    text = t["printed"] + t["doubt"].map(mark) + t["stderr"].where(t["stderr"] == "", " ± " + t["stderr"])
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
        metric, k, full, head-1000 (percent), change % (of ``full``), doubted († where the audit doubts a value).
    """
    t = printed_and_doubted(1)
    wide = tables.spread(t, ["metric", "k"], "variant", "value")
    doubted = t.groupby(["metric", "k"])["doubt"].agg("".join).map(mark).rename("doubted")
    wide = wide.assign(**{"change %": 100 * (wide["head-1000"] / wide["full"] - 1)})
    return wide.join(doubted, on=["metric", "k"]).astype({"k": int})


def _scores(number: int, value: str = "value") -> pd.DataFrame:
    """P, PSP and Cov: one row a dataset, metric and k; one column a method, or a beta in table 3."""
    t = printed_table(number).dropna(subset="k").assign(stderr=lambda t: pd.to_numeric(t["stderr"]))
    return t.pivot(index=["dataset", "metric", "k"], columns="variant" if number == 3 else "method", values=value)


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


Cells = list[list[list[Difference]]]
"""A claim's cells; of each its alternatives; of each the differences that must all be above 0."""


def compute_claims() -> pd.DataFrame:
    """What the paper says of its tables 1 to 3, counted in them.

    Returns
    -------
    DataFrame
        claim, where (the table), holds in, clearly in (texts such as "12 of 14"). ``clearly``: beyond the printed errors, by
        Student's law, corrected over all differences that the claim is about (Holm); "-" where no errors are printed. Values
        that the audit doubts are not counted.
    """
    head = compute_head()
    head = head[head["doubted"] == ""]
    ranking, loss = head["metric"].isin(["P", "N", "Abandonment"]), -head["change %"]
    found = [
        ("training on head labels costs P, nDCG, Abandonment under 10 %", loss[ranking] < 10),
        ("it costs coverage and the macro measures over 70 %", loss[~ranking] > 70),
    ]
    rows = [(claim, "table 1", _of(held.sum(), held.size), "-") for claim, held in found]
    for claim, where, cells in _claims():
        flat = iter(corrected(one for cell in cells for way in cell for one in way))
        tested = [[[next(flat) for _ in way] for way in cell] for cell in cells]
        held = [any(all(one.value > 0 for one in way) for way in cell) for cell in tested]
        clear = [any(all(one.verdict == "above" for one in way) for way in cell) for cell in tested]
        rows.append((claim, where, _of(sum(held), len(cells)), _of(sum(clear), len(cells))))
    same = _repeated()
    rows.append(
        ("a cell that tables 2 and 3 share is the same in both", "tables 2, 3", _of(same.sum(), same.size), "-")
    )
    return pd.DataFrame(rows, columns=["claim", "where", "holds in", "clearly in"])


def _of(part: int, whole: int) -> str:
    return f"{int(part)} of {whole}"


def _claims() -> list[tuple[str, str, Cells]]:
    scores, errors = _scores(2), _scores(2, "stderr")
    path, path_errors = _scores(3), _scores(3, "stderr")
    time = printed_table(2).query("metric == @TIME").assign(stderr=lambda t: t["stderr"].astype(float))
    ms, ms_errors = (time.pivot(index="dataset", columns="method", values=name) for name in ("value", "stderr"))
    methods = list(scores.columns)
    others = [name for name in methods if name not in (PLAIN, RANDOM)]

    def above(row: tuple, a: str, b: str) -> Difference:
        return printed_difference(a, b, scores.at[row, a], errors.at[row, a], scores.at[row, b], errors.at[row, b])

    def at(metric: str) -> list[tuple]:
        return [row for row in scores.index if row[1] == metric]

    def over_random(dataset: str, method: str) -> list[Difference]:
        return [above(row, method, RANDOM) for row in scores.index if row[0] == dataset]

    def half(row: tuple) -> Difference:
        names, weight = [MIXED, PLAIN, GREEDY], np.array([1, -0.5, -0.5])
        value, error = weight @ scores.loc[row, names], np.linalg.norm(weight * errors.loc[row, names])
        return printed_difference(MIXED, "half", value, error, 0, 0)

    def twice(dataset: str, method: str) -> Difference:
        (a, b), (a_error, b_error) = ((t.loc[dataset, method], t.loc[dataset, PLAIN]) for t in (ms, ms_errors))
        return printed_difference("twice PLT", method, 2 * b, 2 * b_error, a, a_error)

    def step(row: tuple, low: str, high: str, sign: int) -> Difference:
        (a, b), (a_error, b_error) = ((t.at[row, high], t.at[row, low]) for t in (path, path_errors))
        return printed_difference(high, low, sign * a, a_error, sign * b, b_error)

    def steps(metric: str, sign: int) -> Cells:
        rows = [row for row in path.index if row[1] == metric]
        return [[[step(row, low, high, sign)]] for row in rows for low, high in itertools.pairwise(path.columns)]

    first = [[[above(row, GREEDY, m) for m in methods if m != GREEDY]] for row in at("Cov")]
    rest = [m for m in methods if m not in (GREEDY, MIXED)]
    second = [[[above(row, GREEDY, MIXED), *(above(row, MIXED, m) for m in rest)]] for row in at("Cov")]
    lowest = [[[above(row, m, GREEDY) for m in methods if m not in (GREEDY, RANDOM)]] for row in at("P")]
    sets = list(dict.fromkeys(scores.index.get_level_values("dataset")))
    some = [[over_random(d, m) for m in others] for d in sets]
    every = [[[one for m in others for one in over_random(d, m)]] for d in sets]
    return [
        ("COV-PLT has the highest Cov@k", "table 2", first),
        ("COVbeta-PLT has the second highest Cov@k", "table 2", second),
        ("some method but PLT is above BRS-PLT on all nine scores", "table 2", some),
        ("every method but PLT is above BRS-PLT on all nine scores", "table 2", every),
        ("COV-PLT has the lowest P@k but for BRS-PLT", "table 2", lowest),
        ("beta = 0.25 recovers over half of the lost P@k", "table 2", [[[half(row)]] for row in at("P")]),
        ("COV-PLT takes less than twice the time of PLT", "table 2", [[[twice(d, GREEDY)]] for d in sets]),
        ("COVbeta-PLT takes less than twice the time of PLT", "table 2", [[[twice(d, MIXED)]] for d in sets]),
        ("a larger beta lowers Cov@k", "table 3", steps("Cov", -1)),
        ("a larger beta raises P@k", "table 3", steps("P", 1)),
    ]


def _repeated() -> pd.Series:
    """Whether score and error agree, for each cell of table 3 that table 2 has too."""
    on = ["dataset", "variant", "metric", "k"]
    both = printed_table(2).dropna(subset="k").merge(printed_table(3), on=on, suffixes=("", " b"))
    return (both["printed"] == both["printed b"]) & (both["stderr"] == both["stderr b"])


def findings(claims: pd.DataFrame) -> list[str]:
    """The counts in words.

    Parameters
    ----------
    claims : DataFrame
        From :func:`compute_claims`.

    Returns
    -------
    list of str
    """
    said = []
    for row in claims.to_dict("records"):
        clearly = "" if row["clearly in"] == "-" else f", clearly in {row['clearly in'].partition(' ')[0]}"
        said.append(f"{row['where']}: {row['claim']}: in {row['holds in']}{clearly}")
    return said
