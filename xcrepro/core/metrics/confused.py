"""Which labels are confused with which: pairs of a wrong prediction and a missed label of the same row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core import threads
from xcrepro.core.accumulators.block import Block, blocks
from xcrepro.core.accumulators.sums import run_starts
from xcrepro.core.arguments import check_rows, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import sets as kernel
from xcrepro.core.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd

_PAIRS = 2**22  # in one go


class Confused:
    """In how many rows label l was predicted wrongly while label m was relevant and missed, for each pair that occurs.

    Parameters
    ----------
    k : int
        Places that are predictions.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 0]])
    >>> top = TopK.from_ids([[0], [0], [1]], n_labels=3)
    >>> one, other = (Confused().update(Y[rows], top.rows(rows)) for rows in ([0, 1], [2]))
    >>> one.merge(other).table(["cat", "dog", "lynx"])
      predicted missed  rows
    0       cat   lynx     2
    1       cat    dog     1
    2       dog    cat     1
    """

    def __init__(self, k: int = 1) -> None:
        self.k = whole_number("k", k, 1)
        self.n_labels: int | None = None
        self.n_rows = 0
        self._keys, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)

    def update(self, Y, top: TopK) -> Confused:
        """Add a block of rows.

        Parameters
        ----------
        Y : sparse matrix or array_like, shape (n, L)
        top : TopK

        Returns
        -------
        Confused
            Itself.

        Raises
        ------
        ArgumentError
            For truth and predictions that cannot belong together, a k above ``top.k``, another number of labels than before.
        """
        [block] = blocks(Y, top, self.k)
        return self._add(block)

    def _add(self, block: Block) -> Confused:
        self._check_labels(block.n_labels)
        given, found = (block.ids, block.found), []
        ends = np.zeros(block.n_rows + 1, np.int64)
        threads.over_rows(block.n_rows, lambda lo, hi: kernel.confusions(block.truth.indptr, *given, lo, hi, ends))
        ends = np.cumsum(ends)
        first = 0
        while first < block.n_rows:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + _PAIRS, "right")) - 1)
            start, truth = ends[first], (block.truth.indptr, block.truth.indices)
            keys = np.empty(ends[last] - start, np.int64)

            def fill(lo: int, hi: int, first=first, start=start, truth=truth, keys=keys) -> None:
                kernel.confused(*truth, *given, first + lo, first + hi, keys[ends[first + lo] - start :])

            threads.over_rows(last - first, fill)
            keys.sort()
            starts = run_starts(keys)
            found.append((keys[starts], np.diff(starts, append=keys.size)))
            first = last
        self._take(found)
        self.n_rows += block.n_rows
        return self

    def merge(self, other: Confused) -> Confused:
        """Add another's rows.

        Parameters
        ----------
        other : Confused
            Of the same k and number of labels. It stays as it is.

        Returns
        -------
        Confused
            Itself.
        """
        if other.k != self.k:
            raise ArgumentError("other", f"must have k = {self.k}", other.k)
        if other.n_labels is not None:
            self._check_labels(other.n_labels)
        self._take([(other._keys, other._counts)])
        self.n_rows += other.n_rows
        return self

    def _check_labels(self, n_labels: int) -> None:
        if self.n_labels not in (None, n_labels):
            raise ArgumentError("Y", f"must have {self.n_labels} labels in every block", n_labels)
        self.n_labels = n_labels

    def _take(self, found: list[tuple[np.ndarray, np.ndarray]]) -> None:
        if not self._keys.size and len(found) == 1:
            self._keys, self._counts = found[0]
            return
        keys = np.concatenate([self._keys, *(keys for keys, _ in found)])
        counts = np.concatenate([self._counts, *(counts for _, counts in found)])
        self._keys, back = np.unique(keys, return_inverse=True)
        self._counts = np.bincount(back, counts, self._keys.size).astype(np.int64)

    def table(self, label_names: Sequence[str] = (), most: int | None = None) -> pd.DataFrame:
        """The pairs, the most frequent first, then by label ids.

        Parameters
        ----------
        label_names : sequence of str
            Of all labels; empty: ids are shown.
        most : int, optional
            How many pairs at most.

        Returns
        -------
        DataFrame
            predicted, missed, rows.

        Raises
        ------
        ArgumentError
            Where there are more or fewer names than labels.
        """
        import pandas as pd

        if len(label_names) not in (0, self.n_labels):
            raise ArgumentError("label_names", f"must name each of the {self.n_labels} labels", len(label_names))
        most = self._keys.size if most is None else whole_number("most", most, 1)
        several = np.flatnonzero(self._counts > 1)  # most pairs occur once, and are in order
        several = several[np.argsort(-self._counts[several], kind="stable")]
        order = np.concatenate([several, np.flatnonzero(self._counts == 1)])[:most]
        keys = self._keys[order]
        labels = [keys >> 32, keys & (2**32 - 1)]
        if len(label_names):
            labels = [[label_names[label] for label in part.tolist()] for part in labels]
        return pd.DataFrame(
            {"predicted": labels[0], "missed": labels[1], "rows": self._counts[order]}, copy=bool(len(label_names))
        )


def confused_labels(
    Y, top: TopK | None = None, k: int = 1, *, label_names: Sequence[str] = (), most: int | None = None
) -> pd.DataFrame:
    """Pairs of labels that are confused: l was predicted wrongly where m was relevant and missed.

    With several labels a row nothing says which wrong label took whose place, so each wrong prediction of a row is paired with
    each missed label of it: a hint, not a proof. A small k tells most.

    Parameters
    ----------
    Y, top
        As in :mod:`xcrepro.core.metrics.ranking`, blocks included.
    k : int
        Places that are predictions.
    label_names, most
        As for :meth:`Confused.table`.

    Returns
    -------
    DataFrame
        predicted, missed, rows: the number of rows; the most frequent first, then by label ids. :class:`Confused` has an
        example, and merges.
    """
    confused = Confused(k)
    for block in blocks(Y, top, confused.k):
        confused._add(block)
    check_rows(confused.n_rows)
    return confused.table(label_names, most)
