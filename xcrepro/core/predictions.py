"""``TopK``, the one form of predictions that every metric takes, and the ways into it.

What the field's tools hand over differs, and so do their answers at the edges. Here:

- **Order**: best score first, equal scores by the lowest label id. Scores are compared as they come (float64 stays
  float64), then stored as float32.
- **Absent**: a sparse matrix predicts what it stores, a stored 0 included; what it does not store is not predicted,
  not scored 0. A score of minus infinity means *not predicted*. A row may have fewer than k predictions, or none:
  its empty places hold id -1, come last, and count as misses.
- **NaN** has no rank: refused. Plus infinity is the best score there is.
- **A label twice in one row** is refused: peers count it twice (recall 2.0), or add the scores.
- Ids outside [0, L) are refused.
- The caller's arrays are never sorted, summed or written to.
"""

from __future__ import annotations

import os
import warnings
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from xcrepro.core import threads
from xcrepro.core.arguments import whole_number
from xcrepro.core.data.sources import npz_arrays
from xcrepro.core.errors import ArgumentError, DataError, DataWarning
from xcrepro.core.kernels import sets as sets_kernel
from xcrepro.core.kernels import topk as kernel
from xcrepro.core.kernels import truth as truth_kernel
from xcrepro.core.matrices import Names, checked_matrix, csr_from_arrays, names_of, positives, row_of
from xcrepro.core.paths import atomic_path
from xcrepro.core.truth import Truth, as_truth

if TYPE_CHECKING:
    from xcrepro.core.cards import Card


