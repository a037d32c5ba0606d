"""Numba kernels: one file a job, input trusted.

A kernel file may import ``elementary``, ``random`` and ``tiles`` of this room and no other. Numba's cache knows a function by
its own file alone, and by the place of that file. So each kernel file has a cache folder of its own, named by a digest of what
it is made of: an edited file starts an empty one, none goes stale, and two copies of the package share what is compiled.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numba
from numba.core import event

_SHARED = tuple(Path(__file__).with_name(f"{name}.py") for name in ("__init__", "elementary", "random", "tiles"))

_OURS = __name__, "xcrepro.models.kernels"


@functools.cache
def home() -> Path | None:
    """Where compiled kernels lie: ``$NUMBA_CACHE_DIR``, else the user's cache, else beside them; None: none can be written."""
    places = [Path(numba.config.CACHE_DIR)] if numba.config.CACHE_DIR else []
    with contextlib.suppress(RuntimeError):  # a user without a home
        places.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xcrepro" / "numba")
    for place in (*places, Path(__file__).parent / "__pycache__"):
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK):
                return place
    return None


@functools.cache
def _folder(file: Path) -> Path:
    """That of a kernel file, named by its content, that of those it may import, and by who compiles it, how."""
    parts = sorted({file, *_SHARED})
    whole = f"{numba.__version__} {numba.config.OPT}".encode() + b"".join(part.read_bytes() for part in parts)
    return home() / f"{file.stem}-{hashlib.sha256(whole).hexdigest()[:16]}"


class Place:
    """Where numba keeps a kernel, by content and not by the package's place (``NUMBA_CACHE_LOCATOR_CLASSES``)."""

    def __init__(self, file: Path, line: int) -> None:
        self._file, self._line = file, line

    @classmethod
    def from_function(cls, py_func: Callable, py_file: str) -> Place:
        return cls(Path(py_file), py_func.__code__.co_firstlineno)

    def get_cache_path(self) -> str:
        return str(_folder(self._file))

    def get_source_stamp(self) -> str:
        return _folder(self._file).name

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        _folder(self._file).mkdir(parents=True, exist_ok=True)


def kernel(function: Callable | None = None, **options) -> Callable:
    """``numba.njit``, without the interpreter's lock, cached in the folder of this content of the kernel's file."""
    if function is None:
        return functools.partial(kernel, **options)
    if home() is None:
        return numba.njit(nogil=True, **options)(function)
    # Numba chooses the folder when caching is enabled, from settings that are all code's: so they are put back at once.
    # Versions that do not ask a class of ours (before 0.62) have a folder for each place of the package.
    ours = {
        "CACHE_LOCATOR_CLASSES": f"{__name__}.Place",
        "CACHE_DIR": str(_folder(Path(function.__code__.co_filename))),
    }
    before = {name: getattr(numba.config, name, None) for name in ours}
    try:
        vars(numba.config).update(ours)
        return numba.njit(nogil=True, cache=True, **options)(function)
    finally:
        vars(numba.config).update(before)


class _Compiling(event.Listener):
    """Says once, to a person at a terminal, why the first call takes so long."""

    said = False

    def on_start(self, happened: event.Event) -> None:
        if not self.said and happened.data["dispatcher"].py_func.__module__.startswith(_OURS):
            self.said = True
            text = (
                "xcrepro: compiling what this call needs, once; it may take ten seconds, and later calls start at once"
            )
            print(text, file=sys.stderr, flush=True)

    def on_end(self, happened: event.Event) -> None:
        pass


if sys.stderr is not None and sys.stderr.isatty():
    event.register("numba:compile", _Compiling())
