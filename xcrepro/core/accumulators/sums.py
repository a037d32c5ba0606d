"""Exact sums of float64 numbers: whole multiples of one tiny unit, in Python's integers, rounded once when asked for."""

from __future__ import annotations

import numpy as np

from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import exact as kernel

# 2^-1200: every float64 is a whole multiple of 2^-1074, and the kernel's finer part may reach 2^-1154.
UNIT_BITS = 1200
_ONE = 1 << UNIT_BITS


class ExactSums:
    """Sums of columns of numbers, as if with unlimited precision.

    Parameters
    ----------
    shape : tuple of int
        Of the array of sums.

    Examples
    --------
    >>> sums = ExactSums((1,))
    >>> sums.add_rows(np.array([[1e16], [1.0], [-1e16]]))
    >>> sums.rounded()
    array([1.])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._totals = np.zeros(int(np.prod(shape)), object)  # Python's integers, in units of 2^-UNIT_BITS

    def add_rows(self, values: np.ndarray) -> None:
        """Add up each column of ``values``, (n, number of sums), finite. Any n."""
        adder = Adder(values.shape[1])
        for first in range(0, len(values), kernel.ROWS):
            part = values[first : first + kernel.ROWS]
            adder.add(part, len(part))
        self.add_totals(adder.totals())

    def add_totals(self, totals: np.ndarray) -> None:
        """Add what :meth:`Adder.totals` gave."""
        self._totals = self._totals + totals.ravel()

    def merge(self, other: ExactSums) -> None:
        """Add another's sums."""
        self._totals = self._totals + other._totals

    def rounded(self, which=...) -> np.ndarray:
        """float64, of ``shape`` or of the part that ``which`` indexes: each sum rounded to the nearest float64, once."""
        try:
            return (self.integers()[which] / _ONE).astype(np.float64)
        except OverflowError:
            raise _infinite("a sum beyond 1.8e308") from None

    def integers(self) -> np.ndarray:
        """object array of ``shape``: the sums in units of 2^-UNIT_BITS."""
        return self._totals.reshape(self.shape)

    def to_bytes(self) -> np.ndarray:
        """uint8 (number of sums, width): the integers in two's complement, lowest byte first, as wide as the widest needs."""
        width = 1 + max((int(total).bit_length() for total in self._totals), default=0) // 8
        rows = [int(total).to_bytes(width, "little", signed=True) for total in self._totals]
        return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), width)

    def from_bytes(self, data: np.ndarray) -> None:
        """Take back what :meth:`to_bytes` gave. ValueError for another shape or dtype."""
        if data.dtype != np.uint8 or data.ndim != 2 or len(data) != self._totals.size or data.shape[1] < 1:
            raise ValueError(f"{self._totals.size} sums are stored as {data.dtype} {data.shape}")
        found = [int.from_bytes(row.tobytes(), "little", signed=True) for row in data]
        self._totals = np.array([*found, None], object)[:-1]


class Adder:
    """Adds rows of values quickly; one for each thread.

    Parameters
    ----------
    columns : int
    n_resamples : int
        0, or as many weighted sums of each column beside each other.
    """

    def __init__(self, columns: int, n_resamples: int = 0) -> None:
        self._exponents = np.full(columns, -900, np.int64)
        shape = (n_resamples, columns) if n_resamples else (columns,)
        self._high, self._low = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._flushed = np.zeros(shape, object)
        self._rows = 0  # in high and low, as often as they count

    def add(self, values: np.ndarray, n: int, weights: np.ndarray | None = None) -> None:
        """Add the first n rows of (at least n, columns), at most the kernel's ROWS; with ``weights`` (n, n_resamples), whole
        numbers, each as often as they say."""
        if weights is None:
            self._make_room(n)
            state = kernel.add(values, n, self._exponents, self._high, self._low)
            if state == kernel.TOO_LARGE:
                self._raise_exponents(values[:n])
                state = kernel.add(values, n, self._exponents, self._high, self._low)
            if state == kernel.INEXACT:
                self._flushed += _as_integers(values[:n]).sum(axis=0)
            return
        high, low = np.empty((n, values.shape[1])), np.empty((n, values.shape[1]))
        state = kernel.split(values, n, self._exponents, high, low)
        if state == kernel.TOO_LARGE:
            self._raise_exponents(values[:n])
            state = kernel.split(values, n, self._exponents, high, low)
        if state == kernel.INEXACT:
            self._flushed += weights.T.astype(object) @ _as_integers(values[:n])
            return
        step = max(1, _EXACT_WEIGHT // max(int(weights.max(initial=0)), 1))
        if weights.sum(axis=0).max(initial=0) <= _EXACT_WEIGHT:
            step = n
        for first in range(0, n, step):
            # A product of whole numbers whose sums stay below 2^53: exact, in whatever order BLAS adds.
            times = weights[first : first + step].T.astype(np.float64)
            self._make_room(_EXACT_WEIGHT)
            self._high += (times @ high[first : first + step]).astype(np.int64)
            self._low += (times @ low[first : first + step]).astype(np.int64)

    def _make_room(self, rows: int) -> None:
        if self._rows + rows > 2**22:  # of at most 2^40 each: what an int64 holds
            self._flush()
        self._rows += rows

    def _raise_exponents(self, values: np.ndarray) -> None:
        """New powers of 2, with room: a column's later rows are seldom far above its first."""
        rows = len(values)
        self._flush()
        self._rows = rows
        largest = np.abs(values).max(axis=0)
        if not np.isfinite(largest).all():
            raise _infinite("infinity or NaN")
        largest = np.frexp(largest)[1].astype(np.int64)
        self._exponents = np.maximum(self._exponents, largest + 2)

    def _flush(self) -> None:
        for part, bits in ((self._high, kernel.BITS), (self._low, 2 * kernel.BITS)):
            if part.any():
                up = [1 << int(UNIT_BITS + e - bits) for e in self._exponents]
                self._flushed += part.astype(object) * np.array([*up, None], object)[:-1]
                part[:] = 0
        self._rows = 0

    def totals(self) -> np.ndarray:
        """object ([n_resamples,] columns): the sums so far, in the unit of :class:`ExactSums`."""
        self._flush()
        return self._flushed


def _infinite(got: str) -> ArgumentError:
    do = "are some weights near the largest float64?"
    return ArgumentError("values", "must stay finite where rows are added up", got, do)


_EXACT_WEIGHT = 2**13  # rows that a product may add up, each below 2^40


def _as_integers(values: np.ndarray) -> np.ndarray:
    """object, of the same shape: each number in the unit of :class:`ExactSums`. Slow, and right for every finite float64."""
    mantissas, exponents = np.frexp(values)
    whole = (mantissas * 2.0**53).astype(np.int64).ravel().tolist()
    shifts = (exponents.astype(np.int64) + (UNIT_BITS - 53)).ravel().tolist()
    found = np.empty(len(whole), object)
    found[:] = [w << s for w, s in zip(whole, shifts, strict=True)]
    return found.reshape(values.shape)


def ratio(above: np.ndarray, below: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    """above / below, and ``otherwise`` where below is 0."""
    return np.divide(above, below, out=np.full(np.shape(above), otherwise), where=np.asarray(below) > 0)


def run_starts(values: np.ndarray) -> np.ndarray:
    """Where each run of equal numbers begins, of sorted ones."""
    return np.flatnonzero(np.concatenate([np.ones(min(values.size, 1), np.bool_), values[1:] != values[:-1]]))
