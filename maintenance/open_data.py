"""Builds the files of the open datasets from their sources: ``python -m maintenance.open_data NAME SOURCE... [--out FOLDER]``.

``python -m maintenance.open_data gutenberg --near`` says how many test titles are nearly training titles, and what it is worth.
What each is made from is in the README of its folder; :mod:`xcrepro.core.data.open_sets` reads what is made here.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import json
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from xcrepro.core.arguments import one_of
from xcrepro.core.data import open_sets
from xcrepro.core.data.lines import json_lines, shown, text_lines
from xcrepro.core.data.open_sets import BLOCK, HOMES, LETTERS, MIN_RECORDS, N_SPLITS, NOWHERE, SEED, SHARES, SUMS
from xcrepro.core.data.write import write_xc
from xcrepro.core.errors import DataError
from xcrepro.core.paths import committed, faults_named, write_together

WRONG_NAMES = ("4114528-8",)
"""Headings of TIB whose English name is plainly wrong ("Xenondifluoride ion" on 107 records): shown by their number."""
NOBODY = ("Various", "Anonymous", "Unknown", "")
"""Authors of whom no other book is known to be by the same."""
_WORDS = re.compile("[a-zß-öø-ÿ]+")
_ROMAN = re.compile("[ivxlc]+")
_TELLS_NOTHING = re.compile(
    "[ivxlc]+|a|an|the|of|and|for|to|from|in|with|vols?|volumes?|nos?|numbers?|parts?|books?|chapters?|series|new|old|index|"
    "indexes|indices|supplements?|supplementary|issues?|special|extra|edition|complete|jan|january|feb|february|mar|march|"
    "apr|april|may|june?|july?|aug|august|sept?|september|oct|october|nov|november|dec|december|first|second|third|fourth|"
    "fifth|sixth|seventh|eighth|ninth|tenth|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|st|nd|rd|th"
)
"""Words of titles that tell volumes of a work apart, and those that say nothing."""
_COUNTING = re.compile(
    r"(?i:\b(?:vols?|volumes?|nos?|numbers?|parts?|books?|issue|index|supplement(?:ary)?)\b)|[\d:]|\b[IVX]{2,}\b"
)
_CLAUSE = re.compile(r"[:;.,(—–]|\bor,")
NEAR = 0.6
"""Titles of one author that share so many of their telling words are near-duplicates."""
TUTORIAL = 12_404
"""Questions of Cooking on which the fastText tutorial trains, the first of the file; it tests on the rest."""


def build_tib(room: Path, records: str | os.PathLike, subjects: str | os.PathLike) -> dict[str, bytes]:
    """The files of TIB from records (JSON lines: title, abstract, subjects) and subjects (GND number, tab, name).

    ``room`` is a folder for what is written on the way.
    """
    gnd = _subjects(subjects)
    ids = {number: label for label, number in enumerate(gnd)}
    found, pairs = [], []
    for row, (line, text) in enumerate(text_lines(records)):
        try:
            record = json.loads(text)
            found.append(f"{record['title']} {record['abstract']}")
            pairs += [(row, ids[number]) for number in record["subjects"]]
        except (ValueError, KeyError, TypeError) as error:
            expected = "a JSON object with title, abstract, and subjects whose names are known"
            raise DataError(records, f"{shown(text)} ({error!r})", expected, line=line) from None
    counts, all_words = open_sets.counted(found)
    words = open_sets.vocabulary(counts, all_words, MIN_RECORDS["tib"])
    places = np.array(pairs, np.int64).reshape(-1, 2).T
    Y = csr_matrix((np.ones(len(pairs), np.float32), (places[0], places[1])), (len(found), len(gnd)))
    write_xc(room / "tib.txt", open_sets.columns_of(counts, all_words, words), Y)
    plain = {"tib.txt": (room / "tib.txt").read_bytes()}
    names = [f"<{number}>\t{name}" for number, name in zip(gnd, _shown_names(gnd), strict=True)]
    letters = _random_letters(np.arange(len(found)))
    return plain | _plain({"words.txt": words, "label_names.txt": names, "splits.txt": letters})


def build_gutenberg(_room: Path, records: str | os.PathLike) -> dict[str, bytes]:
    """The files of the catalogue of Project Gutenberg from JSON lines: id, title, author, headings and perhaps series.

    The order of the records is drawn once, so that the first n are a random sample. Records of one series or work are on one
    side of every split; in the split by time, where it began among the training records its later issues are nowhere.
    """
    found = []
    for line, record in json_lines(records):
        try:
            headings = [str(name) for name in record["headings"]]
            texts = [" ".join(str(record[name] or "").split()) for name in ("title", "author")]
            found.append((int(record["id"]), *texts, sorted({*headings}), record.get("series", "")))
        except (KeyError, TypeError, ValueError) as error:
            expected = "a JSON object with id, title, author and headings"
            raise DataError(records, f"{shown(str(record))} ({error!r})", expected, line=line) from None
    order = np.random.PCG64(SEED).random_raw(len(found)).argsort(kind="stable")
    found = [found[place] for place in order]
    names = sorted({name for *_, headings, _ in found for name in headings})
    ids = {name: label for label, name in enumerate(names)}
    lines = [_line(headings, ids, number, title, author) for number, title, author, headings, _ in found]
    unit = _works([one[1:3] for one in found], [one[-1] for one in found])
    by_time = _time_letters(np.array([one[0] for one in found]), unit)
    letters = [random + time for random, time in zip(_random_letters(unit), by_time, strict=True)]
    return _plain({"records.txt": lines, "label_names.txt": names, "splits.txt": letters})


def build_cooking(_room: Path, questions: str | os.PathLike, numbers: str | os.PathLike) -> dict[str, bytes]:
    """The files of Cooking from the fastText tutorial's questions and their numbers on the site, a line each."""
    found = []
    for line, text in text_lines(questions):
        tagged = text.startswith("__label__")
        *tags, question = re.split(r"(?<=\S) (?!__label__)", text, maxsplit=1) if tagged else (text,)
        labels = sorted({tag.removeprefix("__label__") for tag in " ".join(tags).split()})
        if not labels or not question.strip():
            raise DataError(questions, shown(text), "tags as __label__sauce, a blank, and a question", line=line)
        found.append((labels, " ".join(question.split())))
    site = [text for _, text in text_lines(numbers)]
    if len(site) != len(found):
        raise DataError(numbers, f"{len(site)} numbers", f"one for each of {len(found)} questions")
    names = sorted({name for labels, _ in found for name in labels})
    ids = {name: label for label, name in enumerate(names)}
    pairs = zip(found, site, strict=True)
    lines = [_line(labels, ids, number, question) for (labels, question), number in pairs]
    random = _random_letters(np.arange(len(found)))
    letters = [("r" if row < TUTORIAL else "t") + rest for row, rest in enumerate(random)]
    return _plain({"records.txt": lines, "label_names.txt": names, "splits.txt": letters})


