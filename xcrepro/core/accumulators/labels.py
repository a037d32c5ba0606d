"""How often each label is relevant, predicted, and predicted rightly, for every k: what label-wise metrics are made of.

:class:`LabelCounts` is the fold. Of millions of labels a block of rows meets few, so its state is a list of the labels met.
:class:`HitLabels` is what metrics are worked out from, the labels that were hit. :class:`PreparedLabels` counts one block again
and again with other weights of its rows, for resampling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from xcrepro.core.accumulators.block import Block
from xcrepro.core.arguments import check_places, cut_offs
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import labelwise as kernel

_NARROW = 2**31  # what fits into an int32 lies below
_PENDING = 2**18  # events that may wait to be sorted
_RANGE_BITS = 9  # labels are counted in that many bits of ranges
_NO_COUNTS = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class HitLabels:
    """The labels that stand rightly in some row's top k at the largest k counted, and their counts; the arrays are read-only.

    Every label-wise metric needs these only: a label without a hit adds 0 to each.

    Attributes
    ----------
    ks : ndarray of int64, shape (K,)
    labels : ndarray of int64, shape (m,)
        Rising.
    true : ndarray of int64, shape (m,)
        Rows to which each is relevant; 1 or more.
    predicted, tp : ndarray of int64, shape (m, K)
        Rows whose top k hold it, and those whose top k hold it rightly; tp may be 0 at all but the largest k.
    n_labels : int
        L.
    n_true_labels : int
        Labels that are relevant to some row, hit or not.
    n_rows : int
        Rows counted.
    outside : int
        Of the L labels those that averages leave out (:attr:`xcrepro.TopK.outside`).
    """

    ks: np.ndarray
    labels: np.ndarray
    true: np.ndarray
    predicted: np.ndarray
    tp: np.ndarray
    n_labels: int
    n_true_labels: int
    n_rows: int
    outside: int = 0

    def __post_init__(self) -> None:
        for array in (self.ks, self.labels, self.true, self.predicted, self.tp):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"HitLabels(ks={self.ks.tolist()}, n_rows={self.n_rows}, {self.labels.size} of {self.n_labels} labels)"

    def at(self, ks) -> HitLabels:
        """The counts at some of its ks, in the order of ``ks``; itself where those are all it has."""
        wanted, which = pick_ks(ks, self.ks)
        if which is None:
            return self
        predicted, tp = (np.take(counts, which, axis=1) for counts in (self.predicted, self.tp))
        about = self.n_labels, self.n_true_labels, self.n_rows, self.outside
        return HitLabels(wanted, self.labels, self.true, predicted, tp, *about)

    def sums(self, beta: float = 1.0) -> np.ndarray:
        """(columns of the kernel, K): sums over labels, added in label order in float64."""
        if beta == 1.0:
            return self._plain_sums
        out = np.empty((kernel.N_COLUMNS, self.ks.size))
        kernel.label_sums(self.tp, self.predicted, self.true, beta * beta, out)
        return out

    @cached_property
    def _plain_sums(self) -> np.ndarray:
        """:meth:`sums` at beta = 1: what most metrics want, worked out once."""
        out = np.empty((kernel.N_COLUMNS, self.ks.size))
        kernel.label_sums(self.tp, self.predicted, self.true, 1.0, out)
        return out


def pick_ks(ks, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The ks wanted, checked, and where each stands among those counted; None where they are the same."""
    if isinstance(ks, np.ndarray) and np.array_equal(ks, counted):
        return counted, None
    wanted = cut_offs(ks)
    if np.array_equal(wanted, counted):
        return counted, None
    missing = np.setdiff1d(wanted, counted)
    if missing.size:
        raise ArgumentError("ks", f"must be among those counted, {counted.tolist()}", missing.tolist())
    return wanted, np.array([int(np.flatnonzero(counted == k)[0]) for k in wanted])


