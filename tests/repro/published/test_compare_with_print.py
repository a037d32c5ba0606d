"""Printed cells beside a run's: which meet, in which unit, and what is said where nothing does."""

from __future__ import annotations

import types

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.core.data import registry
from xcrepro.repro.engine import items, manifest
from xcrepro.repro.published import compare_with_print


def run_on(name: str, comparable: bool = True):
    test = types.SimpleNamespace(Y=np.zeros((2515, 1)))
    return types.SimpleNamespace(entry=registry.get(name), name=name, title=name, comparable=comparable, test=test)


COLUMNS = ["model", "metric", "k", "value", "low", "high"]
ROWS = (
    ("FastXML", "P", 1, 64.0, 62.0, 66.0),
    ("FastXML", "PSP", 5, 58.0, 56.0, 60.0),
    ("FastXML", "nDCG", 3, 60.0, 50.0, 70.0),
    ("mine", "P", 1, 70.0, 60.0, 80.0),
)
TABLE = pd.DataFrame(ROWS, columns=COLUMNS)


def test_half_of_each_interval_is_beside_the_printed_cell():
    found = compare_with_print.beside(run_on("bibtex"), TABLE, ["xcrepo"])
    assert sorted(found["metric"]) == ["N@3", "P@1", "PSP@5"]
    half = dict(zip(found["metric"], found["test points"], strict=True))
    assert half == {"P@1": "± 2.00", "N@3": "± 10.00", "PSP@5": "± 2.00"}


def oracle(name: str, source: str, table: pd.DataFrame) -> dict:
    """By loops over the record and the table: (method, variant, metric, k) -> printed text, ours."""
    codes = {"P": "P", "nDCG": "N", "PSP": "PSP", "ECE": "ECE"}
    codes |= {"coverage (reachable)": "Cov_norm", "coverage (test)": "Cov"}
    found = {}
    for line in xc.published.table(source).to_dict("records"):
        variant, beta, called = line["variant"], line["variant"].removeprefix("beta="), line["method"]
        if beta != variant:
            called = "COV-PLT" if float(beta) == 0 else f"COVβ={beta}"
        state = variant if variant.startswith(("isotonic", "platt")) else "none"
        if line["dataset"] != registry.get(name).printed_name or not line["printed"]:
            continue
        for one in table.to_dict("records"):
            thing = one["model"], one.get("state", "none"), codes.get(one["metric"]), one["k"]
            if thing == (called, state, line["metric"], line["k"]):
                place = f"{line['method']} {variant}".strip(), f"{line['metric']}@{line['k']}"
                found[place] = line["printed"], one["value"]
    return found


@pytest.mark.parametrize(
    ("name", "source", "models", "metrics", "state"),
    [
        ("bibtex", "xcrepo:Bibtex", ["FastXML", "PfastreXML", "SLEEC"], ["P", "nDCG", "PSP"], None),
        ("eurlex-4k", "jain16:table4a", ["PfastreXML", "FastXML"], ["coverage (reachable)", "P"], None),
        # Each β is a row of its own, and β = 0 is the rule without one.
        ("eurlex-4k", "coverage:table2", ["PLT", "COV-PLT", "COVβ=0.25", "COVβ=1"], ["coverage (test)", "P"], None),
        ("eurlex-4k", "coverage:table3", ["PLT", "COV-PLT", "COVβ=0.5", "COVβ=1"], ["coverage (test)", "PSP"], None),
        # A calibrated model meets the printed row of its state, and no other.
        ("eurlex-4k", "calibration:table7", ["DiSMEC", "PLT"], ["ECE"], "isotonic"),
        ("eurlex-4k", "calibration:table7", ["DiSMEC", "PLT"], ["ECE"], "none"),
        ("eurlex-4k", "calibration:table6", ["DiSMEC", "PLT"], ["P"], "none"),
        ("eurlex-4k", "calibration:table6", ["DiSMEC", "PLT"], ["P"], "isotonic-separate"),
        ("eurlex-4k", "calibration:table5", ["DiSMEC"], ["ECE"], "platt"),
        # A method that the page has on two kinds of hardware has two rows, and both are beside ours.
        ("lf-amazontitles-131k", "xcrepo:LF-AmazonTitles-131K", ["DiSMEC", "Parabel", "Bonsai"], ["P", "PSP"], None),
    ],
)
def test_the_same_things_meet_as_by_loops(name, source, models, metrics, state):
    rng = np.random.default_rng(len(source))
    rows = [(model, metric, k, rng.uniform(1, 99)) for model in models for metric in metrics for k in (1, 3, 5)]
    table = pd.DataFrame(rows, columns=COLUMNS[:4])
    table = table.assign(state=state) if state else table
    found = compare_with_print.beside(run_on(name), table, [source])
    wanted = oracle(name, source, table)
    assert wanted
    assert {(one.method, one.metric) for one in found.itertuples()} == wanted.keys()
    for one in found.itertuples():
        printed, value = wanted[one.method, one.metric]
        assert one.printed.partition(", read as")[0].rstrip("†") == printed
        assert float(one.ours) == pytest.approx(value, abs=0.051)


def test_the_first_of_two_numbers_of_the_same_thing_is_taken():
    """The table's own notebook comes before others of the document."""
    about = ("PLT", "none", "P", "1")
    both = (("a/own", 1.0), ("a/other", 2.0))
    ours = [compare_with_print.Cell(item, "", *about, value, np.nan, np.nan) for item, value in both]
    printed = compare_with_print.lines("eurlex-4k", ["coverage:table2"])
    found = {cell.item for line, k, cell in compare_with_print.matched(printed, ours) if cell}
    assert found == {"a/own"}


