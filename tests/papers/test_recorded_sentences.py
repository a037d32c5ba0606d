"""Items hold their run to what is recorded of real data: the recorded names are found, and who disagrees is named.

A run is planted that came to the recorded numbers themselves: all that it tells apart must agree. Turned round it must agree in
nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from xcrepro.papers.jain16 import fig3c_fig3d_training
from xcrepro.repro import manifest, notebooks, recorded

ROOT = Path(__file__).resolve().parents[2]


def frame(item: str, part: str | None = None) -> pd.DataFrame:
    return recorded.frame(recorded.read(ROOT / "data/recorded" / item / "bibtex.csv"), part)


def training(sign, _):
    table, rows = frame("jain16/fig3c_fig3d_training", "right"), []
    for A, plain, scored in zip(table["A"], table["FastXML"], table["nDCG"], strict=True):
        for draw in range(8):
            for model, assumed, value in (("FastXML", np.nan, plain), ("PfastXML", A, scored)):
                rows.append((A, assumed, model, draw, sign * value + 1e-6 * np.sin(draw + len(rows))))
    rows = pd.DataFrame(rows, columns=["A", "assumed", "model", "draw", "nDCG"])
    return fig3c_fig3d_training.findings_recorded(rows, {"bibtex": table})


PLANTED = (training,)


@pytest.mark.parametrize("case", PLANTED, ids=lambda case: case.__name__)
def test_a_run_that_came_to_the_recorded_numbers_agrees(case, monkeypatch):
    for sentence in case(1, monkeypatch):
        assert (found := re.search(r"recorded in the same order: on bibtex (\d+) of (\d+)\.$", sentence)), sentence
        assert found[1] == found[2] != "0"
    for sentence in case(-1, monkeypatch):
        assert re.search(r"recorded in the same order: on bibtex 0 of [1-9]\d* \(not .* above .*\)\.$", sentence), (
            sentence
        )


def test_every_item_with_recorded_data_holds_its_run_to_them():
    entries = [entry for entry in manifest.load(ROOT).values() if entry.recorded]
    assert entries
    for entry in entries:
        code = "\n".join(notebooks.text(cell["source"]) for cell in notebooks.read(entry.notebook)["cells"])
        typed = "item.statements(" in code and re.search(
            r"item\.recorded\(|evidence\.gather\(item", code
        )  # then its verdicts have a column for each
        assert typed or re.search(r"findings_recorded\(.*item\.recorded\(|findings\(.*recorded", code), entry.id
