"""The open dataset of the repository: library records with readable subject headings, as word counts (``data/tib``).

``python -m xcrepro.data.tib RECORDS SUBJECTS`` builds its files again. ``data/tib/README.md`` says what they are made from and
how they may be used. :func:`xcrepro.load` reads them by the name ``"tib"``.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from xcrepro.arguments import whole_number
from xcrepro.data.dataset import Dataset, Split
from xcrepro.data.lines import shown, text_lines
from xcrepro.data.names import read_label_names
from xcrepro.data.read import read_xc
from xcrepro.data.registry import Entry
from xcrepro.data.sources import open_source
from xcrepro.data.vectorize import rarity, weighed
from xcrepro.data.write import write_xc
from xcrepro.errors import DataError, DataMissing
from xcrepro.paths import committed, faults_named, write_together

HOME = "data/tib"
FILES = ("tib.txt", "words.txt", "label_names.txt", "splits.txt")
"""Each lies there as ``.gz``; SUMS has the SHA-256 of what it unpacks to."""
SUMS = "SHA256SUMS"
WRONG_NAMES = ("4114528-8",)
"""Headings whose English name is plainly wrong ("Xenondifluoride ion" on 107 records): shown by their number."""
SHARES = {"train": 15, "validation": 1, "test": 4}
"""Of every 20 records that follow each other: so the first n records have nearly these shares too, in every split."""
_SPLITS, _MIN_RECORDS, _SEED = 10, 3, 2026
_LETTERS = {"train": "r", "validation": "v", "test": "t"}
_BLOCK = sum(SHARES.values())
# Plain words: two letters or more of the Latin-1 alphabet, in lower case.
_WORD = re.compile(r"[a-zß-öø-ÿ]{2,}")


def load(entry: Entry, A: float, B: float, split: int, points: int | None) -> Dataset:
    """What :func:`xcrepro.load` returns for ``"tib"``, which says what the arguments mean."""
    paths = _whole_files(committed(HOME))
    counts, Y = read_xc(paths["tib.txt"])
    total = counts.shape[0]
    n = total if points is None else whole_number("points", points, _BLOCK, total, "it counts records, of all parts")
    words = tuple(word for _, word in text_lines(paths["words.txt"]))
    names = read_label_names(paths["label_names.txt"], Y.shape[1])
    letters = np.array([line[split] for _, line in text_lines(paths["splits.txt"])][:n])
    kept = np.flatnonzero(np.bincount(Y[:n].indices, minlength=Y.shape[1]))
    Y = Y[:n, kept]
    rows = {part: np.flatnonzero(letters == letter) for part, letter in _LETTERS.items()}
    rare = rarity(counts[rows["train"]])
    parts = {part: Split(weighed(counts[of], rare), Y[of]) for part, of in rows.items()}
    notes = ()
    if n < total:
        dropped = len(names) - len(kept)
        entry = replace(entry, printed_name=f"{entry.printed_name}, {n:,} of {total:,} records")
        notes = (f"{n:,} random records; {dropped:,} of {len(names):,} headings are on none of them and left out",)
    label_names = tuple(names.names[label] for label in kept)
    return Dataset(
        name=entry.name,
        A=A,
        B=B,
        published=entry.published,
        entry=entry,
        notes=notes,
        label_names=label_names,
        label_codes=tuple(names.codes[label] for label in kept),
        label_features=weighed(_counts([_words(name) for name in label_names], words), rare),
        words=words,
        **parts,
    )


def build(records: str | os.PathLike, subjects: str | os.PathLike, out: str | os.PathLike | None = None) -> Path:
    """Make the files from records (JSON lines: title, abstract, subjects) and subjects (GND number, tab, name)."""
    gnd = _subjects(subjects)
    ids = {number: label for label, number in enumerate(gnd)}
    found, pairs = [], []
    for row, (line, text) in enumerate(text_lines(records)):
        try:
            record = json.loads(text)
            found.append(_words(f"{record['title']} {record['abstract']}"))
            pairs += [(row, ids[number]) for number in record["subjects"]]
        except (ValueError, KeyError, TypeError) as error:
            expected = "a JSON object with title, abstract, and subjects whose names are known"
            raise DataError(records, f"{shown(text)} ({error!r})", expected, line=line) from None
    within = Counter(word for record in found for word in record)
    # The most frequent first: small ids for what comes often.
    words = sorted((word for word, n in within.items() if n >= _MIN_RECORDS), key=lambda word: (-within[word], word))
    row, label = np.array(pairs, np.int64).reshape(-1, 2).T
    Y = csr_matrix((np.ones(len(pairs), np.float32), (row, label)), (len(found), len(gnd)))
    lines = {
        "words.txt": words,
        "label_names.txt": [f"<{number}>\t{name}" for number, name in zip(gnd, _shown_names(gnd), strict=True)],
        "splits.txt": _splits(len(found)),
    }
    plain = {name: "".join(f"{line}\n" for line in of).encode() for name, of in lines.items()}
    home = Path(out) if out is not None else committed(HOME)
    with faults_named(home), tempfile.TemporaryDirectory(prefix=f".{home.name}.", dir=home.parent) as room:
        write_xc(Path(room, "tib.txt"), _counts(found, words), Y)
        plain["tib.txt"] = Path(room, "tib.txt").read_bytes()
    sums = "".join(f"{hashlib.sha256(plain[name]).hexdigest()}  {name}\n" for name in FILES)
    packed = {home / f"{name}.gz": gzip.compress(plain[name], 9, mtime=0) for name in FILES}
    write_together({home / SUMS: sums.encode(), **packed})
    return home


def _words(text: str) -> Counter:
    return Counter(_WORD.findall(text.lower()))


def _counts(found: list[Counter], words: list[str] | tuple[str, ...]) -> csr_matrix:
    """How often each of ``words`` is in each text."""
    ids = {word: column for column, word in enumerate(words)}
    rows = [sorted((ids[word], n) for word, n in of.items() if word in ids) for of in found]
    column, n = np.array([pair for row in rows for pair in row], np.int64).reshape(-1, 2).T
    indptr = np.cumsum([0, *map(len, rows)])
    return csr_matrix((n.astype(np.float32), column.astype(np.int32), indptr), (len(rows), len(words)))


def _subjects(path: str | os.PathLike) -> dict[str, str]:
    """GND number -> English name, in the file's order."""
    found: dict[str, str] = {}
    for line, text in text_lines(path):
        number, tab, name = text.partition("\t")
        if not tab or not name or number in found:
            raise DataError(path, shown(text), "a GND number, which comes once, a tab, a name", line=line)
        found[number] = name
    found.pop("gnd", None)
    return found


