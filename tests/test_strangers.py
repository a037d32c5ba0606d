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


def test_what_a_sparse_row_leaves_out_is_the_first_value(tmp_path):
    path = tmp_path / "x.arff"
    head = "@relation 'x: -C 2'\n@attribute a {yes,no}\n@attribute b {no,yes}\n@attribute w numeric\n@data\n"
    path.write_text(head + "{2 0.5}\n{0 no,1 yes}\n")
    assert formats.read_truth(path).toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("values", ["{red,blue}", "{yes,true}", "{maybe,yes}", "{a,b,c}"])
def test_labels_that_say_neither_yes_nor_no_are_refused_and_features_are_not(tmp_path, values):
    first, second = values[1:-1].split(",")[:2]
    with damaged("x.arff"):
        formats.read_truth(arff(tmp_path / "x.arff", first, second, values))
    path = tmp_path / "y.arff"
    path.write_text(f"@relation 'x: -C -1'\n@attribute a {values}\n@attribute b {{0,1}}\n@data\n{second},1\n")
    assert formats.read_features(path).shape == (1, 1)


@pytest.mark.parametrize(("yes", "no"), [("TRUE", "FALSE"), ("yes", "no"), ("2", "0"), ("1.0", "0.0")])
def test_a_column_of_relevance_may_be_logical(tmp_path, yes, no):
    (tmp_path / "q.csv").write_text(f"row,label,relevance\n0,0,{yes}\n0,1,{no}\n1,1,{yes}\n")
    assert formats.read_truth(tmp_path / "q.csv").toarray().tolist() == [[1, 0], [0, 1]]


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


# ---------------------------------------------------------------- a table's column twice


@pytest.mark.parametrize("header", ["row,label,label", "row,label,relevance,relevance", "row,row,label"])
def test_a_column_twice_is_refused(tmp_path, header):
    (tmp_path / "q.csv").write_text(
        header + "\n" + ",".join("0" * header.count(",") + "1")[: 2 * header.count(",") + 1] + "\n"
    )
    with damaged("q.csv", 1):
        formats.read_truth(tmp_path / "q.csv")


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


def value(capsys, *argv: str) -> tuple[dict[str, float], str]:
    """What `evaluate` prints, and what it says."""
    assert main(["evaluate", *argv, "--csv"]) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    rows = [line.split(",") for line in out.splitlines()[1:]]
    return {f"{metric}@{k}": float(number) for metric, k, number in rows}, err


def written(**texts: str) -> None:
    for name, text in texts.items():
        Path(name.replace("_", ".")).write_text(text)


QRELS, RUN, NAMES = "q0 0 a 1\nq1 0 b 1\nq2 0 c 1\n", "q0 Q0 a 1 0.9 t\nq1 Q0 c 1 0.8 t\nq2 Q0 c 1 0.7 t\n", "a\nb\nc\n"


def test_the_same_files_in_every_command(here, capsys):
    """P@1 is 2/3 in each; a message names options that the command has."""
    written(q_txt=QRELS, r_run=RUN, n_txt=NAMES)
    names = ("--labels", "n.txt")
    given = ("q.txt", "r.run", *names)
    assert value(capsys, *given, "-k", "1", "--metrics", "P")[0] == {"P@1": pytest.approx(2 / 3)}
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
    assert value(capsys, "docs", "docs", "--labels", "v.tsv", "-k", "1", "--metrics", "P")[0] == {
        "P@1": pytest.approx(1 / 3)
    }
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


# ---------------------------------------------------------------- rows on one side


@pytest.fixture
def one_sided(here):
    """Ten rows predicted, the first two judged and right."""
    lines = [f"q{row} Q0 {row % 3} 1 0.9 t\n" for row in range(10)]
    written(q_txt="q0 0 0 1\nq1 0 1 1\n", r_run="".join(lines), rows_txt="".join(f"q{row}\n" for row in range(10)))
    return here


