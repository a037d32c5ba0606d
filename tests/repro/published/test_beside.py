"""Printed cells beside a run's: which meet, in which unit, and what is said where nothing does."""

from __future__ import annotations

import types

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.core.data import registry
from xcrepro.repro import items, manifest
from xcrepro.repro.published import beside


def run_on(name: str, comparable: bool = True):
    return types.SimpleNamespace(entry=registry.get(name), name=name, title=name, comparable=comparable)


TABLE = pd.DataFrame(
    [
        ("FastXML", "P", 1, 0.64, 0.62, 0.66),
        ("FastXML", "PSP", 5, 0.58, 0.56, 0.60),
        ("FastXML", "nDCG", 3, 0.6, 0.5, 0.7),
        ("mine", "P", 1, 0.7, 0.6, 0.8),
    ],
    columns=["model", "metric", "k", "value", "low", "high"],
)


def test_each_printed_cell_that_the_run_has_is_beside_it():
    found = beside.beside(run_on("bibtex"), TABLE, ["xcrepo"], 100)
    assert set(found["metric"]) == {"P@1", "nDCG@3", "PSP@5"}
    page = xc.published.wide("xcrepo:Bibtex").groupby("method").first().loc["FastXML"]
    for row in found.itertuples():
        name = row.metric.replace("nDCG", "N")
        assert float(row.printed.rstrip("†")) == page[name]
        assert row.difference == pytest.approx(float(row.ours) - page[name], abs=0.006)
    assert dict(zip(found["metric"], found["± test points"], strict=True)) == pytest.approx(
        {"P@1": 2, "nDCG@3": 10, "PSP@5": 2}
    )


def test_variants_count_as_what_the_document_prints_by_that_name():
    table = TABLE.assign(model="PfastreXML", metric="coverage (reachable)", k=5)[:1]
    assert list(beside.beside(run_on("eurlex-4k"), table, ["jain16"], 100)["table"]) == ["jain16:table4a"]
    table = table.assign(model="COV-PLT", metric="coverage (test)")
    assert list(beside.beside(run_on("eurlex-4k"), table, ["coverage"], 100)["table"].unique()) == ["coverage:table2"]


def test_a_variant_is_part_of_the_name_where_a_table_has_several():
    table = TABLE.assign(metric="ECE", k=5)
    found = [
        beside.beside(run_on("eurlex-4k"), table.assign(model=name)[:1], ["calibration:table7"], 100)
        for name in ("DiSMEC", "DiSMEC isotonic")
    ]
    printed = xc.published.table("calibration:table7").query("method == 'DiSMEC' and dataset == 'EURLex-4K'")
    printed = printed[(printed["metric"] == "ECE") & (printed["k"] == 5)].set_index("variant")["printed"]
    assert [one["printed"].item().rstrip("†") for one in found] == [printed["none"], printed["isotonic"]]


@pytest.mark.parametrize(
    ("ds", "table"),
    [
        (run_on("bibtex", comparable=False), TABLE),
        (run_on("tib"), TABLE),
        (types.SimpleNamespace(entry=None, name="my own", title="my own", comparable=True), TABLE),
        (run_on("bibtex"), TABLE[TABLE["model"] == "mine"]),
        (run_on("bibtex"), TABLE[:0]),
    ],
)
def test_nothing_is_set_beside_other_data_or_models(ds, table):
    assert not len(beside.beside(ds, table, ["xcrepo"], 100))


def test_a_run_without_intervals_has_none():
    found = beside.beside(run_on("bibtex"), TABLE.drop(columns=["low", "high"]), ["xcrepo:Bibtex"], 100)
    assert len(found) == 3
    assert np.isnan(found["± test points"]).all()


def test_a_notebook_shows_them_or_says_what_is_printed(root, monkeypatch, capsys):
    monkeypatch.setenv("XCREPRO_ROOT", str(root))
    entry = manifest.load()["jain16/table3_table4"]
    item = items.item("jain16/table3_table4", entry.official())
    item.beside(run_on("bibtex"), TABLE, "xcrepo", unit=100)
    assert "xcrepo:Bibtex" in capsys.readouterr().out
    item.beside(run_on("tib"), TABLE, "jain16:table3a", unit=100)
    assert "EURLex-4K" in capsys.readouterr().out
