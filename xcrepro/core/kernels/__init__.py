"""Kernels: one file a job, input trusted; compiled by numba where there is one, else interpreted, with the same bits.

A kernel file may import ``elementary``, ``random`` and ``tiles`` of this room and no other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from xcrepro.core.kernels import interpreted, narrow

if np.dtype(np.intp).itemsize < 8:
    narrow.apply()
try:
    from xcrepro.core.kernels import compiled
except ModuleNotFoundError as error:
    if error.name not in ("numba", "llvmlite"):
        raise
    compiled = None  # type: ignore[assignment]


def kernel(function: Callable | None = None, *, plain: Callable | None = None, **options) -> Callable:
    """``numba.njit``, without the interpreter's lock, kept on disk; without numba, ``plain`` or the function interpreted.

    plain: the same in NumPy's terms, for a kernel that the interpreter cannot run, or runs too slowly.
    """
    if function is None:
        return functools.partial(kernel, plain=plain, **options)
    if compiled is None:
        return interpreted.Interpreted(function, plain)
    made: Any = compiled.kernel(function, options)
    made.plain = plain  # for those that call it, interpreted
    return made
