"""Figures come out the same twice, and the caller's matplotlib stays as it was."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from xcrepro.errors import ArgumentError
from xcrepro.repro import figures

DRAW = """
import sys, pandas as pd
from xcrepro.repro import figures
data = pd.DataFrame({"x": [1.0, 2.0], "y": [0.1, 1 / 3]})
with figures.new(ncols=2) as (fig, axes):
    axes[0].plot(data["x"], data["y"], label="a", clip_on=True)
    axes[0].legend()
    axes[1].hist(data["y"])
    axes[1].set_xlabel(r"rank $r^2$")
print(figures.save(fig, "demo/fig", data, sys.argv[1]))
"""


def test_two_processes_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        subprocess.run([sys.executable, "-c", DRAW, str(tmp_path / name)], check=True, capture_output=True)
    for suffix in (".svg", ".png", ".csv"):
        first, second = ((tmp_path / name / f"demo/fig{suffix}").read_bytes() for name in ("one", "two"))
        assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest(), suffix
        assert len(first) > 10
        # No date and no version, so that only what is drawn changes the file.
        assert not re.search(rb"<dc:date>|Matplotlib v|tEXtSoftware", first)
    assert (tmp_path / "one/demo/fig.csv").read_text() == "x,y\n1.0,0.1\n2.0,0.3333333333333333\n"
    assert sorted(path.name for path in (tmp_path / "one/demo").iterdir()) == ["fig.csv", "fig.png", "fig.svg"]


def test_the_callers_settings_change_nothing_and_are_not_changed(tmp_path):
    data = pd.DataFrame({"x": [1.0]})

    def draw(name: str) -> bytes:
        with figures.new() as (fig, axes):
            axes.plot([0, 1], [1, 0])
        return figures.save(fig, name, data, tmp_path).read_bytes()

    plain = draw("plain")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "figure.dpi": 20}):
        before = dict(matplotlib.rcParams)
        assert draw("other") == plain
        assert dict(matplotlib.rcParams) == before


def test_the_colours_are_told_apart_in_grey():
    with figures.new() as (_, axes):
        lines = [axes.plot([0, 1], [i, i])[0] for i in range(6)]
    linear = [np.array(to_rgb(line.get_color())) ** 2.2 for line in lines]
    lightness = np.array([116 * (c @ [0.2126, 0.7152, 0.0722]) ** (1 / 3) - 16 for c in linear])
    assert (np.diff(lightness) > 8).all()
    assert len({str(line.get_linestyle()) + str(line._unscaled_dash_pattern) for line in lines}) == 6


def test_a_figure_that_cannot_be_saved_leaves_nothing(tmp_path):
    with figures.new() as (fig, _):
        pass
    with pytest.raises(ArgumentError):
        figures.save(fig, "demo/fig", pd.DataFrame([[1]]), tmp_path)
    assert not (tmp_path / "demo").exists()
