"""Fig 5 on data that are cut: calibration error with more labels, and apart from it with fewer training points a label."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.arguments import real_number
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.findings import BLOCKS, Difference, corrected, count
from xcrepro.inputs import baselines, calibrated, datasets, parameters
from xcrepro.metrics.significance import t_p_value
from xcrepro.repro import figures

MORE, FEWER = "more labels", "fewer points"
EXPECTED = 4
"""Train points of a label in the smallest share, on average: with 4, one label in 50 has none."""
_SIZES = ["labels", "train points", "points per label", "labels a point"]


def check_parameters(values: Mapping[str, object]) -> None:
    """The rules that items share, and of the shares: two at least, none twice, above 0 and at most 1.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError
    """
    parameters.check(values)
    for name in ("label_shares", "point_shares"):
        shares = values[name]
        for share in shares:
            real_number(f"parameter {name}", share, above=0, at_most=1)
        if len(set(shares)) != len(shares) or len(shares) < 2:
            raise ArgumentError(f"parameter {name}", "must hold two different shares at least, none twice", shares)


def load(dataset: str, scale: float, seed: int, folder: str = "") -> Dataset:
    """The twin of a dataset at every size, or the real data in ``folder``.

    Parameters
    ----------
    dataset, scale, seed, folder
        As :func:`xcrepro.inputs.datasets.pick` takes them.

    Returns
    -------
    Dataset
    """
    return datasets.pick(dataset, "small", scale, seed, folder)


def compute_more(
    dataset: str,
    scale: float,
    shares: Sequence[float],
    models: Sequence[str],
    seed: int = 0,
    repeats: int = 1,
    folder: str = "",
) -> pd.DataFrame:
    """ECE@k before calibration with more and more of the labels: the points and what each label has of them stay.

    What cannot stay is the number of labels a point, and with it P@k: points x labels a point = labels x points a label,
    so no one of the four changes alone.

    Parameters
    ----------
    dataset, scale, folder
        As :func:`load` takes them.
    shares : sequence of float
        Of the labels, above 0 and at most 1 (:func:`choose_labels`).
    models : sequence of str
        Names of baselines.
    seed, repeats : int
        Each number is the mean over runs with the seeds ``seed``, ``seed + 1``, ..., ``seed + repeats - 1``: twins and
        trainings of their own, on real data trainings alone.

    Returns
    -------
    DataFrame
        share, labels, train points, points per label, labels a point (of train points), model, k, and in percent P, ECE,
        floor (what chance alone would leave of it), after (ECE after isotonic regression), both also without the noise of
        their hits (corrected), and ``±``, the standard error of ECE: over the runs, of one run over its test points.
    """

    def cut(ds: Dataset, share: float, seed: int) -> Dataset:
        return calibrated.keep_labels(ds, choose_labels(ds.label_counts, share))

    return _average(dataset, scale, shares, models, range(seed, seed + repeats), cut, folder)


def compute_fewer(
    dataset: str,
    scale: float,
    shares: Sequence[float],
    models: Sequence[str],
    seed: int = 0,
    repeats: int = 1,
    folder: str = "",
) -> pd.DataFrame:
    """The same with fewer and fewer train points: labels, test points and their labels stay.

    Parameters
    ----------
    dataset, scale, models, seed, repeats, folder
        As for :func:`compute_more`.
    shares : sequence of float
        Of the train points, drawn at random; the points of a smaller share are among those of a larger one. The labels are
        at every share those of :data:`EXPECTED` points or more in the smallest, on average, and one at least. (Were one
        alone asked for, the smallest share would hold, of the labels that it chose, more than its part.)

    Returns
    -------
    DataFrame
        As :func:`compute_more`.

    Raises
    ------
    ArgumentError
        Where fewer labels than places are left.
    """

    def cut(ds: Dataset, share: float, seed: int) -> Dataset:
        order = np.random.default_rng(seed).permutation(ds.n_train)
        few, rows = (np.sort(order[: max(1, round(part * ds.n_train))]) for part in (min(shares), share))
        seen = np.bincount(ds.train.Y[few].indices, minlength=ds.train.Y.shape[1]) > 0
        labels = np.flatnonzero(seen & (ds.label_counts * min(shares) >= EXPECTED))
        if labels.size < max(calibrated.KS):
            rule = f"must leave {max(calibrated.KS)} labels or more with {EXPECTED} points or more each in the smallest share"
            raise ArgumentError(
                "parameter point_shares", rule, f"{labels.size} labels", "take larger shares or more data"
            )
        return calibrated.keep_train_points(calibrated.keep_labels(ds, labels), rows)

    return _average(dataset, scale, shares, models, range(seed, seed + repeats), cut, folder)


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
    cut: Callable[[Dataset, float, int], Dataset],
    folder: str,
) -> pd.DataFrame:
    """A row a share, model and k: the mean over the seeds."""
    rows = []
    for seed, share in itertools.product(seeds, shares):
        ds = cut(load(dataset, scale, seed, folder), share, seed)
        labels, pairs = ds.train.Y.shape[1], ds.train.Y.nnz
        size = (share, labels, ds.n_train, pairs / labels, pairs / ds.n_train)
        tops = baselines.predictions(ds, models, seed, places=max(calibrated.KS))
        states = calibrated.before_after(ds, tops)
        for (name, k), (before, after) in states.items():
            found = calibrated.measure(ds, before, k, ("accuracy", "ECE", "ECE corrected", "ECE floor")).values()
            left = calibrated.measure(ds, after, k, ("ECE", "ECE corrected")).values()
            known = calibrated.measured(ds, {name: before}, k, ["ECE"])["ECE"].error(name)
            rows.append((*size, name, k, *found, *left, known))
    columns = ["P", "ECE", "ECE corrected", "floor", "after", "after corrected", "±"]
    table = pd.DataFrame(rows, columns=["share", *_SIZES, "model", "k", *columns])
    groups = table.groupby(["share", "model", "k"], sort=False, as_index=False)
    found = groups.mean()[table.columns]
    if len(seeds) > 1:
        found["±"] = groups["ECE"].std()["ECE"] / np.sqrt(len(seeds))
    return found


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


def compare_ends(table: pd.DataFrame, repeats: int = 1) -> dict[str, list[Difference]]:
    """How much larger ECE@k is at the far end of either series: with all labels, and with the fewest points.

    The errors of the two ends are taken as independent, which makes them too large if anything: the test points are the
    same.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    repeats : int
        Runs behind each number.

    Returns
    -------
    dict
        Series -> differences, one a model and k, named ``"PLT, ECE@5"`` and corrected together.
    """
    dof, found = (repeats if repeats > 1 else BLOCKS) - 1, {}
    for series, column in ((MORE, "labels"), (FEWER, "points per label")):
        part = table[table["series"] == series].sort_values(column, ascending=series == MORE, kind="stable")
        ends = []
        for (model, k), rows in part.groupby(["model", "k"], sort=False):
            near, far = rows.iloc[0], rows.iloc[-1]
            value, error = far["ECE"] - near["ECE"], float(np.hypot(far["±"], near["±"]))
            p = float(t_p_value(value / error, dof)) if error > 0 else np.nan
            where = f"with {near[column]:,.0f} labels" if series == MORE else f"with {near[column]:.1f} points a label"
            ends.append(Difference(f"{model}, ECE@{k}", where, float(value), error, dof, p))
        found[series] = corrected(ends)
    return found


def findings(table: pd.DataFrame, repeats: int = 1) -> list[str]:
    """Whether ECE@k rises with more labels, and with fewer points a label.

    Parameters
    ----------
    table, repeats
        As for :func:`compare_ends`.

    Returns
    -------
    list of str
    """
    ends, last, said = compare_ends(table, repeats), table["k"].max(), []
    words = {
        MORE: "ECE@k is higher with the most labels than with the fewest",
        FEWER: "With the labels as they are, ECE@k",
    }
    words[FEWER] += " is higher with the fewest train points than with the most"
    for series, differences in ends.items():
        said.append(f"{count(differences, words[series])}.")
    for series, differences in ends.items():
        column = "labels" if series == MORE else "points per label"
        part = table[table["series"] == series][column]
        change = (
            f"from {part.min():,.0f} to {part.max():,.0f} labels"
            if series == MORE
            else f"from {part.max():.1f} to {part.min():.1f} points a label"
        )
        each = [
            f"{one.left.rpartition(', ')[0]} {one.value:+.1f} ± {one.error:.1f}"
            for one in differences
            if one.left.endswith(f"@{last}")
        ]
        said.append(f"ECE@{last}, {change}: {'; '.join(each)} points.")
    return said


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Fig 5, a row a model: left against the labels, right against the points per label.

    On the left the points of each label are as they are, on the right the labels and the test points. Upright lines reach
    two standard errors. The thin line is the floor at the largest k.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of Axes, shape (models, 2), optional
    """
    models, last = table["model"].unique(), table["k"].max()
    shape = {"nrows": len(models), "ncols": 2, "sharex": "col", "sharey": True, "squeeze": False}
    with figures.new(width=looks.WIDE, height=1.3 + 2.3 * len(models), ax=ax, **shape) as (fig, axes):
        for line, model in zip(axes, models, strict=True):
            for panel, series, x in ((line[0], MORE, "labels"), (line[1], FEWER, "points per label")):
                _draw_series(panel, table[(table["model"] == model) & (table["series"] == series)], x, last)
                panel.set_ylim(0, 1.08 * (table["ECE"] + 2 * table["±"].fillna(0)).max())
            line[0].set_ylabel(f"{model}: ECE@k, %")
        sizes = table.groupby("series")[_SIZES].mean()
        axes[-1, 0].set_xlabel(f"labels, at {sizes.at[MORE, 'points per label']:.1f} points per label on average")
        labels = f"at {sizes.at[FEWER, 'labels']:,.0f} labels"
        axes[-1, 1].set_xlabel(f"train points per label, fewer to the right, {labels}")
        axes[-1, 1].invert_xaxis()
        looks.legend(fig, axes[0, 0])
        looks.title(fig, "ECE@k before calibration: more labels (left), fewer train points (right)")
    return fig


def _draw_series(panel, data: pd.DataFrame, x: str, last: int) -> None:
    for k, rows in data.groupby("k"):
        style = looks.PLACES[k].line()
        panel.plot(rows[x], rows["ECE"], **style, label=f"ECE@{k}")
        for at, value, error in rows[[x, "ECE", "±"]].dropna().itertuples(index=False):
            ends = [value - 2 * error, value + 2 * error]
            panel.plot([at, at], ends, "-", color=style["color"], linewidth=1.2, label="_guide error")
    floor = data[data["k"] == last]
    panel.plot(floor[x], floor["floor"], "-", color="0.6", linewidth=1, label=f"floor at k = {last}: chance alone")
    ticks = sorted(data[x].unique())
    panel.set_xscale("log")
    panel.set_xticks(ticks, [f"{value:,.0f}" if value >= 10 else f"{value:.1f}" for value in ticks])
    panel.minorticks_off()
    figures.draws(panel, x=x, y=("ECE", "floor"))
