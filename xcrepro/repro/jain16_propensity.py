"""What the item on figure 2 of Jain et al. 2016 computes and draws: the propensity model, the heuristics beside it, and the
paper's estimate from a hierarchy where its outcome can be judged."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import paths, propensity
from xcrepro.data import registry
from xcrepro.data.twin import Twin
from xcrepro.errors import ArgumentError
from xcrepro.repro import figures
from xcrepro.truth import Truth

PAPER = {"Wikipedia": "wikilshtc-325k", "Amazon": "amazon-670k"}
"""What the paper calls a dataset in fig 2 -> the registry's name of the dataset of table 2 that it stands for."""
PER_BIN = 20  # labels a bin
MIN_DESCENDANTS = 5  # "more than 4"
DOCUMENTS = 19_314
"""How many points the committed counts of EURLex-4K's labels are of: all of them, train and test."""
ESTIMATES = ("true", "procedure", "complete descendants", "among descendants")

# ---------------------------------------------------------------- the curves


def curves(per_decade: int = 8) -> pd.DataFrame:
    """Fig 2's curves with the published A and B: dataset, count (N_l, 1 to N), propensity, weight, power, log.

    power and log are the two heuristics for a label's weight, N_l^-A and log(N/N_l), scaled to the model's weight at N_l = 1.
    That is log N, so the second needs no scaling.
    """
    parts = []
    for name, key in PAPER.items():
        entry = registry.get(key)
        n = entry.n_train
        counts = np.unique(np.round(np.geomspace(1, n, round(per_decade * math.log10(n)) + 1)).astype(np.int64))
        weight = propensity.inverse(counts, n, entry.A, entry.B)
        parts.append(
            pd.DataFrame(
                {
                    "dataset": name,
                    "count": counts,
                    "propensity": 1 / weight,
                    "weight": weight,
                    "power": math.log(n) * counts**-entry.A,
                    "log": np.log(n / counts),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def falls() -> pd.DataFrame:
    """How many times smaller a label's weight gets when N_l grows ten times: dataset, from, to, weight, power, log.

    Ratios do not depend on how a heuristic is scaled; the last decade that lies below N is the last row.
    """
    rows = []
    for name, key in PAPER.items():
        entry = registry.get(key)
        n = entry.n_train
        for low in 10 ** np.arange(int(math.log10(n))):
            both = np.array([low, 10 * low])
            weight = propensity.inverse(both, n, entry.A, entry.B)
            log = np.log(n / both)
            rows.append((name, int(low), int(10 * low), weight[0] / weight[1], 10**entry.A, log[0] / log[1]))
    return pd.DataFrame(rows, columns=["dataset", "from", "to", "weight", "power", "log"])


# ---------------------------------------------------------------- estimates from a hierarchy


def below(pairs: np.ndarray, n_labels: int) -> sparse.csr_matrix:
    """(L, L) bool: row = a label, columns = all labels above it. pairs: (m, 2) of (child, parent), without circles."""
    children, above = np.asarray(pairs, np.int64).reshape(-1, 2).T
    step = up = sparse.csr_matrix((np.ones(children.size, bool), (children, above)), shape=(n_labels, n_labels))
    found = up
    while step.nnz:
        step = step @ up
        found = found + step
    return found


def overlaps(Y, pairs: np.ndarray) -> pd.DataFrame:
    """What a hierarchy lets one count: a row a label with anything below it.

    label, descendants (how many labels), count (N_l: points that carry it), below (points that carry a descendant), both.
    So N_l*, the label or a descendant, is count + below - both.

    Y: (n, L) truth; pairs: (m, 2) of (child, parent).
    """
    truth = Truth.of(Y)
    up = below(pairs, truth.n_labels)
    carried = truth.to_csr().astype(bool)
    implied = (carried @ up).tocsr()
    n_descendants = np.bincount(up.indices, minlength=truth.n_labels)
    chosen = np.flatnonzero(n_descendants)
    return pd.DataFrame(
        {
            "label": chosen,
            "descendants": n_descendants[chosen],
            "count": truth.label_counts()[chosen],
            "below": np.bincount(implied.indices, minlength=truth.n_labels)[chosen],
            "both": np.bincount(implied.multiply(carried).tocsr().indices, minlength=truth.n_labels)[chosen],
        }
    )


def pairs_of(parents: np.ndarray) -> np.ndarray:
    """(m, 2) of (child, parent) from one parent a label, -1 for none, as a twin has it."""
    children = np.flatnonzero(np.asarray(parents) >= 0)
    return np.column_stack([children, np.asarray(parents)[children]])


def eurovoc() -> pd.DataFrame:
    """The committed counts of EURLex-4K's labels that EuroVoc has others below: as :func:`overlaps`, with codes."""
    path = paths.project_root() / "data" / "label_counts" / "hierarchy" / "eurlex-4k.csv"
    return pd.read_csv(path, dtype={"codes": "str"})


def estimates(table: pd.DataFrame) -> pd.DataFrame:
    """The two estimates of p_l from :func:`overlaps`, for labels with more than 4 descendants that occur, by rising count.

    procedure: the paper's, count / (count + below - both).
    among descendants: both / below, of the points that carry a descendant the share that carry the label too; NaN where no
    point carries one. Where labels go missing independently it is unbiased, whatever goes missing below.
    """
    table = table[(table["descendants"] >= MIN_DESCENDANTS) & (table["count"] > 0)]
    table = table.sort_values(["count", "label"], ignore_index=True)
    under = table["below"].where(table["below"] > 0)
    return table.assign(
        procedure=table["count"] / (table["count"] + table["below"] - table["both"]),
        **{"among descendants": table["both"] / under},
    )


def twin_estimates(ds: Twin) -> pd.DataFrame:
    """:func:`estimates` on a twin's observed train labels, with what only a twin knows.

    true: p_l. complete descendants: the procedure where only the label itself went missing and nothing below it.
    seen, implied, lost, lost alone: shares of the points that the label is relevant to: it is observed; only a descendant
    is; neither is, though a descendant is relevant; neither is, and no descendant is relevant. They add up to 1.
    """
    pairs = pairs_of(ds.parents)
    found = estimates(overlaps(ds.train.Y_observed, pairs))
    up = below(pairs, ds.parents.size)
    complete, observed = ds.train.Y.astype(bool), ds.train.Y_observed.astype(bool)
    relevant = (complete @ up).tocsr()  # a descendant is relevant
    noticed = (observed @ up).tocsr()  # a descendant is observed

    def counted(matrix) -> np.ndarray:
        return np.bincount(matrix.tocsr().indices, minlength=ds.parents.size)[found["label"]]

    size = counted(complete)
    unseen = (complete > observed).tocsr()
    implied = counted(unseen.multiply(noticed))
    no_help = counted(unseen) - counted(unseen.multiply(relevant))
    return found.assign(
        true=ds.propensities[found["label"]],
        **{
            "complete descendants": found["count"] / (found["count"] + counted(unseen.multiply(relevant))),
            "seen": found["count"] / size,
            "implied": implied / size,
            "lost": (counted(unseen) - implied - no_help) / size,
            "lost alone": no_help / size,
        },
    )


def bins(found: pd.DataFrame, per_bin: int = PER_BIN) -> pd.DataFrame:
    """Bins of ``per_bin`` labels by rising count, the last with what is left, as in the paper: labels, count (mean), lowest,
    highest, and the mean of every column of shares. A label's missing estimate is left out of its bin's mean."""
    shares = [name for name in found.columns if found[name].dtype == np.float64]
    grouped = found.groupby(np.arange(len(found)) // per_bin)
    counts = grouped["count"]
    table = pd.DataFrame(
        {"labels": grouped.size(), "count": counts.mean(), "lowest": counts.min(), "highest": counts.max()}
    )
    return table.join(grouped[shares].mean()).reset_index(drop=True)


def fits(table: pd.DataFrame, n_points: int, source: str) -> pd.DataFrame:
    """A and B by least squares over the bins (each as often as it has labels): a row for each estimate that ``table`` has.

    source, estimate, A, B, A error, B error (standard errors), rms (of p, about the curve), fits (text: yes, or why no pair
    of A and B is found; A and B are then NaN).
    """
    rows = []
    for name in ESTIMATES:
        if name not in table:
            continue
        known = table[table[name].notna()]
        found = propensity.fit(known["count"], known[name], n_points, weights=known["labels"])
        known_pair = (found.A, found.B, found.A_stderr, found.B_stderr) if found.identifiable else (np.nan,) * 4
        rows.append((source, name, *known_pair, found.rms, "yes" if found.identifiable else found.why))
    return pd.DataFrame(rows, columns=["source", "estimate", "A", "B", "A error", "B error", "rms", "fits"])


def all_fits(made: pd.DataFrame, n_train: int, real: pd.DataFrame) -> pd.DataFrame:
    """:func:`fits` of a twin's bins and of EuroVoc's, and the A and B that the paper prints (section 5)."""
    rows = [("paper", f"printed for {name}", registry.get(key).A, registry.get(key).B) for name, key in PAPER.items()]
    printed = pd.DataFrame(rows, columns=["source", "estimate", "A", "B"])
    parts = [printed, fits(made, n_train, "twin"), fits(real, DOCUMENTS, "EuroVoc")]
    return pd.concat(parts, ignore_index=True).fillna({"fits": ""})


def by_chance(found: pd.DataFrame, draws: int = 1000, seed: int = 0, per_bin: int = PER_BIN) -> pd.DataFrame:
    """The procedure's bins when what lies below a label is dealt out to the labels at random: labels, count (mean of N_l),
    procedure, chance, low, high (the mean over the draws, and the middle 95 % of them).

    N_l stands above the line of N_l / N_l* and orders the bins, so the estimate rises with N_l even then.
    """
    if draws < 40:
        raise ArgumentError("draws", "must be 40 or more, for 2.5 % on either side", draws)
    rng = np.random.default_rng(seed)
    counts = found["count"].to_numpy()
    extra = (found["below"] - found["both"]).to_numpy()
    bin_of = np.arange(counts.size) // per_bin
    size = np.bincount(bin_of)
    drawn = np.array([np.bincount(bin_of, counts / (counts + rng.permutation(extra))) / size for _ in range(draws)])
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    table = bins(found, per_bin)[["labels", "count", "procedure"]]
    return table.assign(chance=drawn.mean(axis=0), low=low, high=high)


def hierarchies(made: pd.DataFrame, real: pd.DataFrame, chance: pd.DataFrame) -> pd.DataFrame:
    """The data behind the second figure: what it draws of all three, with a column source in front."""
    parts = {"twin, bins": made, "EuroVoc, labels": real[["label", "count", "procedure"]], "EuroVoc, bins": chance}
    return pd.concat([part.assign(source=name) for name, part in parts.items()], ignore_index=True)[
        ["source", "count", *ESTIMATES, "chance", "low", "high"]
    ]


# ---------------------------------------------------------------- figures


def plot_curves(data: pd.DataFrame) -> Figure:
    """Fig 2 with the published A and B: propensities, and the weights with both heuristics."""
    with figures.new(width=7.2, height=3.0, ncols=3) as (fig, axes):
        for number, (name, part) in enumerate(data.groupby("dataset", sort=False)):
            entry = registry.get(PAPER[name])
            style = {"color": f"C{number}", "linestyle": "-" if number == 0 else "--"}
            label = f"{name}\nA = {entry.A}, B = {entry.B}"
            axes[0].plot(part["count"], part["propensity"], label=label, **style)
        axes[0].set(xscale="log", xlabel="points with the label, $N_l$", ylabel="propensity $p_l$", ylim=(0, 1))
        axes[0].set_title("A sigmoid in log $N_l$", loc="left")
        axes[0].legend(loc="lower right", fontsize=7)
        # The logarithm's last point is 0, at N_l = N.
        for axis, (name, part) in zip(axes[1:], data.groupby("dataset", sort=False), strict=True):
            axis.plot(part["count"], part["weight"], color="C0", linestyle="-", linewidth=2.2, label="$w_l = 1/p_l$")
            axis.plot(part["count"], part["power"], color="C2", linestyle="-.", label=r"$\propto N_l^{-A}$")
            axis.plot(part["count"][:-1], part["log"][:-1], color="C4", linestyle=":", label="log($N/N_l$)")
            axis.set(xscale="log", yscale="log", ylim=(0.09, 20), xlabel="points with the label, $N_l$")
            axis.set_title(f"{name}: 1/p levels off", loc="left")
        axes[1].set_ylabel("weight of a hit")
        axes[1].legend(loc="lower left")
    return fig


def plot_hierarchies(made: pd.DataFrame, real: pd.DataFrame, chance: pd.DataFrame, name: str) -> Figure:
    """The procedure's points: on a twin (``made``, bins) beside the truth, and in EuroVoc (``real``, labels) beside chance."""
    with figures.new(width=7.2, height=3.3, ncols=2) as (fig, axes):
        ax = axes[0]
        ax.plot(made["count"], made["true"], color="C0", linestyle="-", linewidth=2.2, label="true $p_l$")
        ax.plot(made["count"], made["procedure"], "s", color="C1", linestyle="--", label="the paper's procedure")
        kept = "complete descendants"
        ax.plot(made["count"], made[kept], "^", color="C4", linestyle=":", label="... with nothing lost below")
        among = "among descendants"
        ax.plot(made["count"], made[among], "o", color="C2", fillstyle="none", linestyle="none", markersize=6)
        ax.lines[-1].set_label("among points with a descendant")
        ax.set(xscale="log", ylim=(0, 1.02), xlabel="points with the label, $N_l$", ylabel="propensity $p_l$")
        ax.minorticks_off()
        low, high = made["count"].min(), made["count"].max()
        ticks = [n for n in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000) if low / 1.2 <= n <= 1.2 * high]
        ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
        ax.set_title(f"{name}: the procedure estimates too high", loc="left")
        ax.legend(loc="lower right")

        ax = axes[1]
        ax.plot(real["count"], real["procedure"], ".", color="0.6", linestyle="none", label="a label")
        ax.plot(chance["count"], chance["procedure"], "s", color="C1", linestyle="--", label="bins of 20 labels")
        ax.fill_between(chance["count"], chance["low"], chance["high"], color="C5", alpha=0.6, linewidth=0)
        ax.collections[-1].set_label("bins if dealt at random, 95 %")
        model = registry.get("eurlex-4k")
        at = np.unique(np.round(np.geomspace(1, real["count"].max(), 40)))
        p = 1 / propensity.inverse(at, model.n_train, model.A, model.B)
        ax.plot(at, p, color="C0", linestyle="-", label="eq. 1, A = 0.55, B = 1.5")
        ax.set(xscale="log", ylim=(0, 1.02), xlabel="points with the label, $N_l$")
        ax.set_title("EURLex-4K under EuroVoc: far below eq. 1", loc="left")
        ax.legend(loc="upper left")
    return fig
