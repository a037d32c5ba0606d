"""The rules that arguments share: what each takes, and what the error says."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from tests.refused import refused
from xcrepro.core import arguments


def test_what_is_taken_comes_back_plain():
    assert type(arguments.whole_number("k", np.int64(3), 1)) is int
    assert type(arguments.real_number("beta", np.float32(0.5))) is float
    assert arguments.real_number("beta", math.inf, at_least=0, finite=False) == math.inf
    assert arguments.one_of("half", None, (None, "over")) is None
    assert arguments.cut_offs(np.array([5, 1], np.uint8)).dtype == np.int64
    assert arguments.label_values("w", [1, 2], 2).tolist() == [1.0, 2.0]
    assert arguments.did_you_mean("xyz", ("P", "nDCG")) == arguments.did_you_mean(3, ("P",)) == ""


@pytest.mark.parametrize("value", [0, 10, 3.0, True, np.bool_(1), "3", None])
def test_what_is_no_whole_number_from_1_to_9(value):
    with refused("n", repr(value), match="whole number from 1 to 9"):
        arguments.whole_number("n", value, 1, 9)


@pytest.mark.parametrize("value", [0, 1.5, math.nan, math.inf, True, "1", None, Decimal(1), np.ones(1)])
def test_what_is_no_number_above_0_and_at_most_1(value):
    with refused("x", match="finite .* 0 .* 1; got"):
        arguments.real_number("x", value, above=0, at_most=1)


@pytest.mark.parametrize(
    ("call", "argument", "got", "words"),
    [
        (lambda: arguments.real_number("x", math.nan, finite=False), "x", "nan", "infinity"),
        (lambda: arguments.one_of("over", ["all"], ("all", "test")), "over", "['all']", "'all', 'test'"),
        (lambda: arguments.one_of("over", "tests", ("all", "test")), "over", "'tests'", "did you mean 'test'"),
        (lambda: arguments.some_of("metrics", ["R", "p"], ("P", "R")), "metrics", "['p']", "P, R"),
        (lambda: arguments.some_of("metrics", [], ("P", "R")), "metrics", "none", "one or more"),
        (lambda: arguments.label_values("w", [1, -1]), "w", "-1.0 for label 1", "0 or more"),
        (lambda: arguments.label_values("w", [1, 0], zero=False), "w", "0.0 for label 1", "positive"),
        (lambda: arguments.label_values("w", [1, 9], at_most=5), "w", "9.0 for label 1", "at most 5"),
    ],
)
def test_what_else_is_refused(call, argument, got, words):
    with refused(argument, got, match=words):
        call()
