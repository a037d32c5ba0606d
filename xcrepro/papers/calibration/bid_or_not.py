"""A worked use: the advertiser of the paper's introduction bids where the expected value exceeds the cost.

For every point (a query) a model proposes its k best labels (ads). Showing one costs ``cost``; it is worth 1 where
the label is relevant. The advertiser buys a proposal with probability p where p > cost. All money is in units of that
value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.findings import Measured, agreement, count, signed
from xcrepro.inputs import calibrated, parameters
from xcrepro.metrics.significance import jackknife_blocks
from xcrepro.papers.calibration import _common
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

COSTS = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())
SOME = (0.3, 0.5, 0.7)
"""The costs of the table."""

check_parameters = parameters.check


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
        Of one proposal.

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


def find_worth(ds: Dataset, top: TopK) -> np.ndarray:
    """What every proposal is worth: on a twin its true probability, so that profits are expectations; else 1 for a hit.

    Parameters
    ----------
    ds : Dataset
    top : TopK
        Over the test points.

    Returns
    -------
    ndarray of float64, (n, k)
    """
    if isinstance(ds, Twin):
        return calibrated.true_probabilities(ds, top)
    return Truth.of(ds.test.Y).hits(top.ids).astype(float)


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
        worth = find_worth(ds, before)
        if isinstance(ds, Twin):
            bidders["best"] = worth
        for cost in costs:
            earned = {who: 1000 * profit(p, worth, cost) / len(before) for who, p in bidders.items()}
            rows.append({"model": name, "cost": float(cost), **earned})
    found = pd.DataFrame(rows, columns=["model", "cost", "all", "before", "after", "best"])
    return found.assign(**{f"{who} %": 100 * found[who] / found["best"] for who in ("all", "before", "after")})


def compute_table(found: pd.DataFrame, costs: Sequence[float] = SOME) -> pd.DataFrame:
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
        calibration gets back; these NaN on real data. gain, ±: how much more is earned after calibration than before,
        which is known on real data as well, and the standard error of that.
    """
    rows = []
    found = measure_average(ds, states)
    for (name, _), pair in states.items():
        present = pair[0].ids >= 0
        q = calibrated.true_probabilities(ds, pair[0])[present] if isinstance(ds, Twin) else np.nan
        errors = [q, *(top.scores[present].astype(np.float64) - q for top in pair)]
        best, before, after = (500 * float(np.sum(error**2)) / len(pair[0]) for error in errors)
        gain = found.difference(f"{name}, after", f"{name}, before")
        back = 100 * (1 - after / before) if before else np.nan
        rows.append((name, best, before, after, back, gain.value, gain.error))
    return pd.DataFrame(rows, columns=["model", "best", "lost before", "lost after", "got back %", "gain", "±"])


def measure_average(ds: Dataset, states: calibrated.States) -> Measured:
    """What is earned per 1,000 points on average over all costs from 0 to 1, with its error over the test points.

    A proposal of worth w bought wherever the cost is below p earns w p - p^2 / 2 over all costs.

    Parameters
    ----------
    ds, states
        As for :func:`compute`.

    Returns
    -------
    Measured
        Of ``"PLT, before"``, ``"PLT, after"``, ...
    """
    return _measure(ds, states, lambda p, worth: worth * p - p**2 / 2)


def measure_at(ds: Dataset, states: calibrated.States, cost: float) -> Measured:
    """The same at one cost.

    Parameters
    ----------
    ds, states
        As for :func:`compute`.
    cost : float
        Of one proposal.

    Returns
    -------
    Measured
    """
    return _measure(ds, states, lambda p, worth: np.where(p > cost, worth - cost, 0.0))


