"""Stand-ins: archives in the layout of a dataset's own, with random content of its published shape, or of a part of it.

They go through the doors of a download, and what a notebook computes on them means nothing. Layouts and names are those of
the repository's archives: one file a split, or features and labels apart; or one data file with ten columns of row numbers.
Writers are plain loops of their own, because the package's would forgive the package's readers.
"""

from __future__ import annotations

import functools
import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from xcrepro.core.data import registry
from xcrepro.core.extras import library
from xcrepro.tools.reports import reproduce

COLUMNS = ("mediamill", "bibtex", "delicious")
"""Datasets that come as one file with ten splits."""
WORDS_A_LABEL = 4


@dataclass(frozen=True)
class Shape:
    """How large a stand-in is; ``pairs`` are of all points, train and test."""

    n_train: int
    n_test: int
    n_features: int
    n_labels: int
    pairs: int

    @property
    def n_points(self) -> int:
        return self.n_train + self.n_test


def published(name: str) -> Shape:
    """The size that is printed; so many pairs as its averages say."""
    entry = registry.get(name)
    n = entry.n_train + entry.n_test
    low, high = entry.interval("avg_points_per_label") or entry.interval("avg_labels_per_point")
    of = entry.n_labels if entry.avg_points_per_label is not None else n
    if entry.avg_points_per_label is not None and entry.points_per_label_basis == "train":
        of = of * n / entry.n_train
    return Shape(entry.n_train, entry.n_test, entry.n_features or 1_000, entry.n_labels, round((low + high) / 2 * of))


