"""The one door: a truth, predictions for its rows and what goes with them, from whatever files they are in, each read once.

What names labels and rows in one file names them in all. The rows are the truth's: where it calls them by names, predictions
are held to these. What is left out, and what was made up, is said (:attr:`Inputs.lines`), because a number without it means
something else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from xcrepro.core.data.lines import shown
from xcrepro.core.data.names import LabelNames, composed, difference
from xcrepro.core.data.splits import read_filter
from xcrepro.core.errors import ArgumentError, DataMissing
from xcrepro.core.predictions import without_rounding
from xcrepro.tools import formats
from xcrepro.tools.formats import annif, answers
from xcrepro.tools.formats.entries import Entries
from xcrepro.tools.formats.index import Index

if TYPE_CHECKING:
    from xcrepro.core.data.dataset import Dataset
    from xcrepro.core.predictions import TopK

TRUTH, TRAIN = object(), object()
COMMONEST = 10
"""Labels outside the vocabulary that a line names."""


@dataclass
class Inputs:
    """A truth, predictions of some models for its rows, and what goes with them.

    ``kept`` are the rows of the truth's file that are here, None for all; ``row_ids`` is empty where rows are numbers.
    ``lines`` say what was left out, or made up.
    """

    truth: sparse.csr_matrix
    tops: dict[str, TopK]
    train: sparse.csr_matrix | None = None
    exclude: tuple[np.ndarray, np.ndarray] | None = None
    label_names: LabelNames | None = None
    row_ids: tuple[str, ...] = ()
    dataset: Dataset | None = None
    kept: np.ndarray | None = None
    lines: list[str] = field(default_factory=list)


def dataset_of(truth: str | os.PathLike, truth_format: str | None = None, split=None, points=None) -> Dataset | None:
    """The dataset that a name or a folder is; None for a file of a truth, and for Annif's folder."""
    from xcrepro.core.data import registry
    from xcrepro.core.data.load import load

    path = Path(truth).expanduser()
    if path.is_dir() and truth_format is None and not annif.sniff_folder(path):
        return load(path.resolve().name, path, split=split or 0, points=points)
    if path.exists() or truth_format is not None:
        for name, value in (("split", split), ("points", points)):
            if value is not None:
                raise ArgumentError(name, "goes with a dataset's name as truth", value)
        return None
    if not registry.is_name(str(truth)) and (path.suffix or len(path.parts) > 1):
        raise DataMissing(f"{path}: no such file; give a file of labels, a dataset's folder, or its name")
    return load(str(truth), split=split or 0, points=points)


