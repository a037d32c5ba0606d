"""Texts that are committed, held to what a run makes."""

from __future__ import annotations

import math
import re

import pytest

from xcrepro.repro.engine import compare_outputs, tidy

# ---------------------------------------------------------------- texts that are committed


@pytest.mark.parametrize(
    ("old", "new", "said", "relative"),
    [
        ("k,P\n1,0.5\n", "k,P\n1,0.6\n", "line 2: '1,0.6' instead of '1,0.5'", 1 / 6),
        ("P@1 0.50\nP@5 0.25", "P@1 0.51\nP@5 0.35", "line 1: 'P@1 0.51' instead of 'P@1 0.50'", 0.1 / 0.35),
        ("P@1 0.25\nP@5 0.50", "P@1 0.35\nP@5 0.51", "line 1: 'P@1 0.35' instead of 'P@1 0.25'", 0.1 / 0.35),
        ("P 1,234.5", "P 1,235.0", "line 1: 'P 1,235.0' instead of 'P 1,234.5'", 0.5 / 1235),
        ("PLT leads", "FastXML leads", "line 1: 'FastXML leads' instead of 'PLT leads'", math.inf),
        ("fig3 0.5", "fig4 0.5", "line 1", math.inf),
        ("a", "a\nb", "line 2: 'b' instead of nothing", math.inf),
        ("a\nb", "a", "line 2: nothing instead of 'b'", math.inf),
        ("x nan", "x 0.5", "line 1", math.inf),
        ("0.0", "-0.0", "line 1", 0.0),
    ],
)
def test_the_first_difference_and_the_largest_number(old, new, said, relative):
    found = compare_outputs.difference(old, new)
    assert found.text.startswith(said)
    assert found.relative == pytest.approx(relative)
    assert compare_outputs.difference(old, old) is None


def test_outputs_are_compared_as_they_are_committed():
    said = {"output_type": "stream", "name": "stdout", "text": "0.5\n"}
    shown = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"text/plain": ["0.5"], "text/html": ["<b>0.5</b>"]},
    }
    other = {**shown, "data": {"text/plain": ["0.5"], "text/html": ["<b>0.7</b>"]}}
    warned = {"output_type": "stream", "name": "stderr", "text": "slow\n"}
    assert tidy.output_text([said, warned, shown]) == tidy.output_text([said, shown])
    assert tidy.output_text([shown]) != tidy.output_text([other])
    assert tidy.output_text([said]) != tidy.output_text([])


def test_other_versions_are_named(tmp_path, monkeypatch):
    try:
        assert compare_outputs.elsewhere() == (), "the environment is not that of constraints.txt"
        lines = (compare_outputs.paths.committed("constraints.txt")).read_text().splitlines()
        (tmp_path / "constraints.txt").write_text(
            "\n".join(l for l in lines if not l.startswith("scipy")).replace("numpy==", "numpy==0.")
        )
        monkeypatch.setattr(compare_outputs.paths, "committed", lambda name: tmp_path / name)
        monkeypatch.setattr(compare_outputs.platform, "machine", lambda: "arm64")
        compare_outputs.elsewhere.cache_clear()
        numpy, scipy, platform = compare_outputs.elsewhere()
        assert numpy.startswith("numpy ")
        assert ", committed with 0." in numpy
        assert scipy.startswith("scipy ")
        assert platform == "arm64 Linux, committed on x86_64 Linux"
        assert re.search(r" 0\.5 .*\(numpy", str(compare_outputs.difference("P 1", "P 2")))
        assert "words differ (numpy" in str(compare_outputs.difference("P", "R"))
    finally:
        compare_outputs.elsewhere.cache_clear()
