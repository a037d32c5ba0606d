"""Training linear one-vs-rest classifiers: sub-sampled Newton steps, for several labels at a time.

A label's weights minimise |w|^2 / 2 + C sum loss(y w.x), squared hinge or logistic, in which its positives may count more than
once (``plus``); the bias is the weight of a feature that is always 1.

Labels that are trained at the same time stand side by side, one in each *lane*: an entry of X is read once for all lanes, and
they take it in by vector instructions. Lanes never touch each other, so a label's bits depend neither on its neighbours nor on
the number of threads.

A step is Newton's, but for two things. Its Hessian is a sum over a sample of the points, drawn in proportion to what each
adds: there are few points with a curvature worth counting where a label has few positives. And the equation is solved by
conjugate gradients in float32, to a fifth. Gradient, line search and the rule to stop take all points.

The rule: with the dual variables that belong to w, the duality gap is exactly |gradient|^2 / 2, so the objective is proved to
be no more than that above its minimum.
"""

from __future__ import annotations

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import log, softplus

_ROUNDS = 1000  # steps of a label at most
_STUCK = 3  # steps in a row that do not lower the objective, after which rounding is what moves it
_FORCING = 0.2  # what conjugate gradients leave of the residual's length
_PER_POSITIVE, _LEAST = 15, 500  # points in the sample of the Hessian: as many for each positive, at least
_TURNS = 12  # looks of a line search at most
_FLAT = 0.1  # what a line search leaves of the slope
_TILE = 64  # features that are turned from side by side to one lane after the other at a time


@kernel
def _dot(indptr, indices, data, direction, out):
    """out[i, l] = direction[:, l] . (x_i, 1)."""
    bias = direction[direction.shape[0] - 1]
    for i in range(indptr.size - 1):
        z = out[i]
        for l in range(z.size):
            z[l] = bias[l]
        lo, hi = indptr[i], indptr[i + 1]
        # Four entries at a time: z is then read and written a quarter as often.
        for j in range(lo, hi - 3, 4):
            v0, v1, v2, v3 = data[j], data[j + 1], data[j + 2], data[j + 3]
            d0, d1 = direction[indices[j]], direction[indices[j + 1]]
            d2, d3 = direction[indices[j + 2]], direction[indices[j + 3]]
            for l in range(z.size):
                z[l] += (v0 * d0[l] + v1 * d1[l]) + (v2 * d2[l] + v3 * d3[l])
        for j in range(hi - (hi - lo) % 4, hi):
            v, d = data[j], direction[indices[j]]
            for l in range(z.size):
                z[l] += v * d[l]


@kernel
def _add_up(indptr, indices, data, coefficient, out):
    """out[:, l] = sum over i of coefficient[i, l] (x_i, 1)."""
    for f in range(out.shape[0]):
        row = out[f]
        for l in range(row.size):
            row[l] = 0.0
    bias = np.zeros(out.shape[1])
    used = np.empty(out.shape[1], np.int64)
    for i in range(indptr.size - 1):
        c = coefficient[i]
        n = 0
        for l in range(c.size):
            used[n] = l
            n += c[l] != 0.0
            bias[l] += c[l]
        if n > 6:
            for j in range(indptr[i], indptr[i + 1]):
                v, row = data[j], out[indices[j]]
                for l in range(c.size):
                    row[l] += v * c[l]
        elif n > 0:
            # With the squared hinge most points are far on the right side of most labels.
            for j in range(indptr[i], indptr[i + 1]):
                v, row = data[j], out[indices[j]]
                for k in range(n):
                    l = used[k]
                    row[l] += v * c[l]
    last = out[out.shape[0] - 1]
    for l in range(last.size):
        last[l] = bias[l]


@kernel
def _misses(margin, miss):
    """1 / (1 + exp(m)) of a row of margins.

    exp(-a) = exp(-a / 1024)^1024, to 1e-8: multiplications alone, which go over all lanes at once and give the same bits with
    any C library.
    """
    for l in range(miss.size):
        m = margin[l]
        a = abs(m)
        a = (a if a < 40.0 else 40.0) * (1.0 / 1024.0)
        e = 1.0 - a * (
            1.0 - a * (1.0 / 2.0) * (1.0 - a * (1.0 / 3.0) * (1.0 - a * (1.0 / 4.0) * (1.0 - a * (1.0 / 5.0))))
        )
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        miss[l] = np.divide(e if m > 0.0 else 1.0, 1.0 + e)  # a plain / looks for 0, one lane after the other


