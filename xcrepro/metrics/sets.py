"""Sets of any size: what a threshold on the scores costs, which is best, and how errors grow with what is kept.

Common to all: ``Y`` and ``top`` are as in :mod:`xcrepro.metrics.ranking`, blocks of ``(Y, top)`` included unless a function
says otherwise, and all places of ``top`` count (``top.head(k)`` has fewer). Scores are compared as float32 and need not be
probabilities. A set is made by :meth:`xcrepro.TopK.above` and judged by any metric at ``k = top.k``: micro-P, micro-R and
micro-F1 over all pairs, macro-P, macro-R and macro-F1 over labels, ``P (predicted)``, R and F over rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xcrepro import calibrate, threads
from xcrepro.arguments import check_rows, one_of, real_number, whole_number
from xcrepro.errors import ArgumentError
from xcrepro.folds.block import Block, blocks
from xcrepro.folds.scores import ScorePool
from xcrepro.folds.sums import ratio
from xcrepro.kernels import sets as kernel
from xcrepro.predictions import TopK, empty_places

if TYPE_CHECKING:
    import pandas as pd

_NO_HIT = "must have a hit among the predictions"


class ThresholdCurve:
    """How many predictions, and how many hits, are at or above each score: F for all thresholds in one pass, exactly.

    What it holds grows with the number of distinct scores. Curves of blocks merge to the same bits in any order.

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
        self._pool, self._unit = ScorePool(exact=True), False
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
        return self._add(block)

    def _add(self, block: Block) -> ThresholdCurve:
        present = block.ids >= 0
        everywhere = present.all()
        scores, hits = (each.ravel() if everywhere else each[present] for each in (block.scores, block.found))
        self.add_pairs(scores, hits)
        self.n_relevant += block.truth.indices.size
        return self

    def add_pairs(self, scores: np.ndarray, hits: np.ndarray, n: int = 1) -> None:
        """Add float32 scores, each with ``hits`` (bool, or of ``n`` pairs how many)."""
        if not scores.size:
            return
        if not self._unit and not (scores.min() >= 0 and scores.max() <= 1):
            self._widen()
        values = _to_unit(scores) if self._unit else scores
        if n == 1:
            self._pool.add(values, hits)
        else:
            self._pool.add_counts(values, np.full(values.size, n), hits)

    def _widen(self) -> None:
        """From now on scores may be any numbers."""
        scores, n, hits = self._pool.runs()
        self._pool, self._unit = ScorePool(exact=True), True
        if scores.size:
            self._pool.add_counts(_to_unit(scores.astype(np.float32)), n, hits)

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
        if other._unit and not self._unit:
            self._widen()
        if self._unit and not other._unit:
            wide = ThresholdCurve()
            wide._pool.merge(other._pool)
            wide._widen()
            self._pool.merge(wide._pool)
        else:
            self._pool.merge(other._pool)
        self.n_relevant += other.n_relevant
        return self

    def counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The scores, falling, and how many pairs and hits are at or above each."""
        scores, n, hits = self._pool.runs()
        scores = _from_unit(scores) if self._unit else scores
        return scores[::-1], np.cumsum(n[::-1]), np.cumsum(hits[::-1])

    def _f(self, n: np.ndarray, hits: np.ndarray, beta: float) -> np.ndarray:
        beta2 = real_number("beta", beta, above=0) ** 2
        return ratio((1.0 + beta2) * hits, beta2 * self.n_relevant + n)

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

        scores, n, hits = self.counts()
        parts = {"threshold": scores, "predicted": n, "hits": hits, "precision": hits / n}
        parts["recall"] = hits / max(self.n_relevant, 1)
        return pd.DataFrame(parts | {"F": self._f(n, hits, beta)})

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
        scores, n, hits = self.counts()
        if not hits.size or not hits[-1]:
            raise ArgumentError("Y", _NO_HIT, "none")
        return float(scores[np.argmax(self._f(n, hits, beta))])


def _to_unit(scores: np.ndarray) -> np.ndarray:
    """float32 scores as float64 numbers in [0, 1) that rise with them, for a pool."""
    bits = (scores + np.float32(0.0)).view(np.uint32)  # -0 becomes 0
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)) / 2.0**32


def _from_unit(values: np.ndarray) -> np.ndarray:
    """The inverse, as float64."""
    bits = (values * 2.0**32).astype(np.uint32)
    return np.where(bits >> 31, bits & np.uint32(2**31 - 1), ~bits).view(np.float32).astype(np.float64)


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
        curve._add(block)
        rows += block.n_rows
    check_rows(rows)
    return curve


def best_threshold(Y, top: TopK | None = None, *, per: str = "all", beta: float = 1.0) -> float | np.ndarray:
    """The threshold with the largest F on these rows. It says nothing of other rows: see :func:`cross_fit_sets`.

    Parameters
    ----------
    Y, top
        See the module; blocks only with ``per="all"``.
    per : {"all", "label"}
        One threshold for all labels, of the largest micro-F; or one for each, of the label's own largest F, and with that the
        largest macro-F. A label without a hit gets the threshold of all.
    beta : float
        Of F, above 0.

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
    >>> best_threshold(Y, top, per="label").round(4)             # the last label has no hit
    array([0.9, 0.4, 0.2, 0.2])
    """
    if one_of("per", per, ("all", "label")) == "all":
        return _curve(Y, top).best(beta)
    return _thresholds(_whole(Y, top), None, per, beta)[0].astype(np.float64)


def cross_fit_sets(Y, top: TopK, *, per: str = "all", folds: int = 10, beta: float = 1.0) -> TopK:
    """Sets whose threshold was chosen on other rows: each fold is cut where F is largest on the rows of all other folds.

    Any metric of the result is then a fair one: no row was judged by a threshold that it helped to choose.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth.
    top : TopK
        Its predictions.
    per, beta
        As for :func:`best_threshold`.
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
    block = _whole(Y, top)
    edges = calibrate.fold_edges(block.n_rows, folds)
    cuts = _thresholds(block, edges, per, beta)
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


