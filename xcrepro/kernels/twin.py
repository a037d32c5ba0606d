"""The synthetic twin's loops: random numbers by counting, words, near topics, probabilities, draws.

Every random number is a hash of (seed, stream, item, count), so that no result depends on how rows or topics are
divided among threads, nor on the version of any random generator.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_UNIT = 2.0**-53

# Streams: what a random number is for. The values only have to differ.
LABEL_IDS, TOPICS, TOPIC_ORDER, HIERARCHY, TOPIC_WORDS, SIGNATURES, WORD_IDS, TEXT, ROOTS, CHILDREN, OBSERVED = range(
    11
)


@njit(nogil=True, cache=True)
def _mix(x):
    """The output function of SplitMix64: every bit of x reaches every bit of the result."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@njit(nogil=True, cache=True)
def _key(seed, stream, item):
    """Where the random numbers of one item of one stream start."""
    return _mix(_mix(_mix(np.uint64(seed) + _STEP) + np.uint64(stream) * _STEP) + np.uint64(item) * _STEP)


@njit(nogil=True, cache=True)
def _uniform(key, count):
    """The count-th number of a key, uniform on [0, 1)."""
    return (_mix(key + np.uint64(count + 1) * _STEP) >> _S11) * _UNIT


@njit(nogil=True, cache=True)
def uniforms(seed, stream, out):
    """Fill out with the numbers of item 0 of a stream."""
    key = _key(seed, stream, 0)
    for i in range(out.size):
        out[i] = _uniform(key, i)


@njit(nogil=True, cache=True)
def _find(cumulative, lo, hi, x):
    """The first i in [lo, hi) with cumulative[i] > x; hi - 1 if there is none."""
    hi -= 1
    while lo < hi:
        mid = (lo + hi) // 2
        if cumulative[mid] > x:
            hi = mid
        else:
            lo = mid + 1
    return lo


@njit(nogil=True, cache=True)
def grow_trees(seed, starts, target, depth_limit, gap, parent):
    """The parent of every label, labels stored topic by topic, root first, then by falling target.

    A label hangs on its topic's root or, half of the time, on a label at least ``gap`` times as frequent.
    """
    depth = np.zeros(parent.size, np.int32)
    for t in range(starts.size - 1):
        root = starts[t]
        parent[root] = -1
        for l in range(root + 1, starts[t + 1]):
            key = _key(seed, HIERARCHY, l)
            best = root
            if _uniform(key, 0) < 0.5:
                for attempt in range(4):
                    u = _uniform(key, 1 + attempt)
                    # The square leans towards the frequent labels, so that some collect many descendants.
                    other = root + int(u * u * (l - root))
                    if target[other] >= gap * target[l] and depth[other] < depth_limit:
                        best = other
                        break
            parent[l] = best
            depth[l] = depth[best] + 1


@njit(nogil=True, cache=True)
def _fresh(words, used, candidate, n_words):
    """The candidate, or the next word after it that is not yet among words[:used]."""
    i = 0
    while i < used:
        if words[i] == candidate:
            candidate = (candidate + 1) % n_words
            i = 0
        else:
            i += 1
    return candidate


@njit(nogil=True, cache=True)
def write_signatures(seed, n_words, shared, starts, parent, topic_words, topic_weights, words, weights):
    """Words and weights of the topics, then of the labels below the roots.

    A label's first ``shared`` words are its parent's, the others its own.
    Weights are those of a flat Dirichlet, scaled to unit Euclidean length. Roots keep their topic's words and leave
    their row of ``words`` unused.
    """
    for t in range(topic_words.shape[0]):
        key = _key(seed, TOPIC_WORDS, t)
        total = 0.0
        for j in range(topic_words.shape[1]):
            topic_words[t, j] = _fresh(topic_words[t], j, int(_uniform(key, 2 * j) * n_words), n_words)
            w = 1e-6 - np.log(1.0 - _uniform(key, 2 * j + 1))
            topic_weights[t, j] = w
            total += w * w
        for j in range(topic_words.shape[1]):
            topic_weights[t, j] /= np.sqrt(total)
    size = words.shape[1]
    for t in range(topic_words.shape[0]):
        for l in range(starts[t] + 1, starts[t + 1]):
            key = _key(seed, SIGNATURES, l)
            total = 0.0
            for j in range(size):
                u = _uniform(key, 2 * j)
                if j >= shared:
                    w = int(u * n_words)
                elif parent[l] == starts[t]:
                    w = topic_words[t, int(u * topic_words.shape[1])]
                else:
                    w = words[parent[l], int(u * size)]
                words[l, j] = _fresh(words[l], j, w, n_words)
                weight = 1e-6 - np.log(1.0 - _uniform(key, 2 * j + 1))
                weights[l, j] = weight
                total += weight * weight
            for j in range(size):
                weights[l, j] /= np.sqrt(total)


