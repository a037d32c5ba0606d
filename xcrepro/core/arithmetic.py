"""exp, log, products and the like of arrays, the same bits on every machine, for what no kernel computes.

Use these in place of NumPy's, SciPy's and ``math``'s wherever a number decides a prediction, a fitted parameter or a
draw. Square roots, sums and the four operations are the same everywhere as NumPy has them. Of a single number the result is a
float, of an array an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import elementary, random, tiles


def _mapped(kernel: Callable, x, dtype: type = np.float64) -> Any:
    values: np.ndarray = np.asarray(x, dtype)
    out: np.ndarray = np.empty(values.shape, dtype)
    kernel(np.ascontiguousarray(values).reshape(-1), out.reshape(-1))
    return out if values.ndim else float(out)


def exp(x) -> Any:
    """e to the power of each value; float64, a float of a single number. Overflow is infinity, without a warning."""
    return _mapped(elementary.exps, x)


def log(x) -> Any:
    """Natural logarithms; minus infinity of 0 and NaN below it, without a warning."""
    return _mapped(elementary.logs, x)


def log1p(x) -> Any:
    """log(1 + x)."""
    return _mapped(elementary.log1ps, x)


def log2(x) -> Any:
    """Logarithms to base 2, exact for powers of two."""
    return _mapped(elementary.log2s, x)


def expm1(x) -> Any:
    """exp(x) - 1."""
    return _mapped(elementary.expm1s, x)


def power(x, exponent: float) -> Any:
    """x ** exponent for x > 0, as exp(exponent * log(x)); the error grows with the size of that product."""
    return exp(exponent * log(x))


def sigmoid(x) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    return _mapped(elementary.sigmoids, x)


def softplus(x) -> Any:
    """log(1 + exp(x)), without overflow."""
    return _mapped(elementary.softplusses, x)


def exp32(x) -> np.ndarray:
    """As :func:`exp`, of float32 and in float32."""
    return _mapped(elementary.exps32, x, np.float32)


def tanh32(x) -> np.ndarray:
    """The hyperbolic tangent, of float32 and in float32."""
    return _mapped(elementary.tanhs32, x, np.float32)


def sigmoid32(x) -> np.ndarray:
    """As :func:`sigmoid`, of float32 and in float32."""
    return _mapped(elementary.sigmoids32, x, np.float32)


def product(A, B, out: np.ndarray | None = None) -> Any:
    """``A @ B`` of dense matrices and vectors: each output the sum of its products from 0 on, in rising order.

    If both are float32 so is every step; else all is float64.
    """
    A, B = np.asarray(A), np.asarray(B)
    kind = np.float32 if A.dtype == B.dtype == np.float32 else np.float64
    rows, columns = np.atleast_2d(A.astype(kind, copy=False)), B.astype(kind, copy=False)
    columns = columns if B.ndim == 2 else columns[:, None]
    if rows.shape[1] != columns.shape[0]:
        raise ArgumentError("B", "must have as many rows as A has columns", f"shapes {A.shape} and {B.shape}")
    result = np.empty((rows.shape[0], columns.shape[1]), kind) if out is None else out
    tiles.product(rows, columns, result)
    result = result.reshape(A.shape[:-1] + B.shape[1:])
    return result if result.ndim else float(result)


def normals(seed: int, stream: int, *shape: int) -> np.ndarray:
    """Standard normal numbers, float64: those of one stream of a seed; streams are independent of each other."""
    out = np.empty(shape)
    random.normals(np.uint64(random.key(seed, stream, 0)), out.reshape(-1))
    return out


def poissons(seed: int, means) -> np.ndarray:
    """Poisson numbers, int64, one for each mean; each depends on the seed, its place and its mean alone."""
    means = np.ascontiguousarray(means, np.float64)
    out = np.empty(means.shape, np.int64)
    random.poissons(seed, 0, means.reshape(-1), out.reshape(-1))
    return out


def betas(a: float, b: float, shape, rng: np.random.Generator) -> np.ndarray:
    """Numbers of the beta law, float64, from a generator's uniform ones: Johnk's way, quick where a and b are not above 2."""
    out = np.empty(shape)
    flat, filled = out.reshape(-1), 0
    while filled < flat.size:
        one, other = (power(rng.random(flat.size - filled), 1.0 / each) for each in (a, b))
        both = one + other
        kept = (both > 0.0) & (both <= 1.0)
        found = one[kept] / both[kept]
        flat[filled : filled + found.size] = found
        filled += found.size
    return out
