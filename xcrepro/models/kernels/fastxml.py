"""FastXML's trees: partition of a node by nDCG, the separator of the partition, a whole tree, and the walk down.

A node's rows are ``members``, row numbers into the CSR arrays of all rows. Node ids rise from the root, children after
their parents, the right child next to the left one. All sums run in index order in float64, and all chance comes from
one counter per tree, so a tree depends on its seed and on nothing else.
"""

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import exp, log, sigmoid, softplus
from xcrepro.core.kernels.random import STEP, mix

LEAF = -1
MAX_STEPS = 100  # of Newton's method for a separator, and of a node's alternation
MAX_SWEEPS = 1000  # of coordinate descent for one Newton step


@kernel
def falling(keys):
    """The order of falling ``keys`` (float64), equal ones by their place: a merge sort, np.argsort compiles for seconds."""
    n = keys.size
    order, other = np.arange(n), np.empty(n, np.int64)
    width = 1
    while width < n:
        for lo in range(0, n, 2 * width):
            middle, hi = min(lo + width, n), min(lo + 2 * width, n)
            a, b = lo, middle
            for place in range(lo, hi):
                if b == hi or (a < middle and keys[order[a]] >= keys[order[b]]):
                    other[place] = order[a]
                    a += 1
                else:
                    other[place] = order[b]
                    b += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def falling_sums(sums):
    """:func:`falling` of ``sums`` that are 0 or more: those that are 0 come last and are not sorted."""
    place = np.flatnonzero(sums > 0.0)
    return np.concatenate((place[falling(sums[place])], np.flatnonzero(sums == 0.0)))


@kernel
def rising(ids, slot_of):
    """The ids, sorted; ``slot_of`` is below 0 for every other id."""
    if 10 * ids.size > slot_of.size:
        # Looking at all ids there are is quicker than sorting many of them.
        return np.flatnonzero(slot_of >= 0).astype(np.int32)
    return ids[falling(-ids.astype(np.float64))]


@kernel
def _present(indptr, indices, members, slot_of):
    """The ids that stand in the members' rows, rising, which ``slot_of`` numbers now; and how often any of them does."""
    nnz = n_slots = 0
    for i in range(members.size):
        nnz += indptr[members[i] + 1] - indptr[members[i]]
    touched = np.empty(min(nnz, slot_of.size), np.int32)
    for i in range(members.size):
        for j in range(indptr[members[i]], indptr[members[i] + 1]):
            if slot_of[indices[j]] < 0:
                slot_of[indices[j]] = 0
                touched[n_slots] = indices[j]
                n_slots += 1
    ids = rising(touched[:n_slots], slot_of)
    for s in range(n_slots):
        slot_of[ids[s]] = s
    return ids, nnz


@kernel
def alternate(y_indptr, y_indices, members, slot_of, gains, ideal, discount, side, trace):
    """Better ``side`` (one -1 or +1 a member) in place until the nDCG of the partition stops rising.

    slot_of: label -> its place among the node's labels; gains: one a slot; ideal: one a row, the discounted gain of its
    perfect ranking; discount: by rank from 0. ``trace[t]`` is the mean nDCG before step t. Returns how many were written.
    """
    n_slots = gains.size
    sums = np.zeros((2, n_slots))
    edge = np.zeros(n_slots)
    for step in range(trace.size):
        # The best ranking of a side sorts labels by their gain summed over its rows.
        sums[:] = 0.0
        for i in range(members.size):
            row = members[i]
            of = 1 if side[i] > 0 else 0
            for j in range(y_indptr[row], y_indptr[row + 1]):
                sums[of, slot_of[y_indices[j]]] += gains[slot_of[y_indices[j]]] / ideal[row]
        edge[:] = 0.0
        objective = 0.0
        for of in range(2):
            sign = 1.0 if of == 1 else -1.0
            order = falling_sums(sums[of])
            for rank in range(n_slots):
                edge[order[rank]] += sign * discount[rank]
                objective += discount[rank] * sums[of, order[rank]]
        objective /= members.size
        trace[step] = objective
        if step > 0 and objective - trace[step - 1] <= 1e-6 * objective:
            return step + 1
        # Given both rankings, a row goes where its own labels stand higher; where they stand alike it stays. What is left
        # of a sum that is 0 but for rounding decides nothing: it could differ from machine to machine.
        changed = False
        for i in range(members.size):
            row = members[i]
            more = 0.0
            rounding = 0.0
            for j in range(y_indptr[row], y_indptr[row + 1]):
                slot = slot_of[y_indices[j]]
                more += gains[slot] * edge[slot]
                rounding += 1e-12 * gains[slot] * abs(edge[slot])
            new = side[i]
            if abs(more) > rounding:
                new = 1 if more > 0.0 else -1
            if new != side[i]:
                side[i] = new
                changed = True
        if not changed:
            return step + 1
    return trace.size


