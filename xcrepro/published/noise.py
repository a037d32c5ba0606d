"""How large the ECE of a perfectly calibrated model would be, from what a paper prints of it: P@k and the Brier score."""

from __future__ import annotations

import numpy as np

from xcrepro import arithmetic, distributions
from xcrepro.arguments import one_of

BINS = 10
SHAPES = ("beta", "three levels")


def shares(mean: float, noise: float, shape: str = "beta") -> tuple[np.ndarray, np.ndarray]:
    """Where the scores of a calibrated model lie, from two means over all of them.

    Parameters
    ----------
    mean : float
        Of the scores, in (0, 1): P@k, if the scores are right.
    noise : float
        Mean of s (1 - s): the Brier score, if the scores are right. More than 0.999 mean (1 - mean) counts as that.
    shape : {"beta", "three levels"}
        A beta distribution, or scores of 0, 1 and one level between them that is as near to one half as the mean allows. With
        all noise in one bin, the mean ECE is sqrt(2 noise / (pi pairs)), the least that scores with this noise can have,
        because the root of a sum is at most the sum of the roots.

    Returns
    -------
    share : ndarray of float64, shape (10,)
        Of the scores in each tenth; they add up to 1.
    spread : ndarray of float64, shape (10,)
        Mean of s (1 - s) in each tenth; 0 where no score is.

    Raises
    ------
    ArgumentError
        For an unknown shape.

    Examples
    --------
    >>> share, spread = shares(0.5, 1 / 6)  # uniform scores
    >>> share.round(3).tolist()
    [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    >>> float(round((share * spread).sum(), 6))
    0.166667
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
    """ECE values that a perfectly calibrated model with such scores would have on so many predictions.

    The gap between mean score and share of hits of a bin is nearly normal: each draw takes one for each bin.

    Parameters
    ----------
    mean, noise, shape
        As for :func:`shares`.
    pairs : int
        Predictions: test points times k.
    draws : int
        How many values.
    seed : int
        Below 2^62.

    Returns
    -------
    ndarray of float64, shape (draws,)
        In [0, 1].

    Examples
    --------
    >>> values = ece_if_calibrated(0.5, 1 / 6, 2000, 2000, seed=0)
    >>> float(values.mean().round(3))
    0.022
    """
    share, spread = shares(mean, noise, shape)
    gaps = arithmetic.normals(seed, 0, draws, BINS) * np.sqrt(share * spread / pairs)
    return np.abs(gaps).sum(axis=1)
