"""Hierarchies of labels: who is above whom, what is refused, and what hierarchical metrics make of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xcrepro as xc
from tests import naive
from tests.refused import refused

ANIMALS = [("poodle", "dog"), ("dog", "animal"), ("cat", "animal"), ("animal", ""), ("car", "")]
LABELS = ["dog", "poodle", "car", "cat"]
TOP = xc.TopK.from_ids([[1], [3], [2]], n_labels=4)


def sets(found: xc.Hierarchy) -> list[set[int]]:
    return [{*row.nonzero()[0].tolist()} for row in found.above.toarray()]


@given(
    pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1]), max_size=20),
    n_labels=st.integers(1, 8),
    levels=st.none() | st.integers(1, 4),
)
def test_above_a_label_is_what_one_comes_to_step_by_step(pairs, n_labels, levels):
    pairs.append((0, 9))
    found = xc.Hierarchy.from_pairs([(0, -1), *pairs], n_labels, levels=levels)
    assert sets(found) == [naive.extended({label}, pairs, levels) for label in range(n_labels)]
    again = xc.Hierarchy.unpacked(found.packed())
    assert sets(again) == sets(found)


def test_the_root_is_left_out_where_it_is_no_label_and_nothing_else_is_highest():
    def root(pairs, labels=LABELS):
        return xc.Hierarchy.from_pairs(pairs, labels).root

    below_one = [("poodle", "dog"), ("dog", "thing"), ("cat", "thing")]
    assert root(below_one) == "thing"
    assert root([*below_one, ("thing", "")]) == ""  # an empty parent is the root itself
    assert root([*below_one, ("car", "machine")]) == ""
    assert root(below_one, [*LABELS, "thing"]) == ""
    assert root([(0, 4), (1, 4)], 4) == "4"
    kept = xc.Hierarchy.from_pairs([(0, 4), (1, 4), (2, -1)], 4)
    assert sets(kept) == [{0, 4}, {1, 4}, {2}, {3}]


def test_names_that_are_paths():
    found = xc.Hierarchy.from_paths(["England -- Fiction", "England", "England -- Fiction -- 1900", "Love -- Letters"])
    assert sets(found) == [{0, 1}, {1}, {0, 1, 2}, {3, 4}]
    assert sets(xc.Hierarchy.from_paths(["a/b/c"], "/", levels=1)) == [{0, 1}]
    with refused("separator", repr(" > ")):
        xc.Hierarchy.from_paths(["England -- Fiction"], " > ")


@pytest.mark.parametrize(
    ("pairs", "labels", "argument", "got"),
    [
        ([("dog", "cat"), ("cat", "car"), ("car", "dog")], LABELS, "parents", "dog -> cat -> car -> dog"),
        ([("dog", "dog")], LABELS, "parents", "dog -> dog"),
        ([("lion", "cat-like")], LABELS, "pairs", "none of 1 pairs has a label as its child"),
        ([("dog",)], LABELS, "pairs", "('dog',)"),
        (["ab"], LABELS, "pairs", "'ab'"),
        ([(0, 0.5)], 4, "pairs", "0.5"),
        (ANIMALS, ["dog", "dog"], "labels", "'dog' twice"),
    ],
)
def test_what_is_no_hierarchy_of_the_labels(pairs, labels, argument, got):
    with refused(argument, got):
        xc.Hierarchy.from_pairs(pairs, labels)


def test_it_must_be_of_the_labels_and_be_there():
    Y, animals = np.eye(4)[:3], xc.Hierarchy.from_pairs(ANIMALS, LABELS)
    with refused("hierarchy", None):
        xc.evaluate(Y, TOP, 1, metrics="hF")
    with refused("hierarchy", "list"):
        xc.evaluate(Y, TOP, 1, metrics="hF", hierarchy=ANIMALS)
    with refused("hierarchy", 4):
        xc.evaluate(np.eye(5)[:3], xc.TopK(TOP.ids, TOP.scores, 5), 1, hierarchy=animals)
    with refused("metrics", "hF"):
        xc.evaluate(Y, TOP, 1, metrics="hF", hierarchy=animals, ties="expected")
