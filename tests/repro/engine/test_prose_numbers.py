"""Typed numbers: each way in which a text and a run may part is found, and what is no number is left alone."""

from __future__ import annotations

import json
import threading

import pytest

from tests.refused import refused
from xcrepro.core.errors import DataError
from xcrepro.repro.engine import items, manifest, notebooks, prose_numbers, runner

TEXT = """**PfastXML** gains **2.9**<!-- gain["a"] --> points of PSP@1 on EURLex-4K, [6,000<!-- n --> records](a-1.5.md)
say (1.9<!-- 1.94 * one --> to 4.0<!-- 4 * one -->), `x = 0.5` and $p = 0.12$; it trails by −1.5<!-- -1.52 * one --> in table 4,
on two<!-- 2 * one --> of three sets.<!-- must: n > 0 and all(x > 1 for x in [n, gain["a"]]) --> Others print
7.7<!-- "Jain, 2016" -->."""
NAMES = {"gain": {"a": 2.91}, "n": 6000, "one": 1.0}


def answer(project, text=TEXT):
    return {**project.markdown(text), "metadata": {"tags": ["answer"]}}


def cells(project, text=TEXT, *more):
    return project.notebook(answer(project, text), project.markdown("By the way: 7.7"), *more)


def test_a_text_that_is_so(project):
    given = cells(project)
    assert prose_numbers.faults(given, NAMES) == []
    assert prose_numbers.unheld(given) == []
    assert " ".join(one.written for one in prose_numbers.held(given)) == "2.9 6,000 1.9 4.0 −1.5 two  7.7"
    assert "<!--" not in prose_numbers.without_comments(TEXT)


@pytest.mark.parametrize(
    ("names", "written", "now"),
    [
        ({"gain": {"a": 2.96}}, "2.9", "3.0"),
        ({"n": 7200}, "6,000", "7,200"),
        ({"one": 1.5}, "1.9", "2.9"),
        ({"one": 1.5}, "−1.5", "−2.3"),
        ({"one": 1.5}, "two", ""),
        ({"n": 0}, "", ""),
        ({"n": None}, "", ""),
    ],
)
def test_planted_faults(project, names, written, now):
    found = {one.held.written: one.now for one in prose_numbers.faults(cells(project), NAMES | names)}
    assert found[written] == now


def test_a_text_that_an_expression_gives_is_a_number_too(project):
    given = cells(project, "It is 2.9<!-- printed -->.")
    assert prose_numbers.faults(given, {"printed": "2.90"}) == []
    assert prose_numbers.faults(given, {"printed": "3.1"})[0].now == "3.1"
    assert "ValueError" in prose_numbers.faults(given, {"printed": "many"})[0].why


@pytest.mark.parametrize("name", ["gain", "n", "one"])
def test_an_expression_that_fails_is_a_fault_of_its_own(project, name):
    rest = {key: value for key, value in NAMES.items() if key != name}
    assert any("NameError" in one.why for one in prose_numbers.faults(cells(project), rest))


@pytest.mark.parametrize(
    "text",
    [
        *("It gains 2.9 points.", "It gains 12 points.", "It has 6,000 records.", "It leads in two of three sets."),
        *("It is twice as large.", "It takes four times the room.", "It gains 2.9<!-- 2.9 --> points."),
        *("It gains <!-- gain --> points.", "It gains many<!-- gain --> points."),
        *("0 % of them", "1 of 12", "−3 points"),
    ],
)
def test_a_number_without_a_comment_is_refused(project, text):
    assert len(prose_numbers.unheld(cells(project, text))) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "Tables 3, 4 and 7 to 9 with equation 5, figures 3c and 3d, (12) and sections 5.3 and 6.1",
        "for k = 1, 3 and 5, at C = 0.1 or 10 and β = 0.25, PSP@1, 3 and 5 of EURLex-4K and Wiki10-31K",
        "(Jain et al., 2016; in 2019, since 1998)",
        "a 95 % interval; 99 % of the draws",
        "headings with 5 to 19 training records, and 10 to 99 training records",
        "with 50 records, fitted to 1,000 points, per 1,000 test records, labels with 10 to 99",
        "it is printed twice and trained three times; lines 5 and 14, label 2",
        "above 0, below 1, at most 100 %",
        "1. first\n2. second",
        "`points = 8000` and $0.5 + 0.5$ and [words](page-7.7.md) and <img src='a7.png'>",
        "two models, one of them, and one of the two documents",
    ],
)
def test_what_needs_no_comment(project, text):
    assert prose_numbers.unheld(cells(project, text)) == []