def read(
    truth,
    predictions: Mapping[str, str | os.PathLike] | Sequence[str | os.PathLike],
    *,
    k: int | None = None,
    train_truth: str | os.PathLike | None = None,
    exclude: str | os.PathLike | tuple[np.ndarray, np.ndarray] | None = None,
    truth_format: str | None = None,
    predictions_format: str | None = None,
    label_names: LabelNames | Sequence[str] | None = None,
    row_ids: Sequence[str] | None = None,
    n_labels: int | None = None,
    unknown: str = "refuse",
    match: str | None = None,
    labels_are: str | None = None,
    judged_only: bool = False,
    by_rank: bool = False,
    one_based: bool = False,
) -> Inputs:
    """Read a truth and predictions.

    Parameters
    ----------
    truth : path_like, sparse matrix, Dataset or None
        None where there is no truth: rows and labels are then those of the first predictions.
    predictions : mapping of str to path_like, or sequence of path_like
        Model -> its file; or files, and folders with a file a model.
    k : int, optional
        Places to keep.
    train_truth : path_like, optional
    exclude : path_like, or tuple of (rows, labels), optional
        Pairs that may not be predicted, by the rows of the truth's file.
    truth_format, predictions_format : str, optional
        Names of :data:`xcrepro.formats.FORMATS`; None: by the content.
    label_names, row_ids, n_labels, unknown, match, labels_are, by_rank, one_based
        As for :class:`~xcrepro.tools.formats.index.Index`, whose ``settle`` says what labels are without a list of names.
        What only predictions have and no list of names, or a row has once more, is counted as a miss under labels that all
        rows share and that averages over labels leave out. Without a list, averages are over the labels of the truth and the
        training truth, or over ``n_labels``.
    judged_only : bool
        Leave out rows that have nothing in the truth: those that only predictions have, and those of a matrix, or named by
        ``row_ids``, without a relevant label.

    Returns
    -------
    Inputs

    Raises
    ------
    DataMissing, DataError
        For the files.
    ArgumentError
        For what does not go together.
    """
    files = predictions if isinstance(predictions, Mapping) else formats.model_files(*predictions)
    how: dict[str, Any] = {"unknown": unknown, "match": match, "labels_are": labels_are, "judged_only": judged_only}
    how |= {"by_rank": by_rank, "one_based": one_based}
    dataset = None if isinstance(truth, str | os.PathLike) or sparse.issparse(truth) else truth
    if dataset is not None and label_names is None and dataset.label_names:
        label_names = LabelNames(tuple(dataset.label_names), tuple(dataset.label_codes or ()))
    found = Inputs(sparse.csr_matrix((0, 1)), {}, dataset=dataset)
    index = Index(n_labels, label_names, row_ids, learn_rows=True, learn_labels=True, **how)
    first: Any
    rows: Any
    held: dict[Any, tuple[Any, Any]] = {}  # TRUTH, TRAIN or a model -> its file, and what it holds
    lines: list[str] = []
    others: set[str] = set()  # models of another number of labels, which is refused where they are compared

    def keep(key, file, content, by: Index = index) -> Any:
        """What a file holds; looked up and said as soon as it is known what its labels are."""
        if isinstance(content, Entries) and not index.waits:
            content.index = by
            content = content.truth() if key in (TRUTH, TRAIN) else without_rounding(content.top(k), os.fspath(file))
        held[key] = file, content
        if not isinstance(content, Entries):
            if index.n_labels is None:
                index.n_labels = content.shape[1] if key in (TRUTH, TRAIN) else content.n_labels
            _say_of_unknown(lines, by, *_places(content, key))
            if key not in (TRUTH, TRAIN) and content.n_labels != index.width(0):
                others.add(key)
            if key is TRAIN and content.shape[1] != index.width(0):
                rule = f"must have the {index.width(0)} labels of the truth"
                raise ArgumentError("train_truth", rule, content.shape[1])
        return content

    if truth is None:
        if judged_only:
            raise ArgumentError("judged_only", "goes with a truth", True)
        first, file = next(iter(files.items()))
        if isinstance(exclude, str | os.PathLike):
            exclude = read_filter(exclude)  # the file of scores says how many rows and labels there are
        rows = formats.read_predictions(file, predictions_format, k, exclude=exclude, index=index)
    elif isinstance(truth, str | os.PathLike):
        first, file, rows = TRUTH, truth, formats.read_truth(truth, truth_format, index=index)
    else:
        first, file, rows = TRUTH, "truth", sparse.csr_matrix(truth if dataset is None else dataset.test.Y)
    named = set(index.named)
    n_rows = rows.n_rows if isinstance(rows, Entries) else len(rows) if truth is None else rows.shape[0]
    index.stop_learning(n_rows)
    by_id = exclude if exclude is None or isinstance(exclude, str | os.PathLike) else "exclude"
    index.settle([(file, rows)], by_id)
    keep(first, file, rows)
    if isinstance(exclude, str | os.PathLike):
        exclude = read_filter(exclude, shape=(n_rows, index.width(0)))
    if dataset is not None and train_truth is not None:
        raise ArgumentError("train_truth", "goes with a truth that is no dataset", "both", "a dataset has its own")
    if train_truth is not None:
        own = index.for_other_rows()
        keep(TRAIN, train_truth, formats.read_truth(train_truth, index=own), own)
    n_known, known = len(held), index.width(0)
    for model, file in files.items():
        if model not in held:
            keep(model, file, formats.read_predictions(file, predictions_format, k, exclude=exclude, index=index))
    if index.waits:
        index.settle([*held.values()], n_known=len(held) if truth is None else n_known)
        known = index.width(0)
        for key, (file, content) in held.items():
            keep(key, file, content)
    found.tops = {model: held[model][1] for model in files}
    Y = held[TRUTH][1] if truth is not None else sparse.csr_matrix((n_rows, index.width(0)))
    if dataset is not None or TRAIN in held:
        found.train = held[TRAIN][1] if dataset is None else sparse.csr_matrix(dataset.train.Y)
    apart = {model: found.tops.pop(model) for model in others}
    asked = {TRUTH: truth_format, TRAIN: None}
    took = {
        os.path.basename(os.path.normpath(file)): asked.get(key, predictions_format) or formats.detect(file).name
        for key, (file, _) in held.items()
        if os.path.exists(file)
    }
    lines += _said_of_files(files)
    if index.done:
        lines.append(answers.said(index))
    if index.match and index.label_names and (alike := index.label_names.same_by(index.match)):
        more = f" (and {len(alike) - 1:,} more such groups)" * (len(alike) > 1)
        which = f"{' and '.join(map(shown, alike[0][:3]))}{more}"
        lines.append(f"match: by {index.match!r} {which} are one name, so each is read as it is written only")
    if took:
        lines.insert(0, f"read: {', '.join(f'{file} as {taken}' for file, taken in took.items())}")
    found = _finished(found, Y, index, exclude, named, None if truth is None else known, lines)
    found.tops = {model: (apart if model in apart else found.tops)[model] for model in files}
    if index.matched and truth is not None:
        same: dict[str, Any] = {"k": k, "train_truth": train_truth, "exclude": exclude, "row_ids": row_ids}
        same |= {"truth_format": truth_format, "predictions_format": predictions_format}
        same |= {"label_names": label_names, "n_labels": n_labels}
        how |= {"match": None, "unknown": "count" if unknown == "refuse" else unknown, "by_rank": by_rank}
        found.lines.append(_said_of_matches(index, found, read(truth, files, **same, **how)))
    return found


