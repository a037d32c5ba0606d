"""The class judges the truth: sheets, second looks, merged verdicts, a ranking by them; judges are simulated, and err."""

from __future__ import annotations

import codecs

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.__main__ import main
from xcrepro.core.errors import DataMissing
from xcrepro.tools import formats
from xcrepro.tools.course import judging

K, N, CLASS = 5, 100, [f"student {number}" for number in range(5)]


@pytest.fixture(scope="module")
def given():
    """100 records of TIB of which labels are missing, and three models: truth, tops, what else is read, complete labels."""
    ds = xc.load("tib", points=500)
    kept = xc.propensity.inverse(ds.label_counts, ds.n_train) ** -0.4
    train, observed = (xc.propensity.drop_labels(Y, kept, seed) for seed, Y in enumerate((ds.train.Y, ds.test.Y[:N])))
    models = {"knn": xc.models.KNN(), "ova": xc.models.OneVsRest(), "popular": xc.models.Popularity()}
    tops = {name: model.fit(ds.train.X, train).predict(ds.test.X[:N], K) for name, model in models.items()}
    texts = [", ".join(ds.telling_words(row, 6)) for row in range(N)]
    about = {"texts": texts, "label_names": ds.label_names}
    return observed.tocsr(), tops, about, ds.test.Y[:N].toarray() > 0, train


def fill(folder, say):
    """Every sheet filled in: ``say(judge, record, label)`` is what is written under verdict."""
    for path in folder.glob("*.csv"):
        if path.name not in (*judging.WRITTEN, "asked.csv"):
            sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
            pairs = zip(sheet["record"], sheet["label"], strict=True)
            sheet["verdict"] = [say(path.stem, int(record), int(label)) for record, label in pairs]
            sheet.to_csv(path, index=False)


def erring(complete, rates: dict[str, float] | float):
    """A judge who is wrong with a probability, of her own or of all, always the same on one prediction."""

    def says(judge, record, label):
        rate = rates if isinstance(rates, float) else rates.get(judge, 0.0)
        random = np.random.default_rng([int(judge.split()[-1]), record, label])
        return int(complete[record, label] != (random.random() < rate))

    return says


def hits_of(complete, top):
    return complete[np.arange(N)[:, None], top.ids] & (top.ids >= 0)


def test_a_sheet_has_the_pool_and_says_neither_whose_nor_whether_recorded(given, tmp_path):
    truth, tops, about, _, _ = given
    table = judging.sheets(tmp_path / "j", truth, tops, CLASS, records=12, shared=3, k=K, **about)
    assert table["judge"].tolist() == CLASS
    assert (table["records"] == 12).all()
    has = {}
    for judge in CLASS:
        sheet = pd.read_csv(tmp_path / "j" / f"{judge}.csv", dtype=str, keep_default_na=False)
        assert list(sheet) == ["record", "text", "label", "heading", "verdict"]
        assert (sheet["verdict"] == "").all()
        assert sheet["heading"].tolist() == [about["label_names"][int(label)] for label in sheet["label"]]
        for record, part in sheet.groupby("record", sort=False):
            pool = {int(label) for top in tops.values() for label in top.ids[int(record), :K] if label >= 0}
            assert sorted(map(int, part["label"])) == sorted(pool)
            assert set(part["text"]) == {about["texts"][int(record)]}
            has.setdefault(int(record), []).append(judge)
    assert sorted(map(len, has.values())) == [1] * (5 * (12 - 2 * 3)) + [2] * (5 * 3)


def test_who_judges_everything_rightly_finds_the_complete_truth(given, tmp_path):
    """100 records in sheets of 20: nothing is left to estimate, so what is judged is what the complete labels say."""
    truth, tops, about, complete, train = given
    judging.sheets(tmp_path, truth, tops, CLASS, records=20, shared=0, k=K, **about)
    fill(tmp_path, lambda _, record, label: "yes" if complete[record, label] else "no")
    found = judging.judge(tmp_path, truth, tops, train=train, k=K, **about)
    for row in found.ranking.itertuples():
        assert row.judged == pytest.approx(hits_of(complete, tops[row.model]).sum() / (K * N), abs=1e-12)
        assert row.low == pytest.approx(row.high, abs=1e-9)
    pool = np.zeros_like(complete)
    for top in tops.values():
        pool[np.repeat(np.arange(N), K), top.ids.ravel()] = True
    observed = truth.toarray() > 0
    new = (pool & complete & ~observed).sum()
    assert found.numbers["unrecorded right"] == new
    assert found.numbers["recorded accepted"] == 1
    assert found.numbers["missing at least"] == pytest.approx(new / (new + observed.sum()))
    weights = xc.propensity.inverse(np.asarray(train.sum(axis=0)).ravel(), train.shape[0])
    expected = observed.sum(axis=0)
    assert found.numbers["missing by equation 1"] == pytest.approx(1 - expected.sum() / (expected * weights).sum())
    assert (found.judges["shared"] == 0).all()
    assert (found.judges["accepted"].dropna() == 1).all()


