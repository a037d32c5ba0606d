"""What strangers bring, kind by kind: each input with its right value, worked out by hand or by a loop."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, save_npz

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.__main__ import main
from xcrepro.core.data.names import read_label_names
from xcrepro.tools import formats

# ---------------------------------------------------------------- values by their meaning

PAIRS = [
    ("TRUE", "FALSE"),
    ("true", "false"),
    ("Yes", "No"),
    ("t", "f"),
    ("present", "absent"),
    ("1", "0"),
    ("'1'", "'0'"),
]


def arff(path: Path, yes: str, no: str, values: str, sparse: bool = False) -> Path:
    rows = [f"{{0 0.5,1 {yes},2 {no}}}", f"{{0 1,1 {no},2 {no}}}"] if sparse else [f"0.5,{yes},{no}", f"1,{no},{no}"]
    head = f"@relation 'x: -C -2'\n@attribute w numeric\n@attribute a {values}\n@attribute b {values}\n@data\n"
    path.write_text(head + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("yes", "no"), PAIRS)
def test_nominal_labels_are_read_by_their_meaning(tmp_path, yes, no, turned, sparse):
    values = "{%s,%s}" % ((no, yes) if turned else (yes, no))
    Y = formats.read_truth(arff(tmp_path / "x.arff", yes, no, values, sparse))
    assert Y.toarray().tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("values", ["{red,blue}", "{yes,true}", "{maybe,yes}", "{a,b,c}"])
def test_labels_that_say_neither_yes_nor_no_are_refused_and_features_are_not(tmp_path, values):
    first, second = values[1:-1].split(",")[:2]
    with damaged("x.arff"):
        formats.read_truth(arff(tmp_path / "x.arff", first, second, values))
    path = tmp_path / "y.arff"
    path.write_text(f"@relation 'x: -C -1'\n@attribute a {values}\n@attribute b {{0,1}}\n@data\n{second},1\n")
    assert formats.read_features(path).shape == (1, 1)


@pytest.mark.parametrize("values", [[True, False, True], [1, 0, 1], [2.0, 0.0, 0.5]])
def test_a_parquet_column_of_relevance_counts(tmp_path, values):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"row": [0, 0, 1], "label": [0, 1, 1], "relevance": values}), tmp_path / "q.parquet")
    assert formats.read_truth(tmp_path / "q.parquet").toarray().tolist() == [[1, 0], [0, 1]]


def test_logical_matrices(tmp_path):
    Y = np.array([[True, False], [False, True]])
    np.save(tmp_path / "Y.npy", Y)
    save_npz(tmp_path / "Y.npz", csr_matrix(Y))
    for name in ("Y.npy", "Y.npz"):
        assert formats.read_truth(tmp_path / name).toarray().tolist() == [[1, 0], [0, 1]]
    io = pytest.importorskip("scipy.io")
    io.savemat(tmp_path / "Y.mat", {"Y": Y})
    assert formats.read_truth(tmp_path / "Y.mat").toarray().tolist() == [[1, 0], [0, 1]]


# ---------------------------------------------------------------- quotes in names


def test_a_guarded_quote_in_a_bare_name(tmp_path):
    """As Mulan's delicious-test.arff and its XML file spell it."""
    (tmp_path / "d.arff").write_text(
        "@relation d\n@attribute w numeric\n@attribute m\\'usica {0,1}\n@attribute dise\\~no {0,1}\n@data\n{0 1,1 1}\n{2 1}\n"
    )
    (tmp_path / "d.xml").write_text('<labels><label name="dise\\~no"/><label name="m\\\'usica"/></labels>')
    assert formats.read_truth(tmp_path / "d.arff").toarray().tolist() == [[0, 1], [1, 0]]
    (tmp_path / "d.xml").write_text('<labels><label name="dise\\~no"/><label name="m\'usica"/></labels>')
    assert formats.read_truth(tmp_path / "d.arff").toarray().tolist() == [[0, 1], [1, 0]]


# ---------------------------------------------------------------- containers that know more than their numbers

TRUTH = pd.DataFrame([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 1]], columns=list("abcd"))
SCORES = pd.DataFrame([[0.9, 0.3, 0.6, 0.1], [0.2, 0.8, 0.3, 0.1], [0.1, 0.4, 0.7, 0.6]], columns=list("abcd"))


