"""What a value counts as 0 without saying so: rows and places without predictions, rows without labels; how many, and what the
value is without them."""

from __future__ import annotations

import numpy as np

from xcrepro.core.accumulators.block import KS
from xcrepro.core.metrics import METRICS, state
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth

MOST = 0.5
"""The share of rows without a label from which on it is a warning."""


def counted(Y, top: TopK, ks, metric: str = "P@1", inverse_propensity=None, label_counts=None) -> list[str]:
    """Sentences on the rows and places of predictions that count as misses, and on rows that have no label.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L), or Truth
    top : TopK
    ks : int or sequence of int
    metric : str
        Whose value is given for the other rows, such as ``"P@1"``.
    inverse_propensity, label_counts : array_like, optional
        What that metric needs.

    Returns
    -------
    list of str
        Empty where every row has a label and as many predictions as the largest k.

    Examples
    --------
    >>> top = TopK.from_ids([[0, 1], [2, -1], [-1, -1]], n_labels=3)
    >>> for line in counted([[1, 1, 0], [0, 0, 1], [0, 0, 1]], top, 2, "P@1"):
    ...     print(line)
    1 of 3 rows have no prediction; each counts as a miss (over the other 2: P@1 = 1.000000)
    1 of 3 rows have fewer than 2 predictions; an empty place counts as a miss (over the 1 that have 2: P@1 = 1.000000)
    """
    truth = as_truth(Y)
    n, k = truth.n_rows, int(np.max(ks))
    if len(top) != n or n == 0:
        return []
    depth = (top.ids >= 0).sum(axis=1)

    def over(rows: np.ndarray, which: str) -> str:
        if not rows.any():
            return ""
        about = inverse_propensity, label_counts
        some = state.of(truth.to_csr()[rows], top.rows(rows), KS, [metric], *about).compute()
        return f" (over the {which.format(int(rows.sum()))}: {metric} = {some['value'].iloc[0]:.6f})"

    lines, none, short, bare = [], depth == 0, (depth > 0) & (depth < k), truth.sizes == 0
    if none.any():
        misses = f"have no prediction; each counts as a miss{over(~none, 'other {:,}')}"
        lines.append(f"{int(none.sum()):,} of {n:,} rows {misses}")
    if short.any():
        misses = f"an empty place counts as a miss{over(depth >= k, f'{{:,}} that have {k}')}"
        lines.append(f"{int(short.sum()):,} of {n:,} rows have fewer than {k} predictions; {misses}")
    if bare.any():
        over_rows, most = METRICS[metric.partition("@")[0]].averages == "rows", bool(bare.mean() > MOST)
        counts = "counts 0" if over_rows else "has no prediction that is right"
        rows = f"{int(bare.sum()):,} of {n:,} rows{', most of them,' * most} have no relevant label"
        do = "; --judged-only (judged_only=) leaves such rows out" * most
        lines.append(f"{rows}; each {counts}{over(~bare, 'other {:,}')}{do}")
    return lines
