"""One table of cases and formats: what strangers' files hold, and the values that a loop over lists finds in them.

A case is a truth and predictions by name or by id. It is written in each format that it can occur in, truth and
predictions in each pair of them, read through the one door, and its values are held against loops that share nothing with
the package. Where nothing can tell what is meant, it is to be refused in words.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, save_npz

import xcrepro as xc
from xcrepro.core.data.names import LabelNames, read_label_names
from xcrepro.core.errors import DataWarning, XCError
from xcrepro.repro.published.results import audit_results
from xcrepro.tools import formats
from xcrepro.tools.formats import reader

Label = str | int
Truth = list[list[Label]]
Predictions = list[list[tuple[Label, float]]]

# ---------------------------------------------------------------- what writes each format, apart from the package


def table(path: Path, rows: list[tuple], header: list[str], separator: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator).writerows([header, *rows])


def long(separator: str) -> Callable:
    def write(path: Path, rows, scored: bool) -> None:
        header = ["row", "label", *["score"] * scored]
        cells = [(f"{row}", *(one if scored else [one])) for row, labels in enumerate(rows) for one in labels]
        table(path, cells, header, separator)

    return write


def jsonl(path: Path, rows, scored: bool) -> None:
    if scored:
        records = ({"labels": [label for label, _ in row], "scores": [score for _, score in row]} for row in rows)
    else:
        records = ({"labels": row} for row in rows)
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records), encoding="utf-8")


def lists(path: Path, rows, scored: bool) -> None:
    path.write_text(json.dumps(rows), encoding="utf-8")


def dictionary(path: Path, rows, scored: bool) -> None:
    found = {f"{row}": dict(labels) if scored else dict.fromkeys(labels, 1) for row, labels in enumerate(rows)}
    path.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


def trec(path: Path, rows, scored: bool) -> None:
    lines = [
        f"{row} Q0 {one[0]} - {one[1]} t" if scored else f"{row} 0 {one} 1"
        for row, labels in enumerate(rows)
        for one in labels
    ]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def fasttext(path: Path, rows, scored: bool) -> None:
    text = ""
    for row in rows:
        text += " ".join(f"__label__{one[0]} {one[1]}" if scored else f"__label__{one}" for one in row)
        text += "\n" if scored else " words\n"
    path.write_text(text, encoding="utf-8")


def parquet(path: Path, rows, scored: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"labels": [[one[0] for one in labels] for labels in rows] if scored else rows}
    columns |= {"scores": [[one[1] for one in labels] for labels in rows]} if scored else {}
    pq.write_table(pa.table(columns), path)


def annif(path: Path, rows, scored: bool) -> None:
    path.mkdir()
    for row, labels in enumerate(rows):
        (path / f"{row}.txt").write_text("text")
        text = "".join(f"{one[0]}\t{one[1]}\n" if scored else f"{one}\n" for one in labels)
        (path / f"{row}{'.annif' if scored else '.tsv'}").write_text(text, encoding="utf-8")


def wide(path: Path, rows, scored: bool) -> None:
    names = sorted({one[0] if scored else one for labels in rows for one in labels}, reverse=True)
    held = [dict(labels) if scored else dict.fromkeys(labels, 1) for labels in rows]
    cells = [(f"{row}", *(labels.get(name, "" if scored else 0) for name in names)) for row, labels in enumerate(held)]
    table(path, cells, ["id", *names])


def dense(rows, scored: bool, n: int) -> np.ndarray:
    found = np.full((len(rows), n), -np.inf if scored else 0.0)
    for row, labels in enumerate(rows):
        for one in labels:
            found[row, one[0] if scored else one] = one[1] if scored else 1
    return found


def npy(path: Path, rows, scored: bool) -> None:
    np.save(path, dense(rows, scored, WIDTH))


def npz(path: Path, rows, scored: bool) -> None:
    held = dense(rows, scored, WIDTH)
    there = np.isfinite(held) if scored else held > 0
    save_npz(path, csr_matrix((held[there], np.nonzero(there)), shape=held.shape))


def pairs(path: Path, rows, scored: bool) -> None:
    path.write_text("".join(" ".join(f"{label}:{score}" for label, score in row) + "\n" for row in rows))


def columns(path: Path, rows, scored: bool) -> None:
    np.savetxt(path, dense(rows, scored, WIDTH), "%.9g")


WIDTH = 6  # of matrices
BY_NAME: dict[str, Callable] = {
    "t.csv": long(","), "t.tsv": long("\t"), "t.jsonl": jsonl, "t.json": lists, "t.ranx.json": dictionary, "t.txt": trec,
    "t.fasttext": fasttext, "t.parquet": parquet, "t": annif, "wide.csv": wide,
}  # fmt: skip
"""Formats that have room for names, by a file's name."""
BY_ID: dict[str, Callable] = {
    "i.npy": npy, "i.npz": npz, "i.jsonl": jsonl, "i.json": lists, "i.parquet": parquet, "i.txt": columns, "i.pred": pairs,
}  # fmt: skip
"""Formats of ids."""
if importlib.util.find_spec("pyarrow") is None:
    del BY_NAME["t.parquet"], BY_ID["i.parquet"]
WORDS = {"t.txt", "t.fasttext"}
"""Formats that have no room for a blank."""


def put(folder: Path, stem: str, file: str, rows, scored: bool) -> Path:
    path = folder / f"{stem}-{file}"
    {**BY_NAME, **BY_ID}[file](path, rows, scored)
    return path


# ---------------------------------------------------------------- the values, by loops


def best(row: list[tuple[Label, float]]) -> list[Label]:
    """Labels by falling score, equal ones by name."""
    return [label for label, _ in sorted(sorted(row), key=lambda one: -one[1])]


