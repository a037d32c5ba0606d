"""Reliability plots, histograms and errors of the baselines, before and after isotonic regression: what the reruns of the
calibration paper's figures 1 to 3 and 7 to 19, and the notebook for a reader's own predictions, compute and draw.

A pair is one of the k places of one test point: a score, and whether the label there is relevant. ``before`` is the model's own
score, ``after`` the same cross-fitted (:mod:`xcrepro.inputs.calibrated`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro.data.dataset import Dataset
from xcrepro.inputs import baselines, calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.predictions import TopK
from xcrepro.repro import calibration, figures

KS = calibrated.KS
STATES = ("before", "after")
DRAWS = 200
THIN = 1.0
"""Percent of the pairs below which a bin is drawn hollow."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_COLOURS = ("#1b2a49", "#96301c", "#2f7f79", "#a07fc0", "#e39a2d", "#4d4d4d", "#5b8a3a", "#b2477e")
_LINES = {1: ("o", "-"), 3: ("s", "--"), 5: ("^", ":")}

# ---------------------------------------------------------------- what is drawn


def curves(ds: Dataset, tops: Mapping[str, TopK], ks: Sequence[int] = KS) -> pd.DataFrame:
    """Ten bins of each model at each k: model, k, state, bin, share, lower, upper, weight, confidence, accuracy, low, high.

    share: percent of the pairs, in bins closed on the left as the paper's histograms have them. The rest in bins closed on
    the right as its reliability plots have them: weight, percent of the pairs; confidence and accuracy, mean score and share
    of hits, NaN in an empty bin; low, high, where accuracy would lie 19 times in 20 if every score were right
    (:func:`xcrepro.metrics.calibration.reliability`).
    """
    parts = []
    for k in ks:
        for name, pair in calibrated.before_after(ds, tops, k=k).items():
            for state, top in zip(STATES, pair, strict=True):
                scores, hits = metric.pairs(ds.test.Y, top, k)
                count = metric.reliability(scores, hits, band=None)["count"]
                found = metric.reliability(scores, hits, closed="right").rename(columns={"count": "weight"})
                found["weight"] *= 100 / scores.size
                found.insert(1, "share", 100 * count / scores.size)
                parts.append(pd.concat([_constant(len(found), model=name, k=k, state=state), found], axis=1))
    return _by_model(pd.concat(parts, ignore_index=True), tops)


def summary(ds: Dataset, tops: Mapping[str, TopK], ks: Sequence[int] = KS) -> pd.DataFrame:
    """One row a model and k, percent: model, k, mean score, hit rate, ECE, over, under, after, floor.

    over, under: the parts of ECE from bins where the mean score lies above, below the share of hits. after: ECE of the
    calibrated scores. floor: :func:`floor` of those, what chance alone leaves.
    """
    names = {"confidence": "mean score", "accuracy": "hit rate", "ECE": "ECE", "ECE over": "over", "ECE under": "under"}
    errors = calibrated.errors(ds, tops, ks=ks, metrics=tuple(names))
    wide = errors.pivot(index=["model", "k"], columns="metric", values="before")[list(names)].rename(columns=names)
    wide["after"] = errors[errors["metric"] == "ECE"].set_index(["model", "k"])["after"]
    for k in ks:
        for name, (_, top) in calibrated.before_after(ds, tops, k=k).items():
            wide.loc[(name, k), "floor"] = 100 * floor(metric.pairs(ds.test.Y, top, k)[0])
    wide.columns.name = None
    return _by_model(wide.reset_index(), tops)


def floor(scores: np.ndarray, draws: int = DRAWS, seed: int = 0) -> float:
    """The mean ECE of these scores if each were right: over ``draws`` of independent hits that follow them, a fraction.

    Finite data leave every bin's share of hits a little off its mean score, so a perfectly calibrated model has a positive
    ECE too, about in proportion to 1 / sqrt(pairs).

    >>> floor(np.zeros(1000)), bool(floor(np.full(100, 0.5)) > floor(np.full(10_000, 0.5)))
    (0.0, True)
    """
    rng = np.random.default_rng(seed)
    found = [metric.ece(scores, rng.random(scores.shape) < scores, closed=calibrated.CLOSED) for _ in range(draws)]
    return float(np.mean(found))


