"""Numba kernels: one file a job, input trusted.

A kernel file may import ``elementary``, ``random`` and ``tiles`` of this room and no other. Numba's cache knows a function by
its own file alone, so the cache folder is named by a digest of all kernel files: editing any of them starts an empty folder,
and none goes stale.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numba
from numba.core import event


@functools.cache
def digest() -> str:
    """Of all kernel files' names and content."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()


@functools.cache
def _cache_folder() -> str:
    """Below ``$NUMBA_CACHE_DIR``, else beside the kernels, else (a folder that cannot be written) the user's cache."""
    here = Path(__file__).parent
    home = numba.config.CACHE_DIR
    if not home:
        home = here / "__pycache__"
        if not os.access(home if home.is_dir() else here, os.W_OK):
            home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xcrepro/numba"
    return str(Path(home) / f"kernels-{digest()[:16]}")


def kernel(function: Callable | None = None, **options) -> Callable:
    """``numba.njit``, without the interpreter's lock, cached in the folder of this content of the kernel files."""
    if function is None:
        return functools.partial(kernel, **options)
    # numba chooses the folder when caching is enabled, from a setting that is all code's: so it is put back at once.
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, _cache_folder()
    try:
        return numba.njit(nogil=True, cache=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


class _Compiling(event.Listener):
    """Says once, to a person at a terminal, why the first call takes so long."""

    said = False

    def on_start(self, happened: event.Event) -> None:
        if not self.said and happened.data["dispatcher"].py_func.__module__.startswith(__name__):
            self.said = True
            text = (
                "xcrepro: compiling what this call needs, once; it may take ten seconds, and later calls start at once"
            )
            print(text, file=sys.stderr, flush=True)

    def on_end(self, happened: event.Event) -> None:
        pass


if sys.stderr is not None and sys.stderr.isatty():
    event.register("numba:compile", _Compiling())
