"""What the items on figure 3 and theorem 4.3 of Jain et al. 2016 compute and draw: labels that go missing along propensity
curves, and what that does to an evaluation and to a training."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import models, propensity
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.inputs import datasets, longtail, trained
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.repro.jain16_propensity import DOCUMENTS
from xcrepro.truth import Truth

REFERENCE = 0.55
"""A of the reference curve, bold in fig 3a."""
B = 1.5
"""The paper does not say which B its curves have; this is its default beside A = 0.55."""
K = 3
SIGMAS = 4.0

# ---------------------------------------------------------------- fig 3a: the curves


def complete(dataset: str = "eurlex-4k", folder: str = "") -> tuple[str, np.ndarray, int]:
    """What fig 3a takes for the complete truth: the dataset's name, its label counts, and of how many points.

    folder: of a real dataset, whose train labels are counted. Without it: EURLex-4K's counts that come with the project,
    which are of all its documents, train and test.
    """
    if folder:
        ds = datasets.pick(dataset, folder=folder)
        return ds.name, ds.label_counts, ds.n_train
    if registry.get(dataset).name != "eurlex-4k":
        raise ArgumentError("dataset", "must be eurlex-4k where folder is empty", dataset, "give the dataset's folder")
    tail = longtail.counted(dataset)
    return tail.name, tail.counts, DOCUMENTS


def missing_curves(counts: np.ndarray, n_points: int, grid: Sequence[float], per_decade: int = 12) -> pd.DataFrame:
    """A row a point of a curve: A, count (1 to the most frequent label's), propensity (eq. 1)."""
    top = int(np.max(counts))
    at = np.unique(np.round(np.geomspace(1, top, round(per_decade * math.log10(top)) + 1)).astype(np.int64))
    parts = [
        pd.DataFrame({"A": A, "count": at, "propensity": 1 / propensity.inverse(at, n_points, A, B)}) for A in grid
    ]
    return pd.concat(parts, ignore_index=True)


def missing_shares(counts: np.ndarray, n_points: int, grid: Sequence[float]) -> pd.DataFrame:
    """What a curve takes away, on average, when ``counts`` are those of the complete truth: percent.

    A, missing % (of all pairs), rare missing % (of the pairs of labels with fewer than 10 points), never seen % (of the
    labels that occur, those of which nothing is left: the mean over labels of (1 - p)^N_l).
    """
    counts = np.asarray(counts, np.float64)
    rare, occurs = counts < 10, counts > 0
    rows = []
    for A in grid:
        p = 1 / propensity.inverse(counts, n_points, A, B)
        rows.append(
            {
                "A": A,
                "missing %": 100 * (1 - (counts @ p) / counts.sum()),
                "rare missing %": 100 * (1 - (counts[rare] @ p[rare]) / counts[rare].sum()) if counts[rare].any() else np.nan,
                "never seen %": 100 * float(np.mean((1 - p[occurs]) ** counts[occurs])),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def plot_curves(curves: pd.DataFrame, shares: pd.DataFrame, name: str) -> Figure:
    """Fig 3a: a curve for each A, the reference bold, each with the share of labels that it takes away."""
    with figures.new(width=6.4, height=3.6) as (fig, ax):
        missing = shares.set_index("A")["missing %"]
        for A, curve in curves.groupby("A"):
            bold = {"color": "C0", "linewidth": 2.6} if A == REFERENCE else {"color": "0.45", "linewidth": 1.1}
            ax.plot(curve["count"], curve["propensity"], linestyle="-", **bold)
            last = curve.iloc[-1]
            text = f"{missing[A]:.0f} %  (A = {A:g})"
            weight = "bold" if A == REFERENCE else "normal"
            ax.annotate(
                text,
                (last["count"], last["propensity"]),
                (4, -3),
                textcoords="offset points",
                fontsize=8,
                weight=weight,
            )
        ax.set(xscale="log", ylim=(0, 1.02), xlabel="points with the label, $N_l$", ylabel="propensity $p_l$")
        ax.set_xlim(1, 9 * curves["count"].max())
        ax.set_title(f"{name}: the smaller A, the more labels go missing (% of all pairs, at each curve)", loc="left")
    return fig


# ---------------------------------------------------------------- fig 3b: the estimate is unbiased


def evaluations(
    Y, top: TopK, counts: np.ndarray, n_points: int, grid: Sequence[float], draws: int, seed: int = 0,
    ks: Sequence[int] = (1, 3, 5),
) -> pd.DataFrame:  # fmt: skip
    """nDCG@k by the observed truth, over ``draws`` draws of what goes missing from ``Y``, the complete truth: percent.

    A row an A and a k: A, k, missing % (of the pairs of Y, expected), complete (nDCG@k by Y), then of propensity-scored
    nDCG@k (table 1, not the ratio of table 3) and of nDCG@k the mean and the middle 95 % of the draws: scored, scored low,
    scored high, plain, plain low, plain high; and sigmas: how many standard errors of its mean (deviation / sqrt(draws)) the
    scored one is from complete. nDCG is the paper's, with the ideal of k labels; p_l from ``counts`` of ``n_points`` train
    points.

    All curves share their random numbers: what is observed on one is observed on every curve above it.
    """
    if draws < 40:
        raise ArgumentError("draws", "must be 40 or more, for 2.5 % on either side", draws)
    exact = 100 * ranking.ndcg(Y, top, ks, ideal="k")
    sizes = Truth.of(Y).label_counts()
    rows = []
    for A in grid:
        weight = propensity.inverse(counts, n_points, A, B)
        missing = 100 * (1 - (sizes @ (1 / weight)) / sizes.sum())
        scored, plain = np.empty((draws, len(ks))), np.empty((draws, len(ks)))
        for draw in range(draws):
            observed = propensity.drop_labels(Y, 1 / weight, np.random.default_rng([seed, draw]))
            values = ranking.values(["PSnDCG (bare, ideal k)", "nDCG (ideal k)"], observed, top, ks, weight)
            scored[draw], plain[draw] = (100 * column for column in values.values())
        for i, k in enumerate(ks):
            row = {"A": A, "k": k, "missing %": missing, "complete": exact[i]}
            for name, values in (("scored", scored[:, i]), ("plain", plain[:, i])):
                low, high = np.quantile(values, [0.025, 0.975])
                row |= {name: values.mean(), f"{name} low": low, f"{name} high": high}
            error = scored[:, i].std(ddof=1) / math.sqrt(draws)
            rows.append(row | {"sigmas": (scored[:, i].mean() - exact[i]) / error if error > 0 else 0.0})
    return pd.DataFrame(rows)


def unbiased(table: pd.DataFrame, draws: int) -> str:
    """A sentence: for how many rows the mean of ``draws`` draws lies within 4 of its standard errors of the complete value."""
    within = int((table["sigmas"].abs() <= SIGMAS).sum())
    return f"within {SIGMAS:g} standard errors of the complete truth: {within} of {len(table)} means of {draws} draws"


def plot_evaluations(table: pd.DataFrame, model: str) -> Figure:
    """Fig 3b: both estimates at k = 3 with the middle 95 % of the draws, against the share of labels missing."""
    table = table[table["k"] == K].sort_values("missing %")
    with figures.new(width=6.6, height=3.4) as (fig, ax):
        x = table["missing %"]
        ax.axhline(table["complete"].iloc[0], color="0.3", linewidth=0.9, linestyle="-", label="complete truth")
        for name, label, mark, color in (
            ("scored", "propensity-scored, observed truth", "o", "C0"),
            ("plain", "plain, observed truth", "s", "C4"),
        ):
            ax.fill_between(x, table[f"{name} low"], table[f"{name} high"], color=color, alpha=0.2, linewidth=0)
            ax.plot(x, table[name], marker=mark, color=color, linestyle="-" if name == "scored" else "--", label=label)
        ax.set(xlabel="labels missing, % of the pairs", ylabel=f"nDCG@{K} of {model}, %", ylim=(0, None))
        ax.set_title("Weighted by 1/p, nDCG stays right on average, and scatters (bands: 95 % of draws)", loc="left")
        ax.legend(loc="lower left")
    return fig


# ---------------------------------------------------------------- theorem 4.3: how far one draw may be off


def deviations(
    Y, top: TopK, counts: np.ndarray, n_points: int, grid: Sequence[float], points: Sequence[int], draws: int,
    seed: int = 0, delta: float = 0.05, k: int = K,
) -> pd.DataFrame:  # fmt: skip
    """Theorem 4.3's bound and what the propensity-scored nDCG@k of one draw is off, in points of 100.

    A row an A and a number of points n (the first n of a random order of Y's rows): A, points, rho, L bar, bound, own range,
    normal, observed, outside. rho is the largest gain of one predicted label of these points, were it observed. bound is
    the theorem's at ``delta``; own range: Hoeffding's inequality with each point's own largest gain; normal: the exact
    standard deviation times the normal quantile; observed: what 1 - delta of the draws stay below; outside: the share of
    draws beyond the bound.
    """
    from scipy.stats import norm

    points = np.asarray(points)
    truth = Truth.of(Y)
    if not ((points >= 2) & (points <= truth.n_rows)).all():
        raise ArgumentError("points", f"must be numbers of test points, 2 to {truth.n_rows}", points.tolist())
    order = np.random.default_rng([seed, 0]).permutation(truth.n_rows)
    top, rows = top.head(k).rows(order), []
    shuffled = truth.to_csr()[order]
    n_relevant = truth.sizes[order]
    hits = Truth.of(shuffled).hits(top.ids)
    discount = 1 / np.log2(np.arange(2, k + 2))
    for A in grid:
        weight = propensity.inverse(counts, n_points, A, B)
        # (n, k): what a place brings where its label is observed, and the chance of that; an empty place brings nothing.
        chance = np.where(top.ids >= 0, 1 / weight[top.ids], 1.0)
        possible = 100 * discount / discount.sum() / chance * (top.ids >= 0)
        gain = possible * hits
        rng = np.random.default_rng([seed, 1])
        off = np.array([(gain * ((rng.random(gain.shape) < chance) - chance)).sum(axis=1) for _ in range(draws)])
        largest = possible.max(axis=1)
        spread = (gain**2 * chance * (1 - chance)).sum(axis=1)
        for n in points:
            ln = math.log(2 / delta)
            rho, L = largest[:n].max(), math.sqrt(np.mean(n_relevant[:n].astype(float) ** 2))
            bound = rho * L * math.sqrt(ln / (2 * n))
            away = np.abs(off[:, :n].mean(axis=1))
            rows.append(
                {
                    "A": A,
                    "points": int(n),
                    "rho": rho,
                    "L bar": L,
                    "bound": bound,
                    "own range": math.sqrt((gain[:n].sum(axis=1) ** 2).sum() * ln / 2) / n,
                    "normal": norm.ppf(1 - delta / 2) * math.sqrt(spread[:n].sum()) / n,
                    "observed": np.quantile(away, 1 - delta),
                    "outside": np.mean(away > bound),
                }
            )
    return pd.DataFrame(rows)


def plot_deviations(table: pd.DataFrame, delta: float = 0.05) -> Figure:
    """Bounds and the observed deviation against the number of points, a panel for each A."""
    grid = list(dict.fromkeys(table["A"]))
    with figures.new(width=7.0, height=3.3, ncols=len(grid), sharey=True, squeeze=False) as (fig, axes):
        for axis, A in zip(axes[0], grid, strict=True):
            part = table[table["A"] == A]
            axis.plot(part["points"], part["bound"], "s", color="C1", linestyle="--", label="theorem 4.3's bound")
            axis.plot(
                part["points"], part["own range"], "^", color="C4", linestyle=":", label="Hoeffding, each point's range"
            )
            axis.plot(part["points"], part["normal"], color="C0", linestyle="-", label="exact deviation, normal")
            axis.plot(part["points"], part["observed"], "o", color="C2", linestyle="none", label="observed")
            axis.set(xscale="log", yscale="log", xlabel="test points", title=f"A = {A:g}")
            axis.set_xticks(part["points"], [f"{n}" for n in part["points"]])
            axis.minorticks_off()
        axes[0][0].set_ylabel(f"off at most, points of nDCG@{K}")
        handles, labels = axes[0][0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=2)
        times = math.floor((table["bound"] / table["observed"]).min())
        fig.suptitle(
            f"Draws stay {times} times and more within the bound; both shrink with the root of the points",
            fontsize=9,
        )
    return fig


# ---------------------------------------------------------------- fig 3c and 3d: training with missing labels

PLAIN, CONSTANT, SCORED = "FastXML", "FastXML, constant ideal", "PfastXML"


def scores(ds: Dataset, grid: Sequence[float], draws: int, trees: int, seed: int = 0, k: int = K) -> pd.DataFrame:
    """nDCG@k (percent, the paper's) on the complete test truth after training on what is left of the complete train truth.

    A row a training: A (of the curve along which labels went missing), assumed (A of the propensities the model was told,
    NaN for none), model, draw, missing % (of that draw), nDCG. A draw is what goes missing and the seed of the trees: within
    a draw all models see the same labels. PfastXML is trained for every A of ``grid`` with its true propensities (fig 3c), and
    on the reference curve with those of every other A (fig 3d); there also FastXML with PfastXML's constant normaliser, which
    is all that eq. 4 changes besides the propensities.
    """
    grid = sorted({*grid, REFERENCE})
    counts, n = ds.label_counts, ds.n_train
    truth = Truth.of(ds.train.Y)
    weights = {A: propensity.inverse(counts, n, A, B) for A in grid}
    rows = []
    for A in grid:
        for draw in range(draws):
            observed = propensity.drop_labels(truth, 1 / weights[A], np.random.default_rng([seed, draw]))
            missing = 100 * (1 - observed.nnz / truth.indices.size)
            told = grid if A == REFERENCE else [A]
            options = {"trees": trees, "seed": seed + draw}
            pairs = [(PLAIN, np.nan, models.FastXML(**options))]
            pairs += [(SCORED, other, models.PfastXML(**options, inverse_propensity=weights[other])) for other in told]
            if A == REFERENCE:
                pairs.append((CONSTANT, np.nan, models.FastXML(**options, ideal="L")))
            for name, assumed, model in pairs:
                top = trained.training(model, ds.train.X, observed).predictions(ds.test.X, k)
                value = 100 * ranking.ndcg(ds.test.Y, top, (k,), ideal="k")[0]
                rows.append((A, assumed, name, draw, missing, value))
    return pd.DataFrame(rows, columns=["A", "assumed", "model", "draw", "missing %", "nDCG"])


def paired(found: pd.DataFrame) -> pd.DataFrame:
    """Every model beside FastXML on the same draws: A, model, assumed, missing %, FastXML, nDCG (means over the draws),
    difference, error (standard error of the mean difference), better (in how many draws), draws."""
    plain = found[found["model"] == PLAIN].set_index(["A", "draw"])
    rows = []
    for (A, model, assumed), part in found[found["model"] != PLAIN].groupby(["A", "model", "assumed"], dropna=False):
        base = plain.loc[[(A, draw) for draw in part["draw"]], "nDCG"].to_numpy()
        off = part["nDCG"].to_numpy() - base
        rows.append(
            {
                "A": A,
                "model": model,
                "assumed": assumed,
                "missing %": part["missing %"].mean(),
                "FastXML": base.mean(),
                "nDCG": part["nDCG"].mean(),
                "difference": off.mean(),
                "error": off.std(ddof=1) / math.sqrt(off.size) if off.size > 1 else np.nan,
                "better": int((off > 0).sum()),
                "draws": off.size,
            }
        )
    return pd.DataFrame(rows)


def right(table: pd.DataFrame) -> pd.DataFrame:
    """Fig 3c's rows of :func:`paired`: PfastXML with the propensities that labels went missing by."""
    return table[(table["model"] == SCORED) & (table["assumed"] == table["A"])].reset_index(drop=True)


def wrong(table: pd.DataFrame) -> pd.DataFrame:
    """Fig 3d's rows of :func:`paired`: everything trained on the reference curve."""
    return table[table["A"] == REFERENCE].reset_index(drop=True)


def plot_training(table: pd.DataFrame) -> Figure:
    """Fig 3c and 3d: against the share of labels missing, and against the A that PfastXML was told; bars are 2 errors."""
    with figures.new(width=7.2, height=3.3, ncols=2) as (fig, axes):
        part = right(table).sort_values("missing %")
        axes[0].plot(part["missing %"], part["FastXML"], "s", color="C4", linestyle="--", label="FastXML")
        axes[0].errorbar(
            part["missing %"], part["nDCG"], yerr=2 * part["error"], marker="o", color="C0", linestyle="-", capsize=2,
            label="PfastXML, true propensities",
        )  # fmt: skip
        axes[0].set(xlabel="train labels missing, % of the pairs", ylabel=f"nDCG@{K} on the complete truth, %")
        axes[0].set_title("c: trained with 1/p, about a point better", loc="left")
        axes[0].legend(loc="lower left")

        part = wrong(table)
        told = part[part["model"] == SCORED].sort_values("assumed")
        axes[1].axhline(part["FastXML"].iloc[0], color="C4", linestyle="--", label="FastXML, no propensities")
        constant = part[part["model"] == CONSTANT]["nDCG"].iloc[0]
        axes[1].axhline(constant, color="C2", linestyle=":", label="FastXML, PfastXML's normaliser")
        axes[1].errorbar(
            told["assumed"], told["nDCG"], yerr=2 * told["error"], marker="o", color="C0", linestyle="-", capsize=2,
            label="PfastXML",
        )  # fmt: skip
        exact = told[told["assumed"] == REFERENCE]
        axes[1].plot(exact["assumed"], exact["nDCG"], "o", color="C1", markersize=8, fillstyle="none", linestyle="none")
        axes[1].lines[-1].set_label("told the truth, A = 0.55")
        axes[1].set(xlabel="A of the propensities PfastXML was told")
        axes[1].set_title("d: wrong p help too, unless near 1", loc="left")
        axes[1].set_ylim(told["nDCG"].min() - 2 * told["error"].max() - 1.4)
        axes[1].legend(loc="lower left", fontsize=7)
    return fig
