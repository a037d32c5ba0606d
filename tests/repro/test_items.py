"""The manifest's rules, each with a planted fault, and the item that a notebook holds."""

from __future__ import annotations

import pandas as pd
import pytest

from xcrepro import repro
from xcrepro.errors import ArgumentError
from xcrepro.repro import manifest

ITEM = """
[[item]]
id = "demo/one"
notebook = "one.ipynb"
title = "One"
paper = "demo"
parameters.small = { seed = 0, folder = "" }
parameters.paper = { seed = 1, folder = "" }
"""


@pytest.fixture
def listed(project):
    (project.root / "notebooks/one.ipynb").write_text("{}")
    (project.root / "notebooks/two.ipynb").write_text("{}")
    project.manifest(ITEM)
    return project


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[item]", "not valid TOML"),
        ("[[items]]\n", "unknown top-level key 'items'"),
        (ITEM + 'kind = "x"', "item demo/one: unknown key 'kind'"),
        (ITEM.replace('title = "One"', ""), "title is missing"),
        (ITEM.replace('title = "One"', "title = 3"), "title must be a text"),
        (ITEM.replace("demo/one", "one"), "id must look like"),
        (ITEM.replace("demo/one", "demo/../one"), "id must look like"),
        (ITEM + ITEM, "item 'demo/one' is there twice"),
        (ITEM.replace("one.ipynb", "none.ipynb"), r"none\.ipynb is not there"),
        (ITEM + 'outputs = "a.csv"', "outputs must be a list"),
        (ITEM + 'outputs = ["../a.csv"]', "must be a path inside"),
        (ITEM + 'inputs = ["/etc/a.csv"]', "must be a path inside"),
        (ITEM + "stage = true", "stage must be a whole number"),
        (ITEM + "tolerance = 0.02", "tolerance and tolerance_why go together"),
        (ITEM + 'tolerance = 0.02\ntolerance_why = " "', "tolerance and tolerance_why go together"),
        (ITEM + 'tolerance_why = "training"', "tolerance and tolerance_why go together"),
        (ITEM + 'tolerance = 2\ntolerance_why = "training"', "must be between 0 and 1"),
        (ITEM.replace("parameters.paper", "parameters.large"), "parameters.large is not a size"),
        (ITEM.replace("parameters.small", "#"), "parameters.small is missing"),
        (ITEM.replace("{ seed = 1,", "{ sede = 1,"), "must have the same names"),
        (ITEM.replace("{ seed = 1,", '{ size = "x", seed = 1,'), "must not repeat `size`"),
        (ITEM + 'needs = ["demo/two"]', "needs 'demo/two', which is not an item"),
        (ITEM + 'needs = ["demo/one"]', "in a circle: demo/one -> demo/one"),
        (
            ITEM + 'needs = ["demo/two"]' + ITEM.replace("one", "two") + 'needs = ["demo/one"]',
            "in a circle: demo/one -> demo/two -> demo/one",
        ),
        (
            ITEM + 'stage = 0\nneeds = ["demo/two"]' + ITEM.replace("one", "two"),
            "needs demo/two, which is of a later stage",
        ),
    ],
)
def test_faults_in_the_manifest(listed, text, message):
    listed.manifest(text)
    with pytest.raises(manifest.ManifestError, match=message):
        manifest.load()


def test_a_project_without_manifest(tmp_path):
    with pytest.raises(manifest.ManifestError, match="set XCREPRO_ROOT"):
        manifest.load(tmp_path)


def test_order_and_selection(listed):
    listed.manifest(ITEM + ITEM.replace("demo/one", "other/two") + 'needs = ["demo/zero"]' + ITEM.replace("one", "zero")
                    .replace("zero.ipynb", "two.ipynb") + "stage = 0")  # fmt: skip
    entries = manifest.load()
    assert list(entries) == ["demo/zero", "demo/one", "other/two"]
    assert manifest.select(entries, None) == manifest.select(entries, "") == list(entries)
    assert manifest.select(entries, "demo/one") == ["demo/one"]
    assert manifest.select(entries, "other") == ["demo/zero", "other/two"]
    assert manifest.select(entries, "demo/one, demo/zero") == ["demo/zero", "demo/one"]
    with pytest.raises(ArgumentError, match="did you mean demo/one"):
        manifest.select(entries, ["demo/on"])


def test_the_official_run_is_the_manifests(listed, capsys):
    item = repro.item("demo/one", size="small", seed=0, folder="")
    assert (item.official, item.size, item.name("a")) == (True, "small", "demo/one:a")
    assert item.folder == listed.root / "figures"
    assert repro.item("demo/one", size="paper", seed=1, folder="").folder == listed.root / "build/figures/paper"
    for other in ({"seed": 1, "folder": ""}, {"seed": 0, "folder": "x"}):
        item = repro.item("demo/one", **other)
        assert not item.official
        assert item.folder == listed.root / "build/figures/other"
        item.check(pd.DataFrame({"x": [1]}))
        assert capsys.readouterr().out == "demo/one: not compared, these are not the manifest's parameters\n"


def test_a_tuple_is_the_manifests_list(listed):
    listed.manifest(ITEM.replace("seed = 0", "seed = [0, 1]").replace("seed = 1,", "seed = [1],"))
    assert repro.item("demo/one", seed=(0, 1), folder="").official


def test_figures_can_be_moved_for_a_test(listed, monkeypatch):
    monkeypatch.setenv("XCREPRO_FIGURES", "build/nbval")
    item = repro.item("demo/one", seed=0, folder="")
    item.save_table(pd.DataFrame({"x": [1]}), part="a")
    with repro.figures.new() as (fig, _):
        pass
    item.save_figure(fig, pd.DataFrame({"x": [1]}))
    found = sorted(path.name for path in (listed.root / "build/nbval/demo").iterdir())
    assert found == ["one-a.csv", "one-a.md", "one-a.tex", "one.csv", "one.png", "one.svg"]
    assert not (listed.root / "figures").exists()


def test_the_tolerance_is_the_manifests(listed, capsys):
    listed.manifest(ITEM + 'tolerance = 0.1\ntolerance_why = "trained"')
    listed.golden("demo/one", "x\n1.0\n")
    item = repro.item("demo/one", seed=0, folder="")
    item.check(pd.DataFrame({"x": [1.09]}))
    assert capsys.readouterr().out == "demo/one: 1 of 1 values agree\n"
    item.published(pd.DataFrame({"ours": [1.0], "printed": ["1.0"]}), part="a")
    assert capsys.readouterr().out == "demo/one:a: 1 of 1 published values within rounding\n"
    with pytest.raises(repro.golden.GoldenMismatch):
        item.check(pd.DataFrame({"x": [1.2]}))


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("demo/two", {}, "must be an item"),
        ("demo/one", {"size": "large", "seed": 0, "folder": ""}, "size must be 'small' or 'paper'"),
        ("demo/one", {"seed": 0}, "must be given the parameters size, seed, folder; got size, seed"),
        ("demo/one", {"seed": 0, "folder": "", "k": 1}, "must be given the parameters"),
    ],
)
def test_items_refuse(listed, name, given, message):
    with pytest.raises(ArgumentError, match=message):
        repro.item(name, **given)


def test_names_of_the_subpackage():
    assert repro.tables.show
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = repro.nothing