def direction(found: pd.DataFrame) -> pd.DataFrame:
    """Which way each model errs, from :func:`summary`: one row a model, one text a k.

    ``over`` or ``under`` where that part is more than two thirds of its ECE, ``mixed`` between; ``fine`` where ECE is
    below twice the floor, so that little but chance can be seen.
    """

    def words(row) -> str:
        if row["ECE"] < 2 * row["floor"]:
            return "fine"
        return "over" if row["over"] > 2 * row["under"] else "under" if row["under"] > 2 * row["over"] else "mixed"

    table = found.assign(words=found.apply(words, axis=1), k="k = " + found["k"].astype(str))
    wide = table.pivot(index="model", columns="k", values="words").loc[found["model"].unique()]
    wide.columns.name = None
    return wide.reset_index()


def outside(data: pd.DataFrame) -> pd.DataFrame:
    """Share of the bins with pairs whose accuracy lies outside the band, from :func:`curves`: model, then one text for each
    state and k, such as ``"3 of 10"``. If all scores were right, about 1 bin in 20 would."""
    data = data.dropna(subset="accuracy")
    off = (data["accuracy"] < data["low"]) | (data["accuracy"] > data["high"])
    grouped = off.groupby([data["model"], data["state"], data["k"]], sort=False)
    text = grouped.sum().astype(int).astype(str) + " of " + grouped.size().astype(str)
    wide = text.unstack(["state", "k"])
    wide = wide[[(state, k) for state in STATES for k in data["k"].unique()]]
    wide.columns = [f"{state}, k = {k}" for state, k in wide.columns]
    return wide.loc[data["model"].unique()].reset_index()


def _constant(n: int, **values) -> pd.DataFrame:
    return pd.DataFrame({name: [value] * n for name, value in values.items()})


def _by_model(table: pd.DataFrame, tops: Mapping[str, TopK]) -> pd.DataFrame:
    order = {name: i for i, name in enumerate(tops)}
    return table.sort_values("model", key=lambda column: column.map(order), kind="stable").reset_index(drop=True)


# ---------------------------------------------------------------- figs 1, 2 and 7 to 16


