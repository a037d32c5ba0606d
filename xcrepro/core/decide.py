"""From label probabilities to the k labels to predict: what is best depends on what counts.

- hits, wherever they fall (P@k, nDCG@k over k places): :func:`top_k`;
- hits that weigh differently by label (PSP@k, PSnDCG@k, macro recall): :func:`weighted`;
- as many different labels hit as possible (Cov@k): :func:`greedy_coverage`, and between the two ends its ``beta``;
- coverage while P@k keeps a floor: :func:`for_precision`;
- macro-F1@k, macro-precision, macro-recall, coverage, P@k or a mix of them: :func:`maximise` for a fixed set of rows, and
  :func:`randomised` for a rule that decides about each row alone;
- :func:`bounded_random` is the baseline that any of these should beat.

Common to all:

- ``probabilities`` is (n, L), sparse or dense: row i holds the marginals eta_l(x_i) = P(y_l = 1 | x_i), each in [0, 1];
  a row need not sum to 1. **A sparse matrix names the candidates**: a stored label may be chosen, a stored 0 too; one
  that is not stored has probability 0 and is never chosen. A dense matrix makes every label a candidate.
- A row with fewer than k candidates gets them all; its last places are absent (id -1).
- Equal gains go to the lowest label id. Gains are float64, whatever the probabilities are.
- NaN, a value outside [0, 1], a label stored twice in a row or an id out of range is refused, with its row and label.
- In the returned :class:`xcrepro.core.predictions.TopK` the labels stand in order of what was maximised, and ``scores`` holds
  that gain, rounded to float32: probabilities from :func:`top_k` and :func:`bounded_random`, weight times probability from
  :func:`weighted`, (f + beta) times probability from :func:`greedy_coverage`. For calibration, which needs probabilities,
  there is :func:`marginals`.

Decide with the k that is evaluated. The first places of a selection for k = 5 are no selection for k = 1: greedy gives
them to the gains, but its places 2 to 5 cover labels as well, and later rows count on that; on small data
:func:`weighted` can then have the higher Cov@1. (The coverage paper draws its random baseline once, for k = 5, and evaluates
the first places, ``top.head(1)`` and ``top.head(3)``; of its greedy rows it does not say, its program does the same.)
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from xcrepro.core import threads
from xcrepro.core.arguments import check_places, check_rows, cut_offs, label_values, one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import decide as kernel
from xcrepro.core.kernels import topk as topk_kernel
from xcrepro.core.matrices import checked_matrix, row_of
from xcrepro.core.predictions import TopK, as_float, check_pair, empty_places
from xcrepro.core.truth import Truth, as_truth

if TYPE_CHECKING:
    from xcrepro.core.one_pass import OnePass as OnePass

__all__ = [
    "MIXED",
    "UPDATES",
    "Constrained",
    "OnePass",
    "Randomised",
    "bounded_random",
    "expected_coverage",
    "expected_precision",
    "expected_utility",
    "for_precision",
    "greedy_coverage",
    "marginals",
    "maximise",
    "randomised",
    "top_k",
    "weighted",
]


def __dir__() -> list[str]:
    return __all__


UPDATES = {"probability": kernel.PROBABILITY, "gain": kernel.GAIN}
"""What :func:`greedy_coverage` takes from a chosen label's f."""

# where for_precision looks for a first beta that is large enough; beyond the last there is only the plain top k
_GRID = [4.0**power for power in range(-4, 6)]

MIXED = {
    "P": kernel.PRECISION,
    "macro-P": kernel.MACRO_PRECISION,
    "macro-R": kernel.MACRO_RECALL,
    "macro-F1": kernel.MACRO_F1,
    "coverage": kernel.COVERAGE,
}
"""What :func:`maximise` can mix, by the metrics' names in :func:`xcrepro.evaluate`."""

# the step sizes that randomised tries, in 64ths
_STEPS = np.arange(65) / 64.0


def top_k(probabilities, k: int) -> TopK:
    """The k most probable labels of each row: no choice has a higher expected P@k, or nDCG@k over k places (eq. 2).

    Parameters
    ----------
    probabilities, k
        See the module; k is 1 or more.

    Returns
    -------
    TopK
        Scores are the probabilities.

    Raises
    ------
    ArgumentError
        For what the module says of ``probabilities``, or k below 1.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2]])
    >>> top_k(eta, 1).ids.tolist()
    [[0], [0]]
    """
    _Candidates.of(probabilities)
    return TopK.from_scores(probabilities, k)


