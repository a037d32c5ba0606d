"""Figures: one style, one way to save, the same bytes every time in the same environment."""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from xcrepro.core import extras
from xcrepro.core.errors import ArgumentError, XCError
from xcrepro.repro.drawing import tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("xcrepro.mplstyle")


def _style():
    # "default" first, so that a user's matplotlibrc changes nothing.
    return extras.library("matplotlib.style").context(["default", STYLE])


@contextlib.contextmanager
def new(
    width: float = 6.4, height: float = 3.0, ncols: int = 1, nrows: int = 1, ax=None, **subplots
) -> Iterator[tuple]:
    """``with figures.new(ncols=2) as (fig, axes): ...`` draws in the project's style; ``width`` and ``height`` are in inches.

    ``axes`` is one Axes or an array of them, as ``Figure.subplots`` gives, which takes the further arguments. With ``ax``, the
    caller's own Axes, nothing new is made and the drawing goes there.
    """
    with _style():
        if ax is None:
            from matplotlib.figure import Figure

            fig = Figure(figsize=(width, height))
            yield fig, fig.subplots(nrows, ncols, **subplots)
            return
        import numpy as np

        given = np.array(ax, dtype=object)
        if given.size != nrows * ncols:
            raise ArgumentError("ax", f"must be {nrows * ncols} Axes for this figure", given.size)
        given = given.reshape(nrows, ncols)
        yield given.flat[0].figure, (given.squeeze()[()] if subplots.get("squeeze", True) else given)


Columns = str | Sequence[str] | None


def draws(ax: Axes, x: Columns = None, y: Columns = None, cut: str = "") -> None:
    """Say which columns of the figure's table ``ax`` shows along x and along y; :func:`held` holds the drawing to it.

    None means that the axis shows places of names, or what the table does not have. For an image, ``y`` names the columns of
    its values. ``cut`` names the axes ("x", "y", "xy") whose limits leave numbers out on purpose. Lines and marks that are
    no data, such as a diagonal, have a label that starts with ``_guide``.
    """
    ax.xcrepro_columns, ax.xcrepro_cut = (x, y), cut


def render(
    fig: Figure,
    table: pd.DataFrame,
    drawn_by: str = "",
    origin: str = "",
    suffixes: Sequence[str] = (".svg", ".png"),
) -> dict[str, bytes]:
    """Suffix -> content of the figure's files: ``.csv``, the data behind it, ``.svg`` and ``.png``."""
    contents = {".csv": tables.csv_text(tables.with_origin(table, origin), committed=True).encode()}
    held(fig, table)
    source = f"code {drawn_by}, data {hashlib.sha256(contents['.csv']).hexdigest()[:16]}" if drawn_by else None
    with _style():
        canvas = _write_foot(fig, origin)
        metadata = {".svg": {"Date": None, "Creator": None, "Source": source}, ".png": {"Software": None}}
        metadata[".pdf"] = {"CreationDate": None, "Creator": None, "Producer": None}
        for suffix in (suffix for suffix in metadata if suffix in suffixes):
            out = io.BytesIO()
            fig.savefig(out, format=suffix[1:], metadata=metadata[suffix], bbox_inches=canvas)
            contents[suffix] = out.getvalue()
    return contents


_LETTERS_AN_INCH = 17
"""Of the foot's size, at most."""


def _write_foot(fig: Figure, origin: str):
    """Small print below the drawing, on paper added there: nothing that is laid out has to make room. The canvas, or None."""
    import textwrap

    from matplotlib.transforms import Bbox

    if not origin:
        return None
    width, height = fig.get_size_inches()
    lines = textwrap.wrap(f"Data: {origin}.", int(_LETTERS_AN_INCH * width))
    deep = 0.06 + 0.12 * len(lines)
    # An outside legend would follow the paper's lower edge down into the small print: all is laid out first, then held.
    fig.draw_without_rendering()
    fig.set_layout_engine("none")
    for legend in fig.legends:
        legend.set_bbox_to_anchor((0, 0, 1, 1), fig.transFigure)
    fig.text(0.01, -0.03 / height, "\n".join(lines), va="top", ha="left", fontsize="x-small", color="0.35")
    return Bbox([[0, -deep], [width, height]])


def code_digest(module: ModuleType | None, cells: str = "") -> str:
    """Digest of all the code that decides how a figure looks: docstrings and comments of files are left out."""
    files = [Path(__file__).with_name("looks.py")]
    if module is not None:
        here = Path(module.__file__)
        files += [here, here.with_name("_common.py")]
    code = [cells, STYLE.read_text(encoding="utf-8")]
    code += [_without_prose(path.read_text(encoding="utf-8")) for path in files if path.is_file()]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]


def _without_prose(text: str) -> str:
    """Python code without docstrings, comments and blank lines."""
    import ast

    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose |= set(range(node.lineno, node.end_lineno + 1))
    lines = (line.strip() for number, line in enumerate(text.splitlines(), 1) if number not in prose)
    return "\n".join(line for line in lines if line and not line.startswith("#"))


_SOURCE = re.compile(rb"<dc:source>(.*?)</dc:source>", re.DOTALL)


def drawn_from(svg: bytes) -> bytes:
    """What an SVG of :func:`render` says of its code and data; a picture is drawn anew only when that changes."""
    found = _SOURCE.search(svg)
    return found.group(1) if found else b""