@kernel
def _slopes(logistic, C, plus, sign, output, change, step, slope, curvature):
    """First and second derivatives, by the step t, of C sum loss(y (z + t v)), for each lane."""
    lanes = step.size
    margin, miss = np.empty(lanes), np.empty(lanes)
    slope[:] = 0.0
    curvature[:] = 0.0
    for i in range(output.shape[0]):
        y, z, v = sign[i], output[i], change[i]
        for l in range(lanes):
            margin[l] = y[l] * (z[l] + step[l] * v[l])
        if logistic:
            _misses(margin, miss)
            for l in range(lanes):
                p, u, times = miss[l], np.float64(v[l]), plus[l] if y[l] > 0.0 else 1.0
                slope[l] -= y[l] * p * u * times
                curvature[l] += p * (1.0 - p) * (u * u) * times
        else:
            for l in range(lanes):
                short, u, times = 1.0 - margin[l], np.float64(v[l]), plus[l] if y[l] > 0.0 else 1.0
                short = short if short > 0.0 else 0.0
                slope[l] -= 2.0 * y[l] * short * u * times
                curvature[l] += 2.0 * (u * u) * times if short > 0.0 else 0.0
    for l in range(lanes):
        slope[l] *= C
        curvature[l] *= C


@kernel
def _move(logistic, C, plus, sign, output, change, step, loss, curved):
    """Take the step; then ``change`` holds the derivatives of the losses by the outputs. Adds up losses and second derivatives.

    The loss -log(1 - p) of a small p is taken from below, by its series.
    """
    lanes = step.size
    margin, miss = np.empty(lanes), np.empty(lanes)
    loss[:] = 0.0
    curved[:] = 0.0
    for i in range(output.shape[0]):
        y, z, v = sign[i], output[i], change[i]
        for l in range(lanes):
            z[l] += step[l] * v[l]
            margin[l] = y[l] * z[l]
        if logistic:
            _misses(margin, miss)
            large = False
            for l in range(lanes):
                p, times = miss[l], plus[l] if y[l] > 0.0 else 1.0
                v[l] = -C * y[l] * p * times
                curved[l] += p * (1.0 - p) * times
                large = large or p > 0.05
                loss[l] += p * (1.0 + p * (0.5 + p * (1.0 / 3.0 + p * 0.25))) * times if p <= 0.05 else 0.0
            if large:
                for l in range(lanes):
                    if miss[l] > 0.05:
                        loss[l] += softplus(-margin[l]) * (plus[l] if y[l] > 0.0 else 1.0)
        else:
            for l in range(lanes):
                short, times = 1.0 - margin[l], plus[l] if y[l] > 0.0 else 1.0
                short = short if short > 0.0 else 0.0
                v[l] = -2.0 * C * y[l] * short * times
                loss[l] += short * short * times
                curved[l] += 2.0 * times if short > 0.0 else 0.0
    for l in range(lanes):
        loss[l] *= C
        curved[l] *= C


@kernel
def _sample(logistic, C, plus, derivative, limit, draw, rows, weight, size):
    """The points in the sample of each lane's Hessian: rows[l, :size[l]], and what they count there.

    A point of curvature d is one with probability min(1, d / limit[l]), as ``draw`` decides, and counts as max(d, limit[l]).
    Of a positive the derivative is below 0.
    """
    size[:] = 0
    bar = np.empty(limit.size)
    for i in range(derivative.shape[0]):
        c = derivative[i]
        for l in range(bar.size):
            bar[l] = limit[l] * draw[i]
        for l in range(bar.size):
            a, most = abs(np.float64(c[l])), C * plus[l] if c[l] < 0.0 else C
            d = a * (1.0 - a / most) if logistic else (2.0 * most if a > 0.0 else 0.0)
            if d > bar[l]:
                rows[l, size[l]], weight[l, size[l]] = i, max(d, limit[l])
                size[l] += 1


