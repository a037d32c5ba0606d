"""Kernels as plain Python, with the bits that they have compiled: for a machine without numba, and for a first call on little
data, which compiling would delay.

Compiled, whole numbers are 64 bits wide, and so are reals, whatever the array that they come from; only two float32 numbers
that meet make a float32 number. An overflow wraps around, and a division by zero is infinity. NumPy's own numbers are as
narrow as their array, and warn. So the interpreter sees arrays whose numbers are widened as they are taken out.
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
"""The kernels of reading, of :class:`TopK` and of ``evaluate``: in them no two float32 numbers meet."""

MOST = 0 if os.environ.get("XCREPRO_INTERPRET") == "0" else 2**18
"""Numbers in arrays that a kernel is given, in a process, before it pays to compile it."""

_NARROW = np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32
_WIDER = dict.fromkeys(_NARROW, np.int64) | {np.bool_: bool, np.float16: np.float64, np.float32: np.float64}


class Single(np.float64):
    """A float32 number: with another it makes one, and with any other number a float64.

    A step of float64 that is rounded to float32 is the float32 step itself, since 53 digits are more than 2 * 24 + 1.
    """

    def __new__(cls, value=0.0):
        return super().__new__(cls, np.float32(value))

    def __neg__(self):
        return Single(np.float64.__neg__(self))

    def __abs__(self):
        return Single(np.float64.__abs__(self))


def _step(name: str) -> Callable:
    of_float64 = getattr(np.float64, name)

    def step(self, other):
        found = of_float64(self, np.float64(other))
        return Single(found) if type(other) in (Single, np.float32) else found

    return step


for _name in ("add", "sub", "mul", "truediv"):
    for _side in ("__{}__", "__r{}__"):
        setattr(Single, _side.format(_name), _step(_side.format(_name)))


class _Float32:
    """``np.float32`` as kernels call it: a number's type, and an array's."""

    dtype = np.dtype(np.float32)

    def __new__(cls, value=0.0):
        return Single(value)


class _Wide(np.ndarray):
    """An array whose numbers are widened as they are taken out."""

    wider = _WIDER

    def __getitem__(self, at):
        found = super().__getitem__(at)
        wider = self.wider.get(type(found))
        return found if wider is None else wider(found)


class _Exact(_Wide):
    """As above; float32 numbers stay what they are."""

    wider = _WIDER | {np.float32: Single}


def _seen(value, arrays: type[_Wide] = _Wide):
    """What the interpreter is given in a value's place."""
    if isinstance(value, np.ndarray):
        return value.view(arrays if value.dtype.type in _WIDER else np.ndarray)
    if isinstance(value, tuple):
        seen = [_seen(one, arrays) for one in value]
        return type(value)(*seen) if hasattr(value, "_fields") else tuple(seen)
    if type(value) is np.float32:
        return arrays.wider[np.float32](value)
    if type(value) in (int, float):
        return np.int64(value) if type(value) is int else np.float64(value)
    return value


def _returned(value):
    """What a compiled kernel would return in its place."""
    if isinstance(value, tuple):
        return tuple(map(_returned, value))
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, Single):
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def can_be(function: Callable) -> bool:
    """Is it of reading and evaluating, which a user waits for? What is made of float32 says so in its name."""
    return Path(function.__code__.co_filename).stem in FILES and "32" not in function.__name__


def _making(function: Callable, arrays: type[_Wide]) -> Callable:
    return lambda *args, **named: _seen(function(*args, **named), arrays)


def _sqrt(x):
    return Single(np.sqrt(np.float64(x))) if type(x) is Single else np.sqrt(x)


_SINGLE = {"float32": _Float32, "sqrt": _sqrt, "divide": lambda a, b: a / b}

_MAKE = "array", "empty", "full", "ones", "zeros", "empty_like", "zeros_like"


def _numpy(arrays: type[_Wide]) -> types.SimpleNamespace:
    """NumPy as kernels see it."""
    made = {name: _making(getattr(np, name), arrays) for name in _MAKE}
    return types.SimpleNamespace(**{**vars(np), **made, **(_SINGLE if arrays is _Exact else {})})


_NUMPY: dict[type[_Wide], types.SimpleNamespace] = {arrays: _numpy(arrays) for arrays in (_Wide, _Exact)}

_names: dict[tuple[str, type[_Wide]], dict] = {}


def _inner(function: Callable, arrays: type[_Wide]) -> Callable:
    """A kernel's function, which finds the interpreted ones where it calls others."""
    module = function.__module__
    if (module, arrays) not in _names:
        names = _names[module, arrays] = dict(vars(sys.modules[module]))
        for name, value in vars(sys.modules[module]).items():
            if value is np:
                names[name] = _NUMPY[arrays]
            elif value is np.float32 and arrays is _Exact:
                names[name] = _Float32
            elif hasattr(value, "py_func"):
                names[name] = _plain(value) or _inner(value.py_func, arrays)
            elif isinstance(value, np.ndarray | np.float32):
                names[name] = _seen(value, arrays)
    return types.FunctionType(function.__code__, _names[module, arrays], function.__name__, function.__defaults__)


def _plain(kernel) -> Callable | None:
    return getattr(kernel, "plain", None)


def interpreted(function: Callable) -> Callable:
    """The function of a kernel, to be called as the kernel is."""
    arrays = _Wide if can_be(function) else _Exact
    inner = _inner(function, arrays)

    @functools.wraps(function)
    def call(*args):
        with np.errstate(all="ignore"):
            return _returned(inner(*[_seen(arg, arrays) for arg in args]))

    return call


class Interpreted:
    """A kernel on a machine without numba."""

    said = False
    given = 0  # numbers so far, in all kernels

    def __init__(self, function: Callable, plain: Callable | None) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.plain = function, plain

    def __call__(self, *args):
        Interpreted.given += sum(array.size for array in args if isinstance(array, np.ndarray))
        if Interpreted.given > 2**26 and not Interpreted.said and sys.platform not in ("emscripten", "wasi"):
            Interpreted.said = True
            print(
                "xcrepro: there is no numba here, so large data take long: pip install numba",
                file=sys.stderr,
                flush=True,
            )
        return self.call(*args)

    @functools.cached_property
    def call(self) -> Callable:
        """What runs: that of NumPy, if there is one."""
        return self.plain or interpreted(self.py_func)