def p1(Y, scores) -> float:
    return float(xc.metrics.precision(Y, xc.TopK.from_scores(scores, 2), 1)[0])


def test_tables_whose_names_are_in_one_order_are_taken():
    assert p1(TRUTH, SCORES) == p1(TRUTH.to_numpy(), SCORES) == p1(TRUTH, SCORES.to_numpy()) == 1.0
    assert p1(TRUTH, SCORES.rename(columns=lambda name: f"p_{name}")) == 1.0  # names that say nothing of each other
    moved = SCORES.set_axis([7, 2, 9])
    assert p1(TRUTH, moved) == 1.0  # a truth whose rows were never named
    assert p1(TRUTH.set_axis([7, 2, 9]), moved) == 1.0


@pytest.mark.parametrize(
    "scores",
    [
        SCORES[["b", "a", "d", "c"]],
        SCORES[["a", "b", "d", "c"]],
        SCORES.rename(columns={"a": "b", "b": "c", "c": "d", "d": "e"}),
        SCORES.loc[[2, 0, 1]],
        SCORES.set_axis([0, 2, 1]),
    ],
)
def test_tables_whose_names_are_in_another_order_are_refused(scores):
    with refused("top"):
        p1(TRUTH, scores)
    with refused("top"):
        xc.evaluate(TRUTH, {"one": xc.TopK.from_scores(scores, 2).head(1)}, 1, metrics="P", confidence_level=None)


def test_some_of_the_rows_keep_their_names():
    top, named = xc.TopK.from_scores(SCORES.set_axis(list("xyz")), 2), TRUTH.set_axis(list("xyz"))
    assert xc.metrics.precision(named.iloc[1:], top.rows(slice(1, 3)), 1)[0] == 1.0
    assert xc.metrics.precision(named.iloc[[0, 2]], top.rows(np.array([True, False, True])), 1)[0] == 1.0
    with refused("top"):
        xc.metrics.precision(named.iloc[[2, 0]], top.rows([0, 2]), 1)


def test_rows_that_both_name_must_be_in_one_order():
    named = TRUTH.set_axis(["x", "y", "z"])
    assert p1(named, SCORES.set_axis(["x", "y", "z"])) == 1.0
    with refused("top"):
        p1(named, SCORES.set_axis(["y", "x", "z"]))


def test_a_column_twice_in_a_table_is_refused():
    with refused("scores"):
        xc.TopK.from_scores(SCORES.set_axis(list("abcc"), axis=1), 2)
    with refused("Y"):
        p1(TRUTH.set_axis(list("abcc"), axis=1), SCORES)


def test_masked_values_are_refused_and_masks_without_any_taken():
    scores = np.ma.masked_less(SCORES.to_numpy(), 0.15)
    with refused("scores"):
        xc.TopK.from_scores(scores, 2)
    assert p1(TRUTH, scores.filled(-np.inf)) == 1.0
    assert p1(TRUTH, np.ma.masked_less(SCORES.to_numpy(), 0.0)) == 1.0
    with refused("Y"):
        p1(np.ma.masked_equal(TRUTH.to_numpy(), 0), SCORES)


# ---------------------------------------------------------------- scikit-learn's list of arrays


def test_probabilities_of_several_outputs_are_taken(tmp_path):
    scores = np.array([[0.9, 0.3, 0.6], [0.2, 0.8, 0.3]])
    proba = [np.column_stack([1 - scores[:, label], scores[:, label]]) for label in range(3)]
    expected = [[0, 2], [1, 2]]
    assert xc.TopK.from_scores(proba, 2).ids.tolist() == expected
    assert xc.TopK.from_scores(np.array(proba), 2).ids.tolist() == expected
    np.save(tmp_path / "p.npy", np.array(proba))
    assert formats.read_predictions(tmp_path / "p.npy", k=2).ids.tolist() == expected
    with refused("scores"):
        xc.TopK.from_scores([*proba[:2], proba[2][:, :1]], 2)  # a label of one class
    with refused("scores"):
        xc.TopK.from_scores([one * 2 for one in proba], 2)
    with refused("scores"):  # pairs of label and score, which from_pairs takes
        xc.TopK.from_scores([[(0, 0.5), (1, 0.2)], [(1, 0.4), (2, 0.1)]], 2)


