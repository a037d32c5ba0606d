"""Calibration of the top k: does a score of 0.7 come true 7 times in 10?

A metric is ``f(scores, hits, ...) -> float`` over (score, hit) pairs, each of the same weight, whatever their shape:
``(n, k)`` as they come out of a ranking, pooled as the paper pools them, or ``(m,)``. ``metric@k`` is the metric of
:func:`pairs`\\ ``(Y, top, k)``; :func:`calibration_table` gives all of them for several k. Common to all:

- ``scores`` are probabilities, float32 or float64 as they come. A score outside [0, 1], or NaN, is refused (netcal takes
  both without a word): map unbounded scores with a link of :mod:`xcrepro.core.calibrate` first.
- ``hits`` is bool, or numbers that are 0 or 1: is the label at that place relevant?
- An absent place (a row with fewer than k predictions) made no statement, so it is left out, by :func:`pairs`. It is a miss
  for P@k; so the mean hit is P@k only where every row has k predictions.
- No pairs at all is an error. All results are fractions (published tables multiply by 100).
- Sums are exact and rounded once: the same bits in any order, with any number of threads, in one piece or in blocks
  (:class:`xcrepro.State`).

**Bins.** Equal-width bins have the edges i / bins, rounded to the scores' own precision, so that a score written as 0.7 lies
on its edge in float32 as in float64. ``closed`` says to which bin a score on an edge belongs, and peers differ:

- ``"left"`` (the default): [a, b), the last one [a, 1]: numpy.histogram, so the paper's histograms;
- ``"right"``: (a, b], the first one [0, b]: scikit-learn's calibration_curve, so the paper's reliability plots;
- ``"torchmetrics"``: as "left", but 1 has a bin of its own: torchmetrics' calibration error with which calibration@k code
  computes ECE. It differs where scores of exactly 1 are many, as after isotonic regression.

An empty bin has weight 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from xcrepro.core import distributions, threads
from xcrepro.core.accumulators.block import KS, Block
from xcrepro.core.accumulators.pairs import BINS, CAP, CLOSED, MAX_BINS, Pairs, PairSums, bin_edges
from xcrepro.core.accumulators.scores import ScorePool, check_scores
from xcrepro.core.accumulators.sums import ratio
from xcrepro.core.arguments import one_of, real_number, some_of, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import calibration as kernel
from xcrepro.core.matrices import checked_matrix
from xcrepro.core.metrics import formulas, registry, state
from xcrepro.core.metrics.formulas import BrierParts, CorrectedECE
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth

if TYPE_CHECKING:
    import pandas as pd


def pairs(Y, top: TopK, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The (score, hit) pairs of the first k places of all rows, row after row, absent places left out.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth, any form :class:`xcrepro.core.truth.Truth` takes.
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
    block = Block(Y, top, _places(top, k))
    present = block.ids >= 0
    return block.scores[present], block.found[present]


# ---------------------------------------------------------------------------------------------- metrics


def ece(
    scores,
    hits,
    k: int | None = None,
    *,
    bins: int = BINS,
    norm: str = "l1",
    half: str | None = None,
    debias: bool = False,
    closed: str = "left",
) -> float:
    r"""Expected calibration error (calibration, eqs. 7 and 8): the mean over pairs of their bin's |accuracy - confidence|.

    .. math::

        \mathrm{ECE@}k = \sum_{b} \frac{n_b}{n}\, |\mathrm{acc}_b - \mathrm{conf}_b|

    With d_b = (mean score) - (mean hit) and w_b = the share of pairs of bin b, ``norm`` says: ``"l1"`` sum of w_b |d_b|;
    ``"l2"`` root of the sum of w_b d_b^2; ``"max"`` the largest |d_b| of a bin that is not empty. All in [0, 1].

    Equation 7 is a sum over the k places; the paper's tables, this function and the authors' code take the mean.
    uncertainty-calibration's get_ece has equal-mass bins (:func:`ace`).

    Parameters
    ----------
    scores, hits
        Pairs; or a truth and its TopK: see the module.
    k : int, optional
        With a TopK: how many places count, all of them by default.
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

    References
    ----------
    * Ullah, Schultheis, Zhang and Babbar, 2024, https://doi.org/10.48550/arXiv.2411.04276
    * Naeini, Cooper and Hauskrecht, AAAI 2015, https://doi.org/10.1609/aaai.v29i1.9602
    * Kumar, Liang and Ma, NeurIPS 2019, https://doi.org/10.48550/arXiv.1909.10155

    Examples
    --------
    >>> scores = np.array([[0.95, 0.85], [0.92, 0.15]])
    >>> hits = np.array([[True, False], [True, False]])
    >>> ece(scores, hits)                             # 2/4 |0.935 - 1| + 1/4 |0.85 - 0| + 1/4 |0.15 - 0|
    0.2825
    >>> ece(scores, hits, half="over"), round(ece(scores, hits, half="under"), 4), ece(scores, hits, norm="max")
    (0.25, 0.0325, 0.85)
    """
    return formulas.binned_error(_sums(scores, hits, k, bins, closed).table, norm, half, debias)


def corrected_ece(
    scores, hits, k: int | None = None, *, bins: int = BINS, closed: str = "left", confidence_level: float = 0.95
) -> CorrectedECE:
    """ECE without the noise of its hits: the floor, the rest, and an interval.

    A bin's gap d_b is the true one plus noise, and |d_b| is never negative: an ECE of finite data is positive for a model
    without any error. Were all n_b scores of bin b right, its gap would have the variance v_b = sum of s (1 - s) / n_b^2, and
    |d_b| the mean sqrt(2 v_b / pi) (a normal law for the mean of many hits); **the floor** is the mean of these, bins weighted
    as in ECE.

    With true gaps t d_b, |gap| has the mean and variance of a folded normal law, and bins are independent. **Corrected** is t
    times the ECE for the t with which the measured ECE is what is to be expected, 0 where it is less than no error at all would
    print. **The interval** holds t times the ECE for all t with which it lies within its own spread. 0 is in it where a
    perfectly calibrated model could have printed the ECE; both ends are 0 where it is too small even for that.

    It supposes independent hits. Hits of one point that come together widen the truth; scores that were fitted to these very
    hits (cross-fitting included) narrow it, and can lie below the floor.

    Parameters
    ----------
    scores, hits, k, bins, closed
        As for :func:`ece`.
    confidence_level : float
        Of the interval, between 0 and 1.

    Returns
    -------
    CorrectedECE

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> found = corrected_ece(scores, rng.random(1000) < scores)                 # perfectly calibrated
    >>> [round(value, 3) for value in found]
    [0.031, 0.032, 0.002, 0.0, 0.044]
    >>> found = corrected_ece(scores, rng.random(1000) < 0.8 * scores)           # the true error is 0.1
    >>> [round(value, 3) for value in found]
    [0.109, 0.032, 0.106, 0.081, 0.132]
    """
    real_number("confidence_level", confidence_level, above=0, below=1)
    return formulas.corrected_of(_sums(scores, hits, k, bins, closed).table, confidence_level)


def ace(scores, hits, k: int | None = None, *, bins: int = BINS, norm: str = "l1", half: str | None = None) -> float:
    """Adaptive calibration error (Nixon et al. 2019): ECE over bins that hold the same number of pairs.

    In order of score, bin b holds the pairs from floor(b m / bins) to floor((b + 1) m / bins), m their number: the bins of the
    code the authors followed (Matsubara et al. 2023). With fewer pairs than bins some stay empty.

    Ties: that code leaves equal scores in the order in which a sort happened to put them. Here, where a cut goes through a
    run of equal scores, its hits are shared out evenly, so the result depends on no order and is the same without ties.
    netcal's ``ACE`` is something else: the *average* over equal-width bins, each bin of weight 1.

    Parameters
    ----------
    scores, hits, k, bins, norm, half
        As for :func:`ece`, the bins of equal mass.

    Returns
    -------
    float

    References
    ----------
    * Nixon and others, 2019, https://doi.org/10.48550/arXiv.1904.01685

    Examples
    --------
    >>> round(ace([0.1, 0.2, 0.8, 0.9], [False, False, True, False], bins=2), 6)     # (|0.15 - 0| + |0.85 - 0.5|) / 2
    0.25
    >>> ace([0.5] * 4, [True, True, True, False], bins=2), ace([0.5] * 4, [False, True, True, True], bins=2)
    (0.25, 0.25)
    """
    whole_number("bins", bins, 1, MAX_BINS)
    return _pool(scores, hits, k).ace(bins, norm, half)


def brier(scores, hits, k: int | None = None) -> float:
    r"""Brier score (calibration, eq. 11): the mean of (score - hit)^2. scikit-learn's brier_score_loss.

    .. math::

        \frac{1}{n} \sum_{j=1}^{n} (s_j - h_j)^2

    Parameters
    ----------
    scores, hits, k
        As for :func:`ece`.

    Returns
    -------
    float
        In [0, 1], lower is better.

    References
    ----------
    * Brier, Monthly Weather Review 1950, https://doi.org/10.1175/1520-0493(1950)078%3C0001:VOFEIT%3E2.0.CO;2
    * Ullah, Schultheis, Zhang and Babbar, 2024, https://doi.org/10.48550/arXiv.2411.04276

    Examples
    --------
    >>> round(brier([0.9, 0.6], [True, False]), 4)                          # (0.01 + 0.36) / 2
    0.185
    """
    return formulas.brier_of(_sums(scores, hits, k, 1))


def brier_decomposition(
    scores, hits, k: int | None = None, *, bins: int | None = None, closed: str = "left"
) -> BrierParts:
    r"""Murphy's (1973) parts of the Brier score: uncertainty - resolution + reliability.

    .. math::

        \mathrm{Brier} = \bar{h}(1 - \bar{h}) - \sum_b \frac{n_b}{n} (\bar{h}_b - \bar{h})^2
        + \sum_b \frac{n_b}{n} (\bar{s}_b - \bar{h}_b)^2 + \mathrm{within}

    Over groups g with share w_g, mean score p_g and mean hit y_g, and the mean hit y of all:
    uncertainty = y (1 - y); resolution = sum of w_g (y_g - y)^2, higher is better; reliability = sum of w_g (p_g - y_g)^2,
    the squared l2 ECE, 0 is best.

    Parameters
    ----------
    scores, hits, k
        As for :func:`ece`.
    bins : int, optional
        None groups by distinct score, and the three parts add up exactly, as Murphy has it; with few pairs a score this
        measures sampling noise. A number takes equal-width bins, and then two more parts are needed (Stephenson, Coelho and
        Jolliffe 2008): the scores' variance within bins, and twice their covariance with the hits.
    closed : {"left", "right", "torchmetrics"}
        With ``bins``: see the module.

    Returns
    -------
    BrierParts

    References
    ----------
    * Murphy, Journal of Applied Meteorology 1973, https://doi.org/10.1175/1520-0450(1973)012%3C0595:ANVPOT%3E2.0.CO;2
    * Stephenson, Coelho and Jolliffe, Weather and Forecasting 2008, https://doi.org/10.1175/2007WAF2006116.1

    Examples
    --------
    >>> parts = brier_decomposition([0.8, 0.8, 0.3, 0.3], [True, True, False, True])
    >>> parts.uncertainty, parts.resolution, round(parts.reliability, 4), round(parts.brier, 4)
    (0.1875, 0.0625, 0.04, 0.165)
    """
    if bins is not None:
        return formulas.decomposition(_sums(scores, hits, k, bins, closed))
    p, n, found = _pool(scores, hits, k).runs()
    return formulas.brier_parts(p, found / n, n / n.sum(), int(found.sum()) / int(n.sum()))


def nll(scores, hits, k: int | None = None, *, cap: float = CAP) -> float:
    r"""Negative log-likelihood (log loss): the mean of -ln of the probability that was given to what happened.

    .. math::

        -\frac{1}{n} \sum_{j=1}^{n} \big(h_j \ln s_j + (1 - h_j) \ln (1 - s_j)\big)

    Parameters
    ----------
    scores, hits, k
        As for :func:`ece`.
    cap : float
        The most one pair may cost. A 0 for what happened would cost infinity, and isotonic regression does say 0 and 1. 100
        is PyTorch's BCELoss, which the authors' code uses; ``-log(eps)`` is scikit-learn's clipping at eps; infinity
        leaves the loss as it is.

    Returns
    -------
    float

    References
    ----------
    * Ullah, Schultheis, Zhang and Babbar, 2024, https://doi.org/10.48550/arXiv.2411.04276

    Examples
    --------
    >>> round(nll([0.5, 0.8], [True, True]), 4)                            # (ln 2 - ln 0.8) / 2
    0.4581
    >>> nll([1.0, 0.0], [False, False]), nll([1.0, 0.0], [False, False], cap=np.inf)
    (50.0, inf)
    """
    return formulas.nll_of(_sums(scores, hits, k, 1, cap=cap, loss=True))


def smooth_ece(scores, hits, k: int | None = None, *, bandwidth: float | None = None) -> float:
    """smECE (Błasiok and Nakkiran 2023): calibration error without bins, in [0, 1].

    Each pair's residual, score - hit, is spread over [0, 1] by a Gaussian of standard deviation s around its score, reflected
    at 0 and at 1. smECE_s is the integral of |the mean of these|; it falls as s grows, and smECE is the one value with
    smECE_s = s.

    Computed on a grid of 65,536 steps, where reflection makes the smoothing a product of cosine coefficients: right to about
    1e-6 of the value for bandwidths from 0.001, 1e-4 at 0.0001. Unlike the sums it uses exp, so its last digits may differ
    between machines.

    Parameters
    ----------
    scores, hits, k
        As for :func:`ece`.
    bandwidth : float, optional
        smECE_s at this s, positive.

    Returns
    -------
    float
        In [0, 1].

    References
    ----------
    * Błasiok and Nakkiran, 2023, https://doi.org/10.48550/arXiv.2309.12236

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
    if bandwidth is not None:
        real_number("bandwidth", bandwidth, above=0)
    return _pool(scores, hits, k).smooth_ece(bandwidth)


