"""How large the ECE of a perfectly calibrated model would be, from what a paper prints of it: P@k and the Brier score."""

from __future__ import annotations

import numpy as np

from xcrepro.core import arithmetic, distributions
from xcrepro.core.arguments import one_of

BINS = 10
SHAPES = ("beta", "three levels")


def shares(mean: float, noise: float, shape: str = "beta") -> tuple[np.ndarray, np.ndarray]:
    """Shares (10,) of the scores of a calibrated model in each tenth, and their mean s (1 - s) (10,), from two means over all.

    ``mean`` is the scores' mean (P@k), ``noise`` the mean of s (1 - s) (the Brier score, at most 0.999 mean (1 -
    mean)). The shape is a beta distribution, or three levels: 0, 1 and one between them as near to one half as the mean
    allows. With all noise in one bin the mean ECE is sqrt(2 noise / (pi pairs)), the least that scores with this noise
    can have.
    """
    one_of("shape", shape, SHAPES)
    edges, noise = np.linspace(0, 1, BINS + 1), min(noise, 0.999 * mean * (1 - mean))
    if shape == "beta":
        total = noise / (mean * (1 - mean) - noise)  # a + b of the beta distribution
        a, b = mean * total, (1 - mean) * total
        share = np.diff(distributions.beta(a, b, edges))
        spread = np.diff(distributions.beta(a + 1, b + 1, edges)) * a * b / (total * (total + 1))
    else:
        level = min(max(0.5, noise / (1 - mean)), 1 - noise / mean)
        between = noise / (level * (1 - level))
        values = np.array([0, level, 1])
        weights = np.array([1 - mean - between * (1 - level), between, mean - between * level])
        at = np.minimum((BINS * values).astype(int), BINS - 1)
        share, spread = np.bincount(at, weights, BINS), np.bincount(at, weights * values * (1 - values), BINS)
    return share, np.divide(spread, share, out=np.zeros(BINS), where=share > 0)


def ece_if_calibrated(mean: float, noise: float, pairs: int, draws: int, seed: int, shape: str = "beta") -> np.ndarray:
    """ECE values (draws,) of a perfectly calibrated model with such scores on ``pairs`` (points times k) predictions."""
    share, spread = shares(mean, noise, shape)
    gaps = arithmetic.normals(seed, 0, draws, BINS) * np.sqrt(share * spread / pairs)
    return np.abs(gaps).sum(axis=1)
