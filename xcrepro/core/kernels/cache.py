"""Where numba keeps what it compiles of the kernels.

Numba's cache knows a function by its own file alone, and by the place of that file. So each kernel file has a cache folder of
its own, named by a digest of what it is made of: an edited file starts an empty one, none goes stale, and two copies of the
package share what is compiled.
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

_SHARED = tuple(
    Path(__file__).with_name(f"{name}.py")
    for name in ("__init__", "cache", "compiled", "insides", "elementary", "random", "tiles")
)

OURS = "xcrepro.core.kernels", "xcrepro.models.kernels"


@functools.cache
def home() -> Path | None:
    """Where compiled kernels lie: ``$NUMBA_CACHE_DIR``, else the user's cache, else beside them; None: none can be written."""
    given = getattr(numba.config, "CACHE_DIR", "")
    places = [Path(given)] if given else []
    with contextlib.suppress(RuntimeError):  # a user without a home
        places.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xcrepro" / "numba")
    for place in (*places, Path(__file__).parent / "__pycache__"):
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK):
                return place
    return None


@functools.cache
def folder(file: Path) -> Path:
    """That of a kernel file, named by its content, that of those it may import, and by who compiles it, how."""
    parts = sorted({file, *_SHARED})
    whole = f"{numba.__version__} {getattr(numba.config, 'OPT', '')}".encode() + b"".join(
        part.read_bytes() for part in parts
    )
    return (home() or Path()) / f"{file.stem}-{hashlib.sha256(whole).hexdigest()[:16]}"


class Place:
    """Where numba keeps a kernel, by content and not by the package's place (``NUMBA_CACHE_LOCATOR_CLASSES``)."""

    def __init__(self, file: Path, line: int) -> None:
        self._file, self._line = file, line

    @classmethod
    def from_function(cls, py_func: Callable, py_file: str) -> Place:
        return cls(Path(py_file), py_func.__code__.co_firstlineno)

    def get_cache_path(self) -> str:
        return str(folder(self._file))

    def get_source_stamp(self) -> str:
        return folder(self._file).name

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        folder(self._file).mkdir(parents=True, exist_ok=True)


_SAID: set[str] = set()


def say(what: str, text: str) -> None:
    """A line, once in a process."""
    if what not in _SAID and sys.stderr is not None:
        _SAID.add(what)
        print(f"xcrepro: {home()}: {text}", file=sys.stderr, flush=True)


def not_kept(error: Exception) -> None:
    say("unkept", f"compiled kernels cannot be kept ({error}): every new process compiles them again")
