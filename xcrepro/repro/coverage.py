"""What the items of the coverage@k paper (COV-PLT) compute and draw, all of it from its printed tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import published
from xcrepro.repro import figures

TIME = "test_ms_per_instance"
GREEDY, WEIGHTED, RANDOM = "COV-PLT", "COVbeta-PLT", "BRS-PLT"
BETAS = ("0", "0.25", "0.5", "1")

# ---------------------------------------------------------------- tables 1 to 3


def table(number: int) -> pd.DataFrame:
    """Table 1, 2 or 3 as :func:`xcrepro.published.table` gives it.

    ``variant`` is what the model was trained on in table 1 (``"full"``, ``"head-1000"``) and beta of COVbeta-PLT in tables
    2 and 3 (``"0"``, ``"0.25"`` ...; COV-PLT is beta 0); elsewhere it is empty. ``stderr``: the standard error over five runs.
    """
    t = published.table(f"coverage:table{number}")
    return t.assign(variant=t["variant"].str.removeprefix("beta="))


def laid_out(number: int) -> pd.DataFrame:
    """A table as the page lays it out: texts as printed, ``±`` and the standard error where there is one."""
    t = table(number)
    error = t["stderr"].where(t["stderr"] == "", " ± " + t["stderr"])
    at = t["metric"] + ("@" + t["k"].astype("string")).fillna("").astype(object)
    if number == 1:
        flat = pd.DataFrame({"metric": t["metric"], "column": t["variant"] + " @" + t["k"].astype(str)})
    else:
        beta = t["variant"].where(t["variant"] == "", " β=" + t["variant"])
        flat = pd.DataFrame({"dataset": t["dataset"], "method": t["method"] + beta, "column": at.replace(TIME, "ms")})
    rows = list(flat.columns[:-1])
    flat["text"] = t["printed"] + error
    wide = flat.pivot(index=rows, columns="column", values="text")
    order = flat[rows].drop_duplicates()
    wide = wide.reindex(
        index=order["metric"] if number == 1 else pd.MultiIndex.from_frame(order), columns=flat["column"].unique()
    )
    wide.columns.name = None
    return wide.reset_index()


def head_only() -> pd.DataFrame:
    """Table 1: what training on the 1000 most frequent labels alone changes.

    Columns metric, k, full, head-1000 (percent), change (percent of ``full``).
    """
    t = table(1)
    wide = t.pivot(index=["metric", "k"], columns="variant", values="value")
    wide = wide.reindex(pd.MultiIndex.from_frame(t[["metric", "k"]].drop_duplicates()))[["full", "head-1000"]]
    wide.columns.name = None
    wide["change %"] = 100 * (wide["head-1000"] / wide["full"] - 1)
    return wide.reset_index().astype({"k": int})


def _scores(number: int) -> pd.DataFrame:
    """P, PSP and Cov: one row a dataset, metric and k; one column a method, or a beta in table 3."""
    t = table(number).dropna(subset="k")
    return t.pivot(index=["dataset", "metric", "k"], columns="variant" if number == 3 else "method", values="value")


def _count(which: pd.Series | pd.DataFrame) -> str:
    return f"{int(which.to_numpy().sum())} of {which.size}"


def dominated(method: str = RANDOM) -> pd.DataFrame:
    """Table 2: on how many of a dataset's nine scores each other method is above ``method``.

    Columns dataset, method, above, below, of, above on all ("yes" or "no").
    """
    rows = []
    for dataset, part in _scores(2).groupby("dataset", sort=False):
        for other in part.columns.drop(method):
            above, below = int((part[other] > part[method]).sum()), int((part[other] < part[method]).sum())
            on_all = "yes" if above == len(part) else "no"
            rows.append((dataset, other, above, below, len(part), on_all))
    return pd.DataFrame(rows, columns=["dataset", "method", "above", "below", "of", "above on all"])


def times() -> pd.DataFrame:
    """Table 2: test time a point over that of PLT: columns dataset, PLT ms, then one ratio a method."""
    t = table(2)
    wide = t[t["metric"] == TIME].pivot(index="dataset", columns="method", values="value")
    wide = wide.reindex(index=t["dataset"].unique(), columns=t["method"].unique())
    wide.columns.name = None
    ratio = wide.drop(columns="PLT").div(wide["PLT"], axis=0)
    return pd.concat([wide["PLT"].rename("PLT, ms"), ratio.add_suffix(" / PLT")], axis=1).reset_index()


def recovered() -> pd.DataFrame:
    """Table 2: how much of the precision that COV-PLT loses against PLT comes back with beta = 0.25.

    Columns dataset, k, PLT, COV-PLT, COVbeta-PLT (P@k, percent), % of the loss recovered (over 100: above PLT).
    """
    wide = _scores(2).xs("P", level="metric")[["PLT", GREEDY, WEIGHTED]]
    wide = wide.reindex(pd.MultiIndex.from_product([table(2)["dataset"].unique(), [1, 3, 5]], names=["dataset", "k"]))
    wide.columns.name = None
    wide["% recovered"] = 100 * (wide[WEIGHTED] - wide[GREEDY]) / (wide["PLT"] - wide[GREEDY])
    return wide.reset_index()


def claims() -> pd.DataFrame:
    """What the paper says of its tables, counted in them: columns claim, where, holds in ("12 of 14")."""
    head = head_only().set_index("metric")
    loss = -head["change %"]
    ranking, tail = loss[loss.index.isin(["P", "N", "Abandonment"])], loss[~loss.index.isin(["P", "N", "Abandonment"])]
    scores = _scores(2)
    cov = scores.xs("Cov", level="metric")
    place = cov.rank(axis=1, ascending=False)
    brs = dominated()
    by_dataset = brs[~brs["method"].isin(["PLT"])].groupby("dataset")["above on all"]
    time = times().drop(columns=["dataset", "PLT, ms"])
    back = recovered()["% recovered"]
    path = _scores(3)[list(BETAS)]
    same = _repeated()

    def steps(metric: str, sign: int) -> pd.DataFrame:
        return sign * path.xs(metric, level="metric").diff(axis=1).iloc[:, 1:] > 0

    found = [
        ("training on head labels costs P, nDCG, Abandonment under 10 %", "table 1", _count(ranking < 10)),
        ("it costs coverage and the macro measures over 70 %", "table 1", _count(tail > 70)),
        ("COV-PLT has the highest Cov@k", "table 2", _count(place[GREEDY] == 1)),
        ("COVbeta-PLT has the second highest Cov@k", "table 2", _count(place[WEIGHTED] == 2)),
        ("some method but PLT is above BRS-PLT on all nine scores", "table 2", _count(by_dataset.max() == "yes")),
        ("every method but PLT is above BRS-PLT on all nine scores", "table 2", _count(by_dataset.min() == "yes")),
        ("COV-PLT has the lowest P@k but for BRS-PLT", "table 2", _count(_lowest(scores))),
        ("beta = 0.25 recovers over half of the lost P@k", "table 2", _count(back > 50)),
        ("COV-PLT takes at most twice the time of PLT", "table 2", _count(time[f"{GREEDY} / PLT"] <= 2)),
        ("COVbeta-PLT takes at most twice the time of PLT", "table 2", _count(time[f"{WEIGHTED} / PLT"] <= 2)),
        ("a larger beta lowers Cov@k", "table 3", _count(steps("Cov", -1))),
        ("a larger beta raises P@k", "table 3", _count(steps("P", 1))),
        ("a cell that tables 2 and 3 share is the same in both", "tables 2, 3", _count(same)),
    ]
    return pd.DataFrame(found, columns=["claim", "where", "holds in"])


def _lowest(scores: pd.DataFrame) -> pd.Series:
    p = scores.xs("P", level="metric").drop(columns=RANDOM)
    return p.idxmin(axis=1) == GREEDY


def _repeated() -> pd.Series:
    """Whether score and error agree, for each cell of table 3 that table 2 has too."""
    two = table(2).dropna(subset="k")
    two = two[two["method"].isin([GREEDY, WEIGHTED])]
    two = two.assign(variant=two["method"].map({GREEDY: "0", WEIGHTED: "0.25"}))
    both = two.merge(table(3), on=["dataset", "variant", "metric", "k"], suffixes=("", " b"))
    return (both["printed"] == both["printed b"]) & (both["stderr"] == both["stderr b"])


# ---------------------------------------------------------------- P@k against Cov@k


def frontier() -> pd.DataFrame:
    """Precision and coverage of every rule, from tables 2 and 3: a new figure, the paper has none.

    Columns dataset, method, beta ("" where it has none), k, P, P stderr, Cov, Cov stderr; percent, errors over five runs.
    COV-PLT and the beta = 0.25 of table 2 are table 3's beta = 0 and 0.25 (:func:`claims` counts that they agree).
    """
    two = table(2)
    path = table(3)
    others = two[~two["method"].isin([GREEDY, WEIGHTED])].assign(variant="")
    t = pd.concat([path.assign(method=WEIGHTED), others])
    t = t[t["metric"].isin(["P", "Cov"])]
    t = t.assign(stderr=pd.to_numeric(t["stderr"]), k=t["k"].astype(int))
    index = ["dataset", "method", "variant", "k"]
    wide = t.pivot(index=index, columns="metric", values=["value", "stderr"])
    wide = wide.reindex(pd.MultiIndex.from_frame(t[index].drop_duplicates()))
    wide.columns = [metric if part == "value" else f"{metric} stderr" for part, metric in wide.columns]
    wide = wide.reset_index().rename(columns={"variant": "beta"})
    return wide[["dataset", "method", "beta", "k", "P", "P stderr", "Cov", "Cov stderr"]]


def against_path(data: pd.DataFrame) -> pd.DataFrame:
    """Each rule without a beta against the four points of COVbeta-PLT.

    ``dominated by`` names the betas that are better in both P and Cov by more than two standard errors of the difference,
    ``dominates`` those that are worse in both by as much ("-": none). ``P minus path`` is the precision over the straight
    line between neighbouring betas at the rule's own coverage, percentage points; missing where its coverage is outside
    that of the betas. The line is an aid: nobody ran the betas in between, and where the path bulges it lies too low.
    """
    rows = []
    for (dataset, k), part in data.groupby(["dataset", "k"], sort=False):
        path = part[part["beta"] != ""]
        for row in part[part["beta"] == ""].itertuples(index=False):
            ahead = []
            for name, place in (("P", 4), ("Cov", 6)):
                error = np.hypot(path[f"{name} stderr"], row[place + 1])
                ahead.append(((path[name] - row[place]) / error).to_numpy())
            better, worse = (np.minimum(*ahead) > 2), (np.maximum(*ahead) < -2)
            inside = path["Cov"].min() <= row.Cov <= path["Cov"].max()
            order = path.sort_values("Cov")
            line = float(np.interp(row.Cov, order["Cov"], order["P"])) if inside else float("nan")
            rows.append(
                {
                    "dataset": dataset,
                    "k": k,
                    "method": row.method,
                    "dominated by": ", ".join(path["beta"].to_numpy()[better]) or "-",
                    "dominates": ", ".join(path["beta"].to_numpy()[worse]) or "-",
                    "P minus path": row.P - line,
                }
            )
    return pd.DataFrame(rows)


def frontier_claims(data: pd.DataFrame) -> pd.DataFrame:
    """How often each rule is dominated by a beta or dominates one, and on which side of their path it lies.

    Columns method, k, datasets, dominated, dominates, beside the path (its coverage is in their range), above it.
    """
    rows = []
    for (method, k), part in against_path(data).groupby(["method", "k"], sort=False):
        beside = part["P minus path"].dropna()
        rows.append(
            {
                "method": method,
                "k": k,
                "datasets": len(part),
                "dominated": int((part["dominated by"] != "-").sum()),
                "dominates": int((part["dominates"] != "-").sum()),
                "beside the path": len(beside),
                "above it": int((beside > 0).sum()),
            }
        )
    return pd.DataFrame(rows)


_MARK = {"PLT": ("s", "#96301c"), "PS-PLT": ("^", "#2f7f79"), RANDOM: ("X", "#a07fc0")}


def plot_frontier(data: pd.DataFrame, k: int) -> Figure:
    """P@k against Cov@k, a panel a dataset, bars of one standard error; the title counts what it says."""
    data = data[data["k"] == k]
    names = list(dict.fromkeys(data["dataset"]))
    counted = frontier_claims(data).set_index("method")
    with figures.new(width=8.6, height=5.6, nrows=2, ncols=3) as (fig, axes):
        for ax, name in zip(axes.flat, names, strict=True):
            part = data[data["dataset"] == name]
            path = part[part["beta"] != ""].sort_values("Cov")
            bars = {"xerr": path["Cov stderr"], "yerr": path["P stderr"]}
            ax.errorbar(path["Cov"], path["P"], **bars, fmt="-o", color="#1b2a49", markersize=5, label="COVβ-PLT")
            for row in path.iloc[[0, -1]].itertuples(index=False):
                ax.annotate(f"β={row.beta}", (row.Cov, row.P), (5, 4), textcoords="offset points", fontsize=7)
            for row in part[part["beta"] == ""].itertuples(index=False):
                mark, colour = _MARK[row.method]
                ax.errorbar(
                    row.Cov, row.P, xerr=row[7], yerr=row[5], fmt=mark, color=colour, markersize=7, label=row.method
                )
            ax.set_title(name, loc="left")
            ax.margins(0.16)
        for ax in axes[-1]:
            ax.set_xlabel(f"Cov@{k}, %")
        for ax in axes[:, 0]:
            ax.set_ylabel(f"P@{k}, %")
        handles, texts = axes.flat[0].get_legend_handles_labels()
        fig.legend(
            handles,
            texts,
            loc="outside lower center",
            ncols=4,
            title="β = 1, 0.5, 0.25, 0 from left to right; bars: one standard error, mostly hidden by the marks",
        )
        random, weighted = counted.loc[RANDOM], counted.loc["PS-PLT"]
        fig.suptitle(
            f"A larger β trades Cov@{k} for P@{k}. Some β beats BRS-PLT on both in {random['dominated']} of "
            f"{random['datasets']} sets;\n"
            f"PS-PLT is so beaten in {weighted['dominated'] or 'none'}, and itself beats some β on both in "
            f"{weighted['dominates'] or 'none'}.",
            x=0.01,
            ha="left",
            fontsize=10,
        )
    return fig
