"""Growing and training a probabilistic label tree: balanced k-means on label features, and linear node classifiers.

A *chunk* is an inner node with its children. All of a chunk's children see the same points, so these are copied once,
with features renumbered 0, 1, ... within the chunk: what the solvers walk over then stays in the cache.
"""

from __future__ import annotations

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import log_ratio

_ONE, _FEW, _MANY = (0,), (0,) * 2, (0,) * 8  # as long as there are children trained side by side
_MULTIPLIER, _INCREMENT, _SHIFT = np.uint64(6364136223846793005), np.uint64(1442695040888963407), np.uint64(33)
_A, _REST, _ODDS, _OF_REST, _SIGN, _SQUARE = range(6)  # places in what is kept of a point

# Sets of whole numbers: a bit for each, and a bit for each word of these that is not 0.
_ZERO, _BIT, _WORD, _SET = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
# A product with the first puts into the last six bits which bit of a word was set; the second says which one that was.
_PRODUCT, _LAST_SIX = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)
_PLACE = np.argsort([(int(_PRODUCT) << place) % 2**64 >> 58 for place in range(64)])


@kernel
def _empty_set(n):
    """For numbers below n: (bits, which words of bits are not 0)."""
    return np.zeros((n >> 6) + 1, np.uint64), np.zeros((n >> 12) + 1, np.uint64)


@kernel
def _rising(numbers, bits, words, out):
    """The distinct ones among ``numbers``, rising, to ``out``; returns how many. The set is empty before and after."""
    for k in range(numbers.size):
        number = np.uint64(numbers[k])
        word = number >> _WORD
        bits[word] |= _BIT << (number & _SET)
        words[word >> _WORD] |= _BIT << (word & _SET)
    found = 0
    for w in range(words.size):
        left, words[w] = words[w], _ZERO
        while left != _ZERO:
            low = left & (~left + _BIT)
            left ^= low
            word = 64 * w + _PLACE[(low * _PRODUCT) >> _LAST_SIX]
            inside, bits[word] = bits[word], _ZERO
            while inside != _ZERO:
                low = inside & (~inside + _BIT)
                inside ^= low
                out[found] = 64 * word + _PLACE[(low * _PRODUCT) >> _LAST_SIX]
                found += 1
    return found


@kernel
def members(places, edges, n, everyone):
    """A chunk's points: (points, rising; positive_start; positive), of which the last two are what ``train`` takes.

    found[edges[c]:edges[c + 1]]: child c's positives among the n points, label after label. ``everyone``: all are members.
    """
    bits, words = _empty_set(n)
    n_found = edges[-1] - edges[0]
    points = np.empty(n if everyone else min(n, n_found), np.int64)
    if everyone:
        for i in range(n):
            points[i] = i
    else:
        points = points[: _rising(places[edges[0] : edges[-1]], bits, words, points)]
    place = np.empty(n, np.int32)
    for i in range(points.size):
        place[points[i]] = i
    positive = np.empty(n_found, np.int32)
    start = np.zeros(edges.size, np.int64)
    for c in range(edges.size - 1):
        its = positive[start[c] :]
        n_its = _rising(places[edges[c] : edges[c + 1]], bits, words, its)
        for k in range(n_its):
            its[k] = place[its[k]]
        start[c + 1] = start[c] + n_its
    return points, start, positive[: start[-1]]


@kernel
def sums(indptr, indices, data, label_start, points, n_features):
    """For each label the sum of its points' rows, features rising: (indptr, indices, values).

    points[label_start[l]:label_start[l + 1]]: label l's. Sums are float32, one point after the other.
    """
    n_labels = label_start.size - 1
    room = 0
    for k in range(label_start[0], label_start[n_labels]):
        room += indptr[points[k] + 1] - indptr[points[k]]
    start = np.zeros(n_labels + 1, np.int64)
    index, value, entries = np.empty(room, np.int32), np.empty(room, np.float32), np.empty(room, np.int32)
    total = np.zeros(n_features, np.float32)
    bits, words = _empty_set(n_features)
    for l in range(n_labels):
        n_entries = 0
        for k in range(label_start[l], label_start[l + 1]):
            for j in range(indptr[points[k]], indptr[points[k] + 1]):
                total[indices[j]] += data[j]
                entries[n_entries] = indices[j]
                n_entries += 1
        its = index[start[l] :]
        start[l + 1] = start[l] + _rising(entries[:n_entries], bits, words, its)
        for j in range(start[l], start[l + 1]):
            value[j] = total[index[j]]
            total[index[j]] = 0.0
    return start, index[: start[-1]].copy(), value[: start[-1]].copy()