def test_judged_rows_only_is_what_trec_eval_has(one_sided, capsys):
    given = ("q.txt", "r.run", "--n-labels", "3", "-k", "1", "--metrics", "P")
    assert main(["evaluate", *given]) == 2
    assert "--judged-only" in capsys.readouterr().err
    found, said = value(capsys, *given, "--judged-only")
    assert found == {"P@1": 1.0}
    assert "2 of 10" in said
    assert "8 left out" in said
    found, said = value(capsys, *given, "--rows", "rows.txt")
    assert found == {"P@1": 0.2}
    assert "warning: 8 of 10 rows, most of them, have no relevant label" in said
    assert "P@1 = 1.000000" in said
    found, said = value(capsys, *given, "--rows", "rows.txt", "--judged-only")
    assert found == {"P@1": 1.0}


def test_a_judged_row_with_nothing_relevant_is_judged(one_sided, capsys):
    Path("q.txt").write_text("q0 0 0 1\nq1 0 2 0\n")
    for rows in ((), ("--rows", "rows.txt")):
        found, _ = value(
            capsys, "q.txt", "r.run", "--n-labels", "3", "-k", "1", "--metrics", "P", "--judged-only", *rows
        )
        assert found == {"P@1": 0.5}


def test_rows_of_a_matrix_without_labels_can_be_left_out(here, capsys):
    save_npz("Y.npz", csr_matrix(np.array([[1, 0], [0, 0], [0, 1], [0, 0]], np.float32)))
    np.save("S.npy", np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.2, 0.8]]))
    assert value(capsys, "Y.npz", "S.npy", "-k", "1", "--metrics", "P")[0] == {"P@1": 0.25}
    found, said = value(capsys, "Y.npz", "S.npy", "-k", "1", "--metrics", "P", "--judged-only")
    assert found == {"P@1": 0.5}
    assert "2 of 4" in said


def test_a_filter_follows_the_rows_that_are_left(here):
    from xcrepro.tools.formats import reader

    Y = csr_matrix(np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]], np.float32))
    save_npz("S.npz", csr_matrix(np.array([[1, 2, 3], [3, 2, 1], [1, 2, 3], [1, 2, 3]], np.float32)))
    Path("f.txt").write_text("\ufeff0 2\n1 0\n3 2\n", encoding="utf-8")
    found = reader.read(Y, {"m": "S.npz"}, k=1, exclude="f.txt", judged_only=True)
    assert found.tops["m"].ids.tolist() == [[1], [1]]
    assert [part.tolist() for part in found.exclude] == [[0, 1], [0, 2]]
    assert reader.read(None, {"m": "S.npz"}, k=1, exclude="f.txt").tops["m"].ids.tolist() == [[1], [1], [2], [1]]


# ---------------------------------------------------------------- counted, and not in silence


def test_scattered_rows_without_predictions_are_counted(here, capsys):
    rng = np.random.default_rng(0)
    save_npz("Y.npz", csr_matrix(np.eye(5, dtype=np.float32)[rng.integers(0, 5, 60)]))
    truth = formats.read_truth("Y.npz").indices
    kept = [row for row in range(60) if row % 6]
    written(r_run="".join(f"{row} Q0 {truth[row] if row % 5 else 4 - truth[row]} 1 0.9 t\n" for row in kept))
    right = sum(1 for row in kept if row % 5 or truth[row] == 2)
    found, said = value(capsys, "Y.npz", "r.run", "-k", "1", "--metrics", "P")
    assert found == {"P@1": pytest.approx(right / 60)}
    assert (
        f"10 of 60 rows have no prediction; each counts as a miss (over the other 50: P@1 = {right / 50:.6f})" in said
    )


def test_fewer_places_than_k_are_counted(here, capsys):
    save_npz("Y.npz", csr_matrix(np.ones((3, 4), np.float32)))
    written(p_json="[[0, 1, 2], [1], [2, 3, 0]]")
    found, said = value(capsys, "Y.npz", "p.json", "-k", "3", "--metrics", "P", "--from", "lists")
    assert found == {"P@3": pytest.approx(7 / 9)}
    assert "1 of 3 rows have fewer than 3 predictions" in said
    assert "over the 2 that have 3: P@3 = 1.000000" in said


