"""Label counts as a twin has them, or of the small tables in the project; and the power law that fits such counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from xcrepro.core import arithmetic
from xcrepro.core.data import registry
from xcrepro.core.errors import ArgumentError
from xcrepro.models.twin import expected_observed_counts


@dataclass(frozen=True)
class Tail:
    """Points per label (L,), by label id, and whose they are."""

    name: str
    counts: np.ndarray


def drawn(dataset: str, scale: float = 1.0, seed: int = 0) -> Tail:
    """Label counts as a twin has them, drawn alone: no points, so that a second does for the largest dataset.

    Each count is Poisson, about what is expected of the twin; a label that comes to no point is none. A twin's own
    counts come of two draws of its points, so it has up to some percent more or fewer labels than this.
    """
    counts = arithmetic.poissons(seed, expected_observed_counts(dataset, scale))
    return Tail(registry.get(dataset).printed_name + registry.SYNTHETIC, counts[counts > 0])


def counted(dataset: str) -> Tail:
    """The real counts that come with the project: EURLex-4K (all points) or Bibtex (train points)."""
    table = registry.label_counts(dataset)
    column = "train" if "train" in table else "count"
    return Tail(registry.get(dataset).printed_name, table[column].to_numpy())


@dataclass(frozen=True)
class PowerLaw:
    """A power law: the share of labels with n points goes as n^-exponent. And how far the counts are from it.

    ``distance`` is Kolmogorov and Smirnov's. ``p`` is the share of label sets drawn from the law that are as far from
    their own fit, so it is small if the counts follow no power law.
    """

    exponent: float
    distance: float
    p: float


def power_law(counts, n_points: int, draws: int = 200, seed: int = 0) -> PowerLaw:
    """The power law that fits label counts best, and its test by parametric bootstrap (Clauset, Shalizi and Newman 2009).

    The law begins at the smallest count that occurs and ends at ``n_points``, because no label can have more.
    """
    counts = np.asarray(counts, np.int64)
    counts = counts[counts > 0]
    if np.unique(counts).size < 2 or counts.max() > n_points:
        rule = f"must have two different counts or more, of at most {n_points} points"
        raise ArgumentError("counts", rule, f"{counts.min(initial=0)} to {counts.max(initial=0)}")
    sizes = np.arange(counts.min(), n_points + 1)
    logs = arithmetic.log(sizes.astype(np.float64))
    # The likelihood is largest where the law's mean logarithm is that of the counts; it falls as the exponent grows.
    exponents = np.linspace(0.5, 8, 1501)
    means = np.array([(law * logs).sum() for law in (_law(logs, a) for a in exponents)])
    rng = np.random.default_rng(seed)

    def fitted(times: np.ndarray) -> tuple[float, float, np.ndarray]:
        a = float(np.interp(-(times * logs).sum() / times.sum(), -means, exponents))
        below = np.cumsum(_law(logs, a))
        here = times > 0
        return a, float(np.abs(np.cumsum(times)[here] / times.sum() - below[here]).max()), below

    def tallied(labels: np.ndarray) -> np.ndarray:
        return np.bincount(np.minimum(labels, sizes.size - 1), minlength=sizes.size)

    exponent, distance, below = fitted(tallied(counts - counts.min()))
    drawn = (tallied(np.searchsorted(below, rng.random(counts.size), side="right")) for _ in range(draws))
    far = sum(fitted(times)[1] >= distance for times in drawn)
    return PowerLaw(exponent, distance, (1 + far) / (1 + draws))


def _law(logs: np.ndarray, exponent: float) -> np.ndarray:
    shares = np.asarray(arithmetic.exp(-exponent * (logs - logs[0])))
    return shares / shares.sum()
