"""The area under the ROC curve, of full scores: the one metric here for which k places of a row are not enough."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from xcrepro.core import threads
from xcrepro.core.arguments import check_rows, one_of
from xcrepro.core.errors import ArgumentError
from xcrepro.core.matrices import checked_matrix
from xcrepro.core.predictions import TopK, as_float
from xcrepro.core.tensors import labels_as_matrix
from xcrepro.core.truth import as_truth


def auc(Y, scores, *, average: str | None = "macro") -> float | np.ndarray:
    """AUC, the area under the ROC curve: the chance that a relevant pair has a higher score than an irrelevant one.

    It is counted exactly, as (pairs of a relevant and an irrelevant entry in the right order + half of those that tie) / (all
    such pairs), the statistic of Mann and Whitney. MIMIC and ICD papers print both averages, in percent. AUC says little of
    rare labels in a long list: with 1,000 irrelevant rows, a relevant one at place 10 has 0.99.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth, any form :class:`xcrepro.core.truth.Truth` takes. Not in blocks: each row is compared with every other one.
    scores : sparse matrix or array_like, shape (n, L), or TopK
        Of all labels. What a sparse matrix does not store ties below all that it stores; a TopK must hold all L labels.
    average : {"macro", "micro"} or None
        ``"macro"``, the mean over labels that have a relevant and an irrelevant row. ``"micro"``, of all n L entries together.
        None, each label's.

    Returns
    -------
    float, or ndarray of float64, shape (L,)
        In [0, 1]; NaN for a label without both kinds of rows, and where no label has both.

    Raises
    ------
    ArgumentError
        For another shape, NaN, a TopK that lacks labels, and blocks.

    Examples
    --------
    >>> Y, scores = np.array([[1, 0], [0, 1], [1, 0]]), np.array([[0.9, 0.5], [0.9, 0.5], [0.8, 0.1]])
    >>> auc(Y, scores, average=None)                              # (1/2 + 0) / 2; (1/2 + 1) / 2
    array([0.25, 0.75])
    >>> auc(Y, scores), round(auc(Y, scores, average="micro"), 4)
    (0.5, 0.6667)
    """
    one_of("average", average, ("macro", "micro", None))
    if isinstance(scores, TopK):
        if scores.k < scores.n_labels or (scores.ids < 0).any():
            do = "give the matrix of scores; a list that was cut has no AUC"
            raise ArgumentError(
                "scores", f"must hold all {scores.n_labels} labels of each row", f"{scores.k} places", do
            )
        scores = np.take_along_axis(scores.scores, np.argsort(scores.ids, axis=1), axis=1)
    given = checked_matrix("scores", scores)
    truth = as_truth(labels_as_matrix("Y", Y, given.shape[1]))
    shape = truth.n_rows, truth.n_labels
    check_rows(truth.n_rows)
    if given.shape != shape:
        raise ArgumentError(
            "scores", f"must have the shape of Y, {shape}", given.shape, "blocks of rows do not add up to an AUC"
        )
    rows = np.repeat(np.arange(shape[0]), truth.sizes)
    held, stored = np.ones(rows.size, bool), np.full(shape[1], shape[0])
    if sparse.issparse(given):
        columns = given.tocsc()  # by label, rows rising
        stored, values = np.diff(columns.indptr), as_float(columns.data)
        keys = np.repeat(np.arange(shape[1], dtype=np.int64), stored) * shape[0] + columns.indices
        wanted = truth.indices * np.int64(shape[0]) + rows
        at = np.searchsorted(keys, wanted)
        held = np.append(keys, -1)[at] == wanted
        positives = values[at[held]]
    else:
        columns = values = as_float(given)
        positives = columns[rows, truth.indices]
    if np.isnan(values).any():
        raise ArgumentError("scores", "must not hold NaN", "NaN")
    label, ends = truth.indices[held], np.concatenate([[0], np.cumsum(stored)])
    positives = positives[np.lexsort((positives, label))]
    starts = np.searchsorted(np.sort(label), np.arange(shape[1] + 1))

    def by_label(lo: int, hi: int) -> list[int]:
        dense = None if sparse.issparse(given) else np.ascontiguousarray(columns[:, lo:hi].T)
        each = (
            (values[ends[l] : ends[l + 1]] if dense is None else dense[l - lo], starts[l : l + 2])
            for l in range(lo, hi)
        )
        return [_twice(own, positives[first:end]) for own, (first, end) in each]

    counts = truth.label_counts(), stored, np.full(shape[1], shape[0])
    if average == "micro":
        flat, positives = (values if sparse.issparse(given) else columns.ravel()), np.sort(positives)
        found = threads.over_rows(flat.size, lambda lo, hi: [_twice(flat[lo:hi], positives)], min_rows=_AT_ONCE)
        twice, starts = np.array([sum(each[0] for each in found)]), np.array([0, positives.size])
        relevant, stored, entries = (each.sum(keepdims=True) for each in counts)
    else:
        twice = np.concatenate(threads.over_rows(shape[1], by_label, min_rows=64))
        relevant, stored, entries = counts
    listed = np.diff(starts)
    lost = relevant - listed  # relevant ones without a score, and below them irrelevant ones
    absent = entries - stored - lost
    twice = twice - listed * listed + absent * (2 * listed + lost)
    pairs = 2 * relevant * (entries - relevant)
    each = np.divide(twice, pairs, out=np.full(pairs.size, np.nan), where=pairs > 0)
    if average is None:
        return each
    return float(np.nanmean(each)) if (pairs > 0).any() else float("nan")


_AT_ONCE = 2**20  # scores that are sorted in one go


def _twice(values: np.ndarray, positives: np.ndarray) -> int:
    """Twice the pairs of a positive and a lower value, and once those of equal ones."""
    total = 0
    for lo in range(0, values.size, _AT_ONCE):
        some = np.sort(values[lo : lo + _AT_ONCE])
        total += int(sum(np.searchsorted(some, positives, side).sum() for side in ("left", "right")))
    return total
