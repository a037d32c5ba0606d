"""What the label set's size, the data behind a label and the training loss do to calibration: what the reruns of the
calibration paper's figures 5 and 6 compute and draw."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import calibrate
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import twin
from xcrepro.inputs import baselines, calibrated, trained
from xcrepro.metrics import calibration as metric
from xcrepro.metrics import ranking
from xcrepro.models import NeuralOneVsAll
from xcrepro.predictions import TopK
from xcrepro.repro import calibration, calibration_plots, figures

KS = calibrated.KS
_COLOURS = ("#1b2a49", "#96301c", "#2f7f79", "#e39a2d")
_MARKERS = ("o", "s", "^", "D")

# ---------------------------------------------------------------- fig 5


def by_labels(
    dataset: str, scales: Sequence[float], names: Sequence[str], seed: int = 0, repeats: int = 1
) -> pd.DataFrame:
    """ECE@k before calibration on twins of one dataset at several scales: more points and more labels, as many points a label.

    Columns labels, train points, points per label, model, k, P, ECE, after, floor (percent; :func:`_measured`), each the mean
    over twins with the seeds ``seed``, ``seed + 1`` ...
    """
    parts = []
    for scale in scales:
        for repeat in range(seed, seed + repeats):
            ds = twin(dataset, scale=scale, seed=repeat)
            parts.append(_sized(ds, {name: baselines.training(name, ds, repeat) for name in names}))
    return _mean(parts)


def by_points(
    dataset: str, scale: float, shares: Sequence[float], names: Sequence[str], seed: int = 0, repeats: int = 1
) -> pd.DataFrame:
    """The same on one twin with fewer and fewer of its train points: the labels and the test points stay.

    shares: of the train points, drawn at random; the points of a smaller share are among those of a larger one.
    """
    parts = []
    for repeat in range(seed, seed + repeats):
        ds = twin(dataset, scale=scale, seed=repeat)
        order = np.random.default_rng(repeat).permutation(ds.n_train)
        for share in shares:
            rows = np.sort(order[: max(1, round(share * ds.n_train))])
            split = dataclasses.replace(
                ds.train, X=ds.train.X[rows], Y=ds.train.Y[rows], Y_observed=ds.train.Y_observed[rows],
                marginals=ds.train.marginals[rows],
            )  # fmt: skip
            part = dataclasses.replace(ds, train=split)
            found = {name: trained.training(baselines.recipe(name, ds, repeat), split.X, split.Y) for name in names}
            parts.append(_sized(part, found))
    return _mean(parts)


def _sized(ds: Dataset, trainings: Mapping[str, trained.Training]) -> pd.DataFrame:
    n, n_labels = ds.train.Y.shape
    tops = {name: each.predictions(ds.test.X, max(KS)) for name, each in trainings.items()}
    found = calibration_plots.summary(ds, tops)[["model", "k", "hit rate", "ECE", "after", "floor"]]
    found = found.rename(columns={"hit rate": "P"})
    # Here it is the model before calibration that stands beside its floor.
    found["floor"] = [
        100 * calibration_plots.floor(metric.pairs(ds.test.Y, tops[row.model], row.k)[0]) for row in found.itertuples()
    ]
    return found.assign(**{"labels": n_labels, "train points": n, "points per label": ds.train.Y.nnz / n_labels})


def _mean(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Rows of the same size, model and k averaged; the order as they come."""
    sizes = ["labels", "train points"]
    found = pd.concat(parts).groupby([*sizes, "model", "k"], sort=False, as_index=False).mean()
    return found[["labels", "train points", "points per label", "model", "k", "P", "ECE", "after", "floor"]]


