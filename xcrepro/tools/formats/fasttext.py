"""fastText's text: what it is trained and tested on, ``__label__a __label__b some words``, and what ``fasttext predict`` and
``predict-prob`` print, ``__label__a __label__b`` and ``__label__a 0.92 __label__b 0.03``.

A word that begins with the prefix is a label, wherever it stands; the prefix is no part of its name. A line is a row.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from scipy import sparse

from xcrepro.core.data.lines import real, shown, text_lines
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.entries import Entries, predicted, relevant, writing
from xcrepro.tools.formats.index import Index

PREFIX = "__label__"
_SCORED = re.compile(r"(\s*__label__\S+\s+[-+]?[\d.]\S*)+\s*")
_BARE = re.compile(r"(\s*__label__\S+)+\s*")


def sniff(name: str, head: bytes) -> bool:
    """Whether the first line that is not empty begins with a label."""
    return _first(head).startswith(PREFIX)


def holds(head: bytes) -> tuple[str, ...]:
    """Labels with scores are predictions, labels before words a truth, and labels alone either."""
    first = _first(head)
    if _SCORED.fullmatch(first):
        return ("predictions",)
    return ("truth", "predictions") if _BARE.fullmatch(first) else ("truth",)


def _first(head: bytes) -> str:
    lines = head.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in lines if line.strip()), "")


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The labels of each line, a repeated one once."""
    entries, row = Entries(path, index, once=True), -1
    for row, (line, text) in enumerate(text_lines(path)):
        names = [_name(path, line, word) for word in text.split() if word.startswith(PREFIX)]
        if names and _SCORED.fullmatch(text):
            raise DataError(path, shown(text), "labels and words; these are predictions with scores", line=line)
        for name in names:
            entries.add(line, row, name)
    entries.has_rows(row + 1)
    return entries.truth()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Labels with their scores; labels alone stand best first, and -1, -2, ... stand in for scores."""
    entries, row = Entries(path, index), -1
    for row, (line, text) in enumerate(text_lines(path)):
        words = text.split()
        bare = all(word.startswith(PREFIX) for word in words)
        pairs = [(word, -1.0 - place) for place, word in enumerate(words)] if bare else list(_pairs(path, line, words))
        for word, score in pairs:
            entries.add(line, row, _name(path, line, word), score)
    entries.has_rows(row + 1)
    return entries.top(k)


def _pairs(path: str | os.PathLike, line: int, words: list[str]) -> Iterator[tuple[str, float]]:
    for place in range(0, len(words), 2):
        label, score = words[place], words[place + 1] if place + 1 < len(words) else ""
        if not label.startswith(PREFIX) or not score:
            found = shown(" ".join(words[place : place + 2]))
            do = "Is this a file of texts, a truth?"
            raise DataError(path, found, f"{PREFIX}NAME and its score", line=line, do=do)
        yield label, real(path, line, score, "the score")


def _name(path: str | os.PathLike, line: int, word: str) -> str:
    name = word.removeprefix(PREFIX)
    if not name:
        raise DataError(path, shown(word), f"{PREFIX}NAME", line=line)
    return name


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """The labels of each row, without words."""
    with writing(path) as file:
        for labels in relevant(Y):
            file.write(" ".join(_word(index, label) for label in labels) + "\n")


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """Best first, with scores."""
    with writing(path) as file:
        for row in range(len(top)):
            file.write(" ".join(f"{_word(index, label)} {score}" for label, score in predicted(top, row)) + "\n")


def _word(index: Index, label: int) -> str:
    text = index.label_text(label)
    if not text or re.search(r"\s", text):
        rule, do = "must have no blanks in a file of fastText's", "give codes, or leave them out"
        raise ArgumentError("label_names", rule, shown(text), do)
    return PREFIX + text
