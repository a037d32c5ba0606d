"""Label-wise metrics at k: averages over labels, all from the same per-label counts.

For each label and each k three whole numbers say everything: ``tp``, the rows whose top k hold the label rightly,
``predicted``, those whose top k hold it at all, and ``true``, those it is relevant to. :func:`confusion` counts them in
one pass over the places, for all ks at once; they are :class:`Counts`, and those of two blocks of rows add up exactly.

Common to all metrics here and in :mod:`xcrepro.metrics.coverage`:

- ``Y``, ``top`` and ``ks`` are as in :mod:`xcrepro.metrics.ranking`, blocks of ``(Y, top)`` included; or ``Y`` is a
  :class:`Counts`, with ``top`` left out, and ``ks`` are some of its ks.
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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from xcrepro import threads
from xcrepro.arguments import check_places, check_rows, cut_offs, one_of, real_number
from xcrepro.errors import ArgumentError
from xcrepro.kernels import labelwise as kernel
from xcrepro.metrics.ranking import KS, blocks, ratio
from xcrepro.predictions import TopK, check_pair
from xcrepro.truth import Truth

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
    """

    ks: np.ndarray
    tp: np.ndarray
    predicted: np.ndarray
    true: np.ndarray
    n_rows: int

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
        return Counts(self.ks.copy(), tp, predicted, self.true + other.true, self.n_rows + other.n_rows)

    @property
    def n_labels(self) -> int:
        """L, the number of labels."""
        return self.true.size

    @cached_property
    def _plain_sums(self) -> np.ndarray:
        """(columns, K) sums over all labels at beta = 1: what most metrics want, worked out once."""
        return _sums(self, np.zeros(0, np.int64), 1)[0]

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
        wanted = cut_offs(ks)
        if np.array_equal(wanted, self.ks):
            return self
        missing = np.setdiff1d(wanted, self.ks)
        if missing.size:
            raise ArgumentError("ks", f"must be among those counted, {self.ks.tolist()}", missing.tolist())
        which = [int(np.flatnonzero(self.ks == k)[0]) for k in wanted]
        return Counts(wanted, self.tp[which], self.predicted[which], self.true, self.n_rows)

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
        beta2 = real_number("beta", beta, above=0) ** 2
        return ratio((1.0 + beta2) * self.tp, beta2 * self.true + self.predicted)

    def table(self, k: int) -> pd.DataFrame:
        """A row a label.

        Parameters
        ----------
        k : int
            One of those counted.

        Returns
        -------
        DataFrame
            label, true, predicted, tp (whole numbers), precision, recall, F1 (fractions) at this k.

        Raises
        ------
        ArgumentError
            For a k that was not counted.
        """
        import pandas as pd

        one = self.at(k)
        columns = {"label": np.arange(self.n_labels), "true": one.true, "predicted": one.predicted[0], "tp": one.tp[0]}
        rates = {"precision": one.precision()[0], "recall": one.recall()[0], "F1": one.f_beta()[0]}
        return pd.DataFrame(columns | rates)


class Places:
    """One ranking over the rows of a truth, its hits found: counted as often as needed, with any weights of the rows.

    Parameters
    ----------
    Y, top
        (n, L) and its TopK; see the module.
    k_max : int
        Places to look at, at most ``top.k``.

    Attributes
    ----------
    truth : Truth
    ids : int32 array, (n, k_max)
        The labels at the places.
    found : bool array, (n, k_max)
        Whether each is relevant.
    """

    def __init__(self, Y, top: TopK, k_max: int) -> None:
        self.truth = Truth.of(Y)
        check_pair(self.truth, top)
        check_places("ks", k_max, top.k)
        self.ids = np.ascontiguousarray(top.ids[:, :k_max])
        self.found = self.truth.hits(self.ids)

    def add_to(self, tp: np.ndarray, predicted: np.ndarray, bucket: np.ndarray, weights: np.ndarray) -> None:
        """Count each place into the row of ``tp`` and ``predicted`` that ``bucket`` names for it.

        Parameters
        ----------
        tp, predicted : int64 array, (buckets, L)
            Are changed in place.
        bucket : int array, (k_max,)
            The row of each place.
        weights : int64 array, (n,)
            How often each row of the truth counts.

        Raises
        ------
        ArgumentError
            For a label of ``top`` that is not below L.
        """
        fault = kernel.add_places(self.found, self.ids, weights, bucket, tp, predicted)
        if fault >= 0:
            row, place = divmod(fault, self.ids.shape[1])
            rule, do = f"must name labels below its n_labels, {tp.shape[1]}", "make it with TopK.from_ids, which checks"
            raise ArgumentError("top", rule, f"{self.ids[row, place]} in row {row}", do)


