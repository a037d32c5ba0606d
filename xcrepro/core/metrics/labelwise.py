"""Label-wise metrics at k: averages over labels, all from the same per-label counts.

For each label and each k three whole numbers say everything: ``tp``, the rows whose top k hold the label rightly,
``predicted``, those whose top k hold it at all, and ``true``, those it is relevant to. One pass over the places counts them
for all ks at once (:class:`xcrepro.core.accumulators.labels.LabelCounts`), and the labels without a hit add 0 to every metric
here: the formulas take :class:`xcrepro.core.accumulators.labels.HitLabels`. :func:`confusion` gives the counts of all labels, a
:class:`Counts`.

Common to all metrics here and in :mod:`xcrepro.core.metrics.coverage`:

- ``Y``, ``top`` and ``ks`` are as in :mod:`xcrepro.core.metrics.ranking`, blocks of ``(Y, top)`` included; or ``Y`` is a
  :class:`Counts` or ``HitLabels``, with ``top`` left out, and ``ks`` are some of its ks.
- The result is a float64 array, one fraction for each k.
- 0/0 is 0: a label never predicted has precision 0, one without a test positive recall 0, and F1 is 0 for either
  (reeval, section 2.3; xCOLUMNs; scikit-learn with ``zero_division=0``). No small number is added to any denominator.
- ``over`` says which labels are averaged: ``"all"``, every column of Y (the coverage paper's eq. 11 and 13, reeval's
  eq. 2; xCOLUMNs and scikit-learn); ``"test"``, the labels with a test positive (napkinXC's coverage). Labels outside
  ``"test"`` add 0 to the sum, so the two differ by one factor. napkinXC's macro-F1 divides by the largest id met plus
  1, which depends on how labels are numbered; that is not offered. No label to average gives 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, distributions
from xcrepro.core.accumulators.block import KS, blocks
from xcrepro.core.accumulators.labels import HitLabels, LabelCounts, pick_ks
from xcrepro.core.accumulators.sums import ratio
from xcrepro.core.arguments import check_rows, cut_offs, one_of, real_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import labelwise as kernel
from xcrepro.core.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd

EDGES = (1, 10, 100, 1000)


@dataclass(frozen=True, eq=False)
class Counts:
    """What every label-wise metric is made of. Made by :func:`confusion`; the arrays are read-only.

    ``a + b`` are the counts of both blocks of rows together.

    Attributes
    ----------
    ks : ndarray of int64, shape (K,)
    tp, predicted : ndarray of int64, shape (K, L)
    true : ndarray of int64, shape (L,)
    n_rows : int
        How many rows were counted.
    outside : int
        Of the L labels those that averages leave out (:attr:`xcrepro.TopK.outside`).
    """

    ks: np.ndarray
    tp: np.ndarray
    predicted: np.ndarray
    true: np.ndarray
    n_rows: int
    outside: int = 0

    def __post_init__(self) -> None:
        for array in (self.ks, self.tp, self.predicted, self.true):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"Counts(ks={self.ks.tolist()}, n_rows={self.n_rows}, n_labels={self.n_labels})"

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        for name, ours, theirs in (("ks", self.ks, other.ks), ("labels", self.true.shape, other.true.shape)):
            if not np.array_equal(ours, theirs):
                raise ArgumentError("Counts", f"can be added when their {name} are the same", f"{ours} and {theirs}")
        tp, predicted = self.tp + other.tp, self.predicted + other.predicted
        about = self.n_rows + other.n_rows, max(self.outside, other.outside)
        return Counts(self.ks.copy(), tp, predicted, self.true + other.true, *about)

    @classmethod
    def of(cls, fold: LabelCounts) -> Counts:
        """The counts of all labels, of a fold that counted some rows."""
        tp, predicted, true = fold.tables()
        return cls(fold.ks.copy(), tp, predicted, true, fold.n_rows, fold.outside)

    @property
    def n_labels(self) -> int:
        """L, the number of labels."""
        return self.true.size

    @cached_property
    def hit_labels(self) -> HitLabels:
        """The counts of the labels that were hit, which is all that metrics need."""
        labels = np.flatnonzero(self.tp[np.argmax(self.ks)])
        predicted, tp = (np.ascontiguousarray(counts[:, labels].T) for counts in (self.predicted, self.tp))
        about = self.n_labels, int(np.count_nonzero(self.true)), self.n_rows, self.outside
        return HitLabels(self.ks, labels, self.true[labels], predicted, tp, *about)

    def at(self, ks) -> Counts:
        """The counts at some of its ks.

        Parameters
        ----------
        ks : int or sequence of int

        Returns
        -------
        Counts
            In the order of ``ks``; itself where those are all it has.

        Raises
        ------
        ArgumentError
            For a k that was not counted.
        """
        wanted, which = pick_ks(ks, self.ks)
        about = self.true, self.n_rows, self.outside
        return self if which is None else Counts(wanted, self.tp[which], self.predicted[which], *about)

    def precision(self) -> np.ndarray:
        """tp / predicted for each label, float64 (K, L); 0/0 is 0."""
        return ratio(self.tp, self.predicted)

    def recall(self) -> np.ndarray:
        """tp / true for each label, float64 (K, L); 0/0 is 0."""
        return ratio(self.tp, np.broadcast_to(self.true, self.tp.shape))

    def f_beta(self, beta: float = 1.0) -> np.ndarray:
        """F_beta for each label: (1 + b^2) tp / (b^2 true + predicted).

        Parameters
        ----------
        beta : float
            b, above 0.

        Returns
        -------
        ndarray of float64, (K, L)
            0/0 is 0.

        Raises
        ------
        ArgumentError
            For a ``beta`` that is not above 0.
        """
        beta = real_number("beta", beta, above=0)
        beta2 = beta * beta
        return ratio((1.0 + beta2) * self.tp, beta2 * self.true + self.predicted)

    def table(self, k: int, label_names: Sequence[str] = ()) -> pd.DataFrame:
        """A row a label.

        Parameters
        ----------
        k : int
            One of those counted.
        label_names : sequence of str
            Of all labels, such as ``ds.label_names``; empty: no names.

        Returns
        -------
        DataFrame
            label, name (if there are names), true, predicted, tp (whole numbers), precision, recall, F1 (fractions) at this k.

        Raises
        ------
        ArgumentError
            For a k that was not counted, and where there are more or fewer names than labels.
        """
        import pandas as pd

        one = self.at(k)
        if len(label_names) not in (0, self.n_labels):
            raise ArgumentError("label_names", f"must name each of the {self.n_labels} labels", len(label_names))
        labels = {"label": np.arange(self.n_labels)} | ({"name": list(label_names)} if len(label_names) else {})
        counts = {"true": one.true, "predicted": one.predicted[0], "tp": one.tp[0]}
        rates = {"precision": one.precision()[0], "recall": one.recall()[0], "F1": one.f_beta()[0]}
        return pd.DataFrame(labels | counts | rates)


def confusion(Y, top: TopK | None = None, ks=KS) -> Counts:
    """Count tp, predicted and true for every label at each k, in one pass (coverage, eq. 9; reeval, table 1).

    Parameters
    ----------
    Y, top, ks
        See the module.

    Returns
    -------
    Counts

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> counts = confusion(Y, top, ks=(1, 3))
    >>> counts.tp
    array([[1, 0, 0, 0],
           [1, 1, 1, 0]])
    >>> counts.table(3).round(2)
       label  true  predicted  tp  precision  recall    F1
    0      0     1          2   1        0.5     1.0  0.67
    1      1     1          2   1        0.5     1.0  0.67
    2      2     1          1   1        1.0     1.0  1.00
    3      3     0          1   0        0.0     0.0  0.00
    """
    if isinstance(Y, Counts):
        _check_alone(Y, top)
        return Y.at(ks)
    return Counts.of(_counted(Y, top, ks)).at(ks)


def hit_labels(Y, top: TopK | None = None, ks=KS) -> HitLabels:
    """The counts of the labels that were hit, which is all that metrics need; as :func:`confusion`, but quicker."""
    if isinstance(Y, HitLabels | Counts):
        _check_alone(Y, top)
        return (Y if isinstance(Y, HitLabels) else Y.at(ks).hit_labels).at(ks)
    return _counted(Y, top, ks).hit_labels().at(ks)


def _check_alone(Y, top) -> None:
    if top is not None:
        raise ArgumentError("top", f"must be left out when Y is a {type(Y).__name__}", type(top).__name__)


def _counted(Y, top, ks) -> LabelCounts:
    rising = np.unique(cut_offs(ks))
    fold: Any = None
    for block in blocks(Y, top, int(rising[-1])):
        if fold is not None and fold.n_labels != block.n_labels:
            raise ArgumentError("Y", f"must have {fold.n_labels} labels in every block", block.n_labels)
        fold = fold or LabelCounts(block.n_labels, rising)
        fold.add(block)
    check_rows(0 if fold is None else fold.n_rows)
    return fold


def macro_precision(Y, top: TopK | None = None, ks=KS, *, over: str = "all") -> np.ndarray:
    r"""Macro-precision@k: the mean over labels of tp / predicted (coverage, eq. 11).

    .. math::

        \frac{1}{L} \sum_{l=1}^{L} \frac{\mathrm{tp}_l}{\mathrm{predicted}_l}

    Parameters
    ----------
    Y, top, ks, over
        See the module.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    References
    ----------
    * Schultheis and others, NeurIPS 2023, https://doi.org/10.48550/arXiv.2311.05081

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> macro_precision(Y, top, ks=(1, 3))                         # 1/4, (1/2 + 1/2 + 1)/4
    array([0.25, 0.5 ])
    >>> macro_precision(Y, top, ks=3, over="test").round(4)        # label 3 is in no row of Y
    array([0.6667])
    """
    return label_mean(hit_labels(Y, top, ks), kernel.PRECISION, over)


def macro_recall(Y, top: TopK | None = None, ks=KS, *, over: str = "all") -> np.ndarray:
    r"""Macro-recall@k: the mean over labels of tp / true (coverage, eq. 11).

    .. math::

        \frac{1}{L} \sum_{l=1}^{L} \frac{\mathrm{tp}_l}{\mathrm{true}_l}

    Parameters
    ----------
    Y, top, ks, over
        See the module.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    References
    ----------
    * Schultheis and others, NeurIPS 2023, https://doi.org/10.48550/arXiv.2311.05081

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> macro_recall(Y, top, ks=(1, 3))
    array([0.25, 0.75])
    """
    return label_mean(hit_labels(Y, top, ks), kernel.RECALL, over)


def macro_f1(Y, top: TopK | None = None, ks=KS, *, over: str = "all") -> np.ndarray:
    r"""Macro-F1@k: the mean over labels of 2 tp / (true + predicted) (reeval, section 2.3; coverage, eq. 11).

    .. math::

        \frac{1}{L} \sum_{l=1}^{L} \frac{2\, \mathrm{tp}_l}{\mathrm{true}_l + \mathrm{predicted}_l}

    The mean of the labels' F1, not the F1 of macro-precision and macro-recall, which is larger.

    Parameters
    ----------
    Y, top, ks, over
        See the module.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    References
    ----------
    * Re-evaluating Extreme Multi-label Text Classification Methods in Tail Label Prediction, anonymous submission
    * Schultheis and others, NeurIPS 2023, https://doi.org/10.48550/arXiv.2311.05081

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> macro_f1(Y, top, ks=(1, 3)).round(4)                       # 1/4, (2/3 + 2/3 + 1)/4
    array([0.25  , 0.5833])
    """
    return macro_f_beta(Y, top, ks, over=over)


def macro_f_beta(Y, top: TopK | None = None, ks=KS, *, beta: float = 1.0, over: str = "all") -> np.ndarray:
    r"""Macro-F_beta@k: the mean over labels of (1 + b^2) tp / (b^2 true + predicted) (coverage, eq. 11).

    .. math::

        \frac{1}{L} \sum_{l=1}^{L} \frac{(1 + \beta^2)\, \mathrm{tp}_l}{\beta^2\, \mathrm{true}_l + \mathrm{predicted}_l}

    Parameters
    ----------
    Y, top, ks, over
        See the module.
    beta : float
        Above 1 recall weighs more, below 1 precision; 1 is :func:`macro_f1`.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    References
    ----------
    * Schultheis and others, NeurIPS 2023, https://doi.org/10.48550/arXiv.2311.05081

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> macro_f_beta(Y, top, ks=3, beta=2.0).round(4)              # (5/6 + 5/6 + 1)/4
    array([0.6667])
    """
    return label_mean(hit_labels(Y, top, ks), kernel.F_BETA, over, beta)


def binned_macro_f1(Y, top: TopK | None = None, ks=KS, *, label_counts, edges=EDGES, over: str = "all") -> pd.DataFrame:
    r"""Macro-F1@k of the labels of each bin of train frequency (reeval, eq. 2): where in the tail a method is right.

    .. math::

        \mathrm{F1}(B) = \frac{1}{|B|} \sum_{l \in B} \frac{2\, \mathrm{tp}_l}{\mathrm{true}_l + \mathrm{predicted}_l}

    Parameters
    ----------
    Y, top, ks
        See the module.
    label_counts : array_like of int, shape (L,)
        The TRAIN rows of each label.
    edges : sequence of int
        Where bins begin, rising from 1; a bin ends before the next begins, the last is open. Labels with fewer train
        rows than the first edge are a bin of their own: at the default those never trained, bin ``0``, which reeval's
        bins leave out.
    over : {"all", "test"}
        ``"all"`` averages over all labels of the bin, as reeval does; ``"test"`` over those with a test positive.

    Returns
    -------
    DataFrame
        Columns bin (text: 0, 1-9, 10-99, 100-999, 1000+), labels (how many were averaged), k, value; NaN where the bin
        has no label.

    References
    ----------
    * Re-evaluating Extreme Multi-label Text Classification Methods in Tail Label Prediction, anonymous submission

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> binned_macro_f1(Y, top, ks=3, label_counts=[120, 3, 9, 0], edges=(1, 10)).round(4)
       bin  labels  k   value
    0    0       1  3  0.0000
    1  1-9       2  3  0.8333
    2  10+       1  3  0.6667
    """
    import pandas as pd

    check_over(over)
    if isinstance(Y, HitLabels):
        if over == "test":
            raise ArgumentError("Y", "must be a Counts, or the truth itself, with over='test'", "HitLabels")
        hit, true_labels = hit_labels(Y, top, ks), None
    elif isinstance(Y, Counts):
        hit, true_labels = hit_labels(Y, top, ks), np.flatnonzero(Y.true)
    else:
        fold = _counted(Y, top, ks)
        hit, true_labels = fold.hit_labels().at(ks), fold.true_labels() if over == "test" else None
    names, sizes, values = binned_values(hit, label_counts, edges, true_labels if over == "test" else None)
    n_ks = hit.ks.size
    columns = {"bin": [name for name in names for _ in range(n_ks)], "labels": np.repeat(sizes, n_ks)}
    return pd.DataFrame(columns | {"k": np.tile(hit.ks, len(names)), "value": values.ravel()})


def binned_values(
    hit: HitLabels, label_counts, edges=EDGES, labels: np.ndarray | None = None
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """:func:`binned_macro_f1` without the DataFrame."""
    counts, starts = checked_counts(label_counts, hit.n_labels), _starts(edges)
    sizes = np.empty(starts.size + 1, np.int64)
    kernel.frequency_bins(counts if labels is None else counts[labels], starts, np.empty(0, np.int64), sizes)
    sizes[0] -= hit.outside if labels is None else 0  # what no file of training labels has
    sums = np.zeros((sizes.size, hit.ks.size))
    kernel.binned_f1(hit.tp, hit.predicted, hit.true, hit.labels, counts, starts, sums)
    return _bin_names(starts), sizes, ratio(sums, np.broadcast_to(sizes[:, None], sums.shape), np.nan)


def best_macro_f1(Y: sparse.csr_matrix, k: int) -> float:
    """The ceiling: the largest macro-F1@k that any predictions of at most k labels a point can have.

    A perfect predictor names relevant labels only, for a wrong one lowers its label's F1 and takes a place. A label
    without a point has F1 = 0 whatever is predicted. Points with at most k labels have all of them named. Of the others
    it is chosen which: F1 of a label with n points, t of them hit, is 2t / (t + n), so the t-th hit adds
    2n / ((t + n)(t - 1 + n)), less than the one before, and the best choice is the solution of a linear programme (a
    flow from labels to points, so it is whole).

    Parameters
    ----------
    Y : csr_matrix, shape (n, L)
        The truth of the labels that are averaged; of a bin, its columns: each bin has a ceiling of its own.
    k : int

    Returns
    -------
    float
        In [0, 1]; 0 without labels.

    Examples
    --------
    >>> from scipy import sparse
    >>> Y = sparse.csr_matrix([[1, 1, 0], [1, 0, 0]])                     # the third label has no point
    >>> round(best_macro_f1(Y, 2), 4), round(best_macro_f1(Y, 1), 4)       # (1 + 1 + 0) / 3, (2/3 + 1 + 0) / 3
    (0.6667, 0.5556)
    """
    from scipy import optimize

    crowded = np.diff(Y.indptr) > k
    points, sure = (np.bincount(part.indices, minlength=Y.shape[1]) for part in (Y, Y[~crowded]))
    total = (2 * sure / np.maximum(sure + points, 1)).sum()
    pairs = Y[crowded].tocsc()
    if pairs.nnz:
        # One unknown a pair, whether it is hit, and one for each hit of a label, the first one first.
        label = np.repeat(np.arange(Y.shape[1]), np.diff(pairs.indptr))
        n, t = points[label], sure[label] + 1 + np.arange(pairs.nnz) - pairs.indptr[label]
        at, one = np.arange(pairs.nnz), np.ones(pairs.nnz)
        places = sparse.csr_matrix((one, (pairs.indices, at)), shape=(pairs.shape[0], 2 * pairs.nnz))
        ends = np.concatenate([label, label]), np.arange(2 * pairs.nnz)
        counted = sparse.csr_matrix((np.concatenate([-one, one]), ends), shape=(Y.shape[1], 2 * pairs.nnz))
        gain = np.concatenate([np.zeros(pairs.nnz), 2 * n / ((t + n) * (t - 1 + n))])
        limit = np.concatenate([np.full(pairs.shape[0], k), np.zeros(Y.shape[1])])
        found = optimize.linprog(
            -gain, A_ub=sparse.vstack([places, counted]), b_ub=limit, bounds=(0, 1), method="highs"
        )
        total -= distributions.rounded(found.fun)
    return float(total / max(Y.shape[1], 1))


def frequency_bins(label_counts, n_labels: int, edges=EDGES) -> tuple[np.ndarray, list[str]]:
    """The bin of each label by its count, and the bins' names; see :func:`binned_macro_f1`."""
    counts, starts = checked_counts(label_counts, n_labels), _starts(edges)
    bins = np.empty(n_labels, np.int64)
    kernel.frequency_bins(counts, starts, bins, np.empty(starts.size + 1, np.int64))
    return bins, _bin_names(starts)


