"""Isotonic regression with one more pair at each place: what Venn-Abers predictors are made of.

The values of isotonic regression are the slopes of the lower convex hull of the points (pairs so far, hits so far). One more
pair is a step (1, outcome) that moves all points after it, and the value there is the slope of the tangent under both the hull
of the points before it and that of the moved ones after it. From place to place the first hull gains a point, the second loses
one.
"""

import numpy as np

from xcrepro.core.kernels import kernel


@kernel
def with_one_more(n, hits, outcome, lo, hi, out):
    """out[q], q from lo to hi: the value at place q after fitting with one more pair of that outcome (0 or 1) there.

    n, hits: of rising scores, 1 or more and 0 to n. Place 2 i + 1 is score i itself, place 2 i lies between scores i - 1 and i.
    """
    m = n.size
    x, y = np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64)
    for i in range(m):
        x[i + 1], y[i + 1] = x[i] + n[i], y[i] + hits[i]
    # The hull of the points from one on to the last, built from the right; what each point displaced, to take it back.
    right = np.zeros(m + 1, np.int64)
    at, displaced, before = np.empty(m + 1, np.int64), np.empty(m + 1, np.int64), np.empty(m + 1, np.int64)
    n_right = 0
    for p in range(m, -1, -1):
        before[p] = n_right
        size = n_right
        while size >= 2:
            a, b = right[size - 1], right[size - 2]
            if (y[a] - y[p]) * (x[b] - x[a]) < (y[b] - y[a]) * (x[a] - x[p]):
                break
            size -= 1
        at[p], displaced[p] = size, right[size]  # what is popped stays in the array until something is written over it
        right[size] = p
        n_right = size + 1
    left = np.empty(m + 1, np.int64)
    n_left, added, first = 0, 0, 0  # points below ``added`` are in the left hull; the right one begins with ``first``
    for q in range(lo, hi):
        i, own = q // 2, q % 2
        while added <= i:
            while n_left >= 2:
                a, b = left[n_left - 2], left[n_left - 1]
                if (y[b] - y[a]) * (x[added] - x[b]) < (y[added] - y[b]) * (x[b] - x[a]):
                    break
                n_left -= 1
            left[n_left] = added
            n_left += 1
            added += 1
        while first < i + own:
            right[at[first]] = displaced[first]
            n_right = before[first]
            first += 1
        # Of the left hull the first vertex whose next edge is no longer below the line to the right hull.
        low, high, value = 0, n_left - 1, 0.0
        while True:
            middle = (low + high) // 2
            a = left[middle]
            # The vertex of the right hull, counted from its left end, from where the line from a is lowest.
            begin, end = 0, n_right - 1
            while begin < end:
                half = (begin + end) // 2
                b, c = right[n_right - 1 - half], right[n_right - 2 - half]
                if (y[c] - y[b]) * (x[b] + 1 - x[a]) < (y[b] + outcome - y[a]) * (x[c] - x[b]):
                    begin = half + 1
                else:
                    end = half
            b = right[n_right - 1 - begin]
            width, height = x[b] + 1 - x[a], y[b] + outcome - y[a]
            if low == high:
                value = height / width
                break
            c = left[middle + 1]
            if (y[c] - y[a]) * width < height * (x[c] - x[a]):
                low = middle + 1
            else:
                high = middle
        out[q] = value
