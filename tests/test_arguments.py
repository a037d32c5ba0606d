"""The rules that arguments share: what each takes, and what the error says."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pytest

from tests.refused import refused
from xcrepro import arguments
from xcrepro.errors import ArgumentError


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
    with refused("n", repr(value), match="from 1 to 9"):
        arguments.whole_number("n", value, 1, 9)


@pytest.mark.parametrize("value", [0, 1.5, math.nan, math.inf, True, "1", None, Decimal(1), np.ones(1)])
def test_what_is_no_number_above_0_and_at_most_1(value):
    with refused("x", match="above 0 and at most 1"):
        arguments.real_number("x", value, above=0, at_most=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arguments.real_number("x", math.nan, finite=False), "x must be a number (infinity allowed); got nan"),
        (lambda: arguments.one_of("over", ["all"], ("all", "test")), "over must be one of 'all', 'test'; got ['all']"),
        (lambda: arguments.one_of("over", "tests", ("all", "test")), "got 'tests': did you mean 'test'?"),
        (lambda: arguments.some_of("metrics", ["R", "p"], ("P", "R")), "got ['p']: known: P, R"),
        (lambda: arguments.some_of("metrics", [], ("P", "R")), "metrics must hold known names, one or more; got none"),
        (lambda: arguments.label_values("w", [1, -1]), "w must be finite, 0 or more; got -1.0 for label 1"),
        (lambda: arguments.label_values("w", [1, 0], zero=False), "w must be positive and finite; got 0.0 for label 1"),
        (lambda: arguments.label_values("w", [1, 9], at_most=5), "w must be finite, 0 or more, at most 5; got 9.0"),
    ],
)
def test_what_else_is_refused(call, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        call()
