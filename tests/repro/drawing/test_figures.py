"""Figures come out the same twice, and the caller's matplotlib stays as it was."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import sys

import matplotlib
import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from tests.refused import refused
from xcrepro.repro.drawing import figures

DRAW = """
import pathlib, sys, pandas as pd
from xcrepro.repro import figures
data = pd.DataFrame({"x": [1.0, 2.0], "y": [0.1, 1 / 3]})
with figures.new(ncols=2) as (fig, axes):
    axes[0].plot(data["x"], data["y"], label="a", clip_on=True)
    axes[0].legend()
    figures.draws(axes[0], "x", "y")
    axes[1].set_xlabel(r"rank $r^2$")
for suffix, content in figures.render(fig, data, "abc").items():
    pathlib.Path(sys.argv[1] + suffix).write_bytes(content)
"""
DATA = pd.DataFrame({"x": [1.0, 2.0], "y": [0.1, 1 / 3]})


def test_two_processes_give_the_same_bytes(tmp_path, monkeypatch):
    subprocess.run([sys.executable, "-c", DRAW, str(tmp_path / "one")], check=True, capture_output=True)
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "two")])
    exec(DRAW, {})
    for suffix in (".svg", ".png", ".csv"):
        first, second = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
        assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest(), suffix
        assert len(first) > 10
        # No date and no version, so that only what is drawn changes the file.
        assert not re.search(rb"<dc:date>|Matplotlib v|tEXtSoftware", first)
    assert (tmp_path / "one.csv").read_text() == "x,y\n1.0,0.1\n2.0,0.333333\n"
    assert figures.drawn_from((tmp_path / "one.svg").read_bytes()).startswith(b"code abc, data ")


def test_the_callers_settings_change_nothing_and_are_not_changed():
    def draw() -> dict[str, bytes]:
        with figures.new() as (fig, axes):
            axes.plot(DATA["x"], DATA["y"])
            figures.draws(axes, "x", "y")
        return figures.render(fig, DATA)

    plain = draw()
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "figure.dpi": 20}):
        before = dict(matplotlib.rcParams)
        assert draw() == plain
        assert dict(matplotlib.rcParams) == before


def test_the_colours_are_told_apart_in_grey():
    with figures.new() as (_, axes):
        lines = [axes.plot([0, 1], [i, i])[0] for i in range(6)]
    linear = [np.array(to_rgb(line.get_color())) ** 2.2 for line in lines]
    lightness = np.array([116 * (c @ [0.2126, 0.7152, 0.0722]) ** (1 / 3) - 16 for c in linear])
    assert (np.diff(lightness) > 8).all()
    assert len({str(line.get_linestyle()) + str(line._unscaled_dash_pattern) for line in lines}) == 6


def test_the_callers_axes_are_drawn_into():
    from matplotlib.figure import Figure

    own = Figure()
    ax = own.subplots(1, 2)
    with figures.new(ncols=2, ax=ax) as (fig, axes):
        assert fig is own
        assert list(axes) == list(ax)
    with figures.new(ax=ax[0]) as (fig, axes):
        assert axes is ax[0]
    with refused("ax", 2, match="1 Axes"), figures.new(ax=ax):
        pass


# ---------------------------------------------------------------- what is drawn is what the table has

TABLE = pd.DataFrame({"k": [1, 3, 5], "P": [0.9, 0.7, 0.4], "low": [0.8, 0.6, 0.3], "high": [1.0, 0.8, 0.5]})
KINDS = {
    "line": lambda ax, x, y: ax.plot(x, y),
    "marks": lambda ax, x, y: ax.scatter(x, y),
    "bars": lambda ax, x, y: ax.bar(x, y),
    "error bars": lambda ax, x, y: ax.errorbar(x, y, yerr=0.123),
    "lines up": lambda ax, x, y: ax.vlines(x, min(y), y),
    "steps": lambda ax, x, y: ax.step(x, y),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_held_to_its_table(kind):
    def draw(across, up, columns):
        with figures.new() as (fig, ax):
            KINDS[kind](ax, across, up)
            ax.axhline(0.55)
            ax.plot([0, 9], [0, 9], label="_guide: the diagonal")
            if columns:
                figures.draws(ax, **columns)
        figures.held(fig, TABLE)

    k, P = TABLE["k"], TABLE["P"]
    draw(k, P, {"x": "k", "y": ("P", "low")})
    for x, y, columns, message in (
        (P, k, {"x": "k", "y": "P"}, "which column"),
        (k, P + 0.01, {"x": "k", "y": "P"}, r"y = 0\.[49]1 .*'P'"),
        (k + 1, P, {"x": "k", "y": "P"}, "x = 2 "),
        (k, P, {"x": "k", "y": "high"}, "'high'"),
        (k, P, {"x": "k", "y": "R"}, "no column 'R'"),
        (k, P, {}, "nobody said"),
    ):
        with pytest.raises(figures.DrawingFault, match=message):
            draw(x, y, columns)


def test_what_the_limits_cut_off_is_a_fault():
    k, P = TABLE["k"], TABLE["P"]

    def draw(early, cut=""):
        with figures.new(ncols=2, sharey=True) as (fig, axes):
            for ax, y in zip(axes, (P / 2, P), strict=True):
                ax.plot(k, y, "o")
                if early:
                    ax.set_ylim(0, None)  # the first panel's limit stays
                figures.draws(ax, "k", None, cut)
            axes[0].set_ylim(0, None)
        figures.held(fig, TABLE)

    draw(early=False)
    draw(early=True, cut="y")
    with pytest.raises(figures.DrawingFault, match="the limits"):
        draw(early=True)


def test_bars_that_lie_and_images_are_held_too():
    with figures.new(ncols=3) as (fig, axes):
        axes[0].barh(range(3), TABLE["P"])
        figures.draws(axes[0], x="P")
        axes[1].imshow(TABLE[["P", "low"]])
        figures.draws(axes[1], y=("P", "low"))
        axes[2].fill_between(TABLE["k"], TABLE["low"], TABLE["high"])
        figures.draws(axes[2], x="k", y=("low", "high"))
        fig.colorbar(axes[1].images[0])
    figures.held(fig, TABLE)
    figures.draws(axes[0], y="P")
    with pytest.raises(figures.DrawingFault, match="a bar"):
        figures.held(fig, TABLE)
    figures.draws(axes[0], x="P")
    figures.draws(axes[1], y="P")
    with pytest.raises(figures.DrawingFault, match="an image"):
        figures.held(fig, TABLE)


def test_the_foot_leaves_the_drawing_above_it_as_it_is():
    """Also a legend below the axes, which hangs on the canvas: the foot makes that longer."""
    from PIL import Image

    from xcrepro.repro.drawing import looks

    def drawn(origin):
        with figures.new() as (fig, ax):
            ax.plot([1, 2], [3, 4], label="a line")
            figures.draws(ax, x="x", y="y")
            looks.legend(fig)
        png = figures.render(fig, pd.DataFrame({"x": [1, 2], "y": [3, 4]}), origin=origin)[".png"]
        return np.asarray(Image.open(io.BytesIO(png)).convert("L"))

    bare, one_line, many_lines = drawn(""), drawn("somewhere"), drawn("somewhere " * 60)
    height = len(bare)
    assert height < len(one_line) < len(many_lines)
    assert (one_line[:height] == many_lines[:height]).all()
    # Text is laid out a hair otherwise for paper of another size; a legend that slid into the foot would be gone from above.
    ink = [(image[:height] < 200).sum() for image in (bare, one_line)]
    assert abs(ink[1] - ink[0]) < 0.03 * ink[0]
    legend = [(image[height - 30 : height] < 200).sum() for image in (bare, one_line)]
    assert legend[0] > 50
    assert abs(legend[1] - legend[0]) < 0.1 * legend[0]
