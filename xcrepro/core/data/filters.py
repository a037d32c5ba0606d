"""Filter files made from texts and names: which labels may not be predicted for which points."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from xcrepro.core.arguments import one_of
from xcrepro.core.data.lines import check_text, json_lines, shown, text_lines
from xcrepro.core.data.names import LabelNames, codes_of
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.paths import atomic_path
from xcrepro.tools.formats.vectorize import TEXT_KEYS

RULES = "same", "contained"


def make_filter(
    texts: Sequence[str] | LabelNames,
    label_names: Sequence[str] | LabelNames,
    rule: str = "same",
    *,
    shape: tuple[int, int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of a point and a label that may not be predicted for it.

    Parameters
    ----------
    texts : sequence of str, or LabelNames
        A text for each point; with ``codes`` what the points are called elsewhere.
    label_names : sequence of str, or LabelNames
        A name for each label, and codes.
    rule : {"same", "contained"}
        ``"same"``: point and label are the same item, by their codes if both have codes, otherwise because the name is the
        whole text. ``"contained"``: the name occurs in the text, word by word. Upper and lower case, blanks and punctuation do
        not matter; a name without a word occurs nowhere.
    shape : (int, int), optional
        (points, labels) that there must be.

    Returns
    -------
    rows, labels : ndarray of int64, shape (n,)
        Sorted; for ``exclude`` of :meth:`xcrepro.TopK.from_scores`, and for :func:`write_filter`.

    Raises
    ------
    ArgumentError
        For an unknown rule, what is no text, and another number of texts or names than ``shape`` says.

    Examples
    --------
    >>> texts, names = ["The history of black cats", "Dogs"], ["Cats", "dogs", "black cats", "cat"]
    >>> [part.tolist() for part in make_filter(texts, names)]
    [[1], [1]]
    >>> [part.tolist() for part in make_filter(texts, names, "contained")]
    [[0, 0, 1], [0, 2, 1]]
    """
    one_of("rule", rule, RULES)
    points, labels = _named("texts", texts), _named("label_names", label_names)
    for name, given, what, there in zip(
        ("texts", "label_names"), (points, labels), ("points", "labels"), shape or (None, None), strict=True
    ):
        if there not in (None, len(given)):
            raise ArgumentError(name, f"must hold one for each of the {there} {what}", len(given))
    if rule == "same" and points.codes and labels.codes:
        keys, found = [*labels.codes], [[code] for code in points.codes]
    else:
        keys = [" ".join(_words(name)) for name in labels.names]
        lengths = {len(key.split()) for key in keys}
        found = [_parts(_words(text), {len(_words(text))} if rule == "same" else lengths) for text in points.names]
    of_key: dict[str, list[int]] = {}
    for label, key in enumerate(keys):
        of_key.setdefault(key, []).append(label)
    pairs = {(row, label) for row, parts in enumerate(found) for part in parts for label in of_key.get(part, ())}
    rows, numbers = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    return rows, numbers


def _named(name: str, given: Sequence[str] | LabelNames) -> LabelNames:
    names = given if isinstance(given, LabelNames) else LabelNames(tuple(given) if not isinstance(given, str) else ())
    odd = [text for text in names.names if not isinstance(text, str)]
    if odd or isinstance(given, str):
        raise ArgumentError(name, "must be a list of texts", shown(odd[0] if odd else given))
    return names


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _parts(words: list[str], lengths: set[int]) -> Iterator[str]:
    """All runs of words of some lengths; none of no words."""
    for length in lengths - {0}:
        for first in range(len(words) - length + 1):
            yield " ".join(words[first : first + length])


def read_texts(path: str | os.PathLike, rule: str = "same") -> LabelNames:
    """Read the texts of points: a line each, or JSON lines with title, content or text, as ``tst.json.gz`` of the LF datasets.

    Parameters
    ----------
    path : path_like
    rule : {"same", "contained"}
        What :func:`make_filter` will do with them: the first text of an object is what the point is called, all of them are
        what a name may be contained in.

    Returns
    -------
    LabelNames
        With codes where every object has a ``uid``.

    Raises
    ------
    DataMissing
        Where there is no such file.
    DataError
        For a line that is no object where the first is one, and an object without a text.
    """
    one_of("rule", rule, RULES)
    lines = text_lines(path)
    if not next(lines, (1, ""))[1].lstrip().startswith("{"):
        return LabelNames(tuple(text for _, text in text_lines(path)))
    texts, codes = [], []
    for line, record in json_lines(path):
        own = [record[key] for key in TEXT_KEYS if isinstance(record.get(key), str)]
        if not own:
            raise DataError(path, f"the keys {shown(', '.join(record))}", f"a text: {', '.join(TEXT_KEYS)}", line=line)
        texts.append(check_text(path, line, own[0] if rule == "same" else " ".join(own)))
        codes.append(record.get("uid"))
    return LabelNames(tuple(texts), codes_of(codes))


def write_filter(path: str | os.PathLike, rows, labels) -> None:
    """Write a filter file for :func:`xcrepro.data.read_filter`, whole or not at all: a ``row label`` pair a line, from 0.

    Parameters
    ----------
    path : path_like
    rows, labels : array_like of int, shape (n,)
        Pairs.

    Raises
    ------
    ArgumentError
        For what is not two equally long lists of whole numbers, 0 or more.
    """
    parts = [np.asarray(part) for part in (rows, labels)]
    whole = all(part.ndim == 1 and (part.dtype.kind in "iu" or not part.size) for part in parts)
    if not whole or parts[0].size != parts[1].size or any(part.min(initial=0) < 0 for part in parts):
        got = ", ".join(f"{part.dtype} of shape {part.shape}" for part in parts)
        raise ArgumentError("rows and labels", "must be two equally long lists of whole numbers, 0 or more", got)
    with atomic_path(path) as part:
        part.write_text("".join(f"{row} {label}\n" for row, label in zip(*parts, strict=True)), encoding="ascii")
