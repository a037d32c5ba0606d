"""A blind leaderboard from make to open: what is hidden stays hidden, each fault is named, nothing handed in is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xcrepro as xc
from docs import links
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError, DataMissing
from xcrepro.tools import formats
from xcrepro.tools.course import board

DEADLINE = "2030-01-31T18:00+00:00"
EARLY, LATE = (datetime.fromisoformat(text) for text in ("2030-01-30T12:00+00:00", "2030-02-01T12:00+00:00"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board") / "made"
    assert main(["course-board", "make", str(folder), "--points", "2500", "--deadline", DEADLINE, "--seed", "3"]) == 0
    return folder


@pytest.fixture(scope="module")
def tops(made):
    """Three models as the students train them: from the public part only."""
    ds = xc.load("board", made / "public")
    models = {"ova": xc.models.OneVsRest(), "popular": xc.models.Popularity(), "knn": xc.models.KNN()}
    return {name: model.fit(ds.train.X, ds.train.Y).predict(ds.test.X, 5) for name, model in models.items()}


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "board")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """``clock(time)`` says when files are taken in from now on."""

    def at(time):
        monkeypatch.setattr(board, "_now", lambda: time)

    at(EARLY)
    return at


def hand_in(folder, student, top, file="mine.npz", time=EARLY):
    """A file of a student, with a date of its own."""
    path = folder / "submissions" / student / file
    path.parent.mkdir(exist_ok=True)
    if isinstance(top, bytes):
        path.write_bytes(top)
    else:
        formats.write_predictions(path, top)
    os.utime(path, (time.timestamp(), time.timestamp()))
    return path


def statuses(folder) -> dict[tuple[str, str], tuple[str, str]]:
    """(student, file) -> status and reason, as the page prints them."""
    page = (folder / "index.html").read_text(encoding="utf-8").partition("<h2>Submissions</h2>")[2]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", page) if "<td>" in row]
    return {(row[0], row[1]): (row[2], row[3]) for row in rows}


def precision(truth, ids) -> float:
    """P@5 by a slow loop."""
    rows = [set(truth.indices[truth.indptr[i] : truth.indptr[i + 1]]) for i in range(truth.shape[0])]
    return sum(int(label) in rows[i] for i in range(len(rows)) for label in ids[i]) / (5 * len(rows))


def with_labels(top, truth, place, every=1):
    """Predictions with a label of this truth at one place of every so many rows, where the row does not have it yet."""
    ids = top.ids.copy()
    for row in range(0, len(ids), every):
        fresh = [label for label in truth.indices[truth.indptr[row] : truth.indptr[row + 1]] if label not in ids[row]]
        ids[row, place] = fresh[0] if fresh else ids[row, place]
    return xc.TopK.from_ids(ids, n_labels=top.n_labels)


def hidden(folder, name):
    return formats.read_truth(folder / "hidden" / f"{name}.npz")


def test_students_get_no_test_label_and_what_is_observed_is_part_of_the_truth(made):
    ds = xc.load("board", made / "public")
    observed, complete = hidden(made, "observed"), hidden(made, "complete")
    assert ds.test.Y.nnz == 0
    assert ds.test.Y.shape == observed.shape == complete.shape == (625, len(ds.label_names))
    assert (observed > complete).nnz == 0
    assert 0.1 < 1 - observed.nnz / complete.nnz < 0.6
    assert "0.5" not in "".join(path.read_text() for path in (made / "public").glob("*.md")), "the strength is hidden"
    assert sorted(path.name for path in (made / "public").iterdir()) == [
        *("README.md", "label_names.txt", "lbl_X_Xf.txt", "test.txt", "train.txt", "words.txt")
    ]


def test_one_seed_one_board_and_the_strength_is_what_it_says(tmp_path):
    how = {"points": 1200, "deadline": DEADLINE, "rule": "uniform"}
    one, two = (board.make(tmp_path / name, **how, seed=5, strength=0.3) for name in ("one", "two"))
    for file in ("public/train.txt", "public/test.txt", "board.json"):
        assert (one / file).read_bytes() == (two / file).read_bytes()
    assert json.loads((one / "board.json").read_text())["removed"] == pytest.approx(0.3, abs=0.06)
    none = board.make(tmp_path / "none", **how, seed=5, strength=0)
    assert (hidden(none, "observed") != hidden(none, "complete")).nnz == 0
    drawn = json.loads((board.make(tmp_path / "drawn", **how) / "board.json").read_text())["seed"]
    assert drawn != 5


def test_the_rule_says_which_labels_go_missing(tmp_path):
    """Of 2,000 records and more: the share that is left of frequent labels and of labels seen once."""
    how = {"points": 4000, "deadline": DEADLINE, "seed": 5}
    whole = board.make(tmp_path / "none", **how, strength=0)
    counts = np.asarray(xc.load("board", whole / "public").train.Y.sum(axis=0)).ravel()
    q = 1 / (1 + (np.log(3000) - 1) * 2.5**0.55 * (counts + 1.5) ** -0.55)  # jain16, eq. 1
    for rule, stays in (("uniform", np.full(counts.size, 0.4)), ("rare", q**0.6)):
        made = board.make(tmp_path / rule, **how, rule=rule, strength=0.6)
        for here in (counts >= 15, counts == 1):
            observed, complete = (hidden(made, which)[:, here] for which in ("observed", "complete"))
            expected = np.asarray(complete.sum(axis=0)).ravel() @ stays[here] / complete.nnz
            assert observed.nnz / complete.nnz == pytest.approx(expected, abs=0.05), rule


def test_a_board_of_synthetic_data_has_their_complete_truth(tmp_path):
    how = {"deadline": DEADLINE, "seed": 1, "scale": 0.05}
    made = board.make(tmp_path / "twin", "synthetic bibtex", **how)
    twin = xc.twin("bibtex", scale=0.05, seed=1)
    assert (hidden(made, "complete") != twin.test.Y_complete).nnz == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rule": "rar"}, "did you mean 'rare'"),
        ({"strength": 1.5}, "strength must be a finite number, at least 0 and at most 1"),
        ({"deadline": "tomorrow"}, "deadline must be a time in ISO 8601"),
        ({"metrics": ["P"]}, "metrics must be metrics with their k"),
        ({"metrics": ["Hamming@5"]}, "of which more is better"),
        ({"metrics": ["nDGC@5"]}, "nDCG"),
        ({"metrics": []}, "metrics"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"dataset": "no such data"}, "no such data"),
    ],
)
def test_a_wrong_argument_makes_no_board(tmp_path, options, said):
    with pytest.raises(ArgumentError, match=said):
        board.make(tmp_path / "board", **{"points": 400, "deadline": DEADLINE} | options)
    assert not (tmp_path / "board").exists()


def test_a_folder_that_holds_something_stays_as_it_is(folder, capsys):
    assert main(["course-board", "make", str(folder), "--deadline", DEADLINE]) == 2
    assert "DIR must" in capsys.readouterr().err


def test_what_is_no_board_is_said(tmp_path, capsys):
    with pytest.raises(DataMissing, match="course-board make"):
        board.rank(tmp_path)
    assert main(["course-board", "open", str(tmp_path)]) == 2
    assert "no board" in capsys.readouterr().err


@pytest.mark.parametrize("dataset", ["tib", "gutenberg"])
def test_headings_have_their_own_names_and_words(dataset):
    """By their number of records, which no drawing anew changes; a heading of one word has that word as a feature."""
    made, _ = board._source(dataset, None, None, 1.0, 3)
    ds = xc.load(dataset)
    before = sum(np.asarray(part.Y.sum(axis=0)).ravel() for part in (ds.train, ds.validation, ds.test))
    found = dict(zip(made.label_names, np.asarray(made.Y.sum(axis=0)).ravel(), strict=True))
    least = min(found.values())
    assert found == {name: n for name, n in zip(ds.label_names, before, strict=True) if n >= least}
    ids = {word: column for column, word in enumerate(made.words)}
    known = [(label, ids[name.lower()]) for label, name in enumerate(made.label_names) if name.lower() in ids]
    assert len(known) > 100
    assert all(made.label_features[label].indices.tolist() == [word] for label, word in known)


def test_the_ranking_is_that_of_an_oracle_and_the_page_needs_nothing_else(folder, tops, capsys):
    for student, top in tops.items():
        hand_in(folder, student, top)
    hand_in(folder, "<script>alert(1)", tops["popular"], "x<b>.csv")
    assert main(["course-board", "rank", str(folder)]) == 0
    table, printed = pd.read_csv(folder / "ranking.csv"), capsys.readouterr().out
    for needed in table["records"].dropna():
        assert re.search(rf" {needed:.0f} *$", printed, re.MULTILINE), "a number of records has no decimals"
    expected = {student: precision(hidden(folder, "observed"), top.ids) for student, top in tops.items()}
    expected["<script>alert(1)"] = expected["popular"]
    assert list(table["P@5"]) == sorted(table["P@5"], reverse=True)
    assert dict(zip(table["student"], table["P@5"], strict=True)) == pytest.approx(expected, rel=1e-5)
    ranks = dict(zip(table["student"], table["rank"], strict=True))
    assert ranks["popular"] == ranks["<script>alert(1)"] == 3
    assert ((table["P@5 low"] <= table["P@5"]) & (table["P@5"] <= table["P@5 high"])).all()
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "x<b>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "complete" not in page.replace("complete labels are", ""), "the truth is not open yet"
    (folder / "site").mkdir()
    shutil.copy(folder / "index.html", folder / "site")
    assert links.check(folder / "site") == []


def test_the_first_metric_decides_with_its_own_k_and_the_page_prints_the_tables_numbers(tmp_path, tops):
    """nDCG@3 ranks although P@1 comes after it; the page has each value with the low end of its interval first."""
    made = board.make(tmp_path / "b", points=2500, deadline=DEADLINE, seed=3, metrics=["nDCG@3", "P@1", "nDCG@1"])
    assert "with the 3 best of" in (made / "public" / "README.md").read_text()
    tops = tops | {
        "first": with_labels(tops["popular"], hidden(made, "observed"), 0, every=3),
        "third": with_labels(tops["popular"], hidden(made, "observed"), 2),
    }
    for student, top in tops.items():
        hand_in(made, student, top)
    board.rank(made)
    table = pd.read_csv(made / "ranking.csv")
    assert table["student"][0] == "third"
    assert table["nDCG@1"][0] < table["nDCG@1"][1], "at k = 1 another student is first"
    for name, metric, k in (("nDCG@3", xc.metrics.ndcg, 3), ("P@1", xc.metrics.precision, 1)):
        expected = [metric(hidden(made, "observed"), tops[student], k)[0] for student in table["student"]]
        assert list(table[name]) == pytest.approx(expected, rel=1e-5)
    assert list(table["nDCG@3"]) == sorted(table["nDCG@3"], reverse=True)
    page = (made / "index.html").read_text()
    for row in table.to_dict("records"):
        value, low, high = (100 * row[f"nDCG@3{end}"] for end in ("", " low", " high"))
        assert low < value < high
        assert f"{value:.2f} <small>{low:.2f} to {high:.2f}</small>" in page


def test_p_is_holms_of_the_differences_to_the_first(folder, tops):
    for student, top in tops.items():
        hand_in(folder, student, top)
    table = board.rank(folder).set_index("student")
    observed, first = hidden(folder, "observed"), table.index[0]
    raw = {
        other: xc.compare(observed, {other: tops[other], first: tops[first]}, "P@5")["p raw"].iloc[0]
        for other in table.index[1:]
    }
    assert np.isnan(table.loc[first, "p"])
    assert list(table["p"].iloc[1:]) == pytest.approx(list(xc.metrics.holm(list(raw.values()))))


def test_the_order_of_taking_in_decides_and_not_a_files_own_date(folder, tops, clock):
    hand_in(folder, "one", tops["ova"], "b.npz", time=LATE)
    hand_in(folder, "two", tops["popular"])
    clock(datetime.fromisoformat(DEADLINE))
    board.rank(folder)
    # Taken in at the deadline itself, which is in time; a date in the future and an older one change nothing.
    hand_in(folder, "one", tops["knn"], "a.npz", time=EARLY - timedelta(days=300))
    board.rank(folder)
    clock(LATE)
    hand_in(folder, "two", tops["ova"], "late.npz", time=EARLY - timedelta(days=300))  # as `touch` would have it
    table = board.rank(folder).set_index("student")
    assert {key: status for key, (status, _) in statuses(folder).items()} == {
        ("one", "b.npz"): "replaced",
        ("one", "a.npz"): "counts",
        ("two", "mine.npz"): "counts",
        ("two", "late.npz"): "late",
    }
    for student, top in {"one": tops["knn"], "two": tops["popular"]}.items():
        assert table.loc[student, "P@5"] == pytest.approx(precision(hidden(folder, "observed"), top.ids))
    assert main(["course-board", "rank", str(folder), "--excuse", "two"]) == 0
    table = pd.read_csv(folder / "ranking.csv").set_index("student")
    assert table.loc["two", "P@5"] == pytest.approx(precision(hidden(folder, "observed"), tops["ova"].ids), rel=1e-5)
    with pytest.raises(ArgumentError, match="excuse"):
        board.rank(folder, excuse="nobody")


def test_of_files_taken_in_together_the_later_date_counts(folder, tops):
    hand_in(folder, "one", tops["ova"], "a.npz", time=LATE)
    hand_in(folder, "one", tops["popular"], "b.npz", time=EARLY)
    board.rank(folder)
    assert statuses(folder)["one", "a.npz"][0] == "counts"


def test_an_old_file_that_is_handed_in_again_counts(folder, tops):
    """A, then B, then A again: under its old name, and under a new one."""
    for name in ("mine.npz", "other.npz"):
        hand_in(folder, "one", tops["knn"], "mine.npz", time=EARLY)
        board.rank(folder)
        hand_in(folder, "one", tops["popular"], "b.npz", time=EARLY + timedelta(hours=1))
        board.rank(folder)
        hand_in(folder, "one", tops["knn"], name, time=EARLY + timedelta(hours=2))
        table = board.rank(folder)
        assert table["P@5"][0] == pytest.approx(precision(hidden(folder, "observed"), tops["knn"].ids))
        log = (folder / "log.csv").read_text()
        assert board.rank(folder).equals(table)
        assert (folder / "log.csv").read_text() == log, "a second run finds nothing new"
    assert len({path.name for path in (folder / "kept").iterdir()}) == 2


def test_words_and_names_come_along(made):
    ds, tib = xc.load("board", made / "public"), xc.load("tib")
    assert len(ds.telling_words(0)) == 8
    assert set(ds.label_names) <= set(tib.label_names)
    assert ds.label_features.shape == (len(ds.label_names), len(ds.words))
    named = [i for i, name in enumerate(ds.label_names) if name == "Finite element method"]
    assert {ds.words[word] for word in ds.label_features[named[0]].indices} == {"finite", "element", "method"}
    top = (
        xc.models.TwoTowers(dim=8, epochs=1, seed=0)
        .fit(ds.train.X, ds.train.Y, ds.label_features)
        .predict(ds.test.X, 5)
    )
    assert top.ids.shape == (625, 5)


def test_no_record_can_be_looked_up(made):
    """The nearest of all library records, with their complete headings, is worse than honest neighbours."""
    ds, tib, complete = xc.load("board", made / "public"), xc.load("tib"), hidden(made, "complete")
    parts = (tib.train, tib.test, tib.validation)
    X, Y = (sparse.vstack([getattr(part, of) for part in parts], format="csr") for of in "XY")
    near = np.asarray((ds.test.X @ X.T).argmax(axis=1)).ravel()
    found = Y[:, [tib.label_names.index(name) for name in ds.label_names]][near]
    right = found.multiply(complete).sum()
    exact = sum((found[row] != complete[row]).nnz == 0 for row in range(found.shape[0]))
    assert exact < 0.35 * found.shape[0], "a record with one heading has it in common with many"
    assert right < 0.6 * complete.sum()
    rows = {tuple(row.indices) for row in X}
    assert not any(tuple(row.indices) in rows for row in ds.test.X), "no record is one of the library's"


def test_recombined_words_are_those_of_other_records_with_the_heading():
    random = np.random.default_rng(4)
    Y = sparse.csr_matrix((random.random((60, 9)) < 0.25).astype(np.float32))
    X = sparse.csr_matrix((random.random((60, 40)) < 0.2) * random.random((60, 40)), dtype=np.float32)
    made_X, made_Y = board._recombined(X, Y, np.random.default_rng(0))
    rows = np.flatnonzero(np.diff(Y.indptr))
    assert (made_Y != Y[rows]).nnz == 0
    for new, row in enumerate(rows):
        others = [i for i in range(60) if i != row and Y[i].multiply(Y[row]).nnz]
        allowed = {word for i in others for word in X[i].indices}
        words = made_X[new].indices
        assert set(words) <= allowed
        assert len(words) == len(set(words)) <= X[row].nnz
        assert np.sqrt((made_X[new].data ** 2).sum()) == pytest.approx(1, abs=1e-6)
    assert made_X.nnz > 0.8 * X[rows].nnz


def test_who_knows_what_nobody_can_know_is_named(folder, tops):
    """The complete labels, the labels that were left, and three honest models."""
    observed, complete = hidden(folder, "observed"), hidden(folder, "complete")
    for student, top in tops.items():
        hand_in(folder, student, top)
    hand_in(folder, "looked up", xc.TopK.from_scores(complete, 5))
    hand_in(folder, "saw the rest", xc.TopK.from_scores(observed + 0.1 * tops["knn"].to_csr(), 5))
    board.rank(folder)
    found = {student: reason for (student, _), (_, reason) in statuses(folder).items()}
    assert "At the ceiling" in found["looked up"]
    assert "Above the noise of labels" in found["saw the rest"]
    assert not any("ceiling" in found[name] or "noise" in found[name] for name in tops)
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "To be looked at" in page
    ceiling = np.minimum(np.diff(observed.indptr), 5).sum() / (5 * observed.shape[0])
    assert f"No predictions can have a higher P@5 here than {100 * ceiling:.2f}." in page


def test_the_power_is_that_of_simulated_boards(folder, tops):
    """With as many records as are asked for, a lead of this size is seen in 8 of 10 draws."""
    for student, top in tops.items():
        hand_in(folder, student, top)
    table, observed = board.rank(folder), hidden(folder, "observed")
    needed = table["records"].to_numpy()
    assert np.isnan(needed[-1])
    first, second = (tops[student].ids for student in table["student"][:2])
    hits = [np.array([observed[row, ids[row]].sum() / 5 for row in range(len(ids))]) for ids in (first, second)]
    d, random = hits[0] - hits[1], np.random.default_rng(0)
    n, seen = int(needed[0]), 0
    for _ in range(400):
        drawn = d[random.integers(0, d.size, n)]
        seen += drawn.mean() > 1.96 * drawn.std() / np.sqrt(n)
    assert 500 < n < 10**6
    assert 0.72 < seen / 400 < 0.88


def test_a_tie_is_no_order_that_holds(folder, tops, clock):
    hand_in(folder, "one", tops["knn"])
    hand_in(folder, "same", tops["knn"])
    hand_in(folder, "other", tops["popular"])
    board.rank(folder)
    clock(LATE)
    board.open_truth(folder)
    pairs = pd.read_csv(folder / "pairs.csv")
    assert pairs["held"].isna().sum() == 1
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "2 of 2 pairs of students whose observed values differ" in page
    assert "<td>tie</td>" in page


def test_a_board_of_titles_and_one_of_a_folder_of_ones_own(tmp_path):
    how = {"deadline": DEADLINE, "seed": 1}
    titles = xc.load("board", board.make(tmp_path / "titles", "gutenberg", points=800, **how) / "public")
    assert titles.train.X.shape[0] == 600
    assert titles.words
    own = tmp_path / "own"
    own.mkdir()
    small = xc.load("cooking")
    for part in ("train", "test"):
        xc.write_xc(own / f"{part}.txt", getattr(small, part).X[:400], getattr(small, part).Y[:400])
    made = board.make(tmp_path / "mine", "questions", data=own, **how)
    assert hidden(made, "complete").shape[0] == 200
    assert "questions" in (made / "public" / "README.md").read_text()
    with pytest.raises(ArgumentError, match="dataset must be 'tib' or 'gutenberg'"):
        board.make(tmp_path / "no", "cooking", **how)
    with pytest.raises(ArgumentError, match="points"):
        board.make(tmp_path / "no", data=own, points=801, **how)
    assert not (tmp_path / "no").exists()


def test_the_verdict_counts_what_held_what_was_sure_and_what_turned():
    columns = ["value", "low", "high", "complete", "complete low", "complete high", "held"]
    rows = [
        (0, -1, +1, +4, +3, +5, None),  # a tie: no pair
        (+2, +1, +3, +4, +3, +5, True),  # sure, and held
        (+1, -1, +3, +1, -1, +3, True),  # not sure, and held
        (+2, +1, +3, -2, -3, -1, False),  # sure, and plainly turned
        (-1, -3, +1, +1, +0.5, +2, False),  # not sure, and plainly turned
        (-2, -3, -1, +1, -1, +3, False),  # sure, and turned, but not plainly
    ]
    settings = {"removed": 0.25, "rule": "rare", "strength": 0.5}
    pairs = pd.DataFrame(rows, columns=columns).astype({"held": "boolean"})
    said = board._verdict(settings, pairs)
    assert "25.0 % of the test labels" in said
    assert "2 of 5 pairs of students whose observed values differ are in the same order" in said
    assert "Among them are 1 of the 3 pairs whose observed interval leaves out 0" in said
    assert "In 2 of all pairs the complete labels show a difference of the opposite sign" in said


def test_each_fault_is_named_and_the_earlier_sound_file_stays(folder, tops, clock):
    good = tops["ova"]
    whole = hand_in(folder, "whole", good).read_bytes()
    faults = {
        "cut": (whole[: len(whole) // 2], "damaged"),
        "empty": (b"", "damaged"),
        "words": (b"my predictions are all right", "damaged"),
        "moved": (xc.TopK.from_ids(np.roll(good.ids, 1, axis=0), n_labels=good.n_labels), "misaligned"),
        "shuffled": (
            xc.TopK.from_ids(np.random.default_rng(0).permutation(good.ids), n_labels=good.n_labels),
            "misaligned",
        ),
        "short": (xc.TopK.from_ids(good.ids[:-7], n_labels=good.n_labels), "misaligned"),
        "late": (good, "late"),
    }
    for student, (top, _) in faults.items():
        hand_in(folder, student, tops["knn"], "first.npz")
        if student != "late":
            hand_in(folder, student, top, time=EARLY + timedelta(minutes=1))
    board.rank(folder)
    clock(LATE)
    hand_in(folder, "late", good)
    table = board.rank(folder)
    found = statuses(folder)
    for student, (_, kind) in faults.items():
        assert found[student, "mine.npz"][0] == kind, student
        assert found[student, "mine.npz"][1] not in ("", "nan"), student
        assert found[student, "first.npz"][0] == "counts", student
    assert "rows" in found["short", "mine.npz"][1]
    assert "the deadline" in found["late", "mine.npz"][1]
    assert str(folder) not in (folder / "index.html").read_text(), "no path of the teacher's machine"
    assert sorted(table["student"]) == sorted([*faults, "whole"])
    knn = precision(hidden(folder, "observed"), tops["knn"].ids)
    assert list(table[table["student"] != "whole"]["P@5"]) == pytest.approx([knn] * len(faults))


def test_nothing_that_was_handed_in_is_lost(folder, tops, clock):
    path = hand_in(folder, "007", tops["knn"])
    first = path.read_bytes()
    before = board.rank(folder)
    path.write_bytes(b"overwritten")
    os.utime(path, (EARLY.timestamp() + 60, EARLY.timestamp() + 60))
    assert board.rank(folder).equals(before)
    shutil.rmtree(folder / "submissions" / "007")
    assert board.rank(folder).equals(before)
    assert first in [file.read_bytes() for file in (folder / "kept").rglob("*") if file.is_file()]
    assert len((folder / "log.csv").read_text().splitlines()) == 3
    hand_in(folder, "007", tops["ova"], "better.npz", time=EARLY + timedelta(minutes=2))
    after = board.rank(folder)
    assert statuses(folder)["007", "better.npz"][0] == "counts"
    assert statuses(folder)["007", "mine.npz"][0] == "damaged"
    # The same bytes again, but after the deadline.
    clock(LATE)
    hand_in(folder, "007", first, time=LATE)
    assert board.rank(folder).equals(after)
    assert statuses(folder)["007", "mine.npz"][0] == "late"


def test_formats_are_read_by_content_and_folders_are_submissions(folder, tops):
    names = xc.load("board", folder / "public").label_names
    hand_in(folder, "jsonl", tops["knn"], "mine.jsonl")
    hand_in(folder, "trec", tops["knn"], "mine.run")
    home = folder / "submissions" / "annif"
    home.mkdir()
    formats.write_predictions(home / "all", tops["knn"], "annif", label_names=names)
    table = board.rank(folder)
    assert list(table["rank"]) == [1, 1, 1], statuses(folder)


def test_an_empty_board_and_one_student_have_a_page(folder, tops):
    assert board.rank(folder).empty
    hand_in(folder, "only", tops["ova"])
    assert list(board.rank(folder)["rank"]) == [1]


def test_open_waits_for_the_deadline_and_compares_both_orders(folder, tops, capsys, clock):
    for student, top in tops.items():
        hand_in(folder, student, top)
    assert main(["course-board", "open", str(folder)]) == 2
    assert "deadline" in capsys.readouterr().err
    assert not (folder / "index.html").exists()
    board.rank(folder)
    clock(LATE)
    assert main(["course-board", "open", str(folder)]) == 0
    table, pairs = (pd.read_csv(folder / f"{name}.csv") for name in ("ranking", "pairs"))
    of = {
        name: {student: precision(hidden(folder, name), top.ids) for student, top in tops.items()}
        for name in ("observed", "complete")
    }
    assert list(table["complete"]) == pytest.approx([of["complete"][student] for student in table["student"]], rel=1e-5)
    assert ((table["complete low"] < table["complete"]) & (table["complete"] < table["complete high"])).all()
    assert ((pairs["complete low"] <= pairs["complete"]) & (pairs["complete"] <= pairs["complete high"])).all()
    assert list(pairs["left"]) == [table["student"][i] for i in (0, 0, 1)], "the higher rank is on the left"
    order = sorted(of["complete"], key=of["complete"].get, reverse=True)
    assert sorted(table["student"], key=dict(zip(table["student"], table["complete rank"], strict=True)).get) == order
    assert len(pairs) == 3
    for row in pairs.itertuples():
        differences = [of[name][row.left] - of[name][row.right] for name in ("observed", "complete")]
        assert [row.value, row.complete] == pytest.approx(differences, rel=1e-4, abs=1e-7)
        assert row.held == (np.sign(differences[0]) == np.sign(differences[1]))
    page = (folder / "index.html").read_text()
    assert f"{pairs['held'].sum()} of 3 pairs of students whose observed values differ are in the same order" in page
    assert "had been taken out (rule: rare, strength 0.5)" in page
    board.rank(folder)
    assert "The complete truth" in (folder / "index.html").read_text(), "once opened, it stays open"


def test_a_pair_that_turns_when_the_truth_is_opened(folder, tops, clock):
    """One student gave up the first place for labels that were taken out: behind on the observed labels, ahead on all."""
    observed, complete = hidden(folder, "observed"), hidden(folder, "complete")
    hand_in(folder, "steady", tops["ova"])
    hand_in(folder, "turned", with_labels(tops["ova"], (complete - observed).tocsr(), 0))
    board.rank(folder)
    clock(LATE)
    table, pairs = board.open_truth(folder), pd.read_csv(folder / "pairs.csv")
    assert list(table["student"]) == ["steady", "turned"]
    assert list(table["complete rank"]) == [2, 1]
    assert pairs["value"][0] > 0 > pairs["complete"][0]
    assert not pairs["held"][0]
    page = (folder / "index.html").read_text()
    assert "0 of 1 pairs of students whose observed values differ are in the same order" in page
    assert "In 1 of all pairs the complete labels show a difference of the opposite sign" in page


def test_two_runs_at_once_do_no_harm(folder, tops):
    for student, top in tops.items():
        hand_in(folder, student, top)
    command = [sys.executable, "-m", "xcrepro", "course-board", "rank", str(folder)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said, faults = zip(*(run.communicate(timeout=3600) for run in runs), strict=True)
    assert [run.returncode for run in runs] == [0, 0], faults
    assert said[0] == said[1]
    assert len(pd.read_csv(folder / "log.csv")) == 3
    assert len(list((folder / "kept").iterdir())) == 3
    assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
