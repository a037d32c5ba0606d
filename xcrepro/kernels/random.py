"""Random numbers by counting: each is a hash of a key and a count (SplitMix64), so that no result depends on how work is divided
among threads or blocks, nor on the version of any random generator."""

from __future__ import annotations

import numpy as np

from xcrepro.kernels import kernel
from xcrepro.kernels.elementary import log

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
def key(seed, stream, item):
    """Where the random numbers of one item of one stream start."""
    return mix(mix(mix(np.uint64(seed) + STEP) + np.uint64(stream) * STEP) + np.uint64(item) * STEP)


@kernel
def uniform(key, count):
    """The count-th number of a key, uniform on [0, 1)."""
    return (mix(key + np.uint64(count + 1) * STEP) >> _S11) * _UNIT


@kernel
def normals(key, out):
    """Fill ``out`` with the standard normal numbers of a key (Marsaglia's polar method: two of each pair that lies in the circle)."""
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