def _line(names: Iterable[str], ids: dict[str, int], *about: object) -> str:
    """A record: the numbers of its labels, then what is said about it."""
    return "\t".join([",".join(str(ids[name]) for name in names), *map(str, about)])


BUILD: dict[str, Callable[..., dict[str, bytes]]] = {
    "tib": build_tib,
    "gutenberg": build_gutenberg,
    "cooking": build_cooking,
}


def build(name: str, *sources: str | os.PathLike, out: str | os.PathLike | None = None) -> Path:
    """Make an open dataset's files from its sources, all or none, in ``out`` or where they are committed."""
    make = BUILD[one_of("name", name, BUILD)]
    home = Path(out) if out is not None else committed(HOMES[name].folder)
    home.parent.mkdir(parents=True, exist_ok=True)
    with faults_named(home), tempfile.TemporaryDirectory(prefix=f".{home.name}.", dir=home.parent) as room:
        plain = make(Path(room), *sources)
        sums = "".join(f"{hashlib.sha256(plain[file]).hexdigest()}  {file}\n" for file in HOMES[name].files)
        packed = {home / f"{file}.gz": gzip.compress(plain[file], 9, mtime=0) for file in HOMES[name].files}
        home.mkdir(exist_ok=True)
        write_together({home / SUMS: sums.encode(), **packed})
    return home


def _plain(files: dict[str, Iterable[str]]) -> dict[str, bytes]:
    return {name: "".join(f"{line}\n" for line in lines).encode() for name, lines in files.items()}


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


def _works(books: list[tuple[str, str]], series: list[str]) -> np.ndarray:
    """A number a book of a title and an author, one for all books of a work: two of one series or with a common name are."""
    titled = zip(books, series, strict=True)
    names = [[*_names(*book), *([("", name)] if name else [])] for book, name in titled]
    ids = {name: place for place, name in enumerate({name for of_book in names for name in of_book}, len(books))}
    pairs = np.array([(row, ids[name]) for row, of_book in enumerate(names) for name in of_book]).reshape(-1, 2).T
    n = len(books) + len(ids)
    return connected_components(csr_matrix((np.ones(pairs.shape[1]), pairs), (n, n)), directed=False)[1][: len(books)]


def _names(title: str, author: str) -> Iterable[tuple[str, ...]]:
    """What volumes of a work have in common: the author with the words that count nothing, of the title and of its head.

    The head ends before the first number, colon or word such as "Vol."; one with fewer than two words says too little.
    """
    by = _by(author)
    for text, least in ((title, 1), (_COUNTING.split(title, 1)[0], 2)):
        words = _WORDS.findall(re.sub("['’]", "", text.lower()))
        telling = [word for word in words if _tells(word)]
        if least == 1 and not telling:  # "May, vol. I" is known by what there is
            telling = [word for word in words if not _ROMAN.fullmatch(word)]
        if len(telling) >= least:
            yield by, *telling


