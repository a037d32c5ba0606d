"""Ranking metrics at k: each a fold over the rows of ground truth and predictions.

Every metric is ``f(Y, top, ks=(1, 3, 5), ...)`` and returns a float64 array with one value for each k, in the order
of ``ks``. All are fractions (published tables multiply by 100). Common to all:

- ``Y`` is (n, L), any form :class:`xcrepro.core.truth.Truth` takes: positive = relevant; a tensor of PyTorch; or a list
  with the label ids of each row (:func:`xcrepro.core.tensors.labels_as_matrix`). ``top`` is a
  :class:`xcrepro.core.predictions.TopK` over the same n rows and L labels. Ties were settled when it was made.
- ``Y`` may also be an iterable of ``(Y, top)`` blocks, with ``top`` left out: predictions larger than memory stream
  through, and the result is the same to the last bit as in one piece (:class:`xcrepro.State`).
- A place that holds no prediction is a miss: P@k divides by k always.
- A row without labels counts as a row with value 0 in every mean; no rows at all is an error.
- A k above ``top.k``, the places kept, is refused.
- ``inverse_propensity`` is (L,), positive and finite: :func:`xcrepro.propensity.inverse` of the train counts.
- Whatever breaks a rule raises :class:`xcrepro.errors.ArgumentError`.

Written out: r is a place 1..k, y_r = 1 if the label there is relevant, w_r its inverse propensity, |y| the number of
relevant labels, I(m) = sum over r = 1..m of 1/log2(r+1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xcrepro.core.accumulators.block import KS, blocks
from xcrepro.core.arguments import check_rows, cut_offs, one_of
from xcrepro.core.errors import ArgumentError
from xcrepro.core.hierarchy import Hierarchy
from xcrepro.core.metrics import graded, state
from xcrepro.core.predictions import TopK


def values(
    names: Sequence[str], Y, top=None, ks=KS, inverse_propensity=None, n_relevant=None, beta: float = 1.0
) -> dict[str, np.ndarray]:
    """Several metrics in one pass over the rows.

    Parameters
    ----------
    names : sequence of str
        Of :func:`xcrepro.metrics.table`.
    Y, top, ks, inverse_propensity
        See the module.
    n_relevant : float array, (n,), optional
        The complete truth's label counts (:func:`xcrepro.core.accumulators.rows.check_n_relevant`), where a formula needs them.
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
    return state.of(Y, top, ks, names, inverse_propensity, n_relevant=n_relevant, beta=beta).values()


def precision(Y, top: TopK | None = None, ks=KS, *, denominator: str = "k") -> np.ndarray:
    r"""P@k: the mean over rows of (1/k) sum of y_r (xcrepo page; coverage, eq. 1).

    .. math::

        \mathrm{P@}k = \frac{1}{n} \sum_{i=1}^{n} \frac{1}{k} \sum_{r=1}^{k} y_{ir}

    k divides also where a row has fewer than k predictions or fewer than k labels, so even a perfect ranking stays
    below 1 on rows with |y| < k.

    Parameters
    ----------
    Y, top, ks
        See the module.
    denominator : {"k", "predicted"}
        ``"predicted"`` divides by the number of labels that the row predicts, k or fewer, for sets of any size
        (:meth:`xcrepro.TopK.above`); a row that predicts nothing has 0.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    References
    ----------
    * Bhatia and others, The extreme classification repository, 2016, http://manikvarma.org/downloads/XC/XMLRepository.html

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)   # hits: 1 0 1 and 0 1 0
    >>> precision(Y, top, ks=(1, 2, 3))
    array([0.5, 0.5, 0.5])
    """
    name = "P" if one_of("denominator", denominator, ("k", "predicted")) == "k" else "P (predicted)"
    return values([name], Y, top, ks)[name]


