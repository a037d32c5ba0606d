"""The propensity model of Jain et al. 2016: how likely a relevant label is to have been observed.

A label seen N_l times in N train points is assumed to be marked, where it is relevant, with probability

    p_l = 1 / (1 + C exp(-A log(N_l + B))),    C = (log N - 1) (B + 1)^A        (jain16, eq. 1)

with natural logarithms. Its inverse (eq. 2) is the weight of a hit in the propensity-scored metrics. A and B per
dataset stand in the registry (``xc.data.registry.get(name).A``): 0.5 / 0.4 for WikiLSHTC-325K and the Wikipedia-500K and
WikiTitles sets, 0.6 / 2.6 for the Amazon product sets, 0.55 / 1.5 for all others, AmazonCat and Wiki10 included.
"""

from __future__ import annotations

import math

import numpy as np

from xcrepro.errors import ArgumentError


def inverse(label_counts, n_points: int, A: float = 0.55, B: float = 1.5) -> np.ndarray:
    """Inverse propensities 1/p_l (jain16, eq. 2): ``1 + (log N - 1) (B + 1)^A (N_l + B)^-A``.

    label_counts: (L,) the number of TRAIN points that carry each label, N_l >= 0; labels never seen are allowed.
    n_points: N, the number of TRAIN points, at least 3 (for fewer, C is negative and 1/p below 1).
    A, B: the dataset's parameters; A > 0, B > -1, and B > 0 where a label was never seen.

    Returns (L,) float64, 1 or more. A label seen once weighs exactly log N.

    Raises ArgumentError for counts that are negative, not finite or larger than N.

    >>> inverse([1, 10, 1000], n_points=15539).round(4)
    array([9.6511, 4.7373, 1.3203])
    """
    counts = np.asarray(label_counts, np.float64)
    if counts.ndim != 1:
        raise ArgumentError("label_counts", "must be one count a label", f"an array of shape {counts.shape}")
    if n_points < 3:
        raise ArgumentError("n_points", "must be the number of train points, 3 or more", n_points)
    if not A > 0 or not math.isfinite(A):
        raise ArgumentError("A", "must be positive", A)
    if not B > -1 or not math.isfinite(B):
        raise ArgumentError("B", "must be above -1", B)
    bad = ~((counts >= 0) & (counts <= n_points) & (counts + B > 0))
    if bad.any():
        label = int(np.argmax(bad))
        raise ArgumentError(
            "label_counts",
            f"must be train counts between 0 and n_points = {n_points}, with N_l + B > 0",
            f"{counts[label]:g} for label {label}",
            "count labels on the train split, whose size is n_points",
        )
    return 1.0 + (math.log(n_points) - 1.0) * (B + 1.0) ** A * (counts + B) ** -A