def _by(author: str) -> str:
    """Nothing, where no other book is known to be by the same."""
    return "" if author in NOBODY else author


@functools.cache
def _tells(word: str) -> bool:
    return not _TELLS_NOTHING.fullmatch(word)


def near_duplicates(test: Iterable[tuple[str, str]], train: Iterable[tuple[str, str]]) -> np.ndarray:
    """Which of the (title, author) of ``test`` are nearly one of ``train`` by the same author.

    Both have the same first three telling words, the same telling words up to the first mark, or :data:`NEAR` of all of them.
    """
    seen, of_author = set(), defaultdict(list)
    for book in train:
        keys, words = _likeness(*book)
        seen |= keys
        of_author[_by(book[1])].append(words)
    found = []
    for book in test:
        keys, words = _likeness(*book)
        others = of_author.get(_by(book[1]), ())
        found.append(bool(keys & seen) or any(len(words & own) >= NEAR * len(words | own) > 0 for own in others))
    return np.array(found)


def _likeness(title: str, author: str) -> tuple[set[tuple], set[str]]:
    """The author with the first telling words of a title, and with those of its first clause; and all its telling words."""
    by = _by(author)
    plain = (re.sub("['’]", "", text.lower()) for text in (title, _CLAUSE.split(title, 1)[0]))
    whole, clause = (tuple(filter(_tells, _WORDS.findall(text))) for text in plain)
    keys = {(by, "begins", whole[:3])} if len(whole) > 2 else set()
    return keys | ({(by, "clause", clause)} if clause else set()), {*whole}


def worth_of_near(trees: int = 3) -> str:
    """How many test titles of Gutenberg's split 0 are near-duplicates, and P@1 of a label tree on these and on the rest."""
    import xcrepro as xc

    ds = xc.load("gutenberg")
    test, train = (zip(part.texts["title"], part.texts["author"], strict=True) for part in (ds.test, ds.train))
    near = near_duplicates(test, train)
    top = xc.models.PLT(trees=trees).fit(ds.train.X, ds.train.Y).predict(ds.test.X, k=1)
    of = (near, ~near, near | ~near)
    right = [100 * xc.metrics.precision(ds.test.Y[rows], top.rows(np.flatnonzero(rows)), 1)[0] for rows in of]
    return (
        f"{near.sum():,} of {near.size:,} test titles ({100 * near.mean():.1f} %) are near-duplicates of a training title. "
        f"P@1 of PLT with {trees} trees: {right[0]:.1f} % on these, {right[1]:.1f} % on the rest, {right[2]:.1f} % on all"
    )


def _random_letters(unit: np.ndarray) -> list[str]:
    """A line a record, a letter a split: r train, v validation, t test; drawn anew in every block of 20 records.

    Records of one ``unit`` have one letter, that of the first of them.
    """
    n = len(unit)
    draws = np.random.PCG64(SEED).random_raw(N_SPLITS * BLOCK * -(-n // BLOCK)).reshape(N_SPLITS, -1, BLOCK)
    places = draws.argsort(axis=2, kind="stable").argsort(axis=2).reshape(N_SPLITS, -1)[:, :n]
    letters = np.repeat(list(LETTERS.values()), list(SHARES.values()))[places]
    _, first, which = np.unique(unit, return_index=True, return_inverse=True)
    return ["".join(record) for record in letters[:, first[which]].T]


def _time_letters(numbers: np.ndarray, unit: np.ndarray) -> list[str]:
    """Train, validation and test in the order of the numbers; "-" for a later issue of a unit that began before its part."""
    place = numbers.argsort(kind="stable").argsort(kind="stable")
    ends = np.cumsum([*SHARES.values()])[:-1] * len(numbers) // BLOCK
    part = np.searchsorted(ends, place, side="right")
    _, which = np.unique(unit, return_inverse=True)
    began = np.full(which.max() + 1, len(SHARES))
    np.minimum.at(began, which, part)
    letters = np.array([*LETTERS.values()])[part]
    return np.where(part > began[which], NOWHERE, letters).tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m maintenance.open_data")
    parser.add_argument("name", choices=BUILD)
    sources = "tib: RECORDS SUBJECTS; gutenberg: RECORDS; cooking: QUESTIONS NUMBERS"
    parser.add_argument("source", nargs="*", help=sources)
    near = "gutenberg: what near-duplicates of training titles are worth"
    parser.add_argument("--near", action="store_true", help=near)
    parser.add_argument("--out", help="another folder than data/NAME")
    chosen = parser.parse_args()
    if chosen.near == bool(chosen.source) or (chosen.near and chosen.name != "gutenberg"):
        parser.error("name the sources to build from; or gutenberg with --near, and no source")
    print(worth_of_near() if chosen.near else build(chosen.name, *chosen.source, out=chosen.out))
