"""The class judges the truth: sheets from submissions, merged verdicts, a ranking by them; judges are simulated, and err."""

from __future__ import annotations

import codecs
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.__main__ import main
from xcrepro.core.errors import DataMissing
from xcrepro.tools import formats
from xcrepro.tools.course import board, judging

K, CLASS = 5, [f"student {number}" for number in range(5)]


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    """A board of 100 test records on which three groups have handed in."""
    folder = board.make(
        tmp_path_factory.mktemp("class") / "board", points=400, deadline="2099-01-31T18:00+00:00", seed=3, strength=0.4
    )
    ds = xc.load("board", folder / "public", check=False)
    for name, model in {
        "ova": xc.models.OneVsRest(),
        "popular": xc.models.Popularity(),
        "knn": xc.models.KNN(),
    }.items():
        (folder / "submissions" / name).mkdir()
        top = model.fit(ds.train.X, ds.train.Y).predict(ds.test.X, K)
        top.save(folder / "submissions" / name / "mine.npz")
    return folder


@pytest.fixture
def folder(handed_in, tmp_path):
    return shutil.copytree(handed_in, tmp_path / "board")


def tops_of(folder):
    return {
        one: formats.read_predictions(folder / "submissions" / one / "mine.npz") for one in ("knn", "ova", "popular")
    }


def truth(folder, which="complete"):
    return formats.read_truth(folder / "hidden" / f"{which}.npz").toarray() > 0


def fill(folder, say):
    """Every sheet filled in: ``say(judge, record, label)`` is what is written under verdict."""
    for path in (folder / judging.FOLDER).glob("*.csv"):
        sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
        sheet["verdict"] = [
            say(path.stem, int(r), int(x)) for r, x in zip(sheet["record"], sheet["label"], strict=True)
        ]
        sheet.to_csv(path, index=False)


def test_a_sheet_has_the_pool_and_says_neither_whose_nor_whether_recorded(folder):
    table = judging.sheets(folder, records=12, shared=3, judges=CLASS)
    assert table["judge"].tolist() == CLASS
    assert (table["records"] == 12).all()
    tops, has = tops_of(folder), {}
    names = xc.load("board", folder / "public", check=False).label_names
    for judge in CLASS:
        sheet = pd.read_csv(folder / judging.FOLDER / f"{judge}.csv", dtype=str, keep_default_na=False)
        assert list(sheet) == ["record", "text", "label", "heading", "verdict"]
        assert (sheet["verdict"] == "").all()
        assert sheet["heading"].tolist() == [names[int(label)] for label in sheet["label"]]
        for record, part in sheet.groupby("record", sort=False):
            pool = {int(label) for top in tops.values() for label in top.ids[int(record), :K] if label >= 0}
            assert sorted(map(int, part["label"])) == sorted(pool)
            has.setdefault(int(record), []).append(judge)
    assert sorted(map(len, has.values())) == [1] * (5 * (12 - 2 * 3)) + [2] * (5 * 3)


def test_who_judges_everything_rightly_finds_the_complete_truth(folder):
    """100 records in sheets of 20: nothing is left to estimate, so what is judged is what the complete labels say."""
    judging.sheets(folder, records=20, shared=0, judges=CLASS)
    complete, observed, tops = truth(folder), truth(folder, "observed"), tops_of(folder)
    fill(folder, lambda _, record, label: "yes" if complete[record, label] else "no")
    found = judging.judge(folder)
    for row in found.ranking.itertuples():
        hits = complete[np.arange(100)[:, None], tops[row.student].ids] & (tops[row.student].ids >= 0)
        assert row.judged == pytest.approx(hits.sum() / (K * 100), abs=1e-12)
        assert row.low == pytest.approx(row.high, abs=1e-9)
    pool = np.zeros_like(complete)
    for top in tops.values():
        pool[np.repeat(np.arange(100), K), top.ids.ravel()] = True
    new = (pool & complete & ~observed).sum()
    assert found.numbers["unrecorded right"] == new
    assert found.numbers["recorded accepted"] == 1
    assert found.numbers["missing at least"] == pytest.approx(new / (new + observed.sum()))
    weights = xc.propensity.inverse(np.asarray(board.submitted(folder)[1].train.sum(axis=0)).ravel(), 300)
    expected = observed.sum(axis=0)
    assert found.numbers["missing by equation 1"] == pytest.approx(1 - expected.sum() / (expected * weights).sum())
    assert found.agreement.empty