def smaller(shape: Shape, labels: int, points: int, features: int = 500) -> Shape:
    """At most so many labels, train points and features, with as many labels a point."""
    L, n = min(labels, shape.n_labels), min(points, shape.n_train)
    m = min(max(points // 4, 60), shape.n_test)
    pairs = round(min(shape.pairs / shape.n_points, L / 3) * (n + m))
    return Shape(n, m, min(features, shape.n_features), L, pairs)


# ---------------------------------------------------------------- content


@dataclass(frozen=True)
class Content:
    """Of each point its label ids and its features; of each label its own words."""

    shape: Shape
    labels: list[list[int]]
    features: list[list[tuple[int, float]]]
    words: np.ndarray


def content(shape: Shape, seed: int = 0) -> Content:
    """Points of two topics each, labels by falling frequency, words that tell them; exactly ``shape.pairs`` pairs."""
    rng = np.random.default_rng([seed, shape.n_labels, shape.n_train])
    L, n = shape.n_labels, shape.n_points
    frequency = 1.0 / (np.arange(L) + 5.0) ** 0.9
    topics = np.array_split(rng.permutation(L), max(1, L // 25))
    chances = [frequency[topic] / frequency[topic].sum() for topic in topics]
    weight = np.array([frequency[topic].sum() for topic in topics])
    chosen = rng.choice(len(topics), (n, 2), p=weight / weight.sum())
    # Every point has a label where there are enough pairs, and the pairs are as many as asked for.
    many = np.bincount(rng.permutation(n * max(1, -(-shape.pairs // n)))[: shape.pairs] % n, minlength=n)
    labels = [set() for _ in range(n)]
    for label, point in enumerate(rng.permutation(n)[:L]):  # so that few labels have no point at all
        if shape.pairs > 2 * L:
            labels[point].add(label)
    for i, number in enumerate(many):
        for topic in chosen[i]:
            if (missing := number - len(labels[i])) > 0:
                k = min(missing, len(topics[topic]))
                labels[i] |= set(rng.choice(topics[topic], k, replace=False, p=chances[topic]).tolist())
    spare = shape.pairs - sum(map(len, labels))
    while spare:  # topics of few labels, and the first round, leave a rest
        i, label = int(rng.integers(n)), int(rng.choice(L, p=frequency / frequency.sum()))
        if spare > 0 and label not in labels[i]:
            labels[i].add(label)
            spare -= 1
        elif spare < 0 and len(labels[i]) > 1:
            labels[i].remove(next(iter(labels[i])))
            spare += 1
    words = rng.integers(0, shape.n_features, (L, WORDS_A_LABEL))
    features = []
    for own in labels:
        told = words[sorted(own)][:, : 1 + WORDS_A_LABEL // 2].ravel()[:40] if own else np.empty(0, np.int64)
        ids = np.unique(np.concatenate([told, rng.integers(0, shape.n_features, 4)]))
        features.append(list(zip(ids.tolist(), np.round(rng.uniform(0.05, 0.9, len(ids)), 6).tolist(), strict=True)))
    return Content(shape, [sorted(own) for own in labels], features, words)


def plain(shape: Shape, seed: int = 0) -> Content:
    """As many points, labels and pairs without any pattern, in a tenth of the time: where only the size counts."""
    each, more = divmod(shape.pairs, shape.n_points)
    labels = [sorted((7 * i + j) % shape.n_labels for j in range(each + (i < more))) for i in range(shape.n_points)]
    features = [[(i % shape.n_features, 0.5)] for i in range(shape.n_points)]
    return Content(shape, labels, features, np.zeros((shape.n_labels, 0), np.int64))


# ---------------------------------------------------------------- layouts


def _pairs(row: list[tuple[int, float]]) -> str:
    return " ".join(f"{i}:{value:.6f}" for i, value in row)


def _old(rows: list[int], made: Content) -> Iterator[str]:
    """``N D L``, then labels and features on one line; a point without labels begins with a blank."""
    yield f"{len(rows)} {made.shape.n_features} {made.shape.n_labels}"
    for i in rows:
        yield f"{','.join(map(str, made.labels[i]))} {_pairs(made.features[i])}"


def _new(rows: list[list[tuple[int, float]]], width: int) -> Iterator[str]:
    """``rows columns``, then ``id:value``."""
    yield f"{len(rows)} {width}"
    yield from map(_pairs, rows)


def _text(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


SAID = "Made up by tests/rehearsal: no result on these data means anything.\n"


def files(name: str, made: Content) -> dict[str, str]:
    """Path inside the archive -> text, in the layout of the dataset's own archive; and a word that it is a stand-in."""
    found = _files(name, made)
    return {**found, f"{min(found).partition('/')[0]}/{reproduce.STAND_IN}": SAID}


def _files(name: str, made: Content) -> dict[str, str]:
    shape, entry = made.shape, registry.get(name)
    train, test = list(range(shape.n_train)), list(range(shape.n_train, shape.n_points))
    known = library("napkinxc.datasets").DATASETS.get(entry.archive.get("key", ""), {})
    known = known.get(entry.archive.get("format", ""), {})
    home = known.get("dir", entry.printed_name)
    if name in COLUMNS:
        rng = np.random.default_rng(shape.n_train)
        orders = [np.arange(shape.n_points), *(rng.permutation(shape.n_points) for _ in range(9))]
        columns = np.array(orders).T + 1  # row numbers from 1
        stem = entry.printed_name
        found = {f"{stem}_data.txt": _text(_old(train + test, made))}
        for what, part in (("tr", columns[: shape.n_train]), ("tst", columns[shape.n_train :])):
            found[f"{stem}_{what}Split.txt"] = _text(" ".join(map(str, row)) for row in part)
        return {f"{home}/{file}": text for file, text in found.items()}
    halves = {"train": train, "test": test}
    found = {}
    for half, rows in halves.items():
        names = known.get(half, f"{half}.txt")
        if isinstance(names, dict):
            found[names["X"]] = _text(_new([made.features[i] for i in rows], shape.n_features))
            found[names["Y"]] = _text(_new([[(label, 1.0) for label in made.labels[i]] for i in rows], shape.n_labels))
        else:
            found[names] = _text(_old(rows, made))
    if entry.group == "label-features":
        own = [[(int(i), 0.5) for i in np.unique(row)] for row in made.words]
        found["lbl_X_Xf.txt"] = _text(_new(own, shape.n_features))
        for half, first, n in (("train", 0, shape.n_train), ("test", shape.n_train, shape.n_test)):
            # A point that is a label of its own: the pair is not to be predicted. No header; the file may be empty.
            own = [(i, made.labels[first + i][0]) for i in range(0, n, 7) if made.labels[first + i]]
            found[f"filter_labels_{half}.txt"] = "".join(f"{i} {label}\n" for i, label in own)
    return {f"{home}/{file}": text for file, text in found.items()}


@functools.lru_cache(maxsize=4)
def archive(name: str, shape: Shape | None = None, seed: int = 0, make: Callable = content) -> bytes:
    """A zip archive as it would be downloaded."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        for path, text in files(name, make(shape or published(name), seed)).items():
            bundle.writestr(path, text)
    return out.getvalue()


def padded(archive: bytes, size: int) -> bytes:
    """An archive with one more member, of so many bytes that do not pack."""
    out = io.BytesIO(archive)
    with zipfile.ZipFile(out, "a") as bundle:
        bundle.writestr("padding.bin", np.random.default_rng(size).bytes(size))
    return out.getvalue()


def put(name: str, cache: Path, shape: Shape | None = None, seed: int = 0, make: Callable = content) -> Path:
    """The archive where ``xcrepro fetch`` looks for one that somebody saved by hand."""
    path = cache / "datasets" / f"{name}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(archive(name, shape, seed, make))
    return path


def strange(shape: Shape, kind: str, seed: int = 0) -> Content:
    """Content of a kind that no dataset of the papers is: one label a point, or empty rows and labels that none has."""
    made = content(shape, seed)
    if kind == "single":
        return replace(made, labels=[own[:1] or [i % shape.n_labels] for i, own in enumerate(made.labels)])
    empty = {i for i in range(shape.n_points) if i % 11 == 3}
    gone = set(range(0, shape.n_labels, 9))  # without a train point
    labels = [
        [] if i in empty else [label for label in own if i >= shape.n_train or label not in gone]
        for i, own in enumerate(made.labels)
    ]
    features = [[] if i % 22 == 3 else row for i, row in enumerate(made.features)]
    return replace(made, labels=labels, features=features)
