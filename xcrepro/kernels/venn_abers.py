"""Isotonic regression with one more pair at each place: what Venn-Abers predictors are made of."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def pools(n, hits):
    """Where the blocks of isotonic regression begin: (blocks + 1,) indices into the rising scores with n pairs and hits each."""
    start = np.empty(n.size + 1, np.int64)
    size = np.empty(n.size, np.int64)
    found = np.empty(n.size, np.int64)
    top = 0
    for i in range(n.size):
        first, pairs, good = i, n[i], hits[i]
        while top > 0 and found[top - 1] * pairs >= good * size[top - 1]:
            top -= 1
            first, pairs, good = start[top], pairs + size[top], good + found[top]
        start[top], size[top], found[top] = first, pairs, good
        top += 1
    start[top] = n.size
    return start[: top + 1].copy()


@njit(nogil=True, cache=True)
def with_one_more(n, hits, start, outcome, lo, hi, out):
    """out[q], q from lo to hi: the value at place q after fitting with one more pair of that outcome (0 or 1) there.

    Place 2 i + 1 is score i itself, place 2 i lies between the scores i - 1 and i; start: blocks of :func:`pools`. Only the pools
    around the new pair can change, so each fit begins with them.
    """
    n_blocks = start.size - 1
    block = np.empty(n.size, np.int64)
    size, found = np.zeros(n_blocks, np.int64), np.zeros(n_blocks, np.int64)
    for b in range(n_blocks):
        for i in range(start[b], start[b + 1]):
            block[i] = b
            size[b] += n[i]
            found[b] += hits[i]
    pairs, good = np.empty(n.size + 2, np.int64), np.empty(n.size + 2, np.int64)
    for q in range(lo, hi):
        i = q // 2  # the score itself, or the first one above
        own = q % 2 == 1
        if own or (0 < i < n.size and block[i - 1] == block[i]):
            left, right = block[i] - 1, block[i] + 1
            first, last = start[block[i]], start[block[i] + 1]
        else:  # between two blocks, or outside
            left, right = (block[i - 1] if i > 0 else -1), (block[i] if i < n.size else n_blocks)
            first, last = i, i
        top, mine = 0, -1
        # First the scores below, then the new pair (with its own score), the scores above, and whole blocks above.
        below, above = i - first, last - i - own
        step = 0
        while True:
            new = step == below
            if new:
                p, h = 1, outcome
                if own:
                    p, h = p + n[i], h + hits[i]
            elif step < below:
                p, h = n[first + step], hits[first + step]
            elif step <= below + above:
                at = i + own + step - below - 1
                p, h = n[at], hits[at]
            elif right < n_blocks:
                p, h = size[right], found[right]
                right += 1
            else:
                break
            alone = True
            while True:
                if top > 0 and good[top - 1] * p >= h * pairs[top - 1]:
                    top -= 1
                    p, h = p + pairs[top], h + good[top]
                    new = new or mine == top
                elif top == 0 and left >= 0 and found[left] * p >= h * size[left]:
                    p, h = p + size[left], h + found[left]
                    left -= 1
                else:
                    break
                alone = False
            pairs[top], good[top] = p, h
            if new:
                mine = top
            top += 1
            if step > below + above and alone:
                break  # blocks rise, so those after it stay as they are
            step += 1
        out[q] = good[mine] / pairs[mine]
