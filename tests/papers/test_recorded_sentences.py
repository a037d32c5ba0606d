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
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import (
    bid_or_not,
    fig1_fig2_reliability,
    fig3_fig17_to_19_rerun,
    fig6_losses_rerun,
    fig7_fig10_to_12_rerun,
    table2_table7_rerun,
    table5_isotonic_platt,
    table6_joint_separate,
)
from xcrepro.papers.coverage import _common as coverage
from xcrepro.papers.coverage import tables2_3_rerun
from xcrepro.papers.jain16 import (
    fig3b_unbiased,
    fig3c_fig3d_training,
    fig4_label_contributions,
    table1_gains,
    theorem43_bound,
)
from xcrepro.papers.reeval import fig2_rerun, fig3_binned_macro_f1
from xcrepro.papers.reeval import table3_table4_rerun as reeval_tables
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


def contributions(sign, _):
    table, said = frame("jain16/fig4_label_contributions"), []
    for k in (1, 5):
        part = table[table["k"] == k]
        # By hand: the labels that together hold at most half of the instances, the rarest first.
        held = (part["count"] * part["labels"].diff().fillna(part["labels"])).cumsum()
        rare = part[held <= held.iloc[-1] / 2].iloc[-1]
        values = {name: rare[name] for name in list(table)[4:]}
        found = {k: {"rare labels": planted(values, sign)}}
        said += fig4_label_contributions.findings_recorded(found, {"bibtex": table})
    return said


def training(sign, _):
    table, rows = frame("jain16/fig3c_fig3d_training", "right"), []
    for A, plain, scored in zip(table["A"], table["FastXML"], table["nDCG"], strict=True):
        for draw in range(8):
            for model, assumed, value in (("FastXML", np.nan, plain), ("PfastXML", A, scored)):
                rows.append((A, assumed, model, draw, sign * value + 1e-6 * np.sin(draw + len(rows))))
    rows = pd.DataFrame(rows, columns=["A", "assumed", "model", "draw", "nDCG"])
    return fig3c_fig3d_training.findings_recorded(rows, {"bibtex": table})


def averages(sign, _):
    table = frame("reeval/table3_table4_rerun")
    found = {name: planted(column(table, name, "method"), sign) for name in ("P@5", "macro_F1@5")}
    return reeval_tables.findings_recorded({"Bibtex": found}, {"bibtex": table})


def bars(sign, _):
    table = frame("reeval/fig2_rerun")
    found = {name: planted(column(part, "value", "method"), sign) for name, part in table.groupby("metric")}
    return fig2_rerun.findings_recorded({("Bibtex", 2): found}, {"bibtex": table})


def rarest(sign, _):
    table = frame("reeval/fig3_binned_macro_f1")
    run = table.assign(difference=sign * (table["value"] - table["baseline"]))
    run["difference's error"] = 1e-6
    assert fig3_binned_macro_f1.findings_recorded(run, {"bibtex": table}, "PLT") == []
    return fig3_binned_macro_f1.findings_recorded(run, {"bibtex": table})


def rules(sign, _):
    table = frame("coverage/tables2_3_rerun")
    found = {(name, 5): planted(column(table, f"{name}@5", "rule"), sign) for name in ("P", "Cov")}
    return tables2_3_rerun.findings_recorded({coverage.TREE: found}, {"bibtex": table})


def kept(sign, _):
    table = frame("coverage/table1_rerun", "kept")
    part = table[table["k"] == 5].set_index("metric")
    values = {name: part.loc[name, "20"] / part.loc[name, "159"] for name in coverage.KEPT}
    return [coverage.kept_recorded(planted(values, sign), {"bibtex": table}, 5, share=0)]


def half(sign, _):
    table = frame("coverage/which_metric_sees_the_tail")
    part = table[table["k"] == 5].set_index("metric")
    values = {name: part.loc[name, "64"] / part.loc[name, "159"] for name in coverage.KEPT}
    return [coverage.kept_recorded(planted(values, sign), {"bibtex": table}, 5, share=0.5)]


def directions(sign, monkeypatch):
    table = frame("calibration/fig1_fig2_reliability")
    run = planted(ends(table, {"mean score": ", mean score", "hit rate": ", hit rate"}), sign)
    monkeypatch.setattr(fig1_fig2_reliability, "measure_direction", lambda ds, states: run)
    states = {(name, 3): None for name in table["model"]}
    return fig1_fig2_reliability.findings_recorded(None, states, {"bibtex": table})


def histograms(sign, _):
    table = frame("calibration/fig7_fig10_to_12_rerun")
    run = planted(ends(table[table["k"] == 5], {"ECE": ", before", "after": ", after"}), sign)
    return fig7_fig10_to_12_rerun.findings_recorded({5: run}, {"bibtex": table})


def errors(sign, monkeypatch):
    table = frame("calibration/fig3_fig17_to_19_rerun")
    part = table[(table["k"] == 5) & (table["metric"] == "ECE")]
    words = {"none": "before", "isotonic": "after"}
    values = {f"{m}, {words[v]}": x for m, v, x in part[["method", "variant", "value"]].to_numpy()}
    monkeypatch.setattr(calibrated, "measured_states", lambda ds, states: {5: planted(values, sign)})
    return fig3_fig17_to_19_rerun.findings_recorded({"bibtex": (None, {("PLT", 5): None})}, {"bibtex": table})


