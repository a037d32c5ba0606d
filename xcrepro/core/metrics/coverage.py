"""Coverage at k and its relatives: how much of the label space a set of predictions gets right, or names, at all.

All but :func:`diversity` are made of the per-label counts of :mod:`xcrepro.core.metrics.labelwise`, and take what the metrics
there take; see there for ``Y``, ``ks`` and ``over``.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from xcrepro.core.accumulators.block import KS, blocks
from xcrepro.core.accumulators.labels import HitLabels
from xcrepro.core.accumulators.sums import ExactSums
from xcrepro.core.arguments import check_rows, cut_offs, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import labelwise as kernel
from xcrepro.core.matrices import checked_matrix
from xcrepro.core.metrics import labelwise, state
from xcrepro.core.metrics.formulas import reachable_labels
from xcrepro.core.metrics.labelwise import Counts, hit_labels, label_mean
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth

_ROWS = 16_384  # rows whose label pairs are looked at together


def coverage(Y, top: TopK | None = None, ks=KS, *, over: str = "all") -> np.ndarray:
    r"""Coverage@k: the share of labels that stand rightly in at least one row's top k (coverage, eq. 13).

    .. math::

        \mathrm{Cov@}k = \frac{1}{L} \sum_{l=1}^{L} \mathbb{1}[\mathrm{tp}_l \ge 1]

    Parameters
    ----------
    Y, top, ks
        See :mod:`xcrepro.core.metrics.labelwise`.
    over : {"all", "test", "reachable"}
        What the number of labels covered is divided by.

        - ``"all"``: all L labels: eq. 13; xCOLUMNs.
        - ``"test"``: the labels relevant to some row of Y, the most any k can cover: napkinXC.
        - ``"reachable"``: the most labels that k places a row can cover, :func:`reachable`, so that the result is at most 1
          whatever Y is. The denominator grows with k, so this coverage can fall with k, as jain16's table 4 (c) does; that
          table counts :func:`unique_labels`, right or not. It needs the truth of all rows at once: blocks of Y are kept, not
          the predictions.

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
    >>> Y = np.array([[1, 0, 1, 0], [1, 0, 0, 0]])
    >>> top = TopK.from_ids([[0, 2, 1], [3, 1, 0]], n_labels=4)
    >>> coverage(Y, top, ks=(1, 3)), coverage(Y, top, ks=(1, 3), over="test")
    (array([0.25, 0.5 ]), array([0.5, 1. ]))
    >>> coverage(Y, top, ks=1, over="reachable")       # one place a row: label 2 in the first row, label 0 in the second
    array([0.5])
    """
    labelwise.check_over(over, "reachable")
    if over != "reachable":
        return label_mean(hit_labels(Y, top, ks), kernel.COVERED, over)
    if isinstance(Y, Counts | HitLabels):
        raise ArgumentError("Y", "must be the truth itself with over='reachable'", type(Y).__name__, "pass Y and top")
    return state.of(Y, top, ks, ["coverage (reachable)"]).values()["coverage (reachable)"]


def unique_labels(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    """Unique labels@k: how many different labels stand in at least one row's top k, rightly or not (jain16, table 4).

    Recommender systems call this number *aggregate diversity* (Adomavicius and Kwon 2012), and its share of all labels
    *catalogue coverage*. M rows name at most min(L, kM) labels.

    Parameters
    ----------
    Y, top, ks
        See :mod:`xcrepro.core.metrics.labelwise`; but not ``HitLabels``, which lack the labels that were never hit.

    Returns
    -------
    ndarray of float64, shape (K,)
        Whole numbers. An absent place (id -1) names no label. It never falls as k grows. Ties at place k are decided as
        everywhere, for the lowest id.

    References
    ----------
    * Jain, Prabhu and Varma, KDD 2016, https://doi.org/10.1145/2939672.2939756
    * Adomavicius and Kwon, IEEE TKDE 2012, https://doi.org/10.1109/TKDE.2011.15

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [1, 0, 0, 0]])
    >>> top = TopK.from_ids([[0, 2, -1], [0, 1, 3]], n_labels=4)
    >>> unique_labels(Y, top, ks=(1, 2, 3))                       # label 0; 0, 1 and 2; all four
    array([1., 3., 4.])
    """
    if isinstance(Y, Counts):
        return np.count_nonzero(Y.at(ks).predicted, axis=1).astype(np.float64)
    if isinstance(Y, HitLabels):
        raise ArgumentError("Y", "must be the truth itself, or a Counts", "HitLabels", "pass Y and top")
    return state.of(Y, top, ks, ["unique labels"]).values()["unique labels"]


def reachable(Y, ks=KS) -> np.ndarray:
    """The most different labels that can be covered when each row shows k labels, its own.

    A maximum matching, not a greedy choice: a row with more than k labels shows those that no other row can. At
    k = max |y| it is the number of labels in Y.

    Parameters
    ----------
    Y, ks
        See :mod:`xcrepro.core.metrics.labelwise`.

    Returns
    -------
    ndarray of int64, shape (K,)

    Examples
    --------
    >>> import numpy as np
    >>> reachable(np.array([[1, 1, 1, 0], [1, 0, 0, 0]]), ks=(1, 2, 3))
    array([2, 3, 3])
    """
    return reachable_labels([as_truth(Y)], cut_offs(ks))


def alpha_coverage(Y, top: TopK | None = None, ks=KS, *, alpha: float, over: str = "all") -> np.ndarray:
    r"""alpha-coverage@k: the share of labels whose recall is at least ``alpha`` and above 0 (coverage, eq. 28).

    .. math::

        \frac{1}{L} \sum_{l=1}^{L} \mathbb{1}[\mathrm{tp}_l > 0,\ \mathrm{tp}_l / \mathrm{true}_l \ge \alpha]

    Parameters
    ----------
    Y, top, ks, over
        See :mod:`xcrepro.core.metrics.labelwise`.
    alpha : float
        0 to 1. As printed, recall >= 0 holds for every label at alpha = 0; "reduces to standard coverage" there needs the
        recall above 0, which is what is computed. A label without a test positive has no recall and is never covered.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [1, 0, 0, 0]])
    >>> top = TopK.from_ids([[0, 2, 1], [3, 1, 0]], n_labels=4)
    >>> [alpha_coverage(Y, top, ks=(1, 3), alpha=a).tolist() for a in (0.0, 0.5, 1.0)]
    [[0.25, 0.5], [0.25, 0.5], [0.0, 0.5]]
    """
    real_number("alpha", alpha, at_least=0, at_most=1)
    return labelwise.recalled(hit_labels(Y, top, ks), alpha, over)


def sampled_coverage(
    Y, top: TopK | None = None, ks=KS, *, sample_size: int, replace: bool = True, over: str = "all"
) -> np.ndarray:
    r"""n'-coverage@k: the coverage to expect of ``sample_size`` = n' rows drawn from these (coverage, eq. 24 and 25).

    .. math::

        \frac{1}{L} \sum_{l=1}^{L} \Big(1 - (1 - \mathrm{tp}_l / n)^{n'}\Big)

    Computed exactly, without drawing: a label with tp hits among n rows is missed by all n' draws with probability
    (1 - tp/n)^n' with replacement, and C(n - tp, n') / C(n, n') without.

    Parameters
    ----------
    Y, top, ks, over
        See :mod:`xcrepro.core.metrics.labelwise`.
    sample_size : int
        At least 1. At 1 both ways to draw give P@k k/L (the paper's eq. 27 leaves out the factor k/L).
    replace : bool
        True draws with replacement, the paper's reading ("for n' = n it corresponds to a bootstrap estimate"), and n' may
        exceed n; False without, so that n' = n is coverage itself, which makes test sets of different sizes comparable.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [1, 0, 0, 0]])
    >>> top = TopK.from_ids([[0, 2, 1], [3, 1, 0]], n_labels=4)
    >>> sampled_coverage(Y, top, ks=(1, 3), sample_size=2)              # (1 - 1/4)/4, (1 + 1 - 1/4)/4
    array([0.1875, 0.4375])
    >>> sampled_coverage(Y, top, ks=(1, 3), sample_size=2, replace=False)
    array([0.25, 0.5 ])
    """
    whole_number("sample_size", sample_size, 1)
    hit = hit_labels(Y, top, ks)
    if not replace and sample_size > hit.n_rows:
        do = "or draw with replacement: replace=True"
        raise ArgumentError("sample_size", f"must not exceed the {hit.n_rows} rows", sample_size, do)
    return labelwise.sampled(hit, sample_size, replace, over)


def label_entropy(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    r"""The entropy of correct predictions at k, in nats (coverage, eq. 15 and 16): -sum of rho log rho, rho a label's share
    of all hits.

    .. math::

        -\sum_{l=1}^{L} \rho_l \ln \rho_l, \qquad \rho_l = \mathrm{tp}_l / \sum_m \mathrm{tp}_m

    Parameters
    ----------
    Y, top, ks
        See :mod:`xcrepro.core.metrics.labelwise`.

    Returns
    -------
    ndarray of float64, shape (K,)
        0 when one label takes all hits, and when there is none; log(L) at most, when all labels are hit equally often.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [1, 0, 0, 0]])
    >>> top = TopK.from_ids([[0, 2, 1], [3, 1, 0]], n_labels=4)
    >>> label_entropy(Y, top, ks=(1, 2, 3)).round(4)               # shares: 1; 1/2, 1/2; 2/3, 1/3
    array([0.    , 0.6931, 0.6365])
    """
    return labelwise.entropy(hit_labels(Y, top, ks))


def diversity(Y, top: TopK | None = None, ks=KS, *, similarity=None, label_features=None) -> np.ndarray:
    """Diversity@k: the mean over rows of the mean dissimilarity of the pairs among its top k (coverage, eq. 17).

    A pair of a label with itself, which eq. 17 includes, adds nothing. Divided by k(k-1)/2 always: pairs that a short row
    lacks add nothing either. Only predictions enter; Y gives the rows.

    Parameters
    ----------
    Y, top, ks
        See :mod:`xcrepro.core.metrics.labelwise`.
    similarity : sparse matrix or array_like, shape (L, L)
        Values in [0, 1], not stored = 0; the entry [better ranked, worse ranked] is read.
    label_features : sparse matrix or array_like, shape (L, D)
        Instead: similarity is the cosine, negative ones 0; a label without features is similar to none.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1]. A single label is not diverse: 0 at k = 1.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [1, 0, 0, 0]])
    >>> top = TopK.from_ids([[0, 2, 1], [3, 1, 0]], n_labels=4)
    >>> alike = np.eye(4)
    >>> alike[0, 2] = alike[2, 0] = 0.5
    >>> diversity(Y, top, ks=(1, 2, 3), similarity=alike).round(4)
    array([0.    , 0.75  , 0.9167])
    """
    wanted = cut_offs(ks)
    rising = np.unique(wanted)
    k_max = int(rising[-1])
    alike = None
    total, n_rows = ExactSums((rising.size,)), 0
    for block in blocks(Y, top, k_max):
        if alike is None:
            alike = _Similarity(block.n_labels, similarity, label_features)
        elif alike.n_labels != block.n_labels:
            raise ArgumentError("Y", f"must have {alike.n_labels} labels in every block", block.n_labels)
        for first in range(0, block.n_rows, _ROWS):
            ids = block.ids[first : first + _ROWS]
            pairs = np.zeros((len(ids), k_max))  # the dissimilarity of each place to those before it
            for place in range(1, k_max):
                present = np.flatnonzero(ids[:, place] >= 0)
                for earlier in range(place):
                    pairs[present, place] += 1.0 - alike(ids[present, earlier], ids[present, place])
            total.add_rows(np.cumsum(pairs, axis=1)[:, rising - 1])
        n_rows += block.n_rows
    check_rows(n_rows)
    return (total.rounded() / np.maximum(rising * (rising - 1) / 2, 1) / n_rows)[np.searchsorted(rising, wanted)]


class _Similarity:
    """similarity(a, b) of two equally long arrays of labels."""

    def __init__(self, n_labels: int, similarity, label_features) -> None:
        if (similarity is None) == (label_features is None):
            raise ArgumentError("similarity", "must be given, or label_features, not both", "both or neither")
        self.n_labels = n_labels
        self._features = similarity is None
        name, given = ("label_features", label_features) if self._features else ("similarity", similarity)
        table = checked_matrix(name, given, "features" if self._features else "labels")
        if table.shape[0] != n_labels or not (self._features or table.shape[1] == n_labels):
            columns = "any number of" if self._features else f"{n_labels}"
            raise ArgumentError(name, f"must have {n_labels} rows and {columns} columns", table.shape)
        self._table = table
        values = table.data if sparse.issparse(table) else table
        if not np.isfinite(values).all():
            raise ArgumentError(name, "must hold finite numbers", "others")
        if self._features:
            self._table = table = sparse.csr_array(table, dtype=np.float64)
            squares = np.asarray(table.multiply(table).sum(axis=1)).ravel()
            self._table = sparse.diags_array(1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))) @ table
        elif values.size and (values.min() < 0 or values.max() > 1):
            raise ArgumentError(name, "must lie in [0, 1]", f"{values.min()} to {values.max()}")

    def __call__(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.size == 0:
            return np.zeros(0)  # SciPy's answer to no pairs is a matrix
        if not self._features:
            return np.asarray(self._table[a, b], np.float64).ravel()
        cosine = np.asarray(self._table[a].multiply(self._table[b]).sum(axis=1)).ravel()
        return np.clip(cosine, 0.0, 1.0)
