"""Calibration of the top k: does a score of 0.7 come true 7 times in 10?

A metric is ``f(scores, hits, ...) -> float`` over (score, hit) pairs, each of the same weight, whatever their shape:
``(n, k)`` as they come out of a ranking, pooled as the paper pools them, or ``(m,)``. ``metric@k`` is the metric of
:func:`pairs`\\ ``(Y, top, k)``; :func:`calibration_table` gives all of them for several k. Common to all:

- ``scores`` are probabilities, float32 or float64 as they come. A score outside [0, 1], or NaN, is refused (netcal takes
  both without a word): map unbounded scores with a link of :mod:`xcrepro.calibrate` first.
- ``hits`` is bool, or numbers that are 0 or 1: is the label at that place relevant?
- An absent place (a row with fewer than k predictions) made no statement, so it is left out, by :func:`pairs`. It is a miss
  for P@k; so the mean hit is P@k only where every row has k predictions.
- No pairs at all is an error. All results are fractions (published tables multiply by 100).
- Sums are taken in float64 over blocks of fixed size in order: the same bits with any number of threads, in one piece or
  streamed (:class:`Sums`).

**Bins.** Equal-width bins have the edges i / bins, rounded to the scores' own precision, so that a score written as 0.7 lies
on its edge in float32 as in float64. ``closed`` says to which bin a score on an edge belongs, and peers differ:

- ``"left"`` (the default): [a, b), the last one [a, 1]: numpy.histogram, so the paper's histograms;
- ``"right"``: (a, b], the first one [0, b]: scikit-learn's calibration_curve, so the paper's reliability plots;
- ``"torchmetrics"``: as "left", but 1 has a bin of its own: torchmetrics' calibration error with which calibration@k code
  computes ECE. It differs where scores of exactly 1 are many, as after isotonic regression.

An empty bin has weight 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from xcrepro import threads
from xcrepro.arguments import check_places, cut_offs, one_of, real_number, some_of, whole_number
from xcrepro.errors import ArgumentError
from xcrepro.kernels import calibration as kernel
from xcrepro.matrices import checked_matrix
from xcrepro.metrics.ranking import KS, blocks, ratio
from xcrepro.predictions import TopK, check_pair
from xcrepro.truth import Truth

if TYPE_CHECKING:
    import pandas as pd

BINS = 10
CAP = 100.0
_BLOCK = 2**16  # pairs; part of the definition of the last bit
_MAX_BINS = 100_000
_CLOSED = ("left", "right", "torchmetrics")
_GRID = 2**16  # steps of smooth_ece


def pairs(Y, top: TopK, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The (score, hit) pairs of the first k places of all rows, row after row, absent places left out.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth, any form :class:`xcrepro.truth.Truth` takes.
    top : TopK
        Its predictions.
    k : int, optional
        All places of ``top`` by default; more is refused.

    Returns
    -------
    scores : ndarray of float32, shape (m,)
    hits : ndarray of bool, shape (m,)

    Examples
    --------
    >>> from xcrepro import TopK
    >>> top = TopK.from_pairs([[(0, 0.9), (2, 0.5)], [(1, 0.4)]], n_labels=3)
    >>> pairs(np.array([[1, 1, 0], [0, 1, 0]]), top)
    (array([0.9, 0.5, 0.4], dtype=float32), array([ True, False,  True]))
    """
    truth = Truth.of(Y)
    check_pair(truth, top)
    k = top.k if k is None else whole_number("k", k, 1)
    check_places("k", k, top.k)
    return _pairs(top, truth.hits(np.ascontiguousarray(top.ids[:, :k])), k)