def weighted(probabilities, k: int, weights) -> TopK:
    """The k labels of largest w_l * eta_l in each row: the best choice where a hit of label l is worth w_l.

    Over a label tree ``xc.models.PLT.predict`` with ``weights`` makes the same choice without all marginals.

    Parameters
    ----------
    probabilities, k
        See the module; k is 1 or more.
    weights : array_like of float, shape (L,)
        Finite in float32, 0 or more, the same for all rows:

        - inverse propensities (:func:`xcrepro.propensity.inverse`) maximise the expected PSP@k (coverage, eq. 4 and 7).
          The places' discounts of PSnDCG@k (eq. 8) fall with the rank, so the same labels in this order are best for it
          as well;
        - one over the label's prior, ``n / np.maximum(label_counts, 1)``, maximises expected macro recall as n grows: a
          hit of label l then adds 1 / (number of its positives);
        - ones give :func:`top_k`.

    Returns
    -------
    TopK
        Scores are w_l * eta_l.

    Raises
    ------
    ArgumentError
        For what the module says, and for weights of another length, negative, NaN or above 3e38.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2]])
    >>> weighted(eta, 1, weights=[1.0, 2.0, 10.0]).ids.tolist()
    [[1], [2]]
    """
    candidates = _Candidates.of(probabilities)
    largest = float(np.finfo(np.float32).max)
    weights = label_values("weights", weights, candidates.n_labels, at_most=largest)
    return candidates.select(k, weights)


def bounded_random(probabilities, k: int, b: int = 2, *, seed=0) -> TopK:
    """k labels of each row drawn at random from its b * k most probable ones, then ordered by probability.

    The bounded random selection of Bradley and Smyth as the coverage paper uses it (section 5.5, BRS-PLT: k = 5, b = 2;
    it saw every metric fall with larger b): diversity without any aim, the least that a method for it should beat.

    Parameters
    ----------
    probabilities, k
        See the module; k is 1 or more.
    b : int
        1 or more; 1 gives :func:`top_k`. Each label of the b * k is chosen with the same probability 1/b; a row with fewer
        candidates draws from those it has.
    seed : object
        Whatever ``numpy.random.default_rng`` takes.

    Returns
    -------
    TopK
        Scores are the probabilities.

    Raises
    ------
    ArgumentError
        For what the module says, or b below 1.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.4, 0.1, 0.0]])
    >>> [bounded_random(eta, 2, seed=seed).ids[0].tolist() for seed in range(4)]    # two of 0, 1, 2, 3
    [[2, 3], [0, 2], [0, 3], [0, 1]]
    """
    k, b = whole_number("k", k, 1), whole_number("b", b, 1)
    pool = top_k(probabilities, b * k)
    keys = np.random.default_rng(seed).random(pool.ids.shape)
    keys[pool.ids < 0] = np.inf  # drawn only when there is nothing else
    drawn = np.sort(np.argsort(keys, axis=1, kind="stable")[:, :k], axis=1)
    return TopK(np.take_along_axis(pool.ids, drawn, 1), np.take_along_axis(pool.scores, drawn, 1), pool.n_labels)


def greedy_coverage(
    probabilities, k: int, beta: float = 0.0, *, update: str = "probability", order=None, passes: int = 1
) -> TopK:
    """Greedy selection for coverage: each row takes the k labels that add most to what the rows before have covered.

    Coverage's algorithm 1. f_l, at first 1, is the probability that label l was a miss wherever it was
    chosen so far; a row takes the k labels of largest g_l = (f_l + beta) * eta_l, and then f_l <- (1 - eta_l) f_l for
    those.

    The best selection is NP-hard to find. This one reaches half of its expected coverage at least (the objective is
    monotone and submodular, the k places of each row a partition matroid). A chosen label with eta_l = 1 has f_l = 0
    from then on; a row that can add nothing takes its lowest label ids. Over a label tree
    ``xc.models.PLT.predict_coverage`` makes the same choice without all marginals (algorithm 2).

    ``update="gain"`` is another rule, see the notes.

    Parameters
    ----------
    probabilities, k
        See the module; k is 1 or more.
    beta : float
        0 or more. 0 is the plain greedy algorithm; larger values give up coverage for precision (section 5.3; 0.25 in the
        paper's table 2), and ``math.inf`` is :func:`top_k`.
    update : {"probability", "gain"}
        What a chosen label's f loses: f <- (1 - eta) f, line 7 of algorithm 1, or f <- max(0, 1 - g) f.
    order : array_like of int, shape (n,), optional
        A permutation of the rows, ``order[0]`` first; None: as they stand. Early rows get the likely labels, late ones the
        rest, so the order decides which rows lose precision: ``np.random.default_rng(0).permutation(n)`` spreads it.
    passes : int
        1 is the paper's algorithm. In each further pass every row gives its labels back and chooses anew, knowing what all
        the others chose, until nothing changes or the passes are spent. That never lowers the expected number of covered
        labels plus beta times that of hits (block coordinate ascent); five passes take most of what it gains. With
        ``update="gain"`` there is one pass: its f depends on the order of the rows, so nothing can be given back.

    Returns
    -------
    TopK
        Scores are the gains g_l as they were when the row was last decided (eta_l where beta is infinite).

    Raises
    ------
    ArgumentError
        For what the module says, a negative or NaN beta, another update, an order that is no permutation, passes below 1
        or, with ``update="gain"``, above 1.

    Notes
    -----
    **What the gain rule maximises.** With beta = 0 it makes 1/f <- (1/f) / (1 - f eta), which adds eta and a term of
    order f eta^2: f is at most 1 / (1 + s), where s is the sum of the label's eta over the rows that chose it, its expected
    hits, and comes near that where each eta is small. To choose by f eta is then to climb the sum over labels of
    log(1 + s), a utility that never saturates. The probability rule has f at most exp(-s), and climbs 1 - exp(-s), the
    expected coverage, of which nothing is left to gain after a few expected hits. So the gain rule goes on choosing
    likely labels where the probability rule has turned to unlikely ones: as a rule more hits, and less expected coverage.

    With beta > 0, for small eta, f = beta / ((1 + beta) exp(beta s) - 1), and what is climbed is the sum over labels of
    log(((1 + beta) exp(beta s) - 1) / beta) = beta s + log(1 + (1 - exp(-beta s)) / beta).

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2]])
    >>> top = greedy_coverage(eta, 1)                    # after row 0, f is 0.1, 1, 1
    >>> top.ids.tolist(), top.scores.T
    ([[0], [1]], array([[0.9, 0.3]], dtype=float32))
    >>> greedy_coverage(eta, 1, beta=0.25).ids.tolist()  # 0.35 * 0.8 < 1.25 * 0.3
    [[0], [1]]
    >>> greedy_coverage(eta, 1, beta=1).ids.tolist()     # 1.1 * 0.8 > 2 * 0.3
    [[0], [0]]
    >>> often = [[0.5, 0.15]] * 3
    >>> greedy_coverage(often, 1).scores.T                    # f_0 is 1, 0.5, 0.25, and 0.25 * 0.5 < 0.15
    array([[0.5 , 0.25, 0.15]], dtype=float32)
    >>> greedy_coverage(often, 1, update="gain").scores.T     # f_0 is 1, 0.5, 0.5 * (1 - 0.25)
    array([[0.5   , 0.25  , 0.1875]], dtype=float32)
    """
    do = "0 is greedy, math.inf the plain top k"
    beta, passes = real_number("beta", beta, at_least=0, finite=False, do=do), whole_number("passes", passes, 1)
    one_of("update", update, tuple(UPDATES))
    if update == "gain" and passes > 1:
        do = "its f depends on the order of the rows, so no row can give its labels back"
        raise ArgumentError("passes", 'must be 1 with update="gain"', passes, do)
    candidates = _Candidates.of(probabilities)
    return candidates.greedy(k, beta, _order(order, candidates.n_rows), passes, UPDATES[update])


