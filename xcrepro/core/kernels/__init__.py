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
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import caching, event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from xcrepro.core.kernels import interpreted

try:
    import fcntl
except ImportError:  # Windows: two processes may compile the same kernel
    fcntl = None  # type: ignore[assignment]

_SHARED = tuple(Path(__file__).with_name(f"{name}.py") for name in ("__init__", "elementary", "random", "tiles"))

_OURS = __name__, "xcrepro.models.kernels"


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
def _folder(file: Path) -> Path:
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
    made = _compiling(function, options)
    if isinstance(made, CPUDispatcher):
        made.__class__ = OnceItPays if interpreted.can_be(function) else CompiledOnce
    return made


def _compiling(function: Callable, options: dict) -> Callable:
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
        made = numba.njit(nogil=True, cache=True, **options)(function)
    except (OSError, RuntimeError) as error:  # a folder that cannot be made, or none that numba takes
        _not_kept(error)
        return numba.njit(nogil=True, **options)(function)
    finally:
        vars(numba.config).update(before)
    if hasattr(made, "_cache"):
        made._cache = _Forgiving(made._cache)
    return made


class CompiledOnce(CPUDispatcher):
    """A kernel that one process compiles for all: who comes while it is compiled waits, and loads it."""

    _cache: Any

    def compile(self, sig):
        if not isinstance(self._cache, _Forgiving):
            return super().compile(sig)  # type: ignore[misc]
        # No two wait for each other: what a kernel calls never calls that kernel.
        with global_compiler_lock, contextlib.ExitStack() as self._cache.until_kept:
            return super().compile(sig)  # type: ignore[misc]


class OnceItPays(CompiledOnce):
    """A kernel that is interpreted where it is not compiled yet and would take longer to compile than to interpret."""

    given = 0  # numbers so far
    unkept = False  # is it known to be missing in the cache?

    def _compile_for_args(self, *args):
        """The function to call: where numba has none for arguments of these types, it asks here."""
        self.given += sum(array.size for array in args if isinstance(array, np.ndarray))
        if self.given > interpreted.MOST:
            return super()._compile_for_args(*args)  # type: ignore[misc]
        return self._kept(args) or self.interpreted

    def _kept(self, args: tuple) -> Callable | None:
        """What the cache has, which is as quick to load as to interpret."""
        if self.unkept or not isinstance(self._cache, _Forgiving):
            return None
        with global_compiler_lock:
            self._cache.misses_end = True
            try:
                return super()._compile_for_args(*args)  # type: ignore[misc]
            except _Missing:
                self.unkept = True
                return None
            finally:
                self._cache.misses_end = False

    @functools.cached_property
    def interpreted(self) -> Callable:
        return interpreted.interpreted(self.py_func)


class _Missing(Exception):
    """A kernel is not in the cache."""


class _Sealed(caching.IndexDataCacheFile):
    """Numba's files of one kernel, each with a digest before it: code that was cut or changed would end the process."""

    def _save_data(self, name: str, data: object) -> None:
        packed = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(packed).digest() + packed)

    def _load_data(self, name: str) -> object:
        with open(self._data_path(name), "rb") as file:
            digest, packed = file.read(32), file.read()
        if hashlib.sha256(packed).digest() != digest:
            raise ValueError(f"{name} is damaged")
        return pickle.loads(packed)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Other processes that lock this file wait; a process that is killed holds nothing."""
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Forgiving:
    """A kernel's cache in which what cannot be read is a miss, and what cannot be kept is not kept."""

    misses_end = False  # is a miss _Missing, instead of None, upon which numba compiles?
    until_kept: contextlib.ExitStack  # what is given back once the kernel is compiled and kept

    def __init__(self, cache) -> None:
        self._cache = cache
        if type(getattr(cache, "_cache_file", None)) is caching.IndexDataCacheFile:
            cache._cache_file.__class__ = _Sealed

    def __getattr__(self, name: str):
        return getattr(self._cache, name)

    def load_overload(self, *key):
        found = self._load(*key)
        if found is None and self.misses_end:
            raise _Missing
        if found is None and fcntl is not None:
            with contextlib.suppress(OSError):  # a disk without locks
                self._cache._impl.locator.ensure_cache_path()
                lock = Path(self._cache.cache_path, f"{self._cache._impl.filename_base}.lock")
                self.until_kept.enter_context(_locked(lock))
                found = self._load(*key)
        return found

    def _load(self, *key):
        try:
            return self._cache.load_overload(*key)
        except Exception as error:  # an emptied, cut or foreign file can be wrong in any way
            _say("unread", f"a compiled kernel cannot be read ({error}) and is compiled anew")
            with contextlib.suppress(Exception):
                self._cache.flush()  # else the index, which may be what is wrong, would be read again
            return None

    def save_overload(self, *made) -> None:
        try:
            self._cache.save_overload(*made)
        except OSError as error:
            _not_kept(error)


_SAID: set[str] = set()


def _say(what: str, text: str) -> None:
    """A line, once in a process."""
    if what not in _SAID and sys.stderr is not None:
        _SAID.add(what)
        print(f"xcrepro: {home()}: {text}", file=sys.stderr, flush=True)


def _not_kept(error: Exception) -> None:
    _say("unkept", f"compiled kernels cannot be kept ({error}): every new process compiles them again")


class _Told(event.Listener):
    """Says once why the first call takes so long."""

    def on_start(self, happened: event.Event) -> None:
        if happened.data["dispatcher"].py_func.__module__.startswith(_OURS):
            does = (
                "compiling what this call needs, once; it may take ten seconds and more, and later calls start at once"
            )
            _say("compiling", does)

    def on_end(self, happened: event.Event) -> None:
        pass


event.register("numba:compile", _Told())