@kernel
def _square(v):
    """|v|^2, by four sums: one alone waits for its last addition at each entry."""
    a = b = c = d = 0.0
    whole = v.size - v.size % 4
    for i in range(0, whole, 4):
        v0, v1, v2, v3 = np.float64(v[i]), np.float64(v[i + 1]), np.float64(v[i + 2]), np.float64(v[i + 3])
        a += v0 * v0
        b += v1 * v1
        c += v2 * v2
        d += v3 * v3
    for i in range(whole, v.size):
        v0 = np.float64(v[i])
        a += v0 * v0
    return (a + b) + (c + d)


@kernel
def _direction(indptr, indices, data, rows, curvature, residual, step, heading, image):
    """The step for one lane: H s = -gradient, with H = 1 + the sum of curvature x_i x_i' over the sample's points.

    By conjugate gradients. residual: -gradient before. heading, image: scratch, one place for each feature and the bias.
    """
    last = step.size - 1
    for f in range(step.size):
        step[f], heading[f] = 0.0, residual[f]
    length = across = _square(residual)
    enough = _FORCING * _FORCING * length
    for _ in range(step.size):
        if length <= enough:
            break
        # heading' H heading, and H heading. |heading|^2 needs no sum of its own: the residual is at right angles to the
        # headings before.
        square = across
        bias, bias_image = heading[last], 0.0
        for f in range(image.size):
            image[f] = heading[f]
        for r in range(rows.size):
            lo, hi = indptr[rows[r]], indptr[rows[r] + 1]
            ids, values = indices[lo:hi], data[lo:hi]
            s0 = s1 = s2 = s3 = np.float32(0.0)
            whole = values.size - values.size % 4
            for j in range(0, whole, 4):
                s0 += values[j] * heading[ids[j]]
                s1 += values[j + 1] * heading[ids[j + 1]]
                s2 += values[j + 2] * heading[ids[j + 2]]
                s3 += values[j + 3] * heading[ids[j + 3]]
            for j in range(whole, values.size):
                s0 += values[j] * heading[ids[j]]
            a = np.float64((s0 + s1) + (s2 + s3)) + bias
            across += curvature[r] * a * a
            a *= curvature[r]
            bias_image += a
            a32 = np.float32(a)
            for j in range(values.size):
                image[ids[j]] += values[j] * a32
        image[last] += bias_image
        along = np.float32(length / across)
        for f in range(step.size):
            step[f] += along * heading[f]
            residual[f] -= along * image[f]
        before, length = length, _square(residual)
        turn = np.float32(length / before)
        for f in range(step.size):
            heading[f] = residual[f] + turn * heading[f]
        across = length + turn * turn * square


@kernel
def _turn(gradient, residual):
    """residual[l] = -gradient[:, l]: what one lane alone goes over lies together. A tile stays in the cache."""
    for start in range(0, gradient.shape[0], _TILE):
        stop = min(start + _TILE, gradient.shape[0])
        for l in range(gradient.shape[1]):
            for f in range(start, stop):
                residual[l, f] = -gradient[f, l]


@kernel
def _complete(gradient, w, length, norm):
    """gradient += w; then the squared lengths of both, for each lane.

    Features outside, lanes inside, here and below: a lane alone would touch as much memory as all of them.
    """
    length[:] = 0.0
    norm[:] = 0.0
    for f in range(w.shape[0]):
        g, v = gradient[f], w[f]
        for l in range(v.size):
            g[l] += v[l]
            length[l] += g[l] * g[l]
            norm[l] += v[l] * v[l]


@kernel
def _along(gradient, w, steps, direction, across, square, first):
    """The lanes' steps side by side; and their products with w, with themselves and with the gradient."""
    across[:] = 0.0
    square[:] = 0.0
    first[:] = 0.0
    for start in range(0, w.shape[0], _TILE):
        stop = min(start + _TILE, w.shape[0])
        for l in range(w.shape[1]):
            for f in range(start, stop):
                direction[f, l] = steps[l, f]
        for f in range(start, stop):
            g, v, s = gradient[f], w[f], direction[f]
            for l in range(v.size):
                d = np.float64(s[l])
                across[l] += v[l] * d
                square[l] += d * d
                first[l] += g[l] * d