def test_judges_who_err_are_seen_where_two_judged(given, tmp_path):
    truth, tops, about, complete, _ = given
    judging.sheets(tmp_path, truth, tops, CLASS, records=10, shared=5, k=K, **about)
    says, wrong = erring(complete, 0.1), {}

    def told(*pair):
        wrong[pair] = says(*pair) != complete[pair[1:]]
        return says(*pair)

    fill(tmp_path, told)
    found = judging.judge(tmp_path, truth, tops, k=K, **about)
    both = [wrong[one] == wrong[two] for one in wrong for two in wrong if one[0] < two[0] and one[1:] == two[1:]]
    assert found.judges["shared"].sum() == 2 * len(both)
    agree = (found.judges["agree"] * found.judges["shared"]).sum() / (2 * len(both))
    assert agree == pytest.approx(np.mean(both))
    assert f"{50 * (1 - np.sqrt(2 * agree - 1)):.1f} % of the verdicts are wrong" in " ".join(found.said)
    written = pd.read_csv(tmp_path / "verdicts.csv")
    assert len(written) == len(wrong)
    assert set(written["judge"]) == set(CLASS)
    disputes = pd.read_csv(tmp_path / "disputes.csv", dtype=str)
    assert len(disputes) == 2 * (len(both) - sum(both))
    assert not set(disputes["judge"]) & set(CLASS)
    assert (disputes.groupby(["record", "label"])["verdict"].nunique() == 2).all()


def test_a_second_look_goes_to_another_judge_and_takes_wrong_verdicts_away(given, tmp_path):
    """By an own count: after it, an unrecorded prediction is right where both say so."""
    truth, tops, about, complete, _ = given
    judging.sheets(tmp_path, truth, tops, CLASS, records=20, shared=0, k=K, **about)
    says = erring(complete, 0.1)
    fill(tmp_path, says)
    before = judging.judge(tmp_path, truth, tops, k=K, **about)
    asked = pd.read_csv(tmp_path / "asked.csv")
    first = {(row.record, row.label): row.judge for row in asked.itertuples()}
    doubted = {pair for pair, who in first.items() if says(who, *pair) and not truth[pair]}
    table = judging.second(tmp_path, truth, **about)
    again = pd.read_csv(tmp_path / "second" / "asked.csv")
    assert {*zip(again["record"], again["label"], strict=True)} == doubted
    assert table["predictions"].sum() == len(doubted)
    assert table["predictions"].max() - table["predictions"].min() <= 2
    saw = {*zip(asked["judge"], asked["record"], strict=True)}
    assert not saw & {*zip(again["judge"], again["record"], strict=True)}
    with refused("DIR"):
        judging.second(tmp_path, truth, **about)
    assert f"{len(doubted)} of {len(doubted)}" in " ".join(judging.judge(tmp_path, truth, tops, k=K, **about).said)
    fill(tmp_path / "second", says)
    after = judging.judge(tmp_path, truth, tops, k=K, **about)
    kept = sum(says(row.judge, row.record, row.label) for row in again.itertuples())
    assert before.numbers["unrecorded right"] == len(doubted)
    assert after.numbers["unrecorded right"] == kept
    for row in after.ranking.itertuples():
        value = hits_of(complete, tops[row.model]).sum() / (K * N)
        others = before.ranking.set_index("model").loc[row.model]
        assert abs(row.judged - value) < abs(others["judged"] - value)


def test_who_moves_the_result_is_named_and_careful_judges_are_not(given, tmp_path):
    """One of five says the opposite of the truth; without her sheet the values change by more than their error."""
    truth, tops, about, complete, _ = given
    judging.sheets(tmp_path, truth, tops, CLASS, records=15, shared=3, k=K, **about)
    fill(tmp_path, erring(complete, {CLASS[3]: 1.0}))
    found = judging.judge(tmp_path, truth, tops, k=K, **about)
    first = found.judges.iloc[0]
    assert first["judge"] == CLASS[3]
    assert first["moves"] > 1
    assert first["accepted"] == first["agree"] == 0
    (named,) = (text for text in found.said if "before you believe" in text)
    assert {name for name in CLASS if name in named} == {CLASS[3]}
    rest = judging._complete(pd.read_csv(tmp_path / "asked.csv"), pd.read_csv(tmp_path / "verdicts.csv"))
    assert found.numbers["records"] == len(rest) == 60


