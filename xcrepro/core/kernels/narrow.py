"""On 32-bit builds, a browser's, NumPy's ``repeat`` and ``bincount`` refuse int64 numbers, which counts and ids are here.

What fits is cast; what does not fit raises, as no memory of such a machine could hold what it counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np


def _fitting(function: Callable, at: int) -> Callable:
    """The function, with whole numbers of its argument number ``at`` as indices of this machine."""

    @functools.wraps(function)
    def call(*args, **named):
        given = list(args)
        if at < len(given):
            numbers = np.asarray(given[at])
            if numbers.dtype.kind in "iu" and numbers.dtype.itemsize > np.dtype(np.intp).itemsize:
                if numbers.size and numbers.max() > np.iinfo(np.intp).max:
                    raise OverflowError(f"{function.__name__}: {numbers.max()} is too large for a 32-bit machine")
                given[at] = numbers.astype(np.intp)
        return function(*given, **named)

    return call


def apply() -> None:
    """For this process."""
    np.repeat, np.bincount = _fitting(np.repeat, 1), _fitting(np.bincount, 0)
