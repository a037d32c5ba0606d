"""One look for every figure: a method's colour, mark, dash and hatch; four widths; titles, legends and small print.

Colours differ in lightness as well, and marks, dashes and hatches tell the methods apart in grey.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

NARROW, MEDIUM, WIDE, PAGE = 6.4, 7.4, 8.4, 9.4
"""Widths of a figure, in inches."""

SMALL, TINY = 8, 6.5
"""Sizes of text inside a figure, in points: names beside marks, and what has to be smaller still."""

INK, RUST, TEAL, VIOLET, AMBER, SKY = "#1b2a49", "#96301c", "#2f7f79", "#a07fc0", "#e39a2d", "#5b9bd5"
GREY, LEAF, ROSE, WHITE = "#4d4d4d", "#5b8a3a", "#b2477e", "#ffffff"
"""The palette; from dark to light the first six."""
PAPER = {"facecolor": WHITE, "edgecolor": "none", "alpha": 0.8, "pad": 1}
"""A box behind words that stand inside a panel, where a line may pass."""


@dataclasses.dataclass(frozen=True)
class Look:
    """How one method, or one place k, is drawn everywhere: as matplotlib takes them, an empty hatch for a plain bar."""

    colour: str
    marker: str = "o"
    dash: str | tuple = "-"
    hatch: str = ""

    def line(self) -> dict:
        """Keywords for ``plot`` and ``errorbar``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}

    def mark(self) -> dict:
        """Keywords for ``scatter``."""
        return {"color": self.colour, "marker": self.marker}

    def bar(self) -> dict:
        """Keywords for ``bar`` and ``barh``: a hatched bar is white with hatches in its colour."""
        if not self.hatch:
            return {"color": self.colour, "edgecolor": INK, "linewidth": 0.6}
        return {"color": WHITE, "edgecolor": self.colour, "hatch": self.hatch, "linewidth": 0.6}


METHODS: dict[str, Look] = {
    # ours, and the printed methods of the same name
    "Popularity": Look(GREY, "x", ":", "xx"),
    "1-vs-All": Look(TEAL, "s", "--"),
    "Logistic": Look(TEAL, "s", "--"),  # the same model, under reeval's name
    "DiSMEC": Look(LEAF, "D", (0, (1, 1)), "\\\\\\\\"),
    "PLT": Look(RUST, "^", "-."),
    "Parabel": Look(ROSE, "v", (0, (5, 1)), "++"),
    "FastXML": Look(AMBER, "o", "-"),
    "PfastXML": Look(VIOLET, "P", (0, (3, 1, 1, 1))),
    "PfastreXML": Look(INK, "*", "-"),
    "Neural": Look(SKY, "h", (0, (5, 1, 1, 1, 1, 1))),
    "Attention": Look(LEAF, "p", (0, (4, 1, 1, 1)), "oo"),
    "Neural, BCE": Look(INK, "o", "-"),
    "Neural, squared hinge": Look(RUST, "s", "--"),
    "Neural, focal": Look(TEAL, "^", "-."),
    "Neural, asymmetric": Look(AMBER, "D", ":"),
    "Two towers": Look(VIOLET, "D", "-"),
    "Two towers, encoder": Look(VIOLET, "<", "--"),
    "PLT + labels": Look(ROSE, "v", (0, (5, 1))),
    "Neural + labels": Look(SKY, "X", ":"),
    "PLT, flat": Look(TEAL, "s", "--"),
    "PLT, k-means, one level": Look(INK, "o", "-"),
    "PLT, 2-means": Look(RUST, "^", "-."),
    "PLT, by frequency": Look(AMBER, "D", ":"),
    "PLT, random, one level": Look(VIOLET, "P", (0, (3, 1, 1, 1))),
    "PLT, random": Look(ROSE, "v", (0, (5, 1))),
    # printed only
    "SLEEC": Look(GREY, "X", "--", "||"),
    "SVM": Look(INK, "s", "-", "---"),
    "AttentionXML": Look(AMBER, "o", "--"),
    "X-Transformer": Look(TEAL, "D", "-.", "////"),
    "APLC-XLNet": Look(SKY, "v", ":"),
    "LightXML": Look(VIOLET, "P", (0, (5, 1)), "...."),
    "CascadeXML": Look(INK, "v", (0, (3, 1))),
    "PS-PLT": Look(TEAL, "v", "--"),
    "BRS-PLT": Look(VIOLET, "X", ":"),
    "COV-PLT": Look(INK, "o", "-"),
    "COVβ-PLT": Look(INK, "o", "-"),
}
DATASETS: dict[str, Look] = {
    "TIB": Look(INK, "o", "-"),
    "Bibtex": Look(TEAL, "s", "--"),
    "Delicious": Look(RUST, "^", ":"),
    "Gutenberg": Look(AMBER, "D", "-."),
    "EURLex-4K": Look(VIOLET, "P", (0, (3, 1, 1, 1))),
}
"""Of the datasets that several notebooks show."""