def _shown_names(gnd: dict[str, str]) -> list[str]:
    """The names, with the number where two headings have one name, and the number alone where the name is wrong."""
    often = Counter(gnd.values())
    named = {number: f"{name} ({number})" if often[name] > 1 else name for number, name in gnd.items()}
    return list((named | {number: number for number in WRONG_NAMES if number in named}).values())


def _splits(n: int) -> list[str]:
    """A line a record, a letter a split: r train, v validation, t test; drawn anew in every block of 20 records."""
    draws = np.random.PCG64(_SEED).random_raw(_SPLITS * _BLOCK * -(-n // _BLOCK)).reshape(_SPLITS, -1, _BLOCK)
    places = draws.argsort(axis=2, kind="stable").argsort(axis=2).reshape(_SPLITS, -1)[:, :n]
    letters = np.repeat(list(_LETTERS.values()), list(SHARES.values()))
    return ["".join(record) for record in letters[places].T]


def _whole_files(home: Path) -> dict[str, Path]:
    """The files, each as its digest says."""
    again = "Put it back as it was committed, or install the wheel again; data/tib/README.md says how to build it"
    paths = {name: home / f"{name}.gz" for name in FILES}
    if missing := [str(path) for path in (home / SUMS, *paths.values()) if not path.is_file()]:
        raise DataMissing(f"{', '.join(missing)}: no such file. {again}")
    sums = dict(reversed(line.split(maxsplit=1)) for _, line in text_lines(home / SUMS) if line)
    for name, path in paths.items():
        try:
            with open_source(path) as stream:
                found = f"SHA-256 {hashlib.sha256(stream.read()).hexdigest()}"
        except DataError as error:
            found = error.found
        if found != (expected := f"SHA-256 {sums.get(name, f'none, {SUMS} does not have it')}"):
            raise DataError(path, found, f"{expected}, unpacked", do=again)
    return paths


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("python -m xcrepro.data.tib RECORDS SUBJECTS [FOLDER]")
    print(build(*sys.argv[1:]))