@kernel
def _begin(indptr, indices, data, total, rows, logistic, C, plus, sign, output, change, gradient, w):
    """A label enters its lane with a bias only, whose gradient needs no walk over the rows.

    With each positive counted ``plus`` times, there are n points and a share of positives. For the squared hinge b minimises
    b^2 / 2 + C n (share (1 - b)^2 + (1 - share) (1 + b)^2); for the logistic loss it is the log odds of the share. Returns b
    and the summed curvature.
    """
    last = w.size - 1
    n = rows.size * plus + (output.size - rows.size)
    share = rows.size * plus / n
    if logistic:
        b = log(share / (1.0 - share))
        wrong, missed = C * share, C * (1.0 - share) * plus
        curved = C * share * (1.0 - share) * n
    else:
        b = (2.0 * share - 1.0) * (2.0 * C * n) / (1.0 + 2.0 * C * n)
        wrong, missed = 2.0 * C * (1.0 + b), 2.0 * C * (1.0 - b) * plus
        curved = 2.0 * C * n
    for i in range(output.size):
        sign[i], output[i], change[i] = -1.0, b, wrong
    for f in range(last):
        w[f] = 0.0
        gradient[f] = wrong * total[f]
    w[last] = b
    gradient[last] = b + wrong * (output.size - rows.size) - missed * rows.size
    for i in rows:
        sign[i], change[i] = 1.0, -missed
        for j in range(indptr[i], indptr[i + 1]):
            gradient[indices[j]] -= (wrong + missed) * data[j]
    return b, curved


@kernel
def _keep(w, threshold, feature, weight, kept):
    """Append a lane's weights, without the bias and those below the threshold; returns where they end."""
    for f in range(w.size - 1):
        if w[f] != 0.0 and abs(w[f]) >= threshold:
            feature[kept], weight[kept] = f, w[f]
            kept += 1
    return kept


@kernel
def _search(logistic, C, plus, sign, output, change, label, across, square, first, step):
    """How far to go, for each lane.

    The objective along a direction is convex: Newton's method for the place where its slope is 0, kept between a place that
    lies before it and one behind it.
    """
    lanes = step.size
    low, high = np.zeros(lanes), np.full(lanes, np.inf)
    slope, curvature = np.empty(lanes), np.empty(lanes)
    settled = label < 0
    for l in range(lanes):
        step[l] = 0.0 if settled[l] else 1.0
    for turn in range(_TURNS):
        _slopes(logistic, C, plus, sign, output, change, step, slope, curvature)
        left = 0
        for l in range(lanes):
            if settled[l]:
                continue
            d = across[l] + step[l] * square[l] + slope[l]
            if abs(d) <= _FLAT * abs(first[l]):
                settled[l] = True
                continue
            left += 1
            if d < 0.0:
                low[l] = step[l]
            else:
                high[l] = step[l]
            step[l] -= d / (square[l] + curvature[l])
            if not low[l] < step[l] < high[l]:
                step[l] = (low[l] + high[l]) / 2
            if turn == _TURNS - 1:
                step[l] = low[l]
        if left == 0:
            break


@kernel
def _in_order(begin, end, feature, weight):
    """The labels' weights in the labels' order (they ended in another), as (start, feature, weight)."""
    start = np.zeros(begin.size + 1, np.int64)
    for k in range(begin.size):
        start[k + 1] = start[k] + end[k] - begin[k]
    its, weights = np.empty(start[-1], np.int32), np.empty(start[-1], np.float32)
    for k in range(begin.size):
        its[start[k] : start[k + 1]] = feature[begin[k] : end[k]]
        weights[start[k] : start[k + 1]] = weight[begin[k] : end[k]]
    return start, its, weights


