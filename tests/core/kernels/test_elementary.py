"""exp, log, tanh and the like against exact arithmetic: Python's decimal, at 60 digits."""

from __future__ import annotations

import decimal
import itertools
import math

import numpy as np
import pytest

from xcrepro.core import arithmetic
from xcrepro.core.kernels import elementary

LN2 = math.log(2.0)
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, -1e-310, 1.0, -1.0, 1e308, -1e308, 2.0**-54]


def exact(name: str, x: float) -> decimal.Decimal:
    """The value at 60 digits."""
    x = decimal.Decimal(x)
    if name == "exp":
        return x.exp()
    if name == "log":
        return x.ln()
    if name == "log2":
        return x.ln() / decimal.Decimal(2).ln()
    if name == "log1p":
        return (1 + x).ln()
    if name == "expm1":
        return x.exp() - 1
    if name == "sigmoid":
        return 1 / (1 + (-x).exp())
    if name == "softplus":
        return (1 + x.exp()).ln()
    return 1 - 2 / ((2 * x).exp() + 1)  # tanh


def points(name: str) -> np.ndarray:
    """Where it is looked at: over the whole range, about the seams of the polynomials, and next to the edges."""
    rng = np.random.default_rng(0)
    near = (1.0 + np.arange(-40, 41) * 2.0**-52) * np.ones((3, 1))
    wide = np.exp2(rng.uniform(-1074, 1023, 1200))
    small = np.concatenate([rng.uniform(-1, 1, 600), np.exp2(rng.uniform(-1000, 0, 200)) * rng.choice([-1, 1], 200)])
    if name in ("log", "log2"):
        seams = np.sqrt([0.5, 1.0, 2.0])[:, None] * near
        return np.concatenate([wide, seams.ravel(), 2.0 ** np.arange(-1074, 1024), rng.uniform(0.5, 2, 600)])
    if name == "log1p":
        bent = np.array([np.sqrt(0.5) - 1, np.sqrt(2.0) - 1])[:, None] * near[:2]
        return np.concatenate([wide, small, bent.ravel(), -1 + np.exp2(rng.uniform(-53, 0, 300))])
    reach = {"exp": 745.0, "expm1": 709.0, "tanh": 30.0}.get(name, 740.0)
    seams = ((np.arange(-20, 21) + 0.5) * LN2)[:, None] * near[0]
    seams = np.concatenate([seams.ravel(), (0.625 * near[0]), -0.625 * near[0]])
    found = np.concatenate([rng.uniform(-reach, reach, 1200), small, seams])
    return found[found <= 709.7]


def ulps(got: np.ndarray, name: str, x: np.ndarray, dtype: type = np.float64) -> float:
    """The largest error in units in the last place of the right value."""
    info = np.finfo(dtype)
    worst = 0.0
    with decimal.localcontext(prec=60):
        for at, value in zip(x.tolist(), got.tolist(), strict=True):
            # 1 + x and 1 + exp(x) need more digits where the other is small.
            small = (name == "softplus" and at < -60) or (name not in ("exp", "log", "log2") and abs(at) < 1e-30)
            with decimal.localcontext(prec=400 if small else 60):
                right = exact(name, at)
            size = abs(float(right))
            unit = (
                max(2.0 ** (math.frexp(size)[1] - 1 - info.nmant), float(info.smallest_subnormal)) if size else 5e-324
            )
            worst = max(worst, float(abs(decimal.Decimal(value) - right) / decimal.Decimal(unit)))
    return worst


@pytest.mark.parametrize("name", ["exp", "log", "log2", "log1p", "expm1", "tanh", "sigmoid", "softplus"])
def test_errors_are_within_what_is_stated(name):
    x = points(name)
    kernel = getattr(elementary, name)
    got = np.array([kernel(value) for value in x])
    assert 0 < ulps(got, name, x) <= elementary.ERRORS[name]
    if name != "tanh":
        np.testing.assert_array_equal(getattr(arithmetic, name)(x), got)


