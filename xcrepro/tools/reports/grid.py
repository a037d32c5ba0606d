"""A table as people read it: one form that becomes HTML, LaTeX and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xcrepro.repro.drawing import latex, tables
from xcrepro.tools.reports import compute, html, sentences


@dataclass(frozen=True)
class Cell:
    """One cell: its text, what is small beside it such as an interval, and the number that its column is sorted by.

    ``bold`` is the best of its column, or a clear difference; ``unclear`` one that chance may keep from being the best.
    """

    text: str
    small: str = ""
    number: float | None = None
    bold: bool = False
    unclear: bool = False

    def html(self, kind: str = "") -> str:
        """The cell of a table; ``kind`` are further attributes."""
        text = html.escape(self.text)
        text = f"<strong>{text}</strong>" if self.bold else text
        text += '<span title="chance may keep it from being best">°</span>' if self.unclear else ""
        text += f" <small>{html.escape(self.small)}</small>" if self.small else ""
        value = "" if self.number is None else f' data-v="{self.number!r}"'
        return f"<td{kind}{value}>{text}</td>"

    def latex(self) -> str:
        text = latex.escape(self.text)
        text = rf"\textbf{{{text}}}" if self.bold else text
        text += r"$^\circ$" if self.unclear else ""
        return text + (rf" {{\scriptsize {latex.escape(self.small)}}}" if self.small else "")


@dataclass(frozen=True)
class Grid:
    """Rows of cells under named columns; ``name`` is that of its files, ``file`` the CSV file that a page links."""

    name: str
    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    file: str = ""
    printed: tuple[list[int], list[int]] | None = None  # rows and columns of a paper; None: all

    def __repr__(self) -> str:
        texts = [[" ".join(filter(None, (cell.text, cell.small))) for cell in row] for row in self.rows]
        kinds = ["float" if number else "text" for number in self.numeric]
        return repr(tables.Shown(self.columns, kinds, texts))

    def html(self) -> str:
        """A whole table in a box of its own that scrolls both ways, its head and its first column staying in sight."""
        kinds = [' class="n"' if number else "" for number in self.numeric]
        columns = zip(self.columns, kinds, strict=True)
        head = "".join(f'<th scope="col"{kind}>{html.escape(name)}</th>' for name, kind in columns)
        rows = [
            "<tr>" + "".join(cell.html(kind) for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
            for row in self.rows
        ]
        body, caption = "\n".join(rows), html.escape(self.caption)
        link = f' (<a href="{html.escape(self.file)}">CSV</a>)' if self.file else ""
        return (
            f'<div class="box" tabindex="0" role="region" aria-label="{caption}"><table>\n<caption>{caption}{link}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
        )

    _repr_html_ = html

    def latex(self, origin: str = "") -> str:
        """A ``tabular``: the best in bold, what chance may keep from it with a circle, intervals small."""
        if self.printed is not None:
            rows, columns = self.printed
            cells = [[self.rows[row][column] for column in columns] for row in rows]
            return Grid(self.name, self.caption, [self.columns[column] for column in columns], cells).latex(origin)
        shape = "".join("r" if number else "l" for number in self.numeric)
        foot = [f"Data: {origin}."] if origin else []
        if any(cell.unclear for row in self.rows for cell in row):
            foot.append("Circle: chance may keep it from being the best.")
        return latex.tabular(shape, self.columns, ([cell.latex() for cell in row] for row in self.rows), foot)

    @property
    def numeric(self) -> list[bool]:
        """Of each column, whether it is one of numbers."""
        return [any(row[at].number is not None for row in self.rows) for at in range(len(self.columns))]


def of_metrics(caption: str, metrics: pd.DataFrame, pairs: pd.DataFrame, name: str, ks: Sequence[int]) -> Grid:
    """A row a model, a column a metric of a section and k: value and interval; the best and what may be it are marked."""
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
            text, unclear = sentences.number(row["value"], metric, 2), model in near and not equal
            cells[model, metric, k] = Cell(text, ends, float(row["value"]), equal, unclear)
    rows = [[Cell(model), *(cells[model, metric, k] for metric, k in wanted)] for model in models]
    asked = {*zip(pairs["metric"], pairs["k"], strict=True)}  # what models are compared in
    kept = [0, *(at for at, one in enumerate(wanted, 1) if one in asked)]
    return Grid(name, caption, columns, rows, printed=([*range(len(rows))], kept) if len(kept) > 1 else None)


def of_pairs(pairs: pd.DataFrame, models: Sequence[str]) -> Grid:
    """Every difference from both sides, so that a reader finds any two models and metric; bold where clear."""
    both = pd.concat([pairs, sentences.turned(pairs)], ignore_index=True)
    both = both.sort_values(["left", "right"], key=lambda column: column.map([*models].index), kind="stable")
    rows = []
    for row in both.to_dict("records"):
        low, high = (sentences.number(row[end], row["metric"]) for end in ("low", "high"))
        text = sentences.number(row["value"], row["metric"], 2, sign=True)
        apart = Cell(text, f"{low} to {high}", float(row["value"]), bold=bool(row["p"] < compute.LEVEL))
        chances = [(sentences.chance(row[name]), row[name]) for name in ("p", "p raw")]
        chances = [Cell(text.removeprefix("p ").removeprefix("= "), number=float(p)) for text, p in chances]
        rows.append([Cell(row["left"]), Cell(row["right"]), Cell(f"{row['metric']}@{row['k']}"), apart, *chances])
    columns = ["left", "right", "metric", "left less right", "p", "p raw"]
    once = [at for at, row in enumerate(both.itertuples()) if [*models].index(row.left) < [*models].index(row.right)]
    caption = "Differences and their intervals, in points (entropy in nats); bold: clear"
    return Grid("pairs", caption, columns, rows, printed=(once, [*range(len(columns))]))


def of_table(name: str, caption: str, table: pd.DataFrame, decimals: tables.Decimals = 2, file: str = "") -> Grid:
    """Any table, rounded as :func:`xcrepro.repro.drawing.tables.show` has it."""
    shown, flat = tables.show(table, decimals), tables.flat(table)
    numeric = [kind in ("float", "int") for kind in shown.kinds]
    rows = [
        [
            Cell(text, number=float(value) if known and not pd.isna(value) else None)
            for text, known, value in zip(texts, numeric, values, strict=True)
        ]
        for texts, values in zip(shown.rows, flat[shown.names].itertuples(index=False), strict=True)
    ]
    return Grid(name, caption, list(shown.names), rows, file)