def precision(truth: Truth, predicted: Predictions, k: int) -> float:
    return sum(len({*best(row)[:k]} & {*of}) / k for row, of in zip(predicted, truth, strict=True)) / len(truth)


def macro_f1(truth: Truth, predicted: Predictions, k: int, labels: set[Label]) -> float:
    """Over some labels, whatever else is predicted."""
    total = 0.0
    for label in labels:
        said, right = [label in best(row)[:k] for row in predicted], [label in row for row in truth]
        both = sum(a and b for a, b in zip(said, right, strict=True))
        total += 2 * both / max(sum(said) + sum(right), 1)
    return total / len(labels)


# ---------------------------------------------------------------- the cases


@dataclass(frozen=True)
class Case:
    """A truth, predictions, the pairs of formats that they can be in, how to read them, and what is said then."""

    name: str
    truth: Truth
    predicted: Predictions
    formats: list[tuple[str, str]]
    options: dict[str, Any] = field(default_factory=dict)
    said: str = ""


def scored(*rows: list[Label]) -> Predictions:
    """Rankings with falling scores."""
    return [[(label, round(0.9 - 0.1 * place, 1)) for place, label in enumerate(row)] for row in rows]


def uninformed(seed: int, n: int = 9, n_labels: int = 40) -> tuple[Truth, Predictions]:
    """Scores of one decimal that know nothing of the truth."""
    rng = np.random.default_rng(seed)
    names = [f"s{label:02}" for label in rng.permutation(n_labels)]
    truth = [[names[label] for label in rng.permutation(n_labels)[:2]] for _ in range(n)]
    tied = [rng.permutation(n_labels)[:7] for _ in range(n)]
    predicted = [[(names[label], round(float(rng.integers(7, 10)) / 10, 1)) for label in row] for row in tied]
    return truth, [
        row + [(own[0], row[0][1])] * (own[0] not in dict(row)) for row, own in zip(predicted, truth, strict=True)
    ]


NAMED = [(one, other) for one in BY_NAME for other in BY_NAME]
SOME = [("t.csv", "t.jsonl"), ("t.jsonl", "t.txt"), ("t.txt", "t.csv"), ("t.fasttext",) * 2, ("t.ranx.json", "t")]
NARROW = [pair for pair in NAMED if pair[0] != "wide.csv"]  # whose truth has a column for each label that there is

CASES = [
    Case("ICD-9: septicaemia and hearing loss", [["0389", "4019"], ["389"], ["25000"]],
         scored(["389", "0389"], ["0389", "389"], ["25000", "4019"]), NAMED),
    Case("ICD-9, of so many labels", [["0389", "4019"], ["389"], ["25000"]],
         scored(["389", "0389"], ["0389", "389"], ["25000", "4019"]), SOME, {"n_labels": 30_000}),
    Case("Dewey", [["007.1"], ["7.1"], ["250.00"]], scored(["7.1", "007.1"], ["7.1"], ["250.0", "250.00"]), NARROW),
    Case("products", [["00012"], ["12", "+12"], ["012"]], scored(["12"], ["+12", "00012"], ["012", "12"]), NARROW),
    Case("codes of whole numbers", [["389"], ["4019", "7"]], scored(["389", "7"], ["7", "25000"]), NARROW),
    Case("codes of whole numbers, of more labels than said", [["389"], ["4019"]], scored(["389"], ["7"]), NARROW,
         {"n_labels": 9}),
    Case("whole numbers below the number of labels", [["3"], ["4", "0"]], scored(["3", "1"], ["0", "4"]),
         [pair for pair in SOME if pair[0] != "t.jsonl" and pair[1] != "t.jsonl"], {"n_labels": 6}, "taken as ids"),
    Case("whole numbers said to be names", [["3"], ["4", "0"]], scored(["3", "1"], ["0", "4"]), NARROW,
         {"labels_are": "names"}),
    Case("ids", [[3], [4, 0], [1]], scored([3, 1], [0, 4], [2]),
         [(one, other) for one in BY_ID if one != "i.pred" for other in BY_ID],
         {"n_labels": WIDTH}),
    *(Case(f"ties, {seed}", *uninformed(seed), NARROW) for seed in range(3)),
]  # fmt: skip


