"""Results that are kept: what a file says, what does not come in, the table, the page, the commands."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import struct

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xcrepro as xc
from tests.refused import refused
from xcrepro.__main__ import main
from xcrepro.core import paths
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.tools import results
from xcrepro.tools.diagnose import fingerprint
from xcrepro.tools.reports import html


@pytest.fixture
def given():
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 30)) < 0.1).astype(np.float32)
    return Y, xc.TopK.from_scores(Y * 0.5 + rng.random(Y.shape).astype(np.float32), 5)


def slow_fingerprint(Y) -> str:
    rows = [[l for l, value in enumerate(row) if value] for row in Y]
    numbers = [len(rows), len(Y[0]), 0]
    for row in rows:
        numbers.append(numbers[-1] + len(row))
    numbers += [l for row in rows for l in row]
    return hashlib.sha256(b"".join(struct.pack("<q", number) for number in numbers)).hexdigest()[:32]


def test_fingerprint(given):
    Y, _ = given
    mark = fingerprint(Y)
    assert mark == slow_fingerprint(Y.tolist())
    for same in (sparse.csr_matrix(Y), sparse.csc_matrix(Y * 3), Y.astype(bool), sparse.coo_matrix(Y)):
        assert fingerprint(same) == mark
    for other in (Y[::-1], Y[:, ::-1], Y[1:], Y[:, 1:]):
        assert fingerprint(other.copy()) != mark


def test_a_result_says_what_it_is(given):
    Y, top = given
    found = results.of("ours", "EUR-Lex", Y, top, (1, 3), options={"seed": 3}, note="a link")
    assert (found.name, found.dataset, found.note, found.version) == ("ours", "eurlex-4k", "a link", xc.__version__)
    assert found.truth == {
        "fingerprint": fingerprint(Y),
        "points": 60,
        "labels": 30,
        "pairs": int(Y.sum()),
    }
    assert found.options == {"seed": 3, "every point has k predictions": True}
    table = xc.evaluate(Y, top, (1, 3))
    assert found.values == {f"{row.metric}@{row.k}": row.value for row in table.itertuples()}
    short = xc.TopK.from_ids(np.where(np.arange(5) < 2, top.ids, -1), n_labels=30)
    assert results.of("x", "mine", Y, short, (1, 2)).options["every point has k predictions"] is True
    assert results.of("x", "mine", Y, short, (1, 3)).options["every point has k predictions"] is False


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "x" * 81])
def test_a_name_is_one_short_line(given, name):
    with refused("name"):
        results.of(name, "mine", *given)


def test_what_is_kept_comes_back(given, tmp_path):
    found = results.of("our / model é", "mine", *given, metrics=["P", "macro-F1"])
    found = dataclasses.replace(found, values={**found.values, "P@9": math.nan})
    path = results.add(found, tmp_path)
    assert path == tmp_path / "mine" / "our___model_é.json"
    back = results.read(path)
    assert math.isnan(back.values.pop("P@9"))
    assert dataclasses.asdict(back) == {**dataclasses.asdict(found), "values": back.values}
    assert "NaN" not in path.read_text()
    with refused("name", match="'?our / model é.*--force"):
        results.add(found, tmp_path)
    results.add(dataclasses.replace(found, note="again"), tmp_path, force=True)
    assert results.read(path).note == "again"
    assert [one.note for one in results.read_all(tmp_path)] == ["again"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"R@1": 0.5, "R@3": 0.4}, r"R@3 = 0.4 is below R@1"),
        ({"P@1": 0.5, "nDCG@1": 0.6}, "N@1|P@1"),
        ({"macro-F1@3": 0.5, "coverage@3": 0.4}, r"macro_F1@3 is above"),
        ({"P@1": 1.5}, "P@1"),
    ],
)
def test_numbers_that_cannot_stand_together_do_not_come_in(given, tmp_path, values, said):
    found = dataclasses.replace(results.of("ours", "mine", *given), values=values)
    with pytest.raises(DataError, match=said):
        results.add(found, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_rows_with_fewer_predictions_are_no_fault(given, tmp_path):
    """micro-F1 follows from P and the labels a point only where every point has k predictions."""
    Y, top = given
    some = np.arange(60)[:, None] % 3 + 2 > np.arange(5)
    short = xc.TopK.from_ids(np.where(some, top.ids, -1), n_labels=30)
    found = results.of("ours", "mine", Y, short)
    assert results.add(found, tmp_path).is_file()
    said = {**found.options, "every point has k predictions": True}
    with pytest.raises(DataError, match="averages"):
        results.add(dataclasses.replace(found, name="b", options=said), tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.pop("note"), "expected name, dataset, note"),
        (lambda c: c.update(more=1), "the result with .*more"),
        (lambda c: c.update(values=[]), r"values \[\] in the result"),
        (lambda c: c["truth"].update(points=True), "points True in truth"),
        (lambda c: c["truth"].pop("labels"), "truth with"),
        (lambda c: c["values"].update(P=0.5), "the value 'P'"),
        (lambda c: c["values"].update({"P@1": "0.5"}), "the value 'P@1': '0.5'"),
        (lambda c: c["values"].update({"P@1": 2.0}), "P@1"),  # changed by hand to what cannot be
    ],
)
def test_a_file_that_was_changed_by_hand_is_held_to_the_form(given, tmp_path, change, said):
    path = results.add(results.of("ours", "mine", *given), tmp_path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=said) as error:
        results.read_all(tmp_path)
    assert str(path) in str(error.value)


def test_no_digit_of_a_file_changes_unseen(given, tmp_path):
    path = results.add(results.of("ours", "mine", *given, options={"A": 0.55}), tmp_path)
    good, refused = path.read_text(), 0
    for at in range(len(good)):
        if good[at].isdigit():
            changed = good[:at] + str((int(good[at]) + 1) % 10) + good[at + 1 :]
            if json.loads(changed) == json.loads(good):  # the last of 17 digits may be of no number
                continue
            path.write_text(changed)
            with pytest.raises(DataError):
                results.read(path)
            refused += 1
    assert refused > 100
    path.write_text(json.dumps(json.loads(good)))  # laid out anew is the same content
    assert results.read(path).options["A"] == 0.55
    for change in ({"sha256": ""}, {"format": "xcrepro result 9"}, {"note": "x"}):
        path.write_text(json.dumps({**json.loads(good), **change}))
        with pytest.raises(DataError, match=r"content.*results add"):
            results.read(path)
    path.write_text(json.dumps({name: value for name, value in json.loads(good).items() if name != "sha256"}))
    with pytest.raises(DataError, match="name, dataset"):
        results.read(path)


def test_a_result_of_before_is_read_with_a_warning(given, tmp_path):
    path = results.add(results.of("ours", "mine", *given), tmp_path)
    old = {name: v for name, v in json.loads(path.read_text()).items() if name not in ("format", "sha256")}
    path.write_text(json.dumps(old))
    with pytest.warns(UserWarning, match="digests.*--force"):
        assert results.read(path).values == old["values"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "no values"),
        ({"Prec@1": 0.5}, "the value 'Prec@1'"),
        ({"P@1@2": 0.5}, "the value 'P@1@2'"),
        ({"P @1": 0.5}, "the value 'P @1'"),
        ({"ECE@1": 1e308, "Brier@1": 0.5}, "the value 'ECE@1': 1e"),
        ({"P@5": -1e308, "P@9": 0.9, "nDCG@3": 1e308}, "the value 'P@5'"),
    ],
)
def test_values_that_no_table_could_show_do_not_come_back(given, tmp_path, values, said):
    """They ended in KeyError, IndexError, OverflowError and SciPy's ValueError, behind a digest that was right."""
    path = results.add(results.of("ours", "mine", *given), tmp_path)
    content = {**json.loads(path.read_text()), "values": values}
    path.write_text(json.dumps({**content, "sha256": paths.seal(content)}))
    with pytest.raises(DataError, match=said):
        results.read(path)


