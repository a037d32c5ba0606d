"""Filter files made from texts and names."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.__main__ import main
from xcrepro.core.data import make_filter, read_filter, read_texts, write_filter
from xcrepro.core.data.names import LabelNames

TEXTS = st.lists(st.lists(st.sampled_from(["a", "B", "cat", "a-b", "!"]), max_size=5).map(" ".join), max_size=4)


def as_pairs(found):
    return [*zip(*(part.tolist() for part in found), strict=True)]


@given(TEXTS, TEXTS)
def test_the_rules_are_those_of_a_search(texts, names):
    def padded(text):
        return f" {' '.join(re.findall('[a-z]+', text.lower()))} "

    every = [(row, label) for row in range(len(texts)) for label in range(len(names)) if padded(names[label]).strip()]
    same = [(row, label) for row, label in every if padded(names[label]) == padded(texts[row])]
    contained = [(row, label) for row, label in every if padded(names[label]) in padded(texts[row])]
    assert as_pairs(make_filter(texts, names)) == same
    assert as_pairs(make_filter(texts, names, "contained")) == contained


def test_codes_come_before_names():
    texts, labels = LabelNames(("cats", "dogs"), ("7", "8")), LabelNames(("dogs", "cats"), ("9", "7"))
    assert as_pairs(make_filter(texts, labels)) == [(0, 1)]
    assert as_pairs(make_filter(texts.names, labels)) == [(0, 1), (1, 0)]  # texts without codes: by name


def test_what_is_written_is_read_back_and_filters(tmp_path):
    path = tmp_path / "filter_labels_test.txt"
    found = make_filter(["a dog", "cat"], ["cat", "dog"], "contained", shape=(2, 2))
    write_filter(path, *found)
    assert path.read_text() == "0 1\n1 0\n"
    back = read_filter(path, shape=(2, 2))
    assert xc.TopK.from_scores(np.array([[0.1, 0.9], [0.8, 0.2]]), 1, exclude=back).ids.tolist() == [[0], [1]]
    write_filter(path, [], [])
    assert as_pairs(read_filter(path)) == []


def test_the_command(tmp_path, capsys):
    texts, labels, out = (tmp_path / name for name in ("tst.json", "lbl.json", "filter_labels_test.txt"))
    rows = [{"uid": "1", "title": "Cats", "content": "and dogs"}, {"uid": "2", "title": "Dogs", "content": ""}]
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    labels.write_text('{"uid": "2", "title": "cats"}\n{"uid": "3", "title": "dogs"}\n')
    (tmp_path / "truth.txt").write_text("2 2\n0:1\n1:1\n")
    given = ["filter", "make", str(out), "--force", "--texts", str(texts), "--labels", str(labels)]
    assert main([*given, "--truth", str(tmp_path / "truth.txt")]) == 0
    assert out.read_text() == "1 0\n"  # by uid
    assert main([*given, "--rule", "contained"]) == 0
    assert out.read_text() == "0 0\n0 1\n1 1\n"
    assert capsys.readouterr().out.endswith("3 pairs, of 2 of 2 points\n")
    (tmp_path / "truth.txt").write_text("3 2\n0:1\n1:1\n\n")
    assert main([*given, "--truth", str(tmp_path / "truth.txt")]) == 2
    assert "3 points; got 2" in capsys.readouterr().err


LISTS = "rows and labels"


@pytest.mark.parametrize(
    ("call", "argument", "got"),
    [
        (lambda: make_filter(["a"], ["a"], "equal"), "rule", "'equal'"),
        (lambda: make_filter("a", ["a"]), "texts", "'a'"),
        (lambda: make_filter(["a"], ["a", 3]), "label_names", 3),
        (lambda: make_filter(["a"], ["a"], shape=(1, 5)), "label_names", 1),
        (lambda: write_filter("f.txt", [0, 1], [0]), LISTS, "int64 of shape (2,), int64 of shape (1,)"),
        (lambda: read_texts("f.txt", "all"), "rule", "'all'"),
    ],
)
def test_wrong_input_is_named(call, argument, got):
    with refused(argument, got):
        call()


def test_texts_that_are_none(tmp_path):
    path = tmp_path / "tst.json"
    for second, found in (('{"uid": "3"}', "keys 'uid', .*title, content, text"), ("b", "'b'")):
        path.write_text(f'{{"title": "a"}}\n{second}\n')
        with damaged(path, line=2, match=found):
            read_texts(path)