@kernel
def _loss(margin, side, cost):
    total = 0.0
    for i in range(margin.size):
        m = margin[i] * side[i]
        c = cost[1] if side[i] > 0 else cost[0]
        total += c * softplus(-m)
    return total


@kernel
def _columns(x_indptr, x_indices, x_data, members, slot_of):
    """The members' features, rising, and their entries by feature: ``start``, the member's place and the value of each."""
    features, nnz = _present(x_indptr, x_indices, members, slot_of)
    start = np.zeros(features.size + 1, np.int64)
    for i in range(members.size):
        for j in range(x_indptr[members[i]], x_indptr[members[i] + 1]):
            start[slot_of[x_indices[j]] + 1] += 1
    start = np.cumsum(start)
    fill = start[:-1].copy()
    at = np.empty(nnz, np.uint32)  # unsigned: an index that cannot be negative is not looked at before it is used
    value = np.empty(nnz, np.float32)
    for i in range(members.size):
        for j in range(x_indptr[members[i]], x_indptr[members[i] + 1]):
            s = slot_of[x_indices[j]]
            at[fill[s]] = i
            value[fill[s]] = x_data[j]
            fill[s] += 1
    slot_of[features] = -1
    return features, start, at, value


@kernel
def _derivatives(margin, side, cost, pull, bend):
    """First (``pull``) and second (``bend``) derivatives of the members' losses by their margins."""
    for i in range(margin.size):
        c = cost[1] if side[i] > 0 else cost[0]
        off = sigmoid(-margin[i] * side[i])
        pull[i] = -c * side[i] * off
        bend[i] = c * off * (1.0 - off)


@kernel
def _activate(start, at, value, pull, w, gradient, active):
    """The gradient of the loss; how many features are or want to be in use (``active``); their summed violation."""
    n_active = 0
    violation = 0.0
    for s in range(w.size):
        g = 0.0
        ids, values = at[start[s] : start[s + 1]], value[start[s] : start[s + 1]]
        for j in range(values.size):
            g += values[j] * pull[ids[j]]
        gradient[s] = g
        if w[s] > 0.0:
            violation += abs(g + 1.0)
        elif w[s] < 0.0:
            violation += abs(g - 1.0)
        elif abs(g) > 1.0:
            violation += abs(g) - 1.0
        else:
            continue
        active[n_active] = s
        n_active += 1
    return n_active, violation


@kernel
def _direction(start, at, value, bent, active, bend, gradient, w, curvature, step, moved, enough):
    """Newton's ``step`` for the active features and what it adds to the margins, ``moved``; returns the sweeps it took."""
    for a in range(active.size):
        s = active[a]
        h = 1e-12
        ids, values, bents = at[start[s] : start[s + 1]], value[start[s] : start[s + 1]], bent[start[s] : start[s + 1]]
        for j in range(values.size):
            h += values[j] * values[j] * bend[ids[j]]
            bents[j] = values[j] * bend[ids[j]]
        curvature[s] = h
        step[s] = 0.0
    moved[:] = 0.0
    for sweep in range(MAX_SWEEPS):
        worst = 0.0
        for a in range(active.size):
            s = active[a]
            g = gradient[s] + 1e-12 * step[s]
            ids, bents = at[start[s] : start[s + 1]], bent[start[s] : start[s + 1]]
            for j in range(bents.size):
                g += bents[j] * moved[ids[j]]
            u = w[s] + step[s]
            if g + 1.0 <= curvature[s] * u:
                z = -(g + 1.0) / curvature[s]
            elif g - 1.0 >= curvature[s] * u:
                z = -(g - 1.0) / curvature[s]
            else:
                z = -u
            if u > 0.0:
                worst += abs(g + 1.0)
            elif u < 0.0:
                worst += abs(g - 1.0)
            else:
                worst += max(abs(g) - 1.0, 0.0)
            if z != 0.0:
                step[s] += z
                values = value[start[s] : start[s + 1]]
                for j in range(values.size):
                    moved[ids[j]] += values[j] * z
        if worst <= enough:
            return sweep + 1
    return MAX_SWEEPS