class Counter:
    """Counts of blocks of rows, fed with :meth:`add`. Memory is two int64 a label and k, however many rows there are.

    Parameters
    ----------
    ks : int or sequence of int

    Attributes
    ----------
    n_rows : int
        Rows so far, each as often as its weight says.
    """

    def __init__(self, ks) -> None:
        self.ks = cut_offs(ks)
        self._sorted = np.unique(self.ks)
        # A label at place r counts for every k >= r: it goes to the first of them, and `counts` adds up.
        self._bucket = np.searchsorted(self._sorted, np.arange(1, self._sorted[-1] + 1))
        self._tp = self._predicted = self._true = None
        self.n_rows = 0

    def add(self, Y, top: TopK, weights: np.ndarray | None = None) -> Counter:
        """Count one block.

        Parameters
        ----------
        Y, top
            (n, L) and its TopK; see the module. L is the same in every block.
        weights : int64 array, (n,), optional
            How often each row counts; once by default.

        Returns
        -------
        Counter
            Itself.

        Raises
        ------
        ArgumentError
            For a block of another shape, and a k above ``top.k``.
        """
        return self.add_places(Places(Y, top, int(self._sorted[-1])), weights)

    def add_places(self, places: Places, weights: np.ndarray | None = None) -> Counter:
        """:meth:`add` for a block whose hits are known.

        Parameters
        ----------
        places : Places
            With as many places as the largest k.
        weights : int64 array, (n,), optional
            As for :meth:`add`.

        Returns
        -------
        Counter
            Itself.

        Raises
        ------
        ArgumentError
            For another number of labels than the blocks before.
        """
        truth = places.truth
        if self._true is None:
            self._tp, self._predicted = np.zeros((2, self._sorted.size, truth.n_labels), np.int64)
            self._true = np.zeros(truth.n_labels, np.int64)
        elif self._true.size != truth.n_labels:
            raise ArgumentError("Y", f"must have {self._true.size} labels in every block", truth.n_labels)
        weights = np.ones(truth.n_rows, np.int64) if weights is None else weights
        places.add_to(self._tp, self._predicted, self._bucket, weights)
        kernel.add_truth(truth.indptr, truth.indices, weights, self._true)
        self.n_rows += int(weights.sum())
        return self

    def counts(self) -> Counts:
        """What was counted. The counter is then used up.

        Returns
        -------
        Counts
            At ``ks``, in their order.

        Raises
        ------
        ArgumentError
            Where there were no rows.
        """
        check_rows(self.n_rows)
        tp, predicted, true = self._tp, self._predicted, self._true
        self._tp = self._predicted = self._true = None
        for counted in (tp, predicted):
            np.cumsum(counted, axis=0, out=counted)
        return Counts(self._sorted, tp, predicted, true, self.n_rows).at(self.ks)


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
        if top is not None:
            raise ArgumentError("top", "must be left out when Y is a Counts", type(top).__name__)
        return Y.at(ks)
    counter = Counter(ks)
    for truth, block, _ in blocks(Y, top):
        counter.add(truth, block)
    return counter.counts()


# What is made of the counts, by the name under which `evaluate` reports it.
FORMULAS: dict[str, Callable[[Counts], np.ndarray]] = {
    "macro-P": lambda c: label_mean(c, kernel.PRECISION),
    "macro-R": lambda c: label_mean(c, kernel.RECALL),
    "macro-F1": lambda c: label_mean(c, kernel.F_BETA),
    "coverage": lambda c: label_mean(c, kernel.COVERED),
    "coverage (test)": lambda c: label_mean(c, kernel.COVERED, "test"),
    "label entropy": lambda c: entropy(c),
}


def values(names: Iterable[str], Y, top=None, ks=KS) -> dict[str, np.ndarray]:
    """Several of :data:`FORMULAS` from one count.

    Parameters
    ----------
    names : iterable of str
        Keys of :data:`FORMULAS`.
    Y, top, ks
        See the module.

    Returns
    -------
    dict of str to ndarray
        Name -> float64 (K,), one value for each k.
    """
    counts = confusion(Y, top, ks)
    return {name: FORMULAS[name](counts) for name in names}


def macro_precision(Y, top: TopK | None = None, ks=KS, *, over: str = "all") -> np.ndarray:
    """Macro-precision@k: the mean over labels of tp / predicted (coverage, eq. 11).

    Parameters
    ----------
    Y, top, ks, over
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
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> macro_precision(Y, top, ks=(1, 3))                         # 1/4, (1/2 + 1/2 + 1)/4
    array([0.25, 0.5 ])
    >>> macro_precision(Y, top, ks=3, over="test").round(4)        # label 3 is in no row of Y
    array([0.6667])
    """
    return label_mean(confusion(Y, top, ks), kernel.PRECISION, over)