def marginal_ece(probabilities, Y, bins: int = BINS, reduce: str = "sum", closed: str = "left") -> float:
    r"""Marginal ECE (calibration, eq. 6): each label's own ECE over all n points, added up over the labels.

    .. math::

        \sum_{l=1}^{L} \sum_b \frac{n_{lb}}{n}\, |\mathrm{acc}_{lb} - \mathrm{conf}_{lb}|

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

    References
    ----------
    * Ullah, Schultheis, Zhang and Babbar, 2024, https://doi.org/10.48550/arXiv.2411.04276

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
    whole_number("bins", bins, 1, MAX_BINS)
    one_of("closed", closed, CLOSED)
    one_of("reduce", reduce, ("sum", "mean"))
    truth = as_truth(Y)
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
    edges, errors = bin_edges(bins, closed, data.dtype), np.empty(truth.n_labels)
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


def reliability(
    scores, hits, k: int | None = None, *, bins: int = BINS, band: float | None = 0.95, closed: str = "left"
) -> pd.DataFrame:
    """The reliability diagram and histogram as a table, one row a bin.

    The interval is what Bröcker and Smith (2007) get by drawing hits from the scores, without the draws: the hits of a bin
    follow a Poisson binomial law, whose quantiles are taken from the binomial law with the same mean and variance; that is
    exact where the bin's scores are equal. It supposes independent hits: labels of one point that come together widen the
    true interval.

    Parameters
    ----------
    scores, hits, k, bins, closed
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
    import pandas as pd

    n, found, score, square, _ = _sums(scores, hits, k, bins, closed).table
    bounds = np.append(np.arange(bins) / bins, [1.0] * (1 + (n.size > bins)))
    filled = n > 0
    columns = {
        "bin": np.arange(n.size),
        "lower": bounds[:-1],
        "upper": bounds[1:],
        "count": n.astype(np.int64),
        "confidence": ratio(score, n, np.nan),
        "accuracy": ratio(found, n, np.nan),
    }
    if band is not None:
        real_number("band", band, above=0, below=1)
        for name, level in (("low", (1 - band) / 2), ("high", (1 + band) / 2)):
            columns[name] = np.full(n.size, np.nan)
            columns[name][filled] = hits_quantile(level, n[filled], score[filled], square[filled]) / n[filled]
    return pd.DataFrame(columns)


