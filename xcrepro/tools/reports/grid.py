"""A table as people read it: one form that becomes HTML, LaTeX and text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xcrepro.repro.drawing import latex, tables
from xcrepro.tools.reports import compute, html, sentences

LEADS, MAY_LEAD = "▲", "≈"
MARKS = {
    LEADS: "leads clearly: better than all others by more than chance",
    MAY_LEAD: "too close to call: it may be the best",
}
"""What a mark beside a value means."""
SCOREBOARD = "ranking"
"""The name of its files: what a paper prints."""
EMPTY = {"value": np.nan, "low": np.nan, "high": np.nan}
SIDE_BY_SIDE = 4  # models
MOST_ROWS = 200
"""Rows of a table on a page; its file has all."""


@dataclass(frozen=True)
class Cell:
    """One cell: its text, what is small beside it such as an interval, and the number that its column is sorted by.

    ``bold`` is the best of its column, or a clear difference; ``mark`` one of :data:`MARKS`.
    """

    text: str
    small: str = ""
    number: float | None = None
    bold: bool = False
    mark: str = ""

    def html(self, kind: str = "") -> str:
        """The cell of a table; ``kind`` are further attributes."""
        text = html.escape(self.text)
        text = f"<strong>{text}</strong>" if self.bold else text
        text += f'<span class="mark" title="{MARKS[self.mark]}">{self.mark}</span>' if self.mark else ""
        text += f" <small>{html.escape(self.small)}</small>" if self.small else ""
        value = "" if self.number is None else f' data-v="{self.number!r}"'
        return f"<td{kind}{value}>{text}</td>"

    def latex(self) -> str:
        text = latex.escape(self.text)
        text = rf"\textbf{{{text}}}" if self.bold else text
        text += {"": "", LEADS: r"$^\ast$", MAY_LEAD: r"$^\circ$"}[self.mark]
        return text + (rf" {{\scriptsize {latex.escape(self.small)}}}" if self.small else "")


@dataclass(frozen=True)
class Grid:
    """Rows of cells under named columns; ``name`` is that of its files, ``file`` the CSV file that a page links."""

    name: str
    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    file: str = ""

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
            for row in self.rows[:MOST_ROWS]
        ]
        cut = f" The first {MOST_ROWS} of {len(self.rows):,} rows." if len(self.rows) > MOST_ROWS else ""
        body, caption = "\n".join(rows), html.escape(self.caption + cut)
        link = f' (<a href="{html.escape(self.file)}">CSV</a>)' if self.file else ""
        return (
            f'<div class="box" tabindex="0" role="region" aria-label="{caption}"><table>\n<caption>{caption}{link}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
        )

    _repr_html_ = html

    def latex(self, origin: str = "") -> str:
        """A ``tabular``: the best in bold, what chance may keep from it with a circle, intervals small."""
        shape = "".join("r" if number else "l" for number in self.numeric)
        foot = [f"Data: {origin}."] if origin else []
        marks = {cell.mark for row in self.rows for cell in row}
        foot += ["Asterisk: a clear lead."] if LEADS in marks else []
        foot += ["Circle: chance may keep it from being the best."] if MAY_LEAD in marks else []
        return latex.tabular(shape, self.columns, ([cell.latex() for cell in row] for row in self.rows), foot)

    def records(self) -> list[dict[str, object]]:
        """Rows as dictionaries: the text of a cell, and beside it the exact number, the interval and the mark if there are."""

        def known(cell: Cell) -> dict[str, object]:
            named = {name: getattr(cell, name) for name in ("text", "number", "small", "bold", "mark")}
            return {name: value for name, value in named.items() if value not in ("", None, False)}

        return [dict(zip(self.columns, map(known, row), strict=True)) for row in self.rows]

    @property
    def numeric(self) -> list[bool]:
        """Of each column, whether it is one of numbers."""
        return [any(row[at].number is not None for row in self.rows) for at in range(len(self.columns))]


def of_metrics(
    name: str, caption: str, metrics: pd.DataFrame, pairs: pd.DataFrame, wanted: Sequence[tuple[str, int]]
) -> Grid:
    """Value and interval of each model and metric at k, the best in bold, with a mark where models are compared; of more models
    than fit beside each other a row a model."""
    models, cells = list(metrics["model"].unique()), {}
    values = metrics.set_index(["model", "metric", "k"])
    for metric, k in wanted:
        best = sentences.best_of(metrics, metric, k) if len(models) > 1 else ""
        near = sentences.not_clearly_worse(metrics, pairs, metric, k) if best else set()
        compared = best and len(sentences.against(pairs, best, metric, k)) > 0
        for model in models:
            row = values.loc[(model, metric, k)] if (model, metric, k) in values.index else EMPTY
            ends = "" if np.isnan(row["low"]) else sentences.ends(row["low"], row["high"], metric, "–")
            mark = (LEADS if len(near) == 1 else MAY_LEAD) if compared and model in near else ""
            text = sentences.number(row["value"], metric, 1 if name == SCOREBOARD else 2)
            bold = bool(best) and bool(row["value"] == values.loc[(best, metric, k), "value"])
            cells[model, metric, k] = Cell(
                text, ends, None if np.isnan(row["value"]) else float(row["value"]), bold, mark
            )
    units = [sentences.unit(metric) or "own unit" for metric, _ in wanted]
    names = [f"{metric}@{k}" + f", {unit}" * (unit != "%") for (metric, k), unit in zip(wanted, units, strict=True)]
    if name == SCOREBOARD or len(models) > SIDE_BY_SIDE:
        rows = [[Cell(model), *(cells[model, metric, k] for metric, k in wanted)] for model in models]
        return Grid(name, caption, ["model", *names], rows)
    rows = [[Cell(text), *(cells[model, *one] for model in models)] for text, one in zip(names, wanted, strict=True)]
    return Grid(name, caption, ["metric", *models], rows)


def scoreboard(
    metrics: pd.DataFrame,
    pairs: pd.DataFrame,
    wanted: Sequence[tuple[str, int]],
    ranked: Sequence[str],
    alive: Sequence[str],
    confidence_level: float,
) -> Grid:
    """The models in their order by what they are compared in; of three and more with the places that each may have."""
    metric, k = wanted[0]
    shown = pd.concat([metrics[metrics["model"] == model] for model in ranked], ignore_index=True)
    grid = of_metrics(SCOREBOARD, f"Percent, and {100 * confidence_level:g} % intervals", shown, pairs, wanted)
    if len(alive) < 3 or not len(pairs):
        return grid
    sign, rows = -1 if sentences.is_lower(metric) else 1, []
    for model, *rest in grid.rows:
        others = sentences.against(pairs, model.text, metric, k)
        clear = sign * others["value"][others["p"] < compute.LEVEL]
        first, last = 1 + int((clear < 0).sum()), len(alive) - int((clear > 0).sum())
        place = f"{first}" if first == last else f"{first}–{last}"
        rows.append([model, Cell(place if model.text in alive else "-", number=float(first)), *rest])
    return dataclasses.replace(grid, columns=["model", f"place in {metric}@{k}", *grid.columns[1:]], rows=rows)


def of_pairs(pairs: pd.DataFrame) -> Grid:
    """Every difference once; bold where clear."""
    rows = []
    for row in pairs.to_dict("records"):
        low, high = (sentences.number(row[end], row["metric"]) for end in ("low", "high"))
        text = sentences.number(row["value"], row["metric"], 2, sign=True)
        apart = Cell(text, f"{low} to {high}", float(row["value"]), bold=bool(row["p"] < compute.LEVEL))
        chances = [(sentences.chance(row[name]), row[name]) for name in ("p", "p raw")]
        chances = [Cell(text.removeprefix("p ").removeprefix("= "), number=float(p)) for text, p in chances]
        rows.append([Cell(row["left"]), Cell(row["right"]), Cell(f"{row['metric']}@{row['k']}"), apart, *chances])
    columns = ["left", "right", "metric", "left less right", "p", "p raw"]
    return Grid("pairs", "Differences and their intervals, in points (entropy in nats); bold: clear", columns, rows)


def of_table(name: str, caption: str, table: pd.DataFrame, decimals: tables.Decimals = 2, file: str = "") -> Grid:
    """Any table, rounded as :func:`xcrepro.repro.drawing.tables.show` has it."""
    shown, flat = tables.show(table, decimals), tables.flat(table)
    numeric = [kind in ("float", "int") for kind in shown.kinds]

    def cell(text: str, known: bool, value) -> Cell:
        return Cell(text, number=float(value) if known and not pd.isna(value) else None)

    both = zip(shown.rows, flat[shown.names].itertuples(index=False), strict=True)
    rows = [[*map(cell, texts, numeric, values)] for texts, values in both]
    return Grid(name, caption, list(shown.names), rows, file)