def test_errors_of_a_ratios_log_are_within_what_is_stated():
    rng = np.random.default_rng(0)
    wide, b = np.exp2(rng.uniform(-1022, 1023, (2, 600))), rng.uniform(0.3, 3, 600)
    seams = [b * times * (1 + rng.integers(-3, 4, 600) * 2.0**-52) for times in np.sqrt([0.5, 1.0, 2.0])]
    worst = 0.0
    with decimal.localcontext(prec=60):
        for tops, lows in [wide, (rng.uniform(0.3, 3, 600), b), *((seam, b) for seam in seams)]:
            for x, y in zip(tops.tolist(), lows.tolist(), strict=True):
                right = (decimal.Decimal(x) / decimal.Decimal(y)).ln()
                error = abs(decimal.Decimal(float(elementary.log_ratio(x, y))) - right)
                worst = max(worst, float(error) / math.ulp(float(right)))
    assert 0 < worst <= elementary.ERRORS["log_ratio"]


EXTREMES = [0.0, 5e-324, 1e-310, 1.0, 1e308, -1.0, np.inf, np.nan]


@pytest.mark.parametrize("pair", [*itertools.product(EXTREMES, repeat=2)])
def test_the_edges_of_a_ratios_log(pair):
    a, b = map(np.float64, pair)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(elementary.log_ratio(a, b), np.log(a / b), rtol=1e-13)


@pytest.mark.parametrize("name", ["exp32", "tanh32", "sigmoid32"])
def test_errors_in_float32_are_within_what_is_stated(name):
    rng = np.random.default_rng(0)
    reach = {"exp32": 88.0, "tanh32": 12.0}.get(name, 87.0)
    x = np.concatenate([rng.uniform(-reach, reach, 1500), rng.uniform(-1, 1, 500), np.exp2(rng.uniform(-60, 0, 200))])
    x = x.astype(np.float32)
    exactly = np.array([getattr(elementary, name)(value) for value in x])
    got = exactly.astype(np.float32)
    np.testing.assert_array_equal(got, exactly)  # float32 as they come
    assert 0 < ulps(got, name.removesuffix("32"), x, np.float32) <= elementary.ERRORS[name]


@pytest.mark.parametrize("name", ["exp", "log", "log2", "log1p", "expm1", "tanh"])
def test_the_edges_are_numpys(name):
    x = np.array([*EDGES, 709.7, 709.8, 710.0, -708.0, -745.1, -745.2, -746.0, -800.0, 0.5, -0.5, -2.0, 30.0, -30.0])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x)
    got = np.array([getattr(elementary, name)(value) for value in x])
    odd = ~np.isfinite(want) | (want == 0)
    np.testing.assert_array_equal(got[odd], want[odd])
    np.testing.assert_array_equal(np.signbit(got[odd & ~np.isnan(want)]), np.signbit(want[odd & ~np.isnan(want)]))
    np.testing.assert_allclose(got[~odd], want[~odd], rtol=2e-15, atol=5e-324)


def test_the_edges_of_the_logistic_functions():
    x = np.array([np.inf, -np.inf, 800.0, -800.0, 0.0, -0.0])
    np.testing.assert_array_equal(arithmetic.sigmoid(x), [1, 0, 1, 0, 0.5, 0.5])
    np.testing.assert_array_equal(arithmetic.softplus(x)[:4], [np.inf, 0, 800, 0])
    assert np.isnan(arithmetic.sigmoid(np.nan))
    assert np.isnan(arithmetic.softplus(np.nan))


@pytest.mark.parametrize("name", ["exp32", "tanh32", "sigmoid32"])
def test_the_edges_in_float32(name):
    x = np.array([np.inf, -np.inf, np.nan, 0.0, 88.7, 88.8, 100.0, -87.0, -103.0, -104.0, -150.0], np.float32)
    with np.errstate(all="ignore"):
        want = {"exp32": np.exp, "tanh32": np.tanh, "sigmoid32": lambda v: 1 / (1 + np.exp(-v))}[name](x)
    got = np.array([getattr(elementary, name)(value) for value in x])
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1.5e-45)


def test_whole_numbers_are_exact():
    powers = np.arange(-1074, 1024)
    np.testing.assert_array_equal(arithmetic.log2(np.ldexp(1.0, powers)), powers)
    assert (arithmetic.exp(0.0), arithmetic.log(1.0), arithmetic.log1p(0.0), arithmetic.power(2.0, 0)) == (1, 0, 0, 1)