def _said_of_files(files: Mapping[str, str | os.PathLike]) -> list[str]:
    """Lines on models that are one file: links, and files with the same bytes."""
    paths = [Path(file) for file in files.values()]
    lines = [f"link: {path.name} is one, to {os.readlink(path)}" for path in paths if path.is_symlink()]
    sizes = [path.stat().st_size if path.is_file() else -1 for path in paths]
    same: dict[str, list[str]] = {}
    for path, size in zip(paths, sizes, strict=True):
        if size >= 0 and sizes.count(size) > 1:
            with path.open("rb") as stream:
                same.setdefault(hashlib.file_digest(stream, "sha256").hexdigest(), []).append(path.name)
    return lines + [f"same file: {' and '.join(names)} have the same bytes" for names in same.values() if names[1:]]


def _finished(found: Inputs, Y, index: Index, exclude, named, known: int | None, lines: list[str]) -> Inputs:
    """The inputs with as many labels everywhere, without rows that are to be left out, and with their lines."""
    from xcrepro.core.predictions import TopK

    pooled = 0
    if known is not None and index.more:
        found.tops = {model: _pooled(top, known) for model, top in found.tops.items()}
        pooled = max((int(top.ids.max(initial=-1)) + 1 for top in found.tops.values()), default=0) - known
        index.more = {name: label for name, label in index.more.items() if label < known}
        index.more |= {f"no label {i + 1}": known + i for i in range(max(pooled, 0))}
    width = max(index.width(0), Y.shape[1]) if index.more else Y.shape[1]
    found.truth, found.train = _widened(Y, width), _widened(found.train, width)
    outside = index.outside + max(pooled, 0)
    if index.more or outside:
        found.tops = {model: TopK(top.ids, top.scores, width, top.names, outside) for model, top in found.tops.items()}
    found.label_names = index.all_names()
    found.row_ids = tuple(index.row_text(row) for row in range(Y.shape[0])) if index.has_row_ids else ()
    found.exclude = exclude
    found.lines = [*_said_of_labels(index, outside), *lines]
    if index.judged_only:
        judged = np.diff(found.truth.indptr) > 0
        if named:
            judged = np.zeros(Y.shape[0], bool)
            judged[list(named)] = True
        n, whole = int(judged.sum()), judged.size + len(index.unjudged)
        found.lines.append(f"judged rows only: {n:,} of {whole:,}; {whole - n:,} left out")
        if not judged.all():
            _keep(found, judged)
    return found


def _pooled(top: TopK, known: int) -> TopK:
    """What is none of the known labels, by its order in the row: labels that all rows share."""
    from xcrepro.core.predictions import TopK

    none = top.ids >= known
    ids = np.where(none, known - 1 + none.cumsum(axis=1), top.ids).astype(np.int32)
    return TopK(ids, top.scores, top.n_labels)


def _widened(matrix, width: int):
    if matrix is None or matrix.shape[1] == width:
        return matrix
    return sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))