@kernel
def gather(indptr, indices, data, rows, n_features):
    """The given rows with features renumbered: (features in use, rising; indptr; local feature ids; values)."""
    start = np.zeros(rows.size + 1, np.int64)
    for i in range(rows.size):
        start[i + 1] = start[i] + indptr[rows[i] + 1] - indptr[rows[i]]
    index = np.empty(start[-1], np.uint32)
    value = np.empty(start[-1], np.float32)
    for i in range(rows.size):
        at = start[i]
        for j in range(indptr[rows[i]], indptr[rows[i] + 1]):
            index[at], value[at] = indices[j], data[j]
            at += 1
    bits, words = _empty_set(n_features)
    room = np.empty(min(n_features, index.size), np.int32)
    features = room[: _rising(index, bits, words, room)].copy()
    local = np.empty(n_features, np.uint32)
    for f in range(features.size):
        local[features[f]] = f
    for j in range(index.size):
        index[j] = local[index[j]]
    return features, start, index, value


@kernel
def _rank(values, rank):
    """The order in which ``values`` rise, equal ones by place: byte after byte of what stands for them, the last first."""
    n = rank.size
    key = np.empty(n, np.uint64)
    count = np.zeros((8, 256), np.int64)
    for i in range(n):
        rank[i] = i
    sign = _BIT << _SET
    bits = values.view(np.uint64)
    for i in range(n):
        # As whole numbers these rise as the values do.
        key[i] = ~bits[i] if bits[i] & sign else bits[i] | sign
        for b in range(8):
            count[b, (key[i] >> np.uint64(8 * b)) & np.uint64(255)] += 1
    source, target = rank, np.empty_like(rank)
    for b in range(8):
        shift, places, before, most = np.uint64(8 * b), count[b], 0, 0
        for byte in range(256):
            here, places[byte] = places[byte], before
            before += here
            most = max(most, here)
        if most == n:
            continue
        for k in range(n):
            i = source[k]
            byte = (key[i] >> shift) & np.uint64(255)
            target[places[byte]] = i
            places[byte] += 1
        source, target = target, source
    for k in range(n):
        rank[k] = source[k]


@kernel
def cluster(features, start, index, value, first, eps, max_iter):
    """Balanced spherical k-means of labels, gathered rows of unit label features; k = ``first.size``.

    first: the labels, by place, that are the first centroids. Returns the cluster of each label; sizes differ by
    one at most, the larger ones first. In each round labels choose in the order of what they stand to lose, best minus worst
    similarity, each the most similar cluster that has room; it ends when the mean similarity gains no more than ``eps``.
    """
    n, arity = start.size - 1, first.size
    centroid = np.zeros((features.size, arity))
    for c in range(arity):
        for j in range(start[first[c]], start[first[c] + 1]):
            centroid[index[j], c] = value[j]
    similarity = np.empty((n, arity))
    stake = np.empty(n)
    rank = np.empty(n, np.int32)
    chosen = np.zeros(n, np.int32)
    room = np.empty(arity, np.int64)
    norm = np.empty(arity)
    before = -np.inf
    for _ in range(max_iter):
        for i in range(n):
            if arity == 2:  # the same sums, held in registers
                left, right = 0.0, 0.0
                for j in range(start[i], start[i + 1]):
                    left += value[j] * centroid[index[j], 0]
                    right += value[j] * centroid[index[j], 1]
                similarity[i, 0], similarity[i, 1] = left, right
            else:
                similarity[i] = 0.0
                for j in range(start[i], start[i + 1]):
                    for c in range(arity):
                        similarity[i, c] += value[j] * centroid[index[j], c]
            least = most = similarity[i, 0]
            for c in range(1, arity):
                least = min(least, similarity[i, c])
                most = max(most, similarity[i, c])
            stake[i] = least - most  # never -0: sums that begin at 0 do not come to it
        for c in range(arity):
            room[c] = n // arity + (1 if c < n % arity else 0)
        total = 0.0
        _rank(stake, rank)
        for i in rank:
            best = -1
            for c in range(arity):
                if room[c] > 0 and (best < 0 or similarity[i, c] > similarity[i, best]):
                    best = c
            chosen[i] = best
            room[best] -= 1
            total += similarity[i, best]
        if total / n - before <= eps:
            break
        before = total / n
        centroid[:] = 0.0
        for i in range(n):
            for j in range(start[i], start[i + 1]):
                centroid[index[j], chosen[i]] += value[j]
        norm[:] = 0.0
        for f in range(features.size):
            for c in range(arity):
                norm[c] += centroid[f, c] * centroid[f, c]
        for c in range(arity):
            norm[c] = 1.0 / np.sqrt(norm[c]) if norm[c] > 0.0 else 0.0
        for f in range(features.size):
            for c in range(arity):
                centroid[f, c] *= norm[c]
    return chosen