def _pairs(top: TopK, found: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    present = top.ids[:, :k] >= 0
    return top.scores[:, :k][present], found[:, :k][present]


# ---------------------------------------------------------------------------------------------- sums


class Sums:
    """What ECE, Brier score, its decomposition, NLL and the reliability table are made of; feed it pairs with :meth:`add`.

    However the pairs are cut into calls of ``add``, the bits of every result are the same: pairs wait until they fill a
    block of fixed size. Predictions larger than memory stream through.

    Parameters
    ----------
    bins, closed
        As for :func:`ece`.
    cap : float
        As for :func:`nll`.

    Attributes
    ----------
    n : int
        How many pairs there are.

    Examples
    --------
    >>> sums = Sums(bins=5).add([0.9, 0.1], [True, False]).add([0.5], [True])
    >>> round(sums.ece(), 4), round(sums.brier(), 4), sums.n
    (0.2333, 0.09, 3)
    """

    def __init__(self, bins: int = BINS, closed: str = "left", cap: float = CAP) -> None:
        self.bins, self.closed = whole_number("bins", bins, 1, _MAX_BINS), one_of("closed", closed, _CLOSED)
        self.cap = real_number("cap", cap, above=0, finite=False)
        self.n = 0
        # Many bins make a slot large; the size depends on nothing else.
        self._size = max(_BLOCK, 2 ** math.ceil(math.log2(16 * self.bins)))
        n_bins = self.bins + (closed == "torchmetrics")
        self._table, self._totals = np.zeros((kernel.ROWS, n_bins)), np.zeros(kernel.TOTALS)
        self._edges: np.ndarray | None = None
        self._dtype: np.dtype | None = None
        self._waiting: tuple[np.ndarray, np.ndarray] | None = None
        self._all: tuple[np.ndarray, np.ndarray] | None = None  # the sums with what waits

    def add(self, scores, hits) -> Sums:
        """Fold in more pairs. Returns itself. float32 and float64 scores may not be mixed: their edges differ."""
        scores, found = check_pairs(scores, hits)
        if self._edges is None:
            self._dtype, self._edges = scores.dtype, _edges(self.bins, self.closed, scores.dtype)
        elif scores.dtype != self._dtype:
            raise ArgumentError("scores", f"must stay {self._dtype} from block to block", scores.dtype)
        self.n += scores.size
        self._all = None
        if self._waiting is not None:
            missing = self._size - self._waiting[0].size
            self._waiting = tuple(
                np.concatenate([a, b[:missing]]) for a, b in zip(self._waiting, (scores, found), strict=True)
            )
            if self._waiting[0].size < self._size:
                return self
            self._table, self._totals = self._with(*self._waiting)
            scores, found = scores[missing:], found[missing:]
        whole = scores.size - scores.size % self._size
        self._table, self._totals = self._with(scores[:whole], found[:whole])
        self._waiting = scores[whole:].copy(), found[whole:].copy()
        return self

    def _with(self, scores: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sums so far, and these pairs added."""
        n_blocks = -(-scores.size // self._size)
        tables, totals = np.empty((n_blocks, *self._table.shape)), np.empty((n_blocks, kernel.TOTALS))
        given = scores, found, self._edges, math.exp(-self.cap), self._size
        threads.over_rows(n_blocks, lambda lo, hi: kernel.sums(*given, lo, hi, tables, totals), min_rows=4)
        table, total = self._table.copy(), self._totals.copy()
        for block in range(n_blocks):
            table += tables[block]
            total += totals[block]
        return table, total

    def _result(self) -> tuple[np.ndarray, np.ndarray]:
        if self.n == 0:
            raise ArgumentError("scores", "must hold at least one pair", "none")
        if self._all is None:
            self._all = self._with(*self._waiting)
        return self._all

    def ece(self, norm: str = "l1", half: str | None = None, debias: bool = False) -> float:
        """See :func:`ece`."""
        return _binned_error(self._result()[0], norm, half, debias)

    def brier(self) -> float:
        """See :func:`brier`."""
        return float(self._result()[1][kernel.SQUARED_ERROR] / self.n)

    def nll(self) -> float:
        """See :func:`nll`."""
        total = self._result()[1]
        # 0 pairs times an infinite cap is 0 here
        capped = total[kernel.CAPPED] * self.cap if total[kernel.CAPPED] else 0.0
        return float((total[kernel.LOG_LOSS] + capped) / self.n)

    def accuracy(self) -> float:
        """The mean hit."""
        return float(self._result()[0][kernel.HITS].sum() / self.n)

    def confidence(self) -> float:
        """The mean score."""
        return float(self._result()[0][kernel.SCORE].sum() / self.n)

    def decomposition(self) -> BrierParts:
        """See :func:`brier_decomposition`, with bins."""
        table = self._result()[0]
        table = table[:, table[kernel.COUNT] > 0]
        n, hits, score, square, both = table
        p, y, base = score / n, hits / n, hits.sum() / self.n
        weight = n / self.n
        return BrierParts(
            uncertainty=float(base * (1.0 - base)),
            resolution=float((weight * (y - base) ** 2).sum()),
            reliability=float((weight * (p - y) ** 2).sum()),
            within_variance=float((square - score * p).sum() / self.n),
            within_covariance=float(2.0 * (both - hits * p).sum() / self.n),
        )

    def reliability(self, band: float | None = 0.95) -> pd.DataFrame:
        """See :func:`reliability`."""
        import pandas as pd

        n, hits, score, square, _ = self._result()[0]
        bounds = np.append(np.arange(self.bins) / self.bins, [1.0] * (1 + (n.size > self.bins)))
        filled = n > 0
        columns = {
            "bin": np.arange(n.size),
            "lower": bounds[:-1],
            "upper": bounds[1:],
            "count": n.astype(np.int64),
            "confidence": ratio(score, n, np.nan),
            "accuracy": ratio(hits, n, np.nan),
        }
        if band is not None:
            real_number("band", band, above=0, below=1)
            for name, level in (("low", (1 - band) / 2), ("high", (1 + band) / 2)):
                columns[name] = np.full(n.size, np.nan)
                columns[name][filled] = hits_quantile(level, n[filled], score[filled], square[filled]) / n[filled]
        return pd.DataFrame(columns)


# ---------------------------------------------------------------------------------------------- metrics


def ece(
    scores,
    hits,
    bins: int = BINS,
    norm: str = "l1",
    half: str | None = None,
    debias: bool = False,
    closed: str = "left",
) -> float:
    """Expected calibration error (calibration, eqs. 7 and 8): the mean over pairs of their bin's |accuracy - confidence|.

    With d_b = (mean score) - (mean hit) and w_b = the share of pairs of bin b, ``norm`` says: ``"l1"`` sum of w_b |d_b|;
    ``"l2"`` root of the sum of w_b d_b^2; ``"max"`` the largest |d_b| of a bin that is not empty. All in [0, 1].

    Equation 7 is a sum over the k places; the paper's tables, this function and the authors' code take the mean.
    uncertainty-calibration's get_ece has equal-mass bins (:func:`ace`).

    Parameters
    ----------
    scores, hits
        See the module.
    bins : int
        Equal-width bins, 1 to 100,000.
    norm : {"l1", "l2", "max"}
        See above.
    half : {"over", "under"}, optional
        ``"over"`` counts only bins with d_b > 0 (overconfident), ``"under"`` those with d_b < 0. The two L1 halves add up
        to the whole.
    debias : bool
        With ``norm="l2"``, subtract from each d_b^2 the sampling variance of the bin's mean hit y_b,
        y_b (1 - y_b) / (n_b - 1) (Kumar, Liang and Ma 2019; 0 where n_b = 1). A negative rest is 0. Without it even a
        perfectly calibrated score has a positive expected error.
    closed : {"left", "right", "torchmetrics"}
        Where a score on an edge belongs: see the module.

    Returns
    -------
    float

    Examples
    --------
    >>> scores = np.array([[0.95, 0.85], [0.92, 0.15]])
    >>> hits = np.array([[True, False], [True, False]])
    >>> ece(scores, hits)                             # 2/4 |0.935 - 1| + 1/4 |0.85 - 0| + 1/4 |0.15 - 0|
    0.2825
    >>> ece(scores, hits, half="over"), round(ece(scores, hits, half="under"), 4), ece(scores, hits, norm="max")
    (0.25, 0.0325, 0.85)
    """
    return Sums(bins, closed).add(scores, hits).ece(norm, half, debias)


def ace(scores, hits, bins: int = BINS, norm: str = "l1", half: str | None = None) -> float:
    """Adaptive calibration error (Nixon et al. 2019): ECE over bins that hold the same number of pairs.

    In order of score, bin b holds the pairs from floor(b m / bins) to floor((b + 1) m / bins), m their number: the bins of the
    code the authors followed (Matsubara et al. 2023). With fewer pairs than bins some stay empty.

    Ties: that code leaves equal scores in the order in which a sort happened to put them. Here, where a cut goes through a
    run of equal scores, its hits are shared out evenly, so the result depends on no order and is the same without ties.
    netcal's ``ACE`` is something else: the *average* over equal-width bins, each bin of weight 1.

    Parameters
    ----------
    scores, hits, bins, norm, half
        As for :func:`ece`, the bins of equal mass.

    Returns
    -------
    float

    Examples
    --------
    >>> round(ace([0.1, 0.2, 0.8, 0.9], [False, False, True, False], bins=2), 6)     # (|0.15 - 0| + |0.85 - 0.5|) / 2
    0.25
    >>> ace([0.5] * 4, [True, True, True, False], bins=2), ace([0.5] * 4, [False, True, True, True], bins=2)
    (0.25, 0.25)
    """
    scores, found = check_pairs(scores, hits)
    whole_number("bins", bins, 1, _MAX_BINS)
    return _equal_mass_error(np.sort(_keys(scores, found)), scores.dtype, bins, norm, half)


def brier(scores, hits) -> float:
    """Brier score (calibration, eq. 11): the mean of (score - hit)^2. scikit-learn's brier_score_loss.

    Parameters
    ----------
    scores, hits
        See the module.

    Returns
    -------
    float
        In [0, 1], lower is better.

    Examples
    --------
    >>> round(brier([0.9, 0.6], [True, False]), 4)                          # (0.01 + 0.36) / 2
    0.185
    """
    return Sums(1).add(scores, hits).brier()


class BrierParts(NamedTuple):
    """Brier = uncertainty - resolution + reliability + within_variance - within_covariance."""

    uncertainty: float
    resolution: float
    reliability: float
    within_variance: float = 0.0
    within_covariance: float = 0.0

    @property
    def brier(self) -> float:
        """The parts put together."""
        return self.uncertainty - self.resolution + self.reliability + self.within_variance - self.within_covariance


def brier_decomposition(scores, hits, bins: int | None = None, closed: str = "left") -> BrierParts:
    """Murphy's (1973) parts of the Brier score: uncertainty - resolution + reliability.

    Over groups g with share w_g, mean score p_g and mean hit y_g, and the mean hit y of all:
    uncertainty = y (1 - y); resolution = sum of w_g (y_g - y)^2, higher is better; reliability = sum of w_g (p_g - y_g)^2,
    the squared l2 ECE, 0 is best.

    Parameters
    ----------
    scores, hits
        See the module.
    bins : int, optional
        None groups by distinct score, and the three parts add up exactly, as Murphy has it; with few pairs a score this
        measures sampling noise. A number takes equal-width bins, and then two more parts are needed (Stephenson, Coelho and
        Jolliffe 2008): the scores' variance within bins, and twice their covariance with the hits.
    closed : {"left", "right", "torchmetrics"}
        With ``bins``: see the module.

    Returns
    -------
    BrierParts

    Examples
    --------
    >>> parts = brier_decomposition([0.8, 0.8, 0.3, 0.3], [True, True, False, True])
    >>> parts.uncertainty, parts.resolution, round(parts.reliability, 4), round(parts.brier, 4)
    (0.1875, 0.0625, 0.04, 0.165)
    """
    if bins is not None:
        return Sums(bins, closed).add(scores, hits).decomposition()
    scores, found = check_pairs(scores, hits)
    keys = np.sort(_keys(scores, found))
    values, found = _values(keys, scores.dtype)
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    n = np.diff(np.append(first, values.size))
    y = np.add.reduceat(found, first, dtype=np.int64) / n
    p, base, weight = values[first].astype(np.float64), int(np.count_nonzero(found)) / found.size, n / found.size
    return BrierParts(
        uncertainty=base * (1.0 - base),
        resolution=float((weight * (y - base) ** 2).sum()),
        reliability=float((weight * (p - y) ** 2).sum()),
    )


def nll(scores, hits, cap: float = CAP) -> float:
    """Negative log-likelihood (log loss): the mean of -ln of the probability that was given to what happened.

    Parameters
    ----------
    scores, hits
        See the module.
    cap : float
        The most one pair may cost. A 0 for what happened would cost infinity, and isotonic regression does say 0 and 1. 100
        is PyTorch's BCELoss, which the authors' code uses; ``-log(eps)`` is scikit-learn's clipping at eps; infinity
        leaves the loss as it is.

    Returns
    -------
    float

    Examples
    --------
    >>> round(nll([0.5, 0.8], [True, True]), 4)                            # (ln 2 - ln 0.8) / 2
    0.4581
    >>> nll([1.0, 0.0], [False, False]), nll([1.0, 0.0], [False, False], cap=np.inf)
    (50.0, inf)
    """
    return Sums(1, cap=cap).add(scores, hits).nll()


def smooth_ece(scores, hits, bandwidth: float | None = None) -> float:
    """smECE (Błasiok and Nakkiran 2023): calibration error without bins, in [0, 1].

    Each pair's residual, score - hit, is spread over [0, 1] by a Gaussian of standard deviation s around its score, reflected
    at 0 and at 1. smECE_s is the integral of |the mean of these|; it falls as s grows, and smECE is the one value with
    smECE_s = s.

    Computed on a grid of 65,536 steps, where reflection makes the smoothing a product of cosine coefficients: right to about
    1e-6 of the value for bandwidths from 0.001, 1e-4 at 0.0001. Unlike the sums it uses exp, so its last digits may differ
    between machines.

    Parameters
    ----------
    scores, hits
        See the module.
    bandwidth : float, optional
        smECE_s at this s, positive.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> round(smooth_ece([0.9, 0.9, 0.9, 0.9], [True, True, False, False]), 6)
    0.4
    >>> hits = [True, False] * 50
    >>> for scores in ([0.499, 0.501] * 50, [0.5, 0.5] * 50):     # it moves little where ECE jumps over a bin's edge
    ...     print(round(ece(scores, hits), 3), round(smooth_ece(scores, hits), 3))
    0.501 0.02
    0.0 0.0
    """
    scores, found = check_pairs(scores, hits)
    if bandwidth is not None:
        real_number("bandwidth", bandwidth, above=0)
    return _smooth(_residuals(scores, found) / scores.size, bandwidth)


def marginal_ece(probabilities, Y, bins: int = BINS, reduce: str = "sum", closed: str = "left") -> float:
    """Marginal ECE (calibration, eq. 6): each label's own ECE over all n points, added up over the labels.

    Why it misleads here: nearly all of the n x L pairs are easy negatives with a score near 0, so the mean is near 0 for any
    model (for Renee on EURLex-4K the paper has 0.05 %, and an ECE@5 of 9.25 %), and most of the sum is about tail labels.
    Nor does calibration of each label imply that of the top k, because choosing the best picks what was overrated.

    Parameters
    ----------
    probabilities : sparse matrix or array_like, shape (n, L)
        In [0, 1]; what is not stored has probability 0.
    Y : sparse matrix or array_like, shape (n, L)
        Truth.
    bins, closed
        As for :func:`ece`.
    reduce : {"sum", "mean"}
        ``"sum"`` as printed, in [0, L]; ``"mean"`` over the labels, comparable with ECE@k.

    Returns
    -------
    float

    Examples
    --------
    The paper's table 1, as 10 draws of each of its two points:

    >>> truth = np.zeros((20, 2))
    >>> truth[:8, 0] = truth[10:16, 0] = 1                     # label 1: 0.8 at x1, 0.6 at x2
    >>> truth[:9, 1] = truth[10:14, 1] = 1                     # label 2: 0.9 and 0.4
    >>> said = np.repeat([[0.7, 0.9], [0.7, 0.4]], 10, axis=0)
    >>> abs(round(marginal_ece(said, truth), 12))              # every label is calibrated
    0.0
    >>> from xcrepro import TopK
    >>> round(ece(*pairs(truth, TopK.from_scores(said, 1))), 6)     # the top 1 is not: half of it says 0.7, and 0.6 come true
    0.05
    """
    whole_number("bins", bins, 1, _MAX_BINS)
    one_of("closed", closed, _CLOSED)
    one_of("reduce", reduce, ("sum", "mean"))
    truth = Truth.of(Y)
    probabilities = checked_matrix("probabilities", probabilities)
    shape = truth.n_rows, truth.n_labels
    if probabilities.shape != shape:
        raise ArgumentError("probabilities", f"must have Y's shape, {shape}", probabilities.shape)
    if 0 in shape:
        raise ArgumentError("Y", "must have at least one row and one label", shape)
    columns = sparse.csr_matrix(probabilities).tocsc()  # rows rise in each column, and what is stored twice stays so
    data = columns.data if columns.dtype in (np.float32, np.float64) else columns.data.astype(np.float64)
    (indptr, rows), true = ((m.indptr.astype(np.int64), m.indices.astype(np.int32, copy=False))
                            for m in (columns, truth.to_csr().tocsc()))  # fmt: skip
    edges, errors = _edges(bins, closed, data.dtype), np.empty(truth.n_labels)
    given = indptr, rows, data, *true, truth.n_rows, edges, bins + (closed == "torchmetrics")
    faults = threads.over_rows(truth.n_labels, lambda lo, hi: kernel.marginal(*given, lo, hi, errors), min_rows=1024)
    for fault, place in faults:
        if fault:
            where = f"at row {rows[place]}, label {int(np.searchsorted(indptr, place, side='right')) - 1}"
            if fault == kernel.DUPLICATE:
                raise ArgumentError("probabilities", "must not store a label twice in a row", f"a second value {where}")
            raise ArgumentError("probabilities", "must lie in [0, 1]", f"{data[place]} {where}")
    total = float(np.add.accumulate(errors)[-1])
    return total if reduce == "sum" else total / truth.n_labels


def reliability(scores, hits, bins: int = BINS, band: float | None = 0.95, closed: str = "left") -> pd.DataFrame:
    """The reliability diagram and histogram as a table, one row a bin.

    The interval is what Bröcker and Smith (2007) get by drawing hits from the scores, without the draws: the hits of a bin
    follow a Poisson binomial law, whose quantiles are taken from the binomial law with the same mean and variance; that is
    exact where the bin's scores are equal. It supposes independent hits: labels of one point that come together widen the
    true interval.

    Parameters
    ----------
    scores, hits, bins, closed
        As for :func:`ece`.
    band : float, optional
        Probability of the interval, between 0 and 1; None leaves it out.

    Returns
    -------
    DataFrame
        Columns: bin; lower, upper (its edges); count (the histogram); confidence (mean score); accuracy (mean hit); and with
        ``band`` low, high: the consistency interval, in which accuracy would fall with at least that probability
        (two-sided, each tail at most half the rest) if every score were right. A bar outside is miscalibrated beyond
        chance. An empty bin has NaN, and stays (scikit-learn's calibration_curve drops it).

    Examples
    --------
    >>> reliability([0.1, 0.3, 0.6, 0.9, 0.9], [False, True, True, True, False], bins=2).round(3)
       bin  lower  upper  count  confidence  accuracy    low  high
    0    0    0.0    0.5      2         0.2     0.500  0.000   1.0
    1    1    0.5    1.0      3         0.8     0.667  0.333   1.0
    """
    return Sums(bins, closed).add(scores, hits).reliability(band)


# Name -> its value from the sums and from the sorted keys of all pairs (_keys), which only two of them need.
_FORMULAS = {
    "ECE": lambda s, _: s.ece(),
    "ECE over": lambda s, _: s.ece(half="over"),
    "ECE under": lambda s, _: s.ece(half="under"),
    "ECE l2": lambda s, _: s.ece("l2"),
    "ECE l2 debiased": lambda s, _: s.ece("l2", debias=True),
    "ECE max": lambda s, _: s.ece("max"),
    "ACE": lambda s, keys: _equal_mass_error(keys, np.dtype(np.float32), s.bins, "l1", None),
    "smECE": lambda s, keys: smooth_ece(*_values(keys, np.dtype(np.float32))),
    "Brier": lambda s, _: s.brier(),
    **{part.replace("_", " "): lambda s, _, part=part: getattr(s.decomposition(), part) for part in BrierParts._fields},
    "NLL": lambda s, _: s.nll(),
    "confidence": lambda s, _: s.confidence(),
    "accuracy": lambda s, _: s.accuracy(),
    "pairs": lambda s, _: float(s.n),
}
METRICS = tuple(_FORMULAS)


def calibration_table(
    Y, top: TopK | None = None, ks=KS, *, bins: int = BINS, closed: str = "left", cap: float = CAP, metrics=METRICS
) -> pd.DataFrame:
    """Calibration@k of one set of predictions: a DataFrame with columns metric, k, value, as :func:`xcrepro.evaluate` has.

    Parameters
    ----------
    Y, top
        Truth (n, L) and predictions whose scores are probabilities; or an iterable of such pairs as ``Y`` alone, so that
        predictions larger than memory stream through, with the same bits. ACE and smECE keep the pairs that have passed (4
        or 8 bytes a pair and k): leave them out of ``metrics`` where that is too much.
    ks : int or sequence of int
    bins, closed
        Of ECE, ACE and the decomposition of Brier.
    cap : float
        Of NLL.
    metrics : str or sequence of str
        Names of :data:`METRICS`, in any order.

    Returns
    -------
    DataFrame
        Columns metric, k, value. The value at k is that of the function of the same name on ``pairs(Y, top, k)``; ``pairs``
        is how many there are.

    Examples
    --------
    >>> from xcrepro import TopK
    >>> top = TopK.from_pairs([[(0, 0.9), (2, 0.5)], [(1, 0.4)]], n_labels=3)
    >>> calibration_table(np.array([[1, 1, 0], [0, 1, 0]]), top, (1, 2), metrics=["ECE", "Brier"]).round(4)
      metric  k   value
    0    ECE  1  0.3500
    1    ECE  2  0.4000
    2  Brier  1  0.1850
    3  Brier  2  0.2067
    """
    import pandas as pd

    metrics, ks = some_of("metrics", metrics, METRICS), cut_offs(ks)
    keep = {"ACE", "smECE"} & set(metrics)
    sums = [Sums(bins, closed, cap) for _ in ks]
    kept: list[list[np.ndarray]] = [[] for _ in ks]
    k_max = int(ks.max())
    for truth, block, _ in blocks(Y, top):
        check_pair(truth, block)
        check_places("ks", k_max, block.k)
        found = truth.hits(np.ascontiguousarray(block.ids[:, :k_max]))
        for i, k in enumerate(ks):
            scores, hits = _pairs(block, found, k)
            if scores.size == 0:
                continue
            sums[i].add(scores, hits)
            if keep:
                kept[i].append(_keys(scores, hits))
    if not all(each.n for each in sums):
        raise ArgumentError("top", "must hold at least one prediction", "none")
    sorted_keys = [np.sort(np.concatenate(keys)) if keep else None for keys in kept]
    rows = [(m, int(k), _FORMULAS[m](sums[i], sorted_keys[i])) for m in metrics for i, k in enumerate(ks)]
    return pd.DataFrame(rows, columns=["metric", "k", "value"])


# ---------------------------------------------------------------------------------------------- behind them


def check_pairs(scores, hits) -> tuple[np.ndarray, np.ndarray]:
    """Scores as a flat float32 or float64 array in [0, 1], hits as a flat bool array, or an ArgumentError. The caller's
    arrays are only read."""
    given = np.asarray(scores)
    if given.dtype.kind not in "biuf":
        raise ArgumentError("scores", "must be numbers", f"dtype {given.dtype}")
    truth = np.asarray(hits)
    if truth.shape != given.shape:
        rule = f"must have the shape of scores, {given.shape}"
        raise ArgumentError("hits", rule, truth.shape, "pairs(Y, top, k) makes both")
    if given.size == 0:
        raise ArgumentError("scores", "must hold at least one pair", f"shape {given.shape}")
    if truth.dtype.kind not in "biuf":
        raise ArgumentError("hits", "must be bool", f"dtype {truth.dtype}")
    if given.dtype not in (np.float32, np.float64):
        given = given.astype(np.float32 if given.dtype == np.float16 else np.float64)
    flat = np.ascontiguousarray(given).reshape(-1)
    # A minimum of NaN and something is NaN, and NaN is not in the range.
    ranges = threads.over_rows(flat.size, lambda lo, hi: (flat[lo:hi].min(), flat[lo:hi].max()), min_rows=2**20)
    if not all(low >= 0 and high <= 1 for low, high in ranges):
        place = int(np.argmin((flat >= 0) & (flat <= 1)))
        do = "map scores to probabilities first: the links min_max and margin of xcrepro.calibrate"
        if flat[place] == -np.inf:
            do = "absent places are left out by xcrepro.metrics.calibration.pairs"
        raise ArgumentError("scores", "must lie in [0, 1]", f"{flat[place]} {_where(place, given.shape)}", do)
    found = np.ascontiguousarray(truth).reshape(-1)
    if found.dtype != np.bool_:
        ones = found == 1
        other = ~ones & (found != 0)
        if other.any():
            place = int(np.argmax(other))
            raise ArgumentError("hits", "must be bool, or 0 and 1", f"{found[place]} {_where(place, given.shape)}")
        found = ones
    return flat, found


def _where(place: int, shape: tuple[int, ...]) -> str:
    return f"at row {place // shape[1]}, place {place % shape[1]}" if len(shape) == 2 else f"at pair {place}"


def _edges(bins: int, closed: str, dtype: np.dtype) -> np.ndarray:
    """The kernel's edges: bin b holds ``edges[b] <= score < edges[b + 1]``."""
    inner = (np.arange(1, bins) / bins).astype(dtype).astype(np.float64)
    if closed == "right":
        # Above the edge means at or above the next number.
        inner = np.nextafter(inner, 2.0)
    top = 1.0 if closed == "torchmetrics" else 2.0
    return np.concatenate([[0.0], inner, [top, 3.0]])


def _binned_error(table: np.ndarray, norm: str, half: str | None, debias: bool = False) -> float:
    one_of("norm", norm, ("l1", "l2", "max"))
    one_of("half", half, (None, "over", "under"))
    if debias and (norm != "l2" or half is not None):
        raise ArgumentError("debias", "goes with norm='l2' and both halves", f"norm={norm!r}, half={half!r}")
    table = table[:, table[kernel.COUNT] > 0]
    n, hits, score = table[kernel.COUNT], table[kernel.HITS], table[kernel.SCORE]
    gap = score / n - hits / n
    gap = {None: np.abs(gap), "over": np.maximum(gap, 0.0), "under": np.maximum(-gap, 0.0)}[half]
    if norm == "max":
        return float(gap.max())
    weight = n / n.sum()
    if norm == "l1":
        return float((weight * gap).sum())
    squares = gap**2
    if debias:
        y = hits / n
        squares = squares - y * (1.0 - y) / np.maximum(n - 1.0, 1.0)
    return math.sqrt(max(0.0, float((weight * squares).sum())))


def _keys(scores: np.ndarray, found: np.ndarray) -> np.ndarray:
    """One whole number a pair that sorts by score, then by hit: the bits of a number that is not negative rise with it."""
    unsigned = np.uint32 if scores.dtype == np.float32 else np.uint64
    # The sign bit, which only -0 has set, is shifted out.
    return scores.view(unsigned) << unsigned(1) | found


def _values(keys: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The scores and hits of :func:`_keys`."""
    return (keys >> keys.dtype.type(1)).view(dtype), (keys & keys.dtype.type(1)).astype(np.bool_)


def _equal_mass_error(sorted_keys: np.ndarray, dtype: np.dtype, bins: int, norm: str, half: str | None) -> float:
    scores, found = _values(sorted_keys, dtype)
    cuts = np.arange(bins + 1, dtype=np.int64) * scores.size // bins
    table = np.empty((kernel.ROWS, bins))
    kernel.equal_mass(scores, found, cuts, table)
    return _binned_error(table, norm, half)


def _residuals(scores: np.ndarray, found: np.ndarray) -> np.ndarray:
    """score - hit added up on a grid, each shared between the two nodes around its score."""
    grid = np.zeros(_GRID + 2)
    for first in range(0, scores.size, 2**20):
        p, y = scores[first : first + 2**20].astype(np.float64), found[first : first + 2**20]
        place = (p * _GRID).astype(np.int64)
        residual = p - y
        upper = (p * _GRID - place) * residual
        grid += np.bincount(place, residual - upper, _GRID + 2) + np.bincount(place + 1, upper, _GRID + 2)
    return grid[:-1]


def _smooth(residuals: np.ndarray, bandwidth: float | None) -> float:
    """smECE of mean residuals on the grid, at a bandwidth or at the fixed point."""
    from scipy.fft import dct

    # Reflected at both ends, the residuals are an even function of period 2: Gaussian smoothing multiplies its cosine
    # coefficients by exp(-(pi j s)^2 / 2). A type 1 transform counts the two ends half, so they go in twice.
    ends = residuals.copy()
    ends[[0, -1]] *= 2.0
    coefficients = dct(ends, type=1)
    frequency = np.pi * np.arange(coefficients.size)

    def error(s: float) -> float:
        curve = np.abs(dct(coefficients * np.exp(-0.5 * (frequency * s) ** 2), type=1)) / 2.0
        return float((curve.sum() - (curve[0] + curve[-1]) / 2.0) / _GRID)

    if bandwidth is not None:
        return error(bandwidth)
    # error(s) falls, s rises: bisect their crossing, which lies in (0, 1]
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        low, high = (middle, high) if error(middle) > middle else (low, middle)
    return high


def hits_quantile(level: float, n: np.ndarray, score: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Smallest number of hits that n pairs with calibrated scores stay at or below with probability ``level``.

    The law is the binomial with the mean (score) and the variance (score - square) of the hits.

    Parameters
    ----------
    level : float
        In (0, 1).
    n, score, square : ndarray of float64, shape (bins,)
        Per bin, the number of pairs, the sum of their scores and of their squares.

    Returns
    -------
    ndarray of float64, shape (bins,)
    """
    from scipy.special import betainc

    trials = np.divide(score**2, square, out=np.zeros_like(score), where=square > 0)
    chance = np.divide(square, score, out=np.zeros_like(score), where=score > 0)

    def below(k: np.ndarray) -> np.ndarray:
        """P(hits <= k)."""
        rest = trials - k
        return np.where(rest > 0, betainc(np.where(rest > 0, rest, 1.0), k + 1.0, 1.0 - np.minimum(chance, 1.0)), 1.0)

    low, high = np.full(n.shape, -1.0), np.asarray(n, np.float64).copy()  # below(low) < level <= below(high)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2.0)
        enough = below(middle) >= level
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