def _keep(found: Inputs, rows: np.ndarray) -> None:
    """Take some rows alone; what does not fit the truth's rows stays as it is, for the diagnosis to say so."""
    found.truth, found.kept = found.truth[rows], rows
    found.tops = {model: top.rows(rows) if len(top) == rows.size else top for model, top in found.tops.items()}
    found.row_ids = tuple(text for text, kept in zip(found.row_ids, rows, strict=False) if kept)
    if found.exclude is not None:
        of, labels = (np.asarray(part) for part in found.exclude)
        inside = rows[of]
        found.exclude = (np.cumsum(rows) - 1)[of][inside], labels[inside]


def _said_of_labels(index: Index, outside: int) -> list[str]:
    """Lines on what labels were taken for, and what averages over labels are over."""
    lines = []
    if index.n_learnt and index.label_names is not None and index.of_truth is not None:
        names = index.label_names.names[: index.n_learnt]
        lines.append(
            f"labels: no list of names was given; the {len(names):,} of these files were taken as they come, as names"
            + ", whole numbers too; --labels-are ids (labels_are=) takes these as ids" * (index.numbers_were != "")
        )
        truths = index.of_truth
        known = {composed(text) for text in truths.names}
        if near := {name: text for name in names if name not in known and (text := truths.near(name))}:
            name, text = next(iter(near.items()))
            differs = f" ({found})" if (found := difference(name, text)) else ""
            lines.append(
                f"labels: {len(near):,} of the predictions differ from one of the truth by capitals and blanks alone and count "
                f"as others, as {shown(name)} and {shown(text)}{differs}: write them alike, or give --match case (match=)"
            )
    elif index.numbers_were:
        text = f"labels: whole numbers, taken as ids below {index.n_labels:,}"
        lines.append(f"{text}; --labels-are names (labels_are=) takes them as names")
    if outside:
        text = f"averages over labels are over {index.width(0) - outside:,}"
        lines.append(f"{text}; {outside:,} that only predictions name are none of these")
    return lines


def _places(content, key) -> tuple[int, str]:
    """How many pairs a file holds, and what they are."""
    if key in (TRUTH, TRAIN):
        return content.nnz, "relevant pairs" + " of the train truth" * (key is TRAIN)
    return int((content.ids >= 0).sum()), f"predictions{' of ' * bool(key)}{key}"


def _say_of_unknown(lines: list[str], index: Index, held: int, what: str) -> None:
    """Lines on what a file of ``held`` pairs had outside the vocabulary, and a second time in a row."""
    left, again = index.taken()
    drop = index.unknown == "drop"
    became = "left out" if drop else "counted as misses"

    def share(n: int) -> str:
        whole = n + held if drop else held
        return f"{n:,} of {whole:,} {what} ({100 * n / max(whole, 1):.1f} %)"

    if left:
        names = sorted(left, key=lambda name: (-left[name], name))
        more = f" and {len(names) - COMMONEST:,} more" if len(names) > COMMONEST else ""
        first = ", ".join(name if name.isprintable() else shown(name) for name in names[:COMMONEST])
        how = became if drop or what.startswith("pred") else "counted as labels of their own"
        lines.append(f"out of vocabulary: {share(sum(left.values()))}, {len(names):,} labels, {how}: {first}{more}")
    if again:
        lines.append(f"named again: {share(again)} are a label that their row has already, {became}")


def _said_of_matches(index: Index, found: Inputs, without: Inputs) -> str:
    """Which names were taken for others, and what P@1 is with and without that."""
    from xcrepro.core.truth import as_truth

    def first(one: Inputs, model: str) -> str:
        return f"{100 * float(as_truth(one.truth).hits(one.tops[model].ids[:, :1]).mean()):.1f} %"

    names = sorted(index.matched, key=lambda pair: (-index.matched[pair], pair))
    shown_names = ", ".join(f"{shown(text)} for {shown(name)}" for text, name in names[:COMMONEST])
    tops = found.tops
    of = (f"{model or 'predictions'} {first(found, model)} (without it {first(without, model)})" for model in tops)
    return (
        f"matched by {index.match}: {sum(index.matched.values()):,} labels of truth and predictions, spelt in {len(names):,} "
        f"other ways; P@1 of {', of '.join(of)}. The commonest: {shown_names}{', ...' if len(names) > COMMONEST else ''}"
    )