@kernel
def _shuffle(order, n, state):
    """Fisher-Yates on the first n, by a linear congruential generator; returns its new state."""
    for i in range(n - 1):
        state = state * _MULTIPLIER + _INCREMENT
        # The rest of a division: for 31 bits floating point gives it exactly, and sooner than whole numbers do.
        drawn, rest = np.int64(state >> _SHIFT), n - i
        j = i + drawn - np.int64(drawn / rest) * rest
        order[i], order[j] = order[j], order[i]
    return state


@kernel
def _output(start, index, value, w, i):
    """w . x_i, with the bias last in w; by four sums, one alone waits for its last addition at each entry."""
    features, values = index[start[i] : start[i + 1]], value[start[i] : start[i + 1]]
    a, b, c, d = w[-1], 0.0, 0.0, 0.0
    whole = values.size - values.size % 4
    for j in range(0, whole, 4):
        a += values[j] * w[features[j]]
        b += values[j + 1] * w[features[j + 1]]
        c += values[j + 2] * w[features[j + 2]]
        d += values[j + 3] * w[features[j + 3]]
    for j in range(whole, values.size):
        a += values[j] * w[features[j]]
    return (a + b) + (c + d)


@kernel
def _move(start, index, value, w, i, step):
    features, values = index[start[i] : start[i + 1]], value[start[i] : start[i + 1]]
    for j in range(values.size):
        w[features[j]] += step * values[j]
    w[-1] += step


@kernel(error_model="numpy")
def _logistic(start, index, value, square, total, y, C, eps, max_iter, state, w):
    """l2-regularised logistic regression by dual coordinate descent (Yu, Huang and Lin 2011, algorithm 5).

    Minimises |w|^2 / 2 + C sum log(1 + exp(-y w.x)). A dual variable a and its rest C - a are kept apart, because near
    either end of (0, C) their difference has no digits left. Ends when no partial derivative exceeds eps.
    """
    n = y.size
    tiny = min(1e-3 * C, 1e-8)
    # What a visit reads and writes of a point lies together: a, the rest, the log odds of its last visit, whether they are of
    # the rest, sign and square. A point that does not move keeps its log odds: most visits need no logarithm.
    points, begin = np.empty((n, 8)), log_ratio(tiny, C - tiny)
    for i in range(n):
        points[i, _A], points[i, _REST], points[i, _SIGN], points[i, _SQUARE] = tiny, C - tiny, y[i], square[i]
        points[i, _ODDS], points[i, _OF_REST] = begin, 0.0
    # All begin as negatives, by their sum ``total``; the positives, which are fewer, are then taken over.
    for f in range(w.size):
        w[f] = -tiny * total[f]
    for i in range(n):
        if y[i] > 0.0:
            _move(start, index, value, w, i, 2.0 * tiny)
    order = np.arange(n)
    least = min(1e-8, eps)
    inner_eps = 1e-2
    for _ in range(max_iter):
        state = _shuffle(order, n, state)
        worst = 0.0
        steps = 0
        for i in order:
            q, sign = points[i, _SQUARE], points[i, _SIGN]
            b = sign * _output(start, index, value, w, i)
            # Newton on whichever of a and C - a ends up in the lower half.
            flip = 0.5 * q * (points[i, _REST] - points[i, _A]) + b < 0.0
            old = points[i, _REST] if flip else points[i, _A]
            slope = -b if flip else b
            far = C - old < 0.5 * C
            z = 0.1 * old if far else old
            log_odds = points[i, _ODDS] if flip == points[i, _OF_REST] and not far else log_ratio(z, C - z)
            gradient = q * (z - old) + slope + log_odds
            worst = max(worst, abs(gradient))
            moved = False
            for _ in range(100):
                if abs(gradient) < inner_eps:
                    break
                moved = True
                steps += 1
                try_z = z - gradient / (q + C / ((C - z) * z))
                z = try_z if try_z > 0.0 else 0.1 * z
                log_odds = log_ratio(z, C - z)
                gradient = q * (z - old) + slope + log_odds
            if moved:
                points[i, _ODDS], points[i, _OF_REST] = log_odds, flip
                if flip:
                    points[i, _REST], points[i, _A] = z, C - z
                    _move(start, index, value, w, i, sign * (old - z))
                else:
                    points[i, _A], points[i, _REST] = z, C - z
                    _move(start, index, value, w, i, sign * (z - old))
        if worst < eps:
            break
        if steps <= n // 10:
            inner_eps = max(least, 0.1 * inner_eps)