def calibration_table(
    Y, top: TopK | None = None, ks=KS, *, bins: int = BINS, closed: str = "left", cap: float = CAP, metrics=None
) -> pd.DataFrame:
    """Calibration@k of one set of predictions: a DataFrame with columns metric, k, value, as :func:`xcrepro.evaluate` has.

    Parameters
    ----------
    Y, top
        Truth (n, L) and predictions whose scores are probabilities; or an iterable of such pairs as ``Y`` alone, so that
        predictions larger than memory stream through, with the same bits. ACE and smECE keep the distinct scores that have
        passed: leave them out of ``metrics`` where that is too much.
    ks : int or sequence of int
    bins, closed
        Of ECE, ACE and the decomposition of Brier.
    cap : float
        Of NLL.
    metrics : str or sequence of str, optional
        Names of metrics that need probabilities (:func:`xcrepro.metrics.table`), in any order; all of them by default.

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
    known = registry.names("pairs", "scores")
    names = known if metrics is None else some_of("metrics", metrics, known)
    return state.of(Y, top, ks, names, bins=bins, closed=closed, cap=cap).compute()


def is_order(top: TopK) -> bool:
    """Whether the scores are those that a ranking without scores gets: whole numbers of -1 or less, falling along each row."""
    scores = np.where(top.ids >= 0, top.scores, np.float32(0))
    held = scores[top.ids >= 0]
    falls = np.diff(scores, axis=1)[top.ids[:, 1:] >= 0] <= -1
    return bool(held.size and held.max() == -1 and (held == np.round(held)).all() and falls.all())


def is_probability(top: TopK) -> bool:
    """Whether every score lies in [0, 1], so that it can be read as a probability as it is.

    Parameters
    ----------
    top : TopK
        Its absent places are not looked at; without a score it is True.

    Returns
    -------
    bool
    """
    scores = top.scores[top.ids >= 0]
    return bool(scores.size == 0 or (scores.min() >= 0 and scores.max() <= 1))


# ---------------------------------------------------------------------------------------------- behind them


def check_pairs(scores, hits) -> tuple[np.ndarray, np.ndarray]:
    """Scores as a flat float32 or float64 array in [0, 1], hits as a flat bool array, or an ArgumentError."""
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
    check_scores(given)
    flat = np.ascontiguousarray(given).reshape(-1)
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


def _sums(scores, hits, k: int | None, bins: int, closed: str = "left", cap: float = CAP, loss: bool = False) -> Pairs:
    """The sums over pairs, or over those of a truth and a TopK."""
    if isinstance(hits, TopK):
        k = _places(hits, k)
        fold = PairSums([k], bins, closed, cap, loss)
        fold.add(Block(scores, hits, k))
        return formulas.check_any(fold.at(k))
    _check_no_k(k)
    fold = PairSums([1], bins, closed, cap, loss)
    fold.add_pairs(*check_pairs(scores, hits))
    return fold.at(1)


def _pool(scores, hits, k: int | None) -> ScorePool:
    """The exact distribution of the scores of pairs, or of those of a truth and a TopK."""
    if isinstance(hits, TopK):
        scores, hits = pairs(scores, hits, k)
        if not scores.size:
            raise ArgumentError("top", "must hold at least one prediction", "none")
    else:
        _check_no_k(k)
    return ScorePool().add(*check_pairs(scores, hits))


def _places(top, k: int | None) -> int:
    if k is None and isinstance(top, TopK):
        return top.k
    return 1 if k is None else whole_number("k", k, 1)


def _check_no_k(k: int | None) -> None:
    if k is not None:
        raise ArgumentError(
            "k", "goes with a truth and its TopK", f"{k} with scores and hits", "cut the pairs yourself"
        )


def hits_quantile(level: float, n: np.ndarray, score: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Smallest number of hits that n pairs with calibrated scores stay at or below with probability ``level``."""
    trials = np.divide(score**2, square, out=np.zeros_like(score), where=square > 0)
    chance = np.divide(square, score, out=np.zeros_like(score), where=score > 0)

    def below(k: np.ndarray) -> np.ndarray:
        """P(hits <= k)."""
        rest = np.where(k < 0, 0.0, trials - k)
        law = distributions.beta(np.where(rest > 0, rest, 1.0), np.maximum(k, 0.0) + 1.0, 1.0 - np.minimum(chance, 1.0))
        return np.where(rest > 0, law, k >= 0)

    low, high = np.full(n.shape, -1.0), np.asarray(n, np.float64).copy()  # below(low) < level <= below(high)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2.0)
        enough = below(middle) >= level
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
