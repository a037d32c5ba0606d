"""Results that can be sent: what a bundle holds, what it is refused for, and what follows when it is taken up."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from maintenance import take_up
from tests.refused import damaged
from tests.rehearsal import standins
from tests.repro.conftest import project as own_project
from xcrepro.__main__ import main
from xcrepro.core.data import load, registry
from xcrepro.models.twin import twin
from xcrepro.repro.engine import manifest, recorded, recording, stamps
from xcrepro.repro.inputs import fingerprints
from xcrepro.repro.published import reproduced
from xcrepro.tools import bundle

ROOT = Path(__file__).resolve().parents[2]
project = own_project
PARAMETERS = 'dataset = "tib"\nfolder = ""\nsplit = None\nmodels = ["FastXML"]'
CELL = """
import pandas as pd
from xcrepro import repro
item = repro.item("demo/one", globals())
item.check(pd.DataFrame({"model": models, "P@1": [76.5] * len(models)}), "ours")
print("recorded:", *sorted(item.recorded("ours")))
"""
PAGE = """
from xcrepro import repro
item = repro.item("demo/claims", globals())
from xcrepro.repro import recorded
print("page:", *(path.stem for path in recorded.files("demo/one")))
"""
TITLE, NAME = "Mediamill", "mediamill"
ROWS = """document,kind,name,shows,items,extent,why
xcrepo,table,Benchmark table of Mediamill,"P, and others",demo/one,printed,a download
xcrepo,table,Benchmark table of Bibtex,rows,demo/one,printed,a download
jain16,figure,Figure 1,label frequency,demo/one,on other data,another
jain16,figure,Figure 2,curves of Mediamill,demo/one,on other data,ours
calibration,figure,Figure 3,curves,demo/one,on other data,"ours, in place of Mediamill; and more"
calibration,figure,Figure 4,curves of Mediamill,demo/one,stand-in,another method
coverage,figure,Figure 5,curves of Mediamill,demo/two,on other data,not recorded
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """The full-size stand-in of a dataset, without the word that says what it is: as a download would be."""
    home = tmp_path_factory.mktemp("data") / NAME
    home.mkdir()
    shape = standins.published(NAME)
    for path, text in standins.files(NAME, standins.content(shape)).items():
        if Path(path).name != bundle.STAND_IN:
            (home / Path(path).name).write_text(text)
    return home


@pytest.fixture
def sender(project, monkeypatch, tmp_path):
    """A project that has one notebook, a table of which prints rows of the dataset."""
    monkeypatch.setattr(fingerprints, "TABLE", tmp_path / "fingerprints.csv")
    shutil.copy(ROOT / "xcrepro/core/data/catalogue/fingerprints.csv", tmp_path)
    project.add("one", CELL, parameters=PARAMETERS)
    project.add("claims", PAGE, needs=["demo/one"])
    (project.root / reproduced.LISTING).write_text(ROWS)
    (project.root / "README.md").write_text(
        f"A. {reproduced.sentence(reproduced.read(project.root / reproduced.LISTING))}. B.\n"
    )
    (project.root / "data/recorded").mkdir(parents=True)
    said = "xcrepro run demo/nothing -p dataset toy -p folder DIR --record"
    (project.root / "data/recorded/README.md").write_text(f"# Recorded\n\n{said}\n\nMore.\n")
    return project


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """Where the first recorded run leaves its project for the other tests."""
    return tmp_path_factory.mktemp("kept") / "project"


@pytest.fixture
def sent(sender, data, kept, capsys) -> Path:
    """The bundle of a recorded run."""
    bundled = Path("build", "bundles", f"{NAME}.zip")
    if kept.is_dir():
        shutil.copytree(kept, sender.root, dirs_exist_ok=True)
        return sender.root / bundled
    asked = {"dataset": NAME, "folder": str(data), "split": "0", "models": '["FastXML", "SLEEC"]'}
    given = [word for parameter in asked.items() for word in ("-p", *parameter)]
    assert main(["run", "demo/one", *given, "--record"]) == 0
    assert bundled.as_posix() in capsys.readouterr().out
    shutil.copytree(sender.root, kept)
    return sender.root / bundled


