"""A table as people read it: one form that becomes HTML, LaTeX and text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xcrepro.reports import compute, sentences
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
    file : str
        The CSV file behind it, which a page links.
    """

    name: str
    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    file: str = ""

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


def of_metrics(caption: str, metrics: pd.DataFrame, pairs: pd.DataFrame, name: str, ks: Sequence[int]) -> Grid:
    """A row a model, a column a metric of a section and k: the value, its interval, the best marked, and what chance may keep
    from being it."""
    there = set(metrics["metric"])
    wanted = [(metric, k) for metric in compute.OWN[name] if metric in there for k in ks]
    models, columns, cells = list(metrics["model"].unique()), ["model"], {}
    values = metrics.set_index(["model", "metric", "k"])
    for metric, k in wanted:
        columns.append(f"{metric}@{k}, {sentences.unit(metric)}")
        best = sentences.best_of(metrics, metric, k) if len(models) > 1 else ""
        near = sentences.not_clearly_worse(metrics, pairs, metric, k) if best else set()
        for model in models:
            row = values.loc[(model, metric, k)]
            ends = "" if np.isnan(row["low"]) else sentences.ends(row["low"], row["high"], metric, "–")
            equal = bool(best) and row["value"] == values.loc[(best, metric, k), "value"]
            cells[model, metric, k] = Cell(
                sentences.number(row["value"], metric, 2), ends, float(row["value"]), equal, model in near and not equal
            )
    rows = [[Cell(model), *(cells[model, metric, k] for metric, k in wanted)] for model in models]
    return Grid(name, caption, columns, rows)


def of_pairs(pairs: pd.DataFrame, models: Sequence[str]) -> Grid:
    """Every difference from both sides, so that a reader finds any two models and metric; bold where clear."""
    turned = pairs.assign(
        left=pairs["right"], right=pairs["left"], value=-pairs["value"], low=-pairs["high"], high=-pairs["low"]
    )
    both, order = pd.concat([pairs, turned], ignore_index=True), {model: at for at, model in enumerate(models)}
    both = both.sort_values(["left", "right"], key=lambda column: column.map(order), kind="stable")
    rows = []
    for row in both.to_dict("records"):
        low, high = (sentences.number(row[end], row["metric"]) for end in ("low", "high"))
        text = sentences.number(row["value"], row["metric"], 2, sign=True)
        apart = Cell(text, f"{low} to {high}", float(row["value"]), bold=bool(row["p"] < compute.LEVEL))
        chances = [(sentences.chance(row[name]), row[name]) for name in ("p", "p raw")]
        chances = [Cell(text.removeprefix("p ").removeprefix("= "), number=float(p)) for text, p in chances]
        rows.append([Cell(row["left"]), Cell(row["right"]), Cell(f"{row['metric']}@{row['k']}"), apart, *chances])
    columns = ["left", "right", "metric", "left less right", "p", "p raw"]
    return Grid("pairs", "Differences and their intervals, in points (entropy in nats); bold: clear", columns, rows)


def of_table(name: str, caption: str, table: pd.DataFrame, decimals: tables.Decimals = 2, file: str = "") -> Grid:
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
    return Grid(name, caption, list(shown.names), rows, file)


def one_line(text: str) -> str:
    """A foreign text on one line, without control characters.

    >>> one_line("a\\n  b\\x00\\u202ec")
    'a bc'
    """
    kept = "".join(sign for sign in " ".join(str(text).split()) if unicodedata.category(sign) not in ("Cc", "Cf", "Cs"))
    return kept.strip()