@njit(nogil=True, cache=True)
def _draw_words(
    seed, row, share, order, starts, mass, extra, topic_words, words, background, word_ids, length, buffer, intended
):
    """The words of one point, sorted, into buffer; returns how many (repeats included)."""
    key = _key(seed, TEXT, row)
    count = 0
    # Topics: one from every unit of the cumulative share, so that topic t comes with probability share_t. At least one.
    n_labels = 0
    total = share[-1]
    strata = int(np.ceil(total))
    for j in range(strata):
        x = j + _uniform(key, count)
        count += 1
        if x >= total:
            if n_labels > 0:
                continue
            x = 0.0
        t = order[_find(share, 0, share.size, x)]
        lo, hi = starts[t], starts[t + 1]
        base = mass[lo - 1] if lo > 0 else 0.0
        # 1 + Poisson(extra) labels of the topic, by frequency.
        stop = np.exp(-extra)
        product = 1.0
        while n_labels < intended.shape[0]:
            x = base + _uniform(key, count) * (mass[hi - 1] - base)
            intended[n_labels, 0] = t
            intended[n_labels, 1] = _find(mass, lo, hi, x)
            n_labels += 1
            product *= _uniform(key, count + 1)
            count += 2
            if product <= stop:
                break
    # Lengths spread by about half: the exponential of a sum of uniforms, which is nearly normal.
    spread = 0.0
    for _ in range(4):
        spread += _uniform(key, count) - 0.5
        count += 1
    n = int(length * np.exp(0.8 * spread))
    n = min(max(n, 3), buffer.size)
    for i in range(n):
        kind = _uniform(key, count)
        pick = _uniform(key, count + 1)
        which = _uniform(key, count + 2)
        count += 3
        e = int(which * n_labels)
        t, l = intended[e, 0], intended[e, 1]
        if kind < 0.5 and l != starts[t]:
            w = words[l, int(pick * words.shape[1])]
        elif kind < 0.7:
            w = topic_words[t, int(pick * topic_words.shape[1])]
        else:
            w = word_ids[_find(background, 0, background.size, pick)]
        buffer[i] = w
    # Shell's sort: a few hundred words at most.
    for gap in (132, 57, 23, 10, 4, 1):
        for i in range(gap, n):
            w = buffer[i]
            j = i
            while j >= gap and buffer[j - gap] > w:
                buffer[j] = buffer[j - gap]
                j -= gap
            buffer[j] = w
    return n


@njit(nogil=True, cache=True)
def write_words(
    lo, hi, n_train, seed, share, order, starts, mass, extra, topic_words, words, background, word_ids, length, second,
    sizes, in_points, idf, indptr, indices, data,
):  # fmt: skip
    """Two passes over the same random numbers. First: how many different words each point has (sizes), and in how many
    train points each word is (in_points). Second: the tf-idf rows of unit length; tf is 1 + log(count).
    """
    buffer = np.empty(4 * length, np.int32)
    intended = np.empty((256, 2), np.int64)
    value = np.empty(4 * length, np.float64)
    for row in range(lo, hi):
        n = _draw_words(
            seed, row, share, order, starts, mass, extra, topic_words, words, background, word_ids, length, buffer,
            intended,
        )  # fmt: skip
        different = 0
        total = 0.0
        i = 0
        while i < n:
            w = buffer[i]
            j = i
            while j < n and buffer[j] == w:
                j += 1
            if second:
                v = (1.0 + np.log(j - i)) * idf[w]
                indices[indptr[row] + different] = w
                value[different] = v
                total += v * v
            elif row < n_train:
                in_points[w] += 1
            different += 1
            i = j
        if second:
            for i in range(different):
                data[indptr[row] + i] = value[i] / np.sqrt(total)
        else:
            sizes[row] = different