@kernel
def _advance(margin, moved, side, cost, loss, active, gradient, w, step, trial):
    """Halve the step until it lowers the objective by a hundredth of what its slope promises, and take it.

    Returns the new loss, or -1 where only rounding is left.
    """
    slope = 0.0
    for a in range(active.size):
        s = active[a]
        slope += gradient[s] * step[s] + abs(w[s] + step[s]) - abs(w[s])
    size = 1.0
    for _ in range(30):
        for i in range(margin.size):
            trial[i] = margin[i] + size * moved[i]
        new_loss = _loss(trial, side, cost)
        change = new_loss - loss
        for a in range(active.size):
            s = active[a]
            change += abs(w[s] + size * step[s]) - abs(w[s])
        if change <= 0.01 * size * slope:
            for a in range(active.size):
                w[active[a]] += size * step[active[a]]
            for i in range(margin.size):
                margin[i] = trial[i]
            return new_loss
        size *= 0.5
    return -1.0


@kernel
def separate(x_indptr, x_indices, x_data, members, side, cost, tol, slot_of):
    """The separator: argmin over w of |w|_1 + sum over members of cost * log(1 + exp(-side w x)).

    cost: of the -1 and of the +1 members. slot_of: scratch, one place a feature, all -1 before and after.
    Returns the features with a weight, rising, and their float32 weights.

    Derivation (Yuan, Ho, Lin 2012). With g the gradient of the losses, w is a minimum where g = -sign(w) for features in
    use and |g| <= 1 for the others; what is missing, summed over the features, is the *violation*. A Newton step d
    minimises |w + d|_1 + g d + d' H d / 2, with H = X' diag(bend) X. One coordinate of it, with the others held, has its
    minimum at z = -(g +- 1) / H_ss, or where w + d is 0: that is the soft threshold in ``_direction``. H d is never
    formed: X d is kept in ``moved`` and each coordinate corrects it. The first step is solved until its own violation is
    that of the start, and four times as far after each that one sweep solved. The line search guards the step, because
    the loss is no parabola. It ends when the violation is at most ``tol`` times the first one, scaled down by the
    smaller side's share, or after MAX_STEPS.
    """
    n = members.size
    features, start, at, value = _columns(x_indptr, x_indices, x_data, members, slot_of)
    bent = np.empty(value.size)  # value * bend, of active features
    w = np.zeros(features.size)
    step, gradient, curvature = np.zeros(w.size), np.zeros(w.size), np.zeros(w.size)
    active = np.empty(w.size, np.int64)
    margin, moved, trial, pull, bend = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    plus = 0
    for i in range(n):
        plus += side[i] > 0
    loss = _loss(margin, side, cost)
    goal = -1.0
    inner_tol = 1.0
    for _ in range(MAX_STEPS):
        _derivatives(margin, side, cost, pull, bend)
        n_active, violation = _activate(start, at, value, pull, w, gradient, active)
        if goal < 0.0:
            goal = tol * violation * max(min(plus, n - plus), 1) / n
        if violation <= goal:
            break
        used = active[:n_active]
        sweeps = _direction(
            start, at, value, bent, used, bend, gradient, w, curvature, step, moved, inner_tol * violation
        )
        if sweeps == 1:
            inner_tol *= 0.25
        loss = _advance(margin, moved, side, cost, loss, used, gradient, w, step, trial)
        if loss < 0.0:
            break
    weights = w.astype(np.float32)
    kept = np.flatnonzero(weights)
    return features[kept], weights[kept]


