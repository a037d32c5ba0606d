"""``State``: everything that metrics need to know of the rows seen so far, mergeable to the same bits in any order."""

from __future__ import annotations

import bisect
import copy
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xcrepro.core.accumulators.block import KS, Block, blocks
from xcrepro.core.accumulators.rows import poisson_weights
from xcrepro.core.arguments import check_rows, real_number, whole_number
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.hierarchy import Hierarchy
from xcrepro.core.metrics import labelwise, serialization, worked_out
from xcrepro.core.metrics.requests import Asked, Options
from xcrepro.core.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd


class State:
    """What metrics are worked out from, fed block by block and merged: exact sums, whole counts, score distributions.

    The bits of every result are the same for any cutting of the rows into blocks, any order in which they arrive, any tree of
    merges, and any number of threads and processes: all that is kept are whole numbers, sums of real numbers included, and
    :meth:`compute` rounds once.

    Parameters
    ----------
    ks : int or sequence of int
        The cut-offs.
    metrics : str or sequence of str, optional
        Names of :func:`xcrepro.metrics.table`; ``"nDCG@5"`` is nDCG at 5 whatever ``ks`` are. By default the metrics that
        :func:`xcrepro.evaluate` gives unasked. Those that need probabilities run where they are named.
    inverse_propensity : array_like of float, shape (L,), optional
        Label weights of the propensity-scored metrics, :func:`xcrepro.propensity.inverse` of the TRAIN counts.
    label_counts : array_like of int, shape (L,), optional
        TRAIN rows of each label, for binned macro-F1.
    hierarchy : Hierarchy, optional
        What is above each label, for hierarchical metrics.
    allow_repeats : bool
        Take rows whose numbers it has seen.
    **options
        ``bins``, ``closed``, ``cap``: of the calibration metrics, see :mod:`xcrepro.core.metrics.calibration`. ``beta`` (float,
        above 0, 1.0 by default): of F. ``n_resamples``, ``seed`` (int, 0 by default): with ``n_resamples``, :meth:`intervals`
        of sums over rows: a bootstrap whose weights are Poisson(1), drawn from the seed and the row's number, so that it merges
        as all else does; each block then says its ``first_row``. The sums of every sample are kept. ``ties`` ("lowest-id",
        "expected" or "bounds"): as for :func:`xcrepro.evaluate`; only for sums over rows that add up over places.

    Attributes
    ----------
    n_rows : int
        Rows so far.

    Notes
    -----
    What a state holds does not grow with the rows, but for these: the counts of labels grow with the labels met; ``coverage
    (reachable)`` keeps the truth of all rows, since which labels can be shown beside each other depends on all of them
    (covered labels merge, reachable ones do not); ACE and smECE keep every distinct score.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import State, TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> one, other = (State((1, 3), ["P", "coverage@3"]).update(Y[[i]], top.rows([i]), first_row=i) for i in (0, 1))
    >>> other.merge(one).compute()
         metric  k  value
    0         P  1   0.50
    1         P  3   0.50
    2  coverage  3   0.75
    """

    def __init__(
        self,
        ks=KS,
        metrics: str | Sequence[str] | None = None,
        inverse_propensity=None,
        label_counts=None,
        *,
        hierarchy=None,
        allow_repeats: bool = False,
        **options: Any,
    ) -> None:
        self._asked = Asked(ks, metrics, inverse_propensity, label_counts, Options(**options), hierarchy)
        self._allow_repeats = bool(allow_repeats)
        self._clear()

    def __repr__(self) -> str:
        of = "no labels yet" if self._n_labels is None else f"{self._n_labels:,} labels"
        return f"State({', '.join(metric.name for metric, _ in self._asked.wanted)}: {self.n_rows:,} rows, {of})"

    def _clear(self) -> None:
        """No rows: neither folds, nor how many labels there are, nor ranges of numbered rows, rising, not touching."""
        self._folds: dict[str, Any] = {}
        self._n_labels: int | None = None
        self._ranges: list[tuple[int, int]] = []
        self.n_rows = 0

    # ------------------------------------------------------------------ filling it

    def update(self, Y, top: TopK, first_row: int | None = None, n_relevant=None) -> State:
        """Add a block of rows.

        Parameters
        ----------
        Y : sparse matrix or array_like, shape (n, L)
            Truth, any form :class:`xcrepro.core.truth.Truth` takes; no rows are fine.
        top : TopK
            Its predictions.
        first_row : int, optional
            The number of the block's first row among all rows. With it, rows that come twice are refused.
        n_relevant : array_like of float, shape (n,), optional
            The complete truth's label counts of these rows, where a metric needs them.

        Returns
        -------
        State
            Itself; as it was where something is refused.

        Raises
        ------
        ArgumentError
            For truth and predictions that cannot belong together, another number of labels, a k above ``top.k``, scores outside
            [0, 1] where a metric needs probabilities, rows that were added before.
        """
        if first_row is not None:
            whole_number("first_row", first_row)
        return self._add(Block(Y, top, self._asked.k_max, first_row, n_relevant))

    def _add(self, block: Block) -> State:
        self._check_labels(block.n_labels)
        self._asked.check_labels(block.n_labels)
        rows = [] if block.first_row is None else [(block.first_row, block.first_row + block.n_rows)]
        ranges = joined(self._ranges, rows, self._allow_repeats)
        fresh, options = self._asked.folds(block.n_labels), self._asked.options
        for name, fold in fresh.items():
            if name == "drawn":
                if block.first_row is None:
                    do = "say where the block begins"
                    raise ArgumentError(
                        "first_row", "must be given for n_resamples, whose weights follow from it", None, do
                    )
                numbers = np.arange(block.first_row, block.first_row + block.n_rows)
                fold.add(block, poisson_weights(options.seed, numbers, options.n_resamples))
            else:
                fold.add(block)
        self._take(fresh, block.n_labels, ranges, block.n_rows)
        return self

    def merge(self, other: State) -> State:
        """Add another state's rows.

        Parameters
        ----------
        other : State
            Of the same ks, metrics, weights, options, number of labels and version. It stays as it is.

        Returns
        -------
        State
            Itself; as it was where something is refused.

        Raises
        ------
        ArgumentError
            For what is no State, one of other options (each is named, with both values), rows that both have.
        """
        if not isinstance(other, State):
            raise ArgumentError("other", "must be a State", type(other).__name__)
        mine, theirs = self.fingerprint(), other.fingerprint()
        if self._n_labels is None or other._n_labels is None:
            mine["n_labels"] = theirs["n_labels"] = None
        differ = [f"{name} {mine[name]} here and {theirs[name]} there" for name in mine if mine[name] != theirs[name]]
        if differ:
            raise ArgumentError("other", "must be a State of the same options", "; ".join(differ))
        ranges = joined(self._ranges, other._ranges, self._allow_repeats)
        if other._n_labels is not None:
            folds = other._folds
            if not self._folds or other is self:  # its own, for the other stays as it is
                folds = other._asked.folds(other._n_labels)
                for name, fold in folds.items():
                    fold.merge(other._folds[name])
            self._take(folds, other._n_labels, ranges, other.n_rows)
        return self

    def empty(self) -> State:
        """A State of the same options and weights, which it shares, without rows.

        Returns
        -------
        State
        """
        new = copy.copy(self)
        new._clear()
        return new

    def _take(self, folds: dict[str, Any], n_labels: int, ranges: list[tuple[int, int]], n_rows: int) -> None:
        if not self._folds:
            self._folds = folds
        else:
            for name, fold in self._folds.items():
                fold.merge(folds[name])
        self._n_labels, self._ranges = n_labels, ranges
        self.n_rows += n_rows

    def _check_labels(self, n_labels: int) -> None:
        if self._n_labels not in (None, n_labels):
            raise ArgumentError("Y", f"must have {self._n_labels} labels in every block", n_labels)

    # ------------------------------------------------------------------ what comes out

    def values(self) -> dict[str, np.ndarray]:
        """Each metric's values at its ks, float64 (K,), in the order asked for; binned macro-F1 has a name for each bin.

        Raises
        ------
        ArgumentError
            Where there were no rows, or no predictions for a metric that needs some.
        """
        check_rows(self.n_rows)
        return {name: values for name, _, values in worked_out.values(self._asked, self._folds)}

    def compute(self) -> pd.DataFrame:
        """The metrics so far, as a table.

        Returns
        -------
        DataFrame
            metric, k, value; as :func:`xcrepro.evaluate` and :func:`xcrepro.metrics.calibration_table` give it. With
            ``ties="bounds"`` also lowest, expected, highest, decided, cut.

        Raises
        ------
        ArgumentError
            Where there were no rows, or no predictions for a metric that needs some.
        """
        import pandas as pd

        check_rows(self.n_rows)
        rows = [
            (name, int(k), float(value))
            for name, at, values in worked_out.values(self._asked, self._folds)
            for k, value in zip(at, values, strict=True)
        ]
        bounds = worked_out.bounds(self._asked, self._folds) if self._asked.options.ties == "bounds" else {}
        return pd.DataFrame(rows, columns=["metric", "k", "value"]).assign(**bounds)

    def intervals(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """An interval for each metric that is made of sums over rows, by the Poisson bootstrap; with ``n_resamples`` only.

        Each sample counts a row 0, 1, 2, ... times, independently of the others, where the bootstrap of
        :func:`xcrepro.evaluate` draws exactly n rows: a sample has n rows give or take their root. Means
        and ratios feel that no more than by 1/n. Metrics of labels and calibration errors are left out, which no drawing
        with replacement serves.

        Parameters
        ----------
        confidence_level : float
            Between 0 and 1.

        Returns
        -------
        DataFrame
            metric, k, value, low, high: the ends are quantiles of the samples, linear between them.

        Raises
        ------
        ArgumentError
            Without ``n_resamples`` or rows.
        """
        import pandas as pd

        real_number("confidence_level", confidence_level, above=0, below=1)
        rows, tail = [], (1.0 - confidence_level) / 2.0
        for name, (at, values, drawn) in self.drawn().items():
            low, high = np.quantile(drawn[~np.isnan(drawn).any(axis=1)], [tail, 1.0 - tail], axis=0)
            rows += [(name, k, *map(float, each)) for k, *each in zip(at.tolist(), values, low, high, strict=True)]
        return pd.DataFrame(rows, columns=["metric", "k", "value", "low", "high"])

    def drawn(self) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """What :meth:`intervals` is made from; with ``n_resamples`` only.

        Of two States of the same seed and rows, sample s weighs the same rows alike, so that differences of samples are those
        of a paired bootstrap.

        Returns
        -------
        dict of str to (ks, values, samples)
            Each metric that is made of sums over rows: int64 (K,), float64 (K,), float64 (samples, K); a sample without a row
            is NaN.

        Raises
        ------
        ArgumentError
            Without ``n_resamples`` or rows.
        """
        if not self._asked.options.n_resamples:
            raise ArgumentError(
                "n_resamples", "must be given up front for intervals", 0, "State(..., n_resamples=1000)"
            )
        check_rows(self.n_rows)
        return worked_out.drawn(self._asked, self._folds)

    def counts(self) -> labelwise.Counts:
        """The per-label counts, where a label-wise metric was asked for."""
        if "labels" not in self._asked.folds(0):
            raise ArgumentError(
                "metrics", "must name a label-wise metric, whose counts these are", "none", "'macro-F1'"
            )
        check_rows(self.n_rows)
        return labelwise.Counts.of(self._folds["labels"])

    # ------------------------------------------------------------------ on disk

    def fingerprint(self) -> dict[str, Any]:
        """What two states must share to be merged: format, version, ks of each metric, L, weights and options."""
        return self._asked.fingerprint(self._n_labels)

    def save(self, path: str | os.PathLike) -> None:
        """Write the state to an ``.npz`` file, whole or not at all. Equal states give equal bytes.

        Parameters
        ----------
        path : path_like
            It ends in ``.npz``.

        Raises
        ------
        ArgumentError
            For another ending.
        """
        header = self.fingerprint() | {"rows": self._ranges, "n_rows": self.n_rows}
        given = {name: array for name, array in self._asked.given.items() if array is not None}
        serialization.write(path, header, given | serialization.of_folds(self._folds))

    @classmethod
    def load(cls, path: str | os.PathLike, *, allow_repeats: bool = False) -> State:
        """Read a state that :meth:`save` wrote.

        Parameters
        ----------
        path : path_like
        allow_repeats : bool
            As for :class:`State`.

        Returns
        -------
        State

        Raises
        ------
        DataMissing
            Where nothing is there.
        DataError
            For a file whose content is not what was saved (it has a digest), of another kind, or of another version of the
            kit, and for sums that cannot stand together, such as more hits than places.
        """
        header, arrays = serialization.read(path)
        with serialization.no_state(path):
            serialization.check_samples(header, arrays)
            names = ("inverse_propensity", "label_counts", "hierarchy")
            given: dict[str, Any] = {name: arrays.get(name) for name in names}
            if given["hierarchy"] is not None:
                given["hierarchy"] = Hierarchy.unpacked(given["hierarchy"])
            options = {name: header[name] for name in Options.__dataclass_fields__}
            state = cls(1, header["metrics"], **given, allow_repeats=allow_repeats, **options)
            if header["n_labels"] is not None:
                folds = serialization.restored(state._asked.folds, header, arrays)
                rows = [(int(low), int(high)) for low, high in header["rows"]]
                n_labels, n_rows = (whole_number(name, header[name]) for name in ("n_labels", "n_rows"))
                state._take(folds, n_labels, rows, n_rows)
                if state.n_rows:
                    worked_out.check_sums(state._asked, folds)
        if state.fingerprint() != {name: header.get(name) for name in state.fingerprint()}:
            raise DataError(
                path, "arrays that do not belong to its header", "what State.save writes", do="Make it again"
            )
        return state


def joined(ranges: list[tuple[int, int]], more: list[tuple[int, int]], allow_repeats: bool) -> list[tuple[int, int]]:
    """The ranges of rows with more of them, refused where a row comes twice."""
    found = list(ranges)
    for low, high in more:
        if low == high:
            continue
        place = bisect.bisect_right(found, (low, high))
        twice = [r for r in found[max(place - 1, 0) : place + 1] if r[0] < high and low < r[1]]
        if twice and not allow_repeats:
            both = f"{max(low, twice[0][0])} to {min(high, twice[0][1]) - 1}"
            do = "leave the block out, or make the State with allow_repeats=True"
            raise ArgumentError("first_row", "must number each row once", f"rows {both} a second time", do)
        found.insert(place, (low, high))
    whole: list[tuple[int, int]] = []
    for low, high in sorted(found):
        if whole and low <= whole[-1][1]:
            whole[-1] = whole[-1][0], max(high, whole[-1][1])
        else:
            whole.append((low, high))
    return whole


def of(
    Y,
    top: TopK | None = None,
    ks=KS,
    metrics=None,
    inverse_propensity=None,
    label_counts=None,
    *,
    n_relevant=None,
    **options,
):
    """A State of one truth and its predictions, or of an iterable of such pairs.

    Parameters
    ----------
    Y, top
        Truth (n, L) and predictions; or an iterable of ``(Y, top)`` as ``Y`` alone.
    ks, metrics, inverse_propensity, label_counts, **options
        As for :class:`State`.
    n_relevant : array_like of float, shape (n,), optional
        The complete truth's label counts of all rows.

    Returns
    -------
    State
    """
    state = State(ks, metrics, inverse_propensity, label_counts, **options)
    for block in blocks(Y, top, state._asked.k_max, n_relevant):
        state._add(block)
    check_rows(state.n_rows)
    return state