@njit(nogil=True, cache=True)
def near_topics(
    lo, hi, indptr, indices, data, word_ptr, word_topic, word_weight, n_topics, n_always, topics, cosines
):  # fmt: skip
    """Each row's candidate topics: the first ``n_always`` places hold those every row has, topics 0 to n_always - 1,
    the rest the nearest by cosine (ties to the lowest topic). Fewer near ones than places: topics by number fill up,
    at cosine 0.
    """
    score = np.zeros(n_topics, np.float64)
    touched = np.empty(n_topics, np.int64)
    width = topics.shape[1]
    for row in range(lo, hi):
        n_touched = 0
        for e in range(indptr[row], indptr[row + 1]):
            w = indices[e]
            for k in range(word_ptr[w], word_ptr[w + 1]):
                t = word_topic[k]
                if score[t] == 0.0:
                    touched[n_touched] = t
                    n_touched += 1
                score[t] += data[e] * word_weight[k]
        for j in range(n_always):
            cosines[row, j] = score[topics[row, j]]
        held = n_always
        for i in range(n_touched):
            t = touched[i]
            if t < n_always:
                continue
            s = score[t]
            # Keep the best places sorted by falling cosine.
            j = held
            if held == width:
                if width == n_always:
                    continue
                last = topics[row, width - 1]
                if s < score[last] or (s == score[last] and t > last):
                    continue
                j = width - 1
            else:
                held += 1
            while j > n_always:
                other = topics[row, j - 1]
                if score[other] > s or (score[other] == s and other < t):
                    break
                topics[row, j] = other
                j -= 1
            topics[row, j] = t
        for j in range(n_always, held):
            cosines[row, j] = score[topics[row, j]]
        t = n_always
        while held < width:
            if score[t] == 0.0:
                topics[row, held] = t
                cosines[row, held] = 0.0
                held += 1
            t += 1
        for i in range(n_touched):
            score[touched[i]] = 0.0


@njit(nogil=True, cache=True)
def _shift(z, n, wanted, start):
    """The c with sum(sigmoid(z[:n] + c)) = wanted (0 < wanted < n), and the sum at the start.

    Newton's steps, kept inside a bracket.
    """
    low, high = -1e3, 1e3
    c = start
    before = 0.0
    for step in range(60):
        total = 0.0
        slope = 0.0
        for i in range(n):
            s = 1.0 / (1.0 + np.exp(-(z[i] + c)))
            total += s
            slope += s * (1.0 - s)
        if step == 0:
            before = total
        if abs(total - wanted) <= 1e-9 * wanted:
            break
        if total < wanted:
            low = c
        else:
            high = c
        c = c + (wanted - total) / slope if slope > 1e-12 else 0.5 * (low + high)
        if not low < c < high:
            c = 0.5 * (low + high)
    return c, before


@njit(nogil=True, cache=True)
def balance_rows(lo, hi, topics, logits, topic_shift, per_row, row_shift):
    """row_shift so that every row's root probabilities add up to ``per_row``."""
    width = topics.shape[1]
    z = np.empty(width, np.float64)
    for row in range(lo, hi):
        for j in range(width):
            z[j] = logits[row, j] + topic_shift[topics[row, j]]
        row_shift[row], _ = _shift(z, width, per_row, row_shift[row])


