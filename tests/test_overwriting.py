"""Nothing that people wrote is written over: every command whose output is a file or folder that somebody names."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, save_npz

from tests.refused import damaged, refused
from xcrepro.__main__ import main
from xcrepro.core import judged
from xcrepro.tools.reports import report as reports


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    save_npz("truth.npz", csr_matrix((rng.random((12, 6)) < 0.3).astype(np.float32)))
    np.save("scores.npy", rng.random((12, 6)).astype(np.float32))
    return tmp_path


SAMPLE = ("judge", "sample", "truth.npz", "scores.npy", "-k", "3", "--out", "sheet.csv")


def judged_by_hand(sheet) -> str:
    text = sheet.read_text().replace(",,\n", ",1,me\n")
    sheet.write_text(text)
    return text


def test_a_sheet_of_verdicts_is_kept(here, capsys):
    sheet = here / "sheet.csv"
    assert main([*SAMPLE, "-n", "5"]) == 0
    text = judged_by_hand(sheet)
    mine = text.count(",me\n")
    assert mine > 5
    assert main([*SAMPLE, "-n", "8"]) == 2
    assert f"holds {mine} verdicts" in capsys.readouterr().err
    assert sheet.read_text() == text


def test_rows_are_added_at_the_end_of_a_sheet(here, capsys):
    sheet = here / "sheet.csv"
    assert main([*SAMPLE, "-n", "5"]) == 0
    text = judged_by_hand(sheet)
    assert main([*SAMPLE, "-n", "8", "--add"]) == 0
    assert sheet.read_text().startswith(text)
    whole = pd.read_csv(sheet, dtype=str, keep_default_na=False)
    assert whole["row"].drop_duplicates().astype(int).tolist() == judged.sample(12, 8).tolist()
    assert not whole.duplicated(["row", "label"]).any()
    assert main([*SAMPLE[:-1], "fresh.csv", "-n", "8"]) == 0
    fresh = pd.read_csv(here / "fresh.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(whole[["row", "label"]], fresh[["row", "label"]])
    before = sheet.read_text()
    assert main([*SAMPLE, "-n", "8", "--add"]) == 0  # nothing is lacking
    assert sheet.read_text() == before
    sheet.write_text(before.rstrip("\n"))  # an editor that ends no line
    assert main([*SAMPLE, "-n", "9", "--add"]) == 0
    assert sheet.read_text().startswith(before)
    capsys.readouterr()
    for options in (("-n", "9", "--seed", "1"), ("-n", "4")):
        kept = sheet.read_text()
        assert main([*SAMPLE, *options, "--add"]) == 2
        assert "sheet.csv: found row" in capsys.readouterr().err
        assert sheet.read_text() == kept


def test_adding_to_what_is_no_sheet(here):
    assert main([*SAMPLE, "--add", "-n", "3"]) == 2
    assert not (here / "sheet.csv").exists()
    (here / "sheet.csv").write_text("dear diary\n")
    for options in ((), ("--add",)):
        assert main([*SAMPLE, "-n", "3", *options]) == 2
    assert (here / "sheet.csv").read_text() == "dear diary\n"


def test_a_fault_in_a_sheet_is_named_by_its_line(here):
    (here / "sheet.csv").write_text("row,label,verdict,judge\n3,1,1,me\n3,2,yes,me\n")
    with damaged("sheet.csv", 3):
        judged.verdicts(here / "sheet.csv")
    with refused("verdicts", match="line 2"):
        judged.verdicts(pd.DataFrame({"row": [3, 3], "label": [1, 2], "verdict": ["1", "yes"]}))


@pytest.mark.parametrize(
    ("argv", "written"),
    [
        (["convert", "truth.npz", "out.jsonl", "--as", "truth"], "out.jsonl"),
        (["convert", "truth.npz", "out.npy", "--as", "truth", "--labels", "names.txt"], "out.npy.labels.txt"),
        (["convert", "dataset.txt", "out.arff"], "out.xml"),
        (["filter", "make", "made.txt", "--texts", "texts.txt", "--labels", "names.txt"], "made.txt"),
    ],
)
def test_a_file_that_is_there_is_not_replaced_without_a_word(here, capsys, argv, written):
    (here / "names.txt").write_text("".join(f"name {i}\n" for i in range(6)))
    (here / "texts.txt").write_text("".join(f"name {i}\n" for i in range(12)))
    (here / "dataset.txt").write_text("2 3 6\n0,1 0:0.5\n2 1:1\n")
    (here / written).write_text("mine")
    assert main(argv) == 2
    assert written in capsys.readouterr().err
    assert (here / written).read_text() == "mine"
    assert main([*argv, "--force"]) == 0
    assert (here / written).read_text() != "mine"


def made_up() -> reports.Report:
    """A report without the run that makes one."""
    about = {"format": reports.FORMAT, "title": "t", "digest": "d", "parts": {}}
    return reports.Report(about, {"report.html": b"a", "csv/metrics.csv": b"b"})


@pytest.mark.parametrize("name", ["notes.md", "report.html", "csv/metrics.csv", "csv/mine.csv"])
def test_what_people_wrote_into_a_report_is_not_replaced(tmp_path, name):
    made_up().save(tmp_path / "out")
    made_up().save(tmp_path / "out")  # as it was written: replaced
    (tmp_path / "out" / name).write_text("my remarks")
    for force in (False, True):
        with refused("out"):
            made_up().save(tmp_path / "out", force)
    assert (tmp_path / "out" / name).read_text() == "my remarks"


def test_an_old_report_without_digests_is_replaced(tmp_path):
    made_up().save(tmp_path / "out")
    about = json.loads((tmp_path / "out" / reports.FILE).read_text())
    del about["files"]
    (tmp_path / "out" / reports.FILE).write_text(json.dumps(about))
    made_up().save(tmp_path / "out")
    assert "files" in json.loads((tmp_path / "out" / reports.FILE).read_text())