# ---------------------------------------------------------------- one door


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def value(capsys, argv: str) -> tuple[dict[str, float], str]:
    """What `evaluate` prints, and what it says."""
    assert main(["evaluate", *argv.split(), "--csv"]) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    rows = [line.split(",") for line in out.splitlines()[1:]]
    return {f"{metric}@{k}": float(number) for metric, k, number in rows}, err


def written(**contents) -> None:
    """Files such as ``q.txt``, of the argument ``q_txt``: a text, or an array for NumPy."""
    for name, content in contents.items():
        path = Path(name.replace("_", "."))
        path.write_text(content) if isinstance(content, str) else np.save(path, content)


def json_lines(*records: dict) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


QRELS, RUN, NAMES = "q0 0 a 1\nq1 0 b 1\nq2 0 c 1\n", "q0 Q0 a 1 0.9 t\nq1 Q0 c 1 0.8 t\nq2 Q0 c 1 0.7 t\n", "a\nb\nc\n"


def test_the_same_files_in_every_command(here, capsys):
    """P@1 is 2/3 in each; a message names options that the command has."""
    written(q_txt=QRELS, r_run=RUN, n_txt=NAMES)
    names = ("--labels", "n.txt")
    given = ("q.txt", "r.run", *names)
    assert value(capsys, f"{' '.join(given)} -k 1 --metrics P")[0] == pytest.approx({"P@1": 2 / 3})
    assert main(["explain", "0.666667", *given, "-k", "1"]) == 0
    assert "P@1" in capsys.readouterr().out
    assert main(["judge", "sample", *given, "--out", "s.csv", "-n", "3"]) == 0
    assert {line.split(",")[2] for line in Path("s.csv").read_text().splitlines()[1:]} == {"a", "c"}
    assert main(["fingerprint", "q.txt", *names]) == 0
    assert main(["write-blocks", *given, "--out", "blocks"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "--blocks", "blocks", "-k", "1", "--metrics", "P", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("P,1,0.6666")
    assert main(["convert", "q.txt", "t.npz", *names, "--n-rows", "3"]) == 2  # rows by name need a list
    for command in ("evaluate", "explain", "judge", "fingerprint", "write-blocks", "report"):
        with pytest.raises(SystemExit):
            main([command, *({"judge": ["sample"]}.get(command, [])), "--help"])
        out = capsys.readouterr().out
        assert all(option in out for option in ("--labels", "--rows", "--n-labels", "--truth-from", "--unknown")), (
            command
        )


def test_a_report_reads_what_evaluate_reads(here):
    from xcrepro.tools.reports.given import collect

    written(q_txt=QRELS, r_run=RUN, n_txt=NAMES)
    given = collect("q.txt", ["r.run"], label_names="n.txt")
    assert (given.label_names, given.texts) == (("a", "b", "c"), ("q0", "q1", "q2"))
    assert xc.metrics.precision(given.truth, given.first("r"), 1)[0] == pytest.approx(2 / 3)
    given = collect("q.txt", ["r.run"])
    assert given.label_names == ("a", "b", "c")
    assert any("no list of names" in line for line in given.said)


def annif(folder: str, json: bool) -> None:
    Path(folder).mkdir()
    subjects = {"d0": ["a", "b"], "d1": ["b"]}
    for name, (first, second) in {"d0": ("a", "c"), "d1": ("c", "b")}.items():
        Path(folder, f"{name}.annif").write_text(f"<http://{first}>\t{first}\t0.9\n<http://{second}>\t{second}\t0.3\n")
        if json:
            text = ", ".join(f'{{"uri": "http://{one}"}}' for one in subjects[name])
            Path(folder, f"{name}.json").write_text(f'{{"text": "x", "subjects": [{text}]}}')
        else:
            Path(folder, f"{name}.txt").write_text("x")
            Path(folder, f"{name}.key").write_text("\n".join(subjects[name]))


def test_documents_of_both_kinds_and_subjects_at_two_places(here, capsys):
    annif("docs", True)
    Path("docs/d2.txt").write_text("x")
    Path("docs/d2.tsv").write_text("<http://c>\tc\n")
    written(v_tsv="".join(f"<http://{one}>\t{one}\n" for one in "abc"))
    assert value(capsys, "docs docs --labels v.tsv -k 1 --metrics P")[0] == pytest.approx({"P@1": 1 / 3})
    Path("docs/d1.key").write_text("a\n")
    with damaged("d1.json"):
        formats.read_truth("docs", label_names=read_label_names("v.tsv"))
    Path("docs/d1.key").unlink()
    Path("docs/d1.txt").write_text("x")
    with damaged("docs"):
        formats.read_truth("docs", label_names=read_label_names("v.tsv"))
    Path("docs/d1.txt").unlink()
    Path("docs/d1.json").write_text("[1]")
    with damaged("d1.json"):
        formats.read_truth("docs", label_names=read_label_names("v.tsv"))


# ---------------------------------------------------------------- what evaluate makes of it, and says

P, P2 = "-k 1 --metrics P", "-k 1 2 --metrics P R"
ONE_SIDED = {
    "q_txt": "q0 0 0 1\nq1 0 1 1\n",
    "r_run": "".join(f"q{row} Q0 {row % 3} 1 0.9 t\n" for row in range(10)),
    "rows_txt": "".join(f"q{row}\n" for row in range(10)),
}
"""Ten rows predicted, the first two judged and right."""
UNJUDGED = ONE_SIDED | {"q_txt": "q0 0 0 1\nq1 0 2 0\n"}
BARE = {"Y_npy": np.array([[1, 0], [0, 0], [0, 1], [0, 0]]), "S_npy": np.array([[0.9, 0.1]] * 3 + [[0.2, 0.8]])}
OUTSIDE = {
    "t_jsonl": json_lines({"labels": ["a", "x"]}, {"labels": ["b"]}),
    "p_jsonl": json_lines({"labels": ["a"], "scores": [0.9]}, {"labels": ["b"], "scores": [0.7]}),
    "n_txt": NAMES,
}
ALONG = {"q_txt": "q1 0 d1 1\n", "r_run": "q1 Q0 d2 1 0.5 t\nq1 Q0 d1 2 0.4 t\n"}
BLANK = {
    "q_txt": "0 0 0 1\n1 0 1 1\n",
    "p_jsonl": '{"labels": [0], "scores": [0.9]}\n\n{"labels": [1], "scores": [0.8]}\n\n',
}
FASTTEXT = {
    "t_txt": "__label__a __label__b how to bake\n__label__b what is it\nno label at all\n",
    "p_txt": "__label__a 0.92 __label__b 0.03\n__label__a 0.55 __label__b 2e-1\n\n",
    "n_txt": NAMES,
    "m_txt": "__label__a\n__label__b\n__label__c\n",
}


def trec(head: str, second: str, tag: str) -> dict[str, str]:
    """As people have them."""
    run = f"q1 {second}  d1  1   4.3 {tag}\nq2 {second} d1 1 4.2 {tag}\n"
    return {"q_txt": f"{head}q1 0 d1 1\nq2 0 d2 1\n", "r_run": head + run}


def near(name: str) -> dict[str, str]:
    """Predictions of a name that the truth has, or nearly has."""
    truth = json_lines({"labels": ["two words", "d1"]}, {"labels": ["d1"]})
    return {"q_jsonl": truth, "p_jsonl": json_lines(*({"labels": [one], "scores": [0.5]} for one in (name, "new")))}


def wide(separator: str, yes: str, no: str) -> dict[str, str]:
    truth = [["id", "a", "b", "c"], ["d0", yes, no, yes], ["d1", no, yes, no]]
    scores = [["id", "c", "a", "b"], ["d1", "0.2", "0.3", "0.1"], ["d0", "0.6", "0.9", "0.2"]]
    return {
        name: "".join(separator.join(row) + "\n" for row in rows)
        for name, rows in (("t_csv", truth), ("s_csv", scores))
    }


FAST = {"P@1": 1 / 3, "P@2": 0.5, "R@1": 1 / 6, "R@2": 2 / 3}
WIDE = {"P@1": 0.5, "P@2": 0.5, "R@1": 0.25, "R@2": 0.5}
JUDGED, LISTED = f"q.txt r.run --n-labels 3 {P}", f"t.jsonl p.jsonl --labels n.txt {P2}"
EVALUATED = [
    # Judged rows only is what trec_eval has; a judged row with nothing relevant is judged; of a matrix those without labels.
    (ONE_SIDED, f"{JUDGED} --judged-only", {"P@1": 1.0}, ["2 of 10", "8 left out"]),
    (ONE_SIDED, f"{JUDGED} --rows rows.txt", {"P@1": 0.2},
     ["warning: 8 of 10 rows, most of them, have no relevant label", "P@1 = 1.000000"]),
    (ONE_SIDED, f"{JUDGED} --rows rows.txt --judged-only", {"P@1": 1.0}, []),
    *((UNJUDGED, f"{JUDGED} --judged-only {rows}", {"P@1": 0.5}, []) for rows in ("", "--rows rows.txt")),
    (BARE, f"Y.npy S.npy {P}", {"P@1": 0.25}, []),
    (BARE, f"Y.npy S.npy {P} --judged-only", {"P@1": 0.5}, ["2 of 4"]),
    # Counted, and not in silence: rows without predictions, places, labels outside the vocabulary, names up to a number.
    ({"Y_npy": np.eye(4), "r_run": "0 Q0 0 1 0.9 t\n1 Q0 1 1 0.9 t\n3 Q0 1 1 0.9 t\n"}, f"Y.npy r.run {P}", {"P@1": 0.5},
     ["1 of 4 rows have no prediction; each counts as a miss (over the other 3: P@1 = 0.666667)"]),
    ({"Y_npy": np.ones((3, 4)), "p_json": "[[0, 1, 2], [1], [2, 3, 0]]"}, "Y.npy p.json -k 3 --metrics P --from lists",
     {"P@3": 7 / 9}, ["1 of 3 rows have fewer than 3 predictions", "over the 2 that have 3: P@3 = 1.000000"]),
    *((OUTSIDE, f"{LISTED} --unknown {unknown}", {"P@1": 1.0, "P@2": 0.5, "R@1": recall, "R@2": recall},
       ["1 of 3 relevant pairs (33.3 %), 1 labels", "x"]) for unknown, recall in (("drop", 1.0), ("count", 0.75))),
    (ALONG, "q.txt r.run -k 2 --metrics coverage --n-labels 4", {"coverage@2": 0.25}, []),
    # Without a list of names what differs by capitals is another label, so nothing would be right and nobody told why.
    *((near(name), f"q.jsonl p.jsonl {P}", {"P@1": 0.0},
       ["1 of the predictions differ from one of the truth by capitals and blanks", f"{name!r} and 'two words'"])
      for name in ("Two Words", " two words ", "two_words")),
    (near("other"), f"q.jsonl p.jsonl {P}", {"P@1": 0.0}, []),
    (near("d1"), f"q.jsonl p.jsonl {P}", {"P@1": 0.5}, []),
    # Files of trec_eval, of JSON lines, of fastText and wide tables, as people have them.
    *((trec(head, *line), f"q.txt r.run {P}", {"P@1": 0.5}, ["no list of names was given; the 2"])
      for head in ("", "# made by hand\n", "\n#\n") for line in (("Q0", "t"), ("0", "t"), ("E2", "R1"))),
    (BLANK, f"q.txt p.jsonl --n-labels 2 {P}", {"P@1": 1.0}, []),
    *((FASTTEXT, f"t.txt p.txt --labels {names} {P2}", FAST, []) for names in ("n.txt", "m.txt")),
    *((wide(separator, *words), f"t.csv s.csv {P2}", WIDE, [])
      for separator in ",;\t" for words in (("1", "0"), ("True", "False"), ("1.0", "0.0"))),
]  # fmt: skip


@pytest.mark.parametrize(("files", "argv", "expected", "words"), EVALUATED)
def test_what_evaluate_makes_of_files_and_says(here, capsys, files, argv, expected, words):
    written(**files)
    found, said = value(capsys, argv)
    assert found == pytest.approx(expected)
    assert [word for word in words if word not in said] == []
    assert ("capitals and blanks" in said) == any("capitals and blanks" in word for word in words)


EYE = {"Y_npy": np.eye(3), "P_npy": np.eye(3)}
HEADLESS = {"t_txt": "0,3 0:1.0 4:0.5\n1 2:1.0\n"}
FROM_ONE = {"one_txt": "2 3\n1:1 3:1\n2:1\n"}
SOME_ROWS = {"q_txt": BLANK["q_txt"], "p_jsonl": json_lines({"row": "1", "labels": [1]}, {"labels": [0]})}
REFUSED = [
    (ONE_SIDED, f"evaluate {JUDGED}", ["--judged-only"]),
    (OUTSIDE, f"evaluate {LISTED}", ["--unknown"]),
    ({"t_jsonl": json_lines({"labels": ["Black  Cats"]}), "n_txt": "black cats\ndogs\n"},
     "evaluate t.jsonl t.jsonl --labels n.txt", ["Did you mean 'black cats'?"]),
    (ALONG, "evaluate q.txt r.run --n-labels 1", ["--n-labels"]),
    (SOME_ROWS, "evaluate q.txt p.jsonl --n-labels 2", ["row"]),
    (HEADLESS, "convert t.txt t.npz --as truth", ["--from xc", "--n-labels", "--n-features"]),
    ({}, "certainty 54,2 52,1 -n 9", ["54.2"]),
    ({}, "certainty 0.5 150 -n 9", ["--fractions"]),
    ({}, "fetch nosuch", ["xcrepro fetch --list"]),
    (EYE, "evaluate Y.npy P.npy --metrics PSP", ["--train-truth"]),
    (FROM_ONE, "convert one.txt o.npz --as truth", ["--one-based"]),
    (EYE | {"tib_npy": np.eye(3)}, "evaluate tib.npy P.npy --split 1", ["--split"]),
]  # fmt: skip
PYTHON = ("one_based", "registry.", "help(", "one=1", "propensity.inverse", "_=")


@pytest.mark.parametrize(("files", "argv", "words"), REFUSED)
def test_hints_are_options_that_can_be_typed(here, capsys, files, argv, words):
    written(**files)
    assert main(argv.split()) == 2
    said = capsys.readouterr().err
    assert [word for word in words if word not in said] == []
    assert not argv.startswith(("certainty", "fetch")) or not any(word in said for word in PYTHON)


@pytest.mark.parametrize(
    ("files", "argv", "expected"),
    [
        (HEADLESS, "t.txt o.npz --from xc --n-labels 6 --n-features 5", [[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0]]),
        (FROM_ONE, "one.txt o.npz --one-based", [[1, 0, 1], [0, 1, 0]]),
    ],
)
def test_what_the_hints_say_reads_the_file(here, files, argv, expected):
    written(**files)
    assert main(["convert", *argv.split(), "--as", "truth"]) == 0
    assert numbers("o.npz") == expected


def test_a_filter_follows_the_rows_that_are_left(here):
    from xcrepro.tools.formats import reader

    Y = csr_matrix(np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]], np.float32))
    save_npz("S.npz", csr_matrix(np.array([[1, 2, 3], [3, 2, 1], [1, 2, 3], [1, 2, 3]], np.float32)))
    Path("f.txt").write_text("\ufeff0 2\n1 0\n3 2\n", encoding="utf-8")
    found = reader.read(Y, {"m": "S.npz"}, k=1, exclude="f.txt", judged_only=True)
    assert found.tops["m"].ids.tolist() == [[1], [1]]
    assert [part.tolist() for part in found.exclude] == [[0, 1], [0, 2]]
    assert reader.read(None, {"m": "S.npz"}, k=1, exclude="f.txt").tops["m"].ids.tolist() == [[1], [1], [2], [1]]


