"""Fig. 4 of Jain et al. 2016: what each label adds to propensity-scored precision, by its frequency."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from scipy import sparse

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Difference, Measured, agreement, corrected
from xcrepro.inputs import parameters
from xcrepro.inputs.datasets import complete, weights
from xcrepro.metrics.significance import jackknife_blocks
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

check_parameters = parameters.check

EDGES = (3, 10, 30, 100, 300, 1000)
PARTS = ("all labels", "rare labels", "other labels")
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
    table = pd.DataFrame({"k": k, "count": ds.label_counts, "labels": 1})
    for name, top in {"best": _best(truth, w, k), **tops}.items():
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


def _best(truth: Truth, w: np.ndarray, k: int) -> TopK:
    """The best ranking: each point's own labels by falling weight."""
    shape = (truth.n_rows, truth.n_labels)
    return TopK.from_scores(sparse.csr_matrix((w[truth.indices], truth.indices, truth.indptr), shape=shape), k)


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


def contrasts(bins: pd.DataFrame, models: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of models whose difference is looked at.

    Parameters
    ----------
    bins : DataFrame
        From :func:`compute_bins`.
    models : sequence of str
        The baselines; what else is in ``bins`` is the reader's own.

    Returns
    -------
    list of (str, str)
        Each of the reader's own and the baseline with the largest PSP@k at the last k; without a baseline the first of the
        reader's own by that number and each of the others. Without own predictions the paper's PfastreXML and FastXML; where
        one of them is not there, the first two models. Empty of one model.
    """
    names = [name for name in bins.columns if name not in ("k", "points", "labels", "best")]
    names = [name for name in names if not (name.endswith(" complete") and name.removesuffix(" complete") in bins)]
    last = bins[bins["k"] == bins["k"].max()]
    ranked = sorted(names, key=lambda name: -last[name].sum())
    own, others = [name for name in names if name not in models], [name for name in ranked if name in models]
    if own and others:
        return [(name, others[0]) for name in own]
    if own:
        return [(ranked[0], name) for name in ranked[1:]]
    if {"PfastreXML", "FastXML"} <= set(names):
        return [("PfastreXML", "FastXML")]
    return [(ranked[0], ranked[1])] if len(ranked) > 1 else []


def compute_gain(bins: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Where one model of a pair gains on the other.

    Parameters
    ----------
    bins : DataFrame
        From :func:`compute_bins`.
    pairs : sequence of (str, str)
        One or more, of its models, such as from :func:`contrasts`.

    Returns
    -------
    DataFrame
        difference (such as PfastreXML minus FastXML), k, points, labels, gain (points of PSP@k), of a twin also gain
        complete (points of P@k on the complete truth).
    """
    tables = []
    for better, than in pairs:
        table = bins[["k", "points", "labels"]].assign(gain=bins[better] - bins[than])
        if f"{better} complete" in bins:
            table["gain complete"] = bins[f"{better} complete"] - bins[f"{than} complete"]
        table.insert(0, "difference", f"{better} minus {than}")
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def rare_below(ds: Dataset) -> int:
    """The number of train points below which labels are rare: the largest at which they hold at most half of the train
    instances (pairs of a point and a label).

    Parameters
    ----------
    ds : Dataset

    Returns
    -------
    int
    """
    return _rare_below(*np.unique(ds.label_counts, return_counts=True))


def _rare_below(counts: np.ndarray, labels: np.ndarray) -> int:
    """:func:`rare_below` of ``labels`` labels that have ``counts`` train points, rising."""
    held = np.cumsum(counts * labels)
    return int(counts[np.searchsorted(held, held[-1] / 2, side="right")]) if held[-1] else 1


def measure(ds: Dataset, tops: Mapping[str, TopK], k: int) -> dict[str, Measured]:
    """What all labels, the rare ones (:func:`rare_below`) and the others add to PSP@k, with errors.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    k : int

    Returns
    -------
    dict of str to Measured
        Of :data:`PARTS`, points of PSP@k, with a jackknife over 20 blocks of test points; the rare and the others add up
        to all.
    """
    truth, w = Truth.of(ds.test.Y), weights(ds)
    keeps = list(jackknife_blocks(truth.n_rows)) if truth.n_rows > 1 else []
    rare = ds.label_counts < rare_below(ds)
    reached = _by_point(truth, _best(truth, w, k), k, w)
    parts = {}
    for part, some in zip(PARTS, (w, w * rare, w * ~rare), strict=True):
        added = {name: _by_point(truth, top, k, some) for name, top in tops.items()}
        values = {name: 100 * sums.sum() / reached.sum() for name, sums in added.items()}
        left = {
            name: np.array([100 * sums[keep].sum() / reached[keep].sum() for keep in keeps])
            for name, sums in added.items()
        }
        parts[part] = Measured(values, left)
    return parts


def _by_point(truth: Truth, top: TopK, k: int, w: np.ndarray) -> np.ndarray:
    """Of each test point the weights of its hits among the first k."""
    ids = np.ascontiguousarray(top.ids[:, :k])
    return (w[ids] * truth.hits(ids)).sum(axis=1)


def compute_rare(measured: Mapping[int, Mapping[str, Measured]]) -> pd.DataFrame:
    """What comes from rare labels.

    Parameters
    ----------
    measured : mapping of int to mapping
        k -> :func:`measure`.

    Returns
    -------
    DataFrame
        k, model, then of each of :data:`PARTS` the points of PSP@k and, behind it, its standard error (``±``).
    """
    rows = []
    for k, parts in measured.items():
        for name in parts[PARTS[0]].values:
            row = {"k": k, "model": name}
            for part, one in parts.items():
                row |= {part: one.values[name], f"{part} ±": one.error(name)}
            rows.append(row)
    return pd.DataFrame(rows)


def findings(
    ds: Dataset, measured: Mapping[int, Mapping[str, Measured]], pairs: Sequence[tuple[str, str]]
) -> list[str]:
    """What the run says.

    Parameters
    ----------
    ds : Dataset
    measured : mapping of int to mapping
        k -> :func:`measure`.
    pairs : sequence of (str, str)
        From :func:`contrasts`; those of one k are corrected together.

    Returns
    -------
    list of str
    """
    counts, below = ds.label_counts, rare_below(ds)
    said = [
        f"Rare are labels with fewer than {below:,} train points, {int((counts < below).sum()):,} of {counts.size:,}: together "
        f"they hold at most half of the train instances."
    ]
    for k, parts in measured.items():
        leader = parts["rare labels"].leader(f"points of PSP@{k} from rare labels")
        # Where it does not begin with a model's name.
        text = leader.text if leader.clear else f"{leader.text[0].upper()}{leader.text[1:]}"
        said.append(f"{text}.")
    for k, parts in measured.items():
        tested = corrected(parts[part].difference(*pair) for pair in pairs for part in PARTS)
        for place, (left, right) in enumerate(pairs):
            whole, rare, other = tested[len(PARTS) * place :][: len(PARTS)]
            said.append(
                f"PSP@{k}, {left} minus {right}: {_plus(whole)} points, {_plus(rare)} from rare labels, {_plus(other)} from "
                f"the others: {_from_where(whole, rare, other)}."
            )
    return said


def findings_recorded(
    measured: Mapping[int, Mapping[str, Measured]], recorded: Mapping[str, pd.DataFrame]
) -> list[str]:
    """Whether real data say the same of what comes from rare labels.

    Parameters
    ----------
    measured : mapping of int to mapping
        k -> :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`compute`, as recorded. Which of its labels are rare is told as :func:`rare_below` tells it.

    Returns
    -------
    list of str
        A sentence a k, of :func:`xcrepro.findings.agreement`.
    """
    return [
        agreement(
            parts["rare labels"].pairs(),
            {dataset: _rare(table[table["k"] == k]) for dataset, table in recorded.items()},
            f"points of PSP@{k} from rare labels",
        )
        for k, parts in measured.items()
    ]


def _rare(table: pd.DataFrame) -> dict[str, float]:
    """Of one k of :func:`compute`, what the rare labels add: model -> points."""
    if table.empty:
        return {}
    below = _rare_below(table["count"].to_numpy(), np.diff(table["labels"], prepend=0))
    rare = table[table["count"] < below].drop(columns=["k", "count", "labels", "best"])
    return dict(rare.iloc[-1]) if len(rare) else dict.fromkeys(rare.columns, 0.0)


def _plus(one: Difference) -> str:
    return f"{one.value:+.1f}" + ("" if np.isnan(one.error) else f" ± {one.error:.1f}")


def _from_where(whole: Difference, rare: Difference, other: Difference) -> str:
    if np.isnan(whole.p):
        return "of their errors nothing is known"
    if not whole.clear:
        return "no clear difference"
    same = [one.clear and one.value * whole.value > 0 for one in (rare, other)]
    against = [one.clear and one.value * whole.value < 0 for one in (rare, other)]
    word = "gain" if whole.value > 0 else "loss"
    if same[0] and (against[1] or not same[1]):
        return f"the {word} comes from the rare ones{' alone, against the others' if against[1] else ''}"
    if same[1] and (against[0] or not same[0]):
        return f"the {word} comes from the others{' alone, against the rare ones' if against[0] else ''}"
    share = 100 * rare.value / whole.value
    return f"{share:.0f} % of the {word} comes from the rare ones"


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
            # Nothing is to be seen left of the first count that brings a hundredth of the highest curve.
            top = part[models].max(axis=1)
            part = part[top >= 0.01 * top.iloc[-1]] if top.iloc[-1] else part
            for place, (name, look) in enumerate(looks.distinct(models).items()):
                style = {"marker": look.marker, "markersize": 4, "markevery": ((place % 5) * 0.03, 0.15)}
                axis.step(
                    part["count"], part[name], where="post", label=name, color=look.colour, linestyle=look.dash, **style
                )
            axis.set(xscale="log", title=f"PSP@{k}", xlabel="train points of a label, N", ylim=(0, None))
            # Named ticks at 1, 3, 10, 30 ...: what a short axis names by itself overlaps.
            axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
            axis.xaxis.set_major_formatter("{x:,.0f}")
            axis.xaxis.set_minor_formatter(NullFormatter())
            figures.draws(axis, x="count", y=models)
        axes[0][0].set_ylabel("points of PSP@k from labels\nwith at most N train points")
        looks.legend(fig, axes[0][0], ncols=min(4, len(models)))
        looks.title(fig, "PSP@k added up from the rarest label on; the right end is PSP@k")
    return fig