def precision_ceiling(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    """P@k if the best k of all places that are stored were chosen: the ceiling of a re-ranker that gets them as its shortlist.

    It is the mean over rows of min(k, hits among the stored places) / k, and so no metric of the first k places: with other
    numbers of stored places it is another number.

    Parameters
    ----------
    Y, top
        See the module.
    ks : int or sequence of int
        Any, also above ``top.k``: who chooses k of fewer places leaves places empty.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1], and never below :func:`precision`.

    Raises
    ------
    ArgumentError
        As the module says.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[3, 0, 2], [3, 1, 0]], n_labels=4)
    >>> precision(Y, top, ks=(1, 2)), precision_ceiling(Y, top, ks=(1, 2))
    (array([0. , 0.5]), array([1.  , 0.75]))
    """
    ks = cut_offs(ks)
    n, hits = 0, np.zeros(ks.size, np.int64)
    for block in blocks(Y, top, None):
        hits += np.minimum(block.found.sum(axis=1)[:, None], ks).sum(axis=0)
        n += block.n_rows
    check_rows(n, "Y")
    return hits / (n * ks)


def recall(Y, top: TopK | None = None, ks=KS, *, inverse_propensity=None, n_relevant=None) -> np.ndarray:
    r"""R@k: the mean over rows of (1/|y|) sum of y_r (coverage, eq. 1).

    .. math::

        \mathrm{R@}k = \frac{1}{n} \sum_{i=1}^{n} \frac{1}{|y_i|} \sum_{r=1}^{k} y_{ir}

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

    References
    ----------
    * Jain, Prabhu and Varma, KDD 2016, https://doi.org/10.1145/2939672.2939756

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


def ndcg(Y, top: TopK | None = None, ks=KS, *, ideal: str = "labels", gains: str | None = None) -> np.ndarray:
    r"""nDCG@k: the mean over rows of the discounted gain, sum of y_r / log2(r+1), over its ideal.

    .. math::

        \mathrm{nDCG@}k = \frac{1}{n} \sum_{i=1}^{n}
        \frac{\sum_{r=1}^{k} y_{ir} / \log_2(r+1)}{\sum_{r=1}^{\min(k, |y_i|)} 1 / \log_2(r+1)}

    Parameters
    ----------
    Y, top, ks
        See the module.
    ideal : {"labels", "k"}
        ``"labels"`` divides by I(min(k, |y|)), so that a perfect ranking has 1 (the repository's page and numbers,
        reeval appendix B); ``"k"`` divides by I(k) whatever |y| is (jain16 table 1, coverage eq. 2). nDCG@1 = P@1 in
        both.
    gains : {"linear", "exponential"}, optional
        Takes the values that Y stores for grades, and a hit counts its grade g (``"linear"``, as in scikit-learn's
        ``ndcg_score``) or 2^g - 1 (``"exponential"``, as in learning to rank). The ideal is then the row's own labels by
        falling grade. Without it every relevant label counts 1, whatever is stored.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    References
    ----------
    * Järvelin and Kekäläinen, ACM TOIS 2002, https://doi.org/10.1145/582415.582418
    * Bhatia and others, The extreme classification repository, 2016, http://manikvarma.org/downloads/XC/XMLRepository.html

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[0, 1, 0, 0]])
    >>> top = TopK.from_ids([[3, 1, 0]], n_labels=4)              # the one label at place 2
    >>> ndcg(Y, top, ks=(1, 3)).round(4), ndcg(Y, top, ks=(1, 3), ideal="k").round(4)
    (array([0.    , 0.6309]), array([0.    , 0.2961]))
    >>> grades = np.array([[0, 1, 0, 3]])
    >>> [ndcg(grades, TopK.from_ids([[1, 3]], n_labels=4), 2, gains=gains).round(4) for gains in ("linear", "exponential")]
    [array([0.7967]), array([0.7098])]
    """
    if gains is not None:
        if ideal != "labels":
            raise ArgumentError("ideal", "must be 'labels' with gains", repr(ideal), "k unknown labels have no grades")
        return graded.ndcg(Y, top, ks, gains)
    name = "nDCG" if one_of("ideal", ideal, ("labels", "k")) == "labels" else "nDCG (ideal k)"
    return values([name], Y, top, ks)[name]


def psp(Y, top: TopK | None = None, ks=KS, *, inverse_propensity, normalize: bool = True) -> np.ndarray:
    r"""PSP@k, propensity-scored precision.

    .. math::

        \mathrm{PSP@}k = \frac{\sum_i \sum_{r=1}^{k} w_{ir} y_{ir}}{\sum_i \max_{z} \sum_{r=1}^{k} w_{iz_r} y_{iz_r}}

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

    References
    ----------
    * Jain, Prabhu and Varma, KDD 2016, https://doi.org/10.1145/2939672.2939756

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
    r"""PSnDCG@k, propensity-scored nDCG.

    .. math::

        \mathrm{PSnDCG@}k = \frac{\sum_i G_i}{\sum_i G^*_i}, \qquad
        G_i = \frac{\sum_{r=1}^{k} w_{ir} y_{ir} / \log_2(r+1)}{\sum_{r=1}^{\min(k, |y_i|)} 1 / \log_2(r+1)}

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

    References
    ----------
    * Jain, Prabhu and Varma, KDD 2016, https://doi.org/10.1145/2939672.2939756

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


def average_precision(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    r"""AP@k, average precision: the mean over rows of (sum over hits at places r up to k of P@r) / min(k, |y|).

    .. math::

        \mathrm{AP@}k = \frac{1}{n} \sum_{i=1}^{n} \frac{1}{\min(k, |y_i|)}
        \sum_{r=1}^{k} y_{ir} \frac{1}{r} \sum_{s=1}^{r} y_{is}

    With k at least L this is the area under a row's precision-recall steps; its mean over rows is the field's MAP.
    scikit-learn's ``label_ranking_average_precision_score`` is the same there where scores do not tie.

    Parameters
    ----------
    Y, top, ks
        See the module.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1].

    References
    ----------
    * Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4, https://doi.org/10.1017/CBO9780511809071

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> average_precision(Y, top, ks=(1, 3)).round(4)             # ((1 + 2/3)/2 + 1/2)/2
    array([0.5   , 0.6667])
    """
    return values(["AP"], Y, top, ks)["AP"]


def lrap(Y, top: TopK | None = None, ks=KS, *, beyond: str = "last", average: str = "rows") -> np.ndarray:
    r"""LRAP@k, label ranking average precision: the mean over rows of (1/|y|) sum over relevant labels of P at their rank.

    .. math::

        \mathrm{LRAP} = \frac{1}{n} \sum_{i=1}^{n} \frac{1}{|y_i|} \sum_{l \in y_i} \frac{|\{m \in y_i : r_m \le r_l\}|}{r_l}

    A list of k labels says nothing of the rank of a relevant label that it does not hold. Whatever the ranks are, LRAP lies
    between the two values of ``beyond``, and they are equal if each list holds all relevant labels.

    Parameters
    ----------
    Y, top, ks
        See the module.
    beyond : {"last", "next"}
        Where the relevant labels that are not among the first k are taken to be. ``"last"``, the lowest value: all labels
        that are not listed tie for the last place L, so each adds |y|/L, as in scikit-learn's
        ``label_ranking_average_precision_score`` of scores with equal lowest ones. ``"next"``, the highest value: at places
        behind those listed, before all others.
    average : {"rows", "labels"}
        ``"labels"`` weighs each relevant label of each row alike, and not each row: the lwlrap of DCASE 2019 and HEAR, who tag
        sounds. Goes with ``beyond="last"``.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1]. A row without labels has 0, as everywhere in the kit; scikit-learn gives it 1. Ties among listed labels
        were settled when ``top`` was made; scikit-learn gives each its last rank.

    References
    ----------
    * Schapire and Singer, Machine Learning 2000, https://doi.org/10.1023/A:1007649029923

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> lrap(Y, top, ks=(1, 3)).round(4)                          # ((1 + 2/4)/2 + 1/4)/2, ((1 + 2/3)/2 + 1/2)/2
    array([0.5   , 0.6667])
    >>> lrap(Y, top, ks=(1, 3), beyond="next").round(4)           # ((1 + 2/2)/2 + 1/2)/2
    array([0.75  , 0.6667])
    >>> lrap(Y, top, ks=3, average="labels").round(4)             # (1 + 2/3 + 1/2)/3
    array([0.7222])
    """
    if one_of("average", average, ("rows", "labels")) == "labels":
        if beyond != "last":
            raise ArgumentError("beyond", "must be 'last' with average='labels'", repr(beyond))
        return values(["LRAP (label-weighted)"], Y, top, ks)["LRAP (label-weighted)"]
    name = "LRAP" if one_of("beyond", beyond, ("last", "next")) == "last" else "LRAP (at most)"
    return values([name], Y, top, ks)[name]


def coverage_error(Y, top: TopK | None = None, ks=KS, *, beyond: str = "last") -> np.ndarray:
    """Coverage error@k: the mean over rows of the rank of the last relevant label, how deep one must look to see all of them.

    It has nothing to do with coverage@k, which counts labels.

    Parameters
    ----------
    Y, top, ks
        See the module.
    beyond : {"last", "next"}
        As for :func:`lrap`: a row with a relevant label that is not listed has L (``"last"``, the highest value, and that of
        scikit-learn's ``coverage_error``), or the least that it can be (``"next"``, the lowest value).

    Returns
    -------
    ndarray of float64, shape (K,)
        A count of labels, lower is better, at best the mean of |y|. A row without labels has 0.

    References
    ----------
    * Schapire and Singer, Machine Learning 2000, https://doi.org/10.1023/A:1007649029923
    * Tsoumakas, Katakis and Vlahavas, Mining multi-label data, 2010, https://doi.org/10.1007/978-0-387-09823-4_34

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> coverage_error(Y, top, ks=(1, 3)), coverage_error(Y, top, ks=(1, 3), beyond="next")    # (3 + 2)/2 at 3
    (array([4. , 2.5]), array([2. , 2.5]))
    """
    name = "coverage error" if one_of("beyond", beyond, ("last", "next")) == "last" else "coverage error (at least)"
    return values([name], Y, top, ks)[name]


def mrr(
    Y, top: TopK | None = None, ks=KS, *, over: str = "first", inverse_propensity=None, n_relevant=None
) -> np.ndarray:
    r"""MRR@k, mean reciprocal rank.

    .. math::

        \mathrm{MRR@}k = \frac{1}{n} \sum_{i=1}^{n} \max_{r \le k} \frac{y_{ir}}{r}

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

    References
    ----------
    * Voorhees, The TREC-8 question answering track report, 1999
    * Jain, Prabhu and Varma, KDD 2016, https://doi.org/10.1145/2939672.2939756

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
    r"""ADG@k, average discounted gain: the mean over rows of (1/|y|) sum of y_r / log2(r+1) (jain16, table 1 (b)).

    .. math::

        \mathrm{ADG@}k = \frac{1}{n} \sum_{i=1}^{n} \frac{1}{|y_i|} \sum_{r=1}^{k} \frac{y_{ir}}{\log_2(r+1)}

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

    References
    ----------
    * Jain, Prabhu and Varma, KDD 2016, https://doi.org/10.1145/2939672.2939756

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
    r"""F_beta@k over rows: the mean of each row's F-score of the set of its top k labels (jain16, table 1 (b)).

    .. math::

        F_\beta\mathrm{@}k = \frac{1}{n} \sum_{i=1}^{n} \frac{(1 + \beta^2) \sum_{r=1}^{k} y_{ir}}{\beta^2 |y_i| + m_i}

    For micro- and macro-averages see :func:`micro_f1` and :func:`xcrepro.core.metrics.labelwise.macro_f1`.

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

    References
    ----------
    * Jain, Prabhu and Varma, KDD 2016, https://doi.org/10.1145/2939672.2939756

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
    r"""Hamming loss of the set of top k labels: the mean over rows of how many of the L labels are decided wrongly.

    .. math::

        \mathrm{H@}k = \frac{1}{n} \sum_{i=1}^{n} \sum_{l=1}^{L} (y_{il} - \hat{y}_{il})^2

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

    References
    ----------
    * Jain, Prabhu and Varma, KDD 2016, https://doi.org/10.1145/2939672.2939756

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


def hit_rate(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    """Hit rate@k: the share of rows whose top k hold at least one relevant label.

    Recommenders call it so; it is *success@k* in retrieval, *Recall@K* in metric learning, and ``served`` here, after the
    coverage paper: one minus :func:`abandonment`, which says what its arguments are.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> hit_rate(Y, TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4), ks=(1, 3))
    array([0.5, 1. ])
    """
    return values(["hit rate"], Y, top, ks)["hit rate"]


def r_precision(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    r"""R-precision@k: the mean over rows of the hits over min(k, |y|), so that a perfect ranking has 1.

    .. math::

        \mathrm{RP@}k = \frac{1}{n} \sum_{i=1}^{n} \frac{1}{\min(k, |y_i|)} \sum_{r=1}^{k} y_{ir}

    It is the main number of EURLEX57K (Chalkidis et al. 2019), of its multilingual successor and of skill extraction, and
    ``RP@K`` in LibMultiLabel. Plain R-precision, with k = |y| in each row, is another number.

    Parameters
    ----------
    Y, top, ks
        See the module.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1]; 0 for a row without labels.

    References
    ----------
    * Chalkidis, Fergadiotis, Malakasiotis and Androutsopoulos, ACL 2019, https://doi.org/10.18653/v1/P19-1636

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> r_precision(Y, top, ks=(1, 2, 3))                         # (1/1 + 0)/2, (1/2 + 1)/2, (2/2 + 1)/2
    array([0.5 , 0.75, 1.  ])
    """
    return values(["RP"], Y, top, ks)["RP"]


def exact_match(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    """Exact match@k: the share of rows whose first k predictions are the relevant labels, no more and no fewer.

    ICD coding and language models report it; it is the *subset accuracy* of scikit-learn's ``accuracy_score``. It judges sets
    (:meth:`xcrepro.TopK.above`): of k labels for every row it can only be right where there are k.

    Parameters
    ----------
    Y, top, ks
        See the module.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1]. A row without labels and without predictions is a match.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> exact_match(Y, TopK.from_ids([[0, 2, -1], [1, 3, -1]], n_labels=4), ks=(1, 2, 3))
    array([0.5, 0.5, 0.5])
    """
    return values(["exact match"], Y, top, ks)["exact match"]


def hierarchical(
    Y, top: TopK | None = None, ks=KS, *, hierarchy: Hierarchy, of: str = "F", average: str = "micro"
) -> np.ndarray:
    """Hierarchical precision, recall or F at k (Kiritchenko, Matwin and Famili 2005): credit for a label near the right one.

    Each row's relevant labels T and its first k predictions P are extended by all nodes above them, the root left out. Then
    hP = |T and P| / |P|, hR = |T and P| / |T| and hF = 2 |T and P| / (|T| + |P|), where the sizes are added up over rows
    first (``"micro"``, as the paper does), or each row's value is averaged.

    A node counts once in a row, however many of the labels are below it. With k labels for every row hP is as bounded as P@k:
    compare sets (:meth:`xcrepro.TopK.above`), or models at one k.

    Parameters
    ----------
    Y, top, ks
        See the module.
    hierarchy : Hierarchy
        Of the L labels.
    of : {"P", "R", "F"}
    average : {"micro", "rows"}
        ``micro-hP``, ``micro-hR``, ``micro-hF1`` of the registry, or its ``hP``, ``hR``, ``hF``.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1]; where a divisor is 0, the value is 0.

    Raises
    ------
    ArgumentError
        As the module says, and for a hierarchy of another number of labels.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import Hierarchy, TopK
    >>> names = ["dog", "poodle", "car", "cat"]
    >>> pairs = [("poodle", "dog"), ("dog", "animal"), ("cat", "animal"), ("animal", ""), ("car", "")]
    >>> top = TopK.from_ids([[1], [3], [2]], n_labels=4)                     # poodle for dog, cat for poodle, and car
    >>> hierarchical(np.eye(4)[:3], top, 1, hierarchy=Hierarchy.from_pairs(pairs, names))          # 2 (2 + 1 + 1) / (6 + 6)
    array([0.66666667])
    """
    one_of("of", of, ("P", "R", "F"))
    micro = one_of("average", average, ("micro", "rows")) == "micro"
    name = f"{'micro-' * micro}h{of}{'1' * (micro and of == 'F')}"
    return state.of(Y, top, ks, [name], hierarchy=hierarchy).values()[name]


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


def micro_precision(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    """Micro-averaged precision@k: hits / labels predicted, both added up over rows; 0 if none is predicted.

    Where every row has k predictions it is P@k. It judges sets of any size, as :meth:`xcrepro.TopK.above` makes them.

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
    >>> top = TopK.from_ids([[0, 1, 2], [3, -1, -1]], n_labels=4)
    >>> micro_precision(Y, top, ks=(1, 3)), micro_recall(Y, top, ks=(1, 3)).round(4)          # 1/2 and 2/4; 1/3 and 2/3
    (array([0.5, 0.5]), array([0.3333, 0.6667]))
    """
    return values(["micro-P"], Y, top, ks)["micro-P"]


def micro_recall(Y, top: TopK | None = None, ks=KS) -> np.ndarray:
    """Micro-averaged recall@k: hits / relevant labels, both added up over rows; 0 if none is relevant.

    Parameters
    ----------
    Y, top, ks
        See the module.

    Returns
    -------
    ndarray of float64, shape (K,)
        In [0, 1]. :func:`micro_precision` has an example.
    """
    return values(["micro-R"], Y, top, ks)["micro-R"]


def _per_relevant(name: str, Y, top, ks, inverse_propensity, n_relevant, beta: float = 1.0) -> np.ndarray:
    """A metric of jain16's table 1 (b): plain, or propensity-scored with the complete truth's label counts."""
    check_goes_with(n_relevant, inverse_propensity)
    name = name if inverse_propensity is None else f"PS-{name}"
    return values([name], Y, top, ks, inverse_propensity, n_relevant, beta)[name]


def check_goes_with(n_relevant, inverse_propensity) -> None:
    """Refuse label counts of the complete truth where nothing is propensity-scored."""
    if n_relevant is not None and inverse_propensity is None:
        raise ArgumentError("n_relevant", "goes with inverse_propensity", "n_relevant alone")
