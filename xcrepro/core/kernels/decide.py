"""Which k of a row's candidates to predict when each has a weight that choosing it may change; what that is worth."""

import numpy as np

from xcrepro.core.kernels import kernel


@kernel
def _insert(gains, labels, offsets, place, gain, label, offset):
    """Put an entry in at ``place`` of a row that is ranked before it, and move it up to where it belongs."""
    while place > 0 and (gain > gains[place - 1] or (gain == gains[place - 1] and label < labels[place - 1])):
        gains[place] = gains[place - 1]
        labels[place] = labels[place - 1]
        offsets[place] = offsets[place - 1]
        place -= 1
    gains[place] = gain
    labels[place] = label
    offsets[place] = offset


@kernel
def _best(indptr, indices, data, row, weights, beta, ceiling, gains, labels, offsets):
    """Fill ``gains``, ``labels`` and ``offsets`` (into ``data``) with the row's best; how many there are.

    ceiling: no weight plus beta is larger. Rounding keeps order, so a candidate that would be below the last place even
    with the largest weight needs no look at its own, which is somewhere in a large array.
    """
    k = gains.size
    found = 0
    stop = indptr[row + 1]
    j = indptr[row]
    while j < stop and found < k:
        label = indices[j]
        _insert(gains, labels, offsets, found, (weights[label] + beta) * data[j], label, j)
        found += 1
        j += 1
    while j < stop:
        if data[j] * ceiling >= gains[k - 1]:
            label = indices[j]
            gain = (weights[label] + beta) * data[j]
            if gain > gains[k - 1] or (gain == gains[k - 1] and label < labels[k - 1]):
                _insert(gains, labels, offsets, k - 1, gain, label, j)
        j += 1
    return found


# What a row does to the weights of the labels it chose.
KEEP, PROBABILITY, GAIN = 0, 1, 2


def _select(indptr, indices, data, order, lo, hi, weights, beta, update, ids, scores, chosen):
    k, ends, p_of, places = ids.shape[1], indptr.tolist(), data.astype(np.float64), np.arange(data.size)
    rising = np.diff(indices.astype(np.int64)) > 0
    rising[indptr[1:-1][(indptr[1:-1] > 0) & (indptr[1:-1] < data.size)] - 1] = True
    by_label = rising.all()  # then equal gains are in the order of labels already
    for row in order[lo:hi].tolist():
        start, stop = ends[row], ends[row + 1]
        labels, p = indices[start:stop], p_of[start:stop]
        gains = (weights[labels] + beta) * p
        if by_label and k == 1 and start < stop:
            best = slice(first := int(gains.argmax()), first + 1)
        else:
            best = ((-gains).argsort(kind="stable") if by_label else np.lexsort((labels, -gains)))[:k]
        now, gain = labels[best], gains[best]
        ids[row, : now.size], scores[row, : now.size], chosen[row, : now.size] = now, gain, places[start:stop][best]
        if update != KEEP:
            weights[now] *= 1.0 - p[best] if update == PROBABILITY else np.maximum(0.0, 1.0 - gain)


@kernel(plain=_select)
def select(indptr, indices, data, order, lo, hi, weights, beta, update, ids, scores, chosen):
    """Rows order[lo], ..., order[hi - 1], one after the other: the k labels of largest gain (weights[l] + beta) * p_l.

    Then, by ``update``, the weight of each chosen label is multiplied by 1 - p_l, or by 1 - gain, at least 0: rows depend
    on those before them, so there is only one block. With ``KEEP`` ``weights`` is read only. ``chosen``: the offsets
    into ``data`` of what was chosen.
    """
    k = ids.shape[1]
    gains, labels, offsets = np.empty(k), np.empty(k, np.int64), np.empty(k, np.int64)
    ceiling = (weights.max() if weights.size else 0.0) + beta
    for step in range(lo, hi):
        row = order[step]
        found = _best(indptr, indices, data, row, weights, beta, ceiling, gains, labels, offsets)
        for place in range(found):
            ids[row, place] = labels[place]
            scores[row, place] = gains[place]
            chosen[row, place] = offsets[place]
            if update == PROBABILITY:
                weights[labels[place]] *= 1.0 - data[offsets[place]]
            elif update == GAIN:
                weights[labels[place]] *= max(0.0, 1.0 - gains[place])