PLACES: dict[int, Look] = {1: Look(INK, "o", "-"), 3: Look(TEAL, "s", "--"), 5: Look(AMBER, "^", ":")}
"""Of k, where a figure draws several."""

_SPARE = tuple(
    Look(colour, marker, dash, hatch)
    for marker, dash, hatch in (("<", "-", "oo"), (">", "--", "**"), ("p", "-.", "\\\\//"), ("H", ":", "OO"))
    for colour in (ROSE, LEAF, TEAL, VIOLET, RUST)
)


def _known(name: str) -> Look | None:
    """The look of a method or of a dataset, whose splits look alike; what is printed is grey."""
    if name.endswith(", printed"):
        return Look(GREY, "D")
    return METHODS.get(name) or DATASETS.get(name.partition(", split ")[0])


def of(name: str) -> Look:
    """The look of a method or a dataset; a name that has none gets one that depends only on it."""
    return _known(name) or _SPARE[zlib.crc32(name.encode()) % len(_SPARE)]


def distinct(names: Iterable[str]) -> dict[str, Look]:
    """Looks for methods or datasets that are drawn together, no two alike as long as there are enough; those of
    :data:`METHODS` and :data:`DATASETS` keep theirs."""
    names = list(names)
    found = {name: known for name in names if (known := _known(name))}
    for name in names:
        if name in found:
            continue
        start = zlib.crc32(name.encode()) % len(_SPARE)
        others = list(found.values())
        # A colour and a marker that nobody has (in grey the marker tells), else a colour, else a look, else its own.
        order = _SPARE[start:] + _SPARE[:start]
        taken = {other.colour for other in others}, {other.marker for other in others}
        free = [look for look in order if look.colour not in taken[0] and look.marker not in taken[1]]
        free = free or [look for look in order if look.colour not in taken[0]]
        found[name] = (free or [look for look in order if look not in others] or order)[0]
    return {name: found[name] for name in names}


def title(fig: Figure, text: str) -> Text:
    """The figure's title: one sentence or two, at the left."""
    return fig.suptitle(text, x=0.01, ha="left")


def legend(fig: Figure, *axes: Axes, ncols: int = 0, title: str | None = None) -> Legend:
    """One legend below the figure (or of ``axes``), each label once, in ``ncols`` columns or fewer; 0: in one row if it
    fits."""
    found: dict[str, object] = {}
    for ax in axes or fig.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    for columns in range(min(ncols or len(found), len(found)) or 1, 0, -1):
        made = fig.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, title=title)
        if columns == 1 or made.get_window_extent().width <= fig.bbox.width:
            break
        made.remove()
    return made


def label_grid(axes: np.ndarray, x: str, y: str, shown: int = 0) -> None:
    """Show the first ``shown`` Axes of a grid (0: all) and name x below the lowest of each column, y left of each row."""
    shown = shown or axes.size
    for panel in axes.flat[shown:]:
        panel.set_visible(False)
    for panel in axes.flat[max(shown - axes.shape[1], 0) : shown]:
        panel.set_xlabel(x)
        panel.tick_params(labelbottom=True)  # a shared axis has its numbers in the last row alone, hidden or not
    for panel in axes[:, 0]:
        panel.set_ylabel(y)


def name(ax: Axes, text: str, at: tuple[float, float], shift: tuple[float, float] = (5, 3), **keywords) -> Text:
    """Small text beside the data point ``at``, ``shift`` points to the right and up."""
    return ax.annotate(text, at, shift, textcoords="offset points", fontsize=SMALL, **keywords)
