"""What a user feels of compiled kernels, by numba's insides: each may change with its next version, and none is needed.

A damaged or unwritable cache costs a line and not the run (``_Sealed``, ``_Forgiving``: numba's cache files and its cache).
Processes that start together compile each kernel once (``CompiledOnce``: the dispatcher's ``compile``). A first call on little
data is interpreted (``OnceItPays``: its ``_compile_for_args``). A first call that compiles says so (``_Told``: numba's events).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import caching, event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from xcrepro.core.kernels import cache, interpreted

try:
    import fcntl
except ImportError:  # Windows: two processes may compile the same kernel
    fcntl = None  # type: ignore[assignment]


def improved(made: Any, function: Callable) -> Callable:
    """A dispatcher of numba with all of the above."""
    if isinstance(made, CPUDispatcher):
        if isinstance(getattr(made, "_cache", None), caching.FunctionCache):
            made._cache = _Forgiving(made._cache)  # type: ignore[attr-defined]
        made.__class__ = OnceItPays if interpreted.can_be(function) else CompiledOnce
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
        return getattr(self, "plain", None) or interpreted.interpreted(self.py_func)


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

    def __init__(self, of) -> None:
        self._cache = of
        if type(getattr(of, "_cache_file", None)) is caching.IndexDataCacheFile:
            of._cache_file.__class__ = _Sealed

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
            cache.say("unread", f"a compiled kernel cannot be read ({error}) and is compiled anew")
            with contextlib.suppress(Exception):
                self._cache.flush()  # else the index, which may be what is wrong, would be read again
            return None

    def save_overload(self, *made) -> None:
        try:
            self._cache.save_overload(*made)
        except OSError as error:
            cache.not_kept(error)


class _Told(event.Listener):
    """Says once why the first call takes so long."""

    def on_start(self, happened: event.Event) -> None:
        if happened.data["dispatcher"].py_func.__module__.startswith(cache.OURS):
            does = (
                "compiling what this call needs, once; it may take ten seconds and more, and later calls start at once"
            )
            cache.say("compiling", does)

    def on_end(self, happened: event.Event) -> None:
        pass


event.register("numba:compile", _Told())