def test_the_intervals_hold_the_complete_truth_for_judges_who_do_not_err(folder):
    """Over twenty classes that judge 30 of the 100 records, in 95 % of the intervals for three groups; 51 of 60 or more."""
    complete, tops = truth(folder), tops_of(folder)
    value = {
        one: (complete[np.arange(100)[:, None], top.ids] & (top.ids >= 0)).sum() / (K * 100)
        for one, top in tops.items()
    }
    held = 0
    for seed in range(20):
        settings = (folder / "board.json").read_text()
        (folder / "board.json").write_text(settings.replace('"seed": 3', f'"seed": {3 + 100 * seed}'))
        judging.sheets(folder, records=6, shared=0, judges=CLASS)
        fill(folder, lambda _, record, label: int(complete[record, label]))
        for row in judging.judge(folder).ranking.itertuples():
            held += row.low - 1e-12 <= value[row.student] <= row.high + 1e-12
        shutil.rmtree(folder / judging.FOLDER)
        (folder / "board.json").write_text(settings)
    assert held >= 51


def test_judges_who_err_are_seen_where_two_judged(folder):
    judging.sheets(folder, records=10, shared=5, judges=CLASS)
    complete = truth(folder)
    wrong = {}

    def says(judge, record, label):
        flip = wrong.setdefault(
            (judge, record, label), np.random.default_rng([int(judge[-1]), record, label]).random() < 0.1
        )
        return int(complete[record, label] != flip)

    fill(folder, says)
    found = judging.judge(folder)
    both = [
        wrong[one] == wrong[other] for one in wrong for other in wrong if one[0] < other[0] and one[1:] == other[1:]
    ]
    assert found.agreement["pairs"].sum() == len(both)
    agree = (found.agreement["agree"] * found.agreement["pairs"]).sum() / len(both)
    assert agree == pytest.approx(np.mean(both))
    error = 50 * (1 - np.sqrt(2 * agree - 1))
    assert f"{error:.1f} % of the verdicts are wrong" in " ".join(found.said)
    published = pd.read_csv(folder / judging.FOLDER / "verdicts.csv")
    assert len(published) == len(wrong)
    assert set(published["judge"]) == set(CLASS)
    assert (folder / judging.FOLDER / "judged.html").exists()


def test_records_that_are_half_judged_do_not_count_and_newer_files_are_named(folder):
    judging.sheets(folder, records=10, shared=0, judges=CLASS)
    complete = truth(folder)
    sheet = pd.read_csv(folder / judging.FOLDER / f"{CLASS[0]}.csv")
    half = int(sheet["record"].iloc[0])
    fill(
        folder,
        lambda _, record, label: (
            "" if (record, label) == (half, sheet["label"].iloc[0]) else int(complete[record, label])
        ),
    )
    (folder / judging.FOLDER / f"{CLASS[1]}.csv").unlink()  # who hands nothing in has judged nothing
    (folder / "submissions" / "late").mkdir()
    other = xc.TopK.from_ids(np.tile(np.arange(50, 55), (100, 1)), n_labels=complete.shape[1])
    other.save(folder / "submissions" / "late" / "mine.npz")
    found = judging.judge(folder)
    assert found.numbers["records"] == 39
    assert "late" not in set(found.ranking["student"])
    assert any("late" in text for text in found.said)