@dataclass(frozen=True, eq=False)
class TopK:
    """The k best labels of each point. Build one with the ``from_*`` methods, which check and rank.

    Attributes
    ----------
    ids : ndarray of int32, shape (n, k)
        Best first, ties to the lowest label id; -1 where a row has fewer than k predictions. Read-only.
    scores : ndarray of float32, shape (n, k)
        Falling along each row; minus infinity where ``ids`` is -1. Read-only.
    n_labels : int
        L, the number of labels there are (ids are below it).
    names : optional
        What a DataFrame of scores called its columns and rows: a truth with other names is refused.
    outside : int
        How many of the L labels are none that anybody asked for, such as names that a language model made up: they can be
        predicted wrongly only, and averages over labels leave them out. 0 but for files that are read by name.

    Examples
    --------
    >>> import numpy as np
    >>> top = TopK.from_scores(np.array([[0.2, 0.9, 0.2], [0.0, 0.1, 0.5]]), k=2)
    >>> top.ids
    array([[1, 0],
           [2, 1]], dtype=int32)
    """

    ids: np.ndarray
    scores: np.ndarray
    n_labels: int
    names: Names | None = field(default=None, repr=False)
    outside: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        for array in (self.ids, self.scores):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"TopK(n={len(self)}, k={self.k}, n_labels={self.n_labels})"

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()

    def show(self, data=None, rows=5) -> Card:
        """A few rows as a person reads them: what a row is, and the labels predicted for it, hits marked.

        Parameters
        ----------
        data : Dataset, Split, or truth of shape (n, L), optional
            What the predictions are for: its test points give texts and names; a split or a truth gives hits only. Of other
            rows or labels than the predictions it is refused.
        rows : int or sequence of int
            How many of the first rows, or which rows.

        Returns
        -------
        Card
            It shows itself in a notebook, and as text, hits in brackets.

        Examples
        --------
        >>> import xcrepro as xc
        >>> ds = xc.load("cooking", points=1000)
        >>> top = xc.models.Popularity().fit(ds.train.X, ds.train.Y).predict(ds.test.X, k=3)
        >>> top.show(ds, rows=[0])
        212 rows, 3 places, 480 labels
        row  point  predicted, best first; hits are marked
        0  How to peel chestnuts?  baking, food-safety, bread
        """
        from xcrepro.core import cards

        return cards.top(self, data, rows)

    @property
    def k(self) -> int:
        """How many places a row has."""
        return self.ids.shape[1]

    def head(self, k: int) -> TopK:
        """The first k places.

        Parameters
        ----------
        k : int
            Beyond the places there are: all of them.

        Returns
        -------
        TopK
            It shares its arrays with this one.
        """
        return TopK(self.ids[:, :k], self.scores[:, :k], self.n_labels, self.names, self.outside)

    def rows(self, which) -> TopK:
        """Some of the rows.

        Parameters
        ----------
        which : slice or array_like
            A mask or indices.

        Returns
        -------
        TopK
            In the order of ``which``.
        """
        names = None if self.names is None else self.names._replace(index=self.names.index[which])
        return TopK(self.ids[which], self.scores[which], self.n_labels, names, self.outside)

    def above(self, threshold) -> TopK:
        """The predictions whose score is at or above a threshold: sets of any size.

        Parameters
        ----------
        threshold : float or array_like of float, shape (L,)
            One for all labels, or one for each. Compared as float32, as scores are stored. One that no score reaches keeps
            nothing, one that all reach keeps all: a threshold chosen on other rows may be either for these. Of scores from 0
            to 1 it may be just above 1, or infinite, to keep nothing.

        Returns
        -------
        TopK
            Of as many places, the empty ones behind: absent (-1).

        Raises
        ------
        ArgumentError
            For NaN, another number of thresholds than L, and a single one above 1, such as 1.5, of scores from 0 to 1.

        Examples
        --------
        >>> top = TopK.from_ids([[3, 0, 1], [2, 1, 0]], [[0.9, 0.6, 0.2], [0.4, 0.3, 0.1]], n_labels=4)
        >>> top.above(0.5).ids
        array([[ 3,  0, -1],
               [-1, -1, -1]], dtype=int32)
        >>> top.above([0.1, 0.5, 0.4, 1.0]).ids      # a threshold for each label
        array([[ 0, -1, -1],
               [ 2,  0, -1]], dtype=int32)
        """
        cuts = _thresholds(threshold, self)
        ids, scores = empty_places(len(self), self.k)
        given = self.ids, self.scores, cuts
        threads.over_rows(len(self), lambda lo, hi: sets_kernel.above(*given, lo, hi, ids, scores), min_rows=4096)
        return TopK(ids, scores, self.n_labels, self.names, self.outside)

    # ------------------------------------------------------------------ from scores

    @classmethod
    def from_scores(cls, scores, k: int, *, exclude: tuple[np.ndarray, np.ndarray] | None = None) -> TopK:
        """Rank a score matrix.

        Parameters
        ----------
        scores : sparse matrix or array_like, shape (n, L)
            Any SciPy format, any real dtype. Higher is better. Also scikit-learn's list of arrays (n, 2), one for each label.
        k : int
            How many labels to keep, at least 1.
        exclude : tuple of (rows, labels), optional
            Pairs that may not be predicted: the repository's filter files (:func:`xcrepro.core.data.splits.read_filter`), which
            take out reciprocal pairs before the top k is chosen.

        Returns
        -------
        TopK

        Raises
        ------
        ArgumentError
            For NaN, an id out of range, a label stored twice in a row (even where it could not reach the top k), or a shape
            that is not 2-D.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> scores = csr_matrix(([3.0, 7.0, 7.0], [4, 2, 1], [0, 3, 3]), shape=(2, 5))
        >>> TopK.from_scores(scores, k=2).ids        # 7.0 twice: the lower id first; the second row is empty
        array([[ 1,  2],
               [-1, -1]], dtype=int32)
        >>> import numpy as np
        >>> TopK.from_scores(scores, k=2, exclude=(np.array([0]), np.array([1]))).ids
        array([[ 2,  4],
               [-1, -1]], dtype=int32)
        """
        k = whole_number("k", k, 1)
        do = "lists of (label, score) pairs go to TopK.from_pairs, ranked ids to TopK.from_ids"
        scores = positives("scores", scores)
        names = names_of("scores", scores)
        values = checked_matrix("scores", scores, do=do)
        if sparse.issparse(values):
            return cls._from_csr(values, k, exclude)
        values = np.ascontiguousarray(as_float(values))
        if exclude is not None:
            values = values.copy()
            values[_pairs(exclude, values.shape)] = -np.inf
        n, n_labels = values.shape
        ids, best = empty_places(n, k)
        # A dense row is long, so even a few of them are worth a thread.
        faults = threads.over_rows(n, lambda lo, hi: kernel.dense(values, lo, hi, ids, best), min_rows=512)
        _raise_first(faults, lambda place: divmod(place, n_labels))
        return cls(_held(ids, best, values.dtype), best, n_labels, names)

    @classmethod
    def _from_csr(cls, matrix: sparse.csr_matrix, k: int, exclude) -> TopK:
        data = as_float(matrix.data)
        n, n_labels = matrix.shape
        if exclude is not None:
            rows, labels = _pairs(exclude, matrix.shape)
            keys = np.unique(rows.astype(np.int64) * n_labels + labels)
            stored = np.repeat(np.arange(n, dtype=np.int64), np.diff(matrix.indptr))
            data = np.where(np.isin(stored * n_labels + matrix.indices, keys), data.dtype.type(-np.inf), data)
        ids, best = empty_places(n, k)
        indptr, indices = matrix.indptr, matrix.indices

        def rank(lo: int, hi: int) -> tuple[int, int]:
            fault = kernel.check_ids(indptr, indices, n_labels, lo, hi)
            return fault if fault[0] else kernel.csr(indptr, indices, data, lo, hi, ids, best)

        faults = threads.over_rows(n, rank, min_rows=512)
        _raise_first(faults, lambda place: (row_of(indptr, place), int(indices[place])))
        return cls(_held(ids, best, data.dtype), best, n_labels)

    # ------------------------------------------------------------------ from rankings

    @classmethod
    def from_ids(cls, ids, scores=None, *, n_labels: int) -> TopK:
        """Take label ids that are ranked already, or ids with their scores.

        Parameters
        ----------
        ids : array_like of int, shape (n, k)
            -1 marks an absent place and may stand only behind a row's predictions.
        scores : array_like of float, shape (n, k), optional
            With scores the rows are ranked anew (best first, ties to the lowest id). Without, the order given stands, and
            -1, -2, ..., -k stand in for the scores: they are ranks, not probabilities.
        n_labels : int
            L.

        Returns
        -------
        TopK

        Raises
        ------
        ArgumentError
            For an id out of range or twice in a row, a score that is NaN, other shapes or dtypes.

        Examples
        --------
        >>> TopK.from_ids([[7, 3], [5, -1]], n_labels=9).ids
        array([[ 7,  3],
               [ 5, -1]], dtype=int32)
        >>> TopK.from_ids([[7, 3]], scores=[[0.5, 0.5]], n_labels=9).ids
        array([[3, 7]], dtype=int32)
        """
        n_labels = whole_number("n_labels", n_labels, 1)
        given = np.asarray(ids)
        if given.ndim != 2 or given.dtype.kind not in "iu":
            got = f"shape {given.shape}, dtype {given.dtype}"
            raise ArgumentError("ids", "must be a 2-D array of whole numbers", got, "pad short rows with -1")
        if given.size and (given.max() >= n_labels or given.min() < -1):
            row, place = np.argwhere((given >= n_labels) | (given < -1))[0]
            got = f"{given[row, place]} at row {row}, place {place}"
            raise ArgumentError("ids", f"must be -1 or labels 0 to {n_labels - 1}", got)
        absent = given < 0
        gaps = (absent[:, :-1] & ~absent[:, 1:]).any(axis=1)
        if gaps.any():
            row = int(np.argmax(gaps))
            got = f"{given[row].tolist()} in row {row}"
            raise ArgumentError("ids", "may hold -1 only behind a row's predictions", got)
        result = np.ascontiguousarray(given, np.int32)
        if np.shares_memory(result, given):
            result = result.copy()
        faults = threads.over_rows(len(result), lambda lo, hi: truth_kernel.duplicate_place(result, lo, hi))
        place = next((fault for fault in faults if fault >= 0), -1)
        if place >= 0:
            row = place // result.shape[1]
            raise ArgumentError("ids", "must not name a label twice in a row", f"{result[row].tolist()} in row {row}")
        if scores is None:
            ranks = -np.arange(1, result.shape[1] + 1, dtype=np.float32)
            return cls(result, np.where(absent, np.float32(-np.inf), ranks), n_labels)
        values = np.asarray(scores)
        if values.shape != result.shape or values.dtype.kind not in "biuf":
            rule = f"must be numbers of the shape of ids, {result.shape}"
            raise ArgumentError("scores", rule, f"shape {values.shape}, dtype {values.dtype}")
        values = np.where(absent, -np.inf, values).astype(np.float64)
        if np.isnan(values).any():
            row, place = np.argwhere(np.isnan(values))[0]
            raise _score_fault(kernel.NAN, row, result[row, place])
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite
            rounded = values.astype(np.float32)
        result[rounded == -np.inf] = -1
        # lexsort sorts by its last key first: by falling score, then by rising id, the absent ones behind.
        order = np.lexsort((np.where(result < 0, n_labels, result), -values), axis=1)
        return cls(np.take_along_axis(result, order, 1), np.take_along_axis(rounded, order, 1), n_labels)

    @classmethod
    def from_pairs(
        cls, rows: Iterable, *, n_labels: int, k: int | None = None, label_names: Sequence[str] | None = None
    ) -> TopK:
        """Take what napkinXC's ``predict`` and ``predict_proba`` return: for each point a list of labels, or of pairs; or what
        fastText's ``predict`` returns, a list of names for each text and a list of their probabilities.

        Parameters
        ----------
        rows : iterable of lists
            For each point labels, best first, or (label, score) pairs, in any order, ranked by score, ties to the lowest id.
            Of fastText the pair ``(names, probabilities)``.
        n_labels : int
            L.
        k : int, optional
            Places to keep; the longest row's length by default.
        label_names : sequence of str, optional
            The names of the L labels, where rows have names; fastText's prefix ``__label__`` is no part of a name.

        Returns
        -------
        TopK

        Raises
        ------
        ArgumentError
            For what is neither, a name that is none of ``label_names``, both kinds together, and as :meth:`from_ids`.

        Examples
        --------
        >>> TopK.from_pairs([[(4, 0.3), (1, 0.9)], []], n_labels=5).ids
        array([[ 1,  4],
               [-1, -1]], dtype=int32)
        """
        if isinstance(rows, tuple) and len(rows) == 2 and any(isinstance(one, str) for row in rows[0] for one in row):
            rows = [list(zip(*row, strict=True)) for row in zip(*rows, strict=True)]
        rows, n_labels = [list(row) for row in rows], whole_number("n_labels", n_labels, 1)
        named = {} if label_names is None else {name: label for label, name in enumerate(label_names)}
        least = 1 if k is None else whole_number("k", k, 1)
        with_scores = any(np.ndim(row[0]) == 1 for row in rows if row)
        ids = np.full((len(rows), max([least, *map(len, rows)])), -1, np.int64)
        scores = np.full(ids.shape, -np.inf) if with_scores else None
        for i, row in enumerate(rows):
            try:
                labels = [label for label, _ in row] if with_scores else row
                ids[i, : len(row)] = [_named(label, named) for label in labels]
                if scores is not None:
                    scores[i, : len(row)] = [score for _, score in row]
            except (TypeError, ValueError) as error:
                rule = f"must hold labels 0 to {n_labels - 1}, or (label, score) pairs, one kind throughout"
                raise ArgumentError("rows", rule, f"row {i}: {row[:3]}...") from error
        top = without_rounding(cls.from_ids(ids, scores, n_labels=n_labels), "rows")
        return top if k is None else top.head(k)

    # ------------------------------------------------------------------ files

    @classmethod
    def load(
        cls,
        path: str | os.PathLike,
        k: int | None = None,
        *,
        exclude: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> TopK:
        """Read predictions from a file, whatever it is:

        - ``.npz`` that :meth:`save` wrote, small or not;
        - ``.npz`` of a SciPy sparse score matrix (pyxclib, PECOS ``Yt_pred.npz``, Renee, LightXML);
        - ``.npz`` of the calibration@k authors (see :meth:`from_calibration_npz`);
        - a score matrix as text (header ``n L``, then ``label:score``), also ``.gz`` (the repository's ``score_mat.txt``).

        Parameters
        ----------
        path : path_like
        k : int, optional
            Places to keep; needed for score matrices, and all that is stored otherwise.
        exclude : tuple of (rows, labels), optional
            Pairs that may not be predicted, as in :meth:`from_scores`; only for score matrices, because what a ranking would
            have put in their place is not in the file.

        Returns
        -------
        TopK

        Raises
        ------
        DataMissing
            Where there is no such file.
        DataError
            For another form, and for content that breaks its rules.
        ArgumentError
            For a score matrix without ``k``, or ``exclude`` with a ranking.
        """
        path = Path(path)
        stored = npz_arrays(path) if path.suffix == ".npz" else None
        if stored is None or {"format", "shape", "data"} <= set(stored):
            from xcrepro.core.data.read import read_sparse

            scores = read_sparse(path) if stored is None else csr_from_arrays(path, stored)
            if k is None:
                rule, do = f"must be given for the score matrix {path.name}", "say how many places to keep"
                raise ArgumentError("k", rule, None, do)
            try:
                return cls.from_scores(scores, k, exclude=exclude)
            except ArgumentError as error:
                if error.argument != "scores":
                    raise
                raise DataError(path, str(error.got), f"scores, which {error.rule}", do=error.do) from error
        if exclude is not None:
            got, do = f"{path.name}, which holds rankings", "filter when making the TopK"
            raise ArgumentError("exclude", "goes with a score matrix", got, do)
        if {"ids", "steps", "n_labels"} <= set(stored):
            stored = _unpacked(path, stored)
        if {"ids", "scores", "n_labels"} <= set(stored):
            top = read_saved(path, stored)
        elif "prediction_ids" in stored:
            top = cls.from_calibration_npz(path)
        else:
            forms = "TopK.save, of a SciPy sparse matrix, or of calibration@k (prediction_ids, scores, labels)"
            raise DataError(path, f"arrays {sorted(stored)}", f"those of {forms}")
        return top if k is None else top.head(k)

    def save(self, path: str | os.PathLike, *, small: bool = False) -> None:
        """Write ``ids``, ``scores``, ``n_labels`` and, unless it is 0, ``outside`` to an ``.npz`` file, whole or not at all.

        Parameters
        ----------
        path : path_like
            It ends in ``.npz``.
        small : bool
            A file of about 70 % of the size, which takes longer to write and read: it holds ``steps`` in place of the scores,
            how far each is below the one before it, as bytes, and is packed by LZMA. :meth:`load` gives the same bits.

        Raises
        ------
        ArgumentError
            For another ending.
        """
        with atomic_path(_npz_name(path)) as part:
            arrays = {"ids": self.ids, "scores": self.scores, "n_labels": np.array(self.n_labels, np.int64)}
            arrays |= {"outside": np.array(self.outside, np.int64)} if self.outside else {}
            if not small:
                np.savez_compressed(part, **arrays)  # type: ignore[arg-type]
                return
            arrays = {"steps" if name == "scores" else name: array for name, array in arrays.items()}
            arrays["steps"] = _packed(self.scores)
            with zipfile.ZipFile(part, "w", zipfile.ZIP_LZMA) as file:
                for name, array in arrays.items():
                    about = zipfile.ZipInfo(f"{name}.npy")  # of no date
                    about.compress_type = zipfile.ZIP_LZMA
                    with file.open(about, "w") as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)

    @classmethod
    def from_calibration_npz(cls, path: str | os.PathLike, n_labels: int | None = None) -> TopK:
        """Read the interchange file of the calibration@k authors: the first of what :func:`read_calibration_npz` returns.

        It holds ``scores`` (n, k), ``prediction_ids`` (n, k), ``true_positives`` (n, k) and ``labels`` (pairs, 2): row and
        label of every relevant pair.

        Parameters
        ----------
        path, n_labels
            As for :func:`read_calibration_npz`.

        Returns
        -------
        TopK

        Raises
        ------
        DataMissing, DataError
            As :func:`read_calibration_npz`.
        """
        return read_calibration_npz(path, n_labels)[0]

    # ------------------------------------------------------------------ out

    def to_csr(self) -> sparse.csr_matrix:
        """The scores as a matrix.

        Returns
        -------
        csr_matrix of float32, shape (n, L)
            Label ids rise in each row; zero scores stay stored.
        """
        present = self.ids >= 0
        indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        matrix = sparse.csr_matrix((self.scores[present], self.ids[present], indptr), shape=(len(self), self.n_labels))
        matrix.sort_indices()
        return matrix