def test_a_bin_or_another_definition_is_not_what_is_printed():
    table = TABLE.assign(model="SVM", k=5)[:1]
    ours = [
        len(compare_with_print.beside(run_on("eurlex-4k"), table.assign(metric=metric), ["reeval"]))
        for metric in ("macro-F1", "macro-F1 (10-99)", "macro-F1 (0)", "PSP (unnormalised)")
    ]
    assert ours == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("ds", "table"),
    [
        (run_on("tib"), TABLE),
        (types.SimpleNamespace(entry=None, name="my own", title="my own", comparable=True), TABLE),
        (run_on("bibtex"), TABLE[TABLE["model"] == "mine"]),
        (run_on("bibtex"), TABLE[:0]),
    ],
)
def test_nothing_is_set_beside_data_or_models_without_print(ds, table):
    assert not len(compare_with_print.beside(ds, table, ["xcrepo"]))


def test_a_run_without_intervals_has_the_largest_error_of_a_mean_or_none():
    found = compare_with_print.beside(run_on("bibtex"), TABLE.drop(columns=["low", "high"]), ["xcrepo:Bibtex"])
    half = dict(zip(found["metric"], found["test points"], strict=True))
    # 1.96 * 100 * sqrt(.64 * .36 / 2515)
    assert half == {"P@1": "at most ± 1.88", "N@3": "at most ± 1.91", "PSP@5": ""}
    assert dict(zip(found["metric"], found["chance"], strict=True))["PSP@5"] == "cannot tell"


def test_a_notebook_shows_them_or_nothing(root, monkeypatch, capsys):
    monkeypatch.setenv("XCREPRO_ROOT", str(root))
    entry = manifest.load()["jain16/table3_table4"]
    item = items.item("jain16/table3_table4", entry.official())
    item.beside(run_on("bibtex"), TABLE, "xcrepo")
    assert "xcrepo:Bibtex" in (out := capsys.readouterr().out)
    assert "another version" not in out
    item.beside(run_on("eurlex-4k"), TABLE.assign(model="SVM"), "reeval")
    assert "3,956" in capsys.readouterr().out  # the paper's own data are others
    item.beside(run_on("tib"), TABLE, "jain16:table3a")
    assert capsys.readouterr().out == ""  # of other data there is nothing to show
    # Of methods that the run has not the reason is the methods, and not that the dataset is not printed.
    item.beside(run_on("eurlex-4k"), TABLE, "reeval:table3")
    out = capsys.readouterr().out.replace("eurlex-4k", "EURLex-4K")
    assert "Of EURLex-4K there is print of SVM, X-Transformer" in out
    assert "is printed" not in out
    # One number of the data that differs from print is said, and the rows are there.
    other = run_on("bibtex", comparable=False)
    other.notes = ("avg_labels_per_point is 2.3000, xcrepo:overview prints 2.40",)
    item.beside(other, TABLE, "xcrepo")
    out = capsys.readouterr().out
    assert "not the data that are printed (avg_labels_per_point" in out
    assert "64.0" in out


@pytest.mark.parametrize(
    ("name", "words", "others"),
    [
        ("tib", "as printed in jain16, table 3", True),
        ("bibtex", "as printed in jain16, table 2", True),  # which has it only in a figure
        ("bibtex", "P as printed on the repository's page", False),
        ("eurlex-4k", "as printed in jain16, table 3", False),
        ("eurlex-4k", "as printed by the documents", False),
        ("eurlex-4k", "as printed in the five documents", False),
    ],
)
def test_print_of_other_data_is_called_so(name, words, others):
    assert compare_with_print.of_others(words, [run_on(name), words]) == (f"of other data, {words}" if others else "")
    assert compare_with_print.of_others(words, [words]) == ""


def test_a_stand_in_is_beside_what_it_stands_for_by_both_names():
    """reeval's SVM is a linear one-vs-rest, as DiSMEC is; an SVM of the reader's own goes before it."""
    ours = TABLE.assign(model="DiSMEC", metric="P", k=[1, 3, 5, 7])
    found = compare_with_print.beside(run_on("eurlex-4k"), ours, ["reeval:table3"])
    assert set(found["method"]) == {"SVM, here DiSMEC"}
    assert dict(zip(found["metric"], found["printed"], strict=True)) == {"P@1": "83.44", "P@3": "70.62", "P@5": "59.08"}
    own = pd.concat([ours, TABLE[:1].assign(model="SVM", value=80.0)])
    found = compare_with_print.beside(run_on("eurlex-4k"), own, ["reeval:table3"]).set_index("metric")
    assert found.loc["P@1", ["method", "ours"]].tolist() == ["SVM", "80.00"]
    found = compare_with_print.beside(run_on("eurlex-4k"), ours, ["calibration:table2"])
    assert not found["method"].str.contains("SVM").any()


def test_a_difference_is_of_what_is_shown():
    """A printed number that is read otherwise shows its reading, and one that cannot be read has no difference."""
    seen = set()
    for name in ("eurlex-4k", "amazoncat-13k", "amazon-670k"):
        for line in compare_with_print.lines(name, ["calibration"]).itertuples():
            if line.reading != "as printed" and line.method:
                about = line.method, line.variant, line.metric, str(line.k)
                cell = compare_with_print.Cell("i", "", *about, 5.0, np.nan, 0.1)
                found = compare_with_print.row(line, str(line.k), cell, [cell], 100)
                shown = found["printed"].replace("†", "").rpartition(" ")[2]
                if found["difference"]:
                    assert float(found["difference"]) == pytest.approx(5.0 - float(shown), abs=0.0051)
                    assert ("read as" in found["printed"]) == (float(line.printed) != line.value)
                else:
                    assert (found["chance"], np.isnan(line.value)) == ("cannot tell", True)
                seen.add(bool(found["difference"]))
    assert seen == {True, False}