def test_what_is_refused(folder, tmp_path):
    with pytest.raises(DataMissing):
        judging.judge(folder)
    with refused("records", 30):
        judging.sheets(folder, records=30, shared=2, judges=CLASS)
    with refused("shared", 4):
        judging.sheets(folder, records=4, shared=4, judges=CLASS)
    for names, got in (([], []), (["a", "a"], ["a", "a"]), (["../a"], ["../a"]), (["a", "judged"], "judged.csv")):
        with refused("judges", got):
            judging.sheets(folder, judges=names)
    judging.sheets(folder, records=4, shared=0, judges=CLASS)
    with refused("DIR"):
        judging.sheets(folder, records=4, judges=CLASS)
    with refused("DIR", "0"):
        judging.judge(folder)
    path = folder / judging.FOLDER / f"{CLASS[0]}.csv"
    sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
    for line, change in (
        (3, {"verdict": "perhaps"}),
        (4, {"record": "no number"}),
        (
            5,
            {"label": sheet["label"].iloc[2]}
            if sheet["record"].iloc[2] == sheet["record"].iloc[3]
            else {"label": "-1"},
        ),
    ):
        broken = sheet.copy()
        for column, value in change.items():
            broken.loc[line - 2, column] = value
        broken.to_csv(path, index=False)
        with damaged(path.name, line=line):
            judging.judge(folder)
    sheet.drop(columns="verdict").to_csv(path, index=False)
    with damaged(path.name, line=1):
        judging.judge(folder)
    path.write_bytes(b"")
    with damaged(path.name):
        judging.judge(folder)
    empty = board.make(tmp_path / "empty", points=400, deadline="2099-01-31T18:00+00:00", seed=1)
    with refused("DIR"):
        judging.sheets(empty, judges=CLASS)


def test_nobody_can_judge_records_without_words(tmp_path):
    made = board.make(tmp_path / "b", "synthetic eurlex-4k", scale=0.02, deadline="2099-01-31T18:00+00:00", seed=1)
    ds = xc.load("board", made / "public", check=False)
    (made / "submissions" / "one").mkdir()
    top = xc.models.KNN().fit(ds.train.X, ds.train.Y).predict(ds.test.X, K)
    top.save(made / "submissions" / "one" / "mine.npz")
    with refused("DIR"):
        judging.sheets(made)


@pytest.fixture(scope="module")
def titled(tmp_path_factory):
    """A board of titles to which one model has been handed in."""
    made = board.make(
        tmp_path_factory.mktemp("titled") / "b", "gutenberg", points=2000, deadline="2099-01-31T18:00+00:00", seed=1
    )
    ds = xc.load("board", made / "public", check=False)
    (made / "submissions" / "one").mkdir()
    top = xc.models.OneVsRest().fit(ds.train.X, ds.train.Y).predict(ds.test.X, K)
    top.save(made / "submissions" / "one" / "mine.npz")
    return made


def test_sheets_that_are_blank_missing_renamed_or_saved_by_excel_are_read_or_named(titled, tmp_path):
    """As a class hands them in, of a board with titles."""
    made = shutil.copytree(titled, tmp_path / "b")
    judging.sheets(made, records=100, shared=0, judges=["ann", "bob", "cem", "dia", "eve"])
    rooms = made / judging.FOLDER
    fill(made, lambda judge, record, label: "" if judge == "cem" else (record + label) % 2)
    sheets = {path.stem: pd.read_csv(path, dtype=str, keep_default_na=False) for path in rooms.glob("*.csv")}
    shown = "".join(sheets["ann"]["text"] + sheets["ann"]["heading"])
    assert not shown.isascii()
    sheets["ann"].to_csv(rooms / "ann.csv", sep=";", encoding="cp1252", errors="replace", index=False)
    (rooms / "dia.csv").rename(rooms / "dia (1).csv")
    (rooms / "eve.csv").rename(rooms / "eve.xlsx")
    (rooms / "~$bob.xlsx").touch()  # of a spreadsheet that is open
    found = judging.judge(made)
    assert found.numbers["records"] == 200
    assert found.numbers["judges"] == 2
    (silent,) = (text for text in found.said if "cem" in text)
    assert {name for name in sheets if name in silent} == {"cem", "dia", "eve"}
    (unread,) = (text for text in found.said if "eve.xlsx" in text)
    assert "dia (1).csv, eve.xlsx." in unread
    written = pd.read_csv(rooms / "verdicts.csv", dtype=str, keep_default_na=False)
    both = pd.concat([sheets["ann"], sheets["bob"]], ignore_index=True)
    assert written[judging.COLUMNS].equals(both[judging.COLUMNS])
    assert judging.judge(made).said == found.said, "what was written the first time is no sheet"
    for name in ("ann", "bob"):
        (rooms / f"{name}.csv").rename(rooms / f"{name} (1).csv")
    with refused("DIR", "0", match=r"ann \(1\)\.csv"):
        judging.judge(made)


