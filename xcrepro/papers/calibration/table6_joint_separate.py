"""Table 6: one calibration map for all places of the top k, or one for each."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import calibrate, looks
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import calibrated
from xcrepro.inputs.calibrated import KS
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures

FITS = {
    "joint, isotonic": {"method": "isotonic"},
    "separate, isotonic": {"method": "isotonic", "separate": True},
    "separate, Platt": {"method": "platt", "separate": True},
}
"""Fit -> keywords of :func:`xcrepro.calibrate.cross_fit_top`."""


def compute(ds: Dataset, tops: calibrated.Tops, places: int = 10) -> pd.DataFrame:
    """Table 6 for our models.

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
    DataFrame
        model, fit (``"none"``, then :data:`FITS`), P@1, P@3, P@5, ECE@1, ECE@3, ECE@5 (percent), and ``change of
        P@k``: P@k less that of "none", points.
    """
    rows = []
    for name, top in tops.items():
        before = calibrated.linked(top, places, name)
        fits = {fit: calibrate.cross_fit_top(ds.test.Y, before, **how) for fit, how in FITS.items()}
        for fit, after in {"none": before, **fits}.items():
            values = {k: calibrated.measure(ds, after, k, ("P", "ECE")) for k in KS}
            rows.append({"model": name, "fit": fit} | {f"{m}@{k}": values[k][m] for m in ("P", "ECE") for k in KS})
    found = pd.DataFrame(rows)
    for k in KS:
        found[f"change of P@{k}"] = found[f"P@{k}"] - found.groupby("model")[f"P@{k}"].transform("first")
    return found


def check(found: pd.DataFrame) -> pd.DataFrame:
    """Precision and the large errors."""
    return _common.hide_small_errors(found.drop(columns=[f"change of P@{k}" for k in KS]))


def compute_printed_changes() -> pd.DataFrame:
    """The paper's table 6 as changes of P@k by separate calibration.

    Returns
    -------
    DataFrame
        dataset, method, fit (of :data:`FITS`), change of P@1, 3, 5 (points).
    """
    wide = _common.printed_table(6).pivot(index=["dataset", "method", "k"], columns="variant", values="value")
    parts = []
    for variant, fit in (("isotonic-separate", "separate, isotonic"), ("platt-separate", "separate, Platt")):
        part = (wide[variant] - wide["none"]).unstack("k")
        parts.append(part.rename(columns=lambda k: f"change of P@{int(k)}").reset_index().assign(fit=fit))
    return pd.concat(parts, ignore_index=True)[["dataset", "method", "fit", *(f"change of P@{k}" for k in KS)]]


def compute_losses(changes: pd.DataFrame) -> pd.DataFrame:
    """How often a fit lowers P@k, and by how much.

    Parameters
    ----------
    changes : DataFrame
        With the columns fit and ``change of P@k`` (points), as from :func:`compute` or
        :func:`compute_printed_changes`; rows of the fit "none" are left out.

    Returns
    -------
    DataFrame
        fit, then for each k ``lower P@k`` (such as "5 of 6") and ``mean P@k`` (the mean change, points).
    """
    rows = []
    for fit, part in changes[changes["fit"] != "none"].groupby("fit", sort=False):
        row = {"fit": fit}
        for k in KS:
            change = part[f"change of P@{k}"]
            row |= {f"lower P@{k}": _common.describe_count(change < -1e-9), f"mean P@{k}": change.mean()}
        rows.append(row)
    return pd.DataFrame(rows)


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
    separate, joint = by_fit["separate, isotonic"], by_fit["joint, isotonic"]
    at = np.arange(len(separate))
    with figures.new(width=looks.WIDE, height=3.8, ncols=2, sharey=True, ax=ax) as (fig, (left, right)):
        for k, shift in zip(KS, (-0.15, 0.0, 0.15), strict=True):
            mark = looks.PLACES[k].mark()
            left.plot(separate[f"change of P@{k}"], at + shift, linestyle="none", label=f"P@{k}", **mark)
        left.axvline(0, color="0.45", linewidth=0.8, label="_guide")
        lower = _common.describe_count(separate["change of P@1"] < -1e-9)
        left.set(xlabel="change of precision (points)", title=f"Separate maps lower P@1 of {lower} models")
        left.set_yticks(at, separate.index)
        left.invert_yaxis()
        figures.draws(left, x=tuple(f"change of P@{k}" for k in KS))
        for fit, mark in zip((*FITS, "none"), "os^x", strict=True):
            right.plot(by_fit[fit]["ECE@1"], at, mark, label=fit)
        lower = _common.describe_count(separate["ECE@1"] < joint["ECE@1"])
        right.set(xlabel="ECE@1 (%)", title=f"and have the lower ECE@1 for {lower}")
        _common.scale_errors(right)
        figures.draws(right, x="ECE@1")
        left.legend()
        right.legend()
    return fig
