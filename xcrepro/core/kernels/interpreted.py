"""Kernels as plain Python, with the bits that they have compiled: for a first call on little data, which compiling would delay.

Compiled, whole numbers are 64 bits wide, and so are reals, whatever the array that they come from. (Two float32 numbers that
meet each other are the exception: kernels of such arithmetic are always compiled.) An overflow wraps around, and a division by
zero is infinity. NumPy's own numbers are as narrow as their array, and warn. So the interpreter sees arrays whose numbers are
widened as they are taken out.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np

FILES = frozenset({"calibration", "elementary", "exact", "labelwise", "parse", "ranking", "sets", "topk", "truth"})
"""The kernels of reading, of :class:`TopK` and of ``evaluate``."""

MOST = 0 if os.environ.get("XCREPRO_INTERPRET") == "0" else 2**18
"""Numbers in arrays that a kernel is given, in a process, before it pays to compile it."""

_NARROW = np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32
_WIDER = dict.fromkeys(_NARROW, np.int64) | {np.bool_: bool, np.float16: np.float64, np.float32: np.float64}


class _Wide(np.ndarray):
    """An array whose numbers are widened as they are taken out."""

    def __getitem__(self, at):
        found = super().__getitem__(at)
        wider = _WIDER.get(type(found))
        return found if wider is None else wider(found)


def _seen(value):
    """What the interpreter is given in a value's place."""
    if isinstance(value, np.ndarray):
        return value.view(_Wide if value.dtype.type in _WIDER else np.ndarray)
    if type(value) in (int, float):
        return np.int64(value) if type(value) is int else np.float64(value)
    return value


def _returned(value):
    """What a compiled kernel would return in its place."""
    if isinstance(value, tuple):
        return tuple(map(_returned, value))
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    return value.item() if isinstance(value, np.generic) else value


def can_be(function: Callable) -> bool:
    """Has the function of a kernel, interpreted, the bits that it has compiled? What is made of float32 says so in its name."""
    return Path(function.__code__.co_filename).stem in FILES and "32" not in function.__name__


def _making(function: Callable) -> Callable:
    return lambda *args, **named: _seen(function(*args, **named))


_MAKE = "empty", "zeros", "full", "empty_like", "zeros_like"
_NUMPY = types.SimpleNamespace(**{**vars(np), **{name: _making(getattr(np, name)) for name in _MAKE}})

_names: dict[str, dict] = {}


def _inner(function: Callable) -> Callable:
    """A kernel's function, which finds the interpreted ones where it calls others."""
    module = function.__module__
    if module not in _names:
        names = _names[module] = dict(vars(sys.modules[module]))
        for name, value in vars(sys.modules[module]).items():
            if value is np:
                names[name] = _NUMPY
            elif hasattr(value, "py_func"):
                names[name] = _inner(value.py_func)
            elif isinstance(value, np.ndarray):
                names[name] = _seen(value)
    return types.FunctionType(function.__code__, _names[module], function.__name__, function.__defaults__)


def interpreted(function: Callable) -> Callable:
    """The function of a kernel, to be called as the kernel is."""
    inner = _inner(function)

    @functools.wraps(function)
    def call(*args):
        with np.errstate(all="ignore"):
            return _returned(inner(*map(_seen, args)))

    return call
