"""The noise floor: the ECE that a perfectly calibrated model would print beside the paper's table 7, and an ECE without it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import optimize

from xcrepro import arithmetic, calibrate, distributions, looks, metrics, published
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import calibrated, parameters
from xcrepro.metrics.calibration import BINS
from xcrepro.papers.calibration import _common
from xcrepro.published.checks import rounding
from xcrepro.repro import figures

check_parameters = parameters.check

SHAPES = ("beta", "logit-normal", "three levels")
"""Of the scores: families of two parameters, set so that the mean is P@k and the mean of s (1 - s) is the Brier score, as it
is for a perfectly calibrated model. ``"three levels"``: scores of 0, 1 and one between them, the least noisy of all."""


def bins_of(shape: str, mean: float, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """What share of the scores lies in each tenth, and the mean there of s (1 - s).

    Parameters
    ----------
    shape : str
        One of :data:`SHAPES`.
    mean, noise : float
        Of s and of s (1 - s), as fractions; the latter below mean (1 - mean).

    Returns
    -------
    share, variance : ndarray of float64, shape (10,)
        ``variance`` is 0 where the share is.

    Examples
    --------
    >>> share, variance = bins_of("beta", 0.5, 1 / 6)       # uniform scores
    >>> share.round(3).tolist()[:3], float((share * variance).sum().round(6))
    ([0.1, 0.1, 0.1], 0.166667)
    """
    noise = min(noise, 0.999 * mean * (1 - mean))
    edges = np.linspace(0.0, 1.0, BINS + 1)
    if shape == "beta":
        size = noise / (mean * (1 - mean) - noise)  # a + b
        a, b = mean * size, (1 - mean) * size
        share = np.diff(distributions.beta(a, b, edges))
        spread = np.diff(distributions.beta(a + 1, b + 1, edges)) * a * b / (size * (size + 1))
    else:
        if shape == "logit-normal":
            values = _logit_normal(mean, noise)
            weights = np.full(values.size, 1 / values.size)
        else:
            # As near to one half, where a score is noisiest, as the mean allows; the rest is sure.
            level = min(max(0.5, noise / (1 - mean)), 1 - noise / mean)
            between = noise / (level * (1 - level))
            values = np.array([0.0, level, 1.0])
            weights = np.array([1 - between - (mean - between * level), between, mean - between * level])
        at = np.minimum((values * BINS).astype(int), BINS - 1)
        share = np.bincount(at, weights, BINS)
        spread = np.bincount(at, weights * values * (1 - values), BINS)
    return share, np.divide(spread, share, out=np.zeros(BINS), where=share > 0)


def _logit_normal(mean: float, noise: float) -> np.ndarray:
    """4,001 equally likely scores, normal in their log-odds."""
    z = distributions.normal_quantile((np.arange(4001) + 0.5) / 4001)

    def off(theta: np.ndarray) -> list[float]:
        s = arithmetic.sigmoid(theta[0] + arithmetic.exp(theta[1]) * z)
        return [s.mean() - mean, (s * (1 - s)).mean() - noise]

    start = [arithmetic.log(mean / (1 - mean)), 0.5]
    theta = distributions.rounded(optimize.least_squares(off, start, xtol=1e-12, ftol=1e-12, gtol=1e-12).x)
    return arithmetic.sigmoid(theta[0] + arithmetic.exp(theta[1]) * z)


def draw(shape: str, mean: float, noise: float, pairs: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """ECE of a perfectly calibrated model, drawn: the gap of each bin is normal, as a mean of many hits is.

    Parameters
    ----------
    shape, mean, noise
        As for :func:`bins_of`.
    pairs : int
        Test points times k.
    draws : int
    rng : Generator

    Returns
    -------
    ndarray of float64, shape (draws,)
        Fractions.
    """
    share, variance = bins_of(shape, mean, noise)
    gaps = arithmetic.normals(int(rng.integers(2**62)), 0, draws, BINS) * np.sqrt(share * variance / pairs)
    return np.abs(gaps).sum(axis=1)


def load_cells() -> pd.DataFrame:
    """Table 7 after isotonic regression, with what the simulation needs.

    Returns
    -------
    DataFrame
        dataset, method, k, n (test points, the paper's), printed (ECE, a text), doubted, P, Brier (percent). P is the paper's
        own (table 6), else the page's for method and dataset, else, or where it contradicts the Brier score, the median of the
        page's at that k; a doubted Brier score is the median of the others.
    """
    table = _common.printed_table(7)
    table = table[(table["variant"] == "isotonic") & (table["printed"] != "")]
    keys = ["dataset", "method", "k"]
    brier = table[(table["metric"] == "Brier") & ~table["doubted"]].set_index(keys)["on page"]
    own = published.find(source="calibration:table6", metric="P").query("variant == 'none'").set_index(keys)["value"]
    page = (
        published.find(source="xcrepo", metric="P")
        .dropna(subset=["value"])
        .drop_duplicates(keys)
        .set_index(keys)["value"]
    )
    rows = []
    for cell in table[table["metric"] == "ECE"].itertuples():
        key = (cell.dataset, cell.method, cell.k)
        n = registry.get(cell.dataset).published["calibration:table3"]["n_test"]
        p = own.get(key, page.get(key, np.nan))
        noise = brier.get(key, np.nan)
        rows.append((*key, n, cell.printed, cell.doubted, p, noise))
    found = pd.DataFrame(rows, columns=[*keys, "n", "printed", "doubted", "P", "Brier"])
    # Averages of s (1 - s) are at most P (1 - P): where they nearly are, the page's P is another run's.
    shares = found["P"] / 100
    found["P"] = found["P"].where(found["Brier"].isna() | (0.95 * shares * (1 - shares) > found["Brier"] / 100))
    for name, every in (("P", page), ("Brier", brier)):
        middle = every.groupby(level=["dataset", "k"]).median()
        missing = found[name].isna()
        found.loc[missing, name] = [
            middle[dataset, k] for dataset, _, k in found.loc[missing, keys].itertuples(index=False)
        ]
    return found


def compute(cells: pd.DataFrame, draws: int = 2000, seed: int = 0, shape: str = "beta") -> pd.DataFrame:
    """Each printed ECE beside what a perfectly calibrated model would print.

    Parameters
    ----------
    cells : DataFrame
        Of :func:`load_cells`.
    draws, seed : int
    shape : str
        Of the scores, :data:`SHAPES`.

    Returns
    -------
    DataFrame
        ``cells`` with floor (the mean), low, high (2.5 and 97.5 %), least (of all draws), in points of percent, and verdict:
        ``"above"`` or ``"below"`` where all that rounds to the printed number is above high, below low; ``"below all"``
        where it is below every draw; else ``"within"``.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for cell in cells.itertuples():
        drawn = 100 * draw(shape, cell.P / 100, cell.Brier / 100, cell.n * cell.k, draws, rng)
        low, high = np.quantile(drawn, [0.025, 0.975])
        lower, upper = rounding(cell.printed)
        verdict = "above" if lower > high else "within"
        if upper < low:
            verdict = "below all" if upper < drawn.min() else "below"
        rows.append((drawn.mean(), low, high, drawn.min(), verdict))
    return pd.concat([cells, pd.DataFrame(rows, columns=["floor", "low", "high", "least", "verdict"])], axis=1)


def compute_shapes(cells: pd.DataFrame, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """How many cells get each verdict, by the shape of the scores.

    Parameters
    ----------
    cells, draws, seed
        As for :func:`compute`.

    Returns
    -------
    DataFrame
        shape, above, within, below, below all, floor (the mean of the cells' floors, points).
    """
    rows = []
    for shape in SHAPES:
        found = compute(cells, draws, seed, shape)
        counts = found["verdict"].value_counts().reindex(["above", "within", "below", "below all"], fill_value=0)
        rows.append((shape, *counts, found["floor"].mean()))
    return pd.DataFrame(rows, columns=["shape", "above", "within", "below", "below all", "floor"])


def compute_cross_fitting(
    points: Sequence[int] = (1000, 4000, 16000), repeats: int = 20, seed: int = 0
) -> pd.DataFrame:
    """Why a cell can lie below the floor: isotonic regression cross-fitted on the test set, where every probability is known.

    Scores are beta-distributed (mean 0.6, mean s (1 - s) 0.12) and right. Ten contiguous folds, as the paper's; or a map
    that is fitted to as many other points.

    Parameters
    ----------
    points : sequence of int
    repeats : int
    seed : int

    Returns
    -------
    DataFrame
        points, map (``"none"``, ``"cross-fitted"``, ``"other points"``), ECE (mean over repeats), its standard error (±), true
        (the mean ECE against the known probabilities), floor; points of percent.
    """
    rng = np.random.default_rng(seed)
    size = 0.12 / (0.24 - 0.12)
    rows = []
    for n in points:
        found = {"none": [], "cross-fitted": [], "other points": []}
        for _ in range(repeats):
            p, other = (arithmetic.betas(0.6 * size, 0.4 * size, n, rng) for _ in range(2))
            hits, seen = rng.random(n) < p, rng.random(n) < other
            maps = {
                "none": p,
                "cross-fitted": calibrate.cross_fit(p, hits, "isotonic", 10),
                "other points": calibrate.Isotonic().fit(other, seen).predict(p),
            }
            for name, s in maps.items():
                one = metrics.corrected_ece(s, hits)
                found[name].append((one.ece, calibrated.expected_error(s, p), one.floor))
        for name, values in found.items():
            values = 100 * np.array(values)
            error = values[:, 0].std(ddof=1) / np.sqrt(repeats)
            rows.append((n, name, values[:, 0].mean(), error, values[:, 1].mean(), values[:, 2].mean()))
    return pd.DataFrame(rows, columns=["points", "map", "ECE", "ECE ±", "true", "floor"])


def compute_validation(points: int = 4000, repeats: int = 100, seed: int = 0) -> pd.DataFrame:
    """The corrected ECE where the truth is known: scores too high by a factor.

    Parameters
    ----------
    points, repeats, seed : int

    Returns
    -------
    DataFrame
        too high by (percent of the score), true, ECE, corrected (means over repeats, points of percent), within (share of 95 %
        intervals that hold the truth, percent).
    """
    rng = np.random.default_rng(seed)
    rows = []
    for off in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2):
        scores = arithmetic.betas(0.6, 0.4, points, rng)
        right = scores * (1 - off)
        true = 100 * calibrated.expected_error(scores, right)
        found = 100 * np.array([metrics.corrected_ece(scores, rng.random(points) < right) for _ in range(repeats)])
        within = 100 * np.mean((found[:, 3] <= true + 1e-9) & (found[:, 4] >= true - 1e-9))
        rows.append((100 * off, true, found[:, 0].mean(), found[:, 2].mean(), within))
    return pd.DataFrame(rows, columns=["too high by", "true", "ECE", "corrected", "within"])


def compute_models(ds: Dataset, tops: calibrated.Tops, ks: Sequence[int] = (1, 5)) -> pd.DataFrame:
    """ECE@k of models before and after isotonic regression, with its floor, what is left, and an interval.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
    ks : sequence of int

    Returns
    -------
    DataFrame
        model, k, state (before, after), ECE, floor, corrected, low, high, true (against a twin's probabilities, else NaN), in
        points of percent.
    """
    rows = []
    for (name, k), pair in calibrated.before_after(ds, tops, ks).items():
        for state, top in zip(calibrated.STATES, pair, strict=True):
            values = 100 * np.array(metrics.corrected_ece(ds.test.Y, top, k))
            rows.append((name, k, state, *values, 100 * calibrated.true_error(ds, top)))
    return pd.DataFrame(rows, columns=["model", "k", "state", "ECE", "floor", "corrected", "low", "high", "true"])


def findings(
    found: pd.DataFrame, shapes: pd.DataFrame, folds: pd.DataFrame, valid: pd.DataFrame, models: pd.DataFrame
) -> list[str]:
    """What comes out.

    Parameters
    ----------
    found, shapes, folds, valid, models : DataFrame
        Of :func:`compute`, :func:`compute_shapes`, :func:`compute_cross_fitting`, :func:`compute_validation` and
        :func:`compute_models`.

    Returns
    -------
    list of str
    """
    counts = found["verdict"].value_counts()
    above, under = counts.get("above", 0), counts.get("below all", 0)
    said = [
        f"Of {len(found)} ECE cells after isotonic regression {len(found) - above} are not above what a perfectly calibrated "
        f"model would print on as many points; {under} lie below every draw (beta-distributed scores)."
    ]
    rest = shapes[shapes["shape"] != "beta"]
    if len(rest):
        texts = [f"{row['shape']} {len(found) - row['above']} and {row['below all']}" for _, row in rest.iterrows()]
        said.append(f"With other shapes of the scores: {'; '.join(texts)}.")
    wide = folds.pivot(index="points", columns="map", values="ECE")
    ratio = wide["cross-fitted"] / wide["none"]
    true = folds[folds["map"] == "cross-fitted"]
    said.append(
        f"Where every probability is known and right, isotonic regression cross-fitted on the test set prints "
        f"{100 * ratio.min():.0f} to {100 * ratio.max():.0f} % of the ECE of the right probabilities themselves, though it is "
        f"{true['true'].min():.1f} to {true['true'].max():.1f} points off them; fitted on other points it prints "
        f"{100 * (wide['other points'] / wide['none']).min():.0f} % and more."
    )
    none = valid[valid["too high by"] == 0].iloc[0]
    said.append(
        f"The corrected ECE: {none['corrected']:.2f} in place of {none['ECE']:.2f} points where the truth is 0; with an error, "
        f"at most {(valid['corrected'] - valid['true'])[1:].abs().max():.2f} from the truth on average (the ECE: "
        f"{(valid['ECE'] - valid['true'])[1:].abs().max():.2f}); 95 % intervals hold it in {valid['within'].min():.0f} to "
        f"{valid['within'].max():.0f} % of the draws."
    )
    for state, part in models.groupby("state", sort=False):
        none, under = part["low"] == 0, part["ECE"] < part["floor"]
        text = f"{state.capitalize()} isotonic regression {_common.describe_count(none)} intervals of a model and a k hold 0; "
        text += f"ECEs below their floor: {under.sum()}"
        if part["true"].notna().all():
            holds = part["true"].between(part["low"], part["high"])
            text += (
                f"; intervals that hold the error against the twin's own probabilities: {_common.describe_count(holds)}"
            )
        said.append(f"{text}.")
    return said


def plot(found: pd.DataFrame, ax=None) -> Figure:
    """Each printed ECE against its floor, with the range of 95 % of the draws.

    Parameters
    ----------
    found : DataFrame
        Of :func:`compute`.
    ax : Axes, optional
        The caller's own.
    """
    colours = {"above": looks.RUST, "within": looks.GREY, "below": looks.SKY, "below all": looks.TEAL}
    marks = {"above": "^", "within": "o", "below": "v", "below all": "D"}
    datasets = list(dict.fromkeys(found["dataset"]))
    order = found.assign(at=found["dataset"].map(datasets.index)).sort_values(["at", "k", "method"], kind="stable")
    order = order.reset_index(drop=True)
    with figures.new(looks.PAGE, 4.2, ax=ax) as (fig, ax):
        ax.vlines(
            order.index, order["low"], order["high"], color=looks.AMBER, linewidth=4, alpha=0.5, label="_guide: 95 %"
        )
        for verdict, colour in colours.items():
            part = order[order["verdict"] == verdict]
            if len(part):
                values = pd.to_numeric(part["printed"])
                ax.scatter(part.index, values, color=colour, marker=marks[verdict], s=22, label=verdict, zorder=3)
        figures.draws(ax, y=["printed", "low", "high"])
        ax.set_yscale("log")
        ax.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2], ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"])
        starts = [int(order.index[order["dataset"] == one].min()) for one in datasets]
        ax.set_xticks(starts, datasets, ha="left")
        ax.set_ylabel("ECE@k (%)")
        looks.title(
            fig, "Printed ECE@k after isotonic regression; bars: 95 % of what a perfectly calibrated model would print"
        )
        looks.legend(fig, ax)
        return fig