@pytest.mark.parametrize(("unknown", "recall", "n_labels"), [("drop", 1.0, 3), ("count", 0.75, 4)])
def test_labels_outside_the_vocabulary(here, capsys, unknown, recall, n_labels):
    written(t_jsonl='{"labels": ["a", "x"]}\n{"labels": ["b"]}\n', n_txt=NAMES)
    written(p_jsonl='{"labels": ["a"], "scores": [0.9]}\n{"labels": ["b"], "scores": [0.7]}\n')
    given = ("t.jsonl", "p.jsonl", "--labels", "n.txt", "-k", "1", "--metrics", "P", "R")
    assert main(["evaluate", *given]) == 2
    assert "--unknown" in capsys.readouterr().err
    found, said = value(capsys, *given, "--unknown", unknown)
    assert found == {"P@1": 1.0, "R@1": recall}
    assert "1 of 3 relevant pairs (33.3 %), 1 labels" in said
    assert "x" in said
    from xcrepro.tools.formats import reader

    assert reader.read("t.jsonl", ["p.jsonl"], label_names=["a", "b", "c"], unknown=unknown).truth.shape == (
        2,
        n_labels,
    )


def test_predicted_labels_outside_the_vocabulary_keep_their_place_or_do_not(here, capsys):
    written(t_jsonl='{"labels": ["a"]}\n{"labels": ["b"]}\n', n_txt=NAMES)
    written(p_jsonl='{"labels": ["x", "a"], "scores": [0.9, 0.5]}\n{"labels": ["b", "y"], "scores": [0.7, 0.1]}\n')
    given = ("t.jsonl", "p.jsonl", "--labels", "n.txt", "-k", "1", "2", "--metrics", "P")
    assert value(capsys, *given, "--unknown", "drop")[0] == {"P@1": 1.0, "P@2": 0.5}
    found, said = value(capsys, *given, "--unknown", "count")
    assert found == {"P@1": 0.5, "P@2": 0.5}
    assert "2 of 4 predictions (50.0 %), 2 labels" in said


def test_the_nearest_name_is_shown(here, capsys):
    written(t_jsonl='{"labels": ["Black  Cats"]}\n', n_txt="black cats\ndogs\n")
    assert main(["evaluate", "t.jsonl", "t.jsonl", "--labels", "n.txt"]) == 2
    assert "Did you mean 'black cats'?" in capsys.readouterr().err


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


# ---------------------------------------------------------------- IR people's files


@pytest.mark.parametrize("head", ["", "# made by hand\n", "\n#\n"])
@pytest.mark.parametrize(("second", "tag"), [("Q0", "t"), ("0", "t"), ("E2", "R1")])
def test_files_of_trec_as_people_have_them(here, capsys, head, second, tag):
    written(q_txt=head + "q1 0 d1 1\nq2 0 d2 1\n")
    written(r_run=head + f"q1 {second}  d1  1   4.3 {tag}\nq2 {second} d1 1 4.2 {tag}\n")
    found, said = value(capsys, "q.txt", "r.run", "-k", "1", "--metrics", "P")
    assert found == {"P@1": 0.5}
    assert "no list of names was given; the 2" in said


@pytest.mark.parametrize(
    ("name", "near"), [("Two Words", 1), (" two words ", 1), ("two_words", 1), ("other", 0), ("d1", 0)]
)
def test_names_that_come_along_and_differ_by_capitals_are_named(here, capsys, name, near):
    """Without a list of names they count as other labels, so nothing would be right and nobody told why."""
    lines = [{"labels": ["two words", "d1"]}, {"labels": ["d1"]}]
    written(q_jsonl="".join(json.dumps(line) + "\n" for line in lines))
    lines = [{"labels": [name], "scores": [0.5]}, {"labels": ["new"], "scores": [0.5]}]
    written(p_jsonl="".join(json.dumps(line) + "\n" for line in lines))
    found, said = value(capsys, "q.jsonl", "p.jsonl", "-k", "1", "--metrics", "P")
    assert found == {"P@1": 0.5 if name == "d1" else 0.0}
    told = [line for line in said.splitlines() if "capitals and blanks" in line]
    assert len(told) == near
    assert all("1 of the predictions" in line and repr(name) in line and "'two words'" in line for line in told)