class LabelCounts:
    """The fold of label-wise metrics: for each label the rows it is relevant to, and for each k those whose top k hold it.

    Parameters
    ----------
    n_labels : int
        L.
    ks : int or sequence of int
        Distinct and rising.

    Attributes
    ----------
    n_labels : int
    ks : ndarray of int64, shape (K,)
    n_rows : int
        Rows so far.

    Raises
    ------
    ArgumentError
        For ks that are not distinct and rising.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> hit = LabelCounts(4, (1, 3)).add(Block(Y, top, 3)).hit_labels()
    >>> hit.labels, hit.true, hit.n_true_labels
    (array([0, 1, 2]), array([1, 1, 1]), 3)
    >>> hit.tp.tolist(), hit.predicted.tolist()
    ([[1, 1], [0, 1], [0, 1]], [[1, 2], [0, 2], [0, 1]])
    """

    def __init__(self, n_labels: int, ks) -> None:
        self.n_labels, self.ks = int(n_labels), cut_offs(ks)
        if (np.diff(self.ks) < 1).any():
            raise ArgumentError("ks", "must rise", self.ks.tolist(), "sort them")
        self._bucket = bucket_of_places(self.ks)
        self._truth = _Events(self.n_labels, 1)
        self._places = _Events(self.n_labels, 2 * self.ks.size)
        self.n_rows = self.outside = 0

    def __repr__(self) -> str:
        return f"LabelCounts(n_labels={self.n_labels}, ks={self.ks.tolist()}, n_rows={self.n_rows})"

    @property
    def _count_type(self) -> type:
        """No label counts more often than there are rows."""
        return np.int32 if self.n_rows < _NARROW else np.int64

    def add(self, block: Block) -> LabelCounts:
        """Count a block."""
        if block.n_labels != self.n_labels:
            raise ArgumentError("Y", f"must have {self.n_labels} labels in every block", block.n_labels)
        check_places("ks", self._bucket.size, block.ids.shape[1])
        self.n_rows += block.n_rows
        self.outside = max(self.outside, block.stored.outside)
        labels = block.truth.indices[int(block.truth.indptr[0]) : int(block.truth.indptr[-1])]
        self._truth.add(labels.astype(self._truth.key_type), _NO_COUNTS, self._count_type)
        places = np.empty(block.n_rows * self._bucket.size, self._places.key_type)
        n = kernel.place_keys(block.found, block.ids, self._bucket, self._places.shift, places)
        self._places.add(places[:n], _NO_COUNTS, self._count_type)
        return self

    def merge(self, other: LabelCounts) -> LabelCounts:
        """Fold in the counts of other rows; ``other`` stays as it is."""
        for name, ours, theirs in (("ks", self.ks, other.ks), ("n_labels", self.n_labels, other.n_labels)):
            if not np.array_equal(ours, theirs):
                raise ArgumentError("other", f"must have the same {name}, {ours}", theirs)
        if self.n_rows + other.n_rows >= 2**63:
            raise ArgumentError("other", "must keep the number of rows below 2**63", self.n_rows + other.n_rows)
        self.n_rows += other.n_rows
        self.outside = max(self.outside, other.outside)
        self._truth.merge(other._truth, self._count_type)
        self._places.merge(other._places, self._count_type)
        return self

    def arrays(self) -> dict[str, np.ndarray]:
        """All that was counted, in a form that depends on nothing else: equal counts give equal bytes."""
        found = {"n_rows": np.array([self.n_rows, self.outside][: 1 + (self.outside > 0)], np.int64)}
        for name, events in (("truth", self._truth), ("places", self._places)):
            found[f"{name}_keys"], found[f"{name}_counts"] = events.arrays(self._count_type)
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> LabelCounts:
        """Take over what :meth:`arrays` gave, in place of what was counted here."""
        names = ["n_rows", *(f"{name}_{part}" for name in ("truth", "places") for part in ("keys", "counts"))]
        if sorted(arrays) != sorted(names):
            raise ValueError(f"label counts must hold the arrays {', '.join(names)}; got {', '.join(sorted(arrays))}")
        n_rows = np.asarray(arrays["n_rows"])
        if n_rows.dtype != np.int64 or n_rows.shape not in ((1,), (2,)) or (n_rows < 0).any():
            raise ValueError(f"n_rows must be one int64, 0 or more, or two with the labels outside; got {n_rows!r}")
        fresh = LabelCounts(self.n_labels, self.ks)
        fresh.n_rows, fresh.outside = (*n_rows.tolist(), 0)[:2]
        if fresh.outside >= max(self.n_labels, 1):
            raise ValueError(f"n_rows has {fresh.outside} labels outside, of {self.n_labels}")
        for name, events in (("truth", fresh._truth), ("places", fresh._places)):
            events.restore(name, arrays[f"{name}_keys"], arrays[f"{name}_counts"], fresh.n_rows, fresh._count_type)
        hit = fresh.hit_labels()
        if (hit.tp[:, -1] > hit.true).any():
            label = hit.labels[np.argmax(hit.tp[:, -1] > hit.true)]
            raise ValueError(
                f"places_counts must not hold more hits of a label than rows it is relevant to: label {label}"
            )
        self._truth, self._places = fresh._truth, fresh._places
        self.n_rows, self.outside = fresh.n_rows, fresh.outside
        return self

    def hit_labels(self) -> HitLabels:
        """The counts of the labels that were hit, worked out anew at each call."""
        labels, predicted, tp = self._places.hits(self._count_type)
        true = self._truth.table(self._count_type)
        about = self.n_labels, int(np.count_nonzero(true)), self.n_rows, self.outside
        return HitLabels(self.ks.copy(), labels, true[labels].astype(np.int64), predicted, tp, *about)

    def true_labels(self) -> np.ndarray:
        """The labels that are relevant to some row, rising, int64."""
        return np.flatnonzero(self._truth.table(self._count_type))

    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What was counted for every label."""
        tp, predicted = (np.zeros((self.ks.size, self.n_labels), np.int64) for _ in range(2))
        self._places.spread(predicted, tp)
        return tp, predicted, self._truth.table(np.int64)

    def first_ks(self) -> tuple[np.ndarray, np.ndarray]:
        """The first of ``ks`` at which each label is predicted, and at which it is hit: its number, or K for never."""
        first = np.full((self.n_labels, 2), self.ks.size, np.min_scalar_type(self.ks.size))
        self._places.first_buckets(first)
        return tuple(np.ascontiguousarray(first.T))

    def n_predicted(self) -> np.ndarray:
        """(K,) int64: how many different labels the first k predictions name, rightly or not."""
        return _by_then(self.first_ks()[0], self.ks.size)

    def predicted(self, labels: np.ndarray) -> np.ndarray:
        """(K, m) int64: the rows whose top k hold each of some labels, without tables over all."""
        wanted, back = np.unique(labels, return_inverse=True)
        predicted, tp = (np.zeros((self.ks.size, wanted.size), np.int64) for _ in range(2))
        self._places.spread(predicted, tp, wanted)
        return predicted[:, back]


class PreparedLabels:
    """The labels of one block, made ready to be counted many times with other weights of the rows: for resampling.

    Only labels that are hit at all can be hit with other weights. Their places, and the rows of each relevant label, are kept
    in label order; a count then adds up weights label after label, and takes the labels that these weights leave a hit.

    Parameters
    ----------
    block : Block
        With as many places as the largest k or more.
    ks : int or sequence of int
        Distinct and rising.

    Raises
    ------
    ArgumentError
        For ks that are not distinct and rising, or beyond the block's places.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> hit = PreparedLabels(Block(Y, top, 3), (1, 3)).count(np.array([2, 0]))
    >>> hit.labels, hit.true, hit.tp.tolist()
    (array([0, 2]), array([2, 2]), [[2, 2], [0, 2]])
    """

    def __init__(self, block: Block, ks) -> None:
        once = LabelCounts(block.n_labels, ks)
        once.add(block)
        hit, true_labels = once.hit_labels(), once.true_labels()
        self.ks, self.n_labels, self.n_rows, self._labels = once.ks, once.n_labels, block.n_rows, hit.labels
        self._outside = once.outside
        row_numbers = np.arange(self.n_rows, dtype=np.int32)
        # The places of labels that are hit at all. Each list is sorted by cell, so that a count runs through its table once.
        n_places = np.logical_and.accumulate(block.ids[:, : once._bucket.size] >= 0, axis=1).sum(axis=1)
        keys, _ = once._places.whole(np.int32)
        self._places, self._place_row, self._shift = keys, np.repeat(row_numbers, n_places), once._places.shift
        label, event = keys >> once._places.shift, keys & ((1 << once._places.shift) - 1)
        number = np.full(self.n_labels, -1, np.int32)
        number[hit.labels] = np.arange(hit.labels.size, dtype=np.int32)
        kept = number[label] >= 0
        cell = number[label[kept]].astype(np.int64) * (2 * self.ks.size) + event[kept]
        self._cell, self._row = _sorted_together(cell, self._place_row[kept])
        # The truth's labels, numbered as they rise.
        labels, _ = once._truth.whole(np.int32)
        number[true_labels] = np.arange(true_labels.size, dtype=np.int32)
        self._true_cell, self._true_row = _sorted_together(number[labels], np.repeat(row_numbers, block.truth.sizes))
        self._n_true, self._hit_cell = true_labels.size, number[hit.labels]

    def count(self, weights: np.ndarray) -> HitLabels:
        """What :class:`LabelCounts` gives of the rows, each as often as its int64 weight says; the same numbers, faster."""
        n_rows = int(weights.sum())
        count_type = np.int32 if n_rows < _NARROW else np.int64
        weights = weights.astype(count_type)
        cells, true = np.zeros(self._labels.size * 2 * self.ks.size, count_type), np.zeros(self._n_true, count_type)
        kernel.add_rows(self._cell, self._row, weights, cells)
        kernel.add_rows(self._true_cell, self._true_row, weights, true)
        which, predicted, tp = _hits_of_cells(cells, self.ks.size)
        about = self.n_labels, int(np.count_nonzero(true)), n_rows, self._outside
        true_of_hit = true[self._hit_cell[which]].astype(np.int64)
        return HitLabels(self.ks.copy(), self._labels[which], true_of_hit, predicted, tp, *about)

    def n_predicted(self, weights: np.ndarray) -> np.ndarray:
        """What :meth:`LabelCounts.n_predicted` gives of them."""
        first = np.full((self.n_labels, 2), self.ks.size, np.min_scalar_type(self.ks.size))
        kernel.first_buckets(self._places, weights[self._place_row], self._shift, first)
        return _by_then(first[:, 0], self.ks.size)


def _by_then(first: np.ndarray, n_ks: int) -> np.ndarray:
    """How many labels have come by each k, of the number of the first k of each."""
    return np.cumsum(np.bincount(first, minlength=n_ks)[:n_ks])


def _sorted_together(cell: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both by rising cell; cells int32 where they are few enough."""
    if not cell.size or cell.max() < _NARROW:
        cell = cell.astype(np.int32)
    order = np.argsort(cell)
    return cell[order], row[order]


