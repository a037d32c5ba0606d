"""Dense products: to the bit what a plain sum gives, whatever the shapes, the strides and the processor."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refused import refused
from xcrepro.core import arithmetic
from xcrepro.core.kernels import tiles

KINDS = (np.float32, np.float64)


def one_after_the_other(A, B):
    """The definition, by NumPy: all outputs side by side, term after term."""
    total = np.zeros((A.shape[0], B.shape[1]), A.dtype)
    with np.errstate(all="ignore"):
        for j in range(A.shape[1]):
            total += A[:, j : j + 1] * B[j]
    return total


def numbers(shape, kind, seed=0):
    rng = np.random.default_rng(seed)
    return ((rng.random(shape) - 0.5) * 2.0 ** rng.integers(-20, 20, shape)).astype(kind)


# Around the sizes of a tile (4 rows; 16 or 8 columns) and of a panel (256 terms, 256 columns), and without terms or outputs.
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n", "terms", "width"),
    [
        *((1, 1, 1), (4, 3, 16), (5, 7, 17), (3, 256, 8), (8, 257, 15), (2, 600, 300), (9, 2, 256), (6, 5, 273)),
        *((0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)),
    ],
)
def test_a_product_is_its_sums_to_the_bit(n, terms, width, kind):
    A, B = numbers((n, terms), kind, 1), numbers((terms, width), kind, 2)
    out = np.full((n, width), np.nan, kind)
    tiles.product(A, B, out)
    np.testing.assert_array_equal(out, one_after_the_other(A, B))


VIEWS = (
    lambda M: M,
    np.asfortranarray,
    lambda M: np.repeat(M, 2, axis=1)[:, ::2],
    lambda M: np.ascontiguousarray(M[::-1, ::-1])[::-1, ::-1],
)


@pytest.mark.parametrize("first", range(4))
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 34), st.integers(0, 2**31))
def test_a_product_does_not_see_strides(first, n, terms, width, seed):
    """Each of the three matrices in each layout once: every mix is compiled anew."""
    A, B = numbers((n, terms), np.float32, seed), numbers((terms, width), np.float32, seed + 1)
    of_a, of_b, of_out = (VIEWS[(first + i) % 4] for i in range(3))
    out = of_out(np.full((n, width), np.nan, np.float32))
    tiles.product(of_a(A), of_b(B), out)
    np.testing.assert_array_equal(out, one_after_the_other(A, B))


def test_a_product_writes_its_outputs_and_nothing_else():
    frame = np.full((20, 60), 7.0, np.float32)
    A, B = numbers((13, 5), np.float32), numbers((5, 37), np.float32)
    tiles.product(A, B, frame[3:16, 11:48])
    np.testing.assert_array_equal(frame[3:16, 11:48], one_after_the_other(A, B))
    frame[3:16, 11:48] = 7.0
    assert (frame == 7.0).all()


def test_vectors_and_types():
    A, v = numbers((5, 7), np.float32), numbers(7, np.float32, 1)
    assert arithmetic.product(A, v).shape == arithmetic.product(v, A.T).shape == (5,)
    assert isinstance(arithmetic.product(v, v), float)
    assert arithmetic.product(A, v).dtype == np.float32
    assert arithmetic.product(A, v.astype(np.float64)).dtype == np.float64
    np.testing.assert_array_equal(arithmetic.product(v, A.T), arithmetic.product(A, v))
    out = np.empty((5, 5), np.float32)
    assert np.shares_memory(arithmetic.product(A, A.T, out), out)
    with refused("B"):
        arithmetic.product(A, A)


_RUN = """
import numpy as np
from xcrepro.core import arithmetic
rng = np.random.default_rng(0)
for kind in (np.float32, np.float64):
    A, B = rng.random((37, 300)).astype(kind) - kind(0.5), rng.random((300, 51)).astype(kind)
    print(arithmetic.product(A, B).tobytes().hex())
"""


def test_a_product_has_the_same_bits_for_every_target(tmp_path, capsys):
    exec(_RUN)
    here = capsys.readouterr().out
    assert len(here.split()) == 2
    for target in ("generic", *(["haswell"] if _has_avx2() else [])):
        settings = {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path / target)}
        command = [sys.executable, "-c", _RUN]
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=True)
        assert done.stdout == here, target


def _has_avx2() -> bool:
    from numpy._core._multiarray_umath import __cpu_features__

    return __cpu_features__.get("AVX2", False)
