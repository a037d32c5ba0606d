"""The open datasets of the repository: library records (``data/tib``), book titles (``gutenberg``), questions (``cooking``).

:func:`xcrepro.load` reads them by name. What each is made from and how it may be used is in the README of its folder, whose
files ``python -m maintenance.open_data NAME SOURCE... [--out FOLDER]`` builds again.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack

from xcrepro.core.arguments import one_of, whole_number
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.data.lines import text_lines
from xcrepro.core.data.read import read_xc
from xcrepro.core.data.registry import Entry
from xcrepro.core.data.sources import open_source
from xcrepro.core.data.tfidf import rarity, weighed
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.paths import committed

SUMS = "SHA256SUMS"
SHARES = {"train": 15, "validation": 1, "test": 4}
"""Of every 20 records that follow each other: so the first n records have nearly these shares too, in every random split."""
N_SPLITS, SEED = 10, 2026
LETTERS = {"train": "r", "validation": "v", "test": "t"}
NOWHERE = "-"  # a record that a split leaves out
BLOCK = sum(SHARES.values())
# Plain words: two letters or more of the Latin-1 alphabet, in lower case.
_WORD_OR_END = re.compile(r"[a-zß-öø-ÿ]{2,}|\n")


@dataclass(frozen=True)
class Home:
    """Where an open dataset lies, and how its records are stored.

    ``files`` lie there as ``.gz``, and :data:`SUMS` has the SHA-256 of what each unpacks to. ``texts`` are the fields of a
    record whose texts are stored in full; where there are none, counts of words are. ``splits`` are those that have a name.
    """

    folder: str
    what: str
    texts: tuple[str, ...] = ()
    splits: dict[str, int] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        own = ("records.txt",) if self.texts else ("tib.txt", "words.txt")
        return (*own, "label_names.txt", "splits.txt")


HOMES = {
    "tib": Home("data/tib", "records"),
    "gutenberg": Home("data/gutenberg", "titles", ("title", "author"), {"time": N_SPLITS}),
    "cooking": Home("data/cooking", "questions", ("title",), {"tutorial": 0}),
}
NAMED = tuple(name for home in HOMES.values() for name in home.splits)
"""Splits that have a name."""
MIN_RECORDS = {"tib": 3, "gutenberg": 2, "cooking": 2}
"""A word counts if it is in so many records: of TIB all that there are, of the others the training records."""


@dataclass(frozen=True)
class _Records:
    """What the files hold: truth with counts of words or texts, the labels' names and codes, each record's letters, words."""

    points: Split
    names: Sequence[str]
    codes: Sequence[str]
    letters: list[str]
    words: tuple[str, ...] = ()


def load(
    entry: Entry, A: float, B: float, split: int | str, points: int | None, fields: Sequence[str] | None
) -> Dataset:
    """What :func:`xcrepro.load` returns for an open dataset; it says what the arguments mean."""
    home = HOMES[entry.name]
    column = _column(entry, home, split)
    fields = _fields(entry, home, fields)
    files = _whole_files(home, committed(home.folder))
    found = _read_texts(home.texts, *files.values()) if home.texts else _read_counts(files)
    n = total = found.points.Y.shape[0]
    if points is not None:
        n = whole_number("points", points, BLOCK, total, f"it counts {home.what}, of all parts")
    which: slice | np.ndarray = slice(n)
    if "tutorial" in home.splits:
        # The records lie in random order, but for Cooking's, which lie as its tutorial splits them. The draw is not that of the
        # random splits: with the same numbers all of the sample would be train points of the first.
        which = np.sort(np.random.PCG64(SEED + 1).random_raw(total).argsort(kind="stable")[:n])
    letters = np.array([line[column] for line in np.array(found.letters)[which]])
    rows = {part: np.flatnonzero(letters == letter) for part, letter in LETTERS.items()}
    some = found.points.rows(which)
    kept = np.flatnonzero(np.bincount(some.Y.indices, minlength=some.Y.shape[1]))
    label_names = tuple(found.names[label] for label in kept.tolist())
    counts: Any = some.X
    words = found.words
    if home.texts:
        counts, all_words = _features(home, fields, some.texts)
        words = vocabulary(counts[rows["train"]], all_words, MIN_RECORDS[entry.name])
        counts = columns_of(counts, all_words, words)
    rare = rarity(counts[rows["train"]])
    some = replace(some, X=weighed(counts, rare), Y=some.Y[:, kept])
    parts = {part: some.rows(of) for part, of in rows.items()}
    notes: tuple[str, ...] = ()
    if n < total:
        entry = replace(entry, printed_name=f"{entry.printed_name}, {n:,} of {total:,} {home.what}")
    if left := (letters == NOWHERE).sum():
        notes += (f"{left:,} {home.what} are left out: later issues of series that the training records begin",)
    if fields and fields != home.texts[:1]:
        notes += (f"features are words of {' and '.join(fields)}",)
    return Dataset(
        name=entry.name,
        train=parts["train"],
        test=parts["test"],
        A=A,
        B=B,
        published=entry.published,
        entry=entry,
        notes=notes,
        label_names=label_names,
        validation=parts["validation"] if rows["validation"].size else None,
        label_features=weighed(columns_of(*counted(label_names), words), rare),
        words=words,
        label_codes=tuple(found.codes[label] for label in kept.tolist()) if found.codes else (),
    )


def _column(entry: Entry, home: Home, split: int | str) -> int:
    """The column of the letters that a split has."""
    if isinstance(split, str):
        if split not in home.splits:
            named = f" or {', '.join(map(repr, home.splits))}" if home.splits else ""
            raise ArgumentError(
                "split", f"must be from 0 to {(entry.splits or 1) - 1}{named} for {entry.printed_name}", repr(split)
            )
        return home.splits[split]
    return split


def _fields(entry: Entry, home: Home, fields: Sequence[str] | None) -> tuple[str, ...]:
    """The texts whose words are features: the first of a record by default."""
    if fields is None:
        return home.texts[:1]
    asked = tuple(re.findall(r"\w+", fields) if isinstance(fields, str) else fields)
    if not home.texts:
        raise ArgumentError(
            "fields", f"must be None for {entry.printed_name}, of which counts of words are stored", fields
        )
    for one in asked:
        one_of("fields", one, home.texts)
    if not asked or len({*asked}) < len(asked):
        raise ArgumentError("fields", f"must be some of {', '.join(home.texts)}, each once", fields)
    return asked


# ---------------------------------------------------------------- reading


def _read_counts(files: dict[Path, bytes]) -> _Records:
    """Counts of words, and a line for each label, word and record; the files' digests hold, so nothing else is looked for."""
    pairs, words, labels, letters = files
    counts, Y = read_xc(pairs)
    codes, names = zip(*(line.split("\t") for line in _lines(files[labels])), strict=True)
    codes = tuple(code.strip("<>") for code in codes)
    return _Records(Split(counts, Y), names, codes, _lines(files[letters]), tuple(_lines(files[words])))