def read_saved(path: Path, stored: dict[str, np.ndarray]) -> TopK:
    """What :meth:`TopK.save` wrote, or an error that names the file."""
    n_labels, scores = stored["n_labels"], stored["scores"]
    if n_labels.shape != () or n_labels.dtype.kind not in "iu" or not 1 <= int(n_labels) <= MAX_LABELS:
        found = f"n_labels {n_labels.tolist()}" if n_labels.size < 10 else f"n_labels of shape {n_labels.shape}"
        raise DataError(path, found, f"one whole number from 1 to {MAX_LABELS:,}")
    top = _from_ids(path, stored["ids"], None, int(n_labels))
    if scores.shape != top.ids.shape or scores.dtype.kind != "f":
        found = f"scores of shape {scores.shape} and dtype {scores.dtype}"
        raise DataError(path, found, f"floats of the shape of ids, {top.ids.shape}")
    if np.isnan(scores).any():
        row, place = np.argwhere(np.isnan(scores))[0]
        raise DataError(path, f"NaN as score at row {row}, place {place}", "numbers")
    with np.errstate(over="ignore"):  # as everywhere, what float32 cannot hold is infinite
        rounded = scores.astype(np.float32, copy=False)
    odd = (rounded == -np.inf) != (top.ids < 0)
    if odd.any():
        row, place = np.argwhere(odd)[0]
        found = f"score {scores[row, place]} for label {top.ids[row, place]} at row {row}, place {place}"
        raise DataError(path, found, "minus infinity where the label is -1, and nowhere else")
    # The stored order stands: it was made from scores that may have been finer than float32.
    if not (falls := scores[:, 1:] <= scores[:, :-1]).all():
        row, place = np.argwhere(~falls)[0]
        found = f"score {scores[row, place + 1]} at row {row}, place {place + 1}, above the one before it"
        raise DataError(path, found, "scores that fall along each row")
    outside = stored.get("outside", np.zeros((), np.int64))
    if outside.shape != () or outside.dtype.kind not in "iu" or not 0 <= int(outside) < int(n_labels):
        raise DataError(path, f"outside of {outside.tolist()!r}"[:80], f"one whole number below its {n_labels} labels")
    return TopK(top.ids, rounded, top.n_labels, outside=int(outside))


