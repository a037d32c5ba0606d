"""Real results: what a recorded run keeps, how it is compared and shown, and that what is committed comes out again."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import os
import platform
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintenance import check
from tests.refused import damaged, refused
from xcrepro.__main__ import main
from xcrepro.core.data import registry
from xcrepro.core.data.locate import count_splits
from xcrepro.core.errors import ArgumentError, DataMissing
from xcrepro.repro.drawing import tables
from xcrepro.repro.engine import items, manifest, notebooks, recorded, recording, stamps

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "data/recorded").glob("*/*/*.csv"))
QUICK = {("reeval/fig1_fig4_label_bins", "bibtex")}
"""Run by every `make test`; the others where XCREPRO_LONG is set."""

PARAMETERS = 'dataset = "toy"\nseed = 0\nfolder = ""\nsplit = None\npredictions = ""'
CELL = """
import pandas as pd
from pathlib import Path
from types import SimpleNamespace
from xcrepro import repro
item = repro.item("demo/one", globals())
shift = float(Path(folder, "number.txt").read_text()) if folder else 0.0
table = pd.DataFrame({"model": ["PLT", "BR"], "k": [1, 3], "P": [1 / 3 + shift + (split or 0), 0.25]})
item.check(table)
item.check(table.head(0), "printed")
item.check(table[["model"]].assign(hits=7 + (split or 0)), "hits")
"""


def noted(table: pd.DataFrame, part: str = "") -> dict:
    return {part: [*tables.exact(table)]}


# ---------------------------------------------------------------- the files


def record(table: dict[str, recorded.Table], **provenance: str) -> recorded.Record:
    said = {"dataset": "toy", "split": "0", "splits": "1", "command": "xcrepro run demo/one --record"}
    said |= dict.fromkeys(recorded.FIELDS[4:], "0")
    return recorded.Record({**said, **provenance}, table)


def values_of(made: recorded.Record, part: str) -> list[list[str]]:
    return [[value for value, _ in row.values()] for row in made.tables[part]]


cells = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text(st.characters(exclude_categories=["C"], exclude_characters="<")),
)


@given(st.lists(st.lists(st.tuples(cells, cells), min_size=2, max_size=2), min_size=1, max_size=4))
def test_a_file_says_what_was_written(tmp_path_factory, rows):
    table = [{"a": first, "b, c": second} for first, second in rows]
    wanted = record({"": table, "part": table})
    path = tmp_path_factory.mktemp("recorded") / "toy.csv"
    recorded.write(path, wanted)
    assert recorded.read(path) == wanted
    assert list(pd.read_csv(path)) == list(recorded.COLUMNS)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("table,row", "part,row", 1, "part"),
        (",1,k,1,\n", ",1,k,1\n", 12, "4 fields"),
        (",2,k,3,\n", ",3,k,3,\n", 14, "row '3', column 'k'"),
        (",1,k,1,\n", ",1,k,1,\n,1,k,1,\n", 13, "row '1', column 'k'"),
        (",2,k,3,\n", "", None, "row 2"),
        ("provenance,1,version,0,\n", "", None, "provenance"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, old, new, line, words):
    path = tmp_path / "toy.csv"
    recorded.write(path, record(recorded.mean([noted(pd.DataFrame({"k": [1, 3], "P": [0.5, 0.25]}))])))
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with damaged(path, line, match=words):
        recorded.read(path)


@pytest.mark.parametrize(
    ("part", "column", "value", "words"),
    [
        ("results", "P@1", "199.76", "P@1 of PLT in table 'results' is 199.76, .* 0 to 100"),
        ("results", "P@1", "-5", "from 0 to 100"),
        ("results", "P@1", "nan", "is nan"),
        ("results", "P@1", "1e400", "is 1e400"),
        ("results", "P@1", "many", "is many"),
        ("changes", "P@1", "-101", "from -100 to 100"),
        ("results", "model", "<script>alert(1)</script>", "markup, '<script>"),
        ("results", "<img src=x>", "1", "markup"),
        ("results", "P@1", "100", ""),
        ("results", "NLL@1", "199.76", ""),
        ("results", "PSP@1 (unnormalised)", "120", ""),  # which has no such range
        ("changes", "P@1", "-5", ""),
        ("evidence", "value", "-0.05", ""),
        ("results", "note", "a < b", ""),
    ],
)
def test_what_no_run_can_come_to_is_neither_written_nor_read(tmp_path, part, column, value, words):
    """A wide table, and the same number in a long one."""
    path, wide = tmp_path / "made.csv", {"model": ("PLT", ""), column: (value, "")}
    metric, _, k = column.partition("@")
    long = {"model": ("PLT", ""), "metric": (metric, ""), "k": (k[:1], ""), "value": (value, "")}
    for table in [wide, long] if "@" in column and "(" not in column else [wide]:
        made = record({part: [table]})
        if not words:
            recorded.write(path, made)
            assert recorded.read(path) == made
            continue
        path.unlink(missing_ok=True)
        with damaged(path, match=words):
            recorded.write(path, made)
        assert not path.exists()
        path.write_text(recorded._text(made), encoding="utf-8")
        with damaged(path, match=words):
            recorded.read(path)


def test_a_frame_has_numbers_where_all_are():
    rows = [["PLT", "nan", "1"], ["BR", "1e-3", "x"]]
    table = [{name: (text, "") for name, text in zip(("model", "P", "note"), row, strict=True)} for row in rows]
    found = recorded.frame(record({"part": table}), "part")
    assert found["P"].fillna(-1).tolist() == [-1, 0.001]
    assert found["note"].tolist() == ["1", "x"]
    assert recorded.frame(record({"part": table}), "other") is None


# ---------------------------------------------------------------- means


values = st.integers(-(10**6), 10**6).map(lambda whole: whole / 1000)


@given(st.lists(values, min_size=2, max_size=5), st.integers(-9, 9))
def test_mean_and_standard_deviation_are_those_of_pandas(values, first):
    runs = [noted(pd.DataFrame({"model": ["PLT"], "P": [value], "k": [first + i]})) for i, value in enumerate(values)]
    series = {"P": pd.Series(values), "k": pd.Series([first + i for i in range(len(values))])}
    [row] = recorded.mean(runs)[""]
    assert row["model"] == ("PLT", "")
    for name, column in series.items():
        scale = column.abs().max()
        mean, sd = row[name]
        assert float(mean) == pytest.approx(column.mean(), rel=1e-5, abs=1e-6 * scale)
        if column.nunique() > 1:
            assert float(sd) == pytest.approx(column.std(), rel=1e-5, abs=1e-6 * scale)
        else:
            assert sd == ""


def test_where_splits_have_no_mean():
    table = pd.DataFrame({"model": ["PLT", "BR"], "P": [0.5, float("nan")]})
    assert recorded.mean([noted(table), noted(table.assign(P=[0.7, 0.1]))])[""][1] == {
        "model": ("BR", ""),
        "P": ("nan", "nan"),
    }
    for other, message in (
        (table.iloc[::-1].reset_index(drop=True), "no mean"),
        (table.head(1), "another form"),
        (table.rename(columns={"P": "R"}), "another form"),
    ):
        with pytest.raises(recorded.RecordMismatch, match=message):
            recorded.mean([noted(table), noted(other)])
    with pytest.raises(recorded.RecordMismatch, match="other tables"):
        recorded.mean([noted(table), noted(table, "part")])
    assert recorded.mean([noted(table.head(0)) | noted(table, "part")]).keys() == {"part"}


# ---------------------------------------------------------------- comparing


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, ""),
        ({"P": [0.5000004, 0.25]}, ""),
        ({"P": [0.50001, 0.25]}, r"',1,P,0\.50001,' instead of ',1,P,0\.5,'"),
        ({"P": [0.5, float("nan")]}, "',2,P,nan,' instead of"),
        ({"k": [1, 4]}, "',2,k,4,' instead of ',2,k,3,'"),
        ({"model": ["PLT", "OVR"]}, "',2,model,OVR,' instead of ',2,model,BR,'"),
    ],
)
def test_six_digits_are_equal_or_not(change, message):
    table = pd.DataFrame({"model": ["PLT", "BR"], "k": [1, 3], "P": [0.5, 0.25]})
    committed, now = (record(recorded.mean([noted(one)])) for one in (table, table.assign(**change)))
    if not message:
        assert recorded.compare(now, committed).startswith("6 of 6")
        return
    with pytest.raises(recorded.RecordMismatch, match=message):
        recorded.compare(now, committed)


@pytest.mark.parametrize(
    ("field", "said"),
    [("dataset", "other"), ("split", "1"), ("splits", "2"), ("command", "xcrepro run demo/two --record")],
)
def test_another_run_is_another_record(field, said):
    table = recorded.mean([noted(pd.DataFrame({"P": [50.0]}))])
    assert recorded.compare(record(table, version="9"), record(table))
    with pytest.raises(recorded.RecordMismatch, match=field):
        recorded.compare(record(table, **{field: said}), record(table))


def test_a_standard_deviation_counts():
    runs = [noted(pd.DataFrame({"P": [value]})) for value in (40.0, 60.0)]
    now = record(recorded.mean(runs))
    off = dataclasses.replace(now, tables={"": [{"P": ("50.0", "14.2")}]})
    with pytest.raises(recorded.RecordMismatch, match=r"50\.0,14\.1421' instead of ',1,P,50\.0,14\.2"):
        recorded.compare(now, off)


# ---------------------------------------------------------------- a recorded run


@pytest.fixture
def toy(project, tmp_path, monkeypatch):
    """A project with an item, and a toy dataset beside it that has as many splits as its folder says."""
    project.add("one", CELL, parameters=PARAMETERS, recorded='{ toy = { split = "mean" } }')
    home = tmp_path / "given" / "toy"
    home.mkdir(parents=True)
    (home / "number.txt").write_text("0.5")
    (home / "splits.txt").write_text("2")
    monkeypatch.setattr(
        "xcrepro.core.data.locate.count_splits", lambda name, path: int(Path(path, "splits.txt").read_text())
    )
    return project, home


def splits(ran: list[dict]) -> list[int]:
    return [given["split"] for given in ran]


def test_record_from_the_run_to_the_notebook(toy, capsys, request):
    """By hand, by the manifest, again, with a planted change, and shown."""
    project, home = toy
    path = project.root / "data/recorded/demo/one/toy.csv"
    by_hand = ["run", "demo/one", "-p", "folder", str(home), "-p", "dataset", "toy", "--record"]
    assert main(by_hand) == 0
    made = recorded.read(path)
    assert made.provenance["command"] == "xcrepro run demo/one -p dataset toy -p folder DIR --record"
    assert str(project.root) not in path.read_text()
    assert values_of(made, "") == [["PLT", "1", "0.833333"], ["BR", "3", "0.25"]]
    assert list(made.tables) == ["", "hits"]
    said = check.project()["data/recorded/demo/one/toy.csv"][0]
    assert f"`{made.provenance['command']}`" in said

    capsys.readouterr()
    ran = request.getfixturevalue("in_process")
    everything = ["run", "--record", "--data", str(home.parent)]
    assert main(everything) == 0
    printed = capsys.readouterr().out
    assert "split 1  ok" in printed
    assert splits(ran) == [0, 1]
    assert "line 3: 'provenance,1,split,mean,'" in printed
    made = recorded.read(path)
    assert [*made.tables[""][0].values()] == [("PLT", ""), ("1", ""), ("1.33333", "0.707107")]
    assert {sd for _, sd in made.tables[""][1].values()} == {""}
    assert values_of(made, "hits") == [["PLT", "7.5"], ["BR", "7.5"]]
    assert "data/recorded/demo/one/toy.csv" not in check.project()

    # Again: nothing runs, and what is committed is as it was. A changed number in it is found.
    said = made.provenance
    files = [home / name for name in ("number.txt", "splits.txt")]
    listed = "".join(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in files)
    assert said["data SHA-256"] == hashlib.sha256(listed.encode()).hexdigest()
    assert said["libraries"].startswith(f"python {platform.python_version()}, numpy {np.__version__}")
    assert (said["commit"], said["date"][:2], bool(said["processor"])) == ("no clone", "20", True)
    before = path.read_bytes()
    # What an older file does not say of its making is noted by the next run that equals it.
    path.write_text(path.read_text().replace(said["processor"], recorded.NOT_NOTED))
    assert (main(everything), path.read_bytes(), bool(capsys.readouterr())) == (0, before, True)
    assert main(everything) == 0
    assert splits(ran) == [0, 1]
    printed = capsys.readouterr().out
    assert "split 0  unchanged" in printed
    assert "data/recorded/demo/one/toy.csv: 10 of 10 values" in printed
    assert path.read_bytes() == before
    path.write_text(path.read_text().replace("1.33333", "1.33444"))
    assert main(everything) == 0
    assert "instead of ',1,P,1.33444,0.707107'" in capsys.readouterr().out
    assert path.read_bytes() == before

    # In the notebook: the table of every dataset but the run's own; it counts as an input of the item.
    values = notebooks.parameters(project.root / "notebooks/demo/one.ipynb")
    assert items.item("demo/one", values).recorded() == {}
    assert items.item("demo/one", values | {"dataset": "other"}).recorded()["toy"]["P"].iloc[0] == 1.33333
    alias = items.item("demo/one", values | {"dataset": "Toy"})  # by another of its names
    alias.made_from(SimpleNamespace(name="toy", origin="Toy", notes=()))
    assert alias.recorded() == {}
    entry = manifest.load()["demo/one"]
    assert list(stamps.fingerprint(entry, values, {}, {})["recorded"]) == ["data/recorded/demo/one/toy.csv"]


def test_one_of_several_splits_is_named():
    for said, name in (
        ({"split": "0", "splits": "1"}, "toy"),
        ({"split": "mean", "splits": "10"}, "toy"),
        ({"split": "0", "splits": "10"}, "toy, split 0"),
        ({"split": "7", "splits": "10"}, "toy, split 7"),
    ):
        made = record(
            {"": [{"dataset": ("Toy", ""), "P": ("1", "")}, {"dataset": ("Other", ""), "P": ("2", "")}]}, **said
        )
        assert recorded.sample(made) == name
        assert list(recorded.frame(made)["dataset"]) == [name.replace("toy", "Toy"), "Other"]
    assert registry.title("delicious, split 7") == "Delicious, split 7"
    assert registry.title("toy, split 7") == "toy, split 7"
    assert registry.title("delicious") == "Delicious"


def test_a_run_goes_on_where_it_was(toy, capsys, in_process):
    """The second split fails, and runs alone when it is asked for again. Other data, and other code, run anew."""
    project, home = toy
    broken = CELL.replace("item.check(table)\n", "assert split != 1, 'planted'\nitem.check(table)\n")
    project.add("one", broken, parameters=PARAMETERS, recorded='{ toy = { split = "mean" } }')
    everything = ["run", "--record", "--data", str(home.parent)]
    assert main(everything) == 1
    printed = capsys.readouterr().out
    assert "split 0  ok" in printed
    assert "AssertionError: planted" in printed
    assert "0 stand, 1 failed" in printed
    assert not (project.root / "data").exists()
    assert main(everything) == 1
    assert splits(in_process) == [0, 1, 1]
    (home / "number.txt").write_text("0.6")
    assert main(everything) == 1
    assert splits(in_process) == [0, 1, 1, 0, 1]
    project.add("one", CELL, parameters=PARAMETERS, recorded='{ toy = { split = "mean" } }')
    assert main(everything) == 0
    assert splits(in_process) == [0, 1, 1, 0, 1, 0, 1]
    assert main([*everything, "--force"]) == 0
    assert splits(in_process) == [0, 1, 1, 0, 1, 0, 1, 0, 1]


def test_the_mean_without_a_record_commits_nothing(toy, capsys, in_process):
    project, home = toy
    assert main(["run", "demo/one", "-p", "folder", str(home), "-p", "split", "mean"]) == 0
    assert "build/recorded/demo/one/toy.csv written: new" in capsys.readouterr().out
    assert not (project.root / "data").exists()


@pytest.mark.parametrize(
    ("given", "argument", "words"),
    [
        ({}, "folder of demo/one", "real data"),
        ({"predictions": "mine.npz"}, "predictions", "mine"),
        ({"fodler": 1}, "parameters", "did you mean 'folder'"),
        ({"dataset": "../up"}, "dataset", "name"),
        ({"split": "mean"}, "split", "one split"),
    ],
)
def test_what_cannot_be_recorded(toy, given, argument, words):
    _, home = toy
    entry = manifest.load()["demo/one"]
    with refused(argument, match=words):
        recording.of(entry, {"folder": str(home), **given} if given else {}, lambda *_: 1)


def test_what_is_not_there_cannot_be_recorded(toy):
    with pytest.raises(DataMissing, match="none"):
        recording.of(manifest.load()["demo/one"], {"folder": str(toy[1] / "none")}, lambda *_: 1)


def test_a_reader_is_told_at_the_command_line(toy, capsys):
    _, home = toy
    for arguments, words in (
        (["run", "--record"], "named items"),
        (["run", "--data", str(home)], "--record"),
        (["run", "--costs"], "--record"),
        (["run", "demo/one", "--record"], "real data"),
        (["run", "--record", "--data", str(home), "-p", "seed", "1"], "without -p"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    assert main(["run", "--record", "--data", str(home)]) == 0
    assert f"left out: {home}/toy" in capsys.readouterr().out


def test_items_of_several_datasets_are_recorded_one_by_one(project, tmp_path):
    project.add("two", parameters='names = ["a", "b"]\nscales = [1.0]\nks = [5]\nfolder = ""',
                recorded="{ a = { ks = [2] } }")  # fmt: skip
    (tmp_path / "a").mkdir()
    entry = manifest.load()["demo/two"]
    made = recording.of(entry, recording.planned(entry, "a", tmp_path), lambda *_: 1)
    assert made.command == """xcrepro run demo/two -p names '["a"]' -p scales '[]' -p ks '[2]' -p folder DIR --record"""
    assert (made.home, made.values["folder"]) == (tmp_path / "a", str(tmp_path))
    id, parsed = recording.parse(made.command)
    assert (id, {**parsed, "folder": str(tmp_path)}) == ("demo/two", recording.planned(entry, "a", tmp_path))
    with pytest.raises(ArgumentError, match="one dataset"):
        recording.of(entry, {"folder": str(tmp_path)}, lambda *_: 1)


def test_sentences_and_outcomes_of_splits():
    table = [["id", "outcome", "effect"], ["text"] * 3]
    runs = [{"": [*table, [["a", "holds", "39.6 %, +2 of 3"], ["b", one, "1"]]]} for one in ("holds", "does not hold")]
    runs[1][""][2][0][2] = "40.0 %, +3 of 3"
    found = record(recorded.mean(runs))
    assert values_of(found, "") == [["a", "holds", "39.8 %, +2 of 3"], ["b", "cannot tell", "1"]]
    runs[1][""][2][0][2] = "forty"
    with pytest.raises(recorded.RecordMismatch, match="no mean"):
        recorded.mean(runs)


def test_data_that_come_with_the_project_need_no_folder(project):
    project.add("one", parameters=PARAMETERS, recorded='{ toy = { split = "mean" } }')
    entry = manifest.load()["demo/one"]
    assert "folder" in recording.planned(entry, "toy", "DIR")
    (project.root / "data/toy").mkdir(parents=True)
    (project.root / "data/toy/SHA256SUMS").write_text("")
    asked = []
    given = recording.planned(entry, "toy", "DIR")
    made = recording.of(entry, given, lambda *about: asked.append(about) or 3)
    assert (given, asked) == ({"dataset": "toy", "split": "mean"}, [("toy", None)])
    assert (made.home, made.values["folder"], list(made.runs)) == (project.root / "data/toy", "", [0, 1, 2])
    assert made.command == "xcrepro run demo/one -p dataset toy -p split mean --record"
    assert recording.all_planned([entry], project.root / "nowhere", lambda *_: 3)[1] == []
    for dataset in ("../toy", "", None, "other"):
        with pytest.raises(ArgumentError, match="real data"):
            recording.of(entry, {"dataset": dataset}, lambda *_: 3)


def test_a_record_that_the_manifest_does_not_have_is_found(project):
    project.add("one", parameters=PARAMETERS, recorded="{ toy = {} }")
    (project.root / "data/recorded/demo/one").mkdir(parents=True)
    (project.root / "data/recorded/demo/one/toys.csv").write_text("")
    found = check.project()
    assert found["data/recorded/demo/one/toy.csv"] == [
        "is not there: xcrepro run demo/one -p dataset toy -p folder DIR --record"
    ]
    assert "manifest.toml" in found["data/recorded/demo/one/toys.csv"][0]
    assert any("no cell" in text for text in found["notebooks/demo/one.ipynb"])
    project.add("one", parameters=PARAMETERS, recorded='{ toy = { dataset = "x" } }')
    with pytest.raises(manifest.ManifestError, match="hold dataset"):
        check.project()


def test_splits_are_counted(tmp_path):
    for name, text in (("data", "1 1 1\n0 0:1\n"), ("trSplit", "1 2 3\n"), ("tstSplit", "2 1 1\n")):
        (tmp_path / f"toy_{name}.txt").write_text(text)
    assert count_splits("toy", tmp_path) == 3


# ---------------------------------------------------------------- what is committed


def test_the_readme_has_the_commands(root):
    text = (root / "data/recorded/README.md").read_text()
    for entry in manifest.load(root).values():
        for dataset in entry.recorded:
            assert recording.command(entry, recording.planned(entry, dataset, "DIR")) in text


@pytest.fixture
def rerun(real_data, monkeypatch, request):
    """``rerun(path)``: the committed record and the same run now."""
    if not os.environ.get("XCREPRO_LONG"):
        request.getfixturevalue("in_process")
    monkeypatch.setenv("XCREPRO_ROOT", str(ROOT))

    def run(path: Path) -> tuple[recorded.Record, recorded.Record, manifest.Entry]:
        committed = recorded.read(path)
        id, given = recording.parse(committed.provenance["command"])
        entry = manifest.load(ROOT)[id]
        name = committed.provenance["dataset"]
        home = None if recorded.own_data(name, ROOT) else real_data(name)
        if home:
            given["folder"] = str(home.parent if "names" in given else home)
        return recording.collect(recording.of(entry, given, count_splits)), committed, entry

    return run


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT / "data/recorded").as_posix())
def test_a_record_comes_out_again(path, rerun):
    id = path.parent.relative_to(ROOT / "data/recorded").as_posix()
    if (id, path.stem) not in QUICK and not os.environ.get("XCREPRO_LONG"):
        pytest.skip("takes long: XCREPRO_LONG=1, or make test LONG=1")
    now, committed, _ = rerun(path)
    recorded.compare(now, committed)
    # A number that nobody computed is found, in every table.
    for part, table in committed.tables.items():
        for column, (value, sd) in table[-1].items():
            try:
                other = repr(1.5 * float(value) + 1)
            except ValueError:
                continue
            planted = {**committed.tables, part: [*table[:-1], {**table[-1], column: (other, sd)}]}
            if other != "nan":
                with pytest.raises(recorded.RecordMismatch):
                    recorded.compare(now, dataclasses.replace(committed, tables=planted))


def test_records_hold_aggregates_alone():
    """No table of a record has as many rows as a dataset has points."""
    for path in FILES:
        with open(path, newline="") as file:
            rows = [int(line["row"]) for line in csv.DictReader(file)]
        assert max(rows) < 1000, path