@njit(nogil=True, cache=True)
def balance_topics(lo, hi, starts, in_train, pairs, logits, row_shift, wanted, topic_shift, off):
    """topic_shift so that every topic's root probabilities over the train rows add up to its target.

    off: by which share of the target they missed it before.
    """
    width = logits.shape[1]
    z = np.empty(row_shift.size, np.float64)
    for t in range(lo, hi):
        n = in_train[t]
        for i in range(n):
            p = pairs[starts[t] + i]
            z[i] = logits[p // width, p % width] + row_shift[p // width]
        off[t] = 0.0
        if n > 0:
            reachable = min(wanted[t], 0.98 * n)
            topic_shift[t], before = _shift(z, n, reachable, topic_shift[t])
            off[t] = abs(before - reachable) / reachable


@njit(nogil=True, cache=True)
def draw_roots(lo, hi, seed, topics, logits, topic_shift, row_shift, cut, eta, drawn):
    """Root probabilities (float32, below ``cut`` exactly 0) and one systematic draw a row.

    A row's probabilities are laid end to end and a comb of unit pitch is dropped on them: each root comes with exactly
    its probability, and their number is the sum rounded down or up.
    """
    width = topics.shape[1]
    for row in range(lo, hi):
        x = _uniform(_key(seed, ROOTS, row), 0)
        for j in range(width):
            p = np.float32(1.0 / (1.0 + np.exp(-(logits[row, j] + topic_shift[topics[row, j]] + row_shift[row]))))
            if p < cut:
                p = np.float32(0.0)
            eta[row, j] = p
            drawn[row, j] = np.floor(x + p) > np.floor(x)
            x += p


@njit(nogil=True, cache=True)
def _conditional(logit, cut, cut_logit):
    """P(child | parent): a sigmoid lowered by ``cut`` and stretched back to 1, so that it is exactly 0 far below."""
    if logit <= cut_logit:
        return 0.0
    return (1.0 / (1.0 + np.exp(-logit)) - cut) / (1.0 - cut)


@njit(nogil=True, cache=True)
def label_topic(
    seed, t, starts, parent, target, words, weights, rows, n_train_rows, root_eta, root_drawn, indptr, indices, data,
    alpha, cut, head, out_expected,
):  # fmt: skip
    """Probabilities and draws of one topic's labels for the rows that have it as a candidate.

    rows: ascending, the first ``n_train_rows`` of them train. head: (D,) int32 scratch of -1, left as found.
    Returns (row, label, probability, drawn) of every probability above 0, rows ascending, labels ascending in a row.
    """
    first = starts[t]
    size = starts[t + 1] - first
    n = rows.size
    cut_logit = np.log(cut) - np.log1p(-cut)
    width = words.shape[1]
    # One list a word: which of the topic's labels have it in their signature.
    follow = np.empty(size * width, np.int32)
    for j in range(1, size):
        for k in range(width):
            w = words[first + j, k]
            follow[j * width + k] = head[w]
            head[w] = j * width + k
    # Cosines at first; each label's row is then overwritten by its probabilities.
    eta = np.zeros((size, n), np.float32)
    for i in range(n):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            at = head[indices[e]]
            while at >= 0:
                eta[at // width, i] += data[e] * weights[first + at // width, at % width]
                at = follow[at]
    for j in range(1, size):
        for k in range(width):
            head[words[first + j, k]] = -1

    drawn = np.zeros((size, n), np.bool_)
    total = 0.0
    for i in range(n):
        eta[0, i] = root_eta[i]
        drawn[0, i] = root_drawn[i]
        if i < n_train_rows:
            total += root_eta[i]
    out_expected[first] = total
    z = np.empty(n, np.float64)
    weight = np.empty(n, np.float64)
    places = np.empty(n, np.int64)
    for j in range(1, size):
        up = parent[first + j] - first
        m = 0
        for i in range(n_train_rows):
            if eta[up, i] > 0:
                z[m] = alpha * eta[j, i]
                weight[m] = eta[up, i]
                m += 1
        wanted = min(target[first + j], 0.99 * out_expected[first + up])
        low, high = cut_logit - alpha, 30.0
        for _ in range(60):
            b = 0.5 * (low + high)
            total = 0.0
            for i in range(m):
                total += weight[i] * _conditional(z[i] + b, cut, cut_logit)
            if abs(total - wanted) <= 1e-7 * wanted:
                break
            if total < wanted:
                low = b
            else:
                high = b
        total = 0.0
        for i in range(n):
            eta[j, i] = eta[up, i] * _conditional(alpha * eta[j, i] + b, cut, cut_logit)
            if i < n_train_rows:
                total += eta[j, i]
        out_expected[first + j] = total
        # Draw within the parent's points: a comb of unit pitch over their conditional probabilities, shuffled.
        key = _key(seed, CHILDREN, first + j)
        count = 0
        for part in range(2):
            lo, hi = (0, n_train_rows) if part == 0 else (n_train_rows, n)
            m = 0
            for i in range(lo, hi):
                if drawn[up, i] and eta[j, i] > 0:
                    places[m] = i
                    m += 1
            x = _uniform(key, count)
            count += 1
            for a in range(m):
                pick = a + int(_uniform(key, count) * (m - a))
                count += 1
                i = places[pick]
                places[pick] = places[a]
                q = np.float64(eta[j, i]) / np.float64(eta[up, i])
                drawn[j, i] = np.floor(x + q) > np.floor(x)
                x += q

    kept = 0
    for j in range(size):
        for i in range(n):
            if eta[j, i] > 0:
                kept += 1
    out_row = np.empty(kept, np.int32)
    out_label = np.empty(kept, np.int32)
    out_eta = np.empty(kept, np.float32)
    out_drawn = np.empty(kept, np.bool_)
    at = 0
    for i in range(n):
        for j in range(size):
            if eta[j, i] > 0:
                out_row[at] = rows[i]
                out_label[at] = first + j
                out_eta[at] = eta[j, i]
                out_drawn[at] = drawn[j, i]
                at += 1
    return out_row, out_label, out_eta, out_drawn


@njit(nogil=True, cache=True)
def observe(lo, hi, seed, indptr, indices, propensity, kept):
    """Which of the relevant labels are seen: each with its own propensity, by (row, label)."""
    for row in range(lo, hi):
        key = _key(seed, OBSERVED, row)
        for e in range(indptr[row], indptr[row + 1]):
            kept[e] = _uniform(key, indices[e]) < propensity[indices[e]]