def _thresholds(block: Block, edges: np.ndarray | None, per: str, beta: float) -> np.ndarray:
    """float32 (folds, 1) or (folds, L): for each fold the best threshold on the rows outside it; without edges on all rows."""
    number = np.zeros(block.n_labels, np.int32)
    common = _best_cuts(block, edges, number, 1, beta)
    if (common < 0).any():
        got = "none" if edges is None else f"none outside fold {np.argmax(common[:, 0] < 0)}"
        raise ArgumentError("Y", _NO_HIT, got, "ask for fewer folds" if edges is not None else "")
    if per == "all":
        return _score_of(common)
    hit = np.unique(block.ids[block.found])
    number[:] = -1
    number[hit] = np.arange(hit.size, dtype=np.int32)
    each = np.repeat(common, block.n_labels, axis=1)
    own = _best_cuts(block, edges, number, hit.size, beta)
    each[:, hit] = np.where(own < 0, common, own)
    return _score_of(each)


def _best_cuts(block: Block, edges: np.ndarray | None, number: np.ndarray, m: int, beta: float) -> np.ndarray:
    """What :func:`xcrepro.kernels.sets.best_cuts` finds for m numbered labels, (folds, m)."""
    folds = 1 if edges is None else edges.size - 1
    bits = folds.bit_length()
    whole_number("folds", folds, 1, 2 ** (31 - (m - 1).bit_length()) - 1)
    fold = np.full(block.n_rows, folds) if edges is None else np.repeat(np.arange(folds), np.diff(edges))
    keys = np.empty(block.ids.size, np.uint64)
    scores = np.ascontiguousarray(block.scores)
    keys = keys[: kernel.pack(block.ids, scores, block.found, number, fold, bits, 0, block.n_rows, keys)]
    keys.sort()
    labels = number[block.truth.indices]
    cells = np.repeat(fold, block.truth.sizes)[labels >= 0] * m + labels[labels >= 0]
    inside = np.bincount(cells, minlength=(folds + 1) * m).reshape(-1, m)[: folds + 1]
    outside = inside.sum(axis=0) - inside[:folds]
    cuts = np.full((folds, m), -1, np.int64)
    kernel.best_cuts(keys, bits, outside, real_number("beta", beta, above=0) ** 2, cuts)
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

    scores, n, errors = _risk(Y, top, k, of)
    return pd.DataFrame({"threshold": scores, "kept": n / n[-1], "error": errors / n})


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
    _, n, errors = _risk(Y, top, k, of)
    before, bad = np.concatenate([[0], n[:-1]]), np.concatenate([[0.0], errors[:-1]])
    rate = (errors - bad) / (n - before)
    # The i-th of a group with error rate e, behind B kept with E errors, has (E + i e) / (B + i) = e + (E - B e) / (B + i).
    sums = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n[-1] + 1))])
    return float(((errors - bad) + (bad - before * rate) * (sums[n] - sums[before])).sum() / n[-1])


def _risk(Y, top, k: int, of: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Falling scores, and how many rows or pairs, and errors, are at or above each."""
    k = whole_number("k", k, 1)
    whole = one_of("of", of, ("rows", "pairs")) == "rows"
    curve, rows = ThresholdCurve(), 0
    for block in blocks(Y, top, k):
        rows += block.n_rows
        present = block.ids >= 0
        if whole:
            curve.add_pairs(np.ascontiguousarray(block.scores[:, 0]), block.found.sum(axis=1), k)
        else:
            curve.add_pairs(block.scores[present], block.found[present])
    check_rows(rows)
    scores, n, hits = curve.counts()
    if not n.size:
        raise ArgumentError("top", "must predict something", "no predictions")
    unit = k if whole else 1
    return scores, n // unit, (n - hits) / unit
