"""Kernels as numba compiles them.

What a user feels beyond that (a damaged cache, processes that start together, a first call on little data) is made of numba's
own insides, in ``insides``. Where a version of numba has others, kernels are compiled and kept as numba does by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numba

from xcrepro.core.kernels import cache

try:
    from xcrepro.core.kernels import insides
except (ImportError, AttributeError):  # another numba
    insides = None  # type: ignore[assignment]


def kernel(function: Callable, options: dict) -> Callable:
    """``numba.njit``, without the interpreter's lock, cached in the folder of this content of the kernel's file."""
    made = _compiling(function, options)
    return made if insides is None else insides.improved(made, function)


def _compiling(function: Callable, options: dict) -> Callable:
    if cache.home() is None:
        return numba.njit(nogil=True, **options)(function)
    # Numba chooses the folder when caching is enabled, from settings that are all code's: so they are put back at once.
    # Versions that do not ask a class of ours (before 0.62) have a folder for each place of the package.
    ours = {
        "CACHE_LOCATOR_CLASSES": f"{cache.__name__}.Place",
        "CACHE_DIR": str(cache.folder(Path(function.__code__.co_filename))),
    }
    before = {name: getattr(numba.config, name, None) for name in ours}
    try:
        vars(numba.config).update(ours)
        made = numba.njit(nogil=True, cache=True, **options)(function)
    except (OSError, RuntimeError) as error:  # a folder that cannot be made, or none that numba takes
        cache.not_kept(error)
        return numba.njit(nogil=True, **options)(function)
    finally:
        vars(numba.config).update(before)
    return made
