"""A worked use: the advertiser of the paper's introduction bids where the expected value exceeds the cost.

For every point (a query) a model proposes its k best labels (ads). Showing one costs ``cost``; it is worth 1 where
the label is relevant. The advertiser buys a proposal with probability p where p > cost. All money is in units of that
value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures
from xcrepro.truth import Truth

COSTS = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())


def profit(probabilities: np.ndarray, worth: np.ndarray, cost: float) -> float:
    """What bidding earns: the sum of ``worth - cost`` over the proposals with ``probabilities > cost``.

    Parameters
    ----------
    probabilities : ndarray
        Minus infinity marks an absent proposal, for which nobody bids.
    worth : ndarray
        Of the same shape, what a proposal turns out to be worth: a hit (0 or 1), or its true probability for the
        expectation.
    cost : float

    Returns
    -------
    float

    Examples
    --------
    >>> profit(np.array([0.9, 0.6, 0.2]), np.array([1, 0, 1]), cost=0.5)    # 1 - 0.5 and 0 - 0.5; the third is let pass
    0.0
    """
    bids = probabilities > cost
    return float((worth[bids] - cost).sum())


def compute(ds: Dataset, states: calibrated.States, costs: Sequence[float] = COSTS) -> pd.DataFrame:
    """Profit over the cost.

    Parameters
    ----------
    ds : Dataset
    states : mapping
        From :func:`xcrepro.inputs.calibrated.before_after` with one k, calibrated jointly.
    costs : sequence of float
        Of showing one label, in values of a hit.

    Returns
    -------
    DataFrame
        model, cost, then per 1,000 points all: every proposal is bought; before, after: bids by the model's scores as
        probabilities, and by the calibrated ones; best: bids by the true probabilities of the same proposals, and
        nobody's probabilities earn more. Then all %, before %, after %: shares of best. On a twin profits are
        expectations under its probabilities; on real data they are counted in hits, and best and the shares are NaN.
    """
    rows = []
    for (name, _), (before, after) in states.items():
        # Joint isotonic keeps the order of every row, so place j is the same label in both.
        bidders = {"all": np.where(before.ids >= 0, np.inf, -np.inf), "before": before.scores, "after": after.scores}
        if isinstance(ds, Twin):
            worth = bidders["best"] = calibrated.true_probabilities(ds, before)
        else:
            worth = Truth.of(ds.test.Y).hits(before.ids).astype(float)
        for cost in costs:
            earned = {who: 1000 * profit(p, worth, cost) / len(before) for who, p in bidders.items()}
            rows.append({"model": name, "cost": float(cost), **earned})
    found = pd.DataFrame(rows, columns=["model", "cost", "all", "before", "after", "best"])
    return found.assign(**{f"{who} %": 100 * found[who] / found["best"] for who in ("all", "before", "after")})


def compute_table(found: pd.DataFrame, costs: Sequence[float] = (0.3, 0.5, 0.7)) -> pd.DataFrame:
    """Some costs of :func:`compute`, by cost.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.
    costs : sequence of float
        Of its costs.

    Returns
    -------
    DataFrame
        Those rows, without the column ``all %``.
    """
    found = found[found["cost"].isin(costs)].drop(columns="all %")
    return found.sort_values("cost", kind="stable", ignore_index=True)


def check_table(table: pd.DataFrame) -> pd.DataFrame:
    """Profits from 300 on; smaller ones as NaN, because a hit or two would move them by percents, and no shares."""
    money = ["all", "before", "after", "best"]
    return table[["model", "cost", *money]].assign(**{name: table[name].where(table[name] >= 300) for name in money})


def compute_loss(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    """What wrong probabilities cost, averaged over all costs from 0 to 1.

    A proposal said to have p that has q loses abs(q - cost) wherever the cost lies between p and q, which over all
    costs adds up to (p - q)^2 / 2: half the squared error of the probability. So no grid of costs is needed.

    Parameters
    ----------
    ds, states
        As for :func:`compute`.

    Returns
    -------
    DataFrame
        model, best, lost before, lost after (per 1,000 points), got back %: the share of the first loss that
        calibration gets back. NaN on real data.
    """
    rows = []
    for (name, _), pair in states.items():
        present = pair[0].ids >= 0
        q = calibrated.true_probabilities(ds, pair[0])[present] if isinstance(ds, Twin) else np.nan
        errors = [q, *(top.scores[present].astype(np.float64) - q for top in pair)]
        best, before, after = (500 * float(np.sum(error**2)) / len(pair[0]) for error in errors)
        rows.append((name, best, before, after, 100 * (1 - after / before)))
    return pd.DataFrame(rows, columns=["model", "best", "lost before", "lost after", "got back %"])


def check_loss(loss: pd.DataFrame) -> pd.DataFrame:
    """All but the share, a small difference of two large numbers."""
    return loss.drop(columns="got back %")


def plot(found: pd.DataFrame, ax=None) -> Figure:
    """What is earned over the cost, a panel a model: as a share of ``best`` where that is known, else per 1,000 points.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.
    ax : array of Axes, optional
        As many as whole rows of three panels need; those left over are hidden.
    """
    models = found["model"].unique()
    rows = -(-len(models) // 3)
    known = bool(found["best"].notna().all())
    mark = " %" if known else ""
    lines = {
        f"all{mark}": ("buy every proposal", {"color": "0.45", "linestyle": ":"}),
        f"before{mark}": ("bid by the model's scores", {"color": looks.RUST, "linestyle": "--"}),
        f"after{mark}": ("bid after isotonic", {"color": looks.INK, "linestyle": "-"}),
    }
    high = 100 if known else found[["all", "after"]].max(axis=None)
    with figures.new(looks.WIDE, 1.1 + 1.9 * rows, 3, rows, ax, sharey=True, squeeze=False) as (fig, axes):
        for panel, model in zip(axes.flat, models, strict=False):
            part = found[found["model"] == model]
            for height in (0, 100) if known else (0,):
                panel.axhline(height, color="0.45", linewidth=0.7, label="_guide")
            for column, (words, style) in lines.items():
                panel.plot(part["cost"], part[column], label=words, **style)
            panel.set(title=model, xlim=(0, 1), ylim=(-0.4 * high, 1.1 * high))
            figures.draws(panel, x="cost", y=tuple(lines))
        unit = "profit, % of best" if known else "profit / 1,000 points"
        looks.label_grid(axes, "cost / value of a hit", unit, len(models))
        more = _common.describe_count(found["after"] > found["before"])
        best = "\n100 %: bids by the true probabilities of the same labels" if known else ""
        looks.title(fig, f"The same labels in the same order, calibrated, earn more in {more} models and costs{best}")
        looks.legend(fig, axes[0, 0])
    return fig
