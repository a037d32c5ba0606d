"""The manifest's rules, each with a planted fault, and the item that a notebook holds."""

from __future__ import annotations

import shutil
import types

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tests.refused import refused
from xcrepro import repro
from xcrepro.core import paths
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.drawing import tables
from xcrepro.repro.engine import items, manifest

ITEM = """
["demo/one"]
title = "One"
"""


@pytest.fixture
def listed(project):
    parameters = 'seed = 0\nfolder = ""'
    project.add("one", parameters=parameters)
    project.add("two")
    project.manifest(ITEM)
    return project


def of(name: str = "demo/one", **values) -> items.Item:
    return repro.item(name, {"seed": 0, "folder": "", "other": 1, **values})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["demo/one"', "TOML"),
        ("title = 3", "item title: "),
        (ITEM + 'kind = "x"', "item demo/one: unknown key 'kind'"),
        (ITEM.replace('title = "One"', ""), "item demo/one: title"),
        (ITEM.replace('title = "One"', "title = 3"), "title must .* got 3"),
        (ITEM.replace("demo/one", "one"), "item one: "),
        (ITEM.replace("demo/one", "demo/../one"), "item demo/../one: "),
        (ITEM + ITEM, "TOML"),
        (ITEM.replace("demo/one", "demo/none"), r"none\.ipynb"),
        (ITEM + 'needs = "demo/two"', "needs must .* got 'demo/two'"),
        (ITEM + 'long = "yes"', "long must .* got 'yes'"),
        (ITEM + "seconds = 0", "seconds must .* got 0"),
        (ITEM + "seconds = true", "seconds must .* got True"),
        (ITEM + "recorded = { bibtex = 3 }", r"recorded\.bibtex must .* got 3"),
        (ITEM + 'needs = ["demo/three"]', "item demo/one: needs 'demo/three'"),
        (ITEM + 'needs = ["demo/one"]', "circle: demo/one -> demo/one"),
        (
            f'{ITEM}needs = ["demo/two"]\n["demo/two"]\ntitle = "Two"\nneeds = ["demo/one"]',
            "demo/one -> demo/two -> demo/one",
        ),
    ],
)
def test_faults_in_the_manifest(listed, text, words):
    listed.manifest(text)
    with pytest.raises(manifest.ManifestError, match=words):
        manifest.load()


def test_a_notebook_without_parameters(listed):
    listed.manifest(ITEM.replace("one", "two"))
    item = repro.item("demo/two", {"seed": 3})
    assert (item.official, item.parameters) == (True, {})


def test_a_project_without_manifest(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "_BROUGHT", tmp_path)
    with pytest.raises(manifest.ManifestError, match="XCREPRO_ROOT"):
        manifest.load(tmp_path)


def test_order_and_selection(listed):
    listed.add("zero")
    listed.manifest(ITEM + ITEM.replace("demo/one", "demo/two") + 'needs = ["demo/zero"]' + ITEM.replace("one", "zero"))
    entries = manifest.load()
    assert list(entries) == ["demo/one", "demo/zero", "demo/two"]
    assert manifest.find(entries, None) == manifest.find(entries, "") == manifest.find(entries, "demo") == list(entries)
    assert manifest.find(entries, "demo/two, demo/one") == ["demo/one", "demo/two"]
    assert manifest.with_needs(entries, ["demo/two"]) == ["demo/zero", "demo/two"]
    with refused("items", "'demo/on'", match="'demo/one'"):
        manifest.find(entries, ["demo/on"])
    listed.add("figure_of_everything")
    # What begins so, before what looks like it.
    with refused("items", "'demo/fig'", match="'demo/figure_of_everything'"):
        manifest.find(manifest.load(), ["demo/fig"])


def test_the_official_run_is_the_notebooks_own(listed, capsys):
    item = of()
    assert (item.official, item.name("a")) == (True, "demo/one:a")
    assert item.parameters == {"seed": 0, "folder": ""}
    assert item.folder == listed.root / "figures"
    for other in ({"seed": 1}, {"folder": "x"}):
        item = of(**other)
        assert not item.official
        [(name, value)] = other.items()
        assert item.folder == listed.root / f"build/figures/other/{name}={value}"
        item.check(pd.DataFrame({"x": [1]}))
        assert capsys.readouterr().out.startswith("demo/one: not compared")


