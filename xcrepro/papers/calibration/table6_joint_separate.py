"""Table 6: one calibration map for all places of the top k, or one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import findings as said
from xcrepro import looks
from xcrepro.arguments import whole_number
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Difference, Measured
from xcrepro.inputs import baselines, calibrated, parameters
from xcrepro.inputs.calibrated import KS
from xcrepro.papers.calibration import _common
from xcrepro.predictions import TopK
from xcrepro.repro import figures

FITS = {
    "joint, isotonic": {"method": "isotonic"},
    "separate, isotonic": {"method": "isotonic", "separate": True},
    "separate, Platt": {"method": "platt", "separate": True},
}
"""Fit -> keywords of :func:`xcrepro.calibrate.cross_fit_top`."""


Fits = Mapping[str, Mapping[str, TopK]]
"""Model -> fit -> its places calibrated by it; ``"none"`` first, as they were."""


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules, and that P@5 can be taken of ``places``.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError
        As :func:`xcrepro.inputs.parameters.check`.
    """
    parameters.check(values)
    whole_number("parameter places", values["places"], max(KS), baselines.PLACES)


def calibrate_all(ds: Dataset, tops: calibrated.Tops, places: int = 10) -> dict[str, dict[str, TopK]]:
    """Every fit of every model.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    places : int
        How many labels a point are calibrated, and with separate maps ranked anew. With 5 the five labels stay the five
        labels, and P@5 could not change; the paper's does, so more places were calibrated there.

    Returns
    -------
    dict
        As :data:`Fits`.
    """
    return {name: fits for (name, _), fits in _common.calibrate_all(ds, tops, FITS, [places]).items()}


def measure(ds: Dataset, fits: Fits) -> dict[tuple[str, str], Measured]:
    """What the fits are compared by, with its error.

    Parameters
    ----------
    ds : Dataset
    fits : mapping
        From :func:`calibrate_all`.

    Returns
    -------
    dict
        (model, column) -> fit -> value in percent; the columns P@1, P@3, P@5 and ECE@1.
    """
    return {
        (name, f"{metric}@{k}"): found
        for name, tops in fits.items()
        for k in KS
        for metric, found in calibrated.measured(ds, tops, k, ("P", "ECE") if k == 1 else ("P",)).items()
    }


def compute(ds: Dataset, fits: Fits, measured: Mapping[tuple[str, str], Measured]) -> pd.DataFrame:
    """Table 6 for our models.

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
        model, fit (``"none"``, then :data:`FITS`), P@1, P@3, P@5, ECE@1, ECE@3, ECE@5 (percent), ECE@k corrected (without the
        noise of its hits; that of ECE@1 with low and high), ECE@1's standard error, and ``change of P@k``: P@k less that of
        "none", points, with its standard error (±).
    """
    rows = []
    for name, tops in fits.items():
        for fit, after in tops.items():
            values = {k: calibrated.measure(ds, after, k, ("P", "ECE", *calibrated.CORRECTED)) for k in KS}
            row = {"model": name, "fit": fit} | {f"{m}@{k}": values[k][m] for m in ("P", "ECE") for k in KS}
            row |= {f"ECE@{k} corrected": values[k]["ECE corrected"] for k in KS}
            row |= {f"ECE@1 corrected {end}": values[1][f"ECE corrected {end}"] for end in ("low", "high")}
            row["ECE@1 ±"] = measured[name, "ECE@1"].error(fit)
            for k in KS:
                change = measured[name, f"P@{k}"].difference(fit, "none")
                row |= {f"change of P@{k}": change.value, f"change of P@{k} ±": change.error}
            rows.append(row)
    return pd.DataFrame(rows)


def compute_printed_changes() -> pd.DataFrame:
    """The paper's table 6 as changes of P@k by separate calibration.

    Returns
    -------
    DataFrame
        dataset, method, fit (of :data:`FITS`), change of P@1, 3, 5 (points), † (the columns in which the audit doubts one of
        the two cells).
    """
    t = _common.printed_table(6)
    wide, doubts = (
        t.pivot(index=["dataset", "method", "k"], columns="variant", values=v) for v in ("value", "doubted")
    )
    parts = []
    for variant, fit in (("isotonic-separate", "separate, isotonic"), ("platt-separate", "separate, Platt")):
        part = (wide[variant] - wide["none"]).unstack("k").rename(columns=lambda k: f"change of P@{int(k)}")
        off = (doubts[variant] | doubts["none"]).unstack("k")
        part["†"] = [", ".join(f"P@{int(k)}" for k in off if off.loc[row, k]) for row in part.index]
        parts.append(part.reset_index().assign(fit=fit))
    return pd.concat(parts, ignore_index=True)[["dataset", "method", "fit", *(f"change of P@{k}" for k in KS), "†"]]


def describe_printed(printed: pd.DataFrame, fit: str) -> str:
    """In how many of the page's cells a fit lowers P@k, without the doubted: "28 of 29"."""
    part = printed[printed["fit"] == fit]
    cells = [row[f"change of P@{k}"] for row in part.to_dict("records") for k in KS if f"P@{k}" not in row["†"]]
    return _common.describe_count(pd.Series(cells) < -1e-9)


