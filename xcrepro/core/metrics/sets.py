"""Sets of any size: what a threshold on the scores costs, which is best, and how errors grow with what is kept.

Common to all: ``Y`` and ``top`` are as in :mod:`xcrepro.core.metrics.ranking`, blocks of ``(Y, top)`` included unless a
function says otherwise, and all places of ``top`` count (``top.head(k)`` has fewer). Scores are compared as float32 and need
not be probabilities. A set is made by :meth:`xcrepro.TopK.above` and judged by any metric at ``k = top.k``: micro-P, micro-R
and micro-F1 over all pairs, macro-P, macro-R and macro-F1 over labels, ``P (predicted)``, R and F over rows.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core import calibrate, threads
from xcrepro.core.accumulators.block import Block, blocks
from xcrepro.core.accumulators.sums import ratio, run_starts
from xcrepro.core.arguments import check_rows, one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import sets as kernel
from xcrepro.core.metrics.labelwise import EDGES, frequency_bins
from xcrepro.core.predictions import TopK, empty_places

if TYPE_CHECKING:
    import pandas as pd

SURE = 3
"""Standard errors by which a promised level must exceed what the stored places miss."""
_EQUAL = 1e-12  # a share of sums of shares is as exact as that
_NO_HIT = "must have a hit among the predictions"


class ThresholdCurve:
    """How many predictions, and how many hits, are at or above each score: F for all thresholds in one pass, exactly.

    It holds the scores of all predictions. Curves of blocks merge to the same bits in any order.

    Attributes
    ----------
    n_relevant : int
        Relevant pairs of the truth so far, predicted or not.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], [[0.9, 0.5, 0.2], [0.5, 0.4, 0.1]], n_labels=4)
    >>> one, other = (ThresholdCurve().update(Y[[i]], top.rows([i])) for i in (0, 1))
    >>> curve = one.merge(other)
    >>> curve.table().round(2)
       threshold  predicted  hits  precision  recall     F
    0        0.9          1     1       1.00    0.33  0.50
    1        0.5          3     1       0.33    0.33  0.33
    2        0.4          4     2       0.50    0.67  0.57
    3        0.2          5     3       0.60    1.00  0.75
    4        0.1          6     3       0.50    1.00  0.67
    >>> round(curve.best(), 4)
    0.2
    """

    def __init__(self) -> None:
        self._scores: list[np.ndarray] = []  # of predictions, and of hits
        self._hits: list[np.ndarray] = []
        self.n_relevant = 0

    def update(self, Y, top: TopK) -> ThresholdCurve:
        """Add a block of rows.

        Parameters
        ----------
        Y : sparse matrix or array_like, shape (n, L)
        top : TopK

        Returns
        -------
        ThresholdCurve
            Itself.

        Raises
        ------
        ArgumentError
            For truth and predictions that cannot belong together.
        """
        [block] = blocks(Y, top, None)
        self._take(block, slice(None))
        return self

    def _take(self, block: Block, rows: slice) -> int:
        """Add some rows; how many relevant pairs they have."""
        scores, found, present = block.scores[rows], block.found[rows], block.ids[rows] >= 0
        self._scores.append(np.ascontiguousarray(scores).ravel() if present.all() else scores[present])
        self._hits.append(scores[found])
        relevant = int(block.truth.sizes[rows].sum())
        self.n_relevant += relevant
        return relevant

    def merge(self, other: ThresholdCurve) -> ThresholdCurve:
        """Add another curve's rows.

        Parameters
        ----------
        other : ThresholdCurve
            It stays as it is.

        Returns
        -------
        ThresholdCurve
            Itself.
        """
        self._scores, self._hits = self._scores + other._scores, self._hits + other._hits
        self.n_relevant += other.n_relevant
        return self

    def counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The scores, falling, and how many predictions and hits are at or above each."""
        empty = np.empty(0, np.float32)
        scores, hits = (np.sort(np.concatenate([empty, *parts])) for parts in (self._scores, self._hits))
        distinct = run_starts(scores).size
        found = np.empty(distinct), np.empty(distinct, np.int64), np.empty(distinct, np.int64)
        kernel.steps(scores, hits, *found)
        return found

    def table(self, beta: float = 1.0) -> pd.DataFrame:
        """Precision, recall and F of all predictions at or above each score that there is.

        Parameters
        ----------
        beta : float
            Of F, above 0.

        Returns
        -------
        DataFrame
            threshold (falling), predicted, hits, precision, recall, F: micro-averages.
        """
        import pandas as pd

        beta2 = real_number("beta", beta, above=0) ** 2
        scores, n, hits = self.counts()
        parts = {"threshold": scores, "predicted": n, "hits": hits, "precision": hits / n}
        parts["recall"] = hits / max(self.n_relevant, 1)
        parts["F"] = ratio((1.0 + beta2) * hits, beta2 * self.n_relevant + n)
        return pd.DataFrame(parts, copy=False)

    def best(self, beta: float = 1.0) -> float:
        """The threshold with the largest micro-F; of equal ones the highest.

        Parameters
        ----------
        beta : float
            Of F, above 0.

        Returns
        -------
        float

        Raises
        ------
        ArgumentError
            Where no prediction is a hit.
        """
        beta2 = real_number("beta", beta, above=0) ** 2
        return float(_best(self._scores, self._hits, [self.n_relevant], beta2, crossed=False)[0])