def plot_all(data: pd.DataFrame, found: pd.DataFrame, k: int = 3, columns: int = 4) -> Figure:
    """Fig 1: the reliability of every model before calibration at ``k``, a panel a model with the others behind it in grey.

    data, found: :func:`curves` and :func:`summary`, both with that k.
    """
    data = data[(data["k"] == k) & (data["state"] == "before")].dropna(subset="accuracy")
    found = found[found["k"] == k].set_index("model")["ECE"]
    columns = min(columns, len(found))
    rows = -(-len(found) // columns)
    shape = {"nrows": rows, "ncols": columns, "sharex": True, "sharey": True, "squeeze": False}
    with figures.new(width=8.4, height=0.8 + 2.1 * rows, **shape) as (fig, axes):
        for ax in axes.flat[len(found) :]:
            ax.set_visible(False)
        for ax, (name, error) in zip(axes.flat, found.items(), strict=False):
            for _, part in data.groupby("model"):
                ax.plot(part["confidence"], part["accuracy"], "-", color="0.82", linewidth=0.8)
            _reliability(ax, data[data["model"] == name])
            ax.set_title(f"{name}: ECE@{k} {error:.1f} %", loc="left")
        for line in axes:
            line[0].set_ylabel("share of hits")
        for column in axes.T:
            last = [ax for ax in column if ax.get_visible()][-1]
            last.set_xlabel("score")
            last.tick_params(labelbottom=True)
        fig.suptitle(
            f"Before calibration each model has a curve of its own: ECE@{k} from {found.min():.1f} % ({found.idxmin()})"
            f" to {found.max():.1f} % ({found.idxmax()})",
            x=0.01,
            ha="left",
            fontsize=10,
        )
        _band_legend(fig)
    return fig


def plot_effects(data: pd.DataFrame, found: pd.DataFrame, models: Sequence[str], k: int = 3) -> Figure:
    """Fig 2: histogram and reliability of some models, a column a model, before (upper two rows) and after (lower two)."""
    data, found = data[data["k"] == k], found[found["k"] == k].set_index("model").loc[list(models)].reset_index()
    shape = {"nrows": 4, "ncols": len(models), "sharex": True, "sharey": "row", "squeeze": False}
    with figures.new(width=2.4 * len(models) + 0.9, height=7.6, **shape) as (fig, axes):
        for column, name in zip(axes.T, models, strict=True):
            for bars, ax, state in ((column[0], column[1], "before"), (column[2], column[3], "after")):
                part = data[(data["model"] == name) & (data["state"] == state)]
                bars.bar(part["lower"], part["share"], 0.1, align="edge", color="0.7", edgecolor="0.35")
                _reliability(ax, part.dropna(subset="accuracy"))
                _errors_inside(ax, found[found["model"] == name], "ECE" if state == "before" else "after")
            column[0].set_title(name, loc="left")
            column[3].set_xlabel("score")
        for line, words in zip(axes, (f"{what}, {state}" for state in STATES for what in _WHAT), strict=True):
            line[0].set_ylabel(words)
        before, after = (", ".join(f"{value:.1f}" for value in found[state]) for state in ("ECE", "after"))
        fig.suptitle(
            f"Isotonic regression brings each curve to the diagonal:\nECE@{k} {before} % before, {after} % after",
            x=0.01,
            ha="left",
            fontsize=10,
        )
        _band_legend(fig)
    return fig


def plot_grid(data: pd.DataFrame, found: pd.DataFrame) -> Figure:
    """Figs 7 to 16, a row a model: histogram and reliability at all k, before and after.

    Hollow marks: bins with less than :data:`THIN` percent of the pairs, whose share of hits says little.
    """
    models, ks = list(found["model"].unique()), list(data["k"].unique())
    shape = {"nrows": len(models), "ncols": 4, "sharex": True, "squeeze": False}
    with figures.new(width=8.4, height=1.0 + 1.75 * len(models), **shape) as (fig, axes):
        for line, name in zip(axes, models, strict=True):
            for bars, ax, state in ((line[0], line[1], "before"), (line[2], line[3], "after")):
                for place, k in enumerate(ks):
                    part = data[(data["model"] == name) & (data["k"] == k) & (data["state"] == state)]
                    _lines(bars, ax, part, k, place)
                _diagonal(ax)
                _errors_inside(ax, found[found["model"] == name], "ECE" if state == "before" else "after")
            line[0].set_ylabel(name, fontweight="bold")
        for ax, words in zip(axes[0], (f"{what}, {state}" for state in STATES for what in _WHAT), strict=True):
            ax.set_title(words, loc="left")
        for ax in axes[-1]:
            ax.set_xlabel("score")
        words = f"hollow: bins with under {THIN:.0f} % of the pairs"
        fig.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=len(ks), title=words)
        high, low = (found.loc[found[state].idxmax()] for state in ("ECE", "after"))
        fig.suptitle(
            f"Before, ECE@k goes up to {high['ECE']:.1f} % ({high['model']}, k = {high['k']});"
            f" after, no ECE@k is above {low['after']:.1f} %",
            x=0.01,
            ha="left",
            fontsize=10,
        )
    return fig


_WHAT = ("% of pairs", "share of hits")


def _lines(bars, ax, part: pd.DataFrame, k: int, place: int) -> None:
    """One k in a histogram's panel and in a curve's."""
    marker, dashes = _LINES.get(int(k), ("D", "-."))
    style = {"color": _COLOURS[place], "linestyle": dashes}
    bars.stairs(part["share"], [*part["lower"], 1.0], linewidth=1.2, **style)
    part = part.dropna(subset="accuracy")
    ax.plot(part["confidence"], part["accuracy"], marker=marker, label=f"k = {k}", **style)
    thin = part[part["weight"] < THIN]
    ax.plot(thin["confidence"], thin["accuracy"], marker, color=_COLOURS[place], markerfacecolor="white")


