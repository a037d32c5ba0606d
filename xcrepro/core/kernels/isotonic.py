"""Fits of one-dimensional calibration maps: pooling of adjacent violators, and the sums of a logistic regression.

What is fitted is counts: rising scores, each once, with how many pairs and how many hits there are at it. Whole numbers, so
that block means are compared exactly, by their cross products; the pooled blocks are the same on every machine.
"""

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import exp, log, log1p

STRIDE = 64
_ROOT = 3_037_000_499  # the largest whole number whose square is below 2^63
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


def _counts(scores, codes, without, distinct, n, hits):
    kept = codes >> 1 != without
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], np.ones(min(scores.size, 1), bool)))
    sizes, found = (np.diff(np.cumsum(each)[ends], prepend=0) for each in (kept, kept & codes))
    m = int((sizes > 0).sum())
    there = np.flatnonzero(np.append(sizes[:-1] > 0, sizes[-1:] >= 0))  # the last is written at any rate
    distinct[: there.size], n[: there.size], hits[: there.size] = scores[ends[there]], sizes[there], found[there]
    return distinct[:m], n[:m], hits[:m]


@kernel(plain=_counts)
def counts(scores, codes, without, distinct, n, hits):
    """Pairs of the folds other than ``without``, counted: fills and returns the distinct scores, pairs and hits. ``scores``
    rise; codes: 2 * fold + hit of each pair, int32."""
    m, size, hit = 0, 0, 0
    for i in range(scores.size):
        kept = np.int64(codes[i] >> 1 != without)
        size += kept
        hit += kept & codes[i]
        if i + 1 == scores.size or scores[i + 1] != scores[i]:
            # Written at any rate, passed only if there is something: no branch to guess.
            distinct[m], n[m], hits[m] = scores[i], size, hit
            m += size > 0
            size, hit = 0, 0
    return distinct[:m], n[:m], hits[:m]


@kernel
def _product(a, b):
    """a * b for 0 <= a, b < 2^63, as the upper and the lower 64 bits."""
    a, b = np.uint64(a), np.uint64(b)
    low = (a & _LOW) * (b & _LOW)
    middle = (a >> _HALF) * (b & _LOW) + (low >> _HALF)
    other = (a & _LOW) * (b >> _HALF) + (middle & _LOW)
    return (a >> _HALF) * (b >> _HALF) + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (low & _LOW)


@kernel
def _below(a, b, c, d):
    """a / b < c / d for 0 <= a <= b, 0 <= c <= d, exactly."""
    if b <= _ROOT and d <= _ROOT:
        return a * d < c * b
    left_high, left_low = _product(a, d)
    right_high, right_low = _product(c, b)
    return left_high < right_high or (left_high == right_high and left_low < right_low)


@kernel
def _push(hits, sizes, ends, depth, hit, size, end):
    """Put a block on the stack, pooled with those before it until the means rise strictly. Returns the new depth."""
    while depth > 0 and not _below(hits[depth - 1], sizes[depth - 1], hit, size):
        depth -= 1
        hit += hits[depth]
        size += sizes[depth]
    hits[depth], sizes[depth], ends[depth] = hit, size, end
    return depth + 1


@kernel
def pool(scores, n, hits):
    """The blocks of the isotonic regression of counts: ``scores`` rise strictly, n is 1 or more.

    Returns (first, last, hits, sizes), one value a block: its lowest and highest score, its hits, its pairs.

    The blocks are the segments of the lower convex hull of the points (pairs so far, hits so far). Pooling score by score
    finds it, but takes an unpredictable branch a score. Here the hull of every 64th point comes first; the points that lie
    below it, few, are all that can still be corners of the whole.
    """
    total = 0
    for i in range(n.size):
        total += n[i]
    # At most 1.1 total^(2/3) fractions can rise strictly with denominators that add up to the total.
    capacity = min(n.size, int(2.0 * exp(log(total) * (2.0 / 3.0))) + 2)
    rough_hits, rough_sizes = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    all_hits, all_sizes = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    rough_ends, ends = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    rough = 0
    for start in range(0, n.size, STRIDE):
        stop = min(start + STRIDE, n.size)
        hit, size = 0, 0
        for i in range(start, stop):
            size += n[i]
            hit += hits[i]
        rough = _push(rough_hits, rough_sizes, rough_ends, rough, hit, size, stop)

    depth = 0
    start = 0
    for block in range(rough):
        stop = rough_ends[block]
        hit, size = 0, 0
        done_hit, done_size = 0, 0
        for i in range(start, stop):
            size += n[i]
            hit += hits[i]
            if i == stop - 1 or _below(hit, size, rough_hits[block], rough_sizes[block]):
                depth = _push(all_hits, all_sizes, ends, depth, hit - done_hit, size - done_size, i + 1)
                done_hit, done_size = hit, size
        start = stop

    first, last = np.empty(depth), np.empty(depth)
    start = 0
    for block in range(depth):
        first[block] = scores[start]
        start = ends[block]
        last[block] = scores[start - 1]
    return first, last, all_hits[:depth].copy(), all_sizes[:depth].copy()


@kernel
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


@kernel
def logistic_sums(features, n, hits, low, high, theta, gradient, hessian):
    """Cross-entropy of 1 / (1 + exp(-theta . (features, 1))) against the target ``high`` of a hit and ``low`` of a miss.

    features: (d, m) float64; n, hits: (m,) int64, pairs and hits with these features. Returns the sum over pairs;
    ``gradient`` (d + 1,) and ``hessian`` (d + 1, d + 1) are filled.
    """
    d, m = features.shape
    gradient[:] = 0.0
    hessian[:] = 0.0
    loss = 0.0
    row = np.ones(d + 1)
    for i in range(m):
        logit = theta[d]
        for j in range(d):
            row[j] = features[j, i]
            logit += theta[j] * row[j]
        # exp() of a negative number only, so that nothing overflows.
        small = exp(-abs(logit))
        chance = 1.0 / (1.0 + small)
        if logit < 0:
            chance = small / (1.0 + small)
        pairs = np.float64(n[i])
        target = hits[i] * high + (n[i] - hits[i]) * low
        loss += pairs * (max(logit, 0.0) + log1p(small)) - target * logit
        spread = pairs * small / ((1.0 + small) * (1.0 + small))
        residual = pairs * chance - target
        for j in range(d + 1):
            gradient[j] += residual * row[j]
            for other in range(j + 1):
                hessian[j, other] += spread * row[j] * row[other]
    for j in range(d + 1):
        for other in range(j):
            hessian[other, j] = hessian[j, other]
    return loss