@kernel
def train(indptr, indices, data, total, label_start, positive, times, logistic, C, eps, draw, lanes, threshold):
    """Train the classifiers of some labels.

    indptr, indices (uint32), data (float32): the rows; total: their sum, (D,).
    positive[label_start[l]:label_start[l + 1]]: the rows of label l's positives: one at least, and not all. Their losses count
    times[l] times.
    draw: a random number in [0, 1) for each row. A label ends when its objective is at most the fraction ``eps`` of itself
    above its minimum, or when rounding lets no step lower it any more. Weights below ``threshold`` in size are dropped, never
    the bias.
    Returns (start, feature, weight, bias, objective, gap, rounds): label l's weights are start[l]:start[l + 1].
    """
    n, n_features, n_labels = indptr.size - 1, total.size, label_start.size - 1
    lanes = min(lanes, n_labels)
    sign = np.empty((n, lanes), np.float32)
    output = np.empty((n, lanes), np.float32)
    change = np.empty((n, lanes), np.float32)
    gradient = np.zeros((n_features + 1, lanes), np.float32)
    direction = np.zeros((n_features + 1, lanes), np.float32)
    w = np.zeros((n_features + 1, lanes))
    residual, steps = np.empty((lanes, n_features + 1), np.float32), np.zeros((lanes, n_features + 1), np.float32)
    heading, image = np.empty(n_features + 1, np.float32), np.empty(n_features + 1, np.float32)
    sample, heavy, size = np.empty((lanes, n), np.int32), np.empty((lanes, n)), np.empty(lanes, np.int64)
    limit, step = np.empty(lanes), np.empty(lanes)
    label, plus = np.full(lanes, -1), np.ones(lanes)
    best, stuck = np.empty(lanes), np.empty(lanes, np.int64)
    loss, curved = np.empty(lanes), np.empty(lanes)
    length, norm = np.empty(lanes), np.empty(lanes)
    across, square, first = np.empty(lanes), np.empty(lanes), np.empty(lanes)

    # Room for all weights there could be: pages that are never written to take no memory.
    feature = np.empty(n_labels * n_features, np.int32)
    weight = np.empty(n_labels * n_features, np.float32)
    begin, end = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    bias = np.empty(n_labels, np.float32)
    objective, gap = np.empty(n_labels), np.empty(n_labels)
    rounds = np.zeros(n_labels, np.int64)
    kept = started = ended = 0
    while True:
        # The gradient, and with it the proof of how near the minimum is.
        _complete(gradient, w, length, norm)
        for l in range(lanes):
            k = label[l]
            if k >= 0:
                now = norm[l] / 2 + loss[l]
                stuck[l] = 0 if now < best[l] else stuck[l] + 1
                best[l] = min(best[l], now)
                if length[l] / 2 <= eps * now or rounds[k] == _ROUNDS or stuck[l] == _STUCK:
                    begin[k] = kept
                    end[k] = kept = _keep(w[:, l], threshold, feature, weight, kept)
                    bias[k], objective[k], gap[k] = w[n_features, l], now, length[l] / 2
                    label[l] = -1
                    ended += 1
            if label[l] < 0:
                if started == n_labels:
                    steps[l] = 0.0
                    limit[l] = np.inf
                    continue
                label[l], plus[l] = started, times[started]
                rows = positive[label_start[started] : label_start[started + 1]]
                started += 1
                b, curved[l] = _begin(
                    indptr, indices, data, total, rows, logistic, C, plus[l],
                    sign[:, l], output[:, l], change[:, l], gradient[:, l], w[:, l],
                )  # fmt: skip
                norm[l], best[l], stuck[l] = b * b, np.inf, 0
            k = label[l]
            rounds[k] += 1
            limit[l] = curved[l] / max(_LEAST, _PER_POSITIVE * (label_start[k + 1] - label_start[k]))
        if ended == n_labels:
            break

        _sample(logistic, C, plus, change, limit, draw, sample, heavy, size)
        _turn(gradient, residual)
        for l in range(lanes):
            if label[l] >= 0:
                rows, curve = sample[l, : size[l]], heavy[l, : size[l]]
                _direction(indptr, indices, data, rows, curve, residual[l], steps[l], heading, image)
        _along(gradient, w, steps, direction, across, square, first)
        _dot(indptr, indices, data, direction, change)
        _search(logistic, C, plus, sign, output, change, label, across, square, first, step)
        _move(logistic, C, plus, sign, output, change, step, loss, curved)
        for f in range(n_features + 1):
            for l in range(lanes):
                w[f, l] += step[l] * direction[f, l]
        _add_up(indptr, indices, data, change, gradient)
    start, in_order, its = _in_order(begin, end, feature, weight)
    return start, in_order, its, bias, objective, gap, rounds