def test_records_that_are_half_judged_do_not_count_and_newer_files_are_named(given, tmp_path):
    truth, tops, about, complete, _ = given
    judging.sheets(tmp_path, truth, tops, CLASS, records=10, shared=0, k=K, **about)
    sheet = pd.read_csv(tmp_path / f"{CLASS[0]}.csv")
    half = int(sheet["record"].iloc[0]), int(sheet["label"].iloc[0])
    fill(tmp_path, lambda _, *pair: "" if pair == half else int(complete[pair]))
    (tmp_path / f"{CLASS[1]}.csv").unlink()  # who hands nothing in has judged nothing
    newer = xc.TopK.from_ids(np.tile(np.arange(50, 55), (N, 1)), n_labels=complete.shape[1])
    found = judging.judge(tmp_path, truth, tops | {"late": newer}, k=K, **about)
    assert found.numbers["records"] == 39
    assert set(found.ranking["model"]) == set(tops)
    assert any("late" in text for text in found.said)
    with refused("predictions"):
        judging.judge(tmp_path, truth, {"late": newer}, k=K, **about)


def test_a_record_with_nothing_predicted_counts_as_judged(given, tmp_path):
    truth, tops, about, complete, _ = given
    ids = {name: np.where(np.arange(N)[:, None] < 50, -1, top.ids) for name, top in tops.items()}
    empty = {name: xc.TopK.from_ids(ids[name], n_labels=complete.shape[1]) for name in tops}
    judging.sheets(tmp_path, truth, empty, CLASS, records=20, shared=0, k=K, **about)
    fill(tmp_path, lambda _, *pair: int(complete[pair]))
    found = judging.judge(tmp_path, truth, empty, k=K, **about)
    assert found.numbers["records"] == N
    for row in found.ranking.itertuples():
        assert row.judged == pytest.approx(hits_of(complete, empty[row.model]).sum() / (K * N), abs=1e-12)


def test_what_is_refused(given, tmp_path):
    truth, tops, about, _, _ = given

    def sheets(judges=CLASS, **other):
        return judging.sheets(tmp_path / "j", truth, tops, judges, **{"k": K, **about, **other})

    with pytest.raises(DataMissing):
        judging.judge(tmp_path / "j", truth, tops, k=K, **about)
    with refused("records", 30):
        sheets(records=30)
    with refused("shared", 4):
        sheets(records=4, shared=4)
    with refused("texts", 0):
        sheets(texts=())
    for names, got in (([], []), (["a", "a"], ["a", "a"]), (["../a"], ["../a"]), (["a", "verdicts"], "verdicts")):
        with refused("judges", got):
            sheets(names)
    sheets(records=4, shared=0)
    with refused("--out"):
        sheets(records=4)
    with refused("DIR", "0"):
        judging.judge(tmp_path / "j", truth, tops, k=K, **about)
    path = tmp_path / "j" / f"{CLASS[0]}.csv"
    sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
    broken = {len(sheet) + 2: pd.concat([sheet, sheet[:1]]), 1: sheet.drop(columns="verdict")}
    for line, column, value in ((3, "verdict", "perhaps"), (4, "record", "no number"), (5, "label", "-1")):
        broken[line] = sheet.assign(**{column: sheet[column].where(sheet.index != line - 2, value)})
    for line, table in broken.items():
        table.to_csv(path, index=False)
        with damaged(path.name, line=line):
            judging.judge(tmp_path / "j", truth, tops, k=K, **about)
    path.write_bytes(b"")
    with damaged(path.name):
        judging.judge(tmp_path / "j", truth, tops, k=K, **about)
    with refused("DIR"):
        path.unlink()
        judging.second(tmp_path / "j", truth, **about)