@kernel(error_model="numpy")
def _squared_hinges(start, index, value, square, sign, n_children, C, eps, max_iter, state, w, lanes):
    """l2-regularised squared hinge loss of several children by dual coordinate descent with shrinking (Hsieh et al. 2008).

    Minimises |w|^2 / 2 + C sum max(0, 1 - y w.x)^2 of each. They stand side by side, in ``len(lanes)`` columns of sign (by
    point) and w (by feature, the bias last), of which the first ``n_children`` are in use: a point's features are looked up
    once for all. All go through the points in one order, and each ends by its own rule. A point sits out when in all that
    have not ended its variable is 0 and its derivative well above the last round's largest, until these are settled; then
    all points are looked at once more.
    """
    n, width = square.size, len(lanes)  # a tuple's length is a constant: the loops over it become vectors
    a = np.zeros((n, width))
    order = np.arange(n)
    active = n
    diagonal = 0.5 / C
    bias, output, step = w[w.shape[0] - 1], np.empty(width), np.empty(width)
    low, high, ceiling = np.empty(width), np.empty(width), np.full(width, np.inf)
    live = np.zeros(width)
    live[:n_children] = 1.0
    for _ in range(max_iter):
        state = _shuffle(order, active, state)
        low[:] = np.inf
        high[:] = -np.inf
        s = 0
        while s < active:
            i = order[s]
            y, own, whole = sign[i], a[i], square[i] + diagonal
            features, values = index[start[i] : start[i + 1]], value[start[i] : start[i + 1]]
            output[:] = bias
            fours = values.size - values.size % 4
            for j in range(0, fours, 4):
                v, p = np.float64(values[j]), w[features[j]]
                v1, p1 = np.float64(values[j + 1]), w[features[j + 1]]
                v2, p2 = np.float64(values[j + 2]), w[features[j + 2]]
                v3, p3 = np.float64(values[j + 3]), w[features[j + 3]]
                for l in range(width):
                    output[l] += (v * p[l] + v1 * p1[l]) + (v2 * p2[l] + v3 * p3[l])
            for j in range(fours, values.size):
                v, p = np.float64(values[j]), w[features[j]]
                for l in range(width):
                    output[l] += v * p[l]
            out, largest = 0, 0.0
            for l in range(width):
                gradient = y[l] * output[l] - 1.0 + diagonal * own[l]
                projected = gradient if own[l] > 0.0 else min(gradient, 0.0)
                low[l], high[l] = min(low[l], projected), max(high[l], projected)
                out += (live[l] == 0.0) | ((own[l] == 0.0) & (gradient > ceiling[l]))
                moved = live[l] * (max(own[l] - gradient / whole, 0.0) - own[l])
                own[l] += moved
                step[l] = y[l] * moved
                largest = max(largest, abs(moved))
            if out == width:
                active -= 1
                order[s], order[active] = order[active], order[s]
                continue
            if largest > 0.0:
                for l in range(width):
                    bias[l] += step[l]
                for j in range(values.size):
                    v, p = np.float64(values[j]), w[features[j]]
                    for l in range(width):
                        p[l] += v * step[l]
            s += 1
        left = 0
        for l in range(width):
            ended = high[l] - low[l] <= eps
            if ended and active == n:
                live[l] = 0.0
            left += (live[l] > 0.0) & (not ended)
            ceiling[l] = high[l] if high[l] > 0.0 else np.inf
        if left == 0:
            if active == n:
                break
            active = n
            ceiling[:] = np.inf


@kernel
def _keep(w, least, feature, lane, weight, kept, counts, lanes):
    """Append the weights that are not 0 nor below ``least``, by feature and lane, and count them; returns where they end."""
    for f in range(w.shape[0] - 1):
        its, many = w[f], 0
        for l in range(len(lanes)):
            many += (abs(its[l]) >= least[l]) & (its[l] != 0.0)
        if many > 0:
            counts[f] += many
            for l in range(len(lanes)):
                if abs(its[l]) >= least[l] and its[l] != 0.0:
                    feature[kept], lane[kept], weight[kept] = f, l, its[l]
                    kept += 1
    return kept


