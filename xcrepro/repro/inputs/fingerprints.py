"""Which truth is this? A digest of its content, and the digests of the splits that are known.

Two matrices of the same relevant labels in the same order have the same fingerprint, whatever their dtype and storage. The
known ones stand in ``catalogue/fingerprints.csv``; ``xcrepro fingerprint --help`` says how a line comes into it.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_matrix

from xcrepro.core.arguments import one_of
from xcrepro.core.data import registry
from xcrepro.core.data.dataset import Dataset
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.kernels import random
from xcrepro.core.paths import atomic_path
from xcrepro.core.truth import Truth, as_truth
from xcrepro.models.twin import Twin, twin

TABLE = Path(registry.__file__).parent / "catalogue" / "fingerprints.csv"
PARTS = ("train", "test", "all")
TWINS = Path(registry.__file__).parent / "catalogue" / "twins.csv"
"""Fingerprints of twins; ``python -m xcrepro.repro.inputs.fingerprints`` writes them anew, in some minutes."""
SCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
"""Scales of the twins on record."""
MOST_POINTS = 20_000
"""Train points of a twin on record, at most."""


@dataclass(frozen=True)
class Known:
    """One truth on record: a line of the table.

    ``part`` is ``"train"``, ``"test"`` or ``"all"`` (both together, nobody knows in which order), ``split`` its number from
    0, empty where nobody knows which. ``fingerprint``, ``rows`` and ``counts`` are digests: of the content; of the rows in
    any order; of the labels' and the rows' numbers of pairs, in any order.
    """

    dataset: str
    part: str
    split: str
    points: int
    labels: int
    pairs: int
    fingerprint: str
    rows: str
    counts: str


@dataclass(frozen=True)
class Recognised:
    """What a truth is.

    Attributes
    ----------
    name : str
        The dataset's key, a twin's name, or empty.
    part : str
        ``"train"``, ``"test"``, ``"all"``, ``"test, complete"`` or ``"train, complete"`` (of a twin), or empty.
    match : {"exact", "other order", "other labels", "same shape", "none"}
        The same content; the same rows in another order; the same numbers of points a label and of labels a point, so
        probably the same with labels numbered anew; another content of the same shape; nothing.
    synthetic : bool
        Is it a twin's?
    text : str
        All this in words.
    fingerprint : str
    """

    name: str
    part: str
    match: str
    synthetic: bool
    text: str
    fingerprint: str

    @property
    def comparable(self) -> bool:
        """May numbers on it stand beside those that are printed for the dataset? Only on a real test split, as it is known."""
        return self.match == "exact" and self.part == "test" and not self.synthetic


def fingerprint(Y) -> str:
    """The name of a truth by its content.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L), or Truth

    Returns
    -------
    str
        32 hexadecimal digits, from SHA-256 over the shape and each row's relevant labels. Another order of rows or labels gives
        another one; dtype, storage, stored zeros and the order within a row do not matter.

    Examples
    --------
    >>> fingerprint(np.array([[1, 0, 2], [0, 1, 0]]))
    'ca0237a459e3d68cec9d0190ec354e9a'
    >>> fingerprint(np.array([[1, 0, 1], [0, 1, 0]])) == fingerprint(np.array([[True, False, True], [False, True, False]]))
    True
    """
    truth = as_truth(Y)
    shape = np.array([truth.n_rows, truth.n_labels])
    return _digest(shape, truth.indptr, truth.indices)


def known(dataset: str, part: str, Y, split: str = "") -> Known:
    """The line of the table for a truth; ``part`` is train, test or all, ``split`` its number where it is known."""
    truth = as_truth(Y)
    about = registry.get(dataset).name, one_of("part", part, PARTS), split
    sizes = truth.n_rows, truth.n_labels, int(truth.indices.size)
    return Known(*about, *sizes, fingerprint(truth), _of_rows(truth), _of_counts(truth))


def table() -> tuple[Known, ...]:
    """The truths on record."""
    stamp = TABLE.stat().st_mtime_ns if TABLE.is_file() else 0
    return _table(TABLE, stamp)


def write(lines: Iterable[Known]) -> Path:
    """Put truths on record; a line of the same dataset, part and split, or of the same content, gives way."""
    lines = list(lines)
    where, contents = {(k.dataset, k.part, k.split) for k in lines}, {k.fingerprint for k in lines}
    kept = [k for k in table() if (k.dataset, k.part, k.split) not in where and k.fingerprint not in contents]
    _write(TABLE, Known, sorted(kept + lines, key=_place))
    return TABLE


def _write(path: Path, kind: type, lines: Iterable) -> None:
    with atomic_path(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(kind)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, lines))


def _place(line: Known) -> tuple:
    """Splits by number, then those that have a name."""
    numbered = line.split.isdigit() or not line.split
    return line.dataset, not numbered, int(line.split or 0) if numbered else 0, line.split, line.part


def recognise(Y, dataset: Dataset | None = None, *, twins: bool = True) -> Recognised:
    """Which dataset's split is it?

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L), or Truth
    dataset : Dataset, optional
        A loaded dataset or a twin: its own splits are compared first.
    twins : bool
        Is it that of a twin, too? The small ones of seed 0 are on record.

    Examples
    --------
    >>> import xcrepro as xc
    >>> ds = xc.twin("bibtex", scale=0.1)
    >>> recognise(ds.test.Y, ds).text
    'the test split of bibtex@0.1-seed0, a synthetic twin of Bibtex: no printed result is about it'
    >>> recognise(ds.test.Y[::-1]).text
    'no known split: 252 points and 157 labels are the shape of no split in the catalogue'
    """
    truth = as_truth(Y)
    mark = fingerprint(truth)
    found = _own(truth, mark, dataset) if dataset is not None else None
    found = found or _on_record(truth, mark)
    if found is None and twins and (line := known_twins().get(mark)):
        found = _twin(line.twin, registry.get(line.dataset), line.part, mark)
    return found or _by_shape(truth, mark)


def _own(truth: Truth, mark: str, ds: Dataset) -> Recognised | None:
    if not isinstance(ds, Dataset):
        raise ArgumentError("dataset", "must be a Dataset", type(ds).__name__, "xc.load and xc.twin give one")
    for part, Y in _parts(ds).items():
        if Y.shape == (truth.n_rows, truth.n_labels) and fingerprint(Y) == mark:
            if isinstance(ds, Twin):
                return _twin(ds.name, cast("registry.Entry", ds.entry), part, mark)
            return _real(ds, part, mark)
    return None


def _parts(ds: Dataset) -> dict[str, csr_matrix]:
    parts = {"test": ds.test.Y, "train": ds.train.Y}
    if isinstance(ds, Twin):
        parts |= {"test, complete": ds.test.Y_complete, "train, complete": ds.train.Y_complete}
    return parts


def _twin(name: str, entry: registry.Entry, split_name: str, mark: str) -> Recognised:
    text = f"{_called(split_name)} of {name}, a synthetic twin of {entry.printed_name}: no printed result is about it"
    return Recognised(name, split_name, "exact", True, text, mark)


def _real(ds: Dataset, part: str, mark: str) -> Recognised:
    """The split of a dataset that was loaded: on record, or as its files have it."""
    for line in table():
        if line.fingerprint == mark:
            return Recognised(line.dataset, line.part, "exact", False, _name(line), mark)
    name = ds.name.partition("@")[0]
    aside = f": {'; '.join(ds.notes)}" if ds.notes else ", whose content is not on record"
    return Recognised(name, part, "same shape", False, f"{_called(part)} of {ds.title} as loaded{aside}", mark)


def _on_record(truth: Truth, mark: str) -> Recognised | None:
    same = [k for k in table() if (k.points, k.labels, k.pairs) == (truth.n_rows, truth.n_labels, truth.indices.size)]
    for digest, kind, match, words in (
        (lambda _: mark, "fingerprint", "exact", "{}"),
        (_of_rows, "rows", "other order", "{}, its rows in another order"),
        (
            *(_of_counts, "counts", "other labels"),
            "as many points a label and labels a point as {}: probably that, with labels numbered anew",
        ),
    ):
        own = digest(truth) if same else ""
        for line in same:
            if getattr(line, kind) == own:
                return Recognised(line.dataset, line.part, match, False, words.format(_name(line)), mark)
    return None


@dataclass(frozen=True)
class KnownTwin:
    """One truth of a twin on record: a line of the table of twins."""

    dataset: str
    twin: str
    part: str
    fingerprint: str


def twins(most_points: int = MOST_POINTS) -> Iterator[KnownTwin]:
    """Draw the twins that belong on record, or the smaller ones of these."""
    for entry in registry.package().values():
        for scale in SCALES if entry.n_train and entry.n_test and entry.n_labels else ():
            if (entry.n_train or 0) * scale > most_points:
                continue
            try:
                ds = twin(entry.name, scale)
            except ArgumentError:  # too little is known of the dataset
                continue
            for part, Y in _parts(ds).items():
                yield KnownTwin(entry.name, ds.name, part, fingerprint(Y))


@functools.cache
def known_twins() -> dict[str, KnownTwin]:
    """The twins on record by fingerprint; of two with the same content the first."""
    with TWINS.open(newline="", encoding="utf-8") as file:
        return {line["fingerprint"]: KnownTwin(**line) for line in reversed([*csv.DictReader(file)])}


def _by_shape(truth: Truth, mark: str) -> Recognised:
    shape = truth.n_rows, truth.n_labels
    said = f"no known split: {shape[0]:,} points and {shape[1]:,} labels are the shape of"
    for entry in registry.package().values():
        for row, part in itertools.product(entry.published.values(), ("test", "train")):
            if shape == (row.get(f"n_{part}"), row.get("n_labels")):
                known = sum(line.dataset == entry.name and line.part == part for line in table())
                words = {0: "its content is not on record", 1: "it is not its one known content"}
                aside = words.get(known, f"it is none of its {known} known contents")
                text = f"{said} {_called(part)} of {entry.printed_name}, but {aside}"
                return Recognised(entry.name, part, "same shape", False, text, mark)
    return Recognised("", "", "none", False, f"{said} no split in the catalogue", mark)


def _called(part: str) -> str:
    name, _, complete = part.partition(", ")
    return f"the {complete + ' truth of the ' if complete else ''}{name} split"


def _name(line: Known) -> str:
    title = registry.get(line.dataset).printed_name
    if line.part == "all":
        return f"{title} (real data), all points"
    number = f" {line.split}" if line.split and registry.get(line.dataset).splits else ""
    return f"{title} (real data), {line.part} split{number}"


@functools.cache
def _table(path: Path, stamp: int) -> tuple[Known, ...]:
    if not stamp:
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        names = [f.name for f in fields(Known)]
        if reader.fieldnames != names:
            raise DataError(path, f"columns {reader.fieldnames}", ", ".join(names), line=1)
        numbers = ("points", "labels", "pairs")
        rows: Iterator[dict[str, Any]] = ({k: int(v) if k in numbers else v for k, v in row.items()} for row in reader)
        return tuple(Known(**row) for row in rows)


def _digest(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, "<i8").data)
    return digest.hexdigest()[:32]


def _of_rows(truth: Truth) -> str:
    """Of the rows in any order: each row is the sum of its labels' mixed numbers, modulo 2**64; the sums are sorted."""
    sums = np.concatenate([[np.uint64(0)], np.cumsum(_mixed(truth.indices.astype(np.uint64)), dtype=np.uint64)])
    ends = sums[truth.indptr]
    rows = np.sort(_mixed(ends[1:] - ends[:-1]))
    return _digest(np.array([truth.n_rows, truth.n_labels]), rows.view(np.int64))


def _of_counts(truth: Truth) -> str:
    return _digest(np.sort(truth.label_counts()), np.sort(truth.sizes))


def _mixed(numbers: np.ndarray) -> np.ndarray:
    out = np.empty_like(numbers)
    random.mixes(numbers, out)
    return out


def of_dataset(ds: Dataset, split: str = "") -> Sequence[Known]:
    """The lines of the table for both splits of a dataset that was loaded."""
    return [known(ds.name, part, Y, split) for part, Y in (("train", ds.train.Y), ("test", ds.test.Y))]


if __name__ == "__main__":
    _write(TWINS, KnownTwin, twins())