def test_titles_are_shown_where_there_are_any(titled, tmp_path):
    made = shutil.copytree(titled, tmp_path / "b")
    titles = (made / "public" / "test_texts.txt").read_text(encoding="utf-8").splitlines()
    assert len(titles) == 500
    ds = xc.load("gutenberg")
    known = {
        " ".join(" / ".join(fields).split())
        for part in (ds.train, ds.test, ds.validation)
        if part is not None
        for fields in zip(*part.texts.values(), strict=True)
    }
    assert set(titles) <= known
    judging.sheets(made, records=3)
    assert (made / judging.FOLDER / "one.csv").read_bytes().startswith(codecs.BOM_UTF8), "Excel reads UTF-8 by this"
    sheet = pd.read_csv(made / judging.FOLDER / "one.csv", dtype=str, keep_default_na=False)
    shown = {row.record: row.text.lstrip("'") for row in sheet.itertuples()}
    assert all(titles[int(record)].lstrip("'") == text for record, text in shown.items())


def test_the_commands(folder, capsys):
    assert main(["course-board", "sheets", str(folder), "--records", "4", "--shared", "1"]) == 0
    assert sorted(path.stem for path in (folder / judging.FOLDER).glob("*.csv")) == ["knn", "ova", "popular"]
    complete = truth(folder)
    fill(folder, lambda _, record, label: int(complete[record, label]))
    capsys.readouterr()
    assert main(["course-board", "judge", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "9 of 9 records are judged, by 3 judges" in said
    assert "judged.html" in said


def test_a_sheet_for_everybody_shows_what_a_row_is(tmp_path, capsys):
    """``judge sample``: words of TIB, titles of Gutenberg, lines of a file of one's own."""
    for name, points in (("tib", 2000), ("gutenberg", 500)):
        ds = xc.load(name, points=points)
        xc.models.Popularity().fit(ds.train.X, ds.train.Y).predict(ds.test.X, 3).save(tmp_path / f"{name}.npz")
        out = tmp_path / f"{name}.csv"
        command = [
            "judge",
            "sample",
            name,
            str(tmp_path / f"{name}.npz"),
            "--points",
            str(points),
            "-n",
            "4",
            "--out",
            str(out),
        ]
        assert main([*command, "-k", "3"]) == 0
        sheet = pd.read_csv(out, keep_default_na=False)
        assert list(sheet) == ["row", "text", "label", "name", "verdict", "judge"]
        for row in sheet.itertuples():
            expected = ds.telling_words(row.row, 12) if name == "tib" else [ds.test.texts["title"][row.row].split()[0]]
            assert all(word in row.text for word in expected)
    formats.write_truth(tmp_path / "truth.npz", sparse.csr_matrix([[1, 0], [0, 1], [1, 1]]))
    xc.TopK.from_ids([[1], [1], [0]], n_labels=2).save(tmp_path / "top.npz")
    (tmp_path / "lines.txt").write_text("first\nsecond\nthird\n")
    own = ["judge", "sample", str(tmp_path / "truth.npz"), str(tmp_path / "top.npz"), "-k", "1", "-n", "3"]
    assert main([*own, "--out", str(tmp_path / "own.csv"), "--texts", str(tmp_path / "lines.txt")]) == 0
    sheet = pd.read_csv(tmp_path / "own.csv")
    assert dict(zip(sheet["row"], sheet["text"], strict=True)) == {0: "first", 1: "second", 2: "third"}
    (tmp_path / "lines.txt").write_text("first\n")
    assert main([*own, "--out", str(tmp_path / "other.csv"), "--texts", str(tmp_path / "lines.txt")]) == 2
    assert not (tmp_path / "other.csv").exists()