def changed(path: Path, to: Path, change=lambda about: None, **members) -> Path:
    """The bundle with what it says of itself changed, and members replaced (None: left out)."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == bundle.ABOUT:
                about = json.loads(content)
                change(about)
                content = json.dumps(about).encode()
            content = members.get(name, content)
            if content is not None:
                new.writestr(name, content)
        for name in members.keys() - {*old.namelist()}:
            new.writestr(name, members[name])
    to.write_bytes(out.getvalue())
    return to


MEMBER = f"recorded/demo/one/{NAME}.csv"


# ---------------------------------------------------------------- what it holds


def test_it_holds_aggregates_and_digests_alone(sent, data):
    made = bundle.read(sent)
    assert [*made.records] == ["demo/one"]
    record = made.records["demo/one"]
    assert [row["model"][0] for row in record.tables["ours"]] == ["FastXML", "SLEEC"]
    about = made.about
    assert about["data"]["files"].keys() == {path.name for path in data.iterdir()}
    ds = load.load(NAME, data)
    truths = {(line["part"], line["split"]): line for line in about["data"]["truths"]}
    assert len(truths) == 2 * 10
    assert truths["test", "0"]["fingerprint"] == fingerprints.fingerprint(ds.test.Y)
    assert sum(about["data"]["label counts"]) == ds.train.Y.nnz + ds.test.Y.nnz
    assert about["versions"]["numpy"] == __import__("numpy").__version__
    with zipfile.ZipFile(sent) as file:
        assert sorted(file.namelist()) == [bundle.ABOUT, MEMBER]
        content = b"".join(file.read(name) for name in file.namelist()).decode()
    for told in (str(data), str(sent.parents[2]), str(Path.home()) + "/"):
        assert told not in content
    assert bundle.problems(made, sent.parents[2]) == []


def test_what_comes_with_the_kit_is_not_sent(root):
    assert "need not be sent" in bundle.made(root, "tib", root / "data/tib")


# ---------------------------------------------------------------- taking it up


def test_it_becomes_the_project_s_own(sent, sender, capsys):
    """Manifest, commands, truths on record, listing and README follow; once more changes nothing."""
    root = sender.root
    (root / f"data/recorded/demo/one/{NAME}.csv").unlink()
    assert take_up.main([str(sent)]) == 0
    out = capsys.readouterr().out
    assert "now: look (git diff)" in out
    entry = manifest.load(root)["demo/one"]
    assert entry.recorded == {NAME: {"models": ["FastXML", "SLEEC"], "split": 0}}
    command = recording.command(entry, recording.planned(entry, NAME, "DIR"))
    made = recorded.read(root / f"data/recorded/demo/one/{NAME}.csv")
    assert made.provenance["command"] == command
    assert recording.problems(manifest.load(root), root) == {}
    assert (root / "data/recorded/README.md").read_text().count(command) == 1
    assert sum(line.dataset == NAME for line in fingerprints.table()) == 20
    with (root / reproduced.LISTING).open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    row = rows[f"Benchmark table of {TITLE}"]
    # FastXML and SLEEC have P@1 in print, and sizes, times and other metrics that the table does not have.
    assert (row["extent"], row["why"].startswith("2 of the ")) == ("in part", True)
    assert rows["Benchmark table of Bibtex"]["extent"] == "printed"
    extents = ["on other data", "in part", "in part", "stand-in", "on other data"]
    assert [rows[f"Figure {number}"]["extent"] for number in range(1, 6)] == extents
    assert all(rows[f"Figure {number}"]["why"].startswith(f"our curves of {TITLE} ") for number in (2, 3))
    # What shows the records follows by itself.
    for name, shown in (("one", "recorded: "), ("claims", "page: ")):
        said = (root / f"notebooks/demo/{name}.ipynb").read_text()
        assert f"{shown}{NAME}" in said
    text = (root / "README.md").read_text()
    assert "3 in part" in text
    assert "1 we compare" in text
    assert text.startswith("A. ")
    assert text.endswith(". B.\n")
    kept = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and "build" not in path.parts}
    assert take_up.main([str(sent)]) == 0
    again = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and "build" not in path.parts}
    assert again == kept


def test_what_an_earlier_bundle_lifted_is_brought_up_to_date():
    row = reproduced.Row(2, "xcrepo", "table", "A", "", ("a/b",), "printed", "a download; of two")
    rows = [row]
    said = take_up._lift(rows, row, "2 of the 9 numbers that it prints of", "Bibtex")
    assert (len(said), rows[0].extent) == (1, "in part")
    first = "2 of the 9 numbers that it prints of Bibtex are computed on these data"
    assert rows[0].why == f"{first}; before: a download; of two"
    assert take_up._lift(rows, rows[0], "2 of the 9 numbers that it prints of", "Bibtex") == []
    take_up._lift(rows, rows[0], "3 of the 5 numbers that it prints of", "Wiki10-31K")
    other = first.replace("2 of the 9", "3 of the 5").replace("Bibtex", "Wiki10-31K")
    assert rows[0].why == f"{other}; {first}; before: a download; of two"
    take_up._lift(rows, rows[0], "4 of the 9 numbers that it prints of", "Bibtex")
    assert rows[0].why == f"{first.replace('2 of', '4 of')}; {other}; before: a download; of two"
    by_hand = dataclasses.replace(row, extent="in part")
    assert take_up._lift([by_hand], by_hand, "2 of the 9 numbers that it prints of", "Bibtex") == []


def test_a_command_takes_the_place_of_the_one_before():
    text = "# A\n\n```\nmake recorded\nxcrepro run a/b -p dataset x -p seed 1 --record\n"
    text += "xcrepro run a/b -p dataset y --record\n```\n\nMore.\n"
    command = "xcrepro run a/b -p dataset x -p seed 2 --record"
    made = recorded.Record({"command": command, "dataset": "x"}, {})
    sent = bundle.Bundle({"dataset": "x"}, {"a/b": made}, {})
    now = text.replace("xcrepro run a/b -p dataset x -p seed 1 --record\n", "")
    now = now.replace("-p dataset y --record\n", f"-p dataset y --record\n{command}\n")
    assert take_up._with_commands(text, sent) == now
    assert take_up._with_commands(now, sent) == now


def test_the_item_and_dataset_of_a_command():
    assert bundle.named_by("xcrepro run a/b -p dataset x -p folder DIR --record") == ("a/b", "x")
    assert bundle.named_by("xcrepro run a/b -p names '[\"x\"]' -p folder DIR --record") == ("a/b", "x")
    for odd in ("", "xcrepro", "xcrepro run a/b -p dataset", "xcrepro run a/b -p names '[]'", "a 'b"):
        assert bundle.named_by(odd)[1] is None


def test_a_dataset_whose_name_begins_like_another(tmp_path):
    """Delicious is not Delicious-200K."""
    home = tmp_path / "build/notebooks/recorded/a/b"
    home.mkdir(parents=True)
    for name in ("delicious-200k-0", "delicious-3"):
        keys = ("parameters", "sources", "versions", "recorded", "data", "needs", "text")
        stamp = stamps.Stamp({"code": name} | {key: {} for key in keys}, {}, {})
        stamps.write_at(home / f"{name}.json", stamp)
    assert bundle._stamp(tmp_path, "a/b", "delicious").fingerprint["code"] == "delicious-3"
    assert bundle._stamp(tmp_path, "a/b", "delicious-200k").fingerprint["code"] == "delicious-200k-0"


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(kit="9.9"),
        lambda about: about["versions"].update(numpy="1.0"),
        lambda about: about["items"]["demo/one"].update(code="0" * 64),
        lambda about: about["data"]["files"].update({f"X/{bundle.STAND_IN}": "0"}),
        lambda about: about["data"]["sizes"][0].__setitem__(2, 7),
        lambda about: about["data"]["sizes"][0].__setitem__(slice(1, 3), [7, 7]),
        lambda about: about["data"]["truths"][0].update(
            fingerprint=fingerprints.fingerprint(twin("bibtex", scale=0.1).train.Y)
        ),
        lambda about: about.update(dataset="ads-9m"),
        lambda about: about.update(dataset="unheard-of"),
        lambda about: about.update(dataset="tib"),
    ],
    ids=["kit", "library", "code", "stand-in", "size", "print", "twin", "proprietary", "unknown", "own"],
)
def test_what_is_refused(sent, sender, tmp_path, change, capsys):
    """Nothing is written then."""
    other = tmp_path / "other.zip"
    named = changed(sent, other, change)
    about = json.loads(zipfile.ZipFile(other).read(bundle.ABOUT))
    if about["dataset"] != NAME:  # its member is called so, and says so
        content = zipfile.ZipFile(sent).read(MEMBER).replace(NAME.encode(), about["dataset"].encode())
        moved = {MEMBER: None, MEMBER.replace(NAME, about["dataset"]): content}
        named = changed(
            other,
            tmp_path / "named.zip",
            lambda a: a["items"]["demo/one"].update(sha256=bundle._digest(content)),
            **moved,
        )
    before = {path: path.read_bytes() for path in sender.root.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert take_up.main([str(named)]) == 1
    assert capsys.readouterr().out.count("\n") >= 2  # with a reason
    assert before == {path: path.read_bytes() for path in sender.root.rglob("*") if path.is_file()}


def test_other_sizes_are_taken_up_where_they_are_said(sent, tmp_path):
    def change(about):
        about["data"]["sizes"][0][2] = 7
        about["data"]["notes"] = ["n_train is 7"]

    said = changed(sent, tmp_path / "said.zip", change)
    assert take_up.main([str(said)]) == 1
    assert take_up.main([str(said), "--other-sizes"]) == 0


def test_another_truth_than_the_first_sender_s_is_refused(sent, tmp_path):
    assert take_up.main([str(sent)]) == 0
    other = changed(sent, tmp_path / "b.zip", lambda about: about["data"]["truths"][3].update(fingerprint="f" * 32))
    assert take_up.main([str(other)]) == 1


def test_label_counts_that_come_with_the_kit_tell_a_stand_in():
    """EURLex-4K's are known: those of its full-size stand-in differ."""
    counts = registry.label_counts("eurlex-4k")["count"]
    real = sorted(counts[counts > 0].tolist(), reverse=True)
    about = {"files": {}, "truths": [{"part": "test", "split": "", "fingerprint": "0"}], "archive": ""}
    entry = registry.get("eurlex-4k")
    assert bundle._of_truths(entry, about | {"label counts": real}) == []
    assert bundle._of_truths(entry, about | {"label counts": [real[0] + 500, *real[1:]]}) == []  # half a percent
    made = standins.content(standins.published("eurlex-4k"))
    its = __import__("collections").Counter(label for own in made.labels for label in own)
    assert len(bundle._of_truths(entry, about | {"label counts": sorted(its.values(), reverse=True)})) == 1