def _errors_inside(ax, rows: pd.DataFrame, state: str) -> None:
    words = "\n".join(f"@{row['k']}: {row[state]:.1f}" for _, row in rows.iterrows())
    ax.text(0.97, 0.04, f"ECE, %\n{words}", transform=ax.transAxes, ha="right", va="bottom", fontsize=7)


def _reliability(ax, part: pd.DataFrame) -> None:
    """One curve with its band and the diagonal."""
    ax.vlines(part["confidence"], part["low"], part["high"], color="#a6cbee", linewidth=5)
    _diagonal(ax)
    ax.plot(part["confidence"], part["accuracy"], marker="o", color=_COLOURS[0], linestyle="-")


def _diagonal(ax) -> None:
    ax.plot([0, 1], [0, 1], "-", color="0.4", linewidth=0.7, zorder=1)
    ax.set(xlim=(0, 1), ylim=(-0.03, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])


def _band_legend(fig: Figure) -> None:
    from matplotlib.lines import Line2D

    shown = [
        Line2D([], [], marker="o", color=_COLOURS[0], label="a bin: mean score, share of hits"),
        Line2D([], [], color="#a6cbee", linewidth=5, label="where 95 % would lie if the scores were right"),
        Line2D([], [], color="0.4", linewidth=0.7, label="calibrated"),
    ]
    fig.legend(handles=shown, loc="outside lower center", ncols=3)


# ---------------------------------------------------------------- figs 3 and 17 to 19


def against_precision(sets: Mapping[str, tuple[Dataset, Mapping[str, TopK]]], ks: Sequence[int] = KS) -> pd.DataFrame:
    """Errors and precision of every model on several sets of data, ``name -> (dataset, predictions)``.

    The columns of :func:`xcrepro.repro.calibration.against_precision`, as far as they make sense: k, dataset, method, P (%),
    metric (ECE, Brier, NLL, ACE), variant ("none", "isotonic"), value (%; NLL in nats). P is that of the state it stands
    beside; a joint monotone map leaves it as it is, to the last bit.
    """
    parts = []
    for dataset, (ds, tops) in sets.items():
        found = calibrated.errors(ds, tops, ks=ks, metrics=("P", "ECE", "Brier", "NLL", "ACE"))
        precision = found[found["metric"] == "P"].set_index(["model", "k"])
        for state, variant in zip(STATES, ("none", "isotonic"), strict=True):
            part = found[found["metric"] != "P"].rename(columns={"model": "method", state: "value"})
            part["P"] = precision.loc[list(zip(part["method"], part["k"], strict=True)), state].to_numpy()
            parts.append(part.assign(dataset=dataset, variant=variant))
    columns = ["k", "dataset", "method", "P", "metric", "variant", "value"]
    data = pd.concat(parts, ignore_index=True)[columns]
    return data.sort_values("k", kind="stable").reset_index(drop=True)


def errors_beside(data: pd.DataFrame) -> pd.DataFrame:
    """:func:`against_precision` for people: dataset, method, k, P (before), then before and after of each error."""
    keys, names = ["dataset", "method", "k"], {"none": "before", "isotonic": "after"}
    table = data[data["variant"] == "none"].drop_duplicates(keys)[[*keys, "P"]].set_index(keys)
    for (metric_name, variant), part in data.groupby(["metric", "variant"], sort=False):
        table[f"{metric_name} {names[variant]}"] = part.set_index(keys)["value"]
    errors = [f"{name} {state}" for name in data["metric"].unique() for state in STATES]
    return table[["P", *errors]].reset_index()


def moved(data: pd.DataFrame) -> float:
    """The largest change of any P@k from before to after, percentage points, from :func:`against_precision`."""
    wide = data.pivot(index=["dataset", "method", "k", "metric"], columns="variant", values="P")
    return float((wide["isotonic"] - wide["none"]).abs().max())


_ROWS = {"ECE": "ECE@{k}, %", "Brier": "Brier@{k}, %", "NLL": "NLL@{k}, nats", "ACE": "ACE@{k}, %"}