def checked_counts(label_counts, n_labels: int | None = None) -> np.ndarray:
    """(L,) int64, or float64 where they came as that; whole numbers, 0 or more."""
    counts = np.asarray(label_counts)
    if counts.ndim != 1 or n_labels not in (None, counts.size):
        each = "each label" if n_labels is None else f"each of the {n_labels} labels"
        raise ArgumentError("label_counts", f"must be one number for {each}", counts.shape)
    whole = counts.dtype.kind in "iu"
    if whole and np.can_cast(counts.dtype, np.int64):
        counts = counts.astype(np.int64, copy=False)
        good = counts.min(initial=0) >= 0
    elif whole or counts.dtype.kind == "f":
        counts = counts.astype(np.float64, copy=False)
        good = (np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts))).all()
    else:
        good = False
    if not good:
        raise ArgumentError("label_counts", "must be whole numbers, 0 or more", f"an array of dtype {counts.dtype}")
    return counts


def _starts(edges) -> np.ndarray:
    starts = np.atleast_1d(np.asarray(edges))
    if starts.ndim != 1 or starts.dtype.kind not in "iu" or starts[0] < 1 or (np.diff(starts) < 1).any():
        raise ArgumentError("edges", "must be rising whole numbers, 1 or more", repr(edges))
    return starts.astype(np.int64)


