"""A worked use: the advertiser of the calibration paper's introduction bids where the expected value exceeds the cost.

For every point (a query) a model proposes its k best labels (ads). Showing one costs ``cost``; it is worth 1 where the label
is relevant. The advertiser buys a proposal with probability p where p > cost. All money is in units of that value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import calibrated
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

COSTS = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())


def profit(probabilities: np.ndarray, worth: np.ndarray, cost: float) -> float:
    """What bidding earns: the sum of ``worth - cost`` over the proposals with ``probabilities > cost``.

    worth: of the same shape, what a proposal turns out to be worth: a hit (0 or 1), or its true probability for the
    expectation. Minus infinity marks an absent proposal, for which nobody bids.

    >>> profit(np.array([0.9, 0.6, 0.2]), np.array([1, 0, 1]), cost=0.5)        # 1 - 0.5 and 0 - 0.5; the third is let pass
    0.0
    """
    bids = probabilities > cost
    return float((worth[bids] - cost).sum())


def worth_of(ds: Dataset, top: TopK) -> np.ndarray:
    """What each proposal is worth: on a twin its true probability, so that profits are expectations; else whether it hits."""
    if isinstance(ds, Twin):
        return calibrated.true_probabilities(ds, top)
    return Truth.of(ds.test.Y).hits(top.ids).astype(np.float64)


def curves(ds: Dataset, tops: Mapping[str, TopK], k: int = 5, costs: Sequence[float] = COSTS) -> pd.DataFrame:
    """Profit per 1,000 points over the cost: model, cost, and

    - ``all``: every proposal is bought;
    - ``before``, ``after``: bids by the model's scores as probabilities, and by the same after isotonic regression;
    - ``best``: bids by the true probabilities of the same proposals: nobody's probabilities earn more. NaN on real data,
      where they are not known.
    """
    rows = []
    scale = 1000 / ds.test.Y.shape[0]
    for name, (before, after) in calibrated.before_after(ds, tops, "isotonic", k).items():
        worth = worth_of(ds, before)
        present = np.where(before.ids >= 0, np.inf, -np.inf)
        # Joint isotonic keeps the order of every row, so place j is the same label in both.
        for cost in costs:
            earned = [profit(p, worth, cost) for p in (present, before.scores, after.scores)]
            best = profit(worth, worth, cost) if isinstance(ds, Twin) else np.nan
            rows.append((name, float(cost), *(scale * each for each in earned), scale * best))
    return pd.DataFrame(rows, columns=["model", "cost", "all", "before", "after", "best"])


def ceiling(ds: Twin, costs: Sequence[float] = COSTS) -> pd.DataFrame:
    """Profit per 1,000 points of one who knows the true probability of every label, not only of k proposals: cost, profit."""
    chance = ds.test.marginals.data.astype(np.float64)
    n = ds.test.marginals.shape[0]
    return pd.DataFrame(
        [(float(cost), 1000 * profit(chance, chance, cost) / n) for cost in costs], columns=["cost", "profit"]
    )


def at(curves: pd.DataFrame, costs: Sequence[float] = (0.3, 0.5, 0.7)) -> pd.DataFrame:
    """Some costs of ``curves``, with ``before %`` and ``after %``: the share of ``best`` that is earned."""
    found = curves[curves["cost"].isin(costs)].sort_values(["cost"], kind="stable").reset_index(drop=True)
    return found.assign(**{f"{c} %": 100 * found[c] / found["best"] for c in ("before", "after")})


def solid(at: pd.DataFrame) -> pd.DataFrame:
    """The part of :func:`at` that the golden file holds: profits below 300 as NaN, because a hit or two would move them by
    percents, and no shares."""
    money = ["all", "before", "after", "best"]
    return at[["model", "cost", *money]].assign(**{name: at[name].where(at[name] >= 300) for name in money})


def lost(ds: Dataset, tops: Mapping[str, TopK], k: int = 5) -> pd.DataFrame:
    """What wrong probabilities cost, averaged over all costs from 0 to 1: model, then per 1,000 points ``best`` and how much
    less ``before`` and ``after`` earn, and what share of the first loss calibration gets back (percent). NaN on real data.

    A proposal said to have p that has q loses |q - cost| wherever the cost lies between p and q, which over all costs adds
    up to (p - q)^2 / 2: half the squared error of the probability. So no grid of costs is needed.
    """
    rows = []
    for name, pair in calibrated.before_after(ds, tops, "isotonic", k).items():
        if not isinstance(ds, Twin):
            rows.append((name, *[np.nan] * 4))
            continue
        present = pair[0].ids >= 0
        q = calibrated.true_probabilities(ds, pair[0])[present]
        scale = 1000 / len(pair[0])
        before, after = (scale * float(((top.scores[present].astype(np.float64) - q) ** 2).sum()) / 2 for top in pair)
        rows.append((name, scale * float((q**2).sum()) / 2, before, after, 100 * (1 - after / before)))
    return pd.DataFrame(rows, columns=["model", "best", "lost before", "lost after", "got back %"])


def plot(curves: pd.DataFrame, title: str, ncols: int = 3) -> Figure:
    """What is earned over the cost, one panel a model: before (dashed), after (solid), every proposal bought (dotted); as a
    share of ``best`` where that is known, else per 1,000 points."""
    models = list(dict.fromkeys(curves["model"]))
    nrows = -(-len(models) // ncols)
    known = bool(curves["best"].notna().all())
    unit = curves["best"] / 100 if known else 1.0
    drawn = curves.assign(**{column: curves[column] / unit for column in ("all", "before", "after")})
    size = {"width": 8.2, "height": 1.1 + 1.9 * nrows, "ncols": ncols, "nrows": nrows}
    with figures.new(**size, sharex=True, sharey=True, squeeze=False) as (fig, axes):
        for axis, model in zip(axes.flat, models, strict=False):
            part = drawn[drawn["model"] == model]
            if known:
                axis.axhline(100, color="0.5", linewidth=0.8, label="best: true probabilities")
            axis.plot(part["cost"], part["all"], ":", color="0.25", label="buy every proposal")
            axis.plot(part["cost"], part["before"], "--", color="C1", label="bid by the model's scores")
            axis.plot(part["cost"], part["after"], "-", color="C0", label="bid after isotonic")
            axis.axhline(0, color="0.5", linewidth=0.6)
            axis.set(title=model, xlim=(0, 1))
        for axis in axes.flat[len(models) :]:
            axis.set_visible(False)
        high = 100.0 if known else float(drawn[["all", "after"]].max().max())
        axes[0, 0].set_ylim(-0.4 * high, 1.1 * high)
        for axis in axes[-1]:
            axis.set_xlabel("cost / value of a hit")
        for axis in axes[:, 0]:
            axis.set_ylabel("profit, % of best" if known else "profit / 1,000 points")
        fig.suptitle(title)
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig
