"""Isotonic regression and likelihood: it says 0 and 1, and what turns out otherwise costs NLL its cap; maps that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import arithmetic, calibrate, looks, metrics
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import calibrated, parameters
from xcrepro.metrics.calibration import CAP
from xcrepro.papers.calibration import _common
from xcrepro.predictions import TopK
from xcrepro.repro import figures, recorded

check_parameters = parameters.check

METHODS: dict[str, calibrate.Calibrator] = {
    "isotonic": calibrate.Isotonic(),
    "isotonic, smoothed": calibrate.Isotonic(smooth=1),
    "Venn-Abers": calibrate.VennAbers(),
    "beta": calibrate.Beta(),
}
_LOOKS = {
    "none": looks.Look(looks.GREY, "x", ":"),
    "isotonic": looks.Look(looks.RUST, "o", "-"),
    "isotonic, smoothed": looks.Look(looks.AMBER, "s", "--"),
    "Venn-Abers": looks.Look(looks.TEAL, "^", "-."),
    "beta": looks.Look(looks.INK, "D", (0, (5, 1))),
}
Fits = Mapping[tuple[str, int], Mapping[str, TopK]]
"""(model, k) -> method -> the first k places calibrated by it; ``"none"`` first, as they were."""


def calibrate_all(
    ds: Dataset, tops: calibrated.Tops, ks: Sequence[int] = (1, 5)
) -> dict[tuple[str, int], dict[str, TopK]]:
    """Every map on every model, cross-fitted over ten contiguous folds of the test points.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
    ks : sequence of int

    Returns
    -------
    dict
        As :data:`Fits`.
    """
    methods = {name: {"method": one} for name, one in METHODS.items()}
    return _common.calibrate_all(ds, tops, methods, ks)


def measure(ds: Dataset, fits: Fits) -> dict[tuple[str, int], pd.DataFrame]:
    """NLL and Brier score of each two maps apart: (model, k) -> the table of :func:`xcrepro.compare`.

    Parameters
    ----------
    ds : Dataset
    fits : mapping
        Of :func:`calibrate_all`.

    Returns
    -------
    dict
    """
    return {(name, k): metrics.compare(ds.test.Y, tops, ["NLL", "Brier"], k) for (name, k), tops in fits.items()}


def _count(measured: Mapping, low: str, high: str, claim: str, metric: str) -> str:
    """In how many cases one map is clearly above another, corrected together (Holm)."""
    tables = [one[(one["metric"] == metric) & one["left"].isin([low, high]) & one["right"].isin([low, high])]
              for one in measured.values()]  # fmt: skip
    rows = pd.concat(tables)
    value = rows["value"].where(rows["left"] == high, -rows["value"]).to_numpy()
    clear = metrics.holm(rows["p raw"]) < 0.05
    above, below = int((clear & (value > 0)).sum()), int((clear & (value < 0)).sum())
    text = f"{claim}: clearly so in {above} of {len(value)} comparisons"
    text += f", clearly the other way round in {below}" if below else ""
    rest = len(value) - above - below
    return text + (f", not clear in {rest}" if rest else "")


def compute(ds: Dataset, fits: Fits) -> pd.DataFrame:
    """NLL of every map, and what of it is the price of having been sure.

    Parameters
    ----------
    ds : Dataset
    fits : mapping
        Of :func:`calibrate_all`.

    Returns
    -------
    DataFrame
        model, k, method, NLL (nats), sure (percent of the scores that are 0 or 1), wrong (how many of these were), price (nats
        of the NLL that these cost, the cap of 100 each), rest (NLL without the price), ECE, ECE corrected with low and high
        (without the noise of its hits), Brier (percent).
    """
    rows = []
    for (name, k), tops in fits.items():
        for method, top in tops.items():
            values = calibrated.measure(ds, top, k, ("NLL", "ECE", *calibrated.CORRECTED, "Brier"))
            scores, hits = metrics.pairs(ds.test.Y, top)
            sure = (scores == 0) | (scores == 1)
            wrong = int((sure & (hits != (scores == 1))).sum())
            of_ends = {"sure": 100 * sure.mean(), "wrong": wrong, "price": wrong * CAP / scores.size}
            nll = values.pop("NLL")
            rest = {"rest": nll - of_ends["price"]}
            rows.append({"model": name, "k": k, "method": method, "NLL": nll, **of_ends, **rest, **values})
    return pd.DataFrame(rows)


def compute_sizes(
    points: Sequence[int] = (100, 300, 1000, 3000, 10_000), repeats: int = 30, seed: int = 0
) -> pd.DataFrame:
    """NLL above the least possible one, by how many points there are; every probability is known.

    One score a point, beta-distributed with mean 0.6; its log-odds are half those of the probability: too timid.

    Parameters
    ----------
    points : sequence of int
    repeats, seed : int

    Returns
    -------
    DataFrame
        points, method, regret (mean over repeats of the NLL less that of the probabilities themselves, nats), ± (its standard
        error).
    """
    rng = np.random.default_rng(seed)
    rows = []
    for n in points:
        found: dict[str, list[float]] = {}
        for _ in range(repeats):
            p = np.clip(arithmetic.betas(1.2, 0.8, n, rng), 1e-6, 1 - 1e-6)
            hits, odds = rng.random(n) < p, np.sqrt(p / (1 - p))
            scores = odds / (1 + odds)
            least = metrics.nll(p, hits)
            found.setdefault("none", []).append(metrics.nll(scores, hits) - least)
            for name, one in METHODS.items():
                found.setdefault(name, []).append(metrics.nll(calibrate.cross_fit(scores, hits, one, 10), hits) - least)
        for name, values in found.items():
            rows.append((n, name, np.mean(values), np.std(values, ddof=1) / np.sqrt(repeats)))
    return pd.DataFrame(rows, columns=["points", "method", "regret", "±"])


def compute_recorded() -> pd.DataFrame:
    """How often isotonic regression and beta calibration raised NLL on real data, as this notebook's runs there have it.

    Returns
    -------
    DataFrame
        dataset, cases (model and k), isotonic raised, beta raised, worst (the greatest rise by isotonic regression, nats).
    """
    rows = []
    for dataset, part in recorded.frames("calibration/isotonic_and_nll").groupby("dataset", sort=False):
        nll = part.pivot(index=["model", "k"], columns="method", values="NLL")
        rise = nll.sub(nll["none"], axis=0)
        raised = (int((rise[name] > 0).sum()) for name in ("isotonic", "beta"))
        rows.append((dataset, len(nll), *raised, rise["isotonic"].max()))
    return pd.DataFrame(rows, columns=["dataset", "cases", "isotonic raised", "beta raised", "worst"])


def findings(table: pd.DataFrame, measured: Mapping, sizes: pd.DataFrame, real: pd.DataFrame) -> list[str]:
    """What comes out.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`.
    measured : mapping
        Of :func:`measure`.
    sizes, real : DataFrame
        Of :func:`compute_sizes`, :func:`compute_recorded`.

    Returns
    -------
    list of str
    """

    def compared(low: str, high: str, claim: str, metric: str = "NLL") -> str:
        text = _count(measured, low, high, claim, metric)
        return text[0].upper() + text[1:]

    wide = table.pivot(index=["model", "k"], columns="method", values=["NLL", "rest"])
    rise, rest = (wide[name, "isotonic"] - wide["NLL", "none"] for name in ("NLL", "rest"))
    most = max(rise.max(), 0)
    sentences = [
        f"{compared('none', 'isotonic', 'isotonic regression raises NLL')}.",
        f"As measured it rises in {_common.describe_count(rise > 0)}, by "
        f"{'less than 0.001' if most < 0.0005 else f'up to {most:.3f}'} nats; without the pairs that had 0 or 1 and turned "
        f"out otherwise, in {_common.describe_count(rest > 0)}.",
    ]
    for name, words in (("isotonic, smoothed", "smoothed isotonic regression"), ("Venn-Abers", "Venn-Abers")):
        sentences.append(f"{compared(name, 'isotonic', f'{words} has a lower NLL than isotonic regression')}.")
    sentences.append(f"{compared('beta', 'Venn-Abers', 'beta calibration has a lower NLL than Venn-Abers')}.")
    higher = "smoothed isotonic regression has a higher Brier score than isotonic regression"
    sentences.append(f"{compared('isotonic', 'isotonic, smoothed', higher, 'Brier')}.")
    if len(real):
        cases, raised, beta = (int(real[name].sum()) for name in ("cases", "isotonic raised", "beta raised"))
        sentences.append(
            f"On real data as recorded isotonic regression raised NLL in {raised} of {cases} cases, beta calibration in {beta}."
        )
    regret = sizes.pivot(index="points", columns="method", values="regret")
    least, most = regret.index.min(), regret.index.max()
    best = regret.drop(columns="none").idxmin(axis=1)
    sentences.append(
        f"Where every probability is known, isotonic regression loses {regret.loc[least, 'isotonic']:.2f} nats to the right "
        f"probabilities on {least} points and {regret.loc[most, 'isotonic']:.3f} on {most:,}; the map that loses least is "
        f"{best[least]} on {least} ({regret.loc[least].min():.3f}) and {best[most]} on {most:,} "
        f"({regret.loc[most, best[most]]:.4f})."
    )
    return sentences


def plot(sizes: pd.DataFrame, ax=None) -> Figure:
    """Regret in NLL against the number of points, a line a map.

    Parameters
    ----------
    sizes : DataFrame
        Of :func:`compute_sizes`.
    ax : Axes, optional
        The caller's own.
    """
    with figures.new(looks.MEDIUM, 3.8, ax=ax) as (fig, ax):
        for name, part in sizes.groupby("method", sort=False):
            ax.plot(part["points"], part["regret"], label=name, **_LOOKS[name].line())
        figures.draws(ax, x="points", y="regret")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set(xlabel="points, one score each", ylabel="NLL above the least possible (nats)")
        looks.title(fig, "What each map loses in NLL, by how much it has to learn from")
        looks.legend(fig, ax)
        return fig
