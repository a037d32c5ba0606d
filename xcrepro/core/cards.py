"""How objects show themselves in a notebook: a small table that reads well on a light and on a dark page, and as text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core.errors import ArgumentError
from xcrepro.core.truth import as_truth

if TYPE_CHECKING:
    from xcrepro.core.data.dataset import Dataset
    from xcrepro.core.predictions import TopK

_SHOWN = 5
_CELL = ' style="text-align:left;vertical-align:top;padding:0.15em 0.8em 0.15em 0"'
RARE = 5
"""Labels with fewer training points than this are called rare."""


class Card:
    """A title and rows of cells; a cell is a text, a list of marked texts (text, whether it is a hit), or finished HTML."""

    def __init__(self, title: str, rows: Sequence[Sequence], head: Sequence[str] = ()) -> None:
        self.title, self.rows, self.head = title, [list(row) for row in rows], list(head)

    def __repr__(self) -> str:
        lines = [self.title, *(["  ".join(self.head)] if self.head else [])]
        texts = [[_text(cell) for cell in row if not isinstance(cell, Drawn)] for row in self.rows]
        return "\n".join([*lines, *("  ".join(row) for row in texts)])

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col"{_CELL}>{escape(name)}</th>' for name in self.head)
        body = "".join(
            "<tr>" + "".join(f"<td{_CELL}>{_html(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        table = f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"
        return f'<div class="xcrepro-card"><strong>{escape(self.title)}</strong>{table}</div>'


class Drawn(str):
    """HTML that is finished, such as a picture; a card's text leaves it out."""


def _text(cell) -> str:
    return cell if isinstance(cell, str) else ", ".join(f"[{text}]" if hit else text for text, hit in cell)


def _html(cell) -> str:
    if isinstance(cell, Drawn):
        return cell
    if isinstance(cell, str):
        return escape(cell)
    return ", ".join(f"<strong>{escape(text)}</strong>" if hit else escape(text) for text, hit in cell)


def dataset(ds: Dataset) -> Card:
    """What a dataset is: its sizes, how long its tail is, one record."""
    counts = ds.label_counts
    parts = {"train": ds.train, "validation": ds.validation, "test": ds.test}
    points = ", ".join(f"{part.Y.shape[0]:,} {name}" for name, part in parts.items() if part is not None)
    rows: list[list] = [["points", points]]
    if ds.train.X is not None:
        rows.append(["features", f"{ds.train.X.shape[1]:,}"])
    each = ds.train.Y.nnz / max(ds.train.Y.shape[0], 1)
    rare = np.count_nonzero(counts < RARE) / max(counts.size, 1)
    rows.append(
        ["labels", f"{counts.size:,}; {each:.1f} per point; {100 * rare:.0f} % have fewer than {RARE} training points"]
    )
    rows.append(["tail", Drawn(_tail(counts))])
    if ds.entry is not None and ds.entry.licence:
        rows.append(["licence", ds.entry.licence])
    rows += [["note", note] for note in ds.notes]
    row = next(
        (at for at in range(min(50, ds.test.Y.shape[0])) if ds.test.Y.indptr[at + 1] > ds.test.Y.indptr[at]), None
    )
    if row is not None and (ds.label_names or ds.test.texts or ds.words):
        rows.append([f"test point {row}", _point(ds, row)])
        names = [_name(ds.label_names, label) for label in ds.test.Y[row].indices[: 2 * _SHOWN]]
        rows.append(["its labels", ", ".join(names)])
    return Card(ds.title, rows)


def _point(ds: Dataset, row: int) -> str:
    """What a test point says: its text, else its most telling words."""
    if ds.test.texts:
        return " / ".join(str(values[row]) for values in ds.test.texts.values())[:200]
    return ", ".join(ds.telling_words(row)) if ds.words and ds.test.X is not None else ""


def _name(names: Sequence[str], label: int) -> str:
    return names[label] if names else str(label)


def _log(values: np.ndarray) -> np.ndarray:
    from xcrepro.core.kernels import elementary

    return np.array([elementary.log(value) for value in values.tolist()])


def _tail(counts: np.ndarray) -> str:
    """How many training points the labels have, the most frequent first, as a small picture on logarithmic axes."""
    falling = np.sort(counts)[::-1]
    falling = falling[falling > 0]
    if falling.size < 2:
        return ""
    places, last = [0], falling.size - 1
    while places[-1] < last:
        places.append(min(last, places[-1] + 1 + places[-1] // 4))  # evenly on a logarithmic axis
    x, y = (_log(values) for values in (np.array(places) + 1.0, falling[places].astype(np.float64)))
    x, y = x / x[-1], y / max(y[0], 1e-9)
    line = " ".join(f"{120 * a:.1f},{26 - 24 * b:.1f}" for a, b in zip(x, y, strict=True))
    words = f"training points of the labels, from {falling[0]:,} down to {falling[-1]:,}, on logarithmic axes"
    return (
        f'<svg width="120" height="28" role="img" aria-label="{words}"><polyline points="{line}" fill="none" '
        f'stroke="currentColor" stroke-width="1.5"/></svg> {falling[0]:,} to {falling[-1]:,}'
    )


def top(found: TopK, data=None, rows: int | Sequence[int] = _SHOWN) -> Card:
    """Predictions of a few rows, the best first; see :meth:`xcrepro.TopK.show`."""
    ds = data if hasattr(data, "test") else None
    given = ds.test.Y if ds else getattr(data, "Y", data)
    truth = None if given is None else as_truth(given).to_csr()
    if truth is not None and truth.shape != (len(found), found.n_labels):
        rule = f"must have the {len(found):,} rows and {found.n_labels:,} labels of the predictions"
        raise ArgumentError("data", rule, f"{truth.shape[0]:,} rows and {truth.shape[1]:,} labels")
    chosen = range(min(rows, len(found))) if isinstance(rows, int) else rows
    if odd := [row for row in chosen if not 0 <= row < len(found)]:
        raise ArgumentError("rows", f"must be rows below {len(found)}", odd[0])
    names = ds.label_names if ds else ()
    lines = []
    for row in chosen:
        relevant = set() if truth is None else set(truth[row].indices.tolist())
        ids = [label for label in found.ids[row, : 2 * _SHOWN].tolist() if label >= 0]
        cells: list = [str(row)] + ([_point(ds, row)] if ds else [])
        lines.append([*cells, [(_name(names, label), label in relevant) for label in ids]])
    title = f"{len(found):,} rows, {found.k} places, {found.n_labels:,} labels"
    head = [
        "row",
        *(["point"] if ds else []),
        "predicted, best first" + ("; hits are marked" if truth is not None else ""),
    ]
    return Card(title, lines, head)