@pytest.mark.parametrize(
    ("value", "written", "so"),
    [
        (2, "twice", True),
        (2.6, "twice", False),
        (0.47, "half", True),
        (0.4, "half", False),
        (3, "Three", True),
        (-0.44, "-0.4", True),
        (0.44, "-0.4", False),
        (float("nan"), "0.4", False),
        (12345, "12,345", True),
    ],
)
def test_rounding(value, written, so):
    assert prose_numbers.rounds_to(value, written) is so


def test_numbers_are_put_into_a_text_and_each_sentence_that_changed_is_told(project):
    given = cells(project, "It gains 2.9<!-- a --> points. It loses 1.0<!-- b -->. It has 9,000<!-- c --> records.")
    found = prose_numbers.faults(given, {"a": 11.04, "b": 1, "c": 12000})
    changes = [(one.held.cell, one.held.start, one.held.written, one.now) for one in found]
    said = prose_numbers.rewritten(given, changes)
    assert notebooks.text(given["cells"][0]["source"]) == (
        "It gains 11.0<!-- a --> points. It loses 1.0<!-- b -->. It has 12,000<!-- c --> records."
    )
    assert said == ["It gains 2.9 points. -> It gains 11.0 points.", "It has 9,000 records. -> It has 12,000 records."]
    with pytest.raises(prose_numbers.XCError):
        prose_numbers.rewritten(given, changes)  # the text is another one by now


def written(project, text=TEXT):
    project.add("one")
    notebook = cells(project, text, project.code("seed = 0", "parameters", count=1))
    return project.accepted(project.root / "notebooks/demo/one.ipynb", notebook)


def test_a_run_is_held_to_its_text_only_with_the_committed_parameters(project, capsys):
    values = notebooks.parameters(written(project))
    items.item("demo/one", values | NAMES).check_text()
    assert "8 numbers" in capsys.readouterr().out
    with pytest.raises(prose_numbers.TypedFault, match=r"2\.9 is 3\.5"):
        items.item("demo/one", values | NAMES | {"gain": {"a": 3.5}}).check_text()
    items.item("demo/one", values | {"seed": 1}).check_text()
    assert "committed run" in capsys.readouterr().out


def test_what_moved_is_listed_by_sentence(project):
    held = project.code("if item.official:\n    loss = 2 * rate\n    gone = missing\n    last = 1", count=1)
    text = "It gains 2.9<!-- rate -->. It loses twice<!-- loss --> as much, or 3<!-- last -->."
    given = cells(project, text + " All<!-- must: rate < 2 --> are low. On TIB, 5<!-- gone -->.", held)
    assert prose_numbers.moved(given, {"rate": 2.94}).splitlines() == [
        "- twice is 5.88, 3 is 1: It loses twice as much, or 3.",
        "- not so here: All are low.",
        "- 1 of the 5 numbers and statements cannot be compared, because this run has not what they are about.",
    ]


@pytest.mark.parametrize(
    ("ran", "edited"),
    [
        (["", "seed = 0", "x = 1"], False),
        # As papermill writes them, and IPython keeps them.
        (["", "seed = 0", "x = 1\n", "# Parameters\nseed = 0\n"], False),
        (["", "seed = 0", "x = 2"], True),
        (["", "seed = 0", "x = 1", "seed = f()"], True),
        (["", "other = 0"], True),
    ],
)
def test_what_ran_in_a_kernel_may_be_other_code_than_is_saved(project, ran, edited):
    project.add("one", "x = 1", parameters="seed = 0")
    item = items.item("demo/one", {"seed": 0, "In": ran})
    assert (item.edited, item.official) == (edited, not edited)