@dataclass(frozen=True, eq=False)
class Constrained:
    """What :func:`for_precision` found.

    Attributes
    ----------
    beta : float
        The parameter chosen; ``math.inf`` where only the plain top k keeps the floor.
    top : TopK
        The selection with it.
    precision, coverage : float
        Its P@k and Cov@k (over all L labels), expected or on the truth that was given.
    path : ndarray of float64, shape (tries, 3)
        Every beta that was tried, rising, with its precision and coverage.
    """

    beta: float
    top: TopK
    precision: float
    coverage: float
    path: np.ndarray


def for_precision(
    probabilities, k: int, floor: float, Y=None, *, tolerance: float = 0.01, order=None, passes: int = 1
) -> Constrained:
    """The selection of largest coverage whose P@k is ``floor`` or more (coverage, eq. 14 with Cov@k as the diversity).

    Looks for the smallest beta of :func:`greedy_coverage` that keeps the floor, by bisection. It takes for granted that
    precision rises with beta and coverage falls. This holds nearly always, and no theorem says so (in the paper's table 3
    P@1 on WikiLSHTC-325K is highest at beta = 0.5). So every try is kept in ``path``, and of all tries that keep the floor
    the one of largest coverage is returned, ties to the smaller beta. The floor holds in any case.

    Parameters
    ----------
    probabilities, k
        See the module; k is 1 or more.
    floor : float
        In (0, 1].
    Y : sparse matrix or array_like, shape (n, L), optional
        Without it, P@k and Cov@k are what the probabilities lead to expect: right if they are calibrated. With the truth of
        the same rows, they are counted on it; take rows on which nothing was trained, and then use the beta on others:
        about as many, because f falls, and beta weighs more, with every further row.
    tolerance : float
        Bisection ends when the step that is too small is within this share of the one returned.
    order, passes
        As in :func:`greedy_coverage`.

    Raises
    ------
    ArgumentError
        Where no try keeps the floor; it says what P@k was reached.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2]])
    >>> found = for_precision(eta, 1, floor=0.7)
    >>> round(found.beta, 2), found.top.ids.tolist(), round(found.precision, 2)     # 0.44 in theory: (0.3 - 0.08) / 0.5
    (0.44, [[0], [0]], 0.85)
    >>> for_precision(eta, 1, floor=0.5).beta
    0.0
    """
    k, passes = whole_number("k", k, 1), whole_number("passes", passes, 1)
    real_number("floor", floor, above=0, at_most=1, do="published tables print percent")
    real_number("tolerance", tolerance, above=0, below=1)
    candidates = _Candidates.of(probabilities)
    check_rows(candidates.n_rows, "probabilities")
    order = _order(order, candidates.n_rows)
    truth = None if Y is None else as_truth(Y)
    tries: dict[float, tuple[float, float]] = {}
    kept: list[tuple[float, float, TopK]] = []  # coverage, beta, selection: the best so far

    def keeps(beta: float) -> bool:
        top = candidates.greedy(k, beta, order, passes)
        tries[beta] = candidates.expected(top, k) if truth is None else _counted(truth, top)
        precision, coverage = tries[beta]
        if precision < floor:
            return False
        if not kept or (coverage, -beta) > (kept[0][0], -kept[0][1]):
            kept[:] = [(coverage, beta, top)]
        return True

    if not keeps(0.0):
        keeps(math.inf)
        # No selection has a higher expected P@k than the plain top k: unless that keeps the floor, none does.
        if kept or truth is not None:
            low = 0.0
            for high in _GRID:
                if keeps(high):
                    while high - low > tolerance * high:
                        middle = (low + high) / 2
                        low, high = (low, middle) if keeps(middle) else (middle, high)
                    break
                low = high
        if not kept:
            most = max(precision for precision, _ in tries.values())
            rule = f"must be within reach: no beta has P@{k} above {most:.6f}"
            raise ArgumentError("floor", rule, floor, "lower the floor")
    coverage, beta, top = kept[0]
    path = np.array([(tried, *tries[tried]) for tried in sorted(tries)])
    return Constrained(beta, top, tries[beta][0], coverage, path)