@functools.lru_cache(maxsize=1)  # whoever reads one split often reads the next
def _read_texts(fields: tuple[str, ...], records: bytes, names: bytes, letters: bytes) -> _Records:
    """Lines of labels, number and texts, with tabs between them; the files' digests hold, so nothing else is looked for."""
    texts, each = "\t".join(_lines(records)).split("\t"), 2 + len(fields)
    labels, numbers, *values = (texts[column::each] for column in range(each))
    indptr = np.cumsum([0, *(text.count(",") + 1 for text in labels)])
    indices = np.array(",".join(labels).split(","), np.int32)
    label_names = _lines(names)
    Y = csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(indptr) - 1, len(label_names)))
    own = {name: np.array(each, object) for name, each in zip(fields, values, strict=True)}
    points = Split(None, Y, texts=own, numbers=np.array(numbers, np.int64))
    return _Records(points, label_names, (), _lines(letters))


def _lines(content: bytes) -> list[str]:
    """The lines of a file whose digest was compared."""
    return content.decode().removesuffix("\n").split("\n")


def _features(home: Home, fields: tuple[str, ...], texts: Mapping[str, np.ndarray]) -> tuple[csr_matrix, list[str]]:
    """Counts of the words of a record's fields; those of another field than the first are called ``author:dickens``."""
    counts, words = zip(*(counted(texts[name]) for name in fields), strict=True)
    begins = ["" if name == home.texts[0] else f"{name}:" for name in fields]
    return hstack(counts, "csr"), [begin + word for begin, own in zip(begins, words, strict=True) for word in own]


def counted(texts: Iterable[str]) -> tuple[csr_matrix, list[str]]:
    """How often each word is in each text, and the words, in the order in which they come."""
    texts = [text.replace("\n", " ") for text in texts]
    tokens = _WORD_OR_END.findall("\n".join(texts).lower())
    ids = {token: number for number, token in enumerate(dict.fromkeys(["\n", *tokens]))}
    column = np.fromiter(map(ids.__getitem__, tokens), np.int64, len(tokens))
    row, is_word = np.cumsum(column == 0), column > 0
    ones = np.ones(is_word.sum(), np.float32)
    return csr_matrix((ones, (row[is_word], column[is_word] - 1)), (len(texts), len(ids) - 1)), [*ids][1:]


def vocabulary(counts: csr_matrix, words: Sequence[str], least: int) -> tuple[str, ...]:
    """The words of so many records at least, the most frequent first: small ids for what comes often."""
    within = np.bincount(counts.indices, minlength=len(words))
    chosen = sorted((-n, word) for word, n in zip(words, within.tolist(), strict=True) if n >= least)
    return tuple(word for _, word in chosen)


def columns_of(counts: csr_matrix, words: Sequence[str], wanted: Sequence[str]) -> csr_matrix:
    """The counts of the wanted words, in their order."""
    ids = {word: column for column, word in enumerate(wanted)}
    new, pairs = np.array([ids.get(word, -1) for word in words], np.int64), counts.tocoo()
    column = new[pairs.col] if len(new) else pairs.col
    kept = column >= 0
    return csr_matrix((pairs.data[kept], (pairs.row[kept], column[kept])), (counts.shape[0], len(wanted)))


def _whole_files(home: Home, folder: Path) -> dict[Path, bytes]:
    """The files and what they unpack to, each as its digest says."""
    again = f"Put it back as it was committed, or install the wheel again; {home.folder}/README.md says how to build it"
    paths = {name: folder / f"{name}.gz" for name in home.files}
    if missing := [str(path) for path in (folder / SUMS, *paths.values()) if not path.is_file()]:
        raise DataMissing(f"{', '.join(missing)}: no such file. {again}")
    pairs = (line.split(maxsplit=1) for _, line in text_lines(folder / SUMS) if line)
    sums, found = {name: digest for digest, name in pairs}, {}
    for name, path in paths.items():
        try:
            with open_source(path) as stream:
                found[path] = stream.read()
            digest = f"SHA-256 {hashlib.sha256(found[path]).hexdigest()}"
        except DataError as error:
            digest = error.found
        if digest != (expected := f"SHA-256 {sums.get(name, f'none, {SUMS} does not have it')}"):
            raise DataError(path, digest, f"{expected}, unpacked", do=again)
    return found