# A product of many factors below 1 is kept as scaled * _TINY ** scale, so that taking factors out again brings it back
# from where it would have underflowed.
_TINY = 2.0**-512


@kernel
def _miss(label, p, back, failure, scaled, scale, sure):
    """Put the factor 1 - p into the label's failure, or take it out again (``back``). Factors of 0 are counted apart."""
    if p == 1.0:
        sure[label] += -1 if back else 1
    elif back:
        scaled[label] /= 1.0 - p
        if scale[label] > 0 and scaled[label] >= 1.0:
            scaled[label] *= _TINY
            scale[label] -= 1
        elif scaled[label] > 1.0:
            scaled[label] = 1.0  # by rounding alone
    else:
        scaled[label] *= 1.0 - p
        if scaled[label] < _TINY:
            scaled[label] /= _TINY
            scale[label] += 1
    if sure[label] > 0 or scale[label] > 1:
        failure[label] = 0.0
    else:
        failure[label] = scaled[label] * _TINY if scale[label] == 1 else scaled[label]


@kernel
def revise(indptr, indices, data, order, beta, n_labels, ids, scores, chosen):
    """One more pass after ``select`` with ``PROBABILITY``: each row gives its labels back and chooses anew, against all other
    rows. Returns the number of rows whose labels changed."""
    k = ids.shape[1]
    failure, scaled = np.ones(n_labels), np.ones(n_labels)
    scale, sure = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    for row in range(ids.shape[0]):
        for place in range(k):
            if ids[row, place] >= 0:
                _miss(ids[row, place], data[chosen[row, place]], False, failure, scaled, scale, sure)
    gains, labels, offsets = np.empty(k), np.empty(k, np.int64), np.empty(k, np.int64)
    changed = 0
    for step in range(order.size):
        row = order[step]
        for place in range(k):
            if ids[row, place] >= 0:
                _miss(ids[row, place], data[chosen[row, place]], True, failure, scaled, scale, sure)
        found = _best(indptr, indices, data, row, failure, beta, 1.0 + beta, gains, labels, offsets)
        changed += _common(ids[row], labels, found) < found
        for place in range(found):
            ids[row, place] = labels[place]
            scores[row, place] = gains[place]
            chosen[row, place] = offsets[place]
            _miss(labels[place], data[offsets[place]], False, failure, scaled, scale, sure)
    return changed


@kernel
def lookup(indptr, indices, data, ids, lo, hi, values):
    """``values[row, place]``: what the row stores for the label at that place; untouched where it stores nothing."""
    k = ids.shape[1]
    for row in range(lo, hi):
        for place in range(k):
            label = ids[row, place]
            if label < 0:
                break
            for j in range(indptr[row], indptr[row + 1]):
                if indices[j] == label:
                    values[row, place] = data[j]
                    break


@kernel
def expected(ids, marginals, k, failure):
    """(hits, covered): the expected number of hits in the first k places, and of labels with a hit there.

    ``failure`` (L,) comes as ones and goes as the probabilities that a label is hit nowhere.
    """
    hits = 0.0
    for row in range(ids.shape[0]):
        for place in range(k):
            label = ids[row, place]
            if label < 0:
                break
            hits += marginals[row, place]
            failure[label] *= 1.0 - marginals[row, place]
    covered = 0.0
    for label in range(failure.size):
        covered += 1.0 - failure[label]
    return hits, covered


# What a mix weighs; ``parts`` has a weight for each: of a hit, of an average over labels already divided by their number.
PRECISION, MACRO_PRECISION, MACRO_RECALL, MACRO_F1, COVERAGE = 0, 1, 2, 3, 4
N_PARTS = 5


@kernel
def utility(predicted, tp, positives, failure, parts):
    """The sum over labels, in order of their ids, of what each is worth: by its rows, its expected hits and positives."""
    total = 0.0
    for label in range(predicted.size):
        n, hits, m = predicted[label], tp[label], positives[label]
        total += parts[PRECISION] * hits + parts[COVERAGE] * (1.0 - failure[label])
        if n > 0.0:
            total += parts[MACRO_PRECISION] * hits / n + parts[MACRO_F1] * 2.0 * hits / (n + m)
        if m > 0.0:
            total += parts[MACRO_RECALL] * hits / m
    return total