# ---------------------------------------------------------------- an order said twice


@pytest.mark.parametrize(
    ("scores", "ranks", "odd"),
    [
        (range(10, 0, -1), range(1, 11), 0),
        (range(10, 0, -1), [0] * 10, 0),
        ([0.5] * 10, range(1, 11), 0),
        (range(10), range(10), 4),
        ([9, 8, 7, 6, 5, 4, 3, 1, 2, 0], range(10), 4),
    ],
)
@pytest.mark.parametrize("suffix", ["run", "csv"])
def test_ranks_are_held_to_scores_in_the_whole_file(here, scores, ranks, odd, suffix):
    lines = list(zip(range(10), scores, ranks, strict=True))
    if suffix == "run":
        text = "".join(f"{row} Q0 {label} {rank} {score} t\n" for row in range(4) for label, score, rank in lines)
    else:
        cells = (f"{row},{label},{rank},{score}\n" for row in range(4) for label, score, rank in lines)
        text = "row,label,rank,score\n" + "".join(cells)
    Path(f"r.{suffix}").write_text(text)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        formats.read_predictions(f"r.{suffix}", k=3, n_labels=10)
    assert [f"in {odd} of 4 rows" in str(one.message) for one in seen] == [True] * bool(odd)
    top = formats.read_predictions(f"r.{suffix}", k=3, n_labels=10, by_rank=True)
    assert top.ids.tolist() == [[label for label, _, _ in sorted(lines, key=lambda line: line[2])][:3]] * 4