def _bin_names(starts: np.ndarray) -> list[str]:
    ends = itertools.pairwise([0, *starts.tolist()])
    return [*(str(low) if low == high - 1 else f"{low}-{high - 1}" for low, high in ends), f"{starts[-1]}+"]


def entropy(hit: HitLabels) -> np.ndarray:
    """The entropy of correct predictions at each k (coverage, eq. 15 and 16)."""
    return np.array([_entropy(*of_k) for of_k in histograms(hit)])


def histograms(hit: HitLabels) -> list[tuple[np.ndarray, np.ndarray]]:
    """How many labels have each number of hits, for each k; labels without a hit left out."""
    most = int(hit.tp.max(initial=0))
    if most > 1_000_000 + 4 * hit.labels.size:  # a few labels with very many hits: no table up to there
        return [np.unique(tp[tp > 0], return_counts=True) for tp in hit.tp.T]
    found = []
    for tp in hit.tp.T:
        labels = np.bincount(tp)
        hits = 1 + np.flatnonzero(labels[1:])
        found.append((hits, labels[hits]))
    return found


def check_over(over: str, *more: str) -> None:
    """Refuse, by an ArgumentError, an ``over`` that is not ``"all"``, ``"test"`` or one of ``more``."""
    one_of("over", over, ("all", "test", *more))