def _from_ids(path: str | os.PathLike, ids: np.ndarray, scores: np.ndarray | None, n_labels: int) -> TopK:
    """:meth:`TopK.from_ids` of a file's arrays."""
    try:
        return TopK.from_ids(ids, scores, n_labels=n_labels)
    except ArgumentError as error:
        raise DataError(path, f"{error.argument}: {error.got}", f"{error.argument} that {error.rule}") from error


MAX_LABELS = 2**31 - 1
"""Ids are int32."""


def read_calibration_npz(path: str | os.PathLike, n_labels: int | None = None) -> tuple[TopK, sparse.csr_matrix]:
    """Predictions and truth of a calibration@k interchange file (see :meth:`TopK.from_calibration_npz`).

    Parameters
    ----------
    path : path_like
    n_labels : int, optional
        L, which the file does not say; the largest id in it plus 1 by default.

    Returns
    -------
    TopK
    csr_matrix of float32, shape (n, L)
        The truth, as ones.

    Raises
    ------
    DataMissing
        Where there is no such file.
    DataError
        For other arrays, and where ``true_positives`` is not what ``labels`` says: then one of them belongs to other rows.
    """
    stored = npz_arrays(path)
    if not {"scores", "prediction_ids", "true_positives", "labels"} <= set(stored):
        expected = "scores, prediction_ids, true_positives and labels (calibration@k)"
        raise DataError(path, f"arrays {sorted(stored)}", expected)
    for name, kinds in {"prediction_ids": "iu", "scores": "iuf", "true_positives": "biuf", "labels": "iu"}.items():
        if stored[name].dtype.kind not in kinds:
            raise DataError(path, f"{name} of dtype {stored[name].dtype}", "numbers, ids and labels whole ones")
    ids, scores = stored["prediction_ids"], stored["scores"]
    marked, pairs = stored["true_positives"].astype(bool), stored["labels"]
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise DataError(path, f"labels of shape {pairs.shape}", "one (row, label) pair a line, shape (pairs, 2)")
    if ids.ndim != 2 or scores.shape != ids.shape or marked.shape != ids.shape:
        found = f"prediction_ids {ids.shape}, scores {scores.shape}, true_positives {marked.shape}"
        raise DataError(path, found, "three equal shapes")
    pairs = pairs.astype(np.int64)
    largest = max(int(ids.max(initial=0)), int(pairs[:, 1].max(initial=0)))  # ids may be of a type without a sign
    if largest >= MAX_LABELS:
        raise DataError(path, f"label {largest}", f"labels below {MAX_LABELS:,}")
    n_labels = max(largest + 1, 1) if n_labels is None else whole_number("n_labels", n_labels, 1)
    if len(pairs) and (pairs.min() < 0 or pairs[:, 0].max() >= len(ids) or pairs[:, 1].max() >= n_labels):
        raise DataError(path, "a pair outside the matrix in labels", f"rows below {len(ids)}, labels below {n_labels}")
    ones = np.ones(len(pairs), np.float32)
    truth = as_truth(sparse.coo_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(len(ids), n_labels)))
    top = _from_ids(path, ids, scores, n_labels)  # before anything walks along ids
    wrong = truth.hits(np.ascontiguousarray(ids, np.int32)) != marked
    if wrong.any():
        row, place = np.argwhere(wrong)[0]
        found = f"true_positives[{row}, {place}] = {bool(marked[row, place])} for label {ids[row, place]}"
        do = "The two arrays belong to different rows or an older export"
        raise DataError(path, found, "what labels says of that pair", do=do)
    return top, truth.to_csr()


