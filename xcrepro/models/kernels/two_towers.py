"""Two towers: sums of word embeddings, their AdaGrad step, the contrastive loss, and one-vs-all classifiers."""

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import exp32, log, sigmoid

_ONE = np.float32(1)
# Under the root of a step: a coordinate whose gradients are all this small stays where it is.
_TINY = np.float32(1e-12)


@kernel
def embed(lo, hi, indptr, indices, data, table, out, lengths):
    """Rows lo to hi of ``out``: weighted sums of rows of ``table``, scaled to length 1; ``lengths``: before that.

    A row of length 0 stays 0.
    """
    dim = table.shape[1]
    for i in range(lo, hi):
        row = out[i]
        row[:] = np.float32(0)
        for place in range(indptr[i], indptr[i + 1]):
            word, weight = indices[place], data[place]
            for d in range(dim):
                row[d] += weight * table[word, d]
        square = 0.0
        for d in range(dim):
            square += np.float64(row[d]) * np.float64(row[d])
        length = np.sqrt(square)
        lengths[i] = length
        if length > 0:
            for d in range(dim):
                row[d] = np.float32(row[d] / length)


@kernel
def backward(lo, hi, embedded, lengths, gradient):
    """Turn the gradient by an embedding of length 1 into that by the sum it was made from, in place."""
    dim = embedded.shape[1]
    for i in range(lo, hi):
        if lengths[i] == 0:
            gradient[i] = np.float32(0)
            continue
        along = np.float32(0)
        for d in range(dim):
            along += gradient[i, d] * embedded[i, d]
        for d in range(dim):
            gradient[i, d] = (gradient[i, d] - along * embedded[i, d]) / np.float32(lengths[i])


@kernel
def adagrad(lo, hi, words, starts, rows, weights, gradient, table, squares, rate):
    """AdaGrad's step of the embeddings of words[lo:hi].

    rows[starts[j] : starts[j + 1]] are the rows of ``gradient`` that have words[j], ``weights`` its weight there. The
    sum over them is taken in their order, so that no cutting into threads can change it.
    """
    dim = table.shape[1]
    total = np.empty(dim, np.float32)
    for j in range(lo, hi):
        total[:] = np.float32(0)
        for place in range(starts[j], starts[j + 1]):
            row, weight = rows[place], weights[place]
            for d in range(dim):
                total[d] += weight * gradient[row, d]
        word = words[j]
        for d in range(dim):
            squares[word, d] += total[d] * total[d]
            table[word, d] -= rate * total[d] / np.sqrt(squares[word, d] + _TINY)


@kernel
def contrast(lo, hi, scores, positives, indptr, indices, candidates):
    """Turn scores of points lo to hi into derivatives of -log softmax of their positive, in place; gives the losses' sum.

    positives: the column of each. candidates: the label of each column, ascending. indptr, indices: the points' relevant
    labels, ascending; those that are not the positive take no part.
    """
    total = 0.0
    for i in range(lo, hi):
        row, positive = scores[i], positives[i]
        place = 0
        for label in indices[indptr[i] : indptr[i + 1]]:
            while place < candidates.size and candidates[place] < label:
                place += 1
            if place < candidates.size and candidates[place] == label and place != positive:
                row[place] = -np.inf
        largest = row[0]
        for value in row:
            largest = max(largest, value)
        own = row[positive] - largest
        mass = 0.0
        for c in range(row.size):
            row[c] = exp32(row[c] - largest)
        for c in range(row.size):
            mass += row[c]
        total += log(mass) - own
        for c in range(row.size):
            row[c] = np.float32(row[c] / mass)
        row[positive] -= _ONE
    return total


@kernel
def fit_classifiers(
    lo, hi, starts, points, relevant, embedded, start_weights, start_bias, strength, steps, weights, biases
):
    """A logistic regression for each of the labels lo to hi, by Nesterov's accelerated gradient, restarted.

    Label l has the pairs starts[l] to starts[l + 1]: ``points`` are rows of ``embedded`` (float32, length 1 or 0),
    ``relevant`` whether the label is. Minimised: the pairs' log losses of embedded . w + b, and strength / 2 times the
    squared distance of (w, b) from where they start, (start_weights[l], start_bias), in float64.
    """
    dim = embedded.shape[1]
    now, ahead, before, slope = np.empty(dim + 1), np.empty(dim + 1), np.empty(dim + 1), np.empty(dim + 1)
    for label in range(lo, hi):
        first, last = starts[label], starts[label + 1]
        for d in range(dim):
            now[d] = ahead[d] = start_weights[label, d]
        now[dim] = ahead[dim] = start_bias
        # No second derivative is larger: a pair's is at most (1 + 1) / 4, as its row has length 1 and its bias 1.
        rate = 1.0 / (strength + 0.5 * (last - first))
        momentum = 1.0
        for _ in range(steps if last > first else 0):
            for d in range(dim):
                slope[d] = strength * (ahead[d] - start_weights[label, d])
            slope[dim] = strength * (ahead[dim] - start_bias)
            for place in range(first, last):
                row = embedded[points[place]]
                margin = ahead[dim]
                for d in range(dim):
                    margin += ahead[d] * row[d]
                error = sigmoid(margin) - (1.0 if relevant[place] else 0.0)
                for d in range(dim):
                    slope[d] += error * row[d]
                slope[dim] += error
            backwards = 0.0
            for d in range(dim + 1):
                before[d] = now[d]
                now[d] = ahead[d] - rate * slope[d]
                backwards += slope[d] * (now[d] - before[d])
            if backwards > 0:  # it has gone too far: start again from rest
                momentum = 1.0
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            for d in range(dim + 1):
                ahead[d] = now[d] + (momentum - 1.0) / following * (now[d] - before[d])
            momentum = following
        weights[label] = now[:dim].astype(np.float32)
        biases[label] = np.float32(now[dim])