def plot_precision(data: pd.DataFrame, k: int) -> Figure:
    """Figs 17 (k = 1), 18 (3) and 19 (5): four errors against P@k, a column a set of data."""
    data = data[data["k"] == k]
    sets = list(data["dataset"].unique())
    shape = {"nrows": len(_ROWS), "ncols": len(sets), "sharex": "col", "sharey": "row", "squeeze": False}
    with figures.new(width=0.9 + 3.5 * len(sets), height=8.2, **shape) as (fig, axes):
        for line, (name, words) in zip(axes, _ROWS.items(), strict=True):
            for ax, dataset in zip(line, sets, strict=True):
                _marks(ax, data[(data["dataset"] == dataset) & (data["metric"] == name)])
                if name in ("ECE", "ACE"):
                    _log(ax)
            line[0].set_ylabel(words.format(k=k))
        for column, dataset in zip(axes.T, sets, strict=True):
            column[0].set_title(dataset, loc="left")
            column[-1].set_xlabel(f"P@{k}, %")
        _models_legend(fig, axes[0, 0], 4)
        ece = data[data["metric"] == "ECE"].groupby("variant")["value"].max()
        fig.suptitle(
            f"Up to {ece['none']:.0f} % before, no ECE@{k} is above {ece['isotonic']:.1f} % after isotonic regression,\n"
            f"and no P@{k} has moved",
            x=0.01,
            ha="left",
            fontsize=10,
        )
    return fig


def plot_errors(data: pd.DataFrame, dataset: str, k: int = 5) -> Figure:
    """Fig 3, row 1: ECE, Brier and ACE against P@k on one set of data."""
    data = data[(data["k"] == k) & (data["dataset"] == dataset)]
    names = ("ECE", "Brier", "ACE")
    with figures.new(width=8.4, height=3.4, ncols=len(names)) as (fig, axes):
        for ax, name in zip(axes, names, strict=True):
            _marks(ax, data[data["metric"] == name])
            ax.set(xlabel=f"P@{k}, %", ylabel=_ROWS[name].format(k=k))
        _models_legend(fig, axes[0], 4)
        before = data[(data["metric"] == "ECE") & (data["variant"] == "none")]
        best, right = before.loc[before["P"].idxmax()], before.loc[before["value"].idxmin()]
        fig.suptitle(
            f"{dataset}: {best['method']} has the highest P@{k} ({best['P']:.1f} %), with ECE@{k} {best['value']:.1f} %;"
            f" {right['method']} the lowest ECE@{k} ({right['value']:.1f} %)",
            x=0.01,
            ha="left",
            fontsize=10,
        )
    return fig


def _marks(ax, part: pd.DataFrame) -> None:
    """Each model before, filled, and after, hollow, with a thin line between."""
    for place, (name, rows) in enumerate(part.groupby("method", sort=False)):
        colour, marker = _COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)]
        rows = rows.set_index("variant")
        ax.plot(rows["P"], rows["value"], "-", color="0.75", linewidth=0.8, zorder=1)
        for variant, face in (("none", colour), ("isotonic", "white")):
            ax.plot(rows.at[variant, "P"], rows.at[variant, "value"], marker, color=colour, markersize=6.5,
                    markerfacecolor=face, label=name if variant == "none" else None)  # fmt: skip
    ax.margins(0.12)


def _log(ax) -> None:
    ax.set_yscale("log")
    ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    ax.set_ylim(0.1, 100)


def _models_legend(fig: Figure, ax, ncols: int) -> None:
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=ncols,
               title="filled: before, hollow: after isotonic regression")  # fmt: skip


# ---------------------------------------------------------------- anybody's predictions, and fig 4


def write_by_hand(path: str | os.PathLike, scores: np.ndarray, ids: np.ndarray, pairs: np.ndarray) -> None:
    """The calibration@k interchange file in plain NumPy, as a program that knows nothing of this package can write it.

    scores (n, k), best first; ids (n, k), the labels; pairs (m, 2), row and label of every relevant label of the test split.
    """
    relevant = {(int(row), int(label)) for row, label in pairs}
    hits = np.array([[(row, int(label)) in relevant for label in line] for row, line in enumerate(ids)])
    np.savez(path, scores=scores, prediction_ids=ids, true_positives=hits, labels=pairs)