def bucket_of_places(ks: np.ndarray) -> np.ndarray:
    """For each place the first of the rising ks that counts it: it counts for all after that, too."""
    return np.searchsorted(ks, np.arange(1, ks[-1] + 1))


_List = tuple[np.ndarray, np.ndarray]  # keys and counts; no counts: once each


class _Events:
    """How often each event of each label happened; see :mod:`xcrepro.core.kernels.labelwise` for events, keys and cells.

    There is one list of rising keys with their counts; events wait beside it as they came until they are as many. So each event
    is sorted a few times, however small the blocks. Lists are never changed once they are here, so that two folds may hold the
    same.
    """

    def __init__(self, n_labels: int, n_events: int) -> None:
        self.n_labels, self.n_events = n_labels, n_events
        self.shift = (n_events - 1).bit_length()
        self.key_type = np.int32 if n_labels << self.shift <= _NARROW else np.int64
        self._rising: _List = np.zeros(0, self.key_type), np.zeros(0, np.int32)
        self._waiting: list[_List] = []  # keys in any order, some more than once

    def add(self, keys: np.ndarray, counts: np.ndarray, count_type: type) -> None:
        """Take a list; no ``counts``: once each. What waited is sorted in before, so that a single block is not sorted."""
        if sum(keys.size for keys, _ in self._waiting) > max(_PENDING, self._rising[0].size):
            self._sort_in(count_type)
        self._waiting.append((keys, counts))

    def merge(self, other: _Events, count_type: type) -> None:
        """Take all that the other has."""
        for given in other.lists():
            self.add(*given, count_type)

    def lists(self) -> list[_List]:
        """All there is."""
        return [given for given in (self._rising, *self._waiting) if given[0].size]

    def hits(self, count_type: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of a ranking's events: the labels with a hit, rising; predicted and tp, (m, K). All int64."""
        keys, counts = self.whole(count_type)
        most = min(int(np.count_nonzero(keys & 1)), self.n_labels)
        labels, predicted, tp = _room_for_hits(most, self.n_events // 2)
        bits = max(0, (self.n_labels - 1).bit_length() - _RANGE_BITS)
        cells: np.ndarray = np.zeros(1 << (bits + self.shift), count_type)
        about = self.shift, bits, (self.n_labels >> bits) + 1
        n = kernel.hits_of_list(keys, counts, *about, cells, labels, predicted, tp)
        return labels[:n], predicted[:n], tp[:n]

    def whole(self, count_type: type) -> _List:
        """All there is as one list, in no order; of a single block in that of its rows."""
        return self._one_list(self.lists(), count_type)

    def first_buckets(self, first: np.ndarray) -> None:
        """Lower each label's first bucket, (L, 2): in which it stands, and in which it stands rightly."""
        for keys, counts in self.lists():
            kernel.first_buckets(keys, counts, self.shift, first)

    def spread(self, predicted: np.ndarray, tp: np.ndarray, labels: np.ndarray | None = None) -> None:
        """Add everything to (K, L) tables of zeros; or what belongs to some labels, rising, to tables of those."""
        number = np.arange(0 if labels is None else self.n_labels)
        if labels is not None:
            number[:] = -1
            number[labels] = np.arange(labels.size)
        for keys, counts in self.lists():
            if labels is not None:
                label = number[keys >> self.shift]
                kept = label >= 0
                keys = (label[kept] << self.shift) + (keys[kept] & ((1 << self.shift) - 1))
                counts = counts[kept] if counts.size else counts
            kernel.spread(keys, counts, self.shift, predicted, tp)

    def table(self, count_type: type) -> np.ndarray:
        """A count for each label and event."""
        cells: np.ndarray = np.zeros(self.n_labels * self.n_events, count_type)
        for keys, counts in self.lists():
            kernel.add_to_cells(keys, counts, self.shift, self.n_events, cells)
        return cells

    def arrays(self, count_type: type) -> _List:
        """Rising keys and their counts."""
        self._sort_in(count_type)
        keys, counts = self._rising
        return keys.copy(), counts.astype(count_type)

    def restore(self, name: str, keys: np.ndarray, counts: np.ndarray, n_rows: int, count_type: type) -> None:
        """Take over what :meth:`arrays` gave; a ValueError for what it cannot have given."""
        for part, array, dtype in (("keys", keys, self.key_type), ("counts", counts, count_type)):
            if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
                raise ValueError(f"{name}_{part} must be one row of {np.dtype(dtype)}; got {_kind(array)}")
        if counts.size != keys.size:
            raise ValueError(f"{name}_counts must be as many as {name}_keys; got {counts.size}, {keys.size}")
        if counts.size and (counts.min() < 1 or counts.max() > n_rows):
            raise ValueError(f"{name}_counts must lie between 1 and n_rows, {n_rows}")
        if (keys[1:] <= keys[:-1]).any() or (keys.size and not 0 <= keys[0] <= keys[-1] < self.n_labels << self.shift):
            raise ValueError(f"{name}_keys must rise and name labels below {self.n_labels}")
        if (keys & ((1 << self.shift) - 1) >= self.n_events).any():
            raise ValueError(f"{name}_keys must name events below {self.n_events}")
        self._rising, self._waiting = (keys.copy(), counts.copy()), []

    def _one_list(self, lists: list[_List], count_type: type) -> _List:
        """Lists as one, in no order."""
        if len(lists) == 1:
            return lists[0]
        if not any(given.size for _, given in lists):
            return np.concatenate([np.zeros(0, self.key_type), *(keys for keys, _ in lists)]), _NO_COUNTS
        counts: list[np.ndarray] = [
            given.astype(count_type) if given.size else np.ones(keys.size, count_type) for keys, given in lists
        ]
        return np.concatenate([keys for keys, _ in lists]), np.concatenate(counts)

    def _sort_in(self, count_type: type) -> None:
        """Bring what waits into the list of rising keys: by a table where that is quicker than sorting."""
        n = sum(keys.size for keys, _ in self.lists())
        if self.n_labels * self.n_events <= 4 * n:
            cells = self.table(count_type)
            there = np.count_nonzero(cells)
            self._rising = np.empty(there, self.key_type), np.empty(there, count_type)
            kernel.list_cells(cells, self.shift, self.n_events, *self._rising)
        elif self._waiting:
            keys, given = self._one_list(self._waiting, count_type)
            order = np.argsort(keys) if given.size else None
            keys, given = (np.sort(keys), given) if order is None else (keys[order], given[order])
            counts: np.ndarray = np.empty(keys.size, count_type)
            n = kernel.add_up(keys, given, counts)
            self._rising = self._merged(self._rising, (keys[:n], counts[:n]), count_type)
        self._waiting = []

    def _merged(self, first: _List, second: _List, count_type: type) -> _List:
        """Two lists of rising keys as one."""
        keys = np.empty(first[0].size + second[0].size, self.key_type)
        counts: np.ndarray = np.empty(keys.size, count_type)
        given = (array for keys, counts in (first, second) for array in (keys, counts.astype(count_type, copy=False)))
        n = kernel.merge(*given, keys, counts)
        return keys[:n].copy(), counts[:n].copy()


def _room_for_hits(most: int, n_ks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, predicted and tp for so many labels."""
    predicted, tp = np.empty((2, most, n_ks), np.int64)
    return np.empty(most, np.int64), predicted, tp


def _hits_of_cells(cells: np.ndarray, n_ks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a table that have a hit, predicted and tp."""
    labels, predicted, tp = _room_for_hits(cells.size // (2 * n_ks), n_ks)  # what is not written takes no memory
    n = kernel.hits_of_cells(cells, labels, predicted, tp)
    return labels[:n], predicted[:n], tp[:n]


def _kind(array: object) -> str:
    return f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