def display(shown: bytes | dict, **options) -> None:
    """Show a PNG, or a mapping of media types, if there is a notebook to show it in."""
    import sys

    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) and hasattr(shell, "kernel"):
        from IPython.display import Image, display

        display(Image(shown) if isinstance(shown, bytes) else shown, raw=isinstance(shown, dict), **options)


class DrawingFault(XCError):
    """A figure shows numbers that the table behind it does not have."""


def held(fig: Figure, table: pd.DataFrame) -> None:
    """Raise ``DrawingFault`` unless every number drawn is in a column that :func:`draws` named, and within the limits.

    A number agrees within 1e-6 of itself, or of 0.001 if that is more. Axes without data and colour bars are left out.
    """
    for ax in fig.axes:
        if hasattr(ax, "_colorbar"):
            continue
        shown = list(_shown(ax))
        if not shown:
            continue
        columns = getattr(ax, "xcrepro_columns", None)
        place = f"Axes {fig.axes.index(ax)} ({ax.get_title(loc='left') or ax.get_title() or ax.get_ylabel()!r})"
        if columns is None:
            raise DrawingFault(f"{place}: nobody said which columns it shows: figures.draws(ax, x=..., y=...)")
        for what, *parts in shown:
            if not what.endswith("image"):
                _in_sight(f"{place}, {what}", ax, *parts)
        for axis, names in zip("xy", columns, strict=True):
            if names is not None:
                known = _values(table, [names] if isinstance(names, str) else list(names))
                for what, numbers in ((what, parts["xy".index(axis)]) for what, *parts in shown):
                    _within(f"{place}, {what}", axis, numbers, known, names)


def _values(table: pd.DataFrame, names: list[str]):
    import numpy as np

    table = tables.flat(table)
    if missing := [name for name in names if name not in table]:
        raise DrawingFault(f"the table has no column {missing[0]!r}; it has {', '.join(table.columns)}")
    return np.sort(np.concatenate([np.asarray(table[name], dtype=float) for name in names]))


def _within(place: str, axis: str, numbers, known, names: Columns) -> None:
    import numpy as np

    numbers = np.asarray(numbers, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    known = known[np.isfinite(known)]
    if not numbers.size:
        return
    at = np.searchsorted(known, numbers)
    near = [np.abs(known[np.clip(at + step, 0, known.size - 1)] - numbers) for step in (-1, 0) if known.size]
    off = np.minimum.reduce(near or [np.inf]) > 1e-6 * np.maximum(np.abs(numbers), 1e-3)
    if np.any(off):
        first = numbers[np.broadcast_to(off, numbers.shape)][0]
        raise DrawingFault(f"{place}: {axis} = {first:g} is drawn, which column {names!r} of the table does not have")


def _in_sight(place: str, ax: Axes, *numbers) -> None:
    """Every number within the limits: those set while a panel is drawn hide what a later one of a shared axis has."""
    import numpy as np

    for axis, limits, given in zip("xy", (ax.get_xlim(), ax.get_ylim()), numbers, strict=True):
        if axis in ax.xcrepro_cut:
            continue
        given = np.asarray(given, dtype=float)
        slack = 1e-6 * abs(limits[1] - limits[0])
        out = np.isfinite(given) & ((given < min(limits) - slack) | (given > max(limits) + slack))
        if out.any():
            raise DrawingFault(
                f"{place}: {axis} = {given[out][0]:g} is outside of the limits {limits[0]:g} to {limits[1]:g};"
                f" set limits when all panels are drawn, or say figures.draws(ax, ..., cut={axis!r})"
            )


def _shown(ax: Axes) -> Iterator[tuple]:
    """(what, x numbers, y numbers) of everything in ``ax`` that shows data."""
    import numpy as np
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
    from matplotlib.container import BarContainer, ErrorbarContainer

    inside: set = set()  # the caps and bars of error bars: the value and its error, not numbers of the table
    for container in ax.containers:
        if isinstance(container, ErrorbarContainer):
            inside |= {id(part) for parts in container.lines[1:] for part in parts}
        elif isinstance(container, BarContainer):
            flat = container.orientation == "horizontal"
            middle = [(bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2) for bar in container]
            long = [bar.get_width() if flat else bar.get_height() for bar in container]
            across = [point[1 if flat else 0] for point in middle]
            yield ("a bar", long, across) if flat else ("a bar", across, long)
    for line in ax.lines:
        data = line.get_transform() == ax.transData and len(line.get_xdata())
        if data and id(line) not in inside and not _guide(line):
            yield "a line", line.get_xdata(orig=False), line.get_ydata(orig=False)
    for part in ax.collections:
        if id(part) in inside or _guide(part):
            continue
        if isinstance(part, PathCollection) and part.get_offset_transform() == ax.transData:
            offsets = np.ma.getdata(part.get_offsets())
            yield "a mark", offsets[:, 0], offsets[:, 1]
        elif isinstance(part, LineCollection | PolyCollection) and part.get_transform() == ax.transData:
            points = [path.vertices for path in part.get_paths() if len(path.vertices)]
            if points:
                yield "a line", np.concatenate(points)[:, 0], np.concatenate(points)[:, 1]
        elif isinstance(part, QuadMesh):
            yield "an image", [], np.ma.filled(np.ma.asarray(part.get_array(), float), np.nan).ravel()
    for image in ax.images:
        yield "an image", [], np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan).ravel()


def _guide(artist) -> bool:
    return str(artist.get_label()).startswith("_guide")