def maximise(probabilities, k: int, metric: str, *, passes: int = 20, tolerance: float = 1e-6, seed: Any = 0) -> TopK:
    """k labels for each row, so that a metric of all rows together is as large as possible: block coordinate ascent.

    Starts from the k most probable labels. In each pass every row in turn gives its labels back and takes the k that add
    most, knowing what all other rows chose; a label that it has stays where another adds no more. What it climbs is the
    plug-in value of the metric (notes). That never falls from pass to pass, is never below that of :func:`top_k`, and in the
    end no row can raise it by a change of its own labels. It need not be the largest there is. For macro-recall and macro-F1
    of labels that are expected less than a few times, the plug-in value is too high, and the choice can be worse than
    :func:`top_k` in truth: :func:`expected_utility` has the exact expectation and says how far they are apart.

    Parameters
    ----------
    probabilities, k
        See the module; k is 1 or more.
    metric : str
        ``"P"``, ``"macro-P"``, ``"macro-R"``, ``"macro-F1"``, ``"coverage"``, or a mix of them such as
        ``"0.5 P + 0.5 macro-F1"``, with weights of 0 or more that add up to 1. Averages are over all L labels.
    passes : int
        How often, at most, each row decides anew.
    tolerance : float
        Passes end when one adds less than this to the metric, a fraction; 0 or more.
    seed : object
        Of the order of the rows; whatever ``numpy.random.default_rng`` takes.

    Returns
    -------
    TopK
        Scores are what each label added to the metric when the row was last decided. It may be negative, because each
        row must take k labels.

    Raises
    ------
    ArgumentError
        For what the module says, another metric (the nearest is named), and weights that do not add up to 1.

    Notes
    -----
    The plug-in value of a metric such as F1 is put together from the expected counts of each label: with t the sum of its
    probabilities over the rows that chose it, n the number of these rows, and m the sum over all rows, macro-F1 is the mean
    of 2 t / (n + m), macro-P that of t / n and macro-R that of t / m. This is the expected test utility of Schultheis et
    al. (NeurIPS 2023), with expectations in place of the counts inside the ratio. P and macro-P are exact, because n is
    known; coverage is, if rows are independent. One more row with probability p then adds a p + b, where a and b depend on
    the label only, so a row's best k labels are the k of largest gain. A pass takes three to four times as long as one of
    :func:`greedy_coverage`, and most metrics need several.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2], [0.7, 0.1, 0.6]])
    >>> maximise(eta, 1, "P").ids.ravel().tolist(), maximise(eta, 1, "macro-F1").ids.ravel().tolist()
    ([0, 0, 0], [1, 0, 2])
    >>> maximise(eta, 1, "0.5 P + 0.5 macroF1")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    xcrepro.core.errors.ArgumentError: metric must be one of 'P', ...; got 'macroF1': did you mean 'macro-F1'?
    """
    passes, weights = whole_number("passes", passes, 1), _mix(metric)
    tolerance = real_number("tolerance", tolerance, at_least=0)
    candidates = _Candidates.of(probabilities)
    ids, scores, chosen = candidates._empty(k)
    parts = candidates.indptr, candidates.indices, candidates.data
    order = np.random.default_rng(seed).permutation(candidates.n_rows)
    kernel.select(
        *parts, order, 0, candidates.n_rows, np.ones(candidates.n_labels), 0.0, kernel.KEEP, ids, scores, chosen
    )
    shares, positives = candidates.shares(weights, k), candidates.positives()
    kernel.ascend(*parts, order, positives, shares, passes, tolerance, ids, scores, chosen)
    return TopK(ids, scores, candidates.n_labels)