def _each(work, parts: list[np.ndarray]) -> list:
    """``work(part)`` of each, in threads."""
    found = threads.over_rows(len(parts), lambda lo, hi: [work(part) for part in parts[lo:hi]], min_rows=1)
    return [each for some in found for each in some]


def _best(scores: list, hits: list, true: list, beta2: float, *, crossed: bool) -> np.ndarray:
    """float32: the threshold of the largest micro-F on all parts, (1,), or (``crossed``) on all but each of them, (parts,).

    F is largest at a hit. In a bin of scores it is at most what it would be if the bin's hits came before its misses. If that
    is below the F at some bin's end, the bin is counted as a whole and not looked into.
    """

    def outside(parts: list) -> np.ndarray:
        each = np.array(parts)
        total = each.sum(axis=0, keepdims=True)
        return total - each if crossed else total

    def f(n: np.ndarray, hits: np.ndarray) -> np.ndarray:
        return ratio((1.0 + beta2) * hits, beta2 * relevant + n)

    if not crossed:  # in parts for threads
        scores = [half for part in scores for half in np.array_split(part, threads.count())]
    n_hits, relevant = outside([part.size for part in hits]), outside(true)[:, None]
    if not n_hits.all():
        got = f"none outside fold {np.argmin(n_hits)}" if crossed else "none"
        raise ArgumentError("Y", _NO_HIT, got, "ask for fewer folds" if crossed else "")
    ends = np.array([limit([limit(part) for part in hits if part.size]) for limit in (np.max, np.min)])
    first, last = kernel.bins(ends)
    n, h = (
        outside(_each(lambda part: kernel.count_bins(part, first, last - first + 3), parts)) for parts in (scores, hits)
    )
    before, with_hits = n.cumsum(axis=1) - n, h.cumsum(axis=1)
    inside = (f(before + h, with_hits) >= f(before + n, with_hits).max(axis=1, keepdims=True)).any(axis=0)
    scores, hits = (_each(lambda part: kernel.take_bins(part, first, inside), parts) for parts in (scores, hits))
    thresholds = np.unique(np.concatenate(hits))[::-1]
    at = kernel.bins(thresholds) - first + 1

    def at_or_above(parts: list, in_bins: np.ndarray) -> np.ndarray:
        found = outside(_each(lambda part: part.size - np.searchsorted(part, thresholds), parts))
        return found + np.where(inside, 0, in_bins).cumsum(axis=1)[:, at]

    return thresholds[np.argmax(f(at_or_above(scores, n), at_or_above(hits, h)), axis=1)]


def threshold_curve(Y, top: TopK | None = None, *, beta: float = 1.0) -> pd.DataFrame:
    """Precision, recall and F over all thresholds, in one pass.

    Parameters
    ----------
    Y, top
        See the module.
    beta : float
        Of F, above 0.

    Returns
    -------
    DataFrame
        As :meth:`ThresholdCurve.table`, which has an example.
    """
    return _curve(Y, top).table(beta)


def _curve(Y, top) -> ThresholdCurve:
    curve, rows = ThresholdCurve(), 0
    for block in blocks(Y, top, None):
        curve._take(block, slice(None))
        rows += block.n_rows
    check_rows(rows)
    return curve


ENOUGH = 20
"""Relevant rows from which on a label may have a threshold of its own; with fewer it fits these rows and no others."""