# ---------------------------------------------------------------- formats that are asked for


def numbers(path: str, **named) -> list[list[int]]:
    return formats.read_truth(path, **named).toarray().astype(int).tolist()


FAST_ABC, LEFT = {"format": "fasttext", "label_names": list("abc")}, [[1, 0], [0, 1]]
TRUTHS = [
    *(("q.csv", f"row,label,relevance\n0,0,{yes}\n0,1,{no}\n1,1,{yes}\n", LEFT)
      for yes, no in (("TRUE", "FALSE"), ("yes", "no"), ("2", "0"), ("1.0", "0.0"))),
    ("t.txt", "1 0 1\n0 1 0\n", [[1, 0, 1], [0, 1, 0]]),  # three columns of zeros and ones are no header
    ("x.txt", "2 3 2\n0,1 0:1\n1 2:1\n", [[1, 1], [0, 1]]),  # the repository's
    *(("t.txt", f"2 5 6\n3{gap}1 0:1 4:0.5\n0{gap}1{gap}2\n", [[0, 1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 0]])
      for gap in (",", ", ", ",\t", ",  ")),
]  # fmt: skip
RANKED = [
    ("q.txt", "__label__b __label__a\n__label__b\n\n", FAST_ABC, [[1, 0], [1, -1], [-1, -1]]),  # fasttext predict
    ("s.csv", "id,a,b\nx,0.5,\ny,,0.1\nz,-1,-2\n", {}, [[0, -1], [1, -1], [0, 1]]),  # an empty cell is not predicted
]
DAMAGED = [
    *(("truth", "q.csv", f"{header}\n{'0,1,1,1'[: 2 * header.count(',') + 1]}\n", {}, 1)
      for header in ("row,label,label", "row,label,relevance,relevance", "row,row,label")),
    ("truth", "p.txt", "__label__a 0.5 __label__b 0.4\n", FAST_ABC, 1),
    *(("predictions", "p.txt", text, FAST_ABC, 1) for text in (
        "__label__a 0.5 words 0.4\n", "__label__a x\n", "__label__a 0.5 __label__b\n", "__label__ 0.5\n")),
    *(("truth", "t.csv", text, {"format": "wide"}, line) for text, line in (
        ("id,a,b\nx,1,2\ny,1\n", 3), ("id,a,b\nx,1,0\ny,1,maybe\n", 3), ("id,a,a\nx,1,0\n", 1), ("id,a,b\nx,1,-1\n", 2))),
    *(("predictions", "q.json", text, {"format": "dictionary", "label_names": ["d"], "row_ids": ["q", "r"]}, None) for text in (
        '{"q": {"d": true}}', '{"q": {"d": "1"}}', '{"q": {"d": 1, "d": 2}}', '{"q": {"d": 1}, "r": [1]}', '{"q": {"d"')),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), TRUTHS)
