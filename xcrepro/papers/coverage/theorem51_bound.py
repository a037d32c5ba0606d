"""Theorem 5.1 of the coverage paper by enumeration, and how far below the best choice the greedy rule can fall."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import arithmetic, decide, looks
from xcrepro.arguments import whole_number
from xcrepro.errors import ArgumentError
from xcrepro.predictions import TopK
from xcrepro.repro import figures

MOST = 200_000
"""Choices of one instance that are looked at, at most."""
BOUND = 0.5
"""What the greedy rule keeps of the best choice, at least: the objective is monotone and submodular, the rows' places are a
partition matroid (Fisher, Nemhauser and Wolsey 1978). Not in the paper."""
RULES = {
    "algorithm 1": lambda eta, k: decide.greedy_coverage(eta, k),
    "algorithm 1, 5 passes": lambda eta, k: decide.greedy_coverage(eta, k, passes=5),
    "f falls by the gain": lambda eta, k: decide.greedy_coverage(eta, k, update="gain"),
    "top k": decide.top_k,
}
"""Name -> the rule by its public call."""
_LOOKS = {
    "algorithm 1": looks.Look(looks.TEAL, "o", "-"),
    "algorithm 1, 5 passes": looks.Look(looks.INK, "s", "--"),
    "f falls by the gain": looks.Look(looks.AMBER, "^", "-."),
    "top k": looks.Look(looks.RUST, "v", ":"),
}


def _normals(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return arithmetic.normals(int(rng.integers(2**62)), 0, *shape)


FAMILIES = {
    "even": lambda rng, shape: rng.random(shape),
    "few likely": lambda rng, shape: arithmetic.betas(0.3, 1.2, shape, rng),
    "alike rows": lambda rng, shape: np.clip(rng.random(shape[1]) + 0.1 * _normals(rng, shape), 0.0, 1.0),
}
"""Name -> how an instance's probabilities are drawn."""


def check_parameters(values: Mapping[str, object]) -> None:
    """That an instance can be enumerated, with at least one draw of each."""
    for name in ("points", "labels", "instances"):
        whole_number(f"parameter {name}", values[name], 1)
    ks = values["ks"]
    if not isinstance(ks, list | tuple) or not ks or len(set(ks)) != len(ks):
        raise ArgumentError("parameter ks", "must hold numbers of labels, each once", repr(ks))
    for k in ks:
        whole_number("parameter ks", k, 1)
        if k > values["labels"]:
            raise ArgumentError("parameter ks", f"must be at most labels, {values['labels']}", k)
        n = len(list(itertools.combinations(range(values["labels"]), k))) ** values["points"]
        if n > MOST:
            do = "take fewer points or labels"
            raise ArgumentError("parameter points", f"must leave at most {MOST:,} choices to look at", f"{n:,}", do)


def choices(n: int, L: int, k: int) -> np.ndarray:
    """Every way to choose k of L labels for each of n points.

    Parameters
    ----------
    n, L, k : int

    Returns
    -------
    ndarray of int, shape (choices, n, k)
        Labels rising.
    """
    sets = np.array(list(itertools.combinations(range(L), k)))
    return sets[np.array(list(itertools.product(range(len(sets)), repeat=n)))]


