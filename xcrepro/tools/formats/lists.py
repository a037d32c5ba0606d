"""One JSON list: for each row a list of labels, or of ``[label, score]`` pairs, as napkinXC returns them.

A list of labels is a truth, or a ranking without scores; a list of pairs are predictions.
"""

from __future__ import annotations

import json
import os

from scipy import sparse

from xcrepro.core.data.lines import shown
from xcrepro.core.data.sources import open_source
from xcrepro.core.errors import DataError
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.entries import Entries, check_finite, is_finite, predicted, relevant, with_ids, writing
from xcrepro.tools.formats.index import Index


def sniff(name: str, head: bytes) -> bool:
    """Whether it begins with a list in a list, or is an empty one."""
    start = b"".join(head.split())
    return start.startswith((b"[[", b"[]"))


def holds(head: bytes) -> tuple[str, ...]:
    """Pairs are predictions; labels may be either."""
    start = b"".join(head.split()).replace(b"[],", b"")
    return ("predictions",) if start.startswith(b"[[[") else ("truth", "predictions")


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The labels of each row; their order means nothing."""
    entries, rows = Entries(path, index, typed=True), _rows(path, index, truth=True)
    for row, labels in enumerate(rows):
        for label in labels:
            entries.add(None, row, _label(path, row, label))
    entries.has_rows(len(rows))
    return entries.truth()


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Pairs are ranked by their scores; labels alone stand best first, and -1, -2, ... stand in for scores."""
    entries, rows = Entries(path, index, typed=True), _rows(path, index, truth=False)
    kinds = {isinstance(label, list) for labels in rows for label in labels}
    if len(kinds) > 1:
        raise DataError(path, "labels and [label, score] pairs together", "one kind throughout")
    for row, labels in enumerate(rows):
        for place, label in enumerate(labels):
            score = -1.0 - place
            if isinstance(label, list):
                if len(label) != 2 or not is_finite(label[1]):
                    raise DataError(path, f"{shown(label)} in row {row}", "[label, score], the score a finite number")
                label, score = label
            entries.add(None, row, _label(path, row, label), float(score))
    entries.has_rows(len(rows))
    return entries.top(k)


def _label(path: str | os.PathLike, row: int, label: object) -> str | int:
    if type(label) not in (str, int):
        raise DataError(path, f"{shown(label)} in row {row}", "a label, a whole number or a name")
    return label


def _rows(path: str | os.PathLike, index: Index, truth: bool) -> list[list]:
    with open_source(path) as stream:
        try:
            rows = json.loads(stream.read())
        except (ValueError, RecursionError) as error:
            raise DataError(path, f"no JSON ({error})", "one list of lists", do="Was the file cut?") from None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise DataError(path, "JSON of another kind", "a list with a list for each row")
    return [record["labels"] for _, record in with_ids(path, ((None, {"labels": row}) for row in rows), index, truth)]


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """Label ids, a row a line."""
    _write(path, [json.dumps(labels) for labels in relevant(Y)])


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """[label, score] pairs, best first, a row a line."""
    check_finite(top, "JSON")
    texts = (", ".join(f"[{label}, {score}]" for label, score in predicted(top, row)) for row in range(len(top)))
    _write(path, [f"[{text}]" for text in texts])


def _write(path: str | os.PathLike, rows: list[str]) -> None:
    with writing(path) as file:
        file.write("[" + ",\n ".join(rows) + "]\n")
