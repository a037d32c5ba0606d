"""JSON lines, an object a row; or a bare list a row, of labels or of ``[label, score]`` pairs.

====================================================  ======================================================================
keys                                                  whose
====================================================  ======================================================================
``labels``; ``labels`` and ``scores``                 what is written here: a truth; predictions
``labels`` where predictions are asked for            a ranking without scores, best first, as a language model answers
``target_ind``, and ``target_rel`` where present      the repository's raw text: a truth
``subjects``: ``{"uri", "label"}`` each               Annif's documents: a truth
``results``: ``{"uri", "label", "score"}`` each       Annif's suggestions: predictions
``topics_labels``, ``concepts_labels``                OAXMLC's documents: a truth, of those whose list of names is given
====================================================  ======================================================================

The objects stand in the order of the rows, whatever they are called, unless row ids are given: then ``row``, ``uid``, ``id``
or ``document_id`` says which row an object is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from scipy import sparse

from xcrepro.core.data.lines import shown
from xcrepro.core.errors import DataError
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats import answers
from xcrepro.tools.formats.entries import Entries, check_finite, is_finite, predicted, relevant, with_ids, writing
from xcrepro.tools.formats.index import Index
from xcrepro.tools.formats.lists import list_a_line

_ROW_KEYS = ("row", "uid", "id", "document_id")
_TRUTH_KEYS = ("labels", "target_ind", "subjects", "topics_labels", "concepts_labels")


def sniff(name: str, head: bytes) -> bool:
    """Whether it begins with an object, or is a list a line."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    return b"".join(head[:1000].split()).startswith((b"{", b"[{")) or list_a_line(head)


def holds(head: bytes) -> tuple[str, ...]:
    """By the first object's keys."""
    try:
        keys = set(json.loads(head.split(b"\n")[0]))
    except (ValueError, TypeError, RecursionError):  # a first line longer than the head, or broken: reading will tell
        return ("truth", "predictions")
    if {"results", "subjects"} <= keys:
        return ("truth", "predictions")
    return ("predictions",) if keys & {"results", "scores"} else ("truth",)


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The relevant labels; with ``target_rel`` those above 0."""
    entries, n = Entries(path, index, typed=True), 0
    for n, (line, record) in enumerate(with_ids(path, answers.records(path), index, truth=True), 1):
        row = entries.place(line, n - 1, _row_id(record))
        key = next((key for key in _TRUTH_KEYS if key in record), None)
        if {*_TRUTH_KEYS[3:]} <= {*record}:
            key = _known(path, line, record, index)
        if key is None or "scores" in record:
            found = "'scores', which predictions have" if key else f"the keys {shown(', '.join(record))}"
            raise DataError(path, found, f"a truth: {' or '.join(_TRUTH_KEYS)}", line=line)
        plain = key != "labels" or _is_plain(record[key])
        labels = _list(path, line, record, key) if plain else answers.labels_of(path, line, record[key], index)[0]
        values = _list(path, line, record, "target_rel", len(labels)) if "target_rel" in record else [1.0] * len(labels)
        for label, value in zip(labels, values, strict=True):
            if not is_finite(value) or value < 0:
                raise DataError(path, f"the relevance {shown(value)}", "a number, 0 or more", line=line)
            entries.add(line, row, _label(path, line, label, index), float(value))
    entries.has_rows(n)
    return entries.truth()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Labels with their scores, in any order, or without scores, best first."""
    entries, n, scored = Entries(path, index, typed=True), 0, None
    for n, (line, record) in enumerate(with_ids(path, answers.records(path), index, truth=False), 1):
        row = entries.place(line, n - 1, _row_id(record))
        if "results" in record:
            labels = _list(path, line, record, "results")
            scores: list[Any] = [label.get("score") if isinstance(label, dict) else None for label in labels]
        elif key := next((key for key in answers.KEYS if key in record), ""):
            if key == "labels" and _is_plain(record[key]):
                labels = _list(path, line, record, key)
                given = _list(path, line, record, "scores", len(labels)) if "scores" in record else None
            else:
                labels, given = answers.labels_of(path, line, record[key], index)
            has = given is not None
            scored = has if scored is None and labels else scored
            if labels and has != scored:
                found = "labels with scores" if has else "labels without scores"
                raise DataError(path, found, "one kind throughout", line=line)
            ranked = [-1.0 - at for at in range(len(labels))]  # a place is no probability: as in lists
            scores = ranked if given is None else given
        else:
            expected = "predictions: labels, with or without scores, or results"
            raise DataError(path, f"the keys {shown(', '.join(record))}", expected, line=line)
        for label, score in zip(labels, scores, strict=True):
            if not is_finite(score):
                raise DataError(path, f"the score {shown(score)}", "a finite number", line=line)
            entries.add(line, row, _label(path, line, label, index), float(score))
    entries.has_rows(n)
    return entries.top(k)


def _known(path: str | os.PathLike, line: int, record: dict, index: Index) -> str:
    """Which of OAXMLC's two sets of labels the list of names is of."""
    names = index.label_names
    found = [key for key in _TRUTH_KEYS[3:] if names and any(names.id(str(label)) is not None for label in record[key])]
    if len(found) != 1:
        do = "Give the ontology.json of the one that is meant: --labels (label_names=)"
        raise DataError(path, "topics_labels and concepts_labels", "one set of labels", line=line, do=do)
    return found[0]


def _row_id(record: dict) -> object:
    return next((record[key] for key in _ROW_KEYS if key in record), None)


def _is_plain(value: object) -> bool:
    """Whether it is a list of names or ids, or of Annif's subjects."""
    if not isinstance(value, list):
        return False
    return all(type(one) in (str, int, bool) or (isinstance(one, dict) and "uri" in one) for one in value)


def _list(path: str | os.PathLike, line: int, record: dict, key: str, n: int | None = None) -> list:
    found = record[key]
    if not isinstance(found, list) or n not in (None, len(found)):
        raise DataError(path, f"{key}: {shown(found)}", "a list" + ("" if n is None else f" of {n}"), line=line)
    return found


def _label(path: str | os.PathLike, line: int, label: object, index: Index) -> str | int:
    if isinstance(label, dict):  # Annif's: by its URI, else by its name
        uri, name = label.get("uri"), label.get("label")
        knows = index.label_names is not None and isinstance(uri, str) and index.label_names.id(uri) is not None
        label = uri if knows or name is None else name
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise DataError(path, f"the label {shown(label)}", "a whole number or a name", line=line)
    return label


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """``labels``, by name where there are names; ``row`` where there are row ids."""
    _write(path, ({"labels": [index.label_value(label) for label in labels]} for labels in relevant(Y)), index)


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """``labels`` and ``scores``, best first."""
    check_finite(top, "JSON")
    rows = (predicted(top, row) for row in range(len(top)))
    records = (
        {"labels": [index.label_value(label) for label, _ in row], "scores": [float(score) for _, score in row]}
        for row in rows
    )
    _write(path, records, index)


def _write(path: str | os.PathLike, records: Iterator[dict], index: Index) -> None:
    with writing(path) as file:
        for row, record in enumerate(records):
            if index.has_row_ids:
                record = {"row": index.row_text(row), **record}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