def test_a_tuple_is_the_notebooks_list(listed):
    listed.add("one", parameters="seed = [0, 1]")
    assert repro.item("demo/one", {"seed": (0, 1)}).official


def test_items_refuse(listed):
    with refused("id", "'demo/none'"):
        of("demo/none")
    with refused("parameter seed", match="int"):
        of(seed="one")
    with pytest.raises(ArgumentError, match="seed, folder; got none named seed"):
        repro.item("demo/one", {})


# ---------------------------------------------------------------- what is committed stays where a run agrees with it


def files(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*")}


def draw(table: pd.DataFrame, colour: str = "black"):
    with repro.drawing.figures.new() as (fig, ax):
        ax.plot(table["k"], table["P"], color=colour)
        repro.drawing.figures.draws(ax, x="k", y="P")
    return fig


TABLE = pd.DataFrame({"k": [1, 3], "P": [0.5, 1 / 3]})


@pytest.fixture
def committed(listed):
    """The folder of an item whose figure and tables are there as if committed."""
    item = of()
    item.save_figure(draw(TABLE), TABLE)
    item.save_table(TABLE, part="t")
    item.check(TABLE, "checked")
    (listed.root / "constraints.txt").touch()  # a clone
    return listed.root / "figures" / "demo"


def test_what_is_equal_is_left_as_it_is(committed, monkeypatch, capsys):
    before = files(committed)
    tables = ["one-checked.csv", "one-t.csv"]
    assert sorted(before) == [*tables, "one.csv", "one.png", "one.svg"]
    near = TABLE.assign(P=TABLE["P"] + 1e-9)  # the same in six digits
    capsys.readouterr()
    for run in ({}, {"XCREPRO_FIGURES": "build/test"}):
        for name, value in run.items():
            monkeypatch.setenv(name, value)
        item = of()
        item.save_figure(draw(near), near)
        item.save_table(near, part="t")
        item.check(near, "checked")
        assert capsys.readouterr().out.startswith("demo/one:checked: 4 values equal")
        assert files(committed) == before


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (TABLE.assign(P=[0.600001, 1 / 3]), "line 2: '1,0.600001' instead of '1,0.5'"),
        (TABLE.assign(k=[1, 4]), "line 3: '4,0.333333' instead of '3,0.333333'"),
        (TABLE.rename(columns={"k": "at"}), "line 1: 'at,P' instead of 'k,P'"),
        (TABLE.head(1), "line 3: '' instead of '3,0.333333'"),
    ],
)
def test_what_differs_is_written_and_named_and_a_test_refuses_it(committed, monkeypatch, tmp_path, table, why):
    notes = tmp_path / "notes"
    monkeypatch.setenv("XCREPRO_RECORD", str(notes))
    before = files(committed)
    ways = {
        "one": lambda: of().save_figure(draw(table.rename(columns={"at": "k"})), table.assign(k=table.iloc[:, 0])),
        "one-t": lambda: of().save_table(table, part="t"),
        "one-checked": lambda: of().check(table, "checked"),
    }
    if "at" in table:
        del ways["one"]
    for name, save in ways.items():
        with monkeypatch.context() as test:
            test.setenv("XCREPRO_FIGURES", "build/test")
            with pytest.raises(repro.engine.compare_outputs.NotTheSame, match="run demo/one"):
                save()
        with monkeypatch.context() as other:  # with other versions it is only told, and nothing is written
            other.setattr(repro.engine.compare_outputs, "elsewhere", lambda: ("numpy 9, committed with 2",))
            save()
        assert files(committed) == before
        assert repro.engine.run_log.read(notes)["elsewhere"][-1].endswith("(numpy 9, committed with 2)")
        save()
        changed = {path for path, content in files(committed).items() if before.get(path) != content}
        assert changed == {path for path in before if path.partition(".")[0] == name}
        assert f"figures/demo/{name}.csv: {why}" in repro.engine.run_log.read(notes)["moved"][-1]
        before = files(committed)


@pytest.mark.parametrize("damage", [b"k,P\n1,\xff\n", b"k,P\r1,0.5\n3", b'k,P\n"' + b"1" * 200_000])
def test_a_committed_table_that_is_damaged_differs(committed, monkeypatch, damage):
    """It ended in csv.Error or UnicodeDecodeError."""
    monkeypatch.setenv("XCREPRO_FIGURES", "build/test")
    for name, save in (
        ("one-checked", lambda: of().check(TABLE, "checked")),
        ("one-t", lambda: of().save_table(TABLE, part="t")),
    ):
        (committed / f"{name}.csv").write_bytes(damage)
        with pytest.raises(repro.engine.compare_outputs.NotTheSame, match=rf"{name}\.csv: line"):
            save()


