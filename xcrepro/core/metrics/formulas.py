"""What the list of metrics makes of folds: the formulas that take more than a line there."""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, distributions
from xcrepro.core.accumulators.labels import HitLabels
from xcrepro.core.accumulators.pairs import COUNT, HITS, SCORE, SQUARE, Pairs
from xcrepro.core.accumulators.scores import gap_error
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import labelwise as label_kernel
from xcrepro.core.truth import Truth

# ------------------------------------------------------------------------------------------------------ calibration


class CorrectedECE(NamedTuple):
    """What is left of an ECE when the noise of few hits is taken off; all fractions.

    Attributes
    ----------
    ece : float
        As measured (:func:`xcrepro.metrics.ece`).
    floor : float
        What a perfectly calibrated model with these scores would print on average.
    corrected : float
        The ECE less what noise adds to it.
    low, high : float
        An interval for the error without noise.
    """

    ece: float
    floor: float
    corrected: float
    low: float
    high: float


class BrierParts(NamedTuple):
    """Brier = uncertainty - resolution + reliability + within_variance - within_covariance."""

    uncertainty: float
    resolution: float
    reliability: float
    within_variance: float = 0.0
    within_covariance: float = 0.0

    @property
    def brier(self) -> float:
        """The parts put together."""
        return self.uncertainty - self.resolution + self.reliability + self.within_variance - self.within_covariance


def check_any(pairs: Pairs) -> Pairs:
    """Refuse what holds no pair."""
    if not pairs.n:
        raise ArgumentError("top", "must hold at least one prediction", "none")
    return pairs


def brier_of(pairs: Pairs) -> float:
    """The Brier score of sums."""
    return pairs.squared_error / pairs.n


def nll_of(pairs: Pairs) -> float:
    """The NLL of sums."""
    return pairs.log_loss / pairs.n


def decomposition(pairs: Pairs) -> BrierParts:
    """The parts of the Brier score of sums, with their bins."""
    n, hits, score, square, both = pairs.table[:, pairs.table[COUNT] > 0]
    p = score / n
    within = (square - score * p).sum() / pairs.n, 2.0 * (both - hits * p).sum() / pairs.n
    return brier_parts(p, hits / n, n / pairs.n, pairs.hits / pairs.n, *map(float, within))


def brier_parts(p: np.ndarray, y: np.ndarray, weight: np.ndarray, base: float, *within: float) -> BrierParts:
    """Of groups with mean scores ``p``, mean hits ``y`` and these shares of the pairs, of which ``base`` are hits."""
    resolution, reliability = ((weight * (of - y) ** 2).sum() for of in (base, p))
    return BrierParts(float(base * (1.0 - base)), float(resolution), float(reliability), *within)


def binned_error(table: np.ndarray, norm: str = "l1", half: str | None = None, debias: bool = False) -> float:
    """See :func:`xcrepro.metrics.ece`; of ``table``, that of :class:`~xcrepro.core.accumulators.pairs.Pairs`, COUNT, HITS,
    SCORE."""
    return gap_error(table[COUNT], table[HITS], table[SCORE], norm, half, debias)


def floor_of(table: np.ndarray) -> float:
    """The floor of :func:`xcrepro.metrics.corrected_ece`; ``table`` is that of
    :class:`xcrepro.core.accumulators.pairs.Pairs`."""
    noise = np.sqrt(np.maximum(table[SCORE] - table[SQUARE], 0.0))  # n_b times the standard deviation of the bin's gap
    return float(np.sqrt(2.0 / np.pi) * noise.sum() / table[COUNT].sum())


def corrected_of(table: np.ndarray, confidence_level: float | None = None) -> CorrectedECE:
    """See :func:`xcrepro.metrics.corrected_ece`; without ``confidence_level`` the ends of the interval are NaN."""
    error, floor = binned_error(table), floor_of(table)
    z = np.nan if confidence_level is None else distributions.normal_quantile((1.0 + confidence_level) / 2.0)
    table = table[:, table[COUNT] > 0]
    low, corrected, high = (
        np.nan if np.isnan(level) else _without_noise(table, error, level) for level in (z, 0.0, -z)
    )
    return CorrectedECE(error, floor, corrected, low, high)


def _without_noise(table: np.ndarray, error: float, level: float) -> float:
    """t times the measured ECE, for the t with which that is so many standard deviations above its expectation; by halving."""
    n, hits, score = table[COUNT], table[HITS], table[SCORE]
    weight, gap, share = n / n.sum(), np.abs(score - hits) / n, (hits + score / n) / (n + 1.0)
    spread = np.sqrt(np.maximum(share * (1.0 - share) / n, 1e-300))  # of the mean hit, drawn a little to the mean score

    def off(t: float) -> float:
        """The measured ECE less what true gaps t times the measured ones lead to expect, in standard deviations."""
        x = t * gap / spread
        mean = spread * (
            np.sqrt(2.0 / np.pi) * arithmetic.exp(-0.5 * x**2) + x * (1.0 - 2.0 * distributions.normal(-x))
        )
        variance = np.maximum((t * gap) ** 2 + spread**2 - mean**2, 0.0)
        return float((error - (weight * mean).sum()) / math.sqrt((weight**2 * variance).sum() + 1e-300))

    if off(0.0) <= level:
        return 0.0
    low, high = 0.0, 1.0
    while off(high) > level and high < 2.0**40:
        low, high = high, 2.0 * high
    for _ in range(45):
        middle = (low + high) / 2.0
        low, high = (middle, high) if off(middle) > level else (low, middle)
    return min(low * error, 1.0)


# --------------------------------------------------------------------------------------------------------- coverage


def covered_of_reachable(hit: HitLabels, truths: list[Truth]) -> np.ndarray:
    """Labels covered over labels reachable; ``truths``: the blocks of rows that were counted."""
    return hit.sums()[label_kernel.COVERED] / np.maximum(reachable_labels(truths, hit.ks), 1)


def reachable_labels(truths: list[Truth], ks: np.ndarray) -> np.ndarray:
    """How many labels rows with k places each can cover at most: a maximum matching."""
    indices = np.concatenate([truth.indices for truth in truths])
    sizes = np.concatenate([truth.sizes for truth in truths])
    rising = np.unique(ks)
    # An interval asks anew for each model, of the same draws of rows.
    digest = hashlib.sha256(f"{indices.size} {sizes.size}".encode())
    for part in (indices, sizes, rising):
        digest.update(part.data)
    key = digest.digest()
    found = _MATCHED.get(key)
    if found is None:
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        shape = sizes.size, truths[0].n_labels
        by_row = sparse.csr_matrix((np.ones(indices.size, np.int8), indices, indptr), shape=shape)
        by_label = by_row.tocsc()
        found = label_kernel.reachable(by_row.indptr, by_row.indices, by_label.indptr, by_label.indices, rising)
        if len(_MATCHED) >= _MOST_MATCHED:
            _MATCHED.clear()
        _MATCHED[key] = found
    return found[np.searchsorted(rising, ks)]


_MATCHED: dict[bytes, np.ndarray] = {}
_MOST_MATCHED = 4096
"""Of how many sets of rows the number is kept."""