def losses(sign, monkeypatch):
    table = frame("calibration/fig6_losses_rerun")
    run = planted(ends(table, {"ECE@5": ", before"}, "loss"), sign)
    monkeypatch.setattr(calibrated, "measured_states", lambda ds, states: {5: run})
    return fig6_losses_rerun.findings_recorded(None, {("BCE", 5): None}, {"bibtex": table})


def models(sign, _):
    table = frame("calibration/table2_table7_rerun")
    run = planted(ends(table[table["k"] == 5], {"ECE": ", before"}), sign)
    return table2_table7_rerun.findings_recorded({5: run}, {"bibtex": table})


def methods(sign, _):
    table = frame("calibration/table5_isotonic_platt")
    found = {
        (name, int(k)): {"Brier": planted(column(part, "Brier", "method"), sign)}
        for (name, k), part in table.groupby(["model", "k"])
    }
    return table5_isotonic_platt.findings_recorded(found, {"bibtex": table})


def maps(sign, _):
    table = frame("calibration/table6_joint_separate")
    found = {
        (name, f"P@{k}"): planted(column(part, f"P@{k}", "fit"), sign)
        for name, part in table.groupby("model")
        for k in (1, 3, 5)
    }
    return table6_joint_separate.findings_recorded(found, {"bibtex": table})


def bids(sign, monkeypatch):
    table = frame("calibration/bid_or_not", "table")
    run = planted(ends(table[table["cost"] == 0.3], {"before": ", before", "after": ", after"}), sign)
    monkeypatch.setattr(bid_or_not, "measure_at", lambda ds, states, cost: run)
    return bid_or_not.findings_recorded(None, None, {"bibtex": table})


PLANTED = (contributions, training, averages, bars, rarest, rules, kept, half, directions)
PLANTED += (histograms, errors, losses, models, methods, maps, bids)


@pytest.mark.parametrize("case", PLANTED, ids=lambda case: case.__name__)
def test_a_run_that_came_to_the_recorded_numbers_agrees(case, monkeypatch):
    for sentence in case(1, monkeypatch):
        assert (found := re.search(r"recorded in the same order: on bibtex (\d+) of (\d+)\.$", sentence)), sentence
        assert found[1] == found[2] != "0"
    for sentence in case(-1, monkeypatch):
        assert re.search(r"recorded in the same order: on bibtex 0 of [1-9]\d* \(not .* above .*\)\.$", sentence), (
            sentence
        )


def test_rows_are_counted_on_either_side():
    table = frame("jain16/fig3b_unbiased")
    held = (table["plain low"] <= table["complete"]) & (table["complete"] <= table["plain high"])
    run = table.head(4).assign(**{"scored low": table["complete"] + 1, "plain low": 0.0, "plain high": 100.0})
    [said] = fig3b_unbiased.findings_recorded(run, {"bibtex": table})
    assert (
        f"recorded on bibtex in {len(table)} of {len(table)} rows propensity-scored and in {held.sum()} plain" in said
    )
    assert said.endswith("in this run in 0 of 4 rows propensity-scored and in 4 plain.")
    assert fig3b_unbiased.findings_recorded(run, {}) == []


def test_the_bound_beside_the_recorded_draws():
    table = frame("jain16/theorem43_bound")
    times = table["bound"] / table["observed"]
    [said] = theorem43_bound.findings_recorded(table.assign(observed=table["bound"] / 2), {"bibtex": table})
    assert said == (
        "Real data first: the bound is so many times as wide as what the draws stay below: recorded on bibtex "
        f"{times.min():.1f} to {times.max():.1f}, in this run 2.0."
    )
    assert theorem43_bound.findings_recorded(table, {}) == []


def test_gains_recorded_with_their_errors():
    table = frame("jain16/table1_gains")
    off = (table["scored"] - table["complete"]).abs() > 6 * table["scored error"]
    assert table1_gains.findings_recorded({"bibtex": table}) == [
        f"Real data first, recorded on bibtex: with propensities {off.sum()} of 24 means are clearly off the complete value; "
        f"without, 24 of 24 means are clearly off."
    ]
    biased = table.assign(scored=table["complete"] + 20 * table["scored error"])
    assert "with propensities 24 of 24" in table1_gains.findings_recorded({"bibtex": biased})[0]


def test_every_item_with_recorded_data_holds_its_run_to_them():
    entries = [entry for entry in manifest.load(ROOT).values() if entry.recorded]
    assert entries
    for entry in entries:
        if entry.id == "calibration/noise_floor":
            continue  # its sentences are on printed cells and on simulated scores; what is recorded is a table beside the run's
        code = "\n".join(notebooks.text(cell["source"]) for cell in notebooks.read(entry.notebook)["cells"])
        typed = "item.statements(" in code and "item.recorded(" in code  # then its verdicts have a column for each
        assert typed or re.search(r"findings_recorded\(.*item\.recorded\(|findings\(.*recorded", code), entry.id