def of_choices(eta: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The expected coverage of each choice by eq. 22.

    Parameters
    ----------
    eta : array, shape (n, L)
    chosen : ndarray of int, shape (choices, n, k)

    Returns
    -------
    ndarray, shape (choices,)
    """
    n, L = eta.shape
    missed = np.ones((len(chosen), L))
    at = np.arange(len(chosen))
    for i in range(n):
        for place in range(chosen.shape[2]):
            labels = chosen[:, i, place]
            missed[at, labels] *= 1 - eta[i, labels]
    return 1 - missed.mean(axis=1)


def by_outcomes(eta, chosen) -> float:
    """The expected coverage of one choice by every outcome of the labels: eq. 13, weighed by how likely it is.

    Parameters
    ----------
    eta : array, shape (n, L)
        At most 16 entries.
    chosen : array of int, shape (n, k)

    Returns
    -------
    float
    """
    eta, chosen = np.asarray(eta, float), np.asarray(chosen)
    total = 0.0
    for bits in itertools.product((0, 1), repeat=eta.size):
        y = np.array(bits).reshape(eta.shape)
        chance = np.where(y > 0, eta, 1 - eta).prod()
        covered = {int(j) for i, labels in enumerate(chosen) for j in labels if y[i, j]}
        total += chance * len(covered) / eta.shape[1]
    return float(total)


def best(eta, k: int) -> tuple[float, TopK]:
    """The Bayes classifier of theorem 5.1 by looking at every choice.

    Parameters
    ----------
    eta : array, shape (n, L)
    k : int

    Returns
    -------
    float
        The highest expected coverage.
    TopK
        A choice that has it, the first.
    """
    eta = np.asarray(eta, float)
    chosen = choices(*eta.shape, k)
    value = of_choices(eta, chosen)
    return float(value.max()), TopK.from_ids(chosen[int(value.argmax())], n_labels=eta.shape[1])


def tight(k: int) -> np.ndarray:
    """Probabilities on which algorithm 1 keeps exactly half.

    Two points: the first may have any of 2k labels, all equally likely; the second only the first k. Equal gains go to
    the lowest ids,
    so the first point takes the labels that were the second's alone.

    Parameters
    ----------
    k : int

    Returns
    -------
    ndarray, shape (2, 2k)
    """
    return np.array([[1.0] * (2 * k), [1.0] * k + [0.0] * k])


def compute_ratios(points: int, labels: int, ks: Sequence[int], instances: int, seed: int = 0) -> pd.DataFrame:
    """What each rule keeps of the best expected coverage, of every instance.

    Parameters
    ----------
    points, labels : int
        Of an instance.
    ks : sequence of int
    instances : int
        Of each family.
    seed : int

    Returns
    -------
    DataFrame
        family, k, instance, rule, kept (percent of the best expected coverage).
    """
    rows = []
    for (family, draw), k in itertools.product(FAMILIES.items(), ks):
        rng = np.random.default_rng([seed, k])
        chosen = choices(points, labels, k)
        for instance in range(instances):
            eta = draw(rng, (points, labels))
            most = of_choices(eta, chosen).max()
            for rule, decided in RULES.items():
                kept = 100 * decide.expected_coverage(eta, decided(eta, k), k)[0] / most
                rows.append((family, k, instance, rule, kept))
    return pd.DataFrame(rows, columns=["family", "k", "instance", "rule", "kept"])


def compute(ratios: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    """What each rule keeps, in short, and of the instance on which algorithm 1 keeps least.

    Parameters
    ----------
    ratios : DataFrame
        From :func:`compute_ratios`.
    ks : sequence of int

    Returns
    -------
    DataFrame
        family, k, rule, mean, least (percent of the best expected coverage), best (percent of the instances where
        nothing is lost), instances.
        The family ``"tight"`` is :func:`tight`, one instance.
    """
    rows = []
    for k in ks:
        most, _ = best(tight(k), k)
        for rule, decided in RULES.items():
            kept = 100 * decide.expected_coverage(tight(k), decided(tight(k), k), k)[0] / most
            rows.append(("tight", k, "", rule, kept))
    whole = pd.concat([ratios, pd.DataFrame(rows, columns=ratios.columns)], ignore_index=True)
    found = [
        (family, k, rule, part["kept"].mean(), part["kept"].min(), 100 * (part["kept"] > 100 - 1e-7).mean(), len(part))
        for (family, k, rule), part in whole.groupby(["family", "k", "rule"], sort=False)
    ]
    return pd.DataFrame(found, columns=["family", "k", "rule", "mean", "least", "best", "instances"])


def compute_curve(ratios: pd.DataFrame, steps: int = 50) -> pd.DataFrame:
    """How often a rule keeps at most so much: quantiles over all instances.

    Parameters
    ----------
    ratios : DataFrame
        From :func:`compute_ratios`.
    steps : int

    Returns
    -------
    DataFrame
        k, rule, share (percent of the instances), kept (what so many keep at most, percent).
    """
    at = np.linspace(0, 1, steps + 1)
    parts = [
        pd.DataFrame({"k": k, "rule": rule, "share": 100 * at, "kept": np.quantile(part["kept"], at)})
        for (k, rule), part in ratios.groupby(["k", "rule"], sort=False)
    ]
    return pd.concat(parts, ignore_index=True)


def findings(table: pd.DataFrame, gap: float) -> list[str]:
    """What came out. Enumeration is exact, so nothing here has an error but the draw of the instances.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    gap : float
        The largest difference of eq. 22 and the sum over all outcomes that was seen.

    Returns
    -------
    list of str
    """
    said = [
        f"Eq. 22 and the sum over all outcomes agree within {max(gap, 1e-15):.0e}, for every choice that was looked at."
    ]
    drawn = table[table["family"] != "tight"]
    for rule, part in drawn.groupby("rule", sort=False):
        n = part["instances"].sum()
        mean = (part["mean"] * part["instances"]).sum() / n
        best_ = (part["best"] * part["instances"]).sum() / n
        least = part["least"].min()
        said.append(
            f'Rule "{rule}": {mean:.1f} % of the best expected coverage on average over {n} instances, {least:.1f} % at '
            f"least; nothing is lost in {best_:.0f} % of them."
        )
    tight_ = table[(table["family"] == "tight") & (table["rule"] == "algorithm 1")]
    under = table[(table["rule"].str.startswith("algorithm 1")) & (table["least"] < 100 * BOUND - 1e-9)]
    said.append(
        f"Algorithm 1 keeps {', '.join(f'{one:.0f}' for one in tight_['least'])} % where it is led astray "
        f"(k = {', '.join(map(str, tight_['k']))}): the bound of {100 * BOUND:.0f} % is "
        f"{'kept everywhere and ' if under.empty else 'broken here, though it is '}"
        f"{'reached' if (tight_['least'] < 100 * BOUND + 1e-9).any() else 'not reached'}."
    )
    return said


def plot(curve: pd.DataFrame, ax=None) -> Figure:
    """What the worst so many of the instances keep, a line a rule, a panel a k; dotted: the bound.

    Parameters
    ----------
    curve : DataFrame
        From :func:`compute_curve`.
    ax : array of Axes, optional
    """
    ks = list(dict.fromkeys(curve["k"]))
    with figures.new(looks.MEDIUM, 3.4, ncols=len(ks), sharey=True, squeeze=False, ax=ax) as (fig, axes):
        for axis, k in zip(axes.flat, ks, strict=True):
            for rule, part in curve[curve["k"] == k].groupby("rule", sort=False):
                axis.plot(part["share"], part["kept"], label=rule, **{**_LOOKS[rule].line(), "marker": ""})
            axis.axhline(100 * BOUND, color="0.4", linestyle=":", label="_guide")
            lowest = min(curve["kept"].min(), 100 * BOUND)
            axis.set(title=f"k = {k}", xlabel="% of instances, worst first", ylim=(lowest - 3, 101))
            figures.draws(axis, x="share", y="kept")
        axes[0][0].set_ylabel("% of the best\nexpected coverage")
        looks.legend(fig, axes[0][0], ncols=2)
        looks.title(fig, "What each rule keeps of the best choice, found by looking at all (dotted: the greedy bound)")
        return fig
