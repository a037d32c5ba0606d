"""Table 5: isotonic regression against Platt scaling, beta calibration and histogram binning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import calibrate, looks
from xcrepro import findings as said
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Difference, Measured
from xcrepro.inputs import calibrated, parameters
from xcrepro.papers.calibration import _common
from xcrepro.predictions import TopK
from xcrepro.repro import figures

check_parameters = parameters.check

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


Fits = Mapping[tuple[str, int], Mapping[str, TopK]]
"""(model, k) -> method -> the first k places calibrated by it; ``"none"`` first, as they were."""
COMPARED = ("ECE", "Brier", "NLL")


def calibrate_all(
    ds: Dataset, tops: calibrated.Tops, methods: Sequence[str] = tuple(METHODS), ks: Sequence[int] = (1, 5)
) -> dict[tuple[str, int], dict[str, TopK]]:
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
    dict
        As :data:`Fits`.
    """
    return _common.calibrate_all(ds, tops, {name: METHODS[name] for name in methods}, ks)


def measure(ds: Dataset, fits: Fits) -> dict[tuple[str, int], dict[str, Measured]]:
    """What the methods are compared by, with its error: (model, k) -> metric of :data:`COMPARED` -> method -> value.

    Parameters
    ----------
    ds : Dataset
    fits : mapping
        From :func:`calibrate_all`.

    Returns
    -------
    dict
    """
    return {key: calibrated.measured(ds, tops, key[1], COMPARED) for key, tops in fits.items()}


def compute(ds: Dataset, fits: Fits, measured: Mapping) -> pd.DataFrame:
    """The errors by method.

    Parameters
    ----------
    ds : Dataset
    fits : mapping
        From :func:`calibrate_all`.
    measured : mapping
        From :func:`measure`.

    Returns
    -------
    DataFrame
        model, k, method (``"none"`` first), ECE and its standard error (±), ECE corrected with low and high (without the
        noise of its hits), ACE, Brier (percent), NLL (nats), true (ECE against the twin's probabilities, NaN on real data).
    """
    rows = []
    for (name, k), tops in fits.items():
        for method, after in tops.items():
            values = calibrated.measure(ds, after, k, ("ECE", *calibrated.CORRECTED, *VALUES[1:-1]))
            error = {"ECE ±": measured[name, k]["ECE"].error(method)}
            true = {"true": 100 * calibrated.true_error(ds, after)}
            rows.append({"model": name, "k": k, "method": method, "ECE": values.pop("ECE"), **error, **values, **true})
    return pd.DataFrame(rows)


def compare(measured: Mapping, other: str, metric: str = "ECE", over: str = "isotonic") -> list[Difference]:
    """Of each model and k the other method's error less that of ``over``: positive where ``over`` is the better one.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    other, over : str
        Of :data:`METHODS`, or ``"none"``.
    metric : str
        Of :data:`COMPARED`.

    Returns
    -------
    list of Difference
        Corrected together.
    """
    return said.corrected(one[metric].difference(other, over) for one in measured.values())


def compute_comparisons(measured: Mapping, over: str = "isotonic") -> pd.DataFrame:
    """In how many (model, k) one method has clearly the lower or the higher value than each other method.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    over : str

    Returns
    -------
    DataFrame
        against, then for each of :data:`COMPARED` a text: clearly lower / not clear / clearly higher.
    """
    others = [method for method in next(iter(next(iter(measured.values())).values())).values if method != over]
    rows = []
    for other in others:
        verdicts = {m: [one.verdict for one in compare(measured, other, m, over)] for m in COMPARED}
        texts = {m: " / ".join(str(v.count(w)) for w in ("above", "not clear", "below")) for m, v in verdicts.items()}
        rows.append({"against": other, **texts})
    return pd.DataFrame(rows)


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


def findings(found: pd.DataFrame, measured: Mapping) -> list[str]:
    """What came out.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.
    measured : mapping
        From :func:`measure`.

    Returns
    -------
    list of str
    """
    t = _common.printed_table(5)
    wide = t[~t["doubted"]].pivot(index=["dataset", "method", "k"], columns="variant", values="value")
    wide = wide[["platt", "isotonic"]].dropna()
    paper = _common.describe_count(wide["isotonic"] < wide["platt"])
    claims = {
        "ECE": "isotonic regression has a lower {} than Platt scaling",
        "Brier": "its {} score is lower too",
        "NLL": "its {} is lower too",
    }
    sentences = [
        f"In the paper's table isotonic regression has the lower ECE in {paper} pairs (doubted cells left out)."
    ]
    for metric, claim in claims.items():
        sentences.append(f"Here, {said.count(compare(measured, 'Platt', metric), claim.format(metric))}.")
    if "beta" in set(found["method"]):
        beta = said.count(compare(measured, "beta"), "isotonic regression has a lower ECE than beta calibration")
        sentences.append(f"Beyond the paper, {beta}.")
    if found["true"].notna().any():
        means = found.groupby("method", sort=False)["true"].mean()
        shown = [f"{method} {means[method]:.1f}" for method in ("none", "isotonic", "Platt", "beta") if method in means]
        sentences.append(f"Against the twin's own probabilities the mean error is, in points: {', '.join(shown)}.")
    return sentences


def findings_recorded(measured: Mapping, recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of isotonic regression against Platt scaling, by the Brier score.

    Of ECE the small values are not recorded.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check`, as recorded.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    found = said.corrected(
        replace(one["Brier"].difference("isotonic", "Platt"), left=f"{name}@{k}, isotonic", right=f"{name}@{k}, Platt")
        for (name, k), one in measured.items()
    )
    there = {
        dataset: table.assign(model=table["model"] + "@" + table["k"].astype(int).astype(str))
        .pivot(index="model", columns="method", values="Brier")
        .reset_index()
        for dataset, table in recorded.items()
    }
    values = _common.recorded_pairs(there, {"isotonic": ", isotonic", "Platt": ", Platt"})
    return [said.agreement(found, values, "Brier", "pairs of isotonic regression and Platt scaling")]


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
    models, styles = found["model"].unique(), looks.distinct(found["model"].unique())
    shifts = dict(zip(models, np.linspace(-0.25, 0.25, len(models)) if len(models) > 1 else [0.0], strict=True))
    with figures.new(looks.WIDE, 4.4, len(panels), ax=ax, sharex=True, sharey=True, squeeze=False) as (fig, axes):
        for panel, (metric, words) in zip(axes[0], panels.items(), strict=True):
            for model, part in found[found["k"] == k].groupby("model", sort=False):
                look, at = styles[model], np.arange(len(part)) + shifts[model]
                bars = {"xerr": 2 * part["ECE ±"]} if metric == "ECE" else {}
                panel.errorbar(part[metric], at, **bars, linestyle="none", elinewidth=0.8, label=model, **look.mark())
            panel.set(xlabel=words)
            _common.scale_errors(panel)
            figures.draws(panel, x=metric)
        axes[0, 0].set_xlim(right=min(1.4 * found.loc[found["k"] == k, "ECE"].max() + 1, 150))
        axes[0, 0].set_yticks(range(len(methods)), methods)
        axes[0, 0].set_ylim(len(methods) - 0.5, -0.5)
        looks.title(fig, f"ECE@{k} by calibration method (bars: two standard errors)")
        looks.legend(fig, axes[0, 0])
    return fig
