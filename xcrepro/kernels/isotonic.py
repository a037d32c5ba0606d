"""Fits of one-dimensional calibration maps: pooling of adjacent violators, and the sums of a logistic regression.

Hits and pairs are counted in whole numbers and block means compared by cross-multiplying them, so the pooled blocks are
exact (up to 3 * 10^9 pairs, where the products reach the end of int64) and the same on every machine.
"""

import numpy as np
from numba import njit

STRIDE = 64


@njit(nogil=True, cache=True)
def _push(hits, sizes, ends, depth, hit, size, end):
    """Put a block on the stack, pooled with those before it until the means rise strictly. Returns the new depth."""
    while depth > 0 and hits[depth - 1] * size >= hit * sizes[depth - 1]:
        depth -= 1
        hit += hits[depth]
        size += sizes[depth]
    hits[depth], sizes[depth], ends[depth] = hit, size, end
    return depth + 1


@njit(nogil=True, cache=True)
def pool(scores, codes, without):
    """The blocks of the isotonic regression of hits on rising ``scores``.

    codes: 2 * fold + hit of each pair, int32; pairs of the fold ``without`` are passed over. Equal scores are one
    observation. Returns (first, last, hits, sizes), one value a block: its lowest and highest score, its hits, its pairs.

    The blocks are the segments of the lower convex hull of the points (pairs so far, hits so far). Pooling pair by pair
    finds it, but takes an unpredictable branch a pair. Here the hull of every 64th point comes first; the points that lie
    below it, few, are all that can still be corners of the whole.
    """
    n = scores.size
    # At most 1.1 n^(2/3) fractions can rise strictly with denominators that add up to n.
    capacity = int(2 * n ** (2 / 3)) + 2
    rough_hits, rough_sizes = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    hits, sizes = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    rough_ends, ends = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    rough = 0
    start = 0
    while start < n:
        stop = min(start + STRIDE, n)
        while stop < n and scores[stop] == scores[stop - 1]:
            stop += 1
        hit, size = 0, 0
        for i in range(start, stop):
            kept = codes[i] >> 1 != without
            size += kept
            hit += kept & codes[i]
        if size > 0:
            rough = _push(rough_hits, rough_sizes, rough_ends, rough, hit, size, stop)
        start = stop

    depth = 0
    start = 0
    for block in range(rough):
        stop = rough_ends[block]
        all_hits, all_sizes = rough_hits[block], rough_sizes[block]
        hit, size = 0, 0
        done_hit, done_size = 0, 0
        for i in range(start, stop):
            kept = codes[i] >> 1 != without
            size += kept
            hit += kept & codes[i]
            below = hit * all_sizes < size * all_hits
            if (below and size > done_size and scores[i + 1] != scores[i]) or i == stop - 1:
                depth = _push(hits, sizes, ends, depth, hit - done_hit, size - done_size, i + 1)
                done_hit, done_size = hit, size
        start = stop

    first, last = np.empty(depth), np.empty(depth)
    start = 0
    for block in range(depth):
        i = start
        while codes[i] >> 1 == without:
            i += 1
        first[block] = scores[i]
        start = ends[block]
        i = start - 1
        while codes[i] >> 1 == without:
            i -= 1
        last[block] = scores[i]
    return first, last, hits[:depth].copy(), sizes[:depth].copy()


@njit(nogil=True, cache=True)
def interpolate(knots, values, scores, lo, hi, out):
    """``out[i]`` for ``scores[i]``, i in [lo, hi): linear between the strictly rising knots, constant beyond the ends.

    Never falls as the score rises, to the last bit.
    """
    last = knots.size - 1
    for i in range(lo, hi):
        score = scores[i]
        if score <= knots[0]:
            out[i] = values[0]
        elif score >= knots[last]:
            out[i] = values[last]
        else:
            left, right = 0, last
            while right - left > 1:
                middle = (left + right) >> 1
                if knots[middle] <= score:
                    left = middle
                else:
                    right = middle
            share = (score - knots[left]) / (knots[right] - knots[left])
            # Without min(), rounding could lift a score just below a knot above the knot's own value.
            out[i] = min(values[left] + share * (values[right] - values[left]), values[right])


@njit(nogil=True, cache=True)
def logistic_sums(features, hits, low, high, theta, gradient, hessian):
    """Cross-entropy of 1 / (1 + exp(-theta . (features, 1))) against the target ``high`` of a hit and ``low`` of a miss.

    features: (d, n) float64. Returns the sum over pairs; ``gradient`` (d + 1,) and ``hessian`` (d + 1, d + 1) are filled.
    """
    d, n = features.shape
    gradient[:] = 0.0
    hessian[:] = 0.0
    loss = 0.0
    row = np.ones(d + 1)
    for i in range(n):
        logit = theta[d]
        for j in range(d):
            row[j] = features[j, i]
            logit += theta[j] * row[j]
        # exp() of a negative number only, so that nothing overflows.
        small = np.exp(-abs(logit))
        chance = 1.0 / (1.0 + small)
        if logit < 0:
            chance = small / (1.0 + small)
        target = high if hits[i] else low
        loss += max(logit, 0.0) + np.log1p(small) - target * logit
        spread = small / ((1.0 + small) * (1.0 + small))
        for j in range(d + 1):
            gradient[j] += (chance - target) * row[j]
            for other in range(j + 1):
                hessian[j, other] += spread * row[j] * row[other]
    for j in range(d + 1):
        for other in range(j):
            hessian[other, j] = hessian[j, other]
    return loss