@kernel
def _room(array, size):
    """``array`` with room for ``size`` entries: itself, or a copy of at least twice its length."""
    if size <= array.size:
        return array
    larger = np.empty(max(size, 2 * array.size), array.dtype)
    larger[: array.size] = array
    return larger


@kernel
def grow(
    x_indptr, x_indices, x_data, n_features, y_indptr, y_indices, label_gains, ideal, discount,
    seed, max_leaf, C, tol, labels_per_leaf,
):  # fmt: skip
    """One tree. Returns its number of nodes, ``left`` (a node's left child, LEAF if it has none), then indptr, indices, data
    of the separators and of the leaf values, one CSR row a node. The arrays are longer than what is in use."""
    n = x_indptr.size - 1
    n_labels = label_gains.size
    state = np.uint64(seed)
    members = np.arange(n)
    label_slot = np.full(n_labels, -1, np.int64)
    feature_slot = np.full(n_features, -1, np.int64)
    dense = np.zeros(n_features)
    trace = np.empty(MAX_STEPS)
    cost = np.empty(2)
    left = np.full(2 * n, LEAF, np.int32)
    first = np.zeros(2 * n, np.int64)  # the node's rows are members[first:stop]
    stop = np.zeros(2 * n, np.int64)
    stop[0] = n
    w_indptr = np.zeros(2 * n + 1, np.int64)
    w_indices = np.empty(64, np.int32)
    w_data = np.empty(64, np.float32)
    p_indptr = np.zeros(2 * n + 1, np.int64)
    p_indices = np.empty(64, np.int32)
    p_data = np.empty(64, np.float32)
    n_nodes = 1
    node = 0
    while node < n_nodes:
        here = members[first[node] : stop[node]]
        n_here = here.size
        labels, nnz = _present(y_indptr, y_indices, here, label_slot)
        gains = label_gains[labels]
        w_stop = w_indptr[node]
        n_plus = 0
        # Where all rows carry the same labels every split has the same leaf values: splitting cannot change a prediction.
        if n_here > max_leaf and nnz < labels.size * n_here:
            side = np.empty(n_here, np.int8)
            for i in range(n_here):
                state += STEP
                side[i] = 1 if mix(state) >> np.uint64(63) else -1
            alternate(y_indptr, y_indices, here, label_slot, gains, ideal, discount, side, trace)
            for i in range(n_here):
                n_plus += side[i] > 0
            if 0 < n_plus < n_here:
                # Each side weighs as much as the other, so that the separator does not send all rows to the larger one.
                cost[0] = C * n_here / (n_here - n_plus)
                cost[1] = C * n_here / n_plus
                used, weights = separate(x_indptr, x_indices, x_data, here, side, cost, tol, feature_slot)
                dense[used] = weights
                # The rows go where the separator sends them, which is where prediction will send their like.
                n_plus = 0
                for i in range(n_here):
                    score = 0.0
                    for j in range(x_indptr[here[i]], x_indptr[here[i] + 1]):
                        score += x_data[j] * dense[x_indices[j]]
                    side[i] = 1 if score > 0.0 else -1
                    n_plus += score > 0.0
                dense[used] = 0.0
                if 0 < n_plus < n_here:
                    w_stop += used.size
                    w_indices, w_data = _room(w_indices, w_stop), _room(w_data, w_stop)
                    w_indices[w_stop - used.size : w_stop] = used
                    w_data[w_stop - used.size : w_stop] = weights
                    here[:] = np.concatenate((here[side < 0], here[side > 0]))
                    left[node] = n_nodes
                    first[n_nodes] = first[node]
                    stop[n_nodes] = first[n_nodes + 1] = first[node] + n_here - n_plus
                    stop[n_nodes + 1] = stop[node]
                    n_nodes += 2
        p_stop = p_indptr[node]
        if left[node] == LEAF:
            sums = np.zeros(labels.size)
            for i in range(n_here):
                for j in range(y_indptr[here[i]], y_indptr[here[i] + 1]):
                    sums[label_slot[y_indices[j]]] += gains[label_slot[y_indices[j]]]
            best = falling_sums(sums)[:labels_per_leaf]
            p_stop += best.size
            p_indices, p_data = _room(p_indices, p_stop), _room(p_data, p_stop)
            p_indices[p_stop - best.size : p_stop] = labels[best]
            p_data[p_stop - best.size : p_stop] = sums[best] / n_here
        label_slot[labels] = -1
        w_indptr[node + 1] = w_stop
        p_indptr[node + 1] = p_stop
        node += 1
    return n_nodes, left, w_indptr, w_indices, w_data, p_indptr, p_indices, p_data