def test_a_readers_own_folder_gets_what_is_drawn_whatever_the_versions(committed, listed, monkeypatch):
    """A wheel with today's libraries said "ok" and wrote nothing, neither the first time nor, with new numbers, the second."""
    monkeypatch.setattr(repro.engine.compare_outputs, "elsewhere", lambda: ("numpy 9, committed with 2",))
    (listed.root / "constraints.txt").unlink()
    monkeypatch.setattr(paths, "_BROUGHT", listed.root / "wheel")
    shutil.copytree(listed.root / "figures", listed.root / "wheel" / "figures")
    shutil.rmtree(listed.root / "figures")
    for number in (0.5, 0.25):
        table = TABLE.assign(P=[number, 1 / 3])
        item = of()
        item.save_figure(draw(table), table)
        item.save_table(table, part="t")
        item.check(table, "checked")
        assert {*files(committed)} == {"one.csv", "one.png", "one.svg", "one-t.csv", "one-checked.csv"}
        assert all(f"1,{number:g}" in (committed / f"one{part}.csv").read_text() for part in ("", "-t", "-checked"))


def test_a_picture_is_drawn_anew_when_its_data_or_its_code_changed(committed, monkeypatch, tmp_path):
    """A fresh clone knows it from the SVG; the bytes of a picture alone, which other fonts may change, are no reason."""
    notes = tmp_path / "notes"
    monkeypatch.setenv("XCREPRO_RECORD", str(notes))
    (committed / "one.png").write_bytes(b"as another machine draws it")
    before = files(committed)
    of().save_figure(draw(TABLE), TABLE)
    assert files(committed) == before
    monkeypatch.setenv("XCREPRO_REDRAW", "1")
    of().save_figure(draw(TABLE), TABLE)
    assert files(committed) == before
    assert repro.engine.run_log.read(notes)["redrawn"] == ["figures/demo/one.png"]
    monkeypatch.delenv("XCREPRO_REDRAW")
    notebook = committed.parent.parent / "notebooks/demo/one.ipynb"
    notebook.write_text(notebook.read_text().replace("folder = ", "folder  = "))
    of().save_figure(draw(TABLE), TABLE)
    assert "figures/demo/one.svg" in repro.engine.run_log.read(notes)["moved"][-1]
    now = files(committed)
    assert {name for name in now if now[name] != before[name]} == {"one.svg", "one.png"}


def test_all_shared_code_of_a_picture_counts(tmp_path):
    (tmp_path / "one.py").write_text('"""A docstring."""\ndef f():\n    """Words."""\n    return 1  # a value\n')
    (tmp_path / "_common.py").write_text("y = 1\n")
    module = types.SimpleNamespace(__file__=str(tmp_path / "one.py"))
    digest = repro.drawing.figures.code_digest
    first = digest(module, "cells")
    other = '"""Another."""\n\n# A comment.\ndef f():\n    """Other."""\n    return 1  # a value\n'
    (tmp_path / "one.py").write_text(other)
    assert digest(module, "cells") == first
    assert digest(module, "other cells") != first
    (tmp_path / "one.py").write_text("x = 2\n")
    assert (second := digest(module, "cells")) != first
    (tmp_path / "_common.py").write_text("y = 2\n")
    assert digest(module, "cells") not in (first, second)
    assert digest(None, "cells") not in (first, digest(None))


def test_two_tables_of_one_name_are_refused(committed):
    item = of()
    item.check(TABLE, "checked")
    item.check(TABLE.copy(), "checked")
    with pytest.raises(ArgumentError, match="another name"):
        item.save_table(TABLE.head(1), part="checked")


def test_a_table_that_says_other_data_is_not_as_committed(committed, monkeypatch, tmp_path):
    """But for that of a picture, whose data ``save_figure`` may name in other words."""
    notes = tmp_path / "notes"
    monkeypatch.setenv("XCREPRO_RECORD", str(notes))
    file = committed / "one-checked.csv"
    file.write_text("k,P,data\n1,0.5,of another day\n")
    for picture in (True, False):
        (committed / "one-checked.png").write_bytes(b"") if picture else (committed / "one-checked.png").unlink()
        item = of()
        item.made_from("as printed")
        item.check(TABLE.head(1), "checked")
        assert ("moved" in repro.engine.run_log.read(notes)) == (not picture)
    assert file.read_text() == "k,P,data\n1,0.5,as printed\n"


