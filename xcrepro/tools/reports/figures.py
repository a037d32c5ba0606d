"""The figures of a report, each of a table of :mod:`~xcrepro.tools.reports.compute`, in percent (:func:`in_percent`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from xcrepro.repro.drawing import figures, looks
from xcrepro.repro.drawing.looks import Look
from xcrepro.tools.reports import compute, sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from xcrepro.tools.reports.measured import Measured

Looks = Mapping[str, Look]
"""Model -> its look, the same in all figures of a report."""
MOST = 15
"""Models of which a frame has the values."""
_FRAME = ["row", "model", "value", "low", "high", "clear"]
PANELS = 3  # in a row
FEW = 20
"""Pairs below which a bin of a reliability diagram is not drawn, unless no bin has as many."""
_SPREAD = 0.72  # of the room of a place on an axis that its models take together


def in_percent(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The table with some fractions as percent."""
    return table.assign(**{name: 100 * table[name] for name in columns})


def _interval(panel, row: pd.Series, at: float, **marker) -> None:
    """A value and its interval along x."""
    if not np.isnan(row["low"]):
        _ends(panel.hlines, at, row["low"], row["high"], marker["color"], 1.2)
    panel.plot([row["value"]], [at], linestyle="none", **marker)


def _ends(lines, at, low, high, colour: str, width: float = 0.8) -> None:
    """Intervals as thin lines."""
    lines(at, low, high, color=colour, linewidth=width, label="_guide interval")


def _name_rows(panel, names: Sequence[str]) -> None:
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.5, -0.5)


def plain(name: str, most: int = 28) -> str:
    """A foreign name for a figure: no mathematics, one line, cut where it is long.

    >>> plain("a $x$\\nb"), len(plain("x" * 99))
    ('a \\\\$x\\\\$ b', 28)
    """
    text = " ".join(name.split())
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.replace("$", r"\$")


def overview(table: pd.DataFrame, look: Looks, what: str, sentence: str) -> Figure:
    """Values, or differences from 0, with intervals in one frame: a row each name, in it one model or several; filled where
    ``clear``."""
    rows, models = list(table["row"].unique()), list(table["model"].unique())
    several = bool(table["row"].duplicated().any())
    shift = dict(zip(models, _side_by_side(len(models)) if several else [0.0] * len(models), strict=True))
    with figures.new(4.8, 0.95 + len(rows) * (0.16 + 0.1 * len(models) if several else 0.26)) as (fig, panel):
        if "difference" in what:
            panel.axvline(0, color=looks.INK, linewidth=1, label="_guide none")
        for _, row in table.iterrows():
            own = look[row["model"]]
            face = own.colour if row["clear"] else looks.WHITE
            _interval(panel, row, rows.index(row["row"]) + shift[row["model"]], **own.mark(), markerfacecolor=face)
        _name_rows(panel, [plain(name) for name in rows])
        panel.set(xlabel=what)
        figures.draws(panel, x="value")
        looks.title(fig, sentence)
        if several:
            marks = [Line2D([], [], linestyle="", label=plain(name), **look[name].mark()) for name in models]
            fig.legend(handles=marks, loc="outside lower center", ncols=min(len(models), 3))
    return fig


def standing(m: Measured) -> tuple[Figure, pd.DataFrame]:
    """Values with their intervals in what models are compared in; of many models in the first of it."""
    many = len(m.given.models) > compute.MANY
    rows = []
    for metric, k in m.percent[:1] if many else m.percent:
        near = sentences.not_clearly_worse(m.values, m.pairs, metric, k)
        for row in m.rows(metric, k).loc[m.ranked[:MOST]].to_dict("records"):
            named = row["model"] if many else f"{metric}@{k}"
            rows.append((named, row["model"], row["value"], row["low"], row["high"], row["model"] in near))
    title = "Filled: may be the best" if len(m.pairs) else "Values and their intervals"
    title = f"The best {MOST} of {len(m.ranked)} models. {title}" if many and len(m.ranked) > MOST else title
    table = in_percent(pd.DataFrame(rows, columns=_FRAME), _FRAME[2:5])
    return overview(table, m.look, "{}@{}, %".format(*m.percent[0]) if many else "%", title), table


