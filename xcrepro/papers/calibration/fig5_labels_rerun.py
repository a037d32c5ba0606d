"""Fig 5 on a twin: calibration error with more labels, and apart from it with fewer training points a label."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.twin import Twin, twin
from xcrepro.inputs import baselines, calibrated
from xcrepro.repro import figures

MORE, FEWER = "more labels", "fewer points"
_SIZES = ["labels", "train points", "points per label", "labels a point"]


def compute_more(
    dataset: str, scale: float, shares: Sequence[float], models: Sequence[str], seed: int = 0, repeats: int = 1
) -> pd.DataFrame:
    """ECE@k before calibration with more and more of one twin's labels: the points and what each label has of them stay.

    What cannot stay is the number of labels a point, and with it P@k: points x labels a point = labels x points a label,
    so no one of the four changes alone.

    Parameters
    ----------
    dataset : str
        Whose twin.
    scale : float
        Of the twin.
    shares : sequence of float
        Of the labels, above 0 and at most 1 (:func:`choose_labels`).
    models : sequence of str
        Names of baselines.
    seed, repeats : int
        Each number is the mean over twins with the seeds ``seed``, ``seed + 1``, ..., ``seed + repeats - 1``.

    Returns
    -------
    DataFrame
        share, labels, train points, points per label, labels a point (of train points), model, k, and in percent P, ECE,
        after (ECE after isotonic regression), floor (:func:`xcrepro.inputs.calibrated.floor` of the scores before it).
    """

    def cut(ds: Twin, share: float, seed: int) -> Twin:
        return calibrated.keep_labels(ds, choose_labels(ds.label_counts, share))

    return _average(dataset, scale, shares, models, range(seed, seed + repeats), cut)


def compute_fewer(
    dataset: str, scale: float, shares: Sequence[float], models: Sequence[str], seed: int = 0, repeats: int = 1
) -> pd.DataFrame:
    """The same with fewer and fewer train points: labels, test points and their labels stay.

    Parameters
    ----------
    dataset, scale, models, seed, repeats
        As for :func:`compute_more`.
    shares : sequence of float
        Of the train points, drawn at random; the points of a smaller share are among those of a larger one. The labels
        are at every share those that the smallest has.

    Returns
    -------
    DataFrame
        As :func:`compute_more`.
    """

    def cut(ds: Twin, share: float, seed: int) -> Twin:
        order = np.random.default_rng(seed).permutation(ds.n_train)
        few, rows = (np.sort(order[: max(1, round(part * ds.n_train))]) for part in (min(shares), share))
        seen = np.flatnonzero(np.bincount(ds.train.Y[few].indices, minlength=ds.train.Y.shape[1]))
        return calibrated.keep_train_points(calibrated.keep_labels(ds, seen), rows)

    return _average(dataset, scale, shares, models, range(seed, seed + repeats), cut)


def choose_labels(counts: np.ndarray, share: float) -> np.ndarray:
    """A share of the labels, spread evenly over their ranks by frequency, so that the points a label hardly change.

    Parameters
    ----------
    counts : ndarray of int, shape (L,)
        Train points of each label; ties by id.
    share : float
        Above 0 and at most 1.

    Returns
    -------
    ndarray of int64
        Label ids, rising; those of a smaller share are among those of a larger one.

    Examples
    --------
    >>> choose_labels(np.array([9, 8, 7, 6, 5, 4, 3, 2]), 0.25), choose_labels(np.array([9, 8, 7, 6, 5, 4, 3, 2]), 0.5)
    (array([3, 7]), array([0, 3, 4, 7]))
    """
    rank, place = np.empty(counts.size, np.int64), np.zeros(counts.size)
    rank[np.argsort(-counts, kind="stable")] = np.arange(counts.size)
    # The digits of the rank mirrored: the first so many of this order are evenly spaced, whatever their number.
    for bit in range(counts.size.bit_length()):
        place += ((rank >> bit) & 1) * 0.5 ** (bit + 1)
    # From a quarter on, so that a small share does not begin with the most frequent label.
    return np.flatnonzero((place + 0.25) % 1 < share)


def _average(
    dataset: str,
    scale: float,
    shares: Sequence[float],
    models: Sequence[str],
    seeds: range,
    cut: Callable[[Twin, float, int], Twin],
) -> pd.DataFrame:
    """A row a share, model and k: the mean over the seeds."""
    rows = []
    for seed, share in itertools.product(seeds, shares):
        ds = cut(twin(dataset, scale=scale, seed=seed), share, seed)
        labels, pairs = ds.train.Y.shape[1], ds.train.Y.nnz
        size = (share, labels, ds.n_train, pairs / labels, pairs / ds.n_train)
        tops = baselines.predictions(ds, models, seed, places=max(calibrated.KS))
        for (name, k), (before, after) in calibrated.before_after(ds, tops).items():
            found = calibrated.measure(ds, before, k, ("accuracy", "ECE")).values()
            left = calibrated.measure(ds, after, k, ("ECE",))["ECE"]
            rows.append((*size, name, k, *found, left, 100 * calibrated.floor(before)))
    table = pd.DataFrame(rows, columns=["share", *_SIZES, "model", "k", "P", "ECE", "after", "floor"])
    return table.groupby(["share", "model", "k"], sort=False, as_index=False).mean()[table.columns]


def compute(more: pd.DataFrame, fewer: pd.DataFrame) -> pd.DataFrame:
    """Both series of fig 5 in one table.

    Parameters
    ----------
    more : DataFrame
        From :func:`compute_more`.
    fewer : DataFrame
        From :func:`compute_fewer`.

    Returns
    -------
    DataFrame
        ``series`` (:data:`MORE` or :data:`FEWER`), then their columns.
    """
    return pd.concat({MORE: more, FEWER: fewer}, names=["series"]).reset_index("series").reset_index(drop=True)


def compute_ends(table: pd.DataFrame) -> pd.DataFrame:
    """ECE@k at the ends of both series.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        model, k, few labels, many labels, few points, many points (percent).
    """

    def ends(series: str, column: str, names: list[str]) -> pd.DataFrame:
        part = table[table["series"] == series].sort_values(column, kind="stable")
        return part.groupby(["model", "k"], sort=False)["ECE"].agg(["first", "last"]).set_axis(names, axis=1)

    found = ends(MORE, "labels", ["few labels", "many labels"])
    return found.join(ends(FEWER, "train points", ["few points", "many points"])).reset_index()


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Fig 5, a row a model: left against the labels, right against the points per label.

    On the left the points of each label are as they are, on the right the labels and the test points. The thin line is
    the floor at the largest k.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of Axes, shape (models, 2), optional
    """
    models, last = table["model"].unique(), table["k"].max()
    shape = {"nrows": len(models), "ncols": 2, "sharex": "col", "sharey": True, "squeeze": False}
    with figures.new(width=looks.WIDE, height=0.9 + 2.4 * len(models), ax=ax, **shape) as (fig, axes):
        for line, model in zip(axes, models, strict=True):
            for panel, series, x in ((line[0], MORE, "labels"), (line[1], FEWER, "points per label")):
                data = table[(table["model"] == model) & (table["series"] == series)]
                for k, rows in data.groupby("k"):
                    panel.plot(rows[x], rows["ECE"], **looks.PLACES[k].line(), label=f"ECE@{k}")
                floor = data[data["k"] == last]
                words = f"floor at k = {last}: chance alone"
                panel.plot(floor[x], floor["floor"], "-", color="0.6", linewidth=1, label=words)
                ticks = sorted(data[x].unique())
                panel.set_xscale("log")
                panel.set_xticks(ticks, [f"{value:,.0f}" if value >= 10 else f"{value:.1f}" for value in ticks])
                panel.minorticks_off()
                panel.set_ylim(0, 1.08 * table["ECE"].max())
                figures.draws(panel, x=x, y=("ECE", "floor"))
            line[0].set_ylabel(f"{model}: ECE@k, %")
        sizes = table.groupby("series")[_SIZES].mean()
        axes[-1, 0].set_xlabel(f"labels, at {sizes.at[MORE, 'points per label']:.1f} points per label on average")
        labels = f"at {sizes.at[FEWER, 'labels']:,.0f} labels"
        axes[-1, 1].set_xlabel(f"train points per label, fewer to the right, {labels}")
        axes[-1, 1].invert_xaxis()
        looks.legend(fig, axes[0, 0])
        sentences = [
            f"{row['model']}: {row['few labels']:.1f} to {row['many labels']:.1f} % with more labels,"
            f" {row['many points']:.1f} to {row['few points']:.1f} % with fewer points"
            for row in compute_ends(table).query("k == @last").to_dict("records")
        ]
        looks.title(fig, f"ECE@{last} before calibration. " + ";\n".join(sentences))
    return fig