def _named(label, named: dict[str, int]) -> int:
    """A label's id, given so or by its name."""
    if not isinstance(label, str):
        return whole_number("a label", label)
    name = label.removeprefix("__label__")
    if name not in named:
        raise ValueError(f"{label!r} is none of the label names")
    return named[name]


def check_pair(truth: Truth, top: TopK) -> None:
    """Refuse truth and predictions that cannot belong together.

    Parameters
    ----------
    truth : Truth
    top : TopK

    Raises
    ------
    ArgumentError
        For what is no TopK, another number of rows, another number of labels.
    """
    if not isinstance(top, TopK):
        do = "make one: TopK.from_scores(scores, k), from_ids, from_pairs"
        raise ArgumentError("top", "must be a TopK", type(top).__name__, do)
    if truth.n_rows != len(top):
        rule = f"must have a row for each of the {truth.n_rows} rows of Y"
        raise ArgumentError("top", rule, f"{len(top)} rows", "compare the splits")
    if truth.n_labels != top.n_labels:
        raise ArgumentError("top", f"must be over the {truth.n_labels} labels of Y", f"{top.n_labels} labels")
    if truth.names is not None and top.names is not None:
        truth.names.refuse_other_order("top", "Y", top.names)


ROUNDING = 1e-4
"""So little above 1 a probability may be printed, as fastText prints 1.00001."""


