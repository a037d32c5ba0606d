"""From raw text to a dataset: JSON lines with text and labels in, tf-idf features and label matrices out.

The features are scikit-learn's ``TfidfVectorizer``, fitted on the train points only: rows of unit length, terms by
alphabet.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from xcrepro.core import extras
from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.data.filters import TEXT_KEYS
from xcrepro.core.data.lines import check_text, json_lines, shown
from xcrepro.core.data.names import LabelNames, write_label_names
from xcrepro.core.data.tfidf import rarity, weighed
from xcrepro.core.data.write import write_xc
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.matrices import MAX_COLUMNS
from xcrepro.core.paths import filling
from xcrepro.tools import formats

LABEL_KEYS = ("labels", "target_ind", "subjects")
_ID_KEYS = ("uid", "id", "row", "document_id")
_ALONE = "alone at line "  # begins the group of a point that has none; no other group begins so


class Vectorized(NamedTuple):
    """What was written: the points of each part, how many of these have no label, or none of the train points' terms, and how
    many points are in no part, because their group began before theirs."""

    name: str
    points: dict[str, int]
    n_features: int
    n_labels: int
    without_labels: int
    without_features: int
    left_out: int = 0


class _Point(NamedTuple):
    text: str
    labels: list[str | int]
    id: str
    place: tuple[str, int]  # file and line
    time: str | float
    group: str


def vectorize(
    source: str | os.PathLike,
    out: str | os.PathLike,
    *,
    test: str | os.PathLike | None = None,
    test_share: float = 0.2,
    validation_share: float = 0.0,
    seed: int = 0,
    by: str | None = None,
    group: str | None = None,
    text_keys: Sequence[str] | None = None,
    label_key: str | None = None,
    label_names: LabelNames | None = None,
    min_df: int = 2,
    ngrams: int = 1,
    max_features: int | None = None,
    sublinear: bool = True,
    name: str | None = None,
    truth: str | os.PathLike | None = None,
) -> Vectorized:
    """Make a dataset in the repository's format from raw text (``xcrepro vectorize``).

    ``source`` are JSON lines, also ``.gz``: an object per point, with texts, a list of labels, and ``uid`` if points
    have names. ``out`` is a new or empty folder. It gets ``train.txt``, ``test.txt`` (and ``validation.txt``),
    ``label_names.txt``, ``vocabulary.txt`` (a term per line, by feature id), ``train_ids.txt`` and so on (what the file
    calls the points, else their line numbers), and ``dataset.toml``, by which :func:`xcrepro.load` reads it.

    Without ``test``, a file of its own, the test points are ``test_share`` of ``source``, drawn at random; each part
    keeps the file's order. ``by`` names a field with a time, a number or a date such as 2026-11-26: the latest points are then
    the test points, those before them validate, and points of one time are in one part. ``group`` names a field whose equal
    values are never in two parts, such as issues of one series, and points without a value are groups of their own; with
    ``by``, a point is left out where its group began in an earlier part. ``text_keys`` are by default those of title, content
    and text that there are, joined by a blank. ``label_key`` is labels, target_ind or subjects (Annif's), whichever there is:
    names, or ids from 0.
    ``truth`` is a new file for the labels of the test points, which ``test.txt`` then lacks: ``out`` can be given to those who
    are to predict them, with the texts in ``test_texts.txt``.
    ``label_names`` fix the ids, which else follow the alphabet, test points included. ``min_df`` is in how many train
    points a term must occur, ``ngrams`` the longest run of words that is a term; ``sublinear`` takes 1 + log of a
    term's count.
    """
    folder = Path(out)
    name = _name(folder, name)
    _check_options(test_share, validation_share, test, seed, min_df, ngrams, max_features)
    if test is not None and (by is not None or group is not None):
        raise ArgumentError("by and group", "must be None where the test points have a file", [by, group])
    whole = _read(source, text_keys, label_key, by, group)
    shares = {"test": test_share if test is None else 0.0, "validation": validation_share}
    points = _split(source, whole, shares, seed, by is not None, group is not None)
    left_out = len(whole) - sum(map(len, points.values()))
    if test is not None:
        points["test"] = _read(test, text_keys, label_key)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError("out", "must be a new or an empty folder", folder)
    if truth is not None and os.path.exists(truth):
        raise ArgumentError("truth", "must not be there yet", os.fspath(truth), "take another name")
    names = label_names if label_names is not None else _names([point for of in points.values() for point in of])
    texts = {part: [point.text for point in of] for part, of in points.items()}
    X, terms = _features(source, texts, min_df, ngrams, max_features, sublinear)
    Y = {part: _label_matrix(of, names) for part, of in points.items()}
    empty = [sum(int((np.diff(of.indptr) == 0).sum()) for of in parts.values()) for parts in (Y, X)]
    settings = f"min_df {min_df}, ngrams {ngrams}, max_features {max_features}, sublinear {sublinear}, seed {seed}"
    with filling(folder) as home:
        if truth is not None:
            formats.write_truth(truth, Y["test"])
            Y["test"] = sparse.csr_matrix(Y["test"].shape, dtype=np.float32)
            _write_lines(home / "test_texts.txt", map(_one_blank, texts["test"]))
        for part, of in points.items():
            write_xc(home / f"{part}.txt", X[part], Y[part])
            _write_lines(home / f"{part}_ids.txt", (point.id for point in of))
        write_label_names(home / "label_names.txt", names)
        _write_lines(home / "vocabulary.txt", terms)
        _write_lines(home / "dataset.toml", _toml(name, os.path.basename(source), settings, X, Y))
    sizes = {part: len(of) for part, of in points.items()}
    return Vectorized(name, sizes, len(terms), len(names), *empty, left_out)


def _name(folder: Path, name: str | None) -> str:
    from xcrepro.core.data import registry

    given = folder.resolve().name if name is None else name
    known = registry.find(given) if isinstance(given, str) and given else None
    if not isinstance(given, str) or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", given, re.ASCII) or known is not None:
        rule = "must be letters, digits, '.', '-' and '_', and none that is known"
        raise ArgumentError("name", rule, repr(given), "give another with --name (name=)")
    return given


def _check_options(test_share, validation_share, test, seed, min_df, ngrams, max_features) -> None:
    real_number("test_share", test_share, above=0, below=1)
    real_number("validation_share", validation_share, at_least=0, below=1)
    if validation_share + (test_share if test is None else 0) >= 1:
        raise ArgumentError("test_share and validation_share", "must leave train points", test_share + validation_share)
    whole_number("seed", seed)
    whole_number("min_df", min_df, 1)
    whole_number("ngrams", ngrams, 1, 10)
    if max_features is not None:
        whole_number("max_features", max_features, 1)


def _read(
    path: str | os.PathLike, text_keys, label_key, by: str | None = None, group: str | None = None
) -> list[_Point]:
    points, seen = list[_Point](), dict[str, int]()
    for line, record in json_lines(path):
        keys = text_keys if text_keys is not None else [key for key in TEXT_KEYS if key in record]
        texts = ["" if record.get(key, 0) is None else record.get(key) for key in keys]  # null: an empty text
        there = f"the keys {shown(', '.join(record))}"
        if not texts or not all(isinstance(part, str) for part in texts):
            do = "Name the keys of the texts (--text, text_keys=)"
            raise DataError(path, there, f"texts under {', '.join(text_keys or TEXT_KEYS)}", line=line, do=do)
        found = [key for key in ([label_key] if label_key is not None else LABEL_KEYS) if key in record]
        labels = record[found[0]] if found else None
        if not isinstance(labels, list):
            do = "Name the key of the labels (--label-key, label_key=)"
            expected = f"a list of labels under {label_key or ' or '.join(LABEL_KEYS)}"
            raise DataError(path, there, expected, line=line, do=do)
        own = next((record[key] for key in _ID_KEYS if isinstance(record.get(key), (str, int))), line)
        labels, name = [_label(path, line, label) for label in labels], check_text(path, line, _one_blank(str(own)))
        if (first := seen.setdefault(name, line)) != line:
            do = "Give each point an id of its own, or leave the ids out"
            found = f"the id {shown(name)} a second time, after line {first}"
            raise DataError(path, found, "each once", line=line, do=do)
        time = 0.0 if by is None else _time(path, line, record.get(by), by, points[0].time if points else None)
        of = "" if group is None else _group(path, line, record.get(group), group)
        points.append(_Point(" ".join(texts), labels, name, (os.fspath(path), line), time, of))
    if points and all(point.group.startswith(_ALONE) for point in points):
        raise DataError(path, f"no point with {group}", "the key of a group", do="Name another key (--group, group=)")
    return points


def _group(path: str | os.PathLike, line: int, value: object, group: str) -> str:
    """A text for each group; a point without a value is a group of its own."""
    if value is None:
        return f"{_ALONE}{line}"
    if not isinstance(value, (str, int)):
        raise DataError(path, f"{group} {shown(str(value))}", "a text or whole number", line=line)
    return f"of {value}"


def _time(path: str | os.PathLike, line: int, value: object, by: str, first: str | float | None) -> str | float:
    """A number, or a date whose text sorts by time."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
    if not number and not (isinstance(value, str) and re.match(r"\d{4}(-\d\d(-\d\d)?)?(?!\d)", value)):
        raise DataError(path, f"{by} {shown(str(value))}", "a number, or a date such as 2026-11-26", line=line)
    if first is not None and isinstance(first, str) == number:
        raise DataError(path, f"{by} {shown(str(value))}", "numbers or dates throughout", line=line)
    return float(value) if number else value


def _label(path: str | os.PathLike, line: int, label: object) -> str | int:
    if isinstance(label, dict):
        label = label.get("label", label.get("uri"))
    is_id = type(label) is int and 0 <= label < MAX_COLUMNS
    if not is_id and not (isinstance(label, str) and label.strip()):
        raise DataError(path, f"the label {shown(label)}", "a name, or an id from 0", line=line)
    return label if is_id else check_text(path, line, _one_blank(label))


def _one_blank(text: str) -> str:
    """A name on one line: blanks at its ends are none of it, and several inside are one."""
    return " ".join(text.split())


def _split(
    source, points: list[_Point], shares: dict[str, float], seed, timed: bool, grouped: bool
) -> dict[str, list[_Point]]:
    """Parts drawn at random, or by time; "train" is what is left."""
    n = len(points)
    which = np.unique([point.group for point in points], return_inverse=True)[1] if grouped else np.arange(n)
    part = _by_time([point.time for point in points], shares) if timed else _at_random(which, shares, seed)
    if timed and grouped:
        began = np.zeros(which.max() + 1, np.int64)  # parts are numbered from the latest
        np.maximum.at(began, which, part)
        part = np.where(part < began[which], -1, part)
    kept = ["train", *(name for name, share in shares.items() if share)]
    rows = {name: np.flatnonzero(part == i) for i, name in enumerate([*shares, "train"]) if name in kept}
    if not all(of.size for of in rows.values()):
        do = "Give more points, or the test points in a file of their own (--test, test=)"
        raise DataError(source, f"{n} points", "enough for train points and each share", do=do)
    return {name: [points[row] for row in rows[name]] for name in sorted(rows, key=kept.index)}


def _at_random(which: np.ndarray, shares: dict[str, float], seed: int) -> np.ndarray:
    """The number of each point's part, in the order of the shares, then train; ``which`` group each is of, drawn whole."""
    n, order = which.size, np.random.default_rng(seed).permutation(which.max(initial=-1) + 1)
    sizes, part, at = np.bincount(which), np.full(len(order), len(shares)), 0
    for i, share in enumerate(shares.values()):
        wanted = max(1, round(share * n)) if share else 0
        while wanted > 0 and at < len(order):
            part[order[at]] = i
            wanted, at = wanted - sizes[order[at]], at + 1
    return part[which]


def _by_time(times: list[str | float], shares: dict[str, float]) -> np.ndarray:
    """The number of each point's part: the latest first; points of one time have one part."""
    found, which, counts = np.unique(np.array(times), return_inverse=True, return_counts=True)
    after = len(times) - np.cumsum(counts)  # points that come later
    part, begin = np.full(len(found), len(shares)), 0
    for i, share in enumerate(shares.values()):
        end = begin + round(share * len(times))
        if share:
            part[(after >= begin) & (after < max(end, begin + 1))] = i
            begin = int((counts[part <= i]).sum())
    return part[which]


def _names(points: list[_Point]) -> LabelNames:
    """Names in the order of the alphabet; ids are their own names."""
    places = [(label, point.place) for point in points for label in point.labels]
    labels = {label for label, _ in places}
    if not labels:
        raise DataError(points[0].place[0], "no labels at all", "some")
    if kinds := {type(label) for label in labels} - {str}:
        if {type(label) for label in labels} != kinds:
            path, line = next(place for label, place in places if type(label) is not type(places[0][0]))
            raise DataError(path, "ids among names of labels", "one kind throughout", line=line)
        largest = max(labels)
        if largest >= 100 * len(labels) + 1000:
            path, line = next(place for label, place in places if label == largest)
            do = "Write the ids as texts where they are no places"
            raise DataError(path, f"the label id {largest}, with {len(labels)} labels", "ids from 0", line=line, do=do)
        return LabelNames(tuple(map(str, range(largest + 1))))
    return LabelNames(tuple(sorted(labels)))


def _features(source, texts: dict[str, list[str]], min_df, ngrams, max_features, sublinear):
    text = extras.library("sklearn.feature_extraction.text")
    vectorizer = text.CountVectorizer(min_df=min_df, ngram_range=(1, ngrams), max_features=max_features)
    try:
        train = vectorizer.fit_transform(texts["train"])
    except ValueError as error:  # scikit-learn's way to say that no term is left
        do = "Lower --min-df (min_df=), or look whether the texts are under other keys"
        raise DataError(source, f"no terms ({error})", f"terms in {min_df} train points", do=do) from None
    counts = {part: train if part == "train" else vectorizer.transform(of) for part, of in texts.items()}
    rare = rarity(train)
    found = {part: weighed(of, rare, sublinear) for part, of in counts.items()}
    return found, vectorizer.get_feature_names_out().tolist()


def _label_matrix(points: list[_Point], names: LabelNames) -> sparse.csr_matrix:
    rows, columns = [], []
    for row, point in enumerate(points):
        seen = set()
        for label in point.labels:
            column = label if isinstance(label, int) else names.id(label)
            if column is None or column >= len(names):
                named = isinstance(label, str)
                expected = f"one of the {len(names):,} label names" if named else f"ids below {len(names)}"
                raise DataError(point.place[0], f"the label {shown(label)}", expected, line=point.place[1])
            seen.add(column)
        columns.extend(sorted(seen))
        rows.extend([row] * len(seen))
    ones = np.ones(len(rows), np.float32)
    return sparse.csr_matrix((ones, (rows, columns)), shape=(len(points), len(names)))


def _toml(name: str, source: str, settings: str, X: dict, Y: dict) -> list[str]:
    note = json.dumps(f"xcrepro vectorize {source}: {settings}", ensure_ascii=True)
    sizes = {f"n_{part}": X[part].shape[0] for part in ("train", "test")}
    sizes |= {"n_features": X["train"].shape[1], "n_labels": Y["train"].shape[1]}
    files = [f'{part} = "{part}.txt"' for part in sorted(X)]
    head = [f'name = "{name}"', f"note = {note}", 'label_names = "label_names.txt"', "", "[files]"]
    return [*head, *files, "", "[expected]", *(f"{key} = {n}" for key, n in sizes.items())]


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