def best_threshold(
    Y, top: TopK | None = None, *, per: str = "all", beta: float = 1.0, at_least: int = ENOUGH
) -> float | np.ndarray:
    """The threshold with the largest F on these rows. It says nothing of other rows: see :func:`cross_fit_sets`.

    Parameters
    ----------
    Y, top
        See the module; blocks only with ``per="all"``.
    per : {"all", "label"}
        One threshold for all labels, of the largest micro-F; or one for each, of the label's own largest F. A label without a
        hit, or with fewer than ``at_least`` relevant rows, gets the threshold of all.
    beta : float
        Of F, above 0.
    at_least : int
        0 or more; only with ``per="label"``. With 0 macro-F is the largest there is on these rows, and on others lower than
        with one threshold for all where labels are rare (:func:`cross_fit_sets` has a table).

    Returns
    -------
    float, or ndarray of float64, shape (L,)
        For :meth:`xcrepro.TopK.above`. Of equal ones the highest.

    Raises
    ------
    ArgumentError
        Where no prediction is a hit.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], [[0.9, 0.5, 0.2], [0.5, 0.4, 0.1]], n_labels=4)
    >>> round(best_threshold(Y, top), 4)
    0.2
    >>> best_threshold(Y, top, per="label", at_least=0).round(4)             # the last label has no hit
    array([0.9, 0.4, 0.2, 0.2])
    """
    at_least = whole_number("at_least", at_least, 0)
    if one_of("per", per, ("all", "label")) == "all":
        return _curve(Y, top).best(beta)
    return _thresholds(_whole(Y, top), None, per, beta, at_least)[0].astype(np.float64)


def cross_fit_sets(
    Y, top: TopK, *, per: str = "all", folds: int = 10, beta: float = 1.0, at_least: int = ENOUGH
) -> TopK:
    """Sets whose threshold was chosen on other rows: each fold is cut where F is largest on the rows of all other folds.

    No row is judged by a threshold that it helped to choose, so the result says what such thresholds are worth on other rows:
    means over rows, micro-averages and Hamming always, macro-averages unless rare labels have thresholds of their own (notes).

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth.
    top : TopK
        Its predictions.
    per, beta, at_least
        As for :func:`best_threshold`. The relevant rows of all folds count, so that a label is treated alike in each.
    folds : int
        Contiguous blocks of rows, 2 to n (:func:`xcrepro.calibrate.fold_edges`).

    Returns
    -------
    TopK
        Of as many places, the empty ones behind.

    Raises
    ------
    ArgumentError
        Where the rows outside a fold have no hit.

    Notes
    -----
    A label's hits and wrong predictions are each counted without bias, in every fold by a threshold that is independent of
    it. But its F1 is a ratio of the two. A rare label's threshold is lax in the fold that holds its relevant rows, because
    the others have few, and strict where there are none: it finds the one without the wrong predictions that come with it.
    So its F1 is too good. Folds that keep a label's relevant rows apart take away a third of that if it has three, and nothing
    if it has ten. Macro-F1 of labels that
    are all as rare, with a threshold for each (``at_least=0``), for each with 20 relevant rows, and with one for all,
    cross-fitted and on other rows (``python -m benchmarks sets``; 200 draws of 300 rows, errors .003 or less):

    =====================  ==================  ==================  ==================
    relevant rows a label  one for each        each of 20          one for all
    =====================  ==================  ==================  ==================
    1.5                    .179, others .125   .125, others .127   .125, others .127
    3                      .280, others .208   .213, others .211   .213, others .211
    10                     .419, others .406   .384, others .384   .384, others .384
    20                     .529, others .525   .512, others .510   .488, others .486
    30                     .592, others .589   .591, others .588   .550, others .550
    3, scores are noise    .029, others .015   .017, others .014   .017, others .014
    10, scores are noise   .065, others .045   .056, others .056   .056, others .056
    30, scores are noise   .130, others .125   .130, others .126   .145, others .144
    =====================  ==================  ==================  ==================

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 1]])
    >>> top = TopK.from_scores(np.array([[.9, .4, .1], [.3, .8, .2], [.6, .2, .7], [.1, .5, .3]]), k=2)
    >>> cross_fit_sets(Y, top, folds=2).ids                      # rows 0 and 1 at 0.3 and above, rows 2 and 3 at 0.8
    array([[ 0,  1],
           [ 1,  0],
           [-1, -1],
           [-1, -1]], dtype=int32)
    """
    one_of("per", per, ("all", "label"))
    at_least = whole_number("at_least", at_least, 0)
    block = _whole(Y, top)
    edges = calibrate.fold_edges(block.n_rows, folds)
    cuts = _thresholds(block, edges, per, beta, at_least)
    ids, scores = empty_places(block.n_rows, top.k)

    def cut(lo: int, hi: int) -> None:
        for fold in range(lo, hi):
            kernel.above(top.ids, top.scores, cuts[fold], edges[fold], edges[fold + 1], ids, scores)

    threads.over_rows(len(cuts), cut, min_rows=1)
    return TopK(ids, scores, top.n_labels)