def without_rounding(top: TopK, whose: str) -> TopK:
    """Probabilities that were printed a little above 1 (:data:`ROUNDING`) as 1, in the order that they had, and a DataWarning;
    predictions with other scores above 1 as they are."""
    over = top.scores > 1
    if not over.any() or top.scores.max() > 1 + ROUNDING:
        return top
    said = (
        f"{whose}: {int(over.sum()):,} scores up to {top.scores.max():.6g}, as fastText prints them, were taken for 1"
    )
    warnings.warn(said, DataWarning, stacklevel=4)
    return TopK(top.ids, np.minimum(top.scores, np.float32(1)), top.n_labels, top.names, top.outside)


def empty_places(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """ids and scores, (n, k), of predictions whose places are all absent still."""
    return np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32)


def as_float(values: np.ndarray) -> np.ndarray:
    """float32 and float64 as they are; bool and 8- and 16-bit numbers are exact in float32, others go to float64."""
    if values.dtype in (np.float32, np.float64):
        return values
    return values.astype(np.float32 if values.dtype.itemsize <= 2 else np.float64)


def _raise_first(faults: list[tuple[int, int]], where: Callable[[int], tuple[int, int]]) -> None:
    """The error of the first fault that kernels found; ``where`` gives row and label of its place."""
    for fault, place in faults:
        if fault:
            raise _score_fault(fault, *where(place))