def apart(m: Measured) -> tuple[Figure, pd.DataFrame]:
    """All differences from the best model, so that the better is at the right."""
    rows, leader = [], plain(m.leader, 20)
    for metric, k in m.percent:
        sign = 1 if sentences.is_lower(metric) else -1
        for row in sentences.against(m.pairs, m.leader, metric, k).to_dict("records"):
            ends = sorted((sign * row["low"], sign * row["high"]))
            rows.append((f"{metric}@{k}", row["other"], sign * row["value"], *ends, row["p"] < compute.LEVEL))
    who = plain(rows[0][1], 20) if len(m.alive) == 2 else "Others"
    table = in_percent(pd.DataFrame(rows, columns=_FRAME), _FRAME[2:5])
    what = f"difference from {leader} in points; right of the line is better"
    return overview(table, m.look, what, f"{who} beside {leader}; filled: more than chance"), table


def _side_by_side(n: int) -> np.ndarray:
    """Where n models stand around a place of the axis."""
    return (np.arange(n) - (n - 1) / 2) * _SPREAD / n


def bins(table: pd.DataFrame, look: Looks, k: int) -> Figure:
    """Macro-F1 by bin of train frequency, below each bin's ceiling."""
    part = table[table["k"] == k]
    models, names = list(part["model"].unique()), list(part["bin"].unique())
    with figures.new(looks.MEDIUM, 3.4) as (fig, panel):
        for model, shift in zip(models, _side_by_side(len(models)), strict=True):
            rows = part[part["model"] == model]
            at = np.arange(len(rows)) + shift
            panel.bar(at, rows["value"], _SPREAD / len(models), label=plain(model), **look[model].bar())
            _ends(panel.vlines, at, rows["low"], rows["high"], looks.INK)
        for at, name in enumerate(names):
            row = part[part["bin"] == name].iloc[0]
            dash = "-" if row["ceiling is"] == "exact" else ":"
            panel.plot([at - 0.45, at + 0.45], [row["ceiling"]] * 2, color=looks.RUST, linestyle=dash, linewidth=1.5)
        labels = [f"{name}\n{part[part['bin'] == name]['labels'].iloc[0]:,} labels" for name in names]
        panel.set_xticks(range(len(names)), labels)
        panel.set(xlabel="train points of the label", ylabel=f"macro-F1@{k}, %", ylim=(0, None))
        figures.draws(panel, y=["value", "ceiling"])
        looks.title(fig, "Macro-F1 by train frequency; level lines: the most that any predictions could have")
        looks.legend(fig, panel, ncols=min(len(models), 4))
    return fig


def bands(table: pd.DataFrame, k: int) -> Figure:
    """What each band of train frequency contributes to P@k and PSP@k, stacked."""
    models, names = list(table["model"].unique()), list(table["band"].unique())
    shades = np.linspace(0.15, 1.0, len(names))
    with figures.new(looks.WIDE, 1.3 + 0.28 * len(models), ncols=2, sharey=True) as (fig, axes):
        for panel, metric in zip(axes, ("P", "PSP"), strict=True):
            left = np.zeros(len(models))
            for name, shade in zip(names, shades, strict=True):
                rows = table[table["band"] == name].set_index("model").reindex(models)
                at = range(len(models))
                panel.barh(
                    at, rows[metric], 0.7, left=left, color=looks.TEAL, alpha=shade, edgecolor=looks.WHITE, label=name
                )
                left += rows[metric].to_numpy()
            panel.set(xlabel=f"{metric}@{k}, %")
            figures.draws(panel, x=metric)
        _name_rows(axes[0], [plain(name) for name in models])
        looks.title(fig, f"What labels of each train frequency contribute to P@{k} and PSP@{k}")
        looks.legend(fig, axes[0], title="train points of the label")
    return fig