def _whole(Y, top) -> Block:
    """One truth and its predictions, no blocks."""
    if top is None:
        raise ArgumentError("top", "must be given, because all rows are needed at once", None)
    [block] = blocks(Y, top, None)
    return block


def _thresholds(block: Block, edges: np.ndarray | None, per: str, beta: float, at_least: int) -> np.ndarray:
    """float32 (folds, 1) or (folds, L): for each fold the best threshold on the rows outside it; without edges on all rows."""
    beta2 = real_number("beta", beta, above=0) ** 2
    rows = [slice(lo, hi) for lo, hi in itertools.pairwise([0, block.n_rows] if edges is None else edges.tolist())]
    curve = ThresholdCurve()
    true = [curve._take(block, part) for part in rows]
    common = _best(curve._scores, curve._hits, true, beta2, crossed=edges is not None)[:, None]
    if per == "all":
        return common
    lowest = np.full(block.n_labels, np.inf, np.float32)  # of its hits
    kernel.lowest(block.ids, block.scores, block.found, lowest)
    each = np.repeat(common, block.n_labels, axis=1)
    hit = np.flatnonzero((lowest < np.inf) & (block.truth.label_counts() >= at_least))
    if hit.size:
        own = _own(block, edges, hit, lowest, beta2)
        each[:, hit] = np.where(own < 0, common, _score_of(own))
    return each


