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

from xcrepro.findings import Measured
from xcrepro.papers.calibration import bid_or_not, fig7_fig10_to_12_rerun
from xcrepro.papers.coverage import _common as coverage
from xcrepro.papers.jain16 import fig3c_fig3d_training
from xcrepro.repro import manifest, notebooks, recorded

ROOT = Path(__file__).resolve().parents[2]


def frame(item: str, part: str | None = None) -> pd.DataFrame:
    return recorded.frame(recorded.read(ROOT / "data/recorded" / item / "bibtex.csv"), part)


def planted(values: dict, sign: int) -> Measured:
    """A run with these numbers and hardly an error: what differs is clear."""
    rng = np.random.default_rng(0)
    values = {name: sign * float(value) for name, value in values.items()}
    return Measured(values, {name: value + 1e-7 * rng.normal(size=20) for name, value in values.items()})


def column(table: pd.DataFrame, value: str, key: str = "model") -> dict:
    return dict(zip(table[key], table[value], strict=True))


def ends(table: pd.DataFrame, columns: dict, key: str = "model") -> dict:
    return {f"{name}{end}": v for col, end in columns.items() for name, v in column(table, col, key).items()}


def training(sign, _):
    table, rows = frame("jain16/fig3c_fig3d_training", "right"), []
    for A, plain, scored in zip(table["A"], table["FastXML"], table["nDCG"], strict=True):
        for draw in range(8):
            for model, assumed, value in (("FastXML", np.nan, plain), ("PfastXML", A, scored)):
                rows.append((A, assumed, model, draw, sign * value + 1e-6 * np.sin(draw + len(rows))))
    rows = pd.DataFrame(rows, columns=["A", "assumed", "model", "draw", "nDCG"])
    return fig3c_fig3d_training.findings_recorded(rows, {"bibtex": table})


def half(sign, _):
    table = frame("coverage/which_metric_sees_the_tail")
    part = table[(table["k"] == 5) & (table["labels"] == 64) & (table["view"] == "1-vs-All, top k")].set_index("metric")
    values = {name: part.loc[name, "value"] / part.loc[name, "full"] for name in coverage.KEPT}
    return [coverage.kept_recorded(planted(values, sign), {"bibtex": table}, 5, share=0.5)]


def histograms(sign, _):
    table = frame("calibration/fig7_fig10_to_12_rerun")
    run = planted(ends(table[table["k"] == 5], {"ECE": ", before", "after": ", after"}), sign)
    return fig7_fig10_to_12_rerun.findings_recorded({5: run}, {"bibtex": table})


def bids(sign, monkeypatch):
    table = frame("calibration/bid_or_not", "table")
    run = planted(ends(table[table["cost"] == 0.3], {"before": ", before", "after": ", after"}), sign)
    monkeypatch.setattr(bid_or_not, "measure_at", lambda ds, states, cost: run)
    return bid_or_not.findings_recorded(None, None, {"bibtex": table})


PLANTED = (
    training,
    half,
    histograms,
    bids,
)


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
        if entry.id == "calibration/noise_floor":
            continue  # its sentences are on printed cells and on simulated scores; what is recorded is a table beside the run's
        code = "\n".join(notebooks.text(cell["source"]) for cell in notebooks.read(entry.notebook)["cells"])
        typed = "item.statements(" in code and re.search(
            r"item\.recorded\(|evidence\.gather\(item", code
        )  # then its verdicts have a column for each
        assert typed or re.search(r"findings_recorded\(.*item\.recorded\(|findings\(.*recorded", code), entry.id
