"""Fig. 4 of Jain et al. 2016: what each label adds to propensity-scored precision, by its frequency."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.inputs.datasets import complete, weights
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

EDGES = (3, 10, 30, 100, 300, 1000)
BINS = ["0-2", *(f"{low}-{high - 1}" for low, high in itertools.pairwise(EDGES)), f"{EDGES[-1]}+"]


def compute_labels(ds: Dataset, tops: Mapping[str, TopK], k: int) -> pd.DataFrame:
    """What each label adds to PSP@k, in points.

    Label l adds 100 w_l hits_l / G, with hits_l the test points whose first k places hold it rightly and G the sum of
    the same over labels for the best ranking of the truth. So a model's column adds up to its PSP@k, ``best`` to 100.

    Parameters
    ----------
    ds : Dataset
        Weights w_l are 1/p_l from its train counts, A and B.
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    k : int

    Returns
    -------
    DataFrame
        A row a label: k, count (N_l), labels (1), best, then a column a model.
    """
    truth, w = Truth.of(ds.test.Y), weights(ds)
    weighted = sparse.csr_matrix((w[truth.indices], truth.indices, truth.indptr), shape=ds.test.Y.shape)
    table = pd.DataFrame({"k": k, "count": ds.label_counts, "labels": 1})
    for name, top in {"best": TopK.from_scores(weighted, k), **tops}.items():
        table[name] = w * _hits(truth, top, k)
    table[["best", *tops]] *= 100 / table["best"].sum()
    return table


def compute_complete(ds: Dataset, tops: Mapping[str, TopK], k: int) -> pd.DataFrame:
    """What each label adds to P@k on a twin's complete truth, in points: 100 hits_l / (n k), which adds up to P@k.

    Parameters
    ----------
    ds : Twin
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    k : int

    Returns
    -------
    DataFrame
        As :func:`compute_labels`, without ``best``.
    """
    truth = Truth.of(complete(ds))
    table = pd.DataFrame({"k": k, "count": ds.label_counts, "labels": 1})
    for name, top in tops.items():
        table[name] = 100 / (truth.n_rows * k) * _hits(truth, top, k)
    return table


def _hits(truth: Truth, top: TopK, k: int) -> np.ndarray:
    """Of each label, in how many points it is rightly among the first k."""
    ids = np.ascontiguousarray(top.ids[:, :k])
    return np.bincount(ids[truth.hits(ids)], minlength=truth.n_labels)


def compute(ds: Dataset, tops: Mapping[str, TopK], ks: Sequence[int] = (1, 5)) -> pd.DataFrame:
    """Fig. 4: contributions added up from the rarest label on.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    ks : sequence of int

    Returns
    -------
    DataFrame
        One row for each k and count that occurs: k, count (N_l), labels (that have at most this count), best, and a
        column a model, points of PSP@k; the last row of a k holds PSP@k.
    """
    tables = [compute_labels(ds, tops, k).groupby(["k", "count"]).sum().cumsum() for k in ks]
    return pd.concat(tables).reset_index()


def compute_bins(ds: Dataset, tops: Mapping[str, TopK], ks: Sequence[int] = (1, 5)) -> pd.DataFrame:
    """Contributions by how often a label occurs in train.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    ks : sequence of int

    Returns
    -------
    DataFrame
        k, points (the bin, of :data:`BINS`), labels, best, and a column a model, points of PSP@k. Of a twin, behind each
        model what the same labels add to its P@k on the complete truth, such as FastXML complete.
    """
    table = pd.concat([compute_labels(ds, tops, k) for k in ks])
    if complete(ds) is not None:
        there = pd.concat([compute_complete(ds, tops, k) for k in ks])
        for name in tops:
            table.insert(table.columns.get_loc(name) + 1, f"{name} complete", there[name].to_numpy())
    place = np.searchsorted(EDGES, table.pop("count"), side="right")
    sums = table.groupby(["k", place]).sum().rename(index=dict(enumerate(BINS)), level=1)
    return sums.rename_axis(["k", "points"]).reset_index()


def compute_gain(bins: pd.DataFrame, better: str = "PfastreXML", than: str = "FastXML") -> pd.DataFrame:
    """Where one model gains on another.

    Parameters
    ----------
    bins : DataFrame
        From :func:`compute_bins`.
    better, than : str
        Two of its models.

    Returns
    -------
    DataFrame
        k, points, labels, gain (points of PSP@k), of a twin also gain complete (points of P@k on the complete truth), and
        % of the gain; empty without the two models.
    """
    if better not in bins or than not in bins:
        return pd.DataFrame(columns=["k", "points", "labels", "gain", "% of the gain"])
    table = bins[["k", "points", "labels"]].assign(gain=bins[better] - bins[than])
    if f"{better} complete" in bins:
        table["gain complete"] = bins[f"{better} complete"] - bins[f"{than} complete"]
    return table.assign(**{"% of the gain": 100 * table["gain"] / table.groupby("k")["gain"].transform("sum")})


def rare_share(table: pd.DataFrame, model: str, k: int, below: int = 100) -> float:
    """Percent of a model's PSP@k that comes from rare labels; 0 where PSP@k is 0.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    model : str
        One of its columns.
    k : int
        One of its k.
    below : int
        Rare labels have fewer train points than this.

    Returns
    -------
    float
    """
    part = table[table["k"] == k]
    rare, total = part.loc[part["count"] < below, model], part[model].iloc[-1]
    return 100 * float(rare.iloc[-1]) / total if len(rare) and total else 0.0


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Fig. 4: added up from the rarest label to the most frequent one, a panel for each k.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of Axes, shape (1, ks), optional
    """
    ks = list(dict.fromkeys(table["k"]))
    models = [name for name in table.columns if name not in ("k", "count", "labels", "best")]
    with figures.new(looks.MEDIUM, 3.7, ncols=len(ks), squeeze=False, ax=ax) as (fig, axes):
        for axis, k in zip(axes[0], ks, strict=True):
            part = table[(table["k"] == k) & (table["count"] > 0)]
            for name in models:
                look = looks.of(name)
                axis.step(part["count"], part[name], where="post", label=name, color=look.colour, linestyle=look.dash)
            axis.set(xscale="log", title=f"PSP@{k}", xlabel="train points of a label, N", ylim=(0, None))
            figures.draws(axis, x="count", y=models)
        axes[0][0].set_ylabel("points of PSP@k from labels\nwith at most N train points")
        looks.legend(fig, axes[0][0], ncols=4)
        named = [name for name in ("PfastreXML", "FastXML") if name in models] or models[:1]
        about = ", ".join(f"{name} {rare_share(table, name, ks[0]):.0f} %" for name in named)
        looks.title(fig, f"Share of PSP@{ks[0]} from labels with fewer than 100 train points: {about}")
    return fig