def test_the_rehearsal_s_archives_say_what_they_are():
    made = standins.content(standins.smaller(standins.published("bibtex"), 20, 60))
    for name in ("bibtex", "eurlex-4k", "lf-amazontitles-131k", "amazontitles-670k"):
        assert [Path(path).name for path in standins.files(name, made)].count(bundle.STAND_IN) == 1


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize(
    ("change", "members"),
    [
        (lambda about: about.pop("data"), {}),
        (lambda about: about["data"].pop("truths"), {}),
        (lambda about: about["data"].update(truths=[]), {}),
        (lambda about: about.update(form=2), {}),
        (lambda about: about["data"]["truths"][0].pop("rows"), {}),
        (lambda about: about["data"]["sizes"].append(["n_train"]), {}),
        (lambda about: about["data"]["sizes"].append(["n_train", 1, "x"]), {}),
        (lambda about: about["data"]["sizes"].append(["__class__", 1, 1]), {}),
        (lambda about: about["data"].update({"label counts": ["x"]}), {}),
        (lambda about: about["data"].update(notes=[3]), {}),
        (lambda about: about["machine"].pop("system"), {}),
        (lambda about: about.update(items=[]), {}),
        (lambda about: about.update(items={}), {MEMBER: None}),
        (lambda about: about["data"].update({"label counts": [[1, 2]]}), {}),
        (lambda about: None, {bundle.ABOUT: b"[]"}),
        (lambda about: None, {bundle.ABOUT: b"{"}),
        (lambda about: None, {bundle.ABOUT: None}),
        (lambda about: None, {MEMBER: None}),
        (lambda about: None, {MEMBER: b"table,row\n"}),
        (lambda about: None, {"../escape.csv": b""}),
        (lambda about: about["items"].update({"a/b": {"sha256": "", "code": ""}}), {}),
    ],
)
def test_damage_is_named(sent, tmp_path, change, members):
    path = changed(sent, tmp_path / "b.zip", change, **members)
    with damaged(path):
        bundle.read(path)
    assert take_up.main([str(path)]) == 2


def test_no_zip_and_a_cut_one(sent, tmp_path):
    path = tmp_path / "b.zip"
    for content in (b"", b"PK", sent.read_bytes()[:-30], sent.read_bytes()[:200]):
        path.write_bytes(content)
        with damaged(path):
            bundle.read(path)
    with damaged(tmp_path / "nowhere.zip"):
        bundle.read(tmp_path / "nowhere.zip")
    content = bytearray(sent.read_bytes())
    content[60] ^= 0xFF
    path.write_bytes(content)
    with damaged(path):
        bundle.read(path)