def write_example(folder: str | os.PathLike, ds: Dataset, tops: Mapping[str, TopK], k: int = 5) -> list[str]:
    """Saves the first k places of each model under its name in ``folder``, in the three ways there are, in turn: by hand in
    plain NumPy, ``TopK.to_calibration_npz``, ``TopK.save``. Returns the file names."""
    Y = ds.test.Y.tocoo()
    for place, (name, top) in enumerate(tops.items()):
        path, top = Path(folder) / f"{name}.npz", top.head(k)
        if place % 3 == 0:
            write_by_hand(path, top.scores, top.ids, np.column_stack([Y.row, Y.col]))
        elif place % 3 == 1:
            top.to_calibration_npz(path, ds.test.Y)
        else:
            top.save(path)
    return sorted(path.name for path in Path(folder).iterdir())


def from_files(ds: Dataset, tops: Mapping[str, TopK], given: str = "", k: int = 5) -> dict[str, TopK]:
    """The predictions saved under ``given``; without it, ``tops`` saved by :func:`write_example` and read back."""
    if given:
        return baselines.saved(given, ds, k)
    with tempfile.TemporaryDirectory() as folder:
        print("written and read back:", ", ".join(write_example(folder, ds, tops, k)))
        found = baselines.saved(folder, ds, k)
    return {name: found[name] for name in tops}


def ranks(k: int) -> tuple[int, ...]:
    """1 to k, the ranks of fig 4."""
    return tuple(range(1, k + 1))


def detour(ds: Dataset, memory: Mapping[str, TopK], found: pd.DataFrame, k: int = 5) -> float:
    """The largest difference between ``found``, the errors of predictions read from files, and those of the same ones in
    memory; NaN where there are none in memory."""
    if not memory:
        return float("nan")
    metrics = tuple(found["metric"].unique())
    ours = calibrated.errors(ds, memory, ks=ranks(k), metrics=metrics)
    keys = ["model", "metric", "k"]
    both = found.merge(ours, on=keys, suffixes=("", " in memory"), validate="one_to_one")
    if len(both) != len(found) or len(both) != len(ours):
        return float("inf")
    return float(max((both[state] - both[f"{state} in memory"]).abs().max() for state in STATES))


def strategies() -> pd.DataFrame:
    """What fig 4 compares, as far as table 7 has it: ECE@k before calibration of LightXML and CascadeXML, a column a k.

    The figure's other two (LightXML with random clusters, ELIAS) have no printed number.
    """
    t = calibration.table(7)
    t = t[t["method"].isin(["LightXML", "CascadeXML"]) & (t["metric"] == "ECE") & (t["variant"] == "none")]
    t = t.assign(at="ECE@" + t["k"].astype(str))
    wide = t.pivot(index=["dataset", "method"], columns="at", values="value")
    wide = wide.loc[t.set_index(["dataset", "method"]).index.unique()]
    wide.columns.name = None
    return wide.reset_index()


def plot_by_k(data: pd.DataFrame) -> Figure:
    """Fig 4: ECE@k against k, before (filled) and after isotonic regression (hollow)."""
    with figures.new(width=6.4, height=3.6) as (fig, ax):
        for place, (name, part) in enumerate(data.groupby("model", sort=False)):
            colour, marker = _COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)]
            ax.plot(part["k"], part["before"], marker=marker, linestyle="-", color=colour, label=name)
            ax.plot(part["k"], part["after"], marker=marker, linestyle=":", color=colour, markerfacecolor="white")
        ax.set(xlabel="k", ylabel="ECE@k, %", xticks=data["k"].unique(), ylim=(0, None))
        first, last = (data[data["k"] == k].set_index("model")["before"] for k in (data["k"].min(), data["k"].max()))
        ax.set_title(f"From k = {data['k'].min()} to {data['k'].max()} the error rises in {int((last > first).sum())} of "
                     f"{len(first)} models", loc="left")  # fmt: skip
        fig.legend(loc="outside right upper", title="filled: before\nhollow: after")
    return fig