def _own(block: Block, edges: np.ndarray | None, hit: np.ndarray, lowest: np.ndarray, beta2: float) -> np.ndarray:
    """(folds, labels that were hit): the falling bits of the best threshold of each label, -1 where none outside is a hit."""
    folds = 1 if edges is None else edges.size - 1
    bits, m = folds.bit_length(), hit.size
    whole_number("folds", folds, 1, 2 ** (31 - (m - 1).bit_length()) - 1)
    fold = np.full(block.n_rows, folds) if edges is None else np.repeat(np.arange(folds), np.diff(edges))
    number = np.full(block.n_labels, -1, np.int32)
    number[hit] = np.arange(m, dtype=np.int32)
    labels = number[block.truth.indices]
    cells = np.repeat(fold, block.truth.sizes)[labels >= 0] * m + labels[labels >= 0]
    inside = np.bincount(cells, minlength=(folds + 1) * m).reshape(-1, m)
    true, cuts = inside.sum(axis=0) - inside[:folds], np.full((folds, m), -1, np.int64)
    given = block.ids, np.ascontiguousarray(block.scores), block.found, lowest, number, fold, bits

    def part(lo: int, hi: int) -> None:
        keys = np.empty(block.ids.size, np.uint64)
        keys = keys[: kernel.pack(*given, lo, hi, keys)]
        keys.sort()
        kernel.best_cuts(keys, bits, true, beta2, cuts)

    threads.over_rows(m, part, min_rows=max(2**10, m // threads.count()))  # each reads all predictions
    return cuts


def _score_of(falling: np.ndarray) -> np.ndarray:
    """The float32 scores of the kernel's falling bits."""
    bits = falling.astype(np.uint32)
    return np.where(bits >> 31, bits, bits ^ np.uint32(2**31 - 1)).view(np.float32)


def risk_coverage(Y, top: TopK | None = None, k: int = 1, *, of: str = "rows") -> pd.DataFrame:
    """The error among what is kept, if only the surest is kept: a line for each distinct score.

    Parameters
    ----------
    Y, top
        See the module.
    k : int
        Places of each row that count.
    of : {"rows", "pairs"}
        ``"rows"`` keeps whole rows by their best score, and the error of a row is 1 - P@k; a row without predictions is
        kept last. ``"pairs"`` keeps (row, label) pairs of the first k places by their own score, and a miss is an error.

    Returns
    -------
    DataFrame
        threshold (falling), kept (the share kept), error (the mean over these).

    Raises
    ------
    ArgumentError
        For a k above ``top.k``, no rows, and no predictions for pairs.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 1]])
    >>> top = TopK.from_scores(np.array([[.9, .4, .1], [.3, .8, .2], [.6, .2, .7], [.1, .5, .3]]), k=2)
    >>> risk_coverage(Y, top).round(2)
       threshold  kept  error
    0        0.9  0.25   0.00
    1        0.8  0.50   0.00
    2        0.7  0.75   0.33
    3        0.5  1.00   0.25
    >>> round(aurc(Y, top), 4)                                   # (0 + 0 + 1/3 + 1/4) / 4
    0.1458
    """
    import pandas as pd

    scores, n, hits, places = _risk(Y, top, k, of)
    return pd.DataFrame({"threshold": scores, "kept": n / n[-1], "error": (n - hits / places) / n}, copy=False)


def aurc(Y, top: TopK | None = None, k: int = 1, *, of: str = "rows") -> float:
    """The area under the risk-coverage curve: the mean, over i, of the error among the i surest.

    Parameters
    ----------
    Y, top, k, of
        As for :func:`risk_coverage`.

    Returns
    -------
    float
        In [0, 1], lower is better. Among equal scores the mean over all orders.
    """
    return float(kernel.mean_risk(*_risk(Y, top, k, of)[1:]))


def _risk(Y, top, k: int, of: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Falling scores, how many rows or pairs, and hits, are at or above each, and how many hits make one right."""
    k = whole_number("k", k, 1)
    whole = one_of("of", of, ("rows", "pairs")) == "rows"
    curve, rows = ThresholdCurve(), 0
    for block in blocks(Y, top, k):
        rows += block.n_rows
        if whole:
            curve._scores.append(block.scores[:, 0])
            curve._hits.append(np.repeat(block.scores[:, 0], block.found.sum(axis=1)))
        else:
            curve._take(block, slice(None))
    check_rows(rows)
    scores, n, hits = curve.counts()
    if not n.size:
        raise ArgumentError("top", "must predict something", "no predictions")
    return scores, n, hits, k if whole else 1


def conformal_threshold(
    Y, top: TopK, level: float, *, of: str = "missed", label_counts=None, edges=EDGES
) -> float | np.ndarray:
    """The threshold whose sets keep a promise on other rows: at most ``level`` of the labels are missed, or wrong, on average.

    Conformal risk control (Angelopoulos, Bates, Fisch, Lei and Schuster 2024, theorem 1): with n rows like those to come, the
    threshold is chosen so that (summed loss + 1) / (n + 1) <= level. The promise needs no assumption about the scores; better
    scores give smaller sets. It holds on average over rows and over draws of these rows, not for every single row.

    The theorem asks for a threshold that keeps the level for certain. For "wrong" there is one, the empty set. For "missed"
    there is none where relevant labels are not among the stored places. Then every other row that has a relevant label only
    says what the stored places miss: the level must exceed (summed loss + 1) / (n + 1) of all that is stored by
    :data:`SURE` standard errors. The threshold is chosen on the remaining rows. Were the level refused by the rows on which
    the threshold is chosen, what returns would be the lucky draws.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth of rows that had no part in training, or in choosing anything else.
    top : TopK
        Their predictions. A label that is not stored counts as missed at any threshold.
    level : float
        Above 0 and below 1.
    of : {"missed", "wrong"}
        The loss of a row: the share of its relevant labels that its set lacks (1 - recall), over the rows that have one, or
        the share of its set that is wrong (0 of an empty set), over all rows. The latter is no monotone function of the
        threshold; its largest value at any higher threshold is, and is controlled in its place.
    label_counts : array_like of int, shape (L,), optional
        Training points of each label; only with ``of="missed"``. Given, there is a threshold for each bin of
        :func:`xcrepro.metrics.binned_macro_f1`, and the promise holds for the labels of each bin, over the rows that have
        one: a common threshold misses rare labels far more often than frequent ones (Ding, Fermanian and Salmon 2026).
    edges : sequence of int
        Of the bins.

    Returns
    -------
    float, or ndarray of float64, shape (L,)
        For :meth:`xcrepro.TopK.above`: the highest that keeps the promise for "missed", the lowest for "wrong". Minus
        infinity, which keeps all that is stored, where no higher one does, and of a label in whose bin no row has a relevant
        label.

    Raises
    ------
    ArgumentError
        Where the stored places, or so few rows, cannot keep the level; the error names the lowest that they can.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.eye(4)[[0, 1, 2, 3, 0, 1, 2, 3, 0, 1]]
    >>> scores = Y * np.linspace(0.1, 1, 10)[:, None] + 0.05
    >>> top = TopK.from_scores(scores, k=4)
    >>> round(conformal_threshold(Y, top, 0.3), 2)                        # (2 missed + 1) / 11 <= 0.3
    0.35
    >>> 0.05 < conformal_threshold(Y, top, 0.3, of="wrong") < 0.0501      # just above the scores of all wrong labels
    True
    """
    level = real_number("level", level, above=0, below=1)
    block = _whole(Y, top)
    check_rows(block.n_rows)
    if one_of("of", of, ("missed", "wrong")) == "wrong":
        if label_counts is not None:
            raise ArgumentError("label_counts", 'goes with of="missed"', "both", "a set is wrong or right as a whole")
        return _promised(*_wrong(block), block.n_rows, level)
    row, place = np.nonzero(block.found)
    scores, labels = top.scores[row, place].astype(np.float64), top.ids[row, place]
    if label_counts is None:
        return _kept(scores, row, block.truth.sizes, level)
    bins, names = frequency_bins(label_counts, block.n_labels, edges)
    thresholds = np.full(block.n_labels, -np.inf)
    true_row = np.repeat(np.arange(block.n_rows), block.truth.sizes)
    for number, name in enumerate(names):
        sizes = np.bincount(true_row[bins[block.truth.indices] == number], minlength=block.n_rows)
        inside = bins[labels] == number
        if sizes.any():
            where = f" for labels with {name} training points"
            thresholds[bins == number] = _kept(scores[inside], row[inside], sizes, level, where)
    return thresholds


def _kept(scores: np.ndarray, row: np.ndarray, sizes: np.ndarray, level: float, where: str = "") -> float:
    """The highest score at which the missed share stays within the level: of each hit its score and row, of each row how many
    labels are relevant."""
    rows, weights = np.flatnonzero(sizes), 1 / sizes[row]  # what each hit's miss adds
    never = (1 - np.bincount(row, weights, sizes.size)[rows]).clip(0)  # the share that is not stored
    least = 0.0
    if (never > _EQUAL).any():  # half of the rows say whether the level can be kept, and have no part in what follows
        told, rows = never[::2], rows[1::2]
        error = told.std(ddof=1) / math.sqrt(told.size) if told.size > 1 else 1.0
        least = min((told.sum() + 1) / (told.size + 1) + SURE * error, 1.0)
        scores, weights = (each[np.isin(row, rows)] for each in (scores, weights))
        never = never[1::2]
    n = rows.size
    if level + _EQUAL < (least := max(least, 1 / (n + 1))):
        _refuse_level(level, least, where)
    order = np.lexsort((weights, scores))
    scores, weights = scores[order], weights[order]
    risk = (never.sum() + np.cumsum(weights) - weights + 1) / (n + 1)  # if all below are missed
    first = np.searchsorted(scores, scores)  # equal scores are kept together
    good = np.flatnonzero(risk[first] <= level + _EQUAL)
    return float(scores[good[-1]]) if good.size else float(-np.inf)


def _wrong(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """The scores at which the largest wrong share of a row so far rises, and by how much."""
    there, depth = block.ids >= 0, np.arange(1, block.ids.shape[1] + 1)
    share = (there & ~block.found).cumsum(axis=1) / depth
    after = np.concatenate([block.scores[:, 1:], np.full((block.n_rows, 1), -np.inf, np.float32)], axis=1)
    share[~there | (after == block.scores)] = 0  # a set ends between two scores
    largest = np.maximum.accumulate(share, axis=1)
    rises = np.diff(largest, axis=1, prepend=0)
    return block.scores[rises > 0].astype(np.float64), rises[rises > 0]


def _promised(scores: np.ndarray, rises: np.ndarray, n: int, level: float) -> float:
    """The lowest score from which on what has risen stays within the level."""
    if 1 / (n + 1) > level + _EQUAL:
        _refuse_level(level, 1 / (n + 1), f" with {n} rows")
    order = np.lexsort((rises, scores))[::-1]
    scores, risk = scores[order], (np.cumsum(rises[order]) + 1) / (n + 1)
    last = np.searchsorted(-scores, -scores, "right") - 1
    bad = np.flatnonzero(risk[last] > level + _EQUAL)
    if not bad.size:
        return float(-np.inf)
    return float(np.nextafter(np.float32(scores[bad[0]]), np.float32(np.inf)))


def _refuse_level(level: float, least: float, where: str) -> None:
    do = "store more places of each row, give more rows, or ask for less"
    least = math.ceil(1e4 * (least - _EQUAL)) / 1e4
    raise ArgumentError("level", f"must be at least {least:.4f}{where}, the lowest that can be promised", level, do)
