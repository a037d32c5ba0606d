"""What the site adds to the committed figures: a line under each, a page with sliders, and words that explain themselves.

Nothing is computed here: the page carries the rows of committed tables, and ``_static/explore.js`` draws them.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from docs import markdown
from xcrepro.repro.drawing import looks
from xcrepro.repro.engine import notebooks
from xcrepro.repro.engine.manifest import Entry

_PICTURE = re.compile(r"!\[[^\]]*\]\([^()\s]*figures/([\w-]+/[\w-]+)\.png\)\n\n\*(?:.+\n?)+")
"""A picture and the paragraph of its caption, as the notebooks' first cells have them."""


# ---------------------------------------------------------------- the line under each figure


def line(root: Path, entry: Entry, picture: str, rests_on: list[str], here: str = "") -> str:
    """What stands under a figure: its cell, its data, how to make it again, what it rests on.

    ``here`` is the way from the page to the sources' root; ``picture`` the figure's name without suffix.
    """
    title, slug = place(entry, f"{picture}.png")
    with (root / f"figures/{entry.id.partition('/')[0]}/{picture}.csv").open(newline="", encoding="utf-8") as file:
        data = next(csv.DictReader(file))["data"]
    parts = [
        f"Cell under [{title}]({here}notebooks/{entry.id}.ipynb{slug})",
        f"data: {data.rstrip('.')}",
        f"again: `xcrepro run {entry.id}`",
        f"rests on {', '.join(rests_on)}",
    ]
    return " · ".join(parts)


def place(entry: Entry, picture: str) -> tuple[str, str]:
    """The heading above the cell that draws a picture, and its anchor; the notebook's title where there is none."""
    heading, cells = (entry.title, ""), notebooks.read(entry.notebook)["cells"]
    for cell in cells[1:]:
        if cell["cell_type"] == "markdown":
            for words in re.findall(r"^##+ (.+)$", notebooks.text(cell["source"]), re.MULTILINE):
                heading = (words, "#" + re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-"))
        elif any(f"/{picture})" in notebooks.text(o.get("data", {}).get("text/markdown")) for o in cell["outputs"]):
            return heading
    return entry.title, ""


def with_lines(notebook: dict, said: Callable[[str], str]) -> dict:
    """A notebook whose pictures have their line below the caption; ``said`` gives it for ``paper/name``."""

    def more(match: re.Match) -> str:
        return f"{match[0].rstrip()}\n\n<small>\n\n{said(match[1])}\n\n</small>\n\n"

    cells = []
    for cell in notebook["cells"]:
        text = {"source": _PICTURE.sub(more, notebooks.text(cell["source"]))} if cell["cell_type"] == "markdown" else {}
        cells.append(cell | text)
    return {**notebook, "cells": cells}


# ---------------------------------------------------------------- figures with sliders

CHARTS: tuple[tuple[str, str, str, str], ...] = (
    (
        "reliability",
        "calibration/fig7_fig10_to_12-bins",
        "Are the scores probabilities?",
        "Each mark is a bin of scores, before (open) and after isotonic regression (filled): its mean score and the share of "
        "hits. A calibrated model is on the diagonal. Move the number of bins: with one bin, errors of opposite sign cancel, "
        "so the ECE is smallest where it sees least.",
    ),
    (
        "intervals",
        "xcrepo/train_baselines",
        "Which model leads?",
        "Values with 95 % intervals over the test points. Change the metric: a model may lead in P@k and trail in PSP@k.",
    ),
    (
        "path",
        "coverage/frontier-path",
        "What does coverage cost?",
        "The mixed rule weighs precision by β against coverage. At β = 0 it is the greedy coverage rule, and with a large β it "
        "chooses the most probable labels. The point that you move along the path is filled.",
    ),
)
"""Kind of chart, committed table, title, how to read it."""


def page(root: Path) -> str:
    """The page with sliders; each chart carries the rows of its committed table."""
    parts = [
        "# Figures with sliders",
        "You read a figure and ask what it would look like at another k or with other bins. These three are drawn in your "
        "browser from the committed tables. Nothing is fetched and nothing is trained.",
    ]
    for kind, table, title, text in CHARTS:
        with (root / f"figures/{table}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        data = rows[0]["data"]
        rows = [{name: _number(value) for name, value in row.items() if name != "data"} for row in rows]
        names = sorted({row["model"] for row in rows if "model" in row})
        spec = {"kind": kind, "rows": rows, "colours": {name: looks.of(name).colour for name in names}}
        content = json.dumps(spec, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
        id = table.partition("-")[0]
        figure = (
            f'<figure class="explore"><script type="application/json">{content}</script>\n'
            "<noscript>This figure needs JavaScript.</noscript></figure>"
        )
        parts += [
            f"## {title}",
            text,
            f"```{{raw}} html\n{figure}\n```",
            f"Data: {data.rstrip('.')}. [The notebook](notebooks/{id}.ipynb), [the table](figures/{table}.csv).",
        ]
    return markdown.page(*parts)


def _number(text: str) -> float | str | None:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else None  # JSON has no NaN


# ---------------------------------------------------------------- words that explain themselves


def terms(glossary: str) -> dict[str, list[str]]:
    """The metrics of the glossary: how each is written -> what it means, and its anchor.

    >>> terms('## Metrics\\n\\n<a id="pk"></a>**P@k, R@k.** P@k is a share. R@k is another. More.\\n\\n## Else\\n')
    {'P@k': ['P@k is a share. R@k is another.', 'pk'], 'R@k': ['P@k is a share. R@k is another.', 'pk']}
    """
    found: dict[str, list[str]] = {}
    metrics = glossary.partition("## Metrics")[2].partition("\n## ")[0]
    for anchor, head, text in re.findall(r'<a id="([\w-]+)"></a>\*\*(.+?)\.\*\* ((?:.+\n?)+)', metrics):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
        sentences = re.split(r"(?<=\.) (?=[A-Z*])", text)
        for name in re.split(r"[,;] |(?= \()", head):
            name = name.strip(" ()")
            found[name[0].upper() + name[1:] if "-" in name else name] = [_plain(" ".join(sentences[:2])), anchor]
        for sentence in sentences:
            for name in re.findall(r"\*\*(\S+@k)\*\*", sentence):
                found[name] = [_plain(sentence), anchor]
    return found


def _plain(text: str) -> str:
    return text.replace("*", "")


def terms_script(root: Path) -> str:
    """What the pages load before ``terms.js``: the definitions, so that nothing is fetched."""
    found: Mapping[str, list[str]] = terms((root / "notebooks/glossary.md").read_text(encoding="utf-8"))
    return f"window.XC_TERMS = {json.dumps(found, ensure_ascii=False, indent=0)};\n"