def test_sheets_that_are_blank_missing_renamed_or_saved_by_excel_are_read_or_named(given, tmp_path):
    """As a class hands them in."""
    truth, tops, about, _, _ = given
    texts = [f"Björn № {row}; of [x], =SUM(A1)" for row in range(N)]
    about = about | {"texts": texts}
    judging.sheets(tmp_path, truth, tops, ["ann", "bob", "cem", "dia", "eve"], records=20, shared=0, k=K, **about)
    assert (tmp_path / "ann.csv").read_bytes().startswith(codecs.BOM_UTF8), "Excel reads UTF-8 by this"
    fill(tmp_path, lambda judge, record, label: "" if judge == "cem" else (record + label) % 2)
    sheets = {name: pd.read_csv(tmp_path / f"{name}.csv", dtype=str) for name in ("ann", "bob")}
    sheets["ann"].to_csv(tmp_path / "ann.csv", sep=";", encoding="cp1252", errors="replace", index=False)
    sheets["bob"].to_csv(tmp_path / "bob.csv", sep="\t", encoding="utf-16", index=False)  # Excel calls it Unicode text
    (tmp_path / "dia.csv").rename(tmp_path / "dia (1).csv")
    (tmp_path / "eve.csv").rename(tmp_path / "eve.xlsx")
    (tmp_path / "~$bob.xlsx").touch()  # of a spreadsheet that is open
    found = judging.judge(tmp_path, truth, tops, k=K, **about)
    assert found.numbers["records"] == 40
    assert found.numbers["judges"] == 2
    (silent,) = (text for text in found.said if "cem" in text)
    assert {name for name in ("ann", "bob", "cem", "dia", "eve") if name in silent} == {"cem", "dia", "eve"}
    (unread,) = (text for text in found.said if "eve.xlsx" in text)
    assert "dia (1).csv, eve.xlsx." in unread
    written = pd.read_csv(tmp_path / "verdicts.csv", dtype=str)
    both = pd.concat([sheets["ann"], sheets["bob"]], ignore_index=True)
    assert written[judging.COLUMNS].equals(both[judging.COLUMNS])
    assert judging.judge(tmp_path, truth, tops, k=K, **about).said == found.said, "what was written first is no sheet"
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.csv").rename(tmp_path / f"{name} (1).csv")
    with refused("DIR", "0", match=r"ann \(1\)\.csv"):
        judging.judge(tmp_path, truth, tops, k=K, **about)


def test_the_commands_of_a_class(given, tmp_path, capsys, monkeypatch):
    """A folder of submissions, sheets, second looks, the result."""
    truth, tops, about, complete, _ = given
    formats.write_truth(tmp_path / "truth.npz", truth)
    (tmp_path / "texts.txt").write_text("\n".join(about["texts"]) + "\n")
    (tmp_path / "submissions").mkdir()
    for name, top in tops.items():
        top.save(tmp_path / "submissions" / f"{name}.npz")
    monkeypatch.chdir(tmp_path)
    read = ["truth.npz", "submissions", "-k", "5", "--texts", "texts.txt"]
    judges = ["--judges", "student 1", "student 2", "student 3"]
    assert main(["judge", "sheets", *read, *["--records", "4", "--shared", "1", "--out", "sheets"], *judges]) == 0
    fill(tmp_path / "sheets", erring(complete, 0.2))
    assert main(["judge", "second", *read, "--verdicts", "sheets"]) == 0
    capsys.readouterr()
    assert main(["judge", "estimate", *read, "--verdicts", "sheets"]) == 0
    printed = capsys.readouterr().out
    assert "9 of 9 records are judged, by 3 judges" in printed
    assert "judged.html" in printed
    assert main(["judge", "estimate", *read, "--verdicts", "sheets", "--complete"]) == 2


def test_a_sheet_for_everybody_shows_what_a_row_is(tmp_path, capsys):
    """``judge sample``: words of TIB, titles of Gutenberg."""
    for name, points in (("tib", 2000), ("gutenberg", 500)):
        ds = xc.load(name, points=points)
        xc.models.Popularity().fit(ds.train.X, ds.train.Y).predict(ds.test.X, 3).save(tmp_path / f"{name}.npz")
        out = tmp_path / f"{name}.csv"
        read = [name, str(tmp_path / f"{name}.npz"), "--points", str(points), "-k", "3"]
        assert main(["judge", "sample", *read, "-n", "4", "--out", str(out)]) == 0
        sheet = pd.read_csv(out, keep_default_na=False)
        assert list(sheet) == ["row", "text", "label", "name", "verdict", "judge"]
        for row in sheet.itertuples():
            expected = ds.telling_words(row.row, 12) if name == "tib" else [ds.test.texts["title"][row.row].split()[0]]
            assert all(word in row.text for word in expected)
