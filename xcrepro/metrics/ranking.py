"""Ranking metrics at k: each a fold over the rows of ground truth and predictions.

Every metric is ``f(Y, top, ks=(1, 3, 5), ...)`` and returns a float64 array with one value for each k, in the order
of ``ks``. All are fractions (published tables multiply by 100). Common to all:

- ``Y`` is (n, L), any form :class:`xcrepro.truth.Truth` takes: positive = relevant; ``top`` is a
  :class:`xcrepro.predictions.TopK` over the same n rows and L labels. Ties were settled when it was made.
- ``Y`` may also be an iterable of ``(Y, top)`` blocks, with ``top`` left out: predictions larger than memory stream
  through, and the result is the same to the last bit as in one piece.
- A place that holds no prediction is a miss: P@k divides by k always.
- A row without labels counts as a row with value 0 in every mean; no rows at all is an error.
- A k above ``top.k``, the places kept, is refused.
- ``inverse_propensity`` is (L,), positive and finite: :func:`xcrepro.propensity.inverse` of the train counts.
- Whatever breaks a rule raises :class:`xcrepro.errors.ArgumentError`.

Written out: r is a place 1..k, y_r = 1 if the label there is relevant, w_r its inverse propensity, |y| the number of
relevant labels, I(m) = sum over r = 1..m of 1/log2(r+1).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from xcrepro import threads
from xcrepro.arguments import check_places, check_rows, cut_offs, label_values, one_of, real_number
from xcrepro.errors import ArgumentError
from xcrepro.kernels import ranking as kernel
from xcrepro.kernels import truth as truth_kernel
from xcrepro.predictions import TopK, check_pair
from xcrepro.truth import Truth

KS = (1, 3, 5)
_SLOT_BYTES = 8 * 2**20  # per-row values that are held at a time

LABEL_WEIGHTS = -1  # not of the kernel: the sum over rows of the weights of all their labels, the same at each k
_BEST = {kernel.BEST_HITS, kernel.BEST_DCG, kernel.BEST_NDCG_LABELS}
_GIVEN_TRUTH = {kernel.PS_RECALL, kernel.PS_RECIPROCAL, kernel.PS_ADG, kernel.PS_F_SET, kernel.PS_F_PRINTED}
_WEIGHTED = _BEST | _GIVEN_TRUTH | {kernel.PS_HITS, kernel.PS_DCG, kernel.PS_NDCG_LABELS}


class Sums:
    """Sums over rows of the kernel's columns, at each k; feed it blocks in row order with :meth:`add`.

    Parameters
    ----------
    ks : sequence of int
    columns : iterable of int
        Of :mod:`xcrepro.kernels.ranking`, and :data:`LABEL_WEIGHTS`.
    inverse_propensity : float array, (L,), optional
        Needed by the propensity-scored columns.
    beta : float
        Of the F columns, above 0.

    Attributes
    ----------
    n_rows, n_labels : int
        Rows so far, and L.
    n_true : int
        The sum over rows of their numbers of relevant labels.
    label_weights : float
        The sum over rows of the weights of all their labels, where :data:`LABEL_WEIGHTS` was asked for.

    Raises
    ------
    ArgumentError
        For a propensity-scored column without ``inverse_propensity``.
    """

    def __init__(self, ks: Sequence[int], columns: Iterable[int], inverse_propensity=None, beta: float = 1.0) -> None:
        self.ks = cut_offs(ks)
        self._sorted = np.unique(self.ks)
        wanted = set(columns)
        self._sum_weights = LABEL_WEIGHTS in wanted
        self.columns = np.array(sorted(wanted - {LABEL_WEIGHTS}), np.int64)
        self._beta2 = real_number("beta", beta, above=0) ** 2
        self._weights = inverse_propensity
        if inverse_propensity is None and wanted & _WEIGHTED:
            do = "xcrepro.propensity.inverse(label_counts, n_points, A, B)"
            raise ArgumentError("inverse_propensity", "must be given for a propensity-scored metric", None, do)
        self._best, self._given_truth = bool(wanted & _BEST), bool(wanted & _GIVEN_TRUTH)
        self._sums = np.zeros((self.columns.size, self._sorted.size))
        self.n_rows = 0
        self.n_labels = 0
        self.n_true = 0  # sum of |y|
        self.label_weights = 0.0  # what LABEL_WEIGHTS asks for

    def add(self, Y, top: TopK, n_relevant=None) -> Sums:
        """Fold in one block of rows.

        Parameters
        ----------
        Y, top
            (n, L) and its TopK; see the module. L is the same in every block.
        n_relevant : float array, (n,), optional
            The complete truth's label counts of these rows (:func:`check_n_relevant`), where a column needs them.

        Returns
        -------
        Sums
            Itself.

        Raises
        ------
        ArgumentError
            For a block of another shape, a k above ``top.k``, and ``n_relevant`` that is needed and missing.
        """
        truth = Truth.of(Y)
        check_pair(truth, top)
        if self.n_rows and truth.n_labels != self.n_labels:
            raise ArgumentError("Y", f"must have {self.n_labels} labels in every block", truth.n_labels)
        self.n_labels = truth.n_labels
        check_places("ks", int(self._sorted[-1]), top.k)
        weights, given = np.zeros(0), np.zeros(0)
        if self._weights is not None:
            if not self.n_rows:
                self._weights = label_values("inverse_propensity", self._weights, truth.n_labels, zero=False)
            weights = self._weights
        if self._given_truth:
            given = check_n_relevant(n_relevant, truth.n_rows)
        k_max = int(self._sorted[-1])
        ids = np.ascontiguousarray(top.ids[:, :k_max])
        sizes = truth.sizes
        found = np.zeros(ids.shape, np.bool_)
        best = np.zeros((truth.n_rows if self._best else 0, k_max))
        rows = found, ids, sizes, weights, best, given
        slot = 8 * self.columns.size * self._sorted.size
        block = max(1, min(truth.n_rows, _SLOT_BYTES // slot))
        out = np.empty((block, self.columns.size, self._sorted.size))
        for first in range(0, truth.n_rows, block):
            n = min(block, truth.n_rows - first)

            def fill(lo: int, hi: int, first: int = first) -> None:
                # All three on one stretch of rows, so that what one writes is still in the cache for the next.
                lo, hi = first + lo, first + hi
                truth_kernel.hits(truth.indptr, truth.indices, ids, lo, hi, found)
                if self._best:
                    truth_kernel.best_weights(truth.indptr, truth.indices, weights, lo, hi, best)
                kernel.rows(*rows, self._beta2, self._sorted, self.columns, lo, hi, first, out)

            threads.over_rows(n, fill)
            kernel.add(out, n, self._sums)
        self.n_rows += truth.n_rows
        self.n_true += int(sizes.sum())
        if self._sum_weights:
            # Added up row after row, as the kernel does, so that cutting into blocks does not change the last bit.
            self.label_weights = np.add.accumulate(np.append(self.label_weights, truth.weight_sums(weights)))[-1]
        return self

    def with_sums(self, sums: np.ndarray, n_true: float, label_weights: float) -> Sums:
        """The same with other sums, of as many rows.

        Parameters
        ----------
        sums : float64 array, (columns x K,)
            By column, then by k rising.
        n_true, label_weights : float
            In place of the attributes.

        Returns
        -------
        Sums
            Another one; this stays as it is.
        """
        other = copy.copy(self)
        other._sums, other.n_true, other.label_weights = sums.reshape(self._sums.shape), n_true, label_weights
        return other

    def __getitem__(self, column: int) -> np.ndarray:
        """The sum of a column, one value for each k as asked for."""
        at = int(np.searchsorted(self.columns, column))
        return self._sums[at][np.searchsorted(self._sorted, self.ks)]

    def mean(self, column: int) -> np.ndarray:
        """The mean over rows of a column, float64 (K,), in the order of ``ks`` as asked for."""
        return self[column] / self.n_rows


def _mean(column: int) -> tuple[tuple[int, ...], Callable[[Sums], np.ndarray]]:
    return (column,), lambda s: s.mean(column)


def _ratio(above: int, below: int) -> tuple[tuple[int, ...], Callable[[Sums], np.ndarray]]:
    return (above, below), lambda s: ratio(s[above], s[below])


_DECIDED = kernel.HITS, kernel.PREDICTED
_DECIDED_PS = kernel.PS_HITS, kernel.PREDICTED, LABEL_WEIGHTS
# What is made of the sums, by the name under which `evaluate` reports it: the columns it needs, and the formula.
FORMULAS: dict[str, tuple[tuple[int, ...], Callable[[Sums], np.ndarray]]] = {
    "P": ((kernel.HITS,), lambda s: s.mean(kernel.HITS) / s.ks),
    "R": _mean(kernel.RECALL),
    "nDCG": _mean(kernel.NDCG_LABELS),
    "nDCG (ideal k)": ((kernel.DCG,), lambda s: s.mean(kernel.DCG) / perfect_gain(s.ks)),
    "MRR": _mean(kernel.FIRST),
    "MRR (relevant)": _mean(kernel.RECIPROCAL),
    "ADG": _mean(kernel.ADG),
    "F": _mean(kernel.F_SET),
    "F (printed)": _mean(kernel.F_PRINTED),
    "micro-F1": (_DECIDED, lambda s: ratio(2.0 * s[kernel.HITS], s[kernel.PREDICTED] + s.n_true)),
    "Hamming": (_DECIDED, lambda s: (s.n_true + s[kernel.PREDICTED] - 2.0 * s[kernel.HITS]) / s.n_rows),
    "abandonment": ((kernel.SERVED,), lambda s: 1.0 - s.mean(kernel.SERVED)),
    "PSP": _ratio(kernel.PS_HITS, kernel.BEST_HITS),
    "PSP (bare)": ((kernel.PS_HITS,), lambda s: s.mean(kernel.PS_HITS) / s.ks),
    "PSnDCG": _ratio(kernel.PS_NDCG_LABELS, kernel.BEST_NDCG_LABELS),
    "PSnDCG (ideal k)": _ratio(kernel.PS_DCG, kernel.BEST_DCG),
    "PSnDCG (bare)": _mean(kernel.PS_NDCG_LABELS),
    "PSnDCG (bare, ideal k)": ((kernel.PS_DCG,), lambda s: s.mean(kernel.PS_DCG) / perfect_gain(s.ks)),
    "PS-Hamming": (_DECIDED_PS, lambda s: (s.label_weights + s[kernel.PREDICTED] - 2.0 * s[kernel.PS_HITS]) / s.n_rows),
    "PS-R": _mean(kernel.PS_RECALL),
    "PS-MRR (relevant)": _mean(kernel.PS_RECIPROCAL),
    "PS-ADG": _mean(kernel.PS_ADG),
    "PS-F": _mean(kernel.PS_F_SET),
    "PS-F (printed)": _mean(kernel.PS_F_PRINTED),
}


def values(
    names: Sequence[str], Y, top=None, ks=KS, inverse_propensity=None, n_relevant=None, beta: float = 1.0
) -> dict[str, np.ndarray]:
    """Several of :data:`FORMULAS` in one pass over the rows.

    Parameters
    ----------
    names : sequence of str
        Keys of :data:`FORMULAS`.
    Y, top, ks, inverse_propensity
        See the module.
    n_relevant : float array, (n,), optional
        The complete truth's label counts (:func:`check_n_relevant`), where a formula needs them.
    beta : float
        Of the F formulas, above 0.

    Returns
    -------
    dict of str to ndarray
        Name -> float64 (K,), one value for each k.

    Raises
    ------
    ArgumentError
        As the module says, and for a formula whose ``inverse_propensity`` or ``n_relevant`` is missing.
    """
    columns = {column for name in names for column in FORMULAS[name][0]}
    sums = Sums(ks, columns, inverse_propensity, beta)
    for truth, block, of_block in blocks(Y, top, n_relevant):
        sums.add(truth, block, of_block)
    check_rows(sums.n_rows)
    return {name: FORMULAS[name][1](sums) for name in names}


def blocks(Y, top: TopK | None, n_relevant=None) -> Iterator[tuple[Truth, TopK, np.ndarray | None]]:
    """What a metric was given, block by block.

    Parameters
    ----------
    Y, top
        A truth and its TopK; or an iterable of such pairs as ``Y``, with ``top`` None.
    n_relevant : float array, (n,), optional
        Of all rows; it is cut into the same blocks.

    Yields
    ------
    truth : Truth
    top : TopK
    n_relevant : ndarray or None
        Of the block's rows.

    Raises
    ------
    ArgumentError
        For a single ``Y`` without ``top``.
    """
    if top is not None:
        yield Truth.of(Y), top, n_relevant
    elif hasattr(Y, "shape"):
        raise ArgumentError("top", "must be given with a single Y", None, "or pass an iterable of (Y, top) pairs as Y")
    else:
        first = 0
        for truth, block in Y:
            truth = Truth.of(truth)
            of_block = None if n_relevant is None else np.asarray(n_relevant)[first : first + truth.n_rows]
            first += truth.n_rows
            yield truth, block, of_block


def check_n_relevant(n_relevant, n_rows: int) -> np.ndarray:
    """The complete truth's label counts, checked.

    Parameters
    ----------
    n_relevant : float array, (n,)
        Finite, 0 or more.
    n_rows : int
        What n must be.

    Returns
    -------
    ndarray of float64, (n,)

    Raises
    ------
    ArgumentError
        Where they are missing, of another shape, negative or not finite.
    """
    if n_relevant is None:
        do = "the number of relevant labels of each row in the COMPLETE truth (jain16, theorem 4.2); "
        do += "dividing by the observed count is biased"
        raise ArgumentError("n_relevant", "must be given with inverse_propensity", None, do)
    values = np.ascontiguousarray(n_relevant, np.float64)
    if values.shape != (n_rows,) or not (np.isfinite(values) & (values >= 0)).all():
        raise ArgumentError("n_relevant", f"must hold {n_rows} numbers, 0 or more", f"an array of shape {values.shape}")
    return values


def precision(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    """P@k: the mean over rows of (1/k) sum of y_r (xcrepo page; coverage, eq. 1).

    k divides also where a row has fewer than k predictions or fewer than k labels, so even a perfect ranking stays
    below 1 on rows with |y| < k.

    Parameters
    ----------
    Y, top, ks
        See the module.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)   # hits: 1 0 1 and 0 1 0
    >>> precision(Y, top, ks=(1, 2, 3))
    array([0.5, 0.5, 0.5])
    """
    return values(["P"], Y, top, ks)["P"]


def recall(Y, top: TopK | None = None, ks=KS, *, inverse_propensity=None, n_relevant=None) -> np.ndarray:
    """R@k: the mean over rows of (1/|y|) sum of y_r (coverage, eq. 1).

    Parameters
    ----------
    Y, top, ks
        See the module.
    inverse_propensity : array_like of float, shape (L,), optional
        Gives the unbiased form of jain16, table 1 (b): (1/n_relevant) sum of w_r y_r; it may exceed 1. For the case of
        corollary 4.2.1 (labels kept with probability g_l/|y*|, g known) pass 1/g here and ones as ``n_relevant``.
    n_relevant : array_like of float, shape (n,), optional
        The number of relevant labels in the complete truth; goes with ``inverse_propensity``.

    Returns
    -------
    ndarray of float64, shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> recall(Y, top, ks=(1, 2, 3))
    array([0.25, 0.75, 1.  ])
    >>> recall(Y, top, ks=(1, 3), inverse_propensity=np.array([2.0, 4.0, 1.0, 1.0]), n_relevant=np.array([4, 4]))
    array([0.25 , 0.875])
    """
    return _per_relevant("R", Y, top, ks, inverse_propensity, n_relevant)


def ndcg(Y, top: TopK | None = None, ks=KS, *, ideal: str = "labels") -> np.ndarray:
    """nDCG@k: the mean over rows of the discounted gain, sum of y_r / log2(r+1), over its ideal.

    Parameters
    ----------
    Y, top, ks
        See the module.
    ideal : {"labels", "k"}
        ``"labels"`` divides by I(min(k, |y|)), so that a perfect ranking has 1 (the repository's page and numbers,
        reeval appendix B); ``"k"`` divides by I(k) whatever |y| is (jain16 table 1, coverage eq. 2). nDCG@1 = P@1 in
        both.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[0, 1, 0, 0]])
    >>> top = TopK.from_ids([[3, 1, 0]], n_labels=4)              # the one label at place 2
    >>> ndcg(Y, top, ks=(1, 3)).round(4), ndcg(Y, top, ks=(1, 3), ideal="k").round(4)
    (array([0.    , 0.6309]), array([0.    , 0.2961]))
    """
    name = "nDCG" if one_of("ideal", ideal, ("labels", "k")) == "labels" else "nDCG (ideal k)"
    return values([name], Y, top, ks)[name]


def psp(Y, top: TopK | None = None, ks=KS, *, inverse_propensity, normalize: bool = True) -> np.ndarray:
    """PSP@k, propensity-scored precision.

    Parameters
    ----------
    Y, top, ks, inverse_propensity
        See the module.
    normalize : bool
        True gives what tables publish, the ratio sum_i G_i / sum_i G*_i, where G_i = (1/k) sum of w_r y_r and G*_i is
        the same for the best ranking of the row's own labels (by falling w): in [0, 1] (jain16, section 7: "100 G(yhat)
        / G(y)"; the page's scripts). False gives the page's formula and jain16 table 1 (a), the mean of G_i, an
        unbiased estimate of P@k on the complete truth; it can exceed 1.

    Returns
    -------
    ndarray of float64, shape (K,)
        A ratio of sums: rows with rare labels weigh more. If no label of Y is relevant the ratio is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> w = np.array([2.0, 4.0, 1.5, 1.0])
    >>> psp(Y, top, ks=(1, 3), inverse_propensity=w)              # 2/(2+4), (2+1.5+4)/(2+1.5+4)
    array([0.33333333, 1.        ])
    >>> psp(Y, top, ks=(1, 3), inverse_propensity=w, normalize=False)
    array([1.  , 1.25])
    """
    name = "PSP" if normalize else "PSP (bare)"
    return values([name], Y, top, ks, inverse_propensity)[name]


def psndcg(
    Y, top: TopK | None = None, ks=KS, *, inverse_propensity, normalize: bool = True, ideal: str = "labels"
) -> np.ndarray:
    """PSnDCG@k, propensity-scored nDCG.

    Parameters
    ----------
    Y, top, ks, inverse_propensity
        See the module.
    normalize : bool
        True gives the ratio sum_i G_i / sum_i G*_i as in :func:`psp`, G_i = sum of w_r y_r / log2(r+1), over the row's
        normaliser; False gives the mean of G_i, which can exceed 1.
    ideal : {"labels", "k"}
        The row's normaliser. ``"labels"``: I(min(k, |y|)), as the repository's and napkinXC's programs compute it;
        ``"k"``: I(k), as the page and jain16 table 1 write it. I(k) is constant and cancels in the ratio, I(min(k,
        |y|)) does not, so the two ratios differ slightly wherever rows have fewer than k labels.

    Returns
    -------
    ndarray of float64, shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> w = np.array([2.0, 4.0, 1.5, 1.0])
    >>> psndcg(Y, top, ks=(1, 3), inverse_propensity=w).round(4)
    array([0.3333, 0.725 ])
    >>> psndcg(Y, top, ks=(1, 3), inverse_propensity=w, ideal="k").round(4)
    array([0.3333, 0.7592])
    >>> psndcg(Y, top, ks=(1, 3), inverse_propensity=w, normalize=False, ideal="k").round(4)
    array([1.    , 1.2374])
    """
    variant = [] if normalize else ["bare"]
    variant += ["ideal k"] if one_of("ideal", ideal, ("labels", "k")) == "k" else []
    name = f"PSnDCG ({', '.join(variant)})" if variant else "PSnDCG"
    return values([name], Y, top, ks, inverse_propensity)[name]


def mrr(
    Y, top: TopK | None = None, ks=KS, *, over: str = "first", inverse_propensity=None, n_relevant=None
) -> np.ndarray:
    """MRR@k, mean reciprocal rank.

    Parameters
    ----------
    Y, top, ks
        See the module.
    over : {"first", "relevant"}
        ``"first"``, the usual one: the mean over rows of 1/rank of the first hit, 0 without a hit up to k.
        ``"relevant"``, that of jain16 table 1 (b): the mean over rows of (1/|y|) sum of y_r / r, all hits counted.
    inverse_propensity, n_relevant
        As in :func:`recall`, with ``over="relevant"`` only: its unbiased form (1/n_relevant) sum of w_r y_r / r.

    Returns
    -------
    ndarray of float64, shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> mrr(Y, top, ks=(1, 3))                                    # (1 + 0)/2, (1 + 1/2)/2
    array([0.5 , 0.75])
    >>> mrr(Y, top, ks=(1, 3), over="relevant").round(4)          # ((1 + 1/3)/2 + 1/2)/2
    array([0.25  , 0.5833])
    """
    if one_of("over", over, ("first", "relevant")) == "relevant":
        return _per_relevant("MRR (relevant)", Y, top, ks, inverse_propensity, n_relevant)
    if inverse_propensity is not None:
        raise ArgumentError("over", "must be 'relevant' for the propensity-scored form", "'first'")
    return values(["MRR"], Y, top, ks)["MRR"]


def adg(Y, top: TopK | None = None, ks=KS, *, inverse_propensity=None, n_relevant=None) -> np.ndarray:
    """ADG@k, average discounted gain: the mean over rows of (1/|y|) sum of y_r / log2(r+1) (jain16, table 1 (b)).

    The paper does not state the logarithm's base; it is 2 here, so that a hit at place 1 counts 1.

    Parameters
    ----------
    Y, top, ks
        See the module.
    inverse_propensity, n_relevant
        As in :func:`recall`, for the unbiased form.

    Returns
    -------
    ndarray of float64, shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> adg(Y, top, ks=(1, 3)).round(4)                           # ((1 + 1/2)/2 + 1/log2(3))/2
    array([0.25  , 0.6905])
    """
    return _per_relevant("ADG", Y, top, ks, inverse_propensity, n_relevant)


def f_beta(
    Y,
    top: TopK | None = None,
    ks=KS,
    *,
    beta: float = 1.0,
    denominator: str = "set",
    inverse_propensity=None,
    n_relevant=None,
) -> np.ndarray:
    """F_beta@k over rows: the mean of each row's F-score of the set of its top k labels (jain16, table 1 (b)).

    For micro- and macro-averages see :func:`micro_f1` and :func:`xcrepro.metrics.labelwise.macro_f1`.

    Parameters
    ----------
    Y, top, ks
        See the module.
    beta : float
        Above 1 recall weighs more, below 1 precision; positive.
    denominator : {"set", "printed"}
        ``"set"``, the F-score: (1 + b^2) sum of y_r / (b^2 |y| + m), m the number of labels predicted (k, or fewer in a
        short row). ``"printed"``, the table's b^2 (|y| + 1), which is the same only where m = b^2: with it F can exceed
        1.
    inverse_propensity, n_relevant
        As in :func:`recall`: w_r y_r for y_r and n_relevant for |y|: unbiased, because the denominator is then fixed.

    Returns
    -------
    ndarray of float64, shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> f_beta(Y, top, ks=(1, 3)).round(4)                        # (2/3 + 0)/2, (4/5 + 2/4)/2
    array([0.3333, 0.65  ])
    >>> f_beta(Y, top, ks=(1, 3), denominator="printed").round(4)
    array([0.3333, 1.1667])
    """
    name = "F" if one_of("denominator", denominator, ("set", "printed")) == "set" else "F (printed)"
    return _per_relevant(name, Y, top, ks, inverse_propensity, n_relevant, beta)


def hamming_loss(Y, top: TopK | None = None, ks=KS, *, inverse_propensity=None) -> np.ndarray:
    """Hamming loss of the set of top k labels: the mean over rows of how many of the L labels are decided wrongly.

    Sum over labels of (y_l - yhat_l)^2, that is |y| + m - 2 hits, m the number of labels predicted.

    Parameters
    ----------
    Y, top, ks
        See the module.
    inverse_propensity : array_like of float, shape (L,), optional
        Gives the unbiased form of jain16, theorem 4.4: sum of w_l (1 - 2 yhat_l) y_l + yhat_l^2; it can be negative.

    Returns
    -------
    ndarray of float64, shape (K,)
        A count of labels, lower is better: scikit-learn's ``hamming_loss`` is this divided by L.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> hamming_loss(Y, top, ks=(1, 3))                                # (1 + 2)/2, (1 + 2)/2
    array([1.5, 1.5])
    >>> hamming_loss(Y, top, ks=(1, 3), inverse_propensity=np.array([2.0, 4.0, 1.5, 1.0]))
    array([ 2.75, -0.75])
    """
    name = "Hamming" if inverse_propensity is None else "PS-Hamming"
    return values([name], Y, top, ks, inverse_propensity)[name]


def abandonment(Y, top: TopK | None = None, ks=KS, *, counts: str = "abandoned") -> np.ndarray:
    """Abandonment@k: the share of rows whose top k hold nothing relevant (coverage, section 3.3).

    Parameters
    ----------
    Y, top, ks
        See the module. Rows without labels are abandoned.
    counts : {"abandoned", "served"}
        ``"abandoned"`` is the word's meaning, lower is better. ``"served"`` is one minus it, the share of rows with a
        hit: what the coverage paper's eq. (12) and tables, napkinXC and xCOLUMNs call abandonment.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1]. Abandonment@1 = 1 - P@1.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> abandonment(Y, top, ks=(1, 3)), abandonment(Y, top, ks=(1, 3), counts="served")
    (array([0.5, 0. ]), array([0.5, 1. ]))
    """
    abandoned = values(["abandonment"], Y, top, ks)["abandonment"]
    return abandoned if one_of("counts", counts, ("abandoned", "served")) == "abandoned" else 1.0 - abandoned


def micro_f1(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    """Micro-averaged F1@k: 2 TP / (2 TP + FP + FN), counts added up over rows and labels (reeval, section 2.3).

    That is 2 hits / (labels predicted + labels relevant); where every row has k predictions, 2 k P@k / (k + mean |y|).

    Parameters
    ----------
    Y, top, ks
        See the module.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1]. No label predicted and none relevant gives 0.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> micro_f1(Y, top, ks=(1, 3)).round(4)                      # 2*1/(2+3), 2*3/(6+3)
    array([0.4   , 0.6667])
    """
    return values(["micro-F1"], Y, top, ks)["micro-F1"]


def perfect_gain(ks: np.ndarray) -> np.ndarray:
    """I(k), the discounted gain of k hits at places 1..k: the sum of 1/log2(r+1).

    Parameters
    ----------
    ks : int array, (K,)

    Returns
    -------
    ndarray of float64, (K,)
    """
    return np.array([sum(1.0 / np.log2(r + 1.0) for r in range(1, k + 1)) for k in ks])


def ratio(above: np.ndarray, below: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    """above / below, and ``otherwise`` where below is 0.

    Parameters
    ----------
    above, below : array
        Of the same shape; ``below`` is 0 or more.
    otherwise : float

    Returns
    -------
    ndarray of float64
        Of that shape.
    """
    return np.divide(above, below, out=np.full(above.shape, otherwise), where=below > 0)


def _per_relevant(name: str, Y, top, ks, inverse_propensity, n_relevant, beta: float = 1.0) -> np.ndarray:
    """A metric of jain16's table 1 (b): plain, or propensity-scored with the complete truth's label counts."""
    check_goes_with(n_relevant, inverse_propensity)
    name = name if inverse_propensity is None else f"PS-{name}"
    return values([name], Y, top, ks, inverse_propensity, n_relevant, beta)[name]


def check_goes_with(n_relevant, inverse_propensity) -> None:
    """Refuse label counts of the complete truth where nothing is propensity-scored.

    Parameters
    ----------
    n_relevant, inverse_propensity : array or None

    Raises
    ------
    ArgumentError
        For ``n_relevant`` alone.
    """
    if n_relevant is not None and inverse_propensity is None:
        raise ArgumentError("n_relevant", "goes with inverse_propensity", "n_relevant alone")
