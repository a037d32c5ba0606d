"""Fig 6 on the neural baseline: what four training losses do to precision and calibration."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import calibrate, looks
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import baselines, calibrated, trained
from xcrepro.models import NeuralOneVsAll
from xcrepro.papers.calibration import fig6_losses
from xcrepro.predictions import TopK
from xcrepro.repro import figures


def invert_loss(model: NeuralOneVsAll, scores: np.ndarray) -> np.ndarray:
    """The probability that a score stands for where the model's loss is at its least: the loss's own link.

    A label that is relevant with probability q is best scored by the p at which q l1'(p) + (1 - q) l0'(p) = 0, l1 and
    l0 the loss of a relevant and of another label. Solved for q:

    - bce: q = p. squared hinge: q = (1 + z) / 2, within [0, 1].
    - focal: p lies between q and 1/2, so scores have to be spread.
    - asymmetric: the loss of a label that is not relevant counts so little that p is far above q.

    Parameters
    ----------
    model : NeuralOneVsAll
        Whose loss, with its parameters.
    scores : ndarray
        Sigmoids p in [0, 1], of the squared hinge margins z; absent places, minus infinity, stay so.

    Returns
    -------
    ndarray
        float64, of the shape of ``scores``.

    Examples
    --------
    >>> nets = [NeuralOneVsAll(loss) for loss in ("bce", "focal", "asymmetric")]
    >>> [float(invert_loss(net, np.array([0.3]))[0].round(3)) for net in nets]
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


def compute(ds: Dataset, seed: int = 0, k: int = 5) -> pd.DataFrame:
    """Fig 6 with the neural baseline: precision and calibration by training loss.

    Parameters
    ----------
    ds : Dataset
    seed : int
        Of the trainings.
    k : int

    Returns
    -------
    DataFrame
        One row a loss, all at k and in percent: loss, P@k; ECE@k, over, under, Brier@k of the scores as the paper
        takes them, squared hinge squeezed through (s - min) / (max - min); own link (ECE behind :func:`invert_loss`),
        isotonic (ECE after isotonic regression).
    """
    rows = []
    for loss in baselines.LOSSES:
        model = baselines.recipe(name := f"Neural, {loss}", ds, seed)
        top = trained.training(model, ds.train.X, ds.train.Y).predictions(ds.test.X, baselines.PLACES).head(k)
        linked = TopK(top.ids, invert_loss(model, top.scores).astype(np.float32), top.n_labels)
        ((before, after),) = calibrated.before_after(ds, {name: top}, (k,)).values()
        metrics = ("P", "ECE", "ECE over", "ECE under", "Brier")
        found = calibrated.measure(ds, before, k, metrics)
        own, left = (calibrated.measure(ds, each, k, ("ECE",))["ECE"] for each in (linked, after))
        rows.append((loss, *(found[name] for name in metrics), own, left))
    columns = ["loss", f"P@{k}", f"ECE@{k}", "over", "under", f"Brier@{k}", "own link", "isotonic"]
    return pd.DataFrame(rows, columns=columns)


def compare_with_printed(table: pd.DataFrame) -> pd.DataFrame:
    """Ours at k = 5 and appendix A's (Renee, Amazon-670K).

    Parameters
    ----------
    table : DataFrame
        From :func:`compute` at k = 5.

    Returns
    -------
    DataFrame
        loss, P@5, ECE@5, printed P@5, printed ECE@5 (percent), and the distance of ECE@5 from BCE's in both (points):
        "ours, from BCE", "printed, from BCE".
    """
    losses = fig6_losses.compute().query("kind == 'loss of Renee'").set_index("name").rename({"ASY": "asymmetric"})
    found = table[["loss", "P@5", "ECE@5"]].join(losses[["P@5", "ECE@5"]].add_prefix("printed "), on="loss")
    bce = found.set_index("loss").loc["BCE"]
    found["ours, from BCE"] = found["ECE@5"] - bce["ECE@5"]
    found["printed, from BCE"] = found["printed ECE@5"] - bce["printed ECE@5"]
    return found


_SCORES = {  # column -> words, and what tells the marks apart
    "ECE@5": ("scores as the paper takes them", {"markersize": 7}),
    "own link": ("large: through the loss's own link", {"markersize": 12, "markerfacecolor": "none"}),
    "isotonic": ("small: after isotonic regression", {"markersize": 4, "markerfacecolor": "white"}),
}


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Fig 6: ECE@5 against P@5 of the four losses, and behind their own links and after isotonic regression.

    The paper's points are grey.

    Parameters
    ----------
    table : DataFrame
        With the columns of :func:`compute` and of :func:`compare_with_printed`.
    ax : Axes, optional
    """
    with figures.new(width=looks.MEDIUM, height=5.0, ax=ax) as (fig, ax):
        grey = {"color": "0.55", "linestyle": "none", "label": "Renee on Amazon-670K, printed"}
        ax.plot(table["printed P@5"], table["printed ECE@5"], "x", markersize=7, **grey)
        for row in table.to_dict("records"):
            if pd.notna(row["printed P@5"]):
                looks.name(ax, row["loss"], (row["printed P@5"], row["printed ECE@5"]), (6, 3), color="0.45")
            look = looks.of(f"Neural, {row['loss']}")
            ax.plot([row["P@5"]] * 2, [row["isotonic"], row["ECE@5"]], "-", color="0.8", linewidth=0.8, zorder=1)
            for column, (_, style) in _SCORES.items():
                label = row["loss"] if column == "ECE@5" else None
                ax.plot(row["P@5"], row[column], look.marker, color=look.colour, label=label, **style)
        for words, style in _SCORES.values():
            ax.plot([], [], "o", color="0.3", label=words, **style)
        ax.set(xlabel="P@5, %  (right is better)", ylabel="ECE@5, %  (down is better)", ylim=(-0.5, None))
        ax.margins(0.1)
        looks.legend(fig, ncols=3)
        error = table.set_index("loss")["ECE@5"]
        ends = f"{error.idxmin()} ({error.min():.1f} %), highest: {error.idxmax()} ({error.max():.1f} %)"
        after = f"after isotonic regression no loss is above {table['isotonic'].max():.1f} %"
        looks.title(fig, f"Lowest ECE@5 before calibration: {ends};\n{after}")
        figures.draws(ax, x=("P@5", "printed P@5"), y=("printed ECE@5", *_SCORES))
    return fig
