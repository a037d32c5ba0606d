"""Exact sums against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refused import refused
from xcrepro.core.accumulators.sums import Adder, ExactSums
from xcrepro.core.kernels import exact as kernel

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
TAME = st.floats(0, 100)


def exactly(values) -> float:
    """The sum of all, rounded once: Python's fractions know no other way."""
    total = sum(map(Fraction, values), Fraction(0))
    return total.numerator / total.denominator


@given(st.lists(st.one_of(FINITE, TAME), max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_numbers_are_added_without_rounding(values):
    half = [v / 64 for v in values]  # the sum itself must be a float64
    sums = ExactSums((1,))
    sums.add_rows(np.array(half)[:, None])
    assert sums.rounded()[0] == exactly(half)


@pytest.mark.parametrize(
    ("rows", "got"),
    [
        ([[1.0, np.inf]], "infinity or NaN"),  # one column of two
        ([[np.nan, 1.0]], "infinity or NaN"),
        ([[1.7e308, 0.0], [1.7e308, 1.0]], "a sum beyond 1.8e308"),
        ([[-1.7e308, 0.0], [-1.7e308, 1.0]], "a sum beyond 1.8e308"),
    ],
)
def test_what_no_float64_holds_is_refused(rows, got):
    sums = ExactSums((2,))
    with refused("values", got):
        sums.add_rows(np.array(rows))
        sums.rounded()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_cutting_and_merging_change_nothing(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, scale = data.draw(st.integers(1, 300)), 10.0 ** data.draw(st.integers(-300, 290))
    values = rng.random((n, 3)) * scale * 10.0 ** rng.integers(-9, 9, (n, 3))
    whole = ExactSums((3,))
    whole.add_rows(values)
    parts = []
    for rows in np.split(rng.permutation(n), np.sort(rng.integers(0, n, 4))):
        part = ExactSums((3,))
        part.add_rows(values[rows])
        parts.append(part)
    while len(parts) > 1:
        one = parts.pop(int(rng.integers(len(parts))))
        parts[int(rng.integers(len(parts)))].merge(one)
    assert parts[0].to_bytes().tobytes() == whole.to_bytes().tobytes()
    assert whole.rounded().tolist() == [exactly(column) for column in values.T]
    again = ExactSums((3,))
    again.from_bytes(whole.to_bytes())
    assert (again.integers() == whole.integers()).all()


@pytest.mark.parametrize("top", [1, 3, 5000, 9000])
def test_weights_count_rows_as_often_as_they_say(top):
    rng = np.random.default_rng(top)
    values, weights = rng.random((700, 2)), rng.integers(0, top + 1, (700, 4))
    values[3] = 1e-30  # below what two parts hold: the slow way
    adder = Adder(2, 4)
    for first in range(0, 700, 256):
        adder.add(values[first : first + 256], len(values[first : first + 256]), weights[first : first + 256])
    sums = ExactSums((4, 2))
    sums.add_totals(adder.totals())
    for s in range(4):
        for c in range(2):
            want = sum(int(w) * Fraction(v) for w, v in zip(weights[:, s], values[:, c], strict=True))
            assert sums.rounded()[s, c] == want.numerator / want.denominator


def test_many_rows_do_not_overflow_the_kernels_integers():
    adder, ones = Adder(1), np.full((kernel.ROWS, 1), 0.999999999999)
    for _ in range(2**22 // kernel.ROWS + 3):
        adder.add(ones, kernel.ROWS)
    sums = ExactSums((1,))
    sums.add_totals(adder.totals())
    n = (2**22 // kernel.ROWS + 3) * kernel.ROWS
    want = n * Fraction(0.999999999999)
    assert sums.rounded()[0] == want.numerator / want.denominator


def test_stored_sums_of_another_shape_are_refused():
    sums = ExactSums((2,))
    for wrong in (
        np.zeros((1, 3), np.uint8),
        np.zeros((2, 0), np.uint8),
        np.zeros((2, 3), np.int8),
        np.zeros(2, np.uint8),
    ):
        with pytest.raises(ValueError, match="2 sums"):
            sums.from_bytes(wrong)


def test_negative_sums_come_back():
    sums, again = ExactSums((2,)), ExactSums((2,))
    sums.add_rows(np.array([[-1.5, 1e-320], [-(2.0**70), 0.0]]))
    again.from_bytes(sums.to_bytes())
    assert again.rounded().tolist() == [-1.5 - 2.0**70, 1e-320]