def expected_utility(probabilities, top: TopK, metric: str, ks=None, *, exact: bool = False) -> np.ndarray:
    """The plug-in value of a metric, or mix, for a selection, which :func:`maximise` makes large; or its expectation.

    Parameters
    ----------
    probabilities, top
        As in :func:`marginals`.
    metric
        As in :func:`maximise`.
    ks : int or sequence of int, optional
        None: all places of ``top``.
    exact : bool
        False: with expected counts in place of counts (notes of :func:`maximise`). True: the expected value itself, if a
        label's rows are independent of each other; to ten digits.

    Returns
    -------
    ndarray of float64, shape (K,)
        Fractions.

    Raises
    ------
    ArgumentError
        As :func:`maximise` and :func:`expected_coverage`.

    Notes
    -----
    The two differ for macro-R and macro-F1 only, where a label is expected in less than a few rows: it may be in none, but
    never in a fraction of one. Of the choices of :func:`maximise` and :func:`top_k`, three labels of each row, all candidates
    with probabilities that are 12th powers of uniform numbers, means of 20 draws:

    ====  ======  ============  ============================  ============================
    ..    ..      ..            macro-F1                      macro-R
    rows  labels  rows a label  plug-in, exact; top_k, exact  plug-in, exact; top_k, exact
    ====  ======  ============  ============================  ============================
    20    15      1.5           .531, .493; .416              .870, .694; .694
    100   40      7.6           .587, .584; .575              .590, .604; .591
    400   60      31            .550, .550; .547              .457, .460; .456
    2000  100     154           .448, .449; .448              .312, .313; .312
    ====  ======  ============  ============================  ============================

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2]])
    >>> expected_utility(eta, top_k(eta, 1), "macro-R")      # label 0 is always chosen, the others never
    array([0.33333333])
    >>> expected_utility(eta, top_k(eta, 1), "macro-R", exact=True)    # it may be relevant to no row, with chance 0.1 * 0.2
    array([0.32666667])
    """
    weights, candidates = _mix(metric), _Candidates.of(probabilities)
    check_rows(candidates.n_rows, "probabilities")
    values, positives = candidates.marginals(top), candidates.positives()
    ks = [top.k] if ks is None else cut_offs(ks).tolist()
    check_places("ks", max(ks), top.k)
    found = np.empty(len(ks))
    for i, k in enumerate(ks):
        parts, more = candidates.shares(weights, k), 0.0
        if exact and (weights[kernel.MACRO_RECALL] or weights[kernel.MACRO_F1]):
            recall, f1 = candidates.expected_ratios(top.ids[:, :k])
            more = parts[kernel.MACRO_RECALL] * math.fsum(recall) + parts[kernel.MACRO_F1] * math.fsum(f1)
            parts[[kernel.MACRO_RECALL, kernel.MACRO_F1]] = 0.0
        tallied = _tally(top.ids[:, :k], values[:, :k], top.n_labels, positives)
        found[i] = kernel.utility(*tallied, parts) + more
    return found


def _mix(metric: str) -> np.ndarray:
    """The weight of each of :data:`MIXED` in a text such as ``"0.5 P + 0.5 macro-F1"``."""
    if not isinstance(metric, str):
        do = 'a mix is a text such as "0.5 P + 0.5 macro-F1"'
        raise ArgumentError("metric", "must be a metric's name or a mix of several", repr(metric), do)
    weights = np.zeros(kernel.N_PARTS)
    for term in metric.split("+"):
        number, _, name = term.strip().rpartition(" ")
        weights[MIXED[one_of("metric", name, tuple(MIXED))]] += _share(number, term.strip())
    total = math.fsum(weights.tolist())
    if abs(total - 1.0) > 1e-9:
        raise ArgumentError("metric", "must have weights that add up to 1", f"{metric!r}, which adds up to {total:.6g}")
    return weights


def _share(number: str, term: str) -> float:
    """The weight before a name; none is 1."""
    try:
        share = float(number or 1)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise ArgumentError("metric", "must have weights from 0 to 1 before its names", repr(term))
    return share


def _tally(ids: np.ndarray, values: np.ndarray, n_labels: int, positives: np.ndarray) -> tuple[np.ndarray, ...]:
    """What ``kernel.utility`` takes of each label: rows that chose it, hits, positives, the chance of no hit."""
    predicted, tp, failure = np.zeros(n_labels), np.zeros(n_labels), np.ones(n_labels)
    kernel.tally(ids, values, predicted, tp, failure)
    return predicted, tp, positives, failure


@dataclass(frozen=True, eq=False)
class Randomised:
    """A rule that draws one of a few simple rules for each row: what :func:`randomised` found.

    Rule c takes the k labels of largest ``terms[c, l, 0] * eta_l + terms[c, l, 1]``.

    Attributes
    ----------
    terms : ndarray of float64, shape (rules, L, 2)
    weights : ndarray of float64, shape (rules,)
        How likely each rule is drawn; they add up to 1.
    k : int
    value : float
        The metric of the mixture on the rows that it was made from: counted where they have a truth, else the plug-in value
        (notes of :func:`maximise`).
    """

    terms: np.ndarray
    weights: np.ndarray
    k: int
    value: float

    def predict(self, probabilities, seed: Any = 0) -> TopK:
        """k labels for each row, by the rule that is drawn for it.

        Parameters
        ----------
        probabilities
            Of any rows, with the labels of those that the rule was made from; see the module.
        seed : object
            Whatever ``numpy.random.default_rng`` takes.

        Returns
        -------
        TopK
            Scores are the drawn rule's.

        Raises
        ------
        ArgumentError
            For what the module says, and for another number of labels.
        """
        candidates = _Candidates.of(probabilities)
        if candidates.n_labels != self.terms.shape[1]:
            rule = f"must have the {self.terms.shape[1]} labels of the rule"
            raise ArgumentError("probabilities", rule, candidates.n_labels)
        drawn = np.random.default_rng(seed).random(candidates.n_rows)
        which = np.searchsorted(np.cumsum(self.weights)[:-1], drawn, side="right")
        ids, scores, _ = candidates.by_terms(self.k, self.terms, which)
        return TopK(ids, scores, candidates.n_labels)


