"""Figures: one style, one way to save, the same bytes every time in the same environment."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro import paths
from xcrepro.repro import tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("xcrepro.mplstyle")


def _style():
    import matplotlib.style

    # "default" first, so that a user's matplotlibrc changes nothing.
    return matplotlib.style.context(["default", STYLE])


@contextlib.contextmanager
def new(width: float = 6.0, height: float = 3.0, ncols: int = 1, nrows: int = 1, **subplots) -> Iterator[tuple]:
    """``with figures.new(ncols=2) as (fig, axes): ...`` draws in the project's style; sizes in inches.

    ``axes`` is what ``Figure.subplots`` gives: one Axes, or an array of them. The figure is not one of pyplot's, so
    that none stays open and the caller's matplotlib settings are as they were.

    >>> with new(ncols=2, sharey=True) as (fig, axes):
    ...     _ = axes[0].plot([1, 2, 3])
    >>> len(fig.axes)
    2
    """
    with _style():
        from matplotlib.figure import Figure

        fig = Figure(figsize=(width, height))
        yield fig, fig.subplots(nrows, ncols, **subplots)


def save(fig: Figure, item: str, data: pd.DataFrame, folder: str | os.PathLike | None = None) -> Path:
    """Write ``<folder>/<item>.svg``, ``.png`` and ``.csv``, the data behind the figure; return the path of the png.

    ``data`` is the tidy table that was drawn. ``folder`` defaults to the project's ``figures``. No dates and no version
    numbers go in, so the same figure in the same environment gives the same bytes. In a notebook the figure is shown.
    """
    folder = paths.project_root() / "figures" if folder is None else Path(folder)
    contents = {".csv": tables.csv_text(data).encode()}
    with _style():
        for suffix, blank in ((".svg", {"Date": None, "Creator": None}), (".png", {"Software": None})):
            out = io.BytesIO()
            fig.savefig(out, format=suffix[1:], metadata=blank)
            contents[suffix] = out.getvalue()
    for suffix, content in contents.items():
        with paths.atomic_path(folder / f"{item}{suffix}") as part:
            part.write_bytes(content)
    _display(contents[".png"])
    return folder / f"{item}.png"


def _display(png: bytes) -> None:
    """Show a picture where there is a notebook to show it in."""
    import sys

    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) and hasattr(shell, "kernel"):
        from IPython.display import Image, display

        display(Image(png))
