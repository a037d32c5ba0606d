"""Random numbers by counting: each is a hash of a key and a count (SplitMix64), so that no result depends on how work is
divided among threads or blocks, nor on the version of any random generator."""

from __future__ import annotations

import numpy as np

from xcrepro.core.kernels import kernel
from xcrepro.core.kernels.elementary import exp, log, logs

STEP = np.uint64(0x9E3779B97F4A7C15)  # 2 ** 64 over the golden ratio
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_UNIT = 2.0**-53


@kernel
def mix(x):
    """The output function of SplitMix64: every bit of x reaches every bit of the result."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@kernel
def mixes(numbers, out):
    """What SplitMix64 makes of each number (uint64), one to one."""
    for i in range(numbers.size):
        out[i] = mix(numbers[i] + STEP)


@kernel
def key(seed, stream, item):
    """Where the random numbers of one item of one stream start."""
    return mix(mix(mix(np.uint64(seed) + STEP) + np.uint64(stream) * STEP) + np.uint64(item) * STEP)


@kernel
def uniform(key, count):
    """The count-th number of a key, uniform on [0, 1)."""
    return (mix(key + np.uint64(count + 1) * STEP) >> _S11) * _UNIT


_AT_ONCE = 500.0  # exp(-500) is a normal number


@kernel
def poissons(seed, stream, means, out):
    """``out[i]``: a Poisson number of mean ``means[i]``, by as many uniform numbers and one more for each 500 of the mean."""
    for i in range(means.size):
        start = key(seed, stream, i)
        out[i] = 0
        count = 0
        left = means[i]
        while left > 0.0:
            # How many uniform numbers it takes until their product is below exp(-mean); of large means part by part.
            least = exp(-min(left, _AT_ONCE))
            left -= _AT_ONCE
            product = 1.0 - uniform(start, count)
            count += 1
            while product > least:
                out[i] += 1
                product *= 1.0 - uniform(start, count)
                count += 1


@np.errstate(over="ignore")
def _normals(key, out):
    have, count = 0, 0
    while have < out.size:
        pairs = out.size - have  # of four pairs three are in the circle, and each makes two
        counts = np.arange(count + 1, count + 2 * pairs + 1).astype(np.uint64)
        numbers = (mix.py_func(np.uint64(key) + counts * STEP) >> _S11) * _UNIT
        points = (2.0 * numbers - 1.0).reshape(pairs, 2)
        square = points[:, 0] * points[:, 0] + points[:, 1] * points[:, 1]
        inside = (square > 0.0) & (square < 1.0)
        square, logged = square[inside], np.empty(int(inside.sum()))
        logs.plain(square, logged)
        found = (points[inside] * np.sqrt(-2.0 * logged / square)[:, None]).ravel()[: out.size - have]
        out[have : have + found.size] = found
        have, count = have + found.size, count + 2 * pairs


@kernel(plain=_normals)
def normals(key, out):
    """Fill ``out`` with the standard normal numbers of a key: Marsaglia's polar method, two of each pair in the circle."""
    i, count = 0, 0
    while i < out.size:
        x = 2.0 * uniform(key, count) - 1.0
        y = 2.0 * uniform(key, count + 1) - 1.0
        count += 2
        square = x * x + y * y
        if 0.0 < square < 1.0:
            scale = np.sqrt(-2.0 * log(square) / square)
            out[i] = x * scale
            if i + 1 < out.size:
                out[i + 1] = y * scale
            i += 2