def slopes(labels: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """From the smallest to the largest of each series: model, k, then ECE at ``few labels``, ``many labels``, ``few points``,
    ``many points`` (a label)."""

    def ends(data: pd.DataFrame, by: str, names: tuple[str, str]) -> pd.DataFrame:
        table = data.set_index(["model", "k"])
        low, high = (table[table[by] == value]["ECE"] for value in (data[by].min(), data[by].max()))
        return pd.DataFrame({names[0]: low, names[1]: high})

    left = ends(labels, "labels", ("few labels", "many labels"))
    right = ends(points, "train points", ("few points", "many points"))
    return left.join(right).reset_index()


def stacked(labels: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """Both series in one table, told apart by ``series``: "more labels" and "fewer points"."""
    parts = [part.assign(series=name) for name, part in (("more labels", labels), ("fewer points", points))]
    return pd.concat(parts, ignore_index=True)[["series", *labels.columns]]


def plot_sizes(labels: pd.DataFrame, points: pd.DataFrame) -> Figure:
    """Fig 5, a row a model: against the labels (points per label as they are), and against the points per label (labels and
    test points as they are). The thin line is the floor at the largest k."""
    names = list(labels["model"].unique())
    shape = {"nrows": len(names), "ncols": 2, "sharex": "col", "sharey": True, "squeeze": False}
    with figures.new(width=8.0, height=0.9 + 2.4 * len(names), **shape) as (fig, axes):
        for line, name in zip(axes, names, strict=True):
            for ax, data, x in ((line[0], labels, "labels"), (line[1], points, "points per label")):
                part = data[data["model"] == name]
                for place, (k, rows) in enumerate(part.groupby("k")):
                    colour, marker = _COLOURS[place], _MARKERS[place]
                    ax.plot(rows[x], rows["ECE"], marker=marker, color=colour, label=f"ECE@{k}")
                    if k == part["k"].max():
                        ax.plot(
                            rows[x],
                            rows["floor"],
                            "-",
                            color="0.6",
                            linewidth=1,
                            label=f"floor at k = {k}: chance alone",
                        )
                ticks = sorted(part[x].unique())
                ax.set_xscale("log")
                ax.set_xticks(ticks, [f"{value:,.0f}" if value >= 10 else f"{value:.1f}" for value in ticks])
                ax.minorticks_off()
                ax.set_ylim(0, 1.08 * max(labels["ECE"].max(), points["ECE"].max()))
            line[0].set_ylabel(f"{name}: ECE@k, %")
        axes[-1, 0].set_xlabel(f"labels, at {labels['points per label'].mean():.0f} points per label")
        axes[-1, 1].set_xlabel(f"train points per label, fewer to the right, at {points['labels'].iloc[0]:,} labels")
        axes[-1, 1].invert_xaxis()
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        k = labels["k"].max()
        found = slopes(labels, points).query("k == @k").set_index("model")
        words = "; ".join(
            f"{name}: {row['few labels']:.1f} to {row['many labels']:.1f} % with more labels,"
            f" {row['many points']:.1f} to {row['few points']:.1f} % with fewer points"
            for name, row in found.iterrows()
        )
        fig.suptitle(f"ECE@{k} before calibration. {words}".replace("; ", ";\n"), x=0.01, ha="left", fontsize=10)
    return fig


# ---------------------------------------------------------------- fig 6


def own_link(model: NeuralOneVsAll, scores: np.ndarray) -> np.ndarray:
    """The probability that a score stands for where the model's loss is at its least: absent places stay minus infinity.

    A label that is relevant with probability q is best scored by the p at which q l1'(p) + (1 - q) l0'(p) = 0, l1 and l0
    the loss of a relevant and of another label. Solved for q:

    - bce: q = p. squared hinge: q = (1 + z) / 2, within [0, 1].
    - focal: p lies between q and 1/2, so scores have to be spread.
    - asymmetric: the loss of a label that is not relevant counts so little that p is far above q.

    >>> nets = [NeuralOneVsAll(loss) for loss in ("bce", "focal", "asymmetric")]
    >>> [float(own_link(net, np.array([0.3]))[0].round(3)) for net in nets]
    [0.3, 0.094, 0.007]
    """
    s = np.asarray(scores, np.float64)
    if model.loss == "squared_hinge":
        return calibrate.margin(s, "squared_hinge")
    plus, minus, shift = {
        "bce": (0.0, 0.0, 0.0),
        "focal": (model.gamma, model.gamma, 0.0),
        "asymmetric": (model.gamma_positive, model.gamma_negative, model.shift),
    }[model.loss]
    present = s != -np.inf
    p = np.clip(s[present], 1e-12, 1 - 1e-12)
    q = np.clip(p - shift, 1e-12, None)
    # Both slopes times p (1 - q) > 0, which keeps them finite at the ends.
    rise = (1 - p) ** plus * (1 - q) - plus * (1 - p) ** (plus - 1) * p * np.log(p) * (1 - q)
    fall = q**minus * p - minus * q ** (minus - 1) * np.log1p(-q) * p * (1 - q)
    fall = np.where(p > shift, fall, 0.0)  # below the shift another label costs nothing
    out = np.full(s.shape, -np.inf)
    out[present] = fall / (fall + rise)
    return out


def losses(ds: Dataset, seed: int = 0, k: int = 5) -> pd.DataFrame:
    """Fig 6 on the neural baseline: one row a loss, percent, all at k: loss, P, ECE, over, under, Brier, own link, isotonic.

    ECE, over, under, Brier: of the scores as the paper takes them, squared hinge squeezed through (s - min) / (max - min). own
    link: ECE behind :func:`own_link`. isotonic: ECE after isotonic regression.
    """
    rows = []
    for name in baselines.LOSSES:
        model = baselines.recipe(f"Neural, {name}", ds, seed)
        top = trained.training(model, ds.train.X, ds.train.Y).predictions(ds.test.X, baselines.PLACES).head(k)
        linked = TopK(top.ids, own_link(model, top.scores).astype(np.float32), top.n_labels)
        found = calibrated.errors(
            ds, {f"Neural, {name}": top}, ks=(k,), metrics=("ECE", "ECE over", "ECE under", "Brier")
        )
        before = found.set_index("metric")["before"]
        own = calibrated.errors(ds, {"linked": linked}, ks=(k,), metrics=("ECE",))["before"][0]
        rows.append(
            {
                "loss": name,
                f"P@{k}": 100 * float(ranking.precision(ds.test.Y, top, (k,))[0]),
                f"ECE@{k}": before["ECE"],
                "over": before["ECE over"],
                "under": before["ECE under"],
                f"Brier@{k}": before["Brier"],
                "own link": own,
                "isotonic": found.set_index("metric")["after"]["ECE"],
            }
        )
    return pd.DataFrame(rows)


def beside_published(found: pd.DataFrame) -> pd.DataFrame:
    """:func:`losses` at k = 5 beside appendix A (Renee, Amazon-670K): loss, P@5, ECE@5, printed P@5, printed ECE@5, and the
    distance of ECE@5 from BCE's in both."""
    printed = calibration.losses()
    printed = printed[printed["kind"] == "loss of Renee"].set_index("name")
    printed = printed.reindex(["BCE", "squared hinge", "focal", "ASY"])[["P@5", "ECE@5"]].to_numpy()
    table = found[["loss", "P@5", "ECE@5"]].assign(**{"printed P@5": printed[:, 0], "printed ECE@5": printed[:, 1]})
    bce = table.set_index("loss").loc["BCE"]
    table["ours, from BCE"] = table["ECE@5"] - bce["ECE@5"]
    table["printed, from BCE"] = table["printed ECE@5"] - bce["printed ECE@5"]
    return table


def plot_losses(found: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Fig 6: ECE@5 against P@5 of the four losses, behind their own links and after isotonic; the paper's points in grey."""
    with figures.new(width=7.2, height=5.0) as (fig, ax):
        printed = published.dropna(subset="printed ECE@5")
        ax.plot(printed["printed P@5"], printed["printed ECE@5"], "x", color="0.55", markersize=7,
                label="Renee on Amazon-670K, printed")  # fmt: skip
        for row in printed.itertuples():
            ax.annotate(row.loss, (row[4], row[5]), (6, 3), textcoords="offset points", color="0.45", fontsize=8)
        for place, row in enumerate(found.itertuples(index=False)):
            colour, marker, x = _COLOURS[place], _MARKERS[place], row[1]
            ax.plot([x, x], [row.isotonic, row[2]], "-", color="0.8", linewidth=0.8, zorder=1)
            ax.plot(x, row[2], marker, color=colour, markersize=7, label=row.loss)
            ax.plot(x, row[6], marker, color=colour, markersize=12, markerfacecolor="none")
            ax.plot(x, row.isotonic, marker, color=colour, markersize=4, markerfacecolor="white")
        for words, size, face in (
            ("scores as the paper takes them", 7, "0.3"),
            ("large: through the loss's own link", 12, "none"),
            ("small: after isotonic regression", 4, "white"),
        ):
            ax.plot([], [], "o", color="0.3", markersize=size, markerfacecolor=face, label=words)
        ax.set(xlabel="P@5, %  (right is better)", ylabel="ECE@5, %  (down is better)", ylim=(-0.5, None))
        ax.margins(0.1)
        fig.legend(loc="outside lower center", ncols=3)
        error = found.set_index("loss")
        best = error["ECE@5"].idxmin()
        fig.suptitle(
            f"Lowest ECE@5 before calibration: {best} ({error['ECE@5'].min():.1f} %), highest: {error['ECE@5'].idxmax()}"
            f" ({error['ECE@5'].max():.1f} %);\nafter isotonic regression no loss is above {error['isotonic'].max():.1f} %",
            x=0.01, ha="left", fontsize=10,
        )  # fmt: skip
    return fig