def test_the_history_has_every_time_that_a_result_was_added(given, tmp_path, capsys):
    Y, top = given
    for k in (5, 2):  # the second replaces the first
        short = xc.TopK.from_ids(np.where(np.arange(5) < k, top.ids, -1), n_labels=30)
        path = results.add(
            results.of("ours", "EUR-Lex", Y, short, (1, 5), metrics=["P", "label entropy"]), tmp_path, True
        )
    results.add(results.of("other", "mine", Y, top, 1, metrics=["P"]), tmp_path)
    found = results.history(tmp_path)
    assert found[["dataset", "method"]].to_numpy().tolist() == [["eurlex-4k", "ours"]] * 2 + [["mine", "other"]]
    expected = [100 * Y[np.arange(60)[:, None], top.ids[:, :k]].sum() / (60 * 5) for k in (5, 2)]
    assert found["P@5"].tolist()[:2] == pytest.approx(expected)
    assert np.isnan(found["P@5"][2])
    assert found["added"].is_monotonic_increasing
    assert pd.to_datetime(found["added"]).dt.tz is not None
    assert found["truth"].eq(fingerprint(Y)[:8]).all()
    assert found["digest"][1] == json.loads(path.read_text())["sha256"][:8] != found["digest"][0]
    assert len(results.history(tmp_path, "EURLex-4K")) == 2
    assert len(results.read_all(tmp_path)) == 2
    assert main(["results", "show", "--history", "--metrics", "P@1", "--csv", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "added,dataset,method,P@1,truth,digest"
    with (tmp_path / results.HISTORY).open("a") as file:
        file.write('{"added": 3}\n')
    with pytest.raises(DataError, match="line 4"):
        results.history(tmp_path)
    with pytest.raises(DataMissing):
        results.history(tmp_path / "none")


def test_no_json_and_no_results(tmp_path):
    with pytest.raises(DataMissing, match="no results"):
        results.read_all(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.json").write_text("{")
    with pytest.raises(DataError, match="no JSON"):
        results.read_all(tmp_path)


def kept(name: str, values: dict, dataset: str = "eurlex-4k", mark: str = "aa", size=(3809, 3993), **options):
    truth = {"fingerprint": mark * 16, "points": size[0], "labels": size[1], "pairs": 9}
    return results.Result(name, dataset, values, truth, options)


def test_the_table_stands_beside_the_printed_rows():
    ours = [
        kept("b", {"P@1": 0.8, "PSP@1": 0.9, "PSP@3": 0.2, "ECE@1": 0.1}, A=0.55),
        kept("a", {"P@1": 0.9, "PSP@1": 0.3}, A=0.55),
    ]
    table, notes = results.table(ours, sort="PSP@1")
    assert list(table.columns) == ["dataset", "method", "from", "P@1", "PSP@1", "PSP@3", "truth"]
    assert notes == []
    printed = xc.published.table("xcrepo:EURLex-4K")
    assert len(table) == 2 + printed["row"].nunique()
    order = table["PSP@1"].dropna()
    assert list(order) == sorted(order, reverse=True)
    assert table["PSP@1"].tail(len(table) - len(order)).isna().all()
    ours_there = table.set_index("method").loc["b"]
    assert (ours_there["from"], ours_there["P@1"], ours_there["truth"]) == ("kit 0.1.0", 80.0, "aaaaaaaa")
    cell = printed.query("method == 'AnnexML' and metric == 'PSP' and k == 1")["value"].item()
    annex = table[table["method"].str.startswith("AnnexML")].iloc[0]
    assert (annex["PSP@1"], annex["from"], annex["truth"]) == (cell, "xcrepo:EURLex-4K", "")
    alone, _ = results.table(ours, ["ECE", "P@1"], printed=False)
    assert list(alone.columns) == ["dataset", "method", "from", "ECE@1", "P@1", "truth"]
    assert list(alone["method"]) == ["b", "a"]  # of an error the lowest is best; what has none is last


def test_what_does_not_belong_together_is_said():
    table, notes = results.table([kept("a", {"PSP@1": 0.8}, A=0.5), kept("b", {"PSP@1": 0.9}, mark="bb", A=0.6)])
    assert len(notes) == 2
    assert re.search(r"eurlex-4k: these are on different test truths .*aaaaaaaa: a; bbbbbbbb: b", notes[0])
    assert re.search(r"propensities differ \(A 0.5.*: a; A 0.6.*: b\)", notes[1])
    table, notes = results.table([kept("a", {"P@1": 0.8}, size=(100, 3993))])
    assert list(table["method"]) == ["a"]
    assert notes == ["eurlex-4k: no printed rows, which are on 3,809 points and 3,993 labels; a is not"]
    table, notes = results.table([kept("a", {"P@1": 0.8}, dataset="mine"), kept("b", {"P@1": 0.9}, dataset="other")])
    assert (list(table["dataset"]), notes) == (["mine", "other"], [])


def test_what_is_asked_for_must_be_there():
    ours = [kept("a", {"P@1": 0.8, "macro-F1 (1-9)@1": 0.1})]
    with pytest.raises(ArgumentError, match=r"metrics .*'PSP@5'"):
        results.table(ours, ["PSP@5"])
    with refused("sort", "'P@3'", match="'P@1'"):
        results.table(ours, sort="P@3")
    table, _ = results.table(ours, ["macro-F1 (1-9)"], printed=False)
    assert list(table["macro-F1 (1-9)@1"]) == [10.0]


def test_the_page_escapes_and_stands_alone():
    table, notes = results.table([kept("<b>ours</b>", {"P@1": 0.8}, dataset="mine")])
    page = html.results(table, [*notes, "a < b"], "R & D")
    assert "&lt;b&gt;ours&lt;/b&gt;" in page
    assert "<li>a &lt; b</li>" in page
    assert "<title>R &amp; D</title>" in page
    assert '<td class="n" data-v="80.0"><strong>80.00</strong></td>' in page
    assert not re.search(r"https?://|src=|@import", page)


def test_the_commands(tmp_path, capsys, given):
    Y, top = given
    sparse.save_npz(tmp_path / "Y.npz", sparse.csr_matrix(Y))
    top.save(tmp_path / "top.npz")
    files = [str(tmp_path / "Y.npz"), str(tmp_path / "top.npz")]
    folder = ["--folder", str(tmp_path / "kept")]
    about = ["--dataset", "mine", "--train-truth", files[0], "--A", "0.5"]
    assert main(["results", "add", *files, "--name", "one", *about, *folder]) == 0
    assert "kept/mine/one.json: " in capsys.readouterr().out
    assert main(["results", "add", *files, "--name", "two", "--dataset", "mine", "-k", "1", *folder]) == 0
    assert main(["results", "add", *files, "--name", "two", "--dataset", "mine", "-k", "1", *folder]) == 2
    assert "--force" in capsys.readouterr().err
    one = results.read(tmp_path / "kept" / "mine" / "one.json")
    assert one.options == {
        "A": 0.5,
        "B": 1.5,
        "train points": 60,
        "train pairs": int(Y.sum()),
        "filtered pairs": 0,
        results.DOUBTS: ["training truth"],  # the truth is given for the train split's as well
        "every point has k predictions": True,
    }
    weights = xc.propensity.inverse(Y.sum(0).astype(int), 60, 0.5, 1.5)
    assert one.values["PSP@5"] == xc.metrics.psp(Y, top, 5, inverse_propensity=weights).item()
    assert main(["results", "show", "--sort", "PSP@5", "--csv", *folder]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [["mine", "one", "kit 0.1.0"], ["mine", "two", "kit 0.1.0"]]
    assert lines[2].split(",")[-2] == "nan"
    assert main(["results", "show", "--dataset", "mein", *folder]) == 2
    assert "did you mean 'mine'" in capsys.readouterr().err
    assert main(["results", "show", "--html", str(tmp_path / "page.html"), *folder]) == 0
    assert "<td><strong>one</strong></td>" in (tmp_path / "page.html").read_text()
    # two kept results are two result files
    paths = [str(tmp_path / "kept" / "mine" / f"{name}.json") for name in ("one", "two")]
    assert main(["compare", *paths]) == 1
    out = capsys.readouterr().out
    assert re.search(r"about +what=A +is +0\.5 +None", out)
    assert re.search(r"metric=P, k=3 .*a row", out)
    assert main(["compare", paths[0], paths[0]]) == 0
    assert main(["results", "add", *files, "--name", "x", "--dataset", "mine", "--A", "1", *folder]) == 2


def test_results_never_lie_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_ROOT", str(tmp_path / "cache" / "project"))
    monkeypatch.chdir(tmp_path)
    assert results.default_folder() == tmp_path / "results"
    (tmp_path / "cache" / "project" / "notebooks").mkdir(parents=True)
    assert results.default_folder() == tmp_path / "cache" / "project" / "results"


def test_results_lie_where_one_stands_and_not_in_the_clone(tmp_path, monkeypatch, root):
    monkeypatch.delenv("XCREPRO_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert paths.project_root() == root  # this clone, which the tests were installed from
    assert results.default_folder() == tmp_path / "results"
    (tmp_path / "mine" / "notebooks").mkdir(parents=True)
    (tmp_path / "mine" / "notebooks" / "manifest.toml").write_text("")
    (tmp_path / "mine" / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "mine" / "deeper")
    assert results.default_folder() == tmp_path / "mine" / "results"


def test_predictions_that_do_not_fit_are_named_and_marked(given, tmp_path, capsys):
    """Cut off after 80 % of the rows: said before the result is kept, and again by every table that shows it."""
    Y, top = given
    ids = top.ids.copy()
    ids[48:] = -1
    sparse.save_npz(tmp_path / "Y.npz", sparse.csr_matrix(Y))
    xc.TopK.from_ids(ids, n_labels=30).save(tmp_path / "cut.npz")
    top.save(tmp_path / "whole.npz")
    folder = ["--folder", str(tmp_path / "kept")]
    for name in ("cut", "whole"):
        files = [str(tmp_path / "Y.npz"), str(tmp_path / f"{name}.npz")]
        assert main(["results", "add", *files, "--name", name, "--dataset", "mine", *folder]) == 0
        said = capsys.readouterr()
        assert ("rows without predictions: 12 of 60 rows have no prediction, the last 12 in a row" in said.err) == (
            name == "cut"
        )
    kept = {one.name: one.options.get(results.DOUBTS) for one in results.read_all(tmp_path / "kept")}
    assert kept == {"cut": ["rows without predictions"], "whole": None}
    assert main(["results", "show", *folder]) == 0
    said = capsys.readouterr().out
    assert "the predictions of cut may not belong to this truth (rows without predictions)" in said
    assert "predictions of whole" not in said
