"""The synthetic twin's loops: random numbers by counting, labels and words of points, probabilities, draws.

Every random number is a hash of (seed, stream, item, count), so that no result depends on how rows are divided among
threads.
"""

from __future__ import annotations

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import exp, log
from xcrepro.core.kernels.random import key as key_of
from xcrepro.core.kernels.random import uniform

# Streams: what a random number is for. The values only have to differ.
LABEL_IDS, TOPICS, COMPANIONS, SIZES, TOPIC_WORDS, SIGNATURES, WORD_IDS, LABELS, TEXT, OBSERVED, MISSED = range(11)


# NumPy's rules of division: with a check of every divisor the loop could not run several numbers at once.
@kernel(error_model="numpy")
def _sigmoids(z, n, shift, out):
    """out[i] = 1 / (1 + exp(-(z[i] + shift)))."""
    for i in range(n):
        out[i] = 1.0 / (1.0 + exp(-(z[i] + shift)))


@kernel
def uniforms(seed, stream, out):
    """Fill out with the numbers of item 0 of a stream."""
    key = key_of(seed, stream, 0)
    for i in range(out.size):
        out[i] = uniform(key, i)


@kernel
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


@kernel
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


@kernel
def deal_topics(seed, n_general, n_topics, frequency, topic):
    """Each label's topic: of two drawn at random the one with the fewer points yet; the first ``n_general`` have none."""
    key = key_of(seed, TOPICS, 0)
    mass = np.zeros(n_topics, np.float64)
    for l in range(topic.size):
        topic[l] = -1
        if l >= n_general:
            one, other = int(uniform(key, 2 * l) * n_topics), int(uniform(key, 2 * l + 1) * n_topics)
            topic[l] = one if mass[one] <= mass[other] else other
            mass[topic[l]] += frequency[l]


@kernel
def deal_companions(seed, topic_starts, by_topic, frequency, most, gap, room, least, companion, follow, own):
    """Each label's companion, a more frequent one of its topic (-1: none), and how often the label brings it along.

    Of the more frequent ones those near in frequency are the likelier. follow: uniform up to ``most``; some labels are
    never seen without their companion. room: the share of draws that leave room for one more. own: what is left of
    each label's frequency for it to come by itself, at least the share ``least``.

    With a ``gap``, for a hierarchy, the companion is a parent, which a label always brings along: any label of the topic that
    is at least ``gap`` times as frequent.
    """
    own[:] = frequency
    companion[:] = -1
    follow[:] = 0.0
    for t in range(topic_starts.size - 1):
        first, stop = topic_starts[t], topic_starts[t + 1]
        for at in range(stop - 1, first, -1):
            l = by_topic[at]
            key = key_of(seed, COMPANIONS, l)
            above = 0
            while gap > 0.0 and frequency[by_topic[first + above]] >= gap * frequency[l]:
                above += 1
            follow[l] = 1.0 if gap > 0.0 else most * uniform(key, 0)
            brought = follow[l] * room * frequency[l]
            for attempt in range(8 if gap == 0.0 or above > 0 else 0):
                if gap > 0.0:
                    other = by_topic[first + int(uniform(key, attempt) * above)]
                else:
                    u = uniform(key, attempt + 1)
                    other = by_topic[at - 1 - int(u * u * (at - first))]
                if own[other] - brought >= least * frequency[other]:
                    companion[l] = other
                    own[other] -= brought
                    break


@kernel
def write_signatures(seed, n_words, shared, ids, topic, topic_words, words, weights):
    """Words of the topics; words and weights of the labels ``ids``, a row of each a label.

    A label's first ``shared`` words are its topic's, the others its own; a label without a topic (-1) has its own only.
    Weights are those of a flat Dirichlet.
    """
    for t in range(topic_words.shape[0]):
        key = key_of(seed, TOPIC_WORDS, t)
        for j in range(topic_words.shape[1]):
            topic_words[t, j] = _fresh(topic_words[t], j, int(uniform(key, j) * n_words), n_words)
    size = words.shape[1]
    for l in range(topic.size):
        key = key_of(seed, SIGNATURES, ids[l])
        total = 0.0
        for j in range(size):
            u = uniform(key, 2 * j)
            w = int(u * n_words)
            if j < shared and topic[l] >= 0:
                w = topic_words[topic[l], int(u * topic_words.shape[1])]
            words[l, j] = _fresh(words[l], j, w, n_words)
            weights[l, j] = -log(1.0 - uniform(key, 2 * j + 1)) + 1e-6
            total += weights[l, j]
        for j in range(size):
            weights[l, j] /= total