@pytest.mark.parametrize("change", [("x = 1", "x = 2"), ("2.9<", "3.9<"), ('"xcrepro"', '"other"')])
def test_an_edited_notebook_is_the_readers_own_unless_the_kit_runs_it(project, change, monkeypatch, capsys, tmp_path):
    notebook = cells(project, "It gains 2.9<!-- x -->.", project.code("x = 1", count=1))
    path = project.root / "notebooks/demo/one.ipynb"
    project.add("one")
    project.accepted(path, notebook)
    assert items.item("demo/one", {"x": 2.9}).official
    path.write_text(path.read_text().replace(*change))
    item = items.item("demo/one", {"x": 1})
    assert not item.official
    item.check_text()
    assert "committed run" in capsys.readouterr().out
    monkeypatch.setenv("XCREPRO_RECORD", str(tmp_path / "notes"))
    item = items.item("demo/one", {"x": 1})
    assert item.official
    item.check_text()
    assert json.loads((tmp_path / "notes").read_text().splitlines()[-1])[0] == "moved"


def test_accepting_notes_what_moved_and_refuses_what_is_not_so(project, monkeypatch, tmp_path):
    values = notebooks.parameters(written(project))
    monkeypatch.setenv("XCREPRO_ACCEPT", "demo/one")
    monkeypatch.setenv("XCREPRO_RECORD", str(tmp_path / "notes"))
    items.item("demo/one", values | NAMES | {"gain": {"a": 3.5}}).check_text()
    assert json.loads((tmp_path / "notes").read_text().splitlines()[-1])[0] == "typed"
    with pytest.raises(prose_numbers.TypedFault, match="n > 0"):
        items.item("demo/one", values | NAMES | {"n": 0}).check_text()


def test_accept_writes_the_number_into_the_notebook(project, capsys, in_process):
    source = 'from xcrepro import repro\nitem = repro.item("demo/one", globals())\nfound = 3.14'
    project.add("one", source, "item.check_text()")
    path = project.root / "notebooks/demo/one.ipynb"
    given = notebooks.read(path)
    given["cells"].insert(0, answer(project, "We find 2.9<!-- found --> of them."))
    path.write_text(json.dumps(given))
    assert not runner.run("demo/one").ok
    assert runner.run("demo/one", accept=True).ok
    assert notebooks.text(notebooks.read(path)["cells"][0]["source"]) == "We find 3.1<!-- found --> of them."
    assert "We find 2.9 of them. -> We find 3.1 of them." in capsys.readouterr().out
    path.write_text(path.read_text().replace("We find 3.1", "We find 3.2"))
    run = runner.run("demo/one")  # not unchanged: a number of its text is another one
    assert run.results[0].outcome == "differs"
    assert any("3.2 is 3.14" in said for said in run.results[0].said)


def test_an_item_without_a_module_has_the_rules_of_its_data(root, monkeypatch):
    monkeypatch.setenv("XCREPRO_ROOT", str(root))
    entry = manifest.load()["jain16/table3_table4"]
    items.check_parameters(entry, entry.official())
    with refused("parameter scale", 2.0):
        items.check_parameters(entry, entry.official() | {"scale": 2.0})


def test_a_notebook_that_is_being_saved_is_read_when_it_is_there(tmp_path):
    file, whole = tmp_path / "one.ipynb", json.dumps({"nbformat": 4, "cells": []})
    file.write_text("")
    saver = threading.Timer(0.15, file.write_text, [whole])
    saver.start()
    assert notebooks.read(file)["cells"] == []
    saver.join()
    file.write_text("null")
    with pytest.raises(DataError, match="not a notebook"):
        notebooks.read(file)
    file.write_text("")
    with pytest.raises(DataError, match="not JSON"):
        notebooks.read(file)
