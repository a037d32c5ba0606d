"""What a language model answers: names that are no label, that come twice, that mean a label; against slow loops over lists."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.refused import damaged
from xcrepro.__main__ import main
from xcrepro.core.data.names import LabelNames
from xcrepro.tools.formats import reader

NAMES = ["Court building", "Bridge policy", "Glass", "Law", "Economics"]
SAID = [*NAMES, "x", "y", "LAW", "bridge_policies"]
ANSWERS = st.lists(st.lists(st.sampled_from(SAID), max_size=6), min_size=1, max_size=6)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(name, rows, **more):
    lines = [
        json.dumps({"labels": row, **{key: value[at] for key, value in more.items()}}) for at, row in enumerate(rows)
    ]
    with open(name, "w") as file:
        file.write("".join(line + "\n" for line in lines))
    return name


def slow_places(answer, unknown):
    """What stands at each place: a name, or None for a miss."""
    places, seen = [], set()
    for name in answer:
        if name in NAMES and name not in seen:
            places.append(name)
        elif unknown == "count":
            places.append(None)
        seen.add(name)
    return places


@settings(max_examples=40, deadline=None)
@given(ANSWERS, st.data(), st.sampled_from(["count", "drop"]))
def test_places_of_answers_equal_a_slow_loop(tmp_path_factory, answers, data, unknown):
    folder = tmp_path_factory.mktemp("answers")
    truth = [data.draw(st.lists(st.sampled_from([*NAMES, "z"]), min_size=1, max_size=3)) for _ in answers]
    files = written(folder / "t.jsonl", truth), {"m": written(folder / "m.jsonl", answers)}
    found = reader.read(*files, k=6, label_names=NAMES, unknown=unknown)
    kept = [{name for name in row if name in NAMES or unknown == "count"} for row in truth]
    assert np.diff(found.truth.indptr).tolist() == [len(row) for row in kept]
    top, names = found.tops["m"], found.label_names.names
    for row, answer in enumerate(answers):
        places = slow_places(answer, unknown)
        got = [names[label] if label < len(NAMES) else None for label in top.ids[row] if label >= 0]
        assert got == places
    for k in (1, 3, 6):
        hits = [len({*slow_places(a, unknown)[:k]} & row - {"z"}) for a, row in zip(answers, kept, strict=True)]
        assert xc.metrics.precision(found.truth, top, k)[0] == pytest.approx(np.mean(hits) / k)
    # What no list has takes as few labels as one row needs, so that averages over labels hardly know of it.
    most = max(sum(place is None for place in slow_places(answer, unknown)) for answer in answers)
    of_truth = unknown == "count" and any("z" in row for row in truth)
    assert found.truth.shape[1] == top.n_labels == len(names) == len(NAMES) + of_truth + most
    assert top.outside == most  # and none of them counts in averages over labels
    assert any("averages over labels" in line for line in found.lines) == (most > 0)


def test_unknown_and_repeated_names_are_counted_for_each_model(here):
    written("t.jsonl", [["Law"], ["Glass", "z"]])
    written("a.jsonl", [["x", "Law", "x"], ["y", "y", "y", "Glass"]])
    written("b.jsonl", [["Law"], ["Glass"]])
    said = "\n".join(reader.read("t.jsonl", ["a.jsonl", "b.jsonl"], label_names=NAMES, unknown="count").lines)
    assert "1 of 3 relevant pairs (33.3 %), 1 labels, counted as labels of their own: z" in said
    assert "5 of 7 predictions of a (71.4 %), 2 labels, counted as misses: y, x" in said
    assert "3 of 7 predictions of a (42.9 %)" in said
    assert "of b" not in said
    said = "\n".join(reader.read("t.jsonl", ["a.jsonl"], label_names=NAMES, unknown="drop").lines)
    assert "5 of 7 predictions of a (71.4 %), 2 labels, left out" in said


def test_a_label_twice_is_refused_unless_asked_for(here):
    written("t.jsonl", [["Law", "Law"]])
    written("m.jsonl", [["Law", "Glass", "Law"]])
    with damaged("t.jsonl", 1, "unknown"):
        reader.read("t.jsonl", ["m.jsonl"], label_names=NAMES)
    found = reader.read("t.jsonl", ["m.jsonl"], label_names=NAMES, unknown="count")
    assert found.truth.toarray()[0].sum() == 1  # in a truth once and not again
    assert found.tops["m"].ids.tolist() == [[3, 2, 5]]
    # with scores the better place stays, whatever the order of the line; numbers are no names
    written("m.jsonl", [["Law", "Glass", "Law"]], scores=[[0.1, 0.2, 0.3]])
    assert reader.read("t.jsonl", ["m.jsonl"], label_names=NAMES, unknown="drop").tops["m"].ids.tolist() == [[3, 2]]
    written("n.jsonl", [[1, 1, 2]])
    top = xc.formats.read_predictions("n.jsonl", n_labels=4, unknown="count")
    assert (top.ids.tolist(), top.n_labels) == ([[1, 4, 2]], 5)
    with damaged("n.jsonl", 1):
        xc.formats.read_predictions("n.jsonl", unknown="count")  # nobody says how many labels there are


def test_a_name_that_only_the_train_truth_has_beside_the_list(here):
    for file in ("t.jsonl", "train.jsonl", "m.jsonl"):
        written(file, [["Law", "x" if file != "t.jsonl" else "Glass"]])
    found = reader.read("t.jsonl", ["m.jsonl"], label_names=NAMES, unknown="count", train_truth="train.jsonl")
    assert found.train.toarray().tolist() == [[0, 0, 0, 1, 0, 1]]
    assert found.tops["m"].ids.tolist() == [[3, 5]]
    assert any("train truth" in line for line in found.lines)


@pytest.mark.parametrize(
    ("text", "case", "plural", "nearest"),
    [
        ("COURT  building", "Court building", "Court building", "Court building"),
        ("__label__court-building", "Court building", "Court building", "Court building"),
        ("court buildings", "", "Court building", "Court building"),
        ("Bridge policies", "", "Bridge policy", "Bridge policy"),
        ("glasses", "", "Glass", "Glass"),
        ("Bridge polcy", "", "", "Bridge policy"),
        ("Economic", "", "Economics", "Economics"),
        ("Courts", "", "", ""),
        ("", "", "", ""),
    ],
)
def test_which_name_a_text_is_taken_for(text, case, plural, nearest):
    names = LabelNames(tuple(NAMES))
    assert [names.matching(text, rule) for rule in ("case", "plural", "nearest")] == [case, plural, nearest]


def test_a_text_that_means_two_names_means_none():
    names = LabelNames(("law", "LAW", "tax laws", "tax law", "abcdef x", "abcdef y"))
    texts = (("Law", "nearest"), ("Tax Laws!", "case"), ("abcdef", "nearest"))
    assert [names.matching(*text) for text in texts] == ["", "", ""]
    assert names.matching("TAX LAW", "plural") == "tax law"  # by capitals alone it means one


def slow_nearest(text, names):
    """Jaccard by sets of pieces, name by name."""

    def pieces(word):
        word = "".join(word.lower().split())
        return {word[i : i + 3] for i in range(max(1, len(word) - 2))}

    alike = [len(pieces(text) & pieces(name)) / len(pieces(text) | pieces(name)) for name in names]
    best = [name for name, value in zip(names, alike, strict=True) if value == max(alike)]
    return best[0] if max(alike) >= 0.5 and len(best) == 1 else ""


@given(
    st.text("ab c", max_size=8), st.lists(st.text("abc", min_size=1, max_size=8), min_size=1, max_size=6, unique=True)
)
def test_the_nearest_name_equals_a_loop_over_all(text, names):
    found = LabelNames(tuple(names)).matching(text, "nearest")
    squeezed = "".join(text.split())
    assert found == (squeezed if squeezed in names else slow_nearest(text, names)) or found.rstrip("s") == squeezed


def test_what_matching_does_to_the_first_place_is_said(here, capsys):
    written("t.jsonl", [["Law"], ["Glass"], ["Economics"], ["Law", "Glass"]])
    written("m.jsonl", [["LAW"], ["Glass"], ["economics "], ["Law", "law"]])
    (here / "n.txt").write_text("".join(name + "\n" for name in NAMES))
    given = "evaluate t.jsonl m.jsonl --labels n.txt -k 1 --metrics P R --unknown count --match case --csv"
    assert main(given.split()) == 0
    shown = capsys.readouterr()
    assert "P,1,1.0" in shown.out.replace(".000000", ".0")
    assert "matched by case: 3 labels" in shown.err
    assert "100.0 % (without it 50.0 %)" in shown.err
    found = reader.read("t.jsonl", {"m": "m.jsonl"}, unknown="drop", match="case")  # without a list: the truth's names
    assert found.truth.shape == (4, 3)
    assert xc.metrics.precision(found.truth, found.tops["m"], 1)[0] == 1.0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_the_ceiling_is_that_of_the_best_choice(seed, places):
    rng = np.random.default_rng(seed)
    Y = rng.random((4, 9)) < 0.3
    ids = np.array([rng.permutation(9)[:places] for _ in range(4)])
    ids[0, places // 2 :] = -1
    top = xc.TopK.from_ids(ids, n_labels=9)
    for k in (1, 3, 8):
        best = [sorted((bool(Y[row, label]) for label in ids[row] if label >= 0), reverse=True)[:k] for row in range(4)]
        assert xc.metrics.precision_ceiling(Y, top, k)[0] == pytest.approx(np.mean([sum(row) / k for row in best]))
    parts = [(Y[:1], top.rows(slice(0, 1))), (Y[1:], top.rows(slice(1, 4)))]
    assert xc.metrics.precision_ceiling(parts, ks=2) == xc.metrics.precision_ceiling(Y, top, 2)


@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("rows", [[["Law", "Glass"], [], ["x"]], [[], ["Law"]], [["Glass"]]])
def test_a_bare_list_a_line_is_a_row(tmp_path, rows, scored):
    pairs = [[[name, 0.9 - place / 10] for place, name in enumerate(row)] for row in rows]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (pairs if scored else rows)))
    if scored and len(rows) == 1:  # one list of lists is a file of its own kind
        pytest.skip("read as lists")
    top = xc.formats.read_predictions(tmp_path / "p.jsonl", label_names=[*NAMES, "x"])
    assert [[label for label in row if label >= 0] for row in top.ids.tolist()] == [
        [[*NAMES, "x"].index(name) for name in row] for row in rows
    ]
    if not scored:
        truth = xc.formats.read_truth(tmp_path / "p.jsonl", label_names=[*NAMES, "x"])
        assert np.diff(truth.indptr).tolist() == [len(row) for row in rows]
    (tmp_path / "p.jsonl").write_text('["Law"]\nLaw\n["Law"]\n')
    with damaged(tmp_path / "p.jsonl", 2):
        xc.formats.read_truth(tmp_path / "p.jsonl", label_names=NAMES)