def _measure(ds: Dataset, states: calibrated.States, earned) -> Measured:
    """The mean over points of what their proposals earn, and the same without one block of points after the other."""
    values, left = {}, {}
    for (name, _), pair in states.items():
        worth = find_worth(ds, pair[0])
        for state, top in zip(calibrated.STATES, pair, strict=True):
            p = np.where(top.ids >= 0, top.scores, 0.0).astype(np.float64)
            each = 1000 * earned(p, worth).sum(axis=1)
            blocks = jackknife_blocks(len(each)) if len(each) >= 2 else ()
            values[f"{name}, {state}"] = float(each.mean())
            left[f"{name}, {state}"] = np.array([each[rows].mean() for rows in blocks])
    return Measured(values, left, "blocks")


def findings(ds: Dataset, states: calibrated.States, costs: Sequence[float] = SOME) -> list[str]:
    """Whether calibration earns money: averaged over all costs, and at some.

    Parameters
    ----------
    ds, states
        As for :func:`compute`.
    costs : sequence of float

    Returns
    -------
    list of str
    """
    average = measure_average(ds, states)
    gains = _gains(average)
    said = [
        f"Averaged over all costs, calibrated scores earn more than the model's own: {_counted(gains)}.",
        _extremes(gains),
        in_words(average, "before"),
        in_words(average, "after"),
    ]
    for cost in costs:
        said.append(
            f"At a cost of {cost:g}, calibrated scores earn more: {_counted(_gains(measure_at(ds, states, cost)))}."
        )
    return said


def findings_recorded(
    ds: Dataset, states: calibrated.States, recorded: Mapping[str, pd.DataFrame], cost: float = SOME[0]
) -> list[str]:
    """Whether real data say the same of what calibration earns at one cost.

    Parameters
    ----------
    ds, states
        As for :func:`compute`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check_table`, as recorded.
    cost : float
        Of one proposal.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    found = calibrated.before_minus_after(measure_at(ds, states, cost))
    there = {dataset: table[table["cost"] == cost] for dataset, table in recorded.items()}
    values = _common.recorded_pairs(there, {state: f", {state}" for state in calibrated.STATES})
    return [agreement(found, values, f"earned at a cost of {cost:g}", "changes by calibration")]


def in_words(average: Measured, state: str) -> str:
    """Which model earns most in one state, as words."""
    text = (
        calibrated.in_state(average, state).leader("the profit averaged over all costs", unit="per 1,000 points").text
    )
    return f"{state.capitalize()} calibration: {text}."


def _gains(found: Measured):
    models = [name.removesuffix(", after") for name in found.values if name.endswith(", after")]
    return found.differences((f"{name}, after", f"{name}, before") for name in models)


def _counted(gains) -> str:
    return count(gains, "").removeprefix(": ")


def _extremes(gains) -> str:
    """The largest and the smallest gain, with their errors."""
    ranked = sorted(gains, key=lambda one: one.value)
    words = [
        f"{signed(one.value, 1)}{'' if np.isnan(one.error) else f' ± {one.error:.1f}'} per 1,000 points with"
        f" {one.left.removesuffix(', after')}"
        for one in dict.fromkeys((ranked[-1], ranked[0]))
    ]
    return f"The gain is {words[0]}." if len(words) == 1 else f"The gain goes from {words[1]} to {words[0]}."


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
    columns = min(3, len(models))
    rows = -(-len(models) // columns)
    known = bool(found["best"].notna().all())
    mark = " %" if known else ""
    lines = {
        f"all{mark}": ("buy every proposal", {"color": "0.45", "linestyle": ":"}),
        f"before{mark}": ("bid by the model's scores", {"color": looks.RUST, "linestyle": "--"}),
        f"after{mark}": ("bid after isotonic", {"color": looks.INK, "linestyle": "-"}),
    }
    high = 100 if known else found[["all", "after"]].max(axis=None)
    width, height = looks.WIDE if columns > 1 else looks.NARROW, (1.1 + 1.9 * rows) if columns > 1 else 3.6
    with figures.new(width, height, columns, rows, ax, sharey=True, squeeze=False) as (fig, axes):
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
        best = "; 100 %: bids by\nthe true probabilities of the same labels" if known else ""
        looks.title(fig, f"Profit over the cost, the same labels bid for before and after calibration{best}")
        looks.legend(fig, axes[0, 0])
    return fig