@kernel
def _holds(labels, n, label):
    found = False
    for i in range(n):
        found = found or labels[i] == label
    return found


@kernel
def draw_labels(
    lo, hi, seed, sizes, propensity, general, topic_starts, by_topic, topic_mass, mass, frequent, companion, follow,
    most_topics, labels, counts, topics,
):  # fmt: skip
    """The labels that each point is about: as many as let ``sizes[row]`` of them be expected to be observed.

    General labels, the first ones, by one systematic draw a row: general[size - 1] holds their chances in a point of that
    size, added up. The others from up to ``most_topics`` topics, by frequency. topic_mass: cumulative frequency, labels in
    the order ``by_topic``; mass: the same topic by topic; frequent: the same label by label, of all.
    """
    width = labels.shape[1]
    for row in range(lo, hi):
        key = key_of(seed, LABELS, row)
        wanted = sizes[row]
        x = uniform(key, 0)
        held = 0
        seen = 0.0
        chances = general[int(wanted) - 1]
        tooth = 1.0
        while chances.size > 0 and held < width and chances[-1] > tooth - x:
            l = _find(chances, 0, chances.size, tooth - x)
            labels[row, held] = l
            held += 1
            seen += propensity[l]
            tooth += 1.0
        n_topics = 1 + int(most_topics * uniform(key, 1))
        total = mass[-1]
        topics[row] = -1
        if total > 0.0:
            for j in range(n_topics):
                topics[row, j] = _find(mass, 0, mass.size, uniform(key, 2 + j) * total)
        count = 2 + most_topics
        tries = 0
        last = -1
        while held < width:
            label = -1
            if last >= 0 and companion[last] >= 0 and uniform(key, count) < follow[last]:
                label = companion[last]
                last = -1
                if _holds(labels[row], held, label):
                    label = -1
            count += 1
            if label >= 0:
                pass
            elif total > 0.0 and tries < 20:
                t = topics[row, int(uniform(key, count) * n_topics)]
                first, stop = topic_starts[t], topic_starts[t + 1]
                base = topic_mass[first - 1] if first > 0 else 0.0
                at = _find(topic_mass, first, stop, base + uniform(key, count + 1) * (topic_mass[stop - 1] - base))
                label = by_topic[at]
            else:
                label = _find(frequent, 0, frequent.size, uniform(key, count + 1) * frequent[-1])
            count += 2
            if _holds(labels[row], held, label):
                # Small topics are soon used up: then any label, and in the end no more.
                tries += 1
                if tries > 40:
                    break
                continue
            p = propensity[label]
            if held > 0 and seen + p - wanted > wanted - seen:
                break
            labels[row, held] = label
            last = label
            held += 1
            seen += p
        counts[row] = held


@kernel
def _draw_words(
    seed, row, labels, n_labels, topics, topic_words, words, weights, background, word_ids, length, told, about, weak,
    even, buffer, emphasis,
):  # fmt: skip
    """The words of one point, sorted, into buffer; returns how many (repeats included)."""
    key = key_of(seed, TEXT, row)
    count = 0
    # Some labels are written of at length, others hardly: the smaller ``even``, the more so.
    total = 0.0
    for j in range(n_labels):
        part = 0.0
        for _ in range(even):
            part -= log(1.0 - uniform(key, count))
            count += 1
        total += part
        emphasis[j] = total
    if uniform(key, count) < weak:
        told = 0.1 * told
    count += 1
    n_topics = 0
    while n_topics < topics.size and topics[n_topics] >= 0:
        n_topics += 1
    # Lengths spread by about half: the exponential of a sum of uniforms, which is nearly normal.
    spread = 0.0
    for _ in range(4):
        spread += uniform(key, count) - 0.5
        count += 1
    n = min(max(int(length * exp(0.8 * spread)), 3), buffer.size)
    for i in range(n):
        kind, pick, which = uniform(key, count), uniform(key, count + 1), uniform(key, count + 2)
        count += 3
        if kind < told:
            l = labels[_find(emphasis, 0, n_labels, which * total)]
            j = 0
            while j < words.shape[1] - 1 and pick >= weights[l, j]:
                pick -= weights[l, j]
                j += 1
            w = words[l, j]
        elif kind < told + about and n_topics > 0:
            w = topic_words[topics[int(which * n_topics)], int(pick * topic_words.shape[1])]
        else:
            w = word_ids[_find(background, 0, background.size, pick)]
        buffer[i] = w
    buffer[:n] = np.sort(buffer[:n])
    return n


