"""Reciprocal pairs: a test point and a label of it that know each other from training; put in, or read from a filter file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from scipy import sparse

from xcrepro.core.arguments import real_number
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.data.locate import FILTER
from xcrepro.core.data.splits import read_filter
from xcrepro.core.errors import ArgumentError, DataMissing
from xcrepro.core.predictions import TopK


@dataclasses.dataclass(frozen=True)
class Pairs:
    """A dataset with pairs that may not be predicted; its test truth has none of the reciprocal ones. ``itself`` and
    ``reciprocal`` are (rows, labels): the label is the test point itself, or a train point that has the test point for a
    label; of real data all pairs are in ``reciprocal``. ``kept`` is the test truth with them, if it is known."""

    ds: Dataset
    itself: tuple[np.ndarray, np.ndarray]
    reciprocal: tuple[np.ndarray, np.ndarray]
    kept: sparse.csr_matrix | None
    origin: str

    def filters(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Which pairs may leave the predictions, by name: ``none``, ``all``, where told apart ``itself``, ``reciprocal``."""
        every = tuple(np.concatenate(pair) for pair in zip(self.itself, self.reciprocal, strict=True))
        parts = {"itself": self.itself, "reciprocal": self.reciprocal} if self.itself[0].size else {}
        nothing = np.empty(0, np.int64), np.empty(0, np.int64)
        return {"none": nothing, **parts, "all": every}


def add_pairs(ds: Dataset, share: float, seed: int = 0) -> Pairs:
    """A dataset in which test points are labels too, and labels are train points, for a ``share`` in (0, 1] of the test pairs.

    For each drawn pair (i, l), point i becomes a label with the point's words, label l a train point with the label's
    words, which has the label i; (i, l) leaves the test truth. No point is left without a label.
    """
    real_number("share", share, above=0, at_most=1)
    if ds.label_features is None:
        raise ArgumentError("dataset", "must have words of its labels", ds.name, "take one of the group label-features")
    Y = ds.test.Y.tocoo()
    remaining, chosen = np.diff(ds.test.Y.indptr), []
    for place in np.random.default_rng(seed).permutation(Y.nnz):
        if len(chosen) < round(share * Y.nnz) and remaining[Y.row[place]] > 1:
            remaining[Y.row[place]] -= 1
            chosen.append(place)
    if not chosen:
        raise ArgumentError("dataset", "must have test points with two labels", ds.name, "take a larger scale or share")
    order = np.sort(chosen)
    points, labels = Y.row[order].astype(np.int64), Y.col[order].astype(np.int64)
    (n_test, n_labels), (items, item_of) = ds.test.Y.shape, np.unique(points, return_inverse=True)
    works, work_of = np.unique(labels, return_inverse=True)
    wide = n_labels + items.size

    def widened(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
        return sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], wide))

    ones = np.ones(points.size, np.float32)
    back = sparse.csr_matrix((ones, (work_of, n_labels + item_of)), shape=(works.size, wide))
    back.data[:] = 1
    removed = sparse.csr_matrix((ones, (points, labels)), shape=(n_test, wide))
    kept = widened(ds.test.Y)
    test = (kept - removed).tocsr()
    test.eliminate_zeros()
    stacked = [
        (ds.train.X, ds.label_features[works]),
        (widened(ds.train.Y), back),
        (ds.label_features, ds.test.X[items]),
    ]
    train_X, train_Y, words = (sparse.vstack(parts, format="csr") for parts in stacked)
    made = Dataset(
        f"{ds.name}-reciprocal{share:g}-seed{seed}", Split(train_X, train_Y), Split(ds.test.X, test), ds.A, ds.B,
        published=ds.published, entry=ds.entry, comparable=ds.comparable, label_features=words,
    )  # fmt: skip
    itself = items, n_labels + np.arange(items.size)
    return Pairs(made, itself, (points, labels), kept, f"{ds.origin}, with reciprocal pairs")


def read_pairs(ds: Dataset, folder: str) -> Pairs:
    """A real dataset with the pairs of its filter file, :data:`FILTER` in ``folder``."""
    path = Path(folder).expanduser() / FILTER
    if not path.is_file():
        raise DataMissing(f"{path}: no such file; the LF datasets' archives have it, and this item is about it")
    nothing = np.empty(0, np.int64), np.empty(0, np.int64)
    ds = dataclasses.replace(ds, excluded=None)  # an item that is about the filter takes it out itself
    return Pairs(ds, nothing, read_filter(path, shape=ds.test.Y.shape), None, ds.origin)


def without(top: TopK, pairs: tuple[np.ndarray, np.ndarray]) -> TopK:
    """Predictions without these (rows, labels); what is behind them moves up, and the last places are absent."""
    rows, labels = (np.asarray(part, np.int64) for part in pairs)
    places = np.arange(len(top))[:, None] * top.n_labels + top.ids
    out = np.isin(places, rows * top.n_labels + labels) & (top.ids >= 0)
    order = np.argsort(out, axis=1, kind="stable")
    absent = (top.ids, np.int32(-1)), (top.scores, np.float32(-np.inf))
    kept = (np.where(out, none, part) for part, none in absent)
    return TopK(*(np.take_along_axis(part, order, 1) for part in kept), top.n_labels, top.names)


def most(pairs: tuple[np.ndarray, np.ndarray]) -> int:
    """How many pairs one row has at most."""
    return int(np.bincount(pairs[0]).max(initial=0))