def macro_recall(Y, top: TopK | None = None, ks=KS, *, over: str = "all") -> np.ndarray:
    """Macro-recall@k: the mean over labels of tp / true (coverage, eq. 11).

    Parameters
    ----------
    Y, top, ks, over
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
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> macro_recall(Y, top, ks=(1, 3))
    array([0.25, 0.75])
    """
    return label_mean(confusion(Y, top, ks), kernel.RECALL, over)


def macro_f1(Y, top: TopK | None = None, ks=KS, *, over: str = "all") -> np.ndarray:
    """Macro-F1@k: the mean over labels of 2 tp / (true + predicted) (reeval, section 2.3; coverage, eq. 11).

    The mean of the labels' F1, not the F1 of macro-precision and macro-recall, which is larger.

    Parameters
    ----------
    Y, top, ks, over
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
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> macro_f1(Y, top, ks=(1, 3)).round(4)                       # 1/4, (2/3 + 2/3 + 1)/4
    array([0.25  , 0.5833])
    """
    return macro_f_beta(Y, top, ks, over=over)


def macro_f_beta(Y, top: TopK | None = None, ks=KS, *, beta: float = 1.0, over: str = "all") -> np.ndarray:
    """Macro-F_beta@k: the mean over labels of (1 + b^2) tp / (b^2 true + predicted) (coverage, eq. 11).

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

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> macro_f_beta(Y, top, ks=3, beta=2.0).round(4)              # (5/6 + 5/6 + 1)/4
    array([0.6667])
    """
    return label_mean(confusion(Y, top, ks), kernel.F_BETA, over, beta)


def binned_macro_f1(Y, top: TopK | None = None, ks=KS, *, label_counts, edges=EDGES, over: str = "all") -> pd.DataFrame:
    """Macro-F1@k of the labels of each bin of train frequency (reeval, eq. 2): where in the tail a method is right.

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

    counts = confusion(Y, top, ks)
    bins, names = frequency_bins(label_counts, counts.n_labels, edges)
    sums = _sums(counts, bins, len(names))[:, kernel.F_BETA]
    labels = np.bincount(bins[_averaged(counts, over)], minlength=len(names))
    rows = [
        (name, int(labels[b]), int(k), sums[b, i] / labels[b] if labels[b] else np.nan)
        for b, name in enumerate(names)
        for i, k in enumerate(counts.ks)
    ]
    return pd.DataFrame(rows, columns=["bin", "labels", "k", "value"])


def relative_improvement(binned: pd.DataFrame, baseline: pd.DataFrame) -> pd.DataFrame:
    """What a method gains over a baseline in each bin, (ours - theirs) / theirs (reeval, section 2.3 and figure 3).

    Parameters
    ----------
    binned, baseline : DataFrame
        What :func:`binned_macro_f1` returned for both, with the same bins, labels and ks.

    Returns
    -------
    DataFrame
        ``binned`` with the columns baseline and improvement added, a fraction: 0.1 is 10 % more. Where the baseline is
        0 there is no ratio: NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> ours = pd.DataFrame({"bin": ["1-9", "10+"], "labels": [2, 1], "k": 3, "value": [0.3, 0.5]})
    >>> relative_improvement(ours, ours.assign(value=[0.25, 0.0]))
       bin  labels  k  value  baseline  improvement
    0  1-9       2  3    0.3      0.25          0.2
    1  10+       1  3    0.5      0.00          NaN
    """
    keys = ["bin", "labels", "k"]
    for name, frame in (("binned", binned), ("baseline", baseline)):
        missing = [column for column in (*keys, "value") if column not in frame]
        if missing:
            raise ArgumentError(name, "must be what binned_macro_f1 returns", f"no column {', '.join(missing)}")
    if binned[keys].to_numpy().tolist() != baseline[keys].to_numpy().tolist():
        raise ArgumentError("baseline", "must have the bins, labels and ks of the other", "different ones")
    theirs = baseline["value"].to_numpy()
    below = np.where(theirs > 0, theirs, np.nan)
    return binned.assign(baseline=theirs, improvement=(binned["value"].to_numpy() - theirs) / below)


def frequency_bins(label_counts, n_labels: int, edges=EDGES) -> tuple[np.ndarray, list[str]]:
    """The bin of each label by its count, and the bins' names; see :func:`binned_macro_f1`.

    Parameters
    ----------
    label_counts : array, (L,)
        Whole numbers, 0 or more; floats that are whole are taken.
    n_labels : int
        What L must be.
    edges : sequence of int
        Rising, 1 or more: where each bin after the first begins. The first begins at 0, the last has no end.

    Returns
    -------
    bins : ndarray of int64, (L,)
        From 0.
    names : list of str
        One more than edges, such as ``0``, ``1-9``, ``1000+``.

    Raises
    ------
    ArgumentError
        For counts or edges that break a rule.
    """
    counts = np.asarray(label_counts)
    if counts.shape != (n_labels,):
        raise ArgumentError("label_counts", f"must be one number for each of the {n_labels} labels", counts.shape)
    if counts.dtype.kind not in "iuf" or not (np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts))).all():
        raise ArgumentError("label_counts", "must be whole numbers, 0 or more", f"an array of dtype {counts.dtype}")
    starts = np.atleast_1d(np.asarray(edges))
    if starts.ndim != 1 or starts.dtype.kind not in "iu" or starts[0] < 1 or (np.diff(starts) < 1).any():
        raise ArgumentError("edges", "must be rising whole numbers, 1 or more", repr(edges))
    ends = itertools.pairwise([0, *starts.tolist()])
    names = [str(low) if low == high - 1 else f"{low}-{high - 1}" for low, high in ends]
    return np.digitize(counts, starts).astype(np.int64), [*names, f"{starts[-1]}+"]


def entropy(counts: Counts) -> np.ndarray:
    """The entropy of correct predictions at each k (coverage, eq. 15 and 16).

    Parameters
    ----------
    counts : Counts

    Returns
    -------
    ndarray of float64, (K,)
        In nats; 0 where there is no hit.
    """
    return np.array([_entropy(histogram(tp)) for tp in counts.tp])


def histogram(tp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many labels have each number of hits; labels without a hit left out.

    Parameters
    ----------
    tp : int array, (L,)
        Hits of each label.

    Returns
    -------
    hits : ndarray of int64
        The numbers of hits that occur, rising.
    labels : ndarray of int64
        How many labels have each.
    """
    labels = np.bincount(tp)
    hits = 1 + np.flatnonzero(labels[1:])
    return hits, labels[hits]