@kernel
def write_words(
    lo, hi, n_train, seed, labels, n_labels, topics, topic_words, words, weights, background, word_ids, length, told,
    about, weak, even, second, sizes, in_points, idf, indptr, indices, data,
):  # fmt: skip
    """Two passes over the same random numbers. First: how many different words each point has (sizes), and in how many
    train points each word is (in_points). Second: the tf-idf rows of unit length; tf is 1 + log(count).
    """
    buffer = np.empty(4 * length, np.int32)
    value = np.empty(4 * length, np.float64)
    emphasis = np.empty(labels.shape[1], np.float64)
    for row in range(lo, hi):
        n = _draw_words(
            seed, row, labels[row], n_labels[row], topics[row], topic_words, words, weights, background, word_ids,
            length, told, about, weak, even, buffer, emphasis,
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
                v = (1.0 + log(float(j - i))) * idf[w]
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


@kernel
def near_labels(lo, hi, indptr, indices, data, word_ptr, word_label, word_weight, alpha, prior, labels, logits):
    """Each row's candidates: the labels with the highest alpha * cosine + prior, ascending, and alpha * cosine.

    Only labels that share a word with the row count; where they are too few, the first labels fill up, at cosine 0.
    """
    score = np.zeros(prior.size, np.float64)
    touched = np.empty(prior.size, np.int32)
    width = labels.shape[1]
    best = np.empty(width, np.float64)
    for row in range(lo, hi):
        n_touched = 0
        for e in range(indptr[row], indptr[row + 1]):
            w = indices[e]
            for k in range(word_ptr[w], word_ptr[w + 1]):
                l = word_label[k]
                if score[l] == 0.0:
                    touched[n_touched] = l
                    n_touched += 1
                score[l] += data[e] * word_weight[k]
        held = 0
        for i in range(n_touched):
            l = touched[i]
            s = alpha * score[l] + prior[l]
            if held == width:
                if s < best[held - 1] or (s == best[held - 1] and l > labels[row, held - 1]):
                    continue
                held -= 1
            j = held
            while j > 0 and (best[j - 1] < s or (best[j - 1] == s and labels[row, j - 1] > l)):
                best[j] = best[j - 1]
                labels[row, j] = labels[row, j - 1]
                j -= 1
            best[j] = s
            labels[row, j] = l
            held += 1
        l = 0
        while held < width:
            if score[l] == 0.0:
                labels[row, held] = l
                held += 1
            l += 1
        labels[row] = np.sort(labels[row])
        for j in range(width):
            logits[row, j] = alpha * score[labels[row, j]]
        for i in range(n_touched):
            score[touched[i]] = 0.0


@kernel
def _shift(z, weight, n, wanted, start):
    """The c with sum(weight sigmoid(z + c)) = wanted, and the sum at the start. Newton's steps, kept inside a bracket."""
    low, high = -100.0, 100.0
    c = start
    before = 0.0
    sigmoids = np.empty(n, np.float64)
    for step in range(60):
        total = 0.0
        slope = 0.0
        _sigmoids(z, n, c, sigmoids)
        for i in range(n):
            s = sigmoids[i]
            total += weight[i] * s
            slope += weight[i] * s * (1.0 - s)
        if step == 0:
            before = total
        if abs(total - wanted) <= 1e-6 * wanted:
            break
        if total < wanted:
            low = c
        else:
            high = c
        c = c + (wanted - total) / slope if slope > 1e-12 else 0.5 * (low + high)
        if not low < c < high:
            c = 0.5 * (low + high)
    return c, before


@kernel
def fit_labels(lo, hi, starts, rows, logits, row_shift, wanted, most, label_shift, off):
    """label_shift so that every label's probabilities add up to its target; at most a share ``most`` of its pairs.

    rows, logits: of all pairs, label by label. off: by which share of the target they missed it before.
    """
    longest = 0
    for l in range(lo, hi):
        longest = max(longest, starts[l + 1] - starts[l])
    z = np.empty(longest, np.float64)
    ones = np.ones(longest, np.float64)
    for l in range(lo, hi):
        n = starts[l + 1] - starts[l]
        off[l] = 0.0
        if n == 0 or wanted[l] <= 0.0:
            continue
        for i in range(n):
            z[i] = logits[starts[l] + i] + row_shift[rows[starts[l] + i]]
        target = min(wanted[l], most * n)
        label_shift[l], before = _shift(z, ones, n, target, label_shift[l])
        off[l] = abs(before - target) / target


@kernel
def fit_rows(lo, hi, labels, logits, label_shift, propensity, sizes, most, row_shift):
    """row_shift so that every row's observed labels are expected to be ``sizes[row]``, or the share ``most`` of what
    they can be."""
    width = labels.shape[1]
    z = np.empty(width, np.float64)
    weight = np.empty(width, np.float64)
    for row in range(lo, hi):
        possible = 0.0
        for j in range(width):
            l = labels[row, j]
            z[j] = logits[row, j] + label_shift[l]
            weight[j] = propensity[l]
            possible += weight[j]
        row_shift[row], _ = _shift(z, weight, width, min(sizes[row], most * possible), row_shift[row])


@kernel
def draw(lo, hi, seed, labels, logits, label_shift, row_shift, propensity, sizes, most, cut, eta, observed, relevant):
    """Probabilities (float32, below ``cut`` exactly 0, the rest lifted to the same sum) and one draw of both truths.

    The observed labels of a row come by one systematic draw: their probabilities are laid end to end and a comb of unit
    pitch is dropped on them, so that each has exactly its probability and their number is the sum. A label that
    is not observed is relevant with what is left of its probability.
    """
    width = labels.shape[1]
    z = np.empty(width, np.float64)
    weight = np.empty(width, np.float64)
    place = np.empty(width, np.int64)
    for row in range(lo, hi):
        n = 0
        possible = 0.0
        eta[row] = 0.0
        observed[row] = relevant[row] = False
        for j in range(width):
            l = labels[row, j]
            logit = logits[row, j] + label_shift[l]
            if 1.0 / (1.0 + exp(-(logit + row_shift[row]))) >= cut:
                z[n], weight[n], place[n] = logit, propensity[l], j
                possible += weight[n]
                n += 1
        if n == 0:
            continue
        shift, _ = _shift(z, weight, n, min(sizes[row], most * possible), row_shift[row])
        x = uniform(key_of(seed, OBSERVED, row), 0)
        key = key_of(seed, MISSED, row)
        for i in range(n):
            p = np.float32(1.0 / (1.0 + exp(-(z[i] + shift))))
            eta[row, place[i]] = p
            q = np.float64(p) * weight[i]
            seen = np.floor(x + q) > np.floor(x)
            x += q
            observed[row, place[i]] = seen
            relevant[row, place[i]] = seen or uniform(key, i) * (1.0 - q) < np.float64(p) - q


@kernel
def _place(labels, label):
    """Where a label stands among a row's ascending ones; -1 where it does not."""
    at = np.searchsorted(labels, label)
    return at if at < labels.size and labels[at] == label else -1


@kernel
def lift_parents(lo, hi, labels, logits, label_shift, parents, never, lifted):
    """Log-odds, less the row's shift, of which none is above that of a label above.

    Parents are lifted to the highest log-odds below them; a label has ``never`` where one above it is no candidate.
    """
    width = labels.shape[1]
    for row in range(lo, hi):
        for j in range(width):
            lifted[row, j] = logits[row, j] + label_shift[labels[row, j]]
            above = parents[labels[row, j]]
            while above >= 0:
                if _place(labels[row], above) < 0:
                    lifted[row, j] = never
                above = parents[above]
        for j in range(width):
            z = lifted[row, j]
            above = parents[labels[row, j]]
            while above >= 0 and z > never:
                at = _place(labels[row], above)
                lifted[row, at] = max(lifted[row, at], z)
                above = parents[above]


@kernel
def draw_below_parents(lo, hi, seed, labels, eta, parents, depth, propensity, observed, relevant):
    """One draw of both truths where a label needs its parent; ``eta`` of a label is at most that of its parent.

    Level by level, one systematic draw each: given that the parent is relevant, a label is with the quotient of the two
    probabilities, so that each has exactly its own. A relevant label is observed with its propensity, whatever the others
    are.
    """
    width = labels.shape[1]
    deepest = depth.max()
    for row in range(lo, hi):
        key, seen = key_of(seed, OBSERVED, row), key_of(seed, MISSED, row)
        relevant[row] = False
        observed[row] = False
        for level in range(deepest + 1):
            x = uniform(key, level)
            for j in range(width):
                l = labels[row, j]
                if depth[l] != level or eta[row, j] <= 0.0:
                    continue
                q = np.float64(eta[row, j])
                if parents[l] >= 0:
                    at = _place(labels[row], parents[l])
                    if not relevant[row, at]:
                        continue
                    q /= np.float64(eta[row, at])
                relevant[row, j] = np.floor(x + q) > np.floor(x)
                observed[row, j] = relevant[row, j] and uniform(seen, j) < propensity[l]
                x += q