def expected(case: Case, of_truth: set[Label]) -> dict[str, float]:
    found = {f"P@{k}": precision(case.truth, case.predicted, k) for k in (1, 2)}
    return found | {"macro-F1@2": macro_f1(case.truth, case.predicted, 2, of_truth)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_equal_a_loop(case, tmp_path):
    for at, (one, other) in enumerate(case.formats):
        folder = tmp_path / str(at)
        folder.mkdir()
        files = put(folder, "truth", one, case.truth, False), {"m": put(folder, "m", other, case.predicted, True)}
        found = reader.read(*files, k=100, **case.options)
        table = xc.State(2, ["P@1", "P@2", "macro-F1@2"]).update(found.truth, found.tops["m"]).compute()
        got = {f"{name}@{k}": value for name, k, value in table.itertuples(index=False)}
        n_labels = case.options.get("n_labels")
        labels = {*range(n_labels)} if n_labels else {label for row in case.truth for label in row}
        want = expected(case, {label for row in case.truth for label in row})
        want["macro-F1@2"] *= len({label for row in case.truth for label in row}) / len(labels)
        assert got == {name: pytest.approx(value) for name, value in want.items()}, (one, other)
        assert case.said in "\n".join(found.lines)


BESIDE = [(one, other) for one in BY_NAME if one != "wide.csv" for other in BY_ID]


@pytest.mark.parametrize(("one", "other"), BESIDE)
def test_names_beside_ids_are_refused_in_each_pair_of_doors(tmp_path, one, other):
    """With the list of names in the order of the ids both are read, and the value is right."""
    names = ["nb", "na", "nf", "nc", "ne", "nd"]
    truth, predicted = [["nb", "nd"], ["nf"]], scored([0, 5], [1, 2])
    by_id = [[names.index(label) for label in row] for row in truth]
    by_name = [[(names[label], score) for label, score in row] for row in predicted]
    pairs = [(put(tmp_path, "t", one, truth, False), put(tmp_path, "p", other, predicted, True))]
    if other != "i.pred":
        pairs.append((put(tmp_path, "u", other, by_id, False), put(tmp_path, "q", one, by_name, True)))
    for files in pairs:
        for more in ({}, {"n_labels": WIDTH}):
            with pytest.raises(XCError, match="--labels"):
                reader.read(files[0], {"m": files[1]}, **more)
        found = reader.read(files[0], {"m": files[1]}, label_names=names)
        assert xc.metrics.precision(found.truth, found.tops["m"], (1, 2)).tolist() == [0.5, 0.75]
    both = {"a": pairs[0][1], "b": put(tmp_path, "b", one, by_name, True)}
    with pytest.raises(XCError, match="--labels"):
        reader.read(None, both)
    with pytest.raises(XCError, match="--labels"):
        reader.read(pairs[0][0], {"b": both["b"]}, exclude=(np.array([0]), np.array([1])))
    if other != "i.pred":
        with pytest.raises(XCError, match="--labels"):
            reader.read(pairs[0][0], {"b": both["b"]}, train_truth=pairs[1][0])


@pytest.mark.parametrize("listed", [True, False])
def test_an_average_over_labels_does_not_change_with_what_another_model_makes_up(tmp_path, listed):
    truth = [["a", "b"], ["c"], ["a"], ["d"]]
    models = {"right": scored(["a", "b"], ["c"], ["a"], ["d"]), "wild": scored(["x", "b"], ["y", "z"], ["a"], ["w"])}
    files = {name: put(tmp_path, name, "t.jsonl", rows, True) for name, rows in models.items()}
    how = {"label_names": list("dcbae"), "unknown": "count"} if listed else {}
    counted = {*"abcde"} if listed else {*"abcd"}
    first = put(tmp_path, "truth", "t.csv", truth, False)
    for given in (files, {"right": files["right"]}, {"wild": files["wild"]}):
        found = reader.read(first, given, **how)
        for name, top in found.tops.items():
            value = xc.metrics.macro_f1(found.truth, top, 2)[0]
            assert value == pytest.approx(macro_f1(truth, models[name], 2, counted))
            table = xc.evaluate(found.truth, top, 2, metrics=["macro-F1", "coverage", "P"], confidence_level=None)
            assert table["value"][0] == value
            hit = {label for row, of in zip(models[name], truth, strict=True) for label, _ in row if label in of}
            assert table["value"][1] == pytest.approx(len(hit) / len(counted))
            assert math.isclose(table["value"][2], precision(truth, models[name], 2))


# ---------------------------------------------------------------- texts that are equal to a reader

SPELT = {
    name: (name, unicodedata.normalize("NFD", name))
    for name in ("Caf\u00e9 culture", "\u00c5ngstr\u00f6m", "\ud55c\uae00")
}
"""A name, and the same in other code points of Unicode."""
WRITTEN = {
    "apostrophe": ("Women's rights", "Women\u2019s rights"), "hyphen": ("machine-learning", "machine\u2011learning"),
    "dash": ("1914-1918", "1914\u20131918"), "soft hyphen": ("Bibliography", "Biblio\u00adgraphy"),
    "zero width": ("Law", "Law\u200b"), "no-break": ("Town halls", "Town\u00a0halls"), "HTML": ("R&D", "R&amp;D"),
    "quotes": ('"Left" parties', "\u201cLeft\u201d parties"), "full width": ("ABC", "\uff21BC"),
}  # fmt: skip
"""A name, and how a program or a person writes it."""


@pytest.mark.parametrize("how", [*SPELT, *WRITTEN])
@pytest.mark.parametrize("listed", [True, False])
def test_texts_that_are_equal_to_a_reader(tmp_path, how, listed):
    name, other = {**SPELT, **WRITTEN}[how]
    for turned in (False, True):
        of_truth, said = (other, name) if turned else (name, other)
        for file in sorted(BY_NAME.keys() - WORDS - {"wide.csv"}):
            truth = put(tmp_path, f"t{turned}", file, [[of_truth], ["other"]], False)
            models = {"m": put(tmp_path, f"m{turned}", file, scored([said], ["other"]), True)}
            given = {"label_names": [of_truth, "other"]} if listed else {}
            matched = {} if how in SPELT else {"match": "case"}
            found = reader.read(truth, models, **given, **matched)
            assert xc.metrics.precision(found.truth, found.tops["m"], 1)[0] == 1.0
            assert found.truth.shape == (2, 2)
            if how in SPELT:
                continue
            if listed:
                with pytest.raises(XCError, match="--match case") as refused:
                    reader.read(truth, models, **given)
                text = str(refused.value)
            else:
                text = "\n".join(reader.read(truth, models).lines)
            at = next(at for at, (a, b) in enumerate(zip(said + "\0", of_truth + "\0", strict=False)) if a != b)
            points = {f"U+{ord(one[at]):04X}" for one in (said, of_truth) if at < len(one)}
            assert how == "HTML" or all(point in text for point in points)
    assert how in SPELT or LabelNames((name, "other")).matching(other, "case") == name


def test_a_name_twice_in_a_list_is_named_with_both_lines(tmp_path):
    for at, (lines, again) in enumerate([("Cats\nDogs\nBirds\nDogs\n", (2, 4)), ("a\nDogs \nDogs\n", (2, 3))]):
        (tmp_path / f"{at}.txt").write_text(lines)
        names = read_label_names(tmp_path / f"{at}.txt")
        with pytest.raises(XCError, match=f"lines {again[0]} and {again[1]}"):
            reader.read(put(tmp_path, f"t{at}", "t.jsonl", [["Dogs"]], False), {}, label_names=names)
    (tmp_path / "empty.txt").write_text("Cats\nDogs\n\nFish\n")
    with pytest.warns(DataWarning, match="line 3"):
        assert len(read_label_names(tmp_path / "empty.txt")) == 4


# ---------------------------------------------------------------- ties at a cut-off are told unasked


def bfloat16(scores: np.ndarray) -> np.ndarray:
    return (scores.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


LOGITS = np.random.default_rng(3).normal(6.0, 1.0, (80, 12)).astype(np.float32)
SIGMOID = 1 / (1 + np.exp(-LOGITS))
TIED = {
    "float16": SIGMOID.astype(np.float16).astype(np.float32),
    "bfloat16": bfloat16(SIGMOID),
    "1 decimal": np.round(np.random.default_rng(4).random((80, 12)), 1).astype(np.float32),
    "2 decimals": np.round(np.random.default_rng(4).random((80, 12)) / 3, 2).astype(np.float32),
    "reach 1": 1 / (1 + np.exp(-6 * LOGITS)),
    "whole numbers": np.random.default_rng(5).integers(0, 4, (80, 12)).astype(np.float32),
}


@pytest.mark.parametrize("cause", TIED)
def test_ties_at_a_cut_off_are_told(cause):
    Y = (np.random.default_rng(1).random((80, 12)) < 0.3).astype(np.float32)
    top = xc.TopK.from_scores(TIED[cause], 12)
    bounds = xc.evaluate(Y, top, (1, 3), metrics=["P"], ties="bounds")  # held to all orders in test_ties.py
    columns = ["value", "expected", "lowest", "highest", "decided"]
    value, mean, least, most, decided = bounds.loc[bounds["decided"].idxmax(), columns]
    numbers = [f"{decided:g} of 80", f"{value - mean:+.6f}", cause]
    numbers += [f"{one:.6f}" for one in (value, mean, least, most)]
    tellers = (
        lambda: xc.evaluate(Y, top, (1, 3), metrics=["P"]),
        lambda: xc.evaluate(Y, {"m": top}, (1, 3), metrics=["P"], confidence_level=0.9),
        lambda: xc.compare(Y, {"m": top, "n": xc.TopK.from_scores(LOGITS, 12)}, ["P"], (1, 3)),
    )
    for tell in tellers:
        with pytest.warns(DataWarning) as told:
            tell()
        (said,) = (str(one.message) for one in told)
        assert [number for number in numbers if number not in said] == [], said


def test_what_is_no_tie_and_what_cannot_show_one_is_not_told():
    rng = np.random.default_rng(0)
    Y, scores = (rng.random((300, 12)) < 0.3).astype(np.float32), rng.random((300, 12)).astype(np.float32)
    few = scores.copy()
    few[:2, :2] = few[:2, :].max(axis=1, keepdims=True)  # two rows of 300
    ends = xc.TopK.from_scores(np.where(scores > 0.5, 1.0, scores), 3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for top in (xc.TopK.from_scores(scores, 12), xc.TopK.from_scores(few, 12), xc.TopK.from_scores(scores, 3)):
            xc.evaluate(Y, top, (1, 3), metrics=["P"])
    assert told == []
    with pytest.warns(DataWarning, match="last two of the 3 stored scores") as told:
        xc.evaluate(Y, ends, 3, metrics=["P"])
    n = int((np.sort(np.where(scores > 0.5, 1.0, scores), axis=1)[:, [-2, -3]] == 1).all(axis=1).sum())
    assert f"in {n} of 300" in str(told[0].message)


# ---------------------------------------------------------------- files of a folder, and what is not what it is taken for

FILES = {
    "lists": ("b.json", "[[[1, 0.5]], [[0, 0.9], [1, 0.2]]]"), "dictionary": ("b.json", '{"0": {"1": 0.5}, "1": {"0": 0.9}}'),
    "csv": ("b.tsv", "row\tlabel\tscore\n0\t1\t0.5\n1\t0\t0.9\n"), "wide": ("b.tsv", "id\t0\t1\nx\t0.1\t0.5\ny\t0.9\t0.2\n"),
    "jsonl": ("b.jsonl", '{"labels": [1]}\n{"labels": [0]}\n'), "trec": ("b.txt", "0 Q0 1 1 0.5 t\n1 Q0 0 1 0.9 t\n"),
}  # fmt: skip


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("taken", FILES)
def test_a_folder_of_predictions_of_any_format(tmp_path, taken, beside):
    name, text = FILES[taken]
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / name).write_text(text)
    if beside:
        xc.TopK.from_ids([[1], [1]], n_labels=2).save(tmp_path / "p" / "a.npz")
    np.save(tmp_path / "t.npy", np.array([[0, 1], [1, 0]]))
    found = reader.read(tmp_path / "t.npy", [tmp_path / "p"])
    values = {model: xc.metrics.precision(found.truth, top, 1)[0] for model, top in found.tops.items()}
    assert values == ({"a": 0.5} if beside else {}) | {"b": 1.0}
    assert f"{name} as {taken}" in found.lines[0]
    assert reader.read(tmp_path / "t.npy", [tmp_path / "p" / name]).lines[0].endswith(f"{name} as {taken}")


def test_links_and_files_with_the_same_bytes_are_named(tmp_path):
    rankings = {"ann": [[0, 1], [1, 2]], "bob": [[0, 1], [1, 2]], "cem": [[2, 1], [1, 0]]}
    for name, ids in rankings.items():
        xc.TopK.from_ids(ids, n_labels=3).save(tmp_path / f"{name}.npz")
    (tmp_path / "dia.npz").symlink_to("cem.npz")
    (tmp_path / "eve.npz").write_bytes((tmp_path / "cem.npz").read_bytes()[::-1])  # as long, and damaged
    said = reader._said_of_files(formats.model_files(tmp_path))
    assert said[:1] == ["link: dia.npz is one, to cem.npz"]
    assert [line for line in said[1:] if line.startswith("same file: ")] == [
        "same file: ann.npz and bob.npz have the same bytes", "same file: cem.npz and dia.npz have the same bytes"
    ]  # fmt: skip
    (tmp_path / "eve.npz").unlink()
    assert {*said} <= {*reader.read(csr_matrix(np.eye(2, 3)), [tmp_path]).lines}


@pytest.mark.parametrize("tags", ["AB", "ABA", "AABB"])
def test_two_runs_in_one_file_are_refused(tmp_path, tags):
    (tmp_path / "p.run").write_text("".join(f"{row} Q0 1 1 0.5 {tag}\n" for row, tag in enumerate(tags)))
    with pytest.raises(XCError, match="two runs, 'A' and 'B'"):
        xc.formats.read_predictions(tmp_path / "p.run", n_labels=3)


@pytest.mark.parametrize("most", [1.00001, 1.00002, 1.0001])
def test_a_probability_that_is_printed_a_little_above_1_is_1(tmp_path, most):
    for file in ("p.fasttext", "p.csv", "p.npy"):
        rows = [[(0, most), (1, 0.25)], [(1, 1.0), (0, 0.5)]]
        if file == "p.npy":
            np.save(tmp_path / file, [[most, 0.25], [0.5, 1.0]])
        else:
            (fasttext if file == "p.fasttext" else long(","))(tmp_path / file, rows, True)
        with pytest.warns(DataWarning, match="taken for 1"):
            top = xc.formats.read_predictions(tmp_path / file, n_labels=2, n_rows=2)
        assert top.scores.tolist() == [[1.0, 0.25], [1.0, 0.5]]
    with pytest.warns(DataWarning, match="taken for 1"):
        top = xc.TopK.from_pairs(rows, n_labels=2)
    assert xc.evaluate([[0], [0]], top, 2, metrics=["ECE"])["value"][0] == (2 * 0.5 + 0.25 + 0.5) / 4
    over = xc.TopK.from_pairs([[(0, 1.01)]], n_labels=2)
    assert over.scores[0, 0] == np.float32(1.01)


@pytest.mark.parametrize("file", ["y.npy", "y.npz", "y.txt"])
def test_a_truth_of_fractions_is_named(tmp_path, file):
    scores = np.random.default_rng(0).random((20, 6)).astype(np.float32)
    if file == "y.npy":
        np.save(tmp_path / file, scores)
    elif file == "y.npz":
        save_npz(tmp_path / file, csr_matrix(scores))
    else:
        xc.formats.write_features(tmp_path / file, csr_matrix(scores), "xc")
    with pytest.warns(DataWarning, match="exchanged"):
        xc.formats.read_truth(tmp_path / file)
    with pytest.warns(DataWarning, match="exchanged"):
        xc.evaluate(scores, xc.TopK.from_scores((scores > 0.5).astype(np.float32), 5), metrics=["P"])


def test_signs_do_not_cry_wolf_where_each_row_has_one_label():
    """Below chance any other reading is above it; one prediction a row is not held to five popular labels."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        labels = rng.integers(0, 10, 600)
        Y = np.eye(10)[labels]
        wrong = (labels + rng.integers(1, 10, 600)) % 10  # never right
        guess = np.where(rng.random(600) < 0.5, labels, wrong)
        for ids in (wrong, guess):
            top = xc.TopK.from_ids(np.column_stack([ids, *[np.full(600, -1)] * 4]), [[1.0] * 5] * 600, n_labels=10)
            kinds = {one.kind for one in xc.diagnose.check(Y, top)}
            assert not kinds & {"exchanged", "rows moved", "labels renumbered"}, seed
            assert "below popularity" not in kinds or ids is wrong


# ---------------------------------------------------------------- lists of 0 and 1, columns of lists, tables of other tools

HOT = [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 0, 0]]
IDS = [[0, 3], [1], [2], [0, 1]]
ANSWERS: Predictions = [[(0, 0.9), (3, 0.1)], [(1, 0.9), (2, 0.1)], [(1, 0.9), (2, 0.1)], [(0, 0.9), (2, 0.1)]]


@pytest.mark.parametrize("kind", [int, float, bool])
@pytest.mark.parametrize("file", [file for file in BY_ID if file in ("i.jsonl", "i.json", "i.parquet")])
def test_lists_of_0_and_1_are_read_as_such(tmp_path, file, kind):
    """As transformers' data sets keep a truth: 0 and 1 are no ids there, whatever --unknown says."""
    truth = put(tmp_path, "hot", file, [[kind(value) for value in row] for row in HOT], False)
    answers = put(tmp_path, "p", "i.json", ANSWERS, True)
    for more in ({}, {"n_labels": 4}, {"unknown": "drop", "n_labels": 4}, {"unknown": "count", "n_labels": 4}):
        found = reader.read(truth, {"m": answers}, **more)
        assert xc.metrics.precision(found.truth, found.tops["m"], (1, 2)).tolist() == [0.75, 0.625]
    if file != "i.parquet":  # which has no ranking without scores
        with pytest.raises(XCError, match="zeros and ones"):
            xc.formats.read_predictions(truth, n_labels=4)
    two = put(tmp_path, "two", file, [[kind(0), kind(1)], [kind(1), kind(0)]], False)
    if kind is int:
        with pytest.raises(XCError, match="n-labels"):
            xc.formats.read_truth(two)
        assert xc.formats.read_truth(two, n_labels=5).sum() == 4
    else:
        assert xc.formats.read_truth(two).nonzero()[1].tolist() == [1, 0]
    odd = put(
        tmp_path, "odd", file, [[kind(value) for value in row] for row in HOT * 300] + [[kind(1), kind(0)]], False
    )
    with pytest.raises(XCError, match="0 or 1, as in the first"):
        xc.formats.read_truth(odd)


@pytest.mark.parametrize(
    "rows", [IDS, [np.array(row) for row in HOT], [{*row} for row in IDS], [np.array(row) for row in IDS]]
)
def test_a_column_of_lists_is_taken_as_lists_are(rows):
    top = xc.TopK.from_pairs(ANSWERS, n_labels=4)
    column = pd.Series(rows)
    objects = np.empty(4, object)
    objects[:] = rows
    for given in (rows, column, objects, pd.DataFrame({"y": column})["y"], column.set_axis(list("abcd"))):
        assert xc.evaluate(given, top, (1, 2), metrics=["P"])["value"].tolist() == [0.75, 0.625]
    with pytest.raises(XCError, match="sort_index"):
        xc.evaluate(column.set_axis([1, 0, 2, 3]), top, metrics=["P"])


def test_a_wide_parquet_is_read_as_its_csv_is_and_ranxs_columns_are(tmp_path):
    pytest.importorskip("pyarrow")
    Y = pd.DataFrame(HOT, columns=list("abcd"), index=[f"r{row}" for row in range(4)])
    scores = pd.DataFrame(dense(ANSWERS, True, 4), columns=list("abcd"), index=Y.index).replace(-np.inf, np.nan)
    for table, name in ((Y, "t"), (scores[["c", "a", "d", "b"]], "p")):
        table.to_parquet(tmp_path / f"{name}.parquet")
        table.to_csv(tmp_path / f"{name}.csv")
        table.reset_index(drop=True).to_parquet(tmp_path / f"{name}-bare.parquet")
    bare = ("t-bare.parquet", "p-bare.parquet")
    for one, other in (("t.parquet", "p.parquet"), ("t.csv", "p.parquet"), ("t.parquet", "p.csv"), bare):
        found = reader.read(tmp_path / one, {"m": tmp_path / other})
        assert found.truth.shape == (4, 4)
        assert xc.metrics.precision(found.truth, found.tops["m"], (1, 2)).tolist() == [0.75, 0.625]
    pairs = [(f"q{row}", f"d{label}", score) for row, labels in enumerate(ANSWERS) for label, score in labels]
    pd.DataFrame(pairs, columns=["q_id", "doc_id", "score"]).to_parquet(tmp_path / "run.parquet")
    pairs = [(f"q{row}", f"d{label}", value) for row, labels in enumerate(HOT) for label, value in enumerate(labels)]
    pd.DataFrame(pairs, columns=["q_id", "doc_id", "score"]).to_parquet(tmp_path / "qrels.parquet")
    found = reader.read(tmp_path / "qrels.parquet", {"m": tmp_path / "run.parquet"})
    assert xc.metrics.precision(found.truth, found.tops["m"], (1, 2)).tolist() == [0.75, 0.625]


# ---------------------------------------------------------------- what a language model's program writes

ROWS = {"d0": ["Law", "Tax"], "d1": ["Glass, flat"], "d2": []}


def of_lines(answer: Callable[[list[str]], object], key: str = "labels") -> str:
    return "".join(json.dumps({"id": row, key: answer(labels)}) + "\n" for row, labels in ROWS.items())


def batch(labels: list[str]) -> dict:
    content = "\n".join(f"- {one}" for one in labels)
    return {"status_code": 200, "body": {"choices": [{"message": {"content": content}}]}}


def objects(name: str, score: str, value: Callable[[int], object]) -> Callable:
    return lambda labels: [{name: one, score: value(at)} for at, one in enumerate(labels)]


CELLS = "".join(f'{row},"{labels!r}"\n' for row, labels in ROWS.items())
BATCH = [{"custom_id": row, "response": batch(labels)} for row, labels in ROWS.items()]
SHAPES = {
    "null": (".jsonl", of_lines(lambda labels: labels or None), "without an answer"),
    "an empty text": (".jsonl", of_lines(lambda labels: labels or ""), "without an answer"),
    "answer": (".jsonl", of_lines(list, "answer"), ""),
    "predictions": (".jsonl", of_lines(list, "predictions"), ""),
    "tags": (".jsonl", of_lines(list, "tags"), ""),
    "a semicolon": (".jsonl", of_lines("; ".join), "split"),
    "lines": (".jsonl", of_lines("\n".join), "split"),
    "a bar": (".jsonl", of_lines(" | ".join), "split"),
    "with a confidence": (".jsonl", of_lines(objects("name", "confidence", lambda at: 0.9 - at / 4)), "a score"),
    "a score as text": (".jsonl", of_lines(objects("label", "score", lambda at: f"{9 - at}e-1")), "texts"),
    "percent": (".jsonl", of_lines(objects("tag", "p", lambda at: f"{90 - at} %")), "percent"),
    "a probability each": (".jsonl", of_lines(lambda row: {one: 0.9 - at / 4 for at, one in enumerate(row)}), "each"),
    "a fence": (".jsonl", of_lines(lambda labels: f"```json\n{json.dumps(labels)}\n```"), "fence"),
    "JSON in a text": (".jsonl", of_lines(json.dumps), "fence"),
    "Python in a text": (".jsonl", of_lines(repr), "fence"),
    "numbered": (".jsonl", of_lines(lambda row: "\n".join(f"{i}. {one}" for i, one in enumerate(row, 1))), "bullet"),
    "bullets": (".jsonl", of_lines(lambda labels: "\n".join(f"* {one}" for one in labels)), "bullet"),
    "bold": (".jsonl", of_lines(lambda labels: [f"**{one}**" for one in labels]), "bold"),
    "quoted, with a full stop": (".jsonl", of_lines(lambda labels: [f'"{one}".' for one in labels]), "bold"),
    "numbers in a list": (".jsonl", of_lines(lambda row: [f"{i}) {one}" for i, one in enumerate(row, 1)]), "bold"),
    "an array of records": (".json", json.dumps([{"id": row, "labels": labels} for row, labels in ROWS.items()]), ""),
    "ids to lists": (".json", json.dumps(ROWS, indent=1), ""),
    "ids to lists in a line": (".json", json.dumps(ROWS), ""),
    "a batch interface": (".jsonl", "".join(json.dumps(line) + "\n" for line in BATCH), "bullet"),
    "a cell for a row": (".csv", 'id,labels\nd0,Law;Tax\nd1,"Glass, flat"\nd2,\n', "split"),
    "a cell with a Python list": (".csv", f"id,labels\n{CELLS}", "fence"),
    "a cell with a #": (".csv", 'id,label\nd0,Law#Tax\nd1,"Glass, flat"\nd2,\n', "split"),
    "a column for each place": (".csv", 'id,pred_1,pred_2\nd0,Law,Tax\nd1,"Glass, flat",\nd2,,\n', ""),
}
"""What is in the file, and what is said of it."""


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_language_models_program_writes(tmp_path, shape, listed):
    suffix, text, said = SHAPES[shape]
    glass = "Glass, flat" if listed else "Glass"  # a comma may be between two names where there is no list
    (tmp_path / f"p{suffix}").write_text(text.replace("Glass, flat", glass))
    names = ["Tax", glass, "Law"]
    truth = (("d0", ["Tax", "Law"]), ("d1", [glass]), ("d2", ["Law"]))
    text = "".join(json.dumps({"id": row, "labels": labels}) + "\n" for row, labels in truth)
    (tmp_path / "t.jsonl").write_text(text)
    given = {"label_names": names} if listed else {}
    found = reader.read(tmp_path / "t.jsonl", {"m": tmp_path / f"p{suffix}"}, **given)
    told = found.label_names.names
    assert [[told[label] for label in row if label >= 0] for row in found.tops["m"].ids] == [
        ["Law", "Tax"], [glass], []
    ]  # fmt: skip
    assert any(said in line for line in found.lines if line.startswith("answers:")) == bool(said)


@pytest.mark.parametrize(
    "answer",
    ['"Law, Tax"', '[{"name": "Law"}, {"name": "Tax", "score": 1}]', '[{"name": "Law", "score": "high"}]', "[1.5]",
     '{"Law": [1]}', '[{"title": "Law"}]', "3", "true"],
)  # fmt: skip
def test_answers_that_may_be_meant_in_two_ways_are_refused(tmp_path, answer):
    (tmp_path / "p.jsonl").write_text(f'{{"labels": ["Law"]}}\n{{"labels": {answer}}}\n')
    with pytest.raises(XCError, match="line 2"):
        xc.formats.read_predictions(tmp_path / "p.jsonl", label_names=["Law", "Tax", "Glass, flat"])


# ---------------------------------------------------------------- tables as a spreadsheet, a paper and pandas save them

RESULTS = {
    "a.csv": "Method,P@1,P@3,nDCG@1\nA,90.1,80,91.1\n",
    "semicolons.csv": "Method;P@1;P@3;nDCG@1\nA;90.1;80;91.1\n",
    "tabs.tsv": "Model\tP@1\tP@3\tnDCG@1\nA\t90.1\t80\t91.1\n",
    "spelt.csv": "method,P@1 (%),Prec@3,nDCG1\nA,90.1 %,80,91.1\nB,n/a,80,–\n",
    "errors.csv": "method,P1,P@3,nDCG@1\nA,90.1 ± 0.2,80 +/- 1,91.1\n",
    "a.md": "| Method | P@1 | P@3 | nDCG@1 |\n|---|--:|:-:|--:|\n| **A** | **90.1** | 80 | 91.1 |\n",
    "a.tex": "\\begin{tabular}{lrrr}\n\\toprule\nMethod & P@1 & P@3 & nDCG@1 \\\\\n\\midrule\n% best\nA & "
    "\\textbf{90.1} & $80 \\pm 1$ & 91.1 \\\\\n\\bottomrule\n\\end{tabular}\n",
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_table_of_results_is_read_as_it_is_saved(tmp_path, name):
    """P@1 and nDCG@1 are one average: the one fault of each, in the row of A."""
    (tmp_path / name).write_text(RESULTS[name])
    found = audit_results(tmp_path / name)
    told = found[["method", "column", "printed", "expected"]].replace(r"(\d) %", r"\1", regex=True).to_numpy().tolist()
    assert told == [["A", "N@1", "91.1", "90.1"]]
    assert found.attrs["not checked"] == []


@pytest.mark.parametrize("cell", ["90,1", "9,05"])
def test_a_comma_for_a_point_is_named(tmp_path, cell):
    (tmp_path / "a.csv").write_text(f"method;P@1;nDCG@1\nA;{cell};90.1\n")
    with pytest.raises(XCError, match="line 2: found P@1"):
        audit_results(tmp_path / "a.csv")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_ids_that_became_fractions_are_named(tmp_path, separator):
    (tmp_path / "t.csv").write_text(f"row{separator}label\n0{separator}12\n1{separator}3\n")
    lines = ("row,label,score", "0,12.0,1", "1,3.0,1")
    (tmp_path / "p.csv").write_text("".join(line.replace(",", separator) + "\n" for line in lines))
    with pytest.raises(XCError, match=r"line 2: found label '12.0'"):
        reader.read(tmp_path / "t.csv", {"m": tmp_path / "p.csv"})
    names = reader.read(tmp_path / "t.csv", {"m": tmp_path / "p.csv"}, labels_are="names")
    assert xc.metrics.precision(names.truth, names.tops["m"], 1)[0] == 0.0


@pytest.mark.parametrize("heads", [("query-id 0 doc relevance", "qid Q0 docno rank score tag"), ("q i label rel", "")])
def test_qrels_and_runs_with_a_header_line(tmp_path, heads):
    (tmp_path / "t.txt").write_text("".join(line + "\n" for line in (heads[0], "q1 0 a 1", "q2 0 b 1")))
    lines = (heads[1], "q1 Q0 a 1 0.9 t", "q2 Q0 a 1 0.8 t")
    (tmp_path / "p.txt").write_text("".join(line + "\n" for line in lines if line))
    found = reader.read(tmp_path / "t.txt", {"m": tmp_path / "p.txt"})
    assert xc.metrics.precision(found.truth, found.tops["m"], 1)[0] == 0.5
    assert found.row_ids == ("q1", "q2")


@pytest.mark.parametrize("run", ["q1 Q0 d3 1 0.9 me\nq2 Q0 d3 1 0.9 me\nq2 Q0 d2 2 0.5 me\n",
                                 "query-id\tcorpus-id\tscore\nq1\td3\t0.9\nq2\td3\t0.9\nq2\td2\t0.5\n"])  # fmt: skip
def test_beirs_scores_are_relevance_in_a_truth_and_scores_in_predictions(tmp_path, run):
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td3\t1\nq2\td1\t2\nq2\td2\t1\nq2\td3\t0\n")
    (tmp_path / "run").write_text(run)
    found = reader.read(tmp_path / "qrels.tsv", {"m": tmp_path / "run"})
    assert found.truth.nnz == 3
    assert xc.metrics.recall(found.truth, found.tops["m"], (1, 2)).tolist() == [0.5, 0.75]


@pytest.mark.parametrize(
    "cells", ["id,labels\n0,a|b\n1,c\n", "id;labels\n0;a|b\n1;c\n", "doc_id\tlabels\n0\t['a', 'b']\n1\t['c']\n"]
)
def test_a_cell_with_all_labels_of_a_row_is_a_truth_and_a_ranking(tmp_path, cells):
    for name in ("t.csv", "p.csv"):
        (tmp_path / name).write_text(cells)
    found = reader.read(tmp_path / "t.csv", {"m": tmp_path / "p.csv"})
    assert found.truth.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert found.tops["m"].ids.tolist() == [[0, 1], [2, -1]]


def test_a_models_config_is_a_list_of_names(tmp_path):
    for config in ({"label2id": {"b": 1, "a": 0}}, {"id2label": {"1": "b", "0": "a"}, "model_type": "bert"}):
        (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 3, **config}))
        assert read_label_names(tmp_path / "config.json").names == ("a", "b")


# ---------------------------------------------------------------- numbers and rows that a program made otherwise


def test_a_printed_number_that_is_another_definition_is_explained():
    rng = np.random.default_rng(6)
    Y = (rng.random((44, 9)) < 0.3).astype(np.float32)
    Y[:, 0] = 1
    scores = Y + rng.normal(0, 1.2, Y.shape)
    top = xc.TopK.from_scores(scores, 9)
    order = np.argsort(-scores, axis=1)
    hits = np.take_along_axis(Y, order, axis=1)
    weights = [(row[: at + 1].sum() / (at + 1)) for row in hits for at in np.flatnonzero(row)]
    batches = [
        macro_f1([np.flatnonzero(row).tolist() for row in Y[at : at + 16]],
                 [list(zip(range(9), map(float, row), strict=True)) for row in scores[at : at + 16]], 3, {*range(9)})
        for at in range(0, 44, 16)
    ]  # fmt: skip
    for metric, k, value, name in (
        ("R", 3, (hits[:, :3].sum(axis=1) > 0).mean(), "hit rate"),
        ("macro-F1", 3, np.mean(batches), "macro-F1 (mean over batches)"),
        ("LRAP", 9, np.mean(weights), "LRAP (label-weighted)"),
    ):
        found = xc.published.explain(f"{100 * value:.5f}", Y, top, metric=f"{metric}@{k}")
        assert name in set(found.loc[found["agrees"] != "", "definition"]), metric


@pytest.mark.parametrize("parts", [1, 3, 4])
def test_rows_that_a_sampler_repeats_are_named(parts):
    rng = np.random.default_rng(2)
    n = 200 + parts // 4  # a number that the parts do not divide
    more = 2 if parts == 1 else -n % parts
    Y = (rng.random((n, 12)) < 0.25).astype(np.float32)
    scores = (Y + rng.normal(0, 0.5, Y.shape)).astype(np.float32)
    filled = np.concatenate([scores, scores[:more]])
    gathered = np.concatenate([filled[part::parts] for part in range(parts)])
    [finding] = [one for one in xc.diagnose.check(Y, xc.TopK.from_scores(gathered, 5)) if one.kind == "shape"]
    assert (finding.evidence["more"], finding.evidence["parts"]) == (more, parts)
    if parts > 1:
        moved = [one for one in xc.diagnose.check(Y, xc.TopK.from_scores(gathered[:n], 5)) if one.kind == "rows moved"]
        assert [one.evidence["step"] for one in moved] == [f"{parts} parts"]