def randomised(
    probabilities, k: int, metric: str, Y=None, *, iterations: int = 50, tolerance: float = 1e-6
) -> Randomised:
    """A rule for single rows that makes a metric of all rows large: the Frank-Wolfe method.

    :func:`maximise` needs all rows at once. This makes a rule from rows with known probabilities, which then decides about
    each new row alone. It starts from the k most probable labels. Each step finds the rule that is best for the metric's
    gradient, which takes the k labels of largest a_l eta_l + b_l, and mixes it in with the step that helps most.

    Parameters
    ----------
    probabilities, k
        See the module; k is 1 or more.
    metric : str
        As in :func:`maximise`, without coverage, which is no function of a label's expected counts.
    Y : sparse matrix or array_like, shape (n, L), optional
        The truth of the same rows: hits are then counted on it. Take rows on which nothing was trained. None: hits are
        what the probabilities lead to expect.
    iterations : int
        How many steps, at most; 0 or more.
    tolerance : float
        Steps end when the best one adds less than this; above 0.

    Raises
    ------
    ArgumentError
        For what the module says, and for ``metric`` as in :func:`maximise`.

    Notes
    -----
    The method of Schultheis et al. (ICLR 2024). The metric is a function of t, n and m of each label (see
    :func:`maximise`), and a mixture of rules has the mixture of their t and n. The gradient of 2 t / (n + m) is
    a = 2 / (n + m) and b = -2 t / (n + m)^2. A label that is never chosen has n = 0, where t / n has no gradient; we take
    n = 1, one row, and the same where n + m is below 1. Steps are multiples of 1/64, the best of which is taken, so the
    metric never falls, whatever its shape.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2], [0.7, 0.1, 0.6]])
    >>> rule = randomised(eta, 1, "macro-F1")
    >>> float(rule.weights.sum()), bool(rule.value > expected_utility(eta, top_k(eta, 1), "macro-F1")[0])
    (1.0, True)
    >>> rule.predict(eta).ids.shape
    (3, 1)
    """
    iterations, weights = whole_number("iterations", iterations), _mix(metric)
    tolerance = real_number("tolerance", tolerance, above=0)
    if weights[kernel.COVERAGE]:
        do = "maximise and greedy_coverage choose for coverage"
        raise ArgumentError("metric", "must be without coverage, which expected counts do not give", repr(metric), do)
    candidates = _Candidates.of(probabilities)
    check_rows(candidates.n_rows, "probabilities")
    truth = None if Y is None else as_truth(Y)
    if truth is not None:
        check_pair(truth, candidates.select(k, np.ones(candidates.n_labels)))
    positives = candidates.positives() if truth is None else truth.label_counts().astype(np.float64)
    parts = candidates.shares(weights, k)

    def outcome(terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ids, _, chosen = candidates.by_terms(k, terms[None], np.zeros(candidates.n_rows, np.int64))
        values, there = np.zeros(ids.shape), ids >= 0
        values[there] = candidates.data[chosen[there]] if truth is None else truth.hits(ids)[there]
        predicted, tp, *_ = _tally(ids, values, candidates.n_labels, positives)
        return predicted, tp

    def mixed(old, new, step: float) -> tuple[np.ndarray, np.ndarray]:
        predicted, tp = ((1.0 - step) * a + step * b for a, b in zip(old, new, strict=True))
        return predicted, tp

    no_miss = np.ones(candidates.n_labels)
    rules, shares = [np.tile([1.0, 0.0], (candidates.n_labels, 1))], np.ones(1)
    state = outcome(rules[0])
    value = kernel.utility(*state, positives, no_miss, parts)
    for _ in range(iterations):
        rule = _gradient(*state, positives, parts)
        new = outcome(rule)
        tries = [kernel.utility(*mixed(state, new, step), positives, no_miss, parts) for step in _STEPS]
        best = int(np.argmax(tries))
        if tries[best] - value < tolerance:
            break
        step, value = _STEPS[best], tries[best]
        state, shares = mixed(state, new, step), np.append((1.0 - step) * shares, step)
        rules = [one for one, share in zip([*rules, rule], shares, strict=True) if share > 0]
        shares = shares[shares > 0]
    return Randomised(np.array(rules), shares, whole_number("k", k, 1), float(value))


def _gradient(predicted: np.ndarray, tp: np.ndarray, positives: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """By label, what one more expected hit and one more row add to ``kernel.utility``."""
    rows, both = np.maximum(predicted, 1.0), np.maximum(predicted + positives, 1.0)
    precision, f1 = parts[kernel.MACRO_PRECISION], 2.0 * parts[kernel.MACRO_F1]
    recall = np.divide(parts[kernel.MACRO_RECALL], positives, out=np.zeros_like(positives), where=positives > 0)
    slope = parts[kernel.PRECISION] + recall + precision / rows + f1 / both
    offset = -(precision * tp / (rows * rows) + f1 * tp / (both * both))
    return np.stack([slope, offset], axis=1)


def marginals(probabilities, top: TopK) -> np.ndarray:
    """The probabilities of the chosen labels, place by place: what calibration needs of a selection whose scores are gains.

    ``TopK.from_ids(top.ids, marginals(...), n_labels=L)`` ranks the same labels by probability.

    Parameters
    ----------
    probabilities
        See the module.
    top : TopK
        A selection from them.

    Returns
    -------
    ndarray of float64, shape (n, k)
        0 where absent or not stored.

    Raises
    ------
    ArgumentError
        Where rows or labels of the two differ.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.75, 0.25, 0.2]])
    >>> marginals(eta, greedy_coverage(eta, 1)).round(2).tolist()
    [[0.9], [0.25]]
    """
    return _Candidates.of(probabilities).marginals(top)


def expected_coverage(probabilities, top: TopK, ks=(1, 3, 5)) -> np.ndarray:
    """E[Cov@k] of a selection (coverage, eq. 22): 1 - (1/L) sum over labels of prod (1 - eta_l) where l is chosen.

    Exact if rows are independent given their features and the probabilities are right.

    Parameters
    ----------
    probabilities, top
        As in :func:`marginals`.
    ks : int or sequence of int

    Returns
    -------
    ndarray of float64, shape (K,)
        Over all L labels, those never chosen included.

    Raises
    ------
    ArgumentError
        For a k that ``top`` does not hold, or no rows.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2]])
    >>> expected_coverage(eta, top_k(eta, 2), ks=(1, 2)).round(4)    # 1 - 0.1 * 0.2; and 1 - 0.5 * 0.7
    array([0.3267, 0.5433])
    """
    return np.array([coverage for _, coverage in _expected(probabilities, top, ks)])


def expected_precision(probabilities, top: TopK, ks=(1, 3, 5)) -> np.ndarray:
    """E[P@k] of a selection: the mean over rows of (1/k) sum of eta_l over the first k places.

    Parameters
    ----------
    probabilities, top, ks
        As in :func:`expected_coverage`.

    Returns
    -------
    ndarray of float64, shape (K,)
        k divides always, absent places count 0.

    Raises
    ------
    ArgumentError
        As :func:`expected_coverage`.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> eta = csr_matrix([[0.9, 0.5, 0.0], [0.8, 0.3, 0.2]])
    >>> expected_precision(eta, top_k(eta, 2), ks=(1, 2)).round(4)
    array([0.85 , 0.625])
    """
    return np.array([precision for precision, _ in _expected(probabilities, top, ks)])


def _expected(probabilities, top: TopK, ks) -> list[tuple[float, float]]:
    candidates = _Candidates.of(probabilities)
    check_rows(candidates.n_rows, "probabilities")
    ks = cut_offs(ks).tolist()
    values = candidates.marginals(top)
    check_places("ks", max(ks), top.k)
    return [candidates.expected(top, k, values) for k in ks]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Checked probabilities in CSR parts: labels in range, none twice in a row, in any order; values in [0, 1]."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    n_labels: int

    @classmethod
    def of(cls, probabilities) -> _Candidates:
        given = checked_matrix("probabilities", probabilities)
        if sparse.issparse(given):
            indptr, indices, data = given.indptr, given.indices, given.data
        else:
            n, n_labels = given.shape
            indptr = np.arange(n + 1, dtype=np.int64) * n_labels
            indices = np.tile(np.arange(n_labels, dtype=np.int32), n)
            data = given.ravel()
        # One compiled kernel each for float32 and float64 serves every dtype.
        found = cls(indptr.astype(np.int64, copy=False), indices, as_float(data), given.shape[1])
        found._check()
        return found

    def _check(self) -> None:
        def check(lo: int, hi: int) -> tuple[bool, int, int]:
            values = self.data[self.indptr[lo] : self.indptr[hi]]
            within = values.size == 0 or (values.min() >= 0 and values.max() <= 1)  # both False for NaN
            return within, *topk_kernel.check_ids(self.indptr, self.indices, self.n_labels, lo, hi)

        for within, fault, place in threads.over_rows(self.n_rows, check, min_rows=4096):
            if within and not fault:
                continue
            if not within:
                place = int(np.argmin((self.data >= 0) & (self.data <= 1)))
            row, label = row_of(self.indptr, place), self.indices[place]
            if not within:
                rule, got = "must lie in [0, 1]", f"{self.data[place]} at row {row}, label {label}"
                raise ArgumentError("probabilities", rule, got, "scores that are none need calibrating first")
            rule = "must not store a label twice in a row"
            raise ArgumentError("probabilities", rule, f"label {label} twice in row {row}")

    @property
    def n_rows(self) -> int:
        return self.indptr.size - 1

    def positives(self) -> np.ndarray:
        """The sum of each label's probabilities over all rows."""
        return np.bincount(self.indices, self.data, minlength=self.n_labels).astype(np.float64)

    def shares(self, weights: np.ndarray, k: int) -> np.ndarray:
        """What ``kernel.utility`` gives a hit, and a label's part in an average over labels, by the weights of a mix."""
        parts = weights / max(self.n_labels, 1)
        parts[kernel.PRECISION] = weights[kernel.PRECISION] / max(self.n_rows * k, 1)
        return parts

    def select(self, k: int, weights: np.ndarray) -> TopK:
        """The k labels of largest weight times probability; rows are independent of each other."""
        parts = self.indptr, self.indices, self.data, np.arange(self.n_rows)
        out = self._empty(k)
        threads.over_rows(self.n_rows, lambda lo, hi: kernel.select(*parts, lo, hi, weights, 0.0, kernel.KEEP, *out))
        return TopK(*out[:2], self.n_labels)

    def by_terms(self, k: int, terms: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
        """ids, scores and offsets of the k labels of largest slope times probability plus offset; rows are independent."""
        parts, out = (self.indptr, self.indices, self.data, which), self._empty(k)
        threads.over_rows(self.n_rows, lambda lo, hi: kernel.select_by_terms(*parts, lo, hi, terms, *out))
        return out

    def greedy(self, k: int, beta: float, order: np.ndarray, passes: int, update: int = kernel.PROBABILITY) -> TopK:
        ones = np.ones(self.n_labels)
        if math.isinf(beta):
            return self.select(k, ones)
        parts = self.indptr, self.indices, self.data, order
        ids, scores, chosen = self._empty(k)
        kernel.select(*parts, 0, self.n_rows, ones, beta, update, ids, scores, chosen)
        for _ in range(passes - 1):
            if not kernel.revise(*parts, beta, self.n_labels, ids, scores, chosen):
                break
        return TopK(ids, scores, self.n_labels)

    def _empty(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ids, scores and where in the row's candidates each choice stands, to be filled in."""
        shape = self.n_rows, whole_number("k", k, 1)
        return *empty_places(*shape), np.empty(shape, np.int64)

    def marginals(self, top: TopK) -> np.ndarray:
        if not isinstance(top, TopK):
            raise ArgumentError("top", "must be a TopK", type(top).__name__)
        if (len(top), top.n_labels) != (self.n_rows, self.n_labels):
            rule = f"must be over the {self.n_rows} rows and {self.n_labels} labels of probabilities"
            raise ArgumentError("top", rule, f"{len(top)} rows and {top.n_labels} labels")
        values, parts = np.zeros(top.ids.shape), (self.indptr, self.indices, self.data)
        threads.over_rows(self.n_rows, lambda lo, hi: kernel.lookup(*parts, top.ids, lo, hi, values))
        return values

    def expected_ratios(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The expected recall and F1 of each label, predicted where ``ids`` have it."""
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.indptr))
        here, place = np.nonzero(ids >= 0)
        chosen = np.isin(rows * self.n_labels + self.indices, here * self.n_labels + ids[here, place].astype(np.int64))
        by_label = np.argsort(self.indices, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.indices, minlength=self.n_labels))])
        given = starts, self.data[by_label].astype(np.float64), chosen[by_label]
        recall, f1 = np.zeros(self.n_labels), np.zeros(self.n_labels)
        threads.over_rows(self.n_labels, lambda lo, hi: kernel.expected_ratios(*given, lo, hi, recall, f1))
        return recall, f1

    def expected(self, top: TopK, k: int, values: np.ndarray | None = None) -> tuple[float, float]:
        """(P@k, Cov@k) to expect; ``values``: the marginals of ``top``, where they are known already."""
        values = self.marginals(top) if values is None else values
        hits, covered = kernel.expected(top.ids, values, k, np.ones(self.n_labels))
        return hits / (self.n_rows * k), covered / self.n_labels


def _counted(truth: Truth, top: TopK) -> tuple[float, float]:
    """(P@k, Cov@k) on the truth, over all labels."""
    check_pair(truth, top)
    hits = truth.hits(top.ids)
    return float(np.count_nonzero(hits) / hits.size), float(np.unique(top.ids[hits]).size / top.n_labels)


def _order(order, n: int) -> np.ndarray:
    if order is None:
        return np.arange(n)
    given = np.asarray(order)
    if given.shape != (n,) or given.dtype.kind not in "iu" or not np.array_equal(np.sort(given), np.arange(n)):
        rule, do = f"must be a permutation of the {n} rows", "rng.permutation(n) makes one"
        raise ArgumentError("order", rule, f"shape {given.shape}", do)
    return given.astype(np.int64)


if not TYPE_CHECKING:  # what it builds on lies above

    def __getattr__(name: str):
        if name == "OnePass":
            return importlib.import_module("xcrepro.core.one_pass").OnePass
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