def check_over(over: str, *more: str) -> None:
    """Refuse, by an ArgumentError, an ``over`` that is not ``"all"``, ``"test"`` or one of ``more``."""
    one_of("over", over, ("all", "test", *more))


def averaged_labels(counts: Counts, over: str) -> int:
    """How many labels a mean divides by.

    Parameters
    ----------
    counts : Counts
    over : {"all", "test"}
        See the module.

    Returns
    -------
    int
        May be 0.

    Raises
    ------
    ArgumentError
        For another ``over``.
    """
    check_over(over)
    return counts.n_labels if over == "all" else int(np.count_nonzero(counts.true))


def _averaged(counts: Counts, over: str) -> np.ndarray | slice:
    check_over(over)
    return slice(None) if over == "all" else counts.true > 0


def _sums(counts: Counts, bins: np.ndarray, n_bins: int, beta: float = 1.0) -> np.ndarray:
    """(n_bins, columns, K) sums over labels."""
    out = np.zeros((n_bins, kernel.N_COLUMNS, counts.ks.size))
    beta2, n_ks = real_number("beta", beta, above=0) ** 2, counts.ks.size

    def sums(lo: int, hi: int) -> None:
        kernel.label_sums(counts.tp, counts.predicted, counts.true, bins, beta2, lo, hi, out)

    threads.over_rows(n_ks, sums, min_rows=1 if counts.tp.size > 100_000 else n_ks)
    return out


def label_mean(counts: Counts, column: int, over: str = "all", beta: float = 1.0) -> np.ndarray:
    """The mean over labels of one of the kernel's columns.

    Parameters
    ----------
    counts : Counts
    column : int
        Of :mod:`xcrepro.kernels.labelwise`.
    over : {"all", "test"}
        See the module.
    beta : float
        Of the F column, above 0.

    Returns
    -------
    ndarray of float64, (K,)
        One value for each k of ``counts``; 0 where there is no label to average.

    Raises
    ------
    ArgumentError
        For another ``over`` or ``beta``.
    """
    labels = max(averaged_labels(counts, over), 1)
    sums = counts._plain_sums if beta == 1.0 else _sums(counts, np.zeros(0, np.int64), 1, beta)[0]
    return sums[column] / labels


def _entropy(hits_and_labels: tuple[np.ndarray, np.ndarray]) -> float:
    hits, labels = hits_and_labels
    share = hits / max(int(hits @ labels), 1)
    # An exact sum, rounded once: no order of adding to depend on. 0.0 - ... keeps the sign of a plain zero.
    return 0.0 - math.fsum((labels * share * np.log(share)).tolist())