def averaged_labels(hit: HitLabels, over: str) -> int:
    """How many labels a mean divides by."""
    check_over(over)
    return hit.n_labels - hit.outside if over == "all" else hit.n_true_labels


def label_mean(hit: HitLabels, column: int, over: str = "all", beta: float = 1.0) -> np.ndarray:
    """The mean over labels of one of the kernel's columns."""
    labels = max(averaged_labels(hit, over), 1)
    return hit.sums(real_number("beta", beta, above=0))[column] / labels


def recalled(hit: HitLabels, alpha: float, over: str = "all") -> np.ndarray:
    """The share of labels whose recall is at least alpha, and above 0."""
    covered = ((hit.tp > 0) & (hit.tp / hit.true[:, None] >= alpha)).sum(axis=0)
    return covered / max(averaged_labels(hit, over), 1)


def sampled(hit: HitLabels, sample_size: int, replace: bool = True, over: str = "all") -> np.ndarray:
    """The share of labels that so many rows drawn from these are expected to cover."""
    n = hit.n_rows
    total = []
    for hits, labels in histograms(hit):
        if replace:
            missed = sample_size * arithmetic.log1p(-hits / n)  # minus infinity: a label that no draw can miss
        else:
            # One factor a hit: the chance that it, too, is not drawn. From n - n' + 1 hits on one must be.
            most = min(int(hits[-1]), n - sample_size + 1) if hits.size else 0
            missed = np.cumsum(arithmetic.log1p(-sample_size / (n - np.arange(most))))[np.minimum(hits, most) - 1]
        total.append(math.fsum((labels * -arithmetic.expm1(missed)).tolist()))
    return np.array(total) / max(averaged_labels(hit, over), 1)


def _entropy(hits: np.ndarray, labels: np.ndarray) -> float:
    share = hits / max(int((hits * labels).sum()), 1)
    # An exact sum, rounded once: no order of adding to depend on. 0.0 - ... keeps the sign of a plain zero.
    return 0.0 - math.fsum((labels * share * arithmetic.log(share)).tolist())