@kernel
def predict(
    x_indptr, x_indices, x_data, n_features, n_labels, roots, left, w_indptr, w_indices, w_data,
    p_indptr, p_indices, p_data, m_indptr, m_indices, m_data, m_square, m_whole, alpha, gamma, lo, hi, ids, scores,
):  # fmt: skip
    """The best labels of rows [lo, hi) into ``ids`` and ``scores``, which hold -1 and -inf before.

    roots: the trees' first nodes. m_*: CSR rows and squared lengths of the labels' means over unit rows, used where
    alpha < 1. A row's last feature, ``n_features - 1``, is the bias, which is part of the unit row where ``m_whole`` is true.
    """
    k = ids.shape[1]
    x = np.zeros(n_features)
    tree = np.zeros(n_labels)
    touched = np.empty(n_labels, np.int32)
    best = np.empty(k)
    ties = np.empty(k)
    for row in range(lo, hi):
        square = 0.0
        for j in range(x_indptr[row], x_indptr[row + 1]):
            x[x_indices[j]] = x_data[j]
            if m_whole or x_indices[j] < n_features - 1:
                square += np.float64(x_data[j]) * x_data[j]
        n_touched = 0
        for t in range(roots.size):
            node = roots[t]
            while left[node] != LEAF:
                score = 0.0
                for j in range(w_indptr[node], w_indptr[node + 1]):
                    score += w_data[j] * x[w_indices[j]]
                node = left[node] + (1 if score > 0.0 else 0)
            for j in range(p_indptr[node], p_indptr[node + 1]):
                if tree[p_indices[j]] == 0.0:
                    touched[n_touched] = p_indices[j]
                    n_touched += 1
                tree[p_indices[j]] += p_data[j]
        found = 0
        for c in range(n_touched):
            label = touched[c]
            value = tree[label] / roots.size
            tree[label] = 0.0
            rank = value
            if alpha < 1.0:
                dot = 0.0
                for j in range(m_indptr[label], m_indptr[label + 1]):
                    dot += m_data[j] * x[m_indices[j]]
                # The row as it came is `length` times its unit row.
                away = m_square[label]
                if square > 0.0:
                    away = max(1.0 - 2.0 * dot / np.sqrt(square) + m_square[label], 0.0)
                half = 0.5 * gamma * away
                rank = alpha * log(value) - (1.0 - alpha) * softplus(half)
            # Equal ranks by the trees' value (two values may share a logarithm), then by the lowest label.
            place = found
            while place > 0 and (
                rank > best[place - 1]
                or (rank == best[place - 1] and value > ties[place - 1])
                or (rank == best[place - 1] and value == ties[place - 1] and label < ids[row, place - 1])
            ):
                if place < k:
                    best[place] = best[place - 1]
                    ties[place] = ties[place - 1]
                    ids[row, place] = ids[row, place - 1]
                place -= 1
            if place < k:
                best[place] = rank
                ties[place] = value
                ids[row, place] = label
                if found < k:
                    found += 1
        for place in range(found):
            scores[row, place] = best[place] if alpha == 1.0 else exp(best[place])
        for j in range(x_indptr[row], x_indptr[row + 1]):
            x[x_indices[j]] = 0.0
