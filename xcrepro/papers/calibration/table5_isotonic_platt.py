"""Table 5: isotonic regression against Platt scaling, beta calibration and histogram binning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import calibrate, looks
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures

VALUES = ["ECE", "ACE", "Brier", "NLL", "true"]


def log_odds(scores: np.ndarray) -> np.ndarray:
    """log(s / (1 - s)) of scores in [0, 1], kept 1e-6 away from its ends; absent places stay minus infinity."""
    present = scores > -np.inf
    inside = np.clip(np.where(present, scores, 0.5).astype(np.float64), 1e-6, 1.0 - 1e-6)
    return np.where(present, np.log(inside / (1.0 - inside)), -np.inf)


METHODS = {
    "isotonic": {"method": "isotonic"},
    "Platt": {"method": "platt"},
    "Platt, plain targets": {"method": calibrate.Platt(targets="plain")},
    "Platt of log-odds": {"method": "platt", "link": log_odds},
    "beta": {"method": "beta"},
    "histogram, equal width": {"method": calibrate.HistogramBinning(bins=10)},
    "histogram, equal mass": {"method": calibrate.HistogramBinning(bins=15, equal="mass")},
}
"""Method -> keywords of :func:`xcrepro.calibrate.cross_fit_top`.

The paper has the first two; "plain targets" is how its code fits Platt's curve."""


def compute(
    ds: Dataset, tops: calibrated.Tops, methods: Sequence[str] = tuple(METHODS), ks: Sequence[int] = (1, 5)
) -> pd.DataFrame:
    """Every method on every model.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    methods : sequence of str
        Names of :data:`METHODS`.
    ks : sequence of int
        How many places are calibrated together.

    Returns
    -------
    DataFrame
        model, k, method (``"none"`` first), ECE, ACE, Brier (percent), NLL (nats), true (ECE against the twin's
        probabilities, NaN on real data).
    """
    rows = []
    for name, top in tops.items():
        for k in ks:
            before = calibrated.linked(top, k, name)
            fits = {method: calibrate.cross_fit_top(ds.test.Y, before, **METHODS[method]) for method in methods}
            for method, after in {"none": before, **fits}.items():
                values = calibrated.measure(ds, after, k, VALUES[:-1])
                true = 100 * calibrated.true_error(ds, after)
                rows.append({"model": name, "k": int(k), "method": method, **values, "true": true})
    return pd.DataFrame(rows)


check = _common.hide_small_errors


def compute_wins(found: pd.DataFrame, over: str = "isotonic") -> pd.DataFrame:
    """In how many (model, k) one method has the lower value than each other method.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.
    over : str
        The one method, of :data:`METHODS`.

    Returns
    -------
    DataFrame
        ``isotonic below`` (named after ``over``): the other method; then for each of :data:`VALUES` a text such as
        "13 of 14", "-" for metrics that are not known.
    """
    wide = found.dropna(axis=1).set_index(["method", "model", "k"])
    base = wide.loc[over]
    counts = {m: (base < wide.loc[m]).apply(_common.describe_count) for m in found["method"].unique() if m != over}
    return pd.DataFrame(counts).T.reindex(columns=VALUES, fill_value="-").rename_axis(f"{over} below").reset_index()


def compute_means(found: pd.DataFrame) -> pd.DataFrame:
    """The mean over models of each metric.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        k, method, ECE, ACE, Brier, NLL, true, in the units of ``found``.
    """
    return found.groupby(["k", "method"], sort=False, as_index=False)[VALUES].mean()


def compute_printed() -> pd.DataFrame:
    """Table 5 as the page has it, with our readings.

    Returns
    -------
    DataFrame
        dataset, method, then a column a metric, k and mark (texts).
    """
    return _common.lay_out_table(5)


def plot(found: pd.DataFrame, ax=None) -> Figure:
    """ECE at the largest k of each model by method: measured (left, as table 5) and against the twin's probabilities.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.
    ax : array of Axes, optional
        Two; one where there are no true probabilities.
    """
    methods, k = found["method"].unique(), found["k"].max()
    panels = {"ECE": f"ECE@{k} measured with hits (%)", "true": f"ECE@{k} against the true probabilities (%)"}
    if found["true"].isna().all():
        del panels["true"]
    with figures.new(looks.WIDE, 3.8, len(panels), ax=ax, sharex=True, sharey=True, squeeze=False) as (fig, axes):
        for panel, (metric, words) in zip(axes[0], panels.items(), strict=True):
            for model, part in found[found["k"] == k].groupby("model", sort=False):
                panel.plot(part[metric], range(len(part)), linestyle="none", label=model, **looks.of(model).mark())
            panel.set(xlabel=words)
            _common.scale_errors(panel)
            figures.draws(panel, x=metric)
        axes[0, 0].set_yticks(range(len(methods)), methods)
        axes[0, 0].invert_yaxis()
        wins = compute_wins(found).set_index("isotonic below")["ECE"]
        shown = [f"{wins[m]} cases against {m}" for m in METHODS if m in wins and m.startswith(("Platt", "beta"))]
        looks.title(fig, f"Isotonic regression has the lower ECE\nin {', '.join(shown)}")
        looks.legend(fig, axes[0, 0])
    return fig