def reliability(table: pd.DataFrame, look: Looks, k: int, how: str = "isotonic regression") -> Figure:
    """Reliability diagrams before and after calibration, a panel a model."""
    models = list(table["model"].unique())
    cols = 2 if len(models) == 4 else min(len(models), PANELS)
    rows = -(-len(models) // cols)
    size = {"width": looks.WIDE if cols > 1 else looks.NARROW / 1.6, "height": 0.7 + 2.6 * rows}
    with figures.new(**size, ncols=cols, nrows=rows, squeeze=False, sharex=True, sharey=True) as (fig, axes):
        for panel, model in zip(axes.flat, models, strict=False):
            panel.plot([0, 1], [0, 1], color=looks.GREY, linewidth=0.8, linestyle=":", label="_guide perfect")
            for state, face in (("before", look[model].colour), ("after", looks.WHITE)):
                part = table[(table["model"] == model) & (table["state"] == state)]
                part = part[part["count"] >= max(1, min(FEW, part["count"].max()))]
                if state == "before":
                    panel.vlines(part["confidence"], part["low"], part["high"], color=looks.GREY, linewidth=5, alpha=0.3,
                                 label="_guide chance")  # fmt: skip
                own = {"color": look[model].colour, "marker": look[model].marker, "markerfacecolor": face}
                panel.plot(part["confidence"], part["accuracy"], linestyle="", label=state, **own)
            panel.set(title=plain(model), xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
            figures.draws(panel, x="confidence", y="accuracy")
        looks.label_grid(axes, "mean score", "share of hits", len(models))
        marks = {"marker": "o", "color": looks.GREY, "linestyle": ""}
        shown = [Line2D([], [], label="before calibration", **marks)]
        shown += [Line2D([], [], label=f"after {how}", markerfacecolor=looks.WHITE, **marks)]
        shown += [Line2D([], [], color=looks.GREY, linewidth=5, alpha=0.3, label="what chance allows, before")]
        fig.legend(handles=shown, loc="outside lower center", ncols=3 if cols > 1 else 1)
        looks.title(fig, f"How often predictions are right, by their score ({k} per point)")
    return fig


def price(table: pd.DataFrame, look: Looks) -> Figure:
    """P@k against coverage@k along beta."""
    models, k = list(table["model"].unique()), table["k"].iloc[0]
    with figures.new(looks.NARROW, 3.4) as (fig, panel):
        for model in models:
            rows, colour = table[table["model"] == model], look[model].colour
            panel.plot(rows["Cov"], rows["P"], label=plain(model), **look[model].line())
            _ends(panel.vlines, rows["Cov"], rows["P low"], rows["P high"], colour)
            _ends(panel.hlines, rows["P"], rows["Cov low"], rows["Cov high"], colour)
        panel.set(xlabel=f"coverage@{k}, %", ylabel=f"P@{k}, %")
        figures.draws(panel, x="Cov", y="P")
        looks.title(fig, "The price of coverage: beta from infinity (left) to 0")
        looks.legend(fig, panel, ncols=min(len(models), 4))
    return fig


def ranks(placed: pd.DataFrame, look: Looks, what: str) -> Figure:
    """A critical-difference diagram: mean ranks, and a bar over models that are nearer than the critical difference, if any."""
    models, mean = list(placed["model"]), placed["mean rank"].to_numpy()
    apart = compute.critical_difference(len(models), placed.shape[1] - 2)
    with figures.new(looks.MEDIUM, 1.1 + 0.26 * len(models)) as (fig, panel):
        for at, (model, rank) in enumerate(zip(models, mean, strict=True)):
            panel.plot([rank], [at], marker=look[model].marker, color=look[model].colour, linestyle="none")
        # Beside the ranks, a bar over each stretch of models that are nearer to each other than the critical difference.
        ends = [] if np.isnan(apart) else [int(np.searchsorted(mean, rank + apart, side="right")) - 1 for rank in mean]
        groups = [(at, end) for at, end in enumerate(ends) if end > at and (at == 0 or end > ends[at - 1])]
        for place, (first, last) in enumerate(groups, start=1):
            beside = mean[-1] + 0.06 * place * max(float(np.ptp(mean)), 0.5)
            panel.vlines(
                beside, first - 0.2, last + 0.2, color=looks.GREY, linestyle="-", linewidth=3, label="_guide group"
            )
        _name_rows(panel, [plain(name) for name in models])
        panel.set(xlabel=f"mean rank in {what} over {placed.shape[1] - 2} datasets (1 is best)")
        figures.draws(panel, x="mean rank")
        few = f"Mean ranks; {placed.shape[1] - 2} datasets are too few for a critical difference"
        grey = f"Grey: not told apart (critical difference {apart:.2f}, Nemenyi at 5 %)"
        looks.title(fig, few if np.isnan(apart) else grey)
    return fig
