"""Fig 5 on twins: calibration error with more labels, and apart from it with fewer training points a label."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.twin import twin
from xcrepro.inputs import baselines, calibrated
from xcrepro.repro import figures

MORE, FEWER = "more labels", "fewer points"
_SIZES = ["labels", "train points", "points per label"]


def compute_more(
    dataset: str, scales: Sequence[float], models: Sequence[str], seed: int = 0, repeats: int = 1
) -> pd.DataFrame:
    """ECE@k before calibration on twins of one dataset at several scales: more labels, as many points a label.

    Parameters
    ----------
    dataset : str
        Whose twins.
    scales : sequence of float
        Of the twins; points and labels grow together.
    models : sequence of str
        Names of baselines.
    seed, repeats : int
        Each number is the mean over twins with the seeds ``seed``, ``seed + 1``, ..., ``seed + repeats - 1``.

    Returns
    -------
    DataFrame
        labels, train points, points per label, model, k, and in percent P, ECE, after (ECE after isotonic
        regression), floor (:func:`xcrepro.inputs.calibrated.floor` of the scores before it).
    """
    return _average(dataset, [(scale, 1.0) for scale in scales], models, range(seed, seed + repeats))


def compute_fewer(
    dataset: str, scale: float, shares: Sequence[float], models: Sequence[str], seed: int = 0, repeats: int = 1
) -> pd.DataFrame:
    """The same on one twin with fewer and fewer of its train points: the labels and the test points stay.

    Parameters
    ----------
    dataset : str
        Whose twin.
    scale : float
        Of the twin.
    shares : sequence of float
        Of the train points, drawn at random; the points of a smaller share are among those of a larger one.
    models, seed, repeats
        As for :func:`compute_more`.

    Returns
    -------
    DataFrame
        As :func:`compute_more`.
    """
    return _average(dataset, [(scale, share) for share in shares], models, range(seed, seed + repeats))


def _average(dataset: str, sizes: list[tuple[float, float]], models: Sequence[str], seeds: range) -> pd.DataFrame:
    """A row a size (scale, share of the train points), model and k: the mean over the seeds."""
    rows = []
    for (scale, share), seed in itertools.product(sizes, seeds):
        ds = twin(dataset, scale=scale, seed=seed)
        order = np.random.default_rng(seed).permutation(ds.n_train)
        ds = calibrated.keep_train_points(ds, np.sort(order[: max(1, round(share * ds.n_train))]))
        size = (ds.train.Y.shape[1], ds.n_train, ds.train.Y.nnz / ds.train.Y.shape[1])
        tops = baselines.predictions(ds, models, seed, places=max(calibrated.KS))
        for (name, k), (before, after) in calibrated.before_after(ds, tops).items():
            found = calibrated.measure(ds, before, k, ("accuracy", "ECE")).values()
            left = calibrated.measure(ds, after, k, ("ECE",))["ECE"]
            rows.append((*size, name, k, *found, left, 100 * calibrated.floor(before)))
    table = pd.DataFrame(rows, columns=[*_SIZES, "model", "k", "P", "ECE", "after", "floor"])
    return table.groupby([*_SIZES[:2], "model", "k"], sort=False, as_index=False).mean()[table.columns]


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

    On the left the points per label are as they are, on the right the labels and the test points. The thin line is
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
        axes[-1, 0].set_xlabel(f"labels, at {sizes.at[MORE, 'points per label']:.0f} points per label")
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
