"""A table as people read it: one form that becomes HTML, LaTeX and text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xcrepro.reports import sentences
from xcrepro.repro import tables


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes
    ----------
    text : str
    small : str
        Beside the text, such as an interval.
    number : float or None
        What the column is sorted by; None for text.
    bold : bool
        The best of its column; of a difference, a clear one.
    unclear : bool
        One that chance may keep from being the best.
    """

    text: str
    small: str = ""
    number: float | None = None
    bold: bool = False
    unclear: bool = False


@dataclass(frozen=True)
class Grid:
    """Rows of cells under named columns.

    Attributes
    ----------
    name : str
        Of its files; within a report no two have the same.
    caption : str
    columns : list of str
    rows : list of list of Cell
    """

    name: str
    caption: str
    columns: list[str]
    rows: list[list[Cell]]

    def __repr__(self) -> str:
        texts = [[" ".join(filter(None, (cell.text, cell.small))) for cell in row] for row in self.rows]
        kinds = [
            "float" if any(row[i].number is not None for row in self.rows) else "text" for i in range(len(self.columns))
        ]
        return repr(tables.Shown(self.columns, kinds, texts))

    def _repr_html_(self) -> str:
        from xcrepro.reports import html

        return html.table(self)

    def numeric(self, column: int) -> bool:
        """Whether a column is one of numbers."""
        return any(row[column].number is not None for row in self.rows)


def of_metrics(
    name: str,
    caption: str,
    metrics: pd.DataFrame,
    pairs: pd.DataFrame,
    names: Sequence[str],
    ks: Sequence[int],
    spread: Sequence[str] = ("low", "high"),
) -> Grid:
    """A row a model, a column a metric and k: the value, its interval, the best one marked, and what chance may keep from it.

    Parameters
    ----------
    name, caption : str
    metrics, pairs : DataFrame
        From :func:`xcrepro.reports.compute.metrics_and_pairs`.
    names : sequence of str
        The metrics; those that ``metrics`` does not have are left out.
    ks : sequence of int
    spread : sequence of str
        The two columns that hold the interval.

    Returns
    -------
    Grid
    """
    there = set(metrics["metric"])
    wanted = [(metric, k) for metric in names if metric in there for k in ks]
    models, columns, cells = list(metrics["model"].unique()), ["model"], {}
    values = metrics.set_index(["model", "metric", "k"])
    for metric, k in wanted:
        unit = sentences.unit(metric)
        columns.append(f"{metric}@{k}" + (", %" if unit == "%" else f", {unit}"))
        best = sentences.best_of(metrics, metric, k) if len(models) > 1 else ""
        near = sentences.not_clearly_worse(metrics, pairs, metric, k) if best else set()
        for model in models:
            row = values.loc[(model, metric, k)]
            ends = "" if np.isnan(row[spread[0]]) else "–".join(sentences.number(row[end], metric) for end in spread)
            equal = bool(best) and row["value"] == values.loc[(best, metric, k), "value"]
            cells[model, metric, k] = Cell(
                sentences.number(row["value"], metric, 2), ends, float(row["value"]), equal, model in near and not equal
            )
    rows = [[Cell(model), *(cells[model, metric, k] for metric, k in wanted)] for model in models]
    return Grid(name, caption, columns, rows)


def of_table(name: str, caption: str, table: pd.DataFrame, decimals: tables.Decimals = 2) -> Grid:
    """Any table, rounded as :func:`xcrepro.repro.tables.show` has it."""
    shown = tables.show(table, decimals)
    flat = tables.flat(table)

    def cell(text: str, kind: str, value) -> Cell:
        known = kind in ("float", "int") and not pd.isna(value)
        return Cell(text, number=float(value) if known else None)

    columns = [flat[column] for column in shown.names]
    rows = [
        [cell(text, kind, column.iloc[at]) for text, kind, column in zip(texts, shown.kinds, columns, strict=True)]
        for at, texts in enumerate(shown.rows)
    ]
    return Grid(name, caption, list(shown.names), rows)


def one_line(text: str) -> str:
    """A foreign text on one line, without control characters.

    >>> one_line("a\\n  b\\x00\\u202ec")
    'a bc'
    """
    kept = "".join(sign for sign in " ".join(str(text).split()) if unicodedata.category(sign) not in ("Cc", "Cf", "Cs"))
    return kept.strip()