def test_truths_as_people_write_them(here, name, text, expected):
    Path(name).write_text(text)
    assert numbers(name) == expected


@pytest.mark.parametrize(("name", "text", "options", "expected"), RANKED)
def test_predictions_as_people_write_them(here, name, text, options, expected):
    Path(name).write_text(text)
    assert formats.read_predictions(name, k=2, **options).ids.tolist() == expected


@pytest.mark.parametrize(("kind", "name", "text", "options", "line"), DAMAGED)
def test_what_is_no_such_file_is_named_with_its_line(here, kind, name, text, options, line):
    Path(name).write_text(text)
    with damaged(name, line):
        getattr(formats, f"read_{kind}")(name, **options)


def test_a_warning_in_the_shell_is_a_line_of_text(here, capsys):
    written(a_txt="1 3\n2:1 0:1\n")
    assert main(["convert", "a.txt", "o.npz", "--as", "truth"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: a.txt: 1 row")
    assert ".py" not in said


def test_wide_tables_of_pandas_of_kaggle_and_of_savetxt(here, capsys):
    rng = np.random.default_rng(0)
    Y, scores = (rng.random((6, 4)) < 0.4).astype(int), rng.random((6, 4))
    expected = float(xc.metrics.precision(csr_matrix(Y.astype(np.float32)), xc.TopK.from_scores(scores, 1), 1)[0])
    pd.DataFrame(Y, columns=list("abcd")).to_csv("t.csv")
    pd.DataFrame(scores, columns=list("abcd")).to_csv("s.csv", index=False)
    kaggle = pd.DataFrame({"id": list("uvwxyz"), "comment_text": ['a "quoted",\ntext'] * 6})
    pd.concat([kaggle, pd.DataFrame(Y, columns=list("abcd"))], axis=1).to_csv("k.csv", index=False)
    for form in ("%.18e", "%d", "%g"):
        np.savetxt(f"t{form[-1]}.txt", Y, form)
        np.savetxt(f"t{form[-1]}.csv", Y, form, delimiter=",")
    np.savetxt("s.txt", scores)
    np.savetxt("c.txt", scores, header="four scores")
    for truth in ("t.csv", "k.csv", "te.txt", "tg.txt", "te.csv", "td.csv", "tg.csv"):
        for given in ("s.csv", "s.txt", "c.txt"):
            assert value(capsys, f"{truth} {given} {P}")[0] == pytest.approx({"P@1": expected}), (truth, given)


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_annifs_short_text_corpora(here, suffix):
    rows = [("An orchard", "<http://a> <http://b>"), ('"A farm, of bees"', "<http://b>"), ("nothing", "")]
    if suffix == "csv":
        Path("c.csv").write_text("text,subject_uris\n" + "".join(f"{text},{uris}\n" for text, uris in rows))
    else:
        Path("c.tsv").write_text("".join(f"{text}\t{uris}\n" for text, uris in rows))
    written(v_tsv="<http://a>\ta\n<http://b>\tb\n<http://c>\tc\n")
    names = read_label_names("v.tsv")
    assert numbers(f"c.{suffix}", label_names=names) == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
    with damaged(f"c.{suffix}", 2 if suffix == "csv" else 1):
        formats.read_truth(f"c.{suffix}", label_names=["a", "b"])


# ---------------------------------------------------------------- plain mistakes, by name


def test_a_truth_where_predictions_are_to_be_is_named(here):
    rng = np.random.default_rng(0)
    Y = csr_matrix((rng.random((60, 20)) < 0.2).astype(np.float32))
    scores = rng.random((60, 20)).astype(np.float32)
    truth, top = xc.TopK.from_scores(Y, 20), xc.TopK.from_scores(scores, 5)
    kinds = {finding.kind for finding in xc.diagnose.check(Y, truth)}
    assert "truth as predictions" in kinds
    assert "exchanged" in {finding.kind for finding in xc.diagnose.check(top.to_csr(), truth)}
    assert not {"exchanged", "truth as predictions"} & {finding.kind for finding in xc.diagnose.check(Y, top)}
    every = xc.TopK.from_scores(np.ones((60, 20), np.float32), 5)  # a model that says nothing
    assert not {"exchanged", "truth as predictions"} & {finding.kind for finding in xc.diagnose.check(Y, every)}


def test_ids_that_were_saved_as_they_are_are_named(here):
    ids = np.array([[3, 1], [0, 2], [5, -1]])
    np.save("ids.npy", ids)
    np.savez("both.npz", ids=ids, scores=np.ones((3, 2)))
    for name in ("ids.npy", "both.npz"):
        with damaged(name, match="from_ids"):
            formats.read_predictions(name, n_labels=6, n_rows=3)
    np.save("votes.npy", np.array([[3, 3], [0, 2], [5, 0]]))  # whole numbers that are scores of two labels
    assert formats.read_predictions("votes.npy", n_labels=2).ids.tolist() == [[0, 1], [1, 0], [0, 1]]


def test_what_fasttexts_predict_returns():
    found = ([["__label__b", "__label__a"], ["__label__c"], []], [np.array([0.9, 0.05]), np.array([0.4]), np.array([])])
    top = xc.TopK.from_pairs(tuple(found), n_labels=3, label_names=["a", "b", "c"])
    assert top.ids.tolist() == [[1, 0], [2, -1], [-1, -1]]
    assert top.scores[:2, 0].tolist() == pytest.approx([0.9, 0.4])
    assert xc.TopK.from_pairs([["b", "a"], []], n_labels=3, label_names=["a", "b", "c"]).ids.tolist() == [
        [1, 0],
        [-1, -1],
    ]
    for names in (None, ["a", "b"]):
        with refused("rows"):
            xc.TopK.from_pairs(tuple(found), n_labels=3, label_names=names)
