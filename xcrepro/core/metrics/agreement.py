"""Two models on the same points, without any truth: how much of what they predict is the same, and which labels come and go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core.arguments import check_places, check_rows, cut_offs, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd


def overlap(a: TopK, b: TopK, ks=(1, 3, 5)) -> np.ndarray:
    """The share of the first k predictions that two models have in common, whatever their order; the mean over rows.

    overlap@k = |A_k ∩ B_k| / max(|A_k|, |B_k|), where A_k and B_k are the first k predictions of a row, or all that it has.
    At k = 1 it is the share of rows in which both name the same label first.

    Parameters
    ----------
    a, b : TopK
        Predictions of the same rows and labels, in the same order. Which is which makes no difference.
    ks : int or sequence of int
        Each at most the places that both hold.

    Returns
    -------
    numpy.ndarray
        float64, one value in [0, 1] for each k. A row without a prediction of either counts 1, since both say the same.

    Raises
    ------
    ArgumentError
        For predictions of other rows or labels, no rows, and a k above ``a.k`` or ``b.k``.

    Examples
    --------
    >>> old = TopK.from_ids([[0, 1, 2], [3, 0, -1]], n_labels=5)
    >>> new = TopK.from_ids([[1, 0, 4], [3, -1, -1]], n_labels=5)
    >>> overlap(old, new, ks=(1, 2, 3)).round(3).tolist()
    [0.5, 0.75, 0.583]
    """
    shared, sizes = _shared(a, b)
    ks = cut_offs(ks)
    for top in (a, b):
        check_places("ks", int(ks.max()), top.k)
    longer = np.minimum(np.max(sizes, axis=0)[:, None], ks)
    return np.where(longer == 0, 1.0, shared[:, ks - 1] / np.maximum(longer, 1)).mean(axis=0)


def rank_biased_overlap(a: TopK, b: TopK, p: float = 0.9) -> float:
    r"""How alike two rankings are, the first places counting most; the mean over rows.

    .. math::

        (1 - p) \sum_{d \ge 1} p^{d-1} \frac{|A_{1:d} \cap B_{1:d}|}{d}

    RBO is the overlap at depth d, averaged over all d with weights that fall by the factor p from one depth to the next.
    Beyond the places that are stored it is extrapolated (Webber, Moffat and Zobel 2010, equation 32), rows of unequal length
    included. The first 1 / (1 - p) places have most of the weight: ten at 0.9.

    Parameters
    ----------
    a, b : TopK
        Predictions of the same rows and labels, in the same order, of as many places each as there are.
    p : float
        Above 0 and below 1.

    Returns
    -------
    float
        In [0, 1]; 1 for the same rankings. Of a row without a prediction of one model 0, of both 1.

    Raises
    ------
    ArgumentError
        For predictions of other rows or labels, no rows, and a p outside its range.

    References
    ----------
    * Webber, Moffat and Zobel, ACM TOIS 2010, https://doi.org/10.1145/1852102.1852106

    Examples
    --------
    >>> old = TopK.from_ids([[0, 1, 2]], n_labels=5)
    >>> rank_biased_overlap(old, old)
    1.0
    >>> swapped_last, swapped_first = (TopK.from_ids([ids], n_labels=5) for ids in ([0, 2, 1], [1, 0, 2]))
    >>> round(rank_biased_overlap(old, swapped_last), 3), round(rank_biased_overlap(old, swapped_first), 3)
    (0.955, 0.9)
    """
    p = real_number("p", p)
    if not 0 < p < 1:
        raise ArgumentError("p", "must lie above 0 and below 1", p)
    shared, sizes = _shared(a, b)
    short, long = np.sort(sizes, axis=0)[:, :, None]
    depth = np.arange(1, shared.shape[1] + 1)
    powers = np.cumprod(np.full(shared.shape[1], p))  # p^d: a product has the same bits everywhere, a power has not
    # What the overlap would be if the shorter list went on as it ended: none of the formula's terms lies below its length.
    at_short, at_long = (np.take_along_axis(shared, np.maximum(size, 1) - 1, axis=1) for size in (short, long))
    beyond = np.where(depth > short, at_short * (depth - short) / np.maximum(short, 1), 0)
    summed = (np.where(depth <= long, (shared + beyond) / depth, 0) * powers).sum(axis=1)
    rest = (at_long - at_short) / np.maximum(long, 1) + at_short / np.maximum(short, 1)
    last = powers[np.maximum(long, 1) - 1]
    found = (1 - p) / p * summed + (rest * last)[:, 0]
    found = np.where(short[:, 0] > 0, found, long[:, 0] == 0)
    return min(float(found.mean()), 1.0)


def changed_labels(
    a: TopK, b: TopK, k: int = 5, *, label_counts=None, label_names: Sequence[str] = (), most: int | None = None
) -> pd.DataFrame:
    """Which labels come and go between two models: in how many rows each has them among the first k.

    Parameters
    ----------
    a, b : TopK
        Predictions of the same rows and labels, in the same order.
    k : int
        Places that count, at most those that both hold.
    label_counts : array_like of int, shape (L,), optional
        How many training points each label has. Given, the rows of the table are bins of these counts
        (those of :func:`xcrepro.metrics.binned_macro_f1`) and not single labels.
    label_names : sequence of str
        Of all labels; empty: ids are shown.
    most : int, optional
        How many labels at most.

    Returns
    -------
    pandas.DataFrame
        ``label`` (or ``train count``), ``a`` and ``b`` (predictions of each model), ``both`` (of both for the same row), and
        ``gone`` (only a) and ``new`` (only b). Labels that nobody predicts are left out; those that change most come first,
        then by id.

    Raises
    ------
    ArgumentError
        For predictions of other rows or labels, no rows, a k above ``a.k`` or ``b.k``, counts or names of another length.

    Examples
    --------
    >>> old = TopK.from_ids([[0, 1], [0, 2]], n_labels=4)
    >>> new = TopK.from_ids([[0, 3], [2, 3]], n_labels=4)
    >>> changed_labels(old, new, 2, label_names=["cat", "dog", "fox", "lynx"])
      label  a  b  both  gone  new
    0  lynx  0  2     0     0    2
    1   cat  2  1     1     1    0
    2   dog  1  0     0     1    0
    3   fox  1  1     1     0    0
    >>> changed_labels(old, new, 2, label_counts=[9, 2, 2, 0])
      train count  a  b  both  gone  new
    0           0  0  2     0     0    2
    1         1-9  4  2     2     2    0
    """
    import pandas as pd

    from xcrepro.core.metrics.labelwise import frequency_bins

    _check_pair(a, b)
    k = whole_number("k", k, 1)
    for top in (a, b):
        check_places("k", k, top.k)
    if len(label_names) not in (0, a.n_labels):
        raise ArgumentError("label_names", f"must be one for each of {a.n_labels} labels, or none", len(label_names))
    L, names, what = a.n_labels, label_names, "label"
    of = np.arange(L)
    if label_counts is not None:
        (of, names), what = frequency_bins(label_counts, L), "train count"
    ours, theirs = (_keys(top.head(k))[0] for top in (a, b))
    both = np.intersect1d(ours, theirs, assume_unique=True)
    size = len(names) or L
    counts = [np.bincount(of[some % L], minlength=size) for some in (ours, theirs, both)]
    table = pd.DataFrame({what: list(names) or np.arange(L), **dict(zip(("a", "b", "both"), counts, strict=True))})
    table["gone"], table["new"] = table["a"] - table["both"], table["b"] - table["both"]
    table = table[(table["a"] > 0) | (table["b"] > 0)]
    if what == "label":
        table = table.iloc[np.argsort(-(table["gone"] + table["new"]).to_numpy(), kind="stable")]
    return table[:most].reset_index(drop=True)


def _check_pair(a: TopK, b: TopK) -> None:
    """Refuse predictions that are not of the same rows and labels."""
    for what, of_a, of_b in (("rows", len(a), len(b)), ("labels", a.n_labels, b.n_labels)):
        if of_a != of_b:
            raise ArgumentError("b", f"must have the {of_a} {what} of a", of_b)
    check_rows(len(a), "a")


def _keys(top: TopK) -> tuple[np.ndarray, np.ndarray]:
    """Row and label of each prediction in one number, and its place."""
    row, place = np.nonzero(top.ids >= 0)
    return row * np.int64(top.n_labels) + top.ids[row, place], place


def _shared(a: TopK, b: TopK) -> tuple[np.ndarray, np.ndarray]:
    """(n, d) labels that both have among the first 1 to d places of a row, and (2, n) predictions of each."""
    _check_pair(a, b)
    (keys, place), (other_keys, other_place) = _keys(a), _keys(b)
    both, mine, other = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    depth = max(a.k, b.k)
    # A label is shared from the depth on at which the second of the two has it.
    at = both // a.n_labels * depth + np.maximum(place[mine], other_place[other])
    shared = np.bincount(at, minlength=len(a) * depth).reshape(len(a), depth).cumsum(axis=1)
    return shared, np.array([(top.ids >= 0).sum(axis=1) for top in (a, b)])