def test_accepting_writes_without_a_word(committed, monkeypatch, tmp_path):
    notes = tmp_path / "notes"
    monkeypatch.setenv("XCREPRO_RECORD", str(notes))
    monkeypatch.setenv("XCREPRO_ACCEPT", "demo/one")
    of().check(TABLE.head(1), "checked")
    assert (committed / "one-checked.csv").read_text() == "k,P\n1,0.5\n"
    assert "moved" not in repro.engine.run_log.read(notes)


class Data:
    name, origin, notes = "demo@0.5-seed0", "synthetic twin of Demo × 0.5 (seed 0), 10 test points", ("it is small",)
    title = "Demo, half of it (synthetic)"


def test_what_a_run_is_made_from_stands_in_every_file(listed, capsys):
    item = of(seed=1)
    item.made_from({"Demo": Data()}, "as printed in demo, table 1")
    said = capsys.readouterr().out
    assert said.startswith(f"Data: {Data.origin}; as printed in demo, table 1.\n")
    assert "demo@0.5-seed0: it is small" in said
    item.save_table(pd.DataFrame({"P@1": [50.0]}))
    written = {suffix: (item.folder / f"demo/one{suffix}").read_text() for suffix in (".csv", ".md")}
    assert written[".csv"].splitlines()[0] == "P@1,data"
    assert all(f"synthetic twin of Demo {sign}" in written[suffix] for suffix, sign in ((".csv", "×"), (".md", "×")))
    table, origin = tables.from_csv(written[".csv"])
    foot = r"\multicolumn{1}{l}{\footnotesize Data: synthetic twin of Demo $\times$ 0.5"
    assert foot in tables.latex(table, origin=origin)
    item.save_table(pd.DataFrame({"P@1": [50.0]}), part="printed", origin="as printed")
    assert (item.folder / "demo/one-printed.csv").read_text() == "P@1,data\n50.0,as printed\n"
    with pytest.raises(ArgumentError, match="'data'"):
        item.save_table(pd.DataFrame({"data": [50.0]}), part="odd")


@pytest.mark.parametrize(
    ("datasets", "nothing"),
    [
        (["Demo", "Bibtex"], False),
        (["Demo, half of it (synthetic)"], False),
        (["Demo, split 3", "Bibtex"], False),
        (["Bibtex", "Demonstration"], True),
        (["Demo (all records)", "EURLex-4K, printed"], True),
        ([np.nan, ""], True),
        (None, False),
    ],
)
def test_a_table_that_has_nothing_of_this_run_is_known(listed, datasets, nothing):
    """By the column that names datasets; the foot of its figure then names this run's data no longer."""
    table = pd.DataFrame({"x": [1.0]} if datasets is None else {"dataset": datasets, "x": [1.0] * len(datasets)})
    item = of(seed=1)
    assert not item.nothing_of(table)  # that reads no data
    item.made_from(Data(), "as printed")
    assert item.nothing_of(table) == nothing
    for origin, rest in (
        (f"{item.origin}; Bibtex (recorded)", "as printed; Bibtex (recorded)"),
        (f"{Data.title}; A", "A"),
    ):
        item.made.clear()
        fig, ax = plt.subplots()
        ax.plot(table["x"], table["x"], "o", label="_guide")
        item.save_figure(fig, table, origin=origin)
        [foot] = set(pd.read_csv(item.folder / "demo/one.csv")["data"])
        assert foot == (rest if nothing else origin)


def test_own_runs_have_a_folder_of_their_own(listed):
    assert of(seed=1).folder != of(seed=2).folder
    assert of(folder="b").folder.name == "folder=b"
    one, other = (of(folder=path).folder.name for path in ("a/b", "c/b"))  # two folders of one name
    assert one != other
    assert {one[:9], other[:9]} == {"folder=b-"}
    assert items.own_name(of().entry, {"seed": "a/b"}) != items.own_name(of().entry, {"seed": "a_b"})
    long = items.own_name(of().entry, {"folder": "x" * 300})
    assert len(long) < 120
    assert long != items.own_name(of().entry, {"folder": "x" * 301})
