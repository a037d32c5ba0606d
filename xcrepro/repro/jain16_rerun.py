"""What the items on tables 3 and 4 and on fig. 4 of Jain et al. 2016 compute and draw with this kit's models."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import published
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import datasets
from xcrepro.inputs.datasets import weights
from xcrepro.metrics import ranking
from xcrepro.metrics.coverage import coverage
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.repro.jain16_tables import PRINTED
from xcrepro.repro.rerun import blocks_left_out, jackknife_error
from xcrepro.truth import Truth

KS = (1, 3, 5)
MODELS = ("Popularity", "1-vs-All", "DiSMEC", "PLT", "FastXML", "PfastXML", "PfastreXML")
"""The baselines shown: all five of the paper's that this kit has, and two that came later (DiSMEC, PLT)."""
SCORED = [f"{letter}{k}" for letter in "NP" for k in KS]
COVERED = [f"C{k}" for k in KS]
EDGES = (3, 10, 30, 100, 300, 1000)

# ---------------------------------------------------------------- tables 3 and 4


def scores(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """Tables 3 and 4 of the models, percent: model, N1, N3, N5 (PSnDCG), P1, P3, P5 (PSP), C1, C3, C5 (coverage).

    As jain16, section 7: N and P are 100 G(prediction) / G(truth), with the propensities from the train counts and the
    dataset's A and B; nDCG's normaliser runs over k places whatever the point has and cancels in the ratio. C is
    the number of labels rightly predicted somewhere over the most that k places a point can show.
    """
    rows = []
    for name, top in tops.items():
        covered = 100 * coverage(ds.test.Y, top, KS, over="reachable")
        rows.append({"model": name} | _scored(ds.test.Y, top, weights(ds)) | dict(zip(COVERED, covered, strict=True)))
    return pd.DataFrame(rows)


def _scored(Y, top: TopK, w: np.ndarray) -> dict[str, float]:
    found = ranking.values(["PSnDCG (ideal k)", "PSP"], Y, top, KS, w)
    return dict(zip(SCORED, 100 * np.concatenate([found["PSnDCG (ideal k)"], found["PSP"]]), strict=True))


def printed(ds: Dataset) -> pd.DataFrame:
    """The paper's cells for the methods of :data:`MODELS` on this dataset: model, column, printed (text).

    No rows where the paper has not this dataset.
    """
    name = datasets.registry_name(ds)
    known = registry.get(name).printed_name if name in registry.names() else ""
    tables = [published.table(f"jain16:table{number}{letter}") for number in (3, 4) for letter in "abcdef"]
    cells = pd.concat(tables, ignore_index=True)
    cells = cells[(cells["dataset"] == known) & cells["method"].isin(MODELS)]
    column = cells["metric"].map(PRINTED) + cells["k"].astype(str)
    return pd.DataFrame({"model": cells["method"], "column": column, "printed": cells["printed"]}).reset_index(
        drop=True
    )


def beside(found: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Ours (a table of :func:`scores`) beside the paper's cells: model, column, ours, printed (text), difference in points."""
    value = found.set_index("model")
    rows = [
        (row.model, row.column, value.loc[row.model, row.column], row.printed)
        for row in paper.itertuples()
        if row.model in value.index
    ]
    table = pd.DataFrame(rows, columns=["model", "column", "ours", "printed"])
    table["difference"] = table["ours"] - table["printed"].astype(float)
    return table


CLAIMS = [
    ("propensities in the nodes help", "PfastXML", "FastXML"),
    ("re-ranking helps on top", "PfastreXML", "PfastXML"),
    ("PfastreXML beats one-vs-rest", "PfastreXML", "1-vs-All"),
    ("PfastreXML beats what came later", "PfastreXML", "DiSMEC"),
    ("PfastreXML beats what came later", "PfastreXML", "PLT"),
]


def claims(ds: Dataset, tops: Mapping[str, TopK], found: pd.DataFrame) -> pd.DataFrame:
    """The paper's order of the methods, counted out over the columns N1 to P5: claim, better, than; above and below (how many
    of the six columns, each of them by more than twice its standard error), unclear (the rest); least and largest, the
    differences in points; C1 and C5, those of the coverage, which have no standard error here.

    The standard error is that of a paired difference by a jackknife over 20 blocks of test points.
    """
    value = found.set_index("model")
    w = weights(ds)
    left: dict[str, list] = {name: [] for name in tops}
    for keep in blocks_left_out(ds.test.Y.shape[0]):
        for name, top in tops.items():
            left[name].append(list(_scored(ds.test.Y[keep], top.rows(keep), w).values()))
    rows = []
    for claim, better, than in CLAIMS:
        if better not in tops or than not in tops:
            continue
        apart = (value.loc[better, SCORED] - value.loc[than, SCORED]).to_numpy(float)
        error = jackknife_error(np.array(left[better]) - np.array(left[than]))
        clear = np.abs(apart) > 2 * error
        above, below = int((clear & (apart > 0)).sum()), int((clear & (apart < 0)).sum())
        cover = value.loc[better, COVERED] - value.loc[than, COVERED]
        rows.append(
            (claim, better, than, above, below, len(SCORED) - above - below, apart.min(), apart.max(), cover["C1"],
             cover["C5"])
        )  # fmt: skip
    names = ["claim", "better", "than", "above", "below", "unclear", "least", "largest", "C1", "C5"]
    return pd.DataFrame(rows, columns=names)


def plot_scores(found: pd.DataFrame, paper: pd.DataFrame, twin: bool) -> Figure:
    """Ours (filled) beside the printed value (hollow), for P1, P5, C1 and C5."""
    names = list(found["model"])
    with figures.new(width=7.2, height=3.3, ncols=4, sharey=True) as (fig, axes):
        for ax, column in zip(axes, ("P1", "P5", "C1", "C5"), strict=True):
            ax.plot(found[column], range(len(names)), "o", color="C0", linestyle="none", label="ours")
            part = paper[(paper["column"] == column) & paper["model"].isin(names)]
            at = [names.index(name) for name in part["model"]]
            ax.plot(
                part["printed"].astype(float), at, "s", color="C1", fillstyle="none", linestyle="none", label="printed"
            )
            ax.set(title=column, xlabel="%", xlim=(0, None))
            ax.grid(axis="y", linewidth=0.4)
        axes[0].set_yticks(range(len(names)), names)
        axes[0].invert_yaxis()
        handles, labels = axes[0].get_legend_handles_labels()
        labels = [label + (" (real data; ours is a twin)" if twin and label == "printed" else "") for label in labels]
        fig.legend(handles, labels, loc="outside lower center", ncols=2)
        best = found.set_index("model")[["P1", "P5", "C1", "C5"]].idxmax()
        fig.suptitle("Who leads: " + ", ".join(f"{name} in {column}" for column, name in best.items()), fontsize=10)
    return fig


# ---------------------------------------------------------------- fig. 4: each label's share


def contributions(ds: Dataset, tops: Mapping[str, TopK], k: int) -> pd.DataFrame:
    """What each label adds to PSP@k, in points: label, count (N_l), best, then a column a model.

    Label l adds 100 w_l hits_l / G, with hits_l the test points whose first k places hold it rightly and G the sum of the
    same over labels for the best ranking of the truth. So a model's column adds up to its PSP@k, ``best`` to 100.
    """
    truth, w = Truth.of(ds.test.Y), weights(ds)
    weighted = sparse.csr_matrix((w[truth.indices], truth.indices, truth.indptr), shape=ds.test.Y.shape)
    best = _weighted_hits(truth, TopK.from_scores(weighted, k), w, k)
    table = pd.DataFrame({"label": np.arange(truth.n_labels), "count": ds.label_counts, "best": best})
    for name, top in tops.items():
        table[name] = _weighted_hits(truth, top, w, k)
    table[["best", *tops]] *= 100 / best.sum()
    return table


def _weighted_hits(truth: Truth, top: TopK, w: np.ndarray, k: int) -> np.ndarray:
    ids = np.ascontiguousarray(top.ids[:, :k])
    return w * np.bincount(ids[truth.hits(ids)], minlength=truth.n_labels)


def cumulated(ds: Dataset, tops: Mapping[str, TopK], ks: Sequence[int] = (1, 5)) -> pd.DataFrame:
    """Contributions added up from the rarest label on: k, count, labels (that have at most this count), best, and the models.

    One row for each count that occurs, the last one holding PSP@k.
    """
    parts = []
    for k in ks:
        table = contributions(ds, tops, k).drop(columns="label")
        table.insert(1, "labels", 1)
        sums = table.groupby("count", sort=True).sum().cumsum().reset_index()
        sums.insert(0, "k", k)
        parts.append(sums)
    return pd.concat(parts, ignore_index=True)


def by_frequency(ds: Dataset, tops: Mapping[str, TopK], ks: Sequence[int] = (1, 5)) -> pd.DataFrame:
    """Contributions by how often a label occurs in train, in points of PSP@k: k, points (the bin), labels, best, the models."""
    names = ["0-2", *(f"{low}-{high - 1}" for low, high in itertools.pairwise(EDGES)), f"{EDGES[-1]}+"]
    parts = []
    for k in ks:
        table = contributions(ds, tops, k).drop(columns="label")
        place = np.searchsorted(EDGES, table.pop("count").to_numpy(), side="right")
        table.insert(0, "labels", 1)
        sums = table.groupby(place).sum()
        sums.insert(0, "points", [names[i] for i in sums.index])
        sums.insert(0, "k", k)
        parts.append(sums)
    return pd.concat(parts, ignore_index=True)


def gain_by_frequency(bins: pd.DataFrame, better: str = "PfastreXML", than: str = "FastXML") -> pd.DataFrame:
    """Where ``better`` gains on ``than``: k, points, labels, gain (points of PSP@k), % of the gain; empty without the two."""
    if better not in bins or than not in bins:
        return pd.DataFrame(columns=["k", "points", "labels", "gain", "% of the gain"])
    table = bins[["k", "points", "labels"]].copy()
    table["gain"] = bins[better] - bins[than]
    table["% of the gain"] = 100 * table["gain"] / table.groupby("k")["gain"].transform("sum")
    return table


# Grey tells them apart by dash and width, colour by hue.
STYLES = {
    "Popularity": {"color": "0.55", "linestyle": ":", "linewidth": 1.4},
    "1-vs-All": {"color": "#2f7f79", "linestyle": "--", "linewidth": 1.2},
    "DiSMEC": {"color": "#2f7f79", "linestyle": ":", "linewidth": 1.6},
    "PLT": {"color": "#7b4f9d", "linestyle": "-.", "linewidth": 1.2},
    "FastXML": {"color": "#e39a2d", "linestyle": "-", "linewidth": 2.0},
    "PfastXML": {"color": "#a8452c", "linestyle": "--", "linewidth": 1.6},
    "PfastreXML": {"color": "#1b2a49", "linestyle": "-", "linewidth": 2.4},
}


def from_rare(data: pd.DataFrame, model: str, k: int, below: int = 100) -> float:
    """Percent of a model's PSP@k that comes from labels with fewer than ``below`` train points; 0 where PSP@k is 0."""
    part = data[data["k"] == k]
    rare, total = part.loc[part["count"] < below, model], part[model].iloc[-1]
    return 100 * float(rare.iloc[-1]) / total if len(rare) and total else 0.0


def plot_cumulated(data: pd.DataFrame) -> Figure:
    """Fig 4, added up from the rarest label to the most frequent one, a panel for each k."""
    ks, models = (
        list(dict.fromkeys(data["k"])),
        [name for name in data.columns if name not in ("k", "count", "labels", "best")],
    )
    with figures.new(width=7.2, height=3.7, ncols=len(ks)) as (fig, axes):
        for ax, k in zip(np.atleast_1d(axes), ks, strict=True):
            part = data[(data["k"] == k) & (data["count"] > 0)]
            for name in models:
                style = STYLES.get(name, {})
                # Thin lines on top, so that a broad one hides none.
                on_top = 5 - style.get("linewidth", 1.0)
                ax.step(part["count"], part[name], where="post", label=name, zorder=on_top, **style)
            ax.set(xscale="log", title=f"PSP@{k}", xlabel="train points of a label, N", ylim=(0, None))
        first = np.atleast_1d(axes)[0]
        first.set_ylabel("points of PSP@k from labels\nwith at most N train points")
        fig.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        shares = [
            f"{name} {from_rare(data, name, ks[0]):.0f} %" for name in ("PfastreXML", "FastXML") if name in models
        ]
        about = ", ".join(shares) or f"{models[0]} {from_rare(data, models[0], ks[0]):.0f} %"
        fig.suptitle(f"Share of PSP@{ks[0]} from labels with fewer than 100 train points: {about}", fontsize=10)
    return fig