@kernel
def train(features, start, index, value, positive_start, positive, squared, C, eps, max_iter, threshold, seed):
    """Train a chunk's classifiers on its gathered points.

    positive[positive_start[c]:positive_start[c + 1]]: places of the points that are child c's positives, one at least.
    Weights below ``threshold`` are dropped, the bias never. A child of which every point is a positive is certain: no weights
    and an infinite bias.
    Returns (features, start, child, weight, bias): weights by feature, start[i]:start[i + 1] those of features[i].
    """
    n, n_children = start.size - 1, positive_start.size - 1
    index = index.view(np.uint32)  # of a number without a sign nobody has to ask whether it counts from the end
    square, total = np.ones(n), np.zeros(features.size + 1)
    total[features.size] = n
    for i in range(n):
        for j in range(start[i], start[i + 1]):
            square[i] += np.float64(value[j]) * value[j]
            total[index[j]] += value[j]
    bias = np.empty(n_children, np.float32)
    # Room for all weights there could be: pages that are never written to take no memory.
    kept_feature = np.empty(n_children * features.size, np.int32)
    kept_lane = np.empty(n_children * features.size, np.uint8)
    kept_weight = np.empty(n_children * features.size, np.float32)
    counts = np.zeros(features.size, np.int64)
    kept = 0
    lanes = 1
    if squared:
        lanes = len(_MANY) if n_children > 2 * len(_FEW) else len(_FEW)
    kept_stop = np.zeros(-(-n_children // lanes), np.int64)
    y = np.empty((n, lanes))
    w = np.empty((features.size + 1, lanes))
    least = np.empty(lanes)
    first = 0
    while first < n_children:
        last = min(first + lanes, n_children)
        y[:] = -1.0
        w[:] = 0.0
        least[:] = np.inf
        for c in range(first, last):
            for j in range(positive_start[c], positive_start[c + 1]):
                y[positive[j], c - first] = 1.0
        state = np.uint64(seed) + np.uint64(first)
        if squared and lanes == len(_FEW):
            _squared_hinges(start, index, value, square, y, last - first, C, eps, max_iter, state, w, _FEW)
        elif squared:
            _squared_hinges(start, index, value, square, y, last - first, C, eps, max_iter, state, w, _MANY)
        elif positive_start[last] - positive_start[first] < n:
            _logistic(start, index, value, square, total, y.reshape(y.size), C, eps, max_iter, state, w.reshape(w.size))
        for c in range(first, last):
            certain = positive_start[c + 1] - positive_start[c] == n
            bias[c] = np.inf if certain else w[features.size, c - first]
            least[c - first] = np.inf if certain else threshold
        if lanes == len(_ONE):
            kept = _keep(w, least, kept_feature, kept_lane, kept_weight, kept, counts, _ONE)
        elif lanes == len(_FEW):
            kept = _keep(w, least, kept_feature, kept_lane, kept_weight, kept, counts, _FEW)
        else:
            kept = _keep(w, least, kept_feature, kept_lane, kept_weight, kept, counts, _MANY)
        kept_stop[first // lanes] = kept
        first = last
    # From by-child to by-feature, without the features that no child kept. A row that is a third full is filled up with zeros:
    # without gaps it is several times as fast to add.
    used = 0
    for f in range(features.size):
        if counts[f] > 0:
            used += 1
    row_start = np.zeros(used + 1, np.int64)
    row_of = np.empty(features.size, np.int64)
    kept_features = np.empty(used, np.int32)
    used = 0
    for f in range(features.size):
        if counts[f] > 0:
            row_of[f] = used
            kept_features[used] = features[f]
            row_start[used + 1] = row_start[used] + (n_children if 3 * counts[f] >= n_children else counts[f])
            used += 1
    child = np.empty(row_start[used], np.int32)
    weight = np.zeros(row_start[used], np.float32)
    filled = np.zeros(used, np.int64)
    j = 0
    for group in range(kept_stop.size):
        while j < kept_stop[group]:
            row, c = row_of[kept_feature[j]], group * lanes + kept_lane[j]
            full = row_start[row + 1] - row_start[row] == n_children
            at = row_start[row] + (c if full else filled[row])
            child[at], weight[at] = c, kept_weight[j]
            filled[row] += 1
            j += 1
    for row in range(used):
        if row_start[row + 1] - row_start[row] == n_children:
            for c in range(n_children):
                child[row_start[row] + c] = c
    return kept_features, row_start, child, weight, bias
