"""``State``: everything that metrics need to know of the rows seen so far, mergeable to the same bits in any order."""

from __future__ import annotations

import bisect
import copy
import functools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xcrepro.core.arguments import check_rows, label_values, one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.folds.block import KS, Block, blocks
from xcrepro.core.folds.labels import LabelCounts
from xcrepro.core.folds.pairs import BINS, CAP, PairSums
from xcrepro.core.folds.rows import RowSums, poisson_weights
from xcrepro.core.folds.scores import ScoreCounts
from xcrepro.core.folds.ties import ORDERS, TiedSums
from xcrepro.core.folds.truths import TruthRows
from xcrepro.core.metrics import formulas, labelwise, registry, sealed
from xcrepro.core.predictions import TopK
from xcrepro.core.version import __version__

if TYPE_CHECKING:
    import pandas as pd

_SHARES = frozenset(
    ("P", "R", "nDCG", "nDCG (ideal k)", "MRR", "AP", "LRAP", "F", "micro-F1", "micro-P", "micro-R", "P (predicted)",
     "abandonment", "served", "PSP", "PSnDCG")
)  # fmt: skip
"""Of the sums over rows, those that no predictions bring below 0 or above 1."""


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
    bins, closed, cap
        Of the calibration metrics: see :mod:`xcrepro.core.metrics.calibration`.
    beta : float
        Of F, above 0.
    samples, seed : int
        With ``samples``, :meth:`intervals` of sums over rows: a bootstrap whose weights are Poisson(1), drawn from the seed
        and the row's number, so that it merges as all else does; each block then
        says its ``first_row``. The sums of every sample are kept.
    allow_repeats : bool
        Take rows whose numbers it has seen.
    ties : {"lowest-id", "expected", "bounds"}
        As for :func:`xcrepro.evaluate`; only for sums over rows that add up over places.

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
        bins: int = BINS,
        closed: str = "left",
        cap: float = CAP,
        beta: float = 1.0,
        samples: int = 0,
        seed: int = 0,
        allow_repeats: bool = False,
        ties: str = "lowest-id",
    ) -> None:
        self._ties = one_of("ties", ties, ("lowest-id", "expected", "bounds"))
        if metrics is None:
            metrics = registry.default(inverse_propensity is not None, label_counts is not None, ties=ties)
        self._wanted = registry.wanted(metrics, ks)
        if self._ties != "lowest-id":
            self._check_ties(samples)
        for metric, _ in self._wanted:
            if "label_counts" in metric.needs and label_counts is None:
                do = "the train rows of each label"
                raise ArgumentError("label_counts", f"must be given for {metric.name}", None, do)
        self._k_max = int(max(at.max() for _, at in self._wanted))
        self._weights = None
        if inverse_propensity is not None:
            self._weights = label_values("inverse_propensity", inverse_propensity, zero=False)
        self._counts = None if label_counts is None else labelwise.checked_counts(label_counts)
        self._calibration: dict[str, Any] = {"bins": bins, "closed": closed, "cap": cap}
        PairSums([1], **self._calibration)  # checks them
        self._beta = real_number("beta", beta, above=0)
        self._samples, self._seed = whole_number("samples", samples), whole_number("seed", seed, 0, 2**63 - 1)
        if self._samples and not any(metric.interval == "bootstrap" for metric, _ in self._wanted):
            do = "drawn rows cover fewer labels and fill bins more roughly: metrics.confidence_intervals has what holds"
            raise ArgumentError("samples", "must go with a metric that is made of sums over rows", "none", do)
        self._allow_repeats = bool(allow_repeats)
        self._folds: dict[str, Any] = {}  # none before the first block
        self._n_labels: int | None = None
        self._ranges: list[tuple[int, int]] = []  # of numbered rows, rising, not touching
        self.n_rows = 0
        self._open(0)  # what a metric lacks is said at once

    def _check_ties(self, samples: int) -> None:
        """Refuse what other orders of tied scores have no short form for."""
        if odd := [metric.name for metric, _ in self._wanted if not metric.adds_up]:
            known = [name for name, metric in registry.METRICS.items() if metric.adds_up]
            rule = f"must add up over places with ties={self._ties!r}"
            raise ArgumentError("metrics", rule, odd[0], f"these do: {', '.join(known)}")
        if samples:
            raise ArgumentError("ties", "must be 'lowest-id' with samples", repr(self._ties))

    # ------------------------------------------------------------------ its parts

    def _at(self, *folds: str) -> np.ndarray:
        """The ks, rising, of all metrics on some folds."""
        found = [k for metric, at in self._wanted if metric.fold in folds for k in at.tolist()]
        return np.array(sorted({*found}), np.int64)

    def _open(self, n_labels: int) -> dict[str, Any]:
        """The folds that the metrics need, empty."""
        metrics = [metric for metric, _ in self._wanted]
        kinds = {metric.fold for metric in metrics}
        found: dict[str, Any] = {}
        if kinds & {"pairs", "scores"}:
            loss = any(metric.name == "NLL" for metric in metrics)
            found["pairs"] = PairSums(self._at("pairs", "scores"), **self._calibration, loss=loss)
        if "scores" in kinds:
            found["scores"] = ScoreCounts(self._at("pairs", "scores"))
        if "rows" in kinds:
            columns = {column for metric in metrics if metric.fold == "rows" for column in metric.columns}
            fold = RowSums if self._ties == "lowest-id" else TiedSums
            found["rows"] = fold(self._at("rows"), columns, self._weights, self._beta)
            if self._samples:
                found["drawn"] = RowSums(self._at("rows"), columns, self._weights, self._beta, self._samples)
        if kinds & {"labels", "bins", "truths"}:
            found["labels"] = LabelCounts(n_labels, self._at("labels", "bins", "truths"))
        if "truths" in kinds:
            found["truths"] = TruthRows(n_labels)
        return found

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
        return self._add(Block(Y, top, self._k_max, first_row, n_relevant))

    def _add(self, block: Block) -> State:
        self._check_labels(block.n_labels)
        for name, given in (("inverse_propensity", self._weights), ("label_counts", self._counts)):
            if given is not None and given.size != block.n_labels:
                rule = f"must hold one value for each of the {block.n_labels} labels"
                raise ArgumentError(name, rule, f"an array of shape {given.shape}")
        rows = [] if block.first_row is None else [(block.first_row, block.first_row + block.n_rows)]
        ranges = self._joined(rows)
        fresh = self._open(block.n_labels)
        for name, fold in fresh.items():
            if name == "drawn":
                if block.first_row is None:
                    do = "say where the block begins"
                    raise ArgumentError(
                        "first_row", "must be given for samples, whose weights follow from it", None, do
                    )
                numbers = np.arange(block.first_row, block.first_row + block.n_rows)
                fold.add(block, poisson_weights(self._seed, numbers, self._samples))
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
        ranges = self._joined(other._ranges)
        if other._n_labels is not None:
            folds = other._folds
            if not self._folds or other is self:  # its own, for the other stays as it is
                folds = other._open(other._n_labels)
                for name, fold in folds.items():
                    fold.merge(other._folds[name])
            self._take(folds, other._n_labels, ranges, other.n_rows)
        return self

    @property
    def row_ranges(self) -> list[tuple[int, int]]:
        """The rows it has seen, of those whose numbers were said: (first, last and one), rising."""
        return list(self._ranges)

    def empty(self) -> State:
        """A State of the same options and weights, which it shares, without rows.

        Returns
        -------
        State
        """
        new = copy.copy(self)
        new._folds, new._n_labels, new._ranges, new.n_rows = {}, None, [], 0
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

    def _joined(self, more: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The ranges of rows with more of them, refused where a row comes twice."""
        found = list(self._ranges)
        for low, high in more:
            if low == high:
                continue
            place = bisect.bisect_right(found, (low, high))
            twice = [r for r in found[max(place - 1, 0) : place + 1] if r[0] < high and low < r[1]]
            if twice and not self._allow_repeats:
                both = f"{max(low, twice[0][0])} to {min(high, twice[0][1]) - 1}"
                do = "leave the block out, or make the State with allow_repeats=True"
                raise ArgumentError("first_row", "must number each row once", f"rows {both} a second time", do)
            found.insert(place, (low, high))
        joined: list[tuple[int, int]] = []
        for low, high in sorted(found):
            if joined and low <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(high, joined[-1][1])
            else:
                joined.append((low, high))
        return joined

    # ------------------------------------------------------------------ what comes out

    def values(self) -> dict[str, np.ndarray]:
        """Each metric's values at its ks, float64 (K,), in the order asked for; binned macro-F1 has a name for each bin.

        Raises
        ------
        ArgumentError
            Where there were no rows, or no predictions for a metric that needs some.
        """
        return {name: values for name, _, values in self._values()}

    def _values(self) -> list[tuple[str, np.ndarray, np.ndarray]]:
        check_rows(self.n_rows)
        found, hit, pairs, pools = [], None, {}, {}
        for metric, at in self._wanted:
            if metric.fold == "rows":
                sums = self._row_sums()
                found.append((metric.name, at, metric.formula(sums)[np.searchsorted(sums.ks, at)]))
                continue
            if metric.fold in ("pairs", "scores"):
                values = []
                for k in at.tolist():
                    if k not in pairs:
                        pairs[k] = formulas.check_any(self._folds["pairs"].at(k))
                    if metric.fold == "scores" and k not in pools:
                        pools[k] = self._folds["scores"].pool(k)
                    values.append(metric.formula(*([pools[k]] if metric.fold == "scores" else []), pairs[k]))
                found.append((metric.name, at, np.array(values)))
                continue
            hit = hit or self._folds["labels"].hit_labels()
            if metric.fold == "bins":
                found += [(name, at, v) for name, v in metric.formula(hit.at(at), self._counts).items()]
            elif metric.fold == "truths":
                found.append((metric.name, at, metric.formula(hit.at(at), self._folds["truths"].truths())))
            else:
                found.append((metric.name, at, metric.formula(hit)[np.searchsorted(hit.ks, at)]))
        return found

    def _row_sums(self) -> RowSums:
        """The sums of the order of tied scores that values are of."""
        sums = self._folds["rows"]
        if self._ties == "lowest-id":
            return sums
        return sums.under("expected") if self._ties == "expected" else sums.given

    def _bounds(self) -> dict[str, np.ndarray]:
        """What ties may do to each value, in the order of :meth:`compute`'s lines."""
        sums, found = self._folds["rows"], {}  # type: TiedSums, dict[str, np.ndarray]
        expected, *ends = (sums.under(order) for order in ORDERS)
        places = [np.searchsorted(sums.ks, at) for _, at in self._wanted]

        def each(of) -> np.ndarray:
            return np.concatenate([of(metric)[at] for (metric, _), at in zip(self._wanted, places, strict=True)])

        low, high = (each(lambda metric, end=end: metric.formula(end)) for end in ends)
        found |= {"lowest": np.minimum(low, high), "expected": each(lambda metric: metric.formula(expected))}
        found["highest"] = np.maximum(low, high)
        which = {metric.name: np.searchsorted(sums.given.columns, metric.columns) for metric, _ in self._wanted}
        found["decided"] = each(lambda metric: sums.decided[which[metric.name]].max(axis=0))
        return found | {"cut": each(lambda _: sums.cut)}

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

        rows = [
            (name, int(k), float(value))
            for name, at, values in self._values()
            for k, value in zip(at, values, strict=True)
        ]
        table = pd.DataFrame(rows, columns=["metric", "k", "value"])
        return table.assign(**self._bounds()) if self._ties == "bounds" else table

    def intervals(self, confidence: float = 0.95) -> pd.DataFrame:
        """An interval for each metric that is made of sums over rows, by the Poisson bootstrap; with ``samples`` only.

        Each sample counts a row 0, 1, 2, ... times, independently of the others, where the bootstrap of
        :func:`xcrepro.metrics.confidence_intervals` draws exactly n rows: a sample has n rows give or take their root. Means
        and ratios feel that no more than by 1/n. Metrics of labels and calibration errors are left out, which no drawing
        with replacement serves.

        Parameters
        ----------
        confidence : float
            Between 0 and 1.

        Returns
        -------
        DataFrame
            metric, k, value, low, high: the ends are quantiles of the samples, linear between them.

        Raises
        ------
        ArgumentError
            Without ``samples`` or rows.
        """
        import pandas as pd

        real_number("confidence", confidence, above=0, below=1)
        rows, tail = [], (1.0 - confidence) / 2.0
        for name, (at, values, samples) in self.drawn().items():
            low, high = np.quantile(samples[~np.isnan(samples).any(axis=1)], [tail, 1.0 - tail], axis=0)
            rows += [(name, k, *map(float, each)) for k, *each in zip(at.tolist(), values, low, high, strict=True)]
        return pd.DataFrame(rows, columns=["metric", "k", "value", "low", "high"])

    def drawn(self) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """What :meth:`intervals` is made from; with ``samples`` only.

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
            Without ``samples`` or rows.
        """
        if not self._samples:
            raise ArgumentError("samples", "must be given up front for intervals", 0, "State(..., samples=1000)")
        check_rows(self.n_rows)
        whole, drawn, found = self._folds["rows"], self._folds["drawn"], {}
        for metric, at in self._wanted:
            if metric.interval != "bootstrap":
                continue
            places = np.searchsorted(whole.ks, at)
            with np.errstate(invalid="ignore"):
                samples = metric.formula(drawn)[:, places]
            samples[drawn.n_rows[:, 0] == 0] = np.nan
            found[metric.name] = at, metric.formula(whole)[places], samples
        return found

    def counts(self) -> labelwise.Counts:
        """The per-label counts, where a label-wise metric was asked for."""
        if "labels" not in self._open(0):
            raise ArgumentError(
                "metrics", "must name a label-wise metric, whose counts these are", "none", "'macro-F1'"
            )
        check_rows(self.n_rows)
        return labelwise.Counts.of(self._folds["labels"])

    def _check_sums(self) -> None:
        """Raise ValueError where a mean or share over rows is none: below 0 or above 1."""
        for metric, at in self._wanted if self.n_rows else ():
            if metric.fold == "rows" and metric.name in _SHARES:
                sums = self._row_sums()
                for k, value in zip(at, metric.formula(sums)[np.searchsorted(sums.ks, at)], strict=True):
                    if not -1e-9 <= value <= 1 + 1e-9:
                        raise ValueError(f"{metric.name}@{k} = {value:.4g}, which is a share")

    # ------------------------------------------------------------------ on disk

    def fingerprint(self) -> dict[str, Any]:
        """What two states must share to be merged: format, version, ks of each metric, L, weights and options."""
        return {
            "format": sealed.FORMAT,
            "version": __version__,
            "metrics": [f"{metric.name}@{k}" for metric, at in self._wanted for k in at.tolist()],
            "n_labels": self._n_labels,
            **self._calibration,
            "beta": self._beta,
            "samples": self._samples,
            "seed": self._seed,
            "ties": self._ties,
            **self._hashes,
        }

    @functools.cached_property
    def _hashes(self) -> dict[str, str | None]:
        """Of the weights, which may be millions and are never changed."""
        return {"inverse_propensity": sealed.digest(self._weights), "label_counts": sealed.digest(self._counts)}

    def save(self, path: str | os.PathLike, *, weights: bool = True, compress: bool = True) -> None:
        """Write the state to an ``.npz`` file, whole or not at all. Equal states give equal bytes.

        Parameters
        ----------
        path : path_like
            It ends in ``.npz``.
        weights : bool
            False leaves out ``inverse_propensity`` and ``label_counts``, of millions of labels larger than all the rest;
            :meth:`load` then takes them from another State.
        compress : bool
            False is several times quicker, and the file larger.

        Raises
        ------
        ArgumentError
            For another ending.
        """
        header = self.fingerprint() | {"rows": self._ranges, "n_rows": self.n_rows}
        arrays = {}
        for name, given in (("inverse_propensity", self._weights), ("label_counts", self._counts)):
            if given is not None and weights:
                arrays[name] = given
        for name, fold in self._folds.items():
            arrays |= {f"{name}.{part}": array for part, array in fold.arrays().items()}
        sealed.write(path, header, arrays, compress)

    @classmethod
    def load(cls, path: str | os.PathLike, *, allow_repeats: bool = False, like: State | None = None) -> State:
        """Read a state that :meth:`save` wrote.

        Parameters
        ----------
        path : path_like
        allow_repeats : bool
            As for :class:`State`.
        like : State, optional
            Whose weights it takes where the file has none.

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
        header, arrays = sealed.read(path)
        try:
            # Sums of so many samples are made before they are read: they must be there.
            if (
                header["samples"]
                and header["n_labels"] is not None
                and len(arrays["drawn.n_rows"]) != header["samples"]
            ):
                raise ValueError(f"sums of {len(arrays['drawn.n_rows'])} samples, {header['samples']} in its header")
            own = (None, None) if like is None else (like._weights, like._counts)
            given: dict[str, Any] = {
                name: arrays.get(name, other if header[name] is not None else None)
                for name, other in zip(("inverse_propensity", "label_counts"), own, strict=True)
            }
            options = {name: header[name] for name in ("bins", "closed", "cap", "beta", "samples", "seed", "ties")}
            options |= {"allow_repeats": allow_repeats}
            state = cls(1, header["metrics"], **given, **options)
            if header["n_labels"] is not None:
                folds = state._open(header["n_labels"])
                for name, fold in folds.items():
                    fold.restore({
                        key.partition(".")[2]: array for key, array in arrays.items() if key.partition(".")[0] == name
                    })  # fmt: skip
                    if name in ("rows", "labels") and fold.n_rows != header["n_rows"]:
                        raise ValueError(f"{name} of {fold.n_rows} rows, {header['n_rows']} in its header")
                rows = [(int(low), int(high)) for low, high in header["rows"]]
                state._take(
                    folds, whole_number("n_labels", header["n_labels"]), rows, whole_number("n_rows", header["n_rows"])
                )
                state._check_sums()
        except (KeyError, ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
            raise DataError(
                path, f"a state that cannot be ({error})", "what State.save writes", do="Make it again"
            ) from error
        if state.fingerprint() != {name: header.get(name) for name in state.fingerprint()}:
            raise DataError(
                path, "arrays that do not belong to its header", "what State.save writes", do="Make it again"
            )
        return state


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
    for block in blocks(Y, top, state._k_max, n_relevant):
        state._add(block)
    check_rows(state.n_rows)
    return state