def compare(
    measured: Mapping[tuple[str, str], Measured], columns: Sequence[str], high: str, low: str
) -> list[Difference]:
    """Of each model and column one fit's value less another's, corrected together."""
    return said.corrected(one.difference(high, low) for (_, column), one in measured.items() if column in columns)


def findings(
    found: pd.DataFrame, measured: Mapping[tuple[str, str], Measured], printed: pd.DataFrame, n_points: int
) -> list[str]:
    """What came out.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.
    measured : mapping
        From :func:`measure`.
    printed : DataFrame
        From :func:`compute_printed_changes`.
    n_points : int
        Test points.

    Returns
    -------
    list of str
    """
    places = [f"P@{k}" for k in KS]
    sentences = []
    for fit, words in (("separate, isotonic", "isotonic regression"), ("separate, Platt", "Platt scaling")):
        here = said.count(compare(measured, places, "none", fit), f"separate {words} lowers P@k")
        paper = describe_printed(printed, fit)
        sentences.append(f"Over pairs of a model and a k, {here}; in the paper's table it does so in {paper} cells.")
    changes = found[[f"change of {place}" for place in places]]
    separate = changes[found["fit"].str.startswith("separate")]
    largest, hit = separate.abs().max(axis=None), 100 / n_points
    sentences.append(
        f"The largest change of P@k by separate maps is {largest:.2f} points; one hit is {hit:.2f} of P@1."
    )
    moved = _common.describe_count((changes[found["fit"] == "joint, isotonic"] != 0).stack())
    sentences.append(f"The joint isotonic map changes P@k in {moved} cases.")
    lower = compare(measured, ["ECE@1"], "joint, isotonic", "separate, isotonic")
    claim = "separate isotonic maps have a lower ECE@1 than the joint one of all places"
    sentences.append(f"Over models, {said.count(lower, claim)}.")
    return sentences


def findings_recorded(measured: Mapping[tuple[str, str], Measured], recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of what separate isotonic maps do to P@k.

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
    fits, places = ("none", "separate, isotonic"), [f"P@{k}" for k in KS]
    found = said.corrected(
        replace(one.difference(*fits), left=f"{name}, {fits[0]}, {place}", right=f"{name}, {fits[1]}, {place}")
        for (name, place), one in measured.items()
        if place in places and set(fits) <= set(one.values)
    )
    values = {
        dataset: {
            f"{row['model']}, {row['fit']}, {place}": row[place] for row in table.to_dict("records") for place in places
        }
        for dataset, table in recorded.items()
    }
    return [said.agreement(found, values, "P@k", "pairs of no map and separate isotonic maps")]


def plot(found: pd.DataFrame, ax=None) -> Figure:
    """Left: the change of P@1, P@3 and P@5 by separate isotonic regression. Right: ECE@1 by fit.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.
    ax : array of Axes, optional
        Two.
    """
    by_fit = {fit: part.set_index("model") for fit, part in found.groupby("fit")}
    separate = by_fit["separate, isotonic"]
    at, height = np.arange(len(separate)), 1.7 + 0.33 * len(separate)
    with figures.new(width=looks.WIDE, height=height, ncols=2, sharey=True, ax=ax) as (fig, (left, right)):
        for k, shift in zip(KS, (-0.2, 0.0, 0.2), strict=True):
            change = f"change of P@{k}"
            bars = {"xerr": 2 * separate[f"{change} ±"], "elinewidth": 0.8, "linestyle": "none"}
            left.errorbar(separate[change], at + shift, label=f"P@{k}", **bars, **looks.PLACES[k].mark())
        left.axvline(0, color="0.45", linewidth=0.8, label="_guide")
        left.set(xlabel="change of precision (points)", title="separate isotonic maps")
        left.set_yticks(at, separate.index)
        left.set_ylim(len(separate) - 0.5, -0.5)
        figures.draws(left, x=tuple(f"change of P@{k}" for k in KS))
        marks = zip((*FITS, "none"), "vD<x", (looks.LEAF, looks.ROSE, looks.VIOLET, looks.GREY), strict=True)
        for (fit, mark, colour), shift in zip(marks, (-0.24, -0.08, 0.08, 0.24), strict=True):
            bars = {"xerr": 2 * by_fit[fit]["ECE@1 ±"], "elinewidth": 0.8, "linestyle": "none"}
            right.errorbar(by_fit[fit]["ECE@1"], at + shift, marker=mark, color=colour, label=fit, **bars)
        right.set(xlabel="ECE@1 (%)", title="ECE@1 by fit")
        _common.scale_errors(right)
        right.set_xlim(right=min(1.4 * found["ECE@1"].max() + 1, 150))
        figures.draws(right, x="ECE@1")
        looks.title(fig, "What separate maps change (bars: two standard errors)")
        looks.legend(fig)
    return fig