# Nodes and weights of Gauss and Legendre's rule with eight points, of the upper half of -1 to 1.
_NODES = (0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363)
_SHARES = (0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763)


@kernel
def _power(t, n):
    """t to a whole power."""
    found = 1.0
    while n > 0:
        if n & 1:
            found *= t
        t *= t
        n >>= 1
    return found


@kernel
def expected_ratios(starts, p, chosen, lo, hi, recall, f1):
    """``recall[label]`` and ``f1[label]``: the expected values, where the label is right in row i with chance ``p[i]``.

    The rows of a label are ``starts[label]`` to the next; it is predicted in those that are ``chosen``, n of them. With M rows
    where it is right, E[hits / (c + M)] is the sum over chosen rows of p_i E[1 / (c + 1 + M without i)], and E[1 / (c + 1 + M)]
    is the integral from 0 to 1 of t^c times the product of 1 - p + p t. That rises steeply where c + E[M] is large, so it is
    taken from 1 - 2^-j to 1 - 2^-(j + 1), and at last to 1.
    """
    for label in range(lo, hi):
        start, stop = starts[label], starts[label + 1]
        n, mean = 0, 0.0
        for i in range(start, stop):
            n += chosen[i]
            mean += p[i]
        if n == 0:
            continue
        panels, size = 3, n + mean
        while size > 1.0:
            panels += 1
            size /= 2.0
        edge = 1.0
        for panel in range(panels + 1):
            width = edge / 2.0 if panel < panels else edge
            for node in range(8):
                side = _NODES[node // 2] if node % 2 else -_NODES[node // 2]
                t = 1.0 - edge + width * (1.0 + side) / 2.0
                none, found = 1.0, 0.0
                for i in range(start, stop):
                    factor = 1.0 - p[i] + p[i] * t
                    none *= factor
                    if chosen[i]:
                        found += p[i] / factor
                found *= none * _SHARES[node // 2] * width / 2.0
                recall[label] += found
                f1[label] += 2.0 * found * _power(t, n)
            edge /= 2.0


@kernel
def _find_terms(label, predicted, tp, positives, failure, parts, terms):
    """``terms[label]``: one more row with probability p adds ``terms[label, 0] * p + terms[label, 1]`` to the utility."""
    n, hits, m = predicted[label], tp[label], positives[label]
    slope = parts[PRECISION] + parts[COVERAGE] * failure[label]
    slope += parts[MACRO_PRECISION] / (n + 1.0) + 2.0 * parts[MACRO_F1] / (n + m + 1.0)
    offset = 0.0
    if m > 0.0:
        slope += parts[MACRO_RECALL] / m
    if n > 0.0:
        offset -= parts[MACRO_PRECISION] * hits / (n * (n + 1.0))
        offset -= 2.0 * parts[MACRO_F1] * hits / ((n + m) * (n + m + 1.0))
    terms[label, 0] = slope
    terms[label, 1] = offset


@kernel
def _best_by_terms(indptr, indices, data, row, terms, gains, labels, offsets):
    """As ``_best``, where the gain of label l is ``terms[l, 0] * p_l + terms[l, 1]``."""
    k = gains.size
    found = 0
    for j in range(indptr[row], indptr[row + 1]):
        label = indices[j]
        gain = terms[label, 0] * data[j] + terms[label, 1]
        if found < k:
            _insert(gains, labels, offsets, found, gain, label, j)
            found += 1
        elif gain > gains[k - 1] or (gain == gains[k - 1] and label < labels[k - 1]):
            _insert(gains, labels, offsets, k - 1, gain, label, j)
    return found


@kernel
def select_by_terms(indptr, indices, data, which, lo, hi, terms, ids, scores, chosen):
    """As ``select``, rows apart, where row i goes by ``terms[which[i]]``."""
    k = ids.shape[1]
    gains, labels, offsets = np.empty(k), np.empty(k, np.int64), np.empty(k, np.int64)
    for row in range(lo, hi):
        found = _best_by_terms(indptr, indices, data, row, terms[which[row]], gains, labels, offsets)
        for place in range(found):
            ids[row, place] = labels[place]
            scores[row, place] = gains[place]
            chosen[row, place] = offsets[place]


@kernel
def tally(ids, values, predicted, tp, failure):
    """Of each label the rows that chose it, what ``values`` adds up to there, and the product of 1 - value (from ones)."""
    for row in range(ids.shape[0]):
        for place in range(ids.shape[1]):
            label = ids[row, place]
            if label < 0:
                break
            predicted[label] += 1.0
            tp[label] += values[row, place]
            failure[label] *= 1.0 - values[row, place]


@kernel
def _common(own, labels, n):
    """How many of the first labels are a row's own."""
    kept = 0
    for place in range(n):
        kept += _is_in(labels[place], own, n)
    return kept


@kernel
def _is_in(label, labels, n):
    """Is the label among the first?"""
    there = False
    for place in range(n):
        there |= labels[place] == label
    return there


@kernel
def _keep(own, own_offsets, data, terms, gains, labels, offsets, n):
    """Put back each of a row's own labels for which one came in that gains no more, up to rounding."""
    for place in range(n):
        label = own[place]
        if label < 0 or _is_in(label, labels, n):
            continue
        gain = terms[label, 0] * data[own_offsets[place]] + terms[label, 1]
        for last in range(n - 1, -1, -1):  # the new one of least gain
            if not _is_in(labels[last], own, n):
                if gain >= gains[last] - 1e-12 * abs(gains[last]):
                    _insert(gains, labels, offsets, last, gain, label, own_offsets[place])
                break


@kernel
def ascend(indptr, indices, data, order, positives, parts, passes, tolerance, ids, scores, chosen):
    """Block coordinate ascent from the labels in ``ids``: each row gives its labels back and takes the k of largest gain.

    A label that the row has stays where another gains no more. Until a pass changes no row, adds less than ``tolerance`` to the
    utility, or ``passes`` are spent. Returns how many there were.
    """
    k, n_labels = ids.shape[1], positives.size
    predicted, tp = np.zeros(n_labels), np.zeros(n_labels)
    failure, scaled = np.ones(n_labels), np.ones(n_labels)
    scale, sure = np.zeros(n_labels, np.int64), np.zeros(n_labels, np.int64)
    covers = parts[COVERAGE] > 0.0
    for row in range(ids.shape[0]):
        for place in range(k):
            label = ids[row, place]
            if label >= 0:
                predicted[label] += 1.0
                tp[label] += data[chosen[row, place]]
                if covers:
                    _miss(label, data[chosen[row, place]], False, failure, scaled, scale, sure)
    terms = np.empty((n_labels, 2))
    for label in range(n_labels):
        _find_terms(label, predicted, tp, positives, failure, parts, terms)
    gains, labels, offsets = np.empty(k), np.empty(k, np.int64), np.empty(k, np.int64)
    before = utility(predicted, tp, positives, failure, parts)
    for done in range(passes):
        changed = 0
        for step in range(order.size):
            row = order[step]
            for place in range(k):
                label = ids[row, place]
                if label >= 0:
                    predicted[label] -= 1.0
                    tp[label] = tp[label] - data[chosen[row, place]] if predicted[label] > 0.0 else 0.0
                    if covers:
                        _miss(label, data[chosen[row, place]], True, failure, scaled, scale, sure)
                    _find_terms(label, predicted, tp, positives, failure, parts, terms)
            found = _best_by_terms(indptr, indices, data, row, terms, gains, labels, offsets)
            kept = _common(ids[row], labels, found)
            if kept < found:
                _keep(ids[row], chosen[row], data, terms, gains, labels, offsets, found)
                kept = _common(ids[row], labels, found)
            changed += kept < found
            for place in range(found):
                label = labels[place]
                ids[row, place] = label
                scores[row, place] = gains[place]
                chosen[row, place] = offsets[place]
                predicted[label] += 1.0
                tp[label] += data[offsets[place]]
                if covers:
                    _miss(label, data[offsets[place]], False, failure, scaled, scale, sure)
                _find_terms(label, predicted, tp, positives, failure, parts, terms)
        reached = utility(predicted, tp, positives, failure, parts)
        if changed == 0 or reached - before < tolerance:
            return done + 1
        before = reached
    return passes