def _held(ids: np.ndarray, best: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The ids, absent where float32 holds minus infinity for a score of float64: that is not predicted."""
    if dtype == np.float64:
        ids[best == -np.inf] = -1
    return ids


def _score_fault(fault: int, row: int, label: int) -> ArgumentError:
    if fault == kernel.NAN:
        got, do = f"NaN at row {row}, label {label}", "use minus infinity for 'not predicted'"
        return ArgumentError("scores", "must not be NaN", got, do)
    got, do = f"label {label} twice in row {row}", "call sum_duplicates() on a copy if the scores are to be added"
    return ArgumentError("scores", "must not store a label twice in a row", got, do)


def _pairs(exclude, shape) -> tuple[np.ndarray, np.ndarray]:
    rows, labels = (np.asarray(part, np.int64) for part in exclude)
    if rows.shape != labels.shape or rows.ndim != 1:
        rule = "must be two equally long lists: rows and labels"
        raise ArgumentError("exclude", rule, f"{rows.shape}, {labels.shape}")
    if rows.size and (rows.min() < 0 or rows.max() >= shape[0] or labels.min() < 0 or labels.max() >= shape[1]):
        rule = f"must lie within {shape[0]} rows and {shape[1]} labels"
        got = f"rows up to {rows.max()}, labels up to {labels.max()}"
        raise ArgumentError("exclude", rule, got, "is it the filter file of this split?")
    return rows, labels


def _thresholds(threshold, top: TopK) -> np.ndarray:
    """float32, a single one or one a label."""
    given = np.asarray(threshold)
    if given.dtype.kind not in "biuf" or given.shape not in ((), (top.n_labels,)):
        rule = f"must be a number, or one for each of the {top.n_labels} labels"
        got = f"an array of shape {given.shape}" if given.dtype.kind in "biuf" else repr(threshold)
        raise ArgumentError("threshold", rule, got)
    each = np.atleast_1d(given).astype(np.float64)
    if np.isnan(each).any():
        raise ArgumentError("threshold", "must not be NaN", f"NaN for label {np.argmax(np.isnan(each))}")
    if given.shape == () and np.nextafter(np.float32(1), np.float32(2)) < each[0] < np.inf:
        scores = top.scores[top.ids >= 0]
        if scores.size and scores.min() >= 0 and scores.max() <= 1:
            do = "a percentage is divided by 100; np.inf keeps nothing"
            raise ArgumentError("threshold", "must be at most 1 where all scores are from 0 to 1", threshold, do)
    with np.errstate(over="ignore"):  # as everywhere, what float32 cannot hold is infinite
        return each.astype(np.float32)


def _packed(scores: np.ndarray) -> np.ndarray:
    """Each score's distance from the one before it in its row, in float32's own order, as four planes of bytes."""
    bits = np.ascontiguousarray(scores).view(np.int32)
    ordered = (bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))).view(np.uint32)  # rises where the scores rise
    steps = ordered.copy()
    steps[:, 1:] = ordered[:, :-1] - ordered[:, 1:]  # modulo 2**32
    return np.ascontiguousarray(np.moveaxis(steps[..., None].astype("<u4").view(np.uint8), 2, 0))


def _unpacked(path: Path, stored: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a file of :meth:`TopK.save`, its scores put together again."""
    planes = stored["steps"]
    if planes.dtype != np.uint8 or planes.shape != (4, *stored["ids"].shape) or planes.ndim != 3:
        expected = f"bytes (4, {', '.join(map(str, stored['ids'].shape))})"
        raise DataError(
            path, f"steps of shape {planes.shape}, {planes.dtype}", expected, do="Save the predictions again"
        )
    steps = np.ascontiguousarray(np.moveaxis(planes, 0, 2)).view("<u4")[..., 0].astype(np.uint32)
    ordered = steps.copy()
    ordered[:, 1:] = steps[:, :1] - np.cumsum(steps[:, 1:], axis=1, dtype=np.uint32)
    bits = ordered.view(np.int32)
    return stored | {"scores": (bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))).view(np.float32)}


def _npz_name(path: str | os.PathLike) -> Path:
    path = Path(path)
    if path.suffix != ".npz":
        raise ArgumentError("path", "must end in .npz", path.name)
    return path