def test_a_warning_in_the_shell_is_a_line_of_text(here, capsys):
    written(a_txt="1 3\n2:1 0:1\n")
    assert main(["convert", "a.txt", "o.npz", "--as", "truth"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: a.txt: 1 row")
    assert ".py" not in said


def test_names_that_come_along_are_counted_up_to_the_number_that_is_given(here, capsys):
    written(q_txt="q1 0 d1 1\n", r_run="q1 Q0 d2 1 0.5 t\nq1 Q0 d1 2 0.4 t\n")
    found, _ = value(capsys, "q.txt", "r.run", "-k", "2", "--metrics", "coverage", "--n-labels", "4")
    assert found == {"coverage@2": 0.25}
    assert main(["evaluate", "q.txt", "r.run", "--n-labels", "1"]) == 2


# ---------------------------------------------------------------- JSON lines


def test_json_lines_with_blank_lines_and_without_row_ids(here, capsys):
    written(
        q_txt="0 0 0 1\n1 0 1 1\n", p_jsonl='{"labels": [0], "scores": [0.9]}\n\n{"labels": [1], "scores": [0.8]}\n\n'
    )
    assert value(capsys, "q.txt", "p.jsonl", "--n-labels", "2", "-k", "1", "--metrics", "P")[0] == {"P@1": 1.0}
    written(p_jsonl='{"row": "1", "labels": [1], "scores": [0.9]}\n{"labels": [0], "scores": [0.8]}\n')
    assert main(["evaluate", "q.txt", "p.jsonl", "--n-labels", "2"]) == 2  # some with and some without


# ---------------------------------------------------------------- formats that are asked for

TEXTS = "__label__a __label__b how to bake\n__label__b what is it\nno label at all\n"


def numbers(path: str, **named) -> list[list[int]]:
    return formats.read_truth(path, **named).toarray().astype(int).tolist()


@pytest.mark.parametrize("prefix", ["", "__label__"])
def test_fasttexts_texts_and_predictions(here, capsys, prefix):
    written(t_txt=TEXTS, n_txt="".join(f"{prefix}{name}\n" for name in "abc"))
    written(p_txt="__label__a 0.92 __label__b 0.03\n__label__a 0.55 __label__b 2e-1\n\n")
    assert numbers("t.txt", label_names=list("abc")) == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
    found, _ = value(capsys, "t.txt", "p.txt", "--labels", "n.txt", "-k", "1", "2", "--metrics", "P", "R")
    assert found == {"P@1": pytest.approx(1 / 3), "P@2": 0.5, "R@1": pytest.approx(1 / 6), "R@2": pytest.approx(2 / 3)}
    written(q_txt="__label__b __label__a\n__label__b\n\n")  # fasttext predict, without scores
    assert formats.read_predictions("q.txt", "fasttext", 2, label_names=list("abc")).ids.tolist() == [
        [1, 0],
        [1, -1],
        [-1, -1],
    ]


@pytest.mark.parametrize(
    "text", ["__label__a 0.5 words 0.4\n", "__label__a x\n", "__label__a 0.5 __label__b\n", "__label__ 0.5\n"]
)
def test_what_fasttext_does_not_print(here, text):
    written(p_txt=text)
    with damaged("p.txt", 1):
        formats.read_predictions("p.txt", "fasttext", label_names=list("ab"))


def test_predictions_with_scores_are_no_truth_of_fasttexts(here):
    written(p_txt="__label__a 0.5 __label__b 0.4\n")
    with damaged("p.txt", 1):
        formats.read_truth("p.txt", "fasttext", label_names=list("ab"))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(("yes", "no"), [("1", "0"), ("True", "False"), ("1.0", "0.0")])
def test_wide_tables_are_matched_by_name(here, capsys, separator, yes, no):
    truth = [["id", "a", "b", "c"], ["d0", yes, no, yes], ["d1", no, yes, no]]
    scores = [["id", "c", "a", "b"], ["d1", "0.2", "0.3", "0.1"], ["d0", "0.6", "0.9", "0.2"]]
    for name, rows in (("t.csv", truth), ("s.csv", scores)):
        Path(name).write_text("".join(separator.join(row) + "\n" for row in rows))
    found, _ = value(capsys, "t.csv", "s.csv", "-k", "1", "2", "--metrics", "P", "R")
    assert found == {"P@1": 0.5, "P@2": 0.5, "R@1": 0.25, "R@2": 0.5}


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
            assert value(capsys, truth, given, "-k", "1", "--metrics", "P")[0] == {"P@1": pytest.approx(expected)}, (
                truth,
                given,
            )


def test_three_columns_of_zeros_and_ones_are_no_header(here):
    written(t_txt="1 0 1\n0 1 0\n")
    assert numbers("t.txt") == [[1, 0, 1], [0, 1, 0]]
    written(x_txt="2 3 2\n0,1 0:1\n1 2:1\n")  # the repository's
    assert numbers("x.txt") == [[1, 1], [0, 1]]


def test_an_empty_cell_is_not_predicted(here):
    written(s_csv="id,a,b\nx,0.5,\ny,,0.1\nz,-1,-2\n")
    top = formats.read_predictions("s.csv", k=2)
    assert top.ids.tolist() == [[0, -1], [1, -1], [0, 1]]


@pytest.mark.parametrize(
    ("text", "line"),
    [("id,a,b\nx,1,2\ny,1\n", 3), ("id,a,b\nx,1,0\ny,1,maybe\n", 3), ("id,a,a\nx,1,0\n", 1), ("id,a,b\nx,1,-1\n", 2)],
)
def test_faults_of_wide_tables_are_named_with_their_line(here, text, line):
    written(t_csv=text)
    with damaged("t.csv", line):
        formats.read_truth("t.csv", "wide")


@pytest.mark.parametrize(
    "text",
    ['{"q": {"d": true}}', '{"q": {"d": "1"}}', '{"q": {"d": 1, "d": 2}}', '{"q": {"d": 1}, "r": [1]}', '{"q": {"d"'],
)
def test_what_is_no_dictionary(here, text):
    written(q_json=text)
    with damaged("q.json"):
        formats.read_predictions("q.json", "dictionary", label_names=["d"], row_ids=["q", "r"])


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


@pytest.mark.parametrize("gap", [",", ", ", ",\t", ",  "])
def test_blanks_behind_the_commas_of_labels(here, gap):
    written(t_txt=f"2 5 6\n3{gap}1 0:1 4:0.5\n0{gap}1{gap}2\n")
    assert numbers("t.txt") == [[0, 1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 0]]


def test_a_file_without_header_is_named_with_what_reads_it(here, capsys):
    written(t_txt="0,3 0:1.0 4:0.5\n1 2:1.0\n")
    assert main(["convert", "t.txt", "t.npz", "--as", "truth"]) == 2
    said = capsys.readouterr().err
    assert all(option in said for option in ("--from xc", "--n-labels", "--n-features"))
    assert (
        main(["convert", "t.txt", "t.npz", "--as", "truth", "--from", "xc", "--n-labels", "6", "--n-features", "5"])
        == 0
    )
    assert numbers("t.npz") == [[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0]]


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


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["certainty", "54,2", "52,1", "-n", "9"], "54.2"),
        (["certainty", "0.5", "150", "-n", "9"], "--fractions"),
        (["fetch", "nosuch"], "xcrepro fetch --list"),
        (["evaluate", "Y.npz", "P.npz", "--metrics", "PSP"], "--train-truth"),
        (["convert", "one.txt", "o.npz", "--as", "truth"], "--one-based"),
        (["evaluate", "tib.npz", "P.npz", "--split", "1"], "--split"),
    ],
)
def test_hints_are_options_that_can_be_typed(here, capsys, argv, named):
    save_npz("Y.npz", csr_matrix(np.eye(3, dtype=np.float32)))
    xc.TopK.from_scores(np.eye(3), 2).save("P.npz")
    save_npz("tib.npz", csr_matrix(np.eye(3, dtype=np.float32)))
    written(one_txt="2 3\n1:1 3:1\n2:1\n")
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert named in said
    assert not any(
        python in said for python in ("one_based", "registry.", "help(", "one=1", "propensity.inverse", "_=")
    )


def test_ids_from_1_can_be_read(here):
    written(one_txt="2 3\n1:1 3:1\n2:1\n")
    assert main(["convert", "one.txt", "o.npz", "--as", "truth", "--one-based"]) == 0
    assert numbers("o.npz") == [[1, 0, 1], [0, 1, 0]]


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
